"""Figures of runs by name: names in goals and expressions, and facts about figures for intervals.

Names are as in summary.json: `finish`, `webhooks.lost`, `reach_by_attempt_2`, `value_by_day_3`. A
funnel step is `funnel.STEP`, the cost per conversation that reached it `cost_per_funnel.STEP`, a
field value `field.NAME.VALUE`; the agent's name may precede the step or field. A count of a
compliance rule is `compliance.RULE.repeated`. A campaign or organization as prefix selects its
figure; without prefix, the figure is the whole run's. Parts may be quoted.

Facts are exactly known parts of figures, and possible jumps. A finish that does not fit before
closing moves to the next opening. One more day with calls costs the lines of that day. Retries that
few runs need delay a finish by retry intervals. `dialsim.experiments.intervals.Jump` bounds how
probable such an event is. The calling time left until closing counts as the distance to it, if the
longest call and all attempts that a run did not need fit in as well, and if no talk time has a tail
heavier than exponential.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.intervals import Jump, Known, Values
from dialsim.experiments.known_bounds import Finishes
from dialsim.experiments.run_figures import ATTEMPTS
from dialsim.interface.instants import DAY
from dialsim.results.compliance import COUNTS, compliance_figure
from dialsim.results.figures import (
    BLOCKS,
    COST_PER,
    CUMULATIVE,
    FIELD,
    FUNNEL,
    NUMBERS,
    OWN_FIGURES,
    REACH,
    Unit,
    is_instant,
    is_worth,
    unit_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.experiments.known_bounds import KnownBounds, Place
    from dialsim.experiments.run_figures import Number, RunFigures, ScopeFigures
    from dialsim.scenario.organization import Agent
    from dialsim.scenario.scenario import Scenario

_Agent = tuple[str, str]
"""Organization and name of an agent."""


@dataclass(frozen=True, slots=True)
class FigureName:
    """Figure of the whole run, of an organization, or of a campaign.

    `name` is a column of the frames; an instant is in ms since 1970.
    """

    name: str
    organization: str | None
    campaign: str | None

    @property
    def unit(self) -> Unit:
        """Unit of the figure."""
        return unit_of(self.name)

    @property
    def column(self) -> str:
        """Column of the tables with the figure, where instants are in seconds."""
        return f"{self.name}_seconds" if is_instant(self.name) else self.name

    def of(self, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
        """Return the figure in each run; infinite for a run that did not finish."""
        return np.array([self._in(run) for run in runs], dtype=np.float64)

    def _in(self, run: RunFigures) -> float:
        assert run.asked is None or self.name in run.asked, self.name
        return self.part(run).number(self.name)

    def part(self, run: RunFigures) -> ScopeFigures:
        """Return the figures of its organization or campaign in a run."""
        return next(part for part in run.scopes if self.fits(part))

    def fits(self, part: ScopeFigures) -> bool:
        """Return True if figures are of its organization and campaign."""
        return (part.organization, part.campaign) == (self.organization, self.campaign)


COST = FigureName("cost", None, None)
"""The cost of the whole run."""


@dataclass(frozen=True, slots=True)
class FoundName:
    """Name found in a text, and the index of its end.

    A step that several agents have is the sum of several `figures`. `fault` is the reason why a
    known name cannot be used.
    """

    end: int
    figures: tuple[FigureName, ...]
    fault: str | None = None


class FigureNames:
    """All names of figures of a scenario's summary."""

    def __init__(self, scenario: Scenario) -> None:
        self.currency = scenario.costs.currency if scenario.costs else None
        self._priced = scenario.costs is not None
        self._valued = scenario.value is not None
        self._campaigns: dict[Place, str] = {}
        self._places: dict[tuple[str, ...], list[Place]] = {}
        self._columns: dict[tuple[str, ...], dict[str, set[_Agent]]] = {}
        self._own_names = {own.name for own in scenario.own_figures}
        for name in (*NUMBERS, *self._own_names):
            self._columns[name,] = {name: set()}
        for block in filter(None, BLOCKS):
            for name in [name for name in NUMBERS if name.startswith(f"{block}_")]:
                self._columns[block, ".", name.removeprefix(f"{block}_")] = {name: set()}
        for rule in scenario.compliance:
            for count in COUNTS:
                column = compliance_figure(rule.name, count)
                for key in (_dotted(("compliance", rule.name, count)), (column,)):
                    self._columns[key] = {column: set()}
        for organization in scenario.organizations:
            for campaign in organization.campaigns:
                place = organization.name, campaign.name
                self._campaigns[place] = campaign.agent
                self._valued = self._valued or campaign.value is not None
                # Both `January` and, where that is ambiguous, `Acme/January`.
                self._places.setdefault((organization.name, "/", campaign.name), []).append(place)
                self._places.setdefault((campaign.name,), []).append(place)
            for agent in organization.agents:
                for parts, column in _of_agent(agent):
                    for key in (parts, (parts[0], agent.name, *parts[1:])):
                        self._add((organization.name, agent.name), _dotted(key), column)
                    self._add((organization.name, agent.name), (column,), column)
        # A campaign of the same name takes precedence.
        for organization in scenario.organizations:
            self._places.setdefault((organization.name,), [(organization.name, None)])

    def _add(self, agent: _Agent, key: tuple[str, ...], column: str) -> None:
        self._columns.setdefault(key, {}).setdefault(column, set()).add(agent)

    def at(self, text: str, start: int, end: int) -> list[FoundName]:
        """Return the names at an index of a text, longest first."""
        found = [*self._figures(text, start, end, (None, None))]
        for key, places in self._places.items():
            after = _match(text, start, end, (*key, "."))
            if after is None:
                continue
            for each in self._figures(text, after, end, places[0]):
                fault = _ambiguous(text[start : each.end], key[-1], places)
                found.append(FoundName(each.end, each.figures, fault or each.fault))
        # Longest first, because a name may be the beginning of another one.
        return sorted(found, key=lambda each: -each.end)

    def _figures(self, text: str, start: int, end: int, place: Place) -> Iterator[FoundName]:
        ordinal = _ORDINAL.match(text, start, end)
        if ordinal is not None:
            name = ordinal[0]
            yield FoundName(ordinal.end(), (FigureName(name, *place),), self._fault(name))
        for key in self._columns:
            after = _match(text, start, end, key)
            if after is not None and (own := self._own(place, key)):
                figures = tuple(FigureName(name, *place) for name in own)
                yield FoundName(after, figures, self._fault(own[0]))

    def _own(self, place: Place, key: tuple[str, ...]) -> list[str]:
        """Return the columns of a name in a campaign, an organization or the whole run."""
        columns = self._columns[key].items()
        if key[0] in self._own_names and place != (None, None):
            return []
        # Counts of several agents add up; costs per conversation do not.
        own = [column for column, agents in columns if self._has(place, agents)]
        return own if len(own) == 1 or key[0] != COST_PER.rstrip("_") else []

    def _has(self, place: Place, agents: set[_Agent]) -> bool:
        """Return True if a place has one of the agents; figures without agents exist at every
        place.
        """
        organization, campaign = place
        if campaign is not None:
            agent = self._campaigns[place]
            return not agents or (organization, agent) in agents
        return not agents or organization is None or organization in {o for o, _ in agents}

    def _fault(self, column: str) -> str | None:
        if not self._priced and column.startswith("cost"):
            return f"there is no figure {column}: the scenario names no costs"
        if not self._valued and is_worth(column):
            return f"there is no figure {column}: the scenario names no value"
        return None

    def missing(self, word: str) -> tuple[str, tuple[int, int] | None]:
        """Return the reason why a word is no figure, and the span of its unknown part.

        The span is None if the whole word is unknown.
        """
        heads = [
            (after, places[0])
            for key, places in self._places.items()
            if (after := _match(word, 0, len(word), (*key, "."))) is not None
        ]
        if heads:
            start, place = max(heads, key=lambda head: head[0])
            known = self._names(place)
            says = f"there is no figure {word[start:]}"
            return says + _hint(_bare(word[start:]), known), (start, len(word))
        for dot in (match.start() for match in re.finditer(r"\.", word)):
            whose, figure = word[:dot], word[dot + 1 :]
            ends = [each.end for each in self._figures(figure, 0, len(figure), (None, None))]
            if len(figure) in ends:
                near = self._alike(_bare(whose))
                hint = f"did you mean {near[0]}?" if near else self._listed()
                says = f"{word}: there is no campaign or organization {_bare(whose)}; {hint}"
                return says, (0, dot)
        if places := self._places.get((_bare(word),)):
            noun = "campaign" if places[0][1] else "organization"
            return f"{word} is a {noun}: name a figure of it, such as {word}.people_reached", None
        return f"there is no figure {word}" + _hint(_bare(word), self._names((None, None))), None

    def place_before(self, text: str, start: int, end: int) -> int:
        """Return the index behind a campaign or organization that precedes a name, if any."""
        ends = [_match(text, start, end, (*key, ".")) for key in self._places]
        return max((after for after in ends if after is not None), default=start)

    def _alike(self, place: str) -> list[str]:
        """Suggest names for an unknown campaign or organization."""
        places = ["".join(key) for key in self._places]
        close = get_close_matches(place, places, n=1)
        return close or [name for name in places if len(place) > 1 and name.startswith(place)]

    def _listed(self) -> str:
        owners = dict.fromkeys(organization for organization, _ in self._campaigns)
        campaigns = [f"{organization}/{campaign}" for organization, campaign in self._campaigns]
        return f"there are: {', '.join([*campaigns, *map(str, owners)])}"

    def _names(self, place: Place) -> list[str]:
        """Return the usable figures of a place in their notation."""
        return [
            "".join(key)
            for key, columns in self._columns.items()
            if not all(map(self._fault, columns)) and self._own(place, key)
        ]


