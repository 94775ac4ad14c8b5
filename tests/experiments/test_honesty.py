"""Intervals and verdicts keep their word: a small form of `benchmarks/honesty.py`."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import pytest
from scipy import stats

from cli.program import ROOT

BY_MONDAY = "finish_by_2026-01-05"


@pytest.fixture(scope="module")
def honesty() -> ModuleType:
    spec = spec_from_file_location("honesty", ROOT / "benchmarks/honesty.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.path.append(str(ROOT / "benchmarks"))  # for what it imports
    sys.modules["honesty"] = module  # its dataclasses look there for the names in annotations
    spec.loader.exec_module(module)
    return module


def fewest(count: int, share: float) -> int:
    """Number that fewer of `count` reach once in 1,000 times, each with the probability `share`."""
    return int(stats.binom.ppf(0.001, count, share))


@pytest.mark.slow
def test_intervals_of_means_hold_the_truth_wherever_they_are_printed(honesty: ModuleType) -> None:
    found = [*honesty.coverage(200)]
    assert [part for part in found if part.held < fewest(part.printed, 0.93)] == []
    both = [(part.held_with_both, part.with_both_limits) for part in found]
    assert [(held, limits) for held, limits in both if held < fewest(limits, 0.92)] == []
    limits = {(part.figure, part.runs): part.with_both_limits for part in found}
    assert limits["reach, binomial", 10] > 180
    assert limits["exponential", 20] > 120
    assert limits["log-normal, sd 4 × mean", 50] > 160
    assert limits["finish, 4.75 % spill", 20] == 200
    assert limits["rare counts, mean 0.08", 100] > 180


@pytest.mark.slow
def test_what_is_called_sure_is_seldom_wrong(honesty: ModuleType) -> None:
    found = [*honesty.verdicts(20)]
    assert [part for part in found if not part.share <= 0.05] == []
    clear = {part.goal: part.sure for part in found}
    assert clear["prob(finish <= 1h) >= 0.999"] == 20


@pytest.mark.slow
def test_answers_of_searches_are_seldom_wrong_and_in_doubt_seldom_too_small(
    honesty: ModuleType,
) -> None:
    found = [*honesty.searches(honesty.drawn_steps(), 15)]
    wrong = {part.name: part.sure_wrong + part.too_small for part in found}
    assert [name for name, count in wrong.items() if 15 - count < fewest(15, 0.95)] == []
    clear, *hairs = found
    assert (clear.sure, clear.sure_wrong) == (15, 0)
    assert clear.runs < 250
    assert [part for part in hairs if part.in_doubt + part.without < 10] == []
    assert [part for part in hairs if part.runs > 1_500] == []
    # where no runs can be sure the answer is on the safe side as well
    unsure = [part for part in hairs if part.name.startswith("none sure")]
    assert [(part.sure, part.too_small) for part in unsure] == [(0, 0), (0, 0)]


def test_verdicts_of_sweeps_are_seldom_wrong_and_save_runs(honesty: ModuleType) -> None:
    clear, *rest = honesty.decided(honesty.drawn_variants()[:2], 5)
    assert (clear.sure, clear.wrong) == (clear.verdicts, 0)
    assert clear.runs < 250
    assert [part for part in rest if part.wrong > 1] == []


@pytest.mark.slow
def test_statements_about_simulated_runs_hold(
    honesty: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = honesty.honest_runs
    monkeypatch.setattr(runs, "POOL", 300)
    short = runs.scenario(20, f"{runs.RETRY}=1200000", f"{runs.ATTEMPTS}=3", close="09:52")
    spill = runs.Pool(short, [[f"{runs.LINES}=2"], [f"{runs.LINES}=3"]])
    talk = "{dist: lognormal, mean: 75s, sd: 500s}"
    heavy = runs.Pool(
        runs.scenario(40, talk=talk), [[f"{runs.ATTEMPTS}=2"], [f"{runs.ATTEMPTS}=3"]]
    )
    found = [
        *runs.means("rare days", spill, ["finish"], 30),
        *runs.gaps("rare days", spill, ["finish"], 30),
        *runs.compared("rare days", spill, ["finish", BY_MONDAY, "mean(finish)"], 30),
        *runs.means("long talk", heavy, ["cost / people_reached"], 30),
        *runs.gaps("long talk", heavy, ["talk_minutes"], 30),
        runs.unfinished(60),
    ]
    assert [row for row in found if not runs.meets(row)] == []
    printed = {(row.statement, row.n): row.share_printed for row in found[:-1]}
    assert {key: share for key, share in printed.items() if share < 0.9} == {}


@pytest.mark.slow
def test_far_deadlines_allow_for_runs_of_another_kind(honesty: ModuleType) -> None:
    *rare, usual = honesty.honest_runs.deadlines(30)
    assert [row for row in (*rare, usual) if not honesty.honest_runs.meets(row)] == []
    assert [row.printed < 10 for row in rare] == [True] * 3
    assert (usual.printed, usual.width) == (30, pytest.approx(12))


@pytest.mark.slow(minutes=30)
def test_the_benchmark_of_honesty_passes(
    honesty: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["honesty.py"])
    assert honesty.main() == 0
