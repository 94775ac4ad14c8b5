"""The run so far over HTTP, as `dialsim run` would have written it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import IO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from dialsim.sandbox.control.routes import route
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.exchange import Exchange

_CHUNK = 1 << 18


class ExportEndpoint:
    """Packs the run as it stands when it is asked for; the server answers others meanwhile."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._packing = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [route(f"{PREFIX}/export", get=self._export)]

    async def _export(self, _request: Request) -> Response:
        from dialsim.sandbox.run_archive import pack  # loads what draws pictures

        trace = self._exchange.simulation.trace.snapshot()
        async with self._packing:  # one after the other: each takes a processor and memory
            packed = await asyncio.to_thread(pack, trace)
        headers = {
            "Content-Length": str(os.fstat(packed.fileno()).st_size),
            "Content-Disposition": 'attachment; filename="dialsim-run.zip"',
        }
        return StreamingResponse(_chunks(packed), media_type="application/zip", headers=headers)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(_CHUNK):
            yield part
