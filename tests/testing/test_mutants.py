"""The tests notice an engine that breaks a rule, and name the rule."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dialsim
from testing.mutants import MUTANTS, RULE_TESTS

TESTS = Path(__file__).parents[1]
SHOWN_BY_THE_CHECKER = {rule for rule, mutant in MUTANTS.items() if mutant.tests == RULE_TESTS} - {
    "C5",
    "P5",
    "Q3",
    "T4",
}
"""Which campaign's turn it is, and in which step, a trace doesn't say; P5 shows as C3 or R1."""


def failures(rule: str | None, tests: str) -> list[str]:
    """The lines on failed tests, if this rule is broken: `test_q5_… - … breaks Q5: …`."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(dialsim.__file__).parents[1]), str(TESTS)]),
        "COLUMNS": "400",
    }
    if rule is not None:
        environment["DIALSIM_MUTANT"] = rule
    files = sorted(map(str, TESTS.glob(tests)))
    options = ["-q", "--tb=line", "-p", "testing.mutants", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        env=environment, cwd=TESTS.parent, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return re.findall(r"^FAILED .*", run.stdout, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("tests", sorted({mutant.tests for mutant in MUTANTS.values()}))
def test_the_engine_as_it_is_passes(tests: str) -> None:
    assert failures(None, tests) == []


@pytest.mark.slow
@pytest.mark.parametrize("rule", MUTANTS)
def test_an_engine_that_breaks_a_rule_fails_in_its_name(rule: str) -> None:
    failed = failures(rule, MUTANTS[rule].tests)
    named = [line for line in failed if re.search(rf"_{rule.lower()}(_|\b)", line)]
    assert named, failed
    if rule in SHOWN_BY_THE_CHECKER:
        broken = re.compile(rf"the run breaks [^:]*\b{rule}\b")
        assert any(broken.search(line) for line in failed), failed
