"""How results were delivered: counts of a campaign's notices, or of several campaigns'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.results.ledger import Ledger
from dialsim.results.stream.campaign_stream import CampaignStream
from dialsim.results.stream.deliveries import OK, WAITS_MS, Posts
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


def tally_deliveries(stream: CampaignStream) -> DeliveryTally:
    """Count the deliveries of one campaign."""
    notices, posts = stream.notices, stream.posts
    tried = posts.number > 0
    tries = np.bincount(posts.notice[tried], minlength=len(notices))
    taken = np.bincount(posts.notice[posts.received], minlength=len(notices))
    accepted = np.zeros(len(notices), dtype=np.int8)
    good = posts.response == OK
    accepted[posts.notice[good]] = posts.number[good]
    lost = (accepted == 0) & (tries == _MOST_POSTS)
    arrived = _first_arrivals(notices, posts)
    received = np.flatnonzero(arrived != FOREVER)
    return DeliveryTally(
        sent=int(np.count_nonzero(tries)),
        at_first_try=int(np.count_nonzero(accepted == 1)),
        after_retries=int(np.count_nonzero(accepted > 1)),
        lost=int(np.count_nonzero(lost)),
        pending=int(np.count_nonzero((accepted == 0) & (tries > 0) & ~lost)),
        received_though_lost=int(np.count_nonzero(lost & (taken > 0))),
        duplicated=int(np.count_nonzero(taken > 1)),
        out_of_order=_overtaken(stream.ledger, notices[received], arrived[received]),
        without_url=int(np.count_nonzero(~tried)),
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
