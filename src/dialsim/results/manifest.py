"""The manifest: which dialsim, which scenario, which seed made an output folder."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

from dialsim.version import __version__

if TYPE_CHECKING:
    from dialsim.engine.trace import Trace
    from dialsim.scenario.models import Scenario

LIBRARIES = ("numpy", "pandas", "pyarrow", "pydantic", "scipy", "simpy")

MANIFEST = "manifest.json"


def source_entries(scenario: Scenario) -> dict[str, object]:
    """What must be known beside a scenario's text to load it again; nothing without a text."""
    origin = scenario.origin
    if origin is None:
        return {}
    return {"overrides": origin.overrides, "scenario_folder": str(origin.folder.absolute())}


def manifest_json(trace: Trace, wall_seconds: float | None) -> bytes:
    """The bytes of `manifest.json`: the only file of a result that two equal runs differ in.

    `wall_seconds` is the time that the simulation took on the clock on the wall.
    """
    import orjson

    world = trace.world
    content = {
        "dialsim": __version__,
        "scenario": world.scenario.name,
        "scenario_sha256": world.scenario.digest,
        **source_entries(world.scenario),
        "seed": world.seed,
        "replication": world.replication,
        "engine": "simpy",
        "wall_seconds": wall_seconds,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
