"""The exchange: all that a sandbox keeps, and the one way in which it changes."""

from __future__ import annotations

from dialsim.interface.errors import Refused
from dialsim.sandbox.account import Account
from dialsim.sandbox.api_keys import KeyRing, derived_key, regenerated_key
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.commands import Command, CountFaults
from dialsim.sandbox.injected_faults import Encounter, InjectedFault, InjectedFaults
from dialsim.sandbox.journal import Entry, Journal, Kind
from dialsim.sandbox.running import Running
from dialsim.scenario.models import Scenario


class Exchange:
    """A scenario that is served: its simulation, its organizations' accounts, and their keys.

    Whatever changes it is a command, and goes through `carry_out`; only the clock moves by itself.
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

    @property
    def scenario(self) -> Scenario:
        """What is served."""
        return self.simulation.log.world.scenario

    def carry_out(self, command: Command) -> None:
        """Carry out a command, and what it brings about in this instant (T4).

        Raises `Refused` where a rule forbids it; then nothing has changed. What was carried out is
        in the journal, if there is one, when this returns.
        """
        at = self.simulation.at
        if command.concerns_calling:
            self.simulation.carry_out(lambda: command.carry_out(self))
        else:
            command.carry_out(self)
        if self.journal is not None:
            self.journal.keep(Entry(at, Kind.COMMAND, command.model_dump_json().encode()))
            self.journal.commit()

    def face(self, encounter: Encounter) -> InjectedFault | None:
        """Count an encounter with faults, and return the one that strikes, if any does."""
        met, struck = encounter
        if met:
            number = None if struck is None else struck.number
            self.carry_out(CountFaults(met=met, struck=number))
        return struck

    def stepped(self) -> None:
        """The clock has come to where it stands now, and everything up to there has happened."""
        if self.journal is not None:
            self.journal.keep_step(self.simulation.at, self.simulation.log.size())
            self.journal.commit()

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
