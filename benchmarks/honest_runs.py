"""Simulated runs whose truth is known, for `honesty.py`: pools of runs, and samples of them.

Each scenario is simulated `POOL` times. The truth of a mean is that of the pool, charges that are
known exactly being expected ones; experiments are samples of it without replacement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from math import inf, isfinite, isnan, nan
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from dialsim.engine import prepare
from dialsim.engine.world import World
from dialsim.experiments.expression import read_expression
from dialsim.experiments.goal import read_goal
from dialsim.experiments.intervals import mean_interval, paired_difference
from dialsim.experiments.optimum import optimize
from dialsim.experiments.run_figures import RunFigures, figures_of
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.search import Effort, Search
from dialsim.experiments.sweep import compare
from dialsim.experiments.variants import value_range
from dialsim.interface.instants import DAY, midnight
from dialsim.results.figures import COST_PARTS
from dialsim.results.result import result_of
from dialsim.scenario.loading import loads
from dialsim.scenario.scenario import Scenario

POOL = 1500
RUNS = (10, 20, 50, 100)
ACME = "organizations.Acme"
JANUARY = f"{ACME}.campaigns.January"
LINES, ATTEMPTS = f"{ACME}.maxConcurrentCalls", f"{JANUARY}.schedule.maxAttempts"
RETRY = f"{JANUARY}.schedule.retryInterval"
MINUTE_MS = 60_000
ALWAYS = frozenset({"finish", "final_at", "cost", "calling_days", "people", "people_lost",
                    "people_reached", "reach_share", "talk_minutes", "cost_per_reached",
                    *COST_PARTS})  # fmt: skip


def scenario(
    people: int,
    *settings: str,
    close: str = "19:00",
    talk: str = "{dist: lognormal, mean: 75s, sd: 88s, min: 2s, max: 10m}",
) -> Scenario:
    """One campaign that calls made-up people every day from 09:00 on."""
    days = ", ".join(
        f'{{dayOfWeek: {day}, time: [{{start: "09:00", end: "{close}"}}]}}' for day in range(1, 8)
    )
    return loads(f"""
name: Honesty
costs: {{perDial: 0.5, perMinute: 2}}
behaviours:
  default:
    outcomes: {{answered: 0.5, noAnswer: 0.33, busy: 0.05, failed: 0.12}}
    talkTime: {talk}
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents: [{{name: A}}]
    campaigns:
      - name: January
        agent: A
        recipients: {{count: {people}}}
        schedule:
          startDateTime: 2026-01-05T02:00:00Z
          timeWindows: [{days}]
