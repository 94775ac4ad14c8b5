"""Requests to a sandbox inside this process: the whole application, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import httpx
from tests.sandbox.described import require_as_described

import dialsim
from dialsim.sandbox.access import ControlToken
from dialsim.sandbox.application import application
from dialsim.sandbox.core import SandboxCore

WORLD = Path(__file__).with_name("corpus.yaml")
NOW = "2026-01-05T04:00:00Z"


def key(organization: str) -> str:
    """The API key of an organization of the corpus' world."""
    return f"{organization.lower()}_0123456789abcdef0123456789abcdef"


def exchange_of_the_corpus() -> SandboxCore:
    """A new core of the corpus' world, at the instant of its requests."""
    core = SandboxCore(dialsim.load(WORLD))
    core.simulation.advance(to=NOW)
    return core


class Client:
    """Asks one sandbox; faults of ours are answered, not raised."""

    def __init__(self, core: SandboxCore, token: ControlToken | None = None) -> None:
        self.core = core
        self.app = application(core, token)

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> httpx.Response:
        """Send one request and wait for its response."""
        return asyncio.run(self._ask(method, path, headers, body))

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://sandbox.test") as client:
            return await client.request(method, path, headers=headers, content=body)


def control(client: Client, method: str, path: str, body: object = None) -> httpx.Response:
    """A request to the control plane, from this machine; its answer is as described."""
    headers, content = {"Host": "127.0.0.1:8400"}, None
    if body is not None:
        headers |= {"Content-Type": "application/json"}
        content = json.dumps(body).encode()
    response = client.ask(method, f"/_dialsim{path}", headers, content)
    require_as_described(method, f"/_dialsim{path}", response)
    return response
