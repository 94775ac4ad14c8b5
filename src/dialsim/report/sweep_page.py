"""Report of a sweep: the variants worth choosing, and which differences are significant.

"Really" in this module means that the interval of the paired difference excludes 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import inf, isfinite, isnan

import numpy as np

from dialsim.experiments import experiment_text
from dialsim.experiments.estimates import known_of, not_allowed
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.intervals import Difference, Values, figure_difference, rank
from dialsim.experiments.known_bounds import WHOLE
from dialsim.experiments.plots import names_of
from dialsim.experiments.run_figures import RunFigures, run_values
from dialsim.experiments.sweep import Comparison, Sweep
from dialsim.interface.instants import short_text
from dialsim.interface.phrases import joined
from dialsim.report.page import SIZE, Fact, Grid, Notes, Part, Picture, ReportPage, Section, picture
from dialsim.report.run_page import (
    HOW_COMPARED,
    LEAST_PART,
    help_fact,
    how_measured,
    made_from,
    retry_notes,
)
from dialsim.report.what_if import (
    SHORTER_RETRIES,
    Help,
    NotMeasured,
    WhatIf,
    effect_table,
    effect_text,
    holding,
    holding_fact,
    not_allowed_notes,
    shortens_retries,
)
from dialsim.results.figures import COST_PARTS, cost_parts
from dialsim.results.summary_text import FigureTable


@dataclass(frozen=True, slots=True)
class Aim:
    """Figure of the whole run to be minimized (1) or maximized (-1).

    `column` is its name in tables of differences, `name` that in texts, and `question` asks for the
    best variant.
    """

    figure: str
    column: str
    sign: int
    name: str
    question: str


FINISH = Aim("finish", "finish_seconds", 1, "finish", "What finishes first?")
REACHED = Aim("people_reached", "people_reached", -1, "people reached", "What reaches most people?")
COST = Aim("cost", "cost", 1, "cost", "What costs least?")
_AIMS = (FINISH, REACHED, COST)


@dataclass(frozen=True, slots=True)
class Loss:
    """A figure in which a variant is really worse: `effect` is its value minus the other's."""

    aim: Aim
    than: str
    effect: Difference

    @property
    def said(self) -> str:
        """The loss in words: `people reached -12 ± 3, real, against 12 lines`."""
        effect = effect_text(self.aim.figure, self.effect)
        return f"{self.aim.name} {effect}, against {self.than}"


