"""Workers for the runs of experiments: processes on this machine, or on a Dask cluster.

A pool gives tasks to its worker processes by priority, cancels them inside a run, and replaces a
killed worker. Experiments and the studio pass their tasks to it as a `Batch`. Experiments use it
through `Workers`, which may also stand for a Dask cluster with a scheduler of its own.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain, count, groupby, islice
from multiprocessing.connection import Pipe, wait
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings

from dialsim import __version__
from dialsim.engine import Engine, load, prepare
from dialsim.engine.compiled import is_available, is_compiled
from dialsim.errors import DialsimError, ExperimentError, WorkersLost
from dialsim.experiments.run_spec import (
    Cancelled,
    Task,
    TaskOutcome,
    TaskRunner,
    parts_of,
    run_tasks,
)
from dialsim.interface.phrases import counted

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


# -- processes -------------------------------------------------------------------------------------

_MOST_KEPT = str(1 << 30)
_MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": _MOST_KEPT,
    "MALLOC_MMAP_THRESHOLD_": _MOST_KEPT,
    "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


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

    # Otherwise the tracker's process would start inside, and up to Python 3.12 that ends the mask.
    ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_process(
    nice: int, target: Callable[..., object], *arguments: object
) -> tuple[Connection, Any]:
    """Start a process that ends with this one and calls `target(connection, *arguments)`.

    Returns the other end of the connection, and the process. `nice` lowers its priority.
    """
    # joblib's way to start processes does not import the main program again.
    from joblib.externals.loky.backend import get_context

    context = get_context("loky")
    ours, theirs = context.Pipe()
    # The default of glibc returns large columns to the system and requests them again in every run,
    # page by page, which takes a tenth of a worker's time (mallopt(3)). For the arena of a second
    # thread it does so at any threshold, so the threads share one arena. Huge pages save lookups of
    # page addresses, since the engine reads people in any order. Other systems ignore these
    # variables.
    kept = {name: value for name, value in _MALLOC.items() if name not in os.environ}
    given = (theirs, os.getpid(), nice, target, *arguments)
    with interrupts_held():
        process = context.Process(target=_begin, args=given, daemon=True, env=kept)
        process.start()
    # The process has its own copy of this end. If this copy stayed open, the death of the process
    # would not close the pipe.
    theirs.close()
    return ours, process


def _begin(connection: Connection, master: int, nice: int, target: Any, *given: Any) -> None:
    def watch() -> None:
        while os.getppid() == master:
            sleep(0.3)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
    # Windows has no nice
    with suppress(AttributeError, OSError):
        os.nice(nice)
    # A closed pipe means that the program needs no further runs of this process.
    with suppress(EOFError, OSError):
        target(connection, *given)


def _work(connection: Connection, kept_people: int) -> None:
    """Make runs until the other end of the connection is closed.

    The other end sends lists of tasks, and None to cancel them.
    """

    def check(_: int, __: int) -> None:
        # During a run the only message possible is a cancellation.
        if connection.poll():
            connection.recv()
            raise Cancelled

    def find(name: str) -> Any:
        connection.send(name)
        if (found := connection.recv()) is None:
            # The cancellation came before the answer, which is dropped.
            connection.recv()
            raise Cancelled
        return found

    runner, is_loaded = TaskRunner(check, kept_people), False
    while True:
        tasks = connection.recv()
        if tasks is None:
            continue
        if not is_loaded:
            load(tasks[0].engine)
            # Everything loaded by now stays to the end. Without freezing it, garbage collection
            # took a twentieth of the time of a worker's runs (benchmarks/decision.py).
            gc.freeze()
            is_loaded = True
        try:
            outcomes = runner.outcomes(tasks, find)
        except Cancelled:
            outcomes = []
        connection.send(outcomes)
        # A result refers to itself, and garbage collection by counts of objects would find it only
        # many runs later. New memory for the next run takes longer than its calls.
        gc.collect()


def _compile(_: Connection) -> None:
    prepare("compiled")


# -- the pool --------------------------------------------------------------------------------------

_FRUITLESS_ROUNDS = 3
"""Consecutive rounds without any result after which tasks are given up."""


class Batch:
    """Groups of tasks that a pool works on; a thread of the pool calls most methods."""

    advice = "fewer jobs need less memory"

    def __init__(self, groups: Iterable[list[Task]], behind: int = 0) -> None:
        """Other batches go first until they have started `behind` more groups than this batch."""
        self.is_cancelled = False
        self.last_turn = 0
        """Turn of the pool in which the batch last got a worker; 0 if it never got one."""
        self.rank = behind
        """Priority: the smallest goes first."""
        self._arrived: SimpleQueue[list[TaskOutcome] | DialsimError] = SimpleQueue()
        self._groups = iter(groups)
        self._waiting: list[list[Task]] = []
        self._busy = 0
        self._fruitless = 0
        self._is_careful = False

    @property
    def is_over(self) -> bool:
        """True if no more tasks will be started."""
        return self.is_cancelled

    def next_tasks(self, worker: int, workers: int) -> list[Task]:
        """Return the tasks that a worker starts now; empty if there are none for this worker."""
        self._waiting += islice(self._groups, max(0, 1 + workers - len(self._waiting)))
        if not self._waiting or (self._is_careful and self._busy):
            return []
        self._busy, self.rank = self._busy + 1, self.rank + 1
        return self._waiting.pop(self._choice(worker, workers))

    def _choice(self, worker: int, workers: int) -> int:  # noqa: ARG002 (here they are alike)
        """Return the index of the waiting group for a worker."""
        return 0

    def take(self, outcomes: list[TaskOutcome]) -> None:
        """Accept the outcomes of tasks; cancelled tasks have none."""
        # Any result counts as progress: the memory may have been short for a moment only.
        self._busy, self._fruitless, self._is_careful = self._busy - 1, 0, False
        self.publish(outcomes)

    def on_worker_died(self, tasks: list[Task]) -> None:
        """Repeat tasks whose worker was killed, or give up."""
        # One by one, so that a task that kills its worker takes no other with it.
        self._waiting += [[task] for task in tasks]
        self._busy, self._is_careful = self._busy - 1, True
        self._fruitless += not self._busy
        if self._fruitless >= _FRUITLESS_ROUNDS:
            self.publish(_lost(chain(*self._waiting, *self._groups), self.advice))

    def publish(self, news: list[TaskOutcome] | DialsimError) -> None:
        """Pass outcomes on, or the error that ends the tasks."""
        self._arrived.put(news)

    def outcomes(self, pool: Pool, tasks: int) -> Generator[list[TaskOutcome]]:
        """Run the batch in a pool, and yield outcomes as they arrive; `tasks` is their number."""
        pool.begin(self)
        try:
            while tasks:
                news = self._arrived.get()
                if isinstance(news, DialsimError):
                    raise news
                tasks -= len(news)
                yield news
        finally:
            pool.cancel(self)


_KEPT_PEOPLE = 800_000
"""People whose draws a worker of the studio caches for the next change."""
_NICE = 5
"""Niceness of refinement: the operating system serves first answers before it."""
_IDLE_SECONDS = 300.0
"""Time without news after which idle workers of experiments end."""


class Pool:
    """Worker processes shared by several batches."""

    def __init__(self, jobs: int | None = None, on_demand: bool = False) -> None:
        """Start `jobs` worker processes (None: one per processor) and an extra worker.

        The extra worker begins each new batch, such as an answer of the studio: a running task
        can't be stopped at every moment, and a first answer must not wait for it. With `on_demand`
        there is no extra worker; the others start when they are needed and end when idle.
        """
        from joblib import cpu_count

        self._on_demand = on_demand
        self._batches: list[Batch] = []
        self._turns = count(1)
        self._is_closed = False
        nice, kept = (0, 0) if on_demand else (_NICE, _KEPT_PEOPLE)
        self._workers = [_Worker(1 + k, nice, kept) for k in range(jobs or cpu_count())]
        if not on_demand:
            self._workers.insert(0, _Worker(0, 0, kept))
        # Without numba all runs are SimPy's. Experiments compile before they begin.
        self._is_available = is_available() and not on_demand
        is_missing = self._is_available and not is_compiled()
        self._compiling = start_process(0, _compile)[1] if is_missing else None
        self._awake, self._alarm = Pipe(duplex=False)
        self._thread = Thread(target=self._serve, name="dialsim-pool", daemon=True)
        self._thread.start()

    @property
    def processes(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    @property
    def engine(self) -> Engine:
        """Fastest engine that is ready: SimPy makes the runs while another process compiles."""
        is_compiling = self._compiling is not None and self._compiling.is_alive()
        return "compiled" if self._is_available and not is_compiling else "simpy"

    def begin(self, batch: Batch) -> None:
        """Start the tasks of a batch. Raises DialsimError if the pool is closed."""
        if self._is_closed:
            raise DialsimError("the studio is closed")
        self._batches.append(batch)
        self._alarm.send(None)

    def cancel(self, batch: Batch) -> None:
        """Cancel the tasks of a batch, including running ones."""
        batch.is_cancelled = True
        self._alarm.send(None)

    def close(self) -> None:
        """Terminate the workers."""
        self._is_closed = True
        self._alarm.send(None)
        self._thread.join()

    def _serve(self) -> None:
        """Send tasks to the workers and receive their outcomes until the pool is closed."""
        for worker in self._workers if not self._on_demand else ():
            # A worker that does not start now is started again when it is needed.
            with suppress(OSError):
                worker.start()
        while not self._is_closed:
            for worker in self._workers:
                worker.stop_if_cancelled()
            for batch in [batch for batch in self._batches if batch.is_over]:
                self._batches.remove(batch)
            # No further process is started while there is an idle one.
            for worker in sorted(self._workers, key=lambda worker: worker.process is None):
                if worker.batch is None:
                    self._give(worker)
            alive: dict[Any, _Worker] = {one.connection: one for one in self._workers}
            alive.pop(None, None)
            ready = wait([self._awake, *alive], _IDLE_SECONDS if self._on_demand else None)
            for end in ready:
                if end is self._awake:
                    self._awake.recv()
                else:
                    alive[end].hear()
            for worker in self._workers if not ready else ():
                if worker.batch is None:
                    worker.end()
        for worker in self._workers:
            worker.end()

    def _give(self, worker: _Worker) -> None:
        """Give a free worker tasks of the batch that goes first."""
        for batch in sorted(self._batches, key=lambda batch: (batch.rank, batch.last_turn)):
            if batch.last_turn and not worker.index:
                continue
            if tasks := batch.next_tasks(worker.index, len(self._workers)):
                batch.last_turn = next(self._turns)
                worker.give(batch, tasks)
                return


class _Worker:
    """The pool's end of a worker process, which is started when it is needed."""

    def __init__(self, index: int, nice: int, kept_people: int) -> None:
        self.index = index
        self.process: Any = None
        self.connection: Any = None
        self.batch: Batch | None = None
        self._tasks: list[Task] = []
        self._is_stopped = False
        self._arguments = nice, _work, kept_people

    def start(self) -> None:
        if self.process is None:
            self.connection, self.process = start_process(*self._arguments)

    def end(self) -> None:
        if self.process is not None:
            self.connection.close()
            self.process.terminate()
        self.connection = self.process = None

    def give(self, batch: Batch, tasks: list[Task]) -> None:
        self.batch, self._tasks, self._is_stopped = batch, tasks, False
        try:
            self.start()
            # Without parts the message is so short that the pool need not wait until it is read.
            # The process requests the parts that it lacks.
            self.connection.send([replace(task, parts={}) for task in tasks])
        except OSError:
            self._lose()

    def stop_if_cancelled(self) -> None:
        if self.batch is not None and self.batch.is_cancelled and not self._is_stopped:
            self._is_stopped = True
            with suppress(OSError):
                self.connection.send(None)

    def hear(self) -> None:
        """Take the outcomes of the tasks, or serve a request for a part."""
        try:
            message = self.connection.recv()
            if isinstance(message, str):
                self.connection.send(parts_of(self._tasks)[message])
            elif self.batch is not None:
                batch, self.batch = self.batch, None
                batch.take(message)
        except (EOFError, OSError):
            self._lose()

    def _lose(self) -> None:
        self.end()
        batch, self.batch = self.batch, None
        if batch is not None:
            batch.on_worker_died(self._tasks)


