"""The stream of a whole run: every POST of every campaign in the order sent, and its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.delivery import NOT_SENT, UNDER_WAY, WORDS
from dialsim.results.stream import wire_text
from dialsim.results.stream.campaign_stream import CampaignStream
from dialsim.results.stream.deliveries import Posts

_LINE = b'{"at":%b,"attempt":%b,"response":%b,"received":%b,"body":%b}\n'
_CHUNK = 32_768
_RESPONSES = {code: b'"%b"' % word.encode() for code, word in WORDS.items()}
_RESPONSES |= {NOT_SENT: b"null", UNDER_WAY: b"null"}
_BOOLEANS = (b"false", b"true")


class Stream:
    """POSTs by (moment, organization, campaign, recipient, call, result, number).

    Moments tell instants apart by the commands from outside (see `moments`): while a simulation
    goes on, new POSTs are added behind those that were there, and these don't change any more.
    `posts` has all of them, each with its `place`, the position of its campaign among `parts`;
    `notice` is an index into that campaign's notices.
    """

    def __init__(self, parts: Sequence[CampaignStream]) -> None:
        """`parts` are those of all campaigns, in the order of the scenario."""
        posts = Posts.joined([part.posts for part in parts])
        order = np.argsort(np.concatenate([part.left for part in parts]), kind="stable")
        sizes = [len(part.posts) for part in parts]
        self.parts = parts
        self.posts = posts[order]
        self.place = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)[order]

    def bodies(self, rows: NDArray[np.int64]) -> list[bytes]:
        """The bodies of some POSTs, in the order asked for."""
        bodies = [b""] * len(rows)
        places = self.place[rows]
        for place in np.unique(places):
            chosen = np.flatnonzero(places == place)
            made = self.parts[place].bodies(self.posts.notice[rows[chosen]])
            for index, body in zip(chosen.tolist(), made, strict=True):
                bodies[index] = body
        return bodies

    def lines(self) -> Iterator[bytes]:
        """The lines of `webhooks.jsonl`, some thousands at a time."""
        for first in range(0, len(self.posts), _CHUNK):
            rows = np.arange(first, min(first + _CHUNK, len(self.posts)))
            posts = self.posts[rows]
            columns = (
                wire_text.instants(posts.at),
                [b"%d" % number if number else b"null" for number in posts.number.tolist()],
                [_response(code) for code in posts.response.tolist()],
                [_BOOLEANS[taken] for taken in posts.received.tolist()],
                self.bodies(rows),
            )
            yield b"".join(map(_LINE.__mod__, zip(*columns, strict=True)))

    def write(self, file: BinaryIO) -> None:
        """Write `webhooks.jsonl`."""
        file.writelines(self.lines())


def _response(code: int) -> bytes:
    return _RESPONSES.get(code) or b"%d" % code
