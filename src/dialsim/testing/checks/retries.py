"""Checks of a person's calls one after the other: who is called, again, when (C1, R, P5, D3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import CHANGES
from dialsim.interface.status import CallStatus
from dialsim.testing.checks.record import CampaignRecord, Violation, kinds, leads_to

_UNREACHED = leads_to(CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)
_ENDED, _TIMED_OUT = kinds("ended"), kinds("queue_timeout")
_DROPPED = kinds("cancelled", "deleted", "expired")


class PeopleRecord:
    """The calls of one campaign as a list, by (recipient, call), and each person's past.

    Per call: `first_row` and `last_row`, the person, the kind of its last change, and `attempts`,
    how many of the person's were counted when it was over (P5). Per person: `removed` as a
    duplicate (D3), `past_attempts`, `past_reached`, and `resumes_at`, when the call that follows
    the past is due; -1 for who has none.
    """

    def __init__(self, campaign: CampaignRecord) -> None:
        rows, scheduled = campaign.rows, campaign.scheduled
        self.campaign = campaign
        self.first_row = np.flatnonzero(rows.first)
        self.last_row = np.flatnonzero(rows.last)
        self.person = rows.recipient[self.first_row]
        self.call = rows.call[self.first_row]
        self.last_kind = rows.kind[self.last_row]
        self.made_at = rows.at[self.first_row]
        self.over_at = rows.at[self.last_row]
        self.newest = np.append(self.person[1:] != self.person[:-1], True)[: len(self.person)]
        self.removed = np.zeros(campaign.count, dtype=bool)
        self.past_attempts = np.zeros(campaign.count, dtype=np.int64)
        self.past_reached = np.zeros(campaign.count, dtype=bool)
        self.resumes_at = np.full(campaign.count, -1, dtype=np.int64)
        if scheduled is not None:
            self.removed[list(scheduled.removed)] = True
            for recipient, past in campaign.block.people.history.items():
                due = past.last_ended_at + campaign.retry_interval
                self.past_attempts[recipient] = past.call_attempt
                self.past_reached[recipient] = past.reached
                self.resumes_at[recipient] = max(scheduled.at, due)

    @cached_property
    def attempts(self) -> NDArray[np.int64]:
        """Attempts counted when each call was over, those of the past included."""
        counted = np.concatenate([[0], np.cumsum(_ENDED[self.last_kind], dtype=np.int64)])
        begins = np.searchsorted(self.person, self.person, side="left")
        own: NDArray[np.int64] = counted[1:] - counted[begins]
        return own + self.past_attempts[self.person]

    @cached_property
    def has_calls(self) -> NDArray[np.bool_]:
        """Whether each person has a call."""
        has: NDArray[np.bool_] = np.bincount(self.person, minlength=self.campaign.count) > 0
        return has


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every breach by a person's calls taken together."""
    people = PeopleRecord(campaign)
    yield from _first_calls(campaign, people)
    yield from _numbering(campaign, people)
    yield from _retries(campaign, people)
    yield from _fates(campaign, people)


def _first_calls(campaign: CampaignRecord, people: PeopleRecord) -> Iterator[Violation]:
    """One call for everybody from the request on; who has a past goes on from there (C1)."""
    rows, scheduled = campaign.rows, campaign.scheduled
    fresh = people.resumes_at < 0
    if scheduled is None:
        for row in people.first_row.tolist():
            yield campaign.breach_at(row, "C1", int(rows.at[row]), "a call without a request")
        return
    for recipient in np.flatnonzero(fresh & ~people.removed & ~people.has_calls).tolist():
        yield campaign.breach_by(recipient, "C1", scheduled.at, "no call was made")
    for recipient in np.flatnonzero(people.removed & people.has_calls).tolist():
        yield campaign.breach_by(recipient, "D3", scheduled.at, "called although removed")
    yield from _resumed(campaign, people)
    kind = rows.kind[people.first_row]
    by_request = (people.call == 1) & fresh[people.person]
    wrong = ~np.where(by_request, kinds("scheduled")[kind], kinds("retry")[kind])
    for index in np.flatnonzero(wrong).tolist():
        rule = "C1" if by_request[index] else "R2"
        yield _breach(campaign, people, index, rule, f"made by {CHANGES[kind[index]].cause}")
    late = rows.first & kinds("scheduled")[rows.kind] & (rows.at != scheduled.at)
    yield from campaign.breaches(late, "C1", "made, but not by the request")


