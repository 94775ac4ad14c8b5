"""YAML 1.2 text as a tree with places: strict about keys, bounded in depth and expansion.

The tree is built from the parser's events rather than by `yaml.compose`, which recurses: a hundred
thousand brackets make its C version crash the interpreter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from dialsim.scenario.problems import Problem, ScenarioError
from dialsim.scenario.tree import Entry, Leaf, Mapping, Node, Place, Scalar, Sequence
from dialsim.scenario.yaml_texts import reworded

DEEPEST = 50
"""Levels of nesting; a scenario needs about ten."""

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
_TAG = "tag:yaml.org,2002:"
_HIGH, _LOW = r"\\u(d[89ab][0-9a-f]{2})", r"\\u(d[c-f][0-9a-f]{2})"
_SURROGATES = re.compile(rf"(?<!\\)((?:\\\\)*){_HIGH}{_LOW}", re.IGNORECASE)
_INDENTING_TABS = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)


def parse_yaml(text: str, file: str) -> Node:
    """The tree of the one YAML document in `text`; `file` is what its places are to name.

    Raises ScenarioError if the text is not one such document. Syntax is checked up to the first
    error, duplicate keys and the like are all reported.
    """
    composer = _Composer(file)
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        column = control.start() - text.rfind("\n", 0, control.start())
        says = f"the control character U+{ord(control.group()):04X} is not allowed in YAML"
        raise ScenarioError([Problem(file, line, column, "", says)])
    if text.lstrip()[:1] in {"{", "["}:
        text = _json_for_libyaml(text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        composer.note(_place(file, error.problem_mark or error.context_mark), reworded(error, text))
    except _Stop:
        pass
    if composer.problems:
        raise ScenarioError(composer.problems)
    if composer.document is None:
        raise ScenarioError([Problem(file, 1, 1, "", "there is nothing in this file")])
    return composer.document


def _json_for_libyaml(text: str) -> str:
    """JSON without the two things of it that libyaml refuses: indenting tabs, surrogate pairs."""
    text = _INDENTING_TABS.sub(lambda tabs: " " * len(tabs.group()), text)
    return _SURROGATES.sub(_code_point, text)


def _code_point(pair: re.Match[str]) -> str:
    """The two escapes of a surrogate pair as the one that YAML has for it."""
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high & 0x3FF) << 10 | low & 0x3FF):08X}"


class _Stop(Exception):
    """Reading on makes no sense; the reason is among the problems."""


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

    def __init__(self, file: str) -> None:
        self.document: Node | None = None
        self.problems: list[Problem] = []
        self._file = file
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._expanded = 0

    def note(self, place: Place, says: str) -> None:
        self.problems.append(Problem(place.file, place.line, place.column, "", says))

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
            self._stop(event, "a second document begins here; a scenario is one document")

    def _place(self, event: Any) -> Place:
        return _place(self._file, event.start_mark)

    def _stop(self, event: Any, says: str) -> None:
        self.note(self._place(event), says)
        raise _Stop

    def _open(self, event: Any) -> None:
        if len(self._stack) >= DEEPEST:
            self._stop(event, f"nested more than {DEEPEST} levels deep")
        if self._stack and self._stack[-1].expecting_key:
            self._stop(event, "a key must be a text, not a list or a mapping")
        kind = Mapping if isinstance(event, yaml.MappingStartEvent) else Sequence
        expected = _TAG + ("map" if kind is Mapping else "seq")
        if event.tag not in {None, "!", expected}:
            self.note(self._place(event), f"the tag {_shown(event.tag)} is not supported")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(kind(self._place(event)), event.anchor))

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            self._stop(event, f"*{event.anchor} repeats an anchor that is not defined above")
        known = self._anchors[event.anchor]
        if known is None:
            self._stop(event, f"*{event.anchor} stands inside what it repeats")
            return
        node, size = known
        self._expanded += size
        if self._expanded > MOST_EXPANDED:
            self._stop(
                event, f"aliases such as *{event.anchor} repeat more than {MOST_EXPANDED} values"
            )
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
            self.note(node.place, "a key must be a text, not a list or a mapping")
            raise _Stop
        if node.text in block.entries:
            first = block.entries[node.text].place
            says = f'the key "{node.text}" is here twice; it first stands in line {first.line}'
            self.note(node.place, says)
        elif node.text == "<<":
            self.note(node.place, "merge keys (<<) are not part of YAML 1.2; write the keys out")
        parent.key, parent.expecting_key = (node.text, node.place), False

    def _scalar(self, event: Any) -> Scalar:
        place = self._place(event)
        text, tag = event.value, event.tag
        if event.implicit[0]:
            return Scalar(place, text, self._resolved(text, place))
        if tag in {None, "!", _TAG + "str"}:
            return Scalar(place, text, text)
        self.note(place, f"the tag {_shown(tag)} is not supported; write the value alone")
        return Scalar(place, text, None)

    def _resolved(self, text: str, place: Place) -> Leaf:
        """What a plain scalar means by the core schema of YAML 1.2."""
        if text in _SPECIAL:
            return _SPECIAL[text]
        if not _FLOAT.fullmatch(text) and not _INTEGER.fullmatch(text):
            return text
        if len(text) > 400:
            self.note(place, f"a number of {len(text)} characters is too long")
            return 0
        if not _INTEGER.fullmatch(text):
            return float(text)
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base)


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag


def _place(file: str, mark: Any) -> Place:
    return Place(file, mark.line + 1, mark.column + 1) if mark is not None else Place(file, 1, 1)
