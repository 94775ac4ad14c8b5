"""The run so far over HTTP, as `dialsim run` would have written it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import IO, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from dialsim.interface.wire import WireModel
from dialsim.sandbox.control.routes import route
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.shapes import query_of, read_shape

_CHUNK = 1 << 18


class WantedExport(WireModel):
    """What the export is to hold beside the run."""

    api_keys: Literal["true", "false"] = Field(
        default="false", description="Whether API keys in the scenario are left as they are."
    )


class ExportEndpoint:
    """Packs the run as it stands when it is asked for; the server answers others meanwhile."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._packing = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [route(f"{PREFIX}/export", query=["get"], get=self._export)]

    async def _export(self, request: Request) -> Response:
        from dialsim.sandbox.run_archive import pack  # loads what draws pictures

        wanted = read_shape(WantedExport, query_of(request))
        trace = self._exchange.simulation.trace.snapshot()
        async with self._packing:  # one after the other: each takes a processor and memory
            packed = await asyncio.to_thread(pack, trace, wanted.api_keys == "true")
        headers = {
            "Content-Length": str(os.fstat(packed.fileno()).st_size),
            "Content-Disposition": 'attachment; filename="dialsim-run.zip"',
        }
        return StreamingResponse(_chunks(packed), media_type="application/zip", headers=headers)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(_CHUNK):
            yield part
