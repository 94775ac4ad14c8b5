"""Costs and values, worked by hand on scripted scenarios."""

from __future__ import annotations

import json
from math import inf

import pytest

import dialsim
from dialsim.results.summary_text import tables
from dialsim.scenario.scenario import Scenario

OPEN = (
    "[{dayOfWeek: 1, time: [{start: '09:00', end: '23:59'}]}, "
    "{dayOfWeek: 2, time: [{start: '09:00', end: '23:59'}]}]"
)
TWO = """
name: Two
costs: {currency: THB, COSTS}
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents:
      - name: Reminder
        analysis:
          funnel: [{step: Greeted, share: 1}, {step: Promised, share: 1}]
          fields: {paid: {type: boolean, values: {"true": 1, "false": 0}}}
      - name: Survey
    campaigns:
      - name: Debt
        agent: Reminder
        recipients:
          - {tel: "0810000001", script: answered 5s 55s}
          - {tel: "0810000002", script: answered 5s 115s}
          - {tel: "0810000003", script: noAnswer 60s}
        schedule: {startDateTime: 2026-01-05T02:00:00Z, timeWindows: OPEN, maxAttempts: 1}
      - name: VIP
        agent: Survey
        recipients: [{tel: "0810000004", script: answered 0s 60s}]
        schedule: {startDateTime: 2026-01-06T02:00:00Z, timeWindows: OPEN, maxAttempts: 1}
MORE
behaviours:
  default: {setupTime: 1s, outcomes: {answered: 1}}
"""


def text(costs: str, more: str = "") -> str:
    return TWO.replace("OPEN", OPEN).replace("COSTS", costs).replace("MORE", more)


def two(costs: str, more: str = "") -> Scenario:
    return dialsim.loads(text(costs, more))


def test_every_price_is_paid_for_what_it_says() -> None:
    # dials 4 × 0.1; minutes of 30 s: 60 + 120 + 60 s of talk; reached 3 × 5
    prices = "perDial: 0.1, perMinute: 1.2, billingIncrement: 30s, perReached: 5"
    found = dialsim.run(two(prices)).summary
    debt, vip = found.campaigns
    assert debt.cost == pytest.approx(3 * 0.1 + 3 * 1.2 + 2 * 5)
    assert vip.cost == pytest.approx(0.1 + 1.2 + 5)
    assert found.cost == pytest.approx(4 * 0.1 + 4 * 1.2 + 3 * 5)
    assert found.cost_per_reached == pytest.approx(found.cost / 3)
    assert (found.value, found.net_value) == (None, None)


def test_the_costs_of_the_calls_table_add_up_to_what_calls_cost() -> None:
    result = dialsim.run(two("perDial: 0.1, perMinute: 1.2, perReached: 5"))
    assert result.calls["cost"].sum() == pytest.approx(result.summary.cost)


def test_lines_are_paid_for_on_each_date_with_a_dial_and_shared_by_slot_time() -> None:
    # Monday and Tuesday with 2 lines each; slot time of Debt 61 + 121 + 61 s, of VIP 61 s
    found = dialsim.run(two("perLineDay: 35")).summary
    assert found.cost == found.organizations[0].cost == pytest.approx(2 * 2 * 35)
    debt, vip = found.campaigns
    assert debt.cost == pytest.approx(140 * 243 / 304)
    assert vip.cost == pytest.approx(140 * 61 / 304)


def test_lines_count_by_the_greatest_limit_at_a_dial_of_the_date() -> None:
    # raised on Monday after the last dial, lowered to 1 on Tuesday before the first: 2 and 1
    more = """
    timeline:
      - {at: 2026-01-05T10:00:00Z, action: setConcurrency, value: 9}
      - {at: 2026-01-06T01:00:00Z, action: setConcurrency, value: 1}
"""
    assert dialsim.run(two("perLineDay: 35", more)).summary.cost == pytest.approx(3 * 35)


def test_what_the_run_costs_is_shared_by_people() -> None:
    found = dialsim.run(two("fixed: 1000")).summary
    assert [campaign.cost for campaign in found.campaigns] == [750, 250]
    assert (found.organizations[0].cost, found.cost) == (1000, 1000)


def test_results_are_worth_what_the_value_says_and_a_campaign_may_have_its_own() -> None:
    scenario = dialsim.loads(
        text("perDial: 1"),
        overrides=[
            "value={reached: 12, funnel.Promised: 80, field.paid.true: -5}",
            "organizations.Acme.campaigns.VIP.value={reached: 40}",
        ],
    )
    found = dialsim.run(scenario).summary
    debt, vip = found.campaigns
    assert (debt.value, debt.net_value) == (2 * 12 + 2 * 80 - 2 * 5, 174 - 3)
    assert (vip.value, vip.net_value) == (40, 39)
    assert (found.value, found.net_value) == (214, 210)
    promised = found.analyses.funnel[1]
    assert (promised.step, promised.reached, promised.cost_per) == ("Promised", 2, 2.0)


def test_a_value_without_costs_is_net() -> None:
    scenario = dialsim.loads(
        text("perDial: 1"),
        overrides=["costs=", "value={reached: 12}"],
    )
    found = dialsim.run(scenario).summary
    assert (found.cost, found.cost_per_reached, found.value, found.net_value) == (
        None, None, 36, 36,
    )  # fmt: skip


def test_a_cost_for_nobody_is_infinite_null_in_json_and_said_in_words() -> None:
    overrides = [
        f"organizations.Acme.campaigns.{campaign}.recipients=[{{tel: '0810000009', "
        "script: noAnswer 60s}]"
        for campaign in ("Debt", "VIP")
    ]
    found = dialsim.run(dialsim.loads(text("perDial: 1"), overrides=overrides)).summary
    assert (found.cost, found.cost_per_reached) == (2, inf)
    assert json.loads(found.to_json())["cost_per_reached"] is None
    (money,) = [table for table in tables(found) if table.title == "Money"]
    assert money.columns == ("per reached",)
    assert money.rows[-1] == ("all", "nobody reached")
    free = dialsim.run(dialsim.loads(text("perDial: 0"), overrides=overrides)).summary
    assert (free.cost, free.cost_per_reached) == (0, None)  # nothing for nobody


def test_both_engines_come_to_the_same_money() -> None:
    scenario = two("perDial: 0.1, perMinute: 1.2, perReached: 5, perLineDay: 35, fixed: 100")
    simpy, compiled = (
        dialsim.run(scenario, engine=engine).summary for engine in ("simpy", "compiled")
    )  # type: ignore[arg-type]
    assert simpy.to_dict() == compiled.to_dict()
