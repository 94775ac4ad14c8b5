"""How campaigns are uploaded, for the description alone: what is sent is read as files are."""

from __future__ import annotations

from pydantic import Field

from dialsim.interface.schedule import ScheduleRequest
from dialsim.sandbox.description.operation import query
from dialsim.scenario.campaign import Campaign, GeneratedRecipients, Recipient
from dialsim.scenario.fields import Phone, Text
from dialsim.scenario.units import Instant


class UploadedRecipient(Recipient):
    """A person to call."""

    tel: Phone = Field(description="Phone number.", examples=["0812345678"])


class UploadedCampaign(Campaign):
    """A campaign as in a scenario file, and the organization that it is for."""

    organization: Text = Field(description="Its id or its name.", examples=["Acme"])
    agent: Text = Field(
        description="Name or id of the agent of the organization that calls.", examples=["Reminder"]
    )
    recipients: tuple[UploadedRecipient, ...] | GeneratedRecipients = Field(
        description="Whom to call: a list of people, or a count of made-up people.",
        examples=[[{"tel": "0812345678"}]],
    )
    schedule: ScheduleRequest | None = Field(
        default=None,
        description="The body of the schedule request. Left out: the campaign is a DRAFT.",
    )
    scheduled_at: Instant | None = Field(
        default=None,
        description="When the schedule request is made. Left out: now.",
        examples=["2026-01-05T01:00:00Z"],
    )


_BESIDE_A_CSV = "Beside a CSV; in JSON it stands in the body. "
UPLOAD = (
    query(
        "organization",
        f"{_BESIDE_A_CSV}The organization's id or name, which is required.",
        {"type": "string"},
        "Acme",
    ),
    query(
        "name", f"{_BESIDE_A_CSV}The campaign's name, which is required.", {"type": "string"}, "May"
    ),
    query(
        "agent",
        f"{_BESIDE_A_CSV}The agent's name or id, which is required.",
        {"type": "string"},
        "Reminder",
    ),
    query(
        "id",
        f"{_BESIDE_A_CSV}A fixed id.",
        {"type": "string"},
        "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10",
    ),
    {
        "name": "schedule",
        "in": "query",
        "description": f"{_BESIDE_A_CSV}The body of the schedule request, as JSON.",
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/ScheduleRequest"}}
        },
    },
    query(
        "scheduledAt",
        f"{_BESIDE_A_CSV}When the schedule request is made.",
        {"type": "string"},
        "2026-01-05T01:00:00Z",
    ),
)
"""The parameters that stand for the body's properties beside a CSV."""
