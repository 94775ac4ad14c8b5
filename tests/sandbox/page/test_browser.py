"""The page in headless Chromium, over a real server: watched, steered, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import dialsim
from dialsim.testing import Sketch
from dialsim.testing.receiver import Answer, Receiver

THAI = "แจ้งเตือนนัดหมาย"
WORLD = (
    Sketch(lines=2)
    .campaign("January", recipients={"count": 200}, maxAttempts=2, retryInterval=3_600_000)
    .campaign(THAI, "answered 5s 90s", "busy 1s")
    .campaign("Never begun", recipients={"count": 3}, requested=None)
)


class Tab:
    """A tab with the page of a sandbox; it records console messages and requests."""

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

    def open(self, summary: str) -> None:
        """Open what is folded up."""
        self.page.locator("summary").filter(has_text=re.compile(f"^{summary}")).click()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def sees(self, locator: Any, text: str) -> None:
        """Wait until an element contains a text."""
        locator.filter(has_text=re.compile(text, re.DOTALL)).wait_for()

    def focused(self) -> str:
        """Return the accessible name or the text of the focused element."""
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
    tab.sees(tab.page.get_by_role("article", name="Acme"), "2 of 2 lines in use")
    january = tab.campaign("January")
    tab.sees(january, "RUNNING.* of 200 done")
    tab.button("Pause dialling: January").click()
    tab.sees(january, "PAUSED")
    tab.sees(tab.page.locator("#news").get_by_role("status"), "January has become PAUSED")
    before = january.locator(".progress").inner_text()
    tab.button("Advance by 1 day").click()
    tab.sees(clock, "Tue 6 Jan 2026 10:00:00")
    tab.sees(january, "PAUSED")
    tab.sees(tab.page.get_by_role("article", name="Acme"), "0 of 2 lines in use")
    assert "200 done" in before
    tab.button("Resume dialling: January").click()
    tab.sees(january, "RUNNING")
    tab.page.once("dialog", lambda dialog: dialog.dismiss())
    tab.button("Cancel campaign: January").click()
    tab.button("Advance to the next event").click()
    tab.sees(january, "RUNNING")
    tab.page.once("dialog", lambda dialog: dialog.accept())
    tab.button("Cancel campaign: January").click()
    tab.sees(january, "CANCELLED.*not reached")
    assert january.get_by_role("button").count() == 0
    tab.button("Advance until idle").click()
    tab.sees(clock, "nothing is left to happen")
    assert tab.loads == 1


def test_the_clock_runs_by_itself_until_it_is_stopped(open_tab: Any) -> None:
    tab = open_tab()
    clock = tab.page.locator("#clock")
    tab.page.get_by_label("Run by itself at").select_option("1 hour a second")
    tab.button("Run clock").click()
    tab.sees(clock, "running, 3,600 × real time")
    tab.sees(tab.campaign("January"), "[1-9][0-9]* of 200 done")
    tab.button("Stop clock").click()
    tab.sees(clock, "moved by hand")
    stopped = clock.inner_text()
    tab.page.wait_for_timeout(600)
    assert clock.inner_text() == stopped
    assert tab.loads == 1


def test_an_advance_is_stopped_by_the_button(browser: Any) -> None:
    months = Sketch(lines=1).campaign("January", recipients={"count": 500})
    with (
        # an advance waits for every result: it takes minutes on the quickest machine
        Receiver(otherwise=Answer(delay=0.5)) as receiver,
        dialsim.Sandbox(months.scenario(), webhook_url=receiver.url) as sandbox,
    ):
        tab = Tab(browser, sandbox.url)
        clock = tab.page.locator("#clock")
        tab.button("Advance until idle").click()
        tab.sees(clock, "advancing")
        tab.button("Stop clock").click()
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
    one.button("Pause dialling: January").click()
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
    tab.button("Pause dialling: January").click()
    alert = tab.campaign("January").get_by_role("alert")
    tab.sees(alert, "Cannot pause a CANCELLED campaign")
    tab.sees(tab.page.locator("#connection"), "Connection lost")
    tab.said.clear()  # the browser itself logs both


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
        delivered.get_by_role("button", name="Send again: this webhook").click()
        tab.sees(lines.first, "sent again")
        assert len(receiver.wait_for(got + 1)) == got + 1
        assert delivered.locator("pre").is_visible()


def test_a_fault_is_added_seen_by_a_client_and_cleared(
    open_tab: Any, sandbox: dialsim.Sandbox
) -> None:
    tab = open_tab()
    faults = tab.page.locator("#faults")
    tab.open("Add a fault")
    tab.page.get_by_label("How often").fill("2")
    tab.button("Add fault").click()
    tab.sees(faults, "api: error.*struck 0 of 2")
    answer = httpx.get(f"{sandbox.url}/api/agent/list", headers={"X-API-Key": sandbox.api_key})
    assert answer.status_code == 503
    tab.sees(faults, "struck 1 of 2")
    tab.button("Clear fault 1").click()
    tab.sees(faults, "Nothing goes wrong on purpose")


def test_everything_can_be_done_with_the_keyboard_and_focus_stays_through_updates(
    open_tab: Any,
) -> None:
    tab = open_tab()
    tab.button("Advance by 1 hour").click()
    tab.sees(tab.page.locator("#clock"), "10:00:00.*ready")
    tab.page.locator("#calls summary").nth(20).wait_for()
    tab.page.reload()
    stops = [tab.focused() for _ in range(60) if tab.press("Tab") is None]
    once = stops[: stops.index("API description") + 1]  # then it begins again
    assert once[:2] == ["Skip to the clock", "Advance by 1 minute"]
    assert once[3:5] == ["Run clock", "Stop clock"]
    assert [stop for stop in once if "January" in stop and "dialling" in stop] == [
        "Pause dialling: January"
    ]
    assert len(once) <= 26  # however many calls, campaigns and webhooks there are
    # a toolbar and a list are one stop each, and arrow keys go on from there
    tab.button("Advance by 1 minute").focus()
    tab.press("ArrowRight", "ArrowRight")
    assert tab.focused() == "Advance by 1 day"
    tab.press("Home", "ArrowLeft")
    assert tab.focused() == "Advance by 1 minute"
    tab.button("Pause dialling: January").focus()
    walked = [tab.focused() for _ in range(4) if tab.press("ArrowDown") is None]
    start = "Start campaign: Never begun"
    assert walked == ["Cancel campaign: January", "Cancel campaign: Never begun", start, start]
    tab.press("Home", "Enter")
    tab.sees(tab.campaign("January"), "PAUSED")
    tab.button("Resume dialling: January").wait_for()
    assert tab.focused() == "Resume dialling: January"
    assert tab.page.evaluate(_OUTLINE) >= 2
    tab.press("Space")
    tab.button("Pause dialling: January").wait_for()
    assert tab.focused() == "Pause dialling: January"
    tab.page.once("dialog", lambda dialog: dialog.accept())
    tab.press("ArrowRight", "Enter")
    tab.sees(tab.campaign("January"), "CANCELLED")
    assert tab.focused() == "January"  # the button is gone, its heading is not


def test_a_long_list_says_that_it_scrolls_and_what_is_opened_in_it_comes_into_view(
    open_tab: Any,
) -> None:
    tab = open_tab(viewport={"width": 390, "height": 700})
    calls = tab.page.get_by_role("group", name="Latest calls")
    hint = tab.page.locator("#calls-hint")
    assert not tab.page.locator("#webhooks-hint").is_visible()  # an empty list doesn't scroll
    tab.button("Advance by 1 hour").click()
    tab.sees(tab.page.locator("#clock"), "10:00:00.*ready")
    tab.sees(hint, "50 calls, newest first: the list scrolls")
    tab.page.reload()  # from now on nothing is new
    tab.sees(hint, "50 calls, newest first: the list scrolls")
    tab.page.locator("#calls summary").first.focus()
    tab.press("End")
    last = tab.page.locator("#calls details").last
    stood = calls.evaluate("list => list.scrollTop")
    assert stood > 0
    tab.press("Enter")
    body = last.locator("pre")
    body.wait_for()
    tab.page.wait_for_function(_IN_VIEW, arg=last.element_handle())
    assert calls.evaluate("list => list.scrollTop") > stood
    tab.press("Tab")
    assert tab.focused() == "The whole story of this person"
    tab.press("Escape")
    body.wait_for(state="hidden")
    assert tab.page.evaluate("document.activeElement.parentElement.id") == last.get_attribute("id")
    tab.page.wait_for_function(
        "([list, at]) => list.scrollTop === at", arg=[calls.element_handle(), stood]
    )


def test_a_client_that_is_tested_gets_its_whole_world_from_the_page(
    open_tab: Any, sandbox: dialsim.Sandbox
) -> None:
    tab = open_tab()
    said = tab.page.locator("#organizations-said")
    # an organization, refused at first
    tab.open("Add an organization")
    form = tab.page.get_by_role("form", name="Add an organization")
    name, more = form.get_by_label("Name"), form.get_by_label("More of its block")
    name.fill("Acme")
    form.get_by_label("Copy settings and agents of").select_option("Acme")
    more.fill('{"priority": 1}')
    form.get_by_role("button").click()
    tab.sees(said.get_by_role("alert"), "priority.*Acme|Acme.*priority")
    assert (name.input_value(), more.input_value()) == ("Acme", '{"priority": 1}')
    name.fill("Tenant")
    more.fill("")
    form.get_by_role("button").click()
    tab.sees(said, "Added Tenant. Its API key, which is not shown again: sim_")
    key = said.locator("code").inner_text()
    assert name.input_value() == ""
    # its agent
    tab.open("Add an agent")
    form = tab.page.get_by_role("form", name="Add an agent")
    form.get_by_label("Organization").select_option("Tenant")
    form.get_by_label("Name").fill("Polite")
    form.get_by_role("button").click()
    tab.sees(said, "Added Polite to Tenant")
    answer = httpx.get(f"{sandbox.url}/api/agent/list", headers={"X-API-Key": key}).json()
    assert answer["data"][0]["name"] == "Polite"
    # its campaign
    tab.open("Add a campaign")
    form = tab.page.get_by_role("form", name="Add a campaign")
    said, people = tab.page.locator("#campaigns-said"), form.get_by_label("People (recipients)")
    form.get_by_label("Organization and agent").select_option("Polite (Tenant)")
    form.get_by_label("Name").fill("May")
    people.fill("telephone\n0812345678")
    form.get_by_role("button").click()
    tab.sees(said.get_by_role("alert"), "tel")
    assert people.input_value() == "telephone\n0812345678"
    people.fill("tel,customerName\n0812345678,มาลี\n0812345679,<b>")
    form.get_by_role("button").click()
    tab.sees(said, "Added May: DRAFT, people: 2.")
    # the calls to this number
    tab.open("Set a script for a number")
    form = tab.page.get_by_role("form", name="Set a script for a number")
    form.get_by_label("Phone number").fill("0812345678")
    form.get_by_label("Script").fill("sings")
    form.get_by_role("button").click()
    tab.sees(tab.page.locator("#scripts-said").get_by_role("alert"), "sings")
    form.get_by_label("Script").fill("busy 3s; answered 5s 90s")
    form.get_by_role("button").click()
    tab.sees(tab.page.locator("#scripts"), "0812345678: busy 3s; answered 5s")
    form.get_by_label("Phone number").fill("0812345670")
    form.get_by_label("Script").fill("noAnswer 25s")
    form.get_by_role("button").click()
    tab.button("End script of 0812345670").click()
    tab.button("End script of 0812345670").wait_for(state="detached")
    # its limit and URL
    card = tab.page.get_by_role("article", name="Tenant")
    card.locator("summary").click()
    limit, url = card.get_by_label("Most calls at a time"), card.get_by_label("Webhook URL (")
    limit.fill("lots")
    card.get_by_role("button", name="Set limit").click()
    tab.sees(card.get_by_role("alert"), "maxConcurrentCalls must be")
    with Receiver() as receiver:
        url.fill(receiver.url)
        sandbox.clock.advance(seconds=1)  # an update of the page
        tab.sees(tab.page.locator("#clock"), "09:00:01")
        assert (limit.input_value(), url.input_value()) == ("lots", receiver.url)
        limit.fill("7")
        card.get_by_role("button", name="Set limit").click()
        tab.sees(card, "0 of 7 lines in use")
        card.get_by_role("button", name="Set URL").click()
        tab.sees(card, f"Results are sent to {re.escape(receiver.url)}")
        sandbox.set_concurrency(8, organization="Tenant")
        tab.sees(card, "0 of 8 lines in use")
        assert limit.input_value() == "8"  # fields without focus are updated
        # the start
        may = tab.campaign("May")
        may.locator("summary").click()
        may.get_by_label("Calls for each person").fill("2")
        may.get_by_label("Wait before a retry").fill("5")
        may.get_by_role("button", name="Start campaign").click()
        tab.sees(may.get_by_role("alert"), "retryInterval must be at least 300000 ms")
        may.get_by_label("Wait before a retry").fill("300000")
        may.get_by_role("button", name="Start campaign").click()
        tab.sees(may, "RUNNING")
        tab.button("Advance by 1 hour").click()
        tab.sees(tab.page.locator("#clock"), "10:00:01.*ready")
        tab.sees(may, "2 of 2 done")
        got = [one.json["payload"] for one in receiver.requests]
        hers = [one["call"] for one in got if one["recipient"]["tel"] == "0812345678"]
        assert sorted(call["callStatus"] for call in hers) == ["BUSY", "COMPLETED"]
    tab.sees(tab.page.locator("#scripts"), "No number has a script")
    card.get_by_role("button", name="Forbid starting campaigns").click()
    tab.sees(card, "may not call")
    assert tab.loads == 1
    # the browser itself logs the five refusals
    assert [said.partition(":")[0] for said in tab.said] == ["Failed to load resource"] * 5
    tab.said.clear()


def test_a_line_that_is_read_stays_while_calls_go_by(open_tab: Any) -> None:
    tab = open_tab("?campaign=0.0")
    tab.button("Advance by 1 day").click()
    first = tab.page.locator("#calls summary").first
    first.wait_for()
    first.focus()
    focused = tab.focused()
    for _ in range(3):
        tab.page.evaluate("document.getElementById('move-3').click()")
        tab.page.wait_for_timeout(600)
    assert tab.focused() == focused


LONG = ("X" * 60 + THAI * 4 + '<b>&"' + "many words of a name " * 9)[:200]


def test_the_page_fits_its_screen_and_can_be_read_with_long_names_too(browser: Any) -> None:
    person = {"tel": "0812345678", "customerName": LONG, "script": "answered 5s 90s"}
    world = WORLD.campaign(LONG, person).campaign(THAI * 12, "busy 1s", requested=None)
    world = world.organization(LONG, 2).campaign(LONG, "busy 1s")
    with dialsim.Sandbox(world.scenario()) as sandbox:
        sandbox.clock.advance(days=1)
        for width, scheme in ((320, "dark"), *product((390, 1280), ("light", "dark"))):
            tab = Tab(
                browser,
                sandbox.url,
                "?person=0.3.0",
                viewport={"width": width, "height": 844},
                color_scheme=scheme,
            )
            tab.page.evaluate(
                "document.querySelectorAll('details.form').forEach(e => { e.open = true; })"
            )
            tab.page.locator("#calls summary").first.click()
            tab.page.locator("#calls pre").wait_for()
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.page.evaluate(_SPILLS) == []
            dark = tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != (
                "rgb(255, 255, 255)"
            )
            assert dark == (scheme == "dark")
            assert tab.page.evaluate(_TOO_FAINT) == []
            assert tab.said == []
            tab.context.close()


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
    assert any("Lines in use of Acme over the last" in name for _, name in found)


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

_IN_VIEW = """
line => {
  const [inner, outer] = [line, line.closest(".lines")].map(e => e.getBoundingClientRect());
  return inner.top >= outer.top - 1 && outer.top >= -1 && inner.top < innerHeight - 100
    && (inner.bottom <= outer.bottom + 1 || inner.top <= outer.top + 8);
}
"""

_SPILLS = """
[...document.querySelectorAll("main *")].filter(e => e.checkVisibility()
  && getComputedStyle(e).overflowX === "visible" && !e.matches("svg *")
  && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0
).map(e => e.outerHTML.slice(0, 200))
"""
"""Elements whose content runs out of them on the side."""

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


def test_a_team_keeps_states_goes_back_to_them_and_starts_anew(open_tab: Any) -> None:
    tab, other = open_tab(), open_tab()
    clock, snapshots = tab.page.locator("#clock"), tab.page.locator("#snapshots")
    said = tab.page.locator("#snapshots-said")
    tab.button("Advance by 1 hour").click()
    tab.sees(clock, "10:00:00")
    tab.page.get_by_label("Name of a snapshot").fill("after lunch")
    tab.button("Take snapshot").click()
    tab.sees(said.get_by_role("alert"), "name must be 1 to 64 letters")
    tab.page.get_by_label("Name of a snapshot").fill("before")
    tab.button("Take snapshot").click()
    tab.sees(snapshots, "before: Mon 5 Jan 2026 10:00:00")
    other.sees(other.page.locator("#snapshots"), "before: Mon 5 Jan 2026 10:00:00")
    progress = tab.campaign("January").locator(".progress").inner_text()
    tab.button("Advance by 1 hour").click()
    tab.sees(clock, "11:00:00")
    tab.page.once("dialog", lambda dialog: dialog.dismiss())
    tab.button("Restore before").click()
    tab.page.once("dialog", lambda dialog: dialog.accept())
    tab.button("Restore before").click()
    tab.sees(said, "The sandbox is as it was in before")
    tab.sees(clock, "10:00:00")
    other.sees(other.page.locator("#clock"), "10:00:00")
    assert tab.campaign("January").locator(".progress").inner_text() == progress
    tab.page.once("dialog", lambda dialog: dialog.accept())
    tab.button("Reset to the start").click()
    tab.sees(clock, "09:00:00")
    tab.sees(snapshots, "before: ")
    tab.page.once("dialog", lambda dialog: dialog.accept())
    tab.button("Delete before").click()
    tab.sees(snapshots, "No snapshot yet")
    assert (tab.loads, other.loads) == (1, 1)
    assert [text.partition(":")[0] for text in tab.said] == ["Failed to load resource"]
    tab.said.clear()  # the browser itself logs the refused name


def test_a_team_asks_how_it_goes_on(open_tab: Any) -> None:
    tab = open_tab()
    tab.page.set_default_timeout(60_000)  # a hundred runs
    tab.button("Forecast how it goes on").click()
    told = tab.page.locator("#forecast-said")
    tab.sees(told, "By 100 runs from Mon 5 Jan 2026 09:00:00 on")
    tab.sees(told, r"January \(Acme\): 1[0-9][0-9] of 200 people reached in the end")
    tab.sees(tab.page.locator("#clock"), "09:00:00")
