"""Tables of a run as pandas data frames: calls, transitions, recipients, campaigns, webhooks.

Columns are compact arrays that survive Parquet unchanged. A sandbox serves the same columns page by
page (`call_columns`, `change_columns`) during a run.
"""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, NoReturn, Protocol, Self, TypeVar

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from pandas.api.extensions import ExtensionArray, ExtensionDtype, take
from pandas.api.indexers import check_array_indexer

from dialsim.engine.chance import call_ids, recipient_ids, session_ids
from dialsim.engine.log_reader import CALL_STATUSES, FROM_STATUS, NOT_HAPPENED, TO_STATUS, Calls
from dialsim.engine.trace import CHANGES, CallRows, CampaignTrace
from dialsim.engine.world import CampaignBlock, World
from dialsim.errors import DialsimError
from dialsim.interface import CampaignStatus, Phase
from dialsim.interface.payload import BROKEN, ERROR, NOT_SENT, OK, REFUSED, TIMED_OUT, WORDS
from dialsim.results.campaigns import PERSON_STATES, listed
from dialsim.results.counts import billed_increments, cost_of
from dialsim.results.run_view import CampaignResult, Catalog, RunView
from dialsim.scenario.fields import PARAM, ParamValue
from dialsim.webhooks.analysis import AGENT_STATUSES, Analyses, agent_statuses
from dialsim.webhooks.bodies import Body
from dialsim.webhooks.deliveries import Stream
from dialsim.webhooks.messages import VERDICTS, Verdicts

INSTANT = pd.DatetimeTZDtype("ms", "UTC")

Part = TypeVar("Part")


def joined(
    parts: Iterable[Part], dtype: DTypeLike, column: Callable[[Part], NDArray[Any]]
) -> NDArray[Any]:
    """Concatenate a column of all campaigns."""
    # The empty array gives the dtype to a run without campaigns.
    return np.concatenate([np.empty(0, dtype), *(column(part) for part in parts)])


def instants(at: NDArray[np.int64]) -> ExtensionArray:
    """Return UTC instants as datetime64[ms, UTC]; NOT_HAPPENED becomes NaT."""
    column: ExtensionArray = pd.array(at.view("datetime64[ms]"), dtype=INSTANT)
    return column


def names(codes: NDArray[Any] | list[int], texts: Sequence[str]) -> pd.Categorical:
    """Return texts of a small set, dictionary-encoded; code -1 is null."""
    return pd.Categorical.from_codes(codes, dtype=_kinds((*texts,)))


@lru_cache(maxsize=256)
def _kinds(texts: tuple[str, ...]) -> pd.CategoricalDtype:
    # Cached: checking that the texts differ takes ten times as long as making a page of 100 rows.
    return pd.CategoricalDtype(pd.Index([*texts], dtype="str"))


def texts(ascii_text: NDArray[np.bytes_]) -> ExtensionArray:
    """Convert ASCII texts of equal length (dtype S…) to the string dtype of pandas."""
    # The buffer goes to Arrow unchanged: millions of Python strings would take seconds.
    offsets = np.arange(len(ascii_text) + 1, dtype=np.int64) * ascii_text.dtype.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(ascii_text))]
    arrow = pa.Array.from_buffers(pa.large_string(), len(ascii_text), buffers)
    column: ExtensionArray = pd.array(arrow, dtype="str")
    return column


def counts(values: NDArray[np.int32] | NDArray[np.int64], missing: NDArray[np.bool_]) -> Any:
    """Return integers with missing values (Int32 or Int64)."""
    return pd.arrays.IntegerArray(values, missing)


