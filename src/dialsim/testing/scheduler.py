"""Conformance of a foreign scheduler: it dials on a virtual clock, and its dials meet the rules.

Lines, phones and windows are simulated here, apart from the engines. The calls that a scheduler
makes become a plain table of calls, which is checked like any log, and then compared with the
engine's dials, which the rules determine to the millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pandas as pd

from dialsim.conformance.table import OpeningHours
from dialsim.engine.behaviour import durations
from dialsim.engine.world import CampaignBlock, World
from dialsim.errors import DialsimError
from dialsim.interface.arguments import checked
from dialsim.interface.instants import DAY
from dialsim.logs.verify import check
from dialsim.results.result import run
from dialsim.testing.sketch import NUMBERS, Sketch, stamp

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Kind = Literal[
    "campaign_scheduled", "paused", "resumed", "cancelled", "expired", "window_closed",
    "dial_withdrawn", "call_ended", "line_free", "window_opened", "woken",
]  # fmt: skip
# Steps of T4: order of the changes of one instant
_COMMAND, _END_DATE, _CLOSING, _CALLS, _OPENING = 1, 2, 3, 4, 6
_COMMANDS: dict[str, Kind] = {"pause": "paused", "resume": "resumed", "cancel": "cancelled"}
_RULE_OF = {"paused": "C4", "cancelled": "C6", "expired": "C7"}
_FAILED = "failed"  # in place of a rule number: the scheduler raised an error
_LONGEST = 35 * DAY  # windows open until then; weekly ones open five times
_MOST_DIALS = 1_000  # limit of calls; the longest scenario needs some 15


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class Order:
    """Settings of a schedule request: `retry_interval` in ms, `recipients` as their number."""

    campaign: str
    recipients: int
    max_attempts: int
    retry_interval: int
    caller_ids: tuple[str, ...] = ()


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class Event:
    """Event of the virtual clock, at an instant in ms since 1970.

    `recipient` and `status` belong to `call_ended` and `dial_withdrawn`; `order` belongs to
    `campaign_scheduled`. `window_opened` is sent when a campaign may call: a window is open and its
    start has come.
    """

    kind: Kind
    at: int
    campaign: str = ""
    recipient: int | None = None
    status: str | None = None
    order: Order | None = None


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class Dial:
    """Order to dial a recipient (position in the list, from 0) at once."""

    campaign: str
    recipient: int
    caller_id: str | None = None


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class Wake:
    """Request for an event `woken` at an instant in ms since 1970."""

    at: int


class Scheduler(Protocol):
    """Scheduler under test: any object with this method."""

    def step(self, at: int, events: Sequence[Event], free_lines: int) -> Iterable[Dial | Wake]:
        """Return the dials of an instant, after all of its events, in the order of T4."""


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class Breach:
    """First breach of a run: its rule, and the smallest scenario that shows it.

    `at` is in ms since 1970; `dialled` has a text for each dial. `str` quotes the rule book.
    """

    rule: str
    at: int
    recipient: int
    text: str
    sketch: Sketch = field(repr=False)
    dialled: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        title, said = RULES.get(self.rule, ("", ""))
        lines = [
            f"{self.rule} {title}: {said}",
            f"  {stamp(self.at)} (Thai time), recipient {self.recipient}: {self.text}",
            f"  smallest scenario: {self.sketch!r}",
            *(f"  {line}" for line in self.dialled),
        ]
        return "\n".join(lines)


class ConformanceError(AssertionError):
    """Error for a scheduler that breaks rules; `breaches` has the first breach of each rule."""

    def __init__(self, name: str, breaches: Sequence[Breach]) -> None:
        rules = ", ".join(breach.rule for breach in breaches)
        super().__init__("\n\n".join([f"{name} breaks {rules}:", *map(str, breaches)]))
        self.breaches = tuple(breaches)


RULES = {
    "T3": ("When a window is open", "A range includes its `start` and excludes its `end`"),
    "C1": ("Scheduling", "The effective start, startAt, is the later of the request's instant and "
                         "`startDateTime`."),
    "C4": ("Pause", "Every waiting call goes to `SCHEDULED`, and no new call is dialled."),
    "C6": ("Cancel", "Every waiting call becomes `CANCELLED`"),
    "C7": ("The end date", "when `endDateTime` comes, waiting calls become `EXPIRED`"),
    "Q1": ("Lines", "`maxConcurrentCalls` belongs to the organization, and its campaigns share "
                    "it."),
    "Q3": ("Who is released next", "due instant, then upload order"),
    "Q4": ("Dialling", "in the order of release, as long as a line is free."),
    "P3": ("Caller ID", "a retry avoids the number that the recipient's previously dialled call "
                        "used"),
    "R1": ("Who is called again", "is followed by a new one while fewer than `maxAttempts` "
                                  "attempts have been counted."),
    "R2": ("When", "a retry is due `retryInterval` after the `callEndedAt` of the call before it."),
    "R3": ("Reached is reached", "a campaign does not call again the people whom it has reached."),
}  # fmt: skip
"""Titles and sentences of the rule book."""


@checked(DialsimError)
def conformance(scheduler: Callable[[], Scheduler], *sketches: Sketch, examples: int = 100) -> int:
    """Check the dials of a scheduler in scenarios, and return the number of scenarios.

    `scheduler` makes a new scheduler for each scenario, such as its class. Without `sketches` the
    scenarios are those worked out on paper for the oracle, and `examples` random ones of at most
    five recipients, of which hypothesis finds the smallest that fails. Scenarios of one campaign
    are also compared with the engine, dial by dial. Raises ConformanceError with the first breach
    of each rule that the scheduler breaks. If it breaks no rule but raises an error, that error is
    raised with a note of the smallest scenario. Raises DialsimError for a sketch that needs more
    than conformance can do (several organizations, people without scripts, other actions than
    pauses and cancellations).

    >>> from dialsim.testing import ConformanceError, Dial
    >>> class Once:  # calls the first person, too early or not
    ...     def step(self, at, events, free_lines):
    ...         if any(event.kind == "campaign_scheduled" for event in events):
    ...             return [Dial(events[0].campaign, 0)]
    ...         return []
    >>> late = Sketch(1).campaign("A", "busy 1s", start=60)
    >>> try:
    ...     dialsim.testing.conformance(Once, late)
    ... except ConformanceError as error:
    ...     print(error.breaches[0].rule)
    C1
    """
    judged: dict[str, Breach | None] = {}
    failures: dict[str, Exception] = {}

    def judge(sketch: Sketch) -> Breach | None:
        if sketch.text not in judged:
            try:
                judged[sketch.text] = _Bench(scheduler(), sketch).breach()
            except DialsimError:
                raise
            except Exception as error:
                # The error is kept as a finding: a rule broken in another scenario explains more
                failures[sketch.text] = error
                judged[sketch.text] = Breach(_FAILED, 0, 0, repr(error), sketch)
        return judged[sketch.text]

    found = {} if sketches else _smallest(judge, examples)
    for sketch in sketches or PAPER:
        breach = judge(sketch)
        if breach is not None:
            found.setdefault(breach.rule, breach)
    failed = found.pop(_FAILED, None)
    if found:
        raise ConformanceError(getattr(scheduler, "__name__", "the scheduler"), [*found.values()])
    if failed is not None:
        error = failures[failed.sketch.text]
        error.add_note(f"smallest scenario: {failed.sketch!r}")
        raise error
    return len(judged)


def _smallest(judge: Callable[[Sketch], Breach | None], examples: int) -> dict[str, Breach]:
    """Return, by rule, the breach in the smallest scenario that hypothesis finds."""
    try:
        from hypothesis import HealthCheck, find, settings
        from hypothesis.errors import NoSuchExample
    except ImportError:
        raise DialsimError("random scenarios need hypothesis: pip install hypothesis") from None

    limits = settings(
        max_examples=examples, database=None, deadline=None, suppress_health_check=[*HealthCheck]
    )
    found: dict[str, Breach] = {}
    while True:
        rule = ""

        def fails(sketch: Sketch) -> bool:
            nonlocal rule
            breach = judge(sketch)
            if breach is None or breach.rule in found:
                return False
            # While hypothesis shrinks a scenario, the scenario must not come to break another rule
            rule = rule or breach.rule
            return breach.rule == rule

        try:
            smallest = judge(find(random_sketches(), fails, settings=limits, random=Random(0)))
        except NoSuchExample:
            return found
        assert smallest is not None
        found[rule] = smallest


PAPER = (
    Sketch(1, start="Mon 10:00").campaign(
        "A", "noAnswer 3s; answered 1s 4s", max_attempts=3, retry_interval="5m"
    ),
    Sketch(1, start="Mon 10:00", queue_limit=1).campaign(
        "A", "answered 0s 68s", "noAnswer 48s", "busy 0s",
        time_windows=[
            {"dayOfWeek": 1, "time": [{"start": "10:00", "end": "10:01"}]},
            {"dayOfWeek": 1, "time": [{"start": "10:01", "end": "10:02"}]},
        ],
    ),
    Sketch(1, start="Mon 10:00").campaign("A", "busy 0s", windows="Mon 00:30-00:31"),
    Sketch(1, start="Mon 10:00").campaign(
        "A", "busy 1s", "answered 0s 330s", "busy 0s", max_attempts=2, retry_interval="5m"
    ),
)  # fmt: skip
"""Scenarios worked out on paper, which the oracle's tests use too."""


