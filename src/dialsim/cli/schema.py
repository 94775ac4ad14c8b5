"""`dialsim schema`: the JSON Schema of scenario files."""

from __future__ import annotations

import click


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
