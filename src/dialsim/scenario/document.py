"""YAML 1.2 documents, as plain values with locations in the file, and the reading of files."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import yaml

from dialsim.errors import ScenarioError
from dialsim.scenario.problems import Problem, Problems, problem_at

DEEPEST = 50
"""Maximum level of nesting; a scenario needs about ten."""

NodePath: TypeAlias = tuple[str | int, ...]
Leaf: TypeAlias = str | int | float | bool | None


class Location(NamedTuple):
    """Location of a value: file name with line and column from 1, or an override."""

    file: str
    line: int | None = None
    column: int | None = None


@dataclass(slots=True)
class Document:
    """Plain values, as in JSON, and their locations by path.

    `locations` belong to values, `keys` to the keys of mappings. A path without a location has the
    location of the nearest value above it. `written` are numbers and the like as written in the
    file. Keys of mappings are texts, so that `9` and `"9"` are one key.
    """

    locations: dict[NodePath, Location]
    keys: dict[NodePath, Location] = field(default_factory=dict)
    written: dict[NodePath, str] = field(default_factory=dict)
    values: Any = None

    @classmethod
    def of(cls, values: object, location: Location) -> Document:
        """Return a document of plain values, all at one location.

        Raises ScenarioError for excessive nesting.
        """
        return cls({(): location}, values=copied(values, location))

    @property
    def root(self) -> Cursor:
        """Cursor at the top of the document."""
        return Cursor(self, (), self.values)

    def put(self, path: NodePath, value: object, location: Location) -> None:
        """Put a value at a path, at the location of the change.

        Missing mappings above it are created, and the index behind the last item appends to a list.
        Raises ScenarioError below a value that has no parts.
        """
        node: Any = self.values
        last = len(path) - 1
        for depth, key in enumerate(path):
            here = path[: depth + 1]
            has_parts = isinstance(node, dict | list)
            if not has_parts:
                raise ScenarioError(
                    [problem_at(location, path[:depth], "is a single value: nothing is below it")]
                )
            if isinstance(node, list) and key == len(node):
                node.append(None)
            # A key without a value, as a commented-out block leaves it, counts as absent.
            is_new = isinstance(node, dict) and node.get(str(key)) is None
            if depth == last or is_new:
                self._forget(here)
                self.locations[here] = self.keys[here] = location
                node[key] = value if depth == last else {}
            node = node[key]

    def remove(self, path: NodePath, index: int) -> None:
        """Remove an item of the list at a path; later items keep their locations."""
        self._forget((*path, index))
        depth = len(path)
        maps: tuple[dict[NodePath, Any], ...] = (self.locations, self.keys, self.written)
        for known in maps:
            later = [old for old in known if old[:depth] == path and len(old) > depth]
            later = [old for old in later if int(old[depth]) > index]
            # In order, so that a location moves before another one takes its path.
            for old in sorted(later, key=lambda old: old[depth]):
                known[(*path, int(old[depth]) - 1, *old[depth + 1 :])] = known.pop(old)
        del self.root.at(*path).value[index]

    def _forget(self, path: NodePath) -> None:
        """Forget the locations of a value and its parts."""
        # Otherwise an error in a new value could be located at a line of the old one.
        maps: tuple[dict[NodePath, Any], ...] = (self.locations, self.keys, self.written)
        for known in maps:
            for old in [old for old in known if old[: len(path)] == path]:
                del known[old]


def copied(value: object, location: Location, level: int = 0) -> Any:
    """Return a copy of plain values, with texts as keys.

    Raises ScenarioError, with the location, for excessive nesting.
    """
    if level > DEEPEST:
        raise ScenarioError(
            [problem_at(location, (), f"is nested more than {DEEPEST} levels deep")]
        )
    if isinstance(value, Mapping):
        return {str(key): copied(part, location, level + 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [copied(item, location, level + 1) for item in value]
    return value if isinstance(value, str | int | float | None) else repr(value)


def put(values: Any, path: NodePath, value: object) -> None:
    """Replace the value at `path` in plain values; the path must exist."""
    *parents, last = path
    for key in parents:
        values = values[key]
    values[last] = value


_MISSING: Any = object()


class Cursor(NamedTuple):
    """Position in a document, with or without a value."""

    document: Document
    path: NodePath
    found: Any

    def at(self, *keys: str | int) -> Cursor:
        """Return the position below, given by keys and indices, present or not."""
        found = self.found
        for key in keys:
            if isinstance(found, dict):
                found = found.get(str(key), _MISSING)
            elif isinstance(found, list) and isinstance(key, int) and key < len(found):
                found = found[key]
            else:
                found = _MISSING
        return Cursor(self.document, (*self.path, *keys), found)

    def items(self) -> Iterator[Cursor]:
        """Yield the items of a list; nothing for other values."""
        if isinstance(self.found, list):
            for index, item in enumerate(self.found):
                yield Cursor(self.document, (*self.path, index), item)

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Yield the keys of a mapping with the cursors below; nothing for other values."""
        if isinstance(self.found, dict):
            for key, value in self.found.items():
                yield key, Cursor(self.document, (*self.path, key), value)

    def each(self, pattern: str) -> Iterator[Cursor]:
        """Yield the positions below with a value other than null, such as `agents.*.name`.

        A star stands for every item of a list, and every key of a mapping.
        """
        key, _, rest = pattern.partition(".")
        # Nothing for other values: the models report them.
        below = (*self.items(), *(entry for _, entry in self.entries()))
        for cursor in below if key == "*" else (self.at(key),):
            if rest:
                yield from cursor.each(rest)
            elif cursor.exists:
                yield cursor

    def walk(self) -> Iterator[Cursor]:
        """Yield this position and all below it, in the order of the document."""
        # Recursion would hand each position through the generators of all those above it.
        pending = [self]
        while pending:
            cursor = pending.pop()
            yield cursor
            below = [*cursor.items(), *(entry for _, entry in cursor.entries())]
            pending.extend(reversed(below))

    @property
    def is_present(self) -> bool:
        """True if there is a value, possibly null."""
        return self.found is not _MISSING

    @property
    def exists(self) -> bool:
        """True if there is a value other than null."""
        return self.value is not None

    @property
    def value(self) -> Any:
        """Plain value at this position, or None; it must not be changed."""
        return self.found if self.is_present else None

    @property
    def text(self) -> str | None:
        """Text at this position; None for other values."""
        return self.found if isinstance(self.found, str) else None

    @property
    def written(self) -> str:
        """Scalar at this position as it is written in the file."""
        known = self.document.written.get(self.path)
        if known is None:
            names = {None: "null", True: "true", False: "false"}
            is_name = self.value is None or isinstance(self.value, bool)
            known = names[self.value] if is_name else str(self.value)
        return known

    @property
    def location(self) -> Location:
        """Location of the value, or of the nearest value above."""
        locations = self.document.locations
        depths = range(len(self.path), -1, -1)
        return next(locations[at] for depth in depths if (at := self.path[:depth]) in locations)

    @property
    def key_location(self) -> Location:
        """Location of the key in a mapping; without a key, location of the value."""
        return self.document.keys.get(self.path) or self.location


