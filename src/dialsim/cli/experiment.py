"""`dialsim sweep` and `dialsim plan`, and the common parts of all commands with many runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict, TypeVar

import click

from dialsim.cli.program import (
    INTERRUPTED,
    Options,
    ProgressBar,
    announce,
    experiment_options,
    file_option,
    print_json,
    progress_bar,
    say_back,
    scenario_argument,
    together,
    with_options,
)

if TYPE_CHECKING:
    from dialsim.experiments.plan import Objective
    from dialsim.experiments.replications import RunSettings
    from dialsim.experiments.sweep import Adjustment
    from dialsim.experiments.variants import Variant
    from dialsim.report.writing import Outcome
    from dialsim.scenario.scenario import Scenario

_Command = TypeVar("_Command", bound=Callable[..., None])


def _seconds(_: object, __: object, text: str | None) -> float | None:
    """Parse the value of an option such as `10s`; returns seconds."""
    from dialsim.scenario.units import parse_duration

    if text is None:
        return None
    try:
        seconds = parse_duration(text) / 1000
    except ValueError as error:
        raise click.BadParameter(f"{text} {error}") from None
    # With a limit of 0 no value would get the two runs that an answer needs.
    if not seconds:
        raise click.BadParameter("must be more than 0, such as 10s")
    return seconds


@contextmanager
def resumable(kept: str | None) -> Iterator[None]:
    """On Ctrl-C print what was kept, given as the text `kept`, and exit; None: nothing was kept."""
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
    ) -> None:
        """`arguments` are further inputs of the page; only a comparison has several scenarios."""
        from dialsim.results.folder import ExperimentFolder

        self._options, self._scenario = options, scenarios[0]
        self._folder, self._kept = None, None
        if options.out is not None:
            self._kept = f"finished replications are kept in {options.out}"
            known = {**arguments, "what_if": options.what_if}
            self._folder = ExperimentFolder(
                options.out, kind, scenarios[0], options.seed, known, scenarios[1:]
            )

    def open(self) -> None:
        """Open the output folder, if one is requested.

        Raises ExistingOutput and OutputError like `ExperimentFolder.open`.
        """
        if self._folder is not None:
            self._folder.open(self._options.force)

    def add(self, arguments: Mapping[str, object]) -> None:
        """Store further inputs of the page, which only runs could determine."""
        if self._folder is not None:
            self._folder.arguments |= arguments

    @contextmanager
    def running(self) -> Iterator[tuple[ProgressBar, RunSettings]]:
        """Yield a progress bar, and the settings of all runs of the experiment."""
        options = self._options
        with resumable(self._kept), progress_bar("Simulating", "runs") as progress:
            # The folder is opened when the first run is due: a wrong argument changes no folder.
            settings: RunSettings = {
                "jobs": options.jobs,
                "dask": options.dask,
                "store": options.out,
                "progress": progress,
                "engine": options.engine,
                "begin": self.open,
            }
            yield progress, settings

    def deliver(self, found: Outcome) -> None:
        """Write pages and tables to the folder, if one is requested, then print the answer.

        Runs made for the pages are kept in the store of the experiment.
        """
        from dialsim.experiments.experiment_text import print_experiment

        # Files come before what is printed: a reader that closes the pipe ends the command.
        options, sheet, document = self._options, None, found.to_dict()
        if self._folder is not None or options.language != "en":
            from dialsim.report.sheet import NAME as SHEET
            from dialsim.report.sheet import sheet_of

            sheet = sheet_of(found, options.language, scenario=self._scenario, seed=options.seed)
        if self._folder is not None and sheet is not None:
            from dialsim.report.what_if import FurtherRuns
            from dialsim.report.writing import experiment_report, put

            folder = self._folder.path
            with resumable(self._kept), progress_bar("What would help", "runs") as progress:
                further = FurtherRuns(
                    options.what_if, options.jobs, options.dask, folder, progress, options.engine
                )
                put(experiment_report(found, self._scenario, options.seed, further), folder)
            # `finish` marks the folder as complete, so all other files are written before.
            put(sheet.html(), folder, SHEET)
            if options.excel:
                _write_workbook(found, folder)
            self._folder.finish(found.frames(), document)
        if options.form == "json":
            print_json(document)
            return
        sentences, tables = found.printed()
        # Only the sheet is translated, so its decision replaces the English sentences.
        if sheet is not None and options.language != "en":
            sentences = [sheet.decision]
        print_experiment(found.title, sentences, tables)
        if options.out is not None:
            click.echo(f"\nWritten to {options.out}")


def _write_workbook(found: Outcome, folder: Path) -> None:
    """Write a workbook: the answer, the settings side by side, and the tables."""
    from dialsim.experiments.estimates import settings_table
    from dialsim.results.excel import NAME, write_workbook

    sentences, _ = found.printed()
    answer = [("Answer" if k == 0 else "", text) for k, text in enumerate(sentences)]
    side_by_side, units = settings_table(found.settings(), found.expressions)
    sheets = {"settings": side_by_side, **found.frames()}
    write_workbook(folder / NAME, found.title, answer, sheets, units)


figure_option = click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="EXPRESSION",
    help="A further figure, calculated from others, such as 'cost / people_reached'; may be "
    "given several times.",
)


def _count_option(name: str, default: int, text: str) -> Callable[[_Command], _Command]:
    """Return an option for a number of runs, at least 2."""
    return click.option(
        name,
        type=click.IntRange(min=2),
        default=default,
        show_default=True,
        metavar="N",
        help=text,
    )


def _compared_options(what: str) -> Callable[[_Command], _Command]:
    """Return the options of commands that compare variants, or files, with a baseline."""
    return together(
        _count_option("--replications", 50, f"How often each {what} is run."),
        click.option(
            "--baseline", metavar="NAME", help=f"The {what} to compare with; default: the first."
        ),
        click.option(
            "--decide",
            metavar="FIGURE",
            help=f"Stop the runs of a {what} once it surely differs from the baseline in this "
            "figure, such as finish or 'cost / people_reached'; --replications is then the limit.",
        ),
        click.option(
            "--indifference",
            type=click.FloatRange(0, 1, max_open=True),
            metavar="SHARE",
            help="With --decide: figures that differ by less than this share count as equal, "
            "which also decides; default: 0.005.",
        ),
        click.option(
            "--adjust",
            type=click.Choice(["bonferroni"]),
            help="Guard against chance findings among many comparisons.",
        ),
        figure_option,
    )


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
    help="Values to try, as 10,20,30 or 10..60:5; all combinations of several settings are run.",
)
@file_option(
    "--design",
    "A CSV with a path in each head cell and a variant in each row; see below.",
    metavar="FILE.csv",
    exists=True,
)
@file_option(
    "--variants",
    "Named variants as YAML: under each name a list of PATH=VALUE; see below.",
    metavar="FILE.yaml",
    exists=True,
)
@_compared_options("variant")
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

    All variants call the same people with the same reactions, so chance adds little to a
    difference. A difference is real if its 95 % interval excludes 0.
    """
    from dialsim.experiments.sweep import sweep as run_all
    from dialsim.scenario.loading import load

    loaded = load(scenario, overrides=options.overrides)
    listed = _variants(loaded, vary, design, variants)
    experiment = Experiment("sweep", [loaded], options, {"figures": list(figures)})
    if options.form == "text":
        say_back(loaded)
    with experiment.running() as (_, settings):
        found = run_all(
            loaded, listed, replications, figures=figures, decide=decide,
            indifference=_alike(decide, indifference), baseline=baseline, adjust=adjust,
            seed=options.seed, **settings,
        )  # fmt: skip
    experiment.deliver(found)


