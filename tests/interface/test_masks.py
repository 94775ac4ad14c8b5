"""Masking: what goes, what stays, and that it can't be done twice."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialsim.interface.payload import mask_agent_params, mask_call_result, mask_tel

KEYS = st.sampled_from(["version", "amount", "metadata__row", "metadata__", "Metadata__x", ""])
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner), max_leaves=12
)
OBJECTS = st.dictionaries(KEYS, VALUES)


@pytest.mark.parametrize(
    ("tel", "masked"),
    [
        ("0812345678", "08xxxxxx78"),
        ("021000001", "02xxxxx01"),
        ("+66812345678", "66xxxxxxx78"),
        ("081-234-5678", "08xxxxxx78"),
        ("021000001 ext 12", "02xxxxxxx12"),
        ("12345", "12x45"),
        ("1669", "1669"),
        ("191", "191"),
        ("", ""),
    ],
)
def test_d1_a_number_keeps_its_first_and_last_two_digits(tel: str, masked: str) -> None:
    assert mask_tel(tel) == masked


@given(st.text(st.sampled_from("0123456789x+- ("), max_size=20))
def test_d1_masking_a_number_twice_changes_nothing_more(tel: str) -> None:
    assert mask_tel(mask_tel(tel)) == mask_tel(tel)


@given(st.text(st.sampled_from("0123456789"), min_size=5, max_size=20))
def test_d1_a_masked_number_is_as_long_and_hides_all_but_four_digits(tel: str) -> None:
    masked = mask_tel(tel)
    assert len(masked) == len(tel)
    assert masked.count("x") == len(tel) - 4


def test_d1_params_keep_their_keys_with_null_and_metadata_with_its_values() -> None:
    params = {"amount": 100, "address": {"city": "Bangkok"}, "metadata__row": 7, "tags": ["a"]}
    assert mask_agent_params(params) == {
        "amount": None,
        "address": None,
        "metadata__row": 7,
        "tags": None,
    }


def test_d1_a_result_keeps_its_keys_and_each_value_is_null_lists_included() -> None:
    result = {
        "version": "v2",
        "fixedAttr": {
            "callSummary": "Promised to pay",
            "funnel": {"funnelFlow": ["Greeted", "Promised"], "value": "Promised"},
        },
        "postCallAnalyticsResult": {
            "promise": {"type": "boolean", "value": True, "required": True, "enumVariant": ["a"]},
            "metadata__model": {"name": "m1", "notes": ["kept"]},
        },
        "metadata__trace": "t-1",
    }
    assert mask_call_result(result) == {
        "version": None,
        "fixedAttr": {"callSummary": None, "funnel": {"funnelFlow": None, "value": None}},
        "postCallAnalyticsResult": {
            "promise": {"type": None, "value": None, "required": None, "enumVariant": None},
            "metadata__model": {"name": "m1", "notes": ["kept"]},
        },
        "metadata__trace": "t-1",
    }


def leaves_outside_metadata(value: object) -> list[object]:
    if isinstance(value, Mapping):
        inner = (item for key, item in value.items() if not key.startswith("metadata__"))
        return [leaf for item in inner for leaf in leaves_outside_metadata(item)]
    return [value]


@settings(max_examples=40)
@given(OBJECTS)
def test_d1_masking_keeps_keys_in_order_removes_values_and_is_idempotent(
    value: dict[str, object],
) -> None:
    for mask in (mask_agent_params, mask_call_result):
        masked = mask(value)
        assert list(masked) == list(value)
        assert mask(masked) == masked
        assert set(leaves_outside_metadata(masked)) <= {None}
        kept = {key: item for key, item in value.items() if key.startswith("metadata__")}
        assert masked | kept == masked
