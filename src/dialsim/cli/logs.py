"""Commands on logs: `log` shows contents, `verify` checks rules, `calibrate` estimates a
behaviour, `compare-log` measures the distance of a simulation from a log, `replay` finds the
first mismatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from dialsim.cli.program import (
    file_option,
    format_option,
    jobs_option,
    print_json,
    progress_bar,
    replace_option,
    require_free,
    set_option,
    together,
)

if TYPE_CHECKING:
    from datetime import datetime

    from dialsim.conformance.table import Violation
    from dialsim.logs.log import Log
    from dialsim.logs.log_comparison import Compared, LogComparison
    from dialsim.logs.log_table import CampaignContents, Contents
    from dialsim.logs.replay import FirstMismatch, Replayed
    from dialsim.logs.verify import Verified

_Command = TypeVar("_Command", bound=Callable[..., Any])
log_argument = click.argument("source", metavar="LOG")


def location_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the location of bodies in a log, packed into the argument `location`."""

    @wraps(command)
    def packed(**given: Any) -> None:
        location = BodiesLocation(given.pop("column"), given.pop("table"), given.pop("query"))
        command(**given, location=location)

    return _OF_BODIES(packed)


_OF_BODIES = together(
    click.option(
        "--column",
        metavar="NAME",
        help="The column with the bodies, in a CSV or Parquet file or in the table; default: the "
        "first column with bodies.",
    ),
    click.option("--table", metavar="NAME", help="The table of the database that has the bodies."),
    click.option(
        "--query",
        metavar="SQL",
        help="A query whose rows have the bodies, such as 'select body from webhooks'.",
    ),
)


def _scenario_option(help_text: str, required: bool = False) -> Callable[[_Command], _Command]:
    path = click.Path(path_type=Path)
    return click.option(
        "--scenario", type=path, required=required, metavar="SCENARIO", help=help_text
    )


class BodiesLocation(NamedTuple):
    """Location of bodies in a log."""

    column: str | None
    table: str | None
    query: str | None

    def of(self, source: str, other: str) -> BodiesLocation:
        """Return the options for one of two logs: for a file beside a database, the column
        alone.
        """
        from dialsim.logs.entries import is_database

        # --table and --query are for the database; a file would reject them.
        beside = is_database(other) and not is_database(source)
        return BodiesLocation(self.column, None, None) if beside else self


@click.command(short_help="Say what is in a log of calls.", epilog="Example: dialsim log out/first")
@log_argument
@location_options
@format_option
def log(source: str, location: BodiesLocation, form: str) -> None:
    """Show what is in a log: campaigns, calls by status and attempt, and what can be estimated from
    it.

    LOG is a folder of `dialsim run`, its webhooks.jsonl, or bodies of the webhook as a receiver
    kept them: JSON lines, a JSON array, a CSV or Parquet file; text may be packed by gzip. Or it is
    a CSV or Parquet file with a row per call, or the URL of a database, such as sqlite:///calls.db,
    with --table or --query. Lines that can't be read are named with the reason, and skipped.
    """
    from dialsim.logs.log_table import contents

    found = contents(read_source(source, location))
    if form == "json":
        print_json(found.to_dict())
        return
    for line in _contents_text(found):
        click.echo(line)


@click.command(
    short_help="Check a log of calls against the rules.",
    epilog="Example: dialsim verify out/first/webhooks.jsonl",
)
@log_argument
@location_options
@_scenario_option(
    "The scenario that the log should follow: its lists of people, its settings and its "
    "numbers of lines are checked as well.",
)
@format_option
def verify(source: str, location: BodiesLocation, scenario: Path | None, form: str) -> None:
    """Check a log against the rules that can be seen in it.

    Each finding names the rule, the call, the instant and the two facts that contradict each other.
    Rules that the log can't show are listed. Exit status: 0 nothing found, 1 something found, 2 no
    log.
    """
    from dialsim.logs.verify import check
    from dialsim.scenario.loading import load

    loaded = None if scenario is None else load(scenario)
    read = read_source(source, location)
    result = check(read, loaded)
    if form == "json":
        print_json(result.to_dict())
    else:
        for line in _verified_text(read, result):
            click.echo(line)
    if result.findings:
        # 1 means findings, as for grep and diff; errors exit with 2.
        raise click.exceptions.Exit(1)


