"""The page of a studio, in a browser or in a notebook cell.

It is a Panel component. Python sets properties with plain values on a `StudioPage` and answers its
messages; `page.js` renders them with native HTML elements, because Panel's sliders have no names
for screen readers. The charts are Bokeh's. Nothing is loaded from other hosts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import panel as pn
import param
from panel.custom import JSComponent
from panel.io.document import hold
from panel.viewable import Child
from typing_extensions import override

from dialsim.errors import DialsimError, ScenarioError
from dialsim.experiments import experiment_text
from dialsim.experiments.fluid import estimate_text
from dialsim.experiments.forecast import FEWEST_RUNS, Forecast
from dialsim.experiments.run_figures import DoneBy, day_label
from dialsim.interface.instants import (
    DAY,
    DAY_NAMES,
    date_text,
    midnight,
    minute_text,
    short_text,
    thai,
)
from dialsim.interface.phrases import counted, joined
from dialsim.report.replications_page import forecast_facts
from dialsim.report.what_if import effect_text
from dialsim.results.figures import VALUE_BY_DAY
from dialsim.scenario.new_scenario import FIRST_QUESTIONS, faults_of, proposed_holidays
from dialsim.scenario.units import format_duration
from dialsim.studio.charts import Chart, CostChart, FanChart, LinesChart, ReachChart
from dialsim.studio.estimate import Estimate, EstimateAnswer, Estimator
from dialsim.studio.files import (
    ARCHIVE,
    MOST_BYTES,
    THE_FILE,
    OpenedList,
    SavedFile,
    begun,
    excel_file,
    is_scenario,
    open_list,
    open_path,
    opened,
    report_file,
    scenario_file,
    sheet_file,
    with_list,
)
from dialsim.studio.levers import Lever, Position, campaigns, complete, levers, pauses
from dialsim.studio.questions import Inquiry, cheapest_reaching, fewest_lines, what_helps
from dialsim.studio.state import StudioState

if TYPE_CHECKING:
    from bokeh.document import Document

    from dialsim.scenario.scenario import Scenario

T = TypeVar("T")

_LOG = logging.getLogger("dialsim.studio")
_ASSETS = files("dialsim.studio")


def asset(name: str) -> str:
    """Return the text of a file in this folder."""
    return (_ASSETS / name).read_text(encoding="utf-8")


class StudioPage(JSComponent):
    """State of the page as plain values, and the charts; user actions are passed to `hear`."""

    head = param.Dict({})
    groups = param.List([])
    changes = param.Dict({})
    answer = param.Dict({})
    pins = param.Dict({})
    questions = param.Dict({})
    notice = param.Dict({})
    charts = param.List([])
    asked = param.List([each[:4] for each in FIRST_QUESTIONS])
    served = param.Boolean(default=True)
    most_bytes = param.Integer(MOST_BYTES)
    fan = Child()
    lines = Child()
    reach = Child()
    cost = Child()

    _esm: ClassVar[str] = asset("page.js")

    def __init__(
        self,
        hear: Callable[[Mapping[str, Any]], None],
        current: Callable[[], Scenario | None],
        **given: Any,
    ) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            stylesheets=[asset("page.css")], sizing_mode="stretch_width", **given
        )
        self.hear = hear
        self._current = current

    @property
    def scenario(self) -> Scenario | None:
        """Scenario with the changes made on the page; None before a list of people is chosen."""
        return self._current()

    @override
    def _handle_msg(self, data: Any) -> None:
        self.hear(data)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send the page a message that is not part of its state."""
        self._send_msg(dict(message))


# -- levers ----------------------------------------------------------------------------------------

_SHARES, _DURATIONS = {"share", "answers"}, {"duration": 60_000, "talk": 1_000}
"""Kinds of levers in percent, and those in ms with the step of their slider."""


def _on_slider(lever: Lever, value: float) -> float:
    """Convert a value to slider units: shares to percent, durations to minutes or seconds."""
    if lever.kind in _SHARES:
        return round(100 * value, 6)
    return value / _DURATIONS.get(lever.kind, 1)


