"""Ease of change: how many files a change of a rule touches, with the change kept as a patch.

The change is never landed: "a busy recipient is called again after a quarter of the retry
interval". It needs the rule, and the rule as checks of traces and logs read it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATCH = Path(__file__).with_name("busy_retry.patch")
MOST_FILES = 2

# Run in a process of its own, with the changed source.
TRIED = """
import dialsim
from dialsim.engine.compiled.running import run
from dialsim.engine.simulation import Simulation
from dialsim.engine.world import World
from dialsim.testing import Sketch, violations

behaviour = {"outcomes": {"answered": 0.2, "noAnswer": 0.4, "busy": 0.4}}
sketch = Sketch(lines=5).behaviour("default", **behaviour)
body = {"recipients": {"count": 60}, "max_attempts": 3, "retry_interval": "1h"}
scenario = sketch.campaign("January", **body).scenario()
world = lambda: World(scenario)
simpy, compiled = Simulation.of_world(world()).run(), run(world())
calls = dialsim.Result(simpy).calls
other = dialsim.Result(compiled).calls
assert calls.equals(other), "the engines differ"
found = violations(dialsim.Result(simpy))
assert not found, found[:3]
previous = calls.sort_values(["recipient", "call"]).groupby("recipient").shift(1)
waited = (calls["created_at"] - previous["call_ended_at"]).dt.total_seconds()
busy = waited[previous["status"] == "BUSY"].dropna()
others = waited[previous["status"] == "NO_ANSWER"].dropna()
assert len(busy) and len(others), (len(busy), len(others))
assert set(busy) == {900.0}, set(busy)
assert set(others) == {3600.0}, set(others)
"""


def files() -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)", PATCH.read_text(encoding="utf-8"), re.MULTILINE)


def patched(folder: Path, *left_out: str) -> Path:
    """Copy the source, and apply the patch but for the files left out."""
    shutil.copytree(ROOT / "src", folder / "src")
    options = [f"--exclude={file}" for file in left_out]
    done = subprocess.run(
        ["git", "apply", *options, str(PATCH)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"the patch has to follow the source: {done.stderr}"
    return folder / "src"


def tried(source: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(
        [sys.executable, "-c", TRIED],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_rule_changes_in_few_files_of_the_source() -> None:
    assert 0 < len(set(files())) <= MOST_FILES
    assert all(file.startswith("src/dialsim/") for file in files())


def test_the_patch_follows_the_source(tmp_path: Path) -> None:
    patched(tmp_path)


@pytest.mark.slow
def test_both_engines_and_the_checker_follow_the_changed_rule(tmp_path: Path) -> None:
    done = tried(patched(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_checker_notices_the_changed_rule_if_it_does_not_know_it(tmp_path: Path) -> None:
    checker = (file for file in files() if "conformance" in file)
    done = tried(patched(tmp_path, *checker))
    assert done.returncode != 0
    assert "R2" in done.stderr
