"""Curves of a sweep: a figure against what varies, and cost against finish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.figure_name import FigureName, read_figure
from dialsim.experiments.plots.amounts import amount_axis, drawn, grid
from dialsim.results.plots.ink import BLACK, BLUE, CYCLE, TEXT, families
from dialsim.results.plots.picture import canvas, dress, key

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.sweep import Sweep


def estimates_of(found: Sweep, figure: FigureName) -> pd.DataFrame:
    """The rows of `Sweep.intervals` for one figure, one per variant, in their order."""
    table = found.intervals()
    table = table[table["figure"] == figure.column]
    scope = "campaign" if figure.campaign else "organization" if figure.organization else "run"
    table = table[table["scope"] == scope]
    for key_, name in (("organization", figure.organization), ("campaign", figure.campaign)):
        if name is not None:
            table = table[table[key_] == name]
    return table.reset_index(drop=True)


def draw_curve(found: Sweep, figure: str, path: str | None, ax: Axes | None) -> Axes:
    """Means of a figure against a path's values, with a band from the 5 % to the 95 % quantile.

    With several paths there is a line for each combination of the others. Named variants that
    change different things stand side by side, with a bar instead of a band.
    """
    name = read_figure(figure, found.scenario)
    if path is not None and path not in found.paths:
        raise ExperimentError(f"{path} doesn't vary; what does: {', '.join(found.paths)}")
    table = estimates_of(found, name)
    along = _crossed_along(found, path, table)
    ax = canvas(ax)
    if along is not None:
        label = _lines(ax, found, name, along, table)
    else:
        label = _side_by_side(ax, found, name, table)
    grid(ax)
    said = amount_axis(ax.yaxis, name)
    return dress_curve(ax, said, label)


def dress_curve(ax: Axes, figure: str, along: str) -> Axes:
    """Title, labels and legend of a curve."""
    dress(ax, figure[0].upper() + figure[1:], along, figure)
    if len(ax.get_legend_handles_labels()[0]):
        key(ax, 3)
    return ax


def _lines(ax: Axes, found: Sweep, name: FigureName, along: str, table: pd.DataFrame) -> str:
    values = list(dict.fromkeys(table[along]))
    numbers = all(isinstance(value, int | float) for value in values)
    for color, said, rows in _groups(found, along, table):
        part = rows.sort_values(along) if numbers else rows
        x = part[along] if numbers else [values.index(value) for value in part[along]]
        mean, low, high = (
            drawn(name, part[column], found.origin) for column in ("mean", "p05", "p95")
        )
        ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
        label = said or "mean; band: 5–95 % of runs"
        ax.plot(x, mean, "o-", color=color, linewidth=1.8, markersize=4, label=label)
    if all(isinstance(value, int) for value in values):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not numbers:
        ax.set_xticks(range(len(values)), [str(value) for value in values])
    return along.rpartition(".")[2]


def _groups(
    found: Sweep, along: str, table: pd.DataFrame
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """The rows of each combination of the other paths' values: a colour, its words, the rows."""
    others = [path for path in found.paths if path != along]
    groups = [*table.groupby(others, sort=False)] if others else [((), table)]
    for number, (combination, rows) in enumerate(groups):
        named = zip(others, combination, strict=True)
        said = ", ".join(f"{path.rpartition('.')[2]} {value}" for path, value in named)
        yield CYCLE[number % len(CYCLE)], said, rows


def _crossed_along(found: Sweep, path: str | None, table: pd.DataFrame) -> str | None:
    """The path (by default the first) whose values make a line; None for unlike variants."""
    along = path or (found.paths[0] if found.paths else None)
    if along is None or table[list(found.paths)].isna().any(axis=None):
        return None
    return along if table[along].nunique() > 1 else None


def _side_by_side(ax: Axes, found: Sweep, name: FigureName, table: pd.DataFrame) -> str:
    mean, low, high = (
        drawn(name, table[column], found.origin) for column in ("mean", "p05", "p95")
    )
    places = np.arange(len(table))
    ax.vlines(places, low, high, color=BLUE, alpha=0.35, linewidth=7, label="5–95 % of runs")
    ax.plot(places, mean, "o", color=BLUE, markersize=6, label="mean")
    ax.set_xticks(places, [_wrapped(variant) for variant in table["variant"]])
    ax.set_xlim(-0.6, len(table) - 0.4)
    return "variant"


def _wrapped(text: str) -> str:
    from textwrap import fill

    return fill(text, 14)


def pareto(cost: Sequence[float], finish: Sequence[float]) -> list[int]:
    """The variants that no other beats in both, by rising cost."""
    order = sorted(range(len(cost)), key=lambda k: (cost[k], finish[k]))
    front: list[int] = []
    for k in order:
        if not front or finish[k] < finish[front[-1]]:
            front.append(k)
    return [k for k in front if np.isfinite(finish[k])]


def draw_cost(found: Sweep, ax: Axes | None) -> Axes:
    """Mean cost against mean finish, a point per variant; those that none beats stand out.

    Where the variants are crossed values, those that differ in the first path alone are joined,
    and each point bears that path's value. Raises ExperimentError without costs.
    """
    if found.scenario.costs is None:
        raise ExperimentError("there is no cost to draw: the scenario names no costs")
    ax = canvas(ax)
    cost_name, finish_name = (read_figure(f, found.scenario) for f in ("cost", "finish"))
    table = estimates_of(found, finish_name)
    x = drawn(finish_name, table["mean"], found.origin)
    y = drawn(cost_name, estimates_of(found, cost_name)["mean"], found.origin)
    front = pareto(y.tolist(), np.where(np.isnan(x), np.inf, x).tolist())
    ax.plot(x[front], y[front], "o", color=BLACK, ms=13, mfc="none", label="beaten by none")
    along = _crossed_along(found, None, table)
    groups = [(BLUE, "", table)] if along is None else _groups(found, along, table)
    for color, said, rows in groups:
        places = list(rows.index)
        style = "o" if along is None else "o-"
        label = said or "_"
        ax.plot(x[places], y[places], style, color=color, linewidth=1, markersize=5, label=label)
    _name_points(ax, x, y, list(table[along or "variant"]))
    grid(ax)
    ax.margins(0.15)
    label = amount_axis(ax.xaxis, finish_name)
    amount_axis(ax.yaxis, cost_name)
    title = "Cost against finish" + (f", by {along.rpartition('.')[2]}" if along else "")
    dress(ax, title, label, f"mean cost ({found.scenario.costs.currency})")
    key(ax, 3)
    return ax


def _name_points(
    ax: Axes, x: NDArray[np.float64], y: NDArray[np.float64], names: Sequence[object]
) -> None:
    """Write a name above each point; above one that several share, all of theirs."""
    places: dict[tuple[float, float], list[str]] = {}
    for k, name in enumerate(names):
        if np.isfinite(x[k]):
            places.setdefault((float(x[k]), float(y[k])), []).append(str(name))
    for place, shared in places.items():
        ax.annotate(
            ",\n".join(shared),
            place,
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            family=list(families()),
            fontsize=8,
            color=TEXT,
        )
