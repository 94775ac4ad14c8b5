"""Slots in use, kept up piece by piece, against the step function of the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dialsim.interface.instants import MINUTE
from dialsim.results.time_use import StepFunction
from dialsim.sandbox.page.sections import KEPT, LiveSlotUse, SlotChart
from dialsim.sandbox.page.view import ChartSpan

START = 1_767_578_400_000
HOUR = 60 * MINUTE


@pytest.mark.parametrize("pieces", [1, 7, 300])
def test_columns_are_the_means_and_peaks_of_the_step_function(pieces: int) -> None:
    draw = np.random.default_rng(pieces)
    begins = np.sort(draw.integers(START, START + HOUR, 400))
    ends = begins + draw.integers(1, 10 * MINUTE, 400)
    at = np.concatenate([begins, ends])
    order = np.argsort(at, kind="stable")
    at, gain = at[order], np.repeat(np.array([1, -1], np.int8), 400)[order]
    use, end = LiveSlotUse(START), START + HOUR + 30_000
    for now in np.linspace(START, end, pieces + 1).astype(np.int64)[1:].tolist():
        chosen = (at <= now) & (at > use.upto)
        use.take_in(at[chosen], gain[chosen], now)
    columns = use.columns(3, 20)
    whole = StepFunction.of_changes(at, gain)
    edges = np.append(columns.at, end)
    assert columns.mean.tolist() == pytest.approx(whole.means(edges).tolist())
    inside = [whole.value[(whole.at >= a) & (whole.at < b)] for a, b in pairwise(edges)]
    carried = whole(edges[:-1])
    assert columns.peak.tolist() == [
        max(int(values.max(initial=0)), int(first))
        for values, first in zip(inside, carried, strict=True)
    ]
    assert use.in_use == int(whole(np.array([end]))[0])


def test_a_leap_of_thousands_of_years_costs_no_more_than_what_is_kept() -> None:
    use = LiveSlotUse(START)
    use.take_in(np.array([START + 5]), np.array([1], np.int8), START + HOUR)
    use.take_in(np.empty(0, np.int64), np.empty(0, np.int8), START + 7_000 * 365 * 24 * HOUR)
    assert len(use.used) < 5 * KEPT
    assert use.columns(60, 168).mean.tolist() == [1.0] * 168


def test_weeks_by_the_hour_stay_small_and_right() -> None:
    use = LiveSlotUse(START)
    for hour in range(1, 24 * 40):
        now = START + hour * HOUR
        use.take_in(np.array([now - 30 * MINUTE]), np.array([(-1) ** (hour + 1)], np.int8), now)
    assert len(use.used) < 5 * KEPT
    assert use.columns(60, 100).mean.tolist()[:-1] == [0.5] * 99


def test_the_chart_goes_up_to_the_limit_and_its_words_say_what_it_shows() -> None:
    use = LiveSlotUse(START)
    use.take_in(np.array([START, START]), np.array([1, 1], np.int8), START + HOUR)
    limit = StepFunction.of_changes(np.array([START]), np.array([4]))
    chart = SlotChart.of(use, limit, ChartSpan("an hour", 30, 4))
    assert (chart.top, chart.peak) == (4, 2)
    assert chart.limit_path == "M0 0H600"
    assert chart.mean_path == chart.peak_path == "M0 100V100H150V50H600V100Z"
