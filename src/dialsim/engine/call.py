"""A call from its release to its end (rules P): what its dial chooses, and its states.

The dial chooses caller ID (P3), voice (P4), and the script of a number (P6). The plain functions of
that are rules that both engines use, one of them compiled. A call itself is a small state machine
driven by `At` events (P1, P2).
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Iterable
from math import exp
from typing import TYPE_CHECKING

from dialsim.engine import trace
from dialsim.engine.chance import Draws, Purpose
from dialsim.engine.clock import Action, At, Step
from dialsim.interface.status import CallStatus

if TYPE_CHECKING:
    from dialsim.engine.behaviour import Reaction, Reactions
    from dialsim.engine.campaign import Campaign
    from dialsim.engine.trace import CallLog
    from dialsim.engine.world import CampaignBlock, World
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.organization import Agent, Organization
    from dialsim.scenario.scripts import Script, ScriptStep


NONE = -1
DIAL = 1_000_000_000
"""One dial, in the fixed point in which dials are summed."""


def decayed(uses: int, elapsed: int, recovery: int) -> int:
    """What is left of dials (in units of 1 / `DIAL`) after so many ms."""
    return uses if elapsed == 0 else round(uses * exp(-elapsed / recovery))


def dials(uses: int) -> float:
    """A sum of dials as a number of them: n of `byCallerIdUse`."""
    # Withdrawals are rounded by themselves and may leave a sum a hair below nothing
    return max(0, uses) / float(DIAL)


def chosen(count: int, avoided: int, draw: float) -> int:
    """Which of `count` numbers a dial shows (P3): the place of one, from 0.

    `avoided` is the place of the number that a retry avoids, -1 if there is none.
    """
    if count == 1:
        return 0
    if avoided < 0:
        return int(draw * count)
    place = int(draw * (count - 1))
    return place + 1 if place >= avoided else place


class CallerIds:
    """The numbers a campaign calls from, as indexes into `World.numbers`."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = tuple(dict.fromkeys(numbers))  # P3: a repeat counts once

    def choose(self, draws: Draws, recipient: int, attempt: int, previous: int) -> int:
        """Uniformly at random, but not `previous` (`NONE`: no call was dialled before) (P3)."""
        numbers = self._numbers
        if len(numbers) == 1:
            return numbers[0]
        avoided = numbers.index(previous) if previous in numbers else -1
        draw = draws.column(Purpose.CALLER_ID, attempt)[recipient]
        return numbers[chosen(len(numbers), avoided, draw)]


class NumberUse:
    """How often an organization dialled each of its numbers lately: n of `byCallerIdUse`.

    Dials decay exponentially with time constant `recovery` (ms). They are summed in fixed point,
    so that dials and withdrawals of one instant commute exactly (T4).
    """

    __slots__ = ("_recovery", "_uses")

    def __init__(self, recovery: int) -> None:
        self._recovery = recovery
        self._uses: dict[int, tuple[int, int]] = {}

    def count(self, number: int, now: int) -> float:
        """The decayed count of dials of `number` before this one."""
        return dials(self._decayed(number, now))

    def dialled(self, number: int, now: int) -> None:
        """Count a dial."""
        self._uses[number] = (self._decayed(number, now) + DIAL, now)

    def withdrawn(self, number: int, dialled_at: int, now: int) -> None:
        """Take back a dial that was withdrawn before it rang (P5)."""
        left = decayed(DIAL, now - dialled_at, self._recovery)
        self._uses[number] = (self._decayed(number, now) - left, now)

    def _decayed(self, number: int, now: int) -> int:
        uses, at = self._uses.get(number, (0, now))
        return decayed(uses, now - at, self._recovery)


