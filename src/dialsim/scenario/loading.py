"""Loading: a scenario file, or its text, becomes a Scenario for an engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dialsim.errors import DialsimError, ExistingOutput, OutputError, ScenarioError
from dialsim.interface.arguments import checked
from dialsim.interface.instants import format_instant
from dialsim.interface.phrases import few, joined, kind_of
from dialsim.scenario.behaviour import behaviour as behaviour_of
from dialsim.scenario.behaviour import inherit
from dialsim.scenario.campaign import Campaign
from dialsim.scenario.checks import (
    check_calling_hours,
    check_references,
    check_worth,
    read_schedules,
    remarks_on,
)
from dialsim.scenario.compiled_hours import remarks_on_hours, with_compiled_hours
from dialsim.scenario.distribution import read_measurements
from dialsim.scenario.document import (
    Cursor,
    Document,
    SourceFolder,
    copied,
    decoded,
    parse_yaml,
    put,
    read_bytes,
)
from dialsim.scenario.error_text import validated
from dialsim.scenario.list_doctor import is_tel_head
from dialsim.scenario.overrides import Understood, apply, full_path
from dialsim.scenario.problems import Problem, Problems, problem_at
from dialsim.scenario.recipients import check_ids, read_recipients
from dialsim.scenario.scenario import Origin, Overrides, Scenario, override_texts
from dialsim.scenario.service import Beginning, check_order, start_of
from dialsim.scenario.sheet import frame_of
from dialsim.scenario.units import file_value


@checked(DialsimError)
def load(
    source: str | os.PathLike[str] | Mapping[str, object], *, overrides: Overrides = ()
) -> Scenario:
    """Read and check a scenario file, or its content as a dict, and the lists that it names.

    `overrides` is one text `PATH=VALUE` or several, or a mapping of paths to values; they replace
    values of the file before the checks. In a dict durations and instants may be texts, timedeltas
    and aware datetimes; its lists are in the current folder. Raises ScenarioError with every
    problem's file, line, column and path.

    >>> dialsim.load("first.yaml", overrides={"lines": 5})
    <dialsim.Scenario 'Scenario', organizations: 1, campaigns: 1, people: 40>
    """
    if isinstance(source, Mapping):
        return _from_values(source, "scenario", override_texts(overrides), {})
    path, file = source, Path(source)
    if file.suffix.lower() in (".xlsx", ".csv") and file.is_file():
        message = f"this is a list of people and no scenario; dialsim new --list {path} writes one"
        raise ScenarioError([Problem(str(path), None, None, "", message)])
    text = decoded(read_bytes(file, str(path)), str(path))
    texts = override_texts(overrides)
    return _read(Origin(text, str(path), file.parent, file, texts, _read, _write))


@checked(DialsimError)
def loads(
    text: str,
    *,
    name: str = "<text>",
    folder: str | os.PathLike[str] | None = None,
    overrides: Overrides = (),
    files: Mapping[str, bytes] | None = None,
    only_files: bool = False,
) -> Scenario:
    """Read and check a scenario given as text; `name` replaces the file name in errors.

    `folder` is the base of CSV names, by default the current folder. `files` are the contents of
    CSVs, by the names in the text. With `only_files` no other file is read, for texts from other
    people. Raises ScenarioError like `load`.

    >>> dialsim.loads("organizations: [{name: Acme, maxConcurrentCalls: 3}]").name
    'Scenario'
    """
    texts = override_texts(overrides)
    return _read(
        Origin(text, name, Path(folder or ""), None, texts, _read, _write, files or {}, only_files)
    )


def _from_values(
    values: Mapping[str, object],
    name: str,
    overrides: tuple[str, ...],
    files: Mapping[str, bytes],
) -> Scenario:
    """Read a scenario given as values; `files` are lists of people by name."""
    text = yaml.safe_dump(file_value(values), allow_unicode=True, sort_keys=False, width=100)
    try:
        return _read(Origin(text, name, Path(), None, overrides, _read, _write, files))
    except ScenarioError as error:
        # The caller has not seen the text, so its lines mean nothing.
        bare = (replace(p, line=None, column=None) if p.file == name else p for p in error.problems)
        raise ScenarioError(bare) from None


MONDAY = "2026-01-05T09:00:00+07:00"
_PEOPLE = "people.csv"
_ARGUMENTS = {
    "people": "recipients", "lines": "maxConcurrentCalls", "windows": "timeWindows",
    "attempts": "maxAttempts", "retry_interval": "retryInterval", "start": "startDateTime",
    "end": "endDateTime", "caller_ids": "callerIds", "behaviour": "behaviours",
    "campaign": "campaigns", "organization": "organizations",
}  # fmt: skip
"""Keys of a file by the argument of `scenario` that sets them."""


@checked(DialsimError)
def scenario(
    people: object,
    *,
    lines: int = 10,
    windows: str = "Mon-Fri 09:00-19:00",
    attempts: int = 3,
    retry_interval: str | timedelta = "1h",
    behaviour: object = None,
    costs: Mapping[str, object] | None = None,
    value: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    caller_ids: Sequence[str] = (),
    start: str | datetime = MONDAY,
    end: str | datetime | None = None,
    name: str = "Scenario",
    campaign: str = "Campaign",
    organization: str = "Organization",
    seed: int = 1,
) -> Scenario:
    """Make a scenario of one campaign from a table of people and a few settings.

    `people` is a DataFrame (pandas, Polars or Arrow), the name of a CSV or workbook, the number of
    people to make up, or a block `recipients` of a file. Columns of the table are used by their
    names in lists of people: `tel`, `segment`, `customerName`, `agentParams.NAME` and so on;
    `columns` names those that are called otherwise, `{"segment": "grade"}`. In a DataFrame a column
    `phone`, `Mobile` or `เบอร์โทร` is found without that. Phone numbers, amounts and dates are read
    in any usual spelling. All other columns stay in `Result.recipients`.

    `windows` are days and times in Thailand. `retry_interval` is a duration, `start` and `end` are
    instants, also as texts such as `"Fri 18:00"`; the default start is Monday 5 January 2026,
    09:00 in Thailand. `behaviour` is the share of attempts that are answered, a table of answer
    rates (see `dialsim.behaviour`), or a mapping as under `behaviours` in a file; the default is
    the built-in one. `costs` and `value` are as in a file, such as `{"perDial": 0.5}`.

    Raises ScenarioError with all wrong arguments; `Scenario.with_` sets everything else, and
    `Scenario.to_yaml` writes a file.

    >>> people = pd.DataFrame({"phone": ["0812345678", "0891234567"], "balance": [1200, 80]})
    >>> scenario = dialsim.scenario(people, lines=2, behaviour=0.4)
    >>> dialsim.run(scenario).recipients[["tel", "balance"]].values.tolist()
    [['0812345678', 1200.0], ['0891234567', 80.0]]
    """
    files, recipients = _recipients(people, columns)
    agent: dict[str, object] = {"name": "Agent"}
    values: dict[str, object] = {"name": name, "seed": seed}
    owner: dict[str, object] = {"name": organization, "maxConcurrentCalls": lines}
    if caller_ids:
        owner["callerIds"] = caller_ids
    request = {"startDateTime": MONDAY, "maxAttempts": attempts}
    block = {"name": campaign, "agent": "Agent", "recipients": recipients, "schedule": request}
    values["organizations"] = [{**owner, "agents": [agent], "campaigns": [block]}]
    values |= {key: part for key, part in (("costs", costs), ("value", value)) if part is not None}
    if behaviour is not None:
        agent["behaviour"] = "own"
        is_written = isinstance(behaviour, Mapping)
        try:
            values["behaviours"] = {"own": behaviour if is_written else behaviour_of(behaviour)}
        except DialsimError as error:
            raise DialsimError(f"behaviour: {error}") from None
    # As overrides, these may be in a planner's words.
    worded = {"start": start, "end": end, "windows": windows, "retryInterval": retry_interval}
    overrides = override_texts({key: said for key, said in worded.items() if said is not None})
    try:
        return _from_values(values, "scenario", overrides, files)
    except ScenarioError as error:
        raise ScenarioError(map(_of_argument, error.problems)) from None


def _of_argument(problem: Problem) -> Problem:
    """Return a problem with the argument of `scenario` at fault in place of file and line."""
    keys = problem.path.split(".")
    argument = next((ours for ours, key in _ARGUMENTS.items() if key in keys), keys[0])
    if problem.file == _PEOPLE:
        argument = "people"
    elif "columns" in keys:
        argument = "columns"
    if problem.file not in ("scenario", _PEOPLE) and not problem.file.startswith("--set"):
        return problem
    line = f", row {problem.line - 2}" if problem.file == _PEOPLE and problem.line else ""
    message = problem.message.replace(f"of {_PEOPLE}", "of people")
    return replace(
        problem, file=f"scenario({argument}=){line}", line=None, column=None, message=message
    )


def _recipients(
    people: object, columns: Mapping[str, str] | None
) -> tuple[dict[str, bytes], object]:
    """Return the files and the block `recipients` for an argument `people`."""
    if isinstance(people, Mapping):
        return {}, people
    if isinstance(people, int | np.integer) and not isinstance(people, bool):
        return {}, {"count": int(people)}
    how: dict[str, object] = {"columns": {"tel": "tel", **(columns or {})}, "normalize": True}
    if isinstance(people, str | os.PathLike):
        return {}, {"file": os.fspath(people), **how}
    frame = frame_of(people)
    if frame is None:
        raise DialsimError(
            "people must be a DataFrame of pandas, Polars or Arrow, the name of a list, a number "
            f"of people to make up, or a block recipients, not {kind_of(people)}"
        )
    heads = [*map(str, frame.columns)]
    twice = [head for head, count in Counter(heads).items() if count > 1]
    if twice:
        says = f"several columns are named {joined(twice)}"
        raise ScenarioError([Problem("scenario(people=)", None, None, "", says)])
    if "tel" not in {*(columns or ()), *heads}:
        found = [head for head in heads if is_tel_head(head)]
        if len(found) != 1:
            several = f"{joined(found)} may all hold" if found else "no column has a usual name for"
            listed = few(heads[:10], len(heads)) if heads else "missing"
            message = (
                f'{several} phone numbers: name it, columns={{"tel": NAME}}; columns are {listed}'
            )
            raise ScenarioError([Problem("scenario(people=)", None, None, "", message)])
        how["columns"] = {**(columns or {}), "tel": found[0]}
    instants = frame.select_dtypes("datetimetz")
    texts = {str(name): own.map(datetime.isoformat, "ignore") for name, own in instants.items()}
    # The same line feed on all platforms, so that equal tables have equal digests.
    text = frame.assign(**texts).to_csv(index=False, lineterminator="\n")
    return {_PEOPLE: text.encode()}, {"file": _PEOPLE, **how}


def _write(scenario: Scenario, path: Path, force: bool) -> Path:
    """Write a scenario and the lists that it names; see `Scenario.to_yaml`."""
    origin = scenario.origin
    files = {Path(name): content for name, content in files_of(scenario).items()}
    assert origin is not None, "files_of has raised an error"
    text = origin.text
    if origin.overrides:
        text = yaml.safe_dump(document_of(scenario), allow_unicode=True, sort_keys=False)
    outside = next((str(name) for name in files if ".." in name.parts), None)
    if outside is not None:
        raise OutputError(f"{outside} is outside of the scenario's folder: name its whole path")
    listed = {path.parent / name: part for name, part in files.items() if not name.is_absolute()}
    written = listed | {path: text.encode()}
    for file, content in written.items():
        if not force and file.is_file() and file.read_bytes() != content:
            raise ExistingOutput(f"{file} exists already; force=True replaces it")
    try:
        for file, content in written.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{error.filename} cannot be written: {error.strerror}") from None
    return path


def document_of(scenario: Scenario) -> Any:
    """Return a scenario as plain values, with its overrides and without defaults.

    A scenario made in Python has no text; its values include defaults.
    """
    if scenario.origin is None:
        return scenario.model_dump(mode="json", by_alias=True)
    return _document(scenario)[0].values


def is_text(source: str) -> bool:
    """Return True for a scenario's text, False for a file name."""
    # JSON may be a single line.
    return "\n" in source or source.lstrip().startswith("{")


