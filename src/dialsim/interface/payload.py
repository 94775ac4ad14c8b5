"""Parts of the webhook's payload: outcomes of POSTs, their log, links to files, fields, and masks.

Sections 2.6 (analysis results), 2.7 (payload), 6.2 (POSTs) and 6.4 (links) of the interface. JSON
objects are plain dicts in the interface's order; `webhooks.bodies` assembles whole bodies. A mask
replaces personal data that the retention policy has removed (D1).

Only a sandbox has a log of real POSTs; the POSTs of a simulated receiver are computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, overload
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from dialsim.interface import CampaignStatus
from dialsim.interface.agent import ParamSchema
from dialsim.interface.instants import format_instant
from dialsim.interface.schedule import ScheduleRequest

MASKED_NAME = ""
"""`customerName` of every masked recipient, also of one without a name."""

_MASKED_TEL = re.compile(r"[0-9]{2}x+[0-9]{2}")
_KEPT_PREFIX = "metadata__"


def mask_tel(tel: str) -> str:
    """Mask a phone number: keep the first two and last two digits, with an `x` for each digit
    between (D1).

    Characters other than digits are dropped. Numbers of up to four digits and masked numbers are
    returned unchanged.
    """
    if _MASKED_TEL.fullmatch(tel):
        return tel
    digits = re.sub("[^0-9]", "", tel)
    hidden = len(digits) - 4
    return f"{digits[:2]}{'x' * hidden}{digits[-2:]}" if hidden > 0 else digits


def mask_agent_params(params: Mapping[str, object]) -> dict[str, object]:
    """Mask `agentParams`: replace values by null, except under `metadata__…` keys (D1)."""
    return {key: value if key.startswith(_KEPT_PREFIX) else None for key, value in params.items()}


def mask_call_result(result: Mapping[str, object]) -> dict[str, object]:
    """Mask a `callResult`: replace every value by null, lists included, at every depth (D1).

    Values under `metadata__…` keys are kept at every depth.
    """
    return {
        key: value if key.startswith(_KEPT_PREFIX) else _blank(value)
        for key, value in result.items()
    }


def _blank(value: object) -> object:
    return mask_call_result(value) if isinstance(value, Mapping) else None


TIMEOUT_MS = 10_000
WAITS_MS = (1_000, 2_000)
"""Waits before the second and the third POST, in ms, each after the failure before it (W2)."""

OK, ERROR = 200, 500
"""HTTP statuses of the simulated receiver (W5)."""

# None is positive: `response > 0` selects the HTTP statuses.
NOT_SENT, TIMED_OUT, REFUSED, BROKEN, UNDER_WAY = 0, -1, -2, -3, -4
"""Codes stored in place of an HTTP status for POSTs without one."""

WORDS = {TIMED_OUT: "timeout", REFUSED: "refused", BROKEN: "broken"}
"""Wire words for failures without a status: no complete reply in time, no connection, or a
connection that ended before the reply was complete.
"""


@overload
def accepted(response: int) -> bool: ...
@overload
def accepted(response: NDArray[np.int16]) -> NDArray[np.bool_]: ...
def accepted(response: int | NDArray[np.int16]) -> bool | NDArray[np.bool_]:
    """Return True where a status is 2xx: the receiver accepted the result (W2)."""
    # Right for the negative codes, too: floor division yields -1.
    return response // 100 == 2


def response_json(response: int) -> int | str | None:
    """Return the outcome of a POST for JSON: its HTTP status, a word for a failure, or None
    while pending.
    """
    return response if response > 0 else WORDS.get(response)


VALID_SECONDS = 3_600
"""Lifetime of a link to a file, in seconds after its POST."""

FileKind = Literal["recordings", "transcripts"]

_ENDINGS = {"recordings": ".wav", "transcripts": ".json"}
_URL_MARKS = "/:?#[]@!$&'()*+,;=%-._~"
_VERSION = 14  # index of the version among the characters of a UUID
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


def links(
    public_url: str,
    kind: FileKind,
    call_ids: NDArray[np.bytes_],
    sent_at: NDArray[np.int64],
    seed: int,
) -> list[str]:
    """Build links to the files of calls, for results sent at the given instants (ms).

    `call_ids` has dtype S36. A link contains its expiry in seconds since 1970 and a signature.
    """
    # The signature protects nothing. It is a function of file, expiry and seed, so that equal runs
    # send equal bodies and links differ where real ones would.
    start = f"{quote(public_url.rstrip('/'), safe=_URL_MARKS)}/files/{kind}/"
    expires = sent_at // 1_000 + VALID_SECONDS
    # The names of the kinds differ in length (10 and 11), so a call's two files get different
    # signatures.
    signatures = _signatures(call_ids, expires, seed ^ len(kind))
    files = zip(call_ids.astype(str).tolist(), expires.tolist(), signatures.tolist(), strict=True)
    return [
        f"{start}{call_id}{_ENDINGS[kind]}?expires={until:010}&signature={signed:016x}"
        for call_id, until, signed in files
    ]


def signature(kind: FileKind, call_id: str, expires: int, seed: int) -> str:
    """Return the signature of a link to a call's file; `expires` is in seconds since 1970."""
    ids = np.array([call_id.encode()], dtype="S36")
    return f"{int(_signatures(ids, np.array([expires]), seed ^ len(kind))[0]):016x}"


