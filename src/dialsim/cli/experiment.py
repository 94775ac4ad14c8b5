"""`dialsim sweep` and `dialsim plan`, and the common parts of all commands with many runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar

import click

from dialsim.cli.program import (
    INTERRUPTED,
    Options,
    ProgressBar,
    announce,
    experiment_options,
    print_json,
    progress_bar,
    say_back,
    scenario_argument,
    with_options,
)

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.estimates import SettingRuns
    from dialsim.experiments.expression import Expression
    from dialsim.experiments.forecast import Forecast
    from dialsim.experiments.optimum import Optimum
    from dialsim.experiments.plan import Objective, Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.runner import RunSettings
    from dialsim.experiments.sweep import Adjustment, Sweep
    from dialsim.experiments.variants import Variant
    from dialsim.report.what_if import FurtherRuns
    from dialsim.results.summary_text import FigureTable
    from dialsim.scenario.scenario import Scenario


_Command = TypeVar("_Command", bound=Callable[..., None])


def _seconds(_: object, __: object, text: str | None) -> float | None:
    """Read a length of time such as `10s`, in seconds."""
    from dialsim.scenario.units import parse_duration

    if text is None:
        return None
    try:
        seconds = parse_duration(text) / 1000
    except ValueError as error:
        raise click.BadParameter(f"{text} {error}") from None
    if not seconds:
        raise click.BadParameter("a search needs more time than none, such as 10s")
    return seconds


@contextmanager
def resumable(kept: str | None) -> Iterator[None]:
    """Print what is kept after Ctrl-C; None: nothing."""
    try:
        yield
    except KeyboardInterrupt:
        said = f"{kept}; the same command goes on from there" if kept else "nothing was written"
        click.echo(f"Interrupted: {said}.", err=True)
        # The status that shells give to a program ended by Ctrl-C.
        raise click.exceptions.Exit(INTERRUPTED) from None


class SearchSettings(TypedDict):
    """Numbers of runs of a search, and its time limit in seconds."""

    replications: int
    max_replications: int
    within: NotRequired[float]


class Experiment:
    """Experiment of a command: runs, folder and answer.

    The kind is `replications`, `forecast`, `sweep`, `comparison`, `plan` or `optimum`.
    """

    def __init__(
        self,
        kind: str,
        scenarios: Sequence[Scenario],
        options: Options,
        arguments: Mapping[str, object],
        title: str | None = None,
    ) -> None:
        """Open the output folder, if requested; `arguments` are further inputs of the page.

        Only a comparison has several scenarios, and a title other than the first one's name. Raises
        ExistingOutput and OutputError like `ExperimentFolder.open`.
        """
        from dialsim.experiments.folder import ExperimentFolder

        self._kind, self._options, self._scenario = kind, options, scenarios[0]
        self._title = title or scenarios[0].name
        self._folder, self._kept = None, None
        if options.out is not None:
            self._kept = f"finished replications are kept in {options.out}"
            known = {**arguments, "what_if": options.what_if}
            self._folder = ExperimentFolder(
                options.out, kind, scenarios[0], options.seed, known, scenarios[1:]
            )
            self._folder.open(options.force)

    @contextmanager
    def running(self) -> Iterator[tuple[ProgressBar, RunSettings]]:
        """Yield a progress bar, and the settings of all runs of the experiment."""
        options = self._options
        with resumable(self._kept), progress_bar("Simulating", "runs") as progress:
            settings: RunSettings = {
                "jobs": options.jobs,
                "dask": options.dask,
                "store": options.out,
                "progress": progress,
                "engine": options.engine,
            }
            yield progress, settings

    def deliver(
        self,
        found: Replications | Forecast | Sweep | Plan | Optimum,
        document: object,
        report: Callable[[FurtherRuns], str],
        tables: Callable[[], Mapping[str, pd.DataFrame]],
        printed: Callable[[], tuple[Sequence[str], Sequence[FigureTable]]],
        settings: Callable[[], Sequence[SettingRuns]],
        expressions: Sequence[Expression] = (),
        **differences: Any,
    ) -> None:
        """Write the pages, whose further runs are kept with the others, and the tables; then print.

        `found` is the result, of a sweep with its `compared` and `baseline` (`sheet_of`). The
        workbook has the `settings` side by side, with `expressions` behind their figures.
        """
        from dialsim.experiments.experiment_text import print_experiment

        options, sheet = self._options, None
        if self._folder is not None or options.language != "en":
            from dialsim.report.sheet import NAME as SHEET
            from dialsim.report.sheet import sheet_of

            about = {"scenario": self._scenario, "seed": options.seed, **differences}
            sheet = sheet_of(found, options.language, **about)
        if self._folder is not None and sheet is not None:
            from dialsim.report.what_if import FurtherRuns
            from dialsim.report.writing import put

            place = self._folder.path
            # Before `finish`, which marks the folder as complete.
            with resumable(self._kept), progress_bar("What would help", "runs") as progress:
                further = FurtherRuns(
                    options.what_if, options.jobs, options.dask, place, progress, options.engine
                )
                put(report(further), place)
            put(sheet.html(), place, SHEET)
            if options.excel:
                from dialsim.experiments.estimates import settings_table
                from dialsim.results.excel import NAME, write_workbook

                said = [("Answer" if k == 0 else "", text) for k, text in enumerate(printed()[0])]
                side_by_side, units = settings_table(settings(), expressions)
                sheets = {"settings": side_by_side, **tables()}
                write_workbook(place / NAME, self._title, said, sheets, units)
            self._folder.finish(tables(), document)
        if options.form == "json":
            print_json(document)
            return
        first, figures = printed()
        if sheet is not None and options.language != "en":
            first = [sheet.decision]
        print_experiment(self._title, first, figures)
        if options.out is not None:
            click.echo(f"\nWritten to {options.out}")


def check_variants(variants: Sequence[Variant], scenario: Scenario) -> None:
    """Raise an error for the first variant that is invalid for a scenario."""
    from dialsim.errors import ExperimentError, ScenarioError

    for variant in variants:
        try:
            variant.of(scenario)
        except ScenarioError as error:
            said = str(error).removeprefix("--set ")
            raise ExperimentError(f"variant {variant.name}: {said}") from None


figure_option = click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="EXPRESSION",
    help="A figure made of others, to be shown as well, such as 'cost / people_reached'; may be "
    "given several times.",
)
adjust_option = click.option(
    "--adjust",
    type=click.Choice(["bonferroni", "holm"]),
    help="Guard against chance findings among many comparisons.",
)
decide_option = click.option(
    "--decide",
    metavar="FIGURE",
    help="Give a variant no more runs once it is told from the baseline in this figure, such as "
    "finish or 'cost / people_reached'; --replications is then the most.",
)
indifference_option = click.option(
    "--indifference",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="With --decide: what is alike within this share is decided, too; default: 0.005.",
)


def _count_option(name: str, default: int, text: str) -> Callable[[_Command], _Command]:
    """Return an option for a number of runs, of 2 or more."""
    return click.option(
        name,
        type=click.IntRange(min=2),
        default=default,
        show_default=True,
        metavar="N",
        help=text,
    )


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(
    short_help="Compare variants of a scenario: what would change, and is it real?",
    epilog="""\b
