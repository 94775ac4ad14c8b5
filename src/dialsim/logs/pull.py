"""Read a running campaign from the service and write it as a scenario to forecast from.

The interface's data go into `people.csv`: how often each person was called, and the result. What it
does not show is an option or a guess, with a comment in `scenario.yaml`. Pages are cached beside
the folder, in `.DIR.pull`, so that an interrupted command resumes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from dialsim.errors import DialsimError, ServiceError, ValidationFailed
from dialsim.interface.instants import format_instant, minute_text
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
from dialsim.logs.service import ServiceAnswer, ServiceClient
from dialsim.results.folder import check_place
from dialsim.results.result import Progress

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
            f"{file} must hold the body of the schedule request as JSON, but {error}"
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
    """Return the log's data on a campaign; raises ServiceError if it has no call of it."""
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

    `at` is the newest instant (ms) that an answer gives for itself.
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
            # Renamed when complete: a kill must not leave half a page that the next command
            # believes.
            draft.write_text(json.dumps([answer.at, answer.data]), encoding="utf-8")
            draft.replace(file)
        except OSError as error:
            raise ServiceError(f"{self._folder} can't be written: {error.strerror}") from None

    def _forget(self, campaign: str) -> None:
        for file in self._folder.glob(f"*-{campaign}-*"):
            file.unlink(missing_ok=True)


def _kept(file: Path) -> ServiceAnswer | None:
    """Return a cached page if it is still fresh."""
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
