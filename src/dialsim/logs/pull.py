"""Read a running campaign from the service and write it as a scenario to forecast from.

The client of the service only reads, with a rate limit and retries. The interface's data go into
`people.csv`: how often each person was called, and the result. Values that the interface does not
show are options or guesses, with comments in `scenario.yaml`. Pages are cached beside the folder,
in `.DIR.pull`, so that an interrupted command resumes.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from dialsim import __version__
from dialsim.errors import DialsimError, ServiceError, ValidationFailed
from dialsim.interface.instants import format_instant, minute_text, ms_of
from dialsim.interface.model import is_uuid
from dialsim.interface.schedule import ScheduleRequest, read_schedule
from dialsim.logs.calibrate import NEVER_SATURATED, Calibration, calibrate
from dialsim.logs.log import Log
from dialsim.logs.pulled import (
    Answered,
    LoggedCampaign,
    Pulled,
    PulledCampaign,
    PulledRecipient,
    numbers_of_several,
    write_pulled,
)
from dialsim.results.folder import check_place
from dialsim.results.result import Progress

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
    """Answer of the service: the envelope's `data`, and the `Date` header (ms, or None)."""

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
        # In monotonic time, of which 0 is past, so that the first request is made at once.
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
        """True if a retry may help; False if the address has never answered."""
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
        return ServiceError(f"{answer}, an error of the service, {_times(tries)}; try again later")

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
    # Planners paste the address with /api; all paths here begin with /api already.
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
    """Return `Retry-After` in seconds, even if it is a date (RFC 9110, section 10.2.3)."""
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


FRESH_SECONDS = 900
"""Time (s) for which cached pages of an interrupted command are used; afterwards the campaign has
moved on.
"""
_LONGEST_SILENCE = 7 * 86_400_000
"""Longest time (ms) from the newest change to the service's clock that is plausible.

A clock further ahead is a different one, such as a sandbox's virtual clock.
"""


class _Page(Answered):
    total_recipients: int
    total_pages: int
    recipients: list[PulledRecipient]


def read_schedule_file(file: Path) -> ScheduleRequest:
    """Read the body of a schedule request from a JSON file. Raises ServiceError."""
    try:
        return read_schedule(json.loads(file.read_bytes()))
    except OSError as error:
        raise ServiceError(f"{file} can't be read: {error.strerror}") from None
    except ValidationFailed as error:
        raise ServiceError(f"{file} is no body of a schedule request: {error}") from None
    except ValueError as error:
        raise ServiceError(
            f"{file} must hold the body of the schedule request as JSON: {error}"
        ) from None


def pull(
    client: ServiceClient,
    campaigns: Sequence[str],
    out: Path,
    *,
    schedules: Sequence[ScheduleRequest] = (),
    lines: int | None = None,
    now: int | None = None,
    log: Log | None = None,
    calibrated: bool = True,
    force: bool = False,
    progress: Progress | None = None,
) -> Pulled:
    """Read campaigns by their ids and write them as a scenario to the folder `out`.

    `schedules` are the requests that started them: none, one for all, or one each. `lines` is
    maxConcurrentCalls, `now` the instant of the data (ms), by default the service's clock.
    A `log` of the campaigns' webhooks supplies names, schedules and lines that are missing
    elsewhere, and when calls ended; if `calibrated`, the scenario gets the behaviour estimated from
    all its calls (`calibrate`).

    The folder is written completely or, if an error is raised, not touched. Raises ServiceError,
    OutputError, ScenarioError.
    """
    identifiers = _checked_ids(campaigns)
    if len(schedules) not in (0, 1, len(identifiers)):
        raise ServiceError(
            f"{len(schedules)} schedules for {len(identifiers)} campaigns: give none, one for all, "
            "or one for each, in their order"
        )
    check_place(out, force)
    pages = _Pages(client, out)
    found = []
    for number, identifier in enumerate(identifiers, 1):
        name = "people.csv" if len(identifiers) == 1 else f"people-{number}.csv"
        found.append(PulledCampaign(identifier, pages.read(identifier, progress), name))
    for number, campaign in enumerate(found):
        logged = campaign.logged = None if log is None else _logged(log, campaign)
        if schedules:
            campaign.schedule = schedules[number % len(schedules)]
        else:
            campaign.schedule = logged.schedule if logged else None
    at, notes = _instant(pages.at, found, now)
    pulled = Pulled(out, at, found, notes)
    behaviours = _behaviours(log, pulled, lines) if log is not None and calibrated else None
    write_pulled(pulled, client.url, lines, behaviours, force)
    # Only after writing succeeded: an error above must not cost the pages, which take long to read.
    pages.remove()
    return pulled


def _checked_ids(campaigns: Sequence[str]) -> list[str]:
    for identifier in campaigns:
        if not is_uuid(identifier):
            raise ServiceError(
                f'campaign "{identifier}": must be the campaign\'s id, a UUID such as '
                "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"
            )
    # The same UUID may be given in both cases.
    identifiers = [identifier.lower() for identifier in campaigns]
    twice = [name for name, count in Counter(identifiers).items() if count > 1]
    if twice:
        raise ServiceError(f"campaign {twice[0]} is given twice")
    return identifiers


