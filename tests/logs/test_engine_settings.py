"""The settings of the engine that `dialsim replay` finds, against those that made the log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import dialsim
from dialsim.cli import commands
from dialsim.engine.rules import dial_gap
from dialsim.interface.instants import parse_instant
from dialsim.logs.engine_settings import (
    EngineEstimate,
    SettingEstimate,
    engine_yaml,
    estimate,
    estimate_lines,
    line_changes,
    note_on,
)
from dialsim.logs.log import Log, read_log
from dialsim.logs.recorded_calls import RecordedCalls
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.service import EngineSettings
from dialsim.scenario.units import parse_duration
from dialsim.testing import Sketch
from logs.random_engines import SETUP, URL, scenario, settings


def written(result: dialsim.Result, folder: Path, form: str) -> Log:
    folder.mkdir(exist_ok=True)
    if form == "bodies":
        with (folder / "webhooks.jsonl").open("wb") as file:
            result.write_webhooks(file)
        return read_log(folder / "webhooks.jsonl")
    result.calls.to_parquet(folder / "calls.parquet")
    return read_log(folder)


def number_of(name: str, text: str | None, lines: int) -> float:
    """A value as a number: ms, calls, or ms between dials."""
    if name == "queueLimit":
        return lines if text is None else float("inf") if text == "unlimited" else int(text)
    if name == "callsPerSecond":
        return dial_gap(None if text in {None, "no limit"} else float(text))
    assert text is not None
    return parse_duration(text)


def truth_of(name: str, engine: EngineSettings, lines: int) -> float:
    match name:
        case "queueTimeout":
            return engine.queue_timeout
        case "releaseInterval":
            return engine.release_interval
        case "callsPerSecond":
            return dial_gap(engine.calls_per_second)
    limit = engine.queue_limit
    return lines if limit is None else float("inf") if limit == "unlimited" else limit


def is_right(one: SettingEstimate, engine: EngineSettings, lines: int) -> bool:
    """True if a value is the truth: exactly, or within 5 % or 1 ms."""
    if one.name in {"order", "sharing"}:
        return one.value == str(getattr(engine, one.name))
    truth, found = truth_of(one.name, engine, lines), number_of(one.name, one.value, lines)
    if one.name == "queueLimit" or truth == 0:
        return found == truth
    return abs(found - truth) <= max(1, 0.05 * truth)


def admits(one: SettingEstimate, engine: EngineSettings, lines: int) -> bool:
    """True if the truth is among the values that fit as well."""
    if one.name in {"order", "sharing"}:
        return getattr(engine, one.name) in one.others
    truth = truth_of(one.name, engine, lines)
    for text in one.others:
        low, _, high = text.replace(" or more", " to ").partition(" to ")
        ends = [number_of(one.name, low, lines)]
        ends.append(number_of(one.name, high, lines) if high else ends[0])
        if text.endswith(" or more"):
            ends[1] = 0 if one.name == "callsPerSecond" else float("inf")
        if 0.99 * min(ends) <= truth <= 1.01 * max(ends):
            return True
    return False


def checked(number: int, folder: Path, form: str) -> tuple[EngineEstimate, list[str], list[str]]:
    """Return the estimate, the identified settings, and the errors."""
    engine = settings(number)
    made, asked = scenario(number, engine), scenario(number, {})
    lines = made.organizations[0].max_concurrent_calls
    log = written(dialsim.run(made), folder / str(number), form)
    found = estimate(RecordedCalls(log, asked))
    told = [one.name for one in found.estimates if one.determined]
    wrong = [
        f"{number}: {one.name} {one.value} {one.others}, truth {engine}"
        for one in found.estimates
        if not is_right(one, made.engine, lines)
        and (one.determined or not admits(one, made.engine, lines))
    ]
    return found, told, wrong


def test_replay_finds_the_settings_that_made_a_log(tmp_path: Path) -> None:
    found, _, wrong = checked(14, tmp_path, "run")
    assert not wrong
    assert found.agree == found.calls


@pytest.mark.slow(minutes=30)
def test_it_does_so_for_30_random_engines(tmp_path: Path) -> None:
    told, wrong = list[str](), list[str]()
    for number in range(30):
        found, names, faults = checked(number, tmp_path, "run")
        assert found.agree == found.calls
        told += names
        wrong += faults
        assert_the_rest_leaves_no_trace(number, found)
    assert not wrong
    assert len(told) > 90  # of 180: more than half are identified


def assert_the_rest_leaves_no_trace(number: int, found: EngineEstimate) -> None:
    """Assert that a setting which the log does not identify makes no difference to the calls.

    The run is the engine's, with random people: nothing of it comes from the log.
    """
    engine = settings(number)
    made = scenario(number, engine)
    calls = dialsim.run(made).calls
    for one in found.estimates:
        if one.determined:
            continue
        other = one.others[0].split(" ")[0]
        setting = f"engine.{one.name}={other}"
        if other in {"that", "no"}:
            continue
        alike = dialsim.run(with_found(made, found).with_(setting)).calls
        assert alike.equals(calls), (number, setting)


def with_found(made: Scenario, found: EngineEstimate) -> Scenario:
    """A scenario with the settings that were found."""
    given = [f"engine.{one.name}={one.value}" for one in found.estimates if one.value is not None]
    return made.with_(*given)


@pytest.mark.slow(minutes=10)
def test_bodies_tell_less_and_are_as_right(tmp_path: Path) -> None:
    told, wrong = list[str](), list[str]()
    for number in range(12):
        found, names, faults = checked(number, tmp_path, "bodies")
        assert found.fits
        told += names
        wrong += faults
    assert not wrong
    assert len(told) > 24  # of 72: a third is identified


def called(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["replay", *map(str, arguments)])
    return result.exit_code, result.output


def plan(number: int, engine: dict[str, Any]) -> dict[str, Any]:
    """The scenario as a file has it."""
    origin = scenario(number, engine).origin
    assert origin is not None
    document: dict[str, Any] = json.loads(origin.text)
    return document


@pytest.mark.slow
def test_the_command_writes_a_block_that_makes_the_log_again(tmp_path: Path) -> None:
    log, asked, out = tmp_path / "log", tmp_path / "plan.json", tmp_path / "engine.yaml"
    written(dialsim.run(scenario(9, settings(9))), log, "run")
    asked.write_text(json.dumps(plan(9, {})))
    status, said = called(log, "--scenario", asked, "--out", out)
    assert status == 0
    assert re.search(r"Settings of the engine that fit best: (\d+) of \1 calls agree", said)
    block = out.read_text(encoding="utf-8")
    assert "  releaseInterval: 1m39s  # determined\n" in block
    status, said = called(log, "--scenario", asked, "--out", out)
    assert (status, f"{out} is there already: --force replaces it" in said) == (2, True)
    asked.write_text(json.dumps(plan(9, {}) | yaml.safe_load(block)))
    status, said = called(log, "--scenario", asked, "--format", "json")
    assert (status, json.loads(said)["first_mismatch"]) == (0, None)


def test_settings_that_fit_nothing_are_said_to() -> None:
    order = SettingEstimate("order", "due", (), doubtful=True)
    odd = EngineEstimate(EngineSettings(), (order,), calls=100, agree=40, runs=7)
    assert not odd.fits
    assert "# None of the 7 settings tried fits." in engine_yaml(odd, "log")
    assert "  order: due  # doubtful\n" in engine_yaml(odd, "log")


def lines_of(change: bool) -> Sketch:
    """A campaign on four lines; two are taken away after an hour."""
    sketch = (
        Sketch(4, seed=1, setup_time=None)
        .having(webhook=URL)
        .campaign("A", recipients={"count": 400}, max_attempts=3, start="Mon 09:00")
    )
    return sketch.at("Mon 10:00", "setConcurrency", value=2) if change else sketch


@pytest.mark.parametrize("form", ["bodies", "run"])
@pytest.mark.parametrize("change", [True, False])
def test_a_change_of_lines_in_the_middle_is_found(change: bool, form: str, tmp_path: Path) -> None:
    log = written(dialsim.run(lines_of(change).scenario()), tmp_path / "log", form)
    found = line_changes(RecordedCalls(log, lines_of(False).scenario()))
    assert [(one.before, one.after) for one in found] == [(4, 2)] * change
    for one in found:
        assert abs(one.at - parse_instant("2026-01-05T03:00:00Z")) < 15 * 60_000
        doubtful = SettingEstimate("order", "due", (), doubtful=True)
        said = [*estimate_lines(EngineEstimate(EngineSettings(), (doubtful,), 9, 9, 7, (one,)))]
        assert "2 lines of Acme are in use, before it 4" in said[1]
        assert said[2].endswith("doubtful")
    asked = RecordedCalls(log, lines_of(True).scenario())
    assert line_changes(asked) == []  # the scenario has it


def test_values_are_given_with_their_uncertainty(tmp_path: Path) -> None:
    told = SettingEstimate("queueTimeout", "75s", (), between="74s900ms to 75s100ms")
    assert note_on(told) == "determined: 74s900ms to 75s100ms"
    assert note_on(SettingEstimate("order", "due", ())) == "determined"


@pytest.mark.slow(minutes=5)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bodies_of_an_engine_far_from_the_default_are_fitted(seed: int, tmp_path: Path) -> None:
    far = {"order": "retriesFirst", "queue_limit": 9, "release_interval": "7s"}
    made, asked = (
        Sketch(3, seed=seed, setup_time=SETUP, **engine)
        .having(webhook=URL)
        .campaign("A", recipients={"count": 300}, max_attempts=3, retry_interval="10m")
        .scenario()
        for engine in (far, {})
    )
    found = estimate(RecordedCalls(written(dialsim.run(made), tmp_path / "log", "bodies"), asked))
    assert found.fits
    assert (found.engine.order, found.engine.release_interval) == ("retriesFirst", 7_000)
