"""What the commands of many runs share: going on after Ctrl-C, and printing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.options import INTERRUPTED

if TYPE_CHECKING:
    from dialsim.experiments.variants import Variant
    from dialsim.report.what_if import FurtherRuns
    from dialsim.scenario.models import Scenario


@contextmanager
def resumable(out: Path | None) -> Iterator[None]:
    """Say after Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing was written."
        if out is not None:
            kept = f"finished replications are kept in {out}; the same command goes on from there."
        click.echo(f"Interrupted: {kept}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


def write_page(
    out: Path,
    report: Callable[[FurtherRuns], str],
    pairs: int | None,
    jobs: int | None,
    dask: str | None,
) -> None:
    """Write report.html; the runs that it takes are kept with the others."""
    from dialsim.cli.progress import progress_bar
    from dialsim.report.run_folder import put
    from dialsim.report.what_if import FurtherRuns

    with resumable(out), progress_bar("What would help", "runs") as progress:
        put(report(FurtherRuns(pairs, jobs, dask, out, progress)), out)


def check_variants(variants: Sequence[Variant], scenario: Scenario) -> None:
    """Raise an error that names the first variant that a scenario can't have."""
    from dialsim.experiments.failures import ExperimentError
    from dialsim.scenario.problems import ScenarioError

    for variant in variants:
        try:
            variant.of(scenario)
        except ScenarioError as error:
            said = str(error).removeprefix("--set ")
            raise ExperimentError(f"variant {variant.name}: {said}") from None


def print_json(document: object) -> None:
    """Print one JSON document."""
    import orjson

    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
