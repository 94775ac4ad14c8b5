"""The workload bound: never above a run, close to it where there is nothing else, silent else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialsim.experiments.replications import replicate
from dialsim.interface.instants import parse_instant
from dialsim.results.result import run
from dialsim.results.workload import workload, workload_text
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch
from engine.chancy import chancy_scenario
from engine.readings import loaded
from experiments.scenarios import CHANCY, START, crowd

HOUR = 3_600_000


def finish(scenario: Scenario, replication: int = 0) -> float:
    """The last finish of a run in ms; infinite where a campaign does not finish."""
    summary = run(scenario, replication=replication, engine="simpy").summary
    ends = [part.finish for part in summary.campaigns if part.start is not None]
    return max(
        (float("inf") if end is None else end.timestamp() * 1000 for end in ends), default=0.0
    )


@pytest.mark.parametrize(("people", "lines"), [(1000, 4), (2500, 7), (400, 1)])
def test_without_chance_the_bound_is_the_makespan_but_for_a_few_calls(
    people: int, lines: int
) -> None:
    # n calls of a minute on c lines take n/c minutes; the bound leaves out 2/3 ln 1000 = 4.6 calls
    bound = workload(crowd(people, lines))
    assert bound is not None
    assert bound.people == people
    assert bound.line_hours == pytest.approx((people - 4.605) / 60, rel=1e-3)
    due = (people - 4.605) / lines * 60_000
    assert bound.not_before - parse_instant(START) == pytest.approx(due, rel=1e-3)
    assert bound.not_before <= finish(crowd(people, lines))


def default(people: int, lines: int, **more: Any) -> Scenario:
    """A campaign with the default behaviour and windows, and everything that may be drawn."""
    sketch = Sketch(lines, start="9 Jan 2026 09:00", setup_time=None)
    schedule = {"max_attempts": 2, **more}
    return sketch.campaign("January", recipients={"count": people}, **schedule).scenario()


def test_no_run_of_the_default_behaviour_is_done_before_the_bound() -> None:
    scenario = default(1500, 2)
    bound = workload(scenario)
    assert bound is not None
    runs = replicate(scenario, 6, jobs=1, engine="simpy")
    ends = [figures.scopes[0].values["finish"] for figures in runs.figures]
    assert bound.not_before <= min(end for end in ends if end is not None)
    # one attempt each takes little longer than the bound: it is worth something
    once = run(scenario.with_("January.maxAttempts=1"), engine="simpy")
    begin = parse_instant("2026-01-09T02:00:00Z")
    (last,) = (part.finish for part in once.summary.campaigns)
    assert last is not None
    open_hours = (last.timestamp() * 1000 - begin) / HOUR - 15  # Saturday opens at ten
    assert 0.8 * open_hours < bound.line_hours / 2 <= open_hours


@pytest.mark.parametrize("seed", range(12))
def test_no_nasty_scenario_is_done_before_its_bound(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_is_too_small(monkeypatch)
    _check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(12, 300, 12))
def test_no_nasty_scenario_of_many_is_done_before_its_bound(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_is_too_small(monkeypatch)
    for seed in range(first, first + 12):
        _check(seed)


def nothing_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report bounds that would normally be too small to mention."""
    monkeypatch.setattr("dialsim.results.workload._LEAST_HOURS", 0.0)


