"""How campaigns are uploaded, for the description alone: what is sent is read as files are.

The control plane's operations on campaigns and their calls.

The control plane's operations on webhooks: what was sent, and sending it again.

The control plane's operations on what people and webhooks and answers are to do.

The control plane's operations: what they take, answer, and refuse.
"""

from __future__ import annotations

from pydantic import Field

from dialsim.interface.model import UUID_PATTERN
from dialsim.interface.schedule import ScheduleRequest
from dialsim.sandbox.control.campaigns import CallPage, CampaignState, TransitionPage
from dialsim.sandbox.control.clock import AdvancedClock, ClockState, Mode, Move
from dialsim.sandbox.control.faults import FaultState
from dialsim.sandbox.control.organizations import (
    ChangedOrganization,
    OrganizationState,
    ScriptedNumber,
)
from dialsim.sandbox.control.webhooks import STATUS_PATTERN, WebhookPage
from dialsim.sandbox.description import operation as fail
from dialsim.sandbox.description.operation import PAGE, Operation, identifier, link, query
from dialsim.sandbox.faults import FaultOrder
from dialsim.sandbox.organization import OrganizationChanges
from dialsim.sandbox.tables import CallRow
from dialsim.sandbox.webhooks import WebhookRow
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


_FOUND = (*fail.GUARDED, fail.INVALID_ID, fail.NO_CAMPAIGN)
_CAMPAIGN = (identifier("id", "campaign"),)
_CALL = (identifier("id", "call"),)
_FILTERS = (
    PAGE,
    query(
        "status",
        "Only calls in it, or changes that lead to it.",
        {"$ref": "#/components/schemas/CallStatus"},
        "BUSY",
    ),
    query(
        "recipient",
        "Only those of a recipient: its id, or its position in the list, from 0.",
        {"type": "string", "anyOf": [{"pattern": UUID_PATTERN}, {"pattern": "^[0-9]{1,9}$"}]},
        "0",
    ),
    query("tel", "Only those of a number as it was uploaded.", {"type": "string"}, "0812345678"),
)

CAMPAIGN_OPERATIONS = (
    Operation(
        "get",
        "/_dialsim/campaigns",
        "listCampaigns",
        "List the campaigns",
        "All campaigns of all organizations as they stand, deleted ones too.",
        answer=list[CampaignState],
        failures=fail.GUARDED,
    ),
    Operation(
        "post",
        "/_dialsim/campaigns",
        "createCampaign",
        "Create a campaign",
        "Checked as in a scenario file (C11); a DRAFT unless its schedule comes along. Recipients "
        "may come as a CSV (UTF-8, with a header and a column tel) instead; then everything else "
        "stands in the query.",
        answer=CampaignState,
        status=201,
        parameters=UPLOAD,
        body=UploadedCampaign,
        other_media="text/csv",
        failures=(*fail.BODY, fail.NOT_ALLOWED, fail.UNKNOWN_MEDIA, fail.NOT_KEPT),
        links={
            "itself": link("getCampaign", "id", "id"),
            "itsStart": link("scheduleCampaign", "id", "id"),
        },
    ),
    Operation(
        "get",
        "/_dialsim/campaigns/{id}",
        "getCampaign",
        "Get a campaign",
        "One campaign as it stands, also a deleted one.",
        answer=CampaignState,
        parameters=_CAMPAIGN,
        failures=_FOUND,
    ),
    Operation(
        "delete",
        "/_dialsim/campaigns/{id}",
        "deleteCampaign",
        "Delete a campaign",
        "The interface doesn't show it any more, and nobody is dialled (C8). Here it can be read "
        "still.",
        answer=CampaignState,
        parameters=_CAMPAIGN,
        failures=(*_FOUND, fail.NOT_KEPT),
    ),
    Operation(
        "post",
        "/_dialsim/campaigns/{id}/resume",
        "resumeCampaign",
        "Resume a campaign",
        "Goes on with a PAUSED campaign (C5).",
        answer=CampaignState,
        parameters=_CAMPAIGN,
        failures=(*_FOUND, fail.NOT_RESUMABLE, fail.NOT_KEPT),
    ),
    Operation(
        "post",
        "/_dialsim/campaigns/{id}/cancel",
        "cancelCampaign",
        "Cancel a campaign",
        "Ends a campaign that is not over (C6).",
        answer=CampaignState,
        parameters=_CAMPAIGN,
        failures=(*_FOUND, fail.NOT_CANCELLABLE, fail.NOT_KEPT),
    ),
)
CALL_OPERATIONS = (
    Operation(
        "get",
        "/_dialsim/campaigns/{id}/calls",
        "listCalls",
        "List a campaign's calls",
        "The calls table as it stands, in the order of creation, 100 rows a page.",
        answer=CallPage,
        parameters=(*_CAMPAIGN, *_FILTERS),
        failures=(*_FOUND, fail.INVALID_PAGE),
        links={"firstCall": link("getCall", "callId", "calls/0/callId")},
    ),
    Operation(
        "get",
        "/_dialsim/campaigns/{id}/transitions",
        "listTransitions",
        "List the changes of a campaign's calls",
        "The transitions table so far, in the order of occurrence, 100 rows a page.",
        answer=TransitionPage,
        parameters=(*_CAMPAIGN, *_FILTERS),
        failures=(*_FOUND, fail.INVALID_PAGE),
    ),
    Operation(
        "post",
        "/_dialsim/calls/{id}/reanalyze",
        "reanalyzeCall",
        "Analyze a call again",
        "Another result of a COMPLETED call whose result was delivered is sent (A5).",
        answer=CallRow,
        parameters=_CALL,
        failures=(
            *fail.GUARDED,
            fail.INVALID_ID,
            fail.NO_CALL,
            fail.NO_CAMPAIGN,
            fail.NOT_DELIVERED,
            fail.NOT_KEPT,
        ),
    ),
)


