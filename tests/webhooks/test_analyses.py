"""Analyses: shares of flaws, steps and values against the scenario's, and what they change."""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import Any

import pandas as pd
import pytest

import dialsim
from dialsim.results.result import Result
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.testing import Sketch
from dialsim.testing.sketch import When

PEOPLE = 2_000
RATES = {
    "silent": 0.05,
    "agentError": 0.04,
    "notRecorded": 0.03,
    "analysisUnavailable": 0.06,
    "analysisFailed": 0.1,
    "lateResult": 0.3,
}
SOUND = 1 - 0.05 - 0.04 - 0.03 - 0.06 - 0.1
ANALYSIS = {
    "funnel": [
        {"step": "Greeted", "share": 0.95},
        {"step": "Identified", "share": 0.8},
        {"step": "Promised", "share": 0.35},
    ],
    "fields": {
        "promise": {"type": "boolean", "required": True, "values": {"true": 0.35, "false": 0.65}},
        "mood": {"type": "string", "values": {"calm": 0.6, "tired": 0.3, "upset": 0.1}},
    },
}


def sketch(people: int, rates: Any = RATES, end: When | None = None) -> Sketch:
    """All people are called at once, and answer."""
    return (
        Sketch(PEOPLE, end=end, setup_time="1s", queue_limit="unlimited")
        .agent("Reminder", analysis=ANALYSIS)
        .behaviour(
            "default",
            outcomes={"answered": 1},
            talk_time="60s",
            ring_time={"answered": "5s"},
            late_result_delay="30m",
            rates=rates,
        )
        .behaviour("other", outcomes={"answered": 1}, rates={"silent": 1}, analysis_delay="5m")
        .campaign(
            "January", recipients={"count": people}, agent="Reminder", windows="Mon 00:00-23:59"
        )
    )


def run(sketch: Sketch) -> Result:
    return dialsim.run(sketch.scenario())


@cache
def everybody() -> Result:
    return run(sketch(PEOPLE))


def close(count: int, share: float, of: int = PEOPLE) -> bool:
    """True if a count is within four standard errors of its expectation."""
    return abs(count - of * share) <= 4 * sqrt(of * share * (1 - share))


def test_one_draw_is_shared_out_among_the_flaws() -> None:
    figures = everybody().summary.analyses
    assert figures.conversations == PEOPLE
    assert close(figures.no_conversation, 0.05)
    assert close(figures.not_analyzed, 0.07)
    assert close(figures.unavailable, 0.06)
    assert close(figures.failed, 0.1 * 0.7)
    assert close(figures.analyzed, SOUND + 0.1 * 0.3)
    errors = (everybody().calls.agent_status == "ERROR").sum()
    assert close(int(errors), 0.04)


def test_a4_failed_analyses_and_late_results_are_changes_of_the_call() -> None:
    changes = everybody().transitions.query("cause in ('analysis_failed', 'late_result')")
    counts = changes.cause.value_counts()
    assert close(counts["analysis_failed"], 0.1)
    assert close(counts["late_result"], 0.03)
    for cause, steps, minutes in (
        ("analysis_failed", ("COMPLETED", "ANALYSIS_FAILED"), 0),
        ("late_result", ("ANALYSIS_FAILED", "COMPLETED"), 30),
    ):
        rows = changes[changes.cause == cause]
        assert set(zip(rows.from_status, rows.to_status, strict=True)) == {steps}
        ended = everybody().calls.set_index("recipient").call_ended_at[rows.recipient]
        passed = rows["at"].to_numpy() - ended.to_numpy()
        assert (passed == pd.Timedelta(minutes=minutes, seconds=20)).all()
    statuses = everybody().calls.status.value_counts()
    assert statuses["ANALYSIS_FAILED"] == counts["analysis_failed"] - counts["late_result"]
    assert everybody().summary.calls_completed == PEOPLE


def test_funnel_steps_and_field_values_have_the_shares_of_the_scenario() -> None:
    figures = everybody().summary.analyses
    for count, step in zip(figures.funnel, ANALYSIS["funnel"], strict=True):
        assert (count.agent, count.step) == ("Reminder", step["step"])
        assert close(count.reached, step["share"], figures.analyzed)
    reached = [count.reached for count in figures.funnel]
    assert reached == sorted(reached, reverse=True)
    shares = {("promise", "true"): 0.35, ("promise", "false"): 0.65}
    shares |= {("mood", "calm"): 0.6, ("mood", "tired"): 0.3, ("mood", "upset"): 0.1}
    assert {(count.field, count.value) for count in figures.fields} == {*shares}
    for count in figures.fields:
        assert close(count.count, shares[count.field, count.value], figures.analyzed)


