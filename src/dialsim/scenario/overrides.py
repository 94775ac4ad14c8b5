"""Overrides: `PATH=VALUE`, put into the tree of a scenario before it is checked."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Pairs
from collections.abc import Sequence as Items

from dialsim.interface.errors import DialsimError
from dialsim.scenario.document import (
    MappingEntry,
    MappingNode,
    Node,
    Place,
    ScalarNode,
    SequenceNode,
    parse_yaml,
)
from dialsim.scenario.problems import Problem, Problems, ScenarioError


def override_texts(overrides: str | Items[str]) -> tuple[str, ...]:
    """Overrides as callers in Python give them: several texts `PATH=VALUE`, or one alone.

    Raises DialsimError for anything else.
    """
    if isinstance(overrides, str):
        return (overrides,)
    # a mapping of paths to values would pass for a list of its keys
    listed = isinstance(overrides, Iterable) and not isinstance(overrides, Pairs)
    texts = tuple(overrides) if listed else ()
    if not listed or not all(isinstance(text, str) for text in texts):
        raise DialsimError(f'overrides are texts PATH=VALUE, such as "seed=7", not {overrides!r}')
    return texts


def apply(overrides: Items[str], root: Node, problems: Problems) -> None:
    """Change the tree by overrides such as `organizations.Acme.maxConcurrentCalls=40`, in order.

    A path's parts are keys, and for items of lists their index from 0 or their `name`, which may
    itself contain dots. Keys that are missing are created, items are not. The value is YAML.
    Overrides that can't be applied are noted in `problems`, under their own text.
    """
    for override in overrides:
        try:
            _apply(override, root)
        except ScenarioError as error:
            for problem in error.problems:
                problems.note(problem)


def _apply(override: str, root: Node) -> None:
    path, equals, text = override.partition("=")
    origin = Place(f"--set {override}")
    if not equals or not path.strip():
        raise _refused(origin, "", "an override is PATH=VALUE, such as seed=7")
    value = _value(text, origin)
    parts = path.strip().split(".")
    node, done = root, 0
    while done < len(parts):
        node, done = _step(node, parts, done, value, origin)


def _value(text: str, origin: Place) -> Node:
    if not text.strip():
        return ScalarNode(origin, "", None)
    try:
        found = Problems(origin.file)
        value = parse_yaml(text, origin.file, found)
        found.raise_if_any()
    except ScenarioError as error:
        raise _refused(origin, "", error.problems[0].message) from None
    _move(value, origin)
    return value


def _move(node: Node, origin: Place) -> None:
    """Give a value and its parts the override as their place."""
    node.place = origin
    if isinstance(node, SequenceNode):
        for item in node.items:
            _move(item, origin)
    elif isinstance(node, MappingNode):
        for entry in node.entries.values():
            entry.place = origin
            _move(entry.node, origin)


def _step(node: Node, parts: list[str], done: int, value: Node, origin: Place) -> tuple[Node, int]:
    """Go down by one key or item, and put the value there if the path ends with it."""
    here = ".".join(parts[:done])
    if isinstance(node, SequenceNode):
        index, taken = _item(node, parts, done, origin)
        last = done + taken == len(parts)
        node.items[index] = value if last else _own(node.items[index])
        return node.items[index], done + taken
    if not isinstance(node, MappingNode):
        says = f"{here} is a single value: nothing is below it"
        raise _refused(origin, here, says)
    key, last = parts[done], done + 1 == len(parts)
    entry = node.entries.get(key)
    missing = entry is None or (isinstance(entry.node, ScalarNode) and entry.node.value is None)
    if last or entry is None or missing:
        entry = MappingEntry(origin, value if last else MappingNode(origin))
    node.entries[key] = MappingEntry(entry.place, entry.node if last else _own(entry.node))
    return node.entries[key].node, done + 1


def _own(node: Node) -> Node:
    """A copy of a node that no alias shares, but for what is below."""
    if isinstance(node, SequenceNode):
        return SequenceNode(node.place, list(node.items))
    if isinstance(node, MappingNode):
        return MappingNode(node.place, dict(node.entries))
    return node


def _item(node: SequenceNode, parts: list[str], done: int, origin: Place) -> tuple[int, int]:
    """The index of the item that the path names next, and how many parts its name takes."""
    part, here = parts[done], ".".join(parts[:done])
    if part.isascii() and part.isdigit() and len(part) < 10:
        if int(part) < len(node.items):
            return int(part), 1
        says = f"{here}.{part} is not there: {here} has {_count(len(node.items))}"
        raise _refused(origin, f"{here}.{part}", says)
    names = [_name(item) for item in node.items]
    for end in range(len(parts), done, -1):
        name = ".".join(parts[done:end])
        if names.count(name) > 1:
            says = f"{here}.{name} is ambiguous: several items have this name; use the index"
            raise _refused(origin, f"{here}.{name}", says)
        if name in names:
            return names.index(name), end - done
    known = ", ".join(name for name in names[:10] if name is not None)
    says = f"{here} has no item named {part}" + (f"; there are {known}" if known else "")
    raise _refused(origin, f"{here}.{part}", says)


def _count(items: int) -> str:
    return "no items" if not items else f"items 0 to {items - 1}"


def _name(item: Node) -> str | None:
    entry = item.entries.get("name") if isinstance(item, MappingNode) else None
    return entry.node.text if entry is not None and isinstance(entry.node, ScalarNode) else None


def _refused(origin: Place, path: str, says: str) -> ScenarioError:
    return ScenarioError([Problem(origin.file, None, None, path, says)])
