"""The pages of many runs as HTML, with the further runs that they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialsim.report.plan_page import plan_page
from dialsim.report.replications_page import replications_page
from dialsim.report.run_folder import Progress, what_would_help
from dialsim.report.sweep_page import sweep_page
from dialsim.results.runs import run
from dialsim.scenario.loading import with_overrides

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.plan import Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep
    from dialsim.scenario.models import Scenario


def replications_report(
    runs: Replications, pairs: int | None = None, progress: Progress | None = None
) -> str:
    """The page of replications; replication 0 is run again for its pictures.

    `pairs` and `progress` are as in `run_report`.
    """
    first = run(runs.scenario, seed=runs.seed, replication=0)
    return replications_page(runs, first, what_would_help(first, pairs, progress)).html()


def sweep_report(found: Sweep, compared: pd.DataFrame, baseline: str, seed: int) -> str:
    """The page of a sweep; `compared` are its differences to the variant `baseline`."""
    return sweep_page(found, compared, baseline, seed).html()


def plan_report(answer: Plan, scenario: Scenario, seed: int) -> str:
    """The page of a plan for a scenario, which is run once with the value that it found."""
    example = with_overrides(scenario, [f"{answer.path}={answer.evidence.value}"])
    return plan_page(answer, run(example, seed=seed)).html()
