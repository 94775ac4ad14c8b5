"""Hold times: how long a line is held before each outcome, from gaps on saturated lines.

Webhooks have no instants of dials. But while recipients are due and wait, a line that falls free
is dialled on at once. Then all lines are held all the time: by conversations, which the log has,
and by setup and ringing, which it lacks. So in each block of saturated time the hold times fill
exactly the time that conversations leave. Blocks differ by chance in the outcomes of their
calls, so the mean hold time before each outcome follows by least squares, with the default's
hold times as a weak prior (Gelman et al. 2013, "Bayesian Data Analysis", chapter 14).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import durations
from dialsim.interface.instants import HOUR, MINUTE
from dialsim.logs.answering import ANSWERED, ENDS, Floats, Integers, PointEstimate
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.log_table import milliseconds
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.scenario.distribution import distribution
from dialsim.scenario.units import format_duration

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.logs.bodies import Settings
    from dialsim.logs.log import Log

FEWEST_SATURATED = 200
"""Minimum number of calls that begin in saturated time."""
_STEP = 10_000  # ms, resolution of saturated time
_LONGEST = 120_000  # ms; a call that stops ringing later than this after it was due had to wait
_WARM_UP = 2 * MINUTE
_SILENCE = 10 * MINUTE  # a pause, if no call ends for so long
_CALLS_PER_BLOCK = 25
_PRIOR_SD = 15_000.0
_OUTLIER = 7.5  # in median deviations; 5 standard deviations of a normal distribution
_ROUNDS = 12
_LEAST = 200.0  # ms, least hold time that is drawn
_TAIL, _TAIL_OFF = 0.99, 0.15
_FEWEST_IN_TAIL = 1_000  # calls in saturated time
_REPLICAS, _MOST_REPLAYED = 20, 5_000  # logs of the fitted model, and calls in each


def assumed_holds() -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the built-in hold times (ms), by outcome."""
    middles = (np.arange(200) + 0.5) / 200
    ring = BUILT_IN.ring_time
    setup = durations(BUILT_IN.setup_time, middles)
    rings = [
        durations(one, middles) for one in (ring.answered, ring.no_answer, ring.busy, ring.failed)
    ]
    means = np.array([setup.mean() + one.mean() for one in rings])
    return means, np.array([np.hypot(setup.std(), one.std()) for one in rings])


class HoldTail(NamedTuple):
    """Mean (ms) of the longest 1 % of hold times: of the log, and of logs of the fitted model."""

    observed: float
    expected: Floats

    @property
    def is_off(self) -> bool:
        """True if the log's mean is outside the range of the model's logs, and far from it."""
        ratio = self.observed / self.expected.mean() - 1.0
        inside = self.expected.min() <= self.observed <= self.expected.max()
        return bool(not inside and abs(ratio) > _TAIL_OFF)


@dataclass(frozen=True, slots=True)
class HoldTimes:
    """Mean hold times (ms) by outcome, from `saturated` ms of saturated lines.

    `covariance` belongs to the four means: a block that leaves more to one outcome leaves less to
    the others.
    """

    means: Floats
    covariance: Floats
    counts: Integers
    saturated: int
    tail: HoldTail | None = None

    def estimate(self, outcome: int) -> PointEstimate:
        """Return the mean hold time before an outcome, a code of `answering`."""
        error = float(np.sqrt(self.covariance[outcome, outcome]))
        return PointEstimate(float(self.means[outcome]), error, int(self.counts[outcome]))

    def draw(self, chance: np.random.Generator) -> HoldTimes:
        """Return hold times drawn from their posterior distribution."""
        drawn = chance.multivariate_normal(self.means, self.covariance, method="eigh")
        none = np.zeros_like(self.covariance)
        means: Floats = np.maximum(drawn, _LEAST).astype(np.float64)
        return HoldTimes(means, none, self.counts, self.saturated)

    @property
    def written(self) -> dict[str, Mapping[str, str]]:
        """Distributions for `ringTime` that include the setup, spread like the built-in ones."""
        assumed, spread = assumed_holds()
        found: dict[str, Mapping[str, str]] = {}
        for outcome, name in enumerate(ENDS):
            mean = max(float(self.means[outcome]), _LEAST)
            if outcome == ANSWERED:
                sd = mean * spread[outcome] / assumed[outcome]
                found[name] = {"dist": "lognormal", "mean": _text(mean), "sd": _text(sd)}
            else:  # uniform within ±1 s, as the built-in setup time
                low = max(mean - 1_000.0, mean / 2.0)
                found[name] = {"dist": "uniform", "low": _text(low), "high": _text(2 * mean - low)}
        return found