def random_sketches() -> SearchStrategy[Sketch]:
    """Return a strategy for scenarios without chance, of at most five recipients."""
    from hypothesis import strategies as st

    seconds = st.sampled_from(["1s", "20s", "0s", "330s"])
    unanswered = st.builds(lambda end, ring: f"{end} {ring}",
                           st.sampled_from(["busy", "noAnswer", "failed"]), seconds)  # fmt: skip
    answered = st.builds(lambda ring, talk: f"answered {ring} {talk}", seconds, seconds)
    person = st.lists(unanswered | answered, min_size=1, max_size=3).map("; ".join)
    bodies = st.fixed_dictionaries({}, optional={
        "max_attempts": st.sampled_from([2, 3]),
        "windows": st.sampled_from(["Mon-Fri 09:00-09:01 09:05-09:20", "Mon-Tue 09:01-09:06"]),
        "start": st.sampled_from([1, 60, 150]),
        "end": st.sampled_from([3, 65, 330]),
        "caller_ids": st.just([*NUMBERS[:2]]),
    })  # fmt: skip
    moments = st.sampled_from([1, 2, 3, 22, 61, 300])
    actions = st.lists(
        st.tuples(moments, st.sampled_from(["pause", "cancel"]), moments), max_size=1
    )

    @st.composite
    def sketches(draw: Any) -> Sketch:
        people = draw(st.lists(person, min_size=1, max_size=5))
        body = draw(bodies)
        if "end" in body:
            body["end"] += body.get("start", 0)
        if "max_attempts" in body:
            body["retry_interval"] = draw(st.sampled_from(["5m", "301s"]))
        sketch = Sketch(draw(st.integers(1, 3)), queue_timeout="30d")
        # People of a second campaign
        cut = min(draw(st.sampled_from([0, 0, 0, 1, 2])), len(people) - 1)
        sketch = sketch.campaign("A", *people[cut:], **body)
        if people[:cut]:
            sketch = sketch.campaign("B", *people[:cut])
        for at, action, later in draw(actions):
            sketch = sketch.at(at, action, "A")
            sketch = sketch.at(at + later, "resume", "A") if action == "pause" else sketch
        return sketch

    return sketches()


