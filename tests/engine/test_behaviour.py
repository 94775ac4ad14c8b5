"""Reactions of people: the odds model against its formula, shares over all people, and scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dialsim.engine.behaviour import Reactions
from dialsim.engine.chance import Draws, Purpose
from dialsim.interface.instants import parse_instant
from dialsim.interface.schedule import ScheduleRequest
from dialsim.scenario.behaviour import Behaviour, Script, parse_script
from dialsim.scenario.campaign import Past

NOON = parse_instant("2026-01-05T05:00:00Z")  # Monday 12:00 in Thailand
HOUR, DAY = 3_600_000, 86_400_000
OUTCOMES = {"answered": 0.35, "noAnswer": 0.45, "busy": 0.12, "failed": 0.08}
ENDS = {"answered": "COMPLETED", "noAnswer": "NO_ANSWER", "busy": "BUSY", "failed": "FAILED"}
PEOPLE = 40_000
MANY_ODDS = {"byHour": {"12": 3.0}, "byAttempt": [1.0, 0.1, 7.0]}


@dataclass
class Crowd:
    """As much of a campaign's people as reactions depend on."""

    count: int = PEOPLE
    segments: tuple[str, ...] = ()
    segment: NDArray[np.int16] | None = None
    scripts: tuple[Script, ...] = ()
    script: NDArray[np.int32] | None = None
    history: Mapping[int, Past] = field(default_factory=dict)


def reactions(crowd: Crowd | None = None, seed: int = 11, **behaviour: Any) -> Reactions:
    crowd = crowd or Crowd()
    written = Behaviour.model_validate({"outcomes": OUTCOMES, **behaviour})
    draws = Draws(seed, 0, (0, 0), crowd.count)
    request = ScheduleRequest(start_date_time=NOON)
    return Reactions(written, 0, draws, crowd, request)  # type: ignore[arg-type]


def outcomes(
    of: Reactions, attempt: int = 1, now: int = NOON, uses: float = 0.0, people: int = PEOPLE
) -> list[str]:
    return [of.dial(i, attempt, now, uses).outcome for i in range(people)]


def share(ends: list[str], of: str) -> float:
    return ends.count(ENDS[of]) / len(ends)


def expected_outcome(own: float, factor: float, draw: float) -> str:
    """The documentation's odds model, spelled out."""
    answered = own * factor / (1 - own + own * factor)
    if draw < answered:
        return "COMPLETED"
    rest = (draw - answered) / (1 - answered)
    others = OUTCOMES["noAnswer"], OUTCOMES["busy"], OUTCOMES["failed"]
    edges = np.cumsum(others) / sum(others)
    return ("NO_ANSWER", "BUSY", "FAILED")[int((rest >= edges[:2]).sum())]


def close(found: float, expected: float, n: int = PEOPLE) -> bool:
    """Within 4 standard errors of a share."""
    return abs(found - expected) <= 4 * (expected * (1 - expected) / n) ** 0.5


def test_outcomes_are_those_of_a_first_attempt_at_an_average_hour() -> None:
    ends = outcomes(reactions())
    for name, expected in OUTCOMES.items():
        assert close(share(ends, name), expected)


@pytest.mark.parametrize("factor", [0.0, 0.25, 0.8, 1.0, 1.4, 30.0])
def test_a_factor_multiplies_the_odds_of_an_answer_draw_by_draw(factor: float) -> None:
    of = reactions(answeredOdds={"byHour": {"12": factor}})
    draws = Draws(11, 0, (0, 0), PEOPLE).column(Purpose.OUTCOME, 1)
    ends = outcomes(of, people=5000)
    assert ends == [expected_outcome(0.35, factor, draws[i]) for i in range(5000)]
    answered = 0.35 * factor / (0.65 + 0.35 * factor)
    assert close(share(ends, "answered"), answered, 5000)


