"""Lines in use on the page, against the step function of the whole run."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dialsim.engine.log_reader import SLOTS
from dialsim.results.time_use import StepFunction, counted
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.page.sections import COLUMN, COLUMNS, LineChart, lines_in_use
from dialsim.testing import Sketch

START = 1_767_578_400_000
HOUR = 3_600_000


@pytest.mark.parametrize("hours", [0, 1, 30, 24 * 30])
def test_the_lines_of_the_last_day_are_those_of_the_whole_run(hours: int) -> None:
    sketch = Sketch(lines=4).campaign("A", recipients={"count": 300}, maxAttempts=9)
    core = SandboxCore(sketch.campaign("B", recipients={"count": 50}).scenario())
    core.simulation.advance(hours=hours)
    since = core.at - 24 * HOUR
    shown = lines_in_use(core, core.accounts[0], since)
    for view in core.accounts[0].views:
        view.catch_up()
    whole = counted([view.calls for view in core.accounts[0].views], SLOTS)
    at = np.unique(np.concatenate([[since, core.at], whole.at[whole.at >= since]]))
    assert shown(at).tolist() == whole(at).tolist()


def test_columns_are_the_means_and_peaks_of_the_step_function() -> None:
    draw = np.random.default_rng(1)
    begins = np.sort(draw.integers(START, START + 24 * HOUR, 400))
    ends = begins + draw.integers(1, 2 * COLUMN, 400)
    at = np.concatenate([begins, ends])
    order = np.argsort(at, kind="stable")
    whole = StepFunction.of_changes(at[order], np.repeat([1, -1], 400)[order])
    limit = StepFunction.of_changes(np.array([START]), np.array([100]))
    chart = LineChart.of(whole, limit, START + 24 * HOUR - 1)
    edges = np.arange(COLUMNS + 1) * COLUMN + chart.begins
    peaks = [
        max(int(whole.value[(whole.at >= a) & (whole.at < b)].max(initial=0)), int(whole(a)))
        for a, b in pairwise(edges)
    ]
    assert chart.peak == max(peaks)
    assert chart.mean == pytest.approx(whole.means(edges).mean())


def test_the_chart_goes_up_to_the_limit_and_its_words_say_what_it_shows() -> None:
    now = START + 12 * HOUR - 1
    in_use = StepFunction.of_changes(np.array([START]), np.array([2]))
    limit = StepFunction.of_changes(np.array([START - 24 * HOUR]), np.array([4]))
    chart = LineChart.of(in_use, limit, now)
    assert (chart.top, chart.peak, chart.mean) == (4, 2, 1.0)
    assert (chart.begins, chart.middle, chart.ends) == (START - 12 * HOUR, START, START + 12 * HOUR)
    assert chart.limit_path == "M0 0H600"
    assert chart.mean_path == chart.peak_path == "M0 100V100H300V50H600V100Z"
