"""Progressive estimates of a scenario from runs of a pool.

The runs are replications 0, 1, 2, … of the scenario's seed, so that the figures after N of them are
those of `dialsim run --replications N`. A session asks after every change, and its next question
cancels the previous one. Sessions share the workers: the one with the fewest runs goes first, so
that a first answer never waits while another one is refined.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count
from math import inf, isfinite
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialsim.errors import DialsimError, ReplicationFailed
from dialsim.experiments import experiment_text
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
from dialsim.experiments.pool import Batch, Pool, shared_pool
from dialsim.experiments.replications import Replications
from dialsim.experiments.run_figures import (
    MARKS,
    DoneBy,
    RunFigures,
    calling_days,
    compare_days,
    earliest_start,
    fan,
    replication_rows,
    telling_days,
)
from dialsim.experiments.run_spec import RunSpec, Task, TaskOutcome
from dialsim.interface.instants import MINUTE, THAI_OFFSET
from dialsim.results.campaigns import Spans, open_time, union
from dialsim.results.figures import MAIN, REACH
from dialsim.results.result import Result
from dialsim.results.time_use import StepFunction
from dialsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from dialsim.report.page import Fact

log = logging.getLogger(__name__)

LIMIT = 200
"""Runs of a complete answer, unless another limit is given."""

# -- what is known ---------------------------------------------------------------------------------

_WIDTHS = tuple(MINUTE * minutes for minutes in (1, 5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60))
"""Interval widths (ms); each divides the next, so that runs of different widths can be added."""
_MOST_PIECES = 400


@dataclass(frozen=True, slots=True)
class LineMeans:
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
    def of(cls, result: Result) -> LineMeans:
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

    def coarser(self, width: int) -> LineMeans:
        """Return the same in wider intervals; `width` is a multiple of the current one."""
        factor = width // self.width
        # Padded with zeros to whole wider intervals: outside of a run no line is in use.
        before = self.first % factor
        after = -(before + len(self.busy)) % factor
        busy, allowed = (
            np.pad(values, (before, after)).reshape(-1, factor).mean(axis=1, dtype=np.float32)
            for values in (self.busy, self.allowed)
        )
        return LineMeans(self.first // factor, width, busy, allowed, self.open)


@dataclass(frozen=True, slots=True)
class LineBands:
    """Lines in use over time; `at` has the starts of intervals (ms) of `width` ms.

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
    def of(cls, uses: Sequence[LineMeans]) -> LineBands:
        """Combine the use of lines of several runs."""
        width = max(use.width for use in uses)
        uses = [use.coarser(width) for use in uses]
        first = min(use.first for use in uses)
        pieces = max(use.first + len(use.busy) for use in uses) - first
        busy = np.zeros((len(uses), pieces), np.float32)
        allowed = np.zeros(pieces, np.float32)
        for row, use in zip(busy, uses, strict=True):
            piece = slice(use.first - first, use.first - first + len(use.busy))
            row[piece] = use.busy
            # Runs end at different times; the limit shown is taken from any run still going.
            allowed[piece] = np.maximum(allowed[piece], use.allowed)
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
        uses: Sequence[LineMeans],
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
        """Return the probability of being done by the end of a day of this or another estimate."""
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


# -- sessions --------------------------------------------------------------------------------------

_STEPS = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 150})
_OFTEN_SECONDS = 0.5
"""Maximum age (s) of the last estimate; otherwise one is made at the run numbers in `_STEPS`."""
_MOST_DEATHS = 3
"""Worker deaths during the runs of a scenario after which it is given up."""

OnEstimate = Callable[["EstimateAnswer"], object]


def _of_run(specs: Sequence[RunSpec], run: int) -> tuple[RunSpec, int]:
    replication, index = divmod(run, len(specs))
    return specs[index], replication


