"""The prior: certain is only what no draw can change, and a run may spill over by so much."""

from __future__ import annotations

from typing import Any

import pytest

from dialsim.experiments.prior import prior_of
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
    prior = prior_of(WITHOUT[name])
    assert prior.calls
    runs = [
        run for seed in (1, 2, 3) for run in replicate(WITHOUT[name], 3, seed=seed, jobs=1).figures
    ]
    for figures in zip(*(run.scopes for run in runs), strict=True):
        for figure in figures[0].values:
            values = {repr(part.values[figure]) for part in figures}
            assert len(values) == 1 or not prior.certain(figure), figure


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
    prior = prior_of(CHANCE[name])
    assert (prior.calls, prior.results) == (False, False)
    assert not prior.certain("finish")


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
    prior = prior_of(AFTER_CALLS[name])
    assert (prior.calls, prior.results) == (True, False)
    assert prior.certain("finish_seconds")
    for figure in ("webhooks_lost", "analyses_failed", "funnel_Agent_Greeted"):
        assert not prior.certain(figure)


def test_a_run_may_spill_over_the_longest_closing_and_by_a_retry_and_a_call() -> None:
    # the built-in default: 14 h to 09:00, 15 h to Saturday 10:00; an hour; 3 s, 28 s and 10 min
    call = 3_000 + 28_000 + 600_000
    assert prior_of(load("scenarios/first-campaign.yaml")).spill_ms == 15 * HOUR + HOUR + call
    # open except for a minute; 10 min until a retry; unlimited talk gives no bound
    open_all_day = prior_of(crowd(attempts=2, **CHANCY))
    assert open_all_day.spill_ms == 60_000 + 600_000 + 1_000 + 20_000
    windows = '[{dayOfWeek: 1, time: [{start: "09:00", end: "10:00"}]}]'
    monday = crowd().with_(f"{ACME}.campaigns.January.schedule.timeWindows={windows}")
    assert prior_of(monday).spill_ms == 7 * DAY - HOUR + 600_000 + 61_000
