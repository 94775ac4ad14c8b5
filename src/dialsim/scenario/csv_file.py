"""CSV files: their bytes, header and rows, and the place of every cell."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dialsim.scenario.document import SourceFolder, decoded
from dialsim.scenario.problems import Problem, Problems, ScenarioError

_LARGEST_CELL = 1_000_000


@dataclass(slots=True)
class CsvSource:
    """A CSV that has been read: `header`, `rows` as long as the header, and where each begins.

    `file` is the name that its problems go by.
    """

    file: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    row_lines: list[int] = field(default_factory=list)
    digest: bytes = b""
    _lines: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: SourceFolder, file: str, problems: Problems) -> CsvSource:
        """Read a file relative to `folder`; raises ScenarioError where that can't be done."""
        return cls.parse(folder.read(file), folder.shown(file), problems)

    @classmethod
    def parse(cls, content: bytes, shown: str, problems: Problems) -> CsvSource:
        """Take the content of a file apart; ragged rows are noted and left out.

        `shown` is the file's name. Raises ScenarioError where it is no CSV at all.
        """
        lines = list(io.StringIO(decoded(content, shown), newline=""))
        source = cls(shown, [], digest=hashlib.sha256(content).digest(), _lines=lines)
        rows = source._records()
        line, header = next(rows, (1, []))
        source.header = header
        for index, name in enumerate(header):
            if not name:
                source.note(problems, line, index, "", f"column {index + 1} has no name")
            elif name in header[:index]:
                source.note(problems, line, index, name, f"{name} is here twice")
        if not header:
            problems.note(Problem(shown, 1, 1, "", "there is nothing in this file"))
        for line, cells in rows:
            if len(cells) != len(header):
                says = f"this row has {_count(cells)}, but the header has {_count(header)}"
                source.note(problems, line, 0, "", says)
            elif any(cells):
                source.rows.append(cells)
                source.row_lines.append(line)
        return source

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Each record that isn't blank: the line it begins in, and its cells without margins."""
        csv.field_size_limit(_LARGEST_CELL)
        reader = csv.reader(self._lines, strict=True)
        line = 1
        try:
            for cells in reader:
                if cells:
                    yield line, [cell.strip() for cell in cells]
                line = reader.line_num + 1
        except csv.Error as error:
            says = (
                "a quote in this row is never closed"
                if "end of data" in str(error)
                else (f"not valid CSV: {error}")
            )
            raise ScenarioError([Problem(self.file, line, 1, "", says)]) from None

    def note(self, problems: Problems, line: int, index: int, path: str, message: str) -> None:
        """Note a problem of the cell with an index (from 0) in the record that begins in a line."""
        problems.note(Problem(self.file, *self._place(line, index), path, message))

    def note_cell(self, problems: Problems, row: int, column: int, says: str) -> None:
        """Note what is wrong with a cell of `rows`; `says` goes behind the column's name."""
        name = self.header[column]
        self.note(problems, self.row_lines[row], column, name, f"{name} {says}")

    def column(self, index: int) -> Sequence[str]:
        """The cells of a column."""
        return [row[index] for row in self.rows]

    def _place(self, line: int, index: int) -> tuple[int, int]:
        """Line and column, from 1, where a cell begins; the record begins in `line`."""
        quoted, column = False, 1
        while index and line <= len(self._lines):
            for char in self._lines[line - 1][column - 1 :]:
                column += 1
                if char == '"':
                    quoted = not quoted
                elif char == "," and not quoted:
                    index -= 1
                    if not index:
                        return line, column
            line, column = line + 1, 1
        return line, column


def quoted(cell: str) -> str:
    """A cell as an error shows it."""
    return f'"{cell if len(cell) <= 40 else cell[:37] + "..."}"'


def _count(cells: Sequence[str]) -> str:
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
