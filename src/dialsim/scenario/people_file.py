"""Recipients from a CSV: which columns it may have, and the checks of their cells."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TypeVar

from dialsim.interface.agent import ParamSchema
from dialsim.interface.model import is_uuid
from dialsim.interface.status import CallStatus
from dialsim.scenario.campaign import (
    MOST_ATTEMPTS,
    MOST_SEGMENTS,
    Codes,
    Past,
    PeopleTable,
    contradiction,
)
from dialsim.scenario.csv_file import CsvSource, quoted
from dialsim.scenario.error_text import few
from dialsim.scenario.fields import PHONE_PATTERN, PHONE_TEXT, ParamValue, number_meant, phone_meant
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.scripts import parse_script
from dialsim.scenario.service import Beginning, not_after
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


PARAM = "agentParams."
COLUMNS = ("tel", "customerName", "segment", "script", "id")

_SHOWN = 10
_PHONE = re.compile(PHONE_PATTERN[1:-1])
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def read_people(
    source: CsvSource, schema: Mapping[str, ParamSchema], start: Beginning, problems: Problems
) -> PeopleTable:
    """Read the recipients of a CSV, noting all that is wrong with it.

    `schema` is the agent's paramsSchema: it says which columns `agentParams.…` must be there and
    what they hold; an empty cell is a parameter left out. No history may pass `start`.
    """
    _check_header(source, schema, problems)
    rows = len(source.rows)
    table = PeopleTable(
        tels=[""] * rows, names=[None] * rows, ids=[None] * rows, digest=source.digest
    )
    table.lines = _compact(source.row_lines)
    table.segments.codes = table.scripts.codes = [-1] * rows
    table.history = read_history(source, start, problems)
    for index, name in enumerate(source.header):
        cells = _Cells(source, index, problems)
        if name.startswith(PARAM):
            param = name.removeprefix(PARAM)
            table.params[param] = cells.params(schema.get(param))
        elif name == "tel":
            table.tels = cells.tels()
        elif name == "customerName":
            table.names = cells.optional()
        elif name == "id":
            table.ids = cells.ids()
        elif name == "segment":
            table.segments = cells.codes()
            if len(table.segments.texts) > MOST_SEGMENTS:
                says = (
                    f"segment has {len(table.segments.texts):,} different values, but at most "
                    f"{MOST_SEGMENTS:,} are possible: is it a column of ids?"
                )
                source.note(problems, 1, index, name, says)
        elif name == "script":
            table.scripts = cells.scripts()
    return table


def _compact(lines: list[int]) -> Sequence[int]:
    """Ascending numbers as a range, where none is left out: a million rows need no list of them."""
    if lines and lines[-1] - lines[0] == len(lines) - 1:
        return range(lines[0], lines[-1] + 1)
    return lines


def _check_header(source: CsvSource, schema: Mapping[str, ParamSchema], problems: Problems) -> None:
    if len(source.header) == 1 and re.search(r"[;\t]", source.header[0]):
        source.note(problems, 1, 0, "", "columns are separated by commas, not by ; or tabs")
        return
    _check_names(source, [*COLUMNS, *HISTORY_COLUMNS, *(PARAM + name for name in schema)], problems)
    needed = ["tel", *(PARAM + name for name, entry in schema.items() if entry.required)]
    for name in needed:
        if source.header and name not in source.header:
            says = f"the column {name} is missing"
            problems.note(Problem(source.file, 1, 1, name, says))


def _check_names(source: CsvSource, known: list[str], problems: Problems) -> None:
    """Note unknown columns: each with the known one that is near it, the others all at once."""
    free = [name for name in known if name not in source.header]
    strange: list[int] = []
    for index, name in enumerate(source.header):
        if not name or name in known or name.startswith(PARAM):
            continue
        near = _nearest(name, free) or _nearest(name, known)
        if near is None:
            strange.append(index)
        else:
            says = f"{name} is not a known column; did you mean {near}?"
            source.note(problems, 1, index, name, says)
    if strange:
        names = [source.header[index] for index in strange]
        are = "is not a known column" if len(names) == 1 else "are not known columns"
        says = (
            f"{few(names[:_SHOWN], len(names))} {are}: write {PARAM}{names[0]} for a parameter of "
            f"the agent, or one of {', '.join(known)}"
        )
        source.note(problems, 1, strange[0], names[0], says)


def _nearest(name: str, known: list[str]) -> str | None:
    """The known column that a name comes closest to, whatever its case, signs and first part."""
    plain = {_bare(column.rpartition(".")[2]): column for column in reversed(known)}
    plain |= {_bare(column): column for column in reversed(known)}
    near = get_close_matches(_bare(name), plain, n=1)
    return plain[near[0]] if near else None


def _bare(name: str) -> str:
    return re.sub(r"[^0-9a-zก-๛]", "", name.casefold())


class _Cells:
    """A column's cells on the way to a column of values; what is wrong with them is noted."""

    def __init__(self, source: CsvSource, index: int, problems: Problems) -> None:
        self._cells = source.column(index)
        self._note: Callable[[int, int, str], None] = partial(source.note_cell, problems)
        self._index = index

    def _wrong(self, row: int, says: str) -> None:
        self._note(row, self._index, says)

    def optional(self) -> list[str | None]:
        return [cell or None for cell in self._cells]

    def tels(self) -> list[str]:
        for row, cell in enumerate(self._cells):
            if not _PHONE.fullmatch(cell):
                meant = phone_meant(cell)
                hint = f": write {meant}" if meant else ""
                says = f"{PHONE_TEXT}, not {quoted(cell)}{hint}" if cell else "must not be empty"
                self._wrong(row, says)
        return list(self._cells)

    def ids(self) -> list[str | None]:
        for row, cell in enumerate(self._cells):
            if cell and not is_uuid(cell):
                self._wrong(row, f"must be a UUID, not {quoted(cell)}")
        return self.optional()

    def codes(self) -> Codes:
        codes = Codes()
        for cell in self._cells:
            codes.append(cell or None)
        return codes

    def scripts(self) -> Codes:
        verdicts: dict[str, str] = {"": ""}
        for row, cell in enumerate(self._cells):
            if cell not in verdicts:
                verdicts[cell] = _verdict(cell)
            if verdicts[cell]:
                self._wrong(row, verdicts[cell])
        return self.codes()

    def params(self, entry: ParamSchema | None) -> list[ParamValue | None]:
        if entry is not None and entry.required:
            for row, cell in enumerate(self._cells):
                if not cell:
                    self._wrong(row, "is required")
        if entry is None or entry.type == "text":
            return list(self.optional())
        read = _number if entry.type == "number" else _boolean
        wanted = "a number" if entry.type == "number" else "true or false"
        values: list[ParamValue | None] = []
        for row, cell in enumerate(self._cells):
            value = read(cell) if cell else None
            if cell and value is None:
                meant = number_meant(cell) if read is _number else None
                hint = f": write {meant}" if meant else ""
                self._wrong(row, f"must be {wanted}, not {quoted(cell)}{hint}")
            values.append(value)
        return values


def _verdict(script: str) -> str:
    """What is wrong with a script, "" if nothing is."""
    try:
        parse_script(script)
    except ValueError as error:
        return str(error)
    return ""


def _number(cell: str) -> ParamValue | None:
    if _INTEGER.fullmatch(cell):
        return int(cell)
    value = float(cell) if _NUMBER.fullmatch(cell) else math.inf
    return value if math.isfinite(value) else None


def _boolean(cell: str) -> ParamValue | None:
    return {"true": True, "false": False}.get(cell.lower())
