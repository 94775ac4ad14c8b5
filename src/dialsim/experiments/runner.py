"""The runner: makes replications with workers, stores finished ones, reports progress.

Workers are processes on this machine, or a Dask cluster; both are joblib backends. Results arrive
in any order and are identified by an index. If a worker is killed, joblib gives up the whole round;
missing tasks are then submitted again.

The store is a file with every finished replication, so that a killed experiment can continue. It is
an SQLite database, which survives a kill at any instant. Entries are only used for an equal
scenario (its digest), seed, version of dialsim, rules and figures.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cache
from itertools import chain, groupby
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypedDict, cast

from dialsim import __version__
from dialsim.engine.compiled.cache import source_digest
from dialsim.engine.engines import Choice, Engine, calls_of, choose, prepare
from dialsim.errors import ExperimentError, ReplicationFailed, StoreError, WorkersLost
from dialsim.experiments.run_figures import RunFigures
from dialsim.experiments.run_spec import (
    RunSpec,
    Task,
    TaskOutcome,
    drop_lists,
    keep_lists,
    run_tasks,
)
from dialsim.interface.phrases import counted
from dialsim.results.figures import FIGURES
from dialsim.results.progress import Progress, Shown, followed

if TYPE_CHECKING:
    from distributed import Client


_TOGETHER = 8
"""Variants of a replication that a worker takes at once."""
_FRUITLESS_ROUNDS = 3
"""Consecutive rounds without any result after which the runner gives up."""


class Workers:
    """Pool of workers for tasks.

    `jobs` processes on this machine (None: one per processor; 1: in this process), or the workers
    of the Dask scheduler at the address `dask`, such as `tcp://10.0.0.1:8786`.
    """

    def __init__(self, jobs: int | None = None, dask: str | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise ExperimentError(f"jobs must be 1 or more, not {jobs}")
        self._jobs = jobs
        self._dask = dask
        self._client: Client | None = None
        self._sent: set[str] = set()
        self._plugins: list[str] = []

    def outcomes(self, tasks: Sequence[Task]) -> Generator[TaskOutcome]:
        """Run tasks and yield their outcomes as they arrive.

        Raises WorkersLost if workers keep dying without a result. Leaving early, by an error or
        Ctrl-C, terminates the workers at once.
        """
        missing = {task.index: task for task in tasks}
        fruitless, jobs = 0, 1 if len(tasks) == 1 else self._jobs or -1
        while missing:
            before, tasks = len(missing), [*missing.values()]
            # One by one, so that a task that kills its worker takes no other with it.
            if fruitless:
                tasks = [tasks[fruitless % len(tasks)]]
            try:
                with (
                    kept_memory(), self._backend(), closing(self._round(tasks, jobs)) as finished,
                ):  # fmt: skip
                    # Outcomes are consumed while others run: they are stored, and a kill loses at
                    # most those under way.
                    for outcome in chain.from_iterable(finished):
                        del missing[outcome.index]
                        yield outcome
                fruitless = 0
            except self._lost_worker():
                # A round with any result counts as progress: the memory may have been short for a
                # moment only.
                fruitless = fruitless + 1 if len(missing) == before else 0
                if fruitless >= _FRUITLESS_ROUNDS:
                    raise WorkersLost(_lost(missing)) from None
            except BaseException:
                self._dismiss()
                raise

    def _round(self, tasks: Sequence[Task], jobs: int) -> Generator[list[TaskOutcome]]:
        from joblib import Parallel, delayed, effective_n_jobs

        # Local workers end with their parent; workers of a cluster belong to other people.
        master = os.getpid() if self._dask is None else None
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
        if self._client is not None:
            tasks = self._with_lists_sent(self._client, tasks)
        calls = (
            delayed(run_tasks)(together, __version__, master)
            for together in _sharing(tasks, effective_n_jobs(jobs))
        )
        with interrupts_held():
            return cast("Generator[list[TaskOutcome]]", parallel(calls))

    def _with_lists_sent(self, client: Client, tasks: Sequence[Task]) -> list[Task]:
        """Send lists of people to the workers of a cluster, each list once, also to later
        workers.
        """
        # A list passed as an argument would stay on one worker and be lost with it, or be sent with
        # each task.
        from distributed import WorkerPlugin

        class PeopleLists(WorkerPlugin):
            def __init__(self, packed: dict[str, bytes]) -> None:
                self.packed = packed

            def setup(self, worker: object) -> None:  # noqa: ARG002 (as Dask calls it)
                keep_lists(self.packed)

            def teardown(self, worker: object) -> None:  # noqa: ARG002
                drop_lists(self.packed)

        found = {name: packed for task in tasks for name, packed in task.lists.items()}
        new = {name: bytes(found[name]) for name in found.keys() - self._sent}
        if new:
            self._sent |= new.keys()
            # Any name that is unique to these lists.
            plugin = min(new)
            client.register_plugin(PeopleLists(new), name=plugin)
            self._plugins.append(plugin)
        return [replace(task, lists={}) for task in tasks]

    def _backend(self) -> AbstractContextManager[Any]:
        from joblib import parallel_config

        if self._dask is None:
            return cast("AbstractContextManager[Any]", parallel_config("loky"))
        if self._client is None:
            self._client = _client(self._dask)
        config = parallel_config(
            "dask", client=self._client, wait_for_workers_timeout=30, retries=2
        )
        return cast("AbstractContextManager[Any]", config)

    def _lost_worker(self) -> type[Exception]:
        """Return the backend's error for a dead worker."""
        if self._dask is None:
            from joblib.externals.loky.process_executor import BrokenProcessPool

            return cast("type[Exception]", BrokenProcessPool)
        from distributed.scheduler import KilledWorker

        return KilledWorker

    def close(self) -> None:
        """Disconnect from the Dask cluster; processes on this machine stay for a while."""
        if self._client is not None:
            for plugin in self._plugins:
                self._client.unregister_worker_plugin(plugin)  # type: ignore[no-untyped-call]
            self._client.close()  # type: ignore[no-untyped-call]
            self._client = None

    def _dismiss(self) -> None:
        """Terminate the processes on this machine without waiting for their tasks."""
        if self._dask is None:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True, kill_workers=True)


