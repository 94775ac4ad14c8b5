"""The control plane as a whole: all routes under /_dialsim."""

from __future__ import annotations

from starlette.routing import BaseRoute

from dialsim.sandbox.control.call_endpoints import CallEndpoints
from dialsim.sandbox.control.campaign_endpoints import CampaignEndpoints
from dialsim.sandbox.control.clock_endpoints import ClockEndpoints
from dialsim.sandbox.control.export_endpoint import ExportEndpoint
from dialsim.sandbox.control.fault_endpoints import FaultEndpoints
from dialsim.sandbox.control.organization_endpoints import OrganizationEndpoints
from dialsim.sandbox.control.people_endpoints import PeopleEndpoints
from dialsim.sandbox.control.webhook_endpoints import WebhookEndpoints
from dialsim.sandbox.exchange import Exchange


def control_routes(exchange: Exchange) -> list[BaseRoute]:
    """The routes of the control plane; success is plain JSON, errors have the error envelope."""
    return [
        *ClockEndpoints(exchange).routes(),
        *CampaignEndpoints(exchange).routes(),
        *CallEndpoints(exchange).routes(),
        *OrganizationEndpoints(exchange).routes(),
        *WebhookEndpoints(exchange).routes(),
        *ExportEndpoint(exchange).routes(),
        *PeopleEndpoints(exchange).routes(),
        *FaultEndpoints(exchange).routes(),
    ]
