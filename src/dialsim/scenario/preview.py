"""Preview of a list of people: columns, numbers and segments.

Unlike `recipients`, which reads a list or reports its faults, this accepts any list and guesses the
meaning of its columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialsim.scenario.campaign import RecipientsFile
from dialsim.scenario.columns import COLUMNS, HISTORY_COLUMNS, PARAM
from dialsim.scenario.document import Cursor, Location, planted
from dialsim.scenario.fields import PHONE_PATTERN, kind_of_number, number_meant, phone_normalized
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.recipients import (
    columns_by_names,
    has_header,
    nearest_column,
)
from dialsim.scenario.sheet import Sheet

_KNOWN = (*COLUMNS, *HISTORY_COLUMNS)
_PHONE = re.compile(PHONE_PATTERN)
# In Thai ชื่อ is "name", ลูกค้า "customer".
_NAMES = re.compile(r"name|ชื่อ|ลูกค้า|customer", re.IGNORECASE)
_SAMPLE = 1_000  # rows inspected to guess a column
_FIRST = 5


@dataclass(frozen=True, slots=True)
class ColumnPreview:
    """Column of a list; `used_as` is its name in dialsim, None if unused.

    `filled` is the number of non-empty cells, `different` of distinct ones, `numbers` of cells that
    are numbers in any spelling; `example` is the first one.
    """

    name: str
    used_as: str | None
    filled: int
    different: int
    numbers: int
    example: str


@dataclass(frozen=True, slots=True)
class OddNumber:
    """Cell of the phone column that is no possible number of a person, with its line."""

    line: int
    written: str


@dataclass(frozen=True, slots=True)
class ListPreview:
    """Contents of a list; `file` is how to read it, with `guessed` columns.

    `mobile`, `fixed` and `foreign` count numbers in any spelling; `odd` counts the others.
    `respelled` are numbers that only `normalize` reads, or that it rewrites. `repeated` are rows
    whose number is in an earlier row.
    """

    file: RecipientsFile
    sheet: str | None
    rows: int
    columns: tuple[ColumnPreview, ...]
    guessed: tuple[str, ...]
    mobile: int
    fixed: int
    foreign: int
    odd: int
    odd_first: tuple[OddNumber, ...]
    missing: int
    respelled: int
    respelled_first: tuple[str, ...]
    repeated: int
    segments: Mapping[str, int]


def preview(content: bytes, shown: str, file: RecipientsFile) -> ListPreview:
    """Inspect a list. Raises ScenarioError if it has no rows, or no column of phone numbers."""
    problems = Problems(shown)
    sheet = Sheet.parse(content, shown, problems, file.form)
    if not has_header(sheet, problems) or not sheet.header:
        problems.raise_if_any()
    # Problems of cells are dropped: a preview accepts any list.
    sheet.load(range(len(sheet.header)), Problems(shown))
    indices, guessed = _places(sheet, file, problems)
    if "tel" not in indices and not len(problems):
        says = "no column holds phone numbers; --column tel=NAME says which one is meant"
        problems.note(Problem(shown, sheet.header_line, 1, "tel", says))
    problems.raise_if_any()
    numbers = _Numbers(sheet, sheet.column(indices["tel"]))
    segments = sheet.column(indices["segment"]) if "segment" in indices else []
    named = {index: ours for ours, index in indices.items()}
    return ListPreview(
        file=_advised(file, sheet, indices, guessed, bool(numbers.respelled)),
        sheet=sheet.name,
        rows=len(sheet.lines),
        columns=tuple(_column(sheet, index, named) for index in range(len(sheet.header))),
        guessed=guessed,
        mobile=numbers.kinds["mobile"],
        fixed=numbers.kinds["fixed"],
        foreign=numbers.kinds["foreign"],
        odd=numbers.odd,
        odd_first=tuple(numbers.odd_first),
        missing=numbers.missing,
        respelled=numbers.respelled,
        respelled_first=tuple(numbers.respelled_first),
        repeated=numbers.repeated,
        segments=dict(Counter(segment for segment in segments if segment).most_common()),
    )


def _places(
    sheet: Sheet, file: RecipientsFile, problems: Problems
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the used columns by their names in dialsim, and the guessed ones among them."""
    block = Cursor.root(planted({"columns": file.columns or {}}, Location("--column")))
    indices = columns_by_names(sheet, _KNOWN, file.columns or {}, block, problems)
    guessed: list[str] = []

    def guess(ours: str, index: int | None) -> None:
        if index is not None and ours not in indices and index not in indices.values():
            indices[ours] = index
            guessed.append(ours)

    if "tel" not in (file.columns or {}):
        guess("tel", _most_numbers(sheet))
    for index, theirs in enumerate(sheet.header):
        near = nearest_column(theirs, COLUMNS) if theirs else None
        if near not in {None, "tel", "id"}:
            guess(str(near), index)
    named = (index for index, name in enumerate(sheet.header) if _NAMES.search(name))
    guess("customerName", next((i for i in named if i not in indices.values()), None))
    return indices, tuple(guessed)