Example: dialsim sweep scenarios/first-campaign.yaml --out out/lines \\
    --vary lines=8..14:2

\b
One more day, or fewer windows:
    dialsim sweep scenarios/first-campaign.yaml \\
    --vary "January.windows-=Sat,Sun,Mon-Fri 12:00-13:00"

\b
A file for --variants:
    as it is: []
    two lines more: [lines=12]
    retries sooner:
      - January.retryInterval=30m

\b
A file for --design; an empty cell leaves a value as it is:
    variant,lines,seed
    as it is,,
    more lines,12,
    another seed,,2
""",
)
@scenario_argument
@click.option(
    "--vary",
    multiple=True,
    metavar="PATH=VALUES",
    help="Values to try, as 10,20,30 or 10..60:5; several are crossed.",
)
@click.option(
    "--design",
    type=_FILE,
    metavar="FILE.csv",
    help="A CSV with a path in each head cell and a variant in each row; see below.",
)
@click.option(
    "--variants",
    type=_FILE,
    metavar="FILE.yaml",
    help="Named what-ifs as YAML: under each name a list of PATH=VALUE; see below.",
)
@_count_option("--replications", 50, "How often each variant is run.")
@click.option("--baseline", metavar="NAME", help="The variant to compare with; default: the first.")
@decide_option
@indifference_option
@adjust_option
@figure_option
@experiment_options
@with_options
def sweep(
    scenario: Path,
    vary: tuple[str, ...],
    design: Path | None,
    variants: Path | None,
    replications: int,
    baseline: str | None,
    decide: str | None,
    indifference: float | None,
    adjust: Adjustment | None,
    figures: tuple[str, ...],
    options: Options,
) -> None:
    """Run variants of a scenario and print their figures, and what differs from the baseline.

    All variants call the same people, who react alike, so that little luck is left in a
    difference: it is real where its 95 % interval excludes 0.
    """
    from dialsim.experiments.estimates import check_baseline
    from dialsim.experiments.experiment_text import sweep_content
    from dialsim.experiments.expression import read_shown
    from dialsim.experiments.folder import sweep_document
    from dialsim.experiments.sweep import sweep as run_all
    from dialsim.scenario.loading import load

    loaded = load(scenario, overrides=options.overrides)
    listed = _variants(loaded, vary, design, variants)
    names = [variant.name for variant in listed]
    base = check_baseline(names, baseline)
    # All at once: the last variant of a sweep must not fail after an hour.
    check_variants(listed, loaded)
    for text in figures:
        read_shown(text, loaded)
    alike = _alike(decide, indifference, names, base, replications, [loaded])
    arguments = {"figures": list(figures)}
    experiment = Experiment("sweep", [loaded], options, arguments)
    if options.form == "text":
        say_back(loaded)
    with experiment.running() as (_, settings):
        found = run_all(
            loaded, listed, replications, figures=figures, decide=decide, indifference=alike,
            baseline=base, seed=options.seed, **settings,
        )  # fmt: skip
    compared = found.differences(base, adjust=adjust)
    seed = loaded.seed if options.seed is None else options.seed
    document = sweep_document(found, compared, base, seed, adjust)
    _deliver(experiment, found, compared, base, options.seed, document, sweep_content)


def _alike(
    decide: str | None,
    indifference: float | None,
    names: Sequence[str],
    baseline: str,
    most: int,
    scenarios: Sequence[Scenario],
) -> float:
    """Return the share within which a decision takes figures for alike; checks the decision."""
    from dialsim.experiments.sweep import INDIFFERENCE, Deciding

    if decide is None:
        if indifference is not None:
            raise click.UsageError("--indifference is for --decide: say which figure decides")
        return INDIFFERENCE
    share = INDIFFERENCE if indifference is None else indifference
    # Made only for its errors, which must come before the folder is opened.
    Deciding(decide, share, names, baseline, most, scenarios)
    return share


def _deliver(
    experiment: Experiment,
    found: Sweep,
    compared: pd.DataFrame,
    base: str,
    seed: int | None,
    document: object,
    content: Callable[..., tuple[list[str], list[FigureTable]]],
    **more: pd.DataFrame,
) -> None:
    """Write and print variants; `seed` is None if each has its own; `more` are further tables."""
    from dialsim.experiments.estimates import SettingRuns

    def report(further: FurtherRuns) -> str:
        from dialsim.report.writing import sweep_report

        return sweep_report(found, compared, base, seed, further)

    tables = {
        "runs": found.runs,
        "organizations": found.organizations,
        "campaigns": found.frame,
        "estimates": found.intervals(),
        "differences": compared,
    }
    if found.decided is not None:
        tables["decisions"] = found.decided.frame
    experiment.deliver(
        found,
        document,
        report,
        lambda: tables | more,
        lambda: content(found, compared, base),
        lambda: [SettingRuns(variant.name, runs, bounds) for variant, runs, bounds
                 in zip(found.variants, found.figures, found.all_bounds, strict=True)],
        found.expressions,
        compared=compared,
        baseline=base,
    )  # fmt: skip


def _variants(
    scenario: Scenario, vary: tuple[str, ...], design: Path | None, variants: Path | None
) -> list[Variant]:
    from dialsim.experiments.variants import crossed, read_design, read_variants

    if (len(vary) > 0) + (design is not None) + (variants is not None) != 1:
        raise click.UsageError("say what to try: one of --vary, --design and --variants")
    if design is not None:
        return read_design(design)
    if variants is not None:
        return read_variants(variants)
    return crossed(_crossed_paths(scenario, vary))


def _crossed_paths(scenario: Scenario, vary: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each path of `--vary`."""
    from dialsim.experiments.variants import read_vary

    pairs = [read_vary(text, scenario.first_day) for text in vary]
    full = [_full(scenario, path) for path, _ in pairs]
    for place, (path, _) in enumerate(pairs):
        if full[place] in full[:place]:
            raise click.UsageError(f"--vary {path} is given twice: put its values into one")
    return dict(pairs)


