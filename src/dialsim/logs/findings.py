"""Findings against a log, and the columns of a log as arrays for the checks that find them."""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsInt

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dialsim.conformance.calls import STATUSES
from dialsim.interface.instants import LAST_INSTANT, format_instant
from dialsim.interface.schedule import WeekdayRange
from dialsim.interface.status import CallStatus
from dialsim.logs.bodies import NO_INSTANT, OUTCOMES, Settings
from dialsim.logs.log import Log
from dialsim.scenario.calendar import range_text

Mask = NDArray[np.bool_]
Rows = Mask | NDArray[np.integer[Any]] | Sequence[int]
"""Rows of a table, by a mask or by their indices."""

# Findings listed per rule; further ones are only counted
MOST_LISTED = 100

FAR = 2**62
"""Later than all instants: stands for an instant that never comes, so that comparisons work."""

LONGEST_RING_MS = 600_000
"""Longest time (ms) from dial to answer or, if unanswered, to the end, where a log has no dials.

No telephone network lets a call ring for ten minutes.
"""


@dataclass(frozen=True, order=True, slots=True)
class Finding:
    """A violation of a rule in a log: instant (ms, None if unknown), call and description.

    `line` is the line of the body, 0 if the finding comes from a table of calls.
    """

    rule: str
    line: int
    campaign: str | None
    call_id: str | None
    at: int | None
    text: str


def instant(value: SupportsInt) -> str:
    """Return an instant as findings show it."""
    value = int(value)
    if value == NO_INSTANT:
        return "never"
    return format_instant(value) if 0 <= value <= LAST_INSTANT else f"{value} ms since 1970"


def week_text(windows: Iterable[WeekdayRange]) -> str:
    """Return time windows as findings show them: each range once, in order."""
    return ", ".join(
        f"day {day} {range_text((start, end))}" for day, start, end in sorted(set(windows))
    )


def milliseconds(column: Any) -> NDArray[np.int64]:
    """Return a column of instants in ms, `NO_INSTANT` for missing ones."""
    values: NDArray[np.int64] = (
        pd.to_datetime(column, utc=True).astype("datetime64[ms, UTC]").to_numpy("datetime64[ms]")
    ).astype(np.int64)
    return values


def outcomes_of(log: Log) -> NDArray[np.int64]:
    """Return how each call ended, as an index into `ENDINGS`; -1 for calls that are no attempt."""
    known = {status.value: code for status, code in OUTCOMES.items()}
    return np.array(log.calls["status"].astype(str).map(known).fillna(-1), dtype=np.int64)


def people_of(calls: pd.DataFrame) -> NDArray[np.int64]:
    """Return the person of each call; each masked call counts as another person."""
    person: NDArray[np.int64] = calls["recipient"].fillna(-1).to_numpy(np.int64)
    masked = np.flatnonzero(person < 0)
    person[masked] = person.max(initial=-1) + 1 + masked
    return person


def codes(*statuses: CallStatus) -> list[int]:
    """Return the indices of statuses in `STATUSES`."""
    return [STATUSES.index(status) for status in statuses]


