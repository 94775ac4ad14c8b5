"""Short paths: `lines` or `Debt.maxAttempts` for what a document has under a long path.

A short path is a word, alone where only one part of the document can be meant, or behind the name
of an organization, a campaign, an agent or a behaviour. A path that begins with a key of the top
level is never a short one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from dialsim.scenario.document import Cursor
from dialsim.scenario.error_text import few
from dialsim.scenario.schema import known_keys

_ORGANIZATION_WORDS = {"lines": "maxConcurrentCalls"}
_CAMPAIGN_WORDS = {
    "windows": "schedule.timeWindows",
    "start": "schedule.startDateTime",
    "end": "schedule.endDateTime",
    "people": "recipients.count",
}
_SCHEDULE = (
    "startDateTime", "endDateTime", "timeWindows", "maxAttempts", "retryInterval", "callerIds",
    "sipAccountId", "sipCallerId", "ttsVoiceKeys", "removeDuplicates",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Scope:
    """A part of a document: its path, the names that it goes by, and the words that it knows.

    `words` lead to paths below; `own` are words that planners use, with nothing below, and come
    first. Those in `named_only` need its name in front.
    """

    path: str
    words: Mapping[str, str]
    names: tuple[str, ...] = ()
    named_only: frozenset[str] = field(default=frozenset({"name", "id", "description"}))
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_words(self) -> tuple[str, ...]:
        """What it may be asked for."""
        return (*self.words, *self.own)

    def full(self, rest: str) -> str | None:
        """The full path of what stands below, if its first word is known here."""
        word, dot, below = rest.partition(".")
        known = self.words.get(word) if dot else {**self.words, **self.own}.get(word)
        return None if known is None else f"{self.path}.{known}{dot}{below}"


def full_path(path: str, root: Cursor) -> str:
    """The path as it leads from the top of the document; the same one if it does already.

    Raises ValueError for a path that could be several, or none.
    """
    path = path.strip()
    first = path.partition(".")[0]
    top = known_keys((), root.value)
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
    found = list(dict.fromkeys(found))
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{path} could be several; write {_either(found)}")
    if named:
        raise ValueError(_unknown_word([(name, scope) for scope, name, _ in named], named[0][2]))
    raise ValueError(_unknown(path, first, top, scopes))


def _either(paths: list[str]) -> str:
    return few(paths[:6], len(paths), ", ").replace(" and ", " or ")


def _unknown_word(named: list[tuple[str, _Scope]], rest: str) -> str:
    word = rest.partition(".")[0]
    known = list(dict.fromkeys(word for _, scope in named for word in scope.all_words))
    near = get_close_matches(word, known, n=1)
    hint = f"did you mean {named[0][0]}.{near[0]}?" if near else f"it has {', '.join(known)}"
    return f"{named[0][0]} has no {word or 'empty key'}; {hint}"


def _unknown(path: str, first: str, top: list[str], scopes: list[_Scope]) -> str:
    """What is said of a path whose first part is neither a key, a word nor a name."""
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
        # people alone are those that a campaign calls
        only = frozenset({"people"})
        yield _Scope(f"behaviours.{name}", {key: key for key in keys}, (name,), only)


def _of_organization(organization: Cursor, values: object) -> Iterator[_Scope]:
    path, own = _place(organization, "organizations")
    keys = {key: key for key in known_keys(organization.path, values)}
    # callerIds alone are those that a campaign calls from
    only = frozenset({"name", "id", "callerIds"})
    yield _Scope(path, keys, (own,) if own else (), only, _ORGANIZATION_WORDS)
    for kind in ("campaigns", "agents"):
        for item in organization.at(kind).items():
            below, name = _place(item, f"{path}.{kind}")
            names = (name, f"{own}/{name}", f"{own}.{name}") if name and own else ()
            words = {key: key for key in known_keys(item.path, values)}
            if kind == "campaigns":
                schedule = {key: f"schedule.{key}" for key in _SCHEDULE}
                words = schedule | words
            own_words = _CAMPAIGN_WORDS if kind == "campaigns" else {}
            yield _Scope(below, words, names, own=own_words)


def _place(item: Cursor, above: str) -> tuple[str, str | None]:
    """The path of an item of a list, by its name where that leads there, and the name."""
    name = item.at("name").text
    by_index = not name or (name.isascii() and name.isdigit())
    return f"{above}.{item.path[-1] if by_index else name}", name
