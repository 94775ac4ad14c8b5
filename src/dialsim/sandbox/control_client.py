"""The sandbox's own client: what `Sandbox` asks of its server, and refusals as errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from dialsim.interface.errors import DialsimError, Refused


class ControlClient:
    """Asks a server over HTTP, as any client would; threads may share one."""

    def __init__(self, url: str) -> None:
        # the next request may be long after this one: no connection is kept for it
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(
            base_url=url, timeout=None, limits=limits, trust_env=False, verify=False
        )

    def close(self) -> None:
        """Give everything back."""
        self._http.close()

    def ask(self, method: str, path: str, body: object = None, api_key: str | None = None) -> Any:
        """The decoded answer; `body` is sent as JSON unless it is None.

        Raises `Refused` with the status, code and texts of an error envelope, DialsimError if no
        answer comes.
        """
        headers = {} if api_key is None else {"X-API-Key": api_key}
        return self._answer(method, path, json=body, headers=headers)

    def upload(self, path: str, csv: bytes, query: Mapping[str, str]) -> Any:
        """The decoded answer to a CSV; errors as of `ask`."""
        headers = {"Content-Type": "text/csv"}
        return self._answer("POST", path, content=csv, params=query, headers=headers)

    def download(self, path: str) -> bytes:
        """The answer to a GET as it is; errors as of `ask`."""
        return self._response("GET", path).content

    def _answer(self, method: str, path: str, **more: Any) -> Any:
        return self._response(method, path, **more).json()

    def _response(self, method: str, path: str, **more: Any) -> httpx.Response:
        if self._http.is_closed:
            raise DialsimError("the sandbox was stopped")
        try:
            response = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise DialsimError(f"the sandbox doesn't answer: {error}") from error
        if response.is_error:
            answer = response.json()
            raise Refused(answer["statusCode"], answer["code"], answer["errors"])
        return response
