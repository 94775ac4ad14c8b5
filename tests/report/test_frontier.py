"""The variants worth choosing from and the recommended one: figures made by hand."""

from __future__ import annotations

from math import inf

import pytest

from dialsim.experiments.known_bounds import UNKNOWN
from dialsim.experiments.run_figures import RunFigures, ScopeFigures
from dialsim.experiments.sweep import Sweep
from dialsim.experiments.variants import Variant
from dialsim.report.sweep_page import Frontier
from report.pages import ACME

HOUR = 3_600_000
NOISE = (0.0, 0.03, -0.02, 0.01, 0.02, -0.01, 0.01, -0.03)


def runs(hours: float, people: float, cost: float, *, swing: int = 1) -> tuple[RunFigures, ...]:
    """Runs around a finish after so many hours, people reached and cost; they rise together."""
    made = []
    for k, noise in enumerate(NOISE):
        values = {
            "finish": HOUR * hours * (1 + swing * noise),
            "people_reached": people * (1 + noise),
            "cost": cost * (1 + noise),
        }
        made.append(RunFigures(k, 0, (ScopeFigures("run", None, None, values),)))
    return tuple(made)


def frontier(
    figures: dict[str, tuple[RunFigures, ...]],
    baseline: str = "a",
    lost: dict[str, float] | None = None,
) -> Frontier:
    scenario = ACME.scenario()
    variants = [Variant(name) for name in figures]
    known = [UNKNOWN] * len(variants)
    found = Sweep(scenario, variants, [*figures.values()], known, baseline=baseline)
    return Frontier(found, lost or {})


def test_a_variant_is_beaten_by_one_that_is_as_good_in_all_and_really_better_in_one() -> None:
    found = frontier({"a": runs(10, 100, 50), "b": runs(8, 100, 50), "c": runs(12, 130, 60)})
    assert found.best == ("b", "c")
    assert {name: loss.than for name, loss in found.beaten.items()} == {"a": "b"}
    assert found.beaten["a"].said.startswith("finish +2 h ")
    assert found.beaten["a"].said.endswith(", real, against b")


def test_a_difference_that_may_be_chance_beats_nobody() -> None:
    found = frontier({"a": runs(10, 100, 50), "b": runs(9.99, 100, 50, swing=-1)})
    assert found.best == ("a", "b")
    assert found.beaten == {}
    assert found.alike == ("a",) if found.recommended == "b" else ("b",)
    assert [*found.gives_up("a"), *found.gives_up("b")] == []


def test_the_recommended_variant_is_short_of_the_best_by_the_least_and_says_by_what() -> None:
    # short by, in per cent: a (time 100), b (time 10, people 5, cost of a person 0), c (people 40)
    found = frontier({"a": runs(20, 100, 100), "b": runs(11, 95, 95), "c": runs(10, 60, 60)})
    assert found.best == ("a", "b", "c")
    assert found.recommended == "b"
    finish, reached, cost = (loss.said for loss in found.gives_up("b"))
    assert finish.startswith("finish +1 h (")
    assert finish.endswith(", real, against c")
    assert reached.startswith("people reached -5.0 ")
    assert reached.endswith(", real, against a")
    assert cost.startswith("cost +35.0 ")
    assert cost.endswith(", real, against c")


def test_a_variant_that_reaches_fewer_than_the_baseline_is_not_recommended() -> None:
    figures = {"a": runs(20, 100, 100), "b": runs(10, 97, 97)}
    assert frontier(figures).recommended == "b"
    assert frontier(figures, lost={"b": 3.0}).recommended == "a"
    # nor does it move the others' marks
    figures["c"] = runs(18, 99, 110)
    assert frontier(figures, lost={"b": 3.0}).recommended in ("a", "c")


@pytest.mark.parametrize("baseline", ["a", "b"])
def test_variants_that_are_the_same_have_no_aim_and_the_baseline_stays(baseline: str) -> None:
    found = frontier({"a": runs(10, 100, 50), "b": runs(10, 100, 50)}, baseline)
    assert found.aims == ()
    assert found.best == ("a", "b")
    assert found.recommended == baseline


def test_who_never_finishes_is_beaten_by_who_does() -> None:
    never = tuple(
        RunFigures(k, 0, (ScopeFigures("run", None, None,
                                       {"finish": inf, "people_reached": 90.0, "cost": 50.0}),))
        for k in range(8)
    )  # fmt: skip
    found = frontier({"a": never, "b": runs(10, 100, 49)})
    assert found.best == ("b",)
    assert found.recommended == "b"
