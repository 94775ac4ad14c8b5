"""The state that a payload shows of recipient, campaign and retention (W4, D1, D2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import ENDS, NEVER, TO_STATUS, Calls
from dialsim.engine.trace import Trace
from dialsim.interface.payload import MASKED_NAME, data_expired, mask_agent_params, mask_tel
from dialsim.interface.status import CampaignStatus
from dialsim.scenario.organization import Retention
from dialsim.scenario.people import People
from dialsim.webhooks.messages import FOREVER, Messages, change_sequence, row_sequence, sequence

AUDIO, PERSONAL_DATA, OUTPUT = 1, 2, 4
ALL_EXPIRED = AUDIO | PERSONAL_DATA | OUTPUT  # C8: of every call of a deleted campaign
DATA_EXPIRED = tuple(
    data_expired(
        audio=bool(flags & AUDIO),
        personal_data=bool(flags & PERSONAL_DATA),
        output=bool(flags & OUTPUT),
    )
    for flags in range(ALL_EXPIRED + 1)
)
"""The three flags on the wire, by their bits."""


def expired(
    retention: Retention | None, ended_at: NDArray[np.int64], at: NDArray[np.int64] | int
) -> NDArray[np.int8]:
    """The three flags as bits, each set its span after the end of the call (D2); instants in ms.

    A call without an end (`NEVER`) keeps everything, and so does an organization without a policy.
    """
    flags, policy = np.zeros(len(ended_at), dtype=np.int8), retention or Retention()
    age = np.where(ended_at == NEVER, -1, at - np.maximum(ended_at, 0))
    spans = {AUDIO: policy.audio, PERSONAL_DATA: policy.personal_data, OUTPUT: policy.output}
    for flag, span in spans.items():
        if span is not None:
            flags[age >= span] |= flag
    return flags


class VisiblePerson(NamedTuple):
    """A recipient as payloads show them."""

    tel: str
    customer_name: str | None
    agent_params: Mapping[str, object]

    def masked(self) -> VisiblePerson:
        """What is left of them once retention has removed personal data (D1)."""
        return VisiblePerson(mask_tel(self.tel), MASKED_NAME, mask_agent_params(self.agent_params))


def visible_people(
    people: People, who: NDArray[np.integer], masked: NDArray[np.bool_]
) -> list[VisiblePerson]:
    """Show some recipients, by position from 0; `masked` says whose personal data is removed."""
    columns = people.tels(who), people.customer_names(who), map(people.agent_params, who.tolist())
    shown = [VisiblePerson(*person) for person in zip(*columns, strict=True)]
    for row in np.flatnonzero(masked).tolist():
        shown[row] = shown[row].masked()
    return shown


class Setting(NamedTuple):
    """A campaign's status and its organization's limit from a point of the sequence on."""

    since: int
    status: CampaignStatus
    limit: int


@dataclass(frozen=True, slots=True)
class VisibleState:
    """What each message of a campaign shows, at the end of the instant at which it is sent.

    `call_attempt` and `latest_call_status` (an index into `CALL_STATUSES`) are the recipient's,
    `setting` is an index into `settings`, the states of the campaign's settings, and `expired` the
    three flags as bits: 1 audio, 2 personal data, 4 output.
    """

    call_attempt: NDArray[np.int32]
    latest_call_status: NDArray[np.int8]
    setting: NDArray[np.int64]
    expired: NDArray[np.int8]
    settings: Sequence[Setting]

    def __getitem__(self, rows: NDArray[np.int64]) -> VisibleState:
        return VisibleState(
            self.call_attempt[rows],
            self.latest_call_status[rows],
            self.setting[rows],
            self.expired[rows],
            self.settings,
        )


Statuses = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int8]]
"""Statuses of calls at instants (ms), as indexes into `CALL_STATUSES`."""


def visible_state(
    trace: Trace, calls: Calls, messages: Messages, statuses: Statuses | None = None
) -> VisibleState:
    """What each message shows, being sent when it is (W4).

    `statuses` tells those of calls of a run that goes on; None where the log was read at once.
    """
    sent = sequence(trace, messages.sent_at, messages.turn)
    # No command makes a call of a person who has one, or ends one on its own instant (P1)
    newest = calls.newest_at(calls.recipient[messages.call], messages.sent_at)
    if statuses is None:
        status = _status(trace, calls, newest, sent)
    else:
        status = statuses(newest, messages.sent_at)
    ended = ENDS[calls.last_kind[newest]] & (calls.ended_at[newest] <= messages.sent_at)
    states = _settings(trace, calls)
    since = [setting.since for setting in states]
    return VisibleState(
        call_attempt=calls.attempts_before[newest] + ended,
        latest_call_status=status,
        setting=np.searchsorted(since, sent, side="right") - 1,
        expired=_expired(trace, calls, messages, sent),
        settings=states,
    )


def _settings(trace: Trace, calls: Calls) -> list[Setting]:
    """Every state of the campaign's settings that a payload can show, by `since`."""
    part = trace.campaign(calls.organization, calls.campaign)
    statuses = [(row.at + row.turn, row.to_status) for row in part.changes]
    limits = [(row.at + row.turn, row.limit) for row in part.limits]
    status, limit, states = CampaignStatus.DRAFT, 0, {}
    for point in sorted({since for since, _ in (*statuses, *limits)}):
        status = next((to for since, to in reversed(statuses) if since == point), status)
        limit = next((to for since, to in reversed(limits) if since == point), limit)
        states[point] = Setting(point, status, limit)
    return [*states.values()]


def _deleted(trace: Trace, calls: Calls) -> int:
    """When, in the sequence, the campaign was deleted (C8); FOREVER if it was not."""
    change = trace.campaign(calls.organization, calls.campaign).deleted
    return FOREVER if change is None else change.at + change.turn


def _status(
    trace: Trace, calls: Calls, which: NDArray[np.int64], sent: NDArray[np.int64]
) -> NDArray[np.int8]:
    """The status of calls at points of the sequence, none before the call's creation."""
    status = calls.status[which]
    earlier = np.flatnonzero(change_sequence(trace, calls)[which] > sent)
    if len(earlier):
        status[earlier] = _status_then(trace, calls, which[earlier], sent[earlier])
    return status


def _status_then(
    trace: Trace, calls: Calls, which: NDArray[np.int64], sent: NDArray[np.int64]
) -> NDArray[np.int8]:
    """The status of calls at points before their last change, from the rows of the log."""
    changed = row_sequence(trace, calls)
    wanted = np.zeros(len(calls.call), dtype=bool)
    wanted[which] = True
    rows = np.flatnonzero(wanted[calls.row_call])
    rows = rows[np.argsort(calls.row_call[rows], kind="stable")]
    row = np.searchsorted(calls.row_call[rows], which)
    active = np.arange(len(which))
    while len(active):  # a call's next row exists: its last one is later than `sent`
        active = active[changed[rows[row[active] + 1]] <= sent[active]]
        row[active] += 1
    return TO_STATUS[calls.rows.kind[rows[row]]]


def _expired(
    trace: Trace, calls: Calls, messages: Messages, sent: NDArray[np.int64]
) -> NDArray[np.int8]:
    """The three flags of each message's call when it is sent."""
    owner = trace.campaign(calls.organization, calls.campaign).owner
    flags = expired(owner.settings.retention, calls.ended_at[messages.call], messages.sent_at)
    flags[sent >= _deleted(trace, calls)] = ALL_EXPIRED
    return flags
