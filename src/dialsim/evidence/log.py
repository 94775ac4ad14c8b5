"""Logs: records of real or simulated calls in whatever form they were kept, read into one table.

`read_log` is the one reader. What it can't read it reports with the line and the reason, and skips.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dialsim.evidence.bodies import (
    NO_INSTANT,
    RESULTS,
    STATUSES,
    Damaged,
    Dictionary,
    Mark,
    Row,
    Settings,
    instants,
    row,
)
from dialsim.interface.errors import DialsimError
from dialsim.interface.status import CallStatus

CHUNK = 10_000
"""Bodies that are worked on together."""
LARGE = 64 * 2**20
"""Files of so many bytes are read by several processes."""
LONGEST_LINE = 16 * 2**20
"""A line that is longer is skipped unread."""
KEPT_DAMAGES = 1_000
"""So many damaged lines are kept with their reasons; the others are counted."""
_GZIP = b"\x1f\x8b"
_FOLDER_FILE = "calls.parquet"


class LogError(DialsimError):
    """A file is no log."""


class Damage(NamedTuple):
    """A line (or row, or element of an array; from 1) that could not be read, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign in a log: its id (None in a folder without webhooks), its name and its agent."""

    id: str | None
    name: str | None
    agent_id: str | None
    agent: str | None
    organization: str | None = None
    """Known in folders of runs."""


@dataclass(frozen=True)
class Log:
    """A log of calls.

    `bodies` has a row per body read, in the order of the file; it is empty for a folder of a run
    without webhooks. Its column `call` is a row number of `calls`, `setting` an index into
    `settings`, and `marks` are those of `bodies.Mark`.

    `calls` has a row per call:

    - `campaign`: index into `campaigns`; `setting`: index into `settings`, -1 if unknown (as the
      first body of the call shows them);
    - `call_id`; `line`: where its first body stands (0 in a folder without webhooks);
    - `recipient`: a number that the calls of one person in one campaign share, null where it
      can't be told; people listed twice with equal values share one. `tel`, as first shown;
    - `attempt`: the attempt's number; null if it did not count (P5) or is not known;
    - `status`, `started_at`, `ended_at`, `call_duration_ms` (as written, else worked out);
    - `analysis`: analyzed, no_conversation, unavailable, of the best result; in folders also
      not_analyzed, failed, pending; `funnel`; `fields`: the custom fields as JSON;
    - `bodies`: how many there are; `re_analyses`: how many of them differ and say so;
    - `sent_at`: the first POST (or receipt), where the log says it; `received`: whether one of its
      bodies was accepted; `masked`: no body shows the person;
    - `position`, the person's place in the campaign's list, from 0; `created_at`, `queued_at`,
      `initiated_at`, `ringing_at`, `caller_id`, `voice_key`, `segment`: known in folders of runs
      only, else null.
    """

    source: str
    form: str
    calls: pd.DataFrame
    bodies: pd.DataFrame
    campaigns: tuple[Campaign, ...]
    settings: tuple[Settings, ...]
    damages: tuple[Damage, ...] = ()
    damaged: int = 0
    unknown_fields: Counter[str] = field(default_factory=Counter)

    @property
    def has_dials(self) -> bool:
        """Whether the log knows instants of dials and the numbers shown."""
        return bool(self.calls["initiated_at"].notna().any())

    @cached_property
    def duplicates(self) -> int:
        """How many bodies repeat another one of their call."""
        return int(self.bodies["repeats"].sum()) if len(self.bodies) else 0


Progress = Callable[[int, int], None]
"""Told how many bytes are read, and of how many."""


def read_log(
    source: str | Path, *, column: str | None = None, progress: Progress | None = None
) -> Log:
    """Read a log.

    `source` is a folder of `dialsim run`; a `webhooks.jsonl` of ours; bodies of the webhook as JSON
    lines or as one JSON array, each alone or in an object that has it as `body`; a CSV or a
    Parquet file with a column of bodies (`column`; else the first that has some). Text files may
    be packed by gzip. Raises LogError if it is none of them.
    """
    path = Path(source)
    if path.is_dir():
        return _read_folder(path, progress)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise LogError(f"{path}: can't be read ({error.strerror or error})") from None
    builder = _Builder(str(path))
    form = builder.read(path, column, _Told(progress, size))
    log = builder.log(form)
    if not len(log.calls):
        reasons = "".join(f"\n  line {line}: {reason}" for line, reason in log.damages[:3])
        raise LogError(f"{path}: no body of a CALL_RESULT webhook in it{reasons}")
    return log


@dataclass(slots=True)
class _Told:
    """Passes on how far the reading is."""

    progress: Progress | None
    size: int

    def at(self, position: int) -> None:
        if self.progress is not None:
            self.progress(min(position, self.size), self.size)


class _Part(NamedTuple):
    """What came of a chunk of entries; codes of settings and agents go by its own `known`."""

    batch: pa.RecordBatch
    known: Dictionary
    damages: list[Damage]


def _part(entries: list[tuple[int, object]]) -> _Part:
    """Read a chunk of entries, in whatever process."""
    rows: list[Row] = []
    damages: list[Damage] = []
    known = Dictionary()
    for line, entry in entries:
        try:
            if isinstance(entry, Damaged):
                raise entry
            rows.append(row(line, _parsed(entry) if isinstance(entry, bytes) else entry, known))
        except (Damaged, RecursionError) as error:
            damages.append(Damage(line, str(error)))
    columns = {name: [getattr(one, name) for one in rows] for name in _COLUMNS}
    wrong: dict[int, str] = {}
    for name, place in _INSTANT_PLACES.items():
        values, reasons = instants(columns[name])
        columns[name] = values  # type: ignore[assignment]
        wrong.update({index: f"{place}: {why}" for index, why in reasons.items()})
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array(columns[name], kind) for name, kind in _COLUMNS.items()}
    )
    if wrong:
        damages += [Damage(rows[index].line, reason) for index, reason in wrong.items()]
        kept = np.ones(len(rows), dtype=bool)
        kept[[*wrong]] = False
        batch = batch.filter(pa.array(kept))
    return _Part(batch, known, damages)


_INSTANT_PLACES = {"sent_at": "at", "started_at": "payload.call.callStartedAt",
                   "ended_at": "payload.call.callEndedAt"}  # fmt: skip


class _Builder:
    """Gathers bodies chunk by chunk into compact columns."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._known = Dictionary()
        self._chunks: list[pa.RecordBatch] = []
        self._damages: list[Damage] = []
        self._damaged = 0

    def read(self, path: Path, column: str | None, told: _Told) -> str:
        """Read a file; its form."""
        start = _start(path)
        if start.startswith(b"PAR1"):
            self._take(_parquet_entries(path, column), told)
            return "parquet"
        with _opened(path) as (file, raw):
            text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
            if text.startswith(b"["):
                self._take(_array_entries(file), told, raw)
                return "array"
            if text.startswith(b"{") or (column is None and not _is_csv(path)):
                self._take(_line_entries(file), told, raw)
                return "lines"
        self._take(_csv_entries(path, column), told)
        return "csv"

    def _take(
        self, entries: Iterable[tuple[int, object]], told: _Told, raw: BinaryIO | None = None
    ) -> None:
        """Read entries; those of large files by several processes."""
        chunks = _chunks(entries, told, raw)
        if told.size < LARGE:
            for chunk in chunks:
                self._add(_part(chunk))
        else:
            from joblib import Parallel, delayed

            workers = Parallel(n_jobs=-1, return_as="generator", pre_dispatch="n_jobs")
            for part in workers(delayed(_part)(chunk) for chunk in chunks):
                self._add(part)
        told.at(told.size)

    def _add(self, part: _Part) -> None:
        self._damaged += len(part.damages)
        self._damages += part.damages[: KEPT_DAMAGES - len(self._damages)]
        self._known.unknown_fields.update(part.known.unknown_fields)
        batch = part.batch
        for name, codes in self._known.taken_in(part.known).items():
            own = np.asarray(codes, dtype=np.int32)[batch.column(name).to_numpy()]
            batch = batch.set_column(batch.schema.get_field_index(name), name, pa.array(own))
        self._chunks.append(batch)

    def log(self, form: str) -> Log:
        """The log of all that was taken in."""
        table = pa.Table.from_batches(self._chunks, pa.schema([*_COLUMNS.items()]))
        self._chunks = []
        settings = tuple(self._known.known_settings)
        agents = list(self._known.agents)
        ids = table.column("call_id").combine_chunks().dictionary_encode()
        texts = {
            name: table.column(name).combine_chunks().dictionary_encode()
            for name in ("tel", "funnel", "fields")
        }
        bodies = pd.DataFrame(
            {
                name: table.column(name).to_numpy()
                for name in _COLUMNS
                if name not in {"call_id", *texts}
            },
            copy=False,
        )
        bodies.insert(0, "call", ids.indices.to_numpy(zero_copy_only=False).astype(np.int32))
        for name, encoded in texts.items():
            bodies[name] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        del table
        campaigns, of_body = _campaigns(bodies, settings, agents)
        bodies["campaign"] = of_body
        bodies["repeats"] = _repeats(bodies)
        calls = _calls(bodies, ids.dictionary, {n: e.dictionary for n, e in texts.items()})
        return Log(
            source=self._source, form=form, calls=calls, bodies=bodies, campaigns=campaigns,
            settings=settings, damages=tuple(sorted(self._damages)), damaged=self._damaged,
            unknown_fields=self._known.unknown_fields,
        )  # fmt: skip


