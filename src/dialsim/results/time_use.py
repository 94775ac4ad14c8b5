"""Where a campaign's time went, from its start to its finish, cause by cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.windows import Windows
from dialsim.interface.windows import DEFAULT_TIME_WINDOWS
from dialsim.results.campaign_life import CampaignLife
from dialsim.results.ledger import NEVER, TIMES_OUT, WAITING, Ledger
from dialsim.results.occupancy import counted
from dialsim.results.person_state import PERSON_STATES, PersonState
from dialsim.results.spans import Spans
from dialsim.results.step_function import StepFunction, distinct


@dataclass(frozen=True, slots=True)
class SlotUse:
    """An organization's slots: calls under way, calls in the queue, and the limit, over time."""

    busy: StepFunction
    queued: StepFunction
    allowed: StepFunction


@dataclass(frozen=True, slots=True)
class TimeUse:
    """The time from a campaign's start to its finish (or the end of the run), in ms, by cause.

    While calls of the campaign are due and wait to be dialled:

    - `pauses`: it was paused;
    - `windows`: no window was open;
    - `slots`: all of the organization's slots were busy;
    - `pacing`: a slot was free: callsPerSecond or releaseInterval kept calls from being dialled.

    While no call waits:

    - `retry_interval`: somebody's next attempt was not due yet;
    - `calls`: the last calls were under way.

    `nights` is closed time outside the service's default hours through which calls wait that had
    been waiting at the closing already: what made them wait then is the cause of such a night, so
    it is left out of `total` and of every share. `slot_spans` are the spans of `slots`,
    `pacing_in_queue` is the part of `pacing` in which the organization's queue was not empty, and
    `mostly_after_timeouts` says that most calls that were followed by another had timed out in the
    queue (Q5).
    """

    pauses: int
    windows: int
    slots: int
    pacing: int
    retry_interval: int
    calls: int
    nights: int
    pacing_in_queue: int
    mostly_after_timeouts: bool
    slot_spans: Spans

    @property
    def total(self) -> int:
        """The time that the shares refer to: all but `nights`."""
        return (
            self.pauses + self.windows + self.slots + self.pacing + self.retry_interval + self.calls
        )

    def share(self, cause: str) -> float:
        """The share of one cause in the total; 0 where no time passed."""
        return int(getattr(self, cause)) / self.total if self.total else 0.0


def time_use(
    ledger: Ledger, life: CampaignLife, states: NDArray[np.int8], slots: SlotUse
) -> TimeUse:
    """Divide the time of a scheduled campaign; `states` are those of its recipients."""
    start = life.end if life.start is None else min(life.start, life.end)
    waits = counted([ledger], WAITING)
    parts = {
        "waiting": waits.positive(),
        "open": StepFunction.of_spans(life.open),
        "paused": StepFunction.of_spans(life.paused),
        "free": (slots.allowed - slots.busy).positive(),
        "queued": slots.queued,
        "retrying": _retries_ahead(ledger, life, states).positive(),
        "ordinary": StepFunction.of_spans(_DEFAULT.open_spans(start, life.end)),
    }
    edges = _edges(start, life.end, parts.values())
    on = {name: part(edges[:-1]) > 0 for name, part in parts.items()}
    waits_on, is_open = on["waiting"] & ~on["paused"], on["open"]
    night = ~is_open & ~on["ordinary"] & _waited_at_closing(edges[:-1], life.open, waits)
    full = waits_on & is_open & ~on["free"]
    paced = waits_on & is_open & on["free"]

    def ms(chosen: NDArray[np.bool_]) -> int:
        return int(np.diff(edges)[chosen].sum())

    return TimeUse(
        pauses=ms(on["waiting"] & on["paused"]),
        windows=ms(waits_on & ~is_open & ~night),
        slots=ms(full),
        pacing=ms(paced),
        retry_interval=ms(~on["waiting"] & on["retrying"]),
        calls=ms(~on["waiting"] & ~on["retrying"]),
        nights=ms(waits_on & night),
        pacing_in_queue=ms(paced & on["queued"]),
        mostly_after_timeouts=_mostly_after_timeouts(ledger),
        slot_spans=np.stack([edges[:-1][full], edges[1:][full]], axis=1),
    )


_DEFAULT = Windows.of(DEFAULT_TIME_WINDOWS)


def _edges(start: int, end: int, parts: Iterable[StepFunction]) -> NDArray[np.int64]:
    """All instants from `start` to `end` at which one of the parts changes, both included."""
    inside = [part.at[(part.at > start) & (part.at < end)] for part in parts]
    return distinct(np.sort(np.concatenate([np.array([start, end], dtype=np.int64), *inside])))


def _waited_at_closing(
    at: NDArray[np.int64], open_spans: Spans, waits: StepFunction
) -> NDArray[np.bool_]:
    """Whether calls waited when the window last closed before each instant."""
    closings = open_spans[:, 1]
    last = np.searchsorted(closings, at, side="right") - 1
    # index -1, no closing so far, finds the False at the end
    waited: NDArray[np.bool_] = np.append(waits(closings) > 0, np.bool_())[last]
    return waited


def _mostly_after_timeouts(ledger: Ledger) -> bool:
    followed = ledger.last_kind[~ledger.newest]
    return 2 * int(np.count_nonzero(TIMES_OUT[followed])) > len(followed)


_SETTLED = [
    PERSON_STATES.index(state)
    for state in (PersonState.REACHED, PersonState.EXHAUSTED, PersonState.REMOVED)
]


def _retries_ahead(ledger: Ledger, life: CampaignLife, states: NDArray[np.int8]) -> StepFunction:
    """How many people are between a call and the retry that follows it (R2), over time.

    Also those whose retry the end of the campaign, or of the run, forestalled. The call may be one
    of the history: such people are counted from the campaign's start on.
    """
    newest = ledger.newest
    since = ledger.ended_at[:-1][~newest[:-1]]
    until = ledger.created_at[1:][~newest[:-1]]
    to_be_called = ~np.isin(states, _SETTLED)
    until_end = life.request.end_date_time if life.request else None
    end = life.end if until_end is None else until_end
    in_time = ledger.ended_at < end
    dropped = newest & (ledger.ended_at != NEVER) & to_be_called[ledger.recipient] & in_time
    start = life.end if life.start is None else life.start
    resumed = ledger.created_at[(ledger.call == 1) & (ledger.past_status >= 0)[ledger.recipient]]
    uncalled = (ledger.past_status >= 0) & (ledger.first[1:] == ledger.first[:-1])
    waiting = np.full(np.count_nonzero(uncalled & to_be_called & (start < end)), start)
    since = np.concatenate([since, ledger.ended_at[dropped], np.minimum(resumed, start), waiting])
    until = np.concatenate([until, resumed])
    at = np.concatenate([since, until])
    change = np.concatenate([np.ones(len(since), np.int8), np.full(len(until), -1, np.int8)])
    order = np.argsort(at, kind="stable")
    return StepFunction.of_changes(at[order], change[order])
