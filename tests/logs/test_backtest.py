"""Backtests: earlier forecasts from the user's own log, and intervals as wide as they needed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dialsim
from dialsim.cli import commands
from dialsim.engine.rules import Windows
from dialsim.errors import DialsimError
from dialsim.experiments.forecast import Span, Widening
from dialsim.interface.instants import HOUR
from dialsim.logs.backtest import Backtest, PastFigure, PastForecast, backtest, factor
from dialsim.logs.log import read_log
from logs.other_service import MONDAY, Service


def test_the_score_is_the_distance_in_sides_of_the_interval() -> None:
    span = Span(80.0, 100.0, 110.0)
    assert span.score(100.0) == 0.0
    assert span.score(80.0) == span.score(110.0) == 1.0
    assert span.score(130.0) == 3.0
    assert Span(100.0, 100.0, 100.0).score(101.0) == 2.0  # a side is half a percent at least


def test_the_factor_would_have_held_nine_of_ten() -> None:
    scores = np.random.default_rng(1).exponential(1.5, 200).tolist()
    assert 0.89 < np.mean([one <= factor(scores) for one in scores]) < 0.93
    assert factor([0.1, 0.2, 0.3]) == 1.0
    assert factor([0.5, 2.5]) == 2.5  # too few for a quantile: the largest
    assert factor([]) == 1.0


def test_widened_intervals_hold_nine_of_ten_truths_of_their_kind() -> None:
    """Intervals that are half as wide as they say: 19 scores make them wide enough."""
    chance = np.random.default_rng(2)
    held = []
    for _ in range(400):
        *past, truth = chance.normal(0.0, 1.0, 20).tolist()
        span = Span(-0.8, 0.0, 0.8)
        by = factor([span.score(one) for one in past])
        held.append(abs(truth) <= 0.8 * by)
    assert 0.86 < np.mean(held) < 0.94


def test_a_finish_is_widened_in_time_of_open_windows() -> None:
    days = [(day * 24 * HOUR + 9 * HOUR, day * 24 * HOUR + 17 * HOUR) for day in range(7)]
    start, nine = MONDAY, MONDAY + 9 * HOUR
    span = Span(nine + 6 * HOUR, nine + 7 * HOUR, nine + 7.5 * HOUR)
    wider = Widening(finish=4.0).of_finish(span, start, Windows(days))
    assert wider.low == nine + 3 * HOUR
    assert wider.half == span.half
    assert wider.high == nine + 24 * HOUR + HOUR  # an hour of the next morning
    assert Widening().of_finish(span, start, Windows(days)) == span


def test_a_reach_is_not_widened_beyond_the_list() -> None:
    assert Widening(reach=3.0).of_reach(Span(50, 80, 90), 100) == Span(0.0, 80, 100.0)


def test_sentences_count_what_held() -> None:
    narrow = Span(90.0, 100.0, 110.0)
    calls = PastFigure("calls made", narrow, 105, narrow.score(105))
    reached = [100 + 5 * n for n in range(8)]
    reach = [PastFigure("people reached", narrow, one, narrow.score(one)) for one in reached]
    found = Backtest([PastForecast("January", (calls, one)) for one in reach])
    assert [*found.lines()] == [
        "Of 8 earlier forecasts 8 held for calls made, 3 for people reached",
        "The interval of the reach is therefore 3.5 times as wide as its runs",
        "8 earlier forecasts are few: they support intervals for 89% of truths, not for 90%",
    ]


@pytest.mark.slow
def test_a_log_is_forecast_from_earlier_instants(tmp_path: Path) -> None:
    service = Service(people=400, lines=3, attempts=3)
    service.write(tmp_path / "webhooks.jsonl", seed=1)
    log = read_log(tmp_path / "webhooks.jsonl")
    plan = dialsim.loads(json.dumps(service.scenario()))
    found = backtest(log, None, plan, cuts=3, jobs=1)
    assert len(found.forecasts) == 3
    assert found.missing == ()
    for one in found.forecasts:
        calls, _ = one.figures
        assert calls.truth > 0
        assert calls.span.low < calls.span.high
        assert calls.score == calls.span.score(calls.truth) < 4
    with pytest.raises(DialsimError, match="a backtest needs 100 or more"):
        backtest(replace(log, calls=log.calls.head(20)), None, plan)


@pytest.mark.slow
def test_a_forecast_says_how_many_earlier_ones_held(tmp_path: Path) -> None:
    service = Service(people=400, lines=3, attempts=3)
    service.write(tmp_path / "webhooks.jsonl", seed=1)
    plan = tmp_path / "scenario.yaml"
    plan.write_text(json.dumps(service.scenario()), encoding="utf-8")
    arguments = [str(plan), "--backtest", str(tmp_path / "webhooks.jsonl"), "--replications", "19"]
    done = CliRunner().invoke(commands, ["forecast", *arguments, "--jobs", "1"])
    assert done.exit_code == 0, done.output
    assert "Of 8 earlier forecasts " in " ".join(done.output.split())