def _given(lever: Lever) -> dict[str, Any]:
    """Return the presentation of a lever without its value: label, unit, range and choices."""
    unit = lever.unit
    if lever.kind in _SHARES:
        unit = f"% {unit.removeprefix('share ')}"
    shown: dict[str, Any] = {
        "key": lever.path,
        "label": lever.label,
        "kind": "week" if lever.kind == "windows" else lever.kind,
        "number": lever.kind in {"number", "lines"} | _SHARES,
        "unit": "" if lever.kind in _DURATIONS else unit,
        "choices": [*lever.choices],
    }
    if lever.value is not None and lever.low is not None and lever.high is not None:
        low, high, step = lever.low, lever.high, lever.step or 1
        shown |= {
            key: _on_slider(lever, value)
            for key, value in (("low", low), ("high", high), ("step", step))
        }
    return shown


def _said(lever: Lever) -> dict[str, Any]:
    """Return the value of a lever as the page shows it."""
    if lever.value is None:
        return {"text": ""}
    if lever.kind == "windows":
        week = {DAY_NAMES[day - 1]: [*map(list, spans)] for day, spans in lever.value.items()}
        return {"text": lever.text, "week": week}
    if lever.kind == "list":
        return {"text": ", ".join(lever.value)}
    if lever.kind == "hours":
        return {"text": lever.text}
    value = _on_slider(lever, lever.value)
    if lever.kind == "instant":
        return {"text": minute_text(lever.value), "value": value}
    return {"text": f"{value:g}" if lever.kind in _SHARES else lever.text, "value": value}


def _written(lever: Lever, text: str, number: float | None) -> str:
    """Convert an input of the page, a text or a slider position, to a value for `--set`."""
    if number is not None:
        if lever.kind in _DURATIONS:
            return format_duration(round(number * _DURATIONS[lever.kind]))
        if lever.kind == "instant":
            return f"{thai(round(number)):%Y-%m-%d %H:%M}"
        text = f"{number:g}" if lever.kind in _SHARES else str(round(number))
    text = text.strip()
    if lever.kind in _SHARES:
        return f"{text.removesuffix('%').strip()}%"
    if lever.kind == "list" and "," in text and not text.startswith("["):
        # As JSON, since a phone number with a leading 0 is no YAML text without quotes.
        return json.dumps([part.strip() for part in text.split(",")])
    return text.replace(",", "") if lever.kind in ("number", "lines") else text


# -- a session -------------------------------------------------------------------------------------

_MOST_NAMES = 50
"""Campaigns offered, at most; others are found by their name."""


