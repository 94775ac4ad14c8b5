"""Campaigns over HTTP, as the interface doesn't show them: created, read, steered."""

from __future__ import annotations

import asyncio

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.instants import format_instant
from dialsim.interface.status import CampaignStatus
from dialsim.interface.wire import InstantText, UuidText, WireModel
from dialsim.sandbox.account import Account
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.commands import CancelCampaign, DeleteCampaign, ResumeCampaign
from dialsim.sandbox.control.routes import route
from dialsim.sandbox.control.upload import read_upload
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.envelopes import bare
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.service import require_uuid


class CampaignState(WireModel):
    """A campaign as it stands."""

    id: UuidText
    organization: str = Field(description="Its name.")
    name: str
    agent: str = Field(description="Its name.")
    status: CampaignStatus
    deleted: bool = Field(description="Whether it is missing in the interface itself.")
    created_at: InstantText
    total_recipients: int

    @classmethod
    def of(cls, account: Account, desk: CampaignDesk) -> CampaignState:
        """The state of a campaign of an account."""
        campaign = desk.campaign
        return cls(
            id=desk.identifier,
            organization=account.block.name,
            name=campaign.block.name,
            agent=campaign.block.agent.name,
            status=campaign.status,
            deleted=campaign.deleted,
            created_at=format_instant(desk.created_at),
            total_recipients=desk.total_recipients,
        )


class CampaignEndpoints:
    """Reads and steers campaigns of all organizations, also those that were deleted."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        campaigns = f"{PREFIX}/campaigns"
        return [
            route(
                campaigns,
                query=["post"],
                body=["post"],
                get=self._list,
                post=self._create,
            ),
            route(f"{campaigns}/{{id}}", get=self._show, delete=self._delete),
            route(f"{campaigns}/{{id}}/resume", post=self._resume),
            route(f"{campaigns}/{{id}}/cancel", post=self._cancel),
        ]

    async def _list(self, _request: Request) -> Response:
        return bare(
            [
                CampaignState.of(account, desk)
                for account in self._exchange.accounts
                for desk in account.desks
            ]
        )

    async def _create(self, request: Request) -> Response:
        command = await read_upload(request, self._exchange)
        around = self._exchange.simulation.surroundings(command.organization)
        await asyncio.to_thread(command.read, around)  # meanwhile others are answered
        self._exchange.carry_out(command)
        account = self._exchange.accounts[command.organization]
        return bare(CampaignState.of(account, account.desks[-1]), 201)

    async def _show(self, request: Request) -> Response:
        return bare(CampaignState.of(*self._find(request)))

    async def _delete(self, request: Request) -> Response:
        account, desk = self._find(request)
        self._exchange.carry_out(DeleteCampaign(**desk.place))
        return bare(CampaignState.of(account, desk))

    async def _resume(self, request: Request) -> Response:
        account, desk = self._find(request)
        self._exchange.carry_out(ResumeCampaign(**desk.place))
        return bare(CampaignState.of(account, desk))

    async def _cancel(self, request: Request) -> Response:
        account, desk = self._find(request)
        self._exchange.carry_out(CancelCampaign(**desk.place))
        return bare(CampaignState.of(account, desk))

    def _find(self, request: Request) -> tuple[Account, CampaignDesk]:
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        return self._exchange.campaign(identifier)
