"""Overrides: changes of a document, `PATH=VALUE`, `PATH+=VALUE` and `PATH-=VALUE`.

They change the tree of the file before it is checked. Values may use a planner's notation: an
instant as `Fri 18:00`, a duration or percentage in place of milliseconds or a share, windows as
`Mon-Fri 09:00-19:00`, caller IDs as their number.

`lines` and `Debt.maxAttempts` are short paths: a word, alone if only one part of the document can
be meant, or after the name of an organization, campaign, agent or behaviour. A path that begins
with a key of the top level is never short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from difflib import get_close_matches

from pydantic import ValidationError

from dialsim.errors import ScenarioError
from dialsim.interface.instants import day_start, format_instant
from dialsim.interface.phrases import few
from dialsim.interface.schedule import DEFAULT_TIME_WINDOWS, DayWindows
from dialsim.scenario.calendar import union, without
from dialsim.scenario.campaign import CHOICES
from dialsim.scenario.document import (
    Cursor,
    Location,
    MappingEntry,
    MappingNode,
    Node,
    NodePath,
    ScalarNode,
    SequenceNode,
    parse_yaml,
    plain,
    planted,
)
from dialsim.scenario.fields import made_up_phone
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.scenario import RENAMED_KEYS, known_keys
from dialsim.scenario.service import calling_begins
from dialsim.scenario.units import NEXT_CALLING_DAY, is_next_day, parse_duration
from dialsim.scenario.week import (
    Week,
    instant_in_words,
    read_windows,
    week_text,
    windows_of,
)

_ORGANIZATION_WORDS = {"lines": "maxConcurrentCalls"}
_CAMPAIGN_WORDS = {
    "windows": "schedule.timeWindows",
    "start": "schedule.startDateTime",
    "end": "schedule.endDateTime",
    "people": "recipients.count",
    **{key: f"recipients.{key}" for key in CHOICES},
}
_SCHEDULE = (
    "startDateTime", "endDateTime", "timeWindows", "maxAttempts", "retryInterval", "callerIds",
    "sipAccountId", "sipCallerId", "ttsVoiceKeys", "removeDuplicates",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Scope:
    """Part of a document: path, names and words for short paths.

    `words` lead to paths below. `own` are planners' words for single values; they come first. Words
    in `named_only` are only valid after the name of the part.
    """

    path: str
    words: Mapping[str, str]
    names: tuple[str, ...] = ()
    named_only: frozenset[str] = field(default=frozenset({"name", "id", "description"}))
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_words(self) -> tuple[str, ...]:
        """All words for values of the part."""
        return (*self.words, *self.own)

    def full(self, rest: str) -> str | None:
        """Return the full path of a short one, if its first word is known here."""
        word, dot, below = rest.partition(".")
        # Words of its own, such as `windows`, stand for whole values, so that nothing can follow
        # them.
        known = self.words.get(word) if dot else {**self.words, **self.own}.get(word)
        return None if known is None else f"{self.path}.{known}{dot}{below}"


def full_path(path: str, root: Cursor) -> str:
    """Return the full path for a short one; a full path is returned unchanged.

    Raises ValueError for an ambiguous or unknown path.
    """
    path = path.strip()
    first = path.partition(".")[0]
    top = known_keys((), root.value)
    # Keys of the file go first: a campaign named `engine` must not change what `engine.order`
    # means.
    if first in top:
        return path
    scopes = list(_scopes(root))
    named = [
        (scope, name, path[len(name) + 1 :])
        for scope in scopes
        for name in scope.names
        if path.startswith(f"{name}.")
    ]
    found = [full for scope, _, rest in named if (full := scope.full(rest)) is not None]
    if not named:
        found = [
            full
            for scope in scopes
            if first not in scope.named_only and (full := scope.full(path)) is not None
        ]
    # Scopes overlap, for instance a campaign found by two of its names; equal paths are not
    # ambiguous.
    found = list(dict.fromkeys(found))
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{path} could be several; write {few(found[:6], len(found), 'or')}")
    if named:
        raise ValueError(_unknown_word([(name, scope) for scope, name, _ in named], named[0][2]))
    raise ValueError(_unknown(path, first, top, scopes))


def _unknown_word(named: list[tuple[str, _Scope]], rest: str) -> str:
    word = rest.partition(".")[0]
    known = list(dict.fromkeys(word for _, scope in named for word in scope.all_words))
    near = get_close_matches(RENAMED_KEYS.get(word, word), known, n=1)
    hint = f"did you mean {named[0][0]}.{near[0]}?" if near else f"it has {', '.join(known)}"
    return f"{named[0][0]} has no {word or 'empty key'}; {hint}"


def _unknown(path: str, first: str, top: list[str], scopes: list[_Scope]) -> str:
    """Return the error text for a path whose first part is neither a key, a word nor a name."""
    names = [name for scope in scopes for name in scope.names]
    words = [word for scope in scopes for word in scope.all_words if word not in scope.named_only]
    if path in names:
        scope = next(scope for scope in scopes if path in scope.names)
        return f"{path} needs what of it is meant: {path}.{next(iter(scope.words))}, for instance"
    known = [*top, *(names if first != path else words)]
    near = get_close_matches(first, known, n=1)
    if near:
        return f"{first} is not a known key; did you mean {near[0]}{path[len(first) :]}?"
    return (
        f"{first} is neither a key of the file nor a name in it; paths are such as lines, "
        "CAMPAIGN.maxAttempts or organizations.ORGANIZATION.maxConcurrentCalls"
    )


def _scopes(root: Cursor) -> Iterator[_Scope]:
    values = root.value
    for block in ("engine", "costs"):
        yield _Scope(block, {key: key for key in known_keys((block,), values)})
    for organization in root.at("organizations").items():
        yield from _of_organization(organization, values)
    behaviours = dict.fromkeys([*(key for key, _ in root.at("behaviours").entries()), "default"])
    for name in behaviours:
        keys = known_keys(("behaviours", name), values)
        # Without a name, `people` means the number of a campaign's recipients.
        only = frozenset({"people"})
        yield _Scope(f"behaviours.{name}", {key: key for key in keys}, (name,), only)


def _of_organization(organization: Cursor, values: object) -> Iterator[_Scope]:
    path, own = _path_and_name(organization, "organizations")
    keys = {key: key for key in known_keys(organization.path, values)}
    # Without a name, `callerIds` means the numbers that a campaign calls from.
    only = frozenset({"name", "id", "callerIds"})
    yield _Scope(path, keys, (own,) if own else (), only, _ORGANIZATION_WORDS)
    for kind in ("campaigns", "agents"):
        for item in organization.at(kind).items():
            below, name = _path_and_name(item, f"{path}.{kind}")
            names = (name, f"{own}/{name}", f"{own}.{name}") if name and own else ()
            words = {key: key for key in known_keys(item.path, values)}
            if kind == "campaigns":
                schedule = {key: f"schedule.{key}" for key in _SCHEDULE}
                words = schedule | words
            own_words = _CAMPAIGN_WORDS if kind == "campaigns" else {}
            yield _Scope(below, words, names, own=own_words)


def _path_and_name(item: Cursor, above: str) -> tuple[str, str | None]:
    """Return the path of a list's item, by its name if possible, and the name."""
    name = item.at("name").text
    # A name of digits would be read as an index.
    by_index = not name or (name.isascii() and name.isdigit())
    return f"{above}.{item.path[-1] if by_index else name}", name


