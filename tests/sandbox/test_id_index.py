"""The index from ids to places."""

from __future__ import annotations

from uuid import UUID, uuid5

import numpy as np

from dialsim.sandbox.id_index import IdIndex

SPACE = UUID(int=7)


def ids(numbers: range) -> list[str]:
    return [str(uuid5(SPACE, str(number))) for number in numbers]


def test_every_id_is_found_whatever_the_batches() -> None:
    index, first = IdIndex(), 0
    for size in (1, 5, 0, 3, 100, 1, 1, 1, 40, 1000):
        batch = range(first, first + size)
        index.add(np.array(ids(batch), dtype="S36"), np.array(batch, dtype=np.int64))
        first += size
    assert len(index) == first
    assert [index.find(identifier) for identifier in ids(range(first))] == list(range(first))
    assert [index.find(identifier) for identifier in ids(range(first, first + 50))] == [None] * 50


def test_ids_that_share_their_first_half_are_told_apart() -> None:
    texts = [str(UUID(int=(1 << 64) + low)) for low in range(20)]
    index = IdIndex()
    for place, text in enumerate(texts):
        index.add(np.array([text], dtype="S36"), np.array([place]))
    assert [index.find(text) for text in texts] == list(range(20))
    assert index.find(str(UUID(int=(1 << 64) + 20))) is None


def test_upper_and_lower_case_are_one() -> None:
    index = IdIndex()
    index.add(np.array(["ABCDEF01-2345-4678-9ABC-DEF012345678"], dtype="S36"), np.array([3]))
    assert index.find("abcdef01-2345-4678-9abc-def012345678") == 3
    assert index.find("ABCDEF01-2345-4678-9abc-def012345678") == 3


def test_an_empty_index_finds_nothing() -> None:
    assert IdIndex().find(str(SPACE)) is None
