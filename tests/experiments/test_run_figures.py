"""The figures of a run: those asked for are as among all, and nothing takes the others' place."""

from __future__ import annotations

import random

import pytest

from dialsim.engine.simulation import Simulation
from dialsim.experiments.named_figures import FigureName
from dialsim.experiments.plan import Plan, plan
from dialsim.experiments.run_figures import RunFigures, figures_of
from dialsim.report.what_if import FurtherRuns
from dialsim.report.writing import plan_report
from dialsim.results.compliance import COMPLIANCE
from dialsim.results.figures import COST_PARTS, COST_PER, FIELD, FUNNEL, REACH
from dialsim.results.result import Result
from engine.breadth import broad_scenario
from engine.readings import loaded
from experiments.scenarios import CHANCY, LIMIT, crowd

LISTS = ((REACH,), (FUNNEL, COST_PER), (FIELD,), (COMPLIANCE,))
"""Prefixes of the figures that are computed together."""
SCENARIO = crowd(20, **CHANCY)
GOAL = "p90(finish) <= 12m and mean(calls_busy) >= 0"


def among_all(whole: RunFigures, asked: frozenset[str]) -> list[dict[str, float]]:
    """Of all figures of each scope, those that are made where some are asked for."""
    lists = tuple(
        prefix
        for prefixes in LISTS
        if any(name.startswith(prefixes) for name in asked)
        for prefix in prefixes
    )
    return [
        {
            name: value
            for name, value in scope.values.items()
            if name in asked or name.startswith(lists)
        }
        for scope in whole.scopes
    ]


@pytest.mark.parametrize("seed", range(12))
def test_figures_that_are_asked_for_are_those_among_all(seed: int) -> None:
    trace, chance = Simulation(loaded(broad_scenario(seed))).run(), random.Random(seed)
    whole = figures_of(Result(trace))
    names = [*whole.scopes[0].values]
    for asked in [*([name] for name in names), *(chance.sample(names, 5) for _ in range(5))]:
        some = figures_of(Result(trace), frozenset(asked))  # with an empty cache
        found = [scope.values for scope in some.scopes]
        assert repr(found) == repr(among_all(whole, frozenset(asked)))  # NaN is like NaN there
        assert (some.start, some.replication) == (whole.start, whole.replication)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[Plan]:
    """The same plan without a store, and with one."""
    return [
        plan(SCENARIO, LIMIT, (1, 8), GOAL, jobs=1, max_replications=20, store=store)
        for store in (None, tmp_path_factory.mktemp("store"))
    ]


def test_a_plan_without_a_store_makes_only_the_figures_that_it_tells(plans: list[Plan]) -> None:
    few, kept = plans
    assert few.to_dict() == kept.to_dict()
    told = {"finish", "calls_busy", "cost", "people", "people_lost", "reach_share", *COST_PARTS}
    assert {*few.estimate.runs[0].scopes[0].values} == told
    assert {"dials", "queue_wait_mean_seconds"} < {*kept.estimate.runs[0].scopes[0].values}
    busy, dials = (FigureName(name, None, None) for name in ("calls_busy", "dials"))
    assert busy.of(few.estimate.runs).tolist() == busy.of(kept.estimate.runs).tolist()
    with pytest.raises(AssertionError, match="dials"):  # which would look like 0 otherwise
        dials.of(few.estimate.runs)


@pytest.mark.usefixtures("pictures_undrawn")
def test_the_page_of_a_plan_has_all_figures_whether_a_store_kept_them_or_not(
    plans: list[Plan],
) -> None:
    few, kept = plans
    assert few.estimate.runs != kept.estimate.runs
    pages = [plan_report(answer, SCENARIO, None, FurtherRuns(2, jobs=1)) for answer in plans]
    assert pages[0] == pages[1]
