"""Plots of replications, sweeps and plans: each draws on an Axes and returns it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import undominated
from dialsim.experiments.experiment_text import (
    amount_text,
    expression_text,
    when_text,
)
from dialsim.experiments.expression import Expression, figure_of, read_expression, read_shown
from dialsim.experiments.goal import Clause, Statistic
from dialsim.experiments.intervals import rank
from dialsim.experiments.plan_text import finding_cells
from dialsim.experiments.run_figures import MARKS, fan, run_values
from dialsim.experiments.variants import AmountKind, read_amount, setting_noun, setting_text
from dialsim.interface.arguments import checked
from dialsim.interface.instants import DAY, HOUR, minute_text, short_text
from dialsim.interface.phrases import counted
from dialsim.results.figures import OWN_FIGURES, Unit
from dialsim.results.plots.drawing import (
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    GRID,
    VERMILION,
    canvas,
    days,
    drawing_size,
    dress,
    instant_axis,
    key,
    letters,
    note,
    share_axis,
    show_values,
    show_values_over_time,
    time_axis,
    value_pieces,
)

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd

    from dialsim.experiments.optimum import Combination, Optimum
    from dialsim.experiments.plan import Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep


_DAY_S = 86_400


def drawn(figure: Expression, values: object, origin: datetime | None) -> NDArray[np.float64]:
    """Return values of a figure in axis units; NaN for infinite ones."""
    amounts = np.asarray(values, dtype=np.float64)
    if figure.is_instant and origin is not None:
        amounts = origin.timestamp() / _DAY_S + amounts / _DAY_S
    return np.where(np.isfinite(amounts), amounts, np.nan)


def amount_axis(axis: Axis, figure: Expression) -> str:
    """Format an axis for a figure; returns its label."""
    is_declared = figure.is_figure and figure.text not in OWN_FIGURES
    name = figure.name.replace("_", " ") if is_declared else figure.label
    if figure.is_instant:
        instant_axis(axis)
        return f"{name}, Thai time"
    axis.set_major_locator(MaxNLocator(nbins=6))
    if figure.unit is Unit.SHARE:
        axis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))
        return name
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.5g}"))
    if not is_declared:
        return f"{name} ({figure.measure.label})" if figure.measure.label else name
    if figure.unit in (Unit.SECONDS, Unit.MINUTES):
        return f"{name.rpartition(' ')[0]} ({figure.unit})"
    return name


def grid(ax: Axes) -> None:
    """Draw a light grid in both directions."""
    ax.grid(color=GRID, linewidth=0.6)


_LETTERS = 26
"""Letters per line of a name. Names of more than two lines are cut; tables have the whole name."""


def estimates_of(found: Sweep, figure: Expression) -> pd.DataFrame:
    """Return the rows of `Sweep.intervals` for one figure, one per variant, in their order."""
    # Expressions are computed for a table on request only; figures are in every table.
    if not figure.is_figure:
        table = found.showing([figure.text]).intervals()
        return table[table["figure"] == figure.text].reset_index(drop=True)
    table = found.intervals()
    table = table[table["figure"] == figure.column]
    organization, campaign = figure.place
    scope = "campaign" if campaign else "organization" if organization else "run"
    table = table[table["scope"] == scope]
    for key_, name in (("organization", organization), ("campaign", campaign)):
        if name is not None:
            table = table[table[key_] == name]
    return table.reset_index(drop=True)


def middle_of(figure: Expression) -> tuple[str, str]:
    """Return the column for the middle of a variant's runs, and its name.

    An instant has its median: its mean may lie outside all calling hours.
    """
    return ("p50", "half of the runs") if figure.by_median else ("mean", "mean")


def names_of(found: Sweep) -> int:
    """Return the number of names that a curve lists vertically; 0 for a numeric axis."""
    table = found.runs
    along = _crossed_along(found, None, table)
    if along is None:
        return len(found.variants)
    return 0 if _are_numbers(table[along]) else int(table[along].nunique())


def _are_numbers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _lines(
    ax: Axes, found: Sweep, name: Expression, along: str, table: pd.DataFrame, upright: bool
) -> None:
    values = list(dict.fromkeys(table[along].sort_values()))
    column, middle = middle_of(name)
    for color, said, rows in _groups(found, along, table):
        part = rows.sort_values(along)
        positions = part[along] if upright else [values.index(value) for value in part[along]]
        amounts, low, high = (
            drawn(name, part[which], found.origin) for which in (column, "p05", "p95")
        )
        label = said or f"{middle}; band: 5–95 % of runs"
        look: dict[str, Any] = {"color": color, "linewidth": 1.8, "markersize": 4, "label": label}
        if upright:
            ax.fill_between(positions, low, high, color=color, alpha=0.2, linewidth=0)
            ax.plot(positions, amounts, "o-", **look)
        else:
            ax.fill_betweenx(positions, low, high, color=color, alpha=0.2, linewidth=0)
            ax.plot(amounts, positions, "o-", **look)
        rows_of = part.to_dict("records")
        show_values(ax, [
            (*((position, at) if upright else (at, position)), _estimates_text(name, row, found))
            for position, at, row in zip(positions, amounts.tolist(), rows_of, strict=True)
        ])  # fmt: skip
    if all(isinstance(value, int) for value in values):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Names need room, so they are listed along the vertical axis.
    if not upright:
        _name_rows(ax, [str(value) for value in values])


def _estimates_text(name: Expression, row: Mapping[Any, Any], found: Sweep) -> str:
    """Format a point: `4 lines: half of the runs Mon 5 Jan 10:22; 5 to 95 %: … to …`."""
    column, middle = middle_of(name)
    said, low, high = (
        when_text(row[which], found) if name.is_instant else expression_text(name, row[which])
        for which in (column, "p05", "p95")
    )
    return f"{row['variant']}: {middle} {said}; 5 to 95 % of the runs: {low} to {high}"


def _groups(
    found: Sweep, along: str, table: pd.DataFrame
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield colour, label and rows of each combination of the other paths' values."""
    others = [path for path in found.paths if path != along]
    groups = [*table.groupby(others, sort=False)] if others else [((), table)]
    for number, (combination, rows) in enumerate(groups):
        named = zip(others, combination, strict=True)
        said = ", ".join(setting_text(path, value) for path, value in named)
        yield CYCLE[number % len(CYCLE)], said, rows