def _full(scenario: Scenario, path: str) -> str:
    """Expand the path of a varied setting, keeping a + or - at its end."""
    from dialsim.errors import DialsimError, ExperimentError
    from dialsim.scenario.loading import long_path

    bare = path.rstrip("+-")
    try:
        return long_path(scenario, bare) + path[len(bare) :]
    except DialsimError as error:
        raise ExperimentError(f"--vary {path}: {error}") from None


@click.command(
    short_help="Compare scenario files: which is better, and is it real?",
    epilog="Example: dialsim compare scenarios/first-campaign.yaml my-campaign.yaml --out out/two",
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, dir_okay=True),
    metavar="FILE FILE...",
)
@_count_option("--replications", 50, "How often each file is run.")
@click.option("--baseline", metavar="NAME", help="The file to compare with; default: the first.")
@decide_option
@indifference_option
@adjust_option
@figure_option
@experiment_options
@with_options
def compare(
    files: tuple[Path, ...],
    replications: int,
    baseline: str | None,
    decide: str | None,
    indifference: float | None,
    adjust: Adjustment | None,
    figures: tuple[str, ...],
    options: Options,
) -> None:
    """Run scenario files and print their figures, and what differs from the first.

    Campaigns are matched by name. All files meet the same chance: a campaign that stands at the
    same place in two files calls people who react alike, so that little luck is left in a
    difference. What the files say differently is printed as well, path by path.
    """
    from dialsim.experiments.comparison import compare as run_all
    from dialsim.experiments.comparison import names_of
    from dialsim.experiments.estimates import check_baseline
    from dialsim.experiments.experiment_text import comparison_content
    from dialsim.experiments.expression import read_shown
    from dialsim.experiments.folder import comparison_document
    from dialsim.scenario.loading import load

    if len(files) < 2:
        raise click.UsageError("name two files or more: dialsim compare a.yaml b.yaml")
    loaded = [load(file, overrides=options.overrides) for file in files]
    named = dict(zip(names_of(files), loaded, strict=True))
    base = check_baseline([*named], baseline)
    for scenario in loaded:
        for text in figures:
            read_shown(text, scenario)
    alike = _alike(decide, indifference, [*named], base, replications, loaded)
    arguments = {"figures": list(figures)}
    experiment = Experiment("comparison", loaded, options, arguments, " or ".join(named))
    if options.form == "text":
        say_back(loaded[0])
    with experiment.running() as (_, settings):
        found = run_all(
            named, replications, figures=figures, decide=decide, indifference=alike,
            baseline=base, seed=options.seed, **settings,
        )  # fmt: skip
    compared = found.differences(base, adjust=adjust)
    document = comparison_document(found, compared, base, adjust)
    _deliver(
        experiment,
        found,
        compared,
        base,
        found.seed,
        document,
        comparison_content,
        changed=found.changed,
    )


