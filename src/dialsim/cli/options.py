"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

INTERRUPTED = 130  # what shells report of a program ended by Ctrl-C
PIPE_CLOSED = 141  # and of one that went on writing when nobody read any more

scenario_argument = click.argument(
    "scenario", type=click.Path(path_type=Path, dir_okay=True), metavar="SCENARIO"
)

optional_scenario_argument = click.argument(
    "scenario",
    type=click.Path(path_type=Path, dir_okay=True),
    metavar="[SCENARIO]",
    required=False,
)

set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a value of the scenario; may be repeated. A name may stand for an index: "
    "organizations.Acme.maxConcurrentCalls=40.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="The seed of all chance; default: the scenario's.",
)

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text for people, one JSON document for programs.",
)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes work at it; default: one per processor. Results are the same.",
)

dask_option = click.option(
    "--dask",
    metavar="SCHEDULER",
    help="Work on a Dask cluster instead, such as tcp://10.0.0.1:8786.",
)

experiment_out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep finished replications and write the results to this folder; the same command "
    "goes on with a stopped one.",
)

force_option = click.option(
    "--force", is_flag=True, help="Replace DIR if it holds an earlier result."
)


def _enough(_: click.Context, __: click.Parameter, pairs: int | None) -> int | None:
    if pairs == 1:
        raise click.BadParameter("1 run tells no difference from chance; write 2 or more, or 0")
    return pairs


what_if_option = click.option(
    "--what-if",
    type=click.IntRange(min=0),
    callback=_enough,
    metavar="N",
    help="For report.html: measure what would help by N runs of each small change; 0 for none. "
    "Default: 6, for many runs up to 25; fewer or none where people are many.",
)
