"""A log is read at once or as it grows: the calls are the same, in the same columns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dialsim.engine.log_reader import CallEntry, Calls, GrowingCalls
from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import DIALLED, CallLog, Trace, call_keys
from engine.breadth import broad_scenario
from engine.readings import loaded

COLUMNS = (*CallEntry._fields, "attempts_before", "status", "counted", "talk_ms")


@cache
def simulated(seed: int) -> Trace:
    """The trace of a broad scenario."""
    return Simulation(loaded(broad_scenario(seed))).run()


def growing(trace: Trace, place: tuple[int, int], chance: random.Random) -> Iterator[Calls]:
    """The calls of a campaign after each of some steps in which its log is written once more."""
    whole, log = trace.campaign(*place).log, CallLog()
    log.scripted = whole.scripted
    logs = [[*organization] for organization in trace.calls]
    logs[place[0]][place[1]] = log
    calls = GrowingCalls(replace(trace, calls=logs).campaign(*place))
    rows, dials = whole.rows(), 0
    keys = call_keys(rows.recipient, rows.call) | rows.kind
    upto = 0
    while upto < len(rows):
        first, upto = upto, min(upto + chance.choice((1, 1, 2, 5, 40, 1_000)), len(rows))
        for row in range(first, upto):
            log.append(int(rows.at[row]), int(keys[row]))
            if rows.kind[row] == DIALLED:
                log.dial_numbers.append(int(whole.dial_numbers[dials]))
                log.dial_voices.append(int(whole.dial_voices[dials]))
                log.dial_behaviours.append(int(whole.dial_behaviours[dials]))
                dials += 1
        calls.update()
        yield calls


def places(trace: Trace) -> list[tuple[int, int]]:
    return [
        (block.position, campaign.position)
        for block in trace.world.organizations
        for campaign in block.campaigns
    ]


@pytest.mark.parametrize("seed", range(25))
def test_calls_caught_up_with_in_random_steps_are_those_read_at_once(seed: int) -> None:
    trace, chance = simulated(seed), random.Random(seed)
    for place in places(trace):
        once = Calls(trace.campaign(*place))
        *_, often = GrowingCalls(trace.campaign(*place)), *growing(trace, place, chance)
        order = np.lexsort((often.call, often.recipient))
        assert order.tolist() == often.find(once.recipient, once.call).tolist()
        for name in COLUMNS:
            assert np.array_equal(getattr(often, name)[order], getattr(once, name)), name
            assert getattr(often, name).dtype == getattr(once, name).dtype, name
        for found, expected in (
            (often.previous[order], once.previous),
            (often.newest, once.newest),
        ):
            assert found.tolist() == [order[call] if call >= 0 else -1 for call in expected]
        assert np.array_equal(often.attempts, once.attempts)
        assert often.ended(0).tolist() == order[once.ended(0)].tolist()


@pytest.mark.parametrize("seed", range(6))
def test_a_call_keeps_its_position_and_a_step_reads_what_the_log_says_by_then(seed: int) -> None:
    trace, chance = simulated(seed), random.Random(seed)
    for place in places(trace):
        known: list[tuple[int, int]] = []
        for calls in growing(trace, place, chance):
            ids = [*zip(calls.recipient.tolist(), calls.call.tolist(), strict=True)]
            assert ids[: len(known)] == known
            known = ids
            assert not calls.has_ends_ahead()
            for call in chance.sample(range(len(calls)), min(len(calls), 5)):
                recipient, number = ids[call]
                assert calls.of(recipient)[number - 1] == call
                assert calls[call].last_kind == calls.last_kind[call]


def test_what_ended_is_told_in_the_order_of_the_ends_and_before_it_is_taken_in() -> None:
    trace = simulated(1)
    place = max(places(trace), key=lambda place: len(trace.campaign(*place).log))
    rows = trace.campaign(*place).log.rows()
    ends = 0
    for calls in growing(trace, place, random.Random(1)):
        new = calls.ended(ends)
        assert (np.diff(calls.ended_at[new]) >= 0).all()
        ends = calls.ends
    calls = GrowingCalls(trace.campaign(*place))
    assert calls.has_ends_ahead() == (ends > 0)
    calls.update()
    assert (calls.ends, calls.has_ends_ahead()) == (ends, False)
    assert len(rows) == len(calls.rows)
