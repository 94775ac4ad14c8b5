from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import inf

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import dialsim
from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import undominated
from dialsim.experiments.known_bounds import KnownBounds, known_bounds_of
from dialsim.experiments.plan import Plan, plan
from dialsim.experiments.plots import cut_names, names_of
from dialsim.experiments.replications import Replications, replicate
from dialsim.experiments.run_figures import MARKS, fan
from dialsim.experiments.sweep import Sweep, sweep
from dialsim.experiments.variants import SettingChange, Variant
from dialsim.interface.instants import DAY, HOUR
from dialsim.results.plots.drawing import svg
from dialsim.testing import Sketch
from dialsim.testing.sketch import When
from results.test_plots import cut_off

LINES = "organizations.Acme.maxConcurrentCalls"
MONDAY_NOON = 1_767_589_200_000  # 2026-01-05 12:00 Thai time
TRIES = "organizations.Acme.campaigns.January.schedule.maxAttempts"


def january(end: When | None = None) -> Sketch:
    return (
        Sketch(4, end=end, setup_time=None)
        .also(name="January", costs={"currency": "THB", "perDial": 0.1, "perMinute": 1.2})
        .campaign("January", recipients={"count": 60}, max_attempts=2, retry_interval="1h")
    )


SCENARIO = january().scenario()
NO_COSTS = january().also(costs=None).scenario()
CUT = january(end="Mon 09:05").scenario()


@pytest.fixture(scope="module")
def runs() -> Replications:
    return replicate(SCENARIO, 12, jobs=1)


@pytest.fixture(scope="module")
def grid() -> Sweep:
    return sweep(SCENARIO, {LINES: [3, 6, 9], TRIES: [1, 2]}, 4, jobs=1)


@pytest.fixture(scope="module")
def answer() -> Plan:
    goal = "p95(finish) <= 2026-01-05T03:12:00Z and mean(people_reached) >= 10"
    return plan(SCENARIO, LINES, (1, 12), goal, replications=6, max_replications=6, jobs=1)


