"""Recipients from a CSV: which columns it may have, and the checks of their cells."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial

from dialsim.interface.agent import ParamSchema
from dialsim.interface.identifiers import is_uuid
from dialsim.scenario.clock import Beginning
from dialsim.scenario.corrections import number_meant
from dialsim.scenario.csv_history import HISTORY_COLUMNS, read_history
from dialsim.scenario.csv_source import CsvSource, quoted
from dialsim.scenario.fields import PHONE_PATTERN, PHONE_TEXT, ParamValue
from dialsim.scenario.people_table import MOST_SEGMENTS, Codes, PeopleTable
from dialsim.scenario.phones import phone_meant
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.scripts import parse_script
from dialsim.scenario.wording import few

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
