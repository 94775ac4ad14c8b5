"""Conformance of a foreign scheduler: it dials on a virtual clock, and its dials meet the rules.

Lines, phones and windows are simulated here, apart from the engines. The calls that a scheduler
makes become a plain table of calls, which is checked like any log, and then compared with the
engine's dials, which the rules determine to the millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pandas as pd

from dialsim.conformance.calls import DAY, OpeningHours
from dialsim.engine.behaviour import durations
from dialsim.engine.world import World
from dialsim.errors import DialsimError
from dialsim.logs.verify import check
from dialsim.results.result import run
from dialsim.testing.sketch import NUMBERS, Sketch, stamp

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Kind = Literal[
    "campaign_scheduled", "paused", "resumed", "cancelled", "expired", "window_closed",
    "dial_withdrawn", "call_ended", "line_free", "window_opened", "woken",
]  # fmt: skip
_STEPS: dict[str, int] = {
    "campaign_scheduled": 1, "pause": 1, "resume": 1, "cancel": 1, "expired": 2,
    "window_closed": 3, "set_up": 4, "ended": 4, "window_opened": 6, "woken": 6,
}  # fmt: skip
"""Steps of T4 in which the changes of an instant happen."""
_DONE: dict[str, Kind] = {
    "pause": "paused", "resume": "resumed", "cancel": "cancelled", "expired": "expired"
}  # fmt: skip
_ENDS = {"paused": "C4", "cancelled": "C6", "expired": "C7"}
_LONGEST = 35 * DAY  # windows may be open once a week
_MOST_DIALS = 1_000


@dataclass(frozen=True, slots=True)
class Order:
    """Campaign as the schedule request has it; durations in ms, `recipients` is a number."""

    campaign: str
    recipients: int
    max_attempts: int
    retry_interval: int
    caller_ids: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Dial:
    """Dial of a recipient (position in the list, from 0), at once."""

    campaign: str
    recipient: int
    caller_id: str | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """Request for an event `woken` at an instant in ms since 1970."""

    at: int


class Scheduler(Protocol):
    """Scheduler under test."""

    def step(self, at: int, events: Sequence[Event], free_lines: int) -> Iterable[Dial | Wake]:
        """Return the dials of an instant, after all of its events, in the order of T4."""


@dataclass(frozen=True, slots=True)
class Breach:
    """First breach of a run: its rule, and the smallest scenario that shows it."""

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
    """A scheduler breaks rules; `breaches` has the first breach of each rule."""

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


def conformance(scheduler: Callable[[], Scheduler], *sketches: Sketch, examples: int = 100) -> int:
    """Run a scheduler through scenarios and check its dials; return the number of scenarios.

    `scheduler` makes a new scheduler for each scenario, such as its class. Without `sketches` the
    scenarios are those worked out on paper for the oracle, and `examples` random ones of at most
    five recipients, of which hypothesis finds the smallest that fails. Scenarios of one campaign
    are also compared with the engine, dial by dial. Raises ConformanceError with the first breach
    of each rule that a scheduler breaks, or, if it breaks none, the scheduler's own error.
    """
    judged: dict[str, Breach | None] = {}
    failed: list[Sketch] = []

    def breach_in(sketch: Sketch) -> Breach | None:
        if sketch.text not in judged:
            judged[sketch.text] = _Bench(scheduler(), sketch).breach()
        return judged[sketch.text]

    def judge(sketch: Sketch) -> Breach | None:
        try:
            return breach_in(sketch)
        except DialsimError:
            raise
        except Exception:
            # A rule that the scheduler breaks elsewhere says more than where it fails in the end
            failed.append(sketch)
            return None

    found = {} if sketches else _smallest(judge, examples)
    for sketch in sketches or PAPER:
        breach = judge(sketch)
        if breach is not None:
            found.setdefault(breach.rule, breach)
    if failed and not found:
        if not sketches:
            _smallest(breach_in, examples)  # in which hypothesis shows the smallest scenario
        breach_in(failed[0])
    if found:
        raise ConformanceError(getattr(scheduler, "__name__", "the scheduler"), [*found.values()])
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
            # While it shrinks, a scenario must not slip to another rule
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
        windows="Mon 10:00-10:01, Mon 10:01-10:02",
    ),
    Sketch(1, start="Mon 10:00").campaign("A", "busy 0s", windows="Mon 00:30-00:31"),
    Sketch(1, start="Mon 10:00").campaign(
        "A", "busy 1s", "answered 0s 330s", "busy 0s", max_attempts=2, retry_interval="5m"
    ),
)  # fmt: skip
"""Scenarios worked out on paper, which the oracle's tests hold too."""


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


