"""References: what the body of a request names, found.

Uploads: new campaigns as they come over HTTP, their recipients as JSON or as a CSV.

Campaigns over HTTP, as the interface doesn't show them: created, read, steered.

Calls over HTTP, as the interface doesn't show them: tables of them, analyses made again.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.engine.identity import agent_id
from dialsim.interface.errors import Refused
from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, UuidText, WireModel, invalid, is_uuid, read_model
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.commands import (
    AddCampaign,
    CancelCampaign,
    DeleteCampaign,
    ReanalyzeCall,
    ResumeCampaign,
)
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.control.routes import MOST_BYTES, route
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http.answers import (
    JSON,
    bare,
    query_of,
    read_bytes,
    read_json,
    refuse_query,
    require_media_type,
)
from dialsim.sandbox.http.endpoints import require_uuid
from dialsim.sandbox.organization import Account
from dialsim.sandbox.tables import CallRow, PageNumber, TransitionRow, count_pages, read_page, shown


def organization_of(named: object, core: SandboxCore) -> Account:
    """Unlike in a path, an organization that isn't there is a mistake in the request."""
    known = [account.block.name for account in core.accounts]
    if not isinstance(named, str):
        raise invalid(f"organization must be the id or the name of one: {', '.join(known)}")
    try:
        return core.organization(named)
    except Refused:
        text = f'organization "{named}" is not known; known here: {", ".join(known)}'
        raise invalid(text) from None


_CSV = "text/csv"


async def read_upload(request: Request, core: SandboxCore) -> AddCampaign:
    """What is to be added, by the organization that the request names.

    A JSON body is the campaign's block as in a scenario file, and `organization`. Beside a CSV all
    of it but the recipients stands in the query. Raises Refused; the block itself is not checked.
    """
    csv = None
    if require_media_type(request, JSON, _CSV) == _CSV:
        block, csv = _from_query(request), await read_bytes(request, MOST_BYTES)
    else:
        refuse_query(request)
        body = await read_json(request, MOST_BYTES)
        if not isinstance(body, dict):
            raise invalid("body must be an object")
        block = body
    account = organization_of(block.pop("organization", None), core)
    block["agent"] = _agent_name(block.get("agent"), account, core)
    return AddCampaign(organization=account.block.position, block=block, csv=csv)


def _from_query(request: Request) -> dict[str, Any]:
    block: dict[str, Any] = dict(query_of(request))
    if "schedule" in block:
        try:
            block["schedule"] = orjson.loads(block["schedule"])
        except orjson.JSONDecodeError:
            raise invalid("schedule must be valid JSON") from None
    return block


def _agent_name(named: object, account: Account, core: SandboxCore) -> object:
    """The name of an agent that is named by its id; anything else is left to the checks."""
    seed, position = core.simulation.log.world.seed, account.block.position
    for number, agent in enumerate(account.block.settings.agents):
        identifier = agent.id or agent_id(seed, position, number)
        if isinstance(named, str) and identifier.lower() == named.lower():
            return agent.name
    return named


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
    def of(cls, account: Account, view: CampaignView) -> CampaignState:
        """The state of a campaign of an account."""
        campaign = view.campaign
        return cls(
            id=view.identifier,
            organization=account.block.name,
            name=campaign.block.name,
            agent=campaign.block.agent.name,
            status=campaign.status,
            deleted=campaign.deleted,
            created_at=format_instant(view.created_at),
            total_recipients=view.total_recipients,
        )


