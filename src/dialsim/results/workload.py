"""Workload bound: lower limit of the finish of a scenario, before any simulation.

Every recipient is dialled at least once before a campaign is done. These first calls hold lines for
a time that a number of lines can only provide while calls are allowed. That gives an instant before
which the work cannot be done. The bound holds in at least 999 of 1,000 runs; docs/theory.md has the
derivation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from math import ceil, log, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from dialsim.engine.behaviour import durations
from dialsim.engine.rules import with_odds
from dialsim.engine.windows import Windows
from dialsim.interface.instants import HOUR, MINUTE, WEEK, minute_text, thai
from dialsim.scenario.campaign import GeneratedRecipients, RecipientsFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.scenario.behaviour import Behaviour
    from dialsim.scenario.campaign import Campaign, Recipient
    from dialsim.scenario.distribution import Distribution
    from dialsim.scenario.organization import Organization
    from dialsim.scenario.scenario import Scenario

RISK = 0.001
"""Upper limit of the probability of a finish before the bound."""

_LEAST_HOURS = 1.0  # hours per line below which the bound is obvious
_LONGEST = 520  # weeks
# Odds in place of infinite ones, which have no share.
_GREAT = 1e12
_GRID = 4096
_CAPS = {"setup": 2 * MINUTE, "ring": 2 * MINUTE, "talk": 15 * MINUTE}


@dataclass(frozen=True, slots=True)
class Workload:
    """Work of the first calls of `people`, and the earliest finish with `lines`.

    `line_hours` and `not_before` (ms since 1970) hold except with probability `RISK`.
    """

    organization: str
    people: int
    line_hours: float
    lines: int
    not_before: int


def workload(scenario: Scenario) -> Workload | None:
    """Return the bound of the organization that takes longest; None without a useful bound."""
    found = [bound for organization in scenario.organizations
             for bound in _of_organization(scenario, organization)]  # fmt: skip
    return max(found, key=lambda bound: bound.not_before, default=None)


def workload_text(scenario: Scenario) -> str | None:
    """Return the bound as text: `80,000 people need at least 1,930 line-hours: 60 lines cannot
    be done before …`.
    """
    bound = workload(scenario)
    if bound is None:
        return None
    whose = f" of {bound.organization}" if len(scenario.organizations) > 1 else ""
    lines = f"{bound.lines:,} line{'s' * (bound.lines != 1)}"
    year = f" {thai(bound.not_before).year} "
    return (
        f"{bound.people:,} people{whose} need at least {int(bound.line_hours):,} line-hours for "
        f"their first calls alone: {lines} cannot be done before "
        f"{minute_text(bound.not_before).replace(year, ' ')} Thai time."
    )


def _of_organization(scenario: Scenario, organization: Organization) -> Iterator[Workload]:
    """Yield the bounds of each campaign alone, and of all together."""
    limits = [organization.max_concurrent_calls]
    limits += [
        int(action.value or 0)
        for action in (*organization.timeline, *organization.compiled_actions)
        if action.action == "setConcurrency"
    ]
    refused = not organization.calling_allowed or any(
        action.action == "setCallingAllowed" and not action.value
        for action in organization.timeline
    )
    ended = {a.campaign for a in organization.timeline if a.action in ("cancel", "delete")}
    parts = [
        _Work.of(scenario, organization, campaign)
        for campaign in organization.campaigns
        if campaign.schedule is not None and campaign.name not in ended
    ]
    # Then nothing may ever be called, and "never" is the simulation's to find out.
    if refused or not max(limits):
        return
    for group in [*([part] for part in parts), *([parts] if len(parts) > 1 else [])]:
        bound = _bound(organization.name, group, max(limits))
        if bound is not None:
            yield bound


@dataclass(frozen=True, slots=True)
class _Hold:
    """Time that one first call holds a line, in ms, cut off at a cap.

    `mean` is at most its mean, `most` at least its mean, `square` at least the mean of its square,
    `top` at least its maximum.
    """

    mean: float
    most: float
    square: float
    top: float

    def __add__(self, other: _Hold) -> _Hold:
        """Return the limits for the sum of two independent phases."""
        return _Hold(
            self.mean + other.mean,
            self.most + other.most,
            self.square + other.square + 2 * self.most * other.most,
            self.top + other.top,
        )


def _hold(distribution: Distribution, cap: int) -> _Hold:
    """Return the limits of a distribution from sums over its quantiles, below and above the
    integral.
    """
    # Lower and upper sums over a grid of quantiles bracket the moments of any distribution, also of
    # an empirical one; 1 itself would be an infinite quantile.
    uniforms = np.append(np.arange(_GRID) / _GRID, np.nextafter(1.0, 0.0))
    values = np.minimum(durations(distribution, uniforms), cap).astype(np.float64)
    above = values[1:]
    return _Hold(
        float(values[:-1].mean()), float(above.mean()), float((above**2).mean()), float(above[-1])
    )


def _mixture(parts: Sequence[tuple[float, _Hold]]) -> _Hold:
    return _Hold(
        sum(share * hold.mean for share, hold in parts),
        sum(share * hold.most for share, hold in parts),
        sum(share * hold.square for share, hold in parts),
        max(hold.top for _, hold in parts),
    )


def _worst(holds: Iterable[_Hold]) -> _Hold:
    """Return limits that hold for each of several."""
    means, mosts, squares, tops = zip(*map(astuple, holds), strict=True)
    return _Hold(min(means), max(mosts), max(squares), max(tops))


def _first_call(behaviour: Behaviour, segment: str | None, windows: Windows) -> _Hold:
    """Return the limits of a first call to a person of a segment, without history or script."""
    # The share of answers varies, for example with the hour. Both ends of its range are examined;
    # everything is linear in between.
    setup = _hold(behaviour.setup_time, _CAPS["setup"])
    ring, outcomes, people = behaviour.ring_time, behaviour.outcomes, behaviour.people
    answered = setup + _hold(ring.answered, _CAPS["ring"])
    answered += _hold(behaviour.talk_time, _CAPS["talk"])
    ends = (ring.no_answer, ring.busy, ring.failed)
    no_answer, busy, failed = (setup + _hold(end, _CAPS["ring"]) for end in ends)
    dead = 0.0 if people is None else people.dead_numbers
    shares = outcomes.others(dead)
    rest = sum(shares)
    weights = [share / rest for share in shares] if rest else [1.0, 0.0, 0.0]
    vain = _mixture([*zip(weights, (no_answer, busy, failed), strict=True)])
    return _worst(
        _mixture([(share, answered), (dead, failed), (max(0.0, 1 - dead - share), vain)])
        for share in _shares_answered(behaviour, segment, windows)
    )


def _shares_answered(
    behaviour: Behaviour, segment: str | None, windows: Windows
) -> tuple[float, float]:
    """Return the least and the greatest share of a segment's first calls that may be answered.

    Where people differ, only limits are known: odds times a factor f ≤ 1 make of a chance p at
    least f p, and times f ≥ 1 at most f p.
    """
    odds, people = behaviour.answered_odds, behaviour.people
    hours = [
        odds.by_day.get(hour // 24 + 1, 1.0) * odds.by_hour.get(hour % 24, 1.0)
        for start, end in zip(*windows.ranges, strict=True)
        for hour in range(start // HOUR, ceil(end / HOUR))
    ]
    factors = [
        hours,
        (1.0, odds.on_holiday),
        (odds.by_attempt[0],),
        (1.0 if segment is None else odds.by_segment.get(segment, 1.0),),
    ]
    least, most = prod(map(min, factors)), prod(map(max, factors))
    use = odds.by_caller_id_use
    # Fatigue has no bound that is known beforehand: usage depends on the run.
    if use is not None:
        least, most = (0.0, most) if use.per1000 <= 1 else (least, float("inf"))
    share = behaviour.outcomes.answered
    if people is None:
        return with_odds(share, least), with_odds(share, min(most, _GREAT))
    # With the odds model (P7) a factor multiplies odds, and a share grows at most by that factor.
    most = min(people.reachable, share * max(1.0, most)) if share else 0.0
    return share * min(1.0, least), most


@dataclass(frozen=True, slots=True)
class _Work:
    """First calls of a campaign: numbers of people with durations, and the time in which they
    may be made.
    """

    calls: tuple[tuple[int, _Hold], ...]
    windows: Windows
    begin: int

    @classmethod
    def of(cls, scenario: Scenario, organization: Organization, campaign: Campaign) -> _Work:
        request = campaign.schedule
        assert request is not None
        agent = next(agent for agent in organization.agents if agent.name == campaign.agent)
        names = [agent.behaviour] + [
            action.behaviour
            for action in organization.timeline
            if action.action == "setBehaviour" and action.agent == agent.name and action.behaviour
        ]
        behaviours = [scenario.behaviours[name] for name in dict.fromkeys(names)]
        windows = Windows.of(request.time_windows)

        def hold(segment: str | None) -> _Hold:
            return _worst(_first_call(behaviour, segment, windows) for behaviour in behaviours)

        recipients, calls = campaign.recipients, []
        if request.remove_duplicates:
            pass  # no recipient is certain to be called
        elif isinstance(recipients, GeneratedRecipients):
            named = recipients.segments or {}
            rest = max(0.0, 1 - sum(named.values()))
            mixed = [(share, hold(segment)) for segment, share in named.items()]
            calls = [
                (recipients.count, _mixture([*mixed, *([(rest, hold(None))] if rest else [])]))
            ]
        else:
            calls = [(count, hold(segment)) for segment, count in _fresh(recipients).items()]
        asked = campaign.scheduled_at or scenario.clock.start
        return cls(tuple(calls), windows, max(request.start_date_time, asked))


def _fresh(recipients: RecipientsFile | Sequence[Recipient]) -> Counter[str | None]:
    """Count by segment the people whose first call certainly follows the behaviour.

    People with a history or a script are left out.
    """
    if not isinstance(recipients, RecipientsFile):
        return Counter(
            person.segment
            for person in recipients
            if person.history is None and person.script is None
        )
    table = recipients.table
    names: dict[int, str | None] = {code: name for name, code in table.segments.texts.items()}
    pairs = enumerate(zip(table.scripts.codes, table.segments.codes, strict=True))
    return Counter(
        names.get(segment)
        for k, (script, segment) in pairs
        if script < 0 and k not in table.history
    )


def _bound(name: str, parts: Sequence[_Work], lines: int) -> Workload | None:
    """Return the bound for these lines, if the work is long enough to be of interest."""
    calls = [call for part in parts for call in part.calls]
    people = sum(count for count, _ in calls)
    if not people:
        return None
    work = _surely(calls)
    if work < _LEAST_HOURS * HOUR * lines:
        return None
    # A call that starts in the last ms of a window holds its line beyond it.
    overrun = ceil(max(hold.top for _, hold in calls))
    begin, needed = min(part.begin for part in parts), work / lines
    weeks = 1
    while weeks <= _LONGEST:
        spans = _open(parts, begin, begin + weeks * WEEK, overrun)
        done = np.cumsum(spans[:, 1] - spans[:, 0])
        place = int(np.searchsorted(done, needed))
        if place < len(done):
            before = done[place - 1] if place else 0
            at = int(spans[place, 0] + needed - before)
            return Workload(name, people, work / HOUR, lines, at)
        # The horizon is doubled rather than fixed: most campaigns take days, a few take years.
        weeks *= 2
    return None


def _surely(parts: Sequence[tuple[int, _Hold]]) -> float:
    """Return the work in ms that is exceeded except with probability `RISK` (Freedman 1975)."""
    # Freedman's inequality is for martingales: a call may depend on all earlier ones.
    mean = sum(count * hold.mean for count, hold in parts)
    spread = sum(count * (hold.square - hold.mean**2) for count, hold in parts)
    step, risk = max(hold.most for _, hold in parts), log(1 / RISK)
    return mean - (step * risk / 3 + sqrt((step * risk / 3) ** 2 + 2 * spread * risk))


def _open(parts: Sequence[_Work], begin: int, end: int, overrun: int) -> NDArray[np.int64]:
    """Return the time in which calls may hold lines: windows, extended by the longest call."""
    listed = [part.windows.open_spans(max(begin, part.begin), end) for part in parts]
    spans = np.concatenate(listed)
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    # A window that ends with the horizon may continue after it; the next horizon decides.
    ends = np.maximum.accumulate(np.where(spans[:, 1] < end, spans[:, 1] + overrun, end))
    starts = np.maximum(spans[:, 0], np.append(begin, ends[:-1]))
    kept = ends > starts
    return np.stack([starts[kept], ends[kept]], axis=1)
