"""A plan's headline: a sentence that a manager can act on, and no more sure than its runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dialsim.experiments.goal import GoalEstimate, judge, read_goal
from dialsim.experiments.plan import Plan, plan
from dialsim.experiments.plan_text import plan_headline, plan_question
from dialsim.experiments.run_figures import RunFigures, ScopeFigures
from dialsim.interface.instants import parse_instant
from dialsim.results.figures import NUMBERS
from experiments.scenarios import CHANCY, LIMIT, START, crowd

CROWD = crowd(12)  # calls of a minute, from Monday 5 January 2026 00:00 in Thailand on
SCHEDULE = "organizations.Acme.campaigns.January.schedule"


def estimate(value: Any, goal: str, figure: str, values: list[float]) -> GoalEstimate:
    start = parse_instant(START)
    part = dict.fromkeys(NUMBERS, 0.0) | {"cost": 1.0, "finish": start}
    runs = [
        RunFigures(
            k,
            start,
            (
                ScopeFigures("run", None, None, {**part, figure: number}),
                ScopeFigures("campaign", "Acme", "January", {**part, figure: number}),
            ),
        )
        for k, number in enumerate(values)
    ]
    return judge(value, read_goal(goal, CROWD), runs, 0.95)


def made(
    goal: str, figure: str, answer: Any, neighbour: Any, path: str = LIMIT, **more: Any
) -> Plan:
    """A plan whose runs all have one value at the answer, and one at its neighbour."""
    found, beside = (
        estimate(value, goal, figure, [number] * 100) for value, number in (answer, neighbour)
    )
    answered = Plan(
        "Crowd", path, (1, 60), goal, "smallest", found.value, True, False, found, beside,
        (beside, found), (), (), (),
    )  # fmt: skip
    return replace(answered, **more)


TUESDAY = parse_instant("2026-01-06T12:00:00Z")
HOUR, DAY = 3_600_000, 86_400_000


def test_lines_are_enough_by_an_instant_and_the_neighbour_is_done_on_another_day() -> None:
    found = made("p95(finish) <= Tue 19:00", "finish", (8, TUESDAY - HOUR), (7, TUESDAY + DAY))
    assert plan_headline(found) == (
        "8 lines are enough to be done by Tue 6 Jan 19:00 in 95 of 100 runs; with 7 lines, "
        "p95(finish) is Wed 7 Jan 19:00."
    )
    assert plan_question(found) == (
        f"Asked for: the fewest lines from 1 to 60 with p95(finish) <= Tue 19:00 ({LIMIT}); Tue "
        "19:00 is Tue 6 Jan 2026 19:00, Thai time."
    )


@pytest.mark.parametrize(
    ("neighbour", "said"),
    [
        (TUESDAY + 24 * 60_000, "; with 7 lines, p95(finish) is Tue 6 Jan 19:24"),
        (float("inf"), "; with 7 lines, p95(finish) is never"),
    ],
)
def test_what_the_neighbour_does_is_said_so_that_it_can_not_be_misread(
    neighbour: float, said: str
) -> None:
    found = made("p95(finish) <= Tue 19:00", "finish", (8, TUESDAY - HOUR), (7, neighbour))
    assert plan_headline(found).partition("runs")[2] == f"{said}."


WISHES = {
    "p95(January.finish) <= 3d": "to have January done within 3 d in 95 of 100 runs",
    "p99.9(finish) <= 3d": "to be done within 3 d in 99.9 % of the runs",
    "p50(finish) <= 3d": "to be done within 3 d in half of the runs",
    "mean(finish) < 3d": "to be done in less than 3 d on average",
    "prob(finish <= 3d) >= 95%": "to be done within 3 d in 95 of 100 runs",
    "prob(finish <= 3d) > 0.9": "to be done within 3 d in more than 90 of 100 runs",
    "mean(people_reached) >= 4000": "to reach 4,000 people on average",
    "mean(January.people_reached) > 40": "to reach more than 40 people of January on average",
    "mean(reach_share) >= 90%": "to reach 90.0 % of the people on average",
    "p5(people_reached) >= 40": "to reach 40 people in 95 of 100 runs",
    "prob(people_reached >= 40) >= 0.8": "to reach 40 people in 80 of 100 runs",
    "mean(cost) <= 5000 and p90(finish) <= 2h": "to spend at most 5,000 on average and be done "
    "within 2 h in 90 of 100 runs",
    # goals with few runs, and other figures, are quoted as given
    "p95(people_reached) >= 40": "to have p95(people_reached) >= 40",
    "prob(finish <= 3d) <= 5%": "to have prob(finish <= 3d) <= 5%",
    "mean(dials) <= 500": "to have mean(dials) <= 500",
}


@pytest.mark.parametrize("goal", WISHES)
def test_a_goal_is_said_as_a_wish(goal: str) -> None:
    found = made(goal, "people_reached", (8, 0.0), (7, 0.0), between=(8, 9))
    found = replace(found, neighbour=None, estimate=replace(found.estimate, sure=True))
    assert plan_headline(found) == f"8 lines are enough {WISHES[goal]}; no smaller value was tried."


def test_other_settings_than_lines_are_named() -> None:
    goal = "p95(finish) <= 3d"
    pair: tuple[Any, Any] = ((2, 1.0), (1, float("inf")))
    heads = [
        plan_headline(made(goal, "finish", *pair, f"{SCHEDULE}.{key}"))
        for key in ("maxAttempts", "callerIds", "retryInterval")
    ]
    heads += [plan_headline(made(goal, "finish", *pair, "engine.callsPerSecond"))]
    heads += [plan_headline(made(goal, "finish", *pair, "organizations.0.agents.0.x"))]
    done, never = "be done within 3 d in 95 of 100 runs", "p95(finish) is never"
    assert heads == [
        f"2 attempts are enough to {done}; with 1 attempt, {never}.",
        f"2 caller IDs are enough to {done}; with 1 caller ID, {never}.",
        f"Retries after 0.002 s: the shortest to {done}; with retries after 0.001 s, {never}.",
        f"2 dials a second are enough to {done}; with 1 dial a second, {never}.",
        f"X=2: the smallest to {done}; with x=1, {never}.",
    ]


def test_the_largest_and_the_cheapest_are_said_as_such() -> None:
    goal, pair = "p95(finish) <= 3d", ((5, 1.0), (6, float("inf")))
    asked = {"path": f"{SCHEDULE}.maxAttempts"}
    done = "to be done within 3 d in 95 of 100 runs"
    assert plan_headline(made(goal, "finish", *pair, **asked, objective="largest")) == (
        f"5 attempts: the most {done}; with 6 attempts, p95(finish) is never."
    )
    assert plan_headline(made(goal, "finish", *pair, **asked, objective="cheapest")) == (
        f"5 attempts: the cheapest {done}."
    )
    latest = plan(CROWD, "January.start", "Mon 00:00..Mon 06:00", "p95(finish) <= Mon 05:00",
                  objective="largest", jobs=1)  # fmt: skip
    assert plan_headline(latest) == (
        "Starts Mon 5 Jan 04:00 Thai time: the latest to be done by Mon 5 Jan 05:00 in 95 of 100 "
        "runs; with starts Mon 5 Jan 05:00 Thai time, p95(finish) is Mon 5 Jan 05:03."
    )


def test_what_is_not_sure_is_said_not_to_be() -> None:
    goal, pair = "p95(finish) <= 3d", ((8, 1.0), (7, float("inf")))
    found = made(goal, "finish", *pair)
    assert plan_headline(replace(found, in_doubt=(6, 7))).endswith("runs; 6 and 7 may do, too.")
    largest = made(goal, "finish", *pair, objective="largest", in_doubt=(9,))
    assert plan_headline(largest).endswith("runs; 9 may do, too.")
    unsure = replace(found, estimate=replace(found.estimate, sure=False), in_doubt=(7,))
    assert plan_headline(unsure) == (
        "8 lines seem to be enough to be done within 3 d in 95 of 100 runs, as far as 100 runs can "
        "tell; 7 may do, too."
    )
    # a neighbour within the noise is not mentioned
    assert found.neighbour is not None
    doubtful = replace(found, neighbour=replace(found.neighbour, sure=False))
    assert plan_headline(doubtful).endswith("in 95 of 100 runs.")
    one = made(goal, "finish", (1, 1.0), (0, 1.0))
    assert (
        plan_headline(replace(one, neighbour=None))
        == "1 line is enough to be done within 3 d in 95 of 100 runs; no smaller value was tried."
    )


def test_nothing_that_was_found_is_less_than_nothing_that_there_is() -> None:
    none = plan(CROWD, "lines", "1..2", "p95(finish) <= Mon 00:04", jobs=1)
    said = "enough to be done by Mon 5 Jan 00:04 in 95 of 100 runs; closest: 2 lines."
    assert plan_headline(none) == f"No number of lines from 1 to 2 is {said}"
    assert plan_headline(replace(none, ruled_out=False)) == (
        f"No number of lines from 1 to 2 was found to be {said}"
    )


@pytest.mark.slow
def test_the_sentence_of_a_plan_full_of_chance_agrees_with_its_runs() -> None:
    scenario = crowd(40, **CHANCY, attempts=3)
    asked = {"replications": 20, "max_replications": 40, "jobs": 1}
    found = plan(scenario, "lines", (1, 9), "p90(finish) <= 2h", **asked)
    lines = int(plan_headline(found).split()[0])
    assert lines == found.value
    assert ("seem" in plan_headline(found)) is not found.estimate.sure