def _crossed_along(found: Sweep, path: str | None, table: pd.DataFrame) -> str | None:
    """Return the path (by default the first) whose values form a line; None for unrelated
    variants.
    """
    along = path or (found.paths[0] if found.paths else None)
    if along is None or table[list(found.paths)].isna().any(axis=None):
        return None
    # A path with a single value forms no line.
    return along if table[along].nunique() > 1 else None


def _points(ax: Axes, found: Sweep, name: Expression, table: pd.DataFrame) -> None:
    """Draw a point and a bar for each variant, listed vertically."""
    column, said = middle_of(name)
    middle, low, high = (
        drawn(name, table[which], found.origin) for which in (column, "p05", "p95")
    )
    positions = np.arange(len(table))
    ax.hlines(positions, low, high, color=BLUE, alpha=0.35, linewidth=7, label="5–95 % of runs")
    ax.plot(middle, positions, "o", color=BLUE, markersize=6, label=said)
    show_values(ax, [
        (None, (k - 0.5, k + 0.5), _estimates_text(name, row, found))
        for k, row in enumerate(table.to_dict("records"))
    ])  # fmt: skip
    _name_rows(ax, list(table["variant"]))


def cut_names(names: Sequence[str], cut: Callable[[str], str], letters: int) -> list[str]:
    """Return names shortened by `cut`.

    If some become equal, each cut name keeps its beginning and end. Names of up to `letters`
    letters fit.
    """
    said = [cut(name) for name in names]
    # Variants often share a long beginning, and differ only at the end.
    if len({*said}) == len({*names}):
        return said
    half = (letters - 3) // 2
    return [text if "…" not in text else cut(_within(name, half))
            for name, text in zip(names, said, strict=True)]  # fmt: skip


