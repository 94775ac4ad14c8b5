"""Reading of a finished trace: calls, timelines, names and time use, by campaign.

Tables, figures, stories and pages share it. Each part is read on first use, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import ANSWERS, NOT_HAPPENED, SLOTS, Calls, rows_of
from dialsim.engine.rules import dial_gap
from dialsim.engine.trace import Trace
from dialsim.engine.world import CampaignBlock, World
from dialsim.errors import DialsimError
from dialsim.interface.payload import UNKNOWN
from dialsim.results.campaigns import (
    LOST,
    PERSON_STATES,
    CampaignTimeline,
    PersonState,
    Position,
    finish_of,
    listed,
    person_states,
    read_lives,
)
from dialsim.results.compliance import Breaches, find_breaches
from dialsim.results.counts import fixed_shares, line_shares
from dialsim.results.time_use import LineUse, StepFunction, TimeUse, counted, limit, paced, time_use
from dialsim.scenario.organization import Agent
from dialsim.webhooks.analysis import Analyses, Analyst, conversations, talked
from dialsim.webhooks.deliveries import CampaignStream, Stream
from dialsim.webhooks.messages import Verdicts, funnel_steps, horizon, verdicts, with_analyses


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
        calls = self.engine_calls
        return Analyst(self.run.world, self.block).first(conversations(calls, talked(calls)))

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
        costs = self.world.scenario.costs
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
        costs = self.world.scenario.costs
        shared = dict.fromkeys(self.campaigns, 0.0)
        # Shares of lines need the occupancy over time, which most scenarios can do without.
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
        # Rounded up in integers: the k-th mark is reached when the share is, not before.
        ranks = [-(-share * people // count) for share in range(1, count + 1)]
        return tuple(int(self.reached[rank - 1]) for rank in ranks if 0 < rank <= len(self.reached))


def _reached(campaign: CampaignResult) -> NDArray[np.int64]:
    calls, states, life = campaign.engine_calls, campaign.states, campaign.life
    before = (states == _DONE_BY_CALL[0]) & calls.past_reached
    # Whoever was reached before the run counts as reached at its start.
    start = np.full(np.count_nonzero(before), _start(life))
    return np.concatenate([start, calls.rows.at[rows_of(calls.rows.kind, ANSWERS)]])


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
