"""Whether "95 %" and "sure" keep their word: experiments whose truth is known, many times over.

    python benchmarks/honesty.py              # four tables; some minutes
    python benchmarks/honesty.py --json       # one JSON document

Most figures are drawn from distributions instead of being simulated, so that their true mean is
known; `honest_runs.py` has simulated ones. What is made
of them is what `dialsim run --replications`, `dialsim plan` and `dialsim sweep --decide` make of
them.
Coverage is the share of the intervals that hold the true mean. One without an upper limit, printed
as "12 or more", holds it if it is not below; so coverage is told of all intervals, which have the
target, and of those with both limits. A verdict is wrong that is called sure and is not true. An
answer of a search that is sure is wrong unless it is the smallest value that meets the goal; one in
doubt, beside which smaller values are named, is wrong if it is too small. A sweep in which a
figure decides is wrong if any of its verdicts is. Exit status: 0 all targets are met, 1 one is
missed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite, isnan, log, nan, sqrt

import honest_runs
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dialsim.experiments.goal import read_goal
from dialsim.experiments.intervals import mean_interval
from dialsim.experiments.known_bounds import known_bounds_of
from dialsim.experiments.named_figures import FigureName, facts
from dialsim.experiments.run_figures import RunFigures, ScopeFigures
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.search import Effort, Search, doubtful, preferred
from dialsim.experiments.sweep import Deciding
from dialsim.experiments.variants import value_range
from dialsim.scenario.loading import loads

Chance = np.random.Generator
Draw = Callable[[Chance, int], NDArray[np.float64]]

RUNS = (10, 20, 50, 100)
COVERAGE, WRONG = 0.93, 0.05
HOUR, DAY = 3600.0, 86_400.0

SCENARIO = loads("""
name: Honesty
organizations:
  - name: Acme
    maxConcurrentCalls: 1
    agents: [{name: A}]
    campaigns:
      - name: January
        agent: A
        recipients: {count: 1}
        schedule:
          startDateTime: 2026-01-05T02:00:00Z
          # what no longer fits into today's hour comes a day later
          timeWindows: [{dayOfWeek: 1, time: [{start: "09:00", end: "10:00"}]},
                        {dayOfWeek: 2, time: [{start: "09:00", end: "10:00"}]},
                        {dayOfWeek: 3, time: [{start: "09:00", end: "10:00"}]},
                        {dayOfWeek: 4, time: [{start: "09:00", end: "10:00"}]},
                        {dayOfWeek: 5, time: [{start: "09:00", end: "10:00"}]},
                        {dayOfWeek: 6, time: [{start: "09:00", end: "10:00"}]},
                        {dayOfWeek: 7, time: [{start: "09:00", end: "10:00"}]}]
