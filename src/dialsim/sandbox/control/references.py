"""References: what the body of a request names, found."""

from __future__ import annotations

from dialsim.interface.errors import Refused
from dialsim.sandbox.account import Account
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.shapes import invalid


def organization_of(named: object, exchange: Exchange) -> Account:
    """Unlike in a path, an organization that isn't there is a mistake in the request."""
    known = [account.block.name for account in exchange.accounts]
    if not isinstance(named, str):
        raise invalid(f"organization must be the id or the name of one: {', '.join(known)}")
    try:
        return exchange.organization(named)
    except Refused:
        text = f'organization "{named}" is not known; known here: {", ".join(known)}'
        raise invalid(text) from None
