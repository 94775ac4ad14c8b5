"""Assertions about a run: no broken rules, expected status sequences, and golden traces.

A golden trace is a run as text in Thai time, stored beside the test. Traces are compared recipient
by recipient; the earliest difference is reported first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from pathlib import Path
from typing import NamedTuple

from dialsim.conformance import call_rules, trace_rules
from dialsim.conformance.table import Violation, judge
from dialsim.conformance.trace_table import TraceTable
from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import CHANGES, DIALLED, CallRows, Trace
from dialsim.errors import DialsimError
from dialsim.interface import CallStatus
from dialsim.interface.arguments import checked
from dialsim.interface.phrases import counted
from dialsim.results.campaigns import Position
from dialsim.results.result import Result
from dialsim.results.run_view import RunView
from dialsim.results.story import sequence_of, story_of
from dialsim.testing.sketch import at, stamp

MAX_PRINTED = 20
"""Violations printed by a failing assertion."""

_WORDS = {"|", *CallStatus}

RunLike = Result | Simulation | Trace
"""Types accepted as a run: a result, a simulation under way, or a trace."""


def trace_of(run: RunLike) -> Trace:
    """Return the trace of a run."""
    return run if isinstance(run, Trace) else run.trace


@checked(DialsimError)
def violations(run: RunLike) -> list[Violation]:
    """Return every violation of a rule by a run, in order of time; empty for a correct run.

    The checked rules are T3, T5, C1 to C8, Q1 to Q11, P1 to P5, R1 to R3 and D3, as far as a trace
    alone shows them (of Q3 only the order inside a campaign). The time is linear in the size of the
    trace.

    A `Simulation` may be at any instant. The instant of a command from outside is excused from
    rules on states that the command may have changed (T4).

    >>> dialsim.testing.violations(dialsim.run(Sketch(1).campaign("A", "busy 1s").scenario()))
    []
    """
    table = TraceTable(trace_of(run))
    found, *_ = judge(table, trace_rules, call_rules)
    return sorted(found, key=lambda violation: violation.at or 0)


@checked(DialsimError)
def assert_no_violations(run: RunLike) -> None:
    """Raise AssertionError with the first violations of rules by a run, if any.

    >>> run = dialsim.run(Sketch(1).campaign("A", "busy 1s").scenario())
    >>> dialsim.testing.assert_no_violations(run)
    """
    # pytest then shows the failing test and not this function.
    __tracebackhide__ = True
    found = violations(run)
    if found:
        some = [str(violation) for violation in found[:MAX_PRINTED]]
        more = [f"… and {len(found) - MAX_PRINTED} more"] if len(found) > MAX_PRINTED else []
        rules = ", ".join(dict.fromkeys(violation.rule for violation in found))
        raise AssertionError("\n".join([f"the run breaks {rules}:", *some, *more]))


@checked(DialsimError)
def assert_sequence(
    run: RunLike, recipient: int, expected: str, campaign: str | None = None
) -> None:
    """Assert the status sequence of a recipient's calls, calls separated by `|`.

    `recipient` is a position from 0; `campaign` is required in runs with several. Raises
    AssertionError with both sequences and the recipient's story, and DialsimError for a word that
    is no status, and for an unknown recipient.

    >>> run = dialsim.run(Sketch(1).campaign("A", "busy 1s", max_attempts=1).scenario())
    >>> dialsim.testing.assert_sequence(run, 0, "SCHEDULED QUEUED INITIATED BUSY")
    """
    __tracebackhide__ = True
    wanted = expected.replace("|", " | ").split()
    unknown = [word for word in wanted if word not in _WORDS]
    if unknown:
        statuses = ", ".join(CallStatus)
        raise DialsimError(f"{' and '.join(unknown)}: no status of a call; there are: {statuses}")
    reading = RunView(trace_of(run))
    own = reading.find(campaign)
    found = sequence_of(own, recipient).split()
    if found != wanted:
        subject = f"{own.life.full_name} recipient {recipient}"
        # A story takes as long as the run of a small scenario, so it is made for failures alone.
        story = story_of(reading, recipient, campaign)
        raise AssertionError(_sequence_difference(wanted, found, subject, story))


def _sequence_difference(
    wanted: Sequence[str], found: Sequence[str], subject: str, story: str
) -> str:
    pairs = enumerate(zip_longest(wanted, found, fillvalue="the end"))
    first, (is_expected, is_found) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    call = 1 + wanted[:first].count("|")
    before = " ".join(found[:first])
    marker = " " * (len(before) + bool(before)) + "^"
    return (
        f"the status sequence of {subject} differs in call {call}: "
        f"{is_expected} expected, {is_found} found\n"
        f"  expected: {' '.join(wanted)}\n"
        f"  found:    {' '.join(found)}\n"
        f"            {marker}\n\n{story}"
    )


# -- a run as text ---------------------------------------------------------------------------------

_STAMP_WIDTH = 27
_TITLE = "# A trace by dialsim, in Thai time; "


@checked(DialsimError)
def trace_text(run: RunLike) -> str:
    """Return a run as text: all changes of organizations, campaigns and recipients, in Thai time.

    The first line has the seed. A block for each organization, campaign and recipient follows, in
    the order of the scenario, with a line per change.

    >>> run = dialsim.run(Sketch(1).campaign("A", "busy 1s").scenario())
    >>> print(dialsim.testing.trace_text(run))
    # A trace by dialsim, in Thai time; seed 1
    ...
    Acme/A recipient 0
      Mon 5 Jan 2026 09:00:00.000  call 1  SCHEDULED            scheduled
    ...
    """
    trace = trace_of(run)
    blocks = [[f"{_TITLE}seed {trace.world.seed}"], *_blocks(trace)]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _blocks(trace: Trace) -> Iterator[list[str]]:
    """Yield the title and the lines of each block."""
    reading = RunView(trace)
    for organization in trace.world.organizations:
        limits = (
            (row.at, f"maxConcurrentCalls {row.limit}")
            for row in trace.limits_of(organization.position)
        )
        yield [organization.name, *_stamped(limits)]
        for campaign in organization.campaigns:
            position = (organization.position, campaign.position)
            name = f"{organization.name}/{campaign.name}"
            yield [name, *_stamped(_campaign(trace, position)), *_end(trace, position)]
            for recipient, events in _people(reading, position):
                yield [f"{name} recipient {recipient}", *_stamped(events)]


def _stamped(events: Iterable[tuple[int, str]]) -> list[str]:
    return [f"  {stamp(at):<{_STAMP_WIDTH}}  {text}" for at, text in events]


def _campaign(trace: Trace, position: Position) -> list[tuple[int, str]]:
    """Return a campaign's changes of status and its refused actions."""
    part = trace.campaign(*position)
    changes = [
        (row.at, f"{row.from_status} > {row.to_status}  {row.cause}") for row in part.changes
    ]
    refused = [
        (row.at, f"refused: {row.action}  {row.code}: {row.message}") for row in part.refused
    ]
    # The sort is stable: changes come before refusals of the same instant.
    return sorted([*changes, *refused], key=lambda event: event[0])


