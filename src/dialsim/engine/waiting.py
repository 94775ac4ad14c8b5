"""Whose call is released next inside a campaign (Q3): calls in SCHEDULED, by the engine's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

Waiting = tuple[int, int, int, int]
"""A call that waits in SCHEDULED: (rank, due, recipient, call); the smallest goes next (Q3).

The rank is the order's class (0 goes first), due the instant it fell due, recipient the upload
order, call its number.
"""


class WaitingList:
    """The waiting calls of one campaign.

    First calls are not stored one by one: they are all due at startAt and go in upload order, so
    the recipients in that order say it all. Everything else waits in a heap.
    """

    __slots__ = ("_due", "_fresh", "_fresh_rank", "_heap", "_next", "_retry_rank")

    def __init__(self, order: str) -> None:
        """`order` is `due`, `freshFirst` or `retriesFirst`."""
        self._fresh_rank = 1 if order == "retriesFirst" else 0
        self._retry_rank = 1 if order == "freshFirst" else 0
        self._due = 0
        self._fresh: Sequence[int] = ()
        self._next = 0
        self._heap: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._fresh) - self._next + len(self._heap)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(recipient, call) of every waiting call, in no particular order."""
        for recipient in self._fresh[self._next :]:
            yield recipient, 1
        for _, _, recipient, call in self._heap:
            yield recipient, call

    def add_first_calls(self, recipients: Sequence[int], due: int) -> None:
        """Put in the first calls of recipients, who are given in upload order."""
        self._fresh, self._next, self._due = recipients, 0, due

    def add(self, due: int, recipient: int, call: int, attempts: int) -> None:
        """Put in one call of a person with so many attempts counted (P5)."""
        rank = self._retry_rank if attempts else self._fresh_rank
        heappush(self._heap, (rank, due, recipient, call))

    def first(self) -> Waiting:
        """The call that goes next; IndexError if nothing waits."""
        if self._next == len(self._fresh):
            return self._heap[0]
        fresh = (self._fresh_rank, self._due, self._fresh[self._next], 1)
        return min(fresh, self._heap[0]) if self._heap else fresh

    def take(self) -> Waiting:
        """Remove and return the call that goes next."""
        waiting = self.first()
        if self._heap and self._heap[0] is waiting:
            return heappop(self._heap)
        self._next += 1
        return waiting

    def clear(self) -> None:
        """Remove every call."""
        self._next = len(self._fresh)
        self._heap.clear()