_shared: dict[tuple[int, int | None], Pool] = {}
_sharing = Lock()


def shared_pool(jobs: int | None = None) -> Pool:
    """Return the pool of the studio, or the pool of `jobs` workers on demand.

    It is created on first use and closed at exit.
    """
    with _sharing:
        # A fork of this process lacks the threads of its pools, so it gets pools of its own.
        key = os.getpid(), jobs
        if key not in _shared:
            _shared[key] = Pool(jobs, on_demand=jobs is not None)
            atexit.register(_shared[key].close)
        return _shared[key]


# -- experiments -----------------------------------------------------------------------------------

_TOGETHER = 8
"""Variants of a replication that a worker takes at once."""


class Workers:
    """Workers for the tasks of an experiment.

    `jobs` processes on this machine (None: one per processor; 1: in this process), or the workers
    of the Dask scheduler at the address `dask`, such as `tcp://10.0.0.1:8786`.
    """

    def __init__(self, jobs: int | None = None, dask: str | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise ExperimentError(f"jobs must be 1 or more, not {jobs}")
        self._jobs = jobs
        self._dask = dask
        # Dask has no types
        self._client: Any = None
        self._parts: dict[str, Any] = {}

    def outcomes(self, tasks: Sequence[Task]) -> Generator[TaskOutcome]:
        """Run tasks and yield their outcomes as they arrive.

        Raises WorkersLost if workers keep dying without a result. Leaving early, by an error or
        Ctrl-C, cancels the other tasks.
        """
        from joblib import effective_n_jobs

        jobs = 1 if len(tasks) == 1 else effective_n_jobs(self._jobs or -1)
        if self._dask is not None:
            arrived = self._on_cluster(tasks, self._dask)
        elif jobs == 1:
            arrived = (run_tasks(group, __version__) for group in _sharing_draws(tasks, 1))
        else:
            arrived = Batch(_sharing_draws(tasks, jobs)).outcomes(shared_pool(jobs), len(tasks))
        # Outcomes are yielded while other tasks run, so that they are stored at once, and a kill
        # loses only the runs under way.
        with closing(arrived):
            yield from chain.from_iterable(arrived)

    def _on_cluster(self, tasks: Sequence[Task], address: str) -> Generator[list[TaskOutcome]]:
        client = self._client = self._client or _client(address)
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        # Each part becomes the result of a Dask task: a result is sent once to each worker that
        # needs it, and made again if it is lost with a worker. An argument, such as a list of
        # people, would be sent with every run.
        for name, part in parts_of(tasks).items():
            with catch_warnings(action="ignore", category=UserWarning):  # on large arguments
                if name not in self._parts:
                    self._parts[name] = client.submit(_same, part, pure=False)
        missing = {task.index: task for task in tasks}
        futures = []
        for group in _sharing_draws(tasks, sum(client.nthreads().values())):
            parts = {name: self._parts[name] for name in parts_of(group)}
            sent = [replace(task, parts={}) for task in group]
            future = client.submit(run_tasks, sent, __version__, parts, pure=False, retries=2)
            futures.append(future)
        try:
            for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
                outcomes = future.result()
                for outcome in outcomes:
                    del missing[outcome.index]
                yield outcomes
        except KilledWorker:
            # The scheduler has tried several workers already.
            raise _lost(missing.values(), Batch.advice) from None
        finally:
            client.cancel(futures)

    def close(self) -> None:
        """Disconnect from the Dask cluster; processes on this machine stay for a while."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _same(part: object) -> object:
    return part


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ExperimentError(
            "a Dask cluster needs the packages dask and distributed: pip install '.[dask]'"
        ) from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ExperimentError(f"there is no Dask scheduler at {address}: {error}") from error
    try:
        client.wait_for_workers(1, timeout=30)
    except TimeoutError:
        raise ExperimentError(f"the Dask scheduler at {address} has no workers") from None
    return client


def _sharing_draws(tasks: Sequence[Task], workers: int) -> list[list[Task]]:
    """Group tasks for workers: tasks of one replication share their draws."""
    # Groups stay small enough that every worker has one.
    most = max(1, min(_TOGETHER, len(tasks) // workers))
    shared = [[*same] for _, same in groupby(tasks, key=lambda task: (task.seed, task.replication))]
    return [same[k : k + most] for same in shared for k in range(0, len(same), most)]


def _lost(tasks: Iterable[Task], advice: str) -> WorkersLost:
    missing = sorted(tasks, key=lambda task: task.index)
    seed, replication = missing[0].seed, missing[0].replication
    return WorkersLost(
        f"worker processes were killed {_FRUITLESS_ROUNDS} times without a result, perhaps for "
        f"want of memory; {counted(len(missing), 'run is', 'runs are')} missing, the first of them "
        f"replication {replication} of seed {seed}; {advice}"
    )
