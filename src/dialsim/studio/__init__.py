"""The studio: a scenario that is being changed, and estimates of what comes of it."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from dialsim.sandbox.access import require_extra

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Scenario
    from dialsim.studio.page import StudioPage

PACKAGES = ("panel", "bokeh", "ruamel.yaml")


def explore(scenario: str | PathLike[str] | Scenario | None = None) -> StudioPage:
    """The studio of a scenario, to be shown in a cell of a notebook.

    `scenario` is a file or comes from `dialsim.load`; without one the page begins with a list. The
    scenario itself is not changed. Raises ScenarioError for a file with problems, DialsimError
    where the extra `studio` is not installed.
    """
    require_extra("dialsim.explore", PACKAGES, "studio")
    from dialsim.studio.page import in_notebook

    return in_notebook(scenario)
