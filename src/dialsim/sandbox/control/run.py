"""The run over HTTP: reset and snapshots, export of the run so far, and forecasts."""

from __future__ import annotations

import asyncio
import os
import zipfile
from asyncio import CancelledError
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Event
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from starlette.responses import Response, StreamingResponse

from dialsim.engine.campaign import SimulatedCampaign
from dialsim.engine.trace import Trace
from dialsim.errors import DialsimError
from dialsim.interface import CampaignStatus
from dialsim.interface.instants import format_instant, utc
from dialsim.interface.model import InstantText, NullAsAbsent, UuidText, WireModel
from dialsim.results.result import Result
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.control.clock import ClockState
from dialsim.sandbox.core import SandboxCore, Snapshot
from dialsim.sandbox.live_engine import remaining_run
from dialsim.sandbox.operation import Operations, PathParameter, operation
from dialsim.scenario.fields import Whole, patterned
from dialsim.scenario.loading import with_masked_keys

if TYPE_CHECKING:
    from dialsim.experiments.forecast import Forecast, ForecastFigures


_NAME_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
SnapshotName = Annotated[
    str,
    patterned(_NAME_PATTERN, "must be 1 to 64 letters, digits, or . _ -"),
    Field(json_schema_extra={"pattern": _NAME_PATTERN}),
]
_PREFIX = "snapshot-"


class NewSnapshot(WireModel):
    """A snapshot to be taken."""

    name: SnapshotName | None = Field(
        default=None,
        description="Name of the snapshot. Left out: snapshot-1, snapshot-2 and so on.",
        examples=["before"],
    )


class SnapshotState(WireModel):
    """A snapshot: a state that the sandbox was in."""

    name: str
    at: InstantText = Field(description="Where the clock stood.")
    replays: int = Field(description="How many commands and POSTs a restore replays.")

    @classmethod
    def of(cls, name: str, snapshot: Snapshot) -> SnapshotState:
        """The state of a snapshot."""
        return cls(name=name, at=format_instant(snapshot.at), replays=len(snapshot.records))


_SnapshotName = Annotated[
    str,
    PathParameter(
        "The snapshot's name.",
        {"type": "string", "minLength": 1},
        lambda _core, _name, text: text,
        (fail.NO_SNAPSHOT,),
    ),
]


_PACKED = (".parquet", ".gz")  # these formats are compressed already
_FIRST_YEAR = 1980  # first year of the calendar of zip files


def pack(trace: Trace, api_keys: bool = False) -> IO[bytes]:
    """Return a zip file, open at its beginning, with all tables, webhooks, summary and report of a
    run so far. The file has no name and disappears when it is closed. `trace` must not grow
    meanwhile. API keys in the scenario are masked unless `api_keys`.
    """
    # The import takes a second, which would delay the start of the server.
    from dialsim.report.writing import write_run

    with TemporaryDirectory(prefix="dialsim-export-") as draft:
        shown = trace if api_keys else _masked(trace)
        folder = write_run(Result(shown), Path(draft) / "run")
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
    # So the same run has the same export, byte for byte, whenever it is asked for.
    date = utc(at)
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
    """Options of an export."""

    api_keys: Annotated[Literal["true", "false"], WithJsonSchema({"type": "boolean"})] | None = (
        Field(default=None, description="Leave the API keys in the scenario.", examples=[False])
    )


def _chunks(trace: Trace, api_keys: bool) -> Iterator[bytes]:
    """Yield the size of an export, and then its parts.

    The file is closed with the generator, also if the client is gone before the first part.
    """
    with pack(trace, api_keys) as file:
        yield b"%d" % os.fstat(file.fileno()).st_size
        while part := file.read(_CHUNK):
            yield part


# Equal to `FEWEST_RUNS` of `experiments.forecast`, which would slow down the server's start.
FEWEST, MOST = 19, 1_000


class ForecastOrder(WireModel):
    """Options of a forecast."""

    replications: Annotated[Whole, Field(ge=FEWEST, le=MOST), NullAsAbsent()] = Field(
        default=100, description="Number of runs.", examples=[100]
    )
    seed: Annotated[Whole, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="Seed of the runs. Left out: the sandbox's.", examples=[1]
    )


class FinishJson(WireModel):
    """Median of the runs (`half`), and an interval that is right nine times out of ten."""

    low: InstantText | None = Field(description="null if not done.")
    half: InstantText | None = Field(description="null if not done.")
    high: InstantText | None = Field(description="null if not done.")


class ReachJson(WireModel):
    """Median of the runs (`half`), and an interval that is right nine times out of ten."""

    low: float
    half: float
    high: float


class ForecastPart(WireModel):
    """Forecast of a campaign, or of all campaigns together."""

    people: int
    reached: int = Field(description="Number of people reached already.")
    done_by: InstantText | None = Field(
        description="Instant by which 95 % of the runs are done; null if fewer ever are."
    )
    finish: FinishJson = Field(description="Instant at which everybody is settled.")
    reach: ReachJson = Field(description="Number of people reached in the end.")


class CampaignForecast(ForecastPart):
    """Forecast of a campaign that has begun and is not over."""

    id: UuidText
    organization: str = Field(description="Name of the organization.")
    campaign: str = Field(description="Name of the campaign.")
    status: CampaignStatus


class ForecastAnswer(WireModel):
    """Forecast from the current instant on."""

    at: InstantText = Field(description="The instant at which the runs begin.")
    replications: int
    sentences: list[str] = Field(description="The forecast in words.")
    overall: ForecastPart | None = Field(
        description="All campaigns together; null if none is under way."
    )
    campaigns: list[CampaignForecast]


