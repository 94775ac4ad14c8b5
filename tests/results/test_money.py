"""Costs and values, worked by hand on scripted scenarios."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialsim
from dialsim.engine.trace import DIALLED
from dialsim.interface.instants import DAY, THAI_OFFSET
from dialsim.results.counts import line_shares
from dialsim.results.summary import Summary
from dialsim.results.summary_text import tables
from dialsim.results.time_use import StepFunction
from dialsim.scenario.service import Costs
from dialsim.testing import Sketch

ANALYSIS = {
    "funnel": [{"step": "Greeted", "share": 1}, {"step": "Promised", "share": 1}],
    "fields": {"paid": {"type": "boolean", "values": {"true": 1, "false": 0}}},
}
OPEN = {"windows": "Mon-Tue 09:00-23:59", "max_attempts": 1}
TWO = (
    Sketch(2, setup_time="1s")
    .agent("Reminder", analysis=ANALYSIS)
    .behaviour("default", outcomes={"answered": 1})
)
SCRIPTS = ("answered 5s 55s", "answered 5s 115s", "noAnswer 60s")


def two(debt: Sequence[str] = SCRIPTS, vip: str = "answered 0s 60s", **prices: object) -> Sketch:
    """Two campaigns, one on Monday and one on Tuesday, with the given costs."""
    return (
        TWO.also(costs={"currency": "THB", **prices})
        .campaign("Debt", *debt, agent="Reminder", **OPEN)
        .campaign("VIP", vip, agent="Survey", start="Tue 09:00", **OPEN)
    )


def summary(sketch: Sketch, *overrides: str) -> Summary:
    return dialsim.run(sketch.scenario(overrides)).summary


def test_every_price_is_paid_for_what_it_says() -> None:
    # dials 4 × 0.1; minutes of 30 s: 60 + 120 + 60 s of talk; reached 3 × 5
    found = summary(two(perDial=0.1, perMinute=1.2, billingIncrement="30s", perReached=5))
    debt, vip = found.campaigns
    assert debt.cost == pytest.approx(3 * 0.1 + 3 * 1.2 + 2 * 5)
    assert vip.cost == pytest.approx(0.1 + 1.2 + 5)
    assert found.cost == pytest.approx(4 * 0.1 + 4 * 1.2 + 3 * 5)
    assert found.cost_per_reached == pytest.approx(found.cost / 3)
    assert (found.value, found.net_value) == (None, None)


def test_the_costs_of_the_calls_table_add_up_to_what_calls_cost() -> None:
    result = dialsim.run(two(perDial=0.1, perMinute=1.2, perReached=5).scenario())
    assert result.calls["cost"].sum() == pytest.approx(result.summary.cost)


def test_lines_are_paid_for_on_each_date_with_a_dial_and_shared_by_slot_time() -> None:
    # Monday and Tuesday with 2 lines each; slot time of Debt 61 + 121 + 61 s, of VIP 61 s
    found = summary(two(perLineDay=35))
    assert found.cost == found.organizations[0].cost == pytest.approx(2 * 2 * 35)
    debt, vip = found.campaigns
    assert debt.cost == pytest.approx(140 * 243 / 304)
    assert vip.cost == pytest.approx(140 * 61 / 304)


def test_lines_count_by_the_greatest_limit_at_a_dial_of_the_date() -> None:
    # raised on Monday after the last dial, lowered to 1 on Tuesday before the first: 2 and 1
    raised = two(perLineDay=35).at("Mon 17:00", "setConcurrency", 9)
    lowered = raised.at("Tue 08:00", "setConcurrency", 1)
    assert summary(lowered).cost == pytest.approx(3 * 35)


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_the_cost_of_lines_is_that_of_a_loop_over_dials(chance: random.Random) -> None:
    """`line_shares` against a loop over every dial, written from the documentation."""
    steps = sorted(chance.sample(range(10 * DAY), chance.randrange(1, 9)))
    limits = [chance.randrange(40) for _ in steps]
    campaigns = [
        sorted(chance.randrange(10 * DAY) for _ in range(chance.choice((0, 1, 5, 60))))
        for _ in range(chance.randrange(1, 4))
    ]
    price = chance.choice((35, 0.1, 1200.55))
    greatest = dict[int, int]()
    for at in (at for dials in campaigns for at in dials):
        limit = ([0] + [each for since, each in zip(steps, limits, strict=True) if since <= at])[-1]
        day = (at + THAI_OFFSET) // DAY
        greatest[day] = max(limit, greatest.get(day, 0))

    def calls(dials: list[int]) -> Any:
        columns = np.array(dials, np.int64), np.full(len(dials), DIALLED, np.uint8)
        return SimpleNamespace(rows=SimpleNamespace(at=columns[0], kind=columns[1]))

    busy = [StepFunction(np.array([1]), np.array([1]))] * len(campaigns)
    allowed = StepFunction(np.array(steps), np.array(limits))
    costs = Costs(currency="THB", per_line_day=price)
    found = line_shares(costs, [calls(dials) for dials in campaigns], busy, allowed, 10 * DAY)
    each = price * sum(greatest.values()) * (np.full(len(campaigns), 1.0) / len(campaigns))
    assert found.tolist() == each.tolist()


def test_what_the_run_costs_is_shared_by_people() -> None:
    found = summary(two(fixed=1000))
    assert [campaign.cost for campaign in found.campaigns] == [750, 250]
    assert (found.organizations[0].cost, found.cost) == (1000, 1000)


def test_results_are_worth_what_the_value_says_and_a_campaign_may_have_its_own() -> None:
    found = summary(
        two(perDial=1),
        "value={reached: 12, funnel.Promised: 80, field.paid.true: -5}",
        "organizations.Acme.campaigns.VIP.value={reached: 40}",
    )
    debt, vip = found.campaigns
    assert (debt.value, debt.net_value) == (2 * 12 + 2 * 80 - 2 * 5, 174 - 3)
    assert (vip.value, vip.net_value) == (40, 39)
    assert (found.value, found.net_value) == (214, 210)
    promised = found.analyses.funnel[1]
    assert (promised.step, promised.reached, promised.cost_per) == ("Promised", 2, 2.0)


def test_a_value_without_costs_is_net() -> None:
    found = summary(two().also(costs=None, value={"reached": 12}))
    assert (found.cost, found.cost_per_reached, found.value, found.net_value) == (
        None, None, 36, 36,
    )  # fmt: skip


def test_a_cost_for_nobody_is_infinite_null_in_json_and_said_in_words() -> None:
    nobody: dict[str, Any] = {"debt": ["noAnswer 60s"], "vip": "noAnswer 60s"}
    found = summary(two(**nobody, perDial=1))
    assert (found.cost, found.cost_per_reached) == (2, inf)
    assert json.loads(found.to_json())["cost_per_reached"] is None
    (money,) = [table for table in tables(found) if table.title == "Money"]
    assert money.columns == ("per reached",)
    assert money.rows[-1] == ("all", "nobody reached")
    free = summary(two(**nobody, perDial=0))
    # without costs and without people reached
    assert (free.cost, free.cost_per_reached) == (0, None)


def test_both_engines_come_to_the_same_money() -> None:
    prices = {"perDial": 0.1, "perMinute": 1.2, "perReached": 5, "perLineDay": 35, "fixed": 100}
    scenario = two(**prices).scenario()
    simpy, compiled = (
        dialsim.run(scenario, engine=engine).summary for engine in ("simpy", "compiled")
    )  # type: ignore[arg-type]
    assert simpy.to_dict() == compiled.to_dict()
