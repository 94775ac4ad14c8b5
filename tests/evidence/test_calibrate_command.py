"""The command `dialsim calibrate`: its file, its page, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import dialsim
from dialsim.cli import commands

SCENARIO = """
version: 1
name: Small
organizations:
  - name: Acme
    maxConcurrentCalls: 5
    agents: [{name: Reminder}]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {count: 400}
        schedule: {startDateTime: 2026-01-05T02:00:00Z, maxAttempts: 3, retryInterval: 3600000}
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log") / "run"
    dialsim.run(dialsim.loads(SCENARIO), seed=1).write(folder)
    return folder


def called(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["calibrate", *map(str, arguments)])
    return result.exit_code, result.output


def test_it_writes_a_behaviour_and_a_page(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "behaviour.yaml", tmp_path / "page.html"
    status, said = called(log, "--out", out, "--page", page, "--hold-out", "0.3")
    assert status == 0
    assert "answered at a first attempt: " in said
    assert "hold-out: " in said
    assert dialsim.loads(SCENARIO + out.read_text(encoding="utf-8")).behaviours["default"].people
    html = page.read_text(encoding="utf-8")
    assert html.count("<svg") >= 3
    assert "What the log can" in html


def test_a_file_that_exists_is_kept(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "behaviour.yaml"
    out.write_text("mine", encoding="utf-8")
    status, said = called(log, "--out", out)
    assert status == 2
    assert f"{out} exists; --force replaces it" in said
    assert out.read_text(encoding="utf-8") == "mine"


def test_nothing_is_written_where_the_page_cannot_be(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "behaviour.yaml"
    status, said = called(log, "--out", out, "--page", tmp_path / "no" / "page.html")
    assert status == 2
    assert "there is no folder" in said
    assert not out.exists()
