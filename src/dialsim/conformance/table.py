"""Tables of calls, campaigns and lines on which rules are checked, and violations of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from types import ModuleType
from typing import Any, NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from dialsim.errors import DialsimError
from dialsim.interface import CallStatus
from dialsim.interface.arguments import checked
from dialsim.interface.instants import (
    DAY,
    LAST_INSTANT,
    MINUTE,
    WEEK,
    date_text,
    format_instant,
    thai,
)

Instants = NDArray[np.int64]
Mask = NDArray[np.bool_]

# 1 January 1970 was a Thursday; Thai time is UTC+7.
_THURSDAY_TO_MONDAY = 3 * DAY + 7 * 60 * MINUTE


class OpeningHours:
    """Time windows of a week. Arguments and results are instants in ms UTC, int64."""

    def __init__(self, windows: Iterable[tuple[int, int, int]]) -> None:
        """Each window is a day (1 is Monday), and a start and an end in minutes after midnight."""
        # A table of minutes shares no arithmetic with the engine's intervals, which it checks. The
        # extra entry at its end closes Sunday.
        open_minutes = np.zeros(WEEK // MINUTE + 1, dtype=np.int8)
        for day, start, end in windows:
            midnight = (day - 1) * DAY // MINUTE
            open_minutes[midnight + start : midnight + end] = 1
        edges = np.diff(open_minutes, prepend=np.int8(0))
        self._starts = np.flatnonzero(edges == 1) * MINUTE
        self._ends = np.flatnonzero(edges == -1) * MINUTE

    def are_open(self, at: Instants) -> Mask:
        """Return True for instants at which calls may start."""
        position = _week_position(at)
        after = np.searchsorted(self._starts, position, side="right")
        return after > np.searchsorted(self._ends, position, side="right")

    def next_close(self, at: Instants) -> Instants:
        """Return the first closed instant at or after each instant."""
        position = _week_position(at)
        # Instants after the last window get the end of the week, which is not used: they are
        # closed.
        ends = np.append(self._ends, WEEK)
        closes = at + ends[np.searchsorted(self._ends, position, side="right")] - position
        return np.where(self.are_open(at), closes, at)

    def next_open(self, at: Instants) -> Instants:
        """Return the first open instant at or after each instant; the largest int64 without one."""
        if not len(self._starts):
            return np.full(len(at), np.iinfo(np.int64).max)
        position = _week_position(at)
        # After the last window of a week the first one of the next week opens.
        starts = np.append(self._starts, self._starts[0] + WEEK)
        opens = at + starts[np.searchsorted(self._starts, position, side="left")] - position
        return np.where(self.are_open(at), at, opens)

    def next_release(self, at: Instants, until: Instants, origin: int, interval: int) -> Instants:
        """Return the first open release instant, origin + k × interval, at or after each of `at`
        (Q2). Where none comes before `until`, the result is some instant at or after `until`.
        """
        found = _on_grid(at, origin, interval)
        searched = np.flatnonzero((found < until) & ~self.are_open(found))
        while len(searched):
            found[searched] = _on_grid(self.next_open(found[searched]), origin, interval)
            ahead = found[searched] < until[searched]
            searched = searched[ahead & ~self.are_open(found[searched])]
        return found


def _week_position(at: Instants) -> Instants:
    """Return the ms since Monday 00:00, Thai time."""
    return (at + _THURSDAY_TO_MONDAY) % WEEK


def _on_grid(at: Instants, origin: int, interval: int) -> Instants:
    """Return the first instant at or after each of `at` that is origin + k × interval, k ≥ 0."""
    steps = -((origin - at) // interval)
    return origin + np.maximum(steps, 0) * interval


Indices = NDArray[Any]
Rows = Mask | Indices | Sequence[int]
"""Rows of a table, by a mask or by their indices."""

STATUSES = tuple(CallStatus)
NOT_HAPPENED = np.iinfo(np.int64).min
"""Instant of an event that has not happened or is unknown; its bits equal pandas' NaT."""
# Not the largest int64: intervals are added to it, which must not overflow.
FAR = 2**62
"""Instant later than all others, for events that never come."""


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class Violation:
    """Violation of a rule of the rule book (`docs/rules.md`).

    `campaign`, `recipient` (position from 0) and `call` (from 1) are None where they are unknown,
    or where all calls of an organization, a campaign or a person violate the rule together. `at` is
    in ms, UTC. In a log `call_id` is the call's id, and `line` the line of its body; 0 in a table
    of calls.
    """

    rule: str
    organization: str | None
    campaign: str | None
    recipient: int | None
    call: int | None
    at: int | None
    text: str
    call_id: str | None = None
    line: int = 0

    def __str__(self) -> str:
        where = "/".join(name for name in (self.organization, self.campaign) if name)
        if self.recipient is not None:
            where += f" recipient {self.recipient}"
        if self.call is not None:
            where += f" call {self.call}"
        when = ""
        if self.at is not None:
            clock = f"{thai(self.at):%H:%M:%S}.{self.at % 1000:03}"
            when = f" at {date_text(self.at)} {clock} (Thai time)"
        return f"{self.rule}{when}, {where}: {self.text}"


