"""Killed and interrupted experiments: nothing is lost but what was under way, nothing lingers."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cli.program import dialsim, dialsim_process
from experiments.program import PATIENCE_S, kept, session, start, wait_until, workers, writes
from pictures import undrawn

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes in /proc"),
    pytest.mark.usefixtures("pictures_undrawn"),
]

PEOPLE = "organizations.Acme.campaigns.0.recipients.count=1000"
WHOLE = 20


def running(replications: int) -> tuple[str, ...]:
    """Replications, each long enough to be disturbed."""
    asked = ("--replications", str(replications), "--what-if", "0", "--engine", "simpy")
    return ("run", "scenarios/first-campaign.yaml", "--set", PEOPLE, *asked)


RUN = running(WHOLE)
ENDLESS = running(10_000)
"""More than any machine gets done before it is interrupted."""
FILES = ("runs", "organizations", "campaigns", "estimates")


def contents(folder: Path) -> dict[str, bytes]:
    """The files that depend on the scenario and the seed alone."""
    names = [*(f"{name}.parquet" for name in FILES), "summary.json"]
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "out"
    with undrawn():
        done = dialsim(*RUN, "--jobs", "1", "--out", folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_its_time(undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with start(*RUN, "--jobs", "2", "--out", folder) as program:
        wait_until(writes(folder, 60_000), program)
        os.kill(workers(program.pid)[0], signal.SIGKILL)
        _, errors = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, errors) == (0, "")
    assert contents(folder) == contents(undisturbed)


def test_a_killed_program_goes_on_and_redoes_only_what_is_missing(
    undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    with start(*RUN, "--jobs", "2", "--out", folder) as program:
        wait_until(writes(folder, 60_000), program)
        program.kill()
    wait_until(lambda: not session(program.pid))
    before = kept(folder)
    assert 0 < len(before) < WHOLE
    assert json.loads((folder / "manifest.json").read_text())["finished"] is False
    with closing(sqlite3.connect(folder / "replications.sqlite")) as store:
        store.execute("CREATE TABLE redone (replication INTEGER)")
        store.execute(
            "CREATE TRIGGER count_runs AFTER INSERT ON finished "
            "BEGIN INSERT INTO redone VALUES (new.replication); END"
        )
    done = dialsim(*RUN, "--jobs", "1", "--out", folder)
    assert (done.returncode, done.stderr) == (0, "")
    with closing(sqlite3.connect(folder / "replications.sqlite")) as store:
        redone = [row[0] for row in store.execute("SELECT replication FROM redone")]
    assert sorted(redone) == sorted(set(range(WHOLE)) - set(before))
    assert contents(folder) == contents(undisturbed)
    assert json.loads((folder / "manifest.json").read_text())["finished"] is True


@pytest.mark.parametrize(
    "whom",
    ["everybody, as a terminal does", pytest.param("the program", marks=pytest.mark.slow)],
)
def test_ctrl_c_ends_at_once_and_leaves_nobody_behind(tmp_path: Path, whom: str) -> None:
    folder = tmp_path / "out"
    with start(*ENDLESS, "--jobs", "2", "--out", folder) as program:
        wait_until(writes(folder, 60_000), program)
        if whom == "the program":
            program.send_signal(signal.SIGINT)
        else:
            os.killpg(program.pid, signal.SIGINT)
        _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 130
    assert errors == (
        f"Interrupted: finished replications are kept in {folder}; "
        "the same command goes on from there.\n"
    )
    wait_until(lambda: not session(program.pid))
    assert 0 < len(kept(folder)) < 10_000


@pytest.mark.slow
def test_ctrl_c_while_workers_begin_is_told_in_one_line(tmp_path: Path) -> None:
    with start(*ENDLESS, "--jobs", "2", "--out", tmp_path / "out") as program:
        wait_until(lambda: bool(workers(program.pid)), program)
        os.killpg(program.pid, signal.SIGINT)
        _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 130
    assert errors.startswith("Interrupted: ")
    assert errors.count("\n") == 1
    wait_until(lambda: not session(program.pid))


@pytest.mark.slow
def test_ctrl_c_while_what_would_help_is_measured_loses_nothing_either(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    vary = ("--vary", "organizations.Acme.maxConcurrentCalls=9,12", "--replications", "2")
    few = ("--set", "organizations.Acme.campaigns.0.recipients.count=500")
    asked = ("sweep", RUN[1], *few, *vary, "--what-if", "15", "--out", folder)
    with start(*asked, "--jobs", "2") as program:
        wait_until(writes(folder, 200_000), program)  # the 4 runs of the sweep take half of that
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 130
    assert errors == (
        f"Interrupted: finished replications are kept in {folder}; "
        "the same command goes on from there.\n"
    )
    wait_until(lambda: not session(program.pid))
    assert not (folder / "report.html").exists()
    with closing(sqlite3.connect(folder / "replications.sqlite")) as store:
        (before,) = store.execute("SELECT count(*) FROM finished").fetchone()
    assert before > 4
    done = dialsim_process(*asked, "--jobs", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "in 15 pairs of runs" in (folder / "report.html").read_text(encoding="utf-8")
