"""The control token, and which addresses need one: for the sandbox and for the studio."""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import urlsplit

from dialsim.interface.errors import DialsimError
from dialsim.sandbox.organization import KeyRing

_FORM = re.compile(r"[A-Za-z0-9._~-]{16,}")


class ControlToken:
    """Tells the token, and the cookie that stands for it, from anything else.

    The token itself is not kept. A browser gets a `cookie` from which it can't be worked out.
    """

    def __init__(self, token: str) -> None:
        """Raises DialsimError, without showing it, if the token is too short or can't be sent."""
        if not _FORM.fullmatch(token):
            raise DialsimError(
                "the control token must have at least 16 characters, all of them letters, digits, "
                "or one of . _ ~ -"
            )
        self.cookie = hmac.digest(token.encode(), b"cookie of the control plane", sha256).hex()
        self._tokens = KeyRing([token])
        self._cookies = KeyRing([self.cookie])

    def is_token(self, offered: str) -> bool:
        """Whether it is the token; takes equally long for whatever is offered."""
        return self._tokens.owner(offered.encode()) is not None

    def is_cookie(self, offered: str) -> bool:
        """Whether it is the cookie's value; takes equally long for whatever is offered."""
        return self._cookies.owner(offered.encode()) is not None


def checked_host(host: str, token: ControlToken | None) -> str:
    """The IP address to listen on.

    Raises DialsimError for what is none, and for one that other machines reach if there is no
    token.
    """
    if host == "localhost":
        host = "127.0.0.1"
    try:
        local = ip_address(host)
    except ValueError:
        raise DialsimError(f"--host {host}: give an IP address such as 127.0.0.1") from None
    if token is None and not local.is_loopback:
        raise DialsimError(
            f"--host {host}: other machines reach this address, so it needs a control token: set "
            "DIALSIM_CONTROL_TOKEN (or --control-token), or listen on 127.0.0.1 or ::1"
        )
    return host


def hostname(url: str) -> str | None:
    """The host that a URL names, without its port; None if it can't be read."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def is_loopback(name: str | None) -> bool:
    """Whether it is this machine by every resolver: `localhost`, or a number such as 127.0.0.2."""
    try:
        return name == "localhost" or ip_address(name or "").is_loopback
    except ValueError:
        return False
