"""Rules on the queue and the lines of an organization in a run, and on who goes first (Q)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

import numpy as np

from dialsim.conformance.table import FAR, NOT_HAPPENED, Indices, Violation, of_campaign, rule
from dialsim.conformance.trace_table import CampaignRun, Load, TraceTable, kinds


def _of_owner(load: Load, number: str, at: int, text: str) -> Violation:
    """Return a violation by an organization's calls together."""
    return Violation(number, load.owner.name, None, None, None, at, text)


@rule("Q2", "changes")
def releases_into_a_full_queue(table: TraceTable) -> Iterator[Violation]:
    """Check that no call is released into a full queue, or while there are no lines."""
    for load in table.loads:
        limits = table.limits_in(load.owner.position, load.at)
        over = (limits == 0) | (load.queued > load.queue_room(limits))
        for index in np.flatnonzero(load.released.any(axis=0) & over).tolist():
            text = f"{load.queued[index]} calls in the queue, with {limits[index]} lines"
            yield _of_owner(load, "Q2", int(load.at[index]), text)


@rule("Q10 Q11", "changes")
def lines_of_other_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check that no campaign takes more lines than allowed, or a kept line."""
    for load in table.loads:
        every = np.arange(len(load.at))
        held, taken = load.held(every, load.at), load.taken(every, load.at)
        is_judged = (load.at >= load.counted_since) & ~table.is_excused(load.at)
        for part, campaign in enumerate(load.campaigns):
            used, released = load.used[part], load.released[part] & is_judged
            for number, wrong, text in (
                ("Q10", used > campaign.block.share.at_most, "more lines than atMost"),
                ("Q10", released & (load.busy + load.queued > load.limits),
                 "released where no line is free"),
                ("Q11", released & (used > held[part]) & (taken > load.limits),
                 "released on a line that is held"),
            ):  # fmt: skip
                for at in load.at[wrong]:
                    yield of_campaign(number, campaign, at, text)


@rule("Q7 Q8 Q9", "changes")
def releases_out_of_turn_between_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check that no call is released while a campaign that goes first has one waiting."""
    numbers = {"priority": "Q7", "weighted": "Q8", "deadline": "Q9"}
    sharing = table.trace.world.scenario.engine.sharing
    if sharing not in numbers:
        return
    number = numbers[sharing]
    for load in table.loads:
        at, used, every = load.at, load.used, np.arange(len(load.at))
        is_judged = ~table.is_excused(at)
        # A release on a line that is reserved for the campaign takes nothing from others.
        beyond = (used > load.held(every, at)) | (load.counted_since == FAR)
        for theirs, other in enumerate(load.campaigns):
            waits = (load.waiting[theirs] > 0) & other.runs_after(at) & other.is_open(at)
            # Only a campaign whose release instant this is could have gone first.
            waits &= (at - (other.first_due or 0)) % (table.release_interval or 1) == 0
            waits &= (at >= (other.start_at or 0)) & (used[theirs] < other.block.share.at_most)
            for mine, campaign in enumerate(load.campaigns):
                one, two = campaign.block.share, other.block.share
                is_ahead = other.block.position < campaign.block.position
                # Cross-multiplied, so that shares are compared without the rounding of a division.
                left, right = used[mine] * two.weight, (used[theirs] + 1) * one.weight
                first = {
                    "Q7": two.priority < one.priority,
                    "Q8": (left > right) | ((left == right) & is_ahead),
                    "Q9": _deadline(other) < _deadline(campaign),
                }[number]
                wrong = load.released[mine] & is_judged & beyond[mine] & waits & first
                for moment in at[wrong]:
                    text = f"released while a call of {other.name} waits, which goes first"
                    yield of_campaign(number, campaign, moment, text)


def _deadline(campaign: CampaignRun) -> tuple[float, int]:
    request = campaign.request
    end = None if request is None else request.end_date_time
    return inf if end is None else end, campaign.block.position


