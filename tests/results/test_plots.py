from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text

import dialsim
from dialsim.interface.instants import DAY
from dialsim.results.plots import Plots
from dialsim.results.plots.drawing import (
    MOST_POINTS,
    ThaiTicks,
    dress,
    edges,
    families,
    key,
    steps,
    svg,
    thinned,
)
from dialsim.results.result import Result
from dialsim.results.time_use import StepFunction
from dialsim.testing import Sketch, at
from dialsim.testing.sketch import When

FUNNEL = [{"step": "Greeted", "share": 0.9}, {"step": "Promised", "share": 0.4}]
OUTAGE = {"from": at("Mon 10:00"), "to": at("Mon 10:20")}
WEBHOOK = {
    "url": "https://receiver.example/results",
    "receiver": {"errorRate": 0.05, "outages": [OUTAGE]},
}


def simulated(
    name: str = "มกราคม",
    owner: str = "Acme",
    people: int = 900,
    requested: When | None = 0,
    **january: Any,
) -> Result:
    """Two campaigns whose lines are halved on the way; `january` is of the first one's request."""
    schedule = {"max_attempts": 3, "retry_interval": "3h", **january}
    retry = {"max_attempts": 2, "retry_interval": "10m"}
    end = "Tue 07:00" if requested is None else None
    sketch = (
        Sketch(seed=5, end=end, setup_time=None)
        .also(name="แคมเปญทดสอบ")
        .organization(owner, 12, webhook=WEBHOOK)
        .agent(analysis={"funnel": FUNNEL})
        .campaign(name, recipients={"count": people}, requested=requested, **schedule)
        .campaign(
            "Second", recipients={"count": 300}, requested=requested, start="Mon 11:00", **retry
        )
        .at("Mon 12:00", "setConcurrency", 6)
    )
    return dialsim.run(sketch.scenario())


PICTURES: dict[str, Callable[[Plots, Axes | None], Axes]] = {
    "progress": lambda plot, ax: plot.progress(ax=ax),
    "progress of one": lambda plot, ax: plot.progress("มกราคม", ax=ax),
    "occupancy": lambda plot, ax: plot.occupancy("Acme", ax=ax),
    "outcomes": lambda plot, ax: plot.outcomes(ax=ax),
    "queue": lambda plot, ax: plot.queue(ax=ax),
    "reach": lambda plot, ax: plot.reach(ax=ax),
    "answers": lambda plot, ax: plot.answers(ax=ax),
    "story": lambda plot, ax: plot.story(3, "มกราคม", ax=ax),
    "webhooks": lambda plot, ax: plot.webhooks(ax=ax),
    "funnel": lambda plot, ax: plot.funnel("มกราคม", ax=ax),
}


@pytest.fixture(scope="module")
def result() -> Result:
    return simulated()


@pytest.fixture(scope="module")
def again() -> Result:
    return simulated()


def ms(instants: pd.Series[pd.Timestamp]) -> np.ndarray:
    return instants.dropna().dt.tz_localize(None).to_numpy("datetime64[ms]").astype(np.int64)


