"""What figures are made of: a campaign, an organization or a run, each thing when first asked for.

Many runs are made for a few figures of each (`figures_of`), so nothing is counted in vain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from dialsim.engine.world import OrganizationBlock
from dialsim.results.bottleneck import Bottleneck, CampaignBounds, held_back
from dialsim.results.campaigns import CampaignTimeline, PeopleCount, union
from dialsim.results.counts import (
    AnalysisCounts,
    CallCounts,
    Charges,
    DeliveryCounts,
    Durations,
    attempts_of_exhausted,
    queue_waits,
    value_of,
)
from dialsim.results.run_view import RunView
from dialsim.results.time_use import Occupancy, TimeUse
from dialsim.scenario.service import Costs


class PartName(NamedTuple):
    """Whose figures: those of the run, of an organization, or of a campaign."""

    scope: str
    organization: str | None = None
    campaign: str | None = None


class Part(ABC):
    """A campaign, or several together, from which figures are made."""

    name: PartName

    def __init__(self, reading: RunView, lives: Sequence[CampaignTimeline]) -> None:
        self.reading = reading
        self.lives = tuple(lives)

    @property
    def costs(self) -> Costs | None:
        """What the scenario says of money."""
        return self.reading.world.scenario.costs

    @property
    def is_scheduled(self) -> bool:
        """Whether any of its campaigns was scheduled."""
        return any(life.request is not None for life in self.lives)

    @property
    @abstractmethod
    def finish(self) -> float:
        """When all were settled (ms); infinite if not all were, -infinite if not scheduled."""

    @property
    @abstractmethod
    def final_at(self) -> float:
        """When the last status became final (ms); infinite where `finish` would be."""

    @property
    @abstractmethod
    def people(self) -> PeopleCount:
        """The people by state."""

    @property
    @abstractmethod
    def calls(self) -> CallCounts:
        """Counts of calls."""

    @property
    @abstractmethod
    def charges(self) -> Charges:
        """What calls are charged for."""

    @property
    @abstractmethod
    def waits(self) -> Durations:
        """Each wait from a release to the dial or queue timeout that ended it."""

    @property
    @abstractmethod
    def analyses(self) -> AnalysisCounts:
        """Counts of conversations by their analyses."""

    @property
    @abstractmethod
    def deliveries(self) -> DeliveryCounts:
        """Counts of results by what became of them."""

    @property
    @abstractmethod
    def occupancy(self) -> Occupancy:
        """The slots in use, while a window was open."""

    @property
    @abstractmethod
    def held_back(self) -> Bottleneck | None:
        """What took the largest share of the time; None without a campaign."""

    @property
    @abstractmethod
    def shared_cost(self) -> float:
        """The share of what lines and the run cost."""

    @property
    @abstractmethod
    def value(self) -> float | None:
        """What the results are worth; None where nothing is said to be worth anything."""


class CampaignPart(Part):
    """One campaign."""

    def __init__(self, reading: RunView, life: CampaignTimeline) -> None:
        super().__init__(reading, [life])
        self.life = life
        self.name = PartName("campaign", life.organization, life.name)

    @property
    def finish(self) -> float:
        """When everybody was settled."""
        return self._last(self.reading.finishes[self.life.position])

    @property
    def final_at(self) -> float:
        """When it had its final status."""
        return self._last(self.life.final_at)

    def _last(self, instant: int | None) -> float:
        """An instant, by which the last of several campaigns is found."""
        if instant is not None:
            return instant
        return inf if self.is_scheduled else -inf

    @cached_property
    def people(self) -> PeopleCount:
        """The people by state."""
        return PeopleCount.of(self.reading.states[self.life.position])

    @cached_property
    def calls(self) -> CallCounts:
        """Counts of its calls."""
        position = self.life.position
        return CallCounts.of(self.reading.dialled[position], self.reading.states[position])

    @cached_property
    def charges(self) -> Charges:
        """What its calls are charged for."""
        return Charges.of(self.reading.dialled[self.life.position], self.costs)

    @cached_property
    def waits(self) -> Durations:
        """Its waits in the queue."""
        return Durations(queue_waits(self.reading.dialled[self.life.position])[1])

    @cached_property
    def analyses(self) -> AnalysisCounts:
        """Counts of its conversations."""
        reading, position = self.reading, self.life.position
        agent = reading.block(position).agent
        return AnalysisCounts.of(reading.streams[position], reading.verdicts[position], agent)

    @cached_property
    def deliveries(self) -> DeliveryCounts:
        """Counts of its results."""
        return DeliveryCounts.of(self.reading.streams[self.life.position])

    @cached_property
    def occupancy(self) -> Occupancy:
        """The slots in use by its calls."""
        position = self.life.position
        allowed = self.reading.slots[position[0]].allowed
        return Occupancy.of(self.reading.busy[position], allowed, self.life.open)

    @cached_property
    def held_back(self) -> Bottleneck:
        """What took the largest share of its time."""
        position = self.life.position
        use = self.reading.time_uses[position]
        calls, states = self.reading.dialled[position], self.reading.states[position]
        exhausted = attempts_of_exhausted(calls, states)
        return held_back(self.life, use, self.people, exhausted, self._bounds(use))

    def _bounds(self, use: TimeUse) -> CampaignBounds:
        """What bounded it while it ran."""
        life = self.life
        slots, own = self.reading.slots[life.position[0]], self.reading.busy[life.position]
        start = life.end if life.start is None else min(life.start, life.end)
        inside = slots.allowed.at[(slots.allowed.at > start) & (slots.allowed.at < life.end)]
        limits = slots.allowed(np.append(inside, start))
        of_all = slots.busy.integral(use.slot_spans)
        return CampaignBounds(
            least_limit=int(limits.min()),
            most_limit=int(limits.max()),
            last_limit=int(slots.allowed(np.array([life.end]))[0]),
            mostly_others=2 * own.integral(use.slot_spans) < of_all,
            engine=self.reading.world.scenario.engine,
        )

    @property
    def shared_cost(self) -> float:
        """Its share of what lines and the run cost."""
        return self.reading.shared_costs[self.life.position]

    @cached_property
    def value(self) -> float | None:
        """What its results are worth."""
        worth = self.reading.block(self.life.position).value
        if worth is None:
            return None
        return value_of(worth, self.charges.answered, self.analyses)


class _TotalPart(Part):
    """Several campaigns or organizations together."""

    def __init__(self, reading: RunView, parts: Sequence[Part]) -> None:
        super().__init__(reading, [life for part in parts for life in part.lives])
        self._parts = parts

    @property
    def finish(self) -> float:
        """That of the last of them."""
        return max((part.finish for part in self._parts), default=-inf)

    @property
    def final_at(self) -> float:
        """That of the last of them."""
        return max((part.final_at for part in self._parts), default=-inf)

    @cached_property
    def people(self) -> PeopleCount:
        """Those of all of them."""
        return PeopleCount.total(part.people for part in self._parts)

    @cached_property
    def calls(self) -> CallCounts:
        """Those of all of them."""
        return CallCounts.total(part.calls for part in self._parts)

    @cached_property
    def charges(self) -> Charges:
        """Those of all of them."""
        return Charges.total(part.charges for part in self._parts)

    @cached_property
    def waits(self) -> Durations:
        """Those of all of them."""
        return Durations.total(part.waits for part in self._parts)

    @cached_property
    def analyses(self) -> AnalysisCounts:
        """Those of all of them."""
        return AnalysisCounts.total(part.analyses for part in self._parts)

    @cached_property
    def deliveries(self) -> DeliveryCounts:
        """Those of all of them."""
        return DeliveryCounts.total(part.deliveries for part in self._parts)

    @property
    def held_back(self) -> Bottleneck | None:
        """That of the one that finished last."""
        scheduled = [part for part in self._parts if part.is_scheduled]
        last = max(
            scheduled or self._parts, key=lambda part: (part.finish, part.final_at), default=None
        )
        return last.held_back if last else None

    @property
    def shared_cost(self) -> float:
        """That of all of them."""
        return sum(part.shared_cost for part in self._parts)

    @property
    def value(self) -> float | None:
        """That of all of them; None where none has any."""
        values = [part.value for part in self._parts if part.value is not None]
        return sum(values) if values else None


class OrganizationPart(_TotalPart):
    """One organization with its `campaigns`."""

    def __init__(self, reading: RunView, block: OrganizationBlock) -> None:
        self.block = block
        self.name = PartName("organization", block.name)
        self.campaigns = [
            CampaignPart(reading, life)
            for position, life in reading.lives.items()
            if position[0] == block.position
        ]
        super().__init__(reading, self.campaigns)

    @cached_property
    def occupancy(self) -> Occupancy:
        """The use of its slots, while a window of any campaign was open."""
        slots = self.reading.slots[self.block.position]
        return Occupancy.of(slots.busy, slots.allowed, union(life.open for life in self.lives))


class RunPart(_TotalPart):
    """The whole run with its `organizations`."""

    def __init__(self, reading: RunView) -> None:
        self.name = PartName("run")
        self.organizations = [
            OrganizationPart(reading, block) for block in reading.world.organizations
        ]
        super().__init__(reading, self.organizations)

    @cached_property
    def occupancy(self) -> Occupancy:
        """The use of the slots of all organizations."""
        return Occupancy.total(part.occupancy for part in self.organizations)

    def every(self) -> Iterator[Part]:
        """The run, then each organization followed by its campaigns."""
        yield self
        for owner in self.organizations:
            yield owner
            yield from owner.campaigns