def _tasks(
    specs: Sequence[RunSpec], limit: int, finished: Container[int], pool: Pool
) -> Iterator[list[Task]]:
    # A function, not a method: an iterator that refers to its answer is a cycle, which only a full
    # garbage collection frees, with all runs of the answer.
    for run in range(limit):
        if run not in finished:
            spec, replication = _of_run(specs, run)
            yield [spec.task(run, replication, pool.engine, also=LineMeans.of)]


class EstimateAnswer(Batch):
    """Sequence of estimates of one scenario, to iterate over, or for a callback `on_estimate`.

    `latest` is the newest one, `failure` the error that ended it; `is_over` when no more will come.
    """

    advice = "fewer people, or fewer attempts, need less memory"

    def __init__(
        self,
        pool: Pool,
        spec: RunSpec,
        limit: int,
        on_estimate: OnEstimate | None,
        behind: int = 0,
        draws: Sequence[RunSpec] = (),
    ) -> None:
        """Answers with up to `behind` more runs than this one go first.

        The runs are divided among the scenarios `draws`, if there are any.
        """
        self._specs = [*draws] or [spec]
        self.finished: dict[int, tuple[RunFigures, LineMeans]] = {}
        super().__init__(_tasks(self._specs, limit, self.finished, pool), behind)
        self.spec = spec
        self.limit = limit
        self.draws = len(draws)
        self.latest: Estimate | None = None
        self.failure: DialsimError | None = None
        self.notes: list[str] = []
        self._pool = pool
        self._on_estimate = on_estimate
        self._news: SimpleQueue[Estimate | None] = SimpleQueue()
        self._shown_runs = 0
        self._shown_at = -inf

    @property
    def is_over(self) -> bool:
        """True if no more estimates will come."""
        final = self.latest is not None and self.latest.is_final
        return final or self.is_cancelled or self.failure is not None

    def next_tasks(self, worker: int, workers: int) -> list[Task]:
        """Return a run for a worker; none during the first run, which others would slow down."""
        is_first = self._busy and 0 not in self.finished
        return [] if is_first else super().next_tasks(worker, workers)

    def _choice(self, worker: int, workers: int) -> int:
        """Choose a run whose draws the worker may have cached, unless it would delay an estimate.

        An estimate is of the first runs without gaps, so that an early missing run holds up all.
        """
        runs = [task.index for (task,) in self._waiting]
        own = (k for k, run in enumerate(runs) if run % (workers - 1) == worker - 1)
        return next(own, 0) if worker and runs[0] else 0

    def publish(self, news: list[TaskOutcome] | DialsimError) -> None:
        """Store the outcomes of runs, or the error that ends them."""
        for outcome in news if isinstance(news, list) else ():
            spec, replication = _of_run(self._specs, outcome.index)
            if outcome.figures is None:
                cause, rerun = outcome.failure or "", spec.rerun(replication)
                news = ReplicationFailed(spec.seed, replication, cause, rerun)
                break
            # With several draws each spec counts replications from 0; an answer numbers its runs
            # through.
            figures = replace(RunFigures.from_text(outcome.figures), replication=outcome.index)
            self.finished[outcome.index] = figures, outcome.also
        if isinstance(news, DialsimError):
            self.failure = news
        _news.put(self)

    def on_worker_died(self, tasks: list[Task]) -> None:
        """Repeat runs whose worker died; after several deaths give up."""
        self.notes.append("A worker process was killed, and started again.")
        super().on_worker_died(tasks)

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

    def notify(self) -> None:
        """Make the estimate of the finished runs if it is due, and call the callback."""
        if self.is_cancelled:
            return
        if self.failure is None:
            # Runs may finish out of order. Only a gapless beginning is an unbiased sample: short
            # runs finish first.
            runs = next(k for k in count() if k not in self.finished)
            old = monotonic() - self._shown_at > _OFTEN_SECONDS
            if runs == self._shown_runs or not (runs in _STEPS or runs >= self.limit or old):
                return
            made = [self.finished[k] for k in range(runs)]
            spec = self.spec
            replications = Replications(spec.scenario, spec.seed, [run for run, _ in made])
            uses = [use for _, use in made]
            latest = Estimate(replications, self.limit, uses, self.notes, self.draws)
            # Cached here, in this thread, so that showing them is quick
            _ = latest.sentence, latest.standing
            self.latest, self._shown_runs, self._shown_at = latest, runs, monotonic()
            self._news.put(latest)
        else:
            self._news.put(None)
        if self._on_estimate is not None:
            self._on_estimate(self)


