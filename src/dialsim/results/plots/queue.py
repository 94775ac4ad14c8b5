"""The queue: how many calls wait in it, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dialsim.results.plots.grain import edges, steps
from dialsim.results.plots.ink import BLUE, ORANGE, TEXT, families
from dialsim.results.plots.picture import canvas, count_axis, dress, key
from dialsim.results.plots.scope import Scope
from dialsim.results.plots.thai_axis import days, shade, time_axis
from dialsim.results.tally import queue_waits

_PIECES = 60


@dataclass(frozen=True, slots=True)
class QueueWaits:
    """Waits in the queue by when they ended: `at` are the middles of pieces of time (ms).

    `median_s` and `p95_s` are in seconds; pieces in which no wait ended are left out.
    """

    at: NDArray[np.int64]
    median_s: NDArray[np.float64]
    p95_s: NDArray[np.float64]

    @classmethod
    def of(cls, scope: Scope) -> QueueWaits:
        """Those of the campaigns in a scope; as in the summary, broken-off waits don't count."""
        parts = [queue_waits(ledger) for ledger in scope.ledgers]
        at = np.concatenate([np.empty(0, np.int64), *(left for left, _ in parts)])
        waits = np.concatenate([np.empty(0, np.int64), *(wait for _, wait in parts)])
        cut = edges(scope.start, scope.end, _PIECES)
        order = np.argsort(at, kind="stable")
        groups = np.split(waits[order], np.searchsorted(at[order], cut[1:-1]))
        filled = [k for k, group in enumerate(groups) if len(group)]
        both = np.array([np.quantile(groups[k], (0.5, 0.95)) / 1000 for k in filled])
        median, p95 = both.reshape(-1, 2).T
        return cls((cut[:-1] + np.diff(cut) // 2)[filled], median, p95)


def draw_queue(scope: Scope, ax: Axes | None) -> Axes:
    """The queue's length as an area, and on the right the wait of those who left it."""
    ax = canvas(ax)
    shade(ax, scope.open)
    at, length, _ = steps(scope.slots().queued, scope.start, scope.end)
    ax.fill_between(
        days(at), length, step="post", color=ORANGE, alpha=0.55, linewidth=0, label="queue length"
    )
    right = _draw_waits(ax, QueueWaits.of(scope))
    time = time_axis(ax, scope.start, scope.end)
    count_axis(ax)
    ax.set_ylim(0, max(float(length.max()), 1) * 1.15)
    dress(ax, scope.title("The queue"), time, "calls in the queue")
    right.tick_params(labelfontfamily=list(families()), labelsize=8.5, labelcolor=BLUE)
    key(ax)
    return ax


def _draw_waits(ax: Axes, waits: QueueWaits) -> Axes:
    """Median and 95th percentile on an axis of their own, in minutes where they are long."""
    right = ax.twinx()
    longest = float(waits.p95_s.max(initial=1.0))
    unit, seconds = ("min", 60) if longest > 180 else ("s", 1)
    gaps = np.flatnonzero(np.diff(waits.at) > 2 * np.diff(waits.at).min(initial=10**12)) + 1
    x = np.insert(days(waits.at), gaps, np.nan)  # a line doesn't cross the night
    for values, style, name in ((waits.median_s, "-", "median"), (waits.p95_s, ":", "95 %")):
        y = np.insert(values / seconds, gaps, np.nan)
        right.plot(x, y, style, color=BLUE, linewidth=1.6)
        ax.plot([], [], style, color=BLUE, linewidth=1.6, label=f"wait, {name}")
    right.set_ylim(0, longest / seconds * 1.15)
    right.yaxis.set_major_locator(MaxNLocator(nbins=6))
    right.set_ylabel(f"wait in the queue ({unit})", family=list(families()), fontsize=9, color=BLUE)
    for spine in right.spines.values():
        spine.set_visible(False)
    right.tick_params(color=TEXT, length=0)
    return right
