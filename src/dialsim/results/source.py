"""The source of a result: the scenario's text, kept in the folder so that it can be run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialsim.interface.errors import DialsimError
from dialsim.results.manifest import MANIFEST
from dialsim.scenario.loading import loads

if TYPE_CHECKING:
    from dialsim.scenario.models import Scenario

SOURCE = "scenario.yaml"


def write_source(scenario: Scenario, folder: Path) -> None:
    """Write the text that a scenario was loaded from; nothing for one that was made by hand."""
    if scenario.origin is not None:
        (folder / SOURCE).write_text(scenario.origin.text, encoding="utf-8")


def read_source(folder: Path) -> Scenario:
    """Load the scenario of a result again, with its overrides; its CSVs stay where they were.

    Raises DialsimError if the folder is no result, has no source, or a CSV is no longer the same.
    """
    said = read_manifest(folder)
    file = folder / SOURCE
    if not file.is_file() or "overrides" not in said:
        raise DialsimError(f"{folder} has no {SOURCE}, so what it shows can't be run again")
    scenario = loads(
        file.read_text(encoding="utf-8"),
        name=str(file),
        folder=said["scenario_folder"],
        overrides=said["overrides"],
    )
    if scenario.digest != said["scenario_sha256"]:
        raise DialsimError(
            f"{folder} was made from another scenario: {SOURCE} or a file that it names in "
            f"{said['scenario_folder']} was changed since"
        )
    return scenario


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a result says of itself. Raises DialsimError if the folder is no result of dialsim."""
    import orjson

    try:
        said = orjson.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise DialsimError(
            f"{folder} is not a result of dialsim: it has no {MANIFEST}"
        ) from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise DialsimError(f"{folder / MANIFEST} can't be read: {error}") from None
    if not isinstance(said, dict) or "scenario_sha256" not in said:
        raise DialsimError(f"{folder / MANIFEST} is not a manifest of dialsim")
    return said
