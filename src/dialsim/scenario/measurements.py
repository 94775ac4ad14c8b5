"""Measured durations that an empirical distribution takes from a column of a CSV."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from dialsim.scenario.csv_source import CsvSource
from dialsim.scenario.problems import Problem, Problems, ScenarioError
from dialsim.scenario.source_folder import SourceFolder
from dialsim.scenario.tree import Cursor
from dialsim.scenario.units import parse_duration


def read_measurements(
    root: Cursor, folder: SourceFolder, problems: Problems
) -> Iterator[tuple[Cursor, dict[str, object]]]:
    """Each distribution of a document that names a file and a column, with its values written out.

    Durations that can't be read are noted with their file, line and column.
    """
    for cursor in _from_files(root):
        written = {key: part.value for key, part in cursor.entries()}
        file, column = written.pop("file"), written.pop("column", None)
        if "values" in written:
            problems.add(cursor.at("values"), "can't stand beside file: write one of the two")
        elif not isinstance(file, str) or not isinstance(column, str):
            problems.add(cursor, "needs file and column as texts: {file: talk.csv, column: talk}")
        else:
            written["values"] = _read(cursor, folder, file, column, problems)
        yield cursor, {"values": ["1s"], **written}


def _from_files(cursor: Cursor) -> Iterator[Cursor]:
    if cursor.at("dist").text == "empirical" and cursor.at("file").exists:
        yield cursor
    for _, part in cursor.entries():
        yield from _from_files(part)
    for item in cursor.items():
        yield from _from_files(item)


def _read(
    cursor: Cursor, folder: SourceFolder, file: str, column: str, problems: Problems
) -> list[str]:
    try:
        source = CsvSource.read(folder, file, problems)
    except ScenarioError as error:
        problems.refer(cursor.at("file"), error)
        return ["1s"]
    if column not in source.header:
        near = get_close_matches(column, source.header, n=1)
        hint = f"did you mean {near[0]}?" if near else f"columns are {', '.join(source.header)}"
        problems.add(cursor.at("column"), f'"{column}" is no column of {source.file}; {hint}')
        return ["1s"]
    index = source.header.index(column)
    good = []
    for row, cell in enumerate(source.column(index)):
        try:
            parse_duration(cell)
            good.append(cell)
        except ValueError as error:
            source.note_cell(problems, row, index, str(error) if cell else "must not be empty")
    if not source.rows:
        problems.note(Problem(source.file, 1, 1, column, f"{column} has no values"))
    return good or ["1s"]