def campaign_columns(
    catalog: Catalog, blocks: Sequence[CampaignBlock], sizes: Sequence[int]
) -> dict[str, pd.Categorical]:
    """Return the columns organization and campaign, with `sizes[i]` rows for the i-th campaign."""
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
    """Calls of one campaign that become rows of the calls table.

    `chosen` are their indices. `status` has indices into `CALL_STATUSES`. `status`, `analyses` and
    `verdicts` are indexed within the chosen calls.
    """

    part: CampaignTrace
    calls: Calls
    chosen: NDArray[np.int64] | slice
    status: NDArray[np.int8]
    analyses: Analyses
    verdicts: Verdicts

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of `Calls` for the chosen calls."""
        values: NDArray[Any] = getattr(self.calls, name)[self.chosen]
        return values


def calls_table(reading: RunView) -> pd.DataFrame:
    """Return one row per call, by (organization, campaign, recipient, call); instants in UTC, to
    the ms.

    `attempt`, `initiated_at`, `caller_id` and `voice_key` are null for calls that were never
    dialled, or whose dial was withdrawn and not repeated (P5). `queued_at` is the newest release.
    `cost` is null without costs in the scenario. `voice_engine` is 2 for campaigns scheduled with
    ttsVoiceKeys, else 1 (F3). `analysis` is a `Verdict`, and `funnel` the funnel's value in the
    newest result; both are null without a conversation. Names and statuses are categorical.
    """
    parts = [
        ChosenCalls(
            part=own.part,
            calls=own.calls,
            chosen=slice(None),
            status=own.calls.status,
            analyses=own.analyses,
            verdicts=own.verdicts,
        )
        for own in reading.campaigns.values()
    ]
    sizes = [len(part.status) for part in parts]
    campaigns = campaign_columns(reading.catalog, reading.blocks, sizes)
    columns = call_columns(reading.world, reading.catalog, parts)
    return pd.DataFrame({**campaigns, **columns}, copy=False)


def call_columns(world: World, catalog: Catalog, parts: Sequence[ChosenCalls]) -> dict[str, Any]:
    """Return the columns of `calls_table` for chosen calls, without organization and campaign."""

    def column(name: str, dtype: DTypeLike) -> NDArray[Any]:
        return joined(parts, dtype, lambda part: part.column(name))

    def ids(make: Callable[..., NDArray[np.bytes_]]) -> ExtensionArray:
        def own(part: ChosenCalls) -> NDArray[np.bytes_]:
            position = part.calls.organization, part.calls.campaign
            return make(world.seed, *position, part.column("recipient"), part.column("call"))

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
        else cost_of(
            costs, attempt > 0, billed_increments(costs, talk_ms), started_at != NOT_HAPPENED
        ),
        "voice_engine": joined(parts, np.int8, _voice_engine),
    }


def _agent_status(part: ChosenCalls) -> NDArray[np.int8]:
    return agent_statuses(part.column("started_at"), part.analyses)


def _voice_engine(part: ChosenCalls) -> NDArray[np.int8]:
    """Return the generation of the voice engine of each call (F3)."""
    scheduled = part.part.scheduled
    generation = 2 if scheduled is not None and scheduled.request.tts_voice_keys else 1
    return np.full(len(part.status), generation, dtype=np.int8)


def _talks(
    started_at: NDArray[np.int64], ended_at: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return True for calls with an ended conversation, and its duration (F1), else 0."""
    talked = (started_at != NOT_HAPPENED) & (ended_at != NOT_HAPPENED)
    return talked, np.where(talked, ended_at - started_at, 0)


PHASES = tuple(Phase)
CAUSES = tuple(dict.fromkeys(change.cause for change in CHANGES))

_PHASE = np.array([PHASES.index(c.phase) if c.phase else -1 for c in CHANGES], dtype=np.int8)
_CAUSE = np.array([CAUSES.index(change.cause) for change in CHANGES], dtype=np.int8)


def transitions_table(reading: RunView) -> pd.DataFrame:
    """Return one row per change, by (at, organization, campaign, recipient, call, occurrence) (T4).

    `phase` is the phase after the change, null before and after the call; `from_status` is null for
    a call's creation.
    """
    parts = [occurrence_order(own.calls) for own in reading.campaigns.values()]
    changes = CallRows(
        at=joined(parts, np.int64, attrgetter("at")),
        recipient=joined(parts, np.int32, attrgetter("recipient")),
        call=joined(parts, np.int32, attrgetter("call")),
        kind=joined(parts, np.uint8, attrgetter("kind")),
    )
    campaigns = campaign_columns(reading.catalog, reading.blocks, [*map(len, parts)])
    if len(parts) > 1:
        # Each campaign's rows are in the order of T4 already; a stable sort keeps it within an
        # instant.
        merged = np.argsort(changes.at, kind="stable")
        changes = changes[merged]
        campaigns = {name: column[merged] for name, column in campaigns.items()}
    columns = change_columns(changes)
    return pd.DataFrame({"at": columns["at"], **campaigns, **columns}, copy=False)


