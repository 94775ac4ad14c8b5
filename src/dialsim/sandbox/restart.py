"""Replay: begin a journal for a new sandbox, and resume a sandbox after a stop or a kill."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from dialsim.errors import DialsimError, JournalError, Refused
from dialsim.interface.payload import Post
from dialsim.results.result import Result
from dialsim.sandbox.access import Destinations, with_public_url
from dialsim.sandbox.commands import Command, DropSnapshot, Restore, SetSpeed, TakeSnapshot
from dialsim.sandbox.core import POST, Record, SandboxCore, Snapshot
from dialsim.sandbox.journal import Entry, EntryKind, Journal, Subject
from dialsim.scenario.loading import files_of, loads
from dialsim.scenario.scenario import Scenario

_COMMAND: TypeAdapter[Command] = TypeAdapter(Command)


def begin(
    path: Path,
    scenario: Scenario,
    seed: int | None = None,
    destinations: Destinations | None = None,
) -> SandboxCore:
    """Start a sandbox that keeps a journal in a file, which must not exist yet."""
    core = SandboxCore(scenario, seed, destinations)
    core.journal = Journal.create(path, _subject(core))
    return core


def resume(path: Path, destinations: Destinations | None = None) -> SandboxCore:
    """Return the sandbox of a journal, in the state of the last entry.

    The sandbox continues the journal. Raises JournalError for an unusable journal, including one
    that this version of dialsim replays to a different state than recorded.
    """
    journal = Journal.reopen(path)
    try:
        core, refused = _replay(journal, destinations)
        core.outbox.restore(core.faults.held_until)
        if refused:
            journal.take_back(core.step())
        journal.write_pending()
    except BaseException:
        journal.close()
        raise
    core.journal = journal
    return core


def read(path: Path) -> Result:
    """Return the run of a journal without changing the journal."""
    begun = time.perf_counter()
    journal = Journal.read(path)
    try:
        trace = _replay(journal)[0].simulation.trace
    finally:
        journal.close()
    return Result(trace, wall_seconds=round(time.perf_counter() - begun, 3))


def check_same(path: Path, scenario: Scenario, seed: int | None) -> None:
    """Raise JournalError unless the journal is of this scenario and seed."""
    journal = Journal.read(path)
    subject = journal.subject
    journal.close()
    # Links lead to the address of the first start, which is part of the scenario in the journal.
    served = with_public_url(scenario, _scenario(path, subject).service.public_url)
    if (subject.digest, subject.seed) != (served.digest, scenario.seed if seed is None else seed):
        raise JournalError(
            f"{path} is the journal of another scenario, {subject.name} with seed {subject.seed}; "
            "to continue that run, name no scenario; to begin another, name a new file"
        )


def _subject(core: SandboxCore) -> Subject:
    scenario = core.scenario
    origin = scenario.origin
    if origin is None:
        raise DialsimError("only scenarios from dialsim.load or dialsim.loads can have a journal")
    return Subject(
        text=origin.text,
        name=origin.name,
        overrides=origin.overrides,
        seed=core.simulation.log.world.seed,
        digest=scenario.digest,
        files=files_of(scenario),
    )


def _scenario(path: Path, subject: Subject) -> Scenario:
    scenario = loads(
        subject.text, name=subject.name, overrides=subject.overrides, files=subject.files
    )
    if scenario.digest != subject.digest:
        raise JournalError(f"{path}: this version of dialsim reads another scenario from its text")
    return scenario


class _ParsedEntry(NamedTuple):
    """Parsed journal entry: an event, or the position of the clock."""

    number: int
    at: int
    what: Command | Post | int | None


def _replay(journal: Journal, destinations: Destinations | None = None) -> tuple[SandboxCore, bool]:
    """Return the replayed sandbox, and True if the last entry is a refused command.

    A command is written before its execution, and a sandbox may be killed before it has removed a
    refused command. Every earlier entry was executed.
    """
    subject = journal.subject
    entries, snapshots = _read(journal)
    core = SandboxCore(_scenario(journal.path, subject), subject.seed, destinations)
    at = core.simulation.at
    refused: JournalError | None = None
    for number, at, what in entries:
        if refused is not None:
            raise refused
        try:
            _repeat(core, at, what)
        except DialsimError as error:
            if not (isinstance(error, Refused) and journal.has_log):
                raise _other_state(journal, number) from error
            # Only the last entry may be a refused command: a kill came before the entry was
            # removed.
            refused = _other_state(journal, number)
        if isinstance(what, int) and what != core.simulation.log.size():
            raise _other_state(journal, number)
    core.simulation.move_to(at)
    core.snapshots = snapshots
    return core, refused is not None


def _repeat(core: SandboxCore, at: int, what: Command | Post | int | None) -> None:
    # A POST is recorded when its response arrives, at the earlier instant at which it left.
    if at < core.simulation.at and not isinstance(what, Post):
        raise DialsimError("an entry is earlier than the entry before it")
    if what is None or isinstance(what, int):
        core.simulation.move_to(at)
    else:
        core.replay(Record(at, what))


def _read(journal: Journal) -> tuple[list[_ParsedEntry], dict[str, Snapshot]]:
    """Return the entries that lead to the journal's end, and the snapshots at that point.

    Entries that a restore or a reset has undone stay in the journal, and are left out here.
    """
    entries: list[_ParsedEntry] = []
    taken: dict[str, list[_ParsedEntry]] = {}
    for number, entry in enumerate(journal.entries(), 1):
        try:
            one = _ParsedEntry(number, entry.at, _what(entry))
            match one.what:
                case TakeSnapshot(name=name):
                    entries.append(one._replace(what=None))
                    taken[name] = [*entries]
                case DropSnapshot(name=name):
                    entries.append(one._replace(what=None))
                    del taken[name]
                case Restore(name=name):
                    entries = [] if name is None else [*taken[name]]
                    if _is_running(entries):
                        entries.append(_ParsedEntry(number, entries[-1].at, SetSpeed(speed=None)))
                case _:
                    entries.append(one)
        # Errors of pydantic are among the ValueErrors; a KeyError is an unknown snapshot.
        except (ValueError, KeyError) as error:
            raise _other_state(journal, number) from error
    return entries, {name: _snapshot(listed) for name, listed in taken.items()}


def _is_running(entries: list[_ParsedEntry]) -> bool:
    """True if the clock runs after some entries."""
    speeds = [one.what.speed for one in entries if isinstance(one.what, SetSpeed)]
    return bool(speeds) and speeds[-1] is not None


def _what(entry: Entry) -> Command | Post | int:
    match entry.kind:
        case EntryKind.COMMAND:
            return _COMMAND.validate_json(entry.body)
        case EntryKind.POSTS:
            return POST.validate_json(entry.body)
        case EntryKind.STEP:
            return int(entry.body)


def _snapshot(entries: list[_ParsedEntry]) -> Snapshot:
    """The snapshot that was taken at the end of some entries."""
    records = (
        Record(at, what)
        for _, at, what in entries
        if what is not None and not isinstance(what, int)
    )
    return Snapshot(entries[-1].at, (*records,))


def _other_state(journal: Journal, number: int) -> JournalError:
    return JournalError(
        f"{journal.path}: entry {number} doesn't lead to the state that the journal records; "
        "it was made by another version of dialsim"
    )
