"""Estimates of caller ID fatigue by `dialsim calibrate`, from logs whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

import dialsim
from dialsim.engine.call import NumberUse
from dialsim.logs.answering import DialHistory
from dialsim.logs.behaviour_text import draws_text
from dialsim.logs.calibrate import Calibrated, Calibration, calibrate
from dialsim.logs.log import read_log
from dialsim.testing import Sketch
from logs.running import with_behaviours

HOUR = 3_600_000
WEAR = {"per1000": 0.2, "recovery": "3h"}
HOURS = {9: 0.8, 12: 0.7, 17: 1.3, 18: 1.4}


def sketch(people: int, wear: dict[str, object] | None, lines: int = 16) -> Sketch:
    """Two campaigns, one with one number and one with three."""
    odds: dict[str, object] = {"byHour": {str(hour): odd for hour, odd in HOURS.items()}}
    numbers = [f"02100000{n}" for n in range(4)]
    sketch = (
        Sketch(lines, setup_time=None)
        .having(caller_ids=numbers, agents=[{"name": "Reminder"}])
        .behaviour(
            "default",
            outcomes={"answered": 0.42, "noAnswer": 0.38, "busy": 0.08, "failed": 0.12},
            people={"deadNumbers": 0.05, "reachable": 0.85, "concentration": 3},
            answered_odds=odds if wear is None else {**odds, "byCallerIdUse": wear},
        )
    )
    for name, shown in {"One": numbers[:1], "Three": numbers[1:]}.items():
        sketch = sketch.campaign(
            name,
            recipients={"count": people // 2},
            agent="Reminder",
            windows="daily 09:00-20:00",
            max_attempts=4,
            retry_interval="4h",
            caller_ids=shown,
        )
    return sketch


def learned(folder: Path, seed: int, people: int, wear: dict[str, object] | None) -> Calibration:
    folder.mkdir(exist_ok=True)
    known = sketch(people, wear).scenario()
    dialsim.run(known, seed=seed).calls.to_parquet(folder / "calls.parquet")
    return calibrate(read_log(folder))


def off(found: Calibrated, per1000: float = 0.2, recovery: float = 3 * HOUR) -> list[float]:
    """Return the errors of the fatigue estimates in standard errors."""
    wear = found.answering.wear
    assert wear is not None
    slope, recovered = wear.per1000, wear.recovery
    return [
        np.log(slope.value / np.log(per1000)) / (slope.error / -slope.value),
        (recovered.value - np.log(recovery)) / recovered.error,
    ]


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    return learned(tmp_path_factory.mktemp("worn"), 104, 2_000, WEAR)


def test_wear_and_recovery_are_within_three_standard_errors(worn: Calibration) -> None:
    found = worn.behaviours["default"]
    assert max(map(abs, off(found))) < 3
    wear = found.answering.wear
    assert wear is not None
    assert wear.per1000.count == found.calls
    assert wear.per1000.value < -3 * wear.per1000.error
    share = found.answering.outcomes["answered"]
    assert abs(share.value - 0.42) < 3 * share.error
    assert not any(text.startswith("answeredOdds.byCallerIdUse") for text in found.undetermined)


def test_wear_is_written_where_a_scenario_has_it(worn: Calibration) -> None:
    loaded = with_behaviours(sketch(100, None), worn.to_yaml())
    use = loaded.behaviours["default"].answered_odds.by_caller_id_use
    wear = worn.behaviours["default"].answering.wear
    assert use is not None
    assert wear is not None
    assert use.per1000 == pytest.approx(wear.per1000.factor.value, rel=0.001)
    assert use.recovery == pytest.approx(wear.recovery.factor.value, rel=0.01)
    for draw in yaml.safe_load(draws_text(worn, 5)).values():
        odds = next(text for text in draw if ".answeredOdds=" in text)
        assert loaded.with_(odds).behaviours["default"].answered_odds.by_caller_id_use is not None


def test_draws_of_wear_spread_as_the_standard_errors_say(worn: Calibration) -> None:
    who = worn.behaviours["default"].answering
    chance = np.random.default_rng(3)
    drawn = [wear for _ in range(300) if (wear := who.draw(chance).wear) is not None]
    assert who.wear is not None
    for name in ("per1000", "recovery"):
        values = np.array([getattr(one, name).value for one in drawn])
        wanted = getattr(who.wear, name)
        assert np.median(values) == pytest.approx(wanted.value, abs=0.3 * wanted.error)
        assert values.std() == pytest.approx(wanted.error, rel=0.3)


def test_without_wear_none_is_told(tmp_path: Path) -> None:
    found = learned(tmp_path, 2, 400, None)
    assert found.behaviours["default"].answering.wear is None
    text = found.to_yaml()
    assert "byCallerIdUse: the calls don't distinguish wear from chance." in text
    assert "per1000" not in text


def test_bodies_do_not_show_numbers(tmp_path: Path) -> None:
    known = sketch(100, WEAR).scenario()
    dialsim.run(known, seed=3).write(tmp_path / "run")
    found = calibrate(read_log(tmp_path / "run" / "webhooks.jsonl")).behaviours["default"]
    assert found.answering.wear is None
    untold = "answeredOdds.byCallerIdUse: the log does not have the number that a call showed"
    assert untold in found.undetermined


def test_uses_are_those_of_the_engine() -> None:
    chance = np.random.default_rng(4)
    number, at = chance.integers(0, 5, 400), np.sort(chance.integers(0, 40 * HOUR, 400))
    engine = NumberUse(6 * HOUR)
    wanted = []
    for one, instant in zip(number.tolist(), at.tolist(), strict=True):
        wanted.append(engine.count(one, instant))
        engine.dialled(one, instant)
    uses = DialHistory(number, at).uses(6 * HOUR)
    assert uses == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
def test_numbers_that_wear_in_a_short_log(tmp_path: Path) -> None:
    found = learned(tmp_path, 1, 1_600, {"per1000": 0.05, "recovery": "1h"})
    assert found.behaviours["default"].answering.wear is None
    says = "byCallerIdUse: numbers wear, but the calls don't show how soon they recover."
    assert says in found.to_yaml()


@pytest.mark.slow
def test_ten_worn_logs_and_their_intervals(tmp_path: Path) -> None:
    distances = np.abs([
        off(learned(tmp_path / str(seed), 100 + seed, 8_000, WEAR).behaviours["default"])
        for seed in range(10)
    ])  # fmt: skip
    assert distances.max() < 3.5
    assert (distances < 1.96).mean() >= 0.8


@pytest.mark.slow
def test_chance_is_rarely_taken_for_wear(tmp_path: Path) -> None:
    told = [
        learned(tmp_path / str(seed), 200 + seed, 3_000, None).behaviours["default"].answering.wear
        for seed in range(40)
    ]
    assert sum(wear is not None for wear in told) <= 2
