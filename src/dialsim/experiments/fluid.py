"""First estimate of a run by a fluid approximation: expected figures within milliseconds.

People are not followed one by one. People whose n-th call is due in the same minutes form a cohort,
divided into classes with equal probabilities to answer. A cohort holds lines for the mean time of
its calls, is reached in expectation, and comes back after the retry interval. After idle time,
lines start more calls than at their mean rate; the surplus takes each line the mean residual time
of a call (Cox 1962, "Renewal Theory", section 4.2). Such models are accurate where many calls are
made (Whitt 2006, "Fluid models for multiserver queues with abandonments", Operations Research 54).

An estimate is the first answer before any run, and the order in which settings are simulated. No
verdict depends on it. `benchmarks/fluid.py` measures its error, which docs/experiments.md states.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import ceil, exp, inf, log, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import durations
from dialsim.engine.own_chance import Crowd, Odds
from dialsim.engine.rules import DEAD, NO_ANSWER, calls_again, dial_gap, retry_due, with_odds
from dialsim.engine.world import World
from dialsim.experiments.known_bounds import campaigns_at, known_bounds_of
from dialsim.experiments.run_figures import RunFigures, ScopeFigures
from dialsim.interface.instants import DAY, MINUTE, THAI_OFFSET, minute_text
from dialsim.results.counts import cost_of, expected_units
from dialsim.results.figures import REACH

if TYPE_CHECKING:
    from dialsim.engine.world import CampaignBlock
    from dialsim.experiments.goal import Goal
    from dialsim.experiments.known_bounds import CampaignCalendar
    from dialsim.experiments.named_figures import FigureName
    from dialsim.scenario.distribution import Distribution
    from dialsim.scenario.organization import Organization
    from dialsim.scenario.scenario import Scenario

_logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]

_NODES = 12  # classes of reachable people, by their own chance to answer
_GRID = (np.arange(200) + 0.5) / 200  # levels of the quantiles that represent durations
_STEPS = 300  # approximate number of steps of a campaign
_LONGEST = 10 * MINUTE  # longest step
_DAYS = 400  # days after which a campaign counts as never done
_TAIL = DAY // 12  # the call that ends last is dialled at most this long before the last dial
_HALF = log(2)  # expected number of events for which half of all runs have none
_FEWEST = 300  # people below which chance matters more than the mean, so nothing is estimated
USUAL_ERROR = "usually within 4 %, and on the right day"
"""Error of cost, people reached and finish in 19 of 20 random scenarios (benchmarks/fluid.py)."""
_MODELLED = ("setConcurrency", "pause", "resume", "reanalyze", "setWebhookUrl")


def first_estimate(scenario: Scenario) -> RunFigures | None:
    """Return the expected figures of a scenario's runs; None where the approximation has no answer.

    The approximation covers no priorities, shares or deadlines of campaigns, fatigue of caller IDs,
    scripts, histories, duplicates, releases at intervals, or other actions than pauses and lines.
    """
    world = World(scenario)
    if _is_small(world) or _left_out(world):
        return None
    calendars = known_bounds_of(scenario).calendars
    parts: list[ScopeFigures] = []
    everything: list[_Flow] = []
    for owner in world.organizations:
        blocks = {block.name: block for block in owner.campaigns}
        flows = [
            _Flow(world, blocks[calendar.campaign], calendar)
            for calendar in calendars
            if calendar.organization == owner.name
        ]
        _dial(scenario, owner.settings, flows)
        parts += [_figures(scenario, "campaign", (owner.name, f.block.name), [f]) for f in flows]
        parts.append(_figures(scenario, "organization", (owner.name, None), flows))
        everything += flows
    parts.append(_figures(scenario, "run", (None, None), everything))
    asked = frozenset(parts[-1].values)
    return RunFigures(0, min((f.begin for f in everything), default=None), tuple(parts), (), asked)


def estimate_text(scenario: Scenario) -> str | None:
    """Return the first estimate as a sentence, or the sentence of `no_estimate`."""
    estimate = first_estimate(scenario)
    if estimate is None or estimate.start is None:
        return no_estimate(scenario)
    values = estimate.scopes[-1].values
    done = "not done" if values["finish"] == inf else f"done {minute_text(int(values['finish']))}"
    reached = f"{values['people_reached']:,.0f} of {values['people']:,} people reached"
    cost = f", cost {values['cost']:,.0f} {scenario.costs.currency}" if scenario.costs else ""
    return f"First estimate, before any run: {done} Thai time, {reached}{cost} ({USUAL_ERROR})."


def no_estimate(scenario: Scenario, figures: str = "") -> str | None:
    """Return a sentence on why there is no first estimate; None if there is nothing to explain.

    The reason is a part of the scenario that the approximation leaves out, or else `figures`. Few
    people need no estimate, since their runs are fast.
    """
    world = World(scenario)
    reasons = [] if _is_small(world) else [*_left_out(world), figures]
    return (
        f"No first estimate: the approximation leaves out {reasons[0]}." if any(reasons) else None
    )


def sought_text(sought: str, found: str) -> str:
    """Log and return the first estimate of a search; `sought` is `enough` or `best`."""
    text = f"First estimate, before any run, of what is {sought}: {found} ({USUAL_ERROR})."
    _logger.info(text)
    return text


def has_figures(estimate: RunFigures, figures: Iterable[FigureName]) -> bool:
    """Return True if an estimate has all of the given figures."""
    return estimate.asked is not None and {figure.name for figure in figures} <= estimate.asked


def seems_met(goal: Goal, estimate: RunFigures | None) -> bool | None:
    """Return True if a goal seems to be met; None where its figures are not estimated."""
    figures = [figure for clause in goal.clauses for figure in clause.figure.figures]
    if estimate is None or not has_figures(estimate, figures):
        return None
    # A clause such as `prob(cost > 5000) <= 5 %` is met by an estimate beyond the bound.
    return all(
        clause.bound.holds(float(clause.values([estimate])[0])) is clause.wanted.startswith(">")
        for clause in goal.clauses
    )


def _is_small(world: World) -> bool:
    return sum(block.people.count for o in world.organizations for block in o.campaigns) < _FEWEST


def _left_out(world: World) -> list[str]:
    """Return the parts of a scenario that the approximation leaves out."""
    scenario, engine = world.scenario, world.scenario.engine
    parts = [
        ("clock.end", scenario.clock.end is not None),
        ("engine.queueLimit", engine.queue_limit is not None),
        ("engine.releaseInterval", engine.release_interval > 0),
    ]
    for owner in scenario.organizations:
        paced = owner.max_concurrent_calls * dial_gap(engine.calls_per_second)
        campaigns, wait = owner.campaigns, engine.queue_timeout
        parts += [
            ("organizations that may not call", not owner.calling_allowed),
            ("queue timeouts", wait < 10 * MINUTE or wait <= paced),
            (f"sharing {engine.sharing}", len(campaigns) > 1 and engine.sharing != "roundRobin"),
            ("atMost and reserved", any(campaign.counts_lines for campaign in campaigns)),
            *((each.action, each.action not in _MODELLED) for each in owner.timeline),
        ]
    for block in (block for owner in world.organizations for block in owner.campaigns):
        request = block.schedule
        odds = scenario.behaviours[block.agent.behaviour].answered_odds
        parts += [
            ("scripts", block.people.script is not None),
            ("histories", bool(block.people.history)),
            ("fatigue of caller IDs", odds.by_caller_id_use is not None),
            ("removeDuplicates", request is not None and request.remove_duplicates),
        ]
    return [part for part, is_there in parts if is_there]


class _Cohort(NamedTuple):
    """People, by class, who are to be called for the `attempt`-th time from `due` (ms) on."""

    due: float
    attempt: int
    people: Floats


class _Rates(NamedTuple):
    """Share of calls answered, and mean time of a call (ms), by class."""

    answered: Floats
    hold: Floats


class _Flow:
    """Campaign whose people are called in cohorts; `lines` is its share of the cost of lines."""

    def __init__(self, world: World, block: CampaignBlock, calendar: CampaignCalendar) -> None:
        assert block.schedule is not None
        self.block, self.calendar, self.request = block, calendar, block.schedule
        self.begin = max(self.request.start_date_time, block.scheduled_at or block.created_at)
        behaviour, people = world.scenario.behaviours[block.agent.behaviour], block.people
        self.talk = behaviour.talk_time
        setup = _mean(behaviour.setup_time)
        answered, *others = [_mean(time) for _, time in behaviour.ring_time]
        crowd = Crowd.of(behaviour)
        shares = behaviour.outcomes.others(crowd.dead)
        unanswered = np.average(others, weights=shares) if sum(shares) else others[0]
        self.failed, self.unanswered = setup + others[-1], setup + float(unanswered)
        self.ringing = setup + answered
        self._odds = Odds(behaviour.answered_odds, people, world.holidays)
        self._rates: dict[float, _Rates] = {}
        sizes = np.ones(1) * people.count
        if self._odds.segment is not None:
            segments = len(self._odds.by_segment)
            sizes = np.bincount(self._odds.segment % segments, minlength=segments).astype(float)
        self._chances, weights = _classes(crowd)
        self._fresh = _Cohort(self.begin, 1, np.outer(sizes, weights).ravel())
        self._retries: deque[_Cohort] = deque()
        self._retries_first = world.scenario.engine.order == "retriesFirst"
        self.left, self.worked, self.lines = float(people.count), 0.0, 0.0
        self.reached: defaultdict[int, float] = defaultdict(float)  # by attempt
        self.dials: list[tuple[float, float, float]] = []

    @property
    def answered(self) -> float:
        """Number of people reached."""
        return sum(self.reached.values())

    def next_cohort(self, until: float) -> _Cohort | None:
        """Return the cohort to call next among those due before `until`; None if there is none."""
        fresh = [self._fresh] if self._fresh.people.any() and self._fresh.due < until else []
        due = [self._retries[0]] if self._retries and self._retries[0].due < until else []
        return next(iter(due + fresh if self._retries_first else fresh + due), None)

    def hold(self, cohort: _Cohort, at: float) -> float:
        """Return the mean time of a call of a cohort at an instant (ms)."""
        return float(self._of(cohort.attempt, at).hold @ cohort.people / cohort.people.sum())

    def call(self, cohort: _Cohort, most: float, at: float) -> tuple[float, float]:
        """Call at most `most` people of the next cohort; return the number of calls and their line
        time.
        """
        count = float(cohort.people.sum())
        share = min(1.0, most / count)
        rest = cohort._replace(people=(1.0 - share) * cohort.people)
        if cohort is self._fresh:
            self._fresh = rest
        else:
            self._retries.popleft()
            if share < 1.0:
                self._retries.appendleft(rest)
        rates, people = self._of(cohort.attempt, at), share * cohort.people
        reached = rates.answered * people
        again, answered = people - reached, float(reached.sum())
        self.reached[cohort.attempt] += answered
        self.left -= answered
        # A cohort in which all people answer leaves none for another attempt.
        if again.any() and calls_again(NO_ANSWER, cohort.attempt, self.request.max_attempts):
            due: float = retry_due(
                round(at + self.unanswered), self.request.retry_interval, NO_ANSWER
            )
            last = self._retries[-1] if self._retries else None
            if last and last.attempt == cohort.attempt + 1 and due < last.due + MINUTE:
                due, again = last.due, again + self._retries.pop().people
            self._retries.append(_Cohort(due, cohort.attempt + 1, again))
        else:
            self.left -= float(again.sum())
        calls, worked = share * count, float(rates.hold @ people)
        self.worked += worked
        self.dials.append((at, answered, calls - answered))
        return calls, worked

    def _of(self, attempt: int, at: float) -> _Rates:
        factor = self._odds.at(int(at)) * self._odds.of_attempt(attempt)
        if factor not in self._rates:
            answered = np.array([
                0.0 if chance == DEAD else with_odds(chance, factor * of_segment)
                for of_segment in self._odds.by_segment.tolist()
                for chance in self._chances
            ])  # fmt: skip
            vain = np.where(np.array(self._chances) == DEAD, self.failed, self.unanswered)
            vain = np.tile(vain, len(self._odds.by_segment))
            talked = self.ringing + _mean(self.talk)
            self._rates[factor] = _Rates(answered, answered * talked + (1 - answered) * vain)
        return self._rates[factor]

    @property
    def residual(self) -> float:
        """Mean residual time of a call under way (ms)."""
        rates, people = self._of(1, self.begin), self._fresh.people
        answered = float(rates.answered @ people / people.sum())
        talked = self.ringing + durations(self.talk, _GRID)
        squares = answered * (talked**2).mean() + (1 - answered) * self.unanswered**2
        return float(squares / (2 * self.hold(self._fresh, self.begin)))

    @cached_property
    def done_at(self) -> float:
        """Median instant (ms) of the end of the last call."""
        if self.left > _HALF:
            return inf
        if not self.dials:
            return self.begin
        at, answered, others = np.array(self.dials).T
        late = at > min(at[-1] - _TAIL, at[max(0, len(at) - 10)])
        at, answered, others = at[late], answered[late], others[late]
        talked = self.ringing + durations(self.talk, _GRID)
        ends = np.concatenate([(at[:, None] + talked).ravel(), at + self.unanswered])
        calls = np.concatenate([np.repeat(answered / len(_GRID), len(_GRID)), others])
        order = np.argsort(-ends)
        later = int(np.searchsorted(np.cumsum(calls[order]), _HALF))
        return float(ends[order][min(later, len(order) - 1)])


def _mean(distribution: Distribution) -> float:
    return float(expected_units(distribution, 1)[0])


def _classes(crowd: Crowd) -> tuple[list[float], list[float]]:
    """Return own chances to answer, `DEAD` for dead numbers, and the shares of people with them."""
    chances, weights = [crowd.mean], [1.0]
    if crowd.concentration is not None:
        from scipy.special import roots_jacobi

        # Gauss's nodes of the Beta distribution: exact for polynomials of the chance
        a, b = crowd.beta
        nodes, parts = roots_jacobi(_NODES, b - 1, a - 1)
        chances, weights = ((1 + nodes) / 2).tolist(), (parts / parts.sum()).tolist()
    never = max(0.0, 1.0 - crowd.reachable - crowd.dead)
    return [*chances, 0.0, DEAD], [*(crowd.reachable * w for w in weights), never, crowd.dead]


def _dial(scenario: Scenario, owner: Organization, flows: Sequence[_Flow]) -> None:
    """Make the calls of an organization's campaigns, step by step."""
    flows = [flow for flow in flows if flow.left]
    if not flows:
        return
    gap = dial_gap(scenario.engine.calls_per_second)
    residual = max(flow.residual for flow in flows)
    most_lines: dict[int, int] = {}
    calls_of_day: defaultdict[int, float] = defaultdict(float)
    held, now = 0.0, 0.0  # line time of calls under way at an instant
    for begin, end, lines, open_flows in _steps(owner, flows):
        held = max(0.0, held - lines * (begin - now))
        room, pace = lines * (end - begin + residual) - held, (end - begin) / gap if gap else inf
        day = int(begin + THAI_OFFSET) // DAY
        while room > 1.0 and pace > 1e-6:
            ready = [(f, c) for f in open_flows if (c := f.next_cohort(end)) is not None]
            if not ready:
                break
            # Campaigns take turns, so each makes as many calls as the others.
            free = begin + max(0.0, held / lines - residual)
            holds = sum(flow.hold(cohort, begin) for flow, cohort in ready)
            most = min(pace / len(ready), room / holds)
            for flow, cohort in ready:
                calls, worked = flow.call(cohort, most, max(free, cohort.due, begin))
                room, held, pace = room - worked, held + worked, pace - calls
                calls_of_day[day] += calls
                most_lines[day] = max(most_lines.get(day, 0), lines)
        held, now = max(0.0, held - lines * (end - begin)), end
    costs, worked = scenario.costs, sum(flow.worked for flow in flows)
    price = sum(most_lines[day] * (1 - exp(-calls)) for day, calls in calls_of_day.items())
    for flow in flows:
        flow.lines = costs.per_line_day * price * flow.worked / worked if costs and worked else 0.0


