"""Backtest of forecasts: campaigns that continue after a cut, forecast from the log before it.

Behaviours are estimated from the calls before the cut. People and their histories are those in the
log; settings come from its bodies or from a scenario. The forecast is compared with what happened
after the cut. `docs/calibrate.md` says which input comes from where.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from dialsim.engine.windows import Windows
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
from dialsim.experiments.variants import DRAWS, read_variants
from dialsim.interface.instants import at_text, format_instant, short_text
from dialsim.interface.status import CallStatus
from dialsim.logs.behaviour_text import draws_text
from dialsim.logs.bodies import NO_INSTANT, OUTCOMES
from dialsim.logs.calibrate import (
    By,
    Calibration,
    behaviour_of,
    calibrate,
    cut_of,
    dialled_calls,
)
from dialsim.logs.findings import milliseconds
from dialsim.logs.log import Log
from dialsim.logs.misfit import dates_of
from dialsim.logs.pulled import CARRIED_OVER, LoggedCampaign, people_ahead
from dialsim.logs.scenario_rules import Expected
from dialsim.results.folder import SOURCE
from dialsim.results.progress import Progress
from dialsim.scenario.campaign import REACHED
from dialsim.scenario.fields import HISTORY_COLUMNS
from dialsim.scenario.loading import document_of, load
from dialsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from dialsim.engine.engines import Choice

MOST_UNKNOWN = 0.01
"""Largest share of a campaign's people or calls that may be unknown for it to be compared."""
_COUNTED = [status.value for status in OUTCOMES]
_REACHED = [status.value for status in REACHED]
_HOLDS = {"pause": "state", "resume": "state", "setConcurrency": "lines"}
"""Actions whose effect lasts until the next action of the same kind."""


class Comparison(NamedTuple):
    """Interval of a figure, what happened, and the score of the forecast (`Span.score`)."""

    figure: str
    span: Span
    truth: float
    score: float

    @property
    def held(self) -> bool:
        """True if the interval contains what happened."""
        return self.span.holds(self.truth)


@dataclass(frozen=True, slots=True)
class HeldOutCampaign:
    """A campaign that continued after the cut: its forecast, and what happened.

    `finish` is when its last call ended (ms), `reached` how many people it had reached by then.
    """

    name: str
    forecast: ForecastFigures
    finish: int
    reached: int
    windows: Windows

    @property
    def comparisons(self) -> tuple[Comparison, Comparison]:
        """Comparison of finish and reach with the truth."""
        done, reach, start = self.forecast.finish, self.forecast.reach, self.forecast.at
        # Nights would hide how far calls moved, so the score is measured in open time
        late = done.in_open_time(self.windows, start)
        score = late.score(open_between(self.windows, start, self.finish))
        return (
            Comparison("the finish", done, self.finish, score),
            Comparison("people reached", reach, self.reached, reach.score(self.reached)),
        )

    def widened(self, wider: Widening) -> HeldOutCampaign:
        """Return the forecast with wider intervals."""
        old = self.forecast
        finish = wider.of_finish(old.finish, old.at, self.windows)
        reach = wider.of_reach(old.reach, old.people)
        return replace(self, forecast=replace(old, finish=finish, reach=reach))

    def rows(self) -> tuple[tuple[str, str, str, str], ...]:
        """Return figure, interval, what happened and if it was in the interval, as texts."""
        done, reach = self.comparisons
        return (
            ("done", f"{at_text(done.span.low)} to {at_text(done.span.high)}",
             at_text(self.finish), _held(done)),
            ("people reached", f"{reach.span.low:,.0f} to {reach.span.high:,.0f}",
             f"{self.reached:,}", _held(reach)),
        )  # fmt: skip


def _held(one: Comparison) -> str:
    return "in it" if one.held else "outside"


