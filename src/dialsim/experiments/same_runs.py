"""Runs of variants that cannot differ, so that one of them is simulated and the others share it.

Two variants are related if they differ only in `maxAttempts` and `retryInterval` of campaigns that
are alone in their organization and have no histories. A run of one shows which settings never
decided anything in it (`Slack`). Two theorems follow, both by induction over the instants of the
run, as draws belong to people and attempts and not to the order of events.

**maxAttempts.** The rules compare it with the attempts of a person when a call ends (R1), and with
nothing else. Let K be the greatest number of attempts that a person had in the run. If K is less
than both settings, each comparison has the same result under both. So both runs are the same.

**retryInterval.** Let r be the interval of the run and r' a longer one. A retry is created at
e + r, e being the end of the call before, and waits in SCHEDULED until its release or its drop at
q. Let e + r' < q hold for all retries, with the end of the run as q of those that wait to the end.
Then both runs have the same rows, but for the instants at which retries are created and the order
of calls that are dropped at one instant:

- A retry not created in the run (e + r is after the end of the campaign or of the run) is not
  created under r' either. All others are created under both before q.
- The calls that wait under r' are at each instant a part of those that wait under r, and each call
  released under r is among them. Releases take the first call in an order (Q3): by class, due
  instant and upload. Retries are due at e + r or e + r', so among themselves they have the same
  order; first calls are due at the start, before all retries. The first of all that wait under r
  is therefore the first under r' as well.
- Nothing is released under r' where nothing is released under r: there is no room, the window is
  closed, or nothing waits, and under r' no more calls wait.
- A creation in the run at the instant of a release does not bring that release about, as q is
  later than the creation. What does bring it about is the same under both.

All figures but those of the time that people wait for a retry (`held_back`) are read from other
rows. So runs are shared only where single figures are asked for, which `held_back` is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dialsim.engine.log_reader import CALL_STATUSES, FROM_STATUS, rows_of
from dialsim.engine.trace import RETRY
from dialsim.interface.status import CallStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialsim.engine.log_reader import Calls
    from dialsim.results.result import Result
    from dialsim.scenario.scenario import Scenario

_MOST = int(np.iinfo(np.int64).max)
_LEAVES = np.isin(FROM_STATUS, [CALL_STATUSES.index(CallStatus.SCHEDULED)])


class RetrySettings(NamedTuple):
    """RetrySettings of one campaign in which related variants may differ."""

    max_attempts: int
    retry_interval: int


class Relatives:
    """The `family` of a scenario, equal for related variants, and its own `settings`."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.places = [
            (o, 0)
            for o, organization in enumerate(scenario.organizations)
            if len(organization.campaigns) == 1 and organization.campaigns[0].schedule is not None
        ]

    @property
    def settings(self) -> tuple[RetrySettings, ...]:
        """RetrySettings of the campaigns that may differ, in the order of `places`."""
        requests = [self._scenario.organizations[o].campaigns[c].schedule for o, c in self.places]
        return tuple(
            RetrySettings(r.max_attempts, r.retry_interval) for r in requests if r is not None
        )

    @cached_property
    def family(self) -> str:
        """Digest of the scenario without these settings."""
        organizations = [*self._scenario.organizations]
        for o, _ in self.places:
            (campaign,) = organizations[o].campaigns
            assert campaign.schedule is not None
            alike = {"max_attempts": 1, "retry_interval": 0}
            request = campaign.schedule.model_copy(update=alike)
            campaigns = (campaign.model_copy(update={"schedule": request}),)
            organizations[o] = organizations[o].model_copy(update={"campaigns": campaigns})
        return self._scenario.model_copy(update={"organizations": tuple(organizations)}).digest


class Slack(NamedTuple):
    """Margins within which the settings of one campaign have no effect on its run.

    `attempts` is the greatest number of attempts that a person had, `spare` the shortest time (ms)
    between the creation of a retry and its release, its drop, or the end of the run.
    """

    attempts: int
    spare: int

    @classmethod
    def of(cls, calls: Calls, end: int) -> Slack:
        """Slack of a campaign in a run that ended at `end` (ms)."""
        if (calls.past_status >= 0).any():  # histories have their own due instants
            return cls(_MOST, 0)
        rows, call = calls.rows, calls.row_call
        created, left = np.flatnonzero(rows.kind == RETRY), rows_of(rows.kind, _LEAVES)[::-1]
        waited_until = np.full(len(calls), end, dtype=np.int64)
        # Reversed, so that the first row of a call is assigned last.
        waited_until[call[left]] = rows.at[left]
        spare = waited_until[call[created]] - rows.at[created]
        return cls(int(calls.attempt.max(initial=0)), int(spare.min(initial=_MOST)))

    def covers(self, made: RetrySettings, wanted: RetrySettings) -> bool:
        """Return True if the run made with some settings is also the run of the settings wanted."""
        few = self.attempts < min(made.max_attempts, wanted.max_attempts)
        longer = wanted.retry_interval - made.retry_interval
        return (few or made.max_attempts == wanted.max_attempts) and (
            longer == 0 or 0 < longer < self.spare
        )


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run that related variants may share: their family, its settings, slack and figures."""

    family: str | None
    settings: tuple[RetrySettings, ...]
    slacks: tuple[Slack, ...]
    figures: str

    @classmethod
    def of(cls, result: Result, family: str | None, relatives: Relatives, figures: str) -> MadeRun:
        """Read the slack of a finished run of a scenario."""
        own, end = result.reading.campaigns, result.trace.end
        slacks = tuple(Slack.of(own[place].engine_calls, end) for place in relatives.places)
        return cls(family, relatives.settings, slacks, figures)

    def is_shared_by(self, family: str | None, settings: Sequence[RetrySettings]) -> bool:
        """Return True if the run of these settings is this one."""
        return self.family == family and all(
            slack.covers(made, wanted)
            for slack, made, wanted in zip(self.slacks, self.settings, settings, strict=True)
        )
