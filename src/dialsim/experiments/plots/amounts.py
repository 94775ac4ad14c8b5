"""Amounts: a figure on an axis, in the unit that people read it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from dialsim.experiments.figure_name import FigureName
from dialsim.results.plots.ink import GRID
from dialsim.results.plots.thai_axis import instant_axis

if TYPE_CHECKING:
    from datetime import datetime

_DAY_S = 86_400


def drawn(figure: FigureName, values: object, origin: datetime | None) -> NDArray[np.float64]:
    """Values of a figure as an axis takes them; what is not finite is left out as NaN."""
    amounts = np.asarray(values, dtype=np.float64)
    if figure.is_instant and origin is not None:
        amounts = origin.timestamp() / _DAY_S + amounts / _DAY_S
    return np.where(np.isfinite(amounts), amounts, np.nan)


def amount_axis(axis: Axis, figure: FigureName) -> str:
    """Make an axis show a figure; returns its label."""
    name = figure.name.replace("_", " ")
    if figure.is_instant:
        instant_axis(axis)
        return f"{name}, Thai time"
    axis.set_major_locator(MaxNLocator(nbins=6))
    if figure.name.endswith("_share") or figure.name.startswith("reach_by_attempt"):
        axis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))
        return name
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.5g}"))
    for ending, unit in (("_seconds", "s"), ("_minutes", "min")):
        if figure.name.endswith(ending):
            return f"{name.removesuffix(ending.replace('_', ' '))} ({unit})"
    return name


def grid(ax: Axes) -> None:
    """A light grid in both directions."""
    ax.grid(color=GRID, linewidth=0.6)
