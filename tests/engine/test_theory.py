"""Campaigns with a closed-form solution (docs/theory.md), within four standard errors.

Holding a line means setup (1 ms, the minimum) plus talk; phones don't ring. Where the theory has
holding times without that millisecond and without rounding, its makespan is n/c ms too short, 20 ms
for 1,000 people on 50 lines. Times are chosen so long that this is negligible against the standard
error; each test gives its bound. Everything happens between Monday 00:00 and 23:59 Thai time: no
window closes in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dialsim.engine import run_world
from dialsim.engine.trace import DIALLED, ENDED, QUEUE_TIMEOUT, CallRows
from dialsim.engine.world import World
from dialsim.interface import CallStatus
from dialsim.interface.instants import parse_instant
from dialsim.testing import Sketch
from engine.readings import ENGINES

MIDNIGHT = parse_instant("2026-01-04T17:00:00Z")  # Monday, in Thailand
MINUTE = 60_000


def paths(
    count: int, slots: int, replications: int, *, body: dict[str, Any] | None = None,
    end: str | None = None,
    engine: dict[str, Any] | None = None, recipients: dict[str, Any] | None = None, **behaviour: Any
) -> Iterator[CallRows]:  # fmt: skip
    """Return the calls of each replication of one campaign; by default all people answer at once.

    The engines alternate.
    """
    settings = {"queue_timeout": "2d", **(engine or {})}
    scenario = (
        Sketch(slots, start="Mon 00:00", end=end, seed=20260105, setup_time="1ms", **settings)
        .behaviour("default", outcomes={"answered": 1.0}, ring_time={"answered": 0, "noAnswer": 0})
        .behaviour("default", **behaviour)
        .campaign(
            "A",
            recipients={"count": count, **(recipients or {})},
            windows="daily 00:00-23:59",
            **(body or {}),
        )
        .scenario()
    )
    for replication in range(replications):
        world = World(scenario, replication=replication)
        yield run_world(world, ENGINES[replication % 2]).calls[0][0].rows()


def makespan(calls: CallRows) -> int:
    """From the first dial to the last end."""
    return int(calls.at.max() - calls.at[calls.kind == DIALLED].min())


def holding_times(calls: CallRows) -> NDArray[np.int64]:
    """Return how long each call held its line; nobody is called twice."""
    ended = np.isin(calls.kind, list(ENDED.values()))
    dialled = calls.kind == DIALLED
    ends, dials = np.zeros((2, calls.recipient.max() + 1), dtype=np.int64)
    ends[calls.recipient[ended]], dials[calls.recipient[dialled]] = (
        calls.at[ended],
        calls.at[dialled],
    )
    return ends - dials


def has_mean_and_variance(
    sample: list[float], mean: float, variance: float, fourth_cumulant: float
) -> None:
    """Hold a sample's mean and variance to the formula's, within 4 of the formula's own errors."""
    n = len(sample)
    assert abs(np.mean(sample) - mean) <= 4 * sqrt(variance / n)
    error = sqrt(fourth_cumulant / n + 2 * variance**2 / (n - 1))  # of the sample variance
    assert abs(np.var(sample, ddof=1) - variance) <= 4 * error


@pytest.mark.parametrize(
    ("n", "c", "mean", "variance", "replications"),
    [
        pytest.param(1000, 50, 23.49921, 2.005133, 4000, marks=pytest.mark.slow(minutes=1)),
        (60, 6, 11.45, 2.991389, 200),
        (40, 1, 40.0, 40.0, 200),
        (7, 7, 2.592857, 1.511797, 200),
    ],
)
def test_theory_exponential_makespan(
    n: int, c: int, mean: float, variance: float, replications: int
) -> None:
    # The unit of time is 10 minutes; at most 40 ms are 0.00007 units, the standard error is 0.02 or
    # more.
    unit = 10 * MINUTE
    spacings = [1 / c] * (n - c) + [1 / k for k in range(1, c + 1)]  # means, see docs/theory.md
    assert sum(spacings) == pytest.approx(mean, abs=5e-6)
    assert sum(s**2 for s in spacings) == pytest.approx(variance, abs=5e-6)
    talk = {"dist": "exponential", "mean": "10m"}
    sample = [makespan(path) / unit for path in paths(n, c, replications, talkTime=talk)]
    has_mean_and_variance(sample, mean, variance, 6 * sum(s**4 for s in spacings))


@pytest.mark.parametrize("replications", [100, pytest.param(4000, marks=pytest.mark.slow)])
def test_theory_queue_timeouts(replications: int) -> None:
    # 500 people, 10 slots, 60 s: by the 600th second 10 + Poisson(100) were dialled. The setup's
    # millisecond makes that 99.998; the standard error is 0.16 or more. The run ends at that very
    # instant, which is worked off: a slot freed in it comes too late (T4).
    talk = {"dist": "exponential", "mean": "60s"}
    engine = {"queue_timeout": "600s", "queue_limit": "unlimited"}
    sample = []
    for path in paths(500, 10, replications, end="Mon 00:10", engine=engine, talkTime=talk):
        lost = path.at[path.kind == QUEUE_TIMEOUT]
        dialled = path.at[path.kind == DIALLED]
        assert set(lost) <= {MIDNIGHT + 600_000}
        assert len(lost) == 500 - (dialled < MIDNIGHT + 600_000).sum()
        sample.append(len(lost))
    has_mean_and_variance(sample, 390, 100, 100)  # of a Poisson all cumulants are its mean


