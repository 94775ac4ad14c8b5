"""Real runs, read by the columns and once more row by row."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialsim
from dialsim.interface.instants import thai
from dialsim.results.campaigns import CampaignTimeline
from dialsim.results.result import Result
from engine.readings import loaded
from oracle.scenarios import random_scenario
from results import naive

SEEDS = range(40)
STATES = {"reached", "exhausted", "expired", "cancelled", "stalled", "pending", "unscheduled"}


@cache
def nasty(seed: int) -> Result:
    """A run of a scripted scenario in which much happens at once; some have costs."""
    scenario = random_scenario(seed)
    if seed % 2:
        scenario["costs"] = {"perDial": 0.1, "perMinute": 1.2, "billingIncrement": "7s"}
    return dialsim.run(loaded(scenario))


def ms(column: pd.Series[Any]) -> list[int | None]:
    return [None if pd.isna(at) else at.value // 1_000_000 for at in column]


def plain(column: pd.Series[Any]) -> list[Any]:
    return [None if pd.isna(value) else value for value in column]


@pytest.mark.parametrize("seed", SEEDS)
def test_calls_are_what_the_log_says_row_by_row(seed: int) -> None:
    result = nasty(seed)
    expected = naive.calls(result.trace)
    calls = result.calls
    world = result.trace.world
    names = [(block.name, [c.name for c in block.campaigns]) for block in world.organizations]
    assert list(
        zip(calls.organization, calls.campaign, calls.recipient, calls.call, strict=True)
    ) == [(names[o][0], names[o][1][c], r, n) for o, c, r, n in expected]
    for column in ("status", "attempt", "caller_id"):
        assert plain(calls[column]) == [getattr(call, column) for call in expected.values()]
    for column in (
        *("created_at", "queued_at", "initiated_at", "ringing_at"),
        *("call_started_at", "call_ended_at"),
    ):
        assert ms(calls[column]) == [getattr(call, column) for call in expected.values()]
    assert plain(calls.call_duration_ms) == [call.talk_ms for call in expected.values()]
    costs = world.scenario.costs
    assert plain(calls.cost) == [
        None if costs is None else pytest.approx(naive.cost(call, costs))
        for call in expected.values()
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_t4_transitions_are_the_log_in_the_order_of_the_rule(seed: int) -> None:
    result = nasty(seed)
    table = result.transitions
    names = result.trace.world.organizations
    assert list(
        zip(
            *(ms(table["at"]), table.organization, table.campaign, table.recipient, table.call),
            *(plain(table[column]) for column in ("from_status", "to_status", "phase", "cause")),
            strict=True,
        )
    ) == [
        (at, names[o].name, names[o].campaigns[c].name, recipient, call, *change)
        for at, o, c, recipient, call, change, _ in naive.sorted_log(result.trace)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_sequences_are_the_transitions_without_the_phases(seed: int) -> None:
    result = nasty(seed)
    places = ["organization", "campaign", "recipient"]
    expected = dict.fromkeys(result.sequences.index, "")
    for (*place, _), rows in result.transitions.groupby([*places, "call"], observed=True):
        chosen = rows[rows.cause.isin(["ringing", "answered"]).eq(False)]
        text = " ".join(chosen.to_status)
        before = expected[tuple(place)]
        expected[tuple(place)] = f"{before} | {text}" if before else text
    assert result.sequences.to_dict() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_every_recipient_is_in_the_one_state_that_its_calls_lead_to(seed: int) -> None:
    result = nasty(seed)
    trace, people = result.trace, result.recipients
    places = [
        (o, c, recipient)
        for o, block in enumerate(trace.world.organizations)
        for c, campaign in enumerate(block.campaigns)
        for recipient in range(campaign.people.count)
        if not naive.removed(trace, o, c, recipient)
    ]
    pasts = {place: naive.history(trace, *place) for place in places}
    calls: dict[tuple[int, int, int], list[naive.NaiveCall]] = {place: [] for place in places}
    for (*place, _), call in naive.calls(trace).items():
        calls[tuple(place)].append(call)
    assert [*people.recipient] == [recipient for *_, recipient in places]
    assert plain(people.state) == [naive.state(trace, (o, c), r) for o, c, r in places]
    assert plain(people.latest_call_status) == [
        calls[place][-1].status if calls[place] else past and past.latest_call_status
        for place, past in pasts.items()
    ]
    assert plain(people.call_attempt) == [
        sum(call.cause == "ended" for call in calls[place]) + (past.call_attempt if past else 0)
        for place, past in pasts.items()
    ]
    assert ms(people.reached_at) == [
        past.last_ended_at
        if past and past.reached
        else next((call.call_started_at for call in calls[place] if call.call_started_at), None)
        for place, past in pasts.items()
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_summary_adds_up_and_agrees_with_the_tables(seed: int) -> None:
    result = nasty(seed)
    summary = result.summary
    for part in (summary, *summary.organizations, *summary.campaigns):
        assert part.people == sum(getattr(part, f"people_{state}") for state in STATES)
        assert part.calls == (
            part.attempts
            + part.queue_timeouts
            + part.calls_cancelled
            + part.calls_expired
            + part.calls_unfinished
        )
        assert part.attempts == (
            part.calls_completed + part.calls_no_answer + part.calls_busy + part.calls_failed
        )
        share = part.people_reached / part.people if part.people else None
        assert (part.reach_by_attempt[-1:] or (0,))[0] == pytest.approx(share or 0)
    calls, transitions = result.calls, result.transitions
    assert summary.calls == len(calls)
    assert summary.dials == (transitions.cause == "dialled").sum()
    waits = [wait for call in naive.calls(result.trace).values() for wait in call.waits]
    if waits:
        assert summary.queue_wait_mean_seconds == pytest.approx(np.mean(waits) / 1000)
        assert summary.queue_wait_p95_seconds == pytest.approx(np.quantile(waits, 0.95) / 1000)
    assert summary.talk_minutes == pytest.approx(float(calls.call_duration_ms.sum()) / 60_000)
    if summary.cost is not None:
        assert summary.cost == pytest.approx(calls.cost.sum())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_campaign_finishes_when_all_are_settled_by_calling_and_is_final_whatever_becomes_of_them(
    seed: int,
) -> None:
    result = nasty(seed)
    summary, table = result.summary, result.campaigns
    finishes, finals = [], []
    for campaign in summary.campaigns:
        own, calls, people = (
            frame[(frame.organization == campaign.organization) & (frame.campaign == campaign.name)]
            for frame in (table, result.calls, result.recipients)
        )
        final = own[own.to_status.isin(["COMPLETED", "EXPIRED", "CANCELLED"])]["at"]
        final_at = final.iloc[0].to_pydatetime() if len(final) else None
        lost = people.state.isin(["expired", "cancelled"]).sum()
        open_calls = calls.status.isin(["SCHEDULED", "QUEUED", "INITIATED"]).any()
        settled = campaign.start and final_at and not lost and not open_calls
        last = max([final_at, *calls.call_ended_at.dropna()]) if settled else None
        assert (campaign.final_at, campaign.people_lost) == (final_at, lost)
        assert campaign.finish == last
        if settled and campaign.status == "COMPLETED":
            assert campaign.finish == final_at
        if campaign.start:
            finishes.append(last)
            finals.append(final_at)
        assert (f"{campaign.organization}/{campaign.name}" in summary.unfinished) == bool(
            campaign.start and last is None
        )
    assert summary.finish == (None if None in finishes or not finishes else max(finishes))
    if finals:
        drafts = [part.final_at for part in summary.campaigns if not part.start and part.final_at]
        assert summary.final_at == (None if None in finals else max([*finals, *drafts]))


@pytest.mark.parametrize("seed", SEEDS)
def test_calling_days_are_those_of_the_dials(seed: int) -> None:
    result = nasty(seed)
    for campaign in result.summary.campaigns:
        dials = result.transitions[
            (result.transitions.organization == campaign.organization)
            & (result.transitions.campaign == campaign.name)
            & (result.transitions.cause == "dialled")
        ]
        assert campaign.calling_days == len({thai(at).date() for at in ms(dials["at"]) if at})


def small(result: Result) -> list[CampaignTimeline]:
    """The campaigns of a run that are quickly walked through."""
    logs = [sum(map(len, logs)) for logs in result.trace.calls]
    return [
        life
        for life in result.reading.lives
        if life.start is not None and life.start < life.end and logs[life.position[0]] < 500
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_time_use_is_what_an_instant_by_instant_walk_finds(seed: int) -> None:
    result = nasty(seed)
    for life in small(result):
        assert life.start is not None
        walked = naive.NaiveTime(result.trace, life.position, life.start, life.end)
        walk = walked.shares()
        use = result.reading.campaigns[life.position].time_use
        assert {cause: getattr(use, cause) for cause in walk} == walk
        assert (use.lines_used, use.pace_used) == pytest.approx(walked.used())
        assert use.total + use.nights == life.end - life.start


def test_the_walks_meet_every_cause() -> None:
    uses = [
        nasty(seed).reading.campaigns[life.position].time_use
        for seed in SEEDS
        for life in small(nasty(seed))
    ]
    for cause in (*naive.CAUSES, "nights", "backlog", "pacing_in_queue", "lines_used", "pace_used"):
        assert any(getattr(use, cause) for use in uses), cause
