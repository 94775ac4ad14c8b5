"""A YAML 1.2 document as a tree of values with their locations, and the files it is read from."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Mapping as Plain
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import yaml

from dialsim.errors import ScenarioError
from dialsim.scenario.problems import Problem, Problems, told

# The tree is built from the parser's events and not by `yaml.compose`, which recurses: a hundred
# thousand brackets make its C version crash the interpreter. Its nodes also lack the location of an
# alias, and do not distinguish a written tag from one that YAML 1.1 resolved; errors name both.
DEEPEST = 50
"""Maximum level of nesting; a scenario needs about ten."""

NodePath: TypeAlias = tuple[str | int, ...]
Leaf: TypeAlias = str | int | float | bool | None


class Location(NamedTuple):
    """Location of a node: file name with line and column from 1, or an override."""

    file: str
    line: int | None = None
    column: int | None = None


@dataclass(slots=True, eq=False)
class ScalarNode:
    """A scalar; `text` is the text in the file, `value` its YAML value."""

    location: Location
    text: str
    value: Leaf


@dataclass(slots=True, eq=False)
class SequenceNode:
    """A list."""

    location: Location
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MappingEntry:
    """Location of a key, and the node under it."""

    location: Location
    node: Node


@dataclass(slots=True, eq=False)
class MappingNode:
    """A mapping; keys are stored as texts, so that `9` and `"9"` are one key."""

    location: Location
    entries: dict[str, MappingEntry] = field(default_factory=dict)


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode


def plain(node: Node) -> object:
    """Convert a tree into dicts, lists and scalars, as in JSON."""
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    return {key: plain(entry.node) for key, entry in node.entries.items()}


def mappings(node: Node | None, path: NodePath = ()) -> Iterator[tuple[NodePath, MappingNode]]:
    """Yield every mapping of a tree with its path, in the order of the document."""
    parts: Iterable[tuple[str | int, Node]] = ()
    if isinstance(node, MappingNode):
        yield path, node
        parts = ((key, entry.node) for key, entry in node.entries.items())
    elif isinstance(node, SequenceNode):
        parts = enumerate(node.items)
    for key, part in parts:
        if not isinstance(part, ScalarNode):
            yield from mappings(part, (*path, key))


def planted(value: object, location: Location, level: int = 0) -> Node:
    """Convert plain values into a tree with one location for all nodes; the inverse of `plain`.

    Raises ScenarioError for excessive nesting.
    """
    if level > DEEPEST:
        says = f"is nested more than {DEEPEST} levels deep"
        raise ScenarioError([told(location, (), says)])
    if isinstance(value, Plain):
        parts = {str(key): planted(part, location, level + 1) for key, part in value.items()}
        return MappingNode(
            location, {key: MappingEntry(location, part) for key, part in parts.items()}
        )
    if isinstance(value, list | tuple):
        return SequenceNode(location, [planted(item, location, level + 1) for item in value])
    leaf = value if isinstance(value, str | int | float | None) else repr(value)
    return ScalarNode(location, _written(leaf), leaf)


def _written(leaf: Leaf) -> str:
    """Format a value as in YAML and JSON."""
    names = {None: "null", True: "true", False: "false"}
    return names[leaf] if leaf is None or isinstance(leaf, bool) else str(leaf)


def put(values: object, path: NodePath, value: object) -> None:
    """Replace the value at `path` in plain values; the path must exist."""
    *parents, last = path
    for key in parents:
        # Plain values are `object`: their structure was checked when the path was found.
        values = values[key]  # type: ignore[index]
    values[last] = value  # type: ignore[index]


class Cursor(NamedTuple):
    """A position in a tree, existing or not; `location` is then that of the nearest parent."""

    node: Node | None
    path: NodePath
    location: Location
    key_location: Location

    @classmethod
    def root(cls, node: Node) -> Cursor:
        """Return the cursor at the top of a document."""
        return cls(node, (), node.location, node.location)

    def at(self, *keys: str | int) -> Cursor:
        """Return the position below, given by keys and indices, whether it exists or not."""
        cursor = self
        for key in keys:
            cursor = cursor._child(key)
        return cursor

    def _child(self, key: str | int) -> Cursor:
        node, path = self.node, (*self.path, key)
        if isinstance(node, MappingNode) and str(key) in node.entries:
            entry = node.entries[str(key)]
            return Cursor(entry.node, path, entry.node.location, entry.location)
        if isinstance(node, SequenceNode) and isinstance(key, int) and key < len(node.items):
            item = node.items[key]
            return Cursor(item, path, item.location, item.location)
        return Cursor(None, path, self.location, self.location)

    def items(self) -> Iterator[Cursor]:
        """Yield the items of a list; nothing for other nodes."""
        if isinstance(self.node, SequenceNode):
            for index in range(len(self.node.items)):
                yield self._child(index)

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Yield the keys of a mapping with the cursors below; nothing for other nodes."""
        if isinstance(self.node, MappingNode):
            for key in self.node.entries:
                yield key, self._child(key)

    @property
    def exists(self) -> bool:
        """True if there is a value other than null."""
        return not (self.node is None or (isinstance(self.node, ScalarNode) and self.value is None))

    @property
    def value(self) -> object:
        """Plain value at this position, or None."""
        return None if self.node is None else plain(self.node)

    @property
    def text(self) -> str | None:
        """Text at this position; None for other values."""
        value = self.node.value if isinstance(self.node, ScalarNode) else None
        return value if isinstance(value, str) else None


