"""Log of real POSTs. Only a sandbox has one; the POSTs of a simulated receiver are computed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.payload import UNDER_WAY


class PostKey(NamedTuple):
    """Key of the result that a POST delivers.

    Positions are from 0, and `call` is the ordinal of the recipient's call, from 1. `result` is 0
    for the call's first result and n for the result of the campaign's nth re-analysis.
    """

    organization: int
    campaign: int
    recipient: int
    call: int
    result: int


class Post(NamedTuple):
    """One POST: number `number` of its result (from 1; 0: it was kept), sent at `at` (ms).

    `turn` is the turn in which it was sent, if later than the turn of its instant (see
    `Trace.turn`). `resent` marks a POST made on request, in addition to the three of W2. `response`
    is an HTTP status or a code of `interface.payload`.
    """

    key: PostKey
    number: int
    at: int
    turn: int
    resent: bool
    response: int = UNDER_WAY


@dataclass(frozen=True, slots=True)
class PostRows:
    """POSTs of one campaign in the order of the log; columns as in `Post`."""

    recipient: NDArray[np.int32]
    call: NDArray[np.int32]
    result: NDArray[np.int16]
    number: NDArray[np.int16]
    at: NDArray[np.int64]
    turn: NDArray[np.int32]
    resent: NDArray[np.bool_]
    response: NDArray[np.int16]


_ROW = np.dtype(
    [
        ("organization", np.int32),
        ("campaign", np.int32),
        ("recipient", np.int32),
        ("call", np.int32),
        ("result", np.int16),
        ("number", np.int16),
        ("at", np.int64),
        ("turn", np.int32),
        ("resent", np.bool_),
        ("response", np.int16),
    ]
)
"""Columns as in `PostKey`, then as in `Post`."""


class PostLog:
    """POSTs in the order in which they were sent, one row each."""

    def __init__(self) -> None:
        # A row takes 35 bytes, a tuple of Python integers many times as much.
        self._table = np.empty(16, dtype=_ROW)  # with room for more rows
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def _rows(self) -> NDArray[np.void]:
        return self._table[: self._size]

    def append(self, post: Post) -> int:
        """Append a POST and return its row."""
        if self._size == len(self._table):
            self._table = np.resize(self._table, 2 * self._size)
        self._table[self._size] = (*post.key, *post[1:])
        self._size += 1
        return self._size - 1

    def answer(self, row: int, response: int) -> None:
        """Store the response to the POST of a row."""
        self._rows["response"][row] = response

    def row(self, row: int) -> Post:
        """Return the POST of a row."""
        values = self._rows[row].item()
        return Post(PostKey(*values[:5]), *values[5:])

    def count(self, key: PostKey) -> int:
        """Return the number of POSTs of a result; one that was kept is none."""
        return int(np.count_nonzero(self._with(key)["number"] > 0))

    def before(self, key: PostKey) -> PostKey | None:
        """Return the key of the latest POST about the same recipient with another result, or
        None.
        """
        rows = self._with(key[:3])
        rows = rows[(rows["call"] != key.call) | (rows["result"] != key.result)]
        return PostKey(*rows[-1].item()[:5]) if len(rows) else None

    def copy(self) -> PostLog:
        """Return a copy of the rows written so far; the log may grow."""
        log = PostLog()
        log._table, log._size = self._table.copy(), self._size
        return log

    def rows(self, organization: int, campaign: int) -> PostRows:
        """Return copies of the rows of one campaign; the log may grow."""
        rows = self._with((organization, campaign))
        return PostRows(*(rows[column.name].copy() for column in fields(PostRows)))

    def _with(self, key: tuple[int, ...]) -> NDArray[np.void]:
        """Return the rows whose key begins with these parts."""
        rows = self._rows
        for name, part in zip(PostKey._fields, key, strict=False):
            rows = rows[rows[name] == part]
        return rows
