"""A real Dask cluster: a scheduler and two worker processes; one is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import dialsim
from cli.program import ROOT, dialsim_process
from experiments.program import PATIENCE_S, start, wait_until, writes
from experiments.test_kills import ENDLESS, RUN, contents
from experiments.test_own_figures import SMALL
from experiments.test_same_runs import optimum

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("distributed") is None, reason="the extra dialsim[dask] is not installed"
    ),
]

Program = subprocess.Popen[str]


def part(*arguments: str, log: Path) -> Program:
    """Start a program of Dask, with its output in a file."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    with log.open("w") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdout=said,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[Program]]]:
    """The scheduler's address and the two workers."""
    log = tmp_path / "scheduler.log"
    place = ("--host", "127.0.0.1", "--port", "0")
    scheduler = part("dask_scheduler", *place, "--no-dashboard", log=log)
    wait_until(lambda: "Scheduler at:" in log.read_text(), scheduler)
    address = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
    assert address is not None
    options = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1")
    workers = []
    for name in ("one", "two"):
        folder = ("--local-directory", str(tmp_path / name))
        log = tmp_path / f"{name}.log"
        workers.append(part("dask_worker", address[1], *options, *folder, log=log))
    yield address[1], workers
    for program in (*workers, scheduler):
        program.kill()
        program.wait()


def test_figures_by_functions_of_this_file_are_computed_by_a_cluster(
    cluster: tuple[str, list[Program]],
) -> None:
    address, _ = cluster
    least = 3
    figures = {"busy": lambda result: int((result.calls.status == "BUSY").sum()) + least}
    here, there = (
        dialsim.replicate(dialsim.loads(SMALL), 6, figures=figures, **place)  # type: ignore[arg-type]
        for place in ({"jobs": 1}, {"dask": address})
    )
    assert here.runs["busy"].tolist() == there.runs["busy"].tolist()
    assert here.runs["busy"].nunique() > 1


def test_a_cluster_that_loses_a_worker_gives_the_same_bytes(
    cluster: tuple[str, list[Program]], tmp_path: Path
) -> None:
    address, workers = cluster
    here, there = tmp_path / "here", tmp_path / "there"
    assert dialsim_process(*RUN, "--jobs", "2", "--out", here).returncode == 0
    with start(*RUN, "--dask", address, "--out", there) as program:
        wait_until(writes(there, 60_000), program)
        workers[0].kill()
        _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, errors
    assert contents(there) == contents(here)


def test_a_list_of_people_reaches_workers_that_join_later_and_a_killed_one_changes_nothing(
    cluster: tuple[str, list[Program]], tmp_path: Path
) -> None:
    """The list is sent once, and not with the runs: a worker that joins must have it as well."""
    address, workers = cluster
    run = ("run", "scenarios/people-from-a-file.yaml", "--replications", "40", "--what-if", "0",
           "--engine", "simpy")  # fmt: skip
    here, there = tmp_path / "here", tmp_path / "there"
    assert dialsim_process(*run, "--jobs", "2", "--out", here).returncode == 0
    with start(*run, "--dask", address, "--out", there) as program:
        wait_until(writes(there, 20_000), program)
        options = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1")
        folder = ("--local-directory", str(tmp_path / "three"))
        workers.append(part("dask_worker", address, *options, *folder, log=tmp_path / "three.log"))
        wait_until(lambda: "Registered to" in (tmp_path / "three.log").read_text(), program)
        workers[0].kill()
        workers[1].kill()  # only the worker that joined is left
        _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, errors
    assert contents(there) == contents(here)


def test_ctrl_c_leaves_the_cluster_to_others(
    cluster: tuple[str, list[Program]], tmp_path: Path
) -> None:
    address, workers = cluster
    with start(*ENDLESS, "--dask", address, "--out", tmp_path / "out") as program:
        wait_until(writes(tmp_path / "out", 60_000), program)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 130
    assert errors.startswith("Interrupted: finished replications are kept in ")
    assert [worker.poll() for worker in workers] == [None, None]


def test_an_address_without_a_scheduler_is_told() -> None:
    done = dialsim_process(*RUN, "--dask", "tcp://127.0.0.1:9")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: there is no Dask scheduler at tcp://127.0.0.1:9: ")


def test_an_optimum_of_shared_runs_is_the_same_on_a_cluster_that_loses_a_worker(
    cluster: tuple[str, list[Program]],
) -> None:
    address, workers = cluster
    here = optimum(jobs=1)
    assert optimum(dask=address) == here
    workers[1].kill()
    assert optimum(dask=address) == here