def test_the_rest_keeps_its_proportions() -> None:
    ends = outcomes(reactions(answeredOdds={"byAttempt": [0.4]}))
    answered = 0.14 / (0.65 + 0.14)
    for name in ("noAnswer", "busy", "failed"):
        assert close(share(ends, name), (1 - answered) * OUTCOMES[name] / 0.65)


def test_all_factors_multiply() -> None:
    crowd = Crowd(segments=("mass", "vip"), segment=np.full(PEOPLE, 1, dtype=np.int16))
    odds = {
        "byHour": {"12": 0.7},
        "byDay": {"1": 1.2},
        "byAttempt": [1.0, 0.8],
        "bySegment": {"vip": 1.5},
        "byCallerIdUse": {"per1000": 0.5, "recovery": "1d"},
    }
    draws = Draws(11, 0, (0, 0), PEOPLE).column(Purpose.OUTCOME, 2)
    factor = 0.7 * 1.2 * 0.8 * 1.5 * 0.5 ** (2500 / 1000)
    ends = outcomes(reactions(crowd, answeredOdds=odds), attempt=2, uses=2500.0, people=5000)
    assert ends == [expected_outcome(0.35, factor, draws[i]) for i in range(5000)]


def test_the_hour_and_day_are_thai_and_those_of_the_dialling_instant() -> None:
    # odds of 0 remove all answers: each figure shows its hours
    of = reactions(answeredOdds={"byHour": {"12": 0.0, "0": 0.0}, "byDay": {"7": 0.0}})
    silent = {
        NOON: True,
        NOON - 1: False,
        NOON + HOUR - 1: True,
        NOON + HOUR: False,
        NOON + 12 * HOUR: True,  # Tuesday 00:00
        NOON + 13 * HOUR: False,
        NOON + 5 * DAY + 11 * HOUR: False,  # Saturday 23:00
        NOON + 5 * DAY + 13 * HOUR: True,  # Sunday 01:00
        NOON + 6 * DAY + 13 * HOUR: False,  # Monday 01:00
    }
    found = {now: "COMPLETED" not in outcomes(of, now=now, people=200) for now in silent}
    assert found == silent


def test_the_last_factor_of_the_attempts_repeats() -> None:
    of = reactions(answeredOdds={"byAttempt": [1.0, 0.0]})
    found = [
        share(outcomes(of, attempt=attempt, people=500), "answered") for attempt in (1, 2, 3, 9)
    ]
    assert found[0] > 0.2
    assert found[1:] == [0.0] * 3


def test_a_segment_not_listed_and_no_segment_are_1() -> None:
    codes = np.array([-1, 0, 1, 2], dtype=np.int16)
    crowd = Crowd(
        segments=("vip", "mass", "none"), segment=codes[np.arange(PEOPLE) % 4], count=PEOPLE
    )
    plain = outcomes(reactions())
    found = outcomes(reactions(crowd, answeredOdds={"bySegment": {"mass": 0.0, "staff": 0.0}}))
    for i, (before, after) in enumerate(zip(plain, found, strict=True)):
        if codes[i % 4] == 1:
            assert after != "COMPLETED"
        else:
            assert after == before


@pytest.mark.parametrize("reachable", [0.36, 0.9, None])
@pytest.mark.parametrize("dead", [0.0, 0.03, 0.08])
@pytest.mark.parametrize("concentration", [0.5, pytest.param(6, marks=pytest.mark.slow), 500, None])
def test_p7_outcomes_hold_over_all_people_however_they_differ(
    reachable: float | None, dead: float, concentration: float | None
) -> None:
    people = {"reachable": reachable, "deadNumbers": dead, "concentration": concentration}
    ends = outcomes(reactions(people=people))
    for name, expected in OUTCOMES.items():
        assert close(share(ends, name), expected)


def test_who_is_not_reachable_never_answers_and_the_others_do() -> None:
    of = reactions(people={"reachable": 0.5})
    ever = [0] * 4000
    for attempt in range(1, 13):
        for i, end in enumerate(outcomes(of, attempt=attempt, people=4000)):
            ever[i] += end == "COMPLETED"
    assert close(sum(map(bool, ever)) / 4000, 0.5 * (1 - 0.3**12), 4000)


