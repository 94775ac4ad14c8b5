"""Counts of calls, analyses, deliveries and money in a campaign, and what its results are worth.

Counts of several campaigns add up to those of their organization or of the run. The cost of an
organization's lines is divided among its campaigns by line time used, and the fixed cost of a run
among the scheduled campaigns by their people. So the costs of campaigns add up as well.

The expected length of conversations follows from the scenario's distributions (`ExpectedTalk`). A
call that is answered runs to its end, and its talk time is drawn independently of everything that
led to the call. So the sum over all answered calls of talk time minus expected talk time has the
expectation 0 (Wald 1944, "On cumulative sums of random variables", Annals of Mathematical
Statistics 15). That holds for campaigns that are cancelled or reach their `endDateTime`, too,
because calls under way run to their end there. Where `clock.end` ends a run, only conversations
that end by then count, in the talk time and in its expectation alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property, lru_cache
from math import ceil, exp, inf, lgamma, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast, overload

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import weibull_shape
from dialsim.engine.log_reader import (
    DIALS,
    NOT_HAPPENED,
    RELEASES,
    TIMES_OUT,
    WITHDRAWS,
    Calls,
    holds,
    rows_of,
)
from dialsim.engine.trace import CHANGES, DIALLED
from dialsim.interface.instants import DAY, THAI_OFFSET, day_start
from dialsim.interface.payload import NOT_SENT, WAITS_MS, accepted
from dialsim.results.campaigns import listed
from dialsim.results.time_use import StepFunction
from dialsim.scenario.distribution import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    Lognormal,
    Triangular,
    Uniform,
    Weibull,
)
from dialsim.scenario.service import Costs
from dialsim.webhooks.deliveries import CampaignStream
from dialsim.webhooks.messages import FOREVER, VERDICTS, Verdict, Verdicts

if TYPE_CHECKING:
    from dialsim.engine.world import World
    from dialsim.results.run_view import CampaignResult
    from dialsim.scenario.distribution import Distribution
    from dialsim.scenario.organization import Agent
    from dialsim.scenario.scenario import Scenario

Integers = NDArray[np.int64]


def _none() -> Integers:
    return np.empty(0, np.int64)


class Counts:
    """Counts that add up; a field is a number, a counter, durations, or days."""

    @classmethod
    def of(cls, own: CampaignResult) -> Self:
        """Count for one campaign."""
        raise NotImplementedError

    @classmethod
    def total(cls, parts: Iterable[Self]) -> Self:
        """Add the counts of several parts; durations and days are concatenated."""
        every = [*parts]
        if len(every) == 1:
            return every[0]
        every = [cls(), *every]
        names = [part.name for part in fields(cast("Any", cls))]
        return cls(**{name: _sum([getattr(part, name) for part in every]) for name in names})


def _sum(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(values)
    if isinstance(first, Counts):
        return type(first).total(values)
    if isinstance(first, int):
        return sum(values)
    total = Counter[Any]()
    for value in values:
        # Counter's + would drop keys with count 0.
        total.update(value)
    return total


@dataclass(frozen=True)
class Durations(Counts):
    """Durations in ms; mean and 95 % quantile (linear interpolation) are in seconds."""

    # Mean and quantile are cached, because in a run of one campaign all its parts share the
    # durations.
    ms: Integers = field(default_factory=_none)

    @classmethod
    def of(cls, own: CampaignResult) -> Self:
        """Collect the waits in the queue that ended by a dial or timeout."""
        return cls(queue_waits(own.engine_calls)[1])

    @cached_property
    def mean(self) -> float | None:
        """Mean, or None without durations."""
        return int(self.ms.sum()) / len(self.ms) / 1000 if len(self.ms) else None

    @cached_property
    def p95(self) -> float | None:
        """95 % quantile, or None without durations."""
        return float(np.quantile(self.ms, 0.95)) / 1000 if len(self.ms) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts(Counts):
    """Counts of calls.

    `by_end` counts calls by (cause, status) of their last change. `reached` counts people by the
    attempt that reached them, histories included. `days` are the Thai dates with a dial, as days
    since 1970.
    """

    by_end: Counter[tuple[str, str]] = field(default_factory=Counter)
    reached: Counter[int] = field(default_factory=Counter)
    days: Integers = field(default_factory=_none)

    @classmethod
    def of(cls, own: CampaignResult) -> Self:
        """Count the calls of a campaign."""
        calls, states = own.engine_calls, own.states
        by_end = Counter[tuple[str, str]]()
        for change, count in zip(
            CHANGES, np.bincount(calls.last_kind, minlength=len(CHANGES)).tolist(), strict=True
        ):
            by_end[change.cause, change.to_status] += count
        return cls(
            by_end=by_end,
            reached=Counter(dict(enumerate(reached_by_attempt(calls, states).tolist(), 1))),
            days=_days(calls.rows.at.take(calls.dial_rows)),
        )

    def ended(self, status: str | None = None) -> int:
        """Return the number of calls that were dialled and ended, with the given status or any
        (P2).
        """
        return sum(
            count
            for (cause, to), count in self.by_end.items()
            if cause == "ended" and status in (None, to)
        )

    def dropped(self, *causes: str) -> int:
        """Return the number of calls that one of these causes ended."""
        return sum(count for (cause, _), count in self.by_end.items() if cause in causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges(Counts):
    """Quantities that calls are charged for.

    `dials` include the `withdrawn` dials. `talk_ms` is the total duration of ended conversations,
    `increments` their number of billing increments. `answered` are the people reached in this run.
    """

    dials: int = 0
    withdrawn: int = 0
    talk_ms: int = 0
    increments: int = 0
    answered: int = 0

    @classmethod
    def of(cls, own: CampaignResult) -> Self:
        """Sum up a campaign."""
        calls, costs = own.engine_calls, own.run.costs
        kinds = calls.rows.kind
        talk_ms = calls.ended_at.take(own.talked) - calls.started_at.take(own.talked)
        return cls(
            dials=len(calls.dial_rows),
            withdrawn=int(np.count_nonzero(holds(kinds, WITHDRAWS))),
            talk_ms=int(talk_ms.sum()),
            increments=int(billed_increments(costs, talk_ms).sum()) if costs else 0,
            answered=int(np.count_nonzero(calls.started_at != NOT_HAPPENED)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisCounts(Counts):
    """Ended conversations by the state of their analysis.

    `steps` counts analyzed conversations by (agent, funnel step) reached, `values` by (agent,
    field, value).
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reanalyses: int = 0
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    values: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, own: CampaignResult) -> Self:
        """Count the conversations of a campaign."""
        stream, verdicts, agent = own.stream, own.verdicts, own.block.agent
        steps, values = _found(verdicts, agent)
        # Code -1, no conversation, is counted at index 0 and cut off.
        known = np.bincount(verdicts.code + 1, minlength=1 + len(VERDICTS))[1:]
        return cls(
            verdicts=Counter(dict(zip(VERDICTS, known.tolist(), strict=True))),
            reanalyses=int(np.count_nonzero(stream.owed.result)),
            steps=steps,
            values=values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryCounts(Counts):
    """Results by the outcome of their delivery.

    `lost_but_received` are lost results that the receiver accepted nevertheless, `duplicated` those
    accepted more than once, `out_of_order` those accepted after a newer one of the same person.
    `delays` has, per accepted result, the time to its first arrival.
    """

    fates: Counter[Fate] = field(default_factory=Counter)
    lost_but_received: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    delays: Durations = field(default_factory=Durations)

    @classmethod
    def of(cls, own: CampaignResult) -> Self:
        """Count the results of a campaign."""
        stream = own.stream
        of_result = fates(stream)
        ended = np.bincount(of_result, minlength=len(Fate))
        taken = np.bincount(stream.posts.message[stream.posts.received], minlength=len(of_result))
        arrived = _first_arrivals(stream)
        received = np.flatnonzero(arrived != FOREVER)
        return cls(
            fates=Counter(dict(zip(Fate, ended.tolist(), strict=True))),
            lost_but_received=int(np.count_nonzero((of_result == Fate.LOST) & (taken > 0))),
            duplicated=int(np.count_nonzero(taken > 1)),
            out_of_order=_overtaken(stream, received, arrived[received]),
            delays=Durations(arrived[received] - stream.messages.ready_at[received]),
        )


def reached_by_attempt(calls: Calls, states: NDArray[np.int8]) -> Integers:
    """Return the number of people reached by attempt 1, 2, …, up to the last one made."""
    on_list = listed(states)
    here = calls.attempt[np.flatnonzero(calls.started_at != NOT_HAPPENED)]
    before = calls.past_attempts[calls.past_reached & on_list]
    made = max(int(calls.attempt.max(initial=0)), int(calls.past_attempts[on_list].max(initial=0)))
    return np.bincount(np.concatenate([here, before]), minlength=made + 1)[1:]


def _days(at: Integers) -> Integers:
    """Return the distinct Thai dates of sorted instants, as days since 1970."""
    first, last = (at[[0, -1]] + THAI_OFFSET) // DAY if len(at) else (0, -1)
    days = np.arange(first, last + 1)
    # Searching for each midnight is a hundred times as fast as dividing a million instants.
    until = np.searchsorted(at, (days + 1) * DAY - THAI_OFFSET)
    return days[np.diff(until, prepend=0) > 0]


_LEAVES = DIALS | TIMES_OUT


def queue_waits(calls: Calls) -> tuple[Integers, Integers]:
    """Return, for each wait in the queue that ended by a dial or timeout, its end and duration
    in ms.
    """
    kinds, at, call = calls.rows.kind, calls.rows.at, calls.row_call
    left, withdrawn = calls.dial_rows, rows_of(kinds, WITHDRAWS)
    if len(timed_out := rows_of(kinds, TIMES_OUT)):
        left = np.sort(np.concatenate([left, timed_out]), kind="stable")
    ended_at, since = at.take(left), calls.queued_at.take(call.take(left))
    if len(withdrawn):
        # A call whose dial was withdrawn is released again; `queued_at` is only its last release.
        again = np.zeros(len(calls), dtype=bool)
        again[call.take(withdrawn)] = True
        rows = rows_of(kinds, RELEASES | _LEAVES)
        rows = rows.take(np.flatnonzero(again.take(call.take(rows))))
        rows = rows[np.lexsort((rows, call[rows]))]
        # The row before is the release of the same call.
        ended = np.flatnonzero(_LEAVES[kinds[rows]])
        since[np.searchsorted(left, rows[ended])] = at[rows[ended - 1]]
    return ended_at, ended_at - since


def _found(
    verdicts: Verdicts, agent: Agent
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str, str]]]:
    """Count the conversations of a campaign by the steps and values of their newest analyses."""
    steps, values = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    found = verdicts.found[np.flatnonzero(verdicts.code == VERDICTS.index(Verdict.ANALYZED))]
    analysis = agent.analysis
    for number, step in enumerate((analysis and analysis.funnel) or (), start=1):
        steps[agent.name, step.step] = int(np.count_nonzero(found[:, 0] >= number))
    for column, (name, asked) in enumerate(analysis.fields.items() if analysis else (), start=1):
        counts = np.bincount(found[:, column], minlength=len(asked.values))
        for value, count in zip(asked.values, counts.tolist(), strict=True):
            values[agent.name, name, value] = count
    return steps, values


