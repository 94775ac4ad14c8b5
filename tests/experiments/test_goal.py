"""The language of goals, and the errors of invalid goals."""

from __future__ import annotations

import operator
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.errors import ExperimentError
from dialsim.experiments.goal import Goal, GoalEstimate, Statistic, judge, read_goal
from dialsim.experiments.known_bounds import KnownBounds, known_bounds_of
from dialsim.experiments.named_figures import FigureName, chance_after
from dialsim.experiments.replications import replicate
from dialsim.experiments.run_figures import RunFigures, ScopeFigures
from dialsim.interface.instants import parse_instant
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch
from experiments.scenarios import CHANCY, crowd

START = parse_instant("2026-01-05T02:00:00Z")
SIGNS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}


def named(*campaigns: tuple[str, str]) -> Scenario:
    """Organizations with campaigns of these names."""
    sketch = Sketch(setup_time=None)
    for owner in dict.fromkeys(owner for owner, _ in campaigns):
        sketch = sketch.organization(owner, 1)
        for name in [name for other, name in campaigns if other == owner]:
            sketch = sketch.campaign(name, recipients={"count": 1})
    return sketch.scenario()


ONE = named(("Acme", "January"))
TWO = named(("Acme", "January"), ("Bolt", "January"), ("Bolt", "Spring v1.2 and more"))


def runs(values: list[float], name: str = "people_reached") -> list[RunFigures]:
    """Runs of ONE with these values of a figure; none costs anything."""
    return [
        RunFigures(
            number,
            START,
            tuple(
                ScopeFigures(*place, {"finish": START, "cost": nan, name: value})
                for place in (("run", None, None), ("campaign", "Acme", "January"))
            ),
        )
        for number, value in enumerate(values)
    ]


def met(goal: str, values: list[float], name: str = "people_reached") -> bool:
    return judge(1, read_goal(goal, ONE), runs(values, name), 0.95).met


def judged(goal: str, values: list[float], name: str = "people_reached") -> GoalEstimate:
    return judge(1, read_goal(goal, ONE), runs(values, name), 0.95)


counts = st.lists(st.integers(0, 20).map(float), min_size=1, max_size=40)


@given(counts, st.sampled_from(sorted(SIGNS)), st.integers(0, 20))
def test_a_mean_is_compared_as_written(values: list[float], sign: str, bound: int) -> None:
    expected = SIGNS[sign](np.mean(values), bound)
    if abs(np.mean(values) - bound) > 1e-9 or len(set(values)) == 1:
        assert met(f"mean(people_reached) {sign} {bound}", values) == expected


