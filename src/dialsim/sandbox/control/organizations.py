"""Organizations, their agents, campaigns and calls, and scripts of phone numbers, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from pydantic import Field
from starlette.requests import Request

from dialsim.errors import Refused
from dialsim.interface import CampaignStatus
from dialsim.interface.instants import utc
from dialsim.interface.model import Moment, UuidText, WireModel, invalid
from dialsim.interface.schedule import ScheduleRequest
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.answers import (
    BINARY,
    JSON,
    query_of,
    read_bytes,
    read_json,
    refuse_query,
    require_media_type,
)
from dialsim.sandbox.campaign_view import Account, CampaignView
from dialsim.sandbox.commands import (
    AddAgent,
    AddCampaign,
    AddOrganization,
    ChangeOrganization,
    OrganizationChanges,
    ReanalyzeCall,
    ScriptNumber,
    SteerCampaign,
)
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import (
    MOST_CONTROL_BYTES,
    CampaignId,
    Operations,
    PageQuery,
    PathParameter,
    identifier,
    operation,
)
from dialsim.sandbox.tables import (
    CallRow,
    PageNumber,
    TransitionRow,
    TransitionTable,
    call_rows,
    count_pages,
    shown,
)
from dialsim.scenario.additions import AddedOrganization
from dialsim.scenario.behaviour import ScriptText
from dialsim.scenario.campaign import Campaign, GeneratedRecipients, Recipient
from dialsim.scenario.fields import Phone, Text
from dialsim.scenario.organization import Agent
from dialsim.scenario.units import Instant


def organization_of(named: object, core: SandboxCore) -> Account:
    """Return an organization named in a body; 400 if unknown (in a path, unknown ones get 404)."""
    if isinstance(named, str):
        try:
            return core.organization(named)
        except Refused:
            text = f'organization "{named}" is not known; known here:'
    else:
        text = "organization must be the id or the name of one:"
    raise invalid(f"{text} {', '.join(account.block.name for account in core.accounts)}")


_CSV = "text/csv"


async def read_block(request: Request) -> dict[str, Any]:
    """Return the object in the body of a request without a query; raises Refused."""
    refuse_query(request)
    body = await read_json(request, MOST_CONTROL_BYTES)
    if not isinstance(body, dict):
        raise invalid("body must be an object")
    return body


async def _read_upload(request: Request) -> tuple[dict[str, Any], bytes | None]:
    """Return a campaign's block, including `organization`, and the CSV of recipients, if any.

    With a CSV, the query contains the rest of the block. Raises Refused; the block itself is not
    checked.
    """
    if require_media_type(request, JSON, _CSV, BINARY) != JSON:
        return _from_query(request), await read_bytes(request, MOST_CONTROL_BYTES)
    return await read_block(request), None


def _from_query(request: Request) -> dict[str, Any]:
    """Return a query's parameters as a block; keys whose values are no texts are read as JSON."""
    block: dict[str, Any] = dict(query_of(request))
    for name in block.keys() & {*_SHARE, "schedule"}:
        try:
            block[name] = orjson.loads(block[name])
        except orjson.JSONDecodeError:
            if name == "schedule":
                raise invalid("schedule must be valid JSON") from None
    return block


def _agent_name(named: object, account: Account) -> object:
    """Return the name of an agent given by its id; validation handles other values."""
    # Any other value is left to the validation of the campaign, which words the error.
    if not isinstance(named, str):
        return named
    known = (agent["name"] for agent in account.agents if str(agent["id"]).lower() == named.lower())
    return next(known, named)


class CampaignState(WireModel):
    """A campaign as it stands."""

    id: UuidText
    organization: str = Field(description="Name of the organization.")
    name: str
    agent: str = Field(description="Name of the agent.")
    status: CampaignStatus
    deleted: bool = Field(description="Whether the interface no longer shows it.")
    created_at: Moment
    total_recipients: int

    @property
    def full_name(self) -> str:
        """Name prefixed by the organization's name: `Acme/January`."""
        return f"{self.organization}/{self.name}"

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
            created_at=utc(view.created_at),
            total_recipients=view.total_recipients,
        )


class UploadedRecipient(Recipient):
    """A person to call."""

    tel: Phone = Field(description="Phone number.", examples=["0812345678"])