@dataclass(frozen=True, slots=True)
class HeldOutCampaigns:
    """Campaigns that went on after `cut` (ms).

    `missing` has the reasons why others are not forecast, `notes` sentences on what the forecasts
    rest on.
    """

    cut: int
    campaigns: tuple[HeldOutCampaign, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def lines(self, wider: Widening | None = None) -> Iterator[str]:
        """Yield the comparison of forecasts and outcomes as lines of text.

        Intervals that `wider` widens are shown as well.
        """
        wider = wider or Widening()
        yield f"campaigns after {short_text(self.cut)} Thai time, by the calls before it:"
        for one in self.campaigns:
            both = zip(one.rows(), one.widened(wider).rows(), wider, strict=True)
            (_, *done), (_, *reach) = (
                (name, truth, f"{span}: {said}" + (f"; widened {more}: {now}" if by > 1.0 else ""))
                for (name, span, truth, said), (_, more, _, now), by in both
            )
            yield f"  {one.name}: done {done[0]}; nine of ten runs {done[1]}"
            yield f"    reached {reach[0]}; nine of ten runs {reach[1]}"
        yield from (f"  {note}" for note in self.notes)
        yield from (f"  not forecast: {why}" for why in self.missing)


class _Settings(NamedTuple):
    """Settings of a campaign, its agent and organization, as parts of a scenario file."""

    organization: str
    agent: dict[str, Any]
    block: dict[str, Any]
    lines: int | None
    max_attempts: int
    # People on its list, 0 if unknown
    listed: int


@dataclass(frozen=True, slots=True)
class _Campaign:
    """A campaign that continues after the cut, as the scenario has it from there.

    `people` is the table of `_people`; `unseen` counts those on the list whom the log never shows.
    `finish` is when its last call ended; `why_not` says why that is not the end of the campaign,
    None if it is. `lines` is None if the scenario's organization has them.
    """

    name: str
    organization: str
    agent: dict[str, Any]
    block: dict[str, Any]
    lines: int | None
    people: pd.DataFrame
    unseen: int
    finish: int
    why_not: str | None


def forecast_held_out(
    log: Log,
    hold_out: float,
    by: By | None = None,
    scenario: Scenario | None = None,
    *,
    without: Sequence[int] = (),
    runs: int = 100,
    jobs: int | None = None,
    progress: Progress | None = None,
    engine: Choice = "auto",
) -> HeldOutCampaigns:
    """Forecast how campaigns continue after a cut, from the calls before it.

    `hold_out` is the share of the calls after the cut; `by` is that of `calibrate`. Settings are
    those of the campaigns of `scenario` with the same id or name; without a scenario those that
    bodies show. Raises ExperimentError if there are too few runs.
    """
    cut = cut_of(dialled_calls(log)["dialled_at"].to_numpy(), hold_out)
    ahead = _ahead(log, cut, by, scenario, without)
    if isinstance(ahead, str):
        return HeldOutCampaigns(cut, (), (ahead,))
    found, reasons, begins, learned = ahead
    finished = []
    for code, one in found.items():
        # Left alone with all the lines, a campaign would be forecast to finish too early
        shared = [other for other, at in begins.items()
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
    made = _forecast(found, learned, cut, scenario, None, runs, jobs, progress, engine)
    loaded, figures = made.runs.scenario, made.campaigns()
    note = hold_time_note(loaded, jobs=jobs)
    campaigns = tuple(
        HeldOutCampaign(one.name, figures[one.organization, one.name], one.finish,
                        int(one.people["reached"].sum()), windows_of(loaded, one.name))
        for one in finished
    )  # fmt: skip
    return HeldOutCampaigns(cut, campaigns, tuple(reasons), (note,) if note else ())


def _forecast(
    found: Mapping[int, _Campaign],
    learned: Calibration,
    cut: int,
    scenario: Scenario | None,
    until: int | None,
    runs: int,
    jobs: int | None,
    progress: Progress | None,
    engine: Choice,
) -> Forecast:
    """Forecast campaigns from a cut on, with the behaviours learned before it."""
    with TemporaryDirectory() as folder:
        file = _write([*found.values()], learned, cut, scenario, Path(folder), until)
        draws = read_variants(file.with_name(DRAWS))
        if until is not None:  # of many cuts, one run of a draw is enough
            draws = draws[:runs]
        return forecast(
            load(file), runs, draws=draws, jobs=jobs, progress=progress or False, engine=engine
        )


class PastForecast(NamedTuple):
    """Forecast of a campaign from `cut` to a later instant of its log, and what happened."""

    cut: int
    name: str
    calls: Span
    calls_made: int
    reach: Span
    reached: int

    @property
    def comparisons(self) -> tuple[Comparison, Comparison]:
        """Comparison of calls made and reach with the truth."""
        made, reach = self.calls.score(self.calls_made), self.reach.score(self.reached)
        return (
            Comparison("calls made", self.calls, self.calls_made, made),
            Comparison("people reached", self.reach, self.reached, reach),
        )


def forecast_progress(
    log: Log,
    cut: int,
    until: int,
    by: By | None = None,
    scenario: Scenario | None = None,
    *,
    without: Sequence[int] = (),
    runs: int = 40,
    jobs: int | None = None,
    progress: Progress | None = None,
    engine: Choice = "auto",
) -> tuple[list[PastForecast], list[str]]:
    """Forecast the calls made and the people reached from `cut` to `until` (ms).

    Returns the reasons why campaigns have no forecast as well. The campaigns need not be finished.
    The other arguments are those of `forecast_held_out`.
    """
    ahead = _ahead(log, cut, by, scenario, without)
    if isinstance(ahead, str):
        return [], [ahead]
    found, reasons, _, learned = ahead
    if not found or reasons:  # who shares lines with a missing campaign would be too quick
        return [], reasons
    made = _forecast(found, learned, cut, scenario, until, runs, jobs, progress, engine)
    spans = made.campaign_spans("attempts", "people_reached")
    forecasts = []
    for code, one in found.items():
        calls = log.calls[log.calls["campaign"] == code]
        ended = milliseconds(calls["ended_at"])
        counted = calls["status"].isin(_COUNTED) & (ended != NO_INSTANT) & (ended <= until)
        reached = calls.loc[counted & calls["status"].isin(_REACHED), "recipient"].nunique()
        attempts, reach = spans[one.organization, one.name]
        made_since = int((counted & (ended > cut)).sum())
        forecasts.append(PastForecast(cut, one.name, attempts, made_since, reach, int(reached)))
    return forecasts, []


def _ahead(
    log: Log,
    cut: int,
    by: By | None,
    scenario: Scenario | None,
    without: Sequence[int],
) -> tuple[dict[int, _Campaign], list[str], dict[int, int], Calibration] | str:
    """Return the campaigns after a cut, why others are missing, and the behaviour before it.

    The instants are those at which missing campaigns begin. A text is the reason for none at all.
    """
    calls = dialled_calls(log)
    before = calls["dialled_at"] <= cut
    if by == "segment":
        return "a behaviour is an agent's, so none of a segment can be given to a campaign"
    try:
        earlier = calls[before]
        known = dates_of(earlier["dialled_at"].to_numpy())
        learned = calibrate(
            replace(log, calls=log.calls.loc[earlier.index]),
            by,
            without=[date for date in without if (known == date).any()],
        )
    except DialsimError as error:
        return str(error)
    found: dict[int, _Campaign] = {}
    reasons: list[str] = []
    begins: dict[int, int] = {}
    for code in np.unique(calls.loc[~before, "campaign"]).tolist():
        behaviour = behaviour_of(log.campaigns[code], by)
        if behaviour in learned.behaviours:
            made = _campaign(log, code, cut, scenario, behaviour, learned.without)
        else:
            made = "there are too few calls before to learn from"
        if isinstance(made, str):
            later = calls.loc[~before & (calls["campaign"] == code), "dialled_at"]
            begins[code] = int(later.min())
            reasons.append(f"{_name(log, code)}: {made}")
        else:
            found[code] = made
    return found, reasons, begins, learned


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
    behaviour: str,
    without: Sequence[int],
) -> _Campaign | str:
    """Return a campaign from the cut on, or the reason why it can't be forecast."""
    calls = log.calls[log.calls["campaign"] == code]
    masked = int(calls["recipient"].isna().sum())
    if masked > MOST_UNKNOWN * len(calls):
        return f"of {len(calls):,} calls {masked:,} are of people who are masked"
    if scenario is None:
        settings = _shown_settings(log, code)
    else:
        settings = _written_settings(log, code, cut, scenario)
    if isinstance(settings, str):
        return settings
    people, most = _people(calls, cut, without), settings.max_attempts
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
            return f"{why_not}, and people who were never called are not in it"
    name = _name(log, code)
    agent = {"name": f"Agent of {name}", "behaviour": behaviour}
    ends = milliseconds(calls.loc[calls["status"].isin(_COUNTED), "ended_at"].dropna())
    return _Campaign(
        name=name,
        organization=settings.organization,
        agent={**settings.agent, **agent},
        block={**settings.block, "name": name, "agent": agent["name"]},
        lines=settings.lines,
        people=people,
        unseen=0 if completed else unseen,
        finish=int(ends.max(initial=cut)),
        why_not=why_not,
    )


def _shown_settings(log: Log, code: int) -> _Settings | str:
    """Return the settings that the bodies of a campaign show, or what is missing."""
    identifier = log.campaigns[code].id
    shown = identifier and LoggedCampaign.of(log, identifier.lower(), frozenset())
    if not shown or shown.schedule is None or shown.lines is None:
        return "the log doesn't show its schedule and its lines: a scenario tells them"
    body = shown.schedule.model_dump(mode="json", by_alias=True, exclude_none=True)
    block = {"schedule": {key: body[key] for key in CARRIED_OVER if key in body}}
    return _Settings(_owner(log, code), {}, block, shown.lines, shown.schedule.max_attempts, 0)


def _written_settings(log: Log, code: int, cut: int, scenario: Scenario) -> _Settings | str:
    """Return the settings that a scenario has for a campaign of the log, or what is missing."""
    expected = Expected(scenario, log.campaigns).blocks[code]
    if expected is None:
        return "the scenario has no campaign of this id or name"
    if expected.schedule is None:
        return "in the scenario it has no schedule"
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

    `reached` and `attempts` are those at the end of the log. `HISTORY_COLUMNS` have, as texts, the
    history of those called before the cut. A call in progress at the cut is left out: the forecast
    makes it anew.
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


def _write(
    campaigns: Sequence[_Campaign],
    learned: Calibration,
    cut: int,
    scenario: Scenario | None,
    folder: Path,
    until: int | None = None,
) -> Path:
    """Write the scenario from the cut on, its lists of people and the draws; return its path."""
    document: dict[str, Any] = {"version": 1, "name": "Held out"}
    owners: dict[str, dict[str, Any]] = {}
    if scenario is not None:
        document = dict(document_of(scenario))
        owners = {one["name"]: _from(cut, one, scenario) for one in document["organizations"]}
    behaviours = yaml.safe_load(learned.to_yaml())["behaviours"]
    document["behaviours"] = {**document.get("behaviours", {}), **behaviours}
    document["clock"] = {**document.get("clock", {}), "start": format_instant(cut)}
    if until is not None:
        document["clock"]["end"] = format_instant(until)
    document["engine"] = {**document.get("engine", {}), **_order(campaigns)}
    numbers = count(1)
    listed: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(campaigns, 1):
        owner = listed.setdefault(
            one.organization,
            {"name": one.organization, "agents": [], **owners.get(one.organization, {}),
             "campaigns": []},
        )  # fmt: skip
        if one.lines is not None:
            owner["maxConcurrentCalls"] = one.lines
            shown = one.block["schedule"].get("callerIds", [])
            owner["callerIds"] = [*dict.fromkeys([*owner.get("callerIds", []), *shown])]
        file = folder / f"people-{number}.csv"
        _write_people(file, one, numbers)
        owner["agents"].append(one.agent)
        owner["campaigns"].append({**one.block, "recipients": {"file": file.name}})
    for owner in listed.values():
        names = {one["name"] for one in owner["campaigns"]}
        actions = owner.pop("timeline", [])
        owner["timeline"] = [one for one in actions if one.get("campaign") in {None, *names}]
    document["organizations"] = [*listed.values()]
    file = folder / SOURCE
    file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    file.with_name(DRAWS).write_text(draws_text(learned), encoding="utf-8")
    return file


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


def _write_people(file: Path, campaign: _Campaign, numbers: Iterator[int]) -> None:
    """Write a list of people with made-up phone numbers, on which no forecast depends."""
    with file.open("w", encoding="utf-8", newline="") as sheet:
        rows = csv.writer(sheet, lineterminator="\n")
        rows.writerow(["tel", "segment", *HISTORY_COLUMNS])
        columns = campaign.people[["segment", *HISTORY_COLUMNS]].astype(object)
        for values in columns.where(columns.notna(), "").itertuples(index=False):
            rows.writerow([f"{next(numbers):020}", *values])
        for _ in range(campaign.unseen):
            rows.writerow([f"{next(numbers):020}"] + [""] * (1 + len(HISTORY_COLUMNS)))
