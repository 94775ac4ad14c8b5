"""The studio's page in headless Chromium, over the real command: by pointer and by keyboard."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("panel", reason="panel is not installed: pip install '.[studio]'")

from dialsim.testing import Sketch
from studio.browsing import FAINT, Served, Tab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "first-campaign.yaml"


@pytest.fixture(scope="module")
def studio() -> Iterator[Served]:
    served = Served(str(SCENARIO), "--set", "January.recipients.count=400")
    yield served
    served.close()


@pytest.fixture(scope="module")
def empty() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


@pytest.fixture
def tab(browser: Any, studio: Served) -> Iterator[Tab]:
    tab = Tab(browser, studio.url)
    yield tab
    tab.close()


def same_spaces(texts: list[str]) -> list[str]:
    return [text.replace("\xa0", " ") for text in texts]


def test_a_planner_turns_paints_pins_asks_saves_and_comes_back_by_the_link(
    tab: Tab, browser: Any, studio: Served, tmp_path: Path
) -> None:
    page = tab.page
    # turn a knob: the sentence follows
    before = tab.settled()
    lines = tab.drag("Lines", 0.4, 0.6, 0.8)
    tab.sees(tab.lines, f"--set organizations.Acme.maxConcurrentCalls={lines}$")
    after = tab.settled()
    assert after != before
    tab.button("Undo").click()
    tab.sees(tab.lines, "Nothing is changed")
    tab.button("Redo").click()
    tab.sees(tab.lines, f"={lines}$")
    # open the evening, and keep the variant
    tab.paint("Monday 19:00", "Tuesday 20:30", "Open Monday to Tuesday 19:00 to 21:00")
    tab.sees(tab.lines, "timeWindows=Mon-Tue 09:00-21:00; Wed-Fri 09:00-19:00;")
    tab.settled()
    tab.button("Pin this variant").click()
    variants = page.get_by_role("region", name="Variants")
    tab.sees(variants.get_by_role("row"), "^variant 1")
    # what is done next stands beside it, with the differences over pairs of runs
    fewer = tab.drag("Lines", 0.3, 0.1)
    tab.sees(tab.lines, f"maxConcurrentCalls={fewer}")
    tab.settled()
    differences = variants.get_by_role("row").filter(has_text="variant 1").locator(".less")
    tab.sees(differences, r"\+.*, real")
    assert variants.get_by_role("row").count() == 4  # with the head, what is shown, and the file
    # ask, look at the progress, stop
    status = page.locator(".questions [role=status]")
    tab.button("Cheapest that reaches").click()
    tab.sees(status, r"The cheapest way to reach 60 % of the people.*of about [0-9,]+ runs")
    bar = page.get_by_role("progressbar", name="Progress of the question")
    assert 0 < float(bar.get_attribute("value")) <= 1
    tab.button("Stop").click()
    tab.sees(status, r"^Stopped\.$")
    assert bar.count() == 0
    # another question is answered, with its estimate, and taken over
    deadline = tab.field("Deadline")
    deadline.fill("Mon 14:00")
    deadline.press("Enter")
    tab.sees(page.locator(".result"), "line")
    assert page.get_by_role("region", name=re.compile("^Evidence")).count()
    tab.sees(page.locator(".found pre"), "^dialsim plan .*--goal 'p95\\(finish\\) <= Mon 14:00'")
    taken = page.get_by_role("button", name=re.compile("^Take this over"))
    line = taken.inner_text().removeprefix("Take this over: ")
    assert line != f"organizations.Acme.maxConcurrentCalls={fewer}"
    taken.click()
    tab.sees(tab.lines, re.escape(line))
    shown = tab.answer()
    # keep it
    with page.expect_download() as downloaded:
        tab.button("Save the scenario file").click()
    saved = tmp_path / downloaded.value.suggested_filename
    downloaded.value.save_as(saved)
    # come back to it
    other = Tab(browser, studio.url, f"#{page.url.partition('#')[2]}")
    assert other.answer() == shown
    assert other.lines.inner_text() == tab.lines.inner_text()
    tab.sees(other.page.get_by_role("region", name="Variants").get_by_role("row"), "^variant 1")
    other.close()
    # the command line has the same figures, to the digit
    words = ["run", str(saved), "--replications", "200", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "dialsim", *words, "--what-if", "0", "--format", "json"],
        capture_output=True, check=True,
    )  # fmt: skip
    report = browser.new_page()
    report.goto((tmp_path / "out" / "report.html").as_uri())
    said = [report.locator(".answer h2").text_content() + "."]
    said += [part.text_content() for part in report.locator(".facts > div").all()]
    report.close()
    said = [text for text in same_spaces(said) if not text.startswith("What would help?")]
    assert said == [shown[0], *shown[2:]]
    means = {
        row["figure"]: row["mean"]
        for row in json.loads(done.stdout)["estimates"]
        if row["scope"] == "run"
    }
    reach = f"{means['people_reached']:,.0f} people ({100 * means['reach_share']:.1f} %)"
    assert shown[1].startswith(f"It reaches {reach} and costs {means['cost']:,.0f} THB.")


def test_a_window_is_painted_with_the_keyboard(tab: Tab) -> None:
    tab.cell("Monday 08:30").focus()
    tab.page.keyboard.press("Space")
    tab.sees(tab.lines, "timeWindows=Mon 08:30-19:00; Tue-Fri")
    tab.page.keyboard.press("Shift+ArrowLeft")
    tab.sees(tab.lines, "timeWindows=Mon 08:00-19:00; Tue-Fri")
    assert tab.focused.startswith("Monday 08:00 to 08:30, open")


def test_a_bad_value_says_why_at_its_field_and_changes_nothing(tab: Tab) -> None:
    before = tab.settled()
    field = tab.field("Lines")
    field.fill("many")
    field.press("Enter")
    alert = tab.page.get_by_role("alert").filter(has_text="whole number")
    alert.wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    assert alert.get_attribute("id") in field.get_attribute("aria-describedby")
    assert tab.sentence.inner_text() == before
    tab.set("Lines", "12", "maxConcurrentCalls=12$")
    # what is being written is not lost to news of something else
    field.fill("1")
    tab.page.evaluate(_PIN)
    tab.sees(tab.page.get_by_role("region", name="Variants").get_by_role("row"), "^variant 1")
    assert field.input_value() == "1"
    tab.set("Lines", "12", "maxConcurrentCalls=12$")
    assert field.get_attribute("aria-invalid") == "false"


_PIN = """() => {
  const find = root => [...root.querySelectorAll('*')].flatMap(node => [
    ...(node.shadowRoot ? find(node.shadowRoot) : []),
    ...(node.textContent === 'Pin this variant' && node.matches('button') ? [node] : [])]);
  find(document)[0].click();
}"""


def tab_to(tab: Tab, name: str, most: int = 60) -> None:
    """Press the tabulator until something has the focus."""
    for _ in range(most):
        tab.page.keyboard.press("Tab")
        if tab.focused.startswith(name):
            return
    raise AssertionError(f"{name} can't be reached with the keyboard")


def test_everything_is_done_with_the_keyboard_alone(tab: Tab) -> None:
    keyboard = tab.page.keyboard
    before = tab.settled()
    tab_to(tab, "Lines, slider")
    for _ in range(5):
        keyboard.press("ArrowRight")
    tab.sees(tab.lines, "maxConcurrentCalls=15$")
    assert tab.settled() != before
    tab_to(tab, "Monday 09:00")
    keyboard.press("ArrowUp")
    keyboard.press("Space")
    tab.sees(tab.lines, "timeWindows=Mon 09:30-19:00; Tue-Fri")
    keyboard.press("Control+z")
    tab.sees(tab.lines, "maxConcurrentCalls=15$")
    keyboard.press("Control+z")
    keyboard.press("Control+z")
    tab.sees(tab.lines, "Nothing is changed")
    assert tab.settled() == before
    keyboard.press("Control+Shift+z")
    tab.sees(tab.lines, "maxConcurrentCalls=")
    tab.settled()
    tab_to(tab, "Pin this variant", 120)
    keyboard.press("Enter")
    tab.sees(tab.page.get_by_role("region", name="Variants").get_by_role("row"), "^variant 1")
    tab_to(tab, "What would help most", 30)
    keyboard.press("Enter")
    tab.sees(tab.page.locator(".questions [role=status]"), "What would help most …")
    tab_to(tab, "Stop", 30)
    keyboard.press("Enter")
    tab.sees(tab.page.locator(".questions [role=status]"), "^Stopped")


def test_controls_have_names_texts_stand_out_and_narrow_screens_do_not_scroll(
    browser: Any, studio: Served
) -> None:
    tab = Tab(browser, studio.url, viewport={"width": 390, "height": 844})
    tab.settled()
    tab.set("Lines", "14", "=14")
    tab.settled()
    tab.button("Pin this variant").click()
    variants = tab.page.get_by_role("region", name="Variants")
    tab.sees(variants.get_by_role("row"), "variant 1")
    for part in tab.page.locator("details:not([open]) > summary").all()[::-1]:
        part.click()
    tab.set("Attempts", "none", "=14")
    tab.page.get_by_role("alert").filter(has_text="must be an integer number").wait_for()
    deadline = tab.field("Deadline")
    deadline.fill("Tue 12:00")
    deadline.press("Enter")
    tab.sees(tab.page.locator(".result"), "line")
    assert tab.unnamed() == []
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        tab.page.wait_for_function(f"() => !({FAINT})().length")  # charts take a moment
    for width in (390, 320, 1280):
        tab.page.set_viewport_size({"width": width, "height": 844})
        tab.page.wait_for_function(f"() => document.documentElement.scrollWidth <= {width}")
    tab.close()


MARKUP = '<img src=x onerror="alert(1)"> & <b>Jan</b>'
REQUEST = {"recipients": {"count": 50}, "max_attempts": 2, "retry_interval": "1h"}
CLAIMS = (
    Sketch(setup_time=None)
    .also(name=MARKUP, description=MARKUP)
    .organization(f"{MARKUP}1", 3)
    .campaign(f"{MARKUP}2", agent=MARKUP, **REQUEST)
    .campaign(f"{MARKUP}3", agent=MARKUP, **REQUEST)
)


def test_names_with_markup_are_text(browser: Any, empty: Served) -> None:
    tab = Tab(browser, empty.url)
    tab.open("<b>markup<b>.yaml", CLAIMS.text)
    tab.settled()
    assert tab.page.get_by_role("heading", level=1).inner_text() == MARKUP
    tab.set("Lines", "4", "maxConcurrentCalls=4")
    which = tab.page.get_by_role("combobox", name="Levers of the campaign")
    assert which.input_value() == f"{MARKUP}2"
    which.fill(f"{MARKUP}3")
    which.press("Enter")
    tab.page.locator("input[id*=campaigns-1-recipients]").first.wait_for()
    tab.set("People", "60", "recipients.count=60")
    tab.settled()
    tab.button("Pin this variant").click()
    tab.sees(tab.page.get_by_role("region", name="Variants").get_by_role("row"), "^variant 1")
    which.fill("<i>nobody</i>")
    which.press("Enter")
    tab.sees(tab.page.locator(".notice"), "There is no campaign <i>nobody</i>")
    assert tab.page.locator(".studio :is(img, b, i)").count() == 0
    tab.close()


LIST = "tel,customerName\n" + "".join(f"08{number:08},P{number}\n" for number in range(80))


def test_a_list_is_dropped_and_what_is_saved_is_opened_again(
    browser: Any, empty: Served, tmp_path: Path
) -> None:
    tab = Tab(browser, empty.url, viewport={"width": 390, "height": 844})
    tab.button("Begin").wait_for()
    assert tab.unnamed() == []
    assert tab.faint() == []
    assert tab.width <= 390
    tab.open("people.csv", "tel,customerName\n")
    tab.sees(tab.page.locator(".notice"), "no row has a usable phone number")
    tab.open("people.csv", LIST)
    tab.sees(tab.page.locator(".begin"), "80 people to call")
    tab.button("Begin").click()
    tab.settled()
    tab.set("Lines", "2", "maxConcurrentCalls=2$")
    shown = tab.answer()
    with tab.page.expect_download() as downloaded:
        tab.button("Save the scenario file").click()
    saved = tmp_path / downloaded.value.suggested_filename
    downloaded.value.save_as(saved)
    tab.close()
    again = Tab(browser, empty.url)
    again.open("saved.zip", saved.read_bytes())
    assert again.answer() == shown
    tab.sees(again.lines, "Nothing is changed")
    again.close()
