"""The interface's operations (sections 4.1 to 4.7): what they take, answer, and refuse."""

from __future__ import annotations

from dialsim.interface.schedule import ScheduleRequest
from dialsim.sandbox.description import failures as fail
from dialsim.sandbox.description import shapes
from dialsim.sandbox.description.operation import PAGE, Operation, identifier, link

_CAMPAIGN = identifier("id", "campaign")
_KEYED = (fail.NO_KEY, fail.WRONG_KEY, *fail.ASKED_FOR)

OPERATIONS = (
    Operation(
        "get",
        "/api/agent/list",
        "listAgents",
        "List the agents",
        "All agents of the organization, the newest first.",
        answer=list[shapes.Agent],
        messages=("Get Agent list successfully",),
        failures=_KEYED,
    ),
    Operation(
        "post",
        "/api/campaign/{id}/pause",
        "pauseCampaign",
        "Pause a campaign",
        "Nobody is dialled any more until the campaign is resumed; calls that ring or are in "
        "conversation go on. Only SCHEDULED and RUNNING campaigns can be paused; pausing a PAUSED "
        "one changes nothing. No body is asked for.",
        answer=shapes.CampaignStanding,
        messages=(
            "Campaign status updated to PAUSED successfully",
            "Campaign is already PAUSED",
        ),
        parameters=(_CAMPAIGN,),
        failures=(
            *_KEYED,
            fail.INVALID_ID,
            fail.NO_CAMPAIGN,
            fail.NOT_PAUSABLE,
            fail.TOO_LARGE,
            fail.NOT_KEPT,
        ),
    ),
    Operation(
        "get",
        "/api/campaign/{id}/recipients",
        "listRecipients",
        "List a campaign's recipients",
        "Pages of 100, the newest recipient first.",
        answer=shapes.RecipientPage,
        messages=("Get Campaign recipients successfully",),
        parameters=(_CAMPAIGN, PAGE),
        failures=(*_KEYED, fail.INVALID_ID, fail.INVALID_PAGE, fail.NO_CAMPAIGN),
        links={"newestRecipient": link("getRecipient", "recipientId", "data/recipients/0/id")},
    ),
    Operation(
        "get",
        "/api/recipient/{recipientId}",
        "getRecipient",
        "Get a recipient",
        "One recipient, as in the list of its campaign.",
        answer=shapes.Recipient,
        messages=("Get Recipient details successfully",),
        parameters=(identifier("recipientId", "recipient"),),
        failures=(
            *_KEYED,
            fail.INVALID_ID._replace(text="recipientId must be a valid UUID"),
            fail.NO_RECIPIENT,
        ),
        links={"recipientsOfItsCampaign": link("listRecipients", "id", "data/campaignId")},
    ),
    Operation(
        "get",
        "/api/call/{callId}",
        "getCall",
        "Get a call",
        "One call with its result. The webhook gives its id as payload.call.id.",
        answer=shapes.Call,
        messages=("Get Call details successfully",),
        parameters=(identifier("callId", "call"),),
        failures=(
            *_KEYED,
            fail.INVALID_ID._replace(text="callId must be a valid UUID"),
            fail.NO_CALL,
        ),
        links={"itsRecipient": link("getRecipient", "recipientId", "data/recipient/id")},
    ),
    Operation(
        "post",
        "/api/campaign/{id}/schedule",
        "scheduleCampaign",
        "Start a campaign",
        "Gives a DRAFT campaign its schedule and prepares a call for each recipient; it can be "
        "done once. Besides its shape a body is checked against what no schema can tell: whether "
        "the campaign is DRAFT, days exist and spans end after they begin, voices, caller ids and "
        "SIP accounts are known, the organization may call, and duplicates can be removed.",
        answer=shapes.CampaignStart,
        messages=("Campaign schedule updated successfully",),
        parameters=(_CAMPAIGN,),
        body=ScheduleRequest,
        failures=(
            *_KEYED,
            fail.INVALID_ID,
            fail.INVALID_BODY,
            fail.NOT_ALLOWED,
            fail.NO_CAMPAIGN,
            fail.STARTED,
            fail.TOO_LARGE,
            fail.NOT_KEPT,
        ),
        links={"itsRecipients": link("listRecipients", "id", "data/id")},
    ),
    Operation(
        "get",
        "/voice-demo/catalog",
        "listVoices",
        "List the voices",
        "Needs no key and has no envelope. To be asked by servers: pages of other sites are kept "
        "out by the browser.",
        answer=shapes.Catalog,
        failures=(fail.OUR_FAULT,),
    ),
)
