"""Summing up: from a reading of a trace to the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf, isfinite
from typing import Any

import numpy as np

from dialsim.results.campaign_life import CampaignLife
from dialsim.results.held_back import HeldBack, Setting, held_back
from dialsim.results.occupancy import Occupancy
from dialsim.results.reading import Reading
from dialsim.results.spans import union
from dialsim.results.stream.analysis_tally import (
    AnalysisTally,
    add_up_analyses,
    tally_analyses,
)
from dialsim.results.stream.delivery_tally import (
    DeliveryTally,
    add_up_deliveries,
    tally_deliveries,
)
from dialsim.results.stream.figures import AnalysisFigures, WebhookFigures
from dialsim.results.summary import (
    CampaignSummary,
    Limit,
    OrganizationSummary,
    RefusedAction,
    Summary,
)
from dialsim.results.tally import Tally, add_up, attempts_of_exhausted, take_tally
from dialsim.results.time_use import TimeUse
from dialsim.scenario.service import Costs

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Part:
    """A campaign, or several added up, ready to be put into figures.

    `finish` and `final_at` (ms) are infinite where a scheduled campaign has none, and -infinite
    where nothing was scheduled.
    """

    lives: tuple[CampaignLife, ...]
    finish: float
    final_at: float
    tally: Tally
    occupancy: Occupancy
    held_back: HeldBack | None
    analyses: AnalysisTally
    deliveries: DeliveryTally


def sum_up(reading: Reading) -> Summary:
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


def _campaigns(reading: Reading, organization: int) -> tuple[list[_Part], Occupancy]:
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


def _setting(reading: Reading, life: CampaignLife, use: TimeUse) -> Setting:
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


def _last(life: CampaignLife, instant: int | None) -> float:
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


def _limits(reading: Reading, organization: int) -> tuple[Limit, ...]:
    return tuple(
        Limit(_instant(row.at), row.limit)
        for row in reading.trace.limits
        if row.organization == organization
    )


def _refused(reading: Reading) -> tuple[RefusedAction, ...]:
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
