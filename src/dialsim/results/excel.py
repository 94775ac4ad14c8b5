"""Results as workbooks in Thai time. A run has sheets for summary, campaigns, recipients and hours.

Rows are written one by one, so that a million need little memory. A sheet of Excel ends with row
1,048,576; longer tables continue on further sheets, as the summary mentions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from dialsim.errors import DialsimError, OutputError
from dialsim.interface import CallStatus
from dialsim.interface.arguments import checked
from dialsim.interface.instants import DAY, thai
from dialsim.interface.phrases import kind_of
from dialsim.results.counts import first_day
from dialsim.results.figures import CUMULATIVE, NUMBERS, Unit, unit_of
from dialsim.results.folder import replace_file
from dialsim.results.summary_text import answers, headline
from dialsim.scenario.sheet import frame_of

if TYPE_CHECKING:
    from xlsxwriter import Workbook

    from dialsim.results.result import Result

NAME = "results.xlsx"
MOST_ROWS = 1_048_575
"""Rows of a sheet of Excel, without the header."""
# Most characters of a cell in Excel.
_LONGEST_TEXT = 32_767
_THAI = "Asia/Bangkok"
_CHUNK = 10_000

_INSTANT, _COUNT, _NUMBER, _SHARE = "yyyy-mm-dd hh:mm:ss", "#,##0", "#,##0.00", "0.0%"
_UNIT_FORMATS: dict[Unit | None, str] = {
    Unit.SHARE: _SHARE,
    **{unit: _NUMBER for unit in Unit if unit.is_money},
}
_KIND_FORMATS = {"i": _COUNT, "u": _COUNT, "f": _NUMBER}


@checked(OutputError)
def for_excel(frame: object) -> pd.DataFrame:
    """Convert a table for `to_excel` of pandas: instants in Thai time, webhook bodies as JSON.

    Infinite numbers become nulls. A frame of Polars or a table of Arrow becomes one of pandas.
    Raises DialsimError for another argument.

    >>> str(dialsim.for_excel(result.calls).created_at[0])
    '2026-01-05 09:00:00'
    """
    given = frame_of(frame)
    if given is None:
        raise DialsimError(f"frame must be a DataFrame, not {kind_of(frame)}")
    frame = given

    def column(values: pd.Series[Any]) -> pd.Series[Any]:
        if isinstance(values.dtype, pd.DatetimeTZDtype):
            # Excel has no time zones.
            naive: pd.Series[Any] = values.dt.tz_convert(_THAI).dt.tz_localize(None)
            return naive
        if values.dtype.name == "payload":
            texts = [json.dumps(body, ensure_ascii=False) for body in values]
            return pd.Series(texts, index=values.index, dtype="str")
        if values.dtype.kind == "f":
            # Excel has no infinite numbers: the cell stays empty.
            return values.where(np.isfinite(values))
        return values

    columns = [column(frame.iloc[:, index]) for index in range(frame.shape[1])]
    made = pd.concat(columns, axis=1) if columns else frame.copy()
    made.columns = frame.columns
    return made


def write_excel(result: Result, path: str | os.PathLike[str]) -> Path:
    """Write a result as a workbook, replacing an existing file; returns its path.

    The file appears when it is complete. Equal results give equal bytes under equal versions of the
    libraries. Raises OutputError for errors of the file system.
    """
    if Path(path).suffix.lower() != ".xlsx":
        raise OutputError(f"path must end in .xlsx: {path}")
    summary, world = result.summary, result.trace.world
    rows: list[tuple[str, object]] = [
        ("Answer", headline(summary)),
        ("Seed", world.seed),
        ("Replication", world.replication),
    ]
    for answer in answers(summary):
        said = f"{answer.finish}; {answer.reach}. {answer.held_back}".rstrip()
        rows.append((answer.campaign, said))
    rows += [("Warning", warning) for warning in summary.warnings]
    sheets = {
        "campaigns": summary.to_frame(),
        "recipients": result.recipients,
        "calls by hour": calls_by_hour(result),
    }
    if summary.value is not None:
        sheets["value by day"] = value_table(result)
    return write_workbook(Path(path), world.scenario.name, rows, sheets)


def write_workbook(
    path: Path,
    scenario: str,
    said: Sequence[tuple[str, object]],
    sheets: Mapping[str, pd.DataFrame],
    units: Mapping[str, Unit] = MappingProxyType({}),
) -> Path:
    """Write tables with a summary before them, like `write_excel`.

    `units` are units of columns that are no figures.
    """
    rows = [("Scenario", scenario), ("Times", "Thai time (UTC+7)"), *said]
    for name, frame in sheets.items():
        if len(frame) > MOST_ROWS:
            parts = -(-len(frame) // MOST_ROWS)
            rows.append(
                (name, f"{len(frame):,} rows, in {parts} sheets: Excel holds {MOST_ROWS:,}")
            )

    def write(file: BinaryIO) -> None:
        from xlsxwriter import Workbook

        # Names and texts come from strangers' lists: one that begins with `=` must not become a
        # formula.
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        book = Workbook(file, options)
        # The time of writing would make equal results differ.
        book.set_properties({"created": datetime(2000, 1, 1), "title": "dialsim"})  # noqa: DTZ001
        summary = pd.DataFrame(rows, columns=["what", "value"], dtype=object)
        _write_sheet(book, "summary", summary, [(18, _COUNT), (100, _COUNT)])
        for name, frame in sheets.items():
            table = for_excel(frame)
            columns = [_column(str(column), table[column].dtype, units) for column in table]
            for part, first in enumerate(range(0, max(len(table), 1), MOST_ROWS), 1):
                title = name if part == 1 else f"{name} {part}"
                _write_sheet(book, title, table.iloc[first : first + MOST_ROWS], columns)
        book.close()

    replace_file(path, write)
    return path


def calls_by_hour(result: Result) -> pd.DataFrame:
    """Return the number of dials by campaign and Thai hour, in total and by outcome.

    Column `dials` excludes withdrawn dials (P5); the columns of outcomes add up to it.
    """
    calls = result.calls
    dialled = calls[calls["initiated_at"].notna()]
    hours = dialled["initiated_at"].dt.tz_convert(_THAI).dt.floor("h").dt.tz_localize(None)
    status = dialled["status"].astype("str")
    reached = status.isin([CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED])  # R3
    ends = {
        "answered": reached,
        "no_answer": status == CallStatus.NO_ANSWER,
        "busy": status == CallStatus.BUSY,
        "failed": status == CallStatus.FAILED,
    }
    counted = pd.DataFrame(
        {
            "organization": dialled["organization"].astype("str"),
            "campaign": dialled["campaign"].astype("str"),
            "hour": hours,
            "dials": 1,
            **{name: end.astype("int64") for name, end in ends.items()},
        }
    )
    keys = ["organization", "campaign", "hour"]
    made = counted.groupby(keys, sort=True, as_index=False).sum()
    made["not_ended"] = made["dials"] - made[[*ends]].sum(axis=1)
    return made


def value_table(result: Result) -> pd.DataFrame:
    """Return the value of each campaign's results by day, and the value so far."""
    begin, rows = first_day(result.trace.world.scenario), []
    for own in result.reading.campaigns.values():
        worth = own.value_by_day
        for day, value in enumerate(() if worth is None else worth.tolist()):
            date = thai(begin + DAY * day).replace(tzinfo=None)
            rows.append((own.life.organization, own.life.name, day + 1, date, value))
    table = pd.DataFrame(rows, columns=["organization", "campaign", "day", "date", "value"])
    keys = ["organization", "campaign"]
    return table.assign(value_so_far=table.groupby(keys, sort=False)["value"].cumsum())


