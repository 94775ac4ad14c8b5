"""The world: a scenario compiled into plain numbers, one block per organization and campaign."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.models import Scenario
    from dialsim.scenario.people import People


@dataclass(slots=True)
class CampaignBlock:
    """One campaign: whom it calls (`people`, in upload order) and with which agent."""

    organization: int
    position: int
    name: str
    agent: int
    people: People
    schedule: ScheduleRequest | None
    scheduled_at: int


@dataclass(slots=True)
class OrganizationBlock:
    """One organization and its campaigns."""

    position: int
    name: str
    max_concurrent_calls: int
    calling_allowed: bool
    campaigns: list[CampaignBlock] = field(default_factory=list)


@dataclass(slots=True)
class World:
    """All that an engine needs to know; `numbers` and `voice_keys` are what dials refer to."""

    scenario: Scenario
    seed: int
    replication: int
    organizations: list[OrganizationBlock]
    numbers: list[str]
    voice_keys: list[str]