def _within(name: str, half: int) -> str:
    """Return a name without its middle, cut at words if possible."""
    first, last = name[:half].rpartition(" ")[0], name[-half:].partition(" ")[2]
    return f"{first or name[:half]} … {last or name[-half:]}"


def _in_a_line(name: str) -> str:
    return shorten(name, _LETTERS, placeholder=" …")


def _in_two_lines(name: str) -> str:
    return "\n".join(wrap(name, _LETTERS, max_lines=2, placeholder=" …"))


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Label the rows, the first on top."""
    ax.set_yticks(range(len(names)), cut_names(names, _in_two_lines, 2 * _LETTERS - 8))
    ax.set_ylim(len(names) - 0.4, -0.6)


_OFFSETS = [(0, 9), (0, -9), (9, 0), (-9, 0), (8, 8), (-8, 8), (8, -8), (-8, -8), (0, 14), (0, -14),
            (12, 12), (-12, 12), (12, -12), (-12, -12), (0, 20), (0, -20)]  # fmt: skip
"""Offsets of a name from its point, in points, the best first."""


def _name_points(
    ax: Axes,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    names: Sequence[str],
    ringed: Sequence[int],
    size: tuple[float, float],
) -> None:
    """Write a name beside each point, free of other names and points; equal points share a text.

    `size` is the size of the plot, in points.
    """
    shared: dict[tuple[float, float], list[str]] = {}
    for k, name in enumerate(names):
        if np.isfinite(x[k]):
            shared.setdefault((float(x[k]), float(y[k])), []).append(name)
    limits = zip(size, (ax.get_xlim(), ax.get_ylim()), strict=True)
    # Overlaps are computed in points, because data units differ between the axes.
    to_points = [length / (high - low) for length, (low, high) in limits]
    points = {position: np.multiply(position, to_points) for position in shared}
    rings = {(float(x[k]), float(y[k])) for k in ringed}
    taken = [(at, np.full(2, 7.0 if position in rings else 3.0)) for position, at in points.items()]
    for position, listed in shared.items():
        text = ", ".join(listed)
        # An approximation of the width of 8 point letters: outlines would have to be computed for
        # every name.
        half = np.array([2.4 * len(text), 4.5])
        around = [(points[position] + _beside(offset, half), half) for offset in _OFFSETS]
        free = [not any(_overlap(box, other) for other in taken) for box in around]
        # In a crowd a name may overlap rather than be missing.
        best = free.index(True) if any(free) else 0
        taken.append(around[best])
        ax.annotate(
            text,
            position,
            xytext=_beside(_OFFSETS[best], half),
            textcoords="offset points",
            ha="center",
            va="center",
            **letters(8),
        )


_Box = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Centre, and half of width and height, in points."""


def _beside(offset: tuple[float, float], half: NDArray[np.float64]) -> tuple[float, float]:
    """Return the centre of a name beside its point."""
    sideways = float(half[0]) - 4 if offset[0] else 0.0
    return offset[0] + (sideways if offset[0] > 0 else -sideways), offset[1]


def _overlap(one: _Box, other: _Box) -> bool:
    return bool((abs(one[0] - other[0]) < one[1] + other[1]).all())


def _position(value: object, answer: Plan) -> float:
    """Return the position of a value: numbers unchanged, durations in hours, instants in days."""
    ends = {read_amount(str(end)).kind for end in answer.between}
    amount = read_amount(str(value))
    if AmountKind.INSTANT in ends:
        return float(amount.value) / DAY
    return float(amount.value) / (HOUR if AmountKind.DURATION in ends else 1)


def _scaled(value: float, clause: Clause) -> float:
    """Return a value of a clause in axis units; NaN if infinite."""
    if not isfinite(value):
        return float("nan")
    if not clause.is_instant:
        return value
    return value / (HOUR if clause.bound.after_start else DAY)