def _column(name: str, dtype: Any, units: Mapping[str, Unit]) -> tuple[int, str]:
    """Return the width and the number format of a column."""
    if dtype.kind == "M":
        return 20, _INSTANT
    is_figure = name in NUMBERS or name.startswith(CUMULATIVE)
    unit = unit_of(name) if is_figure else units.get(name)
    form = _UNIT_FORMATS.get(unit) or _KIND_FORMATS.get(dtype.kind, "General")
    return max(10, min(len(name) + 2, 40)), form


def _write_sheet(
    book: Workbook, name: str, frame: pd.DataFrame, columns: Sequence[tuple[int, str]]
) -> None:
    sheet = book.add_worksheet(name)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(frame), len(columns) - 1)
    # Cells without a format get the format of their column in xlsxwriter.
    for index, (width, form) in enumerate(columns):
        sheet.set_column(index, index, width, book.add_format({"num_format": form}))
    sheet.write_row(0, 0, [*map(str, frame)], book.add_format({"bold": True, "bottom": 1}))
    # Row by row: with `constant_memory` earlier rows can no longer be written.
    for number, cells in enumerate(_rows(frame), 1):
        sheet.write_row(number, 0, cells)


def _rows(frame: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table as plain values, None for nulls, in chunks."""
    for first in range(0, len(frame), _CHUNK):
        part = frame.iloc[first : first + _CHUNK]
        columns = []
        for index in range(part.shape[1]):
            values = part.iloc[:, index]
            plain = values.astype("object").where(values.notna(), None)
            columns.append([_plain(value) for value in plain])
        yield from zip(*columns, strict=True)


def _plain(value: Any) -> Any:
    if isinstance(value, pd.Timestamp):
        # This drops nanoseconds, but instants are whole milliseconds.
        return value.to_pydatetime(warn=False)
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    return value.item() if isinstance(value, np.generic) else value
