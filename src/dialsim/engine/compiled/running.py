"""A run of the compiled engine: World in, Trace out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

from dialsim.engine.compiled.organization import CompiledOrganization
from dialsim.engine.timeline import DueAction, command_of, due_actions, note_refusal
from dialsim.engine.trace import Trace
from dialsim.errors import Refused
from dialsim.interface.instants import LAST_INSTANT

if TYPE_CHECKING:
    from dialsim.engine.world import World

Progress = Callable[[int, int], object]


def run(world: World, progress: Progress | None = None) -> Trace:
    """Run a world to its end (T5). `progress(done, people)` is called occasionally."""
    trace = Trace(world=world, calls=[], engine="compiled")
    organizations = [CompiledOrganization(trace, block) for block in world.organizations]
    people = sum(c.people.count for o in world.organizations for c in o.campaigns)

    def look_up() -> None:
        if progress is not None:
            progress(sum(each.people_done for each in organizations), people)

    def advance(until: int) -> None:
        for each in organizations:
            each.advance(until, look_up)
        look_up()

    clock = world.scenario.clock
    last, left_out = clock.start, False
    listed = due_actions(world)
    last_own = max((at for at, due in enumerate(listed) if not due.compiled), default=-1)
    done = 0
    # Organizations do not affect one another between two actions of the file, so each is advanced
    # on its own up to the next action.
    for instant, together in groupby(listed, key=lambda due: due.at):
        if clock.end is not None and instant > clock.end:
            left_out = True
            break
        advance(instant - 1)
        if clock.end is None and done > last_own and not _is_awaited(listed[done:], organizations):
            break  # T6
        for due in together:
            _carry_out(organizations[due.organization], due, trace)
            done += 1
        last = instant
    advance(LAST_INSTANT if clock.end is None else clock.end)
    trace.calls = [each.logs() for each in organizations]
    trace.campaigns = sorted(
        (change for each in organizations for change in each.changes()), key=lambda row: row.at
    )
    trace.idle = not left_out and all(each.ahead > LAST_INSTANT for each in organizations)
    trace.cut = not trace.idle
    if trace.idle:
        trace.stalled = frozenset(
            (o, c) for o, each in enumerate(organizations) for c in each.unfinished()
        )
    trace.end = max([last, *(each.now for each in organizations)])
    if clock.end is not None:
        trace.end = clock.end
    return trace


def _is_awaited(compiled: list[DueAction], organizations: list[CompiledOrganization]) -> bool:
    """Return True if anything but moot actions is ahead (T6)."""
    if any(each.ahead <= LAST_INSTANT for each in organizations):
        return True
    statuses = [each.statuses() for each in organizations]
    return not all(due.is_moot(statuses) for due in compiled)


def _carry_out(organization: CompiledOrganization, due: DueAction, trace: Trace) -> None:
    """Run an action of the file at its instant; a refusal is recorded in the trace."""
    organization.at(due.at)
    method, arguments = command_of(due.action)
    # Campaigns are no objects in this engine: their methods are the organization's, by position.
    position = [] if due.campaign is None else [due.campaign]
    try:
        getattr(organization, method)(*position, *arguments)
    except Refused as refused:
        note_refusal(trace, due, refused)
