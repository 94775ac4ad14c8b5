from __future__ import annotations

from functools import cache
from math import inf, nan

import numpy as np
import pytest
from scipy.stats import binomtest

import dialsim
from dialsim.experiments.intervals import (
    Difference,
    median_difference,
    paired_difference,
)
from dialsim.experiments.run_figures import RunFigures, ScopeFigures, figures_of
from dialsim.report.run_page import help_fact
from dialsim.report.what_if import (
    AS_IT_IS,
    MOST_PAIRS,
    SHORTER_RETRIES,
    FurtherRuns,
    MeasuredLever,
    StudiedVariant,
    WhatIf,
    affordable_pairs,
    best,
    effect_text,
    levers,
    what_would_help,
)
from dialsim.report.writing import run_report
from dialsim.results.result import Result
from dialsim.testing import Sketch
from report.pages import ACME, BETA, Reader, acme

pytestmark = pytest.mark.usefixtures("pictures_undrawn")


def effect(
    estimate: float,
    low: float,
    high: float,
    *,
    real: bool,
    pairs: int = 0,
    rose: int = 0,
    fell: int = 0,
    method: str = "paired t",
) -> Difference:
    p_value = 0.0 if real else 1.0
    return Difference(estimate, low, high, p_value, method, pairs, rose, fell)


@cache
def run(sketch: Sketch = ACME) -> Result:
    return dialsim.run(sketch.scenario())


def changes(result: Result, organization: str | None = None) -> dict[str, dict[str, str]]:
    scenario = result.trace.world.scenario
    return {
        lever.name: {change.path: change.text for change in lever.changes}
        for lever in levers(scenario, figures_of(result), organization)
    }


def measure(result: Result, pairs: int) -> WhatIf:
    world, place = result.trace.world, StudiedVariant(AS_IT_IS, [figures_of(result)])
    (found,) = what_would_help(world.scenario, world.seed, [place], FurtherRuns(pairs))
    assert found is not None
    return found


def test_levers_pull_lines_windows_attempts_and_retries_a_little() -> None:
    found = changes(run())
    assert [*found] == [
        "2 lines more (7)",
        "an hour more a day (19:00-20:00)",
        "one attempt more",
        "retries after 30 min",
    ]
    assert found["2 lines more (7)"] == {"organizations.0.maxConcurrentCalls": "7"}
    assert found["one attempt more"] == {
        "organizations.0.campaigns.0.schedule.maxAttempts": "3",
        "organizations.0.campaigns.1.schedule.maxAttempts": "2",
        "organizations.0.campaigns.1.schedule.retryInterval": "3600000",
    }
    assert found["retries after 30 min"] == {
        "organizations.0.campaigns.0.schedule.retryInterval": "1800000"
    }
    windows = found["an hour more a day (19:00-20:00)"][
        "organizations.0.campaigns.0.schedule.timeWindows"
    ]
    assert windows.count('"end": "20:00"') == 7


def test_lines_are_added_to_every_limit_of_the_timeline_too() -> None:
    found = changes(run(ACME.at("Mon 09:30", "setConcurrency", 3)))
    assert found["2 lines more (7)"]["organizations.0.timeline.0.value"] == "5"


def test_lines_by_time_and_plans_are_levers_where_they_are_written() -> None:
    hours = {"weekday": ["09:00-12:00", "13:00-18:00"], "holiday": "10:00-12:00"}
    planned = (
        Sketch(2, start="Mon 08:00", setup_time=None)
        .also(calendar={"ownHolidays": {"2026-01-06": "Tuesday"}})
        .having(lines={"Mon-Fri 13:00-18:00": 4})
        .campaign("A", recipients={"count": 300}, calling_hours=hours)
    )
    found = changes(run(planned))
    place = "organizations.0"
    assert found["2 lines more (4)"] == {
        f"{place}.maxConcurrentCalls": "4",
        f"{place}.lines.Mon-Fri 13:00-18:00": "6",
    }
    assert found["an hour more a day (18:00-19:00, 12:00-13:00)"] == {
        f"{place}.campaigns.0.callingHours.weekday": '["09:00-12:00", "13:00-19:00"]',
        f"{place}.campaigns.0.callingHours.holiday": '["10:00-13:00"]',
    }
    assert {lever.name for lever in measure(run(planned), 2).levers} >= set(found)


