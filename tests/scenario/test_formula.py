"""Formulas over recipients, whom `where`, `sort` and `first` choose (C12), and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialsim
from dialsim.engine.simulation import Simulation
from dialsim.engine.world import World
from dialsim.errors import ScenarioError
from dialsim.interface.agent import ParamSchema
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.live_engine import remaining_run
from dialsim.scenario.additions import read_campaign
from dialsim.scenario.formula import Attributes, read_formula
from dialsim.scenario.loading import loads

PEOPLE = """tel,segment,agentParams.amount,agentParams.ยอด ค้าง,agentParams.grade
0810000000,ค้างนาน,100,5,A
0810000001,ใหม่,9000,,B
0810000002,ค้างนาน,7000,8,
0810000003,,7000,0,C
"""
SCENARIO = """
value: {reached: 12}
costs: {perDial: 1}
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents:
      - name: Reminder
        analysis:
          funnel: [{step: Greeted, share: 1}]
          fields: {sure: {type: enum, enumVariant: ["yes", "no"], values: {"yes": 0.5, "no": 0.5}}}
        paramsSchema:
          amount: {type: number}
          ยอด ค้าง: {type: number}
          due: {type: number, default: 3}
          vip: {type: boolean}
    campaigns:
      - name: January
        agent: Reminder
        recipients: {file: people.csv}
        schedule: {startDateTime: 2026-01-05T02:00:00Z, maxAttempts: 3, retryInterval: 86400000}
