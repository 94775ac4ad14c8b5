"""The naive model that the engine is measured against.

This is the program one writes first: a SimPy process per person and a `simpy.Resource` for the
slots. It knows windows, retries and attempts, but no statuses, no queue timeout and no pausing, and
it keeps no log: it counts. People and their reactions are dialsim's own, so that both programs call
people who do the same. Run it to see that both tell the same story:

    python benchmarks/naive.py --people 20000
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sqrt

import simpy
from workload import workload

from dialsim.engine.behaviour import Reactions
from dialsim.engine.rules import Windows
from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import DIALLED, ENDED, Trace
from dialsim.engine.world import World
from dialsim.interface import CallStatus
from dialsim.interface.schedule import ScheduleRequest
from dialsim.scenario.scenario import Scenario


@dataclass(slots=True)
class Tally:
    """What came of a run: calls dialled, people reached, and the instant of the last end (ms)."""

    calls: int = 0
    reached: int = 0
    finish: int = 0


class NaiveModel:
    """A scenario of one campaign, as processes that queue for a resource."""

    def __init__(self, scenario: Scenario) -> None:
        world = World(scenario)
        (organization,) = world.organizations
        (campaign,) = organization.campaigns
        assert campaign.schedule is not None
        self.request: ScheduleRequest = campaign.schedule
        self.env = simpy.Environment(initial_time=self.request.start_date_time)
        self.slots = simpy.Resource(self.env, organization.settings.max_concurrent_calls)
        self.windows = Windows.of(self.request.time_windows)
        self.reactions: Reactions = world.reactions(
            campaign, campaign.agent.behaviour, self.request
        )
        self.people = campaign.people.count
        self.tally = Tally()

    def run(self) -> Tally:
        """Call everybody."""
        for recipient in range(self.people):
            self.env.process(self._person(recipient))
        self.env.run()
        return self.tally

    def _person(self, recipient: int) -> Iterator[simpy.Event]:
        for attempt in range(1, self.request.max_attempts + 1):
            if attempt > 1:
                yield self.env.timeout(self.request.retry_interval)
            with self.slots.request() as slot:
                yield slot
                opens = self.windows.next_open(self.env.now)
                if opens > self.env.now:  # a slot that falls free after hours waits for the morning
                    yield self.env.timeout(opens - self.env.now)
                reaction = self.reactions.dial(recipient, attempt, self.env.now, 0.0)
                self.tally.calls += 1
                yield self.env.timeout(reaction.setup_ms)
                yield self.env.timeout(reaction.ring_ms)
                if reaction.outcome is CallStatus.COMPLETED:
                    yield self.env.timeout(reaction.talk_ms)
                self.tally.finish = self.env.now
            if reaction.outcome is CallStatus.COMPLETED:
                self.tally.reached += 1
                return


def tally_of(trace: Trace) -> Tally:
    """The same figures of the engine's run of one campaign."""
    rows = trace.calls[0][0].rows()
    over = rows.at[(rows.kind >= min(ENDED.values())) & (rows.kind <= max(ENDED.values()))]
    return Tally(
        calls=int((rows.kind == DIALLED).sum()),
        reached=int((rows.kind == ENDED[CallStatus.COMPLETED]).sum()),
        finish=int(over.max()),
    )


def main() -> int:
    """Print both models' figures; 1 if the people reached differ by over 4 standard errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=20_000, help="default: 20000")
    people = parser.parse_args().people
    naive = NaiveModel(workload(people)).run()
    engine = tally_of(Simulation(workload(people)).run())
    for name, tally in (("naive", naive), ("engine", engine)):
        finish = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=tally.finish)
        print(
            f"{name:8}{tally.calls:>12,} calls {tally.reached:>10,} reached   until {finish:%F %T}"
        )
    share = engine.reached / people
    error = sqrt(2 * people * share * (1 - share))
    apart = abs(naive.reached - engine.reached) / error
    print(f"people reached are {apart:.2f} standard errors apart")
    return 0 if apart <= 4 else 1


if __name__ == "__main__":
    raise SystemExit(main())
