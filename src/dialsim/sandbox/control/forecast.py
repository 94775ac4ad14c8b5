"""Forecasts over HTTP: how the campaigns go on from this instant, in many runs."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from math import isfinite
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from dialsim.interface.errors import DialsimError
from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, NullAsAbsent, UuidText, WireModel
from dialsim.interface.status import CampaignStatus
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http.operation import Operations, operation
from dialsim.sandbox.remaining import RemainingRun, remaining_run
from dialsim.scenario.fields import Whole

if TYPE_CHECKING:
    from dialsim.experiments.forecast import Forecast, ForecastFigures

FEWEST, MOST = 19, 1_000


class ForecastOrder(WireModel):
    """How many runs a forecast is made of."""

    replications: Annotated[Whole, Field(ge=FEWEST, le=MOST), NullAsAbsent()] = Field(
        default=100, description="How many runs.", examples=[100]
    )
    seed: Annotated[Whole, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="Decides their chance. Left out: the sandbox's.", examples=[1]
    )


class FinishJson(WireModel):
    """The middle of all runs, and an interval that holds the truth nine times of ten."""

    low: InstantText | None = Field(description="null where it is never done.")
    half: InstantText | None = Field(description="null where it is never done.")
    high: InstantText | None = Field(description="null where it is never done.")


class ReachJson(WireModel):
    """The middle of all runs, and an interval that holds the truth nine times of ten."""

    low: float
    half: float
    high: float


class ForecastPart(WireModel):
    """What is to be expected of a campaign, or of all together."""

    people: int
    reached: int = Field(description="How many people are reached already.")
    done_by: InstantText | None = Field(
        description="When 95 % of the runs are done; null where that many are not."
    )
    finish: FinishJson = Field(description="When it is done.")
    reach: ReachJson = Field(description="How many people are reached in the end.")


class CampaignForecast(ForecastPart):
    """What is to be expected of a campaign that has begun and is not over."""

    id: UuidText
    organization: str = Field(description="Its name.")
    campaign: str = Field(description="Its name.")
    status: CampaignStatus


class ForecastAnswer(WireModel):
    """What came of the runs from this instant on."""

    at: InstantText = Field(description="The instant from which they go on.")
    replications: int
    sentences: list[str] = Field(description="What is to be said of them.")
    overall: ForecastPart | None = Field(
        description="All campaigns together; null where none has begun that is not over."
    )
    campaigns: list[CampaignForecast]


class ForecastOperations(Operations):
    """Says how the run goes on, without touching it."""

    def __init__(self, core: SandboxCore) -> None:
        super().__init__(core)
        self._forecasting = asyncio.Lock()

    @operation("POST", f"{PREFIX}/forecast", body_required=False, kept=False)
    async def forecast_run(self, body: ForecastOrder) -> ForecastAnswer:
        """Forecast how it goes on.

        When campaigns will be done and how many people they will reach, by runs from this instant
        on. Nothing changes in the sandbox, and others are answered meanwhile.
        """
        remaining = remaining_run(self.core.simulation)
        stopped = Event()

        def go_on(_done: int, _total: int) -> None:
            if stopped.is_set():
                raise DialsimError("nobody waits for the forecast any more")

        def work() -> ForecastAnswer:
            from dialsim.experiments.forecast import forecast  # what few need takes a while

            rest = remaining()
            if not rest.campaigns:
                return _answer(rest, None, body.replications)
            runs = forecast(rest.scenario, body.replications, seed=body.seed, progress=go_on)
            return _answer(rest, runs, body.replications)

        async with self._forecasting:  # one after the other: each takes all processors
            try:
                return await asyncio.to_thread(work)
            except CancelledError:
                stopped.set()
                raise


def _answer(rest: RemainingRun, runs: Forecast | None, replications: int) -> ForecastAnswer:
    scenario = rest.scenario
    answer = ForecastAnswer(
        at=format_instant(scenario.clock.start),
        replications=replications,
        sentences=["Nothing is scheduled."] if runs is None else runs.sentences(),
        overall=None,
        campaigns=[],
    )
    if runs is None or runs.figures is None:
        return answer
    named = runs.campaigns()
    parts = []
    for campaign in rest.campaigns:
        figures = named.get((campaign.organization, campaign.name))
        if figures is not None:
            parts.append(
                CampaignForecast(
                    id=campaign.id,
                    organization=campaign.organization,
                    campaign=campaign.name,
                    status=campaign.status,
                    **_figures(figures),
                )
            )
    overall = ForecastPart(**_figures(runs.figures))
    return answer.model_copy(update={"overall": overall, "campaigns": parts})


def _figures(found: ForecastFigures) -> dict[str, Any]:
    return {
        "people": found.people,
        "reached": found.reached,
        "done_by": _instant(found.done_by),
        "finish": FinishJson(
            low=_instant(found.finish.low),
            half=_instant(found.finish.half),
            high=_instant(found.finish.high),
        ),
        "reach": ReachJson(low=found.reach.low, half=found.reach.half, high=found.reach.high),
    }


def _instant(at: float) -> str | None:
    return format_instant(round(at)) if isfinite(at) else None
