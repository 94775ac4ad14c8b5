"""Campaigns, organizations and agents added during a run, and the checks on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field, WithJsonSchema, field_validator

from dialsim.errors import ScenarioError
from dialsim.interface.agent import ParamSchema
from dialsim.interface.instants import format_instant
from dialsim.interface.model import broken
from dialsim.scenario.calendar import Lines
from dialsim.scenario.campaign import Campaign, RecipientsFile
from dialsim.scenario.checks import check_references, check_worth, read_schedules
from dialsim.scenario.document import (
    Cursor,
    Document,
    Location,
    NodePath,
    SourceFolder,
    copied,
    put,
)
from dialsim.scenario.error_text import validated
from dialsim.scenario.fields import Model
from dialsim.scenario.organization import Agent, Organization, TimelineAction
from dialsim.scenario.problems import Problems, seen_from
from dialsim.scenario.recipients import check_ids, read_people, read_recipients
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.service import Beginning, check_order
from dialsim.scenario.sheet import Sheet

NAME = "campaign"
"""Name of the added campaign in problems, in place of a file name."""
CSV_NAME = "recipients.csv"
"""Name in problems of the CSV that comes with the campaign."""
_NO_HOURS = "can't come with a campaign that is added: give schedule.timeWindows"


class PresentCampaign(Protocol):
    """Existing campaign of an organization."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Scenario that a campaign joins.

    `organization` is the position of the campaign's organization. `campaigns` are the existing
    campaigns by organization, and `recipient_ids` the fixed ids of their recipients. `now` is in
    ms.
    """

    scenario: Scenario
    organization: int
    campaigns: Sequence[Sequence[PresentCampaign]]
    recipient_ids: Iterable[str]
    now: int

    @property
    def path(self) -> NodePath:
        """Path that the campaign would have in the file."""
        position = len(self.campaigns[self.organization])
        return "organizations", self.organization, "campaigns", position

    @property
    def beginning(self) -> Beginning:
        """Lower bound of the campaign's instants."""
        return Beginning(self.now, "now")

    def agent(self, name: object) -> Agent | None:
        """Return an agent by name; None for an unknown one."""
        agents = self.scenario.organizations[self.organization].agents
        return next((agent for agent in agents if agent.name == name), None)

    def schema(self, agent: object) -> Mapping[str, ParamSchema]:
        """Return the paramsSchema of an agent by name; empty for an unknown agent."""
        found = self.agent(agent)
        return (found and found.params_schema) or {}

    def around(self, name: object, identifier: object) -> Surroundings:
        """Return the part of the scenario that checks of a campaign with this name and id need.

        This is the campaign's organization alone, so that a large scenario does not slow additions
        down. If the name or id is in use, it is the whole scenario, since the error names the
        position of the other campaign.
        """
        names = map(attrgetter("name"), self.campaigns[self.organization])
        ids = map(attrgetter("id"), chain.from_iterable(self.campaigns))
        if _is_among(name, names) or _is_among(identifier, ids):
            return self
        own = self.scenario.organizations[self.organization]
        scenario = self.scenario.model_copy(update={"organizations": (own,)})
        return replace(self, scenario=scenario, organization=0, campaigns=[[]])

    def document(self, campaign: object) -> Cursor:
        """Build a document with the campaign at its path, and the parts of the scenario that
        checks need.
        """
        # Only names and ids of the other campaigns: the checks need no more, and people would make
        # the document as large as the run.
        campaigns: list[list[object]] = [
            [{"name": known.name, "id": known.id} for known in there] for there in self.campaigns
        ]
        campaigns[self.organization].append(campaign)
        settings = self.scenario.organizations
        organizations: list[dict[str, object]] = [
            {"name": owner.name, "campaigns": there}
            for owner, there in zip(settings, campaigns, strict=True)
        ]
        organizations[self.organization] |= _checked_by(settings[self.organization])
        voices = [{"voiceKey": voice.voice_key} for voice in self.scenario.voices]
        content = {"voices": voices, "organizations": organizations}
        return Document.of(content, Location(NAME)).root


def _is_among(text: object, known: Iterable[str]) -> bool:
    """Return True if a text is one of the known texts, ignoring case."""
    return isinstance(text, str) and text.lower() in map(str.lower, known)


def _in_use(texts: Iterable[object], taken: Collection[str]) -> bool:
    """Return True if one of some texts is taken; `taken` is in lower case."""
    return any(isinstance(text, str) and text.lower() in taken for text in texts)


