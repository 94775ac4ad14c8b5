"""The laboratory: replicates subjects with a crew, keeps what is finished, reports progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from dialsim.experiments.crew import Crew
from dialsim.experiments.failures import ReplicationFailed
from dialsim.experiments.run_figures import RunFigures
from dialsim.experiments.store import Store
from dialsim.experiments.subject import Subject
from dialsim.experiments.task import Task

Progress = Callable[[int, int], object]


class Laboratory:
    """Runs replications; the same ones whoever carries them out."""

    def __init__(self, crew: Crew, store: Store | None, progress: Progress | None) -> None:
        """`progress(done, total)` is called whenever a replication is finished."""
        self._crew = crew
        self._store = store
        self._progress = progress
        self._done = 0

    def replicate(self, subjects: Sequence[Subject], count: int) -> None:
        """Have the first `count` replications of every subject finished; runs what is missing.

        Raises ReplicationFailed for the first that fails; those finished before are kept.
        """
        tasks: list[Task] = []
        owners: list[Subject] = []
        for subject in subjects:
            if self._store is not None:
                self._store.recall(subject, count)
            for replication in range(count):
                if replication not in subject.finished:
                    owners.append(subject)
                    tasks.append(_task(len(tasks), subject, replication))
        total = self._done + len(tasks)
        with closing(self._crew.outcomes(tasks)) as outcomes:
            for outcome in outcomes:
                task, subject = tasks[outcome.index], owners[outcome.index]
                if outcome.figures is None:
                    cause, rerun = outcome.failure or "", subject.rerun(task.replication)
                    raise ReplicationFailed(subject.seed, task.replication, cause, rerun)
                if self._store is not None:
                    self._store.keep(subject, task.replication, outcome.figures)
                subject.finished[task.replication] = RunFigures.from_text(outcome.figures)
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, total)


def _task(index: int, subject: Subject, replication: int) -> Task:
    return Task(index, subject.digest, subject.parcel, subject.seed, replication)


@contextmanager
def laboratory(
    jobs: int | None,
    dask: str | None,
    store: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> Iterator[Laboratory]:
    """A laboratory for one experiment; `store` is the folder that its store is kept in."""
    kept = None
    if store is not None:
        Path(store).mkdir(parents=True, exist_ok=True)
        kept = Store(Path(store))
    with closing(Crew(jobs, dask)) as crew:
        try:
            yield Laboratory(crew, kept, progress)
        finally:
            if kept is not None:
                kept.close()
