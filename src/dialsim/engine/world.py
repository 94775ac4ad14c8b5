"""The world: a scenario compiled into plain numbers, one block per organization and campaign."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING

from dialsim.engine.behaviour import Reactions
from dialsim.engine.chance import Draws
from dialsim.interface.errors import DialsimError

if TYPE_CHECKING:
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.models import Agent, Campaign, Organization, Scenario
    from dialsim.scenario.people import People


@dataclass(slots=True)
class CampaignBlock:
    """One campaign: whom it calls (`people`, in upload order), with which agent, and its chance."""

    organization: int
    position: int
    name: str
    agent: Agent
    people: People
    draws: Draws
    schedule: ScheduleRequest | None
    scheduled_at: int | None


@dataclass(slots=True)
class OrganizationBlock:
    """One organization and its campaigns."""

    position: int
    name: str
    settings: Organization
    campaigns: list[CampaignBlock]


class World:
    """All that an engine needs to know of a scenario, a seed and a replication.

    `numbers`, `voice_keys` and `behaviours` are the texts that a trace's dials refer to by index.
    """

    def __init__(self, scenario: Scenario, seed: int | None = None, replication: int = 0) -> None:
        """`seed` defaults to the scenario's; both are integers of 0 or more.

        Raises DialsimError for others, and for the name of a file in place of a scenario.
        """
        if isinstance(scenario, str | PathLike):
            raise DialsimError(f"{scenario!r} is not a scenario yet: dialsim.load reads the file")
        self.scenario = scenario
        self.seed = _count("seed", scenario.seed if seed is None else seed)
        self.replication = _count("replication", replication)
        self.behaviours = tuple(scenario.behaviours)
        self.numbers: list[str] = []
        self.voice_keys: list[str] = []
        self._number_index: dict[str, int] = {}
        self._voice_index: dict[str, int] = {}
        self.organizations = [
            OrganizationBlock(
                position=position,
                name=organization.name,
                settings=organization,
                campaigns=[
                    self._campaign(organization, position, campaign, number)
                    for number, campaign in enumerate(organization.campaigns)
                ],
            )
            for position, organization in enumerate(scenario.organizations)
        ]

    def number(self, text: str) -> int:
        """The index of a caller ID in `numbers`."""
        return _index(text, self.numbers, self._number_index)

    def voice(self, key: str) -> int:
        """The index of a voice in `voice_keys`."""
        return _index(key, self.voice_keys, self._voice_index)

    def snapshot(self) -> World:
        """The world with the campaigns that it has by now."""
        world = copy(self)
        world.organizations = [
            replace(block, campaigns=[*block.campaigns]) for block in self.organizations
        ]
        return world

    def reactions(self, block: CampaignBlock, behaviour: str) -> Reactions:
        """How the people of a campaign react under the behaviour so named."""
        position = self.behaviours.index(behaviour)
        return Reactions(self.scenario.behaviours[behaviour], position, block.draws, block.people)

    def _campaign(
        self,
        organization: Organization,
        organization_position: int,
        campaign: Campaign,
        position: int,
    ) -> CampaignBlock:
        from dialsim.scenario.people import people

        listed = people(campaign.recipients, self.seed, organization_position, position)
        return CampaignBlock(
            organization=organization_position,
            position=position,
            name=campaign.name,
            agent=next(agent for agent in organization.agents if agent.name == campaign.agent),
            people=listed,
            draws=Draws(
                self.seed, self.replication, (organization_position, position), listed.count
            ),
            schedule=campaign.schedule,
            scheduled_at=campaign.scheduled_at,
        )


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise DialsimError(f"{name} {value!r} is not an integer of 0 or more")
    return int(value)


def _index(text: str, texts: list[str], index: dict[str, int]) -> int:
    if text not in index:
        index[text] = len(texts)
        texts.append(text)
    return index[text]
