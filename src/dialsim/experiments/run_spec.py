"""Scenario and seed of an experiment, and one replication as a task for a worker.

The worker may be another process or another machine. Of runs that cannot differ it makes one, and
the others share it (`MadeRun`).
"""

from __future__ import annotations

import shlex
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from dialsim import __version__
from dialsim.engine.log_reader import CALL_STATUSES, FROM_STATUS, rows_of
from dialsim.engine.trace import RETRY
from dialsim.engine.world import World, count_of
from dialsim.experiments.known_bounds import KnownBounds, known_bounds_of
from dialsim.experiments.run_figures import RunFigures, figures_of
from dialsim.interface import CallStatus
from dialsim.scenario.campaign import PeopleTable
from dialsim.scenario.scenario import pack, unpack

if TYPE_CHECKING:
    from dialsim.engine import Engine
    from dialsim.engine.log_reader import Calls
    from dialsim.results.result import Result
    from dialsim.scenario.scenario import Scenario


Parts = Mapping[str, bytes | PeopleTable]


class RunSpec:
    """Scenario that is replicated; `finished` are its replications so far, by number."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        """`seed` defaults to the scenario's."""
        self.scenario = scenario
        self.seed = count_of("seed", scenario.seed if seed is None else seed)
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
    def parts(self) -> Parts:
        """Scenario as bytes, by its digest, and its lists of people, by their names."""
        packed, lists = pack(self.scenario)
        return {self.digest: packed, **lists}

    def task(
        self,
        index: int,
        replication: int,
        engine: Engine,
        asked: frozenset[str] | None = None,
        also: Callable[[Result], object] | None = None,
    ) -> Task:
        """Return a replication as a task; its run may be shared if `asked` is given (`MadeRun`)."""
        # A figure by a function may depend on settings that change no call
        is_alone = asked is None or self.scenario.own_figures
        family = None if is_alone else self.relatives.family
        run = self.seed, replication, engine
        return Task(index, self.digest, self.parts, *run, asked, family, also)

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


# -- runs that cannot differ ----------------------------------------------------------------------

_MOST = int(np.iinfo(np.int64).max)
_LEAVES = np.isin(FROM_STATUS, [CALL_STATUSES.index(CallStatus.SCHEDULED)])


class RetrySettings(NamedTuple):
    """Settings of one campaign in which related variants may differ."""

    max_attempts: int
    retry_interval: int


