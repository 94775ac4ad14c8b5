"""Tallies: one campaign's countable facts, which add up to those of an organization or a run.

What analyses came to: counts of a campaign's conversations, or of several campaigns'.

How results were delivered: counts of a campaign's messages, or of several campaigns'.

Figures of the stream: how results were delivered, and what the analyses found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import NEVER, TIMES_OUT, WITHDRAWS, Calls
from dialsim.engine.trace import CHANGES, DIALLED
from dialsim.engine.windows import DAY, THAI_OFFSET
from dialsim.interface.payload import NOT_SENT, WAITS_MS, accepted
from dialsim.interface.status import CallStatus
from dialsim.results.people import PERSON_STATES, PeopleCount, PersonState, listed
from dialsim.results.tables import billed
from dialsim.results.time_use import distinct
from dialsim.scenario.agent import Agent
from dialsim.scenario.service import Costs
from dialsim.webhooks.deliveries import Posts
from dialsim.webhooks.messages import FOREVER, Messages
from dialsim.webhooks.stream import VERDICTS, CampaignStream, Verdict, Verdicts


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a campaign or of several.

    `by_kind[k]` counts the calls whose last change is `CHANGES[k]`; `reached[k]` the people reached
    by attempt k + 1 and no earlier, histories included; `waits_ms` has each wait from a release to
    the dial or queue timeout that ended it; `days` are the Thai dates, as days since 1970, with a
    dial.
    """

    people: PeopleCount
    by_kind: NDArray[np.int64]
    dials: int
    withdrawn: int
    reached: NDArray[np.int64]
    waits_ms: NDArray[np.int64]
    days: NDArray[np.int64]
    talk_ms: int
    charged_dials: int
    charged_increments: int

    def ended(self, status: str | None = None) -> int:
        """How many calls were dialled and ended, in that status or in any (P2)."""
        return self._count(
            change.cause == "ended" and status in (None, change.to_status) for change in CHANGES
        )

    def dropped(self, *causes: str) -> int:
        """How many calls one of these causes ended."""
        return self._count(change.cause in causes for change in CHANGES)

    def _count(self, chosen: Iterable[bool]) -> int:
        return int(self.by_kind[[*chosen]].sum())


