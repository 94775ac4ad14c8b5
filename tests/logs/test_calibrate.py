"""Estimates of `dialsim calibrate` from logs whose behaviour is known."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dialsim
from dialsim.engine.behaviour import durations
from dialsim.errors import DialsimError
from dialsim.logs.answering import PointEstimate
from dialsim.logs.behaviour_text import yaml_text
from dialsim.logs.calibrate import Calibrated, Calibration, calibrate, dialled_calls
from dialsim.logs.durations import fitted
from dialsim.logs.log import Log, read_log
from dialsim.scenario.distribution import distribution
from dialsim.testing import Sketch
from logs.running import with_behaviours

OUTCOMES = {"answered": 0.42, "noAnswer": 0.38, "busy": 0.08, "failed": 0.12}
PEOPLE = {"deadNumbers": 0.05, "reachable": 0.85, "concentration": 3}
HOURS = {9: 0.8, 12: 0.7, 17: 1.3, 18: 1.4}
TALK = {"dist": "gamma", "mean": "60s", "sd": "45s", "max": "4m"}
RATES = {"silent": 0.03, "analysisUnavailable": 0.01, "analysisFailed": 0.04, "lateResult": 0.5}


AGENT = {
    "name": "Reminder",
    "analysis": {
        "funnel": [{"step": "Greeted", "share": 0.9}, {"step": "Promised", "share": 0.4}],
        "fields": {"paid": {"type": "boolean", "values": {"true": 0.3, "false": 0.7}}},
    },
}


def sketch(people: int, attempts: int = 6, lines: int = 12) -> Sketch:
    """A campaign whose behaviour is known; calls of all attempts are made at all hours."""
    odds = {
        "byHour": {str(hour): factor for hour, factor in HOURS.items()},
        "bySegment": {"gold": 1.5, "other": 1},
    }
    return (
        Sketch(lines, setup_time=None)
        .having(agents=[AGENT])
        .behaviour(
            "default",
            outcomes=OUTCOMES,
            people=PEOPLE,
            answered_odds=odds,
            talk_time=TALK,
            rates=RATES,
        )
        .campaign(
            "January",
            recipients={"count": people, "segments": {"gold": 0.3, "other": 0.7}},
            agent="Reminder",
            windows="daily 09:00-20:00",
            max_attempts=attempts,
            retry_interval="4h",
        )
    )


def simulated(known: Sketch, seed: int) -> dialsim.Result:
    return dialsim.run(known.scenario(), seed=seed)


def calls_only(result: dialsim.Result, folder: Path) -> Calibrated:
    """Return the estimates from the table of calls alone."""
    folder.mkdir(exist_ok=True)
    result.calls.to_parquet(folder / "calls.parquet")
    return calibrate(read_log(folder)).behaviours["default"]


def checked(found: Calibrated) -> dict[str, tuple[PointEstimate, float]]:
    """Return each estimate of answering from at least 500 calls, with the truth."""
    who = found.answering
    pairs = {f"outcomes.{end}": (who.outcomes[end], truth) for end, truth in OUTCOMES.items()}
    pairs |= {
        f"byHour.{hour}": (level, np.log(HOURS.get(hour, 1.0))) for hour, level in who.hours.items()
    }
    pairs |= {f"byDay.{day}": (level, 0.0) for day, level in who.days.items()}
    pairs |= {f"byAttempt.{n}": (level, 0.0) for n, level in enumerate(who.attempts)}
    pairs["bySegment.gold"] = who.segments["gold"], np.log(1.5)
    pairs["reachable"] = who.reachable, 0.85
    pairs["deadNumbers"] = who.dead_numbers, 0.05
    pairs["concentration"] = who.concentration, 3.0
    for kind in ("silent", "analysisUnavailable", "analysisFailed"):
        # Without webhooks late results are invisible
        if kind in found.rates and (kind != "analysisFailed" or found.late_result_delay):
            pairs[f"rates.{kind}"] = found.rates[kind], RATES[kind]
    talk = found.talk_time
    assert talk is not None
    assert talk.distribution.dist == "gamma"
    pairs |= {
        f"talkTime.{name}": (talk.estimates[name], truth)
        for name, truth in {"mean": 60_000.0, "sd": 45_000.0}.items()
    }
    # Factors that others are measured by are 1 by definition
    return {
        name: pair for name, pair in pairs.items() if pair[0].count >= 500 and pair[0].error > 0
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of 6,000 people."""
    folder = tmp_path_factory.mktemp("log") / "run"
    simulated(sketch(6_000), seed=1).write(folder)
    return folder


@pytest.fixture(scope="module")
def log(folder: Path) -> Log:
    return read_log(folder)


