"""Readers of logs: iterators over the entries of files in several formats and of databases.

Every source yields its entries in chunks. An entry is its number in the log (line, row or array
element, from 1) and the bytes of a body, or the reason why it could not be read.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson
import pyarrow as pa

from dialsim.errors import LogError
from dialsim.logs.bodies import Damaged

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Executable
    from sqlalchemy.exc import DBAPIError

CHUNK = 10_000
"""Entries per chunk."""
PIECE = 8 * 2**20
"""Bytes of whole lines per chunk."""
LONGEST_LINE = 16 * 2**20
"""Longest line (bytes) that is read; longer ones are reported as damage, without parsing them."""
_GZIP = b"\x1f\x8b"

Entry = tuple[int, bytes | Damaged]


Progress = Callable[[int, int], None]
"""Callback for progress: bytes read (rows, for a database), and their total or 0 if unknown."""


@dataclass(frozen=True, slots=True)
class FileLines:
    """Whole lines of a file; their numbers start at 1 in each chunk."""

    text: bytes
    broken: Damaged | None = None
    """Why the file ends after these lines, if it ends too early."""

    def entries(self) -> tuple[Iterator[Entry], int]:
        """Return the lines that are not empty, with their numbers, and the number of line ends."""
        lines = self.text.split(b"\n")
        return self._numbered(lines), len(lines) - 1

    def _numbered(self, lines: list[bytes]) -> Iterator[Entry]:
        for number, line in enumerate(lines, 1):
            if len(line) > LONGEST_LINE:
                yield number, _TOO_LONG
            elif line and not line.isspace():
                yield number, line
        # Reported behind the last line that could be read.
        if self.broken is not None:
            yield len(lines), self.broken


@dataclass(frozen=True, slots=True)
class LinesOfFile:
    """Byte range of whole lines in a file, for the process that will parse them to read."""

    path: Path
    start: int
    stop: int

    def read(self) -> FileLines:
        """Return the lines; a read error becomes damage."""
        # The last line starts within PIECE: if the range holds more than this, that line is too
        # long
        size = min(self.stop - self.start, PIECE + LONGEST_LINE + 1)
        try:
            with self.path.open("rb") as file:
                file.seek(self.start)
                text = file.read(size)
        except OSError as error:
            return FileLines(b"", Damaged(f"can't be read ({error.strerror or error})"))
        return FileLines(text + b"\n" if self.start + size < self.stop else text)


Chunk = FileLines | LinesOfFile | list[Entry]
_TOO_LONG = Damaged(f"is longer than {LONGEST_LINE // 2**20} MiB")


@dataclass(frozen=True, slots=True)
class Source:
    """A log to read: its name for messages, its format and its entries in chunks."""

    name: str
    form: str
    chunks: Iterator[Chunk]


def file_source(path: Path, column: str | None, progress: Progress | None) -> Source:
    """Open a file, whose format is detected from its content. Raises LogError if it can't be
    read.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise LogError(f"{path}: can't be read ({error.strerror or error})") from None
    start = first_bytes(path)
    text = start.removeprefix(_MARK).lstrip()
    if start.startswith(b"PAR1"):
        form, chunks = "parquet", _parquet_chunks(path, column, progress)
    elif text.startswith(b"["):
        form, chunks = "array", _listed(_array_entries(path, _notifier(progress, size)))
    elif text.startswith(b"{") or (column is None and not _is_csv(path)):
        form, chunks = "lines", _line_chunks(path, size, progress)
    else:
        form, chunks = "csv", _listed(_csv_entries(path, column, _notifier(progress, size)))
    return Source(str(path), form, chunks)


_MARK = b"\xef\xbb\xbf"
_Notify = Callable[[BinaryIO], None]


def _notifier(progress: Progress | None, size: int) -> _Notify:
    """Return a callback that reports the progress through a file."""

    def notify(raw: BinaryIO) -> None:
        if progress is not None:
            progress(min(raw.tell(), size), size)

    return notify


def _listed(entries: Iterator[Entry]) -> Iterator[Chunk]:
    while chunk := list(islice(entries, CHUNK)):
        yield chunk


