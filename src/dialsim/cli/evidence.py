"""What logs show: `log` contents, `verify` broken rules, `calibrate` a behaviour, `compare-log`
how far a simulation is from what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dialsim.cli.program import format_option, progress_bar

if TYPE_CHECKING:
    from dialsim.evidence.contents import CampaignContents, Contents
    from dialsim.evidence.findings import Finding
    from dialsim.evidence.log import Log
    from dialsim.evidence.log_comparison import Compared, LogComparison, Side
    from dialsim.evidence.verify import Verified

log_argument = click.argument("source", metavar="LOG")


def place_options(command: Callable[..., None]) -> Callable[..., None]:
    """Where in the log bodies stand: packed into the argument `place`."""

    @wraps(command)
    def packed(**given: Any) -> None:
        place = Place(given.pop("column"), given.pop("table"), given.pop("query"))
        command(**given, place=place)

    for option in (_QUERY, _TABLE, _COLUMN):
        packed = option(packed)
    return packed


_COLUMN = click.option(
    "--column",
    metavar="NAME",
    help="The column of a CSV or Parquet file, or of the table, that has the bodies; default: the "
    "first that has.",
)
_TABLE = click.option(
    "--table", metavar="NAME", help="The table of the database that has the bodies."
)
_QUERY = click.option(
    "--query",
    metavar="SQL",
    help="A query whose rows have the bodies, such as 'select body from webhooks'.",
)


class Place(NamedTuple):
    """Where in a log bodies stand."""

    column: str | None
    table: str | None
    query: str | None


@click.command(short_help="Say what is in a log of calls.", epilog="Example: dialsim log out/first")
@log_argument
@place_options
@format_option
def log(source: str, place: Place, form: str) -> None:
    """Say what is in a log: campaigns, calls by status and attempt, and what it can teach.

    LOG is a folder of `dialsim run`, its webhooks.jsonl, or bodies of the webhook as a receiver
    kept them: JSON lines, a JSON array, a CSV or Parquet file; text may be packed by gzip. Or it is
    the URL of a database, such as sqlite:///calls.db, with --table or --query. Lines that can't be
    read are named with the reason, and skipped.
    """
    from dialsim.evidence.contents import contents

    found = contents(_read(source, place))
    if form == "json":
        _print_json(found.to_dict())
        return
    for line in _contents_text(found):
        click.echo(line)


@click.command(
    short_help="Check a log of calls against the rules.",
    epilog="Example: dialsim verify out/first/webhooks.jsonl",
)
@log_argument
@place_options
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    metavar="SCENARIO",
    help="The scenario that the log should follow: its lists of people, its settings and its "
    "numbers of lines are checked as well.",
)
@format_option
def verify(source: str, place: Place, scenario: Path | None, form: str) -> None:
    """Check a log against the rules that can be seen in it.

    Each finding names the rule, the call, the instant and the two facts that collide. Rules that
    the log can't show are listed. Exit status: 0 nothing found, 1 something found, 2 no log.
    """
    from dialsim.evidence.verify import verify as check
    from dialsim.scenario.loading import load

    loaded = None if scenario is None else load(scenario)
    read = _read(source, place)
    result = check(read, loaded)
    if form == "json":
        _print_json(result.to_dict())
    else:
        for line in _verified_text(read, result):
            click.echo(line)
    if result.findings:
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
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Write the behaviours to this file, as a block of a scenario.",
)
@click.option(
    "--by",
    type=click.Choice(["agent", "campaign", "segment"]),
    help="Estimate a behaviour for each of them, named after it; default: one for all calls.",
)
@click.option(
    "--hold-out",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="SHARE",
    help="Forecast the last calls, such as 0.3 of all, from those before, and say how well.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="HTML",
    help="Write a page with pictures of the estimates against the log.",
)
@click.option(
    "--draws",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="YAML",
    help="Write behaviours that the log allows as well, for dialsim forecast --draws.",
)
@place_options
@click.option("--force", is_flag=True, help="Replace files that exist.")
def calibrate(
    source: str,
    out: Path,
    by: str | None,
    hold_out: float | None,
    page: Path | None,
    draws: Path | None,
    place: Place,
    force: bool,
) -> None:
    """Estimate from a log who answers, how long calls take, and what goes wrong.

    LOG is a folder of `dialsim run`, or the webhooks that a receiver stored. The file is the block
    `behaviours:` of a scenario. Each number in it has its standard error and the count that it
    rests on; what the log can't tell is said and left at its default.
    """
    from dialsim.evidence.behaviour_text import draws_text, summary_lines
    from dialsim.evidence.calibrate import calibrate as estimate

    for file in (out, page, draws):
        if file is not None and file.exists() and not force:
            raise click.UsageError(f"{file} exists; --force replaces it")
        if file is not None and not file.absolute().parent.is_dir():
            raise click.UsageError(f"{file}: there is no folder {file.parent}")
    read = _read(source, place)
    found = estimate(read, by, hold_out)  # type: ignore[arg-type]
    html = None
    if page is not None:
        from dialsim.report.calibration_page import calibration_page

        html = calibration_page(found).html()
    out.write_text(found.to_yaml(), encoding="utf-8")
    if page is not None and html is not None:
        page.write_text(html, encoding="utf-8")
    if draws is not None:
        draws.write_text(draws_text(found), encoding="utf-8")
    for line in summary_lines(found):
        click.echo(line)
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
    """,
)
@click.argument("real", metavar="REAL")
@click.argument("simulated", metavar="SIMULATED")
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    metavar="SCENARIO",
    help="The scenario whose further runs say what is noise; default: the one in the folder "
    "SIMULATED or REAL, else what is learned from both logs.",
)
@click.option(
    "--replications",
    type=click.IntRange(min=1),
    default=80,
    show_default=True,
    metavar="N",
    help="How many further runs to make, 40 or more. Two logs of one model are taken for different "
    "at most 4 times in N + 4.",
)
@_COLUMN
@format_option
def compare_log(
    real: str,
    simulated: str,
    scenario: Path | None,
    replications: int,
    column: str | None,
    form: str,
) -> None:
    """Say how far a simulated log is from a real one, and what differs most.

    REAL and SIMULATED are folders of `dialsim run` or webhooks that a receiver stored. Each
    distance is held against the noise: how far runs of one model are apart by chance. Exit status:
    0 no difference beyond noise, 1 a difference, 2 no log.
    """
    from dialsim.evidence.log_comparison import compare_logs
    from dialsim.scenario.loading import load

    model = None if scenario is None else load(scenario)
    place = Place(column, None, None)
    logs = _read(real, place), _read(simulated, place)
    with progress_bar("Simulating", "runs") as progress:
        found = compare_logs(*logs, model, replications=replications, progress=progress)
    if form == "json":
        _print_json(found.to_dict())
    else:
        for line in _comparison_text(found):
            click.echo(line)
    if found.main is not None:
        raise click.exceptions.Exit(1)


