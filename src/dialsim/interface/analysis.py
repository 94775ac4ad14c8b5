"""Analysis results: what a `callResult` says of a conversation (interface, section 2.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NO_CONVERSATION = "No conversation"
"""What both texts of the fallback result say when nobody spoke (A3)."""
UNKNOWN = "Unknown"
"""The funnel's value where no step is known to be reached."""
UNAVAILABLE_SUMMARY = "ไม่สามารถวิเคราะห์การสนทนานี้ได้"
UNAVAILABLE_ERROR = "The conversation could not be analyzed."
ERROR_DESCRIPTION = "Why there is no analysis"

_SUMMARY = "สนทนากับผู้รับสายเรียบร้อยแล้ว"
_SUMMARY_WITH_STEP = "สนทนากับผู้รับสายแล้ว ถึงขั้นตอน {step}"

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Field:
    """A custom field of an agent's analyses; `required`, `description` and so on as on the wire."""

    name: str
    type: str
    required: bool
    description: str | None = None
    enum_variant: tuple[str, ...] | None = None

    def item(self, value: Value) -> dict[str, object]:
        """The field as an entry of the result: what isn't known of it is left out."""
        item: dict[str, object] = {"type": self.type, "value": value, "required": self.required}
        if self.description is not None:
            item["description"] = self.description
        if self.enum_variant is not None:
            item["enumVariant"] = list(self.enum_variant)
        return item


@dataclass(frozen=True, slots=True)
class Conclusions:
    """The form of an agent's results: version, funnel (None: the agent defines none), fields."""

    version: Literal["v1", "v2"] = "v2"
    funnel: tuple[str, ...] | None = None
    fields: tuple[Field, ...] = ()

    def result(self, step: str | None, values: Sequence[Value]) -> dict[str, object]:
        """The result of a conversation that was analyzed.

        `step` is the furthest step reached (None: not even the first), `values` has a value per
        field. The summary's wording is ours.
        """
        reached = UNKNOWN if step is None else step
        fixed: dict[str, object] = {"callSummary": _SUMMARY}
        if self.funnel is not None:
            fixed["callSummary"] = (
                _SUMMARY if step is None else _SUMMARY_WITH_STEP.format(step=step)
            )
            fixed["funnel"] = {"funnelFlow": list(self.funnel), "value": reached}
        items = {
            field.name: field.item(value) for field, value in zip(self.fields, values, strict=True)
        }
        custom = "postCallAnalyticsResult" if self.version == "v2" else "customizableAttr"
        return {"version": self.version, "fixedAttr": fixed, custom: items}

    def no_conversation(self) -> dict[str, object]:
        """The fallback result of a call in which nobody spoke (A3); it lists the agent's steps."""
        return _fallback(NO_CONVERSATION, NO_CONVERSATION, self.funnel or (UNKNOWN,))


def unavailable() -> dict[str, object]:
    """The fallback result of an analysis that could not run (A3); its texts are ours."""
    return _fallback(UNAVAILABLE_SUMMARY, UNAVAILABLE_ERROR, (UNKNOWN,))


def _fallback(summary: str, error: str, flow: Sequence[str]) -> dict[str, object]:
    return {
        "version": "v2",
        "fixedAttr": {
            "callSummary": summary,
            "funnel": {"funnelFlow": list(flow), "value": UNKNOWN},
        },
        "postCallAnalyticsResult": {
            "error": {
                "type": "string",
                "value": error,
                "required": True,
                "description": ERROR_DESCRIPTION,
                "enumVariant": None,
            }
        },
    }