def _amount_axis(ax: Axes, clause: Clause) -> str:
    if clause.statistic is Statistic.PROBABILITY:
        ax.set_ylim(-0.03, 1.03)
        ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
        return "probability"
    if clause.is_instant and clause.bound.after_start:
        return "hours after the start"
    return amount_axis(ax.yaxis, clause.figure)


_BANDS = ((0.05, 0.95, 0.22, "5–95 % of runs"), (0.25, 0.75, 0.4, "25–75 % of runs"))


def _when(instant: float) -> str:
    return short_text(int(instant)) if isfinite(instant) else "never"


def _combination_text(part: Combination) -> str:
    cost = f", cost {amount_text('cost', part.cost)}" if isfinite(part.cost) else ""
    reached = amount_text("people_reached", part.people_reached)
    return f"{part.name}: median finish {_when(part.finish)}, {reached} reached{cost}"


@checked(ExperimentError)
class ReplicationPlots:
    """Plots of replications, drawn on `ax` or on a new figure, like `Result.plot`."""

    def __init__(self, runs: Replications) -> None:
        self._runs = runs

    def progress(self, *, ax: Axes | None = None) -> Axes:
        """Plot the share of people reached over time: the median, bands of runs, and finishes."""
        runs, ax = self._runs, canvas(ax)
        median = fan(runs.figures, 0.5)
        known = median[np.isfinite(median)]
        levels = np.arange(MARKS + 1) / MARKS
        if not len(known):
            note(ax, "Nothing was scheduled.")
            return dress(ax, "Progress of all runs", "", "people reached")
        ends = [*known]
        for low, high, alpha, label in _BANDS:
            early, late = (fan(runs.figures, share) for share in (low, high))
            # The band ends where the late quantile is infinite.
            both = np.isfinite(late)
            ends += [*late[both]]
            x, y = runs.bounds.band(levels[both], early[both], late[both])
            ax.fill(days(x), y, color=BLUE, alpha=alpha, linewidth=0, label=label)
        x, y = runs.bounds.rising_in_windows(known, levels[: len(known)])
        ax.plot(days(x), y, color=BLUE, linewidth=2, label="half of the runs")
        finishes = run_values(runs.figures, "finish")
        done = finishes[np.isfinite(finishes)]
        if len(done):
            at_top = np.full(len(done), 1.02)
            ax.plot(days(done), at_top, "|", color=BLACK, markersize=7, label="finishes")
            ends += [float(done.max())]
        label = time_axis(ax, int(known[0]), int(max(ends)))
        share_axis(ax, 1.06)
        early, late = (fan(runs.figures, share) for share in (0.05, 0.95))
        show_values(ax, [
            (None, ((k - 0.5) / MARKS, (k + 0.5) / MARKS),
             f"{100 * k / MARKS:.0f} % of the people reached: in half of the runs by "
             f"{_when(median[k])}; 5 to 95 % of the runs: {_when(early[k])} to {_when(late[k])}")
            for k in range(1, len(known))
        ])  # fmt: skip
        return dress(ax, f"Progress of {counted(len(runs), 'run')}", label, "people reached")

    def finish(self, *, ax: Axes | None = None) -> Axes:
        """Plot the share of runs that are done by each instant, and mark 95 %."""
        runs, ax = self._runs, canvas(ax)
        finishes = np.sort(run_values(runs.figures, "finish"))
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
        share_axis(ax, 1.04)
        show_values_over_time(ax, [
            (since, until,
             f"{short_text(until)}: {np.searchsorted(done, until, side='right'):,} of "
             f"{counted(len(finishes), 'run')} done")
            for since, until in value_pieces(int(start), int(end))
        ])  # fmt: skip
        return dress(ax, "When runs are done", label, "share of runs")


