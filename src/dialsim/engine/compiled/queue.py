"""Waiting calls (rules Q, R): retries not yet due, calls before their release, and the queue.

They are kept in binary heaps on arrays. Several heaps share one pair of arrays, each starting at
its `base`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.engine import rules as _rules
from dialsim.engine import trace as _trace
from dialsim.engine.compiled.jit import rule, shared
from dialsim.engine.compiled.state import (
    DEADLINE,
    FIFO,
    NO_TIMER,
    ROWS_OF_A_CALL,
    RUNNING,
    WEIGHTED,
    Record,
    State,
    has_room,
    look_at,
    write,
)

Integers = NDArray[np.int64]


@rule
def push(keys: Integers, items: Integers, base: int, size: int, key: int, item: int) -> None:
    """Insert an entry into a heap of `size` entries."""
    # numba also compiles Python's heapq, but a heap of tuples in a list takes three times as long.
    index = size
    while index > 0:
        parent = (index - 1) >> 1
        above = keys[base + parent]
        if above < key or (above == key and items[base + parent] <= item):
            break
        keys[base + index] = above
        items[base + index] = items[base + parent]
        index = parent
    keys[base + index] = key
    items[base + index] = item


@rule
def replace_first(
    keys: Integers, items: Integers, base: int, size: int, key: int, item: int
) -> None:
    """Replace the first of `size` entries by another one."""
    index = 0
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size:
            one, other = keys[base + child], keys[base + child + 1]
            # Added, not branched on: no processor can predict which of two children is less. Ties
            # are rare, so that the branch for them is predicted.
            child += int(other < one)
            if one == other and items[base + child + 1] < items[base + child]:
                child += 1
        least = keys[base + child]
        if key <= least and (key < least or item <= items[base + child]):
            break
        keys[base + index] = least
        items[base + index] = items[base + child]
        index = child
    keys[base + index] = key
    items[base + index] = item


@rule
def remove_first(keys: Integers, items: Integers, base: int, size: int) -> None:
    """Remove the first of `size` entries."""
    last = base + size - 1
    replace_first(keys, items, base, size - 1, keys[last], items[last])


@rule
def restore(keys: Integers, items: Integers, base: int, size: int) -> None:
    """Turn `size` entries in any order into a heap."""
    for count in range(size):
        push(keys, items, base, count, keys[base + count], items[base + count])


# -- agendas: entries in the order of key and person -----------------------------------------------


@rule
def run_index(agenda: Record, number: int) -> int:
    """Return the column index of entry `number` of an agenda's run, which is a ring buffer."""
    index = agenda.first + number
    return int(agenda.begin + (index if index < agenda.room else index - agenda.room))


@rule
def add(s: State, agenda: Record, key: int, person: int) -> None:
    """Insert an entry into an agenda."""
    # Calls come due in the order in which they were planned, unless they end in one instant, return
    # from the queue, or belong to campaigns with other intervals. The run takes entries in order in
    # constant time. A heap of all entries would wait for memory at each level, which takes a fifth
    # of the time of a simulation with many retries.
    if agenda.length > 0:
        last = run_index(agenda, agenda.length - 1)
        above = s.run_keys[last]
        if key < above or (key == above and person < s.run_people[last]):
            push(s.heap_keys, s.heap_people, agenda.begin, agenda.heaped, key, person)
            agenda.heaped += 1
            return
    index = run_index(agenda, agenda.length)
    s.run_keys[index] = key
    s.run_people[index] = person
    agenda.length += 1


@rule
def is_heap_first(s: State, agenda: Record) -> bool:
    """Return True if the first entry of an agenda is in its heap."""
    if agenda.heaped == 0 or agenda.length == 0:
        return bool(agenda.heaped > 0)
    run, heap = run_index(agenda, 0), agenda.begin
    if s.heap_keys[heap] != s.run_keys[run]:
        return bool(s.heap_keys[heap] < s.run_keys[run])
    return bool(s.heap_people[heap] < s.run_people[run])


@rule
def first_entry(s: State, agenda: Record) -> tuple[int, int]:
    """Return key and person of the first entry of an agenda that is not empty."""
    if is_heap_first(s, agenda):
        return s.heap_keys[agenda.begin], s.heap_people[agenda.begin]
    index = run_index(agenda, 0)
    return s.run_keys[index], s.run_people[index]


