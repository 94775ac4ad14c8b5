"""The page in headless Chromium, over a real server: watched, steered, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import dialsim
from dialsim.testing import Sketch
from dialsim.testing.receiver import Answer, Receiver

THAI = "แจ้งเตือนนัดหมาย"
WORLD = (
    Sketch(slots=2)
    .campaign("January", recipients={"count": 200}, maxAttempts=2, retryInterval=3_600_000)
    .campaign(THAI, "answered 5s 90s", "busy 1s")
    .campaign("Never begun", recipients={"count": 3}, requested=None)
)


class Tab:
    """A tab with the page of a sandbox; it keeps what the console said and what was asked for."""

    def __init__(self, browser: Any, url: str, query: str = "", **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.loads = 0
        self.page.set_default_timeout(10_000)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("load", lambda _: setattr(self, "loads", self.loads + 1))
        self.page.goto(f"{url}/_dialsim/{query}")

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def campaign(self, name: str) -> Any:
        return self.page.get_by_role("article", name=name, exact=True)

    def sees(self, locator: Any, text: str) -> None:
        """Wait until an element contains a text."""
        locator.filter(has_text=re.compile(text, re.DOTALL)).wait_for()

    def focused(self) -> str:
        """The accessible name or the text of what has the focus."""
        script = "(e => e.ariaLabel || e.innerText || e.tagName)(document.activeElement)"
        return str(self.page.evaluate(script)).strip()


@pytest.fixture
def sandbox() -> Iterator[dialsim.Sandbox]:
    with dialsim.Sandbox(WORLD.scenario()) as sandbox:
        yield sandbox


@pytest.fixture
def open_tab(browser: Any, sandbox: dialsim.Sandbox) -> Iterator[Any]:
    tabs: list[Tab] = []

    def opened(query: str = "", **options: Any) -> Tab:
        tabs.append(Tab(browser, sandbox.url, query, **options))
        return tabs[-1]

    yield opened
    for tab in tabs:
        assert tab.said == []
        hosts = {urlsplit(url).netloc for url in tab.asked}
        assert hosts == {urlsplit(sandbox.url).netloc}
        tab.context.close()


def test_a_planner_advances_pauses_resumes_and_cancels_without_a_reload(open_tab: Any) -> None:
    tab = open_tab()
    clock = tab.page.locator("#clock")
    tab.sees(clock, "Mon 5 Jan 2026 09:00:00")
    tab.button("Advance by 1 hour").click()
    tab.sees(clock, "Mon 5 Jan 2026 10:00:00")
    tab.sees(tab.page.get_by_role("article", name="Acme"), "2 of 2 slots in use")
    january = tab.campaign("January")
    tab.sees(january, "RUNNING.* of 200 done")
    tab.button("Pause January").click()
    tab.sees(january, "PAUSED")
    tab.sees(tab.page.locator("#news").get_by_role("status"), "January has become PAUSED")
    before = january.locator(".progress").inner_text()
    tab.button("Advance by 1 day").click()
    tab.sees(clock, "Tue 6 Jan 2026 10:00:00")
    tab.sees(january, "PAUSED")
    tab.sees(tab.page.get_by_role("article", name="Acme"), "0 of 2 slots in use")
    assert "200 done" in before
    tab.button("Resume January").click()
    tab.sees(january, "RUNNING")
    tab.page.once("dialog", lambda dialog: dialog.dismiss())
    tab.button("Cancel January").click()
    tab.button("Advance to the next event").click()
    tab.sees(january, "RUNNING")
    tab.page.once("dialog", lambda dialog: dialog.accept())
    tab.button("Cancel January").click()
    tab.sees(january, "CANCELLED.*not reached")
    assert january.get_by_role("button").count() == 0
    tab.button("Advance until idle").click()
    tab.sees(clock, "nothing is left to happen")
    assert tab.loads == 1


def test_the_clock_runs_by_itself_until_it_is_stopped(open_tab: Any) -> None:
    tab = open_tab()
    clock = tab.page.locator("#clock")
    tab.page.get_by_label("Run by itself at").select_option("1 hour a second")
    tab.button("Run").click()
    tab.sees(clock, "running, 3,600 × real time")
    tab.sees(tab.campaign("January"), "[1-9][0-9]* of 200 done")
    tab.button("Stop").click()
    tab.sees(clock, "moved by hand")
    stopped = clock.inner_text()
    tab.page.wait_for_timeout(600)
    assert clock.inner_text() == stopped
    assert tab.loads == 1


def test_an_advance_is_stopped_by_the_button(browser: Any) -> None:
    months = Sketch(slots=1).campaign("January", recipients={"count": 500})
    with (
        # an advance waits for every result: it takes minutes on the quickest machine
        Receiver(otherwise=Answer(delay=0.5)) as receiver,
        dialsim.Sandbox(months.scenario(), webhook_url=receiver.url) as sandbox,
    ):
        tab = Tab(browser, sandbox.url)
        clock = tab.page.locator("#clock")
        tab.button("Advance until idle").click()
        tab.sees(clock, "advancing")
        tab.button("Stop").click()
        tab.sees(tab.page.locator("#clock-said"), "Stopped on the way: it is .* now.")
        tab.sees(clock, "ready")
        stopped = clock.inner_text()
        tab.page.wait_for_timeout(600)
        assert clock.inner_text() == stopped
        assert tab.said == []
        tab.context.close()


def test_a_second_tab_and_a_client_are_seen_at_once(
    open_tab: Any, sandbox: dialsim.Sandbox
) -> None:
    one, other = open_tab(), open_tab()
    one.button("Pause January").click()
    other.sees(other.campaign("January"), "PAUSED")
    sandbox.resume("January")
    sandbox.clock.advance(minutes=5)
    for tab in (one, other):
        tab.sees(tab.campaign("January"), "RUNNING")
        tab.sees(tab.page.locator("#clock"), "09:05:00")


def test_a_refused_command_says_why_in_place(open_tab: Any, sandbox: dialsim.Sandbox) -> None:
    tab = open_tab()
    tab.page.route("**/page/events*", lambda route: route.abort())  # the tab is behind
    tab.page.reload()
    sandbox.cancel("January")
    tab.button("Pause January").click()
    alert = tab.campaign("January").get_by_role("alert")
    tab.sees(alert, "Cannot pause a CANCELLED campaign")
    tab.sees(tab.page.locator("#connection"), "Connection lost")
    tab.said.clear()  # the browser itself tells of both


def test_a_call_opens_with_its_body_and_leads_to_the_story_of_the_person(open_tab: Any) -> None:
    tab = open_tab("?campaign=0.1")
    tab.button("Advance by 1 hour").click()
    lines = tab.page.locator("#calls details")
    tab.sees(lines.first, "COMPLETED")
    answered = lines.filter(has_text="COMPLETED").first
    answered.locator("summary").click()
    tab.sees(answered.locator("pre"), '"callStatus": "COMPLETED"')
    tab.button("Advance by 1 minute").click()
    tab.sees(tab.page.locator("#clock"), "10:01:00")
    assert answered.locator("pre").is_visible()  # an update closes nothing
    answered.get_by_role("link").click()
    tab.sees(tab.page.get_by_role("article").filter(has_text="attempt 1: dialled"), "Reached|ends")
    assert "person=0.1." in tab.page.url


def test_somebody_is_found_by_number(open_tab: Any, sandbox: dialsim.Sandbox) -> None:
    tel = sandbox.result().recipients.tel.iloc[0]
    tab = open_tab()
    tab.page.get_by_label("Phone number, recipient id or call id").fill(str(tel))
    tab.button("Find").click()
    tab.page.get_by_role("heading", name=str(tel)).wait_for()
    tab.page.get_by_label("Phone number, recipient id or call id").fill("0000")
    tab.button("Find").click()
    tab.sees(tab.page.locator("#person"), "Nobody is found")


def test_webhooks_show_their_answers_and_bodies_and_are_sent_again(
    open_tab: Any, sandbox: dialsim.Sandbox
) -> None:
    with Receiver() as receiver:
        receiver.answer(Answer(500))
        sandbox.set_webhook_url(receiver.url)
        sandbox.cancel("January")
        tab = open_tab("?campaign=0.1")
        tab.button("Advance by 1 hour").click()
        lines = tab.page.locator("#webhooks details")
        tab.sees(lines.filter(has_text="POST 1").last, "500")
        delivered = lines.filter(has_text="200").last
        delivered.locator("summary").click()
        tab.sees(delivered.locator("pre"), '"type": "CALL_RESULT"')
        got = len(receiver.requests)
        delivered.get_by_role("button", name="Send this webhook again").click()
        tab.sees(lines.first, "sent again")
        assert len(receiver.wait_for(got + 1)) == got + 1
        assert delivered.locator("pre").is_visible()


def test_a_fault_is_added_seen_by_a_client_and_cleared(
    open_tab: Any, sandbox: dialsim.Sandbox
) -> None:
    tab = open_tab()
    faults = tab.page.locator("#faults")
    tab.page.get_by_label("How often").fill("2")
    tab.button("Add fault").click()
    tab.sees(faults, "API answers are 503.*struck 0 of 2")
    answer = httpx.get(f"{sandbox.url}/api/agent/list", headers={"X-API-Key": sandbox.api_key})
    assert answer.status_code == 503
    tab.sees(faults, "struck 1 of 2")
    tab.button("Clear fault 1").click()
    tab.sees(faults, "Nothing goes wrong on purpose")


def test_everything_can_be_done_with_the_keyboard_and_focus_stays_through_updates(
    open_tab: Any,
) -> None:
    tab = open_tab()
    stops = []
    for _ in range(17):
        tab.page.keyboard.press("Tab")
        stops.append(tab.focused())
    assert stops[:6] == [
        "Skip to the clock",
        "Advance by 1 minute",
        "Advance by 1 hour",
        "Advance by 1 day",
        "Advance to the next event",
        "Advance until idle",
    ]
    assert stops[7:9] == ["Run", "Stop"]
    assert stops[12:17] == [
        *("Pause January", "Cancel January", f"Pause {THAI}", f"Cancel {THAI}"),
        "Cancel Never begun",
    ]
    for _ in range(4):
        tab.page.keyboard.press("Shift+Tab")
    tab.page.keyboard.press("Enter")
    tab.sees(tab.campaign("January"), "PAUSED")
    tab.button("Resume January").wait_for()
    assert tab.focused() == "Resume January"
    assert tab.page.evaluate(_OUTLINE) >= 2
    tab.page.keyboard.press("Space")
    tab.sees(tab.campaign("January"), "RUNNING")
    assert tab.focused() == "Pause January"
    tab.page.once("dialog", lambda dialog: dialog.accept())
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    tab.sees(tab.campaign("January"), "CANCELLED")
    assert tab.focused() == "January"  # the button is gone, its heading is not


def test_a_line_that_is_read_stays_while_calls_go_by(open_tab: Any) -> None:
    tab = open_tab("?campaign=0.0&status=BUSY")
    tab.button("Advance by 1 day").click()
    first = tab.page.locator("#calls summary").first
    first.wait_for()
    first.focus()
    focused = tab.focused()
    for _ in range(3):
        tab.page.evaluate("document.getElementById('move-3').click()")
        tab.page.wait_for_timeout(600)
    assert tab.focused() == focused


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_fits_its_screen_and_can_be_read(open_tab: Any, width: int, scheme: str) -> None:
    tab = open_tab("?person=0.1.0", viewport={"width": width, "height": 844}, color_scheme=scheme)
    tab.button("Advance by 1 day").click()
    tab.sees(tab.page.locator("#clock"), "Tue 6 Jan 2026 09:00:00")
    tab.page.locator("#calls summary").first.click()
    tab.page.locator("#calls pre").wait_for()
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    dark = tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != (
        "rgb(255, 255, 255)"
    )
    assert dark == (scheme == "dark")
    assert tab.page.evaluate(_TOO_FAINT) == []


def test_all_controls_and_pictures_have_names(open_tab: Any) -> None:
    tab = open_tab("?person=0.1.0")
    tab.button("Advance by 1 hour").click()
    tab.sees(tab.page.locator("#clock"), "10:00:00")
    session = tab.context.new_cdp_session(tab.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "searchbox", "combobox", "textbox", "image", "img", "region"}
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles | {"DisclosureTriangle"}
    ]
    assert [role for role, name in found if not name.strip()] == []
    assert {"button", "link", "searchbox", "combobox"} <= {role for role, _ in found}
    assert any("Slots in use of Acme over the last" in name for _, name in found)


def test_a_server_that_goes_is_missed_and_one_that_comes_back_is_found(
    browser: Any,
) -> None:
    scenario = WORLD.scenario()
    with dialsim.Sandbox(scenario) as sandbox:
        port = urlsplit(sandbox.url).port
        tab = Tab(browser, sandbox.url)
        tab.button("Advance by 1 hour").click()
        tab.sees(tab.page.locator("#clock"), "10:00:00")
    notice = tab.page.locator("#connection")
    tab.sees(notice, "Connection lost")
    with dialsim.Sandbox(scenario, port=port):
        notice.filter(has_text=re.compile("^$")).wait_for(state="attached")
        tab.sees(tab.page.locator("#clock"), "09:00:00")
        tab.context.close()


_OUTLINE = "parseFloat(getComputedStyle(document.activeElement).outlineWidth)"

_TOO_FAINT = """
(() => {
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${walker.currentNode.textContent.trim()}`);
  }
  return faint;
})()
"""