@pytest.fixture(scope="module")
def bodies(folder: Path) -> Log:
    """Return the receiver's bodies of the same run."""
    return read_log(folder / "webhooks.jsonl")


@pytest.fixture(scope="module")
def learned(log: Log) -> Calibration:
    return calibrate(log)


def test_estimates_are_within_three_standard_errors(learned: Calibration) -> None:
    found = learned.behaviours["default"]
    off = {
        name: (estimate.value - truth) / estimate.error
        for name, (estimate, truth) in checked(found).items()
    }
    assert len(off) > 25
    assert {name: z for name, z in off.items() if abs(z) > 3} == {}


def test_draws_spread_as_the_standard_errors_say(learned: Calibration) -> None:
    who = learned.behaviours["default"].answering
    chance = np.random.default_rng(5)
    drawn = [who.draw(chance) for _ in range(300)]
    for name in ("answered", "failed"):
        values = np.array([one.outcomes[name].value for one in drawn])
        wanted = who.outcomes[name]
        assert values.mean() == pytest.approx(wanted.value, abs=0.3 * wanted.error)
        assert values.std() == pytest.approx(wanted.error, rel=0.3)
    for one in drawn:
        assert sum(share.value for share in one.outcomes.values()) == pytest.approx(1.0)
        assert one.reachable.value >= one.outcomes["answered"].value
        assert one.dead_numbers.value <= one.outcomes["failed"].value


def test_times_of_the_line_come_from_the_folder_of_a_run(learned: Calibration) -> None:
    found = learned.behaviours["default"]
    assert found.setup_time is not None
    assert found.setup_time.written == {"dist": "uniform", "low": "1s", "high": "3s"}
    assert found.ring_time["noAnswer"].written == "28s"
    assert found.ring_time["answered"].distribution.dist == "lognormal"
    assert found.analysis_delay is not None
    assert found.analysis_delay.written == "20s"
    assert found.late_result_delay is not None
    assert found.late_result_delay.written == "30m"


def test_funnel_and_fields_are_counted(learned: Calibration) -> None:
    found = learned.behaviours["default"]
    for step, truth in {"Greeted": 0.5, "Promised": 0.4, "Unknown": 0.1}.items():
        share = found.furthest[step]
        assert abs(share.value - truth) < 3 * share.error
    share = found.fields["paid"]["true"]
    assert abs(share.value - 0.3) < 3 * share.error


@pytest.mark.slow
def test_bodies_alone_tell_as_much_of_who_answers(bodies: Log) -> None:
    calibration = calibrate(bodies)
    assert_is_a_behaviour(calibration)
    found = calibration.behaviours["default"]
    assert not found.ring_time
    assert found.setup_time is None
    assert found.holds is not None  # the lines were saturated
    assert not any(text.startswith("setupTime and ringTime:") for text in found.undetermined)
    # Segments are in no body: people differ by them too, so that only these are compared
    for name, estimate, truth in (
        ("deadNumbers", found.answering.dead_numbers, 0.05),
        ("noon", found.answering.hours[12], np.log(0.7)),
    ):
        assert abs(estimate.value - truth) < 3 * estimate.error, name


def test_the_yaml_is_the_block_of_a_scenario(learned: Calibration) -> None:
    assert_is_a_behaviour(learned)


def assert_is_a_behaviour(calibration: Calibration) -> None:
    """Its YAML makes a scenario that runs."""
    loaded = with_behaviours(sketch(100), yaml_text(calibration))
    found = loaded.behaviours["default"]
    assert found.talk_time.dist == "gamma"
    assert found.people is not None
    assert found.people.concentration == pytest.approx(
        calibration.behaviours["default"].answering.concentration.value, rel=0.001
    )
    assert len(dialsim.run(loaded, seed=1).calls) > 100


def test_the_form_of_the_yaml(learned: Calibration) -> None:
    text = re.sub(
        r"^# Behaviours .* from .*$", "# Behaviours of LOG", yaml_text(learned), flags=re.M
    )
    text = re.sub(r"\[[^\]]*\]", "[…]", text)
    golden = Path(__file__).with_name("behaviour.yaml")
    text = re.sub(r"\b(?:\d+(?:ms|s|m|h))+\b", "TIME", text)
    shown = re.sub(r"\d+(?:[.,:]\d+)*(?:e-\d+)?", "9", text)
    assert shown == golden.read_text(encoding="utf-8")


@pytest.mark.slow
def test_by_names_a_behaviour_for_each(log: Log) -> None:
    assert [*calibrate(log, by="segment").behaviours] == ["gold", "other"]
    assert [*calibrate(log, by="campaign").behaviours] == ["January"]
    assert [*calibrate(log, by="agent").behaviours] == ["Reminder"]


