"""Beta and gamma quantiles agree with scipy's, which are exact and take seventy times as long."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from dialsim.engine.special_quantiles import beta_quantiles, gamma_quantiles

Floats = NDArray[np.float64]


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
