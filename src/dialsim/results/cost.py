"""What calls cost: a price per dial, and one per started billing increment of conversation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dialsim.results.ledger import Ledger
from dialsim.results.reading import Reading
from dialsim.scenario.service import Costs


def billed(ledger: Ledger, increment_ms: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Per call: whether a dial is charged, and how many billing increments.

    A withdrawn dial costs nothing (P5); a conversation is charged when it is over, each started
    increment in full.
    """
    return ledger.attempt > 0, -(-ledger.talk_ms // increment_ms)


def call_costs(reading: Reading, ledgers: Sequence[Ledger]) -> NDArray[np.float64]:
    """The cost of each call in the scenario's currency; NaN where the scenario names no costs."""
    costs = reading.world.scenario.costs
    total = sum(len(ledger.recipient) for ledger in ledgers)
    if costs is None:
        return np.full(total, np.nan)
    parts = [price(costs, ledger.attempt > 0, ledger.talk_ms) for ledger in ledgers]
    return np.concatenate(parts or [np.empty(0)])


def price(
    costs: Costs, dialled: NDArray[np.bool_], talk_ms: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What calls cost by whether they were dialled, and the length of their conversations."""
    per_increment = costs.per_minute * costs.billing_increment / 60_000
    increments = -(-talk_ms // costs.billing_increment)
    cost: NDArray[np.float64] = dialled * costs.per_dial + increments * per_increment
    return cost
