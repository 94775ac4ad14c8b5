"""Organizations over HTTP, and the scripts of phone numbers, which any of them may call (P6)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request

from dialsim.interface.model import UuidText, WireModel
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.campaign_view import Account
from dialsim.sandbox.commands import (
    AddAgent,
    AddOrganization,
    ChangeOrganization,
    OrganizationChanges,
    ScriptNumber,
)
from dialsim.sandbox.control.campaigns import organization_of, read_block
from dialsim.sandbox.http.operation import (
    Operations,
    PathParameter,
    operation,
)
from dialsim.scenario.additions import AddedOrganization
from dialsim.scenario.fields import Phone, Text
from dialsim.scenario.organization import Agent
from dialsim.scenario.scripts import ScriptText


class OrganizationState(WireModel):
    """An organization as it stands. Its API key is not shown."""

    id: UuidText
    name: str
    max_concurrent_calls: int
    slots_in_use: int = Field(description="Calls INITIATED: dialling, ringing or talking.")
    queue_length: int = Field(description="Calls QUEUED.")
    calling_allowed: bool
    webhook_url: str | None
    results: Literal["sent", "kept"] = Field(
        description="Whether results leave for webhookUrl, or are kept: where there is none, and "
        "where only the scenario file names it."
    )


class ChangedOrganization(OrganizationState):
    """An organization after a change."""

    api_key: str | None = Field(
        description="The new key, where it was regenerated. It is not shown again."
    )


class CreatedOrganization(OrganizationState):
    """An organization that was added."""

    api_key: str = Field(description="Its key, given or derived. It is not shown again.")


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

    organization: Text = Field(description="Its id or its name.", examples=["Acme"])


class CreatedAgent(WireModel):
    """An agent that was added."""

    id: UuidText
    organization: str = Field(description="Its organization's name.")
    name: str


FoundAccount = Annotated[
    Account,
    PathParameter(
        "The organization's id or name; a slash in it is written %2F.",
        {"type": "string", "minLength": 1},
        lambda core, _name, text: core.organization(text),
        (fail.NO_ORGANIZATION,),
        convertor=":path",  # a name may have a slash in it
    ),
]


class ScriptedNumber(WireModel):
    """A phone number and its script."""

    tel: Phone = Field(description="Written as in the recipients.", examples=["0812345678"])
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
        """Add an organization by its block, with `like` as the operation has it."""
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
            slots_in_use=dialler.lines_in_use,
            queue_length=dialler.queue_length,
            calling_allowed=dialler.calling_allowed,
            webhook_url=url,
            results="sent" if url is not None and self.core.sends(url) else "kept",
        )

    @operation("GET", f"{PREFIX}/people")
    def list_scripts(self) -> list[ScriptedNumber]:
        """List the scripts of phone numbers.

        What is left of them, by number.
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
