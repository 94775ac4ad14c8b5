"""Time of a campaign from its start to its finish, divided by cause.

The calculation uses step functions of time: numbers of calls under way, waiting, or allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import (
    IN_QUEUE,
    NO_CALL,
    RETRIES,
    TIMES_OUT,
    WAITING,
    Calls,
    holds,
    rows_of,
)
from dialsim.engine.rules import Windows
from dialsim.engine.trace import DIALLED, CallRows, Trace
from dialsim.interface.schedule import DEFAULT_TIME_WINDOWS
from dialsim.results.campaigns import (
    PERSON_STATES,
    CampaignTimeline,
    PersonState,
    Spans,
    length,
    union,
)


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct values of a sorted column."""
    # np.unique hashes, which takes ten times as long.
    different: NDArray[np.int64] = values[_steps(values, values[:1] - 1)]
    return different


def _steps(values: NDArray[np.integer], before: NDArray[np.int64] | int = 0) -> NDArray[np.intp]:
    """Return the indices at which a column differs from the value before; `before` precedes the
    first.
    """
    different = np.empty(len(values), dtype=bool)
    different[:1] = values[:1] != before
    np.not_equal(values[1:], values[:-1], out=different[1:])
    # Taking by index is ten times as fast as by mask.
    return np.flatnonzero(different)


