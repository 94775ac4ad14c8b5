"""Progressive estimates of a scenario: runs in worker processes, and what follows from them.

The runs are replications 0, 1, 2, … of the scenario's seed, so that the figures after N of them are
those of `dialsim run --replications N`. A session asks after every change, and its next question
cancels the previous one. Sessions share the workers: the one with the fewest runs goes first, so
that a first answer never waits while another one is refined.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from math import inf, isfinite
from queue import Empty, SimpleQueue
from threading import Condition, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.compiled.cache import is_available, is_compiled
from dialsim.engine.engines import Engine, prepare
from dialsim.engine.world import World
from dialsim.errors import DialsimError, ReplicationFailed, WorkersLost
from dialsim.experiments import experiment_text
from dialsim.experiments.days import DoneBy, calling_days, compare_days, telling_days
from dialsim.experiments.estimates import estimates_of_place, known_of
from dialsim.experiments.forecast import Standing, draw_seed, standing_of
from dialsim.experiments.intervals import (
    CONFIDENCE,
    Difference,
    Known,
    figure_difference,
    rank,
)
from dialsim.experiments.known_bounds import WHOLE
from dialsim.experiments.replications import Replications
from dialsim.experiments.run_figures import (
    MARKS,
    RunFigures,
    earliest_start,
    fan,
    figures_of,
    replication_rows,
)
from dialsim.experiments.run_spec import RunSpec, end_with
from dialsim.experiments.runner import interrupts_held, kept_memory
from dialsim.interface.instants import MINUTE, THAI_OFFSET
from dialsim.results.campaigns import Spans, open_time, union
from dialsim.results.figures import MAIN, REACH
from dialsim.results.result import Result, result_of
from dialsim.results.time_use import StepFunction
from dialsim.scenario.campaign import PeopleTable
from dialsim.scenario.packing import unpack
from dialsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from dialsim.report.page import Fact

log = logging.getLogger(__name__)

LIMIT = 200
"""Runs of a complete answer, unless another limit is given."""

# -- what is known ---------------------------------------------------------------------------------

_WIDTHS = tuple(MINUTE * minutes for minutes in (1, 5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60))
"""Interval widths (ms); each divides the next, so that runs of different widths can be added."""
_MOST_PIECES = 400


@dataclass(frozen=True, slots=True)
class LineUse:
    """Lines in use and their limit in one run: float32 means over intervals of `width` ms.

    `first` is the number of the first interval, counted from Thai midnight of 1 January 1970.
    `open` is the time in which campaigns could call.
    """

    first: int
    width: int
    busy: NDArray[np.float32]
    allowed: NDArray[np.float32]
    open: Spans

    @classmethod
    def of(cls, result: Result) -> LineUse:
        """Measure all organizations of a run together, from the first start to the last end."""
        lives = [life for life in result.reading.lives if life.start is not None]
        start = min((life.start for life in lives if life.start is not None), default=0)
        end = max((life.end for life in lives), default=start)
        span = end - start
        width = next((w for w in _WIDTHS if span <= w * (_MOST_PIECES - 1)), _WIDTHS[-1])
        first, last = (
            (start + THAI_OFFSET) // width,
            -(-(max(end, start + 1) + THAI_OFFSET) // width),
        )
        # Edges are multiples of the width in Thai time, so that intervals of different runs
        # coincide.
        edges = np.arange(first, last + 1, dtype=np.int64) * width - THAI_OFFSET
        busy, allowed = (
            StepFunction.total(getattr(use, name) for use in result.reading.lines)
            .means(edges)
            .astype(np.float32)
            for name in ("busy", "allowed")
        )
        return cls(first, width, busy, allowed, open_time(result.reading.lives))

    def coarser(self, width: int) -> LineUse:
        """Return the same in wider intervals; `width` is a multiple of the current one."""
        factor = width // self.width
        # Padded with zeros to whole wider intervals: outside of a run no line is in use.
        before = self.first % factor
        after = -(before + len(self.busy)) % factor
        busy, allowed = (
            np.pad(values, (before, after)).reshape(-1, factor).mean(axis=1, dtype=np.float32)
            for values in (self.busy, self.allowed)
        )
        return LineUse(self.first // factor, width, busy, allowed, self.open)


@dataclass(frozen=True, slots=True)
class LineBands:
    """Lines in use over time: `at` are the starts of intervals (ms) of `width` ms.

    `mean` is that of all runs, `low` and `high` bound 90 % of the runs, `allowed` is the limit.
    `open` is the time in which campaigns of any run could call.
    """

    at: NDArray[np.int64]
    width: int
    mean: NDArray[np.float32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    allowed: NDArray[np.float32]
    open: Spans

    @classmethod
    def of(cls, uses: Sequence[LineUse]) -> LineBands:
        """Combine the use of lines of several runs."""
        width = max(use.width for use in uses)
        uses = [use.coarser(width) for use in uses]
        first = min(use.first for use in uses)
        pieces = max(use.first + len(use.busy) for use in uses) - first
        busy = np.zeros((len(uses), pieces), np.float32)
        allowed = np.zeros(pieces, np.float32)
        for row, use in zip(busy, uses, strict=True):
            place = slice(use.first - first, use.first - first + len(use.busy))
            row[place] = use.busy
            # Runs end at different times; the limit shown is taken from any run still going.
            allowed[place] = np.maximum(allowed[place], use.allowed)
        at = (first + np.arange(pieces, dtype=np.int64)) * width - THAI_OFFSET
        ordered = np.sort(busy, axis=0)
        low, high = (ordered[rank(len(uses), share) - 1] for share in (0.05, 0.95))
        opened = union(use.open for use in uses)
        return cls(at, width, busy.mean(axis=0), low, high, allowed, opened)


@dataclass(frozen=True, slots=True)
class Fan:
    """Times at which quantiles of the runs had reached a share of the people.

    `share` (float64) are shares of all people; `at` has for 5, 25, 50, 75 and 95 % of the runs the
    instants (ms, float64), infinite where fewer runs reached the share.
    """

    share: NDArray[np.float64]
    at: Mapping[int, NDArray[np.float64]]


FAN = (5, 25, 50, 75, 95)


class Estimate:
    """Estimate of a scenario after some runs; `replications` has all their figures.

    `limit` is the number of runs planned, `notes` reports on the workers, and `draws` the number of
    behaviours that the runs are spread over, 0 if there is only one.
    """

    def __init__(
        self,
        replications: Replications,
        limit: int,
        uses: Sequence[LineUse],
        notes: Sequence[str] = (),
        draws: int = 0,
    ) -> None:
        self.replications = replications
        self.limit = limit
        self.notes = tuple(notes)
        self.draws = draws
        self._uses = uses

    @property
    def scenario(self) -> Scenario:
        """Scenario of the runs."""
        return self.replications.scenario

    @property
    def runs(self) -> int:
        """Number of runs so far."""
        return len(self.replications)

    @property
    def is_final(self) -> bool:
        """True if all runs are done."""
        return self.runs >= self.limit

    @cached_property
    def figures(self) -> dict[str, dict[str, Any]]:
        """Estimates of the whole run by figure, as rows of `Replications.intervals`.

        A row has `mean` and the quantiles `p05` to `p95`, each with `…_low`, `…_high`, `…_enough`.
        """
        known = self._columns
        names = ("finish_seconds", "final_at_seconds", *MAIN)
        attempts = [name for name in known if name.startswith(REACH)]
        order = dict.fromkeys(name for name in (*names, *attempts, *known) if name in known)
        columns, bounds = (
            {name: known[name] for name in order},
            self.replications.bounds,
        )
        rows = estimates_of_place(
            columns, self.replications.figures, CONFIDENCE, bounds, WHOLE, self.days
        )
        return {row["figure"]: row for row in rows}

    @cached_property
    def days(self) -> list[DoneBy]:
        """Days on which runs end."""
        return calling_days(self._columns, earliest_start(self.replications.figures), (None, None))

    @property
    def telling_days(self) -> list[DoneBy]:
        """Days that a short table shows."""
        return telling_days(self.cost_and_finish[1] / 1000, self.replications.bounds)

    def done_by(self, day: DoneBy) -> float:
        """Estimate the probability of being done by the end of a day, also of other estimates."""
        seconds, bounds = self._columns[day.source], self.replications.bounds
        return self._own(day).estimate(seconds, bounds, CONFIDENCE).estimate

    def _own(self, day: DoneBy) -> DoneBy:
        return replace(day, origin=earliest_start(self.replications.figures) or 0)

    @cached_property
    def _columns(self) -> dict[str, NDArray[np.float64]]:
        """Figures of the whole run, a value per run, as `Replications.runs` has them."""
        runs = self.replications.figures
        rows = replication_rows(runs, "run", earliest_start(runs))
        skipped = {"replication", "finish", "final_at"}
        names = dict.fromkeys(name for row in rows for name in row if name not in skipped)
        return {name: np.array([row[name] for row in rows], np.float64) for name in names}

    @cached_property
    def sentence(self) -> str:
        """Finish and its certainty as a sentence, without a full stop."""
        # Imported late: the report imports matplotlib, which workers don't need
        from dialsim.report.replications_page import replications_answer

        finish = self.figures["finish_seconds"]
        if self.runs > 1 or not finish["runs"] or self.replications.bounds.calls:
            return replications_answer(finish, self.replications)
        if not isfinite(finish["p50"]):
            return "Not finished in the first run"
        when = experiment_text.when_text(finish["p50"], self.replications)
        return f"Done by {when} Thai time in the first run"

    @cached_property
    def facts(self) -> list[Fact]:
        """Facts on finish, certainty, reach, bottleneck and cost."""
        from dialsim.report.replications_page import replications_facts

        return replications_facts(self.figures, self.replications)

    @cached_property
    def standing(self) -> Standing | None:
        """State of the campaigns at the start; None unless people have histories."""
        return standing_of(self.scenario)

    @cached_property
    def fan(self) -> Fan:
        """Progress of all runs."""
        runs = self.replications.figures
        at = {percent: fan(runs, percent / 100) for percent in FAN}
        return Fan(np.arange(MARKS + 1) / MARKS, at)

    @cached_property
    def lines(self) -> LineBands:
        """Lines in use over time."""
        return LineBands.of(self._uses)

    @cached_property
    def reach(self) -> list[dict[str, Any]]:
        """Estimates of the share of people reached by attempt 1, 2, …: rows of `figures`."""
        return [row for name, row in self.figures.items() if name.startswith(REACH)]

    @cached_property
    def cost_and_finish(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cost and finish (ms) of each run; NaN if there is none, infinite for never."""
        scopes = [run.scopes[0].values for run in self.replications.figures]
        cost, finish = (np.array([s[k] for s in scopes], np.float64) for k in ("cost", "finish"))
        return cost, finish

    def minus(self, other: Estimate) -> dict[str, Difference]:
        """Return this estimate's figures minus another's, paired over the runs that both have.

        With equal seeds both use common random numbers. The differences are computed as in
        `dialsim.compare`.
        """
        pairs = min(self.runs, other.runs)
        all_bounds = (self.replications.bounds, other.replications.bounds)
        first = [side._first(pairs) for side in (self, other)]
        mine, theirs = (side._columns for side in first)
        return {
            name: figure_difference(
                name, (mine[name], theirs[name]), (first[0]._known(name), first[1]._known(name))
            )
            for name in mine
            if name in theirs
        } | {
            day.column: compare_days(
                (self._own(day), other._own(day)),
                (mine[day.source], theirs[day.source]),
                all_bounds,
                CONFIDENCE,
            )
            for day in self.days
        }

    def _known(self, name: str) -> Known:
        return known_of(name, WHOLE, self.replications.figures, self.replications.bounds)

    def _first(self, runs: int) -> Estimate:
        if runs == self.runs:
            return self
        mine = self.replications
        return Estimate(
            Replications(mine.scenario, mine.seed, mine.figures[:runs]),
            self.limit,
            self._uses[:runs],
        )

    def __repr__(self) -> str:
        return f"<dialsim.studio.Estimate {self.runs} of {self.limit} runs: {self.sentence}>"


