"""Rules on calls that a log lacks, or has beyond the scenario's lists (W1, C1)."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np
import pandas as pd

from dialsim.conformance.table import (
    FAR,
    NOT_HAPPENED,
    CampaignFacts,
    Indices,
    Violation,
    of_campaign,
    rule,
)
from dialsim.interface.instants import MINUTE
from dialsim.interface.status import CampaignStatus
from dialsim.logs.expected import Expected
from dialsim.logs.log_table import LogTable

FROM_THE_START_MS = MINUTE  # a log that begins so soon after its campaign has the campaign's start
SILENT_SHARE = 0.05  # answered calls that send no webhook (A2, A4), at most, without a finding


@rule("C1", "scenario")
def strangers(table: LogTable) -> Iterator[Violation]:
    """Check that only campaigns of the scenario and people of their lists appear."""
    calls = table.log.calls
    tels = calls["tel"].astype("str")
    known = (tels.notna() & ~calls["masked"]).to_numpy()
    for code, (one, block) in enumerate(zip(table.log.campaigns, table.blocks, strict=True)):
        here = table.campaign == code
        if block is None:
            rows, text = np.flatnonzero(here)[:1], "the scenario has no campaign {name}"
            names = np.full(len(here), one.name or one.id, dtype=object)
            yield from table.of_calls("C1", rows, table.ended, text, name=names)
            continue
        wrong, text = here & known, "called {tel}, whom the campaign does not list"
        wrong &= ~tels.isin([*block.people.tels()]).to_numpy()
        yield from table.of_calls("C1", wrong, table.ended, text, tel=tels.to_numpy())
        wrong = here & (table.recipient >= block.people.count)
        text = f"called recipient {{index}} of a list of {block.people.count}, counted from 0"
        yield from table.of_calls("C1", wrong, table.ended, text, index=table.recipient)


@rule("W1", "ended")
def earlier_calls(table: LogTable) -> Iterator[Violation]:
    """Check that the calls before a person's last one are in the log.

    A table numbers a person's calls; bodies show how many attempts have ended.
    """
    missing = np.zeros(len(table.person), dtype=np.int64)
    kind, number = (
        ("calls", table.call_no) if table.is_table else ("attempts", table.shown_attempts)
    )
    order = table.sequence
    if not table.is_table:
        order = order[table.is_counted[order] & (number[order] > 0)]
    people = pd.DataFrame({"person": table.person[order], "number": number[order], "call": order})
    groups = people.groupby("person")
    last = groups.tail(1)["call"].to_numpy()
    first = groups["number"].transform("first")
    # Attempts of a log that begins later, or of a history, are not missing.
    begins = np.array([table.is_table or _has_the_start(table, code)
                       for code in range(len(table.campaigns))])  # fmt: skip
    before = np.where(begins[table.campaign[order]], 0, first - 1)
    lacks = people["number"] - groups.cumcount() - 1 - before
    missing[order] = lacks.groupby(people["person"]).cummax().to_numpy()
    text = (
        f"{kind[:-1]} {{number}} of this person, but the log lacks {{missing}} of the {kind} before"
    )
    values = {"number": number, "missing": missing}
    yield from table.of_calls("W1", last[missing[last] > 0], table.ended, text, **values)


def _has_the_start(table: LogTable, code: int) -> bool:
    """Return True if the log has its campaign from the start, and no person a history.

    A log cut at an instant lacks the attempts before it, and `callAttempt` counts a history. Only a
    scenario shows that there is none.
    """
    block = table.blocks[code]
    facts = table.campaigns[code]
    if block is None or block.continues or facts.start_at is None or facts.hours is None:
        return False
    opens = int(facts.hours.next_open(np.array([facts.start_at]))[0])
    ended = table.ended[(table.campaign == code) & (table.ended != NOT_HAPPENED)]
    return int(ended.min(initial=FAR)) <= opens + FROM_THE_START_MS


@rule("W1", "scenario", "created")
def people_without_a_call(table: LogTable) -> Iterator[Violation]:
    """Check that a table has a call for each person of the scenario's list."""
    for code, (facts, block) in enumerate(zip(table.campaigns, table.blocks, strict=True)):
        if block is not None and not block.continues and (unseen := _never_seen(table, code)):
            text = f"{unseen:,} people of the scenario's list have no call at all"
            at = table.created[table.campaign == code].min(initial=FAR)
            yield of_campaign("W1", facts, at, text)


@rule("W1", "bodies")
def results_owed(table: LogTable) -> Iterator[Violation]:
    """Check that a completed campaign does not leave too many people without a final result.

    Some answered calls send no webhook (A2, A4), so a few people may lack theirs.
    """
    if table.is_table:
        return
    completed = np.array(
        [one.status == CampaignStatus.COMPLETED for one in table.log.settings], dtype=bool
    )
    over = {*table.body("campaign")[completed[table.body("setting")]].tolist()}
    order = table.sequence[table.is_counted[table.sequence]]
    newest = order[np.append(np.diff(table.person[order]) != 0, True)[: len(order)]]
    for code, facts in enumerate(table.campaigns):
        if code in over and code not in table.unsure:
            here = newest[table.campaign[newest] == code]
            yield from _results_of(table, code, facts, here)


def _results_of(
    table: LogTable, code: int, facts: CampaignFacts, newest: Indices
) -> Iterator[Violation]:
    seen = int(table.is_reached[newest].sum())
    again = ~table.is_reached[newest] & (table.shown_attempts[newest] < (facts.max_attempts or 0))
    open_ended = int(again.sum())
    unseen = _never_seen(table, code) if _has_the_start(table, code) else 0
    rate = max(SILENT_SHARE, 0 if table.expected is None else _silent(table.expected, code))
    usual = seen * rate / (1 - rate) if rate < 1 else FAR
    if open_ended + unseen > usual + 4 * sqrt(usual) + 1:
        text = f"the campaign is COMPLETED, but {open_ended:,} people have no final result"
        if unseen:
            text += f", and {unseen:,} of the scenario's list no call at all"
        at = table.ended[table.campaign == code].max()
        yield of_campaign("W1", facts, at, f"{text}: results are missing")


def _never_seen(table: LogTable, code: int) -> int:
    """Return the number of people of the scenario's list who have no call in the log."""
    block = table.blocks[code]
    here = table.campaign == code
    if block is None or block.schedule is None or block.schedule.remove_duplicates:
        return 0
    masked = int(table.log.calls["masked"].to_numpy()[here].sum())  # each may be one of them
    if "position" in table.log.columns:
        return int(block.people.count - len(np.unique(table.recipient[here])))
    seen = set(pd.unique(table.log.calls["tel"].astype("str")[here]))
    return max(0, len(set(block.people.tels()) - seen) - masked)


def _silent(expected: Expected, code: int) -> float:
    """Return the share of answered calls that send no webhook under a behaviour (A2, A4)."""
    block = expected.blocks[code]
    behaviours = expected.world.scenario.behaviours
    if block is None or block.agent.behaviour not in behaviours:
        return 0.0
    rates = behaviours[block.agent.behaviour].rates
    return rates.agent_error + rates.not_recorded + rates.analysis_failed
