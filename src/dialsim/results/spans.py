"""Spans of time: sorted, disjoint, half-open [start, end) pairs of ms; int64 of shape (n, 2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Spans = NDArray[np.int64]


def no_spans() -> Spans:
    """No time at all."""
    return np.empty((0, 2), dtype=np.int64)


def union(parts: Iterable[Spans]) -> Spans:
    """The time that lies in at least one of the parts; touching spans become one."""
    pairs = np.concatenate([no_spans(), *parts])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    if not len(pairs):
        return pairs
    reach = np.maximum.accumulate(pairs[:, 1])
    begins = np.append(True, pairs[1:, 0] > reach[:-1])
    return np.stack([pairs[begins, 0], reach[np.append(begins[1:], True)]], axis=1)


def length(spans: Spans) -> int:
    """The total length in ms."""
    return int((spans[:, 1] - spans[:, 0]).sum())