def test_p7_a_dead_number_fails_on_every_attempt_and_the_others_fail_less_often() -> None:
    of = reactions(people={"deadNumbers": 0.06, "concentration": 6}, answeredOdds=MANY_ODDS)
    failed = np.array(
        [[end == "FAILED" for end in outcomes(of, attempt, people=4000)] for attempt in range(1, 9)]
    )
    # of the others 0.02 of 0.59 unanswered calls fail: no person fails eight times
    always = failed.all(axis=0)
    assert close(always.mean(), 0.06, 4000)
    assert of.dial(int(always.argmax()), 1, NOON, 0.0).ring_ms == 0
    unanswered = np.array([end != "COMPLETED" for end in outcomes(of, people=4000)])
    assert close((failed[0] & ~always).sum() / (unanswered & ~always).sum(), 0.02 / 0.59, 2000)


def test_p7_all_numbers_may_be_dead() -> None:
    of = reactions(outcomes={"failed": 1.0}, people={"deadNumbers": 1.0, "concentration": 6})
    assert set(outcomes(of, people=500)) == {"FAILED"}


def test_p7_a_dead_number_takes_setup_and_the_ring_time_of_failed() -> None:
    of = reactions(
        outcomes={"answered": 0.5, "failed": 0.5},
        people={"deadNumbers": 0.5},
        setupTime="2s",
        ringTime={"failed": "3s"},
        talkTime="75s",
    )
    found = {tuple(of.dial(i, 1, NOON, 0.0)) for i in range(100)}
    assert ("FAILED", 2000, 3000, 0) in found
    assert {end for end, *_ in found} == {"FAILED", "COMPLETED"}  # the others never fail


def test_people_keep_their_own_chance_which_is_a_beta() -> None:
    # Two attempts of one person: P(both answered) = E[p²] = var + mean², var = m(1−m)/(a+b+1).
    for concentration in (1.0, 6.0):
        of = reactions(people={"concentration": concentration})
        first, second = outcomes(of, attempt=1), outcomes(of, attempt=2)
        both = sum(a == b == "COMPLETED" for a, b in zip(first, second, strict=True))
        expected = 0.35 * 0.65 / (concentration + 1) + 0.35**2
        assert close(both / PEOPLE, expected)


def test_everybody_and_nobody_may_answer() -> None:
    all_answer = {"answered": 1.0}
    assert set(outcomes(reactions(outcomes=all_answer), people=500)) == {"COMPLETED"}
    nobody = {"busy": 0.5, "failed": 0.5}
    for people in (None, {"reachable": 0.5, "concentration": 4}):
        ends = Counter(outcomes(reactions(outcomes=nobody, people=people), people=4000))
        assert set(ends) == {"BUSY", "FAILED"}
        assert close(ends["BUSY"] / 4000, 0.5, 4000)
    odds = {"byAttempt": [0.0]}
    ends = Counter(outcomes(reactions(outcomes=all_answer, answeredOdds=odds), people=500))
    assert set(ends) != {"COMPLETED"}


def test_p1_setup_takes_at_least_a_millisecond() -> None:
    of = reactions(setupTime={"dist": "uniform", "low": "0ms", "high": "2ms"})
    setups = Counter(of.dial(i, 1, NOON, 0.0).setup_ms for i in range(4000))
    assert set(setups) == {1, 2}
    assert close(setups[1] / 4000, 0.75, 4000)  # [0, 1.5) of [0, 2]: drawn 0 or 1
    assert reactions(setupTime="7ms").dial(0, 1, NOON, 0.0).setup_ms == 7


def test_p2_each_end_has_its_own_ring_time_and_only_an_answer_talk() -> None:
    of = reactions(
        setupTime="2s",
        ringTime={"answered": "9s", "noAnswer": "30s", "busy": "1s", "failed": 0},
        talkTime="75s",
    )
    found = {tuple(of.dial(i, 1, NOON, 0.0)) for i in range(500)}
    assert found == {
        ("COMPLETED", 2000, 9000, 75_000),
        ("NO_ANSWER", 2000, 30_000, 0),
        ("BUSY", 2000, 1000, 0),
        ("FAILED", 2000, 0, 0),
    }


