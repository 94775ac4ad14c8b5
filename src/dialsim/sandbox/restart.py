"""Replay: a journal is begun for a new sandbox, and gone on with after a stop or a kill."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dialsim.interface.errors import DialsimError, Refused
from dialsim.results.result import Result
from dialsim.sandbox.addresses import with_public_url
from dialsim.sandbox.commands import Command
from dialsim.sandbox.core import POST, SandboxCore
from dialsim.sandbox.journal import Entry, EntryKind, Journal, JournalError, Subject
from dialsim.scenario.loading import files_of, loads
from dialsim.scenario.scenario import Scenario

_COMMAND: TypeAdapter[Command] = TypeAdapter(Command)


def begin(path: Path, scenario: Scenario, seed: int | None = None) -> SandboxCore:
    """A new sandbox that keeps a journal in a file, which must not be there yet."""
    core = SandboxCore(scenario, seed)
    core.journal = Journal.create(path, _subject(core))
    return core


def resume(path: Path) -> SandboxCore:
    """The sandbox that a journal is of, as it stood when the last entry was kept.

    It goes on with the journal. Raises JournalError for a journal that can't be used, among them
    one that this version of dialsim does not replay to the state that it tells of.
    """
    journal = Journal.reopen(path)
    try:
        core, refused = _replay(journal)
        core.outbox.restore()
        if refused:
            journal.take_back(core.step())
        journal.settle()
    except BaseException:
        journal.close()
        raise
    core.journal = journal
    return core


def read(path: Path) -> Result:
    """What has happened in the sandbox that a journal is of; the journal is left as it is."""
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
    served = with_public_url(scenario, _scenario(path, subject).service.public_url)
    if (subject.digest, subject.seed) != (served.digest, scenario.seed if seed is None else seed):
        raise JournalError(
            f"{path} is the journal of another scenario, {subject.name} with seed {subject.seed}; "
            "go on with that by naming no scenario, or name a new file"
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
        raise JournalError(f"{path}: this version of dialsim reads its scenario otherwise")
    return scenario


def _replay(journal: Journal) -> tuple[SandboxCore, bool]:
    """The sandbox as the entries tell; whether the last one is a command that was refused.

    A command is kept before it is carried out, and a sandbox may be killed before it has removed
    one that was refused. Anywhere else what is in the journal was carried out.
    """
    subject = journal.subject
    core = SandboxCore(_scenario(journal.path, subject), subject.seed)
    at = core.simulation.at
    refused: JournalError | None = None
    for number, entry in enumerate(journal.entries(), 1):
        if refused is not None:
            raise refused
        at = entry.at
        try:
            _carry_out(core, entry)
        except (DialsimError, ValidationError) as error:
            if not (isinstance(error, Refused) and journal.has_log):
                raise _other_state(journal, number) from error
            refused = _other_state(journal, number)  # unless it is the last entry
        if entry.kind is EntryKind.STEP and entry.body != b"%d" % core.simulation.log.size():
            raise _other_state(journal, number)
    core.simulation.move_to(at)
    return core, refused is not None


def _carry_out(core: SandboxCore, entry: Entry) -> None:
    simulation = core.simulation
    if entry.kind is EntryKind.POSTS:  # changes nothing of the calls: they need not be up to date
        post = POST.validate_json(entry.body)
        core.outbox.recorded(post)
        core.faults.ended(post)
        return
    if entry.at < simulation.at:
        raise DialsimError("an entry lies before the one before it")
    simulation.move_to(entry.at)
    if entry.kind is EntryKind.COMMAND:
        core.repeat(_COMMAND.validate_json(entry.body))


def _other_state(journal: Journal, number: int) -> JournalError:
    return JournalError(
        f"{journal.path}: entry {number} doesn't lead to the state that the journal tells of; "
        "it was made by another version of dialsim"
    )
