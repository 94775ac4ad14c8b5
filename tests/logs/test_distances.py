"""Distances of logs against the reference package, and what must hold of them in any case."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialsim
from dialsim.logs.distances import (
    METRICS,
    Events,
    common_shift,
    events_of,
    events_of_run,
    profile,
)
from dialsim.logs.log import read_log
from dialsim.testing import Sketch
from logs.reference_distances import cases, some_events

REFERENCE = json.loads(Path(__file__).with_name("distances.json").read_text(encoding="utf-8"))
DISTANCES = {metric.key: metric.distance for metric in METRICS}


def moved(events: Events, ms: int) -> Events:
    return Events(
        events.person, events.outcome, events.attempt, events.started + ms, events.ended + ms
    )


@pytest.mark.parametrize("name", REFERENCE)
def test_distances_are_those_of_the_reference_package(name: str) -> None:
    here, there = map(profile, cases()[name])
    for key, value in REFERENCE[name].items():
        assert DISTANCES[key](here, there) == pytest.approx(value, rel=0, abs=1e-6), key


def test_every_shared_case_has_reference_values() -> None:
    assert REFERENCE.keys() == cases().keys()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 30))
def test_distances_are_symmetric_and_none_of_a_log_from_itself(
    seed: int, people: int, others: int
) -> None:
    here, there = (profile(some_events(seed + i, n)) for i, n in enumerate((people, others)))
    for metric in METRICS:
        forth, back = metric.distance(here, there), metric.distance(there, here)
        assert forth == pytest.approx(back, nan_ok=True), metric.key
        assert np.isnan(forth) or forth >= 0, metric.key
        assert metric.distance(here, here) in (0, pytest.approx(np.nan, nan_ok=True)), metric.key


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(-100 * 3_600_000, 100 * 3_600_000))
def test_a_shift_is_found_to_the_millisecond_and_moves_no_length_of_time(
    seed: int, ms: int
) -> None:
    events = some_events(seed, 30)
    here, there = profile(events), profile(moved(events, ms))
    assert common_shift(here, there) == pytest.approx(ms, abs=1e-3)
    lengths = "talkTime", "gaps", "cycleTime", "interArrivals", "relative", "retryInterval"
    for key in (*lengths, "finish", "outcomes", "nGram"):
        assert DISTANCES[key](here, there) == pytest.approx(0, abs=1e-9, nan_ok=True), key


def test_longer_talks_and_later_retries_are_no_shift() -> None:
    here = profile(some_events(1, 200))
    assert abs(common_shift(here, profile(some_events(1, 200, talk=600.0)))) < 600_000


def test_a_sample_stands_for_many_values() -> None:
    here, there = some_events(1, 3_000), some_events(2, 3_000, talk=72.0)
    exact, about = ((profile(here, n), profile(there, n)) for n in (None, 1_024))
    for metric in METRICS:
        assert metric.distance(*about) == pytest.approx(metric.distance(*exact), rel=0.1, abs=0.1)


RETRIED = {"max_attempts": 2, "retry_interval": "1h"}
FAULTY = (
    Sketch(5, setup_time=None)
    .behaviour(
        "default",
        rates={"notRecorded": 0.2, "agentError": 0.1, "analysisFailed": 0.1, "lateResult": 0.5},
    )
    .campaign("January", recipients={"count": 150}, **RETRIED)
    .campaign("February", recipients={"count": 50}, start="Tue 09:00", **RETRIED)
)


@pytest.mark.parametrize("told", [False, True])
def test_a_run_has_the_events_of_its_folder_and_of_its_webhooks(told: bool, tmp_path: Path) -> None:
    result = dialsim.run(FAULTY.scenario(), seed=1)
    result.write(tmp_path / "run")
    with (tmp_path / "webhooks.jsonl").open("wb") as file:
        result.write_webhooks(file)
    of_run = events_of_run(result.reading, webhooks_only=told)
    others = [events_of(read_log(tmp_path / "run"), webhooks_only=told)]
    if told:
        others.append(events_of(read_log(tmp_path / "webhooks.jsonl"), webhooks_only=True))
    for other in others:
        here, there = profile(of_run), profile(other)
        assert all(metric.distance(here, there) == 0 for metric in METRICS)
