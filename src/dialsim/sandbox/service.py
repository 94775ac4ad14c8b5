"""The service: what the interface's endpoints do, for one organization, without HTTP."""

from __future__ import annotations

import orjson

from dialsim.interface.errors import Refused
from dialsim.interface.identifiers import is_uuid
from dialsim.interface.schedule import read_schedule
from dialsim.interface.status import CampaignStatus
from dialsim.interface.voices import SAMPLE_CATEGORIES
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.commands import PauseCampaign, ScheduleCampaign
from dialsim.sandbox.envelopes import success
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.page_number import read_page


class Service:
    """Endpoints of the interface (sections 4.1 to 4.7) over an exchange.

    Every method takes the position of the organization that asks. It returns the answer's body, and
    raises `Refused` with the status, code and texts of its error tables, in the order of its
    checks. Another organization's resources are missing.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._accounts = exchange.accounts
        self._simulation = exchange.simulation
        scenario = exchange.scenario
        self.voices = orjson.dumps(
            {
                "voices": [voice.model_dump(by_alias=True) for voice in scenario.voices],
                "categories": [part.model_dump(by_alias=True) for part in SAMPLE_CATEGORIES],
            }
        )

    def agents(self, organization: int) -> bytes:
        """List agents (4.1)."""
        return success("Get Agent list successfully", self._accounts[organization].agents)

    def pause(self, organization: int, identifier: str) -> bytes:
        """Pause a campaign (4.2)."""
        require_uuid("id", identifier)
        desk = self._campaign(organization, identifier)
        if desk.campaign.status is CampaignStatus.PAUSED:
            return success("Campaign is already PAUSED", _state(desk, CampaignStatus.PAUSED))
        self.exchange.carry_out(PauseCampaign(**desk.place))
        message = "Campaign status updated to PAUSED successfully"
        return success(message, _state(desk, CampaignStatus.PAUSED))

    def recipients(self, organization: int, identifier: str, page: str | None = None) -> bytes:
        """List a campaign's recipients (4.3); `page` as it stands in the query, None if absent."""
        require_uuid("id", identifier)
        shown = read_page(page)
        desk = self._campaign(organization, identifier)
        desk.catch_up()
        return desk.pages.answer(shown, self._simulation.at)

    def recipient(self, organization: int, identifier: str) -> bytes:
        """Get a recipient (4.4)."""
        require_uuid("recipientId", identifier)
        found = self._accounts[organization].recipient(identifier)
        if found is None:
            raise Refused(404, "RECIPIENT_NOT_FOUND", ["Recipient not found"])
        desk, recipient = found
        desk.catch_up()
        data = desk.recipient(recipient, self._simulation.at)
        return success("Get Recipient details successfully", data)

    def call(self, organization: int, identifier: str) -> bytes:
        """Get a call (4.5)."""
        require_uuid("callId", identifier)
        found = self._accounts[organization].call(identifier)
        if found is None:
            raise Refused(404, "CALL_NOT_FOUND", ["Call not found"])
        desk, call = found
        desk.catch_up()
        return success("Get Call details successfully", desk.call(call, self._simulation.at))

    def schedule(self, organization: int, identifier: str, body: object) -> bytes:
        """Start a campaign (4.6); `body` is decoded JSON, and its shape comes first (C9)."""
        request = read_schedule(body)
        assert isinstance(body, dict)  # anything else was refused
        require_uuid("id", identifier)
        desk = self._campaign(organization, identifier)
        self.exchange.carry_out(ScheduleCampaign(**desk.place, body=body))
        data = _state(desk, CampaignStatus.SCHEDULED)
        if request.remove_duplicates:
            removed = desk.campaign.block.people.count - desk.total_recipients
            data = b'%b,"removedRecipients":%d}' % (data[:-1], removed)
        return success("Campaign schedule updated successfully", data)

    def _campaign(self, organization: int, identifier: str) -> CampaignDesk:
        desk = self._accounts[organization].campaign(identifier)
        if desk is None:
            raise Refused(404, "CAMPAIGN_NOT_FOUND", ["Campaign not found"])
        return desk


def require_uuid(parameter: str, identifier: str) -> None:
    """Refuse an identifier in a path that has not the form of a UUID (section 4)."""
    if not is_uuid(identifier):
        raise Refused(400, "INVALID_ID", [f"{parameter} must be a valid UUID"])


def _state(desk: CampaignDesk, status: CampaignStatus) -> bytes:
    return orjson.dumps({"id": desk.identifier, "status": status})
