"""The commands of the program `dialsim`: they parse options, call the other rooms, and print."""

from __future__ import annotations

import sys
from io import TextIOWrapper

import click

from dialsim import __version__
from dialsim.cli.experiment import compare, plan, sweep
from dialsim.cli.forecast import forecast, pull
from dialsim.cli.logs import calibrate, compare_log, log, replay, verify
from dialsim.cli.program import INTERRUPTED, Program, drop_output
from dialsim.cli.run import report, run
from dialsim.cli.scenario import new, people, schema, validate
from dialsim.cli.serve import check_receiver, journal, serve, studio
from dialsim.errors import DialsimError


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Try: dialsim run scenarios/first-campaign.yaml",
)
@click.version_option(__version__, prog_name="dialsim")
def commands() -> None:
    """Simulate outbound voice-agent calling: will the campaign finish, and what holds it back?

    Exit status: 0 good, 1 the answer is no, 2 wrong use or bad input.
    """


# The modules of the commands import what they need when they run: pandas, pydantic and matplotlib
# would make every `--help` slow.
for command in (new, run, sweep, compare, plan, report, people, validate, schema, serve, journal,
                log, verify, calibrate, compare_log, replay, pull, forecast, studio,
                check_receiver):  # fmt: skip
    commands.add_command(command)


def main() -> None:
    """The `dialsim` program."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # Thai names on terminals that cannot show them
    try:
        # In standalone mode click would exit with 1, the answer "no", for errors in a scenario.
        sys.exit(commands(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except DialsimError as error:
        text = str(error).replace("force=True", "--force")
        click.echo(text if _names_its_place(error) else f"Error: {text}", err=True)
        sys.exit(2)
    except OSError as error:
        # A full disk under standard output would fail once more when Python flushes it at exit.
        drop_output()
        click.echo(f"Error: the system says: {error}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted: nothing was written.", err=True)
        sys.exit(INTERRUPTED)


def _names_its_place(error: DialsimError) -> bool:
    """Return True if an error's text begins with `file:line:column:`."""
    from dialsim.errors import ScenarioError

    return isinstance(error, ScenarioError) and error.problems[0].line is not None
