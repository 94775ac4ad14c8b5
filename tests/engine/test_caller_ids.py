"""Which number a dial shows (P3), and how numbers tire (`byCallerIdUse`)."""

from __future__ import annotations

import random
from collections import Counter
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.engine.call import NONE, CallerIds, NumberUse
from dialsim.engine.chance import Draws

DAY = 86_400_000
PEOPLE = 12_000


def draws(seed: int = 3) -> Draws:
    return Draws(seed, 0, (0, 0), PEOPLE)


def shares(numbers: CallerIds, *, attempt: int = 1, previous: int = NONE) -> Counter[int]:
    source = draws()
    return Counter(numbers.choose(source, i, attempt, previous) for i in range(PEOPLE))


def test_p3_one_number_is_that_number_even_for_a_retry() -> None:
    assert shares(CallerIds([5])) == {5: PEOPLE}
    assert shares(CallerIds([5]), attempt=2, previous=5) == {5: PEOPLE}


def test_p3_several_numbers_are_chosen_uniformly() -> None:
    for count in (2, 3, 7):
        chosen = shares(CallerIds(range(10, 10 + count)))
        expected = PEOPLE / count
        statistic = sum((chosen[n] - expected) ** 2 / expected for n in range(10, 10 + count))
        assert sum(chosen.values()) == PEOPLE
        # chi-square with count − 1 degrees of freedom: mean count − 1, variance 2 (count − 1)
        assert statistic < count - 1 + 4 * (2 * (count - 1)) ** 0.5


def test_p3_a_retry_avoids_the_number_before_and_takes_the_others_alike() -> None:
    chosen = shares(CallerIds([1, 2, 3]), attempt=2, previous=2)
    assert chosen[2] == 0
    assert abs(chosen[1] - PEOPLE / 2) < 4 * (PEOPLE / 4) ** 0.5
    assert shares(CallerIds([1, 2]), attempt=2, previous=2) == {1: PEOPLE}


def test_p3_a_number_before_that_is_not_in_the_list_excludes_nothing() -> None:
    assert shares(CallerIds([1, 2, 3]), previous=9) == shares(CallerIds([1, 2, 3]))


def test_p3_a_repeat_in_the_list_counts_once() -> None:
    assert shares(CallerIds([1, 2, 1, 1])) == shares(CallerIds([1, 2]))
    assert shares(CallerIds([4, 4]), attempt=2, previous=4) == {4: PEOPLE}


def test_p3_the_same_attempt_of_the_same_person_chooses_the_same_number() -> None:
    numbers, source = CallerIds([1, 2, 3]), draws()
    first = [numbers.choose(source, i, 1, NONE) for i in range(100)]
    assert [numbers.choose(draws(), i, 1, NONE) for i in reversed(range(100))] == first[::-1]
    assert [numbers.choose(source, i, 2, NONE) for i in range(100)] != first


def test_dials_fade_exponentially() -> None:
    use = NumberUse(recovery=DAY)
    assert use.count(1, 0) == 0.0
    use.dialled(1, 0)
    assert use.count(1, 0) == 1.0  # counted for the next dial of the same instant
    assert use.count(1, DAY) == pytest.approx(exp(-1), abs=1e-9)
    use.dialled(1, DAY)
    use.dialled(1, DAY + DAY // 2)
    expected = exp(-2.5) + exp(-1.5) + exp(-1.0)
    assert use.count(1, DAY * 5 // 2) == pytest.approx(expected, abs=1e-8)
    assert use.count(2, DAY) == 0.0  # numbers tire one by one


def test_counting_does_not_wear_a_number() -> None:
    asked, left_alone = NumberUse(DAY), NumberUse(DAY)
    for use in (asked, left_alone):
        use.dialled(1, 0)
    for instant in range(1, 1000, 7):
        asked.count(1, instant)
    assert asked.count(1, DAY) == left_alone.count(1, DAY)


def test_a_long_unused_number_has_recovered() -> None:
    use = NumberUse(recovery=60_000)
    for _ in range(1000):
        use.dialled(1, 0)
    assert use.count(1, 0) == 1000.0
    assert use.count(1, 10 * DAY) == 0.0


def test_p5_a_withdrawn_dial_is_taken_back() -> None:
    use = NumberUse(recovery=DAY)
    for instant in (0, 1000, 2000):
        use.dialled(1, instant)
    use.withdrawn(1, dialled_at=1000, now=2500)
    expected = exp(-2500 / DAY) + exp(-500 / DAY)
    assert use.count(1, 2500) == pytest.approx(expected, abs=1e-8)
    use.withdrawn(1, dialled_at=2000, now=2500)
    use.withdrawn(1, dialled_at=0, now=2500)
    assert use.count(1, 2500) == pytest.approx(0.0, abs=1e-8)
    assert use.count(1, 2500) >= 0.0


@given(
    before=st.lists(
        st.tuples(st.integers(0, 999), st.sampled_from((1, 2))), min_size=1, max_size=8
    ),
    dials=st.lists(st.sampled_from((1, 2)), max_size=4),
    recovery=st.sampled_from((1000, 60_000, DAY)),
    seed=st.integers(0, 99),
)
def test_t4_dials_and_withdrawals_of_one_instant_commute_to_the_exact_number(
    before: list[tuple[int, int]], dials: list[int], recovery: int, seed: int
) -> None:
    # Some of the dials before are withdrawn at 1000, in the midst of new dials, in any order.
    counts = []
    happens = [("withdrawn", number, at) for at, number in before[::2]]
    happens += [("dialled", number, 1000) for number in dials]
    for shuffle in (None, seed, seed + 1):
        use = NumberUse(recovery)
        for at, number in sorted(before):
            use.dialled(number, at)
        if shuffle is not None:
            random.Random(shuffle).shuffle(happens)
        for what, number, at in happens:
            if what == "dialled":
                use.dialled(number, 1000)
            else:
                use.withdrawn(number, at, 1000)
        counts.append([use.count(number, now) for number in (1, 2) for now in (1000, 1500)])
    assert counts[0] == counts[1] == counts[2]
