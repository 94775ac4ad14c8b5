"""The stream of webhooks of a campaign and of a whole run, and what is known of conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.calls import NEVER, Calls
from dialsim.engine.trace import Trace
from dialsim.interface.payload import response_json
from dialsim.webhooks.analysis import IS_SPOILT, Analyses
from dialsim.webhooks.bodies import Bodies, Body, instants_json
from dialsim.webhooks.deliveries import Posts, ReceiverModel
from dialsim.webhooks.messages import Content, MessageBuilder, Messages, horizon, sequence
from dialsim.webhooks.visible_state import VisibleState, visible_state


class CampaignStream:
    """What one campaign sends; everything is worked out when first asked for, and kept.

    `owed` are all results that are there at the end, `messages` those that are sent by then.
    """

    def __init__(self, trace: Trace, calls: Calls, analyses: Analyses) -> None:
        self.calls = calls
        self.analyses = analyses
        self._trace = trace

    @cached_property
    def owed(self) -> Messages:
        """Every result, whether or not it has been sent yet."""
        return MessageBuilder(self._trace, self.calls, self.analyses).messages()

    @cached_property
    def messages(self) -> Messages:
        """Every result that is sent."""
        return self.owed[self.owed.sent_at <= horizon(self._trace)]

    @cached_property
    def posts(self) -> Posts:
        """Every POST."""
        return ReceiverModel(self._trace, self.calls, self.messages).posts()

    @property
    def left(self) -> NDArray[np.int64]:
        """Where in the sequence each POST leaves: they order it among those of all campaigns."""
        return sequence(self._trace, self.posts.at, self.posts.turn)

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """The bodies of some of the messages, in that order."""
        return self._bodies.of(self.messages[rows], self.calls, self._visible_state[rows])

    @cached_property
    def _visible_state(self) -> VisibleState:
        return visible_state(self._trace, self.calls, self.messages)

    @cached_property
    def _bodies(self) -> Bodies:
        block = self._trace.campaign(self.calls.organization, self.calls.campaign).block
        return Bodies(self._trace, block)


_CHUNK = 16_384


class Stream:
    """POSTs by (sequence, organization, campaign, recipient, call, result, number).

    The sequence tells instants apart by the commands from outside: while a simulation
    goes on, new POSTs are added behind those that were there, and these don't change any more.
    `posts` has all of them, each with its `place`, the position of its campaign among `parts`;
    `message` is an index into that campaign's messages.
    """

    def __init__(self, parts: Sequence[CampaignStream]) -> None:
        """`parts` are those of all campaigns, in the order of the scenario."""
        posts = Posts.joined([part.posts for part in parts])
        order = np.argsort(np.concatenate([part.left for part in parts]), kind="stable")
        sizes = [len(part.posts) for part in parts]
        self.parts = parts
        self.posts = posts[order]
        self.place = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)[order]

    def drop(self, rows: NDArray[np.bool_]) -> None:
        """Have some of the rows not be there."""
        self.posts, self.place = self.posts[~rows], self.place[~rows]

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """The bodies of some POSTs, in the order asked for."""
        places = self.place[rows]
        made = {
            place: self.parts[place].bodies(self.posts.message[rows[places == place]])
            for place in np.unique(places).tolist()
        }
        return (next(made[place]) for place in places.tolist())

    def lines(self) -> Iterator[bytes]:
        """The lines of `webhooks.jsonl`."""
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


class Verdict(StrEnum):
    """What is known of a conversation.

    - analyzed: there is a result;
    - no_conversation, unavailable: there is the fallback result (A3);
    - not_analyzed: not recorded, or the agent stopped with an error (A2);
    - failed: the analysis failed, and no late result has come (A4);
    - pending: the run ended first.
    """

    ANALYZED = "analyzed"
    NO_CONVERSATION = "no_conversation"
    UNAVAILABLE = "unavailable"
    NOT_ANALYZED = "not_analyzed"
    FAILED = "failed"
    PENDING = "pending"


VERDICTS = tuple(Verdict)
_OF_CONTENT = {
    Content.SOUND: Verdict.ANALYZED,
    Content.NO_CONVERSATION: Verdict.NO_CONVERSATION,
    Content.UNAVAILABLE: Verdict.UNAVAILABLE,
}
"""What is known of a conversation by its newest result."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Per call of a campaign: `code`, an index into `VERDICTS`, -1 without a conversation.

    `found` is that of the newest result, as in `Analyses`, in the rows where `code` is analyzed.
    """

    code: NDArray[np.int8]
    found: NDArray[np.uint16]


def verdicts(analyses: Analyses, owed: Messages, calls: int, until: int) -> Verdicts:
    """What is known of conversations at an instant (ms); newer results replace older ones.

    `owed` are the results that are there by then; they and the first `analyses` go by indexes into
    so many calls.
    """
    code = np.full(calls, -1, dtype=np.int8)
    found = np.zeros((calls, analyses.found.shape[1]), dtype=np.uint16)
    code[analyses.call] = VERDICTS.index(Verdict.PENDING)
    failed = (analyses.failed_at != NEVER) & (analyses.failed_at <= until)
    code[analyses.call[failed]] = VERDICTS.index(Verdict.FAILED)
    code[analyses.call[IS_SPOILT.take(analyses.outcome)]] = VERDICTS.index(Verdict.NOT_ANALYZED)
    rows = np.flatnonzero(owed.content != Content.NOTHING)
    if owed.result.any():  # else there is one of each call at the most
        rows = rows[np.argsort(owed.ready_at[rows], kind="stable")]
    of_content = np.zeros(len(Content), dtype=np.int8)
    for content, verdict in _OF_CONTENT.items():
        of_content[content] = VERDICTS.index(verdict)
    told = owed.call.take(rows)
    code[told] = of_content.take(owed.content.take(rows))  # numpy keeps the last of several
    found[told] = owed.found.take(rows, axis=0)
    return Verdicts(code, found)


def funnel_steps(verdicts: Verdicts, has_funnel: bool) -> NDArray[np.int16]:
    """How many funnel steps each call's newest result says were reached; -1 if it says nothing.

    0 stands for Unknown: not even the first step was reached, or the result is a fallback, which
    has a funnel whether or not the agent defines one.
    """
    kinds = [Verdict.NO_CONVERSATION, Verdict.UNAVAILABLE]
    if has_funnel:
        kinds.append(Verdict.ANALYZED)
    known = np.isin(verdicts.code, [VERDICTS.index(kind) for kind in kinds])
    return np.where(known, verdicts.found[:, 0].astype(np.int16), np.int16(-1))
