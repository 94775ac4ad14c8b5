"""Live simulation: callers advance its clock, give commands and add campaigns (C11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from dialsim.engine.call import ScriptedNumbers
from dialsim.engine.campaign import SimulatedCampaign
from dialsim.engine.clock import At, Clock, Instant, Move, Step, Until
from dialsim.engine.dialler import Dialler
from dialsim.engine.timeline import lay_out, lay_out_request
from dialsim.engine.trace import Trace
from dialsim.engine.world import World
from dialsim.errors import DialsimError, Refused
from dialsim.interface import CampaignStatus
from dialsim.interface.arguments import checked
from dialsim.interface.instants import HOUR, LAST_INSTANT, format_instant, utc
from dialsim.interface.schedule import read_schedule

if TYPE_CHECKING:
    from dialsim.scenario.additions import Surroundings
    from dialsim.scenario.campaign import Campaign
    from dialsim.scenario.scenario import Scenario


def add_campaign(
    dialler: Dialler,
    now: int,
    campaign: Campaign | Mapping[str, object],
    csv: bytes | str | None,
    folder: str | PathLike[str] | None,
) -> SimulatedCampaign:
    """Add a campaign to a dialler; arguments and errors as in `Simulation.add_campaign`.

    `campaign` may also be a campaign that was read earlier. Without `scheduledAt` its request is
    made `now` (ms).
    """
    world, position = dialler.trace.world, dialler.block.position
    model = _checked(campaign, world.surroundings(position, now), csv, folder)
    block = world.add_campaign(position, model, now)
    added = dialler.add(block)
    if block.schedule is None:
        return added
    if block.scheduled_at is not None and block.scheduled_at > now:
        lay_out_request(dialler.clock, dialler, added, dialler.trace)
        return added
    try:
        added.schedule(block.schedule)
    except Refused:
        # A refused request takes the campaign with it: the client sees one command, which failed.
        dialler.remove_last()
        raise
    return added


def _checked(
    campaign: Campaign | Mapping[str, object],
    around: Surroundings,
    csv: bytes | str | None,
    folder: str | PathLike[str] | None,
) -> Campaign:
    from dialsim.scenario.additions import check_campaign, read_campaign
    from dialsim.scenario.campaign import Campaign

    if isinstance(campaign, Campaign):
        check_campaign(campaign, around)
        return campaign
    # A lone surrogate must not fail here: `read_campaign` reports it with its line, as in bytes.
    content = csv.encode("utf-8", "surrogatepass") if isinstance(csv, str) else csv
    return read_campaign(campaign, around, content, None if folder is None else Path(folder))


_T = TypeVar("_T")


@checked(DialsimError)
class Simulation:
    """Live engine: a scenario on a clock that the caller advances.

    A new simulation stands at clock.start with all work of that instant done. A command such as
    `pause` acts after the work of the current instant; its own effects in that instant are complete
    when it returns (T4). Commands name a campaign `January`, or `Acme/January` if the name is
    ambiguous. They raise `Refused` with the interface's text if a rule forbids them.

    >>> simulation = dialsim.Simulation(scenario, seed=7)
    >>> now = simulation.advance(minutes=30)
    >>> simulation.pause("January")
    >>> str(simulation.status("January"))
    'PAUSED'
    """

    def __init__(self, scenario: Scenario, seed: int | None = None, replication: int = 0) -> None:
        """`seed` defaults to the scenario's."""
        self._begin(World(scenario, seed, replication))

    @classmethod
    def of_world(cls, world: World) -> Self:
        """Create a simulation of a world in which nothing has happened yet."""
        # Without __init__, which creates another world.
        simulation = cls.__new__(cls)
        simulation._begin(world)
        return simulation

    def _begin(self, world: World) -> None:
        self._clock = Clock(world.scenario.clock.start)
        self._trace = Trace(world=world, calls=[[] for _ in world.organizations])
        self._scripted = ScriptedNumbers()
        self._diallers = [
            Dialler(self._clock, block, self._trace, self._scripted)
            for block in world.organizations
        ]
        lay_out(self._clock, self._diallers, self._trace)
        # Requests at clock.start are part of the beginning: the first command comes after them.
        self._clock.work_off(self._clock.now)

    # -- reading ----------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """Current instant; everything up to and including it has happened."""
        return utc(self._clock.now)

    @property
    def next_event_at(self) -> datetime | None:
        """Next instant at which the engine has work to do; None when it is idle."""
        instant = self._clock.next_instant()
        return None if instant is None else utc(instant)

    @property
    def trace(self) -> Trace:
        """Trace of everything so far; grows as the simulation goes on."""
        trace, end = self._trace, self._trace.world.scenario.clock.end
        ahead = self._clock.next_instant()
        trace.end = self._clock.now
        trace.idle = ahead is None
        trace.cut = ahead is not None and end is not None and ahead > end
        trace.stalled = frozenset(
            (campaign.block.organization, campaign.block.position)
            for dialler in self._diallers
            for campaign in dialler.campaigns
            if ahead is None
            and not campaign.status.final
            and campaign.status is not CampaignStatus.DRAFT
        )  # T5
        return trace

    def status(self, campaign: str) -> CampaignStatus:
        """Return the current status of a campaign."""
        return self._campaign(campaign).status

    @property
    def scripts(self) -> dict[str, str]:
        """Remaining steps of the scripts set by `script`, by number, in the same notation."""
        from dialsim.scenario.behaviour import format_script

        return {tel: format_script(steps) for tel, steps in self._scripted.left().items()}

    # -- the clock --------------------------------------------------------------------------------

    def advance(
        self,
        *,
        to: Instant | None = None,
        until: Until | None = None,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> datetime:
        """Advance the clock and run everything up to there; returns the new `now`.

        Give one target: `to`, an instant (inclusive; ISO 8601 text or an aware datetime); a span
        (`hours=2, minutes=30`); `until="nextEvent"`, the next instant at which a call, a campaign
        or a limit changes; or `until="idle"`, when nothing is left to happen. The clock does not
        pass clock.end. Raises `DialsimError` for an instant in the past or after clock.end.
        """
        move = Move.read(
            to, until, days=days, hours=hours, minutes=minutes, seconds=seconds,
            milliseconds=milliseconds,
        )  # fmt: skip
        if move.until == "idle":
            self._clock.work_off(self._trace.world.scenario.clock.end, idle=True)
        elif move.until == "nextEvent":
            self._work_off_next_change()
        else:
            self._advance_to(self._target(move))
        return self.now

    def run(self, progress: Callable[[int, int], object] | None = None) -> Trace:
        """Run until clock.end, else until nothing is left to happen (T5), and return the trace.

        `progress(done, people)` is called occasionally with the number of settled recipients and of
        all recipients.
        """
        end = self._trace.world.scenario.clock.end
        people = sum(c.block.people.count for d in self._diallers for c in d.campaigns)
        while (ahead := self._clock.next_instant()) is not None and (end is None or ahead <= end):
            # In steps of an hour, so that progress can be reported.
            self._clock.work_off(ahead + HOUR if end is None else min(ahead + HOUR, end), idle=True)
            if progress is not None:
                progress(sum(c.people_done for d in self._diallers for c in d.campaigns), people)
        if end is not None:
            self._advance_to(end)
        return self.trace

    # -- commands ---------------------------------------------------------------------------------

    def add_campaign(
        self,
        campaign: Mapping[str, object],
        organization: str | None = None,
        *,
        csv: bytes | str | None = None,
        folder: str | PathLike[str] | None = None,
    ) -> str:
        """Add a campaign behind those of an organization; returns its id (C11).

        `campaign` is a block as in a scenario file. `csv`, the content of a CSV file, may replace
        its `recipients`. File names are only read with `folder`, to which they are relative. The
        `schedule` request is made at once, or at `scheduledAt`. Raises ScenarioError for an invalid
        campaign, and `Refused` if the request is refused at once; nothing is added then.
        """
        dialler = self._dialler(organization)
        added = self._carry_out(
            lambda: add_campaign(dialler, self._clock.now, campaign, csv, folder)
        )
        return added.block.id

    def schedule(self, campaign: str, body: object) -> None:
        """Start a campaign with the body of a schedule request, checked like the interface does
        (C9).

        Raises `Refused` with every failure of the first check that fails, and DialsimError for a
        Buddhist year, which the interface would accept.
        """
        from dialsim.scenario.checks import era_faults

        for name, fault in era_faults(body):
            raise DialsimError(f"schedule: {name} {fault}")
        self._do(lambda target: target.schedule(read_schedule(body)), campaign)

    def pause(self, campaign: str) -> None:
        """Pause a campaign (C4)."""
        self._do(SimulatedCampaign.pause, campaign)

    def resume(self, campaign: str) -> None:
        """Resume a campaign (C5)."""
        self._do(SimulatedCampaign.resume, campaign)

    def cancel(self, campaign: str) -> None:
        """Cancel a campaign (C6)."""
        self._do(SimulatedCampaign.cancel, campaign)

    def delete(self, campaign: str) -> None:
        """Delete a campaign (C8)."""
        self._do(SimulatedCampaign.delete, campaign)

    def set_concurrency(self, value: int, organization: str | None = None) -> None:
        """Set maxConcurrentCalls of an organization, which may be omitted if there is only one."""
        if value < 0:
            raise DialsimError(f"value must be 0 or more, not {value}")
        dialler = self._dialler(organization)
        self._carry_out(lambda: dialler.set_limit(value))

    def set_calling_allowed(self, allowed: bool, organization: str | None = None) -> None:
        """Allow or forbid an organization to start campaigns (403 at the schedule request)."""
        dialler = self._dialler(organization)
        self._carry_out(lambda: dialler.set_calling_allowed(allowed))

    def set_webhook_url(self, url: str | None, organization: str | None = None) -> None:
        """Change an organization's webhook URL from the next result on (W6)."""
        dialler = self._dialler(organization)
        self._carry_out(lambda: dialler.set_webhook_url(url))

    def reanalyze(self, campaign: str, share: float = 1.0) -> None:
        """Analyze a share of a campaign's delivered calls again (A5)."""
        if not 0 <= share <= 1:
            raise DialsimError(f"reanalyze: share {share!r} is not from 0 to 1")
        self._do(lambda target: target.reanalyze(share), campaign)

    def set_behaviour(self, agent: str, behaviour: str, organization: str | None = None) -> None:
        """Change the behaviour of the people whom an agent calls to another one of the scenario."""
        known = self._trace.world.scenario.behaviours
        if behaviour not in known:
            raise DialsimError(f"no behaviour {behaviour!r}; there are: {', '.join(known)}")
        dialler = self._dialler(organization)
        agents = [listed.name for listed in dialler.block.settings.agents]
        if agent not in agents:
            raise DialsimError(f"no agent {agent!r}; there are: {', '.join(agents)}")
        self._carry_out(lambda: dialler.use_behaviour(agent, behaviour))

    def script(self, tel: str, script: str | None) -> None:
        """Set a script for the next calls to a number, in any campaign, one step per call (P6).

        `script` is written as in a scenario file (`busy 3s; answered 5s 90s silent`). It replaces
        the remaining steps of an earlier script; None removes them. Raises DialsimError for an
        invalid phone number or script.
        """
        from dialsim.scenario.behaviour import read_number_script

        steps = read_number_script(tel, script)
        self._carry_out(lambda: self._scripted.set(tel, steps))

    # -- the rest ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        statuses = Counter(
            campaign.status for dialler in self._diallers for campaign in dialler.campaigns
        )
        campaigns = ", ".join(f"{count} {status}" for status, count in statuses.items())
        return (
            f"<dialsim.Simulation {self._trace.world.scenario.name!r} at "
            f"{format_instant(self._clock.now)}, campaigns: {campaigns or 'none'}>"
        )

    def _do(self, command: Callable[[SimulatedCampaign], None], campaign: str) -> None:
        target = self._campaign(campaign)
        self._carry_out(lambda: command(target))

    def _carry_out(self, command: Callable[[], _T]) -> _T:
        """Run a command from outside and its effects in this instant (T4).

        A refused one leaves no trace.
        """
        self._trace.turns.append(self._clock.now)
        try:
            outcome = command()
        except DialsimError:
            # A refused command has no effect, so that it must not take a place in the sequence of
            # turns.
            self._trace.turns.pop()
            raise
        self._clock.work_off(self._clock.now)
        return outcome

    def _dialler(self, organization: str | None) -> Dialler:
        if organization is None and len(self._diallers) == 1:
            return self._diallers[0]
        names = [dialler.block.name for dialler in self._diallers]
        if organization is None:
            raise DialsimError(f"name the organization: {', '.join(names)}")
        if organization not in names:
            raise DialsimError(f"no organization {organization!r}; there are: {', '.join(names)}")
        return self._diallers[names.index(organization)]

    def _campaign(self, name: str) -> SimulatedCampaign:
        campaigns = {
            f"{dialler.block.name}/{campaign.block.name}": campaign
            for dialler in self._diallers
            for campaign in dialler.campaigns
        }
        if name in campaigns:
            return campaigns[name]
        found = [full for full, campaign in campaigns.items() if campaign.block.name == name]
        if len(found) == 1:
            return campaigns[found[0]]
        if found:
            raise DialsimError(f"more than one campaign {name!r}; say which: {', '.join(found)}")
        raise DialsimError(f"no campaign {name!r}; there are: {', '.join(campaigns)}")

    def _target(self, move: Move) -> int:
        now, end = self._clock.now, self._trace.world.scenario.clock.end
        target = now + move.by if move.to is None else move.to
        if not 0 <= target <= LAST_INSTANT:
            raise DialsimError("advance: the clock stays within the years 1970 to 9999")
        if target < now:
            raise DialsimError(
                f"advance: {format_instant(target)} is before now, {format_instant(now)}"
            )
        if end is not None and target > end:
            raise DialsimError(
                f"advance: {format_instant(target)} is after clock.end, {format_instant(end)}"
            )
        return target

    def _advance_to(self, instant: int) -> None:
        # An event without effect moves the clock to the instant itself; otherwise the clock would
        # stand at the last event before it.
        At(self._clock, instant, Step.REST, lambda _event: None)
        self._clock.work_off(instant)

    def _work_off_next_change(self) -> None:
        end = self._trace.world.scenario.clock.end
        before = self._trace.size()
        while (ahead := self._clock.next_instant()) is not None and (end is None or ahead <= end):
            self._clock.work_off(ahead)
            if self._trace.size() != before:
                return
