"""Table of a log's calls for rules (`dialsim.conformance`), with its bodies and their settings.

`Expected` has the campaigns of the scenario that the log should follow, and `Contents` sums up what
is in a log: campaigns, calls by status and attempt, damage, and what can be estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from dialsim.conformance.table import (
    DIALLED,
    FAR,
    LOST,
    NOT_HAPPENED,
    STATUSES,
    WITHDRAWN,
    CampaignFacts,
    CheckedCalls,
    DialRows,
    Indices,
    Mask,
    OpeningHours,
    QueueStays,
    Rows,
    SharedLines,
    ShownRow,
    Violation,
    dial_gap,
    names_of,
)
from dialsim.engine.world import CampaignBlock, OrganizationBlock, World
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.instants import format_instant
from dialsim.interface.schedule import ScheduleRequest
from dialsim.logs.bodies import NO_INSTANT, OUTCOMES, Mark, Settings
from dialsim.logs.log import CampaignOfLog, Damage, Log
from dialsim.scenario.scenario import Scenario

LONGEST_RING_MS = 600_000
"""Longest time (ms) from dial to answer or, if unanswered, to the end, where a log has no dials.

No telephone network lets a call ring for ten minutes.
"""
MOST_LISTED = 100  # violations of a kind that are listed
_FEW_UNSURE = 3  # people with contradictory calls whom a campaign may have and still be checked
_UNSURE_SHARE = 0.02
_NO_DIALS = "the log has no instants of dials"
_NO_LIST = "without the scenario's list nothing shows whom a campaign should call"
_COLUMNS = {"queued": "queued_at", "created": "created_at", "initiated": "initiated_at",
            "status": "status", "caller_id": "caller_id", "voice_key": "voice_key",
            "started": "call_started_at", "ended": "call_ended_at"}  # fmt: skip
"""Needs of rules that are columns of a table of calls, and their names in such a table."""


def milliseconds(column: Any) -> NDArray[np.int64]:
    """Return a column of instants in ms, `NOT_HAPPENED` for missing ones."""
    values: NDArray[np.int64] = (
        pd.to_datetime(column, utc=True).astype("datetime64[ms, UTC]").to_numpy("datetime64[ms]")
    ).astype(np.int64)
    return values


def outcomes_of(log: Log) -> NDArray[np.int64]:
    """Return how each call ended, as an index into `ENDINGS`; -1 for calls that are no attempt."""
    known = {status.value: code for status, code in OUTCOMES.items()}
    return np.array(log.calls["status"].astype(str).map(known).fillna(-1), dtype=np.int64)


def people_of(calls: pd.DataFrame) -> NDArray[np.int64]:
    """Return the number of each call's person; each masked call counts as a person of its own."""
    person: NDArray[np.int64] = calls["recipient"].fillna(-1).to_numpy(np.int64)
    masked = np.flatnonzero(person < 0)
    person[masked] = person.max(initial=-1) + 1 + masked
    return person