@click.command(
    short_help="Estimate a behaviour from a log of calls.",
    epilog="""Examples:

    \b
      dialsim calibrate out/first --out behaviour.yaml
      dialsim calibrate webhooks.jsonl --by agent --hold-out 0.3 --out behaviour.yaml
    """,
)
@log_argument
@file_option("--out", "Write the behaviours to this file, as a block of a scenario.", required=True)
@click.option(
    "--by",
    type=click.Choice(["agent", "campaign", "segment"]),
    help="Estimate a behaviour per agent, campaign or segment, with its name; default: one for "
    "all calls.",
)
@click.option(
    "--hold-out",
    "hold_outs",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    multiple=True,
    metavar="SHARE",
    help="Forecast the last calls, such as 0.3 of all calls, from the calls before, and print "
    "how good the forecast is. For campaigns that are not done by then, also forecast the "
    "finish, with 100 runs. If given several times, print how many of these forecasts held, "
    "and by how much their intervals must be widened.",
)
@_scenario_option(
    "With --hold-out: a scenario with the lines and schedules of the campaigns; default: the "
    "settings that the webhooks show.",
)
@click.option(
    "--without",
    type=click.DateTime(["%Y-%m-%d"]),
    multiple=True,
    metavar="DATE",
    help="Leave out a day (Thai time), such as one with an outage; may be given several times.",
)
@file_option(
    "--page", "Write a page with pictures of the estimates against the log.", metavar="HTML"
)
@file_option(
    "--draws",
    "Write further behaviours that fit the log, for dialsim forecast --draws.",
    metavar="YAML",
)
@jobs_option
@location_options
@replace_option("a file")
def calibrate(
    source: str,
    out: Path,
    by: str | None,
    hold_outs: tuple[float, ...],
    scenario: Path | None,
    without: tuple[datetime, ...],
    page: Path | None,
    draws: Path | None,
    jobs: int | None,
    location: BodiesLocation,
    force: bool,
) -> None:
    """Estimate from a log who answers, how long calls take, and what goes wrong.

    LOG is a folder of `dialsim run`, or the webhooks that a receiver stored. The file of --out
    holds the block `behaviours:` of a scenario. Each number has its standard error and the count it
    is estimated from. Comments list what the log leaves open.
    """
    from dialsim.interface.instants import day_number
    from dialsim.logs.backtest import Backtest, forecast_held_out
    from dialsim.logs.behaviour_text import draws_text, summary_lines
    from dialsim.logs.calibrate import calibrate as estimate
    from dialsim.scenario.loading import load

    # Before the log is read, which takes minutes for a million bodies.
    for file in (out, page, draws):
        require_free(file, force=force)
    hold_out = hold_outs[0] if hold_outs else None
    if scenario is not None and hold_out is None:
        raise click.UsageError("--scenario is for the campaigns that --hold-out forecasts")
    loaded = None if scenario is None else load(scenario)
    read = read_source(source, location)
    days = [day_number(one.date()) for one in without]
    found = estimate(read, by, hold_out, without=days)  # type: ignore[arg-type]
    several = []
    for share in dict.fromkeys(hold_outs):
        with progress_bar("Forecasting", "runs") as progress:
            held = forecast_held_out(
                read,
                share,
                by,  # type: ignore[arg-type]
                loaded,
                without=days,
                jobs=jobs,
                progress=progress,
            )
        several.append(held)
    html = None
    if page is not None:
        from dialsim.report.log_pages import calibration_page

        html = calibration_page(found, several).html()
    # Written last, after everything that may fail, so that no old file is replaced by half a
    # result.
    out.write_text(found.to_yaml(), encoding="utf-8")
    if page is not None and html is not None:
        page.write_text(html, encoding="utf-8")
    if draws is not None:
        draws.write_text(draws_text(found), encoding="utf-8")
    for line in summary_lines(found):
        click.echo(line)
    # One --hold-out shows nothing about coverage, so only several of them widen the intervals.
    past = Backtest([one for held in several for one in held.campaigns])
    is_backtest = len(several) > 1 and past.forecasts
    for held in several:
        for line in held.lines(past.widening if is_backtest else None):
            click.echo(line)
    for line in past.lines() if is_backtest else ():
        click.echo(f"{line}.")
    if read.damaged:
        click.echo(f"{read.damaged:,} lines of the log could not be read and were skipped.")
    click.echo(f"Written: {', '.join(str(file) for file in (out, page, draws) if file)}")


