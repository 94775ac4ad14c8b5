"""Logs: records of real or simulated calls in several formats, read into one table.

`read_log` is the only reader. What it can't read it skips and reports with line and reason.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from dialsim.conformance.table import STATUSES
from dialsim.errors import LogError
from dialsim.interface.arguments import checked
from dialsim.logs.bodies import (
    COLUMNS,
    NO_INSTANT,
    OUTCOMES,
    RESULTS,
    Damaged,
    Mark,
    Settings,
    campaign_of,
    hashes,
    instants,
    row,
)
from dialsim.logs.call_table import call_table, table_in
from dialsim.logs.entries import (
    Chunk,
    LineRange,
    Progress,
    Source,
    database_source,
    file_source,
    is_database,
)

FIRST = 4
"""Chunks parsed in this process; those after them are parsed by several processes."""
TOGETHER = 64
"""Number of chunks of a column that are concatenated: many small arrays fragment the heap."""
KEPT_DAMAGES = 1_000
"""Damaged lines kept with their reasons; further ones are only counted."""
_FOLDER_FILE = "calls.parquet"


class Damage(NamedTuple):
    """An entry (line, row or array element, from 1) that could not be read, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class CampaignOfLog:
    """A campaign in a log: its id (None in a folder without webhooks), its name and its agent."""

    id: str | None
    name: str | None
    agent_id: str | None
    agent: str | None
    organization: str | None = None
    """Known only in folders of runs and in tables of calls."""


@checked(LogError)
@dataclass(frozen=True)
class Log:
    """A log of calls.

    `bodies` has a row per body, in the order of the file; it is empty for a folder of a run without
    webhooks. Its column `call` is a row number of `calls`, `setting` an index into `settings`, and
    `marks` is a set of flags of `bodies.Mark`.

    `calls` has a row per call:

    - `campaign`: index into `campaigns`;
    - `setting`: index into `settings`, of the settings in the call's first body; -1 if unknown;
    - `call_id`;
    - `line`: line of the call's first body, 0 without a body;
    - `recipient`: number of the person within the campaign, null if unknown; people who are listed
      twice with equal values share one number;
    - `tel`: phone number in the first body that shows the person;
    - `attempt`: number of the attempt; null if the call did not count (P5) or the number is
      unknown;
    - `status`, `started_at`, `ended_at`, `call_duration_ms` (as written, else computed);
    - `analysis`: analyzed, no_conversation or unavailable, the best of the call's results; in
      folders also not_analyzed, failed or pending;
    - `funnel`; `fields`: the custom fields as JSON;
    - `bodies`: number of bodies; `re_analyses`: number of different ones marked as re-analysis;
    - `sent_at`: instant of the first POST (or receipt), if the log has it;
    - `received`: True if a body was accepted; `masked`: True if no body shows the person;
    - `position`: position of the person in the campaign's list, from 0; `call_no`: number of the
      call among the person's calls, from 1; `created_at`, `queued_at`, `initiated_at`,
      `ringing_at`, `caller_id`, `voice_key`, `segment`: only in folders of runs and in tables of
      calls that have them, else null.
    """

    source: str
    form: str
    calls: pd.DataFrame
    bodies: pd.DataFrame
    campaigns: tuple[CampaignOfLog, ...]
    settings: tuple[Settings, ...]
    agents: tuple[tuple[str | None, str | None], ...] = ()
    shapes: tuple[tuple[tuple[str, str], ...], ...] = ()
    damages: tuple[Damage, ...] = ()
    damaged: int = 0
    unknown_fields: Counter[str] = field(default_factory=Counter)
    columns: frozenset[str] = frozenset()
    """Columns of `calls` that the source has as a table of calls; empty for a log of bodies."""

    def __repr__(self) -> str:
        rows = f"calls: {len(self.calls):,}, bodies: {len(self.bodies):,}"
        return f"<dialsim.Log of {self.source}, {rows}, campaigns: {len(self.campaigns)}>"

    @property
    def has_dials(self) -> bool:
        """True if the log has instants of dials, and caller IDs."""
        return bool(self.calls["initiated_at"].notna().any())

    @cached_property
    def duplicates(self) -> int:
        """Number of bodies that repeat an earlier body of their call."""
        return int(self.bodies["repeats"].sum()) if len(self.bodies) else 0