def _end(trace: Trace, position: Position) -> Iterator[str]:
    if trace.campaign(*position).stalled:
        yield "  stalled: nothing can ever happen again"


def _people(
    reading: RunView, position: Position
) -> Iterator[tuple[int, Iterator[tuple[int, str]]]]:
    """Yield the changes of each recipient with a call, in upload order."""
    calls = reading.campaigns[position].calls
    rows, shown = calls.rows, _shown(reading, position, calls.rows)
    by_recipient = groupby(calls.rows_by_call().tolist(), lambda row: int(rows.recipient[row]))
    for recipient, own in by_recipient:
        yield (
            recipient,
            ((int(rows.at[row]), _change(rows, row) + shown.get(row, "")) for row in own),
        )


def _change(rows: CallRows, row: int) -> str:
    change = CHANGES[rows.kind[row]]
    status = f"{change.to_status} {change.phase or ''}".rstrip()
    return f"call {rows.call[row]}  {status:<19}  {change.cause}"


def _shown(reading: RunView, position: Position, rows: CallRows) -> dict[int, str]:
    """Return a text with caller ID and voice (P3, P4) of each dial, by row."""
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
_NAMED = 10

_NEVER = float("inf")


class BlockDifference(NamedTuple):
    """Block that differs between two traces: instant of the first difference (as a number and as
    text), title, and marked lines.
    """

    first_at: float
    first: str
    title: str
    lines: list[str]