class Studio:
    """One planner's session: a state, its estimates, and the page that shows both.

    `page` is what is displayed. All messages of the page go to `hear`, which never raises.
    """

    def __init__(
        self,
        state: StudioState | None,
        *,
        served: bool,
        guest: bool = False,
        listed: OpenedList | None = None,
    ) -> None:
        """`served` is False in a notebook; links of guests of a server can't open files. Without a
        state, the page begins with the list `listed`.
        """
        self._guest = guest
        self._opened = self._state = self._allowed(state) if state is not None else None
        self._estimator = Estimator()
        self._answers: dict[str, EstimateAnswer] = {}
        self._asked: dict[str, Scenario] = {}
        self._inquiry: Inquiry | None = None
        self._is_due = False
        self._lists: dict[str, bytes] = {}
        self._listed: OpenedList | None = None
        self._proposed: list[str] = []
        # A single thread, so that two uploads are processed in their order.
        self._worker = ThreadPoolExecutor(1, "dialsim-studio")
        # A notebook has no document to schedule callbacks on, only its event loop.
        self._loop = asyncio.get_event_loop()
        self._campaign: Position = (0, 0)
        self._bounds: dict[str, dict[str, Any]] = {}
        self._errors: dict[str, str] = {}
        self._any_error = ""
        self._drag: object = None
        self._epoch = 0
        self._dark = False
        self._document: Document | None = pn.state.curdoc if served else None
        self._charts: list[Chart] = [FanChart(), LinesChart(), ReachChart(), CostChart()]
        panes = {
            chart.name: pn.pane.Bokeh(  # type: ignore[no-untyped-call]
                chart.figure, sizing_mode="stretch_width"
            )
            for chart in self._charts
        }
        titles = [{"name": chart.name, "title": chart.title} for chart in self._charts]
        self.page = StudioPage(
            self.hear,
            lambda: None if self._state is None else self._state.scenario,
            served=served, charts=titles, **panes,
        )  # fmt: skip
        self._show_scenario()
        if listed is not None:
            self._begin_with(listed)

    def close(self) -> None:
        """Cancel all estimates and questions of this session."""
        self._estimator.close()
        if self._inquiry is not None:
            self._inquiry.stop()
        self._worker.shutdown(wait=False, cancel_futures=True)

    # -- what the page says -----------------------------------------------------------------------

    def hear(self, message: Mapping[str, Any]) -> None:
        """Handle a message of the page; errors are shown there."""
        # Only methods with this prefix can be called from outside.
        do = getattr(self, f"_on_{str(message['kind']).replace('-', '_')}")
        self._guarded(lambda: do(message))

    def _on_ready(self, message: Mapping[str, Any]) -> None:
        self._on_scheme(message)
        link = str(message["link"])
        if link:
            self._restore(link)

    def _on_scheme(self, message: Mapping[str, Any]) -> None:
        self._dark = bool(message["dark"])
        for chart in self._charts:
            chart.dress(self._dark)

    def _on_noted(self, _: Mapping[str, Any]) -> None:
        self.page.notice = {}

    def _on_set(self, message: Mapping[str, Any]) -> None:
        lever = next((one for one in self._levers() if one.path == message["key"]), None)
        if lever is None or self._state is None:
            return
        try:
            text = _written(lever, str(message.get("text", "")), message.get("number"))
            state, drag = self._state.turn(lever, text), message.get("drag")
            # Dragging a slider sends many values, which are one step of undo.
            if drag is not None and drag == self._drag:
                state = state.in_one_step_with(self._state)
            self._drag = drag
            self._become(state)
            self._errors.pop(lever.path, None)
        except DialsimError as error:
            # The field shows the error, so the path in front of it is redundant
            self._errors[lever.path] = _PATH.sub("", _reason(error))
        self._show_changes()

    def _on_reset(self, message: Mapping[str, Any]) -> None:
        path = str(message["key"])
        self._errors.pop(path, None)
        self._jump(self._now().reset(path))

    def _on_any(self, message: Mapping[str, Any]) -> None:
        try:
            state = self._now().set(str(message["path"]).strip(), str(message["text"]).strip())
            self._any_error = ""
            self._jump(state)
        except DialsimError as error:
            self._any_error = _reason(error)
            self._show_changes()

    def _on_undo(self, _: Mapping[str, Any]) -> None:
        self._jump(self._now().undo())

    def _on_redo(self, _: Mapping[str, Any]) -> None:
        self._jump(self._now().redo())

    def _on_campaign(self, message: Mapping[str, Any]) -> None:
        name = str(message["name"])
        for position, known, _ in campaigns(self._now().scenario):
            if known == name:
                self._campaign = position
                self._show_levers()
                return
        self._notice(f"There is no campaign {name}.", bad=True)
        self._show_levers()

    def _allowed(self, state: StudioState) -> StudioState:
        """Return a state restricted to this planner's permissions: guests can't read local
        files.
        """
        return state.without_files() if self._guest else state

    def _now(self) -> StudioState:
        if self._state is None:
            raise DialsimError(
                "nothing is open yet: begin with a list, or with the questions above"
            )
        return self._state

    # -- the state --------------------------------------------------------------------------------

    def _become(self, state: StudioState) -> None:
        """Switch to another state; if its scenario changed, ask for a new answer."""
        before, self._state = self._state, state
        if self._campaign not in (position for position, _, _ in campaigns(state.scenario)):
            self._campaign = (0, 0)
        # Compared by identity: comparing scenarios with long lists takes time, and every change
        # makes a new one.
        if before is None or state.scenario is not before.scenario:
            self._ask()
            self._ask_pins()

    def _jump(self, state: StudioState) -> None:
        """Switch to a state that the fields of the page don't show yet."""
        # The page discards values of fields from before this number.
        self._epoch += 1
        self._errors.clear()
        self._become(state)
        self._show_levers()
        self._show_pins()

    def _restore(self, link: str) -> None:
        # The link would name a file of this machine
        if self._guest and self._opened is None:
            raise DialsimError(
                "this link needs its scenario: open the file here, and then the link again"
            )
        self._jump(StudioState.from_link(link, self._opened))

    def _levers(self) -> list[Lever]:
        return levers(self._now().scenario, self._campaign)

    def _show_scenario(self) -> None:
        """Show a scenario that was just opened."""
        if self._state is None:
            self.page.head = {"begun": False}
            return
        scenario = self._state.scenario
        self.page.head = {
            "begun": True,
            "title": scenario.name,
            "lead": scenario.description or "",
        }
        self._campaign = (0, 0)
        self._ask()
        self._show_levers()
        self._show_pins()
        self._show_questions()

    def _show_levers(self) -> None:
        """Show the levers; existing ones keep their bounds, so that no slider rescales under the
        hand.
        """
        if self._state is None:
            return
        groups: dict[str, list[dict[str, Any]]] = {}
        for lever in self._levers():
            given = self._bounds.setdefault(lever.path, _given(lever))
            if "low" not in given:
                given = self._bounds[lever.path] = _given(lever)
            groups.setdefault(lever.group, []).append(given)
        shown = [
            {"title": title, "levers": given, "open": index < 3}
            for index, (title, given) in enumerate(groups.items())
        ]
        # Assigning equal groups would redraw every field, and take the focus from the one in use.
        if shown != self.page.groups:
            self.page.groups = shown
        self._show_changes()

    def _show_changes(self) -> None:
        if self._state is None:
            return
        state = self._state
        file = {lever.path: lever for lever in levers(state.base, self._campaign)}
        known = {position: name for position, name, _ in campaigns(state.scenario)}
        names = [*known.values()]
        values = {}
        for lever in self._levers():
            said = _said(lever)
            before = file.get(lever.path)
            said["changed"] = before is None or before.text != lever.text
            said["file"] = "not there" if before is None else (_said(before)["text"] or "not set")
            said["error"] = self._errors.get(lever.path, "")
            values[lever.path] = said
        self.page.changes = {
            "values": values,
            "lines": state.set_lines(),
            "command": state.command(),
            "undo": bool(state.past),
            "redo": bool(state.future),
            "link": state.link() if state.differences or state.pins else "",
            "epoch": self._epoch,
            "anyError": self._any_error,
            "pauseError": self._errors.get("pause", ""),
            "pauses": [
                f"{short_text(since)} to {'the end' if until is None else short_text(until)}"
                for since, until in (
                    pauses(state.scenario, self._campaign) if self._campaign in known else ()
                )
            ],
            "differences": [*state.differences],
            "campaigns": names[:_MOST_NAMES],
            "campaignCount": len(names),
            "campaign": known.get(self._campaign, ""),
        }

    # -- the answer -------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask for the answer to the current scenario, replacing the previous question."""
        scenario = self._now().scenario
        is_new = self._asked.get("shown") is not scenario
        self._ask_at("shown", scenario)
        # After the question, so that workers simulate meanwhile.
        first = estimate_text(scenario) if is_new else None
        waiting = {"how": "Working it out; at the very first time that takes a minute …"}
        # The old answer stays visible until a new one replaces it.
        answer = {**(self.page.answer or waiting), "busy": True}
        self.page.answer = answer | ({"how": first} if first else {})

    def _ask_at(self, role: str, scenario: Scenario) -> None:
        if self._asked.get(role) is not scenario:
            self._asked[role] = scenario
            drawn = self._now().drawn(scenario)
            self._answers[role] = self._estimator.ask(
                scenario, self._estimated, role=role, draws=drawn
            )

    def _ask_pins(self) -> None:
        """Estimate exactly the variants that are compared."""
        compared = {f"pin {pin.name}": pin.scenario for pin in self._now().pins}
        if self._now().differences:
            compared[THE_FILE] = self._now().base
        for role in [*self._asked]:
            if role != "shown" and role not in compared:
                self._estimator.cancel(role)
                del self._asked[role], self._answers[role]
        for role, scenario in compared.items():
            self._ask_at(role, scenario)

    def _estimated(self, answer: EstimateAnswer) -> None:
        """Schedule an update of the page. Runs in the thread that made the estimate.

        First and last estimates are shown at once; those between are throttled to what eyes and
        browsers can follow.
        """
        if not self._is_due:
            self._is_due = True
            latest = answer.latest
            is_urgent = latest is None or latest.is_final or latest.runs <= _FIRST_RUNS
            self._soon(self._show_answers, 0 if is_urgent else _BETWEEN_MS)

    def _show_answers(self) -> None:
        self._is_due = False
        if self._state is None or "shown" not in self._answers:
            return
        answer = self._answers["shown"]
        estimate = answer.latest
        # A single message for all changes
        with hold(self._document):
            if answer.failure is not None:
                says = {"sentence": "There is no answer.", "how": _reason(answer.failure)}
                self.page.answer = {**says, "busy": False, "facts": [], "captions": {}}
            elif estimate is not None:
                pins = self._compared()
                captions = {chart.name: chart.show(estimate, pins) for chart in self._charts}
                self.page.answer = _answer(estimate, self._state) | {"captions": captions}
            self._show_pins()

    def _compared(self) -> list[tuple[str, Estimate]]:
        """Return the estimates so far of the file, if anything was changed, and of the pins."""
        return [
            (role.removeprefix("pin "), answer.latest)
            for role, answer in self._answers.items()
            if role != "shown" and answer.latest is not None
        ]

    # -- pins -------------------------------------------------------------------------------------

    def _on_pin(self, _: Mapping[str, Any]) -> None:
        self._become(self._now().pin())
        self._show_changes()
        self._show_pins()

    def _on_unpin(self, message: Mapping[str, Any]) -> None:
        self._become(self._now().unpin(str(message["pin"])))
        self._show_changes()
        self._show_answers()

    def _on_goto(self, message: Mapping[str, Any]) -> None:
        name = str(message["pin"])
        self._jump(self._now().clear() if name == THE_FILE else self._now().restore(name))

    def _show_pins(self) -> None:
        if self._state is None:
            return
        self._ask_pins()
        answer = self._answers.get("shown")
        shown = None if answer is None else answer.latest
        money = self._state.scenario.costs
        currency = None if money is None else money.currency
        days = [] if shown is None else shown.telling_days
        head = ["", "done, half of the runs", *(f"done {day_label(day.column)}" for day in days),
                "people reached", "reached", *([f"cost, {currency}"] if currency else []),
                *_worths(shown).values()]  # fmt: skip
        rows: list[dict[str, Any]] = []
        compared = self._compared()
        if shown is not None and compared:
            rows.append({"name": "as it is now", "cells": _cells(shown, None, currency, days)})
            rows += [
                {"name": name, "key": name, "cells": _cells(one, shown, currency, days),
                 "fixed": name == THE_FILE}
                for name, one in compared
            ]  # fmt: skip
        note = (
            "In small letters: as it is now minus that variant, over pairs of runs with the same "
            "chance."
        )
        self.page.pins = {
            "head": head,
            "rows": rows,
            "note": note if rows else "Pin a variant to compare what you change next with it.",
        }

    def _on_add_campaign(self, _: Mapping[str, Any]) -> None:
        state, names = self._now(), {name for _, name, _ in campaigns(self._now().scenario)}
        name = next(n for k in range(2, len(names) + 3) if (n := f"Campaign {k}") not in names)
        self._jump(state.add_campaign(name, 1000, self._campaign))

    def _on_pause(self, message: Mapping[str, Any]) -> None:
        try:
            since, until = str(message["since"]).strip(), str(message["until"]).strip()
            self._any_error = ""
            self._jump(self._now().pause(self._campaign, since, until))
        except DialsimError as error:
            self._errors["pause"] = _reason(error)
            self._show_changes()

    def _on_without(self, message: Mapping[str, Any]) -> None:
        self._jump(self._now().without(str(message["line"])))

    # -- questions --------------------------------------------------------------------------------

    def _show_questions(self, **more: Any) -> None:
        state = self._now()
        starts = [
            campaign.schedule.start_date_time
            for organization in state.scenario.organizations
            for campaign in organization.campaigns
            if campaign.schedule is not None
        ]
        begin = max(min(starts, default=0), state.scenario.clock.start)
        friday = begin + (4 - thai(begin).weekday()) % 7 * DAY
        deadline = f"{thai(friday):%Y-%m-%d} 18:00"
        if state.deadline is not None:
            deadline = f"{thai(state.deadline):%Y-%m-%d %H:%M}"
        known = {
            "asks": [
                {"key": "lines", "label": "Fewest lines to be done by", "fields": [
                    {"name": "deadline", "label": "Deadline",
                     "value": deadline, "size": 16}]},
                {"key": "cheapest", "label": "Cheapest that reaches", "fields": [
                    {"name": "share", "label": "Share of people, %", "value": "60", "size": 4}]},
                {"key": "help", "label": "What would help most"},
            ],
        }  # fmt: skip
        before = self.page.questions
        asks = before.get("asks") or known["asks"]
        self.page.questions = {"asks": asks, "found": before.get("found"), **more}

    def _on_ask(self, message: Mapping[str, Any]) -> None:
        if self._inquiry is not None and not self._inquiry.is_over:
            return
        state, given = self._now(), message["given"]
        try:
            match message["question"]:
                case "lines":
                    question = fewest_lines(state, str(given["deadline"]), self._campaign[0])
                case "cheapest":
                    share = _share(str(given["share"]))
                    question = cheapest_reaching(state, share, self._campaign)
                case _:
                    question = what_helps(state, self._campaign[0])
        except DialsimError as error:
            self._show_questions(error=_reason(error), found=None)
            return
        self._show_questions(running=True, said=f"{question.text} …", found=None)
        self._inquiry = Inquiry(question, lambda inquiry: self._soon(lambda: self._heard(inquiry)))

    def _heard(self, inquiry: Inquiry) -> None:
        """Show the progress of a question, or its answer."""
        # News of a question that another one has replaced.
        if inquiry is not self._inquiry:
            return
        done, total = inquiry.progress
        if not inquiry.is_over:
            far = f"{done:,} of about {total:,} runs" if total else ""
            news = ". ".join(part for part in (inquiry.known, far) if part)
            said = f"{inquiry.question.text} … {news}".rstrip()
            self._show_questions(running=True, done=done, total=total, said=said)
        elif inquiry.reply is None:
            failed = (
                "" if inquiry.is_stopped else _reason(inquiry.failure or DialsimError("no answer"))
            )
            self._show_questions(said="Stopped." if inquiry.is_stopped else "", error=failed)
        else:
            self._show_questions(said=f"{inquiry.question.text}: done.", found=_found(inquiry))

    def _on_stop(self, _: Mapping[str, Any]) -> None:
        if self._inquiry is not None:
            self._inquiry.stop()

    def _on_apply(self, _: Mapping[str, Any]) -> None:
        if self._inquiry is not None and self._inquiry.reply is not None:
            self._jump(self._now().with_lines(*self._inquiry.reply.lines))

    # -- everything by path -----------------------------------------------------------------------

    def _on_complete(self, message: Mapping[str, Any]) -> None:
        self.page.send(
            {
                "kind": "paths",
                "paths": complete(self._now().scenario, str(message["text"])),
            }
        )

    # -- files ------------------------------------------------------------------------------------

    def _on_save(self, message: Mapping[str, Any]) -> None:
        """Make a file in the background and have the browser save it."""
        state, what = self._now(), str(message["what"])
        answer = self._answers.get("shown")
        estimate = None if answer is None else answer.latest
        pages = dict.fromkeys(("report", "sheet"), "Making the page …")
        self._notice({"scenario": "Writing the scenario …", **pages}.get(
            what, "Writing the workbook …"))  # fmt: skip
        compared = self._compared()

        def make() -> SavedFile:
            if what == "scenario":
                return scenario_file(state)
            if what == "excel":
                return excel_file(state)
            if estimate is None:
                raise DialsimError("there are no runs yet that a page could show")
            if what == "sheet":
                return sheet_file(estimate, compared, str(message["language"]))
            return report_file(estimate)

        def sent(file: SavedFile) -> None:
            self.page.send({"kind": "file", **file._asdict()})
            self._notice(f"{file.name} is saved.")

        self._beside(make, sent)

    def _on_too_large(self, message: Mapping[str, Any]) -> None:
        size = int(message["size"]) / 1e6
        raise DialsimError(
            f"{message['name']} has {size:,.0f} MB, and a page takes {MOST_BYTES / 1e6:,.0f}: name "
            "it in a scenario file instead"
        )

    def _on_upload(self, message: Mapping[str, Any]) -> None:
        name, content = Path(str(message["name"])).name, bytes(message["data"])
        self._notice(f"Reading {name} …")
        if is_scenario(name) or name.lower().endswith(ARCHIVE):
            kept = dict(self._lists)
            self._beside(lambda: opened(name, content, kept), self._open)
        elif self._state is None:
            self._beside(lambda: open_list(name, content), self._begin_with)
        else:
            state, campaign = self._state, self._campaign
            self._lists[name] = content
            self._beside(lambda: with_list(state, campaign, name, content), self._open)

    def _begin_with(self, listed: OpenedList) -> None:
        self._lists[listed.name] = listed.content
        self._listed = listed
        self.page.notice = {}
        shown = {"listed": listed.summary, "amount": listed.value}
        self.page.head = {**self.page.head, **shown}

    def _on_dates(self, message: Mapping[str, Any]) -> None:
        """Propose the holidays between the answered start and deadline."""
        answers = message["answers"]
        named = proposed_holidays(*(str(answers[key]) for key in ("start", "deadline", "holidays")))
        self._proposed = [str(day) for day in named]
        shown = [[str(day), f"{date_text(midnight(day))}: {name}"] for day, name in named.items()]
        self.page.head = {**self.page.head, "holidays": shown}

    def _on_begin(self, message: Mapping[str, Any]) -> None:
        answers = {str(name): str(text) for name, text in message["answers"].items()}
        ordinary = [day for day in self._proposed if day in message["ordinary"]]
        faults = faults_of(answers, listed=self._listed is not None)
        self.page.head = {**self.page.head, "errors": faults}
        if not faults:
            self._beside(lambda: begun(answers, ordinary, self._listed), self._open)

    def _open(self, state: StudioState) -> None:
        """Switch to another scenario."""
        self.page.notice = {}
        self._opened = self._state = self._allowed(state)
        self._errors.clear()
        self._bounds.clear()
        self._epoch += 1
        self.page.questions = {}
        self._show_scenario()

    # -- the page ---------------------------------------------------------------------------------

    def _notice(self, text: str, *, bad: bool = False) -> None:
        self.page.notice = {"text": text, "kind": "bad" if bad else ""}

    def _soon(self, do: Callable[[], None], wait: int = 0) -> None:
        """Call a function in the thread of the page, after `wait` ms."""
        if self._document is None:
            self._loop.call_soon_threadsafe(lambda: self._loop.call_later(wait / 1000, do))
        else:
            document = self._document

            def later() -> None:
                document.add_timeout_callback(do, wait)

            # The only method of a document that other threads may call
            document.add_next_tick_callback(later if wait else do)

    def _beside(self, make: Callable[[], T], then: Callable[[T], None]) -> None:
        """Call `make` in another thread, so that the page stays responsive, then `then` with its
        result.
        """

        def done(made: Future[T]) -> None:
            if not made.cancelled():
                self._soon(lambda: self._guarded(lambda: then(made.result())))

        self._worker.submit(make).add_done_callback(done)

    def _guarded(self, do: Callable[[], None]) -> None:
        """Call a function; errors are shown on the page."""
        try:
            do()
        except DialsimError as error:
            self._notice(_reason(error), bad=True)
        except OSError as error:
            self._notice(f"The system says: {error}", bad=True)
        except Exception as error:
            _LOG.exception("the studio could not do what was asked")
            self._notice(f"This is a fault of dialsim: {type(error).__name__}: {error}", bad=True)