def _logged(log: Log, campaign: PulledCampaign) -> LoggedCampaign:
    """Return the log's data on a campaign; raises ServiceError if the log lacks the campaign."""
    shared = numbers_of_several(campaign.recipients)
    found = LoggedCampaign.of(log, campaign.id, shared)
    if found is None:
        known = ", ".join(f"{part.name} ({part.id})" for part in log.campaigns if part.id)
        raise ServiceError(
            f"{log.source} has no call of campaign {campaign.id}; it has: {known or 'none'}"
        )
    return found


def _behaviours(log: Log, pulled: Pulled, lines: int | None) -> Calibration | None:
    """Estimate the behaviour from the log; None, with a note, if it has too few calls."""
    try:
        found = calibrate(log, lines=lines)
    except DialsimError as error:
        pulled.notes.append(f"{error}: the built-in default behaviour is taken.")
        return None
    calls = sum(part.calls for part in found.behaviours.values())
    pulled.notes.append(f"How people behave is estimated from {calls:,} calls of {log.source}.")
    pulled.notes += [f"{one}." for one in found.outages]
    if found.assumes_holds:
        pulled.notes.append(f"{NEVER_SATURATED[0].upper()}{NEVER_SATURATED[1:]}.")
    return found


class _Pages:
    """Pages of recipients, cached in files so that an interrupted command resumes.

    `at` is the newest header `Date` (ms) of the answers.
    """

    def __init__(self, client: ServiceClient, out: Path) -> None:
        self.at: int | None = None
        self._client = client
        self._folder = Path(os.path.abspath(out)).with_name(f".{out.name}.pull")
        # The address is part of the names, so that pages of a sandbox are never taken for the
        # service's.
        self._mark = hashlib.sha256(client.url.encode()).hexdigest()[:12]

    def read(self, campaign: str, progress: Progress | None) -> list[PulledRecipient]:
        """Return all recipients of a campaign in upload order (the service lists the newest
        first).
        """
        people: dict[str, PulledRecipient] = {}
        number = pages = 1
        total = 0
        while number <= pages:
            page = self._page(campaign, number)
            # The list has changed, so its pages have shifted; the comparison of counts below
            # reports it.
            if number > 1 and page.total_recipients != total:
                break
            total, pages = page.total_recipients, page.total_pages
            people |= {person.id: person for person in page.recipients}
            if progress is not None:
                progress(number, max(pages, 1))
            number += 1
        if len(people) != total:
            # Otherwise the same command would read the same contradictory pages from the cache.
            self._forget(campaign)
            raise ServiceError(
                f"campaign {campaign}: the service says {total:,} recipients, but its pages "
                f"have {len(people):,}; the list changed while it was read: run the command again"
            )
        return [*people.values()][::-1]

    def remove(self) -> None:
        """Remove the cache: everything is in the folder now."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _page(self, campaign: str, number: int) -> _Page:
        path = f"/api/campaign/{campaign}/recipients?page={number}"
        file = self._folder / f"{self._mark}-{campaign}-{number}.json"
        answer = _kept(file)
        if answer is None:
            answer = self._client.get(path)
            page = _checked_page(answer.data, f"{self._client.url}{path}")
            self._keep(file, answer)
        else:
            page = _checked_page(answer.data, str(file))
        self.at = max(filter(None, (self.at, answer.at)), default=None)
        return page

    def _keep(self, file: Path, answer: ServiceAnswer) -> None:
        draft = file.with_suffix(".part")
        try:
            # For the owner only: pages hold names and phone numbers.
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Renamed when complete: a kill must not leave half a page for the next command.
            draft.write_text(json.dumps([answer.at, answer.data]), encoding="utf-8")
            draft.replace(file)
        except OSError as error:
            raise ServiceError(f"{self._folder} can't be written: {error.strerror}") from None

    def _forget(self, campaign: str) -> None:
        for file in self._folder.glob(f"*-{campaign}-*"):
            file.unlink(missing_ok=True)


def _kept(file: Path) -> ServiceAnswer | None:
    """Return a cached page if it is still fresh, else None."""
    with suppress(OSError, ValueError):
        if time.time() - file.stat().st_mtime < FRESH_SECONDS:
            at, data = json.loads(file.read_text(encoding="utf-8"))
            return ServiceAnswer(data, at)
    return None


def _checked_page(data: object, source: str) -> _Page:
    try:
        return _Page.model_validate(data)
    except ValidationError as error:
        # Without the value, which may be personal data
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise ServiceError(
            f"{source}: data.{path} is not as the interface has it: {first['msg']}; is this the "
            "service?"
        ) from None


def _instant(
    clock: int | None, found: Sequence[PulledCampaign], now: int | None
) -> tuple[int, list[str]]:
    """Return the instant of the data (ms), and notes about it.

    It is the clock in the service's answers, but not before the newest change. If that clock is far
    ahead of every change, the newest change is used instead: a sandbox has a virtual clock.
    """
    newest = max((p.updated_at for part in found for p in part.recipients), default=None)
    if now is not None:
        if newest is not None and newest > now:
            raise ServiceError(
                f"--now {format_instant(now)} is before the newest change of a recipient, "
                f"{format_instant(newest)}"
            )
        return now, []
    if newest is None or (clock is not None and clock - newest <= _LONGEST_SILENCE):
        known = [instant for instant in (clock, newest) if instant is not None]
        return max(known, default=round(time.time() * 1000)), []
    note = (
        f"The data are taken to be of {minute_text(newest)} Thai time, the newest change of a "
        "recipient"
    )
    clock_text = "" if clock is None else f": the service's clock says {minute_text(clock)}"
    return newest, [f"{note}{clock_text}; if that is wrong, give --now."]
