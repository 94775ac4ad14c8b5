"""Random draws that are keyed by address and not by the order of events, and quantile tables.

Every draw has the key (seed, replication, organization, campaign, attempt, purpose), and one value
per recipient. numpy's Philox generator (Salmon et al. 2011, "Parallel random numbers: as easy as 1,
2, 3"), seeded through SeedSequence, makes the values in blocks of recipients on first use. Variants
of a scenario therefore share their random numbers (common random numbers).

Uniforms become Beta and gamma variates by inversion. scipy inverts a distribution function by
iteration, at a microsecond per value: longer than all other work for a call. Here scipy fills the
nodes of a table. Between the nodes the logarithm of the quantile is interpolated over the log odds
of the uniform, where it is smooth and has straight asymptotes. The density gives first and second
derivatives at the nodes, so quintic Hermite interpolation is exact to some 1e-12 (relative to the
quantile, or to its distance from 1).

Ids are draws, too: RFC 9562 UUIDs (version 4), derived from the seed and an address, many at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

BLOCK_BITS = 12
BLOCK = 1 << BLOCK_BITS
_WORD = 1 << 32
_KEPT_COLUMNS = 8


class Purpose(IntEnum):
    """Purpose of a draw. The numbers are part of every result: never change or reuse one."""

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
    """Return the bit generator of a key of non-negative integers."""
    if max(seed, *key) >= _WORD:
        return np.random.Philox(np.random.SeedSequence(seed, spawn_key=key))
    # SeedSequence pads a one-word seed to four words before the key. Padding here gives the same
    # state in half of the time.
    words = np.array([seed, 0, 0, 0, *key], dtype=np.uint32)
    return np.random.Philox(np.random.SeedSequence(words))


T_co = TypeVar("T_co", bound=float, covariant=True)


class Values(Protocol[T_co]):
    """One number per recipient."""

    def __getitem__(self, recipient: int) -> T_co: ...

    def block(self, block: int, size: int) -> NDArray[np.generic]:
        """Return the numbers of a block's first `size` recipients, without keeping them."""


class Same(Generic[T_co]):
    """The same number for every recipient."""

    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        self._value = value

    def __getitem__(self, recipient: int) -> T_co:
        return self._value

    def block(self, block: int, size: int) -> NDArray[np.generic]:  # noqa: ARG002 (all are alike)
        """Return the numbers of a block's first `size` recipients."""
        return np.full(size, self._value)


class Column(Generic[T_co]):
    """One number per recipient, computed in blocks on first use.

    `fill(block, size)` returns the values of a block's first `size` recipients, as `dtype`.
    """

    __slots__ = ("__weakref__", "_count", "_dtype", "_fill", "_filled", "_values", "_view")

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
        # Allocated on first access: the compiled engine uses blocks only.
        self._values = np.empty(0, dtype=dtype)
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
        # Indexing a memoryview returns a Python number, several times as fast as a numpy scalar.
        return self._view[recipient]  # type: ignore[return-value]  # as `fill` makes them

    def block(self, block: int, size: int) -> NDArray[np.generic]:
        """Return the numbers of a block's first `size` recipients, without keeping them."""
        return self._fill(block, size)


