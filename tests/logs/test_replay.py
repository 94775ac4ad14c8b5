"""`dialsim replay`: a log is played again, and where the model parts from it is named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialsim
from cli.program import dialsim as program
from dialsim.errors import ReplayError
from dialsim.logs.log import Log, read_log
from dialsim.logs.recorded_calls import CallTimes, RecordedCalls
from dialsim.logs.replay import replay
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch

PAGE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
URL = {"url": "https://example.test/hook"}


def sketch(**engine: Any) -> Sketch:
    """Two campaigns on four lines, with retries in between; the second begins later."""
    windows = "Mon-Fri 09:00-12:00"
    first = Sketch(4, setup_time={"dist": "uniform", "low": "1s", "high": "3s"}, **engine)
    first = first.having(webhook=URL).campaign(
        "A", recipients={"count": 120}, windows=windows, max_attempts=3, retry_interval="30m"
    )
    return first.campaign(
        "B", recipients={"count": 80}, start="Mon 09:20", windows=windows, max_attempts=2,
        retry_interval="15m", agent="Other",
    )  # fmt: skip


def logged(scenario: Scenario, folder: Path, form: str) -> Log:
    result = dialsim.run(scenario)
    if form == "bodies":
        with (folder / "webhooks.jsonl").open("wb") as file:
            result.write_webhooks(file)
        return read_log(folder / "webhooks.jsonl")
    result.calls.to_parquet(folder / "calls.parquet")
    return read_log(folder)


ENGINES: list[dict[str, Any]] = [
    {},
    {"order": "retriesFirst", "queue_limit": "unlimited", "queue_timeout": "3m"},
    {"sharing": "fifo", "calls_per_second": 0.5},
    {"release_interval": "45s", "queue_limit": 2},
]


@pytest.mark.parametrize("form", ["run", "bodies"])
@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_a_log_of_the_scenario_is_made_again(
    engine: dict[str, Any], form: str, tmp_path: Path
) -> None:
    scenario = sketch(**engine).scenario()
    found = replay(RecordedCalls(logged(scenario, tmp_path, form), scenario))
    assert found.first_mismatch is None
    assert (found.agree, found.missing, found.extra) == (found.calls, 0, 0)
    assert found.calls > 300
    if form == "bodies":  # the default behaviour: 28 s after a setup of 1 to 3 s
        assert 29_000 < found.hold_times["NO_ANSWER"].typical < 31_000


def test_pauses_and_the_end_withdraw_the_same_dials(tmp_path: Path) -> None:
    known = sketch(queue_timeout="1m").at("Mon 09:10:01", "pause", "A")
    known = known.at("Mon 09:12", "resume", "A").at("Mon 09:40", "setConcurrency", 2)
    scenario = known.at("Mon 10:00:00.500", "cancel", "B").scenario("clock.end=2026-01-05T03:30Z")
    found = replay(RecordedCalls(logged(scenario, tmp_path, "run"), scenario))
    assert (found.first_mismatch, found.agree) == (None, found.calls)


@pytest.mark.parametrize(
    ("engine", "rule", "said"),
    [
        ({"sharing": "fifo"}, "Q3", "sharing is roundRobin: the log takes 0"),
        ({"calls_per_second": 0.5}, "Q4", "the model dials it, the log not yet"),
        ({"queue_timeout": "40s"}, "Q5", "lost after 40s, queueTimeout is 10m"),
        ({"queue_limit": 2}, "Q2", "at most 2 calls wait"),
        ({"release_interval": "30s"}, "Q2", "in the log releases are 30s apart"),
        ({"order": "freshFirst", "queue_limit": 1}, "Q2", "at most 1 calls wait"),
    ],
    ids=str,
)
def test_the_first_difference_names_its_rule(
    engine: dict[str, Any], rule: str, said: str, tmp_path: Path
) -> None:
    log = logged(sketch(**engine).scenario(), tmp_path, "run")
    found = replay(RecordedCalls(log, sketch().scenario()))
    assert found.first_mismatch is not None
    assert (found.first_mismatch.rule, said in found.first_mismatch.why) == (rule, True), (
        found.first_mismatch
    )
    assert found.before <= found.agree < found.calls


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("lines=6", "Q1"),
        ("A.windows=Mon-Fri 09:30-12:00", "T3"),
        ("A.retryInterval=1800001", "R2"),
        ("A.maxAttempts=2", "R1"),
        ("B.startDateTime=2026-01-05T02:30:00Z", "C1"),
    ],
)
def test_so_do_settings_of_campaigns(change: str, rule: str, tmp_path: Path) -> None:
    log = logged(sketch().scenario(), tmp_path, "run")
    found = replay(RecordedCalls(log, sketch().scenario(change)))
    assert found.first_mismatch is not None
    assert found.first_mismatch.rule == rule, found.first_mismatch


@pytest.mark.parametrize(
    ("change", "rule"),
    [("engine.sharing=fifo", "Q3"), ("engine.queueTimeout=40s", "Q5"),
     ("A.windows=Mon-Fri 09:30-12:00", "T3"), ("A.retryInterval=3600000", "R2")],
)  # fmt: skip
def test_bodies_show_it_without_instants_of_dials(change: str, rule: str, tmp_path: Path) -> None:
    log = logged(sketch().scenario(), tmp_path, "bodies")
    found = replay(RecordedCalls(log, sketch().scenario(change)))
    assert found.first_mismatch is not None
    assert found.first_mismatch.rule == rule, found.first_mismatch


@pytest.mark.parametrize("form", ["run", "bodies"])
def test_both_engines_play_the_same(form: str, tmp_path: Path) -> None:
    scenario = sketch(queue_timeout="2m").scenario()
    record = RecordedCalls(logged(scenario, tmp_path, form), scenario)
    other = sketch(queue_timeout="90s", sharing="fifo").scenario().engine
    one, two = record.played(other, "simpy"), record.played(other, "compiled")
    for name in CallTimes.__dataclass_fields__:
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_log_and_scenario_must_belong_together(tmp_path: Path) -> None:
    simple = Sketch(4).having(webhook=URL).campaign("A", recipients={"count": 9}).scenario()
    log = logged(simple, tmp_path, "bodies")
    for text, scenario in (
        ("its campaign A is none of the scenario's, which are C",
         Sketch(4, seed=3).campaign("C", recipients={"count": 5}).scenario()),
        ("its people are made up by the seed", simple.with_("seed=5")),
    ):  # fmt: skip
        with pytest.raises(ReplayError, match=text):
            RecordedCalls(log, scenario)


def test_people_who_are_not_on_the_list_are_refused(tmp_path: Path) -> None:
    log = logged(Sketch(1).having(webhook=URL).campaign("A", "busy 1s").scenario(), tmp_path, "run")
    other = Sketch(1).campaign("A", {"tel": "0899999999"}).scenario()
    assert replay(RecordedCalls(log, other)).calls == 1  # the table of calls has no numbers
    body = logged(
        Sketch(1).having(webhook=URL).campaign("A", "busy 1s").scenario(), tmp_path, "bodies"
    )
    with pytest.raises(ReplayError, match="A called 0800000000, whom the scenario does not list"):
        RecordedCalls(body, other)
    twice = Sketch(1).campaign("A", *[{"tel": "0800000000"}] * 2).scenario()
    with pytest.raises(ReplayError, match="A lists 0800000000 twice, and bodies"):
        RecordedCalls(body, twice)


def test_a_log_with_holes_is_refused(tmp_path: Path) -> None:
    scenario = sketch().scenario()
    logged(scenario, tmp_path, "bodies")
    lines = (tmp_path / "webhooks.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "holes.jsonl").write_bytes(b"".join(lines[40:]))
    with pytest.raises(ReplayError, match=r"\d+ attempts are missing"):
        RecordedCalls(read_log(tmp_path / "holes.jsonl"), scenario)
    (tmp_path / "begin.jsonl").write_bytes(b"".join(lines[:200]))
    found = replay(RecordedCalls(read_log(tmp_path / "begin.jsonl"), scenario))
    assert found.first_mismatch is None
    assert 50 < found.calls < 200
    assert "of the log are not compared" in found.notes[0]


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for language, block in BLOCK.findall(PAGE):
        if language == "yaml":
            (tmp_path / "plan.yaml").write_text(block)
        elif language == "console":
            command, *lines = block.splitlines()
            done = program(*shlex.split(command.removeprefix("$ dialsim ")), cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            for line in lines:
                assert line in done.stdout
        else:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(tmp_path)
                exec(block, {})


def test_what_the_command_prints_of_bodies(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(sketch().text)
    logged(sketch(sharing="fifo").scenario(), tmp_path, "bodies")
    done = program("replay", "webhooks.jsonl", "--scenario", "plan.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (Path(__file__).parent / "replay.txt").read_text(encoding="utf-8")
    done = program("replay", "plan.json", "--scenario", "plan.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: plan.json: no body of a CALL_RESULT webhook in it")