class Relatives:
    """`family` of a scenario, equal for related variants, and the `settings` that may differ."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.places = [
            (o, 0)
            for o, organization in enumerate(scenario.organizations)
            if len(organization.campaigns) == 1 and organization.campaigns[0].schedule is not None
        ]

    @property
    def settings(self) -> tuple[RetrySettings, ...]:
        """Retry settings of the campaigns that may differ, in the order of `places`."""
        requests = [self._scenario.organizations[o].campaigns[c].schedule for o, c in self.places]
        return tuple(
            RetrySettings(r.max_attempts, r.retry_interval) for r in requests if r is not None
        )

    @cached_property
    def family(self) -> str:
        """Digest of the scenario without these settings."""
        organizations = [*self._scenario.organizations]
        for o, _ in self.places:
            (campaign,) = organizations[o].campaigns
            assert campaign.schedule is not None
            alike = {"max_attempts": 1, "retry_interval": 0}
            request = campaign.schedule.model_copy(update=alike)
            campaigns = (campaign.model_copy(update={"schedule": request}),)
            organizations[o] = organizations[o].model_copy(update={"campaigns": campaigns})
        return self._scenario.model_copy(update={"organizations": tuple(organizations)}).digest


class Slack(NamedTuple):
    """Margins within which the settings of one campaign have no effect on its run.

    `attempts` is the greatest number of attempts that a person had, `spare` the shortest time (ms)
    between the creation of a retry and its release, its drop, or the end of the run.
    """

    attempts: int
    spare: int

    @classmethod
    def of(cls, calls: Calls, end: int) -> Slack:
        """Return the slack of a campaign in a run that ended at `end` (ms)."""
        if (calls.past_status >= 0).any():  # histories have their own due instants
            return cls(_MOST, 0)
        rows, call = calls.rows, calls.row_call
        created, left = np.flatnonzero(rows.kind == RETRY), rows_of(rows.kind, _LEAVES)[::-1]
        waited_until = np.full(len(calls), end, dtype=np.int64)
        # Reversed, so that the first row of a call is assigned last.
        waited_until[call[left]] = rows.at[left]
        spare = waited_until[call[created]] - rows.at[created]
        return cls(int(calls.attempt.max(initial=0)), int(spare.min(initial=_MOST)))

    def covers(self, made: RetrySettings, wanted: RetrySettings) -> bool:
        """Return True if the run made with some settings is also the run of the settings wanted."""
        few = self.attempts < min(made.max_attempts, wanted.max_attempts)
        longer = wanted.retry_interval - made.retry_interval
        return (few or made.max_attempts == wanted.max_attempts) and (
            longer == 0 or 0 < longer < self.spare
        )


@dataclass(frozen=True, slots=True)
class MadeRun:
    """Finished run that related variants may share: its family, settings, slack and figures.

    Two variants are related if they differ only in `maxAttempts` and `retryInterval` of campaigns
    that are alone in their organization and have no histories. A run of one shows which settings
    never decided anything in it (`Slack`). Two theorems follow, both by induction over the instants
    of the run, as draws belong to people and attempts and not to the order of events.

    **maxAttempts.** The rules compare it with the attempts of a person when a call ends (R1), and
    with nothing else. Let K be the greatest number of attempts that a person had in the run. If K
    is less than both settings, each comparison has the same result under both. So both runs are the
    same.

    **retryInterval.** Let r be the interval of the run and r' a longer one. A retry is created at e
    + r, e being the end of the call before, and waits in SCHEDULED until its release or its drop at
    q. Let e + r' < q hold for all retries, with the end of the run as q of those that wait to the
    end. Then both runs have the same rows, but for the instants at which retries are created and
    the order of calls that are dropped at one instant:

    - A retry not created in the run (e + r is after the end of the campaign or of the run) is not
      created under r' either. All others are created under both before q.
    - The calls that wait under r' are at each instant a part of those that wait under r, and each
    call
      released under r is among them. Releases take the first call in an order (Q3): by class, due
      instant and upload. Retries are due at e + r or e + r', so among themselves they have the same
      order; first calls are due at the start, before all retries. The first of all that wait under
      r is therefore the first under r' as well.
    - Nothing is released under r' where nothing is released under r: there is no room, the window
    is
      closed, or nothing waits, and under r' no more calls wait.
    - A creation in the run at the instant of a release does not bring that release about, as q is
      later than the creation. What does bring it about is the same under both.

    All figures but the time that people wait for a retry (`held_back`) are read from other
    rows. So runs are shared only where single figures are asked for, which `held_back` is not.
    """

    family: str | None
    settings: tuple[RetrySettings, ...]
    slacks: tuple[Slack, ...]
    figures: str

    @classmethod
    def of(cls, result: Result, family: str | None, relatives: Relatives, figures: str) -> MadeRun:
        """Measure the slack of a finished run of a scenario."""
        own, end = result.reading.campaigns, result.trace.end
        slacks = tuple(Slack.of(own[place].engine_calls, end) for place in relatives.places)
        return cls(family, relatives.settings, slacks, figures)

    def is_shared_by(self, family: str | None, settings: Sequence[RetrySettings]) -> bool:
        """Return True if the run of these settings is this one."""
        return self.family == family and all(
            slack.covers(made, wanted)
            for slack, made, wanted in zip(self.slacks, self.settings, settings, strict=True)
        )


# -- tasks
# ------------------------------------------------------------------------------------------

_KEPT_SCENARIOS = 16
"""Scenarios that a worker caches."""
_STALE_SECONDS = 30.0
"""Age (s) that counts as much as one replication when cached draws are evicted."""


@dataclass(frozen=True, slots=True)
class Task:
    """Replication `replication` of `seed` of a scenario; `index` identifies the task.

    `parts` has the scenario by its digest, and its lists of people by name; they are left out on
    the way to a worker, which gets each part once. `asked` are the requested figures, None for all.
    Tasks of one `family` may share runs (`MadeRun`). `also` reads what else is needed from the
    result. All engines give equal figures.
    """

    index: int
    digest: str
    parts: Parts
    seed: int
    replication: int
    engine: Engine
    asked: frozenset[str] | None = None
    family: str | None = None
    also: Callable[[Result], object] | None = None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """Outcome of a task: its figures as text (`RunFigures.to_text`) and the value of `also`, or the
    error that it raised.
    """

    index: int
    figures: str | None
    failure: str | None
    also: Any = None


class Cancelled(BaseException):
    """The tasks are no longer needed.

    Not an Exception, since exceptions become outcomes of tasks.
    """


class TaskRunner:
    """Simulates tasks in one process; caches scenarios, lists of people, and draws."""

    def __init__(
        self, check: Callable[[int, int], object] | None = None, kept_people: int = 0
    ) -> None:
        """Start with empty caches.

        `check` is called during a run and may raise Cancelled. The draws of up to `kept_people`
        people are cached, and always those of the last run.
        """
        self._check = check
        self._kept_people = kept_people
        self._scenarios: OrderedDict[str, Scenario] = OrderedDict()
        # A list lives as long as a scenario that uses it; a change of a setting sends no list
        # again.
        self._lists: WeakValueDictionary[str, PeopleTable] = WeakValueDictionary()
        self._worlds: dict[tuple[int, int, int], tuple[World, float]] = {}

    def outcomes(self, tasks: Sequence[Task], find: Callable[[str], Any]) -> list[TaskOutcome]:
        """Simulate replications, and return an outcome for each; `find` returns parts by name."""
        sizes = Counter(task.family for task in tasks if task.family is not None)
        made: list[MadeRun] = []
        return [self._outcome(task, find, made, sizes[task.family or ""] > 1) for task in tasks]

    def _outcome(
        self, task: Task, find: Callable[[str], Any], made: list[MadeRun], is_shared: bool
    ) -> TaskOutcome:
        """Simulate a task, unless it shares one of the runs made; add its run to them."""
        from dialsim.results.result import result_of

        try:
            scenario = self._scenario(task.digest, find)
            relatives = Relatives(scenario)
            for run in made:
                if run.is_shared_by(task.family, relatives.settings):
                    return TaskOutcome(task.index, run.figures, None)
            world = self._world(task, scenario)
            if self._check is None:
                result = result_of(world, task.engine)
            else:
                result = result_of(world, task.engine, self._check)
                # Figures take time too, so a cancellation during the run's last steps is checked
                # before them.
                self._check(0, 0)
            # As text, which the store keeps unchanged: equal bytes from all kinds of workers.
            figures = figures_of(result, task.asked).to_text()
            if is_shared:
                made.append(MadeRun.of(result, task.family, relatives, figures))
            also = None if task.also is None else task.also(result)
        except Exception as error:
            return TaskOutcome(task.index, None, f"{type(error).__name__}: {error}")
        return TaskOutcome(task.index, figures, None, also)

    def _world(self, task: Task, scenario: Scenario) -> World:
        """Return the world of a task.

        The draws of a cached world with equal names, seed and replication are reused, or else the
        people of any cached world.
        """
        names = tuple((o.name, *(c.name for c in o.campaigns)) for o in scenario.organizations)
        # Draws depend on names of organizations and campaigns, seed and replication, not on the
        # settings that a planner changes.
        key = hash(names), task.seed, task.replication
        like, _ = self._worlds.get(key) or next(iter(self._worlds.values()), (None, 0.0))
        world = World(scenario, task.seed, task.replication, like)
        if not self._kept_people:
            self._worlds.clear()
        self._worlds[key] = world, monotonic()
        self._forget()
        return world

    def _forget(self) -> None:
        """Evict draws beyond the limit: high replications and old ones first.

        Every change starts again with replication 0, so low replications are reused most.
        """
        now = monotonic()

        def people(world: World) -> int:
            return sum(c.people.count for o in world.organizations for c in o.campaigns)

        sizes = {key: people(world) for key, (world, _) in self._worlds.items()}
        while len(sizes) > 1 and sum(sizes.values()) > self._kept_people:
            last = max(
                sizes, key=lambda key: key[2] + (now - self._worlds[key][1]) / _STALE_SECONDS
            )
            del sizes[last], self._worlds[last]

    def _scenario(self, digest: str, find: Callable[[str], Any]) -> Scenario:
        def people(name: str) -> PeopleTable:
            if (found := self._lists.get(name)) is None:
                self._lists[name] = found = find(name)
            return found

        if digest not in self._scenarios:
            # Evicted first, so that old and new scenario are not in memory together.
            if len(self._scenarios) >= _KEPT_SCENARIOS:
                self._scenarios.popitem(last=False)
            self._scenarios[digest] = unpack(find(digest), people)
        self._scenarios.move_to_end(digest)
        return self._scenarios[digest]


class _Here(threading.local):
    def __init__(self) -> None:
        self.runner = TaskRunner()


_here = _Here()


def run_tasks(tasks: Sequence[Task], version: str, parts: Parts | None = None) -> list[TaskOutcome]:
    """Simulate replications in this thread; `parts` are parts sent apart from the tasks.

    `version` is the version of the calling program, because another version may give other figures.
    """
    if version != __version__:
        failure = f"the worker has dialsim {__version__}, not {version}"
        # An error is an outcome and is not raised: the other tasks of the batch keep their runs.
        return [TaskOutcome(task.index, None, failure) for task in tasks]
    return _here.runner.outcomes(tasks, (parts or parts_of(tasks)).__getitem__)


def parts_of(tasks: Iterable[Task]) -> Parts:
    """Return the parts of several tasks."""
    return {name: part for task in tasks for name, part in task.parts.items()}
