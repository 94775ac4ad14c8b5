"""`dialsim forecast` and `dialsim.forecast`: the output, and the history of earlier forecasts."""

from __future__ import annotations

import json
import random
from math import inf
from pathlib import Path

import pandas as pd
import pytest

import dialsim
from cli.program import Done
from cli.program import dialsim as program
from dialsim.errors import ExperimentError
from dialsim.experiments.forecast import ForecastFigures, Span, kept_forecasts
from dialsim.testing import Sketch

pytestmark = pytest.mark.usefixtures("pictures_undrawn")

START = "2026-01-05T02:00:00Z"  # Monday 09:00 in Thailand
FEW = ("--replications", "19", "--jobs", "1", "--what-if", "0")


def written(folder: Path, at: str, reached: int, people: int = 60) -> Path:
    """A folder as `dialsim pull` leaves it: so many of the people are reached by an instant."""
    folder.mkdir(exist_ok=True)
    rows = ["tel,history.callAttempt,history.latestCallStatus,history.lastEndedAt"]
    for person in range(people):
        history = "1,COMPLETED,2026-01-05T02:01:00Z" if person < reached else ",,"
        rows.append(f"08{person:08},{history}")
    (folder / "people.csv").write_text("\n".join(rows) + "\n")
    sketch = (
        Sketch(2, start=at, setup_time=None)
        .also(name="January")
        .campaign("January", recipients={"file": "people.csv"}, start=START, max_attempts=2)
    )
    (folder / "scenario.yaml").write_text(sketch.text)
    return folder


def forecast(scenario: Path, *more: str | Path) -> Done:
    return program("forecast", scenario, *FEW, *more)


