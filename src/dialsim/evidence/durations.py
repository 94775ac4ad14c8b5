"""Distributions of measured durations: the family that fits best, or what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import durations, weibull_shape
from dialsim.evidence.answering import PointEstimate
from dialsim.scenario.distribution import Distribution, distribution
from dialsim.scenario.units import format_duration, parse_duration

Floats = NDArray[np.float64]

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Where a family is held against what was measured."""
OFF = 0.1
"""A family that is further off at one of these is not taken."""
ENOUGH = 100
"""Of fewer durations the 99 % quantile isn't seen; a family is taken by likelihood alone."""
_LISTED = 400
"""An empirical distribution of enough durations lists so many."""
_AT_BOUND = 5
"""So many equal durations at an end are those that a bound moved there."""


@dataclass(frozen=True, slots=True)
class FittedDurations:
    """A distribution that durations were found to have.

    `estimates` are those of its parameters (ms), none for what is taken as it was measured.
    `off` are the relative errors of the quantiles, by their levels. `rejected` says why no family
    was taken, where an empirical distribution stands.
    """

    distribution: Distribution
    written: Mapping[str, object] | str
    estimates: Mapping[str, PointEstimate]
    count: int
    off: Mapping[float, float]
    measured: Floats
    rejected: str = ""

    def draw(self, chance: np.random.Generator) -> Mapping[str, object] | str:
        """Another distribution that may have made these durations, as a scenario has it.

        Parameters are drawn around their estimates, each in its logarithm; durations taken as they
        were measured are all moved by a factor drawn around 1, as exact as their mean.
        """
        if isinstance(self.written, str):
            return self.written
        values = self.written.get("values")
        if isinstance(values, list):
            mean = float(self.measured.mean())
            error = float(self.measured.std()) / sqrt(len(self.measured)) / mean if mean else 0.0
            factor = exp(chance.normal(0.0, error))
            moved = [format_duration(round(parse_duration(text) * factor)) for text in values]
            return {**self.written, "values": moved}
        drawn = {
            name: format_duration(
                max(1, round(one.value * exp(chance.normal(0.0, one.error / one.value))))
            )
            for name, one in self.estimates.items()
            if one.value > 0
        }
        return {**self.written, **drawn}

    @property
    def quantiles(self) -> Floats:
        """Those of the distribution at the middles of a hundred equal parts (ms)."""
        middles: Floats = (np.arange(100, dtype=np.float64) + 0.5) / 100.0
        return durations(self.distribution, middles).astype(np.float64)


_Shape = tuple[tuple[float, ...], dict[str, float]]
"""What scipy's functions of a distribution take: shapes, then `loc` and `scale`."""


@dataclass(frozen=True, slots=True)
class _Family:
    """A family: scipy's distribution for parameters on the real line, and how it is written."""

    name: str
    scipy: str
    start: Callable[[float, float, Floats], list[float]]  # of mean and sd
    shape: Callable[[Floats], _Shape]
    shown: Callable[[Floats], dict[str, float]]


def _spread(name: str, scipy: str, shape: Callable[[float, float], _Shape]) -> _Family:
    """A family with a mean and a standard deviation; the parameters are their logarithms."""
    return _Family(
        name,
        scipy,
        lambda mean, sd, _: [log(mean), log(max(sd, mean / 1000.0))],
        lambda at: shape(*np.exp(at)),
        lambda at: {"mean": exp(at[0]), "sd": exp(at[1])},
    )


def _lognormal(mean: float, sd: float) -> _Shape:
    variance = log(1.0 + (sd / mean) ** 2)
    return (sqrt(variance),), {"scale": mean / exp(variance / 2.0)}


def _gamma(mean: float, sd: float) -> _Shape:
    return ((mean / sd) ** 2,), {"scale": sd**2 / mean}


def _weibull(mean: float, sd: float) -> _Shape:
    shape = weibull_shape(sd / mean)
    return (shape,), {"scale": mean / exp(lgamma(1.0 + 1.0 / shape))}


