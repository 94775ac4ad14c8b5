"""List doctor: converts a spreadsheet export into a list of people that can be called.

`recipients` reads a list strictly. The doctor repairs: it joins sheets with the same heads,
recognizes heads in Thai and English, reads phone numbers in all spellings, merges people who are
listed twice, and sets rows aside that have no usable number.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple, NoReturn

from dialsim.errors import ScenarioError
from dialsim.interface.phrases import counted, few
from dialsim.scenario.campaign import MOST_SEGMENTS, RecipientsFile
from dialsim.scenario.fields import (
    COLUMNS,
    HISTORY_COLUMNS,
    PARAM,
    ROUNDED_BY_SPREADSHEET,
    kind_of_number,
    number_meant,
    phone_normalized,
)
from dialsim.scenario.problems import Problem
from dialsim.scenario.sheet import UNSAID, FileForm, form_of, is_excel_error, raw_sheets

_OURS = (*COLUMNS, *HISTORY_COLUMNS)
_TEL = re.compile(r"\btels?\b|telephone|phone|mobile|เบอร์|โทร(?!สาร)|มือถือ", re.IGNORECASE)
# Fax machines, and guarantors, relatives and references: to call them for the customer may be
# unlawful.
_TEL_OF_OTHERS = re.compile(
    r"\bfax|แฟกซ์|โทรสาร|ค้ำ|ญาติ|ฉุกเฉิน|อ้างอิง|guarant|emergency|relative|referee", re.IGNORECASE
)
_LAST_NAME = re.compile(r"นามสกุล|surname|last.?name|family.?name", re.IGNORECASE)
_NAME = re.compile(r"name|ชื่อ|customer|ลูกค้า", re.IGNORECASE)
_SEGMENT = re.compile(r"segment|group|\btier\b|bucket|กลุ่ม|ประเภท|เกรด|ระดับ", re.IGNORECASE)
_TOTAL = re.compile(r"(?:grand |sub)?total|sum|รวม.*|ยอดรวม.*|ผลรวม.*", re.IGNORECASE)
_UNIT = re.compile(r"\([^()]*\)\s*$")  # (บาท)
_NO_IDENTIFIER = re.compile(r"[^\w\u0e00-\u0e7f]+")  # \w has no Thai vowel signs
_BLANK = frozenset({"-", "–", "—", "n/a", "na", "null", "none", "ไม่มี", "ไม่ระบุ"})
_BETWEEN_NUMBERS = re.compile(r"[,;/|\n]|หรือ|และ|\bor\b|\band\b|&", re.IGNORECASE)
_DATE = re.compile(r"[12][0-9]{3}[-/.][01]?[0-9][-/.][0-3]?[0-9]|[0-3]?[0-9]/[01]?[0-9]/[0-9]{2,4}")
# Text that people and forms put around a number: tel:, โทร., the letter O for the 0.
_BEFORE_NUMBER = re.compile(r"(?:tel|phone|mobile|โทร|มือถือ|เบอร์|o)?[.:*#=]*", re.IGNORECASE)
_EXTENSION = re.compile(r"(?:ต่อ|ext\.?|x)\s*[0-9]{1,6}\s*$", re.IGNORECASE)
_LAST_DIGITS_OF_OTHERS = re.compile(r"(?<=[0-9]{4})\s*[-–]\s*[0-9]{1,2}\s*$")  # 02-123-4567-8
_UNNAMED = re.compile(r"column [0-9]+")
_HEADS_WITHIN = 30  # rows at the top of a sheet among which the row of heads is looked for
_SAMPLE = 1_000  # rows inspected to find a column of numbers without a head
_ARE_NUMBERS = 0.98  # share of numbers among its cells that makes a column numeric
_LONGEST_CELL = 40  # characters of a head, or of a cell with two numbers
_LONGEST_NUMBER = 11  # digits; longer ones are ids, whose digits a float would lose
_FEWEST_PER_SEGMENT = 3  # people per segment on average; fewer are no segments

SHEETS = ("People", "Set aside", "Duplicates")
_ASIDE_HEADS = ("sheet", "row", "reason")
_MERGED_HEADS = ("sheet", "row", "same number as")


class ExportRow(NamedTuple):
    """Row of an export: sheet (None in a CSV), line from 1, and cells as text."""

    sheet: str | None
    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """Column of an export; `used_as` is its name in dialsim, None if unused.

    `filled` is the number of non-empty cells, `different` of distinct ones; `example` is the first.
    """

    name: str
    used_as: str | None
    filled: int
    different: int
    example: str


@dataclass
class CleanList:
    """List that the doctor made of an export.

    `columns` are the names of the columns in dialsim, `heads` their heads in the export. Each
    person has a row of `cells`, of the export's row in `sources`. `aside` are rows without a usable
    number, with the reason; `merged` are rows of people who have an earlier row, with that row.
    `types` are the types of the agent's parameters. `form` is how the export itself is read.
    `joined` are columns that fill others, by their heads: last names, second phone numbers.
    """

    file: str
    form: FileForm
    columns: list[str]
    heads: list[str]
    types: dict[str, str]
    cells: list[list[str]] = field(default_factory=list)
    sources: list[ExportRow] = field(default_factory=list)
    aside: list[tuple[ExportRow, str]] = field(default_factory=list)
    merged: list[tuple[ExportRow, ExportRow]] = field(default_factory=list)
    sheets: list[str | None] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    totals: int = 0
    respelled: int = 0
    further: int = 0
    both: bool = False
    emptied: Counter[str] = field(default_factory=Counter)
    all_heads: list[str] = field(default_factory=list)
    joined: dict[str, str] = field(default_factory=dict)
    heads_on_top: bool = True

    @property
    def is_as_written(self) -> bool:
        """True if the export itself is a list that can be read strictly, with all its columns."""
        block = self.block()
        return block is not None and block == RecipientsFile(file=self.file)

    def block(self) -> RecipientsFile | None:
        """Return the block `recipients` that reads the export itself; None if it needs cleaning."""
        if (
            not self.heads_on_top
            or len(self.sheets) > 1
            or (self.aside or self.merged or self.totals or self.further)
            or (self.emptied or self.joined)
        ):
            return None
        pairs = zip(self.columns, self.heads, strict=True)
        columns = None if self.columns == self.heads else dict(pairs)
        return RecipientsFile(
            file=self.file,
            sheet=self.form.sheet,
            encoding=self.form.encoding,
            delimiter=self.form.delimiter,
            columns=columns,
            normalize=self.respelled > 0,
        )

    def column_uses(self) -> Iterator[ColumnUse]:
        """Yield the columns of the export with their uses."""
        rows = [*self.sources, *(row for row, _ in self.aside), *(row for row, _ in self.merged)]
        rows.sort(key=lambda row: (self.sheets.index(row.sheet), row.line))
        used = dict(zip(self.heads, self.columns, strict=True)) | self.joined
        for index, head in enumerate(self.all_heads):
            cells = [row.cells[index] for row in rows if row.cells[index]]
            example = cells[0] if cells else ""
            yield ColumnUse(head, used.get(head), len(cells), len(set(cells)), example)

    @property
    def segments(self) -> Counter[str]:
        """Number of people per segment, the largest first."""
        if "segment" not in self.columns:
            return Counter()
        index = self.columns.index("segment")
        return Counter(dict(Counter(row[index] for row in self.cells if row[index]).most_common()))

    def require_people(self) -> None:
        """Raise ScenarioError if no row of the list can be called."""
        if not self.cells:
            if not self.aside:
                _fail(self.file, "no row has a usable phone number")
            rows = f"none of {counted(len(self.aside), 'row')} has a usable phone number"
            _fail(self.file, f"{rows}: {self._reasons()}")

    def _reasons(self) -> str:
        """Return a text with the number of rows set aside for each reason."""
        reasons = Counter(_kind(reason) for _, reason in self.aside).most_common()
        return ", ".join(f"{count:,} {reason}" for reason, count in reasons)

    def summary(self) -> list[str]:
        """Return at most ten lines on what was read, set aside, merged and left out."""
        rows = len(self.cells) + len(self.aside) + len(self.merged) + self.totals
        sheets = counted(len(self.sheets), "sheet")
        lines = [
            f"{self.file}: {sheets}, {counted(rows, 'row')}",
            f"{counted(len(self.cells), 'person', 'people')} to call",
        ]
        if self.aside:
            lines.append(f"{counted(len(self.aside), 'row')} set aside: {self._reasons()}")
        if self.merged:
            lines.append(f"{counted(len(self.merged), 'duplicate')} merged")
        if self.totals:
            lines.append(f"{counted(self.totals, 'row')} of totals or repeated heads left out")
        if self.respelled:
            lines.append(f"{counted(self.respelled, 'number')} of another spelling rewritten")
        if self.further:
            taken = "both are called" if self.both else "the first is called"
            lines.append(f"{counted(self.further, 'row')} with two numbers: {taken}")
        if self.emptied:
            columns = ", ".join(f"{count:,} of {head}" for head, count in self.emptied.items())
            lines.append(f"cells emptied, with no number or an error: {columns}")
        if segments := self.segments:
            shown = [f"{name} {count:,}" for name, count in islice(segments.items(), 5)]
            lines.append(f"{counted(len(segments), 'segment')}: {few(shown, len(segments))}")
        pairs = zip(self.columns, self.heads, strict=True)
        read = [
            ours if ours == theirs else f"{theirs} as {ours}"
            for ours, theirs in pairs
            if not ours.startswith(PARAM)
        ]
        lines.append(f"columns: {', '.join(read)}")
        if self.types:
            lines[-1] += f"; agent parameters: {', '.join(self.types)}"
        if self.unread:
            lines[-1] += f"; sheets left out: {', '.join(self.unread)}"
        return lines

    def csv(self) -> bytes:
        """Return the list as a CSV, which is read several times as fast as the workbook."""
        text = io.StringIO(newline="")
        csv.writer(text).writerows([self.columns, *self.cells])
        return text.getvalue().encode()

    def workbook(self) -> bytes:
        """Return a workbook with the sheets `SHEETS`: the list, rows set aside, and duplicates."""
        import xlsxwriter

        content = io.BytesIO()
        # in_memory: xlsxwriter would otherwise write temporary files, for which there may be no
        # folder. Cells are never formulas: a list from elsewhere may contain `=…` texts, which
        # would run in the planner's spreadsheet.
        book = xlsxwriter.Workbook(content, {"in_memory": True, "strings_to_formulas": False})
        people, aside, merged = (book.add_worksheet(name) for name in SHEETS)
        numbers = {f"{PARAM}{name}" for name, kind in self.types.items() if kind == "number"}
        people.write_row(0, 0, self.columns)
        for line, row in enumerate(self.cells, 1):
            for index, (column, cell) in enumerate(zip(self.columns, row, strict=True)):
                # Ids stay texts; only amounts become numbers, which a planner may want to add up.
                if cell and column in numbers:
                    people.write_number(line, index, float(cell))
                elif cell:
                    people.write_string(line, index, cell)
        aside.write_row(0, 0, _ASIDE_HEADS)
        for line, (source, reason) in enumerate(self.aside, 1):
            _write_source(aside, line, source, reason)
        merged.write_row(0, 0, _MERGED_HEADS)
        for line, (source, first) in enumerate(self.merged, 1):
            where = f"{first.sheet} row {first.line}" if first.sheet else f"row {first.line}"
            _write_source(merged, line, source, where)
        for sheet in (people, aside, merged):
            sheet.freeze_panes(1, 0)
            sheet.set_column(0, 20, 18)
        book.close()
        return content.getvalue()


def clean_list(
    content: bytes,
    shown: str,
    form: FileForm = UNSAID,
    *,
    named: Mapping[str, str] | None = None,
    both: bool = False,
    choice: str = "choose one with --sheet",
) -> CleanList:
    """Convert an export, a workbook or a CSV in any usual form, into a list that can be called.

    `shown` is the name of the file in messages, and `named` maps names of columns in dialsim to
    heads, where they are not to be guessed. Of a row with two numbers the first is called; with
    `both`, the second has a row of its own behind the first. `choice` is advice in the error for
    sheets with different heads. Raises ScenarioError if the file
    cannot be read, no sheet has phone numbers or the named heads, or sheets with phone numbers have
    different heads.
    """
    form = form_of(content, form)
    sheets = {
        name: _table([ExportRow(name, line, cells) for line, cells in rows if any(cells)])
        for name, rows in raw_sheets(content, shown, form)
    }
    with_numbers = [table for table in sheets.values() if table is not None]
    if not with_numbers:
        where = (
            f"of the sheets {', '.join(map(str, sheets))}" if len(sheets) > 1 else "of this file"
        )
        _fail(shown, f"no column {where} holds phone numbers")
    # Beside a list, a sheet with a phone number here and there is a summary or a letter head.
    first, *others = [table for table in with_numbers if table.is_list] or with_numbers
    same = (_with_columns_of(first, other, choice, shown) for other in others)
    tables = [first, *(table for table in same if table is not None)]
    kept, heads = {table.sheet for table in tables}, first.heads
    unread = [name for name in sheets if name is not None and name not in kept]
    for ours, head in (named or {}).items():
        if head not in heads:
            near = get_close_matches(head, heads, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"heads are {few(heads[:10], len(heads))}"
            )
            _fail(shown, f'"{head}", for {ours}, heads no column; {hint}')
    found = _Reading(shown, form, tables, unread, dict(named or {}), both).result
    found.heads_on_top = first.line == 1 and first.sheet in (next(iter(sheets)), form.sheet)
    return found


class _Table(NamedTuple):
    """Sheet with phone numbers: its heads, the line of its heads (0: none), and the other rows."""

    sheet: str | None
    heads: list[str]
    line: int
    rows: list[ExportRow]

    @property
    def is_list(self) -> bool:
        """True if a head names phone numbers, or most cells of a column are phone numbers."""
        sample = [_padded(row.cells, len(self.heads)) for row in self.rows[:_SAMPLE]]
        columns = ([cell for cell in column if cell] for column in zip(*sample, strict=True))
        return any(map(is_tel_head, self.heads)) or any(
            2 * sum(len(cell) <= _LONGEST_CELL and bool(_first_number(cell)) for cell in cells)
            > len(cells)
            for cells in columns
        )


def _table(rows: list[ExportRow]) -> _Table | None:
    """Find the heads of a sheet; None for a sheet without phone numbers, or with rows set aside."""
    # A workbook that the doctor wrote can be read again without the people it had set aside.
    if rows and tuple(rows[0].cells[:3]) in (_ASIDE_HEADS, _MERGED_HEADS):
        return None
    for index, row in enumerate(rows[:_HEADS_WITHIN]):
        cells, below = row.cells, rows[index + 1 :]
        has_number, filled = any(map(_first_number, cells)), sum(map(bool, cells))
        is_head = not has_number and len(cells) < 200 and any(map(is_tel_head, cells))
        most = max((sum(map(bool, each.cells)) for each in below[:_HEADS_WITHIN]), default=0)
        # A title such as รายงานการโทร, or the firm's address with its number, has fewer cells than
        # the heads below it.
        if (filled == 1 < most and not any(map(_number, cells))) or (
            has_number and any(_is_head_of_more(each, filled) for each in below[:_HEADS_WITHIN])
        ):
            continue
        if is_head:
            width = max([len(cells), *(len(each.cells) for each in below[:_SAMPLE])])
            return _Table(row.sheet, _heads(cells, width), row.line, below)
        if has_number:
            width = max(len(each.cells) for each in rows[index : index + _SAMPLE])
            # A single cell above the first number is a title of the sheet, not a row of heads.
            above = rows[index - 1] if index else None
            if above is not None and sum(map(bool, above.cells)) > 1:
                return _Table(row.sheet, _heads(above.cells, width), above.line, rows[index:])
            return _Table(row.sheet, _heads([], width), 0, rows[index:])
    return None


def _is_head_of_more(row: ExportRow, filled: int) -> bool:
    """Return True for a row of heads with more cells than `filled`."""
    return (
        sum(map(bool, row.cells)) > filled
        and any(map(is_tel_head, row.cells))
        and not any(map(_first_number, row.cells))
    )


def _with_columns_of(first: _Table, table: _Table, choice: str, shown: str) -> _Table | None:
    """Return a table with its columns in the order of the first one's; None for a sheet of notes.

    Heads may differ in case, and be missing where the sheet continues the first. Raises
    ScenarioError for other heads.
    """
    wanted, here = ([head.casefold() for head in each.heads] for each in (first, table))
    is_text = all(
        sum(map(bool, row.cells)) < 2 and not any(map(_number, row.cells)) for row in table.rows
    )
    if is_text and len(wanted) > 1:
        return None
    if not table.line and len(here) == len(wanted):
        here = wanted
    named, theirs = ({h for h in each if not _UNNAMED.fullmatch(h)} for each in (wanted, here))
    if named != theirs:
        heads, other = first.heads, table.heads
        _fail(
            shown,
            f"the sheets {first.sheet} and {table.sheet} have different heads "
            f"({few(heads[:5], len(heads))}; {few(other[:5], len(other))}): "
            f'{choice} "{first.sheet}"',
        )
    order = [here.index(head) if head in here else len(here) for head in wanted]
    if order == [*range(len(here))]:
        return table
    rows = [[*_padded(row.cells, len(here)), ""] for row in table.rows]
    moved = [[cells[index] for index in order] for cells in rows]
    pairs = zip(table.rows, moved, strict=True)
    return table._replace(rows=[row._replace(cells=cells) for row, cells in pairs])


def is_tel_head(cell: str) -> bool:
    """Return True for a head of phone numbers of the people themselves: phone, Mobile, เบอร์โทร."""
    is_tel = len(cell) <= _LONGEST_CELL and (cell == "tel" or _TEL.search(cell) is not None)
    return is_tel and _TEL_OF_OTHERS.search(cell) is None


def _heads(cells: Sequence[str], width: int) -> list[str]:
    """Return a different head for each column; columns without a head are named by position."""
    heads: list[str] = []
    for index in range(width):
        text = " ".join(cells[index].split()) if index < len(cells) else ""
        head = text or f"column {index + 1}"
        # Columns are identified by their heads from here on, so that equal ones get a number.
        again = heads.count(head)
        while head in heads:
            again += 1
            head = f"{text} {again}"
        heads.append(head)
    return heads


class _Reading:
    """Reading of tables with the same heads into one list."""

    def __init__(
        self,
        shown: str,
        form: FileForm,
        tables: Sequence[_Table],
        unread: list[str],
        named: Mapping[str, str],
        both: bool,
    ) -> None:
        self._heads = tables[0].heads
        self._rows = [_tidied(row, len(self._heads)) for table in tables for row in table.rows]
        self._both = both
        self._named = {ours: self._heads.index(head) for ours, head in named.items()}
        self._tels = self._columns_of_numbers()
        self._names: list[int] = []
        kept = self._kept_columns()
        params = {ours: index for ours, index in kept.items() if ours.startswith(PARAM)}
        types = {ours.removeprefix(PARAM): self._type(index) for ours, index in params.items()}
        self._kept = list(kept.items())
        self._numeric = {
            index for ours, index in params.items() if types[ours.removeprefix(PARAM)] == "number"
        }
        self.result = CleanList(
            file=shown,
            form=form,
            columns=[*kept],
            heads=[self._heads[index] for index in kept.values()],
            types=types,
            sheets=[table.sheet for table in tables],
            unread=unread,
            both=both,
            all_heads=self._heads,
            joined={self._heads[index]: "tel" for index in self._tels[1:]}
            | {self._heads[index]: "customerName" for index in self._names[1:]},
        )
        self._read()

    def _columns_of_numbers(self) -> list[int]:
        """Return the columns of phone numbers, the most important first."""
        if "tel" in self._named:
            return [self._named["tel"]]
        if "tel" in self._heads:
            return [self._heads.index("tel")]
        sample = self._rows[:_SAMPLE]
        shares: dict[int, float] = {}
        for index in range(len(self._heads)):
            cells = [row.cells[index] for row in sample if row.cells[index]]
            found = sum(bool(_first_number(cell)) for cell in cells)
            shares[index] = found / len(cells) if cells else 0.0
        named = [i for i, head in enumerate(self._heads) if is_tel_head(head) and shares[i] > 0]
        # The head decides before the content: an id column may look more like phone numbers than a
        # phone column with two numbers per cell.
        return named or [max(shares, key=lambda index: shares[index])]

    def _kept_columns(self) -> dict[str, int]:
        """Return the columns of the list: their names in dialsim, and their indices."""
        kept = {"tel": self._tels[0], **self._named}
        taken = {*self._tels, *self._named.values()}
        self._names = [kept["customerName"]] if "customerName" in kept else []
        for index, head in enumerate(self._heads):
            if index in taken or not any(row.cells[index] for row in self._rows):
                continue
            if head in _OURS or head.startswith(PARAM):
                kept.setdefault(head, index)
            # Last names join the customer name only after a first name, since "surname" alone may
            # be the only name column.
            elif _LAST_NAME.search(head) and not _is_full_name(head) and self._names:
                self._names.append(index)
            elif "customerName" not in kept and _NAME.search(head):
                kept["customerName"] = index
                self._names.append(index)
            elif "segment" not in kept and _SEGMENT.search(head) and self._has_segments(index):
                kept["segment"] = index
            else:
                kept[self._param(head, kept)] = index
        return kept

    @staticmethod
    def _param(head: str, kept: Mapping[str, int]) -> str:
        """Return a free name of a parameter that expressions can use: letters, digits and _."""
        # A unit in parentheses at the end, as in "ยอด (บาท)", is no part of the name.
        plain = _NO_IDENTIFIER.sub("_", _UNIT.sub("", head)).strip("_") or "column"
        names = (f"{PARAM}{plain}", *(f"{PARAM}{plain}_{n}" for n in range(2, 2 + len(kept))))
        return next(name for name in names if name not in kept)

    def _has_segments(self, index: int) -> bool:
        cells = [row.cells[index] for row in self._rows if row.cells[index]]
        different = len(set(cells))
        return different <= MOST_SEGMENTS and different * _FEWEST_PER_SEGMENT <= max(len(cells), 30)

    def _type(self, index: int) -> str:
        """Return `number` for a column of amounts, else `text`: ids keep their leading zeros."""
        cells = [cell for row in self._rows if (cell := row.cells[index])]
        cells = [cell for cell in cells if not is_excel_error(cell)]
        numbers = [number for cell in cells if (number := number_meant(cell)) is not None]
        # A leading zero or more digits than a float keeps means that the column holds ids, which
        # must stay text.
        are_ids = any(
            len(number.partition(".")[0]) > _LONGEST_NUMBER
            or (number[0] == "0" and number[1:2].isdigit())
            for number in numbers
        )
        return "number" if len(numbers) >= _ARE_NUMBERS * len(cells) and not are_ids else "text"

    def _read(self) -> None:
        found, heads = self.result, set(filter(None, self._heads))
        first: dict[str, int] = {}
        for row in self._rows:
            numbers = self._numbers(row)
            # Exports repeat their heads on every printed page, and end in totals; neither is a
            # person set aside.
            if not numbers and (_is_total(row.cells) or heads.issuperset(filter(None, row.cells))):
                found.totals += 1
                continue
            if not numbers:
                written = " ".join(row.cells[index] for index in self._tels).strip()
                found.aside.append((row, _reason(written)))
                continue
            found.further += len(numbers) > 1
            for number in numbers if self._both else numbers[:1]:
                if number not in first:
                    first[number] = len(found.cells)
                    found.cells.append(self._cells(row, number))
                    found.sources.append(row)
                    continue
                earlier = first[number]
                if found.sources[earlier] is row:  # the same number in two cells
                    continue
                found.merged.append((row, found.sources[earlier]))
                new = self._cells(row, number)
                # The first row wins; a duplicate only fills the cells that it left empty.
                pairs = zip(found.cells[earlier], new, strict=True)
                found.cells[earlier] = [old or more for old, more in pairs]

    def _numbers(self, row: ExportRow) -> list[str]:
        """Return the different phone numbers of a row, in the order of its columns."""
        numbers: dict[str, None] = {}
        for index in self._tels:
            cell = row.cells[index]
            found = list(_numbers_in(cell))
            self.result.respelled += found != [] and found[0] != cell
            numbers |= dict.fromkeys(found)
        return list(numbers)

    def _cells(self, row: ExportRow, number: str) -> list[str]:
        cells = []
        for ours, index in self._kept:
            cell = row.cells[index]
            if ours == "tel":
                cell = number
            elif ours == "customerName" and len(self._names) > 1:
                cell = " ".join(row.cells[name] for name in self._names if row.cells[name])
            elif cell and (index in self._numeric or is_excel_error(cell)):
                meant = number_meant(cell)
                if meant is None:
                    self.result.emptied[self._heads[index]] += 1
                cell = meant or ""
            cells.append(cell)
        return cells


def _is_full_name(head: str) -> bool:
    """Return True for a head such as `ชื่อ-นามสกุล`, whose cells have both names."""
    return _NAME.search(_LAST_NAME.sub("", head)) is not None


def _padded(cells: list[str], width: int) -> list[str]:
    return [*cells, *[""] * (width - len(cells))][:width]


def _tidied(row: ExportRow, width: int) -> ExportRow:
    cells = [_filled(cell) for cell in _padded(row.cells, width)]
    # Most rows are as they should be; a copy of each would take memory.
    return row if cells == row.cells else row._replace(cells=cells)


def _filled(cell: str) -> str:
    """Return a cell; empty for a word such as `n/a` or `ไม่มี`."""
    # Most cells are longer than these words: comparing lengths first is quicker.
    return "" if len(cell) < 9 and cell.casefold() in _BLANK else cell


def _is_total(cells: Sequence[str]) -> bool:
    return any(_TOTAL.fullmatch(cell.strip(" :.")) for cell in cells if cell)


def _first_number(cell: str) -> str | None:
    return next(_numbers_in(cell), None)


def _numbers_in(cell: str) -> Iterator[str]:
    """Yield the phone numbers in a cell, in national form."""
    # The digits of 2026-01-05 would pass for a fixed line that lost its 0.
    if not any(sign.isdigit() for sign in cell) or _DATE.match(cell):
        return
    # The whole cell first: spaces and dashes inside one number would otherwise split it.
    whole = _number(cell)
    if whole is not None:
        yield whole
        return
    for part in _BETWEEN_NUMBERS.split(cell):
        bare = _EXTENSION.sub("", part)
        number = _number(bare) or _number(_LAST_DIGITS_OF_OTHERS.sub("", bare))
        if number is not None:
            yield number
        else:  # two numbers with a space between them
            words = (_BEFORE_NUMBER.sub("", word, 1).rstrip("*#.;:") for word in bare.split())
            yield from (found for word in words if (found := _number(word)) is not None)


def _number(text: str) -> str | None:
    number = phone_normalized(text)
    return number if number is not None and kind_of_number(number) is not None else None


def _reason(written: str) -> str:
    """Return the reason for setting a row aside, given its cells of phone numbers."""
    if not written:
        return "without a number"
    if is_excel_error(written):
        return f"with an error of Excel: {written}"
    if ROUNDED_BY_SPREADSHEET.fullmatch(written):
        return f"rounded by the spreadsheet: {written}"
    if _DATE.match(written):
        return f"turned into a date by the spreadsheet: {written}"
    return f"with no possible number: {written}"


def _kind(reason: str) -> str:
    return reason.partition(":")[0]


def _write_source(sheet: Any, line: int, source: ExportRow, note: str) -> None:
    for index, cell in enumerate((source.sheet or "", str(source.line), note, *source.cells)):
        sheet.write_string(line, index, cell)


def _fail(shown: str, message: str) -> NoReturn:
    raise ScenarioError([Problem(shown, None, None, "", message)])