class ScriptedNumbers:
    """The steps that are left for each scripted number, and those that dials have taken.

    A step is used up when the line of the dial that took it stands; a dial that is withdrawn
    before gives it back (P5). `waiting` is empty where nothing is scripted, `taken` where no line
    of a scripted call is being set up.
    """

    __slots__ = ("taken", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[str, list[tuple[int, ScriptStep]]] = {}  # by number, each with its place
        self.taken: dict[Call, tuple[str, int, ScriptStep]] = {}

    def set(self, tel: str, script: Script | None) -> None:
        """Have the next calls to a number follow a script from its first step; None: no script."""
        self.waiting.pop(tel, None)
        self.taken = {call: taken for call, taken in self.taken.items() if taken[0] != tel}
        if script:
            self.waiting[tel] = [*enumerate(script)]

    def take(self, call: Call, tel: str) -> ScriptStep | None:
        """The step of a call that is dialled to a number; None if none is left."""
        steps = self.waiting.get(tel)
        if steps is None:
            return None
        place, step = steps.pop(0)
        if not steps:
            del self.waiting[tel]
        self.taken[call] = tel, place, step
        return step

    def rings(self, call: Call) -> None:
        """The line of a dialled call stands: its step, if it took one, is used up."""
        self.taken.pop(call, None)

    def withdrawn(self, call: Call) -> None:
        """A dial was withdrawn: its step, if it took one, is the next one again."""
        if call in self.taken:
            tel, place, step = self.taken.pop(call)
            insort(self.waiting.setdefault(tel, []), (place, step))

    def left(self) -> dict[str, Script]:
        """The steps that are left, by number."""
        return {tel: tuple(step for _, step in steps) for tel, steps in self.waiting.items()}


def shown_numbers(
    world: World, agent: Agent, request: ScheduleRequest, organization: Organization
) -> tuple[int, ...]:
    """The numbers that a campaign's dials show, as indexes into `World.numbers`, each once (P3)."""
    numbers = request.caller_ids
    if numbers is None:
        sip_number = organization.calling_account().sip_number(request)
        numbers = (sip_number or agent.caller_id or world.scenario.service.shared_number,)
    return tuple(world.number(number) for number in dict.fromkeys(numbers))


def spoken_voices(world: World, agent: Agent, request: ScheduleRequest) -> tuple[int, ...]:
    """A campaign's voices, as indexes into `World.voice_keys`; `NONE`: unknown (P4)."""
    keys = request.tts_voice_keys or (agent.voice_key,)
    return tuple(NONE if key is None else world.voice(key) for key in keys)


class DialChoice:
    """The dials of one campaign; `start` must come before the first.

    `uses` are the organization's counts of dials by number, one per time constant of recovery;
    `scripted` are the scripts of numbers that may be dialled.
    """

    def __init__(
        self,
        world: World,
        block: CampaignBlock,
        log: CallLog,
        uses: dict[int, NumberUse],
        scripted: ScriptedNumbers,
    ) -> None:
        self._world = world
        self._block = block
        self._log = log
        self._uses = uses
        self._scripted = scripted
        self._behaviour = block.agent.behaviour
        self._request: ScheduleRequest | None = None
        self._reactions: dict[str, Reactions] = {}
        self._shown_last = array("i", [NONE]) * block.people.count  # on the last counted dial

    def start(self, request: ScheduleRequest, organization: Organization) -> None:
        """Take caller IDs and voices from the schedule request, and what it says of people.

        P3, P4, P8.
        """
        self._request = request
        self.use_behaviour(self._behaviour)
        agent = self._block.agent
        self._caller_ids = CallerIds(shown_numbers(self._world, agent, request, organization))
        self._voices = spoken_voices(self._world, agent, request)

    def use_behaviour(self, name: str) -> None:
        """Have people react by the behaviour so named from the next dial on."""
        self._behaviour = name
        if self._request is None:
            return  # what a history says of people depends on it (P8)
        if name not in self._reactions:
            self._reactions[name] = self._world.reactions(self._block, name, self._request)
        self._reaction = self._reactions[name]

    def dial(self, call: Call, attempt: int, now: int) -> None:
        """QUEUED → INITIATED: choose number and voice, and draw what comes of it (P1, P3, P4)."""
        recipient = call.recipient
        draws = self._block.draws
        shown = self._caller_ids.choose(draws, recipient, attempt, self._shown_last[recipient])
        voices = self._voices
        if len(voices) > 1:
            voice = voices[int(draws.column(Purpose.VOICE, attempt)[recipient] * len(voices))]
        else:
            voice = voices[0]
        recovery = self._reaction.recovery
        uses = self._uses[recovery].count(shown, now) if recovery else 0.0
        for use in self._uses.values():
            use.dialled(shown, now)
        self._log.dial_numbers.append(shown)
        self._log.dial_voices.append(voice)
        self._log.dial_behaviours.append(self._reaction.behaviour)
        step = self._step(call) if self._scripted.waiting else None
        if step is None:
            reaction = self._reaction.dial(recipient, attempt, now, uses)
        else:
            reaction = self._reaction.follow(step, recipient, attempt, now)
        call.dial(now, reaction, shown)

    def _step(self, call: Call) -> ScriptStep | None:
        """What the script of the number that is dialled says, kept with the call (P6)."""
        step = self._scripted.take(call, self._block.people.tel(call.recipient))
        if step is not None:
            self._log.scripted[call.key] = step
        return step

    def counted(self, call: Call) -> None:
        """The line of a dialled call stands: its number is the one a retry avoids (P3)."""
        self._shown_last[call.recipient] = call.shown_number
        if self._scripted.taken:
            self._scripted.rings(call)

    def withdrawn(self, call: Call, now: int) -> None:
        """A dial was withdrawn before it rang, and counts for nothing (P5)."""
        for use in self._uses.values():
            use.withdrawn(call.shown_number, call.dialled_at, now)
        self._scripted.withdrawn(call)
        self._log.scripted.pop(call.key, None)

    def shown_before(self, recipient: int, number: str) -> None:
        """A history says which number a person was last called from (P3)."""
        self._shown_last[recipient] = self._world.number(number)


# Named here because Python 3.11 looks up a member of an Enum as slowly as it calls a function.
_QUEUED, _INITIATED, _ANSWERED = CallStatus.QUEUED, CallStatus.INITIATED, CallStatus.COMPLETED
_PROGRESS = Step.PROGRESS


class Call:
    """A call that was released: QUEUED, then INITIATED (dialling, ringing, talking), then ended.

    One object lives from one release to the end or the withdrawal of that release; a call that goes
    back to SCHEDULED is released again as a new object with the same number.
    """

    __slots__ = (
        "_progress",
        "_reaction",
        "campaign",
        "dialled_at",
        "due",
        "key",
        "number",
        "queued_at",
        "recipient",
        "shown_number",
        "status",
    )

    def __init__(self, campaign: Campaign, recipient: int, number: int, due: int, now: int) -> None:
        self.campaign = campaign
        self.recipient = recipient
        self.number = number
        self.due = due
        self.key = trace.call_key(recipient, number)
        self.queued_at = now
        self.status = _QUEUED
        campaign.log.append(now, self.key | trace.RELEASED)

    def dial(self, now: int, reaction: Reaction, shown_number: int) -> None:
        """QUEUED → INITIATED: the line is being set up (P1)."""
        self.status = _INITIATED
        self.dialled_at = now
        self.shown_number = shown_number
        self._reaction = reaction
        self.campaign.log.append(now, self.key | trace.DIALLED)
        self._progress_at(now + reaction.setup_ms, self._set_up)

    def withdraw(self) -> None:
        """Leave the queue or drop the line being set up: whatever was to follow is off (C4)."""
        if self.status is _INITIATED:
            self._progress.cancelled = True
        self.status = CallStatus.SCHEDULED

    def _progress_at(self, instant: int, action: Action) -> None:
        self._progress = At(self.campaign.clock, instant, _PROGRESS, action)

    def _set_up(self, event: At) -> None:
        self.campaign.call_rings(self)
        ring = self._reaction.ring_ms
        if ring:  # P1: no row where it would be over at once
            self.campaign.log.append(event.instant, self.key | trace.RINGING)
            self._progress_at(event.instant + ring, self._rung)
        else:
            self._rung(event)

    def _rung(self, event: At) -> None:
        if self._reaction.outcome is not _ANSWERED:
            self._end(event)
            return
        self.campaign.log.append(event.instant, self.key | trace.ANSWERED)
        if self._reaction.talk_ms:
            self._progress_at(event.instant + self._reaction.talk_ms, self._end)
        else:
            self._end(event)

    def _end(self, event: At) -> None:
        outcome = self._reaction.outcome  # P2
        self.status = outcome
        self.campaign.log.append(event.instant, self.key | trace.ENDED[outcome])
        self.campaign.call_ended(self, reached=outcome is _ANSWERED)
