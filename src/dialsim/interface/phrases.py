"""Lists and counts as phrases of sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from dialsim.errors import DialsimError


def joined(texts: Sequence[str], joint: str = "and", between: str = ", ") -> str:
    """Join one or more texts: `a, b and c`."""
    *others, last = texts
    return f"{between.join(others)} {joint} {last}" if others else last


def few(first: Sequence[str], count: int, joint: str = "and", between: str = ", ") -> str:
    """Join the first of `count` texts, and the number of the others: `a, b, c and 4 more`."""
    more = [f"{count - len(first):,} more"] if count > len(first) else []
    return joined([*first, *more], joint, between)


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun: `1 run`, `1,200 runs`."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def kind_of(value: object) -> str:
    """Describe a wrong argument: a short value as it is, another one by its type."""
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.60}"
    return f"a {type(value).__name__}"


def percent(share: float) -> str:
    """Format a share: `97 %`; `<1 %` and `>99 %` where rounding would mislead."""
    # 0 % and 100 % would promise what one case in a thousand breaks.
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{100 * share:.0f} %"


_MOST_LINES = 15


def brief_text(kind: str, said: Sequence[str]) -> str:
    """Return the `repr` of an answer: its kind and its lines, at most 15 in all."""
    listed = [line for text in said for line in text.splitlines()]
    more = [f"… {len(listed) - _MOST_LINES + 2} more"] if len(listed) >= _MOST_LINES else []
    return "\n".join([f"<{kind}>", *listed[: _MOST_LINES - 1 - len(more)], *more])


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Kinds = tuple[tuple[Any, ...], str]
_WHOLE: _Kinds = (Integral,), "a whole number"
_NUMBER: _Kinds = (Real,), "a number"
_TEXT: _Kinds = (str,), "a text"
_SEVERAL: _Kinds = (Sequence,), "a list"
_FOLDER: _Kinds = (str, PathLike), "the name of a folder"
_LOG: _Kinds = (), "a Log, from dialsim.read_log"
_ARGUMENTS: Mapping[str, _Kinds] = {
    "replications": _WHOLE, "max_replications": _WHOLE, "seed": _WHOLE, "jobs": _WHOLE,
    "replication": _WHOLE, "lines": _WHOLE, "confidence": _NUMBER, "indifference": _NUMBER,
    "within": _NUMBER, "hold_out": _NUMBER, "decide": _TEXT, "baseline": _TEXT, "dask": _TEXT,
    "maximize": _TEXT, "minimize": _TEXT, "engine": _TEXT, "by": _TEXT, "text": _TEXT,
    "column": _TEXT, "table": _TEXT, "query": _TEXT, "known": ((Callable,), "a function"),
    "draws": _SEVERAL, "earlier": _SEVERAL, "notes": _SEVERAL, "without": _SEVERAL,
    "goal": ((str, Sequence), "a text such as p95(finish) <= Fri 18:00"),
    "precision": ((str, Mapping), "a share by figure, such as finish=2%"),
    "progress": ((Callable, bool), "a function of two counts, or False"),
    "store": _FOLDER, "folder": _FOLDER,
    "scenario": ((), "a Scenario, from dialsim.load or dialsim.scenario"),
    "log": _LOG, "real": _LOG, "simulated": _LOG,
    "record": ((), "a RecordedCalls, made of a log and a scenario"),
    "widening": ((), "a Widening, from the file of a calibration"),
}  # fmt: skip
"""Types of arguments by name, with a text for errors.

A name means the same in all functions. Without types, the argument is of the class that the text
begins with: this room knows none of these classes.
"""


def checked(
    error: type[DialsimError], settings: type = object
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorate a public function: arguments of a wrong type raise `error`, which names them.

    `settings` declares the names that the function passes on as `**settings`. Unknown names raise
    TypeError as in Python, before anything else is done.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        name = function.__qualname__.removesuffix(".__init__")
        expected = signature(function)
        passed_on = getattr(settings, "__annotations__", {})

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                given = {**expected.bind(*args, **kwargs).arguments}
            except TypeError as fault:
                raise TypeError(f"{name}() {fault}") from None
            rest = given.pop("settings", {})
            unknown = next((key for key in rest if key not in passed_on), None)
            if unknown is not None:
                # As Python words it, with the public name in place of an inner function's
                raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
            for key, value in {**given, **rest}.items():
                own = expected.parameters.get(key)
                # dialsim.check reads its log from whatever read_log accepts
                anything = own is not None and own.annotation == "object"
                optional = value is None and (own is None or own.default is None)
                if key in _ARGUMENTS and not (anything or optional):
                    types, wanted = _ARGUMENTS[key]
                    if not _fits(value, types, wanted):
                        raise error(f"{key} must be {wanted}, not {kind_of(value)}")
            return function(*args, **kwargs)

        return call

    return decorate


def _fits(value: object, types: tuple[Any, ...], wanted: str) -> bool:
    if not types:
        return wanted.split()[1].strip(",") in {kind.__name__ for kind in type(value).__mro__}
    # To Python True is an integer and a text a sequence: right only where they are named
    named = all(kind in types or not isinstance(value, kind) for kind in (bool, str))
    return named and isinstance(value, types)