def _most_numbers(sheet: Sheet) -> int | None:
    """Return the column with the largest share of phone numbers, if at least half of its cells
    are.
    """
    counts: dict[int, float] = {}
    for index in range(len(sheet.header)):
        cells = [cell for cell in sheet.column(index)[:_SAMPLE] if cell]
        found = sum(phone_normalized(cell) is not None for cell in cells)
        if cells and found >= len(cells) / 2:
            counts[index] = found / len(cells)
    return max(counts, key=lambda index: counts[index]) if counts else None


def _advised(
    file: RecipientsFile,
    sheet: Sheet,
    indices: Mapping[str, int],
    guessed: Sequence[str],
    respelled: bool,
) -> RecipientsFile:
    """Return the recipients block for reading the list."""
    names = {ours: sheet.header[index] for ours, index in indices.items()}
    strange = any(
        name and name not in _KNOWN and not name.startswith(PARAM) for name in sheet.header
    )
    columns = file.columns
    if guessed or strange or columns is not None:
        columns = {ours: theirs for ours, theirs in names.items() if ours != theirs} or {
            "tel": names["tel"]
        }
    said = {"columns": columns, "normalize": file.normalize or respelled}
    return file.model_copy(update=said)


def _column(sheet: Sheet, index: int, named: Mapping[int, str]) -> ColumnPreview:
    cells = [cell for cell in sheet.column(index) if cell]
    different = set(cells)
    return ColumnPreview(
        name=sheet.header[index],
        used_as=named.get(index),
        filled=len(cells),
        different=len(different),
        numbers=sum(number_meant(cell) is not None for cell in cells),
        example=cells[0] if cells else "",
    )


class _Numbers:
    """Counts of a list's phone numbers by kind."""

    def __init__(self, sheet: Sheet, cells: Sequence[str]) -> None:
        self.kinds: Counter[str] = Counter()
        self.odd = self.missing = self.respelled = self.repeated = 0
        self.odd_first: list[OddNumber] = []
        self.respelled_first: list[str] = []
        seen: set[str] = set()
        for row, cell in enumerate(cells):
            if not cell:
                self.missing += 1
                continue
            number = phone_normalized(cell)
            kind = None if number is None else kind_of_number(number)
            if kind is None:
                self.odd += 1
                if len(self.odd_first) < _FIRST:
                    self.odd_first.append(OddNumber(sheet.lines[row], cell))
            else:
                self.kinds[kind] += 1
            if number not in {None, cell} and not (_PHONE.match(cell) and cell[0] == "+"):
                self.respelled += 1
                if len(self.respelled_first) < _FIRST:
                    self.respelled_first.append(cell)
            self.repeated += (number or cell) in seen
            seen.add(number or cell)
