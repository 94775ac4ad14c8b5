"""Comparing scenario files: their differences, and the differences of their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialsim
from dialsim.errors import ExperimentError
from dialsim.experiments.sweep import FileDifference, file_differences, names_of
from dialsim.testing import Sketch

JANUARY = Sketch(lines=3).campaign("January", recipients={"count": 30}, max_attempts=2)
MORE = Sketch(lines=5).campaign("January", recipients={"count": 30}, max_attempts=2)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=2), parts, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_a_document_does_not_differ_from_itself(document: Any) -> None:
    assert [*file_differences([document, document])] == []


@given(values, values)
def test_documents_that_differ_have_a_difference(one: Any, other: Any) -> None:
    assert bool([*file_differences([one, other])]) == (one != other)


def test_what_differs_is_told_path_by_path() -> None:
    one = {"seed": 1, "organizations": [{"name": "Acme", "max": 10, "windows": [1, 2]}]}
    other = {
        "organizations": [{"name": "Acme", "max": 12, "windows": [1]}, {"name": "Bee", "max": 3}],
    }
    assert [*file_differences([one, other])] == [
        FileDifference("seed", ("1", None)),
        FileDifference("organizations.Acme.max", ("10", "12")),
        FileDifference("organizations.Acme.windows", ("[1, 2]", "[1]")),
        FileDifference("organizations.Bee", (None, '{"name": "Bee", "max": 3}')),
    ]


def test_files_are_called_by_as_much_of_their_path_as_tells_them_apart() -> None:
    assert names_of([Path("a/x.yaml"), Path("b/y.yaml")]) == ["x", "y"]
    assert names_of([Path("a/x.yaml"), Path("b/x.yaml")]) == ["a/x", "b/x"]
    assert names_of([Path("x.yaml"), Path("x.yaml")]) == ["x.yaml (1)", "x.yaml (2)"]


def test_files_are_compared_as_variants_of_a_sweep_would_be() -> None:
    compared = dialsim.compare({"few": JANUARY.scenario(), "more": MORE.scenario()}, 4, jobs=1)
    path = "organizations.0.maxConcurrentCalls"
    swept = dialsim.sweep(JANUARY.scenario(), {path: [3, 5]}, 4, jobs=1)
    ours, theirs = (found.differences().drop(columns="variant") for found in (compared, swept))
    assert ours.equals(theirs)
    assert [part.path for part in compared.file_differences] == [
        "organizations.Acme.maxConcurrentCalls"
    ]
    assert compared.changed.to_dict("records") == [
        {"path": "organizations.Acme.maxConcurrentCalls", "few": "3", "more": "5"}
    ]
    assert repr(compared) == "<dialsim.Comparison few, more, replications: 4>"
    assert "organizations.Acme.maxConcurrentCalls" in compared._repr_html_()


def test_campaigns_are_matched_by_name() -> None:
    two = JANUARY.campaign("VIP", "answered 5s 60s")
    compared = dialsim.compare({"one": JANUARY.scenario(), "two": two.scenario()}, 3, jobs=1)
    assert compared.unmatched == {"Acme/VIP": ("two",)}
    rows = compared.differences()
    assert set(rows[rows["scope"] == "campaign"]["campaign"]) == {"January"}


def test_all_files_have_the_seed_of_the_first() -> None:
    same = dialsim.compare(
        {"one": JANUARY.scenario(), "two": JANUARY.scenario("seed=9")}, 2, jobs=1
    )
    rows = same.differences()
    assert not rows["real"].any()
    assert (rows[rows["figure"] == "people_reached"]["difference"] == 0).all()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ("a.yaml", r'files must be files or scenarios, such as \["a.yaml", "b.yaml"\]'),
        ([JANUARY.scenario()], "a comparison needs 2 files or more, not 1"),
    ],
)
def test_what_is_no_list_of_files_is_refused(files: Any, says: str) -> None:
    with pytest.raises(ExperimentError, match=says):
        dialsim.compare(files)
