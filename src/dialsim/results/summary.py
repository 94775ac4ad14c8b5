"""The summary: what a planner wants to know of a run, of each organization, and each campaign.

The names of the figures are public: goals, replications and `summary.json` use them as they stand.

Summing up: from a reading of a trace to the summary.

Progress: when each person of some campaigns was reached, and when done with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import NEVER
from dialsim.results.bottleneck import Bottleneck, Setting, held_back
from dialsim.results.figures import (
    AnalysisFigures,
    AnalysisTally,
    DeliveryTally,
    Tally,
    WebhookFigures,
    add_up,
    add_up_analyses,
    add_up_deliveries,
    attempts_of_exhausted,
    take_tally,
    tally_analyses,
    tally_deliveries,
)
from dialsim.results.people import LOST, PERSON_STATES, PersonState, listed
from dialsim.results.run_view import RunView
from dialsim.results.thai_time import in_thai_time
from dialsim.results.time_use import Occupancy, TimeUse
from dialsim.results.timeline import CampaignTimeline, union
from dialsim.scenario.service import Costs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of a campaign, of an organization, or of the whole run.

    - finish: the instant at which everybody was settled by calling: that of COMPLETED (C3); of
      several campaigns, the last of them. None where a scheduled campaign is not final, or lost
      people. Webhooks and analyses don't count.
    - final_at: the instant of the campaign's final status, whatever became of its people; of
      several, the last of them; None while a scheduled campaign is not final.
    - calling_days: Thai dates on which at least one call was dialled.
    - people and people_…: recipients, each in exactly one state (`PersonState`); reach_share is
      reached ÷ people. people_lost are those expired or cancelled: the campaign ended before
      calling was done with them. people_removed left the list as duplicates (D3) and are not among
      people.
    - calls and its parts by end: calls_completed, calls_no_answer, calls_busy, calls_failed;
      queue_timeouts (Q5); calls_cancelled and calls_expired while waiting; calls_unfinished, still
      waiting or under way when the run ended. The parts add up to calls.
    - dials: every time a call became INITIATED; dials_withdrawn of them were dropped before they
      rang (C4, C6, C7). attempts: calls dialled and ended (P5); attempts_per_person_mean counts
      all people. What a history tells is not among calls, dials and attempts.
    - reach_by_attempt: share of people reached by attempt 1, by attempt 2, …, up to the last
      attempt that anybody made; here histories count.
    - slots_in_use_mean: mean number of slots in use while a window was open: from startAt to
      finish (or the end of the run), pauses included; of several campaigns, while any of them was.
      slots_in_use_peak: the most at any time. slots_capacity_share: slot time used in that open
      time, of the slot time that maxConcurrentCalls allowed in it (for a campaign too: of its
      organization's). It can exceed 1 where the limit was lowered during calls.
    - queue_wait_mean_seconds and queue_wait_p95_seconds: from QUEUED to the dial or the queue
      timeout; a wait that a closing window, a pause or the campaign's end broke off is not
      counted. The percentile interpolates linearly. None where nothing waited.
    - talk_minutes: conversations that ended. cost: all dials and conversations that ended; None
      (as is currency) where the scenario names no costs.
    - held_back: what took the time, of the campaign that finished last.
    - analyses and webhooks: what came of the conversations, and how results were delivered.
    """

    finish: datetime | None
    final_at: datetime | None
    calling_days: int
    people: int
    people_reached: int
    people_exhausted: int
    people_expired: int
    people_cancelled: int
    people_lost: int
    people_stalled: int
    people_pending: int
    people_unscheduled: int
    people_removed: int
    reach_share: float | None
    reach_by_attempt: tuple[float, ...]
    calls: int
    calls_completed: int
    calls_no_answer: int
    calls_busy: int
    calls_failed: int
    queue_timeouts: int
    calls_cancelled: int
    calls_expired: int
    calls_unfinished: int
    dials: int
    dials_withdrawn: int
    attempts: int
    attempts_per_person_mean: float | None
    slots_in_use_mean: float | None
    slots_in_use_peak: int
    slots_capacity_share: float | None
    queue_wait_mean_seconds: float | None
    queue_wait_p95_seconds: float | None
    talk_minutes: float
    cost: float | None
    currency: str | None
    held_back: Bottleneck | None
    analyses: AnalysisFigures
    webhooks: WebhookFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSummary(Figures):
    """One campaign; `start` is its effective startAt (F3), None if it was never scheduled."""

    organization: str
    name: str
    status: str
    start: datetime | None