""").with_(*settings)


class Pool:
    """Runs of a scenario and of its variants, which meet the same chance."""

    def __init__(self, base: Scenario, variants: Sequence[Sequence[str]] = ((),)) -> None:
        self.base = base
        self.specs = [RunSpec(base.with_(*changes)) for changes in variants]
        self.changes = {
            spec.digest: changes for spec, changes in zip(self.specs, variants, strict=True)
        }
        self._runs: dict[str, list[RunFigures]] = {}

    def runs(self, spec: RunSpec) -> list[RunFigures]:
        """Return the runs of a variant; they are made when first asked for."""
        if spec.digest not in self._runs:
            prepare("compiled")
            made, world = [], None
            for k in range(POOL):
                world = World(spec.scenario, spec.seed, k, world)
                made.append(figures_of(result_of(world, "compiled"), ALWAYS))
            self._runs[spec.digest] = made
        return self._runs[spec.digest]

    def truth(self, text: str, which: int = 0) -> float:
        """Return the true mean of an expression, by all runs; of an instant since its origin."""
        spec = self.specs[which]
        runs = self.runs(spec)
        figure = read_expression(text, spec.scenario)
        values = figure.in_tables(runs, spec.scenario.calling_begins)
        known = figure.facts_in_tables(runs, spec.bounds)
        return float(known.expected(values).mean()) if np.isfinite(values).all() else inf

    def sample(self, chance: np.random.Generator, n: int) -> list[list[RunFigures]]:
        """Return some runs of each variant, of the same replications."""
        chosen = chance.choice(POOL, n, replace=False)
        return [[self.runs(spec)[k] for k in chosen] for spec in self.specs]


@dataclass
class Row:
    """Measured statements of one kind: how many were made, and how many of those are true.

    `nominal` is the share that is promised to be true, or for verdicts to be wrong at most.
    """

    statement: str
    nominal: str
    n: int
    experiments: int
    printed: int = 0
    right: int = 0
    width: float = 0.0

    @property
    def share_printed(self) -> float:
        return self.printed / self.experiments

    @property
    def share(self) -> float:
        """The share that is right of what was printed; of verdicts, the share wrong of all."""
        if self.nominal.startswith("≤"):
            return (self.printed - self.right) / self.experiments
        return self.right / self.printed if self.printed else nan


def _count(row: Row, low: float, high: float, truth: float) -> None:
    if isnan(low) or not (isfinite(low) or isfinite(high)):
        return
    row.printed += 1
    row.right += low <= truth <= high


def _samples(experiments: int, n: int) -> int:
    """Return the number of samples of `n` runs: as many runs in all as for the greatest n.

    Small samples are cheap, and intervals of few runs are the hardest.
    """
    return experiments * max(RUNS) // n


def means(
    name: str, pool: Pool, texts: Sequence[str], experiments: int, which: int = 0
) -> Iterator[Row]:
    """Intervals of means of expressions, as `run --replications` and `sweep` print them."""
    spec = pool.specs[which]
    for text in texts:
        figure, truth = read_expression(text, spec.scenario), pool.truth(text, which)
        for n in RUNS:
            row = Row(f"mean of {text}: {name}", "95 %", n, _samples(experiments, n))
            chance = np.random.default_rng((n, len(text)))
            for _ in range(row.experiments):
                runs = pool.sample(chance, n)[which]
                values = figure.in_tables(runs, spec.scenario.calling_begins)
                found = mean_interval(values, 0.95, figure.facts_in_tables(runs, spec.bounds))
                _count(row, found.low, found.high, truth)
            yield row


def gaps(name: str, pool: Pool, texts: Sequence[str], experiments: int) -> Iterator[Row]:
    """Intervals of paired differences, the second variant minus the first."""
    for text in texts:
        figures = [read_expression(text, spec.scenario) for spec in pool.specs]
        truth = pool.truth(text, 1) - pool.truth(text, 0)
        for n in RUNS:
            chance = np.random.default_rng((n, 1 + len(text)))
            row = Row(f"difference of mean {text}: {name}", "95 %", n, _samples(experiments, n))
            for _ in range(row.experiments):
                sides = pool.sample(chance, n)
                values, known = [], []
                for figure, spec, runs in zip(figures, pool.specs, sides, strict=True):
                    values.append(figure.in_tables(runs, spec.scenario.calling_begins))
                    known.append(figure.facts_in_tables(runs, spec.bounds))
                found = paired_difference(values[1], values[0], 0.95, (known[1], known[0]))
                _count(row, found.low, found.high, truth)
            yield row


def compared(name: str, pool: Pool, texts: Sequence[str], experiments: int) -> Iterator[Row]:
    """Intervals in the table of differences of `compare`, the second scenario minus the first.

    `texts` are figures of the whole run, and `finish` with `finish_by_DAY` for its median and for
    the probability of finishing by the end of a day.
    """
    files = {str(k): spec.scenario for k, spec in enumerate(pool.specs)}
    shown = [text for text in texts if "(" in text]
    for n in RUNS:
        found = {text: Row(f"compare: {_statistic(text)}: {name}", "95 %", n, experiments)
                 for text in texts}  # fmt: skip
        truths = {text: _true_difference(pool, text) for text in texts}
        chance = np.random.default_rng((n, 2))
        for _ in range(experiments):
            place = FromPool(pool, chance.choice(POOL, n, replace=False))
            with instead_of_runner("comparison", place):
                table = compare(files, n, figures=shown).differences()
            rows = table[table["scope"] == "run"].set_index("figure")
            for text, row in found.items():
                figure = "finish_seconds" if text == "finish" else text
                if figure in rows.index:
                    _count(row, *rows.loc[figure, ["low", "high"]], truths[text])
        yield from found.values()


def _statistic(text: str) -> str:
    if text == "finish":
        return "median difference of finish"
    instant, _, day = text.partition("_by_")
    if day:
        return f"difference of the probability of {instant} by {day}"
    return f"difference of mean {text.removeprefix('mean(').removesuffix(')')}"


def _true_difference(pool: Pool, text: str) -> float:
    """Return the difference of the statistic that `compare` shows, by all runs of a pool."""
    instant, _, day = text.partition("_by_")
    if instant != "finish":
        name = text.removeprefix("mean(").removesuffix(")")
        return pool.truth(name, 1) - pool.truth(name, 0)
    finish = read_expression("finish", pool.base)
    first, second = (finish.of(pool.runs(spec)) for spec in pool.specs)
    if not day:
        return float(np.median(second - first)) / 1000
    end = midnight(date.fromisoformat(day)) + DAY
    return float((second <= end).mean() - (first <= end).mean())


class FromPool:
    """In place of a runner: the replications of a spec are those of a pool, in a chosen order."""

    def __init__(self, pool: Pool, order: NDArray[np.intp]) -> None:
        self._pool, self._order = pool, order
        self.ahead = self.made = 0

    def replicate(
        self, specs: Sequence[RunSpec], count: int, asked: frozenset[str] | None = None
    ) -> None:
        assert asked is None or asked <= ALWAYS, asked - ALWAYS
        for spec in specs:
            runs = self._pool.runs(spec)
            for k in range(len(spec.finished), count):
                spec.finished[k] = runs[self._order[k]]
                self.made += 1


@contextmanager
def instead_of_runner(module: str, place: FromPool) -> Iterator[None]:
    """Have a module of experiments take its runs from a pool."""

    @contextmanager
    def runner(*_: object, **__: object) -> Iterator[FromPool]:
        yield place

    with mock.patch(f"dialsim.experiments.{module}.runner", runner):
        yield


FIRST, MOST = 8, 400
"""The runs of a plan's first look, and of its last."""