_Change = Callable[[int], list[Event]]
"""Change of the bench at an instant, which returns the events that the scheduler receives."""


@dataclass(eq=False)
class _Campaign:
    """Campaign on the bench."""

    order: Order
    start_at: int
    scripts: list[Any]
    hours: OpeningHours
    setup: int
    ended_by: str = ""
    """Event that ended or paused the campaign; empty while it may dial."""


@dataclass(eq=False)
class _Call:
    """Dial, and the call that it becomes unless it is withdrawn."""

    campaign: str
    recipient: int
    at: int
    caller_id: str | None
    is_set_up: bool = False
    ended_at: int | None = None
    status: str | None = None


class _Bench:
    """Virtual clock, lines and phones of one scenario, which a scheduler dials on."""

    def __init__(self, scheduler: Scheduler, sketch: Sketch) -> None:
        self._scheduler = scheduler
        self._sketch = sketch
        self._scenario = sketch.scenario()
        self._calls: list[_Call] = []
        self._under_way: list[_Call] = []
        self._breaches: list[Breach] = []
        self._chooses_numbers = False
        # Numbered, because changes of one step happen in the order in which they were planned
        self._number = count()
        self._heap: list[tuple[int, int, int, _Change]] = []
        self._campaigns: dict[str, _Campaign] = {}
        world = World(self._scenario)
        (owner,) = world.organizations
        self._lines = owner.settings.max_concurrent_calls
        for block in owner.campaigns:
            self._add(block)
        for action in owner.settings.timeline:
            if action.action not in _COMMANDS or action.campaign is None:
                raise DialsimError(f"conformance can't carry out {action.action}")
            campaign, done = self._campaigns[action.campaign], _COMMANDS[action.action]
            self._plan(action.at, _COMMAND, partial(self._stop_or_resume, campaign, done))

    def _add(self, block: CampaignBlock) -> None:
        request, people, script = block.schedule, block.people, block.people.script
        if request is None or (people.count and script is None):
            raise DialsimError(f"{block.name} needs a schedule and a script for everybody")
        behaviour = self._scenario.behaviours[block.agent.behaviour]
        asked = max(self._scenario.clock.start, block.scheduled_at or 0)
        order = Order(block.name, people.count, request.max_attempts, request.retry_interval,
                      tuple(request.caller_ids or ()))  # fmt: skip
        campaign = self._campaigns[block.name] = _Campaign(
            order=order,
            start_at=max(asked, request.start_date_time),
            scripts=[] if script is None else [people.scripts[code] for code in script],
            hours=OpeningHours(request.weekday_ranges),
            setup=int(durations(behaviour.setup_time, np.array([0.5]))[0]),
        )
        self._plan(
            asked, _COMMAND, lambda at: [Event("campaign_scheduled", at, block.name, order=order)]
        )
        if request.end_date_time is not None:
            expire = partial(self._stop_or_resume, campaign, "expired")
            self._plan(max(asked, request.end_date_time), _END_DATE, expire)
        self._plan_opening(campaign, campaign.start_at)

    def _plan(self, at: int, step: int, change: _Change) -> None:
        heappush(self._heap, (at, step, next(self._number), change))

    def _plan_opening(self, campaign: _Campaign, at: int) -> None:
        opens = int(campaign.hours.next_open(np.array([at]))[0])
        if opens - campaign.start_at < _LONGEST:
            self._plan(opens, _OPENING, partial(self._open, campaign))

    def breach(self) -> Breach | None:
        """Run the scheduler to the end; return the first breach, None without one."""
        # Bounded, because a faulty scheduler may call the same people again and again
        while self._heap and len(self._calls) < _MOST_DIALS:
            at, events = self._heap[0][0], list[Event]()
            while self._heap and self._heap[0][0] == at:
                events += heappop(self._heap)[-1](at)
            free = self._lines - len(self._under_way)
            for answer in self._scheduler.step(at, tuple(events), free):
                self._carry_out(answer, at)
        alone = len(self._campaigns) == 1
        differences = [*self._against_engine()] if alone else []
        # Dials like the engine's keep all rules except perhaps P3, on caller IDs
        if differences or not alone or self._chooses_numbers:
            self._breaches += self._against_rules()
        # Rules come first: min() takes the first of equal instants, and a broken rule explains more
        # than a difference
        breaches = [*self._breaches, *differences]
        first = min(breaches, key=lambda breach: breach.at, default=None)
        return None if first is None else replace(first, dialled=tuple(self._dialled()))

    def _open(self, campaign: _Campaign, at: int) -> list[Event]:
        closes = int(campaign.hours.next_close(np.array([at]))[0])
        self._plan(closes, _CLOSING, partial(self._close, campaign))
        return [Event("window_opened", at, campaign.order.campaign)]

    def _close(self, campaign: _Campaign, at: int) -> list[Event]:
        self._plan_opening(campaign, at)
        return [Event("window_closed", at, campaign.order.campaign)]

    def _stop_or_resume(self, campaign: _Campaign, done: Kind, at: int) -> list[Event]:
        name = campaign.order.campaign
        if campaign.ended_by in {"cancelled", "expired"}:
            return []
        campaign.ended_by = "" if done == "resumed" else done
        events = [Event(done, at, name)]
        if done == "resumed":
            return events
        # C4, C6, C7: lines that are being set up are dropped
        own = [call for call in self._under_way if call.campaign == name and not call.is_set_up]
        for call in own:
            self._under_way.remove(call)
            self._calls.remove(call)
            events += [Event("dial_withdrawn", at, name, call.recipient), Event("line_free", at)]
        return events

    def _set_up(self, call: _Call, at: int) -> list[Event]:
        if call not in self._under_way:
            return []  # withdrawn
        call.is_set_up = True
        script = self._campaigns[call.campaign].scripts[call.recipient]
        ended = sum(before.ended_at is not None for before in self._of(call))
        # The last step of a script is repeated (P6)
        step = script[min(ended, len(script) - 1)]
        call.status = step.outcome.value
        self._plan(at + step.ring + step.talk, _CALLS, partial(self._end, call))
        return []

    def _end(self, call: _Call, at: int) -> list[Event]:
        self._under_way.remove(call)
        call.ended_at = at
        ended = Event("call_ended", at, call.campaign, call.recipient, call.status)
        return [ended, Event("line_free", at)]

    def _of(self, call: _Call) -> list[_Call]:
        """Return the calls to the recipient of a call."""
        whom = (call.campaign, call.recipient)
        return [other for other in self._calls if (other.campaign, other.recipient) == whom]

    def _carry_out(self, answer: Dial | Wake, at: int) -> None:
        if isinstance(answer, Wake):
            if answer.at <= at:
                raise DialsimError(f"Wake({answer.at}) is not after the instant of the step, {at}")
            self._plan(answer.at, _OPENING, lambda at: [Event("woken", at)])
            return
        campaign, recipient = self._campaigns.get(answer.campaign), answer.recipient
        if campaign is None or not 0 <= recipient < campaign.order.recipients:
            self._breaches.append(self._breach("C1", at, recipient, f"{answer} is on no list"))
            return
        call = _Call(answer.campaign, recipient, at, answer.caller_id)
        before = self._of(call)
        if any(other in self._under_way for other in before):
            text = "dialled while the previous call is under way"
            self._breaches.append(self._breach("R2", at, recipient, text))
            return
        if campaign.ended_by:
            rule, text = _RULE_OF[campaign.ended_by], f"dialled, but {campaign.ended_by}"
            self._breaches.append(self._breach(rule, at, recipient, text))
        allowed = campaign.order.caller_ids
        if answer.caller_id is not None:
            self._chooses_numbers = True
        elif allowed:
            call.caller_id = allowed[len(before) % len(allowed)]
        self._calls.append(call)
        self._under_way.append(call)
        self._plan(at + campaign.setup, _CALLS, partial(self._set_up, call))
        if len(self._under_way) > self._lines:
            text = f"{len(self._under_way)} calls at once, but there are {self._lines} lines"
            self._breaches.append(self._breach("Q1", at, recipient, text))

    def _breach(self, rule: str, at: int, recipient: int, text: str) -> Breach:
        return Breach(rule, at, recipient, text, self._sketch)

    def _against_rules(self) -> Iterable[Breach]:
        """Yield the breaches that the check of a table of calls finds."""
        if not self._calls:
            return
        table = pd.DataFrame(vars(call) for call in self._calls)
        table["call"] = table.groupby(["campaign", "recipient"]).cumcount() + 1
        table["call_id"] = table.index.astype(str)
        table = table.rename(columns={"at": "initiated_at", "ended_at": "call_ended_at"})
        table["call_ended_at"] = table["call_ended_at"].astype("Int64")
        for finding in check(table, self._scenario).findings:
            if finding.call_id is not None:
                call = self._calls[int(finding.call_id)]
                yield self._breach(finding.rule, call.at, call.recipient, finding.text)

    def _against_engine(self) -> Iterable[Breach]:
        """Yield the first difference from the engine's dials, with the rule that decides it."""
        mine = _numbered((call.recipient, call.at) for call in self._calls)
        calls = run(self._scenario).calls.dropna(subset="initiated_at")
        instants = calls["initiated_at"].astype("int64")
        theirs = _numbered(zip(calls["recipient"].tolist(), instants.tolist(), strict=True))
        differing = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
        if not differing:
            return
        at = min(min(side[key] for side in (mine, theirs) if key in side) for key in differing)
        late = sorted(key for key in differing if theirs.get(key) == at)
        early = sorted(key for key in differing if mine.get(key) == at)
        recipient, number = (late or early)[0]
        dialled = mine.get((recipient, number))
        then = "never is" if dialled is None else f"is dialled {stamp(dialled)}"
        if late and early:
            yield self._breach("Q3", at, recipient, f"must come before recipient {early[0][0]}")
        elif late:
            (campaign,) = self._campaigns.values()
            ended = [call.ended_at for call in self._calls if call.recipient == recipient]
            due = (ended[number - 2] or 0) + campaign.order.retry_interval if number > 1 else None
            rule = "Q4" if due != at else "R1" if dialled is None else "R2"
            yield self._breach(rule, at, recipient, f"call {number} is to be dialled, but {then}")
        else:
            yield self._breach("Q4", at, recipient, f"call {number} is dialled too early")

    def _dialled(self) -> Iterable[str]:
        for call in self._calls[:20]:
            ended = "" if call.ended_at is None else f", {call.status} {stamp(call.ended_at)}"
            yield f"dialled {stamp(call.at)}: {call.campaign} recipient {call.recipient}{ended}"


def _numbered(dials: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return instants of dials by recipient and number of the call."""
    counts: dict[int, int] = {}
    found = {}
    for recipient, at in dials:
        counts[recipient] = counts.get(recipient, 0) + 1
        found[recipient, counts[recipient]] = at
    return found