@checked(LogError)
def read_log(
    source: object,
    *,
    column: str | None = None,
    table: str | None = None,
    query: str | None = None,
    progress: Progress | None = None,
) -> Log:
    """Read a log.

    `source` is one of

    - a folder of `dialsim run`, or its `webhooks.jsonl`;
    - a file with bodies of the webhook as JSON lines or as one JSON array; each element is a body
      or an object whose `body` is one;
    - a CSV or Parquet file with a column of bodies: `column`, else the first that has any;
    - a table of calls or of events: a frame of pandas or Polars, a table of Arrow, or a CSV or
      Parquet file. `recipient` and `call` are required; the other columns have the names of
      `Result.calls` or `Result.transitions`, as far as they are known;
    - the URL of a database in SQLAlchemy's form, with a `table` that has a column of bodies
      (text, JSON or bytes), or with a `query` that returns such rows.

    Text files may be compressed with gzip. Raises LogError if the source is none of these, or with
    the message of the database if that can't be read.

    >>> folder = result.write("out/log")
    >>> len(dialsim.read_log(folder).calls) == len(dialsim.read_log(result.calls).calls)
    True
    """
    asked = {"column": column, "table": table, "query": query}
    unused = next((name for name, value in asked.items() if value is not None), None)
    is_named = isinstance(source, str | Path)
    if unused is not None and (not is_named or Path(str(source)).is_dir()):
        raise LogError(f"{unused} is for a file or a database, but source is neither")
    if not isinstance(source, str | Path):
        return _of_table(call_table(source, "the table"), _log_of(iter(()), "the table", "table"))
    if is_database(source):
        return _read(database_source(str(source), table, column, query, progress))
    if table is not None or query is not None:
        raise LogError(f"{source}: is no URL of a database; table and query are for databases")
    path = Path(source)
    if path.is_dir():
        return _read_folder(path, progress)
    if column is None and (calls := table_in(path)) is not None:
        return _of_table(call_table(calls, str(path)), _log_of(iter(()), str(path), "table"))
    return _read(file_source(path, column, progress))


def _read(source: Source) -> Log:
    log = _log_of(source.chunks, source.name, source.form)
    if not len(log.calls):
        reasons = "".join(f"\n  line {line}: {reason}" for line, reason in log.damages[:3])
        raise LogError(f"{source.name}: no body of a CALL_RESULT webhook in it{reasons}")
    return log


class _Part(NamedTuple):
    """Parsed chunk of entries."""

    columns: list[pa.Array]
    """Arrays, not a RecordBatch: columns of a batch from another process can't be freed singly."""
    unknown_fields: Counter[str]
    damages: list[Damage]
    lines: int
    """Number of lines in the chunk; 0 if its entries are numbered from the log's beginning.
    """


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable the garbage collector: its search for cycles in rows takes a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_no_collection()
def _part(chunk: Chunk) -> _Part:
    """Parse a chunk of entries, in any process."""
    rows: list[tuple[Any, ...]] = []
    damages: list[Damage] = []
    unknown: Counter[str] = Counter()
    entries, lines = chunk.read() if isinstance(chunk, LineRange) else (chunk, 0)
    for line, entry in entries:
        try:
            if isinstance(entry, Damaged):
                raise entry
            # JSON nested thousands of levels deep raises RecursionError; it is damage like any
            # other.
            rows.append(row(line, entry, unknown))
        except (Damaged, RecursionError) as error:
            damages.append(Damage(line, str(error)))
    # Not strict: without rows there are no columns at all.
    columns: dict[str, Any] = dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))
    wrong: dict[int, str] = {}
    for name, field_name in _INSTANT_FIELDS.items():
        columns[name], reasons = instants(columns.get(name, ()))
        wrong.update({index: f"{field_name}: {why}" for index, why in reasons.items()})
    for name in _HASHED:
        columns[name] = hashes(columns.get(name, ()))
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array(columns.get(name, ()), kind) for name, kind in COLUMNS.items()}
    )
    if wrong:
        damages += [Damage(rows[index][0], reason) for index, reason in wrong.items()]
        kept = np.ones(len(rows), dtype=bool)
        kept[[*wrong]] = False
        batch = batch.filter(pa.array(kept))
    return _Part(batch.columns, unknown, damages, lines)


def _parts(chunks: Iterator[Chunk]) -> Iterator[_Part]:
    """Yield the parsed chunks in order; several processes parse the chunks of a large log."""
    yield from map(_part, islice(chunks, FIRST))
    following = next(chunks, None)
    if following is None:
        return
    from joblib import Parallel, delayed

    # Imported late: small logs need no worker processes
    from dialsim.experiments.pool import interrupts_held

    failures: list[Exception] = []

    def rest() -> Iterator[Chunk]:
        try:
            yield from chain([following], chunks)
        # joblib consumes this generator in another thread; an exception there would hang joblib
        except Exception as error:
            failures.append(error)

    # pre_dispatch limits the chunks in flight: the file must not be read into memory ahead of the
    # workers.
    workers = Parallel(n_jobs=-1, return_as="generator", pre_dispatch="n_jobs")
    with interrupts_held():
        parts = workers(delayed(_part)(chunk) for chunk in rest())
    yield from parts
    if failures:
        raise failures[0]