_ID = {"type": "string", "format": "uuid", "pattern": UUID_PATTERN}
_EXAMPLE = "cccccccc-0000-4000-8000-000000000003"
_N = (
    {
        "name": "n",
        "in": "path",
        "required": True,
        "description": "The number of a webhook in the list, from 1.",
        "schema": {"type": "integer", "minimum": 1},
    },
)

WEBHOOK_OPERATIONS = (
    Operation(
        "get",
        "/_dialsim/webhooks",
        "listWebhooks",
        "List the webhooks",
        "Every POST that was made, with its response, and every payload that was kept, in the "
        "order in which they left, 100 rows a page.",
        answer=WebhookPage,
        parameters=(
            PAGE,
            query("call", "Only those of a call, by its id.", _ID, _EXAMPLE),
            query("campaign", "Only those of a campaign, by its id.", _ID, _EXAMPLE),
            query(
                "status",
                "Only those of which this came, or with this response.",
                {"type": "string", "pattern": STATUS_PATTERN},
                "failed",
            ),
        ),
        failures=(*fail.GUARDED, fail.INVALID_ID, fail.INVALID_PAGE),
    ),
    Operation(
        "post",
        "/_dialsim/webhooks/{n}/resend",
        "resendWebhook",
        "Send a webhook again",
        "The same body leaves once, at this instant, to the organization's URL of now. Answers "
        "with the new POST when it has come back.",
        answer=WebhookRow,
        parameters=_N,
        failures=(*fail.GUARDED, fail.NO_WEBHOOK, fail.NO_WEBHOOK_URL, fail.NOT_KEPT),
    ),
)


_FAULT = (
    {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The fault's number, from 1.",
        "schema": {"type": "integer", "minimum": 1},
    },
)

