"""The run so far over HTTP: the folder that `dialsim run` would have written, as a zip file."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Annotated, Literal

from pydantic import Field, WithJsonSchema
from starlette.responses import Response, StreamingResponse

from dialsim.engine.trace import Trace
from dialsim.interface.model import WireModel
from dialsim.results.result import Result
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http.operation import Operations, operation
from dialsim.scenario.loading import with_masked_keys

_PACKED = (".parquet", ".gz")  # these are small already
_FIRST_YEAR = 1980  # of a zip file's calendar


def pack(trace: Trace, api_keys: bool = False) -> IO[bytes]:
    """A zip file of all tables, webhooks, summary and report of a run so far, read from its start.

    The file has no name: it is gone when it is closed. It takes as long as writing the folder;
    `trace` must not grow meanwhile. API keys in the scenario are masked unless `api_keys`.
    """
    from dialsim.report.writing import write_run  # takes a second that no server's start has

    with TemporaryDirectory(prefix="dialsim-export-") as place:
        shown = trace if api_keys else _masked(trace)
        folder = write_run(Result(shown), Path(place) / "run")
        packed = TemporaryFile()  # noqa: SIM115 - whoever asked closes it
        try:
            with zipfile.ZipFile(packed, "w") as archive:
                for path in sorted(folder.iterdir()):
                    _add(archive, path, trace.end)
            packed.seek(0)
        except BaseException:
            packed.close()
            raise
    return packed


def _masked(trace: Trace) -> Trace:
    world = copy(trace.world)
    world.scenario = with_masked_keys(world.scenario)
    return replace(trace, world=world)


def _add(archive: zipfile.ZipFile, path: Path, at: int) -> None:
    """Add a file, dated by the run's last instant (ms), not by the clock on the wall."""
    date = datetime.fromtimestamp(at / 1_000, UTC)
    entry = zipfile.ZipInfo(path.name, (max(date.year, _FIRST_YEAR), *date.timetuple()[1:6]))
    packed = path.suffix in _PACKED
    entry.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
    entry.file_size = path.stat().st_size
    entry.external_attr = 0o644 << 16
    with path.open("rb") as source, archive.open(entry, "w") as target:
        while part := source.read(1 << 20):
            target.write(part)


_CHUNK = 1 << 18


class ExportQuery(WireModel):
    """What the export is to hold beside the run."""

    api_keys: Annotated[Literal["true", "false"], WithJsonSchema({"type": "boolean"})] | None = (
        Field(default=None, description="Leave the API keys in the scenario.", examples=[False])
    )


class ExportOperations(Operations):
    """Packs the run as it stands when it is asked for; the server answers others meanwhile."""

    def __init__(self, core: SandboxCore) -> None:
        super().__init__(core)
        self._packing = asyncio.Lock()

    @operation("GET", f"{PREFIX}/export", media="application/zip")
    async def export_run(self, query: ExportQuery) -> Response:
        """Export the run so far.

        What dialsim run --out would have written, as a zip file. The scenario's API keys are
        masked in it.
        """
        trace = self.core.simulation.trace.snapshot()
        async with self._packing:  # one after the other: each takes a processor and memory
            packed = await asyncio.to_thread(pack, trace, query.api_keys == "true")
        headers = {
            "Content-Length": str(os.fstat(packed.fileno()).st_size),
            "Content-Disposition": 'attachment; filename="dialsim-run.zip"',
        }
        return StreamingResponse(_chunks(packed), media_type="application/zip", headers=headers)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(_CHUNK):
            yield part
