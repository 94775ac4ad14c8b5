from __future__ import annotations

import pytest

from dialsim.interface.payload import NO_CONVERSATION
from dialsim.scenario.organization import Analysis
from dialsim.webhooks.bodies import Body, CallResultMaker
from dialsim.webhooks.messages import Verdict

FIELDS = {
    "promise": {"type": "boolean", "required": True, "values": {"true": 0.5, "false": 0.5}},
    "mood": {
        "type": "string",
        "description": "How they felt",
        "enumVariant": ["calm", "upset"],
        "values": {"calm": 0.5, "upset": 0.5},
    },
}


def made(found: list[int], verdict: Verdict = Verdict.ANALYZED, **analysis: object) -> Body:
    if "funnel" in analysis:
        steps = analysis["funnel"]
        assert isinstance(steps, list)
        analysis["funnel"] = [{"step": step, "share": 1.0} for step in steps]
    return CallResultMaker(Analysis.model_validate(analysis)).result(verdict, found)


def test_a_current_agent_has_its_fields_under_post_call_analytics_result() -> None:
    result = made([0, 0, 0], version="v2", fields=FIELDS)
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
        made([1, 1, 1], version=version, funnel=["Greeted"], fields=FIELDS)
        for version in ("v2", "v1")
    )
    assert old["version"] == "v1"
    assert old["customizableAttr"] == new["postCallAnalyticsResult"]
    assert old["fixedAttr"] == new["fixedAttr"]
    assert "postCallAnalyticsResult" not in old


@pytest.mark.parametrize(("reached", "value"), [(2, "Promised"), (0, "Unknown")])
def test_the_funnel_lists_all_steps_and_names_the_furthest(reached: int, value: str) -> None:
    fixed = made([reached], funnel=["Greeted", "Promised"])["fixedAttr"]
    assert isinstance(fixed, dict)
    assert fixed["funnel"] == {"funnelFlow": ["Greeted", "Promised"], "value": value}


def test_without_a_funnel_there_is_no_word_of_it() -> None:
    fixed = made([0])["fixedAttr"]
    assert isinstance(fixed, dict)
    assert [*fixed] == ["callSummary"]


def test_a_result_needs_a_value_for_each_field() -> None:
    with pytest.raises(ValueError, match="shorter"):
        made([0, 0], fields=FIELDS)


def test_a3_nobody_spoke_is_said_twice_and_the_agents_steps_are_listed() -> None:
    funnel = ["Greeted", "Promised"]
    result = made([0, 0, 0], Verdict.NO_CONVERSATION, version="v1", funnel=funnel, fields=FIELDS)
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
    result = made([0], Verdict.UNAVAILABLE, funnel=["Greeted", "Promised"])
    fixed, custom = result["fixedAttr"], result["postCallAnalyticsResult"]
    assert isinstance(fixed, dict)
    assert isinstance(custom, dict)
    assert fixed["funnel"] == {"funnelFlow": ["Unknown"], "value": "Unknown"}
    assert [*custom] == ["error"]
    assert custom["error"]["value"] != NO_CONVERSATION
