"""The control plane's operations on webhooks: what was sent, and sending it again."""

from __future__ import annotations

from dialsim.interface.identifiers import UUID_PATTERN
from dialsim.sandbox.control.webhook_endpoints import STATUS_PATTERN, WebhookPage
from dialsim.sandbox.description import failures as fail
from dialsim.sandbox.description.operation import PAGE, Operation, query
from dialsim.sandbox.webhook_table import WebhookRow

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
