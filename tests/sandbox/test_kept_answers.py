"""What is kept is given again only as long as it is what would be rendered now."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.sandbox.test_read_model import SCENARIO

import dialsim
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.recipients import KeptAnswers, RecipientTexts
from dialsim.sandbox.tables import PageNumber


def page(place: int) -> PageNumber:
    return PageNumber(str(place + 1), place)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pages_and_calls_that_are_kept_are_those_rendered_anew(seed: int) -> None:
    core, chance = SandboxCore(dialsim.loads(SCENARIO.format(seed=seed))), random.Random(seed)
    views = core.accounts[0].views
    compared = 0
    for step in range(250):
        core.simulation.advance(minutes=chance.choice((1, 1, 1, 3, 20)))
        if step == 200:
            core.simulation.delete("First")
        at = core.simulation.at
        for view in views:
            view.catch_up()
            for number in range(3):
                answer = view.pages.answer(page(number), at)
                who = view.newest_first(100 * number, 100 * number + 100)
                fresh = b"".join(next(view.recipients(who, at).pages(100))) if len(who) else b""
                assert answer.endswith(b'"recipients":[%b]}}' % fresh)
                assert b'"totalRecipients":%d,' % view.total_recipients in answer[:100]
                if step % 10 == 0:
                    alone = [view.recipient(one, at) for one in who.tolist()]
                    assert fresh == b",".join(alone)
            for call in chance.sample(range(view.calls), min(view.calls, 20)):
                entry = view.book[call]
                assert view.call(call, at) == view._render_call(call, entry, at)
                compared += 1
    assert compared > 1_000


def test_pages_rendered_ahead_are_kept_until_somebody_on_them_changes() -> None:
    text = SCENARIO.format(seed=1).replace("count: 130", "count: 4000")
    core = SandboxCore(dialsim.loads(text))
    core.simulation.advance(to="2026-01-05T02:00:00Z")
    view = core.accounts[0].views[0]
    view.catch_up()
    rendered: list[int] = []
    render = view.recipients

    def count(who: np.ndarray, at: int) -> RecipientTexts:
        rendered.append(len(who))
        return render(who, at)

    view.recipients = count  # type: ignore[method-assign]

    def read_from(first: int) -> list[int]:
        """Read all pages from one on, and say how many recipients were rendered each time."""
        rendered.clear()
        for number in range(first, 40):
            view.pages.answer(page(number), core.simulation.at)
        return rendered

    assert read_from(36) == [100, 100, 200]  # nobody had read what is before the first of them
    assert read_from(0) == [100, 100, 200, 400, 800, 1600, 400]  # up to those that were known
    assert read_from(0) == []
    core.simulation.advance(minutes=5)  # calls the first of the upload, on the last two pages
    view.catch_up()
    assert read_from(0) == [200]


def ask(kept: KeptAnswers, number: int) -> bool:
    """Ask for an answer, and keep a new one if there is none; whether there was one."""
    if kept.find(number, (0,), 9) == b"%d" % number:
        return True
    kept.keep(number, b"%d" % number, (0,), 10)
    return False


def test_the_answer_not_asked_for_longest_is_forgotten() -> None:
    kept = KeptAnswers(16)
    for number in range(17):
        assert not ask(kept, number)
        assert ask(kept, number)
    assert 0 not in kept
    assert all(ask(kept, number) for number in range(1, 17))
    ask(kept, 17), ask(kept, 17)
    assert 1 not in kept


def test_what_is_read_from_end_to_end_drives_out_only_its_like() -> None:
    kept = KeptAnswers(16)
    ask(kept, 0), ask(kept, 0)
    for number in range(1, 100):
        assert not ask(kept, number)
    assert [number for number in range(100) if number in kept] == [0, 98, 99]
    assert not ask(kept, 50)  # known to have been asked for, though it was forgotten
    assert not any(ask(kept, number) for number in range(100, 110))
    assert ask(kept, 50)


def test_an_answer_that_is_stale_or_over_is_not_given() -> None:
    kept = KeptAnswers(2)
    kept.keep(1, b"1", (0,), 10)
    for give in (kept.find, kept.text):
        assert give(1, (0,), 9) == b"1"
        assert give(1, (1,), 9) is None
        assert give(1, (0,), 10) is None
    kept.keep(1, b"one", (1,), 20)
    assert kept.find(1, (1,), 19) == b"one"
