"""Reader of plain tables of calls or events, as tests and other diallers have them."""

from __future__ import annotations

from csv import reader
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute, csv, parquet

from dialsim.errors import LogError
from dialsim.interface import CallStatus
from dialsim.interface.phrases import kind_of
from dialsim.logs.bodies import NO_INSTANT, OUTCOMES, instants
from dialsim.logs.entries import first_bytes

KEYS = ("organization", "campaign", "recipient", "call")
INSTANTS = ("created_at", "queued_at", "initiated_at", "ringing_at", "call_started_at",
            "call_ended_at")  # fmt: skip
_TEXTS = ("organization", "campaign", "call_id", "tel", "status", "analysis", "funnel",
          "caller_id", "voice_key", "segment")  # fmt: skip
_NUMBERS = ("call", "attempt", "call_duration_ms")
_MOST_RECIPIENTS = 2**24
_FORM = "docs/logs.md describes tables of calls"


def table_in(path: Path) -> pa.Table | None:
    """Return the table of calls in a CSV or Parquet file; None for a file of another form."""
    start = first_bytes(path)
    try:
        if start.startswith(b"PAR1"):
            names = parquet.read_schema(path).names
            return parquet.read_table(path) if _is_table(names) else None
        if ".csv" not in path.suffixes:
            return None
        header = start.decode("utf-8-sig", "replace").splitlines()[:1]
        names = next(reader(header), [])
        if not _is_table(names):
            return None
        # As texts: type inference would take the zero from the front of a phone number
        texts = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True
        )
        table = csv.read_csv(path, convert_options=texts)
    except (pa.ArrowException, OSError) as error:
        kind = "Parquet" if start.startswith(b"PAR1") else "CSV"
        raise LogError(f"{path}: is no complete {kind} file ({error})") from None
    recipients = table["recipient"]
    if compute.all(compute.match_substring_regex(recipients, r"^(0|[1-9]\d{0,7})$")).as_py():
        table = table.set_column(names.index("recipient"), "recipient", recipients.cast(pa.int64()))
    return table


def _is_table(names: list[str]) -> bool:
    return "recipient" in names and bool({"at", "status", *INSTANTS} & {*names})


def call_table(frame: Any, source: str) -> pd.DataFrame:
    """Convert a frame to the columns of a run's table of calls; columns that it lacks are null.

    Raises LogError with column and row for a value that can't be read.
    """
    try:
        # Every frame with Arrow's C stream interface is accepted, such as those of pandas and
        # Polars
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        names = table.column_names
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        if not hasattr(frame, "columns"):
            raise LogError(
                "source of a log must be a folder, a file or a table of calls, not "
                f"{kind_of(frame)}"
            ) from None
        reason = str(error).splitlines()[0]
        raise LogError(f"{source}: can't be read as a table of calls ({reason:.200})") from None
    for name in ("recipient", "call"):
        if name not in names:
            raise LogError(f"{source}: no column {name!r}; it has {', '.join(names)}; {_FORM}")
    is_events = "at" in names
    wanted = ("at", "status") if is_events else ("status", *INSTANTS)
    if not {*wanted} & {*names}:
        raise LogError(f"{source}: none of the columns {', '.join(wanted)}; {_FORM}")
    given = _Columns(table, source)
    recipients = given.recipients()
    calls = pd.DataFrame({"recipient": recipients, "position": pd.NA}).astype({"position": "Int64"})
    if given.has_positions:
        calls["position"] = recipients.astype("Int64")
    for name in _NUMBERS:
        calls[name] = given.numbers(name)
    for name in _TEXTS:
        calls[name] = given.texts(name)
    if not given.has_positions and "tel" not in names:
        calls["tel"] = calls["recipient"]
    if calls["call"].isna().any():
        raise LogError(
            f"{source}: row {int(calls['call'].isna().argmax()) + 1}: no number of the call"
        )
    if is_events:
        calls = _of_events(calls.assign(at=given.instants("at")), given)
    else:
        calls = calls.assign(**{name: given.instants(name) for name in INSTANTS})
    return _completed(calls, source)


