"""Data behind the figures of a campaign, an organization or a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.world import OrganizationBlock
from dialsim.results.bottleneck import Bottleneck, CampaignBounds, held_back
from dialsim.results.campaigns import PeopleCount, union
from dialsim.results.counts import (
    AnalysisCounts,
    CallCounts,
    Charges,
    DeliveryCounts,
    Durations,
    attempts_of_exhausted,
    queue_waits,
)
from dialsim.results.expected_talk import Expected
from dialsim.results.run_view import CampaignResult, RunView
from dialsim.results.time_use import Occupancy, TimeUse
from dialsim.results.worth import total_by_day, value_by_day
from dialsim.scenario.service import Costs

T = TypeVar("T")


class PartName(NamedTuple):
    """Name of a part: the run, an organization, or a campaign."""

    scope: str
    organization: str | None = None
    campaign: str | None = None


# Every property is computed on first use: experiments make many runs for a few figures of each
# (`figures_of`).
class Summed(cached_property[T]):
    """Property of a part: computed `of` a campaign, and the `total` over the parts of others."""

    def __init__(
        self, of: Callable[[CampaignResult], T], total: Callable[[Iterable[T]], T]
    ) -> None:
        super().__init__(self._computed)
        self._of = of
        self._total = total

    def _computed(self, part: Part) -> T:
        if isinstance(part, CampaignPart):
            return self._of(part.campaign)
        return self._total(getattr(below, str(self.attrname)) for below in part.parts)


class Part:
    """Part whose figures are computed; by default the sum of several parts."""

    def __init__(
        self,
        name: PartName,
        reading: RunView,
        campaigns: Sequence[CampaignResult],
        parts: Sequence[Part] = (),
    ) -> None:
        """`campaigns` are those of all `parts`."""
        self.name = name
        self.reading = reading
        self.lives = tuple(campaign.life for campaign in campaigns)
        self.parts = parts

    # Counts of people by state, of calls, and of what calls are charged for; with the expected
    # charges of the answered calls.
    people = Summed(lambda own: PeopleCount.of(own.states), PeopleCount.total)
    calls = Summed(lambda own: CallCounts.of(own.engine_calls, own.states), CallCounts.total)
    charges = Summed(lambda own: Charges.of(own.engine_calls, _costs(own.run)), Charges.total)
    expected = Summed(
        lambda own: Expected.of(own.run.world, own.engine_calls, _costs(own.run)), Expected.total
    )
    # Waits from a release to the dial or queue timeout that ended it.
    waits = Summed(lambda own: Durations(queue_waits(own.engine_calls)[1]), Durations.total)
    # Conversations by their analyses, and results by their delivery.
    analyses = Summed(
        lambda own: AnalysisCounts.of(own.stream, own.verdicts, own.block.agent),
        AnalysisCounts.total,
    )
    deliveries = Summed(lambda own: DeliveryCounts.of(own.stream), DeliveryCounts.total)

    @property
    def costs(self) -> Costs | None:
        """The scenario's costs."""
        return _costs(self.reading)

    @property
    def is_scheduled(self) -> bool:
        """True if any of its campaigns was scheduled."""
        return any(life.request is not None for life in self.lives)

    @property
    def finish(self) -> float:
        """Last finish (ms); infinite if a campaign has none, -infinite if none was scheduled."""
        return max((part.finish for part in self.parts), default=-inf)

    @property
    def final_at(self) -> float:
        """Instant of the last final status (ms); infinite or -infinite like `finish`."""
        return max((part.final_at for part in self.parts), default=-inf)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """Number of attempts 1, 2, … made in this run; empty for several campaigns together."""
        return np.empty(0, dtype=np.int64)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Use of lines while a window was open."""
        return Occupancy.total(part.occupancy for part in self.parts)

    @cached_property
    def held_back(self) -> Bottleneck | None:
        """Cause that held back the campaign that finished last; None without campaigns."""
        scheduled = [part for part in self.parts if part.is_scheduled]
        # Several campaigns may finish at one instant, or never; then the last final status decides.
        last = max(
            scheduled or self.parts, key=lambda part: (part.finish, part.final_at), default=None
        )
        return last.held_back if last else None

    @property
    def line_cost(self) -> float:
        """Share of the cost of lines."""
        return sum(part.line_cost for part in self.parts)

    @property
    def fixed_cost(self) -> float:
        """Share of the fixed cost of the run."""
        return sum(part.fixed_cost for part in self.parts)

    @cached_property
    def value_by_day(self) -> NDArray[np.float64] | None:
        """Value of the results of each Thai date from the first day of calling on; None if the
        scenario gives no values.
        """
        return total_by_day(part.value_by_day for part in self.parts)

    @property
    def value(self) -> float | None:
        """Value of the results; None if the scenario gives no values."""
        return None if self.value_by_day is None else float(self.value_by_day.sum())


def _costs(reading: RunView) -> Costs | None:
    return reading.world.scenario.costs


class CampaignPart(Part):
    """One campaign."""

    def __init__(self, campaign: CampaignResult) -> None:
        life = campaign.life
        name = PartName("campaign", life.organization, life.name)
        super().__init__(name, campaign.run, [campaign])
        self.campaign = campaign

    @property
    def finish(self) -> float:
        """Finish (ms), or infinite, or -infinite."""
        return self._last(self.campaign.finish)

    @property
    def final_at(self) -> float:
        """Instant of the final status (ms), or infinite, or -infinite."""
        return self._last(self.campaign.life.final_at)

    def _last(self, instant: int | None) -> float:
        """Return an instant so that the maximum of several campaigns is the last one."""
        if instant is not None:
            return instant
        return inf if self.is_scheduled else -inf

    @property
    def attempts(self) -> NDArray[np.int64]:
        """Number of attempts 1, 2, … that were made in this run."""
        calls = self.campaign.engine_calls
        return np.bincount(calls.attempts_before.compress(calls.counted))

    @cached_property
    def occupancy(self) -> Occupancy:
        """Use of lines by the campaign's calls while its windows were open."""
        own = self.campaign
        return Occupancy.of(own.busy, own.lines.allowed, own.life.callable)

    @cached_property
    def held_back(self) -> Bottleneck:
        """Cause with the largest share of the campaign's time."""
        own = self.campaign
        exhausted = attempts_of_exhausted(own.engine_calls, own.states)
        bounds = self._bounds(own.time_use)
        return held_back(own.life, own.time_use, self.people, exhausted, bounds)

    def _bounds(self, use: TimeUse) -> CampaignBounds:
        """Return the limits of the campaign while it ran."""
        life, own, lines = self.campaign.life, self.campaign.busy, self.campaign.lines
        start = life.end if life.start is None else min(life.start, life.end)
        # Changes of the limit while the campaign ran; the limit at its start is added below.
        inside = lines.allowed.at[(lines.allowed.at > start) & (lines.allowed.at < life.end)]
        limits = lines.allowed(np.append(inside, start))
        of_all = lines.busy.integral(use.line_spans)
        return CampaignBounds(
            least_limit=int(limits.min()),
            most_limit=int(limits.max()),
            last_limit=int(lines.allowed(np.array([life.end]))[0]),
            mostly_others=2 * own.integral(use.line_spans) < of_all,
            engine=self.reading.world.scenario.engine,
        )

    @property
    def line_cost(self) -> float:
        """The campaign's share of the cost of lines."""
        return self.reading.line_costs[self.campaign.life.position]

    @property
    def fixed_cost(self) -> float:
        """The campaign's share of the fixed cost of the run."""
        return self.reading.fixed_costs[self.campaign.life.position]

    @cached_property
    def value_by_day(self) -> NDArray[np.float64] | None:
        """Value of the campaign's results by day; None if the scenario gives no values."""
        return value_by_day(self.campaign)


class OrganizationPart(Part):
    """One organization with its `campaigns`."""

    def __init__(self, reading: RunView, block: OrganizationBlock) -> None:
        own = reading.of_organization(block.position)
        self.block = block
        self.campaigns = [*map(CampaignPart, own)]
        super().__init__(PartName("organization", block.name), reading, own, self.campaigns)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Use of lines while a window of any campaign was open."""
        # Not a sum over the campaigns: they share lines, and their windows overlap.
        lines = self.reading.lines[self.block.position]
        return Occupancy.of(lines.busy, lines.allowed, union(life.callable for life in self.lives))


class RunPart(Part):
    """The whole run with its `organizations`."""

    def __init__(self, reading: RunView) -> None:
        blocks = reading.world.organizations
        self.organizations = [OrganizationPart(reading, block) for block in blocks]
        campaigns = [*reading.campaigns.values()]
        super().__init__(PartName("run"), reading, campaigns, self.organizations)

    def every(self) -> Iterator[Part]:
        """Yield the run, then each organization followed by its campaigns."""
        yield self
        for owner in self.organizations:
            yield owner
            yield from owner.campaigns
