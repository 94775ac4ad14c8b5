"""Views of campaigns as the interface shows them now, and the account that finds them by ids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.campaign import SimulatedCampaign
from dialsim.engine.chance import agent_id, call_ids, organization_id, recipient_ids, session_ids
from dialsim.engine.log_reader import (
    CALL_STATUSES,
    NO_CALL,
    NOT_HAPPENED,
    TO_STATUS,
    Calls,
    GrowingCalls,
)
from dialsim.engine.trace import CampaignTrace, Trace
from dialsim.engine.world import OrganizationBlock
from dialsim.interface import CallStatus
from dialsim.interface.instants import format_instant
from dialsim.interface.model import is_uuid
from dialsim.interface.payload import agent_json
from dialsim.sandbox import failures as fail
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.webhooks.analysis import (
    AGENT_STATUSES,
    Analyses,
    AnalysisChanges,
    AnalysisOutcome,
    Analyst,
    agent_statuses,
    changes_by,
    conversations,
)
from dialsim.webhooks.bodies import (
    ALL_EXPIRED,
    DATA_EXPIRED,
    OUTPUT,
    PERSONAL_DATA,
    Body,
    CallResultMaker,
    duration_json,
    expired,
    instants_json,
    visible_people,
)
from dialsim.webhooks.messages import (
    FOREVER,
    MessageBuilder,
    Messages,
    Verdicts,
    first_messages,
    verdicts,
)


@dataclass(frozen=True, slots=True)
class CallStatuses:
    """Statuses of calls at an instant: `status` are indexes into `CALL_STATUSES` (int8).

    `changed_at` (ms) is the last change of each status, analyses included (A4).
    """

    status: NDArray[np.int8]
    changed_at: NDArray[np.int64]


class LiveAnalyses:
    """Analyses of one campaign's calls; each analysis is determined when the conversation ends."""

    def __init__(self, part: CampaignTrace, calls: Calls) -> None:
        self._part = part
        self._calls = calls
        self._analyst = Analyst(part.trace.world, part.block)
        self._delay = part.trace.world.scenario.engine.webhook_delay
        analysis = part.block.agent.analysis
        self._results = CallResultMaker(analysis)
        self._row = np.dtype(
            [
                ("outcome", np.int8),
                ("ready_at", np.int64),
                ("failed_at", np.int64),
                ("found", np.uint16, (1 + (len(analysis.fields) if analysis else 0),)),
            ]
        )
        self._table = np.empty(0, dtype=self._row)  # a row per call, and spare rows
        self._ends_seen = 0
        self._changes: AnalysisChanges | None = None
        self.reanalyses = 0
        self._again = self.firsts(np.empty(0, dtype=np.int64))  # by (call, result)

    def update(self) -> None:
        """Analyze the calls that ended since the last update, then the re-analyses."""
        calls = self._calls
        if len(calls) > len(self._table):
            table = np.zeros(max(len(calls), 2 * len(self._table)), dtype=self._row)
            table["ready_at"] = table["failed_at"] = NOT_HAPPENED
            table[: len(self._table)] = self._table
            self._table = table
        ended = calls.ended(self._ends_seen)
        self._ends_seen = calls.ends
        talked = ended[calls.started_at[ended] != NOT_HAPPENED]
        if len(talked):
            first = self._analyst.first(conversations(calls, talked))
            for column in ("outcome", "ready_at", "failed_at", "found"):
                self._table[column][talked] = getattr(first, column)
            self._changes = None
        asked = len(self._part.reanalyses)
        if asked > self.reanalyses:
            self.reanalyses = asked
            everything = self.of(np.arange(len(calls)))
            promised = MessageBuilder(self._part.trace, calls, everything).promised()
            self._again = promised[promised.result > 0]

    # -- statuses of calls ------------------------------------------------------------------------

    def standing(self, calls: NDArray[np.integer], at: int | NDArray[np.int64]) -> CallStatuses:
        """Return the statuses of some calls at `at`.

        Includes all engine events so far and the analysis events up to `at` (ms), which is one
        instant or one per call (A4).
        """
        status, changed_at = TO_STATUS[self._calls.last_kind[calls]], self._calls.changed_at[calls]
        first = self.of(calls)
        changed = changes_by(first, np.broadcast_to(at, calls.shape)[first.call])
        # Of several changes of one call numpy keeps the last, and changes are in the order of time.
        status[changed.call] = TO_STATUS[changed.kind]
        changed_at[changed.call] = changed.at
        return CallStatuses(status, changed_at)

    def changes(self, at: int) -> AnalysisChanges:
        """Return the changes of calls by first analyses up to `at`, sorted by instant (A4)."""
        if self._changes is None:
            self._changes = changes_by(self.of(np.arange(len(self._calls))), FOREVER)
        count = int(np.searchsorted(self._changes.at, at, side="right"))
        return self._changes[:count]

    def changes_of(self, call: int, at: int) -> list[tuple[int, int]]:
        """Return (instant, kind) of a call's changes by its first analysis up to `at` (A4)."""
        changes = changes_by(self.of(np.array([call])), at)
        return [*zip(changes.at.tolist(), changes.kind.tolist(), strict=True)]

    # -- outcomes of analyses ---------------------------------------------------------------------

    def of(self, calls: NDArray[np.integer]) -> Analyses:
        """Return the first analyses of some calls; their `call` is an index into `calls`."""
        started_at, ended_at = self._calls.started_at[calls], self._calls.ended_at[calls]
        talked = np.flatnonzero((started_at != NOT_HAPPENED) & (ended_at != NOT_HAPPENED))
        rows = self._table[calls[talked]]
        return Analyses(talked, rows["outcome"], rows["ready_at"], rows["failed_at"], rows["found"])

    def outcome(self, call: int) -> AnalysisOutcome:
        """Return the analysis outcome of a conversation that has ended."""
        return AnalysisOutcome(self._table["outcome"][call])

    def verdicts(self, calls: NDArray[np.int64], at: int) -> Verdicts:
        """Return the analysis verdicts of some calls at a present or future instant."""
        return verdicts(self.of(calls), self._there(calls, at), len(calls), at)

    def result(self, call: int, at: int, masked: bool) -> tuple[Body, int]:
        """Return the newest result of a call as JSON, and the instant (ms) of its creation.

        Returns the empty object and `NOT_HAPPENED` before the first result. `masked`: retention
        removed the output.
        """
        there = self._there(np.array([call]), at)
        there = there[there.verdict >= 0]
        newest = there[np.argsort(there.ready_at, kind="stable")[-1:]]
        if not len(newest):
            return {}, NOT_HAPPENED
        [result] = self._results.of(newest, np.array([masked]))
        return result or {}, int(newest.ready_at[0])

    def require_delivered(self, call: int, at: int) -> None:
        """Refuse a call that is not COMPLETED, or whose first POST is not out yet (A5)."""
        status = CALL_STATUSES[self.standing(np.array([call]), at).status[0]]
        row = self._table[call]
        ready_at = int(row["ready_at"])
        if status is not CallStatus.COMPLETED:
            text = f"Cannot re-analyze a {status} call"
        elif ready_at == row["failed_at"] == NOT_HAPPENED:
            text = "Cannot re-analyze a call that is not analyzed"
        elif ready_at == NOT_HAPPENED or ready_at + self._delay > at:
            text = "Cannot re-analyze a call whose result has not been delivered yet"
        else:
            return
        raise fail.NOT_DELIVERED.refused(text)

    # -- results for the receiver -----------------------------------------------------------------

    def firsts(self, calls: NDArray[np.int64]) -> Messages:
        """Return the first results of some calls; a missing result is at `NOT_HAPPENED` (W1)."""
        return first_messages(calls, self._calls.ended_at[calls], self.of(calls), self._delay)

    def again(self, call: int) -> Messages:
        """Return the results of one call's re-analyses, in the order of their start."""
        start, stop = np.searchsorted(self._again.call, [call, call + 1])
        return self._again[np.arange(start, stop)]

    def repeated(self, since: int) -> Messages:
        """The results of all re-analyses but the first `since` (A5)."""
        return self._again[self._again.result > since]

    def failures(self, calls: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the failure instant (ms) of each call's first analysis (A4), or `NOT_HAPPENED`."""
        failed_at: NDArray[np.int64] = self._table["failed_at"][calls]
        return failed_at

    def _there(self, calls: NDArray[np.int64], at: int) -> Messages:
        """Return existing results of some calls at an instant; `call` is an index into `calls`."""
        again = self._again[np.isin(self._again.call, calls)]
        order = np.argsort(calls)
        index = order[np.searchsorted(calls, again.call, sorter=order)]
        first = replace(self.firsts(calls), call=np.arange(len(calls)))
        known = Messages.joined([first, replace(again, call=index)])
        return known[(known.ready_at != NOT_HAPPENED) & (known.ready_at <= at)]


IN_PROGRESS = "IN_PROGRESS"
"""`agentStatus` while the conversation goes on; the interface names no value for it: ours."""


class CampaignPosition(NamedTuple):
    """Position of a campaign: index of its organization, and its index within it."""

    organization: int
    campaign: int


class SortedIds:
    """Index of ids: of all recipients of a campaign, or of their calls with one call number.

    The ids are known before the first call, so they are sorted once. An id takes 20 bytes here and
    150 bytes in a dict, a quarter of a gigabyte for a million people.
    """

    def __init__(self, ids: NDArray[np.bytes_]) -> None:
        """Take the ids (S36) of the recipients, in upload order."""
        digits = ids.tobytes().replace(b"-", b"").decode()
        octets = np.frombuffer(bytes.fromhex(digits), dtype="S16")
        self._recipients = np.argsort(octets).astype(np.int32)
        self._octets = octets[self._recipients]

    def find(self, identifier: str) -> int | None:
        """Return the recipient of an id, ignoring case; None for an unknown id."""
        if not is_uuid(identifier):
            return None
        octets = np.array(UUID(identifier).bytes, dtype="S16")
        row = int(np.searchsorted(self._octets, octets))
        is_known = row < len(self._octets) and self._octets[row] == octets
        return int(self._recipients[row]) if is_known else None


class CampaignView:
    """Read access to one campaign; every value is as of the instant `at` (ms).

    `identifier` is the campaign's id, `created_at` the instant of the upload (F2). The data come
    from `part` of the trace, from `calls` and from `analyses`.
    """

    def __init__(self, trace: Trace, campaign: SimulatedCampaign) -> None:
        block = campaign.block
        self.campaign = campaign
        self.identifier = block.id
        self.created_at = block.created_at
        self.position = CampaignPosition(block.organization, block.position)
        self.part = trace.campaign(*self.position)
        self.calls = GrowingCalls(self.part)
        self.analyses = LiveAnalyses(self.part, self.calls)
        self._people = block.people
        self._retention = self.part.owner.settings.retention
        self._address = trace.world.seed, *self.position
        self._call_ids: list[SortedIds] = []  # ids by call number
        self._calls_seen = 0
        self._state = (-1, -1)  # rows of the log read so far

    def catch_up(self) -> None:
        """Read new events; all other methods use only events that were read here."""
        state = len(self.campaign.log), len(self.part.trace.reanalyses)
        if state == self._state:
            return
        self._state = state
        self.calls.update()
        self.analyses.update()
        most = int(self.calls.call[self._calls_seen :].max(initial=0))
        everybody = np.arange(self._people.count if most > len(self._call_ids) else 0)
        for number in range(len(self._call_ids) + 1, most + 1):
            numbers = np.full(len(everybody), number)
            self._call_ids.append(SortedIds(call_ids(*self._address, everybody, numbers)))
        self._calls_seen = len(self.calls)

    # -- ids --------------------------------------------------------------------------------------

    def call_position(self, identifier: str) -> int | None:
        """Return the position of the call with an id; None for an unknown id."""
        self.catch_up()
        for number, ids in enumerate(self._call_ids, 1):
            if (recipient := ids.find(identifier)) is not None:
                own = self.calls.of(recipient)
                return own[number - 1] if number <= len(own) else None
        return None

    def recipient_position(self, identifier: str) -> int | None:
        """Return the upload index of the recipient with an id, or None."""
        return self._recipient_ids.find(identifier)

    @cached_property
    def _recipient_ids(self) -> SortedIds:
        return SortedIds(self.recipient_ids(np.arange(self._people.count)))

    def call_ids(self, calls: NDArray[np.int64]) -> NDArray[np.bytes_]:
        """The ids of calls (S36)."""
        return call_ids(*self._address, self.calls.recipient[calls], self.calls.call[calls])

    def recipient_ids(self, who: NDArray[np.integer]) -> NDArray[np.bytes_]:
        """Return the ids of recipients (S36): the id of the upload, else a derived id."""
        ids = recipient_ids(*self._address, who)
        for row, recipient in enumerate(who.tolist() if self._people.fixed_ids else ()):
            if fixed := self._people.fixed_ids.get(recipient):
                ids[row] = fixed.encode()
        return ids

    def session_ids(self, calls: NDArray[np.int64]) -> NDArray[np.bytes_]:
        """The session ids of calls (S36)."""
        return session_ids(*self._address, self.calls.recipient[calls], self.calls.call[calls])

    # -- recipients -------------------------------------------------------------------------------

    @property
    def total_recipients(self) -> int:
        """Number of recipients on the list, without those removed as duplicates (D3)."""
        return self._people.count - len(self._removed)

    def is_listed(self, recipient: int) -> bool:
        """True unless a recipient was removed as a duplicate (D3)."""
        row = np.searchsorted(self._removed, recipient)
        return bool(row == len(self._removed) or self._removed[row] != recipient)

    def newest_first(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return a range of the listed recipients; the last of the upload has index 0 (F4)."""
        total = self.total_recipients
        rows = np.arange(max(total - start, 0) - 1, max(total - stop, 0) - 1, -1)
        return self._kept[rows] if len(self._removed) else rows

    def who_has(self, tel: str) -> NDArray[np.int64]:
        """Return the recipients with a phone number as uploaded."""
        having = [who for who, known in enumerate(self._people.tels()) if known == tel]
        return np.array(having, dtype=np.int64)

    def recipients(self, who: NDArray[np.int64], at: int) -> list[Body]:
        """Recipients as JSON (interface, section 2.4)."""
        calls = self.calls.newest[who]
        has = np.flatnonzero(calls != NO_CALL)
        standing = self.analyses.standing(calls[has], at)
        status = self.calls.past_status[who]
        changed_at = np.full(len(who), self.created_at, dtype=np.int64)
        status[has], changed_at[has] = standing.status, standing.changed_at
        ended_at = self.calls.past_ended_at[who]
        ended_at[has] = self.calls.ended_at[calls[has]]
        masked = (self.flags(ended_at, at) & PERSONAL_DATA) != 0
        created_at = format_instant(self.created_at)
        rows = zip(
            self.recipient_ids(who).tolist(),
            visible_people(self._people, who, masked),
            self.calls.attempts_of(who).tolist(),
            status.tolist(),
            instants_json(changed_at),
            masked.tolist(),
            strict=True,
        )
        return [
            {
                "id": identifier.decode(),
                "customerName": person.customer_name,
                "tel": person.tel,
                "callAttempt": attempts,
                "latestCallStatus": None if code < 0 else CALL_STATUSES[code].value,
                "agentParams": person.agent_params,
                "campaignId": self.identifier,
                "createdAt": created_at,
                "updatedAt": updated_at,
                "personalDataMasked": is_masked,
            }
            for identifier, person, attempts, code, updated_at, is_masked in rows
        ]

    def recipient(self, recipient: int, at: int) -> Body:
        """Return one recipient as JSON."""
        return self.recipients(np.array([recipient]), at)[0]

    # -- calls ------------------------------------------------------------------------------------

    def call(self, call: int, at: int) -> Body:
        """A call as JSON (interface, section 2.5)."""
        entry, one = self.calls[call], np.array([call])
        standing = self.analyses.standing(one, at)
        flags = self.expired(call, at)
        who = np.array([entry.recipient])
        [person] = visible_people(self._people, who, np.array([bool(flags & PERSONAL_DATA)]))
        agent = agent_statuses(self.calls.started_at[one], self.analyses.of(one))[0]
        result, ready_at = self.analyses.result(call, at, bool(flags & OUTPUT))
        changed_at = max(int(standing.changed_at[0]), ready_at)
        instants = (entry.started_at, entry.ended_at, entry.created_at, changed_at)
        started, ended, created, updated = instants_json(np.array(instants))
        return {
            "id": self.call_ids(one)[0].decode(),
            "sessionId": self.session_ids(one)[0].decode(),
            "callStatus": CALL_STATUSES[standing.status[0]].value,
            "agentStatus": IN_PROGRESS if agent == -1 else AGENT_STATUSES[agent].value,
            "callStartedAt": started,
            "callEndedAt": ended,
            "callDuration": duration_json(entry.started_at, entry.ended_at),
            "result": result,
            "recipient": {
                "id": self.recipient_ids(who)[0].decode(),
                "customerName": person.customer_name,
                "tel": person.tel,
            },
            "createdAt": created,
            "updatedAt": updated,
            "dataExpired": DATA_EXPIRED[flags],
        }

    def latest_calls(self, most: int) -> list[tuple[int, int]]:
        """Return the calls that changed last, newest first: (instant of change in ms, call)."""
        calls = self.calls.latest(most)
        return [*zip(self.calls.changed_at[calls].tolist(), calls.tolist(), strict=True)]

    def expired(self, call: int, at: int) -> int:
        """Return the data of a call that are removed at an instant, as bits; see `flags`."""
        return int(self.flags(self.calls.ended_at[[call]], at)[0])

    # -- the rest ---------------------------------------------------------------------------------

    def flags(self, ended_at: NDArray[np.int64], at: int) -> NDArray[np.int8]:
        """Return the data removed by retention (D2) or deletion (C8), as bits, of calls by end."""
        if self.campaign.deleted:
            return np.full(len(ended_at), ALL_EXPIRED, dtype=np.int8)
        return expired(self._retention, ended_at, at)

    @property
    def _removed(self) -> NDArray[np.int64]:
        return _NOBODY if self.part.scheduled is None else self._removed_once

    @cached_property
    def _removed_once(self) -> NDArray[np.int64]:
        """Return the recipients removed as duplicates by the schedule request, ascending."""
        scheduled = self.part.scheduled
        return np.array(scheduled.removed if scheduled is not None else (), dtype=np.int64)

    @cached_property
    def _kept(self) -> NDArray[np.int64]:
        """Return the recipients that were not removed as duplicates, ascending."""
        kept: NDArray[np.int64] = np.setdiff1d(np.arange(self._people.count), self._removed_once)
        return kept


_NOBODY = np.empty(0, dtype=np.int64)


class Account:
    """One organization's agents, campaigns, recipients and calls, found by their ids."""

    def __init__(self, simulation: LiveEngine, block: OrganizationBlock) -> None:
        self.block = block
        seed = simulation.log.world.seed
        self.identifier = block.settings.id or organization_id(seed, block.position)
        self._views: list[CampaignView] = []
        self._simulation = simulation
        self._by_campaign_id: dict[str, CampaignView] = {}
        self._agents: list[dict[str, object]] = []

    @property
    def views(self) -> list[CampaignView]:
        """Return the views of all current campaigns, in the order of the scenario."""
        self._open_views()
        return self._views

    def _open_views(self) -> None:
        for position in range(len(self._views), len(self.block.campaigns)):
            campaign = self._simulation.campaign(self.block.position, position)
            view = CampaignView(self._simulation.log, campaign)
            self._views.append(view)
            self._by_campaign_id[view.identifier.lower()] = view

    @property
    def agents(self) -> list[dict[str, object]]:
        """Agents, newest first (interface, section 4.1)."""
        seed, organization = self._simulation.log.world.seed, self.block.position
        # Added agents come last, so only the new ones have to be rendered.
        agents = self.block.settings.agents
        for position in range(len(self._agents), len(agents)):
            agent = agents[position]
            identifier = agent.id or agent_id(seed, organization, position)
            self._agents.append(agent_json(identifier, agent.name, agent.params_schema))
        # F4: the newest agent comes first, which is the last one in the file.
        return self._agents[::-1]

    def campaign(self, identifier: str) -> CampaignView | None:
        """Return the campaign with an id; None for an unknown or deleted campaign (C8)."""
        self._open_views()
        view = self._by_campaign_id.get(identifier.lower())
        return None if view is None or view.campaign.deleted else view

    def recipient(self, identifier: str) -> tuple[CampaignView, int] | None:
        """Return a recipient's campaign and index; None for a recipient not listed (C8, D3)."""
        for view in self.views:
            recipient = view.recipient_position(identifier)
            if recipient is not None and not view.campaign.deleted and view.is_listed(recipient):
                return view, recipient
        return None

    def call(self, identifier: str) -> tuple[CampaignView, int] | None:
        """The campaign and position of a call, of a deleted campaign too (C8)."""
        for view in self.views:
            if (call := view.call_position(identifier)) is not None:
                return view, call
        return None

    def catch_up(self) -> None:
        """Update all views with new events, so that later requests need not wait for it."""
        for view in self.views:
            view.catch_up()
