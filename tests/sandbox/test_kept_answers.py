"""What is kept is given again only as long as it is what would be rendered now."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.sandbox.test_read_model import SCENARIO

import dialsim
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.kept_answers import KeptAnswers


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pages_and_calls_that_are_kept_are_those_rendered_anew(seed: int) -> None:
    exchange, chance = Exchange(dialsim.loads(SCENARIO.format(seed=seed))), random.Random(seed)
    desks = exchange.accounts[0].desks
    compared = 0
    for step in range(250):
        exchange.simulation.advance(minutes=chance.choice((1, 1, 1, 3, 20)))
        if step == 200:
            exchange.simulation.delete("First")
        at = exchange.simulation.at
        for desk in desks:
            desk.catch_up()
            for number in range(3):
                who = desk.newest_first(100 * number, 100 * number + 100)
                fresh = b",".join(desk.recipients(who, at)) if len(who) else b""
                assert desk.pages.page(number, at) == fresh
            for call in chance.sample(range(desk.calls), min(desk.calls, 20)):
                entry = desk.book[call]
                assert desk.call(call, at) == desk._render_call(call, entry, at)
                compared += 1
    assert compared > 1_000


def test_pages_rendered_ahead_are_kept_until_somebody_on_them_changes() -> None:
    text = SCENARIO.format(seed=1).replace("count: 130", "count: 1500")
    exchange = Exchange(dialsim.loads(text))
    exchange.simulation.advance(to="2026-01-05T02:00:00Z")
    desk = exchange.accounts[0].desks[0]
    desk.catch_up()
    rendered: list[int] = []
    render = desk.recipients

    def count(who: np.ndarray, at: int) -> list[bytes]:
        rendered.append(len(who))
        return render(who, at)

    desk.recipients = count  # type: ignore[method-assign]
    for number in range(15):
        desk.pages.page(number, exchange.simulation.at)
    assert rendered == [800, 700]
    exchange.simulation.advance(minutes=5)  # calls the first of the upload, on the last two pages
    desk.catch_up()
    for number in range(15):
        desk.pages.page(number, exchange.simulation.at)
    assert rendered == [800, 700, 200]


def test_the_answer_not_asked_for_longest_is_forgotten() -> None:
    kept = KeptAnswers(2)
    for number in (1, 2):
        kept.keep(number, b"%d" % number, (0,), 10)
    assert kept.find(1, (0,), 9) == b"1"
    kept.keep(3, b"3", (0,), 10)
    assert kept.find(2, (0,), 9) is None
    assert kept.find(1, (0,), 9) == b"1"
    assert kept.find(1, (1,), 9) is None
    assert kept.find(1, (0,), 10) is None
