"""The board: what the page counts of a sandbox, kept up with it at the cost of what is new."""

from __future__ import annotations

import numpy as np

from dialsim.results.ledger import SLOTS
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.page.progress import Progress, ProgressCount
from dialsim.sandbox.page.slot_use import SlotUse

_Place = tuple[int, int]


class Board:
    """Progress of every campaign and slot use of every organization, by their positions."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._counts: dict[_Place, ProgressCount] = {}
        self._read: dict[_Place, int] = {}
        start = exchange.scenario.clock.start
        self._uses = [SlotUse(start) for _ in exchange.accounts]

    def catch_up(self) -> None:
        """Take in what has happened since the last time."""
        now = self._exchange.simulation.at
        for account, use in zip(self._exchange.accounts, self._uses, strict=True):
            changed_at, gains = [np.empty(0, np.int64)], [np.empty(0, np.int8)]
            for desk in account.desks:
                log, place = desk.campaign.log, _place(desk)
                count = self._counts.setdefault(place, ProgressCount(desk))
                if len(log) == self._read.get(place, 0):
                    continue
                rows = log.rows(self._read.get(place, 0))
                self._read[place] = len(log)
                count.take_in(rows)
                gain = SLOTS[rows.kind]
                changed_at.append(rows.at[gain != 0])
                gains.append(gain[gain != 0])
            use.take_in(np.concatenate(changed_at), np.concatenate(gains), now)

    def progress(self, desk: CampaignDesk) -> Progress:
        """What a campaign has come to."""
        return self._counts[_place(desk)].progress

    def slot_use(self, organization: int) -> SlotUse:
        """The slots of an organization."""
        return self._uses[organization]


def _place(desk: CampaignDesk) -> _Place:
    block = desk.campaign.block
    return block.organization, block.position
