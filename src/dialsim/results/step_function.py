"""Step functions of time: how many calls are under way, waiting, or allowed, at each instant."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dialsim.results.spans import Spans


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different values of a sorted column (np.unique hashes, which takes ten times as long)."""
    different: NDArray[np.int64] = values[np.diff(values, prepend=values[:1] - 1) != 0]
    return different


class StepFunction:
    """An integer that is 0 before `at[0]` and `value[k]` from `at[k]` up to `at[k + 1]`.

    `at` is strictly increasing (ms), `value` holds what stands after all that happens at that
    instant; both are int64 and of equal length.
    """

    __slots__ = ("at", "value")

    def __init__(self, at: NDArray[np.int64], value: NDArray[np.int64]) -> None:
        self.at = at
        self.value = value

    @classmethod
    def of_changes(cls, at: NDArray[np.int64], change: NDArray[np.integer]) -> StepFunction:
        """The running sum of changes; `at` is sorted, several changes at one instant are one."""
        ends = np.flatnonzero(np.append(at[1:] != at[:-1], True)) if len(at) else at
        return cls(at[ends], np.cumsum(change, dtype=np.int64)[ends])._compact()

    @classmethod
    def of_spans(cls, spans: Spans) -> StepFunction:
        """1 inside the spans (disjoint, not touching), 0 outside."""
        return cls(spans.ravel(), np.tile(np.array([1, 0], dtype=np.int64), len(spans)))

    @classmethod
    def total(cls, parts: Iterable[StepFunction]) -> StepFunction:
        """The sum of step functions."""
        functions = list(parts)
        if len(functions) == 1:
            return functions[0]
        none = np.empty(0, dtype=np.int64)
        at = np.concatenate([none, *(part.at for part in functions)])
        change = np.concatenate([none, *(np.diff(part.value, prepend=0) for part in functions)])
        order = np.argsort(at, kind="stable")
        return cls.of_changes(at[order], change[order])

    def __call__(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """The value at each of the instants."""
        values: NDArray[np.int64] = np.append(self.value, 0)[self._piece(at)]
        return values

    def __sub__(self, other: StepFunction) -> StepFunction:
        return StepFunction.total([self, StepFunction(other.at, -other.value)])

    def positive(self) -> StepFunction:
        """1 where the value is above 0, else 0."""
        return StepFunction(self.at, (self.value > 0).astype(np.int64))._compact()

    def integral(self, spans: Spans) -> int:
        """The integral over the spans, in ms × value."""
        area = self._area(spans.ravel())
        return int((area[1::2] - area[0::2]).sum())

    def means(self, edges: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean value between each instant and the next; one less than there are instants."""
        means: NDArray[np.float64] = np.diff(self._area(edges)) / np.diff(edges)
        return means

    def _area(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """The integral from the beginning to each of the instants, in ms × value."""
        if not len(self.at):
            return np.zeros(len(at), dtype=np.int64)
        upto = np.append(0, np.cumsum(self.value[:-1] * np.diff(self.at)))
        edges = np.maximum(at, self.at[0])
        piece = self._piece(edges)
        area: NDArray[np.int64] = upto[piece] + self.value[piece] * (edges - self.at[piece])
        return area

    @property
    def peak(self) -> int:
        """The largest value; 0 if it never leaves 0."""
        return int(self.value.max(initial=0))

    def _piece(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """The index of the piece that holds each instant; -1 before the first."""
        pieces: NDArray[np.int64] = np.searchsorted(self.at, at, side="right") - 1
        return pieces

    def _compact(self) -> StepFunction:
        changes = np.diff(self.value, prepend=0) != 0
        return StepFunction(self.at[changes], self.value[changes])