_ZIP = b"PK\x03\x04"


def read_bytes(path: Path, shown: str) -> bytes:
    """Return the bytes of a file.

    Raises ScenarioError, with the name `shown`, if it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        message = "there is no such file"
    except IsADirectoryError:
        message = "this is a folder, not a file"
    except PermissionError:
        message = "this file may not be read (permission denied)"
    except (OSError, ValueError) as error:
        message = f"this file can't be read: {getattr(error, 'strerror', None) or error}"
    raise ScenarioError([Problem(shown, None, None, "", message)])


def decoded(content: bytes, shown: str, names_encodings: bool = False) -> str:
    """Decode UTF-8, without a byte order mark.

    Raises ScenarioError with the location of the first byte that is not UTF-8. With
    `names_encodings` the message advises to set the encoding.
    """
    # Spreadsheets call UTF-16 "Unicode text"; as UTF-8 its first byte would be the error.
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        message = "this is UTF-16; save it as UTF-8" + (
            ", or say encoding: utf-16 beside file" if names_encodings else ""
        )
        raise ScenarioError([Problem(shown, 1, 1, "", message)])
    if content.startswith(_ZIP):
        message = (
            "this is a zip file, as Excel workbooks are; save it as text (in Excel: CSV UTF-8)"
        )
        raise ScenarioError([Problem(shown, 1, 1, "", message)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        # utf-8-sig reports positions without the byte order mark.
        byte = content[len(content) - len(error.object) + error.start]
        message = f"byte 0x{byte:02X} is not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)"
        if names_encodings:
            message += ", or, if it comes from a Thai Windows, say encoding: cp874 beside file"
        raise ScenarioError([Problem(shown, line, column, "", message)]) from None


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
                message = "no files of this machine are read here: send the list first"
                raise ScenarioError([Problem(name, None, None, "", message)])
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
        "no key is possible here: a quote above is not closed, or this line is not aligned with "
        "a key",
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
    """Return a message for a syntax error in `text`, in plain words if known, else in YAML's."""
    problem, mark = error.problem or "", error.problem_mark
    # The mark of an unclosed construct may lie after the last line.
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    char = line[mark.column : mark.column + 1] if mark else ""
    if char == "\t" or "'\\t'" in problem:
        return "a tab is not allowed here: indent by spaces"
    for key, message in _TEXTS:
        if key in problem:
            return f"not valid YAML: {message.replace('CHAR', char)}"
    return f"not valid YAML: {problem}"


