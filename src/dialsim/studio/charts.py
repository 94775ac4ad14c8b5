"""Charts of a studio: Bokeh figures updated with each estimate, with values on hover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    DatetimeTicker,
    DatetimeTickFormatter,
    NoOverlap,
    NumeralTickFormatter,
    Range1d,
    SingleIntervalTicker,
)
from bokeh.models.annotations import Span, Whisker
from bokeh.models.tools import HoverTool
from bokeh.plotting import figure

from dialsim.interface.instants import DAY, THAI_OFFSET, at_text, duration_text, short_text
from dialsim.results.figures import REACH, ordinal_of
from dialsim.results.plots.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    GRID,
    ON_DARK_PAPER,
    OPEN,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    TEXT,
    VERMILION,
)
from dialsim.studio.estimate import Fan

if TYPE_CHECKING:
    from bokeh.models.renderers import GlyphRenderer
    from numpy.typing import ArrayLike, NDArray

    from dialsim.studio.estimate import Estimate


_PINS = (ORANGE, GREEN, PURPLE, VERMILION, SKY, GREY)
_MARKERS = ("square", "triangle", "diamond", "inverted_triangle", "hex", "star")
_FONT = "Noto Sans, Noto Sans Thai, system-ui, sans-serif"


class Chart:
    """A figure in light colours, which `dress` switches to dark and back."""

    def __init__(self, name: str, title: str, x: str, y: str, *, time: bool = False) -> None:
        self.name = name
        self.title = title
        # Any: Bokeh's types lack most attributes of a figure
        self.figure: Any = figure(

            height=280, sizing_mode="stretch_width", toolbar_location=None, tools="",
            x_axis_type="datetime" if time else "auto", x_axis_label=x, y_axis_label=y,
            x_range=Range1d(start=0, end=DAY if time else 1), y_range=Range1d(start=0, end=1),
        )  # fmt: skip
        self._inks: list[tuple[Any, str, str]] = []
        plot = self.figure
        self._ink(plot, background_fill_color=PAPER, border_fill_color=PAPER)
        plot.outline_line_color = None
        plot.min_border_right = 14
        for axis in plot.axis:
            self._ink(axis, axis_line_color=GREY, major_tick_line_color=GREY,
                      axis_label_text_color=TEXT, major_label_text_color=TEXT)  # fmt: skip
            axis.minor_tick_line_color = None
            axis.axis_label_text_font = axis.major_label_text_font = _FONT
            axis.axis_label_text_font_style = "normal"
            # Fewer labels where the page is narrow
            axis.major_label_policy = NoOverlap(min_distance=8)
        for lines in plot.grid:
            self._ink(lines, grid_line_color=GRID)
        plot.xgrid.grid_line_color = None
        if time:
            plot.xaxis.ticker = DatetimeTicker(desired_num_ticks=5)
            plot.xaxis.formatter = DatetimeTickFormatter(
                hours="%a %H:%M", days="%a %e %b", months="%b %Y", minutes="%H:%M"
            )

    def _ink(self, model: Any, **inks: str) -> None:
        """Set colours of parts of the figure, and register them for dark mode."""
        for part, ink in inks.items():
            setattr(model, part, ink)
            self._inks.append((model, part, ink))

    def _glyph(self, renderer: GlyphRenderer[Any], **inks: str) -> None:
        self._ink(renderer.glyph, **inks)

    def _hours(self) -> None:
        """Add the shades of the calling hours."""
        self._open = ColumnDataSource({"x0": [], "x1": []})
        hours = self.figure.vstrip("x0", "x1", source=self._open, level="underlay", line_alpha=0,
                                   legend_label="calling hours")  # fmt: skip
        self._glyph(hours, fill_color=OPEN)

    def _legend(self) -> None:
        """Place the legend above the plot, where it covers no data."""
        legend = self.figure.legend[0]
        self.figure.add_layout(legend, "above")
        legend.ncols = 2
        legend.label_text_font = _FONT
        legend.label_text_font_size = "11px"
        legend.padding = legend.margin = 2
        legend.spacing = 8
        legend.location = "top_left"
        legend.border_line_color = None
        self._ink(legend, label_text_color=TEXT, background_fill_color=PAPER)

    def _item(self, name: str) -> Any:
        """Return the item of the legend with this label."""
        return next(item for item in self.figure.legend[0].items if item.label["value"] == name)

    def _shade(self, estimate: Estimate) -> None:
        """Shade the calling hours, as plots of runs do."""
        begins, ends = (_moved(column) for column in estimate.lines.open.T)
        self._open.data = {"x0": begins, "x1": ends}

    def _hover(self, renderer: GlyphRenderer[Any], *tooltips: tuple[str, str], mode: Any) -> None:
        # Names are passed as columns, which Bokeh escapes; in a tooltip template they would be HTML
        self.figure.add_tools(
            HoverTool(
                renderers=[renderer], tooltips=[*tooltips], mode=mode, point_policy="follow_mouse"
            )
        )

    def _fit(self, x: NDArray[np.float64], y: NDArray[np.float64], *, from_zero: bool) -> None:
        """Set the ranges of the axes to the finite values, with a margin."""
        for axis, values, low in (
            (self.figure.x_range, x, None), (self.figure.y_range, y, 0 if from_zero else None),
        ):  # fmt: skip
            known = values[np.isfinite(values)]
            if len(known):
                start, end = float(known.min()), float(known.max())
                beyond = 0.04 * (end - start) or max(abs(end) * 1e-6, 1)
                start = start - beyond if low is None else low
                ends = {"start": start, "end": end + beyond}
                # start <= end must hold even between the two messages: with an inverted range the
                # browser computes ticks in an endless loop
                for part in ("end", "start") if start > axis.end else ("start", "end"):
                    setattr(axis, part, ends[part])

    def dress(self, dark: bool) -> None:
        """Switch all colours to dark or light mode."""
        for model, part, ink in self._inks:
            setattr(model, part, ON_DARK_PAPER.get(ink, ink) if dark else ink)

    def show(self, estimate: Estimate, pins: Sequence[tuple[str, Estimate]], /) -> str:
        """Show an estimate beside the pinned ones; returns a description in words."""
        raise NotImplementedError


def _moved(instants: ArrayLike) -> NDArray[np.float64]:
    # Bokeh shows instants in UTC, so they are shifted to Thai time
    moved = np.asarray(instants, np.float64) + THAI_OFFSET
    moved[~np.isfinite(moved)] = np.nan
    return moved


class FanChart(Chart):
    """Share of people reached over time: median and 90 % interval of the runs."""

    def __init__(self) -> None:
        super().__init__("fan", "Progress", "Thai time", "people reached, %", time=True)
        self._bands = [ColumnDataSource({"x": [], "y": []}) for _ in range(2)]
        self._middle = ColumnDataSource({name: [] for name in ("x", "y", "when", "range")})
        self._curve = ColumnDataSource({"x": [], "y": []})
        self._pins = ColumnDataSource({"x": [], "y": []})
        self._past = ColumnDataSource({"x": [], "y": []})
        self._hours()
        self._today = Span(location=0, dimension="height", line_dash="dotted", visible=False)
        plot = self.figure
        for source, alpha, name in zip(
            self._bands, (0.35, 0.55), ("5–95 % of runs", "25–75 %"), strict=True
        ):
            band = plot.patch("x", "y", source=source, fill_alpha=alpha, line_alpha=0,
                              legend_label=name)  # fmt: skip
            self._glyph(band, fill_color=SKY)
        pins = plot.line("x", "y", source=self._pins, line_dash="dashed", line_width=1.5,
                         legend_label="pins")  # fmt: skip
        self._glyph(pins, line_color=ORANGE)
        past = plot.step("x", "y", source=self._past, line_width=2.5, mode="after",
                         legend_label="until today")  # fmt: skip
        self._glyph(past, line_color=TEXT)
        plot.add_layout(self._today)
        self._ink(self._today, line_color=GREY)
        middle = plot.line(
            "x", "y", source=self._curve, line_width=2.5, legend_label="half of the runs"
        )
        self._glyph(middle, line_color=BLUE)
        points = plot.scatter("x", "y", source=self._middle, size=9, fill_alpha=0, line_alpha=0)
        self._hover(points, ("reached", "@y{0.0} %"), ("half of the runs by", "@when"),
                    ("nine of ten", "@range"), mode="vline")  # fmt: skip
        self._legend()

    def show(self, estimate: Estimate, pins: Sequence[tuple[str, Estimate]]) -> str:
        """Show an estimate; see `Chart.show`."""
        fan = _from_today(estimate)
        share = fan.share * 100
        self._show_past(estimate)
        self._shade(estimate)
        for source, (low, high) in zip(self._bands, ((5, 95), (25, 75)), strict=True):
            first, last = fan.at[low], fan.at[high]
            known = np.isfinite(first) & np.isfinite(last)
            x, y = estimate.replications.bounds.band(share[known], first[known], last[known])
            source.data = {"x": _moved(x), "y": y}
        middle = fan.at[50]
        known = np.isfinite(middle)
        self._middle.data = {
            "x": _moved(middle[known]),
            "y": share[known],
            "when": [short_text(round(at)) for at in middle[known]],
            "range": [
                f"{at_text(low)} to {at_text(high)}"
                for low, high in zip(fan.at[5][known], fan.at[95][known], strict=True)
            ],
        }
        self._curve.data = dict(zip("xy", _median(estimate), strict=True))
        curves = [_median(pinned) for _, pinned in pins]
        gap = np.array([np.nan])
        self._pins.data = {
            name: np.concatenate([np.empty(0), *(part for one in curves for part in (one[k], gap))])
            for k, name in enumerate("xy")
        }
        self._item("pins").visible = bool(pins)
        if not known.any():
            return "Progress: nobody is reached."
        certain = known & np.isfinite(fan.at[95])
        most = np.flatnonzero(certain if certain.any() else known)[-1]
        ends = [source.data["x"] for source in (*self._bands, self._middle, self._pins, self._past)]
        self._fit(np.concatenate(ends), share[known], from_zero=True)
        already = f"{share[0]:.0f} % are reached already. " if estimate.standing else ""
        return (
            f"{already}Half of the runs reach {share[most]:.0f} % of the people by "
            f"{at_text(middle[most])}, nine of ten between {at_text(fan.at[5][most])} and "
            f"{at_text(fan.at[95][most])}."
        )

    def _show_past(self, estimate: Estimate) -> None:
        """Show the past until today, if people have histories."""
        standing = estimate.standing
        self._today.visible = self._item("until today").visible = standing is not None
        self._past.data = {"x": [], "y": []}
        if standing is None:
            return
        reached = standing.reached
        shown = np.unique(
            np.linspace(0, len(reached) - 1, min(len(reached), _MOST_STEPS), dtype=int)
        )
        begin = min(estimate.scenario.calling_begins, standing.at)
        x = np.concatenate([[begin], reached[shown], [standing.at]])
        y = np.concatenate([[0], shown + 1, [len(reached)]]) / _people(estimate) * 100
        self._past.data = {"x": _moved(x), "y": y}
        self._today.location = float(_moved([standing.at])[0])


_MOST_STEPS = 300
"""Steps of the curve of the past: about one for each pixel or two."""


def _people(estimate: Estimate) -> float:
    return estimate.replications.figures[0].scopes[0].values["people"]


def _median(estimate: Estimate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the curve of half of the runs: instants of the axis, and percentages reached."""
    fan = _from_today(estimate)
    known = np.isfinite(fan.at[50])
    bounds = estimate.replications.bounds
    at, share = bounds.rising_in_windows(fan.at[50][known], fan.share[known] * 100)
    return _moved(at), share


