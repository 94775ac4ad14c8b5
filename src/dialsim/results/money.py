"""Money: what calls, lines and a run cost, and what their results are worth.

What is paid for an organization's lines is shared among its campaigns by the slot time that each
has used, and what is paid for the run among the campaigns scheduled, by their people. So the costs
of campaigns add up to that of their organization, and those of organizations to that of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import Calls
from dialsim.engine.trace import DIALLED
from dialsim.engine.windows import DAY
from dialsim.interface.instants import THAI_OFFSET
from dialsim.results.time_use import StepFunction
from dialsim.scenario.service import Costs

if TYPE_CHECKING:
    from dialsim.results.counts import Counts


def billed_increments(costs: Costs, talk_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many billing increments conversations are charged: each that was started, in full."""
    return -(-talk_ms // costs.billing_increment)


@overload
def cost_of(costs: Costs, dials: int, increments: int, reached: int) -> float: ...
@overload
def cost_of(
    costs: Costs,
    dials: NDArray[np.bool_],
    increments: NDArray[np.int64],
    reached: NDArray[np.bool_],
) -> NDArray[np.float64]: ...
def cost_of(
    costs: Costs,
    dials: int | NDArray[np.bool_],
    increments: int | NDArray[np.int64],
    reached: int | NDArray[np.bool_],
) -> Any:
    """What dials, started billing increments of conversation, and people reached cost.

    A dial that was withdrawn costs nothing (P5); a conversation is charged when it is over.
    """
    per_increment = costs.per_minute * costs.billing_increment / 60_000
    return dials * costs.per_dial + increments * per_increment + reached * costs.per_reached


def line_shares(
    costs: Costs | None,
    calls: Sequence[Calls],
    busy: Sequence[StepFunction],
    allowed: StepFunction,
    end: int,
) -> NDArray[np.float64]:
    """What each campaign of an organization has to pay of what its lines cost.

    Lines are paid for on each Thai date with a dial: as many as `allowed` at most, at any dial.
    """
    if costs is None or not costs.per_line_day:
        return np.zeros(len(calls))
    dials = [part.rows.at[part.rows.kind == DIALLED] for part in calls]
    at = np.concatenate([np.empty(0, np.int64), *dials])
    most = dict[int, int]()
    for day, lines in zip(((at + THAI_OFFSET) // DAY).tolist(), allowed(at).tolist(), strict=True):
        most[day] = max(lines, most.get(day, 0))
    used = [own.integral(np.array([[0, end]], dtype=np.int64)) for own in busy]
    weights = used if any(used) else [len(own) for own in dials]
    return costs.per_line_day * sum(most.values()) * _shares(weights)


def fixed_shares(
    costs: Costs | None, people: Sequence[int], scheduled: Sequence[bool]
) -> NDArray[np.float64]:
    """What each campaign of a run has to pay of what the run costs as a whole."""
    if costs is None or not costs.fixed:
        return np.zeros(len(people))
    weights = [count * asked for count, asked in zip(people, scheduled, strict=True)]
    return costs.fixed * _shares(weights if any(weights) else [1] * len(people))


def _shares(weights: Sequence[int]) -> NDArray[np.float64]:
    weighed = np.array(weights, dtype=np.float64)
    return weighed / (weighed.sum() or 1.0)


def value_of(worth: Mapping[str, float] | None, counts: Counts) -> float | None:
    """The value of a campaign's results; None where nothing is said to be worth anything."""
    if worth is None:
        return None
    found = {"reached": counts.answered}
    for (_, step), count in counts.steps.items():
        found[f"funnel.{step}"] = count
    for (_, name, value), count in counts.values.items():
        found[f"field.{name}.{value}"] = count
    return float(sum(amount * found.get(key, 0) for key, amount in worth.items()))
