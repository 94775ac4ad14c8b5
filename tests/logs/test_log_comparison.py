"""`compare_log`: which differences are noise, and which one explains the others."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim import DialsimError
from dialsim.logs.log import Log, read_log
from dialsim.logs.log_comparison import LogComparison, compare_log
from dialsim.testing import Sketch


def scenario(
    people: int = 800,
    attempts: int = 3,
    start: str = "Mon 09:00",
    retry_interval: str = "1h",
    talk: int = 60,
    windows: str = "Mon 09:00-18:00",
    seed: int = 1,
) -> dialsim.Scenario:
    """A campaign with nine open hours and calls for five."""
    return (
        Sketch(5, start=start, seed=seed, setup_time=None)
        .behaviour("default", talk_time={"dist": "lognormal", "mean": f"{talk}s", "sd": "30s"})
        .campaign(
            "January",
            recipients={"count": people},
            windows=windows,
            max_attempts=attempts,
            retry_interval=retry_interval,
        )
        .scenario()
    )


def logged(folder: Path, seed: int, /, form: str = "run", **changed: Any) -> Log:
    """A log of a run with that seed: its folder, or its webhooks alone."""
    result = dialsim.run(scenario(**changed), seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    if form == "run":
        return read_log(result.write(folder / "run", without=["transitions", "recipients"]))
    with (folder / "webhooks.jsonl").open("wb") as file:
        result.write_webhooks(file)
    return read_log(folder / "webhooks.jsonl")


def compared(folder: Path, form: str = "run", **changed: Any) -> LogComparison:
    """A real log, and one simulated by a scenario that was changed."""
    real = logged(folder / "real", 11, form)
    simulated = logged(folder / "simulated", 12, form, **changed)
    return compare_log(real, simulated, scenario(**changed), replications=40)


LATER = {"start": "Mon 11:00"}
SHIFTED = r"Mon 5 Jan 2026 11:\d\d in SIMULATED, Mon 5 Jan 2026 09:\d\d in REAL"
CHANGES: dict[str, tuple[dict[str, object], str, str]] = {
    "two hours later": (LATER, "shift", SHIFTED),
    "windows two hours later": ({"windows": "Mon 11:00-20:00"}, "shift", SHIFTED),
    "20 % longer talks": (
        {"talk": 72}, "talkTime", r"1 min 1\d s on average in SIMULATED, (1 min|5\d\.?\d? s)"),
    "another retry interval": (
        {"retry_interval": "2h"}, "retryInterval", "2 h in SIMULATED, 1 h in REAL"),
    "fewer people": ({"people": 500}, "people", "500 in SIMULATED, 800 in REAL"),
}  # fmt: skip


FAST = {"20 % longer talks"}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=[] if name in FAST and form == "run" else pytest.mark.slow)
        for name in CHANGES
        for form in ("run", "webhooks")
    ],
)
def test_the_main_difference_is_named(name: str, form: str, tmp_path: Path) -> None:
    changed, key, said = CHANGES[name]
    found = compared(tmp_path, form, **changed)
    assert found.main is not None
    assert found.main.metric.key == key
    assert found.sentence.startswith(f"What differs most is the {found.main.metric.name}: ")
    assert re.search(said, found.sentence), found.sentence
    assert found.main in found.beyond_noise


@pytest.mark.slow(minutes=10)
@pytest.mark.parametrize("form", ["run", "webhooks"])
@pytest.mark.parametrize("part", [range(5), range(5, 30), range(30, 55), range(55, 80),
                                  range(80, 100)])  # fmt: skip
def test_two_seeds_of_one_scenario_do_not_differ(part: range, form: str, tmp_path: Path) -> None:
    """100 pairs, each with different noise; 6 of 100 may be significant."""
    alarms: list[str] = []
    for pair in part:
        logs = [logged(tmp_path / f"{pair}-{side}", 1_000 + 2 * pair + side, form, people=300)
                for side in (0, 1)]  # fmt: skip
        found = compare_log(logs[0], logs[1], scenario(people=300, seed=pair))
        alarms += [found.sentence] if found.main else []
    assert len(alarms) <= max(1, 0.06 * len(part)), alarms


def test_a_retry_interval_that_is_alike_is_no_cause(tmp_path: Path) -> None:
    """With fewer lines people are called again later, although the interval is the same."""
    logs, scenarios = [], []
    for lines, seed in ((5, 1), (1, 2)):
        sketch = Sketch(lines, start="Mon 09:00", setup_time=None).campaign(
            "January", recipients={"count": 150}, max_attempts=2, retry_interval="10m"
        )
        scenarios.append(sketch.scenario())
        folder = tmp_path / str(lines)
        folder.mkdir()
        with (folder / "webhooks.jsonl").open("wb") as file:
            dialsim.run(scenarios[-1], seed=seed).write_webhooks(file)
        logs.append(read_log(folder / "webhooks.jsonl"))
    found = compare_log(*logs, scenarios[0], replications=40)
    assert "retryInterval" in {one.metric.key for one in found.beyond_noise}
    assert found.main is not None
    assert found.main.metric.key not in {"retryInterval", "shift"}


def test_a_log_does_not_differ_from_itself(tmp_path: Path) -> None:
    log = logged(tmp_path, 1, people=100)
    found = compare_log(log, log, scenario(people=100), replications=40)
    assert found.noise == "the scenario"
    assert [one.distance for one in found.distances] == [0] * len(found.distances)
    assert found.main is None


@pytest.mark.slow
def test_masked_people_are_not_told_apart(tmp_path: Path) -> None:
    log = logged(tmp_path, 1, people=100)
    log.calls.loc[:3, "recipient"] = None
    found = compare_log(log, log, scenario(people=100), replications=40)
    assert found.not_compared == f"people are masked in {log.source} and {log.source}"
    compared = {one.metric.key: one.distance for one in found.distances}
    assert math.isnan(compared["gaps"])
    assert compared["talkTime"] == 0
    document = found.to_dict()
    assert {"key": "gaps", "distance": None, "beyondNoise": False}.items() <= {
        **document["distances"][13]
    }.items()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("model", "neither .* nor .* is a folder with a scenario: give the scenario"),
        ("none", "no call in it was dialled and has ended"),
        ("replications", "replications must be 40 or more, not 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(changed: str, said: str, tmp_path: Path) -> None:
    log = logged(tmp_path, 1, "webhooks", people=10, attempts=1)
    if changed == "none":
        log.calls["ended_at"] = None
    with pytest.raises(DialsimError, match=said):
        compare_log(log, log, replications=3 if changed == "replications" else 80)
