"""Reading of a finished trace: calls, timelines, names, counts and time use, by campaign.

Tables, figures, stories, plots and pages share it. Everything is read on first use, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from math import inf
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import NOT_HAPPENED, SLOTS, Calls
from dialsim.engine.rules import dial_gap
from dialsim.engine.trace import Trace
from dialsim.engine.world import CampaignBlock, World
from dialsim.errors import DialsimError
from dialsim.interface.payload import UNKNOWN
from dialsim.results.bottleneck import Bottleneck, CampaignBounds, held_back
from dialsim.results.campaigns import (
    LOST,
    PERSON_STATES,
    CampaignTimeline,
    PeopleCount,
    PersonState,
    Position,
    Spans,
    finish_of,
    listed,
    open_time,
    person_states,
    read_lives,
)
from dialsim.results.compliance import Breaches, find_breaches
from dialsim.results.counts import (
    AnalysisCounts,
    CallCounts,
    Charges,
    Counts,
    DeliveryCounts,
    Durations,
    ExpectedTalk,
    fixed_shares,
    line_shares,
    value_by_day,
)
from dialsim.results.time_use import (
    LineUse,
    Occupancy,
    StepFunction,
    TimeUse,
    counted,
    limit,
    paced,
    time_use,
)
from dialsim.scenario.organization import Agent
from dialsim.scenario.service import Costs
from dialsim.webhooks.analysis import Analyses, Analyst, conversations, talked
from dialsim.webhooks.deliveries import CampaignStream, Stream
from dialsim.webhooks.messages import Verdicts, funnel_steps, horizon, verdicts, with_analyses

Counted = TypeVar("Counted", bound=Counts)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Distinct names of a world, in the order of their first occurrence in the scenario.

    Campaigns of two organizations with the same name share one entry.
    """

    organizations: tuple[str, ...]
    campaigns: tuple[str, ...]
    segments: tuple[str, ...]
    funnel_steps: tuple[str, ...]

    @classmethod
    def of(cls, world: World) -> Catalog:
        """Collect the names of organizations, campaigns, segments and funnel steps."""
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

    def campaign_code(self, block: CampaignBlock) -> int:
        """Return the code of a campaign's name."""
        return self.campaigns.index(block.name)

    def segment_codes(
        self, block: CampaignBlock, recipients: NDArray[np.integer]
    ) -> NDArray[np.int16]:
        """Return the codes of the segments of some recipients; -1 for none."""
        people = block.people
        if people.segment is None:
            return np.full(len(recipients), -1, dtype=np.int16)
        codes = [self.segments.index(segment) for segment in people.segments]
        own = people.segment[recipients]
        coded: NDArray[np.int16] = np.array([*codes, -1], dtype=np.int16)[own]
        return coded

    def funnel_codes(self, agent: Agent, verdicts: Verdicts) -> NDArray[np.int16]:
        """Return the code of the funnel's value in each call's newest result; -1 for none."""
        steps = _funnel(agent)
        codes = [self.funnel_steps.index(step) for step in (UNKNOWN, *steps)]
        return np.array([*codes, -1], dtype=np.int16)[funnel_steps(verdicts, bool(steps))]


def _funnel(agent: Agent) -> tuple[str, ...]:
    """Return the steps of an agent's funnel, in order; empty without a funnel."""
    funnel = agent.analysis.funnel if agent.analysis is not None else None
    return tuple(step.step for step in funnel or ())


