"""Faults over HTTP: asked for, listed with what became of them, and cleared."""

from __future__ import annotations

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.errors import Refused
from dialsim.interface.model import WireModel, invalid, read_model
from dialsim.sandbox.commands import ClearFaults, InjectFault
from dialsim.sandbox.control.campaigns import organization_of
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.control.routes import MOST_BYTES, route
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import FaultOrder, InjectedFault
from dialsim.sandbox.http.answers import bare, read_json

_MOST_DIGITS = 9


class FaultState(WireModel):
    """A fault, and what became of it so far."""

    id: int
    asked: FaultOrder
    met: int = Field(description="How many it could have struck.")
    struck: int
    left: int = Field(description="How many it is still to strike.")

    @classmethod
    def of(cls, fault: InjectedFault) -> FaultState:
        """The state of a fault."""
        return cls(
            id=fault.number,
            asked=fault.order,
            met=fault.met,
            struck=fault.struck,
            left=fault.left,
        )


def read_fault(body: object, core: SandboxCore) -> InjectFault:
    """What is asked for, whom it strikes being known; raises Refused where that makes no sense."""
    order = read_model(FaultOrder, body)
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


def find_fault(request: Request, core: SandboxCore) -> InjectedFault:
    """The fault whose id stands in the path; 404 if there is none."""
    number = request.path_params["id"]
    known = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    return core.faults.find(int(number) if known else 0)


class FaultEndpoints:
    """Takes orders for faults, lists and clears them."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        faults = f"{PREFIX}/faults"
        return [
            route(faults, body=["post"], get=self._list, post=self._add, delete=self._clear_all),
            route(f"{faults}/{{id}}", get=self._show, delete=self._clear),
        ]

    async def _list(self, _request: Request) -> Response:
        return bare([FaultState.of(fault) for fault in self._core.faults])

    async def _add(self, request: Request) -> Response:
        self._core.carry_out(read_fault(await read_json(request, MOST_BYTES), self._core))
        return bare(FaultState.of(self._core.faults.newest()), 201)

    async def _show(self, request: Request) -> Response:
        return bare(FaultState.of(find_fault(request, self._core)))

    async def _clear(self, request: Request) -> Response:
        fault = find_fault(request, self._core)
        self._core.carry_out(ClearFaults(number=fault.number))
        return bare(FaultState.of(fault))

    async def _clear_all(self, _request: Request) -> Response:
        cleared = [FaultState.of(fault) for fault in self._core.faults]
        self._core.carry_out(ClearFaults())
        return bare(cleared)
