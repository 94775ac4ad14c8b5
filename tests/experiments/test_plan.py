"""Plans: exact where a pencil is, the same as trying everything, and honest about doubt."""

from __future__ import annotations

import random
from math import ceil, inf, log

import pytest

from dialsim.experiments.axis import make_axis
from dialsim.experiments.evidence import Evidence, weigh
from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.goal import read_goal
from dialsim.experiments.plan import plan
from dialsim.experiments.replications import replicate
from dialsim.experiments.search import cheapest, smallest
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.scenario.loading import with_overrides
from experiments.scenarios import CHANCY, LIMIT, START, crowd

MINUTE = 60_000


@pytest.mark.parametrize(("people", "minutes"), [(40, 7), (41, 10), (37, 1), (12, 12), (60, 9)])
def test_a_plan_is_exact_where_every_call_lasts_a_minute(people: int, minutes: int) -> None:
    # n calls of D on c slots are done at ⌈n/c⌉·D, so the smallest c is ⌈n / ⌊T/D⌋⌉
    until = format_instant(parse_instant(START) + minutes * MINUTE)
    found = plan(crowd(people), LIMIT, (1, 70), f"p95(finish) <= {until}", jobs=1)
    slots = next(c for c in range(1, 71) if ceil(people / c) <= minutes)
    assert (found.value, found.met, found.evidence.sure) == (slots, True, True)
    assert found.warnings == ()
    if slots > 1:
        assert (found.neighbour.value, found.neighbour.met) == (slots - 1, False)
        assert found.neighbour.sure
    else:
        assert found.neighbour is None


@pytest.mark.parametrize("case", range(10))
def test_a_plan_finds_what_trying_everything_finds(case: int) -> None:
    chance = random.Random(case)
    scenario = crowd(chance.randint(10, 40), **CHANCY, attempts=chance.choice([1, 2]))
    minutes = chance.randint(6, 40)
    text = chance.choice(
        [
            f"p{chance.choice([50, 80, 90])}(finish) <= {minutes}m",
            f"mean(finish) <= {minutes}m",
            f"prob(January.finish <= {minutes}m) >= 0.7 and mean(people_reached) >= 3",
        ]
    )
    count = 8
    goal = read_goal(text, scenario)
    tried = [
        weigh(slots, goal, replicate(varied, count, jobs=1).figures, 0.95)
        for slots in range(1, 16)
        for varied in [with_overrides(scenario, [f"{LIMIT}={slots}"])]
    ]
    meeting = [evidence.value for evidence in tried if evidence.met]
    found = plan(scenario, LIMIT, (1, 15), text, replications=count, max_replications=count, jobs=1)
    assert found.value == (min(meeting) if meeting else None)
    assert found.met == bool(meeting)


def test_nothing_that_meets_the_goal_is_an_answer_too() -> None:
    found = plan(crowd(40), LIMIT, (1, 8), "p95(finish) <= 2m", jobs=1)
    assert (found.value, found.met) == (None, False)
    assert found.evidence.value == 8
    assert "8 comes closest" in found._repr_html_()


def test_c7_lines_that_lose_people_to_the_end_date_do_not_finish_by_then() -> None:
    # 120 calls of a minute within the hour take 2 lines; with 1 line half of the people expire
    hour = "2026-01-04T18:00:00Z"
    scenario = crowd(120, expires=hour)
    found = plan(scenario, LIMIT, (1, 6), f"p95(finish) <= {hour}", jobs=1)
    assert (found.value, found.neighbour.value) == (2, 1)
    assert found.neighbour.findings[0].estimate == inf
    final = plan(scenario, LIMIT, (1, 6), f"p95(final_at) <= {hour}", jobs=1)
    assert final.value == 1


def test_the_largest_value_and_the_latest_start_are_found() -> None:
    late = plan(
        crowd(40, 4),
        "organizations.Acme.campaigns.January.schedule.startDateTime",
        (START, "2026-01-04T23:00:00Z"),
        "p95(finish) <= 2026-01-04T20:30:00Z",
        step="10m",
        objective="largest",
        jobs=1,
    )
    assert late.value == "2026-01-04T20:20:00.000Z"
    assert late.neighbour.value == "2026-01-04T20:30:00.000Z"


def test_durations_are_varied_and_written_as_durations() -> None:
    longest = plan(
        crowd(40, 4),
        "behaviours.default.talkTime",
        "10s..5m:1s",
        "p95(finish) <= 20m",
        objective="largest",
        jobs=1,
    )
    assert (longest.value, longest.neighbour.value) == ("1m59s", "2m")


