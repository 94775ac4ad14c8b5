"""Every bad scenario file and CSV in `bad/`, with the exact text of its error beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialsim.errors import ScenarioError
from dialsim.scenario.loading import load, loads

BAD = Path(__file__).parent / "bad"
SCENARIOS = sorted(path.name for path in BAD.glob("*.yaml"))
TABLES = sorted(path.name for path in BAD.glob("*.csv"))

CALLS_A_FILE = """
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents:
      - name: Reminder
        paramsSchema: {{amount: {{type: number, required: true}}, vip: {{type: boolean}}}}
    campaigns:
      - name: January
        agent: Reminder
        recipients: {{file: {file}}}
        schedule: {{startDateTime: 2026-01-05T02:00:00Z}}
"""


def golden(name: str) -> str:
    return (BAD / name).with_suffix(".txt").read_text(encoding="utf-8").rstrip("\n")


def test_there_are_enough_bad_files_and_each_has_its_golden_text() -> None:
    goldens = {path.stem for path in BAD.glob("*.txt")}
    files = [Path(name).stem for name in (*SCENARIOS, *TABLES)]
    assert len(files) >= 70
    assert sorted(files) == sorted(goldens)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_bad_scenario_gets_exactly_its_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD)
    with pytest.raises(ScenarioError) as raised:
        load(name)
    assert str(raised.value) == golden(name)


@pytest.mark.parametrize("name", TABLES)
def test_a_bad_csv_gets_exactly_its_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD)
    with pytest.raises(ScenarioError) as raised:
        loads(CALLS_A_FILE.format(file=name))
    assert str(raised.value) == golden(name)


def test_every_problem_of_a_file_has_a_place_and_a_message_without_jargon() -> None:
    for path in BAD.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        for jargon in ("pydantic", "Input should", "Field required", "Traceback", "NoneType"):
            assert jargon not in text, path.name
