"""A trace as a page that people read: blocks of lines in Thai time, one block per recipient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dialsim.engine.trace import CHANGES, DIALLED, CallRows, Trace
from dialsim.results.campaign_life import Position
from dialsim.results.reading import Reading
from dialsim.testing.thai_clock import stamp
from dialsim.testing.traced import Traced, trace_of

_STAMP_WIDTH = 27
_TITLE = "# A trace by dialsim, in Thai time; "


@dataclass(frozen=True, slots=True)
class Block:
    """What happened to a recipient, a campaign or an organization: a line for each change."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TracePage:
    """A trace as text: its seed, and blocks in the order of the scenario."""

    seed: int
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The page as a file has it."""
        blocks = ("".join(f"{line}\n" for line in (b.title, *b.lines)) for b in self.blocks)
        return "\n".join([f"{_TITLE}seed {self.seed}\n", *blocks])

    @classmethod
    def of(cls, run: Traced) -> TracePage:
        """The page of a run."""
        trace = trace_of(run)
        return cls(trace.world.seed, tuple(_blocks(trace)))

    @classmethod
    def parse(cls, text: str) -> TracePage:
        """The page in a text; ValueError if it doesn't begin as `text` does."""
        first, *parts = text.rstrip("\n").split("\n\n")
        if not first.startswith(f"{_TITLE}seed "):
            raise ValueError(f"{first.splitlines()[:1]} is not the first line of a trace")
        blocks = (part.split("\n") for part in parts)
        return cls(
            int(first.removeprefix(f"{_TITLE}seed ")),
            tuple(Block(title, tuple(lines)) for title, *lines in blocks),
        )


def trace_text(run: Traced) -> str:
    """A run as text: what happened to each organization, campaign and recipient, in Thai time."""
    return TracePage.of(run).text


def _blocks(trace: Trace) -> Iterator[Block]:
    reading = Reading(trace)
    for organization in trace.world.organizations:
        limits = (
            (row.at, f"maxConcurrentCalls {row.limit}")
            for row in trace.limits
            if row.organization == organization.position
        )
        yield Block(organization.name, _stamped(limits))
        for campaign in organization.campaigns:
            position = (organization.position, campaign.position)
            name = f"{organization.name}/{campaign.name}"
            yield Block(name, (*_stamped(_campaign(trace, position)), *_end(trace, position)))
            for recipient, lines in _people(reading, position):
                yield Block(f"{name} recipient {recipient}", lines)


def _stamped(events: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(f"  {stamp(at):<{_STAMP_WIDTH}}  {text}" for at, text in events)


def _campaign(trace: Trace, position: Position) -> list[tuple[int, str]]:
    """What the campaign itself went through, and what was refused."""
    changes = [
        (row.at, f"{row.from_status} > {row.to_status}  {row.cause}")
        for row in trace.campaigns
        if (row.organization, row.campaign) == position
    ]
    refused = [
        (row.at, f"refused: {row.action}  {row.code}: {row.message}")
        for row in trace.refused
        if (row.organization, row.campaign) == position
    ]
    return sorted([*changes, *refused], key=lambda event: event[0])


def _end(trace: Trace, position: Position) -> Iterator[str]:
    if position in trace.stalled:
        yield "  stalled: nothing can ever happen again"


def _people(reading: Reading, position: Position) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The lines of each recipient who has a call, in upload order."""
    ledger = reading.ledgers[position]
    shown = _shown(reading, position, ledger.rows)
    rows = ledger.rows
    current, events = -1, list[tuple[int, str]]()
    for row in ledger.rows_by_call().tolist():
        recipient = int(rows.recipient[row])
        if recipient != current and events:
            yield current, _stamped(events)
            events = []
        current = recipient
        events.append((int(rows.at[row]), _change(rows, row) + shown.get(row, "")))
    if events:
        yield current, _stamped(events)


def _change(rows: CallRows, row: int) -> str:
    change = CHANGES[rows.kind[row]]
    status = f"{change.to_status} {change.phase or ''}".rstrip()
    return f"call {rows.call[row]}  {status:<19}  {change.cause}"


def _shown(reading: Reading, position: Position, rows: CallRows) -> dict[int, str]:
    """By row of a dial: the number and the voice that it showed (P3, P4)."""
    log, world = reading.trace.calls[position[0]][position[1]], reading.world
    dials = (row for row, kind in enumerate(rows.kind.tolist()) if kind == DIALLED)
    return {
        row: f" from {world.numbers[number]}"
        + (f", voice {world.voice_keys[voice]}" if voice >= 0 else "")
        for row, number, voice in zip(dials, log.dial_numbers, log.dial_voices, strict=True)
    }