def _resumed(campaign: CampaignRecord, people: PeopleRecord) -> Iterator[Violation]:
    """The first call of who has a past is a retry, where one is left, at its instant (R1-R3)."""
    due = people.resumes_at
    done = people.past_reached | (people.past_attempts >= campaign.max_attempts)
    wanted = (due >= 0) & ~done & ~people.removed & ~_over(campaign, due)
    begins = np.searchsorted(people.person, np.arange(campaign.count), side="left")
    for recipient in np.flatnonzero(due >= 0).tolist():
        has, at = people.has_calls[recipient], int(due[recipient])
        if has and done[recipient]:
            rule = "R3" if people.past_reached[recipient] else "R1"
            yield campaign.breach_by(recipient, rule, at, "called again after its history")
        elif has and people.made_at[begins[recipient]] != at:
            yield campaign.breach_by(recipient, "R2", at, "the call was not made when it was due")
        elif wanted[recipient] and not has and at <= campaign.run.trace.end:
            yield campaign.breach_by(recipient, "R1", at, "no call follows the history")


def _numbering(campaign: CampaignRecord, people: PeopleRecord) -> Iterator[Violation]:
    """Calls are numbered from 1."""
    same = np.append(False, ~people.newest[:-1])[: len(people.person)]
    expected = np.where(same, np.roll(people.call, 1) + 1, 1)
    for index in np.flatnonzero(people.call != expected).tolist():
        row = int(people.first_row[index])
        text = f"call {people.call[index]} where call {expected[index]} comes next"
        yield campaign.breach_at(row, "R2", int(people.made_at[index]), text)


def _retries(campaign: CampaignRecord, people: PeopleRecord) -> Iterator[Violation]:
    """Retries exactly where and when the rules want them (P5, R1, R2, R3)."""
    attempts, last = people.attempts, people.last_kind
    failed = (_UNREACHED | _TIMED_OUT)[last]
    due = people.over_at + campaign.retry_interval
    wanted = failed & (attempts < campaign.max_attempts) & ~_over(campaign, due)
    allowed = failed & (attempts < campaign.max_attempts) & ~_over(campaign, due, surely=True)
    next_at = np.roll(people.made_at, -1)
    missing = people.newest & wanted & (due <= campaign.run.trace.end)
    for index in np.flatnonzero(attempts > campaign.max_attempts).tolist():
        yield _breach(campaign, people, index, "R1", f"attempt {attempts[index]} was made")
    for index in np.flatnonzero(missing).tolist():
        row = int(people.last_row[index])
        yield campaign.breach_at(row, "R1", int(due[index]), "no new call was made")
    for index in np.flatnonzero(~people.newest & ~allowed).tolist():
        status = CHANGES[last[index]].to_status
        rule = "R3" if status is CallStatus.COMPLETED else "R1"
        yield _breach(campaign, people, index + 1, rule, f"another call after {status}")
    for index in np.flatnonzero(~people.newest & allowed & (next_at != due)).tolist():
        passed = int(next_at[index] - people.over_at[index])
        text = f"made {passed} ms after the call before, not {campaign.retry_interval} ms"
        yield _breach(campaign, people, index + 1, "R2", text)


def _over(
    campaign: CampaignRecord, due: NDArray[np.int64], *, surely: bool = False
) -> NDArray[np.bool_]:
    """Whether the campaign was closed when each call was due.

    A command from outside comes after the instant's retries, which may be there then: `surely`
    leaves that instant out.
    """
    if campaign.closing is None:
        return np.zeros(len(due), dtype=bool)
    closed_at, rule = campaign.closing
    late = surely and campaign.run.live and rule != "C7"
    over: NDArray[np.bool_] = closed_at < due if late else closed_at <= due
    return over


def _fates(campaign: CampaignRecord, people: PeopleRecord) -> Iterator[Violation]:
    """Every recipient of a campaign that is over is in exactly one final state (C3)."""
    end = campaign.run.trace.end
    if campaign.run.cut or campaign.scheduled is None or not campaign.status_after(end).final:
        return
    newest = np.flatnonzero(people.newest)
    last = np.full(campaign.count, len(CHANGES))
    last[people.person[newest]] = people.last_kind[newest]
    attempts = people.past_attempts.copy()
    attempts[people.person[newest]] = people.attempts[newest]
    reached = people.past_reached.copy()
    reached[people.person[leads_to(CallStatus.COMPLETED)[people.last_kind]]] = True
    left = ~reached & (attempts < campaign.max_attempts)
    again = (_UNREACHED | _TIMED_OUT)[last] | (~people.has_calls & (people.resumes_at >= 0))
    fates = {
        "reached": reached,
        "exhausted": ~reached & (attempts >= campaign.max_attempts),
        "withdrawn": _DROPPED[last],
        "dropped": left & again & (campaign.closing is not None),
    }
    held = np.sum(list(fates.values()), axis=0)
    for recipient in np.flatnonzero((held != 1) & ~people.removed).tolist():
        names = [fate for fate, holds in fates.items() if holds[recipient]]
        text = f"in the end {' and '.join(names) or 'in no final state'}"
        yield campaign.breach_by(recipient, "C3", end, text)


def _breach(
    campaign: CampaignRecord, people: PeopleRecord, index: int, rule: str, text: str
) -> Violation:
    return campaign.breach_at(int(people.first_row[index]), rule, int(people.made_at[index]), text)
