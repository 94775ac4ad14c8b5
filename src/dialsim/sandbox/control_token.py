"""The control token: the secret with which a sandbox is steered from other machines."""

from __future__ import annotations

import hmac
import re
from hashlib import sha256

from dialsim.interface.errors import DialsimError
from dialsim.sandbox.api_keys import KeyRing

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
