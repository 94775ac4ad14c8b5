"""The summary: what a planner wants to know of a run, of each organization, and each campaign.

The names of the figures are public: goals, replications and `summary.json` use them as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dialsim.results.held_back import HeldBack
from dialsim.results.stream.figures import AnalysisFigures, WebhookFigures
from dialsim.results.thai_time import in_thai_time

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of a campaign, of an organization, or of the whole run.

    - finish: the instant at which everybody was settled by calling: that of COMPLETED (C3); of
      several campaigns, the last of them. None where a scheduled campaign is not final, or lost
      people. Webhooks and analyses don't count.
    - final_at: the instant of the campaign's final status, whatever became of its people; of
      several, the last of them; None while a scheduled campaign is not final.
    - calling_days: Thai dates on which at least one call was dialled.
    - people and people_…: recipients, each in exactly one state (`PersonState`); reach_share is
      reached ÷ people. people_lost are those expired or cancelled: the campaign ended before
      calling was done with them. people_removed left the list as duplicates (D3) and are not among
      people.
    - calls and its parts by end: calls_completed, calls_no_answer, calls_busy, calls_failed;
      queue_timeouts (Q5); calls_cancelled and calls_expired while waiting; calls_unfinished, still
      waiting or under way when the run ended. The parts add up to calls.
    - dials: every time a call became INITIATED; dials_withdrawn of them were dropped before they
      rang (C4, C6, C7). attempts: calls dialled and ended (P5); attempts_per_person_mean counts
      all people. What a history tells is not among calls, dials and attempts.
    - reach_by_attempt: share of people reached by attempt 1, by attempt 2, …, up to the last
      attempt that anybody made; here histories count.
    - slots_in_use_mean: mean number of slots in use while a window was open: from startAt to
      finish (or the end of the run), pauses included; of several campaigns, while any of them was.
      slots_in_use_peak: the most at any time. slots_capacity_share: slot time used in that open
      time, of the slot time that maxConcurrentCalls allowed in it (for a campaign too: of its
      organization's). It can exceed 1 where the limit was lowered during calls.
    - queue_wait_mean_seconds and queue_wait_p95_seconds: from QUEUED to the dial or the queue
      timeout; a wait that a closing window, a pause or the campaign's end broke off is not
      counted. The percentile interpolates linearly. None where nothing waited.
    - talk_minutes: conversations that ended. cost: all dials and conversations that ended; None
      (as is currency) where the scenario names no costs.
    - held_back: what took the time, of the campaign that finished last.
    - analyses and webhooks: what came of the conversations, and how results were delivered.
    """

    finish: datetime | None
    final_at: datetime | None
    calling_days: int
    people: int
    people_reached: int
    people_exhausted: int
    people_expired: int
    people_cancelled: int
    people_lost: int
    people_stalled: int
    people_pending: int
    people_unscheduled: int
    people_removed: int
    reach_share: float | None
    reach_by_attempt: tuple[float, ...]
    calls: int
    calls_completed: int
    calls_no_answer: int
    calls_busy: int
    calls_failed: int
    queue_timeouts: int
    calls_cancelled: int
    calls_expired: int
    calls_unfinished: int
    dials: int
    dials_withdrawn: int
    attempts: int
    attempts_per_person_mean: float | None
    slots_in_use_mean: float | None
    slots_in_use_peak: int
    slots_capacity_share: float | None
    queue_wait_mean_seconds: float | None
    queue_wait_p95_seconds: float | None
    talk_minutes: float
    cost: float | None
    currency: str | None
    held_back: HeldBack | None
    analyses: AnalysisFigures
    webhooks: WebhookFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSummary(Figures):
    """One campaign; `start` is its effective startAt (F3), None if it was never scheduled."""

    organization: str
    name: str
    status: str
    start: datetime | None


@dataclass(frozen=True, slots=True)
class Limit:
    """maxConcurrentCalls from an instant on."""

    at: datetime
    max_concurrent_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationSummary(Figures):
    """One organization, its limits over time, and its campaigns."""

    name: str
    limits: tuple[Limit, ...]
    campaigns: tuple[CampaignSummary, ...]


