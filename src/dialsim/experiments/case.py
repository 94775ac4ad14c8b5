"""A case of an experiment, a scenario with a seed, and one replication as a task for a worker.

The worker may be another process or another machine.
"""

from __future__ import annotations

import gc
import os
import pickle
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Thread
from threading import enumerate as enumerate_threads
from time import sleep
from typing import TYPE_CHECKING

import numpy as np

from dialsim import __version__
from dialsim.engine.engines import load
from dialsim.engine.world import World
from dialsim.experiments.prior import Prior, prior_of
from dialsim.experiments.run_figures import RunFigures, figures_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.engine.engines import Engine
    from dialsim.scenario.scenario import Scenario


class Case:
    """A scenario that is replicated; `finished` are its replications so far, by number."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        """`seed` defaults to the scenario's."""
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self.digest = scenario.digest
        self.finished: dict[int, RunFigures] = {}

    @cached_property
    def prior(self) -> Prior:
        """What the scenario tells of its runs before any is made."""
        return prior_of(self.scenario)

    @cached_property
    def pickled(self) -> NDArray[np.uint8]:
        """The scenario as bytes; as an array, which workers on this machine share if it is big."""
        return np.frombuffer(pickle.dumps(self.scenario, protocol=5), dtype=np.uint8)

    def first(self, count: int) -> list[RunFigures]:
        """The first `count` replications, all of which must be finished, in order."""
        return [self.finished[replication] for replication in range(count)]

    def rerun(self, replication: int) -> str:
        """The command that runs one replication alone."""
        origin = self.scenario.origin
        words = ["dialsim", "run", origin.name if origin else self.scenario.name]
        words += ["--seed", str(self.seed), "--replication", str(replication)]
        for override in origin.overrides if origin else ():
            words += ["--set", override]
        return shlex.join(words)


_WATCH = "dialsim-master-watch"
_UNPACKED_AT_MOST = 8
_unpacked: dict[str, Scenario] = {}
_latest: World | None = None
"""What was worked off last: the next variant has its people, and meets the same chance."""


@dataclass(frozen=True, slots=True)
class Task:
    """Replication `replication` of `seed` of the scenario in `pickled`; `index` names the task.

    `asked` are the figures wanted, None for all. All engines come to the same figures.
    """

    index: int
    digest: str
    pickled: NDArray[np.uint8] | bytes
    seed: int
    replication: int
    engine: Engine
    asked: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What came of a task: its figures as text (`RunFigures.to_text`), or the error it raised."""

    index: int
    figures: str | None
    failure: str | None


def run_tasks(tasks: Sequence[Task], version: str, master: int | None) -> list[TaskOutcome]:
    """Simulate replications; an error is an outcome too, so that it costs no other its run.

    `version` is the one of the program that wants them: another would give other figures. `master`
    is the process that has this one as its worker, if that is on the same machine.
    """
    if version != __version__:
        failure = f"the worker has dialsim {__version__}, not {version}"
        return [TaskOutcome(task.index, None, failure) for task in tasks]
    _begin_work(master, tasks[0].engine)
    return [_outcome(task) for task in tasks]


def _outcome(task: Task) -> TaskOutcome:
    from dialsim.results.result import result_of

    try:
        world = _world(_scenario(task.digest, task.pickled), task.seed, task.replication)
        figures = figures_of(result_of(world, task.engine), task.asked)
    except Exception as error:
        return TaskOutcome(task.index, None, f"{type(error).__name__}: {error}")
    return TaskOutcome(task.index, figures.to_text(), None)


def _begin_work(master: int | None, engine: Engine) -> None:
    """Prepare this process, if it is a worker that was not prepared before.

    What is loaded by now stays to the end, and Python looks for no garbage among it any more: that
    took a twentieth of the time of a worker's runs (benchmarks/decision.py).
    """
    if master in (None, os.getpid()) or _WATCH in (thread.name for thread in enumerate_threads()):
        return
    end_with(master)
    load(engine)
    gc.freeze()


def end_with(master: int | None) -> None:
    """See to it that this worker ends when its master is killed, and not minutes later."""

    def watch() -> None:
        while os.getppid() == master:
            sleep(0.3)
        os._exit(1)

    Thread(target=watch, name=_WATCH, daemon=True).start()


def _world(scenario: Scenario, seed: int, replication: int) -> World:
    """The world of a task; what it doesn't share with the one before is given up by now."""
    global _latest  # noqa: PLW0603 (it is what this process knows)
    _latest = World(scenario, seed, replication, _latest)
    return _latest


def _scenario(digest: str, pickled: NDArray[np.uint8] | bytes) -> Scenario:
    """The scenario in a pickled; a worker unpacks it once."""
    if digest not in _unpacked:
        if len(_unpacked) >= _UNPACKED_AT_MOST:
            _unpacked.clear()
        _unpacked[digest] = pickle.loads(bytes(pickled))
    return _unpacked[digest]
