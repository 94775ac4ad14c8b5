"""The runner: makes replications with workers, stores finished ones, reports progress.

Results arrive in any order and are identified by an index.

The store is a file with every finished replication, so that a killed experiment can continue. It is
an SQLite database, which survives a kill at any instant. Entries are only used for an equal
scenario (its digest), seed, version of dialsim, rules and figures.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic
from typing import TypedDict

from dialsim import __version__
from dialsim.engine import Choice, Engine, calls_of, choose, prepare
from dialsim.engine.compiled import source_digest
from dialsim.errors import ReplicationFailed, StoreError
from dialsim.experiments.pool import Workers
from dialsim.experiments.run_figures import RunFigures
from dialsim.experiments.run_spec import RunSpec
from dialsim.results.figures import FIGURES
from dialsim.results.folder import STORE
from dialsim.results.result import Progress, Shown, followed

# -- what is kept ----------------------------------------------------------------------------------

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
        self._runs, self._calls = 0, 0  # of all replications so far; calls are estimated

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
            # Only runs of single figures are shared: related variants go to a worker together.
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
        with closing(self._workers.outcomes(tasks)) as outcomes:
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
        self._runs += len(owners)
        self._calls += sum(calls_of(spec.scenario) for spec in owners)
        engine = choose(self._engine, self._calls, self._runs)
        prepare(engine)
        return engine


class RunSettings(TypedDict, total=False):
    """Settings for the runs of any experiment.

    The runs are made by `jobs` processes (None: one per processor), or by the workers of the Dask
    scheduler `dask`, with equal results. `store` is a folder that keeps finished replications and
    is not run again. `progress(done, total)` counts runs. `engine` is "simpy", "compiled", or
    "auto" for the faster one; the results are equal. `begin` is called when the first run is due,
    so that arguments with errors have no effect.
    """

    jobs: int | None
    dask: str | None
    store: str | os.PathLike[str] | None
    progress: Shown
    engine: Choice
    begin: Callable[[], object] | None


@contextmanager
def runner(
    jobs: int | None = None,
    dask: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Shown = None,
    engine: Choice = "auto",
    begin: Callable[[], object] | None = None,
    within: float | None = None,
) -> Iterator[ExperimentRunner]:
    """Yield a runner for one experiment; `store` is the folder of its store."""
    with ExitStack() as opened:
        if begin is not None:
            begin()
        kept = None
        if store is not None:
            try:
                Path(store).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{store} can't be used: {error.strerror}") from None
            kept = opened.enter_context(closing(Store(Path(store))))
        workers = opened.enter_context(closing(Workers(jobs, dask)))
        shown = opened.enter_context(followed(progress, "runs"))
        yield ExperimentRunner(workers, kept, shown, engine, within)
