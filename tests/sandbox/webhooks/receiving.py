"""Sandboxes that send over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from tests.sandbox.serving import served

from dialsim.interface.instants import parse_instant
from dialsim.sandbox.access import Destinations
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch


class Steered:
    """A sandbox that is served, and its control plane."""

    def __init__(self, core: SandboxCore, url: str) -> None:
        self.core = core
        self.url = url

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the response of the control plane."""
        url = f"{self.url}/_dialsim{path}"
        # without encryption no certificates have to be read, which takes 20 ms at every request
        answer = httpx.request(method, url, json=body, timeout=600, trust_env=False, verify=False)
        answer.raise_for_status()
        return answer.json()

    def advance(self, **move: str) -> str:
        """Move the clock, and say where it stands then."""
        now: str = self.ask("POST", "/clock/advance", move)["now"]
        return now

    @property
    def webhooks(self) -> list[dict[str, Any]]:
        """The first hundred rows of the list."""
        rows: list[dict[str, Any]] = self.ask("GET", "/webhooks")["webhooks"]
        return rows

    def posts(self) -> list[tuple[float, int, int | str | None]]:
        """Of each POST: seconds after the first, attempt, response."""
        rows = self.webhooks
        first = parse_instant(rows[0]["at"])
        return [
            ((parse_instant(row["at"]) - first) / 1000, row["attempt"], row["response"])
            for row in rows
        ]


@contextmanager
def sending(
    sketch: Sketch,
    url: str | None,
    timeout: float = 10.0,
    *,
    in_order: bool = False,
    destinations: Destinations | None = None,
) -> Iterator[Steered]:
    """A sandbox whose results go to a URL; `timeout` stands for the ten seconds."""
    scenario = sketch if url is None else sketch.having(webhook={"url": url})
    order = f"service.inOrder={str(in_order).lower()}"
    core = SandboxCore(scenario.scenario().with_(order), destinations=destinations)
    core.sender.timeout = timeout
    with served(core) as sandbox:
        yield Steered(core, sandbox.url)