class UploadedCampaign(Campaign):
    """A campaign as in a scenario file, and the organization that it is for."""

    organization: Text = Field(description="Id or name of the organization.", examples=["Acme"])
    agent: Text = Field(
        description="Name or id of an agent of the organization.",
        examples=["Reminder"],
    )
    recipients: tuple[UploadedRecipient, ...] | GeneratedRecipients = Field(
        description="Whom to call: a list of people, or a count of made-up people.",
        examples=[[{"tel": "0812345678"}]],
    )
    schedule: ScheduleRequest | None = Field(
        default=None,
        description="The body of the schedule request. Left out: the campaign is a DRAFT.",
    )
    scheduled_at: Instant | None = Field(
        default=None,
        description="When the schedule request is made. Left out: now.",
        examples=["2026-01-05T01:00:00Z"],
    )


_SHARE = {
    "priority": "The campaign's priority, a whole number",
    "weight": "The campaign's weight, a whole number",
    "atMost": "Most lines that the campaign takes, a whole number",
    "reserved": "Lines kept for the campaign, a whole number",
}
_BESIDE_A_CSV = (
    ("organization", "The organization's id or name, which is required.", "Acme"),
    ("name", "The campaign's name, which is required.", "May"),
    ("agent", "The agent's name or id, which is required.", "Reminder"),
    ("id", "A fixed id.", "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"),
    ("schedule", "The body of the schedule request, as JSON.", None),
    ("scheduledAt", "When the schedule request is made.", "2026-01-05T01:00:00Z"),
    *((name, f"{about} (Q7 to Q11).", "1") for name, about in _SHARE.items()),
)
"""Query parameters that replace the body's properties beside a CSV, with examples."""


def _beside_a_csv(name: str, about: str, example: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": name,
        "in": "query",
        "description": f"Only beside a CSV; a JSON body contains it. {about}",
    }
    if example is not None:
        return described | {"schema": {"type": "string"}, "example": example}
    schema = {"$ref": "#/components/schemas/ScheduleRequest"}
    return described | {"content": {JSON: {"schema": schema}}}


class TablePage(WireModel):
    """A page of a table."""

    total: int
    total_pages: int
    page: int


class CallPage(TablePage):
    """A page of a campaign's calls, in the order in which they were created."""

    calls: list[CallRow]


class TransitionPage(TablePage):
    """A page of the changes of a campaign's calls, in the order in which they happened."""

    transitions: list[TransitionRow]


