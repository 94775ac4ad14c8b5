"""The random scenarios are as nasty as they should be, and the second reading misses no instant."""

from __future__ import annotations

import random

import pytest

from oracle.paper import ZERO
from oracle.scenarios import random_scenario
from oracle.second_reading import second_reading


@pytest.mark.parametrize("seed", range(40))
def test_instants_looked_at_in_vain_change_nothing(seed: int) -> None:
    given = random_scenario(seed)
    reading = second_reading(given)
    instants = [row[0] for row in reading.transitions] or [ZERO]
    rng = random.Random(seed)
    near = {t + rng.choice((-1, 1, 1000, rng.randint(0, 10**6))) for t in instants}
    assert second_reading(given, also=near) == reading


@pytest.mark.slow
def test_the_random_scenarios_meet_every_kind_of_change() -> None:
    calls_met, campaigns_met, refused, stalled = set(), set(), set(), 0
    removed, gone_on = 0, 0
    for seed in range(150):
        reading = second_reading(random_scenario(seed))
        calls_met |= {(row[5], row[6], row[8]) for row in reading.transitions}
        campaigns_met |= {row[3:] for row in reading.campaigns}
        refused |= {(row[3], row[4]) for row in reading.refused}
        stalled += len(reading.stalled)
        removed += bool(reading.removed)
        gone_on += any(row[4] == 1 and row[8] == "retry" for row in reading.transitions)
    waiting = ("SCHEDULED", "QUEUED", "INITIATED")
    withdrawn = {("CANCELLED", "cancelled"), ("CANCELLED", "deleted"), ("EXPIRED", "expired")}
    assert calls_met >= {(before, *after) for before in waiting for after in withdrawn}
    assert len(calls_met) == 23
    assert len(campaigns_met) >= 20
    assert len(refused) >= 9
    assert stalled >= 10
    assert ("schedule", "VALIDATION_FAILED") in refused, "nobody is left"
    assert removed >= 12
    assert gone_on >= 30
