"""Compare a simulation with a real log: distance by distance, against the noise between runs.

Two runs of one model differ too. So the model is run 2K more times, and each distance is compared
with those between its runs: the noise floor. Floors are simultaneous. The scale of a distance is
the largest between any two runs of the first half. One common factor is the largest ratio of a
distance to its scale between any two of the K runs of the second half. A floor is scale times
factor.

If both logs come from the model, they and the K runs are K + 2 exchangeable logs. Call a pair of
them extreme if its largest ratio exceeds those of all pairs that share no log with it. Any two
extreme pairs share a log, so that at most K + 1 of the (K + 2)(K + 1)/2 pairs are extreme. The
probability that the two logs are an extreme pair, which is that any of their distances exceeds its
floor, is therefore at most 2/(K + 2): 4.8 % with 80 runs (K = 40). It is much smaller where the
distances have no heavy tails.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import inf, nan
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.engines import calls_of, choose, prepare
from dialsim.errors import DialsimError, ReplicationFailed
from dialsim.experiments.pool import Workers
from dialsim.experiments.run_spec import RunSpec
from dialsim.interface.instants import (
    DAY_NAMES,
    HOUR,
    duration_text,
    format_instant,
    hour_text,
    minute_text,
    ms_of,
)
from dialsim.logs.behaviour_text import yaml_text
from dialsim.logs.calibrate import calibrate
from dialsim.logs.distances import (
    METRICS,
    OUTCOMES,
    Histogram,
    Metric,
    Profile,
    Values,
    by_attempt,
    by_hour,
    events_of,
    events_of_run,
    gram_text,
    profile,
)
from dialsim.logs.log import Log
from dialsim.results.folder import read_source
from dialsim.results.progress import Shown, followed
from dialsim.results.result import Result
from dialsim.scenario.loading import loads
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
_BEGINNING = 10
"""Number of percentiles that make up the beginning of a log."""
_STEP = HOUR // 12
"""Shifts are reported in steps of five minutes: random variation moves calls too."""
_LEAST_PART = {"people": 0.01, "retryInterval": 0.05, "talkTime": 0.03}
"""Relative differences below these do not explain others."""
_CAUSES = (("people", "shift", "retryInterval", "talkTime"), ("outcomes", "answeredByHour"))
"""Distances that explain others rather than follow from them, in order of precedence."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A distance between two logs, and what chance alone would give.

    `floor` is the simultaneous bound of the distances between two runs of the model. `low` to
    `high` is the 95 % interval of the distance between the real log and other runs: a parametric
    bootstrap of the simulated side. All are NaN where there is nothing to compare.
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
    """Profiles of the extra runs of the first model, for the figures."""

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
                    **{key: _number(getattr(one, key))
                       for key in ("distance", "floor", "low", "high", "ratio")},
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


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def compare_log(
    real: Log,
    simulated: Log,
    scenario: Scenario | None = None,
    *,
    replications: int = 80,
    progress: Shown = None,
) -> LogComparison:
    """Compare a real log with a simulated one, distance by distance.

    `scenario` is the model that runs `replications` times to measure the noise. Without it that is
    the scenario in the folder of the simulated or else the real log; if neither has one, models are
    calibrated on each of the two logs. Raises DialsimError if a log has no calls, or if calibration
    is impossible.

    >>> real = dialsim.read_log(result.write("out/real"))
    >>> other = dialsim.read_log(dialsim.run(scenario, seed=8).write("out/other"))
    >>> dialsim.compare_log(real, other, scenario, replications=40).replications
    40
    """
    if replications < FEWEST:
        raise DialsimError(f"replications must be {FEWEST} or more, not {replications}")
    webhooks_only = not real.form == simulated.form == "run"
    sides = [_read(log, webhooks_only=webhooks_only) for log in (real, simulated)]
    models, noise = ([scenario], "the scenario") if scenario else _models(real, simulated)
    runs = [_more_runs(model, replications, webhooks_only, progress) for model in models]
    others = runs[0]
    here, there = (side.profile for side in sides)
    masked = [log.source for log in (real, simulated) if log.calls["recipient"].isna().any()]
    floors = np.max([_floors(part) for part in runs], axis=0)
    compared = []
    for metric, floor in zip(METRICS, floors.tolist(), strict=True):
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
        sentence=_sentence(main, here, there),
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
    with followed(progress, "Simulating", "runs") as tell:
        for outcome in Workers(None if calls >= _WORTH_WORKERS else 1).outcomes(tasks):
            if outcome.failure is not None:
                number = tasks[outcome.index].replication
                raise ReplicationFailed(spec.seed, number, outcome.failure, spec.rerun(number))
            made[outcome.index] = outcome.also
            if tell is not None:
                tell(len(made), runs)
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
    # A distance that is always 0 in the first half has no scale: its floor is its own maximum
    ratio = np.where(scale > 0, others / np.where(scale > 0, scale, 1.0), 0.0)
    floors: Values = np.where(scale > 0, scale * ratio.max(), others.max(axis=0))
    return floors