class CampaignOperations(Operations):
    """Operations on campaigns and calls of all organizations, also deleted campaigns."""

    @operation("GET", f"{PREFIX}/campaigns")
    def list_campaigns(self) -> list[CampaignState]:
        """List the campaigns.

        All campaigns of all organizations as they stand, deleted ones too.
        """
        return [
            CampaignState.of(account, view)
            for account in self.core.accounts
            for view in account.views
        ]

    @operation(
        "POST",
        f"{PREFIX}/campaigns",
        fail.NOT_ALLOWED,
        fail.UNKNOWN_MEDIA,
        status=201,
        body=UploadedCampaign,
        other_media=BINARY,
        described=tuple(_beside_a_csv(*one) for one in _BESIDE_A_CSV),
    )
    async def create_campaign(self, request: Request) -> CampaignState:
        """Create a campaign.

        Checked as in a scenario file (C11); a DRAFT unless its schedule comes along. Recipients may
        come as a CSV (UTF-8, with a header and a column tel) instead; everything else is then in
        the query.
        """
        return await self.add(*await _read_upload(request))

    async def add(self, block: dict[str, Any], csv: bytes | None) -> CampaignState:
        """Add a campaign, given its block with the key `organization`; raises Refused."""
        account = organization_of(block.get("organization"), self.core)
        position = account.block.position
        named = {"agent": _agent_name(block.get("agent"), account)}
        # A scenario file has no key `organization`: campaigns are nested in their organization.
        block = {name: value for name, value in block.items() if name != "organization"} | named
        command = AddCampaign(organization=position, block=block, csv=csv)
        around = self.core.simulation.surroundings(position)
        # A million people take seconds to read; in a thread, other requests are answered meanwhile.
        await asyncio.to_thread(command.read, around)
        self.core.carry_out(command)
        account = self.core.accounts[position]
        return CampaignState.of(account, account.views[-1])

    @operation("GET", f"{PREFIX}/campaigns/{{id}}")
    def get_campaign(self, id: CampaignId) -> CampaignState:
        """Get a campaign.

        One campaign as it stands, also a deleted one.
        """
        return CampaignState.of(*self.core.campaign(id))

    @operation("DELETE", f"{PREFIX}/campaigns/{{id}}")
    def delete_campaign(self, id: CampaignId) -> CampaignState:
        """Delete a campaign.

        The interface no longer shows the campaign, and no further call starts (C8). The control
        plane still shows it.
        """
        return self._steer("delete", id)

    @operation("POST", f"{PREFIX}/campaigns/{{id}}/resume", fail.NOT_RESUMABLE)
    def resume_campaign(self, id: CampaignId) -> CampaignState:
        """Resume a campaign.

        Goes on with a PAUSED campaign (C5).
        """
        return self._steer("resume", id)

    @operation("POST", f"{PREFIX}/campaigns/{{id}}/cancel", fail.NOT_CANCELLABLE)
    def cancel_campaign(self, id: CampaignId) -> CampaignState:
        """Cancel a campaign.

        Ends a campaign that is not over (C6).
        """
        return self._steer("cancel", id)

    def _steer(self, kind: Literal["resume", "cancel", "delete"], identifier: str) -> CampaignState:
        account, view = self.core.campaign(identifier)
        self.core.carry_out(SteerCampaign(**view.position._asdict(), kind=kind))
        return CampaignState.of(account, view)

    @operation(
        "GET",
        f"{PREFIX}/campaigns/{{id}}/calls",
        answer=CallPage,
    )
    def list_calls(self, id: CampaignId, query: PageQuery) -> dict[str, Any]:
        """List a campaign's calls.

        The calls table as it stands, in the order of creation, 100 rows a page.
        """
        view, page = self._caught_up(id), query.page
        calls = np.arange(*page.rows.indices(len(view.calls)))
        return page_of(page, len(view.calls), calls=call_rows(view, calls, self.core.at))

    @operation("GET", f"{PREFIX}/campaigns/{{id}}/transitions", answer=TransitionPage)
    def list_transitions(self, id: CampaignId, query: PageQuery) -> dict[str, Any]:
        """List the changes of a campaign's calls.

        The transitions table so far, in the order of occurrence, 100 rows a page.
        """
        table, at = TransitionTable(self._caught_up(id)), self.core.at
        total = table.count(at)
        start, stop, _ = query.page.rows.indices(total)
        return page_of(query.page, total, transitions=shown(table.rows(start, stop, at)))

    @operation(
        "POST",
        f"{PREFIX}/calls/{{id}}/reanalyze",
        fail.NO_CAMPAIGN,
        fail.NOT_DELIVERED,
        answer=CallRow,
    )
    def reanalyze_call(
        self, id: Annotated[str, identifier("call", "id", fail.NO_CALL)]
    ) -> dict[str, Any]:
        """Analyze a call again.

        Sends another result of a COMPLETED call whose first result was delivered (A5).
        """
        view, call = self.core.call(id)
        self.core.carry_out(ReanalyzeCall(**view.position._asdict(), call=call))
        return call_rows(view, np.array([call]), self.core.at)[0]

    def _caught_up(self, identifier: str) -> CampaignView:
        _, view = self.core.campaign(identifier)
        view.catch_up()
        return view


def page_of(page: PageNumber, total: int, **more: Any) -> dict[str, Any]:
    """Return a page of a table of `total` rows, as it is answered; see `TablePage`."""
    return {"total": total, "totalPages": count_pages(total), "page": page.pages_before + 1, **more}


class OrganizationState(WireModel):
    """An organization as it stands. Its API key is not shown."""

    id: UuidText
    name: str
    max_concurrent_calls: int
    lines_in_use: int = Field(description="Calls INITIATED: dialling, ringing or talking.")
    queue_length: int = Field(description="Calls QUEUED.")
    calling_allowed: bool
    webhook_url: str | None
    results: Literal["sent", "kept"] = Field(
        description="sent: results are sent to webhookUrl; kept: there is none, or only the "
        "scenario file names it, which does not permit sending."
    )


class ChangedOrganization(OrganizationState):
    """An organization after a change."""

    api_key: str | None = Field(
        description="The new key, if it was regenerated. It is not shown again."
    )


class CreatedOrganization(OrganizationState):
    """An organization that was added."""

    api_key: str = Field(
        description="The new organization's key, given or derived. It is not shown again."
    )


class UploadedOrganization(AddedOrganization):
    """An organization as in a scenario file, without campaigns."""

    like: Text | None = Field(
        default=None,
        description="The id or name of an organization whose settings and agents it has where it "
        "gives none; maxConcurrentCalls is then not required.",
        examples=["Acme"],
    )


class UploadedAgent(Agent):
    """An agent as in a scenario file, and the organization that it is for."""

    organization: Text = Field(description="Id or name of the organization.", examples=["Acme"])


class CreatedAgent(WireModel):
    """An agent that was added."""

    id: UuidText
    organization: str = Field(description="Name of the agent's organization.")
    name: str


FoundAccount = Annotated[
    Account,
    PathParameter(
        "The organization's id or name; a slash in it is written %2F.",
        {"type": "string", "minLength": 1},
        lambda core, _name, text: core.organization(text),
        (fail.NO_ORGANIZATION,),
        # A name may contain a slash, which ends any other parameter of a path.
        convertor=":path",
    ),
]