_INSTANT_FIELDS = {"sent_at": "at", "started_at": "payload.call.callStartedAt",
                   "ended_at": "payload.call.callEndedAt"}  # fmt: skip
_HASHED = ("session", "person", "digest")


def _log_of(chunks: Iterator[Chunk], source: str, form: str) -> Log:
    """Return the log of bodies, collected chunk by chunk in compact columns."""
    unknown, damages, damaged, before = Counter[str](), list[Damage](), 0, 0
    pieces: dict[str, list[pa.Array]] = {name: [] for name in COLUMNS}
    for count, part in enumerate(_parts(chunks), 1):
        damaged += len(part.damages)
        damages += [
            Damage(before + line, reason)
            for line, reason in part.damages[: KEPT_DAMAGES - len(damages)]
        ]
        unknown.update(part.unknown_fields)
        for name, column in zip(COLUMNS, part.columns, strict=True):
            pieces[name].append(compute.add(column, before) if name == "line" else column)
            if count % TOGETHER == 0:
                together = pa.concat_arrays(pieces[name][-TOGETHER:], _memory())
                pieces[name][-TOGETHER:] = [together]
        before += part.lines

    texts: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for name, kind in COLUMNS.items():
        # Taken out, so that a column of texts is released before the next one is encoded
        column = pa.chunked_array(pieces.pop(name), kind)
        if name in _TEXTS:
            columns[name], texts[name] = _encoded(column)
        else:
            columns[name] = column.to_numpy()
    columns["call"] = columns.pop("call_id")
    bodies = pd.DataFrame(columns, copy=False)
    settings = tuple(campaign_of(text)[1] for text in texts["setting"].to_pylist())
    agents = tuple((*orjson.loads(text),) for text in texts["agent"].to_pylist())
    shapes = tuple((*orjson.loads(text).items(),) for text in texts["shape"].to_pylist())
    campaigns, bodies["campaign"] = _campaigns(bodies, settings, agents)
    bodies["repeats"] = _repeats(bodies)
    return Log(
        source=source, form=form, calls=_calls(bodies, texts), bodies=bodies, campaigns=campaigns,
        settings=settings, agents=agents, shapes=shapes,
        damages=tuple(sorted(damages)), damaged=damaged, unknown_fields=unknown,
    )  # fmt: skip


def _memory() -> pa.MemoryPool:
    """Return the pool for large columns: Arrow's default pool keeps hundreds of MiB after free."""
    return pa.system_memory_pool()


def _encoded(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array]:
    """Encode a column of texts: return the code of each text, -1 for null, and the codes' texts."""
    if not column.num_chunks:
        return np.empty(0, np.int32), pa.array([], pa.large_string())
    if pa.types.is_dictionary(column.type):
        encoded = column.unify_dictionaries()
    else:
        encoded = compute.dictionary_encode(column, memory_pool=_memory())
    whole = encoded.combine_chunks()
    codes = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int32, copy=False), whole.dictionary


_TEXTS = ("call_id", "tel", "setting", "agent", "shape", "funnel", "fields")


def _campaigns(
    bodies: pd.DataFrame,
    settings: tuple[Settings, ...],
    agents: tuple[tuple[str | None, str | None], ...],
) -> tuple[tuple[CampaignOfLog, ...], NDArray[np.int32]]:
    """Return the campaigns by first appearance, and the campaign of each body."""
    codes: dict[str, int] = {}
    of_setting = np.array([codes.setdefault(one.id, len(codes)) for one in settings], np.int32)
    of_body = of_setting[bodies["setting"].to_numpy()] if len(settings) else np.empty(0, np.int32)
    first = {code: index for index, code in reversed([*enumerate(of_setting.tolist())])}
    _, where = np.unique(of_body, return_index=True)
    agent = bodies["agent"].to_numpy()[where].tolist()
    return tuple(
        CampaignOfLog(one, settings[first[code]].name, *agents[agent[code]])
        for one, code in codes.items()
        if code < len(agent)
    ), of_body


