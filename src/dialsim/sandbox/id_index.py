"""An index from ids to positions that grows by batches and stays small."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LOW_HALF = 2**64 - 1


class _Run(NamedTuple):
    """Ids in ascending order, as two halves of 64 bits (uint64), and what they lead to (int64)."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    places: NDArray[np.int64]


class IdIndex:
    """UUIDs of anything that has a whole number for a position; upper and lower case are one.

    Runs are sorted, and merged as soon as one is not much longer than the next (a log-structured
    merge): n ids take 24 n bytes, and a look-up a binary search in O(log n) runs.
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(len(run.places) for run in self._runs)

    def add(self, ids: NDArray[np.bytes_], places: NDArray[np.int64]) -> None:
        """Add ids (text of dtype S36 in the form of UUIDs) and their places."""
        if len(ids):
            self._runs.append(_sorted(*_halves(ids), places))
        while len(self._runs) > 1 and len(self._runs[-2].places) < 2 * len(self._runs[-1].places):
            later, earlier = self._runs.pop(), self._runs.pop()
            columns = zip(earlier, later, strict=True)
            self._runs.append(_sorted(*(np.concatenate(pair) for pair in columns)))

    def find(self, identifier: str) -> int | None:
        """The place of an id in the form of a UUID; None if it is not here."""
        whole = int(identifier.replace("-", ""), 16)
        high, low = np.uint64(whole >> 64), np.uint64(whole & _LOW_HALF)
        for run in self._runs:
            row = int(np.searchsorted(run.high, high))
            while row < len(run.high) and run.high[row] == high:
                if run.low[row] == low:
                    return int(run.places[row])
                row += 1
        return None


def _sorted(high: NDArray[np.uint64], low: NDArray[np.uint64], places: NDArray[np.int64]) -> _Run:
    order = np.argsort(high, kind="stable")
    return _Run(high[order], low[order], places[order])


def _halves(ids: NDArray[np.bytes_]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    digits = ids.tobytes().replace(b"-", b"").decode()
    words = np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64).reshape(-1, 2)
    return words[:, 0], words[:, 1]
