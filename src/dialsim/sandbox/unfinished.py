"""What is left to send where a journal ends: results whose POSTs (W2) are not over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.post_log import PostKey, PostLog, PostRows
from dialsim.engine.trace import Trace
from dialsim.interface.delivery import TIMED_OUT, TIMEOUT_MS, WAITS_MS, accepted
from dialsim.results.reading import Reading
from dialsim.results.stream.campaign_stream import CampaignStream
from dialsim.results.stream.deliveries import urls
from dialsim.results.stream.moments import moments


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A result whose next POST is due at `due` (ms); `tries` have failed before."""

    key: PostKey
    url: str
    body: bytes
    turn: int
    tries: int
    due: int


def next_try_at(left_at: int, response: int, tries: int) -> int:
    """When (ms) the next POST is due after one that left at an instant and failed (W2).

    `tries` counts the failed ones. One that timed out failed ten seconds later.
    """
    return left_at + (TIMEOUT_MS if response == TIMED_OUT else 0) + WAITS_MS[tries - 1]


def unfinished(trace: Trace, log: PostLog) -> Iterator[Unfinished]:
    """The results that were due by the end of a trace, and what the log says was not the last."""
    if all(change.url is None for change in trace.urls):
        return
    for place, stream in Reading(trace).streams.items():
        yield from _of_campaign(trace, place, stream, log.rows(*place))


def _of_campaign(
    trace: Trace, place: tuple[int, int], stream: CampaignStream, posts: PostRows
) -> Iterator[Unfinished]:
    notices, ledger = stream.notices, stream.ledger
    who, number = ledger.recipient[notices.call], ledger.call[notices.call]
    results, made = _codes(who, number, notices.result), _Tries(posts)
    to = urls(trace, place[0], moments(trace, notices.sent_at, notices.turn))
    for row in np.flatnonzero(~np.isin(results, made.over)).tolist():
        url = to[row]
        if url is None:
            continue
        last, tries = made.so_far(int(results[row]))
        due = int(notices.sent_at[row])
        if last is not None:
            due = next_try_at(int(posts.at[last]), int(posts.response[last]), tries)
        key = PostKey(*place, int(who[row]), int(number[row]), int(notices.result[row]))
        body = stream.bodies(np.array([row]))[0]
        yield Unfinished(key, url, body, int(notices.turn[row]), tries, due)


class _Tries:
    """The POSTs of W2 that were made of one campaign's results, which go by their codes.

    `over` are the results that are told of no more: one POST was accepted, or the last one failed.
    """

    def __init__(self, posts: PostRows) -> None:
        rows = np.flatnonzero(~posts.resent)
        codes = _codes(posts.recipient[rows], posts.call[rows], posts.result[rows])
        known, counts = np.unique(codes, return_counts=True)
        good = [code for code in np.unique(posts.response).tolist() if accepted(code)]
        heard = codes[np.isin(posts.response[rows], good)]
        self.over = np.union1d(heard, known[counts > len(WAITS_MS)])
        self._rows: dict[int, list[int]] = {}
        left = ~np.isin(codes, self.over)
        for code, row in zip(codes[left].tolist(), rows[left].tolist(), strict=True):
            self._rows.setdefault(code, []).append(row)

    def so_far(self, code: int) -> tuple[int | None, int]:
        """The row of the last POST of a result that is not over, and how many there were."""
        rows = self._rows.get(code, [])
        return (rows[-1] if rows else None), len(rows)


def _codes(
    recipients: NDArray[np.int32], calls: NDArray[np.int32], results: NDArray[np.int16]
) -> NDArray[np.int64]:
    """Results of one campaign as whole numbers."""
    return recipients.astype(np.int64) << 40 | calls.astype(np.int64) << 16 | results
