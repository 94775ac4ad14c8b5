"""The tables of a run as pandas data frames: calls, transitions, recipients, campaigns, webhooks.

Columns are compact arrays, and come back from Parquet alike. What a row says is declared here once:
a sandbox pages through the same columns (`call_columns`, `change_columns`) while it goes on.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NoReturn, Protocol, Self, TypeVar

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from pandas.api.extensions import ExtensionArray, ExtensionDtype, take
from pandas.api.indexers import check_array_indexer

from dialsim.engine.calls import CALL_STATUSES, FROM_STATUS, NEVER, TO_STATUS, Calls
from dialsim.engine.identity import call_ids, recipient_ids, session_ids
from dialsim.engine.trace import CHANGES, CallRows, CampaignTrace
from dialsim.engine.world import CampaignBlock, World
from dialsim.errors import DialsimError
from dialsim.interface.payload import BROKEN, ERROR, NOT_SENT, OK, REFUSED, TIMED_OUT, WORDS
from dialsim.interface.status import CampaignStatus, Phase
from dialsim.results.campaigns import PERSON_STATES, listed
from dialsim.results.counts import billed_increments, cost_of
from dialsim.results.run_view import Catalog, RunView
from dialsim.scenario.people import GeneratedPeople
from dialsim.webhooks.analysis import AGENT_STATUSES, Analyses, agent_statuses
from dialsim.webhooks.bodies import Body
from dialsim.webhooks.deliveries import Stream
from dialsim.webhooks.messages import VERDICTS, Verdicts

INSTANT = pd.DatetimeTZDtype("ms", "UTC")

Part = TypeVar("Part")


def joined(
    parts: Iterable[Part], dtype: DTypeLike, column: Callable[[Part], NDArray[Any]]
) -> NDArray[Any]:
    """The column of each campaign, one below the other."""
    return np.concatenate([np.empty(0, dtype), *(column(part) for part in parts)])


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


def campaign_columns(
    catalog: Catalog, blocks: Sequence[CampaignBlock], sizes: Sequence[int]
) -> dict[str, pd.Categorical]:
    """The columns organization and campaign: `sizes[i]` rows of the i-th campaign."""
    organizations = np.array([block.organization for block in blocks], dtype=np.int32)
    campaigns = np.array([catalog.campaign_code(block) for block in blocks], dtype=np.int32)
    return {
        "organization": names(np.repeat(organizations, sizes), catalog.organizations),
        "campaign": names(np.repeat(campaigns, sizes), catalog.campaigns),
    }


_INSTANTS = {
    "created_at": "created_at",
    "queued_at": "queued_at",
    "initiated_at": "initiated_at",
    "ringing_at": "ringing_at",
    "call_started_at": "started_at",
    "call_ended_at": "ended_at",
}


@dataclass(frozen=True, slots=True)
class ChosenCalls:
    """Calls of one campaign that make rows of the calls table, and how they stand.

    `chosen` are their positions. `status` are indexes into `CALL_STATUSES`; it, `analyses` and
    `verdicts` go by the places of the calls among them.
    """

    part: CampaignTrace
    calls: Calls
    chosen: NDArray[np.int64] | slice
    status: NDArray[np.int8]
    analyses: Analyses
    verdicts: Verdicts

    def column(self, name: str) -> NDArray[Any]:
        """A column of `Calls`."""
        values: NDArray[Any] = getattr(self.calls, name)[self.chosen]
        return values


def calls_table(reading: RunView) -> pd.DataFrame:
    """One row per call, by (organization, campaign, recipient, call); instants in UTC, to the ms.

    `attempt`, `initiated_at`, `caller_id` and `voice_key` are null for a call never dialled, or
    whose dial was withdrawn and not repeated (P5); `queued_at` is the newest release; `cost` is
    null where the scenario names no costs; `voice_engine` is 2 for campaigns scheduled with
    ttsVoiceKeys, else 1 (F3). `analysis` is one of `Verdict`, and `funnel` the funnel's value in
    the newest result, null where there is no conversation. Names and statuses are categorical.
    """
    parts = [
        ChosenCalls(
            part=reading.trace.campaign(*position),
            calls=calls,
            chosen=slice(None),
            status=calls.status,
            analyses=reading.analyses[position],
            verdicts=reading.verdicts[position],
        )
        for position, calls in reading.calls.items()
    ]
    blocks = [part.part.block for part in parts]
    campaigns = campaign_columns(reading.catalog, blocks, [len(part.status) for part in parts])
    columns = call_columns(reading.world, reading.catalog, parts)
    return pd.DataFrame({**campaigns, **columns}, copy=False)


def call_columns(world: World, catalog: Catalog, parts: Sequence[ChosenCalls]) -> dict[str, Any]:
    """The columns of `calls_table` but organization and campaign, of some calls by campaign."""

    def column(name: str, dtype: DTypeLike) -> NDArray[Any]:
        return joined(parts, dtype, lambda part: part.column(name))

    def ids(make: Callable[..., NDArray[np.bytes_]]) -> ExtensionArray:
        def own(part: ChosenCalls) -> NDArray[np.bytes_]:
            place = part.calls.organization, part.calls.campaign
            return make(world.seed, *place, part.column("recipient"), part.column("call"))

        return texts(joined(parts, "S36", own))

    def segment(part: ChosenCalls) -> NDArray[np.int16]:
        return catalog.segment_codes(part.part.block, part.column("recipient"))

    def funnel(part: ChosenCalls) -> NDArray[np.int16]:
        return catalog.funnel_codes(part.part.block.agent, part.verdicts)

    attempt = column("attempt", np.int32)
    started_at = column("started_at", np.int64)
    talked, talk_ms = _talks(started_at, column("ended_at", np.int64))
    costs = world.scenario.costs
    return {
        "recipient": column("recipient", np.int32),
        "call_id": ids(call_ids),
        "session_id": ids(session_ids),
        "call": column("call", np.int32),
        "attempt": counts(attempt, attempt == 0),
        "status": names(joined(parts, np.int8, attrgetter("status")), CALL_STATUSES),
        "agent_status": names(joined(parts, np.int8, _agent_status), AGENT_STATUSES),
        "caller_id": names(column("number", np.int32), world.numbers),
        "voice_key": names(column("voice", np.int32), world.voice_keys),
        "segment": names(joined(parts, np.int16, segment), catalog.segments),
        **{name: instants(column(own, np.int64)) for name, own in _INSTANTS.items()},
        "call_duration_ms": counts(talk_ms, ~talked),
        "analysis": names(joined(parts, np.int8, attrgetter("verdicts.code")), VERDICTS),
        "funnel": names(joined(parts, np.int16, funnel), catalog.funnel_steps),
        "cost": np.full(len(attempt), np.nan)
        if costs is None
        else cost_of(costs, attempt > 0, billed_increments(costs, talk_ms), started_at != NEVER),
        "voice_engine": joined(parts, np.int8, _voice_engine),
    }


def _agent_status(part: ChosenCalls) -> NDArray[np.int8]:
    return agent_statuses(part.column("started_at"), part.analyses)


def _voice_engine(part: ChosenCalls) -> NDArray[np.int8]:
    """The generation of the voice engine (F3), of each call."""
    scheduled = part.part.scheduled
    generation = 2 if scheduled is not None and scheduled.request.tts_voice_keys else 1
    return np.full(len(part.status), generation, dtype=np.int8)


def _talks(
    started_at: NDArray[np.int64], ended_at: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which calls had a conversation that has ended, and its length (F1); else 0."""
    talked = (started_at != NEVER) & (ended_at != NEVER)
    return talked, np.where(talked, ended_at - started_at, 0)


