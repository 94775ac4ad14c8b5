"""Webhooks over HTTP: every POST that was made, every payload that was kept, and sending again."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Annotated

import numpy as np
from pydantic import Field, WithJsonSchema

from dialsim.interface.errors import Refused
from dialsim.interface.model import UuidText
from dialsim.results.timeline import Position
from dialsim.sandbox.clock import replaced
from dialsim.sandbox.commands import ResendWebhook
from dialsim.sandbox.control.campaigns import TablePage, page_head
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.http import failures as fail
from dialsim.sandbox.http.operation import (
    Operations,
    PageQuery,
    number,
    operation,
    require_uuid,
)
from dialsim.sandbox.webhooks import WebhookRow
from dialsim.scenario.fields import patterned

STATUS_PATTERN = r"^(delivered|failed|kept|underWay|timeout|refused|broken|[1-9][0-9]{2})$"
STATUS_TEXT = (
    "must be delivered, failed, kept, underWay, timeout, refused, broken or an HTTP status"
)


_ID_EXAMPLE = "cccccccc-0000-4000-8000-000000000003"


class WebhookQuery(PageQuery):
    """Which rows are wanted; filters hold together."""

    call: UuidText | None = Field(
        default=None, description="Only those of a call, by its id.", examples=[_ID_EXAMPLE]
    )
    campaign: UuidText | None = Field(
        default=None, description="Only those of a campaign, by its id.", examples=[_ID_EXAMPLE]
    )
    status: (
        Annotated[
            str,
            patterned(STATUS_PATTERN, STATUS_TEXT),
            WithJsonSchema({"type": "string", "pattern": STATUS_PATTERN}),
        ]
        | None
    ) = Field(
        default=None,
        description="Only those of which this came, or with this response.",
        examples=["failed"],
    )


class WebhookPage(TablePage):
    """A page of POSTs and kept payloads, in the order in which they left."""

    webhooks: list[WebhookRow]


class WebhookOperations(Operations):
    """Reads what was sent to the receivers of all organizations, and has it sent again."""

    @operation("GET", f"{PREFIX}/webhooks", fail.invalid_id("id"))
    def list_webhooks(self, query: WebhookQuery) -> WebhookPage:
        """List the webhooks.

        Every POST that was made, with its response, and every payload that was kept, in the
        order in which they left, 100 rows a page.
        """
        table = self.core.webhooks
        try:
            found = table.find(query.status, *self._whose(query))
        except Refused as refused:
            if refused.status != 404:
                raise
            found = np.empty(0, dtype=np.int64)  # there is no such campaign or call
        return WebhookPage(
            **page_head(query.page, len(found)), webhooks=table.rows(found[query.page.rows])
        )

    @operation("POST", f"{PREFIX}/webhooks/{{n}}/resend", fail.NO_WEBHOOK_URL, fail.STATE_REPLACED)
    async def resend_webhook(
        self,
        n: Annotated[int, number("The number of a webhook in the list, from 1.", fail.NO_WEBHOOK)],
    ) -> WebhookRow:
        """Send a webhook again.

        The same body leaves once, behind all that is due by now, to the organization's URL of
        now. Answers with the new POST when it has come back.
        """
        key = self.core.webhooks.key(n)
        self.core.carry_out(ResendWebhook(**key._asdict()))
        core, epoch = self.core, self.core.epoch
        delivery = core.outbox.asked_last
        try:
            while not delivery.over and core.epoch == epoch:
                await core.sender.progress()
        except CancelledError:  # the sandbox stops: it is kept, and leaves when it goes on
            if delivery.row < 0:
                raise
        if core.epoch != epoch:
            raise replaced()
        row = core.webhooks.row_of(core.outbox.log.row(delivery.row))
        return core.webhooks.rows(np.array([row]))[0]

    def _whose(self, query: WebhookQuery) -> tuple[Position | None, tuple[int, int] | None]:
        """The campaign, by positions, and the call by recipient and number; None for all."""
        place = call = None
        for name, identifier in (("campaign", query.campaign), ("call", query.call)):
            if identifier is not None:
                require_uuid(name, identifier)
        if query.campaign is not None:
            _, view = self.core.campaign(query.campaign)
            place = view.place["organization"], view.place["campaign"]
        if query.call is not None:
            view, position = self.core.call(query.call)
            entry = view.calls[position]
            call = entry.recipient, entry.call
            own = view.place["organization"], view.place["campaign"]
            if place not in (None, own):
                raise fail.NO_CALL.refused()
            place = own
        return place, call
