"""The `history.…` columns of a CSV: where each recipient stands when the scenario begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from dialsim.interface.status import CallStatus
from dialsim.scenario.clock import Beginning, not_after
from dialsim.scenario.csv_source import CsvSource, quoted
from dialsim.scenario.history import MOST_ATTEMPTS, Past, contradiction
from dialsim.scenario.problems import Problems
from dialsim.scenario.units import parse_offset_instant

PREFIX = "history."
_KEYS = ("callAttempt", "latestCallStatus", "lastEndedAt", "lastCallerId")
HISTORY_COLUMNS = tuple(PREFIX + key for key in _KEYS)

_COUNT = re.compile(r"[0-9]{1,9}")
_STATUSES = {status.value: status for status in CallStatus}
_Value = TypeVar("_Value")


def read_history(source: CsvSource, start: Beginning, problems: Problems) -> dict[int, Past]:
    """The history of each recipient who has one, by row; what is wrong with it is noted.

    No history may pass `start`. A row whose history cells are all empty has none.
    """
    found: dict[int, Past] = {}
    faults: list[tuple[str, str]] = []
    for row, cells in enumerate(_rows(source)):
        past = _past(start, faults, *cells) if any(cells) else None
        if past is not None:
            found[row] = past
        for key, says in faults:
            _note(source, row, PREFIX + key, says, problems)
        faults.clear()
    return found


def _rows(source: CsvSource) -> Iterator[tuple[str, ...]]:
    """The four cells of each row, empty where the file lacks the column; none if it lacks all."""
    header, empty = source.header, [""] * len(source.rows)
    if any(name in header for name in HISTORY_COLUMNS):
        columns = (
            source.column(header.index(name)) if name in header else empty
            for name in HISTORY_COLUMNS
        )
        yield from zip(*columns, strict=True)


def _note(source: CsvSource, row: int, name: str, says: str, problems: Problems) -> None:
    place = source.header.index(name) if name in source.header else 0
    source.note(problems, source.row_lines[row], place, name, f"{name} {says}")


def _past(
    start: Beginning,
    faults: list[tuple[str, str]],
    attempts: str,
    status: str,
    ended_at: str,
    number: str,
) -> Past | None:
    """Where one row leaves its recipient; None where there was no call, or `faults` were found."""

    def read(key: str, reader: Callable[[str], _Value], cell: str) -> _Value | None:
        try:
            return reader(cell) if cell else None
        except ValueError as error:
            faults.append((key, str(error)))
            return None

    call_attempt = read("callAttempt", _count, attempts) or 0
    latest = read("latestCallStatus", _status, status)
    last = read("lastEndedAt", parse_offset_instant, ended_at)
    if last is not None and last > start.at > 0:
        faults.append(("lastEndedAt", not_after(start)))
    if not faults and (wrong := contradiction(call_attempt, latest, last)):
        faults.append(wrong)
    if faults or latest is None or last is None:
        return None
    return Past(call_attempt, latest, last, number or None)


def _count(cell: str) -> int:
    if not _COUNT.fullmatch(cell):
        raise ValueError(f"must be a whole number of 0 or more, not {quoted(cell)}")
    if int(cell) > MOST_ATTEMPTS:
        raise ValueError(f"must be at most {MOST_ATTEMPTS}, not {quoted(cell)}")
    return int(cell)


def _status(cell: str) -> CallStatus:
    if cell not in _STATUSES:
        *others, last = _STATUSES
        raise ValueError(f"must be {', '.join(others)} or {last}, not {quoted(cell)}")
    return _STATUSES[cell]
