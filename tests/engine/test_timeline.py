"""The timeline's actions that set something, and what each leaves alone."""

from __future__ import annotations

from engine.paper import ZERO, campaign, organization, request, run, scenario, service
from engine.rows import dials, refusals

NOT_ALLOWED = "CALLING_NOT_ALLOWED: Your organization is not allowed to make calls."


def test_requests_are_refused_while_calling_is_not_allowed_and_calls_go_on() -> None:
    a = campaign("A", "busy 0s", "busy 0s", "busy 0s")
    drafts = [campaign(name, "busy 0s", requested=None) for name in ("B", "C")]
    acts = [
        (1, "setCallingAllowed", False),
        (2, "schedule", "B", request()),
        (3, "setCallingAllowed", True),
        (3, "schedule", "C", request()),
    ]
    trace = run(scenario(a, *drafts, timeline=acts))
    assert refusals(trace) == [f"2 B schedule {NOT_ALLOWED}"]
    assert dials(trace) == ["0 A 0.1", "2 A 1.1", "4 A 2.1", "6 C 0.1"]


def test_calling_is_allowed_to_an_organization_of_its_own() -> None:
    acme = organization("Acme", timeline=[(1, "setCallingAllowed", False)])
    bravo = organization("Bravo", campaign("A", "busy 0s", requested=2))
    assert refusals(run(service(acme, bravo))) == []


def test_w6_the_url_changes_from_an_instant_on_and_may_be_taken_away() -> None:
    first, second = "https://example.test/first", "https://example.test/second"
    acts = [(5, "setWebhookUrl", second), (7, "setWebhookUrl", None)]
    acme = organization("Acme", campaign("A", "busy 0s"), timeline=acts, webhook={"url": first})
    trace = run(service(acme))
    assert [(row.at - ZERO, row.url) for row in trace.urls] == [
        (0, first),
        (5_000, second),
        (7_000, None),
    ]


def test_a5_a_reanalysis_is_noted_with_its_share_and_changes_no_call() -> None:
    a = campaign("A", "answered 0s 5s", "busy 0s")
    acts = [(50, "reanalyze", "A"), (60, "reanalyze", "A", {"share": 0.25})]
    trace = run(scenario(a, timeline=acts))
    assert [(row.at - ZERO, row.campaign, row.share) for row in trace.reanalyses] == [
        (50_000, 0, 1.0),
        (60_000, 0, 0.25),
    ]
    assert dials(trace) == dials(run(scenario(a)))


def test_a5_a_campaign_that_is_gone_is_not_analyzed_again() -> None:
    acts = [(5, "delete", "A"), (6, "reanalyze", "A")]
    trace = run(scenario(campaign("A", "busy 0s"), timeline=acts))
    assert refusals(trace) == ["6 A reanalyze CAMPAIGN_NOT_FOUND: Campaign not found"]
    assert trace.reanalyses == []
