"""Deliveries: POSTs of each message, real or simulated, and the stream of all POSTs (W2, W5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.behaviour import durations
from dialsim.engine.chance import Purpose
from dialsim.engine.log_reader import NOT_HAPPENED, Calls, ColumnTable
from dialsim.engine.trace import Trace
from dialsim.interface.payload import (
    ERROR,
    NOT_SENT,
    OK,
    REFUSED,
    TIMED_OUT,
    TIMEOUT_MS,
    WAITS_MS,
    PostLog,
    accepted,
    response_json,
)
from dialsim.scenario.organization import ReceiverSettings
from dialsim.webhooks.analysis import Analyses
from dialsim.webhooks.bodies import Bodies, Body, VisibleState, instants_json, visible_state
from dialsim.webhooks.messages import MessageBuilder, Messages, horizon, sequence

_RESULT_BITS = 16  # bits for the number of the result in a key of call and result


# wait (ms) after the first POST, after the second, …; 0 after the last, which none follows
_WAITS = np.array([*WAITS_MS, 0], dtype=np.int64)


def next_post_at(
    tries: NDArray[np.integer],
    left_at: NDArray[np.int64],
    response: NDArray[np.int16],
    latency: NDArray[np.int64] | int = 0,
) -> NDArray[np.int64]:
    """Return the instant (ms) of each result's next POST; NOT_HAPPENED if none follows (W2).

    `tries` is the number of POSTs so far. The last one left at `left_at` and ended with `response`
    after `latency` ms. A refused connection fails at once, a timeout after ten seconds.
    """
    # The wait begins at the end of the POST (W2).
    lasted = np.select([response == REFUSED, response == TIMED_OUT], [0, TIMEOUT_MS], latency)
    is_over = accepted(response) | (response == NOT_SENT) | (tries > len(WAITS_MS))
    due: NDArray[np.int64] = left_at + lasted + _WAITS[np.minimum(tries, len(_WAITS)) - 1]
    return np.where(is_over, NOT_HAPPENED, due)


@dataclass(frozen=True, slots=True)
class Posts(ColumnTable):
    """POSTs of a campaign's messages, by message and number; instants in ms.

    `message` is an index into the messages. `number` counts from 1, to 3 unless the result was sent
    again on request; 0 marks the only row of a message without a URL. `turn` is the turn in which
    the POST left, if later than the turn of its instant (see `sequence`). `resent` marks POSTs on
    request. `response` is an HTTP status or a code of `interface.payload`. `received` is True if
    the receiver is known to have accepted the result, at `arrived_at` (else NOT_HAPPENED).
    """

    message: NDArray[np.int64]
    number: NDArray[np.int16]
    at: NDArray[np.int64]
    turn: NDArray[np.int32]
    resent: NDArray[np.bool_]
    response: NDArray[np.int16]
    received: NDArray[np.bool_]
    arrived_at: NDArray[np.int64]


def unfinished(messages: Messages, posts: Posts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, per message, the instant (ms) of the next POST (or NOT_HAPPENED), and the number of
    POSTs made (W2).

    POSTs on request do not count.
    """
    due, made = messages.sent_at.copy(), posts[~posts.resent]
    last = np.full(len(messages), -1, dtype=np.int64)
    # Of several POSTs of one message numpy keeps the last.
    last[made.message] = np.arange(len(made))
    tries = np.bincount(made.message, minlength=len(messages))
    tried = np.flatnonzero(last >= 0)
    newest = made[last[tried]]
    due[tried] = next_post_at(tries[tried], newest.at, newest.response)
    return due, tries


