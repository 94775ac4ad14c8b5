"""Slots in use over time, against the limit, with the open calling windows shaded."""

from __future__ import annotations

from matplotlib.axes import Axes

from dialsim.results.plots.grain import steps
from dialsim.results.plots.ink import BLUE, SKY, VERMILION
from dialsim.results.plots.picture import canvas, count_axis, dress, key
from dialsim.results.plots.scope import Scope
from dialsim.results.plots.thai_axis import days, shade, time_axis
from dialsim.results.thai_time import duration_text


def draw_occupancy(scope: Scope, ax: Axes | None) -> Axes:
    """Calls under way (means of short times where there are many), and maxConcurrentCalls."""
    ax = canvas(ax)
    slots = scope.slots()
    shade(ax, scope.open)
    at, busy, width = steps(slots.busy, scope.start, scope.end)
    label = f"slots in use (mean of {duration_text(width)})" if width else "slots in use"
    ax.fill_between(days(at), busy, step="post", color=SKY, alpha=0.45, linewidth=0)
    ax.plot(days(at), busy, drawstyle="steps-post", color=BLUE, linewidth=1.2, label=label)
    at, allowed, _ = steps(slots.allowed, scope.start, scope.end)
    ax.plot(
        days(at), allowed, drawstyle="steps-post", color=VERMILION, linewidth=1.6, label="limit"
    )
    time = time_axis(ax, scope.start, scope.end)
    count_axis(ax)
    ax.set_ylim(0, max(float(allowed.max()), float(busy.max()), 1) * 1.08)
    dress(ax, scope.title("Slots in use"), time, "slots")
    key(ax)
    return ax