def test_the_cheapest_value_costs_no_more_than_any_other_that_meets_the_goal() -> None:
    # 2 THB a minute and 1 a dial: the more attempts, the dearer, and the more people reached
    scenario = crowd(40, 20, **CHANCY)
    path = "organizations.Acme.campaigns.January.schedule.maxAttempts"
    goal = "mean(people_reached) >= 20"
    found = plan(scenario, path, (1, 5), goal, objective="cheapest", jobs=1)
    fewest = plan(scenario, path, (1, 5), goal, jobs=1)
    assert found.value == fewest.value
    costs = {evidence.value: evidence.cost for evidence in found.tried if evidence.met}
    assert found.evidence.cost == min(costs.values())
    with pytest.raises(ExperimentError, match="the scenario names no costs"):
        plan(crowd(costs=False), LIMIT, (1, 5), goal, objective="cheapest", jobs=1)


def test_a_value_in_doubt_gets_more_runs_and_a_clear_one_does_not() -> None:
    found = plan(crowd(30, **CHANCY), LIMIT, (1, 30), "p90(finish) <= 8m", jobs=2)
    counts = {evidence.value: evidence.replications for evidence in found.tried}
    assert set(counts.values()) <= {25, 100, 400}
    assert counts[1] == 25
    assert max(counts.values()) > 25
    for evidence in found.tried:
        assert evidence.sure or evidence.replications == 400
    answer = found.to_dict()
    assert list(answer)[:3] == ["value", "met", "goal"]
    assert answer["evidence"]["findings"][0]["hits"] <= answer["evidence"]["replications"]


def test_a_plan_that_is_not_sure_says_how_many_runs_would_tell() -> None:
    found = plan(
        crowd(10, **CHANCY), LIMIT, (20, 20), "p99(finish) <= 30m", max_replications=50, jobs=1
    )
    assert (found.met, found.evidence.sure) == (True, False)
    # all of n runs within the bound put the share above 99 % if n ≥ log(0.05 / 2 / 4) / log(0.99)
    assert log(0.05 / 2 / 4) / log(0.99) > 50 * 4
    assert found.warnings == (
        "20 meets the goal in 50 replications, which are too few to be sure of it, as they are "
        "even if all are within the bound: --max-replications 800 may tell",
    )
    settled = plan(
        crowd(10, **CHANCY), LIMIT, (20, 20), "p99(finish) <= 30m", max_replications=800, jobs=1
    )
    assert (settled.evidence.sure, settled.warnings) == (True, ())


def test_a_value_close_to_the_goal_is_told_to_need_more_runs_or_more_to_spare() -> None:
    asked = {"replications": 10, "max_replications": 20, "jobs": 1}
    scenario = crowd(10, **CHANCY)
    middle = replicate(scenario, 20, jobs=1).runs["finish_seconds"].median()
    found = plan(scenario, LIMIT, (4, 4), f"p50(finish) <= {middle + 1:.0f}s", **asked)
    assert (found.met, found.evidence.sure) == (True, False)
    assert found.warnings[0].endswith(
        "too few to be sure of it: --max-replications 80 may tell, or take a value with more to "
        "spare"
    )


def test_a_seed_that_varies_can_not_be_given_as_well() -> None:
    with pytest.raises(ExperimentError, match="the seed varies"):
        plan(crowd(), "seed", (1, 3), "mean(people_reached) >= 1", seed=1, jobs=1)


class Response:
    """A search over 0 to 40 whose response is given, and which counts what it is asked."""

    def __init__(self, meeting: set[int], costs: list[float] | None = None) -> None:
        self.axis = make_axis("0", "40")
        self.meeting = meeting
        self.costs = costs
        self.warnings: list[str] = []
        self.indices: list[int] = []

    def try_all(self, indices: object) -> None:
        self.indices = sorted({*self.indices, *indices})

    def met(self, index: int) -> bool:
        self.try_all([index])
        return index in self.meeting

    def at(self, index: int) -> Evidence:
        cost = self.costs[index] if self.costs else None
        return Evidence(index, self.met(index), True, 1, (), cost)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.mark.parametrize("first", range(41))
def test_bisection_finds_the_first_of_all_that_meet_a_goal_with_few_tries(first: int) -> None:
    response = Response(set(range(first, 41)))
    assert smallest(response, range(41)) == first
    assert response.warnings == []
    assert len(response.indices) <= 18


@pytest.mark.parametrize("last", range(41))
def test_bisection_finds_the_last_of_all_that_meet_a_goal(last: int) -> None:
    assert smallest(Response(set(range(last + 1))), range(40, -1, -1)) == last


def test_a_response_that_goes_up_and_down_is_told() -> None:
    response = Response({*range(6, 16), *range(30, 41)})
    found = smallest(response, range(41))
    assert found == 6
    assert response.warnings
    assert "the response is not monotone" in response.warnings[0]
    middle = Response(set(range(8, 14)))
    assert smallest(middle, range(41)) == 8
    assert middle.warnings


def test_the_cheapest_is_found_in_a_valley() -> None:
    costs = [abs(index - 23) + 1.0 for index in range(41)]
    assert cheapest(Response(set(range(41)), costs)) == 23
    assert cheapest(Response(set(range(27, 41)), costs)) == 27
