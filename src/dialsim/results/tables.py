"""Columns of the tables: compact arrays in, pandas arrays out that come back from parquet alike.

What calls cost: a price per dial, and one per started billing increment of conversation.

The calls table: one row per call.

The transitions table: one row per change of a call, in the order in which they happened.

The recipients table: one row per person of each campaign.

The campaigns table: one row per change of a campaign's status.

A column of payloads that are made when they are looked at, and take no memory before.

The webhooks table: one row per POST, in the order sent.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NoReturn, Protocol, Self

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from pandas.api.extensions import ExtensionArray, ExtensionDtype, take
from pandas.api.indexers import check_array_indexer

from dialsim.engine.calls import CALL_STATUSES, NEVER, TO_STATUS, Calls
from dialsim.engine.identity import call_ids, recipient_ids, session_ids
from dialsim.engine.trace import CHANGES, CallRows
from dialsim.interface.errors import DialsimError
from dialsim.interface.payload import BROKEN, ERROR, NOT_SENT, OK, REFUSED, TIMED_OUT, WORDS
from dialsim.interface.status import AgentStatus, CampaignStatus, Phase
from dialsim.results.people import PERSON_STATES, listed
from dialsim.results.run_view import RunView
from dialsim.scenario.people import GeneratedPeople
from dialsim.scenario.service import Costs
from dialsim.webhooks.analysis import AnalysisOutcome
from dialsim.webhooks.bodies import Body
from dialsim.webhooks.stream import VERDICTS, Stream

INSTANT = pd.DatetimeTZDtype("ms", "UTC")


def joined(
    ledgers: Iterable[Calls], dtype: DTypeLike, column: Callable[[Calls], NDArray[Any]]
) -> NDArray[Any]:
    """The column of each campaign, one below the other."""
    return np.concatenate([np.empty(0, dtype), *(column(ledger) for ledger in ledgers)])


def instants(at: NDArray[np.int64]) -> ExtensionArray:
    """UTC instants of datetime64[ms, UTC]; NEVER becomes NaT."""
    column: ExtensionArray = pd.array(at.view("datetime64[ms]"), dtype=INSTANT)
    return column


def names(codes: NDArray[Any] | list[int], texts: Sequence[str]) -> pd.Categorical:
    """Texts of a small set, dictionary-encoded; code -1 is null."""
    return pd.Categorical.from_codes(codes, categories=pd.Index([*texts], dtype="str"))


def texts(ascii_text: NDArray[np.bytes_]) -> ExtensionArray:
    """ASCII texts of equal length (dtype S…), as the string dtype of pandas."""
    offsets = np.arange(len(ascii_text) + 1, dtype=np.int64) * ascii_text.dtype.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(ascii_text))]
    arrow = pa.Array.from_buffers(pa.large_string(), len(ascii_text), buffers)
    column: ExtensionArray = pd.array(arrow, dtype="str")
    return column


def counts(values: NDArray[np.int32] | NDArray[np.int64], missing: NDArray[np.bool_]) -> Any:
    """Whole numbers of which some are missing (Int32 or Int64)."""
    return pd.arrays.IntegerArray(values, missing)


def campaign_columns(reading: RunView, sizes: Sequence[int]) -> dict[str, pd.Categorical]:
    """The columns organization and campaign: `sizes[i]` rows of the i-th campaign of the run."""
    codes = reading.catalog.campaign_codes(reading.world)
    organizations = np.array([position[0] for position in reading.lives], dtype=np.int32)
    campaigns = np.array([codes[o][c] for o, c in reading.lives], dtype=np.int32)
    return {
        "organization": names(np.repeat(organizations, sizes), reading.catalog.organizations),
        "campaign": names(np.repeat(campaigns, sizes), reading.catalog.campaigns),
    }


def billed(ledger: Calls, increment_ms: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Per call: whether a dial is charged, and how many billing increments.

    A withdrawn dial costs nothing (P5); a conversation is charged when it is over, each started
    increment in full.
    """
    return ledger.attempt > 0, -(-ledger.talk_ms // increment_ms)


def call_costs(reading: RunView, ledgers: Sequence[Calls]) -> NDArray[np.float64]:
    """The cost of each call in the scenario's currency; NaN where the scenario names no costs."""
    costs = reading.world.scenario.costs
    total = sum(len(ledger.recipient) for ledger in ledgers)
    if costs is None:
        return np.full(total, np.nan)
    parts = [price(costs, ledger.attempt > 0, ledger.talk_ms) for ledger in ledgers]
    return np.concatenate(parts or [np.empty(0)])


def price(
    costs: Costs, dialled: NDArray[np.bool_], talk_ms: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What calls cost by whether they were dialled, and the length of their conversations."""
    per_increment = costs.per_minute * costs.billing_increment / 60_000
    increments = -(-talk_ms // costs.billing_increment)
    cost: NDArray[np.float64] = dialled * costs.per_dial + increments * per_increment
    return cost


AGENT_STATUSES = tuple(AgentStatus)

_INSTANTS = {
    "created_at": "created_at",
    "queued_at": "queued_at",
    "initiated_at": "initiated_at",
    "ringing_at": "ringing_at",
    "call_started_at": "started_at",
    "call_ended_at": "ended_at",
}


def calls_table(reading: RunView) -> pd.DataFrame:
    """One row per call, by (organization, campaign, recipient, call); instants in UTC, to the ms.

    `attempt`, `initiated_at`, `caller_id` and `voice_key` are null for a call never dialled, or
    whose dial was withdrawn and not repeated (P5); `queued_at` is the newest release; `cost` is
    null where the scenario names no costs; `voice_engine` is 2 for campaigns scheduled with
    ttsVoiceKeys, else 1 (F3). `analysis` is one of `Verdict`, and `funnel` the funnel's value in
    the newest result, null where there is no conversation. Names and statuses are categorical.
    """
    ledgers = list(reading.ledgers.values())
    attempt = joined(ledgers, np.int32, lambda ledger: ledger.attempt)
    talk_ms = joined(ledgers, np.int64, _conversation_ms)
    return pd.DataFrame(
        {
            **campaign_columns(reading, [len(ledger.recipient) for ledger in ledgers]),
            **_identity(reading, ledgers),
            "attempt": counts(attempt, attempt == 0),
            "status": names(joined(ledgers, np.int8, lambda ledger: ledger.status), CALL_STATUSES),
            "agent_status": names(
                joined(ledgers, np.int8, lambda ledger: agent_status(reading, ledger)),
                AGENT_STATUSES,
            ),
            **_dialled_with(reading, ledgers),
            **{
                name: instants(joined(ledgers, np.int64, attrgetter(column)))
                for name, column in _INSTANTS.items()
            },
            "call_duration_ms": counts(talk_ms, talk_ms < 0),
            **_analyzed(reading, ledgers),
            "cost": call_costs(reading, ledgers),
            "voice_engine": joined(ledgers, np.int8, lambda ledger: _engine(reading, ledger)),
        },
        copy=False,
    )


def agent_status(reading: RunView, ledger: Calls) -> NDArray[np.int8]:
    """How the agent fared in each call (F2), as an index into `AGENT_STATUSES`.

    -1 (null) while a conversation is still going on.
    """
    completed, error, not_started = (
        np.int8(AGENT_STATUSES.index(status))
        for status in (AgentStatus.COMPLETED, AgentStatus.ERROR, AgentStatus.NOT_STARTED)
    )
    status = np.where(ledger.started_at != NEVER, np.int8(-1), not_started)
    analyses = reading.analyses[ledger.organization, ledger.campaign]
    stopped = analyses.outcome == AnalysisOutcome.AGENT_ERROR
    status[analyses.call] = np.where(stopped, error, completed)
    return status


def _analyzed(reading: RunView, ledgers: list[Calls]) -> dict[str, Any]:
    """The columns analysis and funnel."""
    known = [reading.verdicts[ledger.organization, ledger.campaign] for ledger in ledgers]
    codes = np.concatenate([np.empty(0, np.int8), *(verdicts.code for verdicts in known)])
    return {
        "analysis": names(codes, VERDICTS),
        "funnel": names(
            joined(ledgers, np.int16, lambda ledger: _funnel(reading, ledger)),
            reading.catalog.funnel_steps,
        ),
    }


def _funnel(reading: RunView, ledger: Calls) -> NDArray[np.int16]:
    """The funnel's value in each call's newest result, as a code of the catalog."""
    place = ledger.organization, ledger.campaign
    return reading.catalog.funnel_codes(reading.block(place).agent, reading.verdicts[place])


def _identity(reading: RunView, ledgers: list[Calls]) -> dict[str, Any]:
    """The columns recipient, call_id, session_id and call."""

    def ids(make: Callable[..., NDArray[np.bytes_]]) -> ExtensionArray:
        seed = reading.world.seed
        return texts(
            joined(
                ledgers,
                "S36",
                lambda of: make(seed, of.organization, of.campaign, of.recipient, of.call),
            )
        )

    return {
        "recipient": joined(ledgers, np.int32, lambda ledger: ledger.recipient),
        "call_id": ids(call_ids),
        "session_id": ids(session_ids),
        "call": joined(ledgers, np.int32, lambda ledger: ledger.call),
    }


def _dialled_with(reading: RunView, ledgers: list[Calls]) -> dict[str, Any]:
    """The columns caller_id, voice_key and segment."""

    def segment(ledger: Calls) -> NDArray[np.int16]:
        return reading.catalog.segment_codes(reading.world, ledger)[ledger.recipient]

    numbers = joined(ledgers, np.int32, lambda ledger: ledger.number)
    voices = joined(ledgers, np.int32, lambda ledger: ledger.voice)
    return {
        "caller_id": names(numbers, reading.world.numbers),
        "voice_key": names(voices, reading.world.voice_keys),
        "segment": names(joined(ledgers, np.int16, segment), reading.catalog.segments),
    }


def _engine(reading: RunView, ledger: Calls) -> NDArray[np.int8]:
    """The generation of the voice engine (F3), of each call."""
    request = reading.lives[ledger.organization, ledger.campaign].request
    generation = 2 if request is not None and request.tts_voice_keys else 1
    return np.full(len(ledger.recipient), generation, dtype=np.int8)


def _conversation_ms(ledger: Calls) -> NDArray[np.int64]:
    """The length of each conversation (F1); -1 where none has ended."""
    talked = (ledger.started_at != NEVER) & (ledger.ended_at != NEVER)
    return np.where(talked, ledger.ended_at - ledger.started_at, -1)


PHASES = tuple(Phase)
CAUSES = tuple(dict.fromkeys(change.cause for change in CHANGES))

_FROM_STATUS = np.array(
    [CALL_STATUSES.index(c.from_status) if c.from_status else -1 for c in CHANGES], dtype=np.int8
)
_PHASE = np.array([PHASES.index(c.phase) if c.phase else -1 for c in CHANGES], dtype=np.int8)
_CAUSE = np.array([CAUSES.index(change.cause) for change in CHANGES], dtype=np.int8)


def transitions_table(reading: RunView) -> pd.DataFrame:
    """One row per change, by (at, organization, campaign, recipient, call, occurrence) (T4).

    `phase` is the one that the change leads to, null where that ends or precedes the call;
    `from_status` is null for a call's creation.
    """
    parts = [occurrence_order(ledger) for ledger in reading.ledgers.values()]
    at = _joined(np.int64, [part.at for part in parts])
    merged = np.argsort(at, kind="stable") if len(parts) > 1 else slice(None)
    kind = _joined(np.uint8, [part.kind for part in parts])[merged]
    campaigns = campaign_columns(reading, [len(part.at) for part in parts])
    return pd.DataFrame(
        {
            "at": instants(at[merged]),
            **{name: column[merged] for name, column in campaigns.items()},
            "recipient": _joined(np.int32, [part.recipient for part in parts])[merged],
            "call": _joined(np.int32, [part.call for part in parts])[merged],
            "from_status": names(_FROM_STATUS[kind], CALL_STATUSES),
            "to_status": names(TO_STATUS[kind], CALL_STATUSES),
            "phase": names(_PHASE[kind], PHASES),
            "cause": names(_CAUSE[kind], CAUSES),
        },
        copy=False,
    )


def occurrence_order(ledger: Calls) -> CallRows:
    """The log with the rows of one instant by (recipient, call, occurrence) (T4).

    Only instants whose rows are not in that order yet are sorted.
    """
    rows, calls = ledger.rows, ledger.row_call
    same = rows.at[1:] == rows.at[:-1]
    wrong = np.flatnonzero(same & (calls[1:] < calls[:-1]))
    if not len(wrong):
        return rows
    run = np.cumsum(np.append(False, ~same))
    disordered = np.zeros(int(run[-1]) + 1, dtype=bool)
    disordered[run[wrong]] = True
    places = np.flatnonzero(disordered[run])
    order = np.arange(len(calls))
    order[places] = places[np.lexsort((calls[places], run[places]))]
    return CallRows(
        at=rows.at, recipient=rows.recipient[order], call=rows.call[order], kind=rows.kind[order]
    )


def _joined(dtype: DTypeLike, parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *parts])


def recipients_table(reading: RunView) -> pd.DataFrame:
    """One row per recipient, by (organization, campaign, recipient): as it stands at the end.

    `call_attempt` counts calls dialled and ended (P5), `latest_call_status` is null before the
    campaign is scheduled, `reached_at` is the instant of the answer (R3), `state` is one of
    `PersonState`; `created_at` is the upload's instant, `updated_at` the last change of a call
    (F2). All go on from a history; who was reached by then has the end of that call for
    `reached_at`. Recipients who were removed as duplicates (D3) have no row.
    """
    ledgers = list(reading.ledgers.values())

    def made(ledger: Calls) -> NDArray[np.int32]:
        return ledger.attempts.astype(np.int32)

    def positions(ledger: Calls) -> NDArray[np.int32]:
        return np.arange(ledger.people, dtype=np.int32)

    def updated(ledger: Calls) -> NDArray[np.int64]:
        block = reading.block((ledger.organization, ledger.campaign))
        changed: NDArray[np.int64] = ledger.of_newest(ledger.changed_at, block.created_at)
        return changed

    def created(ledger: Calls) -> NDArray[np.int64]:
        block = reading.block((ledger.organization, ledger.campaign))
        return np.full(ledger.people, block.created_at, dtype=np.int64)

    def states(ledger: Calls) -> NDArray[np.int8]:
        return reading.states[ledger.organization, ledger.campaign]

    table = pd.DataFrame(
        {
            **campaign_columns(reading, [ledger.people for ledger in ledgers]),
            "recipient": joined(ledgers, np.int32, positions),
            **_person(reading, ledgers),
            "call_attempt": joined(ledgers, np.int32, made),
            "latest_call_status": names(joined(ledgers, np.int8, latest_status), CALL_STATUSES),
            "reached_at": instants(joined(ledgers, np.int64, reached_at)),
            "state": names(joined(ledgers, np.int8, states), PERSON_STATES),
            "created_at": instants(joined(ledgers, np.int64, created)),
            "updated_at": instants(joined(ledgers, np.int64, updated)),
        },
        copy=False,
    )
    kept = joined(ledgers, np.bool_, lambda ledger: listed(states(ledger)))
    return table if kept.all() else table[kept].reset_index(drop=True)


def reached_at(ledger: Calls) -> NDArray[np.int64]:
    """The instant at which each recipient answered; NEVER for who did not.

    For who was reached before the scenario begins it is the end of that call.
    """
    answered = ledger.started_at != NEVER
    instants_ms = np.where(ledger.past_reached, ledger.past_ended_at, NEVER)
    instants_ms[ledger.recipient[answered]] = ledger.started_at[answered]
    return instants_ms


def latest_status(ledger: Calls) -> NDArray[np.int8]:
    """The status of each recipient's newest call, an index into `CALL_STATUSES`; -1 for none."""
    status: NDArray[np.int8] = ledger.of_newest(ledger.status, ledger.past_status)
    return status


def _person(reading: RunView, ledgers: list[Calls]) -> dict[str, Any]:
    """The columns recipient_id, customer_name, tel and segment."""
    blocks = [reading.block(position) for position in reading.lives]

    def segments(ledger: Calls) -> NDArray[np.int16]:
        return reading.catalog.segment_codes(reading.world, ledger)

    return {
        "recipient_id": texts(joined(ledgers, "S36", lambda ledger: _ids(reading, ledger))),
        "customer_name": _strings([block.people.customer_names() for block in blocks]),
        "tel": _strings([block.people.tels() for block in blocks]),
        "segment": names(joined(ledgers, np.int16, segments), reading.catalog.segments),
    }


def _ids(reading: RunView, ledger: Calls) -> NDArray[np.bytes_]:
    """The ids that the scenario fixes, and derived ones for the rest."""
    people = reading.block((ledger.organization, ledger.campaign)).people
    everyone = np.arange(people.count)
    ids = recipient_ids(reading.world.seed, ledger.organization, ledger.campaign, everyone)
    if not isinstance(people, GeneratedPeople):
        for recipient in range(people.count):
            if fixed := people.fixed_id(recipient):
                ids[recipient] = fixed.encode()
    return ids


def _strings(parts: list[Any]) -> Any:
    """Texts of several campaigns (lists or arrow arrays, null where None) as one column."""
    chunks = [pa.array(part, type=pa.large_string()) for part in parts]
    return pd.array(pa.chunked_array(chunks, type=pa.large_string()), dtype="str")


CAMPAIGN_STATUSES = tuple(CampaignStatus)
CAMPAIGN_CAUSES = (
    "schedule",
    "start",
    "pause",
    "resume",
    "cancel",
    "delete",
    "end_date_time",
    "all_final",
)


def campaigns_table(reading: RunView) -> pd.DataFrame:
    """One row per change of status, by (at, organization, campaign, occurrence) (T4).

    The first row is what becomes of a DRAFT; deleting a final campaign has a row whose statuses
    are the same (C8).
    """
    rows = sorted(reading.trace.campaigns, key=lambda row: (row.at, row.organization, row.campaign))
    codes = reading.catalog.campaign_codes(reading.world)
    return pd.DataFrame(
        {
            "at": instants(np.array([row.at for row in rows], dtype=np.int64)),
            "organization": names(
                [row.organization for row in rows], reading.catalog.organizations
            ),
            "campaign": names(
                [codes[row.organization][row.campaign] for row in rows], reading.catalog.campaigns
            ),
            "from_status": names(
                [CAMPAIGN_STATUSES.index(row.from_status) for row in rows], CAMPAIGN_STATUSES
            ),
            "to_status": names(
                [CAMPAIGN_STATUSES.index(row.to_status) for row in rows], CAMPAIGN_STATUSES
            ),
            "cause": names([CAMPAIGN_CAUSES.index(row.cause) for row in rows], CAMPAIGN_CAUSES),
        }
    )


class BodySource(Protocol):
    """Where bodies come from: a run's stream, or those that were made before."""

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """The bodies of some POSTs, in the order asked for."""
        ...


@dataclass(frozen=True, slots=True)
class MadeBodies:
    """Bodies that are there already: those of a column that was pickled."""

    made: list[Body]

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """Some of them, in the order asked for."""
        return (self.made[row] for row in rows.tolist())


def _own(body: Body) -> Body:
    """A body as it is on the wire, of which no part is shared with another."""
    copy: Body = orjson.loads(orjson.dumps(body))
    return copy


class PayloadDtype(ExtensionDtype):
    """The dtype of webhook bodies: each is a dict, exactly the interface's payload."""

    name = "payload"
    type = dict
    na_value = None

    @classmethod
    def construct_array_type(cls) -> builtins.type[PayloadArray]:
        """The array type that goes with it."""
        return PayloadArray


class PayloadArray(ExtensionArray):
    """Bodies of POSTs of a stream; `rows` are indexes into its posts, -1 is null."""

    def __init__(self, stream: BodySource, rows: NDArray[np.int64]) -> None:
        self._stream = stream
        self._rows = rows

    @classmethod
    def _from_sequence(cls, *_scalars: Any, **_settings: Any) -> Self:
        """Refuse: what `map` and the like make of payloads is then a column of another type."""
        raise TypeError("payloads are those of a run: join others as lists of dicts")

    @classmethod
    def _concat_same_type(cls, parts: Sequence[Self]) -> Self:
        if len({id(part._stream) for part in parts}) > 1:
            raise NotImplementedError("bodies of several runs: join them as lists of dicts")
        return cls(parts[0]._stream, np.concatenate([part._rows for part in parts]))

    @property
    def dtype(self) -> PayloadDtype:
        """Always the same."""
        return PayloadDtype()

    @property
    def nbytes(self) -> int:
        """What the references take, not what the bodies would."""
        return self._rows.nbytes

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int | np.integer):
            row = self._rows[item]
            return None if row < 0 else _own(next(self._stream.bodies(row[None])))
        return type(self)(self._stream, self._rows[check_array_indexer(self, item)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        objects = np.full(len(self), None, dtype=object)
        known = np.flatnonzero(self._rows >= 0)
        for place, body in zip(known, self._stream.bodies(self._rows[known]), strict=True):
            objects[place] = _own(body)
        return objects

    def __arrow_array__(self, type: Any = None) -> NoReturn:
        """Refuse: no Parquet file of such a column can be read without dialsim."""
        raise DialsimError(
            "webhook bodies are no column of a Parquet or Feather file; make text of them first, "
            "frame.assign(body=frame.body.map(json.dumps)), or leave them out, "
            'frame.drop(columns="body")'
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled bodies are made before: the run does not go along with them."""
        known = np.flatnonzero(self._rows >= 0)
        rows = np.full(len(self), -1, dtype=np.int64)
        rows[known] = np.arange(len(known))
        return type(self), (MadeBodies([*self._stream.bodies(self._rows[known])]), rows)

    def isna(self) -> NDArray[np.bool_]:
        """Which rows are null."""
        return self._rows < 0

    def take(
        self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None
    ) -> PayloadArray:
        """Some of the rows, in any order."""
        del fill_value  # there is but one null
        rows = np.asarray(take(self._rows, indices, allow_fill=allow_fill, fill_value=-1))
        return type(self)(self._stream, rows)

    def copy(self) -> PayloadArray:
        """The same references again."""
        return type(self)(self._stream, self._rows.copy())


def payload_column(stream: Stream) -> PayloadArray:
    """The bodies of all POSTs of a stream, in its order."""
    return PayloadArray(stream, np.arange(len(stream.posts)))


_SIMULATED = (OK, ERROR, TIMED_OUT, REFUSED)


def webhooks_table(reading: RunView) -> pd.DataFrame:
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
        messages, ledger = part.messages[stream.posts.message[rows]], part.calls
        recipient[rows], call[rows] = ledger.recipient[messages.call], ledger.call[messages.call]
        result[rows], ready_at[rows] = messages.result, messages.ready_at
        status[rows] = TO_STATUS[ledger.last_kind[messages.call]]
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