@dataclass(frozen=True, slots=True)
class Understood:
    """Reading of an override that needed interpretation.

    `path` is the full path. `instants` maps instants in words to ms. `windows` is a campaign's
    whole week after a change of it; `caller_ids` are the numbers chosen for a count.
    """

    override: str
    path: str
    instants: dict[str, int] = field(default_factory=dict)
    windows: str = ""
    caller_ids: tuple[str, ...] = ()


def apply(overrides: Items[str], root: Node, problems: Problems) -> list[Understood]:
    """Apply overrides such as `organizations.Acme.maxConcurrentCalls=40` to the tree, in order.

    Parts of a path are keys, and for list items their index from 0 or their `name`, which may
    contain dots; short paths are accepted. Missing keys are created, missing items are not. The
    value is YAML. `+=` adds to a list, `-=` removes from it. Faulty overrides are added to
    `problems`, under their own text. Returns the readings that deserve mention.
    """
    understood = []
    for override in overrides:
        try:
            understood.append(_apply(override, root))
        except ScenarioError as error:
            for problem in error.problems:
                problems.note(problem)
    return [one for one in understood if one is not None]


def _apply(override: str, root: Node) -> Understood | None:
    left, equals, text = override.partition("=")
    # Values are located at the override, so that errors name it and not a line of the file.
    origin, written = Location(f"--set {override}"), left.strip()
    change = written[-1:] if written[-1:] in ("+", "-") else ""
    written = written.removesuffix(change).strip()
    if not equals or not written:
        raise _refused(origin, "", "an override is PATH=VALUE, such as seed=7")
    value = _value(text, origin)
    try:
        path = full_path(written, Cursor.root(root))
    except ValueError as error:
        raise _refused(origin, written, str(error)) from None
    wish = _Wish(override, path, change, origin, root, _keys(path.split("."), root, origin))
    put_in(wish.met(value), path, root, origin)
    return wish.understood(written)


