"""Replications: frames, estimates and precision, and experiments whose answer is known."""

from __future__ import annotations

import os
import pickle
import re
from html import unescape
from math import inf, isnan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dialsim
from dialsim.engine import Engine
from dialsim.engine.compiled import source_digest
from dialsim.engine.world import World
from dialsim.errors import DialsimError, ExperimentError, ReplicationFailed, WorkersLost
from dialsim.experiments import replications as runner
from dialsim.experiments.experiment_text import (
    lost_sentences,
    replications_headline,
    replications_tables,
    when_text,
)
from dialsim.experiments.expression import read_expression
from dialsim.experiments.intervals import mean_interval, quantile_interval
from dialsim.experiments.named_figures import FigureName
from dialsim.experiments.pool import Workers
from dialsim.experiments.replications import Replications, replicate
from dialsim.experiments.run_spec import RunSpec, Task, run_tasks
from dialsim.interface.instants import parse_instant
from dialsim.results import figures
from dialsim.results.result import Result, result_of
from dialsim.testing import Sketch
from experiments.scenarios import CHANCY, START, crowd


@pytest.fixture(scope="module")
def runs() -> Replications:
    return replicate(crowd(60, 6, attempts=2, **CHANCY), 12, jobs=1)


def test_a_row_per_replication_and_campaign_is_what_a_single_run_says(runs: Replications) -> None:
    assert len(runs.frame) == len(runs.runs) == len(runs.organizations) == len(runs) == 12
    for replication in (0, 7):
        summary = dialsim.run(runs.scenario, replication=replication).summary
        row = runs.frame.iloc[replication]
        assert (row["replication"], row["campaign"]) == (replication, "January")
        assert row["finish"].to_pydatetime() == summary.finish
        assert row["people_reached"] == summary.people_reached
        assert row["cost"] == summary.cost
        assert row["reach_by_attempt_2"] == summary.campaigns[0].reach_by_attempt[-1]
        assert row["webhooks_without_url"] == summary.webhooks.without_url
        assert runs.origin == summary.campaigns[0].start
        seconds = (summary.finish - runs.origin).total_seconds()
        assert row["finish_seconds"] == pytest.approx(seconds)


def test_replications_differ_and_are_the_same_for_any_number_of_jobs(runs: Replications) -> None:
    again = replicate(runs.scenario, 12, jobs=2)
    pd.testing.assert_frame_equal(again.frame, runs.frame)
    pd.testing.assert_frame_equal(again.intervals(), runs.intervals())
    assert runs.frame["finish_seconds"].nunique() > 6


def test_another_seed_gives_other_runs(runs: Replications) -> None:
    other = replicate(runs.scenario, 12, seed=9, jobs=1)
    assert (other.frame["finish_seconds"] != runs.frame["finish_seconds"]).all()


def test_estimates_are_those_of_the_columns(runs: Replications) -> None:
    table = runs.intervals()
    row = table[(table["scope"] == "campaign") & (table["figure"] == "people_reached")].iloc[0]
    column = runs.frame["people_reached"].to_numpy(dtype=np.float64)
    expected = mean_interval(column, 0.95)
    assert (row["mean"], row["mean_low"], row["mean_high"]) == (
        expected.estimate,
        expected.low,
        expected.high,
    )
    assert row["p50"] == np.sort(column)[5]
    assert row["p95"] == column.max()
    with pytest.raises(ExperimentError, match="confidence must be between 0 and 1"):
        runs.intervals(confidence=95)


def test_a_table_of_estimates_is_the_askers_own(runs: Replications) -> None:
    # It is made once for each confidence: a page has many pictures of the same table
    kept, changed = runs.intervals(), runs.intervals()
    changed["mean"] = 0.0
    runs.intervals(confidence=0.5)
    pd.testing.assert_frame_equal(runs.intervals(), kept)


def test_runs_that_do_not_finish_count_as_later_than_any_instant() -> None:
    scenario = crowd(40, 3, end="2026-01-04T17:08:00Z", **CHANCY)
    cut = replicate(scenario, 20, jobs=1, figures=["mean(finish)"])
    unfinished = int(np.isinf(cut.runs["finish_seconds"]).sum())
    assert 0 < unfinished < 20
    assert int(cut.runs["finish"].isna().sum()) == unfinished
    table = cut.intervals()
    row = table[(table["scope"] == "run") & (table["figure"] == "finish_seconds")].iloc[0]
    assert (row["unfinished"], row["p95"]) == (unfinished, inf)
    assert isnan(row["mean"])
    mean = table.iloc[-1]
    assert (mean["mean"], isnan(mean["mean_low"])) == (inf, True)
    assert np.isfinite(row["p05"])
    assert "did not finish" in cut._repr_html_()
    wanted = replicate(cut.scenario, 10, precision="finish=1%", max_replications=500, jobs=1)
    assert wanted.precision[0].unfinished > 0
    assert not wanted.precision[0].met
    assert len(wanted) < 500


