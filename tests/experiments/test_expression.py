"""Expressions of figures: their values, units, and errors."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import dialsim
from dialsim.errors import DialsimError, ExperimentError
from dialsim.experiments.expression import Expression, read_expression
from dialsim.experiments.goal import judge, read_goal
from dialsim.experiments.intervals import Values
from dialsim.experiments.optimum import read_objective
from dialsim.experiments.plan import plan
from dialsim.experiments.plan_text import plan_sentences
from dialsim.experiments.run_figures import RunFigures, ScopeFigures
from dialsim.results.figures import NUMBERS, Unit
from dialsim.testing import Sketch

FUNNEL = [{"step": "Greeted", "share": 1}, {"step": "Promised to pay", "share": 0.4}]
PAID = {"paid": {"type": "boolean", "values": {"true": 0.3, "false": 0.7}}}
SKETCH = (
    Sketch(4, setup_time=None)
    .also(costs={"currency": "THB", "perDial": 0.5, "perMinute": 1.2}, value={"reached": 12})
    .agent("Reminder", analysis={"funnel": FUNNEL, "fields": PAID})
    .agent("Survey", analysis={"funnel": [{"step": "Greeted", "share": 0.9}]})
    .campaign("Debt", recipients={"count": 40}, agent="Reminder", max_attempts=2)
    .campaign("VIP list", recipients={"count": 30}, agent="Survey", max_attempts=2)
    .campaign("ทวงหนี้.1", recipients={"count": 10}, agent="Survey", max_attempts=2)
)
SCENARIO = SKETCH.scenario()
START = 1_767_578_400_000
PLACES = [(None, None), ("Acme", None), ("Acme", "Debt"), ("Acme", "VIP list"),
          ("Acme", "ทวงหนี้.1")]  # fmt: skip


def a_run(**values: float | dict[tuple[str | None, str | None], float]) -> RunFigures:
    """A run in which figures have these values, of a place each or of every place."""
    scopes = []
    for number, place in enumerate(PLACES):
        own = {
            name: given.get(place, 0.0) if isinstance(given, dict) else given
            for name, given in values.items()
        }
        scopes.append(ScopeFigures(["run", "organization"][number > 0], *place, own))
    return RunFigures(0, START, tuple(scopes))


def read(text: str) -> Expression:
    return read_expression(text, SCENARIO)


def value(text: str, **values: float | dict[tuple[str | None, str | None], float]) -> float:
    return float(read(text).of([a_run(**values)])[0])


def test_a_figure_is_divided_by_another_in_each_run() -> None:
    runs = [a_run(cost=cost, people_reached=n) for cost, n in ((90, 3), (80, 4), (0, 5))]
    assert read("cost / people_reached").of(runs).tolist() == [30, 20, 0]


def test_a_cost_for_nobody_is_infinite_and_nothing_for_nobody_has_no_value() -> None:
    assert value("cost / people_reached", cost=9, people_reached=0) == inf
    assert value("-cost / people_reached", cost=9, people_reached=0) == -inf
    assert isnan(value("cost / people_reached", cost=0, people_reached=0))


def test_campaigns_are_named_without_quotes_or_with_them() -> None:
    own = {("Acme", "Debt"): 5.0, ("Acme", "VIP list"): 7.0, ("Acme", "ทวงหนี้.1"): 2.0}
    for text in (
        "Debt.dials - VIP list.dials * ทวงหนี้.1.dials",
        """Debt.dials - 'VIP list'.dials * "ทวงหนี้.1".dials""",
        "Acme/Debt.dials-Acme/'VIP list'.dials*Acme/ทวงหนี้.1.dials",
    ):
        assert value(text, dials=own) == 5 - 7 * 2


def test_steps_and_values_are_named_as_in_the_file_and_added_up_over_agents() -> None:
    counts = {
        "funnel_Reminder_Greeted": 10.0, "funnel_Survey_Greeted": 4.0,
        "funnel_Reminder_Promised to pay": 3.0, "field_Reminder_paid_true": 2.0,
    }  # fmt: skip
    for text, expected in {
        "funnel.Greeted": 14,
        "funnel.Survey.Greeted": 4,
        "Debt.funnel.Greeted": 10,
        "VIP list.funnel.Greeted": 4,
        "funnel.Promised to pay / funnel.Reminder.Greeted": 0.3,
        "funnel.'Promised to pay'": 3,
        "field.paid.true": 2,
        "funnel_Reminder_Greeted": 10,
    }.items():
        assert value(text, **counts) == pytest.approx(expected)


def test_times_are_brought_to_one_unit_and_instants_make_times() -> None:
    times = {"talk_minutes": 3.0, "queue_wait_mean_seconds": 30.0}
    assert value("talk_minutes + queue_wait_mean_seconds", **times) == 3.5
    assert value("queue_wait_mean_seconds + talk_minutes", **times) == 210
    assert value("talk_minutes / queue_wait_mean_seconds", **times) == 6
    assert value("talk_minutes - 1h30m", **times) == -87
    finish = {("Acme", "Debt"): START + 7_200_000.0, ("Acme", "VIP list"): START + 1_800_000.0}
    assert value("Debt.finish - VIP list.finish", finish=finish) == 5400
    assert value("VIP list.finish - Debt.finish", finish=finish) == -5400
    assert value("Debt.finish + 2h", finish=finish) == START + 4 * 3_600_000
    assert value("2h + Debt.finish - 30m", finish=finish) == START + 3.5 * 3_600_000
    assert value("Debt.finish + talk_minutes", finish=finish, talk_minutes=1) == START + 7_260_000


UNITS = {
    "cost": (Unit.CURRENCY, "THB"),
    "cost / people_reached": (Unit.PER_PERSON, "THB per person"),
    "cost_per_reached": (Unit.PER_PERSON, "THB per person"),
    "cost / people_reached * people_lost": (Unit.CURRENCY, "THB"),
    "cost / funnel.Greeted": (Unit.PER_CONVERSATION, "THB per conversation"),
    "cost + 30 THB * people_lost": (Unit.CURRENCY, "THB"),
    "cost - 5000": (Unit.CURRENCY, "THB"),
    "cost / talk_minutes": (Unit.NO_NUMBER, "THB per min"),
    "people_reached / people": (Unit.SHARE, "share"),
    "cost / value": (Unit.SHARE, "share"),
    "reach_share * people": (Unit.PEOPLE, "people"),
    "attempts / people": (Unit.NO_NUMBER, "calls per person"),
    "Debt.people + VIP list.people": (Unit.PEOPLE, "people"),
    "people + calls": (Unit.NO_NUMBER, ""),
    "talk_minutes / calls": (Unit.NO_NUMBER, "min per call"),
    "finish - Debt.finish": (Unit.SECONDS, "s"),
    "Debt.finish + 2h": (Unit.INSTANT, ""),
    "cost * cost": (Unit.NO_NUMBER, "THB²"),
    "1 / cost": (Unit.NO_NUMBER, "1 per THB"),
}


@pytest.mark.parametrize("text", UNITS)
def test_an_expression_has_the_unit_that_its_parts_make(text: str) -> None:
    found = read(text)
    assert (found.unit, found.measure.label) == UNITS[text]


def test_what_a_figure_can_be_bounds_what_is_made_of_it() -> None:
    assert read("cost / people_reached").bounds() == (0, inf)
    assert read("value - cost").bounds()[0] == -inf
    assert read("reach_share - 1").bounds() == (-1, 0)
    assert read("1 - reach_share").bounds() == (0, 1)


NAMES = ["people", "dials", "calls", "attempts", "people_reached"]
LEAVES: SearchStrategy[str] = st.sampled_from([*NAMES, "2", "0.5", "13"])


def _wrapped(parts: SearchStrategy[str]) -> SearchStrategy[str]:
    blank = st.sampled_from(["", " ", "  "])
    combined = st.tuples(parts, blank, st.sampled_from("+-*/"), blank, parts).map("".join)
    return combined | parts.map("({})".format) | parts.map("-{}".format)


@given(st.recursive(LEAVES, _wrapped, max_leaves=12), st.lists(st.integers(-9, 9), min_size=5))
@example("people/-dials", [1, 0, 0, 0, 0])  # the negative of 0 has a sign
def test_operators_bind_as_in_python(text: str, numbers: list[int]) -> None:
    values = {name: np.float64(number) for name, number in zip(NAMES, numbers, strict=False)}
    if not any(name in text for name in NAMES):
        text = f"people + ({text})"
    try:
        with np.errstate(all="ignore"):
            expected = float(eval(text, {"__builtins__": {}}, values))
    except ZeroDivisionError:  # of plain numbers
        return
    found = read(text)
    got = float(found.of([a_run(**{name: float(v) for name, v in values.items()})])[0])
    assert got == pytest.approx(expected, nan_ok=True)
    assert found.text == text
    assert read(found.text) == found


@given(st.text(alphabet="ab(+-*/.)'\" 0123ทกี้costpeople_<", max_size=30))
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    try:
        assert read(text).figures
    except ExperimentError as error:
        said, *below = str(error).split("\n")
        assert said
        assert len(below) in (0, 2)


def test_brackets_without_end_are_no_matter_of_the_stack() -> None:
    with pytest.raises(ExperimentError, match="more than 50 brackets"):
        read("(" * 900 + "cost" + ")" * 900)
    with pytest.raises(ExperimentError, match="at most 2000 characters"):
        read("cost + " * 1000 + "cost")


REFUSED = {
    "mean(cost / people_reachd) <= 30": """
