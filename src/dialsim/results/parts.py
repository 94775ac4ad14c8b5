"""Data behind the figures of a campaign, an organization or a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from dialsim.results.expected_talk import Expected
from dialsim.results.run_view import RunView
from dialsim.results.time_use import Occupancy, TimeUse
from dialsim.scenario.service import Costs


# Every property is computed on first use: experiments make many runs for a few figures of each
# (`figures_of`).
class PartName(NamedTuple):
    """Name of a part: the run, an organization, or a campaign."""

    scope: str
    organization: str | None = None
    campaign: str | None = None


class Part:
    """Part whose figures are computed; by default the sum of several parts."""

    def __init__(
        self,
        name: PartName,
        reading: RunView,
        lives: Sequence[CampaignTimeline],
        parts: Sequence[Part] = (),
    ) -> None:
        """`lives` are the timelines of the campaigns in all of `parts`."""
        self.name = name
        self.reading = reading
        self.lives = tuple(lives)
        self._parts = parts

    @property
    def costs(self) -> Costs | None:
        """The scenario's costs."""
        return self.reading.world.scenario.costs

    @property
    def is_scheduled(self) -> bool:
        """True if any of its campaigns was scheduled."""
        return any(life.request is not None for life in self.lives)

    @property
    def finish(self) -> float:
        """Last finish (ms); infinite if a campaign has none, -infinite if none was scheduled."""
        return max((part.finish for part in self._parts), default=-inf)

    @property
    def final_at(self) -> float:
        """Instant of the last final status (ms); infinite or -infinite like `finish`."""
        return max((part.final_at for part in self._parts), default=-inf)

    @cached_property
    def people(self) -> PeopleCount:
        """People by state."""
        return PeopleCount.total(part.people for part in self._parts)

    @cached_property
    def calls(self) -> CallCounts:
        """Counts of calls."""
        return CallCounts.total(part.calls for part in self._parts)

    @cached_property
    def charges(self) -> Charges:
        """Quantities that calls are charged for."""
        return Charges.total(part.charges for part in self._parts)

    @cached_property
    def expected(self) -> Expected:
        """Expected charges of the answered calls."""
        return Expected.total(part.expected for part in self._parts)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """Number of attempts 1, 2, … made in this run; empty for several campaigns together."""
        return np.empty(0, dtype=np.int64)

    @cached_property
    def waits(self) -> Durations:
        """Waits from a release to the dial or queue timeout that ended it."""
        return Durations.total(part.waits for part in self._parts)

    @cached_property
    def analyses(self) -> AnalysisCounts:
        """Counts of conversations by their analyses."""
        return AnalysisCounts.total(part.analyses for part in self._parts)

    @cached_property
    def deliveries(self) -> DeliveryCounts:
        """Counts of results by their delivery."""
        return DeliveryCounts.total(part.deliveries for part in self._parts)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Use of lines while a window was open."""
        return Occupancy.total(part.occupancy for part in self._parts)

    @cached_property
    def held_back(self) -> Bottleneck | None:
        """Cause that held back the campaign that finished last; None without campaigns."""
        scheduled = [part for part in self._parts if part.is_scheduled]
        # Several campaigns may finish at one instant, or never; then the last final status decides.
        last = max(
            scheduled or self._parts, key=lambda part: (part.finish, part.final_at), default=None
        )
        return last.held_back if last else None

    @property
    def line_cost(self) -> float:
        """Share of the cost of lines."""
        return sum(part.line_cost for part in self._parts)

    @property
    def fixed_cost(self) -> float:
        """Share of the fixed cost of the run."""
        return sum(part.fixed_cost for part in self._parts)

    @cached_property
    def value(self) -> float | None:
        """Value of the results; None if the scenario gives no values."""
        values = [part.value for part in self._parts if part.value is not None]
        return sum(values) if values else None


class CampaignPart(Part):
    """One campaign."""

    def __init__(self, reading: RunView, life: CampaignTimeline) -> None:
        super().__init__(PartName("campaign", life.organization, life.name), reading, [life])
        self.life = life
        self._position = life.position

    @property
    def finish(self) -> float:
        """Finish (ms), or infinite, or -infinite."""
        return self._last(self.reading.finishes[self._position])

    @property
    def final_at(self) -> float:
        """Instant of the final status (ms), or infinite, or -infinite."""
        return self._last(self.life.final_at)

    def _last(self, instant: int | None) -> float:
        """Return an instant so that the maximum of several campaigns is the last one."""
        if instant is not None:
            return instant
        return inf if self.is_scheduled else -inf

    @cached_property
    def people(self) -> PeopleCount:
        """The campaign's people by state."""
        return PeopleCount.of(self.reading.states[self._position])

    @cached_property
    def calls(self) -> CallCounts:
        """Counts of the campaign's calls."""
        return CallCounts.of(
            self.reading.engine_calls[self._position], self.reading.states[self._position]
        )

    @cached_property
    def charges(self) -> Charges:
        """Quantities that the campaign's calls are charged for."""
        return Charges.of(self.reading.engine_calls[self._position], self.costs)

    @cached_property
    def expected(self) -> Expected:
        """Expected charges of its answered calls."""
        calls = self.reading.engine_calls[self._position]
        return Expected.of(self.reading.world, calls, self.costs)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """Number of attempts 1, 2, … that were made in this run."""
        calls = self.reading.engine_calls[self._position]
        return np.bincount(calls.attempts_before.compress(calls.counted))

    @cached_property
    def waits(self) -> Durations:
        """The campaign's waits in the queue."""
        return Durations(queue_waits(self.reading.engine_calls[self._position])[1])

    @cached_property
    def analyses(self) -> AnalysisCounts:
        """Counts of the campaign's conversations by their analyses."""
        return AnalysisCounts.of(
            self.reading.streams[self._position],
            self.reading.verdicts[self._position],
            self.reading.block(self._position).agent,
        )

    @cached_property
    def deliveries(self) -> DeliveryCounts:
        """Counts of the campaign's results by their delivery."""
        return DeliveryCounts.of(self.reading.streams[self._position])

    @cached_property
    def occupancy(self) -> Occupancy:
        """Use of lines by the campaign's calls while its windows were open."""
        allowed = self.reading.lines[self._position[0]].allowed
        return Occupancy.of(self.reading.busy[self._position], allowed, self.life.callable)

    @cached_property
    def held_back(self) -> Bottleneck:
        """Cause with the largest share of the campaign's time."""
        use = self.reading.time_uses[self._position]
        exhausted = attempts_of_exhausted(
            self.reading.engine_calls[self._position], self.reading.states[self._position]
        )
        return held_back(self.life, use, self.people, exhausted, self._bounds(use))

    def _bounds(self, use: TimeUse) -> CampaignBounds:
        """Return the limits of the campaign while it ran."""
        life, own = self.life, self.reading.busy[self._position]
        lines = self.reading.lines[self._position[0]]
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
        return self.reading.line_costs[self._position]

    @property
    def fixed_cost(self) -> float:
        """The campaign's share of the fixed cost of the run."""
        return self.reading.fixed_costs[self._position]

    @cached_property
    def value(self) -> float | None:
        """Value of the campaign's results; None if the scenario gives no values."""
        worth = self.reading.block(self._position).value
        if worth is None:
            return None
        return value_of(worth, self.charges.answered, self.analyses)


class OrganizationPart(Part):
    """One organization with its `campaigns`."""

    def __init__(self, reading: RunView, block: OrganizationBlock) -> None:
        own = [life for life in reading.lives.values() if life.position[0] == block.position]
        self.block = block
        self.campaigns = [CampaignPart(reading, life) for life in own]
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
        lives = [life for part in self.organizations for life in part.lives]
        super().__init__(PartName("run"), reading, lives, self.organizations)

    def every(self) -> Iterator[Part]:
        """Yield the run, then each organization followed by its campaigns."""
        yield self
        for owner in self.organizations:
            yield owner
            yield from owner.campaigns
