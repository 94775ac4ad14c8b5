"""Contents of a log: campaigns, calls by status and attempt, doubts, and possible estimates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from dialsim.interface import CallStatus
from dialsim.interface.instants import format_instant
from dialsim.logs.bodies import NO_INSTANT, Mark
from dialsim.logs.log import Damage, Log
from dialsim.logs.log_table import LogTable

SHOWN_DAMAGES = 10
"""Damaged lines that are printed; JSON has all that are kept."""
_ENDS = (CallStatus.COMPLETED, CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)


@dataclass(frozen=True, slots=True)
class CampaignContents:
    """Contents of one campaign; `by_attempt` counts calls by attempt and status.

    `people` are distinguishable people; `gaps` are attempts missing before later ones.
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
    """Count the calls whose POSTs in the log all failed to be accepted."""
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
    """Count the attempts before a person's last one that are not in the log."""
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
