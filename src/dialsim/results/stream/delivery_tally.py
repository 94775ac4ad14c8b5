"""How results were delivered: counts of a campaign's notices, or of several campaigns'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.delivery import NOT_SENT, WAITS_MS, accepted
from dialsim.results.ledger import Ledger
from dialsim.results.stream.campaign_stream import CampaignStream
from dialsim.results.stream.deliveries import Posts
from dialsim.results.stream.notices import FOREVER, Notices

_MOST_POSTS = 1 + len(WAITS_MS)


@dataclass(frozen=True, slots=True)
class DeliveryTally:
    """Counts of results.

    `sent` had a URL to go to: each was delivered `at_first_try` or `after_retries`, is `lost`
    after three failures (W2), or `pending` when the run ended. `received_though_lost` counts lost
    ones that the receiver took in all the same, `duplicated` those it took in more than once, and
    `out_of_order` those that it took in after a newer result of the same person.
    `without_url` had none (W6). `delays_ms` has, of each result that the receiver took in, the time
    from the result to its first arrival.
    """

    sent: int
    at_first_try: int
    after_retries: int
    lost: int
    pending: int
    received_though_lost: int
    duplicated: int
    out_of_order: int
    without_url: int
    delays_ms: NDArray[np.int64]


class Fate(IntEnum):
    """What became of a result by the end, as in `DeliveryTally`."""

    AT_FIRST_TRY = 0
    AFTER_RETRIES = 1
    LOST = 2
    PENDING = 3
    WITHOUT_URL = 4


def fates(stream: CampaignStream) -> NDArray[np.int8]:
    """The fate of each notice of a campaign."""
    posts, count = stream.posts, len(stream.notices)
    tries = np.bincount(posts.notice[posts.number > 0], minlength=count)
    kept = np.bincount(posts.notice[posts.response == NOT_SENT], minlength=count)
    taken_at = np.zeros(count, dtype=np.int16)
    good = np.flatnonzero(accepted(posts.response))[::-1]  # the first of several is assigned last
    taken_at[posts.notice[good]] = posts.number[good]
    rules = {
        Fate.AT_FIRST_TRY: taken_at == 1,
        Fate.AFTER_RETRIES: taken_at > 1,
        Fate.WITHOUT_URL: kept > 0,
        Fate.LOST: tries >= _MOST_POSTS,
    }
    codes = [np.int8(fate) for fate in rules]
    return np.select([*rules.values()], codes, default=np.int8(Fate.PENDING))


def tally_deliveries(stream: CampaignStream) -> DeliveryTally:
    """Count the deliveries of one campaign."""
    notices, posts = stream.notices, stream.posts
    of_notice = fates(stream)
    count = np.bincount(of_notice, minlength=len(Fate))
    taken = np.bincount(posts.notice[posts.received], minlength=len(notices))
    arrived = _first_arrivals(notices, posts)
    received = np.flatnonzero(arrived != FOREVER)
    return DeliveryTally(
        sent=len(notices) - int(count[Fate.WITHOUT_URL]),
        at_first_try=int(count[Fate.AT_FIRST_TRY]),
        after_retries=int(count[Fate.AFTER_RETRIES]),
        lost=int(count[Fate.LOST]),
        pending=int(count[Fate.PENDING]),
        received_though_lost=int(np.count_nonzero((of_notice == Fate.LOST) & (taken > 0))),
        duplicated=int(np.count_nonzero(taken > 1)),
        out_of_order=_overtaken(stream.ledger, notices[received], arrived[received]),
        without_url=int(count[Fate.WITHOUT_URL]),
        delays_ms=arrived[received] - notices.ready_at[received],
    )


def add_up_deliveries(tallies: Sequence[DeliveryTally]) -> DeliveryTally:
    """The tally of several campaigns together."""
    names = [name for name in DeliveryTally.__slots__ if name != "delays_ms"]
    counts = {name: sum(getattr(tally, name) for tally in tallies) for name in names}
    delays = np.concatenate([np.empty(0, np.int64), *(tally.delays_ms for tally in tallies)])
    return DeliveryTally(**counts, delays_ms=delays)


def _first_arrivals(notices: Notices, posts: Posts) -> NDArray[np.int64]:
    """When the receiver first took in each notice (ms); FOREVER if it never did."""
    arrived = np.full(len(notices), FOREVER, dtype=np.int64)
    taken = posts.received
    np.minimum.at(arrived, posts.notice[taken], posts.arrived_at[taken])
    return arrived


def _overtaken(ledger: Ledger, notices: Notices, arrived: NDArray[np.int64]) -> int:
    """How many notices arrived after one of the same person that was ready later."""
    if not len(notices):
        return 0
    person = ledger.recipient[notices.call]
    order = np.lexsort((notices.result, notices.call, notices.ready_at, person))
    rank = np.cumsum(np.diff(person[order], prepend=-1) != 0)
    since = arrived[order] - arrived.min()
    # with a step up from person to person, the least from the end on is each person's own
    lifted = rank * (since.max() + 1) + since
    least_later = np.minimum.accumulate(lifted[::-1])[::-1]
    return int(np.count_nonzero(lifted > least_later))
