"""Campaigns in scenario files: recipients, agent, and times.

A recipient may have a history, for forecasts that start in the middle of a campaign (P8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dialsim.interface import CallStatus
from dialsim.interface.model import broken, wrong
from dialsim.interface.schedule import ScheduleRequest
from dialsim.scenario.behaviour import ScriptText
from dialsim.scenario.calendar import DayClasses
from dialsim.scenario.fields import FixedId, Model, ParamValue, Phone, Shares, Switch, Text, Whole
from dialsim.scenario.service import Values
from dialsim.scenario.sheet import FileForm
from dialsim.scenario.units import Instant

MOST_ATTEMPTS = 1_000_000
"""Upper limit of attempts, larger than any real number.

Totals stay far below the range of their columns.
"""
REACHED = frozenset({CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED})  # R3
COUNTED = REACHED | {CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED}  # P5
_ENDED = COUNTED | {CallStatus.CANCELLED}  # F1: statuses with an end (Q5)


@dataclass(frozen=True, slots=True)
class Past:
    """State of a recipient at the start: counted attempts (P5) and end of the last call.

    `last_ended_at` is in ms UTC; `last_caller_id` is the caller ID of the last dialled call, if
    known.
    """

    call_attempt: int
    latest_call_status: CallStatus
    last_ended_at: int
    last_caller_id: str | None = None

    @property
    def reached(self) -> bool:
        """True if a call was answered (R3)."""
        return self.latest_call_status in REACHED


class History(Model):
    """Calls to a recipient before the scenario begins, with the interface's names."""

    call_attempt: Annotated[Whole, Field(ge=0, le=MOST_ATTEMPTS)] = Field(
        default=0, description="Attempts that were dialled and ended.", examples=[1]
    )
    latest_call_status: CallStatus | None = Field(
        default=None, description="Status of the newest call.", examples=["NO_ANSWER"]
    )
    last_ended_at: Instant | None = Field(
        default=None,
        description="When the last call ended; not later than clock.start.",
        examples=["2026-01-05T03:12:40Z"],
    )
    last_caller_id: Text | None = Field(
        default=None,
        description="The number that the last call came from: a retry avoids it.",
        examples=["021000002"],
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        wrong = contradiction(self.call_attempt, self.latest_call_status, self.last_ended_at)
        if wrong is not None:
            key, message = wrong
            raise broken(message, key)
        return self

    @property
    def past(self) -> Past | None:
        """State after the history; None without a call."""
        if self.last_ended_at is None or self.latest_call_status is None:
            return None
        return Past(
            self.call_attempt, self.latest_call_status, self.last_ended_at, self.last_caller_id
        )


def contradiction(
    call_attempt: int, status: CallStatus | None, last_ended_at: int | None
) -> tuple[str, str] | None:
    """Return the key at fault in an impossible history and the text of the fault; None if it is
    possible.

    An ended call has an end, and a dialled and ended call is an attempt. Calls not yet made, and
    expired ones, need neither.
    """
    if status in COUNTED and call_attempt == 0:
        return "callAttempt", f"must be 1 or more where latestCallStatus is {status}"
    if status is None and (call_attempt or last_ended_at is not None):
        return "latestCallStatus", "is required where there was a call"
    if last_ended_at is None and (call_attempt or status in _ENDED):
        return "lastEndedAt", "is required where there was a call"
    return None


MOST_SEGMENTS = 32_767
"""Upper limit of segments, given by the engine's 16-bit codes."""


class Codes:
    """Column of few distinct texts: each once, in order of appearance, and its index per row."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.codes: list[int] = []

    def append(self, text: str | None) -> None:
        """Append a row; None has code -1."""
        self.codes.append(-1 if text is None else self.texts.setdefault(text, len(self.texts)))

    def of(self, rows: Sequence[int]) -> Codes:
        """Return the texts of some rows."""
        texts, made = [*self.texts, None], Codes()
        for row in rows:
            made.append(texts[self.codes[row]])
        return made


@dataclass(slots=True)
class Normalized:
    """Number of normalized cells of a column, and the first of them: line of the file, text written
    and text read.
    """

    column: str
    count: int
    line: int
    written: str
    read: str


@dataclass(slots=True, eq=False, weakref_slot=True)
class PeopleTable:
    """Recipients as columns of equal length, in upload order.

    `params` has a column per parameter, None where a recipient lacks it. `history` maps recipients
    to histories. `lines` are the lines of the file at which the recipients start. `digest` is a
    SHA-256 of the file and of the settings for reading it, empty for a list. `normalized` describes
    the columns in which cells were normalized. `beside` are the file's other columns. `rows` are
    the indices of chosen recipients in the whole list, None if it was left as it is.
    """

    tels: list[str] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)
    segments: Codes = field(default_factory=Codes)
    scripts: Codes = field(default_factory=Codes)
    params: dict[str, list[ParamValue | None]] = field(default_factory=dict)
    history: dict[int, Past] = field(default_factory=dict)
    lines: Sequence[int] = ()
    digest: bytes = b""
    normalized: list[Normalized] = field(default_factory=list)
    beside: dict[str, list[str | None]] = field(default_factory=dict)
    rows: NDArray[np.int64] | None = None

    def of(self, rows: NDArray[np.int64]) -> PeopleTable:
        """Return the recipients of some rows, in this order."""
        chosen = rows.tolist()
        made = PeopleTable(
            tels=[self.tels[row] for row in chosen],
            names=[self.names[row] for row in chosen],
            ids=[self.ids[row] for row in chosen],
            segments=self.segments.of(chosen),
            scripts=self.scripts.of(chosen),
            params={name: [column[row] for row in chosen] for name, column in self.params.items()},
            lines=[self.lines[row] for row in chosen],
            normalized=self.normalized,
            beside={name: [column[row] for row in chosen] for name, column in self.beside.items()},
            rows=rows,
        )
        if self.history:
            made.history = {
                new: self.history[row] for new, row in enumerate(chosen) if row in self.history
            }
        return made


AgentParams = dict[Text, ParamValue]
MOST_GENERATED = 10_000_000
MOST_LINES = 1_000_000
"""Upper limit of an organization's lines, also of priorities and weights."""


class Recipient(Model):
    """Person to call, as an item of a list."""

    tel: Phone = Field(description="Phone number, in quotes.", examples=["0812345678"])
    customer_name: str | None = Field(
        default=None, description="The person's name.", examples=["สมชาย ใจดี"]
    )
    segment: Text | None = Field(
        default=None, description="A group of people that behave alike.", examples=["vip"]
    )
    agent_params: AgentParams = Field(
        default_factory=dict,
        description="Values of the parameters in the agent's paramsSchema.",
        examples=[{"amount": 100}],
    )
    history: History | None = Field(
        default=None,
        description="Calls to the person before the scenario begins, for a forecast from the "
        "middle of a campaign.",
    )
    script: ScriptText | None = Field(
        default=None,
        description="Outcome of each attempt to reach this person, in place of chance; the last "
        "step repeats.",
        examples=["noAnswer 25s; answered 5s 90s"],
    )
    id: FixedId = None


def _encoding(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong(_ENCODING)
    try:
        # Raises LookupError for an unknown encoding, and has no other effect.
        "".encode(value)
    except (LookupError, UnicodeError, ValueError):
        raise wrong(_ENCODING) from None
    return value


def _delimiter(value: Any) -> str:
    if value in ("tab", "\\t"):
        return "\t"
    if not isinstance(value, str) or len(value) != 1 or value.isalnum() or value in "\"'\r\n":
        raise wrong(_DELIMITER)
    return value


_ENCODING = "must be the name of an encoding, such as cp874 (Thai Windows) or utf-16"
_DELIMITER = 'must be one sign, such as ";", or tab'


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _is_absent(value: object) -> bool:
    # Journals hold digests of scenarios: a new key must not change the digests of older scenarios.
    return value is None


CHOICES = ("where", "sort", "first")
"""Keys that choose recipients from a file."""
_APART = ("done", *CHOICES)
"""Keys that are applied after the file is read."""


class RecipientsFile(Model):
    """Recipients in a CSV or a workbook, which is read when the scenario is loaded."""

    file: Text = Field(
        description="The CSV or Excel workbook (xlsx) with a column tel, relative to the scenario "
        "file.",
        examples=["people.csv"],
    )
    sheet: Text | None = Field(
        default=None,
        description="Which sheet of a workbook. Left out: the first.",
        examples=["Customers"],
    )
    encoding: Annotated[str, BeforeValidator(_encoding)] | None = Field(
        default=None, description="Encoding of a CSV. Left out: UTF-8.", examples=["cp874"]
    )
    delimiter: Annotated[str, BeforeValidator(_delimiter)] | None = Field(
        default=None,
        description="What separates the columns of a CSV, or tab. Left out: a comma.",
        examples=[";"],
    )
    columns: dict[Text, Text] | None = Field(
        default=None,
        description="Columns of the file by their names in dialsim, such as tel: Phone. Other "
        "columns then only appear in the table of recipients.",
        examples=[{"tel": "Phone", "agentParams.amount": "Balance"}],
    )
    normalize: Switch = Field(
        default=False,
        description="Read other spellings of phone numbers, amounts and dates, such as "
        "081-234-5678 for 0812345678. The changes are counted.",
        examples=[True],
    )
    done: Text | None = Field(
        default=None,
        description="A CSV or workbook of the calls so far, relative to the scenario file: its "
        "columns for number, attempts, last status and last time, under any usual heads, "
        "become histories.",
        examples=["done.xlsx"],
        exclude_if=_is_absent,
    )
    where: Text | None = Field(
        default=None,
        description="Condition on segment and parameters: only people who meet it are called.",
        examples=["segment == 'gold' and amount > 5000"],
        exclude_if=_is_absent,
    )
    sort: Annotated[tuple[Text, ...], BeforeValidator(_listed)] | None = Field(
        default=None,
        description="Formula, or several, by whose value the people are sorted, smallest first; "
        "-amount puts the highest amount first. Left out: the order of the file.",
        examples=["-amount"],
        exclude_if=_is_absent,
        json_schema_extra={
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        },
    )
    first: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None,
        description="Number of people to call, from the beginning of the list.",
        examples=[15000],
        exclude_if=_is_absent,
    )
    _table: PeopleTable | None = PrivateAttr(default=None)

    @property
    def table(self) -> PeopleTable:
        """The recipients of the file, in its order."""
        # Not a field of the model: the table is derived from the file, and must not appear in
        # dumps.
        assert self._table is not None, "a scenario's files are read when it is loaded"
        return self._table

    @property
    def form(self) -> FileForm:
        """Settings for reading the file."""
        return FileForm(self.sheet, self.encoding, self.delimiter)

    @property
    def whole(self) -> RecipientsFile:
        """Copy that keeps all recipients of the file, without choice and done list."""
        return self.model_copy(update=dict.fromkeys(_APART))

    def holding(self, table: PeopleTable) -> RecipientsFile:
        """Return a copy that contains the table read from the file."""
        recipients = self.model_copy()
        recipients._table = table
        return recipients


class GeneratedRecipients(Model):
    """Made-up recipients: plausible Thai mobile numbers and names, by seed and position."""

    count: Annotated[Whole, Field(ge=0, le=MOST_GENERATED)] = Field(
        description="How many people.", examples=[20000]
    )
    agent_params: AgentParams = Field(
        default_factory=dict,
        description="Values of the parameters in the agent's paramsSchema, the same for everybody.",
        examples=[{"amount": 100}],
    )
    segments: Shares | None = Field(
        default=None,
        description="Share of each segment; they sum to 1.",
        examples=[{"vip": 0.1, "mass": 0.9}],
    )


def _recipients(value: Any) -> Any:
    # Checked before the union, whose own error would list the failures of all three forms.
    if not isinstance(value, list | dict | RecipientsFile):
        raise wrong("must be a list of people, {file: people.csv} or {count: 1000}")
    if not isinstance(value, dict):
        return value
    if value.get("file") is None and value.get("count") is None:
        raise broken("needs file or count: {file: people.csv} or {count: 1000}")
    for key in _APART:
        if value.get("file") is None and value.get(key) is not None:
            raise broken("is for the people of a file; made-up people have a count only", key)
    for key in ("count", "agentParams", "segments"):
        if value.get("file") is not None and value.get(key) is not None:
            raise broken("can't stand beside file: the rows of the file have it", key)
    return value


def _tag(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "<list>"
    if isinstance(value, dict):
        return "<file>" if value.get("file") is not None else "<generated>"
    return "<file>" if isinstance(value, RecipientsFile) else "<generated>"


Recipients = Annotated[
    Annotated[
        Annotated[tuple[Recipient, ...], Tag("<list>")]
        | Annotated[RecipientsFile, Tag("<file>")]
        | Annotated[GeneratedRecipients, Tag("<generated>")],
        Discriminator(_tag),
    ],
    BeforeValidator(_recipients),
]


class Campaign(Model):
    """Campaign: its agent, its recipients, and the request that starts it."""

    name: Text = Field(
        description="The campaign's name; unique in its organization.", examples=["January"]
    )
    id: FixedId = None
    agent: Text = Field(description="Name of the agent that calls.", examples=["Reminder"])
    recipients: Recipients = Field(
        description="Whom to call: a list of people, a CSV or Excel file, or a count of made-up "
        "people.",
        examples=[{"count": 20000}],
    )
    schedule: ScheduleRequest | None = Field(
        default=None,
        description="The body of POST /api/campaign/{id}/schedule. Left out: the campaign stays "
        "DRAFT until a timeline action schedules it.",
    )
    calling_hours: DayClasses | None = Field(
        default=None,
        description="When people may be called, by class of day, in place of "
        "schedule.timeWindows: compiled to time windows, pauses and resumes.",
    )
    scheduled_at: Instant | None = Field(
        default=None,
        description="When the schedule request is made. Left out: clock.start.",
        examples=["2026-01-05T01:00:00Z"],
    )
    priority: Annotated[Whole, Field(ge=1, le=MOST_LINES)] | None = Field(
        default=None,
        description="With engine.sharing priority: 1 goes first (Q7). Left out: after all "
        "campaigns with a priority.",
        examples=[1],
    )
    weight: Annotated[Whole, Field(ge=1, le=MOST_LINES)] = Field(
        default=1,
        description="With engine.sharing weighted: share of the lines, relative to the other "
        "campaigns' weights (Q8).",
        examples=[3],
    )
    at_most: Annotated[Whole, Field(ge=1, le=MOST_LINES)] | None = Field(
        default=None,
        description="Upper limit of lines that the campaign takes (Q10). Left out: all lines.",
        examples=[10],
    )
    reserved: Annotated[Whole, Field(ge=0, le=MOST_LINES)] = Field(
        default=0,
        description="Lines kept for the campaign while it runs inside its windows (Q11).",
        examples=[3],
    )
    value: Values | None = Field(
        default=None,
        description="What this campaign's results are worth, in place of the scenario's value.",
        examples=[{"reached": 40}],
    )

    @field_validator("reserved")
    @classmethod
    def _is_allowed(cls, reserved: int, info: ValidationInfo) -> int:
        at_most = info.data.get("at_most")
        if at_most is not None and reserved > at_most:
            raise broken(f"must not be greater than atMost, {at_most}")
        return reserved

    @property
    def counts_lines(self) -> bool:
        """True if the campaign's calls are released only onto free lines (Q10)."""
        return self.reserved > 0 or self.at_most is not None

    def misfit(self, release_interval: int) -> tuple[str, str] | None:
        """Return the key that conflicts with the engine's release interval (ms), and the text;
        else None.
        """
        if not (self.counts_lines and release_interval):
            return None
        message = (
            "can't stand beside engine.releaseInterval: lines would be idle between two releases"
        )
        return "reserved" if self.reserved else "atMost", message

    @property
    def size(self) -> int:
        """Number of recipients."""
        if isinstance(self.recipients, GeneratedRecipients):
            return self.recipients.count
        listed = self.recipients
        return len(listed.table.tels if isinstance(listed, RecipientsFile) else listed)