_COLUMNS: dict[str, Any] = {
    "line": pa.int64(),
    "sent_at": pa.int64(),
    "post": pa.int32(),
    "response": pa.int16(),
    "received": pa.bool_(),
    "call_id": pa.large_string(),
    "session": pa.int64(),
    "status": pa.int8(),
    "started_at": pa.int64(),
    "ended_at": pa.int64(),
    "duration_ms": pa.int64(),
    "tel": pa.large_string(),
    "person": pa.int64(),
    "shown_attempts": pa.int32(),
    "shown_status": pa.int8(),
    "setting": pa.int32(),
    "agent": pa.int32(),
    "result": pa.int8(),
    "funnel": pa.large_string(),
    "fields": pa.large_string(),
    "digest": pa.int64(),
    "marks": pa.int32(),
}


def _chunks(
    entries: Iterable[tuple[int, object]], told: _Told, raw: BinaryIO | None
) -> Iterator[list[tuple[int, object]]]:
    """Entries by so many at a time."""
    chunk: list[tuple[int, object]] = []
    for entry in entries:
        chunk.append(entry)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
            if raw is not None:
                told.at(raw.tell())
    if chunk:
        yield chunk


def _campaigns(
    bodies: pd.DataFrame,
    settings: tuple[Settings, ...],
    agents: list[tuple[str | None, str | None]],
) -> tuple[tuple[Campaign, ...], NDArray[np.int32]]:
    """The campaigns, by first appearance, and that of each body."""
    codes: dict[str, int] = {}
    of_setting = np.array([codes.setdefault(one.id, len(codes)) for one in settings], np.int32)
    of_body = of_setting[bodies["setting"].to_numpy()] if len(settings) else np.empty(0, np.int32)
    first = {code: index for index, code in reversed([*enumerate(of_setting.tolist())])}
    _, where = np.unique(of_body, return_index=True)
    agent = bodies["agent"].to_numpy()[where].tolist()
    return tuple(
        Campaign(one, settings[first[code]].name, *agents[agent[code]])
        for one, code in codes.items()
        if code < len(agent)
    ), of_body


