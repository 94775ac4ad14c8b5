"""Engines that break one rule each, for the other engine to notice.

A mutant is a line of an engine's source that is changed. The engine is then made anew from its
source, uncompiled: rules are the same functions, compiled or not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from dialsim.engine import trace as trace_module
from dialsim.engine.compiled import jit
from dialsim.engine.trace import Trace
from dialsim.engine.world import World

ENGINE = Path(trace_module.__file__).parent
SIMPY = (
    "clock",
    "call",
    "campaign",
    "dialler",
    "timeline",
    "simulation",
)
COMPILED = (
    "compiled.state",
    "compiled.queue",
    "compiled.call",
    "compiled.instants",
    "compiled.organization",
    "compiled.running",
)

_MOST_LOOKS = 100  # scenarios of the tests take a few


class Mutant(NamedTuple):
    """In a module a piece of source becomes another, and a rule is broken."""

    rule: str
    module: str
    source: str
    broken: str


def simpy_engine(mutant: Mutant | None) -> Callable[[World], Trace]:
    """The SimPy engine, with a rule broken."""
    made = _made_anew(SIMPY, mutant)
    return lambda world: made["simulation"].Simulation.of_world(world).run()


def compiled_engine(mutant: Mutant | None) -> Callable[[World], Trace]:
    """The compiled engine, uncompiled, with a rule broken.

    It raises AssertionError where it goes on and on, as some do without one of their rules.
    """
    made = _made_anew(COMPILED, mutant)
    made["compiled.instants"]._A_WHILE = 1_000  # instants between two polls
    run: Callable[[World, Callable[[int, int], object]], Trace] = made["compiled.running"].run

    def run_to_an_end(world: World) -> Trace:
        looks = count(1)

        def look(done: int, people: int) -> None:
            assert next(looks) < _MOST_LOOKS, f"{done} of {people} people are done, and no more"

        return run(world, look)

    return run_to_an_end


def _made_anew(names: tuple[str, ...], mutant: Mutant | None) -> dict[str, ModuleType]:
    made = {}
    with _own_modules(names), _uncompiled():
        for name in names:
            source = (ENGINE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
            if mutant is not None and mutant.module == name:
                assert source.count(mutant.source) == 1, mutant
                source = source.replace(mutant.source, mutant.broken)
            module = ModuleType(f"dialsim.engine.{name}")
            module.__file__ = f"<{name}, with {mutant.rule if mutant else 'no rule'} broken>"
            sys.modules[module.__name__] = made[name] = module
            exec(compile(source, module.__file__, "exec"), module.__dict__)
    return made


@contextmanager
def _own_modules(names: tuple[str, ...]) -> Iterator[None]:
    """Put modules aside while others of the same names are made."""
    own = {full: import_module(full) for full in (f"dialsim.engine.{name}" for name in names)}
    try:
        yield
    finally:
        sys.modules.update(own)


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Keep the rules as plain Python functions."""
    real = jit.rule, jit.shared, jit.entry
    jit.rule = lambda function: function
    jit.shared = lambda function, **_uses: function
    jit.entry = lambda *_arguments: lambda function: function
    try:
        yield
    finally:
        jit.rule, jit.shared, jit.entry = real