@rule("Q4", "changes")
def lines_idle_in_vain(table: TraceTable) -> Iterator[Violation]:
    """Check that no line stays free longer than the pace requires while a call is queued."""
    gap = table.dial_gap
    for load in table.loads:
        # A sentinel before all instants stands for "no dial so far".
        dials = np.append(-gap, load.dialled_at)
        last = dials[np.searchsorted(dials, load.at, side="right") - 1]
        free_at = np.maximum(load.at, last + gap)
        idle = (load.queued > 0) & (load.busy < load.limits) & (free_at < load.then)
        for at in free_at[idle]:
            text = "a line is free and a call in the queue, but it is not dialled"
            yield _of_owner(load, "Q4", int(at), text)


@rule("Q2", "changes")
def calls_not_released(table: TraceTable) -> Iterator[Violation]:
    """Check that no releasable call waits while the queue has room and a line is available."""
    interval = table.release_interval or 1
    for load in table.loads:
        room = (load.limits > 0) & (load.queued < load.queue_room(load.limits))
        for part, campaign in enumerate(load.campaigns):
            if campaign.hours is None:
                continue
            index = np.flatnonzero(room & (load.waiting[part] > 0) & campaign.runs_after(load.at))
            at, then, origin = load.at[index], load.then[index], campaign.first_due or 0
            may = campaign.hours.next_release(at, then, origin, interval)
            soon = may < then
            # Lines are looked up only where a release was possible at all.
            soon[soon] = load.has_line(part, index[soon], may[soon])
            for moment in may[soon]:
                text = "the queue has room and a call waits, but it is not released"
                yield of_campaign("Q2", campaign, moment, text)


@rule("Q3", "changes")
def releases_out_of_turn(table: TraceTable) -> Iterator[Violation]:
    """Check that no call is released while another one of its campaign, which goes first, waits."""
    rows = table.changes
    begins = rows.of_kind("scheduled", "retry", "window_closed", "paused")
    ends = np.roll(begins, 1) & ~rows.first & ~begins  # next row of the same call
    waits = np.flatnonzero(begins)
    in_turn = waits[_turns(table, rows.call[waits])]
    rank = np.empty(len(begins), dtype=np.int64)
    rank[in_turn] = np.arange(len(in_turn))
    rank[ends] = rank[np.flatnonzero(ends) - 1]
    is_release = rows.of_kind("released")
    for part in rows.parts:
        moves = part.start + np.flatnonzero((begins | ends)[part])
        moves = moves[np.argsort(rows.order[moves])]  # in order of occurrence
        columns = (moves, rank[moves], begins[moves], is_release[moves])
        for row, ahead in _overtaking(*(column.tolist() for column in columns)):
            first = table.recipient[rows.call[in_turn[ahead]]]
            text = f"released while recipient {first} waits, who goes first"
            yield from table.of_calls("Q3", [row], rows.at, text, rows.call)


def _turns(table: TraceTable, call: Indices) -> Indices:
    """Return the order of calls that wait: by the order's class, due instant and upload order."""
    rows = table.changes
    first_due = table.of_campaigns(lambda one: one.first_due, NOT_HAPPENED)
    due = np.where(kinds("scheduled")[rows.kind[rows.first]], first_due, table.created)
    # C1: the call that continues a history may have been due before it could be made.
    due = np.minimum(due, np.where(table.call_no == 1, table.due_again[table.person], FAR))
    attempts = (table.attempts - table.is_counted)[call]
    order = table.trace.world.scenario.engine.order
    goes_last = {"freshFirst": attempts > 0, "retriesFirst": attempts == 0}
    last = goes_last.get(order, np.zeros(len(call), dtype=bool))
    return np.lexsort((table.recipient[call], due[call], last))


def _overtaking(
    rows: list[int], ranks: list[int], begins: list[bool], released: list[bool]
) -> Iterator[tuple[int, int]]:
    """Yield each row that releases a call out of turn, and the rank of the call that goes first."""
    waiting: list[int] = []
    # Entries of a heap can't be removed from its middle; they are marked, and dropped at the top.
    over: set[int] = set()
    for row, rank, begin, release in zip(rows, ranks, begins, released, strict=True):
        if begin:
            heappush(waiting, rank)
            continue
        over.add(rank)
        # The heap still holds the released call itself, so that it is never empty here.
        while release and waiting[0] < rank and waiting[0] in over:
            heappop(waiting)
        if release and waiting[0] < rank:
            yield row, waiting[0]
