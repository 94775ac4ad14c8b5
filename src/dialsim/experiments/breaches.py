"""Compliance rules that a setting breaks more often than the scenario as it is.

Such a setting is never recommended. Both are judged by the same replications, so that a setting
that changes nothing in this respect breaks no rule more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialsim.experiments.figure_names import FigureName
from dialsim.experiments.run_spec import RunSpec
from dialsim.results.compliance import compliance_figure

if TYPE_CHECKING:
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.scenario.scenario import Scenario

_BROKEN_BY = {
    "repeated": ("repeated call on one day", "repeated calls on one day"),
    "outside": ("call outside the times of contact", "calls outside the times of contact"),
}
"""Counts of a rule that break it, and what one and several of them are called."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that is broken more often: mean count of a run, and of a run of the scenario as it
    is.
    """

    rule: str
    count: str
    mean: float
    before: float

    @property
    def text(self) -> str:
        """Text such as `9,155 repeated calls on one day, not allowed by thai-debt-collection`."""
        one, several = _BROKEN_BY[self.count]
        mean, before = _number(self.mean), _number(self.before)
        if mean == before:  # rounded means would contradict the sentence
            mean, before = f"{self.mean:,.2f}", f"{self.before:,.2f}"
        calls = one if self.mean == 1 else several
        as_it_is = f" (as it is: {before})" if self.before else ""
        return f"{mean} {calls}{as_it_is}, not allowed by {self.rule}"


def _number(mean: float) -> str:
    return f"{mean:,.0f}" if mean >= 10 or mean == int(mean) else f"{mean:.2g}"


def not_allowed(named: Iterable[tuple[str, Sequence[Breach]]]) -> list[str]:
    """Return a sentence for each setting that breaks a rule more often.

    Such as `Retries after 1 h: 9,155 repeated calls on one day, not allowed by one a day.`
    """
    return [
        f"{name[:1].upper()}{name[1:]}: {'; '.join(breach.text for breach in breaches)}."
        for name, breaches in named
        if breaches
    ]


def breach_figures(scenario: Scenario) -> frozenset[str]:
    """Return the figures that show breaches; none without compliance rules."""
    return frozenset(
        compliance_figure(rule.name, count) for rule in scenario.compliance for count in _BROKEN_BY
    )


def breaches_of(
    scenario: Scenario, runs: Sequence[RunFigures], before: Sequence[RunFigures]
) -> tuple[Breach, ...]:
    """Return the rules of a scenario that `runs` break more often than those `before` a change.

    Both begin with replication 0; only replications that both have are compared.
    """
    pairs, found = min(len(runs), len(before)), []
    for rule in scenario.compliance:
        for count in _BROKEN_BY:
            name = compliance_figure(rule.name, count)
            if any(name not in run.scopes[0].values for run in (*runs[:1], *before[:1])):
                continue  # a file of a comparison may lack the rule
            figure = FigureName(name, None, None)
            now, then = (float(figure.of(part[:pairs]).mean()) for part in (runs, before))
            if now > then:
                found.append(Breach(rule.name, count, now, then))
    return tuple(found)


class Baseline:
    """The scenario as it is: breaches under other settings are compared with its own."""

    def __init__(self, scenario: Scenario, seed: int | None) -> None:
        self._scenario = scenario
        self._seed = seed
        self._spec = RunSpec(scenario, seed)
        self.figures = breach_figures(scenario)

    @property
    def specs(self) -> list[RunSpec]:
        """The specs to be replicated beside each setting; none without compliance rules."""
        return [self._spec] if self.figures else []

    def spec(self, scenario: Scenario) -> RunSpec:
        """Return the spec of a setting; one that changes nothing shares the runs of this one."""
        own, varied = self._spec, RunSpec(scenario, self._seed)
        return own if (own.digest, own.seed) == (varied.digest, varied.seed) else varied

    def breaches(self, runs: Sequence[RunFigures]) -> tuple[Breach, ...]:
        """Return the rules that the first runs of a setting break more often."""
        return breaches_of(
            self._scenario, runs, self._spec.first(len(runs)) if self.figures else ()
        )