def _from_today(estimate: Estimate) -> Fan:
    """Return the quantiles of an estimate from the share that is already reached when it begins."""
    fan, standing = estimate.fan, estimate.standing
    if standing is None or not len(standing.reached):
        return fan
    already = len(standing.reached) / _people(estimate)
    first = int(np.searchsorted(fan.share, already))
    if first < len(fan.share) and fan.share[first] == already:
        first += 1
    share = np.concatenate([[already], fan.share[first:]])
    at = {
        percent: np.concatenate([[standing.at], instants[first:]])
        for percent, instants in fan.at.items()
    }
    return Fan(share, at)


_NO_LINES: dict[str, Any] = {
    **{name: [float("nan")] for name in ("x", "low", "high", "mean", "allowed")},
    **{name: [""] for name in ("when", "range")},
}
"""A single hidden point: an area of steps without points sends Bokeh into an endless loop."""


class LinesChart(Chart):
    """Lines in use over time, and their limit."""

    def __init__(self) -> None:
        super().__init__("lines", "Lines in use", "Thai time", "lines", time=True)
        self._source = ColumnDataSource(_NO_LINES)
        self._hours()
        plot = self.figure
        area = plot.varea_step("x", "low", "high", source=self._source, fill_alpha=0.4,
                               step_mode="after", legend_label="nine of ten runs")  # fmt: skip
        self._glyph(area, fill_color=SKY)
        mean = plot.step("x", "mean", source=self._source, line_width=1.8, mode="after",
                         legend_label="mean")  # fmt: skip
        self._glyph(mean, line_color=BLUE)
        limit = plot.step("x", "allowed", source=self._source, line_width=1.5, mode="after",
                          legend_label="lines there are")  # fmt: skip
        self._glyph(limit, line_color=VERMILION)
        points = plot.scatter("x", "mean", source=self._source, size=8, fill_alpha=0, line_alpha=0)
        self._hover(points, ("from", "@when"), ("in use", "@mean{0.0} of @allowed{0.#}"),
                    ("nine of ten", "@range"), mode="vline")  # fmt: skip
        self._legend()

    def show(self, estimate: Estimate, _: Sequence[tuple[str, Estimate]]) -> str:
        """Show an estimate; see `Chart.show`."""
        lines = estimate.lines
        self._shade(estimate)
        if not len(lines.at):
            self._source.data = _NO_LINES
            return "No line is ever in use."
        self._source.data = {
            "x": _moved(lines.at),
            "low": lines.low,
            "high": lines.high,
            "mean": lines.mean,
            "allowed": lines.allowed,
            "when": [short_text(int(at)) for at in lines.at],
            "range": [
                f"{low:.1f} to {high:.1f}" for low, high in zip(lines.low, lines.high, strict=True)
            ],
        }
        self._fit(_moved(lines.at), np.concatenate([lines.high, lines.allowed]), from_zero=True)
        busiest = int(np.argmax(lines.mean))
        return (
            f"Most lines are in use at {short_text(int(lines.at[busiest]))}: "
            f"{lines.mean[busiest]:.1f} of {lines.allowed[busiest]:.0f} on average. Each point is "
            f"a mean of {duration_text(lines.width)}."
        )