there is no figure people_reachd; did you mean people_reached?
  mean(cost / people_reachd) <= 30
              ^^^^^^^^^^^^^""",
    "mean(Dbet.cost) <= 30": """
Dbet.cost: there is no campaign or organization Dbet; did you mean Debt?
  mean(Dbet.cost) <= 30
       ^^^^""",
    "mean(VIP.cost / 2) <= 30": """
VIP.cost: there is no campaign or organization VIP; did you mean VIP list?
  mean(VIP.cost / 2) <= 30
       ^^^""",
    "mean(cost - ทวงหนี้.2.cost) <= 30": """
ทวงหนี้.2.cost: there is no campaign or organization ทวงหนี้.2; did you mean ทวงหนี้.1?
  mean(cost - ทวงหนี้.2.cost) <= 30
              ^^^^^^^""",
    "mean(Debt / VIP list.cost) <= 3": """
Debt is a campaign: name a figure of it, such as Debt.people_reached
  mean(Debt / VIP list.cost) <= 3
       ^^^^""",
    "mean(VIP list.funnel.Promised to pay) <= 3": """
there is no figure funnel.Promised; did you mean funnel.Greeted or funnel.Survey.Greeted?
  mean(VIP list.funnel.Promised to pay) <= 3
                ^^^^^^^^^^^^^^^""",
    "mean(field.payed.true) >= 3": """
