"""A call from its release to its end (rules P), and the choices of its dial.

A dial chooses caller ID (P3), voice (P4), and the script of a number (P6). The life of a dialled
call is a SimPy process (P1, P2).
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from simpy.events import Event
from simpy.exceptions import Interrupt

from dialsim.engine import trace
from dialsim.engine.chance import Draws, Purpose
from dialsim.engine.rules import DIAL, ENDINGS, chosen, decayed, dials
from dialsim.interface import CallStatus

if TYPE_CHECKING:
    from dialsim.engine.behaviour import Reaction, Reactions
    from dialsim.engine.campaign import SimulatedCampaign
    from dialsim.engine.trace import CallLog
    from dialsim.engine.world import CampaignBlock, World
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.behaviour import Script, ScriptStep
    from dialsim.scenario.organization import Agent, Organization


NONE = -1


class CallerIds:
    """Caller IDs of a campaign, as indices into `World.numbers`."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = tuple(dict.fromkeys(numbers))  # P3: a repeated number counts once

    def choose(self, draws: Draws, recipient: int, attempt: int, previous: int) -> int:
        """Choose a caller ID at random (P3), but not `previous`, the last one shown to the
        recipient (or `NONE`).
        """
        numbers = self._numbers
        if len(numbers) == 1:
            return numbers[0]
        avoided = numbers.index(previous) if previous in numbers else -1
        draw = draws.column(Purpose.CALLER_ID, attempt)[recipient]
        return numbers[chosen(len(numbers), avoided, draw)]


class NumberUse:
    """Decayed counts of an organization's recent dials by caller ID: n of `byCallerIdUse`.

    Dials decay exponentially with time constant `recovery` (ms).
    """

    __slots__ = ("_recovery", "_uses")

    def __init__(self, recovery: int) -> None:
        self._recovery = recovery
        # Integers in fixed point, because sums of floats depend on the order of dials and
        # withdrawals within one instant (T4).
        self._uses: dict[int, tuple[int, int]] = {}

    def count(self, number: int, now: int) -> float:
        """Return the decayed count of dials of `number` before now."""
        return dials(self._decayed(number, now))

    def dialled(self, number: int, now: int) -> None:
        """Count a dial."""
        self._uses[number] = (self._decayed(number, now) + DIAL, now)

    def withdrawn(self, number: int, dialled_at: int, now: int) -> None:
        """Subtract a dial that was withdrawn before it rang (P5)."""
        left = decayed(DIAL, now - dialled_at, self._recovery)
        self._uses[number] = (self._decayed(number, now) - left, now)

    def _decayed(self, number: int, now: int) -> int:
        uses, at = self._uses.get(number, (0, now))
        return decayed(uses, now - at, self._recovery)


class ScriptedNumbers:
    """Remaining script steps of each scripted number, and the steps taken by current dials.

    A step is used up when the line of its dial has been set up; a withdrawn dial returns its step
    (P5). `waiting` is empty without scripts; `taken` is empty while no line of a scripted call is
    being set up.
    """

    __slots__ = ("taken", "waiting")

    def __init__(self) -> None:
        # Remaining steps by number, each with its index in the script.
        self.waiting: dict[str, list[tuple[int, ScriptStep]]] = {}
        self.taken: dict[Call, tuple[str, int, ScriptStep]] = {}

    def set(self, tel: str, script: Script | None) -> None:
        """Replace the script of a number; None removes it (P6)."""
        self.waiting.pop(tel, None)
        # A dial under way keeps the step of the old script, and must not return it into the new
        # one.
        self.taken = {call: taken for call, taken in self.taken.items() if taken[0] != tel}
        if script:
            self.waiting[tel] = [*enumerate(script)]

    def take(self, call: Call, tel: str) -> ScriptStep | None:
        """Take the next step for a call to a number; None if no step is left."""
        steps = self.waiting.get(tel)
        if steps is None:
            return None
        index, step = steps.pop(0)
        if not steps:
            del self.waiting[tel]
        self.taken[call] = tel, index, step
        return step

    def rings(self, call: Call) -> None:
        """Use up the step of a call whose line has been set up."""
        self.taken.pop(call, None)

    def withdrawn(self, call: Call) -> None:
        """Return the step of a withdrawn dial to its number."""
        if call in self.taken:
            tel, index, step = self.taken.pop(call)
            # Sorted by index: dials to one number may be withdrawn in another order than they were
            # made.
            insort(self.waiting.setdefault(tel, []), (index, step))

    def left(self) -> dict[str, Script]:
        """Return the remaining steps by number."""
        return {tel: tuple(step for _, step in steps) for tel, steps in self.waiting.items()}


def shown_numbers(
    world: World, agent: Agent, request: ScheduleRequest, organization: Organization
) -> tuple[int, ...]:
    """Return the caller IDs of a campaign's dials as indices into `World.numbers`, without
    repeats (P3).
    """
    numbers = request.caller_ids
    if numbers is None:
        sip_number = organization.calling_account().sip_number(request)
        numbers = (sip_number or agent.caller_id or world.scenario.service.shared_number,)
    return tuple(world.number(number) for number in dict.fromkeys(numbers))