def _text(ms: float) -> str:
    return format_duration(max(1, round(ms)))


class _Calls(NamedTuple):
    """Calls of one organization, by the end of their ringing; instants in ms."""

    over: Integers
    ended: Integers
    outcome: Integers
    lines: Integers  # maxConcurrentCalls as the call's first webhook shows it, 0 if it does not

    def held(self, until: Integers, means: Floats) -> Floats:
        """Return the total time (ms) for which lines were held up to each instant."""
        total = np.zeros(len(until))
        # Line time up to t is the sum of max(0, t − begin) − max(0, t − end) over the calls.
        for sign, ends in ((1.0, self.over - means[self.outcome]), (-1.0, self.ended)):
            ordered = np.sort(ends.astype(np.float64))
            sums = np.concatenate([[0.0], np.cumsum(ordered - ordered[0])])
            before = np.searchsorted(ordered, until)
            total += sign * (before * (until - ordered[0]) - sums[before])
        return total

    def begun(self, until: Integers, means: Floats) -> Floats:
        """Return how many calls of each outcome begin up to each instant."""
        starts = self.over - means[self.outcome]
        return np.stack(
            [
                np.searchsorted(np.sort(starts[self.outcome == end]), until)
                for end in range(len(ENDS))
            ],
            axis=1,
        ).astype(np.float64)


class _Blocks(NamedTuple):
    """Blocks of saturated time of one organization, and the lines in each of them."""

    calls: _Calls
    begins: Integers
    ends: Integers
    lines: Integers


def hold_times(log: Log, calls: pd.DataFrame, lines: int | None = None) -> HoldTimes | None:
    """Estimate hold times; None where lines were not saturated for long enough.

    `calls` is the result of `dialled_calls`; `lines` is maxConcurrentCalls where webhooks do not
    show it.
    """
    owners = [str(one.organization) for one in log.campaigns]
    blocks = []
    for owner in sorted(set(owners)):
        own = [code for code, name in enumerate(owners) if name == owner]
        part = calls[calls["campaign"].isin(own) & calls["ended_at"].notna()]
        if len(part) >= FEWEST_SATURATED:
            blocks.append(_blocks(log, part, lines))
    blocks = [one for one in blocks if len(one.begins)]
    found = _solved(blocks)
    return found and replace(found, tail=_tail(max(blocks, key=lambda one: len(one.ends)), found))


def _blocks(log: Log, part: pd.DataFrame, lines: int | None) -> _Blocks:
    ended, started = milliseconds(part["ended_at"]), milliseconds(part["started_at"])
    outcome = part["outcome"].to_numpy(np.int64)
    over = np.where((outcome == ANSWERED) & (started != NO_INSTANT), started, ended)
    settings = part["setting"].to_numpy(np.int64)
    limits = [one.max_concurrent_calls or lines or 0 for one in log.settings] + [lines or 0]
    calls = _Calls(over, ended, outcome, np.array(limits, dtype=np.int64)[settings])
    begins, ends = _saturated(log, part, over, ended)
    length = (over.max() - over.min()) / len(over) * _CALLS_PER_BLOCK  # nights included
    # Long blocks average out the differences in outcomes that identify the means; short ones have
    # noise at their edges.
    length = min(max(length, 5.0 * MINUTE), 1.0 * HOUR)
    edges = [
        np.linspace(begin, end, max(round((end - begin) / length), 1) + 1).astype(np.int64)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        if end - begin >= length / 2
    ]
    spans = [span for one in edges for span in pairwise(one.tolist())]
    known = [(*span, lines) for span in spans if (lines := _limit(calls, *span))]
    return _Blocks(calls, *np.array(known, dtype=np.int64).reshape(-1, 3).T)


def _limit(calls: _Calls, low: int, high: int) -> int:
    """Return the number of lines in a block; 0 if it is not known or changes."""
    # A limit that changes within a block would bias the estimate.
    shown = np.unique(calls.lines[(calls.ended >= low) & (calls.ended < high)])
    return int(shown[0]) if len(shown) == 1 else 0


