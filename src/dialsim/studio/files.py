"""What goes into a studio and comes out of it as files: lists, scenarios, pages, workbooks."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from dialsim.experiments.replications import Replications
from dialsim.interface.errors import DialsimError
from dialsim.report.page import NAME as PAGE
from dialsim.report.what_if import FurtherRuns
from dialsim.report.writing import replications_report
from dialsim.results.excel import NAME as WORKBOOK
from dialsim.results.excel import write_excel
from dialsim.results.result import run
from dialsim.scenario.campaign import RecipientsFile
from dialsim.scenario.document import decoded
from dialsim.scenario.loading import loads
from dialsim.scenario.preview import preview
from dialsim.studio.state import (
    NewScenario,
    Position,
    StudioState,
    new_deadline,
    new_instant,
    new_interval,
    new_windows,
    path_to_campaign,
)

# -- out -------------------------------------------------------------------------------------------


class SavedFile(NamedTuple):
    """A file for the browser to keep."""

    name: str
    type: str
    data: bytes


def scenario_file(state: StudioState) -> SavedFile:
    """The scenario as it is now; with its lists, if it has any, as one archive."""
    text, beside = state.text()
    name = _file_name(state.scenario.name)
    if not beside:
        return SavedFile(f"{name}.yaml", "application/yaml", text.encode())
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for file, content in {f"{name}.yaml": text.encode(), **beside}.items():
            archive.writestr(file, content)
    return SavedFile(f"{name}.zip", "application/zip", packed.getvalue())


def report_file(runs: Replications) -> SavedFile:
    """The page of runs that were made."""
    page = replications_report(runs, FurtherRuns(pairs=0))
    return SavedFile(f"{_file_name(runs.scenario.name)}-{PAGE}", "text/html", page.encode())


def excel_file(state: StudioState) -> SavedFile:
    """The first run of the scenario as it is now, as a workbook."""
    with TemporaryDirectory() as folder:
        path = write_excel(run(state.scenario, replication=0), Path(folder) / WORKBOOK)
        return SavedFile(f"{_file_name(state.scenario.name)}-{WORKBOOK}", _XLSX, path.read_bytes())


_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def _file_name(name: str) -> str:
    """A name of which every system makes a file."""
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:60] or "scenario"


# -- in --------------------------------------------------------------------------------------------


def opened(name: str, content: bytes, lists: Mapping[str, bytes]) -> StudioState:
    """A studio on a scenario file that was sent; its lists must have been sent before.

    No file of this machine is read: browsers don't say in which folder the scenario lay.
    """
    text = decoded(content, name)
    return StudioState.of(loads(text, name=name, files=lists, only_files=True))


def looked_at(name: str, content: bytes) -> str:
    """What is in a list, in a sentence. Raises DialsimError for one that can't be used."""
    found = preview(content, name, RecipientsFile(file=name))
    usable = found.rows - found.odd - found.missing
    if not usable:
        raise DialsimError(f"{name} has {found.rows:,} rows, and none with a phone number")
    left = found.rows - usable
    more = f", {left:,} rows without one" if left else ""
    return f"{name}: {usable:,} people with a phone number{more}."


_READERS: dict[str, Callable[[str], object]] = {
    "start": new_instant,
    "windows": new_windows,
    "interval": new_interval,
}
_NUMBERS = {"people": (1, "1000"), "lines": (0, "10"), "attempts": (1, "3")}


def faults_of(answers: Mapping[str, str], *, listed: bool) -> dict[str, str]:
    """What is wrong with the answers to the first questions, by the name of the field."""
    faults = {}
    for field, read in _READERS.items():
        try:
            read(answers[field])
        except DialsimError as error:
            faults[field] = str(error)
    for field, (least, example) in _NUMBERS.items():
        text = answers[field].replace(",", "").strip()
        if field == "people" and listed:
            continue
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            faults[field] = f"must be a whole number from {least} on, such as {example}"
    if "start" not in faults:
        try:
            new_deadline(answers["deadline"], new_instant(answers["start"]))
        except DialsimError as error:
            faults["deadline"] = str(error)
    return faults


def begun(answers: Mapping[str, str], listed: str, content: bytes | None) -> StudioState:
    """A studio on answers without `faults_of`, and on a list of people if there is one."""
    numbers: dict[str, Any] = {
        field: int(answers[field].replace(",", ""))
        for field in _NUMBERS
        if field != "people" or not listed
    }
    asked = NewScenario(
        name=Path(listed).stem if listed else "Campaign",
        listed=listed or None,
        start=answers["start"],
        windows=answers["windows"],
        interval=answers["interval"],
        deadline=answers["deadline"],
        **numbers,
    )
    return StudioState.begin(asked, content if listed else None)


def with_list(state: StudioState, campaign: Position, name: str, content: bytes) -> StudioState:
    """The state with the people of a list in place of a campaign's, as a change of it."""
    looked_at(name, content)
    origin = state.base.origin
    assert origin is not None
    kept = replace(origin, kept={**origin.kept, name: content})
    base = state.base.loaded(kept, state.base.remarks)
    advised = preview(content, name, RecipientsFile(file=name)).file
    block = advised.model_dump_json(by_alias=True, exclude_defaults=True, ensure_ascii=False)
    path = f"{path_to_campaign(state.scenario, campaign)}.recipients"
    return replace(state, base=base).with_lines(f"{path}={block}")