class LogTable(CheckedCalls):
    """Calls of a log, with their bodies, and what a scenario adds.

    A log of bodies has no dials: a call was dialled at most ten minutes before its answer or its
    end. Its people are identified by their number, name and parameters, so two people with the same
    values look like one. `unsure_people` are people who may be several, and `unsure` has campaigns
    that may list many people twice, with the reason.
    """

    most_listed = MOST_LISTED

    def __init__(self, log: Log, expected: Expected | None = None) -> None:
        super().__init__()
        self.log, self.expected = log, expected
        self.blocks = [None] * len(log.campaigns) if expected is None else expected.blocks
        self.is_table, calls = bool(log.columns), log.calls
        self._bodies: dict[str, NDArray[Any]] = {}
        self.is_complete = log.form != "table"
        if expected is not None:
            engine = expected.world.scenario.engine
            self.queue_timeout = engine.queue_timeout
            self.release_interval = engine.release_interval
            self.dial_gap = dial_gap(engine.calls_per_second)
        self.campaign = calls["campaign"].to_numpy()
        self.person = calls["recipient"].to_numpy(np.int64, na_value=-1)
        self.recipient = calls["position"].to_numpy(np.int64, na_value=-1)
        self.call_no = calls["call_no"].to_numpy(np.int64, na_value=0)
        self.attempt = calls["attempt"].to_numpy(np.int64, na_value=0)
        codes = {status.value: code for code, status in enumerate(STATUSES)}
        self.status = calls["status"].astype(str).map(codes).fillna(-1).to_numpy(np.int64)
        self.call_id, self.line = calls["call_id"].to_numpy(), calls["line"].to_numpy()
        self.created, self.queued, self.initiated, self.ringing, self.started, self.ended = (
            milliseconds(calls[f"{name}_at"])
            for name in ("created", "queued", "initiated", "ringing", "started", "ended")
        )

    # -- what rules need -------------------------------------------------------------------------

    @cached_property
    def missing(self) -> dict[str, str]:  # type: ignore[override]
        """Needs of rules that the log does not meet, each with the reason."""
        log, missing = self.log, {}
        if self.is_table:
            for need, column in _COLUMNS.items():
                if column.removeprefix("call_") not in log.columns:
                    missing[need] = f"the table has no column {column}"
            for need, either in (("outcomes", "initiated"), ("answers", "started")):
                if "status" in missing and either in missing:
                    missing[need] = missing["status"]
            if "initiated" in missing:
                missing["dials"] = missing["initiated"]
        else:
            needs = ("initiated", "created", "queued", "caller_id", "voice_key")
            missing |= dict.fromkeys(needs, _NO_DIALS)
        if not len(log.bodies):
            missing["bodies"] = "the log has no bodies, which show settings and results"
            if any(one.retry_interval is None for one in self.campaigns):
                why = "neither bodies nor a scenario show the settings of the log's campaigns"
                missing["settings"] = why
        elif not (self.body("sent_at") != NOT_HAPPENED).any():
            missing["posts"] = "the log has no instants of POSTs"
        if self.expected is None:
            missing["engine"] = "these rules need settings of the engine, which no log shows"
            missing["scenario"] = _NO_LIST
        if all(lines.limits is None for lines in self.shared_lines):
            missing["lines"] = "no body shows one constant maxConcurrentCalls"
        missing["changes"] = (
            "the log has no changes of campaigns and limits, and does not show who waited"
        )
        return missing

    @cached_property
    def campaigns(self) -> list[CampaignFacts]:  # type: ignore[override]
        """Campaigns of the log, with the settings of its bodies or of the scenario."""
        calls = self.log.calls
        shown = calls[calls["setting"] >= 0].groupby("campaign")["setting"].first()
        codes = range(len(self.log.campaigns))
        return [
            self._facts(code, self.log.settings[shown[code]] if code in shown else None)
            for code in codes
        ]

    def _facts(self, code: int, settings: Settings | None) -> CampaignFacts:
        one, expected, block = self.log.campaigns[code], self.expected, self.blocks[code]
        facts = CampaignFacts(one.organization, one.name)
        if expected is not None and block is not None:
            owner = expected.world.organizations[block.organization]
            facts = CampaignFacts(owner.name, block.name)
        if self.over[code] != FAR:
            facts.ends = ((int(self.over[code]) + 1, "C3"),)
        request = None if expected is None else expected.request(code)
        if block is not None and request is not None:
            facts.voices = frozenset(request.tts_voice_keys or (block.agent.voice_key,))
            facts.caller_ids = frozenset(request.caller_ids) if request.caller_ids else None
        end_at, windows = None, None
        if settings is not None:
            facts.start_at, end_at, windows = settings.start_at, settings.end_at, settings.windows
            facts.max_attempts = settings.max_attempts
            facts.retry_interval = settings.retry_interval
        elif expected is not None and request is not None:
            facts.start_at, end_at = expected.start_at(code), request.end_date_time
            windows = request.weekday_ranges
            facts.max_attempts = request.max_attempts
            facts.retry_interval = request.retry_interval
        facts.first_due = facts.start_at
        if block is not None and block.continues:  # C1
            facts.first_due = block.schedule.start_date_time if block.schedule else None
        if windows and all(
            1 <= span.day <= 7 and 0 <= span.start < span.end <= 1440 for span in windows
        ):
            facts.hours = OpeningHours(windows)
        end = FAR if end_at is None else end_at
        facts.ends += ((end, "C7"),)
        # Another dialler's table may lack the attempts of a history; no retry is demanded then.
        if self.is_complete or not (block is not None and block.continues):
            facts.horizon = min(end, int(self.created[self.campaign == code].max(initial=-1)))
        return facts

    @cached_property
    def over(self) -> NDArray[np.int64]:
        """Instant of the first body that shows each campaign as final; `FAR` if none does.

        The last entry is for campaign -1, which bodies of unknown calls have.
        """
        over = np.full(len(self.log.campaigns) + 1, FAR)
        if len(self.log.bodies):
            sent = self.body("sent_at")
            shown = self.is_shown_final & (sent != NOT_HAPPENED)
            np.minimum.at(over, self.body("campaign")[shown], sent[shown])
        return over

    @cached_property
    def is_shown_final(self) -> Mask:
        """Bodies that show their campaign as final."""
        final = {status.value for status in CampaignStatus if status.final}
        is_final = np.array([one.status in final for one in self.log.settings], dtype=bool)
        shown: Mask = is_final[self.body("setting")]
        return shown

    @cached_property
    def shared_lines(self) -> list[SharedLines]:  # type: ignore[override]
        """Lines of each organization, or of each agent where no organization is known.

        Their number comes from the scenario, or from bodies if all show the same one.
        """
        # If a table names no organizations, its campaigns belong to a single one.
        owners = pd.Series(
            [
                facts.organization or one.agent_id or one.id or ""
                for facts, one in zip(self.campaigns, self.log.campaigns, strict=True)
            ]
        )
        return [self._lines([*codes]) for codes in owners.groupby(owners).groups.values()]

    def _lines(self, codes: list[int]) -> SharedLines:
        if self.expected is not None and (most := max(map(self.expected.most_lines, codes))):
            text = "the scenario has maxConcurrentCalls"
            return SharedLines(codes, lambda at: np.full(len(at), most), text)
        ids = {self.log.campaigns[code].id for code in codes}
        shown = {one.max_concurrent_calls for one in self.log.settings if one.id in ids}
        limit = shown.pop() if len(shown) == 1 else None
        if not limit:
            return SharedLines(codes, None, "")
        here = np.isin(self.campaign, codes) & (self.ended != NOT_HAPPENED)
        # Earlier the limit may have been another one, changed before the first body was sent.
        since = int(self.ended[here].min(initial=FAR)) + LONGEST_RING_MS
        text = "every body says maxConcurrentCalls"
        return SharedLines(codes, lambda at: np.where(at > since, limit, FAR), text)

    @cached_property
    def dials(self) -> DialRows:  # type: ignore[override]
        """The dial of each call: its instant from a table, or limits of its instant from bodies."""
        if self.is_table:
            call = np.flatnonzero(self.initiated != NOT_HAPPENED)
            since = until = self.initiated[call]
        else:
            latest = np.where(self.started != NOT_HAPPENED, self.started, self.ended)
            call = np.flatnonzero(self.is_counted & (latest != NOT_HAPPENED))
            since, until = latest[call] - LONGEST_RING_MS, latest[call] - 1
        over = np.where(self.is_counted, self.ended, NOT_HAPPENED)[call]
        caller_id, voice = (
            self.log.calls[name].astype(object).to_numpy()[call]
            for name in ("caller_id", "voice_key")
        )
        stands = np.ones(len(call), dtype=bool)
        return DialRows(call, since, until, over, caller_id, voice, stands)

    @cached_property
    def stays(self) -> QueueStays:  # type: ignore[override]
        """The last stay of each call in the queue, as far as it is known."""
        lost, known = self.is_lost, self.queued != NOT_HAPPENED
        call = np.flatnonzero(known | lost)
        lost, known = lost[call], known[call]
        queued, dialled, ended = self.queued[call], self.initiated[call], self.ended[call]
        is_dialled = ~lost & (dialled >= queued)
        left = np.where(lost, ended, np.where(is_dialled, dialled, queued))
        # A call was in the queue at least in the millisecond before it was lost.
        since, until = np.where(known, queued, 0), np.where(known, queued, ended - 1)
        way = np.select([lost, is_dialled], [LOST, DIALLED], WITHDRAWN)
        return QueueStays(call, since, until, left, way)

    # -- people ----------------------------------------------------------------------------------

    @cached_property
    def sequence(self) -> Indices:
        """Calls in the order of each person's calls, without unknown and unsure people."""
        if self.is_table:
            return super().sequence
        ended = self.ended != NOT_HAPPENED
        order = self._by_end(ended & (self.is_counted | self.is_lost))
        unsure = np.isin(self.campaign[order], [*self.unsure])
        return order[~unsure & ~np.isin(self.person[order], self.unsure_people)]

    def _by_end(self, kept: Mask) -> Indices:
        rows = np.flatnonzero(kept & (self.person >= 0))
        return rows[np.lexsort((self.ended[rows], self.person[rows]))]

    @cached_property
    def shown_attempts(self) -> NDArray[np.int64]:
        """Smallest callAttempt in bodies of each call, or its attempt in a table; -1 if unknown."""
        if self.is_table:
            return self.attempt
        shown = np.full(len(self.person), FAR)
        np.minimum.at(shown, self.body("call"), self.body("shown_attempts"))
        return np.where(shown == FAR, -1, shown)

    @cached_property
    def _doubtful(self) -> Indices:
        """Calls that cannot be of the same person as the call before, despite equal values."""
        ended = self.ended != NOT_HAPPENED
        if self.expected is not None:
            ended &= ~np.isin(self.campaign, self.expected.without_twins())
        order = self._by_end(ended)
        one, two = order[:-1], order[1:]
        shown = self.shown_attempts
        doubt = (self.ended[one] == self.ended[two]) | (shown[two] < shown[one])
        doubt |= self.is_counted[one] & self.is_counted[two] & (shown[one] == shown[two])
        doubt &= self.person[one] == self.person[two]
        doubtful: Indices = two[doubt]
        return doubtful

    @cached_property
    def unsure_people(self) -> Indices:
        """People who may be several people with the same values."""
        if self.is_table:
            return np.empty(0, dtype=np.int64)
        return np.unique(self.person[self._doubtful])

    @cached_property
    def unsure(self) -> dict[int, str]:
        """Campaigns that may list many people twice, with the reason."""
        if self.is_table:
            return {}
        found: dict[int, str] = {}
        if self.expected is not None:
            reason = "the scenario lists people twice with the same values"
            known = (code for code, one in enumerate(self.expected.blocks) if one is not None)
            found = dict.fromkeys({*known} - {*self.expected.without_twins()}, reason)
        people = pd.DataFrame({"person": self.person, "campaign": self.campaign})
        again = people[people.duplicated("person") & (self.person >= 0)].drop_duplicates("person")
        several = again["campaign"].value_counts()
        doubtful = people.loc[self._doubtful].assign(line=self.line[self._doubtful])
        for code in range(len(self.log.campaigns)):
            lines = doubtful[doubtful["campaign"] == code].drop_duplicates("person")["line"]
            if len(lines) > max(_FEW_UNSURE, _UNSURE_SHARE * several.get(code, 0)):
                text = f"people may be listed twice: calls of {len(lines)} people show it"
                found.setdefault(code, f"{text} (line {lines.iloc[0]})")
        return found

    # -- bodies ----------------------------------------------------------------------------------

    def location(self, call: int) -> dict[str, Any]:
        """Return the id of a call, and the line of its first body."""
        return {"call_id": str(self.call_id[call]), "line": int(self.line[call])}

    def body(self, name: str) -> NDArray[Any]:
        """Return a column of the bodies."""
        if name not in self._bodies:
            self._bodies[name] = self.log.bodies[name].to_numpy()
        return self._bodies[name]

    def marked(self, *marks: int) -> Mask:
        """Return True for each body that has all of these marks."""
        wanted = sum(marks)
        marked: Mask = (self.body("marks") & wanted) == wanted
        return marked

    def of_bodies(
        self, rule: str, wrong: Rows, text: str, at: str = "ended_at", **values: Any
    ) -> Iterator[Violation]:
        """Yield a violation per wrong body; braces in `text` name columns of bodies or `values`."""
        instants, calls, campaigns = self.body(at), self.body("call"), self.body("campaign")
        for row in self.listed(rule, wrong):
            call, one = int(calls[row]), self.log.campaigns[campaigns[row]]
            yield Violation(
                rule=rule,
                organization=one.organization if call >= 0 else None,
                campaign=one.name if call >= 0 else None,
                recipient=None,
                call=None,
                at=None if instants[row] == NOT_HAPPENED else int(instants[row]),
                text=text.format_map(ShownRow(row, lambda name: self._shown(name, values))),
                call_id=str(self.call_id[call]) if call >= 0 else None,
                line=int(self.body("line")[row]),
            )

    def _shown(self, name: str, values: Mapping[str, Any]) -> Any:
        if name in values:
            return values[name]
        column = self.body(name)
        return names_of(column) if name in {"status", "shown_status"} else column


