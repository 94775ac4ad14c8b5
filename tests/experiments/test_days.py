"""Instants are compared by medians and by days: the mean of a finish shows only where it is asked.

Twenty people, two or three lines, 52 minutes of calling a day: with two lines one run in sixteen
goes on for another day, which moves the mean by more than an hour, and no typical run.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cli.program import dialsim as program
from dialsim.experiments.experiment_text import print_experiment, sweep_content
from dialsim.experiments.replications import replicate
from dialsim.experiments.sweep import Sweep, sweep
from dialsim.report.what_if import FurtherRuns
from dialsim.report.writing import sweep_report
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch
from report.pages import Reader

LINES = "organizations.Acme.maxConcurrentCalls"
BY_MONDAY = "finish_by_2026-01-05"


@cache
def short_days() -> Scenario:
    return (
        Sketch(2, start="2026-01-05T02:00:00Z", setup_time=None, seed=1)
        .campaign(
            "January",
            recipients={"count": 20},
            windows="daily 09:00-09:52",
            max_attempts=3,
            retry_interval="20m",
        )
        .scenario()
    )


@cache
def swept(runs: int = 20) -> Sweep:
    return sweep(short_days(), {LINES: [2, 3]}, runs, jobs=1)


def test_the_median_difference_and_a_more_probable_monday_are_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = swept()
    finish = found.runs.pivot(index="replication", columns="variant", values="finish_seconds")
    two, three = (finish[variant.name].to_numpy() for variant in found.variants)
    assert (two < 3600 * 24).all()  # no run has shown that it may go on on Tuesday
    print_experiment("", *sweep_content(found))
    said = capsys.readouterr().out
    median = -np.median(three - two)
    assert f"-{int(median // 60)} min {round(median % 60)} s (-" in said
    assert "To be done by Mon 5 Jan is more probable with 3 lines: " in said
    assert f"{(three - two).mean():.0f}" not in said
    assert "± 34 s" not in said
    assert "-2 min 56 s" not in said


def test_json_tables_and_pages_have_no_mean_of_an_instant(tmp_path: Path) -> None:
    found = swept()
    mean = float(found.runs.groupby("variant", sort=False)["finish_seconds"].mean().diff().iloc[1])
    for table in (found.intervals(), found.differences()):
        rows = table[table["figure"].str.endswith("_seconds") & table["figure"].str.match("fin")]
        assert len(rows)
        assert rows["mean"].isna().all()
    numbers = found.differences().select_dtypes("number").to_numpy()
    assert not np.isclose(numbers, mean, rtol=1e-3).any()
    page = Reader(sweep_report(found, FurtherRuns(0)))
    assert "To be done by Mon 5 Jan is more probable with 3 lines: " in page.words
    assert "2 min 56 s" not in page.words
    source = tmp_path / "short.yaml"
    source.write_text(short_days().origin.text, encoding="utf-8")
    asked = ("--vary", "lines=2,3", "--replications", "20", "--format", "json")
    document = json.loads(program("sweep", source, *asked).stdout)
    finish = next(r for r in document["differences"] if r["figure"] == "finish_seconds")
    assert (finish["statistic"], finish["mean"], finish["baseline_mean"]) == ("median", None, None)
    monday = next(r for r in document["differences"] if r["figure"] == BY_MONDAY)
    assert monday["statistic"] == "probability"
    assert monday["mean"] > monday["baseline_mean"] + 0.01
    assert not monday["real"]
    assert document["estimates"][0]["mean"] is None
    assert "finish_mean" not in document["estimates"][0]


def test_the_mean_is_there_where_it_is_asked_for() -> None:
    found = sweep(short_days(), {LINES: [2, 3]}, 20, figures=["mean(finish)", "finish"], jobs=1)
    table = found.differences()
    rows = table[table["scope"] == "run"].set_index("figure")
    means = found.runs.groupby("variant", sort=False)["finish_seconds"].mean()
    assert rows.loc["mean(finish)", "mean"] == pytest.approx(means.iloc[1])
    assert rows.loc["mean(finish)", "statistic"] == "mean"
    assert rows.loc["finish", "statistic"] == "median"


def test_the_probability_of_a_day_is_estimated_from_the_distance_to_the_closing() -> None:
    # of 20 runs each, also those that saw no Tuesday come near the truth on average
    scenario, truth = short_days(), 1 - 0.06  # about, of 2,000 runs
    runs = replicate(scenario, 200, jobs=1)
    table = runs.intervals().query("scope == 'run'").set_index("figure")
    seen = float((runs.runs["finish_seconds"] < 15 * 3600).mean())
    assert table.loc[BY_MONDAY, "mean"] == pytest.approx(seen)
    unseen = []
    for block in range(10):
        part = type(runs)(scenario, runs.seed, runs.figures[20 * block : 20 * block + 20])
        row = part.intervals().query("scope == 'run'").set_index("figure").loc[BY_MONDAY]
        assert row["mean_low"] <= truth <= row["mean_high"]
        if row["hits"] == 20:
            unseen.append(1 - row["mean"])
    assert unseen
    assert (1 - truth) / 2 < np.mean(unseen) < 2 * (1 - truth)


def test_days_are_compact_and_midnight_belongs_to_the_day_that_it_ends() -> None:
    many = Sketch(1, start="2026-01-05T02:00:00Z", setup_time=None).campaign(
        "January",
        recipients={"count": 4},
        windows="daily 09:00-09:30",
        max_attempts=8,
        retry_interval="26h",
    )
    found = replicate(many.scenario(), 40, jobs=1)
    days = [day.column for day in found.days[None, None] if day.instant == "finish"]
    ends = sorted({f"finish_by_{at:%Y-%m-%d}" for at in found.runs["finish"].dt.tz_convert(
        "Asia/Bangkok")})  # fmt: skip
    assert len(days) <= 5 < len(ends)
    assert (days[0], days[-1]) == (ends[0], ends[-1])
    table = found.intervals().query("scope == 'run'").set_index("figure")
    shares = table.loc[days, "mean"].to_numpy()
    assert (np.diff(shares) > 0).all()
    assert table.loc[days[1], "hits"] == sum(
        f"finish_by_{at:%Y-%m-%d}" <= days[1]
        for at in found.runs["finish"].dt.tz_convert("Asia/Bangkok")
    )