def _repeats(bodies: pd.DataFrame) -> NDArray[np.bool_]:
    """Return a mask of the bodies that repeat an earlier body of their call."""
    key = ["call", "status", "digest", "started_at", "ended_at", "session"]
    content = bodies[key].assign(again=bodies["marks"].to_numpy() & Mark.RE_ANALYSIS)
    repeats: NDArray[np.bool_] = content.duplicated().to_numpy()
    return repeats


def _calls(bodies: pd.DataFrame, texts: dict[str, Any]) -> pd.DataFrame:
    """Return a row per call; of several bodies the last one counts.

    Visible values take precedence over masked ones, and a good result over a fallback (section
    2.6).
    """
    marks = bodies["marks"].to_numpy()
    result = bodies["result"].to_numpy()
    again = (marks & Mark.RE_ANALYSIS) != 0
    sent_at = bodies["sent_at"].to_numpy()
    call = bodies["call"].to_numpy()
    # A repeated delivery after retention must not replace the analysis that came first.
    worth = np.select([result == RESULTS.index("analyzed"), result == RESULTS.index("masked"),
                       result < 0], [3, 1, 0], 2).astype(np.int8)  # fmt: skip
    order = _order(bodies["line"].to_numpy(), sent_at, again, worth, call)
    ends = np.flatnonzero(np.diff(call[order], append=-1))
    newest = order[ends]
    by_time = _order(bodies["line"].to_numpy(), sent_at, again, call)
    first = by_time[np.flatnonzero(np.diff(call[by_time], prepend=-1))]
    # Bodies that show the person come first, then the order of time.
    shown = _order(_order(by_time), bodies["person"].to_numpy() == 0, call)
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
    unknown = pd.arrays.IntegerArray(np.zeros(size, np.int64), np.ones(size, dtype=bool))
    return pd.DataFrame(
        {
            "campaign": campaign,
            "setting": bodies["setting"].to_numpy()[first],
            "call_id": pd.array(texts["call_id"], dtype="str"),
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
            **dict.fromkeys(("position", "call_no"), unknown),
            **dict.fromkeys(_DIAL_INSTANTS, nothing),
            **{name: _names(np.full(size, -1), []) for name in _DIAL_NAMES},
        },
        copy=False,
    )


def _order(*keys: NDArray[Any]) -> NDArray[np.int32]:
    """Return the indices that sort by the last key, ties by the one before it, and so on."""
    # int32 halves the memory; no log that fits into it has more than 2**31 rows
    return np.lexsort(keys).astype(np.int32)


_INSTANT = pd.DatetimeTZDtype("ms", "UTC")
_DIAL_INSTANTS = ("created_at", "queued_at", "initiated_at", "ringing_at")
_DIAL_NAMES = ("caller_id", "voice_key", "segment")
_TABLE = {
    "call": "call_no",
    "call_started_at": "started_at",
    "call_ended_at": "ended_at",
    **{name: name for name in ("call_id", "attempt", "status", "call_duration_ms", "analysis",
                               "funnel", *_DIAL_INSTANTS, *_DIAL_NAMES)},
}  # fmt: skip
"""Columns of a run's table of calls, and their names in `Log.calls`."""


def _instants(values: NDArray[np.int64]) -> Any:
    return pd.array(values.view("datetime64[ms]"), dtype=_INSTANT)


def _names(codes: NDArray[Any], names: list[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype="str"))


def _texts(codes: NDArray[Any], values: Any) -> Any:
    return pd.array(values.take(pa.array(codes, mask=codes < 0)), dtype="str")


