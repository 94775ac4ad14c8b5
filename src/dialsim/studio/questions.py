"""Questions that take many runs, asked from a studio: a plan, an optimum, and what would help.

Each runs in a separate process with a low priority, so that no slider waits for it. It reports its
progress, can be stopped, and returns its estimate.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Literal

from dialsim.errors import DialsimError, ExperimentError
from dialsim.experiments.estimates import not_allowed
from dialsim.experiments.goal import read_goal
from dialsim.experiments.optimum import Optimum, optimize
from dialsim.experiments.plan import Plan, plan
from dialsim.experiments.plan_text import (
    optimum_headline,
    optimum_sentences,
    optimum_tables,
    plan_headline,
    plan_sentences,
    plan_table,
)
from dialsim.experiments.pool import start_process
from dialsim.experiments.replications import replicate
from dialsim.report.run_page import help_fact
from dialsim.report.what_if import (
    AS_IT_IS,
    MOST_PAIRS,
    FurtherRuns,
    StudiedVariant,
    WhatIf,
    best,
    effect_table,
    first_interval,
    levers,
    what_would_help,
)
from dialsim.results.summary_text import FigureTable
from dialsim.scenario.scenario import Scenario
from dialsim.studio.levers import campaign_at, path_to_campaign, path_to_organization
from dialsim.studio.state import StudioState

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Kind = Literal["plan", "optimum", "help"]


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer to a question: a headline, further sentences, and the estimate.

    `lines` are the changes that apply it, as for `--set`; empty if nothing is to be changed.
    `result` is the Plan, the Optimum, or the WhatIf.
    """

    headline: str
    sentences: tuple[str, ...]
    tables: tuple[FigureTable, ...]
    lines: tuple[str, ...]
    result: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """Question about a scenario, in words and as arguments of the function that answers it.

    `command` is the equivalent command in a terminal; empty if there is none.
    """

    kind: Kind
    text: str
    scenario: Scenario = field(repr=False)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


def fewest_lines(state: StudioState, deadline: str, organization: int = 0) -> Question:
    """Ask for the fewest lines that meet a deadline such as `Fri 18:00` in 95 % of runs.

    Raises ExperimentError if the deadline can't be parsed.
    """
    scenario = state.scenario
    goal = f"p95(finish) <= {deadline.strip()}"
    read_goal(goal, scenario)
    path = f"{path_to_organization(scenario, organization)}.maxConcurrentCalls"
    lines = scenario.organizations[organization].max_concurrent_calls
    most = max(40, 4 * lines)
    arguments = {"vary": path, "between": f"1..{most}", "goal": goal}
    command = _command(state, "plan", f"{path}=1..{most}", "--goal", goal)
    text = f"The fewest lines to be done by {deadline.strip()}"
    return Question("plan", text, scenario, arguments, command)


