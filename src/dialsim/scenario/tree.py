"""The tree of a YAML document: values with their places, and a cursor that walks it safely."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Plain
from dataclasses import dataclass, field
from typing import TypeAlias

from dialsim.scenario.problems import ScenarioError, told

DEEPEST = 50
"""Levels of nesting; a scenario needs about ten."""

Path: TypeAlias = tuple[str | int, ...]
Leaf: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a file's name with line and column from 1, or an override."""

    file: str
    line: int | None = None
    column: int | None = None


@dataclass(slots=True, eq=False)
class Scalar:
    """A value without parts; `text` is as it stands in the file, `value` what YAML makes of it."""

    place: Place
    text: str
    value: Leaf


@dataclass(slots=True, eq=False)
class Sequence:
    """A list."""

    place: Place
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Entry:
    """A key's place, and the node under it."""

    place: Place
    node: Node


@dataclass(slots=True, eq=False)
class Mapping:
    """A block of keys; keys are their texts, so that `9` and `"9"` are one."""

    place: Place
    entries: dict[str, Entry] = field(default_factory=dict)


Node: TypeAlias = Scalar | Sequence | Mapping


def plain(node: Node) -> object:
    """The values of a tree as dicts, lists and scalars, as JSON would have them."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return {key: plain(entry.node) for key, entry in node.entries.items()}


def planted(value: object, place: Place, level: int = 0) -> Node:
    """The tree of plain values, all of it at one place; the reverse of `plain`.

    Raises ScenarioError where they are nested too deeply.
    """
    if level > DEEPEST:
        says = f"is nested more than {DEEPEST} levels deep"
        raise ScenarioError([told(place, (), says)])
    if isinstance(value, Plain):
        parts = {str(key): planted(part, place, level + 1) for key, part in value.items()}
        return Mapping(place, {key: Entry(place, part) for key, part in parts.items()})
    if isinstance(value, list | tuple):
        return Sequence(place, [planted(item, place, level + 1) for item in value])
    leaf = value if isinstance(value, str | int | float | None) else repr(value)
    return Scalar(place, _written(leaf), leaf)


def _written(leaf: Leaf) -> str:
    """A value as YAML and JSON write it."""
    names = {None: "null", True: "true", False: "false"}
    return names[leaf] if leaf is None or isinstance(leaf, bool) else str(leaf)


def put(values: object, path: Path, value: object) -> None:
    """Replace what stands at `path` in the plain values of a tree; the path must be there."""
    *parents, last = path
    for key in parents:
        values = values[key]  # type: ignore[index]
    values[last] = value  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a tree that may or may not be there; `place` is then the nearest parent's."""

    node: Node | None
    path: Path
    place: Place
    key_place: Place

    @classmethod
    def root(cls, node: Node) -> Cursor:
        """The cursor at the top of a document."""
        return cls(node, (), node.place, node.place)

    def at(self, *keys: str | int) -> Cursor:
        """The position that the keys and indexes lead to, there or not."""
        cursor = self
        for key in keys:
            cursor = cursor._child(key)
        return cursor

    def _child(self, key: str | int) -> Cursor:
        node, path = self.node, (*self.path, key)
        if isinstance(node, Mapping) and str(key) in node.entries:
            entry = node.entries[str(key)]
            return Cursor(entry.node, path, entry.node.place, entry.place)
        if isinstance(node, Sequence) and isinstance(key, int) and key < len(node.items):
            item = node.items[key]
            return Cursor(item, path, item.place, item.place)
        return Cursor(None, path, self.place, self.place)

    def items(self) -> Iterator[Cursor]:
        """The items, if this is a list."""
        if isinstance(self.node, Sequence):
            for index in range(len(self.node.items)):
                yield self._child(index)

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """The keys and what is under them, if this is a mapping."""
        if isinstance(self.node, Mapping):
            for key in self.node.entries:
                yield key, self._child(key)

    @property
    def exists(self) -> bool:
        """Whether something stands here; null counts as nothing."""
        return not (self.node is None or (isinstance(self.node, Scalar) and self.value is None))

    @property
    def value(self) -> object:
        """The plain value here, None if there is nothing."""
        return None if self.node is None else plain(self.node)

    @property
    def text(self) -> str | None:
        """The text here, None if there is something else."""
        value = self.node.value if isinstance(self.node, Scalar) else None
        return value if isinstance(value, str) else None
