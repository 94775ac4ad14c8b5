"""Progress: how many people are reached, and how many are done with, up to the finish."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dialsim.results.plots.grain import thinned
from dialsim.results.plots.ink import BLACK, BLUE, GREY, SKY, families
from dialsim.results.plots.picture import canvas, count_axis, dress, key
from dialsim.results.plots.scope import Scope
from dialsim.results.plots.thai_axis import days, shade, time_axis
from dialsim.results.progress import Progress
from dialsim.results.thai_time import minute_text


def draw_progress(scope: Scope, ax: Axes | None) -> Axes:
    """People reached and done with over time, of all that are on the lists."""
    progress = Progress.of(scope.reading, scope.lives)
    ax = canvas(ax)
    shade(ax, scope.open)
    ax.axhline(progress.people, color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="all people")
    _curve(ax, progress.done, scope, SKY, "done with")
    _curve(ax, progress.reached, scope, BLUE, "reached")
    _finish(ax, scope, progress)
    label = time_axis(ax, scope.start, scope.end)
    count_axis(ax)
    ax.set_ylim(0, max(progress.people, 1) * 1.12)
    dress(ax, scope.title("Progress"), label, "people")
    key(ax)
    return ax


def _curve(ax: Axes, at: NDArray[np.int64], scope: Scope, color: str, label: str) -> None:
    """A count that goes up by one at each instant."""
    shown = thinned(len(at))
    x = np.concatenate([[scope.start], at[shown], [scope.end]])
    y = np.concatenate([[0], shown + 1, [len(at)]])
    ax.plot(days(x), y, drawstyle="steps-post", color=color, linewidth=2, label=label)


def _finish(ax: Axes, scope: Scope, progress: Progress) -> None:
    """Mark the finish of the last campaign, if all of them have one."""
    finishes = [
        scope.reading.finishes[life.position] for life in scope.lives if life.request is not None
    ]
    if not finishes or None in finishes:
        return
    finish = max(at for at in finishes if at is not None)
    ax.plot([float(days(finish))], [len(progress.done)], "o", color=BLACK, markersize=5)
    ax.annotate(
        f"finish {minute_text(finish)}",
        (float(days(finish)), progress.people),
        xytext=(0, 5),
        textcoords="offset points",
        ha="right",
        family=list(families()),
        fontsize=8.5,
        color=BLACK,
    )
