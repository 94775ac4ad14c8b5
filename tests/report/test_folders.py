from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from dialsim.cli import commands
from dialsim.errors import DialsimError
from pictures import unrendered
from report.pages import ACME, Reader, acme

pytestmark = pytest.mark.usefixtures("pictures_unrendered")

LINES = "organizations.Acme.maxConcurrentCalls"
EXPERIMENTS = {
    "run": ("run", "--what-if", "0"),
    "replications": ("run", "--replications", "3", "--jobs", "1", "--what-if", "0"),
    "sweep": (
        *("sweep", "--vary", f"{LINES}=4,6", "--replications", "2", "--jobs", "1"),
        *("--what-if", "0"),
    ),
    "decided": (
        *("sweep", "--vary", f"{LINES}=4,5", "--replications", "8", "--jobs", "1"),
        *("--what-if", "0", "--decide", "finish - 1h", "--indifference", "0.02"),
        *("--baseline", "5 lines"),
    ),
    "plan": (
        *("plan", "--vary", f"{LINES}=2..6", "--goal", "p95(finish) <= 4h"),
        *("--replications", "2", "--max-replications", "4", "--jobs", "1", "--what-if", "0"),
    ),
}
MANY = [kind for kind in EXPERIMENTS if kind != "run"]


def dialsim(*words: object) -> Result:
    return CliRunner().invoke(commands, [str(word) for word in words], standalone_mode=False)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path) -> Path:
    file = folder / "scenario.yaml"
    file.write_text(ACME.text, encoding="utf-8")
    return file


def made(kind: str, scenario: Path, *more: str) -> Path:
    command, *options = EXPERIMENTS[kind]
    out = scenario.parent / "out"
    outcome = dialsim(command, scenario, *options, "--out", out, "--set", "seed=8", *more)
    assert outcome.exit_code in (0, 1), outcome.exception
    assert (out / "report.html").is_file()
    return out


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose scenario is gone."""
    scenario = written(tmp_path_factory.mktemp("one-run"))
    with unrendered():
        out = made("run", scenario)
    scenario.unlink()
    return out


@pytest.fixture
def moved(one_run: Path, tmp_path: Path) -> Path:
    """A copy of that folder elsewhere."""
    return shutil.copytree(one_run, tmp_path / "moved")


def test_report_makes_the_same_page_again_from_the_folder_alone(moved: Path) -> None:
    before = (moved / "report.html").read_bytes()
    (moved / "report.html").unlink()
    outcome = dialsim("report", moved, "--what-if", "0")
    assert outcome.exception is None
    assert outcome.output == f"Written to {moved / 'report.html'}\n"
    assert (moved / "report.html").read_bytes() == before


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "plan")) for kind in MANY]
)
def test_report_takes_all_runs_and_what_would_help_from_the_folder_alone(
    kind: str, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = made(kind, scenario, "--what-if", "2")
    scenario.unlink()
    out = out.rename(out.with_name("moved"))
    before = (out / "report.html").read_bytes()
    assert b"in 2 pairs of runs" in before
    (out / "report.html").unlink()

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a run was made again")

    monkeypatch.setattr("dialsim.experiments.pool.Workers.outcomes", fail)
    outcome = dialsim("report", out)
    assert outcome.exception is None
    assert outcome.output == f"Written to {out / 'report.html'}\n"
    assert (out / "report.html").read_bytes() == before


@pytest.mark.parametrize("command", ["run", "sweep", "plan", "report"])
def test_one_run_of_each_change_is_refused_before_anything_is_simulated(
    command: str, scenario: Path
) -> None:
    outcome = dialsim(command, scenario, "--what-if", "1")
    assert isinstance(outcome.exception, click.BadParameter)
    assert "1 run cannot show a difference" in str(outcome.exception)


@pytest.mark.usefixtures("pictures_undrawn")
def test_a_sweep_over_seeds_has_the_same_page_again(scenario: Path) -> None:
    out = scenario.parent / "out"
    asked = ("--vary", "seed=1,2", "--replications", "2", "--jobs", "1", "--what-if", "0")
    assert dialsim("sweep", scenario, *asked, "--out", out).exception is None
    before = (out / "report.html").read_bytes()
    assert dialsim("report", out).exception is None
    assert (out / "report.html").read_bytes() == before


def test_report_measures_what_would_help_where_the_run_did_not(moved: Path) -> None:
    page = moved / "report.html"
    assert "It was left out, as asked. dialsim report DIR --what-if 6 measures it" in (
        page.read_text(encoding="utf-8")
    )
    dialsim("report", moved, "--what-if", "2")
    assert "(10 runs in all)" in Reader(page.read_text(encoding="utf-8")).words


def test_a_folder_keeps_the_scenario_and_how_it_was_loaded(one_run: Path) -> None:
    said = json.loads((one_run / "manifest.json").read_bytes())
    assert (one_run / "scenario.yaml").read_text(encoding="utf-8") == ACME.text
    assert (said["overrides"], said["scenario_folder"]) == (["seed=8"], str(one_run.parent))


def test_a_folder_that_is_no_result_is_refused(tmp_path: Path) -> None:
    outcome = dialsim("report", tmp_path)
    assert isinstance(outcome.exception, DialsimError)
    assert "is not a result of dialsim" in str(outcome.exception)


def test_a_scenario_that_was_changed_is_refused(moved: Path) -> None:
    before = (moved / "report.html").read_bytes()
    (moved / "scenario.yaml").write_text(acme(people=121).text, encoding="utf-8")
    outcome = dialsim("report", moved)
    assert "has changed since" in str(outcome.exception)
    assert (moved / "report.html").read_bytes() == before


def test_a_summary_that_other_versions_made_is_refused(moved: Path) -> None:
    summary = moved / "summary.json"
    summary.write_bytes(summary.read_bytes().replace(b'"people": 160', b'"people": 161'))
    assert "gives other figures now" in str(dialsim("report", moved).exception)


@pytest.mark.usefixtures("pictures_undrawn")
def test_an_experiment_that_is_not_finished_is_refused(scenario: Path) -> None:
    out = made("sweep", scenario)
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"finished": true', '"finished": false'))
    assert "is not finished" in str(dialsim("report", out).exception)