OF_COMPILED = (
    Mutant("T4", "compiled.instants", "end_date_times(s)  # step 2",
           "make_progress(s); end_date_times(s)"),
    Mutant("T5", "compiled.running", "each.unfinished()", "()"),
    Mutant("C1", "compiled.organization", "max(now, request.start_date_time)",
           "request.start_date_time"),
    Mutant("C1", "compiled.organization", ", past.due)", ", past.due * 0 + self.now)"),
    Mutant("C2", "compiled.instants", "max(s.dialler.now, campaign.start_at)", "s.dialler.now"),
    Mutant("C3", "compiled.instants", " + campaign.retries == 0\n    )", " == 0\n    )"),
    Mutant("C4", "compiled.instants", "    withdraw_dials(s, c, PAUSED_DIALLING, True)\n", ""),
    Mutant("C5", "compiled.instants", "if campaign.started or start", "if start"),
    Mutant("C5", "compiled.queue", "wait(s, call.person, call.due)",
           "wait(s, call.person, s.dialler.now)"),
    Mutant("C6", "compiled.instants", "    drop_retries(s, c)\n", ""),
    Mutant("C7", "compiled.instants", "campaign.dialling + campaign.retries\n            drop",
           "campaign.dialling\n            drop"),
    Mutant("C7", "compiled.instants", "max(s.dialler.now, campaign.end_at)", "campaign.end_at"),
    Mutant("C8", "compiled.instants", "become(s, c, campaign.status, DELETE)",
           "become(s, c, CANCELLED, DELETE)"),
    Mutant("C9", "compiled.organization", "raise calling_not_allowed()", "pass"),
    Mutant("Q1", "compiled.call", "dialler.lines_in_use < dialler.limit:",
           "dialler.lines_in_use < dialler.limit + 1 <= len(s.lines):"),
    Mutant("Q2", "compiled.organization", "return limit if queue_limit is None else queue_limit",
           "return limit"),
    Mutant("Q2", "compiled.queue", "s.dialler.now, campaign.first_due, s.dialler.release_interval",
           "0, 0, s.dialler.release_interval"),
    Mutant("Q3", "compiled.organization", "dialler.fresh_rank, dialler.retry_rank =",
           "dialler.retry_rank, dialler.fresh_rank ="),
    Mutant("Q3", "compiled.queue", "s.campaigns[campaign.first_of_priority].released_last = c\n",
           "pass\n"),
    Mutant("Q3", "compiled.queue", "first_key(s, c) < first_key(s, other)",
           "first_key(s, c) <= first_key(s, other)"),
    Mutant("Q3", "compiled.queue", "key == above and person < s.run_people[last]", "False"),
    Mutant("Q3", "compiled.queue", "return bool(s.heap_keys[heap] < s.run_keys[run])",
           "return False"),
    Mutant("Q7", "compiled.queue", "return mine.priority < others.priority",
           "return mine.priority > others.priority"),
    Mutant("Q7", "compiled.organization", "priorities.index(priorities[c])", "0"),
    Mutant("Q8", "compiled.queue", "by_weight(lines(mine), mine", "by_weight(mine.queued, mine"),
    Mutant("Q9", "compiled.queue", "mine.end_at < others.end_at", "mine.end_at > others.end_at"),
    Mutant("Q10", "compiled.queue", "lines(campaign) >= campaign.at_most",
           "lines(campaign) > campaign.at_most"),
    Mutant("Q10", "compiled.queue", "s.dialler.lines_in_use + s.dialler.queue_length < s.dialler",
           "s.dialler.lines_in_use < s.dialler"),
    Mutant("Q11", "compiled.queue", "max(0, held_lines(s, other) - lines(other))", "0"),
    Mutant("Q11", "compiled.queue",
           "lines_held(campaign.reserved, campaign.people, campaign.settled)",
           "campaign.reserved"),
    Mutant("Q11", "compiled.queue", "            campaign.releases_at = campaign.shuts\n"
           "            look_at(s, campaign.shuts)\n", "            pass\n"),
    Mutant("Q11", "compiled.instants",
           "    s.dialler.woken = 1  # Q11: a paused campaign holds no lines\n", ""),
    Mutant("Q4", "compiled.call", "if dialler.now < free_at:", "if dialler.now < free_at - 1:"),
    Mutant("Q5", "compiled.organization", "dialler.queue_timeout = engine.queue_timeout",
           "dialler.queue_timeout = engine.queue_timeout + 1"),
    Mutant("Q6", "compiled.queue", "leave_queue(s, c, WINDOW_CLOSED, True)", "pass"),
    Mutant("P1", "compiled.call", "if call.ring > 0:", "if call.ring >= 0:"),
    Mutant("P1", "compiled.call", "setup = max(1, int(", "setup = max(2, int("),
    Mutant("P3", "compiled.call", "            avoided = k\n", "            pass\n"),
    Mutant("P4", "compiled.call", "int(draw * campaign.voices)", "0"),
    Mutant("P5", "compiled.call", "s.uses[r, call.number] = uses - left",
           "s.uses[r, call.number] = uses"),
    Mutant("P5", "compiled.call", "    s.people[call.person].shown_last = call.number\n", ""),
    Mutant("P7", "compiled.call", "own, draw = s.values[s.entries[drawn, OWN], index]",
           "own, draw = max(0.0, s.values[s.entries[drawn, OWN], index])"),
    Mutant("P8", "compiled.organization", "self._trace.requests[self._position(c)].request  # P8",
           "self._trace.requests[self._position(c)].request.model_copy("
           "update={'max_attempts': 1})"),
    Mutant("setBehaviour", "compiled.organization",
           "if self._position(c) in self._trace.requests:", "if False:"),
    Mutant("R1", "compiled.call", "attempts, campaign.max_attempts) and",
           "attempts, campaign.max_attempts + 1) and"),
    Mutant("R2", "compiled.queue", "retry_due(dialler.now, campaign",
           "retry_due(dialler.now + 1, campaign"),
    Mutant("R3", "compiled.call", "calls_again(ending_of_call, attempts",
           "calls_again(1, attempts"),
    Mutant("D3", "compiled.organization", "(ended >= self.now - alert.window)",
           "(ended > self.now - alert.window)"),
)  # fmt: skip