@pytest.mark.slow
def test_held_out_calls_are_forecast_better_than_by_a_constant(log: Log) -> None:
    held = calibrate(log, hold_out=0.3).hold_out["default"]
    assert held.gain.low > 0
    assert held.loss == pytest.approx(held.constant - held.gain.value)
    assert held.learned + held.calls == len(log.calls)
    for group in held.curve:
        assert abs(group.forecast - group.answered.value) < 4 * group.answered.error + 0.01


@pytest.mark.slow
def test_an_hour_of_three_calls_gets_no_wild_factor(tmp_path: Path) -> None:
    calls = simulated(sketch(1_500), seed=2).calls
    dialled = calls["initiated_at"]
    ten = calls[(dialled + np.timedelta64(7, "h")).dt.hour == 10].index
    answered = calls.loc[ten][calls.loc[ten]["status"] == "COMPLETED"].index[:3]
    calls["initiated_at"] = dialled.where(
        ~calls.index.isin(answered), dialled.dt.normalize() + np.timedelta64(14, "h")
    )  # 21 hours in Thailand: three calls, all of them answered
    calls.to_parquet(tmp_path / "calls.parquet")
    level = calibrate(read_log(tmp_path)).behaviours["default"].answering.hours[21]
    assert level.count == 3
    assert 0.8 < level.factor.value < 1.6


def test_no_dial_is_reckoned_back_to_before_the_windows_opened(tmp_path: Path) -> None:
    # bodies don't say when a call was dialled; the first of a morning end seconds after nine
    known = sketch(400, lines=4)
    with (tmp_path / "webhooks.jsonl").open("wb") as file:
        simulated(known, seed=4).write_webhooks(file)
    dialled = dialled_calls(read_log(tmp_path / "webhooks.jsonl"))["dialled_at"]
    hours = {int(at) // 3_600_000 % 24 for at in dialled + 7 * 3_600_000}
    days = {int(at) // 86_400_000 for at in dialled}
    assert min(hours) == 9
    assert len(days) > 1  # not only the campaign's start holds them back


@pytest.mark.slow
def test_people_cut_short_are_not_dropped(tmp_path: Path) -> None:
    result = simulated(sketch(6_000), seed=3)
    middle = result.calls["initiated_at"].quantile(0.6)
    cut = result.calls[result.calls["initiated_at"] <= middle]
    cut.reset_index(drop=True).to_parquet(tmp_path / "calls.parquet")
    who = calibrate(read_log(tmp_path)).behaviours["default"].answering
    for estimate, truth in ((who.outcomes["answered"], 0.42), (who.dead_numbers, 0.05)):
        assert abs(estimate.value - truth) < 3 * estimate.error


@pytest.mark.slow
def test_one_attempt_tells_nothing_of_how_people_differ(tmp_path: Path) -> None:
    result = simulated(sketch(2_000, attempts=1), seed=4)
    found = calls_only(result, tmp_path)
    assert "concentration" not in found.answering.determined
    text = yaml_text(calibrate(read_log(tmp_path)))
    assert re.search(r"concentration: [\d.]+ # ± .*; goes with the other values", text)
    assert "deadNumbers" not in found.answering.determined


@pytest.mark.slow
def test_people_whose_first_attempts_the_log_lacks_are_known_to_be_left(tmp_path: Path) -> None:
    calls = simulated(sketch(6_000), seed=5).calls
    later = calls[(calls["attempt"] >= 2) | (calls["recipient"] % 2 == 0)]
    later.reset_index(drop=True).to_parquet(tmp_path / "calls.parquet")
    who = calibrate(read_log(tmp_path)).behaviours["default"].answering
    for estimate, truth in (
        (who.outcomes["answered"], 0.42),
        (who.dead_numbers, 0.05),
        (who.concentration, 3.0),
    ):
        assert abs(estimate.value - truth) < 3 * estimate.error


SHAPES = (
    {"dist": "lognormal", "mean": "75s", "sd": "88s", "min": "2s", "max": "10m"},
    {"dist": "gamma", "mean": "75s", "sd": "50s"},
    {"dist": "weibull", "mean": "60s", "sd": "70s", "max": "3m"},
    {"dist": "uniform", "low": "1s", "high": "3s"},
    {"dist": "exponential", "mean": "40s"},
    {"dist": "triangular", "low": "5s", "mode": "12s", "high": "30s"},
)
GRID = np.linspace(0.05, 0.99, 95)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape["dist"]))
def test_each_family_is_recognized(shape: dict[str, object]) -> None:
    truth = distribution(shape)
    found = fitted(durations(truth, np.random.default_rng(1).random(8_000)))
    assert found.distribution.dist == shape["dist"]
    assert found.distribution.max == truth.max
    assert durations(found.distribution, GRID) == pytest.approx(durations(truth, GRID), rel=0.05)