def change_columns(changes: CallRows) -> dict[str, Any]:
    """Return the columns of `transitions_table` without organization and campaign."""
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
    """Return the log with the rows of each instant sorted by (recipient, call, occurrence) (T4)."""
    rows, of_call = calls.rows, calls.row_call
    # Most instants are in this order already; only the others are sorted.
    same = rows.at[1:] == rows.at[:-1]
    wrong = np.flatnonzero(same & (of_call[1:] < of_call[:-1]))
    if not len(wrong):
        return rows
    # Runs of equal instants are numbered, so that only the disordered ones are sorted.
    run = np.cumsum(np.append(False, ~same))
    disordered = np.zeros(int(run[-1]) + 1, dtype=bool)
    disordered[run[wrong]] = True
    indices = np.flatnonzero(disordered[run])
    order = np.arange(len(of_call))
    order[indices] = indices[np.lexsort((of_call[indices], run[indices]))]
    return CallRows(
        at=rows.at, recipient=rows.recipient[order], call=rows.call[order], kind=rows.kind[order]
    )


def recipients_table(reading: RunView) -> pd.DataFrame:
    """Return one row per recipient, by (organization, campaign, recipient), at the end of the run.

    `call_attempt` counts calls dialled and ended (P5). `latest_call_status` is null before the
    campaign is scheduled. `reached_at` is the instant of the answer (R3); for people reached before
    the scenario begins, the end of that call. `state` is a `PersonState`. `created_at` is the
    instant of the upload, `updated_at` the last change of a call (F2). All columns include the
    history. Parameters are columns `agentParams.NAME`, as in a list of people. Recipients removed
    as duplicates (D3) have no row.
    """
    campaigns = [*reading.campaigns.values()]
    blocks, calls = reading.blocks, [own.calls for own in campaigns]

    def updated(own: CampaignResult) -> NDArray[np.int64]:
        changed: NDArray[np.int64] = own.calls.of_newest(own.calls.changed_at, own.block.created_at)
        return changed

    def segments(own: CampaignResult) -> NDArray[np.int16]:
        return reading.catalog.segment_codes(own.block, np.arange(own.calls.people))

    sizes = [part.people for part in calls]
    created = np.array([block.created_at for block in blocks], dtype=np.int64)
    states = joined(campaigns, np.int8, attrgetter("states"))
    table = pd.DataFrame(
        {
            **campaign_columns(reading.catalog, blocks, sizes),
            "recipient": joined(sizes, np.int32, lambda size: np.arange(size, dtype=np.int32)),
            "recipient_id": texts(joined(campaigns, "S36", _ids)),
            "customer_name": _strings([block.people.customer_names() for block in blocks]),
            "tel": _strings([block.people.tels() for block in blocks]),
            "segment": names(joined(campaigns, np.int16, segments), reading.catalog.segments),
            **_params(blocks),
            "call_attempt": joined(calls, np.int32, lambda part: part.attempts.astype(np.int32)),
            "latest_call_status": names(joined(calls, np.int8, latest_status), CALL_STATUSES),
            "reached_at": instants(joined(calls, np.int64, reached_at)),
            "state": names(states, PERSON_STATES),
            "created_at": instants(np.repeat(created, sizes)),
            "updated_at": instants(joined(campaigns, np.int64, updated)),
        },
        copy=False,
    )
    for name in dict.fromkeys(name for block in blocks for name in block.people.beside):
        parts = [block.people.beside.get(name, [None] * block.people.count) for block in blocks]
        table[f"list.{name}" if name in table else name] = _beside(parts)
    kept = listed(states)
    return table if kept.all() else table[kept].reset_index(drop=True)


def reached_at(calls: Calls) -> NDArray[np.int64]:
    """Return the instant at which each recipient answered, or NOT_HAPPENED.

    For people reached before the scenario begins it is the end of that call.
    """
    answered = calls.started_at != NOT_HAPPENED
    instants_ms = np.where(calls.past_reached, calls.past_ended_at, NOT_HAPPENED)
    instants_ms[calls.recipient[answered]] = calls.started_at[answered]
    return instants_ms


def latest_status(calls: Calls) -> NDArray[np.int8]:
    """Return the status of each recipient's newest call, an index into `CALL_STATUSES`; -1 for
    none.
    """
    status: NDArray[np.int8] = calls.of_newest(calls.status, calls.past_status)
    return status


