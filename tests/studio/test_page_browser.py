"""The studio's page in headless Chromium, over the real command: by pointer and by keyboard."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("panel", reason="panel is not installed: pip install '.[studio]'")

SCENARIO = Path(__file__).parents[2] / "scenarios" / "first-campaign.yaml"
NOISE = re.compile(r"\[bokeh|Bokeh items were rendered")
"""What Bokeh tells the console of its ordinary life."""


class Served:
    """A `dialsim studio` that runs for as long as it is needed."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dialsim", "studio", *arguments, "--port", "0"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.url = found[0]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Tab:
    """A tab with a studio; it keeps what the console said and what was asked for."""

    def __init__(self, browser: Any, url: str, link: str = "", **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)
        self.said: list[str] = []
        self.asked: set[str] = set()
        self.loads = 0
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc))
        self.page.on("load", lambda _: setattr(self, "loads", self.loads + 1))
        self.page.goto(url + link)
        self.host = urlsplit(url).netloc

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def field(self, name: str) -> Any:
        return self.page.get_by_role("textbox", name=name, exact=True)

    def slider(self, name: str) -> Any:
        return self.page.get_by_role("slider", name=f"{name}, slider")

    def set(self, name: str, text: str, line: str) -> None:
        """Write a value at a lever, and wait until it is a change: the answer is busy by then."""
        self.field(name).fill(text)
        self.field(name).press("Enter")
        self.sees(self.lines, line)

    @property
    def lines(self) -> Any:
        return self.page.locator("pre").first

    @property
    def sentence(self) -> Any:
        return self.page.locator(".sentence")

    def sees(self, locator: Any, text: str) -> None:
        """Wait until an element contains a text."""
        locator.filter(has_text=re.compile(text, re.DOTALL)).first.wait_for()

    def settled(self) -> str:
        """Wait for the last estimate, and return the sentence."""
        self.sees(self.page.locator(".answer:not(.busy) .how"), "^200 runs")
        return str(self.sentence.inner_text())

    def close(self) -> None:
        assert [text for text in self.said if not NOISE.search(text)] == []
        assert self.asked <= {self.host, ""}
        assert self.loads == 1
        self.context.close()


@pytest.fixture(scope="module")
def studio() -> Iterator[Served]:
    served = Served(str(SCENARIO), "--set", "January.recipients.count=400")
    yield served
    served.close()


@pytest.fixture
def tab(browser: Any, studio: Served) -> Iterator[Tab]:
    tab = Tab(browser, studio.url)
    yield tab
    tab.close()


def test_dragging_lines_with_the_pointer_changes_the_sentence_without_a_reload(tab: Tab) -> None:
    before = tab.settled()
    slider = tab.slider("Lines")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    tab.page.mouse.move(box["x"] + box["width"] * 0.26, y)
    tab.page.mouse.down()
    for share in (0.4, 0.6, 0.8):
        tab.page.mouse.move(box["x"] + box["width"] * share, y, steps=4)
    tab.page.mouse.up()
    lines = slider.input_value()
    assert int(lines) > 20
    tab.sees(tab.lines, f"--set organizations.Acme.maxConcurrentCalls={lines}$")
    after = tab.settled()
    assert after != before
    tab.button("Undo").click()
    tab.sees(tab.lines, "Nothing is changed")
    assert tab.settled() == before
    tab.button("Redo").click()
    tab.sees(tab.lines, f"={lines}$")
    assert tab.settled() == after


def test_a_window_is_painted_with_the_pointer_and_with_the_keyboard(tab: Tab) -> None:
    grid = tab.page.get_by_role("grid", name=re.compile("^Windows"))
    sunday = tab.page.get_by_role("gridcell", name=re.compile("^Sunday 10:00"))
    last = tab.page.get_by_role("gridcell", name=re.compile("^Sunday 18:30"))
    grid.scroll_into_view_if_needed()
    first, end = sunday.bounding_box(), last.bounding_box()
    middle = first["y"] + first["height"] / 2
    tab.page.mouse.move(first["x"] + first["width"] / 2, middle)
    tab.page.mouse.down()
    tab.page.mouse.move(end["x"] + end["width"] / 2, middle, steps=8)
    tab.sees(tab.page.locator(".week-said"), "Close Sunday 10:00 to 19:00")
    tab.page.mouse.up()
    lines = tab.lines
    tab.sees(lines, "timeWindows=Mon-Fri 09:00-19:00; Sat 10:00-19:00'$")
    assert sunday.get_attribute("aria-selected") == "false"
    # and Monday from 08:00 on, without a pointer
    tab.page.get_by_role("gridcell", name=re.compile("^Monday 08:30")).focus()
    tab.page.keyboard.press("Space")
    tab.sees(lines, "timeWindows=Mon 08:30-19:00; Tue-Fri")
    tab.page.keyboard.press("Shift+ArrowLeft")
    tab.sees(lines, "timeWindows=Mon 08:00-19:00; Tue-Fri")
    focused = tab.page.get_by_role("gridcell", name=re.compile("^Monday 08:00.*open"))
    assert focused.evaluate("cell => cell.getRootNode().activeElement === cell")


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
    field.fill("12")
    field.press("Enter")
    tab.sees(tab.lines, "maxConcurrentCalls=12$")
    assert field.get_attribute("aria-invalid") == "false"
