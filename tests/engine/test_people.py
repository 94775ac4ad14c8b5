"""Separate random streams: people of each replication, caller IDs; and number fatigue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dialsim
from dialsim.testing import Sketch

PEOPLE = 2000
HALF = {"answered": 0.5, "noAnswer": 0.25, "failed": 0.25}


def run(
    replication: int = 0, *, campaigns: int = 1, count: int = PEOPLE, **behaviour: Any
) -> dialsim.Result:
    """Run campaigns of one call per person; each has one number, a single campaign has two."""
    numbers = [f"0210{i:05d}" for i in range(max(2, campaigns))]
    sketch = Sketch(count, setup_time=None).having(caller_ids=numbers)
    sketch = sketch.behaviour("default", outcomes=HALF, **behaviour)
    for i in range(campaigns):
        shown = [numbers[i]] if campaigns > 1 else numbers
        sketch = sketch.campaign(f"C{i}", recipients={"count": count}, caller_ids=shown)
    return dialsim.run(sketch.scenario(), replication=replication)


def ended(result: dialsim.Result, status: str) -> NDArray[np.bool_]:
    return np.array(result.calls.status == status)


@pytest.mark.parametrize(
    ("people", "status"),
    [
        ({"concentration": 0.02}, "COMPLETED"),  # nearly all people answer always, or never
        ({"reachable": 0.5}, "COMPLETED"),
        ({"deadNumbers": 0.25}, "FAILED"),
    ],
    ids=["own chance", "reachable", "dead"],
)
def test_p7_each_replication_has_people_of_its_own(people: dict[str, float], status: str) -> None:
    one, other = (ended(run(replication, people=people), status) for replication in (0, 3))
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / PEOPLE**0.5
    assert (one == ended(run(0, people=people), status)).all()


def test_p3_the_number_is_drawn_apart_from_the_outcome() -> None:
    result = run()
    first = np.array(result.calls.caller_id == "021000000")
    assert abs(np.corrcoef(first, ended(result, "COMPLETED"))[0, 1]) < 4 / PEOPLE**0.5


def test_fatigue_counts_the_dials_before_and_not_the_dial_itself() -> None:
    # Each number dials one person once. A dial before would halve the odds.
    tired = {"byCallerIdUse": {"per1000": 1e-300, "recovery": "1d"}}
    fresh = ended(run(campaigns=150, count=1), "COMPLETED")
    assert (ended(run(campaigns=150, count=1, answeredOdds=tired), "COMPLETED") == fresh).all()
    assert 50 < fresh.sum() < 100