def _repeats(bodies: pd.DataFrame) -> NDArray[np.bool_]:
    """Which bodies say nothing that an earlier one of their call has not said."""
    key = ["call", "status", "digest", "started_at", "ended_at", "session"]
    said = bodies[key].assign(again=bodies["marks"].to_numpy() & int(Mark.RE_ANALYSIS))
    repeats: NDArray[np.bool_] = said.duplicated().to_numpy()
    return repeats


def _calls(bodies: pd.DataFrame, ids: Any, texts: dict[str, Any]) -> pd.DataFrame:
    """A row per call: of several bodies the last one counts.

    Values that are there go before masked ones, and a good result before a fallback (section 2.6).
    """
    marks = bodies["marks"].to_numpy()
    result = bodies["result"].to_numpy()
    again = (marks & int(Mark.RE_ANALYSIS)) != 0
    sent_at = bodies["sent_at"].to_numpy()
    call = bodies["call"].to_numpy()
    worth = np.select([result == RESULTS.index("analyzed"), result == RESULTS.index("masked"),
                       result < 0], [3, 1, 0], 2)  # fmt: skip
    order = np.lexsort((bodies["line"].to_numpy(), sent_at, again, worth, call))
    ends = np.flatnonzero(np.diff(call[order], append=-1))
    newest = order[ends]
    by_time = np.lexsort((bodies["line"].to_numpy(), sent_at, again, call))
    first = by_time[np.flatnonzero(np.diff(call[by_time], prepend=-1))]
    shown = np.lexsort((by_time.argsort(), bodies["person"].to_numpy() == 0, call))
    seen = shown[np.flatnonzero(np.diff(call[shown], prepend=-1))]
    size = len(first)

    def count(which: NDArray[np.bool_]) -> NDArray[np.int32]:
        return np.bincount(call[which], minlength=size).astype(np.int32)

    def latest(name: str) -> NDArray[Any]:
        values: NDArray[Any] = bodies[name].to_numpy()[newest]
        return values

    campaign = bodies["campaign"].to_numpy()[first]
    person = bodies["person"].to_numpy()[seen]
    started_at, ended_at = latest("started_at"), latest("ended_at")
    talked = (started_at != NO_INSTANT) & (ended_at != NO_INSTANT)
    duration = latest("duration_ms")
    duration = np.where(duration >= 0, duration, np.where(talked, ended_at - started_at, -1))
    recipient = _recipients(campaign, person)
    status = latest("status")
    shown_attempts = np.minimum.reduceat(
        bodies["shown_attempts"].to_numpy()[by_time],
        np.flatnonzero(np.diff(call[by_time], prepend=-1)),
    ) if size else np.empty(0, np.int32)  # fmt: skip
    attempt = _attempts(recipient, status, ended_at, shown_attempts)
    accepted = np.zeros(size, dtype=bool)
    accepted[call[bodies["received"].to_numpy()]] = True
    kind = result[newest].astype(np.int8)
    kind[kind == RESULTS.index("masked")] = -1
    nothing = pd.array(np.full(size, NO_INSTANT).view("datetime64[ms]"), dtype=_INSTANT)
    return pd.DataFrame(
        {
            "campaign": campaign,
            "setting": bodies["setting"].to_numpy()[first],
            "call_id": pd.array(ids, dtype="str"),
            "line": bodies["line"].to_numpy()[first],
            "recipient": pd.arrays.IntegerArray(recipient, recipient < 0),
            "tel": _texts(bodies["tel"].to_numpy()[seen], texts["tel"]),
            "attempt": pd.arrays.IntegerArray(attempt, attempt < 1),
            "status": _names(status, [one.value for one in STATUSES]),
            "started_at": _instants(started_at),
            "ended_at": _instants(ended_at),
            "call_duration_ms": pd.arrays.IntegerArray(duration, duration < 0),
            "analysis": _names(kind, [*RESULTS[:3], "not_analyzed", "failed", "pending"]),
            "funnel": _names(latest("funnel"), texts["funnel"].to_pylist()),
            "fields": _names(latest("fields"), texts["fields"].to_pylist()),
            "bodies": count(np.ones(len(call), dtype=bool)),
            "re_analyses": count(again & ~bodies["repeats"].to_numpy()),
            "sent_at": _instants(sent_at[first]),
            "received": accepted,
            "masked": person == 0,
            "position": pd.arrays.IntegerArray(np.zeros(size, np.int64), np.ones(size, dtype=bool)),
            **dict.fromkeys(_DIAL_INSTANTS, nothing),
            **{name: _names(np.full(size, -1), []) for name in _DIAL_NAMES},
        },
        copy=False,
    )