class CampaignEndpoints:
    """Reads and steers campaigns of all organizations, also those that were deleted."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

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
                CampaignState.of(account, view)
                for account in self._core.accounts
                for view in account.views
            ]
        )

    async def _create(self, request: Request) -> Response:
        command = await read_upload(request, self._core)
        around = self._core.simulation.surroundings(command.organization)
        await asyncio.to_thread(command.read, around)  # meanwhile others are answered
        self._core.carry_out(command)
        account = self._core.accounts[command.organization]
        return bare(CampaignState.of(account, account.views[-1]), 201)

    async def _show(self, request: Request) -> Response:
        return bare(CampaignState.of(*self._find(request)))

    async def _delete(self, request: Request) -> Response:
        account, view = self._find(request)
        self._core.carry_out(DeleteCampaign(**view.place))
        return bare(CampaignState.of(account, view))

    async def _resume(self, request: Request) -> Response:
        account, view = self._find(request)
        self._core.carry_out(ResumeCampaign(**view.place))
        return bare(CampaignState.of(account, view))

    async def _cancel(self, request: Request) -> Response:
        account, view = self._find(request)
        self._core.carry_out(CancelCampaign(**view.place))
        return bare(CampaignState.of(account, view))

    def _find(self, request: Request) -> tuple[Account, CampaignView]:
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        return self._core.campaign(identifier)


class Wanted(WireModel):
    """Which rows of a table are wanted; filters hold together."""

    page: str | None = Field(default=None, description="From 1; pages have 100 rows.")
    status: CallStatus | None = Field(
        default=None, description="Calls in it, and changes that lead to it."
    )
    recipient: str | None = Field(
        default=None, description="A recipient's id, or position in the list, from 0."
    )
    tel: str | None = Field(default=None, description="A number as it was uploaded.")


class Page(WireModel):
    """A page of a table."""

    total: int
    total_pages: int
    page: int


class CallPage(Page):
    """A page of a campaign's calls, in the order in which they were created."""

    calls: list[CallRow]


class TransitionPage(Page):
    """A page of the changes of a campaign's calls, in the order in which they happened."""

    transitions: list[TransitionRow]


class CallEndpoints:
    """Reads the calls of campaigns of all organizations, also of those that were deleted."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        campaign = f"{PREFIX}/campaigns/{{id}}"
        return [
            route(f"{campaign}/calls", query=["get"], get=self._calls),
            route(f"{campaign}/transitions", query=["get"], get=self._transitions),
            route(f"{PREFIX}/calls/{{id}}/reanalyze", post=self._reanalyze),
        ]

    async def _calls(self, request: Request) -> Response:
        account, view, wanted, page = self._read(request)
        table, at = view.call_table, self._core.simulation.at
        if _is_whole(wanted):
            total = len(table)
            calls = np.arange(*page.rows.indices(total))
        else:
            found = table.find(at, wanted.status, _recipients(account, view, wanted))
            total, calls = len(found), found[page.rows]
        return bare(CallPage(**_head(page, total), calls=table.rows(calls, at)))

    async def _transitions(self, request: Request) -> Response:
        account, view, wanted, page = self._read(request)
        table, at = view.transition_table, self._core.simulation.at
        if _is_whole(wanted):
            total = table.count(at)
            start, stop, _ = page.rows.indices(total)
            rows = shown(table.rows(start, stop, at))
        else:
            found = table.find(at, wanted.status, _recipients(account, view, wanted))
            total, rows = len(found), shown(found[page.rows])
        return bare(TransitionPage(**_head(page, total), transitions=rows))

    async def _reanalyze(self, request: Request) -> Response:
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        view, call = self._core.call(identifier)
        self._core.carry_out(ReanalyzeCall(**view.place, call=call))
        [row] = view.call_table.rows(np.array([call]), self._core.simulation.at)
        return bare(row)

    def _read(self, request: Request) -> tuple[Account, CampaignView, Wanted, PageNumber]:
        """The campaign, caught up with, and what is wanted of it."""
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        wanted = read_model(Wanted, query_of(request))
        page = read_page(wanted.page)
        account, view = self._core.campaign(identifier)
        view.catch_up()
        return account, view, wanted, page


def _is_whole(wanted: Wanted) -> bool:
    return wanted.status is None and wanted.recipient is None and wanted.tel is None


def _head(page: PageNumber, total: int) -> dict[str, int]:
    return {"total": total, "total_pages": count_pages(total), "page": page.place + 1}


def _recipients(account: Account, view: CampaignView, wanted: Wanted) -> NDArray[np.int64] | None:
    """The recipients that are wanted; None if all are."""
    chosen: NDArray[np.int64] | None = None
    if wanted.recipient is not None:
        chosen = np.array(_recipient(account, view, wanted.recipient), dtype=np.int64)
    if wanted.tel is not None:
        having = view.who_has(wanted.tel)
        chosen = having if chosen is None else np.intersect1d(chosen, having)
    return chosen


def _recipient(account: Account, view: CampaignView, named: str) -> list[int]:
    if is_uuid(named):
        found = account.uploaded(named)
        return [found[1]] if found is not None and found[0] is view else []
    if not named.isascii() or not named.isdecimal() or len(named) > 9:
        raise invalid("recipient must be a recipient's id, or a position in the list from 0")
    return [int(named)]
