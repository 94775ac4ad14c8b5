"""The runner: replicates cases with workers, keeps what is finished, reports progress.

Workers are processes on this machine, or a Dask cluster. Both are joblib backends. Results come in
any order and are told apart by their index. Where a worker is killed, joblib gives the whole round
up; what is missing then is handed out again.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dialsim.engine.engines import Choice, Engine, calls_of, choose, prepare
from dialsim.experiments.case import Case, Task, TaskOutcome, run_task
from dialsim.experiments.errors import ExperimentError, ReplicationFailed, WorkersLost
from dialsim.experiments.run_figures import RunFigures
from dialsim.experiments.store import Store
from dialsim.results.progress import Progress, Shown, followed
from dialsim.version import __version__

if TYPE_CHECKING:
    from distributed import Client


_FRUITLESS_ROUNDS = 3
"""So many rounds in a row may be lost without a single result before the workers gives up."""


class Workers:
    """Where tasks are carried out.

    `jobs` processes on this machine (None: one per processor; 1: in this process), or the workers
    of the Dask scheduler at the address `dask`, such as `tcp://10.0.0.1:8786`.
    """

    def __init__(self, jobs: int | None = None, dask: str | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise ExperimentError(f"jobs must be 1 or more, not {jobs}")
        self._jobs = jobs
        self._dask = dask
        self._client: Client | None = None

    def outcomes(self, tasks: Sequence[Task]) -> Generator[TaskOutcome]:
        """Carry out tasks and yield what comes of them, as it comes.

        Raises WorkersLost if workers keep dying without a result. Leaving early, by an error or
        Ctrl-C, ends the workers at once.
        """
        missing = {task.index: task for task in tasks}
        fruitless, jobs = 0, 1 if len(tasks) == 1 else self._jobs or -1
        while missing:
            before, tasks = len(missing), [*missing.values()]
            if fruitless:  # one by one, so that a deadly task takes no other with it
                tasks = [tasks[fruitless % len(tasks)]]
            try:
                with self._backend(), closing(self._round(tasks, jobs)) as outcomes:
                    for outcome in outcomes:
                        del missing[outcome.index]
                        yield outcome
                fruitless = 0
            except self._lost_worker():
                fruitless = fruitless + 1 if len(missing) == before else 0
                if fruitless >= _FRUITLESS_ROUNDS:
                    raise WorkersLost(_lost(missing)) from None
            except BaseException:
                self._dismiss()
                raise

    def _round(self, tasks: Sequence[Task], jobs: int) -> Generator[TaskOutcome]:
        from joblib import Parallel, delayed

        # Dask would keep an array on one worker and lose it with that worker; bytes travel along
        pickles = {
            t.digest: t.pickled if self._dask is None else t.pickled.tobytes() for t in tasks
        }
        master = os.getpid() if self._dask is None else None
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
        calls = (
            delayed(run_task)(
                t.index,
                t.digest,
                pickles[t.digest],
                t.seed,
                t.replication,
                t.engine,
                __version__,
                master,
            )
            for t in tasks
        )
        return cast("Generator[TaskOutcome]", parallel(calls))

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
        """The error by which the backend says that a worker died."""
        if self._dask is None:
            from joblib.externals.loky.process_executor import BrokenProcessPool

            return cast("type[Exception]", BrokenProcessPool)
        from distributed.scheduler import KilledWorker

        return KilledWorker

    def close(self) -> None:
        """Leave the Dask cluster; processes on this machine wait a while for more work."""
        if self._client is not None:
            self._client.close()  # type: ignore[no-untyped-call]
            self._client = None

    def _dismiss(self) -> None:
        """End the processes on this machine without waiting for what they are at."""
        if self._dask is None:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True, kill_workers=True)


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


def _lost(missing: dict[int, Task]) -> str:
    task = min(missing.values(), key=lambda task: task.index)
    return (
        f"worker processes were killed {_FRUITLESS_ROUNDS} times without a result, perhaps for "
        f"want of memory; {len(missing)} runs are missing, the first of them replication "
        f"{task.replication} of seed {task.seed}; fewer jobs need less memory"
    )


class ExperimentRunner:
    """Runs replications; the same ones whoever carries them out."""

    def __init__(
        self, workers: Workers, store: Store | None, progress: Progress | None, engine: Choice
    ) -> None:
        """`progress(done, total)` is called whenever a replication is finished.

        `engine` "auto" takes the compiled engine from where on it pays.
        """
        self._workers = workers
        self._store = store
        self._progress = progress
        self._engine = engine
        self.ahead = 0
        """How many runs are likely to be asked for after those at hand, for the progress."""
        self._done = 0
        self._calls = 0  # of all replications so far, about

    def replicate(self, cases: Sequence[Case], count: int) -> None:
        """Have the first `count` replications of every case finished; runs what is missing.

        Raises ReplicationFailed for the first that fails; those finished before are kept.
        """
        if self._store is not None:
            for case in cases:
                self._store.recall(case, count)
        # Variants of one replication stand side by side: a worker that takes up several of them
        # makes the draws of that replication once
        owners, missing = [], []
        for replication in range(count):
            for case in cases:
                if replication not in case.finished:
                    owners.append(case)
                    missing.append(replication)
        engine = self._choose(owners)
        tasks = [
            _task(index, case, replication, engine)
            for index, (case, replication) in enumerate(zip(owners, missing, strict=True))
        ]
        total = self._done + max(len(tasks), self.ahead)
        with closing(self._workers.outcomes(tasks)) as outcomes:
            for outcome in outcomes:
                task, case = tasks[outcome.index], owners[outcome.index]
                if outcome.figures is None:
                    cause, rerun = outcome.failure or "", case.rerun(task.replication)
                    raise ReplicationFailed(case.seed, task.replication, cause, rerun)
                if self._store is not None:
                    self._store.keep(case, task.replication, outcome.figures)
                case.finished[task.replication] = RunFigures.from_text(outcome.figures)
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, total)

    def _choose(self, owners: Sequence[Case]) -> Engine:
        """The engine for one more replication of each of these.

        A search asks for few at a time, and they add up.
        """
        self._calls += sum(calls_of(case.scenario) for case in owners)
        engine = choose(self._engine, self._calls)
        prepare(engine)
        return engine


def _task(index: int, case: Case, replication: int, engine: Engine) -> Task:
    return Task(index, case.digest, case.pickled, case.seed, replication, engine)


@contextmanager
def runner(
    jobs: int | None,
    dask: str | None,
    store: str | os.PathLike[str] | None,
    progress: Shown,
    engine: Choice = "auto",
) -> Iterator[ExperimentRunner]:
    """A runner for one experiment; `store` is the folder that its store is kept in."""
    with ExitStack() as opened:
        kept = None
        if store is not None:
            Path(store).mkdir(parents=True, exist_ok=True)
            kept = opened.enter_context(closing(Store(Path(store))))
        workers = opened.enter_context(closing(Workers(jobs, dask)))
        told = opened.enter_context(followed(progress, "Simulating", "runs"))
        yield ExperimentRunner(workers, kept, told, engine)
