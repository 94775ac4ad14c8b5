"""Triggered results over HTTP: one result of a chosen kind is sent, now."""

from __future__ import annotations

import orjson
from pydantic import Field, JsonValue

from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, UuidText, WireModel, invalid
from dialsim.interface.payload import accepted, response_json
from dialsim.sandbox.commands import TriggerResult
from dialsim.sandbox.control.campaigns import organization_of
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.http import failures as fail
from dialsim.sandbox.http.operation import Operations, operation
from dialsim.sandbox.organization import Account
from dialsim.sandbox.outbox import Delivery
from dialsim.sandbox.triggers import TriggerOrder


class TriggeredResult(WireModel):
    """A result that was triggered, and what came of its POST."""

    n: int = Field(description="1, 2, … of the sandbox.")
    at: InstantText
    call_id: UuidText
    url: str
    response: int | str = Field(description="An HTTP status, or timeout, refused or broken.")
    received: bool = Field(description="Whether a 2xx came back.")
    body: dict[str, JsonValue]


class TriggerOperations(Operations):
    """Sends single results."""

    @operation("POST", f"{PREFIX}/trigger", fail.NO_WEBHOOK_URL)
    async def trigger_result(self, body: TriggerOrder) -> TriggeredResult:
        """Send one result of a chosen kind, now.

        Its call is made outside of the simulation: no campaign, line or table shows it, and the
        clock stands still. The interface shows the call and its recipient by their ids. It is sent
        once, and meets no fault.
        """
        core = self.core
        account = self._account(body.organization)
        position = account.block.position
        url = body.url or core.webhook_url(position)
        if url is None:
            raise fail.NO_WEBHOOK_URL.refused()
        core.carry_out(TriggerResult(organization=position, order=body))
        made = core.triggers.newest()
        delivery = Delivery(
            made.key, url, made.body, core.simulation.log.turn, made.at, resent=True
        )
        response = await core.sender.post(delivery)
        return TriggeredResult(
            n=made.n,
            at=format_instant(made.at),
            call_id=made.call_id,
            url=url,
            response=response_json(response) or 0,
            received=bool(accepted(response)),
            body=orjson.loads(made.body),
        )

    def _account(self, named: str | None) -> Account:
        accounts = self.core.accounts
        if named is None and len(accounts) > 1:
            known = ", ".join(account.block.name for account in accounts)
            raise invalid(f"organization is required where there are several: {known}")
        return accounts[0] if named is None else organization_of(named, self.core)