@rule
def take_first_entry(s: State, agenda: Record) -> tuple[int, int]:
    """Remove the first entry of an agenda; returns its key and its person."""
    first = first_entry(s, agenda)
    if is_heap_first(s, agenda):
        remove_first(s.heap_keys, s.heap_people, agenda.begin, agenda.heaped)
        agenda.heaped -= 1
    else:
        agenda.first += 1
        if agenda.first == agenda.room:
            agenda.first = 0
        agenda.length -= 1
    return first


@rule
def clear(agenda: Record) -> None:
    """Remove all entries of an agenda."""
    agenda.length = 0
    agenda.heaped = 0


# Compiled functions treat global numbers as constants.
CREATED_RETRY = _trace.RETRY
LOST_IN_QUEUE = _rules.LOST_IN_QUEUE
RELEASED = _trace.RELEASED
TIMED_OUT = _trace.QUEUE_TIMEOUT
WINDOW_CLOSED = _trace.WINDOW_CLOSED

RANK_SHIFT = 62  # instants and durations together stay below this bit

# The rules that both engines share.
calls_again = shared(_rules.calls_again)
retry_due = shared(_rules.retry_due)
is_release_instant = shared(_rules.is_release_instant)
goes_before_by_weight = shared(_rules.goes_before_by_weight)
lines_held = shared(_rules.lines_held)
week_position = shared(_rules.week_position)
range_at = shared(_rules.range_at)
first_multiple = shared(_rules.first_multiple)
next_open = shared(_rules.next_open, week_position=week_position)
next_open_on_grid = shared(
    _rules.next_open_on_grid, week_position=week_position, first_multiple=first_multiple
)


# -- R: retries ------------------------------------------------------------------------------------


@rule
def planned(s: State) -> Record:
    """Return the agenda of the retries that are not created yet."""
    return s.agendas[len(s.campaigns)]


@rule
def call_again(s: State, person: int, ended: int) -> None:
    """Plan the call after one that has ended (R2); `ended` is the `ending` of `retry_due`."""
    dialler = s.dialler
    campaign = s.campaigns[int(s.people[person].campaign)]
    add(s, planned(s), retry_due(dialler.now, campaign.retry_interval, ended), person)
    dialler.retries += 1
    campaign.retries += 1


@rule
def create_retry(s: State) -> None:
    """Create a retry at its due instant, even during a pause (R2)."""
    dialler = s.dialler
    due, person = take_first_entry(s, planned(s))
    dialler.retries -= 1
    s.campaigns[int(s.people[person].campaign)].retries -= 1
    s.people[person].calls += 1
    write(s, person, CREATED_RETRY)
    wait(s, person, due)
    # Without room, the event that makes room wakes the dialler (Q2).
    if dialler.queue_length < dialler.capacity:
        dialler.woken = 1


@rule
def drop_retries(s: State, c: int) -> None:
    """Drop the retries of a campaign that are not yet due."""
    dialler, agenda = s.dialler, planned(s)
    if s.campaigns[c].retries == 0:
        return
    kept = 0
    for number in range(agenda.length):
        index = run_index(agenda, number)
        person = s.run_people[index]
        if s.people[person].campaign != c:
            to = run_index(agenda, kept)
            s.run_keys[to] = s.run_keys[index]
            s.run_people[to] = person
            kept += 1
    agenda.length = kept
    kept = 0
    for index in range(agenda.begin, agenda.begin + agenda.heaped):
        person = s.heap_people[index]
        if s.people[person].campaign != c:
            s.heap_keys[agenda.begin + kept] = s.heap_keys[index]
            s.heap_people[agenda.begin + kept] = person
            kept += 1
    restore(s.heap_keys, s.heap_people, agenda.begin, kept)
    agenda.heaped = kept
    dialler.retries -= s.campaigns[c].retries
    s.campaigns[c].retries = 0


# -- Q3: the order inside a campaign ---------------------------------------------------------------


@rule
def place_in_order(rank: int, due: int) -> int:
    """Return the sort key of a waiting call before upload order: class, then due instant (Q3)."""
    return rank << RANK_SHIFT | due


@rule
def first_key(s: State, c: int) -> int:
    """Return the sort key of a campaign's next call (Q3)."""
    return first_entry(s, s.agendas[c])[0]


@rule
def take_waiting(s: State, c: int) -> tuple[int, int]:
    """Take a campaign's next waiting call (Q3); returns its due instant and its person."""
    key, person = take_first_entry(s, s.agendas[c])
    s.campaigns[c].waiting -= 1
    return key & ~(1 << RANK_SHIFT), person