def said(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return " ".join(done.stdout.split())


def test_the_answer_says_when_whom_and_how_sure(tmp_path: Path) -> None:
    printed = said(forecast(written(tmp_path / "today", "2026-01-05T02:30:00Z", 20)))
    found = dialsim.forecast(dialsim.load(tmp_path / "today/scenario.yaml"), 19, jobs=1)
    runs = found.runs
    finish = sorted(run.scopes[0].values["finish"] for run in runs.figures)
    reach = sorted(run.scopes[0].values["people_reached"] for run in runs.figures)
    figures = found.figures
    assert figures is not None
    assert (figures.people, figures.reached, figures.runs) == (60, 20, 19)
    assert figures.done_by == finish[18]  # 95 of 100 are 19 of 19
    assert figures.finish == Span(finish[0], finish[9], finish[18])
    assert figures.reach == Span(reach[0], reach[9], reach[18])
    assert f"Thai time in 19 of 19 runs; it will reach {reach[9]} ({reach[0]}–{reach[18]}) of" in (
        printed
    )
    assert "of 60 people, 20 of them are reached already." in printed
    assert printed.startswith("January Done by Mon 5 Jan 1")
    assert "In nine of ten runs it is done between Mon 5 Jan 1" in printed
    assert found.sentences()[0] in printed
    assert "nine of ten: from half of the runs to" in printed


def test_the_workbook_has_the_answer_and_the_finish_with_its_interval(tmp_path: Path) -> None:
    today, out = written(tmp_path / "today", "2026-01-05T02:30:00Z", 20), tmp_path / "out"
    said(forecast(today, "--out", out, "--what-if", "0", "--excel"))
    found = dialsim.forecast(dialsim.load(today / "scenario.yaml"), 19, jobs=1)
    sheets = pd.read_excel(out / "results.xlsx", sheet_name=None)
    assert list(sheets) == ["summary", "settings", "runs", "campaigns"]
    answers = sheets["summary"].set_index("what")["value"]
    assert answers["Answer"] == found.sentences()[0]
    (row,) = sheets["settings"].to_dict("records")
    assert (row["setting"], row["runs"]) == ("January", 19)
    assert found.figures is not None
    half = pd.Timestamp(found.figures.finish.half, unit="ms") + pd.Timedelta("7h")
    assert abs(row["median finish"] - half) < pd.Timedelta("1s")
    assert row["people reached, at least"] < row["people reached"] < row["people reached, at most"]
    assert len(sheets["runs"]) == 19


def test_a_page_made_again_keeps_what_the_forecast_rests_on(tmp_path: Path) -> None:
    today, out = written(tmp_path / "today", "2026-01-05T02:30:00Z", 20), tmp_path / "out"
    said(forecast(today, "--out", out))
    pages = {name: (out / name).read_bytes() for name in ("report.html", "sheet.html")}
    assert b"The finish rests on assumed ring and setup times" in pages["report.html"]
    # A backtest is not repeated for the page: its factors are kept.
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest["arguments"]["widening"] is None
    said(program("report", out))
    assert {name: (out / name).read_bytes() for name in pages} == pages
    manifest["arguments"]["widening"] = [1.0, 2.0]
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    said(program("report", out))
    assert (out / "report.html").read_bytes() != pages["report.html"]


def test_instants_are_rounded_up_so_that_it_is_done_by_then(tmp_path: Path) -> None:
    found = dialsim.forecast(
        dialsim.load(written(tmp_path / "a", START, 0) / "scenario.yaml"), 19, jobs=1
    )
    assert found.figures is not None
    minute = -(-found.figures.done_by // 60_000)
    text = found.answer().removeprefix("Done by Mon 5 Jan ").partition(" ")[0]
    hour, past = divmod(int(minute) % 1440 + 7 * 60, 60)
    assert text == f"{hour:02}:{past:02}"


@pytest.mark.slow
def test_many_forecasts_in_one_folder_say_what_has_changed(tmp_path: Path) -> None:
    out = tmp_path / "forecast"
    monday = written(tmp_path / "monday", START, 0)
    first = said(forecast(monday, "--out", out))
    assert "Since the forecast" not in first
    nine = written(tmp_path / "nine", "2026-01-05T02:00:01Z", 0)
    assert "0 more people are reached" in said(forecast(nine, "--since", out))
    again = said(forecast(monday, "--out", out))
    assert "Since the forecast" not in again
    noon = written(tmp_path / "noon", "2026-01-05T05:00:00Z", 5)
    second = said(forecast(noon, "--out", out))
    assert "Since the forecast of Mon 5 Jan 09:00: 5 more people are reached, it is done" in second
    assert "(as the last forecast expected)" in second
    later = written(tmp_path / "later", "2026-01-05T06:00:00Z", 50)
    third = said(forecast(later, "--out", out))
    assert "Since the forecast of Mon 5 Jan 12:00: 45 more people are reached" in third
    assert "(outside its interval)" in third
    table = third[third.index("Forecast of done by") :]
    assert table.index("Mon 5 Jan 09:00") < table.index("Mon 5 Jan 12:00")
    assert table.index("Mon 5 Jan 12:00") < table.index("Mon 5 Jan 13:00")
    kept = kept_forecasts(out)
    assert [part.reached for part in kept] == [0, 5, 50]
    document = json.loads((out / "summary.json").read_text())
    assert [part["at"] for part in document["earlier"]] == [
        "2026-01-05T02:00:00.000Z", "2026-01-05T05:00:00.000Z",
    ]  # fmt: skip
    assert document["forecast"]["reached"] == 50
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Since the last forecast" in page
    assert "When is it done?" in page
    assert "Half of the runs by Mon 5 Jan" in page
    (out / "report.html").unlink()
    assert program("report", out).returncode == 0
    assert (out / "report.html").read_text(encoding="utf-8") == page


def test_another_folder_may_hold_the_earlier_forecast(tmp_path: Path) -> None:
    said(forecast(written(tmp_path / "a", START, 0), "--out", tmp_path / "one"))
    noon = written(tmp_path / "b", "2026-01-05T05:00:00Z", 30)
    assert "30 more people are reached" in said(forecast(noon, "--since", tmp_path / "one"))
    # what begins no earlier than this one is no earlier forecast
    morning = written(tmp_path / "a", START, 0)
    assert "Since" not in said(forecast(morning, "--since", tmp_path / "one"))


@pytest.mark.parametrize("kind", ["empty", "run", "damaged"])
def test_since_must_be_a_forecast(tmp_path: Path, kind: str) -> None:
    folder, scenario = tmp_path / "other", written(tmp_path / "a", START, 0)
    folder.mkdir()
    if kind == "run":
        said(program("run", scenario / "scenario.yaml", "--out", folder, "--force"))
    if kind == "damaged":
        (folder / "manifest.json").write_text('{"experiment": "forecast"}')
    done = forecast(scenario, "--since", folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no folder of dialsim forecast --out" in done.stderr


def test_other_results_are_not_replaced(tmp_path: Path) -> None:
    scenario = written(tmp_path / "a", START, 0)
    out = tmp_path / "out"
    said(program("run", scenario / "scenario.yaml", "--out", out))
    done = forecast(scenario, "--out", out)
    assert done.returncode == 2
    assert "exists already; choose another folder, or use --force" in done.stderr


def test_who_is_lost_makes_it_not_sure() -> None:
    scenario = dialsim.load("scenarios/end-too-early.yaml")
    found = dialsim.forecast(scenario, 19, jobs=1)
    assert found.figures is not None
    assert found.figures.done_by == inf
    assert found.answer() == "Not done in 19 of 19 runs"
    assert any(
        line.startswith("Warning: in every run people are lost") for line in found.sentences()
    )
    assert ForecastFigures.from_dict(found.figures.to_dict()) == found.figures


def test_too_few_runs_are_no_forecast() -> None:
    scenario = dialsim.load("scenarios/forecast-from-the-middle.yaml")
    with pytest.raises(ExperimentError, match="a forecast takes 19 runs or more, not 18"):
        dialsim.forecast(scenario, 18)


@pytest.mark.parametrize("runs", [19, 50, 100])
def test_the_span_holds_nine_of_ten_further_values(runs: int) -> None:
    chance, trials = random.Random(runs), 4000
    held = 0
    for _ in range(trials):
        *values, truth = (chance.expovariate(1) for _ in range(runs + 1))
        span = Span.of(values)
        held += span.low <= truth <= span.high
    outside = runs + 1 - 2 * ((runs + 1) // 20)
    assert held / trials == pytest.approx(outside / (runs + 1), abs=0.015)
    assert outside / (runs + 1) >= 0.9