def test_c7_a_run_that_loses_people_has_not_finished_and_has_the_instant_of_its_final_status() -> (
    None
):
    scenario = crowd(40, 3, expires="2026-01-04T17:08:00Z", **CHANCY)
    runs = replicate(scenario, 20, jobs=1).runs
    lost = runs["people_lost"] > 0
    assert 0 < lost.sum() < 20
    assert np.isinf(runs["finish_seconds"]).tolist() == lost.tolist()
    assert runs["finish"].isna().tolist() == lost.tolist()
    assert (runs["final_at_seconds"][lost] == 480).all()
    assert str(runs["final_at"].dtype) == "datetime64[ms, UTC]"
    assert (runs["people_lost"] == runs["people_expired"] + runs["people_cancelled"]).all()


def test_the_headline_is_the_median_and_a_safe_bound_or_an_estimate_called_one(
    tmp_path: Path,
) -> None:
    scenario = crowd(60, 6, **CHANCY)
    few = replicate(scenario, 71, jobs=1, store=tmp_path)
    finish = few.runs["finish_seconds"]
    half, late = (when_text(np.sort(finish)[rank - 1], few) for rank in (36, 68))
    assert replications_headline(few) == (
        f"71 replications of seed 20260105: half of them are done by {half} Thai time; that 95 % "
        f"are done by {late} Thai time is only an estimate: 72 runs or more would bound it."
    )
    enough = replicate(scenario, 72, jobs=1, store=tmp_path)
    half = when_text(np.sort(enough.runs["finish_seconds"])[35], enough)
    last = when_text(enough.runs["finish_seconds"].max(), enough)
    assert replications_headline(enough) == (
        f"72 replications of seed 20260105: half of them are done by {half} Thai time, and 95 % by "
        f"{last} Thai time (with 95 % confidence)."
    )
    exact = replicate(crowd(60, 6), 3, jobs=1)
    assert replications_headline(exact) == (
        "3 replications of seed 20260105: finished by Mon 5 Jan 00:10 Thai time."
    )


def test_the_people_lost_are_told() -> None:
    runs = replicate(crowd(40, 3, expires="2026-01-04T17:08:00Z", **CHANCY), 20, jobs=1)
    lost = runs.runs["people_lost"]
    assert lost_sentences(runs) == [
        f"Warning: in {(lost > 0).sum()} of 20 runs people are lost, {lost.mean():.1f} on average: "
        "endDateTime or a cancellation comes before calling is done with them."
    ]
    assert lost_sentences(replicate(crowd(10), 2, jobs=1)) == []


def test_few_runs_give_a_mean_no_interval_and_skewed_ones_say_how_many_would() -> None:
    def cells(count: int, **talk: object) -> dict[str, tuple[str, ...]]:
        runs = replicate(crowd(3, 1, talkTime=talk), count, jobs=1)
        _, figures = replications_tables(runs)
        return {row[0]: row[1:] for row in figures.rows}

    heavy = {"dist": "lognormal", "mean": "10m", "sd": "200m"}
    assert cells(2, **heavy)["mean wait, seconds"][1] == "from 3 runs on"
    low, _, rest = cells(20, **heavy)["mean wait, seconds"][1].partition(" – ")
    assert float(low) > 0
    assert re.fullmatch(r"[0-9.,]+, skewed: ~[0-9]+ runs", rest)
    assert "skewed" not in cells(20, dist="uniform", low="5m", high="6m")["mean wait, seconds"][1]


def test_talk_and_cost_are_known_exactly_where_everybody_answers() -> None:
    talk = {"dist": "lognormal", "mean": "10m", "sd": "40m"}
    table = replicate(crowd(30, talkTime=talk), 5, jobs=1).intervals()
    rows = table[table["scope"] == "run"].set_index("figure")
    exact = rows.loc["talk_minutes", ["mean", "mean_low", "mean_high"]].tolist()
    assert exact == pytest.approx(3 * [300.0], rel=1e-6)
    # a dial for 1 THB and 2 THB a minute, by started seconds
    of_cost = rows.loc["cost", ["mean_low", "mean_high"]].tolist()
    assert of_cost == pytest.approx(2 * [30 + 2 * (300.0 + 30 * 0.5 / 60)], rel=1e-4)


