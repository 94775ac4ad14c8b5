"""Log of real POSTs. Only a sandbox has one; the POSTs of a simulated receiver are computed."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
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


class PostLog:
    """POSTs in the order in which they were sent, one row each; columns as in `Post`."""

    __slots__ = (
        "_at",
        "_call",
        "_campaign",
        "_number",
        "_organization",
        "_recipient",
        "_resent",
        "_response",
        "_result",
        "_turn",
    )

    def __init__(self) -> None:
        # Typed columns take 35 bytes a POST, a small part of what a tuple of Python integers takes.
        self._organization = array("i")
        self._campaign = array("i")
        self._recipient = array("i")
        self._call = array("i")
        self._result = array("h")
        self._number = array("h")
        self._at = array("q")
        self._turn = array("i")
        self._resent = array("b")
        self._response = array("h")

    def __len__(self) -> int:
        return len(self._at)

    def append(self, post: Post) -> int:
        """Append a POST and return its row."""
        self._organization.append(post.key.organization)
        self._campaign.append(post.key.campaign)
        self._recipient.append(post.key.recipient)
        self._call.append(post.key.call)
        self._result.append(post.key.result)
        self._number.append(post.number)
        self._at.append(post.at)
        self._turn.append(post.turn)
        self._resent.append(post.resent)
        self._response.append(post.response)
        return len(self._at) - 1

    def answer(self, row: int, response: int) -> None:
        """Store the response to the POST of a row."""
        self._response[row] = response

    def row(self, row: int) -> Post:
        """Return the POST of a row."""
        key = PostKey(
            self._organization[row],
            self._campaign[row],
            self._recipient[row],
            self._call[row],
            self._result[row],
        )
        return Post(
            key,
            self._number[row],
            self._at[row],
            self._turn[row],
            bool(self._resent[row]),
            self._response[row],
        )

    def count(self, key: PostKey) -> int:
        """Return the number of POSTs of a result; one that was kept is none."""
        columns = self._organization, self._campaign, self._recipient, self._call, self._result
        # `np.array` copies. A view (`np.asarray`) would lock the buffer, and the log could not grow
        # while the view lives.
        same = np.array(self._number) > 0
        for column, value in zip(columns, key, strict=True):
            same &= np.array(column) == value
        return int(np.count_nonzero(same))

    def before(self, key: PostKey) -> PostKey | None:
        """Return the key of the latest POST about the same recipient with another result, or
        None.
        """
        columns = self._organization, self._campaign, self._recipient
        same = np.ones(len(self), dtype=bool)
        for column, value in zip(columns, key[:3], strict=True):
            same &= np.array(column) == value
        same &= (np.array(self._call) != key.call) | (np.array(self._result) != key.result)
        rows = np.flatnonzero(same)
        return self.row(int(rows[-1])).key if len(rows) else None

    def copy(self) -> PostLog:
        """Return a copy of the rows written so far; the log may grow."""
        log = PostLog()
        for column in self.__slots__:
            setattr(log, column, getattr(self, column)[:])
        return log

    def rows(self, organization: int, campaign: int) -> PostRows:
        """Return copies of the rows of one campaign; the log may grow."""
        owner, part = np.array(self._organization), np.array(self._campaign)
        chosen = np.flatnonzero((owner == organization) & (part == campaign))
        return PostRows(
            recipient=np.array(self._recipient, dtype=np.int32)[chosen],
            call=np.array(self._call, dtype=np.int32)[chosen],
            result=np.array(self._result, dtype=np.int16)[chosen],
            number=np.array(self._number, dtype=np.int16)[chosen],
            at=np.array(self._at, dtype=np.int64)[chosen],
            turn=np.array(self._turn, dtype=np.int32)[chosen],
            resent=np.array(self._resent, dtype=bool)[chosen],
            response=np.array(self._response, dtype=np.int16)[chosen],
        )
