"""The timeline's actions that set something, and what each leaves alone."""

from __future__ import annotations

from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import START, ZERO, dials, refusals

NOT_ALLOWED = "CALLING_NOT_ALLOWED: Your organization is not allowed to make calls."


def test_requests_are_refused_while_calling_is_not_allowed_and_calls_go_on() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", "busy 0s", "busy 0s")
        .campaign("B", "busy 0s", requested=None)
        .campaign("C", "busy 0s", requested=None)
        .at(1, "setCallingAllowed", False)
        .at(2, "schedule", "B")
        .at(3, "setCallingAllowed", True)
        .at(3, "schedule", "C")
    )
    assert refusals(trace) == [f"2 B schedule {NOT_ALLOWED}"]
    assert dials(trace) == ["0 A 0.1", "2 A 1.1", "4 A 2.1", "6 C 0.1"]


def test_calling_is_allowed_to_an_organization_of_its_own() -> None:
    trace = run(
        Sketch(1, start=START)
        .at(1, "setCallingAllowed", False)
        .organization("Bravo", 1)
        .campaign("A", "busy 0s", requested=2)
    )
    assert refusals(trace) == []


def test_w6_the_url_changes_from_an_instant_on_and_may_be_taken_away() -> None:
    first, second = "https://example.test/first", "https://example.test/second"
    trace = run(
        Sketch(1, start=START)
        .having(webhook={"url": first})
        .campaign("A", "busy 0s")
        .at(5, "setWebhookUrl", second)
        .at(7, "setWebhookUrl", None)
    )
    assert [(row.at - ZERO, row.url) for row in trace.urls] == [
        (0, first),
        (5_000, second),
        (7_000, None),
    ]


def test_a5_a_reanalysis_is_noted_with_its_share_and_changes_no_call() -> None:
    sketch = Sketch(1, start=START).campaign("A", "answered 0s 5s", "busy 0s")
    trace = run(sketch.at(50, "reanalyze", "A").at(60, "reanalyze", "A", share=0.25))
    assert [(row.at - ZERO, row.campaign, row.share) for row in trace.reanalyses] == [
        (50_000, 0, 1.0),
        (60_000, 0, 0.25),
    ]
    assert dials(trace) == dials(run(sketch))


def test_a5_a_campaign_that_is_gone_is_not_analyzed_again() -> None:
    trace = run(
        Sketch(1, start=START).campaign("A", "busy 0s").at(5, "delete", "A").at(6, "reanalyze", "A")
    )
    assert refusals(trace) == ["6 A reanalyze CAMPAIGN_NOT_FOUND: Campaign not found"]
    assert trace.reanalyses == []