OF_SIMPY = (
    Mutant("T4", "clock",
           "ACTIONS = 1\n    END_DATE_TIME = 2\n    WINDOW_CLOSING = 3\n    PROGRESS = 4",
           "ACTIONS = 4\n    END_DATE_TIME = 2\n    WINDOW_CLOSING = 3\n    PROGRESS = 1"),
    Mutant("T5", "simulation", "if ahead is None\n", "if False\n"),
    Mutant("C1", "campaign", "max(now, request.start_date_time)", "request.start_date_time"),
    Mutant("C1", "campaign", "past.due.tolist()", "[self.clock.now] * len(past.due)"),
    Mutant("C2", "campaign", "self._windows.next_open(max(now, self._start_at))",
           "self._windows.next_open(now)"),
    Mutant("C3", "campaign", "len(self.waiting) or self._retries or self._under_way\n",
           "len(self.waiting) or self._under_way\n"),
    Mutant("C4", "campaign", "            self._withdraw(call)\n"
           "            self._wait(call.due, call.recipient, call.number)\n"
           "        self._open.clear()",
           "            self._withdraw(call)\n"
           "        self._open.clear()"),
    Mutant("C5", "campaign", "if self._started or begins == now:", "if begins == now:"),
    Mutant("C6", "campaign", "        self._closed = True\n", ""),
    Mutant("C7", "campaign", "len(self.waiting) or self._retries)\n", "len(self.waiting))\n"),
    Mutant("C8", "campaign", "self._become(self.status, \"delete\")",
           "self._become(CampaignStatus.CANCELLED, \"delete\")"),
    Mutant("C9", "campaign", "raise calling_not_allowed()", "pass"),
    Mutant("Q1", "dialler", "while self._queued and self.lines_in_use < self.limit:",
           "while self._queued and self.lines_in_use <= self.limit:"),
    Mutant("Q2", "dialler", "return self.limit if self._queue_limit is None else self._queue_limit",
           "return self.limit"),
    Mutant("Q3", "dialler",
           "            self._released_last[self._rank(campaign)] = campaign.block.position\n", ""),
    Mutant("Q7", "dialler", "rank = min(map(self._rank, ready))",
           "rank = max(map(self._rank, ready))"),
    Mutant("Q7", "dialler", "self._released_last.get(rank, -1)",
           "max(self._released_last.values(), default=-1)"),
    Mutant("Q8", "dialler", "lines, weight = later.lines,", "lines, weight = later.lines + 1,"),
    Mutant("Q9", "dialler", "return inf if end is None else end",
           "return 0 if end is None else end"),
    Mutant("Q10", "dialler", "if campaign.lines < campaign.block.share.at_most",
           "if campaign.lines <= campaign.block.share.at_most"),
    Mutant("Q10", "dialler", "            return []\n", "            pass\n"),
    Mutant("Q11", "dialler", "max(0, each.held_lines(now) - each.lines)", "0"),
    Mutant("Q11", "campaign",
           "lines_held(reserved, self.block.people.count, self.people_done)", "reserved"),
    Mutant("Q11", "campaign", "self._next_release.set(self._windows.next_close(now))", "pass"),
    Mutant("Q11", "campaign",
           "        self._dialler.wake()  # Q11: a paused campaign holds no lines\n", ""),
    Mutant("Q3", "campaign", "self._fresh_rank, self._retry_rank = order",
           "self._retry_rank, self._fresh_rank = order"),
    Mutant("Q4", "dialler", "if now < free_at:", "if now < free_at - 1:"),
    Mutant("Q5", "dialler", "self._queue_timeout = scenario.engine.queue_timeout",
           "self._queue_timeout = scenario.engine.queue_timeout + 1"),
    Mutant("Q6", "campaign", "if call.status is CallStatus.QUEUED]\n        for",
           "if False]\n        for"),
    Mutant("P1", "call", "if reaction.ring_ms:  # P1", "if True:  # P1"),
    Mutant("P3", "call", "if previous in numbers else -1", "if False else -1"),
    Mutant("P4", "call", "[recipient] * len(voices))]", "[recipient] * 0)]"),
    Mutant("P5", "call",
           "            use.withdrawn(call.shown_number, call.dialled_at, now)\n",
           "            pass\n"),
    Mutant("P8", "call", "self._world.reactions(self._block, name, self._request)",
           "self._world.reactions(self._block, name, self._request.model_copy("
           "update={'max_attempts': 1}))"),
    Mutant("setBehaviour", "call", "self._reaction = self._reactions[name]",
           "self._reaction = next(iter(self._reactions.values()))"),
    Mutant("R1", "campaign", "self._attempts[recipient], most)",
           "self._attempts[recipient], most + 1)"),
    Mutant("R2", "campaign", "retry_due(self.clock.now, self",
           "retry_due(self.clock.now + 1, self"),
    Mutant("R3", "campaign", "calls_again(ending, self._att", "calls_again(1, self._att"),
    Mutant("D3", "campaign", "if ended >= since)", "if ended > since)"),
)  # fmt: skip
