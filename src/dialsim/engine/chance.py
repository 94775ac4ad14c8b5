"""Chance: uniform draws that belong to a position, not to the order of events, and quantiles.

Every draw is keyed by (seed, replication, organization, campaign, attempt, purpose) and has one
value per recipient. numpy's Philox (Salmon et al. 2011, "Parallel random numbers: as easy as
1, 2, 3") seeded through SeedSequence makes them in blocks of recipients, when first asked for: the
people of one variant of a scenario react as those of another (common random numbers).

Uniforms become Beta and gamma variates by the inverse of their distribution functions. scipy finds
it by iteration, which takes a microsecond a value: longer than everything else that a call costs.
Here it does so at the nodes of a table, and between them the logarithm of the quantile is
interpolated over the log odds of the uniform, where it is smooth and has straight asymptotes. As
the density gives both of its derivatives at the nodes, quintic Hermite interpolation is exact to
some 1e-12 (relative to the quantile, or to its distance from 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

BLOCK_BITS = 12
BLOCK = 1 << BLOCK_BITS
_WORD = 1 << 32


class Purpose(IntEnum):
    """What a draw is for. The numbers are part of every result: never change or reuse one."""

    REACHABLE = 1
    OWN_CHANCE = 2
    OUTCOME = 3
    SETUP_TIME = 4
    RING_TIME = 5
    TALK_TIME = 6
    CALLER_ID = 7
    VOICE = 8
    FLAW = 20
    LATE_RESULT = 21
    ANALYSIS_DELAY = 22
    LATE_RESULT_DELAY = 23
    FUNNEL = 24
    FIELD = 25
    REANALYSIS = 26
    RECEIVER_LATENCY = 27
    RECEIVER_ERROR = 28
    CALL_ID = 100
    SESSION_ID = 101
    RECIPIENT_ID = 102
    CAMPAIGN_ID = 103
    AGENT_ID = 104
    ORGANIZATION_ID = 105
    INJECTED_FAULT = 110


def generator(seed: int, key: tuple[int, ...]) -> np.random.Philox:
    """The bit generator of a key (non-negative integers)."""
    if max(seed, *key) >= _WORD:
        return np.random.Philox(np.random.SeedSequence(seed, spawn_key=key))
    # numpy fills a seed of one word up to four before the key; so made it takes half of the time
    words = np.array([seed, 0, 0, 0, *key], dtype=np.uint32)
    return np.random.Philox(np.random.SeedSequence(words))


T_co = TypeVar("T_co", bound=float, covariant=True)


class Values(Protocol[T_co]):
    """One number per recipient."""

    def __getitem__(self, recipient: int) -> T_co: ...

    def block(self, block: int, size: int) -> NDArray[np.generic]:
        """The numbers of a block's first `size` recipients; they aren't kept."""


class Same(Generic[T_co]):
    """The same number for every recipient."""

    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        self._value = value

    def __getitem__(self, recipient: int) -> T_co:
        return self._value

    def block(self, block: int, size: int) -> NDArray[np.generic]:  # noqa: ARG002 (all are alike)
        """The numbers of a block's first `size` recipients."""
        return np.full(size, self._value)


class Column(Generic[T_co]):
    """One number per recipient, computed block by block when first asked for.

    `fill(block, size)` yields the values of a block's first `size` recipients, as `dtype`.
    """

    __slots__ = ("_count", "_dtype", "_fill", "_filled", "_values", "_view")

    def __init__(
        self,
        count: int,
        dtype: type[np.float64] | type[np.int64],
        fill: Callable[[int, int], NDArray[np.float64] | NDArray[np.int64]],
    ) -> None:
        self._count = count
        self._dtype = dtype
        self._fill = fill
        self._filled = bytearray((count >> BLOCK_BITS) + 1)
        self._values = np.empty(0, dtype=dtype)  # the compiled engine asks for blocks only
        self._view = self._values.data

    def __getitem__(self, recipient: int) -> T_co:
        block = recipient >> BLOCK_BITS
        if not self._filled[block]:
            if not len(self._values):
                self._values = np.empty(self._count, dtype=self._dtype)
                self._view = self._values.data
            first = block << BLOCK_BITS
            size = min(BLOCK, self._count - first)
            self._values[first : first + size] = self._fill(block, size)
            self._filled[block] = 1
        return self._view[recipient]  # type: ignore[return-value]  # as `fill` makes them

    def block(self, block: int, size: int) -> NDArray[np.generic]:
        """The numbers of a block's first `size` recipients; they aren't kept."""
        return self._fill(block, size)


def rows_by_pair(
    first: NDArray[np.integer], second: NDArray[np.integer]
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Each different pair of values of two columns, and the rows that have it.

    Values are whole numbers from 0 on, below 2**31.
    """
    pairs = first.astype(np.int64) << 32 | second
    order = np.argsort(pairs, kind="stable")
    for start, end in pairwise(np.flatnonzero(np.diff(pairs[order], prepend=-1, append=-1))):
        rows = order[start:end]
        yield *divmod(int(pairs[rows[0]]), 1 << 32), rows


class Draws:
    """The uniform draws of one campaign's recipients, in one replication of one seed."""

    __slots__ = ("_columns", "_latest", "_position", "_replication", "_seed", "count")

    def __init__(self, seed: int, replication: int, position: tuple[int, int], count: int) -> None:
        """`position` is that of the organization and of the campaign; `count` that of people."""
        self._seed = seed
        self._replication = replication
        self._position = position
        self.count = count
        self._columns: dict[tuple[Purpose, int], Column[float]] = {}
        self._latest: tuple[tuple[int, ...], NDArray[np.float64]] = (), np.empty(0)

    def uniforms(
        self, purpose: Purpose, attempt: int, block: int, size: int, detail: tuple[int, ...] = ()
    ) -> NDArray[np.float64]:
        """Values in [0, 1) of the first `size` recipients of a block of `BLOCK` recipients.

        `attempt` is 0 for what a person keeps over all attempts; `detail` tells apart several
        draws of one purpose (which field, which result, which POST). They are not to be written to.
        """
        key = (self._replication, *self._position, attempt, purpose, block, *detail)
        known, drawn = self._latest
        if known != key or len(drawn) != size:  # ring times are wanted for each end in turn
            drawn = np.random.Generator(generator(self._seed, key)).random(size)
            self._latest = key, drawn
        return drawn

    def of(
        self,
        purpose: Purpose,
        attempts: NDArray[np.integer],
        recipients: NDArray[np.integer],
        detail: tuple[int, ...] = (),
    ) -> NDArray[np.float64]:
        """The draws of many at once: of `attempts[i]` of `recipients[i]`, in that order."""
        drawn = np.empty(len(recipients), dtype=np.float64)
        for attempt, block, rows in rows_by_pair(attempts, recipients >> BLOCK_BITS):
            places = recipients[rows] & (BLOCK - 1)
            size = int(places.max()) + 1
            drawn[rows] = self.uniforms(purpose, attempt, block, size, detail)[places]
        return drawn

    def column(self, purpose: Purpose, attempt: int) -> Values[float]:
        """The draws of a purpose, one per recipient."""
        column = self._columns.get((purpose, attempt))
        if column is None:

            def fill(block: int, size: int) -> NDArray[np.float64]:
                return self.uniforms(purpose, attempt, block, size)

            column = self._columns[purpose, attempt] = Column(self.count, np.float64, fill)
        return column


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
