from __future__ import annotations

from pathlib import Path

import pytest

from dialsim.results.figures import BLOCKS, FIGURES, MAIN, NUMBERS, Unit, unit_of
from dialsim.results.result import Result
from results.traces import hand_trace

DOCS = Path(__file__).parents[2] / "docs" / "results.md"


def documented(block: str) -> str:
    """The table of a block's figures, as docs/results.md has it."""
    rows = [f"| `{f.key}` | {f.unit} | {f.meaning} |" for f in FIGURES if f.block == block]
    return "\n".join(["| figure | unit | meaning |", "|---|---|---|", *rows])


@pytest.mark.parametrize("block", BLOCKS)
def test_the_documentation_has_every_figure_with_its_unit_and_meaning(block: str) -> None:
    assert documented(block) in DOCS.read_text(encoding="utf-8")


def test_tables_have_every_figure_that_is_a_number() -> None:
    assert set(NUMBERS) <= set(Result(hand_trace([])).summary.to_frame())


def test_experiments_show_declared_figures_by_a_name_of_their_own() -> None:
    assert set(MAIN) <= set(NUMBERS)
    assert len({*MAIN.values()}) == len(MAIN)


def test_names_of_attempts_and_steps_have_units_too() -> None:
    assert unit_of("reach_by_attempt_12") is Unit.SHARE
    assert unit_of("funnel_Collector_promised") is Unit.CONVERSATIONS
    assert unit_of("finish_seconds") is unit_of("final_at") is Unit.INSTANT