def rows_by_pair(
    first: NDArray[np.integer], second: NDArray[np.integer]
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Yield each distinct pair of values of two columns with the rows that contain it.

    Values are integers from 0 up to 2**31.
    """
    pairs = first.astype(np.int64) << 32 | second
    order = np.argsort(pairs, kind="stable")
    for start, end in pairwise(np.flatnonzero(np.diff(pairs[order], prepend=-1, append=-1))):
        rows = order[start:end]
        yield *divmod(int(pairs[rows[0]]), 1 << 32), rows


class Draws:
    """Uniform draws of one campaign's recipients, in one replication of one seed."""

    __slots__ = (
        "_columns", "_durations", "_latest", "_position", "_replication", "_rows", "_seed",
        "_wholes", "count",
    )  # fmt: skip

    def __init__(
        self,
        seed: int,
        replication: int,
        position: tuple[int, int],
        count: int,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        """`position` is (organization, campaign) in the scenario; `count` is the number of
        recipients. `rows` are the recipients' positions in the list that they were chosen from,
        which address the draws (C12).
        """
        self._seed = seed
        self._replication = replication
        self._position = position
        self.count = count
        self._rows = rows
        self._wholes: dict[tuple[int, ...], NDArray[np.float64]] = {}
        self._columns: dict[tuple[Purpose, int], Column[float]] = {}
        self._durations: WeakValueDictionary[tuple[object, ...], Column[int]]
        self._durations = WeakValueDictionary()
        self._latest: tuple[tuple[int, ...], NDArray[np.float64]] = (), np.empty(0)

    def __reduce__(self) -> tuple[type[Draws], tuple[object, ...]]:
        """Pickle the address of the draws; they are made again when they are needed."""
        address = self._seed, self._replication, self._position, self.count, self._rows
        return type(self), address

    def uniforms(
        self, purpose: Purpose, attempt: int, block: int, size: int, detail: tuple[int, ...] = ()
    ) -> NDArray[np.float64]:
        """Return the uniforms in [0, 1) of the first `size` recipients of a block; read-only.

        `attempt` is 0 for draws that a recipient keeps over all attempts. `detail` distinguishes
        several draws of one purpose (which field, which result, which POST).
        """
        if self._rows is not None:
            first = block << BLOCK_BITS
            return self._of_list(purpose, attempt, detail)[self._rows[first : first + size]]
        return self._drawn(purpose, attempt, block, size, detail)

    def _of_list(
        self, purpose: Purpose, attempt: int, detail: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Return the uniforms of the list that the recipients were chosen from."""
        assert self._rows is not None
        key = (attempt, purpose, *detail)
        if key not in self._wholes:
            # A block of chosen recipients comes from all blocks of the list. A few columns are
            # kept, for the next block that asks for them.
            if len(self._wholes) == _KEPT_COLUMNS:
                del self._wholes[next(iter(self._wholes))]
            whole = np.empty((int(self._rows.max(initial=0)) >> BLOCK_BITS) + 1 << BLOCK_BITS)
            for block in np.unique(self._rows >> BLOCK_BITS).tolist():
                drawn = self._drawn(purpose, attempt, block, BLOCK, detail)
                whole[block << BLOCK_BITS : block + 1 << BLOCK_BITS] = drawn
            self._wholes[key] = whole
        return self._wholes[key]

    def _drawn(
        self, purpose: Purpose, attempt: int, block: int, size: int, detail: tuple[int, ...]
    ) -> NDArray[np.float64]:
        key = (self._replication, *self._position, attempt, purpose, block, *detail)
        known, drawn = self._latest
        if known != key or len(drawn) != size:  # ring times of the four ends use the same draws
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
        """Return one draw per row: attempt `attempts[i]` of recipient `recipients[i]`."""
        drawn = np.empty(len(recipients), dtype=np.float64)
        for attempt, block, rows in rows_by_pair(attempts, recipients >> BLOCK_BITS):
            places = recipients[rows] & (BLOCK - 1)
            size = int(places.max()) + 1
            drawn[rows] = self.uniforms(purpose, attempt, block, size, detail)[places]
        return drawn

    def column(self, purpose: Purpose, attempt: int) -> Values[float]:
        """Return the draws of a purpose as a column."""
        column = self._columns.get((purpose, attempt))
        if column is None:

            def fill(block: int, size: int) -> NDArray[np.float64]:
                return self.uniforms(purpose, attempt, block, size)

            column = self._columns[purpose, attempt] = Column(self.count, np.float64, fill)
        return column

    def durations(
        self,
        of: Hashable,
        purpose: Purpose,
        attempt: int,
        at: Callable[[NDArray[np.float64]], NDArray[np.int64]],
    ) -> Values[int]:
        """Return durations in ms at the draws of a purpose, as a column.

        `at` maps uniforms to durations by the distribution `of`. Behaviours with an equal
        distribution share the column, as long as one of them is in use.
        """
        key = of, purpose, attempt
        column = self._durations.get(key)
        if column is None:

            def fill(block: int, size: int) -> NDArray[np.int64]:
                return at(self.uniforms(purpose, attempt, block, size))

            column = self._durations[key] = Column(self.count, np.int64, fill)
        return column


Floats = NDArray[np.float64]

_CELLS = 1024
_REACH = 37.5  # log odds of uniforms with 53 bits are within ±36.8
_WIDTH = 2 * _REACH / _CELLS
_TABLES = 64  # tables kept; an attempt needs few
_LEAST_CONCENTRATION = (
    0.1  # below, almost all mass is at 0 and 1, and the step between is too steep for the table
)
# Range of shapes for which the table is exact enough; beyond it, gamma variates are too steep or
# too narrow.
_SHAPES = (0.05, 1e6)


def beta_quantiles(a: float, b: float, uniforms: Floats) -> Floats:
    """Return Beta variates at uniforms in [0, 1)."""
    from scipy import special

    if a + b < _LEAST_CONCENTRATION:
        exact: Floats = special.betaincinv(a, b, uniforms)
        return exact
    quantiles: Floats = special.expit(_interpolated(_beta_table(a, b), uniforms))
    quantiles[uniforms == 0.0] = 0.0
    return quantiles


def gamma_quantiles(shape: float, uniforms: Floats) -> Floats:
    """Return gamma variates of scale 1 at uniforms in [0, 1)."""
    from scipy import special

    if not _SHAPES[0] <= shape <= _SHAPES[1]:
        exact: Floats = special.gammaincinv(shape, uniforms)
        return exact
    quantiles: Floats = np.exp(_interpolated(_gamma_table(shape), uniforms))
    quantiles[uniforms == 0.0] = 0.0
    return quantiles


@lru_cache(_TABLES)
def _beta_table(a: float, b: float) -> Floats:
    """Return the interpolation table of the log odds of a Beta variate."""
    from scipy import special

    odds, below, above = _nodes()
    # Each tail is computed from the end of the scale where uniforms and quantiles keep their
    # precision.
    low = odds <= 0
    x, rest = np.empty_like(odds), np.empty_like(odds)
    x[low], x[~low] = special.betaincinv(a, b, below[low]), special.betainccinv(a, b, above[~low])
    rest[low] = special.betainccinv(b, a, below[low])
    rest[~low] = special.betaincinv(b, a, above[~low])
    scale = special.betaln(a, b)
    # Where x is too small for a float, the distribution function is x^a / (a B(a, b)).
    tiny = np.finfo(np.float64).tiny
    log_x = np.where(x > tiny, np.log(np.maximum(x, tiny)), (np.log(below) + np.log(a) + scale) / a)
    log_rest = np.where(
        rest > tiny, np.log(np.maximum(rest, tiny)), (np.log(above) + np.log(b) + scale) / b
    )
    log_x, log_rest = (
        np.where(x < 0.5, log_x, np.log1p(-np.minimum(rest, 0.5))),
        np.where(x < 0.5, np.log1p(-np.minimum(x, 0.5)), log_rest),
    )
    # Logarithm of the density of the log odds of x.
    density = a * log_x + b * log_rest - scale
    slope = np.exp(np.log(below) + np.log(above) - density)
    bend = slope * (above - below - slope * (a * rest - b * x))
    return _table(log_x - log_rest, slope, bend)


@lru_cache(_TABLES)
def _gamma_table(shape: float) -> Floats:
    """Return the interpolation table of the logarithm of a gamma variate."""
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
    """Return the log odds at the nodes, the uniforms u with these log odds, and 1 − u."""
    from scipy import special

    odds = np.linspace(-_REACH, _REACH, _CELLS + 1)
    return odds, special.expit(odds), special.expit(-odds)


def _table(value: Floats, slope: Floats, bend: Floats) -> Floats:
    """Return the quintic polynomials with given values and first two derivatives at the nodes.

    The table has a row per power and a column per cell between two nodes.
    """
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
    """Evaluate a table at uniforms in [0, 1)."""
    # 0 has no log odds; callers replace its value.
    inside = np.maximum(uniforms, 2.0**-54)
    position = (np.log(inside) - np.log1p(-inside) + _REACH) / _WIDTH
    cell = position.astype(np.intp)
    position -= cell
    value: Floats = table[5].take(cell)
    for power in (4, 3, 2, 1, 0):
        value = value * position + table[power].take(cell)
    return value


# slices of the hexadecimal digits between the dashes
_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


class FormerSeed(int):
    """Seed of a run that an earlier dialsim began: its ids are UUIDs of version 8, not 4.

    The type of the seed decides between them, because ids are computed from nothing but the seed
    and the address of what they name.
    """


def call_ids(
    seed: int,
    organization: int,
    campaign: int,
    recipients: NDArray[np.integer],
    calls: NDArray[np.integer],
) -> NDArray[np.bytes_]:
    """Return the ids of calls: call `calls[i]` (from 1) of recipient `recipients[i]` (from 0).

    The result is ASCII text of dtype S36, in the order given.
    """
    return _ids(seed, (organization, campaign), Purpose.CALL_ID, recipients, calls)


def session_ids(
    seed: int,
    organization: int,
    campaign: int,
    recipients: NDArray[np.integer],
    calls: NDArray[np.integer],
) -> NDArray[np.bytes_]:
    """Return the session ids of calls (F2), with the arguments of `call_ids`."""
    return _ids(seed, (organization, campaign), Purpose.SESSION_ID, recipients, calls)


def recipient_ids(
    seed: int, organization: int, campaign: int, recipients: NDArray[np.integer]
) -> NDArray[np.bytes_]:
    """Return the ids of recipients (from 0) as text of dtype S36."""
    nothing = np.zeros(len(recipients), dtype=np.int64)
    return _ids(seed, (organization, campaign), Purpose.RECIPIENT_ID, recipients, nothing)


def organization_id(seed: int, organization: int) -> str:
    """Return the id of an organization without a fixed one."""
    return _id(seed, (organization, 0), Purpose.ORGANIZATION_ID)


def campaign_id(seed: int, organization: int, campaign: int) -> str:
    """Return the id of a campaign without a fixed one."""
    return _id(seed, (organization, campaign), Purpose.CAMPAIGN_ID)


def agent_id(seed: int, organization: int, agent: int) -> str:
    """Return the id of an agent without a fixed one."""
    return _id(seed, (organization, agent), Purpose.AGENT_ID)


def _id(seed: int, position: tuple[int, int], purpose: Purpose) -> str:
    only = np.zeros(1, dtype=np.int64)
    return bytes(_ids(seed, position, purpose, only, only)[0]).decode()


def _ids(
    seed: int,
    position: tuple[int, int],
    purpose: Purpose,
    recipients: NDArray[np.integer],
    calls: NDArray[np.integer],
) -> NDArray[np.bytes_]:
    words = np.empty((len(recipients), 2), dtype=np.uint64)
    for call, block, rows in rows_by_pair(calls, recipients >> BLOCK_BITS):
        places = recipients[rows].astype(np.int64) & (BLOCK - 1)
        # Philox makes four words per step, which is two ids.
        start = int(places.min()) & ~1
        words_of = generator(seed, (0, *position, call, purpose, block))
        words_of.advance(start // 2)
        drawn = words_of.random_raw(2 * (int(places.max()) + 1 - start))
        words[rows] = drawn.reshape(-1, 2).take(places - start, axis=0)
    return _text(words, 8 if isinstance(seed, FormerSeed) else 4)


def _text(words: NDArray[np.uint64], version: int) -> NDArray[np.bytes_]:
    octets = words.astype(">u8").view(np.uint8).reshape(-1, 16)
    octets[:, 6] = octets[:, 6] & 0x0F | version << 4
    octets[:, 8] = octets[:, 8] & 0x3F | 0x80  # variant 10
    digits = np.frombuffer(octets.tobytes().hex().encode(), dtype=np.uint8).reshape(-1, 32)
    text = np.full((len(words), 36), ord("-"), dtype=np.uint8)
    for dashes, (first, end) in enumerate(_GROUPS):
        text[:, first + dashes : end + dashes] = digits[:, first:end]
    return text.view("S36").ravel()
