"""Counts of what happened in a campaign: calls, conversations analyzed, results delivered, money.

Counts of several campaigns add up to those of an organization or of the run.

What is paid for an organization's lines is shared among its campaigns by the slot time that each
has used, and what is paid for the run among the campaigns scheduled, by their people. So the costs
of campaigns add up to that of their organization, and those of organizations to that of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast, overload

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import DIALS, NEVER, RELEASES, TIMES_OUT, WITHDRAWS, Calls, rows_of
from dialsim.engine.trace import CHANGES, DIALLED
from dialsim.interface.instants import DAY, MINUTE, THAI_OFFSET
from dialsim.interface.payload import NOT_SENT, WAITS_MS, accepted
from dialsim.interface.status import CallStatus
from dialsim.results.campaigns import PERSON_STATES, PersonState, listed
from dialsim.results.time_use import StepFunction, distinct
from dialsim.scenario.service import Costs
from dialsim.webhooks.deliveries import CampaignStream
from dialsim.webhooks.messages import FOREVER, VERDICTS, Verdict, Verdicts

if TYPE_CHECKING:
    from dialsim.scenario.organization import Agent


Integers = NDArray[np.int64]


def _none() -> Integers:
    return np.empty(0, np.int64)


class Counts:
    """Counts that add up; a field of them is a number, a counter, durations, or days."""

    @classmethod
    def total(cls, parts: Iterable[Self]) -> Self:
        """Those of several parts together; measurements are put behind one another."""
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
        total.update(value)  # the sign + would drop what was counted 0 times
    return total


@dataclass(frozen=True)
class Durations(Counts):
    """Durations in ms; their mean and 95 % quantile (linearly interpolated) are in seconds.

    Both are worked out once: a run of one campaign has the same durations in all its parts.
    """

    ms: Integers = field(default_factory=_none)

    @cached_property
    def mean(self) -> float | None:
        """The mean, None of none."""
        return int(self.ms.sum()) / len(self.ms) / 1000 if len(self.ms) else None

    @cached_property
    def p95(self) -> float | None:
        """The 95 % quantile, None of none."""
        return float(np.quantile(self.ms, 0.95)) / 1000 if len(self.ms) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts(Counts):
    """Calls.

    `by_end` counts them by their last change, as (its cause, the status it leads to), `reached`
    people by the attempt that reached them, histories included; `days` are the Thai dates with a
    dial, as days since 1970.
    """

    by_end: Counter[tuple[str, str]] = field(default_factory=Counter)
    reached: Counter[int] = field(default_factory=Counter)
    days: Integers = field(default_factory=_none)

    @classmethod
    def of(cls, calls: Calls, states: NDArray[np.int8]) -> Self:
        """Those of a campaign; `states` are those of its recipients."""
        dialled = rows_of(calls.rows.kind, DIALS)
        by_end = Counter[tuple[str, str]]()
        for change, count in zip(
            CHANGES, np.bincount(calls.last_kind, minlength=len(CHANGES)).tolist(), strict=True
        ):
            by_end[change.cause, change.to_status] += count
        return cls(
            by_end=by_end,
            reached=Counter(dict(enumerate(reached_by_attempt(calls, states).tolist(), 1))),
            days=distinct((calls.rows.at.take(dialled) + THAI_OFFSET) // DAY),
        )

    def ended(self, status: str | None = None) -> int:
        """How many calls were dialled and ended, in that status or in any (P2)."""
        return sum(
            count
            for (cause, to), count in self.by_end.items()
            if cause == "ended" and status in (None, to)
        )

    def dropped(self, *causes: str) -> int:
        """How many calls one of these causes ended."""
        return sum(count for (cause, _), count in self.by_end.items() if cause in causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges(Counts):
    """What calls are charged for: dials, but those withdrawn, and conversations.

    `talk_ms` is the length of the conversations that ended, `increments` are those they are
    billed; `answered` are the people reached in this run.
    """

    dials: int = 0
    withdrawn: int = 0
    talk_ms: int = 0
    increments: int = 0
    answered: int = 0

    @classmethod
    def of(cls, calls: Calls, costs: Costs | None) -> Self:
        """Those of a campaign."""
        kinds, talk_ms = calls.rows.kind, calls.talk_ms
        return cls(
            dials=len(rows_of(kinds, DIALS)),
            withdrawn=len(rows_of(kinds, WITHDRAWS)),
            talk_ms=int(talk_ms.sum()),
            increments=int(billed_increments(costs, talk_ms).sum()) if costs else 0,
            answered=int(np.count_nonzero(calls.started_at != NEVER)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisCounts(Counts):
    """Conversations that have ended, by what has come of their analyses.

    `steps` counts analyzed conversations by (agent, funnel step) that they reached, `values` by
    (agent, field, value).
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reanalyses: int = 0
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    values: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, stream: CampaignStream, verdicts: Verdicts, agent: Agent) -> Self:
        """Those of a campaign."""
        steps, values = _found(verdicts, agent)
        known = np.bincount(verdicts.code + 1, minlength=1 + len(VERDICTS))[1:]  # without -1
        return cls(
            verdicts=Counter(dict(zip(VERDICTS, known.tolist(), strict=True))),
            reanalyses=int(np.count_nonzero(stream.owed.result)),
            steps=steps,
            values=values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryCounts(Counts):
    """Results, by what became of them.

    `lost_but_received` are the lost ones that the receiver took in all the same, `duplicated` those
    taken in more than once, `out_of_order` those taken in after a newer one of the same person;
    `delays` has, of each result that was taken in, the time to its first arrival.
    """

    fates: Counter[Fate] = field(default_factory=Counter)
    lost_but_received: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    delays: Durations = field(default_factory=Durations)

    @classmethod
    def of(cls, stream: CampaignStream) -> Self:
        """Those of a campaign."""
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
    """How many people were reached by attempt 1, by attempt 2, …, up to the last one made."""
    on_list = listed(states)
    here = calls.attempt[np.flatnonzero(calls.started_at != NEVER)]
    before = calls.past_attempts[calls.past_reached & on_list]
    made = max(int(calls.attempt.max(initial=0)), int(calls.past_attempts[on_list].max(initial=0)))
    return np.bincount(np.concatenate([here, before]), minlength=made + 1)[1:]


def attempts_of_exhausted(calls: Calls, states: NDArray[np.int8]) -> dict[CallStatus, int]:
    """The attempts, in this run, of the people who ran out of them, by how they ended."""
    exhausted = (states == PERSON_STATES.index(PersonState.EXHAUSTED)).take(calls.recipient)
    kinds = calls.last_kind[exhausted & calls.counted]
    count = np.bincount(kinds, minlength=len(CHANGES))
    return {CHANGES[kind].to_status: int(count[kind]) for kind in np.flatnonzero(count)}


_LEAVES = DIALS | TIMES_OUT


def queue_waits(calls: Calls) -> tuple[Integers, Integers]:
    """Each wait in the queue that a dial or a queue timeout ended: when it did, and its ms."""
    kinds, at, call = calls.rows.kind, calls.rows.at, calls.row_call
    released, left = rows_of(kinds, RELEASES), rows_of(kinds, _LEAVES)
    ended_at, since = at.take(left), calls.queued_at.take(call.take(left))
    if len(released) > np.count_nonzero(calls.queued_at != NEVER):
        # of a call that was released more than once, `queued_at` is the last time
        again = np.bincount(call.take(released), minlength=len(calls)) > 1
        both = np.concatenate([released, left])
        rows = both[np.flatnonzero(again.take(call.take(both)))]
        rows = rows[np.lexsort((rows, call[rows]))]
        ended = np.flatnonzero(_LEAVES[kinds[rows]])  # the row before is the same call's release
        since[np.searchsorted(left, rows[ended])] = at[rows[ended - 1]]
    return ended_at, ended_at - since


def _found(
    verdicts: Verdicts, agent: Agent
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str, str]]]:
    """The conversations of a campaign by what their newest analyses found: steps and values."""
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
    """What became of a result by the end of the run.

    It was delivered at first try or after retries, is lost after three failures (W2), pending, or
    had no URL to go to (W6).
    """

    AT_FIRST_TRY = 0
    AFTER_RETRIES = 1
    LOST = 2
    PENDING = 3
    WITHOUT_URL = 4


