"""The evidence of a plan: what each value tried came to, against the goal's bound."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from dialsim.experiments.axis import Kind, read_amount
from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.goal import Clause, Statistic
from dialsim.experiments.plots.amounts import amount_axis, grid
from dialsim.results.plots.ink import BLACK, GREEN, VERMILION
from dialsim.results.plots.picture import canvas, dress, key
from dialsim.results.plots.thai_axis import DAY_MS, instant_axis

if TYPE_CHECKING:
    from dialsim.experiments.plan import Plan

_HOUR_MS = 3_600_000


def draw_evidence(answer: Plan, clause: int, ax: Axes | None) -> Axes:
    """The estimate of one clause at each value tried, with its interval, and the bound.

    `clause` counts from 0. Raises ExperimentError if the goal has no such clause.
    """
    clauses = [finding.clause for finding in answer.evidence.findings]
    if not 0 <= clause < len(clauses):
        raise ExperimentError(f"the goal has {len(clauses)} clauses, counted from 0")
    wanted = clauses[clause]
    ax = canvas(ax)
    for met, color, marker in ((True, GREEN, "o"), (False, VERMILION, "x")):
        parts = [part for part in answer.tried if part.met is met]
        if not parts:
            continue
        x = [_place(part.value, answer) for part in parts]
        estimate, low, high = (
            np.array([_scaled(getattr(p.findings[clause], end), wanted) for p in parts])
            for end in ("estimate", "low", "high")
        )
        ax.vlines(x, low, high, color=color, alpha=0.4, linewidth=5)
        label = "meets the goal" if met else "misses it"
        ax.plot(x, estimate, marker, color=color, markersize=6, label=label)
    bound = wanted.share if wanted.statistic is Statistic.PROBABILITY else wanted.bound.value
    ax.axhline(_scaled(bound, wanted), color=BLACK, linewidth=1, linestyle="--", label="the bound")
    grid(ax)
    said = _amount_axis(ax, wanted)
    along = answer.path.rpartition(".")[2]
    kind = read_amount(str(answer.between[0])).kind
    if kind is Kind.WHOLE:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if kind is Kind.INSTANT:
        instant_axis(ax.xaxis)
    unit = " (h)" if kind is Kind.DURATION else ""
    dress(ax, wanted.asked, f"{along}{unit}", said)
    key(ax)
    return ax


def _place(value: object, answer: Plan) -> float:
    """Where a value stands: numbers as they are, durations in hours, instants in days."""
    ends = {read_amount(str(end)).kind for end in answer.between}
    amount = read_amount(str(value))
    if Kind.INSTANT in ends:
        return float(amount.value) / DAY_MS
    return float(amount.value) / (_HOUR_MS if Kind.DURATION in ends else 1)


def _scaled(value: float, clause: Clause) -> float:
    """A value of a clause as the axis takes it; NaN where there is none."""
    if not isfinite(value):
        return float("nan")
    if not clause.is_instant:
        return value
    return value / (_HOUR_MS if clause.bound.after_start else DAY_MS)


def _amount_axis(ax: Axes, clause: Clause) -> str:
    if clause.statistic is Statistic.PROBABILITY:
        ax.set_ylim(-0.03, 1.03)
        ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
        return "probability"
    if clause.is_instant and clause.bound.after_start:
        return "hours after the start"
    return amount_axis(ax.yaxis, clause.figure)
