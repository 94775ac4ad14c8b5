"""The schedule requests of a scenario, read and checked by the interface's own rules (C9, C10)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from dialsim.interface.faults import Fault, ScheduleRejected
from dialsim.interface.instants import parse_instant_or_epoch
from dialsim.interface.schedule import (
    CallingAccount,
    ScheduleRequest,
    check_conditions,
    read_schedule,
)
from dialsim.scenario.problems import Problem, Problems, told
from dialsim.scenario.references import voice_keys
from dialsim.scenario.tree import Cursor, Scalar, put
from dialsim.scenario.units import era_fault, has_offset, instant_meant, parse_duration
from dialsim.scenario.wording import behind, quoting, suggestion, unlike

_UNKNOWN = re.compile(r"(?:[\w.]*\.)?property .* should not exist", re.DOTALL)
_OWN_PATH = re.compile(r"(?:each value in )?[a-z][\w.]* (?:must|should not) ")
_DATE = "must be a valid ISO 8601 date string"
_EXAMPLE = "2026-01-05T09:00:00+07:00"
_EXAMPLES = (("must be HH:MM", "09:00"), (_DATE, "2026-01-05T02:00:00Z"))
INSTANTS = ("startDateTime", "endDateTime")
"""The fields of a schedule request that hold instants."""


def read_schedules(
    root: Cursor, problems: Problems
) -> Iterator[tuple[Cursor, ScheduleRequest | None]]:
    """Each schedule request of a document, with the place of its body.

    Bodies that fail steps 1 or 4 of the interface's checks are noted, in its words, and None.
    """
    voices = voice_keys(root)
    for organization in root.at("organizations").items():
        account = _account(organization)
        for _, body in _bodies(organization):
            yield body, _read(body, account, voices, root, problems)


@dataclass(frozen=True, slots=True)
class BareInstant:
    """An instant of a schedule request that is written without an offset, and `at`, in ms.

    `campaign` is the name as in `January of Acme`.
    """

    campaign: str
    field: str
    text: str
    at: int


def bare_instants(root: Cursor) -> Iterator[BareInstant]:
    """The instants of a good document's schedule requests that are UTC for want of an offset.

    Those before 1970 are left out: they are past in either reading.
    """
    for organization in root.at("organizations").items():
        for campaign, body in _bodies(organization):
            for field in INSTANTS:
                text = body.at(field).text
                at = 0 if text is None or has_offset(text) else parse_instant_or_epoch(text)
                if text is not None and at > 0:
                    name = f"{campaign} of {organization.at('name').text}"
                    yield BareInstant(name, field, text, at)


def _bodies(organization: Cursor) -> Iterator[tuple[str, Cursor]]:
    """Each schedule request of an organization, with the name of the campaign that it is for."""
    for campaign in organization.at("campaigns").items():
        if campaign.at("schedule").exists:
            yield campaign.at("name").text or "", campaign.at("schedule")
    for action in organization.at("timeline").items():
        if action.at("body").exists:
            yield action.at("campaign").text or "", action.at("body")


def _account(organization: Cursor) -> CallingAccount:
    """What requests may ask of an organization, as far as its block can be read."""
    numbers = [number.text for number in organization.at("callerIds").items()]
    accounts = {
        account.at("id").text or "": {
            caller.at("id").text or "": caller.at("number").text or ""
            for caller in account.at("callerIds").items()
        }
        for account in organization.at("sipAccounts").items()
    }
    alert = organization.at("duplicateCallAlert").exists
    return CallingAccount(frozenset(text for text in numbers if text), accounts, alert)


def _read(
    body: Cursor,
    account: CallingAccount,
    voices: Collection[str],
    root: Cursor,
    problems: Problems,
) -> ScheduleRequest | None:
    values, sound = _in_common_era(body, problems)
    try:
        request = read_schedule(values)
        check_conditions(request, account, voices)
    except ScheduleRejected as rejected:
        for fault in rejected.faults:
            problems.note(_problem(fault, body, root))
        return None
    return request if sound else None


def _in_common_era(body: Cursor, problems: Problems) -> tuple[object, bool]:
    """The body with Buddhist years as they are meant, and whether it has none.

    Each is noted, and everything else is then checked as if it were right.
    """
    values = body.value
    faults = dict(era_faults(values))
    for name, says in faults.items():
        written = body.at(name)
        problems.add(written, says)
        text = written.text or ""
        put(values, (name,), instant_meant(text) or text)
    return values, not faults


def era_faults(body: object) -> Iterator[tuple[str, str]]:
    """Each instant of a schedule request that has a Buddhist year, and what it is told."""
    for name in INSTANTS:
        text = body.get(name) if isinstance(body, Mapping) else None
        says = era_fault(text) if isinstance(text, str) else None
        if says is not None:
            yield name, says


def _problem(fault: Fault, body: Cursor, root: Cursor) -> Problem:
    """A fault behind the path of its body: `….schedule.maxAttempts must not be less than 1`.

    The texts begin with their own path and go on with a point, as in class-validator's nested
    messages (C10); those of the conditions that name no field stand behind a colon.
    """
    culprit = body.at(*fault.path)
    if not fault.path:
        return told(body.place, body.path, unlike("must be a mapping of keys", body))
    unknown = _UNKNOWN.fullmatch(fault.message) is not None
    where = ".".join(map(str, body.path))
    join = "." if unknown or _OWN_PATH.match(fault.message) else ": "
    hint = suggestion(culprit.path, root) if unknown else _advice(fault, culprit)
    if unknown:
        culprit = replace(culprit, place=culprit.key_place)
    return behind(where + join, fault.message + hint, culprit)


def _advice(fault: Fault, culprit: Cursor) -> str:
    """What to do where a text of the interface leaves that open in a file."""
    if fault.message.endswith("must be a string"):
        return quoting(culprit)
    if isinstance(culprit.node, Scalar) and isinstance(culprit.value, int | float):
        for text, example in _EXAMPLES:
            if text in fault.message:
                return f'; put it in quotes, such as "{example}"'
    if _DATE in fault.message and culprit.text is not None:
        meant = instant_meant(culprit.text)
        return f"; write {meant}" if meant else f", such as {_EXAMPLE}"
    if culprit.path[-1] == "dayOfWeek":
        return "; it is a whole number from 1, Monday, to 7, Sunday"
    if culprit.path[-1] == "retryInterval" and culprit.text is not None:
        try:
            return f"; it is in milliseconds, here {parse_duration(culprit.text)}"
        except ValueError:
            pass
    return ""
