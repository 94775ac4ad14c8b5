"""The pages of many runs as HTML, with the further runs that they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialsim.experiments.variants import Change, Variant
from dialsim.report.goal_help import asked_of, toward
from dialsim.report.levers import AS_IT_IS
from dialsim.report.plan_page import plan_page, setting_text
from dialsim.report.replications_page import replications_page
from dialsim.report.sweep_page import best_variants, sweep_page
from dialsim.report.what_if import FurtherRuns, Place, WhatIf, people_called, what_would_help
from dialsim.results.runs import run

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.plan import Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep
    from dialsim.scenario.models import Scenario

_NONE_OF_ITS_OWN = FurtherRuns()


def replications_report(runs: Replications, further: FurtherRuns = _NONE_OF_ITS_OWN) -> str:
    """The page of replications; replication 0 is run again for its pictures."""
    places = [Place(AS_IT_IS, runs.figures)]
    called = people_called(runs.figures)
    (what_if,) = what_would_help(runs.scenario, runs.seed, places, further, called)
    first = run(runs.scenario, seed=runs.seed, replication=0)
    return replications_page(runs, first, what_if).html()


def sweep_report(
    found: Sweep,
    compared: pd.DataFrame,
    baseline: str,
    seed: int | None,
    further: FurtherRuns = _NONE_OF_ITS_OWN,
) -> str:
    """The page of a sweep; `compared` are its differences to the variant `baseline`.

    `seed` is what the sweep was given, None for that of each variant. What would help is measured
    for the baseline, and for the variant that the page names first.
    """
    named = dict.fromkeys([baseline, *[*best_variants(found, compared).values()][:1]])
    runs = {variant.name: (variant, figures)
            for variant, figures in zip(found.variants, found.figures, strict=True)}  # fmt: skip
    places = [Place(*runs[name]) for name in named]
    called = sum(people_called(figures) for figures in found.figures)
    measured = what_would_help(found.scenario, seed, places, further, called)
    helped = dict(zip(named, measured, strict=True))
    used = found.scenario.seed if seed is None else seed
    return sweep_page(found, compared, baseline, used, helped).html()


def plan_report(
    answer: Plan, scenario: Scenario, seed: int | None, further: FurtherRuns = _NONE_OF_ITS_OWN
) -> str:
    """The page of a plan for a scenario, which is run once with the value that it found.

    `seed` is as in `sweep_report`. What else would help is measured there, too.
    """
    value = Variant(setting_text(answer), (Change(answer.path, str(answer.evidence.value)),))
    places = [Place(value, answer.evidence.runs, asked_of(answer)[0])]
    called = sum(people_called(part.runs) for part in answer.tried)
    (what_if,) = what_would_help(scenario, seed, places, further, called)
    helped = toward(answer, what_if) if isinstance(what_if, WhatIf) else what_if
    return plan_page(answer, run(value.of(scenario), seed=seed), helped).html()
