"""Schedule requests and timeline actions of the scenario file (T4 step 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from simpy.events import Event

from dialsim.engine.clock import At, Clock, Step
from dialsim.engine.trace import Refusal, Trace
from dialsim.errors import Refused
from dialsim.interface import CampaignStatus
from dialsim.scenario.organization import TimelineAction

if TYPE_CHECKING:
    from dialsim.engine.campaign import SimulatedCampaign
    from dialsim.engine.dialler import Dialler
    from dialsim.engine.world import CampaignBlock, World


class DueAction(NamedTuple):
    """One schedule request or timeline action; positions are those of the scenario.

    `compiled` marks an action compiled from calling hours or from lines by time (T6).
    """

    at: int
    organization: int
    campaign: int | None
    action: TimelineAction
    compiled: bool = False

    def is_moot(self, statuses: Sequence[Sequence[CampaignStatus]]) -> bool:
        """Return True if a run need not wait for the action; `statuses` are by position (T6)."""
        if not self.compiled:
            return False
        campaigns = statuses[self.organization]
        concerned = campaigns if self.campaign is None else [campaigns[self.campaign]]
        return all(status.final or status is CampaignStatus.DRAFT for status in concerned)


def due_actions(world: World) -> list[DueAction]:
    """Return all schedule requests and timeline actions of the scenario, in the order of T4.

    Within an instant requests come first, then the timeline's actions in file order, then those
    that calling hours and lines by time are compiled into (T6).
    """
    listed = (*_requests(world), *_actions(world), *_actions(world, compiled=True))
    return sorted(listed, key=lambda due: due.at)


def note_refusal(trace: Trace, due: DueAction, refused: Refused) -> None:
    """Record a refused action in the trace, unless it is compiled (T6)."""
    if not due.compiled:
        row = Refusal(*due[:3], due.action.action, refused.code, refused.message)
        trace.refused.append(row)


class _TimelineEvent(At):
    """Actions of one instant, as one event."""

    def __init__(
        self, clock: Clock, actions: list[DueAction], diallers: Mapping[int, Dialler], trace: Trace
    ) -> None:
        self._actions = actions
        self._diallers = diallers
        self._all_compiled = all(due.compiled for due in actions)
        action = _carrying_out(actions, diallers, trace)
        super().__init__(clock, actions[0].at, Step.ACTIONS, action)

    @property
    def moot(self) -> bool:  # type: ignore[override]
        """True if a run need not wait for any of the actions (T6)."""
        return self._all_compiled and all(
            due.is_moot(
                [
                    [campaign.status for campaign in dialler.campaigns]
                    for dialler in self._diallers.values()
                ]
            )
            for due in self._actions
        )


def lay_out(clock: Clock, diallers: list[Dialler], trace: Trace) -> None:
    """Put the scenario's schedule requests and timeline actions on the clock."""
    # One event per instant, because events of equal instant and step would run in the order of
    # their creation (T4).
    by_position = dict(enumerate(diallers))
    for _, together in groupby(due_actions(trace.world), key=lambda due: due.at):
        _TimelineEvent(clock, [*together], by_position, trace)


def lay_out_request(
    clock: Clock, dialler: Dialler, campaign: SimulatedCampaign, trace: Trace
) -> None:
    """Put the schedule request of an added campaign on the clock, after the file's actions (T4)."""
    diallers = {dialler.block.position: dialler}
    for due in _request(campaign.block):
        At(clock, due.at, Step.ACTIONS, _carrying_out([due], diallers, trace))


def _carrying_out(
    actions: list[DueAction], diallers: Mapping[int, Dialler], trace: Trace
) -> Callable[[Event], None]:
    def carry_out(_event: Event) -> None:
        for due in actions:
            dialler = diallers[due.organization]
            target = dialler if due.campaign is None else dialler.campaigns[due.campaign]
            method, arguments = command_of(due.action)
            try:
                getattr(target, method)(*arguments)
            except Refused as refused:
                note_refusal(trace, due, refused)

    return carry_out


def _requests(world: World) -> Iterator[DueAction]:
    for owner in world.organizations:
        for block in owner.campaigns:
            yield from _request(block)


def _request(block: CampaignBlock) -> Iterator[DueAction]:
    request, at = block.schedule, block.scheduled_at
    if request is not None and at is not None:
        action = TimelineAction.model_construct(at=at, action="schedule", body=request)
        yield DueAction(at, block.organization, block.position, action)


def _actions(world: World, *, compiled: bool = False) -> Iterator[DueAction]:
    for owner in world.organizations:
        positions = {block.name: block.position for block in owner.campaigns}
        for action in owner.settings.compiled_actions if compiled else owner.settings.timeline:
            position = None if action.campaign is None else positions[action.campaign]
            yield DueAction(action.at, owner.position, position, action, compiled)


_METHODS = {
    "setConcurrency": ("set_limit", "value"),
    "setCallingAllowed": ("set_calling_allowed", "value"),
    "setWebhookUrl": ("set_webhook_url", "url"),
    "setBehaviour": ("use_behaviour", "agent", "behaviour"),
    "schedule": ("schedule", "body"),
    "reanalyze": ("reanalyze", "share"),
}
"""Methods of both engines for the actions, and the fields of an action that they take; the other
actions have no fields, and methods of their own names.
"""


def command_of(action: TimelineAction) -> tuple[str, list[Any]]:
    """Return the name of the method that carries out an action in both engines, and its
    arguments.
    """
    method, *fields = _METHODS.get(action.action, (action.action,))
    return method, [getattr(action, field) for field in fields]