@given(counts, st.sampled_from(sorted(SIGNS)), st.integers(0, 20), st.integers(1, 99))
def test_a_quantile_is_compared_as_written(
    values: list[float], sign: str, bound: int, percent: int
) -> None:
    quantile = sorted(values)[max(1, -(-len(values) * percent // 100)) - 1]
    expected = SIGNS[sign](quantile, bound)
    assert met(f"p{percent}(January.people_reached) {sign} {bound}", values) == expected


@given(counts, st.sampled_from(sorted(SIGNS)), st.integers(0, 20), st.integers(0, 100))
def test_a_probability_is_the_share_of_runs(
    values: list[float], sign: str, bound: int, percent: int
) -> None:
    share = sum(SIGNS[sign](value, bound) for value in values) / len(values)
    goal = f"prob(people_reached {sign} {bound}) >= {percent} %"
    assert met(goal, values) == (share >= percent / 100)


@given(counts, st.integers(0, 20))
def test_p95_within_a_bound_says_the_same_as_a_probability_of_95_percent(
    values: list[float], bound: int
) -> None:
    quantile = met(f"p95(people_reached) <= {bound}", values)
    assert quantile == met(f"prob(people_reached <= {bound}) >= 0.95", values)


@given(st.text(max_size=60))
def test_any_text_is_a_goal_or_is_refused_with_a_reason(text: str) -> None:
    try:
        assert isinstance(read_goal(text, ONE), Goal)
    except ExperimentError:
        return


@given(
    st.lists(
        st.sampled_from(
            [
                "p95(finish) <= 2026-01-09T12:00:00Z",
                "mean(January.people_reached) >= 300",
                "prob(Acme/January.finish < 3d) > 0.9",
                "p50(queue_wait_mean_seconds) < 10m",
                "mean(reach_share) >= 60 %",
            ]
        ),
        min_size=1,
        max_size=4,
    )
)
def test_clauses_joined_by_and_are_read_one_by_one(clauses: list[str]) -> None:
    goal = read_goal("  and ".join(clauses), ONE)
    assert [clause.text for clause in goal.clauses] == clauses


def test_figures_are_found_by_the_names_of_summary_json() -> None:
    def place(name: str, scenario: Scenario = TWO) -> tuple[str | None, str | None, str]:
        figure = read_goal(f"mean({name}) >= 1", scenario).clauses[0].figure
        return *figure.place, figure.name

    assert place("people_reached") == (None, None, "people_reached")
    assert place("Acme.dials") == ("Acme", None, "dials")
    assert place("Bolt/January.dials") == ("Bolt", "January", "dials")
    assert place("January.webhooks.lost", ONE) == ("Acme", "January", "webhooks_lost")
    assert place("analyses_failed") == (None, None, "analyses_failed")
    assert place("Spring v1.2 and more.dials") == ("Bolt", "Spring v1.2 and more", "dials")
    assert place("reach_by_attempt_2") == (None, None, "reach_by_attempt_2")


def test_bounds_of_finish_are_instants_or_times_after_the_start() -> None:
    instant, span = read_goal(
        "p95(finish) <= 2026-01-09T19:00:00+07:00 and prob(finish <= 2h) >= 0.9", ONE
    ).clauses
    assert instant.bound.value == parse_instant("2026-01-09T12:00:00Z")
    assert (span.bound.value, span.bound.after_start) == (7_200_000, True)
    assert (span.statistic, span.share) == (Statistic.PROBABILITY, 0.9)


def test_a_run_that_does_not_finish_misses_every_latest_finish() -> None:
    infinite = [float("inf"), *[START + 1.0] * 30]
    assert met("p95(finish) <= 1h", infinite, "finish")
    assert not met("p97(finish) <= 1h", infinite, "finish")
    assert not met("mean(finish) <= 1000d", infinite, "finish")


def test_runs_that_are_alike_make_nothing_sure_where_there_is_chance() -> None:
    # 97 of 100 such runs finish in an hour: 25 of them do with a chance of 0.97²⁵ = 47 %
    alike = [START + 1800.0] * 25
    for goal in (
        "prob(finish <= 1h) >= 0.98",
        "prob(finish <= 1h) >= 0.999",
        "p95(finish) <= 1h",
        "mean(finish) <= 1h",
    ):
        found = judged(goal, alike, "finish")
        assert (found.met, found.sure) == (True, False)
        certain = judge(
            1, read_goal(goal, ONE), runs(alike, "finish"), 0.95, KnownBounds(True, True)
        )
        assert (certain.met, certain.sure) == (True, True)


def test_a_mean_is_sure_of_no_fewer_than_twenty_runs_unless_there_is_no_chance() -> None:
    few = [100.0 + number % 3 for number in range(19)]
    assert not judged("mean(people_reached) >= 50", few).sure
    assert judged("mean(people_reached) >= 50", [*few, 101.0]).sure
    same = runs([100.0] * 2)
    goal = read_goal("mean(people_reached) >= 50", ONE)
    assert judge(1, goal, same, 0.95, KnownBounds(True, True)).sure


def test_a_goal_is_surely_met_only_if_every_clause_is_and_surely_missed_if_one_is() -> None:
    values = [100.0 + number % 7 for number in range(42)]  # 103 on average
    clear, close = "mean(people_reached) >= 90", "mean(people_reached) >= 102.9"
    missed, off = "mean(people_reached) >= 103.1", "mean(people_reached) >= 120"
    assert judged(clear, values).sure
    assert not judged(close, values).sure
    both = judged(f"{clear} and {close}", values)
    assert (both.met, both.sure) == (True, False)
    doubt = judged(f"{clear} and {missed}", values)
    assert (doubt.met, doubt.sure) == (False, False)
    for other in (close, missed):
        one = judged(f"{other} and {off}", values)
        assert (one.met, one.sure) == (False, True)


def test_clauses_share_the_risk_of_a_goal_being_called_missed() -> None:
    # 36 of 42 runs in time: too few for 95 % at the level of 95 %, but not at the 99.5 % of one
    # clause among ten
    values = [1.0] * 36 + [3.0] * 6
    late = "p95(people_reached) <= 2"
    assert judged(late, values).sure
    assert not judged(" and ".join([late] * 10), values).sure


TRAPS = {
    "p95(people_reached) >= 183": (
        "p95(people_reached) >= 183 asks that only 5 % of the runs have people_reached >= 183; if "
        "95 % of them are to have it, write p5(people_reached) >= 183, or "
        "prob(people_reached >= 183) >= 95 %"
    ),
    "p10(January.finish) < 3d": (
        "p10(January.finish) < 3d asks that only 10 % of the runs have January.finish < 3d; if "
        "90 % of them are to have it, write p90(January.finish) < 3d, or "
        "prob(January.finish < 3d) >= 90 %"
    ),
}


@pytest.mark.parametrize("text", TRAPS)
def test_a_quantile_bounded_on_its_thin_side_is_told_to_mean_something_else(text: str) -> None:
    (clause,) = read_goal(text, ONE).clauses
    assert clause.trap == TRAPS[text]
    _, _, proposed = clause.trap.partition(", write ")
    for better in proposed.split(", or "):
        assert read_goal(better, ONE).clauses[0].trap is None


def test_other_statistics_are_no_traps() -> None:
    for text in (
        "p95(finish) <= 3d",
        "p5(people_reached) >= 183",
        "p50(people_reached) >= 1",
        "p50(people_reached) <= 1",
        "mean(people_reached) >= 183",
        "prob(people_reached >= 183) >= 0.95",
    ):
        assert read_goal(text, ONE).clauses[0].trap is None


REFUSED = {
    "": "goal (nothing): write a statistic, a comparison and a bound, such as "
    "p95(finish) <= 2026-01-09T12:00:00Z, mean(cost) <= 5000 or "
    "prob(January.finish <= 5d) >= 0.95, joined by and",
    "finish <= 2026-01-09": "goal finish <= 2026-01-09: say of many runs, "
    "mean(finish) <= 2026-01-09, p95(finish) <= 2026-01-09 or "
    "prob(finish <= 2026-01-09) >= 0.95",
    "p95(finish) <= 12": "goal p95(finish) <= 12: finish is compared with an instant, such as "
    "2026-01-09T12:00:00Z, or a time after the earliest start, such as 5d",
    "p95(finish) <= tomorrow": "goal p95(finish) <= tomorrow: tomorrow is not a number, "
    "a duration such as 30m or an instant such as Fri 18:00, 2026-01-05 09:00 or "
    "2026-01-05T02:00:00Z",
    "p95(finish) <= 2569-01-09T12:00:00Z": "goal p95(finish) <= 2569-01-09T12:00:00Z: "
    "2569-01-09T12:00:00Z must not count years in the Buddhist era: 2569 is 2026, so write "
    "2026-01-09T12:00:00Z",
    "prob(finish <= 09/01/2569) >= 0.9": "goal prob(finish <= 09/01/2569) >= 0.9: 09/01/2569 "
    'must be an instant with an offset or Z, not "09/01/2569": write 2026-01-09T00:00:00+07:00',
    "p95(finish) <= 2026-01-09T12:00": "goal p95(finish) <= 2026-01-09T12:00: 2026-01-09T12:00 "
    "must say its offset: 2026-01-09T12:00:00Z is UTC, 2026-01-09T12:00:00+07:00 is Thai time",
    "p100(finish) <= 5d": "goal p100(finish) <= 5d: p100 is no quantile: write p1 to p99, "
    "such as p95(finish)",
    "prob(finish) >= 0.95": "goal prob(finish) >= 0.95: write a comparison into prob(…), "
    "such as prob(finish <= 5d) >= 0.95",
    "prob(finish <= 5d) >= 95": "goal prob(finish <= 5d) >= 95: 95 is no probability: "
    "write 0.95 or 95 %",
    "mean(people_reached) >= 5m": "goal mean(people_reached) >= 5m: people_reached is compared "
    "with a number, not with 5m",
    "mean(people) >= 1 and mean(cost) <= 5": "there is no figure cost: the scenario names no "
    "costs\n"
    "  mean(cost) <= 5\n"
    "       ^^^^",
    "mean(reached) >= 5": "there is no figure reached; did you mean people_reached or "
    "reach_share?\n"
    "  mean(reached) >= 5\n"
    "       ^^^^^^^",
    "mean(June.dials) >= 5": "June.dials: there is no campaign or organization June; "
    "there are: Acme/January, Acme\n"
    "  mean(June.dials) >= 5\n"
    "       ^^^^",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_goal_that_can_not_be_read_is_told_why(text: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        read_goal(text, ONE)
    assert str(refused.value) == REFUSED[text]


def test_an_ambiguous_campaign_is_to_be_named_in_full() -> None:
    with pytest.raises(ExperimentError) as refused:
        read_goal("mean(January.dials) >= 5", TWO)
    assert str(refused.value) == (
        "January.dials: campaign January is ambiguous: write Acme/January or Bolt/January\n"
        "  mean(January.dials) >= 5\n"
        "       ^^^^^^^^^^^^^"
    )


def test_a_deadline_that_is_far_away_is_surely_met_after_few_runs() -> None:
    scenario = crowd(100, 4, **CHANCY)
    made = replicate(scenario, 12, jobs=1).figures
    bounds = known_bounds_of(scenario)
    latest = max(run.scopes[0].values["finish"] - (run.start or 0) for run in made)
    for bound, sure in (("12h", True), (f"{latest / 1000 + 1:.0f}s", False)):
        goal = read_goal(f"p95(finish) <= {bound}", scenario)
        found = judge("", goal, made, 0.95, bounds)
        assert (found.met, found.sure) == (True, sure), bound
        assert not judge("", goal, made[:9], 0.95, bounds).sure
        # Of a scenario without known windows nothing is assumed.
        assert not judge("", goal, made, 0.95).sure
    share = judge("", read_goal("prob(finish <= 12h) >= 0.99", scenario), made, 0.95, bounds)
    assert share.sure
    assert share.findings[0].low >= 0.99


def test_a_late_run_or_a_heavy_tail_leaves_a_deadline_to_the_share_of_runs() -> None:
    scenario = crowd(100, 4, **CHANCY)
    made = replicate(scenario, 12, jobs=1).figures
    figure, bounds = FigureName("finish", None, None), known_bounds_of(scenario)
    finishes = np.sort(figure.of(made))
    assert chance_after(figure, made, bounds, finishes[-2], 0.01) == 1.0
    assert chance_after(figure, made, bounds, finishes[-1] + 86_400_000, 0.01) < 1e-6
    heavy = {**CHANCY, "talkTime": {"dist": "lognormal", "mean": "60s", "sd": "400s"}}
    unknown = known_bounds_of(crowd(100, 4, **heavy))
    assert chance_after(figure, made, unknown, finishes[-1] + 86_400_000, 0.01) == 1.0


def test_a_deadline_is_far_only_if_attempts_that_no_run_needed_and_the_longest_call_fit_in() -> (
    None
):
    figure, day = FigureName("finish", None, None), 86_400_000
    answered = {
        "outcomes": {"answered": 1.0},
        "talkTime": {"dist": "uniform", "low": 0, "high": "60s"},
    }
    scenario = crowd(20, 2, attempts=5, **answered).with_(
        "organizations.Acme.campaigns.January.schedule.retryInterval=1d"
    )
    made = replicate(scenario, 12, jobs=1).figures
    latest = figure.of(made).max()
    bounds = known_bounds_of(scenario)
    assert chance_after(figure, made, bounds, latest + 4 * day, 0.01) == 1.0
    assert chance_after(figure, made, bounds, latest + 5 * day, 0.01) < 1e-6
    rarely = {"dist": "empirical", "values": ["30s"] * 200 + ["6h"]}
    rare = known_bounds_of(crowd(20, 2, attempts=1, outcomes={"answered": 1.0}, talkTime=rarely))
    assert chance_after(figure, made, rare, latest + 6 * 3_600_000, 0.01) == 1.0
    assert chance_after(figure, made, rare, latest + 7 * 3_600_000, 0.01) < 1e-6