def test_the_queue_the_pace_and_the_end_are_levers_where_they_hold_a_run_back() -> None:
    end = {"end": "Mon 09:20"}
    held = acme(january=end, queue_limit="unlimited", calls_per_second=0.05)
    found = changes(run(held))
    assert found["queue of 2 calls"] == {"engine.queueLimit": "2"}
    assert found["0.1 dials a second"] == {"engine.callsPerSecond": "0.1"}
    assert list(found["endDateTime a day later"].values()) == ['"2026-01-06T02:20:00.000Z"']
    measured = measure(run(held), 2)
    assert len(measured.levers) == len(found)


PACED = (
    Sketch(10, setup_time="1s", calls_per_second=0.16)
    .behaviour("default", outcomes={"answered": 1}, ring_time={"answered": "4s"}, talk_time="55s")
    .campaign("January", recipients={"count": 300}, max_attempts=1)
)


def test_causes_that_bind_together_are_pulled_together_too() -> None:
    measured = measure(run(PACED), 2)
    names = [lever.name for lever in measured.levers]
    assert names[-1] == "2 lines more (12) and 0.32 dials a second"
    saved = {lever.name: -lever.finish.estimate for lever in measured.levers}
    alone = saved["2 lines more (12)"], saved["0.32 dials a second"]
    assert saved[names[-1]] > 3 * sum(alone)
    lever = best(measured)
    assert lever is not None
    assert lever.name == names[-1]


def test_where_a_shorter_retry_interval_is_advised_the_page_says_that_its_gain_is_optimistic() -> (
    None
):
    measured = measure(run(), 6)
    sooner = [lever.name for lever in measured.levers if lever.shortens_retries]
    assert sooner == ["retries after 30 min"]
    lever = best(measured)
    assert lever is not None
    assert lever.name == "retries after 30 min"
    assert help_fact(measured).detail.endswith(SHORTER_RETRIES)
    page = Reader(run_report(run(), pairs=6)).words
    assert page.count(SHORTER_RETRIES) == 2  # in the answer, and below the table
    once = Reader(run_report(run(PACED), pairs=2)).words
    assert SHORTER_RETRIES not in once


def test_the_organization_that_finishes_last_is_the_one_to_be_helped() -> None:
    found = changes(run(BETA))
    assert found["2 lines more (3)"] == {"organizations.1.maxConcurrentCalls": "3"}
    named = changes(run(BETA), "Acme")
    assert named["2 lines more (7)"] == {"organizations.0.maxConcurrentCalls": "7"}


def test_windows_that_last_till_midnight_are_not_made_longer() -> None:
    always = Sketch(5, setup_time=None).campaign(
        "January", recipients={"count": 120}, windows="daily 00:00-23:59"
    )
    assert not any(name.startswith("an hour more a day") for name in changes(run(always)))


@pytest.mark.parametrize(
    ("windows", "contact", "hour"),
    [
        ("daily 09:00-18:00", "08:00-20:00", "(18:00-19:00)"),
        ("daily 09:00-20:00", "08:00-20:00", "(08:00-09:00)"),
        ("Mon-Fri 08:00-20:00; Sat 09:00-20:00", "08:00-20:00", "(08:00-09:00)"),
        ("daily 08:30-19:30", "08:00-20:00", None),
    ],
)
def test_the_hour_more_is_one_in_which_the_rules_allow_calls(
    windows: str, contact: str, hour: str | None
) -> None:
    days = {"weekday": contact, "saturday": contact, "sunday": contact}
    ruled = Sketch(5, setup_time=None).also(compliance=[{"name": "hours", "contact": days}])
    found = changes(run(ruled.campaign("January", recipients={"count": 60}, windows=windows)))
    named = [name for name in found if name.startswith("an hour more a day")]
    assert named == ([] if hour is None else [f"an hour more a day {hour}"])


