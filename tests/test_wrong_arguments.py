"""Public functions name a wrong argument, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dialsim

SCENARIO = dialsim.scenario(20, lines=2, attempts=2)
PEOPLE = pd.DataFrame({"tel": ["0812345678", "0891234567"], "segment": ["a", "b"]})
RESULT = dialsim.run(SCENARIO)
LOG = dialsim.read_log(RESULT.calls)
NAIVE = datetime(2026, 1, 5)  # noqa: DTZ001
GOAL = "mean(people_reached) >= 5"
CASES: list[tuple[str, Callable[[Any], object], str]] = [
    ("run", lambda d: d.run(3), "scenario must be a Scenario, .*, not 3"),
    ("run", lambda d: d.run(PEOPLE), "scenario must be a Scenario, .*, not a DataFrame"),
    ("run", lambda d: d.run(SCENARIO, seed="x"), "seed must be a whole number, not 'x'"),
    ("run", lambda d: d.run(SCENARIO, progress=3), "progress must be a function of .*, not 3"),
    ("Simulation", lambda d: d.Simulation(3), "scenario must be a Scenario, .*, not 3"),
    ("advance", lambda d: d.Simulation(SCENARIO).advance(to=3),
     "to must be a text or an aware dat"),
    ("advance", lambda d: d.Simulation(SCENARIO).advance(hours=float("nan")),
     "hours must be a number, not nan"),
    ("advance", lambda d: d.Simulation(SCENARIO).advance(hours="x"),
     "hours must be a number, not 'x'"),
    ("reanalyze", lambda d: d.Simulation(SCENARIO).reanalyze("Campaign", "x"),
     "share must be a number, not 'x'"),
    ("add_campaign", lambda d: d.Simulation(SCENARIO).add_campaign(3),
     "campaign must be a mapping, not 3"),
    ("loads", lambda d: d.loads(3), "text must be a text, not 3"),
    ("loads", lambda d: d.loads("a: 1", folder=3), "folder must be the name of a folder, not 3"),
    ("scenario", lambda d: d.scenario(pd.DataFrame()), "columns are missing"),
    ("scenario", lambda d: d.scenario(PEOPLE, columns=3), "columns must be names .*, not 3"),
    ("scenario", lambda d: d.scenario(PEOPLE, columns=["a"]), "columns must be names .*, not a l"),
    ("scenario", lambda d: d.scenario(PEOPLE, windows=3), "windows must be a text such as .*not 3"),
    ("scenario", lambda d: d.scenario(PEOPLE, start=NAIVE), "start: .* no time zon"),
    ("scenario", lambda d: d.scenario(PEOPLE, end=date(2026, 1, 5)),
     "end must be a text or an aware datetime, not a date"),
    ("scenario", lambda d: d.scenario(PEOPLE, campaign=None), "campaign must be a text, not None"),
    ("with_", lambda _: SCENARIO.with_(start=NAIVE), "start: .* no time zone"),
    ("behaviour", lambda d: d.behaviour(pd.DataFrame({"segment": ["a"], "answered": ["x"]})),
     "answered must be shares from 0 to 1"),
    ("calls_with", lambda _: RESULT.calls_with(["tel"]),
     r"columns\[0\] must be a text, not a list"),
    ("write", lambda _: RESULT.write("out", without="webhooks"),
     "without must be a list of texts, not 'w"),
    ("for_excel", lambda d: d.for_excel(3), "frame must be a DataFrame, not 3"),
    ("replicate", lambda d: d.replicate(SCENARIO, 2, precision=0.1), "precision must be a share"),
    ("replicate", lambda d: d.replicate(SCENARIO, 2, precision={"finish": "x"}),
     r"precision\['finish'\] must be a number, not 'x'"),
    ("sweep", lambda d: d.sweep(SCENARIO, {3: [1, 2]}),
     "each key of vary must be the path of a setting, such as lines, not 3"),
    ("sweep", lambda d: d.sweep(SCENARIO, {"lines": [1, 2]}, baseline="x"), "no variant x; there"),
    ("optimize", lambda d: d.optimize(SCENARIO, {3: [1]}, GOAL),
     "each key of vary must be the path of a setting"),
    ("optimize", lambda d: d.optimize(SCENARIO, {"lines": [1]}, [GOAL, 3]),
     r"goal\[1\] must be a text, not 3"),
    ("plan", lambda d: d.plan(SCENARIO, {"lines": [1]}, GOAL, known=3), "known must be a function"),
    ("compare", lambda d: d.compare([]), "a comparison needs 2 files or more, not 0"),
    ("compare", lambda d: d.compare({1: SCENARIO, 2: SCENARIO}),
     "each key of files must be a text, not 1"),
    ("forecast", lambda d: d.forecast(SCENARIO, 19, draws=3),
     "draws must be a list of Variant objects, not 3"),
    ("forecast", lambda d: d.forecast(SCENARIO, 19, notes="x"),
     "notes must be a list of texts, not 'x'"),
    ("forecast", lambda d: d.forecast(SCENARIO, 19, draws=[3]), r"draws\[0\] must be a Variant, n"),
    ("Scenario", lambda d: d.Scenario(lines=3), "scenarios come from dialsim.load, dialsim.loads"),
    ("Result", lambda d: d.Result(3), "trace must be a Trace, not 3"),
    ("occupancy", lambda _: RESULT.plot.occupancy(ax=3), "ax must be an Axes, not 3"),
    ("explore", lambda d: d.explore(3), "scenario must be the name of a file or a Scenario, .* no"),
    ("compare", lambda d: d.compare([SCENARIO, 3]), r"files\[1\] must be the name of a file or "),
    ("read_log", lambda d: d.read_log(RESULT.calls, column="x"), "column is for a file or a datab"),
    ("read_log", lambda d: d.read_log(RESULT), "source of a log must be a folder, a file .*, n"),
    ("check", lambda d: d.check(RESULT.calls, 3), "scenario must be a Scenario, .*, not 3"),
    ("compare_log", lambda d: d.compare_log(RESULT.calls, LOG), "real must be a Log, .*, not a D"),
    ("replay", lambda d: d.replay(LOG), "record must be a RecordedCalls, .*, not a Log"),
    ("RecordedCalls", lambda d: d.RecordedCalls(3, SCENARIO), "log must be a Log, .*, not 3"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "says"), CASES)
def test_a_wrong_argument_is_named(name: str, call: Callable[[Any], object], says: str) -> None:
    del name
    with pytest.raises(dialsim.DialsimError, match=says):
        call(dialsim)


@pytest.mark.parametrize(("call", "says"), [
    (lambda d: d.run(SCENARIO, 3), "run() too many positional arguments"),
    (lambda d: d.sweep(SCENARIO, {"lines": [1]}, replication=3),
     "sweep() got an unexpected keyword argument 'replication'"),
    (lambda d: d.optimize(SCENARIO, {"lines": [1]}, minimise="mean(cost)"),
     "optimize() got an unexpected keyword argument 'minimise'"),
])  # fmt: skip
def test_an_unknown_argument_is_an_error_of_the_public_function(
    call: Callable[[Any], object], says: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(says)):
        call(dialsim)


def test_two_columns_of_a_name_are_refused() -> None:
    twice = pd.DataFrame([["0812345678", "x", "y"]], columns=["tel", "branch", "branch"])
    with pytest.raises(dialsim.ScenarioError, match="several columns are named branch"):
        dialsim.scenario(twice)


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(dialsim.OutputError, match="cannot be written: Is a directory"):
        SCENARIO.to_yaml(tmp_path)
    with pytest.raises(dialsim.StoreError, match="file can't be used: File exists"):
        dialsim.replicate(SCENARIO, 2, store=tmp_path / "file", jobs=1)


def test_the_baseline_of_a_sweep_is_that_of_its_differences() -> None:
    swept = dialsim.sweep(SCENARIO, {"lines": [1, 2, 4]}, 2, baseline="2 lines", jobs=1)
    assert swept.baseline == "2 lines"
    assert {*swept.differences()["variant"]} == {"1 line", "4 lines"}
    assert swept.showing("people_reached / people").baseline == "2 lines"


def test_results_are_printed_in_at_most_15_lines(tmp_path: Path) -> None:
    log = dialsim.read_log(RESULT.write(tmp_path / "out"))
    record = dialsim.RecordedCalls(log, SCENARIO)
    wrong = dialsim.check(RESULT.calls.assign(status="NOTHING"), SCENARIO)
    printed = {
        "Summary": RESULT.summary,
        "Log": log,
        "Verified": wrong,
        "RecordedCalls": record,
        "Replayed": dialsim.replay(record),
        "LogComparison": dialsim.compare_log(log, log, SCENARIO, replications=40),
    }
    for name, value in printed.items():
        assert repr(value).startswith(f"<dialsim.{name} ".replace("Verified ", "Verified, "))
        assert repr(value).count("\n") < 15
    assert "P2: status: 'NOTHING' is no status" in repr(wrong)
