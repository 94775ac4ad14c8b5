"""State of a studio as saved files."""

from __future__ import annotations

from pathlib import Path

from dialsim.studio.files import ARCHIVE, scenario_file, unpacked
from dialsim.studio.state import StudioState


def saved(state: StudioState, folder: Path) -> Path:
    """The scenario file, with its lists and draws beside it if it has any."""
    folder.mkdir(parents=True, exist_ok=True)
    file = scenario_file(state)
    there = {file.name: file.data}
    if file.name.endswith(ARCHIVE):
        there = unpacked(file.name, file.data)
    for name, content in there.items():
        (folder / name).write_bytes(content)
    return folder / Path(file.name).with_suffix(".yaml")
