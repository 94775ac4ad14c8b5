"""Known bounds: certain is only what no draw can change, and a run may spill over by so much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dialsim.experiments.known_bounds import known_bounds_of
from dialsim.experiments.replications import replicate
from dialsim.scenario.loading import load
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch
from dialsim.testing.sketch import NUMBERS
from experiments.scenarios import CHANCY, START, crowd

ACME = "organizations.Acme"
HOUR, DAY = 3_600_000, 86_400_000


def scripted(script: str | None = "noAnswer 25s; answered 5s 90s", **plain: Any) -> Sketch:
    """Five people who do what is written, and behaviour to go with it."""
    plain = {"setup_time": "1s", "outcomes": {"answered": 0.4, "noAnswer": 0.6}, **plain}
    return (
        Sketch(2, start=START, setup_time=None)
        .having(caller_ids=NUMBERS[:2])
        .agent(behaviour="plain")
        .behaviour("default")
        .behaviour("plain", **plain)
        .campaign(
            "January",
            *[{"script": script} if script else {}] * 5,
            max_attempts=2,
            retry_interval="10m",
        )
    )


def analysis(**more: Any) -> Scenario:
    return scripted().agent(analysis=more).scenario()


def receiver(**behaves: Any) -> Sketch:
    return scripted().having(webhook={"url": "https://example.test/hook", "receiver": behaves})


REANALYSIS = ("Mon 16:00", "reanalyze", "January")

WITHOUT = {
    "scripts, a constant setup, and odds that nobody asks": scripted(
        people={"reachable": 0.5, "concentration": 2}, talk_time=CHANCY["talkTime"]
    ).scenario(),
    "scripts, and caller IDs drawn that change nothing": scripted().scenario(
        f'{ACME}.campaigns.January.schedule.callerIds=["021000001","021000002"]'
    ),
    "one outcome, and constants": crowd(),
    "one outcome whatever the hour": crowd().with_(
        "behaviours.default.answeredOdds={byHour: {9: 0.5}, byAttempt: [1, 0.3]}"
    ),
    "nobody ever answers": crowd(outcomes={"noAnswer": 1.0}, attempts=3),
    "an analysis that always says the same": analysis(
        funnel=[{"step": "Greeted", "share": 1}, {"step": "Bought", "share": 0}],
        fields={"mood": {"type": "string", "values": {"good": 1}}},
    ),
    "everybody analyzed again, and a receiver that is always as slow": (
        receiver(latency="300ms").at(*REANALYSIS).scenario()
    ),
    "the lesson of scripts": load("scenarios/scripted.yaml"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_is_called_certain_is_the_same_in_all_runs_of_all_seeds(name: str) -> None:
    bounds = known_bounds_of(WITHOUT[name])
    assert bounds.calls
    runs = [
        run for seed in (1, 2, 3) for run in replicate(WITHOUT[name], 3, seed=seed, jobs=1).figures
    ]
    for figures in zip(*(run.scopes for run in runs), strict=True):
        for figure in figures[0].values:
            values = {repr(part.values[figure]) for part in figures}
            assert len(values) == 1 or not bounds.certain(figure), figure


CHANCE = {
    "a person without a script": scripted(None).scenario(),
    "a setup time that is drawn": scripted(
        setup_time={"dist": "uniform", "low": "1s", "high": "2s"}
    ).scenario(),
    "a behaviour that a timeline brings, with such a setup time": (
        scripted().at(0, "setBehaviour", "default").scenario()
    ),
    "two outcomes": crowd(outcomes={"answered": 0.4, "noAnswer": 0.6}),
    "a rare outcome": crowd(outcomes={"answered": 0.9999999, "noAnswer": 1e-7}),
    "people who differ": crowd(outcomes={"answered": 0.5, "noAnswer": 0.5}).with_(
        "behaviours.default.people={concentration: 2}"
    ),
    "a talk time that is drawn": crowd(talkTime=CHANCY["talkTime"]),
    "a ring time that is drawn": crowd(
        ringTime={"answered": {"dist": "uniform", "low": "1s", "high": "2s"}}
    ),
    "answers that odds of 0 turn into a ring time that is drawn": crowd(
        ringTime={"answered": 0, "noAnswer": {"dist": "exponential", "mean": "9s"}}
    ).with_("behaviours.default.answeredOdds={byHour: {0: 0}}"),
    "segments that are made up": crowd().with_(
        f"{ACME}.campaigns.January.recipients.segments={{vip: 0.5, mass: 0.5}}",
        "behaviours.default.answeredOdds={bySegment: {vip: 0}}",
    ),
}


@pytest.mark.parametrize("name", CHANCE)
def test_each_source_of_chance_leaves_nothing_certain(name: str) -> None:
    bounds = known_bounds_of(CHANCE[name])
    assert (bounds.calls, bounds.results) == (False, False)
    assert not bounds.certain("finish")


AFTER_CALLS = {
    "a funnel": analysis(funnel=[{"step": "Greeted", "share": 0.5}]),
    "a field": analysis(fields={"mood": {"type": "string", "values": {"good": 0.5, "bad": 0.5}}}),
    "how long an analysis takes": scripted(analysis_delay=CHANCY["talkTime"]).scenario(),
    "what goes wrong in an answered call": crowd(rates={"silent": 0.1}),
    "which calls are analyzed again": scripted().at(*REANALYSIS, share=0.5).scenario(),
    "how slow the receiver is": receiver(latency=CHANCY["talkTime"]).scenario(),
    "the receiver's errors": receiver(errorRate=0.1).scenario(),
}


@pytest.mark.parametrize("name", AFTER_CALLS)
def test_chance_in_what_comes_of_calls_leaves_the_calls_certain(name: str) -> None:
    bounds = known_bounds_of(AFTER_CALLS[name])
    assert (bounds.calls, bounds.results) == (True, False)
    assert bounds.certain("finish_seconds")
    for figure in ("webhooks_lost", "analyses_failed", "funnel_Agent_Greeted"):
        assert not bounds.certain(figure)


def test_a_calendar_tells_calling_time_from_nights() -> None:
    windows = (
        '[{dayOfWeek: 1, time: [{start: "09:00", end: "10:00"}]}, {dayOfWeek: 2, time: '
        '[{start: "09:00", end: "10:00"}]}]'
    )
    scenario = crowd(attempts=2, **CHANCY).with_(
        f"{ACME}.campaigns.January.schedule.timeWindows={windows}"
    )
    (calendar,) = known_bounds_of(scenario).calendars
    # calling begins on Monday at 00:00 in Thailand
    monday, tuesday = (calendar.origin + day * DAY + 9 * HOUR for day in (0, 1))
    half, whole = HOUR // 2, HOUR
    found = calendar.finishes(np.array([monday + half, tuesday + half / 2]))
    day = (tuesday + 7 * HOUR) // DAY  # Thai days begin seven hours earlier
    assert calendar.left_on(day, np.array([monday, tuesday])).tolist() == [2 * whole, whole]
    assert found.closed.tolist() == [9 * HOUR, 9 * HOUR + 23 * HOUR]
    assert found.left.tolist() == [whole + half, half + half / 2]
    assert found.since.tolist() == [half, whole + half / 2]
    assert (found.night, found.before) == (6 * DAY - HOUR, 0)  # nobody finishes before Monday
    only = calendar.finishes(np.array([tuesday + half * 1.0]))
    assert (only.since.tolist(), only.before) == ([half], DAY - HOUR)
    assert calendar.longest_night == 6 * DAY - HOUR
    # 10 min until the only retry, 1 s and 20 s; talk without an upper end gives no bound
    assert calendar.retries == 600_000 + 1_000 + 20_000
    assert calendar.is_light


def test_pauses_are_closed_time() -> None:
    sketch = scripted().at("Mon 10:00", "pause", "January").at("Mon 11:00", "resume", "January")
    (calendar,) = known_bounds_of(sketch.scenario()).calendars
    at = calendar.origin + np.array([9.5, 11.5]) * HOUR
    found = calendar.finishes(at)
    assert np.diff(found.left).tolist() == [-HOUR]
    assert np.diff(found.closed).tolist() == [HOUR]


def test_a_pause_of_weeks_after_the_last_finish_is_a_long_night() -> None:
    sketch = scripted().at("Mon 12:00", "pause", "January").at(30 * DAY, "resume", "January")
    (calendar,) = known_bounds_of(sketch.scenario()).calendars
    found = calendar.finishes(calendar.origin + np.array([9.5, 10.5]) * HOUR)
    assert found.night > 28 * DAY
    assert found.left.tolist() == [2.5 * HOUR, 1.5 * HOUR]
    assert calendar.left_on(0, np.array([0.0])).tolist() == [0]  # before all windows


HEAVY = {
    "talk without an upper end": {"dist": "lognormal", "mean": "60s", "sd": "300s"},
    "a Weibull distribution wider than exponential": {"dist": "weibull", "mean": "1m", "sd": "2m"},
}


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_talk_times_are_told_from_light_ones(name: str) -> None:
    assert not known_bounds_of(crowd(talkTime=HEAVY[name])).calendars[0].is_light
    assert known_bounds_of(crowd(talkTime=HEAVY[name] | {"max": "10m"})).calendars[0].is_light


def test_lines_by_day_have_the_price_of_the_most_lines() -> None:
    free = crowd()
    priced = free.with_("costs.perLineDay=35", f"{ACME}.maxConcurrentCalls=8")
    assert known_bounds_of(free).line_prices == {}
    assert known_bounds_of(priced).line_prices == {"Acme": 280.0}


def test_the_number_of_people_is_certain_unless_duplicates_are_removed() -> None:
    assert known_bounds_of(scripted(None).scenario()).certain("people")
    alert = scripted(None).having(duplicate_call_alert={"window": "1d"}).scenario()
    assert not known_bounds_of(alert).certain("people")


@pytest.mark.parametrize(
    "settings", [(), ("engine.queueTimeout=20s", f"{ACME}.maxConcurrentCalls=1")]
)
def test_attempts_are_certain_where_everybody_is_called_once(settings: tuple[str, ...]) -> None:
    several = scripted(None).scenario().with_(*settings)
    once = several.with_(f"{ACME}.campaigns.January.schedule.maxAttempts=1")
    figures = ("attempts", "attempts_per_person_mean")
    assert all(known_bounds_of(once).certain(figure) for figure in figures)
    assert not any(known_bounds_of(several).certain(figure) for figure in figures)
    cut_off = once.with_(f"{ACME}.campaigns.January.schedule.endDateTime=2027-01-01T00:00:00Z")
    assert not known_bounds_of(cut_off).certain("attempts")
    runs = replicate(once, 20, seed=3, jobs=1).figures
    assert {run.scopes[0].values["attempts"] for run in runs} == {5}
    assert any(run.scopes[0].values["queue_timeouts"] for run in runs) == bool(settings)
