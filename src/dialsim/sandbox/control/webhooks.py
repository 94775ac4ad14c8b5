"""Webhooks over HTTP: every POST that was made, every payload that was kept, and sending again."""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import suppress
from typing import Annotated

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.errors import Refused
from dialsim.interface.model import WireModel
from dialsim.results.timeline import Position
from dialsim.sandbox.commands import ResendWebhook
from dialsim.sandbox.control.campaigns import Page
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.control.routes import route
from dialsim.sandbox.core import Exchange
from dialsim.sandbox.http.answers import bare, query_of, read_shape
from dialsim.sandbox.http.endpoints import require_uuid
from dialsim.sandbox.tables import count_pages, read_page
from dialsim.sandbox.webhooks import WebhookRow
from dialsim.scenario.fields import patterned

STATUS_PATTERN = r"^(delivered|failed|kept|underWay|timeout|refused|broken|[1-9][0-9]{2})$"
STATUS_TEXT = (
    "must be delivered, failed, kept, underWay, timeout, refused, broken or an HTTP status"
)

_MOST_DIGITS = 9


class WantedWebhooks(WireModel):
    """Which rows are wanted; filters hold together."""

    page: str | None = Field(default=None, description="From 1; pages have 100 rows.")
    call: str | None = Field(default=None, description="A call's id.")
    campaign: str | None = Field(default=None, description="A campaign's id.")
    status: Annotated[str, patterned(STATUS_PATTERN, STATUS_TEXT)] | None = Field(
        default=None, description="What came of them."
    )


class WebhookPage(Page):
    """A page of POSTs and kept payloads, in the order in which they left."""

    webhooks: list[WebhookRow]


class WebhookEndpoints:
    """Reads what was sent to the receivers of all organizations, and has it sent again."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        webhooks = f"{PREFIX}/webhooks"
        return [
            route(webhooks, query=["get"], get=self._list),
            route(f"{webhooks}/{{n}}/resend", post=self._resend),
        ]

    async def _list(self, request: Request) -> Response:
        wanted = read_shape(WantedWebhooks, query_of(request))
        page = read_page(wanted.page)
        table = self._exchange.webhooks
        try:
            found = table.find(wanted.status, *self._whose(wanted))
        except Refused as refused:
            if refused.status != 404:
                raise
            found = np.empty(0, dtype=np.int64)  # there is no such campaign or call
        return bare(
            WebhookPage(
                total=len(found),
                total_pages=count_pages(len(found)),
                page=page.place + 1,
                webhooks=table.rows(found[page.rows]),
            )
        )

    async def _resend(self, request: Request) -> Response:
        number = request.path_params["n"]
        known = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
        key = self._exchange.webhooks.key(int(number) if known else 0)
        self._exchange.carry_out(ResendWebhook(**key._asdict()))
        made = len(self._exchange.webhooks) - 1
        with suppress(CancelledError):  # the sandbox stops: it is kept, and leaves when it goes on
            await self._exchange.courier.came_back(len(self._exchange.outbox.log) - 1)
        return bare(self._exchange.webhooks.rows(np.array([made]))[0])

    def _whose(self, wanted: WantedWebhooks) -> tuple[Position | None, tuple[int, int] | None]:
        """The campaign, by positions, and the call by recipient and number; None for all."""
        place = call = None
        for name, identifier in (("campaign", wanted.campaign), ("call", wanted.call)):
            if identifier is not None:
                require_uuid(name, identifier)
        if wanted.campaign is not None:
            _, desk = self._exchange.campaign(wanted.campaign)
            place = desk.place["organization"], desk.place["campaign"]
        if wanted.call is not None:
            desk, position = self._exchange.call(wanted.call)
            entry = desk.entry(position)
            call = entry.recipient, entry.number
            own = desk.place["organization"], desk.place["campaign"]
            if place not in (None, own):
                raise Refused(404, "CALL_NOT_FOUND", ["Call not found"])
            place = own
        return place, call
