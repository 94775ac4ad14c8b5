"""Figures of the stream: how results were delivered, and what the analyses found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialsim.results.stream.analysis_tally import AnalysisTally
from dialsim.results.stream.delivery_tally import DeliveryTally
from dialsim.results.stream.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFigures:
    """Results sent to the webhook, re-analyses included.

    - results: those that had a URL to go to, the sum of the next four. at_first_try and
      after_retries were delivered; lost failed three times (W2); pending were under way when the
      run ended.
    - received_though_lost: lost ones that the receiver took in all the same, too slowly.
      duplicated: taken in more than once. out_of_order: taken in after a newer result of the same
      person.
    - without_url: made and kept, not sent (W6).
    - delay_mean_seconds and delay_p95_seconds: from the result to its first arrival at the
      receiver, latency included; None where nothing arrived.
    """

    results: int
    at_first_try: int
    after_retries: int
    lost: int
    pending: int
    received_though_lost: int
    duplicated: int
    out_of_order: int
    without_url: int
    delay_mean_seconds: float | None
    delay_p95_seconds: float | None

    @classmethod
    def of(cls, tally: DeliveryTally) -> WebhookFigures:
        """The figures of a tally."""
        delays = tally.delays_ms
        return cls(
            results=tally.sent,
            at_first_try=tally.at_first_try,
            after_retries=tally.after_retries,
            lost=tally.lost,
            pending=tally.pending,
            received_though_lost=tally.received_though_lost,
            duplicated=tally.duplicated,
            out_of_order=tally.out_of_order,
            without_url=tally.without_url,
            delay_mean_seconds=int(delays.sum()) / len(delays) / 1000 if len(delays) else None,
            delay_p95_seconds=float(np.quantile(delays, 0.95)) / 1000 if len(delays) else None,
        )


@dataclass(frozen=True, slots=True)
class StepCount:
    """How many analyzed conversations of an agent reached a step of its funnel."""

    agent: str
    step: str
    reached: int


@dataclass(frozen=True, slots=True)
class ValueCount:
    """How many analyzed conversations of an agent have a value in a custom field."""

    agent: str
    field: str
    value: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisFigures:
    """What the analyses of the conversations have come to by the end.

    - conversations: calls that were answered and have ended, the sum of the next six (`Verdict`).
    - reanalyses: results of re-analyses (A5). `funnel` and `fields` count the newest results.
    """

    conversations: int
    analyzed: int
    no_conversation: int
    unavailable: int
    not_analyzed: int
    failed: int
    pending: int
    reanalyses: int
    funnel: tuple[StepCount, ...]
    fields: tuple[ValueCount, ...]

    @classmethod
    def of(cls, tally: AnalysisTally) -> AnalysisFigures:
        """The figures of a tally."""
        return cls(
            conversations=sum(tally.by_verdict),
            analyzed=tally.count(Verdict.ANALYZED),
            no_conversation=tally.count(Verdict.NO_CONVERSATION),
            unavailable=tally.count(Verdict.UNAVAILABLE),
            not_analyzed=tally.count(Verdict.NOT_ANALYZED),
            failed=tally.count(Verdict.FAILED),
            pending=tally.count(Verdict.PENDING),
            reanalyses=tally.reanalyses,
            funnel=tuple(StepCount(*key, count) for key, count in tally.steps.items()),
            fields=tuple(ValueCount(*key, count) for key, count in tally.values.items()),
        )
