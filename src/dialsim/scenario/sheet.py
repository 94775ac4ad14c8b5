"""Files of rows, CSV or Excel: header and cells as text, with the location of every cell.

openpyxl reads a workbook row by row, so that a sheet is never held as a whole. A workbook can
contain errors, and formulas without a stored result. They are reported, not treated as empty.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from typing_extensions import override

from dialsim.errors import ScenarioError
from dialsim.interface.phrases import counted
from dialsim.scenario.document import SourceFolder, decoded
from dialsim.scenario.problems import Problem, Problems

if TYPE_CHECKING:
    import pandas as pd
    from openpyxl import Workbook

_LARGEST_CELL = 1_000_000
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@dataclass(frozen=True, slots=True)
class FileForm:
    """Settings for reading a file: `sheet` of a workbook, `encoding` and `delimiter` of a CSV.

    None means the first sheet, UTF-8, and a comma. `can_be_said` is True if the user can set these
    options, so that errors may advise them.
    """

    sheet: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    can_be_said: bool = True


UNSAID = FileForm(can_be_said=False)


def frame_of(table: object) -> pd.DataFrame | None:
    """Return a table of pandas, Polars or Arrow as a DataFrame of pandas; None for other values."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(table, pd.DataFrame):
        return table
    try:
        # Polars and others export their tables by this method.
        made = pa.table(table) if hasattr(table, "__arrow_c_stream__") else None
    except (TypeError, ValueError):
        return None  # a single column
    return None if made is None else made.to_pandas()


class Sheet:
    """A file of rows: its `header`, and the cells of the loaded columns.

    `file` is its name in problems, `header_line` the line of the header. `lines` are the first
    lines of the loaded rows. `digest` is the SHA-256 of the file.
    """

    def __init__(self, source: _Source, digest: bytes, problems: Problems) -> None:
        self.file = source.file
        self.digest = digest
        self.lines: list[int] = []
        self._source = source
        self._records = source.records()
        self._columns: dict[int, list[str]] = {}
        # Cells with an error of Excel, which are reported once.
        self._failed: set[tuple[int, int]] = set()
        self.header_line, self.header = next(self._records, (1, []))
        if not self.header:
            problems.note(Problem(self.file, 1, 1, "", source.empty))

    @classmethod
    def read(
        cls, folder: SourceFolder, file: str, problems: Problems, form: FileForm = UNSAID
    ) -> Sheet:
        """Open a file relative to `folder`. Raises ScenarioError if it cannot be read."""
        return cls.parse(folder.read(file), folder.shown(file), problems, form)

    @classmethod
    def parse(
        cls, content: bytes, shown: str, problems: Problems, form: FileForm = UNSAID
    ) -> Sheet:
        """Open the content of a file, with the name `shown` in errors, and read its header.

        Raises ScenarioError if it is neither a CSV nor a workbook.
        """
        is_workbook = content.startswith((_ZIP, _OLE))
        source = (_Workbook if is_workbook else _Text)(content, shown, form)
        return cls(source, hashlib.sha256(content).digest(), problems)

    @classmethod
    def parse_csv(cls, content: bytes, shown: str, problems: Problems) -> Sheet:
        """Open the content of a CSV, never as a workbook, and read its header."""
        source = _Text(content, shown, UNSAID)
        return cls(source, hashlib.sha256(content).digest(), problems)

    @property
    def name(self) -> str | None:
        """Name of the sheet in a workbook; None for a CSV."""
        return self._source.sheet

    def check_names(self, used: Collection[int], problems: Problems) -> None:
        """Report used columns without a name, or with the name of an earlier column."""
        for index in sorted(used):
            name = self.header[index]
            if not name:
                message = self._source.nameless(index)
                self.note(problems, self.header_line, index, "", message)
            elif name in self.header[:index]:
                self.note(problems, self.header_line, index, name, f"{name} is here twice")

    def load(self, used: Collection[int], problems: Problems, beside: Collection[int] = ()) -> None:
        """Read all rows, and keep these columns, by index; to be called once.

        Blank rows are skipped. Rows of another width and errors of Excel are reported. Errors in
        the columns `beside` are not reported; their cells are empty. Raises ScenarioError if the
        rest cannot be read.
        """
        self._columns = {index: [] for index in (*used, *beside)}
        kept = list(self._columns.items())
        width = len(self.header)
        # One pass: neither the CSV reader nor openpyxl can go back, and a list may have millions of
        # rows.
        for line, cells in self._records:
            # A shifted row would assign amounts to wrong people, so that it is never padded.
            if len(cells) != width:
                self.note(problems, line, *self._source.ragged(line, cells, width))
            elif any(cells):
                self.lines.append(line)
                for index, column in kept:
                    column.append(cells[index])
        for index, column in kept:
            if not _FAILED.isdisjoint(column):
                for row, cell in enumerate(column):
                    if cell in _FAILED and index in beside:
                        column[row] = ""
                    elif cell in _FAILED:
                        self.note_cell(problems, row, index, _FAILED_TEXTS[cell])
                        self._failed.add((row, index))

    def column(self, index: int) -> list[str]:
        """Return the cells of a loaded column."""
        return self._columns[index]

    def note(self, problems: Problems, line: int, index: int, path: str, message: str) -> None:
        """Report a problem of a cell, given by the line of its record and its index from 0."""
        location, column = self._source.location(line, index)
        message = self._source.cell(line, index) + message
        problems.note(Problem(self.file, location, column, path, message))

    def note_cell(
        self, problems: Problems, row: int, index: int, message: str, name: str | None = None
    ) -> None:
        """Report a problem of a loaded cell; its text is the column's name and `message`."""
        # An error of Excel is reported once; further checks of the cell would add noise.
        if (row, index) in self._failed:
            return
        theirs = self.header[index]
        shown = theirs if name in {None, theirs} else f"{name} ({theirs})"
        self.note(problems, self.lines[row], index, name or theirs, f"{shown} {message}")