@rule
def wait(s: State, person: int, due: int) -> None:
    """Insert a call in SCHEDULED by its order (Q3)."""
    c = int(s.people[person].campaign)
    rank = s.dialler.retry_rank if s.people[person].attempts > 0 else s.dialler.fresh_rank
    add(s, s.agendas[c], place_in_order(rank, due), person)
    s.campaigns[c].waiting += 1


# -- Q2, Q3: release -------------------------------------------------------------------------------


@rule
def can_release(s: State, campaign: Record) -> bool:
    """Return True if a call of this campaign may be released now (Q2), given room in the queue."""
    return (
        campaign.status == RUNNING
        and campaign.waiting > 0
        and is_release_instant(s.dialler.now, campaign.first_due, s.dialler.release_interval)
        and is_open(s, campaign)
    )


@rule
def release(s: State) -> bool:
    """SCHEDULED → QUEUED while the queue has room (Q2). False: the log is full."""
    dialler = s.dialler
    while dialler.queue_length < dialler.capacity:
        c = next_campaign(s)
        if c < 0:
            break
        if not has_room(s, ROWS_OF_A_CALL):
            return False
        campaign = s.campaigns[c]
        due, person = take_waiting(s, c)
        index = dialler.queue_first + dialler.queue_length
        if index >= len(s.queue):
            index -= len(s.queue)
        call = s.queue[index]
        call.person = person
        call.due = due
        call.queued_at = dialler.now
        dialler.queue_length += 1
        campaign.queued += 1
        write(s, person, RELEASED)
        campaign.closes_at = campaign.shuts  # Q6
        look_at(s, campaign.closes_at)
        s.campaigns[campaign.first_of_priority].released_last = c
        campaign.is_ready = campaign.waiting > 0
    return True


@rule
def next_campaign(s: State) -> int:
    """Return the campaign to release from next (Q3); -1 if there is none."""
    first = -1
    for c in range(len(s.campaigns)):
        if not s.campaigns[c].is_ready or (s.dialler.counts_lines and not has_line(s, c)):
            continue
        if first < 0 or goes_before(s, c, first):
            first = c
    return first


@rule
def goes_before(s: State, c: int, other: int) -> bool:
    """Return True if campaign `c` goes before `other`, which precedes it in the scenario (Q3)."""
    mine, others = s.campaigns[c], s.campaigns[other]
    sharing = s.dialler.sharing
    if sharing == FIFO:
        return first_key(s, c) < first_key(s, other)
    if sharing == WEIGHTED:  # Q8, multiplied crosswise to stay with integers
        return goes_before_by_weight(lines(mine), mine.weight, lines(others), others.weight)
    if sharing == DEADLINE:  # Q9
        return mine.end_at < others.end_at
    if mine.priority != others.priority:  # Q7
        return mine.priority < others.priority
    # True if it is the turn of `c`
    return other <= s.campaigns[mine.first_of_priority].released_last < c


# -- Q10, Q11: lines of campaigns ------------------------------------------------------------------


@rule
def lines(campaign: Record) -> int:
    """Return the number of a campaign's calls that are QUEUED or INITIATED."""
    return int(campaign.queued + campaign.dialling + campaign.under_way)


@rule
def held_lines(s: State, campaign: Record) -> int:
    """Return the number of lines kept for a campaign, in use or not (Q11)."""
    if campaign.reserved == 0 or campaign.status != RUNNING or not is_open(s, campaign):
        return 0
    return lines_held(campaign.reserved, campaign.people, campaign.settled)


@rule
def has_free_line(s: State) -> bool:
    """Return True if a line is neither in use nor needed by a queued call (Q10)."""
    return s.dialler.lines_in_use + s.dialler.queue_length < s.dialler.limit


@rule
def has_line(s: State, c: int) -> bool:
    """Return True if a line is available for a campaign's next call (Q10, Q11)."""
    dialler, campaign = s.dialler, s.campaigns[c]
    if not has_free_line(s) or lines(campaign) >= campaign.at_most:
        return False
    if lines(campaign) < held_lines(s, campaign):
        return True
    taken = dialler.lines_in_use + dialler.queue_length
    for other in s.campaigns:
        taken += max(0, held_lines(s, other) - lines(other))
    return taken < dialler.limit