def in_notebook(scenario: str | PathLike[str] | Scenario | None) -> StudioPage:
    """Implement `dialsim.explore`."""
    pn.extension(inline=True)
    if isinstance(scenario, str | PathLike):
        state: StudioState | None = open_path(scenario)
    else:
        state = None if scenario is None else StudioState.of(scenario)
    return Studio(state, served=False).page


_FIRST_RUNS, _BETWEEN_MS = 5, 700
_PATH = re.compile(r"^[\w-]+(\.[\w-]+)+ (?=must )")


def _reason(error: DialsimError) -> str:
    """Return the messages of an error without the context of the command line."""
    if isinstance(error, ScenarioError):
        return "\n".join(problem.message for problem in error.problems)
    return str(error)


def _rest(estimate: Estimate) -> str:
    """Return reach, cost and bottleneck in a sentence."""
    figures, costs = estimate.figures, estimate.scenario.costs
    reached, share = figures["people_reached"]["mean"], figures["reach_share"]["mean"]
    if not figures["finish_seconds"]["runs"]:
        return ""
    already, since = "", ""
    if estimate.standing is not None:
        already, since = f", {len(estimate.standing.reached):,} of them already", " from today on"
    parts = [f"It reaches {reached:,.0f} people ({100 * share:.1f} %{already})"]
    if costs is not None:
        parts.append(f"costs {figures['cost']['mean']:,.0f} {costs.currency}{since}")
    if figures.get("value", {}).get("runs"):
        parts.append(f"is worth {figures['value']['mean']:,.0f}{since}")
    held = next(fact.answer for fact in estimate.facts if fact.question == "What holds it back?")
    return f"{joined(parts)}. What holds it back: {held[0].lower()}{held[1:]}."