""")
LIMIT = "organizations.Acme.maxConcurrentCalls"
START = SCENARIO.organizations[0].campaigns[0].schedule.start_date_time


def spilling(share: float, spread: float = 180.0) -> Draw:
    """Finishes after some 50 minutes, but in a share of runs a day later."""

    def draw(chance: Chance, n: int) -> NDArray[np.float64]:
        return chance.normal(3000.0, spread, n) + DAY * (chance.random(n) < share)

    return draw


@dataclass(frozen=True)
class Figure:
    """A figure by its column of the tables, how it is drawn, and its true mean."""

    column: str
    draw: Draw
    mean: float


FIGURES = {
    "exponential": Figure("queue_wait_mean_seconds", lambda c, n: c.exponential(60, n), 60.0),
    "reach, binomial": Figure("people_reached", lambda c, n: c.binomial(300, 0.4, n) * 1.0, 120.0),
    "log-normal, sd 4 × mean": Figure(
        "talk_minutes", lambda c, n: c.lognormal(-log(17) / 2, sqrt(log(17)), n), 1.0
    ),
    "finish, 12 % spill": Figure("finish_seconds", spilling(0.12), 3000 + 0.12 * DAY),
    "finish, 4.75 % spill": Figure("finish_seconds", spilling(0.0475), 3000 + 0.0475 * DAY),
    "the same, otherwise alike": Figure(
        "finish_seconds", spilling(0.0475, 0.0), 3000 + 0.0475 * DAY
    ),
    "rare counts, mean 0.08": Figure("webhooks_lost", lambda c, n: c.poisson(0.08, n) * 1.0, 0.08),
}


@dataclass
class Covered:
    """Experiments of one figure and size: how many intervals there are, and how many hold."""

    figure: str
    runs: int
    experiments: int
    printed: int = 0
    held: int = 0
    with_both_limits: int = 0
    held_with_both: int = 0

    @property
    def share(self) -> float:
        return self.held / self.printed if self.printed else nan

    @property
    def share_with_both(self) -> float:
        return self.held_with_both / self.with_both_limits if self.with_both_limits else nan


def coverage(experiments: int, seed: int = 1) -> Iterator[Covered]:
    bounds = known_bounds_of(SCENARIO)
    for number, (name, figure) in enumerate(FIGURES.items()):
        for n in RUNS:
            chance = np.random.default_rng((seed, number, n))
            found = Covered(name, n, experiments)
            for _ in range(experiments):
                values = figure.draw(chance, n)
                drawn = figure.column.replace("finish_seconds", "finish")
                runs = _drawn_runs(drawn, values)
                known = facts(FigureName(drawn, None, None), runs, bounds)
                if drawn == "finish":
                    known = known.scaled(0.001)
                interval = mean_interval(values, 0.95, known)
                if isnan(interval.low) or not (isfinite(interval.low) or isfinite(interval.high)):
                    continue
                held = interval.low <= figure.mean <= interval.high
                both = isfinite(interval.low) and isfinite(interval.high)
                found.printed += 1
                found.held += held
                found.with_both_limits += both
                found.held_with_both += both and held
            yield found


def _drawn_runs(name: str, values: NDArray[np.float64]) -> list[RunFigures]:
    if name == "finish":
        values = START + 1000 * values
    return [
        RunFigures(k, START, (ScopeFigures("run", None, None, {name: value}),))
        for k, value in enumerate(values.tolist())
    ]


@dataclass(frozen=True)
class Claim:
    """A goal, what is drawn, whether that meets it, and the figures of `n` runs by name."""

    goal: str
    drawn: str
    true: bool
    draws: dict[str, Draw]


def finish(draw: Draw) -> dict[str, Draw]:
    return {"finish": lambda c, n: START + 1000 * draw(c, n)}


def coin(share: float) -> Draw:
    """Within the hour in a share of the runs, else an hour later; otherwise alike."""
    return lambda c, n: np.where(c.random(n) < share, 0.9 * HOUR, 1.9 * HOUR)


def reach(mean: float) -> dict[str, Draw]:
    return {"reach_share": lambda c, n: c.binomial(100, mean, n) / 100}


def counted(mean: float) -> dict[str, Draw]:
    return {"webhooks_lost": lambda c, n: c.poisson(mean, n) * 1.0}


def same(name: str) -> dict[str, Draw]:
    figure = FIGURES[name]
    return {figure.column: figure.draw}


REACH_AND_FINISH = "mean(reach_share) >= 0.9 and p95(finish) <= 1h"
AND_LOST = f"{REACH_AND_FINISH} and mean(webhooks_lost) <= 0.5"

CASES = [
    Claim("prob(finish <= 1h) >= 0.98", "97 % in time", False, finish(coin(0.97))),
    Claim("prob(finish <= 1h) >= 0.999", "97 % in time", False, finish(coin(0.97))),
    Claim("prob(finish <= 1h) >= 0.95", "95 % in time", True, finish(coin(0.95))),
    Claim("p95(finish) <= 1h", "94 % in time", False, finish(coin(0.94))),
    Claim("p95(finish) <= 1h", "95 % in time", True, finish(coin(0.95))),
    Claim("mean(finish) <= 1h", "4.75 % spill", False, finish(spilling(0.0475))),
    Claim("mean(finish) <= 1h", "4.75 % spill, else alike", False, finish(spilling(0.0475, 0.0))),
    Claim("mean(finish) <= 3h", "12 % spill", False, finish(spilling(0.12))),
    Claim("mean(queue_wait_mean_seconds) <= 59.9", "exponential, 60", False, same("exponential")),
    Claim("mean(queue_wait_mean_seconds) >= 60.1", "exponential, 60", False, same("exponential")),
    Claim("mean(people_reached) >= 120.1", "binomial, 120", False, same("reach, binomial")),
    Claim("mean(talk_minutes) <= 0.99", "log-normal, 1", False, same("log-normal, sd 4 × mean")),
    Claim("mean(talk_minutes) >= 1.01", "log-normal, 1", False, same("log-normal, sd 4 × mean")),
    Claim("mean(webhooks_lost) <= 0.079", "rare counts, 0.08", False, counted(0.08)),
    Claim("mean(webhooks_lost) >= 0.081", "rare counts, 0.08", False, counted(0.08)),
    Claim(REACH_AND_FINISH, "92 %; 94 % in time", False, reach(0.92) | finish(coin(0.94))),
    Claim(REACH_AND_FINISH, "89.9 %; 99 % in time", False, reach(0.899) | finish(coin(0.99))),
    Claim(REACH_AND_FINISH, "90 %; 95 % in time", True, reach(0.9) | finish(coin(0.95))),
    Claim(
        AND_LOST,
        "90 %; 95 % in time; 0.5",
        True,
        reach(0.9) | finish(coin(0.95)) | counted(0.5),
    ),
]


class Drawn:
    """In place of a laboratory: the replications of a subject are drawn, and not simulated."""

    def __init__(self, claim: Claim, chance: Chance, most: int) -> None:
        columns = {name: draw(chance, most) for name, draw in claim.draws.items()}
        self._figures = {"finish": np.full(most, float(START)), "cost": np.full(most, nan)}
        self._figures |= columns

    def replicate(self, subjects: Sequence[RunSpec], count: int, _: frozenset[str]) -> None:
        for subject in subjects:
            for k in range(len(subject.finished), count):
                values = {name: float(column[k]) for name, column in self._figures.items()}
                scopes = (ScopeFigures("run", None, None, values),)
                subject.finished[k] = RunFigures(k, START, scopes)


@dataclass
class Judged:
    """Experiments on one goal: how many verdicts are called sure, and how many of them wrongly."""

    goal: str
    drawn: str
    true: bool
    experiments: int
    sure: int = 0
    wrong: int = 0

    @property
    def share(self) -> float:
        return self.wrong / self.experiments


FIRST, MOST = 8, 400
"""The runs of a plan's first look, and of its last."""


