"""Whose call is released next inside a campaign (Q3): calls in SCHEDULED, by the engine's order."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple


class Waiting(NamedTuple):
    """A call that waits in SCHEDULED; compared field by field, this is the order of release (Q3).

    `rank` is the order's class (0 goes first), `due` the instant it fell due, `recipient` the
    upload order, `call` its number.
    """

    rank: int
    due: int
    recipient: int
    call: int


class WaitingList:
    """The waiting calls of one campaign.

    First calls are not stored one by one: they are a range of recipients who are all due at
    startAt and go in upload order. Everything else waits in a heap.
    """

    __slots__ = ("_due", "_first", "_fresh_rank", "_heap", "_retry_rank", "_upto")

    def __init__(self, order: str) -> None:
        """`order` is `due`, `freshFirst` or `retriesFirst`."""
        self._fresh_rank = 1 if order == "retriesFirst" else 0
        self._retry_rank = 1 if order == "freshFirst" else 0
        self._due = 0
        self._first = 0
        self._upto = 0
        self._heap: list[Waiting] = []

    def __len__(self) -> int:
        return self._upto - self._first + len(self._heap)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(recipient, call) of every waiting call, in no particular order."""
        for recipient in range(self._first, self._upto):
            yield recipient, 1
        for waiting in self._heap:
            yield waiting.recipient, waiting.call

    def add_first_calls(self, count: int, due: int) -> None:
        """Put in the first call of every recipient."""
        self._first, self._upto, self._due = 0, count, due

    def add(self, due: int, recipient: int, call: int, attempts: int) -> None:
        """Put in one call of a person with so many attempts counted (P5)."""
        rank = self._retry_rank if attempts else self._fresh_rank
        heappush(self._heap, Waiting(rank, due, recipient, call))

    def first(self) -> Waiting:
        """The call that goes next; IndexError if nothing waits."""
        if self._first == self._upto:
            return self._heap[0]
        fresh = Waiting(self._fresh_rank, self._due, self._first, 1)
        return min(fresh, self._heap[0]) if self._heap else fresh

    def take(self) -> Waiting:
        """Remove and return the call that goes next."""
        waiting = self.first()
        if self._heap and self._heap[0] is waiting:
            return heappop(self._heap)
        self._first += 1
        return waiting

    def clear(self) -> None:
        """Remove every call."""
        self._first = self._upto
        self._heap.clear()
