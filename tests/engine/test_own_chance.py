"""Probabilities of answers (P7) and their update by a history (P8), against naive integrals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import dialsim
from dialsim.engine.chance import Draws, Purpose
from dialsim.engine.own_chance import Odds, own_chances
from dialsim.engine.rules import DEAD
from dialsim.engine.world import World
from dialsim.testing import Sketch
from oracle.given import DAY, HOUR, MINUTE, instant
from oracle.own_chance import Reading
from oracle.scenarios import iso

NINE = instant("2026-01-05T02:00:00Z")  # Monday 09:00 in Thailand
OUTCOMES = {"answered": 0.4, "noAnswer": 0.3, "busy": 0.1, "failed": 0.2}
PEOPLE = 500
HISTORY = {"callAttempt": 2, "latestCallStatus": "NO_ANSWER", "lastEndedAt": iso(NINE + 3 * HOUR)}
ODDS = {
    "byHour": {"9": 0.5, "10": 0.7, "12": 0.2, "16": 2.0, "18": 3.0},
    "byDay": {"2": 1.6, "6": 0.4},
    "byAttempt": [1.0, 0.6, 1.5],
    "bySegment": {"vip": 3.0, "mass": 0.8},
}


def own(case: Reading, seed: int = 5) -> tuple[list[float], Draws]:
    """The own chances of many people who are all as in this case, and their draws."""
    person = {"tel": "0810000000", "history": case.history, "segment": case.segment}
    sketch = (
        Sketch(1, start=iso(NINE + 30 * DAY), setup_time=None)
        .behaviour("default", **case.behaviour)
        .campaign("A", recipients=[person] * PEOPLE, **case.schedule)
    )
    world = World(sketch.scenario(), seed)
    (block,) = world.organizations[0].campaigns
    behaviour = world.scenario.behaviours["default"]
    odds = Odds(behaviour.answered_odds, block.people)
    assert block.schedule is not None
    chances = own_chances(behaviour, odds, block.people, block.draws, block.schedule)
    return [chances[i] for i in range(PEOPLE)], block.draws


def check(case: Reading, tested: int = 4) -> None:
    """Check that each person's kind follows from the draw and the oracle's shares, and the odds."""
    chances, draws = own(case)
    attempts = case.history.get("callAttempt", 0) if case.history else 0
    kinds = np.array([draws.column(Purpose.REACHABLE, attempts)[i] for i in range(PEOPLE)])
    shares = case.shares
    clear = np.minimum(abs(kinds - shares["reachable"]), abs(1 - shares["dead"] - kinds)) > 1e-4
    found = np.array(chances)
    reachable = clear & (kinds < shares["reachable"])
    dead = clear & (kinds >= 1 - shares["dead"])
    assert (found[reachable] > 0).all()
    assert (found[dead] == DEAD).all()
    assert (found[clear & ~reachable & ~dead] == 0).all()
    for i in np.flatnonzero(reachable)[:tested].tolist():
        if case.behaviour["people"].get("concentration") is None:
            assert found[i] == pytest.approx(case.mean)
        else:
            draw = draws.column(Purpose.OWN_CHANCE, attempts)[i]
            assert case.at_most(chances[i]) == pytest.approx(draw, abs=1e-3)


def random_case(seed: int) -> Reading:
    rng = random.Random(f"own chance {seed}")
    people: dict[str, Any] = {"deadNumbers": rng.choice((0.0, 0.05, 0.2))}
    concentration = rng.choice((None, 0.6, 2.3, 2.3, 6, 100))
    people |= {} if concentration is None else {"concentration": concentration}
    people |= {"reachable": 0.7} if rng.random() < 0.5 else {}
    behaviour: dict[str, Any] = {"outcomes": OUTCOMES, "people": people}
    if rng.random() < 0.8:
        behaviour["answeredOdds"] = {key: o for key, o in ODDS.items() if rng.random() < 0.7}
    schedule: dict[str, Any] = {
        "startDateTime": iso(NINE + rng.choice((0, -37 * MINUTE, 2 * DAY))),
        "maxAttempts": 9,
        "retryInterval": rng.choice((5, 60, 300)) * MINUTE,
    }
    if rng.random() < 0.5:
        time = [{"start": "09:30", "end": "12:10"}, {"start": "16:00", "end": "18:45"}]
        schedule["timeWindows"] = [{"dayOfWeek": day, "time": time} for day in (1, 2, 3, 6)]
    status = rng.choice(("NO_ANSWER", "BUSY", "FAILED", "FAILED", "SCHEDULED", "CANCELLED"))
    ended = NINE + rng.randrange(5 * DAY)
    history = {
        "callAttempt": rng.choice((1, 1, 2, 2, 3, 5)),
        "latestCallStatus": status,
        "lastEndedAt": iso(ended),
    }
    return Reading(behaviour, schedule, rng.choice((None, "vip", "mass", "staff")), history)


@pytest.mark.parametrize("seed", range(30))
def test_p8_a_history_leaves_what_bayes_says(seed: int) -> None:
    check(random_case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(10, 20))
def test_p8_a_thousand_histories_leave_what_bayes_says(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        check(random_case(seed), tested=2)


def test_p7_without_a_history_people_are_as_the_behaviour_says() -> None:
    schedule = {"startDateTime": iso(NINE)}
    people = {"reachable": 0.7, "deadNumbers": 0.1, "concentration": 2.3}
    check(Reading({"outcomes": OUTCOMES, "people": people}, schedule))


def test_p8_who_by_the_behaviour_is_never_there_may_still_have_a_history() -> None:
    schedule = {"startDateTime": iso(NINE), "maxAttempts": 9, "retryInterval": 3_600_000}
    dead = {"outcomes": {"failed": 1.0}, "people": {"deadNumbers": 1.0}}
    assert set(own(Reading(dead, schedule, None, HISTORY))[0]) == {DEAD}
    sure = {"outcomes": {"answered": 0.5, "busy": 0.5}, "people": {"reachable": 0.5}}
    assert set(own(Reading(sure, schedule, None, HISTORY))[0]) == {0.0}


def test_p8_each_behaviour_reads_the_history_by_its_own_figures() -> None:
    # With `sure` half of the people answer at once and the others never: none is left.
    sketch = (
        Sketch(9, start=iso(NINE + DAY), setup_time=None)
        .behaviour("default", outcomes=OUTCOMES, people={"concentration": 6})
        .behaviour("sure", outcomes={"answered": 0.5, "busy": 0.5}, people={"reachable": 0.5})
        .campaign(
            "A", *[{"history": HISTORY}] * 100, start=iso(NINE), max_attempts=3, retry_interval="1h"
        )
    )
    as_it_was = dialsim.run(sketch.scenario()).summary
    assert 10 < as_it_was.people_reached < 50
    switched = sketch.at(0, "setBehaviour", "sure")
    assert dialsim.run(switched.scenario()).summary.people_reached == 0
