"""Faults over HTTP: asked for, listed with what became of them, and cleared."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dialsim.interface.errors import Refused
from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, WireModel, invalid
from dialsim.sandbox.commands import ClearFaults, InjectFault
from dialsim.sandbox.control.campaigns import organization_of
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import FaultOrder, InjectedFault
from dialsim.sandbox.http import failures as fail
from dialsim.sandbox.http.operation import Operations, link, number, operation


class FaultState(WireModel):
    """A fault, and what became of it so far."""

    id: int
    asked: FaultOrder
    met: int = Field(description="How many it could have struck.")
    struck: int
    left: int | None = Field(
        description="How many it is still to strike; null where only time ends it."
    )
    until: InstantText | None = Field(
        description="The virtual instant at which it ends, where its order says how long it lasts."
    )

    @classmethod
    def of(cls, fault: InjectedFault) -> FaultState:
        """The state of a fault."""
        return cls(
            id=fault.number,
            asked=fault.order,
            met=fault.met,
            struck=fault.struck,
            left=fault.left,
            until=None if fault.until is None else format_instant(fault.until),
        )


def injection(order: FaultOrder, core: SandboxCore) -> InjectFault:
    """The command of an order, whom it strikes being known; raises Refused for who is unknown."""
    unknown: list[str] = []
    organization = campaign = owner = None
    if order.organization is not None:
        try:
            organization = organization_of(order.organization, core).block.position
        except Refused as refused:
            unknown += refused.errors
    if order.campaign is not None:
        try:
            owner, view = core.campaign(order.campaign)
            campaign = view.place["campaign"]
        except Refused:
            unknown.append(f'campaign "{order.campaign}" is not the id of one')
    if unknown:
        raise invalid(*unknown)
    if owner is not None and organization not in (None, owner.block.position):
        raise invalid(f"campaign is one of {owner.block.name}, not of {order.organization}")
    if owner is not None:
        organization = owner.block.position
    return InjectFault(order=order, organization=organization, campaign=campaign)


_FaultNumber = Annotated[int, number("The fault's number, from 1.", fail.NO_FAULT)]


class FaultOperations(Operations):
    """Takes orders for faults, lists and clears them."""

    @operation("GET", f"{PREFIX}/faults")
    def list_faults(self) -> list[FaultState]:
        """List the faults.

        Spent ones too, until they are cleared.
        """
        return [FaultState.of(fault) for fault in self.core.faults]

    @operation(
        "POST",
        f"{PREFIX}/faults",
        fail.TOO_MANY_FAULTS,
        status=201,
        links={"itself": link("getFault", "id", "id"), "itsEnd": link("clearFault", "id", "id")},
    )
    def add_fault(self, body: FaultOrder) -> FaultState:
        """Have something go wrong.

        Strikes the next ones that it meets, and is spent.
        """
        self.core.carry_out(injection(body, self.core))
        return FaultState.of(self.core.faults.newest())

    @operation("DELETE", f"{PREFIX}/faults")
    def clear_faults(self) -> list[FaultState]:
        """Clear all faults.

        Answers those that were cleared; nothing more is struck.
        """
        cleared = self.list_faults()
        self.core.carry_out(ClearFaults())
        return cleared

    @operation("GET", f"{PREFIX}/faults/{{id}}")
    def get_fault(self, id: _FaultNumber) -> FaultState:
        """Get a fault.

        What was asked for, and what became of it.
        """
        return FaultState.of(self.core.faults.find(id))

    @operation("DELETE", f"{PREFIX}/faults/{{id}}")
    def clear_fault(self, id: _FaultNumber) -> FaultState:
        """Clear a fault.

        It strikes no more, and its number is not used again.
        """
        fault = self.core.faults.find(id)
        self.core.carry_out(ClearFaults(number=fault.number))
        return FaultState.of(fault)
