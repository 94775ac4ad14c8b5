"""The control plane's operations: what they take, answer, and refuse."""

from __future__ import annotations

from dialsim.sandbox.control.clock_endpoints import AdvancedClock, ClockState, Mode, Move
from dialsim.sandbox.control.organization_endpoints import ChangedOrganization, OrganizationState
from dialsim.sandbox.description import failures as fail
from dialsim.sandbox.description.campaigns import CALL_OPERATIONS, CAMPAIGN_OPERATIONS
from dialsim.sandbox.description.faults import FAULT_OPERATIONS, PEOPLE_OPERATIONS
from dialsim.sandbox.description.operation import Operation, query
from dialsim.sandbox.description.webhooks import WEBHOOK_OPERATIONS
from dialsim.sandbox.organization_changes import OrganizationChanges

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