def _exponential(at: Floats) -> _Shape:
    return (), {"scale": exp(at[0])}


def _triangular(at: Floats) -> _Shape:
    low, rise, fall = np.exp(at)
    return (rise / (rise + fall),), {"loc": low, "scale": rise + fall}


def _corners(at: Floats) -> dict[str, float]:
    low, rise, fall = np.exp(at).tolist()
    return {"low": low, "mode": low + rise, "high": low + rise + fall}


def _corners_start(mean: float, sd: float, values: Floats) -> list[float]:
    low, high = max(values.min() - sd / 20.0, 0.5), values.max() + sd / 20.0
    mode = min(max(3.0 * mean - low - high, low + sd / 10.0), high - sd / 10.0)
    return [log(low), log(mode - low), log(high - mode)]


_FAMILIES = (
    _Family("exponential", "expon", lambda mean, *_: [log(mean)], _exponential,
            lambda at: {"mean": exp(at[0])}),
    _spread("lognormal", "lognorm", _lognormal),
    _spread("gamma", "gamma", _gamma),
    _spread("weibull", "weibull_min", _weibull),
    _Family("triangular", "triang", _corners_start, _triangular, _corners),
)  # fmt: skip


def fitted(measured: NDArray[np.int64]) -> FittedDurations:
    """Find the distribution of durations (ms); there must be one.

    The family with the best likelihood (by Akaike's criterion) of those whose quantiles are near
    those measured. If there is none, what was measured is taken itself.
    """
    values = np.sort(np.maximum(measured, 0)).astype(np.float64)
    if values[0] == values[-1]:
        return _made(
            values,
            format_duration(int(values[0])),
            {"value": PointEstimate(values[0], 0.0, len(values))},
        )
    # Those of 0 were less than the unit in which they were measured: no family has a 0
    least = values[values > 0.0][0]
    positive = np.where(values > 0.0, values, least / 2.0)
    low, high = _bounds(positive)
    found = [_uniform(values), *(_fit(family, positive, low, high) for family in _FAMILIES)]
    ranked = sorted((fit for fit in found if fit is not None), key=lambda fit: fit[0])
    refused = []
    for _, name, estimates in ranked:
        written: dict[str, object] = {"dist": name}
        written |= {key: _text(estimate.value) for key, estimate in estimates.items()}
        written |= {} if low is None else {"min": _text(low)}
        written |= {} if high is None else {"max": _text(high)}
        made = _made(values, written, estimates)
        worst = max(made.off, key=lambda level: made.off[level])
        if len(values) < ENOUGH or made.off[worst] <= OFF:
            return made
        refused.append(f"{name} is {made.off[worst]:.0%} off at the {worst:.0%} quantile")
    return _made(values, _empirical(values), {}, "; ".join(refused))


def _text(value: float) -> str:
    return format_duration(max(1, round(value)))


def _made(
    values: Floats,
    written: Mapping[str, object] | str,
    estimates: Mapping[str, PointEstimate],
    rejected: str = "",
) -> FittedDurations:
    made = distribution(written)
    # of a scale of seconds: a family is not refused for milliseconds
    ours = durations(made, np.array(QUANTILES))
    theirs = np.quantile(values, QUANTILES)
    off = np.maximum(np.abs(ours - theirs) - 1.0, 0.0) / np.maximum(theirs, 1.0)
    errors = dict(zip(QUANTILES, off.tolist(), strict=True))
    return FittedDurations(made, written, estimates, len(values), errors, values, rejected)