@dataclass(frozen=True)
class Frontier:
    """The variants of a sweep weighed by finish, people reached and, if there is one, cost.

    A variant is beaten by another that is at least as good in all of them, and really better in
    one: the interval of the paired difference excludes 0. A recommended variant may not fall
    behind the baseline in people reached. A variant that breaks a compliance rule more often than
    the baseline is left out.
    """

    found: Sweep
    lost: Mapping[str, float] = field(default_factory=dict)
    """Variants that really reach fewer people than the baseline, and how many fewer."""

    @cached_property
    def aims(self) -> tuple[Aim, ...]:
        """Figures in which the variants differ."""
        listed = ((aim, {*self._middles[aim].values()}) for aim in _AIMS)
        # A figure that is equal for all, or missing for one, can't rank the variants.
        return tuple(aim for aim, known in listed if len(known) > 1 and not any(map(isnan, known)))

    @cached_property
    def beaten(self) -> dict[str, Loss]:
        """Dominated variants, with the first figure in which another is really better."""
        losses = ((name, self._beaten(name)) for name in self._names)
        return {name: loss for name, loss in losses if loss is not None}

    @cached_property
    def best(self) -> tuple[str, ...]:
        """Variants on the front, in the order of the sweep."""
        return tuple(name for name in self._names if name not in self.beaten)

    @cached_property
    def recommended(self) -> str:
        """Variant of the front closest to the best in everything; the baseline in a tie.

        The score is the sum of the relative shortfalls from the best candidate in time to the
        median finish, people reached, and cost per person reached. Variants that really reach fewer
        people than the baseline are no candidates.
        """
        return min(
            self._candidates, key=lambda name: (self._shortfall(name), name != self.found.baseline)
        )

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """Candidates that do not really differ from the recommended variant in anything."""
        return tuple(
            name
            for name in self._candidates
            if name != self.recommended
            and not any(self.difference(name, self.recommended, aim).real for aim in self.aims)
        )

    def best_by(self, aim: Aim) -> tuple[float, str]:
        """Return the best value of a figure, and its variant.

        Variants that lose people are left out: who calls fewer people always finishes sooner.
        """
        middles = self._middles[aim]
        # If all variants lose people, the question has an answer nevertheless.
        names = [name for name in self._names if name not in self.lost] or self._names
        best = min(names, key=lambda name: aim.sign * middles[name])
        return middles[best], best

    def difference(self, name: str, other: str, aim: Aim) -> Difference:
        """Return a variant's figure minus another's, paired by replication; a finish is in
        seconds.
        """
        settings = [self.found.by_name[which] for which in (name, other)]
        pairs = min(len(own.runs) for own in settings)
        sides = [(own.runs[:pairs], own.bounds) for own in settings]
        one, two = (_aim_values(runs, aim) for runs, _ in sides)
        known, others = (known_of(aim.figure, WHOLE, *side) for side in sides)
        return figure_difference(aim.figure, (one, two), (known, others))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for name in self.found.names if name not in self.found.breaches)

    @cached_property
    def _middles(self) -> dict[Aim, dict[str, float]]:
        """Typical values by variant: the median of the finishes, the mean of other figures."""
        settings = self.found.together.by_name
        return {
            aim: {name: _middle(_aim_values(settings[name].runs, aim), aim) for name in self._names}
            for aim in _AIMS
        }

    def _beaten(self, name: str) -> Loss | None:
        for other in self._names:
            # To dominate, the other must be at least as good in every aim, by the means; only its
            # advantage must be significant.
            if other == name or any(self._is_better(name, other, aim) for aim in self.aims):
                continue
            for aim in self.aims:
                if self._is_better(other, name, aim):
                    effect = self.difference(name, other, aim)
                    if effect.real and _is_worse(effect, aim):
                        return Loss(aim, other, effect)
        return None

    def _is_better(self, name: str, other: str, aim: Aim) -> bool:
        """True if a variant's figure is better on average, significant or not."""
        middles = self._middles[aim]
        return aim.sign * middles[name] < aim.sign * middles[other]

    @cached_property
    def _candidates(self) -> tuple[str, ...]:
        # If all of the front reach fewer people, the best of them is recommended nevertheless.
        return tuple(name for name in self.best if name not in self.lost) or self.best

    def _shortfall(self, name: str) -> float:
        """Return the sum of a candidate's relative shortfalls from the best candidate."""
        origin = self.found.origin
        start = 0.0 if origin is None else origin.timestamp()
        short = 0.0
        reached = self._middles[REACHED]
        for aim in self.aims:
            amounts = self._middles[aim]
            if aim is FINISH:
                # Finishes are counted from the start: counted from 1970 they would be nearly equal.
                amounts = {key: at - start for key, at in amounts.items()}
            # Per person reached: total cost would favour variants that call fewer people
            elif aim is COST:
                amounts = {key: cost / reached[key] if reached[key] else inf
                           for key, cost in amounts.items()}  # fmt: skip
            listed = [amounts[key] for key in self._candidates]
            top = min(aim.sign * amount for amount in listed)
            # Without a finite best value there is no scale for shortfalls.
            if isfinite(top) and top:
                short += (aim.sign * amounts[name] - top) / abs(top)
        return short

    def gives_up(self, name: str) -> Iterator[Loss]:
        """Yield the figures in which a variant is really worse than the best of the front."""
        for aim in self.aims:
            order = sorted((aim.sign * self._middles[aim][other], other) for other in self.best)
            top = order[0][1]
            if self._is_better(top, name, aim):
                effect = self.difference(name, top, aim)
                if effect.real and _is_worse(effect, aim):
                    yield Loss(aim, top, effect)


