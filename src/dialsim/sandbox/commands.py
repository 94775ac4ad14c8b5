"""Commands: all changes by clients and operators, as data.

A command contains the position of its target and the content of the request, so it can be stored in
a journal and repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, SkipValidation
from typing_extensions import override

from dialsim.engine.simulation import add_campaign
from dialsim.errors import ScenarioError
from dialsim.interface.model import Combined, given, invalid, read_model
from dialsim.interface.payload import PostKey
from dialsim.interface.schedule import read_schedule
from dialsim.sandbox.orders import TriggerOrder
from dialsim.scenario.additions import Surroundings, read_agent, read_campaign, read_organization
from dialsim.scenario.behaviour import parse_script
from dialsim.scenario.campaign import Campaign
from dialsim.scenario.fields import Limit, Switch, Url
from dialsim.scenario.organization import Agent, Organization
from dialsim.scenario.service import FaultOrder

if TYPE_CHECKING:
    from dialsim.engine.campaign import SimulatedCampaign
    from dialsim.engine.dialler import Dialler
    from dialsim.sandbox.core import SandboxCore


class _Command(BaseModel, ABC):
    """Command, executed at one instant."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )

    concerns_calling: ClassVar[bool] = True
    """True if the command can cause engine events and so takes a turn (T4)."""

    @abstractmethod
    def carry_out(self, core: SandboxCore) -> None:
        """Execute the command; raises `Refused`, without any change, if a rule forbids it."""

    def without_sources(self) -> Self:
        """Return the command as stored for a replay, without its source text."""
        return self


class _CampaignCommand(_Command):
    """Command on a campaign, given the indexes of organization and campaign."""

    organization: int
    campaign: int

    def on(self, core: SandboxCore) -> SimulatedCampaign:
        """Return the campaign in a sandbox."""
        return core.simulation.campaign(self.organization, self.campaign)


class ScheduleCampaign(_CampaignCommand):
    """Start a campaign with the body of a schedule request (C1, C9)."""

    kind: Literal["schedule"] = "schedule"
    body: dict[str, JsonValue]

    @override
    def carry_out(self, core: SandboxCore) -> None:
        self.on(core).schedule(read_schedule(self.body))


class SteerCampaign(_CampaignCommand):
    """Pause, resume, cancel or delete a campaign (C4, C5, C6, C8)."""

    kind: Literal["pause", "resume", "cancel", "delete"]

    @override
    def carry_out(self, core: SandboxCore) -> None:
        campaign = self.on(core)
        match self.kind:
            case "pause":
                campaign.pause()
            case "resume":
                campaign.resume()
            case "cancel":
                campaign.cancel()
            case "delete":
                campaign.delete()


class ReanalyzeCall(_CampaignCommand):
    """Analyze one call again (A5); calls are numbered from 0 in order of creation."""

    kind: Literal["reanalyzeCall"] = "reanalyzeCall"
    call: int

    @override
    def carry_out(self, core: SandboxCore) -> None:
        view = core.accounts[self.organization].views[self.campaign]
        view.catch_up()
        view.analyses.require_delivered(self.call, core.simulation.at)
        self.on(core).reanalyze_call(view.calls[self.call].recipient, view.calls[self.call].call)


