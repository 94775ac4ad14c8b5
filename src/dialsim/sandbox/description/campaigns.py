"""The control plane's operations on campaigns and their calls."""

from __future__ import annotations

from dialsim.interface.identifiers import UUID_PATTERN
from dialsim.sandbox.call_table import CallRow
from dialsim.sandbox.control.call_endpoints import CallPage, TransitionPage
from dialsim.sandbox.control.campaign_endpoints import CampaignState
from dialsim.sandbox.description import failures as fail
from dialsim.sandbox.description.operation import PAGE, Operation, identifier, link, query
from dialsim.sandbox.description.uploads import UPLOAD, UploadedCampaign

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
