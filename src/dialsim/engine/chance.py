"""Chance: uniform draws that belong to a position, never to the order of events.

Every draw is keyed by (seed, replication, organization, campaign, attempt, purpose) and has one
value per recipient. numpy's Philox (Salmon et al. 2011, "Parallel random numbers: as easy as
1, 2, 3") seeded through SeedSequence makes them in blocks of recipients, when first asked for: the
people of one variant of a scenario react as those of another (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
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
