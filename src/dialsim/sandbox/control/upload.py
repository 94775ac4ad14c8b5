"""Uploads: new campaigns as they come over HTTP, their recipients as JSON or as a CSV."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request

from dialsim.engine.identity import agent_id
from dialsim.sandbox.account import Account
from dialsim.sandbox.commands import AddCampaign
from dialsim.sandbox.control.references import organization_of
from dialsim.sandbox.control.routes import MOST_BYTES
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.request_body import JSON, read_bytes, read_json, require_media_type
from dialsim.sandbox.shapes import invalid, query_of, refuse_query

_CSV = "text/csv"


async def read_upload(request: Request, exchange: Exchange) -> AddCampaign:
    """What is to be added, by the organization that the request names.

    A JSON body is the campaign's block as in a scenario file, and `organization`. Beside a CSV all
    of it but the recipients stands in the query. Raises Refused; the block itself is not checked.
    """
    csv = None
    if require_media_type(request, JSON, _CSV) == _CSV:
        block, csv = _from_query(request), await read_bytes(request, MOST_BYTES)
    else:
        refuse_query(request)
        body = await read_json(request, MOST_BYTES)
        if not isinstance(body, dict):
            raise invalid("body must be an object")
        block = body
    account = organization_of(block.pop("organization", None), exchange)
    block["agent"] = _agent_name(block.get("agent"), account, exchange)
    return AddCampaign(organization=account.block.position, block=block, csv=csv)


def _from_query(request: Request) -> dict[str, Any]:
    block: dict[str, Any] = dict(query_of(request))
    if "schedule" in block:
        try:
            block["schedule"] = orjson.loads(block["schedule"])
        except orjson.JSONDecodeError:
            raise invalid("schedule must be valid JSON") from None
    return block


def _agent_name(named: object, account: Account, exchange: Exchange) -> object:
    """The name of an agent that is named by its id; anything else is left to the checks."""
    seed, position = exchange.simulation.log.world.seed, account.block.position
    for number, agent in enumerate(account.block.settings.agents):
        identifier = agent.id or agent_id(seed, position, number)
        if isinstance(named, str) and identifier.lower() == named.lower():
            return agent.name
    return named
