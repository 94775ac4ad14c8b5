"""Sweeps: variants that meet the same chance, and differences that are real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialsim
from dialsim.errors import ExperimentError, ScenarioError
from dialsim.experiments.sweep import Sweep, sweep
from dialsim.experiments.variants import (
    Variant,
    read_design,
    read_range,
    read_variants,
    read_vary,
    value_range,
)
from experiments.scenarios import CHANCY, LIMIT, crowd

ATTEMPTS = "organizations.Acme.campaigns.January.schedule.maxAttempts"


@pytest.fixture(scope="module")
def grid() -> Sweep:
    return sweep(crowd(40, **CHANCY), {LIMIT: [3, 4], ATTEMPTS: [1, 2]}, 6, jobs=1)


def test_values_are_crossed_and_stand_beside_the_figures(grid: Sweep) -> None:
    assert [variant.name for variant in grid.variants] == [
        "3 lines, 1 attempt",
        "3 lines, 2 attempts",
        "4 lines, 1 attempt",
        "4 lines, 2 attempts",
    ]
    assert len(grid.frame) == len(grid.runs) == 4 * 6
    assert list(grid.frame.columns[:4]) == ["variant", LIMIT, ATTEMPTS, "replication"]
    assert grid.frame[LIMIT].tolist() == [3] * 12 + [4] * 12
    means = grid.intervals()
    assert set(means["variant"]) == {variant.name for variant in grid.variants}


def test_a_variant_is_the_scenario_with_these_values(grid: Sweep) -> None:
    varied = dialsim.loads(grid.scenario.origin.text, overrides=[f"{LIMIT}=4", f"{ATTEMPTS}=2"])
    alone = dialsim.replicate(varied, 6, jobs=1)
    last = grid.frame[grid.frame["variant"] == grid.variants[-1].name].reset_index(drop=True)
    for figure in ("finish", "people_reached", "attempts", "cost"):
        pd.testing.assert_series_equal(last[figure], alone.frame[figure])


def test_differences_are_taken_pair_by_pair_from_the_baseline(grid: Sweep) -> None:
    base = "4 lines, 2 attempts"
    table = grid.differences(base)
    row = table[(table["variant"] == grid.variants[0].name) & (table["figure"] == "attempts")]
    row = row[row["scope"] == "campaign"].iloc[0]
    by_variant = grid.frame.set_index("variant")["attempts"]
    pairs = by_variant[grid.variants[0].name].to_numpy() - by_variant[base].to_numpy()
    assert row["difference"] == pytest.approx(pairs.mean())
    assert row["real"] == (not row["low"] <= 0 <= row["high"])
    assert set(table["variant"]) == {variant.name for variant in grid.variants[:3]}
    with pytest.raises(ExperimentError, match="there is no variant no"):
        grid.differences("no")


def test_a_change_without_effect_is_not_real() -> None:
    found = sweep(crowd(40, **CHANCY), {"service.name": ["One", "Other"]}, 5, jobs=1)
    table = found.differences()
    assert not table["real"].any()
    assert (table["difference"].dropna() == 0).all()
    assert found.frame["service.name"].tolist() == ["One"] * 5 + ["Other"] * 5


def test_guards_against_chance_findings_find_no_more_than_without(grid: Sweep) -> None:
    plain, bonferroni = (grid.differences(adjust=adjust) for adjust in (None, "bonferroni"))
    assert not (bonferroni["real"] & ~plain["real"]).any()
    wider = (bonferroni["high"] - bonferroni["low"]) >= (plain["high"] - plain["low"])
    assert wider[plain["low"].notna()].all()
    with pytest.raises(ExperimentError, match="adjust must be 'bonferroni', not 'guess'"):
        grid.differences(adjust="guess")


@pytest.mark.slow
@pytest.mark.parametrize("limits", [(10, 11), (20, 22)])
def test_pairs_are_far_sharper_than_independent_runs(limits: tuple[int, int]) -> None:
    # limits a tenth apart, and people who answer by the hour, so that lines matter to reach too
    scenario = dialsim.load(
        "scenarios/first-campaign.yaml",
        overrides=[
            "seed=2",
            "organizations.Acme.campaigns.January.recipients.count=1500",
            "behaviours.default.answeredOdds.byHour={9: 0.8, 11: 1.1, 12: 0.7, 13: 1.2, 18: 1.4}",
        ],
    )
    found = sweep(scenario, {LIMIT: limits}, 24, jobs=1)
    for figure, ratio in (("finish_seconds", 2), ("people_reached", 3)):
        columns = found.runs.pivot(index="replication", columns="variant", values=figure)
        few, more = (columns[variant.name] for variant in found.variants)
        independent = np.sqrt(few.var() + more.var())
        assert independent >= ratio * (more - few).std()


def test_starting_later_shows_as_finishing_later() -> None:
    path = "organizations.Acme.campaigns.January.schedule.startDateTime"
    starts = ["2026-01-04T17:00:00Z", "2026-01-04T19:00:00Z"]
    found = sweep(crowd(40, 4), {path: starts}, 2, jobs=1)
    table = found.differences()
    row = table[(table["figure"] == "finish_seconds") & (table["scope"] == "run")].iloc[0]
    assert (row["difference"], row["real"]) == (7200, True)


def test_seeds_vary_and_are_then_not_given_as_well() -> None:
    scenario = crowd(10, **CHANCY)
    found = sweep(scenario, {"seed": [1, 2]}, 3, jobs=1)
    for seed in (1, 2):
        alone = dialsim.replicate(scenario, 3, seed=seed, jobs=1)
        mine = found.runs[found.runs["variant"] == f"seed={seed}"]
        assert mine["talk_minutes"].tolist() == alone.runs["talk_minutes"].tolist()
    with pytest.raises(ExperimentError, match="the seed varies, so it can't be given as well"):
        sweep(scenario, {"seed": [1, 2]}, 3, seed=1, jobs=1)


def test_a_campaign_that_only_one_variant_has_is_not_compared() -> None:
    name = "organizations.Acme.campaigns.January.name"
    found = sweep(crowd(10), {name: ["January", "February"]}, 2, jobs=1)
    table = found.differences()
    assert set(table["scope"]) == {"run", "organization"}
    assert (table["difference"].dropna() == 0).all()


def test_a_scenario_changed_by_hand_is_not_varied_behind_its_back() -> None:
    changed = crowd().model_copy(update={"seed": 99})
    with pytest.raises(ExperimentError, match="was changed after it was loaded"):
        sweep(changed, {LIMIT: [1, 2]}, 2, jobs=1)


def test_a_value_that_the_scenario_can_not_have_is_refused_with_its_path() -> None:
    with pytest.raises(ScenarioError) as refused:
        sweep(crowd(), {ATTEMPTS: [1, 0]}, 2, jobs=1)
    assert str(refused.value).startswith(
        f"variant 0 attempts: {ATTEMPTS}=0: organizations.0.campaigns.0."
    )


def test_values_are_read_as_they_are_written() -> None:
    assert read_vary("a.b=10,20, 30") == ("a.b", ["10", "20", "30"])
    assert read_vary("a=10..20:5") == ("a", ["10", "15", "20"])
    assert read_vary("a=1,4..6") == ("a", ["1", "4", "5", "6"])
    assert read_vary("a=10m..1h:25m") == ("a", ["10m", "35m", "1h"])
    assert read_vary("a=0.1..0.3:0.1") == ("a", ["0.1", "0.2", "0.3"])
    assert read_vary("a=2026-01-05T02:00:00Z..2026-01-05T04:00:00Z:1h")[1] == [
        f"2026-01-05T0{hour}:00:00.000Z" for hour in (2, 3, 4)
    ]
    assert read_vary('a=["1","2"],{x: 1, y: 2}') == ("a", ['["1","2"]', "{x: 1, y: 2}"])


@pytest.mark.parametrize(
    "vary", [f"{LIMIT}=1,2", {LIMIT: "1,2"}, {LIMIT: "1..2"}, {LIMIT: [1, 2]}, {LIMIT: range(1, 3)}]
)
def test_values_may_be_a_text_as_for_the_command(vary: Any) -> None:
    found = sweep(crowd(), vary, 2, jobs=1)
    assert [variant.name for variant in found.variants] == [
        "1 line",
        "2 lines",
    ]


@pytest.mark.parametrize(
    ("vary", "text"),
    [
        ("seed", "--vary seed: write PATH=VALUES, such as "),
        ({LIMIT: 10}, f"vary['{LIMIT}'] must be a list of values, not 10"),
        ({LIMIT: "10,,20"}, f"{LIMIT}: a value is missing between two commas"),
        ([f"{LIMIT}=1,2"], f"vary[0] must be a Variant, not '{LIMIT}=1,2'"),
    ],
)
def test_what_is_no_value_to_vary_is_one_error(vary: Any, text: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        sweep(crowd(), vary, 2, jobs=1)
    assert str(refused.value).startswith(text)


def test_an_axis_knows_its_values() -> None:
    assert len(read_range("1..200")) == 200
    assert [value_range("0", "2m")[k].text for k in range(3)] == ["0s", "1m", "2m"]
    decimal = value_range("0.5", "1")
    assert (len(decimal), decimal[100].plain) == (101, 1.0)


def test_designs_and_named_what_ifs_are_read(tmp_path: Path) -> None:
    design = tmp_path / "design.csv"
    design.write_text(f"variant,{LIMIT},seed\nplain,,\nmore,30,\n,40,2\n")
    assert [(v.name, [(c.path, c.text) for c in v.changes]) for v in read_design(design)] == [
        ("plain", []),
        ("more", [(LIMIT, "30")]),
        ("40 lines, seed=2", [(LIMIT, "40"), ("seed", "2")]),
    ]
    named = tmp_path / "variants.yaml"
    named.write_text(f"as it is: []\nmore lines: [{LIMIT}=30]\nboth:\n  - {LIMIT}=30\n  - seed=2\n")
    assert [(v.name, len(v.changes)) for v in read_variants(named)] == [
        ("as it is", 0),
        ("more lines", 1),
        ("both", 2),
    ]
    found = sweep(crowd(20), read_variants(named), 2, jobs=1)
    assert found.runs[LIMIT].isna().tolist() == [True, True, False, False, False, False]
    for text, says in (("a: 1\n", "a must be a list"), ("[]\n", "write a name and a list")):
        named.write_text(text)
        with pytest.raises(ExperimentError, match=says):
            read_variants(named)
    for text, says in (("a,b\n", "a row for each"), ("a,a\n1,2\n", "path of its own"),
                       ("a,b\n1\n", "1 cells for 2 columns")):  # fmt: skip
        design.write_text(text)
        with pytest.raises(ExperimentError, match=says):
            read_design(design)


@pytest.fixture(scope="module")
def decided() -> Sweep:
    # eight lines more are sooner in every run; of the others some runs only are longer
    more = [["Acme.maxConcurrentCalls=4"], ["Acme.maxConcurrentCalls=12"], ["service.name=Other"]]
    variants = [
        Variant.read(*part) for part in zip(("as it is", "more", "name"), more, strict=True)
    ]
    variants += [Variant.read("seed", ["seed=5"])]
    return sweep(crowd(40, **CHANCY), variants, 30, decide="finish", indifference=0.0, jobs=1)


def test_a_variant_gets_no_more_runs_once_it_is_told_from_the_baseline(decided: Sweep) -> None:
    verdicts = {part.variant: (part.verdict, part.runs) for part in decided.decided.decisions}
    assert verdicts == {"more": ("less", 12), "name": ("alike", 12), "seed": ("open", 30)}
    assert [len(runs) for runs in decided.figures] == [30, 12, 12, 30]
    assert decided.runs.groupby("variant", sort=False).size().tolist() == [30, 12, 12, 30]
    means = decided.intervals()
    means = means[(means["scope"] == "run") & (means["figure"] == "attempts")]
    assert means["runs"].tolist() == [30, 12, 12, 30]


@pytest.mark.slow
def test_variants_that_were_decided_early_have_the_runs_that_they_would_have_had(
    decided: Sweep,
) -> None:
    whole = sweep(decided.scenario, decided.variants, 12, jobs=1)
    assert whole.decided is None
    for runs, first_of_them in zip(decided.figures, whole.figures, strict=True):
        assert runs[:12] == first_of_them
    # pairs are of the runs that both have, and so are both means
    cut = decided.together.differences()
    rows = decided.differences()
    for name in ("more", "name"):
        mine, theirs = (t[t["variant"] == name].reset_index(drop=True) for t in (rows, cut))
        pd.testing.assert_frame_equal(mine, theirs)
    assert decided.together.figures == tuple(runs[:12] for runs in decided.figures)
    assert whole.together is whole


def test_a_verdict_counts_pairs_of_runs(decided: Sweep) -> None:
    more, name, seed = decided.decided.decisions
    assert (more.less, name.alike) == (12, 12)
    finish = decided.runs.set_index("variant")["finish_seconds"]
    later = (finish["seed"].to_numpy() > finish["as it is"].to_numpy()).sum()
    assert (seed.more, seed.more + seed.less + seed.alike) == (later, 30)
    assert decided.decided.frame["verdict"].tolist() == ["less", "alike", "open"]


def test_runs_that_do_not_finish_are_alike_and_later_than_those_that_do() -> None:
    scenario = crowd(40, end="2026-01-04T17:12:00Z", **CHANCY)
    few = f"{LIMIT}=1"
    changes = {"few": [few], "few, too": [few, "service.name=Other"], "many": [f"{LIMIT}=40"]}
    variants = [Variant.read(*part) for part in changes.items()]
    found = sweep(scenario, variants, 12, decide="finish", jobs=1)
    assert [part.verdict for part in found.decided.decisions] == ["alike", "less"]


def test_a_decision_is_the_same_with_a_store_that_has_more_runs(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"decide": "talk_minutes", "jobs": 1}
    vary = {"seed": [1, 2, 3]}
    fresh = sweep(crowd(10, **CHANCY), vary, 14, **asked)
    sweep(crowd(10, **CHANCY), vary, 14, store=tmp_path, jobs=1)
    again = sweep(crowd(10, **CHANCY), vary, 14, store=tmp_path, **asked)
    assert again.decided == fresh.decided
    assert again.figures == fresh.figures


def test_a_baseline_that_is_not_the_first_is_the_one_that_is_compared_with() -> None:
    vary = {LIMIT: [2, 4, 9]}
    base = "4 lines"
    found = sweep(crowd(40, **CHANCY), vary, 8, decide="finish", baseline=base, jobs=1)
    assert found.baseline == base
    assert [part.verdict for part in found.decided.decisions] == ["more", "less"]
    assert base not in set(found.differences()["variant"])
    assert "Decided by finish against 4 lines: 2 of 2 differ." in (found._repr_html_())


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"decide": "finsh"}, "there is no figure finsh"),
        ({"decide": "finish", "baseline": "no"}, "there is no variant no"),
        ({"decide": "finish", "indifference": 1.5}, "the indifference is a share such as 0.01"),
        ({"decide": "finish", "n": 5}, "5 replications are too few to distinguish 2 variants: "),
        ({"decide": "finish", "vary": {LIMIT: [1]}}, "a sweep that decides needs two variants"),
    ],
)
def test_what_can_not_decide_is_refused(asked: dict[str, Any], says: str) -> None:
    vary, count = asked.pop("vary", {LIMIT: [1, 2]}), asked.pop("n", 20)
    with pytest.raises(ExperimentError, match=says):
        sweep(crowd(), vary, count, jobs=1, **asked)


@pytest.mark.slow(minutes=3)
def test_of_variants_that_do_not_differ_at_most_one_sweep_in_twenty_tells_one() -> None:
    # other seeds are the same scenario with other chance: no difference between them is one
    told = 0
    for k in range(100):
        seeds = {"seed": range(4 * k, 4 * k + 4)}
        found = sweep(
            crowd(15, **CHANCY), seeds, 27, decide="talk_minutes", indifference=0.0, jobs=1
        )
        told += any(part.verdict != "open" for part in found.decided.decisions)
    assert told <= 5


def test_unfinished_runs_do_not_stop_a_comparison() -> None:
    scenario = crowd(40, end="2026-01-04T17:12:00Z", **CHANCY)
    found = sweep(scenario, {LIMIT: [1, 40]}, 12, jobs=1)
    table = found.differences()
    row = table[(table["figure"] == "finish_seconds") & (table["scope"] == "run")].iloc[0]
    assert (row["method"], row["difference"], row["real"]) == ("order statistics", -np.inf, True)
    assert "<td>earlier in 12 of 12 pairs, real</td>" in found._repr_html_()