def differences(golden: str, found: str) -> list[BlockDifference]:
    """Return the differing blocks of two traces by their first difference, then in order."""
    was, now = _by_title(golden), _by_title(found)
    differing = [
        _block_difference(title, was.get(title, []), now.get(title, []))
        for title in dict.fromkeys([*now, *was])
        if was.get(title) != now.get(title)
    ]
    return sorted(differing, key=lambda block: block.first_at)


def _by_title(text: str) -> dict[str, list[str]]:
    """Return the lines of each block of a trace. Raises ValueError for another text."""
    first, *blocks = text.rstrip("\n").split("\n\n")
    if not first.startswith(_TITLE):
        raise ValueError(f"{first.splitlines()[:1]} is not the first line of a trace")
    return {title: lines for title, *lines in (block.split("\n") for block in blocks)}


def describe(differing: Sequence[BlockDifference], golden_name: str) -> str:
    """Describe the differences of two traces; at least one."""
    first, more = differing[0], [block.title for block in differing[SHOWN:]]
    when = "" if first.first_at == _NEVER else f", first at {first.first} (Thai time)"
    shown = (line for block in differing[:SHOWN] for line in ("", block.title, *block.lines))
    rest = f", and {len(more) - _NAMED} more" if len(more) > _NAMED else ""
    return "\n".join(
        [
            f"the run differs from {golden_name} in {counted(len(differing), 'place')}{when}",
            "  - only in the golden trace",
            "  + only in this run",
            *shown,
            *(["", f"… and in {', '.join(more[:_NAMED])}{rest}"] if more else []),
        ]
    )


def _block_difference(title: str, was: list[str], now: list[str]) -> BlockDifference:
    lines = list(_marked(was, now))
    # Unmarked lines begin with four spaces.
    instants = [_instant(line[2:]) for line in lines if line[2:].strip() and line[2] != " "]
    return BlockDifference(*min(instants, default=(_NEVER, "")), title, lines)


def _marked(was: list[str], now: list[str]) -> Iterator[str]:
    """Yield all lines of two texts; `-` marks lines of the first only, `+` of the second only."""
    # autojunk ignores lines that are frequent in long traces, such as dials of one instant.
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield from (f"    {line.strip()}" for line in was[i:j])
        else:
            yield from (f"  - {line.strip()}" for line in was[i:j])
            yield from (f"  + {line.strip()}" for line in now[k:m])


def _instant(marked: str) -> tuple[float, str]:
    """Return the instant of a marked line, for sorting and for printing.

    It is infinity for a line without an instant.
    """
    text = marked[2:].partition("  ")[0]
    try:
        return at(text).timestamp(), text
    except DialsimError:
        return _NEVER, ""


FOLDER = "golden"


@checked(DialsimError)
class GoldenTraces:
    """Fixture `dialsim_golden`: compares runs of one test with stored traces.

    A trace is stored in the folder `golden` beside the test, in a file named after the test. Only
    `--dialsim-update` writes it.

    ```python
    def test_a_pause(dialsim_run, dialsim_golden):
        dialsim_golden(dialsim_run("january.yaml"))
    ```
    """

    def __init__(self, folder: Path, test: str, update: bool, note: Callable[[str], None]) -> None:
        """`test` is the test's name, prefixed by its module; `note` receives the outcome of each
        comparison: `same`, `written` or `of another seed`.
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
        file, found = self._file(name), trace_text(run)
        shown = f"{FOLDER}/{file.name}"
        if self._update:
            self._write(file, found)
            return
        assert file.exists(), f"there is no {shown} yet: --dialsim-update writes it"
        golden = file.read_text(encoding="utf-8")
        # With --dialsim-seeds a test runs with other random numbers, whose trace is rightly
        # different. The seed is in the first line.
        same_seed = golden.partition("\n")[0] == found.partition("\n")[0]
        if golden.startswith(_TITLE) and not same_seed:
            self._note("of another seed")
            return
        differing = differences(golden, found)
        if differing:
            raise AssertionError(describe(differing, shown))
        self._note("same")

    def _write(self, file: Path, text: str) -> None:
        if file.exists() and file.read_text(encoding="utf-8") == text:
            self._note("same")
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        # The same bytes on Windows, where a golden trace would otherwise differ in every line.
        file.write_text(text, encoding="utf-8", newline="\n")
        self._note("written")

    def _file(self, name: str) -> Path:
        plain = re.sub(r"[^\w.]+", "-", f"{self._test} {name}").strip("-")
        return self._folder / f"{plain}.txt"