def verdicts(
    name: str, pool: Pool, goals: Sequence[tuple[str, float]], experiments: int
) -> Iterator[Row]:
    """Goals that are narrowly missed: `mean(FIGURE) <= BOUND` with a bound below the truth.

    Each is an expression and the share of its true mean at which the bound is.
    """
    scenario = pool.specs[0].scenario
    for text, share in goals:
        truth = pool.truth(text)
        is_time = read_expression(text, scenario).is_instant
        bound = f"{share * truth:.3f}" + ("s" if is_time else "")
        sign = "<=" if share < 1 else ">="
        goal = f"mean({text}) {sign} {bound}"
        yield verdict(f"{goal}, truth {truth:.1f}: {name}", pool, goal, False, experiments)


def verdict(statement: str, pool: Pool, goal: str, met: bool, experiments: int) -> Row:
    """Count verdicts on a goal that are sure and wrong, of all; `met` is the truth."""
    wanted, axis = read_goal(goal, pool.base), value_range("1", "1")
    effort = Effort(FIRST, MOST)
    chance = np.random.default_rng(len(goal))
    row = Row(f"sure of {statement}", "≤ 5 %", MOST, experiments)
    for _ in range(experiments):
        place = FromPool(pool, chance.permutation(POOL))
        search = Search(place, pool.base, "seed", axis, wanted, effort)
        search.settle([0])
        estimate = search.at(0)
        row.printed += estimate.sure
        row.right += estimate.sure and estimate.met is met
        row.width += place.made / experiments
    return row


def deadlines(experiments: int) -> Iterator[Row]:
    """Deadlines that most runs meet by far, and that runs of another kind miss by far."""
    goal = "p95(finish) <= 120h"
    tries = f"{RETRY}=86400000"
    alone = scenario(1, f"{ATTEMPTS}=10", tries, *_dead(0.942))
    yield verdict(f"{goal}: 6 % can't be reached", Pool(alone), goal, False, experiments)
    some = scenario(15, f"{ATTEMPTS}=6", tries, *_dead(0.996))
    goal = "p95(finish) <= 100h"
    yield verdict(f"{goal}: 15 people, one of them dead in 6 %", Pool(some), goal, False,
                  experiments)  # fmt: skip
    talk = f"{{dist: empirical, values: [{'1m, ' * 200}590m]}}"
    once = scenario(12, f"{ATTEMPTS}=1", "behaviours.default.outcomes={answered: 1}", talk=talk)
    goal = "p95(finish) <= 9h"
    yield verdict(f"{goal}: 1 call of 201 takes the day", Pool(once), goal, False, experiments)
    goal = "p95(finish) <= 30h"
    usual = Pool(scenario(60, f"{ATTEMPTS}=3"))
    yield verdict(f"{goal}: default recipients, done in 3 h", usual, goal, True, experiments)