class Expected:
    """Scenario that a log should follow, with its campaigns matched to the campaigns of the log.

    `blocks` has the scenario's campaign for each campaign of the log, None without a match.
    """

    def __init__(self, scenario: Scenario, campaigns: tuple[CampaignOfLog, ...]) -> None:
        self.world = World(scenario)
        self.blocks = [self._block(one) for one in campaigns]

    def _block(self, one: CampaignOfLog) -> CampaignBlock | None:
        """Find a campaign by id, else by name if only one campaign has that name."""
        all_of_them = [block for owner in self.world.organizations for block in owner.campaigns]
        named = [
            block
            for block in all_of_them
            if one.name in {None, block.name}
            and one.organization in {None, self.world.organizations[block.organization].name}
        ]
        by_id = [block for block in all_of_them if block.id == one.id]
        found = by_id or named
        return found[0] if len(found) == 1 else None

    def owner(self, code: int) -> OrganizationBlock | None:
        """Return the organization of a campaign of the log."""
        block = self.blocks[code]
        return None if block is None else self.world.organizations[block.organization]

    def most_lines(self, code: int) -> int:
        """Return the most lines that the organization of a campaign ever has, 0 if unknown."""
        owner = self.owner(code)
        return 0 if owner is None else max(owner.settings.limits)

    def request(self, code: int) -> ScheduleRequest | None:
        """Return the request of a campaign of the log, None if the scenario makes several."""
        block, owner = self.blocks[code], self.owner(code)
        if block is None or owner is None:
            return None
        others = [
            action for action in owner.settings.timeline
            if action.action == "schedule" and action.campaign == block.name
        ]  # fmt: skip
        return None if others else block.schedule

    def start_at(self, code: int) -> int | None:
        """Return the effective start of a campaign of the log (C1)."""
        block, request = self.blocks[code], self.request(code)
        if block is None or request is None:
            return None
        asked = (
            self.world.scenario.clock.start if block.scheduled_at is None else block.scheduled_at
        )
        return max(asked, request.start_date_time)

    def without_twins(self) -> list[int]:
        """Return the campaigns of the log that list no two people with the same values."""
        codes = range(len(self.blocks))
        return [code for code in codes if self.blocks[code] and not self.lists_twice(code)]

    def lists_twice(self, code: int) -> bool:
        """True if a campaign of the log may list two people with equal values."""
        block = self.blocks[code]
        if block is None:
            return True
        seen: Counter[bytes] = Counter(
            orjson.dumps(
                (tel, name, dict(block.people.agent_params(row))), option=orjson.OPT_SORT_KEYS
            )
            for row, (tel, name) in enumerate(
                zip(block.people.tels(), block.people.customer_names(), strict=True)
            )
        )
        return any(count > 1 for count in seen.values())