def long_path(scenario: Scenario, path: str) -> str:
    """Expand a short path in a scenario; a full path is returned unchanged.

    Raises DialsimError for an ambiguous or unknown path, and for a scenario that was not made by
    `load` or `loads`.
    """
    try:
        return full_path(path, _document(scenario)[0].root)
    except ValueError as error:
        raise DialsimError(str(error)) from None


def understood(scenario: Scenario) -> list[Understood]:
    """Return the readings of a scenario's overrides that deserve mention."""
    return (
        [] if scenario.origin is None or not scenario.origin.overrides else _document(scenario)[1]
    )


def _document(scenario: Scenario) -> tuple[Document, list[Understood]]:
    """Return a scenario's document with its overrides applied, and how each override was read
    that needed interpretation.
    """
    origin = scenario.origin
    if origin is None:
        raise DialsimError("only scenarios from dialsim.load or dialsim.loads can be varied")
    return _parsed(origin, Problems(origin.name))


def _parsed(origin: Origin, problems: Problems) -> tuple[Document, list[Understood]]:
    document = parse_yaml(origin.text, origin.name, problems)
    if not isinstance(document.values, dict):
        message = "a scenario is a mapping of keys, such as name and organizations"
        problems.fail(problem_at(document.root.location, (), message))
    return document, apply(origin.overrides, document, problems)


