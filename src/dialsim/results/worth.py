"""Worth of a campaign's results by day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from dialsim.engine.log_reader import NOT_HAPPENED
from dialsim.interface.instants import DAY, THAI_OFFSET, day_start
from dialsim.webhooks.messages import VERDICTS, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.results.run_view import CampaignResult
    from dialsim.scenario.scenario import Scenario


def first_day(scenario: Scenario) -> int:
    """Return midnight (ms) of day 1: calling begins on it, or the run if that is later."""
    return max(scenario.first_day, day_start(scenario.clock.start))


def total_by_day(parts: Iterable[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """Add up the values of several campaigns by day; None if none of them has values."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    total = np.zeros(max(map(len, known)))
    for part in known:
        total[: len(part)] += part
    return total


def value_by_day(own: CampaignResult) -> NDArray[np.float64] | None:
    """Return the value of the conversations answered on day 1, day 2, …; None without values."""
    if own.block.value is None:
        return None
    started_at = own.engine_calls.started_at
    answered = np.flatnonzero(started_at != NOT_HAPPENED)
    days = (started_at[answered] + THAI_OFFSET) // DAY
    # A campaign that a command schedules may begin before those of the file.
    days = np.maximum(days - (first_day(own.run.world.scenario) + THAI_OFFSET) // DAY, 0)
    return np.asarray(np.bincount(days, weights=_worth(own, answered)), dtype=np.float64)


def _worth(own: CampaignResult, answered: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the worth of each of some answered calls."""
    block, people = own.block, own.engine_calls.recipient[answered]
    value, analysis = block.value or {}, block.agent.analysis

    def worth(key: str) -> NDArray[np.float64] | float:
        return block.worth[key][people] if key in block.worth else float(value.get(key, 0))

    total = np.zeros(len(answered)) + worth("reached")
    if analysis is None or value.keys() <= {"reached"}:
        return total
    analyzed = own.verdicts.code[answered] == VERDICTS.index(Verdict.ANALYZED)
    found = own.verdicts.found[answered]
    for number, step in enumerate(analysis.funnel or (), start=1):
        total += worth(f"funnel.{step.step}") * (analyzed & (found[:, 0] >= number))
    for column, (name, field) in enumerate(analysis.fields.items(), start=1):
        for code, text in enumerate(field.values):
            key = f"field.{name}.{text}"
            if key in value:
                total += worth(key) * (analyzed & (found[:, column] == code))
    return total
