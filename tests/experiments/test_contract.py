"""One contract of names, arguments, tables and texts for all experiments."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialsim
from dialsim.errors import DialsimError, ExperimentError

PEOPLE = 60
SCENARIO = dialsim.scenario(
    PEOPLE, lines=2, attempts=2, costs={"perDial": 0.5}, organization="Acme", campaign="Debt"
)
EXPERIMENTS = ("replicate", "forecast", "sweep", "compare", "plan", "optimize")
GOAL = "mean(people_reached) >= 30 and p95(finish) <= Fri 18:00"


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """An answer of each kind."""
    plan = dialsim.plan(SCENARIO, "lines", (1, np.int64(4)), GOAL, jobs=1, max_replications=20)
    best = dialsim.optimize(
        SCENARIO, {"lines": [1, 2], "retryInterval": [timedelta(hours=3), "30m"]},
        GOAL, minimize="mean(cost)", jobs=1, max_replications=20,
    )  # fmt: skip
    compared = dialsim.compare(
        {"two": SCENARIO, "six": SCENARIO.with_(lines=6)}, 10, decide="finish", jobs=1
    )
    return {
        "plan": plan, "best": best, "compared": compared,
        "forecast": dialsim.forecast(SCENARIO, 19, jobs=1),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["plan", "best", "compared", "forecast"])
def test_answers_have_the_same_parts(answers: dict[str, Any], name: str) -> None:
    answer = answers[name]
    assert isinstance(answer.frame, pd.DataFrame)
    assert len(answer.frame)
    assert answer.sure in (True, False)
    assert [part for part in dir(answer.plot) if not part.startswith("_")]
    assert repr(answer).startswith("<dialsim.")
    assert len(repr(answer).splitlines()) <= 15
    assert "<" in answer._repr_html_()


def test_a_long_answer_says_how_much_it_leaves_out() -> None:
    from dialsim.interface.phrases import brief_text

    lines = brief_text("dialsim.Plan", [f"line {k}" for k in range(40)]).splitlines()
    assert len(lines) == 15
    assert lines[-2:] == ["line 12", "… 27 more"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_arguments_have_one_name(name: str) -> None:
    parameters = inspect.signature(getattr(dialsim, name)).parameters
    names = {*parameters}
    assert "replications" in names
    assert "n" not in names
    assert "seed" in names
    assert "jobs" in names or parameters["settings"].kind is inspect.Parameter.VAR_KEYWORD
    assert names.isdisjoint({"runs", "count", "random_state", "n_jobs"})
    kinds = {parameters[one].kind for one in names & {"figures", "seed", "confidence", "decide"}}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}


def test_levers_are_named_as_they_were_asked_for(answers: dict[str, Any]) -> None:
    assert answers["plan"].paths == ("lines",)
    assert answers["plan"].path == "organizations.Acme.maxConcurrentCalls"
    assert answers["plan"].frame.columns[0] == "lines"
    assert answers["best"].paths == ("lines", "retryInterval")
    assert [*answers["best"].frame.columns[:2]] == ["lines", "retryInterval"]
    swept = dialsim.sweep(SCENARIO, {"lines": [1, 2]}, 2, jobs=1)
    assert swept.paths == ("lines",)
    assert swept.runs.columns[1] == "lines"
    assert swept.plot.curve("finish", "lines").get_xlabel() == "lines"


def test_tables_of_plans_have_instants_and_units(answers: dict[str, Any]) -> None:
    frame = answers["plan"].frame
    late = "p95(finish) <= Fri 18:00"
    assert isinstance(frame[late].dtype, pd.DatetimeTZDtype)
    tried = [part.findings[0].estimate for part in answers["plan"].tried]
    assert frame["mean(people_reached) >= 30"].tolist() == tried
    assert frame.attrs["units"]["mean(people_reached) >= 30"] == "people"
    assert frame.attrs["units"]["reach_share"] == "share"
    assert frame.met.tolist() == [part.met for part in answers["plan"].tried]
    best = answers["best"].frame
    assert isinstance(best.finish.dtype, pd.DatetimeTZDtype)
    assert best.attrs["units"]["objective"] == "THB"
    assert best.objective.min() == min(part.objective for part in answers["best"].tried)


def test_the_table_of_a_forecast_has_its_intervals(answers: dict[str, Any]) -> None:
    found = answers["forecast"]
    frame = found.frame.set_index(["campaign", "figure"])
    row = frame.loc[("Debt", "people_reached")]
    assert (row.low, row.half, row.high) == tuple(
        getattr(found.figures.reach, end) for end in ("low", "half", "high")
    )
    finish = frame.loc[("Debt", "finish"), "half"]
    assert finish == pd.Timestamp(found.figures.finish.half, unit="ms", tz="UTC")
    assert found.sure


def test_runs_have_units_and_differences_too() -> None:
    swept = dialsim.sweep(
        SCENARIO, {"lines": [1, 3]}, 4, figures=["cost / people_reached", "finish"], jobs=1
    )
    units = swept.runs.attrs["units"]
    assert units["people_reached"] == "people"
    assert units["finish_seconds"] == "s"
    assert units["cost"] == "currency"
    table = swept.differences().drop_duplicates("figure").set_index("figure")
    assert table.unit["people_reached"] == "people"
    assert table.unit["finish_seconds"] == "s"
    assert table.unit["cost / people_reached"] == "THB per person"
    assert table.unit["finish"] == "s"
    assert table.unit.notna().all()


def test_a_sweep_over_durations_sorts_by_duration() -> None:
    values = ["2h", timedelta(minutes=30), "10m", "1d"]
    swept = dialsim.sweep(SCENARIO, {"retryInterval": values}, 2, jobs=1)
    ordered = ["10m", "30m", "2h", "1d"]
    for table in (swept.runs, swept.frame, swept.intervals()):
        found = table.sort_values("retryInterval").retryInterval
        assert [*dict.fromkeys(found)] == ordered
    ax = swept.plot.curve("people_reached")
    assert [label.get_text() for label in ax.get_yticklabels()] == ordered
    words = dialsim.sweep(SCENARIO, {"retryInterval": ["next calling day", "2h", "30m"]}, 2, jobs=1)
    assert [*words.runs.sort_values("retryInterval").retryInterval.unique()] == [
        "30m", "2h", "next calling day",
    ]  # fmt: skip


def test_one_figure_may_be_a_text() -> None:
    runs = dialsim.replicate(SCENARIO, 3, figures="cost / people_reached", jobs=1)
    assert [part.text for part in runs.expressions] == ["cost / people_reached"]
    both = {"a": SCENARIO, "b": SCENARIO}
    compared = dialsim.compare(both, 2, figures="cost / people_reached", jobs=1)
    assert [part.text for part in compared.expressions] == ["cost / people_reached"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: dialsim.replicate(SCENARIO, 3.5), "replications must be a whole number, not 3.5"),
        (lambda: dialsim.replicate(SCENARIO, True), "replications must be a whole number, not T"),
        (
            lambda: dialsim.replicate("a.yaml", 3),
            "scenario must be a Scenario, from dialsim.load or",
        ),
        (lambda: dialsim.replicate(SCENARIO, 3, jobs="2"), "jobs must be a whole number, not '2'"),
        (lambda: dialsim.replicate(SCENARIO, 3, seed=1.5), "seed must be a whole number, not 1.5"),
        (
            lambda: dialsim.replicate(SCENARIO, 3, figures=7),
            "figures must be expressions such as .* not 7",
        ),
        (
            lambda: dialsim.replicate(SCENARIO, 3, store=7),
            "store must be the name of a folder, not 7",
        ),
        (lambda: dialsim.forecast(SCENARIO, "x"), "replications must be a whole number, not 'x'"),
        (
            lambda: dialsim.sweep(SCENARIO, "lines=1,2", jobs=2.5),
            "jobs must be a whole number, not 2.5",
        ),
        (lambda: dialsim.sweep(SCENARIO, 3), "vary must be values of settings, .* not 3"),
        (
            lambda: dialsim.sweep(SCENARIO, {"lines": 3}),
            r"vary\['lines'\] must be a list of values, not 3",
        ),
        (
            lambda: dialsim.plan(SCENARIO, "lines", (1, 4), 5),
            "goal must be a text such as .* not 5",
        ),
        (lambda: dialsim.plan(SCENARIO, "lines", 5, GOAL), "between must be .* not 5"),
        (
            lambda: dialsim.plan(SCENARIO, 3, (1, 4), GOAL),
            "vary must be values of settings, .* not 3",
        ),
        (lambda: dialsim.plan(SCENARIO, "lines", goal=GOAL), "between must be .* not None"),
        (lambda: dialsim.plan(SCENARIO, "lines", (1, 4)), "goal must be a text .* not None"),
        (lambda: dialsim.plan(SCENARIO, {"lines": [1, 4]}), "goal must be a text .* not None"),
        (lambda: dialsim.plan(SCENARIO, {}, GOAL), "vary must name one setting, not 0"),
        (
            lambda: dialsim.plan(SCENARIO, {"lines": [1], "maxAttempts": [1]}, GOAL),
            "vary must name one setting, not 2: dialsim.optimize varies several",
        ),
        (
            lambda: dialsim.plan(SCENARIO, {"lines": [1, 2]}, (1, 2), GOAL),
            "vary has the values already: leave out between",
        ),
        (
            lambda: dialsim.plan(SCENARIO, {"retryInterval": ["1h", 5]}, GOAL),
            "vary: write the values of retryInterval with the same unit",
        ),
        (lambda: dialsim.plan(SCENARIO, {"lines": []}, GOAL), "lines: there are no values to try"),
        (lambda: dialsim.plan(SCENARIO, {"Debt.windows+": ["x"]}, GOAL), "a plan does not vary"),
        (
            lambda: dialsim.optimize(SCENARIO, "lines=1..3", GOAL),
            "vary must be values of settings, such as .*, not 'l",
        ),
        (
            lambda: dialsim.compare(SCENARIO),
            "files must be files or scenarios, such as .* not a Scenario",
        ),
        (lambda: dialsim.replicate(SCENARIO, 0), "the number of replications must be 1 or more"),
    ],
)
def test_a_wrong_argument_is_named(call: Any, says: str) -> None:
    with pytest.raises(ExperimentError, match=says):
        call()


def test_a_wrong_file_of_a_comparison_is_named() -> None:
    with pytest.raises(
        DialsimError, match=r"files\[0\] must be the name of a file or a Scenario, .* not 1"
    ):
        dialsim.compare([1, 2])


def test_misplaced_arguments_are_type_errors() -> None:
    with pytest.raises(TypeError):
        dialsim.replicate(SCENARIO, 3, "cost")
    with pytest.raises(TypeError):
        dialsim.sweep(SCENARIO, "lines=1,2", 3, "cost")


def test_a_plan_takes_the_values_of_a_setting_as_a_sweep_does() -> None:
    goal, asked = "mean(people_reached) >= 20", {"jobs": 1, "max_replications": 20}
    first = dialsim.plan(SCENARIO, vary={"lines": range(1, 8)}, goal=goal, **asked)
    for vary in ({"lines": [7, 2, 3, 5, 4, 6, 1]}, {"lines": "1..7"}):
        assert dialsim.plan(SCENARIO, vary, goal, **asked) == first
    assert dialsim.plan(SCENARIO, "lines", (1, 7), goal, **asked) == first
    some = dialsim.plan(
        SCENARIO, {"retryInterval": [timedelta(hours=3), "30m", "1h"]},
        "mean(people_reached) >= 1", objective="largest", **asked,
    )  # fmt: skip
    assert some.value == "3h"
    assert {*some.frame.retryInterval} <= {"30m", "1h", "3h"}
    assert some.between == ("30m", "3h")


def test_plans_take_values_as_well_as_texts() -> None:
    waits = (timedelta(minutes=30), timedelta(hours=2))
    answer = dialsim.plan(
        SCENARIO, "retryInterval", waits, "mean(people_reached) >= 1", jobs=1,
    )  # fmt: skip
    assert answer.value == "30m"
    assert answer.paths == ("retryInterval",)
    changed = SCENARIO.with_({"retryInterval": timedelta(minutes=45)}, lines=5)
    assert changed.organizations[0].max_concurrent_calls == 5
    with pytest.raises(DialsimError, match=r"lines: .* can't stand in a file"):
        SCENARIO.with_(lines=object())
