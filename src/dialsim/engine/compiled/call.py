"""Calls from the dial to the end (rules Q1, Q4, P): lines, phases and random draws."""

from __future__ import annotations

from dialsim.engine import rules as _rules
from dialsim.engine import trace as _trace
from dialsim.engine.behaviour import ColumnKind
from dialsim.engine.chance import BLOCK, BLOCK_BITS
from dialsim.engine.compiled.jit import rule, shared
from dialsim.engine.compiled.queue import (
    call_again,
    calls_again,
    push,
    remove_first,
    replace_first,
    restore,
    take_first_in_queue,
    wait,
    week_position,
)
from dialsim.engine.compiled.state import (
    DONE,
    DRAWS_ARE_WANTED,
    LOG_IS_FULL,
    ROWS_OF_A_CALL,
    Record,
    State,
    has_room,
    look_at,
    write,
)
from dialsim.interface.instants import HOUR

DIALLED = _trace.DIALLED
RINGS = _trace.RINGING
ANSWERED = _trace.ANSWERED
ENDED = tuple(_trace.ENDED[status] for status in _rules.ENDINGS)
REACHED = _rules.REACHED

DIALLING, RINGING, TALKING = range(3)

OUTCOME, OWN, SEGMENT, SETUP = (
    ColumnKind.OUTCOME.value,
    ColumnKind.OWN.value,
    ColumnKind.SEGMENT.value,
    ColumnKind.SETUP.value,
)
RING, TALK, NUMBER, VOICE = (
    ColumnKind.RING.value,
    ColumnKind.TALK.value,
    ColumnKind.NUMBER.value,
    ColumnKind.VOICE.value,
)

# The rules that both engines share.
with_odds = shared(_rules.with_odds)
fatigue = shared(_rules.fatigue)
ending = shared(_rules.ending, with_odds=with_odds)
chosen = shared(_rules.chosen)
decayed = shared(_rules.decayed)
on_holiday = shared(_rules.on_holiday)
dials = shared(_rules.dials)
ONE_DIAL = _rules.DIAL


# -- Q4: dialling ----------------------------------------------------------------------------------


@rule
def dial(s: State) -> tuple[bool, int]:
    """QUEUED → INITIATED while lines and pace allow (Q4); returns (any dialled, reason to stop)."""
    dialler = s.dialler
    dialled = False
    while dialler.queue_length > 0 and dialler.lines_in_use < dialler.limit:
        if dialler.gap > 0 and dialler.dialled_last >= 0:
            free_at = dialler.dialled_last + dialler.gap
            if dialler.now < free_at:
                dialler.pace = free_at
                look_at(s, free_at)
                break
        if not has_room(s, ROWS_OF_A_CALL):
            return dialled, LOG_IS_FULL
        person = s.queue[dialler.queue_first].person
        drawn = draws_of(s, person)
        if drawn < 0:
            return dialled, DRAWS_ARE_WANTED
        initiate(s, person, drawn)
        dialled = True
    return dialled, DONE


@rule
def draws_of(s: State, person: int) -> int:
    """Return the entry with the draws of a person's next attempt; -1 if Python must make them
    first.
    """
    dialler = s.dialler
    c, attempt = int(s.people[person].campaign), int(s.people[person].attempts) + 1
    campaign = s.campaigns[c]
    block = (person - campaign.first_person) >> BLOCK_BITS
    drawn = -1
    if attempt < len(s.slots) and s.slots[attempt] >= 0:
        drawn = s.entry_of[campaign.reaction, s.slots[attempt], block]
    if (
        drawn < 0
        or (campaign.numbers > 1 and s.entries[drawn, NUMBER] < 0)
        or (campaign.voices > 1 and s.entries[drawn, VOICE] < 0)
    ):
        dialler.wanted_reaction = campaign.reaction
        dialler.wanted_attempt = attempt
        dialler.wanted_block = block
        return -1
    return drawn