def first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed."""
    try:
        with _opened(path) as (file, _):
            start: bytes = file.read(4096)
            return start
    except (OSError, EOFError) as error:
        raise LogError(f"{path}: can't be read ({error})") from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, BinaryIO]]:
    """Open a file, decompressing if it is gzip; also yield the raw file, whose position is
    progress.
    """
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        yield (gzip.GzipFile(fileobj=raw) if packed else raw), raw


def _line_chunks(path: Path, size: int, progress: Progress | None) -> Iterator[Chunk]:
    with _opened(path) as (file, raw):
        if file is not raw:
            yield from _unpacked_lines(file, raw, _notifier(progress, size))
            return
        # Only byte ranges are sent: sending the lines to a process costs a tenth of parsing them
        stop = len(_MARK) if raw.read(len(_MARK)) == _MARK else 0
        while stop < size:
            start, stop = stop, _line_end(raw, stop + PIECE, size)
            yield LinesOfFile(path, start, stop)
            if progress is not None:
                progress(stop, size)


def _line_end(raw: BinaryIO, offset: int, size: int) -> int:
    """Return the position after the line that the byte at `place` is part of."""
    # One byte back: if it is a line end already, the range ends here.
    raw.seek(offset - 1)
    # In bounded blocks: a file without any line end would be read as one line.
    while offset < size and (block := raw.readline(2**16)):
        offset = raw.tell()
        if block.endswith(b"\n"):
            break
    return min(offset, size)


def _is_csv(path: Path) -> bool:
    return ".csv" in path.suffixes


def _unpacked_lines(file: Any, raw: BinaryIO, notify: _Notify) -> Iterator[FileLines]:
    """Yield the lines of a compressed file; a line too long and a truncated file are damage."""
    rest = file.read(len(_MARK)).removeprefix(_MARK)
    while True:
        text, ended, broken = _piece(file, rest)
        notify(raw)
        # The last line of a whole file needs no line end; the last line of a truncated one is
        # incomplete.
        cut = len(text) if ended and broken is None else text.rfind(b"\n") + 1
        rest = text[cut:]
        if len(rest) <= LONGEST_LINE:
            yield FileLines(text[:cut], broken)
        else:
            yield FileLines(text[:cut])
            start = rest
            while b"\n" not in rest and not ended:
                rest, ended, broken = _piece(file, b"")
            # Its beginning stands for the long line: it is over the limit, and is reported as such.
            yield FileLines(start + b"\n", broken)
            rest = rest.partition(b"\n")[2]
        if ended:
            return


def _piece(file: Any, rest: bytes) -> tuple[bytes, bool, Damaged | None]:
    """Read the next piece: `rest` with it, whether the file ends, and why if it is truncated."""
    pieces, size = [rest], 0
    while size < PIECE:
        try:
            # read1, not read: of a truncated file it still returns what could be decompressed
            piece = file.read1(PIECE - size)
        except (EOFError, OSError) as error:
            return b"".join(pieces), True, Damaged(f"the packed file breaks off ({error})")
        if not piece:
            return b"".join(pieces), True, None
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces), False, None


def _array_entries(path: Path, notify: _Notify) -> Iterator[Entry]:
    """Yield the elements of a JSON array without loading it as a whole."""
    decoder, number = json.JSONDecoder(), 0
    with _opened(path) as (file, raw):
        reader = _Text(file)
        reader.expect("[")
        while True:
            mark = reader.next_mark()
            if mark in {",", "]"}:
                reader.expect(mark)
                if mark == "]":
                    return
                continue
            number += 1
            if not mark:
                yield number, Damaged("the array breaks off")
                return
            try:
                element = reader.element(decoder)
            except (Damaged, RecursionError) as error:
                yield number, Damaged(f"{error or 'too deep'}; what follows can't be read")
                return
            yield number, element
            if number % CHUNK == 0:
                notify(raw)


class _Text:
    """Text that is read in pieces, to parse a large JSON array incrementally."""

    _PIECE = 2**20

    def __init__(self, file: Any) -> None:
        self._file = file
        self._text = ""
        self._rest = b""
        self._ended = False

    def expect(self, mark: str) -> None:
        self.next_mark()
        self._text = self._text[len(mark) :]

    def next_mark(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            self._text = self._text.lstrip("\ufeff \t\r\n")
            if self._text or not self._more():
                return self._text[:1]

    def element(self, decoder: json.JSONDecoder) -> bytes:
        while True:
            try:
                _, end = decoder.raw_decode(self._text)
            except json.JSONDecodeError as error:
                if len(self._text) > LONGEST_LINE:
                    raise Damaged(f"is no JSON, or over {LONGEST_LINE // 2**20} MiB") from None
                if not self._more():
                    raise Damaged(f"is no JSON ({error.msg})") from None
            except RecursionError:
                raise Damaged("is nested too deeply") from None
            else:
                found, self._text = self._text[:end], self._text[end:]
                return found.encode()

    def _more(self) -> bool:
        if self._ended:
            return False
        try:
            # At least as much as there is: with fixed pieces a long element would be parsed again
            # and again, in quadratic time.
            piece = self._file.read(max(self._PIECE, len(self._text)))
        except (EOFError, OSError):
            piece = b""
        self._ended = not piece
        text = self._rest + piece
        cut = len(text) if self._ended else _whole_characters(text)
        self._text += text[:cut].decode(errors="replace")
        self._rest = text[cut:]
        return True


def _whole_characters(text: bytes) -> int:
    """Return how many bytes form whole UTF-8 characters: a piece may end inside one."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte >= 0xC0:
            return len(text) - back
        if byte < 0x80:
            break
    return len(text)