def take_tally(ledger: Calls, states: NDArray[np.int8], costs: Costs | None) -> Tally:
    """Count one campaign; `states` are those of its recipients."""
    kinds = ledger.rows.kind
    dialled = kinds == DIALLED
    charged, increments = billed(ledger, costs.billing_increment if costs else 1)
    return Tally(
        people=PeopleCount.of(states),
        by_kind=np.bincount(ledger.last_kind, minlength=len(CHANGES)),
        dials=int(np.count_nonzero(dialled)),
        withdrawn=int(np.count_nonzero(WITHDRAWS[kinds])),
        reached=reached_by_attempt(ledger, states),
        waits_ms=queue_waits(ledger)[1],
        days=distinct((ledger.rows.at[dialled] + THAI_OFFSET) // DAY),
        talk_ms=int(ledger.talk_ms.sum()),
        charged_dials=int(np.count_nonzero(charged)),
        charged_increments=int(increments.sum()),
    )


def reached_by_attempt(ledger: Calls, states: NDArray[np.int8]) -> NDArray[np.int64]:
    """How many people were reached by attempt 1, by attempt 2, …, up to the last one made."""
    on_list = listed(states)
    here = ledger.attempt[ledger.started_at != NEVER]
    before = ledger.past_attempts[ledger.past_reached & on_list]
    made = max(
        int(ledger.attempt.max(initial=0)), int(ledger.past_attempts[on_list].max(initial=0))
    )
    return np.bincount(np.concatenate([here, before]), minlength=made + 1)[1:]


def attempts_of_exhausted(ledger: Calls, states: NDArray[np.int8]) -> dict[CallStatus, int]:
    """The attempts, in this run, of the people who ran out of them, by how they ended."""
    exhausted = states[ledger.recipient] == PERSON_STATES.index(PersonState.EXHAUSTED)
    count = np.bincount(ledger.last_kind[exhausted & ledger.counted], minlength=len(CHANGES))
    return {CHANGES[kind].to_status: int(count[kind]) for kind in np.flatnonzero(count)}


def add_up(tallies: Sequence[Tally]) -> Tally:
    """The tally of several campaigns together."""
    none = np.empty(0, dtype=np.int64)
    reached = np.zeros(max((len(tally.reached) for tally in tallies), default=0), dtype=np.int64)
    for tally in tallies:
        reached[: len(tally.reached)] += tally.reached
    return Tally(
        people=PeopleCount.total(tally.people for tally in tallies),
        by_kind=np.sum(
            [tally.by_kind for tally in tallies] or [np.zeros(len(CHANGES), int)], axis=0
        ),
        dials=sum(tally.dials for tally in tallies),
        withdrawn=sum(tally.withdrawn for tally in tallies),
        reached=reached,
        waits_ms=np.concatenate([none, *(tally.waits_ms for tally in tallies)]),
        days=distinct(np.sort(np.concatenate([none, *(tally.days for tally in tallies)]))),
        talk_ms=sum(tally.talk_ms for tally in tallies),
        charged_dials=sum(tally.charged_dials for tally in tallies),
        charged_increments=sum(tally.charged_increments for tally in tallies),
    )


def queue_waits(ledger: Calls) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each wait in the queue that a dial or a queue timeout ended: when it did, and its ms."""
    order = ledger.rows_by_call()
    kinds, at = ledger.rows.kind[order], ledger.rows.at[order]
    left = np.flatnonzero((kinds == DIALLED) | TIMES_OUT[kinds])
    return at[left], at[left] - at[left - 1]  # a queued call's row before is its release


@dataclass(frozen=True, slots=True)
class AnalysisTally:
    """Counts of conversations that have ended.

    `by_verdict` follows `VERDICTS`; `reanalyses` counts results of re-analyses. `steps` has, by
    agent and funnel step, how many analyzed conversations reached it, and `values` by agent, field
    and value how many have that value; both in the order of the scenario.
    """

    by_verdict: tuple[int, ...]
    reanalyses: int
    steps: Counter[tuple[str, str]]
    values: Counter[tuple[str, str, str]]

    def count(self, verdict: Verdict) -> int:
        """How many conversations have this verdict."""
        return self.by_verdict[VERDICTS.index(verdict)]


def tally_analyses(stream: CampaignStream, verdicts: Verdicts, agent: Agent) -> AnalysisTally:
    """Count the conversations of one campaign by what their newest analyses say."""
    had = verdicts.code[verdicts.code >= 0]
    found = verdicts.found[verdicts.code == VERDICTS.index(Verdict.ANALYZED)]
    steps, values = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    analysis = agent.analysis
    for number, step in enumerate((analysis and analysis.funnel) or (), start=1):
        steps[agent.name, step.step] = int(np.count_nonzero(found[:, 0] >= number))
    for column, (name, field) in enumerate(analysis.fields.items() if analysis else (), start=1):
        counts = np.bincount(found[:, column], minlength=len(field.values))
        for value, count in zip(field.values, counts.tolist(), strict=True):
            values[agent.name, name, value] = count
    return AnalysisTally(
        by_verdict=tuple(np.bincount(had, minlength=len(VERDICTS)).tolist()),
        reanalyses=int(np.count_nonzero(stream.owed.result)),
        steps=steps,
        values=values,
    )


def add_up_analyses(tallies: Sequence[AnalysisTally]) -> AnalysisTally:
    """The tally of several campaigns together."""
    steps, values = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    for tally in tallies:
        steps.update(tally.steps)
        values.update(tally.values)
    none = (0,) * len(VERDICTS)
    columns = zip(none, *(tally.by_verdict for tally in tallies), strict=True)
    return AnalysisTally(
        by_verdict=tuple(map(sum, columns)),
        reanalyses=sum(tally.reanalyses for tally in tallies),
        steps=steps,
        values=values,
    )


_MOST_POSTS = 1 + len(WAITS_MS)


@dataclass(frozen=True, slots=True)
class DeliveryTally:
    """Counts of results.

    `sent` had a URL to go to: each was delivered `at_first_try` or `after_retries`, is `lost`
    after three failures (W2), or `pending` when the run ended. `received_though_lost` counts lost
    ones that the receiver took in all the same, `duplicated` those it took in more than once, and
    `out_of_order` those that it took in after a newer result of the same person.
    `without_url` had none (W6). `delays_ms` has, of each result that the receiver took in, the time
    from the result to its first arrival.
    """

    sent: int
    at_first_try: int
    after_retries: int
    lost: int
    pending: int
    received_though_lost: int
    duplicated: int
    out_of_order: int
    without_url: int
    delays_ms: NDArray[np.int64]


class Fate(IntEnum):
    """What became of a result by the end, as in `DeliveryTally`."""

    AT_FIRST_TRY = 0
    AFTER_RETRIES = 1
    LOST = 2
    PENDING = 3
    WITHOUT_URL = 4


def fates(stream: CampaignStream) -> NDArray[np.int8]:
    """The fate of each message of a campaign."""
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


def tally_deliveries(stream: CampaignStream) -> DeliveryTally:
    """Count the deliveries of one campaign."""
    messages, posts = stream.messages, stream.posts
    of_notice = fates(stream)
    count = np.bincount(of_notice, minlength=len(Fate))
    taken = np.bincount(posts.message[posts.received], minlength=len(messages))
    arrived = _first_arrivals(messages, posts)
    received = np.flatnonzero(arrived != FOREVER)
    return DeliveryTally(
        sent=len(messages) - int(count[Fate.WITHOUT_URL]),
        at_first_try=int(count[Fate.AT_FIRST_TRY]),
        after_retries=int(count[Fate.AFTER_RETRIES]),
        lost=int(count[Fate.LOST]),
        pending=int(count[Fate.PENDING]),
        received_though_lost=int(np.count_nonzero((of_notice == Fate.LOST) & (taken > 0))),
        duplicated=int(np.count_nonzero(taken > 1)),
        out_of_order=_overtaken(stream.calls, messages[received], arrived[received]),
        without_url=int(count[Fate.WITHOUT_URL]),
        delays_ms=arrived[received] - messages.ready_at[received],
    )


def add_up_deliveries(tallies: Sequence[DeliveryTally]) -> DeliveryTally:
    """The tally of several campaigns together."""
    names = [name for name in DeliveryTally.__slots__ if name != "delays_ms"]
    counts = {name: sum(getattr(tally, name) for tally in tallies) for name in names}
    delays = np.concatenate([np.empty(0, np.int64), *(tally.delays_ms for tally in tallies)])
    return DeliveryTally(**counts, delays_ms=delays)


def _first_arrivals(messages: Messages, posts: Posts) -> NDArray[np.int64]:
    """When the receiver first took in each message (ms); FOREVER if it never did."""
    arrived = np.full(len(messages), FOREVER, dtype=np.int64)
    taken = posts.received
    np.minimum.at(arrived, posts.message[taken], posts.arrived_at[taken])
    return arrived


def _overtaken(ledger: Calls, messages: Messages, arrived: NDArray[np.int64]) -> int:
    """How many messages arrived after one of the same person that was ready later."""
    if not len(messages):
        return 0
    person = ledger.recipient[messages.call]
    order = np.lexsort((messages.result, messages.call, messages.ready_at, person))
    rank = np.cumsum(np.diff(person[order], prepend=-1) != 0)
    since = arrived[order] - arrived.min()
    # with a step up from person to person, the least from the end on is each person's own
    lifted = rank * (since.max() + 1) + since
    least_later = np.minimum.accumulate(lifted[::-1])[::-1]
    return int(np.count_nonzero(lifted > least_later))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFigures:
    """Results sent to the webhook, re-analyses included.

    - results: those that had a URL to go to, the sum of the next four. at_first_try and
      after_retries were delivered; lost failed three times (W2); pending were under way when the
      run ended.
    - received_though_lost: lost ones that the receiver took in all the same, too slowly.
      duplicated: taken in more than once. out_of_order: taken in after a newer result of the same
      person.
    - without_url: made and kept, not sent (W6).
    - delay_mean_seconds and delay_p95_seconds: from the result to its first arrival at the
      receiver, latency included; None where nothing arrived.
    """

    results: int
    at_first_try: int
    after_retries: int
    lost: int
    pending: int
    received_though_lost: int
    duplicated: int
    out_of_order: int
    without_url: int
    delay_mean_seconds: float | None
    delay_p95_seconds: float | None

    @classmethod
    def of(cls, tally: DeliveryTally) -> WebhookFigures:
        """The figures of a tally."""
        delays = tally.delays_ms
        return cls(
            results=tally.sent,
            at_first_try=tally.at_first_try,
            after_retries=tally.after_retries,
            lost=tally.lost,
            pending=tally.pending,
            received_though_lost=tally.received_though_lost,
            duplicated=tally.duplicated,
            out_of_order=tally.out_of_order,
            without_url=tally.without_url,
            delay_mean_seconds=int(delays.sum()) / len(delays) / 1000 if len(delays) else None,
            delay_p95_seconds=float(np.quantile(delays, 0.95)) / 1000 if len(delays) else None,
        )


@dataclass(frozen=True, slots=True)
class StepCount:
    """How many analyzed conversations of an agent reached a step of its funnel."""

    agent: str
    step: str
    reached: int


@dataclass(frozen=True, slots=True)
class ValueCount:
    """How many analyzed conversations of an agent have a value in a custom field."""

    agent: str
    field: str
    value: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisFigures:
    """What the analyses of the conversations have come to by the end.

    - conversations: calls that were answered and have ended, the sum of the next six (`Verdict`).
    - reanalyses: results of re-analyses (A5). `funnel` and `fields` count the newest results.
    """

    conversations: int
    analyzed: int
    no_conversation: int
    unavailable: int
    not_analyzed: int
    failed: int
    pending: int
    reanalyses: int
    funnel: tuple[StepCount, ...]
    fields: tuple[ValueCount, ...]

    @classmethod
    def of(cls, tally: AnalysisTally) -> AnalysisFigures:
        """The figures of a tally."""
        return cls(
            conversations=sum(tally.by_verdict),
            analyzed=tally.count(Verdict.ANALYZED),
            no_conversation=tally.count(Verdict.NO_CONVERSATION),
            unavailable=tally.count(Verdict.UNAVAILABLE),
            not_analyzed=tally.count(Verdict.NOT_ANALYZED),
            failed=tally.count(Verdict.FAILED),
            pending=tally.count(Verdict.PENDING),
            reanalyses=tally.reanalyses,
            funnel=tuple(StepCount(*key, count) for key, count in tally.steps.items()),
            fields=tuple(ValueCount(*key, count) for key, count in tally.values.items()),
        )