def put_in(value: Node, path: str, root: Node, origin: Location) -> None:
    """Put a value into the tree at a full path."""
    parts = path.split(".")
    node, done = root, 0
    while done < len(parts):
        node, done = _step(node, parts, done, value, origin)


def _keys(parts: list[str], root: Node, origin: Location) -> NodePath:
    """Return the keys and indices for the parts of a path."""
    keys: list[str | int] = []
    cursor, done = Cursor.root(root), 0
    while done < len(parts):
        if isinstance(cursor.node, SequenceNode):
            index, taken = _item(cursor.node, parts, done, origin)
            keys.append(index)
            done += taken
        else:
            node = cursor.node
            end = _key_end(node, parts, done) if isinstance(node, MappingNode) else done + 1
            keys.append(".".join(parts[done:end]))
            done = end
        cursor = cursor.at(keys[-1])
    return tuple(keys)


_INSTANTS = {"startDateTime", "endDateTime", "scheduledAt", "at", "from", "to", "lastEndedAt"}
_SHARES = {"outcomes", "rates", "segments", "values"}
_SHARE_KEYS = {"reachable", "deadNumbers", "errorRate", "share"}
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_MOST_CALLER_IDS = 1000


@dataclass(slots=True)
class _Wish:
    """An override during its interpretation: the position that it changes, and how."""

    override: str
    path: str
    change: str
    origin: Location
    root: Node
    keys: NodePath
    instants: dict[str, int] = field(default_factory=dict)
    windows: str = ""
    caller_ids: tuple[str, ...] = ()

    def met(self, value: Node) -> Node:
        """Return the node to put at the path."""
        key = self.keys[-1]
        if key == "timeWindows" and (self.change or _text(value)):
            return self._windows(value)
        if key == "callerIds":
            value = self._caller_ids(value)
        value = self._in_words(value, self.keys)
        if not self.change:
            return value
        return self._added(value) if self.change == "+" else self._removed(value)

    def understood(self, written: str) -> Understood | None:
        """Return the reading of the override, or None if it needed no interpretation."""
        if self.path == written and not (self.instants or self.windows or self.caller_ids):
            return None
        return Understood(self.override, self.path, self.instants, self.windows, self.caller_ids)

    @property
    def _now(self) -> Node | None:
        """Present node at the path."""
        cursor = Cursor.root(self.root).at(*self.keys)
        return cursor.node if cursor.exists else None

    def _refuse(self, says: str) -> ScenarioError:
        return _refused(self.origin, self.path, f"{self.path} {says}")

    # -- words ------------------------------------------------------------------------------------

    def _in_words(self, node: Node, keys: NodePath) -> Node:
        """Convert instants, durations and shares in words to the notation of files."""
        if isinstance(node, MappingNode):
            for key, entry in node.entries.items():
                entry.node = self._in_words(entry.node, (*keys, key))
        elif isinstance(node, SequenceNode):
            node.items = [self._in_words(item, (*keys, 0)) for item in node.items]
        elif isinstance(node.value, str):
            return planted(self._word(node.value, keys), self.origin)
        return node

    def _word(self, text: str, keys: NodePath) -> str | int | float:
        key = keys[-1]
        if key in _INSTANTS or keys[-2:-1] == ("clock",):
            return self._instant(text)
        if key == "retryInterval":
            if is_next_day(text):
                return NEXT_CALLING_DAY
            try:
                return parse_duration(text)
            except ValueError as error:
                raise self._refuse(f"{error}; or milliseconds, or {NEXT_CALLING_DAY}") from None
        percent = _PERCENT.fullmatch(text.strip())
        if percent and (key in _SHARE_KEYS or _SHARES & {*keys[-2:-1]}):
            # 12 digits remove the error of the division: 33.3 % is 0.333 and not
            # 0.33299999999999996.
            return round(float(percent[1]) / 100, 12)
        return text

    def _instant(self, text: str) -> str:
        begin = calling_begins(Cursor.root(self.root))
        try:
            instant = instant_in_words(text, day_start(begin or 0))
        except ValueError as error:
            raise self._refuse(str(error)) from None
        if instant is None:
            return text
        # `Fri 18:00` is relative to the first day of calling; a date is absolute.
        if begin is None and not text[0].isdigit():
            raise self._refuse(
                f'needs a date, as no campaign has a start that "{text}" could be counted from'
            )
        self.instants[text] = instant
        return format_instant(instant)

    # -- lists ------------------------------------------------------------------------------------

    def _list(self) -> SequenceNode:
        now = self._now
        if now is not None and not isinstance(now, SequenceNode):
            raise self._refuse(f"is no list: {self.change}= is for lists")
        return SequenceNode(self.origin) if now is None else now

    def _added(self, value: Node) -> Node:
        more = value.items if isinstance(value, SequenceNode) else [value]
        return SequenceNode(self.origin, [*self._list().items, *more])

    def _removed(self, value: Node) -> Node:
        left = list(self._list().items)
        for unwanted in value.items if isinstance(value, SequenceNode) else [value]:
            # Only the first match is removed, as each `-=` takes one item away.
            index = next((n for n, item in enumerate(left) if _is_same(item, unwanted)), None)
            if index is None:
                shown = [_shown(item) for item in left]
                known = f"; it has {few(shown[:8], len(shown))}" if shown else ": it is empty"
                raise self._refuse(f"has no item {_shown(unwanted)}{known}")
            del left[index]
        return SequenceNode(self.origin, left)

    def _windows(self, value: Node) -> Node:
        text = _text(value)
        if Cursor.root(self.root).at(*self.keys[:-2], "callingHours").exists:
            raise self._refuse("can't be changed: the campaign has callingHours in their place")
        try:
            wish = (
                _week(value)
                if text is None
                else read_windows(text, spans_needed=self.change != "-")
            )
        except ValueError as error:
            raise self._refuse(str(error)) from None
        week = wish
        if self.change:
            try:
                now = _week(self._now)
            except ValueError:
                says = f"can't be changed by {self.change}=: what stands there is not right"
                raise self._refuse(says) from None
            # Windows are sets of minutes: adding is the union and removing the difference, whatever
            # the entries in the file.
            if self.change == "+":
                week = {day: union([*now.get(day, ()), *wish.get(day, ())]) for day in now | wish}
            else:
                week = {day: without(spans, wish.get(day, ())) for day, spans in now.items()}
            if week == now:
                verb = "open already" if self.change == "+" else "not open"
                raise self._refuse(f'has "{text}" {verb}: it is {week_text(now)}')
            if not any(week.values()):
                raise self._refuse("must leave a time in which somebody may be called")
        self.windows = week_text(week)
        return planted(windows_of(week), self.origin)

    # -- caller IDs -------------------------------------------------------------------------------

    def _caller_ids(self, value: Node) -> Node:
        """Return numbers as texts; a count becomes existing or made-up numbers."""
        if isinstance(value, SequenceNode):
            value.items = [self._number(item) for item in value.items]
            return value
        if self.change or not (isinstance(value, ScalarNode) and type(value.value) is int):
            return self._number(value)
        count = value.value
        # YAML 1.2 reads 021000001 as the integer 21000001; the text still shows that a phone number
        # was meant.
        if value.text.startswith("0") and count:
            raise self._refuse(
                f'must be a list of numbers, ["{value.text}"], or how many of them: 3, for instance'
            )
        if not 1 <= count <= _MOST_CALLER_IDS:
            raise self._refuse(f"must be 1 to {_MOST_CALLER_IDS:,} caller IDs, not {count}")
        block = Cursor.root(self.root).at(*self.keys[:2], "callerIds")
        owned = [_shown(item.node) for item in block.items() if item.node is not None]
        own = [_shown(item) for item in self._list().items]
        # Numbers in use are kept first, so that fewer or more numbers change as little as possible.
        known = list(dict.fromkeys([*own, *owned]))
        made = (number for k in range(1, 2 * _MOST_CALLER_IDS)
                if (number := made_up_phone(k)) not in known)  # fmt: skip
        numbers = [*known, *(next(made) for _ in range(len(known), count))][:count]
        missing = [number for number in numbers if number not in owned]
        # A campaign may only call from numbers of its organization, so that made-up ones are added
        # there too.
        if missing and block.path != self.keys:
            above = ".".join(map(str, block.path))
            put_in(planted([*owned, *missing], self.origin), above, self.root, self.origin)
        self.caller_ids = tuple(numbers)
        return planted(numbers, self.origin)

    def _number(self, item: Node) -> Node:
        """Return a phone number as text, without requiring the quotes that a file needs."""
        if isinstance(item, ScalarNode) and type(item.value) is int:
            return ScalarNode(item.location, item.text, item.text)
        return item