def fates(stream: CampaignStream) -> NDArray[np.int8]:
    """The fate of each result of a campaign."""
    posts, count = stream.posts, len(stream.messages)
    tries = np.bincount(posts.message[posts.number > 0], minlength=count)
    kept = np.bincount(posts.message[posts.response == NOT_SENT], minlength=count)
    taken_at = np.zeros(count, dtype=np.int16)
    good = np.flatnonzero(accepted(posts.response))[::-1]  # the first of several is assigned last
    taken_at[posts.message[good]] = posts.number[good]
    rules = {
        Fate.AT_FIRST_TRY: taken_at == 1,
        Fate.AFTER_RETRIES: taken_at > 1,
        Fate.WITHOUT_URL: kept > 0,
        Fate.LOST: tries >= _MOST_POSTS,
    }
    codes = [np.int8(fate) for fate in rules]
    return np.select([*rules.values()], codes, default=np.int8(Fate.PENDING))


def _first_arrivals(stream: CampaignStream) -> Integers:
    """When the receiver first took in each result (ms); FOREVER if it never did."""
    posts = stream.posts
    arrived = np.full(len(stream.messages), FOREVER, dtype=np.int64)
    taken = posts.received
    np.minimum.at(arrived, posts.message[taken], posts.arrived_at[taken])
    return arrived


