"""Scenario and seed of an experiment, and one replication as a task for a worker.

The worker may be another process or another machine.
"""

from __future__ import annotations

import gc
import os
import pickle
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from threading import Thread
from threading import enumerate as enumerate_threads
from time import sleep
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dialsim import __version__
from dialsim.engine.engines import load
from dialsim.engine.world import World
from dialsim.experiments.known_bounds import KnownBounds, known_bounds_of
from dialsim.experiments.run_figures import RunFigures, figures_of
from dialsim.experiments.same_runs import MadeRun, Relatives
from dialsim.scenario.campaign import PeopleTable
from dialsim.scenario.packing import pack, packed_list, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dialsim.engine.engines import Engine
    from dialsim.scenario.scenario import Scenario


class RunSpec:
    """Scenario that is replicated; `finished` are its replications so far, by number."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        """`seed` defaults to the scenario's."""
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self.digest = scenario.digest
        self.finished: dict[int, RunFigures] = {}

    @cached_property
    def bounds(self) -> KnownBounds:
        """Limits on figures that follow from the scenario without any run."""
        return known_bounds_of(self.scenario)

    @cached_property
    def relatives(self) -> Relatives:
        """Family of the scenario, and the settings in which variants of the family may differ."""
        return Relatives(self.scenario)

    @cached_property
    def packed(self) -> tuple[bytes, dict[str, PeopleTable]]:
        """Scenario as bytes, and its lists of people by name."""
        return pack(self.scenario)

    def task(
        self, index: int, replication: int, engine: Engine, asked: frozenset[str] | None = None
    ) -> Task:
        """Return a replication as a task; only runs of some figures are shared (`same_runs`)."""
        packed, lists = self.packed
        return Task(
            index,
            self.digest,
            packed,
            {name: packed_list(people) for name, people in lists.items()},
            self.seed,
            replication,
            engine,
            asked,
            # A figure by a function may depend on settings that change no call
            None if asked is None or self.scenario.own_figures else self.relatives.family,
        )

    @property
    def known(self) -> int:
        """Number of finished replications from the first on, without a gap."""
        return next(number for number in count() if number not in self.finished)

    def first(self, count: int) -> list[RunFigures]:
        """Return the first `count` replications in order; all must be finished."""
        return [self.finished[replication] for replication in range(count)]

    def rerun(self, replication: int) -> str:
        """Return the command that repeats one replication."""
        origin = self.scenario.origin
        words = ["dialsim", "run", origin.name if origin else self.scenario.name]
        words += ["--seed", str(self.seed), "--replication", str(replication)]
        for override in origin.overrides if origin else ():
            words += ["--set", override]
        return shlex.join(words)


_WATCH = "dialsim-master-watch"
_MOST_UNPACKED = 64  # scenarios that a worker keeps, without their lists of people
_unpacked: dict[str, Scenario] = {}
_lists: WeakValueDictionary[str, PeopleTable] = WeakValueDictionary()
_kept_lists: dict[str, PeopleTable] = {}
_latest: World | None = None
"""World of the last run, whose people and draws the next variant reuses."""


@dataclass(frozen=True, slots=True)
class Task:
    """Replication `replication` of `seed` of the scenario in `packed`; `index` identifies the task.

    `lists` are its lists of people by name, packed, empty for a worker that keeps them. `asked` are
    the requested figures, None for all. Tasks of one `family` may share runs (`same_runs`). All
    engines give equal figures.
    """

    index: int
    digest: str
    packed: bytes
    lists: Mapping[str, NDArray[np.uint8]]
    seed: int
    replication: int
    engine: Engine
    asked: frozenset[str] | None = None
    family: str | None = None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """Outcome of a task: its figures as text (`RunFigures.to_text`), or the error that it
    raised.
    """

    index: int
    figures: str | None
    failure: str | None


def run_tasks(tasks: Sequence[Task], version: str, master: int | None) -> list[TaskOutcome]:
    """Simulate replications, and return an outcome for each.

    `version` is the version of the calling program, because another version may give other figures.
    `master` is the process that started this worker, if it is on the same machine.
    """
    if version != __version__:
        failure = f"the worker has dialsim {__version__}, not {version}"
        # An error is an outcome and is not raised: the other tasks of the batch keep their runs.
        return [TaskOutcome(task.index, None, failure) for task in tasks]
    _begin_work(master, tasks[0].engine)
    sizes = Counter(task.family for task in tasks)
    made: list[MadeRun] = []
    return [_outcome(task, made if sizes[task.family] > 1 else None) for task in tasks]


def _outcome(task: Task, made: list[MadeRun] | None) -> TaskOutcome:
    """Simulate a task, unless it shares one of the runs made; add its run to them."""
    from dialsim.results.result import result_of

    try:
        scenario = _scenario(task)
        if task.family is None or made is None:
            result = result_of(_world(scenario, task.seed, task.replication), task.engine)
            return TaskOutcome(task.index, figures_of(result, task.asked).to_text(), None)
        relatives = Relatives(scenario)
        for run in made:
            if run.is_shared_by(task.family, relatives.settings):
                return TaskOutcome(task.index, run.figures, None)
        result = result_of(_world(scenario, task.seed, task.replication), task.engine)
        figures = figures_of(result, task.asked).to_text()
        made.append(MadeRun.of(result, task.family, relatives, figures))
    except Exception as error:
        return TaskOutcome(task.index, None, f"{type(error).__name__}: {error}")
    return TaskOutcome(task.index, figures, None)


def _begin_work(master: int | None, engine: Engine) -> None:
    """Prepare this process, if it is a worker that is not prepared yet."""
    if master in (None, os.getpid()) or _WATCH in (thread.name for thread in enumerate_threads()):
        return
    end_with(master)
    load(engine)
    # Everything loaded by now stays to the end. Without freezing it, garbage collection took a
    # twentieth of the time of a worker's runs (benchmarks/decision.py).
    gc.freeze()


def end_with(master: int | None) -> None:
    """Terminate this worker within a second after its master was killed."""

    def watch() -> None:
        while os.getppid() == master:
            sleep(0.3)
        os._exit(1)

    Thread(target=watch, name=_WATCH, daemon=True).start()


def _world(scenario: Scenario, seed: int, replication: int) -> World:
    """Return the world of a task."""
    # The previous world is replaced here, so that at most one outlives its run.
    global _latest  # noqa: PLW0603 (it is what this process knows)
    _latest = World(scenario, seed, replication, _latest)
    return _latest


def _scenario(task: Task) -> Scenario:
    """Return the scenario of a task; a worker unpacks it once, and each of its lists once."""
    if task.digest not in _unpacked:
        if len(_unpacked) >= _MOST_UNPACKED:
            _unpacked.clear()
        held = {
            name: _lists.get(name) or pickle.loads(bytes(packed))
            for name, packed in task.lists.items()
        }
        _lists.update(held)
        _unpacked[task.digest] = unpack(task.packed, _lists)
    return _unpacked[task.digest]


def keep_lists(packed: Mapping[str, bytes]) -> None:
    """Keep lists of people in this process, for tasks that come without them."""
    for name, content in packed.items():
        _lists[name] = _kept_lists[name] = pickle.loads(content)


def drop_lists(names: Iterable[str]) -> None:
    """Release lists together with their scenarios."""
    for name in names:
        _kept_lists.pop(name, None)
