"""Estimation of engine settings ("Ours" in the rule book) from a log.

Settings are tried on the recorded calls. A folder of a run contains the instants of all dials, so
that a call either agrees or not. Bodies of the webhook do not: there the likelihood of a dial is
that of the time that it leaves for setup and ringing, among these times of all calls. If calls
differ under all settings near the scenario's, others are searched on the beginning of the log first
and then on more of it: under wrong settings the model soon departs from the log, and everything
later is uninformative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from dialsim.engine import Engine, choose
from dialsim.engine.rules import ENDINGS, dial_gap
from dialsim.interface.instants import format_instant, short_text
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.recorded_calls import NO_ENDING, CallTimes, Integers, RecordedCalls
from dialsim.logs.replay import dials, expected_hold_range, pairs
from dialsim.scenario.service import LONGEST_RELEASE_INTERVAL, EngineSettings, Sharing
from dialsim.scenario.units import format_duration

SEARCHED = 20_000
"""Number of calls at the beginning of a log on which settings are searched."""
_RUNS, _RUNS_OF_BODIES = 400, 6_000
"""Approximate numbers of runs in a search, of folders and of bodies, to choose the engine."""
_CLOSE = 10.0
"""Difference of log likelihoods below which settings from bodies are indistinguishable; the
histograms of times are themselves estimates.
"""
_UNLIKELY = -20.0
_BIN_MS, _LONGEST_HOLD = 500, 1_000_000
"""Width and range of the histogram of setup plus ring times, in ms."""
_FITTING = 0.9
"""Share of agreeing calls below which settings are uninformative."""
_LONGEST_TIMEOUT = 86_400_000
_LONGEST_GAP = 10_000_000
_ORDERS = ("due", "freshFirst", "retriesFirst")
_SHARINGS: tuple[Sharing, ...] = get_args(Sharing)
_TIMEOUTS = (10_000, 20_000, 30_000, 45_000, 60_000, 90_000, 120_000, 180_000, 300_000, 600_000,
             900_000, 1_200_000, 1_800_000, 3_600_000, _LONGEST_TIMEOUT)  # fmt: skip
_INTERVALS = (*range(1_000, 240_000, 1_000), *range(240_000, 600_000, 5_000),
              *range(600_000, LONGEST_RELEASE_INTERVAL + 1, 60_000))  # fmt: skip
_SHARP = 20
"""A value is determined if no value fits that differs by more than a twentieth of it."""
_COARSE_INTERVALS = tuple(1_000 * s for s in (
    1, 2, 3, 5, 7, *range(10, 65, 5), 75, 90, 105, 120, 150, 180, 240, 300, 420, 600, 1_200, 3_600
))  # fmt: skip
_MOST_INTERVALS, _MOST_TIMEOUTS = 60, 20
_SHORTEST_GRID = 1_000
"""Shortest interval (ms) considered as a release interval."""
_FEW_INTERVALS = tuple(1_000 * s for s in (1, 2, 5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 3_600))
_GAPS = (20, 50, 100, 200, 250, 334, 400, 500, 667, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500,
         10_000, 20_000)  # fmt: skip
_BEGINNINGS = (160, 640, 2_560, 10_240)
"""Numbers of calls in the successive beginnings of a log of bodies."""
_STARTS, _VARIED, _KEPT = 3, 8, 4
"""Numbers of candidates: kept from the first trials, varied in a beginning, and kept for the
next one.
"""
_LIMITS = (*range(1, 13), 15, 20, 30, 50, 100)
_LIMITS_WITH_LOSSES = (*range(1, 41), 50, 100)


@dataclass(frozen=True, slots=True)
class SettingEstimate:
    """Estimate of one setting in the notation of scenario files, and equivalent values.

    `others` are values and ranges (`90s to 24h`) that fit equally well, each tried with the best
    values of the other settings. Without such values the log determines the setting: exactly, or
    within the narrow range `between`. A setting is `doubtful` if no settings fit, or the number of
    lines changes. None stands for an omitted setting.
    """

    name: str
    value: str | None
    others: tuple[str, ...]
    doubtful: bool = False
    between: str | None = None

    @property
    def determined(self) -> bool:
        """True if the log determines this setting."""
        return not self.others and not self.doubtful


@dataclass(frozen=True, slots=True)
class EngineEstimate:
    """Best-fitting settings: under them `agree` of `calls` are made as recorded.

    `runs` settings were tried. `changes` are changes of lines that the scenario does not have.
    """

    engine: EngineSettings
    estimates: tuple[SettingEstimate, ...]
    calls: int
    agree: int
    runs: int
    changes: tuple[LineChange, ...] = ()

    @property
    def fits(self) -> bool:
        """True if such an engine can have made the log."""
        return not any(one.doubtful for one in self.estimates)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "calls": self.calls,
            "agree": self.agree,
            "fits": self.fits,
            "runs": self.runs,
            "lineChanges": [{**asdict(one), "at": format_instant(one.at)} for one in self.changes],
            "settings": [asdict(one) | {"determined": one.determined} for one in self.estimates],
        }


class _Choice(NamedTuple):
    """Settings as the search varies them: durations in ms, `gap` between dials (0: no limit)."""

    order: str
    sharing: str
    queue_timeout: int
    release_interval: int
    gap: int
    queue_limit: int | str | None

    @classmethod
    def of(cls, engine: EngineSettings) -> _Choice:
        return cls(
            engine.order, engine.sharing, engine.queue_timeout, engine.release_interval,
            dial_gap(engine.calls_per_second), engine.queue_limit,
        )  # fmt: skip

    def but(self, **values: Any) -> _Choice:
        return self._replace(**values)


_NAMES = {
    "order": "order",
    "sharing": "sharing",
    "queue_timeout": "queueTimeout",
    "queue_limit": "queueLimit",
    "release_interval": "releaseInterval",
    "gap": "callsPerSecond",
}

_NUMBERS = ("queue_timeout", "queue_limit", "release_interval", "gap")
_QUEUE_FIRST = ("queue_limit", "release_interval", "gap", "queue_timeout")
_SPANS = ("queue_timeout", "release_interval")
_LEFT_OUT = {"queueLimit": "that of the lines", "callsPerSecond": "no limit"}
_SHOWN = 6
"""Number of equivalent values that are printed; JSON has all."""

Progress = Callable[[int, int], None]
"""Callback with the number of runs made, and the estimated number of all runs."""


def estimate(record: RecordedCalls, progress: Progress | None = None) -> EngineEstimate:
    """Find the engine settings that fit a record best."""
    search = _Search(record, progress)
    best = search.best()
    engine = search.settings(best)
    calls, agree = _agreement(record, engine, choose("auto", len(record.calls)))
    changes = tuple(line_changes(record))
    estimates = tuple(
        SettingEstimate(
            name=wire,
            value=search.text(name, getattr(best, name)),
            others=tuple(search.ties(name, best)),
            doubtful=agree < _FITTING * calls or bool(changes),
            between=search.between.get(name),
        )
        for name, wire in _NAMES.items()
    )
    return EngineEstimate(engine, estimates, calls, agree, search.runs, changes)


def _doubts(found: EngineEstimate) -> Iterator[str]:
    """Yield the reasons why the settings are doubtful."""
    yield from map(str, found.changes)
    if not found.fits and not found.changes:
        yield (
            f"None of the {found.runs:,} settings tried fits. The engine may have others, or lines "
            "or pauses that the scenario lacks; or calls are missing in the log."
        )


def estimate_lines(found: EngineEstimate) -> Iterator[str]:
    """Yield the settings as text, a line each."""
    yield (
        f"Settings of the engine that fit best: {found.agree:,} of {found.calls:,} calls agree "
        f"({found.runs:,} runs)."
    )
    yield from _doubts(found)
    for one in found.estimates:
        value = _LEFT_OUT[one.name] if one.value is None else one.value
        yield f"  {one.name:<16} {value:<16} {note_on(one)}"


def note_on(one: SettingEstimate) -> str:
    """Describe the certainty of an estimate."""
    if one.determined:
        return "determined" + (f": {one.between}" if one.between else "")
    if one.doubtful:
        return "doubtful"
    shown = [*one.others[:_SHOWN], *(["…"] if len(one.others) > _SHOWN else [])]
    return f"not determined by the log; fits as well: {', '.join(shown)}"


def engine_yaml(found: EngineEstimate, source: str) -> str:
    """Return the settings as the block `engine:` of a scenario file."""
    lines = [
        f"# Estimated by `dialsim replay` from {source}: {found.agree:,} of {found.calls:,} calls",
        "# agree. A value that the log does not determine is followed by others that fit as well.",
    ]
    lines += [f"# {doubt}" for doubt in _doubts(found)]
    lines.append("engine:")
    for one in found.estimates:
        note = note_on(one)
        if one.value is None:
            lines.append(f"  # {one.name} is left out: {note}")
        else:
            lines.append(f"  {one.name}: {one.value}  # {note}")
    if found.engine.webhook_delay:
        lines.append(f"  webhookDelay: {format_duration(found.engine.webhook_delay)}")
    return "\n".join(lines) + "\n"


class _Search:
    """Search for the settings with the least misfit; the model runs once under each."""

    def __init__(
        self, record: RecordedCalls, progress: Progress | None, earlier_runs: int = 0
    ) -> None:
        self._whole = record
        self._record = _beginning(record, SEARCHED)
        self._progress = progress
        self._earlier_runs = earlier_runs
        self._expected_runs = _RUNS if record.has_dials else _RUNS_OF_BODIES
        self._which = choose("auto", self._expected_runs * len(self._record.calls))
        # The search returns to the same settings often, and a run takes most of the time.
        self._known: dict[_Choice, float] = {}
        self.between: dict[str, str] = {}  # narrow ranges of values that the log determines
        self._own = _Choice.of(record.scenario.engine)
        self._close = 0.0 if record.has_dials else _CLOSE
        self._counts_lines = any(block.share.counts_lines for block in record.blocks)
        # Sharing has an effect only between campaigns of one organization.
        owners_of_campaigns = [b.organization for b in record.blocks if b.schedule is not None]
        self._shares = len({*owners_of_campaigns}) < len(owners_of_campaigns)
        self._most = {
            "queue_timeout": _LONGEST_TIMEOUT,
            "release_interval": LONGEST_RELEASE_INTERVAL,
            "queue_limit": max(1, sum(block.people.count for block in record.blocks)),
            "gap": _LONGEST_GAP,
        }
        owners = record.scenario.organizations
        self._lines = set().union(*(one.limits for one in owners))

    @property
    def runs(self) -> int:
        return self._earlier_runs + len(self._known)

    def settings(self, choice: _Choice) -> EngineSettings:
        """Return the engine settings of a scenario for a choice."""
        return self._whole.scenario.engine.model_copy(
            update={name: getattr(choice, name) for name in _NAMES if name != "gap"}
            | {"calls_per_second": _per_second(choice.gap)}
        )

    # -- how well it fits -------------------------------------------------------------------------

    def misfit(self, choice: _Choice) -> float:
        """Return the misfit of settings: the number of differing calls, or the negative log
        likelihood.
        """
        if choice not in self._known:
            model = self._record.played(self.settings(choice), self._which)
            count = self._differing if self._record.has_dials else self._unlikelihood
            self._known[choice] = count(model)
            if self._progress is not None:
                self._progress(self.runs, max(self._expected_runs, self.runs))
        return self._known[choice]

    def _differing(self, model: CallTimes) -> float:
        return float((pairs(self._record, model).at != NO_INSTANT).sum())

    def _unlikelihood(self, model: CallTimes) -> float:
        """Return the negative log likelihood of the times left for setup and ringing."""
        record = self._record
        found = pairs(record, model)
        both = (found.record >= 0) & (found.model >= 0)
        own, theirs = found.record[both], found.model[both]
        held = record.calls.over[own] - model.dialled[theirs]
        ending = record.calls.ending[own]
        dialled = (ending != NO_ENDING) & (model.dialled[theirs] != NO_INSTANT)
        dialled &= (record.calls.over[own] != NO_INSTANT) & (held > 0)
        fits = _log_density_of_hold_times(held[dialled], ending[dialled])
        lost = (record.calls.lost[own] != NO_INSTANT) & (model.lost[theirs] != NO_INSTANT)
        late = model.lost[theirs][lost] - record.calls.lost[own][lost]
        losses = _log_density_of_losses(late)
        rest = int((found.record >= 0).sum()) - len(fits) - len(losses)
        # Losses that the log does not have count against the settings too; else the shortest
        # timeout would fit best.
        extra = int(found.wrong["lost"][found.record < 0].sum())
        # A call without a plausible hold time has a small constant likelihood, so that a few odd
        # calls don't decide.
        return -float(fits.sum() + losses.sum() + _UNLIKELY * (rest + extra))

    # -- the search -------------------------------------------------------------------------------

    def best(self) -> _Choice:
        """Return the best-fitting settings; among equals, those closest to the scenario's."""
        starts = [self._own, _Choice.of(EngineSettings()), self._guess()]
        # Queue length and waiting time are correlated, so they are tried in pairs.
        if not self._record.has_dials:
            spans = dict.fromkeys([*self._read("queue_timeout"), self._own.queue_timeout])
            pairs_of_both = [
                self._own.but(queue_timeout=span, queue_limit=limit)
                for span, limit in product(spans, (None, "unlimited", *_LIMITS[1::4]))
            ]
            starts += sorted(pairs_of_both, key=self._rank)[:_STARTS]
        best = self._settled(starts)
        if not self._record.has_dials:
            calls, agree = _agreement(self._record, self.settings(best), self._which)
            # Only if something still differs: the search in beginnings takes many runs.
            if agree < calls:
                best = self._better(best, [self._settled(self._of_beginnings(self._own))])
                calls, agree = _agreement(self._record, self.settings(best), self._which)
            # With the wrong order no settings may fit the beginnings, so other orders are tried,
            # too
            for order in _ORDERS if agree < _FITTING * calls else ():
                if order != self._own.order:
                    wider = self._of_beginnings(self._own.but(order=order))
                    best = self._better(best, [self._settled(wider)])
        return self._plain(best)

    def _settled(self, starts: Sequence[_Choice]) -> _Choice:
        """Return the best of some settings, varied as long as that helps."""
        best = min((self._best_way(one) for one in starts), key=self._rank)
        while True:
            before = best
            best = self._best_way(self._varied(best, _NUMBERS, _INTERVALS, 1))
            # Sums of logarithms differ in their last digits.
            if self.misfit(best) >= self.misfit(before) - 1e-9:
                return best

    def _of_beginnings(self, own: _Choice) -> list[_Choice]:
        """Return settings that fit the first calls of a log, narrowed by longer beginnings."""
        spans, intervals = self._read("queue_timeout"), self._read("release_interval")
        limits = _LIMITS_WITH_LOSSES if intervals else _LIMITS
        ways_to_wait = [{"queue_timeout": span} for span in dict.fromkeys([*spans, *_TIMEOUTS])]
        # A slightly wrong interval soon releases at other instants, so all intervals are tried.
        ways_to_wait += [
            {"release_interval": interval, "queue_timeout": span}
            for interval in intervals
            for span in _congruent(self._record.longest_wait, interval)
        ] or [{"release_interval": interval} for interval in _INTERVALS]
        found = [
            own.but(queue_limit=limit, **way)
            for way, limit in product(ways_to_wait, (None, "unlimited", *limits))
        ]
        longer = [count for count in _BEGINNINGS[1:] if count < len(self._record.calls)]
        for count in (_BEGINNINGS[0], *longer):
            part = _Search(_beginning(self._record, count), self._progress, self.runs)
            found = part._best_of(found)
            self._earlier_runs = part.runs - len(self._known)
        return found

    def _best_of(self, starts: Sequence[_Choice]) -> list[_Choice]:
        """Return the best few variations of some settings."""
        found = [self._best_way(one) for one in self._unlike(starts, _VARIED)]
        for _ in range(2):
            found += [
                self._best_way(self._varied(one, _QUEUE_FIRST, _COARSE_INTERVALS, 1_000))
                for one in self._unlike(found, _VARIED)
            ]
        return self._unlike(found, _KEPT)

    def _unlike(self, choices: Iterable[_Choice], count: int) -> list[_Choice]:
        """Return the best few settings; of those with equal misfit only one."""
        ranked = sorted(choices, key=self._rank, reverse=True)
        # Reversed order: the best-ranked of equal misfits is written last and stays.
        unlike = {self.misfit(one): one for one in ranked}
        return [unlike[misfit] for misfit in sorted(unlike)[:count]]

    def _varied(
        self, best: _Choice, names: Sequence[str], intervals: Sequence[int], tick: int
    ) -> _Choice:
        """Vary one setting after the other, keeping the best; spans are refined to a tick (ms)."""
        for name in names:
            values = self._values(name, intervals)
            best = self._better(best, [best.but(**{name: value}) for value in values])
            best = self._refined(name, best, tick if name in _SPANS else 1)
        return best

    def _best_way(self, choice: _Choice) -> _Choice:
        """Return the settings with the best order and sharing."""
        ways = product(_ORDERS, _SHARINGS if self._shares else (choice.sharing,))
        return self._better(choice, [choice.but(order=o, sharing=s) for o, s in ways])

    def _rank(self, choice: _Choice) -> tuple[float, int]:
        """Sort key: less misfit, then more of the scenario's own settings."""
        same = sum(getattr(choice, name) == getattr(self._own, name) for name in _NAMES)
        return self.misfit(choice), -same

    def _better(self, best: _Choice, others: Sequence[_Choice]) -> _Choice:
        return min([best, *others], key=self._rank)

    def _refined(self, name: str, best: _Choice, tick: int) -> _Choice:
        """Refine a value by ever smaller steps, as long as that helps."""
        # A step of 0.0 stands for single ticks.
        for step in (0.2, 0.05, 0.01, 0.002, 0.0):
            while True:
                value = getattr(best, name)
                if not isinstance(value, int) or value < 1:
                    return best
                by = tick * max(1, round(value * step / tick))
                near = [one for one in (value - by, value + by) if self._allowed(name, one)]
                better = self._better(best, [best.but(**{name: one}) for one in near])
                if self.misfit(better) >= self.misfit(best) - 1e-9:
                    break
                best = better
        return best

    def _plain(self, best: _Choice) -> _Choice:
        """Return the plainest of the choices that fit as well as `best`.

        Setting by setting the scenario's own value is preferred, then the default, then whole
        seconds.
        """
        plain = best
        for source in (self._own, _Choice.of(EngineSettings())):
            for name in _NAMES:
                plainer = plain.but(**{name: getattr(source, name)})
                is_own = getattr(plain, name) == getattr(self._own, name)
                if (source is self._own or not is_own) and self._fits(plainer, best):
                    plain = plainer
        for name in _SPANS:
            whole = round(getattr(plain, name) / 1_000) * 1_000
            rounder = plain.but(**{name: whole})
            if whole and self._fits(rounder, best):
                plain = rounder
        if isinstance(plain.queue_limit, int) and plain.queue_limit != self._own.queue_limit:
            endless = plain.but(queue_limit="unlimited")
            if self._fits(endless, best):
                plain = endless
        return plain

    def _fits(self, choice: _Choice, best: _Choice) -> bool:
        """True if `choice` fits as well as `best`."""
        return self.misfit(choice) <= self.misfit(best) + self._close

    # -- what the log suggests --------------------------------------------------------------------

    def _guess(self) -> _Choice:
        """Return a start of the search: what the log shows without a run of the model."""
        guess = self._own
        for name in _NUMBERS:
            read = self._read(name)
            if read:
                guess = guess.but(**{name: read[0]})
        return guess

    def _read(self, name: str) -> list[int]:
        """Return candidate values that the recorded instants show, the likeliest first."""
        record = self._record
        if name == "queue_timeout":
            return _timeouts(record)
        if name == "release_interval":
            return [0] if self._counts_lines else _divisors(record.release_grid)
        if not record.has_dials:
            return []
        organizations = range(len(record.scenario.organizations))
        if name == "queue_limit":
            longest = max(map(record.longest_queue, organizations))
            return [longest] if longest else []
        gaps = []
        for organization in organizations:
            dialled = record.calls_of(organization).dialled
            dialled = np.sort(dialled[dialled != NO_INSTANT])
            gaps.append(int(np.diff(dialled).min(initial=_LONGEST_TIMEOUT)))
        return [min(gaps)] if min(gaps) < _LONGEST_TIMEOUT else []

    def _values(self, name: str, intervals: Sequence[int]) -> list[Any]:
        """Return the candidate values of a setting; `intervals` if the log shows no releases."""
        read: list[Any] = [*self._read(name)]
        known = self._record.has_dials
        if name == "queue_timeout":
            return [*read, *(() if known and read else _TIMEOUTS)]
        if name == "queue_limit":
            return [None, "unlimited", *read, *(() if known else _LIMITS)]
        if name == "release_interval":
            if self._counts_lines:
                return [0]
            return [0, *read, *(() if known else intervals)]
        return [0, *read, *(() if known else _GAPS)]

    def _allowed(self, name: str, value: int) -> bool:
        return 1 <= value <= self._most[name]

    # -- undetermined settings --------------------------------------------------------------------

    def ties(self, name: str, best: _Choice) -> Iterator[str]:
        """Yield the other values of a setting that fit as well, as texts."""
        value = getattr(best, name)
        if name in {"order", "sharing"}:
            yield from self._tied_ways(name, best)
            return
        if name == "release_interval":
            yield from self._tied_intervals(best)
            return
        special: dict[str, int | None] = {"queue_limit": None, "gap": 0}
        if name in special and value != special[name]:
            left_out = best.but(**{name: special[name]})
            says_the_same = name == "queue_limit" and {value} == self._lines
            if not says_the_same and self._fits(left_out, best):
                yield _LEFT_OUT[_NAMES[name]]
        yield from self._tied_range(name, best)

    def _tied_intervals(self, best: _Choice) -> Iterator[str]:
        """Yield other release intervals that fit as well, with any queue limit.

        From bodies alone the interval and the limit may not be identifiable separately. Adjacent
        candidates that fit are joined to a range: `1s to 10s`.
        """
        tried = {0} if self._counts_lines else {0, *self._read("release_interval"), *_FEW_INTERVALS}
        limits = dict.fromkeys(
            (best.queue_limit, *(() if self._record.has_dials else (None, *_LIMITS)))
        )
        value, together = best.release_interval, list[int]()
        for interval in sorted(tried | {value}):
            others = (best.but(release_interval=interval, queue_limit=one) for one in limits)
            if interval == value or any(self._fits(one, best) for one in others):
                together.append(interval)
                continue
            yield from _ends_of(together, value)
            together.clear()
        yield from _ends_of(together, value)
        if value and not self._record.has_dials:
            low, high = (self._limit("release_interval", best, value, far)
                         for far in (1, 2 * value))  # fmt: skip
            if low < high:
                self.between["release_interval"] = _span_text(low, high)

    def _tied_ways(self, name: str, best: _Choice) -> Iterator[str]:
        """Yield other orders (or sharings) that fit as well with at least one sharing (or
        order).
        """
        ways = {"order": _ORDERS, "sharing": _SHARINGS}
        (other,) = {*ways} - {name}
        for way in ways[name]:
            if way == getattr(best, name):
                continue
            with_it = [best.but(**{name: way, other: one}) for one in ways[other]]
            if any(self._fits(one, best) for one in with_it):
                yield way

    def _tied_range(self, name: str, best: _Choice) -> Iterator[str]:
        """Yield the range around the best value within which the fit does not change, by
        bisection.
        """
        written = getattr(best, name)
        value: Any = written
        if not isinstance(value, int) or value < 1:
            # Left out, none or unlimited: bisection starts from the number with the same effect
            value = {"gap": 1, "queue_limit": self._most["queue_limit"]}[name]
            if written is None:
                value = min(self._lines)
            if value < 1 or not self._fits(best.but(**{name: value}), best):
                return
        low, high = (self._limit(name, best, value, far) for far in (1, self._most[name]))
        if written is None and low == high and {value} == self._lines:
            # The number has the same effect as leaving the setting out
            return
        tick, part = (0, 0) if name == "queue_limit" else (1, value // _SHARP)
        if written == value and max(value - low, high - value) <= max(tick, part):
            if low < high:
                ends = (high, low) if name == "gap" else (low, high)
                self.between[name] = " to ".join(str(self.text(name, end)) for end in ends)
            return
        if name == "gap":
            few, many = self.text(name, high), self.text(name, low)
            yield f"{few} or more" if low == 1 else f"{few} to {many}"
        elif high == self._most[name]:
            yield f"{self.text(name, low)} or more"
        elif low == high:
            yield self.text(name, low) or _LEFT_OUT[_NAMES[name]]
        else:
            yield f"{self.text(name, low)} to {self.text(name, high)}"

    def _limit(self, name: str, best: _Choice, value: int, far: int) -> int:
        """Return how far a value can go towards `far` before the fit changes, by bisection."""
        if far == value or self._fits(best.but(**{name: far}), best):
            return far
        good, bad = value, far
        while abs(bad - good) > max(1, value // 200):
            # Geometric while the bounds differ by orders of magnitude.
            middle = round((good * bad) ** 0.5) if bad > 4 * good or good > 4 * bad else (
                good + bad) // 2  # fmt: skip
            if middle in {good, bad}:
                middle = (good + bad) // 2
            if self._fits(best.but(**{name: middle}), best):
                good = middle
            else:
                bad = middle
        return good

    def text(self, name: str, value: Any) -> str | None:
        """Return a value as a scenario file writes it; None if it is left out."""
        if name == "gap":
            rate = _per_second(value)
            return None if rate is None else f"{rate:g}"
        if name in _SPANS:
            return format_duration(value)
        return None if value is None else str(value)


def _agreement(record: RecordedCalls, engine: EngineSettings, which: Engine) -> tuple[int, int]:
    """Return the number of calls that are compared, and the number of calls that agree."""
    model = record.played(engine, which)
    found = pairs(record, model)
    return int((found.record >= 0).sum()), int(found.agree.sum())


def _beginning(record: RecordedCalls, count: int) -> RecordedCalls:
    """Return the record up to the end of its `count`-th call, or the whole record if it is
    shorter.
    """
    if len(record.calls) <= count:
        return record
    at = np.sort(record.calls.ended[record.calls.ended != NO_INSTANT])
    return record.up_to(int(at[min(count, len(at) - 1)]))


def _congruent(longest: int, interval: int) -> list[int]:
    """Return `longest` (ms) and shorter spans that differ from it by multiples of `interval`.

    A call lost after waiting w was released at a multiple of `interval`, so that only these
    timeouts are possible. At most `_MOST_TIMEOUTS` of them are returned, thinned out towards the
    short ones.
    """
    steps = np.arange(ceil(longest / interval))
    # Short waits are as likely as long ones on a logarithmic scale.
    if len(steps) > _MOST_TIMEOUTS:
        steps = np.unique(np.geomspace(1, len(steps), _MOST_TIMEOUTS).astype(np.int64)) - 1
    return [longest - int(step) * interval for step in steps]


def _span_text(*ends: int) -> str:
    return " to ".join(map(format_duration, ends))


def _ends_of(spans: Sequence[int], value: int) -> Iterator[str]:
    """Yield the range of some spans (ms) as text, unless `value` is the only one."""
    if {*spans} - {value}:
        yield _span_text(*sorted({spans[0], spans[-1]}))


def _divisors(grid: int) -> list[int]:
    """Return the candidate release intervals (ms) that divide `grid`, the longest first.

    A `grid` below a second is the only candidate. With a `grid` of whole seconds all candidates are
    whole seconds.
    """
    shortest = _SHORTEST_GRID
    if grid < shortest:
        return [grid] if grid > 1 else []
    found = [grid // n for n in range(1, grid // shortest + 1) if grid % n == 0]
    if grid % shortest == 0:
        found = [one for one in found if one % shortest == 0]
    return [one for one in found if one <= LONGEST_RELEASE_INTERVAL][:_MOST_INTERVALS]


def _log_density_of_hold_times(held: Integers, ending: Integers) -> NDArray[np.float64]:
    """Return the log density (1/ms) of each call's hold time among other calls of its ending.

    A leave-one-out histogram (Stone 1984). A parametric family would not fit the hold times of
    every log, and where it does not fit, wrong settings come out as likely.
    """
    _, at, counts = np.unique(
        ending * _LONGEST_HOLD + np.minimum(held, _LONGEST_HOLD - 1) // _BIN_MS,
        return_inverse=True, return_counts=True,
    )  # fmt: skip
    # A bin with this call alone gets half a call, instead of an impossible 0.
    others = np.maximum(counts - 1, 0.5)[at]
    of_ending = np.bincount(ending, minlength=len(ENDINGS))[ending]
    return np.maximum(np.log(others / of_ending / _BIN_MS), _UNLIKELY)


def _log_density_of_losses(late: Integers) -> NDArray[np.float64]:
    """Return the unnormalized log density of the delays (ms) of simulated losses.

    It is Student's t with 3 degrees of freedom, mixed with a little uniform mass for outliers.
    """
    spread = 100.0
    off = late / spread
    likely: NDArray[np.float64] = -np.log(spread) - 2 * np.log1p(off**2 / 3)
    return np.logaddexp(likely, _UNLIKELY)


def _per_second(gap: int) -> float | None:
    """Return the shortest decimal number of dials per second that gives this gap in ms (Q4)."""
    if gap == 0:
        return None
    for digits in range(8):
        shown: float = ceil(Fraction(1000 * 10**digits, gap)) / 10**digits
        if shown and dial_gap(shown) == gap:
            return shown
    return 1000 / gap


def _timeouts(record: RecordedCalls) -> list[int]:
    """Return candidate queue timeouts (ms), the likeliest first.

    With dials in the log they are the waits of the calls that were lost. Without, they are the
    times from likely releases to a loss: most calls are released when another call ends, which
    makes room, or at the start of their campaign.
    """
    calls = record.calls
    lost = calls.lost != NO_INSTANT
    if not lost.any():
        return []
    if record.has_dials:
        values, counts = np.unique((calls.lost - calls.queued)[lost], return_counts=True)
        return [int(value) for value in values[np.argsort(-counts, kind="stable")][:5]]
    ends = np.sort(calls.lost[lost])
    starts = [block.schedule.start_date_time for block in record.blocks
              if block.schedule is not None]  # fmt: skip
    since = np.unique(np.concatenate([calls.ended[calls.ended != NO_INSTANT], starts]))
    # A sample: all pairs of losses and ends would be a matrix of millions.
    ends = np.unique(ends)[:200]
    spans = (ends[:, None] - since[None, :]).ravel()
    spans = spans[(spans > 0) & (spans <= _LONGEST_TIMEOUT)]
    values, counts = np.unique(spans, return_counts=True)
    often = values[np.argsort(-counts, kind="stable")][:8]
    first = record.longest_wait
    return [*map(int, often), *([first] if 0 < first <= _LONGEST_TIMEOUT else [])]


# -- changes of the number of lines in the middle of a log ----------------------------------------

PARTS = 12  # parts of a log, with equally many calls, whose lines in use are compared
FEWEST = 20  # fewest calls of a part
# On the side with more lines in use all parts use at least `_SAME` of the largest part's lines; the
# parts of the other side use at most `_OTHER` of the smallest one's.
_SAME, _OTHER = 0.85, 0.7


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines in use of an organization before and after an instant (ms), while people waited."""

    at: int
    organization: str
    before: int
    after: int

    def __str__(self) -> str:
        return (
            f"After about {short_text(self.at)} Thai time {self.after} lines of "
            f"{self.organization} are in use, before it {self.before}: write the change into the "
            "scenario's timeline (setConcurrency)."
        )


def line_changes(record: RecordedCalls) -> list[LineChange]:
    """Find organizations whose lines in use change, although the scenario keeps them constant.

    Lines are counted at the ends of calls while people wait for their first call: then all lines
    are in use, however long calls take. The instants of dials are estimated where the log has none.
    """
    found = []
    for position, owner in enumerate(record.scenario.organizations):
        if not any(action.action in {"setConcurrency", "pause"} for action in owner.actions):
            change = _of_organization(record, position)
            found += [] if change is None else [change]
    return found


def _of_organization(record: RecordedCalls, position: int) -> LineChange | None:
    calls, owner = record.calls, record.scenario.organizations[position]
    own = [index for index, one in enumerate(record.blocks) if one.organization == position]
    # Unknown dials are estimated by the scenario's setup and ring times
    holds = {ending: expected_hold_range(record, ending) for ending in range(len(ENDINGS))}
    begins = dials(record, holds)
    rows = np.flatnonzero(
        np.isin(calls.campaign, own) & (begins != NO_INSTANT) & (calls.ended != NO_INSTANT)
    )
    begin, end = np.sort(begins[rows]), np.sort(calls.ended[rows])
    first = rows[calls.attempt[rows] == 1]
    waits = int(
        np.sort(begins[first])[-owner.max_concurrent_calls :].min(initial=end.max(initial=0))
    )
    end = end[end < waits]
    if len(end) < PARTS * FEWEST:
        return None
    # A call still counts at the instant of its end
    busy = np.searchsorted(begin, end, side="left") - np.arange(len(end))
    used = np.array([np.mean(part) for part in np.array_split(busy, PARTS)])
    starts = [int(part[0]) for part in np.array_split(end, PARTS)]
    for index in range(2, PARTS - 1):
        before, after = used[:index], used[index + 1 :]  # the change may be within a part
        few, many = sorted((before, after), key=np.mean)
        if few.max() <= _OTHER * many.min() and many.min() >= _SAME * many.max():
            # Estimated dials are all early or all late: the side closer to the scenario's number of
            # lines gives the correction of both.
            lines, means = owner.max_concurrent_calls, np.array([before.mean(), after.mean()])
            near = means[np.argmin(np.abs(np.log(means / lines)))]
            usual = lines / near if abs(near - lines) < 1 else 1.0
            counts = np.round(means * usual).astype(int).tolist()
            return LineChange(starts[index], owner.name, *counts)
    return None
