"""HTTP client of the service that reads only, with a rate limit and retries."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dialsim import __version__
from dialsim.errors import ServiceError
from dialsim.interface.instants import ms_of

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "DIALSIM_API_KEY"
"""Environment variable with the API key, used if no file is named."""
LONGEST_WAIT = 600.0
"""Longest `Retry-After` (s) that is waited for; longer ones end the command with an error."""
_LONGEST_BACKOFF = 60.0
_BUSY = (429, 500, 502, 503, 504)
_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_MOST_SHOWN = 200


def read_api_key(file: Path | None) -> str:
    """Return the API key in a file or, if `file` is None, in the environment variable.

    Raises ServiceError if it is missing or malformed; no message contains any part of it.
    """
    if file is None:
        text, source = os.environ.get(KEY_VARIABLE, ""), f"environment variable {KEY_VARIABLE}"
        if not text.strip():
            raise ServiceError(
                f"no API key: name a file that holds it (--api-key-file), or set {KEY_VARIABLE}; "
                "it is shown in the dashboard under System, Developers, API Key"
            )
    else:
        source = f"API key file {file}"
        try:
            # Editors on Windows add a byte order mark, which no header may contain.
            text = file.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise ServiceError(f"{source} can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ServiceError(
                f"{source} is no text: it must hold the key and nothing else"
            ) from None
    key = text.strip()
    if not _PRINTABLE.fullmatch(key):
        what = "is empty" if not key else "must hold one key on one line and nothing else"
        raise ServiceError(f"{source} {what}")
    return key


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """`data` of a success envelope, and the `Date` of the answer (ms; None without one)."""

    data: Any
    at: int | None


class ServiceClient:
    """Client that reads the service at `url` with an API key; to be used in a `with` block.

    It makes at most `rate` requests per second. Temporary failures (429, 5xx, a timeout, a broken
    connection) are retried up to `retries` times, after the `Retry-After` or after 1 s, 2 s, 4 s
    and so on up to a minute. `wait(seconds)` sleeps. The key is sent in the header only, and
    redirects are not followed, so that no other host gets it.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        rate: float = 5,
        retries: int = 6,
        timeout: float = 30,
        allow_http: bool = False,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raise ServiceError if httpx is missing or `url` is invalid."""
        if find_spec("httpx") is None:
            raise ServiceError(
                "pull needs httpx: pip install '.[sandbox]' in the folder of dialsim"
            )
        import httpx

        self.url = _checked(url, allow_http)
        self._key = api_key
        self._gap, self._retries, self._wait = 1 / rate, retries, wait
        # A monotonic time, so that the first request is made at once.
        self._next_at = 0.0
        self._answered = False
        self._client = httpx.Client(
            timeout=timeout,
            headers={"X-API-Key": api_key, "User-Agent": f"dialsim/{__version__}"},
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def get(self, path: str) -> ServiceAnswer:
        """Return the answer of the service; raises ServiceError if it is no success."""
        import httpx

        for tried in range(self._retries + 1):
            self._keep_pace()
            last = tried == self._retries
            try:
                response = self._client.get(self.url + path)
            except httpx.TransportError as error:
                if last or not self._may_pass(error):
                    raise self._unreachable(error, tried + 1) from None
                self._wait(_backoff(tried))
                continue
            self._answered = True
            if response.status_code not in _BUSY:
                return self._read(response, path)
            asked = _retry_after(response)
            if last or (asked is not None and asked > LONGEST_WAIT):
                raise self._busy(response, asked, tried + 1)
            self._wait(_backoff(tried) if asked is None else asked)
        # Every path of the last try has returned or raised.
        raise AssertionError

    def _keep_pace(self) -> None:
        left = self._next_at - time.monotonic()
        if left > 0:
            self._wait(left)
        self._next_at = time.monotonic() + self._gap

    def _may_pass(self, error: httpx.TransportError) -> bool:
        """True if a retry may help: not if nothing has ever answered at the address."""
        import httpx

        connecting = isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol)
        return not _is_tls(error) and (self._answered or not connecting)

    def _unreachable(self, error: httpx.TransportError, tries: int) -> ServiceError:
        import httpx

        reason = self._hidden(str(error)) or type(error).__name__
        if _is_tls(error):
            return ServiceError(
                f"{self.url}: no secure connection: {reason}; is the address right, and this "
                "machine's clock? The key was not sent"
            )
        if isinstance(error, httpx.TimeoutException):
            return ServiceError(
                f"{self.url} gave no answer in time, {_times(tries)}; try again later, "
                "or with a longer --timeout"
            )
        return ServiceError(f"{self.url} can't be reached: {reason}; is the address right?")

    def _busy(self, response: httpx.Response, asked: float | None, tries: int) -> ServiceError:
        answer = f"{self.url} answers {response.status_code}"
        if asked is not None and asked > LONGEST_WAIT:
            return ServiceError(
                f"{answer} and asks to wait {round(asked):,} s: repeat the command then"
            )
        if response.status_code == 429:
            return ServiceError(f"{answer}, too many requests, {_times(tries)}; try a lower --rate")
        return ServiceError(f"{answer}, a fault of its own, {_times(tries)}; try again later")

    def _read(self, response: httpx.Response, path: str) -> ServiceAnswer:
        status = response.status_code
        # A redirect may lead to another host, which must not get the key.
        if response.is_redirect:
            target = self._hidden(response.headers.get("location", "elsewhere"))
            raise ServiceError(
                f"{self.url}{path} sends us to {target}, which is not followed so that the key "
                "stays here: give the address that it leads to"
            )
        try:
            content = response.json()
        except ValueError:
            content = None
        envelope = content if isinstance(content, dict) else {}
        if status == 200 and envelope.get("success") is True and "data" in envelope:
            return ServiceAnswer(envelope["data"], _date(response))
        raise self._refused(path, response, envelope)

    def _refused(
        self, path: str, response: httpx.Response, envelope: dict[str, Any]
    ) -> ServiceError:
        status, code = response.status_code, envelope.get("code")
        message = self._hidden(str(envelope.get("message", "")))
        if status in (401, 403):
            return ServiceError(
                f"{self.url} refuses the API key ({status} {code or ''}".rstrip()
                + f"): {message or 'no reason given'}; the key in force is in the dashboard under "
                "System, Developers, API Key, and a new one ends the old one at once"
            )
        if code == "CAMPAIGN_NOT_FOUND":
            return ServiceError(
                f"{self.url} has no such campaign ({path}): is the id right, and the key that of "
                "the organization whose campaign it is?"
            )
        if code is None:
            kind = response.headers.get("content-type", "").split(";")[0] or "nothing"
            return ServiceError(
                f"{self.url}{path} answers {status} with {kind}, and not as the service does: is "
                "this the address of its interface, without /api, and not that of the dashboard or "
                "of a proxy?"
            )
        return ServiceError(
            f"{self.url}{path} answers {status} {self._hidden(str(code))}: {message}"
        )

    def _hidden(self, text: str) -> str:
        """Return a text from outside, shortened, on one line, and without the key."""
        return " ".join(text.replace(self._key, "(the key)").split())[:_MOST_SHOWN]


def _checked(url: str, allow_http: bool) -> str:
    """Return the base address without a trailing slash."""
    import httpx

    try:
        parts = httpx.URL(url.strip())
    except httpx.InvalidURL:
        parts = httpx.URL("")
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ServiceError(
            "the URL must be the service's address, such as https://voice.example.com"
        )
    # A password in the address would be printed in every message.
    if parts.userinfo or parts.query or parts.fragment:
        raise ServiceError(
            "the URL must be the service's address alone: no name, password or query"
        )
    if parts.scheme == "http" and not allow_http and not _is_here(parts.host):
        raise ServiceError(
            f"{url}: by http the key would travel unencrypted; use https, or say --allow-http"
        )
    # Planners paste the address of the interface, which paths here begin with themselves.
    return str(parts).rstrip("/").removesuffix("/api")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_tls(error: BaseException) -> bool:
    """True if the TLS handshake failed, which a retry would not change."""
    import ssl

    cause: BaseException | None = error
    # The error of the handshake is wrapped by httpcore, and that again by httpx.
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _times(tries: int) -> str:
    return "once" if tries == 1 else f"{tries} times in a row"


def _backoff(tried: int) -> float:
    """Return the wait (s) before a retry: 1, 2, 4 and so on, ±25 % so that clients spread out."""
    return min(_LONGEST_BACKOFF, 2.0**tried) * random.uniform(0.75, 1.25)


def _retry_after(response: httpx.Response) -> float | None:
    """Return the header in seconds, also if it is a date (RFC 9110, section 10.2.3)."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    at = _http_date(text)
    return None if at is None else max(0.0, at.timestamp() - time.time())


def _date(response: httpx.Response) -> int | None:
    at = _http_date(response.headers.get("date", ""))
    return None if at is None else ms_of(at)


def _http_date(text: str) -> datetime | None:
    """Parse the date of a header, which is UTC even if it does not say so (RFC 9110, section
    5.6.7).
    """
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