class _Columns:
    """Columns of an Arrow table, converted one by one; missing ones are null."""

    def __init__(self, table: pa.Table, source: str) -> None:
        self._table = table
        self._source = source
        self.has_positions = pa.types.is_integer(table.schema.field("recipient").type)

    def __contains__(self, name: str) -> bool:
        return name in self._table.column_names

    def _column(self, name: str) -> pa.ChunkedArray:
        if name not in self:
            return pa.chunked_array([pa.nulls(len(self._table), pa.string())])
        column = self._table[name]
        if pa.types.is_dictionary(column.type):
            # Arrow has no kernels for string views, which the dictionaries of Polars contain
            kind = column.type.value_type
            kind = pa.string() if kind == pa.string_view() else kind
            chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
            column = pa.chunked_array(chunks, kind)
        return column.cast(pa.string()) if column.type == pa.string_view() else column

    def _fault(self, name: str, row: int, text: str) -> LogError:
        return LogError(f"{self._source}: row {row + 1}: {name} {text}")

    def recipients(self) -> pd.Series[Any]:
        """Return the recipients: positions in the list, or phone numbers."""
        column = self._column("recipient")
        empty = compute.is_null(column).to_numpy(zero_copy_only=False)
        if empty.any():
            raise self._fault("recipient", int(empty.argmax()), "is missing")
        if not self.has_positions:
            return self.texts("recipient")
        recipients = column.to_numpy()
        wrong = (recipients < 0) | (recipients >= _MOST_RECIPIENTS)
        if wrong.any():
            row = int(wrong.argmax())
            raise self._fault(
                "recipient",
                row,
                f"{recipients[row]} is no position in a list; phone numbers are texts",
            )
        return pd.Series(recipients.astype(np.int64))

    def texts(self, name: str) -> pd.Series[Any]:
        """Return a column of texts."""
        return pd.Series(self._column(name).cast(pa.string()).to_pandas(), dtype="str")

    def numbers(self, name: str) -> pd.Series[Any]:
        """Return a column of whole numbers."""
        try:
            column = self._column(name).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise LogError(f"{self._source}: {name} has no whole numbers ({error})") from None
        return pd.Series(column.to_pandas(integer_object_nulls=True), dtype="Int64")

    def instants(self, name: str) -> pd.Series[Any]:
        """Return a column of instants: with a time zone, as ISO 8601 texts, or in ms since 1970."""
        column, kind = self._column(name), self._column(name).type
        if pa.types.is_timestamp(kind) and kind.tz is None:
            raise LogError(
                f"{self._source}: {name} has no time zone; in pandas "
                f'frame["{name}"].dt.tz_localize("Asia/Bangkok") adds it'
            )
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
        if pa.types.is_integer(column.type):
            values = column.cast(pa.int64()).fill_null(NO_INSTANT).to_numpy()
        elif pa.types.is_null(kind) or not len(column):
            values = np.full(len(column), NO_INSTANT)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            values, wrong = instants(column.to_pylist())
            for row, reason in wrong.items():
                raise self._fault(name, row, reason)
        else:
            raise LogError(f"{self._source}: {name} has no instants ({kind})")
        return pd.Series(values.view("datetime64[ms]")).dt.tz_localize("UTC")


_COLUMN_OF = {"SCHEDULED": "created_at", "QUEUED": "queued_at", "INITIATED": "initiated_at"}
_COLUMN_OF_PHASE = {"ringing": "ringing_at", "talking": "call_started_at"}
_WITHDRAWN = ("cancelled", "deleted", "expired")


def _of_events(events: pd.DataFrame, given: _Columns) -> pd.DataFrame:
    """Convert a table of events, with a row per change of a call, to a table of calls."""
    events["status"] = given.texts("to_status" if "to_status" in given else "status")
    cause, phase = given.texts("cause"), given.texts("phase")
    kind = events["status"].map(_COLUMN_OF).fillna("call_ended_at")
    events["kind"] = phase.map(_COLUMN_OF_PHASE).fillna(kind)
    lost = (events["status"] == CallStatus.CANCELLED) & (cause == "queue_timeout")
    dropped = events["status"].isin([CallStatus.CANCELLED, CallStatus.EXPIRED]) & ~lost
    events["dropped"] = dropped | cause.isin(_WITHDRAWN)
    events = events.sort_values("at", kind="stable")
    keys = [name for name in KEYS if events[name].notna().any()]
    calls = events.groupby(keys, sort=False).last().reset_index()
    # A pause, a closed window or a cancellation takes back the dial before it
    back = (events["kind"] == "created_at") | events["dropped"]
    later = back[::-1].groupby([events[name][::-1] for name in keys]).cumsum()[::-1] - back
    kept = events[~events["dropped"] & ((events["kind"] != "initiated_at") | (later == 0))]
    for name in INSTANTS:
        of_kind = kept[kept["kind"] == name].groupby(keys)["at"]
        found = of_kind.last() if name in {"queued_at", "initiated_at"} else of_kind.first()
        calls[name] = calls[keys].merge(found.reset_index(), how="left", on=keys)["at"]
    return calls.reindex(columns=[*events.columns.drop(["at", "kind", "dropped"]), *INSTANTS])


def _completed(calls: pd.DataFrame, source: str) -> pd.DataFrame:
    """Fill the columns that follow from others: ids of calls and numbers of attempts."""
    twice = calls.duplicated([*KEYS]).to_numpy()
    if twice.any():
        row = calls.iloc[int(twice.argmax())]
        raise LogError(f"{source}: call {row['call']} of {row['recipient']} is in the table twice")
    if calls["call_id"].isna().any():
        campaign = calls["campaign"].fillna("").astype(str)
        calls["call_id"] = (
            campaign + " " + calls["recipient"].astype(str) + "/" + calls["call"].astype(str)
        ).str.strip()
    if calls["attempt"].isna().all():
        dialled = calls["initiated_at"].notna() & calls["call_ended_at"].notna()
        ends = calls["status"].isin([status.value for status in OUTCOMES])
        counted = ends.where(calls["status"].notna(), dialled)
        order = calls.sort_values("call", kind="stable").index
        keys = [calls.loc[order, name] for name in KEYS[:3]]
        before = (
            counted[order].astype("Int64").groupby(keys, dropna=False).cumsum() - counted[order]
        )
        calls["attempt"] = (before + 1).where(counted | calls["initiated_at"].notna())
    return calls
