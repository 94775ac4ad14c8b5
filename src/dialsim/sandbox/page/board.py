"""What the page counts, kept up with a sandbox at the cost of what is new in its log.

Progress of campaigns, the slots of organizations minute by minute, and the chart of them: SVG made
of steps, and the same in words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import IN_QUEUE, SLOTS
from dialsim.engine.trace import CHANGES, ENDED
from dialsim.interface.status import CallStatus
from dialsim.results.time_use import StepFunction
from dialsim.results.timeline import Position
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.page.view import Span

_REACHED = ENDED[CallStatus.COMPLETED]
MINUTE = 60_000
KEPT = 8 * 24 * 60
"""How many minutes are kept: enough for a week and what is left of a day."""


@dataclass(frozen=True, slots=True)
class CampaignProgress:
    """How many people of a campaign stand where; the last four add up to `people`.

    `under_way` are in a call (Q1), `queued` those of the waiting whose call is in the queue.
    Nobody waits once the campaign has its final status: then they were left out.
    """

    people: int
    queued: int
    reached: int
    unreached: int
    under_way: int
    waiting: int


class Board:
    """Progress of every campaign and slot use of every organization."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._rows_read: dict[Position, int] = {}
        self._kinds: dict[Position, NDArray[np.int64]] = {}  # rows of the log by kind
        self._reached_before: dict[Position, int] = {}
        start = core.scenario.clock.start
        self._uses = [LiveSlotUse(start) for _ in core.accounts]

    def catch_up(self) -> None:
        """Take in what has happened since the last time."""
        added = len(self._core.accounts) - len(self._uses)
        self._uses += [LiveSlotUse(self._core.scenario.clock.start) for _ in range(added)]
        for account, use in zip(self._core.accounts, self._uses, strict=True):
            changed_at, gains = [np.empty(0, np.int64)], [np.empty(0, np.int8)]
            for view in account.views:
                log, position = view.campaign.log, _position(view)
                kinds = self._kinds.setdefault(position, np.zeros(len(CHANGES), dtype=np.int64))
                read = self._rows_read.get(position, 0)
                if len(log) == read:
                    continue
                self._rows_read[position] = len(log)
                rows = log.rows(read)
                kinds += np.bincount(rows.kind, minlength=len(CHANGES))
                gain = SLOTS[rows.kind]
                changed_at.append(rows.at[gain != 0])
                gains.append(gain[gain != 0])
            use.take_in(np.concatenate(changed_at), np.concatenate(gains), self._core.simulation.at)

    def progress(self, view: CampaignView) -> CampaignProgress:
        """What a campaign has come to."""
        kinds, people = self._kinds[_position(view)], view.total_recipients
        done = view.campaign.people_done - (view.campaign.block.people.count - people)
        reached = int(kinds[_REACHED])
        if kinds.any() or view.campaign.people_done:
            reached += self._before(view)
        under_way = int(kinds @ SLOTS)
        return CampaignProgress(
            people=people,
            queued=int(kinds @ IN_QUEUE),
            reached=reached,
            unreached=done - reached,
            under_way=under_way,
            waiting=people - done - under_way,
        )

    def slot_use(self, organization: int) -> LiveSlotUse:
        """The slots of an organization."""
        return self._uses[organization]

    def _before(self, view: CampaignView) -> int:
        """Who was reached before the scenario began (R3); they count once it is scheduled."""
        position = _position(view)
        if position not in self._reached_before:
            history = view.campaign.block.people.history
            self._reached_before[position] = sum(
                past.reached and view.is_listed(who) for who, past in history.items()
            )
        return self._reached_before[position]


def _position(view: CampaignView) -> Position:
    block = view.campaign.block
    return block.organization, block.position


@dataclass(frozen=True, slots=True)
class SlotColumns:
    """Slots in use in columns of equal width: `at` is the beginning of each (ms, int64).

    `peak` is the most at once (int64), `mean` the average (float64), up to now in the last one.
    """

    at: NDArray[np.int64]
    peak: NDArray[np.int64]
    mean: NDArray[np.float64]


