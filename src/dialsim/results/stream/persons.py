"""Persons: recipients as payloads name them, as JSON text, masked where need be (D1)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.interface.masks import MASKED_NAME, mask_agent_params, mask_tel
from dialsim.results.stream.text_column import TextColumn
from dialsim.scenario.people import GeneratedPeople, People

_NO_NAME = orjson.dumps(MASKED_NAME)


class Persons:
    """The recipients of one campaign; each method takes some of them, by position from 0.

    `masked` says whose personal data retention has removed.
    """

    def __init__(self, people: People) -> None:
        self._people = people

    @cached_property
    def _tels(self) -> TextColumn:
        return TextColumn([*map(orjson.dumps, self._people.tels())])

    @cached_property
    def _names(self) -> TextColumn:
        return TextColumn([*map(orjson.dumps, self._people.customer_names())])

    def who_has(self, tel: str) -> NDArray[np.int64]:
        """The recipients with a phone number, written just so; ascending."""
        return self._tels.find(orjson.dumps(tel))

    def tels(self, who: NDArray[np.int32], masked: NDArray[np.bool_]) -> list[bytes]:
        """Phone numbers."""
        texts = self._tels.take(who)
        for row in np.flatnonzero(masked):
            texts[row] = orjson.dumps(mask_tel(orjson.loads(texts[row])))
        return texts

    def names(self, who: NDArray[np.int32], masked: NDArray[np.bool_]) -> list[bytes]:
        """Names, null where none was uploaded."""
        texts = self._names.take(who)
        for row in np.flatnonzero(masked):
            texts[row] = _NO_NAME
        return texts

    def params(self, who: NDArray[np.int32], masked: NDArray[np.bool_]) -> list[bytes]:
        """The uploaded `agentParams`."""
        if not isinstance(self._people, GeneratedPeople):
            return [*map(self._params, who.tolist(), masked.tolist())]
        if not masked.any():
            return [self._params(0, False)] * len(who)
        both = self._params(0, False), self._params(0, True)
        return [*map(both.__getitem__, masked.tolist())]

    def _params(self, person: int, masked: bool) -> bytes:
        params = self._people.agent_params(person)
        return orjson.dumps(mask_agent_params(params) if masked else params)