_MALLOC = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
_MOST_KEPT = str(1 << 30)


@contextmanager
def kept_memory() -> Iterator[None]:
    """Make processes started inside keep freed memory for their next run (mallopt(3))."""
    # By default glibc returns large columns to the system and requests them again in every run,
    # page by page, which takes a tenth of a worker's time. Other systems ignore these variables.
    given = {name: os.environ.get(name) for name in _MALLOC}
    os.environ.update({name: _MOST_KEPT for name, value in given.items() if value is None})
    try:
        yield
    finally:
        for name in (name for name, value in given.items() if value is None):
            del os.environ[name]


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Make processes started inside ignore SIGINT, and deliver it to this process at the end."""
    # Ctrl-C reaches all processes of a terminal, and Python prints a traceback of a process that is
    # just starting. Workers are terminated by the program that started them. Windows has no such
    # mask.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    # The tracker's process would start inside, and up to Python 3.12 that ends the mask.
    ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _client(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise ExperimentError(
            "a Dask cluster needs the packages dask and distributed: pip install '.[dask]'"
        ) from None
    try:
        return Client(address, timeout="10s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ExperimentError(f"there is no Dask scheduler at {address}: {error}") from error


def _sharing(tasks: Sequence[Task], workers: int) -> list[list[Task]]:
    """Group tasks for workers: tasks of one replication share their draws."""
    # Groups stay small enough that every worker has one.
    most = max(1, min(_TOGETHER, len(tasks) // workers))
    shared = [[*same] for _, same in groupby(tasks, key=lambda task: (task.seed, task.replication))]
    return [same[k : k + most] for same in shared for k in range(0, len(same), most)]


def _lost(missing: dict[int, Task]) -> str:
    task = min(missing.values(), key=lambda task: task.index)
    return (
        f"worker processes were killed {_FRUITLESS_ROUNDS} times without a result, perhaps for "
        f"want of memory; {counted(len(missing), 'run is', 'runs are')} missing, the first of them "
        f"replication {task.replication} of seed {task.seed}; fewer jobs need less memory"
    )


# -- what is kept ----------------------------------------------------------------------------------

STORE = "replications.sqlite"
_SOURCES = (
    *("interface", "scenario", "engine", "webhooks", "results"),
    "experiments/run_figures.py",
)
"""Rooms and files of the package whose code decides the figures of a run."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS finished (
    version TEXT, scenario TEXT, seed INTEGER, replication INTEGER, figures TEXT NOT NULL,
    PRIMARY KEY (version, scenario, seed, replication)
) WITHOUT ROWID
"""


def _made_by() -> str:
    """Return the key of this program's runs: version, digest of the rules, and figures."""
    # A digest in place of a version number, which would have to be raised with every change of a
    # rule or figure.
    declared = repr([(figure.name, figure.unit, figure.is_float) for figure in FIGURES])
    both = f"{_rules_digest()} {declared}"
    return f"{__version__}, {hashlib.sha256(both.encode()).hexdigest()[:16]}"


@cache
def _rules_digest() -> str:
    package = Path(__file__).parents[1]
    places = [package / name for name in _SOURCES]
    return source_digest(
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    )


