"""The name of a figure: `finish`, `January.finish`, `Acme/January.people_reached`, `cost`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.run_figures import INSTANTS, RunFigures, ScopeFigures
from dialsim.results.stream.figures import AnalysisFigures, WebhookFigures
from dialsim.results.summary import Figures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.scenario.models import Scenario

_NO_NUMBER = ("reach_by_attempt", "currency", "held_back", "analyses", "webhooks")
_ATTEMPT = re.compile(r"reach_by_attempt_([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class FigureName:
    """A figure of the whole run, of an organization, or of a campaign.

    `name` is a column of the frames; an instant is here in ms since 1970. `text` is as it was
    written.
    """

    text: str
    name: str
    organization: str | None
    campaign: str | None

    @property
    def is_instant(self) -> bool:
        """Whether it is an instant, such as `finish`, and not a number."""
        return self.name in INSTANTS

    @property
    def column(self) -> str:
        """The column of the tables that holds it; an instant counts in seconds there."""
        return f"{self.name}_seconds" if self.is_instant else self.name

    def of(self, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
        """The figure in each of some runs; infinite where a run did not finish."""
        return np.array([self._in(run) for run in runs], dtype=np.float64)

    def _in(self, run: RunFigures) -> float:
        part = next(part for part in run.scopes if self._fits(part))
        match = _ATTEMPT.fullmatch(self.name)
        if match:
            reached = [k for k in range(1, int(match[1]) + 1) if _reach(k) in part.values]
            return part.values[_reach(reached[-1])] if reached else 0.0
        return part.values.get(self.name, 0)

    def _fits(self, part: ScopeFigures) -> bool:
        return (part.organization, part.campaign) == (self.organization, self.campaign)


def _reach(attempt: int) -> str:
    return f"reach_by_attempt_{attempt}"


def read_figure(text: str, scenario: Scenario) -> FigureName:
    """Read the name of a figure of a scenario's summary.

    Names are those of summary.json; `webhooks.lost` may also be written `webhooks_lost`. Raises
    ExperimentError if there is no such figure, campaign or organization.
    """
    known = _known(scenario)
    plain = re.sub(r"(^|\.)(webhooks|analyses)\.(?=[a-z_0-9]+$)", r"\1\2_", text.strip())
    for start in [0, *(match.end() for match in re.finditer(r"\.", plain))]:
        name = plain[start:]
        if name in known or _ATTEMPT.fullmatch(name):
            whose = plain[: max(start - 1, 0)]
            _check_cost(name, scenario)
            return FigureName(text.strip(), name, *_place(whose, text, scenario))
    last = plain.rpartition(".")[2]
    close = [name for name in known if len(last) > 3 and (last in name or name[:5] == last[:5])]
    close = close or get_close_matches(last, known)
    hint = f"; did you mean {' or '.join(close[:3])}?" if close else ""
    raise ExperimentError(f"there is no figure {text.strip() or '(nothing)'}{hint}")


def _known(scenario: Scenario) -> list[str]:
    """The figures of a summary of this scenario, but for reach_by_attempt."""
    names = [field.name for field in fields(Figures) if field.name not in _NO_NUMBER]
    names += [f"webhooks_{field.name}" for field in fields(WebhookFigures)]
    counts = (field.name for field in fields(AnalysisFigures))
    names += [f"analyses_{name}" for name in counts if name not in ("funnel", "fields")]
    for organization in scenario.organizations:
        for agent in organization.agents:
            steps = (agent.analysis and agent.analysis.funnel) or ()
            names += [f"funnel_{agent.name}_{step.step}" for step in steps]
    return names


def _check_cost(name: str, scenario: Scenario) -> None:
    if name == "cost" and scenario.costs is None:
        raise ExperimentError("there is no figure cost: the scenario names no costs")


def _place(whose: str, text: str, scenario: Scenario) -> tuple[str | None, str | None]:
    """Organization and campaign that a figure is of."""
    if not whose:
        return None, None
    campaigns = [
        (organization.name, campaign.name)
        for organization in scenario.organizations
        for campaign in organization.campaigns
    ]
    found = [place for place in campaigns if whose in (place[1], f"{place[0]}/{place[1]}")]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(f"{place[0]}/{place[1]}" for place in found)
        raise ExperimentError(f"{text}: campaign {whose} is ambiguous: write {names}")
    organizations = [organization.name for organization in scenario.organizations]
    if whose in organizations:
        return whose, None
    known = ", ".join([*(f"{place[0]}/{place[1]}" for place in campaigns), *organizations])
    raise ExperimentError(
        f"{text}: there is no campaign or organization {whose}; there are: {known}"
    )