def _check(seed: int) -> None:
    scenario = loaded(chancy_scenario(seed, people=60))
    bound = workload(scenario)
    if bound is not None:
        assert bound.not_before <= finish(scenario)


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[pytest.mark.slow] * (n >= 3)) for n in range(6)]
)
def test_no_campaign_with_odds_of_every_kind_is_done_before_its_bound(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    odds = {
        "byHour": {"0": 0.3, "1": 2},
        "byDay": {"1": 0.8},
        "bySegment": {"vip": 2},
        "byCallerIdUse": {"per1000": 0.5, "recovery": "1d"},
        "byAttempt": [0.9, 0.5],
    }
    scenario = crowd(
        4000,
        10 + 10 * seed,
        attempts=1 + seed % 3,
        answeredOdds=odds,
        outcomes={"answered": 0.4, "noAnswer": 0.4, "failed": 0.2},
        ringTime={"answered": "5s", "noAnswer": "20s", "busy": "1s", "failed": "1s"},
        talkTime={"dist": "gamma", "mean": "90s", "sd": "120s"},
    )
    people = "behaviours.default.people={deadNumbers: 0.05, reachable: 0.7, concentration: 2}"
    scenario = scenario.with_(people)
    nothing_is_too_small(monkeypatch)
    bound = workload(scenario)
    assert bound is not None
    assert all(bound.not_before <= finish(scenario, k) for k in range(2))


def test_more_lines_during_the_day_count_from_the_beginning() -> None:
    more = crowd(2000, 4).with_("timeline+={at: Mon 03:00, action: setConcurrency, value: 10}")
    bound = workload(more)
    assert bound is not None
    assert bound.lines == 10


@pytest.mark.parametrize(
    "override",
    [
        "lines=40",  # less than an hour for each line
        "lines=0",
        "January.people=0",
        "callingAllowed=false",
        "timeline+={at: Mon 03:00, action: cancel, campaign: January}",
        "duplicateCallAlert={window: 30d}",
    ],
)
def test_the_bound_is_silent_where_it_says_nothing(override: str) -> None:
    changes = [override]
    if override.startswith("duplicate"):
        changes.append("January.removeDuplicates=true")
    assert workload_text(crowd(2000, 4).with_(*changes)) is None


def test_the_bound_is_said_in_a_line() -> None:
    assert workload_text(crowd(1000, 4)) == (
        "1,000 people need at least 16 line-hours for their first calls alone: 4 lines cannot be "
        "done before Mon 5 Jan 04:08 Thai time."
    )
    later = workload_text(default(2000, 1))
    assert later is not None
    assert later.startswith("2,000 people need at least ")
    assert ": 1 line cannot be done before Sun 11 Jan " in later


@pytest.mark.parametrize("listed", [True, False])
def test_each_segment_counts_with_its_own_odds_and_no_hour_outside_the_windows(
    listed: bool,
) -> None:
    odds = {"bySegment": {"vip": 9, "gone": 0}, "byHour": {"5": 0}}
    scenario = crowd(
        1600, 4,
        outcomes={"answered": 0.5, "noAnswer": 0.5},
        ringTime={"answered": 0, "noAnswer": "20s"},
        answeredOdds=odds,
    ).with_(
        "January.windows=Mon-Sun 09:00-18:00",
        "January.recipients.segments={vip: 0.25, gone: 0.25, other: 0.5}",
    )  # fmt: skip
    if listed:
        people = [{"tel": f"08{k:08}", "segment": ("vip", "gone", "other", "other")[k % 4]}
                  for k in range(1600)]  # fmt: skip
        scenario = scenario.with_(f"January.recipients={json.dumps(people)}")
    bound = workload(scenario)
    assert bound is not None
    # 400 of the vip answer 9 of 10 calls, 800 others every second one, 400 none
    hours = (400 * (0.9 * 60 + 0.1 * 21) + 800 * 40.5 + 400 * 21) / 3600
    assert 0.93 * hours < bound.line_hours < hours
    assert bound.not_before <= finish(scenario)


def test_people_with_a_script_or_a_history_are_not_counted_on() -> None:
    listed = [{"tel": f"08{k:08}"} | ({"script": "answered 5s 60s"} if k % 2 else {})
              for k in range(400)]  # fmt: skip
    changed = f"January.recipients={json.dumps(listed)}"
    bound = workload(crowd(1, 1, **CHANCY).with_(changed))
    assert bound is not None
    assert bound.people == 200