def verdicts(experiments: int, seed: int = 1) -> Iterator[Judged]:
    axis, effort = value_range("1", "1"), Effort(FIRST, MOST)
    for number, claim in enumerate(CASES):
        goal = read_goal(claim.goal, SCENARIO)
        chance = np.random.default_rng((seed, 1000 + number))
        found = Judged(claim.goal, claim.drawn, claim.true, experiments)
        for _ in range(experiments):
            place = Drawn(claim, chance, MOST)
            search = Search(place, SCENARIO, "seed", axis, goal, effort)
            search.settle([0])
            estimate = search.at(0)
            found.sure += estimate.sure
            found.wrong += estimate.sure and estimate.met is not claim.true
        yield found


@dataclass(frozen=True)
class Steps:
    """Values from 1 on, of which the smallest that meets the goal is known.

    `draw` gives the finishes (s) of so many runs, a row a value; all values have the same luck.
    """

    name: str
    values: int
    truth: int
    draw: Callable[[Chance, int], NDArray[np.float64]]
    goal: str = "p95(finish) <= 1h"


def shares(*within: float) -> Callable[[Chance, int], NDArray[np.float64]]:
    """Within the hour in these shares of the runs of each value, else an hour later."""
    return lambda c, n: np.where(c.random(n) < np.array(within)[:, np.newaxis], 0.9, 1.9) * HOUR


ATTEMPTS, ANSWERING, ASKED, CROWD = 12, 0.25, 85, 100


def attempts(c: Chance, n: int) -> NDArray[np.float64]:
    """Within the hour if enough of a crowd answer one of so many attempts, else an hour later.

    The number who do is binomial, with the probability 1 − (1 − p)^k for k attempts.
    """
    answered = c.geometric(ANSWERING, (n, CROWD))
    reached = [(answered <= k).sum(axis=1) for k in range(1, ATTEMPTS + 1)]
    return np.where(np.array(reached) >= ASKED, 0.9, 1.9) * HOUR


def enough_attempts() -> int:
    """The truth of `attempts`, in closed form."""
    reach = 1 - (1 - ANSWERING) ** np.arange(1, ATTEMPTS + 1)
    return 1 + int(np.argmax(stats.binom.sf(ASKED - 1, CROWD, reach) >= 0.95))


MOST_LINES, CALLS, CALL_S, MANY_RUNS = 20, 300, 149.5, 100_000