def spoken_voices(world: World, agent: Agent, request: ScheduleRequest) -> tuple[int, ...]:
    """Return a campaign's voices as indices into `World.voice_keys`; `NONE` for an unknown voice
    (P4).
    """
    keys = request.tts_voice_keys or (agent.voice_key,)
    return tuple(NONE if key is None else world.voice(key) for key in keys)


class DialChoice:
    """Choices of one campaign's dials; `start` must be called before the first dial.

    `uses` are the organization's dial counts by time constant of recovery. `scripted` are the
    scripts of numbers.
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
        # by recipient: caller ID of the last dial that counts
        self._shown_last = array("i", [NONE]) * block.people.count

    def start(self, request: ScheduleRequest, organization: Organization) -> None:
        """Use the caller IDs (P3) and voices (P4) of a schedule request from now on.

        Attempts of a history count as made under this request (P8).
        """
        self._request = request
        self.use_behaviour(self._behaviour)
        agent = self._block.agent
        self._caller_ids = CallerIds(shown_numbers(self._world, agent, request, organization))
        self._voices = spoken_voices(self._world, agent, request)

    def use_behaviour(self, name: str) -> None:
        """Change the behaviour of the recipients from the next dial on."""
        self._behaviour = name
        if self._request is None:
            return  # reactions to histories depend on the request (P8)
        if name not in self._reactions:
            self._reactions[name] = self._world.reactions(self._block, name, self._request)
        self._reaction = self._reactions[name]

    def dial(self, call: Call, attempt: int, now: int) -> None:
        """QUEUED → INITIATED: choose number and voice, and draw the reaction (P1, P3, P4)."""
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
        # Every time constant counts every dial: `setBehaviour` may switch to another one later.
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
        """Take the next step of the script of the dialled number, if any, and log it with the
        call (P6).
        """
        step = self._scripted.take(call, self._block.people.tel(call.recipient))
        if step is not None:
            self._log.scripted[call.key] = step
        return step

    def counted(self, call: Call) -> None:
        """Register that the line of a dialled call has been set up: a retry avoids its caller ID
        (P3).
        """
        self._shown_last[call.recipient] = call.shown_number
        if self._scripted.taken:
            self._scripted.rings(call)

    def withdrawn(self, call: Call, now: int) -> None:
        """Undo the effects of a dial that was withdrawn before it rang (P5)."""
        for use in self._uses.values():
            use.withdrawn(call.shown_number, call.dialled_at, now)
        self._scripted.withdrawn(call)
        self._log.scripted.pop(call.key, None)

    def shown_before(self, recipient: int, number: int) -> None:
        """Set the caller ID of a recipient's last call by an index of `World.numbers` (P3)."""
        self._shown_last[recipient] = number


# Module constants, because Python 3.11 looks up a member of an Enum as slowly as it calls a
# function.
_QUEUED, _INITIATED, _ANSWERED = CallStatus.QUEUED, CallStatus.INITIATED, CallStatus.COMPLETED


class Call:
    """A released call: QUEUED, then INITIATED (dialling, ringing, talking), then ended.

    An object lives from a release to the call's end or its withdrawal. A call that returns to
    SCHEDULED is released again as a new object with the same number.
    """

    __slots__ = (
        "_life",
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

    def __init__(
        self, campaign: SimulatedCampaign, recipient: int, number: int, due: int, now: int
    ) -> None:
        self.campaign = campaign
        self.recipient = recipient
        self.number = number
        self.due = due
        self.key = trace.call_key(recipient, number)
        self.queued_at = now
        self.status = _QUEUED
        campaign.log.append(now, self.key | trace.RELEASED)

    def dial(self, now: int, reaction: Reaction, shown_number: int) -> None:
        """Go from QUEUED to INITIATED, and start the process of the call (P1)."""
        self.status = _INITIATED
        self.dialled_at = now
        self.shown_number = shown_number
        self.campaign.log.append(now, self.key | trace.DIALLED)
        self._life = self.campaign.clock.process(self._live(reaction))

    def withdraw(self) -> None:
        """Leave the queue, or drop the line that is being set up (C4)."""
        if self.status is _INITIATED:
            self._life.interrupt()
        self.status = CallStatus.SCHEDULED

    def _live(self, reaction: Reaction) -> Generator[Event]:
        """Process of a dialled call: the line is set up, rings, is answered, and ends (P1, P2)."""
        campaign, clock = self.campaign, self.campaign.clock
        log, key = campaign.log, self.key
        try:
            yield clock.timeout(reaction.setup_ms)
        except Interrupt:  # C4: nothing withdraws a call once it rings
            return
        campaign.call_rings(self)
        if reaction.ring_ms:  # P1: a ring time of 0 gets no row
            log.append(clock.now, key | trace.RINGING)
            yield clock.timeout(reaction.ring_ms)
        if reaction.outcome is _ANSWERED:
            log.append(clock.now, key | trace.ANSWERED)
            if reaction.talk_ms:
                yield clock.timeout(reaction.talk_ms)
        self.status = reaction.outcome  # P2
        log.append(clock.now, key | trace.ENDED[self.status])
        campaign.call_ended(self, ENDINGS.index(self.status))
