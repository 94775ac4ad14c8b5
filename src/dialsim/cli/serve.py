"""`dialsim serve` (the interface over HTTP), `dialsim studio`, and `dialsim journal`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.program import (
    file_option,
    listen_options,
    optional_scenario_argument,
    seed_option,
    set_option,
)

if TYPE_CHECKING:
    from dialsim.sandbox.access import Certificate, Destinations
    from dialsim.sandbox.core import SandboxCore
    from dialsim.scenario.scenario import Scenario


@click.group(
    short_help="Copy the file that a sandbox is kept in.",
    epilog="Example: dialsim journal copy team.journal backup.journal",
)
def journal() -> None:
    """Copy the file in which `dialsim serve --journal` keeps a sandbox."""


@journal.command(epilog="Example: dialsim journal copy team.journal backup.journal")
@click.argument("source", type=click.Path(path_type=Path, dir_okay=False), metavar="FROM")
@click.argument("target", type=click.Path(path_type=Path), metavar="TO")
def copy(source: Path, target: Path) -> None:
    """Copy a journal, also while a sandbox runs on it.

    The copy is one file, as of this moment, and is read once to make sure that it is whole. Before
    copying the file by other means, stop the sandbox: the latest entries are in a second file.
    """
    from dialsim.sandbox.journal import copy_journal

    count = copy_journal(source, target)
    click.echo(f"Copied to {target}: {count:,} {'entry' if count == 1 else 'entries'}")


@click.command(
    short_help="Serve the interface over HTTP, on a virtual clock.",
    epilog="Examples: dialsim serve scenarios/first-campaign.yaml --port 8400; "
    "dialsim serve scenarios/first-campaign.yaml --journal team.journal, and to go on with it, "
    "dialsim serve --journal team.journal",
)
@optional_scenario_argument
@listen_options(
    8400,
    "Token that requests under /_dialsim must then carry, as Authorization: Bearer TOKEN. At "
    "least 16 letters, digits, or . _ ~ -.",
)
@click.option(
    "--tls",
    is_flag=True,
    help="Serve HTTPS with a certificate made for this run. The file of its authority, with "
    "which clients verify it, is printed.",
)
@file_option(
    "--tls-cert", "Serve HTTPS with this certificate, followed by the chain to its authority (PEM)."
)
@file_option("--tls-key", "The private key of the certificate of --tls-cert (PEM).")
@file_option(
    "--journal",
    "Keep all that happens in this file. If the file exists, continue from it, without a "
    "SCENARIO or with the same one.",
)
@click.option(
    "--webhook-url",
    metavar="URL|keep",
    help="Send the results of all organizations to this URL, or none at all (keep).",
)
@click.option(
    "--send-webhooks",
    is_flag=True,
    help="Send results to the URLs of the scenario, even on other machines. Otherwise results for "
    "other machines are kept, and listed like those that are sent.",
)
@click.option(
    "--webhook-hosts",
    metavar="HOST,…",
    help="The only hosts that results may be sent to: names, addresses, or networks such as "
    "10.0.0.0/8. Default: all but link-local addresses.",
)
@seed_option
@set_option
def serve(
    scenario: Path | None,
    port: int,
    host: str,
    control_token: str | None,
    tls: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    journal: Path | None,
    webhook_url: str | None,
    send_webhooks: bool,
    webhook_hosts: str | None,
    seed: int | None,
    overrides: tuple[str, ...],
) -> None:
    """Serve the service's interface over HTTP, simulated by the engine that runs scenario files.

    The clock stands at clock.start until POST /_dialsim/clock/advance moves it, or PUT
    /_dialsim/clock lets it run at a chosen speed. Clients use the API keys of the scenario; keys
    that the scenario leaves out are derived from its seed and printed.

    Webhooks are really sent to URLs on this machine, to --webhook-url, and to URLs that are set
    while the sandbox runs. The scenario's other URLs get nothing without --send-webhooks.

    With --journal the sandbox outlives the program: started again with the same file, it continues
    where it was, even after a kill. dialsim run --from-journal FILE gives the run so far as tables.
    """
    from dialsim.sandbox.access import require_extra

    if scenario is None and journal is None:
        raise click.UsageError("name a SCENARIO, or a journal to go on with: --journal FILE")
    if scenario is None and (seed is not None or overrides):
        raise click.UsageError("--seed and --set go with a SCENARIO; a journal keeps its own")
    # Before the imports that need the extra: their ImportError would not say how to install it.
    require_extra("serve")
    if send_webhooks and webhook_url is not None:
        raise click.UsageError("--send-webhooks and --webhook-url exclude each other")
    from dialsim.sandbox.access import KEEP, ControlToken, Destinations
    from dialsim.sandbox.page.view import PATH
    from dialsim.sandbox.server import address, listening
    from dialsim.sandbox.server import serve as serve_http

    if scenario is None and webhook_url not in (None, KEEP):
        raise click.UsageError(
            "--webhook-url URL goes with a SCENARIO; a journal keeps its URLs, and --send-webhooks "
            "sends there"
        )
    hosts = () if webhook_hosts is None else [host.strip() for host in webhook_hosts.split(",")]
    destinations = Destinations(webhook_url, everywhere=send_webhooks, hosts=hosts)

    token = None if control_token is None else ControlToken(control_token)
    with (
        _certificate(host, tls, tls_cert, tls_key) as certificate,
        listening(host, port, token) as listener,
    ):
        # Links in webhooks contain the address, so it is needed before the sandbox.
        url = address(listener, certificate)
        loaded = None if scenario is None else _loaded(scenario, overrides, webhook_url)
        core = _core(loaded, journal, seed, url, destinations)
        if certificate is not None and certificate.authority is not None:
            click.echo(f"Certificate authority: {certificate.authority}")
        for position, account in enumerate(core.accounts):
            if account.block.settings.api_key is None:
                click.echo(f"API key of {account.block.name}: {core.api_key(position)}")
        for account in core.accounts:
            click.echo(f"Results of {account.block.name}: {core.where_results_go(account)}")
        # The token itself is a secret, and printed output may be stored.
        asks = "" if token is None else "?token=TOKEN with the control token as TOKEN"
        click.echo(f"Page: {url}{PATH}{asks}")
        serve_http(core, listener, token, certificate)


@contextmanager
def _certificate(
    host: str, made: bool, chain: Path | None, key: Path | None
) -> Iterator[Certificate | None]:
    """Yield the requested certificate, if any."""
    if (chain is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if made and chain is not None:
        raise click.UsageError("--tls makes a certificate: leave --tls-cert and --tls-key out")
    from dialsim.sandbox.access import Certificate, certificate_for, require_extra

    if chain is not None and key is not None:
        certificate = Certificate(chain, key)
        certificate.check()
        yield certificate
    elif made:
        require_extra("--tls", ("trustme",), "tls")
        with certificate_for(host) as certificate:
            yield certificate
    else:
        yield None


def _loaded(path: Path, overrides: tuple[str, ...], webhook_url: str | None) -> Scenario:
    """Load a scenario; if `webhook_url` is a URL, results of all its organizations go there."""
    from dialsim.sandbox.access import KEEP, with_webhook_url
    from dialsim.scenario.loading import load

    loaded = load(path, overrides=overrides)
    return loaded if webhook_url in (None, KEEP) else with_webhook_url(loaded, webhook_url)


def _core(
    loaded: Scenario | None,
    journal: Path | None,
    seed: int | None,
    url: str,
    destinations: Destinations,
) -> SandboxCore:
    """Create a sandbox for this address, or restore the one in a journal."""
    from dialsim.interface.instants import format_instant
    from dialsim.sandbox.access import with_public_url
    from dialsim.sandbox.core import SandboxCore
    from dialsim.sandbox.restart import begin, check_same, resume

    if loaded is not None and journal is None:
        return SandboxCore(with_public_url(loaded, url), seed, destinations)
    assert journal is not None
    if loaded is not None and not journal.exists():
        return begin(journal, with_public_url(loaded, url), seed, destinations)
    if loaded is not None:
        check_same(journal, loaded, seed)
    core = resume(journal, destinations)
    click.echo(f"Going on with {journal} at {format_instant(core.simulation.at)}")
    return core


@click.command(
    "check-receiver",
    short_help="Check that a webhook receiver copes with what may be sent.",
    epilog="Example: dialsim check-receiver http://127.0.0.1:9000/hooks/long-random-secret",
)
@click.argument("url")
@click.option("--yes", is_flag=True, help="Send to another machine than this one.")
def check_receiver(url: str, yes: bool) -> None:
    """Send made-up results to a webhook receiver, and print a table of its behaviour.

    Results come twice, in another order, late, analysed again, masked, with unknown fields, over
    slow and broken connections, and with a wrong secret at the end of the path. Exit status: 0 the
    receiver passed, 1 it failed a check, 2 wrong use or no connection.
    """
    from dialsim.sandbox.access import hostname, is_loopback
    from dialsim.sandbox.receiver_check import check_receiver as check

    if not url.startswith(("http://", "https://")) or not hostname(url):
        raise click.UsageError(f"{url} is no URL such as http://127.0.0.1:9000/hook")
    if not is_loopback(hostname(url)) and not yes:
        raise click.UsageError(
            f"{url} is another machine: made-up results would be sent there; --yes does so"
        )
    checks = check(url)
    width = max(len(one.situation) for one in checks)
    for one in checks:
        verdict = "PASS" if one.passed else "FAIL"
        click.echo(f"{verdict}  {one.situation:<{width}}  {one.outcome}")
    failed = sum(not one.passed for one in checks)
    click.echo(f"{failed} of {len(checks)} checks failed" if failed else "The receiver passed.")
    if failed:
        raise click.exceptions.Exit(1)


@click.command(
    short_help="Change a scenario on a page in the browser, and see what comes of it.",
    epilog="""\b