def test_times_are_drawn_for_each_person_and_attempt() -> None:
    of = reactions(outcomes={"answered": 1.0}, talkTime={"dist": "exponential", "mean": "60s"})
    talks = np.array([[of.dial(i, n, NOON, 0.0).talk_ms for i in range(4000)] for n in (1, 2)])
    assert abs(talks.mean() - 60_000) < 4 * 60_000 / 8000**0.5
    assert abs(np.corrcoef(talks)[0, 1]) < 4 / 4000**0.5


def test_p1_setup_ring_and_talk_times_are_drawn_apart_and_apart_from_the_outcome() -> None:
    drawn = {"dist": "exponential", "mean": "60s"}
    of = reactions(
        outcomes={"answered": 0.5, "noAnswer": 0.5},
        setupTime=drawn,
        ringTime={"answered": drawn, "noAnswer": drawn},
        talkTime=drawn,
    )
    found = [of.dial(i, 1, NOON, 0.0) for i in range(8000)]
    answered = np.array([reaction.outcome == "COMPLETED" for reaction in found])
    setup, ring, talk = np.array([reaction[1:] for reaction in found]).T
    apart = {
        "setup and ring": (setup, ring),
        "setup and outcome": (setup, answered),
        "ring and outcome": (ring, answered),
        "setup and talk": (setup[answered], talk[answered]),
        "ring and talk": (ring[answered], talk[answered]),
    }
    for pair, (one, other) in apart.items():
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / len(one) ** 0.5, pair


def test_a_redial_meets_the_same_draws_and_only_the_instant_differs() -> None:
    of = reactions(
        setupTime={"dist": "uniform", "low": "1s", "high": "3s"},
        answeredOdds={"byHour": {"12": 0.5}},
    )
    first = [of.dial(i, 1, NOON, 0.0) for i in range(500)]
    assert [of.dial(i, 1, NOON + HOUR - 1, 0.0) for i in range(500)] == first
    later = [of.dial(i, 1, NOON + HOUR, 0.0) for i in range(500)]
    assert [r.setup_ms for r in later] == [r.setup_ms for r in first]
    gained = [b.outcome for a, b in zip(first, later, strict=True) if a.outcome != b.outcome]
    assert gained
    assert {end for end in gained if end == "COMPLETED"}
    kept = [b.outcome for a, b in zip(first, later, strict=True) if a.outcome == "COMPLETED"]
    assert set(kept) == {"COMPLETED"}  # better odds lose no answer


def test_p5_a_scripts_step_is_the_attempts_number_and_the_last_one_repeats() -> None:
    scripts = (parse_script("noAnswer 25s; busy 1s; answered 5s 90s"), parse_script("failed 0s"))
    crowd = Crowd(count=3, scripts=scripts, script=np.array([0, 1, -1], dtype=np.int32))
    of = reactions(crowd, setupTime="2s", outcomes={"answered": 1.0}, talkTime="33s")
    found = [tuple(of.dial(0, attempt, NOON, 0.0)) for attempt in (1, 2, 3, 4, 99)]
    assert found == [
        ("NO_ANSWER", 2000, 25_000, 0),
        ("BUSY", 2000, 1000, 0),
        *[("COMPLETED", 2000, 5000, 90_000)] * 3,
    ]
    assert tuple(of.dial(1, 7, NOON, 0.0)) == ("FAILED", 2000, 0, 0)
    assert of.dial(2, 1, NOON, 0.0).talk_ms == 33_000  # no script: chance


def test_fatigue_is_asked_for_only_where_numbers_tire() -> None:
    assert reactions().recovery is None
    tired = {"byCallerIdUse": {"per1000": 0.95, "recovery": "12h"}}
    assert reactions(answeredOdds=tired).recovery == 12 * HOUR
