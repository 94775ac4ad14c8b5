"""What is left to send where a journal ends: results whose POSTs (W2) are not over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dialsim.engine.post_log import Post, PostKey, PostLog
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
    newest: dict[PostKey, Post] = {}
    tries: dict[PostKey, int] = {}
    for row in range(len(log)):
        post = log.row(row)
        if not post.resent:
            newest[post.key] = post
            tries[post.key] = tries.get(post.key, 0) + 1
    for (organization, campaign), stream in Reading(trace).streams.items():
        yield from _of_campaign(trace, (organization, campaign), stream, newest, tries)


def _of_campaign(
    trace: Trace,
    place: tuple[int, int],
    stream: CampaignStream,
    newest: dict[PostKey, Post],
    tries: dict[PostKey, int],
) -> Iterator[Unfinished]:
    notices, ledger = stream.notices, stream.ledger
    to = urls(trace, place[0], moments(trace, notices.sent_at, notices.turn))
    who, number = ledger.recipient[notices.call].tolist(), ledger.call[notices.call].tolist()
    columns = zip(who, number, notices.result.tolist(), notices.sent_at.tolist(), to, strict=True)
    for row, (recipient, call, result, sent_at, url) in enumerate(columns):
        if url is None:
            continue
        key = PostKey(*place, recipient, call, result)
        last, made = newest.get(key), tries.get(key, 0)
        if last is not None and (accepted(last.response) or made > len(WAITS_MS)):
            continue
        due = sent_at if last is None else next_try_at(last.at, last.response, made)
        body = stream.bodies(np.array([row]))[0]
        yield Unfinished(key, url, body, int(notices.turn[row]), made, due)