@dataclass
class CampaignFacts:
    """Settings of a campaign that rules need; None if a setting is unknown.

    `first_due` is the instant at which first calls are due (C1), from which release instants are
    counted. `ends` has instants from which on no call is made, released or dialled, each with the
    number of its rule. A retry that falls due before `horizon` must be in the table.
    """

    organization: str | None
    name: str | None
    hours: OpeningHours | None = None
    start_at: int | None = None
    first_due: int | None = None
    max_attempts: int | None = None
    retry_interval: int | None = None
    caller_ids: frozenset[str | None] | None = None
    voices: frozenset[str | None] | None = None
    ends: tuple[tuple[int, str], ...] = ()
    horizon: int = NOT_HAPPENED


@dataclass
class SharedLines:
    """Lines that several campaigns share (Q1).

    `campaigns` are indices. `limits` returns the number of lines in each instant, and is None if
    the number is unknown. `source` introduces the number in texts of violations.
    """

    campaigns: Sequence[int]
    limits: Callable[[Instants], Instants] | None
    source: str


class DialRows(NamedTuple):
    """Dials, including withdrawn ones.

    Each took place at an instant from `since` to `until`, both included. Its line is free again at
    `over`. `caller_id` and `voice` are texts, None if unknown. `stands` is False for a dial that
    was withdrawn.
    """

    call: Indices
    since: Instants
    until: Instants
    over: Instants
    caller_id: NDArray[Any]
    voice: NDArray[Any]
    stands: Mask


LOST, DIALLED, WITHDRAWN, WINDOW_CLOSED, WAITS = range(5)
"""Ways in which a call leaves the queue. `WAITS`: it is still in the queue at the end of a run."""


class QueueStays(NamedTuple):
    """Stays of calls in the queue.

    Each began at an instant from `since` to `until`, both included, and ended at `left`. `way` is
    how the call left the queue (`LOST`, `DIALLED`, …).
    """

    call: Indices
    since: Instants
    until: Instants
    left: Instants
    way: Indices


