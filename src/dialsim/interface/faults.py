"""What is wrong with a body, in class-validator's words and in a fixed order (C10)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeGuard

from dialsim.interface.errors import Refused
from dialsim.interface.instants import parse_instant_or_epoch
from dialsim.interface.model import is_uuid

TIME_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
"""A time of the day, 24-hour with a two-digit hour: `09:00`."""

_TIME = re.compile(TIME_PATTERN[1:-1])
_DAYS = 7


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure: the keys that lead from the body to the culprit, and the exact wire text.

    The message has the path of the culprit's parent in front where that is not the body (C10).
    """

    path: tuple[str | int, ...]
    message: str


class ScheduleRejected(Refused):
    """A schedule request that failed step 1 or step 4: 400 `VALIDATION_FAILED` (C9).

    `faults` holds every failure of that step in the order of `errors`.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(400, "VALIDATION_FAILED", [fault.message for fault in self.faults])

    def __reduce__(self) -> tuple[type[ScheduleRejected], tuple[object, ...]]:
        return type(self), (self.faults,)


class Fields:
    """The fields of one object of a body, each read with its check; failures gather in `faults`.

    Every reading method returns the field's value, or None after having noted what is wrong with
    it. A field that is absent or null fails the check of its type, so callers skip the absent
    ones that may be absent (`present`). Unknown fields are noted at once, in input order (C10).
    """

    def __init__(
        self,
        fields: Mapping[object, object],
        known: Sequence[str],
        path: tuple[str | int, ...],
        faults: list[Fault],
    ) -> None:
        self._fields = fields
        self._path = path
        self._faults = faults
        self._parents = "".join(f"{key}." for key in path)
        for name in fields:
            if name not in known:
                self._note(f"property {_printable(name)} should not exist", str(name))

    def present(self, name: str) -> bool:
        """Whether the field is there; null counts as absent (C9)."""
        return self._fields.get(name) is not None

    def integer(self, name: str, least: int, most: int | None = None) -> int | None:
        """An integer from `least` to `most`; `1.0` is one (C10)."""
        number = _whole(self._fields.get(name))
        if number is None:
            self._note(f"{name} must be an integer number", name)
        elif number < least:
            self._note(f"{name} must not be less than {least}", name)
        elif most is not None and number > most:
            self._note(f"{name} must not be greater than {most}", name)
        else:
            return number
        return None

    def day_of_week(self, name: str) -> int | None:
        """An integer from 1 to 7; the interface has one text for whatever is none (section 4.6)."""
        number = _whole(self._fields.get(name))
        if number is not None and 1 <= number <= _DAYS:
            return number
        self._note(f"{name} must not be greater than {_DAYS}", name)
        return None

    def boolean(self, name: str) -> bool | None:
        """True or false, and no number or text in their place."""
        value = self._fields.get(name)
        if isinstance(value, bool):
            return value
        self._note(f"{name} must be a boolean value", name)
        return None

    def instant(self, name: str) -> int | None:
        """An ISO 8601 date or date-time, as milliseconds since the Unix epoch, UTC.

        What lies before 1970 counts as its beginning: it is past.
        """
        value = self._fields.get(name)
        try:
            return parse_instant_or_epoch(value if isinstance(value, str) else "")
        except ValueError:
            self._note(f"{name} must be a valid ISO 8601 date string", name)
            return None

    def time_of_day(self, name: str) -> str | None:
        """A time such as `09:00`, as sent."""
        value = self._fields.get(name)
        if isinstance(value, str) and _TIME.fullmatch(value):
            return value
        self._note(f"{name} must be HH:MM (24-hour, two-digit hour)", name)
        return None

    def uuid(self, name: str) -> str | None:
        """A UUID, as sent."""
        value = self._fields.get(name)
        if is_uuid(value):
            return value
        self._note(f"{name} must be a UUID", name)
        return None

    def texts(self, name: str) -> tuple[str, ...] | None:
        """An array of strings with at least one item."""
        items = self._array(name)
        if items is None:
            return None
        if not items:
            self._note(f"{name} should not be empty", name)
        self._note_item(name, items, _is_text, "a string")
        return tuple(item for item in items if _is_text(item))

    def objects(self, name: str, known: Sequence[str]) -> list[Fields]:
        """The objects of an array, in input order, each with the fields it may have."""
        items = self._array(name) or ()
        self._note_item(name, items, _is_object, "an object")
        return [
            Fields(item, known, (*self._path, name, index), self._faults)
            for index, item in enumerate(items)
            if _is_object(item)
        ]

    def _array(self, name: str) -> Sequence[object] | None:
        value = self._fields.get(name)
        if isinstance(value, list | tuple):
            return value
        self._note(f"{name} must be an array", name)
        return None

    def _note_item(
        self, name: str, items: Sequence[object], fits: Callable[[object], bool], text: str
    ) -> None:
        """Note once, at the first of them, that items are of the wrong kind (C10)."""
        for index, item in enumerate(items):
            if not fits(item):
                self._note(f"each value in {name} must be {text}", name, index)
                return

    def _note(self, message: str, *culprit: str | int) -> None:
        self._faults.append(Fault((*self._path, *culprit), f"{self._parents}{message}"))


def _whole(value: object) -> int | None:
    """The value as an int if it is a whole number: no bool, no NaN, no infinity."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def _is_object(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_text(value: object) -> TypeGuard[str]:
    """Whether the value is a text that can be sent: half a surrogate pair can't."""
    return isinstance(value, str) and _printable(value) == value


def _printable(name: object) -> str:
    return str(name).encode("utf-8", "backslashreplace").decode("utf-8")