def _overtaken(stream: CampaignStream, received: NDArray[np.intp], arrived: Integers) -> int:
    """How many of the results received arrived after one of the same person that is newer."""
    if not len(received):
        return 0
    results = stream.messages[received]
    person = stream.calls.recipient[results.call]
    order = np.lexsort((results.result, results.call, results.ready_at, person))
    rank = np.cumsum(np.diff(person[order], prepend=-1) != 0)
    since = arrived[order] - arrived.min()
    # with a step up from person to person, the least from the end on is each person's own
    lifted = rank * (since.max() + 1) + since
    least_later = np.minimum.accumulate(lifted[::-1])[::-1]
    return int(np.count_nonzero(lifted > least_later))


def billed_increments(costs: Costs, talk_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many billing increments conversations are charged: each that was started, in full."""
    return -(-talk_ms // costs.billing_increment)


@overload
def cost_of(costs: Costs, dials: int, increments: int, reached: int) -> float: ...
@overload
def cost_of(
    costs: Costs,
    dials: NDArray[np.bool_],
    increments: NDArray[np.int64],
    reached: NDArray[np.bool_],
) -> NDArray[np.float64]: ...
def cost_of(
    costs: Costs,
    dials: int | NDArray[np.bool_],
    increments: int | NDArray[np.int64],
    reached: int | NDArray[np.bool_],
) -> Any:
    """What dials, started billing increments of conversation, and people reached cost.

    A dial that was withdrawn costs nothing (P5); a conversation is charged when it is over.
    """
    per_increment = costs.per_minute * costs.billing_increment / MINUTE
    return dials * costs.per_dial + increments * per_increment + reached * costs.per_reached


def line_shares(
    costs: Costs,
    calls: Sequence[Calls],
    busy: Sequence[StepFunction],
    allowed: StepFunction,
    end: int,
) -> NDArray[np.float64]:
    """What each campaign of an organization has to pay of what its lines cost.

    Lines are paid for on each Thai date with a dial: as many as `allowed` at most, at any dial.
    """
    dials = [part.rows.at[part.rows.kind == DIALLED] for part in calls]
    at = np.concatenate([np.empty(0, np.int64), *dials])
    most = dict[int, int]()
    for day, lines in zip(((at + THAI_OFFSET) // DAY).tolist(), allowed(at).tolist(), strict=True):
        most[day] = max(lines, most.get(day, 0))
    used = [own.integral(np.array([[0, end]], dtype=np.int64)) for own in busy]
    weights = used if any(used) else [len(own) for own in dials]
    return costs.per_line_day * sum(most.values()) * _shares(weights)


def fixed_shares(
    costs: Costs, people: Sequence[int], scheduled: Sequence[bool]
) -> NDArray[np.float64]:
    """What each campaign of a run has to pay of what the run costs as a whole."""
    if not costs.fixed:
        return np.zeros(len(people))
    weights = [count * asked for count, asked in zip(people, scheduled, strict=True)]
    return costs.fixed * _shares(weights if any(weights) else [1] * len(people))


def _shares(weights: Sequence[int]) -> NDArray[np.float64]:
    weighed = np.array(weights, dtype=np.float64)
    return weighed / (weighed.sum() or 1.0)


def value_of(worth: Mapping[str, float], reached: int, analyses: AnalysisCounts) -> float:
    """The value of a campaign's results, of which `reached` are people reached."""
    found = {"reached": reached}
    for (_, step), count in analyses.steps.items():
        found[f"funnel.{step}"] = count
    for (_, name, value), count in analyses.values.items():
        found[f"field.{name}.{value}"] = count
    return float(sum(amount * found.get(key, 0) for key, amount in worth.items()))
