"""Holding the status sequence of a recipient to what it should be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from dialsim.interface.errors import DialsimError
from dialsim.interface.status import CallStatus
from dialsim.results.run_view import RunView
from dialsim.results.story import sequences, tell
from dialsim.testing.bench import Traced, trace_of

_WORDS = {"|", *CallStatus}


def assert_sequence(
    run: Traced, recipient: int, expected: str, campaign: str | None = None
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