_MOST_POSTS = 1 + len(WAITS_MS)


class Fate(IntEnum):
    """Outcome of the delivery of a result at the end of the run.

    A result is delivered at the first try or after retries, lost after three failures (W2),
    pending, or without a URL (W6).
    """

    AT_FIRST_TRY = 0
    AFTER_RETRIES = 1
    LOST = 2
    PENDING = 3
    WITHOUT_URL = 4


def fates(stream: CampaignStream) -> NDArray[np.int8]:
    """Return the fate of each result of a campaign."""
    posts, count = stream.posts, len(stream.messages)
    tries = np.bincount(posts.message[posts.number > 0], minlength=count)
    without_url = np.zeros(count, dtype=bool)
    without_url[posts.message[posts.response == NOT_SENT]] = True
    taken_at = np.zeros(count, dtype=np.int16)
    # Reversed, so that the first successful POST of a result is assigned last.
    good = np.flatnonzero(accepted(posts.response))[::-1]
    taken_at[posts.message[good]] = posts.number[good]
    rules = {
        Fate.AT_FIRST_TRY: taken_at == 1,
        Fate.AFTER_RETRIES: taken_at > 1,
        Fate.WITHOUT_URL: without_url,
        Fate.LOST: tries >= _MOST_POSTS,
    }
    codes = [np.int8(fate) for fate in rules]
    return np.select([*rules.values()], codes, default=np.int8(Fate.PENDING))


