"""A sandbox that is called from a running event loop, which its receiver may need."""

from __future__ import annotations

import asyncio
import time

import pytest

import dialsim
from dialsim.testing import Receiver, Sketch

ONE = Sketch(lines=1).campaign("January", "busy 1s")


async def served_here() -> asyncio.Server:
    """A receiver in the event loop of the test, which answers every request with 200."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        [length] = [part for part in head.split(b"\r\n") if part.lower().startswith(b"content-len")]
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


def test_waiting_in_the_event_loop_of_the_receiver_is_an_error_and_in_a_thread_it_is_not() -> None:
    async def journey() -> list[str]:
        async with await served_here() as receiver:
            url = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/"
            with dialsim.Sandbox(ONE.scenario(), webhook_url=url) as sandbox:
                begun = time.monotonic()
                for wait in (
                    lambda: sandbox.clock.advance(hours=1),
                    lambda: sandbox.advance_until(webhooks=1),
                    lambda: sandbox.trigger("BUSY"),
                ):
                    with pytest.raises(dialsim.DialsimError, match=r"asyncio\.to_thread"):
                        wait()
                assert time.monotonic() - begun < 5  # three timeouts would take 30
                assert sandbox.clock.now.hour == 2  # nothing has moved
                await asyncio.to_thread(sandbox.clock.advance, hours=1)
                with pytest.raises(dialsim.DialsimError, match=r"asyncio\.to_thread"):
                    sandbox.resend_webhook(1)
                return [row.status for row in sandbox.webhooks]

    assert asyncio.run(journey()) == ["delivered"]


def test_an_event_loop_without_the_receiver_may_wait_as_in_a_notebook() -> None:
    async def journey() -> list[str]:
        async with await served_here():
            with (
                Receiver() as receiver,
                dialsim.Sandbox(ONE.scenario(), webhook_url=receiver.url) as sandbox,
            ):
                sandbox.clock.advance(hours=1)
                return [row.status for row in sandbox.webhooks]

    assert asyncio.run(journey()) == ["delivered"]