def cheapest_reaching(
    state: StudioState, share: float, campaign: tuple[int, int] = (0, 0)
) -> Question:
    """Ask for the cheapest number of attempts and lines that reaches a share of all people.

    Without costs it is the fewest attempts, then the fewest lines. Raises ExperimentError for an
    invalid share, and for a campaign that is not scheduled.
    """
    scenario, o = state.scenario, campaign[0]
    if not 0 < share < 1:
        raise ExperimentError(
            f"a share is more than 0 % and less than 100 %, not {100 * share:g} %"
        )
    goal = f"mean(reach_share) >= {share:g}"
    owner = path_to_organization(scenario, o)
    request = campaign_at(scenario, campaign).schedule
    if request is None:
        raise ExperimentError("this campaign is never scheduled: nobody is reached")
    below = f"{path_to_campaign(scenario, campaign)}.schedule"
    if request.max_attempts == 1:
        # With one attempt retryInterval may be 0, which several attempts don't allow
        scenario = scenario.with_(f"{below}.retryInterval={first_interval(scenario)}")
    lines = scenario.organizations[o].max_concurrent_calls
    choices = sorted({max(1, lines // 2), max(1, lines), max(2, lines * 3 // 2), max(2, 2 * lines)})
    vary = {
        f"{below}.maxAttempts": f"1..{max(5, request.max_attempts + 2)}",
        f"{owner}.maxConcurrentCalls": ",".join(map(str, choices)),
    }
    arguments: dict[str, Any] = {"vary": vary, "goal": goal}
    more = []
    if scenario.costs is not None:
        arguments["minimize"] = "mean(cost)"
        more = ["--minimize", "mean(cost)"]
    listed = [word for path, values in vary.items() for word in ("--vary", f"{path}={values}")]
    command = _command(state, "plan", listed[1], *listed[2:], "--goal", goal, *more)
    text = f"The cheapest way to reach {100 * share:.0f} % of the people"
    return Question("optimum", text, scenario, arguments, command)


def what_helps(state: StudioState, organization: int | None = None) -> Question:
    """Ask which small change helps most; each is measured with common random numbers."""
    name = None if organization is None else state.scenario.organizations[organization].name
    return Question("help", "What would help most", state.scenario, {"organization": name})


def _command(state: StudioState, verb: str, vary: str, *rest: str) -> str:
    origin = state.base.origin
    assert origin is not None
    words = ["dialsim", verb, origin.name]
    for line in (*origin.overrides, *state.differences):
        words += ["--set", line]
    return shlex.join([*words, "--vary", vary, *rest])


# -- in a process ----------------------------------------------------------------------------------

Say = Callable[[object], object]


def answered(question: Question, progress: Callable[[int, int], object], known: Say) -> Reply:
    """Answer a question in this process. Raises DialsimError."""
    scenario, given = question.scenario, question.arguments
    if question.kind == "help":
        return _reply_of_help(scenario, given["organization"], progress)
    if question.kind == "plan":
        return _reply_of_plan(plan(scenario, known=known, **given, jobs=1, progress=progress))
    found = optimize(scenario, known=known, **given, jobs=1, progress=progress)
    return _reply_of_optimum(found)


def _reply_of_plan(found: Plan) -> Reply:
    lines = (f"{found.path}={found.value}",) if found.met else ()
    warnings = (f"Warning: {text}." for text in found.warnings)
    said = (*plan_sentences(found), *warnings)
    return Reply(plan_headline(found), said, (plan_table(found),), lines, found)


def _reply_of_optimum(found: Optimum) -> Reply:
    pairs = zip(found.paths, found.best.values, strict=True)
    lines = tuple(f"{path}={value}" for path, value in pairs) if found.met else ()
    said = tuple(optimum_sentences(found))
    return Reply(optimum_headline(found), said, tuple(optimum_tables(found)), lines, found)


def _reply_of_help(
    scenario: Scenario, organization: str | None, progress: Callable[[int, int], object]
) -> Reply:
    runs = replicate(scenario, MOST_PAIRS, jobs=1).figures
    studied = StudiedVariant(AS_IT_IS, runs, organization)
    further = FurtherRuns(MOST_PAIRS, jobs=1, progress=progress)
    (measured,) = what_would_help(scenario, None, [studied], further)
    if measured is None:
        return Reply("Nothing that could be tried would help", (), (), (), None)
    fact = help_fact(measured)
    if not isinstance(measured, WhatIf):
        return Reply(fact.answer, (fact.detail,), (), (), None)
    lever = best(measured)
    variants = {variant.name: variant for variant in levers(scenario, runs[0], organization)}
    changes = variants[lever.name].changes if lever is not None else ()
    lines = tuple(f"{change.path}={change.text}" for change in changes)
    currency = scenario.costs.currency if scenario.costs else None
    refused = not_allowed((lever.name, lever.breaches) for lever in measured.not_allowed)
    table = effect_table(measured, currency)
    return Reply(fact.answer, (fact.detail, *refused), (table,), lines, measured)


_NICE = 10
"""Niceness of a question's process: everything else goes first."""


def _work(connection: Connection, question: Question) -> None:
    """Answer a question and send the result to the other end of the connection."""
    try:
        reply: object = answered(
            question,
            lambda done, total: connection.send((done, total)),
            lambda known: connection.send(str(known)),
        )
    except DialsimError as error:
        reply = error
    except Exception as error:
        reply = DialsimError(f"{type(error).__name__}: {error}")
    connection.send(reply)


class Inquiry:
    """A question in progress: `progress` is the number of runs done, and about how many there are.

    `known` is the interim result, `reply` the answer once there is one, `failure` the error.
    """

    def __init__(
        self, question: Question, on_update: Callable[[Inquiry], object] | None = None
    ) -> None:
        """Start; the callback runs in another thread on every update."""
        self.question = question
        self.progress = 0, 0
        self.known = ""
        self.reply: Reply | None = None
        self.failure: DialsimError | None = None
        self.is_stopped = False
        self._on_update = on_update
        self._over = Event()
        self._lock = Lock()
        self._connection, self._process = start_process(_NICE, _work, question)
        Thread(target=self._listen, name="dialsim-studio", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """True if there is a reply or an error."""
        return self._over.is_set()

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return int(self._process.pid)

    def stop(self) -> None:
        """Terminate the worker."""
        with self._lock:
            if self.is_over:
                return
            self.is_stopped = True
        self._process.terminate()

    def wait(self, seconds: float | None = None) -> Reply:
        """Wait for the reply. Raises DialsimError if there is none."""
        self._over.wait(seconds)
        if self.reply is not None:
            return self.reply
        raise self.failure or DialsimError("there is no answer yet")

    def _listen(self) -> None:
        try:
            while not self._take(self._connection.recv()):
                self._notify()
        except (EOFError, OSError):
            self.failure = DialsimError(
                "stopped, as asked"
                if self.is_stopped
                else "the process that worked at this was killed, perhaps for want of memory; ask "
                "again, or with fewer people"
            )
        except Exception as error:
            self.failure = DialsimError(f"the answer can't be read: {error}")
        with self._lock:
            self._over.set()
        self._connection.close()
        self._process.join()
        self._notify()

    def _take(self, news: object) -> bool:
        """Store a message of the worker; True if it is the last one."""
        match news:
            case (int(done), int(total)):
                self.progress = done, total
                return False
            case str(known):
                self.known = known
                return False
            case Reply():
                self.reply = news
            case DialsimError():
                self.failure = news
        return True

    def _notify(self) -> None:
        if self._on_update is not None:
            self._on_update(self)
