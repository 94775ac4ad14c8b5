"""Findings: an agent's possible results, and the `callResult` of notices as JSON text."""

from __future__ import annotations

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.interface.analysis import Conclusions, Field, Value, unavailable
from dialsim.interface.masks import mask_call_result
from dialsim.interface.wire import MOST_EXACT
from dialsim.results.stream.notices import Content, Notices
from dialsim.scenario.agent import Analysis, AnalysisField

NULL = b"null"
_MOST_KEPT = 100_000


class Findings:
    """Puts what was found in conversations into results; each different one is dumped once."""

    def __init__(self, analysis: Analysis | None) -> None:
        self._analysis = analysis or Analysis()
        self._values = [
            [field_value(field, text) for text in field.values]
            for field in self._analysis.fields.values()
        ]
        self._conclusions = conclusions(self._analysis)
        self._texts: dict[tuple[int, bytes, bool], bytes] = {}

    def texts(self, notices: Notices, masked: NDArray[np.bool_]) -> list[bytes]:
        """The `callResult` of each notice; masked where retention removed the output (D1)."""
        if len(self._texts) > _MOST_KEPT:
            self._texts.clear()
        rows = np.ascontiguousarray(notices.found)
        found = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
        keys = zip(notices.content.tolist(), found, masked.tolist(), strict=True)
        return [NULL if not key[0] else self._texts.get(key) or self._make(key) for key in keys]

    def _make(self, key: tuple[int, bytes, bool]) -> bytes:
        content, found, masked = key
        result = self.result(Content(content), np.frombuffer(found, dtype=np.uint16))
        text = self._texts[key] = orjson.dumps(mask_call_result(result) if masked else result)
        return text

    def result(self, content: Content, found: NDArray[np.uint16]) -> dict[str, object]:
        """A result; `found` is a row of `Analyses.found`."""
        if content is Content.NO_CONVERSATION:
            return self._conclusions.no_conversation()
        if content is Content.UNAVAILABLE:
            return unavailable()
        flow, steps = self._conclusions.funnel, int(found[0])
        chosen = zip(self._values, found[1:].tolist(), strict=True)
        return self._conclusions.result(
            flow[steps - 1] if flow is not None and steps else None,
            [values[position] for values, position in chosen],
        )


def conclusions(analysis: Analysis) -> Conclusions:
    """The form of the results of an agent's conversations."""
    return Conclusions(
        version=analysis.version,
        funnel=None if analysis.funnel is None else tuple(s.step for s in analysis.funnel),
        fields=tuple(
            Field(name, field.type, field.required, field.description, field.enum_variant)
            for name, field in analysis.fields.items()
        ),
    )


def field_value(field: AnalysisField, text: str) -> Value:
    """A value as its field's type has it on the wire, from its key under `values`."""
    if field.type == "boolean":
        return text == "true"
    if field.type != "number":
        return text
    number = float(text)
    is_exact = number.is_integer() and abs(number) <= MOST_EXACT
    return int(number) if is_exact else number