PHASES = tuple(Phase)
CAUSES = tuple(dict.fromkeys(change.cause for change in CHANGES))

_PHASE = np.array([PHASES.index(c.phase) if c.phase else -1 for c in CHANGES], dtype=np.int8)
_CAUSE = np.array([CAUSES.index(change.cause) for change in CHANGES], dtype=np.int8)


def transitions_table(reading: RunView) -> pd.DataFrame:
    """One row per change, by (at, organization, campaign, recipient, call, occurrence) (T4).

    `phase` is the one that the change leads to, null where that ends or precedes the call;
    `from_status` is null for a call's creation.
    """
    parts = [occurrence_order(calls) for calls in reading.calls.values()]
    changes = CallRows(
        at=joined(parts, np.int64, attrgetter("at")),
        recipient=joined(parts, np.int32, attrgetter("recipient")),
        call=joined(parts, np.int32, attrgetter("call")),
        kind=joined(parts, np.uint8, attrgetter("kind")),
    )
    campaigns = campaign_columns(reading.catalog, reading.blocks, [*map(len, parts)])
    if len(parts) > 1:
        merged = np.argsort(changes.at, kind="stable")
        changes = changes[merged]
        campaigns = {name: column[merged] for name, column in campaigns.items()}
    columns = change_columns(changes)
    return pd.DataFrame({"at": columns["at"], **campaigns, **columns}, copy=False)


def change_columns(changes: CallRows) -> dict[str, Any]:
    """The columns of `transitions_table` but organization and campaign."""
    kind = changes.kind
    return {
        "at": instants(changes.at),
        "recipient": changes.recipient,
        "call": changes.call,
        "from_status": names(FROM_STATUS[kind], CALL_STATUSES),
        "to_status": names(TO_STATUS[kind], CALL_STATUSES),
        "phase": names(_PHASE[kind], PHASES),
        "cause": names(_CAUSE[kind], CAUSES),
    }


def occurrence_order(calls: Calls) -> CallRows:
    """The log with the rows of one instant by (recipient, call, occurrence) (T4).

    Only instants whose rows are not in that order yet are sorted.
    """
    rows, of_call = calls.rows, calls.row_call
    same = rows.at[1:] == rows.at[:-1]
    wrong = np.flatnonzero(same & (of_call[1:] < of_call[:-1]))
    if not len(wrong):
        return rows
    run = np.cumsum(np.append(False, ~same))
    disordered = np.zeros(int(run[-1]) + 1, dtype=bool)
    disordered[run[wrong]] = True
    places = np.flatnonzero(disordered[run])
    order = np.arange(len(of_call))
    order[places] = places[np.lexsort((of_call[places], run[places]))]
    return CallRows(
        at=rows.at, recipient=rows.recipient[order], call=rows.call[order], kind=rows.kind[order]
    )