def _saturated(
    log: Log, part: pd.DataFrame, over: Integers, ended: Integers
) -> tuple[Integers, Integers]:
    """Return begins and ends of saturated spans, in which a recipient who was due had to wait."""
    origin = int(over.min()) - _LONGEST
    size = (int(ended.max()) - origin) // _STEP + 2
    saturated = np.zeros(size, dtype=bool)
    for code in part["campaign"].unique().tolist():
        own = (part["campaign"] == code).to_numpy()
        one = _last_setting(log, part[own])
        due = _due(part[own], one, ended[own])
        waited = over[own] - _LONGEST > due
        steps = np.zeros(size + 1, dtype=np.int64)
        np.add.at(steps, (np.maximum(due[waited] - origin, 0) // _STEP + 1).clip(0, size), 1)
        np.add.at(steps, ((over[own][waited] - _LONGEST - origin) // _STEP).clip(0, size), -1)
        waiting = np.cumsum(steps)[:-1] > 0
        saturated |= waiting & _open(one, origin, size)
    ordered = np.sort(over)
    gap = max(_SILENCE, 20 * int(np.median(np.diff(ordered))))
    for row in np.flatnonzero(np.diff(ordered) > gap).tolist():
        silent = ordered[row] - _LONGEST - origin, ordered[row + 1] - origin
        # Nothing ends for a long time: the service was paused or down, whatever was due.
        saturated[max(silent[0] // _STEP, 0) : silent[1] // _STEP + 1] = False
    changes = np.diff(np.concatenate([[0], saturated.astype(np.int8), [0]]))
    # At first lines fill up; only then all are held.
    begins = np.flatnonzero(changes == 1) * _STEP + origin + _WARM_UP
    ends = np.flatnonzero(changes == -1) * _STEP + origin
    return begins[ends > begins], ends[ends > begins]


def _last_setting(log: Log, part: pd.DataFrame) -> Settings | None:
    known = part.loc[part["setting"] >= 0, "setting"]
    return None if known.empty else log.settings[int(known.iloc[-1])]


def _due(part: pd.DataFrame, setting: Settings | None, ended: Integers) -> Integers:
    """Return the instant from which each call was due (R2); the call's end if it is not known."""
    recipient = part["recipient"].fillna(-1).to_numpy(np.int64)
    attempt = part["attempt"].fillna(0).to_numpy(np.int64)
    due = ended.copy()
    if setting is None:
        return due
    start = int(ended.min()) if setting.start_at is None else setting.start_at
    due[(attempt == 1) & (recipient >= 0)] = start
    if setting.retry_interval is not None:
        order = np.lexsort((ended, attempt, recipient))
        before, after = order[:-1], order[1:]
        follows = (recipient[before] == recipient[after]) & (attempt[after] == attempt[before] + 1)
        follows &= (recipient[after] >= 0) & (attempt[before] > 0)
        due[after[follows]] = ended[before[follows]] + setting.retry_interval
    return due


def _open(setting: Settings | None, origin: int, size: int) -> NDArray[np.bool_]:
    """Return True for time steps in which a campaign may call (T3)."""
    windows = None if setting is None else setting.calling_hours
    if windows is None:
        return np.ones(size, dtype=bool)
    found = np.zeros(size, dtype=bool)
    for begin, end in windows.open_spans(origin, origin + size * _STEP).tolist():
        found[-((origin - begin) // _STEP) : (end - origin) // _STEP] = True
    return found


def _solved(blocks: list[_Blocks]) -> HoldTimes | None:
    """Find the means under which the lines of all blocks are held all the time."""
    assumed, _ = assumed_holds()
    means: Floats = assumed.copy()
    prior = np.eye(len(ENDS)) / _PRIOR_SD**2
    covariance: Floats = np.linalg.inv(prior).astype(np.float64)
    begun = np.zeros((0, len(ENDS)))
    for _ in range(_ROUNDS if blocks else 0):
        missing = np.concatenate([*_each(blocks, means)])
        begun = np.concatenate(
            [
                one.calls.begun(one.ends, means) - one.calls.begun(one.begins, means)
                for one in blocks
            ]
        )
        typical = _typical(missing)
        missing, begun = missing[typical], begun[typical]
        # Calls move between blocks as the means change, so that the count is checked in every
        # round.
        if begun.sum() < FEWEST_SATURATED:
            return None
        variance = float((missing**2).sum()) / max(len(missing) - len(ENDS), 1) + 1.0
        # Least squares with a Gaussian prior, in closed form.
        information = begun.T @ begun / variance + prior
        # Inverted through eigenvalues: with fewer blocks than outcomes, a plain inverse has
        # negative variances
        values, vectors = np.linalg.eigh(information)
        covariance = ((vectors / values) @ vectors.T).astype(np.float64)
        moved = covariance @ (begun.T @ missing / variance - prior @ (means - assumed))
        means = np.maximum(means + moved, _LEAST).astype(np.float64)
    if not blocks:
        return None
    saturated = sum(int((one.ends - one.begins).sum()) for one in blocks)
    return HoldTimes(means, covariance, begun.sum(axis=0).astype(np.int64), saturated)


def _typical(missing: Floats) -> NDArray[np.bool_]:
    """Return True for blocks that are no outliers (Rousseeuw & Leroy 1988).

    Where calls were lost in the queue, recipients wait although no line is held for them.
    """
    off = np.abs(missing - np.median(missing))
    return off <= _OUTLIER * max(float(np.median(off)), MINUTE / 60)


def _each(blocks: list[_Blocks], means: Floats) -> Iterator[Floats]:
    """Yield the line time (ms) of each block that the calls do not account for."""
    for one in blocks:
        held = one.calls.held(one.ends, means) - one.calls.held(one.begins, means)
        yield one.lines * (one.ends - one.begins) - held


def _tail(blocks: _Blocks, found: HoldTimes) -> HoldTail | None:
    """Compare the tail of hold times with logs of the fitted model; None for too few calls.

    A posterior predictive check (Gelman et al. 2013, chapter 6): the lines get the same calls in
    the same order, with hold times of the model. Hold times are read from the log and from these
    calls in the same way.
    """
    calls, lines = blocks.calls, np.unique(blocks.lines)
    starts = calls.over - found.means[calls.outcome]
    order = np.argsort(starts, kind="stable")
    block = np.searchsorted(blocks.begins, starts[order], side="right") - 1
    typical = _typical(next(_each([blocks], found.means)))
    inside = (block >= 0) & (starts[order] < blocks.ends[block]) & typical[block]
    saturated = order[inside]
    if len(saturated) < _FEWEST_IN_TAIL or len(lines) > 1:
        return None
    quantiles = (np.arange(1000) + 0.5) / 1000
    drawn = np.stack([durations(distribution(one), quantiles) for one in found.written.values()])
    played, chance, expected = saturated[:_MOST_REPLAYED], np.random.default_rng(1), []
    outcome, talk = calls.outcome[played], (calls.ended - calls.over)[played]
    for _ in range(_REPLICAS):
        held = drawn[outcome, chance.integers(0, len(quantiles), len(played))]
        dialled = _dials(held + talk, int(lines[0]))
        again = _Calls(dialled + held, dialled + held + talk, outcome, calls.lines[played])
        expected.append(_longest(_read_holds(again, found.means, int(lines[0]))))
    observed = _longest(_read_holds(calls, found.means, int(lines[0]))[saturated])
    return HoldTail(observed, np.array(expected))


def _dials(lengths: Integers, lines: int) -> Integers:
    """Return the instant of each call's dial, if every free line dials at once."""
    free, dialled = [0] * lines, []
    heapify(free)
    for length in lengths.tolist():
        dialled.append(free[0])
        heapreplace(free, free[0] + length)
    return np.array(dialled, dtype=np.int64)


def _read_holds(calls: _Calls, means: Floats, lines: int) -> Floats:
    """Return hold times (ms) if the k-th dial takes the line that the (k − lines)-th end frees.

    Dials are in the order of their estimates, so that long hold times are blurred but not lost.
    """
    order = np.argsort(calls.over - means[calls.outcome], kind="stable")
    held = np.full(len(order), np.nan)
    held[order[lines:]] = calls.over[order[lines:]] - np.sort(calls.ended)[: len(order) - lines]
    return held


def _longest(held: Floats) -> float:
    """Return the mean of the longest 1 % of hold times."""
    ordered = np.sort(held[~np.isnan(held)])
    return float(ordered[int(len(ordered) * _TAIL) :].mean())
