"""The page of a sweep: which variant is best at what, and which differences are real."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from dialsim.experiments import wording
from dialsim.report.inline import picture
from dialsim.report.page import Fact, Facts, Page, Picture, Pictures, Section, Table, Text
from dialsim.report.run_page import made_from

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.sweep import Sweep

_Rows = dict[tuple[str, str], dict[str, Any]]


def sweep_page(found: Sweep, compared: pd.DataFrame, baseline: str, seed: int) -> Page:
    """The page of a sweep; `compared` are its differences to the variant `baseline`."""
    table = found.intervals()
    rows = wording.by_variant(table[table["scope"] == "run"])
    differences = wording.by_variant(compared[compared["scope"] == "run"])
    facts = [*_facts(found, rows, differences, baseline)]
    count = len(found.variants)
    which = f"seed {seed}, {count} variants with {found.replications} replications each"
    return Page(
        title=found.scenario.name,
        lead=found.scenario.description or "",
        answer=f"{facts[0].answer} is done first" if facts else wording.sweep_headline(found),
        facts=Facts([*facts, _sure(found, compared, baseline)]),
        sections=_sections(found, compared, baseline),
        made_from=made_from(found.scenario.name, which),
    )


def _facts(found: Sweep, rows: _Rows, differences: _Rows, baseline: str) -> Iterator[Fact]:
    """The best variant by each figure, and how it differs from the baseline."""
    questions = {"finish_seconds": (1, "What finishes first?"),
                 "people_reached": (-1, "What reaches most people?")}  # fmt: skip
    if found.scenario.costs is not None:
        questions["cost"] = (1, "What costs least?")
    for figure, (sign, question) in questions.items():
        means = {v.name: sign * rows[v.name, figure]["mean"] for v in found.variants}
        known = [name for name, mean in means.items() if isfinite(mean)]
        if not known:
            continue
        best = min(known, key=lambda name: means[name])
        yield Fact(question, best, f"{_mean(found, figure, sign * means[best])} on average"
                   f"{_against(differences, best, figure, baseline)}.")  # fmt: skip


def _mean(found: Sweep, figure: str, mean: float) -> str:
    if figure == "finish_seconds":
        return f"{wording.when_text(mean, found)} Thai time"
    unit = found.scenario.costs.currency if figure == "cost" and found.scenario.costs else "people"
    return f"{wording.amount_text(figure, mean)} {unit}"


def _against(differences: _Rows, variant: str, figure: str, baseline: str) -> str:
    if (variant, figure) not in differences:
        return ""
    return f"; against {baseline}: {wording.difference_text(differences[variant, figure])}"


def _sure(found: Sweep, compared: pd.DataFrame, baseline: str) -> Fact:
    shown = compared[
        (compared["scope"] == "run")
        & compared["figure"].isin(["finish_seconds", "people_reached", "cost"])
    ]
    real = int(shown["real"].sum())
    return Fact(
        "How sure is that?",
        f"{found.replications} runs of each variant",
        f"{real} of {len(shown)} differences to {baseline} are real: their 95 % intervals exclude "
        "0. All variants met the same chance, so they are compared run by run.",
    )


def _sections(found: Sweep, compared: pd.DataFrame, baseline: str) -> list[Section]:
    tables = wording.sweep_tables(found, compared, baseline)
    said = "After ± stands half the width of the 95 % interval of the mean difference."
    sections = [Section("Variants", [Table(tables[0])])]
    sections += [Section("Differences", [Text(said), Table(table)]) for table in tables[1:]]
    return [*sections, Section("Pictures", [Pictures([*_pictures(found)])])]


def _pictures(found: Sweep) -> Iterator[Picture]:
    plot = found.plot
    band = "mean, and the band that holds nine runs of ten"
    yield picture("finish", plot.curve, f"When each variant is done: {band}.")

    def reached(**drawing: Any) -> Any:
        return plot.curve("people_reached", **drawing)

    yield picture("reached", reached, f"How many people each variant reaches: {band}.")
    if found.scenario.costs is not None:

        def cost(**drawing: Any) -> Any:
            return plot.curve("cost", **drawing)

        yield picture("cost", cost, f"What each variant costs: {band}.")
        said = "Mean cost against mean finish; the variants that none beats in both are joined."
        yield picture("trade", plot.cost, said)