def _answer(estimate: Estimate, state: StudioState) -> dict[str, Any]:
    """Return what an estimate shows, in words."""
    runs = counted(estimate.runs, "run")
    if not estimate.is_final:
        runs = f"{estimate.runs:,} of {estimate.limit:,} runs so far"
    if estimate.draws:
        runs += f", shared out over {estimate.draws} behaviours that the log allows"
    elif state.draws is not None:
        runs += ", all with the behaviour as it was changed here"
    facts = estimate.facts
    sentence = estimate.sentence
    standing = estimate.standing
    if standing is not None:
        sentence = f"From today, {short_text(standing.at)}: {sentence[0].lower()}{sentence[1:]}"
        forecast = Forecast(estimate.replications)
        if estimate.runs >= FEWEST_RUNS and forecast.figures is not None:
            facts = forecast_facts(forecast, facts)
    return {
        "sentence": f"{sentence}.",
        "rest": _rest(estimate),
        "facts": [[fact.question, fact.answer, fact.detail] for fact in facts],
        "how": ". ".join([runs, " ".join(dict.fromkeys(estimate.notes))]).removesuffix(". "),
        "busy": not estimate.is_final,
    }


def _share(text: str) -> float:
    try:
        return float(text.strip().removesuffix("%")) / 100
    except ValueError:
        raise DialsimError(f'a share is a number such as 60 %, not "{text}"') from None


