"""Invariants of traces (see `dialsim.testing`) on random scenarios with random behaviour."""

from __future__ import annotations

import pytest

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import CHANGES
from dialsim.testing import assert_no_violations
from engine.chancy import chancy_scenario
from engine.readings import loaded
from engine.rows import rows
from oracle.scenarios import random_scenario


def test_no_trace_with_chance_breaks_a_rule_and_they_meet_every_kind_of_change() -> None:
    causes, met, statuses, stalled, cut = set(), set(), set(), 0, 0
    for seed in (*range(11), 30, 37, 44, 67, 94, 297):  # these meet it all; see below for more
        trace = Simulation(loaded(chancy_scenario(seed))).run()
        assert_no_violations(trace)
        causes |= {row.change for row in rows(trace)}
        met |= {change.cause for change in trace.campaigns}
        statuses |= {refusal.code for refusal in trace.refused}
        stalled, cut = stalled + len(trace.stalled), cut + trace.cut
    written = {c for c in CHANGES if c.cause not in ("analysis_failed", "late_result")}
    assert causes == written
    assert met == {
        "schedule", "start", "all_final", "pause", "resume", "cancel", "delete", "end_date_time"
    }  # fmt: skip
    assert statuses >= {"INVALID_CAMPAIGN_STATE", "CAMPAIGN_NOT_FOUND", "CAMPAIGN_ALREADY_STARTED"}
    assert stalled > 5
    assert cut > 2


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(40))
def test_no_trace_with_chance_breaks_a_rule_many_more(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        assert_no_violations(Simulation(loaded(chancy_scenario(seed))).run())


@pytest.mark.slow
@pytest.mark.parametrize("ten", range(10))
def test_no_trace_of_a_bigger_campaign_breaks_a_rule(ten: int) -> None:
    for seed in range(10 * ten, 10 * ten + 10):
        assert_no_violations(Simulation(loaded(chancy_scenario(seed, people=300))).run())


def test_no_trace_without_chance_breaks_a_rule() -> None:
    for seed in range(20):
        assert_no_violations(Simulation(loaded(random_scenario(seed))).run())
