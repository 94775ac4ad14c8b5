"""`dialsim studio`: change a scenario on a page, and see what comes of it."""

from __future__ import annotations

from pathlib import Path

import click

from dialsim.cli.program import listen_options, optional_scenario_argument, set_option


@click.command(
    short_help="Change a scenario on a page in the browser, and see what comes of it.",
    epilog="""\b
Examples:
    dialsim studio
    dialsim studio scenarios/first-campaign.yaml
    dialsim studio today --port 8500
""",
)
@optional_scenario_argument
@listen_options(
    8500,
    "What everybody who opens the page must then know. At least 16 letters, digits, or . _ ~ -.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in this machine's browser.")
@set_option
def studio(
    scenario: Path | None,
    port: int,
    host: str,
    control_token: str | None,
    opens: bool,
    overrides: tuple[str, ...],
) -> None:
    """Open a page with sliders for lines, windows, attempts and the rest of a scenario.

    The answer follows each change: when it is done and how sure that is, whom it reaches, what it
    costs, what holds it back. Nothing is written unless you save it. Without a SCENARIO the page
    begins with a list of people and a few questions. SCENARIO may also be the folder that `dialsim
    pull` wrote, or a zip file that a studio saved. Everybody who opens the page has their own
    session.
    """
    from dialsim.sandbox.dependencies import require_extra
    from dialsim.studio import PACKAGES

    if scenario is None and overrides:
        raise click.UsageError("--set goes with a SCENARIO")
    require_extra("dialsim studio", PACKAGES, "studio")
    from dialsim.sandbox.addresses import address_url
    from dialsim.sandbox.control.token import ControlToken
    from dialsim.studio.files import open_path
    from dialsim.studio.server import server

    token = None if control_token is None else ControlToken(control_token)
    state = None if scenario is None else open_path(scenario, overrides)
    served = server(state, host, port, token)
    assert served.port is not None
    url = f"{address_url('127.0.0.1' if host == 'localhost' else host, served.port)}/"
    click.echo(f"The studio is at {url} (Ctrl-C ends it)")
    if opens:
        click.launch(url)
    try:
        served.run_until_shutdown()
    finally:
        click.echo("The studio has ended; what was not saved is in the links only.")
