"""Scope: which campaigns a picture is about, and the time that it covers."""

from __future__ import annotations

from dataclasses import dataclass

from dialsim.interface.errors import DialsimError
from dialsim.results.campaign_life import CampaignLife, Position
from dialsim.results.ledger import Ledger
from dialsim.results.reading import Reading
from dialsim.results.spans import Spans, union
from dialsim.results.step_function import StepFunction
from dialsim.results.time_use import SlotUse


@dataclass(frozen=True, slots=True)
class Scope:
    """Campaigns of a run, and the words that name them in a title (empty for the whole run).

    `start` and `end` (ms) reach from the first startAt to the last finish, or the end of the run.
    """

    reading: Reading
    lives: tuple[CampaignLife, ...]
    name: str

    @classmethod
    def of_campaign(cls, reading: Reading, campaign: str | None) -> Scope:
        """One campaign by its name, or the whole run. Raises DialsimError if there is no such."""
        if campaign is None:
            return cls(reading, tuple(reading.lives.values()), "")
        life = reading.find(campaign)
        return cls(reading, (life,), life.name)

    @classmethod
    def of_organization(cls, reading: Reading, organization: str | None) -> Scope:
        """One organization by its name, or the whole run. Raises DialsimError if not there."""
        if organization is None:
            return cls(reading, tuple(reading.lives.values()), "")
        lives = tuple(life for life in reading.lives.values() if life.organization == organization)
        known = [block.name for block in reading.world.organizations]
        if organization not in known:
            names = ", ".join(known)
            raise DialsimError(f"there is no organization {organization}; there are: {names}")
        return cls(reading, lives, organization)

    @property
    def positions(self) -> tuple[Position, ...]:
        """Where the campaigns stand in the scenario."""
        return tuple(life.position for life in self.lives)

    @property
    def ledgers(self) -> list[Ledger]:
        """The calls of each campaign."""
        return [self.reading.ledgers[position] for position in self.positions]

    @property
    def start(self) -> int:
        """The first startAt; the start of the clock where nothing was scheduled."""
        starts = [life.start for life in self.lives if life.start is not None]
        return min(starts, default=self.reading.world.scenario.clock.start)

    @property
    def end(self) -> int:
        """The last finish, or the end of the run for a campaign that is not final."""
        ends = [life.end for life in self.lives if life.start is not None]
        return max([self.start + 1000, *ends])

    @property
    def open(self) -> Spans:
        """The time in which at least one of the campaigns had an open window."""
        return union(life.open for life in self.lives)

    def slots(self) -> SlotUse:
        """The slots of the organizations, all together."""
        uses = [self.reading.slots[o] for o in dict.fromkeys(o for o, _ in self.positions)]
        return SlotUse(
            busy=StepFunction.total(use.busy for use in uses),
            queued=StepFunction.total(use.queued for use in uses),
            allowed=StepFunction.total(use.allowed for use in uses),
            paced=StepFunction.total(use.paced for use in uses),
        )

    def title(self, text: str) -> str:
        """A title, with the name of the campaign or organization where there is one."""
        return f"{text}: {self.name}" if self.name else text