class ReachChart(Chart):
    """Share of people reached by attempt; whiskers are 90 % intervals of the runs."""

    def __init__(self) -> None:
        super().__init__("reach", "Reach by attempt", "attempt", "people reached, %")
        names = ("x", "mean", "low", "high")
        self._source = ColumnDataSource({name: [] for name in names})
        plot = self.figure
        bars = plot.vbar("x", top="mean", width=0.6, source=self._source, line_alpha=0)
        self._glyph(bars, fill_color=BLUE)
        whisker = Whisker(base="x", lower="low", upper="high", source=self._source, line_width=1.5)
        for head in (whisker.upper_head, whisker.lower_head):
            # A whisker has heads unless they are set to None; the assertion is for mypy
            assert head is not None
            head.size = 8
            self._ink(head, line_color=BLACK)
        self._ink(whisker, line_color=BLACK)
        plot.add_layout(whisker)
        self._hover(bars, ("by attempt", "@x"), ("reached", "@mean{0.0} % on average"),
                    ("nine of ten runs", "@low{0.0} to @high{0.0} %"), mode="mouse")  # fmt: skip
        plot.xaxis.ticker = SingleIntervalTicker(interval=1, num_minor_ticks=0)
        plot.xaxis.formatter = NumeralTickFormatter(format="0")

    def show(self, estimate: Estimate, _: Sequence[tuple[str, Estimate]]) -> str:
        """Show an estimate; see `Chart.show`."""
        rows = estimate.reach
        mean = [100 * row["mean"] for row in rows]
        self._source.data = {
            "x": [ordinal_of(row["figure"], REACH) for row in rows],
            "mean": mean,
            "low": [100 * row["p05"] for row in rows],
            "high": [100 * row["p95"] for row in rows],
        }
        if not rows:
            return "Nobody is called."
        high = np.array(self._source.data["high"])
        self._fit(np.array([0.5, len(rows) + 0.5]), high, from_zero=True)
        told = ", ".join(f"{share:.1f} %" for share in mean[:6])
        many = len(rows) > 1
        return f"Reached by attempt{'s 1 to ' + str(len(rows)) if many else ' 1'}: {told}."


