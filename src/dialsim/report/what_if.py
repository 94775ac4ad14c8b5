"""What would help: the levers, measured by runs that meet the same chance as the run itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from dialsim.experiments.sweep import Sweep, sweep
from dialsim.experiments.variants import Variant
from dialsim.interface.errors import DialsimError
from dialsim.report.levers import AS_IT_IS, levers
from dialsim.results.result import Result
from dialsim.results.thai_time import duration_text, minute_text
from dialsim.results.wording import FigureTable
from dialsim.scenario.problems import ScenarioError

MOST_PAIRS = 3
_BUDGET = 250_000
"""People called in all runs together that a page takes without being asked."""
_IN_THIS_PROCESS = 150_000


@dataclass(frozen=True, slots=True)
class Effect:
    """What a lever does to the mean of a figure: `low` to `high` is the 95 % paired interval.

    Seconds for `finish` (negative is earlier; infinite where runs don't finish), people for
    `reached`, the currency for `cost` (None where the scenario names none). `real` says that the
    interval excludes 0.
    """

    difference: float
    low: float
    high: float
    real: bool


@dataclass(frozen=True, slots=True)
class Lever:
    """A lever, and its effects."""

    name: str
    finish: Effect
    reached: Effect
    cost: Effect | None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Levers measured by `pairs` runs each and as many of the scenario as it is.

    `finishes` (ms; infinite for a run that doesn't finish) and `shares` reached are of the latter.
    """

    pairs: int
    levers: tuple[Lever, ...]
    finishes: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def runs(self) -> int:
        """How many runs it took."""
        return self.pairs * (len(self.levers) + 1)


def affordable_pairs(result: Result) -> int:
    """How many pairs of runs a page takes without being asked; 0 if even two were too much."""
    pairs = _BUDGET // max(1, result.summary.people * (len(levers(result)) + 1))
    return min(pairs, MOST_PAIRS) if pairs >= 2 else 0


def measure(
    result: Result, pairs: int, progress: Callable[[int, int], object] | None = None
) -> WhatIf | None:
    """Pull each lever in `pairs` (2 or more) replications; None where there is nothing to pull.

    A lever that the scenario can't have is left out. Raises ExperimentError if a CSV of the
    scenario was changed since it was loaded.
    """
    scenario = result.trace.world.scenario
    possible = [lever for lever in levers(result) if _fits(lever, result)]
    if not possible:
        return None
    people = result.summary.people * pairs * (len(possible) + 1)
    jobs = 1 if people <= _IN_THIS_PROCESS else None
    found = sweep(
        scenario,
        [AS_IT_IS, *possible],
        pairs,
        seed=result.trace.world.seed,
        jobs=jobs,
        progress=progress,
    )
    base = found.runs[found.runs["variant"] == AS_IT_IS.name]
    origin = 0.0 if found.origin is None else found.origin.timestamp()
    return WhatIf(
        pairs=pairs,
        levers=_effects(found, with_cost=scenario.costs is not None),
        finishes=tuple(1000 * (origin + second) for second in base["finish_seconds"]),
        shares=tuple(base["reach_share"]),
    )


def _fits(lever: Variant, result: Result) -> bool:
    try:
        lever.of(result.trace.world.scenario)
    except ScenarioError:
        return False
    return True


def _effects(found: Sweep, with_cost: bool) -> tuple[Lever, ...]:
    table = found.differences(AS_IT_IS.name)
    whole = table[table["scope"] == "run"]
    rows = {(row["variant"], row["figure"]): row for row in whole.to_dict("records")}
    return tuple(
        Lever(
            variant.name,
            _effect(rows[variant.name, "finish_seconds"]),
            _effect(rows[variant.name, "people_reached"]),
            _effect(rows[variant.name, "cost"]) if with_cost else None,
        )
        for variant in found.variants[1:]
    )


def _effect(row: dict[Any, Any]) -> Effect:
    return Effect(row["difference"], row["low"], row["high"], bool(row["real"]))


def best(what_if: WhatIf, reaches_all: bool) -> Lever | None:
    """The lever that helps most: to finish, or where people are lost, to reach them.

    Only real effects count; None if there is none.
    """
    for figure, sign in (("finish", -1), ("reached", 1)) if reaches_all else (("reached", 1),):
        gains = {
            lever: sign * effect.difference
            for lever in what_if.levers
            if (effect := getattr(lever, figure)).real and sign * effect.difference > 0
        }
        if gains:
            return max(gains, key=lambda lever: gains[lever])
    return None


def effect_table(what_if: WhatIf, currency: str | None) -> FigureTable:
    """The levers as a table."""
    columns = ["finish", "people reached"] + ([f"cost, {currency}"] if currency else [])
    rows = []
    for lever in what_if.levers:
        cells = [time_effect(lever.finish), number_effect(lever.reached)]
        if lever.cost is not None:
            cells.append(number_effect(lever.cost))
        rows.append((lever.name, *cells))
    return FigureTable("Changed by", tuple(columns), tuple(rows))


def time_effect(effect: Effect) -> str:
    """`2 h 26 min earlier (± 3 min)`."""
    if not isfinite(effect.difference):
        return "can't be told"
    if effect.difference == effect.low == effect.high == 0:
        return "no change"
    way = "earlier" if effect.difference < 0 else "later"
    return f"{_duration(effect.difference)} {way} {_sureness(effect, _duration)}"


def number_effect(effect: Effect) -> str:
    """`+143 (± 12)`."""
    if effect.difference == effect.low == effect.high == 0:
        return "no change"
    sign = "+" if effect.difference >= 0 else "–"
    return f"{sign}{_number(effect.difference)} {_sureness(effect, _number)}"


def _sureness(effect: Effect, text: Callable[[float], str]) -> str:
    margin = (effect.high - effect.low) / 2
    known = f"± {text(margin)}" if isfinite(margin) else "± ?"
    return f"({known})" if effect.real else f"({known}, may be chance)"


def _duration(seconds: float) -> str:
    """To the second, from ten minutes on to the minute."""
    unit = 60 if abs(seconds) >= 600 else 1
    return duration_text(1000 * unit * round(abs(seconds) / unit))


def _number(value: float) -> str:
    size = abs(value)
    return f"{size:,.0f}" if size >= 10 else f"{size:.1f}"


def spread(what_if: WhatIf) -> str:
    """From when to when the runs of the scenario as it is were done, and whom they reached."""
    done = [at for at in what_if.finishes if isfinite(at)]
    never = sum(at == inf for at in what_if.finishes)
    shares = np.array(what_if.shares) * 100
    reached = f"{shares.min():.1f} to {shares.max():.1f} % reached"
    if not done:
        return f"none of {what_if.pairs} runs finished; {reached}"
    first, last = (minute_text(round(at)) for at in (min(done), max(done)))
    when = f"done {first}" if first == last else f"done between {first} and {last}"
    return f"{when}, {reached}" + (f"; {never} did not finish" if never else "")


def check_pairs(pairs: int) -> None:
    """Raise DialsimError unless a number of pairs is 0 or gives an interval."""
    if pairs < 0 or pairs == 1:
        raise DialsimError("what would help is measured by 2 runs or more each, or 0 for none")