there is no figure field.payed.true; did you mean field.paid.true or field.Reminder.paid.true?
  mean(field.payed.true) >= 3
       ^^^^^^^^^^^^^^^^""",
    "mean(cost + queue_wait_mean_seconds) <= 30": """
cost is money, queue_wait_mean_seconds is a time: times, money and instants can only be combined \
with their own kind; write money as 30 THB
  mean(cost + queue_wait_mean_seconds) <= 30
            ^""",
    "mean(cost + 3 * people_lost) <= 30": """
cost is money, 3 * people_lost is a number of people: times, money and instants can only be \
combined with their own kind; write money as 30 THB
  mean(cost + 3 * people_lost) <= 30
            ^""",
    "mean(finish + Debt.finish) <= 3d": """
finish is an instant, Debt.finish is an instant: two instants can't be added; their difference is \
a time
  mean(finish + Debt.finish) <= 3d
              ^""",
    "mean(finish - 5) <= 3d": """
finish is an instant, 5 is a number: an instant can only be moved by a time, such as 2h, or taken \
from another instant
  mean(finish - 5) <= 3d
              ^""",
    "mean(finish * 2) <= 3d": """
finish is an instant, 2 is a number: an instant can only be moved by a time, such as 2h, or taken \
from another instant
  mean(finish * 2) <= 3d
              ^""",
    "mean(cost / people_reached) <= 2h": """
goal mean(cost / people_reached) <= 2h: cost / people_reached is compared with a number of THB per \
person, not with 2h""",
    "mean(cost) / mean(people_reached) <= 30": """
goal mean(cost) / mean(people_reached) <= 30: a clause has one statistic, of an expression that \
has a value in each run, such as mean(cost / people_reached)
  mean(cost) / mean(people_reached) <= 30
            ^^^^^^^^^^^^^^^^^^^^^^^""",
    "mean(cost / mean(people_reached)) <= 30": """
mean(…) is of many runs, and here is what each run has: one mean(…) stands around the whole, such \
as mean(cost / people_reached)
  mean(cost / mean(people_reached)) <= 30
              ^^^^""",
    "mean((cost / people_reached) <= 30": """
this bracket is never closed
  mean((cost / people_reached) <= 30
       ^""",
    "mean(cost / people_reached)) <= 30": """
goal mean(cost / people_reached)) <= 30: a clause has one statistic, of an expression that has a \
value in each run, such as mean(cost / people_reached)
  mean(cost / people_reached)) <= 30
                             ^""",
    "mean(cost / ) <= 30": """
the expression ends where a figure or a number must be
  mean(cost / ) <= 30
              ^""",
    "mean(cost people_reached) <= 30": """
people_reached stands where an operator must be: + - * or /
  mean(cost people_reached) <= 30
            ^^^^^^^^^^^^^^""",
    "mean(5 * 3) <= 30": """
5 * 3 names no figure, such as cost or people_reached
  mean(5 * 3) <= 30
       ^^^^^""",
    "mean(cost - 5,000) <= 30": """
write numbers without commas, such as 5000
  mean(cost - 5,000) <= 30
               ^""",
    "mean(cost - 5x) <= 30": """
5x is neither a number nor a time such as 90s or 1h30m
  mean(cost - 5x) <= 30
              ^^""",
    "mean('VIP list.cost) <= 30": """