class ScriptedNumber(WireModel):
    """A phone number and its script."""

    tel: Phone = Field(description="Written as in the list of people.", examples=["0812345678"])
    script: ScriptText | None = Field(
        description="The steps that are left, as for a recipient of a scenario file; null: none.",
        examples=["busy 3s; answered 5s 90s"],
    )


class OrganizationOperations(Operations):
    """Reads and changes organizations, found by id or name, and gives numbers their scripts."""

    @operation("GET", f"{PREFIX}/organizations")
    def list_organizations(self) -> list[OrganizationState]:
        """List the organizations.

        Settings, lines in use, and calls that wait.
        """
        return [self._state(account) for account in self.core.accounts]

    @operation("POST", f"{PREFIX}/organizations", status=201, body=UploadedOrganization)
    async def create_organization(self, request: Request) -> CreatedOrganization:
        """Create an organization.

        Checked as in a scenario file. Campaigns are added to it as to any other.
        """
        return self.add(await read_block(request))

    def add(self, block: dict[str, Any]) -> CreatedOrganization:
        """Add an organization given its block and, in `like`, the organization to copy."""
        webhook = block.get("webhook")
        if isinstance(webhook, dict) and isinstance(webhook.get("url"), str):
            self.core.destinations.require(webhook["url"])
        named, like = block.get("like"), None
        if named is not None:
            like = organization_of(named, self.core).block.position
        block = {name: value for name, value in block.items() if name != "like"}
        self.core.carry_out(AddOrganization(block=block, like=like))
        account = self.core.accounts[-1]
        key = self.core.api_key(account.block.position)
        return CreatedOrganization(**self._state(account).model_dump(), api_key=key)

    @operation("POST", f"{PREFIX}/agents", status=201, body=UploadedAgent)
    async def create_agent(self, request: Request) -> CreatedAgent:
        """Create an agent.

        Checked as in a scenario file. Campaigns that are added from now on may name it.
        """
        return self.add_agent(await read_block(request))

    def add_agent(self, block: dict[str, Any]) -> CreatedAgent:
        """Add an agent by its block, which names its organization."""
        account = organization_of(block.get("organization"), self.core)
        block = {name: value for name, value in block.items() if name != "organization"}
        self.core.carry_out(AddAgent(organization=account.block.position, block=block))
        made = account.agents[0]
        return CreatedAgent(
            id=str(made["id"]), organization=account.block.name, name=str(made["name"])
        )

    @operation("GET", f"{PREFIX}/organizations/{{id}}")
    def get_organization(self, id: FoundAccount) -> OrganizationState:
        """Get an organization.

        Settings, lines in use, and calls that wait.
        """
        return self._state(id)

    @operation("PATCH", f"{PREFIX}/organizations/{{id}}")
    def change_organization(
        self, id: FoundAccount, body: OrganizationChanges, sent: dict[str, Any]
    ) -> ChangedOrganization:
        """Change an organization.

        All changes are made, or none.
        """
        position = id.block.position
        self.core.destinations.require(body.webhook_url)
        self.core.carry_out(ChangeOrganization(organization=position, changes=sent))
        key = self.core.api_key(position) if body.regenerate_api_key else None
        return ChangedOrganization(**self._state(id).model_dump(), api_key=key)

    def _state(self, account: Account) -> OrganizationState:
        position = account.block.position
        dialler = self.core.simulation.dialler(position)
        url = self.core.webhook_url(position)
        return OrganizationState(
            id=account.identifier,
            name=account.block.name,
            max_concurrent_calls=dialler.limit,
            lines_in_use=dialler.lines_in_use,
            queue_length=dialler.queue_length,
            calling_allowed=dialler.calling_allowed,
            webhook_url=url,
            results="sent" if url is not None and self.core.sends(url) else "kept",
        )

    @operation("GET", f"{PREFIX}/people")
    def list_scripts(self) -> list[ScriptedNumber]:
        """List the scripts of phone numbers.

        The remaining steps, by number.
        """
        scripts = self.core.simulation.scripts
        return [ScriptedNumber(tel=tel, script=scripts[tel]) for tel in sorted(scripts)]

    @operation("POST", f"{PREFIX}/people")
    def script_number(self, body: ScriptedNumber) -> ScriptedNumber:
        """Script a phone number.

        The next calls to the number follow the script (P6).
        """
        self.core.carry_out(ScriptNumber(tel=body.tel, script=body.script))
        return ScriptedNumber(tel=body.tel, script=self.core.simulation.scripts.get(body.tel))
