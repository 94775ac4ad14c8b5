"""Files that go into a studio or come out of it: lists, scenarios, reports, workbooks."""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from dialsim.errors import StudioError
from dialsim.experiments.estimates import SettingRuns
from dialsim.experiments.forecast import FEWEST_RUNS, Forecast
from dialsim.experiments.variants import DRAWS
from dialsim.language import language
from dialsim.report.page import NAME as PAGE
from dialsim.report.sheet import NAME as SHEET
from dialsim.report.sheet import sheet_of
from dialsim.report.what_if import FurtherRuns
from dialsim.report.writing import forecast_report, replications_report
from dialsim.results.excel import NAME as WORKBOOK
from dialsim.results.excel import write_excel
from dialsim.results.folder import SOURCE
from dialsim.results.result import run
from dialsim.scenario.document import decoded, read_bytes
from dialsim.scenario.list_doctor import clean_list
from dialsim.scenario.loading import load, loads
from dialsim.scenario.new_scenario import FIRST_QUESTIONS, NewScenario, cleaned
from dialsim.studio.estimate import Estimate
from dialsim.studio.levers import Position, params_line, path_to_campaign
from dialsim.studio.state import StudioState

# -- out -------------------------------------------------------------------------------------------


class SavedFile(NamedTuple):
    """A file for the browser to save."""

    name: str
    type: str
    data: bytes


def scenario_file(state: StudioState) -> SavedFile:
    """Return the current scenario; with its lists, if it has any, as an archive."""
    text, beside = state.text()
    name = _file_name(state.scenario.name)
    if not beside:
        return SavedFile(f"{name}.yaml", "application/yaml", text.encode())
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for file, content in {f"{name}.yaml": text.encode(), **beside}.items():
            archive.writestr(file, content)
    return SavedFile(f"{name}.zip", "application/zip", packed.getvalue())


def report_file(estimate: Estimate) -> SavedFile:
    """Return the report of the runs made; if people have histories, as a forecast."""
    runs, none = estimate.replications, FurtherRuns(pairs=0)
    if estimate.standing is not None and len(runs) >= FEWEST_RUNS:
        page = forecast_report(Forecast(runs, draws=estimate.draws), none)
    else:
        page = replications_report(runs, none)
    return SavedFile(f"{_file_name(runs.scenario.name)}-{PAGE}", "text/html", page.encode())


def sheet_file(
    estimate: Estimate, compared: Sequence[tuple[str, Estimate]], code: str
) -> SavedFile:
    """Return the manager's sheet of the runs made, in a language, with the variants compared.

    A forecast has no variants on its sheet, but earlier forecasts.
    """
    runs, texts = estimate.replications, language(code)
    beside = [
        # The scenario without changes; other names are the planner's own.
        SettingRuns(texts.gettext("the file") if name == THE_FILE else name,
                    other.replications.figures, other.replications.bounds)
        for name, other in compared
    ]  # fmt: skip
    if estimate.standing is not None and len(runs) >= FEWEST_RUNS:
        page = sheet_of(Forecast(runs, draws=estimate.draws), code)
    else:
        page = sheet_of(runs, code, beside=beside)
    name = f"{_file_name(runs.scenario.name)}-{SHEET}"
    return SavedFile(name, "text/html", page.html().encode())


def excel_file(state: StudioState) -> SavedFile:
    """Return the first run of the current scenario as a workbook."""
    with TemporaryDirectory() as folder:
        path = write_excel(run(state.scenario, replication=0), Path(folder) / WORKBOOK)
        return SavedFile(f"{_file_name(state.scenario.name)}-{WORKBOOK}", _XLSX, path.read_bytes())


_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def _file_name(name: str) -> str:
    """Return a file name that is valid on every system."""
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:60] or "scenario"


# -- in --------------------------------------------------------------------------------------------

THE_FILE = "the file"
"""Name of the scenario without changes, among variants."""
MOST_BYTES = 200_000_000
"""Largest upload in bytes, also of an archive when decompressed."""
ARCHIVE = ".zip"


