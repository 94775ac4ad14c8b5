"""Progress of many runs: a fan of what share of the people is reached by when."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from dialsim.experiments.intervals import rank
from dialsim.experiments.run_figures import MARKS, RunFigures
from dialsim.results.plots.ink import BLACK, BLUE, GRID, VERMILION
from dialsim.results.plots.picture import canvas, dress, key, note
from dialsim.results.plots.thai_axis import days, time_axis
from dialsim.results.thai_time import minute_text

if TYPE_CHECKING:
    from dialsim.experiments.replications import Replications

_BANDS = ((0.05, 0.95, 0.22, "5–95 % of runs"), (0.25, 0.75, 0.4, "25–75 % of runs"))


def fan(runs: tuple[RunFigures, ...], share: float) -> NDArray[np.float64]:
    """By when a share of the runs had reached 0, 1, … `MARKS`-ths of the people (ms).

    Infinite where fewer runs ever did.
    """
    instants = np.full((len(runs), MARKS + 1), inf)
    for row, run in zip(instants, runs, strict=True):
        row[0] = inf if run.start is None else run.start
        row[1 : len(run.reached) + 1] = run.reached
    ordered: NDArray[np.float64] = np.sort(instants, axis=0)[rank(len(runs), share) - 1]
    return ordered


def draw_fan(runs: Replications, ax: Axes | None) -> Axes:
    """The share of people reached over time: median, and bands of runs."""
    ax = canvas(ax)
    median = fan(runs.figures, 0.5)
    known = median[np.isfinite(median)]
    levels = np.arange(MARKS + 1) / MARKS
    if not len(known):
        note(ax, "Nothing was scheduled.")
        return dress(ax, "Progress of all runs", "", "people reached")
    ends = [*known]
    for low, high, alpha, label in _BANDS:
        early, late = (fan(runs.figures, share) for share in (low, high))
        both = np.isfinite(late)
        ends += [*late[both]]
        ax.fill_betweenx(
            levels[both],
            days(early[both]),
            days(late[both]),
            color=BLUE,
            alpha=alpha,
            linewidth=0,
            label=label,
        )
    ax.plot(days(known), levels[: len(known)], color=BLUE, linewidth=2, label="half of the runs")
    finishes = [run.scopes[0].values["finish"] for run in runs.figures]
    done = np.array([at for at in finishes if np.isfinite(at)])
    if len(done):
        at_top = np.full(len(done), 1.02)
        ax.plot(days(done), at_top, "|", color=BLACK, markersize=7, label="finishes")
        ends += [float(done.max())]
    label = time_axis(ax, int(known[0]), int(max(ends)))
    ax.set_ylim(0, 1.06)
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    ax.grid(axis="y", color=GRID, linewidth=0.6)
    dress(ax, f"Progress of {len(runs)} runs", label, "people reached")
    key(ax)
    return ax


def draw_finishes(runs: Replications, ax: Axes | None) -> Axes:
    """The share of runs done by each instant; the one by which 95 % are done is marked."""
    ax = canvas(ax)
    finishes = np.sort([run.scopes[0].values["finish"] for run in runs.figures])
    done = finishes[np.isfinite(finishes)]
    if not len(done):
        note(ax, "No run finished.")
        return dress(ax, "When runs are done", "", "share of runs")
    margin = max((done[-1] - done[0]) * 0.1, 60_000)
    start, end = done[0] - margin, done[-1] + margin
    x = np.concatenate([[start], done, [end]])
    y = np.concatenate([[0], np.arange(1, len(done) + 1), [len(done)]]) / len(finishes)
    ax.plot(days(x), y, drawstyle="steps-post", color=BLUE, linewidth=2)
    late = finishes[rank(len(finishes), 0.95) - 1]
    if np.isfinite(late):
        label = f"95 % of these runs by {minute_text(int(late))}"
        ax.plot([float(days(late))] * 2, [0, 0.95], color=VERMILION, linewidth=1.2, label=label)
    label = time_axis(ax, int(start), int(end))
    ax.set_ylim(0, 1.04)
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    ax.grid(axis="y", color=GRID, linewidth=0.6)
    dress(ax, "When runs are done", label, "share of runs")
    key(ax)
    return ax
