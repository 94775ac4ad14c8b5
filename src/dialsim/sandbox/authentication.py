"""Authentication: who asks is known before anything else under /api is looked at (section 5)."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from dialsim.interface.errors import Refused
from dialsim.sandbox.api_keys import KeyRing
from dialsim.sandbox.envelopes import failure

_HEADER = b"x-api-key"


class Authentication:
    """Lets a request under /api pass with the position of its organization, or answers 401."""

    def __init__(self, app: ASGIApp, keys: KeyRing) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and _is_guarded(scope["path"]):
            try:
                scope["organization"] = self._organization(scope)
            except Refused as refused:
                await failure(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _organization(self, scope: Scope) -> int:
        # a header sent twice counts as one with a comma in it, which is no key
        key = b", ".join(value for name, value in scope["headers"] if name == _HEADER).strip()
        if not key:
            raise Refused(401, "API_KEY_REQUIRED", ["API key is required"])
        owner = self._keys.owner(key)
        if owner is None:
            raise Refused(401, "INVALID_API_KEY", ["Invalid API key"])
        return owner


def _is_guarded(path: str) -> bool:
    return path == "/api" or path.startswith("/api/")
