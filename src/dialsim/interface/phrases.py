"""Lists and counts as phrases of sentences."""

from __future__ import annotations

from collections.abc import Sequence


def joined(texts: Sequence[str], joint: str = "and", between: str = ", ") -> str:
    """Join one or more texts: `a, b and c`."""
    *others, last = texts
    return f"{between.join(others)} {joint} {last}" if others else last


def few(first: Sequence[str], count: int, joint: str = "and", between: str = ", ") -> str:
    """Join the first of `count` texts with the number of texts left out: `a, b, c and 4 more`."""
    more = [f"{count - len(first):,} more"] if count > len(first) else []
    return joined([*first, *more], joint, between)


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun: `1 run`, `1,200 runs`."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def kind_of(value: object) -> str:
    """Describe a wrong argument in an error: texts and numbers by value, others by type."""
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.60}"
    name = type(value).__name__
    return name if isinstance(value, bytes) else f"{article(name)} {name}"


def article(noun: str) -> str:
    """Return the indefinite article of a noun."""
    return "an" if noun[0] in "AEIOUaeiou" else "a"


def percent(share: float) -> str:
    """Format a share: `97 %`; `<1 %` and `>99 %` where rounding would mislead."""
    # Not rounded to 0 % or 100 %, which would say that the rare case cannot happen.
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{100 * share:.0f} %"


_MOST_LINES = 15


def brief_text(kind: str, said: Sequence[str]) -> str:
    """Return a `repr` of an answer: its kind, then its lines; at most 15 lines in all."""
    listed = [line for text in said for line in text.splitlines()]
    more = [f"… {len(listed) - _MOST_LINES + 2} more"] if len(listed) >= _MOST_LINES else []
    return "\n".join([f"<{kind}>", *listed[: _MOST_LINES - 1 - len(more)], *more])
