"""`dialsim run --replications`, `sweep` and `plan` as a planner uses them."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from cli.program import ROOT, SCRIPTED, dialsim
from dialsim.cli import main

pytestmark = pytest.mark.usefixtures("pictures_undrawn")

LIMIT = "organizations.Acme.maxConcurrentCalls"
FIRST = "scenarios/first-campaign.yaml"
FEW = ("--set", "organizations.Acme.campaigns.January.recipients.count=60", "--jobs", "1")


@pytest.mark.parametrize("command", ["sweep", "compare", "plan"])
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = dialsim(command, "--help")
    assert done.returncode == 0
    assert f"dialsim {command} " in done.stdout.split("Example:")[1]
    assert command in dialsim("--help").stdout


def test_many_runs_print_when_they_are_done_and_how_sure_that_is(tmp_path: Path) -> None:
    asked = ("--replications", "12", "--what-if", "0")
    done = dialsim("run", FIRST, *FEW, *asked, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "12 replications of seed 1: half of them are done by Mon 5 Jan 11:05 Thai time; " in said
    assert "is only an estimate: 72 runs or more would bound it." in said
    assert "January finishes" in done.stdout
    assert f"Written to {tmp_path / 'out'}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    frame = pd.read_parquet(tmp_path / "out/campaigns.parquet")
    assert len(frame) == 12
    document = json.loads((tmp_path / "out/summary.json").read_text())
    finish = document["estimates"][0]
    assert (finish["figure"], finish["runs"]) == ("finish_seconds", 12)
    assert finish["finish_p50"].startswith("2026-01-05T0")
    assert finish["mean"] is None
    assert finish["p95_high"] is None
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["experiment"], manifest["finished"]) == ("replications", True)
    page = (tmp_path / "out/report.html").read_bytes()
    assert dialsim("report", tmp_path / "out").returncode == 0
    assert (tmp_path / "out/report.html").read_bytes() == page


def workbook(folder: Path) -> dict[str, pd.DataFrame]:
    return pd.read_excel(folder / "results.xlsx", sheet_name=None)


def test_workbooks_have_settings_side_by_side_with_intervals(tmp_path: Path) -> None:
    asked = ("--what-if", "0", "--excel", "--engine", "simpy", "--out")
    few, share = ("--replications", "4"), "cost / people_reached"
    goal = ("--goal", "p95(finish) <= Tue 12:00 and mean(cost) <= 999", "--max-replications", "8")
    commands = {
        "run": (FIRST, *few, "--figure", share),
        "sweep": (FIRST, *few, "--vary", "lines=4,6"),
        "plan": (FIRST, "--vary", "lines=4..6", *goal),
    }
    for command, arguments in commands.items():
        done = dialsim(command, *arguments, *FEW, *asked, tmp_path / command)
        assert done.stderr == ""
    alone, swept, planned = (workbook(tmp_path / name) for name in commands)

    (row,) = alone["settings"].to_dict("records")
    assert (row["setting"], row["runs"]) == ("First campaign", 4)
    runs = pd.read_parquet(tmp_path / "run/runs.parquet")
    estimates = pd.read_parquet(tmp_path / "run/estimates.parquet")
    cost = estimates.query("scope == 'run' and figure == 'cost'").iloc[0]
    for end, name in (("", ""), ("_low", ", at least"), ("_high", ", at most")):
        assert row[f"cost{name}"] == pytest.approx(cost[f"mean{end}"])
    assert row["cost, at least"] < row["cost"] < row["cost, at most"]
    finish = runs["finish"].sort_values().iloc[1].tz_convert("Asia/Bangkok").tz_localize(None)
    assert abs(row["median finish"] - finish) < pd.Timedelta("1ms")
    assert row[share] == pytest.approx(row["cost per reached"])
    answer = alone["summary"].set_index("what")["value"]["Answer"]
    assert str(answer).startswith("4 replications of seed 1: half of them are done by Mon 5 Jan")

    assert list(swept["settings"]["setting"]) == ["4 lines", "6 lines"]
    assert set(swept) >= {"summary", "settings", "differences", "runs"}
    assert swept["settings"]["median finish"].is_monotonic_decreasing

    tried = planned["settings"]
    assert set(tried["setting"]) >= {"4 lines", "6 lines"}
    assert set(tried["meets the goal"]) <= {"yes", "no", "yes, not sure", "no, not sure"}
    assert tried["p95(finish)"].dt.date.astype("str").eq("2026-01-05").all()
    assert (tried["mean(cost), at least"] < tried["mean(cost), at most"]).all()
    formats = {
        cell.value: below.number_format
        for cell, below in zip(
            *openpyxl.load_workbook(tmp_path / "plan/results.xlsx")["settings"]["1:2"], strict=True
        )
    }
    assert formats["p95(finish)"] == "yyyy-mm-dd hh:mm:ss"
    assert formats["share reached, at least"] == "0.0%"
    assert formats["cost"] == "#,##0.00"


@pytest.mark.slow
def test_workbooks_of_comparisons_and_combinations(tmp_path: Path) -> None:
    asked = ("--what-if", "0", "--excel", "--engine", "simpy", "--out")
    other = tmp_path / "other.yaml"
    other.write_text((ROOT / FIRST).read_text(), encoding="utf-8")
    few = ("--set", "January.recipients.count=60", "--jobs", "1")
    dialsim("compare", FIRST, other, *few, "--replications", "4", *asked, tmp_path / "both")
    both = workbook(tmp_path / "both")
    assert list(both["settings"]["setting"]) == ["first-campaign", "other"]
    vary = ("--vary", "lines=2,4", "--vary", "January.maxAttempts=1..2")
    dialsim("plan", FIRST, *vary, "--minimize", "mean(cost / people_reached)",
            "--goal", "p95(finish) <= 5h", *few, "--max-replications", "12", *asked,
            tmp_path / "best")  # fmt: skip
    best = workbook(tmp_path / "best")["settings"]
    assert list(best["setting"]) == [
        *("2 lines, 1 attempt", "2 lines, 2 attempts", "4 lines, 1 attempt", "4 lines, 2 attempts")
    ]
    assert (best["cost / people_reached"] > 2).all()
    assert str(best["p95(finish)"][0]).endswith(" s")


@pytest.mark.slow
def test_a_wanted_precision_is_reported(tmp_path: Path) -> None:
    asked = ("--precision", "finish=10%", "--format", "json")
    document = json.loads(dialsim("run", FIRST, *FEW, *asked).stdout)
    (precision,) = document["precision"]
    assert (precision["figure"], precision["wanted"], precision["met"]) == ("finish", 0.1, True)
    assert precision["reached"] <= 0.1
    assert document["replications"] >= 20


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = (*FEW, "--vary", f"{LIMIT}=9,10", "--replications", "2", "--what-if", "0")
    sweep = ("sweep", FIRST, *asked, "--out", out)
    assert dialsim(*sweep).returncode == 0
    assert dialsim(*sweep).returncode == 0
    other = dialsim(*sweep, "--seed", "4")
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr == (
        f"Error: {out} is there already, with another seed; choose another folder, or use --force\n"
    )
    run = dialsim("run", FIRST, *FEW, "--replications", "2", "--out", out)
    assert "with another kind of experiment" in run.stderr
    assert dialsim(*sweep, "--seed", "4", "--force").returncode == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    for force in ((), ("--force",)):
        done = dialsim("run", FIRST, "--replications", "2", "--out", tmp_path / "mine", *force)
        assert done.returncode == 2
    assert (tmp_path / "mine/letter.txt").read_text() == "dear"


def test_a_sweep_says_which_differences_are_real(tmp_path: Path) -> None:
    asked = ("--vary", f"{LIMIT}=5,10", "--replications", "6", "--what-if", "0")
    done = dialsim("sweep", FIRST, *FEW, *asked, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 variants, 6 replications each, all with the same chance." in done.stdout
    assert "Minus 5 lines" in done.stdout
    assert ", real" in done.stdout
    document = json.loads(dialsim("sweep", FIRST, *FEW, *asked, "--format", "json").stdout)
    assert document == json.loads((tmp_path / "out/summary.json").read_text())
    row = document["differences"][0]
    assert (row["figure"], row["real"], row["method"]) == (
        "finish_seconds",
        True,
        "order statistics",
    )
    assert row["high"] < 0
    differences = pd.read_parquet(tmp_path / "out/differences.parquet")
    assert len(differences) == len(document["differences"])


def test_a_figure_that_decides_says_what_it_has_decided_after_how_many_runs(tmp_path: Path) -> None:
    few, many = tmp_path / "few.yaml", tmp_path / "many.yaml"
    text = (ROOT / FIRST).read_text(encoding="utf-8")
    few.write_text(text, encoding="utf-8")
    many.write_text(text.replace("maxConcurrentCalls: 10", "maxConcurrentCalls: 20"), "utf-8")
    asked = (*FEW, "--replications", "20", "--decide", "finish", "--what-if", "0", "--jobs", "1")
    out = tmp_path / "out"
    done = dialsim("compare", few, many, *asked, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "2 files, 8 replications each, all with the same chance." in said
    assert "Decided by finish against few: 1 of 1 differ. That took 16 of 40 runs." in said
    document = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert document["decided"] == {
        "figure": "finish",
        "indifference": 0.005,
        "baseline": "few",
        "most": 20,
        "confidence": 0.95,
        "decisions": [
            {"variant": "many", "verdict": "less", "runs": 8, "more": 0, "less": 8, "alike": 0}
        ],
    }
    assert len(pd.read_parquet(out / "decisions.parquet")) == 1
    page = (out / "report.html").read_bytes()
    assert b"Decided by finish" in page
    assert dialsim("report", out).returncode == 0
    assert (out / "report.html").read_bytes() == page


def test_a_plan_prints_the_value_its_estimate_and_its_neighbour() -> None:
    # four scripted people: one is called a second time an hour later, whatever the lines
    asked = ("--vary", f"{LIMIT}=1..6", "--goal", "p95(finish) <= 2h", "--jobs", "1")
    done = dialsim("plan", FIRST, *FEW, *asked, "--format", "json")
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["met"] else 1)
    for key in ("value", "met", "goal", "estimate", "neighbour", "tried", "warnings"):
        assert key in document
    assert document["goal"] == "p95(finish) <= 2h"


def test_a_plan_that_can_not_be_met_says_what_comes_closest_and_exits_1() -> None:
    asked = ("--vary", f"{LIMIT}=1..3", "--goal", "mean(finish) <= 1s", "--jobs", "1")
    done = dialsim("plan", SCRIPTED, *asked)
    assert (done.returncode, done.stderr) == (1, "")
    answer = " ".join(done.stdout.split())
    assert "No number of lines from 1 to 3 is enough to be done within 1 s on average; " in answer
    assert (
        "; closest: 2 lines. Asked for: the fewest lines from 1 to 3 with mean(finish) <= 1s "
        in answer
    )


def test_expressions_are_shown_beside_the_figures_and_kept_in_the_folder(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    asked = ("--vary", f"{LIMIT}=1,2", "--replications", "3", "--jobs", "1", "--what-if", "0")
    done = dialsim("sweep", SCRIPTED, *asked, "--figure", "calls / people", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\ncalls / people (calls per person)" in done.stdout
    document = json.loads((tmp_path / "out/summary.json").read_text(encoding="utf-8"))
    (row,) = [row for row in document["differences"] if row["figure"] == "calls / people"]
    assert (row["mean"], row["difference"]) == (2.25, 0)
    page = tmp_path / "out/report.html"
    before = page.read_bytes()
    assert b"calls / people (calls per person)" in before
    assert dialsim("report", out).returncode == 0
    assert page.read_bytes() == before


BAD = {
    ("sweep",): "Error: say what to try: one of --vary, --design and --variants\n",
    ("sweep", "--vary", "seed"): (
        "Error: --vary seed: write PATH=VALUES, such as lines=10,20,30 or lines=10..60:5\n"
    ),
    ("sweep", "--vary", "seed=5..1"): (
        "Error: --vary seed=5..1: 5..1: the range ends before it begins\n"
    ),
    ("sweep", "--vary", "seed=1..many"): (
        "Error: --vary seed=1..many: many is not a number, a duration such as 30m or an instant "
        "such as Fri 18:00, 2026-01-05 09:00 or 2026-01-05T02:00:00Z\n"
    ),
    ("sweep", "--vary", "seed=1..9:10m"): (
        "Error: --vary seed=1..9:10m: step 10m: the step of this range is a number greater than 0\n"
    ),
    ("sweep", "--vary", "seed=1m..9"): (
        "Error: --vary seed=1m..9: 1m..9: a duration and a whole number make no range\n"
    ),
    ("sweep", "--vary", "seed=1..100000"): (
        "Error: --vary seed=1..100000: 100,000 values are too many; give a step\n"
    ),
    ("sweep", "--vary", "seed=1,,2"): (
        "Error: --vary seed=1,,2: a value is missing between two commas\n"
    ),
    ("sweep", "--vary", "seed=1", "--vary", "seed=2"): (
        "Error: --vary seed is given twice: put its values into one\n"
    ),
    ("sweep", "--vary", "seed=1,2", "--baseline", "seed=3"): (
        "Error: there is no variant seed=3; there are: seed=1; seed=2\n"
    ),
    ("sweep", "--vary", "organizations.Bolt.seats=1,2"): (
        "Error: variant seats=1: organizations.Bolt.seats=1: organizations has no item named Bolt; "
        "there are Acme\n"
    ),
    ("sweep", "--vary", "seed=1,2", "--indifference", "0.1"): (
        "Error: --indifference needs --decide FIGURE, the figure that decides\n"
    ),
    ("sweep", "--vary", "seed=1,2", "--decide", "finish", "--replications", "4"): (
        "Error: 4 replications are too few to distinguish 2 variants: 6 or more are enough\n"
    ),
    ("sweep", "--vary", "seed=1,1"): "Error: the variant seed=1 appears twice\n",
    ("plan", "--vary", "organizations.Bolt.seats=1..3", "--goal", "mean(dials) >= 1"): (
        "Error: variant seats=1: organizations.Bolt.seats=1: organizations has no item named Bolt; "
        "there are Acme\n"
    ),
    ("plan", "--vary", "seed=1..2", "--maximize", "mean(dials)", "--objective", "largest"): (
        "Error: --objective is for a single setting: give --maximize or --minimize instead\n"
    ),
    ("plan", "--vary", "seed=1..2", "--vary", "seed=4..5", "--goal", "mean(dials) >= 1"): (
        "Error: --vary seed is given twice: put its values into one\n"
    ),
    ("plan", "--vary", "seed=1..2", "--vary", f"{LIMIT}=1..9"): (
        "Error: say what is wanted: --goal, --maximize or --minimize\n"
    ),
    ("plan", "--vary", "seed=1..2"): (
        "Error: say what is wanted: --goal, --maximize or --minimize\n"
    ),
    ("plan", "--vary", "seed=1..2", "--maximize", "people_reached"): (
        "Error: people_reached: write mean(FIGURE), such as mean(people_reached)\n"
    ),
    ("plan", "--vary", "seed=1..2", "--goal", "mean(finnish) >= 1"): (
        "Error: there is no figure finnish; did you mean finish?\n"
        "  mean(finnish) >= 1\n"
        "       ^^^^^^^\n"
    ),
    ("plan", "--vary", "seed=1..2", "--goal", "finish <= 5d"): (
        "Error: goal finish <= 5d: say of many runs, mean(finish) <= 5d, p95(finish) <= 5d or "
        "prob(finish <= 5d) >= 0.95\n"
    ),
    ("run", "--precision", "finish"): (
        "Error: precision finish: write FIGURE=PERCENT, such as finish=2%\n"
    ),
    ("run", "--precision", "finish=0%"): (
        "Error: precision of finish: 0 is not between 0 and 1 (0 % and 100 %)\n"
    ),
    ("run", "--precision", "end=2%"): ("Error: there is no figure end\n"),
    ("run", "--figure", "cost / people"): (
        "Error: --figure is for many runs: give --replications as well\n"
    ),
    ("run", "--replications", "3", "--figure", "calls / peopel"): (
        "Error: there is no figure peopel; did you mean people?\n"
        "  calls / peopel\n"
        "          ^^^^^^\n"
    ),
    ("run", "--precision", "calls / =2%"): (
        "Error: the expression ends where a figure or a number must be\n  calls /\n         ^\n"
    ),
    ("sweep", "--vary", "seed=1,2", "--figure", "finish + people"): (
        "Error: finish is an instant, people is a number of people: an instant can only be moved "
        "by a time, such as 2h, or taken from another instant\n"
        "  finish + people\n"
        "         ^\n"
    ),
    ("run", "--replications", "3", "--replication", "1"): (
        "Error: --replication is for one run: it doesn't go with many\n"
    ),
}


def test_a_list_of_values_will_do_with_one_lever() -> None:
    asked = ("plan", FIRST, "--vary", "lines=8,9,12", "--goal", "mean(people_reached) >= 1")
    done = dialsim(*asked, "--max-replications", "20", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    assert "8 lines has the smallest values of 3 combinations" in " ".join(done.stdout.split())


def test_a_list_of_people_in_place_of_a_scenario_names_the_command_that_makes_one() -> None:
    done = dialsim("run", "scenarios/debtors.xlsx")
    assert done.returncode == 2
    assert "dialsim new --list scenarios/debtors.xlsx writes one" in done.stderr


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_wrong_use_is_told_in_a_sentence_and_exits_2(
    arguments: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, *rest = arguments
    out = str(tmp_path / "out")
    monkeypatch.setattr("sys.argv", ["dialsim", command, SCRIPTED, *rest, "--out", out])
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    said = printed.err.splitlines(keepends=True)
    assert (ended.value.code, printed.out) == (2, "")
    assert (
        "".join(line for line in said if not line.startswith(("Usage", "Try", "\n")))
        == (BAD[arguments])
    )
    assert not (tmp_path / "out").exists()


def test_files_are_compared_with_what_they_say(tmp_path: Path) -> None:
    first = (ROOT / FIRST).read_text(encoding="utf-8")
    more = tmp_path / "more-lines.yaml"
    more.write_text(first.replace("maxConcurrentCalls: 10", "maxConcurrentCalls: 14"))
    out = tmp_path / "out"
    asked = ("compare", FIRST, more, *FEW, "--replications", "6", "--what-if", "0", "--out", out)
    done = dialsim(*asked, "--figure", "people_reached / dials")
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert said.startswith(
        "first-campaign or more-lines Against first-campaign: more-lines: median finish -1 min"
    )
    assert "organizations.Acme.maxConcurrentCalls 10 14" in said
    assert "people_reached / dials (people per dial) mean" in said
    document = json.loads((out / "summary.json").read_text())
    assert document["file_differences"] == [
        {
            "path": "organizations.Acme.maxConcurrentCalls",
            "values": {"first-campaign": "10", "more-lines": "14"},
        }
    ]
    page = (out / "report.html").read_bytes()
    more.unlink()
    assert dialsim("report", out).returncode == 0
    assert (out / "report.html").read_bytes() == page
    other = dialsim("compare", FIRST, FIRST, *FEW, "--out", out)
    assert other.returncode == 2
    assert "with another choice of files" in other.stderr


def test_what_overrides_mean_is_said_before_files_are_compared() -> None:
    done = dialsim("compare", FIRST, FIRST, *FEW, "--set", "lines=5", "--replications", "2")
    assert done.stdout.startswith("--set lines=5: organizations.Acme.maxConcurrentCalls\n")


def test_one_file_can_not_be_compared() -> None:
    done = dialsim("compare", FIRST)
    assert done.returncode == 2
    assert "name two files or more: dialsim compare a.yaml b.yaml" in done.stderr


def test_the_best_combination_is_found_with_its_page(tmp_path: Path) -> None:
    out = tmp_path / "out"
    attempts = "organizations.Acme.campaigns.January.schedule.maxAttempts"
    asked = (
        *("plan", FIRST, *FEW, "--vary", f"{LIMIT}=1..3", "--vary", f"{attempts}=1,2"),
        *("--goal", "p95(finish) <= 2h", "--goal", "mean(cost) <= 100"),
        *("--maximize", "mean(people_reached)", "--max-replications", "8"),
    )
    done = dialsim(*asked, "--out", out)
    assert done.returncode == 0
    assert "has the greatest mean(people_reached)" in " ".join(done.stdout.split())
    assert "Beaten by none" in done.stdout
    document = json.loads((out / "summary.json").read_text())
    assert document["combinations"] == 6
    assert json.loads(dialsim(*asked, "--format", "json").stdout) == document
    page = (out / "report.html").read_bytes()
    assert dialsim("report", out).returncode == 0
    assert (out / "report.html").read_bytes() == page
    none = dialsim(*asked[:-6], "--goal", "mean(people_reached) >= 61")
    assert none.returncode == 1
    assert "None of 6 combinations meets the goal" in none.stdout