class Store:
    """Finished replications under a folder; one experiment at a time may write."""

    def __init__(self, folder: Path) -> None:
        """Open or create the store. Raises StoreError if it is in use, or is no store."""
        self.path = folder / STORE
        self._made_by = _made_by()
        # Autocommit, so that every finished replication survives a kill. The short timeout turns a
        # second writer into an error instead of a wait.
        self._database = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._database.close()
            in_use = "locked" in str(error)
            why = "another experiment is writing to it" if in_use else str(error)
            raise StoreError(f"{self.path} can't be used: {why}") from None
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise StoreError(f"{self.path} is not a store of replications: {error}") from None

    def recall(self, spec: RunSpec, count: int) -> None:
        """Load the stored ones among a spec's first `count` replications."""
        # The key is the digest of scenario and program: a changed rule never returns stale figures.
        rows = self._database.execute(
            "SELECT figures FROM finished WHERE version = ? AND scenario = ? AND seed = ? "
            "AND replication < ?",
            (self._made_by, spec.digest, spec.seed, count),
        )
        for (text,) in rows:
            figures = RunFigures.from_text(text)
            spec.finished.setdefault(figures.replication, figures)

    def keep(self, spec: RunSpec, replication: int, text: str) -> None:
        """Store a finished replication durably."""
        self._database.execute(
            "INSERT OR REPLACE INTO finished VALUES (?, ?, ?, ?, ?)",
            (self._made_by, spec.digest, spec.seed, replication, text),
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()


# -- the runner ------------------------------------------------------------------------------------


class OutOfTime(Exception):
    """The time limit of an experiment has passed; finished runs are kept."""


class ExperimentRunner:
    """Runner of replications, with equal results for all kinds of workers."""

    def __init__(
        self,
        workers: Workers,
        store: Store | None,
        progress: Progress | None,
        engine: Choice,
        within: float | None = None,
    ) -> None:
        """`progress(done, total)` is called whenever a replication is finished.

        `engine` "auto" switches to the compiled engine when it pays. After `within` seconds no
        further runs start (`OutOfTime`).
        """
        self._end = inf if within is None else monotonic() + within
        self._workers = workers
        self._store = store
        self._progress = progress
        self._engine = engine
        self.ahead = 0
        """Estimated number of runs after the current ones, for the progress."""
        self._done = 0
        self._calls = 0  # of all replications so far, estimated

    def replicate(
        self, specs: Sequence[RunSpec], count: int, asked: frozenset[str] | None = None
    ) -> None:
        """Make the first `count` replications of every spec that are not finished yet.

        With `asked` only these figures are computed, unless there is a store, in which other
        commands and pages expect all figures. Raises ReplicationFailed for the first failure,
        OutOfTime after the time limit; replications finished before are kept.
        """
        if self._store is not None:
            # Stored runs keep all figures, as the next experiment may ask for others.
            asked = None
            for spec in specs:
                self._store.recall(spec, count)
        if asked is not None:
            specs = sorted(specs, key=lambda c: (c.relatives.family, c.relatives.settings))
        # Variants of one replication are adjacent, so that workers take them together.
        owners, missing = [], []
        for replication in range(count):
            for spec in specs:
                if replication not in spec.finished:
                    owners.append(spec)
                    missing.append(replication)
        if not owners:
            return
        self._check_time()
        engine = self._choose(owners)
        tasks = [
            spec.task(index, replication, engine, asked)
            for index, (spec, replication) in enumerate(zip(owners, missing, strict=True))
        ]
        total = self._done + max(len(tasks), self.ahead)
        with warnings.catch_warnings(), closing(self._workers.outcomes(tasks)) as outcomes:
            # joblib warns of runs that are given up when the time is up
            warnings.filterwarnings("ignore", message=".*tasks which were still being processed")
            for outcome in outcomes:
                task, spec = tasks[outcome.index], owners[outcome.index]
                if outcome.figures is None:
                    cause, rerun = outcome.failure or "", spec.rerun(task.replication)
                    raise ReplicationFailed(spec.seed, task.replication, cause, rerun)
                if self._store is not None:
                    self._store.keep(spec, task.replication, outcome.figures)
                spec.finished[task.replication] = RunFigures.from_text(outcome.figures, asked)
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, total)
                if outcome.index < len(tasks) - 1:
                    self._check_time()

    def _check_time(self) -> None:
        if monotonic() > self._end:
            raise OutOfTime

    def _choose(self, owners: Sequence[RunSpec]) -> Engine:
        """Return the engine for one more replication of each of these."""
        # Cumulative, because a search requests few runs at a time, which add up.
        self._calls += sum(calls_of(spec.scenario) for spec in owners)
        engine = choose(self._engine, self._calls)
        prepare(engine)
        return engine


class RunSettings(TypedDict, total=False):
    """Settings for the runs of any experiment, as in `replicate`."""

    jobs: int | None
    dask: str | None
    store: str | os.PathLike[str] | None
    progress: Shown
    engine: Choice


@contextmanager
def runner(
    jobs: int | None = None,
    dask: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Shown = None,
    engine: Choice = "auto",
    within: float | None = None,
) -> Iterator[ExperimentRunner]:
    """Yield a runner for one experiment; `store` is the folder of its store."""
    with ExitStack() as opened:
        kept = None
        if store is not None:
            Path(store).mkdir(parents=True, exist_ok=True)
            kept = opened.enter_context(closing(Store(Path(store))))
        workers = opened.enter_context(closing(Workers(jobs, dask)))
        told = opened.enter_context(followed(progress, "Simulating", "runs"))
        yield ExperimentRunner(workers, kept, told, engine, within)