def _csv_entries(path: Path, column: str | None, notify: _Notify) -> Iterator[Entry]:
    csv.field_size_limit(min(sys.maxsize, LONGEST_LINE))
    with _opened(path) as (file, raw):
        # NUL bytes, which a crash leaves in a log, would end the csv module's reading.
        lines = (line.decode("utf-8-sig", errors="replace").replace("\0", "") for line in file)
        rows = csv.reader(lines)
        header = next(rows, [])
        places = [header.index(name) for name in _columns(str(path), header, column)]
        count = 0
        while True:
            try:
                values = next(rows)
            except StopIteration:
                return
            except (csv.Error, EOFError, OSError) as error:
                # The reader continues with the next line.
                yield rows.line_num, Damaged(f"is no CSV ({error})")
                continue
            if any(values):
                found = [values[index] for index in places if index < len(values)]
                yield rows.line_num, _body_in(found)
            count += 1
            if count % CHUNK == 0:
                notify(raw)


def _parquet_chunks(path: Path, column: str | None, progress: Progress | None) -> Iterator[Chunk]:
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise LogError(f"{path}: is no whole Parquet file ({error})") from None
    names = _columns(str(path), file.schema_arrow.names, column)
    size, rows, done = path.stat().st_size, max(file.metadata.num_rows, 1), 0
    for batch in file.iter_batches(CHUNK, columns=names):
        yield [
            (number, _body_in(values)) for number, values in enumerate(_rows_of(batch), done + 1)
        ]
        done += batch.num_rows
        if progress is not None:
            progress(size * done // rows, size)


def _rows_of(batch: pa.RecordBatch) -> Iterator[tuple[object, ...]]:
    return zip(*(values.to_pylist() for values in batch.columns), strict=True)


def _columns(source: str, names: Sequence[str], column: str | None) -> list[str]:
    """Return the columns to search for bodies: the one named, else all."""
    if column is None:
        return [*names]
    if column not in names:
        raise LogError(f"{source}: no column {column!r}; there are {', '.join(map(repr, names))}")
    return [column]


def _body_in(values: Iterable[object]) -> bytes | Damaged:
    """Return the first value of a row that looks like a body."""
    for value in values:
        if isinstance(value, dict):
            return orjson.dumps(value, default=str)
        text = value.encode(errors="replace") if isinstance(value, str) else value
        if isinstance(text, memoryview):
            text = bytes(text)
        if isinstance(text, bytes) and text.lstrip()[:1] == b"{":
            return text
    return Damaged("has no body in its columns")


# Databases ----------------------------------------------------------------------------------------


def is_database(source: str | Path) -> bool:
    """True if the name of a log is the URL of a database."""
    return isinstance(source, str) and "://" in source


def database_source(
    address: str,
    table: str | None,
    column: str | None,
    query: str | None,
    progress: Progress | None,
) -> Source:
    """Open the rows of a table or a query, streamed; nothing is ever written.

    Raises LogError if SQLAlchemy is missing or the URL is invalid. Reading the chunks raises it if
    a driver is missing, the database can't be reached, or there is no such table or column.
    """
    try:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise LogError(
            "reading a database needs SQLAlchemy: pip install '.[sql]' in the folder of dialsim"
        ) from None
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise LogError(
            "the log is no URL of a database, such as sqlite:///calls.db or "
            "postgresql://user@server/database"
        ) from None
    # Without this the driver that a plain `postgresql:` means depends on SQLAlchemy's version
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    name = url.set(query={}).render_as_string(hide_password=True)
    if table is not None and query is not None:
        raise LogError(f"{name}: name a table (--table) or a query (--query), not both")
    if query is not None and column is not None:
        raise LogError(f"{name}: the query says which columns there are; --column is for tables")
    return Source(name, "database", _database_chunks(url, name, table, column, query, progress))


def _database_chunks(
    url: URL,
    name: str,
    table: str | None,
    column: str | None,
    query: str | None,
    progress: Progress | None,
) -> Iterator[Chunk]:
    from sqlalchemy.exc import DBAPIError

    done = 0
    with _connected(url, name) as connection:
        try:
            if query is None:
                result = connection.execute(_of_table(connection, name, table, column))
            # Passed on verbatim: a colon or % in the user's query is no bind parameter
            else:
                result = connection.execution_options(no_parameters=True).exec_driver_sql(query)
            if not result.returns_rows:
                raise LogError(f"{name}: the query gives no rows")
            for part in result.partitions(CHUNK):
                yield [(number, _body_in(row)) for number, row in enumerate(part, done + 1)]
                done += len(part)
                if progress is not None:
                    progress(done, 0)
        except DBAPIError as error:
            after = f" after {done:,} rows" if done else ""
            raise LogError(f"{name}: can't be read{after} ({_reason(error, url)})") from None


@contextmanager
def _connected(url: URL, name: str) -> Iterator[Connection]:
    """Open a read-only connection with a server-side cursor, so that rows are streamed."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import DBAPIError, NoSuchModuleError
    from sqlalchemy.pool import NullPool

    is_sqlite = url.get_backend_name() == "sqlite"
    # SQLite would create a missing file
    if is_sqlite and not Path(url.database or "").is_file():
        raise LogError(f"{name}: can't be read (no such file)")
    try:
        engine = create_engine(url, poolclass=NullPool)
    except NoSuchModuleError:
        raise LogError(f"{name}: SQLAlchemy knows no database {url.drivername!r}") from None
    except ModuleNotFoundError as error:
        raise LogError(f"{name}: its driver is not installed: pip install {error.name}") from None
    try:
        connection = engine.connect()
    except DBAPIError as error:
        raise LogError(f"{name}: can't connect ({_reason(error, url)})") from None
    with connection:
        if is_sqlite:
            connection.execute(text("pragma query_only = on"))
        elif url.get_backend_name() == "postgresql":
            connection = connection.execution_options(postgresql_readonly=True)
        yield connection.execution_options(yield_per=CHUNK)


def _of_table(
    connection: Connection, name: str, table: str | None, column: str | None
) -> Executable:
    """Return the SELECT of a table: of the named column, or of all columns that may hold bodies."""
    from sqlalchemy import JSON, LargeBinary, String, Text, cast, inspect, select, types
    from sqlalchemy import column as named
    from sqlalchemy import table as of

    database = inspect(connection)
    there = [*database.get_table_names(), *database.get_view_names()]
    if table is None:
        listed = ", ".join(there) or "none"
        raise LogError(f"{name}: name a table (--table) or a query (--query); it has {listed}")
    schema, _, plain = table.rpartition(".")
    if not database.has_table(plain, schema or None):
        raise LogError(f"{name}: no table {table!r}; there are {', '.join(there) or 'none'}")
    columns = {one["name"]: one["type"] for one in database.get_columns(plain, schema or None)}
    may_have = String | JSON | LargeBinary | types.NullType
    asked = _columns(f"{name}, table {table}", [*columns], column)
    if column is None:
        asked = [one for one in asked if isinstance(columns[one], may_have)]
    if not asked:
        listed = ", ".join(columns)
        raise LogError(f"{name}: no column of {table} has texts, JSON or bytes; it has {listed}")
    # JSON columns are cast to text: the driver would parse them only for us to write them again
    shown = [
        cast(named(one), Text) if isinstance(columns[one], JSON) else named(one) for one in asked
    ]
    return select(*shown).select_from(of(plain, *map(named, asked), schema=schema or None))


def _reason(error: DBAPIError, url: URL) -> str:
    """Return the first line of a driver's message, without the password."""
    said = str(error.orig).strip().partition("\n")[0]
    return said.replace(str(url.password), "***") if url.password else said
