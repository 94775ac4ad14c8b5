"""The best combination of several settings, against what is known of it."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.errors import ExperimentError
from dialsim.experiments.plan_text import optimum_headline, optimum_sentences, optimum_tables
from dialsim.results.figures import COST_PARTS
from dialsim.testing import Sketch

LINES = "organizations.Acme.maxConcurrentCalls"
ATTEMPTS = "organizations.Acme.campaigns.January.schedule.maxAttempts"

SURE = (
    Sketch(lines=1)
    .campaign("January", *12 * ["noAnswer 30s; answered 5s 90s"], retry_interval="5m")
    .scenario()
)
"""Twelve people who answer the second call: without chance, so that all can be worked out."""

CHANCY = (
    Sketch(lines=1)
    .campaign("January", recipients={"count": 60}, retry_interval="5m", max_attempts=1)
    .behaviour("default", outcomes={"answered": 0.4, "noAnswer": 0.6}, talk_time="60s")
    .scenario("costs={perDial: 1, perMinute: 2}")
)


def found(scenario: dialsim.Scenario, vary: dict[str, object], *goals: str, **more: Any) -> Any:
    return dialsim.optimize(scenario, vary, goals, jobs=1, **more)


def test_the_smallest_values_that_meet_the_goals_are_those_worked_out_by_hand() -> None:
    # two attempts reach all twelve; on n lines the last one ends 90 s after the second round's dial
    answer = found(
        SURE, {LINES: "1..6", ATTEMPTS: "1..3"}, "mean(people_reached) >= 12",
        "mean(finish) <= 15m", replications=2,
    )  # fmt: skip
    start = dialsim.replicate(SURE, 2, jobs=1).origin
    assert start is not None
    met = {
        (lines, attempts)
        for lines, attempts in product(range(1, 7), range(1, 4))
        for summary in [
            dialsim.run(SURE.with_(f"{LINES}={lines}", f"{ATTEMPTS}={attempts}")).summary
        ]
        if summary.people_reached == 12
        and summary.finish is not None
        and (summary.finish - start).total_seconds() <= 900
    }
    assert answer.best.values == min(met) == (3, 2)
    assert answer.met
    assert answer.sure
    assert {part.values for part in answer.tried if part.estimate.met} == met


def test_of_those_that_do_as_well_the_smallest_values_win() -> None:
    vary: dict[str, object] = {LINES: "1..5", ATTEMPTS: "1..4"}
    answer = found(SURE, vary, maximize="mean(people_reached)", replications=2)
    assert answer.best.values == (1, 2)
    assert answer.sure
    assert {part.values for part in answer.alike} == {
        (lines, attempts) for lines in range(1, 6) for attempts in (2, 3, 4)
    } - {(1, 2)}
    assert optimum_headline(answer) == (
        "1 line, 2 attempts has the greatest mean(people_reached), 12, of 20 combinations."
    )


def test_an_earliest_finish_counts_from_when_calling_begins() -> None:
    answer = found(SURE, {LINES: "1..3", ATTEMPTS: "2"}, minimize="mean(finish)")
    assert answer.best.values == (3, 2)
    assert answer.alike == ()


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"minimize": "mean(cost / people_reached)"}, r"cost / people_reached\), [0-9.]+, of 2"),
        ({"minimize": "mean(cost - 2 * dials * 1 THB)"}, r"cost - 2 .*\), -?[0-9.]+, of 2"),
        ({"maximize": "mean(people_reached / people)"}, r"\), [0-9.]+ %, of 2"),
        ({"minimize": "mean(January.finish - 1h)"}, r"1h\), \w{3} \d+ \w{3} \d\d:\d\d, of 2"),
        ({"minimize": "mean(finish - finish + 90s)"}, r"\), 1 min 30 s, of 2"),
    ],
)
def test_an_objective_may_be_an_expression(wish: dict[str, str], said: str) -> None:
    priced = CHANCY.with_("costs.currency=THB")
    answer = found(priced, {LINES: "1..2"}, max_replications=8, **wish)
    assert re.search(said, optimum_headline(answer)), optimum_headline(answer)
    (table,) = optimum_tables(answer)
    assert table.rows


def test_the_frontier_is_what_nothing_else_beats() -> None:
    answer = found(SURE, {LINES: "1..4", ATTEMPTS: "1..3"}, maximize="mean(people_reached)")
    trade = {part.values: (part.finish, -part.people_reached) for part in answer.tried}
    beaten = {
        mine
        for mine, ours in trade.items()
        for theirs in trade.values()
        if theirs != ours and theirs[0] <= ours[0] and theirs[1] <= ours[1]
    }
    assert {part.values for part in answer.frontier} <= set(trade) - beaten
    assert {trade[part.values] for part in answer.frontier} == {
        losses for values, losses in trade.items() if values not in beaten
    }


@pytest.mark.slow
def test_with_chance_the_answer_is_what_many_runs_of_everything_say() -> None:
    vary: dict[str, object] = {LINES: "1..3", ATTEMPTS: "1..3"}
    goal = "mean(cost) <= 125"
    answer = found(CHANCY, vary, goal, maximize="mean(people_reached)", indifference=0.01)
    sweep = dialsim.sweep(CHANCY, {LINES: range(1, 4), ATTEMPTS: range(1, 4)}, 100, jobs=1)
    means = sweep.runs.groupby([LINES, ATTEMPTS])[["cost", "people_reached"]].mean()
    meeting = means[means["cost"] <= 125]["people_reached"]
    best = meeting[meeting >= 0.99 * meeting.max()]
    assert answer.met
    assert answer.best.values == min(best.index)


def test_nothing_that_meets_the_goals_is_said() -> None:
    answer = found(SURE, {LINES: "1..2", ATTEMPTS: [1]}, "mean(people_reached) >= 13")
    assert not answer.met
    assert not answer.sure
    assert optimum_headline(answer).startswith("None of 2 combinations meets the goal")


def test_a_large_grid_is_searched_and_that_is_said() -> None:
    vary: dict[str, object] = {LINES: "1..100", ATTEMPTS: "1..3"}
    goals = ("mean(people_reached) >= 12", "mean(finish) <= 15m")
    answer = found(SURE, vary, *goals, replications=2)
    assert answer.best.values == (3, 2)
    assert answer.count == 300
    assert len(answer.tried) < 256
    assert any("of 300 combinations were tried" in text for text in optimum_sentences(answer))


def test_a_response_that_turns_back_is_said() -> None:
    # one attempt reaches no one, two reach all; three cost no more
    goal = "mean(people_reached) <= 0"
    answer = found(SURE, {f"{ATTEMPTS}": ["1", "2", "1 "], LINES: [1]}, goal, replications=20)
    assert any("not monotone" in text for text in answer.warnings)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "say what is wanted: a goal, something to maximize, or to minimize"),
        ({"maximize": "people_reached"}, r"people_reached: write mean\(FIGURE\), such as mean\("),
        ({"maximize": "mean(cost)", "minimize": "mean(cost)"}, "give either maximize or minimize"),
        ({"minimize": "mean(nothing)"}, "there is no figure nothing"),
        ({"minimize": "mean(dials)", "indifference": 2}, "the indifference is a share"),
    ],
)
def test_what_can_not_be_read_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(ExperimentError, match=says):
        found(SURE, {LINES: "1..2"}, **more)


def test_a_stopped_search_goes_on_with_what_it_has(tmp_path: Path) -> None:
    vary: dict[str, object] = {LINES: "1..3", ATTEMPTS: "1..2"}
    asked = {"maximize": "mean(people_reached)", "max_replications": 24, "store": tmp_path}
    first, again = (found(CHANCY, vary, "mean(cost) <= 100", **asked) for _ in range(2))
    assert again.to_dict() == first.to_dict()


def test_an_answer_is_not_sure_while_something_better_may_meet_the_goal() -> None:
    # two attempts cost 173.5 on average, so that 60 runs can't decide if it is below 174
    answer = found(
        CHANCY, {ATTEMPTS: "1..2"}, "mean(cost) <= 174", maximize="mean(people_reached)",
        max_replications=60,
    )  # fmt: skip
    assert answer.best.values == (1,)
    assert answer.best.estimate.sure
    assert [part.values for part in answer.in_doubt] == [(2,)]
    assert not answer.sure
    assert optimum_headline(answer).endswith("as far as the runs can tell.")


@pytest.mark.slow(minutes=10)
@pytest.mark.parametrize(("above", "least"), [(1, 1), (5, 10)])
def test_answers_called_sure_are_seldom_wrong(above: int, least: int) -> None:
    vary: dict[str, object] = {LINES: "1..3", ATTEMPTS: "1..3"}
    sweep = dialsim.sweep(CHANCY, {LINES: range(1, 4), ATTEMPTS: range(1, 4)}, 1500)
    means = sweep.runs.groupby([LINES, ATTEMPTS])[["cost", "people_reached"]].mean()
    goal = round(float(means.loc[(2, 2), "cost"])) + above  # close to one of them
    meeting = means[means["cost"] <= goal]["people_reached"]
    wrong = sure = 0
    for seed in range(40):
        answer = found(
            CHANCY, vary, f"mean(cost) <= {goal}", maximize="mean(people_reached)",
            indifference=0.02, seed=seed, max_replications=120,
        )  # fmt: skip
        sure += answer.sure
        good = answer.best.values in meeting.index and (
            meeting[answer.best.values] >= 0.98 * meeting.max()
        )
        wrong += answer.sure and not good
    assert sure >= least
    assert wrong <= 2


def test_runs_have_the_figures_that_are_asked_for_and_no_others() -> None:
    answer = found(CHANCY, {LINES: "1..2"}, "mean(finish) <= 9h", minimize="mean(talk_minutes)")
    assert {run.asked for run in answer.best.estimate.runs} == {
        frozenset({"cost", "finish", "people", "people_lost", "people_reached", "reach_share",
                   "talk_minutes", *COST_PARTS})
    }  # fmt: skip
