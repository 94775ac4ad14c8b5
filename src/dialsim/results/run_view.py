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


class RunView:
    """Data of a finished trace by campaign, in the order of the scenario."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.world = trace.world

    @cached_property
    def catalog(self) -> Catalog:
        """Names of the run."""
        return Catalog.of(self.world)

    @cached_property
    def lives(self) -> dict[Position, CampaignTimeline]:
        """Timeline of every campaign."""
        return read_lives(self.trace)

    @cached_property
    def calls(self) -> dict[Position, Calls]:
        """Calls of every campaign, with the changes by analyses (A4)."""
        return {
            position: with_analyses(calls, self.analyses[position], self._until)
            for position, calls in self.engine_calls.items()
        }

    @cached_property
    def analyses(self) -> dict[Position, Analyses]:
        """First analysis of every conversation, by campaign."""
        return {
            position: Analyst(self.world, self.block(position)).first(
                conversations(calls, talked(calls))
            )
            for position, calls in self.engine_calls.items()
        }

    @cached_property
    def streams(self) -> dict[Position, CampaignStream]:
        """Webhook messages and POSTs of every campaign."""
        return {
            position: CampaignStream(self.trace, calls, self.analyses[position])
            for position, calls in self.calls.items()
        }

    @cached_property
    def verdicts(self) -> dict[Position, Verdicts]:
        """State of every call's analysis at the end, by campaign."""
        return {
            position: verdicts(stream.analyses, stream.owed, len(stream.calls.call), self._until)
            for position, stream in self.streams.items()
        }

    @cached_property
    def stream(self) -> Stream:
        """POSTs of the whole run, in the order sent."""
        return Stream([*self.streams.values()])

    @cached_property
    def _until(self) -> int:
        return horizon(self.trace)

    @cached_property
    def engine_calls(self) -> dict[Position, Calls]:
        """Calls of every campaign without the changes by analyses, which do not affect calling."""
        return {position: Calls(self.trace.campaign(*position)) for position in self.lives}

    @cached_property
    def states(self) -> dict[Position, NDArray[np.int8]]:
        """State of every recipient by campaign, as indices into `PERSON_STATES`."""
        return {
            position: person_states(self.engine_calls[position], life, self.trace.end)
            for position, life in self.lives.items()
        }

    @cached_property
    def finishes(self) -> dict[Position, int | None]:
        """Instant by campaign at which calling had settled all people (`finish_of`)."""
        return {
            position: finish_of(life, self.engine_calls[position], self.states[position])
            for position, life in self.lives.items()
        }

    @property
    def unfinished(self) -> list[CampaignTimeline]:
        """Campaigns that were scheduled and have no finish."""
        return [
            life
            for position, life in self.lives.items()
            if life.request is not None and self.finishes[position] is None
        ]

    @cached_property
    def busy(self) -> dict[Position, StepFunction]:
        """Number of lines in use over time, by campaign."""
        return {position: counted([calls], SLOTS) for position, calls in self.engine_calls.items()}

    @cached_property
    def lines(self) -> list[LineUse]:
        """Use of lines over time, by organization."""
        return [self._lines(block.position) for block in self.world.organizations]

    @cached_property
    def time_uses(self) -> dict[Position, TimeUse]:
        """Time of every campaign, divided by cause."""
        return {
            position: time_use(
                self.engine_calls[position], life, self.states[position], self.lines[position[0]]
            )
            for position, life in self.lives.items()
        }

    @cached_property
    def breaches(self) -> tuple[Breaches, ...]:
        """Dials outside the scenario's compliance rules, by organization and rule."""
        return tuple(find_breaches(self))

    @cached_property
    def fixed_costs(self) -> dict[Position, float]:
        """Share of each campaign in the fixed cost of the run."""
        costs, positions = self.world.scenario.costs, [*self.lives]
        if costs is None:
            return dict.fromkeys(positions, 0.0)
        # Removed duplicates are not called, and bear no costs.
        people = [int(np.count_nonzero(listed(self.states[position]))) for position in positions]
        scheduled = [self.lives[position].request is not None for position in positions]
        shares = fixed_shares(costs, people, scheduled).tolist()
        return dict(zip(positions, shares, strict=True))

    @cached_property
    def line_costs(self) -> dict[Position, float]:
        """Share of each campaign in the cost of its organization's lines."""
        costs, positions = self.world.scenario.costs, [*self.lives]
        shared = dict.fromkeys(positions, 0.0)
        # Shares of lines need the occupancy over time, which most scenarios can do without.
        if costs is None or not costs.per_line_day:
            return shared
        for block in self.world.organizations:
            own = [position for position in positions if position[0] == block.position]
            of_lines = line_shares(
                costs,
                [self.engine_calls[position] for position in own],
                [self.busy[position] for position in own],
                self.lines[block.position].allowed,
                self.trace.end,
            )
            for position, share in zip(own, of_lines.tolist(), strict=True):
                shared[position] = share
        return shared

    def _lines(self, organization: int) -> LineUse:
        own = [position for position in self.lives if position[0] == organization]
        return LineUse(
            busy=StepFunction.total(self.busy[position] for position in own),
            allowed=limit(self.trace, organization),
            paced=paced(
                [self.engine_calls[position].rows for position in own],
                dial_gap(self.world.scenario.engine.calls_per_second),
            ),
            calls=tuple(self.engine_calls[position] for position in own),
        )

    @property
    def blocks(self) -> list[CampaignBlock]:
        """Every campaign of the world."""
        return [self.block(position) for position in self.lives]

    def block(self, position: Position) -> CampaignBlock:
        """Return a campaign of the world."""
        return self.world.organizations[position[0]].campaigns[position[1]]

    def find(self, campaign: str | None) -> CampaignTimeline:
        """Return the campaign of a name, `Organization/Name` if the name is ambiguous.

        None means the only campaign of the run. Raises DialsimError unless exactly one matches.
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


_DONE_BY_CALL = [PERSON_STATES.index(s) for s in (PersonState.REACHED, PersonState.EXHAUSTED)]


class ProgressCurve:
    """Sorted instants (ms) at which people of some campaigns were reached and settled.

    A reached person is settled at the end of the conversation, another one at the end of the last
    attempt or of the campaign. People reached before the scenario begins count from the campaign's
    start.
    """

    def __init__(self, reading: RunView, lives: Iterable[CampaignTimeline]) -> None:
        self._reading = reading
        self._lives = [*lives]

    @property
    def people(self) -> int:
        """Number of people on the lists."""
        states = (self._reading.states[life.position] for life in self._lives)
        return sum(int(np.count_nonzero(listed(each))) for each in states)

    @cached_property
    def reached(self) -> NDArray[np.int64]:
        """Instant of the first answered call of each reached recipient."""
        return _sorted([_reached(self._reading, life) for life in self._lives])

    @cached_property
    def done(self) -> NDArray[np.int64]:
        """Instant at which calling was done with each person, if ever."""
        return _sorted([_done(self._reading, life) for life in self._lives])

    def marks(self, count: int) -> tuple[int, ...]:
        """Return the instants at which 1/count, 2/count, … of the people had been reached, as
        far as reached.
        """
        people = self.people
        # Rounded up in integers: the k-th mark is reached when the share is, not before.
        ranks = [-(-share * people // count) for share in range(1, count + 1)]
        return tuple(int(self.reached[rank - 1]) for rank in ranks if 0 < rank <= len(self.reached))


def _reached(reading: RunView, life: CampaignTimeline) -> NDArray[np.int64]:
    calls, states = reading.engine_calls[life.position], reading.states[life.position]
    before = (states == _DONE_BY_CALL[0]) & calls.past_reached
    # Whoever was reached before the run counts as reached at its start.
    start = np.full(np.count_nonzero(before), _start(life))
    return np.concatenate([start, calls.rows.at[rows_of(calls.rows.kind, ANSWERS)]])


def _done(reading: RunView, life: CampaignTimeline) -> NDArray[np.int64]:
    calls, states = reading.engine_calls[life.position], reading.states[life.position]
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