class CampaignResult:
    """One campaign of a finished trace."""

    def __init__(self, run: RunView, life: CampaignTimeline) -> None:
        self.run = run
        self.life = life
        self.part = run.trace.campaign(*life.position)
        self._counts: dict[type[Counts], Counts] = {}

    @property
    def block(self) -> CampaignBlock:
        """The campaign as uploaded."""
        return self.part.block

    @cached_property
    def engine_calls(self) -> Calls:
        """Calls without the changes by analyses, which do not affect calling."""
        return Calls(self.part)

    @cached_property
    def calls(self) -> Calls:
        """Calls with the changes by analyses (A4)."""
        return with_analyses(self.engine_calls, self.analyses, horizon(self.run.trace))

    @cached_property
    def analyses(self) -> Analyses:
        """First analysis of every conversation."""
        talks = conversations(self.engine_calls, self.talked)
        return Analyst(self.run.world, self.block).first(talks)

    @cached_property
    def talked(self) -> NDArray[np.intp]:
        """Calls that were answered and have ended."""
        return talked(self.engine_calls)

    @cached_property
    def stream(self) -> CampaignStream:
        """Webhook messages and POSTs."""
        return CampaignStream(self.run.trace, self.calls, self.analyses)

    @cached_property
    def verdicts(self) -> Verdicts:
        """State of every call's analysis at the end."""
        analyses, owed = self.stream.analyses, self.stream.owed
        return verdicts(analyses, owed, len(self.calls), horizon(self.run.trace))

    @cached_property
    def states(self) -> NDArray[np.int8]:
        """State of every recipient, as an index into `PERSON_STATES`."""
        return person_states(self.engine_calls, self.life, self.run.trace.end)

    @cached_property
    def finish(self) -> int | None:
        """Instant at which calling had settled all people (`finish_of`)."""
        return finish_of(self.life, self.engine_calls, self.states)

    @cached_property
    def busy(self) -> StepFunction:
        """Number of lines in use over time."""
        return counted([self.engine_calls], SLOTS)

    @property
    def lines(self) -> LineUse:
        """Use of the organization's lines over time."""
        return self.run.lines[self.block.organization]

    @cached_property
    def time_use(self) -> TimeUse:
        """The campaign's time, divided by cause."""
        return time_use(self.engine_calls, self.life, self.states, self.lines)

    @cached_property
    def held_back(self) -> Bottleneck:
        """Cause with the largest share of the campaign's time."""
        bounds = self._bounds(self.time_use)
        return held_back(self.life, self.time_use, self.people, bounds)

    def _bounds(self, use: TimeUse) -> CampaignBounds:
        """Return the limits of the campaign while it ran."""
        life, allowed = self.life, self.lines.allowed
        start = life.end if life.start is None else min(life.start, life.end)
        # Changes of the limit while the campaign ran; the limit at its start is added below.
        inside = allowed.at[(allowed.at > start) & (allowed.at < life.end)]
        limits = allowed(np.append(inside, start))
        of_all = self.lines.busy.integral(use.line_spans)
        return CampaignBounds(
            least_limit=int(limits.min()),
            most_limit=int(limits.max()),
            last_limit=int(allowed(np.array([life.end]))[0]),
            mostly_others=2 * self.busy.integral(use.line_spans) < of_all,
            engine=self.run.world.scenario.engine,
        )

    # Counts are made on first use: experiments make many runs and need few figures of each.

    @cached_property
    def people(self) -> PeopleCount:
        """Number of people by state."""
        return PeopleCount.of(self.states)

    def counted(self, kind: type[Counted]) -> Counted:
        """Return counts of a kind."""
        if kind not in self._counts:
            self._counts[kind] = kind.of(self)
        return cast("Counted", self._counts[kind])

    @cached_property
    def value_by_day(self) -> NDArray[np.float64] | None:
        """Value of the results by day; None if the scenario gives no values."""
        return value_by_day(self)


