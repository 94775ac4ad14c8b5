"""The control plane as a whole: all routes under /_dialsim."""

from __future__ import annotations

from starlette.routing import BaseRoute

from dialsim.sandbox.control.campaigns import CallEndpoints, CampaignEndpoints
from dialsim.sandbox.control.clock import ClockEndpoints
from dialsim.sandbox.control.export import ExportEndpoint
from dialsim.sandbox.control.faults import FaultEndpoints
from dialsim.sandbox.control.organizations import OrganizationEndpoints, PeopleEndpoints
from dialsim.sandbox.control.webhooks import WebhookEndpoints
from dialsim.sandbox.core import SandboxCore


def control_routes(core: SandboxCore) -> list[BaseRoute]:
    """The routes of the control plane; success is plain JSON, errors have the error envelope."""
    return [
        *ClockEndpoints(core).routes(),
        *CampaignEndpoints(core).routes(),
        *CallEndpoints(core).routes(),
        *OrganizationEndpoints(core).routes(),
        *WebhookEndpoints(core).routes(),
        *ExportEndpoint(core).routes(),
        *PeopleEndpoints(core).routes(),
        *FaultEndpoints(core).routes(),
    ]