def _steps(
    owner: Organization, flows: Sequence[_Flow]
) -> Iterator[tuple[float, float, int, list[_Flow]]]:
    """Yield begin and end of each step (ms), lines, and the campaigns that may call in it."""
    first = min(flow.begin for flow in flows)
    limits = owner.limit_changes
    spans = []
    for flow in flows:
        last = flow.request.end_date_time or first + _DAYS * DAY
        opened = flow.calendar.open_spans(last).clip(flow.begin, last)
        spans.append(opened[opened[:, 0] < opened[:, 1]])
    edges = np.unique(np.concatenate([*map(np.ravel, spans), [at for at, _ in limits]]))
    work = sum(flow.left * flow.hold(flow._fresh, flow.begin) for flow in flows)
    step = min(max(work / max(*owner.limits, 1) / _STEPS, MINUTE), _LONGEST)
    for begin, end in pairwise(edges.tolist()):
        if all(flow.left < _HALF / 50 for flow in flows):
            return
        lines = [owner.max_concurrent_calls, *(value for at, value in limits if at <= begin)][-1]
        open_flows = [
            flow
            for flow, own in zip(flows, spans, strict=True)
            if np.searchsorted(own[:, 0], begin, "right")
            > np.searchsorted(own[:, 1], begin, "right")
        ]
        if lines and open_flows:
            marks = np.linspace(begin, end, ceil((end - begin) / step) + 1).tolist()
            yield from ((a, b, lines, open_flows) for a, b in pairwise(marks))


