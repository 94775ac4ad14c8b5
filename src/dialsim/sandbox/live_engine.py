"""The live engine: a simulation addressed by position and moved instant by instant."""

from __future__ import annotations

from collections.abc import Callable

from dialsim.engine.campaign import Campaign
from dialsim.engine.dialler import Dialler
from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.engine.world import OrganizationBlock
from dialsim.scenario.additions import Surroundings
from dialsim.scenario.organization import Organization
from dialsim.scenario.scripts import Script


class LiveEngine(Simulation):
    """The live engine as the sandbox drives it; instants are ms since the Unix epoch, UTC."""

    @property
    def at(self) -> int:
        """The instant up to which, itself included, everything has happened."""
        return self._clock.now

    @property
    def log(self) -> Trace:
        """What has happened so far, without looking ahead at whether anything is left to happen."""
        return self._trace

    @property
    def end(self) -> int | None:
        """The last instant the clock may reach; None where the scenario has no clock.end."""
        return self._trace.world.scenario.clock.end

    def next_instant(self) -> int | None:
        """The next instant at which the engine has work to do; None when it is idle."""
        return self._clock.next_instant()

    def move_to(self, instant: int) -> None:
        """Move the clock to an instant that is not in the past, and work it off."""
        self._advance_to(instant)

    def work_off(self, instant: int) -> None:
        """Carry out all events up to an instant; the clock stays at the last of them."""
        self._clock.work_off(instant)

    def surroundings(self, organization: int) -> Surroundings:
        """What a campaign must fit that is added now to an organization, by position."""
        return self._trace.world.surroundings(organization, self.at)

    def dialler(self, organization: int) -> Dialler:
        """The dialler of an organization, by position."""
        return self._diallers[organization]

    def campaign(self, organization: int, campaign: int) -> Campaign:
        """A campaign, by the positions of its organization and its own."""
        return self._diallers[organization].campaigns[campaign]

    def give_script(self, tel: str, script: Script | None) -> None:
        """Have the next calls to a number follow a script; None: they follow none (P6)."""
        self._scripted.set(tel, script)

    def add_organization(self, settings: Organization) -> OrganizationBlock:
        """Add an organization, without campaigns, behind the others."""
        block = self._trace.world.add_organization(settings)
        self._trace.calls.append([])
        self._diallers.append(Dialler(self._clock, block, self._trace, self._scripted))
        return block

    def carry_out(self, command: Callable[[], None]) -> None:
        """Carry out a command from outside and what it brings about in this instant (T4)."""
        self._carry_out(command)