def _is_worse(effect: Difference, aim: Aim) -> bool:
    """True if the mean, or if it is infinite the majority of pairs, got worse."""
    if isfinite(effect.estimate):
        return aim.sign * effect.estimate > 0
    return (effect.rose > effect.fell) is (aim.sign > 0)


def _aim_values(runs: Sequence[RunFigures], aim: Aim) -> Values:
    """Return a figure of each run; a finish is in seconds, infinite if there is none."""
    values = run_values(runs, aim.figure)
    return np.where(np.isnan(values), inf, values / 1000) if aim is FINISH else values


def _middle(values: Values, aim: Aim) -> float:
    # A finish may be infinite in some runs, which a median survives.
    return float(np.sort(values)[rank(len(values), 0.5) - 1] if aim is FINISH else values.mean())


def sweep_page(found: Sweep, further: Mapping[str, Help]) -> ReportPage:
    """Return the report of a sweep.

    `further` has the variants examined more closely, with their levers if measured.
    """
    choice = frontier(found)
    count, runs = len(found.variants), experiment_text.runs_text(found)
    which = f"seed {found.seed}, {count} variants with {runs} replications each"
    title, lead, answer = found.scenario.name, found.scenario.description, ""
    if isinstance(found, Comparison):
        title, lead = found.title, ""
        answer = experiment_text.comparison_headline(found)
    return ReportPage(
        title=title,
        lead=lead or "",
        answer=answer or _answer(choice),
        facts=[*_recommended(choice), *_facts(choice), *_closer(found, further)],
        sections=[*_sections(choice, further)],
        made_from=made_from(found.scenario.name, which),
    )


_SMALL = 0.01
"""Share of the people reached whose loss does not exclude a variant."""


def _lost(found: Sweep) -> dict[str, float]:
    """Return the variants that really reach fewer people than the baseline, and how many fewer."""
    rows = found.run_differences
    rows = rows[rows["figure"] == "people_reached"]
    return {
        row["variant"]: -row["difference"]
        for row in rows.to_dict("records")
        if row["real"] and -row["difference"] > _SMALL * row["baseline_mean"]
    }


def frontier(found: Sweep) -> Frontier:
    """Return the Pareto front; variants that really reach fewer people are not recommended."""
    return Frontier(found, _lost(found))


def _answer(choice: Frontier) -> str:
    """Return the recommended variant, and whether it is better than by chance."""
    if not choice.aims:
        return experiment_text.sweep_headline(choice.found)
    said = f"Recommended: {choice.recommended}"
    baseline = choice.found.baseline
    return f"{said}, not surely better than {baseline}" if baseline in choice.alike else said


def _recommended(choice: Frontier) -> Iterator[Fact]:
    """Yield the facts for the recommended variant, and what it is worse in."""
    if not choice.aims:
        return
    name, names = choice.recommended, joined([aim.name for aim in choice.aims])
    if len(choice.best) == 1:
        said = [f"Each other variant is beaten by one that is as good in {names}, or better."]
    else:
        count, every = len(choice.best), len(choice.found.variants)
        which = f"{count} of {every} variants are" if count < every else "No variant is"
        by = "none" if count < every else "another"
        said = [f"{which} beaten by {by} in {names}. This one is closest to the best overall."]
    lost = "; ".join(loss.said for loss in choice.gives_up(name))
    said.append(f"It gives up: {lost}." if lost else "It gives up nothing that the runs can tell.")
    if choice.alike:
        said.append(f"The runs do not distinguish it from {joined(choice.alike)}.")
    if choice.lost:
        fewer = joined([f"{name} ({people:,.0f})" for name, people in choice.lost.items()])
        baseline = choice.found.baseline
        said.append(f"Not considered, as they reach fewer people than {baseline}: {fewer}.")
    yield Fact("What is recommended?", name, " ".join(said))


