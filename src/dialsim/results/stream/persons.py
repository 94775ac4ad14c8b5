"""Persons: recipients as payloads name them, as JSON text, masked where need be (D1)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import repeat

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.interface.masks import MASKED_NAME, mask_agent_params, mask_tel
from dialsim.scenario.people import GeneratedPeople, People

_NO_NAME = orjson.dumps(MASKED_NAME)


class Persons:
    """The recipients of one campaign; each method takes some of them, by position from 0.

    `masked` says whose personal data retention has removed.
    """

    def __init__(self, people: People) -> None:
        self._people = people

    @cached_property
    def _tels(self) -> list[str]:
        return self._people.tels()

    @cached_property
    def _names(self) -> list[str | None]:
        return self._people.customer_names()

    def who_has(self, tel: str) -> NDArray[np.int64]:
        """The recipients with a phone number, written just so; ascending."""
        found = [person for person, known in enumerate(self._tels) if known == tel]
        return np.array(found, dtype=np.int64)

    def tels(self, who: NDArray[np.int32], masked: NDArray[np.bool_]) -> list[bytes]:
        """Phone numbers."""
        texts = [self._tels[person] for person in who.tolist()]
        for row in np.flatnonzero(masked):
            texts[row] = mask_tel(texts[row])
        return [*map(orjson.dumps, texts)]

    def names(self, who: NDArray[np.int32], masked: NDArray[np.bool_]) -> list[bytes]:
        """Names, null where none was uploaded."""
        texts = [orjson.dumps(self._names[person]) for person in who.tolist()]
        for row in np.flatnonzero(masked):
            texts[row] = _NO_NAME
        return texts

    def params(self, who: NDArray[np.int32], masked: NDArray[np.bool_]) -> Iterable[bytes]:
        """The uploaded `agentParams`."""
        if not isinstance(self._people, GeneratedPeople):
            return map(self._params, who.tolist(), masked.tolist())
        if not masked.any():
            return repeat(self._params(0, False))
        both = self._params(0, False), self._params(0, True)
        return [both[removed] for removed in masked.tolist()]

    def _params(self, person: int, masked: bool) -> bytes:
        params = self._people.agent_params(person)
        return orjson.dumps(mask_agent_params(params) if masked else params)
