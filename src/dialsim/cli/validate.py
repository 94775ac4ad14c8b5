"""`dialsim validate` checks a scenario file; `dialsim schema` prints the JSON Schema of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.program import format_option, scenario_argument, set_option

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Scenario


@click.command(
    short_help="Print the JSON Schema of scenario files.",
    epilog="Example: dialsim schema > scenario.schema.json",
)
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors to complete and check them.

    Name it in the first line of a scenario file:

    \b
      # yaml-language-server: $schema=scenario.schema.json
    """
    import orjson

    from dialsim.scenario.schema import json_schema

    click.echo(orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2).decode())


@click.command(
    short_help="Check a scenario file without running it.",
    epilog="Example: dialsim validate scenarios/first-campaign.yaml",
)
@scenario_argument
@set_option
@format_option
def validate(scenario: Path, overrides: tuple[str, ...], form: str) -> None:
    """Check a scenario file, its recipients' files included, without running it.

    Reports every problem at once with file, line, column and path; exit status 2 if there is any.
    """
    from dialsim.scenario.loading import load
    from dialsim.scenario.problems import ScenarioError

    try:
        loaded = load(scenario, overrides)
    except ScenarioError as error:
        if form == "json":
            _print_json(valid=False, problems=error.problems, warnings=())
            raise click.exceptions.Exit(2) from error
        raise
    if form == "json":
        _print_json(valid=True, problems=(), warnings=loaded.warnings)
        return
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    click.echo(f"{scenario} is good: {_contents(loaded)}.")


def _contents(scenario: Scenario) -> str:
    from dialsim.engine.world import World

    world = World(scenario)
    campaigns = [campaign for block in world.organizations for campaign in block.campaigns]
    people = sum(campaign.people.count for campaign in campaigns)
    parts = (
        (len(world.organizations), "organization"),
        (len(campaigns), "campaign"),
        (people, "recipient"),
    )
    return ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in parts)


def _print_json(**document: object) -> None:
    import orjson

    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