@click.command(
    name="compare-log",
    short_help="Say how far a simulation is from a real log.",
    epilog="""Examples:

    \b
      dialsim compare-log webhooks.jsonl out/first
      dialsim compare-log webhooks.jsonl simulated.jsonl --scenario first-campaign.yaml
      dialsim compare-log webhooks.jsonl out/first --page compared.html
      dialsim compare-log sqlite:///calls.db out/first --table webhooks
    """,
)
@click.argument("real", metavar="REAL")
@click.argument("simulated", metavar="SIMULATED")
@_scenario_option(
    "The scenario whose further runs show what is noise; default: the one in the folder "
    "SIMULATED or REAL.",
)
@click.option(
    "--replications",
    type=click.IntRange(min=1),
    default=80,
    show_default=True,
    metavar="N",
    help="How many further runs to make, 40 or more. Two logs of one model are judged different "
    "at most 4 times in N + 4.",
)
@file_option(
    "--page", "Write a page with a picture of the values behind each distance.", metavar="HTML"
)
@replace_option("HTML")
@location_options
@format_option
def compare_log(
    real: str,
    simulated: str,
    scenario: Path | None,
    replications: int,
    page: Path | None,
    location: BodiesLocation,
    form: str,
    force: bool,
) -> None:
    """Say how far a simulated log is from a real one, and what differs most.

    REAL and SIMULATED are folders of `dialsim run`, webhooks that a receiver stored, or URLs of
    databases, which --table and --query are for. Each distance is compared with the noise, which is
    how far runs of one model are apart by chance. Exit status: 0 no difference beyond noise, 1 a
    difference, 2 no log.
    """
    from dialsim.logs.log_comparison import compare_log
    from dialsim.scenario.loading import load

    require_free(page, force=force)
    model = None if scenario is None else load(scenario)
    # `of` needs both logs, since options for a database do not apply to a file beside it.
    both = (real, simulated), (simulated, real)
    logs = [read_source(one, location.of(one, other)) for one, other in both]
    with progress_bar("Simulating", "runs") as progress:
        found = compare_log(logs[0], logs[1], model, replications=replications, progress=progress)
    if page is not None:
        from dialsim.report.log_pages import log_comparison_page

        page.write_text(log_comparison_page(found).html(), encoding="utf-8")
    if form == "json":
        print_json(found.to_dict())
    else:
        for line in _comparison_text(found):
            click.echo(line)
        if page is not None:
            click.echo(f"Written: {page}")
    if found.main is not None:
        raise click.exceptions.Exit(1)


@click.command(
    short_help="Replay a log of calls, and say where the model first differs from it.",
    epilog="""Examples:

    \b
      dialsim replay out/first --scenario plan.yaml
      dialsim replay webhooks.jsonl --scenario plan.yaml --out engine.yaml
    """,
)
@log_argument
@_scenario_option(
    "The campaigns that made the calls: their lists of people, schedules and lines.",
    required=True,
)
@click.option(
    "--estimate",
    "wants_settings",
    is_flag=True,
    help="Look for the settings of the engine that fit the log best, and say how certain they are.",
)
@file_option("--out", "Write these settings to this file, as the block engine: of a scenario.")
@set_option
@location_options
@format_option
@replace_option("FILE")
def replay(
    source: str,
    scenario: Path,
    wants_settings: bool,
    out: Path | None,
    overrides: tuple[str, ...],
    location: BodiesLocation,
    form: str,
    force: bool,
) -> None:
    """Replay the people of a log in a scenario, so that only the scheduling can differ.

    LOG is a folder of `dialsim run`, or the webhooks that a receiver stored. The command prints the
    first call that the model makes at another instant, with the rule that decides about the call.
    It estimates order, sharing, queueTimeout, queueLimit, releaseInterval and callsPerSecond, and
    lists settings that the log does not determine.
    """
    from dialsim.logs.engine_settings import engine_yaml, estimate, estimate_lines
    from dialsim.logs.recorded_calls import RecordedCalls
    from dialsim.logs.replay import replay as play
    from dialsim.scenario.loading import load

    require_free(out, force=force)
    loaded = load(scenario, overrides=overrides)
    record = RecordedCalls(read_source(source, location), loaded)
    result, found = play(record), None
    # The search for settings makes many replays, so it runs on request only.
    if wants_settings or out is not None:
        with progress_bar("Trying settings", "runs") as progress:
            found = estimate(record, progress)
    if found is not None and out is not None:
        out.write_text(engine_yaml(found, record.source), encoding="utf-8")
    if form == "json":
        estimated = None if found is None else found.to_dict()
        print_json({**result.to_dict(), "engine": estimated})
        return
    for line in _replayed_text(result):
        click.echo(line)
    for line in () if found is None else estimate_lines(found):
        click.echo(line)
    if out is not None:
        click.echo(f"Written: {out}")


