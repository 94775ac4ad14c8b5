"""`Sketch`: a small scenario in a few lines of Python, for tests of scheduling.

Sketches use Thai time (`Mon 09:00`) and windows in a planner's notation, as `dialsim.scenario` does
(`Mon-Fri 09:00-12:00 13:00-17:00; Sat 10:00-12:00`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dialsim.errors import DialsimError
from dialsim.interface.arguments import checked
from dialsim.interface.instants import (
    THAI,
    date_text,
    format_instant,
    ms_of,
    parse_instant,
    thai,
)
from dialsim.scenario.units import era_fault
from dialsim.scenario.week import instant_in_words, read_windows, windows_of

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Overrides, Scenario


When = str | datetime | float
"""`Mon 09:00` (Thai time), ISO 8601 text, an aware datetime, or seconds after the start."""

MONDAY = datetime(2026, 1, 5, tzinfo=THAI)
"""Monday of the week of `Mon 09:00`: 5 January 2026, 00:00 in Thailand."""

_DECIMALS = re.compile(r"(.*:\d\d:\d\d)\.(\d{1,3})")


@checked(DialsimError)
def at(text: str) -> datetime:
    """Parse an instant of Thai time into an aware datetime.

    `Mon 09:00` is in the week of Monday 5 January 2026, in which sketches begin. Other days need a
    date: `Mon 12 Jan 2026 09:00`, the format in which dialsim prints instants. Seconds may have
    decimals, `18:59:59.999`. Raises DialsimError for another form, and for a day or time that does
    not exist.

    >>> dialsim.testing.at("Mon 09:00").isoformat()
    '2026-01-05T09:00:00+07:00'
    """
    split = _DECIMALS.fullmatch(text.strip())
    whole, decimals = (text, "0") if split is None else split.groups()
    try:
        instant = instant_in_words(whole, ms_of(MONDAY))
    except ValueError as error:
        raise DialsimError(f"{text!r} {error}") from None
    if instant is None:
        raise DialsimError(
            f'{text!r} is no instant of Thai time such as "Mon 09:00" or "Mon 12 Jan 2026 09:00"'
        )
    return thai(instant + int(decimals.ljust(3, "0")))


def instant_of(when: When, start: int) -> int:
    """Return an instant in ms since 1970, UTC; a number is seconds after `start` (ms)."""
    fault = era_fault(str(when))
    if fault is not None:
        raise DialsimError(f"{when} {fault}")
    if isinstance(when, str):
        return parse_instant(when) if when[:4].isdigit() else ms_of(at(when))
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise DialsimError(f'{when} has no time zone; at("Mon 09:00") makes an instant')
        return ms_of(when)
    return start + round(when * 1000)


def stamp(instant: int) -> str:
    """Format an instant (ms, UTC) in a form that `at` accepts: `Mon 5 Jan 2026 09:00:02.000`."""
    return f"{date_text(instant)} {thai(instant):%H:%M:%S}.{instant % 1000:03}"


NUMBERS = ("021000001", "021000002", "021000003")
"""Default caller IDs of a sketch's organizations."""

_VALUE_OF = {
    "setConcurrency": "value",
    "setCallingAllowed": "value",
    "setBehaviour": "behaviour",
    "setWebhookUrl": "url",
}
_OF_CAMPAIGN = ("id", "calling_hours", "value", "priority", "weight", "reserved", "at_most")


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _recorded(method: _Method) -> _Method:
    """Append the call of a method to the `repr` of the sketch that it returns."""

    @wraps(method)
    def made(sketch: Sketch, *given: object, **keys: object) -> Sketch:
        new: Sketch = method(sketch, *given, **keys)
        new._written = f"{sketch!r}.{method.__name__}({_arguments(given, keys)})"
        return new

    return cast("_Method", made)


def _arguments(given: Sequence[object], keys: Mapping[str, object]) -> str:
    return ", ".join([*map(repr, given), *(f"{key}={value!r}" for key, value in keys.items())])


