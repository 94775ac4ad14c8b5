"""Columns of recipients who were written down one by one, in a scenario or in a CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dialsim.scenario.fields import ParamValue
from dialsim.scenario.history import Past

MOST_SEGMENTS = 32_767
"""As many as the engine's codes of 16 bits tell apart."""


class Codes:
    """A column of few different texts: each text once, in order of appearance, and codes."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.codes: list[int] = []

    def append(self, text: str | None) -> None:
        """Add a row; None is coded as -1."""
        self.codes.append(-1 if text is None else self.texts.setdefault(text, len(self.texts)))


@dataclass(slots=True, eq=False)
class PeopleTable:
    """Recipients as columns of equal length, in upload order.

    `params` has a column per parameter, None where a recipient lacks it. `history` has an entry
    per recipient who has one. `lines` are those of the file in which the recipients begin, and
    `digest` is the SHA-256 of the file they come from, empty for a list.
    """

    tels: list[str] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)
    segments: Codes = field(default_factory=Codes)
    scripts: Codes = field(default_factory=Codes)
    params: dict[str, list[ParamValue | None]] = field(default_factory=dict)
    history: dict[int, Past] = field(default_factory=dict)
    lines: Sequence[int] = ()
    digest: bytes = b""