def _text(node: Node) -> str | None:
    value = node.value if isinstance(node, ScalarNode) else None
    return value if isinstance(value, str) else None


def _is_same(item: Node, unwanted: Node) -> bool:
    """Return True if an item has this value, or this name."""
    return plain(item) == plain(unwanted) or _shown(item) == _shown(unwanted)


def _shown(item: Node) -> str:
    """Return an item's name, or its text."""
    return item.text if isinstance(item, ScalarNode) else (_name(item) or str(plain(item)))


def _week(node: Node | None) -> Week:
    """Return the week of `timeWindows`; the default week if there are none."""
    windows: Iterable[DayWindows] = DEFAULT_TIME_WINDOWS
    if node is not None:
        items = plain(node)
        try:
            windows = [DayWindows.model_validate(item) for item in _several(items)]
        except ValidationError:
            says = "must be days and times such as Mon-Fri 09:00-19:00, or a list as in the file"
            raise ValueError(says) from None
    week: Week = {}
    for item in windows:
        spans = [(span.start_minute, span.end_minute) for span in item.time]
        week[item.day_of_week] = union([*week.get(item.day_of_week, ()), *spans])
    return week


def _several(items: object) -> Iterator[object]:
    yield from items if isinstance(items, list) else [items]


def _value(text: str, origin: Location) -> Node:
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


