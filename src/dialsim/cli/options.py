"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

scenario_argument = click.argument(
    "scenario", type=click.Path(path_type=Path, dir_okay=True), metavar="SCENARIO"
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