def _params(blocks: Sequence[CampaignBlock]) -> dict[str, Any]:
    """Return a column per parameter of the recipients; null for one without it."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for block in blocks for name in block.people.params):
        values: Any = []
        for block in blocks:
            own, count = block.people.params.get(name, (None,)), block.people.count
            values += own if len(own) == count else [*own] * count
        kinds = {type(value) for value in values} - {type(None)}
        if kinds <= {int, float}:
            columns[f"{PARAM}{name}"] = pd.array(values, dtype="Float64")
        elif kinds == {bool}:
            columns[f"{PARAM}{name}"] = pd.array(values, dtype="boolean")
        else:
            columns[f"{PARAM}{name}"] = _strings([[_text(value) for value in values]])
    return columns


def _beside(parts: list[Sequence[str | None]]) -> Any:
    """Return an additional column of lists, as numbers if all texts are plain numbers."""
    # A number with a leading 0 is an id or a telephone number.
    texts = {text for part in parts for text in part if text}
    if texts and all(map(_PLAIN_NUMBER.fullmatch, texts)):
        values = [text if text is None else float(text) for part in parts for text in part]
        return pd.array(values, dtype="Float64")
    return _strings([*parts])


_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?")


def _text(value: ParamValue | None) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _ids(own: CampaignResult) -> NDArray[np.bytes_]:
    """Return fixed ids, and derived ids for the other recipients."""
    people, world = own.block.people, own.run.world
    ids = recipient_ids(world.seed, *own.life.position, np.arange(people.count))
    for recipient, fixed in people.fixed_ids.items():
        ids[recipient] = fixed.encode()
    return ids


def _strings(parts: list[Any]) -> Any:
    """Concatenate texts of several campaigns (lists or arrow arrays, None for null) into one
    column.
    """
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
    """Return one row per change of status, by (at, organization, campaign, occurrence) (T4).

    The first row of a campaign leads out of DRAFT. Deleting a final campaign adds a row with two
    equal statuses (C8).
    """
    # sorted() is stable, so that changes of one campaign at one instant stay in order of
    # occurrence.
    rows = sorted(reading.trace.campaigns, key=lambda row: (row.at, row.organization, row.campaign))
    blocks = [reading.campaigns[row.organization, row.campaign].block for row in rows]
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
    """Source of bodies: a run's stream, or bodies made before."""

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """Return the bodies of some POSTs, in the given order."""
        ...


@dataclass(frozen=True, slots=True)
class MadeBodies:
    """Finished bodies of an unpickled column."""

    made: list[Body]

    def bodies(self, rows: NDArray[np.int64]) -> Iterator[Body]:
        """Return the bodies of some rows, in the given order."""
        return (self.made[row] for row in rows.tolist())


def _own(body: Body) -> Body:
    """Return a deep copy of a body."""
    # Quicker than copy.deepcopy, and bodies are JSON by definition.
    copy: Body = orjson.loads(orjson.dumps(body))
    return copy


class PayloadDtype(ExtensionDtype):
    """Dtype of webhook bodies: each is a dict, exactly the interface's payload."""

    name = "payload"
    type = dict
    na_value = None

    @classmethod
    def construct_array_type(cls) -> builtins.type[PayloadArray]:
        """Return the array type of this dtype."""
        return PayloadArray