@checked(DialsimError)
class Sketch:
    """Scenario under construction. Every method returns a new sketch and leaves the old one
    unchanged.

    Nothing is random: people follow scripts, and setting up a line takes 2 s. Keyword arguments are
    keys of the scenario file in snake case (`queue_timeout="5m"`); nested values are written as in
    the file, instants as in the file or with `at`. Instants are Thai time (`Mon 09:00`, in the week
    of 5 January 2026) or seconds after the start. The loader checks the scenario when it is read.
    `repr` is the code that makes the sketch.

    >>> sketch = Sketch(lines=2).campaign("A", "busy 1s; answered 5s 90s", max_attempts=2)
    >>> sketch.at("Mon 10:00", "setConcurrency", 1)
    Sketch(2).campaign('A', 'busy 1s; answered 5s 90s', max_attempts=2).at('Mon 10:00', ...)
    >>> dialsim.run(sketch.scenario()).summary.people_reached
    1
    """

    def __init__(
        self,
        lines: int | None = None,
        *,
        start: When = "Mon 09:00",
        end: When | None = None,
        seed: int = 1,
        setup_time: object = "2s",
        **engine: object,
    ) -> None:
        """With `lines` create an organization `Acme` with this limit; `engine` are engine settings.

        With `setup_time` None the file defines no behaviour, so that the built-in random one
        applies.
        """
        default = {"setupTime": setup_time, "analysisDelay": "20s"}
        self._start = instant_of(start, 0)
        given = {"start": start, "end": end, "seed": seed, "setup_time": setup_time}
        usual = {"start": "Mon 09:00", "end": None, "seed": 1, "setup_time": "2s"}
        # A value of another type may have no truth of its own, such as a DataFrame.
        unusual = {
            key: value
            for key, value in given.items()
            if not isinstance(value, type(usual[key])) or value != usual[key]
        }
        self._written = f"Sketch({_arguments([] if lines is None else [lines], unusual | engine)})"
        self._document: dict[str, Any] = {
            "name": "Sketch",
            "seed": seed,
            "clock": {"start": self._text(start)},
            "engine": _wired(engine),
            "organizations": [],
            "behaviours": {} if setup_time is None else {"default": default},
        }
        if end is not None:
            self._document["clock"]["end"] = self._text(end)
        if lines is not None:
            self._add_organization("Acme", lines, {})

    def __repr__(self) -> str:
        return self._written

    @_recorded
    def also(self, **keys: object) -> Sketch:
        """Add keys at the top level: `name`, `costs`, `calendar`, `compliance`, …"""
        sketch = self._copy()
        sketch._document.update(_wired(keys))
        return sketch

    # -- who calls, and whom ----------------------------------------------------------------------

    @_recorded
    def organization(self, name: str, lines: int, **keys: object) -> Sketch:
        """Add an organization; the following campaigns and actions belong to it."""
        sketch = self._copy()
        sketch._add_organization(name, lines, keys)
        return sketch

    @_recorded
    def having(self, **keys: object) -> Sketch:
        """Add keys to the organization: `caller_ids`, `webhook`, `calling_allowed`, …"""
        sketch = self._copy()
        sketch._organization.update(_wired(keys))
        return sketch

    @_recorded
    def agent(self, name: str = "Agent", **keys: object) -> Sketch:
        """Add an agent, or keys of an existing one: `behaviour`, `analysis`, `voice_key`, …"""
        sketch = self._copy()
        sketch._agent(name).update(_wired(keys))
        return sketch

    @_recorded
    def campaign(
        self,
        name: str,
        *people: str | Mapping[str, object],
        recipients: object = None,
        requested: When | None = 0,
        agent: str = "Agent",
        **body: object,
    ) -> Sketch:
        """Add a campaign that calls `people`: scripts such as `busy 1s; answered 5s 90s`, or
        recipients.

        `recipients` is for the file's other ways to give recipients (`{"count": 200}`). `requested`
        is the instant of the schedule request; None leaves the campaign DRAFT. `body` is the
        request: `start`, `end` and `windows` in Thai time, `retry_interval` as a duration or ms,
        `max_attempts` and so on. By default the campaign starts at once with the interface's
        windows. `priority`, `weight`, `reserved` and `at_most` are its share of the lines; `id`,
        `calling_hours` and `value` are keys of the campaign as well.
        """
        sketch = self._copy()
        listed = [_recipient(index, person) for index, person in enumerate(people)]
        own = _wired({key: body.pop(key) for key in _OF_CAMPAIGN if key in body})
        written = {
            "name": name,
            "agent": agent,
            "recipients": listed if recipients is None else recipients,
            **own,
        }
        if requested is not None:
            written |= {"scheduledAt": self._text(requested), "schedule": self._request(body)}
        sketch._organization["campaigns"].append(written)
        # Adds the agent if it is missing.
        sketch._agent(agent)
        return sketch

    @_recorded
    def behaviour(self, name: str, **keys: object) -> Sketch:
        """Add a behaviour, or keys of an existing one: `setup_time`, `outcomes`, `talk_time`, …"""
        sketch = self._copy()
        sketch._document["behaviours"].setdefault(name, {}).update(_wired(keys))
        return sketch

    # -- actions during the run -------------------------------------------------------------------

    @_recorded
    def at(self, when: When, action: str, what: object = None, **keys: object) -> Sketch:
        """Add an action to the timeline.

        `what` is the campaign (`pause`, `resume`, `cancel`, `delete`, `schedule`, `reanalyze`), the
        value (`setConcurrency`, `setCallingAllowed`), the behaviour (`setBehaviour`) or the URL.
        For `schedule` the keywords belong to the request, as in `campaign`; otherwise they are
        further keys.
        """
        sketch = self._copy()
        written: dict[str, object] = {"at": self._text(when), "action": action}
        if action == "schedule":
            written |= {"campaign": what, "body": self._request(keys)}
        else:
            written |= {_VALUE_OF.get(action, "campaign"): what} | _wired(keys)
        if action == "setBehaviour":
            written.setdefault("agent", "Agent")
        sketch._organization.setdefault("timeline", []).append(written)
        return sketch

    # -- the scenario -----------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """Scenario as the text of a file."""
        return json.dumps(self._document, indent=2, ensure_ascii=False, default=_instant_text)

    def scenario(self, overrides: Overrides = ()) -> Scenario:
        """Read and check the scenario like a file; raises ScenarioError with all problems."""
        from dialsim.scenario.loading import loads

        return loads(self.text, name="<sketch>", overrides=overrides)

    # -- the rest ---------------------------------------------------------------------------------

    def _copy(self) -> Sketch:
        sketch = Sketch.__new__(Sketch)
        sketch._start = self._start
        sketch._written = self._written
        # Deep, because sketches are shared between tests as constants.
        sketch._document = deepcopy(self._document)
        return sketch

    @property
    def _organization(self) -> dict[str, Any]:
        if not self._document["organizations"]:
            raise DialsimError("the sketch has no organization yet: Sketch(lines=1) gives it one")
        newest: dict[str, Any] = self._document["organizations"][-1]
        return newest

    def _add_organization(self, name: str, lines: int, keys: Mapping[str, object]) -> None:
        written = {
            "name": name,
            "maxConcurrentCalls": lines,
            "callerIds": list(NUMBERS),
            "agents": [{"name": "Agent"}],
            "campaigns": [],
        }
        self._document["organizations"].append(written | _wired(keys))

    def _agent(self, name: str) -> dict[str, Any]:
        """Return the newest organization's agent of this name, added if missing."""
        agents: list[dict[str, Any]] = self._organization["agents"]
        for known in agents:
            if known["name"] == name:
                return known
        agents.append({"name": name})
        return agents[-1]

    def _text(self, when: When) -> str:
        try:
            return format_instant(instant_of(when, self._start))
        except ValueError as error:
            raise DialsimError(f"{when}: {error}") from None

    def _request(self, keys: Mapping[str, object]) -> dict[str, object]:
        """Return the body of a schedule request."""
        body: dict[str, object] = {"startDateTime": self._text(0)}
        for key, value in keys.items():
            match key, value:
                case "start" | "end", str() | datetime() | float() | int():
                    body[f"{key}DateTime"] = self._text(value)
                # Anything else goes into the body as it is, to test how the engine refuses it.
                case "start" | "end", _:
                    body[f"{key}DateTime"] = value
                case "windows", str():
                    body["timeWindows"] = _windows(value)
                case "retry_interval", str():
                    body["retryInterval"] = _milliseconds(value)
                case _:
                    body |= _wired({key: value})
        return body


def _recipient(index: int, person: str | Mapping[str, object]) -> dict[str, object]:
    known = {"script": person} if isinstance(person, str) else person
    return {"tel": f"08{index:08d}", **known}


def _instant_text(value: object) -> str:
    """Format a nested instant from `at`; a JSON default function."""
    if isinstance(value, datetime):
        return format_instant(instant_of(value, 0))
    raise DialsimError(f"{value!r} is no value that a scenario file can contain")


def _windows(text: str) -> list[dict[str, object]]:
    try:
        return windows_of(read_windows(text))
    except ValueError as error:
        raise DialsimError(f"windows {error}") from None


def _milliseconds(duration: str) -> int:
    from dialsim.scenario.units import parse_duration

    try:
        return parse_duration(duration)
    except ValueError as error:
        raise DialsimError(f"retry_interval {error}") from None


def _wired(keys: Mapping[str, object]) -> dict[str, Any]:
    """Convert keyword arguments to keys of the file: `queue_timeout` becomes `queueTimeout`."""
    return {_wire_name(key): value for key, value in keys.items()}


def _wire_name(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others)
