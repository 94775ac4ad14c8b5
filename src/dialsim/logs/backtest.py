"""Backtests: forecasts of a log from earlier instants, and the widening that their intervals
needed.

A forecast knows the calls up to a cut. Behaviours are estimated from these calls, people and their
histories are those in the log, and settings come from its bodies or from a scenario;
`docs/calibrate.md` lists the source of each input. The forecast is compared with what happened
after the cut: finish and reach of campaigns that are over (`forecast_held_out`), or the calls made
and the people reached some time later (`backtest`).

The score of a forecast is the distance from its median to the truth, divided by the distance from
the median to the interval's end on that side. Intervals are then widened until they would have held
the truth in nine of ten of these forecasts: split conformal prediction with normalized scores
(Papadopoulos, Gammerman and Vovk 2008, "Normalized nonconformity measures for regression conformal
prediction"; Lei and others 2018, "Distribution-free predictive inference for regression", JASA
113). Cuts of one log are not exchangeable, so past coverage is no guarantee for the future.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from math import ceil
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from dialsim.engine.rules import Windows
from dialsim.errors import DialsimError
from dialsim.experiments.forecast import (
    Forecast,
    ForecastFigures,
    Span,
    Widening,
    forecast,
    hold_time_note,
    open_between,
    windows_of,
)
from dialsim.experiments.replications import RunSettings
from dialsim.interface import CallStatus
from dialsim.interface.instants import at_text, format_instant, short_text
from dialsim.logs.behaviour_text import behaviours_of
from dialsim.logs.bodies import NO_INSTANT, OUTCOMES
from dialsim.logs.calibrate import (
    FEWEST,
    By,
    Calibration,
    behaviour_of,
    calibrate,
    cut_of,
    dialled_calls,
)
from dialsim.logs.log import Log
from dialsim.logs.log_table import Expected, milliseconds
from dialsim.logs.misfit import dates_of
from dialsim.logs.pulled import CARRIED_OVER, LoggedCampaign, people_ahead
from dialsim.scenario.campaign import REACHED
from dialsim.scenario.fields import HISTORY_COLUMNS
from dialsim.scenario.loading import document_of, loads
from dialsim.scenario.scenario import Scenario

MOST_UNKNOWN = 0.01
"""Largest share of a campaign's people or calls that may be unknown for it to be compared."""
CUTS = 8
_RUNS = 30
_FIRST, _LAST, _AHEAD = 0.3, 0.75, 0.25
"""Shares of calls before the first cut and the last cut, and from a cut to its comparison.
"""
_COVERAGE = 0.9
_COUNTED = [status.value for status in OUTCOMES]
_REACHED = [status.value for status in REACHED]
_HOLDS = {"pause": "state", "resume": "state", "setConcurrency": "lines"}
"""Actions whose effect lasts until the next action of the same kind."""


@dataclass(frozen=True, slots=True)
class PastFigure:
    """Forecast of a figure, what happened, and the score of the forecast (`Span.score`).

    `wider` returns the interval with its sides lengthened by a factor.
    """

    name: str
    span: Span
    truth: float
    score: float
    wider: Callable[[float], Span] | None = None
    text: Callable[[float], str] = "{:,.0f}".format

    @property
    def held(self) -> bool:
        """True if the interval contains what happened."""
        return self.span.holds(self.truth)

    def row(self) -> tuple[str, str, str, str]:
        """Return figure, interval, what happened and if it was in the interval, as texts."""
        interval = f"{self.text(self.span.low)} to {self.text(self.span.high)}"
        return self.name, interval, self.text(self.truth), "in it" if self.held else "outside"

    def widened(self, by: float) -> PastFigure:
        """Return the figure with a wider interval."""
        return self if self.wider is None else replace(self, span=self.wider(by))


@dataclass(frozen=True, slots=True)
class PastForecast:
    """Forecast of a campaign from an earlier instant: of its finish or calls, and of its reach."""

    campaign: str
    figures: tuple[PastFigure, PastFigure]

    @property
    def held(self) -> list[bool]:
        """True for each figure whose interval contains what happened."""
        return [one.held for one in self.figures]

    def widened(self, wider: Widening) -> PastForecast:
        """Return the forecast with wider intervals."""
        first, second = self.figures
        return replace(self, figures=(first.widened(wider.finish), second.widened(wider.reach)))


