"""The cause that held a campaign back: a sentence about the run, and the share behind it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dialsim.interface import CampaignStatus
from dialsim.interface.instants import duration_text
from dialsim.interface.phrases import counted, joined, percent
from dialsim.results.campaigns import CampaignTimeline, PeopleCount
from dialsim.results.time_use import TimeUse
from dialsim.scenario.service import EngineSettings

if TYPE_CHECKING:
    from dialsim.language import Language


class Reason(StrEnum):
    """Cause that can hold a campaign back."""

    LINES = "lines"
    WINDOWS = "windows"
    QUEUE = "queue"
    RETRY_INTERVAL = "retry_interval"
    PACING = "pacing"
    PAUSES = "pauses"
    ATTEMPTS = "attempts"
    NOTHING = "nothing"
    NOT_SCHEDULED = "not_scheduled"


# In order of precedence: of equal shares `max` takes the first.
_OF_TIME = (
    Reason.LINES,
    Reason.WINDOWS,
    Reason.QUEUE,
    Reason.RETRY_INTERVAL,
    Reason.PACING,
    Reason.PAUSES,
)
_PAIR = (Reason.LINES, Reason.PACING)

_MUCH = 0.25
"""Least share of the campaign's time for a cause to be named beside the main cause."""
_USED_UP = 0.75
"""Least use of lines and of the allowed dial rate for which both are named together.

With this use of both, lifting only one of the two limits saves at most a quarter of the time.
"""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Cause that held a campaign back, with its sentence and share.

    `share` is the share of the campaign's time that the reason took (`TimeUse`); for `attempts`,
    the share of people whom none of their attempts reached; None for reasons without a share.
    `also` are causes named with the reason: they took much time as well, or the reason's time could
    not be saved without them. `campaign` is `Organization/Name`.
    """

    campaign: str
    reason: Reason
    sentence: str
    share: float | None
    also: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class CampaignBounds:
    """Limits of a campaign: its organization's lines over its time, and the engine settings."""

    least_limit: int
    most_limit: int
    last_limit: int
    mostly_others: bool
    engine: EngineSettings

    @property
    def lines_text(self) -> str:
        """Clause on busy lines with their number or range: `all 5 to 8 lines were busy`."""
        whose = ", mostly with calls of other campaigns," if self.mostly_others else ""
        if self.least_limit == self.most_limit == 1:
            return f"the only line was busy{whose}"
        some = "" if self.least_limit == self.most_limit else f"{self.least_limit} to "
        return f"all {some}{self.most_limit} lines were busy{whose}"


def held_back(
    life: CampaignTimeline,
    use: TimeUse,
    people: PeopleCount,
    setting: CampaignBounds,
) -> Bottleneck:
    """Return the cause with the largest share of a campaign's time, and the causes to name with it.

    If the calls themselves took the most time, the cause is `attempts` if most unreached people ran
    out of attempts, else `nothing`. A stalled campaign has the cause that stalls it.
    """
    if life.request is None:
        sentence = "Nothing was dialled: the campaign was never scheduled."
        return Bottleneck(life.full_name, Reason.NOT_SCHEDULED, sentence, None)
    if life.stalled:
        reason, text = _stall(life, setting)
        return Bottleneck(life.full_name, reason, f"{text}{_rest(people, life)}.", None)
    if not use.total and people.people > people.reached + people.exhausted:
        sentence = "Nothing was dialled: the campaign or the run ended before calling began."
        return Bottleneck(life.full_name, Reason.NOTHING, sentence, None)
    reason = max(_OF_TIME, key=use.share)
    if use.share("calls") < use.share(reason):
        also = _named_with(reason, use)
        sentence = _sentence(reason, also, life, use, setting) + _rest(people, life)
        return Bottleneck(life.full_name, reason, f"{sentence}.", use.share(reason), also)
    if 2 * people.exhausted > people.people - people.reached:
        sentence = f"Attempts: {_ran_out(people, life)}."
        share = people.exhausted / people.people
        return Bottleneck(life.full_name, Reason.ATTEMPTS, sentence, share)
    sentence = f"Nothing: whoever was due was called at once{_rest(people, life)}."
    return Bottleneck(life.full_name, Reason.NOTHING, sentence, None)


def _named_with(reason: Reason, use: TimeUse) -> tuple[Reason, ...]:
    """Return the causes to name with the one that took most of the time."""
    named = {reason, *(cause for cause in _OF_TIME if use.share(cause) >= _MUCH)}
    backlog, full = 2 * use.backlog > use.windows, 2 * (use.lines + use.pacing) > use.calling
    if reason is Reason.WINDOWS and backlog and full:
        # Recipients would not have waited through closed hours if the open hours had sufficed.
        named.add(max(_PAIR, key=use.share))
    if not named.isdisjoint(_PAIR) and _bind_together(use):
        named.update(_PAIR)
    return tuple(cause for cause in _OF_TIME if cause in named - {reason})


def _bind_together(use: TimeUse) -> bool:
    """Return True if neither more lines alone nor a faster pace alone would have saved much
    time.
    """
    return min(use.lines_used, use.pace_used) >= _USED_UP