@rule
def initiate(s: State, person: int, drawn: int) -> None:
    """Start setting up the line of the first call in the queue (P1)."""
    dialler = s.dialler
    c = int(s.people[person].campaign)
    campaign = s.campaigns[c]
    index = (person - campaign.first_person) & (BLOCK - 1)
    due = s.queue[dialler.queue_first].due
    take_first_in_queue(s)
    line = s.free_lines[dialler.lines_in_use]
    call = s.lines[line]
    call.campaign = c
    call.person = person
    call.due = due
    call.dialled_at = dialler.now
    call.phase = DIALLING
    call.number = caller_id(s, person, drawn, index)
    write(s, person, DIALLED)
    noted = s.dials[dialler.dials]
    dialler.dials += 1
    noted.number = call.number
    noted.voice = voice(s, campaign, drawn, index)
    noted.behaviour = s.reactions[campaign.reaction].behaviour
    setup = decide(s, call, drawn, index)
    for r in range(len(s.recoveries)):
        s.uses[r, call.number] = uses_of(s, r, call.number) + ONE_DIAL
        s.used_at[r, call.number] = dialler.now
    push(s.line_at, s.line_numbers, 0, dialler.lines_in_use, dialler.now + setup, line)
    dialler.lines_in_use += 1
    dialler.dialled_last = dialler.now
    campaign.dialling += 1


# -- P3, P4: what a dial shows and says ------------------------------------------------------------


@rule
def caller_id(s: State, person: int, drawn: int, index: int) -> int:
    """Return the caller ID of a dial (P3)."""
    campaign = s.campaigns[int(s.people[person].campaign)]
    first, count = campaign.first_number, campaign.numbers
    if count == 1:
        return s.numbers[first]
    avoided, last = -1, int(s.people[person].shown_last)
    for k in range(count):
        if s.numbers[first + k] == last:
            avoided = k
    draw = s.values[s.entries[drawn, NUMBER], index]
    return s.numbers[first + chosen(count, avoided, draw)]


@rule
def uses_of(s: State, r: int, number: int) -> int:
    """Return the decayed count of dials of a caller ID; `r` is an index of `recoveries`."""
    return decayed(s.uses[r, number], s.dialler.now - s.used_at[r, number], s.recoveries[r])


@rule
def voice(s: State, campaign: Record, drawn: int, index: int) -> int:
    """Return the voice of a dial (P4)."""
    if campaign.voices == 1:
        return s.voices[campaign.first_voice]
    draw = s.values[s.entries[drawn, VOICE], index]
    return s.voices[campaign.first_voice + int(draw * campaign.voices)]


# -- P1, P2: phases and ends -----------------------------------------------------------------------


@rule
def decide(s: State, call: Record, drawn: int, index: int) -> int:
    """Set a call's end and the duration of its phases, by script or by chance (P1, P2).

    Returns the time of setting up its line.
    """
    setup = max(1, int(s.values[s.entries[drawn, SETUP], index]))  # P1: at least 1 ms
    person = s.people[call.person]
    attempt = int(person.attempts) + 1
    if person.script >= 0:
        script = s.scripts[int(person.script)]
        step = s.steps[script.first_step + min(attempt, script.steps) - 1]
        call.ending = step.ending
        if step.setup >= 0:
            setup = step.setup
        call.ring = step.ring
        if step.until >= 0:
            call.ring = max(0, step.until - s.dialler.now - setup)
        call.talk = step.talk
        return setup
    reaction = s.campaigns[call.campaign].reaction
    reacts = s.reactions[reaction]
    hour = week_position(s.dialler.now) // HOUR
    odds = s.week_odds[reaction, hour] * on_holiday(s.holidays, reacts.on_holiday, s.dialler.now)
    odds *= s.attempt_odds[reaction, s.slots[attempt]]
    odds *= s.values[s.entries[drawn, SEGMENT], index]
    if reacts.recovery >= 0:
        odds *= fatigue(reacts.per1000, dials(uses_of(s, reacts.recovery, call.number)))
    own, draw = s.values[s.entries[drawn, OWN], index], s.values[s.entries[drawn, OUTCOME], index]
    call.ending = ending(own, odds, draw, reacts.no_answer, reacts.busy)
    call.ring = int(s.values[s.entries[drawn, RING + call.ending], index])
    call.talk = int(s.values[s.entries[drawn, TALK], index])
    return setup