@rule
def await_releases(s: State) -> None:
    """Set the timers for openings of windows and for release instants (Q2)."""
    dialler = s.dialler
    # Without room or a line there is nothing to wait for: the event that makes it wakes the
    # dialler.
    has_place = dialler.queue_length < dialler.capacity
    if dialler.counts_lines and not has_free_line(s):
        has_place = False
    for c in range(len(s.campaigns)):
        campaign = s.campaigns[c]
        campaign.releases_at = NO_TIMER
        # Q11: held lines become free when the window closes
        if has_place and held_lines(s, campaign) > 0:
            campaign.releases_at = campaign.shuts
            look_at(s, campaign.shuts)
        if has_place and campaign.status == RUNNING and campaign.waiting > 0:
            if dialler.release_interval > 0:
                starts, ends = windows(s, campaign)
                at = next_open_on_grid(
                    starts, ends, dialler.now, campaign.first_due, dialler.release_interval
                )
            else:
                at = first_open(s, campaign, dialler.now)
            if at > dialler.now:  # open already: the call waits for a line
                campaign.releases_at = at
                look_at(s, at)


# -- Q5, Q6: leaving the queue ---------------------------------------------------------------------


@rule
def time_out(s: State) -> bool:
    """QUEUED → CANCELLED for calls that waited too long (Q5). False: the log is full.

    No attempt is counted, so a further call follows (R1).
    """
    dialler = s.dialler
    while dialler.queue_length > 0:
        call = s.queue[dialler.queue_first]
        if call.queued_at + dialler.queue_timeout > dialler.now:
            break
        if not has_room(s, ROWS_OF_A_CALL):
            return False
        person = call.person
        take_first_in_queue(s)
        write(s, person, TIMED_OUT)
        call_again(s, person, LOST_IN_QUEUE)
        dialler.woken = 1
    return True


@rule
def take_first_in_queue(s: State) -> None:
    """Remove the first call of the queue."""
    dialler = s.dialler
    person = s.queue[dialler.queue_first].person
    s.campaigns[int(s.people[person].campaign)].queued -= 1
    dialler.queue_first += 1
    if dialler.queue_first == len(s.queue):
        dialler.queue_first = 0
    dialler.queue_length -= 1


@rule
def close_windows(s: State) -> None:
    """Return queued calls to SCHEDULED; lines being set up are not affected (Q6)."""
    for c in range(len(s.campaigns)):
        campaign = s.campaigns[c]
        if campaign.closes_at == s.dialler.now:
            campaign.closes_at = NO_TIMER
            leave_queue(s, c, WINDOW_CLOSED, True)


@rule
def leave_queue(s: State, c: int, kind: int, waits: bool) -> None:
    """Remove all queued calls of a campaign; if `waits`, they return to SCHEDULED."""
    dialler = s.dialler
    campaign = s.campaigns[c]
    if campaign.queued == 0:
        return
    kept, size = 0, len(s.queue)
    for index in range(dialler.queue_length):
        call = s.queue[(dialler.queue_first + index) % size]
        if int(s.people[call.person].campaign) == c:
            write(s, call.person, kind)
            if waits:
                wait(s, call.person, call.due)
        else:
            moved = s.queue[(dialler.queue_first + kept) % size]
            moved.person, moved.due, moved.queued_at = call.person, call.due, call.queued_at
            kept += 1
    dialler.queue_length = kept
    campaign.queued = 0
    dialler.woken = 1


# -- T3: windows -----------------------------------------------------------------------------------


@rule
def windows(s: State, campaign: Record):  # type: ignore[no-untyped-def]
    """Return the starts and ends of a campaign's open ranges."""
    first, end = campaign.first_window, campaign.first_window + campaign.windows
    return s.window_starts[first:end], s.window_ends[first:end]


@rule
def is_open(s: State, campaign: Record) -> bool:
    """Return True if a window is open now; sets `opened` and `shuts` to this open span."""
    now = s.dialler.now
    if campaign.opened <= now < campaign.shuts:
        return True
    starts, ends = windows(s, campaign)
    position = week_position(now)
    index = range_at(starts, ends, position)
    if index < 0:
        return False
    campaign.opened = now + starts[index] - position
    campaign.shuts = now + ends[index] - position
    return True


@rule
def first_open(s: State, campaign: Record, instant: int) -> int:
    """Return the first open instant of a campaign's windows from `instant` on (T3)."""
    starts, ends = windows(s, campaign)
    return next_open(starts, ends, instant)
