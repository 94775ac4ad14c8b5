"""Inverse distribution functions: a uniform draw becomes a duration in whole milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, sqrt
from typing import TYPE_CHECKING, assert_never

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dialsim.scenario.distribution import Distribution, Weibull

Floats = NDArray[np.float64]
Quantile = Callable[[Floats], Floats]


def durations(distribution: Distribution, uniforms: Floats) -> NDArray[np.int64]:
    """Durations in ms at the given uniforms: clipped to min and max, rounded half up."""
    values = quantile(distribution)(uniforms)
    if distribution.min is not None or distribution.max is not None:
        values = np.clip(values, distribution.min, distribution.max)
    return np.floor(np.maximum(values, 0.0) + 0.5).astype(np.int64)


def quantile(distribution: Distribution) -> Quantile:  # noqa: PLR0911 (one return per family)
    """The inverse distribution function, before clipping; works on arrays of uniforms in [0, 1)."""
    from scipy import special

    match distribution.dist:
        case "constant":
            value = distribution.value
            return lambda u: np.full(u.shape, float(value))
        case "uniform":
            low, width = distribution.low, distribution.high - distribution.low
            return lambda u: low + width * u
        case "exponential":
            mean = distribution.mean
            return lambda u: -mean * np.log1p(-u)
        case "lognormal":
            # sigma² = ln(1 + (sd/mean)²), mu = ln(mean) − sigma²/2
            variance = log(1.0 + (distribution.sd / distribution.mean) ** 2)
            location, scale = log(distribution.mean) - variance / 2.0, sqrt(variance)
            return lambda u: np.exp(location + scale * special.ndtri(u))
        case "gamma":
            # shape = (mean/sd)², scale = sd²/mean
            if distribution.sd == 0:
                mean = distribution.mean
                return lambda u: np.full(u.shape, float(mean))
            shape = (distribution.mean / distribution.sd) ** 2
            scale = distribution.mean / shape
            return lambda u: scale * special.gammaincinv(shape, u)
        case "weibull":
            return _weibull(distribution)
        case "triangular":
            return _triangular(distribution.low, distribution.mode, distribution.high)
        case "empirical":
            values = np.sort(np.asarray(distribution.values, dtype=np.float64))
            return lambda u: values[(u * len(values)).astype(np.intp)]
        case _ as unreachable:
            assert_never(unreachable)


def _weibull(distribution: Weibull) -> Quantile:
    mean, sd = distribution.mean, distribution.sd
    if sd == 0:
        return lambda u: np.full(u.shape, float(mean))
    shape = weibull_shape(sd / mean)
    scale = mean / exp(lgamma(1.0 + 1.0 / shape))
    return lambda u: scale * (-np.log1p(-u)) ** (1.0 / shape)


def weibull_shape(variation: float) -> float:
    """The shape k whose coefficient of variation sd/mean is `variation`.

    Solves Γ(1+2/k) / Γ(1+1/k)² = 1 + variation² for 1/k by bisection; the left side grows with 1/k.
    """
    target = log(1.0 + variation * variation)
    low, high = 0.0, 1.0
    while lgamma(1.0 + 2.0 * high) - 2.0 * lgamma(1.0 + high) < target:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if lgamma(1.0 + 2.0 * middle) - 2.0 * lgamma(1.0 + middle) < target:
            low = middle
        else:
            high = middle
    return 2.0 / (low + high)


def _triangular(low: float, mode: float, high: float) -> Quantile:
    width = high - low
    if width == 0:
        return lambda u: np.full(u.shape, float(low))
    turn = (mode - low) / width

    def at(u: Floats) -> Floats:
        rising = low + np.sqrt(u * width * (mode - low))
        falling = high - np.sqrt((1.0 - u) * width * (high - mode))
        return np.where(u < turn, rising, falling)

    return at
