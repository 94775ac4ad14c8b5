"""The studio: a browser page to change a scenario, with live estimates of the results."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from dialsim.errors import StudioError
from dialsim.interface.arguments import checked
from dialsim.sandbox.access import require_extra

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Scenario
    from dialsim.studio.page import StudioPage

PACKAGES = ("panel", "bokeh", "ruamel.yaml")


@checked(StudioError)
def explore(scenario: str | PathLike[str] | Scenario | None = None) -> StudioPage:
    """Return the studio of a scenario, to display in a notebook cell.

    `scenario` is a file, or comes from `dialsim.load`; without one the page asks for a list of
    people first. The scenario object is not changed; `scenario` of the page has the changes made on
    it. Raises ScenarioError for a file with problems, DialsimError if the packages of the extra
    `studio`, which are in `notebooks` as well, are not installed.

    >>> page = dialsim.explore(scenario)  # doctest: +SKIP
    >>> dialsim.run(page.scenario).summary  # doctest: +SKIP
    """
    require_extra("dialsim.explore", PACKAGES, "studio")
    from dialsim.studio.page import in_notebook

    return in_notebook(scenario)
