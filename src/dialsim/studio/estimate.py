"""What comes of a scenario, soon and then better: runs in worker processes, and their estimates.

The runs are the replications 0, 1, 2, … of the scenario's seed, so that the figures after N of them
are those of `dialsim run --replications N`. A session asks with every change; its next question
cancels the one before. Sessions share the workers and take turns: who has the fewest runs goes
first, so that a first answer never waits for the refinement of another.
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
from dialsim.experiments.case import Case, end_with
from dialsim.experiments.estimates import estimate
from dialsim.experiments.forecast import Standing, draw_seed, standing_of
from dialsim.experiments.intervals import CONFIDENCE, Difference, Support, paired_difference, rank
from dialsim.experiments.packing import unpack
from dialsim.experiments.replications import Replications
from dialsim.experiments.run_figures import (
    MARKS,
    RunFigures,
    earliest_start,
    fan,
    figures_of,
    replication_rows,
)
from dialsim.experiments.runner import interrupts_held, kept_memory
from dialsim.interface.instants import MINUTE, THAI_OFFSET
from dialsim.results.figures import MAIN, REACH, attempt_of
from dialsim.results.result import Result, result_of
from dialsim.results.time_use import StepFunction
from dialsim.scenario.campaign import PeopleTable
from dialsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from dialsim.report.page import Fact

log = logging.getLogger(__name__)

LIMIT = 200
"""So many runs an answer has at the end, unless it is asked for with another limit."""

# -- what is known ---------------------------------------------------------------------------------

_WIDTHS = tuple(MINUTE * minutes for minutes in (1, 5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60))
"""Pieces of time, each of which divides the next, so that runs with different ones can be added."""
_MOST_PIECES = 400


@dataclass(frozen=True, slots=True)
class LineUse:
    """Lines in use, and allowed, in one run: means over pieces of `width` ms, float32.

    `first` is the number of the first piece, counted from the Thai midnight of 1 January 1970.
    """

    first: int
    width: int
    busy: NDArray[np.float32]
    allowed: NDArray[np.float32]

    @classmethod
    def of(cls, result: Result) -> LineUse:
        """That of all organizations of a run together, from the first start to the last end."""
        lives = [life for life in result.reading.lives.values() if life.start is not None]
        start = min((life.start for life in lives if life.start is not None), default=0)
        end = max((life.end for life in lives), default=start)
        span = end - start
        width = next((w for w in _WIDTHS if span <= w * (_MOST_PIECES - 1)), _WIDTHS[-1])
        first, last = (
            (start + THAI_OFFSET) // width,
            -(-(max(end, start + 1) + THAI_OFFSET) // width),
        )
        edges = np.arange(first, last + 1, dtype=np.int64) * width - THAI_OFFSET
        busy, allowed = (
            StepFunction.total(getattr(use, name) for use in result.reading.slots)
            .means(edges)
            .astype(np.float32)
            for name in ("busy", "allowed")
        )
        return cls(first, width, busy, allowed)

    def coarser(self, width: int) -> LineUse:
        """The same in wider pieces; `width` is a multiple of this one's."""
        factor = width // self.width
        before = self.first % factor
        after = -(before + len(self.busy)) % factor
        busy, allowed = (
            np.pad(values, (before, after)).reshape(-1, factor).mean(axis=1, dtype=np.float32)
            for values in (self.busy, self.allowed)
        )
        return LineUse(self.first // factor, width, busy, allowed)


@dataclass(frozen=True, slots=True)
class LineBands:
    """Lines in use over time: `at` are the beginnings of pieces (ms), of equal `width`.

    `mean` is over all runs; nine of ten runs lie between `low` and `high`; `allowed` is the limit.
    """

    at: NDArray[np.int64]
    width: int
    mean: NDArray[np.float32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    allowed: NDArray[np.float32]

    @classmethod
    def of(cls, uses: Sequence[LineUse]) -> LineBands:
        """Those of some runs."""
        width = max(use.width for use in uses)
        uses = [use.coarser(width) for use in uses]
        first = min(use.first for use in uses)
        pieces = max(use.first + len(use.busy) for use in uses) - first
        busy = np.zeros((len(uses), pieces), np.float32)
        allowed = np.zeros(pieces, np.float32)
        for row, use in zip(busy, uses, strict=True):
            place = slice(use.first - first, use.first - first + len(use.busy))
            row[place] = use.busy
            allowed[place] = np.maximum(allowed[place], use.allowed)
        at = (first + np.arange(pieces, dtype=np.int64)) * width - THAI_OFFSET
        ordered = np.sort(busy, axis=0)
        low, high = (ordered[rank(len(uses), share) - 1] for share in (0.05, 0.95))
        return cls(at, width, busy.mean(axis=0), low, high, allowed)


@dataclass(frozen=True, slots=True)
class Fan:
    """By when a share of the runs had reached a share of the people.

    `share` (float64) are shares of all people; `at` has for 5, 25, 50, 75 and 95 % of the runs the
    instants (ms, float64), infinite where fewer runs ever did.
    """

    share: NDArray[np.float64]
    at: Mapping[int, NDArray[np.float64]]


FAN = (5, 25, 50, 75, 95)


class Estimate:
    """What is known of a scenario after some runs: `replications` are all their figures.

    `limit` is how many runs there will be, `notes` what happened to the workers meanwhile, and
    `draws` over how many behaviours the runs are shared out, if they are.
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
        """The scenario that it is of."""
        return self.replications.scenario

    @property
    def runs(self) -> int:
        """How many runs it is made from."""
        return len(self.replications)

    @property
    def is_final(self) -> bool:
        """Whether no more runs will come."""
        return self.runs >= self.limit

    @cached_property
    def figures(self) -> dict[str, dict[str, Any]]:
        """The estimates of the whole run by figure, as rows of `Replications.intervals`.

        A row has `mean` and the quantiles `p05` to `p95`, each with `…_low`, `…_high`, `…_enough`.
        """
        runs = self.replications
        names = ("finish_seconds", "final_at_seconds", *MAIN)
        attempts = [name for name in self._columns if name.startswith(REACH)]
        others = [name for name in self._columns if name not in names and name not in attempts]
        return {
            name: estimate(name, self._columns[name], CONFIDENCE, Support.of(name, runs.prior))
            for name in (*names, *attempts, *others)
            if name in self._columns
        }

    @cached_property
    def _columns(self) -> dict[str, NDArray[np.float64]]:
        """The figures of the whole run, a value per run, as `Replications.runs` has them."""
        runs = self.replications.figures
        rows = replication_rows(runs, "run", earliest_start(runs))
        skipped = {"replication", "finish", "final_at"}
        names = dict.fromkeys(name for row in rows for name in row if name not in skipped)
        return {name: np.array([row[name] for row in rows], np.float64) for name in names}

    @cached_property
    def sentence(self) -> str:
        """When it is done and how sure that is, without a full stop."""
        from dialsim.report.replications_page import replications_answer  # draws, in no worker

        finish = self.figures["finish_seconds"]
        if self.runs > 1 or not finish["runs"] or self.replications.prior.calls:
            return replications_answer(finish, self.replications)
        if not isfinite(finish["mean"]):
            return "Not finished in the first run"
        when = experiment_text.when_text(finish["mean"], self.replications)
        return f"Done by {when} Thai time in the first run"

    @cached_property
    def facts(self) -> list[Fact]:
        """Will it finish, how sure is that, whom does it reach, what holds it back, the cost?"""
        from dialsim.report.replications_page import replications_facts

        return replications_facts(self.figures, self.replications)

    @cached_property
    def standing(self) -> Standing | None:
        """Where the campaigns stand as it begins; None unless somebody has a history."""
        return standing_of(self.scenario)

    @cached_property
    def fan(self) -> Fan:
        """The progress of all runs."""
        runs = self.replications.figures
        at = {percent: fan(runs, percent / 100) for percent in FAN}
        return Fan(np.arange(MARKS + 1) / MARKS, at)

    @cached_property
    def lines(self) -> LineBands:
        """Lines in use over time."""
        return LineBands.of(self._uses)

    @cached_property
    def reach(self) -> list[dict[str, Any]]:
        """The estimates of the share of people reached by attempt 1, 2, …: rows of `figures`."""
        return [row for name, row in self.figures.items() if attempt_of(name) is not None]

    @cached_property
    def cost_and_finish(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cost, and finish in ms, of each run; NaN where there is none, infinite for never."""
        scopes = [run.scopes[0].values for run in self.replications.figures]
        cost, finish = (np.array([s[k] for s in scopes], np.float64) for k in ("cost", "finish"))
        return cost, finish

    def minus(self, other: Estimate) -> dict[str, Difference]:
        """This estimate's figures minus another's, pair by pair, over the runs that both have.

        Both meet the same chance where both have one seed. As `dialsim.compare` has it.
        """
        pairs = min(self.runs, other.runs)
        priors = (self.replications.prior, other.replications.prior)
        mine, theirs = (side._first(pairs)._columns for side in (self, other))
        return {
            name: paired_difference(
                mine[name],
                theirs[name],
                CONFIDENCE,
                all(prior.certain(name) for prior in priors),
            )
            for name in mine
            if name in theirs
        }

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
"""So many people's draws does a worker keep for the next change."""
_KEPT_SCENARIOS = 8
_STALE_SECONDS = 30.0
"""Draws that were not used for so long are given up before those of one replication earlier."""


class _Cancelled(Exception):
    """Nobody wants the run any more."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One run that a worker is to make: `run` is its number in the answer."""

    number: int
    run: int
    key: int
    seed: int
    replication: int
    engine: Engine


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of a job: figures and lines in use, or why there are none."""

    number: int
    figures: RunFigures | None = None
    lines: LineUse | None = None
    failure: str | None = None


_NICE = 5
"""How much later than a first answer the operating system serves refinement."""


def _work(connection: Connection, master: int, nice: int) -> None:
    """Make runs for as long as the other end of the connection is there."""
    end_with(master)
    with suppress(AttributeError, OSError):  # Windows has no such thing
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
    """A process that makes runs; it keeps scenarios, lists of people, and draws."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._scenarios: OrderedDict[int, Scenario] = OrderedDict()
        self._tables: WeakValueDictionary[str, PeopleTable] = WeakValueDictionary()
        self._worlds: dict[tuple[int, int, int], tuple[World, float]] = {}

    def outcome(self, job: _Job) -> _Outcome:
        """Make a run; an error is an outcome too."""
        try:
            world = self._world(job)
            result = result_of(world, job.engine, self._look_up)
            self._look_up(0, 0)
            return _Outcome(job.number, figures_of(result), LineUse.of(result))
        except _Cancelled:
            return _Outcome(job.number)
        except (EOFError, OSError):
            raise
        except Exception as error:
            return _Outcome(job.number, failure=f"{type(error).__name__}: {error}")

    def _look_up(self, _: int, __: int) -> None:
        """Stop if the master has anything to say: while a job is under way that is only this."""
        if self._connection.poll():
            self._connection.recv()
            raise _Cancelled

    def _world(self, job: _Job) -> World:
        """The world of a job, with the draws of the last one that met the same chance."""
        scenario = self._scenario(job.key)
        names = tuple((o.name, *(c.name for c in o.campaigns)) for o in scenario.organizations)
        place = (hash(names), job.seed, job.replication)
        like = self._worlds.get(place)
        world = World(scenario, job.seed, job.replication, None if like is None else like[0])
        self._worlds[place] = world, monotonic()
        self._forget()
        return world

    def _forget(self) -> None:
        """Give up draws beyond what may be kept: those of late replications, and old ones, first.

        Each change begins with replication 0 again.
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
        """A scenario, which is asked for if it isn't known."""
        if key not in self._scenarios:
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
        """What the master answers; that the job is not wanted any more is noticed later."""
        while isinstance(answer := self._connection.recv(), _Cancel):
            pass
        return answer


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A worker wants the scenario of its job, or then the lists of people so named."""

    tables: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Cancel:
    """The job under way is not wanted any more."""


_numbers = count(1)


# -- sessions --------------------------------------------------------------------------------------

_STEPS = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 150})
_OFTEN_SECONDS = 0.5
"""An estimate is told at these numbers of runs, and whenever the last one is so old."""
_MOST_DEATHS = 3
"""A scenario during whose runs so many workers died is given up."""

Told = Callable[["EstimateAnswer"], object]


class EstimateAnswer:
    """The estimates of one scenario, as they come: iterate over them, or be `told` of each.

    `latest` is the newest, `failure` why there will be no more; it is over when `is_over`.
    """

    def __init__(
        self,
        pool: Pool,
        case: Case,
        limit: int,
        told: Told | None,
        behind: int = 0,
        draws: Sequence[Case] = (),
    ) -> None:
        """`behind` says by how many runs others go first; `draws` share out the runs, if any."""
        self.case = case
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
        # what the pool knows of it, under the pool's lock
        self._cases = [*draws] or [case]
        self._keys = [next(_numbers) for _ in self._cases]
        self.started: set[int] = set()
        self.finished: dict[int, tuple[RunFigures, LineUse]] = {}
        self.deaths = 0
        self.last_turn = 0
        self._told_runs = 0
        self._told_at = -inf

    def of_run(self, run: int) -> tuple[Case, int, int]:
        """Of what a run is: a case, the key of its scenario, and the replication of the case."""
        replication, place = divmod(run, len(self._cases))
        return self._cases[place], self._keys[place], replication

    @property
    def is_over(self) -> bool:
        """Whether no more estimates will come."""
        final = self.latest is not None and self.latest.is_final
        return final or self.is_cancelled or self.failure is not None

    @property
    def turn(self) -> tuple[int, int]:
        """Whose turn it is: the least goes first."""
        return len(self.started) + self._behind, self.last_turn

    @property
    def wants_runs(self) -> bool:
        """Whether there are runs that nobody has begun."""
        over = self.is_cancelled or self.failure is not None
        return not over and len(self.started) < self.limit

    def missing(self, most: int) -> list[int]:
        """The first of the runs that nobody has begun."""
        return [*islice((k for k in range(self.limit) if k not in self.started), most)]

    def cancel(self) -> None:
        """Have no more runs made for it."""
        self._pool.cancel(self)
        self._news.put(None)

    def __iter__(self) -> Iterator[Estimate]:
        """The estimates, each as soon as it is there; older ones are skipped.

        Raises ReplicationFailed, or WorkersLost.
        """
        while not (self.is_over and self._news.empty()):
            news = self._news.get()
            with suppress(Empty):
                while True:
                    news = self._news.get_nowait() or news
            if news is not None:
                yield news
        if self.failure is not None:
            raise self.failure

    def final(self) -> Estimate:
        """Wait for the last estimate. Raises ReplicationFailed, WorkersLost, or StudioError."""
        for _ in self:
            pass
        if self.latest is None or not self.latest.is_final:
            raise DialsimError("this estimate was cancelled")
        return self.latest

    def tell(self) -> None:
        """Make the estimate of the runs that are there, if it is time, and tell of it."""
        if self.is_cancelled:
            return
        if self.failure is None:
            runs = next(k for k in count() if k not in self.finished)
            old = monotonic() - self._told_at > _OFTEN_SECONDS
            if runs == self._told_runs or not (runs in _STEPS or runs >= self.limit or old):
                return
            made = [self.finished[k] for k in range(runs)]
            case = self.case
            replications = Replications(case.scenario, case.seed, [run for run, _ in made])
            uses = [use for _, use in made]
            latest = Estimate(replications, self.limit, uses, self.notes, self.draws)
            _ = latest.sentence, latest.standing  # here, and not where they are shown
            self.latest, self._told_runs, self._told_at = latest, runs, monotonic()
            self._news.put(latest)
        else:
            self._news.put(None)
        if self._told is not None:
            self._told(self)


class Pool:
    """Worker processes that several sessions share."""

    def __init__(self, jobs: int | None = None) -> None:
        """`jobs` is how many processes refine answers; None: one per processor.

        One more makes the first run of each answer: a run under way can't be stopped at any time,
        and a first answer shall not wait for it.
        """
        from joblib import cpu_count

        self._changed = Condition()
        self._answers: list[EstimateAnswer] = []
        self._news: SimpleQueue[EstimateAnswer | None] = SimpleQueue()
        self._turns = count(1)
        self._is_closed = False
        self._engine: Engine = "simpy"
        self._hands = [_Hand(self, number) for number in range(1 + (jobs or cpu_count()))]
        threads = [hand.serve for hand in self._hands]
        for target in (*threads, self._tell):
            Thread(target=target, name="dialsim-studio", daemon=True).start()
        if is_available():
            Thread(target=self._prepare, name="dialsim-studio", daemon=True).start()

    @property
    def processes(self) -> list[int]:
        """The process ids of the workers that are there."""
        return [hand.pid for hand in self._hands if hand.pid is not None]

    def begin(self, answer: EstimateAnswer) -> None:
        """Have runs made for an answer. Raises DialsimError if the pool is closed."""
        _ = answer.of_run(0)[0].packed  # here, so that an error of packing is raised for the client
        with self._changed:
            if self._is_closed:
                raise DialsimError("the studio is closed")
            self._answers.append(answer)
            if answer.finished:
                self._news.put(answer)
            self._changed.notify_all()

    def cancel(self, answer: EstimateAnswer) -> None:
        """Have no more runs made for an answer, and stop those under way."""
        with self._changed:
            answer.is_cancelled = True
            self._leave(answer)
            for hand in self._hands:
                hand.stop(answer)

    def close(self) -> None:
        """End the workers."""
        with self._changed:
            self._is_closed = True
            self._answers.clear()
            self._changed.notify_all()
        self._news.put(None)
        for hand in self._hands:
            hand.end()

    # -- for the hands ----------------------------------------------------------------------------

    def next_job(self, hand: int) -> tuple[EstimateAnswer, _Job] | None:
        """Wait for a run to be made, by who has had the fewest; None when the pool is closed."""
        with self._changed:
            while True:
                if self._is_closed:
                    return None
                waiting = [
                    answer
                    for answer in self._answers
                    if answer.wants_runs and (hand or 0 not in answer.started)
                ]
                if hand:
                    first = self._hands[0]
                    waiting = [
                        answer
                        for answer in waiting
                        if not first.makes_the_first_of(answer)
                        and not (first.is_free and 0 not in answer.started)
                    ]
                if waiting:
                    answer = min(waiting, key=lambda answer: answer.turn)
                    return answer, self._job(answer, hand)
                self._changed.wait()

    def _job(self, answer: EstimateAnswer, hand: int) -> _Job:
        """A run of an answer: one whose draws this worker may still have, if that delays nothing.

        The figures are those of the first runs, so an early one that is missing holds up all.
        """
        missing = answer.missing(1 + len(self._hands))
        own = (k for k in missing if k % (len(self._hands) - 1) == hand - 1)
        replication = next(own, missing[0]) if hand and missing[0] else missing[0]
        answer.started.add(replication)
        answer.last_turn = next(self._turns)
        case, key, of_case = answer.of_run(replication)
        return _Job(next(_numbers), replication, key, case.seed, of_case, self._engine)

    def take(self, answer: EstimateAnswer, job: _Job, outcome: _Outcome) -> None:
        """Keep what came of a run."""
        with self._changed:
            if outcome.failure is not None:
                case, _, _ = answer.of_run(job.run)
                rerun = case.rerun(job.replication)
                answer.failure = ReplicationFailed(
                    case.seed, job.replication, outcome.failure, rerun
                )
                self._leave(answer)
            elif outcome.figures is not None and outcome.lines is not None:
                figures = replace(outcome.figures, replication=job.run)
                answer.finished[job.run] = figures, outcome.lines
                if len(answer.finished) >= answer.limit:
                    self._leave(answer)
            self._news.put(answer)
            self._changed.notify_all()

    def mourn(self, answer: EstimateAnswer, job: _Job) -> None:
        """Have a run made again whose worker died; not for ever."""
        with self._changed:
            answer.started.discard(job.run)
            answer.deaths += 1
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
        """Make estimates, so that no worker waits for that."""
        import scipy.stats  # noqa: F401 (before the first answer, rather than for it)

        while (answer := self._news.get()) is not None:
            try:
                answer.tell()
            except Exception:
                log.exception("an estimate could not be told")

    def _prepare(self) -> None:
        """Compile the engine in a process of its own, if need be; SimPy serves until then."""
        if not is_compiled():
            process = loky_context().Process(target=_compile, args=(os.getpid(),), daemon=True)
            process.start()
            process.join()
        self._engine = "compiled"


class _Hand:
    """The master's side of one worker: a thread that gives it jobs."""

    def __init__(self, pool: Pool, number: int) -> None:
        self._pool = pool
        self._number = number
        self._lock = Lock()
        self._connection: Connection | None = None
        self._process: Any = None
        self._busy_with: EstimateAnswer | None = None
        self._is_waiting = False

    @property
    def pid(self) -> int | None:
        """The worker's process id."""
        return None if self._process is None else self._process.pid

    def makes_the_first_of(self, answer: EstimateAnswer) -> bool:
        """Whether the worker is at the first run of an answer, which others would only slow."""
        return self._busy_with is answer and 0 not in answer.finished

    @property
    def is_free(self) -> bool:
        """Whether the worker waits for a job."""
        return self._is_waiting

    def serve(self) -> None:
        """Give the worker jobs until the pool is closed; a new one is started when it dies."""
        while True:
            while self._connection is None:
                with suppress(OSError):  # it may be killed while it is being started
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
                self._pool.mourn(answer, job)
            else:
                self._pool.take(answer, job, outcome)

    def stop(self, answer: EstimateAnswer) -> None:
        """Have the worker stop if it is busy with an answer."""
        with self._lock, suppress(OSError):
            if self._busy_with is answer and self._connection is not None:
                self._connection.send(_Cancel())

    def end(self) -> None:
        """Have the worker end, by that nobody listens to it any more."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            if self._process is not None:
                self._process.terminate()

    def _made(self, answer: EstimateAnswer, job: _Job) -> _Outcome:
        """What the worker makes of a job, given what it wants for that."""
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
        with kept_memory(), interrupts_held():
            process = context.Process(target=_work, args=(theirs, os.getpid(), nice), daemon=True)
            process.start()
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
    """How processes are started: without what the main program does when it is imported."""
    from joblib.externals.loky.backend import get_context

    return get_context("loky")


_shared: Pool | None = None
_sharing = Lock()


def shared_pool() -> Pool:
    """The pool of this program; it is made when it is first asked for, and ends with it."""
    global _shared  # noqa: PLW0603 (there is one per program)
    with _sharing:
        if _shared is None:
            _shared = Pool()
            atexit.register(_shared.close)
        return _shared


_BEHIND = 4
"""So many runs does what is shown get before a baseline or a pin gets its first."""
_KEPT_ANSWERS = 12
"""So many scenarios whose runs are kept for when they come back, by undo for instance."""


class Estimator:
    """What one session asks: each question cancels the one before in the same place."""

    def __init__(self, pool: Pool | None = None, limit: int = LIMIT) -> None:
        """`limit` is how many runs an answer has at the end."""
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
        """Ask what comes of a scenario, in place of what was asked before in this place.

        `told` is called with the answer, in another thread, whenever it has a new estimate, and
        when it fails. Places other than `shown`, for a baseline or pins, let that one go first.
        `seed` is as in `dialsim.replicate`. The runs are shared out over `draws`, if there are any:
        the same scenario with behaviours that may be the true ones, as in `dialsim.forecast`.
        """
        self.cancel(place)
        case = Case(scenario, seed)
        wanted = self._limit if limit is None else limit
        shared = [Case(draw, draw_seed(case.seed, number)) for number, draw in enumerate(draws)]
        behind = 0 if place == "shown" else _BEHIND
        answer = EstimateAnswer(self._pool, case, wanted, told, behind, shared)
        key = case.digest, case.seed, *(one.digest for one in shared)
        known = self._kept.pop(key, {})
        answer.finished.update((k, run) for k, run in known.items() if k < wanted)
        answer.started.update(answer.finished)
        self._kept[key] = answer.finished
        while len(self._kept) > _KEPT_ANSWERS:
            self._kept.popitem(last=False)
        self._asked[place] = answer
        self._pool.begin(answer)
        return answer

    def cancel(self, place: str = "shown") -> None:
        """Stop what is asked in a place."""
        if (answer := self._asked.pop(place, None)) is not None:
            answer.cancel()

    def close(self) -> None:
        """Stop all that this session asked."""
        for place in [*self._asked]:
            self.cancel(place)