class PayloadArray(ExtensionArray):
    """Bodies of POSTs of a stream, made on access; `rows` are indices into its posts, -1 for
    null.
    """

    def __init__(self, stream: BodySource, rows: NDArray[np.int64]) -> None:
        self._stream = stream
        self._rows = rows

    @classmethod
    def _from_sequence(cls, *_scalars: Any, **_settings: Any) -> Self:
        """Refuse: bodies come from a run, so results of `map` and the like get another dtype."""
        raise TypeError("webhook bodies come from a run: join other values as a list of dicts")

    @classmethod
    def _concat_same_type(cls, parts: Sequence[Self]) -> Self:
        if len({id(part._stream) for part in parts}) > 1:
            raise NotImplementedError("bodies of several runs: join them as lists of dicts")
        return cls(parts[0]._stream, np.concatenate([part._rows for part in parts]))

    @property
    def dtype(self) -> PayloadDtype:
        """The dtype, always equal."""
        return PayloadDtype()

    @property
    def nbytes(self) -> int:
        """Size of the references, without the bodies."""
        return self._rows.nbytes

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: Any) -> Any:
        # Bodies are made on access: all bodies of a large run would take gigabytes.
        if isinstance(item, int | np.integer):
            row = self._rows[item]
            return None if row < 0 else _own(next(self._stream.bodies(row[None])))
        return type(self)(self._stream, self._rows[check_array_indexer(self, item)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        objects = np.full(len(self), None, dtype=object)
        # All bodies in one call: the stream walks through its campaigns once for many rows.
        known = np.flatnonzero(self._rows >= 0)
        for index, body in zip(known, self._stream.bodies(self._rows[known]), strict=True):
            objects[index] = _own(body)
        return objects

    def __arrow_array__(self, type: Any = None) -> NoReturn:
        """Refuse: a Parquet file with such a column could not be read without dialsim."""
        raise DialsimError(
            "webhook bodies are no column of a Parquet or Feather file; make text of them first, "
            "frame.assign(body=frame.body.map(json.dumps)), or leave them out, "
            'frame.drop(columns="body")'
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle finished bodies, without the run."""
        known = np.flatnonzero(self._rows >= 0)
        rows = np.full(len(self), -1, dtype=np.int64)
        rows[known] = np.arange(len(known))
        return type(self), (MadeBodies([*self._stream.bodies(self._rows[known])]), rows)

    def isna(self) -> NDArray[np.bool_]:
        """Return True for null rows."""
        return self._rows < 0

    def take(
        self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None
    ) -> PayloadArray:
        """Return some of the rows, in any order."""
        del fill_value  # only one null value exists
        rows = np.asarray(take(self._rows, indices, allow_fill=allow_fill, fill_value=-1))
        return type(self)(self._stream, rows)

    def copy(self) -> PayloadArray:
        """Return an array with the same references."""
        return type(self)(self._stream, self._rows.copy())


def payload_column(stream: Stream) -> PayloadArray:
    """Return the bodies of all POSTs of a stream, in its order."""
    return PayloadArray(stream, np.arange(len(stream.posts)))


_SIMULATED = (OK, ERROR, TIMED_OUT, REFUSED)


def webhooks_table(reading: RunView) -> pd.DataFrame:
    """Return one row per POST, by (at, organization, campaign, recipient, call, result, attempt).

    Within an instant, POSTs caused by a command from outside come last (T4). `attempt`, `response`
    ("200", another status, "timeout", "refused" or "broken") and `received` are as in
    `webhooks.jsonl`. A result without a URL has one row with null attempt and response (W6); a
    pending POST has no response. `result` is 0 for a call's first result and n for re-analysis
    number n; `ready_at` is its instant. `call_status` is the payload's. `body` is the payload, a
    dict made on access.
    """
    stream = reading.stream
    posts = stream.posts
    of_campaigns = campaign_columns(reading.catalog, reading.blocks, [1] * len(reading.blocks))
    return pd.DataFrame(
        {
            "at": instants(posts.at),
            **{name: column[stream.part_index] for name, column in of_campaigns.items()},
            **_result(stream),
            "attempt": counts(posts.number.astype(np.int32), posts.response == NOT_SENT),
            "response": _responses(posts.response),
            "received": posts.received,
            "body": payload_column(stream),
        },
        copy=False,
    )


def _result(stream: Stream) -> dict[str, object]:
    """Return the columns recipient, call, result, call_status and ready_at."""
    size = len(stream.posts)
    recipient, call = np.empty(size, np.int32), np.empty(size, np.int32)
    result, status = np.empty(size, np.int32), np.empty(size, np.int8)
    ready_at = np.empty(size, np.int64)
    for index, part in enumerate(stream.parts):
        rows = np.flatnonzero(stream.part_index == index)
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
    """Return responses as texts, such as `200` or `timeout`.

    The responses of the simulated receiver are always categories.
    """
    statuses = sorted({*codes[codes > 0].tolist()}.difference(_SIMULATED))
    known = [*_SIMULATED, *statuses, *([BROKEN] if (codes == BROKEN).any() else [])]
    indices = np.select([codes == code for code in known], range(len(known)), default=-1)
    return names(indices, [WORDS.get(code, str(code)) for code in known])
