"""The state in which people with a history enter a campaign (C1), for both engines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.rules import ENDINGS, LOST_IN_QUEUE, REACHED, calls_again, retry_due

if TYPE_CHECKING:
    from dialsim.engine.world import CampaignBlock, World
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.campaign import Past

_Integers = NDArray[np.int64]
_NO_NUMBER = -1


@dataclass(frozen=True, slots=True)
class Continuation:
    """State of a campaign when its schedule request is accepted (C1).

    `first_due` is the due instant (ms) of first calls, and the origin of release instants (Q2).
    `recipients` are the people with a history, without those removed as duplicates. They have
    `attempts` (P5) and last saw the caller ID at the index `caller_ids` of `World.numbers`, -1 if
    it is not known. Of them `called_again` have a next call; the instant `due` may be in the past,
    and is ascending.
    """

    first_due: int
    recipients: _Integers
    attempts: _Integers
    caller_ids: _Integers
    called_again: _Integers
    due: _Integers

    @property
    def settled(self) -> int:
        """Number of people who were reached, or have no attempt left, by their history."""
        return len(self.recipients) - len(self.called_again)

    @classmethod
    def of(
        cls,
        world: World,
        block: CampaignBlock,
        request: ScheduleRequest,
        start_at: int,
        removed: Collection[int],
    ) -> Continuation:
        """Return the state of a campaign whose effective start is `start_at`."""
        gone, people = set(removed), list[tuple[int, int, int]]()
        next_calls = list[tuple[int, int]]()
        for recipient, past in block.people.history.items():
            if recipient in gone:
                continue
            number = past.last_caller_id
            shown = _NO_NUMBER if number is None else world.number(number)
            people.append((recipient, past.call_attempt, shown))
            ending = _ending(past)
            if calls_again(ending, past.call_attempt, request.max_attempts):
                due = retry_due(past.last_ended_at, request.retry_interval, ending)
                next_calls.append((due, recipient))
        recipients, attempts, caller_ids = _columns(people, 3)
        due, called_again = _columns(sorted(next_calls), 2)
        first_due = request.start_date_time if block.continues else start_at
        return cls(first_due, recipients, attempts, caller_ids, called_again, due)


def _ending(past: Past) -> int:
    """Return how the last call of a history ended, as an ending of `rules`."""
    if past.reached:
        return REACHED
    status = past.latest_call_status
    return ENDINGS.index(status) if status in ENDINGS else LOST_IN_QUEUE


def _columns(rows: Sequence[tuple[int, ...]], count: int) -> _Integers:
    return np.array(rows, dtype=np.int64).reshape(-1, count).T
