"""Runs in the last days of the year 9999, where time ends (T5), have tables, summary and pages."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.dates import AutoDateLocator
from matplotlib.figure import Figure

import dialsim
from dialsim.interface.instants import THAI, thai
from dialsim.report.writing import run_report
from dialsim.results.plots.drawing import time_axis
from dialsim.testing import Sketch
from report.pages import Reader


def campaign(start: str, **body: Any) -> dialsim.Result:
    sketch = (
        Sketch(lines=2, start=start)
        .having(webhook={"url": "https://receiver.example/results"})
        .campaign("A", recipients={"count": 60}, start=start, windows="daily 00:00-23:59", **body)
    )
    return dialsim.run(sketch.scenario())


@pytest.mark.parametrize(
    ("start", "attempts"),
    [
        ("9999-12-31T16:50:00Z", 3),  # in Thailand the year 10000 begins ten minutes later
        pytest.param("9999-12-31T23:55:00Z", 1, marks=pytest.mark.slow),
        pytest.param("9999-12-29T11:50:00Z", 3, marks=pytest.mark.slow),
        pytest.param("9999-12-30T23:00:00Z", 1, marks=pytest.mark.slow),
        pytest.param("9999-12-29T11:50:00Z", 1, marks=pytest.mark.slow),
        pytest.param("9999-12-30T23:00:00Z", 3, marks=pytest.mark.slow),
        pytest.param("9999-12-31T16:50:00Z", 1, marks=pytest.mark.slow),
        pytest.param("9999-12-31T23:55:00Z", 3, marks=pytest.mark.slow),
    ],
)
def test_t5_a_run_in_the_last_days_has_tables_a_summary_and_a_page(
    start: str, attempts: int
) -> None:
    retries = {"maxAttempts": attempts, "retryInterval": 3_600_000}
    last = {"endDateTime": "9999-12-31T23:59:59.999Z"} if attempts == 3 else {}
    result = campaign(start, **retries, **last)
    assert len(result.calls) > 0
    assert len(result.recipients) == 60
    assert json.loads(result.summary.to_json())["end_thai"].startswith("9999-12-")
    assert "Sketch" in "".join(Reader(run_report(result, 2)).text)


@pytest.mark.parametrize(
    "length", [90_000, 3_600_000, 9 * 3_600_000, 6 * 86_400_000, 90 * 86_400_000]
)
def test_the_ticks_of_a_picture_are_those_that_matplotlib_chooses(length: int) -> None:
    start = 1_767_578_400_000
    ax = Figure().add_subplot()
    time_axis(ax, start, start + length)
    ends = [thai(round(day * 86_400_000)) for day in ax.get_xlim()]
    usual = AutoDateLocator(tz=THAI, minticks=3, maxticks=7).tick_values(*ends)
    assert np.allclose(ax.xaxis.get_majorticklocs(), usual, atol=1e-9, rtol=0)