@click.command(
    short_help="Find the setting, or the combination of settings, that meets a goal.",
    epilog="""\b
Example:
    dialsim plan scenarios/first-campaign.yaml --out out/plan \\
        --vary lines=1..60 --goal "p95(finish) <= Tue 12:00"

\b
    dialsim plan scenarios/first-campaign.yaml --out out/best \\
        --vary lines=4..24:2 --vary January.maxAttempts=1..4 \\
        --goal "p95(finish) <= Tue 12:00" --goal "mean(cost) <= 11000" \\
        --maximize "mean(people_reached)"
""",
)
@scenario_argument
@click.option(
    "--vary",
    "varied",
    required=True,
    multiple=True,
    metavar="PATH=LOW..HIGH",
    help="What to vary, and between which numbers, durations or instants; :STEP may follow. "
    "Several are combined; a list such as 1h,2h,4h will do, too.",
)
@click.option(
    "--goal",
    "goals",
    multiple=True,
    metavar="GOAL",
    help="Such as: p95(finish) <= Fri 18:00 and mean(cost) <= 5000; "
    "also prob(January.finish <= 5d) >= 0.95. All that are given must be met.",
)
@click.option(
    "--maximize", metavar="FIGURE", help="Of those that meet the goals: the most of what? "
    "Such as mean(people_reached).",
)  # fmt: skip
@click.option("--minimize", metavar="FIGURE", help="The least of what? Such as mean(cost).")
@click.option(
    "--objective",
    type=click.Choice(["smallest", "largest", "cheapest"]),
    default=None,
    help="Of one setting: which of the values that meet the goal; default: smallest.",
)
@click.option(
    "--indifference",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.005,
    show_default=True,
    metavar="SHARE",
    help="What is maximized or minimized is alike within this share.",
)
@_count_option("--replications", 8, "How often each value is run at first.")
@_count_option("--max-replications", 400, "How often a value in doubt is run at most.")
@click.option(
    "--within",
    metavar="TIME",
    callback=_seconds,
    help="Stop after this time, such as 10s, with what is known then. The answer then depends on "
    "the speed of the machine.",
)
@experiment_options
@with_options
def plan(
    scenario: Path,
    varied: tuple[str, ...],
    goals: tuple[str, ...],
    maximize: str | None,
    minimize: str | None,
    objective: Objective | None,
    indifference: float,
    replications: int,
    max_replications: int,
    within: float | None,
    options: Options,
) -> None:
    """Find the smallest (or largest, or cheapest) value of a setting that meets a goal.

    Of several settings, or with --maximize or --minimize, find the combination that meets all
    goals and does best. Prints the estimate for the answer, and what comes next to it. Exit status
    1 if nothing meets the goal; what comes closest is printed then.
    """
    from dialsim.scenario.loading import load

    most = max(replications, max_replications)
    runs = SearchSettings(replications=replications, max_replications=most)
    if within is not None:
        runs["within"] = within
    loaded = load(scenario, overrides=options.overrides)
    if not goals and maximize is None and minimize is None:
        raise click.UsageError("say what is wanted: --goal, --maximize or --minimize")
    several = len(varied) > 1 or "," in varied[0]  # a list has no order to search along
    if several or maximize is not None or minimize is not None:
        if objective is not None:
            raise click.UsageError(
                "--objective is for one setting: say --maximize or --minimize of what"
            )
        met = _find_optimum(loaded, varied, goals, maximize, minimize, indifference, runs, options)
    else:
        goal = " and ".join(goals)
        met = _find_value(loaded, varied[0], goal, objective or "smallest", runs, options)
    # Exit status 1 is the answer "no", for scripts; errors have 2.
    if not met:
        raise click.exceptions.Exit(1)


