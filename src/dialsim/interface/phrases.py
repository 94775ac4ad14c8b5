"""Lists and counts as phrases of sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import ParamSpec, TypeVar

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
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{100 * share:.0f} %"


_MOST_LINES = 15


def brief_text(kind: str, said: Sequence[str]) -> str:
    """Return the `repr` of an answer: its kind and what it says, in at most 15 lines."""
    listed = [line for text in said for line in text.splitlines()]
    more = [f"… {len(listed) - _MOST_LINES + 2} more"] if len(listed) >= _MOST_LINES else []
    return "\n".join([f"<{kind}>", *listed[: _MOST_LINES - 1 - len(more)], *more])


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Kinds = tuple[tuple[type, ...], str]
_WHOLE: _Kinds = (Integral,), "a whole number"
_NUMBER: _Kinds = (Real,), "a number"
_TEXT: _Kinds = (str,), "a text"
_ARGUMENTS: Mapping[str, _Kinds] = {
    "replications": _WHOLE, "max_replications": _WHOLE, "seed": _WHOLE, "jobs": _WHOLE,
    "replication": _WHOLE, "lines": _WHOLE, "confidence": _NUMBER, "indifference": _NUMBER,
    "within": _NUMBER, "hold_out": _NUMBER, "decide": _TEXT, "baseline": _TEXT, "dask": _TEXT,
    "maximize": _TEXT, "minimize": _TEXT, "engine": _TEXT, "by": _TEXT,
    "goal": ((str, Sequence), "a text such as p95(finish) <= Fri 18:00"),
    "store": ((str, PathLike), "the name of a folder"),
    "scenario": ((), "a Scenario, from dialsim.load or dialsim.scenario"),
    "log": ((), "a Log, from dialsim.read_log"),
}  # fmt: skip
"""What an argument must be, by its name, which is the same everywhere. Without types, the class has
the name that the text begins with."""


def checked(error: type[DialsimError]) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorate a public function: arguments of a wrong type raise `error`, which names them."""

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        parameters = signature(function)

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            bound = parameters.bind(*args, **kwargs).arguments
            # The settings of a run are given as `**settings`.
            for name, value in {**bound, **bound.get("settings", {})}.items():
                types, wanted = _ARGUMENTS.get(name, ((object,), ""))
                own = parameters.parameters.get(name)
                if value is None and (own is None or own.default is None):
                    continue
                if types == (object,):
                    continue
                if types:
                    is_right = isinstance(value, types) and not isinstance(value, bool)
                else:
                    is_right = wanted.split()[1].strip(",") in map(_class_name, type(value).__mro__)
                if not is_right:
                    raise error(f"{name} must be {wanted}, not {kind_of(value)}")
            return function(*args, **kwargs)

        return call

    return decorate


def _class_name(kind: type) -> str:
    return kind.__name__
