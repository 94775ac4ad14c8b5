"""Experiments as HTML, for notebooks: the answer in words, then tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from dialsim.experiments import wording
from dialsim.results.summary_page import table_html
from dialsim.results.wording import FigureTable

if TYPE_CHECKING:
    from dialsim.experiments.plan import Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep


def replications_html(runs: Replications) -> str:
    """A fragment of HTML without scripts or links."""
    said = [wording.replications_headline(runs), *wording.lost_sentences(runs)]
    said += wording.precision_sentences(runs)
    return _fragment(runs.scenario.name, said, wording.replications_tables(runs))


def sweep_html(found: Sweep) -> str:
    """A fragment of HTML without scripts or links."""
    base = found.variants[0].name
    tables = wording.sweep_tables(found, found.differences(base), base)
    return _fragment(found.scenario.name, [wording.sweep_headline(found)], tables)


def plan_html(answer: Plan) -> str:
    """A fragment of HTML without scripts or links."""
    warnings = (f"Warning: {text}." for text in answer.warnings)
    said = [wording.plan_headline(answer), *wording.plan_sentences(answer), *warnings]
    return _fragment(answer.scenario, said, wording.plan_tables(answer))


def _fragment(title: str, said: Sequence[str], tables: Sequence[FigureTable]) -> str:
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in said)
    shown = "".join(table_html(table) for table in tables)
    return f"<div><h3>{escape(title)}</h3>{paragraphs}{shown}</div>"
