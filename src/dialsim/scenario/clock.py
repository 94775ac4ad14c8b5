"""The clock's start: where it comes from, and what may not lie before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dialsim.interface.instants import format_instant, parse_instant
from dialsim.scenario.document import Cursor
from dialsim.scenario.problems import Problems
from dialsim.scenario.units import era_fault, parse_offset_instant


@dataclass(frozen=True, slots=True)
class Beginning:
    """Before it nothing is asked for, and by then every history has ended.

    `at` is in ms, 0 if unknown; `name` is what problems call it.
    """

    at: int
    name: str = "clock.start"

    def __str__(self) -> str:
        return f"{self.name}, {format_instant(self.at).replace('.000Z', 'Z')}"


def start_of(root: Cursor, problems: Problems) -> int:
    """When a document's clock starts, in ms since 1970: as it says, else its earliest instant.

    It is 0 where that can't be read; having no instant at all is noted as a problem.
    """
    written = root.at("clock", "start")
    if written.exists:
        return _read(written, parse_offset_instant) or 0
    read = [_read(instant, parse_offset_instant) for instant in _instants(root)]
    read += [_read(instant, _parse_start) for instant in _start_date_times(root)]
    campaigns = [o for o in root.at("organizations").items() if list(o.at("campaigns").items())]
    if campaigns and not read:
        says = "is required: there is no scheduledAt, startDateTime or timeline instant instead"
        problems.add(written, says)
    return min((instant for instant in read if instant is not None), default=0)


def check_order(root: Cursor, start: Beginning, problems: Problems) -> None:
    """Note the instants of the document that lie on the wrong side of its beginning."""
    for cursor in _instants(root):
        instant = _read(cursor, parse_offset_instant)
        if instant is not None and instant < start.at:
            problems.add(cursor, f"must not be before {start}")
    for cursor in _histories(root):
        instant = _read(cursor.at("lastEndedAt"), parse_offset_instant)
        if instant is not None and instant > start.at > 0:
            problems.add(cursor.at("lastEndedAt"), not_after(start))


def not_after(start: Beginning) -> str:
    """What a history that goes on after the beginning is told."""
    return f"must not be after {start}"


def _histories(root: Cursor) -> Iterator[Cursor]:
    for organization in root.at("organizations").items():
        for campaign in organization.at("campaigns").items():
            for person in campaign.at("recipients").items():
                if person.at("history").exists:
                    yield person.at("history")


def _instants(root: Cursor) -> Iterator[Cursor]:
    for organization in root.at("organizations").items():
        for campaign in organization.at("campaigns").items():
            if campaign.at("scheduledAt").exists:
                yield campaign.at("scheduledAt")
        for action in organization.at("timeline").items():
            if action.at("at").exists:
                yield action.at("at")


def _start_date_times(root: Cursor) -> Iterator[Cursor]:
    for organization in root.at("organizations").items():
        bodies = [campaign.at("schedule") for campaign in organization.at("campaigns").items()]
        bodies += [action.at("body") for action in organization.at("timeline").items()]
        for body in bodies:
            if body.exists:
                yield body.at("startDateTime")


def _parse_start(text: str) -> int:
    """Read a startDateTime; a Buddhist year is no instant, so that nothing is held against it."""
    if era_fault(text) is not None:
        raise ValueError
    return parse_instant(text)


def _read(cursor: Cursor, parse: Callable[[str], int]) -> int | None:
    try:
        return parse(cursor.text or "")
    except ValueError:
        return None