def identifying_texts(owner: Organization) -> set[str]:
    """Return names, ids and keys of an organization and its agents, in lower case.

    An addition that has none of these texts does not conflict with the organization.
    """
    texts = [owner.name, owner.id, owner.api_key]
    texts += [text for agent in owner.agents for text in (agent.name, agent.id)]
    return {text.lower() for text in texts if text}


def _checked_by(owner: Organization) -> dict[str, object]:
    """Return the parts of an organization's block that checks of a campaign need."""
    parts: dict[str, object] = owner.model_dump(
        mode="json", by_alias=True, include={"caller_ids", "sip_accounts"}
    )
    if owner.duplicate_call_alert is not None:
        # Checks of a campaign need to know that the feature is there, not how it is set.
        parts["duplicateCallAlert"] = {}
    parts["agents"] = [
        agent.model_dump(mode="json", by_alias=True, include={"name", "params_schema"})
        for agent in owner.agents
    ]
    return parts


def read_campaign(
    block: Mapping[str, object],
    around: Surroundings,
    csv: bytes | None = None,
    folder: Path | None = None,
) -> Campaign:
    """Read and check a campaign's block in the form of a scenario file.

    `csv` is the content of a CSV of recipients, in place of `recipients`. `folder` is the base of
    file names; without it no file is read. Raises ScenarioError with the texts of `load`; paths
    start at the block, and instants are compared with now instead of clock.start.
    """
    around = around.around(block.get("name"), block.get("id"))
    problems, root = Problems(NAME), around.document(block)
    with _errors_seen_from(around.path):
        source = None if folder is None else SourceFolder(folder)
        values = _values(root, around, csv, source, problems)
        check_references(root, problems)
        entry = root.at(*around.path)
        campaign = validated(Campaign, values, root, problems, around.path)
        misfit = campaign.misfit(around.scenario.engine.release_interval)
        if misfit is not None:
            key, message = misfit
            problems.add(entry.at(key), message)
        # A formula that comes from the scenario has no position in the block: report it at
        # recipients.
        value = entry.at("recipients") if campaign.value is None else entry.at("value")
        agent = around.agent(campaign.agent)
        check_worth(campaign, agent, around.scenario.value, value, problems)
        check_ids([(entry, campaign)], problems, around.recipient_ids)
        problems.raise_if_any()
    return campaign


def check_campaign(campaign: Campaign, around: Surroundings) -> None:
    """Check again a campaign that was read earlier: names, ids and instants.

    A large campaign is read ahead of its command, and others may have been added since. Raises
    ScenarioError like `read_campaign`.
    """
    outline: dict[str, object] = {"name": campaign.name, "id": campaign.id, "agent": campaign.agent}
    if campaign.scheduled_at is not None:
        outline["scheduledAt"] = format_instant(campaign.scheduled_at)
    around = around.around(campaign.name, campaign.id)
    problems, root = Problems(NAME), around.document(outline)
    with _errors_seen_from(around.path):
        check_order(root, around.beginning, problems)
        check_references(root, problems)
        check_ids([(root.at(*around.path), campaign)], problems, around.recipient_ids)
        problems.raise_if_any()


@contextmanager
def _errors_seen_from(path: NodePath) -> Iterator[None]:
    """Make the paths of errors start at a part of the document."""
    try:
        yield
    except ScenarioError as error:
        problems = [seen_from(path, problem) for problem in error.problems]
        # The client sent the campaign alone, so that paths of the surrounding document mean nothing
        # to it.
        raise ScenarioError(problems) from None


def _values(
    root: Cursor,
    around: Surroundings,
    csv: bytes | None,
    folder: SourceFolder | None,
    problems: Problems,
) -> object:
    """Return the block's plain values, with schedule requests and files already read."""
    campaign, depth = root.at(*around.path), len(around.path)
    values = copied(campaign.value, campaign.location)
    if campaign.at("callingHours").exists:
        problems.add(campaign.at("callingHours"), _NO_HOURS)
    for body, request in read_schedules(root, problems):
        put(values, body.path[depth:], request)
    check_order(root, around.beginning, problems)
    for recipients, people in read_recipients(root, folder, around.beginning, problems):
        put(values, recipients.path[depth:], people)
    if csv is None or not isinstance(values, dict):
        return values
    if campaign.at("recipients").exists:
        problems.add(campaign.at("recipients"), "can't stand beside a CSV of recipients")
    schema = around.schema(values.get("agent"))
    file, sheet = RecipientsFile(file=CSV_NAME), Sheet.parse_csv(csv, CSV_NAME, problems)
    table = read_people(sheet, schema, around.beginning, problems, file)
    return values | {"recipients": file.holding(table)}


