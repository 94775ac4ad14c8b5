"""Compliance rules that a setting breaks more often than the scenario as it is.

Such a setting is never recommended. Both are judged by the same replications, so that a setting
that changes nothing in this respect breaks no rule more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialsim.experiments.figure_names import FigureName
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
class RuleBreach:
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


def not_allowed(named: Iterable[tuple[str, Sequence[RuleBreach]]]) -> list[str]:
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
) -> tuple[RuleBreach, ...]:
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
                found.append(RuleBreach(rule.name, count, now, then))
    return tuple(found)