class RunOperations(Operations):
    """Operations that export, reset, restore and forecast the run."""

    def __init__(self, core: SandboxCore) -> None:
        super().__init__(core)
        self._packing, self._forecasting = asyncio.Lock(), asyncio.Lock()

    @operation("GET", f"{PREFIX}/export", media="application/zip")
    async def export_run(self, query: ExportQuery) -> Response:
        """Export the run so far.

        What dialsim run --out would have written, as a zip file. The scenario's API keys are
        masked in it.
        """
        trace = self.core.simulation.trace.snapshot()
        chunks = _chunks(trace, query.api_keys == "true")
        # One export at a time, because each takes a processor and the memory of all tables.
        async with self._packing:
            size = await asyncio.to_thread(next, chunks)
        headers = {
            "Content-Length": size.decode(),
            "Content-Disposition": 'attachment; filename="dialsim-run.zip"',
        }
        return StreamingResponse(chunks, media_type="application/zip", headers=headers)

    @operation("POST", f"{PREFIX}/reset")
    async def reset_sandbox(self) -> ClockState:
        """Reset the sandbox.

        It is as at its start: clock, campaigns, calls, webhooks, faults, scripts and API keys.
        Snapshots stay. POSTs under way are broken off, an advance under way ends with 409, and the
        clock stands still.
        """
        await self.core.restore(None)
        return ClockState.of(self.core)

    @operation("GET", f"{PREFIX}/snapshots")
    def list_snapshots(self) -> list[SnapshotState]:
        """List the snapshots.

        In the order in which they were taken.
        """
        snapshots = self.core.snapshots
        return [SnapshotState.of(name, snapshot) for name, snapshot in snapshots.items()]

    @operation(
        "POST",
        f"{PREFIX}/snapshots",
        fail.SNAPSHOT_EXISTS,
        fail.TOO_MANY_SNAPSHOTS,
        status=201,
        body_required=False,
    )
    def take_snapshot(self, body: NewSnapshot) -> SnapshotState:
        """Take a snapshot.

        The current state can be restored under its name, as often as wanted.
        """
        name = self._free_name() if body.name is None else body.name
        return SnapshotState.of(name, self.core.take_snapshot(name))

    @operation("POST", f"{PREFIX}/snapshots/{{name}}/restore")
    async def restore_snapshot(self, name: _SnapshotName) -> ClockState:
        """Restore a snapshot.

        The sandbox is as it was when the snapshot was taken, but for the clock, which stands still.
        POSTs that were under way then leave again. What is under way now is broken off, and an
        advance ends with 409.
        """
        await self.core.restore(name)
        return ClockState.of(self.core)

    @operation("DELETE", f"{PREFIX}/snapshots/{{name}}")
    def delete_snapshot(self, name: _SnapshotName) -> SnapshotState:
        """Delete a snapshot.

        Nothing else changes.
        """
        deleted = SnapshotState.of(name, self.core.snapshot(name))
        self.core.drop_snapshot(name)
        return deleted

    def _free_name(self) -> str:
        taken, number = self.core.snapshots, 1
        while f"{_PREFIX}{number}" in taken:
            number += 1
        return f"{_PREFIX}{number}"

    @operation("POST", f"{PREFIX}/forecast", body_required=False, kept=False)
    async def forecast_run(self, body: ForecastOrder) -> ForecastAnswer:
        """Forecast the rest of the run.

        When campaigns will be done and how many people they will reach, by runs from this instant
        on. Nothing changes in the sandbox, and other requests are answered meanwhile.
        """
        remaining, at = remaining_run(self.core.simulation), format_instant(self.core.at)
        views = [view for account in self.core.accounts for view in account.views]
        statuses = {view: view.campaign.status for view in views if _goes_on(view.campaign)}
        stopped = Event()

        def go_on(_done: int, _total: int) -> None:
            if stopped.is_set():
                raise DialsimError("the client no longer waits for the forecast")

        def work() -> ForecastAnswer:
            # Imported here, because the import is slow and few clients need it.
            from dialsim.experiments.forecast import forecast

            runs = None
            if statuses:
                runs = forecast(remaining(), body.replications, seed=body.seed, progress=go_on)
            return _answer(at, statuses, runs, body.replications)

        # One forecast at a time, because each uses all processors.
        async with self._forecasting:
            try:
                return await asyncio.to_thread(work)
            except CancelledError:
                stopped.set()
                raise


def _goes_on(campaign: SimulatedCampaign) -> bool:
    """True for a campaign that was scheduled and is not over."""
    is_draft = campaign.status is CampaignStatus.DRAFT
    return not (is_draft or campaign.status.final or campaign.deleted)


def _answer(
    at: str, statuses: dict[CampaignView, CampaignStatus], runs: Forecast | None, replications: int
) -> ForecastAnswer:
    """Return a forecast of campaigns, given their statuses at its beginning."""
    overall: ForecastPart | None = None
    named: dict[tuple[str, str], ForecastFigures] = {}
    if runs is not None and runs.figures is not None:
        overall, named = ForecastPart(**_shown(runs.figures)), runs.campaigns()
    campaigns = []
    for view, status in statuses.items():
        name = view.part.owner.name, view.campaign.block.name
        if name in named:
            about = {"id": view.identifier, "organization": name[0], "campaign": name[1]}
            part = CampaignForecast(**about, status=status, **_shown(named[name]))
            campaigns.append(part)
    return ForecastAnswer(
        at=at,
        replications=replications,
        sentences=["Nothing is scheduled."] if runs is None else runs.sentences(),
        overall=overall,
        campaigns=campaigns,
    )


def _shown(figures: ForecastFigures) -> dict[str, Any]:
    shown = figures.to_dict()
    return {name: shown[name] for name in ForecastPart.model_fields}
