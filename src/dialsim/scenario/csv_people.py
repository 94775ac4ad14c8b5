"""Recipients from a CSV: which columns it may have, and the checks of their cells."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial

from dialsim.interface.agent import ParamSchema
from dialsim.interface.identifiers import is_uuid
from dialsim.scenario.clock import Beginning
from dialsim.scenario.csv_history import HISTORY_COLUMNS, read_history
from dialsim.scenario.csv_source import CsvSource, quoted
from dialsim.scenario.fields import PHONE_PATTERN, PHONE_TEXT, ParamValue
from dialsim.scenario.people_table import Codes, PeopleTable
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.scripts import parse_script

PARAM = "agentParams."
COLUMNS = ("tel", "customerName", "segment", "script", "id")

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
        elif name == "script":
            table.scripts = cells.scripts()
    return table


def _check_header(source: CsvSource, schema: Mapping[str, ParamSchema], problems: Problems) -> None:
    if len(source.header) == 1 and re.search(r"[;\t]", source.header[0]):
        source.note(problems, 1, 0, "", "columns are separated by commas, not by ; or tabs")
        return
    known = [*COLUMNS, *HISTORY_COLUMNS, *(PARAM + name for name in schema)]
    for index, name in enumerate(source.header):
        if name and name not in known and not name.startswith(PARAM):
            near = [PARAM + name] if name in schema else get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; columns are {', '.join(known)}"
            source.note(problems, 1, index, name, f"{name} is not a known column{hint}")
    needed = ["tel", *(PARAM + name for name, entry in schema.items() if entry.required)]
    for name in needed:
        if source.header and name not in source.header:
            says = f"the column {name} is missing"
            problems.note(Problem(source.file, 1, 1, name, says))


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
                says = f"{PHONE_TEXT}, not {quoted(cell)}" if cell else "must not be empty"
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
                self._wrong(row, f"must be {wanted}, not {quoted(cell)}")
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
