"""Where a scenario came from, so that it can be read again with other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Origin:
    """The text that a scenario was read from.

    `name` stands for the file in errors, `folder` is where the names of its CSVs start, `file` is
    None for a text; `overrides` were applied to it, in this order. `kept` holds files that are not
    read from the folder any more, by the names that the text uses. Scenarios that say the same are
    equal however they say it, so only the file counts in comparisons.
    """

    text: str = field(compare=False, repr=False)
    name: str = field(compare=False)
    folder: Path = field(compare=False)
    file: Path | None
    overrides: tuple[str, ...] = field(compare=False)
    kept: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)
