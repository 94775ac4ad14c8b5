"""docs/forecast-from-today.md, docs/calibrate.md and docs/why-believe-it.md, carried out.

The service is a sandbox. How its people behave and how its engine is set stands in `truth.yaml`;
the pages and the commands on them do not know it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
import yaml

import dialsim
from cli.program import dialsim as program
from dialsim.interface.instants import minute_text
from dialsim.scenario.units import parse_duration
from logs.running import KEY

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(console|python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
ADDRESS = "https://voice.example.com"
ID = "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"
TRUTH = (Path(__file__).parent / "truth.yaml").read_text(encoding="utf-8")
Block = tuple[str, str]


def blocks_of(page: str, after: str = "", before: str = "\0") -> list[Block]:
    """Return language and text of the code blocks of a page, or between two of its headings."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return BLOCK.findall(text[text.index(after) :].partition(before)[0])


FORECAST = blocks_of("forecast-from-today.md")
[PLAN] = [block for language, block in FORECAST if language == "yaml"]


def is_printed(line: str, printed: str) -> bool:
    """True if a line of a page is printed, ignoring spaces and the last digit of numbers.

    Estimates from long logs have been seen to differ by one in it from machine to machine.
    """
    line, printed = "".join(line.split()), "".join(printed.split())
    pattern = f"({NUMBER.pattern})".join(map(re.escape, NUMBER.split(line)))
    expected = NUMBER.findall(line)
    return any(
        all(is_near(one, other) for one, other in zip(found.groups(), expected, strict=True))
        for found in re.finditer(pattern, printed)
    )


def is_near(text: str, expected: str) -> bool:
    number, other = (float(one.replace(",", "")) for one in (text, expected))
    last_digit = 10.0 ** -len(expected.partition(".")[2])
    return abs(number - other) <= 1.001 * last_digit


def carried_out(block: Block, folder: Path, address: str = ADDRESS) -> str:
    """Write a file, run Python, or give a command: then all lines below it must be printed.

    Returns what the command printed.
    """
    language, text = block
    if language == "yaml":
        name = text.split("\n", 1)[0].removeprefix("# ")
        (folder / name).write_text(text, encoding="utf-8")
    elif language == "python":
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            exec(text, {})
    else:
        command, *lines = text.replace("\\\n", " ").splitlines()
        words = shlex.split(command.replace(ADDRESS, address).removeprefix("$ dialsim "))
        done = program(*words, cwd=folder)
        differs = words[0] == "compare-log" and "No difference beyond noise." not in lines
        assert done.returncode == int(differs), done.stderr
        assert lines
        for line in lines:
            assert is_printed(line, done.stdout), f"{line!r} is not in:\n{done.stdout}"
        return done.stdout
    return ""


def interval_of(printed: str) -> tuple[list[datetime], list[int]]:
    """The 90 % intervals of finish and reach in what `dialsim forecast` prints."""
    [ends] = re.findall(r"it is done between (.+?) and (.+?)\.", printed)
    [reach] = re.findall(r"it will reach \d+ \((\d+)–(\d+)\)", printed)
    finish = [datetime.strptime(f"{end} 2026 +0700", "%a %d %b %H:%M %Y %z") for end in ends]
    return finish, [int(end) for end in reach]


@contextmanager
def service(folder: Path) -> Iterator[dialsim.Sandbox]:
    """The planned campaign with the true behaviour and engine, on the first morning.

    The folder gets what the reader has: the plan, the list, the API key.
    """
    people = "tel,agentParams.amount\n" + "".join(
        f"08{(12_345 + 7_919 * n) % 10**8:08},{100 + n % 50}\n" for n in range(900)
    )
    (folder / "truth").mkdir()
    for place in (folder, folder / "truth"):
        (place / "people.csv").write_text(people)
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (folder / "key.txt").write_text(KEY)
    scenario = folder / "truth/scenario.yaml"
    text = PLAN.replace("- name: Acme\n", f"- name: Acme\n    apiKey: {KEY}\n")
    text = text.replace("        recipients:", f"        id: {ID}\n        recipients:")
    scenario.write_text(text + TRUTH, encoding="utf-8")
    with dialsim.Sandbox(scenario, seed=11) as sandbox:
        yield sandbox


