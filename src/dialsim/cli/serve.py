"""`dialsim serve`: the service's interface over HTTP, on a clock that is moved by hand."""

from __future__ import annotations

from pathlib import Path

import click

from dialsim.cli.options import scenario_argument, seed_option, set_option


@click.command(
    short_help="Serve the interface over HTTP, on a virtual clock.",
    epilog="Example: dialsim serve scenarios/first-campaign.yaml --port 8400",
)
@scenario_argument
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8400,
    show_default=True,
    metavar="N",
    help="The port to listen on; 0 takes a free one and prints it.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen on; one that other machines reach needs a control token.",
)
@click.option(
    "--control-token",
    envvar="DIALSIM_CONTROL_TOKEN",
    show_envvar=True,
    metavar="TOKEN",
    help="What every call under /_dialsim must then bring, as Authorization: Bearer TOKEN. At "
    "least 16 letters, digits, or . _ ~ -. Others can read the command line: prefer the variable.",
)
@seed_option
@set_option
def serve(
    scenario: Path,
    port: int,
    host: str,
    control_token: str | None,
    seed: int | None,
    overrides: tuple[str, ...],
) -> None:
    """Serve what the service's interface offers, over the engine that runs scenario files.

    The clock stands at clock.start until POST /_dialsim/clock/advance moves it. Clients use the
    API keys of the scenario; those it leaves out are printed.

    Not there yet: webhooks are not sent over HTTP, and the clock does not run by itself.
    """
    from dialsim.sandbox.extra import require_extra
    from dialsim.scenario.loading import load

    loaded = load(scenario, overrides)
    require_extra("serve")
    from dialsim.sandbox.addresses import with_public_url
    from dialsim.sandbox.api_keys import derived_key
    from dialsim.sandbox.control_token import ControlToken
    from dialsim.sandbox.exchange import Exchange
    from dialsim.sandbox.server import address, listening
    from dialsim.sandbox.server import serve as serve_http

    token = None if control_token is None else ControlToken(control_token)
    with listening(host, port, token) as listener:
        exchange = Exchange(with_public_url(loaded, address(listener)), seed)
        world = exchange.simulation.log.world
        for block in world.organizations:
            if block.settings.api_key is None:
                click.echo(f"API key of {block.name}: {derived_key(world.seed, block.name)}")
        serve_http(exchange, listener, token)
