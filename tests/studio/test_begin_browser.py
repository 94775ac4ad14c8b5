"""A planner's first hour in the studio: from a list to answers, in headless Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("panel", reason="panel is not installed: pip install '.[studio]'")

from scenario.workbooks import workbook
from studio.browsing import Served, Tab

HEADS = ("ชื่อ", "เบอร์โทร", "กลุ่ม", "ยอดหนี้")


def row(number: int) -> tuple[object, ...]:
    return (
        f"ลูกหนี้ {number}", f"08{number:08}", ("ใหม่", "ค้างนาน")[number % 2],
        500 + number * 37 % 20_000,
    )  # fmt: skip


EXPORT = workbook(HEADS, *map(row, range(2_000)), February=[HEADS, *map(row, range(2_000, 4_000))])
SPAN = {"Start": "2026-12-04 14:00", "Deadline": "2026-12-08 18:00"}
"""From a Friday to a Tuesday; Saturday and Monday are holidays."""


@pytest.fixture(scope="module")
def empty() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


@pytest.fixture
def tab(browser: Any, empty: Served) -> Iterator[Tab]:
    tab = Tab(browser, empty.url)
    yield tab
    tab.close()


def begin(tab: Tab, untick: str = "", **answers: str) -> None:
    """Open the export, answer the questions, and wait for the first complete answer."""
    tab.open("export.xlsx", EXPORT)
    tab.sees(tab.page.locator(".begin"), "2 sheets, 4,000 rows. 4,000 people to call. 2 segments")
    assert not tab.field("People").is_visible()
    for name, text in (SPAN | answers).items():
        tab.field(name).fill(text)
        tab.field(name).press("Tab")
    holidays = tab.page.get_by_role("group", name="Holidays in this time")
    tab.sees(holidays, "Sat 5 Dec 2026.*Mon 7 Dec 2026")
    holidays.get_by_role("checkbox").nth(2).wait_for(state="detached")
    if untick:
        holidays.get_by_role("checkbox", name=re.compile(untick)).uncheck()
    tab.button("Begin").click()
    tab.settled()


def lines_needed(tab: Tab) -> int:
    """Ask for the fewest lines until the deadline that was typed at the beginning."""
    tab.page.locator(".asks button:enabled").first.wait_for()
    tab.button("Fewest lines to be done by").click()
    tab.page.locator(".result").wait_for(state="detached")
    status = tab.page.locator(".questions [role=status]")
    tab.sees(status, "^The fewest lines to be done by 2026-12-08 18:00: done")
    found = re.match("([0-9]+) lines are enough", tab.page.locator(".result").inner_text())
    assert found is not None
    return int(found[1])


def test_how_many_lines_until_a_deadline_with_holidays(tab: Tab) -> None:
    begin(tab)
    assert tab.field("Hours on holidays").input_value() == "closed"
    closed = lines_needed(tab)
    # Saturday and Monday, too: nearly twice the hours
    tab.set("Hours on holidays", "09:00-19:00", "callingHours.holiday=")
    tab.settled()
    opened = lines_needed(tab)
    assert 1 < opened < closed <= 3 * opened
    # the answer can be taken over, and holds
    tab.button("Undo").click()
    tab.sees(tab.lines, "Nothing is changed")
    assert lines_needed(tab) == closed
    tab.page.get_by_role("button", name=re.compile("^Take this over")).click()
    tab.sees(tab.lines, f"maxConcurrentCalls={closed}$")
    tab.settled()
    tab.sees(tab.page.locator(".rest"), "is worth")


def test_a_holiday_that_is_ordinary_has_the_hours_of_its_day(tab: Tab) -> None:
    begin(tab, untick="Mon 7 Dec", Lines="3")
    ordinary = tab.sentence.inner_text()
    tab.set("Hours on holidays", "09:00-19:00", "callingHours.holiday=")
    assert tab.settled() != ordinary  # of the Saturday
    path = tab.page.get_by_role("combobox", name="Path")
    tab.page.get_by_text("Everything else").click()
    path.fill("calendar.open")
    tab.field("Value").fill("[]")
    tab.field("Value").press("Enter")
    tab.sees(tab.lines, "calendar.open")
    tab.settled()
    tab.set("Hours on holidays", "closed", "callingHours.holiday=\\[\\]")
    assert tab.settled() != ordinary  # Monday is closed as well


def differences(tab: Tab, variant: str) -> dict[str, str]:
    """The shown estimate minus a variant, by the head of the column."""
    region = tab.page.get_by_role("region", name="Variants")
    heads = region.get_by_role("columnheader").all_inner_texts()
    line = region.get_by_role("row").filter(has_text=variant)
    tab.sees(line.locator(".less"), ".")
    cells = line.get_by_role("cell").all()
    return {
        head: cell.locator(".less").inner_text()
        for head, cell in zip(heads[1:], cells, strict=True)
        if cell.locator(".less").count()
    }


def test_evening_lines_against_flat_lines_are_on_the_sheet(
    tab: Tab, browser: Any, tmp_path: Path
) -> None:
    begin(tab, Lines="4")
    tab.button("Pin this variant").click()
    flat = tab.settled()
    tab.set("Evening lines", "12", "lines.17:00-24:00=12$")
    assert tab.settled() != flat
    assert ", real" in differences(tab, "variant 1")["done, half of the runs"]
    for language, said in (("English", "As planned, calling is done by"), ("ไทย", "ตามแผนนี้")):
        tab.page.get_by_role("combobox", name="Language of the sheet").select_option(language)
        with tab.page.expect_download() as downloaded:
            tab.button("Save the sheet").click()
        assert downloaded.value.suggested_filename == "export-sheet.html"
        downloaded.value.save_as(tmp_path / "sheet.html")
        sheet = browser.new_page()
        sheet.goto((tmp_path / "sheet.html").as_uri())
        assert said in sheet.inner_text("body")
        assert "variant 1" in sheet.inner_text("table")
        assert sheet.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") == 1
        sheet.close()
    tab.field("Evening lines").fill("")
    tab.field("Evening lines").press("Enter")
    tab.sees(tab.lines, "Nothing is changed")
    assert tab.settled() == flat


def test_the_command_takes_an_export(browser: Any) -> None:
    served = Served("scenarios/debtors.xlsx")
    try:
        tab = Tab(browser, served.url)
        tab.sees(tab.page.locator(".begin"), "2,000 people to call.*2 segments")
        assert tab.field("Value of a person reached").input_value() == "Balance"
        tab.button("Begin").click()
        tab.settled()
        tab.sees(tab.page.locator(".facts"), "of 2,000 people")
        tab.close()
    finally:
        served.close()


def test_high_amounts_first(tab: Tab) -> None:
    begin(tab, Lines="3")
    tab.button("Pin this variant").click()
    sort = tab.page.get_by_role("combobox", name="Sort")
    sort.fill("-ยอดหนี้")
    sort.press("Enter")
    tab.sees(tab.lines, "recipients.sort=-ยอดหนี้")
    tab.settled()
    gained = differences(tab, "variant 1")
    day = next(head for head in gained if head.startswith("value by day "))
    assert re.match(r"\+[0-9,]+", gained[day])
    tab.set("First of the list", "1500", "recipients.first=1500")
    tab.settled()
    tab.sees(tab.page.locator(".facts"), "of 1,500 people")


WRITTEN = """(() => {
  window.written = new Map();
  const own = CanvasRenderingContext2D.prototype, write = own.fillText, clear = own.clearRect;
  own.fillText = function (text, x, y, ...more) {
    const size = this.measureText(text), at = this.getTransform();
    const xs = [x - size.actualBoundingBoxLeft, x + size.actualBoundingBoxRight];
    const ys = [y - size.actualBoundingBoxAscent, y + size.actualBoundingBoxDescent];
    const ends = xs.flatMap(one => ys.map(other => at.transformPoint({ x: one, y: other })));
    const [left, right] = [Math.min, Math.max].map(end => end(...ends.map(point => point.x)));
    const [top, bottom] = [Math.min, Math.max].map(end => end(...ends.map(point => point.y)));
    if (!window.written.has(this.canvas)) window.written.set(this.canvas, []);
    window.written.get(this.canvas).push({ text, left, right, top, bottom });
    return write.call(this, text, x, y, ...more);
  };
  own.clearRect = function (...box) {
    window.written.delete(this.canvas);
    return clear.call(this, ...box);
  };
})();"""
"""Notes where each text of a canvas is written."""

BOXES = """() => {
  const found = [];
  const walk = view => {
    if (view.frame) {
      const legend = [...view.children()].find(part => part.model?.type === "Legend");
      const box = ({ left, top, right, bottom }) => ({ left, top, right, bottom });
      found.push([box(view.frame.bbox), legend ? box(legend.bbox) : null]);
    }
    for (const part of view.children?.() ?? []) walk(part);
  };
  for (const view of Bokeh.index.roots) walk(view);
  return found;
}"""
"""The boxes of the plot and of the legend of each chart."""


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(
        one["left"] < other["right"] and other["left"] < one["right"]
        and one["top"] < other["bottom"] and other["top"] < one["bottom"]
    )  # fmt: skip


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_texts_of_charts_do_not_overlap_and_legends_cover_no_data(browser: Any, width: int) -> None:
    served = Served("scenarios/songkran.yaml")
    try:
        tab = Tab(browser, served.url, script=WRITTEN, viewport={"width": width, "height": 900})
        tab.settled()
        tab.button("Pin this variant").click()  # a further item of the legend
        tab.sees(tab.page.get_by_role("region", name="Variants").get_by_role("row"), "variant 1")
        tab.page.wait_for_timeout(1_000)  # the charts are drawn anew
        assert tab.width <= width
        canvases = tab.page.evaluate("() => [...window.written.values()]")
        shown = [texts for texts in canvases if len(texts) > 4]
        assert len(shown) >= 4
        pairs = [pair for texts in shown for pair in combinations(texts, 2)]
        assert [(a["text"], b["text"]) for a, b in pairs if overlap(a, b)] == []
        boxes = tab.page.evaluate(BOXES)
        assert len(boxes) == 4
        legends = [(plot, legend) for plot, legend in boxes if legend]
        assert len(legends) == 2
        assert not any(overlap(plot, legend) for plot, legend in legends)
        assert all(legend["right"] <= width for _, legend in legends)
        tab.close()
    finally:
        served.close()
