"""The recipients table: one row per person of each campaign."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dialsim.engine.identity import recipient_ids
from dialsim.results.columns import campaign_columns, instants, joined, names, texts
from dialsim.results.ledger import CALL_STATUSES, NEVER, Ledger
from dialsim.results.person_state import PERSON_STATES, listed
from dialsim.results.reading import Reading
from dialsim.scenario.people import GeneratedPeople


def recipients_table(reading: Reading) -> pd.DataFrame:
    """One row per recipient, by (organization, campaign, recipient): as it stands at the end.

    `call_attempt` counts calls dialled and ended (P5), `latest_call_status` is null before the
    campaign is scheduled, `reached_at` is the instant of the answer (R3), `state` is one of
    `PersonState`; `created_at` is the upload's instant, `updated_at` the last change of a call
    (F2). All go on from a history; who was reached by then has the end of that call for
    `reached_at`. Recipients who were removed as duplicates (D3) have no row.
    """
    ledgers = list(reading.ledgers.values())

    def made(ledger: Ledger) -> NDArray[np.int32]:
        return ledger.attempts.astype(np.int32)

    def positions(ledger: Ledger) -> NDArray[np.int32]:
        return np.arange(ledger.people, dtype=np.int32)

    def updated(ledger: Ledger) -> NDArray[np.int64]:
        block = reading.block((ledger.organization, ledger.campaign))
        changed: NDArray[np.int64] = ledger.of_newest(ledger.changed_at, block.created_at)
        return changed

    def created(ledger: Ledger) -> NDArray[np.int64]:
        block = reading.block((ledger.organization, ledger.campaign))
        return np.full(ledger.people, block.created_at, dtype=np.int64)

    def states(ledger: Ledger) -> NDArray[np.int8]:
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


def reached_at(ledger: Ledger) -> NDArray[np.int64]:
    """The instant at which each recipient answered; NEVER for who did not.

    For who was reached before the scenario begins it is the end of that call.
    """
    answered = ledger.started_at != NEVER
    instants_ms = np.where(ledger.past_reached, ledger.past_ended_at, NEVER)
    instants_ms[ledger.recipient[answered]] = ledger.started_at[answered]
    return instants_ms


def latest_status(ledger: Ledger) -> NDArray[np.int8]:
    """The status of each recipient's newest call, an index into `CALL_STATUSES`; -1 for none."""
    status: NDArray[np.int8] = ledger.of_newest(ledger.status, ledger.past_status)
    return status


def _person(reading: Reading, ledgers: list[Ledger]) -> dict[str, Any]:
    """The columns recipient_id, customer_name, tel and segment."""
    blocks = [reading.block(position) for position in reading.lives]

    def segments(ledger: Ledger) -> NDArray[np.int16]:
        return reading.catalog.segment_codes(reading.world, ledger)

    return {
        "recipient_id": texts(joined(ledgers, "S36", lambda ledger: _ids(reading, ledger))),
        "customer_name": _strings([block.people.customer_names() for block in blocks]),
        "tel": _strings([block.people.tels() for block in blocks]),
        "segment": names(joined(ledgers, np.int16, segments), reading.catalog.segments),
    }


def _ids(reading: Reading, ledger: Ledger) -> NDArray[np.bytes_]:
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