def _move(node: Node, origin: Location) -> None:
    """Set the override as the location of a value and its parts."""
    node.location = origin
    if isinstance(node, SequenceNode):
        for item in node.items:
            _move(item, origin)
    elif isinstance(node, MappingNode):
        for entry in node.entries.values():
            entry.location = origin
            _move(entry.node, origin)


def _step(
    node: Node, parts: list[str], done: int, value: Node, origin: Location
) -> tuple[Node, int]:
    """Descend by one key or item; at the end of the path, put the value there."""
    here = ".".join(parts[:done])
    if isinstance(node, SequenceNode):
        index, taken = _item(node, parts, done, origin)
        last = done + taken == len(parts)
        node.items[index] = value if last else _own(node.items[index])
        return node.items[index], done + taken
    if not isinstance(node, MappingNode):
        says = f"{here} is a single value: nothing is below it"
        raise _refused(origin, here, says)
    upto = _key_end(node, parts, done)
    key, last = ".".join(parts[done:upto]), upto == len(parts)
    entry = node.entries.get(key)
    # A key without a value, as a commented-out block leaves it, counts as absent.
    missing = entry is None or (isinstance(entry.node, ScalarNode) and entry.node.value is None)
    if last or entry is None or missing:
        entry = MappingEntry(origin, value if last else MappingNode(origin))
    node.entries[key] = MappingEntry(entry.location, entry.node if last else _own(entry.node))
    return node.entries[key].node, upto


def _key_end(node: MappingNode, parts: list[str], done: int) -> int:
    """Return the index of the part at which the next key ends."""
    # Longest first, because a key such as funnel.Promised contains dots.
    ends = range(len(parts), done, -1)
    return next((end for end in ends if ".".join(parts[done:end]) in node.entries), done + 1)


def _own(node: Node) -> Node:
    """Return a shallow copy of a node, so that other aliases of it do not change."""
    if isinstance(node, SequenceNode):
        return SequenceNode(node.location, list(node.items))
    if isinstance(node, MappingNode):
        return MappingNode(node.location, dict(node.entries))
    return node


def _item(node: SequenceNode, parts: list[str], done: int, origin: Location) -> tuple[int, int]:
    """Return the index of the next item in the path, and the number of parts in its name."""
    part, here = parts[done], ".".join(parts[:done])
    if part.isascii() and part.isdigit() and len(part) < 10:
        if int(part) < len(node.items):
            return int(part), 1
        says = f"{here}.{part} is not there: {here} has {_count(len(node.items))}"
        raise _refused(origin, f"{here}.{part}", says)
    names = [_name(item) for item in node.items]
    # Longest first, because names of items may contain dots.
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


def _refused(origin: Location, path: str, says: str) -> ScenarioError:
    return ScenarioError([Problem(origin.file, None, None, path, says)])