def line(ax: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    found = next(part for part in ax.lines if str(part.get_label()).startswith(label))
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def test_marks_are_the_instants_at_which_shares_of_all_people_had_been_reached() -> None:
    figures = replicate(SCENARIO, 1, jobs=1).figures[0]
    result = dialsim.run(SCENARIO)
    reached = result.recipients["reached_at"].dropna().sort_values().dt.tz_localize(None)
    instants = reached.to_numpy("datetime64[ms]").astype(np.int64)
    for number, mark in enumerate(figures.reached, 1):
        needed = -(-number * 60 // MARKS)
        assert mark == instants[needed - 1]
    assert -(-(len(figures.reached) + 1) * 60 // MARKS) > len(instants)


def test_the_fan_s_bands_are_order_statistics_of_the_runs(runs: Replications) -> None:
    median, late = fan(runs.figures, 0.5), fan(runs.figures, 0.95)
    at_ten = sorted(run.reached[9] for run in runs.figures)
    assert median[10] == at_ten[5]
    assert late[10] == at_ten[11]
    assert median[0] == runs.figures[0].start
    x, y = line(runs.plot.progress(), "half")
    assert x * DAY == pytest.approx(median[np.isfinite(median)])
    assert y[10] == 10 / MARKS


def test_progress_does_not_rise_while_windows_are_closed() -> None:
    week = Sketch(1, setup_time=None).campaign(
        "January", recipients={"count": 300}, windows="Mon-Fri 09:00-12:00", max_attempts=2
    )
    runs = replicate(week.scenario(), 8, jobs=1)
    median = fan(runs.figures, 0.5)
    ax = runs.plot.progress()
    x, y = line(ax, "half")
    at = np.asarray(x) * DAY
    assert np.interp(median[np.isfinite(median)], at, y) == pytest.approx(
        np.arange(np.isfinite(median).sum()) / MARKS, abs=1e-6
    )
    nights = [(noon, noon + 21 * HOUR) for noon in range(MONDAY_NOON, int(at[-1]) - 21 * HOUR, DAY)]
    assert len(nights) > 1
    patches = [band.get_xy() for band in ax.patches if "of runs" in str(band.get_label())]
    assert len(patches) == 2
    for closing, opening in nights:
        inside = np.interp([closing + 20 * 60_000, opening], at, y)
        assert inside[0] == pytest.approx(inside[1])
        for outline in patches:
            times = outline[:, 0] * DAY
            assert not ((times > closing + 20 * 60_000) & (times < opening - 1)).any()


def test_a_curve_is_left_as_it_is_without_calendars() -> None:
    at, level = np.array([0.0, 9e8]), np.array([0.0, 1.0])
    assert KnownBounds().rising_in_windows(at, level) == (at, level)
    known = known_bounds_of(SCENARIO)
    assert [*known.rising_in_windows(at[:1], level[:1])] == [at[:1], level[:1]]


def test_the_fan_shows_when_each_run_finished(runs: Replications) -> None:
    x, _ = line(runs.plot.progress(), "finishes")
    finishes = runs.runs["finish"].dt.tz_localize(None).to_numpy("datetime64[ms]")
    assert np.round(x * DAY).astype(int).tolist() == finishes.astype(int).tolist()


def test_the_share_of_runs_that_are_done_goes_up_run_by_run(runs: Replications) -> None:
    (curve, mark) = runs.plot.finish().lines
    finishes = np.sort(runs.runs["finish"].dt.tz_localize(None).to_numpy("datetime64[ms]"))
    x, y = (np.asarray(part, float) for part in curve.get_data())
    assert (x[1:-1] * DAY).round().astype(int).tolist() == finishes.astype(int).tolist()
    assert y[1:-1] * 12 == pytest.approx(range(1, 13))
    assert mark.get_xdata()[0] * DAY == pytest.approx(finishes.astype(int)[11])


def test_runs_that_never_finish_are_drawn_without_a_finish() -> None:
    runs = replicate(CUT, 3, jobs=1)
    assert "No run finished." in [text.get_text() for text in runs.plot.finish().texts]
    assert "finishes" not in runs.plot.progress().get_legend_handles_labels()[1]


def test_variants_that_never_finish_are_drawn_without_a_finish() -> None:
    found = sweep(CUT, {LINES: [3, 4]}, 2, jobs=1)
    _, finish = line(found.plot.curve("finish"), "half of the runs")
    assert np.isnan(finish).all()
    ax = found.plot.cost()
    assert line(ax, "none is cheaper and earlier")[0].tolist() == []
    for drawn in (found.plot.curve("finish"), ax):
        assert "<svg" in svg(drawn.get_figure(root=True))


def test_a_curve_has_a_line_of_means_per_value_of_the_other_paths(grid: Sweep) -> None:
    ax = grid.plot.curve("people_reached")
    for tries in (1, 2):
        x, y = line(ax, f"{tries} attempt")
        means = grid.runs[grid.runs[TRIES] == tries].groupby(LINES)["people_reached"].mean()
        assert x.tolist() == [3, 6, 9]
        assert y == pytest.approx(means.to_numpy())
    assert ax.get_xlabel() == "lines"


def middles(found: Sweep, frame: pd.DataFrame, by: str) -> np.ndarray:
    """Return the median finishes (ms) of runs: run 2 of 4."""
    finish = frame.groupby(by, sort=False)["finish"].apply(lambda part: sorted(part)[1])
    return finish.dt.tz_localize(None).to_numpy("datetime64[ms]").astype(float)


def test_a_curve_of_finish_shows_in_thai_time_when_half_of_the_runs_are_done(grid: Sweep) -> None:
    ax = grid.plot.curve("January.finish", TRIES)
    _, y = line(ax, "6 lines")
    frame = grid.frame[grid.frame[LINES] == 6]
    assert y * DAY == pytest.approx(middles(grid, frame, TRIES))
    assert ax.get_ylabel() == "finish, Thai time"


def estimated(found: Sweep, figure: str) -> pd.Series:
    """The estimated mean of a figure of the whole run, by variant."""
    table = found.intervals()
    rows = table[(table["scope"] == "run") & (table["figure"] == figure)]
    return rows.set_index("variant")["mean"]


def test_named_what_ifs_stand_below_one_another() -> None:
    variants = [
        Variant("as it is", ()),
        Variant("more lines", (SettingChange(LINES, "8"),)),
        Variant("more tries", (SettingChange(TRIES, "3"),)),
    ]
    found = sweep(SCENARIO, variants, 3, jobs=1)
    ax = found.plot.curve("cost")
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert shown == ["as it is", "more lines", "more tries"]
    means = estimated(found, "cost")
    assert line(ax, "mean")[0] == pytest.approx(means.to_numpy())
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top


@pytest.fixture(scope="module")
def dozen() -> Sweep:
    """Twelve variants with names of all lengths, some of them alike in every figure."""
    variants = [
        Variant("as it is", ()),
        *(Variant(f"{n} lines instead of four, from nine on", (SettingChange(LINES, str(n)),))
          for n in range(5, 12)),
        Variant("one attempt", (SettingChange(TRIES, "1"),)),
        Variant("สองครั้ง ตามเดิม", (SettingChange(TRIES, "2"),)),
        Variant("three attempts", (SettingChange(TRIES, "3"),)),
        Variant("four attempts and one line more than there are now", (SettingChange(TRIES, "4"),
                                                                       SettingChange(LINES, "5"))),
    ]  # fmt: skip
    return sweep(SCENARIO, variants, 3, jobs=1)


def overlapping(texts: Sequence[Text]) -> list[tuple[str, str]]:
    """Pairs of texts of a picture that cover one another."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if a.overlaps(b)]


@pytest.mark.parametrize("figure_name", ["finish", "people_reached", "cost"])
def test_the_names_of_a_dozen_variants_cover_one_another_nowhere(
    dozen: Sweep, figure_name: str
) -> None:
    figure = Figure(figsize=(4.7, 1.4 + 0.36 * names_of(dozen)), layout="constrained")
    ax = dozen.plot.curve(figure_name, ax=figure.add_subplot())
    assert cut_off(figure) == []
    assert overlapping(ax.get_yticklabels()) == []
    assert overlapping(ax.get_xticklabels()) == []
    names = [text.get_text().replace("\n", " ") for text in ax.get_yticklabels()]
    assert names == [variant.name for variant in dozen.variants]


def test_the_points_of_a_dozen_variants_bear_numbers_that_the_legend_explains(dozen: Sweep) -> None:
    figure = Figure(figsize=(4.7, 1.4 + 0.36 * names_of(dozen)), layout="constrained")
    ax = dozen.plot.cost(ax=figure.add_subplot())
    assert cut_off(figure) == []
    assert overlapping(ax.texts) == []
    numbers = [text.get_text().split(", ") for text in ax.texts]
    assert sorted(int(number) for listed in numbers for number in listed) == [*range(1, 13)]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "9  one attempt" in legend
    title, top = ax.title.get_window_extent(), ax.get_legend().get_window_extent()
    assert not title.overlaps(top)


def test_values_that_are_texts_stand_below_one_another() -> None:
    start = "organizations.Acme.campaigns.January.schedule.startDateTime"
    instants = [f"2026-01-05T{hour:02}:00:00Z" for hour in range(2, 6)]
    found = sweep(SCENARIO, {start: instants, LINES: [4, 8]}, 2, jobs=1)
    figure = Figure(figsize=(4.7, 1.4 + 0.36 * names_of(found)), layout="constrained")
    ax = found.plot.curve("cost", ax=figure.add_subplot())
    assert cut_off(figure) == []
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        instant.replace("Z", ".000Z") for instant in instants
    ]
    assert overlapping(ax.get_yticklabels()) == []
    x, y = line(ax, "8 lines")
    assert y.tolist() == [*range(4)]
    means = estimated(found, "cost")[1::2]
    assert x == pytest.approx(means.to_numpy())


def pictures(runs: Replications, grid: Sweep, answer: Plan) -> tuple[Callable[..., Axes], ...]:
    """Return the method that draws each figure of many runs."""
    return (
        runs.plot.progress,
        runs.plot.finish,
        grid.plot.curve,
        grid.plot.cost,
        answer.plot.estimates,
    )


def test_no_legend_of_many_runs_is_cut_off_on_a_page(
    runs: Replications, grid: Sweep, answer: Plan
) -> None:
    for draw in pictures(runs, grid, answer):
        figure = Figure(figsize=(4.7, 3.05), layout="constrained")
        draw(ax=figure.add_subplot())
        assert cut_off(figure) == []


def test_cost_against_finish_has_a_point_per_variant_and_rings_those_that_none_beats(
    grid: Sweep,
) -> None:
    ax = grid.plot.cost()
    cost = estimated(grid, "cost")
    finish = pd.Series(middles(grid, grid.runs, "variant"), cost.index)
    x, y = line(ax, "1 attempt")
    once = [name for name in cost.index if name.endswith("1 attempt")]
    assert y == pytest.approx(cost[once].to_numpy())
    assert x * DAY == pytest.approx(finish[once].to_numpy())
    ringed = line(ax, "none is cheaper and earlier")[1]
    unbeaten = [
        cost[name]
        for name in cost.index
        if not ((cost < cost[name]) & (finish <= finish[name])).any()
        and not ((cost <= cost[name]) & (finish < finish[name])).any()
    ]
    assert sorted(ringed) == pytest.approx(sorted(unbeaten))
    assert undominated([(1, 9), (2, 5), (3, 5), (2.5, 4), (2, 5), (0, inf)]) == [0, 1, 3]
    assert [text.get_text() for text in ax.texts] == ["3", "3", "6", "6", "9", "9"]


def test_what_is_not_there_can_not_be_drawn(grid: Sweep, answer: Plan) -> None:
    with pytest.raises(ExperimentError, match="there is no figure"):
        grid.plot.curve("happiness")
    with pytest.raises(ExperimentError, match="doesn't vary"):
        grid.plot.curve("finish", "seed")
    with pytest.raises(ExperimentError, match="names no costs"):
        sweep(NO_COSTS, {LINES: [3, 4]}, 2, jobs=1).plot.cost()
    with pytest.raises(ExperimentError, match="2 clauses"):
        answer.plot.estimates(2)


def test_evidence_is_drawn_at_every_value_tried_against_the_bound(answer: Plan) -> None:
    for clause, scale in ((0, DAY), (1, 1)):
        ax = answer.plot.estimates(clause)
        for met, label in ((True, "meets"), (False, "misses")):
            tried = [part for part in answer.tried if part.met is met]
            x, y = line(ax, label)
            assert x.tolist() == [part.value for part in tried]
            assert y * scale == pytest.approx([part.findings[clause].estimate for part in tried])
        bound = answer.estimate.findings[clause].clause.bound.value
        assert line(ax, "the bound")[1] * scale == pytest.approx(bound)


@pytest.mark.parametrize(
    ("path", "between", "label"),
    [
        ("engine.queueTimeout", "1m..30m:10m", "queue timeout (h)"),
        (
            "organizations.Acme.campaigns.January.schedule.startDateTime",
            "2026-01-05T02:00:00Z..2026-01-05T06:00:00Z:2h",
            "start",
        ),
    ],
)
def test_durations_and_instants_have_axes_of_their_own(path: str, between: str, label: str) -> None:
    goal = "prob(finish <= 6h) >= 0.5"
    found = plan(SCENARIO, path, between, goal, replications=2, max_replications=2, jobs=1)
    ax = found.plot.estimates()
    assert ax.get_xlabel() == label
    assert ax.get_ylabel() == "probability"
    assert "<svg" in ax._repr_svg_()


def test_each_is_drawn_on_the_axes_given(runs: Replications, grid: Sweep, answer: Plan) -> None:
    for draw in pictures(runs, grid, answer):
        ax = Figure(layout="constrained").add_subplot()
        assert draw(ax=ax) is ax
        assert ax.get_title("left")
        assert ax.get_xlabel()
        assert ax.get_ylabel()


@pytest.mark.slow
def test_each_has_the_same_bytes_again(runs: Replications, grid: Sweep, answer: Plan) -> None:
    for draw in pictures(runs, grid, answer):
        assert len({svg(draw().get_figure(root=True)) for _ in range(2)}) == 1


def test_names_that_would_be_cut_to_the_same_keep_their_ends() -> None:
    def cut(name: str) -> str:
        return name if len(name) <= 20 else f"{name[:18].rstrip()} …"

    unlike = ["as it is", "one more attempt for everybody"]
    assert cut_names(unlike, cut, 20) == ["as it is", "one more attempt f …"]
    alike = ["retries after half an hour, first", "retries after half an hour, last"]
    assert cut_names(["as it is", *alike], cut, 20) == [
        "as it is",
        "retries … first",
        "retries … last",
    ]
    # without words, letters
    thai = ["งวดมกราคมของลูกค้าประกันภัย1", "งวดมกราคมของลูกค้าประกันภัย2"]
    assert cut_names(thai, cut, 20) == ["งวดมกราค … ะกันภัย1", "งวดมกราค … ะกันภัย2"]