# -- workers ---------------------------------------------------------------------------------------

_KEPT_PEOPLE = 800_000
"""People whose draws a worker caches for the next change."""
_KEPT_SCENARIOS = 8
_STALE_SECONDS = 30.0
"""Age (s) that counts as much as one replication when cached draws are evicted."""


class _Cancelled(Exception):
    """The run is not needed any more."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A run for a worker; `run` is its number within the answer."""

    number: int
    run: int
    key: int
    seed: int
    replication: int
    engine: Engine


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Result of a job: figures and lines in use, or the error."""

    number: int
    figures: RunFigures | None = None
    lines: LineUse | None = None
    failure: str | None = None


_NICE = 5
"""Niceness of refinement: the operating system serves first answers before it."""


def _work(connection: Connection, master: int, nice: int) -> None:
    """Make runs until the other end of the connection is closed."""
    end_with(master)
    # Windows has no nice
    with suppress(AttributeError, OSError):
        os.nice(nice)
    with suppress(EOFError, OSError):
        worker = _Worker(connection)
        while True:
            message = connection.recv()
            if isinstance(message, _Job):
                connection.send(worker.outcome(message))


def _compile(master: int) -> None:
    end_with(master)
    prepare("compiled")


class _Worker:
    """Worker process that makes runs; it caches scenarios, lists of people, and draws."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._scenarios: OrderedDict[int, Scenario] = OrderedDict()
        # A list lives as long as a scenario that uses it; a change of a setting sends no list
        # again.
        self._tables: WeakValueDictionary[str, PeopleTable] = WeakValueDictionary()
        self._worlds: dict[tuple[int, int, int], tuple[World, float]] = {}

    def outcome(self, job: _Job) -> _Outcome:
        """Make a run; an error is an outcome too."""
        try:
            world = self._world(job)
            result = result_of(world, job.engine, self._look_up)
            # Figures take time too; a cancellation during the run's last steps is seen before.
            self._look_up(0, 0)
            return _Outcome(job.number, figures_of(result), LineUse.of(result))
        except _Cancelled:
            return _Outcome(job.number)
        # The connection is gone: an outcome has no receiver.
        except (EOFError, OSError):
            raise
        except Exception as error:
            return _Outcome(job.number, failure=f"{type(error).__name__}: {error}")

    def _look_up(self, _: int, __: int) -> None:
        """Stop if a message waits: during a job the only one possible is a cancellation."""
        if self._connection.poll():
            self._connection.recv()
            raise _Cancelled

    def _world(self, job: _Job) -> World:
        """Return the world of a job, reusing draws of the last one with the same seed and names."""
        scenario = self._scenario(job.key)
        names = tuple((o.name, *(c.name for c in o.campaigns)) for o in scenario.organizations)
        # Draws depend on names of organizations and campaigns, seed and replication, not on the
        # settings that a planner changes.
        place = (hash(names), job.seed, job.replication)
        like = self._worlds.get(place)
        world = World(scenario, job.seed, job.replication, None if like is None else like[0])
        self._worlds[place] = world, monotonic()
        self._forget()
        return world

    def _forget(self) -> None:
        """Evict draws beyond the limit: high replications and old ones first.

        Every change starts again with replication 0, so low replications are reused most.
        """
        now = monotonic()

        def people(world: World) -> int:
            return sum(c.people.count for o in world.organizations for c in o.campaigns)

        sizes = {place: people(world) for place, (world, _) in self._worlds.items()}
        while len(sizes) > 1 and sum(sizes.values()) > _KEPT_PEOPLE:
            last = max(
                sizes, key=lambda place: place[2] + (now - self._worlds[place][1]) / _STALE_SECONDS
            )
            del sizes[last], self._worlds[last]

    def _scenario(self, key: int) -> Scenario:
        """Return a scenario, requested from the master if it is not cached."""
        if key not in self._scenarios:
            # Evicted before the request, so that old and new scenario are not in memory together.
            if len(self._scenarios) >= _KEPT_SCENARIOS:
                self._scenarios.popitem(last=False)
            self._connection.send(_Wanted())
            blob, listed = self._answer()
            missing = [table for table in listed if table not in self._tables]
            self._connection.send(_Wanted(tuple(missing)))
            held = dict(zip(missing, self._answer(), strict=True))
            self._tables.update(held)
            self._scenarios[key] = unpack(blob, self._tables)
        self._scenarios.move_to_end(key)
        return self._scenarios[key]

    def _answer(self) -> Any:
        """Return the master's answer; cancellations that come first are dropped."""
        while isinstance(answer := self._connection.recv(), _Cancel):
            pass
        return answer


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Request of a worker for the scenario of its job, or for the lists of people named."""

    tables: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Cancel:
    """The running job is cancelled."""


_numbers = count(1)


# -- sessions --------------------------------------------------------------------------------------

_STEPS = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 150})
_OFTEN_SECONDS = 0.5
"""Maximum age (s) of the last estimate; otherwise one is made at the run numbers in `_STEPS`."""
_MOST_DEATHS = 3
"""Worker deaths during the runs of a scenario after which it is given up."""

Told = Callable[["EstimateAnswer"], object]


class EstimateAnswer:
    """Sequence of estimates of one scenario: iterate over it, or pass a callback as `told`.

    `latest` is the newest one, `failure` the error that ended it; `is_over` when no more will come.
    """

    def __init__(
        self,
        pool: Pool,
        spec: RunSpec,
        limit: int,
        told: Told | None,
        behind: int = 0,
        draws: Sequence[RunSpec] = (),
    ) -> None:
        """Others with up to `behind` more runs go first; `draws` share the runs, if there are
        any.
        """
        self.spec = spec
        self.limit = limit
        self.draws = len(draws)
        self.latest: Estimate | None = None
        self.failure: DialsimError | None = None
        self.is_cancelled = False
        self.notes: list[str] = []
        self._pool = pool
        self._told = told
        self._news: SimpleQueue[Estimate | None] = SimpleQueue()
        self._behind = behind
        # Shared with the pool and guarded by its lock
        self._specs = [*draws] or [spec]
        self._keys = [next(_numbers) for _ in self._specs]
        self.started: set[int] = set()
        self.finished: dict[int, tuple[RunFigures, LineUse]] = {}
        self.deaths = 0
        self.last_turn = 0
        self._told_runs = 0
        self._told_at = -inf

    def of_run(self, run: int) -> tuple[RunSpec, int, int]:
        """Return the spec of a run, the key of its scenario, and its replication."""
        replication, place = divmod(run, len(self._specs))
        return self._specs[place], self._keys[place], replication

    @property
    def is_over(self) -> bool:
        """True if no more estimates will come."""
        final = self.latest is not None and self.latest.is_final
        return final or self.is_cancelled or self.failure is not None

    @property
    def turn(self) -> tuple[int, int]:
        """Priority: the smallest goes first."""
        return len(self.started) + self._behind, self.last_turn

    @property
    def wants_runs(self) -> bool:
        """True if there are runs that no worker has started."""
        over = self.is_cancelled or self.failure is not None
        return not over and len(self.started) < self.limit

    def missing(self, most: int) -> list[int]:
        """Return the first runs that no worker has started."""
        return [*islice((k for k in range(self.limit) if k not in self.started), most)]

    def cancel(self) -> None:
        """Cancel the remaining runs."""
        self._pool.cancel(self)
        self._news.put(None)

    def __iter__(self) -> Iterator[Estimate]:
        """Yield estimates as they become available; outdated ones are skipped.

        Raises ReplicationFailed, or WorkersLost.
        """
        while not (self.is_over and self._news.empty()):
            news = self._news.get()
            with suppress(Empty):
                while True:
                    # Only the newest estimate matters to a slow reader; None merely wakes it.
                    news = self._news.get_nowait() or news
            if news is not None:
                yield news
        if self.failure is not None:
            raise self.failure

    def final(self) -> Estimate:
        """Wait for the last estimate. Raises ReplicationFailed, WorkersLost, or DialsimError."""
        for _ in self:
            pass
        if self.latest is None or not self.latest.is_final:
            raise DialsimError("this estimate was cancelled")
        return self.latest

    def tell(self) -> None:
        """Make the estimate of the finished runs if it is due, and call the callback."""
        if self.is_cancelled:
            return
        if self.failure is None:
            # Runs may finish out of order. Only a gapless beginning is an unbiased sample: short
            # runs finish first.
            runs = next(k for k in count() if k not in self.finished)
            old = monotonic() - self._told_at > _OFTEN_SECONDS
            if runs == self._told_runs or not (runs in _STEPS or runs >= self.limit or old):
                return
            made = [self.finished[k] for k in range(runs)]
            spec = self.spec
            replications = Replications(spec.scenario, spec.seed, [run for run, _ in made])
            uses = [use for _, use in made]
            latest = Estimate(replications, self.limit, uses, self.notes, self.draws)
            # Cached here, in this thread, so that showing them is quick
            _ = latest.sentence, latest.standing
            self.latest, self._told_runs, self._told_at = latest, runs, monotonic()
            self._news.put(latest)
        else:
            self._news.put(None)
        if self._told is not None:
            self._told(self)


class Pool:
    """Worker processes shared by several sessions."""

    def __init__(self, jobs: int | None = None) -> None:
        """Start `jobs` processes that refine answers (None: one per processor), and one more.

        The extra one makes the first run of each answer: a running job can't be stopped at every
        moment, and a first answer must not wait for it.
        """
        from joblib import cpu_count

        self._changed = Condition()
        self._answers: list[EstimateAnswer] = []
        self._news: SimpleQueue[EstimateAnswer | None] = SimpleQueue()
        self._turns = count(1)
        self._is_closed = False
        self._engine: Engine = "simpy"
        self._workers = [_WorkerHandle(self, number) for number in range(1 + (jobs or cpu_count()))]
        threads = [worker.serve for worker in self._workers]
        for target in (*threads, self._tell):
            Thread(target=target, name="dialsim-studio", daemon=True).start()
        # Without numba all runs are SimPy's.
        if is_available():
            Thread(target=self._prepare, name="dialsim-studio", daemon=True).start()

    @property
    def processes(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def begin(self, answer: EstimateAnswer) -> None:
        """Start the runs of an answer. Raises DialsimError if the pool is closed."""
        # Packed here, so that an error is raised in the caller's thread
        _ = answer.of_run(0)[0].packed
        with self._changed:
            if self._is_closed:
                raise DialsimError("the studio is closed")
            self._answers.append(answer)
            if answer.finished:
                self._news.put(answer)
            self._changed.notify_all()

    def cancel(self, answer: EstimateAnswer) -> None:
        """Cancel the runs of an answer, including running ones."""
        with self._changed:
            answer.is_cancelled = True
            self._leave(answer)
            for worker in self._workers:
                worker.stop(answer)

    def close(self) -> None:
        """Terminate the workers."""
        with self._changed:
            self._is_closed = True
            self._answers.clear()
            self._changed.notify_all()
        self._news.put(None)
        for worker in self._workers:
            worker.end()

    # -- for the workers --------------------------------------------------------------------------

    def next_job(self, worker: int) -> tuple[EstimateAnswer, _Job] | None:
        """Wait for the next run, of the answer with the fewest; None when the pool is closed."""
        with self._changed:
            while True:
                if self._is_closed:
                    return None
                waiting = [
                    answer
                    for answer in self._answers
                    if answer.wants_runs and (worker or 0 not in answer.started)
                ]
                if worker:
                    first = self._workers[0]
                    waiting = [
                        answer
                        for answer in waiting
                        if not first.makes_the_first_of(answer)
                        and not (first.is_free and 0 not in answer.started)
                    ]
                if waiting:
                    answer = min(waiting, key=lambda answer: answer.turn)
                    return answer, self._job(answer, worker)
                self._changed.wait()

    def _job(self, answer: EstimateAnswer, worker: int) -> _Job:
        """Choose a run whose draws this worker may have cached, unless it would delay an estimate.

        An estimate is of the first runs without gaps, so that an early missing run holds up all.
        """
        missing = answer.missing(1 + len(self._workers))
        own = (k for k in missing if k % (len(self._workers) - 1) == worker - 1)
        replication = next(own, missing[0]) if worker and missing[0] else missing[0]
        answer.started.add(replication)
        answer.last_turn = next(self._turns)
        spec, key, of_case = answer.of_run(replication)
        return _Job(next(_numbers), replication, key, spec.seed, of_case, self._engine)

    def take(self, answer: EstimateAnswer, job: _Job, outcome: _Outcome) -> None:
        """Store the outcome of a run."""
        with self._changed:
            if outcome.failure is not None:
                spec, _, _ = answer.of_run(job.run)
                rerun = spec.rerun(job.replication)
                answer.failure = ReplicationFailed(
                    spec.seed, job.replication, outcome.failure, rerun
                )
                self._leave(answer)
            elif outcome.figures is not None and outcome.lines is not None:
                # With several draws each spec counts replications from 0; an answer numbers its
                # runs through.
                figures = replace(outcome.figures, replication=job.run)
                answer.finished[job.run] = figures, outcome.lines
                if len(answer.finished) >= answer.limit:
                    self._leave(answer)
            self._news.put(answer)
            self._changed.notify_all()

    def on_worker_died(self, answer: EstimateAnswer, job: _Job) -> None:
        """Repeat a run whose worker died; after several deaths give the answer up."""
        with self._changed:
            answer.started.discard(job.run)
            answer.deaths += 1
            # A run that needs more memory than there is kills every worker that tries it.
            if answer.deaths >= _MOST_DEATHS and answer.failure is None:
                answer.failure = WorkersLost(
                    f"worker processes were killed {answer.deaths} times during these runs, "
                    "perhaps for want of memory: fewer people, or fewer attempts, need less"
                )
                self._leave(answer)
                self._news.put(answer)
            elif answer.failure is None:
                answer.notes.append("A worker process was killed, and started again.")
            self._changed.notify_all()

    def _leave(self, answer: EstimateAnswer) -> None:
        if answer in self._answers:
            self._answers.remove(answer)

    def _tell(self) -> None:
        """Make estimates in a separate thread, so that no worker waits for them."""
        import scipy.stats  # noqa: F401 (before the first answer, rather than for it)

        while (answer := self._news.get()) is not None:
            try:
                answer.tell()
            except Exception:
                log.exception("an estimate could not be told")

    def _prepare(self) -> None:
        """Compile the engine in another process if necessary; until then SimPy makes the runs."""
        if not is_compiled():
            process = loky_context().Process(target=_compile, args=(os.getpid(),), daemon=True)
            process.start()
            process.join()
        self._engine = "compiled"


class _WorkerHandle:
    """The master's end of one worker: a thread that feeds it jobs."""

    def __init__(self, pool: Pool, number: int) -> None:
        self._pool = pool
        self._number = number
        self._lock = Lock()
        # The lock guards sending: `stop` is called from other threads than `serve`.
        self._connection: Connection | None = None
        self._process: Any = None
        self._busy_with: EstimateAnswer | None = None
        self._is_waiting = False

    @property
    def pid(self) -> int | None:
        """Process id of the worker."""
        return None if self._process is None else self._process.pid

    def makes_the_first_of(self, answer: EstimateAnswer) -> bool:
        """True if the worker is at the first run of an answer, which other runs would slow down."""
        return self._busy_with is answer and 0 not in answer.finished

    @property
    def is_free(self) -> bool:
        """True if the worker waits for a job."""
        return self._is_waiting

    def serve(self) -> None:
        """Give the worker jobs until the pool is closed; replace it when it dies."""
        while True:
            while self._connection is None:
                # It may be killed while it starts
                with suppress(OSError):
                    self._start()
            self._busy_with, self._is_waiting = None, True
            given = self._pool.next_job(self._number)
            self._is_waiting = False
            if given is None:
                return
            answer, job = given
            self._busy_with = answer
            try:
                outcome = self._made(answer, job)
            except (EOFError, OSError):
                self._forget()
                self._pool.on_worker_died(answer, job)
            else:
                self._pool.take(answer, job, outcome)

    def stop(self, answer: EstimateAnswer) -> None:
        """Stop the worker if it is busy with an answer."""
        with self._lock, suppress(OSError):
            if self._busy_with is answer and self._connection is not None:
                self._connection.send(_Cancel())

    def end(self) -> None:
        """Terminate the worker; it would also end once its connection is closed."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            if self._process is not None:
                self._process.terminate()

    def _made(self, answer: EstimateAnswer, job: _Job) -> _Outcome:
        """Return the worker's outcome of a job, serving its requests meanwhile."""
        connection = self._connection
        assert connection is not None
        with self._lock:
            connection.send(job)
        while isinstance(wanted := connection.recv(), _Wanted):
            blob, tables = answer.of_run(job.run)[0].packed
            with self._lock:
                if wanted.tables is None:
                    connection.send((blob, [*tables]))
                else:
                    connection.send([tables[name] for name in wanted.tables])
        assert isinstance(wanted, _Outcome)
        return wanted

    def _start(self) -> None:
        context, nice = loky_context(), _NICE if self._number else 0
        ours, theirs = context.Pipe()
        # A Ctrl-C during the start would leave a worker without a parent.
        with kept_memory(), interrupts_held():
            process = context.Process(target=_work, args=(theirs, os.getpid(), nice), daemon=True)
            process.start()
        # The worker has its own copy; this one would keep the pipe open after its death.
        theirs.close()
        with self._lock:
            self._connection, self._process = ours, process

    def _forget(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            if self._process is not None:
                self._process.join()
            self._connection = self._process = None


def loky_context() -> Any:
    """Return joblib's way to start processes, which does not import the main program again."""
    from joblib.externals.loky.backend import get_context

    return get_context("loky")


_shared: Pool | None = None
_sharing = Lock()


def shared_pool() -> Pool:
    """Return the program's only pool; it is created on first use and closed at exit."""
    # Created on first use: importing the studio must not start processes.
    global _shared  # noqa: PLW0603 (there is one per program)
    with _sharing:
        if _shared is None:
            _shared = Pool()
            atexit.register(_shared.close)
        return _shared


_BEHIND = 4
"""Runs that the shown answer gets before a baseline or a pin gets its first."""
_KEPT_ANSWERS = 12
"""Scenarios whose runs are cached in case they return, by undo for instance."""


class Estimator:
    """The answers of one session: each question cancels the previous one in the same place."""

    def __init__(self, pool: Pool | None = None, limit: int = LIMIT) -> None:
        """`limit` is the number of runs of a complete answer."""
        self._pool = shared_pool() if pool is None else pool
        self._limit = limit
        self._asked: dict[str, EstimateAnswer] = {}
        self._kept: OrderedDict[tuple[object, ...], dict[int, tuple[RunFigures, LineUse]]]
        self._kept = OrderedDict()

    def ask(
        self,
        scenario: Scenario,
        told: Told | None = None,
        *,
        place: str = "shown",
        limit: int | None = None,
        seed: int | None = None,
        draws: Sequence[Scenario] = (),
    ) -> EstimateAnswer:
        """Estimate a scenario, replacing the previous question in this place.

        `told` is called with the answer, in another thread, on each new estimate and on failure.
        Places other than `shown`, for a baseline or pins, have lower priority. `seed` is as in
        `dialsim.replicate`. The runs are spread over `draws`, if there are any: copies of the
        scenario with plausible behaviours, as in `dialsim.forecast`.
        """
        self.cancel(place)
        spec = RunSpec(scenario, seed)
        wanted = self._limit if limit is None else limit
        shared = [RunSpec(draw, draw_seed(spec.seed, number)) for number, draw in enumerate(draws)]
        behind = 0 if place == "shown" else _BEHIND
        answer = EstimateAnswer(self._pool, spec, wanted, told, behind, shared)
        key = spec.digest, spec.seed, *(one.digest for one in shared)
        known = self._kept.pop(key, {})
        answer.finished.update((k, run) for k, run in known.items() if k < wanted)
        answer.started.update(answer.finished)
        # The same dictionary: runs that finish later are cached as well.
        self._kept[key] = answer.finished
        while len(self._kept) > _KEPT_ANSWERS:
            self._kept.popitem(last=False)
        self._asked[place] = answer
        self._pool.begin(answer)
        return answer

    def cancel(self, place: str = "shown") -> None:
        """Cancel the question in a place."""
        if (answer := self._asked.pop(place, None)) is not None:
            answer.cancel()

    def close(self) -> None:
        """Cancel all questions of this session."""
        for place in [*self._asked]:
            self.cancel(place)