def _apart(runs: Sequence[Profile]) -> Values:
    """Return the distances of all pairs of runs, a row each; 0 where there is nothing to
    compare.
    """
    pairs = combinations(runs, 2)
    return np.nan_to_num([[metric.distance(*pair) for metric in METRICS] for pair in pairs])


def _least(runs: Sequence[Profile]) -> Values:
    """Return the least scale of each distance: some need not vary at all between runs."""
    least = {
        **dict.fromkeys(("absolute", "circadian", "arrivals", "relative"), _LEAST_MOVE_H),
        "shift": _LEAST_SHIFT_MIN,
        "people": _LEAST_PART["people"] * median(one.people for one in runs),
        "retryInterval": _LEAST_PART["retryInterval"]
        * median(np.nan_to_num(one.soonest) for one in runs)
        / 60_000.0,
    }
    return np.array([least.get(metric.key, 0.0) for metric in METRICS])


def _models(real: Log, simulated: Log) -> tuple[list[Scenario], str]:
    """Return the models whose runs measure the noise, and a description of them.

    A model calibrated on one log inherits the chance of that log: if its lines were always busy,
    say, it contains little on gaps while lines are free. So both logs are used, and the higher
    floor counts.
    """
    for log in (simulated, real):
        if log.form == "run":
            try:
                return [read_source(Path(log.source))], f"the scenario in {log.source}"
            except DialsimError:
                # The scenario was removed from the folder, which is then as good as its webhooks
                continue
    models = []
    for log in (simulated, real):
        try:
            models.append(_learned(log))
        except DialsimError as error:
            raise DialsimError(
                f"what is noise can't be learned from {log.source} ({error}): "
                "give the scenario that the simulation was made from (--scenario)"
            ) from None
    return models, f"the scenarios learned from {simulated.source} and from {real.source}"


def _learned(log: Log) -> Scenario:
    """Return a scenario of the campaigns in a log: settings from bodies, behaviours calibrated."""
    if log.calls["recipient"].isna().any():
        raise DialsimError("people are masked")
    lines = Counter(
        one.max_concurrent_calls for one in log.settings if one.max_concurrent_calls is not None
    )
    if not lines:
        raise DialsimError("no body shows maxConcurrentCalls")
    behaviours = yaml_text(calibrate(log))
    campaigns, starts = [], []
    for code, calls in log.calls.groupby("campaign"):
        setting = log.settings[int(calls["setting"].mode()[0])]
        start = ms_of(calls["ended_at"].min()) if setting.start_at is None else setting.start_at
        attempts = setting.max_attempts or int(calls["attempt"].max())
        starts.append(start)
        campaigns.append(
            {
                "name": f"Campaign {code}",
                "agent": "Agent",
                "recipients": {"count": int(calls["recipient"].nunique())},
                "schedule": replace(setting, start_at=start, max_attempts=attempts).request(),
            }
        )
    organization = {
        "name": "Learned",
        "maxConcurrentCalls": lines.most_common(1)[0][0],
        "agents": [{"name": "Agent"}],
        "campaigns": campaigns,
    }
    text = f"""\
version: 1
name: Learned
clock: {{start: {format_instant(min(starts))}}}
organizations: {json.dumps([organization])}
{behaviours}"""
    return loads(text, name=f"the scenario learned from {log.source}")


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
    the cause of the others. A cause counts only if the logs differ in it: fewer lines also make all
    calls later, and an other order of calls makes retries later.
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
    """Return the time (ms) from the beginning of the real log to the simulated log's."""
    # Random deviations accumulate during a campaign: its beginning shows a shift best
    return float(np.median((simulated.moments - real.moments)[:_BEGINNING]))


def _explains(one: Compared, real: Profile) -> bool:
    """True if a difference is large enough to explain others; small ones of talk times are not."""
    if one.metric.key != "talkTime":
        return True
    return bool(one.distance * 1000.0 > _LEAST_PART["talkTime"] * real.talks.mean())