def _signatures(
    call_ids: NDArray[np.bytes_], expires: NDArray[np.int64], salt: int
) -> NDArray[np.uint64]:
    """Compute 64 bits per link with the finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    # A copy, because the version digit of each id is overwritten below.
    octets = np.array(call_ids).view(np.uint8).reshape(-1, 36)
    octets[:, _VERSION] = ord("8")  # ids once had version 8, and signatures must not change
    words = octets.view(np.uint32).reshape(-1, 9).astype(np.uint64)
    signature = expires.astype(np.uint64) * _STEP + np.uint64(salt % 2**64)
    for column in words.T:
        signature = (signature ^ column) + _STEP
        for shift, factor in _MIX:
            signature = (signature ^ (signature >> np.uint64(shift))) * factor
        signature ^= signature >> np.uint64(31)
    return signature


NO_CONVERSATION = "No conversation"
"""Both texts of the fallback result of a silent call (A3)."""
UNKNOWN = "Unknown"
"""Funnel value if no step is known to be reached."""
FAILED_MESSAGE = "The line or the number failed"
"""`errorMessage` of a FAILED call (F2). The wording is ours."""
QUEUE_TIMEOUT_MESSAGE = "The call waited too long in the queue"
"""`errorMessage` of a call CANCELLED by the queue timeout (F2). The wording is ours."""


def agent_json(
    identifier: str, name: str, schema: Mapping[str, ParamSchema] | None
) -> dict[str, object]:
    """Return an agent for JSON: id, name, and the parameters that recipients carry (section
    2.2).
    """
    entries = None
    if schema is not None:
        entries = {
            key: entry.model_dump(by_alias=True, exclude_none=True) for key, entry in schema.items()
        }
    return {"id": identifier, "name": name, "paramsSchema": entries}


def campaign_json(
    identifier: str,
    name: str,
    *,
    status: CampaignStatus,
    max_concurrent_calls: int,
    request: ScheduleRequest,
    start_at: int,
) -> dict[str, object]:
    """Return `payload.campaign`: the settings (section 2.7) with defaults filled in (F3).

    `start_at` is the effective start (ms). `status` and `max_concurrent_calls` are those when the
    webhook is sent.
    """
    end = request.end_date_time
    return {
        "id": identifier,
        "name": name,
        "status": status,
        "maxAttempts": request.max_attempts,
        "maxConcurrentCalls": max_concurrent_calls,
        "retryInterval": request.retry_interval,
        "scheduleStartAt": format_instant(start_at),
        "scheduleEndAt": None if end is None else format_instant(end),
        "scheduleDateTimeWindow": [
            day.model_dump(mode="json", by_alias=True) for day in request.time_windows
        ],
        "sipAccountId": request.sip_account_id,
    }


def data_expired(*, audio: bool, personal_data: bool, output: bool) -> dict[str, bool]:
    """Return `payload.dataExpired`: kinds of data that retention has removed (section 6.6)."""
    return {"audio": audio, "personalData": personal_data, "output": output}


class PostKey(NamedTuple):
    """Key of the result that a POST delivers.

    Positions are from 0, and `call` is the ordinal of the recipient's call, from 1. `result` is 0
    for the call's first result and n for the result of the campaign's nth re-analysis.
    """

    organization: int
    campaign: int
    recipient: int
    call: int
    result: int


class Post(NamedTuple):
    """One POST of a result, sent at `at` (ms).

    `number` counts the POSTs of the result from 1; 0 marks a result that was kept and not sent.
    `turn` is the turn in which the POST was sent, if later than the turn of `at` (see
    `Trace.turn`). `resent` marks a POST made on request, in addition to the three of W2. `response`
    is an HTTP status or a code of `interface.payload`.
    """

    key: PostKey
    number: int
    at: int
    turn: int
    resent: bool
    response: int = UNDER_WAY


_ROW = np.dtype(
    [
        ("organization", np.int32),
        ("campaign", np.int32),
        ("recipient", np.int32),
        ("call", np.int32),
        ("result", np.int16),
        ("number", np.int16),
        ("at", np.int64),
        ("turn", np.int32),
        ("resent", np.bool_),
        ("response", np.int16),
    ]
)
"""Columns as in `PostKey`, then as in `Post`."""


class PostLog:
    """POSTs in the order in which they were sent, one row each."""

    def __init__(self) -> None:
        # A row takes 35 bytes, a tuple of Python integers many times as much.
        self._table = np.empty(16, dtype=_ROW)  # with room for more rows
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def _rows(self) -> NDArray[np.void]:
        return self._table[: self._size]

    def append(self, post: Post) -> int:
        """Append a POST and return the index of its row."""
        if self._size == len(self._table):
            self._table = np.resize(self._table, 2 * self._size)
        self._table[self._size] = (*post.key, *post[1:])
        self._size += 1
        return self._size - 1

    def answer(self, row: int, response: int) -> None:
        """Store the response to the POST in the row with this index."""
        self._rows["response"][row] = response

    def row(self, row: int) -> Post:
        """Return the POST in the row with this index."""
        values = self._rows[row].item()
        return Post(PostKey(*values[:5]), *values[5:])

    def count(self, key: PostKey) -> int:
        """Return the number of POSTs sent for a result, without results that were only kept."""
        return int(np.count_nonzero(self._with(key)["number"] > 0))

    def before(self, key: PostKey) -> PostKey | None:
        """Return the key of the latest POST about the same recipient with another result, or
        None.
        """
        rows = self._with(key[:3])
        rows = rows[(rows["call"] != key.call) | (rows["result"] != key.result)]
        return PostKey(*rows[-1].item()[:5]) if len(rows) else None

    def copy(self) -> PostLog:
        """Return an independent copy of the log."""
        log = PostLog()
        log._table, log._size = self._table.copy(), self._size
        return log

    def rows(self, organization: int, campaign: int) -> NDArray[np.void]:
        """Return a copy of the rows of one campaign, with columns as in `PostKey` and `Post`."""
        return self._with((organization, campaign))

    def _with(self, key: tuple[int, ...]) -> NDArray[np.void]:
        """Return the rows whose key begins with these parts."""
        rows = self._rows
        for name, part in zip(PostKey._fields, key, strict=False):
            rows = rows[rows[name] == part]
        return rows