def _dead(reachable: float) -> list[str]:
    """Return settings with which a share of the people never answer, and all others nearly do."""
    answered = reachable - 0.001
    return [
        f"behaviours.default.outcomes={{answered: {answered}, noAnswer: {1 - answered}}}",
        f"behaviours.default.people={{reachable: {reachable}, concentration: 1000}}",
    ]


def optima(
    name: str,
    pool: Pool,
    vary: Mapping[str, Sequence[str]],
    experiments: int,
    **objective: str,
) -> Iterator[Row]:
    """Optima by `optimize`: wrong is a sure answer that misses the goal or is not the best.

    The best is known by all runs of the pool; answers within the indifference of it are right.
    """
    ((way, text),) = objective.items()
    figure = text.removeprefix("mean(").removesuffix(")")
    losses, least = {}, inf
    for spec in pool.specs:
        runs = pool.runs(spec)
        expression = read_expression(figure, spec.scenario)
        values = expression.in_tables(runs, spec.scenario.calling_begins)
        mean = float(expression.facts_in_tables(runs, spec.bounds).expected(values).mean())
        loss = -mean if way == "maximize" else mean
        key = tuple(change.rpartition("=")[2] for change in pool.changes[spec.digest])
        losses[key] = loss
        least = min(least, losses[key])
    row = Row(
        f"optimum, {way} {text}: {name}",
        "≤ 5 %",
        MOST,
        experiments,
    )
    chance = np.random.default_rng(len(name))
    for _ in range(experiments):
        place = FromPool(pool, chance.permutation(POOL))
        with instead_of_runner("optimum", place):
            found = optimize(pool.base, vary, max_replications=MOST, **objective)
        key = tuple(str(value) for value in found.best.values)
        row.printed += found.sure
        row.right += found.sure and losses[key] <= least + 0.005 * abs(least)
        row.width += place.made / experiments
    yield row


def rows(experiments: int) -> Iterator[Row]:
    """Measure all statements about simulated runs."""
    attempts = [[f"{ATTEMPTS}=2"], [f"{ATTEMPTS}=3"]]
    short = scenario(20, f"{RETRY}=1200000", f"{ATTEMPTS}=3", close="09:52")
    lines = [[f"{LINES}=2"], [f"{LINES}=3"]]
    spill = Pool(short, lines)
    name = "20 people, 52 minutes a day"
    yield from means(f"{name}, 2 lines", spill, ["finish"], experiments)
    yield from means(f"{name}, 3 lines: 1 run in 200 spills", spill, ["finish"], experiments, 1)
    yield from gaps(f"{name}, 3 lines against 2", spill, ["finish"], experiments)
    both = ["finish", "finish_by_2026-01-05", "mean(finish)"]
    yield from compared(f"{name}, 3 lines against 2", spill, both, experiments)
    late = [("finish", 0.97), ("finish", 1.03)]
    yield from verdicts(f"{name}, 2 lines", spill, late, experiments)
    yield from optima(f"{name}: minutes against days", spill, {LINES: ["2", "3"]}, experiments,
                      minimize="mean(finish)")  # fmt: skip
    priced = Pool(short.with_("costs.perLineDay=50"), lines)
    yield from means(f"{name}, lines by day", priced, ["cost", "calling_days"], experiments)
    yield from gaps(f"{name}, lines by day, 3 against 2", priced, ["cost"], experiments)
    far = Pool(scenario(300, f"{ATTEMPTS}=1", f"{LINES}=10"))
    yield from means("300 people, far from closing", far, ["finish"], experiments)
    for spread in (3, 6.7):
        name = f"talk sd {spread:g} × mean"
        heavy = scenario(40, talk=f"{{dist: lognormal, mean: 75s, sd: {75 * spread:g}s}}")
        pool = Pool(heavy, attempts)
        texts = ["talk_minutes", "cost", "cost / people_reached"]
        yield from means(name, pool, texts, experiments)
        yield from gaps(f"{name}, 3 attempts against 2", pool, texts, experiments)
        hair = [("cost", 0.995), ("talk_minutes", 1.005), ("cost / people_reached", 0.995)]
        yield from verdicts(name, Pool(heavy.with_(f"{ATTEMPTS}=2")), hair, experiments)
    usual = Pool(scenario(60), attempts)
    texts = ["talk_minutes", "cost", "people_reached", "finish"]
    name = "default recipients, 3 attempts against 2"
    yield from gaps(name, usual, texts, experiments)
    yield from deadlines(experiments)
    both = ["finish", "mean(finish)", "talk_minutes", "cost", "people_reached"]
    yield from compared(name, usual, both, experiments)
    yield unfinished(experiments)
    grid = [[f"{LINES}={a}", f"{ATTEMPTS}={b}"] for a in (2, 4, 8) for b in (1, 2, 3)]
    ground, vary = Pool(scenario(40), grid), {LINES: ["2", "4", "8"], ATTEMPTS: ["1", "2", "3"]}
    for objective in ({"minimize": "mean(cost_per_reached)"}, {"maximize": "mean(people_reached)"},
                      {"minimize": "mean(finish)"}):  # fmt: skip
        yield from optima("3 × 3", ground, vary, experiments, **objective)