def _choice_parts(choice: Frontier) -> Iterator[Part]:
    """Yield the variants on the front, with their disadvantages, and the others."""
    names = joined([aim.name for aim in choice.aims])
    yield (
        f"A variant is beaten by another that is at least as good in {names}, and better in "
        "one of them with 95 % confidence: a finish by its median, other figures by their means. "
        "Recommended is, of those that none beats and "
        f"that don't surely reach over 1 % fewer people than {choice.found.baseline}, the one that "
        "is least short of the best: shares of the time until done, of the people reached and of "
        "the cost of each person reached are added up."
    )
    rows = []
    for name in choice.best:
        what = "; ".join(loss.said for loss in choice.gives_up(name))
        marked = f"{name} (recommended)" if name == choice.recommended else name
        rows.append((marked, what or "nothing that the runs can tell"))
    yield FigureTable("Beaten by none", ("gives up",), tuple(rows))
    beaten = [(name, loss.than, loss.said) for name, loss in choice.beaten.items()]
    if beaten:
        yield FigureTable("Beaten", ("by", "because of"), tuple(beaten))


def _facts(choice: Frontier) -> Iterator[Fact]:
    """Yield the best variant by each figure, and its difference from the baseline."""
    found = choice.found
    rows = experiment_text.by_variant(found.run_differences)
    for aim in _AIMS if found.scenario.costs is not None else (FINISH, REACHED):
        value, name = choice.best_by(aim)
        if not isfinite(value):
            yield Fact(aim.question, "None finishes in half of its runs")
            continue
        row = rows.get((name, aim.column))
        effect = experiment_text.difference_text(row) if row else ""
        against = f"; against {found.baseline}: {effect}" if row else ""
        answer = name if aim in choice.aims else "All are alike"
        yield Fact(aim.question, answer, f"{_said(found, aim, value)}{against}.")
    yield _sure(found)


def _shortens_retries(found: Sweep) -> bool:
    """Return True if a variant has a shorter retry interval than the baseline."""
    changed = {change.path for variant in found.variants for change in variant.changes}
    if not any(path.endswith(".retryInterval") for path in changed):
        # Making the scenarios may mean reading a long CSV file again
        return False
    scenarios = {variant.name: variant.of(found.scenario) for variant in found.variants}
    return any(shortens_retries(one, scenarios[found.baseline]) for one in scenarios.values())


def _closer(found: Sweep, further: Mapping[str, Help]) -> Iterator[Fact]:
    """Yield the bottlenecks of the baseline and the best variant, and what would help there."""
    for name, measured in further.items():
        which = f"{name}, the baseline" if name == found.baseline else name
        runs = found.by_name[name].runs
        campaigns = sum(part.scope == "campaign" for part in runs[0].scopes)
        question = f"What holds it back: {which}?"
        yield holding_fact(question, holding(runs), campaigns)
        if measured is not None:
            yield help_fact(measured, which)


def _said(found: Sweep, aim: Aim, value: float) -> str:
    if aim is FINISH:
        return f"Half of the runs are done by {short_text(round(1000 * value))} Thai time"
    costs = found.scenario.costs
    unit = costs.currency if aim is COST and costs else "people"
    return f"{amount_text(aim.figure, value)} {unit} on average"


def _sure(found: Sweep) -> Fact:
    whole = found.run_differences
    shown = whole[whole["figure"].isin([aim.column for aim in _AIMS])]
    real = int(shown["real"].sum())
    runs, equal = experiment_text.runs_text(found), found.together
    even = "" if equal is found else f" What is best is judged by the first {equal.replications}."
    return Fact(
        "How sure is that?",
        f"{runs} runs of each variant",
        f"{real} of {len(shown)} differences to {found.baseline} are real: beyond chance with 95 % "
        "confidence. All variants met the same chance, so they are compared run by run." + even,
    )