def test_durations_in_whole_seconds_have_a_family() -> None:
    seconds = np.floor(np.random.default_rng(3).gamma(1.2, 60.0, 8_000)).astype(np.int64)
    found = fitted(seconds * 1_000)
    assert found.distribution.dist in {"gamma", "weibull"}
    assert max(found.off.values()) < 0.1


def test_a_mixture_is_taken_as_measured() -> None:
    chance = np.random.default_rng(2)
    short, long = chance.lognormal(8.5, 0.6, 6_000), chance.lognormal(11.5, 0.3, 4_000)
    measured = np.concatenate([short, long]).astype(np.int64)
    found = fitted(measured)
    assert found.distribution.dist == "empirical"
    assert "off at the" in found.rejected
    inner = GRID[(GRID < 0.57) | (GRID > 0.63)]  # between the two there is nothing to compare
    ours = durations(found.distribution, inner)
    assert ours == pytest.approx(np.quantile(measured, inner), rel=0.1)


def test_a_distribution_of_one_value_is_constant() -> None:
    assert fitted(np.full(50, 20_000)).written == "20s"


def test_too_few_calls_are_refused(tmp_path: Path) -> None:
    simulated(sketch(10, attempts=1), seed=1).calls.to_parquet(tmp_path / "calls.parquet")
    log = read_log(tmp_path)
    with pytest.raises(DialsimError) as refused:
        calibrate(log)
    assert str(refused.value) == (
        f"{tmp_path}: 10 calls were dialled and have ended; a behaviour is estimated from 30 calls "
        "or more"
    )


def test_a_hold_out_of_too_few_calls_is_refused(tmp_path: Path) -> None:
    simulated(sketch(60, attempts=1), seed=1).calls.to_parquet(tmp_path / "calls.parquet")
    log = read_log(tmp_path)
    with pytest.raises(DialsimError) as refused:
        calibrate(log, hold_out=0.2)
    assert str(refused.value) == (
        "hold-out 0.2 of 60 calls leaves too few to learn from or to forecast: 30 of each are "
        "needed"
    )


@pytest.mark.parametrize(
    "end", ["answered", "noAnswer", pytest.param("failed", marks=pytest.mark.slow)]
)
def test_a_log_in_which_all_calls_end_alike(end: str, tmp_path: Path) -> None:
    known = sketch(100, attempts=3).also(behaviours={"default": {"outcomes": {end: 1}}})
    simulated(known, seed=1).calls.to_parquet(tmp_path / "calls.parquet")
    found = calibrate(read_log(tmp_path))
    assert found.behaviours["default"].answering.outcomes[end].value > 0.9
    loaded = with_behaviours(sketch(10), yaml_text(found))
    assert getattr(loaded.behaviours["default"].outcomes, _FIELD.get(end, end)) > 0.9


_FIELD = {"noAnswer": "no_answer"}


def test_segments_that_a_log_lacks_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "webhooks.jsonl").open("wb") as file:
        simulated(sketch(60, attempts=1), seed=1).write_webhooks(file)
    bodies = read_log(tmp_path / "webhooks.jsonl")
    with pytest.raises(DialsimError, match="names no segments; only the folder of a run does"):
        calibrate(bodies, by="segment")


@pytest.mark.slow
def test_heterogeneity_is_recovered(tmp_path: Path) -> None:
    who = calls_only(simulated(sketch(18_000), seed=6), tmp_path).answering
    assert who.determined == {"reachable", "deadNumbers", "concentration"}
    assert who.concentration.value == pytest.approx(3, rel=0.2)
    assert who.reachable.value == pytest.approx(0.85, abs=0.03)


@pytest.mark.slow(minutes=10)
def test_twenty_logs_of_50_000_calls(tmp_path: Path) -> None:
    known = sketch(18_000)
    off = []
    for seed in range(20):
        found = calls_only(simulated(known, seed=100 + seed), tmp_path)
        assert found.calls > 50_000
        off += [(e.value - truth) / e.error for e, truth in checked(found).values()]
        talk = found.talk_time
        assert talk is not None
        quantiles = durations(distribution(TALK), GRID)
        assert durations(talk.distribution, GRID) == pytest.approx(quantiles, rel=0.1)
    distances = np.abs(off)
    assert (distances < 3).mean() >= 0.99
    assert 0.92 <= (distances < 1.96).mean() <= 0.98