@dataclass
class _Campaign:
    """A campaign on the bench."""

    order: Order
    start_at: int
    scripts: list[Any]
    hours: OpeningHours
    setup: int
    ended_by: str = ""
    """Event after which nobody is dialled; a pause until it is resumed."""


@dataclass(eq=False)
class _Call:
    """A dial, and the call that it becomes unless it is withdrawn."""

    campaign: str
    recipient: int
    at: int
    caller_id: str | None
    set_up: bool = False
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
        self._number_of_change = count()
        self._chooses_numbers = False
        self._heap: list[tuple[int, int, int, str, str, Any]] = []
        self._campaigns = {}
        world = World(self._scenario)
        (owner,) = world.organizations
        self._lines = owner.settings.max_concurrent_calls
        for block in owner.campaigns:
            request, people = block.schedule, block.people
            if request is None or (people.count and people.script is None):
                raise DialsimError(f"{block.name} needs a schedule and a script for everybody")
            behaviour = self._scenario.behaviours[block.agent.behaviour]
            asked = max(self._scenario.clock.start, block.scheduled_at or 0)
            campaign = self._campaigns[block.name] = _Campaign(
                Order(block.name, people.count, request.max_attempts, request.retry_interval,
                      tuple(request.caller_ids or ())),
                max(asked, request.start_date_time),
                [people.scripts[code] for code in (() if people.script is None else people.script)],
                OpeningHours(request.weekday_ranges),
                int(durations(behaviour.setup_time, np.array([0.5]))[0]),
            )  # fmt: skip
            self._push(asked, "campaign_scheduled", block.name)
            if request.end_date_time is not None:
                self._push(max(asked, request.end_date_time), "expired", block.name)
            self._push_opening(campaign, campaign.start_at)
        for action in owner.settings.timeline:
            if action.action not in _STEPS or action.campaign is None:
                raise DialsimError(f"conformance can't carry out {action.action}")
            self._push(action.at, action.action, action.campaign)

    def _push(self, at: int, kind: str, campaign: str, call: _Call | None = None) -> None:
        heappush(self._heap, (at, _STEPS[kind], next(self._number_of_change), kind, campaign, call))

    def _push_opening(self, campaign: _Campaign, at: int) -> None:
        opens = int(campaign.hours.next_open(np.array([at]))[0])
        if opens - campaign.start_at < _LONGEST:
            self._push(opens, "window_opened", campaign.order.campaign)

    def breach(self) -> Breach | None:
        """Let the scheduler dial to the end; return the first breach, None without one."""
        while self._heap and len(self._calls) < _MOST_DIALS:
            at, events = self._heap[0][0], list[Event]()
            while self._heap and self._heap[0][0] == at:
                _, _, _, kind, name, call = heappop(self._heap)
                events += self._change(at, kind, name, call)
            free = self._lines - len(self._under_way)
            for answer in self._scheduler.step(at, tuple(events), free):
                self._carry_out(answer, at)
        alone = len(self._campaigns) == 1
        differences = [*self._against_engine()] if alone else []
        # Of equal instants the first counts, so that differences come last
        breaches = self._breaches
        # Dials that agree with the engine keep all rules but the one on caller IDs
        if differences or not alone or self._chooses_numbers:
            breaches += self._against_rules()
        breaches += differences
        first = min(breaches, key=lambda breach: breach.at, default=None)
        return None if first is None else replace(first, dialled=tuple(self._dialled()))

    def _change(self, at: int, kind: str, name: str, call: _Call | None) -> list[Event]:
        """Carry out a change; return the events that the scheduler receives."""
        if kind == "woken":
            return [Event("woken", at)]
        campaign = self._campaigns[name]
        if call is not None:
            return self._progress(at, kind, campaign, call)
        if kind.startswith("window"):
            return self._window(at, kind, campaign)
        if kind == "campaign_scheduled":
            return [Event("campaign_scheduled", at, name, order=campaign.order)]
        return self._command(at, kind, campaign)

    def _window(self, at: int, kind: str, campaign: _Campaign) -> list[Event]:
        if kind == "window_closed":
            self._push_opening(campaign, at)
            return [Event("window_closed", at, campaign.order.campaign)]
        closes = int(campaign.hours.next_close(np.array([at]))[0])
        self._push(closes, "window_closed", campaign.order.campaign)
        return [Event("window_opened", at, campaign.order.campaign)]

    def _command(self, at: int, kind: str, campaign: _Campaign) -> list[Event]:
        done, name = _DONE[kind], campaign.order.campaign
        if campaign.ended_by in {"cancelled", "expired"}:
            return []
        campaign.ended_by = "" if done == "resumed" else done
        events = [Event(done, at, name)]
        if done == "resumed":
            return events
        # C4, C6, C7: lines that are being set up are dropped
        for dropped in [one for one in self._under_way if one.campaign == name and not one.set_up]:
            self._under_way.remove(dropped)
            self._calls.remove(dropped)
            events += [Event("dial_withdrawn", at, name, dropped.recipient), Event("line_free", at)]
        return events

    def _progress(self, at: int, kind: str, campaign: _Campaign, call: _Call) -> list[Event]:
        if call not in self._under_way:
            return []  # withdrawn
        if kind == "set_up":
            call.set_up = True
            script = campaign.scripts[call.recipient]
            before = sum(self._same(one, call) and one.ended_at is not None for one in self._calls)
            step = script[min(before, len(script) - 1)]
            call.status = step.outcome.value
            self._push(at + step.ring + step.talk, "ended", call.campaign, call)
            return []
        self._under_way.remove(call)
        call.ended_at = at
        ended = Event("call_ended", at, call.campaign, call.recipient, call.status)
        return [ended, Event("line_free", at)]

    @staticmethod
    def _same(one: _Call, other: _Call) -> bool:
        return (one.campaign, one.recipient) == (other.campaign, other.recipient)

    def _carry_out(self, answer: Dial | Wake, at: int) -> None:
        if isinstance(answer, Wake):
            if answer.at <= at:
                raise DialsimError(f"Wake({answer.at}) is not after the instant of the step, {at}")
            self._push(answer.at, "woken", "")
            return
        campaign, who = self._campaigns.get(answer.campaign), answer.recipient
        if campaign is None or not 0 <= who < campaign.order.recipients:
            self._breach("C1", at, who, f"{answer} is on no list")
            return
        call = _Call(answer.campaign, who, at, answer.caller_id or self._number(campaign, who))
        if any(self._same(one, call) for one in self._under_way):
            self._breach("R2", at, who, "dialled while the call before goes on")
            return
        if campaign.ended_by:
            self._breach(_ENDS[campaign.ended_by], at, who, f"dialled, but {campaign.ended_by}")
        self._chooses_numbers |= answer.caller_id is not None
        self._calls.append(call)
        self._under_way.append(call)
        self._push(at + campaign.setup, "set_up", answer.campaign, call)
        if len(self._under_way) > self._lines:
            text = f"{len(self._under_way)} calls at once, but there are {self._lines} lines"
            self._breach("Q1", at, who, text)

    def _number(self, campaign: _Campaign, recipient: int) -> str | None:
        """Return a caller ID for a scheduler that leaves the choice open."""
        own = [one for one in self._calls if one.recipient == recipient]
        allowed = campaign.order.caller_ids
        return allowed[len(own) % len(allowed)] if allowed else None

    def _breach(self, rule: str, at: int, recipient: int, text: str) -> None:
        self._breaches.append(Breach(rule, at, recipient, text, self._sketch))

    def _against_rules(self) -> Iterable[Breach]:
        """Yield what the check of tables of calls finds."""
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
                text = finding.text
                yield Breach(finding.rule, call.at, call.recipient, text, self._sketch)

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
        who, number = (late or early)[0]
        then = f"is dialled {stamp(mine[who, number])}" if (who, number) in mine else "never is"
        if late and early:
            yield self._difference("Q3", at, who, f"goes before recipient {early[0][0]}")
        elif late:
            ended = [call.ended_at for call in self._calls if call.recipient == who]
            due = number > 1 and (ended[number - 2] or 0) + self._interval == at
            rule = "R1" if due and (who, number) not in mine else "R2" if due else "Q4"
            yield self._difference(rule, at, who, f"call {number} is to be dialled, but {then}")
        else:
            yield self._difference("Q4", at, who, f"call {number} is dialled too early")

    @property
    def _interval(self) -> int:
        (campaign,) = self._campaigns.values()
        return campaign.order.retry_interval

    def _difference(self, rule: str, at: int, recipient: int, text: str) -> Breach:
        return Breach(rule, at, recipient, text, self._sketch)

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
