"""A trace read once: the ledgers, lives and names that tables, figures and stories share."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import Trace
from dialsim.engine.world import CampaignBlock
from dialsim.interface.errors import DialsimError
from dialsim.results.campaign_life import CampaignLife, Position, read_lives
from dialsim.results.catalog import Catalog
from dialsim.results.ledger import Ledger, read_ledger
from dialsim.results.person_state import person_states


class Reading:
    """What a finished trace says, campaign by campaign in the order of the scenario.

    Everything is read when first asked for, and kept.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.world = trace.world

    @cached_property
    def catalog(self) -> Catalog:
        """The names of the run."""
        return Catalog.of(self.world)

    @cached_property
    def lives(self) -> dict[Position, CampaignLife]:
        """The life of every campaign."""
        return read_lives(self.trace)

    @cached_property
    def ledgers(self) -> dict[Position, Ledger]:
        """The calls of every campaign."""
        return {position: read_ledger(self.trace, *position) for position in self.lives}

    @cached_property
    def states(self) -> dict[Position, NDArray[np.int8]]:
        """The state of every recipient, indexes into `PERSON_STATES`."""
        return {
            position: person_states(self.ledgers[position], life, self.trace.end)
            for position, life in self.lives.items()
        }

    def block(self, position: Position) -> CampaignBlock:
        """A campaign of the world."""
        return self.world.organizations[position[0]].campaigns[position[1]]

    def find(self, campaign: str | None) -> CampaignLife:
        """The campaign of that name, `Organization/Name` where the name alone is ambiguous.

        None means the only campaign of the run. Raises DialsimError if it is not exactly one.
        """
        known = [life.full_name for life in self.lives.values()]
        found = [
            life
            for life in self.lives.values()
            if campaign is None or campaign in (life.name, life.full_name)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise DialsimError(f"there is no campaign {campaign}; there are: {', '.join(known)}")
        which = "say which campaign" if campaign is None else f"campaign {campaign} is ambiguous"
        raise DialsimError(f"{which}: {', '.join(life.full_name for life in found)}")
