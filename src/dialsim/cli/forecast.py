"""`dialsim pull` and `dialsim forecast`: the state of a running campaign, and its continuation."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.experiment import Experiment, resumable
from dialsim.cli.logs import BodiesLocation, location_options, read_source
from dialsim.cli.program import (
    Options,
    experiment_options,
    file_option,
    force_option,
    progress_bar,
    scenario_argument,
    with_options,
)

if TYPE_CHECKING:
    from dialsim.experiments.forecast import ForecastFigures, Widening
    from dialsim.scenario.scenario import Scenario


@click.command(
    short_help="Read a running campaign from the service, as a scenario to forecast from.",
    epilog="""\b
Example: dialsim pull https://voice.example.com --api-key-file key.txt \\
    --campaign 7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10 \\
    --schedule request.json --lines 20 --out today
    dialsim forecast today
""",
)
@click.argument("url")
@file_option(
    "--api-key-file",
    "A file that holds the API key and nothing else; default: the environment variable "
    "DIALSIM_API_KEY. The key is never printed or written.",
)
@click.option(
    "--campaign",
    "campaigns",
    multiple=True,
    required=True,
    metavar="ID",
    help="The id of a campaign; may be given several times, for campaigns that share the lines.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="The folder that is written: scenario.yaml and people.csv.",
)
@file_option(
    "--schedule",
    "The body of the request that started the campaign, as JSON: the service doesn't show it. "
    "Once for all campaigns, or once for each, in their order.",
    multiple=True,
)
@click.option(
    "--log",
    "source",
    metavar="LOG",
    help="A log of the campaign's webhooks, as for dialsim log: it shows name, schedule, lines and "
    "agent where they are not given, when the last calls ended, and how people behave "
    "(`dialsim calibrate`).",
)
@location_options
@click.option(
    "--default-behaviour",
    is_flag=True,
    help="Use the built-in default behaviour instead of the one that the log shows.",
)
@click.option(
    "--lines",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of calls that may be under way at once (maxConcurrentCalls), which the service "
    "doesn't show; default: 10.",
)
@click.option(
    "--now",
    metavar="INSTANT",
    help="The instant of the data, such as 2026-01-07T09:00+07:00; default: by the service's "
    "clock.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True, max=100),
    default=5,
    show_default=True,
    metavar="N",
    help="Upper limit of requests per second.",
)
@click.option(
    "--retries",
    type=click.IntRange(min=0, max=20),
    default=6,
    show_default=True,
    metavar="N",
    help="How often a request that fails temporarily is repeated; waits grow from 1 s to 60 s, "
    "or are as Retry-After says.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="Longest wait for an answer.",
)
@click.option(
    "--allow-http", is_flag=True, help="Send the key unencrypted to a host other than this one."
)
@force_option
def pull(
    url: str,
    api_key_file: Path | None,
    campaigns: tuple[str, ...],
    out: Path,
    schedule: tuple[Path, ...],
    source: str | None,
    location: BodiesLocation,
    default_behaviour: bool,
    lines: int | None,
    now: str | None,
    rate: float,
    retries: int,
    timeout: float,
    allow_http: bool,
    force: bool,
) -> None:
    """Read the state of a running campaign from the service at URL.

    The recipients are read page by page and written with their histories, as a scenario whose clock
    starts now: `dialsim forecast` goes on from there. Values that the service does not return are
    listed in comments of the scenario, and printed. A stopped command continues its download if it
    is repeated within a quarter of an hour.
    """
    from dialsim.logs import pull as pulling
    from dialsim.logs.pull import ServiceClient, read_api_key

    requests = [pulling.read_schedule_file(file) for file in schedule]
    client = ServiceClient(
        url, read_api_key(api_key_file), rate=rate, retries=retries, timeout=timeout,
        allow_http=allow_http,
    )  # fmt: skip
    at = _instant(now)
    if source is None and any(location):
        raise click.UsageError(
            "--column, --table and --query are for the bodies in a log: give --log"
        )
    log = None if source is None else read_source(source, location)
    kept = "pages that were read are kept for a quarter of an hour"
    with resumable(kept), client, progress_bar("Reading recipients", "pages") as progress:
        pulled = pulling.pull(
            client, campaigns, out, schedules=requests, lines=lines, now=at,
            log=log, calibrated=not default_behaviour, force=force, progress=progress,
        )  # fmt: skip
    for line in pulled.sentences():
        click.echo(line)


def _instant(text: str | None) -> int | None:
    from dialsim.scenario.units import parse_offset_instant

    try:
        return None if text is None else parse_offset_instant(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--now'") from None


@click.command(
    short_help="Forecast a running campaign from today: when is it done, whom will it reach?",
    epilog="""\b
Example: dialsim forecast today --out forecast
    Tomorrow, pull the campaign again and repeat the command: it prints what has changed
