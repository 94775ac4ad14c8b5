"""Sandboxes that send without a network, and the webhooks sent according to a result."""

from __future__ import annotations

import asyncio
import io
import random
from typing import NamedTuple

import pytest

from dialsim.interface.payload import BROKEN, REFUSED, TIMED_OUT
from dialsim.results.result import Result
from dialsim.sandbox.access import Destinations
from dialsim.sandbox.outbox import Delivery
from dialsim.sandbox.sender import Sender


class Line(NamedTuple):
    """A line of `webhooks.jsonl`: attempt and response as they stand there, and the body."""

    attempt: bytes
    response: bytes
    body: bytes


def lines(result: Result) -> list[Line]:
    """The lines of `webhooks.jsonl`, one per POST or kept payload."""
    file = io.BytesIO()
    result.write_webhooks(file)
    return [_line(text) for text in file.getvalue().splitlines()]


def _line(text: bytes) -> Line:
    head, _, body = text.partition(b',"body":')
    fields = dict(part.partition(b":")[::2] for part in head.removeprefix(b"{").split(b","))
    return Line(fields[b'"attempt"'], fields[b'"response"'], body[:-1])


class NoNetwork:
    """Takes the place of HTTP: keeps the bodies, and has POSTs succeed or fail by chance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int, success: float) -> None:
        self.bodies: list[bytes] = []
        rng = random.Random(seed)

        async def post(_sender: Sender, delivery: Delivery) -> int:
            self.bodies.append(delivery.body)
            await asyncio.sleep(0)
            if rng.random() < success:
                return rng.choice((200, 201, 202, 204, 299))
            return rng.choice((301, 404, 500, TIMED_OUT, REFUSED, BROKEN))

        monkeypatch.setattr(Sender, "post", post)
        monkeypatch.setattr(Destinations, "sends", lambda *_: True)  # nothing leaves anyway
