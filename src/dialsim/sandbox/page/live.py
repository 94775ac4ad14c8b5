"""The stream that keeps a tab up to date: server-sent events, only of what has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

from dialsim.sandbox.page.sections import Sections
from dialsim.sandbox.page.view import View

INTERVAL = 0.25
"""Seconds between looks at what is new."""

_HEARTBEAT = 15  # seconds after which a silent stream says that it is alive
_SHARE = 4  # a tab waits this many times as long as its rendering took, so that others have a turn
_LONGEST = 2  # seconds


class LiveStreams:
    """Streams to any number of tabs; a slow tab is sent less, and nothing piles up for it."""

    def __init__(self, sections: Sections) -> None:
        self._sections = sections

    async def events(self, view: View) -> AsyncIterator[bytes]:
        """The sections of a view, all of them first and then each that changed, as events."""
        yield b"retry: 1000\n\n"
        sent = dict[str, str]()
        spoke = monotonic()
        while True:
            began = monotonic()
            sections = self._sections.render(view)
            took = monotonic() - began
            for name, html in sections.items():
                if sent.get(name) != html:
                    sent[name] = html
                    spoke = monotonic()
                    yield _event(name, html)
            if monotonic() - spoke > _HEARTBEAT:
                spoke = monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(min(max(INTERVAL, _SHARE * took), _LONGEST))


def _event(name: str, html: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"event: {name}\n{lines}\n".encode()
