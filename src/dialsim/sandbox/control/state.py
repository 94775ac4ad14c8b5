"""The sandbox's state over HTTP: reset, and snapshots that are taken, restored and deleted."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, WireModel
from dialsim.sandbox.control.clock import ClockState
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import Snapshot
from dialsim.sandbox.http import failures as fail
from dialsim.sandbox.http.operation import Operations, PathParameter, link, operation
from dialsim.scenario.fields import patterned

NAME_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
NAME_TEXT = "must be 1 to 64 letters, digits, or . _ -"
_PREFIX = "snapshot-"


class NewSnapshot(WireModel):
    """A snapshot to be taken."""

    name: (
        Annotated[
            str,
            patterned(NAME_PATTERN, NAME_TEXT),
            WithJsonSchema({"type": "string", "pattern": NAME_PATTERN}),
        ]
        | None
    ) = Field(
        default=None,
        description="Its name. Left out: snapshot-1, snapshot-2 and so on.",
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


class StateOperations(Operations):
    """Takes the sandbox back to where it was."""

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
        links={
            "itsRestore": link("restoreSnapshot", "name", "name"),
            "itsEnd": link("deleteSnapshot", "name", "name"),
        },
    )
    def take_snapshot(self, body: NewSnapshot) -> SnapshotState:
        """Take a snapshot.

        The state of now can be restored under its name, as often as wanted.
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
