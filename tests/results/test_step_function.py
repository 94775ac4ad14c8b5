from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.results.campaigns import length, union
from dialsim.results.time_use import StepFunction, distinct


def column(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def spans(*pairs: tuple[int, int]) -> NDArray[np.int64]:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def test_changes_at_one_instant_are_one_step_and_steps_to_the_same_value_are_none() -> None:
    steps = StepFunction.of_changes(column(1, 1, 1, 5, 5, 9), column(1, 1, -1, 1, -1, -1))
    assert steps.at.tolist() == [1, 9]
    assert steps.value.tolist() == [1, 0]


def test_a_value_holds_from_its_instant_up_to_the_next() -> None:
    steps = StepFunction(column(10, 20, 30), column(2, 5, 0))
    assert steps(column(9, 10, 19, 20, 29, 30, 99)).tolist() == [0, 2, 2, 5, 5, 0, 0]
    assert steps.peak == 5


def test_the_integral_counts_only_what_lies_in_the_spans() -> None:
    steps = StepFunction(column(10, 20, 30), column(2, 5, 0))
    assert steps.integral(spans((0, 100))) == 2 * 10 + 5 * 10
    assert steps.integral(spans((0, 5), (15, 22), (29, 40))) == 2 * 5 + 5 * 2 + 5 * 1
    assert steps.integral(spans()) == 0


def test_without_changes_everything_is_0() -> None:
    steps = StepFunction.of_changes(column(), column())
    assert steps(column(5)).tolist() == [0]
    assert steps.integral(spans((0, 100))) == 0
    assert steps.peak == 0


def test_step_functions_add_and_subtract() -> None:
    one = StepFunction(column(0, 10), column(3, 0))
    other = StepFunction(column(5, 10), column(2, 1))
    total = StepFunction.total([one, other])
    assert total(column(0, 5, 10)).tolist() == [3, 5, 1]
    assert (one - other)(column(0, 5, 10)).tolist() == [3, 1, -1]
    assert (one - other).positive()(column(0, 5, 10)).tolist() == [1, 1, 0]


def test_the_union_of_spans_merges_what_overlaps_or_touches() -> None:
    merged = union([spans((0, 10), (30, 40)), spans((5, 7), (10, 12)), spans((39, 41), (50, 51))])
    assert merged.tolist() == [[0, 12], [30, 41], [50, 51]]
    assert length(merged) == 12 + 11 + 1
    assert union([]).tolist() == []


def test_distinct_drops_repeats_of_a_sorted_column() -> None:
    assert distinct(column(1, 1, 2, 5, 5)).tolist() == [1, 2, 5]
    assert distinct(column()).tolist() == []