def _find_value(
    loaded: Scenario,
    vary: str,
    goal: str,
    objective: Objective,
    runs: SearchSettings,
    options: Options,
) -> bool:
    """Plan one setting; returns True if a value meets the goal."""
    from dialsim.experiments import plan_text
    from dialsim.experiments.goal import read_goal
    from dialsim.experiments.plan import plan as find
    from dialsim.experiments.variants import ends, read_span, setting_text

    path, span = read_span(vary, loaded.first_day)
    path = _full(loaded, path)
    limits = ends(path, span, loaded.first_day)
    check_variants(limits, loaded)
    wanted = read_goal(goal, loaded)
    asked = {"vary": vary, "goal": goal, "objective": objective, **runs}
    experiment = Experiment("plan", [loaded], options, asked)
    announce(loaded, options.form, wanted, estimated=False)
    with experiment.running() as (progress, settings):
        answer = find(
            loaded, path, span, goal, objective=objective, known=progress.say,
            seed=options.seed, **runs, **settings,
        )  # fmt: skip

    def report(further: FurtherRuns) -> str:
        from dialsim.report.writing import plan_report

        return plan_report(answer, loaded, options.seed, further)

    def printed() -> tuple[list[str], list[FigureTable]]:
        warnings = (f"Warning: {text}." for text in answer.warnings)
        said = [plan_text.plan_headline(answer), plan_text.plan_question(answer)]
        said += plan_text.plan_sentences(answer)
        return [*said, *warnings], plan_text.plan_tables(answer)

    experiment.deliver(
        answer,
        answer.to_dict(),
        report,
        dict,
        printed,
        lambda: [plan_text.setting_of(setting_text(path, part.value), part)
                 for part in answer.tried],
    )  # fmt: skip
    return answer.met