def test_effects_are_the_differences_of_runs_that_meet_the_same_chance() -> None:
    result = run()
    measured = measure(result, 3)
    assert measured.runs == 3 * 5
    lever = measured.levers[0]
    differences = []
    for replication in range(3):
        base = dialsim.run(ACME.scenario(), replication=replication).summary
        more = ["organizations.0.maxConcurrentCalls=7"]
        changed = dialsim.run(ACME.scenario(more), replication=replication).summary
        assert base.finish is not None
        assert changed.finish is not None
        differences.append((changed.finish - base.finish).total_seconds())
        before, after = (runs[replication].scopes[0].values["finish"]
                         for runs in (measured.base, lever.runs))  # fmt: skip
        assert before == pytest.approx(base.finish.timestamp() * 1000)
        assert after == pytest.approx(changed.finish.timestamp() * 1000)
    assert lever.finish.estimate == pytest.approx(sorted(differences)[1])
    assert [*lever.effects] == ["finish", "finish_by_2026-01-05", "people_reached", "cost"]
    assert lever.effects["finish_by_2026-01-05"].estimate == 0
    assert best(measured) in measured.levers


HOUR = 3600.0


def weighed(finish: float, *levers: tuple[str, float, float]) -> WhatIf:
    """Levers with real effects on finish (seconds) and people reached, of 1,000 within a day."""
    day = 24 * HOUR * 1000
    values = {"finish": finish * day, "people_reached": 1000, "reach_share": 0.5}
    base = RunFigures(0, 0, (ScopeFigures("run", None, None, values),))

    def real(difference: float) -> Difference:
        return effect(difference, difference - 1, difference + 1, real=difference != 0)

    return WhatIf(
        (base, base, base),
        tuple(
            MeasuredLever(
                name,
                (base, base, base),
                False,
                {"finish": real(seconds), "people_reached": real(people)},
            )
            for name, seconds, people in levers
        ),
    )


def advised(finish: float, *levers: tuple[str, float, float]) -> str | None:
    found = best(weighed(finish, *levers))
    return found and found.name


def test_advice_weighs_the_people_reached_with_the_finish() -> None:
    fewer = ("fewer people", -10 * HOUR, -170)
    lines = ("more lines", -2 * HOUR, 0)
    tries = ("more attempts", 2 * HOUR, 300)
    assert advised(1, fewer, lines, tries) == "more lines"
    assert advised(1, fewer, tries) is None
    assert advised(1, ("hardly fewer", -10 * HOUR, -9), lines) == "hardly fewer"
    assert advised(1, ("more, and hardly later", 0.2 * HOUR, 300)) == "more, and hardly later"
    # where runs don't finish, people are what is missing
    assert advised(inf, fewer, lines, ("a later end", 0, 300)) == "a later end"
    assert advised(inf, fewer, ("more lines", -inf, 0)) == "more lines"


def test_what_helps_one_thing_at_the_price_of_another_is_not_advised() -> None:
    levers = ("fewer people", -10 * HOUR, -170), ("more attempts", 2 * HOUR, 300)
    fact = help_fact(weighed(1, *levers))
    assert fact.answer == "Nothing that was tried"
    assert fact.detail.startswith("None of 2 small changes surely helps without a loss.")


def test_two_pairs_have_no_interval_and_no_advice_and_the_page_says_how_many_would() -> None:
    measured = measure(run(), 2)
    lever = next(lever for lever in measured.levers if lever.name == "retries after 30 min")
    assert (lever.finish.pairs, lever.finish.fell, lever.finish.real) == (2, 2, False)
    assert lever.finish.low == -inf
    assert effect_text("finish", lever.finish).endswith(", earlier in 2 of 2 pairs, not sure")
    assert best(measured) is None
    page = Reader(run_report(run(), pairs=2)).words
    more = (
        "2 pairs that agree may do so by chance, 6 may not: dialsim report DIR --what-if 6 makes "
        "as many, DIR being the folder of this page."
    )
    assert page.count(more) == 2  # in the answer, and above the table
    assert "What would help? Nothing that was tried" in page
    assert "± 0" not in page


