"""Distributions of measured durations: the best-fitting family, or the measurements themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import durations, weibull_shape
from dialsim.logs.answering import PointEstimate, slopes
from dialsim.scenario.distribution import Distribution, distribution
from dialsim.scenario.units import format_duration, parse_duration

Floats = NDArray[np.float64]

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Levels at which quantiles of a family are compared with the measurements."""
OFF = 0.1
"""Largest relative error of a quantile for a family to be accepted."""
ENOUGH = 100
"""Fewest durations for a comparison of quantiles; below, likelihood alone selects the family."""
_LISTED = 400
"""Number of values of an empirical distribution made from many durations."""
_AT_BOUND = 5
"""Number of equal durations at an end that indicate a bound."""


@dataclass(frozen=True, slots=True)
class FittedDurations:
    """Distribution fitted to durations.

    `estimates` are its parameters (ms), empty for an empirical distribution. `off` are the
    relative errors of the quantiles, by level. `rejected` is the reason why no family was selected,
    for an empirical distribution.
    """

    distribution: Distribution
    written: Mapping[str, object] | str
    estimates: Mapping[str, PointEstimate]
    count: int
    off: Mapping[float, float]
    measured: Floats
    rejected: str = ""

    def draw(self, chance: np.random.Generator) -> Mapping[str, object] | str:
        """Draw another distribution that may have made these durations, in the notation of a
        scenario.

        Parameters are drawn around their estimates, each in its logarithm. An empirical
        distribution is scaled by a factor drawn around 1, with the standard error of the mean.
        """
        if isinstance(self.written, str):
            return self.written
        values = self.written.get("values")
        # An empirical distribution has no parameters; its mean is drawn, and all values scaled with
        # it.
        if isinstance(values, tuple):
            mean = float(self.measured.mean())
            error = float(self.measured.std()) / sqrt(len(self.measured)) / mean if mean else 0.0
            factor = exp(chance.normal(0.0, error))
            moved = [format_duration(round(parse_duration(text) * factor)) for text in values]
            return {**self.written, "values": moved}
        drawn = {
            name: max(1, round(one.value * exp(chance.normal(0.0, one.error / one.value))))
            for name, one in self.estimates.items()
            if one.value > 0
        }
        amounts = [*drawn.values()]
        if "low" in drawn:  # ends and mode of a triangular distribution keep their order
            amounts.sort()
        texts = map(format_duration, amounts)
        return {**self.written, **dict(zip(drawn, texts, strict=True))}

    def upper_mean(self, level: float) -> float:
        """Return the mean (ms) of the durations above a quantile."""
        middles = level + (1.0 - level) * (np.arange(400) + 0.5) / 400
        return float(durations(self.distribution, middles).mean())

    @property
    def quantiles(self) -> Floats:
        """Quantiles at the middles of a hundred equal parts (ms)."""
        middles: Floats = (np.arange(100, dtype=np.float64) + 0.5) / 100.0
        return durations(self.distribution, middles).astype(np.float64)


_Shape = tuple[tuple[float, ...], dict[str, float]]
"""Arguments of scipy's distribution functions: shapes, then `loc` and `scale`."""


@dataclass(frozen=True, slots=True)
class _Family:
    """Family of distributions: parameters on the real line, for scipy and in a file's notation."""

    name: str
    scipy: str
    start: Callable[[float, float, Floats], list[float]]  # from mean and sd
    shape: Callable[[Floats], _Shape]
    shown: Callable[[Floats], dict[str, float]]