def read_source(source: str, location: BodiesLocation) -> Log:
    """Read a log with a progress bar."""
    from dialsim.logs.entries import is_database
    from dialsim.logs.log import read_log

    with progress_bar("Reading", "rows" if is_database(source) else "bytes") as progress:
        return read_log(source, **location._asdict(), progress=progress)


_FORMS = {
    "run": "a folder of dialsim run",
    "lines": "JSON lines",
    "array": "a JSON array",
    "csv": "a CSV file",
    "parquet": "a Parquet file",
    "database": "a database",
    "table": "a table of calls",
}


def _contents_text(found: Contents) -> Iterator[str]:
    yield f"{found.source}: {_FORMS[found.form]}, {found.bodies:,} bodies, {found.calls:,} calls"
    for campaign in found.campaigns:
        yield ""
        yield from _campaign_text(campaign)
    yield ""
    for count, text in (
        (found.duplicates, "bodies repeat another body of the same call"),
        (found.re_analyses, "re-analyses: the last good one counts"),
        (found.masked, "calls of people who are masked: they can't be told apart"),
        (found.old_form, "bodies have a result of form v1"),
        (found.not_received, "calls whose result the receiver never accepted"),
        (found.damaged, "of the lines can't be read, and are skipped:"),
    ):
        if count:
            yield f"{count:,} {text}"
    yield from _damages_text(found)
    for name, count in found.unknown_fields.items():
        yield f"{count:,} bodies have a field that the interface does not name: payload.{name}"
    yield "Can be estimated from it:"
    yield from (f"  {text}" for text in found.can_estimate)
    if found.cannot_estimate:
        yield "Cannot be estimated from it:"
        yield from (f"  {text}" for text in found.cannot_estimate)


def _damages_text(found: Contents) -> Iterator[str]:
    from dialsim.logs.log_table import SHOWN_DAMAGES

    for line, reason in found.damages[:SHOWN_DAMAGES]:
        yield f"  line {line}: {reason}"
    if found.damaged > SHOWN_DAMAGES:
        yield f"  … and {found.damaged - SHOWN_DAMAGES:,} more"


def _campaign_text(campaign: CampaignContents) -> Iterator[str]:
    agent = f", agent {campaign.agent}" if campaign.agent else ""
    yield f"Campaign {campaign.name or campaign.id}{agent}"
    if campaign.first is not None:
        yield f"  from {campaign.first} to {campaign.last}"
    yield f"  {campaign.calls:,} calls to {campaign.people:,} people"
    names = list(campaign.by_status)
    width = max(9, *(len(name) + 2 for name in names))
    yield "  attempt " + "".join(f"{name:>{width}}" for name in names)
    for attempt, row in campaign.by_attempt.items():
        yield f"  {attempt:<8}" + "".join(f"{row.get(name, 0):>{width},}" for name in names)
    counts = "".join(f"{count:>{width},}" for count in campaign.by_status.values())
    yield f"  {'all':<8}{counts}"
    if campaign.gaps:
        yield f"  {campaign.gaps:,} attempts are missing before later attempts of the same person"


def _verified_text(read: Log, result: Verified) -> Iterator[str]:
    from dialsim.interface.phrases import counted

    for finding in result.findings:
        yield _finding_text(finding)
    number = result.count
    for rule, count in result.omitted.items():
        yield f"{rule}  and {count:,} more; of each kind of finding the first 100 are shown."
    what = counted(number, "finding") if number else "nothing"
    yield f"{read.source}: {what} against the rules in {len(read.calls):,} calls."
    if read.damaged:
        yield f"{read.damaged:,} lines could not be read; `dialsim log` names them."
    yield f"Looked at: {', '.join(result.checked)}."
    for rules, why in result.unseen:
        yield f"Not seen: {rules}: {why}."