def test_the_calls_table_shows_what_came_of_each_conversation() -> None:
    calls, figures = everybody().calls, everybody().summary.analyses
    assert calls.analysis.value_counts().to_dict() == {
        "analyzed": figures.analyzed,
        "no_conversation": figures.no_conversation,
        "unavailable": figures.unavailable,
        "not_analyzed": figures.not_analyzed,
        "failed": figures.failed,
        "pending": 0,
    }
    funnel = calls.funnel.value_counts()
    promised, identified, greeted = (count.reached for count in reversed(figures.funnel))
    assert funnel["Promised"] == promised
    assert funnel["Identified"] == identified - promised
    assert funnel["Greeted"] == greeted - identified
    fallbacks = figures.no_conversation + figures.unavailable
    assert funnel["Unknown"] == figures.analyzed - greeted + fallbacks


def test_draws_of_a_conversation_depend_on_nothing_that_happens_around_it() -> None:
    few, many = (
        {
            body["payload"]["call"]["id"]: body["payload"]["callResult"]
            for body in run(sketch(count)).webhooks.body
        }
        for count in (3, 200)
    )
    assert few.items() <= many.items()


def test_analyses_change_nothing_about_the_dialling() -> None:
    engine = everybody().transitions.query("cause not in ('analysis_failed', 'late_result')")
    without = run(sketch(PEOPLE, {}))
    pd.testing.assert_frame_equal(engine.reset_index(drop=True), without.transitions)
    assert everybody().summary.finish == without.summary.finish


def test_a1_delay_and_rates_are_those_of_the_behaviour_dialled_under() -> None:
    ten, change = sketch(10, {}), ("setBehaviour", "other")
    dialled = run(ten.at(3, *change, agent="Reminder"))
    assert set(dialled.calls.analysis) == {"analyzed"}
    delay = dialled.webhooks.ready_at - dialled.calls.call_ended_at.iloc[0]
    assert set(delay) == {pd.Timedelta(seconds=20)}
    before = run(ten.at(0, *change, agent="Reminder"))
    assert set(before.calls.analysis) == {"no_conversation"}


def test_a_run_that_ends_first_leaves_analyses_pending() -> None:
    result = run(sketch(5, {}, end="Mon 09:01:10"))
    assert set(result.calls.analysis) == {"pending"}
    assert result.calls.funnel.isna().all()
    assert result.summary.analyses.pending == 5
    assert len(result.webhooks) == 0


@pytest.mark.parametrize(
    "share", [0.3, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.0, 1.0))]
)
def test_a5_a_share_of_the_delivered_is_analyzed_again_and_draws_anew(share: float) -> None:
    simulation = dialsim.Simulation(sketch(1_000).scenario())
    simulation.advance(minutes=10)
    simulation.reanalyze("January", share)
    result = Result(simulation.run())
    delivered = result.webhooks.query("result == 0 and ready_at < '2026-01-05T02:10:00Z'")
    again = result.webhooks.query("result == 1")
    assert set(again.recipient) <= set(delivered.recipient)
    assert result.summary.analyses.reanalyses == len(again)
    # a fallback after a good result is not sent: of the sound ones only those sound again are
    spoilt = 0.05 + 0.04 + 0.03
    sound = len(delivered) * SOUND / (SOUND + 0.05 + 0.06)
    good_again = SOUND / (1 - spoilt)
    silent = len(delivered) * 0.05 / (SOUND + 0.05 + 0.06)
    unavailable = len(delivered) - sound - silent
    expected = share * (sound * good_again + silent + unavailable * (SOUND + 0.06) / (1 - spoilt))
    assert abs(len(again) - expected) <= 4 * sqrt(expected) + share * 20
    bodies = result.webhooks.body
    first = {recipient: bodies[row] for row, recipient in delivered.recipient.items()}
    same = [
        bodies[row]["payload"]["callResult"] == first[recipient]["payload"]["callResult"]
        for row, recipient in again.recipient.items()
    ]
    assert not again.size or 0 < sum(same) < len(same)


def test_a5_one_call_is_analyzed_again_alone_and_only_once_delivered() -> None:
    simulation = LiveEngine(sketch(30, {}).scenario())
    january = simulation.campaign(0, 0)
    simulation.advance(seconds=66)  # all have talked, and nothing is analyzed yet
    january.reanalyze_call(5, 1)
    simulation.advance(minutes=10)
    for recipient in (3, 7, 3):
        january.reanalyze_call(recipient, 1)
    result = Result(simulation.run())
    again = result.webhooks.query("result > 0")
    assert [*zip(again.recipient, again.result, strict=True)] == [(3, 2), (3, 4), (7, 3)]
    assert {body["payload"]["isReAnalysis"] for body in again.body} == {True}
    assert result.summary.analyses.reanalyses == 3


@pytest.mark.parametrize(("recipient", "call"), [(-1, 1), (3, 1), (0, 0), (0, 2)])
def test_a_call_that_is_not_there_is_not_analyzed_again(recipient: int, call: int) -> None:
    simulation = LiveEngine(sketch(3).scenario())
    with pytest.raises(dialsim.Refused, match="Call not found"):
        simulation.campaign(0, 0).reanalyze_call(recipient, call)
    assert simulation.trace.reanalyses == []