def _read(source: str, place: Place) -> Log:
    from dialsim.evidence.entries import is_database
    from dialsim.evidence.log import read_log

    with progress_bar("Reading", "rows" if is_database(source) else "bytes") as progress:
        return read_log(source, **place._asdict(), progress=progress)


def _print_json(document: object) -> None:
    import orjson

    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


_FORMS = {
    "run": "a folder of dialsim run",
    "lines": "JSON lines",
    "array": "a JSON array",
    "csv": "a CSV file",
    "parquet": "a Parquet file",
    "database": "a database",
}


def _contents_text(found: Contents) -> Iterator[str]:
    yield f"{found.source}: {_FORMS[found.form]}, {found.bodies:,} bodies, {found.calls:,} calls"
    for campaign in found.campaigns:
        yield ""
        yield from _campaign_text(campaign)
    yield ""
    for count, text in (
        (found.duplicates, "bodies repeat another one of their call"),
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
    yield "It can tell:"
    yield from (f"  {text}" for text in found.tells)
    if found.tells_not:
        yield "It can't tell:"
        yield from (f"  {text}" for text in found.tells_not)


def _damages_text(found: Contents) -> Iterator[str]:
    from dialsim.evidence.contents import SHOWN_DAMAGES

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
        yield f"  {campaign.gaps:,} attempts are missing: later ones of the same person are there"


def _verified_text(read: Log, result: Verified) -> Iterator[str]:
    for finding in result.findings:
        yield _finding_text(finding)
    number = len(result.findings)
    what = "nothing" if not number else f"{number:,} finding{'s' if number > 1 else ''}"
    yield f"{read.source}: {what} against the rules in {len(read.calls):,} calls."
    if read.damaged:
        yield f"{read.damaged:,} lines could not be read; `dialsim log` names them."
    yield f"Looked at: {', '.join(result.checked)}."
    for rules, why in result.unseen:
        yield f"Not seen: {rules}: {why}."


def _finding_text(finding: Finding) -> str:
    from dialsim.evidence.findings import instant

    place = [f"line {finding.line}"] if finding.line else []
    place += [] if finding.at is None else [instant(finding.at)]
    place += [] if finding.campaign is None else [finding.campaign]
    place += [] if finding.call_id is None else [f"call {finding.call_id}"]
    return f"{finding.rule}  {', '.join(place)}: {finding.text}"


def _comparison_text(found: LogComparison) -> Iterator[str]:
    yield f"REAL       {_side_text(found.real)}"
    yield f"SIMULATED  {_side_text(found.simulated)}"
    yield f"Noise: how far {found.replications} further runs of {found.noise} are apart."
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
    if found.untold is not None:
        yield f"Not compared where there is no number: {found.untold}."
    yield found.sentence
    if found.main is not None:
        more = len(found.beyond_noise) - 1
        also = f"; {more} other distance{' is' if more == 1 else 's are'} beyond noise, too"
        ratio = found.main.ratio
        times = f"{ratio:,.1f} times" if isfinite(ratio) else "more than"
        yield f"It is {times} what chance makes of it at most{also if more else ''}."


def _side_text(side: Side) -> str:
    from dialsim.results.thai_time import minute_text

    found = side.profile
    span = f"{minute_text(found.first)} to {minute_text(found.last)}"
    return f"{side.source}: {found.calls:,} calls to {found.people:,} people, {span} Thai time"


def _distance_row(one: Compared) -> tuple[str, ...]:
    name, unit = one.metric.name, one.metric.unit
    if isnan(one.distance):
        return name, "–", unit, "–", "", ""
    amount = _amount(one.distance, unit)
    others = f"{_amount(one.low, unit)} to {_amount(one.high, unit)}"
    said = " beyond noise" if one.beyond_noise else ""
    return name, amount, unit, _amount(one.floor, unit), others, said


def _amount(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.3f}"
    return f"{value:,.0f}" if not unit or value >= 100 else f"{value:.{1 if value >= 10 else 2}f}"