@dataclass(frozen=True, slots=True)
class Limit:
    """maxConcurrentCalls from an instant on."""

    at: datetime
    max_concurrent_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationSummary(Figures):
    """One organization, its limits over time, and its campaigns."""

    name: str
    limits: tuple[Limit, ...]
    campaigns: tuple[CampaignSummary, ...]


@dataclass(frozen=True, slots=True)
class RefusedAction:
    """What the file asked in vain, and the interface's answer."""

    at: datetime
    organization: str
    campaign: str | None
    action: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Figures):
    """The whole run.

    `end` is the last instant simulated, `cut` says that clock.end came before all was done.
    `unfinished` names the campaigns (`Organization/Name`) that were scheduled and have no finish:
    they are not final, or lost people. `stalled` names those for which nothing could ever happen
    again (T5).
    """

    scenario: str
    seed: int
    replication: int
    end: datetime
    cut: bool
    unfinished: tuple[str, ...]
    stalled: tuple[str, ...]
    refused: tuple[RefusedAction, ...]
    warnings: tuple[str, ...]
    organizations: tuple[OrganizationSummary, ...]

    @property
    def campaigns(self) -> tuple[CampaignSummary, ...]:
        """All campaigns, in the order of the scenario."""
        return tuple(part for owner in self.organizations for part in owner.campaigns)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: instants as text in UTC, and beside it in Thai time."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_json(self) -> bytes:
        """The bytes of `summary.json`."""
        import orjson

        return orjson.dumps(self.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def to_frame(self) -> pd.DataFrame:
        """A row for the run, for each organization, and for each campaign; a column per figure.

        `reach_by_attempt` is a column per attempt, and `held_back` its reason and sentence. The
        figures of `analyses` and `webhooks` have these words in front; of the funnel there is a
        column per step, while the values of fields are left out.
        """
        import pandas as pd

        frame = pd.DataFrame([*figure_rows(self)])
        instants = dict.fromkeys(("finish", "final_at"), pd.DatetimeTZDtype("ms", "UTC"))
        frame = frame.astype(instants)
        frame["currency"] = frame["currency"].astype("str")
        return frame.astype(dict.fromkeys(_MAY_BE_NONE, "float64"))

    def _repr_html_(self) -> str:
        from dialsim.results.summary_page import summary_html

        return summary_html(self)


def figure_rows(summary: Summary) -> Iterator[dict[str, Any]]:
    """The rows of `Summary.to_frame`: scope, organization and campaign, then the figures."""
    yield {"scope": "run", "organization": None, "campaign": None} | _flat(summary)
    for owner in summary.organizations:
        place = {"scope": "organization", "organization": owner.name, "campaign": None}
        yield place | _flat(owner)
        for campaign in owner.campaigns:
            place = {"scope": "campaign", "organization": owner.name, "campaign": campaign.name}
            yield place | _flat(campaign)


def _flat(figures: Figures) -> dict[str, Any]:
    """The figures as one row of a table."""
    row = {field.name: getattr(figures, field.name) for field in fields(Figures)}
    reach = row.pop("reach_by_attempt")
    held_back = row.pop("held_back")
    analyses, webhooks = row.pop("analyses"), row.pop("webhooks")
    row |= {f"reach_by_attempt_{number}": share for number, share in enumerate(reach, 1)}
    row["held_back"] = held_back.reason.value if held_back else None
    row["held_back_sentence"] = held_back.sentence if held_back else None
    parts = {"analyses": analyses, "webhooks": webhooks}
    row |= {
        f"{part}_{field.name}": getattr(figures, field.name)
        for part, figures in parts.items()
        for field in fields(figures)
        if field.name not in ("funnel", "fields")
    }
    row |= {f"funnel_{count.agent}_{count.step}": count.reached for count in analyses.funnel}
    return row


def _plain(value: Any) -> Any:
    """A value of the summary as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {}
        for name in _ordered(value):
            part = getattr(value, name)
            plain[name] = _plain(part)
            if name in _INSTANTS:
                plain[f"{name}_thai"] = _text(in_thai_time(part)) if part else None
        return plain
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, datetime):
        return _text(value.astimezone(UTC))
    return value.value if isinstance(value, StrEnum) else value


_MAY_BE_NONE = (
    "reach_share",
    "attempts_per_person_mean",
    "slots_in_use_mean",
    "slots_capacity_share",
    "queue_wait_mean_seconds",
    "queue_wait_p95_seconds",
    "cost",
)
_INSTANTS = ("finish", "final_at", "start", "end", "at")
_FIGURES = [field.name for field in fields(Figures)]


def _ordered(value: Any) -> list[str]:
    """The names of the fields: what it is, then its figures, then its parts."""
    names = [field.name for field in fields(value)]
    if not isinstance(value, Figures):
        return names
    own = [name for name in names if name not in _FIGURES]
    parts = [name for name in own if isinstance(getattr(value, name), tuple)]
    return [*(name for name in own if name not in parts), *_FIGURES, *parts]


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Part:
    """A campaign, or several added up, ready to be put into figures.

    `finish` and `final_at` (ms) are infinite where a scheduled campaign has none, and -infinite
    where nothing was scheduled.
    """

    lives: tuple[CampaignTimeline, ...]
    finish: float
    final_at: float
    tally: Tally
    occupancy: Occupancy
    held_back: Bottleneck | None
    analyses: AnalysisTally
    deliveries: DeliveryTally


def sum_up(reading: RunView) -> Summary:
    """The summary of a run."""
    trace, scenario = reading.trace, reading.world.scenario
    wholes, organizations = [], []
    for block in reading.world.organizations:
        campaigns, occupancy = _campaigns(reading, block.position)
        wholes.append(_together(campaigns, occupancy))
        organizations.append(
            OrganizationSummary(
                **_figures(wholes[-1], scenario.costs),
                name=block.name,
                limits=_limits(reading, block.position),
                campaigns=tuple(_campaign(part, scenario.costs) for part in campaigns),
            )
        )
    run = _together(wholes, Occupancy.total(part.occupancy for part in wholes))
    return Summary(
        **_figures(run, scenario.costs),
        scenario=scenario.name,
        seed=trace.world.seed,
        replication=trace.world.replication,
        end=_instant(trace.end),
        cut=trace.cut,
        unfinished=tuple(life.full_name for life in reading.unfinished),
        stalled=tuple(life.full_name for life in reading.lives.values() if life.stalled),
        refused=_refused(reading),
        warnings=reading.world.warnings,
        organizations=tuple(organizations),
    )


def _campaigns(reading: RunView, organization: int) -> tuple[list[_Part], Occupancy]:
    """The campaigns of an organization, and its use of slots as a whole."""
    slots, costs = reading.slots[organization], reading.world.scenario.costs
    parts = []
    for position, life in reading.lives.items():
        if position[0] != organization:
            continue
        ledger, states = reading.ledgers[position], reading.states[position]
        tally = take_tally(ledger, states, costs)
        use, exhausted = reading.time_uses[position], attempts_of_exhausted(ledger, states)
        parts.append(
            _Part(
                lives=(life,),
                finish=_last(life, reading.finishes[position]),
                final_at=_last(life, life.final_at),
                tally=tally,
                occupancy=Occupancy.of(reading.busy[position], slots.allowed, life.open),
                held_back=held_back(
                    life, use, tally.people, exhausted, _setting(reading, life, use)
                ),
                analyses=tally_analyses(
                    reading.streams[position],
                    reading.verdicts[position],
                    reading.block(position).agent,
                ),
                deliveries=tally_deliveries(reading.streams[position]),
            )
        )
    opened = union(part.occupancy.open for part in parts)
    return parts, Occupancy.of(slots.busy, slots.allowed, opened)


def _setting(reading: RunView, life: CampaignTimeline, use: TimeUse) -> Setting:
    """What bounded a campaign while it ran."""
    slots, own = reading.slots[life.position[0]], reading.busy[life.position]
    start = life.end if life.start is None else min(life.start, life.end)
    inside = slots.allowed.at[(slots.allowed.at > start) & (slots.allowed.at < life.end)]
    limits = slots.allowed(np.append(inside, start))
    of_all = slots.busy.integral(use.slot_spans)
    return Setting(
        least_limit=int(limits.min()),
        most_limit=int(limits.max()),
        last_limit=int(slots.allowed(np.array([life.end]))[0]),
        mostly_others=2 * own.integral(use.slot_spans) < of_all,
        engine=reading.world.scenario.engine,
    )


def _together(parts: Sequence[_Part], occupancy: Occupancy) -> _Part:
    """Several campaigns or organizations as one; held back as the one that finished last."""
    lives = [life for part in parts for life in part.lives]
    scheduled = [part for part in parts if any(life.request for life in part.lives)]
    last = max(scheduled or parts, key=lambda part: (part.finish, part.final_at), default=None)
    return _Part(
        lives=tuple(lives),
        finish=max((part.finish for part in parts), default=-inf),
        final_at=max((part.final_at for part in parts), default=-inf),
        tally=add_up([part.tally for part in parts]),
        occupancy=occupancy,
        held_back=last.held_back if last else None,
        analyses=add_up_analyses([part.analyses for part in parts]),
        deliveries=add_up_deliveries([part.deliveries for part in parts]),
    )


def _last(life: CampaignTimeline, instant: int | None) -> float:
    """An instant of a campaign, by which the last of several is found."""
    if instant is not None:
        return instant
    return -inf if life.request is None else inf


def _campaign(part: _Part, costs: Costs | None) -> CampaignSummary:
    (life,) = part.lives
    return CampaignSummary(
        **_figures(part, costs),
        organization=life.organization,
        name=life.name,
        status=life.status.value,
        start=None if life.start is None else _instant(life.start),
    )


def _figures(part: _Part, costs: Costs | None) -> dict[str, Any]:
    """The fields of `Figures`."""
    tally, people = part.tally, part.tally.people
    return {
        "finish": _instant(int(part.finish)) if isfinite(part.finish) else None,
        "final_at": _instant(int(part.final_at)) if isfinite(part.final_at) else None,
        "calling_days": len(tally.days),
        "people": people.people,
        "people_reached": people.reached,
        "people_exhausted": people.exhausted,
        "people_expired": people.expired,
        "people_cancelled": people.cancelled,
        "people_lost": people.expired + people.cancelled,
        "people_stalled": people.stalled,
        "people_pending": people.pending,
        "people_unscheduled": people.unscheduled,
        "people_removed": people.removed,
        "reach_share": _share(people.reached, people.people),
        "reach_by_attempt": tuple(
            int(reached) / people.people for reached in np.cumsum(tally.reached)
        ),
        **_calls(tally),
        "slots_in_use_mean": part.occupancy.mean,
        "slots_in_use_peak": part.occupancy.busy.peak,
        "slots_capacity_share": part.occupancy.share,
        **_waits(tally),
        "talk_minutes": tally.talk_ms / 60_000,
        "cost": _cost(tally, costs),
        "currency": costs.currency if costs else None,
        "held_back": part.held_back,
        "analyses": AnalysisFigures.of(part.analyses),
        "webhooks": WebhookFigures.of(part.deliveries),
    }


def _calls(tally: Tally) -> dict[str, Any]:
    attempts = tally.ended()
    calls = int(tally.by_kind.sum())
    over = {
        "calls_completed": tally.ended("COMPLETED"),
        "calls_no_answer": tally.ended("NO_ANSWER"),
        "calls_busy": tally.ended("BUSY"),
        "calls_failed": tally.ended("FAILED"),
        "queue_timeouts": tally.dropped("queue_timeout"),
        "calls_cancelled": tally.dropped("cancelled", "deleted"),
        "calls_expired": tally.dropped("expired"),
    }
    return {
        "calls": calls,
        **over,
        "calls_unfinished": calls - sum(over.values()),
        "dials": tally.dials,
        "dials_withdrawn": tally.withdrawn,
        "attempts": attempts,
        "attempts_per_person_mean": _share(attempts, tally.people.people),
    }


def _waits(tally: Tally) -> dict[str, float | None]:
    waits = tally.waits_ms
    if not len(waits):
        return {"queue_wait_mean_seconds": None, "queue_wait_p95_seconds": None}
    return {
        "queue_wait_mean_seconds": int(waits.sum()) / len(waits) / 1000,
        "queue_wait_p95_seconds": float(np.quantile(waits, 0.95)) / 1000,
    }


def _cost(tally: Tally, costs: Costs | None) -> float | None:
    if costs is None:
        return None
    per_increment = costs.per_minute * costs.billing_increment / 60_000
    return tally.charged_dials * costs.per_dial + tally.charged_increments * per_increment


def _limits(reading: RunView, organization: int) -> tuple[Limit, ...]:
    return tuple(
        Limit(_instant(row.at), row.limit) for row in reading.trace.limits_of(organization)
    )


def _refused(reading: RunView) -> tuple[RefusedAction, ...]:
    organizations = reading.world.organizations
    return tuple(
        RefusedAction(
            at=_instant(row.at),
            organization=organizations[row.organization].name,
            campaign=None
            if row.campaign is None
            else organizations[row.organization].campaigns[row.campaign].name,
            action=row.action,
            code=row.code,
            message=row.message,
        )
        for row in reading.trace.refused
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _instant(at: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at)


_DONE_BY_CALL = [PERSON_STATES.index(s) for s in (PersonState.REACHED, PersonState.EXHAUSTED)]


@dataclass(frozen=True, slots=True)
class Progress:
    """Sorted instants (ms) at which people were reached, and were done with.

    Someone reached is done with when the conversation ends, someone not reached when the last
    attempt ends or the campaign does. Who was reached before the scenario begins counts from the
    campaign's start. `people` are all on the lists.
    """

    people: int
    reached: NDArray[np.int64]
    done: NDArray[np.int64]

    @classmethod
    def of(cls, reading: RunView, lives: Iterable[CampaignTimeline]) -> Progress:
        """That of some campaigns together."""
        parts = [_instants(reading, life) for life in lives]
        return cls(
            people=sum(people for people, _, _ in parts),
            reached=_sorted([reached for _, reached, _ in parts]),
            done=_sorted([done for _, _, done in parts]),
        )

    def marks(self, count: int) -> tuple[int, ...]:
        """When 1/count, 2/count, … of the people had been reached; shares never reached are not."""
        ranks = [-(-share * self.people // count) for share in range(1, count + 1)]
        return tuple(int(self.reached[rank - 1]) for rank in ranks if 0 < rank <= len(self.reached))


def _instants(
    reading: RunView, life: CampaignTimeline
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """How many people a campaign has, when each was reached, and done with, if they were."""
    ledger, states = reading.ledgers[life.position], reading.states[life.position]
    start = life.end if life.start is None else life.start
    before = (states == _DONE_BY_CALL[0]) & ledger.past_reached
    answered = ledger.started_at[ledger.started_at != NEVER]
    by_call = np.isin(states, _DONE_BY_CALL)
    # of a person without a call here, the history alone has settled it
    ended = ledger.of_newest(ledger.ended_at, start)[by_call]
    over = np.count_nonzero(np.isin(states, LOST))
    return (
        int(np.count_nonzero(listed(states))),
        np.concatenate([np.full(np.count_nonzero(before), start), answered]),
        np.concatenate([ended[ended != NEVER], np.full(over, life.end)]),
    )


def _sorted(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
