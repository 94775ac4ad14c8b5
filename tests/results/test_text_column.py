"""Packed columns of texts give back what was put in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialsim.webhooks.visible_state import TextColumn

texts = st.binary(min_size=1, max_size=300).filter(lambda text: not text.endswith(b"\0"))


@given(st.data(), st.lists(texts, min_size=1, max_size=20))
def test_a_column_gives_what_a_list_gives(data: st.DataObject, known: list[bytes]) -> None:
    column = TextColumn(known)
    rows = data.draw(st.lists(st.integers(0, len(known) - 1)))
    assert column.take(np.array(rows, dtype=np.int64)) == [known[row] for row in rows]
    wanted = data.draw(st.sampled_from(known) | texts)
    assert column.find(wanted).tolist() == [row for row, text in enumerate(known) if text == wanted]


def test_a_long_text_does_not_widen_the_others() -> None:
    column = TextColumn([b"x" * 1_000_000, *[b"y"] * 1_000])
    assert column.take(np.array([0, 1])) == [b"x" * 1_000_000, b"y"]
    assert column._short.nbytes <= 200_000


def test_an_empty_column_is_one() -> None:
    column = TextColumn([])
    assert column.find(b"x").tolist() == []
