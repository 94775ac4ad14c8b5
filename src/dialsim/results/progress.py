"""The progress of calling: when each person was reached, and when done with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import NEVER
from dialsim.results.people import LOST, PERSON_STATES, PersonState, listed
from dialsim.results.run_view import RunView
from dialsim.results.timeline import CampaignTimeline

_DONE_BY_CALL = [PERSON_STATES.index(s) for s in (PersonState.REACHED, PersonState.EXHAUSTED)]


@dataclass(frozen=True, slots=True)
class ProgressCurve:
    """Sorted instants (ms) at which people were reached, and were done with.

    Someone reached is done with when the conversation ends, someone not reached when the last
    attempt ends or the campaign does. Who was reached before the scenario begins counts from the
    campaign's start. `people` are all on the lists.
    """

    people: int
    reached: NDArray[np.int64]
    done: NDArray[np.int64]

    @classmethod
    def of(cls, reading: RunView, lives: Iterable[CampaignTimeline]) -> ProgressCurve:
        """That of some campaigns together."""
        parts = [_instants(reading, life) for life in lives]
        return cls(
            people=sum(people for people, _, _ in parts),
            reached=_sorted([reached for _, reached, _ in parts]),
            done=_sorted([done for _, _, done in parts]),
        )

    def marks(self, count: int) -> tuple[int, ...]:
        """When 1/count, 2/count, … of the people had been reached; shares never reached are not."""
        ranks = [-(-share * self.people // count) for share in range(1, count + 1)]
        return tuple(int(self.reached[rank - 1]) for rank in ranks if 0 < rank <= len(self.reached))


def _instants(
    reading: RunView, life: CampaignTimeline
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """How many people a campaign has, when each was reached, and done with, if they were."""
    calls, states = reading.calls[life.position], reading.states[life.position]
    start = life.end if life.start is None else life.start
    before = (states == _DONE_BY_CALL[0]) & calls.past_reached
    answered = calls.started_at[calls.started_at != NEVER]
    by_call = np.isin(states, _DONE_BY_CALL)
    # of a person without a call here, the history alone has settled it
    ended = calls.of_newest(calls.ended_at, start)[by_call]
    over = np.count_nonzero(np.isin(states, LOST))
    return (
        int(np.count_nonzero(listed(states))),
        np.concatenate([np.full(np.count_nonzero(before), start), answered]),
        np.concatenate([ended[ended != NEVER], np.full(over, life.end)]),
    )


def _sorted(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
