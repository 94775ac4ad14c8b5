"""docs/calibrate.md, docs/forecast-from-today.md and docs/why-believe-it.md, carried out."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

import dialsim
from cli.program import dialsim as program
from evidence.running import KEY, campaign_scenario, text

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "forecast-from-today.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "https://voice.example.com"
ID = "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"


def without_spaces(text: str) -> str:
    return "".join(text.split())


UNKNOWN = {
    "outcomes": {"answered": 0.5, "noAnswer": 0.32, "busy": 0.08, "failed": 0.1},
    "people": {"deadNumbers": 0.05, "reachable": 0.85, "concentration": 2.5},
    "answeredOdds": {"byHour": {"10": 0.7}},
    "talkTime": {"dist": "gamma", "mean": "50s", "sd": "35s"},
}
"""How the people behave whose calls the page calibrates on; it does not know that."""


@pytest.mark.slow
def test_calibrate_can_be_followed_on_a_log_of_people_whom_the_page_does_not_know(
    tmp_path: Path,
) -> None:
    scenario = campaign_scenario(2_000, 12) | {"behaviours": {"default": UNKNOWN}}
    with dialsim.Sandbox(text(scenario), seed=3) as sandbox:
        sandbox.clock.advance(days=5)
        with (tmp_path / "webhooks.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(one.body)}\n" for one in sandbox.webhooks)
    page = (DOCS / "calibrate.md").read_text(encoding="utf-8")
    followed = page.partition("## How do I do it?")[2].partition("## What is estimated")[0]
    for language, block in BLOCK.findall(followed):
        if language == "python":
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(tmp_path)
                exec(block, {})
            continue
        command, *lines = block.splitlines()
        done = program(*shlex.split(command.removeprefix("$ dialsim ")), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        for line in lines:
            assert without_spaces(line) in without_spaces(done.stdout)
    behaviour = (tmp_path / "behaviour.yaml").read_text(encoding="utf-8")
    learned = yaml.safe_load(behaviour)["behaviours"]["default"]
    for place, true in {
        ("outcomes", "answered"): 0.5,
        ("outcomes", "busy"): 0.08,
        ("people", "deadNumbers"): 0.05,
        ("people", "concentration"): 2.5,
        ("answeredOdds", "byHour", 10): 0.7,
    }.items():
        value = learned
        for key in place:
            value = value[key]
        [error] = re.findall(rf"^ *{place[-1]}: .* # ± ([\d.]+),", behaviour, re.MULTILINE)
        assert abs(value - true) < 3 * float(error)


@pytest.mark.slow
def test_the_commands_of_why_believe_it_run(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(DOCS.parent / "scenarios")
    [(_, block)] = BLOCK.findall((DOCS / "why-believe-it.md").read_text(encoding="utf-8"))
    said = []
    for line in block.splitlines():
        done = program(*shlex.split(line.removeprefix("$ dialsim ")), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert "nothing against the rules" in said[1]
    assert "hold-out: " in said[2]


@pytest.mark.slow
def test_the_page_can_be_followed_from_top_to_bottom(tmp_path: Path) -> None:
    scenario = campaign_scenario(800, 3)
    scenario["organizations"][0]["campaigns"][0]["id"] = ID
    (tmp_path / "key.txt").write_text(KEY)
    ran = []
    with dialsim.Sandbox(text(scenario), seed=11) as sandbox:
        for language, block in BLOCK.findall(PAGE):
            if language == "json":
                (tmp_path / "request.json").write_text(block)
                continue
            if language != "console":
                assert language == "python"
                found: dict[str, object] = {}
                with pytest.MonkeyPatch.context() as patch:
                    patch.chdir(tmp_path)
                    exec(block, found)
                continue
            command, *lines = block.replace("\\\n", " ").splitlines()
            words = shlex.split(command.removeprefix("$ dialsim "))
            if words[0] == "pull":  # Tuesday at 09:30, then Wednesday at 09:30
                sandbox.clock.advance(hours=24, minutes=0 if ran else 30)
            done = program(*(word.replace(ADDRESS, sandbox.url) for word in words), cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            ran.append(words[0])
            printed = without_spaces(done.stdout)
            for line in lines:
                assert without_spaces(line) in printed, f"{line!r} is not in:\n{done.stdout}"
    assert ran == ["pull", "forecast", "pull", "forecast"]
