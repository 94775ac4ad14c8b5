"""What a campaign's dials show, say and meet: caller ID, voice and people's reaction (P3, P4)."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from dialsim.engine.caller_ids import NONE, CallerIds
from dialsim.engine.chance import Purpose

if TYPE_CHECKING:
    from dialsim.engine.behaviour import Reactions
    from dialsim.engine.call import Call
    from dialsim.engine.caller_ids import NumberUse
    from dialsim.engine.scripted_numbers import ScriptedNumbers
    from dialsim.engine.trace import CallLog
    from dialsim.engine.world import CampaignBlock, World
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.organization import Organization
    from dialsim.scenario.scripts import Step


class Outgoing:
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
        world, agent = self._world, self._block.agent
        numbers = request.caller_ids
        if numbers is None:
            sip_number = organization.calling_account().sip_number(request)
            numbers = (sip_number or agent.caller_id or world.scenario.service.shared_number,)
        self._caller_ids = CallerIds(world.number(number) for number in numbers)
        keys = request.tts_voice_keys or (agent.voice_key,)
        self._voices = tuple(NONE if key is None else world.voice(key) for key in keys)

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
            reaction = self._reaction.follow(step, recipient, attempt)
        call.dial(now, reaction, shown)

    def _step(self, call: Call) -> Step | None:
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
