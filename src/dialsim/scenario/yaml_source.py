"""YAML 1.2 text as a tree with places: strict about keys, bounded in depth and expansion.

The tree is built from the parser's events rather than by `yaml.compose`, which recurses: a hundred
thousand brackets make its C version crash the interpreter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from dialsim.scenario.problems import Problem, Problems, told
from dialsim.scenario.tree import DEEPEST, Entry, Leaf, Mapping, Node, Place, Scalar, Sequence
from dialsim.scenario.yaml_texts import reworded

MOST_EXPANDED = 100_000
"""Nodes that aliases may add by repeating what an anchor names."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: dict[str, Leaf] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + inf: float("inf") for sign in ("", "+") for inf in (".inf", ".Inf", ".INF")},
    **{"-" + inf: float("-inf") for inf in (".inf", ".Inf", ".INF")},
}
_NO_TEXT = "must not have a list or a mapping as a key"
_TAG = "tag:yaml.org,2002:"
_HIGH, _LOW = r"\\u(d[89ab][0-9a-f]{2})", r"\\u(d[c-f][0-9a-f]{2})"
_SURROGATES = re.compile(rf"(?<!\\)((?:\\\\)*){_HIGH}{_LOW}", re.IGNORECASE)
_INDENTING_TABS = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)


def parse_yaml(text: str, file: str, problems: Problems) -> Node:
    """The tree of the one YAML document in `text`; `file` is what its places are to name.

    Duplicate keys and the like are noted in `problems`. Raises ScenarioError, with all problems
    noted so far, if there is no such document or its syntax is wrong.
    """
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        column = control.start() - text.rfind("\n", 0, control.start())
        says = f"the control character U+{ord(control.group()):04X} is not allowed in YAML"
        problems.fail(told(Place(file, line, column), (), says))
    if text.lstrip()[:1] in {"{", "["}:
        text = _json_for_libyaml(text)
    composer = _Composer(file, problems)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        place = _place(file, error.problem_mark or error.context_mark)
        problems.fail(told(place, (), reworded(error, text)))
    if composer.document is None:
        problems.fail(told(Place(file, 1, 1), (), "there is nothing in this file"))
    return composer.document


def _json_for_libyaml(text: str) -> str:
    """JSON without the two things of it that libyaml refuses: indenting tabs, surrogate pairs."""
    text = _INDENTING_TABS.sub(lambda tabs: " " * len(tabs.group()), text)
    return _SURROGATES.sub(_code_point, text)


def _code_point(pair: re.Match[str]) -> str:
    """The two escapes of a surrogate pair as the one that YAML has for it."""
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high & 0x3FF) << 10 | low & 0x3FF):08X}"


@dataclass(slots=True)
class _Open:
    """A collection that is being read: its anchor, the key whose value is awaited, its size."""

    node: Mapping | Sequence
    anchor: str | None
    key: tuple[str, Place] | None = None
    size: int = 1
    expecting_key: bool = field(init=False)

    def __post_init__(self) -> None:
        self.expecting_key = isinstance(self.node, Mapping)


class _Composer:
    """Builds the tree, event by event; collections under way are a stack, not recursion."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.document: Node | None = None
        self._file = file
        self._problems = problems
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._expanded = 0

    def _told(self, place: Place, says: str, *key: str) -> Problem:
        """The problem that says something of the place reached so far, or of a key in it."""
        here: list[str | int] = []
        for collection in self._stack:
            if isinstance(collection.node, Sequence):
                here.append(len(collection.node.items))
            elif collection.key is not None:
                here.append(collection.key[0])
        return told(place, (*here, *key), says)

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event.anchor, 1)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            closed = self._stack.pop()
            self._add(closed.node, closed.anchor, closed.size)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent) and self.document is not None:
            self._stop(
                self._place(event), "a second document begins here: a scenario is one document"
            )

    def _place(self, event: Any) -> Place:
        return _place(self._file, event.start_mark)

    def _note(self, place: Place, says: str, *key: str) -> None:
        self._problems.note(self._told(place, says, *key))

    def _stop(self, place: Place, says: str) -> NoReturn:
        self._problems.fail(self._told(place, says))

    def _open(self, event: Any) -> None:
        if len(self._stack) >= DEEPEST:
            del self._stack[3:]
            self._stop(self._place(event), f"is nested more than {DEEPEST} levels deep")
        if self._stack and self._stack[-1].expecting_key:
            self._stop(self._place(event), _NO_TEXT)
        kind = Mapping if isinstance(event, yaml.MappingStartEvent) else Sequence
        expected = _TAG + ("map" if kind is Mapping else "seq")
        if event.tag not in {None, "!", expected}:
            says = f"must not have the tag {_shown(event.tag)}; write the value alone"
            self._note(self._place(event), says)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(kind(self._place(event)), event.anchor))

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            says = f"is *{event.anchor}, but nothing above has the anchor &{event.anchor}"
            self._stop(self._place(event), says)
        known = self._anchors[event.anchor]
        if known is None:
            self._stop(
                self._place(event), f"is *{event.anchor}, which stands inside what it repeats"
            )
        node, size = known
        self._expanded += size
        if self._expanded > MOST_EXPANDED:
            says = f"is *{event.anchor}, but aliases may repeat at most {MOST_EXPANDED} values"
            self._stop(self._place(event), says)
        self._add(node, None, size)

    def _add(self, node: Node, anchor: str | None, size: int) -> None:
        """Put a complete node where it belongs: as a key, under its key, or in its list."""
        if anchor is not None:
            self._anchors[anchor] = (node, size)
        if not self._stack:
            self.document = node
            return
        parent = self._stack[-1]
        parent.size += size
        if isinstance(parent.node, Sequence):
            parent.node.items.append(node)
        elif parent.key is None:
            self._key(parent, parent.node, node)
        else:
            key, place = parent.key
            parent.node.entries.setdefault(key, Entry(place, node))
            parent.key, parent.expecting_key = None, True

    def _key(self, parent: _Open, block: Mapping, node: Node) -> None:
        if not isinstance(node, Scalar):
            self._stop(node.place, _NO_TEXT)
        if node.text in block.entries:
            first = block.entries[node.text].place
            self._note(node.place, f"is here twice; the first is in line {first.line}", node.text)
        parent.key, parent.expecting_key = (node.text, node.place), False

    def _scalar(self, event: Any) -> Scalar:
        place = self._place(event)
        text, tag = event.value, event.tag
        if event.implicit[0]:
            return Scalar(place, text, self._resolved(text, place))
        if tag in {None, "!", _TAG + "str"}:
            return Scalar(place, text, text)
        self._note(place, f"must not have the tag {_shown(tag)}; write the value alone")
        return Scalar(place, text, text)

    def _resolved(self, text: str, place: Place) -> Leaf:
        """What a plain scalar means by the core schema of YAML 1.2."""
        if text in _SPECIAL:
            return _SPECIAL[text]
        if not _FLOAT.fullmatch(text) and not _INTEGER.fullmatch(text):
            return text
        if len(text) > 400:
            self._note(place, f"is a number of {len(text)} characters: none needs 400")
            return 0
        if not _INTEGER.fullmatch(text):
            return float(text)
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        number = int(text, base)
        # more than 64 bits is what it is in JSON that is uploaded: a number like any other
        return number if -(2**63) <= number < 2**64 else float(str(number))


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag


def _place(file: str, mark: Any) -> Place:
    return Place(file, mark.line + 1, mark.column + 1) if mark is not None else Place(file, 1, 1)