class _Source(ABC):
    """Records of a file, the header first, and the locations of cells."""

    file: str
    sheet: str | None = None
    empty: str

    @abstractmethod
    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each record that is not blank: its first line, and its cells without margins."""

    @abstractmethod
    def location(self, line: int, index: int) -> tuple[int, int]:
        """Return line and column, from 1, of the beginning of a cell."""

    @abstractmethod
    def cell(self, line: int, index: int) -> str:
        """Return the beginning of a message that names the cell."""

    @abstractmethod
    def nameless(self, index: int) -> str:
        """Return the error text for a column without a name."""

    @abstractmethod
    def ragged(self, line: int, cells: Sequence[str], width: int) -> tuple[int, str, str]:
        """Return index, path and message for a record that is not as wide as the header."""

    def fail(self, message: str, line: int | None = 1) -> NoReturn:
        """Raise the ScenarioError of a file that cannot be read."""
        raise ScenarioError([Problem(self.file, line, line and 1, "", message)])


class _Text(_Source):
    """A CSV."""

    empty = "there is nothing in this file"

    def __init__(self, content: bytes, shown: str, form: FileForm) -> None:
        self.file = shown
        self._delimiter = form.delimiter or ","
        self._can_be_said = form.can_be_said
        if form.sheet is not None:
            self.fail("this is text, which has no sheets: leave sheet out", None)
        text = self._decoded(content, form.encoding)
        self._lines = list(io.StringIO(text, newline=""))

    def _decoded(self, content: bytes, encoding: str | None) -> str:
        if encoding is None:
            return decoded(content, self.file, names_encodings=self._can_be_said)
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            # Thai text in UTF-8 decodes as other Thai letters without any error, so the mistake
            # must be found here.
            if not content.isascii() and encoding.lower().replace("_", "-") not in _UTF_8:
                self.fail(f"this is UTF-8, not {encoding}: leave encoding out")
        try:
            return content.decode(encoding).removeprefix("\ufeff")
        except UnicodeError as error:
            start = getattr(error, "start", 0)
            line = content.count(b"\n", 0, start) + 1
            byte = f"byte 0x{content[start]:02X} is not {encoding}" if content else "is empty"
            self.fail(f"{byte}: another encoding is meant, or none (UTF-8)", line)

    @override
    def records(self) -> Iterator[tuple[int, list[str]]]:
        # The limit of the csv module, 128 KiB, is global, and too small for a cell with a
        # transcript.
        csv.field_size_limit(_LARGEST_CELL)
        reader = csv.reader(self._lines, strict=True, delimiter=self._delimiter)
        line = 1
        try:
            for number, cells in enumerate(reader):
                if cells:
                    if not number:
                        self._check_delimiter(cells)
                    yield line, [cell.strip() for cell in cells]
                line = reader.line_num + 1
        except csv.Error as error:
            unclosed = "end of data" in str(error)
            message = (
                "a quote in this row is never closed" if unclosed else f"not valid CSV: {error}"
            )
            self.fail(message, line)

    def _check_delimiter(self, header: Sequence[str]) -> None:
        """Raise an error if the header's only cell contains another separator."""
        wrong = next((sign for sign in ";\t|," if sign in header[0]), None)
        if len(header) > 1 or wrong is None:
            return
        if self._delimiter != "," and wrong == ",":
            self.fail(
                f"columns are separated by commas, not by {_sign(self._delimiter)}: leave "
                "delimiter out"
            )
        if wrong == "," or (wrong == "|" and not self._can_be_said):
            return
        if self._can_be_said:
            option = "tab" if wrong == "\t" else f'"{wrong}"'
            self.fail(
                f"columns are separated by {_sign(wrong)} here, not by {_sign(self._delimiter)}: "
                f"say delimiter: {option} beside file"
            )
        self.fail("columns are separated by commas, not by ; or tabs")

    @override
    def location(self, line: int, index: int) -> tuple[int, int]:
        inside, column = False, 1
        # The reader knows only the line of a record; scanning the record again finds the column.
        while index and line <= len(self._lines):
            for char in self._lines[line - 1][column - 1 :]:
                column += 1
                if char == '"':
                    inside = not inside
                elif char == self._delimiter and not inside:
                    index -= 1
                    if not index:
                        return line, column
            line, column = line + 1, 1
        return line, column

    @override
    def cell(self, line: int, index: int) -> str:
        return ""

    @override
    def nameless(self, index: int) -> str:
        return f"column {index + 1} has no name"

    @override
    def ragged(self, line: int, cells: Sequence[str], width: int) -> tuple[int, str, str]:
        here, there = counted(len(cells), "cell"), counted(width, "cell")
        return 0, "", f"this row has {here}, but the header has {there}"