@checked(ExperimentError)
class SweepPlots:
    """Plots of a sweep, drawn on `ax` or on a new figure, like `Result.plot`."""

    def __init__(self, found: Sweep) -> None:
        self._found = found

    def curve(
        self, figure: str = "finish", path: str | None = None, *, ax: Axes | None = None
    ) -> Axes:
        """Plot a figure's mean, or an instant's median, along a path (by default the first), with a
        band from the 5 % to the 95 % quantile of the runs.

        Several paths give a line for each combination of the others. Values that are texts, and
        named variants, are listed vertically, with the figure from left to right. Raises
        ExperimentError for an unknown figure, or a path that does not vary.
        """
        found = self._found
        name = read_shown(figure, found.scenario)
        if path is not None and path not in found.paths:
            raise ExperimentError(f"{path} doesn't vary; varied paths: {', '.join(found.paths)}")
        table = estimates_of(found, name)
        along = _crossed_along(found, path, table)
        ax = canvas(ax)
        grid(ax)
        if along is None:
            _points(ax, found, name, table)
            said = amount_axis(ax.xaxis, name)
            return dress(ax, said[0].upper() + said[1:], said, "")
        upright = _are_numbers(table[along])
        _lines(ax, found, name, along, table, upright)
        said, values = amount_axis(ax.yaxis if upright else ax.xaxis, name), setting_noun(along)
        return dress(
            ax, said[0].upper() + said[1:], *((values, said) if upright else (said, values))
        )

    def cost(self, *, ax: Axes | None = None) -> Axes:
        """Plot mean cost against median finish, a point per variant, with equal numbers of runs.

        Undominated variants stand out. Variants of crossed values are joined along the first path,
        and each point is labelled with that path's value; otherwise with a number, which the legend
        explains. Raises ExperimentError if the scenario has no costs.
        """
        found = self._found.together
        if found.scenario.costs is None:
            raise ExperimentError("there is no cost to draw: the scenario names no costs")
        ax = canvas(ax)
        cost_name, finish_name = (read_expression(f, found.scenario) for f in ("cost", "finish"))
        table = estimates_of(found, finish_name)
        x = drawn(finish_name, table[middle_of(finish_name)[0]], found.origin)
        y = drawn(cost_name, estimates_of(found, cost_name)["mean"], found.origin)
        # Never finishing loses against any finish; NaN would compare as neither.
        front = undominated([*zip(y, np.where(np.isnan(x), inf, x), strict=True)])
        said = "none is cheaper and earlier"
        ax.plot(x[front], y[front], "o", color=BLACK, ms=13, mfc="none", label=said)
        along = _crossed_along(found, None, table)
        groups = [(BLUE, "", table)] if along is None else _groups(found, along, table)
        for color, said, rows in groups:
            at = list(rows.index)
            style = "o" if along is None else "o-"
            ax.plot(x[at], y[at], style, color=color, linewidth=1, markersize=5, label=said or "_")
        names = [str(value) for value in table[along]] if along else []
        numbered = [] if along else cut_names([*table["variant"]], _in_a_line, _LETTERS)
        for number, name in enumerate(numbered, 1):
            names.append(str(number))
            ax.plot([], [], linestyle="none", label=f"{number}  {name}")
        grid(ax)
        ax.margins(0.15)
        label = amount_axis(ax.xaxis, finish_name)
        amount_axis(ax.yaxis, cost_name)
        title = "Cost against finish" + (f", by {setting_noun(along)}" if along else "")
        currency = found.scenario.costs.currency
        dress(ax, title, label, f"mean cost ({currency})")
        _name_points(ax, x, y, names, front, drawing_size(ax, key(ax)))
        costs = estimates_of(found, cost_name)["mean"].tolist()
        texts = [
            f"{row['variant']}: {amount_text('cost', cost)} {currency} on average; median finish "
            f"{when_text(row['p50'], found)}"
            for row, cost in zip(table.to_dict("records"), costs, strict=True)
        ]
        show_values(ax, [*zip(x.tolist(), y.tolist(), texts, strict=True)])
        return ax