_INSTANT = pd.DatetimeTZDtype("ms", "UTC")
_DIAL_INSTANTS = ("created_at", "queued_at", "initiated_at", "ringing_at")
_DIAL_NAMES = ("caller_id", "voice_key", "segment")


def _instants(values: NDArray[np.int64]) -> Any:
    return pd.array(values.view("datetime64[ms]"), dtype=_INSTANT)


def _names(codes: NDArray[Any], names: list[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype="str"))


def _texts(codes: NDArray[Any], values: Any) -> Any:
    return pd.array(values.take(pa.array(codes, mask=codes < 0)), dtype="str")


def _recipients(campaign: NDArray[np.int32], person: NDArray[np.int64]) -> NDArray[np.int64]:
    """People, numbered by campaign and values, -1 where they are masked."""
    keys = pd.MultiIndex.from_arrays([campaign, person])
    codes = np.asarray(keys.factorize()[0], dtype=np.int64)
    return np.where(person == 0, -1, codes)


_COUNTED = [STATUSES.index(status) for status in
            (CallStatus.COMPLETED, CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED,
             CallStatus.ANALYSIS_FAILED)]  # fmt: skip


def _attempts(
    recipient: NDArray[np.int64],
    status: NDArray[np.int8],
    ended_at: NDArray[np.int64],
    shown: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Numbers of attempts, 0 where none.

    A body shows how many attempts have ended when it is sent: that of its call, and perhaps later
    ones (section 6.4). From a person's last call backwards, each number is below the next one.
    """
    counted = np.isin(status, _COUNTED)
    attempt = np.where(counted, np.maximum(shown, 0), 0).astype(np.int32)
    known = np.flatnonzero(counted & (recipient >= 0) & (shown > 0))
    order = known[np.lexsort((ended_at[known], recipient[known]))]
    who, number = recipient[order], attempt[order].astype(np.int64)
    # min over later calls j of number[j] + place[j], in one pass from the end, per person
    place = np.arange(len(order))
    bound = pd.Series((number - place)[::-1]).groupby(who[::-1], sort=False).cummin().to_numpy()
    attempt[order] = np.maximum(bound[::-1] + place, 1) if len(order) else 0
    return attempt


def _start(path: Path) -> bytes:
    """The first bytes, unpacked."""
    try:
        with _opened(path) as (file, _):
            start: bytes = file.read(4096)
            return start
    except (OSError, EOFError) as error:
        raise LogError(f"{path}: can't be read ({error})") from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, BinaryIO]]:
    """A file, unpacked if it is packed; and the raw file, which knows how far it is."""
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        yield (gzip.GzipFile(fileobj=raw) if packed else raw), raw


def _is_csv(path: Path) -> bool:
    return ".csv" in path.suffixes


def _parsed(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Damaged(_why_no_json(text, error)) from None


def _why_no_json(text: bytes, error: orjson.JSONDecodeError) -> str:
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16: save the file as UTF-8"
    if b"\0" in text:
        return "has NUL bytes: a piece of the file was never written"
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        return f"is no UTF-8 at byte {wrong.start + 1}"
    return f"is no JSON ({error.msg} at character {error.pos + 1})"


def _line_entries(file: Any) -> Iterator[tuple[int, object]]:
    """Lines that are not empty; a line that is too long, and a packed file that breaks off."""
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(LONGEST_LINE)
            if not line:
                return
            if len(line) >= LONGEST_LINE and not line.endswith(b"\n"):
                _skip_line(file)
                yield number, Damaged(f"is longer than {LONGEST_LINE // 2**20} MiB")
                continue
        except (EOFError, OSError) as error:
            yield number, Damaged(f"the packed file breaks off ({error})")
            return
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.strip()
        if line:
            yield number, line


def _skip_line(file: Any) -> None:
    while piece := file.readline(LONGEST_LINE):
        if piece.endswith(b"\n"):
            return


def _array_entries(file: Any) -> Iterator[tuple[int, object]]:
    """The elements of a JSON array, one after the other."""
    decoder, number = json.JSONDecoder(), 0
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
        try:
            if not mark:
                yield number, Damaged("the array breaks off")
                return
            yield number, reader.element(decoder)
        except (Damaged, RecursionError) as error:
            yield number, Damaged(f"{error or 'too deep'}; what follows can't be read")
            return


class _Text:
    """A text read piece by piece."""

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
        """The next character that is not a space; empty at the end."""
        while True:
            self._text = self._text.lstrip("\ufeff \t\r\n")
            if self._text or not self._more():
                return self._text[:1]

    def element(self, decoder: json.JSONDecoder) -> object:
        while True:
            try:
                value, end = decoder.raw_decode(self._text)
            except json.JSONDecodeError as error:
                if len(self._text) > LONGEST_LINE:
                    raise Damaged(f"is no JSON, or over {LONGEST_LINE // 2**20} MiB") from None
                if not self._more():
                    raise Damaged(f"is no JSON ({error.msg})") from None
            except RecursionError:
                raise Damaged("is nested too deeply") from None
            else:
                self._text = self._text[end:]
                return value

    def _more(self) -> bool:
        if self._ended:
            return False
        try:
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
    """How many bytes make whole characters of UTF-8."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte >= 0xC0:
            return len(text) - back
        if byte < 0x80:
            break
    return len(text)


def _csv_entries(path: Path, column: str | None) -> Iterator[tuple[int, object]]:
    csv.field_size_limit(min(sys.maxsize, LONGEST_LINE))
    with _opened(path) as (file, _):
        lines = (line.decode("utf-8-sig", errors="replace").replace("\0", "") for line in file)
        rows = csv.reader(lines)
        header = next(rows, [])
        places = _places(path, header, column)
        while True:
            try:
                values = next(rows)
            except StopIteration:
                return
            except (csv.Error, EOFError, OSError) as error:
                yield rows.line_num, Damaged(f"is no CSV ({error})")
                continue
            found = [values[place] for place in places if place < len(values)]
            text = next((text for text in found if text.lstrip()[:1] == "{"), None)
            if text is None:
                if any(values):
                    yield rows.line_num, Damaged("has no body in its columns")
                continue
            yield rows.line_num, text.encode(errors="replace")


def _parquet_entries(path: Path, column: str | None) -> Iterator[tuple[int, object]]:
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise LogError(f"{path}: is no whole Parquet file ({error})") from None
    names = file.schema_arrow.names
    places = [names[place] for place in _places(path, names, column)]
    line = 0
    for batch in file.iter_batches(CHUNK, columns=places):
        for values in batch.to_pylist():
            line += 1
            body = next((v for v in values.values() if isinstance(v, dict) or _is_json(v)), None)
            if body is None:
                yield line, Damaged("has no body in its columns")
            elif isinstance(body, dict):
                yield line, body
            else:
                yield line, body if isinstance(body, bytes) else body.encode(errors="replace")


def _is_json(value: object) -> bool:
    if isinstance(value, str):
        return value.lstrip()[:1] == "{"
    return isinstance(value, bytes) and value.lstrip()[:1] == b"{"


def _places(path: Path, names: list[str], column: str | None) -> list[int]:
    """Which columns may have bodies: the one that was named, else all."""
    if column is None:
        return [*range(len(names))]
    if column not in names:
        raise LogError(f"{path}: no column {column!r}; there are {', '.join(map(repr, names))}")
    return [names.index(column)]


def _read_folder(folder: Path, progress: Progress | None) -> Log:
    """A folder of `dialsim run`: its table of calls, and settings and bodies from its webhooks."""
    table_path = folder / _FOLDER_FILE
    files = [folder / "webhooks.jsonl", folder / "webhooks.jsonl.gz"]
    webhooks = next((path for path in files if path.exists()), None)
    if not table_path.exists():
        if webhooks is None:
            raise LogError(
                f"{folder}: no log in this folder: it has neither {_FOLDER_FILE} nor webhooks.jsonl"
            )
        return read_log(webhooks, progress=progress)
    builder = _Builder(str(folder))
    if webhooks is not None:
        builder.read(webhooks, None, _Told(progress, webhooks.stat().st_size))
    return _joined(builder.log("run"), pd.read_parquet(table_path))


def _joined(log: Log, table: pd.DataFrame) -> Log:
    """The table of calls of a run, with what the bodies of its webhooks say of them."""
    of_call = pd.Index(log.calls["call_id"]).get_indexer(table["call_id"])
    has_body = of_call >= 0
    pairs = pd.MultiIndex.from_frame(table[["organization", "campaign"]].astype(str))
    codes, kinds = pairs.factorize()
    told = log.calls["campaign"].to_numpy()
    campaigns = []
    for code, (organization, name) in enumerate(kinds):
        rows = np.flatnonzero((codes == code) & has_body)
        known = log.campaigns[told[of_call[rows[0]]]] if len(rows) else None
        one = known or Campaign(None, name, None, None)
        campaigns.append(replace(one, organization=organization))
    people = pd.MultiIndex.from_arrays([codes, table["recipient"]]).factorize()[0]

    def from_bodies(name: str) -> Any:
        values = log.calls[name].take(np.where(has_body, of_call, 0)) if len(log.calls) else None
        if values is None:
            return log.calls[name].reindex(range(len(table)))
        values = values.reset_index(drop=True)
        return values.where(has_body)

    def number(name: str, otherwise: int) -> NDArray[Any]:
        values = np.full(len(table), otherwise, dtype=np.int64)
        values[has_body] = log.calls[name].to_numpy()[of_call[has_body]]
        return values

    calls = pd.DataFrame(
        {
            "campaign": codes.astype(np.int32),
            "setting": number("setting", -1).astype(np.int32),
            "call_id": table["call_id"],
            "line": number("line", 0),
            "recipient": pd.array(people, dtype="Int64"),
            "tel": from_bodies("tel"),
            "attempt": table["attempt"],
            "status": table["status"],
            "started_at": table["call_started_at"],
            "ended_at": table["call_ended_at"],
            "call_duration_ms": table["call_duration_ms"],
            "analysis": table["analysis"],
            "funnel": table["funnel"],
            "fields": from_bodies("fields"),
            "bodies": number("bodies", 0).astype(np.int32),
            "re_analyses": number("re_analyses", 0).astype(np.int32),
            "sent_at": from_bodies("sent_at"),
            "received": number("received", 0).astype(bool),
            "masked": number("masked", 0).astype(bool),
            "position": table["recipient"].astype("Int64"),
            **{name: table[name] for name in (*_DIAL_INSTANTS, *_DIAL_NAMES)},
        }
    )
    rows = np.full(len(log.calls), -1, dtype=np.int32)
    rows[of_call[has_body]] = np.flatnonzero(has_body)
    bodies = log.bodies.assign(call=rows[log.bodies["call"].to_numpy()])
    bodies["campaign"] = np.where(
        bodies["call"] >= 0, calls["campaign"].to_numpy()[bodies["call"].to_numpy()], -1
    ) if len(bodies) else bodies["campaign"]  # fmt: skip
    return Log(
        source=log.source, form="run", calls=calls, bodies=bodies, campaigns=tuple(campaigns),
        settings=log.settings, damages=log.damages, damaged=log.damaged,
        unknown_fields=log.unknown_fields,
    )  # fmt: skip
