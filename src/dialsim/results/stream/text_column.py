"""A column of JSON texts, packed: many of them are taken more quickly than from a list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WIDEST = 128  # bytes: what is longer is kept aside, so that one long text does not widen them all


class TextColumn:
    """Texts by row, from 0; none of them is empty, or ends in a zero byte."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._long = {row: text for row, text in enumerate(texts) if len(text) > _WIDEST}
        if self._long:
            texts = [text if len(text) <= _WIDEST else b"" for text in texts]
        self._short = np.array(texts, dtype=np.bytes_)

    def take(self, rows: NDArray[np.integer]) -> list[bytes]:
        """The texts of some rows."""
        texts: list[bytes] = self._short[rows].tolist()
        if self._long:
            for place in [place for place, text in enumerate(texts) if not text]:
                texts[place] = self._long[int(rows[place])]
        return texts

    def find(self, text: bytes) -> NDArray[np.int64]:
        """The rows with a text, ascending."""
        if len(text) > _WIDEST:
            return np.array([row for row, long in self._long.items() if long == text], np.int64)
        return np.flatnonzero(self._short == text)
