"""The clock: integer time, the steps of one instant, and timers that are moved and dropped."""

from __future__ import annotations

import random
from collections.abc import Iterator

from simpy.events import Event
from simpy.exceptions import Interrupt

from dialsim.engine.clock import At, Clock, Step, Timer

START = 1_767_546_000_000


class Diary:
    """Records its calls, with the name."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.entries: list[tuple[int, str]] = []

    def at(self, instant: int, step: Step, name: str) -> At:
        return At(self.clock, START + instant, step, lambda _event: self.note(name))

    def timer(self, name: str = "timer") -> Timer:
        return Timer(self.clock, Step.DUE, lambda _event: self.note(name))

    def note(self, name: str) -> None:
        self.entries.append((self.clock.now - START, name))


def diary() -> Diary:
    return Diary(Clock(START))


def test_t4_the_steps_of_an_instant_come_in_the_order_of_the_rule() -> None:
    assert [(step.name, step.value) for step in Step] == [
        ("ACTIONS", 1),
        ("END_DATE_TIME", 2),
        ("WINDOW_CLOSING", 3),
        ("PROGRESS", 4),
        ("QUEUE_TIMEOUT", 5),
        ("DUE", 6),
        ("DIALLING", 7),
        ("FINAL", 8),
        ("DELIVERY", 9),
        ("REST", 10),
    ]


def test_t4_events_run_by_instant_and_then_by_step_however_they_were_made() -> None:
    made = [(instant, step) for instant in (0, 1, 7) for step in Step]
    for seed in range(20):
        book = diary()
        random.Random(seed).shuffle(made)
        for instant, step in made:
            book.at(instant, step, step.name)
        book.clock.work_off(None)
        assert book.entries == [(at, step.name) for at, step in sorted(made)]


def test_t4_what_a_step_brings_about_in_its_own_instant_is_done_in_its_own_step() -> None:
    book = diary()

    def progress(_event: Event) -> None:
        book.note("PROGRESS")
        book.at(5, Step.FINAL, "FINAL")
        book.at(5, Step.DIALLING, "DIALLING")
        book.at(5, Step.PROGRESS, "what follows in 0 ms")

    At(book.clock, START + 5, Step.PROGRESS, progress)
    book.at(5, Step.DUE, "DUE")
    book.clock.work_off(None)
    names = ["PROGRESS", "what follows in 0 ms", "DUE", "DIALLING", "FINAL"]
    assert book.entries == [(5, name) for name in names]


def test_t1_the_clock_counts_whole_milliseconds() -> None:
    book = diary()
    book.at(1, Step.DUE, "one")
    book.clock.work_off(None)
    assert type(book.clock.now) is int
    assert book.clock.now == START + 1


def test_t5_working_off_includes_the_last_instant_and_no_later_one() -> None:
    book = diary()
    for instant in (3, 4, 5):
        book.at(instant, Step.REST, str(instant))
    book.clock.work_off(START + 4)
    assert book.entries == [(3, "3"), (4, "4")]
    assert book.clock.next_instant() == START + 5
    book.clock.work_off(START + 4)
    assert book.clock.now == START + 4


def test_a_cancelled_event_neither_acts_nor_moves_the_clock() -> None:
    book = diary()
    first, _, last = (book.at(t, Step.DUE, str(t)) for t in (1, 2, 9))
    first.cancel()
    last.cancel()
    assert book.clock.next_instant() == START + 2
    book.clock.work_off(None)
    assert book.entries == [(2, "2")]
    assert book.clock.now == START + 2
    assert book.clock.next_instant() is None


def test_an_event_cancelled_within_its_own_instant_does_not_act() -> None:
    book = diary()
    late = book.at(3, Step.DIALLING, "late")

    def cancel(_event: Event) -> None:
        late.cancel()

    At(book.clock, START + 3, Step.ACTIONS, cancel)
    book.clock.work_off(None)
    assert book.entries == []


def test_an_event_that_has_happened_may_be_cancelled() -> None:
    book = diary()
    event = book.at(1, Step.DUE, "one")
    book.clock.work_off(None)
    event.cancel()
    assert book.entries == [(1, "one")]


def test_t4_a_timeout_of_simpy_is_progress() -> None:
    book = diary()

    def life() -> Iterator[Event]:
        yield book.clock.timeout(3)
        book.note("timeout")

    book.clock.process(life())
    for step in (Step.WINDOW_CLOSING, Step.QUEUE_TIMEOUT):
        book.at(3, step, step.name)
    book.clock.work_off(None)
    assert book.entries == [(3, "WINDOW_CLOSING"), (3, "timeout"), (3, "QUEUE_TIMEOUT")]


def test_an_interrupted_process_leaves_nothing_to_wait_for() -> None:
    book = diary()

    def life() -> Iterator[Event]:
        try:
            yield book.clock.timeout(9)
        except Interrupt:
            book.note("interrupted")

    process = book.clock.process(life())
    At(book.clock, START + 2, Step.ACTIONS, lambda _event: process.interrupt())
    book.clock.work_off(None)
    assert book.entries == [(2, "interrupted")]
    assert book.clock.now == START + 2
    assert book.clock.next_instant() is None


def test_a_timer_acts_at_its_instant_and_only_once() -> None:
    book = diary()
    timer = book.timer()
    timer.set(START + 4)
    timer.set(START + 4)
    book.clock.work_off(None)
    assert book.entries == [(4, "timer")]


def test_a_timer_that_is_moved_acts_at_the_last_instant_only() -> None:
    book = diary()
    timer = book.timer()
    for instant in (4, 9, 2, 6):
        timer.set(START + instant)
    book.clock.work_off(None)
    assert book.entries == [(6, "timer")]


def test_a_timer_that_is_dropped_does_not_act_and_may_be_dropped_again() -> None:
    book = diary()
    timer = book.timer()
    timer.drop()
    timer.set(START + 4)
    timer.drop()
    timer.drop()
    book.clock.work_off(None)
    assert book.entries == []


def test_a_dropped_timer_set_to_the_same_instant_acts_once() -> None:
    for forgotten in (False, True):
        book = diary()
        timer = book.timer()
        timer.set(START + 4)
        timer.drop()
        if forgotten:  # the clock has met the cancelled event and let go of it
            assert book.clock.next_instant() is None
        timer.set(START + 4)
        book.clock.work_off(None)
        assert book.entries == [(4, "timer")]


def test_a_timer_may_be_set_again_by_its_own_action_in_the_same_instant() -> None:
    book = diary()

    def act(_event: Event) -> None:
        book.note("timer")
        if len(book.entries) < 3:
            timer.set(START + 4)

    timer = Timer(book.clock, Step.DUE, act)
    timer.set(START + 4)
    book.clock.work_off(None)
    assert book.entries == [(4, "timer")] * 3


def test_a_timer_set_no_later_stays_where_it_stands_earlier() -> None:
    book = diary()
    timer = book.timer()
    timer.set_no_later(START + 4)
    timer.set_no_later(START + 9)
    book.clock.work_off(None)
    timer.set_no_later(START + 9)
    timer.set_no_later(START + 6)
    book.clock.work_off(None)
    assert book.entries == [(4, "timer"), (6, "timer")]


def test_a_dropped_timer_set_no_later_acts_in_time() -> None:
    book = diary()
    timer = book.timer()
    timer.set(START + 4)
    timer.drop()
    timer.set_no_later(START + 9)
    book.clock.work_off(None)
    assert len(book.entries) == 1
    assert book.entries[0][0] <= 9
