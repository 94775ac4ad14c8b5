"""The faults of a sandbox, asked for from Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from dialsim.sandbox.client.clock import ControlClient
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.records import CampaignRecord, find

_FAULTS = f"{PREFIX}/faults"


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """A fault as it stood when it was asked for or listed.

    `asked` has what was asked, under the names of the control plane. The fault `met` so many that
    it could have struck, `struck` so many of them, and is still to strike the `left` ones.
    """

    id: int
    asked: Mapping[str, object]
    met: int
    struck: int
    left: int

    @classmethod
    def read(cls, state: dict[str, Any]) -> Self:
        """Read the state of a fault as it is on the wire."""
        asked = {name: value for name, value in state["asked"].items() if value is not None}
        return cls(state["id"], asked, state["met"], state["struck"], state["left"])


class RemoteFaults:
    """What goes wrong on purpose: faults are added here, and counted as they strike.

    Iteration lists all that were not cleared, the oldest first; `faults[3]` is the one with id 3.
    """

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def strike_webhooks(
        self,
        how: Literal["timeout", "refuse", "late", "twice"],
        times: int = 1,
        *,
        share: float = 1,
        organization: str | None = None,
        campaign: str | None = None,
    ) -> FaultRecord:
        """Have something happen to the next POSTs of the webhook, `times` of them.

        `timeout`: nothing arrives, and the service waits 10 s; `refuse`: the connection is refused;
        `late`: the POST arrives, but its answer counts as too late; `twice`: it arrives twice.
        Below a `share` of 1 it is left to chance, POST by POST, which are struck.
        """
        return self._add(
            webhooks=how,
            next=times,
            share=share,
            organization=organization,
            campaign=None if campaign is None else self._campaign(campaign),
        )

    def strike_api(
        self,
        how: Literal["error", "slow"],
        times: int = 1,
        *,
        status: Literal[500, 502, 503, 504] | None = None,
        delay: str | None = None,
        share: float = 1,
        organization: str | None = None,
        path: str | None = None,
    ) -> FaultRecord:
        """Have something happen to the answers to the next requests, `times` of them.

        `error`: the answer is an error, of `status` 503 unless said otherwise, and nothing is done;
        `slow`: it comes after a `delay` of real time, such as `2s`. `path` is how the paths begin
        that are struck; `share` as for webhooks.
        """
        return self._add(
            api=how,
            next=times,
            status=status,
            delay=delay,
            share=share,
            organization=organization,
            path=path,
        )

    def clear(self, fault: FaultRecord | int | None = None) -> None:
        """Forget a fault, or its id; without one, all of them."""
        if fault is None:
            self._client.ask("DELETE", _FAULTS)
        else:
            number = fault.id if isinstance(fault, FaultRecord) else fault
            self._client.ask("DELETE", f"{_FAULTS}/{number}")

    def __iter__(self) -> Iterator[FaultRecord]:
        return iter([FaultRecord.read(state) for state in self._client.ask("GET", _FAULTS)])

    def __getitem__(self, number: int) -> FaultRecord:
        return FaultRecord.read(self._client.ask("GET", f"{_FAULTS}/{number}"))

    def __repr__(self) -> str:
        return f"<dialsim faults: {[*self]}>"

    def _add(self, **order: object) -> FaultRecord:
        return FaultRecord.read(self._client.ask("POST", _FAULTS, order))

    def _campaign(self, name: str) -> str:
        listed = self._client.ask("GET", f"{PREFIX}/campaigns")
        return find([CampaignRecord.read(state) for state in listed], name).id
