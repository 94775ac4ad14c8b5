"""The variants of a sweep worth choosing from, the one that is recommended, and what it gives up.

A variant is beaten by another that is at least as good in finish, in people reached and in cost,
and really better in one of them: the interval of the paired difference excludes 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, isnan

import numpy as np

from dialsim.experiments.intervals import CONFIDENCE, Difference, Values, paired_difference, rank
from dialsim.experiments.prior import Prior
from dialsim.experiments.run_figures import RunFigures
from dialsim.experiments.sweep import Sweep
from dialsim.report.effects import number_effect, time_effect


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure of the whole run that is to be small (1) or large (-1), and its name in a text."""

    figure: str
    sign: int
    name: str


FINISH = Aim("finish", 1, "finish")
REACHED = Aim("people_reached", -1, "people reached")
COST = Aim("cost", 1, "cost")
_AIMS = (FINISH, REACHED, COST)


@dataclass(frozen=True, slots=True)
class Loss:
    """In what a variant is really worse than another: `effect` is its figure minus the other's."""

    aim: Aim
    than: str
    effect: Difference

    @property
    def said(self) -> str:
        """`finish 20 min later (± 3 min) than with 12 lines`."""
        if self.aim is FINISH:
            return f"finish {time_effect(self.effect)} than with {self.than}"
        return f"{self.aim.name} {number_effect(self.effect)} against {self.than}"


@dataclass(frozen=True)
class Frontier:
    """The variants of a sweep weighed by finish, people reached and, if there is one, cost.

    `baseline` is the variant that a recommended one may not fall behind in people reached.
    """

    found: Sweep
    baseline: str
    lost: Set[str] = field(default_factory=frozenset)
    """The variants that really reach fewer people than the baseline."""

    @cached_property
    def aims(self) -> tuple[Aim, ...]:
        """The figures in which the variants differ."""
        listed = ((aim, {*self._middles[aim].values()}) for aim in _AIMS)
        return tuple(aim for aim, known in listed if len(known) > 1 and not any(map(isnan, known)))

    @cached_property
    def beaten(self) -> dict[str, Loss]:
        """The variants that another beats, with the first figure in which that is really better."""
        losses = ((name, self._beaten(name)) for name in self._names)
        return {name: loss for name, loss in losses if loss is not None}

    @cached_property
    def best(self) -> tuple[str, ...]:
        """The variants that none beats, in the order of the sweep."""
        return tuple(name for name in self._names if name not in self.beaten)

    @cached_property
    def recommended(self) -> str:
        """The one of `best` that is closest to the best in everything; the baseline in a tie.

        Weighed are the time until half of the runs are done, the people reached, and the cost of
        each person reached: what each is short of the best of them, in per cent, is added up. Those
        that really reach fewer people than the baseline don't count.
        """
        return min(
            self._candidates, key=lambda name: (self._shortfall(name), name != self.baseline)
        )

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """The candidates that really differ from the recommended one in nothing."""
        return tuple(
            name
            for name in self._candidates
            if name != self.recommended
            and not any(self.difference(name, self.recommended, aim).real for aim in self.aims)
        )

    def gives_up(self, name: str) -> list[Loss]:
        """In what a variant is really worse than the best of `best`."""
        return [*self._given_up(name)]

    def difference(self, name: str, other: str, aim: Aim) -> Difference:
        """A variant's figure minus another's, pair by pair; a finish is in seconds."""
        priors = (self._priors[name], self._priors[other])
        certain = all(prior.certain(aim.figure) for prior in priors)
        one, two = (_values(self._runs[which], aim) for which in (name, other))
        pairs = min(len(one), len(two))
        return paired_difference(one[:pairs], two[:pairs], CONFIDENCE, certain)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(variant.name for variant in self.found.variants)

    @cached_property
    def _runs(self) -> dict[str, Sequence[RunFigures]]:
        return dict(zip(self._names, self.found.figures, strict=True))

    @cached_property
    def _priors(self) -> dict[str, Prior]:
        return dict(zip(self._names, self.found.priors, strict=True))

    @cached_property
    def _middles(self) -> dict[Aim, dict[str, float]]:
        """What stands for all runs of each variant: the middle finish, the mean of the others."""
        return {
            aim: {name: _middle(_values(runs, aim), aim)
                  for name, runs in zip(self._names, self.found.together.figures, strict=True)}
            for aim in _AIMS
        }  # fmt: skip

    def _beaten(self, name: str) -> Loss | None:
        for other in self._names:
            if other == name or any(self._is_better(name, other, aim) for aim in self.aims):
                continue
            for aim in self.aims:
                if self._is_better(other, name, aim):
                    effect = self.difference(name, other, aim)
                    if effect.real and _is_worse(effect, aim):
                        return Loss(aim, other, effect)
        return None

    def _is_better(self, name: str, other: str, aim: Aim) -> bool:
        """Whether a variant's figure is better, be it by chance."""
        middles = self._middles[aim]
        return aim.sign * middles[name] < aim.sign * middles[other]

    @cached_property
    def _candidates(self) -> tuple[str, ...]:
        return tuple(name for name in self.best if name not in self.lost) or self.best

    def _shortfall(self, name: str) -> float:
        """What a candidate is short of the best of the candidates, in shares that add up."""
        origin = self.found.origin
        start = 0.0 if origin is None else origin.timestamp()
        short = 0.0
        reached = self._middles[REACHED]
        for aim in self.aims:
            amounts = self._middles[aim]
            if aim is FINISH:
                amounts = {key: at - start for key, at in amounts.items()}
            elif aim is COST:  # of each person reached: who calls fewer people always spends less
                amounts = {key: cost / reached[key] if reached[key] else inf
                           for key, cost in amounts.items()}  # fmt: skip
            listed = [amounts[key] for key in self._candidates]
            top = min(aim.sign * amount for amount in listed)
            if isfinite(top) and top:
                short += (aim.sign * amounts[name] - top) / abs(top)
        return short

    def _given_up(self, name: str) -> Iterator[Loss]:
        for aim in self.aims:
            order = sorted((aim.sign * self._middles[aim][other], other) for other in self.best)
            top = order[0][1]
            if self._is_better(top, name, aim):
                effect = self.difference(name, top, aim)
                if effect.real and _is_worse(effect, aim):
                    yield Loss(aim, top, effect)


def _is_worse(effect: Difference, aim: Aim) -> bool:
    """Whether more pairs, or the mean of them, went the wrong way."""
    if isfinite(effect.estimate):
        return aim.sign * effect.estimate > 0
    return (effect.rose > effect.fell) is (aim.sign > 0)


def _values(runs: Sequence[RunFigures], aim: Aim) -> Values:
    """A figure in each of some runs; a finish is in seconds, infinite where there is none."""
    values = np.array([run.scopes[0].values[aim.figure] for run in runs], dtype=np.float64)
    return np.where(np.isnan(values), inf, values / 1000) if aim is FINISH else values


def _middle(values: Values, aim: Aim) -> float:
    return float(np.sort(values)[rank(len(values), 0.5) - 1] if aim is FINISH else values.mean())