_OWN = ("name", "id", "apiKey")
"""Keys that must be unique among organizations."""


_NONE = WithJsonSchema({"type": "array", "maxItems": 0, "items": {}})
_EMPTY = "Must be empty: commands add the contents later."
_LATER = "must be empty in an added organization: commands add the contents later"


class AddedOrganization(Organization):
    """Organization as in a scenario file; its campaigns are added afterwards."""

    lines: Annotated[Lines, WithJsonSchema({"type": "object", "additionalProperties": False})] = (
        Field(default_factory=dict, description=_EMPTY)
    )
    campaigns: Annotated[tuple[Campaign, ...], _NONE] = Field(default=(), description=_EMPTY)
    timeline: Annotated[tuple[TimelineAction, ...], _NONE] = Field(default=(), description=_EMPTY)

    @field_validator("lines", "campaigns", "timeline", mode="before")
    @classmethod
    def _come_later(cls, value: object) -> object:
        if value:
            raise broken(_LATER)
        return value


def read_organization(
    block: Mapping[str, object],
    scenario: Scenario,
    there: Sequence[Organization],
    taken: Collection[str],
    like: Organization | None = None,
) -> Organization:
    """Read and check an organization's block in the form of a scenario file.

    `there` are the present organizations, `taken` their `identifying_texts`. Keys that the block
    leaves out are taken from `like`,
    except names, ids, keys, campaigns and timeline. Raises ScenarioError.
    """
    settled: dict[str, object] = {} if like is None else _copied(like)
    merged = {**settled, **block}
    agents = merged.get("agents")
    listed_agents = agents if isinstance(agents, list) else []
    named = [merged.get("name"), merged.get("id"), merged.get("apiKey")]
    named += [agent.get("id") for agent in listed_agents if isinstance(agent, Mapping)]
    there = there if _in_use(named, taken) else ()
    listed = [*map(_outline, there), merged]
    return _read(AddedOrganization, listed, ("organizations", len(there)), scenario)


def read_agent(
    block: Mapping[str, object],
    scenario: Scenario,
    there: Sequence[Organization],
    taken: Collection[str],
    organization: int,
) -> Agent:
    """Read and check an agent's block for an organization, given by position. Raises
    ScenarioError.
    """
    if not _in_use([block.get("name"), block.get("id")], taken):
        own = there[organization].model_copy(update={"agents": ()})
        there, organization = [own], 0
    listed = [*map(_outline, there)]
    agents = [*listed[organization]["agents"], block]
    listed[organization] |= {"agents": agents}
    path = ("organizations", organization, "agents", len(agents) - 1)
    return _read(Agent, listed, path, scenario)


_ModelT = TypeVar("_ModelT", bound=Model)


def _read(
    model: type[_ModelT], organizations: Sequence[object], path: NodePath, scenario: Scenario
) -> _ModelT:
    """Validate the part of a document at a path; references may lead to other parts."""
    name = str(path[-2]).removesuffix("s")
    content = {
        "voices": [{"voiceKey": voice.voice_key} for voice in scenario.voices],
        "behaviours": {name: {} for name in scenario.behaviours},
        "organizations": organizations,
    }
    with _errors_seen_from(path):
        problems, root = Problems(name), Document.of(content, Location(name)).root
        check_references(root, problems)
        read = validated(model, root.at(*path).value, root, problems, path)
        problems.raise_if_any()
    return read


def _outline(owner: Organization) -> dict[str, Any]:
    """Return the parts of an organization's block that checks of other blocks need."""
    agents = [{"name": agent.name, "id": agent.id} for agent in owner.agents]
    return {"name": owner.name, "id": owner.id, "apiKey": owner.api_key, "agents": agents}


def _copied(owner: Organization) -> dict[str, object]:
    """Return an organization's block without its campaigns, timeline, lines and unique keys."""
    block: dict[str, Any] = owner.model_dump(
        mode="json", by_alias=True, exclude={"campaigns", "timeline", "lines"}
    )
    for name in _OWN:
        # The copy would clash with the original, whose names, ids and keys are unique.
        block.pop(name)
    for agent in block["agents"]:
        agent.pop("id")
    return block