@pytest.mark.slow
def test_six_pairs_are_not_too_few() -> None:
    assert "pairs that agree may do so by chance" not in Reader(run_report(run(), pairs=6)).words


def test_pairs_that_agree_are_enough_from_six_on() -> None:
    sides = [(np.full(pairs, 312.0), np.zeros(pairs)) for pairs in (2, 5, 6)]
    assert [median_difference(*both, 0.95).real for both in sides] == [False, False, True]
    # equal differences tell nothing about a mean, which rare pairs may decide
    means = [paired_difference(*both, 0.95) for both in sides]
    assert [part.real for part in means] == [False, False, False]
    assert effect_text("people_reached", means[2]) == "+312, more in 6 of 6 pairs, not sure"
    assert MOST_PAIRS == 6


def test_a_page_takes_few_runs_of_few_people_and_none_of_many() -> None:
    assert affordable_pairs(5 * 160) == 6
    assert affordable_pairs(5 * 20_000) == 3
    assert affordable_pairs(5 * 20_001) == 0
    many = acme(people=30_000, end="Mon 09:01")
    words = Reader(run_report(run(many))).words
    assert (
        "What would help? Not measured It takes 3 runs or more of each of 5 variants, which "
        "call 450,600 people; without being asked a page calls 300,000. dialsim report DIR "
        "--what-if 6 measures it, DIR being the folder of this page."
    ) in words
    assert "What would help It takes 3 runs or more" in words
    unasked = Reader(run_report(run(many), pairs=0)).words
    assert (
        "What would help? Not measured It was left out, as asked. dialsim report DIR --what-if 6 "
        "measures it, DIR being the folder of this page."
    ) in unasked


def test_a_page_on_many_runs_takes_more_pairs_within_the_budget() -> None:
    assert affordable_pairs(5 * 160, known=50) == 25
    assert affordable_pairs(5 * 160, known=8) == 8
    assert affordable_pairs(10 * 20_000, known=50) == 0


def test_one_pair_of_runs_gives_no_interval_and_is_refused() -> None:
    with pytest.raises(dialsim.DialsimError, match="pairs must be 2 or more"):
        run_report(run(), pairs=1)


def test_effects_read_as_differences_in_tables_do() -> None:
    sooner = effect(-8781.5, -9300.0, -8200.0, real=True)
    assert effect_text("finish", sooner) == ("-2 h 26 min (-2 h 35 min to -2 h 16 min), real")
    never = effect(-inf, nan, nan, real=True, pairs=6, fell=6)
    assert effect_text("finish", never) == "earlier in 6 of 6 pairs, real"
    assert effect_text("people_reached", effect(143.2, 131.0, 155.4, real=True)) == (
        "+143.2 ± 12.2, real"
    )
    by_friday = effect(0.031, 0.027, 0.035, real=False)
    assert effect_text("finish_by_2026-01-09", by_friday).startswith("+3.1 points (")


def test_a_run_with_an_added_campaign_has_no_levers_for_its_text_is_not_the_whole() -> None:
    simulation = dialsim.Simulation(ACME.scenario())
    owner = simulation.trace.world.organizations[0]
    people = {"name": "Added later", "agent": owner.settings.agents[0].name, "recipients": []}
    simulation.add_campaign(people, owner.name)
    result = Result(simulation.run())
    page = Reader(run_report(result))
    assert "Added later" in page.words
    assert "What would help? Not measured This run did not go as its scenario says" in page.words
    assert "--what-if" not in page.words


def test_the_pairs_of_one_run_are_the_fewest_that_the_sign_test_can_tell() -> None:
    few, most = (binomtest(count, count).pvalue for count in (MOST_PAIRS - 1, MOST_PAIRS))
    assert most < 0.05 <= few
