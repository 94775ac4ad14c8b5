"""The catalogs of a run: the names that the tables' dictionary-encoded columns refer to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.world import World
from dialsim.interface.analysis import UNKNOWN
from dialsim.results.ledger import Ledger
from dialsim.results.stream.verdicts import Verdicts, funnel_steps
from dialsim.scenario.agent import Agent


@dataclass(frozen=True, slots=True)
class Catalog:
    """Distinct names of a world, in the order in which the scenario first has them.

    Two organizations may have campaigns of one name; in the tables they share one entry.
    """

    organizations: tuple[str, ...]
    campaigns: tuple[str, ...]
    segments: tuple[str, ...]
    funnel_steps: tuple[str, ...]

    @classmethod
    def of(cls, world: World) -> Catalog:
        """The names of all organizations, campaigns, segments and funnel steps."""
        blocks = [campaign for block in world.organizations for campaign in block.campaigns]
        segments = (segment for block in blocks for segment in block.people.segments)
        return cls(
            organizations=tuple(block.name for block in world.organizations),
            campaigns=tuple(dict.fromkeys(block.name for block in blocks)),
            segments=tuple(dict.fromkeys(segments)),
            funnel_steps=tuple(
                dict.fromkeys([*(s for block in blocks for s in _funnel(block.agent)), UNKNOWN])
            ),
        )

    def campaign_codes(self, world: World) -> list[list[int]]:
        """By position of organization and of campaign: the code of the campaign's name."""
        return [
            [self.campaigns.index(campaign.name) for campaign in block.campaigns]
            for block in world.organizations
        ]

    def segment_codes(self, world: World, ledger: Ledger) -> NDArray[np.int16]:
        """The code of each recipient's segment in a campaign; -1 for none."""
        people = world.organizations[ledger.organization].campaigns[ledger.campaign].people
        if people.segment is None:
            return np.full(ledger.people, -1, dtype=np.int16)
        codes = [self.segments.index(segment) for segment in people.segments]
        coded: NDArray[np.int16] = np.array([*codes, -1], dtype=np.int16)[people.segment]
        return coded

    def funnel_codes(self, agent: Agent, verdicts: Verdicts) -> NDArray[np.int16]:
        """The code of the funnel's value in the newest result of each call; -1 for none."""
        steps = _funnel(agent)
        codes = [self.funnel_steps.index(step) for step in (UNKNOWN, *steps)]
        return np.array([*codes, -1], dtype=np.int16)[funnel_steps(verdicts, bool(steps))]


def _funnel(agent: Agent) -> tuple[str, ...]:
    """The steps of an agent's funnel, in order; empty where it defines none."""
    funnel = agent.analysis.funnel if agent.analysis is not None else None
    return tuple(step.step for step in funnel or ())