class CheckedCalls:
    """Calls of a run or of a log as columns with a row per call, and side tables.

    `person` numbers people over all campaigns, -1 if unknown; `recipient` is the position in the
    list of the campaign, -1 if unknown. Statuses are indices into `STATUSES`, -1 if unknown.
    `past_attempts` and `past_reached` are taken from the history of the call's person.

    `missing` has the needs of rules that the table does not meet, each with the reason.
    """

    campaigns: Sequence[CampaignFacts]
    shared_lines: Sequence[SharedLines]
    missing: dict[str, str]
    campaign: Indices
    person: Indices
    recipient: Indices
    call_no: Indices
    attempt: Indices
    status: Indices
    created: Instants
    queued: Instants
    initiated: Instants
    ringing: Instants
    started: Instants
    ended: Instants
    past_attempts: Indices | int = 0
    past_reached: Mask | bool = False
    dials: DialRows
    stays: QueueStays
    queue_timeout: int = 0
    release_interval: int = 0
    dial_gap: int = 0
    """Minimum time between two dials of an organization, in ms (Q4)."""
    is_complete: bool = True
    """True if every call and every instant is in the table, as in a trace."""
    most_listed: int | None = None
    """Number of violations of a kind that are listed, None for all; `omitted` counts the others."""

    def __init__(self) -> None:
        self.omitted: Counter[str] = Counter()

    @cached_property
    def is_lost(self) -> Mask:
        """Calls lost in the queue (Q5): of cancelled calls, only these have an end."""
        has_end: Mask = self.ended != NOT_HAPPENED
        return has_end & self.has_status(CallStatus.CANCELLED)

    @cached_property
    def is_unanswered(self) -> Mask:
        """Calls that were dialled, ended, and were not answered."""
        return self.has_status(CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)

    @cached_property
    def is_reached(self) -> Mask:
        """Calls that were answered (R3)."""
        reached: Mask = self.has_status(CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED)
        reached |= (self.status < 0) & (self.started != NOT_HAPPENED)
        return reached

    @cached_property
    def is_counted(self) -> Mask:
        """Calls that count as attempts (P5): dialled and ended."""
        counted: Mask = (self.initiated != NOT_HAPPENED) & (self.ended != NOT_HAPPENED)
        return (counted & (self.status < 0)) | self.is_unanswered | self.is_reached

    def has_status(self, *statuses: CallStatus) -> Mask:
        """Return True for calls with one of these statuses."""
        has = np.zeros(len(STATUSES) + 1, dtype=bool)  # the last entry is for status -1
        has[[STATUSES.index(one) for one in statuses]] = True
        return has[self.status]

    @cached_property
    def sequence(self) -> Indices:
        """Calls sorted by person and number of the call; without calls of unknown people."""
        order = np.lexsort((self.call_no, self.person))
        return order[self.person[order] >= 0]

    @cached_property
    def follows(self) -> tuple[Indices, Indices]:
        """Pairs of consecutive calls of a person: the earlier calls, and the later ones."""
        one, two = self.sequence[:-1], self.sequence[1:]
        same = self.person[one] == self.person[two]
        return one[same], two[same]

    @cached_property
    def attempts(self) -> Instants:
        """Number of the person's attempts up to and including each call, with the history (P5)."""
        order, total = self.sequence, np.zeros(len(self.person), dtype=np.int64)
        counted = np.concatenate([[0], np.cumsum(self.is_counted[order], dtype=np.int64)])
        person = self.person[order]
        total[order] = counted[1:] - counted[np.searchsorted(person, person)]
        return total + self.past_attempts

    @property
    def moves(self) -> tuple[tuple[str, DialRows | QueueStays], ...]:
        """Dials and releases, each with its participle for texts of violations."""
        return ("dialled", self.dials), ("released", self.stays)

    def retry_due(self, call: Indices) -> Instants:
        """Return the instant at which the retry after each of these calls is due (R2)."""
        interval = self.of_campaigns(lambda one: one.retry_interval, 0)[call]
        return retry_due(self.ended[call], interval, self.status[call])

    def of_campaigns(self, read: Callable[[Any], int | None], otherwise: int) -> Instants:
        """Return the value of `read` for the campaign of each call; `otherwise` for None."""
        values = [otherwise if (value := read(one)) is None else value for one in self.campaigns]
        return np.array(values, dtype=np.int64)[self.campaign]

    def by_campaign(self, call: Indices) -> Iterator[tuple[CampaignFacts, Indices]]:
        """Yield each campaign with its rows of a side table; `call` is the table's column of call
        indices.
        """
        codes = self.campaign[call]
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(self.campaigns) + 1))
        for code, one in enumerate(self.campaigns):
            yield one, order[bounds[code] : bounds[code + 1]]

    def of_calls(
        self,
        rule: str,
        wrong: Rows,
        at: Instants,
        text: str,
        call: Indices | None = None,
        **values: NDArray[Any],
    ) -> Iterator[Violation]:
        """Yield a violation for each wrong row.

        `wrong` selects rows of the calls or, if `call` is given, of the side table that has `call`
        as its column of call indices. `at` and `values` are columns of the same table; the text
        names `values` in braces.
        """
        for row in self.listed(rule, wrong):
            index = row if call is None else int(call[row])
            one = self.campaigns[self.campaign[index]]
            yield Violation(
                rule=rule,
                organization=one.organization,
                campaign=one.name,
                recipient=_known(self.recipient[index], -1),
                call=_known(self.call_no[index], 0),
                at=_known(at[row], NOT_HAPPENED),
                text=text.format_map(ShownRow(row, values.__getitem__)),
                **self.location(index),
            )

    def location(self, call: int) -> dict[str, Any]:  # noqa: ARG002 (only a log has one)
        """Return the fields of a violation that locate a call in a log; none for a run."""
        return {}

    def listed(self, rule: str, wrong: Rows) -> list[int]:
        """Return the first `most_listed` of the wrong rows, and count the others in `omitted`."""
        given = np.asarray(wrong)
        rows = (np.flatnonzero(given) if given.dtype == np.bool_ else np.sort(given)).tolist()
        if self.most_listed is not None:
            self.omitted[rule] += max(0, len(rows) - self.most_listed)
        return rows[: self.most_listed]