def _bounds(values: Floats) -> tuple[float | None, float | None]:
    """Ends of the scale to which durations were moved: many are equal there, and few are near."""
    low, high = values[0], values[-1]
    at_low, at_high = (values == low).sum(), (values == high).sum()
    width = max(0.05 * low, 1.0), 0.05 * high
    near_low = ((values > low) & (values <= low + width[0])).sum()
    near_high = ((values < high) & (values >= high - width[1])).sum()
    return (
        float(low) if at_low >= _AT_BOUND and at_low > near_low else None,
        float(high) if at_high >= _AT_BOUND and at_high > near_high else None,
    )


_Fit = tuple[float, str, dict[str, PointEstimate]]


def _uniform(values: Floats) -> _Fit:
    """Uniform on the span of the values, whose ends are a little beyond the outermost."""
    count = len(values)
    beyond = (values[-1] - values[0]) / max(count - 1, 1)
    ends = {"low": max(values[0] - beyond, 0.0), "high": values[-1] + beyond}
    loss = 4.0 + 2.0 * count * log(values[-1] - values[0])
    return loss, "uniform", {key: PointEstimate(end, beyond, count) for key, end in ends.items()}


def _fit(family: _Family, values: Floats, low: float | None, high: float | None) -> _Fit | None:
    """Maximum likelihood, durations at a bound counted as below or above it."""
    from scipy import stats
    from scipy.optimize import minimize

    at_low = 0 if low is None else int((values == low).sum())
    at_high = 0 if high is None else int((values == high).sum())
    inside = np.maximum(values[at_low : len(values) - at_high], 0.5)
    if len(inside) < 3:
        return None

    known = getattr(stats, family.scipy)

    def loss(at: Floats) -> float:
        # scipy's "frozen" distributions take longer to make than a density takes
        shapes, moved = family.shape(np.clip(at, -20.0, 28.0))
        total = -known.logpdf(inside, *shapes, **moved).sum()
        total -= at_low * known.logcdf(low, *shapes, **moved) if at_low else 0.0
        total -= at_high * known.logsf(high, *shapes, **moved) if at_high else 0.0
        return float(total) if np.isfinite(total) else 1e300

    with np.errstate(all="ignore"):
        start = np.array(family.start(float(values.mean()), float(values.std()), values))
        best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-5, "maxiter": 600})
        if best.fun >= 1e299:
            return None
        covariance = _covariance(loss, best.x)
    shown = family.shown(best.x)
    slopes = np.zeros((len(shown), len(best.x)))
    for column in range(len(best.x)):
        step = np.zeros(len(best.x))
        step[column] = 1e-5
        ends = [np.array([*family.shown(best.x + sign * step).values()]) for sign in (1, -1)]
        slopes[:, column] = (ends[0] - ends[1]) / 2e-5
    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, covariance, slopes), 0.0))
    if family.name not in {"triangular", "exponential"} and shown["sd"] > 100 * shown["mean"]:
        return None
    estimates = {
        key: PointEstimate(value, float(error), len(values))
        for (key, value), error in zip(shown.items(), errors, strict=True)
    }
    return 2.0 * (best.fun + len(best.x)), family.name, estimates


def _covariance(loss: Callable[[Floats], float], at: Floats) -> Floats:
    """The inverse of the information, by second differences."""
    size, step = len(at), 1e-3
    units = np.eye(size) * step
    second = np.zeros((size, size))
    for row in range(size):
        for column in range(row + 1):
            one, other = units[row], units[column]
            second[row, column] = second[column, row] = (
                loss(at + one + other) - loss(at + one - other)
                - loss(at - one + other) + loss(at - one - other)
            ) / (4.0 * step**2)  # fmt: skip
    covariance: Floats = np.linalg.pinv(second).astype(np.float64)
    return covariance


def _empirical(values: Floats) -> dict[str, object]:
    """What was measured: few durations as they are, of others those at middles of equal parts."""
    listed: Sequence[float] = values.tolist()
    if len(values) >= ENOUGH:
        listed = np.quantile(values, (np.arange(_LISTED) + 0.5) / _LISTED).tolist()
    return {"dist": "empirical", "values": [format_duration(round(value)) for value in listed]}
