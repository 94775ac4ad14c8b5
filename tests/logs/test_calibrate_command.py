"""The command `dialsim calibrate`: its file, its page, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import dialsim
from cli.program import dialsim as program
from dialsim.cli import commands
from dialsim.experiments.variants import read_variants
from dialsim.testing import Sketch
from logs.running import with_behaviours

JANUARY = (
    Sketch(5, setup_time=None)
    .having(caller_ids=[])
    .campaign("January", recipients={"count": 120}, max_attempts=3, retry_interval="1h")
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log") / "run"
    dialsim.run(JANUARY.scenario(), seed=1).write(folder)
    return folder


def called(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["calibrate", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.mark.usefixtures("pictures_unrendered")
def test_it_writes_a_behaviour_and_a_page(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "behaviour.yaml", tmp_path / "page.html"
    status, said = called(log, "--out", out, "--page", page, "--hold-out", "0.3", "--jobs", 1)
    assert status == 0
    assert "outcomes.answered: " in said
    assert "hold-out: " in said
    assert "\n  January, the finish: Mon 5 Jan " in said
    scenario = with_behaviours(JANUARY, out.read_text(encoding="utf-8"))
    assert scenario.behaviours["default"].people
    html = page.read_text(encoding="utf-8")
    assert html.count("<svg") >= 3
    assert "What the log does not determine" in html
    assert "forecast from the calls before" in html


@pytest.mark.slow
@pytest.mark.usefixtures("pictures_unrendered")
def test_several_hold_outs_are_a_backtest(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "behaviour.yaml", tmp_path / "page.html"
    shares = ["--hold-out", "0.3", "--hold-out", "0.5"]
    status, said = called(log, "--out", out, "--page", page, *shares, "--jobs", 1)
    assert status == 0
    assert said.count("campaigns after ") == 2
    assert "\nOf 2 earlier forecasts " in said
    assert "Of 2 earlier forecasts " in page.read_text(encoding="utf-8")


def test_a_scenario_without_a_hold_out_is_refused(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "behaviour.yaml"
    status, said = called(log, "--out", out, "--scenario", "truth.yaml")
    assert status == 2
    assert "--scenario is for the campaigns that --hold-out forecasts" in said
    assert not out.exists()


@pytest.mark.slow
def test_a_forecast_from_draws_is_less_sure(log: Path, tmp_path: Path) -> None:
    draws = tmp_path / "draws.yaml"
    assert called(log, "--out", tmp_path / "behaviour.yaml", "--draws", draws)[0] == 0
    found = (tmp_path / "behaviour.yaml").read_text(encoding="utf-8")
    scenario = with_behaviours(JANUARY, found)
    drawn = read_variants(draws)
    assert len(drawn) == 50
    alone = dialsim.forecast(scenario, 100, jobs=1)
    shared = dialsim.forecast(scenario, 100, draws=drawn, jobs=1)
    assert (len(alone.runs), len(shared.runs)) == (100, 100)
    one, other = (found.runs.runs["people_reached"].std() for found in (alone, shared))
    assert other > 1.1 * one
    assert "shared out over 50 behaviours" in shared.sentences()[2]
    again = dialsim.forecast(scenario, 100, draws=drawn, jobs=1)
    assert again.to_dict() == shared.to_dict()
    assert list(shared.runs.runs["replication"]) == list(range(100))


@pytest.mark.slow
def test_a_forecast_from_draws_keeps_its_page(log: Path, tmp_path: Path) -> None:
    behaviour, draws = tmp_path / "behaviour.yaml", tmp_path / "draws.yaml"
    called(log, "--out", behaviour, "--draws", draws)
    few, _, _ = draws.read_text(encoding="utf-8").partition("draw 6:")
    draws.write_text(few, encoding="utf-8")
    file, out = tmp_path / "scenario.yaml", tmp_path / "forecast"
    origin = with_behaviours(JANUARY, behaviour.read_text(encoding="utf-8")).origin
    assert origin is not None
    file.write_text(origin.text, encoding="utf-8")
    asked = ["forecast", str(file), "--replications", "20", "--what-if", "0", "--jobs", "1"]
    done = CliRunner().invoke(commands, [*asked, "--out", str(out)])  # draws.yaml is beside it
    assert done.exit_code == 0
    assert "shared out over 5 behaviours" in " ".join(done.output.split())
    page = (out / "report.html").read_bytes()
    assert CliRunner().invoke(commands, ["report", str(out)]).exit_code == 0
    assert (out / "report.html").read_bytes() == page


def test_draws_of_another_scenario_are_refused(tmp_path: Path) -> None:
    file, draws = tmp_path / "scenario.yaml", tmp_path / "mine.yaml"
    file.write_text(JANUARY.text, encoding="utf-8")
    draws.write_text('draw 1: ["behaviours.default.outcomes={answered: 2}"]\n', encoding="utf-8")
    done = program("forecast", file, "--draws", draws)
    assert done.returncode == 2
    assert "variant draw 1: behaviours.default.outcomes={answered: 2}: " in done.stderr


def test_a_file_that_exists_is_kept(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "behaviour.yaml"
    out.write_text("mine", encoding="utf-8")
    status, said = called(log, "--out", out)
    assert status == 2
    assert f"{out} is there already: --force replaces it" in said
    assert out.read_text(encoding="utf-8") == "mine"


def test_nothing_is_written_where_the_page_cannot_be(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "behaviour.yaml"
    status, said = called(log, "--out", out, "--page", tmp_path / "no" / "page.html")
    assert status == 2
    assert "there is no folder" in said
    assert not out.exists()
