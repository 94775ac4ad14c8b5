"""`verify` finds each fault that is sown into a log, and nothing in good logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dialsim
from dialsim.logs.log import read_log
from dialsim.logs.log_table import LONGEST_RING_MS, Expected
from dialsim.logs.verify import check
from engine.breadth import broad_scenario
from engine.chancy import chancy_scenario
from engine.readings import loaded
from logs.faults import FAULTS
from logs.good_log import entries, scenario, written
from oracle.scenarios import Scenario


def test_at_least_65_kinds_of_faults_are_sown() -> None:
    assert len(FAULTS) >= 65


def test_nothing_is_found_in_the_good_log(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, entries()))
    assert check(log).findings == ()
    assert check(log, scenario()).findings == ()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str, tmp_path: Path) -> None:
    fault, log = FAULTS[name], entries()
    fault.sow(log)
    found = check(read_log(written(tmp_path, log))).findings
    assert fault.rule in {finding.rule for finding in found}, found[:5]


def test_of_many_findings_of_a_kind_the_first_100_are_listed_and_all_are_counted(
    tmp_path: Path,
) -> None:
    log, wrong, lines = entries(), 0, []
    for line, entry in enumerate(log, 1):
        call = entry["body"]["payload"]["call"]
        if call["callStatus"] == "NO_ANSWER":
            call["callDuration"] = "1.000"
            lines.append(line)
            entry["body"]["payload"]["campaign"]["maxAttempts"] = 3 + (wrong := wrong + 1)
    found = check(read_log(written(tmp_path, log)))
    assert wrong > 110
    of_kind = [one for one in found.findings if "but callDuration is" in one.text]
    assert len(of_kind) == 100
    assert found.omitted["F1"] == wrong - 100  # one kind
    assert found.omitted["C1"] == wrong - 100  # each of these bodies has different settings
    assert found.count == len(found.findings) + sum(found.omitted.values())
    assert found.to_dict()["count"] == found.count
    assert {one.line for one in of_kind} == {*lines[:100]}


@pytest.mark.parametrize("make", [chancy_scenario, broad_scenario])
@pytest.mark.parametrize("part", [range(2), *(
    pytest.param(range(first, first + 25), marks=pytest.mark.slow) for first in range(2, 502, 25)
)])  # fmt: skip
def test_nothing_is_found_in_good_random_logs(
    make: Callable[[int], Scenario], part: range, tmp_path: Path
) -> None:
    """500 scenarios of each kind; their folders, and their webhooks alone.

    Bodies alone leave two things open, which real campaigns hardly have: people who are listed
    twice with the same values, and calls that ring for more than ten minutes.
    """
    for seed in part:
        followed = loaded(make(seed))
        result = dialsim.run(followed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        result.calls.to_parquet(folder / "calls.parquet")
        if len(result.calls):
            assert check(read_log(folder), followed).findings == (), seed
            assert check(read_log(folder)).findings == (), seed
        with (folder / "webhooks.jsonl").open("wb") as file:
            result.write_webhooks(file)
        if not (folder / "webhooks.jsonl").stat().st_size:
            continue
        run, bodies = read_log(folder), read_log(folder / "webhooks.jsonl")
        assert (run.damaged, bodies.damaged) == (0, 0)
        assert check(run, followed).findings == (), seed
        assert check(run).findings == (), seed
        calls = run.calls
        rings = calls["started_at"].fillna(calls["ended_at"]) - calls["initiated_at"]
        if rings.max().total_seconds() * 1000 > LONGEST_RING_MS:
            continue
        expected = Expected(followed, bodies.campaigns)
        assert check(bodies, followed).findings == (), seed
        if not any(expected.lists_twice(code) for code in range(len(bodies.campaigns))):
            assert check(bodies).findings == (), seed
