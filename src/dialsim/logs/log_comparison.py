"""Compare a simulation with a real log: distance by distance, against the noise between runs.

Two runs of one model differ, too. So the model is run 2K more times, and each distance gets a noise
floor, up to which chance explains it. The scale of a distance is its largest value between any two
of the first K runs. One factor, common to all distances, is the largest ratio of any distance to
its scale between any two of the other K runs. The floor of a distance is its scale times this
factor. Floors therefore hold for all distances together.

If both logs come from the model, they and the other K runs are K + 2 exchangeable logs. Call a pair
of them extreme if its largest ratio exceeds the largest ratios of all pairs that share no log with
it. Any two extreme pairs share a log, so that at most K + 1 of the (K + 2)(K + 1)/2 pairs are
extreme. The two logs are an extreme pair if any of their distances exceeds its floor. The
probability of this is therefore at most 2/(K + 2): 4.8 % with 80 runs (K = 40). It is much smaller
where the distances have no heavy tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import inf, nan
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from dialsim.engine import calls_of, choose, prepare
from dialsim.errors import DialsimError, ReplicationFailed
from dialsim.experiments.estimates import to_json
from dialsim.experiments.pool import Workers
from dialsim.experiments.run_spec import RunSpec
from dialsim.interface.arguments import checked
from dialsim.interface.instants import format_instant, minute_text
from dialsim.interface.phrases import brief_text
from dialsim.logs.distances import (
    BEGINNING,
    METRICS,
    Metric,
    Profile,
    Values,
    events_of,
    events_of_run,
    profile,
)
from dialsim.logs.log import Log
from dialsim.results.folder import read_source
from dialsim.results.result import Result, Shown, followed
from dialsim.scenario.scenario import Scenario

FEWEST = 40
"""Fewest runs: with fewer the floors would be too low too often."""
_FIRST_REPLICATION = 1_000_000
"""First replication of the extra runs, so that no log is compared with itself."""
_SAMPLE = 1_024
"""Values kept per sample of a run: distances between runs need no more precision."""
_WORTH_WORKERS = 200_000
"""Calls that justify worker processes, whose start takes time."""
_INTERVAL = (2.5, 97.5)
_LEAST_SHIFT_MIN = 10.0
_LEAST_MOVE_H = 0.01
_LEAST_PART = {"people": 0.01, "retryInterval": 0.05, "talkTime": 0.03}
"""Relative differences below these do not explain others."""
_CAUSES = (("people", "shift", "retryInterval", "talkTime"), ("outcomes", "answeredByHour"))
"""Distances that explain others rather than follow from them, in order of precedence."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A distance between two logs, and what chance alone would give.

    `floor` is the noise: two runs of the model exceed the floor of any distance in 5 % of all
    comparisons at most (see the module). `low` to `high` is the 95 % interval of the distance
    between the real log and other runs, a parametric bootstrap of the simulated side. All are NaN
    where there is nothing to compare.
    """

    metric: Metric
    distance: float
    floor: float
    low: float
    high: float

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return name, unit, distance, floor, and the interval of other runs, as texts."""
        if np.isnan(self.distance):
            return self.metric.name, self.metric.unit, "–", "–", "–"
        numbers = (self.distance, self.floor, self.low, self.high)
        distance, floor, low, high = map(self.metric.text, numbers)
        return self.metric.name, self.metric.unit, distance, floor, f"{low} to {high}"

    @property
    def beyond_noise(self) -> bool:
        """True if the logs are further apart than chance explains."""
        return self.distance > self.floor

    @property
    def ratio(self) -> float:
        """Distance as a multiple of the floor."""
        if self.floor > 0:
            return self.distance / self.floor
        return inf if self.distance > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Side:
    """One of the logs compared: where it comes from, and the profile that distances use."""

    source: str
    profile: Profile

    @property
    def amount(self) -> str:
        """Numbers of calls and people, as text."""
        return f"{self.profile.calls:,} calls to {self.profile.people:,} people"

    @property
    def span(self) -> str:
        """First and last instant, as text."""
        found = self.profile
        return f"{minute_text(found.first)} to {minute_text(found.last)} Thai time"


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class LogComparison:
    """Distances of a simulated log from a real one.

    `noise` names the model that the floors come from, which ran `replications` times.
    `not_compared` gives the reason for missing distances. `main` is the distance that explains
    most, None if none exceeds its floor, and `sentence` states it.

    >>> log = dialsim.read_log(result.write("out/log"))
    >>> dialsim.compare_log(log, log, scenario, replications=40).beyond_noise
    ()
    """

    real: Side
    simulated: Side
    noise: str
    replications: int
    distances: tuple[Compared, ...]
    not_compared: str | None
    main: Compared | None
    sentence: str
    others: tuple[Profile, ...]
    """Profiles of the extra runs of the model, for the figures."""

    def __repr__(self) -> str:
        beyond = [f"{one.metric.name}: {' '.join(one.cells()[1:])}" for one in self.beyond_noise]
        kind = f"dialsim.LogComparison of {self.real.source} and {self.simulated.source}"
        return brief_text(kind, [self.sentence, *beyond])

    @property
    def beyond_noise(self) -> tuple[Compared, ...]:
        """Distances that chance does not explain."""
        return tuple(one for one in self.distances if one.beyond_noise)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON; missing numbers are null."""
        return {
            **{name: _side(side) for name, side in
               (("real", self.real), ("simulated", self.simulated))},
            "noise": {"from": self.noise, "replications": self.replications},
            "distances": [
                {
                    "key": one.metric.key,
                    "name": one.metric.name,
                    "unit": one.metric.unit,
                    **to_json(one, ("distance", "floor", "low", "high", "ratio")),
                    "beyondNoise": one.beyond_noise,
                }
                for one in self.distances
            ],
            "notCompared": self.not_compared,
            "mainDifference": self.main and self.main.metric.key,
            "sentence": self.sentence,
        }  # fmt: skip


def _side(side: Side) -> dict[str, Any]:
    found = side.profile
    return {
        "source": side.source,
        "calls": found.calls,
        "people": found.people,
        "first": format_instant(found.first),
        "last": format_instant(found.last),
    }


@checked(DialsimError)
def compare_log(
    real: Log,
    simulated: Log,
    scenario: Scenario | None = None,
    *,
    replications: int = 80,
    progress: Shown = None,
) -> LogComparison:
    """Compare a real log with a simulated one, distance by distance.

    `scenario` is the model that runs `replications` times to measure the noise, by default the
    scenario in the folder of the simulated or else the real log. Raises DialsimError if neither has
    one, or if a log has no calls.

    >>> real = dialsim.read_log(result.write("out/real"))
    >>> other = dialsim.read_log(dialsim.run(scenario, seed=8).write("out/other"))
    >>> dialsim.compare_log(real, other, scenario, replications=40).replications
    40
    """
    if replications < FEWEST:
        raise DialsimError(f"replications must be {FEWEST} or more, not {replications}")
    webhooks_only = not real.form == simulated.form == "run"
    sides = [_read(log, webhooks_only=webhooks_only) for log in (real, simulated)]
    model, noise = (scenario, "the scenario") if scenario else _model(real, simulated)
    others = _more_runs(model, replications, webhooks_only, progress)
    here, there = (side.profile for side in sides)
    masked = [log.source for log in (real, simulated) if log.calls["recipient"].isna().any()]
    compared = []
    for metric, floor in zip(METRICS, _floors(others).tolist(), strict=True):
        if metric.of_people and masked:
            compared.append(Compared(metric, nan, nan, nan, nan))
            continue
        apart = np.array([metric.distance(here, other) for other in others])
        apart = apart[~np.isnan(apart)]
        low, high = np.percentile(apart, _INTERVAL) if len(apart) else (nan, nan)
        distance = metric.distance(here, there)
        compared.append(Compared(metric, distance, floor, float(low), float(high)))
    alike = _same_interval(real, simulated)
    main = _main(compared, here, there, alike)
    return LogComparison(
        real=sides[0],
        simulated=sides[1],
        noise=noise,
        replications=replications,
        distances=tuple(compared),
        not_compared=f"people are masked in {' and '.join(masked)}" if masked else None,
        main=main,
        sentence="No difference beyond noise."
        if main is None
        else f"What differs most is the {main.metric.sentence(here, there)}.",
        others=tuple(others),
    )


def _read(log: Log, *, webhooks_only: bool) -> Side:
    events = events_of(log, webhooks_only=webhooks_only)
    if not len(events):
        raise DialsimError(f"{log.source}: no call in it was dialled and has ended")
    return Side(log.source, profile(events))


# -- the noise -------------------------------------------------------------------------------------


def _more_runs(model: Scenario, runs: int, webhooks_only: bool, progress: Shown) -> list[Profile]:
    """Return the profiles of extra runs of the model; runs without a call are left out."""
    calls = calls_of(model) * runs
    engine = choose("auto", calls)
    prepare(engine)
    spec, also = RunSpec(model), partial(_profile, webhooks_only=webhooks_only)
    tasks = [spec.task(k, _FIRST_REPLICATION + k, engine, frozenset(), also) for k in range(runs)]
    made: dict[int, Profile | None] = {}
    with followed(progress, "runs") as on_progress:
        for outcome in Workers(None if calls >= _WORTH_WORKERS else 1).outcomes(tasks):
            if outcome.failure is not None:
                number = tasks[outcome.index].replication
                raise ReplicationFailed(spec.seed, number, outcome.failure, spec.rerun(number))
            made[outcome.index] = outcome.also
            if on_progress is not None:
                on_progress(len(made), runs)
    found = [one for _, one in sorted(made.items()) if one is not None]
    if len(found) < FEWEST:
        raise DialsimError(f"{model.name}: most of its runs have no call that was dialled")
    return found


def _profile(result: Result, *, webhooks_only: bool) -> Profile | None:
    """Return the profile of a run, in any process."""
    events = events_of_run(result.reading, webhooks_only=webhooks_only)
    return profile(events, _SAMPLE) if len(events) else None


def _floors(runs: Sequence[Profile]) -> Values:
    """Return the noise floor of each distance; see the module docstring."""
    half = len(runs) // 2
    scale = np.maximum(_apart(runs[:half]).max(axis=0), _least(runs[:half]))
    others = _apart(runs[half:])
    # A distance that is always 0 in the first half has no scale: its floor is its largest value in
    # the second half
    ratio = np.where(scale > 0, others / np.where(scale > 0, scale, 1.0), 0.0)
    floors: Values = np.where(scale > 0, scale * ratio.max(), others.max(axis=0))
    return floors


def _apart(runs: Sequence[Profile]) -> Values:
    """Return the distances of all pairs of runs, a row per pair; 0 with nothing to compare."""
    pairs = combinations(runs, 2)
    return np.nan_to_num([[metric.distance(*pair) for metric in METRICS] for pair in pairs])


def _least(runs: Sequence[Profile]) -> Values:
    """Return the smallest scale of each distance, because some do not vary between runs."""
    least = {
        **dict.fromkeys(("absolute", "circadian", "arrivals", "relative"), _LEAST_MOVE_H),
        "shift": _LEAST_SHIFT_MIN,
        "people": _LEAST_PART["people"] * median(one.people for one in runs),
        "retryInterval": _LEAST_PART["retryInterval"]
        * median(np.nan_to_num(one.soonest) for one in runs)
        / 60_000.0,
    }
    return np.array([least.get(metric.key, 0.0) for metric in METRICS])


def _model(real: Log, simulated: Log) -> tuple[Scenario, str]:
    """Return the scenario in the folder of one of the logs, and a description of it."""
    for log in (simulated, real):
        if log.form == "run":
            # The scenario may have been removed from the folder
            with suppress(DialsimError):
                return read_source(Path(log.source)), f"the scenario in {log.source}"
    raise DialsimError(
        f"neither {simulated.source} nor {real.source} is a folder with a scenario: give "
        "the scenario that the simulation was made from, whose further runs show what is noise"
    )


# -- the main difference ---------------------------------------------------------------------------


def _same_interval(real: Log, simulated: Log) -> bool:
    """Return True if the bodies of both logs show the same retry intervals."""
    shown = [{one.retry_interval for one in log.settings} - {None} for log in (real, simulated)]
    return bool(shown[0]) and shown[0] == shown[1]


def _main(
    compared: Sequence[Compared], real: Profile, simulated: Profile, same_interval: bool
) -> Compared | None:
    """Return the difference that explains most: causes before effects, then by its ratio.

    Calls that last longer also end later and delay the retries. So the largest difference is seldom
    the cause of the others. Two causes are ruled out where something else has the same effect.
    `shift` is none if the logs begin together: fewer lines also make all calls later.
    `retryInterval` is none if both logs show the same interval: another order of calls also makes
    retries later.
    """
    beyond = [one for one in compared if one.beyond_noise]
    not_causes = {"retryInterval"} if same_interval else set()
    if 2 * abs(simulated.first - real.first) < abs(_moved(real, simulated)):
        not_causes.add("shift")
    for causes in (*_CAUSES, {one.metric.key for one in compared}):
        found = [one for one in beyond if one.metric.key in {*causes} - not_causes]
        found = [one for one in found if _explains(one, real) or causes not in _CAUSES]
        if found:
            return max(found, key=lambda one: one.ratio)
    return None


def _moved(real: Profile, simulated: Profile) -> float:
    """Return how much later (ms) the simulated log begins than the real one."""
    # Random deviations accumulate during a campaign: its beginning shows a shift best
    return float(np.median((simulated.moments - real.moments)[:BEGINNING]))


def _explains(one: Compared, real: Profile) -> bool:
    """True if a difference explains others; a small difference of talk times does not."""
    if one.metric.key != "talkTime":
        return True
    return bool(one.distance * 1000.0 > _LEAST_PART["talkTime"] * real.talks.mean())