_news: SimpleQueue[EstimateAnswer] = SimpleQueue()


@cache
def _start_notifying() -> None:
    Thread(target=_notify, name="dialsim-studio", daemon=True).start()


def _notify() -> None:
    """Make estimates in a separate thread, so that no worker waits for them."""
    import scipy.stats  # noqa: F401 (before the first answer, rather than for it)

    while True:
        try:
            _news.get().notify()
        except Exception:
            log.exception("an estimate could not be made")


_BEHIND = 4
"""Runs that the shown answer gets before a baseline or a pin gets its first."""
_KEPT_ANSWERS = 12
"""Scenarios whose runs are cached in case they return, by undo for instance."""


class Estimator:
    """The answers of one session: each question cancels the previous one of its role."""

    def __init__(self, pool: Pool | None = None, limit: int = LIMIT) -> None:
        """`limit` is the number of runs of a complete answer."""
        self._pool = shared_pool() if pool is None else pool
        self._limit = limit
        self._asked: dict[str, EstimateAnswer] = {}
        _start_notifying()
        self._kept: OrderedDict[tuple[object, ...], dict[int, tuple[RunFigures, LineMeans]]]
        self._kept = OrderedDict()

    def ask(
        self,
        scenario: Scenario,
        on_estimate: OnEstimate | None = None,
        *,
        role: str = "shown",
        limit: int | None = None,
        seed: int | None = None,
        draws: Sequence[Scenario] = (),
    ) -> EstimateAnswer:
        """Estimate a scenario, and cancel the previous question under the same name.

        `on_estimate` is called with the answer, in another thread, on each new estimate and on
        failure.
        Roles other than `shown`, for a baseline or pins, have lower priority. `seed` is as in
        `dialsim.replicate`. The runs are spread over `draws`, if there are any: copies of the
        scenario with plausible behaviours, as in `dialsim.forecast`.
        """
        self.cancel(role)
        spec = RunSpec(scenario, seed)
        wanted = self._limit if limit is None else limit
        shared = [RunSpec(draw, draw_seed(spec.seed, number)) for number, draw in enumerate(draws)]
        for one in (spec, *shared):
            # Packed here, so that an error is raised in the caller's thread
            _ = one.parts
        behind = 0 if role == "shown" else _BEHIND
        answer = EstimateAnswer(self._pool, spec, wanted, on_estimate, behind, shared)
        key = spec.digest, spec.seed, *(one.digest for one in shared)
        known = {**self._kept.pop(key, {})}
        answer.finished.update((k, run) for k, run in known.items() if k < wanted)
        # The same dictionary: runs that finish later are cached as well.
        self._kept[key] = answer.finished
        while len(self._kept) > _KEPT_ANSWERS:
            self._kept.popitem(last=False)
        self._asked[role] = answer
        if answer.finished:
            # No first answer waits for a worker.
            answer.last_turn, answer.rank = 1, answer.rank + len(answer.finished)
            _news.put(answer)
        self._pool.begin(answer)
        return answer

    def cancel(self, role: str = "shown") -> None:
        """Cancel the question of a role."""
        if (answer := self._asked.pop(role, None)) is not None:
            answer.cancel()

    def close(self) -> None:
        """Cancel all questions of this session."""
        for role in [*self._asked]:
            self.cancel(role)