_ZIP = b"PK\x03\x04"


def read_bytes(path: Path, shown: str) -> bytes:
    """Return the bytes of a file.

    Raises ScenarioError, with the name `shown`, if it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        says = "there is no such file"
    except IsADirectoryError:
        says = "this is a folder, not a file"
    except PermissionError:
        says = "this file may not be read (permission denied)"
    except (OSError, ValueError) as error:
        says = f"this file can't be read: {getattr(error, 'strerror', None) or error}"
    raise ScenarioError([Problem(shown, None, None, "", says)])


def decoded(content: bytes, shown: str, names_encodings: bool = False) -> str:
    """Decode UTF-8, without a byte order mark.

    Raises ScenarioError with the location of the first byte that is not UTF-8. With
    `names_encodings` the message advises to set the encoding.
    """
    # Spreadsheets call UTF-16 "Unicode text"; as UTF-8 its first byte would be the error.
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        says = "this is UTF-16; save it as UTF-8" + (
            ", or say encoding: utf-16 beside file" if names_encodings else ""
        )
        raise ScenarioError([Problem(shown, 1, 1, "", says)])
    if content.startswith(_ZIP):
        says = "this is a zip file, as Excel workbooks are; save it as text (in Excel: CSV UTF-8)"
        raise ScenarioError([Problem(shown, 1, 1, "", says)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        # utf-8-sig reports positions without the byte order mark.
        byte = content[len(content) - len(error.object) + error.start]
        says = f"byte 0x{byte:02X} is not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)"
        if names_encodings:
            says += ", or, if it comes from a Thai Windows, say encoding: cp874 beside file"
        raise ScenarioError([Problem(shown, line, column, "", says)]) from None


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """Folder at `path` of a scenario's files. Files in `kept` replace files of the folder, by name.

    With `only_kept` no other files are read. `taken` collects the files read.
    """

    path: Path
    kept: Mapping[str, bytes] = field(default_factory=dict)
    taken: dict[str, bytes] = field(default_factory=dict)
    only_kept: bool = False

    def shown(self, name: str) -> str:
        """Return the name of a file for errors."""
        return name if self.only_kept else str(self.path / name)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises ScenarioError if there is none."""
        content = self.kept.get(name)
        if content is None:
            if self.only_kept:
                says = "no files of this machine are read here: send the list first"
                raise ScenarioError([Problem(name, None, None, "", says)])
            content = read_bytes(self.path / name, self.shown(name))
        self.taken[name] = content
        return content


_TEXTS = (
    (
        "mapping values are not allowed",
        "a second colon in one line: put the text in quotes, or begin a new line for the next key",
    ),
    ("found unexpected end of stream", "a quote is opened in this text and never closed"),
    ("expected ',' or ']'", "a comma or the closing ] of the list is missing before this"),
    ("expected ',' or '}'", "a comma or the closing } of the mapping is missing before this"),
    ("could not find expected ':'", "a key without its colon: write key: value"),
    (
        "did not find expected key",
        "no key is possible here: a quote above is not closed, or this is not in line with a key",
    ),
    ("block collections are not allowed", "a block can't begin in the middle of a line"),
    ("block sequence entries are not allowed", "a list can't begin in the middle of a line"),
    (
        "did not find expected '-' indicator",
        "this is in line with the - of a list item: give it one - too, or indent it further",
    ),
    (
        "found unknown escape character",
        r"an unknown escape in double quotes: use single quotes, or \\ for a backslash",
    ),
    ("did not find expected node content", "a value is missing here"),
    (
        "found character that cannot start any token",
        "a text that begins with CHAR must be in quotes",
    ),
    (
        "did not find expected <document start>",
        "this is indented less than the first line, or stands behind the end of the document",
    ),
)


