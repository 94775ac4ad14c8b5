"""Precision: as many replications as it takes for an interval to be narrow enough.

The sequential procedure with fixed relative half-width (Chow & Robbins 1965, "On the asymptotic
theory of fixed-width sequential confidence intervals for the mean"; Law 2015, section 9.4.1): after
a first stage, runs are added until the half-width of the t interval is at most γ/(1+γ) of the
mean's size, which makes the relative error at most γ. Runs come in batches of a tenth of those at
hand, at least ten, so that the number at which it stops is the same for any number of jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.figure_name import FigureName, read_figure
from dialsim.experiments.figure_table import earliest_start
from dialsim.experiments.intervals import Nature, mean_interval
from dialsim.experiments.prior import Prior

if TYPE_CHECKING:
    from dialsim.experiments.laboratory import Laboratory
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.experiments.subject import Subject
    from dialsim.scenario.models import Scenario

CONFIDENCE = 0.95
FIRST_STAGE = 10
"""Fewer runs than these say too little of their own spread to stop at."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A relative precision that the mean of a figure shall have, such as 0.02."""

    figure: FigureName
    relative: float


@dataclass(frozen=True, slots=True)
class Precision:
    """What came of it: `reached` is the relative error that the interval allows for."""

    figure: str
    wanted: float
    reached: float
    unfinished: int
    met: bool


def precisions(asked: Mapping[str, float] | str | None, scenario: Scenario) -> list[Wanted]:
    """Read `{"finish": 0.02}`, or `finish=2%` with commas between several.

    Raises ExperimentError for anything else, and for figures that there are not.
    """
    if asked is None:
        return []
    pairs = _pairs(asked) if isinstance(asked, str) else [*asked.items()]
    for name, relative in pairs:
        if not 0 < relative < 1:
            raise ExperimentError(
                f"precision of {name}: {relative:.10g} is not between 0 and 1 (0 % and 100 %)"
            )
    return [Wanted(read_figure(name, scenario), relative) for name, relative in pairs]


def _pairs(text: str) -> list[tuple[str, float]]:
    pairs = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(.+?)\s*=\s*([0-9]*\.?[0-9]+)\s*%\s*", part)
        if match is None:
            raise ExperimentError(
                f"precision {part.strip() or '(nothing)'}: write FIGURE=PERCENT, such as finish=2%"
            )
        pairs.append((match[1], float(match[2]) / 100))
    return pairs


def reach_precision(
    place: Laboratory, subject: Subject, first: int, most: int, wanted: Sequence[Wanted]
) -> list[Precision]:
    """Replicate a subject until all precisions are reached, or `most` runs are made.

    Gives up early on a figure whose mean is infinite, which no further run can change.
    """
    count = first if not wanted else min(max(first, FIRST_STAGE), most)
    while True:
        place.replicate([subject], count)
        reached = [_reached(part, subject.first(count), subject.prior) for part in wanted]
        hopeless = any(part.unfinished for part in reached)
        if hopeless or all(part.met for part in reached) or count >= most:
            return reached
        count = min(most, count + max(10, count // 10))


def _reached(wanted: Wanted, runs: Sequence[RunFigures], prior: Prior) -> Precision:
    values = wanted.figure.of(runs)
    unfinished = int((values == inf).sum())
    if wanted.figure.is_instant:
        values = (values - (earliest_start(runs) or 0)) / 1000
    nature = Nature.of(wanted.figure.column, prior)
    interval = mean_interval(values[~np.isnan(values)], CONFIDENCE, nature)
    half, size = (interval.high - interval.low) / 2, abs(interval.estimate)
    # |estimate − truth| ≤ half and size − half ≤ |truth|, so the relative error is at most this
    error = 0.0 if half == 0 else half / (size - half) if half < size else inf
    known = isfinite(half) and not unfinished
    return Precision(
        wanted.figure.text,
        wanted.relative,
        error if known else inf,
        unfinished,
        known and error <= wanted.relative,
    )
