"""Progress: what a campaign has come to so far, counted as its log goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialsim.engine.trace import CHANGES, ENDED, CallRows
from dialsim.interface.status import CallStatus
from dialsim.results.ledger import IN_QUEUE, SLOTS
from dialsim.sandbox.campaign_desk import CampaignDesk

_REACHED = ENDED[CallStatus.COMPLETED]


@dataclass(frozen=True, slots=True)
class Progress:
    """How many people of a campaign stand where; the last four add up to `people`.

    `under_way` are in a call (Q1), `queued` those of the waiting whose call is in the queue.
    Nobody waits once the campaign has its final status: then they were left out.
    """

    people: int
    queued: int
    reached: int
    unreached: int
    under_way: int
    waiting: int


class ProgressCount:
    """Counts one campaign; `take_in` is handed each part of the log once."""

    def __init__(self, desk: CampaignDesk) -> None:
        self._desk = desk
        self._kinds = np.zeros(len(CHANGES), dtype=np.int64)
        self._reached_before: int | None = None

    def take_in(self, rows: CallRows) -> None:
        """Count what is new in the log."""
        self._kinds += np.bincount(rows.kind, minlength=len(CHANGES))

    @property
    def progress(self) -> Progress:
        """How things stand after what was taken in."""
        campaign = self._desk.campaign
        people = self._desk.total_recipients
        removed = campaign.block.people.count - people
        done = campaign.people_done - removed
        reached = int(self._kinds[_REACHED]) + self._before()
        under_way = int(self._kinds @ SLOTS)
        return Progress(
            people=people,
            queued=int(self._kinds @ IN_QUEUE),
            reached=reached,
            unreached=done - reached,
            under_way=under_way,
            waiting=people - done - under_way,
        )

    def _before(self) -> int:
        """Who was reached before the scenario began (R3); they count once it is scheduled."""
        if not self._kinds.any() and not self._desk.campaign.people_done:
            return 0
        if self._reached_before is None:
            history = self._desk.campaign.block.people.history
            self._reached_before = sum(
                past.reached and self._desk.is_listed(who) for who, past in history.items()
            )
        return self._reached_before
