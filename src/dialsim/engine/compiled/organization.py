"""One organization in the compiled engine: commands, and data that the compiled rules request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dialsim.engine import trace as kinds
from dialsim.engine.behaviour import ColumnKind
from dialsim.engine.call import NONE, shown_numbers, spoken_voices
from dialsim.engine.campaign import (
    all_duplicates,
    already_started,
    calling_not_allowed,
    campaign_not_found,
    wrong_state,
)
from dialsim.engine.compiled.instants import carry_out, work_off
from dialsim.engine.compiled.queue import RANK_SHIFT
from dialsim.engine.compiled.state import (
    AGENDA,
    CAMPAIGN,
    CANCEL,
    CAUSES,
    CHANGE,
    DELETE,
    DIAL,
    DIALLER,
    DONE,
    DRAWS_ARE_WANTED,
    GO_ON,
    LINE,
    LOG_IS_FULL,
    NO_TIMER,
    PAUSE,
    PERSON,
    QUEUED_CALL,
    REACTION,
    RESUME,
    SCHEDULE,
    SCRIPT,
    SHARING,
    STATUSES,
    STEP,
    UNLIMITED,
    State,
    longer,
    records,
)
from dialsim.engine.rules import ENDINGS, Windows, dial_gap, order_classes
from dialsim.engine.trace import (
    CallLog,
    CampaignChange,
    Dials,
    LimitChange,
    Reanalysis,
    ScheduledCampaign,
    Trace,
    UrlChange,
    call_key,
    call_keys,
    kinds_of,
    recipients_of,
)
from dialsim.engine.world import Continuation
from dialsim.interface import CampaignStatus
from dialsim.interface.schedule import ScheduleRequest, check_conditions, check_duplicate_alert

if TYPE_CHECKING:
    from dialsim.engine.world import OrganizationBlock
    from dialsim.scenario.behaviour import ScriptStep
    from dialsim.scenario.people import People

_SCRIPT_ROWS: WeakKeyDictionary[People, tuple[NDArray[np.int64], NDArray[np.int64]]]
_SCRIPT_ROWS = WeakKeyDictionary()
_CHANGES_AT_ONCE = 4  # upper limit of the changes of a campaign between two commands
_OF_CHANCES = ("week_odds", "attempt_odds", "slots", "entry_of", "entries", "values")
_STOPS = 16  # stops for draws, some ms each, between two reports of progress

S = CampaignStatus


class CompiledOrganization:
    """Calls and campaigns of one organization; the compiled rules work on `state`.

    The commands are those of the file's timeline. They raise `Refused` if the rules forbid them. A
    refused command changes nothing.
    """

    def __init__(self, trace: Trace, block: OrganizationBlock) -> None:
        self.block = block
        self._trace = trace
        self._world = trace.world
        self._chances = trace.world.chances
        self._blocks = block.campaigns
        self._deleted: set[int] = set()
        self._calling_allowed = block.settings.calling_allowed
        self._behaviours = [campaign.agent.behaviour for campaign in self._blocks]
        self.state = self._first_state()
        self._set_up_campaigns()
        self.set_limit(block.settings.max_concurrent_calls)
        webhook = block.settings.webhook
        self.set_webhook_url(None if webhook is None else webhook.url)

    # -- time -------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """Last completed instant."""
        return int(self.state.dialler.now)

    @property
    def ahead(self) -> int:
        """Next instant at which something may happen; `NO_TIMER` if none is left."""
        return int(self.state.dialler.ahead)

    @property
    def people_done(self) -> int:
        """Number of settled recipients."""
        return int(self.state.campaigns["settled"].sum())

    def advance(self, until: int, look_up: Callable[[], object]) -> None:
        """Process everything up to and including an instant.

        `look_up` is called occasionally, to report progress.
        """
        # Compiled code can neither grow arrays nor make draws. It stops where it lacks room or
        # draws, and the next call of `work_off` continues.
        for stops in count(1):
            self._ensure_changes()
            stopped = work_off(self.state, until)
            if stopped == DONE:
                return
            if stopped == LOG_IS_FULL:
                self._ensure_rows(len(self.state.log_at) + 1)
            elif stopped == DRAWS_ARE_WANTED:
                self._draw()
            # A run stops very often for draws, and `look_up` lets the caller cancel it. `look_up`
            # takes time for every organization, so it is not called at each stop.
            if stopped == GO_ON or stops % _STOPS == 0:
                look_up()

    # -- commands ---------------------------------------------------------------------------------

    def at(self, instant: int) -> None:
        """Set the instant of the next command; everything up to it must be processed."""
        self.state.dialler.now = instant

    def schedule(self, c: int, request: ScheduleRequest) -> None:
        """DRAFT → SCHEDULED, one call per recipient (C1)."""
        self._require_schedulable(c, request)
        campaign, now = self.state.campaigns[c], self.now
        removed = self._duplicates(c, request)
        # Checks are over: everything above may refuse the request, and must not have changed the
        # state.
        campaign.start_at = max(now, request.start_date_time)
        campaign.end_at = NO_TIMER if request.end_date_time is None else request.end_date_time
        campaign.max_attempts = request.max_attempts
        campaign.retry_interval = request.retry_interval
        self._set_windows(campaign, request)
        self._set_numbers_and_voices(c, request)
        self._trace.requests[self._position(c)] = ScheduledCampaign(
            request, now, int(campaign.start_at), tuple(removed.tolist())
        )
        self._set_reaction(c)
        past = Continuation.of(
            self._world, self._blocks[c], request, int(campaign.start_at), removed.tolist()
        )
        campaign.first_due = past.first_due
        campaign.settled += len(removed) + past.settled
        if self._blocks[c].share.counts_lines:
            self.state.dialler.counts_lines = True  # Q10
        self._go_on_from(c, past)
        self._create_first_calls(c, removed, past.recipients)
        self._carry_out(SCHEDULE, c)

    def pause(self, c: int) -> None:
        """SCHEDULED or RUNNING → PAUSED (C4)."""
        self._require_existing(c)
        if self._status(c) is S.PAUSED:
            return
        self._require_status(c, "pause", S.SCHEDULED, S.RUNNING)
        self._carry_out(PAUSE, c)

    def resume(self, c: int) -> None:
        """PAUSED → RUNNING or SCHEDULED (C5)."""
        self._require_existing(c)
        self._require_status(c, "resume", S.PAUSED)
        self._carry_out(RESUME, c)

    def cancel(self, c: int) -> None:
        """Any state that is not final → CANCELLED (C6)."""
        self._require_existing(c)
        self._require_status(c, "cancel", S.DRAFT, S.SCHEDULED, S.RUNNING, S.PAUSED)
        self._carry_out(CANCEL, c)

    def delete(self, c: int) -> None:
        """Delete the campaign, in any state (C8)."""
        self._require_existing(c)
        self._deleted.add(c)
        self._carry_out(DELETE, c)

    def reanalyze(self, c: int, share: float) -> None:
        """Start another analysis of a share of the delivered calls (A5); dialling is not
        affected.
        """
        self._require_existing(c)
        self._trace.reanalyses.append(Reanalysis(self.now, self.block.position, c, share))

    def set_limit(self, limit: int) -> None:
        """Change maxConcurrentCalls; a lower limit ends no call (Q1)."""
        dialler = self.state.dialler
        dialler.limit = limit
        dialler.capacity = self._queue_capacity(limit)
        dialler.woken = 1
        self._trace.limits.append(LimitChange(self.now, self.block.position, limit))

    def set_webhook_url(self, url: str | None) -> None:
        """Change the webhook URL from the next result on (W6)."""
        self._trace.urls.append(UrlChange(self.now, self.block.position, url))

    def set_calling_allowed(self, allowed: bool) -> None:
        """Allow or forbid the organization to start campaigns."""
        self._calling_allowed = allowed

    def use_behaviour(self, agent: str, behaviour: str) -> None:
        """Change the behaviour of the people whom an agent calls, from the next dial on."""
        for c, block in enumerate(self._blocks):
            if block.agent.name == agent:
                self._behaviours[c] = behaviour
                if self._position(c) in self._trace.requests:
                    self._set_reaction(c)

    # -- results ----------------------------------------------------------------------------------

    def changes(self) -> list[CampaignChange]:
        """Return the changes of the campaigns' status, in order of time."""
        rows = self.state.changes[: self.state.dialler.changes].tolist()
        return [
            CampaignChange(
                at, self.block.position, c, STATUSES[before], STATUSES[after], CAUSES[cause]
            )
            for at, c, before, after, cause in rows
        ]

    def statuses(self) -> list[CampaignStatus]:
        """Return the status of each campaign."""
        return [self._status(c) for c in range(len(self._blocks))]

    def unfinished(self) -> list[int]:
        """Return the campaigns that are neither final nor DRAFT."""
        return [
            c
            for c, status in enumerate(self.statuses())
            if not status.final and status is not S.DRAFT
        ]

    def logs(self) -> list[CallLog]:
        """Return the log of each campaign."""
        s = self.state
        at, keys = s.log_at[: s.dialler.rows], s.log_keys[: s.dialler.rows]
        dials = np.asarray(s.dials[: s.dialler.dials])
        # Most organizations have one campaign, whose log needs no splitting.
        if len(self._blocks) == 1:
            return [_log(at, keys, dials)]
        of_row = s.people["campaign"][recipients_of(keys)]
        of_dial = of_row[kinds_of(keys) == kinds.DIALLED]
        logs = []
        for c, first in enumerate(s.campaigns["first_person"].tolist()):
            own = of_row == c
            # People are numbered across all campaigns of the organization; a log counts from 0.
            own_keys = keys[own] - call_key(first, 0)
            logs.append(_log(at[own], own_keys, dials[of_dial == c]))
        return logs

    # -- setting up -------------------------------------------------------------------------------

    def _first_state(self) -> State:
        engine, settings = self._world.scenario.engine, self.block.settings
        people = sum(block.people.count for block in self._blocks)
        # Arrays can't grow in compiled code: they are allocated for the highest limit that the
        # scenario ever sets.
        lines = min(max(settings.limits), people)
        queued = min(max(map(self._queue_capacity, settings.limits)), people)
        recoveries = sorted(
            {
                behaviour.answered_odds.by_caller_id_use.recovery
                for behaviour in self._world.scenario.behaviours.values()
                if behaviour.answered_odds.by_caller_id_use is not None
            }
        )
        only = records(1, DIALLER)
        dialler = only[0]
        dialler.now = self._world.scenario.clock.start
        dialler.ahead = dialler.look_at = dialler.pace = NO_TIMER
        dialler.queue_timeout = engine.queue_timeout
        dialler.release_interval = engine.release_interval
        dialler.gap = dial_gap(engine.calls_per_second)
        # -1 for no dial yet: no dial has an instant before 1970.
        dialler.dialled_last = -1
        dialler.sharing = SHARING.index(engine.sharing)
        dialler.fresh_rank, dialler.retry_rank = order_classes(engine.order)
        dialler.notes_reached = settings.duplicate_call_alert is not None

        def integers(count: int) -> NDArray[np.int64]:
            return np.empty(count, dtype=np.int64)

        return State(
            dialler=only,
            campaigns=records(len(self._blocks), CAMPAIGN),
            reactions=records(0, REACTION),
            people=records(people, PERSON),
            agendas=records(len(self._blocks) + 1, AGENDA),
            # Each person has room in the campaign's agenda and in the agenda of retries.
            run_keys=integers(2 * people),
            run_people=integers(2 * people),
            heap_keys=integers(2 * people),
            heap_people=integers(2 * people),
            queue=records(queued, QUEUED_CALL),
            lines=records(lines, LINE),
            line_at=integers(lines),
            line_numbers=integers(lines),
            free_lines=np.arange(lines, dtype=np.int64),
            reached_at=np.full(people if dialler.notes_reached else 0, -1, dtype=np.int64),
            window_starts=integers(0),
            window_ends=integers(0),
            numbers=integers(0),
            voices=integers(0),
            scripts=records(0, SCRIPT),
            steps=records(0, STEP),
            week_odds=self._chances.week_odds,
            holidays=np.array(self._world.holidays, dtype=np.int64),
            recoveries=np.array(recoveries, dtype=np.int64),
            uses=np.zeros((len(recoveries), 0), dtype=np.int64),
            used_at=np.zeros((len(recoveries), 0), dtype=np.int64),
            slots=self._chances.slots,
            attempt_odds=self._chances.attempt_odds,
            entry_of=self._chances.entry_of,
            entries=self._chances.entries,
            values=self._chances.values,
            log_at=integers(12 * people + 64),
            log_keys=integers(12 * people + 64),
            dials=np.empty(3 * people + 64, dtype=DIAL).view(np.recarray),
            changes=records(64, CHANGE),
        )

    def _queue_capacity(self, limit: int) -> int:
        """Return the capacity of the queue under a limit (Q2)."""
        queue_limit = self._world.scenario.engine.queue_limit
        if limit == 0:
            return 0
        if queue_limit == "unlimited":
            return UNLIMITED
        return limit if queue_limit is None else queue_limit

    def _set_up_campaigns(self) -> None:
        """Initialize all campaigns as DRAFT, with their recipients and scripts."""
        first = script_count = step_count = 0
        scripts: list[NDArray[np.int64]] = []
        steps: list[NDArray[np.int64]] = []
        for c, block in enumerate(self._blocks):
            campaign, people = self.state.campaigns[c], block.people
            campaign.end_at = NO_TIMER
            campaign.reaction = NONE
            campaign.begins_at = campaign.ends_at = NO_TIMER
            campaign.closes_at = campaign.releases_at = NO_TIMER
            self._set_share(c)
            campaign.people = people.count
            campaign.first_person = first
            self.state.agendas[c].begin, self.state.agendas[c].room = first, people.count
            own = self.state.people[first : first + people.count]
            own["campaign"] = c
            own["shown_last"] = NONE
            own["script"] = NONE
            if people.script is not None:
                # Scripts of all campaigns are in one table, so that indices are shifted.
                own["script"] = np.where(people.script >= 0, people.script + script_count, NONE)
                rows, own_steps = _script_rows(people)
                scripts.append(rows + np.array([step_count, 0]))
                steps.append(own_steps)
                script_count, step_count = script_count + len(rows), step_count + len(own_steps)
            if self.state.dialler.notes_reached:
                for recipient, past in people.history.items():
                    if past.reached:
                        self.state.reached_at[first + recipient] = past.last_ended_at
            first += people.count
        self.state.agendas[-1].begin = self.state.agendas[-1].room = first
        if scripts:
            self.state.scripts = np.concatenate(scripts).view(SCRIPT)[:, 0].view(np.recarray)
            self.state.steps = np.concatenate(steps).view(STEP)[:, 0].view(np.recarray)

    def _set_share(self, c: int) -> None:
        """Set a campaign's share of the organization's lines (Q7 to Q11)."""
        campaign, share = self.state.campaigns[c], self._blocks[c].share
        counts = self._world.scenario.engine.sharing == "priority"
        priorities = [block.share.priority if counts else 0 for block in self._blocks]
        # A campaign without a priority has an infinite one, which an integer can't hold.
        campaign.priority = min(priorities[c], UNLIMITED)
        campaign.first_of_priority = priorities.index(priorities[c])
        campaign.released_last = -1
        campaign.weight = share.weight
        campaign.at_most = min(share.at_most, UNLIMITED)
        campaign.reserved = share.reserved

    # -- scheduling -------------------------------------------------------------------------------

    def _require_schedulable(self, c: int, request: ScheduleRequest) -> None:
        """Make checks 2 to 5 of a schedule request; check that duplicates can be removed (C9)."""
        self._require_existing(c)
        if self._status(c) is not S.DRAFT:
            raise already_started(self._status(c))
        scenario, account = self._world.scenario, self.block.settings.calling_account()
        voice_keys = {voice.voice_key for voice in scenario.voices}
        strict = scenario.service.strict
        check_conditions(request, account, voice_keys, strict=strict, now=self.now)
        if not self._calling_allowed:
            raise calling_not_allowed()
        check_duplicate_alert(request, account)

    def _duplicates(self, c: int, request: ScheduleRequest) -> NDArray[np.int64]:
        """Return the recipients that the request drops: check 6 of a schedule request (D3, C9)."""
        alert, own = self.block.settings.duplicate_call_alert, self._blocks[c]
        if not request.remove_duplicates or alert is None:
            return np.empty(0, dtype=np.int64)
        reached: set[str] = set()
        for other, block in enumerate(self._blocks):
            if block.agent.name == own.agent.name:
                ended = self._of(other, self.state.reached_at)
                lately = np.flatnonzero((ended >= 0) & (ended >= self.now - alert.window))
                if len(lately):
                    tels = block.people.tels()
                    reached.update(tels[recipient] for recipient in lately.tolist())
        tels = own.people.tels() if reached else []
        removed = [recipient for recipient, tel in enumerate(tels) if tel in reached]
        if len(removed) == own.people.count:
            raise all_duplicates()
        return np.array(removed, dtype=np.int64)

    def _set_windows(self, campaign: Any, request: ScheduleRequest) -> None:
        starts, ends = Windows.of(request.time_windows).ranges
        campaign.first_window, campaign.windows = len(self.state.window_starts), len(starts)
        self.state.window_starts = np.append(self.state.window_starts, _integers(starts))
        self.state.window_ends = np.append(self.state.window_ends, _integers(ends))

    def _set_numbers_and_voices(self, c: int, request: ScheduleRequest) -> None:
        """Adopt the caller IDs and voices of a schedule request (P3, P4)."""
        agent, world, campaign = self._blocks[c].agent, self._world, self.state.campaigns[c]
        numbers = shown_numbers(world, agent, request, self.block.settings)
        voices = spoken_voices(world, agent, request)
        campaign.first_number, campaign.numbers = len(self.state.numbers), len(numbers)
        campaign.first_voice, campaign.voices = len(self.state.voices), len(voices)
        known = self.state.uses.shape[1]
        more = ((0, 0), (0, len(world.numbers) - known))
        self.state.numbers = np.append(self.state.numbers, _integers(numbers))
        self.state.voices = np.append(self.state.voices, _integers(voices))
        self.state.uses = np.pad(self.state.uses, more)
        self.state.used_at = np.pad(self.state.used_at, more)

    def _go_on_from(self, c: int, past: Continuation) -> None:
        """Take over the attempts, caller IDs and next calls of people with a history (C1)."""
        s, campaign = self.state, self.state.campaigns[c]
        persons = self._of(c, s.people)
        persons["attempts"][past.recipients] = past.attempts
        persons["shown_last"][past.recipients] = past.caller_ids
        campaign.retries = len(past.due)
        # Other campaigns may have planned retries already.
        due = np.append(self._planned(s.run_keys, s.heap_keys), past.due)
        again = int(campaign.first_person) + past.called_again
        people = np.append(self._planned(s.run_people, s.heap_people), again)
        order, agenda = np.lexsort((people, due)), s.agendas[-1]
        entries = slice(int(agenda.begin), int(agenda.begin) + len(order))
        s.run_keys[entries], s.run_people[entries] = due[order], people[order]
        agenda.first, agenda.length, agenda.heaped = 0, len(order), 0
        s.dialler.retries = len(order)

    def _planned(self, run: NDArray[np.int64], heap: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a column of the retries that are not created yet, in any order."""
        agenda = self.state.agendas[-1]
        begin, end = int(agenda.begin), int(agenda.begin + agenda.room)
        ring = np.roll(run[begin:end], -int(agenda.first))
        return np.concatenate([ring[: agenda.length], heap[begin : begin + agenda.heaped]])

    def _create_first_calls(
        self, c: int, removed: NDArray[np.int64], gone_on: NDArray[np.int64]
    ) -> None:
        """Create a call in SCHEDULED for every recipient who is neither removed nor has a
        history.
        """
        s, campaign, count = self.state, self.state.campaigns[c], self._blocks[c].people.count
        first = int(campaign.first_person)
        has_one = np.ones(count, dtype=bool)
        has_one[removed] = has_one[gone_on] = False
        people = first + np.flatnonzero(has_one)
        s.agendas[c].length = campaign.waiting = len(people)
        s.run_people[first : first + len(people)] = people
        # All are due in one instant (C1).
        key = int(s.dialler.fresh_rank) << RANK_SHIFT | int(campaign.first_due)
        s.run_keys[first : first + len(people)] = key
        s.people["calls"][first : first + count] = has_one
        self._ensure_rows(len(people))
        rows = slice(int(s.dialler.rows), int(s.dialler.rows) + len(people))
        self.state.log_at[rows] = self.now
        self.state.log_keys[rows] = call_keys(people, 1) | kinds.SCHEDULED
        s.dialler.rows = rows.stop

    # -- requests of the rules --------------------------------------------------------------------

    def _carry_out(self, command: int, c: int) -> None:
        """Run an allowed command in the compiled rules."""
        self._ensure_changes()
        # carry_out cannot stop halfway for a longer log, unlike work_off.
        self._ensure_rows(self._blocks[c].people.count)
        carry_out(self.state, command, c)

    def _ensure_rows(self, more: int) -> None:
        """Ensure room for `more` rows of the log, and for some dials."""
        s = self.state
        rows, dials = int(s.dialler.rows), int(s.dialler.dials)
        if rows + more > len(s.log_at):
            length = max(2 * len(s.log_at), rows + more)
            s.log_at, s.log_keys = longer(s.log_at, length), longer(s.log_keys, length)
        if dials >= len(s.dials):
            s.dials = longer(s.dials, 2 * len(s.dials))

    def _ensure_changes(self) -> None:
        s = self.state
        needed = int(s.dialler.changes) + _CHANGES_AT_ONCE * len(self._blocks)
        if needed > len(s.changes):
            s.changes = longer(s.changes, 2 * needed)

    def _draw(self) -> None:
        """Make the draws that the next dial requests."""
        dialler = self.state.dialler
        reaction = int(dialler.wanted_reaction)
        # Each reaction belongs to one campaign only, since draws differ by campaign.
        [c] = np.flatnonzero(self.state.campaigns["reaction"][: len(self._blocks)] == reaction)
        campaign = self.state.campaigns[c]
        choices = {
            kind
            for kind, count in (
                (ColumnKind.NUMBER, campaign.numbers),
                (ColumnKind.VOICE, campaign.voices),
            )
            if count > 1
        }
        attempt, block = int(dialler.wanted_attempt), int(dialler.wanted_block)
        self._chances.make(reaction, attempt, block, choices)
        self._take_chances()

    def _set_reaction(self, c: int) -> None:
        """Set the reactions of a scheduled campaign by its current behaviour."""
        request = self._trace.requests[self._position(c)].request  # P8
        reactions = self._world.reactions(self._blocks[c], self._behaviours[c], request)
        number = self._chances.reaction(reactions)
        if number >= len(self.state.reactions):
            self.state.reactions = longer(self.state.reactions, 2 * number + 1)
        reacts = self.state.reactions[number]
        reacts.behaviour = reactions.behaviour
        reacts.on_holiday = reactions.odds.on_holiday
        reacts.recovery, reacts.per1000 = -1, 1.0
        if reactions.recovery is not None and reactions.per1000 is not None:
            reacts.recovery = self.state.recoveries.tolist().index(reactions.recovery)
            reacts.per1000 = reactions.per1000
        reacts.no_answer, reacts.busy = reactions.other_bounds
        self.state.campaigns[c].reaction = number
        # `Chances` may have reallocated its arrays, to which the compiled state refers.
        self._take_chances()

    def _take_chances(self) -> None:
        for name in _OF_CHANCES:
            column = getattr(self._chances, name)
            # Most draws leave the arrays in place, and passing an address on takes as long as some
            # draws.
            if getattr(self.state, name, None) is not column:
                setattr(self.state, name, column)

    # -- the rest ---------------------------------------------------------------------------------

    def _position(self, c: int) -> tuple[int, int]:
        return self.block.position, c

    def _status(self, c: int) -> CampaignStatus:
        return STATUSES[self.state.campaigns[c].status]

    def _of(self, c: int, column: Any) -> Any:
        """Return a campaign's part of a column of people."""
        first = int(self.state.campaigns[c].first_person)
        return column[first : first + self._blocks[c].people.count]

    def _require_existing(self, c: int) -> None:
        if c in self._deleted:
            raise campaign_not_found()  # C8

    def _require_status(self, c: int, verb: str, *allowed: CampaignStatus) -> None:
        if self._status(c) not in allowed:
            raise wrong_state(verb, self._status(c))


def _script_rows(people: People) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first step and length of each script, and the fields of all steps.

    The result is cached, because replays of a log use the same people thousands of times.
    """
    if people not in _SCRIPT_ROWS:
        lengths = _integers(map(len, people.scripts))
        steps = _integers(n for script in people.scripts for one in script for n in _step(one))
        first = np.cumsum(lengths) - lengths
        _SCRIPT_ROWS[people] = (
            np.stack([first, lengths], axis=1),
            steps.reshape(-1, len(STEP.names or ())),
        )
    return _SCRIPT_ROWS[people]


def _step(step: ScriptStep) -> tuple[int, ...]:
    setup, until = (NONE if value is None else value for value in (step.setup, step.until))
    return ENDINGS.index(step.outcome), step.ring, step.talk, setup, until


def _log(at: NDArray[np.int64], keys: NDArray[np.int64], dials: NDArray[np.void]) -> CallLog:
    columns = (np.ascontiguousarray(dials[name]) for name in DIAL.names or ())
    return CallLog.whole(at, keys, Dials(*columns))


def _integers(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array([*values], dtype=np.int64)
