"""No setting is recommended that breaks a compliance rule more often than the scenario as it is."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import dialsim
from dialsim.experiments.plan_text import (
    optimum_headline,
    optimum_sentences,
    plan_headline,
    plan_sentences,
)
from dialsim.report.run_page import help_parts
from dialsim.report.sweep_page import frontier, sweep_page
from dialsim.report.what_if import AS_IT_IS, FurtherRuns, StudiedVariant, best, what_would_help
from dialsim.scenario.scenario import Scenario
from dialsim.studio.questions import MOST_PAIRS, Question, answered
from dialsim.testing import Sketch

SCHEDULE = "organizations.Acme.campaigns.January.schedule"
LINES = "organizations.Acme.maxConcurrentCalls"
INTERVAL, ATTEMPTS = f"{SCHEDULE}.retryInterval", f"{SCHEDULE}.maxAttempts"
ONCE = {"name": "one a day", "perDay": 1}


def scenario(
    *rules: dict[str, Any], people: int = 16, lines: int = 4, windows: str = "daily 08:00-20:00",
    attempts: int = 3, interval: str = "24h",
) -> Scenario:  # fmt: skip
    """Calls of some minutes from a Monday morning on; half of them are answered."""
    return (
        Sketch(lines, start="5 Jan 2026 08:00")
        .also(name="Rules", compliance=list(rules))
        .behaviour("default", outcomes={"answered": 0.5, "noAnswer": 0.5}, talkTime="5m")
        .campaign("January", recipients={"count": people}, windows=windows, max_attempts=attempts,
                  retry_interval=interval)
        .scenario()
    )  # fmt: skip


def breaches(varied: Scenario, runs: int) -> Counter[tuple[str, str]]:
    """Count the breaches of a scenario in some runs, from the results directly."""
    counted = Counter[tuple[str, str]]()
    for replication in range(runs):
        for row in dialsim.run(varied, replication=replication, engine="simpy").summary.compliance:
            counted[row.rule, "outside"] += row.outside
            counted[row.rule, "repeated"] += row.repeated
    return counted


def no_more(base: Scenario, changes: Sequence[str], runs: int) -> bool:
    before, after = breaches(base, runs), breaches(base.with_(*changes), runs)
    return all(after[key] <= before[key] for key in after)


def test_the_shortest_retry_interval_is_the_shortest_that_is_allowed() -> None:
    base = scenario(ONCE)
    goal = "mean(people_reached) >= 4"
    free = dialsim.plan(scenario(), INTERVAL, "2h..24h:2h", goal, jobs=1, max_replications=20)
    assert free.value == "2h"
    found = dialsim.plan(base, INTERVAL, "2h..24h:2h", goal, jobs=1, max_replications=20)
    assert found.value == "12h"  # after a call at 08:00 that is 20:00, when the day is over
    assert no_more(base, [f"{INTERVAL}={found.value}"], found.estimate.replications)
    refused = [part.value for part in found.not_allowed]
    assert "2h" in refused
    assert set(found.to_dict()["not_allowed"]) == set(refused)
    (said,) = [text for text in plan_sentences(found) if text.startswith("Retries after 2 h: ")]
    assert said.endswith(" repeated calls on one day, not allowed by one a day.")
    assert "not allowed by one a day" in plan_headline(found)  # the neighbour


def test_of_settings_none_of_which_is_allowed_none_is_recommended() -> None:
    goal = "mean(people_reached) >= 4"
    found = dialsim.plan(scenario(ONCE), INTERVAL, "1h..6h:1h", goal, jobs=1, max_replications=30)
    assert not found.met
    assert plan_headline(found) == "No retry interval from 1 h to 6 h is allowed."
    many = dialsim.optimize(
        scenario(ONCE), {INTERVAL: "1h,2h", LINES: [4]}, minimize="mean(finish)", jobs=1,
        max_replications=12,
    )  # fmt: skip
    assert not many.met
    assert optimum_headline(many) == "None of 2 combinations is allowed."


def test_an_optimum_keeps_to_the_rules_and_lists_what_does_not() -> None:
    base = scenario(ONCE, {"name": "office", "contact": {"weekday": "08:00-20:00"}})
    found = dialsim.optimize(
        base, {INTERVAL: ["1h", "24h"], LINES: [4, 6]}, minimize="mean(finish)", jobs=1,
        max_replications=12,
    )  # fmt: skip
    assert found.best.values[0] == "1d"
    assert {part.values[0] for part in found.not_allowed} == {"1h"}
    assert not {part.values[0] for part in (*found.frontier, *found.open, *found.alike)} & {"1h"}
    assert sum("not allowed by one a day" in text for text in optimum_sentences(found)) == 2


def test_what_would_help_is_nothing_that_the_rules_forbid() -> None:
    base = scenario(ONCE, {"name": "office", "contact": {"weekday": "08:00-20:00"}}, lines=1,
                    interval="16h")  # fmt: skip
    runs = dialsim.replicate(base, 6, jobs=1).figures
    (found,) = what_would_help(base, None, [StudiedVariant(AS_IT_IS, runs)], FurtherRuns(6, jobs=1))
    assert {lever.name for lever in found.not_allowed} >= {"retries after 8 h"}
    assert not any("8 h" in lever.name for lever in found.levers)
    lever = best(found)
    assert lever in found.levers
    listed = json.dumps([getattr(part, "texts", str(part)) for part in help_parts(found, None)])
    assert "Retries after 8 h: " in listed
    assert "not allowed by one a day" in listed


def test_the_page_of_a_sweep_recommends_none_that_the_rules_forbid() -> None:
    found = dialsim.sweep(scenario(ONCE), {INTERVAL: ["24h", "1h", "30h"]}, 12, jobs=1)
    choice = frontier(found)
    forbidden = found.variants[1].name
    assert found.breaches.keys() == {forbidden}
    assert forbidden not in (*choice.best, *choice.beaten, choice.recommended)
    monday = found.differences().query("scope == 'run' and figure == 'finish_by_2026-01-05'")
    assert monday.set_index("variant")["difference"][forbidden] == 1.0
    (said, _) = found.printed()
    assert [text for text in said if forbidden in text] == []
    page = sweep_page(found, {})
    first = next(fact for fact in page.facts if fact.question == "What finishes first?")
    assert first.answer != forbidden
    assert "Not allowed" in [section.heading for section in page.sections]


def test_counts_of_a_rule_are_figures_of_goals_and_objectives() -> None:
    base = scenario(ONCE, interval="2h")
    goal = "mean(compliance.one a day.repeated) <= 0"
    found = dialsim.plan(base, INTERVAL, "2h..26h:2h", goal, jobs=1, max_replications=30)
    assert found.met
    assert found.estimate.findings[0].estimate == 0
    share = 'mean(January."compliance"."one a day".repeated / dials)'
    few = dialsim.optimize(base, {ATTEMPTS: [1, 2]}, minimize=share, jobs=1, max_replications=8)
    assert few.best.values == (1,)
    runs = dialsim.replicate(base, 3, jobs=1, figures=["compliance.one a day.people_repeated"])
    told = [
        dialsim.run(base, replication=k).summary.compliance[0].people_repeated for k in range(3)
    ]
    assert [*runs.runs["compliance_one a day_people_repeated"]] == told
    with pytest.raises(dialsim.DialsimError, match="the scenario names none of compliance"):
        dialsim.plan(scenario(), LINES, "1..2", "mean(compliance.x.repeated) <= 0")


def random_scenario(chance: random.Random) -> Scenario:
    """Some rules, some of them broken by the scenario as it is."""
    rules = [{"name": "often", "perDay": chance.choice([1, 1, 2])}]
    if chance.random() < 0.7:
        end = chance.choice(["12:00", "18:00", "20:00"])
        rules.append({"name": "hours", "contact": {"weekday": f"08:00-{end}"}})
    return scenario(
        *rules,
        people=chance.randint(5, 40),
        lines=chance.randint(1, 5),
        windows=f"daily 08:00-{chance.choice(['11:30', '18:00', '20:00'])}",
        attempts=chance.randint(1, 4),
        interval=chance.choice(["1h", "4h", "12h", "24h"]),
    )


def recommended(base: Scenario, chance: random.Random) -> list[tuple[list[str], int]]:
    """Return the advice of plans, an optimum, a sweep, levers and the studio, with their runs."""
    found: list[tuple[list[str], int]] = []
    goal = f"mean(people_reached) >= {chance.randint(1, 20)}"
    asked = {"jobs": 1, "max_replications": 20, "engine": "simpy"}
    axis = chance.choice([(INTERVAL, "1h..25h:2h"), (LINES, "1..6"), (ATTEMPTS, "1..4")])
    way = chance.choice(["smallest", "largest"])
    answer = dialsim.plan(base, *axis, goal, objective=way, **asked)
    named = {answer.value, *answer.tied, *answer.in_doubt} - {None}
    found += [
        ([f"{axis[0]}={part.value}"], part.replications)
        for part in answer.tried
        if part.value in named
    ]
    found += nearest_of(base, chance)
    vary = {INTERVAL: ["1h", "6h", "24h"], ATTEMPTS: [1, 2, 3]}
    figure = chance.choice(["people_reached", "people_reached / dials"])
    best_of = dialsim.optimize(base, vary, maximize=f"mean({figure})", **asked)
    listed = (best_of.best, *best_of.frontier, *best_of.alike, *best_of.open, *best_of.in_doubt)
    for part in {part.values: part for part in listed if best_of.met}.values():
        lines = [f"{path}={value}" for path, value in zip(vary, part.values, strict=True)]
        found.append((lines, part.estimate.replications))
    runs = dialsim.replicate(base, 6, jobs=1, engine="simpy").figures
    studied, further = StudiedVariant(AS_IT_IS, runs), FurtherRuns(6, jobs=1, engine="simpy")
    (helps,) = what_would_help(base, None, [studied], further)
    assert helps is not None
    for lever in helps.levers:
        counts = [name for name in lever.runs[0].scopes[0].values if name.endswith("_repeated")]
        for name in (*counts, *(n.replace("repeated", "outside") for n in counts)):
            if "people" not in name:
                with_it, without = (
                    sum(run.scopes[0].values[name] for run in side)
                    for side in (lever.runs, helps.base)
                )
                assert with_it <= without
    swept = dialsim.sweep(base, [AS_IT_IS, *levers_of(base, runs)], 6, jobs=1, engine="simpy")
    choice = frontier(swept)
    variant = next(v for v in swept.variants if v.name == choice.recommended)
    found.append((variant.texts, 6))
    helped = answered(Question("help", "", base, {"organization": None}), ignore, ignore)
    found.append(([*helped.lines], MOST_PAIRS))
    return found


def nearest_of(base: Scenario, chance: random.Random) -> list[tuple[list[str], int]]:
    """Return the settings that explain why a plan of lines or attempts meets no goal."""
    path, between = chance.choice([(LINES, "1..2"), (ATTEMPTS, "1..2")])
    goal = chance.choice(["mean(people_reached) >= 38", "mean(reach_share) >= 0.97"])
    asked = {"jobs": 1, "replications": 8, "max_replications": 8, "engine": "simpy"}
    answer = dialsim.plan(base, path, between, goal, **asked)
    if answer.why_not is None:
        return []
    paths = {"lines": LINES, "attempts": ATTEMPTS}
    settings = [
        {path: answer.estimate.value, paths[each.kind]: each.value}
        for each in answer.why_not.nearest
        if each.kind in paths
    ]
    return [([f"{key}={value}" for key, value in each.items()], 8) for each in settings]


def ignore(*_: object) -> None:
    """Take progress, and do nothing."""


def levers_of(base: Scenario, runs: Any) -> list[Any]:
    from dialsim.report.what_if import levers

    return levers(base, runs[0], None)


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.slow] * (k >= 1)) for k in range(30)]
)
def test_no_recommended_setting_has_more_breaches_than_the_baseline(seed: int) -> None:
    chance = random.Random(seed)
    base = random_scenario(chance)
    for changes, runs in recommended(base, chance):
        assert no_more(base, changes, runs), changes
