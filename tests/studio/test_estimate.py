"""Estimates: the very figures of the command line, soon, and whatever happens to the workers."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import dialsim
from cli.program import dialsim as program
from dialsim.errors import DialsimError
from dialsim.experiments.pool import Pool
from dialsim.experiments.run_figures import RunFigures
from dialsim.interface.instants import short_text
from dialsim.results.time_use import StepFunction
from dialsim.studio.estimate import Estimate, EstimateAnswer, Estimator, LineBands, LineMeans
from dialsim.studio.state import StudioState
from studio.saving import saved

FIRST = Path(__file__).parents[2] / "scenarios/first-campaign.yaml"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool(1)
    yield pool
    pool.close()


@pytest.fixture
def estimator(pool: Pool) -> Iterator[Estimator]:
    estimator = Estimator(pool, limit=4)
    yield estimator
    estimator.close()


@pytest.fixture(scope="module")
def small() -> StudioState:
    return StudioState.of(FIRST).set("people", "300")


def rows(document: dict[str, object]) -> dict[str, dict[str, object]]:
    """The estimates of the whole run in a document, without what only documents have."""
    estimates = document["estimates"]
    assert isinstance(estimates, list)
    return {row["figure"]: row for row in estimates if row["scope"] == "run"}


def texts(figures: Sequence[RunFigures]) -> list[str]:
    """All figures of runs; NaN is NaN there."""
    return [run.to_text() for run in figures]


def plain(value: object) -> object:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def test_the_figures_are_those_of_replicate_to_the_digit(
    estimator: Estimator, small: StudioState
) -> None:
    estimate = estimator.ask(small.scenario).final()
    expected = rows(dialsim.replicate(small.scenario, 4, jobs=1).to_dict())
    for name, row in estimate.figures.items():
        assert {key: plain(value) for key, value in row.items()}.items() <= expected[name].items()
    assert set(estimate.figures) == set(expected)


def test_the_saved_file_has_the_same_figures_on_the_command_line(
    estimator: Estimator, small: StudioState, tmp_path: Path
) -> None:
    state = small.set("lines", "7").set("January.windows", "Mon-Sat 09:00-12:00")
    estimate = estimator.ask(state.scenario).final()
    file = saved(state, tmp_path)
    said = program("run", file, "--replications", "4", "--jobs", "1", "--format", "json")
    found = rows(json.loads(said.stdout))
    for name in ("finish_seconds", "people_reached", "cost", "lines_in_use_mean"):
        for part in ("mean", "mean_low", "mean_high", "p50", "p95"):
            assert plain(estimate.figures[name][part]) == found[name][part]


def test_estimates_come_with_more_and_more_runs(estimator: Estimator, small: StudioState) -> None:
    told: list[int] = []
    answer = estimator.ask(small.set("lines", "9").scenario, lambda a: told.append(runs(a)))
    seen = [estimate.runs for estimate in answer]
    assert seen == sorted(set(seen))
    assert seen[-1] == 4
    end = time.monotonic() + 30
    # the waiting thread may wake before the callback has run
    while 4 not in told and time.monotonic() < end:
        time.sleep(0.01)
    assert told == sorted(set(told))
    assert set(seen) <= set(told)


def runs(answer: EstimateAnswer) -> int:
    return 0 if answer.latest is None else answer.latest.runs


def test_an_estimate_says_what_the_report_says(estimator: Estimator, small: StudioState) -> None:
    estimate = estimator.ask(small.scenario).final()
    half = dialsim.replicate(small.scenario, 4, jobs=1).runs["finish"].sort_values().iloc[1]
    when = short_text(round(half.timestamp() * 1000))
    assert estimate.sentence == f"Half of the runs are done by {when} Thai time"
    questions = [fact.question for fact in estimate.facts]
    assert questions == [
        "Will it finish?",
        "How sure is that?",
        "Whom does it reach?",
        "What holds it back?",
        "What does it cost?",
    ]
    fan = estimate.fan
    assert len(fan.share) == len(fan.at[50])
    assert (fan.at[5] <= fan.at[95]).all()
    lines = estimate.lines
    assert lines.at[0] == estimate.scenario.clock.start
    assert lines.allowed.max() == 10
    assert (lines.mean <= 10).all()
    shares = [row["mean"] for row in estimate.reach]
    assert shares == sorted(shares)
    assert len(shares) == 3
    cost, finish = estimate.cost_and_finish
    assert (len(cost), len(finish)) == (4, 4)


def test_differences_are_those_of_a_comparison(estimator: Estimator, small: StudioState) -> None:
    other = small.set("lines", "12")
    base = estimator.ask(small.scenario, role="baseline").final()
    found = estimator.ask(other.scenario).final().minus(base)
    scenarios = {"base": small.scenario, "other": other.scenario}
    table = dialsim.compare(scenarios, 4, jobs=1).differences("base")
    table = table[table["scope"] == "run"].set_index("figure")
    for name in ("finish_seconds", "finish_by_2026-01-05", "people_reached", "cost"):
        row = table.loc[name]
        difference = found[name]
        expected = [row[key] for key in ("difference", "low", "high", "p_value")]
        np.testing.assert_equal(
            [difference.estimate, difference.low, difference.high, difference.p_value], expected
        )
    assert found["finish_seconds"].fell == 4


def test_the_next_question_cancels_the_one_before(estimator: Estimator, small: StudioState) -> None:
    first = estimator.ask(small.set("lines", "4").scenario, limit=10_000)
    second = estimator.ask(small.set("lines", "5").scenario)
    assert first.is_cancelled
    assert second.final().runs == 4
    assert [*first][-1:] in ([], [first.latest])
    with pytest.raises(DialsimError, match="was cancelled"):
        first.final()


def test_what_was_known_is_there_at_once(estimator: Estimator, small: StudioState) -> None:
    before = estimator.ask(small.set("lines", "6").scenario).final()
    estimator.ask(small.set("lines", "5").scenario).final()
    again = [*estimator.ask(small.set("lines", "6").scenario)]
    assert [estimate.runs for estimate in again] == [4]
    assert again[0].figures == before.figures


def test_a_first_answer_does_not_wait_for_refinement(pool: Pool, small: StudioState) -> None:
    many, few = Estimator(pool, limit=100_000), Estimator(pool, limit=1)
    under_way = many.ask(small.scenario)
    next(iter(under_way))
    assert few.ask(small.set("lines", "8").scenario).final().runs == 1
    assert not under_way.is_over
    many.close()


def test_the_same_from_people_on_a_list(pool: Pool) -> None:
    state = StudioState.of(FIRST.with_name("people-from-a-file.yaml"))
    found = Estimator(pool, limit=2).ask(state.set("lines", "1").scenario).final()
    expected = dialsim.replicate(state.set("lines", "1").scenario, 2, jobs=1)
    assert texts(found.replications.figures) == texts(expected.figures)


def test_a_scenario_with_nobody_in_it_is_answered(estimator: Estimator) -> None:
    state = StudioState.of(FIRST).set("people", "0")
    estimate = estimator.ask(state.scenario).final()
    assert estimate.sentence
    assert len(estimate.facts) == 5
    never = state.set("organizations.Acme.campaigns", "[]")
    assert estimator.ask(never.scenario).final().sentence == "Nothing was scheduled"


@pytest.mark.slow
def test_a_killed_worker_is_started_again(pool: Pool, small: StudioState) -> None:
    estimator, (*_, pid) = Estimator(pool, limit=60), pool.processes
    answer = estimator.ask(small.set("lines", "3").scenario)
    next(iter(answer))
    os.kill(pid, signal.SIGKILL)
    estimate = answer.final()
    assert estimate.runs == 60
    assert estimate.notes == ("A worker process was killed, and started again.",)
    expected = dialsim.replicate(small.set("lines", "3").scenario, 2, jobs=1)
    assert texts(estimate.replications.figures[:2]) == texts(expected.figures)


@pytest.mark.slow(minutes=2)
def test_memory_is_flat_over_many_changes(pool: Pool) -> None:
    psutil = pytest.importorskip("psutil")
    state, estimator = StudioState.of(FIRST).set("people", "20000"), Estimator(pool, limit=2)
    sizes = []
    for change in range(500):
        state = state.set("lines", str(10 + change % 37)).set("maxAttempts", str(1 + change % 4))
        estimator.ask(state.scenario).final()
        if change in (99, 499):
            processes = [psutil.Process(pid) for pid in (*pool.processes, os.getpid())]
            sizes.append([process.memory_info().rss for process in processes])
    (before, after) = sizes
    assert all(now <= 1.1 * then for then, now in zip(before, after, strict=True))


def use(first: int, width: int, busy: list[float]) -> LineMeans:
    column = np.array(busy, np.float32)
    opened = np.array([[first * width, (first + 2) * width]])
    return LineMeans(first, width, column, np.full(len(busy), 4, np.float32), opened)


def test_lines_of_runs_of_any_length_are_put_together() -> None:
    minute = 60_000
    short = use(62, minute, [1, 3, 5])
    long = use(12, 5 * minute, [2, 4])
    bands = LineBands.of([short, long])
    assert bands.open.tolist() == [[60 * minute, 70 * minute]]
    assert bands.width == 5 * minute
    assert np.allclose(bands.mean, [(9 / 5 + 2) / 2, 2])
    assert bands.at[0] == 12 * 5 * minute - 7 * 60 * minute
    assert np.allclose(bands.low, [9 / 5, 0])


def test_a_step_function_in_pieces_keeps_its_integral(small: StudioState) -> None:
    result = dialsim.run(small.scenario, engine="simpy")
    found = LineMeans.of(result)
    busy = StepFunction.total(use.busy for use in result.reading.lines)
    whole = np.array([[busy.at[0], busy.at[-1]]])
    assert found.open.tolist() == result.reading.part().open.tolist()
    assert found.busy.sum() * found.width == pytest.approx(busy.integral(whole), rel=1e-5)
    coarse = found.coarser(5 * found.width)
    assert coarse.busy.sum() * coarse.width == pytest.approx(busy.integral(whole), rel=1e-5)


def test_a_closed_pool_says_so(small: StudioState) -> None:
    pool = Pool(1)
    pool.close()
    with pytest.raises(DialsimError, match="the studio is closed"):
        Estimator(pool).ask(small.scenario)


def test_an_estimate_has_a_name(estimator: Estimator, small: StudioState) -> None:
    estimate = estimator.ask(small.scenario).final()
    assert isinstance(estimate, Estimate)
    assert repr(estimate) == f"<dialsim.studio.Estimate 4 of 4 runs: {estimate.sentence}>"
