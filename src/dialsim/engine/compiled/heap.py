"""Binary heaps on arrays: the smallest key first, of equal keys the smallest item.

Several heaps may lie in one pair of arrays, each from its `base` on; whoever owns a heap counts
its entries. (numba compiles Python's heapq as well, but a list of tuples takes three times as
long.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.compiled.jit import rule

Integers = NDArray[np.int64]


@rule
def push(keys: Integers, items: Integers, base: int, size: int, key: int, item: int) -> None:
    """Put an entry into a heap of `size` entries."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        above = keys[base + parent]
        if above < key or (above == key and items[base + parent] <= item):
            break
        keys[base + place] = above
        items[base + place] = items[base + parent]
        place = parent
    keys[base + place] = key
    items[base + place] = item


@rule
def replace_first(
    keys: Integers, items: Integers, base: int, size: int, key: int, item: int
) -> None:
    """Take the first of `size` entries out and put another one in."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        least = keys[base + child]
        if child + 1 < size:
            other = keys[base + child + 1]
            if other < least or (other == least and items[base + child + 1] < items[base + child]):
                child += 1
                least = other
        if key < least or (key == least and item <= items[base + child]):
            break
        keys[base + place] = least
        items[base + place] = items[base + child]
        place = child
    keys[base + place] = key
    items[base + place] = item


@rule
def remove_first(keys: Integers, items: Integers, base: int, size: int) -> None:
    """Take the first of `size` entries out."""
    last = base + size - 1
    replace_first(keys, items, base, size - 1, keys[last], items[last])


@rule
def restore(keys: Integers, items: Integers, base: int, size: int) -> None:
    """Make a heap of `size` entries in any order."""
    for count in range(size):
        push(keys, items, base, count, keys[base + count], items[base + count])