@rule
def make_progress(s: State) -> bool:
    """Progress calls of this instant: line set up, answer, end (P1, P2). False: the log is full."""
    dialler = s.dialler
    while dialler.lines_in_use > 0 and s.line_at[0] == dialler.now:
        if not has_room(s, ROWS_OF_A_CALL):
            return False
        line = s.line_numbers[0]
        phase = s.lines[line].phase
        if phase == DIALLING:
            line_stands(s, line)
        elif phase == RINGING:
            rung(s, line)
        else:
            end(s, line)
    return True


@rule
def line_stands(s: State, line: int) -> None:
    """Register that a line is set up: the call can no longer be withdrawn (C4), and its caller ID
    counts (P3).
    """
    call = s.lines[line]
    campaign = s.campaigns[call.campaign]
    campaign.dialling -= 1
    campaign.under_way += 1
    s.people[call.person].shown_last = call.number
    if call.ring > 0:  # P1: a phase of 0 ms gets no row
        write(s, call.person, RINGS)
        lasts(s, line, RINGING, call.ring)
    else:
        rung(s, line)


@rule
def rung(s: State, line: int) -> None:
    """End ringing, with an answer or without."""
    call = s.lines[line]
    if call.ending != REACHED:
        end(s, line)
        return
    write(s, call.person, ANSWERED)
    if call.talk > 0:
        lasts(s, line, TALKING, call.talk)
    else:
        end(s, line)


@rule
def lasts(s: State, line: int, phase: int, span: int) -> None:
    """Begin the next phase of the call at the top of the heap, for `span` ms."""
    s.lines[line].phase = phase
    replace_first(s.line_at, s.line_numbers, 0, s.dialler.lines_in_use, s.dialler.now + span, line)


@rule
def end(s: State, line: int) -> None:
    """End a dialled call (P2): count the attempt (P5), and plan a retry (R1, R3)."""
    dialler = s.dialler
    call = s.lines[line]
    c, person, ending_of_call = call.campaign, call.person, call.ending
    campaign = s.campaigns[c]
    write(s, person, ENDED[ending_of_call])
    remove_first(s.line_at, s.line_numbers, 0, dialler.lines_in_use)
    free_line(s, line)
    campaign.under_way -= 1
    s.people[person].attempts += 1
    if ending_of_call == REACHED and dialler.notes_reached:
        s.reached_at[person] = dialler.now  # D3
    attempts = int(s.people[person].attempts)
    if calls_again(ending_of_call, attempts, campaign.max_attempts) and not campaign.closed:
        call_again(s, person, ending_of_call)
    else:
        campaign.settled += 1
        dialler.completing = 1  # C3: the campaign may be complete


# -- Q1: slots -------------------------------------------------------------------------------------


@rule
def free_line(s: State, line: int) -> None:
    """Free a line (Q1)."""
    dialler = s.dialler
    dialler.lines_in_use -= 1
    # `free_lines` is a stack: its first `lines_in_use` entries are stale, the free lines follow.
    s.free_lines[dialler.lines_in_use] = line
    dialler.woken = 1


@rule
def withdraw_dials(s: State, c: int, kind: int, waits: bool) -> None:
    """Drop the lines that a campaign is setting up (C4, P5); if `waits`, the calls return to
    SCHEDULED.
    """
    dialler = s.dialler
    if s.campaigns[c].dialling == 0:
        return
    kept, lines = 0, dialler.lines_in_use
    for index in range(lines):
        line = s.line_numbers[index]
        call = s.lines[line]
        if call.campaign == c and call.phase == DIALLING:
            write(s, call.person, kind)
            for r in range(len(s.recoveries)):
                uses = uses_of(s, r, call.number)
                left = decayed(ONE_DIAL, dialler.now - call.dialled_at, s.recoveries[r])
                s.uses[r, call.number] = uses - left
                s.used_at[r, call.number] = dialler.now
            if waits:
                wait(s, call.person, call.due)
            free_line(s, line)
        else:
            s.line_at[kept] = s.line_at[index]
            s.line_numbers[kept] = line
            kept += 1
    restore(s.line_at, s.line_numbers, 0, kept)
    s.campaigns[c].dialling = 0
