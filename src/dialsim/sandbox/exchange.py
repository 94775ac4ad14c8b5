"""The exchange: all that a sandbox keeps, and the one way in which it changes."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from pydantic import TypeAdapter

from dialsim.engine.post_log import Post
from dialsim.interface.errors import Refused
from dialsim.sandbox.account import Account
from dialsim.sandbox.api_keys import KeyRing, derived_key, regenerated_key
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.commands import Command, CountFaults
from dialsim.sandbox.courier import Courier
from dialsim.sandbox.injected_faults import Encounter, InjectedFault, InjectedFaults, which_post
from dialsim.sandbox.journal import Entry, Journal, Kind
from dialsim.sandbox.outbox import Outbox, Parcel
from dialsim.sandbox.running import Running
from dialsim.sandbox.virtual_clock import VirtualClock
from dialsim.sandbox.webhook_table import WebhookTable
from dialsim.scenario.models import Scenario

POST: TypeAdapter[Post] = TypeAdapter(Post)
"""Writes and reads what the journal keeps of a POST."""

_PATIENCE = 0.02  # seconds for which others wait at the most, stretches being short


class Exchange:
    """A scenario that is served: its simulation, its organizations' accounts and keys, its clock.

    Whatever changes it is a command, and goes through `carry_out`, or the clock, which goes through
    `work_on` and `move_to`. What that brings about in an instant is done when they return (T4), but
    for the POSTs, which have left then and are under way with the `courier`.
    """

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        """`seed` defaults to the scenario's."""
        self.simulation = Running(scenario, seed)
        world = self.simulation.log.world
        self.accounts = [Account(self.simulation, block) for block in world.organizations]
        self._regenerated = [0] * len(self.accounts)
        self.keys = KeyRing(self.api_key(position) for position in range(len(self.accounts)))
        self.faults = InjectedFaults(world.seed)
        self.journal: Journal | None = None
        self.outbox = Outbox(self.simulation, self.accounts)
        self.webhooks = WebhookTable(self.simulation, self.outbox)
        self.courier = Courier(scenario.service.name, self._came_back)
        self.clock = VirtualClock(self)

    @property
    def scenario(self) -> Scenario:
        """What is served."""
        return self.simulation.log.world.scenario

    def carry_out(self, command: Command) -> None:
        """Carry out a command, and what it brings about in this instant (T4).

        Raises `Refused` where a rule forbids it; then nothing has changed. What was carried out is
        in the journal, if there is one, when this returns.
        """
        at = self.at
        self.repeat(command)
        self._keep(at, Kind.COMMAND, lambda: command.model_dump_json().encode())
        if command.concerns_calling:
            self._send()

    def repeat(self, command: Command) -> None:
        """Carry out a command without keeping it, and without sending what is due: as it was."""
        if command.concerns_calling:
            self.simulation.carry_out(lambda: command.carry_out(self))
        else:
            command.carry_out(self)

    def open(self) -> None:
        """Go on, in an event loop: send what is due, and run the clock if it was running."""
        self._send()
        self.clock.go_on()

    async def close(self) -> None:
        """Stand still, and break off POSTs that are under way."""
        try:
            self.clock.close()
        finally:
            await self.courier.close()

    # -- time -------------------------------------------------------------------------------------

    @property
    def at(self) -> int:
        """The instant (ms) up to which, itself included, everything has happened."""
        return self.simulation.at

    def next_event_at(self) -> int | None:
        """The next instant (ms) at which anything is due; None where nothing is left to happen."""
        self.outbox.look_ahead()
        return self._ahead()

    def happened(self) -> int:
        """A number that grows when a call, a campaign or a limit changes, or a result is due."""
        return self.simulation.log.size() + self.outbox.happened

    def work_on(self, last: int) -> bool:
        """Work on for a moment, not past an instant (ms) and not past where POSTs leave.

        Returns whether that may not have been all there is up to there.
        """
        turn_ends = monotonic() + _PATIENCE
        while (ahead := self._ahead()) is not None and ahead <= last:
            stretch = min(self.outbox.stretch(ahead), last)
            if stretch > ahead == self.simulation.next_instant():
                self.simulation.work_off(stretch)
            else:
                self.simulation.move_to(ahead)
            self._send()
            if self.courier.busy or monotonic() > turn_ends:
                self._stepped()
                return True
        self._stepped()
        return False

    def move_to(self, instant: int) -> None:
        """Move to an instant (ms) before which nothing is due."""
        self.simulation.move_to(instant)
        self._send()
        self._stepped()

    def _ahead(self) -> int | None:
        """The next instant at which the engine has work, or something known of is due."""
        event, due = self.simulation.next_instant(), self.outbox.next_due()
        return event if due is None else due if event is None else min(event, due)

    # -- what is sent and kept --------------------------------------------------------------------

    def face(self, encounter: Encounter, post: Post | None = None) -> InjectedFault | None:
        """Count an encounter with faults, and return the one that strikes, if any does.

        It is that of a POST of the webhook or, without one, of a request.
        """
        met, struck = encounter
        if met:
            number = None if struck is None else struck.number
            which = None if post is None else which_post(post)
            self.carry_out(CountFaults(met=met, struck=number, post=which))
        return struck

    def _send(self) -> None:
        """Have the POSTs leave that are due now (T4 step 9), and meet the faults in that order."""
        parcels = self.outbox.collect()
        for parcel in parcels:
            post = self.outbox.log.row(parcel.row)
            self.face(self.faults.for_post(post), post)
            parcel.fault = self.faults.fate(post)
        self.courier.take(parcels)

    def _came_back(self, parcel: Parcel, response: int) -> None:
        """A POST has come to its end."""
        self.outbox.came_back(parcel, response)
        post = self.outbox.log.row(parcel.row)
        self.faults.ended(post)
        self._keep(post.at, Kind.POSTS, lambda: POST.dump_json(post))

    def _stepped(self) -> None:
        """The clock has come to where it stands now, and others may look."""
        self._keep(self.at, Kind.STEP, lambda: b"%d" % self.simulation.log.size())

    def _keep(self, at: int, kind: Kind, body: Callable[[], bytes]) -> None:
        """Have something in the journal, if there is one, when this returns."""
        if self.journal is not None:
            self.journal.keep(Entry(at, kind, body()))
            self.journal.commit()

    # -- organizations and campaigns --------------------------------------------------------------

    def api_key(self, organization: int) -> str:
        """The key of an organization, by position."""
        world = self.simulation.log.world
        block, times = world.organizations[organization], self._regenerated[organization]
        first = block.settings.api_key or derived_key(world.seed, block.name)
        return regenerated_key(world.seed, block.name, first, times) if times else first

    def regenerate_key(self, organization: int) -> None:
        """Give an organization a new key; the old one is wrong at once (interface, section 5)."""
        self._regenerated[organization] += 1
        self.keys.replace(organization, self.api_key(organization))

    def organization(self, named: str) -> Account:
        """An organization by its id or its name; 404 if there is none."""
        for account in self.accounts:
            if account.identifier.lower() == named.lower():
                return account
        for account in self.accounts:
            if account.block.name == named:
                return account
        raise Refused(404, "ORGANIZATION_NOT_FOUND", ["Organization not found"])

    def campaign(self, identifier: str) -> tuple[Account, CampaignDesk]:
        """The campaign of any organization, also one that was deleted; 404 if there is none."""
        for account in self.accounts:
            for desk in account.desks:
                if desk.identifier.lower() == identifier.lower():
                    return account, desk
        raise Refused(404, "CAMPAIGN_NOT_FOUND", ["Campaign not found"])

    def call(self, identifier: str) -> tuple[CampaignDesk, int]:
        """The campaign and position of a call of any organization; 404 if there is none."""
        for account in self.accounts:
            if (found := account.call(identifier)) is not None:
                return found
        raise Refused(404, "CALL_NOT_FOUND", ["Call not found"])
