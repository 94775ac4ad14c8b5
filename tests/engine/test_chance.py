"""Chance: a draw is a function of its address and of nothing else, a quantile is as scipy has it.

scipy's are exact and take seventy times as long.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from dialsim.engine.chance import (
    BLOCK,
    Column,
    Draws,
    Purpose,
    Same,
    beta_quantiles,
    gamma_quantiles,
    generator,
)

Floats = NDArray[np.float64]

COUNT = 2 * BLOCK + 100


def draws(
    seed: int = 7, replication: int = 0, position: tuple[int, int] = (0, 1), count: int = COUNT
) -> Draws:
    return Draws(seed, replication, position, count)


def test_the_purposes_numbers_are_frozen() -> None:
    # They are part of every seed's results: a new purpose gets a new number.
    assert {purpose.name: purpose.value for purpose in Purpose} == {
        "REACHABLE": 1,
        "OWN_CHANCE": 2,
        "OUTCOME": 3,
        "SETUP_TIME": 4,
        "RING_TIME": 5,
        "TALK_TIME": 6,
        "CALLER_ID": 7,
        "VOICE": 8,
        "FLAW": 20,
        "LATE_RESULT": 21,
        "ANALYSIS_DELAY": 22,
        "LATE_RESULT_DELAY": 23,
        "FUNNEL": 24,
        "FIELD": 25,
        "REANALYSIS": 26,
        "RECEIVER_LATENCY": 27,
        "RECEIVER_ERROR": 28,
        "CALL_ID": 100,
        "SESSION_ID": 101,
        "RECIPIENT_ID": 102,
        "CAMPAIGN_ID": 103,
        "AGENT_ID": 104,
        "ORGANIZATION_ID": 105,
        "INJECTED_FAULT": 110,
    }


def test_draws_of_many_are_those_of_each_alone() -> None:
    recipients = np.array([5, 0, COUNT - 1, 5, BLOCK])
    attempts = np.array([1, 2, 1, 3, 1])
    together = draws().of(Purpose.FLAW, attempts, recipients)
    alone = [
        draws().column(Purpose.FLAW, attempt)[recipient]
        for attempt, recipient in zip(attempts, recipients, strict=True)
    ]
    assert together.tolist() == alone


def test_details_tell_draws_of_one_purpose_apart() -> None:
    details = [(), (0,), (1,), (0, 0), (0, 1)]
    values = {draws().uniforms(Purpose.FIELD, 1, 0, 1, detail)[0] for detail in details}
    assert len(values) == len(details)


def test_a_draw_is_numpys_philox_at_its_address() -> None:
    # Spelled out from numpy alone: seed, and (replication, organization, campaign, attempt,
    # purpose, block of 4096 recipients) as the spawn key.
    column = draws(seed=7, replication=2, position=(3, 1)).column(Purpose.OUTCOME, 4)
    for block in (0, 1, 2):
        sequence = np.random.SeedSequence(7, spawn_key=(2, 3, 1, 4, 3, block))
        expected = np.random.Generator(np.random.Philox(sequence)).random(100)
        assert [column[block * 4096 + i] for i in range(100)] == expected.tolist()


def test_draws_never_change_from_version_to_version() -> None:
    column = Draws(1, 0, (0, 0), 5000).column(Purpose.OUTCOME, 1)
    found = [column[i] for i in (0, 1, 4095, 4096)]
    assert found == pytest.approx(GOLDEN, abs=1e-15)


GOLDEN = [0.552415842005473, 0.5189982568528215, 0.8287404072121279, 0.4124612766872976]


def test_a_draw_does_not_depend_on_how_many_people_there_are() -> None:
    everybody = draws().column(Purpose.TALK_TIME, 1)
    for count in (1, 2, BLOCK - 1, BLOCK, BLOCK + 1):
        few = draws(count=count).column(Purpose.TALK_TIME, 1)
        assert [few[i] for i in range(count)] == [everybody[i] for i in range(count)]


def test_a_draw_does_not_depend_on_the_order_of_asking() -> None:
    people = list(range(0, COUNT, 37))
    in_order = draws().column(Purpose.RING_TIME, 2)
    expected = {i: in_order[i] for i in people}
    random.Random(5).shuffle(people)
    shuffled, other = draws(), draws(seed=8)
    for i in people:
        shuffled.column(Purpose.RING_TIME, 1)[i]
        other.column(Purpose.RING_TIME, 2)[i]
        assert shuffled.column(Purpose.RING_TIME, 2)[i] == expected[i]


def test_every_part_of_the_address_changes_the_draw() -> None:
    columns = [
        draws().column(Purpose.OUTCOME, 1),
        draws(seed=8).column(Purpose.OUTCOME, 1),
        draws(replication=1).column(Purpose.OUTCOME, 1),
        draws(position=(1, 1)).column(Purpose.OUTCOME, 1),
        draws(position=(0, 2)).column(Purpose.OUTCOME, 1),
        draws(position=(1, 0)).column(Purpose.OUTCOME, 1),
        draws().column(Purpose.OUTCOME, 2),
        draws().column(Purpose.TALK_TIME, 1),
    ]
    values = [column[person] for column in columns for person in (0, 1, BLOCK, 2 * BLOCK)]
    assert len(set(values)) == len(values)


def test_draws_are_uniform_and_unrelated_between_attempts_and_purposes() -> None:
    source = draws(count=20_000)
    columns = [
        np.array([source.column(purpose, attempt)[i] for i in range(20_000)])
        for purpose in (Purpose.OUTCOME, Purpose.TALK_TIME)
        for attempt in (1, 2)
    ]
    for column in columns:
        assert column.min() >= 0.0
        assert column.max() < 1.0
        counts, _ = np.histogram(column, bins=100, range=(0, 1))
        statistic = ((counts - 200) ** 2 / 200).sum()  # chi-square, 99 degrees of freedom
        assert 99 - 4 * np.sqrt(198) < statistic < 99 + 4 * np.sqrt(198)
    correlation = np.corrcoef(columns) - np.eye(4)
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000)


def test_a_column_computes_a_block_when_first_asked_and_once() -> None:
    asked = []

    def fill(block: int, size: int) -> np.ndarray:
        asked.append((block, size))
        return np.arange(size) + 1_000_000 * block

    column = Column(BLOCK + 10, np.int64, fill)
    assert asked == []
    assert [column[BLOCK + 3], column[3], column[BLOCK + 9], column[0]] == [
        1_000_003,
        3,
        1_000_009,
        0,
    ]
    assert asked == [(1, 10), (0, BLOCK)]


def test_same_is_the_same_for_everybody() -> None:
    assert [Same(0.25)[person] for person in (0, 5, 10**9)] == [0.25] * 3


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**70])
@pytest.mark.parametrize("key", [(0,), (3, 0, 1, 2, 4, 17), (5, 2**32 - 1), (5, 2**32)])
def test_a_generator_is_numpys_for_the_seed_and_the_key(seed: int, key: tuple[int, ...]) -> None:
    numpys = np.random.Philox(np.random.SeedSequence(seed, spawn_key=key))
    assert np.array_equal(generator(seed, key).random_raw(8), numpys.random_raw(8))


def uniforms() -> Floats:
    """Multiples of 2⁻⁵³ in [0, 1), as the generator makes them, many of them near the ends."""
    rng = np.random.default_rng(1)
    near = 2.0 ** -rng.integers(1, 54, 3000).astype(np.float64)
    return np.concatenate([[0.0, 2.0**-53, 0.5], rng.random(5_000), near, 1.0 - near])


def assert_close(found: Floats, exact: Floats, relative: float) -> None:
    ordinary = exact > np.finfo(np.float64).tiny
    assert np.isfinite(found).all()
    assert np.all(found[~ordinary] <= 1e-300)
    assert np.abs(found / np.where(ordinary, exact, 1.0) - 1.0)[ordinary].max() < relative


@pytest.mark.parametrize("mean", [1e-7, 0.01, 0.35, 0.5, 0.9, 0.999999])
@pytest.mark.parametrize("concentration", [0.01, 0.1, 0.5, 2.3, 6.0, 100.0, 1e4, 1e6])
def test_beta_quantiles_are_exact(mean: float, concentration: float) -> None:
    u, a, b = uniforms(), mean * concentration, (1.0 - mean) * concentration
    exact = np.where(u < 0.5, special.betaincinv(a, b, u), special.betainccinv(a, b, 1.0 - u))
    found = beta_quantiles(a, b, u)
    assert_close(found, exact, 1e-7 if concentration < 0.5 else 1e-8)
    assert found[u == 0.0] == 0.0
    assert found.max() <= 1.0


@pytest.mark.parametrize("shape", [1e-4, 0.05, 0.1, 0.5, 1.0, 2.2, 30.0, 1e3, 1e6, 1e9])
def test_gamma_quantiles_are_exact(shape: float) -> None:
    u = uniforms()
    exact = np.where(u < 0.5, special.gammaincinv(shape, u), special.gammainccinv(shape, 1.0 - u))
    found = gamma_quantiles(shape, u)
    assert_close(found, exact, 1e-8)
    assert found[u == 0.0] == 0.0


def test_a_quantile_does_not_depend_on_the_others_asked_for() -> None:
    # Draws are made in blocks of any size (common random numbers)
    u = uniforms()
    one_by_one = [float(beta_quantiles(1.15, 1.15, u[i : i + 1])[0]) for i in range(200)]
    assert one_by_one == beta_quantiles(1.15, 1.15, u)[:200].tolist()
