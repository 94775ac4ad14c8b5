"""Calls that a log lacks: gaps in attempts, results that are owed, recipients never called (W1)."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dialsim.conformance.calls import OpeningHours, is_called_again, retry_due
from dialsim.interface.instants import MINUTE
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.logs.bodies import NO_INSTANT, Settings
from dialsim.logs.call_rules import doubts, is_sound
from dialsim.logs.findings import FAR, Finding, LogColumns, codes, instant
from dialsim.logs.scenario_rules import Expected

FROM_THE_START_MS = MINUTE  # a log that begins so soon after its campaign has the campaign's start
SILENT_SHARE = 0.05  # answered calls that send no webhook (A2, A4), at most, without a finding
_REACHED = codes(CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED)


def findings(view: LogColumns, expected: Expected | None) -> Iterator[Finding]:
    """Yield what the calls of each campaign show of calls that are not in the log."""
    unsure = doubts(view)
    for code, settings in enumerate(view.settings):
        if code not in unsure.campaigns:
            yield from _of_campaign(view, expected, code, settings, unsure.people)


def _of_campaign(
    view: LogColumns,
    expected: Expected | None,
    code: int,
    settings: Settings | None,
    unsure: NDArray[np.int64],
) -> Iterator[Finding]:
    ended, who = view.instants("ended_at"), view.recipient
    rows = np.flatnonzero((view.campaign == code) & (who >= 0) & (ended != NO_INSTANT))
    rows = rows[~np.isin(who[rows], unsure)]
    counted = rows[view.is_counted[rows] & (_attempts_shown(view)[rows] > 0)]
    if not len(counted):
        return
    counted = counted[np.lexsort((ended[counted], who[counted]))]
    first = np.diff(who[counted], prepend=-1) != 0
    last = np.append(first[1:], True)
    shown = _attempts_shown(view)[counted]
    begins = np.flatnonzero(first)
    made = np.diff(np.append(begins, len(counted)))
    before = shown[first] - 1
    between = shown[last] - made - before
    from_start = _has_the_start(view, expected, code, settings)
    missing, kind = np.where(between > 0, between, 0) + (before if from_start else 0), "attempts"
    if view.log.columns:  # a table, which also numbers calls lost in the queue, and after a history
        kind = "calls"
        numbers = view.log.calls.groupby("recipient")["call_no"]
        gaps = view.log.calls["call_no"] - numbers.rank("first")
        missing = np.maximum(missing, gaps.to_numpy(np.int64, na_value=0)[counted[last]])
    lacks = dict(zip(counted[last].tolist(), missing.tolist(), strict=True))
    counts = dict(zip(counted[last].tolist(), shown[last].tolist(), strict=True))
    yield from view.of_calls(
        "W1", counted[last][missing > 0], ended,
        lambda row: f"attempt {counts[row]} of this person, but the log lacks {lacks[row]} of the "
        f"{kind} before",
    )  # fmt: skip
    if view.log.columns:
        if not view.has("created_at"):  # then a call that waits is in no row
            return
        block = None if expected is None else expected.blocks[code]
        has_history = block is not None and block.continues
        # A table without numbers of attempts does not have those of a history either
        if not (has_history and view.log.form == "table"):
            yield from _retries_owed(view, settings, rows)
        if block is None or has_history:
            return
        # A table has a call for everybody from the campaign's start on, made or not
        if unseen := _never_seen(view, expected, code):
            text = f"{unseen:,} people of the scenario's list have no call at all"
            at = int(view.instants("created_at")[rows].min())
            yield Finding("W1", 0, view.log.campaigns[code].name, None, at, text)
    else:
        yield from _results_owed(view, expected, code, settings, counted[last], from_start)


def _attempts_shown(view: LogColumns) -> NDArray[np.int64]:
    """Return the number of each call's attempt, as the call's first body or the table shows it."""
    if view.log.columns:
        return view.attempt
    shown = np.full(len(view.log.calls), FAR)
    np.minimum.at(shown, view.body("call"), view.body("shown_attempts"))
    return np.where(shown == FAR, -1, shown)


def _has_the_start(
    view: LogColumns, expected: Expected | None, code: int, settings: Settings | None
) -> bool:
    """Return whether the log has its campaign from the start, and no person a history.

    A log cut at an instant lacks the attempts before it, and `callAttempt` counts a history. Only a
    scenario shows that there is none.
    """
    block = None if expected is None else expected.blocks[code]
    if block is None or block.continues or settings is None or settings.start_at is None:
        return False
    if not settings.windows or not is_sound(settings):
        return False
    opens = int(OpeningHours(settings.windows).next_open(np.array([settings.start_at]))[0])
    ended = view.instants("ended_at")[view.campaign == code]
    begun = int(ended[ended != NO_INSTANT].min(initial=FAR))
    return begun <= opens + FROM_THE_START_MS


def _retries_owed(
    view: LogColumns, settings: Settings | None, rows: NDArray[np.int64]
) -> Iterator[Finding]:
    """Yield the calls of a table that no retry follows, although one fell due (R1, R2)."""
    if settings is None or settings.max_attempts is None or settings.retry_interval is None:
        return
    created, ended, who = view.instants("created_at"), view.instants("ended_at"), view.recipient
    everybody = np.flatnonzero(view.campaign == view.campaign[rows[0]])
    horizon = int(created[everybody].max(initial=NO_INSTANT))
    order = everybody[np.lexsort((created[everybody], who[everybody]))]
    newest = order[np.append(np.diff(who[order]) != 0, True)]
    status, is_timeout = view.status[newest], view.is_queue_timeout[newest]
    due = retry_due(ended[newest], settings.retry_interval, status)
    again = is_called_again(status, is_timeout, view.attempt[newest], settings.max_attempts)
    end = FAR if settings.end_at is None else settings.end_at
    due_of = dict(zip(newest.tolist(), due.tolist(), strict=True))
    yield from view.of_calls(
        "R1", newest[again & (due < min(horizon, end))], ended,
        lambda row: f"no call follows, although one was due at {instant(due_of[row])}",
    )  # fmt: skip


def _results_owed(
    view: LogColumns,
    expected: Expected | None,
    code: int,
    settings: Settings | None,
    last: NDArray[np.int64],
    from_start: bool,
) -> Iterator[Finding]:
    """Yield one finding where a completed campaign leaves too many people without a final result.

    Some answered calls send no webhook (A2, A4), so a few people may lack theirs.
    """
    shown = {view.log.settings[one].status for one in np.unique(
        view.body("setting")[view.body("campaign") == code]).tolist()}  # fmt: skip
    if settings is None or CampaignStatus.COMPLETED.value not in shown:
        return
    reached = np.isin(view.status[last], _REACHED)
    most = settings.max_attempts
    open_ended = last[~reached & (_attempts_shown(view)[last] < (most or 0))]
    unseen = _never_seen(view, expected, code) if from_start else 0
    rate, seen = SILENT_SHARE, int(reached.sum())
    if expected is not None and (block := expected.blocks[code]) is not None:
        rate = max(rate, _silent(expected, block.agent.behaviour))
    usual = seen * rate / (1 - rate) if rate < 1 else FAR
    number = len(open_ended) + unseen
    if number <= usual + 4 * sqrt(usual) + 1:
        return
    at = int(view.instants("ended_at")[view.campaign == code].max())
    text = f"the campaign is COMPLETED, but {len(open_ended):,} people have no final result"
    if unseen:
        text += f", and {unseen:,} of the scenario's list no call at all"
    yield Finding("W1", 0, view.log.campaigns[code].name, None, at, f"{text}: results are missing")


def _never_seen(view: LogColumns, expected: Expected | None, code: int) -> int:
    """Return the number of people of the scenario's list who have no call in the log."""
    block = None if expected is None else expected.blocks[code]
    here = view.campaign == code
    if block is None or block.schedule is None or block.schedule.remove_duplicates:
        return 0
    masked = int(view.log.calls["masked"].to_numpy()[here].sum())  # each may be one of them
    if view.has("position"):
        return block.people.count - len(pd.unique(view.log.calls["position"][here]))
    seen = set(pd.unique(view.log.calls["tel"].astype("str")[here]))
    return max(0, len(set(block.people.tels()) - seen) - masked)


def _silent(expected: Expected, behaviour: str) -> float:
    """Return the share of answered calls that send no webhook under a behaviour (A2, A4)."""
    behaviours = expected.world.scenario.behaviours
    if behaviour not in behaviours:
        return 0.0
    rates = behaviours[behaviour].rates
    return rates.agent_error + rates.not_recorded + rates.analysis_failed
