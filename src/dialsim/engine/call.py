"""A call from its release to its end (rules P): a small state machine driven by `At` events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialsim.engine import trace
from dialsim.engine.clock import Action, At, Step
from dialsim.interface.status import CallStatus

if TYPE_CHECKING:
    from dialsim.engine.behaviour import Reaction
    from dialsim.engine.campaign import Campaign

# Named here because Python 3.11 looks up a member of an Enum as slowly as it calls a function.
_QUEUED, _INITIATED, _ANSWERED = CallStatus.QUEUED, CallStatus.INITIATED, CallStatus.COMPLETED
_PROGRESS = Step.PROGRESS


class Call:
    """A call that was released: QUEUED, then INITIATED (dialling, ringing, talking), then ended.

    One object lives from one release to the end or the withdrawal of that release; a call that goes
    back to SCHEDULED is released again as a new object with the same number.
    """

    __slots__ = (
        "_progress",
        "_reaction",
        "campaign",
        "dialled_at",
        "due",
        "key",
        "number",
        "queued_at",
        "recipient",
        "shown_number",
        "status",
    )

    def __init__(self, campaign: Campaign, recipient: int, number: int, due: int, now: int) -> None:
        self.campaign = campaign
        self.recipient = recipient
        self.number = number
        self.due = due
        self.key = trace.call_key(recipient, number)
        self.queued_at = now
        self.status = _QUEUED
        campaign.log.append(now, self.key | trace.RELEASED)

    def dial(self, now: int, reaction: Reaction, shown_number: int) -> None:
        """QUEUED → INITIATED: the line is being set up (P1)."""
        self.status = _INITIATED
        self.dialled_at = now
        self.shown_number = shown_number
        self._reaction = reaction
        self.campaign.log.append(now, self.key | trace.DIALLED)
        self._progress_at(now + reaction.setup_ms, self._set_up)

    def withdraw(self) -> None:
        """Leave the queue or drop the line being set up: whatever was to follow is off (C4)."""
        if self.status is _INITIATED:
            self._progress.cancelled = True
        self.status = CallStatus.SCHEDULED

    def _progress_at(self, instant: int, action: Action) -> None:
        self._progress = At(self.campaign.clock, instant, _PROGRESS, action)

    def _set_up(self, event: At) -> None:
        self.campaign.call_rings(self)
        ring = self._reaction.ring_ms
        if ring:  # P1: no row where it would be over at once
            self.campaign.log.append(event.instant, self.key | trace.RINGING)
            self._progress_at(event.instant + ring, self._rung)
        else:
            self._rung(event)

    def _rung(self, event: At) -> None:
        if self._reaction.outcome is not _ANSWERED:
            self._end(event)
            return
        self.campaign.log.append(event.instant, self.key | trace.ANSWERED)
        if self._reaction.talk_ms:
            self._progress_at(event.instant + self._reaction.talk_ms, self._end)
        else:
            self._end(event)

    def _end(self, event: At) -> None:
        outcome = self._reaction.outcome  # P2
        self.status = outcome
        self.campaign.log.append(event.instant, self.key | trace.ENDED[outcome])
        self.campaign.call_ended(self, reached=outcome is _ANSWERED)