def raw_sheets(
    content: bytes, shown: str, form: FileForm
) -> Iterator[tuple[str | None, Iterator[tuple[int, list[str]]]]]:
    """Yield the name of each sheet (None of a CSV), and its rows: line and cells as text.

    Unlike `Sheet` it takes no row for the header. The encoding and the delimiter of a CSV are
    guessed where `form` does not name them. Raises ScenarioError if the file cannot be read.
    """
    if content.startswith((_ZIP, _OLE)):
        yield from _Workbook(content, shown, form).raw()
        return
    if _PAGE.match(content):
        message = "this is a web page under another name: open it in Excel, and save it as xlsx"
        raise ScenarioError([Problem(shown, None, None, "", message)])
    yield None, _Text(content, shown, form_of(content, form)).records()


def form_of(content: bytes, form: FileForm) -> FileForm:
    """Guess the encoding and the delimiter of a CSV where `form` does not name them; None: the
    default.
    """
    if content.startswith((_ZIP, _OLE)):
        return form
    encoding = form.encoding or _encoding(content)
    text = content.decode(encoding or "utf-8", "replace")[:_DELIMITERS_WITHIN]
    # max() prefers the first of equal counts: a comma in a file of one column.
    delimiter = form.delimiter or max(",;\t|", key=text.count)
    return FileForm(form.sheet, encoding, None if delimiter == "," else delimiter)


# Many web systems export an HTML table under a name that ends in .xls.
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|table|meta|\?xml)", re.IGNORECASE)
_DELIMITERS_WITHIN = 10_000  # characters of a CSV in which the most frequent delimiter is chosen