def _alike(decide: str | None, indifference: float | None) -> float:
    """Return the relative difference below which --decide treats two figures as equal."""
    from dialsim.experiments.sequential import INDIFFERENCE

    if decide is None and indifference is not None:
        raise click.UsageError("--indifference needs --decide FIGURE, the figure that decides")
    return INDIFFERENCE if indifference is None else indifference


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
    """Parse `--vary` into values by path; raises UsageError for a path given twice."""
    from dialsim.experiments.variants import read_vary

    # Compared by full paths: `lines` and organizations.Acme.maxConcurrentCalls may be one setting.
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

    # A + or - at the end adds to or removes from the list at the path; it is not part of the path.
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
@_compared_options("file")
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

    Campaigns are matched by name. Campaigns at the same position in two files call people with the
    same reactions, so chance adds little to a difference. Settings that differ between the files
    are printed as well, path by path.
    """
    from dialsim.experiments.sweep import compare as run_all
    from dialsim.experiments.sweep import names_of
    from dialsim.scenario.loading import load

    if len(files) < 2:
        raise click.UsageError("name two files or more: dialsim compare a.yaml b.yaml")
    loaded = [load(file, overrides=options.overrides) for file in files]
    # Variants are named after files: the scenario in a copied file often has the same name.
    named = dict(zip(names_of(files), loaded, strict=True))
    experiment = Experiment("comparison", loaded, options, {"figures": list(figures)})
    if options.form == "text":
        say_back(loaded[0])
    with experiment.running() as (_, settings):
        found = run_all(
            named, replications, figures=figures, decide=decide,
            indifference=_alike(decide, indifference), baseline=baseline, adjust=adjust,
            seed=options.seed, **settings,
        )  # fmt: skip
    experiment.deliver(found)


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
    help="A setting, and the range of its values: numbers, durations or instants; :STEP may "
    "follow. A list such as 1h,2h,4h is possible, too. Several settings are combined.",
)
@click.option(
    "--goal",
    "goals",
    multiple=True,
    metavar="GOAL",
    help="Such as: p95(finish) <= Fri 18:00 and mean(cost) <= 5000; also prob(January.finish <= "
    "5d) >= 0.95. Several goals must all be met.",
)
@click.option(
    "--maximize", metavar="FIGURE", help="Among combinations that meet the goals, find the one "
        "with the most of this, such as mean(people_reached).",
)  # fmt: skip
@click.option(
    "--minimize",
    metavar="FIGURE",
    help="Likewise, the one with the least of this, such as mean(cost).",
)
@click.option(
    "--objective",
    type=click.Choice(["smallest", "largest", "cheapest"]),
    default=None,
    help="For one setting: which of the values that meet the goal to find; default: smallest.",
)
@click.option(
    "--indifference",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.005,
    show_default=True,
    metavar="SHARE",
    help="Combinations whose FIGURE differs by less than this share count as equally good.",
)
@_count_option("--replications", 8, "Number of runs of each value at first.")
@_count_option(
    "--max-replications", 400, "Upper limit of runs of a value that may or may not meet the goal."
)
@click.option(
    "--within",
    metavar="TIME",
    callback=_seconds,
    help="Stop after this time, such as 10s, with the best answer so far. The answer then "
    "depends on the speed of the machine.",
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

    With several settings, or with --maximize or --minimize, find the best combination that meets
    all goals. Prints the estimate for the answer and, with one setting, for the value next to it;
    with several, the frontier of finish, cost and reach. If nothing meets the goal, prints what
    comes closest and exits with status 1.
    """
    from dialsim.scenario.loading import load

    # --replications above the maximum raises the maximum: an error would name --max-replications,
    # which may not have been given.
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
                "--objective is for a single setting: give --maximize or --minimize instead"
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
    """Find the value of one setting and print it; returns True if a value meets the goal."""
    from dialsim.experiments.goal import read_goal
    from dialsim.experiments.plan import plan as find

    values = _crossed_paths(loaded, [vary])
    # As written on the command line: the page is rebuilt from this text, not from a list of values.
    asked = {"vary": vary, "goal": goal, "objective": objective, **runs}
    experiment = Experiment("plan", [loaded], options, asked)
    announce(loaded, options.form, read_goal(goal, loaded), estimated=False)
    with experiment.running() as (progress, settings):
        answer = find(
            loaded, values, goal=goal, objective=objective, known=progress.say,
            seed=options.seed, **runs, **settings,
        )  # fmt: skip
    experiment.deliver(answer)
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
    """Find the best combination of settings and print it; returns True if one meets the goals."""
    from dialsim.experiments.goal import read_goal
    from dialsim.experiments.optimum import optimize

    values = _crossed_paths(loaded, varied)
    asked = {
        "vary": values,
        "goal": list(goals),
        "maximize": maximize,
        "minimize": minimize,
        "indifference": indifference,
        **runs,
    }
    experiment = Experiment("optimum", [loaded], options, asked)
    wanted = read_goal(" and ".join(goals), loaded) if goals else None
    announce(loaded, options.form, wanted, estimated=False)
    with experiment.running() as (progress, settings):
        answer = optimize(
            loaded, values, goals, maximize=maximize, minimize=minimize, indifference=indifference,
            known=progress.say, seed=options.seed, **runs, **settings,
        )  # fmt: skip
    experiment.deliver(answer)
    return answer.met
