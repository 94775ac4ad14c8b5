"""Plans that miss a deadline name the binding constraint and the nearest settings that meet it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.program import dialsim
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.named_figures import COST
from dialsim.experiments.plan import plan
from dialsim.experiments.plan_text import plan_sentences
from dialsim.experiments.replications import replicate
from dialsim.interface.instants import parse_instant
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch
from experiments.scenarios import LIMIT, crowd

SCHEDULE = "organizations.Acme.campaigns.January.schedule"
MONDAY = "2026-12-07T00:00:00Z"  # 07:00 in Thailand
NOBODY: dict[str, Any] = {"outcomes": {"noAnswer": 1.0}}
EVERYBODY: dict[str, Any] = {"outcomes": {"answered": 1.0}}


def calling(people: int, behaviour: dict[str, Any], attempts: int = 1, **schedule: Any) -> Sketch:
    """One campaign from Monday 7 December 2026 on, from 09:00 to 20:00, with calls of a minute."""
    times = {"setupTime": "1s", "talkTime": "59s", "ringTime": {"answered": 0, "noAnswer": "20s"}}
    return (
        Sketch(4, start=MONDAY, seed=1, setup_time=None, queue_timeout="20d")
        .also(name="Weeks")
        .behaviour("default", **behaviour, **times)
        .campaign(
            "January",
            recipients={"count": people},
            windows="daily 09:00-20:00",
            max_attempts=attempts,
            **({"retry_interval": "18h"} if attempts > 1 else {}),
            **schedule,
        )
    )


def until(day: int) -> str:
    return f"p95(finish) <= 2026-12-{day:02}T13:00:00Z"


def finishes_by(scenario: Scenario, instant: str) -> bool:
    found = replicate(scenario, 8, jobs=1).figures
    end = parse_instant(instant)
    return all(run.scopes[0].values["finish"] <= end for run in found)


def test_attempts_that_need_more_calling_days_than_there_are() -> None:
    scenario = calling(10, NOBODY, 10).scenario()
    found = plan(scenario, LIMIT, (1, 20), until(15), jobs=1)
    assert found.why_not is not None
    assert found.why_not.constraint == "attempts"
    assert found.why_not.text == (
        "10 attempts need 10 calling days; there are 9 until Tue 15 Dec 20:00: lines cannot help. "
        "With 20 lines: 9 attempts, or a deadline of Wed 16 Dec 20:00, can."
    )
    assert plan_sentences(found)[0] == found.why_not.text
    assert found.why_not.text in found._repr_html_()
    nearest = found.to_dict()["why_not"]["nearest"]  # type: ignore[index]
    assert [(each["kind"], each["value"], each["sure"]) for each in nearest] == [
        ("attempts", 9, True),
        ("deadline", "2026-12-16T13:00:00.000Z", True),
    ]
    # The settings named meet the goal, and the values before them do not.
    tuesday, wednesday = "2026-12-15T13:00:00Z", "2026-12-16T13:00:00Z"
    most = scenario.with_(f"{LIMIT}=20")
    assert finishes_by(most.with_(f"{SCHEDULE}.maxAttempts=9"), tuesday)
    assert finishes_by(most, wednesday)
    assert not finishes_by(most, tuesday)


def test_an_end_that_loses_people_is_moved_with_the_deadline() -> None:
    end = "2026-12-07T13:00:00Z"
    scenario = calling(6000, EVERYBODY, end=end).scenario()
    found = plan(scenario, LIMIT, (1, 1), until(7), jobs=1).why_not
    # 11 hours are 660 calls of a minute for a line
    assert found is not None
    assert found.constraint == "end"
    assert found.text == (
        "The campaign ends Mon 7 Dec 20:00, and 5,340 people are lost with 1 line; 8 lines miss "
        "the goal, too. With 1 line: an end and a deadline of Wed 16 Dec 20:00 can."
    )


def test_too_few_lines_are_the_constraint_where_more_lines_meet_the_goal() -> None:
    found = plan(calling(2000, EVERYBODY).scenario(), LIMIT, (1, 3), until(7), jobs=1).why_not
    assert found is not None
    assert found.constraint == "lines"
    # 660 calls for a line: 2,000 people need 4
    assert found.text == (
        "3 lines can't make all calls until Mon 7 Dec 20:00. 4 lines can. "
        "With 3 lines: a deadline of Tue 8 Dec 20:00 can."
    )


@pytest.mark.parametrize("attempts", [1, 10])
def test_attempts_that_nobody_needs_are_no_constraint(attempts: int) -> None:
    scenario = calling(6000, EVERYBODY, attempts).scenario()
    found = plan(scenario, LIMIT, (1, 1), until(7), jobs=1).why_not
    assert found is not None
    assert (found.constraint, found.text) == (
        "windows",
        "The calling windows leave 11 h on 1 calling day until Mon 7 Dec 20:00; 8 lines miss the "
        "goal, too. With 1 line: a deadline of Wed 16 Dec 20:00 can.",
    )


def test_a_deadline_before_the_first_window() -> None:
    scenario = calling(10, EVERYBODY).scenario()
    found = plan(scenario, LIMIT, (1, 2), "p95(finish) <= 1h", jobs=1).why_not
    assert found is not None
    assert found.text == (
        "No calling window opens until Mon 7 Dec 08:00. "
        "With 2 lines: a deadline of Mon 7 Dec 20:00 can."
    )


def test_pauses_without_which_the_attempts_would_fit() -> None:
    paused = calling(10, NOBODY, 3).at("2026-12-08T00:00:00Z", "pause", "January")
    scenario = paused.at("2026-12-09T00:00:00Z", "resume", "January").scenario()
    found = plan(scenario, LIMIT, (1, 4), until(9), jobs=1).why_not
    assert found is not None
    assert found.constraint == "pauses"
    assert found.text == (
        "3 attempts do not fit until Wed 9 Dec 20:00: pauses and closed days leave 2 calling days, "
        "without them 3 attempts would fit: lines cannot help. "
        "With 4 lines: 2 attempts, or a deadline of Thu 10 Dec 20:00, can."
    )


def test_fewer_attempts_than_the_range_has_are_found() -> None:
    scenario = calling(10, NOBODY, 5).scenario()
    found = plan(scenario, f"{SCHEDULE}.maxAttempts", (4, 8), "mean(finish) <= 3d", jobs=1).why_not
    assert found is not None
    assert found.text.startswith("4 attempts need 4 calling days; there are 3 until Thu 10 Dec")
    assert ": lines cannot help. 3 attempts can. With 4 attempts: a deadline" in found.text


def test_nothing_is_explained_of_goals_that_are_met() -> None:
    scenario = calling(10, NOBODY, 2).scenario()
    assert plan(scenario, LIMIT, (1, 2), until(15), jobs=1).why_not is None


SOME: dict[str, Any] = {"outcomes": {"answered": 0.4, "noAnswer": 0.6}}
COSTS = {"currency": "THB", "perDial": 1, "perMinute": 2, "perLineDay": 100}


def test_people_who_are_not_reached_need_more_attempts() -> None:
    scenario = calling(60, SOME, 2).scenario()
    wanted = "mean(people_reached) >= 50"
    found = plan(scenario, LIMIT, (1, 4), wanted, jobs=1, max_replications=60).why_not
    assert found is not None
    assert found.constraint == "attempts"
    assert found.text.startswith("2 attempts reach 37.7 of 60 people on average, and 22.3 are not ")
    assert "; 32 lines miss the goal, too. With 1 line: 4 attempts can." in found.text
    more = [scenario.with_(f"{LIMIT}=1", f"{SCHEDULE}.maxAttempts={k}") for k in (3, 4)]
    reached = [replicate(each, 60, jobs=1).runs["people_reached"].mean() for each in more]
    assert reached[0] < 50 <= reached[1]


def test_more_people_than_there_are() -> None:
    scenario = calling(10, EVERYBODY).scenario()
    found = plan(scenario, LIMIT, (1, 1), "mean(people_reached) >= 12", jobs=1).why_not
    assert found is not None
    assert (found.constraint, found.reason) == ("people", "There are only 10 people")


@pytest.mark.parametrize("goal", ["mean(people_reached) >= 1900", "mean(people_lost) <= 100"])
def test_people_lost_at_the_end_need_lines_or_a_later_end(goal: str) -> None:
    end = "2026-12-07T13:00:00Z"
    scenario = calling(2000, EVERYBODY, end=end).scenario()
    found = plan(scenario, LIMIT, (1, 2), goal, jobs=1, max_replications=60).why_not
    # 660 calls of a minute for a line until the end: 3 lines reach 1,980 people
    assert found is not None
    assert found.constraint == "end"
    assert found.text == (
        "The campaign ends Mon 7 Dec 20:00, and 680 people are lost with 2 lines. 3 lines can. "
        "With 2 lines: an end at Tue 8 Dec 20:00 can."
    )
    assert plan(scenario, LIMIT, (1, 3), goal, jobs=1, max_replications=60).value == 3


def test_a_cost_limit_names_the_largest_part_of_the_cost_and_what_keeps_to_it() -> None:
    # Without an answer there are two days with calls of 10 people: 200 THB a line, 20 for dials
    scenario = calling(10, NOBODY, 2).also(costs=COSTS).scenario()
    found = plan(scenario, LIMIT, (3, 4), "mean(cost) <= 500", jobs=1, max_replications=60).why_not
    assert found is not None
    assert (found.constraint, found.text) == (
        "cost",
        "With 3 lines the cost is 620 THB on average, 600 of it for lines. 2 lines can. "
        "With 3 lines: 1 attempt can.",
    )
    (lines, attempts) = found.nearest
    assert (lines.is_own, attempts.value) == (True, 1)


def test_the_cost_of_the_reason_is_the_cost_of_the_value() -> None:
    talk = {"dist": "exponential", "mean": "60s"}
    scenario = calling(40, EVERYBODY).behaviour("default", talk_time=talk).also(costs=COSTS)
    found = plan(scenario.scenario(), LIMIT, (3, 3), "mean(cost) <= 300", jobs=1)
    runs, cost = found.estimate.runs, found.estimate.cost
    assert found.why_not is not None
    assert cost is not None
    # Expected charges, not those that the runs happened to have
    assert amount_text("cost", COST.of(runs).mean()) != amount_text("cost", cost)
    assert f"the cost is {amount_text('cost', cost)} THB on average" in found.why_not.text
    assert sum(found.estimate.cost_parts().values()) == pytest.approx(cost)


def test_other_amounts_name_what_comes_closest() -> None:
    scenario = calling(10, EVERYBODY).scenario()
    found = plan(scenario, LIMIT, (1, 2), "mean(dials) >= 11", jobs=1, max_replications=60).why_not
    assert found is not None
    assert found.text.startswith("mean(dials) is 10 with 1 line, the closest of 2 values tried.")


def test_of_lines_that_are_never_done_those_that_lose_fewest_people_come_closest() -> None:
    # 60 calls of a minute for a line within the hour: 1 line loses 240 of 300 people, 3 lose 120
    hour = "2026-01-04T18:00:00Z"
    scenario = crowd(300, expires=hour)
    found = plan(scenario, LIMIT, (1, 3), f"p95(finish) <= {hour}", jobs=1)
    assert (found.met, found.estimate.value) == (False, 3)
    lost = {part.value: part.people_lost for part in found.tried}
    assert lost == {1: 240, 2: 180, 3: 120}


@pytest.mark.usefixtures("pictures_undrawn")
def test_terminal_json_and_page_of_a_plan_explain_the_no(tmp_path: Path) -> None:
    sketch, wanted = calling(4, NOBODY, 3), until(8)
    text = (
        "3 attempts need 3 calling days; there are 2 until Tue 8 Dec 20:00: lines cannot help. "
        "With 2 lines: 2 attempts, or a deadline of Wed 9 Dec 20:00, can."
    )
    file, out = tmp_path / "weeks.yaml", tmp_path / "out"
    file.write_text(sketch.text, encoding="utf-8")
    asked = ("--vary", f"{LIMIT}=1..2", "--goal", wanted, "--jobs", "1", "--what-if", "0")
    done = dialsim("plan", str(file), *asked, "--out", str(out))
    assert (done.returncode, done.stderr) == (1, "")
    assert text in " ".join(done.stdout.split())
    document = json.loads((out / "summary.json").read_text(encoding="utf-8"))["why_not"]
    assert (document["constraint"], document["text"]) == ("attempts", text)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Why not?" in page
    assert text in page


def test_a_later_end_that_breaks_a_rule_more_often_is_not_named() -> None:
    rule = {"name": "one a day", "perDay": 1}
    sketch = calling(10, NOBODY, 6, end="2026-12-07T13:00:00Z")
    overrides = f"{SCHEDULE}.retryInterval=4h"
    for rules, kinds in (([], ["attempts", "deadline"]), ([rule], ["attempts"])):
        scenario = sketch.also(compliance=rules).scenario(overrides)
        found = plan(scenario, LIMIT, (1, 4), until(7), jobs=1).why_not
        assert found is not None
        assert [each.kind for each in found.nearest] == kinds