def open_path(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> StudioState:
    """Open a scenario file, a folder of `dialsim pull`, or a saved archive.

    Raises ScenarioError for a file with problems, StudioError for an invalid archive.
    """
    file = Path(path)
    if file.suffix.lower() == ARCHIVE:
        return opened(file.name, read_bytes(file, str(path)), {}, overrides)
    return StudioState.of(load(file / SOURCE if file.is_dir() else file, overrides=overrides))


def opened(
    name: str, content: bytes, lists: Mapping[str, bytes], overrides: Sequence[str] = ()
) -> StudioState:
    """Open an uploaded scenario file, or an archive that a studio saved.

    The lists of a file must have been uploaded before; an archive contains them. No local file is
    read:
    browsers don't send the folder of an upload. Raises as `open_path` does.
    """
    beside, draws = {**lists}, None
    if name.lower().endswith(ARCHIVE):
        beside = unpacked(name, content)
        if DRAWS in beside:
            draws = decoded(beside.pop(DRAWS), DRAWS)
        found = [inside for inside in beside if is_scenario(inside)]
        # An archive of something else may have several YAML files, or none.
        if len(found) != 1:
            has = f"{len(found)} of them" if found else "none"
            raise StudioError(f"{name} should have one scenario file (.yaml), and has {has}")
        name, content = found[0], beside.pop(found[0])
    text = decoded(content, name)
    # Other people's text: it must not read files of this machine.
    scenario = loads(text, name=name, files=beside, overrides=overrides, only_files=True)
    return StudioState.of(scenario, draws)


def is_scenario(name: str) -> bool:
    """True if this is the name of a scenario file."""
    return name.lower().endswith((".yaml", ".yml"))


def unpacked(name: str, content: bytes) -> dict[str, bytes]:
    """Return the files in an archive by name without folder. Raises StudioError if it is invalid.

    Files that operating systems add to archives are skipped.
    """
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            parts = [part for part in archive.infolist() if not part.is_dir()]
            # Before decompression: a small archive may hold very large files.
            if sum(part.file_size for part in parts) > MOST_BYTES:
                raise StudioError(f"{name} holds more than {MOST_BYTES / 1e6:,.0f} MB")
            files = {Path(part.filename).name: archive.read(part) for part in parts}
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError):
        raise StudioError(f"{name} is no zip file that can be read") from None
    return {file: held for file, held in files.items() if not file.startswith(".")}


_AMOUNT = re.compile("ยอด|หนี้|เงิน|amount|balance|debt|due", re.IGNORECASE)


class OpenedList(NamedTuple):
    """List of people to begin with: a description, and the proposed value of a person reached."""

    name: str
    content: bytes
    summary: str
    value: str


def open_list(name: str, content: bytes) -> OpenedList:
    """Describe an exported list, and propose the value of a person: the first column of amounts.

    Raises DialsimError for a list that cannot be used.
    """
    found = clean_list(content, name)
    found.require_people()
    numbers = [name for name, kind in found.types.items() if kind == "number"]
    amount = next(filter(_AMOUNT.search, numbers), "")
    return OpenedList(name, content, f"{'. '.join(found.summary())}.", amount)


def begun(
    answers: Mapping[str, str], ordinary: Sequence[str], listed: OpenedList | None
) -> StudioState:
    """Start a studio from answers without faults (`faults_of`) and, if given, a list of people.

    `ordinary` are dates of holidays that are ordinary days.
    """
    given: dict[str, Any] = {each.field: answers[each.field] for each in FIRST_QUESTIONS}
    numbers = [each.field for each in FIRST_QUESTIONS if each.least is not None]
    for field in numbers if listed else (*numbers, "people"):
        given[field] = int(answers[field].replace(",", ""))
    asked = NewScenario(name="Campaign", ordinary=(*ordinary,), **given)
    if listed is None:
        return StudioState.begin(asked)
    asked = replace(asked, name=Path(listed.name).stem, listed=listed.name)
    return StudioState.begin(asked, listed.content)


def with_list(state: StudioState, campaign: Position, name: str, content: bytes) -> StudioState:
    """Return the state with a list as a campaign's people, as a change that can be undone.

    The list's columns become parameters of the campaign's agent, so that amounts are numbers.
    """
    name, content, types = cleaned(name, content)
    origin = state.base.origin
    assert origin is not None
    kept = replace(origin, kept={**origin.kept, name: content})
    base = state.base.loaded(kept, state.base.remarks)
    path = path_to_campaign(state.scenario, campaign)
    lines = [f"{path}.recipients={json.dumps({'file': name})}"]
    if types:
        lines.insert(0, params_line(state.scenario, campaign, types))
    return replace(state, base=base).with_lines(*lines)