Examples:
    dialsim studio
    dialsim studio export.xlsx
    dialsim studio scenarios/first-campaign.yaml
    dialsim studio today --port 8500
""",
)
@optional_scenario_argument
@listen_options(
    8500,
    "Token that is then needed to open the page. At least 16 letters, digits, or . _ ~ -.",
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

    The answer follows each change: the finish and its certainty, the people reached, the cost, and
    the bottleneck. Nothing is written unless you save it. Without a SCENARIO the page begins with a
    list of people and a few questions. SCENARIO may also be such a list (Excel or CSV), the folder
    that `dialsim pull` wrote, or a zip file that a studio saved. Each visitor has a separate
    session.
    """
    from dialsim.sandbox.access import require_extra
    from dialsim.studio import PACKAGES

    has_list = scenario is not None and scenario.suffix.lower() in {".csv", ".xlsx"}
    if (scenario is None or has_list) and overrides:
        raise click.UsageError("--set goes with a SCENARIO")
    # As in `serve`: before the imports that need the extra.
    require_extra("dialsim studio", PACKAGES, "studio")
    from dialsim.sandbox.access import ControlToken, address_url
    from dialsim.scenario.document import read_bytes
    from dialsim.studio.files import open_list, open_path
    from dialsim.studio.server import server

    token = None if control_token is None else ControlToken(control_token)
    state = listed = None
    if scenario is not None and has_list:
        listed = open_list(scenario.name, read_bytes(scenario, str(scenario)))
    elif scenario is not None:
        state = open_path(scenario, overrides)
    served = server(state, host, port, token, listed)
    assert served.port is not None
    url = f"{address_url('127.0.0.1' if host == 'localhost' else host, served.port)}/"
    click.echo(f"The studio is at {url} (Ctrl-C ends it)")
    if opens:
        click.launch(url)
    try:
        served.run_until_shutdown()
    finally:
        click.echo("The studio has ended; unsaved changes are only in the links.")