def keep_webhooks(sandbox: dialsim.Sandbox, folder: Path) -> None:
    with (folder / "webhooks.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(one.body)}\n" for one in sandbox.webhooks)


@pytest.mark.slow
def test_a_running_campaign_is_forecast_as_the_page_says(tmp_path: Path) -> None:
    pulls, forecasts = 0, dict[str, tuple[list[datetime], list[int]]]()
    with service(tmp_path) as sandbox:
        for block in FORECAST:
            if block[1].startswith("$ dialsim pull"):  # Tuesday at 09:30, then Wednesday at 09:30
                sandbox.clock.advance(hours=24, minutes=0 if pulls else 30)
                keep_webhooks(sandbox, tmp_path)
                pulls += 1
            printed = carried_out(block, tmp_path, sandbox.url)
            if block[1].startswith("$ dialsim replay"):
                assert_settings_are_true(tmp_path / "engine.yaml")
            if found := re.match(r"\$ dialsim forecast today --out (\S+)", block[1]):
                forecasts[f"{found[1]} {pulls}"] = interval_of(printed)
        sandbox.clock.advance(days=5)
        truth = sandbox.result().summary
    assert truth.finish is not None
    done = minute_text(round(truth.finish.timestamp() * 1000))
    page = " ".join((DOCS / "forecast-from-today.md").read_text(encoding="utf-8").split())
    assert f"It was done on {done} and reached {truth.people_reached} people." in page
    held = {
        name: (finish[0] <= truth.finish <= finish[1], reach[0] <= truth.people_reached <= reach[1])
        for name, (finish, reach) in forecasts.items()
    }
    assert held == {
        "default-engine 1": (False, True),
        "forecast 1": (True, True),
        "forecast 2": (True, True),
    }


def assert_settings_are_true(file: Path) -> None:
    """All but `sharing`, which one campaign can't show; the pace within 5 %."""
    found = yaml.safe_load(file.read_text(encoding="utf-8"))["engine"]
    true = yaml.safe_load(TRUTH)["engine"]
    assert (found["order"], found["queueLimit"]) == (true["order"], true["queueLimit"])
    for name in ("queueTimeout", "releaseInterval"):
        assert parse_duration(found[name]) == parse_duration(true[name])
    assert found["callsPerSecond"] == pytest.approx(true["callsPerSecond"], rel=0.05)


@pytest.mark.slow
def test_behaviour_and_engine_are_learned_from_a_log_as_the_pages_say(tmp_path: Path) -> None:
    with service(tmp_path) as sandbox:
        sandbox.clock.advance(days=7)
        keep_webhooks(sandbox, tmp_path)
    how = blocks_of("calibrate.md", "## How do I do it?", "## What is estimated")
    for block in [*how, *blocks_of("why-believe-it.md", "## Try it yourself")]:
        carried_out(block, tmp_path)
    assert_settings_are_true(tmp_path / "engine.yaml")
    behaviour = (tmp_path / "behaviour.yaml").read_text(encoding="utf-8")
    learned = yaml.safe_load(behaviour)["behaviours"]["default"]
    true = yaml.safe_load(TRUTH)["behaviours"]["default"]
    for place in (
        ("outcomes", "answered"),
        ("outcomes", "busy"),
        ("people", "deadNumbers"),
        ("people", "concentration"),
        ("answeredOdds", "byHour", 10),
    ):
        value, truth = learned, true
        for key in place:
            value, truth = value[key], truth[key]
        [error] = re.findall(rf"^ *{place[-1]}: .* # ± ([\d.]+),", behaviour, re.MULTILINE)
        assert abs(value - truth) < 3 * float(error), place