def _finding_text(finding: Violation) -> str:
    from dialsim.conformance.table import instant

    where = [f"line {finding.line}"] if finding.line else []
    where += [] if finding.at is None else [instant(finding.at)]
    where += [] if finding.campaign is None else [finding.campaign]
    where += [] if finding.call_id is None else [f"call {finding.call_id}"]
    return f"{finding.rule}  {', '.join(where)}: {finding.text}"


def _comparison_text(found: LogComparison) -> Iterator[str]:
    for name, side in (("REAL", found.real), ("SIMULATED", found.simulated)):
        yield f"{name:<10} {side.source}: {side.amount}, {side.span}"
    yield f"Noise: distances between {found.replications} further runs of {found.noise}."
    yield ""
    rows = [
        ("Distance", "", "", "noise up to", "other runs", ""),
        *map(_distance_row, found.distances),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, distance, unit, floor, others, said in rows:
        cells = (f"{name:<{widths[0]}}", f"{distance:>{widths[1]}}", f"{unit:<{widths[2]}}",
                 f" {floor:>{widths[3]}}", f" {others:<{widths[4]}}", said)  # fmt: skip
        yield " ".join(cells).rstrip()
    yield ""
    if found.not_compared is not None:
        yield f"Not compared where there is no number: {found.not_compared}."
    yield found.sentence
    if found.main is not None:
        more = len(found.beyond_noise) - 1
        also = f"; {more} other distance{' is' if more == 1 else 's are'} beyond noise, too"
        ratio = found.main.ratio
        times = f"{ratio:,.1f} times" if isfinite(ratio) else "more than"
        yield f"It is {times} the largest distance by chance{also if more else ''}."


def _distance_row(one: Compared) -> tuple[str, ...]:
    name, unit, distance, floor, others = one.cells()
    return name, distance, unit, floor, others, " beyond noise" if one.beyond_noise else ""


def _replayed_text(result: Replayed) -> Iterator[str]:
    from dialsim.interface.instants import duration_text

    yield f"{result.source} against {result.scenario}: {result.calls:,} calls are replayed."
    if result.first_mismatch is None:
        yield "The model makes the same calls at the same instants, and no others."
    else:
        after, late = result.agree - result.before, result.calls - result.before
        yield f"{result.agree:,} calls agree with the model: {result.before:,} before the first"
        yield f"difference, and {after:,} of the {late:,} after it."
    if result.missing:
        yield f"{result.missing:,} calls of the log are not made by the model."
    if result.extra:
        yield f"{result.extra:,} calls of the model are not in the log."
    if result.unseen:
        yield f"{result.unseen:,} calls of the model may be conversations without webhook (A2, A4)."
    if result.first_mismatch is not None:
        yield from _mismatch_text(result.first_mismatch, "" if result.has_dials else "about ")
    if not result.has_dials:
        yield "The log has no instants of dials. Setup and ringing take, if the model is right:"
        for ending, held in result.hold_times.items():
            low, typical, high = map(duration_text, (held.low, held.typical, held.high))
            yield f"  {ending:<9} about {typical}; {low} to {high} counts as agreement"
    for note in result.notes:
        yield f"Note: {note}."


_DONE = {"created": "created", "lost": "lost in the queue", "released": "released",
         "dialled": "dialled"}  # fmt: skip


def _mismatch_text(first: FirstMismatch, about: str) -> Iterator[str]:
    from dialsim.interface.instants import date_text, time_text

    attempt = f"attempt {first.attempt} of {first.tel} in {first.campaign}"
    yield f"First difference: {date_text(first.at)} {time_text(first.at)} Thai time, {attempt}"
    about = about if first.event == "dialled" else ""
    for name, at, more in (("recorded", first.recorded, about), ("simulated", first.simulated, "")):
        what = _DONE[first.event]
        when = f"{what} {more}{date_text(at)} {time_text(at)}" if at is not None else f"not {what}"
        yield f"  {name + ':':<10} {when}"
    yield f"  {first.rule}: {first.why}"
