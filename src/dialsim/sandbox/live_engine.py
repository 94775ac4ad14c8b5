"""The live engine: a simulation moved instant by instant, and the rest of its run as a scenario."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from math import isfinite

import numpy as np

from dialsim.engine.campaign import SimulatedCampaign
from dialsim.engine.dialler import Dialler
from dialsim.engine.log_reader import (
    CALL_STATUSES,
    HAS_END,
    NO_CALL,
    NOT_HAPPENED,
    TO_STATUS,
    Calls,
)
from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import CampaignTrace, Trace
from dialsim.engine.world import CampaignBlock, OrganizationBlock
from dialsim.interface import CampaignStatus
from dialsim.scenario.additions import Surroundings
from dialsim.scenario.behaviour import Script, format_script
from dialsim.scenario.campaign import Campaign, Past, PeopleTable, RecipientsFile
from dialsim.scenario.organization import Organization, TimelineAction
from dialsim.scenario.people import People
from dialsim.scenario.scenario import Scenario


class LiveEngine(Simulation):
    """The live engine as the sandbox drives it; instants are ms since the Unix epoch, UTC."""

    @property
    def at(self) -> int:
        """Current instant; all events up to and including it have happened."""
        return self._clock.now

    @property
    def log(self) -> Trace:
        """Trace so far. Reading the trace does not check for remaining events."""
        return self._trace

    @property
    def end(self) -> int | None:
        """The last instant the clock may reach; None where the scenario has no clock.end."""
        return self._trace.world.scenario.clock.end

    def next_instant(self) -> int | None:
        """Return the next instant with work for the engine; None when the engine is idle."""
        return self._clock.next_instant()

    def move_to(self, instant: int) -> None:
        """Move the clock to a present or future instant, and process its events."""
        self._advance_to(instant)

    def work_off(self, instant: int) -> None:
        """Carry out all events up to an instant; the clock stays at the last of them."""
        self._clock.work_off(instant)

    def surroundings(self, organization: int) -> Surroundings:
        """Return the constraints on a campaign added now to an organization, given its index."""
        return self._trace.world.surroundings(organization, self.at)

    def dialler(self, organization: int) -> Dialler:
        """Return the dialler of an organization, given its index."""
        return self._diallers[organization]

    def campaign(self, organization: int, campaign: int) -> SimulatedCampaign:
        """Return a campaign, given the index of its organization and its index within it."""
        return self._diallers[organization].campaigns[campaign]

    def give_script(self, tel: str, script: Script | None) -> None:
        """Assign a script to the next calls of a number; None removes the script (P6)."""
        self._scripted.set(tel, script)

    def add_organization(self, settings: Organization) -> OrganizationBlock:
        """Add an organization without campaigns after the others."""
        block = self._trace.world.add_organization(settings)
        self._trace.calls.append([])
        self._diallers.append(Dialler(self._clock, block, self._trace, self._scripted))
        return block

    def carry_out(self, command: Callable[[], None]) -> None:
        """Execute an external command and its consequences within this instant (T4)."""
        self._carry_out(command)


def remaining_run(simulation: LiveEngine) -> Callable[[], Scenario]:
    """Return a function that builds the rest of a run as a scenario that begins now.

    A forecast replicates it. The histories of the people contain the past (P8), so the compiled
    engine can run the rest without the sandbox. Another thread may call the function, even after
    the run has continued.

    Campaigns that are over, and drafts that nothing will start, are left out. Calls under way are
    made again, and scripts of numbers (P6) are forgotten. A paused campaign stays paused until the
    scenario's timeline resumes it.
    """
    trace = simulation.trace.snapshot()
    indexes = range(len(trace.world.organizations))
    allowed = [simulation.dialler(index).calling_allowed for index in indexes]

    def build() -> Scenario:
        scenario = trace.world.scenario
        changes = {
            "clock": scenario.clock.model_copy(update={"start": trace.end}),
            "organizations": tuple(_organization(trace, *one) for one in enumerate(allowed)),
        }
        return scenario.model_copy(update=changes)

    return build


def _organization(trace: Trace, position: int, allowed: bool) -> Organization:
    """Return an organization with its current settings, and its campaigns that go on."""
    now, settings = trace.end, trace.world.organizations[position].settings
    campaigns: list[Campaign] = []
    actions: list[TimelineAction] = []
    to_start = {action.campaign for action in settings.timeline if action.action == "schedule"}
    for block in trace.world.organizations[position].campaigns:
        part = trace.campaign(position, block.position)
        status = part.changes[-1].to_status if part.changes else CampaignStatus.DRAFT
        waits = block.name in to_start or (block.scheduled_at or now) > now
        is_left = status is CampaignStatus.DRAFT and not waits
        if status.final or part.deleted is not None or is_left:
            continue
        campaigns.append(_campaign(part, block, now))
        if status is CampaignStatus.PAUSED:
            actions.append(
                TimelineAction.model_construct(None, at=now, action="pause", campaign=block.name)
            )
    # Behind the requests of this instant, which stand for earlier requests that were allowed.
    if not allowed:
        actions.append(
            TimelineAction.model_construct(None, at=now, action="setCallingAllowed", value=False)
        )
    names = {None, *(campaign.name for campaign in campaigns)}
    ahead, planned = (
        [action for action in listed if action.at > now and action.campaign in names]
        for listed in (settings.timeline, settings.compiled_actions)
    )
    changes = {
        "max_concurrent_calls": trace.limits_of(position)[-1].limit,
        # If calling is forbidden now, the action above says so after the schedule requests.
        "calling_allowed": True,
        "agents": tuple(
            agent.model_copy(update={"behaviour": _behaviour(settings, agent.name, now)})
            for agent in settings.agents
        ),
        "campaigns": (*campaigns,),
        "timeline": (*actions, *ahead),
    }
    return settings.model_copy(update=changes).with_compiled_actions(planned)


def _behaviour(settings: Organization, agent: str, now: int) -> str:
    """Return the current behaviour of the people that an agent calls."""
    changes = [
        action.behaviour
        for action in settings.timeline
        if action.action == "setBehaviour" and action.agent == agent and action.at <= now
    ]
    own = next(one.behaviour for one in settings.agents if one.name == agent)
    return changes[-1] or own if changes else own


def _campaign(part: CampaignTrace, block: CampaignBlock, now: int) -> Campaign:
    """Return a campaign that is not over, with the histories of its people."""
    begun, share = part.scheduled, block.share
    schedule, scheduled_at = block.schedule, block.scheduled_at
    # Duplicates were removed at the schedule request, and first calls stay due since then (C1).
    if begun is not None:
        began = {"start_date_time": begun.start_at, "remove_duplicates": False}
        schedule = begun.request.model_copy(update=began)
        scheduled_at = now
    # The request of the file was made and refused: it must not be made again.
    elif scheduled_at is not None and scheduled_at <= now:
        schedule = scheduled_at = None
    table = _people(part, block.people)
    recipients = RecipientsFile.model_construct(None, file=block.id).holding(table)
    return Campaign.model_construct(
        None,
        name=block.name,
        id=block.id,
        agent=block.agent.name,
        recipients=recipients,
        schedule=schedule,
        scheduled_at=scheduled_at,
        priority=int(share.priority) if isfinite(share.priority) else None,
        weight=share.weight,
        at_most=int(share.at_most) if isfinite(share.at_most) else None,
        reserved=share.reserved,
        value=None if block.value is None else dict(block.value),
    )


def _people(part: CampaignTrace, people: People) -> PeopleTable:
    """Return the people on a campaign's list, each with their history until now."""
    removed = set(() if part.scheduled is None else part.scheduled.removed)
    who = [recipient for recipient in range(people.count) if recipient not in removed]
    history = _histories(part, people)
    tels = people.tels()
    table = PeopleTable(
        tels=[tels[recipient] for recipient in who],
        names=[None] * len(who),
        ids=[None] * len(who),
        history={n: history[recipient] for n, recipient in enumerate(who) if recipient in history},
    )
    scripts = [*map(format_script, people.scripts)]
    for recipient in who:
        code = -1 if people.segment is None else int(people.segment[recipient])
        table.segments.append(None if code < 0 else people.segments[code])
        code = -1 if people.script is None else int(people.script[recipient])
        table.scripts.append(None if code < 0 else scripts[code])
    # Formulas of the value need the parameters. Without formulas they are left out, to save memory.
    if part.block.worth:
        table.params = {
            name: [*column] * len(who) if len(column) == 1 else [column[n] for n in who]
            for name, column in people.params.items()
        }
    content = repr((part.block.id, table.tels, [*table.history.items()]))
    table.digest = sha256(content.encode()).digest()
    return table


def _histories(part: CampaignTrace, people: People) -> dict[int, Past]:
    """Return the history of each recipient called so far."""
    calls = Calls(part)
    histories = dict(people.history)
    numbers, has_end = part.trace.world.numbers, HAS_END[calls.last_kind]
    last = calls.newest.copy()
    open_ended = np.flatnonzero(last != NO_CALL)
    # The newest call of a recipient may be under way: then the call before it counts.
    while len(open_ended := open_ended[~has_end[last[open_ended]]]):
        last[open_ended] = calls.previous[last[open_ended]]
        open_ended = open_ended[last[open_ended] != NO_CALL]
    attempts = calls.attempts
    for recipient in np.flatnonzero(last != NO_CALL).tolist():
        call = int(last[recipient])
        number, ended_at = int(calls.number[call]), int(calls.ended_at[call])
        assert ended_at != NOT_HAPPENED
        histories[recipient] = Past(
            call_attempt=int(attempts[recipient]),
            latest_call_status=CALL_STATUSES[TO_STATUS[calls.last_kind[call]]],
            last_ended_at=ended_at,
            last_caller_id=None if number < 0 else numbers[number],
        )
    return histories
