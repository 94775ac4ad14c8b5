"""Readers of logs: iterators over the entries of files in several formats and of databases.

Every source yields its entries in chunks. An entry is its number in the log (line, row or array
element, from 1) and the bytes of a body, or the reason why it could not be read. Plain lines are
read by the worker processes that parse them. All other forms are read in one process, because they
must be read from their beginning.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
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
_BETWEEN = re.compile(r"[\s,]*")

Entry = tuple[int, bytes | Damaged]
Progress = Callable[[int, int], None]
"""Callback for progress: bytes read (rows, for a database), and their total or 0 if unknown."""


@dataclass(frozen=True, slots=True)
class LineRange:
    """Byte range of whole lines in a file, to be read by the process that parses the lines."""

    path: Path
    start: int
    stop: int

    def read(self) -> tuple[Iterator[Entry], int]:
        """Return the lines that are not empty, numbered from 1, and the number of line ends."""
        # The last line starts within the first PIECE bytes. A range of more than `size` bytes ends
        # with a line that is too long
        size = min(self.stop - self.start, PIECE + LONGEST_LINE + 1)
        try:
            with self.path.open("rb") as file:
                file.seek(self.start)
                text = file.read(size)
        except OSError as error:
            return iter([(1, Damaged(f"can't be read ({error.strerror or error})"))]), 0
        lines = text.split(b"\n")
        cut_short = self.start + size < self.stop
        return _numbered(lines), len(lines) - (0 if cut_short else 1)


def _numbered(lines: Iterable[bytes], first: int = 1) -> Iterator[Entry]:
    for number, line in enumerate(lines, first):
        if len(line) > LONGEST_LINE:
            yield number, Damaged(f"is longer than {LONGEST_LINE // 2**20} MiB")
        elif line and not line.isspace():
            yield number, line


Chunk = LineRange | list[Entry]


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
        return Source(str(path), "parquet", _parquet_chunks(path, column, progress))
    entries: Callable[[Any], Iterator[Entry]] = _packed_lines
    form = "lines"
    if text.startswith(b"["):
        form, entries = "array", _array_entries
    elif not text.startswith(b"{") and (column is not None or ".csv" in path.suffixes):
        form, entries = "csv", partial(_csv_entries, source=str(path), column=column)
    elif not _is_packed(path):
        return Source(str(path), form, _line_ranges(path, size, progress))
    return Source(str(path), form, _chunks(path, entries, size, progress))


_MARK = b"\xef\xbb\xbf"


def _chunks(
    path: Path,
    entries_of: Callable[[Any], Iterator[Entry]],
    size: int,
    progress: Progress | None,
) -> Iterator[Chunk]:
    """Yield the entries of a file, which `entries_of` reads in this process."""
    with _opened(path) as (file, raw):
        entries = entries_of(file)
        while chunk := list(islice(entries, CHUNK)):
            yield chunk
            if progress is not None:
                progress(min(raw.tell(), size), size)


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
    """Open a file, decompressing gzip; also yield the raw file, whose position is progress."""
    with path.open("rb") as raw:
        yield (gzip.GzipFile(fileobj=raw) if _is_packed(path) else raw), raw


def _is_packed(path: Path) -> bool:
    with path.open("rb") as raw:
        return raw.read(2) == b"\x1f\x8b"


def _line_ranges(path: Path, size: int, progress: Progress | None) -> Iterator[Chunk]:
    # Processes get byte ranges, not lines: sending lines takes a tenth of the time of parsing them
    with path.open("rb") as raw:
        stop = len(_MARK) if raw.read(len(_MARK)) == _MARK else 0
        while stop < size:
            start, stop = stop, _line_end(raw, stop + PIECE, size)
            yield LineRange(path, start, stop)
            if progress is not None:
                progress(stop, size)


def _line_end(raw: BinaryIO, offset: int, size: int) -> int:
    """Return the position after the line that contains the byte before `offset`."""
    # Start one byte back: if that byte is a line end, the range ends at `offset`.
    raw.seek(offset - 1)
    # In bounded blocks: a file without any line end would otherwise be read whole.
    while offset < size and (block := raw.readline(2**16)):
        offset = raw.tell()
        if block.endswith(b"\n"):
            break
    return min(offset, size)


def _packed_lines(file: Any) -> Iterator[Entry]:
    """Yield the lines of a compressed file; too long lines and a truncated end are damage."""
    rest = file.read(len(_MARK)).removeprefix(_MARK)
    for number in count(1):
        try:
            # The limit bounds the memory: of a line that is too long only its beginning is kept.
            line = end = rest + file.readline(LONGEST_LINE + 1)
            while end and not end.endswith(b"\n"):
                end = file.readline(2**16)
        except (EOFError, OSError) as error:
            yield number, Damaged(f"the compressed file breaks off ({error})")
            return
        if not line:
            return
        yield from _numbered([line.removesuffix(b"\n")], number)
        rest = b""


def _array_entries(file: Any) -> Iterator[Entry]:
    """Yield the elements of a JSON array, which is read as a whole."""
    text, decoder, number = _all_of(file).decode("utf-8-sig", "replace"), json.JSONDecoder(), 0
    at = text.index("[") + 1
    # Element by element, so that an array that breaks off is read up to that point.
    while True:
        between = _BETWEEN.match(text, at)
        assert between is not None
        at = between.end()
        if text.startswith("]", at):
            return
        number += 1
        try:
            _, end = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            yield number, Damaged(f"is no JSON ({error}); what follows can't be read")
            return
        yield number, text[at:end].encode()
        at = end


def _all_of(file: Any) -> bytes:
    """Return the content of a file; of a truncated gzip file, the part that can be decompressed."""
    pieces: list[bytes] = []
    with suppress(EOFError, OSError):
        pieces.extend(iter(lambda: file.read1(PIECE), b""))
    return b"".join(pieces)


def _csv_entries(file: Any, source: str, column: str | None) -> Iterator[Entry]:
    csv.field_size_limit(min(sys.maxsize, LONGEST_LINE))
    # NUL bytes, which a crash leaves in a log, would end the csv module's reading.
    lines = (line.decode("utf-8-sig", errors="replace").replace("\0", "") for line in file)
    rows = csv.reader(lines)
    header = next(rows, [])
    indices = [header.index(name) for name in _columns(source, header, column)]
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
            found = [values[index] for index in indices if index < len(values)]
            yield rows.line_num, _body_in(found)


def _parquet_chunks(path: Path, column: str | None, progress: Progress | None) -> Iterator[Chunk]:
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise LogError(f"{path}: is no complete Parquet file ({error})") from None
    names = _columns(str(path), file.schema_arrow.names, column)
    size, rows, done = path.stat().st_size, max(file.metadata.num_rows, 1), 0
    for batch in file.iter_batches(CHUNK, columns=names):
        rows_of_batch = enumerate(batch.to_pylist(), done + 1)
        yield [(number, _body_in(row.values())) for number, row in rows_of_batch]
        done += batch.num_rows
        if progress is not None:
            progress(size * done // rows, size)


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
    """Open the rows of a table or a query as a stream; nothing is ever written.

    Raises LogError if SQLAlchemy is missing or the URL is invalid. Reading the chunks raises
    LogError if a driver is missing, the database can't be reached, or there is no such table or
    column.
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
        raise LogError(f"{name}: --column is for tables; a query names its columns itself")
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
                raise LogError(f"{name}: the query returns no rows")
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
    """Return the SELECT of a table: of the named column, or of all columns."""
    from sqlalchemy import JSON, Text, cast, inspect, select
    from sqlalchemy import column as named
    from sqlalchemy import table as of

    database = inspect(connection)
    schema, _, plain = (table or "").rpartition(".")
    if table is None or not database.has_table(plain, schema or None):
        there = [*database.get_table_names(), *database.get_view_names()]
        wrong = "name a table (--table) or a query (--query)"
        wrong = wrong if table is None else f"no table {table!r}"
        raise LogError(f"{name}: {wrong}; it has {', '.join(there) or 'none'}")
    kinds = {one["name"]: one["type"] for one in database.get_columns(plain, schema or None)}
    asked = _columns(f"{name}, table {table}", [*kinds], column)
    # JSON columns are cast to text: the driver would parse them only for us to write them again
    shown = [
        cast(named(one), Text) if isinstance(kinds[one], JSON) else named(one) for one in asked
    ]
    return select(*shown).select_from(of(plain, schema=schema or None))


def _reason(error: DBAPIError, url: URL) -> str:
    """Return the first line of a driver's message, without the password."""
    message = str(error.orig).strip().partition("\n")[0]
    return message.replace(str(url.password), "***") if url.password else message