class LiveSlotUse:
    """Keeps up with one organization's calls; `take_in` is handed each of their changes once."""

    def __init__(self, start: int) -> None:
        """`start` is the clock's first instant (ms)."""
        self.in_use = 0
        self.upto = start
        self._first = start // MINUTE  # the minute that row 0 is about
        self.used = np.zeros(1, dtype=np.int64)  # slot-milliseconds
        self._peak = np.zeros(1, dtype=np.int64)

    def take_in(self, at: NDArray[np.int64], gain: NDArray[np.int8], now: int) -> None:
        """Take in how many slots were taken (+) and freed (-) when, and that nothing else was.

        `at` (ms, any order) lies between the instant of the last time and `now`.
        """
        start = max(self.upto, (now // MINUTE - KEPT) * MINUTE)
        self._make_room(start // MINUTE, now // MINUTE)
        edges = np.arange(start // MINUTE * MINUTE + MINUTE, now, MINUTE, dtype=np.int64)
        times = np.concatenate([[start], np.maximum(at, start), edges])
        gains = np.concatenate([[self.in_use], gain, np.zeros(len(edges), dtype=np.int64)])
        order = np.argsort(times, kind="stable")
        value, since = np.cumsum(gains[order]), times[order]
        lasted = np.diff(since, append=now)
        row = since // MINUTE - self._first
        np.add.at(self.used, row, value * lasted)
        np.maximum.at(self._peak, row[lasted > 0], value[lasted > 0])
        self.in_use, self.upto = int(value[-1]), now

    def columns(self, minutes: int, count: int) -> SlotColumns:
        """The last `count` columns of so many minutes each; the last one is of now."""
        last = self.upto // MINUTE // minutes
        first = (last - count + 1) * minutes
        at = (first + np.arange(count, dtype=np.int64) * minutes) * MINUTE
        lasted = np.minimum(self.upto - at, minutes * MINUTE)
        used = self._stretch(self.used, first, minutes * count).reshape(count, minutes)
        peak = self._stretch(self._peak, first, minutes * count).reshape(count, minutes).max(axis=1)
        peak[-1] = max(peak[-1], self.in_use)
        mean = used.sum(axis=1) / np.maximum(lasted, 1)
        if not lasted[-1]:
            mean[-1] = self.in_use
        return SlotColumns(at, peak, mean)

    def _stretch(self, kept: NDArray[np.int64], first: int, count: int) -> NDArray[np.int64]:
        """The rows of `count` minutes from a minute on; 0 for what is not kept."""
        stretch = np.zeros(count, dtype=np.int64)
        rows = np.arange(first, first + count) - self._first
        known = (rows >= 0) & (rows < len(kept))
        stretch[known] = kept[rows[known]]
        return stretch

    def _make_room(self, start: int, last: int) -> None:
        """Have a row for every minute up to `last`; those long gone are given up."""
        if start - self._first > 2 * KEPT:
            keep_from = start - KEPT
            self.used = self._stretch(self.used, keep_from, KEPT)
            self._peak = self._stretch(self._peak, keep_from, KEPT)
            self._first = keep_from
        missing = last - self._first + 1 - len(self.used)
        if missing > 0:
            spare = np.zeros(missing + len(self.used) // 2, dtype=np.int64)
            self.used = np.concatenate([self.used, spare])
            self._peak = np.concatenate([self._peak, spare])


WIDTH, HEIGHT = 600, 100


@dataclass(frozen=True, slots=True)
class SlotChart:
    """The parts of the picture: `d` attributes in a box of WIDTH × HEIGHT.

    `top` is the number of slots at the upper edge, `begins`, `middle` and `ends` are instants (ms)
    of the time axis, `peak` and `mean` what the whole time shown comes to.
    """

    peak_path: str
    mean_path: str
    limit_path: str
    top: int
    begins: int
    middle: int
    ends: int
    peak: int
    mean: float

    @classmethod
    def of(cls, use: LiveSlotUse, limit: StepFunction, span: Span) -> SlotChart:
        """Draw the last stretch of virtual time."""
        columns = use.columns(span.minutes, span.columns)
        width = span.minutes * MINUTE
        allowed = limit(np.maximum(columns.at + width - 1, limit.at[0]))
        top = max(int(columns.peak.max()), int(allowed.max()), 1)
        return cls(
            peak_path=_steps(columns.peak, top, closed=True),
            mean_path=_steps(columns.mean, top, closed=True),
            limit_path=_steps(allowed, top, closed=False),
            top=top,
            begins=int(columns.at[0]),
            middle=int(columns.at[0]) + span.columns * width // 2,
            ends=int(columns.at[-1]) + width,
            peak=int(columns.peak.max()),
            mean=float(columns.mean.mean()),
        )


def _steps(values: NDArray[np.int64] | NDArray[np.float64], top: int, *, closed: bool) -> str:
    """A line that goes along each column at its height; `closed` has it stand on the ground."""
    step = WIDTH / len(values)
    heights = np.round(HEIGHT * (1 - values / top), 1)
    turns = np.flatnonzero(np.diff(heights)) + 1
    path = [f"M0 {HEIGHT}V{heights[0]:g}" if closed else f"M0 {heights[0]:g}"]
    path += [f"H{turn * step:g}V{heights[turn]:g}" for turn in turns.tolist()]
    path.append(f"H{WIDTH}V{HEIGHT}Z" if closed else f"H{WIDTH}")
    return "".join(path)