behaviours: {default: {outcomes: {answered: 0.5, noAnswer: 0.5}, people: {concentration: 2}}}
"""


def scenario(*overrides: str, people: str = PEOPLE) -> dialsim.Scenario:
    return loads(SCENARIO, files={"people.csv": people.encode()}, overrides=overrides)


def called(*overrides: str) -> list[str]:
    return dialsim.run(scenario(*overrides)).recipients.tel.str[-1].tolist()


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], "0123"),
        (["sort=-amount"], "1230"),
        (["sort=[segment, -amount]"], "3201"),
        (["sort=[amount > 5000, '`ยอด ค้าง` if amount < 9000 else 6']"], "0312"),
        (["where=segment == 'ค้างนาน'"], "02"),
        (["where=segment != 'ใหม่' and `ยอด ค้าง` > 1", "sort=-amount"], "20"),
        (["sort=-amount", "first=2"], "12"),
        (["first=100"], "0123"),
        (["January.where=100 < amount <= 7000 or due == 4"], "23"),
    ],
)
def test_a_campaign_calls_whom_it_chooses_in_the_order_of_sort(
    overrides: list[str], expected: str
) -> None:
    assert "".join(called(*overrides)) == expected


FAULT = "organizations.0.campaigns.0.recipients"
GRADE = "(the paramsSchema of the agent can make a number of it: grade: {type: number})"
IMPOSSIBLE = (
    "is not possible: a formula has numbers, 'texts', names, + - * /, comparisons, and, or, not, "
    "if and else"
)
BAD = {
    "where=' '": f"{FAULT}.where must not be empty",
    "where=amonut > 3": f"{FAULT}.where has a fault: no recipient has amonut; did you mean amount?",
    "where=amount = 3": f"{FAULT}.where has a fault: invalid syntax at character 8: amount = 3; "
    "compare with ==",
    "where=(amount > 3": f"{FAULT}.where has a fault: '(' was never closed at character 1: "
    "(amount > 3",
    "where=amount": f"{FAULT}.where must be a condition, such as amount > 5000, and amount is a "
    "number",
    "where=amount > 9000": f"{FAULT}.where leaves none of the 4 recipients; segments are ค้างนาน "
    "and ใหม่",
    "where=segment > 5": f"{FAULT}.where has a fault: segment is a text and 5 a number, which "
    "can't be compared",
    "where=grade > 5": f"{FAULT}.where has a fault: grade is a text and 5 a number {GRADE}, which "
    "can't be compared",
    "where=3 < `ยอด ค้าง`": f"{FAULT}.where needs ยอด ค้าง, which is missing for 1 of 4 recipients, "
    "the first in people.csv:3: fill it in, or give ยอด ค้าง a default in the paramsSchema of the "
    "agent",
    "where=amount in (1, 2)": f"{FAULT}.where has a fault: (1, 2) {IMPOSSIBLE}; write segment == "
    "'a' or segment == 'b'",
    "where=amount > 5,000": f"{FAULT}.where has a fault: (amount > 5, 0) {IMPOSSIBLE}; numbers "
    "have no commas",
    "where=segment == ใหม่": f"{FAULT}.where has a fault: no recipient has ใหม่; a text is written "
    "'ใหม่'",
    "where=segment == “ใหม่”": f"{FAULT}.where has a fault: invalid character '“' (U+201C) at "
    "character 12: segment == “ใหม่”; texts have straight quotes, 'gold'",
    "where=AMOUNT > 3": f"{FAULT}.where has a fault: no recipient has AMOUNT; did you mean amount?",
    "where=amount => 3": f"{FAULT}.where has a fault: invalid syntax at character 8: amount => 3; "
    "write >= or <=",
    "where=amount > 3 AND due < 4": f"{FAULT}.where has a fault: invalid syntax at character 12: "
    "amount > 3 AND due < 4; write and, or, not",
    "where=amount > 3 and": f"{FAULT}.where has a fault: invalid syntax at the end: amount > 3 and",
    "where=ยอด ค้าง > 3": f"{FAULT}.where has a fault: invalid syntax at character 5: ยอด ค้าง > 3; "
    "a name with a space is written `ยอด ค้าง`",
    "where=agentParams.amount > 3": f"{FAULT}.where has a fault: agentParams.amount {IMPOSSIBLE}; "
    "parameters are written without agentParams",
    "sort=amount desc": f"{FAULT}.sort has a fault: invalid syntax at character 8: amount desc; a "
    "minus puts the highest first, -amount",
    "sort=-segment": f"{FAULT}.sort has a fault: segment is a text, and arithmetic needs a number",
    "first=10%": f'{FAULT}.first must be a whole number, not "10%"',
    "value.reached=10%": "value.reached has a fault: invalid syntax at the end: 10%; write 0.1 for "
    "10 %",
    "where=__import__('os').remove('x')": f"{FAULT}.where has a fault: __import__('os').remove('x')"
    " is not possible: a formula has numbers, 'texts', names, + - * /, comparisons, and, or, not, "
    "if and else",
    "sort=amount / (due - 3)": f"{FAULT}.sort divides by 0 for 4 of 4 recipients, the first in "
    "people.csv:2",
    "sort=[amount, vip]": f"{FAULT}.sort.1 needs vip, which is missing for 4 of 4 recipients, the "
    "first in people.csv:2: fill it in, or give vip a default in the paramsSchema of the agent",
    "first=0": f"{FAULT}.first must not be less than 1",
    "value.reached=much": "value.reached has a fault: no recipient has much; known here: segment, "
    "amount, `ยอด ค้าง`, grade, due and vip",
    "value.reached=0.3 * grade": "value.reached has a fault: grade is a text, and arithmetic needs "
    f"a number {GRADE}",
    "value.reached=amount if vip else 0": "value.reached needs vip, which is missing for 4 of 4 "
    "recipients, the first in people.csv:2: fill it in, or give vip a default in the paramsSchema "
    "of the agent",
    "value.reached=amount * 1e308": "value.reached must be a number of sensible size for each "
    "recipient",
    "value={funnel.Greeted: amount * vip}": "value.funnel.Greeted has a fault: vip is a condition, "
    "and arithmetic needs a number",
    "value={field.sure.yes: 2 * due if vip else due}": "value.field.sure.yes needs vip, which is "
    "missing for 4 of 4 recipients, the first in people.csv:2: fill it in, or give vip a default "
    "in the paramsSchema of the agent",
    "value={funnel.Promised: amount}": "value.funnel.Promised is no result of any agent; "
    "known here: reached, funnel.Greeted, field.sure.yes, field.sure.no",
    "January.recipients={count: 5, first: 3}": f"{FAULT}.first is for the people of a file; "
    "made-up people have a count only",
}


@pytest.mark.parametrize("override", BAD)
def test_a_bad_formula_gets_exactly_its_error(override: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        scenario(override)
    assert str(raised.value) == f"--set {override}: {BAD[override]}"


NAMES = st.sampled_from(["amount", "due", "2", "0.5"])
NUMBERS = st.recursive(
    NAMES,
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from("+-*/"), part).map(lambda p: f"({' '.join(p)})"),
        part.map(lambda p: f"-{p}"),
        st.tuples(part, st.sampled_from(["<", ">="]), part, part).map(
            lambda p: f"({p[0]} if {p[0]} {p[1]} {p[2]} or not segment == 'a' else {p[3]})"
        ),
    ),
    max_leaves=12,
)
VALUES = st.lists(
    st.tuples(st.integers(-5, 5) | st.none(), st.sampled_from(["a", "b", ""])), min_size=1
)


@given(NUMBERS, VALUES)
def test_a_formula_means_what_it_means_in_python(text: str, values: list[Any]) -> None:
    schema = {name: ParamSchema(type="number") for name in ("amount", "due")}
    codes = [{"a": 0, "b": 1, "": -1}[segment] for _, segment in values]
    columns = {"amount": [n for n, _ in values], "due": [3] * len(values)}
    people = Attributes(columns, ["a", "b"], codes, schema, len(values))
    formula = read_formula(text, people, "number")
    for row, (amount, segment) in enumerate(values):
        # TypeError: something is missing where Python needs it.
        try:
            names = {"amount": amount, "due": 3, "segment": segment}
            expected = eval(text, {"__builtins__": {}}, names)
        except (ZeroDivisionError, TypeError):
            expected = None
        try:
            (found,) = formula.values(people, np.array([row]), str)
        except ValueError:
            found = None
        assert found == (None if expected is None and found is None else pytest.approx(expected))


MANY = "tel,agentParams.amount\n" + "".join(
    f"08{number:08},{number * 7919 % 10007}\n" for number in range(9000)
)
"""More people than two blocks of draws have."""
FEW = "".join(MANY.splitlines(keepends=True)[:2001])


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_person_reacts_alike_whoever_is_chosen_and_however_sorted(engine: Any) -> None:
    def attempts(*overrides: str) -> dict[str, list[object]]:
        lines = ("lines=100000", "engine.queueLimit=unlimited", *overrides)
        result = dialsim.run(scenario(*lines, people=MANY), engine=engine)
        calls = result.calls.join(result.recipients.tel, on="recipient")
        kept = calls[["tel", "status", "call_duration_ms"]].astype(str)
        made: dict[str, list[object]] = {}
        for tel, *call in kept.itertuples(index=False):
            made.setdefault(tel, []).append(call)
        return made

    everybody = attempts()
    for choice in (["sort=-amount"], ["where=amount > 5000", "sort=amount", "first=3000"]):
        chosen = attempts(*choice)
        assert chosen == {tel: everybody[tel] for tel in chosen}
        assert len(chosen) == (9000 if len(choice) == 1 else 3000)


def test_a_formula_values_each_person_reached_by_day() -> None:
    both = [
        dialsim.run(scenario("value={reached: 0.5 * amount, funnel.Greeted: 1}"), engine=engine)
        for engine in ("simpy", "compiled")
    ]
    for result in both:
        people = result.recipients
        day = (people.reached_at.dt.tz_convert("Asia/Bangkok").dt.day - 5).dropna().astype(int)
        worth = [0.0, 0.0, 0.0]
        for recipient, reached_on in day.items():
            worth[reached_on] += 0.5 * people["agentParams.amount"][recipient] + 1
        so_far = np.cumsum(np.trim_zeros(worth, "b")).tolist()
        assert len(so_far) > 1
        assert list(result.summary.value_by_day) == pytest.approx(so_far)
        assert result.summary.value == pytest.approx(sum(worth))
    assert both[0].summary.value_by_day == both[1].summary.value_by_day


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_steps_and_fields_have_formulas_too(engine: Any) -> None:
    def value(text: str) -> float:
        result = dialsim.run(scenario(f"value={{{text}}}", people=FEW), engine=engine)
        assert result.summary.value is not None
        return result.summary.value

    result = dialsim.run(scenario("value.reached=amount", people=FEW), engine=engine)
    reached = result.recipients[result.recipients.state == "reached"]["agentParams.amount"].sum()
    # Conversations in which all people are greeted, and are sure or unsure.
    assert value("reached: amount") == value("funnel.Greeted: amount") == reached
    sure, unsure = (value(f"field.sure.{found}: amount - 7") for found in ("yes", "no"))
    assert 0 < sure < reached
    assert sure + unsure == value("reached: amount - 7")
    assert value("reached: 5, field.sure.yes: amount - 7, field.sure.no: 3") == (
        value("reached: 5") + sure + value("field.sure.no: 3")
    )


def test_a_campaign_gets_nothing_for_the_steps_of_other_agents_and_needs_no_parameters() -> None:
    second = "organizations.Acme.agents+={name: Other}"
    later = (
        "{name: Later, agent: Other, recipients: {count: 3}, "
        "schedule: {startDateTime: 2026-01-05T02:00:00Z}}"
    )
    both = scenario("value={funnel.Greeted: amount}", second, f"Acme.campaigns+={later}")
    assert [block.value for block in dialsim.run(both).summary.campaigns][1:] == [0]


def test_made_up_people_are_worth_what_their_segment_is(tmp_path: Any) -> None:
    made_up = "January.recipients={count: 400, segments: {gold: 0.5, other: 0.5}}"
    result = dialsim.run(scenario(made_up, "value.reached=10 if segment == 'gold' else 1"))
    reached = result.recipients[result.recipients.state == "reached"].segment.value_counts()
    assert result.summary.value == 10 * reached["gold"] + reached["other"]
    result.write(tmp_path / "out")


def test_parameters_stand_in_the_tables_so_that_the_chosen_are_a_list_again() -> None:
    result = dialsim.run(scenario("sort=-amount", "first=3"))
    table = result.recipients[["tel", "segment", "agentParams.amount", "agentParams.grade"]]
    again = scenario(people=table.to_csv(index=False))
    assert dialsim.run(again).recipients["agentParams.amount"].tolist() == [9000, 7000, 7000]


def test_the_choice_is_a_lever_and_days_are_figures() -> None:
    base = scenario("value.reached=amount", people=FEW)
    swept = dialsim.sweep(base, {"sort": ["-amount", "amount"], "first": [100]}, replications=3)
    day = swept.runs.groupby("sort")["value_by_day_1"].mean()
    assert day["-amount"] > 10 * day["amount"]
    affordable = dialsim.plan(
        base,
        "first",
        "100..400:100",
        "mean(cost) <= 450",
        objective="largest",
        replications=3,
    )
    assert (affordable.value, affordable.sure) == (200, True)


def test_a_campaign_that_is_added_needs_what_the_formula_needs() -> None:
    simulation = Simulation(scenario("value.reached=amount / due", "where=amount > 0"))
    world = simulation.trace.world
    now = world.scenario.clock.start
    block = {"name": "Later", "agent": "Reminder", "recipients": [{"tel": "0820000000"}]}
    with pytest.raises(ScenarioError) as raised:
        read_campaign(block, world.surroundings(0, now))
    assert str(raised.value) == (
        "campaign: recipients needs amount, which is missing for 1 of 1 recipients, the first in "
        "recipients.0: fill it in, or give amount a default in the paramsSchema of the agent"
    )
    sound = {**block, "value": {"reached": "due * 2"}}
    world.add_campaign(0, read_campaign(sound, world.surroundings(0, now)), now)
    assert world.organizations[0].campaigns[1].worth["reached"].tolist() == [6]


def test_a_run_that_goes_on_knows_what_people_are_worth() -> None:
    core = SandboxCore(scenario("value.reached=amount", "sort=-amount"))
    core.simulation.advance(hours=26)
    (block,) = World(remaining_run(core.simulation)()).organizations[0].campaigns
    assert block.worth["reached"].tolist() == [9000, 7000, 7000, 100]
