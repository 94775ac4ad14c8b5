"""Campaigns: whom to call, by which agent, and when; and recipients as a planner writes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, PrivateAttr, Tag

from dialsim.interface.model import broken, wrong
from dialsim.interface.schedule import ScheduleRequest
from dialsim.scenario.fields import Model, ParamValue, Phone, Shares, Text, Uuid, Whole
from dialsim.scenario.history import History
from dialsim.scenario.people_table import PeopleTable
from dialsim.scenario.scripts import ScriptText
from dialsim.scenario.units import Instant

AgentParams = dict[Text, ParamValue]
MOST_GENERATED = 10_000_000


class Recipient(Model):
    """A person to call, as an item of a list."""

    tel: Phone = Field(description="Phone number, in quotes.", examples=["0812345678"])
    customer_name: str | None = Field(
        default=None, description="The person's name.", examples=["สมชาย ใจดี"]
    )
    segment: Text | None = Field(
        default=None, description="A group of people that behave alike.", examples=["vip"]
    )
    agent_params: AgentParams = Field(
        default_factory=dict,
        description="What the agent's paramsSchema asks for.",
        examples=[{"amount": 100}],
    )
    history: History | None = Field(
        default=None,
        description="What happened before the scenario begins: a forecast from the middle.",
    )
    script: ScriptText | None = Field(
        default=None,
        description="How each attempt at this person ends, where that is not left to chance; the "
        "last step repeats.",
        examples=["noAnswer 25s; answered 5s 90s"],
    )
    id: Uuid | None = Field(
        default=None,
        description="A fixed id (UUID). Left out: derived from the seed.",
        examples=["7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"],
    )


class RecipientsFile(Model):
    """Recipients in a CSV (UTF-8); its `table` is filled when the scenario is loaded."""

    file: Text = Field(
        description="The CSV with a column tel, relative to the scenario file.",
        examples=["people.csv"],
    )
    _table: PeopleTable | None = PrivateAttr(default=None)

    @property
    def table(self) -> PeopleTable:
        """The people in the file, in its order."""
        assert self._table is not None, "a scenario's files are read when it is loaded"
        return self._table

    @classmethod
    def read(cls, file: str, table: PeopleTable) -> RecipientsFile:
        """The recipients of a file that has been read."""
        recipients = cls(file=file)
        recipients._table = table
        return recipients


class GeneratedRecipients(Model):
    """Recipients made up: plausible Thai mobile numbers and names, by seed and position."""

    count: Annotated[Whole, Field(ge=0, le=MOST_GENERATED)] = Field(
        description="How many people.", examples=[20000]
    )
    agent_params: AgentParams = Field(
        default_factory=dict,
        description="What the agent's paramsSchema asks for, the same for everybody.",
        examples=[{"amount": 100}],
    )
    segments: Shares | None = Field(
        default=None,
        description="Share of each segment; they sum to 1.",
        examples=[{"vip": 0.1, "mass": 0.9}],
    )


def _recipients(value: Any) -> Any:
    if not isinstance(value, list | dict | RecipientsFile):
        raise wrong("must be a list of people, {file: people.csv} or {count: 1000}")
    if not isinstance(value, dict):
        return value
    if value.get("file") is None and value.get("count") is None:
        raise broken("needs file or count: {file: people.csv} or {count: 1000}")
    for key in ("count", "agentParams", "segments"):
        if value.get("file") is not None and value.get(key) is not None:
            raise broken("can't stand beside file: the rows of the CSV tell it", key)
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
    """A campaign: its agent, its recipients, and the request that starts it."""

    name: Text = Field(
        description="The campaign's name; unique in its organization.", examples=["January"]
    )
    id: Uuid | None = Field(
        default=None,
        description="A fixed id (UUID). Left out: derived from the seed.",
        examples=["7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"],
    )
    agent: Text = Field(description="Name of the agent that calls.", examples=["Reminder"])
    recipients: Recipients = Field(
        description="Whom to call: a list of people, a CSV file, or a count of made-up people.",
        examples=[{"count": 20000}],
    )
    schedule: ScheduleRequest | None = Field(
        default=None,
        description="The body of POST /api/campaign/{id}/schedule. Left out: the campaign stays "
        "DRAFT until a timeline action schedules it.",
    )
    scheduled_at: Instant | None = Field(
        default=None,
        description="When the schedule request is made. Left out: clock.start.",
        examples=["2026-01-05T01:00:00Z"],
    )
