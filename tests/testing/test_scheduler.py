"""Schedulers under test: faults are found, each by its rule and in a scenario of few people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dialsim.errors import DialsimError
from dialsim.testing import ConformanceError, Dial, Event, Sketch, Wake, conformance
from dialsim.testing.scheduler import RULES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "test-your-scheduler.md").read_text(encoding="utf-8")
FAULTY = next(text for text in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
              if "class Dialler" in text)  # fmt: skip
MENDED = FAULTY.replace("self.dialled.get(who)", "event.at").replace(
    "(who,)", "(self.due[who], who)"
)


def dialler(text: str) -> Any:
    """Return the class of the page's scheduler."""
    names: dict[str, Any] = {}
    exec(text, names)
    return names["Dialler"]


RETRY = {"max_attempts": 2, "retry_interval": "5m"}
FAULTS = [
    ("R1", "< self.orders[who[0]]", "<= self.orders[who[0]]", Sketch(1).campaign("A", "busy 1s")),
    ("R1", "self.again(who):", "False:", Sketch(1).campaign("A", "busy 1s", **RETRY)),
    ("R2", "retry_interval\n", "retry_interval + 1\n",
     Sketch(1).campaign("A", "busy 1s", **RETRY)),
    ("R2", "retry_interval\n", "retry_interval - 1\n",
     Sketch(1).campaign("A", "busy 1s", **RETRY)),
    ("R3", 'event.status != "COMPLETED" and ', "",
     Sketch(1).campaign("A", "answered 1s 1s", **RETRY)),
    ("T3", "self.open.discard(campaign)", "pass",
     Sketch(1).campaign("A", "busy 58s", "busy 1s", windows="Mon 09:00-09:01")),
    ("C1", "self.orders[campaign] =", "self.open.add(campaign)\n"
     "                self.orders[campaign] =", Sketch(1).campaign("A", "busy 1s", start=60)),
    ("C4", '"paused" | ', "", Sketch(1).campaign("A", "busy 1s", "busy 1s").at(3, "pause", "A")),
    ("C6", '"cancelled" | ', "",
     Sketch(1).campaign("A", "busy 1s", "busy 1s").at(3, "cancel", "A")),
    ("C7", ' | "expired"', "", Sketch(1).campaign("A", "busy 1s", "busy 1s", end=3)),
    ("Q1", "[:free_lines]", "[: free_lines + 1]", Sketch(1).campaign("A", "busy 1s", "busy 1s")),
    ("Q4", "[:free_lines]", "[: min(1, free_lines)]",
     Sketch(2).campaign("A", "busy 1s", "busy 1s")),
    ("Q3", "(self.due[who], who)", "(self.due[who], -who[1])",
     Sketch(1).campaign("A", "busy 1s", "busy 1s")),
    ("P3", "Dial(*who)", 'Dial(*who, "021000001")',
     Sketch(1).campaign("A", "busy 1s", "noAnswer 1s", caller_ids=["021000001", "021000002"],
                        **RETRY)),
    ("P3", "Dial(*who)", 'Dial(*who, "029999999")',
     Sketch(1).campaign("A", "busy 1s", caller_ids=["021000001"])),
    ("C1", "Dial(*who)", "Dial(who[0], who[1] + 1)", Sketch(1).campaign("A", "busy 1s")),
    ("Q4", "self.due[who] = self.was_due[who]", "pass",
     Sketch(1).campaign("A", "busy 1s").at(1, "pause", "A").at(60, "resume", "A")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "right", "wrong", "sketch"), FAULTS)
def test_a_fault_is_found_by_its_rule(rule: str, right: str, wrong: str, sketch: Sketch) -> None:
    assert MENDED.count(right) == 1
    with pytest.raises(ConformanceError) as failed:
        conformance(dialler(MENDED.replace(right, wrong)), sketch)
    (breach,) = failed.value.breaches
    assert breach.rule == rule, failed.value
    assert repr(sketch) in str(failed.value)