@checked(ExperimentError)
class PlanPlots:
    """Plots of a plan, drawn on `ax` or on a new figure, like `Result.plot`."""

    def __init__(self, answer: Plan) -> None:
        self._answer = answer

    def estimates(self, clause: int = 0, *, ax: Axes | None = None) -> Axes:
        """Plot the estimate of one clause at each value tried, with its interval, and the bound.

        Raises ExperimentError for an unknown clause.
        """
        answer = self._answer
        clauses = [finding.clause for finding in answer.estimate.findings]
        if not 0 <= clause < len(clauses):
            raise ExperimentError(f"the goal has {len(clauses)} clauses, numbered from 0")
        wanted = clauses[clause]
        ax = canvas(ax)
        for met, color, marker in ((True, GREEN, "o"), (False, VERMILION, "x")):
            parts = [part for part in answer.tried if part.met is met]
            if not parts:
                continue
            x = [_position(part.value, answer) for part in parts]
            estimate, low, high = (
                np.array([_scaled(getattr(p.findings[clause], end), wanted) for p in parts])
                for end in ("estimate", "low", "high")
            )
            ax.vlines(x, low, high, color=color, alpha=0.4, linewidth=5)
            show_values(ax, [
                (position, at, f"{setting_text(answer.path, part.value)}: "
                 "{}, at least {}, at most {}".format(*finding_cells(part.findings[clause])))
                for position, at, part in zip(x, estimate.tolist(), parts, strict=True)
            ])  # fmt: skip
            label = "meets the goal" if met else "misses it"
            ax.plot(x, estimate, marker, color=color, markersize=6, label=label)
        bound = wanted.share if wanted.statistic is Statistic.PROBABILITY else wanted.bound.value
        ax.axhline(
            _scaled(bound, wanted), color=BLACK, linewidth=1, linestyle="--", label="the bound"
        )
        grid(ax)
        said = _amount_axis(ax, wanted)
        kind = read_amount(str(answer.between[0])).kind
        if kind is AmountKind.WHOLE:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if kind is AmountKind.INSTANT:
            instant_axis(ax.xaxis)
        unit = " (h)" if kind is AmountKind.DURATION else ""
        return dress(ax, wanted.asked, f"{setting_noun(answer.path)}{unit}", said)


@checked(ExperimentError)
class OptimumPlots:
    """Plots of an optimum, drawn on `ax` or on a new figure, like `Result.plot`."""

    def __init__(self, answer: Optimum) -> None:
        self._answer = answer

    def frontier(self, *, ax: Axes | None = None) -> Axes:
        """Plot the instant at which half of the runs are done against mean cost, or reach without
        costs.

        Undominated combinations are ringed, the answer is filled.
        """
        answer, ax = self._answer, canvas(ax)
        priced = any(isfinite(part.cost) for part in answer.tried)
        finish, other = (
            figure_of(name) for name in ("finish", "cost" if priced else "people_reached")
        )

        def points(parts: Sequence[Combination]) -> tuple[list[float], list[float]]:
            shown = [part for part in parts if isfinite(part.finish)]
            amounts = [part.cost if priced else part.people_reached for part in shown]
            return [part.finish / DAY for part in shown], amounts

        for met, color, marker in ((True, GREEN, "o"), (False, VERMILION, "x")):
            parts = [part for part in answer.tried if part.estimate.met is met]
            if parts:
                label = "tried" if answer.goal is None else "meets the goal" if met else "misses it"
                ax.plot(*points(parts), marker, color=color, markersize=4, label=label)
        front = points(answer.frontier)
        ax.plot(*front, "o", color=BLACK, ms=10, mfc="none", label="beaten by none")
        name = "the answer" if answer.met else "comes closest"
        ax.plot(*points([answer.best]), "D", color=BLUE, ms=8, label=name)
        grid(ax)
        ax.margins(0.1)
        label = amount_axis(ax.xaxis, finish)
        unit = amount_axis(ax.yaxis, other)
        texts = [_combination_text(part) for part in answer.tried if isfinite(part.finish)]
        show_values(ax, [*zip(*points(answer.tried), texts, strict=True)])
        dress(ax, f"{'Cost' if priced else 'People reached'} against finish", label, f"mean {unit}")
        key(ax)
        return ax
