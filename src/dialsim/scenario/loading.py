"""Loading: a scenario file, or its text, becomes a Scenario for an engine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialsim.errors import DialsimError, ScenarioError
from dialsim.interface.instants import format_instant
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
    MappingNode,
    SourceFolder,
    decoded,
    parse_yaml,
    plain,
    put,
    read_bytes,
)
from dialsim.scenario.error_text import validated
from dialsim.scenario.overrides import Understood, apply, full_path
from dialsim.scenario.problems import Problem, Problems, told
from dialsim.scenario.recipients import check_ids, read_recipients
from dialsim.scenario.scenario import Origin, Scenario, override_texts
from dialsim.scenario.service import Beginning, check_order, start_of


def load(path: str | os.PathLike[str], overrides: str | Sequence[str] = ()) -> Scenario:
    """Read and check a scenario file, and the CSVs that it names.

    `overrides` is one text `PATH=VALUE` or several; they replace values of the file before the
    checks. Raises ScenarioError with every problem's file, line, column and path.
    """
    file = Path(path)
    if file.suffix.lower() in (".xlsx", ".csv") and file.is_file():
        says = f"this is a list of people and no scenario; dialsim new --list {path} writes one"
        raise ScenarioError([Problem(str(path), None, None, "", says)])
    text = decoded(read_bytes(file, str(path)), str(path))
    return _read(Origin(text, str(path), file.parent, file, override_texts(overrides), _read))


def loads(
    text: str,
    *,
    name: str = "<text>",
    folder: str | os.PathLike[str] | None = None,
    overrides: str | Sequence[str] = (),
    files: Mapping[str, bytes] | None = None,
    only_files: bool = False,
) -> Scenario:
    """Read and check a scenario given as text; `name` replaces the file name in errors.

    `folder` is the base of CSV names, by default the current folder. `files` are the contents of
    CSVs, by the names in the text. With `only_files` no other file is read, for texts from other
    people. Raises ScenarioError like `load`.
    """
    texts = override_texts(overrides)
    return _read(
        Origin(text, name, Path(folder or ""), None, texts, _read, files or {}, only_files)
    )


def document_of(scenario: Scenario) -> Any:
    """Return a scenario as plain values, with its overrides and without defaults.

    A scenario made in Python has no text; its values include defaults.
    """
    if scenario.origin is None:
        return scenario.model_dump(mode="json", by_alias=True)
    return plain(_document(scenario)[0])


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
        return full_path(path, Cursor.root(_document(scenario)[0]))
    except ValueError as error:
        raise DialsimError(str(error)) from None


def understood(scenario: Scenario) -> list[Understood]:
    """Return the readings of a scenario's overrides that deserve mention."""
    return (
        [] if scenario.origin is None or not scenario.origin.overrides else _document(scenario)[1]
    )


def _document(scenario: Scenario) -> tuple[MappingNode, list[Understood]]:
    """Return the tree of a scenario with overrides applied, and the readings of the overrides."""
    origin = scenario.origin
    if origin is None:
        raise DialsimError("only scenarios from dialsim.load or dialsim.loads can be varied")
    problems = Problems(origin.name)
    document = parse_yaml(origin.text, origin.name, problems)
    assert isinstance(document, MappingNode), "it was read before"
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
    document = parse_yaml(origin.text, origin.name, problems)
    if not isinstance(document, MappingNode):
        says = "a scenario is a mapping of keys, such as name and organizations"
        problems.fail(told(document.location, (), says))
    apply(origin.overrides, document, problems)
    root = Cursor.root(document)
    values = _values(root, folder, problems)
    # Each stage adds its problems, and errors are raised late: people correct a file once instead
    # of fault by fault.
    check_references(root, problems)
    check_calling_hours(root, problems)
    scenario = validated(Scenario, values, root, problems)
    check_ids(_campaigns(scenario, root), problems)
    for o, organization in enumerate(scenario.organizations):
        schemas = {agent.name: agent.params_schema for agent in organization.agents}
        for c, campaign in enumerate(organization.campaigns):
            own = root.at("organizations", o, "campaigns", c, "value", "reached")
            culprit = root.at("value", "reached") if campaign.value is None else own
            check_worth(campaign, schemas.get(campaign.agent), scenario.value, culprit, problems)
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
    values: Any = root.value
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
    _fill_scheduled_at(root, values, start)
    return values


def _fill_scheduled_at(root: Cursor, values: Any, start: int) -> None:
    """Set a missing `scheduledAt` to the start of the clock."""
    for organization in root.at("organizations").items():
        for campaign in organization.at("campaigns").items():
            if campaign.at("schedule").exists and not campaign.at("scheduledAt").exists:
                o, c = organization.path[-1], campaign.path[-1]
                block = values["organizations"][o]["campaigns"][c]
                block["scheduledAt"] = format_instant(start)


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
    problems = Problems(origin.name)
    document = parse_yaml(origin.text, origin.name, problems)
    apply(origin.overrides, document, problems)
    organizations = Cursor.root(document).at("organizations")
    return all(
        organizations.at(index, "apiKey").text == organization.api_key
        for index, organization in enumerate(scenario.organizations)
    )