def files_of(scenario: Scenario) -> dict[str, bytes]:
    """Return the contents of the CSVs that a scenario names, by the names in its text.

    The files are read again. Raises ScenarioError like `load`, and DialsimError if files have
    changed since loading or the scenario was not made by `load` or `loads`.
    """
    origin = scenario.origin
    if origin is None:
        raise DialsimError("only scenarios from dialsim.load or dialsim.loads name files")
    folder = SourceFolder(origin.folder, origin.kept, only_kept=origin.only_kept)
    if _read(origin, folder).digest != scenario.digest:
        raise DialsimError(f"{origin.name}: its files have changed since it was loaded")
    return folder.taken


_KEY_LENGTH = 32


def _read(origin: Origin, folder: SourceFolder | None = None) -> Scenario:
    folder = folder or SourceFolder(origin.folder, origin.kept, only_kept=origin.only_kept)
    problems = Problems(origin.name)
    root = _parsed(origin, problems)[0].root
    values = _values(root, folder, problems)
    # Each stage adds its problems, and errors are raised late: people correct a file once instead
    # of fault by fault.
    check_references(root, problems)
    check_calling_hours(root, problems)
    scenario = validated(Scenario, values, root, problems)
    check_ids(_campaigns(scenario, root), problems)
    for o, organization in enumerate(scenario.organizations):
        agents = {agent.name: agent for agent in organization.agents}
        for c, campaign in enumerate(organization.campaigns):
            own = root.at("organizations", o, "campaigns", c, "value")
            value = root.at("value") if campaign.value is None else own
            agent = agents.get(campaign.agent)
            check_worth(campaign, agent, scenario.value, value, problems)
    problems.raise_if_any()
    scenario = with_compiled_hours(scenario, root, problems)
    problems.raise_if_any()
    remarks = (*remarks_on(scenario, root), *remarks_on_hours(scenario))
    return scenario.loaded(origin, remarks)


