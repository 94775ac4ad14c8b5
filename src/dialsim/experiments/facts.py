"""Facts about figures of runs for intervals: exact parts, and possible jumps.

A finish that does not fit in before closing moves to the next opening, a day with calls more costs
its lines, and retries that few runs need make them finish intervals later. `dialsim.experiments.
intervals.Jump` bounds how probable such an event is. The calling time left until closing counts as
the distance to it, if the longest call and all attempts that a run did not need fit in as well, and
if no talk time has a tail heavier than exponential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.figure_names import FigureName
from dialsim.experiments.intervals import Jump, Known, Values
from dialsim.experiments.known_bounds import Finishes
from dialsim.experiments.run_figures import ATTEMPTS
from dialsim.interface.instants import DAY
from dialsim.results.figures import (
    COST_PER,
    OWN_FIGURES,
    REACH,
    Unit,
    is_instant,
    is_worth,
    unit_of,
)

if TYPE_CHECKING:
    from dialsim.experiments.known_bounds import KnownBounds, Place
    from dialsim.experiments.run_figures import Number, RunFigures, ScopeFigures

_DAYS, _NET_VALUE = "calling_days", "net_value"
_BY_ANSWERS = ("attempts", "attempts_per_person_mean", "reach_share", "value")
_PRICED = ("cost", "cost_per_reached", _NET_VALUE)


def facts_needed(figures: Sequence[FigureName], bounds: KnownBounds) -> frozenset[str]:
    """Return the names of the figures that determine all facts about some figures."""
    names = {figure.name for figure in figures}
    if any(map(_is_priced, names)):
        names |= {"cost", _DAYS} if bounds.line_prices else {"cost"}
    return frozenset(names | ({"finish"} if _DAYS in names else set()))


def facts(figure: FigureName, runs: Sequence[RunFigures], bounds: KnownBounds) -> Known:
    """Return the facts about a figure in some runs; of instants in ms."""
    name, (least, most) = figure.name, range_of(figure)
    if bounds.certain(name):
        return Known(certain=True, least=least, most=most)
    surplus = _surplus(figure, runs, bounds)
    settled = surplus is not None and bounds.answers and name != _NET_VALUE
    known = Known(False, least, most, surplus, bounds.uncut, settled)
    if is_instant(name):
        return _with_days(known, _Days.of(figure, runs, bounds))
    if name == _DAYS:
        return _with_days(known, _Days.of(figure, runs, bounds), figure.of(runs), 1.0)
    if bounds.line_prices and _is_priced(name):
        levels, size = _line_costs(figure, runs, bounds)
        factor = _per_cost(figure, runs)
        levels = None if levels is None else factor * levels
        return _with_days(known, _Days.of(figure, runs, bounds), levels, factor * size)
    return known


def chance_after(
    figure: FigureName, runs: Sequence[RunFigures], bounds: KnownBounds, until: float, error: float
) -> float:
    """Return the upper limit of the probability that an instant of a run is after `until` (ms).

    This is a tolerance limit: the calling time left has a tail no heavier than exponential beyond
    its median, as in `Jump`. The limit is 1 where that cannot be assumed, and with fewer than 10
    runs. It is wrong with the probability `error`.
    """
    left = _Days.of(figure, runs, bounds, until).left
    if left is None or left.min() <= 0:
        return 1.0
    return Jump(0.0, left).probability(len(runs), error)


def expected_mean(figure: FigureName, runs: Sequence[RunFigures], bounds: KnownBounds) -> float:
    """Return the mean of a figure, charges that are known exactly being expected ones."""
    known = Known(surplus=_surplus(figure, runs, bounds), uncut=bounds.uncut)
    return float(known.expected(figure.of(runs)).mean())


def follows_answers(figure: FigureName, bounds: KnownBounds) -> bool:
    """True if talk times cannot change a figure, because it counts people or their answers."""
    unit, name = unit_of(figure.name), figure.name
    if name in OWN_FIGURES:
        return bounds.certain(name)
    counts = unit in (Unit.PEOPLE, Unit.CONVERSATIONS) or name.startswith(REACH)
    return bounds.certain(name) or (bounds.steady and (counts or name in _BY_ANSWERS))


def range_of(figure: FigureName) -> tuple[float, float]:
    """Return the smallest and the greatest possible value; of an instant, since the start."""
    is_share = unit_of(figure.name) is Unit.SHARE
    own = figure.name in OWN_FIGURES and not is_share
    return -inf if own or is_worth(figure.name) else 0.0, 1.0 if is_share else inf


def _is_priced(name: str) -> bool:
    return name in _PRICED or name.startswith(COST_PER)


def _per_cost(figure: FigureName, runs: Sequence[RunFigures]) -> float:
    """Return the change of a figure per unit of cost, in the mean run."""
    if figure.name in ("cost", _NET_VALUE):
        return 1.0 if figure.name == "cost" else -1.0
    mine, costs = (
        np.mean([figure.part(run).values.get(name, 0.0) for run in runs])
        for name in (figure.name, "cost")
    )
    return float(mine / costs) if costs else 0.0


def _surplus(figure: FigureName, runs: Sequence[RunFigures], bounds: KnownBounds) -> Values | None:
    """Return the charges of each run minus their expectation; None for figures that are no charges.

    A cost per conversation that reached a step has an exact surplus in each run if talk times
    cannot change the number of these conversations; else the linear coefficient in the mean run is
    used.
    """
    of_talk = figure.name == "talk_minutes"
    if not of_talk and not _is_priced(figure.name):
        return None
    name = "talk_minutes" if of_talk else "cost"
    found = [figure.part(run).aside.get(name) for run in runs]
    if None in found:
        return None
    surplus = np.array(found, dtype=np.float64)
    if of_talk or not bounds.steady or figure.name in ("cost", _NET_VALUE):
        return surplus * (1.0 if of_talk else _per_cost(figure, runs))
    costs = np.array([figure.part(run).values["cost"] for run in runs], dtype=np.float64)
    values = np.array([figure.part(run).values.get(figure.name, 0.0) for run in runs])
    with np.errstate(divide="ignore", invalid="ignore"):
        return surplus * np.where(costs > 0, values / costs, 0.0)


def _line_costs(
    figure: FigureName, runs: Sequence[RunFigures], bounds: KnownBounds
) -> tuple[Values | None, float]:
    """Return what lines by day cost in each run, and what one day more would.

    A campaign pays a share of it that differs from run to run, and so is not known here.
    """
    prices = {
        name: price
        for name, price in bounds.line_prices.items()
        if figure.organization in (None, name)
    }
    if figure.campaign is not None or not prices:
        return None, sum(prices.values())
    costs = [price * FigureName(_DAYS, name, None).of(runs) for name, price in prices.items()]
    return np.sum(costs, axis=0), sum(prices.values())


def _with_days(
    known: Known, days: _Days, levels: Values | None = None, size: float | None = None
) -> Known:
    """Add the jumps of a figure that each day more moves by `size`, None for an instant."""
    if size is None:
        up = [Jump(days.night, days.left)]
        down = [Jump(days.before, days.since)]
        up += [Jump(days.later)] if days.later else []
        down += [Jump(days.sooner, counts=days.last_attempts)] if days.sooner else []
        return replace(known, levels=days.closed, up=tuple(up), down=tuple(down))
    up = [Jump(abs(size), days.left)]
    down = [Jump(abs(size), days.since)] if days.before else []
    if size < 0:
        up, down = down, up
    return replace(known, levels=levels, up=tuple(up), down=tuple(down))


@dataclass(frozen=True, slots=True)
class _Days:
    """Distances of the finishes of some campaigns from another day (`Finishes`).

    `closed` belongs to the campaign that finishes last. None stands for the unknown. `later` is how
    much later a run may end by attempts that it did not need, `sooner` how much earlier without
    retries. `last_attempts` is the number of calls that were the last one possible, of the campaign
    with the fewest.
    """

    night: float
    before: float
    later: float
    sooner: float
    closed: Values | None = None
    left: Values | None = None
    since: Values | None = None
    last_attempts: Values | None = None

    @classmethod
    def of(
        cls,
        figure: FigureName,
        runs: Sequence[RunFigures],
        bounds: KnownBounds,
        until: float | None = None,
    ) -> _Days:
        """Return the distances of the campaigns that a figure is about.

        With `until`, `left` is the calling time to this instant (ms) and not to the closing.
        """
        calendars = bounds.calendars_of((figure.organization, figure.campaign))
        if not calendars:
            return cls(DAY, DAY, 0.0, 0.0)
        name = figure.name if is_instant(figure.name) else "finish"
        sooner = max(calendar.retries for calendar in calendars)
        later = 0.0
        # Indexed once: a search through all runs for each campaign would be quadratic.
        by_place: dict[Place, list[ScopeFigures]] = {}
        for run in runs:
            for part in run.scopes:
                by_place.setdefault((part.organization, part.campaign), []).append(part)
        found, at, lasts = list[Finishes](), list[Values](), list[Values]()
        for calendar in calendars:
            parts = by_place.get((calendar.organization, calendar.campaign), [])
            finish = np.array([part.values.get(name, nan) for part in parts], dtype=np.float64)
            if not parts or not np.isfinite(finish).all():
                night = max(calendar.longest_night for calendar in calendars)
                return cls(night, night, sooner, sooner)
            most = calendar.request.max_attempts
            made = np.array([_attempts(part, most) for part in parts], dtype=np.float64)
            # A single person who can't be reached can prolong a run: the time left must also hold
            # all attempts that the run did not need, and the longest call.
            needless = calendar.retries * np.count_nonzero(made == 0, axis=1) / max(1, most - 1)
            later = max(later, float(needless.max()))
            margin = needless + (calendar.longest_call if calendar.is_light else inf)
            place = calendar.finishes(finish)
            if until is not None:
                *left, beyond = calendar.finishes(np.append(finish, until)).left
                place = place._replace(left=np.array(left) - beyond)
            found.append(place._replace(left=place.left - margin, since=place.since - margin))
            at.append(finish)
            lasts.append(made[:, -1])
        closed = np.array([each.closed for each in found])
        return cls(
            max(each.night for each in found),
            max(each.before for each in found),
            later,
            sooner,
            closed[np.argmax(at, axis=0), np.arange(len(runs))],
            np.min([each.left for each in found], axis=0),
            np.min([each.since for each in found], axis=0),
            np.min(lasts, axis=0),
        )


def _attempts(part: ScopeFigures, most: int) -> list[Number]:
    """Return the number of attempts of each number from 1 to `most`."""
    return [part.aside.get(f"{ATTEMPTS}{number}", 0) for number in range(1, most + 1)]
