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
from dialsim.interface.model import WireModel, read_model
from dialsim.results.timeline import Position
from dialsim.sandbox.commands import ResendWebhook
from dialsim.sandbox.control.campaigns import Page
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.control.routes import route
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http.answers import bare, query_of
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

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        webhooks = f"{PREFIX}/webhooks"
        return [
            route(webhooks, query=["get"], get=self._list),
            route(f"{webhooks}/{{n}}/resend", post=self._resend),
        ]

    async def _list(self, request: Request) -> Response:
        wanted = read_model(WantedWebhooks, query_of(request))
        page = read_page(wanted.page)
        table = self._core.webhooks
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
        key = self._core.webhooks.key(int(number) if known else 0)
        self._core.carry_out(ResendWebhook(**key._asdict()))
        made = len(self._core.webhooks) - 1
        with suppress(CancelledError):  # the sandbox stops: it is kept, and leaves when it goes on
            await self._core.sender.came_back(len(self._core.outbox.log) - 1)
        return bare(self._core.webhooks.rows(np.array([made]))[0])

    def _whose(self, wanted: WantedWebhooks) -> tuple[Position | None, tuple[int, int] | None]:
        """The campaign, by positions, and the call by recipient and number; None for all."""
        place = call = None
        for name, identifier in (("campaign", wanted.campaign), ("call", wanted.call)):
            if identifier is not None:
                require_uuid(name, identifier)
        if wanted.campaign is not None:
            _, view = self._core.campaign(wanted.campaign)
            place = view.place["organization"], view.place["campaign"]
        if wanted.call is not None:
            view, position = self._core.call(wanted.call)
            entry = view.entry(position)
            call = entry.recipient, entry.number
            own = view.place["organization"], view.place["campaign"]
            if place not in (None, own):
                raise Refused(404, "CALL_NOT_FOUND", ["Call not found"])
            place = own
        return place, call
