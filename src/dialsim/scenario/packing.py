"""Scenarios as bytes for workers, without their lists of people, which each worker gets once.

Variants of a scenario share the lists read for one of them. So a variant takes a few kilobytes for
any number of people.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from secrets import token_hex
from weakref import WeakKeyDictionary

from dialsim.scenario.campaign import PeopleTable
from dialsim.scenario.scenario import Scenario

_names: WeakKeyDictionary[PeopleTable, str] = WeakKeyDictionary()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.lists: dict[str, PeopleTable] = {}

    def persistent_id(self, obj: object) -> str | None:
        if not isinstance(obj, PeopleTable):
            return None
        name = _names.get(obj) or token_hex(8)
        _names[obj] = name
        self.lists[name] = obj
        return name


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, find: Callable[[str], PeopleTable]) -> None:
        super().__init__(file)
        self._find = find

    def persistent_load(self, pid: str) -> PeopleTable:
        return self._find(pid)


def pack(scenario: Scenario) -> tuple[bytes, dict[str, PeopleTable]]:
    """Return a scenario without its source text as bytes, and its lists by name.

    A list keeps its name, which is unique among programs.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(scenario.loaded(None, ()))
    return file.getvalue(), pickler.lists


def unpack(packed: bytes, find: Callable[[str], PeopleTable]) -> Scenario:
    """Return the scenario in bytes; `find` returns the list of a name."""
    scenario: Scenario = _Unpickler(io.BytesIO(packed), find).load()
    return scenario