_FIRST_DAYS = 3
"""Days whose value is shown: whom to call first makes a difference in the first days."""


def _worths(shown: Estimate | None) -> dict[str, str]:
    """Return the figures of value that are shown, with their heads; none without values."""
    # A scenario without values has the figure, with 0 runs.
    if shown is None or not shown.figures.get("value", {}).get("runs"):
        return {}
    days = [day for day in range(1, _FIRST_DAYS) if f"{VALUE_BY_DAY}{day + 1}" in shown.figures]
    last = len(days) + 1
    return {"value": "value", f"{VALUE_BY_DAY}{last}": f"value by day {last}"}


def _cells(
    one: Estimate, now: Estimate | None, currency: str | None, days: Sequence[DoneBy]
) -> list[list[str]]:
    """Return a variant's figures, and the differences of the shown estimate from them."""
    figures = one.figures
    less = {} if now is None else now.minus(one)
    texts = [
        ("finish_seconds", experiment_text.when_text(figures["finish_seconds"]["p50"],
                                                     one.replications)),
        *((day.column, f"{100 * one.done_by(day):.1f} %") for day in days),
        ("people_reached", f"{figures['people_reached']['mean']:,.0f}"),
        ("reach_share", f"{100 * figures['reach_share']['mean']:.1f} %"),
    ]  # fmt: skip
    if currency:
        texts.append(("cost", f"{figures['cost']['mean']:,.0f}"))
    worths = _worths(one if now is None else now)
    # A run that is done on an earlier day has no figure of that day.
    texts += [(name, f"{figures.get(name, figures['value'])['mean']:,.0f}") for name in worths]
    return [[str(text), str(effect_text(name, less[name])) if name in less else ""]
            for name, text in texts]  # fmt: skip


def _found(inquiry: Inquiry) -> dict[str, Any]:
    """Return the answer to a question as the page shows it."""
    reply = inquiry.reply
    assert reply is not None
    return {
        "sentence": reply.headline,
        "said": [*reply.sentences],
        "tables": [
            {
                "head": [table.title, *table.columns],
                "rows": [[*map(str, row)] for row in table.rows],
            }
            for table in reply.tables
        ],
        "apply": {"label": f"Take this over: {'; '.join(reply.lines)}"} if reply.lines else None,
        "command": inquiry.question.command,
    }