class Failing:
    """Scheduler that dials at once, and fails when nobody answers."""

    def step(self, at: int, events: Sequence[Event], free_lines: int) -> Iterable[Dial]:
        for event in events:
            if event.kind == "campaign_scheduled" and free_lines:
                yield Dial("A", 0)
            if event.status == "NO_ANSWER":
                raise KeyError(event.recipient)


def test_a_scheduler_that_fails_shows_its_own_error_unless_it_breaks_a_rule() -> None:
    on_time = Sketch(1).campaign("A", "noAnswer 1s")
    with pytest.raises(KeyError, match="0"):
        conformance(Failing, on_time)
    before_its_window = Sketch(1, start="Mon 08:00").campaign(
        "A", "busy 1h", windows="Mon 09:00-10:00"
    )
    with pytest.raises(ConformanceError) as failed:
        conformance(Failing, on_time, before_its_window)
    assert [breach.rule for breach in failed.value.breaches] == ["T3"]


@pytest.mark.parametrize(("rule", "right", "wrong", "sketch"), FAULTS)
def test_a_right_scheduler_passes_where_faults_are_found(
    rule: str, right: str, wrong: str, sketch: Sketch
) -> None:
    del rule, wrong
    if "Dial(" not in right:
        assert conformance(dialler(MENDED), sketch) == 1


@pytest.mark.slow
def test_both_faults_of_the_page_are_found_with_at_most_five_recipients() -> None:
    with pytest.raises(ConformanceError) as failed:
        conformance(dialler(FAULTY))
    breaches = failed.value.breaches
    assert {breach.rule for breach in breaches} == {"R2", "Q3"}
    for breach in breaches:
        (campaign, *_) = breach.sketch.scenario().organizations[0].campaigns
        assert len(campaign.recipients) <= 5  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "right", "wrong"), dict.fromkeys(one[:3] for one in FAULTS))
def test_hypothesis_finds_a_fault_by_its_rule(rule: str, right: str, wrong: str) -> None:
    with pytest.raises(ConformanceError) as failed:
        conformance(dialler(MENDED.replace(right, wrong)), examples=300)
    assert rule in {breach.rule for breach in failed.value.breaches}, failed.value


@pytest.mark.slow
def test_a_right_scheduler_passes_everything() -> None:
    assert conformance(dialler(MENDED), examples=300) > 250


def test_rules_are_quoted_from_the_rule_book() -> None:
    book = " ".join((DOCS / "rules.md").read_text(encoding="utf-8").split())
    for rule, (title, sentence) in RULES.items():
        assert f"### {rule} {title} —" in book
        assert sentence in book, rule
    assert {one[0] for one in FAULTS} == {*RULES}


def test_a_sketch_is_printed_as_it_was_written() -> None:
    sketch = Sketch(2, start="Mon 10:00", queue_limit=1).campaign("A", "busy 1s", end=3)
    again = sketch.at(5, "pause", "A")
    assert repr(again) == (
        "Sketch(2, start='Mon 10:00', queue_limit=1).campaign('A', 'busy 1s', end=3)"
        ".at(5, 'pause', 'A')"
    )
    assert eval(repr(again)).text == again.text


class Woken:
    """Asks for the past."""

    def step(self, at: int, events: Iterable[Event], free_lines: int) -> Iterable[Dial | Wake]:
        return [Wake(at)]


@pytest.mark.parametrize(("scheduler", "sketch", "said"), [
    (Woken, Sketch(1).campaign("A", "busy 1s"), "is not after the instant of the step"),
    (Woken, Sketch(1).campaign("A", recipients={"count": 3}), "a script for everybody"),
    (Woken, Sketch(1).campaign("A", "busy 1s").at(1, "setConcurrency", 2),
     "conformance can't carry out setConcurrency"),
])  # fmt: skip
def test_wrong_use_is_named(scheduler: Any, sketch: Sketch, said: str) -> None:
    with pytest.raises(DialsimError, match=said):
        conformance(scheduler, sketch)
