"""A planner's words in goals, ranges, sweeps and plans."""

from __future__ import annotations

import pytest

from dialsim.errors import ExperimentError
from dialsim.experiments.goal import read_goal
from dialsim.experiments.optimum import optimize
from dialsim.experiments.plan import plan
from dialsim.experiments.sweep import sweep
from dialsim.experiments.variants import read_amount, read_range, read_vary, variants_of
from dialsim.interface.instants import parse_instant
from experiments.scenarios import LIMIT, crowd

CROWD = crowd(12)  # calling begins on Monday 5 January 2026, 00:00 in Thailand

BOUNDS = {
    "Fri 18:00": "2026-01-09T11:00:00Z",
    "Tue 6 Jan 19:00": "2026-01-06T12:00:00Z",
    "2026-01-09 18:00": "2026-01-09T11:00:00Z",
}


@pytest.mark.parametrize("words", BOUNDS)
@pytest.mark.parametrize("form", ["p95(finish) <= {}", "prob(January.finish < {}) >= 95%"])
def test_the_bound_of_a_goal_may_be_in_words(form: str, words: str) -> None:
    (clause,) = read_goal(form.format(words), CROWD).clauses
    (same,) = read_goal(form.format(BOUNDS[words]), CROWD).clauses
    assert clause.bound.value == same.bound.value == parse_instant(BOUNDS[words])
    assert (clause.bound.words, same.bound.words) == (words, "")


def test_a_goal_counts_days_from_the_day_on_which_calling_begins() -> None:
    later = CROWD.with_("January.start=Thu 09:00")
    (clause,) = read_goal("p95(finish) <= Tue 18:00", later).clauses
    assert clause.bound.value == parse_instant("2026-01-13T11:00:00Z")


REFUSED = {
    "p95(finish) <= Frii 18:00": 'Frii 18:00 must name a day, which "Frii" in "Frii 18:00" is not; '
    "did you mean Fri?",
    "p95(finish) <= Fri": 'Fri needs a time: "Fri 18:00", for instance, Thai time',
    "p95(finish) <= 18:00": '18:00 needs a day: "Mon 18:00" or "2026-01-05 18:00", for instance',
    "p95(finish) <= 2026-01-09": '2026-01-09 needs a time: "2026-01-09 18:00", for instance, '
    "Thai time",
    "p95(finish) <= Fri 25:00": 'Fri 25:00 must have a time from 00:00 to 23:59, which "Fri 25:00" '
    "has not",
    "p95(finish) <= Mon 6 Jan 18:00": 'Mon 6 Jan 18:00 must name one day, but "Mon 6 Jan 18:00" '
    "does not: 6 Jan 2026 is a Tuesday",
    "p95(finish) <= Mon 00:00": "Mon 00:00 is Mon 5 Jan 2026 00:00, and calling begins at "
    "Mon 5 Jan 2026 00:00; for a later week write the date, 2026-01-12 00:00",
    "p95(finish) <= 2025-12-01 18:00": "2025-12-01 18:00 is Mon 1 Dec 2025 18:00, and calling "
    "begins at Mon 5 Jan 2026 00:00; for a later week write the date, 2026-01-05 18:00",
    "p95(finish) <= 95%": "finish is no share, so it can't be compared with 95%",
    "mean(people_reached) >= 95%": "people_reached is no share, so it can't be compared with 95%",
    "mean(reach_share) >= Fri 18:00": "reach_share is compared with a number, not with "
    "2026-01-09T11:00:00.000Z",
}


@pytest.mark.parametrize("text", REFUSED)
def test_words_in_a_goal_that_say_nothing_get_exactly_this_error(text: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        read_goal(text, CROWD)
    assert str(refused.value) == f"goal {text}: {REFUSED[text]}"


def test_amounts_and_ranges_are_read_in_words() -> None:
    day = CROWD.first_day
    assert read_amount("95%").plain == 0.95
    assert read_amount("Tue 09:00", day).text == "2026-01-06T02:00:00.000Z"
    whole = read_range("Tue 09:00..Tue 11:00", day)
    stepped = read_range("2026-01-06 09:00..Tue 6 Jan 11:00:2h", day)
    assert whole is not None
    assert stepped is not None
    assert [stepped[k].text for k in range(len(stepped))] == [whole[k].text for k in (0, 2)]
    assert read_vary("x=30%..50%:10%", day) == ("x", ["0.3", "0.4", "0.5"])


@pytest.mark.parametrize("text", ["Debt.windows+=1..3", "Debt.callerIds-=1..3"])
def test_a_plan_does_not_vary_what_is_added_to_a_list(text: str) -> None:
    with pytest.raises(ExperimentError, match="use dialsim sweep"):
        plan(CROWD, dict([read_vary(text)]), "p95(finish) <= 1h", jobs=1)


def test_a_sweep_of_what_is_added_begins_with_the_scenario_as_it_is() -> None:
    variants = variants_of("January.windows-=Sat,Sun", CROWD.first_day)
    assert [variant.name for variant in variants] == ["as is", "windows-=Sat", "windows-=Sun"]
    found = sweep(CROWD, variants, 2, jobs=1)
    assert list(found.runs["variant"].unique()) == ["as is", "windows-=Sat", "windows-=Sun"]


@pytest.mark.slow
def test_a_plan_with_words_is_the_plan_with_their_meaning() -> None:
    words = plan(CROWD, "lines", (1, 5), "p95(finish) <= Mon 00:04", jobs=1)
    full = plan(CROWD, LIMIT, (1, 5), "p95(finish) <= 2026-01-04T17:04:00Z", jobs=1)
    assert (words.value, words.path, words.between) == (3, LIMIT, (1, 5))
    assert words.estimate.findings[0].estimate == full.estimate.findings[0].estimate
    start = plan(CROWD, "January.start", "Mon 00:00..Mon 06:00", "p95(finish) <= Mon 05:00",
                 objective="largest", jobs=1)  # fmt: skip
    assert start.value == "2026-01-04T21:00:00.000Z"  # 12 calls of a minute on 4 lines: 3 minutes


def test_a_plan_varies_how_many_caller_ids_there_are() -> None:
    found = plan(CROWD, "January.callerIds", "1..3", "mean(people_reached) >= 12", jobs=1)
    assert found.value == 1
    assert found.path == "organizations.Acme.campaigns.January.schedule.callerIds"


def test_a_plan_over_several_settings_takes_short_paths_and_no_lists() -> None:
    found = optimize(
        CROWD, {"lines": "2,3", "January.start": "Mon 00:00,Mon 01:00"}, "p95(finish) <= Mon 00:04",
        replications=2, max_replications=2, jobs=1,
    )  # fmt: skip
    assert found.paths == ("lines", "January.start")
    assert found.best.name.startswith("3 lines")
    with pytest.raises(ExperimentError, match="use dialsim sweep"):
        optimize(CROWD, {"January.windows-": "Sat"}, "p95(finish) <= 1h")
    with pytest.raises(ExperimentError, match="are the same setting"):
        optimize(CROWD, {"lines": "2,3", LIMIT: "2,3"}, "p95(finish) <= 1h")