def _encoding(content: bytes) -> str | None:
    """Guess the encoding of a CSV: UTF-16 by its mark, else UTF-8 (None), else Thai Windows."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp874"
    return None


_UTF_8 = ("utf-8", "utf8", "utf-8-sig")
_SIGNS = {"\t": "tabs", ",": "commas"}


def _sign(delimiter: str) -> str:
    return _SIGNS.get(delimiter, delimiter)


_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384
"""Size of a sheet in Excel. A file that claims more is no sheet, and could take hours to read."""
_WIDEST, _TOP = 200, 1_000  # columns, and rows at the top, in which the width of a list is found
_MOST_UNPACKED = 2 << 30
_MOST_RATIO, _LITTLE = 300, 64 << 20
_FORMULA = re.compile(rb"<(?:\w+:)?f[ />]")
_DOCTYPE = re.compile(rb"<\0?!\0?D\0?O\0?C\0?T\0?Y\0?P\0?E")  # also in UTF-16
_NO_RESULT = "#dialsim: no result"
_FAILED_TEXTS: Mapping[str, str] = {
    **{
        error: f"is {error}, an error of Excel: correct its formula, or empty the cell"
        for error in (
            "#N/A", "#DIV/0!", "#REF!", "#NAME?", "#NULL!", "#NUM!", "#VALUE!", "#SPILL!",
            "#CALC!", "#GETTING_DATA",
        )
    },
    _NO_RESULT: "is a formula without a result: open the file in Excel and save it, or paste the "
    "values alone",
}  # fmt: skip
_FAILED = frozenset(_FAILED_TEXTS)


def is_excel_error(cell: str) -> bool:
    """Return True for the text of an error value of Excel, such as `#N/A`."""
    return cell in _FAILED


class _Workbook(_Source):
    """A sheet of a workbook (xlsx)."""

    def __init__(self, content: bytes, shown: str, form: FileForm) -> None:
        self.file = shown
        self._content = content
        for option in ("encoding", "delimiter"):
            if getattr(form, option) is not None:
                self.fail(f"this is a workbook, which has no {option}: leave {option} out", None)
        self._has_formulas = self._check_archive()
        self._book = self._open()
        names = [sheet.title for sheet in self._book.worksheets]
        if form.sheet is not None and form.sheet not in names:
            near = get_close_matches(form.sheet, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            self.fail(f'there is no sheet "{form.sheet}"; {hint}', None)
        visible = [sheet.title for sheet in self._book.worksheets if sheet.sheet_state == "visible"]
        if not names:
            self.fail("this workbook has no sheet of cells", None)
        self.sheets = [form.sheet] if form.sheet else visible or names
        self.sheet = self.sheets[0]
        self.empty = f"there is nothing in the sheet {self.sheet}"
        if len(names) > 1 and form.sheet is None and form.can_be_said:
            self.empty += (
                f"; to read another, say sheet: {next(n for n in names if n != self.sheet)}"
            )
        self._prefix = f"{self.sheet}!" if len(names) > 1 else ""

    def _check_archive(self) -> bool:
        """Return True if the workbook has formulas.

        Raises an error for a file that is no workbook, or that unpacks to too much.
        """
        # Old workbooks and encrypted new ones are both OLE containers.
        if self._content.startswith(_OLE):
            if "EncryptedPackage".encode("utf-16-le") in self._content:
                self.fail("this workbook is protected by a password: save it without one", None)
            self.fail("this is a workbook of Excel 97-2003 (xls): save it as xlsx", None)
        try:
            with zipfile.ZipFile(io.BytesIO(self._content)) as archive:
                parts = archive.infolist()
                names = {part.filename for part in parts}
                if "content.xml" in names:
                    self.fail("this is a workbook of OpenDocument (ods): save it as xlsx", None)
                if "xl/workbook.bin" in names:
                    self.fail("this is a binary workbook (xlsb): save it as xlsx", None)
                if "[Content_Types].xml" not in names or "xl/workbook.xml" not in names:
                    self.fail("this is a zip file, but no workbook of Excel (xlsx)", None)
                size = sum(part.file_size for part in parts)
                # A zip bomb: XML of real lists compresses to a tenth or so, never by such factors.
                much = size > _LITTLE and size > _MOST_RATIO * len(self._content)
                if much or size > _MOST_UNPACKED:
                    self.fail(
                        f"this workbook of {len(self._content):,} bytes would unpack to {size:,}, "
                        "which no list of people does; save the list alone, as CSV",
                        None,
                    )
                found = [self._has_formula(archive, part) for part in parts]
                return any(found)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
            self.fail(f"this is no workbook (xlsx), or a damaged one: {error}", None)

    def _has_formula(self, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
        """Return True if a part is a sheet with a formula.

        Raises an error if it has a document type.
        """
        # Entities, which only a document type declares, can expand to gigabytes of text or include
        # other files. No workbook needs them.
        found, end = False, b""
        with archive.open(part) as file:
            while chunk := file.read(1 << 20):
                if _DOCTYPE.search(end + chunk):
                    self.fail(f"this workbook declares a document type in {part.filename}", None)
                found = found or _FORMULA.search(end + chunk) is not None
                # A declaration may lie across two chunks.
                end = chunk[-32:]
        return found and part.filename.startswith("xl/worksheets/")

    def _open(self, results: bool = True) -> Workbook:
        from openpyxl import load_workbook

        try:
            # warnings about styles and extensions, which are not read
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return load_workbook(
                    io.BytesIO(self._content), read_only=True, data_only=results, keep_links=False
                )
        except Exception as error:  # openpyxl does not document its exceptions
            self.fail(f"this workbook can't be read: {_plain(error)}", None)

    def _rows(self, width: int | None, results: bool = True) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the sheet's rows, from row 1, at most `width` of each."""
        book = self._book if results else self._open(results)
        sheet: Any = book[self.sheet or ""]
        sheet.reset_dimensions()  # the declared size of a sheet may be wrong
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from sheet.iter_rows(
                    max_row=_LAST_ROW, max_col=width or _LAST_COLUMN, values_only=True
                )
        except Exception as error:
            self.fail(f"the sheet {self.sheet} can't be read: {_plain(error)}", None)

    @override
    def records(self) -> Iterator[tuple[int, list[str]]]:
        line, width = self._header_location()
        if not width:
            return
        # One column more than the header has, to notice cells beyond it.
        rows = self._rows(width + 1)
        # A formula without a stored result, as some programs write it, reads as an empty cell; only
        # the formulas show the difference.
        formulas = self._rows(width + 1, results=False) if self._has_formulas else None
        for number, values in enumerate(islice(rows, _LAST_ROW), 1):
            written = next(formulas, ()) if formulas is not None else ()
            if number < line:
                continue
            cells = [_text(value) for value in values]
            for index, formula in enumerate(written[: len(cells)]):
                if formula is not None and not cells[index] and values[index] is None:
                    cells[index] = _NO_RESULT
            cells += [""] * (width + 1 - len(cells))
            if not cells[width]:
                del cells[width]
            if any(cells):
                yield number, cells

    def raw(self) -> Iterator[tuple[str, Iterator[tuple[int, list[str]]]]]:
        """Yield the name and the rows of each visible sheet, or of the chosen one."""
        for name in self.sheets:
            self.sheet = name
            # Rows are padded to the width that is asked for, so a generous one is slow for all.
            top = [list(map(_text, row)) for row in islice(self._rows(_WIDEST), _TOP)]
            width = max((i + 1 for row in top for i, cell in enumerate(row) if cell), default=1)
            rows = enumerate(islice(self._rows(width), _LAST_ROW), 1)
            yield name, ((line, [_text(value) for value in row]) for line, row in rows)

    def _header_location(self) -> tuple[int, int]:
        """Return the first line with content, and the number of columns up to its last cell."""
        for number, values in enumerate(islice(self._rows(None), _LAST_ROW), 1):
            filled = [index for index, value in enumerate(values, 1) if _text(value)]
            if filled:
                return number, filled[-1]
        return 1, 0

    @override
    def location(self, line: int, index: int) -> tuple[int, int]:
        return line, index + 1

    @override
    def cell(self, line: int, index: int) -> str:
        return f"cell {self._prefix}{_letters(index)}{line}: "

    @override
    def nameless(self, index: int) -> str:
        return (
            f"column {_letters(index)} has no name: each column needs one, and no cells of the "
            "header may be merged"
        )

    @override
    def ragged(self, line: int, cells: Sequence[str], width: int) -> tuple[int, str, str]:
        message = (
            f'"{cells[width]}" stands in a column without a name: name it, or empty the column'
        )
        return width, "", message


def _plain(error: Exception) -> str:
    """Return the first line of a library's message."""
    return (str(error) or type(error).__name__).splitlines()[0]


def _letters(index: int) -> str:
    """Return the name of a column in Excel: A, B, …, AA."""
    from openpyxl.utils import get_column_letter

    return get_column_letter(index + 1)


def _text(value: object) -> str:
    """Return a cell's value in the form of a CSV."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # Excel has only floats: 812345678.0 is what was typed as 812345678. Beyond 15 digits Excel
        # itself has lost some.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        return value.isoformat() if value.time() != time() else value.date().isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def quoted(cell: str) -> str:
    """Return a cell for an error message, shortened."""
    return f'"{cell if len(cell) <= 40 else cell[:37] + "..."}"'
