"""Where the files are that a scenario names: on the disk, or kept beside the scenario's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dialsim.scenario.text_source import read_bytes


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """The folder at `path`; files in `kept`, by the names that the scenario uses, come from there.

    `taken` collects what has been read.
    """

    path: Path
    kept: Mapping[str, bytes] = field(default_factory=dict)
    taken: dict[str, bytes] = field(default_factory=dict)

    def shown(self, name: str) -> str:
        """How errors name a file."""
        return str(self.path / name)

    def read(self, name: str) -> bytes:
        """The bytes of a file; raises ScenarioError if there are none."""
        content = self.kept.get(name)
        if content is None:
            content = read_bytes(self.path / name, self.shown(name))
        self.taken[name] = content
        return content