@pytest.mark.parametrize(
    ("n", "c", "holding"),
    [
        (1, 1, 1001),
        (7, 7, 60_000),
        (8, 7, 60_000),
        (100, 1, 30_000),
        (1000, 30, 90_001),
        (5, 50, 2),
    ],
)
def test_theory_deterministic_makespan(n: int, c: int, holding: int) -> None:
    # 1 ms of setup and the rest of talk: exact, to the millisecond.
    (path,) = paths(n, c, 1, talkTime=f"{holding - 1}ms")
    assert makespan(path) == -(-n // c) * holding
    assert set(holding_times(path)) == {holding}


PEOPLE = 8_000


def attempts_and_reach(cap: int, **behaviour: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the attempts of each of many people, and the people reached; 5 minutes between
    calls.
    """
    body = {"maxAttempts": cap, **({"retryInterval": 300_000} if cap > 1 else {})}
    (path,) = paths(PEOPLE, PEOPLE, 1, body=body, **behaviour)
    attempts = np.bincount(path.recipient[path.kind == DIALLED], minlength=PEOPLE)
    reached = np.zeros(PEOPLE, dtype=bool)
    reached[path.recipient[path.kind == ENDED[CallStatus.COMPLETED]]] = True
    return attempts, reached


def has_attempts(attempts: NDArray[np.int64], still: list[float]) -> None:
    """Hold the attempts to P(at least k + 1 attempts) = still[k]."""
    mean = sum(still)
    variance = sum((2 * k + 1) * share for k, share in enumerate(still)) - mean**2
    assert abs(attempts.mean() - mean) <= 4 * sqrt(variance / PEOPLE)
    for k, share in enumerate(still):
        assert abs((attempts > k).mean() - share) <= 4 * sqrt(share * (1 - share) / PEOPLE)


def has_share(reached: NDArray[np.bool_], share: float) -> None:
    assert abs(reached.mean() - share) <= 4 * sqrt(share * (1 - share) / PEOPLE)


def test_theory_attempts() -> None:
    p, cap = 0.3, 4
    attempts, reached = attempts_and_reach(cap, outcomes={"answered": p, "noAnswer": 1 - p})
    still = [(1 - p) ** k for k in range(cap)]
    assert sum(still) == pytest.approx(2.533, abs=1e-9)
    has_attempts(attempts, still)
    has_share(reached, 0.7599)
    assert attempts.max() == cap
    assert (attempts[~reached] == cap).all()


def test_theory_beta_people() -> None:
    a, b, cap = 2.0, 4.0, 3
    attempts, reached = attempts_and_reach(
        cap,
        outcomes={"answered": 1 / 3, "noAnswer": 2 / 3},
        people={"reachable": 1.0, "concentration": a + b},
    )
    still = [1.0]
    for i in range(cap):
        still.append(still[-1] * (b + i) / (a + b + i))
    assert sum(still[:cap]) == pytest.approx(2.142857, abs=5e-7)
    assert 1 - still[cap] == pytest.approx(0.642857, abs=5e-7)
    has_attempts(attempts, still[:cap])
    has_share(reached, 1 - still[cap])


def test_theory_people_who_never_answer() -> None:
    # 60 % are reachable, each with p = 0.3 / 0.6: reach is 0.6 · (1 − 0.5³), whatever the cap adds.
    attempts, reached = attempts_and_reach(
        3, outcomes={"answered": 0.3, "noAnswer": 0.7}, people={"reachable": 0.6}
    )
    has_attempts(attempts, [1.0, 0.4 + 0.6 * 0.5, 0.4 + 0.6 * 0.25])
    has_share(reached, 0.6 * (1 - 0.5**3))


def test_theory_segments_differ_from_replication_to_replication() -> None:
    # A probability of 0.3 becomes 1 under odds times 10⁶, to 0.0003 %, and 0 under odds times 0:
    # the people reached are the people of one segment, a binomial variate.
    n, p = 200, 0.2
    sample = []
    for path in paths(
        n, n, 100,
        recipients={"segments": {"yes": p, "no": 1 - p}},
        outcomes={"answered": 0.3, "noAnswer": 0.7},
        answeredOdds={"bySegment": {"yes": 1e6, "no": 0}},
    ):  # fmt: skip
        sample.append(float((path.kind == ENDED[CallStatus.COMPLETED]).sum()))
    variance = n * p * (1 - p)
    has_mean_and_variance(sample, n * p, variance, variance * (1 - 6 * p * (1 - p)))


@pytest.mark.parametrize(
    "talk",
    [
        {"dist": "exponential", "mean": "1m"},
        {"dist": "lognormal", "mean": "1m", "sd": "5m", "max": "2h"},
        {"dist": "weibull", "mean": "1m", "sd": "10s"},
        {"dist": "empirical", "values": ["1s", "1s", "1s", "1s", "30m"]},
        {"dist": "uniform", "low": "0ms", "high": "3ms"},
    ],
    ids=lambda talk: talk["dist"],
)
@pytest.mark.parametrize(("n", "c"), [(1, 1), (3, 7), (50, 3), (200, 16)])
def test_theory_list_scheduling_bounds(talk: dict[str, Any], n: int, c: int) -> None:
    for path in paths(n, c, 10, talkTime=talk):
        held, span = holding_times(path), makespan(path)
        total, longest = int(held.sum()), int(held.max())
        assert len(held) == n
        assert c * span >= total
        assert span >= longest
        assert c * span <= total + (c - 1) * longest