def past_forecast(
    campaign: str, made: ForecastFigures, finish: int, reached: int, windows: Windows
) -> PastForecast:
    """Compare the forecast of a campaign that is over with its finish (ms) and reach."""
    # Nights would hide how far calls moved, so the score is measured in open time
    late = made.finish.in_open_time(windows, made.at)
    return PastForecast(
        campaign,
        (
            PastFigure(
                "the finish", made.finish, finish,
                late.score(open_between(windows, made.at, finish)),
                lambda by: Widening(finish=by).of_finish(made.finish, made.at, windows),
                lambda at: at_text(round(at)),
            ),
            PastFigure(
                "people reached", made.reach, reached, made.reach.score(reached),
                lambda by: Widening(reach=by).of_reach(made.reach, made.people),
            ),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class HeldOutCampaigns:
    """Campaigns that went on after `cut` (ms).

    `missing` has the reasons why other campaigns are not forecast, and `notes` has sentences on
    what the forecasts rest on.
    """

    cut: int
    campaigns: tuple[PastForecast, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def lines(self, wider: Widening | None = None) -> Iterator[str]:
        """Yield the comparison of forecasts and outcomes as lines of text.

        Intervals that `wider` widens are shown as well.
        """
        yield f"campaigns after {short_text(self.cut)} Thai time, by the calls before it:"
        for one in self.campaigns:
            for figure, by in zip(one.figures, wider or Widening(), strict=True):
                name, span, truth, held = figure.row()
                _, more, _, now = figure.widened(by).row()
                also = f"; widened {more}: {now}" if by > 1.0 else ""
                yield f"  {one.campaign}, {name}: {truth}; nine of ten runs {span}: {held}{also}"
        yield from (f"  {note}" for note in self.notes)
        yield from (f"  not forecast: {why}" for why in self.missing)


@dataclass(frozen=True, slots=True)
class Backtest:
    """Earlier forecasts of a log and what happened; `missing` has reasons for missing forecasts."""

    forecasts: Sequence[PastForecast]
    missing: Sequence[str] = ()

    @property
    def widening(self) -> Widening:
        """Smallest factors on the intervals' lengths so that they hold the truth (see `factor`)."""
        finish, reach = (
            factor([one.figures[index].score for one in self.forecasts]) for index in range(2)
        )
        return Widening(finish, reach)

    def lines(self) -> Iterator[str]:
        """Yield the sentences for the screen and the pages."""
        count = len(self.forecasts)
        if not count:
            yield "No earlier forecast could be made from the log"
            yield from self.missing
            return
        held = np.sum([one.held for one in self.forecasts], axis=0)
        first, second = (one.name for one in self.forecasts[0].figures)
        counts = f"{held[0]} held for {first}, {held[1]} for {second}"
        yield f"Of {count} earlier forecast{'s' * (count > 1)} {counts}"
        for name, by in zip(("finish", "reach"), self.widening, strict=True):
            if by > 1.0:
                yield f"The interval of the {name} is therefore {by:.2g} times as wide as its runs"
        if count < ceil(_COVERAGE / (1.0 - _COVERAGE)):
            yield (
                f"{count} earlier forecasts are few: they support intervals for "
                f"{count / (count + 1):.0%} of truths, not for {_COVERAGE:.0%}"
            )


def factor(scores: Sequence[float]) -> float:
    """Return the factor that makes intervals hold nine of ten truths; at least 1.

    It is the ⌈0.9 (n + 1)⌉-th smallest of n scores, the largest if there are too few of them.
    """
    if not scores:
        return 1.0
    rank = min(ceil(_COVERAGE * (len(scores) + 1)), len(scores))
    return max(1.0, sorted(scores)[rank - 1])


def forecast_held_out(
    log: Log,
    hold_out: float,
    by: By | None = None,
    scenario: Scenario | None = None,
    *,
    without: Sequence[int] = (),
    runs: int = 100,
    **settings: Unpack[RunSettings],
) -> HeldOutCampaigns:
    """Forecast how campaigns continue after a cut, from the calls before it.

    `hold_out` is the share of the calls after the cut; `by` is as in `calibrate`. Settings come
    from the campaigns of `scenario` with the same id or name; without a scenario from bodies.
    Raises ExperimentError if there are too few runs.
    """
    cut = cut_of(dialled_calls(log)["dialled_at"].to_numpy(), hold_out)
    try:
        ahead = _ahead(log, cut, by, scenario, without)
    except DialsimError as error:
        return HeldOutCampaigns(cut, (), (str(error),))
    reasons, finished = [*ahead.missing], []
    for code, one in ahead.found.items():
        # Left alone with all the lines, a campaign would be forecast to finish too early
        shared = [other for other, at in ahead.begins.items()
                  if _owner(log, other) == _owner(log, code) and at < one.finish]  # fmt: skip
        if one.why_not is not None:
            reasons.append(f"{one.name}: {one.why_not}")
        elif shared:
            missing = _name(log, shared[0])
            reasons.append(f"{one.name}: it shares lines with {missing}, which is not forecast")
        else:
            finished.append(one)
    if not finished:
        return HeldOutCampaigns(cut, (), tuple(reasons))
    made, note = _forecast(ahead, cut, scenario, None, runs, settings)
    loaded, figures = made.runs.scenario, made.campaigns()
    campaigns = tuple(
        past_forecast(one.name, figures[one.settings.organization, one.name], one.finish,
                      int(one.people["reached"].sum()), windows_of(loaded, one.name))
        for one in finished
    )  # fmt: skip
    return HeldOutCampaigns(cut, campaigns, tuple(reasons), (note,) if note else ())


def backtest(
    log: Log,
    by: By | None = None,
    scenario: Scenario | None = None,
    *,
    cuts: int = CUTS,
    without: Sequence[int] = (),
    **settings: Unpack[RunSettings],
) -> Backtest:
    """Forecast a log from earlier instants, and compare each forecast with the truth.

    The arguments are as in `forecast_held_out`; `cuts` is the number of instants. The campaigns
    need not be finished. Raises DialsimError if the log has too few calls.
    """
    at = np.sort(dialled_calls(log)["dialled_at"].to_numpy())
    if len(at) * _FIRST < FEWEST:
        least = ceil(FEWEST / _FIRST)
        raise DialsimError(f"{log.source}: {len(at)} calls; a backtest needs {least} or more")
    found: list[PastForecast] = []
    reasons: dict[str, None] = {}
    for share in np.linspace(_FIRST, _LAST, cuts).tolist():
        cut, until = (int(np.quantile(at, part)) for part in (share, min(share + _AHEAD, 1.0)))
        try:
            ahead = _ahead(log, cut, by, scenario, without)
        except DialsimError as error:
            reasons[str(error)] = None
            continue
        reasons |= dict.fromkeys(ahead.missing)
        # Campaigns that share lines with a missing one would be forecast to be too quick
        if ahead.found and not ahead.missing:
            made, _ = _forecast(ahead, cut, scenario, until, _RUNS, settings)
            found += _progress(log, ahead, made, cut, until)
    return Backtest(tuple(found), tuple(reasons))


def _progress(
    log: Log, ahead: _Ahead, made: Forecast, cut: int, until: int
) -> Iterator[PastForecast]:
    """Compare the calls made and the people reached from `cut` to `until` (ms) with a forecast."""
    spans = made.campaign_spans("attempts", "people_reached")
    for code, one in ahead.found.items():
        calls = log.calls[log.calls["campaign"] == code]
        ended = milliseconds(calls["ended_at"])
        counted = calls["status"].isin(_COUNTED) & (ended != NO_INSTANT) & (ended <= until)
        reached = calls.loc[counted & calls["status"].isin(_REACHED), "recipient"].nunique()
        truths = int((counted & (ended > cut)).sum()), int(reached)
        attempts, reach = (
            PastFigure(name, span, truth, span.score(truth))
            for name, span, truth in zip(
                ("calls made", "people reached"), spans[one.settings.organization, one.name],
                truths, strict=True,
            )
        )  # fmt: skip
        yield PastForecast(one.name, (attempts, reach))


# -- campaigns as they stood at a cut --------------------------------------------------------------


class _Settings(NamedTuple):
    """Settings of a campaign, its agent and organization, as parts of a scenario file.

    `lines` is None if the scenario's organization has them. `listed` counts the people on the
    campaign's list, 0 if unknown.
    """

    organization: str
    agent: dict[str, Any]
    block: dict[str, Any]
    lines: int | None
    max_attempts: int
    listed: int


class _Campaign(NamedTuple):
    """A campaign that continues after the cut, with its state at the cut.

    `people` is the table of `_people`; `unseen` counts people on the list whom the log never shows.
    `finish` is the end of the campaign's last call. `why_not` is the reason why this is not the end
    of the campaign, None if it is.
    """

    settings: _Settings
    people: pd.DataFrame
    unseen: int
    finish: int
    why_not: str | None

    @property
    def name(self) -> str:
        return str(self.settings.block["name"])


class _Ahead(NamedTuple):
    """Campaigns after a cut, and the behaviour learned before it.

    `missing` has the reasons why other campaigns are not forecast, and `begins` the instants of
    their first dials after the cut.
    """

    found: dict[int, _Campaign]
    missing: list[str]
    begins: dict[int, int]
    learned: Calibration


def _ahead(
    log: Log,
    cut: int,
    by: By | None,
    scenario: Scenario | None,
    without: Sequence[int],
) -> _Ahead:
    """Return the campaigns after a cut. Raises DialsimError if nothing can be learned before it."""
    if by == "segment":
        raise DialsimError(
            "an agent has one behaviour, so behaviours by segment can't be given to campaigns"
        )
    calls = dialled_calls(log)
    before = calls["dialled_at"] <= cut
    earlier = calls[before]
    known = dates_of(earlier["dialled_at"].to_numpy())
    learned = calibrate(
        replace(log, calls=log.calls.loc[earlier.index]),
        by,
        without=[date for date in without if (known == date).any()],
    )
    ahead = _Ahead({}, [], {}, learned)
    for code in np.unique(calls.loc[~before, "campaign"]).tolist():
        try:
            ahead.found[code] = _campaign(log, code, cut, scenario, by, learned)
        except DialsimError as error:
            later = calls.loc[~before & (calls["campaign"] == code), "dialled_at"]
            ahead.begins[code] = int(later.min())
            ahead.missing.append(f"{_name(log, code)}: {error}")
    return ahead


def _name(log: Log, code: int) -> str:
    """Return the name of a campaign, with its number where another one has the same name."""
    names = [one.name or one.id or "unknown" for one in log.campaigns]
    return names[code] if names.count(names[code]) == 1 else f"{names[code]} ({code + 1})"


def _owner(log: Log, code: int) -> str:
    return log.campaigns[code].organization or "Log"


def _campaign(
    log: Log,
    code: int,
    cut: int,
    scenario: Scenario | None,
    by: By | None,
    learned: Calibration,
) -> _Campaign:
    """Return a campaign from the cut on. Raises DialsimError if it can't be forecast."""
    behaviour = behaviour_of(log.campaigns[code], by)
    if behaviour not in learned.behaviours:
        raise DialsimError("there are too few calls before the cut to learn from")
    calls = log.calls[log.calls["campaign"] == code]
    masked = int(calls["recipient"].isna().sum())
    if masked > MOST_UNKNOWN * len(calls):
        raise DialsimError(f"of {len(calls):,} calls {masked:,} are of people who are masked")
    if scenario is None:
        settings = _shown_settings(log, code)
    else:
        settings = _written_settings(log, code, cut, scenario)
    people, most = _people(calls, cut, learned.without), settings.max_attempts
    unseen = max(settings.listed - len(people), 0)
    unsettled = unseen + int((~people["reached"] & (people["attempts"] < most)).sum())
    shown = calls.loc[calls["setting"] >= 0, "setting"].unique()
    completed = any(log.settings[one].status == "COMPLETED" for one in shown)
    # Some calls send no webhook (A2), so that bodies alone may leave a few people unsettled
    allowed = 0 if log.form == "run" else int(MOST_UNKNOWN * len(people))
    why_not = None
    if not completed and unsettled > allowed:
        why_not = (
            f"it is not finished in the log: of {len(people) + unseen:,} people {unsettled:,} were "
            f"neither reached nor called {most} times"
        )
        if log.form != "run" and scenario is None:
            raise DialsimError(f"{why_not}, and people who were never called are not in it")
    name = _name(log, code)
    agent = {"name": f"Agent of {name}", "behaviour": behaviour}
    ends = milliseconds(calls.loc[calls["status"].isin(_COUNTED), "ended_at"].dropna())
    settings = settings._replace(
        agent={**settings.agent, **agent},
        block={**settings.block, "name": name, "agent": agent["name"]},
    )
    finish = int(ends.max(initial=cut))
    return _Campaign(settings, people, 0 if completed else unseen, finish, why_not)


def _shown_settings(log: Log, code: int) -> _Settings:
    """Return the settings that the bodies of a campaign show."""
    identifier = log.campaigns[code].id
    shown = identifier and LoggedCampaign.of(log, identifier.lower(), frozenset())
    if not shown or shown.schedule is None or shown.lines is None:
        raise DialsimError("the log doesn't show its schedule and its lines: give a scenario")
    body = shown.schedule.model_dump(mode="json", by_alias=True, exclude_none=True)
    block = {"schedule": {key: body[key] for key in CARRIED_OVER if key in body}}
    return _Settings(_owner(log, code), {}, block, shown.lines, shown.schedule.max_attempts, 0)


def _written_settings(log: Log, code: int, cut: int, scenario: Scenario) -> _Settings:
    """Return the settings that a scenario has for a campaign of the log."""
    expected = Expected(scenario, log.campaigns).blocks[code]
    if expected is None:
        raise DialsimError("the scenario has no campaign of this id or name")
    if expected.schedule is None:
        raise DialsimError("the scenario has no schedule for it")
    owner = document_of(scenario)["organizations"][expected.organization]
    [agent] = [one for one in owner["agents"] if one["name"] == expected.agent.name]
    agent = {key: value for key, value in agent.items() if key not in {"id", "paramsSchema"}}
    block = dict(owner["campaigns"][expected.position])
    request, asked = expected.schedule, expected.scheduled_at
    if asked is not None and asked <= cut:
        block.pop("scheduledAt", None)
        # The request is past, but first calls stay due since its effective start (C1, Q2)
        start = format_instant(max(asked, request.start_date_time))
        block["schedule"] = {**block["schedule"], "startDateTime": start}
    most = request.max_attempts
    return _Settings(owner["name"], agent, block, None, most, expected.people.count)


def _people(calls: pd.DataFrame, cut: int, without: Sequence[int]) -> pd.DataFrame:
    """Return the people of a campaign, a row each, in the order of its list if known.

    `reached` and `attempts` are known at the end of the log. `HISTORY_COLUMNS` have, as texts, the
    history of people who were called before the cut. A call in progress at the cut is left out: the
    forecast makes it anew.
    """
    known = calls[calls["recipient"].notna()]
    counted = known[known["status"].isin(_COUNTED) & known["attempt"].notna()]
    first = known.groupby("recipient")["position"].min()
    people = pd.DataFrame(index=first.sort_values(kind="stable").index)
    people["segment"] = known.groupby("recipient")["segment"].first()
    reached = known.loc[known["status"].isin(_REACHED), "recipient"]
    people["reached"] = people.index.isin(reached)
    attempts = counted.groupby("recipient")["attempt"].max()
    people["attempts"] = attempts.reindex(people.index).fillna(0).astype(np.int64)
    ended_at = milliseconds(counted["ended_at"])
    past = counted[(ended_at != NO_INSTANT) & (ended_at <= cut)]
    last = past.sort_values(["ended_at", "attempt"], kind="stable").groupby("recipient").last()
    ends = [format_instant(at) for at in milliseconds(last["ended_at"]).tolist()]
    # P8: a failure in an outage is no sign of a dead number
    outage = np.isin(dates_of(milliseconds(last["ended_at"])), np.array(without, dtype=np.int64))
    outage &= (last["status"] == CallStatus.FAILED.value).to_numpy()
    status = last["status"].astype(str).where(~outage, CallStatus.CANCELLED.value)
    cells = [last["attempt"].astype(str), status, ends,
             last["caller_id"].astype(object).where(last["caller_id"].notna(), "")]  # fmt: skip
    for column, values in zip(HISTORY_COLUMNS, cells, strict=True):
        people[column] = pd.Series(list(values), index=last.index, dtype=object)
    people[[*HISTORY_COLUMNS]] = people[[*HISTORY_COLUMNS]].fillna("")
    return people


def _forecast(
    ahead: _Ahead,
    cut: int,
    scenario: Scenario | None,
    until: int | None,
    runs: int,
    settings: RunSettings,
) -> tuple[Forecast, str | None]:
    """Forecast campaigns from a cut on, with the behaviours learned before it.

    Also returns the note on assumed hold times; None for a forecast up to an instant.
    """
    draws = ahead.learned.draws
    if until is not None:  # with many cuts, one run per draw is enough
        draws = draws[:runs]
    quiet: RunSettings = {"progress": False, **settings}
    rest = _scenario([*ahead.found.values()], ahead.learned, cut, scenario, until)
    made = forecast(rest, runs, draws=draws, **quiet)
    if until is not None:
        return made, None
    return made, hold_time_note(made.runs.scenario, jobs=settings.get("jobs"))


def _scenario(
    campaigns: Sequence[_Campaign],
    learned: Calibration,
    cut: int,
    scenario: Scenario | None,
    until: int | None,
) -> Scenario:
    """Return the scenario from the cut on, up to an instant if one is given."""
    document: dict[str, Any] = {"version": 1, "name": "Held out"}
    owners: dict[str, dict[str, Any]] = {}
    if scenario is not None:
        document = dict(document_of(scenario))
        owners = {one["name"]: _from(cut, one, scenario) for one in document["organizations"]}
    document["behaviours"] = {**document.get("behaviours", {}), **behaviours_of(learned)}
    document["clock"] = {**document.get("clock", {}), "start": format_instant(cut)}
    if until is not None:
        document["clock"]["end"] = format_instant(until)
    document["engine"] = {**document.get("engine", {}), **_order(campaigns)}
    numbers, files = count(1), dict[str, bytes]()
    listed: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(campaigns, 1):
        settings = one.settings
        name = settings.organization
        empty = {"name": name, "agents": [], **owners.get(name, {}), "campaigns": []}
        owner = listed.setdefault(name, empty)
        if settings.lines is not None:
            owner["maxConcurrentCalls"] = settings.lines
            shown = settings.block["schedule"].get("callerIds", [])
            owner["callerIds"] = [*dict.fromkeys([*owner.get("callerIds", []), *shown])]
        file = f"people-{number}.csv"
        files[file] = _list_of_people(one, numbers)
        owner["agents"].append(settings.agent)
        owner["campaigns"].append({**settings.block, "recipients": {"file": file}})
    for owner in listed.values():
        names = {one["name"] for one in owner["campaigns"]}
        actions = owner.pop("timeline", [])
        owner["timeline"] = [one for one in actions if one.get("campaign") in {None, *names}]
    document["organizations"] = [*listed.values()]
    return loads(json.dumps(document, ensure_ascii=False), name="Held out", files=files)


def _from(cut: int, owner: dict[str, Any], scenario: Scenario) -> dict[str, Any]:
    """Return an organization from the cut on; of earlier actions it keeps those still in effect."""
    [settings] = [one for one in scenario.organizations if one.name == owner["name"]]
    still: dict[object, dict[str, Any]] = {}
    later = []
    for action, written in zip(settings.timeline, owner.get("timeline", []), strict=True):
        if action.at > cut:
            later.append(written)
        elif action.action in _HOLDS:
            held = {**written, "at": format_instant(cut)}
            still[_HOLDS[action.action], action.campaign] = held
    kept = [one for one in still.values() if one["action"] != "resume"]
    return {**owner, "agents": [*owner["agents"]], "timeline": [*kept, *later]}


def _order(campaigns: Sequence[_Campaign]) -> dict[str, str]:
    """Return the order of calls, where the calls before the cut show that retries go first (Q3)."""
    made = [pd.to_numeric(one.people[HISTORY_COLUMNS[0]]).fillna(0) for one in campaigns]
    return {"order": "retriesFirst"} if people_ahead(made) else {}


def _list_of_people(campaign: _Campaign, numbers: Iterator[int]) -> bytes:
    """Return a CSV of people with made-up phone numbers, on which no forecast depends."""
    columns = ["segment", *HISTORY_COLUMNS]
    unseen = pd.DataFrame(index=range(campaign.unseen), columns=columns)
    people = pd.concat([campaign.people[columns].astype(object), unseen])
    people.insert(0, "tel", [f"{number:020}" for number in islice(numbers, len(people))])
    return people.to_csv(index=False).encode()