def retry_due(
    ended_at: Instants,
    retry_interval: Instants | int,
    status: Indices,  # noqa: ARG001 (an interval by status is a common wish)
) -> Instants:
    """Return the instant at which the retry after each call is due (R2)."""
    return ended_at + retry_interval


def dial_gap(calls_per_second: float | None) -> int:
    """Return the minimum time between two dials, in ms (Q4)."""
    # Parsed from the text, because 0.1 as a float is slightly more than a tenth.
    return 0 if calls_per_second is None else ceil(1000 / Fraction(str(calls_per_second)))


def of_campaign(
    rule: str, campaign: CampaignFacts, at: SupportsInt, text: str, recipient: int | None = None
) -> Violation:
    """Return a violation by a campaign, or by all calls of a person."""
    return Violation(rule, campaign.organization, campaign.name, recipient, None, int(at), text)


def instant(value: SupportsInt) -> str:
    """Return an instant as texts of violations show it."""
    value = int(value)
    if value == NOT_HAPPENED:
        return "never"
    return format_instant(value) if 0 <= value <= LAST_INSTANT else f"{value} ms since 1970"


def _known(value: SupportsInt, unknown: int) -> int | None:
    return None if int(value) == unknown else int(value)


def names_of(status: Indices) -> NDArray[Any]:
    """Return the names of statuses."""
    return np.array([*STATUSES, "unknown"], dtype=object)[status]


class ShownRow(dict[str, str]):
    """Values of one row by name of the column, formatted for texts of violations.

    Columns whose names end with `_at` are formatted as instants.
    """

    def __init__(self, row: int, read: Callable[[str], NDArray[Any]]) -> None:
        self._row, self._read = row, read

    def __missing__(self, name: str) -> str:
        value = self._read(name)[self._row]
        return instant(value) if name.endswith("_at") else str(value)


class Rule(NamedTuple):
    """Check of one or several rules of the rule book, as far as they can be seen in a table.

    `needs` are the columns and side tables that the check reads, named as in
    `CheckedCalls.missing`.
    """

    numbers: tuple[str, ...]
    needs: tuple[str, ...]
    find: Callable[[Any], Iterator[Violation]]

    @property
    def title(self) -> str:
        """Name of the check, which distinguishes it from other checks of the same rule."""
        return str(self.find.__name__).replace("_", " ")


def rule(numbers: str, *needs: str) -> Callable[[Callable[[Any], Iterator[Violation]]], Rule]:
    """Declare a check of the rules with these numbers, which are separated by blanks."""
    return lambda find: Rule(tuple(numbers.split()), needs, find)


def judge(
    table: CheckedCalls, *modules: ModuleType
) -> tuple[list[Violation], tuple[str, ...], list[tuple[str, str]]]:
    """Check a table against all rules that are declared in some modules.

    Returns the violations, the numbers of the rules checked, and the rules not checked with
    reasons.
    """
    found: list[Violation] = []
    checked: set[str] = set()
    lacking: dict[str, list[tuple[str, Rule]]] = {}
    for module in modules:
        for one in vars(module).values():
            if not isinstance(one, Rule):
                continue
            need = next((need for need in one.needs if need in table.missing), None)
            if need is None:
                found += one.find(table)
                checked.update(one.numbers)
            else:
                lacking.setdefault(table.missing[need], []).append((need, one))
    listed, unchecked = {*checked}, []
    for reason, rules in lacking.items():
        names = set[str]()
        for need, one in rules:
            # A rule that several reasons concern is listed with the first one.
            names |= {*one.numbers} - listed
            listed |= {*one.numbers}
            # A rule of which some checks were made is listed only if a column is missing, and then
            # with the titles of the checks not made.
            if need not in _NO_COLUMNS:
                names |= {f"{number} ({one.title})" for number in checked & {*one.numbers}}
        if names:
            unchecked.append((", ".join(sorted(names, key=_by_number)), reason))
    return found, tuple(sorted(checked, key=_by_number)), unchecked


_NO_COLUMNS = ("bodies", "changes", "engine", "lines", "log", "posts", "scenario", "settings")


def _by_number(name: str) -> tuple[str, int, str]:
    number = name.partition(" ")[0]
    return number[0], int(number[1:]), name