def recipients_table(reading: RunView) -> pd.DataFrame:
    """One row per recipient, by (organization, campaign, recipient): as it stands at the end.

    `call_attempt` counts calls dialled and ended (P5), `latest_call_status` is null before the
    campaign is scheduled, `reached_at` is the instant of the answer (R3), `state` is one of
    `PersonState`; `created_at` is the upload's instant, `updated_at` the last change of a call
    (F2). All go on from a history; who was reached by then has the end of that call for
    `reached_at`. Recipients who were removed as duplicates (D3) have no row.
    """
    campaigns = list(reading.calls.values())

    def made(calls: Calls) -> NDArray[np.int32]:
        return calls.attempts.astype(np.int32)

    def positions(calls: Calls) -> NDArray[np.int32]:
        return np.arange(calls.people, dtype=np.int32)

    def updated(calls: Calls) -> NDArray[np.int64]:
        block = reading.block((calls.organization, calls.campaign))
        changed: NDArray[np.int64] = calls.of_newest(calls.changed_at, block.created_at)
        return changed

    def created(calls: Calls) -> NDArray[np.int64]:
        block = reading.block((calls.organization, calls.campaign))
        return np.full(calls.people, block.created_at, dtype=np.int64)

    def states(calls: Calls) -> NDArray[np.int8]:
        return reading.states[calls.organization, calls.campaign]

    table = pd.DataFrame(
        {
            **campaign_columns(
                reading.catalog, reading.blocks, [calls.people for calls in campaigns]
            ),
            "recipient": joined(campaigns, np.int32, positions),
            **_person(reading, campaigns),
            "call_attempt": joined(campaigns, np.int32, made),
            "latest_call_status": names(joined(campaigns, np.int8, latest_status), CALL_STATUSES),
            "reached_at": instants(joined(campaigns, np.int64, reached_at)),
            "state": names(joined(campaigns, np.int8, states), PERSON_STATES),
            "created_at": instants(joined(campaigns, np.int64, created)),
            "updated_at": instants(joined(campaigns, np.int64, updated)),
        },
        copy=False,
    )
    kept = joined(campaigns, np.bool_, lambda calls: listed(states(calls)))
    return table if kept.all() else table[kept].reset_index(drop=True)


def reached_at(calls: Calls) -> NDArray[np.int64]:
    """The instant at which each recipient answered; NEVER for who did not.

    For who was reached before the scenario begins it is the end of that call.
    """
    answered = calls.started_at != NEVER
    instants_ms = np.where(calls.past_reached, calls.past_ended_at, NEVER)
    instants_ms[calls.recipient[answered]] = calls.started_at[answered]
    return instants_ms


def latest_status(calls: Calls) -> NDArray[np.int8]:
    """The status of each recipient's newest call, an index into `CALL_STATUSES`; -1 for none."""
    status: NDArray[np.int8] = calls.of_newest(calls.status, calls.past_status)
    return status


def _person(reading: RunView, campaigns: list[Calls]) -> dict[str, Any]:
    """The columns recipient_id, customer_name, tel and segment."""
    blocks = reading.blocks

    def segments(calls: Calls) -> NDArray[np.int16]:
        block = reading.block((calls.organization, calls.campaign))
        return reading.catalog.segment_codes(block, np.arange(calls.people))

    return {
        "recipient_id": texts(joined(campaigns, "S36", lambda calls: _ids(reading, calls))),
        "customer_name": _strings([block.people.customer_names() for block in blocks]),
        "tel": _strings([block.people.tels() for block in blocks]),
        "segment": names(joined(campaigns, np.int16, segments), reading.catalog.segments),
    }


def _ids(reading: RunView, calls: Calls) -> NDArray[np.bytes_]:
    """The ids that the scenario fixes, and derived ones for the rest."""
    people = reading.block((calls.organization, calls.campaign)).people
    everyone = np.arange(people.count)
    ids = recipient_ids(reading.world.seed, calls.organization, calls.campaign, everyone)
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
    blocks = [reading.block((row.organization, row.campaign)) for row in rows]
    return pd.DataFrame(
        {
            "at": instants(np.array([row.at for row in rows], dtype=np.int64)),
            **campaign_columns(reading.catalog, blocks, [1] * len(rows)),
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
    of_campaigns = campaign_columns(reading.catalog, reading.blocks, [1] * len(reading.blocks))
    return pd.DataFrame(
        {
            "at": instants(posts.at),
            **{name: column[stream.place] for name, column in of_campaigns.items()},
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
        messages, calls = part.messages[stream.posts.message[rows]], part.calls
        recipient[rows], call[rows] = calls.recipient[messages.call], calls.call[messages.call]
        result[rows], ready_at[rows] = messages.result, messages.ready_at
        status[rows] = TO_STATUS[calls.last_kind[messages.call]]
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
