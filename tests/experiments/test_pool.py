"""The pool of workers: processes that outlive an experiment, and cancellation inside a run."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Thread

import pytest

from dialsim.experiments.pool import Workers, _work, shared_pool
from dialsim.experiments.replications import replicate
from dialsim.experiments.run_spec import RunSpec
from dialsim.results.result import Result
from dialsim.results.run_view import RunView
from experiments.scenarios import CHANCY, crowd


def test_experiments_share_processes_and_a_killed_one_is_replaced() -> None:
    scenario = crowd(30, 5, **CHANCY)
    alone = [run.to_text() for run in replicate(scenario, 6, jobs=1).figures]
    assert [run.to_text() for run in replicate(scenario, 6, jobs=2).figures] == alone
    before = shared_pool(2).processes
    assert before
    replicate(scenario, 6, jobs=2, seed=3)
    assert {*before} <= {*shared_pool(2).processes}
    for pid in shared_pool(2).processes:
        os.kill(pid, signal.SIGKILL)
    assert [run.to_text() for run in replicate(scenario, 6, jobs=2).figures] == alone
    assert not {*before} & {*shared_pool(2).processes}


def test_leaving_early_leaves_the_processes_to_the_next_experiment() -> None:
    spec = RunSpec(crowd(300, 5, **CHANCY))
    tasks = [spec.task(index, index, "simpy") for index in range(40)]
    outcomes = Workers(2).outcomes(tasks)
    first = next(outcomes)
    before = shared_pool(2).processes
    outcomes.close()
    again = {outcome.index: outcome for outcome in Workers(2).outcomes(tasks[:6])}
    assert sorted(again) == [*range(6)]
    assert again.get(first.index, first) == first
    assert {*before} <= {*shared_pool(2).processes}


def run_views(result: Result) -> int:
    """The number of results in memory, found by their readings."""
    assert result.reading.parts  # a part and its run refer to each other
    return sum(isinstance(one, RunView) for one in gc.get_objects())


def test_a_worker_frees_a_run_before_the_next() -> None:
    spec = RunSpec(crowd(30, 5, **CHANCY))
    tasks = [spec.task(index, index, "simpy", also=run_views) for index in range(10)]
    assert {outcome.also for outcome in Workers(2).outcomes(tasks)} == {1}


@pytest.fixture
def worker() -> Iterator[Connection]:
    """The other end of a worker in this process."""
    ours, theirs = Pipe()

    def work() -> None:
        with suppress(EOFError):
            _work(theirs, 0)

    thread = Thread(target=work)
    thread.start()
    yield ours
    ours.close()
    thread.join()
    gc.unfreeze()


@pytest.mark.parametrize("is_early", [True, False])
def test_a_run_is_cancelled_and_the_worker_takes_the_next(
    worker: Connection, is_early: bool
) -> None:
    # A run of some seconds, which is not over before the cancellation arrives
    spec = RunSpec(crowd(30_000, 5))
    task = spec.task(0, 0, "simpy")
    worker.send([replace(task, parts={})])
    if is_early:
        worker.send(None)
    assert worker.recv() == spec.digest
    worker.send(spec.parts[spec.digest])
    if not is_early:
        worker.send(None)
    assert worker.recv() == []
    worker.send([replace(task, replication=1, parts={})])
    if is_early:
        assert worker.recv() == spec.digest
        worker.send(spec.parts[spec.digest])
    (outcome,) = worker.recv()
    assert outcome.failure is None
    assert outcome.figures is not None
