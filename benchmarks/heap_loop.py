"""The bare loop that the compiled engine is measured against: heapq, a queue, and no log.

This is the quickest program that one would write in Python for one campaign. It knows slots,
windows, retries and attempts, and it counts. What comes of its calls is drawn beforehand, into
lists, so that drawing and looping can be measured apart: the default behaviour doesn't ask for the
hour, and its people do the same whenever they are called. Run it to see that it makes the calls
that the engine makes:

    python benchmarks/heap_loop.py --people 20000
"""

from __future__ import annotations

import argparse
from collections import deque
from heapq import heappop, heappush

from naive import Tally, tally_of
from workload import MANY_SLOTS, workload

from dialsim.engine import run_world
from dialsim.engine.rules import Windows
from dialsim.engine.world import World
from dialsim.interface import CallStatus
from dialsim.scenario.scenario import Scenario


class HeapLoop:
    """A scenario of one campaign, as a heap of instants."""

    def __init__(self, scenario: Scenario) -> None:
        self.world = World(scenario)
        (organization,) = self.world.organizations
        (self.campaign,) = organization.campaigns
        assert self.campaign.schedule is not None
        self.request = self.campaign.schedule
        self.slots = organization.settings.max_concurrent_calls
        self.windows = Windows.of(self.request.time_windows)
        self.people = self.campaign.people.count
        self.spans: list[list[int]] = []
        """How long the line of each attempt, from 0, of each person is in use, in ms."""
        self.reached_on = [self.request.max_attempts] * self.people
        """The attempt, from 0, that each person answers."""

    def draw(self) -> None:
        """Draw what comes of every call that will be made, and of no other."""
        behaviour = self.campaign.agent.behaviour
        dial = self.world.reactions(self.campaign, behaviour, self.request).dial
        for attempt in range(self.request.max_attempts):
            spans = [0] * self.people
            for person in range(self.people):
                if self.reached_on[person] > attempt:
                    outcome, setup, ring, talk = dial(person, attempt + 1, 0, 0.0)
                    spans[person] = setup + ring + talk
                    if outcome is CallStatus.COMPLETED:
                        self.reached_on[person] = attempt
            self.spans.append(spans)

    def run(self) -> Tally:
        """Call everybody."""
        spans, reached_on, free = self.spans, self.reached_on, self.slots
        most, interval = self.request.max_attempts, self.request.retry_interval
        attempts = bytearray(self.people)  # so far
        waiting = deque(range(self.people))
        heap: list[tuple[int, int]] = []  # (end, person) of a call, or (due, ~person) of a retry
        now = self.windows.next_open(self.request.start_date_time)
        closes = self.windows.next_close(now)
        calls = reached = 0
        while True:
            if waiting and free:
                if now >= closes:
                    opens = self.windows.next_open(now)
                    if not heap or heap[0][0] >= opens:
                        now, closes = opens, self.windows.next_close(opens)
                while free and waiting and now < closes:
                    person = waiting.popleft()
                    free -= 1
                    calls += 1
                    heappush(heap, (now + spans[attempts[person]][person], person))
            if not heap:
                return Tally(calls, reached, now)
            now, person = heappop(heap)
            if person < 0:
                waiting.append(~person)
                continue
            free += 1
            attempt = attempts[person]
            attempts[person] = attempt + 1
            if reached_on[person] == attempt:
                reached += 1
            elif attempt + 1 < most:
                heappush(heap, (now + interval, ~person))


def main() -> int:
    """Print the figures of the loop and of the engine; 1 if they don't make the same calls."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=20_000, help="default: 20000")
    scenario = workload(parser.parse_args().people, MANY_SLOTS)
    loop = HeapLoop(scenario)
    loop.draw()
    tallies = {"loop": loop.run(), "engine": tally_of(run_world(World(scenario), "compiled"))}
    for name, tally in tallies.items():
        print(f"{name:8}{tally.calls:>12,} calls {tally.reached:>10,} reached")
    found = {(tally.calls, tally.reached) for tally in tallies.values()}
    return 0 if len(found) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
