"""Valid and invalid UUIDs."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.interface.model import is_uuid


@given(st.uuids())
def test_every_uuid_counts_in_either_case(uuid: UUID) -> None:
    assert is_uuid(str(uuid))
    assert is_uuid(str(uuid).upper())


@pytest.mark.parametrize(
    "value",
    [
        "",
        "7b1f4c1e52a84a559d0b2f8f3b0f6a10",
        "{7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10}",
        "urn:uuid:7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10",
        "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a1",
        "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10\n",
        "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a1๐",
        UUID(int=0),
        None,
        5,
    ],
)
def test_nothing_else_does(value: object) -> None:
    assert not is_uuid(value)