def reworded(error: yaml.MarkedYAMLError, text: str) -> str:
    """Explain a syntax error in `text` in plain words, or else in YAML's own."""
    problem, mark = error.problem or "", error.problem_mark
    # The mark of an unclosed construct may lie after the last line.
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    char = line[mark.column : mark.column + 1] if mark else ""
    if char == "\t" or "'\\t'" in problem:
        return "a tab is not allowed here: indent by spaces"
    for key, says in _TEXTS:
        if key in problem:
            return f"not valid YAML: {says.replace('CHAR', char)}"
    return f"not valid YAML: {problem}"


MOST_EXPANDED = 100_000
"""Limit of the nodes that aliases add by repeating anchors."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NUMERIC = frozenset("+-.0123456789")  # first characters of numbers
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
    """Parse the one YAML document in `text`; `file` is the name in locations.

    Faults such as duplicate keys are added to `problems`. Raises ScenarioError, with all problems
    so far, for a missing document or wrong syntax.
    """
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        column = control.start() - text.rfind("\n", 0, control.start())
        says = f"the control character U+{ord(control.group()):04X} is not allowed in YAML"
        problems.fail(told(Location(file, line, column), (), says))
    if text.lstrip()[:1] in {"{", "["}:
        text = _json_for_libyaml(text)
    document = _composed(text, file, problems, _LOADER)
    if document is None:
        problems.fail(told(Location(file, 1, 1), (), "there is nothing in this file"))
    return document


def _composed(text: str, file: str, problems: Problems, loader: Any) -> Node | None:
    composer = _Composer(file, problems)
    try:
        for event in yaml.parse(text, Loader=loader):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        # libyaml 0.2.6 and later reads ahead of its events, and rejects 1,000 open brackets before
        # the composer sees the first one. The scanner in Python has no such limit.
        if loader is not yaml.SafeLoader and "nesting depth" in str(error.problem):
            return _composed(text, file, problems, yaml.SafeLoader)
        location = _location(file, error.problem_mark or error.context_mark)
        problems.fail(told(location, (), reworded(error, text)))
    return composer.document


def _json_for_libyaml(text: str) -> str:
    """Rewrite JSON features that libyaml rejects: tabs as indentation, and surrogate pairs."""
    text = _INDENTING_TABS.sub(lambda tabs: " " * len(tabs.group()), text)
    return _SURROGATES.sub(_code_point, text)


def _code_point(pair: re.Match[str]) -> str:
    """Convert the two escapes of a surrogate pair into one YAML escape."""
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high & 0x3FF) << 10 | low & 0x3FF):08X}"


@dataclass(slots=True)
class _Open:
    """A collection that is being read: anchor, key whose value comes next, and size."""

    node: MappingNode | SequenceNode
    anchor: str | None
    key: tuple[str, Location] | None = None
    size: int = 1
    expecting_key: bool = field(init=False)

    def __post_init__(self) -> None:
        self.expecting_key = isinstance(self.node, MappingNode)


class _Composer:
    """Builder of the tree from events, with a stack of open collections instead of recursion."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.document: Node | None = None
        self._file = file
        self._problems = problems
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._expanded = 0

    def _told(self, location: Location, says: str, *key: str) -> Problem:
        """Build a problem about the current position, or about a key in it."""
        here: list[str | int] = []
        for collection in self._stack:
            if isinstance(collection.node, SequenceNode):
                here.append(len(collection.node.items))
            elif collection.key is not None:
                here.append(collection.key[0])
        return told(location, (*here, *key), says)

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event.anchor, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self._stack.pop()
            self._add(closed.node, closed.anchor, closed.size)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent) and self.document is not None:
            self._stop(
                self._location(event), "a second document begins here: a scenario is one document"
            )

    def _location(self, event: Any) -> Location:
        return _location(self._file, event.start_mark)

    def _note(self, location: Location, says: str, *key: str) -> None:
        self._problems.note(self._told(location, says, *key))

    def _stop(self, location: Location, says: str) -> NoReturn:
        self._problems.fail(self._told(location, says))

    def _open(self, event: Any) -> None:
        if len(self._stack) >= DEEPEST:
            # The path in the error would otherwise have fifty parts.
            del self._stack[3:]
            self._stop(self._location(event), f"is nested more than {DEEPEST} levels deep")
        if self._stack and self._stack[-1].expecting_key:
            self._stop(self._location(event), _NO_TEXT)
        kind = MappingNode if isinstance(event, yaml.MappingStartEvent) else SequenceNode
        expected = _TAG + ("map" if kind is MappingNode else "seq")
        if event.tag not in {None, "!", expected}:
            says = f"must not have the tag {_shown(event.tag)}; write the value alone"
            self._note(self._location(event), says)
        if event.anchor is not None:
            # None marks an open collection: an alias inside it would make a cycle.
            self._anchors[event.anchor] = None
        self._stack.append(_Open(kind(self._location(event)), event.anchor))

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            says = f"is *{event.anchor}, but nothing above has the anchor &{event.anchor}"
            self._stop(self._location(event), says)
        known = self._anchors[event.anchor]
        if known is None:
            self._stop(
                self._location(event), f"is *{event.anchor}, which stands inside what it repeats"
            )
        node, size = known
        # Aliases share nodes in memory, but a few nested ones stand for billions of values later on
        # ("billion laughs").
        self._expanded += size
        if self._expanded > MOST_EXPANDED:
            says = f"is *{event.anchor}, but aliases may repeat at most {MOST_EXPANDED} values"
            self._stop(self._location(event), says)
        self._add(node, None, size)

    def _add(self, node: Node, anchor: str | None, size: int) -> None:
        """Insert a complete node as a key, as the value of a key, or as an item."""
        if anchor is not None:
            self._anchors[anchor] = (node, size)
        # The outermost node is the document itself.
        if not self._stack:
            self.document = node
            return
        parent = self._stack[-1]
        parent.size += size
        if isinstance(parent.node, SequenceNode):
            parent.node.items.append(node)
        elif parent.key is None:
            self._key(parent, parent.node, node)
        else:
            key, location = parent.key
            # The first of duplicate keys wins; `_key` has reported the second one.
            parent.node.entries.setdefault(key, MappingEntry(location, node))
            parent.key, parent.expecting_key = None, True

    def _key(self, parent: _Open, block: MappingNode, node: Node) -> None:
        if not isinstance(node, ScalarNode):
            self._stop(node.location, _NO_TEXT)
        if node.text in block.entries:
            first = block.entries[node.text].location
            self._note(
                node.location, f"is here twice; the first is in line {first.line}", node.text
            )
        parent.key, parent.expecting_key = (node.text, node.location), False

    def _scalar(self, event: Any) -> ScalarNode:
        location = self._location(event)
        text, tag = event.value, event.tag
        if event.implicit[0]:
            return ScalarNode(location, text, self._resolved(text, location))
        if tag in {None, "!", _TAG + "str"}:
            return ScalarNode(location, text, text)
        self._note(location, f"must not have the tag {_shown(tag)}; write the value alone")
        return ScalarNode(location, text, text)

    def _resolved(self, text: str, location: Location) -> Leaf:
        """Resolve a plain scalar by the core schema of YAML 1.2."""
        if text in _SPECIAL:
            return _SPECIAL[text]
        # The first character excludes nearly all texts, which is quicker than two patterns.
        if text[0] not in _NUMERIC or not (_FLOAT.fullmatch(text) or _INTEGER.fullmatch(text)):
            return text
        # Python refuses to convert integers beyond 4,300 digits, and takes quadratic time below.
        if len(text) > 400:
            self._note(location, f"is a number of {len(text)} characters: none needs 400")
            return 0
        if not _INTEGER.fullmatch(text):
            return float(text)
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        number = int(text, base)
        # Larger integers become floats, as in uploaded JSON.
        return number if -(2**63) <= number < 2**64 else float(str(number))


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag


def _location(file: str, mark: Any) -> Location:
    return (
        Location(file, mark.line + 1, mark.column + 1) if mark is not None else Location(file, 1, 1)
    )
