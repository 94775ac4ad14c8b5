"""Figures by functions of a result: wherever a built-in figure is, and in all processes."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.errors import DialsimError, ReplicationFailed
from dialsim.experiments.experiment_text import sweep_tables
from dialsim.report.sweep_page import sweep_page
from dialsim.results.figures import declared

SMALL = """
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents: [{name: Reminder}]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {count: 40}
        schedule: {startDateTime: 2026-01-05T02:00:00Z, maxAttempts: 2, retryInterval: 3600000}
costs: {perDial: 0.5}
"""
SCENARIO = dialsim.loads(SMALL)


def gap(result: dialsim.Result) -> float:
    """Return the 90 % quantile of the seconds between dials."""
    dials = result.calls["initiated_at"].dropna().sort_values()
    return float(dials.diff().dt.total_seconds().quantile(0.9))


GAP = {"gap90": dialsim.OwnFigure(gap, unit="s", label="longest gaps")}


def test_a_figure_is_that_of_the_single_runs_in_any_number_of_processes() -> None:
    expected = [gap(dialsim.run(SCENARIO, replication=number)) for number in range(4)]
    for jobs in (1, 2):
        runs = dialsim.replicate(SCENARIO, 4, figures=GAP, jobs=jobs)
        assert runs.runs["gap90"].tolist() == expected
        assert runs.runs.attrs["units"]["gap90"] == "s"
        row = runs.intervals().query("figure == 'gap90'")
        assert len(row) == 1
        assert row["mean"].item() == pytest.approx(sum(expected) / 4)
        assert row["mean_low"].item() < row["mean"].item() < row["mean_high"].item()


def test_lambdas_and_closures_reach_other_processes() -> None:
    least = 7
    figures = {"all_calls": lambda result: len(result.calls) + least}
    one, two = (dialsim.replicate(SCENARIO, 4, figures=figures, jobs=jobs) for jobs in (1, 2))
    assert one.runs["all_calls"].tolist() == two.runs["all_calls"].tolist()
    assert one.runs["all_calls"].min() >= 40 + least


def test_functions_of_a_program_without_a_module_reach_other_processes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f'''
import dialsim
SCALE = 2
def doubled(result):
    return SCALE * len(result.calls)
if __name__ == "__main__":
    runs = dialsim.replicate(dialsim.loads("""{SMALL}"""), 3, figures={{"twice": doubled}}, jobs=2)
    print(runs.runs["twice"].tolist())
''')
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=120
    )
    expected = [2 * len(dialsim.run(SCENARIO, replication=number).calls) for number in range(3)]
    assert done.stdout.split() == str([float(one) for one in expected]).split()


def test_sweeps_and_comparisons_use_common_random_numbers() -> None:
    scenario = SCENARIO.with_("costs.perDial=0.7")
    swept = dialsim.sweep(
        SCENARIO, {"costs.perDial": [0.5, 0.7], "lines": [2, 5]}, 8,
        figures=[GAP, "gap90 / people_reached"], jobs=1,
    )  # fmt: skip
    found = swept.differences().query("figure == 'gap90'")
    assert len(found) == 3
    assert 0.0 in found["difference"].tolist()  # the price of a dial moves no call
    assert found["difference"].abs().max() > 1
    assert set(found["unit"]) == {"s"}
    assert "gap90 / people_reached" in set(swept.intervals()["figure"])
    compared = dialsim.compare({"a": SCENARIO, "b": scenario}, 4, figures=GAP, jobs=1)
    row = compared.differences().query("figure == 'gap90'")
    assert row["difference"].tolist() == [0.0]
    decided = dialsim.sweep(SCENARIO, {"lines": [1, 6]}, 30, figures=GAP, decide="gap90", jobs=1)
    assert decided.decided is not None
    assert decided.decided.decisions[0].verdict == "less"


def test_labels_and_units_are_printed_and_drawn() -> None:
    swept = dialsim.sweep(SCENARIO, {"lines": [2, 5]}, 4, figures=GAP, jobs=1)
    tables, _ = sweep_tables(swept)
    said = " ".join(str(table) for table in tables)
    assert "longest gaps" in said
    assert "longest gaps" in swept.plot.curve("gap90").get_ylabel()
    page = sweep_page(swept, {})
    assert "longest gaps" in str(page)


def test_a_plan_and_an_optimum_have_goals_on_it() -> None:
    answer = dialsim.plan(SCENARIO, "lines", (1, 6), "mean(gap90) <= 60", figures=GAP, jobs=1)
    assert answer.value is not None
    best = dialsim.optimize(
        SCENARIO, {"lines": [1, 2, 3]}, "mean(people_reached) >= 5",
        minimize="mean(gap90)", figures=GAP, jobs=1,
    )  # fmt: skip
    assert "gap90" in repr(best)


def test_a_store_is_keyed_by_name_and_source(tmp_path: Path) -> None:
    said = tmp_path / "said"

    def counting(result: dialsim.Result) -> int:
        with said.open("a") as file:
            file.write("x")
        return len(result.calls)

    def runs(name: str, function: Any, count: int) -> list[float]:
        found = dialsim.replicate(
            SCENARIO, count, figures={name: function}, store=tmp_path / "store", jobs=1
        )
        values: list[float] = found.runs[name].tolist()
        return values

    first = runs("counted", counting, 3)
    assert said.read_text() == "xxx"
    assert runs("counted", counting, 4)[:3] == first
    assert said.read_text() == "xxxx"
    runs("renamed", counting, 3)
    assert said.read_text() == "xxxxxxx"
    assert runs("counted", lambda result: -len(result.calls), 3) == [-one for one in first]


def test_the_digest_tells_functions_apart() -> None:
    def bound(value: object) -> Any:
        return lambda result: value

    pairs = [bound(1), bound(2), lambda r: 1, lambda r: 2, lambda r: 1 in {"a", "b"}, len]
    found = [declared({"own": function})[0].digest for function in pairs]
    assert len(set(found)) == len(pairs)
    again = declared({"own": pickle.loads(pickle.dumps(declared({"own": gap})[0])).function})[0]
    assert again.digest == declared({"own": gap})[0].digest
    assert SCENARIO.with_own_figures(declared(GAP)).digest != SCENARIO.digest
    assert SCENARIO.with_own_figures(declared(GAP)).with_("seed=1").own_figures


@pytest.mark.parametrize(("function", "said"), [
    (lambda result: "x", "the figure bad returned 'x', not a number"),
    (lambda result: None, "the figure bad returned None, not a number"),
    (lambda result: True, "the figure bad returned True, not a number"),
    (lambda result: 1 / 0, "the figure bad raised ZeroDivisionError: division by zero"),
    (dialsim.OwnFigure(lambda result: 2, unit="share"), "returned 2, not a share between 0 and 1"),
])  # fmt: skip
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_function_that_fails_is_named(function: Any, said: str, jobs: int) -> None:
    with pytest.raises(ReplicationFailed, match=re.escape(said)):
        dialsim.replicate(SCENARIO, 2, figures={"bad": function}, jobs=jobs)


@pytest.mark.parametrize(("figures", "said"), [
    ({"cost": gap}, "there is a figure or column cost already"),
    ({"finish_by_x": gap}, "there is a figure or column finish_by_x already"),
    ({"a b": gap}, "'a b' cannot name a figure"),
    ({"x": 3}, "figures['x'] must be a function of 1 argument or an OwnFigure, not 3"),
    ({"x": dialsim.OwnFigure(gap, unit="furlong")}, "x: there is no unit 'furlong'; there are"),
    ([3], "figures[0] must be a text or a mapping, not 3"),
    (["January.gap90", GAP], "there is no figure gap90"),
])  # fmt: skip
def test_wrong_figures_are_refused_before_any_run(figures: Any, said: str) -> None:
    with pytest.raises(DialsimError, match=re.escape(said)):
        dialsim.replicate(SCENARIO, 2, figures=figures, jobs=1)


def test_a_figure_that_is_not_defined_is_missing() -> None:
    runs = dialsim.replicate(SCENARIO, 2, figures={"none": lambda result: float("nan")}, jobs=1)
    assert runs.runs["none"].isna().all()