def _recipients(campaign: NDArray[np.int32], person: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of each row's pair of person and campaign; -1 for a masked person."""
    # Factorized in two steps: a MultiIndex would make a tuple per row
    people = pd.factorize(person)[0]
    codes = pd.factorize(people * (campaign.max(initial=0) + 1) + campaign)[0]
    return np.where(person == 0, -1, codes)


def _attempts(
    recipient: NDArray[np.int64],
    status: NDArray[np.int8],
    ended_at: NDArray[np.int64],
    shown: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Return the attempt number of each call, 0 for calls that are no attempt.

    A body shows how many attempts had ended when it was sent, perhaps including attempts after its
    own (section 6.4). So the numbers are lowered, from a person's last call backwards, until each
    is below the next one.
    """
    counted = np.isin(status, [STATUSES.index(one) for one in OUTCOMES])
    attempt = np.where(counted, np.maximum(shown, 0), 0).astype(np.int32)
    known = np.flatnonzero(counted & (recipient >= 0) & (shown > 0))
    order = known[np.lexsort((ended_at[known], recipient[known]))]
    person, number = recipient[order], attempt[order].astype(np.int64)
    # attempt[i] is the minimum of number[j] - (j - i) over later calls j: one pass from the end.
    index = np.arange(len(order))
    bound = pd.Series((number - index)[::-1]).groupby(person[::-1], sort=False).cummin().to_numpy()
    attempt[order] = np.maximum(bound[::-1] + index, 1) if len(order) else 0
    return attempt


def _read_folder(folder: Path, progress: Progress | None) -> Log:
    """Read a folder of `dialsim run`: the table of calls, with the data of its webhooks."""
    table_path = folder / _FOLDER_FILE
    files = [folder / "webhooks.jsonl", folder / "webhooks.jsonl.gz"]
    webhooks = next((path for path in files if path.exists()), None)
    if not table_path.exists():
        if webhooks is None:
            raise LogError(
                f"{folder}: no log in this folder: it has neither {_FOLDER_FILE} nor webhooks.jsonl"
            )
        return read_log(webhooks, progress=progress)
    table = table_in(table_path)
    lacks = {"organization", "campaign", "recipient", *_TABLE}.difference(
        () if table is None else table.column_names
    )
    if table is None or lacks:
        raise LogError(f"{table_path}: is no table of calls: it lacks {', '.join(sorted(lacks))}")
    chunks = iter(()) if webhooks is None else file_source(webhooks, None, progress).chunks
    bodies = _log_of(chunks, str(folder), "run")
    return _of_table(call_table(table, str(table_path)), bodies)


def _of_table(table: pd.DataFrame, log: Log) -> Log:
    """Return the log of a table of calls, with the bodies in `log`."""
    known = table["status"].isin([one.value for one in STATUSES])
    if log.form == "table":
        known |= table["status"].isna()
    wrong = [
        Damage(row + 1, f"status: {str(table['status'][row])!r} is no status")
        for row in np.flatnonzero(~known).tolist()
    ]
    joined = _joined(log, table[known].reset_index(drop=True))
    columns = joined.calls.columns
    if log.form == "table":
        columns = columns[joined.calls.notna().any()]
    return replace(
        joined, columns=frozenset(columns), damages=(*log.damages, *wrong)[:KEPT_DAMAGES],
        damaged=log.damaged + len(wrong),
    )  # fmt: skip


def _joined(log: Log, table: pd.DataFrame) -> Log:
    """Return a table of calls, joined with the data of its webhooks."""
    of_call = pd.Index(log.calls["call_id"]).get_indexer(table["call_id"])
    has_body = of_call >= 0
    pairs = pd.MultiIndex.from_frame(table[["organization", "campaign"]].astype("str").fillna(""))
    codes, kinds = pairs.factorize()
    # Index -1 matches no row, so calls without a body get nulls
    shown = log.calls.reindex(of_call).reset_index(drop=True)
    campaigns = []
    for code, (organization, name) in enumerate(kinds):
        own = shown["campaign"][(codes == code) & has_body]
        one = CampaignOfLog(None, name or None, None, None)
        one = one if own.empty else log.campaigns[int(own.iloc[0])]
        campaigns.append(replace(one, organization=organization or None))
    people = pd.MultiIndex.from_arrays([codes, table["recipient"]]).factorize()[0]

    def number(name: str, otherwise: int = 0) -> Any:
        return shown[name].where(has_body, otherwise).astype(log.calls[name].dtype)

    calls = pd.DataFrame(
        {
            "campaign": codes.astype(np.int32),
            "setting": number("setting", -1),
            "recipient": pd.array(people, dtype="Int64"),
            "tel": shown["tel"] if table["tel"].isna().all() else table["tel"],
            **{name: shown[name] for name in ("fields", "sent_at")},
            **{
                name: number(name)
                for name in ("line", "bodies", "re_analyses", "received", "masked")
            },
            "position": table["position"].astype("Int64"),
            **{ours: table[name] for name, ours in _TABLE.items()},
        }
    )
    rows = np.full(len(log.calls), -1, dtype=np.int32)
    rows[of_call[has_body]] = np.flatnonzero(has_body)
    bodies = log.bodies.assign(call=rows[log.bodies["call"].to_numpy()])
    bodies["campaign"] = np.where(
        bodies["call"] >= 0, calls["campaign"].to_numpy()[bodies["call"].to_numpy()], -1
    ) if len(bodies) else bodies["campaign"]  # fmt: skip
    return replace(log, calls=calls, bodies=bodies, campaigns=tuple(campaigns))