class AddCampaign(_Command):
    """Add a campaign to an organization, by position (C11).

    `block` is a campaign block as in a scenario file; `csv` is the content of a CSV that replaces
    `recipients`.
    """

    kind: Literal["addCampaign"] = "addCampaign"
    organization: int
    # Validation would copy the block, which may list a million people.
    block: SkipValidation[dict[str, JsonValue]]
    csv: bytes | None = None
    _read: Campaign | None = PrivateAttr(default=None)

    def read(self, around: Surroundings) -> None:
        """Read the campaign before the command runs, because many people take long to read."""
        with _refusing():
            self._read = read_campaign(self.block, around, self.csv)

    @override
    def carry_out(self, core: SandboxCore) -> None:
        simulation = core.simulation
        if self._read is None:
            self.read(simulation.surroundings(self.organization))
        assert self._read is not None
        with _refusing():
            add_campaign(
                simulation.dialler(self.organization), simulation.at, self._read, None, None
            )

    @override
    def without_sources(self) -> Self:
        kept = self.model_copy(update={"block": {}, "csv": None})
        # The run keeps the people anyway: the parsed campaign shares them and takes no further
        # memory.
        kept._read = self._read
        return kept


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse an invalid block of a scenario, and list all of its problems."""
    try:
        yield
    except ScenarioError as error:
        texts = (str(one) if one.line is not None else one.message for one in error.problems)
        raise invalid(*texts) from None


class AddOrganization(_Command):
    """Add an organization; omitted settings are copied from the organization with index `like`."""

    kind: Literal["addOrganization"] = "addOrganization"
    block: dict[str, JsonValue]
    like: int | None = None
    # A restore replays the command and reuses what was read, in place of reading it again.
    _read: Organization | None = PrivateAttr(default=None)

    @override
    def carry_out(self, core: SandboxCore) -> None:
        there = core.settings
        like = None if self.like is None else there[self.like]
        if self._read is None:
            with _refusing():
                self._read = read_organization(self.block, core.scenario, there, core.taken, like)
        settings = self._read
        core.add_organization(settings)
        if settings.webhook is not None and "webhook" in self.block:
            core.named_urls.add(settings.webhook.url)


class AddAgent(_Command):
    """Add an agent to an organization, by position."""

    kind: Literal["addAgent"] = "addAgent"
    organization: int
    block: dict[str, JsonValue]
    _read: Agent | None = PrivateAttr(default=None)

    @override
    def carry_out(self, core: SandboxCore) -> None:
        if self._read is None:
            around = core.scenario, core.settings, core.taken, self.organization
            with _refusing():
                self._read = read_agent(self.block, *around)
        block = core.accounts[self.organization].block
        agents = (*block.settings.agents, self._read)
        block.settings = block.settings.model_copy(update={"agents": agents})
        core.taken |= {text.lower() for text in (self._read.name, self._read.id) if text}


class OrganizationChanges(Combined):
    """Changed settings. Omitted settings stay; null is allowed for the URL alone."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                given("maxConcurrentCalls"),
                given("callingAllowed"),
                given("regenerateApiKey"),
                {"required": ["webhookUrl"]},
            ]
        }
    )

    max_concurrent_calls: Limit | None = Field(
        default=None, description="A lower limit ends no call.", examples=[20]
    )
    calling_allowed: Switch | None = Field(
        default=None, description="Whether campaigns may be started."
    )
    webhook_url: Url | None = Field(
        default=None,
        description="URL for results, from the next result on; null: none. A URL that is set here "
        "is permitted, so results are sent to it.",
        examples=["http://127.0.0.1:9000/hook"],
    )
    regenerate_api_key: Switch | None = Field(
        default=None, description="true creates a new key; the old key is invalid at once."
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield an error if no setting is given, or if a setting other than the URL is null."""
        known = [field.alias or "" for field in cls.model_fields.values()]
        if "webhookUrl" not in given and all(given.get(name) is None for name in known):
            yield f"at least one of {', '.join(known)} must be given"

    def make(self, dialler: Dialler) -> None:
        """Apply the changes that concern the engine; none of them can fail."""
        if self.max_concurrent_calls is not None:
            dialler.set_limit(self.max_concurrent_calls)
        if self.calling_allowed is not None:
            dialler.set_calling_allowed(self.calling_allowed)
        if "webhook_url" in self.model_fields_set:
            dialler.set_webhook_url(self.webhook_url)


class ChangeOrganization(_Command):
    """Change settings of an organization, given its index: all of them or none."""

    kind: Literal["changeOrganization"] = "changeOrganization"
    organization: int
    changes: dict[str, JsonValue]

    @override
    def carry_out(self, core: SandboxCore) -> None:
        changes = read_model(OrganizationChanges, self.changes)
        changes.make(core.simulation.dialler(self.organization))
        if changes.webhook_url is not None:
            core.named_urls.add(changes.webhook_url)
        if changes.regenerate_api_key:
            core.regenerate_key(self.organization)


class ScriptNumber(_Command):
    """Assign a script to the next calls of a phone number; None removes the script (P6)."""

    kind: Literal["scriptNumber"] = "scriptNumber"
    tel: str
    script: str | None

    @override
    def carry_out(self, core: SandboxCore) -> None:
        steps = None if self.script is None else parse_script(self.script)
        core.simulation.give_script(self.tel, steps)


class _FaultCommand(_Command):
    """Command that changes the injected faults, which the engine does not use."""

    # The engine does not use faults, so counting them takes no turn (T4): a client that polls would
    # otherwise make a turn with every request.
    concerns_calling: ClassVar[bool] = False


class InjectFault(_FaultCommand):
    """Add a fault, for one organization or one campaign alone where their positions are given."""

    kind: Literal["injectFault"] = "injectFault"
    order: FaultOrder
    organization: int | None = None
    campaign: int | None = None

    @override
    def carry_out(self, core: SandboxCore) -> None:
        core.faults.add(self.order, self.organization, self.campaign, core.at)


class CountFaults(_FaultCommand):
    """Count the faults that a webhook or a request met, and the one that struck, by number.

    `at` (ms) is when the webhook leaves; the clock may be ahead of it. `caller` is the index of the
    organization that sent the request.
    """

    # Counting is a command, because a replay repeats commands but no requests and no POSTs.
    kind: Literal["countFaults"] = "countFaults"
    met: tuple[int, ...]
    struck: int | None = None
    post: tuple[int, ...] | None = None  # key of the POST; None for a request
    at: int | None = None
    caller: int | None = None

    @override
    def carry_out(self, core: SandboxCore) -> None:
        at = core.at if self.at is None else self.at
        core.faults.count(self.met, self.struck, at, post=self.post, caller=self.caller)


class ClearFaults(_FaultCommand):
    """Remove a fault, given its number, or all faults."""

    kind: Literal["clearFaults"] = "clearFaults"
    number: int | None = None

    @override
    def carry_out(self, core: SandboxCore) -> None:
        core.faults.clear(self.number)


class ResendWebhook(_CampaignCommand):
    """Send a result again, to the organization's current URL; `PostKey` identifies the result."""

    kind: Literal["resendWebhook"] = "resendWebhook"
    recipient: int
    call: int
    result: int

    @override
    def carry_out(self, core: SandboxCore) -> None:
        key = PostKey(self.organization, self.campaign, self.recipient, self.call, self.result)
        core.outbox.send_again(key, core.webhooks.body(key))


class TriggerResult(_Command):
    """Create a result of a chosen kind for an organization, given its index.

    The simulation contains no call for the result.
    """

    kind: Literal["triggerResult"] = "triggerResult"
    concerns_calling: ClassVar[bool] = False
    organization: int
    order: TriggerOrder

    @override
    def carry_out(self, core: SandboxCore) -> None:
        with _refusing():
            core.triggers.add(self.order, core.accounts[self.organization], core.simulation)


class SetSpeed(_Command):
    """Run the clock at a multiple of real time, or (None) stop it."""

    kind: Literal["setSpeed"] = "setSpeed"
    concerns_calling: ClassVar[bool] = False
    speed: float | None

    @override
    def carry_out(self, core: SandboxCore) -> None:
        core.clock.speed = self.speed


class _SnapshotCommand(_Command):
    """Command that changes snapshots. The journal contains it, the run does not.

    `carry_out` does nothing: a replay reads the entry as the position of the snapshot.
    """

    concerns_calling: ClassVar[bool] = False

    @override
    def carry_out(self, core: SandboxCore) -> None:
        raise AssertionError("a run has no snapshots")


class TakeSnapshot(_SnapshotCommand):
    """Store the current state under a name."""

    kind: Literal["takeSnapshot"] = "takeSnapshot"
    name: str


class DropSnapshot(_SnapshotCommand):
    """Delete the snapshot with a name."""

    kind: Literal["dropSnapshot"] = "dropSnapshot"
    name: str


class Restore(_SnapshotCommand):
    """Restore the state of a snapshot, given its name, or (None) the initial state."""

    kind: Literal["restore"] = "restore"
    name: str | None


Command = Annotated[
    ScheduleCampaign
    | SteerCampaign
    | ReanalyzeCall
    | AddCampaign
    | AddOrganization
    | AddAgent
    | ChangeOrganization
    | ScriptNumber
    | InjectFault
    | CountFaults
    | ClearFaults
    | ResendWebhook
    | TriggerResult
    | SetSpeed
    | TakeSnapshot
    | DropSnapshot
    | Restore,
    Field(discriminator="kind"),
]
"""Any command, in the form that `model_dump` writes and pydantic parses."""