the quote ' is never closed
  mean('VIP list.cost) <= 30
       ^""",
    "prob(Debt.finish <= VIP list.finish) >= 0.9": """
goal prob(Debt.finish <= VIP list.finish) >= 0.9: VIP list.finish is not a number, a duration such \
as 30m or an instant such as Fri 18:00, 2026-01-05 09:00 or 2026-01-05T02:00:00Z""",
    "mean(__import__('os').system('ls')) <= 3": """
there is no figure __import__
  mean(__import__('os').system('ls')) <= 3
       ^^^^^^^^^^""",
}


@pytest.mark.parametrize("text", REFUSED)
def test_an_expression_that_can_not_be_read_is_told_why_and_where(text: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        read_goal(text, SCENARIO)
    assert str(refused.value) == REFUSED[text].removeprefix("\n")


def test_without_costs_or_value_there_is_no_money() -> None:
    free = SKETCH.also(costs=None, value=None).scenario()
    for name, noun in (("cost_per_reached", "costs"), ("net_value", "value")):
        with pytest.raises(ExperimentError) as refused:
            read_expression(f"{name} / people", free)
        assert str(refused.value) == (
            f"there is no figure {name}: the scenario names no {noun}\n  {name} / people\n"
            f"  {'^' * len(name)}"
        )


def test_a_goal_over_ratios_takes_the_mean_of_the_ratios_of_runs() -> None:
    # ratios 10 and 30, on average 20; the ratio of the means is 70 / 4 = 17.5
    runs = [
        replace(a_run(cost=c, people_reached=n, reach_share=1, people_lost=0), replication=k)
        for k, (c, n) in enumerate([(50.0, 5.0), (90.0, 3.0)] * 20)
    ]
    of_ratios = judge(1, read_goal("mean(cost / people_reached) <= 19", SCENARIO), runs, 0.95)
    of_means = judge(
        1, read_goal("mean(cost - 19 THB * people_reached) <= 0", SCENARIO), runs, 0.95
    )
    assert (of_ratios.met, of_ratios.findings[0].estimate) == (False, 20)
    assert of_means.met


def test_a_run_that_reaches_nobody_misses_every_cost_per_person() -> None:
    runs = [a_run(cost=50, people_reached=n) for n in [0.0] + [5.0] * 99]
    (mean,) = judge(
        1, read_goal("mean(cost / people_reached) <= 1000", SCENARIO), runs, 0.95
    ).findings
    assert (mean.met, mean.estimate) == (False, inf)
    (most,) = judge(1, read_goal("p95(cost / people_reached) <= 10", SCENARIO), runs, 0.95).findings
    assert (most.met, most.estimate) == (True, 10)


def test_a_plan_says_in_how_many_runs_an_expression_is_divided_by_nothing() -> None:
    goal = "p50(cost / (people - 80)) <= 1000"
    answer = plan(SCENARIO, "seed", "1..2", goal, replications=4, max_replications=4, jobs=1)
    assert (
        "Warning: cost / (people - 80) has no finite value in 4 of 4 runs, where it is divided by "
        "zero or an end is missing; a mean leaves out runs without any value."
    ) in plan_sentences(answer)


def test_what_is_maximized_may_be_an_expression() -> None:
    objective = read_objective("mean(value - 2 * cost)", None, SCENARIO)
    assert objective is not None
    assert objective.losses([a_run(value=50, cost=20)]).tolist() == [-10]
    with pytest.raises(ExperimentError, match=r"there is no figure vale.*\n  mean\(vale - 2\)"):
        read_objective("mean(vale - 2)", None, SCENARIO)


def test_every_figure_can_stand_in_an_expression() -> None:
    for name in NUMBERS:
        assert read(f"Debt.{name}").figures[0].name == name


def test_replications_and_sweeps_show_expressions() -> None:
    shown = ["cost / people_reached", "Debt.finish - VIP list.finish"]
    runs = dialsim.replicate(SCENARIO, 4, jobs=1, figures=shown)
    table = runs.intervals().set_index("figure")
    whole = runs.runs
    ratio: Values = (whole["cost"] / whole["people_reached"]).to_numpy()
    # the expected charges of the calls count, and not by chance long conversations
    assert table.loc[shown[0], "mean"] != pytest.approx(ratio.mean())
    assert table.loc[shown[0], "p50"] == sorted(ratio)[1]
    assert shown[1] in table.index
    found = dialsim.sweep(
        SCENARIO, "organizations.Acme.maxConcurrentCalls=2,4", 4, jobs=1, figures=shown
    )
    compared = found.differences()
    (row,) = compared[compared["figure"] == shown[0]].to_dict("records")
    assert row["mean"] == pytest.approx(table.loc[shown[0], "mean"])
    assert row["difference"] == pytest.approx(row["mean"] - row["baseline_mean"])
    with pytest.raises(DialsimError, match="did you mean cost"):
        dialsim.replicate(SCENARIO, 2, jobs=1, figures=["costt / 2"])