class StepFunction:
    """Integer function of time: 0 before `at[0]`, `value[k]` from `at[k]` up to `at[k + 1]`.

    `at` is strictly increasing (ms); `value` is the value after all changes of the instant. Both
    are int64 of equal length.
    """

    __slots__ = ("at", "value")

    def __init__(self, at: NDArray[np.int64], value: NDArray[np.int64]) -> None:
        self.at = at
        self.value = value

    @classmethod
    def of_changes(cls, at: NDArray[np.int64], change: NDArray[np.integer]) -> StepFunction:
        """Return the running sum of changes; `at` is sorted and may repeat."""
        last = np.ones(len(at), dtype=bool)  # last change of its instant
        np.not_equal(at[1:], at[:-1], out=last[:-1])
        ends = np.flatnonzero(last)
        narrow = change.dtype == np.int8  # there are fewer than 2**31 calls, so the sums fit
        sums: NDArray[np.integer] = np.cumsum(change, dtype=np.int32 if narrow else np.int64)
        value = sums.take(ends)
        changes = _steps(value)
        return cls(at.take(ends.take(changes)), value.take(changes).astype(np.int64))

    @classmethod
    def of_moves(cls, up: NDArray[np.int64], down: NDArray[np.int64]) -> StepFunction:
        """Return the function that rises by 1 at `up` and falls by 1 at `down`, both in any
        order.
        """
        # The direction is the last bit, because sorting integers takes a fraction of an argsort. A
        # stable sort merges columns that are already sorted, like those of a log, in a tenth of the
        # time.
        moves = np.concatenate([up, down])
        moves <<= 1
        moves[: len(up)] |= 1
        moves.sort(kind="stable")
        change = (moves & 1).astype(np.int8) * np.int8(2) - np.int8(1)
        moves >>= 1
        return cls.of_changes(moves, change)

    @classmethod
    def of_spans(cls, spans: Spans) -> StepFunction:
        """Return the function that is 1 inside the spans (disjoint, not touching), else 0."""
        return cls(spans.ravel(), np.tile(np.array([1, 0], dtype=np.int64), len(spans)))

    @classmethod
    def total(cls, parts: Iterable[StepFunction]) -> StepFunction:
        """Return the sum of step functions."""
        # An organization may have no calls at all.
        none = np.empty(0, dtype=np.int64)
        functions = [part for part in parts if len(part.at)] or [cls(none, none)]
        if len(functions) == 1:
            return functions[0]
        at = np.concatenate([part.at for part in functions])
        change = np.concatenate([np.diff(part.value, prepend=0) for part in functions])
        order = np.argsort(at, kind="stable")
        return cls.of_changes(at[order], change[order])

    def __call__(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values at instants."""
        # Piece -1, before the first change, selects the appended 0.
        values: NDArray[np.int64] = np.append(self.value, 0)[self._piece(at)]
        return values

    def is_positive(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for each instant at which the value is above 0."""
        positive: NDArray[np.bool_] = np.append(self.value > 0, np.bool_())[self._piece(at)]
        return positive

    def __sub__(self, other: StepFunction) -> StepFunction:
        return StepFunction.total([self, StepFunction(other.at, -other.value)])

    def positive(self) -> StepFunction:
        """Return the function that is 1 where the value is above 0, else 0."""
        return StepFunction(self.at, (self.value > 0).astype(np.int64))._compact()

    def integral(self, spans: Spans) -> int:
        """Return the integral over the spans, in ms × value."""
        area = self._area(spans.ravel())
        return int((area[1::2] - area[0::2]).sum())

    def means(self, edges: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the mean value between each instant and the next."""
        means: NDArray[np.float64] = np.diff(self._area(edges)) / np.diff(edges)
        return means

    def _area(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the integral from the beginning to each instant, in ms × value."""
        if not len(self.at):
            return np.zeros(len(at), dtype=np.int64)
        upto = np.append(0, np.cumsum(self.value[:-1] * np.diff(self.at)))
        # The function is 0 before its first change, so that nothing is lost.
        edges = np.maximum(at, self.at[0])
        piece = self._piece(edges)
        area: NDArray[np.int64] = upto[piece] + self.value[piece] * (edges - self.at[piece])
        return area

    @property
    def peak(self) -> int:
        """Largest value; at least 0."""
        return int(self.value.max(initial=0))

    def _piece(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the piece that contains each instant; -1 before the first."""
        pieces: NDArray[np.int64] = np.searchsorted(self.at, at, side="right")
        pieces -= 1
        return pieces

    def _compact(self) -> StepFunction:
        changes = _steps(self.value)
        if len(changes) == len(self.at):
            return self
        return StepFunction(self.at[changes], self.value[changes])


def counted(campaigns: Iterable[Calls], gain: NDArray[np.int8]) -> StepFunction:
    """Return the number of calls of these campaigns in certain statuses, over time.

    `gain` is the change of that number by kind of change (`SLOTS`, `WAITING`, `IN_QUEUE`).
    """
    parts = []
    for calls in campaigns:
        kind = calls.rows.kind
        rises = holds(kind, gain > 0)
        chosen = np.flatnonzero(rises | holds(kind, gain < 0))
        # Every kind changes the number by 1 at most.
        change = rises.take(chosen).view(np.int8) * np.int8(2) - np.int8(1)
        at = calls.rows.at.take(chosen)
        del rises, chosen  # as large as all later arrays together
        parts.append(StepFunction.of_changes(at, change))
    return StepFunction.total(parts)


def limit(trace: Trace, organization: int) -> StepFunction:
    """Return maxConcurrentCalls of an organization over time (Q1)."""
    rows = trace.limits_of(organization)
    at = np.array([row.at for row in rows], dtype=np.int64)
    limits = np.array([row.limit for row in rows], dtype=np.int64)
    return StepFunction.of_changes(at, np.diff(limits, prepend=0))


def paced(logs: Iterable[CallRows], gap: int) -> StepFunction:
    """Return the function that is 1 for `gap` ms after each dial of an organization, else 0
    (Q4).
    """
    none = np.empty(0, dtype=np.int64)
    dials = np.concatenate([none, *(rows.at[rows.kind == DIALLED] for rows in logs if gap)])
    return StepFunction.of_moves(dials, dials + gap)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Use of lines by some calls, inside the open time of their campaigns.

    `open` is that time; `used_ms` and `capacity_ms` are line-milliseconds used and allowed in it.
    `busy` is the number of calls under way over time.
    """

    open: Spans
    used_ms: int
    capacity_ms: int
    busy: StepFunction

    @classmethod
    def of(cls, busy: StepFunction, allowed: StepFunction, open_spans: Spans) -> Occupancy:
        """Measure the use of an organization's lines, in total or by one campaign."""
        return cls(
            open=open_spans,
            used_ms=busy.integral(open_spans),
            capacity_ms=allowed.integral(open_spans),
            busy=busy,
        )

    @classmethod
    def total(cls, parts: Iterable[Occupancy]) -> Occupancy:
        """Add the use of several organizations."""
        every = list(parts)
        return cls(
            open=union(part.open for part in every),
            used_ms=sum(part.used_ms for part in every),
            capacity_ms=sum(part.capacity_ms for part in every),
            busy=StepFunction.total(part.busy for part in every),
        )

    @property
    def mean(self) -> float | None:
        """Mean number of lines in use over the open time; None without open time."""
        open_ms = length(self.open)
        return self.used_ms / open_ms if open_ms else None

    @property
    def share(self) -> float | None:
        """Line time used, divided by the line time allowed; None if nothing was allowed."""
        return self.used_ms / self.capacity_ms if self.capacity_ms else None


@dataclass(frozen=True)
class LineUse:
    """Lines of an organization: calls under way, calls in the queue, and the limit, over time.

    `paced` is 1 while callsPerSecond prevents the next dial (Q4), else 0. `calls` are the calls of
    its campaigns.
    """

    busy: StepFunction
    allowed: StepFunction
    paced: StepFunction
    calls: tuple[Calls, ...]

    @cached_property
    def queued(self) -> StepFunction:
        """Number of calls in the queue over time."""
        # On first use only, because most runs of a plan do not need it.
        return counted(self.calls, IN_QUEUE)


@dataclass(frozen=True, slots=True)
class TimeUse:
    """Time from a campaign's start to its finish (or the end of the run), in ms, by cause.

    While calls of the campaign are due and wait to be dialled:
    - `pauses`: it was paused;
    - `windows`: no window was open;
    - `lines`: all lines of the organization were busy;
    - `pacing`: a line was free, but callsPerSecond or releaseInterval prevented dials.

    While no call waits:
    - `queue`: of the people whose next call was not due yet, most had timed out in the queue (Q5);
    - `retry_interval`: a next call was not due yet, for most people after an attempt;
    - `calls`: the last calls were under way.

    `nights` is closed time outside the service's default hours during which calls wait that were
    already waiting at the closing. The cause of their wait is also the cause of such a night, so
    nights are left out of `total` and of all shares. `backlog` is the part of `windows` during
    which calls wait that were already waiting at the closing. `line_spans` are the spans of
    `lines`; `pacing_in_queue` is the part of `pacing` with calls in the organization's queue.

    Over the time of `lines` and `pacing` together, `lines_used` is the share of the allowed lines
    that were busy, and `pace_used` the share of the dials allowed by callsPerSecond that were made.
    The rest of one is an upper limit of the gain from lifting only the other.
    """

    pauses: int
    windows: int
    lines: int
    pacing: int
    queue: int
    retry_interval: int
    calls: int
    nights: int
    backlog: int
    pacing_in_queue: int
    line_spans: Spans
    lines_used: float
    pace_used: float

    @property
    def total(self) -> int:
        """Time of all causes except `nights`; shares are parts of it."""
        return self.pauses + self.windows + self.calling

    @property
    def calling(self) -> int:
        """Time in which calls could have been made: neither paused nor closed."""
        return self.lines + self.pacing + self.queue + self.retry_interval + self.calls

    def share(self, cause: str) -> float:
        """Return the share of one cause in the total; 0 without time."""
        return int(getattr(self, cause)) / self.total if self.total else 0.0


def time_use(
    calls: Calls, life: CampaignTimeline, states: NDArray[np.int8], use: LineUse
) -> TimeUse:
    """Divide the time of a scheduled campaign by cause; `states` has a state per recipient."""
    start = life.end if life.start is None else min(life.start, life.end)
    # The largest step functions are reduced to signs one by one, to save memory.
    retrying, timed_out = _retries_ahead(calls, life, states)
    churning = (timed_out - (retrying - timed_out)).positive()
    retrying = retrying.positive()
    waits = counted([calls], WAITING)
    parts = {
        "waiting": waits.positive(),
        "open": StepFunction.of_spans(life.open),
        "paused": StepFunction.of_spans(life.paused),
        "free": (use.allowed - use.busy).positive(),
        "retrying": retrying,
        "churning": churning,
        "ordinary": StepFunction.of_spans(_DEFAULT.open_spans(start, life.end)),
    }
    edges = _edges(start, life.end, parts.values())
    on = {name: part.is_positive(edges[:-1]) for name, part in parts.items()}
    lengths = np.diff(edges)
    waits_on, is_open = on["waiting"] & ~on["paused"], on["open"]
    waited = _waited_at_closing(edges[:-1], life.open, waits)
    # Closed time that the default windows close as well is night, which no schedule is to blame
    # for.
    night = ~is_open & ~on["ordinary"] & waited
    closed = waits_on & ~is_open & ~night
    full = waits_on & is_open & ~on["free"]
    paced = waits_on & is_open & on["free"]
    retrying_on = ~on["waiting"] & on["retrying"]

    def ms(chosen: NDArray[np.bool_]) -> int:
        return int(lengths[chosen].sum())

    def spans(chosen: NDArray[np.bool_]) -> Spans:
        return np.stack([edges[:-1][chosen], edges[1:][chosen]], axis=1)

    held = spans(full | paced)
    in_queue = use.queued.positive().integral(spans(paced)) if paced.any() else 0
    return TimeUse(
        pauses=ms(on["waiting"] & on["paused"]),
        windows=ms(closed),
        lines=ms(full),
        pacing=ms(paced),
        queue=ms(retrying_on & on["churning"]),
        retry_interval=ms(retrying_on & ~on["churning"]),
        calls=ms(~on["waiting"] & ~on["retrying"]),
        nights=ms(waits_on & night),
        backlog=ms(closed & waited),
        pacing_in_queue=in_queue,
        line_spans=spans(full),
        lines_used=_share(use.busy.integral(held), use.allowed.integral(held)),
        pace_used=_share(use.paced.integral(held), length(held)),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


_DEFAULT = Windows.of(DEFAULT_TIME_WINDOWS)


def _edges(start: int, end: int, parts: Iterable[StepFunction]) -> NDArray[np.int64]:
    """Return all instants from `start` to `end`, both included, at which one of the parts
    changes.
    """
    inside = (part.at[(part.at > start) & (part.at < end)] for part in parts)
    edges = np.concatenate([np.array([start, end], dtype=np.int64), *inside])
    edges.sort()  # in place: these columns are the largest of all
    return distinct(edges)


def _waited_at_closing(
    at: NDArray[np.int64], open_spans: Spans, waits: StepFunction
) -> NDArray[np.bool_]:
    """Return, for each instant, True if calls waited at the last closing before it."""
    closings = open_spans[:, 1]
    last = np.searchsorted(closings, at, side="right") - 1
    # Index -1, for no closing so far, selects the False at the end.
    waited: NDArray[np.bool_] = np.append(waits(closings) > 0, np.bool_())[last]
    return waited


_SETTLED = (PersonState.REACHED, PersonState.EXHAUSTED, PersonState.REMOVED)
_TO_BE_CALLED = np.array([state not in _SETTLED for state in PERSON_STATES])
"""Per state: True if people in this state were still to be called."""


def _retries_ahead(
    calls: Calls, life: CampaignTimeline, states: NDArray[np.int8]
) -> tuple[StepFunction, StepFunction]:
    """Return the number of people between a call and its retry (R2) over time: after any call, and
    after a queue timeout.

    People whose retry was prevented by the end of the campaign or run are included. The call may
    belong to the history; it then counts from the campaign's start.
    """
    to_be_called = _TO_BE_CALLED.take(states)
    until_end = life.request.end_date_time if life.request else None
    end = life.end if until_end is None else until_end
    start = life.end if life.start is None else life.start
    is_next = calls.call > 1
    # Calls are sorted by recipient. All but the newest of a recipient have a retry in the log, and
    # count whatever the final state of the person.
    is_followed = np.append(is_next[1:], np.zeros(len(is_next[:1]), dtype=bool))
    newest = calls.newest.take(np.flatnonzero(to_be_called & (calls.newest != NO_CALL)))
    is_followed[newest] = calls.ended_at.take(newest) < end

    def created(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        # Most runs have neither histories nor queue timeouts, so this column need not be computed.
        return calls.created_at[chosen] if chosen.any() else np.empty(0, dtype=np.int64)

    # In the order of the log, so that their instants are sorted.
    left = calls.ended(0)
    since = calls.ended_at.take(left.take(np.flatnonzero(is_followed.take(left))))
    has_past = calls.past_status >= 0
    resumed = created(~is_next & has_past.take(calls.recipient)) if has_past.any() else since[:0]
    uncalled = has_past & (calls.newest == NO_CALL)
    waiting = np.full(np.count_nonzero(uncalled & to_be_called & (start < end)), start)
    # The first call after a history is a retry as well.
    retried = calls.rows.at.take(rows_of(calls.rows.kind, RETRIES))
    every = StepFunction.of_moves(
        np.concatenate([since, np.minimum(resumed, start), waiting]), retried
    )
    timed_out = TIMES_OUT.take(calls.last_kind)
    churning = StepFunction.of_moves(
        calls.ended_at[timed_out & is_followed], created(is_next & np.roll(timed_out, 1))
    )
    return every, churning