def _campaigns(scenario: Scenario, root: Cursor) -> Iterator[tuple[Cursor, Campaign]]:
    """Yield every campaign with its position in the document."""
    for o, organization in enumerate(scenario.organizations):
        for c, campaign in enumerate(organization.campaigns):
            yield root.at("organizations", o, "campaigns", c), campaign


def _values(root: Cursor, folder: SourceFolder, problems: Problems) -> Any:
    """Return the document's plain values, with requests, files and the clock already read.

    Invalid ones are reported, and left out.
    """
    # A copy: the document keeps what was written, for the locations and texts of errors.
    values = copied(root.value, root.location)
    for body, request in read_schedules(root, problems):
        put(values, body.path, request)
    start = start_of(root, problems)
    check_order(root, Beginning(start), problems)
    for recipients, people in read_recipients(root, folder, Beginning(start), problems):
        put(values, recipients.path, people)
    for measured, distribution in read_measurements(root, folder, problems):
        put(values, measured.path, distribution)
    clock, behaviours = values.get("clock") or {}, values.get("behaviours") or {}
    # Other values are left to the model, which reports them.
    if isinstance(clock, dict):
        values["clock"] = {**clock, "start": clock.get("start") or format_instant(start)}
    if isinstance(behaviours, dict):
        values["behaviours"] = inherit(behaviours)
    for schedule in root.each("organizations.*.campaigns.*.schedule"):
        campaign = root.at(*schedule.path[:-1])
        if not campaign.at("scheduledAt").exists:
            put(values, (*campaign.path, "scheduledAt"), format_instant(start))
    return values


def with_masked_keys(scenario: Scenario) -> Scenario:
    """Return the scenario with masked API keys, also in its source text.

    A mask is the prefix of the key, then `x` and the number of the organization, because keys must
    differ. The origin is dropped if its text spells a key in a form that cannot be found.
    """
    masks = {
        organization.api_key: f"{organization.api_key[:-_KEY_LENGTH]}{number:x>{_KEY_LENGTH}}"
        for number, organization in enumerate(scenario.organizations, 1)
        if organization.api_key is not None
    }
    if not masks:
        return scenario
    organizations = tuple(
        block.model_copy(update={"api_key": masks.get(block.api_key or "")})
        for block in scenario.organizations
    )
    masked = scenario.model_copy(update={"organizations": organizations})
    origin = None if scenario.origin is None else _with_masks(scenario.origin, masks)
    if origin is not None and not _gives_keys_of(origin, masked):
        origin = None
    return masked.loaded(origin, scenario.remarks)


def _with_masks(origin: Origin, masks: Mapping[str, str]) -> Origin:
    text, overrides = origin.text, origin.overrides
    # longest first: a key may be the end of another one
    for key in sorted(masks, key=len, reverse=True):
        text = text.replace(key, masks[key])
        overrides = tuple(override.replace(key, masks[key]) for override in overrides)
    return replace(origin, text=text, overrides=overrides)


def _gives_keys_of(origin: Origin, scenario: Scenario) -> bool:
    """Return True if a text contains the keys of a scenario."""
    document, _ = _parsed(origin, Problems(origin.name))
    organizations = document.root.at("organizations")
    return all(
        organizations.at(index, "apiKey").text == organization.api_key
        for index, organization in enumerate(scenario.organizations)
    )