def _sentence(main: Compared | None, real: Profile, simulated: Profile) -> str:
    if main is None:
        return "No difference beyond noise."
    said = _said(main.metric.key, real, simulated)
    return f"What differs most is the {main.metric.name}: {said}."


def _said(key: str, real: Profile, simulated: Profile) -> str:  # noqa: PLR0911 (a case each)
    """Return a difference in words."""
    match key:
        case "people" | "calls":
            here, there = getattr(real, key), getattr(simulated, key)
            return f"{there:,} in SIMULATED, {here:,} in REAL"
        case "shift":
            moved = _moved(real, simulated)
            nearest = round(moved / _STEP) * _STEP if abs(moved) > HOUR else moved
            return f"those of SIMULATED are about {_moved_text(nearest)}"
        case "retryInterval":
            here, there = (_minutes(side.soonest) for side in (real, simulated))
            return f"SIMULATED calls people again after {there} at the soonest, REAL after {here}"
        case "outcomes":
            attempt, outcome = _largest(by_attempt(real, simulated))
            here, there = (
                _share(side.attempts[attempt, outcome], side.attempts[attempt].sum())
                for side in (real, simulated)
            )
            what = f"attempts number {attempt + 1} end with {OUTCOMES[outcome]}"
            return f"{there} of {what} in SIMULATED, {here} in REAL"
        case "answeredByHour":
            (hour,) = _largest(by_hour(real, simulated))
            here, there = (
                _share(side.answering[1, hour], side.answering[0, hour])
                for side in (real, simulated)
            )
            return f"from {hour_text(hour)}, {there} of calls in SIMULATED, {here} in REAL"
        case "circadian":
            day, hour = _largest(
                real.week / real.week.sum() - simulated.week / simulated.week.sum()
            )
            here, there = (
                _share(side.week[day, hour], side.week.sum()) for side in (real, simulated)
            )
            return (
                f"{there} on {DAY_NAMES[day]}s from {hour_text(hour)} in SIMULATED, {here} in REAL"
            )
        case "nGram":
            (code,) = _largest(real.grams - simulated.grams)
            here, there = real.grams[code], simulated.grams[code]
            return f"{gram_text(code)}: {there:,} times in SIMULATED, {here:,} times in REAL"
        case "absolute" | "arrivals":
            name = "hours" if key == "absolute" else key
            here, there = (_mean(getattr(side, name)) for side in (real, simulated))
            return f"SIMULATED is {_moved_text((there - here) * HOUR)} on average"
        case "finish":
            here, there = (duration_text(side.last - side.first) for side in (real, simulated))
            return f"{there} in SIMULATED, {here} in REAL"
        case "talkTime":
            return _talks_text(real.talks.mean(), simulated.talks.mean())
        case _:
            here, there = (_mean_time(key, side) for side in (real, simulated))
            return f"{there} on average in SIMULATED, {here} in REAL"


def _talks_text(real: float, simulated: float) -> str:
    longer = simulated / real - 1.0 if real > 0 else inf
    here, there = duration_text(round(real, -2)), duration_text(round(simulated, -2))
    if abs(longer) < _LEAST_PART["talkTime"]:
        return f"{there} on average in SIMULATED, {here} in REAL, but spread in another way"
    how = "longer" if longer > 0 else "shorter"
    by = f"{abs(longer):.0%}".replace("%", " %")
    return f"SIMULATED talks {by} {how}, {there} on average and {here} in REAL"


def _mean_time(key: str, side: Profile) -> str:
    if key == "relative":
        return duration_text(round(_mean(side.relative) * HOUR, -3))
    values = {"interArrivals": side.between, "gaps": side.gaps, "cycleTime": side.cycles}[key]
    return duration_text(round(float(values.mean()), -2))


def _mean(histogram: Histogram) -> float:
    return float(np.average(histogram[0], weights=histogram[1]))


def _largest(values: NDArray[Any]) -> tuple[int, ...]:
    """Return the index of the value furthest from 0."""
    return tuple(map(int, np.unravel_index(np.abs(values).argmax(), values.shape)))


def _moved_text(ms: float) -> str:
    return f"{_minutes(abs(ms))} {'later' if ms > 0 else 'earlier'}"


def _minutes(ms: float) -> str:
    """Return a duration, to the second below an hour and to the minute above."""
    return duration_text(round(ms, -3) if ms < HOUR else round(ms / 60_000) * 60_000)


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}".replace("%", " %")