class RunView:
    """Data of a finished trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.world = trace.world

    @cached_property
    def catalog(self) -> Catalog:
        """Names of the run."""
        return Catalog.of(self.world)

    @cached_property
    def campaigns(self) -> dict[Position, CampaignResult]:
        """Campaigns by position, in the order of the scenario."""
        lives = read_lives(self.trace)
        return {position: CampaignResult(self, life) for position, life in lives.items()}

    @property
    def lives(self) -> list[CampaignTimeline]:
        """Timeline of every campaign."""
        return [campaign.life for campaign in self.campaigns.values()]

    @property
    def costs(self) -> Costs | None:
        """The scenario's costs."""
        return self.world.scenario.costs

    @cached_property
    def parts(self) -> list[RunPart]:
        """The run, then each organization followed by its campaigns."""
        made = [RunPart(self, PartName("run"), [*self.campaigns.values()])]
        for block in self.world.organizations:
            own = self.of_organization(block.position)
            made.append(RunPart(self, PartName("organization", block.name), own))
            made += [RunPart(self, PartName("campaign", block.name, each.life.name), [each])
                     for each in own]  # fmt: skip
        return made

    def of_organization(self, organization: int) -> list[CampaignResult]:
        """Return the campaigns of an organization, given by position."""
        return [own for own in self.campaigns.values() if own.block.organization == organization]

    @cached_property
    def stream(self) -> Stream:
        """POSTs of the whole run, in the order sent."""
        return Stream([campaign.stream for campaign in self.campaigns.values()])

    @property
    def unfinished(self) -> list[CampaignTimeline]:
        """Campaigns that were scheduled and have no finish."""
        return [
            campaign.life
            for campaign in self.campaigns.values()
            if campaign.life.request is not None and campaign.finish is None
        ]

    @cached_property
    def lines(self) -> list[LineUse]:
        """Use of lines over time, by organization."""
        return [self._lines(block.position) for block in self.world.organizations]

    @cached_property
    def breaches(self) -> tuple[Breaches, ...]:
        """Dials outside the scenario's compliance rules, by organization and rule."""
        return tuple(find_breaches(self))

    @cached_property
    def fixed_costs(self) -> dict[Position, float]:
        """Share of each campaign in the fixed cost of the run."""
        costs = self.costs
        if costs is None:
            return dict.fromkeys(self.campaigns, 0.0)
        # Removed duplicates are not called, and bear no costs.
        own = self.campaigns.values()
        people = [int(np.count_nonzero(listed(campaign.states))) for campaign in own]
        scheduled = [campaign.life.request is not None for campaign in own]
        shares = fixed_shares(costs, people, scheduled).tolist()
        return dict(zip(self.campaigns, shares, strict=True))

    @cached_property
    def line_costs(self) -> dict[Position, float]:
        """Share of each campaign in the cost of its organization's lines."""
        costs = self.costs
        shared = dict.fromkeys(self.campaigns, 0.0)
        # Skipped if lines cost nothing: the shares need the use of lines over time, which is slow.
        if costs is None or not costs.per_line_day:
            return shared
        for block in self.world.organizations:
            own = self.of_organization(block.position)
            of_lines = line_shares(
                costs,
                [campaign.engine_calls for campaign in own],
                [campaign.busy for campaign in own],
                self.lines[block.position].allowed,
                self.trace.end,
            )
            for campaign, share in zip(own, of_lines.tolist(), strict=True):
                shared[campaign.life.position] = share
        return shared

    def _lines(self, organization: int) -> LineUse:
        own = self.of_organization(organization)
        return LineUse(
            busy=StepFunction.total(campaign.busy for campaign in own),
            allowed=limit(self.trace, organization),
            paced=paced(
                [campaign.engine_calls.rows for campaign in own],
                dial_gap(self.world.scenario.engine.calls_per_second),
            ),
            calls=tuple(campaign.engine_calls for campaign in own),
        )

    @property
    def blocks(self) -> list[CampaignBlock]:
        """Every campaign of the world."""
        return [campaign.block for campaign in self.campaigns.values()]

    def find(self, campaign: str | None) -> CampaignResult:
        """Return the campaign of a name, `Organization/Name` if the name is ambiguous.

        None means the only campaign of the run. Raises DialsimError unless exactly one matches.
        """
        known = [life.full_name for life in self.lives]
        found = [
            own
            for own in self.campaigns.values()
            if campaign is None or campaign in (own.life.name, own.life.full_name)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise DialsimError(f"there is no campaign {campaign}; there are: {', '.join(known)}")
        which = "say which campaign" if campaign is None else f"campaign {campaign} is ambiguous"
        raise DialsimError(f"{which}: {', '.join(own.life.full_name for own in found)}")

    def part(self, campaign: str | None = None, organization: str | None = None) -> RunPart:
        """Return a campaign or an organization by name, or the whole run.

        Raises DialsimError for an unknown name.
        """
        if campaign is not None:
            life = self.find(campaign).life
            name = PartName("campaign", life.organization, life.name)
        elif organization is not None:
            name = PartName("organization", organization)
        else:
            name = PartName("run")
        found = next((part for part in self.parts if part.name == name), None)
        if found is None:
            known = ", ".join(block.name for block in self.world.organizations)
            raise DialsimError(f"there is no organization {organization}; there are: {known}")
        return found


class PartName(NamedTuple):
    """Name of a part: the run, an organization, or a campaign."""

    scope: str
    organization: str | None = None
    campaign: str | None = None


class RunPart:
    """Part of a run: a campaign, the campaigns of an organization, or all of them.

    Figures and plots are made from it. Its counts are the sums of those of its campaigns.
    """

    def __init__(
        self, reading: RunView, name: PartName, campaigns: Sequence[CampaignResult]
    ) -> None:
        self.reading = reading
        self.name = name
        self.campaigns = campaigns

    def title(self, text: str) -> str:
        """Return a title, with the name of the campaign or organization if any."""
        name = self.name.campaign or self.name.organization
        return f"{text}: {name}" if name else text

    @property
    def lives(self) -> list[CampaignTimeline]:
        """Timeline of every campaign."""
        return [own.life for own in self.campaigns]

    @property
    def costs(self) -> Costs | None:
        """The scenario's costs."""
        return self.reading.costs

    @property
    def is_scheduled(self) -> bool:
        """True if any campaign was scheduled."""
        return any(life.request is not None for life in self.lives)

    @property
    def start(self) -> int:
        """First startAt; the start of the clock if nothing was scheduled."""
        starts = [life.start for life in self.lives if life.start is not None]
        return min(starts, default=self.reading.world.scenario.clock.start)

    @property
    def end(self) -> int:
        """Last finish, or the end of the run for a campaign that is not final."""
        ends = [life.end for life in self.lives if life.start is not None]
        return max([self.start + 1000, *ends])

    @property
    def finish(self) -> float:
        """Last finish (ms); infinite if a campaign has none, -infinite if none was scheduled."""
        return max((_last(own, own.finish) for own in self.campaigns), default=-inf)

    @property
    def final_at(self) -> float:
        """Instant of the last final status (ms); infinite or -infinite like `finish`."""
        return max((_last(own, own.life.final_at) for own in self.campaigns), default=-inf)

    @cached_property
    def people(self) -> PeopleCount:
        """Number of people by state."""
        return PeopleCount.total(own.people for own in self.campaigns)

    @cached_property
    def calls(self) -> CallCounts:
        """Counts of calls by their ends."""
        return self._sum(CallCounts)

    @cached_property
    def charges(self) -> Charges:
        """Quantities that calls are charged for."""
        return self._sum(Charges)

    @cached_property
    def expected(self) -> ExpectedTalk:
        """Expected talk time and billing increments of the answered calls."""
        return self._sum(ExpectedTalk)

    @cached_property
    def waits(self) -> Durations:
        """Waits from a release to the dial or queue timeout that ended it."""
        return self._sum(Durations)

    @cached_property
    def analyses(self) -> AnalysisCounts:
        """Counts of conversations by the state of their analysis."""
        return self._sum(AnalysisCounts)

    @cached_property
    def deliveries(self) -> DeliveryCounts:
        """Counts of results by the outcome of their delivery."""
        return self._sum(DeliveryCounts)

    def _sum(self, kind: type[Counted]) -> Counted:
        return kind.total(own.counted(kind) for own in self.campaigns)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """Number of calls made as attempt 1, 2, … in this run; empty for several campaigns."""
        if self.name.scope != "campaign":
            return np.empty(0, dtype=np.int64)
        calls = self.campaigns[0].engine_calls
        return np.bincount(calls.attempts_before.compress(calls.counted))

    @property
    def organizations(self) -> list[int]:
        """Positions of the organizations of the campaigns."""
        return [*dict.fromkeys(own.block.organization for own in self.campaigns)]

    @property
    def open(self) -> Spans:
        """Time in which at least one of the campaigns could call; closed days are left out."""
        return open_time(self.lives)

    def lines(self) -> LineUse:
        """Return the use of lines of all its organizations together."""
        uses = [self.reading.lines[owner] for owner in self.organizations]
        return LineUse(
            busy=StepFunction.total(use.busy for use in uses),
            allowed=StepFunction.total(use.allowed for use in uses),
            paced=StepFunction.total(use.paced for use in uses),
            calls=tuple(calls for use in uses for calls in use.calls),
        )

    @cached_property
    def occupancy(self) -> Occupancy:
        """Use of lines while a window was open."""
        if self.name.scope == "campaign":
            (own,) = self.campaigns
            return Occupancy.of(own.busy, own.lines.allowed, own.life.callable)
        # Not a sum over campaigns, which share lines and whose windows overlap.
        parts = []
        for owner in self.organizations:
            use = self.reading.lines[owner]
            lives = (own.life for own in self.campaigns if own.block.organization == owner)
            parts.append(Occupancy.of(use.busy, use.allowed, open_time(lives)))
        return Occupancy.total(parts)

    @property
    def held_back(self) -> Bottleneck | None:
        """Cause that held back the campaign that finished last; None without campaigns."""
        scheduled = [own for own in self.campaigns if own.life.request is not None]
        # Several campaigns may finish at one instant, or never; then the last final status decides.
        last = max(
            scheduled or self.campaigns,
            key=lambda own: (_last(own, own.finish), _last(own, own.life.final_at)),
            default=None,
        )
        return last.held_back if last else None

    @property
    def line_cost(self) -> float:
        """Share of the cost of lines."""
        return sum(self.reading.line_costs[life.position] for life in self.lives)

    @property
    def fixed_cost(self) -> float:
        """Share of the fixed cost of the run."""
        return sum(self.reading.fixed_costs[life.position] for life in self.lives)

    @cached_property
    def value_by_day(self) -> NDArray[np.float64] | None:
        """Value of the results of each Thai date from the first day of calling on; None if the
        scenario gives no values.
        """
        known = [own.value_by_day for own in self.campaigns if own.value_by_day is not None]
        days = zip_longest(*known, fillvalue=0.0)
        return np.array([*map(sum, days)], dtype=np.float64) if known else None

    @property
    def value(self) -> float | None:
        """Value of the results; None if the scenario gives no values."""
        return None if self.value_by_day is None else float(self.value_by_day.sum())


def _last(own: CampaignResult, instant: int | None) -> float:
    """Return the instant as a number: infinite for a scheduled campaign without one, -infinite for
    an unscheduled campaign.
    """
    if instant is not None:
        return instant
    return -inf if own.life.request is None else inf


_DONE_BY_CALL = [PERSON_STATES.index(s) for s in (PersonState.REACHED, PersonState.EXHAUSTED)]


class ProgressCurve:
    """Sorted instants (ms) at which people of some campaigns were reached and settled.

    A reached person is settled at the end of the conversation, another one at the end of the last
    attempt or of the campaign. People reached before the scenario begins count from the campaign's
    start.
    """

    def __init__(self, campaigns: Iterable[CampaignResult]) -> None:
        self._campaigns = [*campaigns]

    @property
    def people(self) -> int:
        """Number of people on the lists."""
        return sum(int(np.count_nonzero(listed(own.states))) for own in self._campaigns)

    @cached_property
    def reached(self) -> NDArray[np.int64]:
        """Instant of the first answered call of each reached recipient."""
        return _sorted([*map(_reached, self._campaigns)])

    @cached_property
    def done(self) -> NDArray[np.int64]:
        """Instant at which calling was done with each person, if ever."""
        return _sorted([*map(_done, self._campaigns)])

    def marks(self, count: int) -> tuple[int, ...]:
        """Return the instants at which 1/count, 2/count, … of the people had been reached, as
        far as reached.
        """
        people = self.people
        # Ranks are rounded up, so that no mark comes before its share of people is reached.
        ranks = [-(-share * people // count) for share in range(1, count + 1)]
        return tuple(int(self.reached[rank - 1]) for rank in ranks if 0 < rank <= len(self.reached))


def _reached(campaign: CampaignResult) -> NDArray[np.int64]:
    calls, states, life = campaign.engine_calls, campaign.states, campaign.life
    before = (states == _DONE_BY_CALL[0]) & calls.past_reached
    # Whoever was reached before the run counts as reached at its start.
    start = np.full(np.count_nonzero(before), _start(life))
    return np.concatenate([start, calls.rows.at.take(calls.answer_rows)])


def _done(campaign: CampaignResult) -> NDArray[np.int64]:
    calls, states, life = campaign.engine_calls, campaign.states, campaign.life
    by_call = np.isin(states, _DONE_BY_CALL)
    # A person without a call in this run was settled by the history.
    ended = calls.of_newest(calls.ended_at, _start(life))[by_call]
    over = np.count_nonzero(np.isin(states, LOST))
    return np.concatenate([ended[ended != NOT_HAPPENED], np.full(over, life.end)])


def _start(life: CampaignTimeline) -> int:
    return life.end if life.start is None else life.start


def _sorted(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    # A stable sort merges columns that are already sorted, like those of a log, in a tenth of the
    # time.
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]), kind="stable")
