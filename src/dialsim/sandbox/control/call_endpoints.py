"""Calls over HTTP, as the interface doesn't show them: tables of them, analyses made again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.identifiers import is_uuid
from dialsim.interface.status import CallStatus
from dialsim.interface.wire import WireModel
from dialsim.sandbox.account import Account
from dialsim.sandbox.call_table import CallRow
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.commands import ReanalyzeCall
from dialsim.sandbox.control.routes import route
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.envelopes import bare
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.page_number import PageNumber, count_pages, read_page
from dialsim.sandbox.service import require_uuid
from dialsim.sandbox.shapes import invalid, query_of, read_shape
from dialsim.sandbox.transition_table import TransitionRow, shown


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

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        campaign = f"{PREFIX}/campaigns/{{id}}"
        return [
            route(f"{campaign}/calls", query=["get"], get=self._calls),
            route(f"{campaign}/transitions", query=["get"], get=self._transitions),
            route(f"{PREFIX}/calls/{{id}}/reanalyze", post=self._reanalyze),
        ]

    async def _calls(self, request: Request) -> Response:
        account, desk, wanted, page = self._read(request)
        table, at = desk.call_table, self._exchange.simulation.at
        if _is_whole(wanted):
            total = len(table)
            calls = np.arange(*page.rows.indices(total))
        else:
            found = table.find(at, wanted.status, _recipients(account, desk, wanted))
            total, calls = len(found), found[page.rows]
        return bare(CallPage(**_head(page, total), calls=table.rows(calls, at)))

    async def _transitions(self, request: Request) -> Response:
        account, desk, wanted, page = self._read(request)
        table, at = desk.transition_table, self._exchange.simulation.at
        if _is_whole(wanted):
            total = table.count(at)
            start, stop, _ = page.rows.indices(total)
            rows = shown(table.rows(start, stop, at))
        else:
            found = table.find(at, wanted.status, _recipients(account, desk, wanted))
            total, rows = len(found), shown(found[page.rows])
        return bare(TransitionPage(**_head(page, total), transitions=rows))

    async def _reanalyze(self, request: Request) -> Response:
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        desk, call = self._exchange.call(identifier)
        self._exchange.carry_out(ReanalyzeCall(**desk.place, call=call))
        [row] = desk.call_table.rows(np.array([call]), self._exchange.simulation.at)
        return bare(row)

    def _read(self, request: Request) -> tuple[Account, CampaignDesk, Wanted, PageNumber]:
        """The campaign, caught up with, and what is wanted of it."""
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        wanted = read_shape(Wanted, query_of(request))
        page = read_page(wanted.page)
        account, desk = self._exchange.campaign(identifier)
        desk.catch_up()
        return account, desk, wanted, page


def _is_whole(wanted: Wanted) -> bool:
    return wanted.status is None and wanted.recipient is None and wanted.tel is None


def _head(page: PageNumber, total: int) -> dict[str, int]:
    return {"total": total, "total_pages": count_pages(total), "page": page.place + 1}


def _recipients(account: Account, desk: CampaignDesk, wanted: Wanted) -> NDArray[np.int64] | None:
    """The recipients that are wanted; None if all are."""
    chosen: NDArray[np.int64] | None = None
    if wanted.recipient is not None:
        chosen = np.array(_recipient(account, desk, wanted.recipient), dtype=np.int64)
    if wanted.tel is not None:
        having = desk.who_has(wanted.tel)
        chosen = having if chosen is None else np.intersect1d(chosen, having)
    return chosen


def _recipient(account: Account, desk: CampaignDesk, named: str) -> list[int]:
    if is_uuid(named):
        found = account.uploaded(named)
        return [found[1]] if found is not None and found[0] is desk else []
    if not named.isascii() or not named.isdecimal() or len(named) > 9:
        raise invalid("recipient must be a recipient's id, or a position in the list from 0")
    return [int(named)]
