"""Agents' parameters, and the recipients' values for them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dialsim.interface.agent import ParamSchema, check_agent_params
from dialsim.interface.model import Fault

SCHEMA = {
    "name": ParamSchema(type="text", required=True),
    "amount": ParamSchema(type="number", required=True, default=0),
    "vip": ParamSchema(type="boolean"),
}


def test_values_of_their_types_are_accepted() -> None:
    assert check_agent_params(SCHEMA, {"name": "", "amount": 1.5, "vip": False}) == []
    assert check_agent_params(SCHEMA, {"name": "สมชาย", "amount": 10**30}) == []


def test_keys_that_the_schema_does_not_name_are_allowed() -> None:
    params = {"name": "A", "amount": 1, "metadata__row": {"line": 7}}
    assert check_agent_params(SCHEMA, params) == []


def test_without_a_schema_anything_goes() -> None:
    assert check_agent_params(None, {"x": object()}) == []


def test_a_required_key_must_be_there_even_if_it_has_a_default() -> None:
    assert check_agent_params(SCHEMA, {"vip": True}) == [
        Fault(("name",), "name is required"),
        Fault(("amount",), "amount is required"),
    ]


def test_null_counts_as_absent() -> None:
    faults = check_agent_params(SCHEMA, {"name": None, "amount": 1, "vip": None})
    assert faults == [Fault(("name",), "name is required")]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        *(("name", value, "a string") for value in (5, True, ["A"], {})),
        *(("amount", value, "a number") for value in ("5", True, math.nan, math.inf, [1])),
        *(("vip", value, "a boolean value") for value in ("true", 1, 0, 1.0, [])),
    ],
)
def test_a_value_of_another_type_is_a_fault(name: str, value: object, text: str) -> None:
    params = {"name": "A", "amount": 1, "vip": True, name: value}
    assert check_agent_params(SCHEMA, params) == [Fault((name,), f"{name} must be {text}")]


@given(
    st.dictionaries(
        st.sampled_from([*SCHEMA, "other"]), st.sampled_from([None, "text", 1, 0.5, math.nan, True])
    )
)
def test_faults_come_in_the_schemas_order_one_per_parameter(params: dict[str, object]) -> None:
    names = [fault.path[0] for fault in check_agent_params(SCHEMA, params)]
    assert names == [name for name in SCHEMA if name in names]


def test_an_entry_reads_the_interfaces_names() -> None:
    entry = ParamSchema.model_validate(
        {"type": "text", "required": True, "spell": True, "pronunciation_map": {"Co.": "company"}}
    )
    assert entry.pronunciation_map == {"Co.": "company"}
    shown = entry.model_dump(by_alias=True, exclude_unset=True)
    assert shown["pronunciation_map"] == {"Co.": "company"}


@pytest.mark.parametrize(
    "entry",
    [{}, {"type": "string"}, {"type": "text", "required": "yes"}, {"type": "text", "other": 1}],
)
def test_an_entry_of_another_form_is_refused(entry: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ParamSchema.model_validate(entry)