SHOWN_DAMAGES = 10
"""Damaged lines that are printed; JSON has all that are kept."""
_ENDS = (CallStatus.COMPLETED, CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)


@dataclass(frozen=True, slots=True)
class CampaignContents:
    """Contents of one campaign; `by_attempt` counts calls by attempt and status.

    `people` is the number of distinguishable people, `gaps` of attempts missing before later ones.
    """

    id: str | None
    name: str | None
    agent: str | None
    calls: int
    people: int
    first: str | None
    last: str | None
    by_status: dict[str, int]
    by_attempt: dict[int, dict[str, int]]
    gaps: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a log."""

    source: str
    form: str
    bodies: int
    calls: int
    campaigns: tuple[CampaignContents, ...]
    duplicates: int
    re_analyses: int
    masked: int
    old_form: int
    not_received: int
    damaged: int
    damages: tuple[Damage, ...]
    unknown_fields: dict[str, int]
    can_estimate: tuple[str, ...]
    cannot_estimate: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        document = asdict(self)
        document["damages"] = [one._asdict() for one in self.damages]
        for campaign in document["campaigns"]:
            campaign["by_attempt"] = {str(k): v for k, v in campaign["by_attempt"].items()}
        return document


def contents(log: Log) -> Contents:
    """Summarize a log."""
    table = LogTable(log)
    marks = table.body("marks") if len(log.bodies) else np.empty(0, dtype=np.int32)
    estimates = [*_estimates(table)]
    return Contents(
        source=log.source,
        form=log.form,
        bodies=len(log.bodies),
        calls=len(log.calls),
        campaigns=tuple(_campaign(table, code) for code in range(len(log.campaigns))),
        duplicates=log.duplicates,
        re_analyses=int(log.calls["re_analyses"].sum()),
        masked=int(log.calls["masked"].sum()),
        old_form=int(((marks & Mark.OLD_FORM) != 0).sum()),
        not_received=_not_received(log),
        damaged=log.damaged,
        damages=log.damages,
        unknown_fields=dict(sorted(log.unknown_fields.items())),
        can_estimate=tuple(text for is_possible, text in estimates if is_possible),
        cannot_estimate=tuple(text for is_possible, text in estimates if not is_possible),
    )


def _not_received(log: Log) -> int:
    """Count the calls that have POSTs in the log, none of which was accepted."""
    if not len(log.bodies):
        return 0
    posted = log.bodies.loc[log.bodies["post"] > 0, "call"].unique()
    return int((~log.calls["received"].to_numpy()[posted[posted >= 0]]).sum())


def _campaign(table: LogTable, code: int) -> CampaignContents:
    log, here = table.log, table.campaign == code
    calls, one = log.calls[here], log.campaigns[code]
    times = np.concatenate([table.started[here], table.ended[here]])
    times = times[times != NO_INSTANT]
    by_status = calls["status"].value_counts()
    counts = pd.crosstab(calls["attempt"], calls["status"])
    return CampaignContents(
        id=one.id,
        name=one.name,
        agent=one.agent,
        calls=len(calls),
        people=int(calls["recipient"].nunique()),
        first=format_instant(int(times.min())) if len(times) else None,
        last=format_instant(int(times.max())) if len(times) else None,
        by_status={str(name): int(count) for name, count in by_status.items() if count},
        by_attempt={
            int(attempt): {str(name): int(count) for name, count in row.items() if count}
            for attempt, row in zip(counts.index.to_list(), counts.to_dict("records"), strict=True)
        },
        gaps=_gaps(table, here),
    )


def _gaps(table: LogTable, here: Any) -> int:
    """Count the attempts that the log lacks before the last attempt of each person."""
    known = here & (table.person >= 0) & (table.attempt > 0)
    people = pd.DataFrame({"person": table.person[known], "attempt": table.attempt[known]})
    by_person = people.groupby("person")["attempt"]
    # Attempts are numbered from 1, so a complete log has as many as the largest number.
    return int((by_person.max() - by_person.nunique()).clip(lower=0).sum())


def _estimates(table: LogTable) -> Iterator[tuple[bool, str]]:
    """Yield what a calibration can estimate, each with True if the log has the data for it."""
    calls, log = table.log.calls, table.log
    ended = calls["status"].isin([status.value for status in _ENDS])
    answered = calls["status"] == CallStatus.COMPLETED.value
    talked = calls["call_duration_ms"].notna()
    yield bool(ended.any()), "how calls end, by hour, day and attempt"
    yield bool((calls["attempt"] > 1).any()), "how people differ: who answers at later attempts"
    yield bool((answered & talked).any()), "how long conversations last"
    yield bool(calls["fields"].notna().any()), "which values the analyses find"
    yield bool(calls["funnel"].notna().any()), "how far conversations get in the funnel"
    yield (
        bool((calls["analysis"].isin(["no_conversation", "unavailable"])).any()),
        "how often an analysis has no result",
    )
    yield bool((answered & calls["sent_at"].notna()).any()), "how long analyses take"
    yield bool(calls["caller_id"].notna().any()), "which number was shown, and how numbers wear"
    yield log.has_dials, "how long a single call is set up and rings"
