"""Engines that break one rule each: what the tests must not let pass.

As a pytest plugin (`-p testing.mutants`) it breaks the rule that DIALSIM_MUTANT names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

import numpy as np

from dialsim.engine import clock, dialler
from dialsim.engine.call import NONE, CallerIds, NumberUse
from dialsim.engine.campaign import SimulatedCampaign
from dialsim.engine.chance import Draws, Purpose
from dialsim.engine.clock import Step
from dialsim.engine.dialler import Dialler
from dialsim.engine.own_chance import FailedAttempts
from dialsim.engine.rules import NO_ANSWER, REACHED, Windows
from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.interface import CallStatus
from dialsim.results.time_use import Occupancy

RULE_TESTS = "engine/test_rules_*.py"
SHARING_TESTS = "engine/test_rules_sharing.py"


class Mutant(NamedTuple):
    """A patch that breaks a rule, and the tests that notice (a pattern of files)."""

    mutate: Callable[[], None]
    tests: str


MUTANTS: dict[str, Mutant] = {}


def breaks(
    rule: str, tests: str = RULE_TESTS
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter a function under the rule that is broken from its call on.

    What has no rule has a word instead. The tests that notice have the one or the other in their
    names.
    """

    def enter(mutate: Callable[[], None]) -> Callable[[], None]:
        assert rule not in MUTANTS
        MUTANTS[rule] = Mutant(mutate, tests)
        return mutate

    return enter


