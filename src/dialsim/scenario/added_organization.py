"""Organizations and agents that are added while a scenario runs: checked as if in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError, WithJsonSchema, field_validator

from dialsim.interface.model import broken
from dialsim.scenario.added_campaign import errors_seen_from
from dialsim.scenario.agent import Agent
from dialsim.scenario.calendar import Lines
from dialsim.scenario.campaign import Campaign
from dialsim.scenario.checks import check_references
from dialsim.scenario.document import Cursor, NodePath, Place, planted
from dialsim.scenario.error_text import problems_of
from dialsim.scenario.fields import Model
from dialsim.scenario.organization import Organization
from dialsim.scenario.problems import Problems
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.timeline import TimelineAction

_OWN = ("name", "id", "apiKey")
"""What no two organizations share."""


_NONE = WithJsonSchema({"type": "array", "maxItems": 0})
_EMPTY = "Empty: they come later, as commands."
_LATER = "can't come with an organization that is added: they are commands that come later"


class AddedOrganization(Organization):
    """An organization as in a scenario file; its campaigns are added afterwards."""

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
    like: Organization | None = None,
) -> Organization:
    """Read an organization's block as it may stand in a scenario file, and check it.

    `there` are those that the scenario has by now. What the block leaves out is as in `like`, but
    for names, ids, keys, campaigns and timeline. Raises ScenarioError with what is wrong.
    """
    settled: dict[str, object] = {} if like is None else _copied(like)
    listed = [*map(_outline, there), {**settled, **block}]
    return _read(AddedOrganization, listed, ("organizations", len(there)), scenario)


def read_agent(
    block: Mapping[str, object],
    scenario: Scenario,
    there: Sequence[Organization],
    organization: int,
) -> Agent:
    """Read the block of an agent of an organization, by position, and check it.

    Raises ScenarioError with what is wrong.
    """
    listed = [*map(_outline, there)]
    agents = [*listed[organization]["agents"], block]
    listed[organization] |= {"agents": agents}
    path = ("organizations", organization, "agents", len(agents) - 1)
    return _read(Agent, listed, path, scenario)


_ModelT = TypeVar("_ModelT", bound=Model)


def _read(
    model: type[_ModelT], organizations: Sequence[object], path: NodePath, scenario: Scenario
) -> _ModelT:
    """The part of a document at a path, the rest being there to check it by."""
    name = str(path[-2]).removesuffix("s")
    content = {
        "voices": [{"voiceKey": voice.voice_key} for voice in scenario.voices],
        "behaviours": {name: {} for name in scenario.behaviours},
        "organizations": organizations,
    }
    with errors_seen_from(path):
        problems, root = Problems(name), Cursor.root(planted(content, Place(name)))
        check_references(root, problems)
        try:
            read = model.model_validate(root.at(*path).value, by_alias=True, by_name=False)
        except ValidationError as error:
            for problem in problems_of(error, root, path):
                problems.note(problem)
            problems.raise_if_any()
            raise
        problems.raise_if_any()
    return read


def _outline(owner: Organization) -> dict[str, Any]:
    """The parts of an organization's block by which others are checked."""
    agents = [{"name": agent.name, "id": agent.id} for agent in owner.agents]
    return {"name": owner.name, "id": owner.id, "apiKey": owner.api_key, "agents": agents}


def _copied(owner: Organization) -> dict[str, object]:
    """The block of an organization without what it does and what is its own."""
    block: dict[str, Any] = owner.model_dump(
        mode="json", by_alias=True, exclude={"campaigns", "timeline", "lines"}
    )
    for name in _OWN:
        block.pop(name)
    for agent in block["agents"]:
        agent.pop("id")
    return block
