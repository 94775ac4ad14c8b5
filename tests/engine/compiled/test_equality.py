"""Both engines produce the same trace with random behaviour, for every scenario."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import dialsim
from dialsim.engine import run_world
from dialsim.engine.trace import Trace
from dialsim.engine.world import World
from dialsim.scenario.loading import load
from dialsim.scenario.scenario import Scenario as Model
from dialsim.testing import Sketch
from dialsim.testing.sketch import NUMBERS
from engine.breadth import broad_scenario, broad_scenarios
from engine.readings import loaded
from engine.rows import have_same_calls, told, told_beside_calls
from oracle.scenarios import Scenario

SHIPPED = sorted((Path(__file__).parents[3] / "scenarios").glob("*.yaml"))
QUICK = ("retention", "scripted", "songkran", "webhook-outage")
"""They have plans, scripts and webhooks; what the others write is of the same kinds."""
LARGE = (37, 94, 123, 207, 297)  # so many people that they take as long as a hundred others
AROUND = 4  # rows shown before and after the first that differs


def broad(seed: int) -> Model:
    """The scenario of this seed, as it is read."""
    return loaded(broad_scenario(seed))


def both(model: Model, replication: int = 0) -> tuple[Trace, Trace]:
    """The traces of the SimPy and of the compiled engine."""
    worlds = [World(model, replication=replication) for _ in range(2)]
    return run_world(worlds[0], "simpy"), run_world(worlds[1], "compiled")


def assert_same(traces: tuple[Trace, Trace], whence: str) -> None:
    say = told_beside_calls if have_same_calls(*traces) else told
    simpy, compiled = map(say, traces)
    for name, wanted in simpy.items():
        found = compiled[name]
        if found != wanted:
            pytest.fail(f"{whence}: {name} differ\n{difference(found, wanted)}", pytrace=False)


def difference(found: object, wanted: object) -> str:
    """Return the difference; for lists the first row that differs (>) and its neighbours."""
    if not isinstance(found, list) or not isinstance(wanted, list):
        return f"compiled: {found}\nSimPy: {wanted}"
    short = min(len(found), len(wanted))
    row = next((i for i in range(short) if found[i] != wanted[i]), short)
    texts = []
    for title, rows in (("compiled", found), ("SimPy", wanted)):
        texts.append(f"{title}, {len(rows)} rows:")
        for i in range(max(0, row - AROUND), min(len(rows), row + AROUND + 1)):
            texts.append(f"{'>' if i == row else ' '} {i}: {rows[i]}")
    return "\n".join(texts)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=[pytest.mark.slow] * (seed in LARGE))
        for seed in range(300 + len(LARGE))
    ],
)
def test_both_engines_agree_on_a_scenario_of_full_breadth(seed: int) -> None:
    assert_same(both(broad(seed), replication=seed % 3), f"broad_scenario({seed})")


@pytest.mark.slow
@given(broad_scenarios())
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_both_engines_agree_on_what_hypothesis_finds(written: Scenario) -> None:
    assert_same(both(loaded(written)), json.dumps(written))


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(3, 23))
def test_both_engines_agree_on_thousands_of_scenarios(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        assert_same(both(broad(seed), replication=seed % 3), f"broad_scenario({seed})")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem not in QUICK))
        for path in SHIPPED
    ],
)
def test_both_engines_agree_and_write_the_same_bytes_of_every_shipped_scenario(
    path: Path, tmp_path: Path
) -> None:
    traces = both(load(path))
    assert_same(traces, path.name)
    names = ("simpy", "compiled")
    folders = [
        dialsim.Result(trace).write(tmp_path / name)
        for name, trace in zip(names, traces, strict=True)
    ]
    one, other = (
        {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "manifest.json"}
        for folder in folders
    )
    assert one.keys() == other.keys()
    assert {name for name in one if one[name] != other[name]} == set()


def many(people: int) -> Model:
    odds = {
        "byHour": {"9": 0.8, "17": 1.3},
        "byAttempt": [1, 0.9],
        "bySegment": {"vip": 1.4},
        "byCallerIdUse": {"per1000": 0.97, "recovery": "1d"},
    }
    return (
        Sketch(300, setup_time=None)
        .behaviour("default", people={"reachable": 0.95, "concentration": 3}, answered_odds=odds)
        .campaign(
            "January",
            recipients={"count": people, "segments": {"vip": 0.1, "mass": 0.9}},
            caller_ids=NUMBERS,
            max_attempts=3,
            retry_interval="1h",
        )
        .campaign("February", recipients={"count": 5000}, start="Tue 09:00", max_attempts=4)
        .scenario()
    )


@pytest.mark.parametrize(
    "people", [8_000, pytest.param(1_000_000, marks=pytest.mark.slow(minutes=2))]
)
def test_both_engines_agree_on_many_people(people: int) -> None:
    simpy, compiled = both(many(people))
    assert simpy.end == compiled.end
    assert sorted(simpy.campaigns) == sorted(compiled.campaigns)
    assert len(simpy.calls[0][0]) > 5 * people
    assert have_same_calls(simpy, compiled)


@pytest.mark.slow
def test_uncompiled_the_rules_do_the_same() -> None:
    # NUMBA_DISABLE_JIT=1 runs the same functions in Python, for debugging
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    code = (
        "from engine.compiled.test_equality import assert_same, both, broad\n"
        "from dialsim.engine.compiled.instants import work_off\n"
        "assert not hasattr(work_off, 'py_func')\n"
        "for seed in range(2):\n"
        "    assert_same(both(broad(seed)), f'broad_scenario({seed})')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
