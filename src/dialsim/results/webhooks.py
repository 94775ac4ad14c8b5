"""The webhooks table: one row per POST, in the order sent."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dialsim.interface.delivery import BROKEN, ERROR, NOT_SENT, OK, REFUSED, TIMED_OUT, WORDS
from dialsim.results.columns import counts, instants, names
from dialsim.results.ledger import CALL_STATUSES, TO_STATUS
from dialsim.results.payload_column import payload_column
from dialsim.results.reading import Reading
from dialsim.results.stream.stream import Stream

_SIMULATED = (OK, ERROR, TIMED_OUT, REFUSED)


def webhooks_table(reading: Reading) -> pd.DataFrame:
    """One row per POST, by (at, organization, campaign, recipient, call, result, attempt).

    Of one instant, what a command from outside brought about comes behind the rest (T4).
    `attempt`, `response` ("200", another status, "timeout", "refused" or "broken") and `received`
    are those of the POST, as in `webhooks.jsonl`; a result that has no URL to go to has one row in
    which attempt and response are null (W6), and a POST under way has no response yet. `result` is
    0 for a call's first result and n for that of re-analysis number n, `ready_at` is when it was
    there, and `call_status` is the payload's. `body` is the payload, a dict that is made when it is
    looked at.
    """
    stream = reading.stream
    posts = stream.posts
    catalog, codes = reading.catalog, reading.catalog.campaign_codes(reading.world)
    organizations = np.array([place[0] for place in reading.lives], dtype=np.int32)
    campaigns = np.array([codes[o][c] for o, c in reading.lives], dtype=np.int32)
    return pd.DataFrame(
        {
            "at": instants(posts.at),
            "organization": names(organizations[stream.place], catalog.organizations),
            "campaign": names(campaigns[stream.place], catalog.campaigns),
            **_result(stream),
            "attempt": counts(posts.number.astype(np.int32), posts.response == NOT_SENT),
            "response": _responses(posts.response),
            "received": posts.received,
            "body": payload_column(stream),
        },
        copy=False,
    )


def _result(stream: Stream) -> dict[str, object]:
    """The columns recipient, call, result, call_status and ready_at."""
    size = len(stream.posts)
    recipient, call = np.empty(size, np.int32), np.empty(size, np.int32)
    result, status = np.empty(size, np.int32), np.empty(size, np.int8)
    ready_at = np.empty(size, np.int64)
    for place, part in enumerate(stream.parts):
        rows = np.flatnonzero(stream.place == place)
        notices, ledger = part.notices[stream.posts.notice[rows]], part.ledger
        recipient[rows], call[rows] = ledger.recipient[notices.call], ledger.call[notices.call]
        result[rows], ready_at[rows] = notices.result, notices.ready_at
        status[rows] = TO_STATUS[ledger.last_kind[notices.call]]
    return {
        "recipient": recipient,
        "call": call,
        "result": result,
        "call_status": names(status, CALL_STATUSES),
        "ready_at": instants(ready_at),
    }


def _responses(codes: NDArray[np.int16]) -> pd.Categorical:
    """Statuses and words; those of the simulated receiver are always among the categories."""
    statuses = sorted({*codes[codes > 0].tolist()}.difference(_SIMULATED))
    known = [*_SIMULATED, *statuses, *([BROKEN] if (codes == BROKEN).any() else [])]
    places = np.select([codes == code for code in known], range(len(known)), default=-1)
    return names(places, [WORDS.get(code, str(code)) for code in known])