def has_url(trace: Trace, organization: int, sent: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for points of the sequence at which the organization has a webhook URL (W6)."""
    known, newest = _urls(trace, organization, sent)
    has: NDArray[np.bool_] = np.array([url is not None for url in known])[newest]
    return has


def urls(trace: Trace, organization: int, sent: NDArray[np.int64]) -> list[str | None]:
    """Return the organization's webhook URL, or None, at each point of the sequence (W6)."""
    known, newest = _urls(trace, organization, sent)
    return [known[index] for index in newest.tolist()]


def _urls(
    trace: Trace, organization: int, sent: NDArray[np.int64]
) -> tuple[list[str | None], NDArray[np.int64]]:
    """Return the organization's URLs over time, and the index of the URL in force at each point."""
    changes = trace.urls_of(organization)
    # Points of the sequence: instant plus turn, so that commands of one instant stay in order.
    since = [change.at + change.turn for change in changes]
    newest = np.searchsorted(since, sent, side="right") - 1
    # Index -1, before the first change, selects the None at the end.
    return [*(change.url for change in changes), None], newest


def _in_outage(receiver: ReceiverSettings, mode: str, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for POSTs during an outage of this mode."""
    inside = np.zeros(len(at), dtype=bool)
    # Reversed, so that the first outage in the file decides where two overlap.
    for outage in reversed(receiver.outages):
        inside[(at >= outage.from_) & (at < outage.to)] = outage.mode == mode
    return inside


def _in_order(rounds: list[Posts]) -> Posts:
    """Return the POSTs of all rounds, sorted by (message, number)."""
    together = Posts.joined(rounds)
    if len(together) == max(map(len, rounds)):
        # If only one round has POSTs, which is the usual case, they are in order already.
        return together
    return together[np.argsort(together.message, kind="stable")]


class CampaignStream:
    """Messages and POSTs of one campaign, each computed on first use.

    `owed` are all results that exist at the end, `messages` those sent by then.
    """

    def __init__(self, trace: Trace, calls: Calls, analyses: Analyses) -> None:
        self.calls = calls
        self.analyses = analyses
        self._trace = trace
        part = trace.campaign(calls.organization, calls.campaign)
        webhook = part.owner.settings.webhook
        self._receiver = webhook.receiver if webhook is not None else ReceiverSettings()
        self._block = part.block

    @cached_property
    def owed(self) -> Messages:
        """All results, sent or not."""
        return MessageBuilder(self._trace, self.calls, self.analyses).messages()

    @cached_property
    def messages(self) -> Messages:
        """All results that are sent."""
        return self.owed[self.owed.sent_at <= horizon(self._trace)]

    @cached_property
    def posts(self) -> Posts:
        """POSTs that leave by the horizon: real ones of a sandbox, else simulated ones."""
        sent_at = self.messages.sent_at
        points = sequence(self._trace, sent_at, self.messages.turn)
        sent = has_url(self._trace, self.calls.organization, points)
        rounds = [self._unsent(~sent)]
        if self._trace.posts is not None:
            made = Posts.joined([*rounds, self._made(self._trace.posts)])
            return made[np.lexsort((made.number, made.message))]
        # Round by round: all first POSTs, then all second ones. There are three rounds, but
        # millions of results.
        due, at, number = np.flatnonzero(sent), sent_at[sent], 1
        while len(due):
            tried, latency = self._post(due, at, number)
            rounds.append(tried)
            at = next_post_at(tried.number, tried.at, tried.response, latency)
            again = (at != NOT_HAPPENED) & (at <= horizon(self._trace))
            due, at, number = due[again], at[again], number + 1
        return _in_order(rounds)

    @property
    def left(self) -> NDArray[np.int64]:
        """Point of the sequence at which each POST leaves; orders POSTs across campaigns."""
        return sequence(self._trace, self.posts.at, self.posts.turn)

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """Return the bodies of some of the messages, in the given order."""
        return self._bodies.of(self.messages[rows], self.calls, self._visible_state[rows])

    @cached_property
    def _visible_state(self) -> VisibleState:
        return visible_state(self._trace, self.calls, self.messages)

    @cached_property
    def _bodies(self) -> Bodies:
        return Bodies(self._trace, self._block)

    def _made(self, log: PostLog) -> Posts:
        """Return the real POSTs of a sandbox; a 2xx means that the receiver accepted the result."""
        calls, messages = self.calls, self.messages
        rows = log.rows(calls.organization, calls.campaign)
        # One integer per (call, result), so that both logs can be matched by a binary search.
        sent = calls.find(rows["recipient"], rows["call"]) << _RESULT_BITS | rows["result"]
        keys = messages.call << _RESULT_BITS | messages.result
        received = accepted(rows["response"])
        return Posts(
            message=np.searchsorted(keys, sent),
            **{name: rows[name] for name in ("number", "at", "turn", "resent", "response")},
            received=received,
            arrived_at=np.where(received, rows["at"], NOT_HAPPENED),
        )

    def _post(
        self, due: NDArray[np.int64], at: NDArray[np.int64], number: int
    ) -> tuple[Posts, NDArray[np.int64]]:
        """Simulate POST number `number` of the messages `due`; returns also the receiver's
        latency (ms).
        """
        latency, fails = self._answers(due, number)
        refused, hung = (_in_outage(self._receiver, mode, at) for mode in ("refuse", "hang"))
        slow = hung | (latency > TIMEOUT_MS)
        response = np.where(fails, ERROR, OK)
        response = np.where(refused, REFUSED, np.where(slow, TIMED_OUT, response))
        received = ~(refused | hung | fails)
        tried = Posts(
            message=due,
            number=np.full(len(due), number, dtype=np.int16),
            at=at,
            turn=self.messages.turn[due],
            resent=np.zeros(len(due), dtype=bool),
            response=response.astype(np.int16),
            received=received,
            arrived_at=np.where(received, at + latency, NOT_HAPPENED),
        )
        return tried, latency

    def _answers(
        self, due: NDArray[np.int64], number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Draw the receiver's latency (ms) per message, and True where it answers with an error."""
        receiver, draws = self._receiver, self._block.draws
        latency = durations(receiver.latency, np.zeros(len(due)))
        fails = np.zeros(len(due), dtype=bool)
        calls, results = self.messages.call[due], self.messages.result[due]
        for result in np.unique(results):
            rows = np.flatnonzero(results == result)
            whose = self.calls.call[calls[rows]], self.calls.recipient[calls[rows]]
            detail = int(result), number
            if receiver.latency.dist != "constant":
                drawn = draws.of(Purpose.RECEIVER_LATENCY, *whose, detail)
                # Constants need no draws, and most receivers have constant latency.
                latency[rows] = durations(receiver.latency, drawn)
            if receiver.error_rate > 0:
                drawn = draws.of(Purpose.RECEIVER_ERROR, *whose, detail)
                fails[rows] = drawn < receiver.error_rate
        return latency, fails

    def _unsent(self, chosen: NDArray[np.bool_]) -> Posts:
        """Return one row for each message without a URL (W6)."""
        rows, messages = np.flatnonzero(chosen), self.messages[chosen]
        # One entry stands for all, which saves 10 bytes a result.
        response = np.broadcast_to(np.int16(NOT_SENT), len(rows))
        arrived_at = np.broadcast_to(np.int64(NOT_HAPPENED), len(rows))
        return Posts(
            message=rows,
            number=np.zeros(len(rows), dtype=np.int16),
            at=messages.sent_at,
            turn=messages.turn,
            resent=np.zeros(len(rows), dtype=bool),
            response=response,
            received=np.zeros(len(rows), dtype=bool),
            arrived_at=arrived_at,
        )


_CHUNK = 16_384


class Stream:
    """POSTs sorted by (sequence, organization, campaign, recipient, call, result, number).

    `posts` has all of them. `part_index` is the index of each POST's campaign among `parts`,
    `message` an index into that campaign's messages.
    """

    def __init__(self, parts: Sequence[CampaignStream]) -> None:
        """`parts` are the streams of all campaigns, in the order of the scenario."""
        # Sorted by sequence and not by instant: after a command of the current instant, new POSTs
        # come after the old ones, whose rows readers may hold.
        posts = Posts.joined([part.posts for part in parts])
        order = np.argsort(np.concatenate([part.left for part in parts]), kind="stable")
        sizes = [len(part.posts) for part in parts]
        self.parts = parts
        self.posts = posts[order]
        self.part_index = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)[order]

    def drop(self, rows: NDArray[np.bool_]) -> None:
        """Remove the POSTs of these rows."""
        self.posts, self.part_index = self.posts[~rows], self.part_index[~rows]

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """Return the bodies of some POSTs, in the given order."""
        indexes = self.part_index[rows]
        made = {
            index: self.parts[index].bodies(self.posts.message[rows[indexes == index]])
            for index in np.unique(indexes).tolist()
        }
        return (next(made[index]) for index in indexes.tolist())

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of `webhooks.jsonl`."""
        for first in range(0, len(self.posts), _CHUNK):
            rows = np.arange(first, min(first + _CHUNK, len(self.posts)))
            posts = self.posts[rows]
            columns = (
                instants_json(posts.at),
                posts.number.tolist(),
                posts.response.tolist(),
                posts.received.tolist(),
                self.bodies(rows),
            )
            for at, number, response, received, body in zip(*columns, strict=True):
                line = {
                    "at": at,
                    "attempt": number or None,
                    "response": response_json(response),
                    "received": received,
                    "body": body,
                }
                yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)

    def write(self, file: BinaryIO) -> None:
        """Write `webhooks.jsonl`."""
        file.writelines(self.lines())