class LogColumns:
    """The columns of a log as arrays, for checks.

    A scenario adds, by campaign: `most_lines`, the most lines there may be; `expected_settings`,
    for campaigns of which no body shows any; `told_apart`, the campaigns in which no two people
    have the same values; `listed_twice`, those in which somebody is listed twice;
    `several_numbers`, those that have several caller IDs.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self.most_lines: Mapping[int, int] = {}
        self.told_apart: Collection[int] = ()
        self.expected_settings: Mapping[int, Settings] = {}
        self.listed_twice: Collection[int] = ()
        self.several_numbers: Collection[int] = ()
        # Findings that are counted but not listed, by rule
        self.omitted: Counter[str] = Counter()
        self._bodies: dict[str, NDArray[Any]] = {}
        self._instants: dict[str, NDArray[np.int64]] = {}

    def has(self, *names: str) -> bool:
        """True if the log is a table of calls with these columns."""
        return bool(self.log.columns) and self.log.columns >= {*names}

    def body(self, name: str) -> NDArray[Any]:
        """Return a column of the bodies."""
        if name not in self._bodies:
            self._bodies[name] = self.log.bodies[name].to_numpy()
        return self._bodies[name]

    def marked(self, mark: int) -> Mask:
        """Return which bodies have this mark."""
        said: Mask = (self.body("marks") & int(mark)) != 0
        return said

    @cached_property
    def _call_ids(self) -> NDArray[Any]:
        ids: NDArray[Any] = self.log.calls["call_id"].to_numpy()
        return ids

    def call_id(self, row: int) -> str:
        """Return the id of a call."""
        return str(self._call_ids[row])

    def line(self, row: SupportsInt) -> int:
        """Return the line of a body."""
        return int(self.body("line")[int(row)])

    def instants(self, name: str) -> NDArray[np.int64]:
        """Return a column of instants of the calls, in ms."""
        if name not in self._instants:
            self._instants[name] = milliseconds(self.log.calls[name])
        return self._instants[name]

    @cached_property
    def status(self) -> NDArray[np.int8]:
        """Status of each call, as an index into `STATUSES`; -1 if unknown."""
        texts = self.log.calls["status"].astype(str)
        places = {status.value: code for code, status in enumerate(STATUSES)}
        status: NDArray[np.int8] = texts.map(places).fillna(-1).to_numpy().astype(np.int8)
        return status

    @cached_property
    def recipient(self) -> NDArray[np.int64]:
        """Person called, -1 if unknown."""
        return self.log.calls["recipient"].to_numpy(dtype=np.int64, na_value=-1)

    @cached_property
    def attempt(self) -> NDArray[np.int64]:
        """Number of the attempt, 0 if the call is none."""
        return self.log.calls["attempt"].to_numpy(dtype=np.int64, na_value=0)

    @cached_property
    def campaign(self) -> NDArray[np.int32]:
        """Campaign of each call, as an index."""
        return self.log.calls["campaign"].to_numpy()

    @cached_property
    def is_counted(self) -> Mask:
        """Flags of the calls that count as attempts (P5): dialled and ended."""
        both = (self.instants("initiated_at") != NO_INSTANT) & (
            self.instants("ended_at") != NO_INSTANT
        )
        counted: Mask = (outcomes_of(self.log) >= 0) | ((self.status < 0) & both)
        return counted

    @cached_property
    def was_reached(self) -> Mask:
        """Flags of the calls that were answered (R3)."""
        answered = codes(CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED)
        started = (self.status < 0) & (self.instants("started_at") != NO_INSTANT)
        reached: Mask = np.isin(self.status, answered) | started
        return reached

    @cached_property
    def is_queue_timeout(self) -> Mask:
        """Flags of the calls lost in the queue (Q5): of cancelled calls, only these have an end."""
        cancelled = self.status == STATUSES.index(CallStatus.CANCELLED)
        lost: Mask = cancelled & (self.instants("ended_at") != NO_INSTANT)
        return lost

    @cached_property
    def settings(self) -> list[Settings | None]:
        """Settings of each campaign as the first body that has them shows; None if no body does."""
        log = self.log
        found: list[Settings | None] = [None] * len(log.campaigns)
        pairs = log.calls[["campaign", "setting"]].drop_duplicates().itertuples(index=False)
        for campaign, setting in pairs:
            if setting >= 0 and found[campaign] is None:
                found[campaign] = log.settings[setting]
        return [one or self.expected_settings.get(code) for code, one in enumerate(found)]

    def setting(self, read: Callable[[Settings], int | None], otherwise: int) -> NDArray[np.int64]:
        """Return a number of the settings for each call; `otherwise` if it is not known."""
        values = [None if one is None else read(one) for one in self.settings]
        filled = [otherwise if value is None else value for value in values]
        return np.array([*filled, otherwise], dtype=np.int64)[self.campaign]

    def _listed(self, rule: str, wrong: Rows) -> list[int]:
        """Return the first rows up to `MOST_LISTED`, and count the others."""
        given = np.asarray(wrong)
        rows = (np.flatnonzero(given) if given.dtype == np.bool_ else np.sort(given)).tolist()
        self.omitted[rule] += max(0, len(rows) - MOST_LISTED)
        return rows[:MOST_LISTED]

    def of_texts(self, rule: str, texts: Sequence[tuple[int, str]]) -> Iterator[Finding]:
        """Yield a finding per body and text, up to the limit per rule."""
        for index in self._listed(rule, range(len(texts))):
            row, text = texts[index]
            yield from self.of_bodies(rule, [row], text)

    def of_bodies(
        self,
        rule: str,
        wrong: Rows,
        text: Callable[[int], str] | str,
        at: str = "ended_at",
    ) -> Iterator[Finding]:
        """Yield a finding per wrong body, up to the limit per rule."""
        instants, calls, campaigns = self.body(at), self.body("call"), self.body("campaign")
        for row in self._listed(rule, wrong):
            said = text if isinstance(text, str) else text(row)
            call = int(calls[row])
            yield Finding(
                rule=rule,
                line=self.line(row),
                campaign=self.log.campaigns[campaigns[row]].name if call >= 0 else None,
                call_id=self.call_id(call) if call >= 0 else None,
                at=_known(instants[row]),
                text=said,
            )

    def of_calls(
        self, rule: str, wrong: Rows, at: NDArray[np.int64], text: Callable[[int], str] | str
    ) -> Iterator[Finding]:
        """Yield a finding per wrong call, up to the limit per rule."""
        lines = self.log.calls["line"].to_numpy()
        for row in self._listed(rule, wrong):
            said = text if isinstance(text, str) else text(row)
            yield Finding(
                rule=rule,
                line=int(lines[row]),
                campaign=self.log.campaigns[self.campaign[row]].name,
                call_id=self.call_id(row),
                at=_known(at[row]),
                text=said,
            )


def _known(value: SupportsInt) -> int | None:
    return None if int(value) == NO_INSTANT else int(value)
