"""The next person of a campaign (Q3), against a list sorted anew each time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.engine.campaign import WaitingList

ORDERS = ("due", "freshFirst", "retriesFirst")
Entry = tuple[int, int, int, int]  # due, recipient, call, attempts


def place(order: str, entry: Entry) -> tuple[int, int, int]:
    """Q3 as it is written: the class by `order`, then due instant, then upload order."""
    due, recipient, _, attempts = entry
    fresh = attempts == 0
    rank = {"due": 0, "freshFirst": 0 if fresh else 1, "retriesFirst": 1 if fresh else 0}[order]
    return rank, due, recipient


def take_all(waiting: WaitingList) -> list[tuple[int, int, int]]:
    taken = []
    while waiting:
        first = waiting.first()
        assert waiting.take() == first
        taken.append(first[1:])
    return taken


@pytest.mark.parametrize("order", ORDERS)
@given(data=st.data())
def test_q3_calls_leave_in_the_order_of_a_sorted_list(order: str, data: st.DataObject) -> None:
    count, start_at = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 5))
    waiting, plain = WaitingList(order), [(start_at, person, 1, 0) for person in range(count)]
    waiting.add_first_calls(range(count), start_at)
    away: list[Entry] = []  # released, may come back with the same due instant or as a retry
    for _ in range(data.draw(st.integers(0, 25))):
        if plain and (not away or data.draw(st.booleans())):
            goes = min(plain, key=lambda entry: place(order, entry))
            assert waiting.first()[1:] == goes[:3]
            assert waiting.take()[1:] == goes[:3]
            plain.remove(goes)
            away.append(goes)
        elif away:
            due, person, call, attempts = away.pop(data.draw(st.integers(0, len(away) - 1)))
            match data.draw(st.sampled_from(("withdrawn", "timed out", "ended"))):
                case "timed out":
                    due, call = due + data.draw(st.integers(0, 5)), call + 1
                case "ended":
                    due, call = due + data.draw(st.integers(0, 5)), call + 1
                    attempts += 1
            plain.append((due, person, call, attempts))
            waiting.add(due, person, call, attempts)
        assert len(waiting) == len(plain)
        assert sorted(waiting) == sorted((person, call) for _, person, call, _ in plain)
    ordered = sorted(plain, key=lambda entry: place(order, entry))
    assert take_all(waiting) == [entry[:3] for entry in ordered]


@pytest.mark.parametrize(
    ("order", "expected"),
    [("due", [3, 0, 1, 2, 4]), ("freshFirst", [0, 1, 2, 4, 3]), ("retriesFirst", [3, 0, 1, 2, 4])],
)
def test_q3_a_retry_due_before_and_a_timed_out_call_due_after(
    order: str, expected: list[int]
) -> None:
    waiting = WaitingList(order)
    waiting.add_first_calls(range(3), due=100)
    waiting.add(due=50, recipient=3, call=2, attempts=1)  # a retry
    waiting.add(due=200, recipient=4, call=2, attempts=0)  # again after a queue timeout: fresh
    assert [recipient for _, recipient, _ in take_all(waiting)] == expected


def test_nothing_waits_in_an_empty_list_or_after_clearing() -> None:
    waiting = WaitingList("due")
    assert (len(waiting), list(waiting)) == (0, [])
    with pytest.raises(IndexError):
        waiting.first()
    waiting.add_first_calls(range(3), due=0)
    waiting.add(due=0, recipient=5, call=2, attempts=1)
    waiting.clear()
    assert (len(waiting), list(waiting)) == (0, [])
    with pytest.raises(IndexError):
        waiting.take()