def _sections(choice: Frontier, further: Mapping[str, Help]) -> Iterator[Section]:
    found = choice.found
    (variants, *minus), campaigns = experiment_text.sweep_tables(found)
    if isinstance(found, Comparison):
        said_differently = [*experiment_text.comparison_sentences(found)]
        changed = experiment_text.changed_tables(found)
        yield Section("What the files say differently", [*said_differently, *changed])
    if choice.aims:
        yield Section("What to choose", [*_choice_parts(choice)])
    if found.breaches:
        yield Section("Not allowed", [Notes(not_allowed(found.breaches.items()))])
    caveats = [SHORTER_RETRIES] if _shortens_retries(found) else []
    yield Section("Variants", [variants, *_cost_table(found), *caveats])
    if minus:
        shifts = experiment_text.more_probable_sentences(found)
        yield Section("Differences", [HOW_COMPARED, *shifts, *minus])
    if found.decided is not None:
        verdicts = experiment_text.decided_tables(found)
        yield Section("Decided", [*experiment_text.decided_sentences(found), *verdicts])
    if campaigns:
        yield Section("Each campaign", campaigns)
    yield Section("What holds each variant back", [_holding_table(found)])
    parts = [*_help_parts(found, further)]
    if parts:
        yield Section("What would help", parts)
    yield Section("Pictures", [Grid([*_pictures(found)])])


def _cost_table(found: Sweep) -> Iterator[FigureTable]:
    """Yield the mean cost of each variant in its parts, if the scenario has costs."""
    if found.scenario.costs is None:
        return
    table = found.intervals()
    rows = experiment_text.by_variant(table[table["scope"] == "run"])
    parts = {name: cost_parts({part: rows[name, part]["mean"] for part in ("cost", *COST_PARTS)})
             for name in found.names}  # fmt: skip
    heads = [
        head
        for head in COST_PARTS.values()
        if any(own[head] >= LEAST_PART for own in parts.values())
    ]
    cells = [
        (name, *(amount_text("cost", own[head]) for head in heads)) for name, own in parts.items()
    ]
    yield FigureTable(f"Mean cost, {found.scenario.costs.currency}", tuple(heads), tuple(cells))


def _holding_table(found: Sweep) -> FigureTable:
    rows = [
        (name, held.reason, held.how_often, held.said)
        for name, own in found.by_name.items()
        if (held := holding(own.runs)) is not None
    ]
    return FigureTable("Variant", ("reason", "how often", "in the first such run"), tuple(rows))


def _help_parts(found: Sweep, further: Mapping[str, Help]) -> Iterator[Part]:
    """Yield the levers of each variant examined more closely."""
    yield from dict.fromkeys(
        reason.said for reason in further.values() if isinstance(reason, NotMeasured)
    )
    measured = {name: found for name, found in further.items() if isinstance(found, WhatIf)}
    if not measured:
        return
    yield how_measured("the variant as it is", [*measured.values()])
    currency = found.scenario.costs.currency if found.scenario.costs else None
    for name, what_if in measured.items():
        which = (
            f"{name} (baseline), changed by" if name == found.baseline else f"{name}, changed by"
        )
        yield effect_table(what_if, currency, which)
    yield from not_allowed_notes(measured.values())
    yield from retry_notes(measured.values())


def _pictures(found: Sweep) -> Iterator[Picture]:
    """Yield the figures, high enough for the names of all variants."""
    plot = found.plot
    width, height = SIZE
    size = (width, max(height, 1.4 + 0.36 * names_of(found)))
    band = "with the band that holds nine runs of ten"
    said = f"When half of the runs of each variant are done, {band}."
    yield picture("finish", plot.curve, said, size)

    reached = partial(plot.curve, "people_reached")
    said = f"How many people each variant reaches on average, {band}."
    yield picture("reached", reached, said, size)
    if found.scenario.costs is not None:
        said = f"What each variant costs on average, {band}."
        yield picture("cost", partial(plot.curve, "cost"), said, size)
        said = (
            "Mean cost against the instant at which half of the runs are done; a ring marks the "
            "variants than which no other is both cheaper and earlier, whomever they reach."
        )
        yield picture("trade", plot.cost, said, size)