def finish_of(count: int, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """When so many lines have made all calls; `lengths` has a row a call and a column a run."""
    runs = np.arange(lengths.shape[1])
    free_at = np.zeros((len(runs), count))
    for length in lengths:
        free_at[runs, free_at.argmin(axis=1)] += length
    latest: NDArray[np.float64] = free_at.max(axis=1)
    return latest


def lines(c: Chance, n: int) -> NDArray[np.float64]:
    """When lines have made all of a list of calls, of exponential lengths."""
    lengths = c.exponential(CALL_S, (CALLS, n))
    return np.array([finish_of(count, lengths) for count in range(1, MOST_LINES + 1)])


def enough_lines() -> int:
    """The truth of `lines`, by many runs: 16 are done within the hour in 95.3 % of them."""
    lengths = np.random.default_rng(1).exponential(CALL_S, (CALLS, MANY_RUNS))
    return next(n for n in range(14, 20) if (finish_of(n, lengths) <= HOUR).mean() >= 0.95)


def drawn_steps() -> list[Steps]:
    """Axes whose answers are known in closed form; in most the goal is met or missed by a hair."""
    return [
        Steps("a clear step", 10, 6, shares(0, 0, 0, 0.1, 0.5, 1, 1, 1, 1, 1)),
        Steps("2 % a step", 40, 24, shares(*np.minimum(0.49 + 0.02 * np.arange(40), 1))),
        Steps("a hair short, then clear", 8, 5, shares(0, 0.2, 0.7, 0.948, 0.99, 1, 1, 1)),
        Steps("a hair short, a hair beyond", 8, 5, shares(0, 0.2, 0.8, 0.948, 0.952, 0.985, 1, 1)),
        Steps("three a hair short", 8, 6, shares(0, 0.5, 0.947, 0.948, 0.949, 0.953, 0.99, 1)),
        Steps("just met", 8, 4, shares(0, 0.2, 0.7, 0.95, 0.98, 1, 1, 1)),
        Steps("attempts: binomial", ATTEMPTS, enough_attempts(), attempts),
        Steps("none sure: p99.9 of a step", 8, 5, shares(0, 0.5, 0.99, 0.998, 1, 1, 1, 1),
              "p99.9(finish) <= 1h"),
        Steps("none sure: all hairs", 6, 4, shares(0, 0.5, 0.947, 0.951, 0.952, 0.953)),
    ]  # fmt: skip


def simulated_steps() -> Steps:
    """Lines that work a list off: the answer comes from many runs, and is met by a hair."""
    return Steps("lines: 100,000 runs", MOST_LINES, enough_lines(), lines)


class DrawnSteps:
    """In place of a runner: the replications of each value are drawn, and not simulated."""

    def __init__(self, steps: Steps | Apart, chance: Chance) -> None:
        self._finishes = START + 1000 * steps.draw(chance, MOST)
        self.runs = self.ahead = 0

    def replicate(
        self, specs: Sequence[RunSpec], count: int, _: frozenset[str] | None = None
    ) -> None:
        for spec in specs:
            finishes = self._finishes[spec.scenario.organizations[0].max_concurrent_calls - 1]
            for k in range(len(spec.finished), count):
                values = {"finish": float(finishes[k]), "cost": nan}
                scopes = (ScopeFigures("run", None, None, values),)
                spec.finished[k] = RunFigures(k, START, scopes)
                self.runs += 1


@dataclass
class Searched:
    """Searches along one axis: how many answers are sure, in doubt, and wrong; runs on average.

    Of some, `without`, no value seemed to meet the goal.
    """

    name: str
    truth: int
    searches: int
    sure: int = 0
    sure_wrong: int = 0
    in_doubt: int = 0
    too_small: int = 0
    without: int = 0
    runs: float = 0.0

    @property
    def share(self) -> float:
        return (self.sure_wrong + self.too_small) / self.searches


def searches(among: Sequence[Steps], experiments: int, seed: int = 1) -> Iterator[Searched]:
    for number, steps in enumerate(among):
        chance = np.random.default_rng((seed, 2000 + number))
        found = Searched(steps.name, steps.truth, experiments)
        axis, effort = value_range("1", str(steps.values)), Effort(FIRST, MOST)
        goal = read_goal(steps.goal, SCENARIO)
        for _ in range(experiments):
            place = DrawnSteps(steps, chance)
            search = Search(place, SCENARIO, LIMIT, axis, goal, effort)
            index = preferred(search)
            found.runs += place.runs / experiments
            if index is None:  # which happens only where the last value is in doubt itself
                found.without += 1
            elif doubtful(search, index) or not search.at(index).sure:
                found.in_doubt += 1
                found.too_small += index + 1 < steps.truth
            else:
                found.sure += 1
                found.sure_wrong += index + 1 != steps.truth
        yield found


VARIANTS, MOST_OF_EACH, BASE_S, ALIKE = 12, 100, 3000.0, 0.01


@dataclass(frozen=True)
class Apart:
    """A baseline and variants, of which is known what is true of more than half of the pairs.

    `later` gives by how much (s) so many variants finish after the baseline, in so many runs.
    """

    name: str
    true: tuple[str, ...]
    later: Callable[[Chance, int, int], NDArray[np.float64]]

    def draw(self, chance: Chance, n: int) -> NDArray[np.float64]:
        base = np.full((1, n), BASE_S)
        return np.concatenate([base, base + self.later(chance, VARIANTS - 1, n)])


def either(share: float, in_share: float, else_: float) -> Callable[..., NDArray[np.float64]]:
    """One difference in a share of the pairs, another in the others."""
    return lambda c, k, n: np.where(c.random((k, n)) < share, in_share, else_)


def drawn_variants() -> list[Apart]:
    """Variants whose verdicts are known in closed form; in most the truth lies at a hair."""
    edge = ALIKE * BASE_S
    half = edge / float(stats.norm.ppf(0.75))
    steps = 60.0 * np.arange(1, VARIANTS)[:, np.newaxis]
    return [
        Apart("clear steps of 60 s", ("less",), lambda c, k, n: c.normal(-steps, 40, (k, n))),
        Apart("no difference", (), lambda c, k, n: c.normal(0, 4 * edge, (k, n))),
        Apart("alike in just half", (), lambda c, k, n: c.normal(0, half, (k, n))),
        Apart("alike in 52 %", ("alike",), either(0.52, 0.0, 600.0)),
        Apart("alike in nearly all", ("alike",), lambda c, k, n: c.normal(0, edge / 3, (k, n))),
        Apart("skewed, median 0", (), lambda c, k, n: c.exponential(70, (k, n)) - log(2) * 70),
        Apart("sooner in 51 %, else a day later", ("less",), either(0.51, -60.0, DAY)),
        Apart("sooner, but in 4.75 % a day later", ("less",), either(0.0475, DAY, -60.0)),
        Apart("a third each", (), lambda c, k, n: c.choice([-600.0, 0.0, 600.0], (k, n))),
    ]


@dataclass
class DecidedSweeps:
    """Sweeps of one kind: sure verdicts, sweeps that have a wrong one, and runs on average."""

    name: str
    true: str
    sweeps: int
    verdicts: int = 0
    sure: int = 0
    wrong: int = 0
    runs: float = 0.0

    @property
    def share(self) -> float:
        return self.wrong / self.sweeps

    @property
    def within_chance(self) -> bool:
        """Whether so many are wrong in one of 100 experiments where just `WRONG` of all are.

        Where all claims lie at one half exactly that share is wrong, and not fewer.
        """
        return bool(stats.binom.sf(self.wrong - 1, self.sweeps, WRONG) > 0.01)


def decided(among: Sequence[Apart], sweeps: int, seed: int = 1) -> Iterator[DecidedSweeps]:
    names = [str(number) for number in range(1, VARIANTS + 1)]
    scenarios = [SCENARIO.with_(f"{LIMIT}={name}") for name in names]
    deciding = Deciding("finish", ALIKE, names, "1", MOST_OF_EACH, [SCENARIO])
    for number, apart in enumerate(among):
        chance = np.random.default_rng((seed, 3000 + number))
        found = DecidedSweeps(apart.name, " or ".join(apart.true) or "open", sweeps)
        for _ in range(sweeps):
            place = DrawnSteps(apart, chance)
            made = deciding.replicate(place, [RunSpec(scenario) for scenario in scenarios])
            sure = [part.verdict for part in made.decisions if part.verdict != "open"]
            found.verdicts += len(made.decisions)
            found.sure += len(sure)
            found.wrong += any(verdict not in apart.true for verdict in sure)
            found.runs += place.runs / sweeps
        yield found


def decided_table(found: Sequence[DecidedSweeps]) -> str:
    lines = [
        "| variants | so they are | verdicts | called sure | sweeps with a wrong one "
        f"| runs, of {VARIANTS * MOST_OF_EACH:,} |",
        "|---|---|---|---|---|---|",
    ]
    for part in found:
        lines.append(
            f"| {part.name} | {part.true} | {part.verdicts:,} | {part.sure:,} "
            f"| {part.wrong} ({100 * part.share:.1f} %) | {part.runs:,.0f} |"
        )
    return "\n".join(lines)


def search_table(found: Sequence[Searched]) -> str:
    lines = ["| values | truth | sure | of these wrong | in doubt | of these too small | none "
             "found | runs |", "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for part in found:
        wrong, small = (
            f"{count} ({100 * count / part.searches:.1f} %)"
            for count in (part.sure_wrong, part.too_small)
        )
        lines.append(
            f"| {part.name} | {part.truth} | {part.sure} | {wrong} | {part.in_doubt} | {small} "
            f"| {part.without} | {part.runs:,.0f} |"
        )
    return "\n".join(lines)


def coverage_table(found: Sequence[Covered]) -> str:
    lines = ["| the mean of | " + " | ".join(f"{n} runs" for n in RUNS) + " |",
             "|---|" + "---|" * len(RUNS)]  # fmt: skip
    for name in FIGURES:
        cells = [
            f"{part.share:.3f}; {part.share_with_both:.3f} of {part.with_both_limits}"
            for part in found
            if part.figure == name
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict_table(found: Sequence[Judged]) -> str:
    lines = ["| goal | drawn | so it is | called sure | of these wrong |", "|---|---|---|---|---|"]
    for part in found:
        truth = "met" if part.true else "missed"
        share = f"{100 * part.share:.1f} %"
        lines.append(
            f"| `{part.goal}` | {part.drawn} | {truth} | {part.sure} | {part.wrong} ({share}) |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--experiments", type=int, default=400, help="of each kind; default: 400")
    parser.add_argument("--searches", type=int, default=300, help="of each kind; default: 300")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    experiments, searched = arguments.experiments, arguments.searches
    seed = arguments.seed
    # Tables are printed as soon as they are measured: the last one takes most of the time.
    show = (lambda *_: None) if arguments.json else partial(print, flush=True)
    show(f"{5 * experiments} intervals and {experiments} verdicts of each kind, seed {seed}\n")
    covered = [*coverage(5 * experiments, seed)]  # these are quick
    show(f"Coverage of 95 % intervals, at least {COVERAGE}; of those with both limits, and their "
         f"number:\n\n{coverage_table(covered)}\n")  # fmt: skip
    judged = [*verdicts(experiments, seed)]
    show(f"Wrong verdicts, at most {100 * WRONG:.0f} %:\n\n{verdict_table(judged)}\n")
    found = [*searches([*drawn_steps(), simulated_steps()], searched, seed)]
    show(f"Answers of {searched} searches, of which at most {100 * WRONG:.0f} % may be wrong:\n\n"
         f"{search_table(found)}\n")  # fmt: skip
    sweeps = 4 * searched  # they are quick, too
    apart = [*decided(drawn_variants(), sweeps, seed)]
    show(f"{sweeps} sweeps with --decide, of which at most {100 * WRONG:.0f} % may have a wrong "
         f"verdict, chance apart:\n\n{decided_table(apart)}\n")  # fmt: skip
    simulated = [*honest_runs.rows(searched)]
    show(f"Statements about {honest_runs.POOL:,} simulated runs of each scenario, by {searched} "
         f"samples:\n\n{honest_runs.table(simulated)}\n")  # fmt: skip
    met = (
        all(part.share >= COVERAGE for part in covered)
        and all(part.share <= WRONG for part in (*judged, *found))
        and all(part.within_chance for part in apart)
        and all(map(honest_runs.meets, simulated))
    )
    show("PASS" if met else "FAIL")
    if arguments.json:
        tables = {"coverage": covered, "verdicts": judged, "searches": found,
                  "simulated": simulated, "sweeps": apart}  # fmt: skip
        parts = {
            name: [asdict(part) | {"share": part.share} for part in rows]
            for name, rows in tables.items()
        }
        print(json.dumps(parts | {"met": met}, indent=2))
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