def wrap(owner: type, name: str, around: Callable[..., Any]) -> None:
    """Replace a method by `around(original, self, …)`."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *given, **named: around(original, *given, **named))


@breaks("T3")
def _a_window_includes_its_end() -> None:
    def widened(original: Any, self: Any, ranges: Any) -> None:
        original(self, [(start, end + 1) for start, end in ranges])

    wrap(Windows, "__init__", widened)


@breaks("T4")
def _calls_make_progress_before_actions() -> None:
    order = list(clock._PRIORITY)
    # The priority of step 4 would not do: SimPy orders equal ones by the time of scheduling, and
    # the actions of a file are scheduled before any call.
    order[Step.ACTIONS] = order[Step.QUEUE_TIMEOUT]
    clock._PRIORITY = tuple(order)


@breaks("T5")
def _nothing_is_ever_stalled() -> None:
    original = Simulation.trace

    def forgetful(self: Simulation) -> Trace:
        trace = original.__get__(self)
        trace.stalled = frozenset()
        return trace

    setattr(Simulation, "trace", property(forgetful))  # noqa: B010


@breaks("C2")
def _a_campaign_starts_outside_its_windows() -> None:
    def at_once(original: Any, self: Any, now: int) -> int:
        return max(now, self._start_at)

    wrap(SimulatedCampaign, "_start_instant", at_once)


@breaks("C3")
def _a_campaign_completes_without_its_retries() -> None:
    def impatient(original: Any, self: Any) -> bool:
        kept, self._retries = self._retries, []
        final = original(self)
        self._retries = kept
        return final

    wrap(SimulatedCampaign, "_is_final", impatient)
    wrap(SimulatedCampaign, "call_ended", _checking)


def _checking(original: Any, self: Any, call: Any, ending: int) -> None:
    original(self, call, ending)
    self._check_final()


@breaks("C4")
def _a_pause_leaves_the_queue_alone() -> None:
    def gentle(original: Any, self: Any) -> None:
        queued = {r: c for r, c in self._open.items() if c.status is CallStatus.QUEUED}
        for recipient in queued:
            del self._open[recipient]
        original(self)
        self._open.update(queued)

    wrap(SimulatedCampaign, "pause", gentle)


@breaks("C5")
def _waiting_calls_lose_their_due_instants() -> None:
    def forgetful(original: Any, self: Any, due: int, recipient: int, number: int) -> None:
        original(self, self.clock.now, recipient, number)

    wrap(SimulatedCampaign, "_wait", forgetful)


@breaks("C7")
def _the_end_date_keeps_retries_not_yet_due() -> None:
    def generous(original: Any, self: Any, event: Any) -> None:
        kept, self._retries = self._retries, []
        original(self, event)
        self._retries, self._closed = kept, False
        self._await_retry()

    wrap(SimulatedCampaign, "_end_date_time", generous)


@breaks("Q1")
def _one_call_more_than_the_limit() -> None:
    def exceeded(original: Any, self: Any, limit: int) -> None:
        original(self, limit)
        self.limit = limit + 1

    wrap(Dialler, "set_limit", exceeded)


@breaks("Q2")
def _calls_are_released_while_the_limit_is_0() -> None:
    def careless(original: Any, self: Any) -> float:
        given = self.limit if self._queue_limit is None else self._queue_limit
        return inf if given == "unlimited" else given

    wrap(Dialler, "_queue_capacity", careless)


@breaks("Q3")
def _round_robin_begins_again_each_time() -> None:
    def unfair(original: Any, self: Any, ready: Any) -> Any:
        self._released_last.clear()
        return original(self, ready)

    wrap(Dialler, "_next", unfair)


@breaks("Q7", SHARING_TESTS)
def _campaigns_of_any_priority_take_turns() -> None:
    wrap(Dialler, "_rank", lambda _original, _self, _campaign: 0)


@breaks("Q8", SHARING_TESTS)
def _the_weights_are_those_of_calls_not_yet_dialled() -> None:
    def queued_only(campaign: Any) -> Fraction:
        return Fraction(len(campaign._open) + 1, campaign.block.share.weight)

    def first(one: Any, later: Any) -> Any:
        return later if queued_only(later) < queued_only(one) else one

    dialler._first_by_weight = first


@breaks("Q9", SHARING_TESTS)
def _the_latest_end_date_goes_first() -> None:
    original = dialler._deadline_key
    dialler._deadline_key = lambda campaign: (-original(campaign)[0], campaign.block.position)


@breaks("Q10", SHARING_TESTS)
def _one_line_more_than_at_most() -> None:
    def greedy(original: Any, self: Any, ready: Any) -> Any:
        for campaign in self.campaigns:
            share = campaign.block.share
            campaign.block.share = replace(share, at_most=share.at_most + 1)
        able = original(self, ready)
        for campaign in self.campaigns:
            share = campaign.block.share
            campaign.block.share = replace(share, at_most=share.at_most - 1)
        return able

    wrap(Dialler, "_with_a_line", greedy)


@breaks("Q11", SHARING_TESTS)
def _lines_are_held_only_while_somebody_is_due() -> None:
    def lent(original: Any, self: Any, now: int) -> int:
        return original(self, now) if len(self.waiting) else 0

    wrap(SimulatedCampaign, "held_lines", lent)


@breaks("Q4")
def _the_pace_is_ignored() -> None:
    dialler.dial_gap = lambda _rate: 0


@breaks("Q5")
def _queue_timeouts_come_a_millisecond_late() -> None:
    def patient(original: Any, self: Any, *given: Any) -> None:
        original(self, *given)
        self._queue_timeout += 1

    wrap(Dialler, "__init__", patient)


@breaks("P5")
def _queue_timeouts_count_as_attempts() -> None:
    def counted(original: Any, self: Any, call: Any) -> None:
        self._attempts[call.recipient] += 1
        original(self, call)

    wrap(SimulatedCampaign, "queue_timeout", counted)


@breaks("Q6")
def _a_closing_window_leaves_the_queue_alone() -> None:
    wrap(SimulatedCampaign, "_window_closed", lambda _original, _self, _event: None)


@breaks("P3")
def _a_retry_may_show_the_same_number() -> None:
    def forgetful(
        original: Any, self: Any, draws: Any, recipient: int, attempt: int, _: int
    ) -> int:
        return original(self, draws, recipient, attempt, NONE)

    wrap(CallerIds, "choose", forgetful)


@breaks("R1")
def _one_attempt_more_than_allowed() -> None:
    def insistent(original: Any, self: Any, request: Any) -> None:
        original(self, request)
        more = request.max_attempts + 1
        self._request = request.model_copy(update={"max_attempts": more})

    wrap(SimulatedCampaign, "schedule", insistent)


@breaks("R2")
def _a_retry_comes_a_millisecond_late() -> None:
    def late(original: Any, self: Any, request: Any) -> None:
        original(self, request)
        self._request = request.model_copy(update={"retry_interval": request.retry_interval + 1})

    wrap(SimulatedCampaign, "schedule", late)


@breaks("R3")
def _whoever_was_reached_is_called_again() -> None:
    def deaf(original: Any, self: Any, call: Any, ending: int) -> None:
        original(self, call, NO_ANSWER if ending == REACHED else ending)

    wrap(SimulatedCampaign, "call_ended", deaf)


def confuse(purpose: Purpose, taken: Purpose) -> None:
    """Make draws for one purpose of the uniforms of another."""

    def confused(original: Any, self: Any, asked: Purpose, *given: Any, **named: Any) -> Any:
        return original(self, taken if asked is purpose else asked, *given, **named)

    wrap(Draws, "uniforms", confused)


@breaks("P1", "engine/test_behaviour.py")
def _ring_and_talk_times_come_from_one_uniform() -> None:
    confuse(Purpose.TALK_TIME, Purpose.RING_TIME)


@breaks("P7", "engine/test_people.py")
def _a_persons_own_chance_is_alike_in_all_replications() -> None:
    def alike(original: Any, self: Any, purpose: Purpose, *given: Any, **named: Any) -> Any:
        replication = self._replication
        if purpose is Purpose.OWN_CHANCE:
            self._replication = 0
        try:
            return original(self, purpose, *given, **named)
        finally:
            self._replication = replication

    wrap(Draws, "uniforms", alike)


@breaks("P8", "engine/test_forecast.py")
def _who_failed_to_answer_is_as_good_as_new() -> None:
    wrap(FailedAttempts, "of", lambda original, _history, most: original({}, most))


@breaks("apart_from_the_outcome", "engine/test_people.py")
def _the_caller_id_is_chosen_by_the_outcomes_uniform() -> None:
    confuse(Purpose.CALLER_ID, Purpose.OUTCOME)


@breaks("not_the_dial_itself", "engine/test_people.py")
def _fatigue_counts_the_dial_itself() -> None:
    wrap(NumberUse, "count", lambda original, *given: original(*given) + 1.0)


@breaks("open_time_only", "results/test_summary.py")
def _slots_in_use_are_averaged_over_closed_hours_too() -> None:
    def stretched(original: Any, busy: Any, allowed: Any, spans: Any) -> Occupancy:
        whole = np.array([[spans[0, 0], spans[-1, 1]]]) if len(spans) else spans
        return original(busy, allowed, whole)

    wrap(Occupancy, "of", stretched)


if "DIALSIM_MUTANT" in os.environ:
    MUTANTS[os.environ["DIALSIM_MUTANT"]].mutate()
