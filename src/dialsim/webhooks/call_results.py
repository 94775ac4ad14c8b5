"""The `callResult` of a webhook body: results of analyses, and what replaces a missing one.

Section 2.6 of the interface. The wording of the texts is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.model import MOST_EXACT
from dialsim.interface.payload import NO_CONVERSATION, UNKNOWN, mask_call_result
from dialsim.scenario.organization import Analysis, AnalysisField
from dialsim.webhooks.messages import Content, Messages

Body = dict[str, object]

_SUMMARY = "สนทนากับผู้รับสายเรียบร้อยแล้ว"
_SUMMARY_WITH_STEP = "สนทนากับผู้รับสายแล้ว ถึงขั้นตอน {step}"
_UNAVAILABLE_SUMMARY = "ไม่สามารถวิเคราะห์การสนทนานี้ได้"
_UNAVAILABLE_ERROR = "The conversation could not be analyzed."
_ERROR_DESCRIPTION = "Why there is no analysis"


class CallResultMaker:
    """Builder of the `callResult` of an agent's conversations."""

    def __init__(self, analysis: Analysis | None) -> None:
        analysis = analysis or Analysis()
        self._version = analysis.version
        self._steps = None if analysis.funnel is None else [step.step for step in analysis.funnel]
        # Made once: results that found the same value share its entry.
        self._items = {
            name: [_item(field, text) for text in field.values]
            for name, field in analysis.fields.items()
        }

    def of(self, messages: Messages, masked: NDArray[np.bool_]) -> Iterator[Body | None]:
        """Yield the results of messages, masked where retention has removed the output (D1)."""
        rows = zip(messages.content.tolist(), messages.found.tolist(), masked.tolist(), strict=True)
        for content, found, is_masked in rows:
            result = self.result(content, found)
            yield mask_call_result(result) if is_masked and result is not None else result

    def result(self, content: int, found: Sequence[int]) -> Body | None:
        """Return the result of a message; `found` is a row of `Analyses.found`."""
        match content:
            case Content.NOTHING:
                return None
            case Content.NO_CONVERSATION:
                return _fallback(NO_CONVERSATION, NO_CONVERSATION, self._steps or [UNKNOWN])
            case Content.UNAVAILABLE:
                return _fallback(_UNAVAILABLE_SUMMARY, _UNAVAILABLE_ERROR, [UNKNOWN])
        reached, *chosen = found
        fixed: Body = {"callSummary": _SUMMARY}
        if self._steps is not None:
            step = self._steps[reached - 1] if reached else UNKNOWN
            if reached:
                fixed["callSummary"] = _SUMMARY_WITH_STEP.format(step=step)
            fixed["funnel"] = {"funnelFlow": self._steps, "value": step}
        pairs = zip(self._items.items(), chosen, strict=True)
        items = {name: entries[index] for (name, entries), index in pairs}
        custom = "postCallAnalyticsResult" if self._version == "v2" else "customizableAttr"
        return {"version": self._version, "fixedAttr": fixed, custom: items}


def _item(field: AnalysisField, text: str) -> Body:
    """Return a custom field with a value as an entry of the result, without absent properties."""
    item: Body = {"type": field.type, "value": _value(field, text), "required": field.required}
    if field.description is not None:
        item["description"] = field.description
    if field.enum_variant is not None:
        item["enumVariant"] = [*field.enum_variant]
    return item


def _value(field: AnalysisField, text: str) -> str | int | float | bool:
    """Convert a key under `values` to the type of its field on the wire."""
    if field.type == "boolean":
        return text == "true"
    if field.type != "number":
        return text
    number = float(text)
    is_exact = number.is_integer() and abs(number) <= MOST_EXACT
    # 5.0 in a file is 5 on the wire, as JavaScript writes it.
    return int(number) if is_exact else number


def _fallback(summary: str, error: str, flow: Sequence[str]) -> Body:
    """Return the result of a conversation without an analysis (A3)."""
    return {
        "version": "v2",
        "fixedAttr": {
            "callSummary": summary,
            "funnel": {"funnelFlow": flow, "value": UNKNOWN},
        },
        "postCallAnalyticsResult": {
            "error": {
                "type": "string",
                "value": error,
                "required": True,
                "description": _ERROR_DESCRIPTION,
                "enumVariant": None,
            }
        },
    }