class CostChart(Chart):
    """Cost of each run (people reached, if the scenario has no costs) against its finish."""

    def __init__(self) -> None:
        super().__init__("cost", "Cost against finish", "finish, Thai time", "cost", time=True)
        plot = self.figure
        self._sources = []
        for ink, marker in ((BLUE, "circle"), *zip(_PINS, _MARKERS, strict=True)):
            source = ColumnDataSource({name: [] for name in ("x", "y", "name", "when", "run")})
            dots = plot.scatter("x", "y", source=source, size=8, fill_alpha=0.55, marker=marker)
            self._glyph(dots, fill_color=ink, line_color=ink)
            self._hover(dots, ("variant", "@name"), ("run", "@run"), ("finish", "@when"),
                        ("cost or people", "@y{0,0}"), mode="mouse")  # fmt: skip
            self._sources.append(source)
        plot.yaxis.formatter = NumeralTickFormatter(format="0,0")

    def show(self, estimate: Estimate, pins: Sequence[tuple[str, Estimate]]) -> str:
        """Show an estimate; see `Chart.show`."""
        costs = estimate.scenario.costs
        what = "people reached" if costs is None else f"cost, {costs.currency}"
        self.figure.yaxis.axis_label = what
        shown = [("as it is now", estimate), *pins]
        counted = []
        for index, source in enumerate(self._sources):
            name, one = shown[index] if index < len(shown) else ("", None)
            source.data = self._points(name, one)
            if one is not None and len(source.data["x"]):
                counted.append(f"{name}: {np.mean(source.data['y']):,.0f}")
        x, y = (np.concatenate([source.data[k] for source in self._sources]) for k in ("x", "y"))
        self._fit(x, y, from_zero=False)
        if not counted:
            return "No run has a finish to show."
        missing = len(shown) - len(self._sources)
        more = f" The chart has room for {len(self._sources)} variants." if missing > 0 else ""
        what = what[0].upper() + what[1:]
        return f"{what}, on average of the runs that finish: {'; '.join(counted)}.{more}"

    def _points(self, name: str, estimate: Estimate | None) -> dict[str, Any]:
        if estimate is None:
            return {key: [] for key in ("x", "y", "name", "when", "run")}
        y, finish = estimate.cost_and_finish
        if estimate.scenario.costs is None:
            runs = estimate.replications.figures
            y = np.array([run.scopes[0].values["people_reached"] for run in runs], np.float64)
        known = np.isfinite(finish) & np.isfinite(y)
        return {
            "x": _moved(finish[known]),
            "y": y[known],
            "name": [name] * int(known.sum()),
            "when": [short_text(round(at)) for at in finish[known]],
            "run": np.flatnonzero(known) + 1,
        }