""",
)
@scenario_argument
@click.option(
    "--replications",
    type=click.IntRange(min=19),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of runs of the forecast.",
)
@click.option(
    "--since",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The folder of an earlier forecast, to say what has changed; default: the one in the "
    "folder of --out.",
)
@file_option(
    "--draws",
    "Behaviours that may be the true ones; the runs are divided among them. Default: draws.yaml "
    "beside the scenario, if dialsim pull wrote one from a log.",
    metavar="FILE.yaml",
    exists=True,
)
@click.option(
    "--backtest",
    "source",
    metavar="LOG",
    help="A log of the campaign's webhooks: forecast it from earlier instants, print how many of "
    "these forecasts held, and widen the intervals accordingly.",
)
@file_option(
    "--plan",
    "The scenario of the campaign as planned. SCENARIO is then a CSV or workbook of what was "
    "done: numbers, attempts, last status and last time, under any usual heads.",
    metavar="FILE.yaml",
)
@click.option(
    "--now",
    metavar="INSTANT",
    help="With --plan: the instant of the list, such as 2026-01-07T09:00+07:00; default: now.",
)
@experiment_options
@with_options
def forecast(
    scenario: Path,
    replications: int,
    since: Path | None,
    draws: Path | None,
    source: str | None,
    plan: Path | None,
    now: str | None,
    options: Options,
) -> None:
    """Forecast when a running campaign finishes and whom it will reach, from people's histories.

    SCENARIO is a scenario whose people have histories, the folder that `dialsim pull` wrote, or,
    with --plan, a list of the calls made so far. A forecast from a later scenario replaces an
    earlier forecast in the folder of --out, whose figures are kept there with their instant.
    """
    from dialsim.experiments.forecast import KIND, hold_time_note
    from dialsim.experiments.forecast import forecast as make
    from dialsim.experiments.variants import DRAWS, read_variants
    from dialsim.results.folder import SOURCE
    from dialsim.scenario.loading import load

    notes: list[str] = []
    if plan is not None:
        loaded, said = _from_done(plan, scenario, _instant(now), options.overrides)
        scenario, notes = plan, [said]
    elif scenario.suffix.lower() in (".xlsx", ".csv") or now is not None:
        raise click.UsageError("a list of calls made needs its scenario: --plan FILE.yaml")
    else:
        loaded = load(
            scenario / SOURCE if scenario.is_dir() else scenario, overrides=options.overrides
        )
    beside = (scenario if scenario.is_dir() else scenario.parent) / DRAWS
    file = beside if draws is None and beside.is_file() else draws
    drawn = [] if file is None else read_variants(file)
    if drawn:
        drawn[0].of(loaded)  # raises its errors before the folder is opened
    earlier, options = _earlier(loaded, since, options)
    arguments = {
        "earlier": [part.to_dict() for part in earlier],
        "draws": {draw.name: draw.texts for draw in drawn},
    }
    experiment = Experiment(KIND, [loaded], options, arguments)
    experiment.open()  # before the backtest, which takes long, in case the folder is in use
    note = hold_time_note(loaded, jobs=1)
    notes, widening = [*notes, *filter(None, [note])], None
    if source is not None:
        lines, widening = _backtest(source, loaded, options)
        notes += lines
    experiment.add({"notes": notes, "widening": None if widening is None else [*widening]})
    with experiment.running() as (_, settings):
        found = make(
            loaded, replications, draws=drawn, earlier=earlier, notes=notes, widening=widening,
            seed=options.seed, **settings,
        )  # fmt: skip
    experiment.deliver(found)


def _from_done(
    plan: Path, done: Path, now: int | None, overrides: tuple[str, ...]
) -> tuple[Scenario, str]:
    """Load a plan with the histories of a done list at `now` (ms), and a sentence on the list."""
    from dialsim.errors import DialsimError
    from dialsim.interface.instants import MINUTE, format_instant
    from dialsim.scenario.campaign import RecipientsFile
    from dialsim.scenario.document import read_bytes
    from dialsim.scenario.done_list import read_done
    from dialsim.scenario.loading import load

    now = int(time.time() * 1000) // MINUTE * MINUTE if now is None else now
    # A scenario names its files relative to itself, and an override is YAML.
    name = json.dumps(os.path.relpath(done, plan.parent))
    texts, at = [f"clock.start={format_instant(now)}"], format_instant(now)
    lists = 0
    # Loaded twice: which paths are overridden depends on the campaigns of the plan.
    for o, organization in enumerate(load(plan, overrides=overrides).organizations):
        for c, campaign in enumerate(organization.campaigns):
            path = f"organizations.{o}.campaigns.{c}"
            if isinstance(campaign.recipients, RecipientsFile):
                lists += 1
                texts.append(f"{path}.recipients.done={name}")
            # A schedule request made before the forecast begins is in effect at its beginning.
            if campaign.scheduled_at is not None and campaign.scheduled_at < now:
                texts.append(f"{path}.scheduledAt={at}")
    if not lists:
        raise DialsimError(f"{plan} names no list of people, so {done} can't say whom it called")
    listed = read_done(read_bytes(done, str(done)), str(done), now)
    return load(plan, overrides=[*overrides, *texts]), listed.sentence(str(done))


def _backtest(
    source: str, scenario: Scenario, options: Options
) -> tuple[list[str], Widening | None]:
    """Return the sentences of a backtest, and its widening of intervals; None without forecasts."""
    from dialsim.logs.backtest import backtest

    log = read_source(source, BodiesLocation(None, None, None))
    with progress_bar("Forecasting from earlier instants", "runs") as progress:
        found = backtest(log, None, scenario, jobs=options.jobs, progress=progress)
    return [f"{line}." for line in found.lines()], found.widening if found.forecasts else None


def _earlier(
    scenario: Scenario, since: Path | None, options: Options
) -> tuple[list[ForecastFigures], Options]:
    """Return the earlier forecasts, and options that allow replacing one of another scenario."""
    from dialsim.experiments.forecast import KIND, kept_forecasts
    from dialsim.results.folder import MANIFEST, read_manifest

    known = [] if since is None else kept_forecasts(since)
    out = options.out
    if out is not None and (out / MANIFEST).is_file():
        said = read_manifest(out)
        if said.get("experiment") == KIND:
            known += kept_forecasts(out)
            other = said["scenario_sha256"] != scenario.digest
            # A stopped forecast from the same scenario is continued, one from another scenario
            # replaced.
            options = replace(options, force=options.force or other)
    # Of two forecasts of one instant the one in the folder of --out remains.
    before = {part.at: part for part in known if part.at < scenario.clock.start}
    return [before[at] for at in sorted(before)], options