MOST_EXPANDED = 100_000
"""Upper limit of values added by aliases, which repeat the values of anchors."""

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


def parse_yaml(text: str, file: str, problems: Problems) -> Document:
    """Parse the one YAML document in `text`; `file` is the name in locations.

    Faults such as duplicate keys are added to `problems`. Raises ScenarioError, with all problems
    so far, for a missing document or wrong syntax.
    """
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        column = control.start() - text.rfind("\n", 0, control.start())
        message = f"the control character U+{ord(control.group()):04X} is not allowed in YAML"
        problems.fail(problem_at(Location(file, line, column), (), message))
    if text.lstrip()[:1] in {"{", "["}:
        text = _json_for_libyaml(text)
    document = _composed(text, file, problems, _LOADER)
    if not document.locations:
        problems.fail(problem_at(Location(file, 1, 1), (), "there is nothing in this file"))
    return document


def _composed(text: str, file: str, problems: Problems, loader: Any) -> Document:
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
        problems.fail(problem_at(location, (), reworded(error, text)))
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
    """A collection that is being read: anchor, and key or index of the value that comes next.

    The key of a mapping is None while a key is expected.
    """

    path: NodePath
    values: dict[str, Any] | list[Any]
    anchor: str | None
    key: str | int | None


class _Composer:
    """Builder of the document from events, with a stack of open collections.

    Rejected: `yaml.compose`, which recurses, so that a hundred thousand brackets make its C version
    crash the interpreter. Its nodes also lack the location of an alias, and do not distinguish a
    written tag from one that YAML 1.1 resolved; errors name both.
    """

    def __init__(self, file: str, problems: Problems) -> None:
        self.document = Document({})
        self._file = file
        self._problems = problems
        self._stack: list[_Open] = []
        # None marks an open collection: an alias inside it would make a cycle.
        self._anchors: dict[str, NodePath | None] = {}
        self._expanded = 0

    @property
    def _here(self) -> NodePath:
        if not self._stack:
            return ()
        parent = self._stack[-1]
        return parent.path if parent.key is None else (*parent.path, parent.key)

    def take(self, event: Any) -> None:
        location = _location(self._file, getattr(event, "start_mark", None))
        expects_key = bool(self._stack) and self._stack[-1].key is None
        if isinstance(event, yaml.ScalarEvent) and expects_key:
            self._key(event.value, location)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, location)
        elif isinstance(event, yaml.CollectionStartEvent) and expects_key:
            self._stop(location, _NO_TEXT)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event, location)
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self._stack.pop()
            self._close(closed.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), location, expects_key)
        elif isinstance(event, yaml.DocumentStartEvent) and self.document.locations:
            self._stop(location, "a second document begins here: a scenario is one document")

    def _note(self, location: Location, message: str, *key: str) -> None:
        self._problems.note(problem_at(location, (*self._here, *key), message))

    def _stop(self, location: Location, message: str) -> NoReturn:
        self._problems.fail(problem_at(location, self._here, message))

    def _insert(self, value: Any, location: Location) -> None:
        """Insert a value at the current position."""
        # The first of duplicate keys wins, with its locations; `_key` has reported the second.
        self.document.locations.setdefault(self._here, location)
        if not self._stack:
            self.document.values = value
            return
        parent = self._stack[-1]
        if isinstance(parent.values, list):
            parent.values.append(value)
        else:
            parent.values.setdefault(str(parent.key), value)

    def _close(self, anchor: str | None = None) -> None:
        """Leave a complete value: the current position becomes the next one."""
        if anchor is not None:
            self._anchors[anchor] = self._here
        if self._stack:
            parent = self._stack[-1]
            parent.key = parent.key + 1 if isinstance(parent.key, int) else None

    def _key(self, text: str, location: Location) -> None:
        block = self._stack[-1]
        path = (*self._here, text)
        if text in block.values:
            first = self.document.keys[path]
            self._note(location, f"is here twice; the first is in line {first.line}", text)
        self.document.keys.setdefault(path, location)
        block.key = text

    def _open(self, event: Any, location: Location) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in {None, "!", _TAG + ("map" if is_mapping else "seq")}:
            self._note(
                location, f"must not have the tag {_shown(event.tag)}; write the value alone"
            )
        self._push({} if is_mapping else [], event.anchor, location, location)
        if event.anchor is not None:
            self._anchors[event.anchor] = None

    def _push(
        self, values: dict[str, Any] | list[Any], anchor: str | None, own: Location, seen: Location
    ) -> None:
        """Begin a collection at a location; errors about its depth are located at `seen`."""
        if len(self._stack) >= DEEPEST:
            # The path in the error would otherwise have fifty parts.
            del self._stack[3:]
            self._stop(seen, f"is nested more than {DEEPEST} levels deep")
        self._insert(values, own)
        key = 0 if isinstance(values, list) else None
        self._stack.append(_Open(self._here, values, anchor, key))

    def _alias(self, anchor: str, location: Location, is_key: bool) -> None:
        if anchor not in self._anchors:
            message = f"is *{anchor}, but nothing above has the anchor &{anchor}"
            self._stop(location, message)
        path = self._anchors[anchor]
        if path is None:
            self._stop(location, f"is *{anchor}, which stands inside what it repeats")
        source, depth = self.document.root.at(*path), len(self._stack)
        if is_key and isinstance(source.value, dict | list):
            self._stop(location, _NO_TEXT)
        if is_key:
            self._key(source.written, location)
            return
        try:
            self._repeat(source, location)
        except OverflowError:
            del self._stack[depth:]
            message = f"is *{anchor}, but aliases may repeat at most {MOST_EXPANDED} values"
            self._stop(location, message)

    def _repeat(self, source: Cursor, location: Location) -> None:
        """Insert a copy of a value, so that an override of one does not change the other.

        Raises OverflowError for too many values: a few nested aliases stand for billions ("billion
        laughs").
        """
        self._expanded += 1
        if self._expanded > MOST_EXPANDED:
            raise OverflowError
        value = source.value
        if isinstance(value, dict | list):
            self._push(type(value)(), None, source.location, location)
            for below in (*source.items(), *(entry for _, entry in source.entries())):
                if isinstance(value, dict):
                    self._key(str(below.path[-1]), below.key_location)
                self._repeat(below, location)
            self._stack.pop()
        else:
            self._insert(value, source.location)
            self.document.written.setdefault(self._here, source.written)
        self._close()

    def _scalar(self, event: Any, location: Location) -> None:
        text, tag = event.value, event.tag
        value = self._resolved(text, location) if event.implicit[0] else text
        if not event.implicit[0] and tag not in {None, "!", _TAG + "str"}:
            self._note(location, f"must not have the tag {_shown(tag)}; write the value alone")
        self._insert(value, location)
        if not isinstance(value, str):
            self.document.written.setdefault(self._here, text)
        self._close(event.anchor)

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
