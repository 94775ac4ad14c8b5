"""docs/forecast-from-today.md and docs/why-believe-it.md, carried out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

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
