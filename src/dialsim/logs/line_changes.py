"""Changes of the number of lines in the middle of a log, which no engine setting explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialsim.engine.rules import ENDINGS
from dialsim.interface.instants import short_text
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.record import NO_ENDING, Integers, RecordedCalls
from dialsim.logs.replay import expected_hold_time

PARTS = 12  # parts of a log, with equally many calls, whose lines in use are compared
FEWEST = 20  # calls that a part needs
_SAME, _OTHER = 0.85, 0.7  # shares of the lines in use, on either side of a change


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines in use of an organization before and after an instant (ms), while people waited."""

    at: int
    organization: str
    before: int
    after: int

    def __str__(self) -> str:
        return (
            f"From about {short_text(self.at)} Thai time on {self.after} lines of "
            f"{self.organization} are in use, before {self.before}: write the change into the "
            "scenario's timeline (setConcurrency)."
        )


def line_changes(record: RecordedCalls) -> list[LineChange]:
    """Find organizations with a constant number of lines of which the log uses another one later.

    Lines are counted at the ends of calls while people wait for their first call: then all lines
    are in use, however long calls take. The instants of dials are estimated where the log has none.
    """
    found = []
    for position, owner in enumerate(record.scenario.organizations):
        actions = (*owner.timeline, *owner.compiled_actions)
        if not any(action.action in {"setConcurrency", "pause"} for action in actions):
            change = _of_organization(record, position)
            found += [] if change is None else [change]
    return found


def _of_organization(record: RecordedCalls, position: int) -> LineChange | None:
    calls, owner = record.calls, record.scenario.organizations[position]
    places = [index for index, one in enumerate(record.blocks) if one.organization == position]
    begins = _dials(record)
    rows = np.flatnonzero(
        np.isin(calls.campaign, places) & (begins != NO_INSTANT) & (calls.ended != NO_INSTANT)
    )
    begin, end = np.sort(begins[rows]), np.sort(calls.ended[rows])
    first = rows[calls.attempt[rows] == 1]
    waits = int(
        np.sort(begins[first])[-owner.max_concurrent_calls :].min(initial=end.max(initial=0))
    )
    end = end[end < waits]
    if len(end) < PARTS * FEWEST:
        return None
    # A call that ends on an instant is counted
    busy = np.searchsorted(begin, end, side="left") - np.arange(len(end))
    used = np.array([np.mean(part) for part in np.array_split(busy, PARTS)])
    starts = [int(part[0]) for part in np.array_split(end, PARTS)]
    for index in range(2, PARTS - 1):
        before, after = used[:index], used[index + 1 :]  # the change may be within a part
        few, many = sorted((before, after), key=np.mean)
        if few.max() <= _OTHER * many.min() and many.min() >= _SAME * many.max():
            # Estimated dials are all early or all late: the side that has the scenario's lines
            # shows by how much
            lines, means = owner.max_concurrent_calls, np.array([before.mean(), after.mean()])
            near = means[np.argmin(np.abs(np.log(means / lines)))]
            usual = lines / near if abs(near - lines) < 1 else 1.0
            counts = np.round(means * usual).astype(int).tolist()
            return LineChange(starts[index], owner.name, *counts)
    return None


def _dials(record: RecordedCalls) -> Integers:
    """Return the instants of dials, estimated by the scenario's setup and ring times if unknown."""
    if record.has_dials:
        return record.calls.dialled
    calls = record.calls
    held = np.array([expected_hold_time(record, ending).typical for ending in range(len(ENDINGS))])
    known = (calls.ending != NO_ENDING) & (calls.over != NO_INSTANT)
    return np.where(known, calls.over - held[calls.ending], NO_INSTANT)
