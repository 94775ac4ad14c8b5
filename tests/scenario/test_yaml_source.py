from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.errors import ScenarioError
from dialsim.scenario.document import Document, parse_yaml
from dialsim.scenario.problems import Problem, Problems


def parsed(text: str) -> Document:
    problems = Problems("x.yaml")
    node = parse_yaml(text, "x.yaml", problems)
    problems.raise_if_any()
    return node


def read(text: str) -> Any:
    return parsed(text).values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("10:00", "10:00"),
        ("1_000", "1_000"),
        ("2026-01-05", "2026-01-05"),
        ("2026-01-05T01:00:00Z", "2026-01-05T01:00:00Z"),
        ("0812345678", 812345678),
        ("0o17", 15),
        ("0x1F", 31),
        ("017", 17),
        ("+7", 7),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-1.5", -1.5),
        (".inf", math.inf),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ('"1"', "1"),
        ("'true'", "true"),
        ("!!str 1", "1"),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    assert read(f"key: {text}") == {"key": value}


def test_every_node_knows_its_line_and_column() -> None:
    root = parsed("a: 1\nb:\n  - c: [x,\n      y]\n").root
    listed = root.at("b")
    assert listed.value == [{"c": ["x", "y"]}]
    inner = listed.at(0, "c")
    assert (inner.key_location.line, inner.key_location.column) == (3, 5)
    last = inner.at(1)
    assert (last.location.line, last.location.column) == (4, 7)


def test_keys_are_texts_so_that_hours_can_be_quoted_or_not() -> None:
    assert read('{9: 1, "10": 2, true: 3}') == {"9": 1, "10": 2, "true": 3}


def test_aliases_repeat_what_their_anchor_names() -> None:
    assert read("a: &x {b: [1]}\nc: *x\nd: [*x, *x]") == {
        "a": {"b": [1]},
        "c": {"b": [1]},
        "d": [{"b": [1]}, {"b": [1]}],
    }


def test_a_byte_order_mark_inside_the_text_is_no_content() -> None:
    assert read("﻿a: 1") == {"a": 1}


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), max_size=5)
NUMBER = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 2, "\t"]))
def test_json_is_yaml_whatever_its_indentation(value: Any, indent: int | str | None) -> None:
    text = json.dumps([value], indent=indent)
    assert read(text) == [value]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        parsed(text)
    except ScenarioError as error:
        problems = error.problems
    assert all(problem.line and problem.column for problem in problems)


def test_wide_and_deep_documents_are_bounded() -> None:
    with pytest.raises(ScenarioError, match="nested more than"):
        read("[" * 200_000)
    assert len(read("[" + "1, " * 20_000 + "1]")) == 20_001