def _spread(name: str, scipy: str, shape: Callable[[float, float], _Shape]) -> _Family:
    """Return a family with mean and standard deviation; the parameters are their logarithms."""
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
    """Fit a distribution to durations (ms); at least one.

    The family with the best likelihood (Akaike's criterion) is selected among those whose quantiles
    are close to the measured ones. Without such a family the result is the empirical distribution.
    """
    values = np.sort(np.maximum(measured, 0)).astype(np.float64)
    if values[0] == values[-1]:
        return _made(
            values,
            format_duration(int(values[0])),
            {"value": PointEstimate(values[0], 0.0, len(values))},
        )
    # Durations of 0 were shorter than the unit of measurement; no family contains 0.
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
        # The best likelihood may still miss the tail: only a family with all quantiles right is
        # taken.
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
    # Rounding to 1 ms is no reason to reject a family.
    ours = durations(made, np.array(QUANTILES))
    theirs = np.quantile(values, QUANTILES)
    off = np.maximum(np.abs(ours - theirs) - 1.0, 0.0) / np.maximum(theirs, 1.0)
    errors = dict(zip(QUANTILES, off.tolist(), strict=True))
    return FittedDurations(made, written, estimates, len(values), errors, values, rejected)


def _bounds(values: Floats) -> tuple[float | None, float | None]:
    """Return the bounds at which durations were clipped; None where they were not.

    At a bound, more durations are equal to the extreme value than are close to it.
    """
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
    """Return a uniform distribution that reaches slightly beyond the extreme values."""
    count = len(values)
    beyond = (values[-1] - values[0]) / max(count - 1, 1)
    ends = {"low": max(values[0] - beyond, 0.0), "high": values[-1] + beyond}
    # AIC with two parameters, as of the other families below.
    loss = 4.0 + 2.0 * count * log(values[-1] - values[0])
    return loss, "uniform", {key: PointEstimate(end, beyond, count) for key, end in ends.items()}


def _fit(family: _Family, values: Floats, low: float | None, high: float | None) -> _Fit | None:
    """Fit by maximum likelihood; durations at a bound are treated as censored."""
    from scipy import stats
    from scipy.optimize import minimize

    at_low = 0 if low is None else int((values == low).sum())
    at_high = 0 if high is None else int((values == high).sum())
    inside = np.maximum(values[at_low : len(values) - at_high], 0.5)
    if len(inside) < 3:
        return None

    known = getattr(stats, family.scipy)

    def loss(at: Floats) -> float:
        # Creating scipy's frozen distributions takes longer than evaluating a density.
        shapes, moved = family.shape(np.clip(at, -20.0, 28.0))
        total = -known.logpdf(inside, *shapes, **moved).sum()
        total -= at_low * known.logcdf(low, *shapes, **moved) if at_low else 0.0
        total -= at_high * known.logsf(high, *shapes, **moved) if at_high else 0.0
        return float(total) if np.isfinite(total) else 1e300

    with np.errstate(all="ignore"):
        start = np.array(family.start(float(values.mean()), float(values.std()), values))
        best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-5, "maxiter": 600})
        # No parameters tried gave a finite likelihood.
        if best.fun >= 1e299:
            return None
        covariance = _covariance(loss, best.x)
    shown = family.shown(best.x)
    by = slopes(lambda at: np.array([*family.shown(at).values()]), best.x, len(best.x))
    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", by, covariance, by), 0.0))
    if family.name not in {"triangular", "exponential"} and shown["sd"] > 100 * shown["mean"]:
        return None
    estimates = {
        key: PointEstimate(value, float(error), len(values))
        for (key, value), error in zip(shown.items(), errors, strict=True)
    }
    # AIC (Akaike 1974), so that families with more parameters don't win by those alone.
    return 2.0 * (best.fun + len(best.x)), family.name, estimates


def _covariance(loss: Callable[[Floats], float], at: Floats) -> Floats:
    """Return the inverse of the information matrix, by second differences of the loss."""
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
    # pinv: the information is singular if a parameter is not determined.
    covariance: Floats = np.linalg.pinv(second).astype(np.float64)
    return covariance


def _empirical(measured: Floats) -> dict[str, object]:
    """Return the empirical distribution: few durations as they are, many by quantiles at the
    middles of equal parts.
    """
    listed: Sequence[float] = measured.tolist()
    if len(measured) >= ENOUGH:
        listed = np.quantile(measured, (np.arange(_LISTED) + 0.5) / _LISTED).tolist()
    # A tuple: YAML gets it on few lines
    values = tuple(format_duration(round(value)) for value in listed)
    return {"dist": "empirical", "values": values}