def _figures(
    scenario: Scenario, scope: str, place: tuple[str | None, str | None], flows: Sequence[_Flow]
) -> ScopeFigures:
    """Return the figures of several campaigns together."""
    people = sum(flow.block.people.count for flow in flows)
    reached = sum(flow.answered for flow in flows)
    lost = sum(flow.left for flow in flows if flow.left > _HALF)
    dials = [dial for flow in flows for dial in flow.dials]
    days: defaultdict[int, float] = defaultdict(float)
    for at, answered, others in dials:
        days[int(at + THAI_OFFSET) // DAY] += answered + others
    calls = sum(days.values())
    done = max((flow.done_at for flow in flows), default=nan)
    values: dict[str, float] = {
        "finish": done,
        "calling_days": sum(1 - exp(-count) for count in days.values()),
        "people": people,
        "people_reached": reached,
        "people_exhausted": people - reached - lost,
        "people_lost": lost,
        "reach_share": reached / people if people else nan,
        "calls_completed": reached,
        "dials": calls,
        "attempts": calls,
        "attempts_per_person_mean": calls / people if people else nan,
        "talk_minutes": sum(f.answered * _mean(f.talk) for f in flows) / MINUTE,
    }
    so_far = 0.0
    for attempt in sorted({attempt for flow in flows for attempt in flow.reached}):
        so_far += sum(flow.reached[attempt] for flow in flows)
        values[f"{REACH}{attempt}"] = so_far / people if people else nan
    if scenario.costs is not None:
        unit = scenario.costs.billing_increment
        billed = sum(
            sum(f.reached.values()) * float(expected_units(f.talk, unit)[0]) for f in flows
        )
        everybody = sum(campaign.size for campaign in campaigns_at(scenario))
        cost = cost_of(scenario.costs, calls, billed, reached) + sum(f.lines for f in flows)
        cost += scenario.costs.fixed * people / everybody if everybody else 0.0
        values |= {"cost": cost, "cost_per_reached": cost / reached if reached else inf}
    return ScopeFigures(scope, *place, values)