PEOPLE_OPERATIONS = (
    Operation(
        "get",
        "/_dialsim/people",
        "listScripts",
        "List the scripts of phone numbers",
        "What is left of them, by number.",
        answer=list[ScriptedNumber],
        failures=fail.GUARDED,
    ),
    Operation(
        "post",
        "/_dialsim/people",
        "scriptNumber",
        "Script a phone number",
        "The next calls to the number do what the script says (P6).",
        answer=ScriptedNumber,
        body=ScriptedNumber,
        failures=(*fail.BODY, fail.NOT_KEPT),
    ),
)
FAULT_OPERATIONS = (
    Operation(
        "get",
        "/_dialsim/faults",
        "listFaults",
        "List the faults",
        "Spent ones too, until they are cleared.",
        answer=list[FaultState],
        failures=fail.GUARDED,
    ),
    Operation(
        "post",
        "/_dialsim/faults",
        "addFault",
        "Have something go wrong",
        "Strikes the next ones that it meets, and is spent.",
        answer=FaultState,
        status=201,
        body=FaultOrder,
        failures=(*fail.BODY, fail.TOO_MANY_FAULTS, fail.NOT_KEPT),
        links={"itself": link("getFault", "id", "id"), "itsEnd": link("clearFault", "id", "id")},
    ),
    Operation(
        "delete",
        "/_dialsim/faults",
        "clearFaults",
        "Clear all faults",
        "Answers those that were cleared; nothing more is struck.",
        answer=list[FaultState],
        failures=(*fail.GUARDED, fail.NOT_KEPT),
    ),
    Operation(
        "get",
        "/_dialsim/faults/{id}",
        "getFault",
        "Get a fault",
        "What was asked for, and what became of it.",
        answer=FaultState,
        parameters=_FAULT,
        failures=(*fail.GUARDED, fail.NO_FAULT),
    ),
    Operation(
        "delete",
        "/_dialsim/faults/{id}",
        "clearFault",
        "Clear a fault",
        "It strikes no more, and its number is not used again.",
        answer=FaultState,
        parameters=_FAULT,
        failures=(*fail.GUARDED, fail.NO_FAULT, fail.NOT_KEPT),
    ),
)


_ORGANIZATION = (
    {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The organization's id or name; a slash in it is written %2F.",
        "schema": {"type": "string", "minLength": 1},
    },
)

_CLOCK = (
    Operation(
        "get",
        "/_dialsim/clock",
        "getClock",
        "See where the clock stands",
        "It is answered also while the clock moves.",
        answer=ClockState,
        failures=fail.GUARDED,
    ),
    Operation(
        "put",
        "/_dialsim/clock",
        "setClock",
        "Have the clock run, or stand still",
        "A running clock stands still while webhooks are under way, and stops at clock.end. With "
        "mode manual it stands still at once: an advance that is under way ends there, too.",
        answer=ClockState,
        body=Mode,
        failures=(*fail.BODY, fail.CLOCK_BUSY, fail.NOT_KEPT),
    ),
    Operation(
        "post",
        "/_dialsim/clock/advance",
        "advanceClock",
        "Move the clock",
        "Answers when everything up to there has happened, webhooks delivered or lost included, "
        "however long that takes. Until idle it goes on for 366 days of virtual time at the most. "
        "PUT /_dialsim/clock with mode manual ends it on the way, which it says in stopped.",
        answer=AdvancedClock,
        body=Move,
        failures=(
            *fail.BODY,
            fail.BEFORE_NOW,
            fail.CLOCK_BUSY,
            fail.CLOCK_RUNNING,
            fail.NOT_IDLE,
            fail.NOT_KEPT,
        ),
    ),
)
_ORGANIZATIONS = (
    Operation(
        "get",
        "/_dialsim/organizations",
        "listOrganizations",
        "List the organizations",
        "Settings, slots in use, and calls that wait.",
        answer=list[OrganizationState],
        failures=fail.GUARDED,
    ),
    Operation(
        "get",
        "/_dialsim/organizations/{id}",
        "getOrganization",
        "Get an organization",
        "Settings, slots in use, and calls that wait.",
        answer=OrganizationState,
        parameters=_ORGANIZATION,
        failures=(*fail.GUARDED, fail.NO_ORGANIZATION),
    ),
    Operation(
        "patch",
        "/_dialsim/organizations/{id}",
        "changeOrganization",
        "Change an organization",
        "All changes are made, or none.",
        answer=ChangedOrganization,
        parameters=_ORGANIZATION,
        body=OrganizationChanges,
        failures=(*fail.BODY, fail.NO_ORGANIZATION, fail.NOT_KEPT),
    ),
)
_EXPORT = (
    Operation(
        "get",
        "/_dialsim/export",
        "exportRun",
        "Export the run so far",
        "What dialsim run --out would have written, as a zip file. The scenario's API keys are "
        "masked in it.",
        media="application/zip",
        parameters=(
            query("apiKeys", "Leave the API keys in the scenario.", {"type": "boolean"}, False),
        ),
        failures=fail.GUARDED,
    ),
)

CONTROL_OPERATIONS = (
    *_CLOCK,
    *CAMPAIGN_OPERATIONS,
    *CALL_OPERATIONS,
    *_ORGANIZATIONS,
    *PEOPLE_OPERATIONS,
    *FAULT_OPERATIONS,
    *WEBHOOK_OPERATIONS,
    *_EXPORT,
)