_NAMES = {
    Reason.LINES: "lines",
    Reason.WINDOWS: "calling windows",
    Reason.QUEUE: "queue",
    Reason.RETRY_INTERVAL: "retry interval",
    Reason.PACING: "pacing",
    Reason.PAUSES: "pauses",
}


def _sentence(
    reason: Reason,
    also: tuple[Reason, ...],
    life: CampaignTimeline,
    use: TimeUse,
    setting: CampaignBounds,
) -> str:
    """Return the sentence: `Lines: …`, or `Calling windows and lines: …; …`."""
    causes = [reason, *also]
    together = set(_PAIR).issubset(causes) and _bind_together(use)
    if together:
        causes = [cause for cause in causes if cause not in _PAIR]
    clauses = [_clause(cause, life, use, setting) for cause in causes]
    if together:
        causes += _PAIR
        clauses.append(_pair(use, setting))
    head = joined([_NAMES[cause] for cause in causes])
    return f"{head[0].upper()}{head[1:]}: {'; '.join(clauses)}"


def _clause(reason: Reason, life: CampaignTimeline, use: TimeUse, setting: CampaignBounds) -> str:
    """Return the clause that describes one cause."""
    figure = percent(use.share(reason))
    unlimited = ", which has no limit" if setting.engine.queue_limit == "unlimited" else ""
    interval = duration_text(life.request.retry_interval) if life.request else "time"
    clauses = {
        Reason.LINES: f"{setting.lines_text} for {figure} of the time, and people waited",
        Reason.WINDOWS: f"windows were closed for {figure} of the time, and people waited",
        Reason.QUEUE: f"calls timed out in the queue{unlimited}, and {figure} of the time went by "
        f"until they were due again, {interval} later",
        Reason.RETRY_INTERVAL: f"{figure} of the time went by until the {interval} before a retry "
        "was over",
        Reason.PACING: f"for {figure} of the time people waited and a line was free, but "
        f"{_pace(use, setting.engine)}",
        Reason.PAUSES: f"people waited for {duration_text(use.pauses)} while it was paused, "
        f"{figure} of the time",
    }
    return clauses[reason]


def _pair(use: TimeUse, setting: CampaignBounds) -> str:
    """Return the clause that describes lines and pace as joint limits."""
    return (
        f"while people waited, {percent(use.lines_used)} of the lines were busy and "
        f"{percent(use.pace_used)} of the {setting.engine.calls_per_second:g} dials a second that "
        "callsPerSecond allows were made, so more of one alone saves little"
    )


_PEOPLE = ("person", "people")


def _ran_out(people: PeopleCount, life: CampaignTimeline) -> str:
    """Describe the people whom no attempt reached."""
    share = percent(people.exhausted / people.people)
    attempts = counted(life.request.max_attempts if life.request else 0, "attempt")
    return f"{share} of the people were not reached in the {attempts} they got"


def _pace(use: TimeUse, engine: EngineSettings) -> str:
    rate, interval = engine.calls_per_second, engine.release_interval
    # With both limits, the one that cost more time is named.
    if rate is not None and (not interval or 2 * use.pacing_in_queue > use.pacing):
        return f"callsPerSecond allows {rate:g} dials a second"
    return f"calls are released only every {duration_text(interval)}"


def _stall(life: CampaignTimeline, setting: CampaignBounds) -> tuple[Reason, str]:
    """Return the cause that keeps a campaign's calls from ever being dialled, and its text (T5)."""
    if life.status is CampaignStatus.PAUSED:
        return Reason.PAUSES, "Pauses: it was paused and never resumed"
    if setting.last_limit == 0:
        return Reason.LINES, "Lines: maxConcurrentCalls is 0 to the end"
    return Reason.PACING, "Pacing: no instant of release ever falls into a calling window"


def _rest(people: PeopleCount, life: CampaignTimeline) -> str:
    """Return a clause on unreached people; empty if none was lost and few ran out of attempts."""
    left = people.stalled or people.pending
    if left:
        return f"; {counted(left, *_PEOPLE)} still to be called"
    if people.expired:
        return f"; endDateTime came before {counted(people.expired, *_PEOPLE)} could be reached"
    if people.cancelled:
        return f"; it was cancelled before {counted(people.cancelled, *_PEOPLE)} could be reached"
    if 2 * people.exhausted > people.people:
        return f"; {_ran_out(people, life)}"
    return ""


def held_back_text(texts: Language, held: Bottleneck | None) -> str:
    """Return the cause that held a campaign back as a sentence; empty if there was none."""
    if held is None:
        return ""
    gettext = texts.gettext
    sentences = {
        Reason.LINES: gettext("All lines were busy for {share} of the time, and people waited."),
        Reason.WINDOWS: gettext(
            "Calling hours were closed for {share} of the time, and people waited."
        ),
        Reason.QUEUE: gettext("{share} of the time went by because calls timed out in the queue."),
        Reason.RETRY_INTERVAL: gettext("{share} of the time went by until retries were due."),
        Reason.PACING: gettext("The pace of dialling held calls up for {share} of the time."),
        Reason.PAUSES: gettext("Calling was paused for {share} of the time, and people waited."),
        Reason.ATTEMPTS: gettext("{share} of the people were not reached in all their attempts."),
    }
    if held.reason not in sentences or held.share is None:
        return ""
    return sentences[held.reason].format(share=texts.share(held.share))
