"""Assertions about a run: no broken rules, expected status sequences, and golden traces.

A golden trace is a run as text in Thai time, stored beside the test. Traces are compared recipient
by recipient; the earliest difference is reported first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from itertools import zip_longest
from pathlib import Path

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import CHANGES, DIALLED, CallRows, Trace
from dialsim.errors import DialsimError
from dialsim.interface.phrases import counted
from dialsim.interface.status import CallStatus
from dialsim.results.campaigns import Position
from dialsim.results.result import Result
from dialsim.results.run_view import RunView
from dialsim.results.story import sequences, tell
from dialsim.testing.checks import campaigns, queue
from dialsim.testing.checks.record import RunRecord, Violation
from dialsim.testing.sketch import at, stamp

MAX_PRINTED = 20
"""Violations printed by a failing assertion."""

_WORDS = {"|", *CallStatus}

RunLike = Result | Simulation | Trace
"""Types accepted as a run: a result, a simulation under way, or a trace."""


def trace_of(run: RunLike) -> Trace:
    """Return the trace of a run."""
    return run if isinstance(run, Trace) else run.trace


def violations(run: RunLike) -> list[Violation]:
    """Return every violation of a rule by a run, in order of time; empty for a correct run.

    The checked rules are T3, T5, C1 to C8, Q1 to Q6, P1 to P5, R1 to R3 and D3, as far as a trace
    alone shows them: of Q3 the order inside a campaign. The time is linear in the size of the
    trace.

    A result is checked as a complete run of its file. A `Simulation` may be at any instant and may
    have received commands: states before a command of the same instant are accepted as well.
    """
    return sorted(_found(run), key=lambda violation: violation.at)


def assert_no_violations(run: RunLike) -> None:
    """Raise AssertionError with the first violations of rules by a run, if any."""
    # pytest then shows the failing test and not this function.
    __tracebackhide__ = True
    found = violations(run)
    if found:
        some = [str(violation) for violation in found[:MAX_PRINTED]]
        more = [f"… and {len(found) - MAX_PRINTED} more"] if len(found) > MAX_PRINTED else []
        rules = ", ".join(dict.fromkeys(violation.rule for violation in found))
        raise AssertionError("\n".join([f"the run breaks {rules}:", *some, *more]))


def assert_sequence(
    run: RunLike, recipient: int, expected: str, campaign: str | None = None
) -> None:
    """Assert the status sequence of a recipient's calls, calls separated by `|`.

    `SCHEDULED QUEUED INITIATED NO_ANSWER | SCHEDULED QUEUED INITIATED COMPLETED`. `recipient` is a
    position from 0; `campaign` is required in runs with several. Raises AssertionError with both
    sequences and the recipient's story, and DialsimError for a word that is no status.
    """
    __tracebackhide__ = True
    wanted = expected.replace("|", " | ").split()
    unknown = [word for word in wanted if word not in _WORDS]
    if unknown:
        statuses = ", ".join(CallStatus)
        raise DialsimError(f"{' and '.join(unknown)}: no status of a call; there are: {statuses}")
    reading = RunView(trace_of(run))
    # Before the lookup below, whose KeyError would not name the recipients that exist.
    story = tell(reading, recipient, campaign)  # raises DialsimError for an unknown recipient
    life = reading.find(campaign).life
    found = sequences(reading)[life.organization, life.name, recipient].split()
    if found != wanted:
        who = f"{life.full_name} recipient {recipient}"
        raise AssertionError(_sequence_difference(wanted, found, who, story))


def _found(run: RunLike) -> Iterator[Violation]:
    live = isinstance(run, Simulation)
    for organization in RunRecord(trace_of(run), live).organizations():
        for campaign in organization.campaigns:
            yield from campaigns.violations(campaign)
            yield from queue.order_violations(campaign)
        yield from queue.violations(organization)


def _sequence_difference(wanted: Sequence[str], found: Sequence[str], who: str, story: str) -> str:
    pairs = list(zip_longest(wanted, found, fillvalue=""))
    first = next(index for index, (one, other) in enumerate(pairs) if one != other)
    call = 1 + wanted[:first].count("|")
    is_expected, is_found = (
        words[first] if first < len(words) else "the end" for words in (wanted, found)
    )
    before = " ".join(found[:first])
    marker = " " * (len(before) + bool(before)) + "^"
    return (
        f"the status sequence of {who} differs in call {call}: "
        f"{is_expected} expected, {is_found} found\n"
        f"  expected: {' '.join(wanted)}\n"
        f"  found:    {' '.join(found)}\n"
        f"            {marker}\n\n{story}"
    )


# -- a run as text ---------------------------------------------------------------------------------

_STAMP_WIDTH = 27
_TITLE = "# A trace by dialsim, in Thai time; "


@dataclass(frozen=True, slots=True)
class Block:
    """Changes of a recipient, a campaign or an organization, one line each."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TracePage:
    """Trace as text: its seed, and blocks in the order of the scenario."""

    seed: int
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """Text of the page, as in a file."""
        blocks = ("".join(f"{line}\n" for line in (b.title, *b.lines)) for b in self.blocks)
        return "\n".join([f"{_TITLE}seed {self.seed}\n", *blocks])

    @classmethod
    def of(cls, run: RunLike) -> TracePage:
        """Build the page of a run."""
        trace = trace_of(run)
        return cls(trace.world.seed, tuple(_blocks(trace)))

    @classmethod
    def parse(cls, text: str) -> TracePage:
        """Parse a page. Raises ValueError for a wrong first line."""
        first, *parts = text.rstrip("\n").split("\n\n")
        if not first.startswith(f"{_TITLE}seed "):
            raise ValueError(f"{first.splitlines()[:1]} is not the first line of a trace")
        blocks = (part.split("\n") for part in parts)
        return cls(
            int(first.removeprefix(f"{_TITLE}seed ")),
            tuple(Block(title, tuple(lines)) for title, *lines in blocks),
        )


