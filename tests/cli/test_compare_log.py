"""`dialsim compare-log`: what it prints, and its exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dialsim
from cli import program
from dialsim.cli import commands
from dialsim.logs.distances import METRICS
from dialsim.testing import Sketch

pytestmark = pytest.mark.usefixtures("pictures_unrendered")

TEXTS = Path(__file__).parent


def january(start: str) -> Sketch:
    """A campaign of 150 people that begins at an instant."""
    return Sketch(3, start=start, setup_time=None).campaign(
        "January", recipients={"count": 150}, max_attempts=2, retry_interval="1h"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("logs")
    plan, later = january("Mon 09:00"), january("Mon 11:00")
    (place / "plan.yaml").write_text(plan.text)
    for name, sketch, seed in (("real", plan, 1), ("same", plan, 2), ("later", later, 2)):
        dialsim.run(sketch.scenario(), seed=seed).write(place / name)
    return place


def called(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> Result:
    monkeypatch.chdir(folder)
    return CliRunner().invoke(commands, ["compare-log", *arguments, "--replications", "40"])


@pytest.mark.parametrize(("simulated", "status"), [("same", 0), ("later", 1)])
def test_it_says_what_differs_most(
    simulated: str, status: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = called(monkeypatch, folder, "real", simulated, "--scenario", "plan.yaml")
    assert done.output == (TEXTS / f"compare_log_{simulated}.txt").read_text(encoding="utf-8")
    assert done.exit_code == status


def test_the_same_as_json(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = called(monkeypatch, folder, "real/webhooks.jsonl", "later", "--format", "json")
    assert done.exit_code == 1
    document = json.loads(done.output)
    assert document["mainDifference"] == "shift"
    assert document["noise"] == {"from": "the scenario in later", "replications": 40}
    assert next(one["key"] for one in document["distances"] if one["beyondNoise"]) == "shift"
    assert document["real"]["people"] == 150


def test_a_page_has_the_sentence_a_picture_of_each_kind_and_all_distances(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = called(monkeypatch, folder, "real", "later", "--page", "compared.html")
    assert done.exit_code == 1
    assert done.output.endswith("Written: compared.html\n")
    html = (folder / "compared.html").read_text(encoding="utf-8")
    assert "What differs most is the shift of all calls" in html
    assert html.count("<svg") == 6
    assert html.count("<tr") == 1 + len(METRICS)
    again = called(monkeypatch, folder, "real", "later", "--page", "compared.html")
    assert (
        again.exit_code,
        again.output.count("compared.html is there already: --force replaces it"),
    ) == (
        2,
        1,
    )


def test_a_page_of_masked_people_says_what_is_not_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (folder / "real" / "webhooks.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    for entry in entries:
        recipient = entry["body"]["payload"]["recipient"]
        recipient["tel"] = "xxxxx" + recipient["tel"][-4:]
        recipient["customerName"] = None
    text = "\n".join(map(json.dumps, entries))
    (folder / "masked.jsonl").write_text(text, encoding="utf-8")
    called(monkeypatch, folder, "masked.jsonl", "same", "--page", "masked.html")
    html = (folder / "masked.html").read_text(encoding="utf-8")
    assert "Not compared where there is no number: people are masked in masked.jsonl." in html
    assert "<td>–</td>" in re.sub(r"<td[^>]*>", "<td>", html)
    assert html.count("<svg") == 6


def test_what_is_no_log_ends_with_2(folder: Path) -> None:
    done = program.dialsim("compare-log", "real", "plan.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: plan.yaml: no body of a CALL_RESULT webhook in it\n")