def line(ax: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    """A line's instants in ms, and its values."""
    found = next(part for part in ax.lines if str(part.get_label()).startswith(label))
    return (np.asarray(found.get_xdata()) * DAY).round().astype(int), np.asarray(found.get_ydata())


def bars(ax: Axes, label: str) -> list[float]:
    container = next(part for part in ax.containers if part.get_label() == label)
    return [patch.get_height() for patch in container]


@pytest.fixture(scope="module")
def rendered(result: Result) -> Callable[[str], str]:
    """Return the figure as a notebook would display it."""
    return cache(lambda name: PICTURES[name](result.plot, None)._repr_svg_())


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_without_axes_has_a_figure_of_its_own_with_title_and_labels(
    result: Result, rendered: Callable[[str], str], name: str
) -> None:
    ax = PICTURES[name](result.plot, None)
    figure = ax.get_figure(root=True)
    assert type(figure) is Figure
    assert ax.get_title("left")
    assert ax.get_xlabel()
    assert ax.get_ylabel() or ax.get_yticklabels()
    assert rendered(name).startswith("<?xml")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn_on_the_axes_that_it_is_given(result: Result, name: str) -> None:
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert PICTURES[name](result.plot, right) is right
    assert right.has_data()
    assert not left.has_data()


@pytest.mark.parametrize("name", PICTURES)
def test_same_run_same_bytes(rendered: Callable[[str], str], again: Result, name: str) -> None:
    first = rendered(name)
    assert first == svg(PICTURES[name](again.plot, None).get_figure(root=True))
    assert not re.search(r"<dc:date>|<dc:creator>", first)


PAGE = (4.7, 3.05)
"""The inches of a picture on a page."""


def cut_off(figure: Figure) -> list[str]:
    """The texts that reach beyond the figure."""
    figure.draw_without_rendering()
    paper = figure.bbox.padded(0.5)
    boxes = {text: text.get_window_extent() for text in figure.findobj(Text) if text.get_text()}
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high:  # not drawn
                boxes.pop(tick.label1, None)
                boxes.pop(tick.label2, None)
    return [
        text.get_text()
        for text, box in boxes.items()
        if box.width and not (paper.contains(box.x0, box.y0) and paper.contains(box.x1, box.y1))
    ]


LONG = "A campaign of an insurance company with quite a long name to be told"
OWNER = "Siam Insurance Public Company Limited"


@pytest.fixture(scope="module")
def long_names() -> Result:
    return simulated(LONG, OWNER)


@pytest.mark.parametrize("name", PICTURES)
def test_no_title_and_no_legend_is_cut_off_on_a_page(long_names: Result, name: str) -> None:
    figure = Figure(figsize=PAGE, layout="constrained")
    draw = {
        **PICTURES,
        "progress of one": lambda plot, ax: plot.progress(LONG, ax=ax),
        "occupancy": lambda plot, ax: plot.occupancy(OWNER, ax=ax),
        "answers": lambda plot, ax: plot.answers(LONG, ax=ax),
        "story": lambda plot, ax: plot.story(3, LONG, ax=ax),
        "funnel": lambda plot, ax: plot.funnel(LONG, ax=ax),
    }[name]
    draw(long_names.plot, figure.add_subplot())
    assert cut_off(figure) == []


def test_a_title_without_spaces_is_cut_into_lines() -> None:
    figure = Figure(figsize=PAGE, layout="constrained")
    thai = "แคมเปญโทรติดตามลูกค้าที่ยังไม่ชำระค่าเบี้ยประกันภัยรถยนต์ประจำเดือนมกราคมและกุมภาพันธ์"
    ax = dress(figure.add_subplot(), f"Progress: {thai}", "x", "y")
    lines = ax.get_title("left").split("\n")
    assert len(lines) > 1
    assert "".join(lines).replace(" ", "") == f"Progress:{thai}"
    assert cut_off(figure) == []


def test_a_legend_of_several_rows_reads_row_by_row() -> None:
    figure = Figure(figsize=PAGE, layout="constrained")
    ax = figure.add_subplot()
    names = [f"{number} of five labels" for number in range(5)]
    for name in names:
        ax.plot([0, 1], [0, 1], label=name)
    dress(ax, "T", "x", "y")
    assert key(ax) == 2
    figure.draw_without_rendering()
    places = {text.get_text(): text.get_window_extent() for text in ax.get_legend().get_texts()}
    assert sorted(places, key=lambda name: (-places[name].y0, places[name].x0)) == names


def test_thai_names_are_drawn_with_a_font_that_has_their_letters(result: Result) -> None:
    ax = result.plot.story(3, "มกราคม")
    assert re.search("[ก-๙]{3}", ax.get_title("left"))
    # warnings of missing glyphs are errors in this suite
    drawing = svg(ax.get_figure(root=True))
    assert "NotoSansThai" in drawing
    assert "DejaVu" not in drawing


def test_every_bundled_font_comes_with_its_licence() -> None:
    from importlib.resources import files

    folder = files("dialsim.results.plots") / "fonts"
    names = {item.name for item in folder.iterdir()}
    assert names == {"NotoSans-Latin.ttf", "NotoSansThai-Regular.ttf", "OFL.txt"}
    assert "SIL OPEN FONT LICENSE" in (folder / "OFL.txt").read_text()
    assert families()[:2] == ("Noto Sans", "Noto Sans Thai")


def test_progress_counts_the_people_reached_by_each_instant(result: Result) -> None:
    at, count = line(result.plot.progress(), "reached")
    reached = np.sort(ms(result.recipients["reached_at"]))
    assert count[-1] == len(reached) == result.summary.people_reached
    expected = np.searchsorted(reached, at[1:-1], side="right")
    assert (count[1:-1] <= expected).all()  # several at one instant are drawn one by one
    assert (np.searchsorted(reached, at[1:-1], side="left") < count[1:-1]).all()


def test_progress_is_done_with_everybody_at_the_finish(result: Result) -> None:
    at, count = line(result.plot.progress(), "done with")
    assert count[-1] == result.summary.people
    assert at[-2] == at[-1] == round(result.summary.finish.timestamp() * 1000)
    assert (np.diff(count) >= 0).all()


def test_progress_of_an_expired_campaign_ends_with_its_finish() -> None:
    result = simulated(end="Mon 09:30")
    part = result.summary.campaigns[0]
    assert part.people_expired
    _, done = line(result.plot.progress("มกราคม"), "done with")
    _, reached = line(result.plot.progress("มกราคม"), "reached")
    assert (done[-1], reached[-1]) == (part.people, part.people_reached)


def test_slots_in_use_are_means_of_what_the_transitions_say(result: Result) -> None:
    at, value = line(result.plot.occupancy(), "lines in use (mean")
    rows = result.transitions
    gain = (rows["to_status"] == "INITIATED").astype(int) - (
        rows["from_status"] == "INITIATED"
    ).astype(int)
    when, change = ms(rows["at"]), gain.to_numpy()
    for piece in (0, len(at) // 3, len(at) // 2):
        since, until = at[piece], at[piece + 1]
        before = change[when <= since].sum()
        inside = (when > since) & (when < until)
        area = before * (until - since) + (change[inside] * (until - when[inside])).sum()
        assert value[piece] == pytest.approx(area / (until - since))


def test_the_limit_is_drawn_as_it_was_at_each_time(result: Result) -> None:
    at, limit = line(result.plot.occupancy(), "limit")
    lowered = round(pd.Timestamp("2026-01-05T05:00:00Z").timestamp() * 1000)
    assert at[1] == lowered
    assert limit.tolist() == [12, 6, 6]


def test_bars_of_outcomes_add_up_to_the_calls_by_end_and_hour(result: Result) -> None:
    ax = result.plot.outcomes()
    figures = result.summary
    assert sum(bars(ax, "answered")) == figures.calls_completed
    assert sum(bars(ax, "no answer")) == figures.calls_no_answer
    assert sum(bars(ax, "busy")) == figures.calls_busy
    calls = result.calls.dropna(subset="initiated_at")
    answered = calls[calls["status"].isin(["COMPLETED", "ANALYSIS_FAILED"])]
    by_hour = answered.groupby(answered["initiated_at"].dt.floor("h")).size()
    drawn = [count for count in bars(ax, "answered") if count]
    assert ax.get_ylabel() == "calls per hour"
    assert drawn == by_hour.tolist()


def test_a_long_run_shows_its_calls_by_thai_day() -> None:
    result = simulated(people=40, retry_interval="5d")
    ax = result.plot.outcomes()
    calls = result.calls.dropna(subset="initiated_at")
    day = calls["initiated_at"].dt.tz_convert("Asia/Bangkok").dt.date
    answered = calls["status"].isin(["COMPLETED", "ANALYSIS_FAILED"])
    assert ax.get_ylabel() == "calls per day"
    assert [count for count in bars(ax, "answered") if count] == (
        answered.groupby(day).sum().loc[lambda count: count > 0].tolist()
    )


def test_queue_waits_are_those_of_the_tables(result: Result) -> None:
    ax = result.plot.queue()
    (right,) = (other for other in ax.get_figure(root=True).axes if other is not ax)
    x, p95 = (np.asarray(part) for part in right.lines[1].get_data())
    seconds = 60 if "(min)" in right.get_ylabel() else 1
    rows = result.transitions.sort_values(["campaign", "recipient", "call"], kind="stable")
    left = rows[rows["cause"].isin(["dialled", "queue_timeout"])]
    wait = (left["at"] - rows["at"].shift().loc[left.index]).dt.total_seconds()
    middles = np.sort(x[~np.isnan(x)])
    half = np.diff(middles).min() / 2
    for middle, drawn in zip(x[:3], p95[:3], strict=True):
        at = ms(left["at"]) / DAY
        inside = (at >= middle - half - 1e-9) & (at < middle + half - 1e-9)
        assert drawn * seconds == pytest.approx(wait[inside].quantile(0.95), abs=1e-6)


def test_reach_grows_by_attempt_as_the_summary_says(result: Result) -> None:
    ax = result.plot.reach()
    before, more = (np.array(bars(ax, name)) for name in ("reached before", MORE))
    assert (before + more).tolist() == pytest.approx(result.summary.reach_by_attempt)


MORE = "reached by this attempt"


def heat(ax: Axes) -> np.ndarray:
    """The shares that a heat map shows, 7 days by some hours; NaN where there are none."""
    mesh = next(part for part in ax.collections if isinstance(part, QuadMesh))
    return np.ma.filled(mesh.get_array().reshape(7, -1), np.nan)


@pytest.mark.parametrize("attempt", [1, 2])
def test_answers_are_shares_of_one_attempt_by_thai_weekday_and_hour(
    result: Result, attempt: int
) -> None:
    ax = result.plot.answers(attempt=attempt)
    which = {1: "First attempts", 2: "Attempts no. 2"}[attempt]
    assert ax.get_title("left") == f"{which} answered, by weekday and hour"
    drawn = heat(ax)
    calls = result.calls.dropna(subset="initiated_at")
    calls = calls[calls["attempt"] == attempt]
    thai = calls["initiated_at"].dt.tz_convert("Asia/Bangkok")
    answered = calls["call_started_at"].notna().groupby([thai.dt.day_of_week, thai.dt.hour]).mean()
    first = thai.dt.hour.min()
    assert np.count_nonzero(~np.isnan(drawn)) == len(answered)
    for (day, hour), share in answered.items():
        assert drawn[day, hour - first] == pytest.approx(share)


TWO_CLIENTS = (
    Sketch(seed=5, setup_time=None)
    .behaviour("rarely", outcomes={"answered": 0.2, "noAnswer": 0.8})
    .behaviour("always", outcomes={"answered": 1})
    .organization("Acme", 50)
    .agent("Reminder", behaviour="rarely", analysis={"funnel": FUNNEL})
    .agent("Plain", behaviour="rarely")
    .campaign(
        "January",
        recipients={"count": 300},
        agent="Reminder",
        max_attempts=2,
        retry_interval="1h",
    )
    .campaign("Plain talk", recipients={"count": 200}, agent="Plain")
    .organization("Bolt", 50)
    .agent("Reminder", behaviour="always", analysis={"funnel": [{"step": "Heard", "share": 0.5}]})
    .campaign("Noon", recipients={"count": 100}, agent="Reminder", start="Mon 12:00")
)


@pytest.fixture(scope="module")
def clients() -> Result:
    return dialsim.run(TWO_CLIENTS.scenario())


def test_a_map_of_answers_mixes_neither_organizations_nor_attempts(clients: Result) -> None:
    with pytest.raises(dialsim.DialsimError, match="say which organization: Acme, Bolt"):
        clients.plot.answers()
    noon = clients.plot.answers(organization="Bolt")
    assert noon.get_title("left") == "First attempts answered, by weekday and hour: Bolt"
    assert np.nanmax(heat(noon)) == 1
    assert np.nanmax(heat(clients.plot.answers(organization="Acme"))) < 0.4
    assert np.nanmax(heat(clients.plot.answers("Noon"))) == 1
    nobody = clients.plot.answers(organization="Bolt", attempt=2)
    assert [text.get_text() for text in nobody.texts] == ["Nobody was dialled for that attempt."]


def test_a_funnel_counts_the_people_of_campaigns_whose_agent_has_one(clients: Result) -> None:
    acme, bolt = clients.summary.organizations
    january, _ = acme.campaigns
    steps = [count.reached for count in january.analyses.funnel]
    heard = [count.reached for count in bolt.analyses.funnel]
    own = [300, january.people_reached, *steps]
    widths = [patch.get_width() for patch in clients.plot.funnel().patches]
    assert widths == [*own, 100, bolt.people_reached, *heard]
    said = [text.get_text() for text in clients.plot.funnel().texts]
    assert said[:2] == ["Acme, Reminder", "300 (100 %)"]
    assert [patch.get_width() for patch in clients.plot.funnel("January").patches] == own
    assert not clients.plot.funnel("Plain talk").patches


def test_a_story_shows_the_phases_of_each_call(result: Result) -> None:
    person = result.calls.loc[lambda calls: calls["call"] == 3, "recipient"].iloc[0]
    rows = result.transitions.loc[
        lambda rows: (rows["recipient"] == person) & (rows["campaign"] == "มกราคม")
    ]
    ax = result.plot.story(int(person), "มกราคม")
    lengths = {
        (round(patch.get_y() + 0.25), round(patch.get_x(), 3)): patch.get_width()
        for patch in ax.patches
    }
    for place, (_, call) in enumerate(rows.groupby("call")):
        dialled = call.loc[call["phase"] == "dialling", "at"].iloc[-1]
        for (_, now), (_, then) in pairwise(call.iterrows()):
            if now["at"] >= dialled and then["at"] > now["at"]:
                since = round((now["at"] - dialled).total_seconds(), 3)
                length = (then["at"] - now["at"]).total_seconds()
                assert lengths[place, since] == pytest.approx(length)
    assert len(ax.get_yticks()) == 3


def test_webhook_bars_add_up_to_the_summary(result: Result) -> None:
    ax = result.plot.webhooks()
    figures = result.summary.webhooks
    assert figures.lost
    assert sum(bars(ax, "at first try")) == figures.at_first_try
    assert sum(bars(ax, "after retries")) == figures.after_retries
    assert sum(bars(ax, "lost")) == figures.lost


def test_the_funnel_goes_from_people_to_its_last_step(result: Result) -> None:
    ax = result.plot.funnel()
    part = result.summary
    widths = [patch.get_width() for patch in ax.patches]
    steps = [count.reached for count in part.analyses.funnel]
    assert len(steps) == 2
    assert widths == [part.people, part.people_reached, *steps]


def test_pictures_of_a_run_in_which_nothing_was_scheduled_say_so() -> None:
    result = simulated(requested=None)
    for name, draw in PICTURES.items():
        assert "<svg" in draw(result.plot, None)._repr_svg_(), name
    assert any("Nobody" in text.get_text() for text in result.plot.answers().texts)
    assert [patch.get_width() for patch in result.plot.funnel().patches] == [1200, 0, 0, 0]


def test_a_name_that_is_not_there_is_an_error_that_names_those_that_are(result: Result) -> None:
    with pytest.raises(dialsim.DialsimError, match="Acme/Second"):
        result.plot.progress("February")
    with pytest.raises(dialsim.DialsimError, match="Acme"):
        result.plot.occupancy("Beta")
    with pytest.raises(dialsim.DialsimError, match="no recipient 900"):
        result.plot.story(900, "มกราคม")


def test_ticks_name_the_day_once_and_thai_time_is_seven_hours_ahead() -> None:
    noon = pd.Timestamp("2026-01-05T05:00:00Z").timestamp() * 1000 / DAY
    assert ThaiTicks().format_ticks([noon, noon + 0.25, noon + 0.5]) == [
        "12:00\nMon 5 Jan",
        "18:00",
        "00:00\nTue 6 Jan",
    ]
    assert ThaiTicks().format_ticks([noon + 0.5, noon + 1.5]) == ["Tue\n6 Jan", "Wed\n7 Jan"]
    assert ThaiTicks()(noon) == "Mon 5 Jan 2026 12:00"


def test_few_changes_are_drawn_as_they_are_and_many_as_means() -> None:
    few = StepFunction(np.array([0, 400, 900]), np.array([3, 1, 0]))
    at, value, width = steps(few, 100, 1000)
    assert (at.tolist(), value.tolist(), width) == ([100, 400, 900, 1000], [3, 1, 0, 0], 0)
    many = StepFunction(np.arange(0, 10_000_000, 1000), np.arange(10_000) % 2)
    at, value, width = steps(many, 0, 10_000_000)
    assert width == 60_000
    assert len(at) < MOST_POINTS
    assert value[:100] == pytest.approx(0.5)
    assert len(thinned(10**6)) == MOST_POINTS
    assert thinned(10**6)[-1] == 10**6 - 1


def test_edges_fall_on_whole_hours_where_pieces_are_hours_long() -> None:
    cut = edges(1_000_000, 500_000_000, 300)
    assert cut[0] <= 1_000_000
    assert cut[-1] >= 500_000_000
    assert set(np.diff(cut).tolist()) == {1_800_000}
