"""Expected length of conversations, which the scenario's distributions give exactly.

A call that is answered runs to its end, and its talk time is drawn independently of everything that
led to the call. So the sum over all answered calls of talk time minus expected talk time has the
expectation 0 (Wald 1944, "On cumulative sums of random variables", Annals of Mathematical
Statistics 15). That holds for campaigns that are cancelled or reach their `endDateTime`, too,
because calls under way run to their end there. Where `clock.end` ends a run, only conversations
that end by then count, in the talk time and in its expectation alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, lgamma, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import weibull_shape
from dialsim.engine.log_reader import NOT_HAPPENED, Calls
from dialsim.results.counts import Counts
from dialsim.scenario.distribution import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    Lognormal,
    Triangular,
    Uniform,
    Weibull,
)

if TYPE_CHECKING:
    from dialsim.engine.world import World
    from dialsim.results.run_view import CampaignResult
    from dialsim.scenario.distribution import Distribution

Floats = NDArray[np.float64]

_SINGLE, _PER_DOUBLING, _DOUBLINGS = 4096, 512, 32
"""Terms of the sum that are added one by one; groups of terms in each doubling after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTalk(Counts):
    """Expected talk time (ms) and billed increments of the answered calls of a run.

    The conversation of a call that follows a script lasts as the script says and counts as it is.
    """

    talk_ms: float = 0
    increments: float = 0

    @classmethod
    def of(cls, own: CampaignResult) -> ExpectedTalk:
        """Return the expected charges of a campaign."""
        world, calls, costs = own.run.world, own.engine_calls, own.run.costs
        talk_ms = _expected_of_calls(world, calls, 1)
        if costs is None or not costs.per_minute:
            return cls(talk_ms=talk_ms)
        increments = _expected_of_calls(world, calls, costs.billing_increment)
        return cls(talk_ms=talk_ms, increments=increments)


def _expected_of_calls(world: World, calls: Calls, unit: int) -> float:
    """Return the expected number of started units of `unit` ms of a campaign's conversations."""
    by_chance, expected = np.flatnonzero(calls.started_at != NOT_HAPPENED), 0.0
    if calls.scripts is not None:
        follows = calls.scripts[calls.recipient[by_chance]] >= 0
        expected = float(-(-calls.talk_ms[by_chance[follows]] // unit).sum())
        by_chance = by_chance[~follows]
    started_at, end = calls.started_at[by_chance].astype(np.float64), world.scenario.clock.end
    alike = len(world.behaviours) == 1
    behaviours = np.zeros(len(started_at)) if alike else calls.behaviour[by_chance]
    for index in np.unique(behaviours).astype(int).tolist():
        talk = world.scenario.behaviours[world.behaviours[index]].talk_time
        own = started_at[behaviours == index]
        if end is None:
            expected += len(own) * float(expected_units(talk, unit)[0])
        else:
            expected += float(expected_units(talk, unit, end - own).sum())
    return expected


class _Units(NamedTuple):
    """`sums[i]` is the sum of P(X > j · unit) over all j below `below[i]`, X the talk time."""

    below: Floats
    sums: Floats


def expected_units(distribution: Distribution, unit: int, within: Floats | None = None) -> Floats:
    """Return the expected number of started units of `unit` ms that a conversation lasts.

    A unit of 1 ms gives the expected talk time. With `within`, return for each of these times (ms)
    the expectation of the number, counted as 0 for conversations that last longer than the time.
    """
    below, sums = _units(distribution, unit)
    if within is None:
        return sums[-1:]
    started = np.floor(within / unit) + 1.0
    return np.interp(started, below, sums) - started * _at_least(distribution, within + 1.0)


@lru_cache(256)
def _units(distribution: Distribution, unit: int) -> _Units:
    """Sum P(X > j · unit) over j: E⌈X / unit⌉ (X is positive and whole).

    Far out, terms are summed in groups, each by the term in its middle.
    """
    wider = _SINGLE * 2.0 ** (np.arange(1, _PER_DOUBLING * _DOUBLINGS + 1) / _PER_DOUBLING)
    steps = [distribution.min, distribution.max, *(_atoms(distribution) or ())]
    exact = [ceil(step / unit) for step in steps if step is not None]
    edges = np.unique(np.concatenate([np.arange(_SINGLE + 1), np.floor(wider), exact]))
    middles = (edges[:-1] + edges[1:] - 1.0) / 2.0
    terms = _at_least(distribution, middles * unit + 1.0) * np.diff(edges)
    return _Units(edges, np.concatenate([[0.0], np.cumsum(terms)]))


def _at_least(distribution: Distribution, ms: Floats) -> Floats:
    """Return P(X ≥ ms), where X is clipped and rounded half up to whole ms."""
    least = 0 if distribution.min is None else distribution.min
    most = inf if distribution.max is None else distribution.max
    inside = _survival(distribution, np.maximum(ms - 0.5, 0.0))
    return np.where(ms <= least, 1.0, np.where(ms > most, 0.0, inside))


def _atoms(distribution: Distribution) -> tuple[int, ...] | None:
    """Return the values of a distribution that has only some; None for one with a density."""
    match distribution:
        case Empirical():
            return distribution.values
        case Constant():
            return (distribution.value,)
        case Uniform() | Triangular():
            return (distribution.low,) if distribution.low == distribution.high else None
        case Exponential():
            return None
    return None if distribution.sd else (distribution.mean,)


def _survival(distribution: Distribution, ms: Floats) -> Floats:
    """Return the probability of a draw of `ms` or more, before clipping."""
    from scipy import special

    atoms = _atoms(distribution)
    if atoms is not None:
        below = np.searchsorted(np.sort(np.array(atoms, dtype=np.float64)), ms, side="left")
        return 1.0 - below / len(atoms)
    found: Any
    match distribution:
        case Uniform():
            low, high = distribution.low, distribution.high
            found = np.clip((high - ms) / (high - low), 0.0, 1.0)
        case Triangular():
            low, mode, high = distribution.low, distribution.mode, distribution.high
            within = np.clip(ms, low, high)
            rising = 1.0 - (within - low) ** 2 / ((high - low) * ((mode - low) or 1))
            falling = (high - within) ** 2 / ((high - low) * ((high - mode) or 1))
            found = np.where(within < mode, rising, falling)
        case Exponential():
            found = np.exp(-ms / distribution.mean)
        case Lognormal():
            variance = log(1.0 + (distribution.sd / distribution.mean) ** 2)
            with np.errstate(divide="ignore"):
                logs = np.log(ms) - (log(distribution.mean) - variance / 2.0)
            found = special.ndtr(-logs / sqrt(variance))
        case Gamma():
            shape = (distribution.mean / distribution.sd) ** 2
            found = special.gammaincc(shape, ms * shape / distribution.mean)
        case Weibull():
            shape = weibull_shape(distribution.sd / distribution.mean)
            scaled = ms / distribution.mean * exp(lgamma(1.0 + 1.0 / shape))
            found = np.exp(-(scaled**shape))
    return np.asarray(found, dtype=np.float64)
