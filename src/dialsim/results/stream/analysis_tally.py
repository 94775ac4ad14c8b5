"""What analyses came to: counts of a campaign's conversations, or of several campaigns'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dialsim.results.stream.campaign_stream import CampaignStream
from dialsim.results.stream.verdicts import VERDICTS, Verdict, Verdicts
from dialsim.scenario.agent import Agent


@dataclass(frozen=True, slots=True)
class AnalysisTally:
    """Counts of conversations that have ended.

    `by_verdict` follows `VERDICTS`; `reanalyses` counts results of re-analyses. `steps` has, by
    agent and funnel step, how many analyzed conversations reached it, and `values` by agent, field
    and value how many have that value; both in the order of the scenario.
    """

    by_verdict: tuple[int, ...]
    reanalyses: int
    steps: Counter[tuple[str, str]]
    values: Counter[tuple[str, str, str]]

    def count(self, verdict: Verdict) -> int:
        """How many conversations have this verdict."""
        return self.by_verdict[VERDICTS.index(verdict)]


def tally_analyses(stream: CampaignStream, verdicts: Verdicts, agent: Agent) -> AnalysisTally:
    """Count the conversations of one campaign by what their newest analyses say."""
    had = verdicts.code[verdicts.code >= 0]
    found = verdicts.found[verdicts.code == VERDICTS.index(Verdict.ANALYZED)]
    steps, values = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    analysis = agent.analysis
    for number, step in enumerate((analysis and analysis.funnel) or (), start=1):
        steps[agent.name, step.step] = int(np.count_nonzero(found[:, 0] >= number))
    for column, (name, field) in enumerate(analysis.fields.items() if analysis else (), start=1):
        counts = np.bincount(found[:, column], minlength=len(field.values))
        for value, count in zip(field.values, counts.tolist(), strict=True):
            values[agent.name, name, value] = count
    return AnalysisTally(
        by_verdict=tuple(np.bincount(had, minlength=len(VERDICTS)).tolist()),
        reanalyses=int(np.count_nonzero(stream.owed.result)),
        steps=steps,
        values=values,
    )


def add_up_analyses(tallies: Sequence[AnalysisTally]) -> AnalysisTally:
    """The tally of several campaigns together."""
    steps, values = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    for tally in tallies:
        steps.update(tally.steps)
        values.update(tally.values)
    none = (0,) * len(VERDICTS)
    columns = zip(none, *(tally.by_verdict for tally in tallies), strict=True)
    return AnalysisTally(
        by_verdict=tuple(map(sum, columns)),
        reanalyses=sum(tally.reanalyses for tally in tallies),
        steps=steps,
        values=values,
    )
