"""Overrides: changes of a document, `PATH=VALUE`, `PATH+=VALUE` and `PATH-=VALUE`.

They change the values of the file before it is checked. Values may use a planner's notation: an
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
from typing import Any

from pydantic import ValidationError

from dialsim.errors import ScenarioError
from dialsim.interface.instants import day_start, format_instant
from dialsim.interface.phrases import few
from dialsim.interface.schedule import DEFAULT_TIME_WINDOWS, DayWindows
from dialsim.scenario.campaign import CHOICES
from dialsim.scenario.document import Cursor, Document, Location, NodePath, parse_yaml
from dialsim.scenario.fields import made_up_phone
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.scenario import RENAMED_KEYS, known_keys
from dialsim.scenario.service import calling_begins
from dialsim.scenario.units import NEXT_CALLING_DAY, is_next_day, parse_duration
from dialsim.scenario.week import (
    Week,
    instant_in_words,
    read_windows,
    union,
    week_of,
    week_text,
    windows_of,
    without,
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
    """Part of a document: path, names, and words that lead to paths below.

    Words in `named_only` are only valid after the name of the part.
    """

    path: str
    words: Mapping[str, str]
    names: tuple[str, ...] = ()
    named_only: frozenset[str] = field(default=frozenset({"name", "id", "description"}))

    def full(self, rest: str) -> str | None:
        """Return the full path of a short one, if its first word is known here."""
        word, dot, below = rest.partition(".")
        known = self.words.get(word)
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
        raise ValueError(f"{path} is ambiguous; write {few(found[:6], len(found), 'or')}")
    if named:
        raise ValueError(_unknown_word([(name, scope) for scope, name, _ in named], named[0][2]))
    raise ValueError(_unknown(path, first, top, scopes))


def _unknown_word(named: list[tuple[str, _Scope]], rest: str) -> str:
    word = rest.partition(".")[0]
    known = list(dict.fromkeys(word for _, scope in named for word in scope.words))
    near = get_close_matches(RENAMED_KEYS.get(word, word), known, n=1)
    hint = f"did you mean {named[0][0]}.{near[0]}?" if near else f"it has {', '.join(known)}"
    return f"{named[0][0]} has no {word or 'empty key'}; {hint}"


def _unknown(path: str, first: str, top: list[str], scopes: list[_Scope]) -> str:
    """Return the error text for a path whose first part is neither a key, a word nor a name."""
    names = [name for scope in scopes for name in scope.names]
    words = [word for scope in scopes for word in scope.words if word not in scope.named_only]
    if path in names:
        scope = next(scope for scope in scopes if path in scope.names)
        example = f"{path}.{next(iter(scope.words))}"
        return f"{path} is a name alone: write one of its settings, such as {example}"
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
    # The word `lines` means the number of lines; the block `lines` needs its full path.
    words = {key: key for key in known_keys(organization.path, values)} | _ORGANIZATION_WORDS
    # Without a name, `callerIds` means the numbers that a campaign calls from.
    only = frozenset({"name", "id", "callerIds"})
    yield _Scope(path, words, (own,) if own else (), only)
    for kind in ("campaigns", "agents"):
        for item in organization.at(kind).items():
            below, name = _path_and_name(item, f"{path}.{kind}")
            names = (name, f"{own}/{name}", f"{own}.{name}") if name and own else ()
            words = {key: key for key in known_keys(item.path, values)}
            if kind == "campaigns":
                schedule = {key: f"schedule.{key}" for key in _SCHEDULE}
                words = schedule | words | _CAMPAIGN_WORDS
            yield _Scope(below, words, names)


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


def apply(overrides: Items[str], document: Document, problems: Problems) -> list[Understood]:
    """Apply overrides such as `organizations.Acme.maxConcurrentCalls=40` to a document, in order.

    Parts of a path are keys, and for list items their index from 0 or their `name`, which may
    contain dots; short paths are accepted. Missing keys are created, missing items are not. The
    value is YAML. `+=` adds to a list, `-=` removes from it. Faulty overrides are added to
    `problems`, under their own text. Returns the readings that deserve mention.
    """
    understood = []
    for text in overrides:
        try:
            override = _Override.read(text, document)
            override.carry_out()
            understood.append(override.understood())
        except ScenarioError as error:
            for problem in error.problems:
                problems.note(problem)
    return [one for one in understood if one is not None]


_INSTANTS = {"startDateTime", "endDateTime", "scheduledAt", "at", "from", "to", "lastEndedAt"}
_SHARES = {"outcomes", "rates", "segments", "values"}
_SHARE_KEYS = {"reachable", "deadNumbers", "errorRate", "share"}
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_MOST_CALLER_IDS = 1000


@dataclass(slots=True)
class _Override:
    """An override during its interpretation: the position that it changes, and the new value.

    `short` is the path as it is written, `path` the full one, and `change` is `+`, `-` or empty.
    """

    override: str
    short: str
    path: str
    change: str
    value: Cursor
    target: Cursor
    instants: dict[str, int] = field(default_factory=dict)
    windows: str = ""
    caller_ids: tuple[str, ...] = ()

    @classmethod
    def read(cls, override: str, document: Document) -> _Override:
        """Read the text of an override. Raises ScenarioError."""
        left, equals, text = override.partition("=")
        # Values are located at the override, so that errors name it and not a line of the file.
        origin, short = _origin(override), left.strip()
        change = short[-1:] if short[-1:] in ("+", "-") else ""
        short = short.removesuffix(change).strip()
        if not equals or not short:
            raise _refused(origin, "", "an override is PATH=VALUE, such as seed=7")
        value = _value(text, origin)
        try:
            path = full_path(short, document.root)
        except ValueError as error:
            raise _refused(origin, short, str(error)) from None
        target = _target(path.split("."), document.root, origin)
        return cls(override, short, path, change, value, target)

    def carry_out(self) -> None:
        """Change the document."""
        key, value = self.target.path[-1], self.value.value
        if key == "timeWindows" and (self.change or self.value.text is not None):
            self._put(self._windows())
            return
        if key == "callerIds":
            value = self._caller_ids()
        value = self._in_words(value, self.target.path)
        if self.change == "+":
            present = len(self._list())
            if not present:
                self._put([])
            # One by one, so that earlier items keep their locations.
            for index, item in enumerate(_several(value), present):
                self._put(item, index)
        elif self.change == "-":
            self._remove(value)
        else:
            self._put(value)

    def understood(self) -> Understood | None:
        """Return the reading of the override, or None if it needed no interpretation."""
        if self.path == self.short and not (self.instants or self.windows or self.caller_ids):
            return None
        return Understood(self.override, self.path, self.instants, self.windows, self.caller_ids)

    @property
    def _root(self) -> Cursor:
        return self.target.document.root

    def _put(self, value: object, *below: int) -> None:
        path = (*self.target.path, *below)
        self.target.document.put(path, value, _origin(self.override))

    def _refuse(self, message: str) -> ScenarioError:
        return _refused(_origin(self.override), self.path, f"{self.path} {message}")

    # -- words ------------------------------------------------------------------------------------

    def _in_words(self, value: Any, keys: NodePath) -> Any:
        """Convert instants, durations and shares in words to the notation of files."""
        if isinstance(value, dict):
            return {key: self._in_words(part, (*keys, key)) for key, part in value.items()}
        if isinstance(value, list):
            return [self._in_words(item, (*keys, 0)) for item in value]
        return self._word(value, keys) if isinstance(value, str) else value

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
        begin = calling_begins(self._root)
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

    def _list(self) -> list[Any]:
        """Return the present list at the path; empty if there is none."""
        if self.target.exists and not isinstance(self.target.value, list):
            raise self._refuse(f"is no list: {self.change}= is for lists")
        return self.target.value or []

    def _remove(self, value: object) -> None:
        listed = self._list()
        for unwanted in _several(value):
            # Only the first match is removed, as each `-=` takes one item away.
            found = [i for i, item in enumerate(listed) if _shown(item) == _shown(unwanted)]
            if not found:
                shown = [_shown(item) for item in listed]
                known = f"; it has {few(shown[:8], len(shown))}" if shown else ": it is empty"
                raise self._refuse(f"has no item {_shown(unwanted)}{known}")
            self.target.document.remove(self.target.path, found[0])

    def _windows(self) -> list[dict[str, object]]:
        text = self.value.text
        if self._root.at(*self.target.path[:-2], "callingHours").exists:
            raise self._refuse("can't be changed: the campaign has callingHours instead")
        try:
            week = wanted = (
                _week(self.value)
                if text is None
                else read_windows(text, spans_needed=self.change != "-")
            )
        except ValueError as error:
            raise self._refuse(str(error)) from None
        if self.change:
            try:
                now = _week(self.target)
            except ValueError:
                message = f"can't be changed by {self.change}=: its present value is invalid"
                raise self._refuse(message) from None
            # Windows are sets of minutes: adding is the union and removing the difference, whatever
            # the entries in the file.
            if self.change == "+":
                week = {
                    day: union([*now.get(day, ()), *wanted.get(day, ())]) for day in now | wanted
                }
            else:
                week = {day: without(spans, wanted.get(day, ())) for day, spans in now.items()}
            if week == now:
                verb = "open already" if self.change == "+" else "not open"
                raise self._refuse(f'has "{text}" {verb}: it is {week_text(now)}')
            if not any(week.values()):
                raise self._refuse("must leave some time for calls")
        self.windows = week_text(week)
        return windows_of(week)

    # -- caller IDs -------------------------------------------------------------------------------

    def _caller_ids(self) -> object:
        """Return numbers as texts; a count becomes existing or made-up numbers."""
        given, count = self.value, self.value.value
        if isinstance(count, list):
            return [_number(item) for item in given.items()]
        if self.change or type(count) is not int:
            return _number(given)
        # YAML 1.2 reads 021000001 as the integer 21000001; the text still shows that a phone number
        # was meant.
        if given.written.startswith("0") and count:
            raise self._refuse(
                f'must be a list of numbers, ["{given.written}"], or how many of them: 3, for '
                "instance"
            )
        if not 1 <= count <= _MOST_CALLER_IDS:
            raise self._refuse(f"must be 1 to {_MOST_CALLER_IDS:,} caller IDs, not {count}")
        block = self._root.at(*self.target.path[:2], "callerIds")
        owned = [str(_number(item)) for item in block.items()]
        # Numbers in use are kept first, so that fewer or more numbers change as little as possible.
        known = list(dict.fromkeys([*map(str, map(_number, self.target.items())), *owned]))
        made = (number for k in range(1, 2 * _MOST_CALLER_IDS)
                if (number := made_up_phone(k)) not in known)  # fmt: skip
        numbers = [*known, *(next(made) for _ in range(len(known), count))][:count]
        missing = [number for number in numbers if number not in owned]
        # A campaign may only call from numbers of its organization, so that made-up ones are added
        # there too.
        if missing and block.path != self.target.path:
            block.document.put(block.path, [*owned, *missing], _origin(self.override))
        self.caller_ids = tuple(numbers)
        return numbers


def _number(item: Cursor) -> object:
    """Return a phone number as text, without requiring the quotes that a file needs."""
    return item.written if type(item.value) is int else item.value


def _several(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _shown(item: Any) -> str:
    """Return the name of an item, else its text. Items with an equal result count as equal."""
    name = item.get("name") if isinstance(item, dict) else None
    return str(item if name is None else name)


def _week(windows: Cursor) -> Week:
    """Return the week of `timeWindows`; the default week if there are none."""
    read: Iterable[DayWindows] = DEFAULT_TIME_WINDOWS
    if windows.exists:
        try:
            read = [DayWindows.model_validate(item) for item in _several(windows.value)]
        except ValidationError:
            message = "must be days and times such as Mon-Fri 09:00-19:00, or a list as in the file"
            raise ValueError(message) from None
    return week_of(read)


def _value(text: str, origin: Location) -> Cursor:
    """Return the YAML value of an override."""
    if not text.strip():
        return Document.of(None, origin).root
    try:
        found = Problems(origin.file)
        value = parse_yaml(text, origin.file, found)
        found.raise_if_any()
    except ScenarioError as error:
        raise _refused(origin, "", error.problems[0].message) from None
    return value.root


def _target(parts: list[str], root: Cursor, origin: Location) -> Cursor:
    """Return the position of a path, whose last parts need not exist."""
    cursor, done = root, 0
    while done < len(parts):
        if isinstance(cursor.value, list):
            index, taken = _item(cursor, parts[done:], origin)
            cursor, done = cursor.at(index), done + taken
            continue
        # Longest first, because a key such as funnel.Promised contains dots.
        ends = range(len(parts), done, -1)
        known = dict(cursor.entries())
        end = next((end for end in ends if ".".join(parts[done:end]) in known), done + 1)
        cursor, done = cursor.at(".".join(parts[done:end])), end
    return cursor


def _item(listed: Cursor, parts: list[str], origin: Location) -> tuple[int, int]:
    """Return the index of the next item in the path, and the number of parts in its name."""
    part, here, count = parts[0], ".".join(map(str, listed.path)), len(listed.value)
    if part.isascii() and part.isdigit() and len(part) < 10:
        if int(part) < count:
            return int(part), 1
        items = f"items 0 to {count - 1}" if count else "no items"
        message = f"{here}.{part} is not there: {here} has {items}"
        raise _refused(origin, f"{here}.{part}", message)
    names = [item.at("name").text for item in listed.items()]
    # Longest first, because names of items may contain dots.
    for taken in range(len(parts), 0, -1):
        name = ".".join(parts[:taken])
        if names.count(name) > 1:
            message = f"{here}.{name} is ambiguous: several items have this name; use the index"
            raise _refused(origin, f"{here}.{name}", message)
        if name in names:
            return names.index(name), taken
    known = ", ".join(name for name in names[:10] if name is not None)
    message = f"{here} has no item named {part}" + (f"; there are {known}" if known else "")
    raise _refused(origin, f"{here}.{part}", message)


def _origin(override: str) -> Location:
    return Location(f"--set {override}")


def _refused(origin: Location, path: str, message: str) -> ScenarioError:
    return ScenarioError([Problem(origin.file, None, None, path, message)])