def _find_optimum(
    loaded: Scenario,
    varied: Sequence[str],
    goals: Sequence[str],
    maximize: str | None,
    minimize: str | None,
    indifference: float,
    runs: SearchSettings,
    options: Options,
) -> bool:
    """Find the best combination of several settings; returns True if one meets the goals."""
    from dialsim.experiments import plan_text
    from dialsim.experiments.goal import read_goal
    from dialsim.experiments.optimum import optimize, read_objective
    from dialsim.experiments.variants import check_axis, crossed

    vary = _crossed_paths(loaded, varied)
    for path, values in vary.items():
        check_axis(path)
        check_variants(crossed({path: [values[0], values[-1]][: len(values)]}), loaded)
    wanted = read_goal(" and ".join(goals), loaded) if goals else None
    read_objective(maximize, minimize, loaded)
    asked = {
        "vary": vary,
        "goal": list(goals),
        "maximize": maximize,
        "minimize": minimize,
        "indifference": indifference,
        **runs,
    }
    experiment = Experiment("optimum", [loaded], options, asked)
    announce(loaded, options.form, wanted, estimated=False)
    with experiment.running() as (progress, settings):
        answer = optimize(
            loaded, vary, goals, maximize=maximize, minimize=minimize, indifference=indifference,
            known=progress.say, seed=options.seed, **runs, **settings,
        )  # fmt: skip

    def report(_: FurtherRuns) -> str:
        from dialsim.report.writing import optimum_report

        return optimum_report(answer, loaded, options.seed)

    experiment.deliver(
        answer,
        answer.to_dict(),
        report,
        dict,
        lambda: (
            [plan_text.optimum_headline(answer), *plan_text.optimum_sentences(answer)],
            plan_text.optimum_tables(answer),
        ),
        lambda: [plan_text.setting_of(part.name, part.estimate) for part in answer.tried],
        [] if answer.figure is None else [answer.figure],
    )
    return answer.met
