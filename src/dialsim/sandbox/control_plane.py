"""What the interface doesn't show: the clock and the campaigns' further commands, at /_dialsim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import orjson
from pydantic import BaseModel
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dialsim.interface.errors import Refused
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.commands import CancelCampaign, DeleteCampaign, ResumeCampaign
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.envelopes import MEDIA_TYPE
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.manual_clock import ManualClock
from dialsim.sandbox.request_body import read_json
from dialsim.sandbox.service import require_uuid
from dialsim.scenario.units import parse_duration

MOST_BYTES = 268_435_456
_MOVES = ("to", "by", "until")


class ClockState(BaseModel):
    """The clock: `nextEventAt` is null when nothing is left to happen."""

    now: str
    mode: Literal["manual"] = "manual"
    speed: None = None
    nextEventAt: str | None  # noqa: N815 - as on the wire
    status: Literal["ready", "advancing"]


class CampaignState(BaseModel):
    """A campaign as it stands; `deleted` ones are missing in the interface itself."""

    id: str
    organization: str
    name: str
    agent: str
    status: str
    deleted: bool
    createdAt: str  # noqa: N815 - as on the wire
    totalRecipients: int  # noqa: N815 - as on the wire


class ControlPlane:
    """Serves /_dialsim; success is plain JSON, errors have the interface's envelope."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._clock = ManualClock(exchange.simulation)

    def routes(self) -> list[BaseRoute]:
        """The routes of the control plane."""
        campaign = f"{PREFIX}/campaigns/{{id}}"
        return [
            Route(f"{PREFIX}/clock", self._show_clock),
            Route(f"{PREFIX}/clock/advance", self._advance, methods=["POST"]),
            Route(f"{PREFIX}/campaigns", self._campaigns),
            Route(campaign, self._campaign_endpoint()),
            Route(f"{campaign}/resume", self._resume, methods=["POST"]),
            Route(f"{campaign}/cancel", self._cancel, methods=["POST"]),
        ]

    # -- the clock --------------------------------------------------------------------------------

    async def _show_clock(self, _request: Request) -> Response:
        ahead = self._exchange.simulation.next_instant()
        return _plain(
            ClockState(
                now=format_instant(self._exchange.simulation.at),
                nextEventAt=None if ahead is None else format_instant(ahead),
                status="advancing" if self._clock.advancing else "ready",
            )
        )

    async def _advance(self, request: Request) -> Response:
        move, value = _move(await read_json(request, MOST_BYTES))
        if move == "to":
            await self._clock.advance_to(_read(move, parse_instant, value))
        elif move == "by":
            await self._clock.advance_by(_read(move, parse_duration, value))
        elif value == "nextEvent":
            await self._clock.advance_to_next_event()
        elif value == "idle":
            await self._clock.advance_to_idle()
        else:
            raise _invalid("until must be nextEvent or idle")
        return await self._show_clock(request)

    # -- campaigns --------------------------------------------------------------------------------

    async def _campaigns(self, _request: Request) -> Response:
        states = [
            _state(account.block.name, desk).model_dump()
            for account in self._exchange.accounts
            for desk in account.desks
        ]
        return Response(orjson.dumps(states), media_type=MEDIA_TYPE)

    def _campaign_endpoint(self) -> type[HTTPEndpoint]:
        """GET and DELETE of one campaign: one path, so that 405 names both."""
        plane = self

        class CampaignEndpoint(HTTPEndpoint):
            async def get(self, request: Request) -> Response:
                return _plain(_state(*plane._find(request)))

            async def delete(self, request: Request) -> Response:
                owner, desk = plane._find(request)
                plane._exchange.carry_out(DeleteCampaign(**desk.place))
                return _plain(_state(owner, desk))

        return CampaignEndpoint

    async def _resume(self, request: Request) -> Response:
        owner, desk = self._find(request)
        self._exchange.carry_out(ResumeCampaign(**desk.place))
        return _plain(_state(owner, desk))

    async def _cancel(self, request: Request) -> Response:
        owner, desk = self._find(request)
        self._exchange.carry_out(CancelCampaign(**desk.place))
        return _plain(_state(owner, desk))

    def _find(self, request: Request) -> tuple[str, CampaignDesk]:
        """The campaign of any organization, also one that was deleted."""
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        account, desk = self._exchange.campaign(identifier)
        return account.block.name, desk


def _state(organization: str, desk: CampaignDesk) -> CampaignState:
    campaign = desk.campaign
    return CampaignState(
        id=desk.identifier,
        organization=organization,
        name=campaign.block.name,
        agent=campaign.block.agent.name,
        status=campaign.status,
        deleted=campaign.deleted,
        createdAt=format_instant(desk.created_at),
        totalRecipients=desk.total_recipients,
    )


def _plain(state: BaseModel) -> Response:
    return Response(orjson.dumps(state.model_dump()), media_type=MEDIA_TYPE)


def _move(body: object) -> tuple[str, str]:
    """The one way in which the clock is to be moved, and how far."""
    if not isinstance(body, Mapping):
        raise _invalid("body must be an object")
    unknown = [f"property {name} should not exist" for name in body if name not in _MOVES]
    if unknown:
        raise Refused(400, "VALIDATION_FAILED", unknown)
    if len(body) != 1:
        raise _invalid("one of to, by and until must be given")
    [(name, value)] = body.items()
    if not isinstance(value, str):
        raise _invalid(f"{name} must be a string")
    return name, value


def _read(name: str, parse: Callable[[str], int], value: str) -> int:
    try:
        return parse(value)
    except ValueError as error:
        raise _invalid(f"{name}: {error}") from None


def _invalid(text: str) -> Refused:
    return Refused(400, "VALIDATION_FAILED", [text])
