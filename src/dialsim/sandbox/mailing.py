"""Mailing: the results of one campaign as they are promised, and their bodies as they fall due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.dialler import Dialler
from dialsim.engine.post_log import PostKey
from dialsim.engine.trace import Trace
from dialsim.results.ledger import NEVER
from dialsim.results.stream.bodies import Bodies
from dialsim.results.stream.notices import Notices
from dialsim.results.stream.shown import Setting, Shown
from dialsim.sandbox.campaign_desk import CampaignDesk


class Promises(NamedTuple):
    """What is to come by itself: results, and the instants (ms) of other changes by analyses."""

    notices: Notices
    changes: NDArray[np.int64]


class Mailing:
    """What one campaign has to tell its organization's receiver.

    Calls are told apart by their position in the campaign's call book.
    """

    def __init__(self, trace: Trace, desk: CampaignDesk, dialler: Dialler) -> None:
        self.desk = desk
        self._trace = trace
        self._dialler = dialler
        self._bodies = Bodies(trace, desk.campaign.block, desk.persons)
        self._ends_seen = 0
        self._reanalyses_seen = 0
        self._rows_of_reanalyses = 0

    def has_news(self) -> bool:
        """Whether any result may have been promised since the last time."""
        book = self.desk.book
        return (
            book.ends > self._ends_seen
            or len(self._trace.reanalyses) > self._rows_of_reanalyses
            or book.has_ends_ahead()
        )

    def news(self) -> Promises:
        """What has been promised since the last time: by calls that ended, and by re-analyses."""
        self.desk.catch_up()
        book, results = self.desk.book, self.desk.results
        ended = book.ended(self._ends_seen)
        first = results.firsts(ended)
        notices = first[first.ready_at != NEVER]
        changes = [results.failures(ended)]
        if results.version > self._reanalyses_seen:
            notices = Notices.joined([notices, results.repeated(self._reanalyses_seen)])
        if self._trace.world.scenario.engine.webhook_delay:
            changes.append(notices.ready_at)
        self._ends_seen = book.ends
        self._reanalyses_seen = results.version
        self._rows_of_reanalyses = len(self._trace.reanalyses)
        return Promises(notices, np.concatenate(changes))

    def due(self, promised: Sequence[tuple[int, int]]) -> Notices:
        """The results, by call and number of the result, that are still to be told of.

        A later re-analysis may have taken one back: a fallback doesn't overwrite a good result.
        """
        self.desk.catch_up()
        results = self.desk.results
        first = results.firsts(np.array([c for c, number in promised if not number], np.int64))
        repeats = [(results.again(call), number) for call, number in promised if number]
        again = (notices[notices.result == number] for notices, number in repeats)
        return Notices.joined([first, *again])

    def key(self, call: int, result: int) -> PostKey:
        """The key of a result."""
        block, entry = self.desk.campaign.block, self.desk.book[call]
        return PostKey(block.organization, block.position, entry.recipient, entry.number, result)

    def call(self, key: PostKey) -> int:
        """The position of the call of a key."""
        return int(self.desk.book.find(np.array([key.recipient]), np.array([key.call]))[0])

    def bodies(self, notices: Notices, at: int) -> list[bytes]:
        """The bodies of results whose first POSTs leave now, at the end of an instant (W4)."""
        return self._bodies.of(
            notices, self.desk.book.facts(notices.call), self._shown(notices, at)
        )

    def _shown(self, notices: Notices, at: int) -> Shown:
        """What the payloads show of recipients and campaign: the state of now."""
        desk, book = self.desk, self.desk.book
        who = book.column("recipient", notices.call)
        newest = book.newest[who].astype(np.int64)
        return Shown(
            call_attempt=book.attempts[who],
            latest_call_status=desk.results.standing(newest, at).status,
            setting=np.zeros(len(notices), dtype=np.int64),
            expired=desk.flags(book.column("ended_at", notices.call), at),
            settings=[Setting(at, desk.campaign.status, self._dialler.limit)],
        )
