"""Both engines and the naive second reading agree on every row, to the millisecond (T to F)."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from engine.readings import Agree
from oracle.scenarios import Scenario, listed_scenario, random_scenario, scripted_scenarios


@pytest.mark.parametrize(
    "seed", [*range(80), *(pytest.param(s, marks=pytest.mark.slow) for s in range(80, 150))]
)
def test_all_readings_agree_on_a_random_scenario(agreed: Agree, seed: int) -> None:
    agreed(random_scenario(seed), f"random_scenario({seed})")


@pytest.mark.parametrize(
    "seed", [*range(30), *(pytest.param(s, marks=pytest.mark.slow) for s in range(30, 400))]
)
def test_all_readings_agree_on_whom_a_file_has_called_in_which_order(
    agreed: Agree, seed: int
) -> None:
    scenario, files = listed_scenario(seed)
    agreed(scenario, f"listed_scenario({seed})", files)


@pytest.mark.slow
@given(scripted_scenarios())
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_all_readings_agree_on_what_hypothesis_finds(agreed: Agree, scenario: Scenario) -> None:
    agreed(scenario, json.dumps(scenario))


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(1, 22))
def test_all_readings_agree_on_thousands_of_scenarios(agreed: Agree, hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        agreed(random_scenario(seed), f"random_scenario({seed})")
