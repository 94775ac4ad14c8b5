"""Quantiles of Beta and gamma variates, many at a time.

scipy inverts their distribution functions by iteration, which takes a microsecond a value: longer
than everything else that a call costs. Here it does so at the nodes of a table, and between them
the logarithm of the quantile is interpolated over the log odds of the uniform, where it is smooth
and has straight asymptotes. As the density gives both of its derivatives at the nodes, quintic
Hermite interpolation is exact to some 1e-12 (relative to the quantile, or to its distance from 1).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CELLS = 1024
_REACH = 37.5  # log odds of uniforms of 53 bits are inside ±36.8
_WIDTH = 2 * _REACH / _CELLS
_TABLES = 64  # kept; an attempt needs few
_LEAST_CONCENTRATION = (
    0.1  # below, nearly everybody is at 0 or 1, and the step between is too steep
)
_SHAPES = (0.05, 1e6)  # of gamma variates; beyond, they are too steep or too narrow for the table


def beta_quantiles(a: float, b: float, uniforms: Floats) -> Floats:
    """Beta variates at uniforms in [0, 1)."""
    from scipy import special

    if a + b < _LEAST_CONCENTRATION:
        exact: Floats = special.betaincinv(a, b, uniforms)
        return exact
    quantiles: Floats = special.expit(_interpolated(_beta_table(a, b), uniforms))
    quantiles[uniforms == 0.0] = 0.0
    return quantiles


def gamma_quantiles(shape: float, uniforms: Floats) -> Floats:
    """Gamma variates of scale 1 at uniforms in [0, 1)."""
    from scipy import special

    if not _SHAPES[0] <= shape <= _SHAPES[1]:
        exact: Floats = special.gammaincinv(shape, uniforms)
        return exact
    quantiles: Floats = np.exp(_interpolated(_gamma_table(shape), uniforms))
    quantiles[uniforms == 0.0] = 0.0
    return quantiles


@lru_cache(_TABLES)
def _beta_table(a: float, b: float) -> Floats:
    """The table for the log odds of a Beta variate."""
    from scipy import special

    odds, below, above = _nodes()
    # Each tail from the end at which uniforms and quantiles are exact
    low = odds <= 0
    x, rest = np.empty_like(odds), np.empty_like(odds)
    x[low], x[~low] = special.betaincinv(a, b, below[low]), special.betainccinv(a, b, above[~low])
    rest[low] = special.betainccinv(b, a, below[low])
    rest[~low] = special.betaincinv(b, a, above[~low])
    scale = special.betaln(a, b)
    # The distribution function is x^a / (a B(a, b)) where x is too small for a float
    tiny = np.finfo(np.float64).tiny
    log_x = np.where(x > tiny, np.log(np.maximum(x, tiny)), (np.log(below) + np.log(a) + scale) / a)
    log_rest = np.where(
        rest > tiny, np.log(np.maximum(rest, tiny)), (np.log(above) + np.log(b) + scale) / b
    )
    log_x, log_rest = (
        np.where(x < 0.5, log_x, np.log1p(-np.minimum(rest, 0.5))),
        np.where(x < 0.5, np.log1p(-np.minimum(x, 0.5)), log_rest),
    )
    density = a * log_x + b * log_rest - scale  # of the log odds of x, its logarithm
    slope = np.exp(np.log(below) + np.log(above) - density)
    bend = slope * (above - below - slope * (a * rest - b * x))
    return _table(log_x - log_rest, slope, bend)


@lru_cache(_TABLES)
def _gamma_table(shape: float) -> Floats:
    """The table for the logarithm of a gamma variate."""
    from scipy import special

    odds, below, above = _nodes()
    low = odds <= 0
    x = np.empty_like(odds)
    x[low] = special.gammaincinv(shape, below[low])
    x[~low] = special.gammainccinv(shape, above[~low])
    tiny = np.finfo(np.float64).tiny
    log_x = np.where(
        x > tiny,
        np.log(np.maximum(x, tiny)),
        (np.log(below) + special.gammaln(shape + 1.0)) / shape,
    )
    density = shape * log_x - x - special.gammaln(shape)
    slope = np.exp(np.log(below) + np.log(above) - density)
    bend = slope * (above - below - slope * (shape - x))
    return _table(log_x, slope, bend)


def _nodes() -> tuple[Floats, Floats, Floats]:
    """The log odds at the nodes, the uniforms u that have them, and 1 − u."""
    from scipy import special

    odds = np.linspace(-_REACH, _REACH, _CELLS + 1)
    return odds, special.expit(odds), special.expit(-odds)


def _table(value: Floats, slope: Floats, bend: Floats) -> Floats:
    """By power and cell, the coefficients of the polynomials that have these at their ends."""
    begin, end = value[:-1], value[1:]
    rise = end - begin
    first, last = slope[:-1] * _WIDTH, slope[1:] * _WIDTH
    bent, bends = bend[:-1] * _WIDTH**2, bend[1:] * _WIDTH**2
    return np.stack(
        [
            begin,
            first,
            bent / 2.0,
            10.0 * rise - 6.0 * first - 4.0 * last - 1.5 * bent + 0.5 * bends,
            -15.0 * rise + 8.0 * first + 7.0 * last + 1.5 * bent - bends,
            6.0 * rise - 3.0 * first - 3.0 * last - 0.5 * bent + 0.5 * bends,
        ]
    )


def _interpolated(table: Floats, uniforms: Floats) -> Floats:
    """The values of a table at uniforms in [0, 1)."""
    inside = np.maximum(uniforms, 2.0**-54)  # 0 has no log odds; it is the caller's
    place = (np.log(inside) - np.log1p(-inside) + _REACH) / _WIDTH
    cell = place.astype(np.intp)
    place -= cell
    value: Floats = table[5].take(cell)
    for power in (4, 3, 2, 1, 0):
        value = value * place + table[power].take(cell)
    return value
