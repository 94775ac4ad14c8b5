"""Assertions about a run: it breaks no rule, and a recipient's calls take the expected steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.interface.errors import DialsimError
from dialsim.interface.status import CallStatus
from dialsim.results.result import Result
from dialsim.results.run_view import RunView
from dialsim.results.story import sequences, tell
from dialsim.testing.checks import campaigns, queue
from dialsim.testing.checks.record import RunRecord, Violation

MAX_PRINTED = 20
"""How many violations a failing assertion prints."""

_WORDS = {"|", *CallStatus}

RunLike = Result | Simulation | Trace
"""What a test may hand over as a run: a result, a simulation under way, or a trace."""


def trace_of(run: RunLike) -> Trace:
    """The trace of a run."""
    return run if isinstance(run, Trace) else run.trace


def violations(run: RunLike) -> list[Violation]:
    """Every breach of a rule that a run shows, in order of time; empty for a sound one.

    Checked are T3, T5, C1 to C8, Q1 to Q6, P1 to P5, R1 to R3 and D3, each as far as a trace alone
    can show it: of Q3 the order inside a campaign. The time it takes is linear in the size of the
    trace.

    A result is checked as a run of its file from start to end. A `Simulation` may stand anywhere,
    and may have been given commands: what held in an instant before a command counts as well.
    """
    return sorted(_found(run), key=lambda violation: violation.at)


def assert_no_violations(run: RunLike) -> None:
    """Raise AssertionError with the first breaches of rules that a run shows, if there are any."""
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
    """Assert the statuses that a recipient's calls went through, calls parted by `|`.

    `SCHEDULED QUEUED INITIATED NO_ANSWER | SCHEDULED QUEUED INITIATED COMPLETED`. `recipient` is a
    position from 0; `campaign` is needed where the run has several. Raises AssertionError with both
    sequences and the recipient's story, and DialsimError for a word that is no status.
    """
    __tracebackhide__ = True
    wanted = expected.replace("|", " | ").split()
    unknown = [word for word in wanted if word not in _WORDS]
    if unknown:
        statuses = ", ".join(CallStatus)
        raise DialsimError(f"{' and '.join(unknown)}: no status of a call; there are: {statuses}")
    reading = RunView(trace_of(run))
    story = tell(reading, recipient, campaign)  # raises if there is no such recipient
    life = reading.find(campaign)
    found = sequences(reading)[life.organization, life.name, recipient].split()
    if found != wanted:
        who = f"{life.full_name} recipient {recipient}"
        raise AssertionError(_difference(wanted, found, who, story))


def _found(run: RunLike) -> Iterator[Violation]:
    live = isinstance(run, Simulation)
    for organization in RunRecord(trace_of(run), live).organizations():
        for campaign in organization.campaigns:
            yield from campaigns.violations(campaign)
            yield from queue.order_violations(campaign)
        yield from queue.violations(organization)


def _difference(wanted: Sequence[str], found: Sequence[str], who: str, story: str) -> str:
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
