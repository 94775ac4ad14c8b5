"""The studio: a scenario that is being changed, and estimates of what comes of it."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING

from dialsim.interface.errors import DialsimError

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Scenario
    from dialsim.studio.page import Desk

_PACKAGES = {"panel": "panel", "ruamel": "ruamel.yaml"}


def require_extra(what: str) -> None:
    """Raise DialsimError, with how to install them, if packages that `what` needs are missing."""
    missing = [name for package, name in _PACKAGES.items() if find_spec(package) is None]
    if missing:
        raise DialsimError(
            f"{what} needs {' and '.join(missing)}: pip install '.[studio]' in the folder of "
            "dialsim"
        )


def explore(scenario: str | PathLike[str] | Scenario | None = None) -> Desk:
    """The studio of a scenario, to be shown in a cell of a notebook.

    `scenario` is a file or comes from `dialsim.load`; without one the page begins with a list. The
    scenario itself is not changed. Raises ScenarioError for a file with problems, DialsimError
    where the extra `studio` is not installed.
    """
    require_extra("dialsim.explore")
    from dialsim.studio.page import in_notebook

    return in_notebook(scenario)
