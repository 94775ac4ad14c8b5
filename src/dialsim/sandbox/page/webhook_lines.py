"""Webhook lines: the results that left last, or were kept, as the page lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dialsim.engine.post_log import PostKey
from dialsim.interface.delivery import NOT_SENT, UNDER_WAY, WORDS, accepted
from dialsim.interface.errors import Refused
from dialsim.results.ledger import NEVER
from dialsim.results.stream.deliveries import has_url
from dialsim.results.stream.moments import moments
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.page.call_lines import CallLine, desk_at
from dialsim.sandbox.page.view import Place, View, is_number
from dialsim.sandbox.webhook_table import WebhookRow

MOST = 50
"""How many of the latest webhooks are listed."""

_PARTS = 6  # of a webhook's place: its key's five and its number
_ENDS_BACK = 4 * MOST  # calls that ended last: their results leave in nearly the same order
_MOST_LOOKED_AT = 5_000  # POSTs: what is chosen is looked for among so many of the latest


@dataclass(frozen=True, slots=True)
class WebhookLine:
    """One POST of a result, or a result that was kept because there was no URL (`number` 0).

    `at` (ms) is when it left; `number` is the POST's of its result, from 1; `response` an HTTP
    status or a code of `interface.delivery`.
    """

    key: PostKey
    call: CallLine
    at: int
    number: int
    resent: bool
    response: int

    @property
    def outcome(self) -> str:
        """What came of it, in a word or two."""
        if self.response == NOT_SENT:
            return "kept"
        if self.response == UNDER_WAY:
            return "under way"
        return WORDS.get(self.response) or str(self.response)

    @property
    def fate(self) -> str:
        """What came of it, as a kind: `delivered`, `failed`, `kept` or `under-way`."""
        if self.response == NOT_SENT:
            return "kept"
        if self.response == UNDER_WAY:
            return "under-way"
        return "delivered" if accepted(self.response) else "failed"

    @property
    def place(self) -> tuple[int, ...]:
        """What finds it again, see `find_webhook`."""
        return (*self.key, self.number)


def find_webhook(exchange: Exchange, text: str) -> WebhookRow:
    """What the control plane says of the webhook at a place, written `0.2.17.1.0.1`.

    Reads the whole list. Raises Refused, 404, if there is none.
    """
    numbers = [int(part) for part in text.split(".") if is_number(part)]
    if len(numbers) == _PARTS and desk_at(exchange, Place(*numbers[:2])) is not None:
        organization, campaign, recipient, call, result, number = numbers
        table = exchange.webhooks
        rows = table.find(place=(organization, campaign), call=(recipient, call))
        for row in table.rows(rows):
            if (row.result, row.attempt or 0) == (result, number):
                return row
    raise Refused(404, "WEBHOOK_NOT_FOUND", ["Webhook not found"])


def latest_webhooks(exchange: Exchange, view: View) -> list[WebhookLine]:
    """The webhooks that left last, newest first, of the campaign that is chosen."""
    found = [*islice(_sent(exchange, view), MOST), *_kept(exchange, view)]
    found.sort(key=lambda line: (-line[1], -line[2]))
    return [
        WebhookLine(key, _call_line(exchange, desk, key), at, number, resent, response)
        for (key, desk), at, number, resent, response in found[:MOST]
    ]


_Found = tuple[tuple[PostKey, CampaignDesk], int, int, bool, int]


def _sent(exchange: Exchange, view: View) -> Iterator[_Found]:
    """POSTs, newest first."""
    log, chosen = exchange.outbox.log, Place.read(view.campaign, 2)
    for row in range(len(log) - 1, max(len(log) - _MOST_LOOKED_AT, 0) - 1, -1):
        key, number, at, _, resent, response = log.row(row)
        if chosen is None or chosen[:2] == key[:2]:
            desk = desk_at(exchange, Place(*key[:2]))
            assert desk is not None  # what is in the log is of a campaign
            yield (key, desk), at, number, resent, response


def _kept(exchange: Exchange, view: View) -> Iterator[_Found]:
    """First results that had no URL to go to (W6), of the calls that ended last."""
    trace, now, chosen = exchange.simulation.log, exchange.at, Place.read(view.campaign, 2)
    without = {change.organization for change in trace.urls if change.url is None}
    desks = (desk for position in without for desk in exchange.accounts[position].desks)
    for desk in desks:
        block = desk.campaign.block
        if chosen is not None and chosen[:2] != (block.organization, block.position):
            continue
        desk.catch_up()
        ended = desk.book.ended(max(desk.book.ends - _ENDS_BACK, 0))
        notices = desk.results.firsts(ended)
        sent = moments(trace, notices.sent_at, notices.turn)
        kept = (notices.ready_at != NEVER) & (notices.sent_at <= now)
        kept &= ~has_url(trace, block.organization, sent)
        for row in np.flatnonzero(kept).tolist():
            entry = desk.entry(int(notices.call[row]))
            key = PostKey(block.organization, block.position, entry.recipient, entry.number, 0)
            yield (key, desk), int(notices.sent_at[row]), 0, False, NOT_SENT


def _call_line(exchange: Exchange, desk: CampaignDesk, key: PostKey) -> CallLine:
    desk.catch_up()
    return CallLine.of(desk, desk.position_of(key.recipient, key.call), exchange.at)
