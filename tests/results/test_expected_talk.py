"""Expected talk times and billed increments are the means of the draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dialsim.engine.behaviour import durations
from dialsim.experiments.replications import replicate
from dialsim.results.counts import expected_units
from dialsim.scenario.distribution import distribution
from experiments.scenarios import CHANCY, crowd

DRAWS = 200_000
TALK: dict[str, Any] = {
    "constant": "59s",
    "none": "0s",
    "uniform": {"dist": "uniform", "low": "1s", "high": "3s"},
    "of no width": {"dist": "uniform", "low": "2s", "high": "2s"},
    "exponential": {"dist": "exponential", "mean": "60s", "max": "90s"},
    "log-normal": {"dist": "lognormal", "mean": "75s", "sd": "88s", "min": "2s", "max": "10m"},
    "log-normal without an end": {"dist": "lognormal", "mean": "75s", "sd": "225s"},
    "gamma": {"dist": "gamma", "mean": "75s", "sd": "30s", "min": "50s"},
    "Weibull": {"dist": "weibull", "mean": "75s", "sd": "100s"},
    "triangular": {"dist": "triangular", "low": "5s", "mode": "12s", "high": "30s"},
    "triangular, peak at an end": {"dist": "triangular", "low": "5s", "mode": "5s", "high": "30s"},
    "measured": {"dist": "empirical", "values": ["40s", "75s", "2m", "10s"], "max": "100s"},
}


@pytest.mark.parametrize("name", TALK)
@pytest.mark.parametrize("unit", [1, 1000, 60_000])
def test_expectations_are_the_means_of_many_draws(name: str, unit: int) -> None:
    chance, talk = np.random.default_rng(1), distribution(TALK[name])
    drawn = durations(talk, chance.random(DRAWS))
    units = -(-drawn // unit)
    error = float(units.std()) / np.sqrt(DRAWS) + 1e-9
    assert units.mean() == pytest.approx(expected_units(talk, unit)[0], abs=4 * error)
    # calls that are cut off count for nothing
    within = np.round(chance.uniform(0, 120_000, DRAWS))
    over = np.where(drawn <= within, units, 0) - expected_units(talk, unit, within)
    assert over.mean() == pytest.approx(0.0, abs=4 * float(over.std()) / np.sqrt(DRAWS) + 1e-9)


@pytest.mark.parametrize("cut", [{}, {"end": "2026-01-04T17:06:00Z"}])
def test_charges_are_as_expected_on_average_also_if_the_run_is_cut_off(cut: Any) -> None:
    runs = replicate(crowd(40, 6, attempts=2, **cut, **CHANCY), 50, jobs=1)
    for figure in ("talk_minutes", "cost"):
        beyond = np.array([run.scopes[0].aside[figure] for run in runs.figures])
        assert beyond.mean() == pytest.approx(0.0, abs=4 * beyond.std() / np.sqrt(len(beyond)))
        assert beyond.std() > 1


def test_scripts_and_constants_leave_nothing_beyond_expectation() -> None:
    runs = replicate(crowd(40, 6), 3, jobs=1)
    assert [run.scopes[0].aside["talk_minutes"] for run in runs.figures] == pytest.approx([0] * 3)