def unfinished(experiments: int) -> Row:
    """Count experiments with unfinished runs whose mean finish has finite limits: none may."""
    end = f"{JANUARY}.schedule.endDateTime=2026-01-05T04:10:00Z"
    pool = Pool(scenario(40, f"{ATTEMPTS}=3", end))
    row = Row("no limits of the mean finish if a run does not finish", "100 %", 20, experiments)
    chance, spec = np.random.default_rng(1), pool.specs[0]
    figure = read_expression("finish", spec.scenario)
    for _ in range(experiments):
        runs = pool.sample(chance, 20)[0]
        values = figure.in_tables(runs, spec.scenario.calling_begins)
        found = mean_interval(values, 0.95, figure.facts_in_tables(runs, spec.bounds))
        if np.isfinite(values).all():
            continue
        row.printed += 1
        row.right += not (isfinite(found.low) or isfinite(found.high))
    return row


COVERAGE, WRONG = 0.93, 0.05


def meets(row: Row) -> bool:
    """Whether a row keeps what is promised, chance apart (1 in 100).

    Where 100 runs are there, nine of ten intervals of charges are to be printed.
    """
    from scipy import stats

    if row.nominal.startswith("≤"):
        wrong = row.printed - row.right
        return bool(stats.binom.sf(wrong - 1, row.experiments, WRONG) > 0.01)
    printed = row.n < RUNS[-1] or row.share_printed >= 0.9 or row.nominal == "100 %"
    needed = 1.0 if row.nominal == "100 %" else COVERAGE
    return printed and bool(stats.binom.cdf(row.right, row.printed, needed) > 0.01)


def table(found: Sequence[Row]) -> str:
    """Format rows as Markdown, those of one statement at several numbers of runs in one line."""
    lines = ["| statement | nominal | measured, printed | runs |", "|---|---|---|---|"]
    statements = dict.fromkeys((row.statement, row.nominal) for row in found)
    for statement, nominal in statements:
        own = [row for row in found if row.statement == statement]
        measured = "; ".join(_measured(row) for row in own)
        lines.append(f"| {statement} | {nominal} | {measured} | "
                     f"{', '.join(str(row.n) for row in own)} |")  # fmt: skip
    return "\n".join(lines)


def _measured(row: Row) -> str:
    if row.nominal.startswith("≤"):
        return f"{100 * row.share:.1f} % wrong, sure in {100 * row.share_printed:.0f} %"
    return f"{100 * row.share:.1f} %, {100 * row.share_printed:.0f} %"