def trace_text(run: RunLike) -> str:
    """Return a run as text: all changes of organizations, campaigns and recipients, in Thai
    time.
    """
    return TracePage.of(run).text


def _blocks(trace: Trace) -> Iterator[Block]:
    reading = RunView(trace)
    for organization in trace.world.organizations:
        limits = (
            (row.at, f"maxConcurrentCalls {row.limit}")
            for row in trace.limits_of(organization.position)
        )
        yield Block(organization.name, _stamped(limits))
        for campaign in organization.campaigns:
            position = (organization.position, campaign.position)
            name = f"{organization.name}/{campaign.name}"
            yield Block(name, (*_stamped(_campaign(trace, position)), *_end(trace, position)))
            for recipient, lines in _people(reading, position):
                yield Block(f"{name} recipient {recipient}", lines)


def _stamped(events: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(f"  {stamp(at):<{_STAMP_WIDTH}}  {text}" for at, text in events)


def _campaign(trace: Trace, position: Position) -> list[tuple[int, str]]:
    """Return a campaign's changes of status and its refused actions."""
    part = trace.campaign(*position)
    changes = [
        (row.at, f"{row.from_status} > {row.to_status}  {row.cause}") for row in part.changes
    ]
    refused = [
        (row.at, f"refused: {row.action}  {row.code}: {row.message}") for row in part.refused
    ]
    # Stable: of one instant changes come before refusals.
    return sorted([*changes, *refused], key=lambda event: event[0])


def _end(trace: Trace, position: Position) -> Iterator[str]:
    if trace.campaign(*position).stalled:
        yield "  stalled: nothing can ever happen again"


def _people(reading: RunView, position: Position) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the lines of each recipient with a call, in upload order."""
    calls = reading.campaigns[position].calls
    shown = _shown(reading, position, calls.rows)
    rows = calls.rows
    current, events = -1, list[tuple[int, str]]()
    for row in calls.rows_by_call().tolist():
        recipient = int(rows.recipient[row])
        if recipient != current and events:
            yield current, _stamped(events)
            events = []
        current = recipient
        events.append((int(rows.at[row]), _change(rows, row) + shown.get(row, "")))
    if events:
        yield current, _stamped(events)


def _change(rows: CallRows, row: int) -> str:
    change = CHANGES[rows.kind[row]]
    status = f"{change.to_status} {change.phase or ''}".rstrip()
    return f"call {rows.call[row]}  {status:<19}  {change.cause}"


def _shown(reading: RunView, position: Position, rows: CallRows) -> dict[int, str]:
    """Return, by row of a dial, the caller ID and voice that it used (P3, P4)."""
    log, world = reading.trace.campaign(*position).log, reading.world
    dials = (row for row, kind in enumerate(rows.kind.tolist()) if kind == DIALLED)
    return {
        row: f" from {world.numbers[number]}"
        + (f", voice {world.voice_keys[voice]}" if voice >= 0 else "")
        for row, number, voice in zip(dials, log.dial_numbers, log.dial_voices, strict=True)
    }


# -- golden traces ---------------------------------------------------------------------------------

SHOWN = 4
"""Differing blocks printed in full; the others are only named."""


@dataclass(frozen=True, slots=True)
class BlockDifference:
    """Block that differs between two traces: marked lines, and the instant of the first
    difference.
    """

    title: str
    lines: tuple[str, ...]
    first_at: float
    first: str


def differences(golden: TracePage, found: TracePage) -> list[BlockDifference]:
    """Return the differing blocks by their first difference, then in the scenario's order."""
    was = {block.title: block for block in golden.blocks}
    now = {block.title: block for block in found.blocks}
    titles = dict.fromkeys([*now, *was])
    parted = [
        _block_difference(was.get(title, Block(title, ())), now.get(title, Block(title, ())))
        for title in titles
        if was.get(title) != now.get(title)
    ]
    return sorted(parted, key=lambda difference: difference.first_at)


def describe(parted: list[BlockDifference], golden_name: str) -> str:
    """Describe the differences of two traces; at least one."""
    first = parted[0]
    when = "" if first.first_at == _NEVER else f", first at {first.first} (Thai time)"
    places = counted(len(parted), "place")
    shown = (line for part in parted[:SHOWN] for line in ("", part.title, *part.lines))
    more = [part.title for part in parted[SHOWN:]]
    return "\n".join(
        [
            f"the run differs from {golden_name} in {places}{when}",
            "  - only in the golden trace",
            "  + only in this run",
            *shown,
            *_named(more),
        ]
    )


_NEVER = float("inf")


def _block_difference(was: Block, now: Block) -> BlockDifference:
    lines = list(_marked(was.lines, now.lines))
    # Unmarked lines begin with four spaces.
    instants = [_instant(line[2:]) for line in lines if line[2:].strip() and line[2] != " "]
    first_at, first = min(instants, default=(_NEVER, ""))
    return BlockDifference(now.title, tuple(lines), first_at, first)


def _marked(was: tuple[str, ...], now: tuple[str, ...]) -> Iterator[str]:
    """Yield all lines of both; `-` marks lines of the first only, `+` lines of the second only."""
    # autojunk ignores lines that are frequent in long traces, such as dials of one instant.
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield from (f"    {line.strip()}" for line in was[i:j])
        else:
            yield from (f"  - {line.strip()}" for line in was[i:j])
            yield from (f"  + {line.strip()}" for line in now[k:m])


def _instant(marked: str) -> tuple[float, str]:
    """Return the instant of a marked line, for sorting and for printing; without one, infinity."""
    text = marked[2:].partition("  ")[0]
    try:
        return at(text).timestamp(), text
    except DialsimError:
        return _NEVER, ""


def _named(titles: list[str]) -> list[str]:
    if not titles:
        return []
    rest = f", and {len(titles) - 10} more" if len(titles) > 10 else ""
    return ["", f"… and in {', '.join(titles[:10])}{rest}"]


FOLDER = "golden"


class GoldenOutcome(Enum):
    """Result of a comparison with a golden trace."""

    SAME = "same"
    WRITTEN = "written"
    OTHER_SEED = "of another seed"


class GoldenTraces:
    """Fixture `dialsim_golden`: compares runs of one test with stored traces.

    A trace is stored in the folder `golden` beside the test, in a file named after the test. Only
    `--dialsim-update` writes it.
    """

    def __init__(
        self, folder: Path, test: str, update: bool, note: Callable[[GoldenOutcome], None]
    ) -> None:
        """`test` is the test's name, prefixed by its module; `note` is called for each
        comparison.
        """
        self._folder = folder / FOLDER
        self._test = test
        self._update = update
        self._note = note
        self._names: set[str] = set()

    def __call__(self, run: RunLike, name: str = "") -> None:
        """Compare a run with the golden trace; `name` distinguishes several traces of one test.

        A golden trace belongs to one seed; runs with another seed are not compared. Raises
        AssertionError with both traces if they differ, or if there is no golden trace yet.
        """
        __tracebackhide__ = True

        assert name not in self._names, f"this test has a golden trace {name!r} already: name it"
        self._names.add(name)
        file, found = self._file(name), TracePage.of(run)
        shown = f"{FOLDER}/{file.name}"
        if self._update:
            self._write(file, found.text)
            return
        assert file.exists(), f"there is no {shown} yet: --dialsim-update writes it"
        golden = TracePage.parse(file.read_text(encoding="utf-8"))
        # With --dialsim-seeds a test runs with other random numbers, whose trace is rightly
        # different.
        if golden.seed != found.seed:
            self._note(GoldenOutcome.OTHER_SEED)
            return
        parted = differences(golden, found)
        if parted:
            raise AssertionError(describe(parted, shown))
        self._note(GoldenOutcome.SAME)

    def _write(self, file: Path, text: str) -> None:
        if file.exists() and file.read_text(encoding="utf-8") == text:
            self._note(GoldenOutcome.SAME)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        # The same bytes on Windows, where a golden trace would otherwise differ in every line.
        file.write_text(text, encoding="utf-8", newline="\n")
        self._note(GoldenOutcome.WRITTEN)

    def _file(self, name: str) -> Path:
        plain = re.sub(r"[^\w.]+", "-", f"{self._test} {name}").strip("-")
        return self._folder / f"{plain}.txt"
