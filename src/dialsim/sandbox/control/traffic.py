"""The traffic over HTTP: requests that came in, webhooks that were sent, and faults that strike."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Annotated, Any

import numpy as np
import orjson
from pydantic import Field, JsonValue

from dialsim.errors import Refused
from dialsim.interface.instants import utc
from dialsim.interface.model import Moment, UuidText, WireModel, invalid
from dialsim.interface.payload import accepted, response_json
from dialsim.results.campaigns import Position
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.campaign_view import Account
from dialsim.sandbox.commands import ClearFaults, InjectFault, TriggerResult
from dialsim.sandbox.control.organizations import TablePage, organization_of, page_of
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import Operations, PageQuery, number, operation, require_uuid
from dialsim.sandbox.orders import InjectedFault, TriggerOrder
from dialsim.sandbox.outbox import Delivery
from dialsim.sandbox.request_log import LoggedRequest, chosen
from dialsim.sandbox.tables import WebhookRow
from dialsim.scenario.fields import Text, patterned
from dialsim.scenario.service import FaultOrder, StandingFault

_PATTERN = r"^(none|[1-5]xx|[1-5][0-9]{2})$"
RequestStatus = Annotated[
    str,
    patterned(_PATTERN, "must be an HTTP status, or 1xx to 5xx, or none"),
    Field(json_schema_extra={"pattern": _PATTERN}),
]


class RequestRow(WireModel):
    """A request of a client and its answer. Secrets are masked."""

    n: int = Field(description="Number of the request, from 1; it never changes.")
    at: Moment = Field(description="When it came, in virtual time.")
    received_at: Moment = Field(description="When it came, in real time.")
    took_ms: float | None = Field(description="Duration; null while the request is under way.")
    organization: str | None = Field(description="Owner of the key, by name; null: no known key.")
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: JsonValue = Field(
        description="Body of the request, as far as it was read: JSON as it is, other text as a "
        "string, null for an empty or binary body."
    )
    body_cut: bool = Field(description="Whether only the beginning is kept, as a text.")
    status: int | None = Field(
        description="null while the request is under way, and if the connection was dropped."
    )
    answer: JsonValue = Field(description="Body of the answer, in the form of body.")
    answer_cut: bool = Field(description="Whether only the beginning is kept, as a text.")
    fault: int | None = Field(description="Number of the fault that struck the request.")

    @classmethod
    def of(cls, request: LoggedRequest) -> RequestRow:
        """A request as it stands."""
        plain = {name: getattr(request, name) for name in _AS_LOGGED}
        return cls(
            **plain,
            at=utc(request.at),
            received_at=utc(request.received_at),
            took_ms=None if request.took is None else round(request.took * 1000, 3),
            body=request.body.shown(),
            body_cut=request.body.cut,
            answer=request.answer.shown(),
            answer_cut=request.answer.cut,
        )

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        said = "not answered" if self.status is None else f"answered {self.status}"
        fault = "" if self.fault is None else f" by fault {self.fault}"
        return f"#{self.n} {self.method} {self.path}{query}, {said}{fault}"


_AS_LOGGED = ("n", "organization", "method", "path", "query", "headers", "status", "fault")


class RequestQuery(PageQuery):
    """Filters of the requests; a request must match all of them."""

    method: Text | None = Field(
        default=None, description="Only requests with this method.", examples=["POST"]
    )
    path: Text | None = Field(
        default=None,
        description="Only requests to this path, without query; * or a name in braces stands for "
        "any text without a slash, ** for any text.",
        examples=["/api/campaign/{id}/schedule"],
    )
    status: RequestStatus | None = Field(
        default=None,
        description="Only requests answered with this status or class, or not at all (none).",
        examples=["4xx"],
    )
    organization: Text | None = Field(
        default=None,
        description="Only requests with this organization's key (its id or name).",
        examples=["Acme"],
    )


class RequestPage(TablePage):
    """A page of requests, the oldest first."""

    requests: list[RequestRow]


class ClearedRequests(WireModel):
    """State of the log after clearing."""

    cleared: int = Field(description="Number of requests that were removed.")


_WEBHOOK_PATTERN = r"^(delivered|failed|kept|underWay|timeout|refused|broken|[1-9][0-9]{2})$"
WebhookStatus = Annotated[
    str,
    patterned(
        _WEBHOOK_PATTERN,
        "must be delivered, failed, kept, underWay, timeout, refused, broken or an HTTP status",
    ),
    Field(json_schema_extra={"pattern": _WEBHOOK_PATTERN}),
]
_ID_EXAMPLE = "cccccccc-0000-4000-8000-000000000003"


class WebhookQuery(PageQuery):
    """Filters of the webhooks; a row must match all of them."""

    call: UuidText | None = Field(
        default=None, description="Only webhooks of this call (id).", examples=[_ID_EXAMPLE]
    )
    campaign: UuidText | None = Field(
        default=None, description="Only webhooks of this campaign (id).", examples=[_ID_EXAMPLE]
    )
    status: WebhookStatus | None = Field(
        default=None,
        description="Only webhooks with this outcome or this response.",
        examples=["failed"],
    )


class WebhookPage(TablePage):
    """A page of POSTs and kept payloads, in the order in which they left."""

    webhooks: list[WebhookRow]


class TriggeredResult(WireModel):
    """Triggered result and the outcome of its POST."""

    n: int = Field(description="Number of the triggered result, from 1.")
    at: Moment
    call_id: UuidText
    url: str
    response: int | str = Field(description="An HTTP status, or timeout, refused or broken.")
    received: bool = Field(description="Whether the response was a 2xx.")
    body: dict[str, JsonValue]


class FaultState(WireModel):
    """Fault and its state so far."""

    id: int
    asked: FaultOrder | StandingFault
    met: int = Field(description="Number of requests or webhooks that it matched.")
    struck: int
    left: int | None = Field(
        description="Number of strikes left; null if only time ends the fault."
    )
    until: Moment | None = Field(
        description="The virtual instant at which it ends, where it lasts a time and once."
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
            until=None if fault.until is None else utc(fault.until),
        )


def injection(order: FaultOrder, core: SandboxCore) -> InjectFault:
    """Build the fault command for a resolved target.

    Raises Refused for an unknown organization or campaign.
    """
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
            campaign = view.position.campaign
        except Refused:
            unknown.append(f'campaign "{order.campaign}" is not the id of a campaign')
    if unknown:
        raise invalid(*unknown)
    if owner is not None and organization not in (None, owner.block.position):
        raise invalid(f"campaign is one of {owner.block.name}, not of {order.organization}")
    if owner is not None:
        organization = owner.block.position
    return InjectFault(order=order, organization=organization, campaign=campaign)


_FaultNumber = Annotated[int, number("The fault's number, from 1.", fail.NO_FAULT)]


class TrafficOperations(Operations):
    """Operations on faults, webhooks and the log of requests."""

    @operation("GET", f"{PREFIX}/faults")
    def list_faults(self) -> list[FaultState]:
        """List the faults.

        Faults without strikes left are listed too, until they are cleared.
        """
        return [FaultState.of(fault) for fault in self.core.faults]

    @operation(
        "POST",
        f"{PREFIX}/faults",
        fail.TOO_MANY_FAULTS,
        status=201,
    )
    def add_fault(self, body: FaultOrder) -> FaultState:
        """Inject a fault.

        The fault strikes the next requests or webhooks that it matches, up to its limit.
        """
        self.core.carry_out(injection(body, self.core))
        return FaultState.of(self.core.faults.newest())

    @operation("DELETE", f"{PREFIX}/faults")
    def clear_faults(self) -> list[FaultState]:
        """Clear all faults.

        Answers with the cleared faults; they strike no more.
        """
        cleared = self.list_faults()
        self.core.carry_out(ClearFaults())
        return cleared

    @operation("GET", f"{PREFIX}/faults/{{id}}")
    def get_fault(self, id: _FaultNumber) -> FaultState:
        """Get a fault.

        Its settings, and how often it has struck.
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

    @operation("GET", f"{PREFIX}/webhooks", fail.invalid_id("id"), answer=WebhookPage)
    def list_webhooks(self, query: WebhookQuery) -> dict[str, Any]:
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
            # A filter that names an unknown campaign or call matches nothing, as any other value
            # does.
            found = np.empty(0, dtype=np.int64)
        return page_of(query.page, len(found), webhooks=table.rows(found[query.page.rows]))

    @operation(
        "POST",
        f"{PREFIX}/webhooks/{{n}}/resend",
        fail.NO_WEBHOOK_URL,
        fail.STATE_REPLACED,
        answer=WebhookRow,
    )
    async def resend_webhook(
        self,
        n: Annotated[int, number("The number of a webhook in the list, from 1.", fail.NO_WEBHOOK)],
    ) -> dict[str, Any]:
        """Send a webhook again.

        The same body is sent once more, after all webhooks that are due by now, to the
        organization's current URL. Answers with the new POST once its response has arrived.
        """
        core, epoch = self.core, self.core.epoch
        delivery = core.send_again(n)
        try:
            while not delivery.over and core.epoch == epoch:
                await core.sender.progress()
        # The sandbox stops. The journal has the command, so the POST leaves when the sandbox
        # continues.
        except CancelledError:
            if delivery.row < 0:
                raise
        if core.epoch != epoch:
            raise fail.STATE_REPLACED.refused()
        row = core.webhooks.row_of(core.outbox.log.row(delivery.row))
        return core.webhooks.rows(np.array([row]))[0]

    def _whose(self, query: WebhookQuery) -> tuple[Position | None, tuple[int, int] | None]:
        """Return the filters for a campaign (position) and a call (recipient, call number); None
        for all.
        """
        campaign = call = None
        for name, identifier in (("campaign", query.campaign), ("call", query.call)):
            if identifier is not None:
                require_uuid(name, identifier)
        if query.campaign is not None:
            campaign = self.core.campaign(query.campaign)[1].position
        if query.call is not None:
            view, index = self.core.call(query.call)
            if campaign not in (None, view.position):
                raise fail.NO_CALL.refused()
            entry, campaign = view.calls[index], view.position
            call = entry.recipient, entry.call
        return campaign, call

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
        core.destinations.require(body.url)
        url = body.url or core.url_to_send_to(position)
        core.carry_out(TriggerResult(organization=position, order=body))
        made = core.triggers.newest()
        # `resent`: the POST is tried once, and counts for no result of the simulation.
        delivery = Delivery(
            made.key, url, made.body, core.simulation.log.turn, made.at, resent=True
        )
        response = await core.sender.post(delivery)
        return TriggeredResult(
            n=made.n,
            at=utc(made.at),
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

    @operation("GET", f"{PREFIX}/requests", answer=RequestPage)
    def list_requests(self, query: RequestQuery) -> dict[str, Any]:
        """List the requests of clients.

        Requests to /_dialsim, the page and the description are left out. The latest 2,000 are
        listed, the oldest first, 100 a page.
        """
        core, owner = self.core, None
        if query.organization is not None:
            owner = organization_of(query.organization, core).block.name
        found = chosen(
            core.requests,
            method=query.method,
            path=query.path,
            status=query.status,
            organization=owner,
        )
        rows = [RequestRow.of(one) for one in found[query.page.rows]]
        shown = [row.model_dump(mode="json", by_alias=True) for row in rows]
        return page_of(query.page, len(found), requests=shown)

    @operation("DELETE", f"{PREFIX}/requests", kept=False)
    def clear_requests(self) -> ClearedRequests:
        """Clear the log of requests.

        Numbers are not used again. The sandbox itself is left as it is.
        """
        return ClearedRequests(cleared=self.core.requests.clear())