@dataclass(frozen=True, slots=True)
class RefusedAction:
    """What the file asked in vain, and the interface's answer."""

    at: datetime
    organization: str
    campaign: str | None
    action: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Figures):
    """The whole run.

    `end` is the last instant simulated, `cut` says that clock.end came before all was done.
    `unfinished` names the campaigns (`Organization/Name`) that were scheduled and have no finish:
    they are not final, or lost people. `stalled` names those for which nothing could ever happen
    again (T5).
    """

    scenario: str
    seed: int
    replication: int
    end: datetime
    cut: bool
    unfinished: tuple[str, ...]
    stalled: tuple[str, ...]
    refused: tuple[RefusedAction, ...]
    warnings: tuple[str, ...]
    organizations: tuple[OrganizationSummary, ...]

    @property
    def campaigns(self) -> tuple[CampaignSummary, ...]:
        """All campaigns, in the order of the scenario."""
        return tuple(part for owner in self.organizations for part in owner.campaigns)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: instants as text in UTC, and beside it in Thai time."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_json(self) -> bytes:
        """The bytes of `summary.json`."""
        import orjson

        return orjson.dumps(self.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def to_frame(self) -> pd.DataFrame:
        """A row for the run, for each organization, and for each campaign; a column per figure.

        `reach_by_attempt` is a column per attempt, and `held_back` its reason and sentence. The
        figures of `analyses` and `webhooks` have these words in front; of the funnel there is a
        column per step, while the values of fields are left out.
        """
        import pandas as pd

        frame = pd.DataFrame([*figure_rows(self)])
        instants = dict.fromkeys(("finish", "final_at"), pd.DatetimeTZDtype("ms", "UTC"))
        frame = frame.astype(instants)
        frame["currency"] = frame["currency"].astype("str")
        return frame.astype(dict.fromkeys(_MAY_BE_NONE, "float64"))

    def _repr_html_(self) -> str:
        from dialsim.results.summary_page import summary_html

        return summary_html(self)


def figure_rows(summary: Summary) -> Iterator[dict[str, Any]]:
    """The rows of `Summary.to_frame`: scope, organization and campaign, then the figures."""
    yield {"scope": "run", "organization": None, "campaign": None} | _flat(summary)
    for owner in summary.organizations:
        place = {"scope": "organization", "organization": owner.name, "campaign": None}
        yield place | _flat(owner)
        for campaign in owner.campaigns:
            place = {"scope": "campaign", "organization": owner.name, "campaign": campaign.name}
            yield place | _flat(campaign)


def _flat(figures: Figures) -> dict[str, Any]:
    """The figures as one row of a table."""
    row = {field.name: getattr(figures, field.name) for field in fields(Figures)}
    reach = row.pop("reach_by_attempt")
    held_back = row.pop("held_back")
    analyses, webhooks = row.pop("analyses"), row.pop("webhooks")
    row |= {f"reach_by_attempt_{number}": share for number, share in enumerate(reach, 1)}
    row["held_back"] = held_back.reason.value if held_back else None
    row["held_back_sentence"] = held_back.sentence if held_back else None
    parts = {"analyses": analyses, "webhooks": webhooks}
    row |= {
        f"{part}_{field.name}": getattr(figures, field.name)
        for part, figures in parts.items()
        for field in fields(figures)
        if field.name not in ("funnel", "fields")
    }
    row |= {f"funnel_{count.agent}_{count.step}": count.reached for count in analyses.funnel}
    return row


def _plain(value: Any) -> Any:
    """A value of the summary as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {}
        for name in _ordered(value):
            part = getattr(value, name)
            plain[name] = _plain(part)
            if name in _INSTANTS:
                plain[f"{name}_thai"] = _text(in_thai_time(part)) if part else None
        return plain
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, datetime):
        return _text(value.astimezone(UTC))
    return value.value if isinstance(value, StrEnum) else value


_MAY_BE_NONE = (
    "reach_share",
    "attempts_per_person_mean",
    "slots_in_use_mean",
    "slots_capacity_share",
    "queue_wait_mean_seconds",
    "queue_wait_p95_seconds",
    "cost",
)
_INSTANTS = ("finish", "final_at", "start", "end", "at")
_FIGURES = [field.name for field in fields(Figures)]


def _ordered(value: Any) -> list[str]:
    """The names of the fields: what it is, then its figures, then its parts."""
    names = [field.name for field in fields(value)]
    if not isinstance(value, Figures):
        return names
    own = [name for name in names if name not in _FIGURES]
    parts = [name for name in own if isinstance(getattr(value, name), tuple)]
    return [*(name for name in own if name not in parts), *_FIGURES, *parts]


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
