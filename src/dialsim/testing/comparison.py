"""Two traces side by side: what differs, recipient by recipient, first difference first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from dialsim.interface.errors import DialsimError
from dialsim.testing.thai_clock import at
from dialsim.testing.trace_page import Block, TracePage

SHOWN = 4
"""How many differing blocks are shown in full; the rest are named."""


@dataclass(frozen=True, slots=True)
class BlockDifference:
    """A block of which two traces say different things: marked lines, and when it begins."""

    title: str
    lines: tuple[str, ...]
    first_at: float
    first: str


def differences(golden: TracePage, found: TracePage) -> list[BlockDifference]:
    """The blocks that differ, first difference first; of one instant, in the scenario's order."""
    was = {block.title: block for block in golden.blocks}
    now = {block.title: block for block in found.blocks}
    titles = dict.fromkeys([*now, *was])
    parted = [
        _difference(was.get(title, Block(title, ())), now.get(title, Block(title, ())))
        for title in titles
        if was.get(title) != now.get(title)
    ]
    return sorted(parted, key=lambda difference: difference.first_at)


def describe(parted: list[BlockDifference], golden_name: str) -> str:
    """The differences of two traces, of which there is at least one, as text."""
    first = parted[0]
    when = "" if first.first_at == _NEVER else f", first at {first.first} (Thai time)"
    places = f"{len(parted)} place{'s' * (len(parted) > 1)}"
    shown = (line for part in parted[:SHOWN] for line in ("", part.title, *part.lines))
    more = [part.title for part in parted[SHOWN:]]
    return "\n".join(
        [
            f"the run differs from {golden_name} in {places}{when}",
            "  - only in the golden trace",
            "  + only in this run",
            *shown,
            *_named(more),
        ]
    )


_NEVER = float("inf")


def _difference(was: Block, now: Block) -> BlockDifference:
    lines = list(_marked(was.lines, now.lines))
    instants = [_instant(line[2:]) for line in lines if line[2:].strip() and line[2] != " "]
    first_at, first = min(instants, default=(_NEVER, ""))
    return BlockDifference(now.title, tuple(lines), first_at, first)


def _marked(was: tuple[str, ...], now: tuple[str, ...]) -> Iterator[str]:
    """All lines of both; `-` marks those of the first alone, `+` those of the second alone."""
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield from (f"    {line.strip()}" for line in was[i:j])
        else:
            yield from (f"  - {line.strip()}" for line in was[i:j])
            yield from (f"  + {line.strip()}" for line in now[k:m])


def _instant(marked: str) -> tuple[float, str]:
    """When a marked line happened, to sort by and to print; a line without an instant is last."""
    text = marked[2:].partition("  ")[0]
    try:
        return at(text).timestamp(), text
    except DialsimError:
        return _NEVER, ""


def _named(titles: list[str]) -> list[str]:
    if not titles:
        return []
    rest = f", and {len(titles) - 10} more" if len(titles) > 10 else ""
    return ["", f"… and in {', '.join(titles[:10])}{rest}"]
