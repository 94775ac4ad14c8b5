"""Calls by the hour (or the day) in which they were dialled, and by how they ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dialsim.engine.trace import ENDED
from dialsim.engine.windows import DAY, HOUR, THAI_OFFSET
from dialsim.interface.status import CallStatus
from dialsim.results.ledger import NEVER, TIMES_OUT, Ledger
from dialsim.results.plots.grain import edges
from dialsim.results.plots.ink import GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from dialsim.results.plots.picture import canvas, count_axis, dress, key
from dialsim.results.plots.scope import Scope
from dialsim.results.plots.thai_axis import days, time_axis
from dialsim.results.thai_time import duration_text

_LEAST_HOURS, _MOST_HOURS = 6, 10 * 24

ENDS = ("answered", "no answer", "busy", "failed", "other", "queue timeout")
_COLORS = (GREEN, SKY, ORANGE, VERMILION, GREY, PURPLE)
_STATUSES = (CallStatus.COMPLETED, CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Counts of calls by time and end.

    `at` are the starts of the pieces of time (ms, int64) and `width` their length: an hour, a Thai
    day in runs of many, and less than an hour in runs of few. `count[k]` belongs to `ENDS[k]`. A
    call stands where it was dialled, one that timed out in the queue where it did; `other` are
    dialled calls that were under way at the end, or were dropped.
    """

    at: NDArray[np.int64]
    width: int
    count: NDArray[np.int64]

    @classmethod
    def of(cls, scope: Scope) -> Outcomes:
        """Those of the campaigns in a scope."""
        width = _width(scope.end - scope.start)
        first = (scope.start + THAI_OFFSET) // width
        pieces = (scope.end + THAI_OFFSET) // width - first + 1
        count = np.zeros((len(ENDS), pieces), dtype=np.int64)
        for ledger in scope.ledgers:
            instants, ends = _calls(ledger)
            piece = (instants + THAI_OFFSET) // width - first
            # a paused campaign's calls may end after it was cancelled, so a piece may be missing
            inside = (piece >= 0) & (piece < pieces)
            np.add.at(count, (ends[inside], piece[inside]), 1)
        at = (first + np.arange(pieces)) * width - THAI_OFFSET
        return cls(at, width, count)


def _width(length: int) -> int:
    if length > _MOST_HOURS * HOUR:
        return DAY
    if length >= _LEAST_HOURS * HOUR:
        return HOUR
    cut = edges(0, length, 36)
    return int(cut[1] - cut[0])


def _calls(ledger: Ledger) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When each call is counted, and as what; one that was never dialled nor timed out is not."""
    timed_out = TIMES_OUT[ledger.last_kind]
    known = [ledger.last_kind == ENDED[status] for status in _STATUSES]
    ends = np.select([*known, timed_out], [0, 1, 2, 3, 5], default=4)
    at = np.where(timed_out, ledger.ended_at, ledger.initiated_at)
    return at[at != NEVER], ends[at != NEVER]


def draw_outcomes(scope: Scope, ax: Axes | None) -> Axes:
    """Stacked bars of calls by hour and end."""
    ax = canvas(ax)
    outcomes = Outcomes.of(scope)
    gap = outcomes.width // 12
    bottom = np.zeros(len(outcomes.at))
    for end, color, count in zip(ENDS, _COLORS, outcomes.count, strict=True):
        if not count.any() and end not in ("answered", "no answer"):
            continue
        ax.bar(
            days(outcomes.at + gap // 2),
            count,
            float(days(outcomes.width - gap)),
            bottom,
            align="edge",
            color=color,
            label=end,
        )
        bottom = bottom + count
    time = time_axis(ax, int(outcomes.at[0]), int(outcomes.at[-1]) + outcomes.width)
    count_axis(ax)
    unit = {HOUR: "hour", DAY: "day"}.get(outcomes.width, duration_text(outcomes.width))
    dress(ax, scope.title(f"Calls by {unit} and end"), time, f"calls per {unit}")
    key(ax)
    return ax
