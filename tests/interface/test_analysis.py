from __future__ import annotations

import pytest

from dialsim.interface.payload import NO_CONVERSATION, AnalysisJson, Field, unavailable

FIELDS = (
    Field("promise", "boolean", True),
    Field("mood", "string", False, "How they felt", ("calm", "upset")),
)


def test_a_current_agent_has_its_fields_under_post_call_analytics_result() -> None:
    result = AnalysisJson("v2", None, FIELDS).result(None, (True, "calm"))
    assert result["version"] == "v2"
    assert result["postCallAnalyticsResult"] == {
        "promise": {"type": "boolean", "value": True, "required": True},
        "mood": {
            "type": "string",
            "value": "calm",
            "required": False,
            "description": "How they felt",
            "enumVariant": ["calm", "upset"],
        },
    }
    assert "customizableAttr" not in result


def test_an_older_agent_has_the_same_under_its_old_name() -> None:
    new, old = (
        AnalysisJson(version, ("Greeted",), FIELDS).result("Greeted", (False, "upset"))
        for version in ("v2", "v1")
    )
    assert old["version"] == "v1"
    assert old["customizableAttr"] == new["postCallAnalyticsResult"]
    assert old["fixedAttr"] == new["fixedAttr"]
    assert "postCallAnalyticsResult" not in old


@pytest.mark.parametrize(("step", "value"), [("Promised", "Promised"), (None, "Unknown")])
def test_the_funnel_lists_all_steps_and_names_the_furthest(step: str | None, value: str) -> None:
    fixed = AnalysisJson(funnel=("Greeted", "Promised")).result(step, ())["fixedAttr"]
    assert isinstance(fixed, dict)
    assert fixed["funnel"] == {"funnelFlow": ["Greeted", "Promised"], "value": value}


def test_without_a_funnel_there_is_no_word_of_it() -> None:
    fixed = AnalysisJson().result(None, ())["fixedAttr"]
    assert isinstance(fixed, dict)
    assert [*fixed] == ["callSummary"]


def test_a_result_needs_a_value_for_each_field() -> None:
    with pytest.raises(ValueError, match="shorter"):
        AnalysisJson(fields=FIELDS).result(None, (True,))


def test_a3_nobody_spoke_is_said_twice_and_the_agents_steps_are_listed() -> None:
    result = AnalysisJson("v1", ("Greeted", "Promised"), FIELDS).no_conversation()
    assert result == {
        "version": "v2",
        "fixedAttr": {
            "callSummary": NO_CONVERSATION,
            "funnel": {"funnelFlow": ["Greeted", "Promised"], "value": "Unknown"},
        },
        "postCallAnalyticsResult": {
            "error": {
                "type": "string",
                "value": "No conversation",
                "required": True,
                "description": "Why there is no analysis",
                "enumVariant": None,
            }
        },
    }


def test_a3_an_analysis_that_could_not_run_knows_no_steps() -> None:
    fixed, custom = unavailable()["fixedAttr"], unavailable()["postCallAnalyticsResult"]
    assert isinstance(fixed, dict)
    assert isinstance(custom, dict)
    assert fixed["funnel"] == {"funnelFlow": ["Unknown"], "value": "Unknown"}
    assert [*custom] == ["error"]
    assert custom["error"]["value"] != NO_CONVERSATION