def _of_agent(agent: Agent) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the figures of an agent's analyses: parts of each name, and its column."""
    analysis = agent.analysis
    for step in (analysis and analysis.funnel) or ():
        yield ("funnel", step.step), f"{FUNNEL}{agent.name}_{step.step}"
        yield (COST_PER.rstrip("_"), step.step), f"{COST_PER}{agent.name}_{step.step}"
    for name, field in (analysis.fields if analysis else {}).items():
        for value in field.values:
            yield ("field", name, value), f"{FIELD}{agent.name}_{name}_{value}"


_ORDINAL = re.compile(rf"(?:{'|'.join(CUMULATIVE)})[1-9][0-9]*")


def _dotted(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(sign for part in parts for sign in (part, "."))[:-1]


def _match(text: str, start: int, end: int, key: Sequence[str]) -> int | None:
    """Return the index of the end of a name at an index; its parts may be quoted."""
    at = start
    for part in key:
        for written in (part, f'"{part}"', f"'{part}'"):
            if text.startswith(written, at, end):
                at += len(written)
                break
        else:
            return None
    return at


def _ambiguous(text: str, name: str, places: Sequence[Place]) -> str | None:
    if len(places) == 1:
        return None
    names = " or ".join(f"{organization}/{campaign}" for organization, campaign in places)
    return f"{text}: campaign {name} is ambiguous: write {names}"


def _bare(word: str) -> str:
    """Return a word without quotes."""
    return re.sub(r"""["']""", "", word)


_OF_SCENARIO = ("funnel", "field", "compliance", COST_PER.rstrip("_"))
"""Beginnings of names that a scenario gives figures."""


def _hint(word: str, known: Sequence[str]) -> str:
    kind = word.partition(".")[0]
    if kind in _OF_SCENARIO:
        known = [name for name in known if name.startswith(f"{kind}.")]
        close = get_close_matches(word, known, cutoff=0.7) or known
        return _proposal(close) or f"; the scenario names none of {kind}"
    last = word.rpartition(".")[2]
    close = get_close_matches(word, known, n=1, cutoff=0.85)
    close = close or [n for n in known if len(last) > 3 and (last in n or n[:5] == last[:5])]
    return _proposal(close or get_close_matches(last, known))


def _proposal(close: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(close[:3])}?" if close else ""


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
    """Return the facts about a figure in some runs; facts about instants are in ms."""
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
    """Return the mean of a figure, with the expectation of charges where it is known."""
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
    """Return the smallest and the greatest possible value; for an instant, since the start."""
    is_share = unit_of(figure.name) is Unit.SHARE
    own = figure.name in OWN_FIGURES and not is_share
    return -inf if own or is_worth(figure.name) else 0.0, 1.0 if is_share else inf


def _is_priced(name: str) -> bool:
    return name in _PRICED or name.startswith(COST_PER)


def _per_cost(figure: FigureName, runs: Sequence[RunFigures]) -> float:
    """Return the change of a figure per unit of cost, at the means of all runs."""
    if figure.name in ("cost", _NET_VALUE):
        return 1.0 if figure.name == "cost" else -1.0
    mine, costs = (
        np.mean([figure.part(run).values.get(name, 0.0) for run in runs])
        for name in (figure.name, "cost")
    )
    return float(mine / costs) if costs else 0.0


def _surplus(figure: FigureName, runs: Sequence[RunFigures], bounds: KnownBounds) -> Values | None:
    """Return the charges of each run minus their expectation; None for figures that are no charges.

    For a cost per conversation that reached a step, the surplus is exact if talk times cannot
    change the number of these conversations. Otherwise the linear coefficient at the means of all
    runs is used.
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
    """Return the cost of lines in each run, and the cost of lines on one more day with calls.

    The first is None for a campaign, whose share of the cost differs from run to run.
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
    """Add jumps to the facts about a figure that each further day moves by `size`.

    For an instant `size` is None: its jumps are closed hours and retries.
    """
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

    `closed` is the closed time of the campaign that finishes last. Unknown values are None. `later`
    is the longest delay by attempts that a run did not need, `sooner` the longest time that a run
    without retries would save. `last_attempts` is, for each run, the number of last allowed
    attempts in the campaign with the fewest of them.
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
        """Return how far the finishes of the campaigns of a figure are from another day.

        With `until` (ms), `left` is the calling time from each finish to that instant, and not to
        the closing.
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
    """Return the number of calls made as attempt 1, 2, … up to `most`."""
    return [part.aside.get(f"{ATTEMPTS}{number}", 0) for number in range(1, most + 1)]