def test_a_run_that_may_spill_over_to_the_next_day_widens_the_mean_of_the_finish() -> None:
    # one person who does not answer at first in 4.75 % of the runs, and is called a day later
    scenario = crowd(1, attempts=2, outcomes={"answered": 0.9525, "noAnswer": 0.0475}).with_(
        "organizations.Acme.campaigns.January.schedule.retryInterval=86400000"
    )
    truth = 60 + 0.0475 * 86_401
    for seed in range(3):
        found = replicate(scenario, 20, seed=seed, jobs=1, figures=["mean(finish)"])
        row = found.intervals().iloc[-1]
        assert row["figure"] == "mean(finish)"
        assert row["mean_low"] <= truth <= row["mean_high"]


def test_what_was_never_scheduled_has_no_finish() -> None:
    draft = Sketch(4).campaign("January", recipients={"count": 30}, requested=None)
    drafts = replicate(draft.scenario(), 2, jobs=1)
    assert drafts.frame["finish_seconds"].isna().all()
    assert drafts.origin is None
    assert "nothing was scheduled" in drafts._repr_html_()


def test_precision_runs_as_many_as_it_takes_and_no_fewer() -> None:
    scenario = crowd(60, 6, **CHANCY)
    rough = replicate(scenario, 10, precision="finish=40%", jobs=1)
    fine = replicate(scenario, 10, precision={"finish": 0.05}, jobs=1)
    assert rough.precision[0].met
    assert fine.precision[0].met
    assert len(rough) < len(fine) < 1000
    finish = read_expression("finish", scenario).of(fine.figures) - parse_instant(START)
    median = quantile_interval(finish, 0.5, 0.95)
    assert (median.high - median.low) / 2 / median.estimate <= 0.05 / 1.05
    mean = replicate(scenario, 10, precision="mean(finish)=20%", jobs=1)
    assert (mean.precision[0].statistic, mean.precision[0].met) == ("mean", True)
    capped = replicate(scenario, 10, precision="finish=0.1%", max_replications=30, jobs=1)
    assert (len(capped), capped.precision[0].met) == (30, False)
    assert "30 replications don't determine the median of finish" in unescape(capped._repr_html_())


def test_a_failing_replication_names_itself_and_the_command_that_reruns_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def moody(world: World, engine: Engine) -> Result:
        if world.replication == 3:
            raise RuntimeError("the moon is full")
        return result_of(world, engine)

    monkeypatch.setattr("dialsim.results.result.result_of", moody)
    scenario = dialsim.load("scenarios/scripted.yaml", overrides=["seed=5"])
    with pytest.raises(ReplicationFailed) as failed:
        replicate(scenario, 6, jobs=1)
    assert str(failed.value) == (
        "replication 3 of seed 5 failed: RuntimeError: the moon is full; to run it alone: "
        "dialsim run scenarios/scripted.yaml --seed 5 --replication 3 --set seed=5"
    )


def task_of(spec: RunSpec) -> Task:
    return spec.task(0, 0, "simpy")


def test_a_worker_returns_numbers_and_no_tables() -> None:
    spec = RunSpec(crowd(200, 20))
    (outcome,) = run_tasks([task_of(spec)], dialsim.__version__, None)
    assert outcome.failure is None
    assert outcome.figures is not None
    assert len(outcome.figures) < 20_000


def test_a_worker_with_another_version_does_not_give_its_figures_for_ours() -> None:
    spec = RunSpec(crowd())
    (outcome,) = run_tasks([task_of(spec)], "99", None)
    assert outcome.figures is None
    assert outcome.failure == f"the worker has dialsim {dialsim.__version__}, not 99"