def _first_arrivals(stream: CampaignStream) -> Integers:
    """Return the first arrival of each result at the receiver (ms), or FOREVER."""
    posts = stream.posts
    arrived = np.full(len(stream.messages), FOREVER, dtype=np.int64)
    taken = posts.received
    np.minimum.at(arrived, posts.message[taken], posts.arrived_at[taken])
    return arrived


def _overtaken(stream: CampaignStream, received: NDArray[np.intp], arrived: Integers) -> int:
    """Count the received results that arrived after a newer one of the same person."""
    if not len(received):
        return 0
    results = stream.messages[received]
    person = stream.calls.recipient[results.call]
    order = np.lexsort((results.result, results.call, results.ready_at, person))
    rank = np.cumsum(np.diff(person[order], prepend=-1) != 0)
    since = arrived[order] - arrived.min()
    # Each person's times are lifted above all times of the person before, so that one cumulative
    # minimum from the end serves all people.
    lifted = rank * (since.max() + 1) + since
    least_later = np.minimum.accumulate(lifted[::-1])[::-1]
    return int(np.count_nonzero(lifted > least_later))


def billed_increments(costs: Costs, talk_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the billing increments of conversations; each increment begun counts in full."""
    return -(-talk_ms // costs.billing_increment)


@overload
def cost_of(costs: Costs, dials: float, increments: float, reached: float) -> float: ...
@overload
def cost_of(
    costs: Costs,
    dials: NDArray[np.bool_],
    increments: NDArray[np.int64],
    reached: NDArray[np.bool_],
) -> NDArray[np.float64]: ...
def cost_of(
    costs: Costs,
    dials: float | NDArray[np.bool_],
    increments: float | NDArray[np.int64],
    reached: float | NDArray[np.bool_],
) -> Any:
    """Return the cost of dials, billing increments of conversations, and people reached.

    A withdrawn dial costs nothing (P5). A conversation is charged when it has ended.
    """
    talk = increments * costs.per_increment
    return dials * costs.per_dial + talk + reached * costs.per_reached


def line_shares(
    costs: Costs,
    calls: Sequence[Calls],
    busy: Sequence[StepFunction],
    allowed: StepFunction,
    end: int,
) -> NDArray[np.float64]:
    """Return each campaign's share of the cost of its organization's lines.

    Each Thai date with a dial costs as many lines as the largest `allowed` at a dial of that date.
    """
    dials = [part.rows.at[part.rows.kind == DIALLED] for part in calls]
    at = np.concatenate([np.empty(0, np.int64), *dials])
    days = (at + THAI_OFFSET) // DAY
    days -= days.min(initial=0)
    most = np.zeros(1 + days.max(initial=0), dtype=np.int64)  # by day; 0 without dials
    np.maximum.at(most, days, allowed(at))
    used = [own.integral(np.array([[0, end]], dtype=np.int64)) for own in busy]
    weights = used if any(used) else [len(own) for own in dials]
    return costs.per_line_day * int(most.sum()) * _shares(weights)


def fixed_shares(
    costs: Costs, people: Sequence[int], scheduled: Sequence[bool]
) -> NDArray[np.float64]:
    """Return each campaign's share of the fixed cost of a run."""
    if not costs.fixed:
        return np.zeros(len(people))
    weights = [count * asked for count, asked in zip(people, scheduled, strict=True)]
    return costs.fixed * _shares(weights if any(weights) else [1] * len(people))


def _shares(weights: Sequence[int]) -> NDArray[np.float64]:
    weighed = np.array(weights, dtype=np.float64)
    return weighed / (weighed.sum() or 1.0)


def first_day(scenario: Scenario) -> int:
    """Return the midnight (ms) of day 1: the first day of calling, or of the run if later."""
    return max(scenario.first_day, day_start(scenario.clock.start))


def value_by_day(own: CampaignResult) -> NDArray[np.float64] | None:
    """Return the value of the conversations answered on day 1, day 2, …; None without values."""
    if own.block.value is None:
        return None
    started_at = own.engine_calls.started_at
    answered = np.flatnonzero(started_at != NOT_HAPPENED)
    days = (started_at[answered] + THAI_OFFSET) // DAY
    # A campaign that a command schedules may begin before the campaigns of the file.
    days = np.maximum(days - (first_day(own.run.world.scenario) + THAI_OFFSET) // DAY, 0)
    return np.asarray(np.bincount(days, weights=_worth(own, answered)), dtype=np.float64)


def _worth(own: CampaignResult, answered: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the value of each of the given answered calls."""
    block, people = own.block, own.engine_calls.recipient[answered]
    value, analysis = block.value or {}, block.agent.analysis

    def worth(key: str) -> NDArray[np.float64] | float:
        return block.worth[key][people] if key in block.worth else float(value.get(key, 0))

    total = np.zeros(len(answered)) + worth("reached")
    if analysis is None or value.keys() <= {"reached"}:
        return total
    analyzed = own.verdicts.code[answered] == VERDICTS.index(Verdict.ANALYZED)
    found = own.verdicts.found[answered]
    for number, step in enumerate(analysis.funnel or (), start=1):
        total += worth(f"funnel.{step.step}") * (analyzed & (found[:, 0] >= number))
    for column, (name, asked) in enumerate(analysis.fields.items(), start=1):
        for code, text in enumerate(asked.values):
            key = f"field.{name}.{text}"
            if key in value:
                total += worth(key) * (analyzed & (found[:, column] == code))
    return total


Floats = NDArray[np.float64]

_SINGLE, _PER_DOUBLING, _DOUBLINGS = 4096, 512, 32
"""Terms of the sum added one by one, groups of terms per doubling beyond, and doublings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTalk(Counts):
    """Expected talk time (ms) and billed increments of the answered calls of a run.

    A scripted conversation counts with its own duration, because the script determines it.
    """

    talk_ms: float = 0
    increments: float = 0

    @classmethod
    def of(cls, own: CampaignResult) -> ExpectedTalk:
        """Return the expected charges of a campaign."""
        world, calls, costs = own.run.world, own.engine_calls, own.run.costs
        talk_ms = _expected_of_calls(world, calls, 1)
        if costs is None or not costs.per_minute:
            return cls(talk_ms=talk_ms)
        increments = _expected_of_calls(world, calls, costs.billing_increment)
        return cls(talk_ms=talk_ms, increments=increments)


def _expected_of_calls(world: World, calls: Calls, unit: int) -> float:
    """Return the expected number of started units of `unit` ms of a campaign's conversations."""
    by_chance, expected = np.flatnonzero(calls.started_at != NOT_HAPPENED), 0.0
    if calls.scripts is not None:
        follows = calls.scripts[calls.recipient[by_chance]] >= 0
        expected = float(-(-calls.talk_ms[by_chance[follows]] // unit).sum())
        by_chance = by_chance[~follows]
    started_at, end = calls.started_at[by_chance].astype(np.float64), world.scenario.clock.end
    alike = len(world.behaviours) == 1
    behaviours = np.zeros(len(started_at)) if alike else calls.behaviour[by_chance]
    for index in np.unique(behaviours).astype(int).tolist():
        talk = world.scenario.behaviours[world.behaviours[index]].talk_time
        own = started_at[behaviours == index]
        if end is None:
            expected += len(own) * float(expected_units(talk, unit)[0])
        else:
            expected += float(expected_units(talk, unit, end - own).sum())
    return expected


class _Units(NamedTuple):
    """Partial sums: `sums[i]` adds P(X > j · unit) over all j below `below[i]`, X the talk time."""

    below: Floats
    sums: Floats


def expected_units(distribution: Distribution, unit: int, within: Floats | None = None) -> Floats:
    """Return the expected number of started units of `unit` ms that a conversation lasts.

    A unit of 1 ms gives the expected talk time. With `within`, return for each of these times (ms)
    the expectation of the number, counted as 0 for conversations that last longer than the time.
    """
    below, sums = _units(distribution, unit)
    if within is None:
        return sums[-1:]
    started = np.floor(within / unit) + 1.0
    return np.interp(started, below, sums) - started * _at_least(distribution, within + 1.0)


@lru_cache(256)
def _units(distribution: Distribution, unit: int) -> _Units:
    """Sum P(X > j · unit) over j: E⌈X / unit⌉ (X is positive and whole).

    Far out, terms are summed in groups, each by the term in its middle.
    """
    wider = _SINGLE * 2.0 ** (np.arange(1, _PER_DOUBLING * _DOUBLINGS + 1) / _PER_DOUBLING)
    steps = [distribution.min, distribution.max, *(_atoms(distribution) or ())]
    exact = [ceil(step / unit) for step in steps if step is not None]
    edges = np.unique(np.concatenate([np.arange(_SINGLE + 1), np.floor(wider), exact]))
    middles = (edges[:-1] + edges[1:] - 1.0) / 2.0
    terms = _at_least(distribution, middles * unit + 1.0) * np.diff(edges)
    return _Units(edges, np.concatenate([[0.0], np.cumsum(terms)]))


def _at_least(distribution: Distribution, ms: Floats) -> Floats:
    """Return P(X ≥ ms), where X is clipped and rounded half up to whole ms."""
    least = 0 if distribution.min is None else distribution.min
    most = inf if distribution.max is None else distribution.max
    inside = _survival(distribution, np.maximum(ms - 0.5, 0.0))
    return np.where(ms <= least, 1.0, np.where(ms > most, 0.0, inside))


def _atoms(distribution: Distribution) -> tuple[int, ...] | None:
    """Return the values of a discrete distribution; None for a continuous one."""
    match distribution:
        case Empirical():
            return distribution.values
        case Constant():
            return (distribution.value,)
        case Uniform() | Triangular():
            return (distribution.low,) if distribution.low == distribution.high else None
        case Exponential():
            return None
    return None if distribution.sd else (distribution.mean,)


def _survival(distribution: Distribution, ms: Floats) -> Floats:
    """Return the probability of a draw of `ms` or more, before clipping."""
    from scipy import special

    atoms = _atoms(distribution)
    if atoms is not None:
        below = np.searchsorted(np.sort(np.array(atoms, dtype=np.float64)), ms, side="left")
        return 1.0 - below / len(atoms)
    found: Any
    match distribution:
        case Uniform():
            low, high = distribution.low, distribution.high
            found = np.clip((high - ms) / (high - low), 0.0, 1.0)
        case Triangular():
            low, mode, high = distribution.low, distribution.mode, distribution.high
            within = np.clip(ms, low, high)
            rising = 1.0 - (within - low) ** 2 / ((high - low) * ((mode - low) or 1))
            falling = (high - within) ** 2 / ((high - low) * ((high - mode) or 1))
            found = np.where(within < mode, rising, falling)
        case Exponential():
            found = np.exp(-ms / distribution.mean)
        case Lognormal():
            variance = log(1.0 + (distribution.sd / distribution.mean) ** 2)
            with np.errstate(divide="ignore"):
                logs = np.log(ms) - (log(distribution.mean) - variance / 2.0)
            found = special.ndtr(-logs / sqrt(variance))
        case Gamma():
            shape = (distribution.mean / distribution.sd) ** 2
            found = special.gammaincc(shape, ms * shape / distribution.mean)
        case Weibull():
            shape = weibull_shape(distribution.sd / distribution.mean)
            scaled = ms / distribution.mean * exp(lgamma(1.0 + 1.0 / shape))
            found = np.exp(-(scaled**shape))
    return np.asarray(found, dtype=np.float64)
