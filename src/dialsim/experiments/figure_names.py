"""Names of figures in goals and expressions: `January.finish`, `funnel.Promised`.

Names are as in summary.json: `finish`, `webhooks.lost`, `reach_by_attempt_2`, `value_by_day_3`.
A funnel step is `funnel.STEP`, the cost per conversation that reached it `cost_per_funnel.STEP`, a
field value `field.NAME.VALUE`; the agent's name may precede the step or field. A count of a
compliance rule is `compliance.RULE.repeated`. A campaign or organization as prefix selects its
figure, no prefix the whole run's. Parts may be quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from dialsim.results.compliance import COUNTS, compliance_figure
from dialsim.results.figures import (
    BLOCKS,
    COST_PER,
    CUMULATIVE,
    FIELD,
    FUNNEL,
    NUMBERS,
    Unit,
    is_instant,
    is_worth,
    unit_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.experiments.known_bounds import Place
    from dialsim.experiments.run_figures import RunFigures, ScopeFigures
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
        """Return the columns of a name at a place."""
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
        """Return the reason why a word is no figure, and its unknown part; None for all of it."""
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