class Bomb:
    """Terminates the process that unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (1,)


def test_runs_that_kill_their_workers_again_and_again_are_given_up() -> None:
    tasks = [
        task_of(RunSpec(crowd())),
        Task(1, "bad", {"bad": pickle.dumps(Bomb())}, 1, 7, "simpy"),
    ]
    outcomes = []
    with pytest.raises(WorkersLost) as lost:
        outcomes.extend(Workers(jobs=2).outcomes(tasks))
    assert [outcome.index for outcome in outcomes] == [0]
    assert str(lost.value) == (
        "worker processes were killed 3 times without a result, perhaps for want of memory; "
        "1 run is missing, the first of them replication 7 of seed 1; "
        "fewer jobs need less memory"
    )


def test_only_the_same_scenario_seed_and_version_is_taken_from_a_store(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    scenario = crowd(20, 4, **CHANCY)

    def runs(count: int, **changed: object) -> int:
        done.clear()
        replicate(
            changed.get("scenario", scenario),
            count,
            seed=changed.get("seed"),
            jobs=1,
            store=tmp_path,
            progress=lambda finished, _: done.append(finished),
        )
        return len(done)

    assert runs(4) == 4
    assert runs(4) == 0
    assert runs(6) == 2
    assert runs(3, seed=8) == 3
    assert runs(3, scenario=crowd(21, 4, **CHANCY)) == 3
    assert runs(6) == 0
    for part in ("replications", "run_spec", "pool"):
        monkeypatch.setattr(f"dialsim.experiments.{part}.__version__", "99")
    assert runs(6) == 6


def test_runs_of_another_set_of_figures_or_rules_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = crowd(20, 4, **CHANCY)
    alone = replicate(scenario, 6, jobs=1)
    share = alone.runs["calls_no_answer"] / alone.runs["calls"]
    old = tuple(figure for figure in figures.FIGURES if figure.name != "calls_no_answer")

    with monkeypatch.context() as before:  # a program that has one figure less
        for module in (figures, runner):
            before.setattr(module, "FIGURES", old)
        kept = replicate(scenario, 4, jobs=1, store=tmp_path)
        assert "calls_no_answer" not in kept.figures[0].scopes[0].values

    after = replicate(scenario, 6, jobs=1, store=tmp_path, figures=["calls_no_answer / calls"])
    pd.testing.assert_series_equal(after.runs["calls_no_answer"] / after.runs["calls"], share)
    assert (share > 0).all()

    keys = {runner._made_by()}
    monkeypatch.setattr(runner, "_rules_digest", lambda: "of another rule")
    assert runner._made_by() not in keys


def test_the_key_of_a_store_follows_the_code_of_rules_and_figures(tmp_path: Path) -> None:
    package = Path(dialsim.__file__).parent
    for room in runner._SOURCES:
        assert (package / room).exists()
    source = tmp_path / "campaign.py"
    source.write_text("RETRIES = 3\n")
    before = source_digest([source])
    source.write_text("RETRIES = 4\n")
    assert source_digest([source]) != before


def test_a_figure_that_a_run_lacks_is_an_error_and_no_0() -> None:
    (run,) = replicate(crowd(20, 4), 1, jobs=1).figures
    del run.scopes[0].values["calls_busy"]
    with pytest.raises(DialsimError, match="a run without the figure calls_busy"):
        FigureName("calls_busy", None, None).of([run])
    both = Replications(crowd(20, 4), 1, [run, *replicate(crowd(20, 4), 1, jobs=1).figures])
    with pytest.raises(DialsimError, match="a run without the figure calls_busy"):
        both.intervals()


def coverage(experiments: int, size: int) -> dict[str, float]:
    """Return the share of 95 % intervals of repeated experiments that contain the known mean.

    There is a line for each person: people reached are binomial, with mean n·p, and the finish is
    the longest of n exponential talks, with mean m·(1 + 1/2 + … + 1/n) after the setup.
    """
    people, talk, setup = 25, 60.0, 1.0
    makespan = setup + talk * sum(1 / k for k in range(1, people + 1))
    talking = {"talkTime": {"dist": "exponential", "mean": "60s"}}
    reached = {"outcomes": {"answered": 0.4, "noAnswer": 0.6}}
    covered = {}
    for figure, behaviour, truth in (
        ("finish_seconds", talking, makespan),
        ("people_reached", reached, people * 0.4),
    ):
        found = replicate(crowd(people, people, **behaviour), experiments * size, jobs=None)
        samples = found.runs[figure].to_numpy(dtype=np.float64).reshape(experiments, size)
        intervals = [mean_interval(sample, 0.95) for sample in samples]
        hits = sum(interval.low <= truth <= interval.high for interval in intervals)
        covered[figure] = hits / experiments
    return covered


@pytest.mark.slow
def test_intervals_of_simulated_means_hold_the_known_answer() -> None:
    # 60 experiments: 95 % ± four standard errors of 2.8 %
    assert all(share >= 0.83 for share in coverage(40, 10).values())


@pytest.mark.slow(minutes=4)
def test_over_1000_experiments_95_percent_intervals_hold_the_known_answer_95_times_in_100() -> None:
    assert all(0.92 <= share <= 0.98 for share in coverage(1000, 10).values())
