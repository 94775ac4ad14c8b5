"""What held a campaign back: one sentence derived from the run, and the figure that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dialsim.interface.status import CampaignStatus
from dialsim.results.campaign_life import CampaignLife
from dialsim.results.person_state import PeopleCount
from dialsim.results.thai_time import duration_text
from dialsim.results.time_use import TimeUse
from dialsim.scenario.service import EngineSettings


class Reason(StrEnum):
    """What can hold a campaign back."""

    SLOTS = "slots"
    WINDOWS = "windows"
    RETRY_INTERVAL = "retry_interval"
    PACING = "pacing"
    PAUSES = "pauses"
    ATTEMPTS = "attempts"
    NOTHING = "nothing"
    NOT_SCHEDULED = "not_scheduled"


_OF_TIME = (Reason.SLOTS, Reason.WINDOWS, Reason.RETRY_INTERVAL, Reason.PACING, Reason.PAUSES)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The reason, its sentence, and its figure.

    `share` is the share of the campaign's time that the reason took (`TimeUse`), or, for
    `attempts`, of its people who did not answer in all their attempts; None where there is no
    such figure. `campaign` is the campaign it is about, `Organization/Name`.
    """

    campaign: str
    reason: Reason
    sentence: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Setting:
    """What bounded a campaign: its organization's limit over its time, and the engine's pace."""

    least_limit: int
    most_limit: int
    last_limit: int
    mostly_others: bool
    engine: EngineSettings

    @property
    def slots_text(self) -> str:
        """The busy slots as the subject of a sentence, with their number or its range."""
        whose = ", mostly with calls of other campaigns," if self.mostly_others else ""
        if self.least_limit == self.most_limit == 1:
            return f"the only one was busy{whose}"
        some = "" if self.least_limit == self.most_limit else f"{self.least_limit} to "
        return f"all {some}{self.most_limit} were busy{whose}"


def held_back(life: CampaignLife, use: TimeUse, people: PeopleCount, setting: Setting) -> HeldBack:
    """Name what took the largest share of a campaign's time.

    Where that is the calls themselves, `attempts` are named if they are what most people not
    reached ran out of, else `nothing`. A stalled campaign is held back by what stalls it.
    """
    if life.request is None:
        sentence = "Nothing was dialled: the campaign was never scheduled."
        return HeldBack(life.full_name, Reason.NOT_SCHEDULED, sentence, None)
    if life.stalled:
        reason, text = _stall(life, setting)
        return HeldBack(life.full_name, reason, f"{text}{_rest(people, life)}.", None)
    if not use.total and people.people > people.reached + people.exhausted:
        sentence = f"Nothing was dialled: {_early_end(life)} before calling began."
        return HeldBack(life.full_name, Reason.NOTHING, sentence, None)
    reason = max(_OF_TIME, key=use.share)
    share: float | None = use.share(reason)
    if use.share("calls") >= (share or 0.0):
        exhausted = people.exhausted > (people.people - people.reached) / 2
        reason = Reason.ATTEMPTS if exhausted else Reason.NOTHING
        share = people.exhausted / people.people if exhausted else None
    sentence = _sentence(reason, share or 0.0, life, use, setting)
    ending = "" if reason is Reason.ATTEMPTS else _rest(people, life)
    return HeldBack(life.full_name, reason, f"{sentence}{ending}.", share)


def percent(share: float) -> str:
    """A share as people read it: `97 %`; `<1 %` and `>99 %` where rounding would lie."""
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{100 * share:.0f} %"


def _sentence(
    reason: Reason, share: float, life: CampaignLife, use: TimeUse, setting: Setting
) -> str:
    figure = percent(share)
    sentences = {
        Reason.SLOTS: f"Slots: {setting.slots_text} for {figure} of the time, and people waited",
        Reason.WINDOWS: f"Calling windows: they were closed for {figure} of the time, and people "
        "waited",
        Reason.RETRY_INTERVAL: f"Retry interval: {figure} of the time went by until "
        f"{_interval(life)} before a retry was over{_after_timeouts(use)}",
        Reason.PACING: f"Pacing: for {figure} of the time people waited and a slot was free, but "
        f"{_pace(use, setting.engine)}",
        Reason.PAUSES: f"Pauses: people waited for {duration_text(use.pauses)} while it was "
        f"paused, {figure} of the time",
        Reason.ATTEMPTS: f"Attempts: {figure} of the people did not answer in {_attempts(life)}",
        Reason.NOTHING: "Nothing: whoever was due was called at once",
    }
    return sentences[reason]


def _interval(life: CampaignLife) -> str:
    return f"the {duration_text(life.request.retry_interval)}" if life.request else "the time"


def _after_timeouts(use: TimeUse) -> str:
    return ", mostly after a queue timeout" if use.mostly_after_timeouts else ""


def _attempts(life: CampaignLife) -> str:
    allowed = life.request.max_attempts if life.request else 0
    return "the 1 attempt they got" if allowed == 1 else f"the {allowed} attempts they got"


def _pace(use: TimeUse, engine: EngineSettings) -> str:
    rate, interval = engine.calls_per_second, engine.release_interval
    if rate is not None and (not interval or 2 * use.pacing_in_queue > use.pacing):
        return f"callsPerSecond allows {rate:g} dials a second"
    return f"calls are released only every {duration_text(interval)}"


def _stall(life: CampaignLife, setting: Setting) -> tuple[Reason, str]:
    """What keeps a campaign's calls from ever being dialled (T5)."""
    if life.status is CampaignStatus.PAUSED:
        return Reason.PAUSES, "Pauses: it was paused and never resumed"
    if setting.last_limit == 0:
        return Reason.SLOTS, "Slots: maxConcurrentCalls is 0 to the end"
    return Reason.PACING, "Pacing: no instant of release ever falls into a calling window"


def _early_end(life: CampaignLife) -> str:
    """What ended a campaign of which no time passed."""
    ends = {
        CampaignStatus.CANCELLED: "the campaign was cancelled",
        CampaignStatus.EXPIRED: "endDateTime came",
    }
    return ends.get(life.status, "clock.end came")


def _rest(people: PeopleCount, life: CampaignLife) -> str:
    """Who was left, and why; empty where nobody is worth a word."""
    left = people.stalled or people.pending
    if left:
        return f"; {_people(left)} still to be called"
    if people.expired:
        return f"; endDateTime came before {_people(people.expired)} could be reached"
    if people.cancelled:
        return f"; it was cancelled before {_people(people.cancelled)} could be reached"
    if 2 * people.exhausted > people.people:
        share = percent(people.exhausted / people.people)
        return f"; {share} of the people did not answer in {_attempts(life)}"
    return ""


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"
