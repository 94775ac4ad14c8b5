"""The page without a browser: its parts, its routes, and whose data it shows."""

from __future__ import annotations

import asyncio
import html
import re
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from tests.sandbox.asking import NOW, WORLD, Client

import dialsim
from dialsim.interface.instants import format_instant
from dialsim.sandbox.commands import SteerCampaign
from dialsim.sandbox.control.clock import ClockState
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.page import KINDS, SHARES
from dialsim.sandbox.page.sections import CAMPAIGNS_A_PAGE, CampaignProgress, Sections, render
from dialsim.sandbox.page.view import PagePosition, View, find_people, latest_webhooks
from dialsim.testing import Sketch

HOME = {"Host": "127.0.0.1:8400"}
OWN = "/_dialsim/page"
RUNNING = "cccccccc-0000-4000-8000-000000000003"
NASTY = "<script>alert('x')</script>&\"'"


def client_of(scenario: Any, to: str | None = None) -> Client:
    core = SandboxCore(scenario)
    if to is not None:
        core.simulation.advance(to=to)
    return Client(core)


def ask(client: Client, path: str, method: str = "GET", form: str | None = None) -> httpx.Response:
    body = None if form is None else form.encode()
    return client.ask(method, path, HOME, body)


@pytest.fixture
def client() -> Client:
    return client_of(dialsim.load(WORLD), NOW)


def test_the_root_and_the_bare_prefix_lead_to_the_page(client: Client) -> None:
    for path in ("/", "/_dialsim"):
        answer = ask(client, path)
        assert (answer.status_code, answer.headers["location"]) == (307, "/_dialsim/")


def test_whatever_the_page_loads_comes_from_the_sandbox_under_a_strict_policy(
    client: Client,
) -> None:
    page = ask(client, "/_dialsim/")
    loaded = re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"]+)"', page.text)
    assert len(loaded) == 6
    for path in ["/_dialsim/", *loaded]:
        answer = ask(client, path)
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<style|<script>|\sstyle=|\son\w+=", page.text)
    assert ask(client, f"{OWN}/templates").status_code == 404


@pytest.mark.usefixtures("pictures_unrendered")  # of the export
def test_the_links_at_the_foot_lead_somewhere(client: Client) -> None:
    foot = ask(client, "/_dialsim/").text.partition("<footer>")[2]
    addresses = re.findall('href="([^"]+)"', foot)
    assert addresses == ["/_dialsim/export", "/openapi.json"]
    for address in addresses:
        assert ask(client, address).status_code == 200


def test_texts_of_the_scenario_are_never_markup() -> None:
    person = {"customerName": NASTY, "script": "answered 5s 90s"}
    sketch = Sketch().also(name=NASTY).organization(NASTY, 1)
    sketch = sketch.campaign(NASTY, person, agent=NASTY)
    client = client_of(sketch.scenario(), "2026-01-05T03:00:00Z")
    for path in ("/_dialsim/?person=0.0.0", f"/_dialsim/?find={NASTY}x", f"{OWN}/calls/0.0.0"):
        shown = ask(client, path).text
        assert "&lt;script&gt;" in shown
        assert "<script>alert" not in shown


@pytest.mark.parametrize(
    "query",
    [
        *("?campaigns=0", "?campaigns=-1", "?campaigns=999999999"),
        *("?campaign=9.9", "?person=0.0.99999", "?person=1.2", "?person=7.7.7"),
        *("?find=%00%FF", "?find=" + "9" * 5_000),
    ],
)
def test_an_address_that_makes_no_sense_shows_the_page_all_the_same(
    client: Client, query: str
) -> None:
    answer = ask(client, f"/_dialsim/{query}")
    assert answer.status_code == 200
    assert "Latest calls" in answer.text


# -- buttons ---------------------------------------------------------------------------------------


def test_c4_c5_c6_buttons_are_commands_and_say_why_they_are_refused(client: Client) -> None:
    steps = [
        ("pause", 200, ""),
        ("resume", 200, ""),
        ("resume", 409, "Cannot resume a RUNNING campaign"),
        ("cancel", 200, ""),
        ("pause", 409, "Cannot pause a CANCELLED campaign"),
    ]
    for command, status, text in steps:
        answer = ask(client, f"{OWN}/campaigns/{RUNNING}/{command}", "POST")
        assert (answer.status_code, _text(answer)) == (status, text)
        assert answer.headers["content-type"].startswith("text/html")
    nobody = ask(client, f"{OWN}/campaigns/nobody/pause", "POST")
    assert (nobody.status_code, _text(nobody)) == (404, "Campaign not found")


def test_the_clock_is_moved_by_forms_as_it_is_by_json(client: Client) -> None:
    start = client.core.simulation.at
    moved = ask(client, f"{OWN}/clock", "POST", "by=1h")
    assert (moved.status_code, _text(moved)) == (200, "It is Mon 5 Jan 2026 12:00:00 now.")
    assert client.core.simulation.at == start + 3_600_000
    refused = ask(client, f"{OWN}/clock", "POST", "until=%3Cb%3E")
    assert (refused.status_code, _text(refused)) == (
        400,
        "until must be nextEvent, idle, status or webhooks",
    )
    assert ask(client, f"{OWN}/clock", "POST", "by=60d").status_code == 400


def test_a_speed_that_makes_no_sense_is_refused_in_words(client: Client) -> None:
    for form in ("speed=0", "speed=fast", "speed=1e9", "speed=-1"):
        refused = ask(client, f"{OWN}/clock/run", "POST", form)
        assert refused.status_code == 400, form
        assert _text(refused).startswith("speed must")
    assert ask(client, f"{OWN}/clock/stop", "POST").status_code == 200


def test_a_page_of_another_site_can_not_press_the_buttons(client: Client) -> None:
    elsewhere = HOME | {"Origin": "https://elsewhere.test"}
    for path in (f"{OWN}/campaigns/{RUNNING}/cancel", f"{OWN}/clock"):
        assert client.ask("POST", path, elsewhere, b"by=1h").status_code == 403
    for path in ("/_dialsim/", f"{OWN}/events"):
        assert client.ask("GET", path, {"Host": "elsewhere.test"}).status_code == 403


def test_a_campaign_has_the_buttons_that_its_status_allows(client: Client) -> None:
    text = ask(client, "/_dialsim/").text
    buttons = {
        name: re.findall(rf'aria-label="(\w+ \w+): {name}"', text)
        for name in ("Draft", "Scheduled", "Running", "Paused", "Cancelled", "Expired", "Deleted")
    }
    start, cancel = "Start campaign", "Cancel campaign"
    pause, resume = "Pause dialling", "Resume dialling"
    assert buttons == {
        "Draft": [cancel, start] * 3,  # of three organizations
        "Scheduled": [pause, cancel],
        "Running": [pause, cancel],
        "Paused": [resume, cancel],
        "Cancelled": [],
        "Expired": [],
        "Deleted": [],
    }


# -- forms -----------------------------------------------------------------------------------------

DRAFT = "cccccccc-0000-4000-8000-000000000001"


def sent(client: Client, path: str, **fields: str) -> tuple[int, str]:
    """Return the status and the message of a form."""
    answer = ask(client, f"{OWN}/{path}", "POST", urlencode(fields))
    return answer.status_code, html.unescape(_text(answer))


def test_a_campaign_is_started_now_unless_the_form_says_more(client: Client) -> None:
    path = f"campaigns/{DRAFT}/start"
    refused = sent(client, path, maxAttempts="2", retryInterval="lots", endDateTime="", more="")
    assert refused == (400, "retryInterval must be an integer number")
    for attempts in ("inf", "nan", "9" * 5_000, "0"):
        assert sent(client, path, maxAttempts=attempts)[0] == 400, attempts
    twice = sent(client, path, maxAttempts="2", more='{"maxAttempts": 3}')
    assert twice == (400, "maxAttempts is given twice: in its field and in the JSON")
    for more, says in (("{", "the JSON must be valid JSON"), ("[]", "the JSON must be an object")):
        status, text = sent(client, path, more=more)
        assert (status, text[: len(says)]) == (400, says)
    more = '{"callerIds": ["021000001"]}'
    assert sent(client, path, startDateTime="", maxAttempts="2", more=more) == (200, "")
    account, view = client.core.campaign(DRAFT)
    assert view.campaign.status == "RUNNING"
    place = (account.block.position, view.campaign.block.position)
    request = client.core.simulation.log.requests[place].request
    assert (request.max_attempts, request.caller_ids) == (2, ("021000001",))
    assert format_instant(request.start_date_time) == "2026-01-05T04:00:00.000Z"
    again = sent(client, path)
    assert again[0] == 409
    assert f'id="campaign-{place[0]}-{place[1]}-start"' not in ask(client, "/_dialsim/").text


def test_a_campaign_is_added_as_by_the_control_plane(client: Client) -> None:
    calls = urlencode({"organization": "Acme", "agent": "Survey"})
    assert f'value="{html.escape(calls)}"' in ask(client, "/_dialsim/").text
    for number, people in enumerate(
        ("tel\r\n0890000001\r\n0890000002\r\n", '[{"tel": "0890000003"}]', '{"count": 5}')
    ):
        name = f"New {number}"
        answer = ask(
            client,
            f"{OWN}/campaigns",
            "POST",
            urlencode({"calls": calls, "name": name, "recipients": people, "more": ""}),
        )
        assert answer.status_code == 200, answer.text
        count = (2, 1, 5)[number]
        assert f"Added {name}: DRAFT, people: {count}." in answer.text
        shown = re.findall('href="([^"]+)#([^"]+)"', answer.text)
        assert len(shown) == 1
        assert f'id="{shown[0][1]}"' in ask(client, html.unescape(shown[0][0])).text
    before = len(client.core.accounts[0].views)
    for fields, says in (
        ({"name": "New 0", "recipients": '{"count": 1}'}, ["New 0"]),
        ({"name": "A", "recipients": "tel\nx\ny"}, ['"x"', '"y"']),  # all errors are listed
        ({"name": "A", "recipients": "{"}, ["recipients must be valid JSON"]),
        ({"name": "A", "recipients": ""}, ["recipients"]),
        ({"name": "A", "recipients": '{"count": 1}', "calls": ""}, ["organization must be"]),
    ):
        status, text = sent(client, "campaigns", **({"calls": calls} | fields))
        assert status == 400, fields
        assert all(part in text for part in says), text
    assert len(client.core.accounts[0].views) == before


def test_organizations_and_agents_are_added_and_can_be_chosen_from_then_on(client: Client) -> None:
    status, text = sent(client, "organizations", name=NASTY, like="Acme", maxConcurrentCalls="3")
    key = client.core.api_key(len(client.core.accounts) - 1)
    assert (status, text) == (
        200,
        f"Added {NASTY}. Its API key, which is not shown again: {key}",
    )
    assert sent(client, "organizations", name=NASTY, like="Acme")[0] == 400
    assert sent(client, "agents", organization=NASTY, name="Kind", more='{"x": 1}')[0] == 400
    assert sent(client, "agents", organization=NASTY, name="Kind") == (
        200,
        f"Added Kind to {NASTY}.",
    )
    page = ask(client, "/_dialsim/").text
    assert "<script>alert" not in page
    chosen = urlencode({"organization": NASTY, "agent": "Kind"})
    assert f'value="{html.escape(chosen)}"' in page
    assert sent(client, "campaigns", calls=chosen, name="K", recipients='{"count": 1}')[0] == 200


def test_limit_url_and_leave_to_call_of_an_organization_are_set_one_by_one(client: Client) -> None:
    path = f"organizations/{client.core.accounts[0].identifier}"
    dialler = client.core.simulation.dialler(0)
    assert sent(client, path, maxConcurrentCalls="9") == (200, "")
    for wrong in ("", "many", "-1", "1e9", "1.5", "inf", "nan", "9" * 5_000):
        status, text = sent(client, path, maxConcurrentCalls=wrong)
        assert status == 400
        assert text.startswith("maxConcurrentCalls must")
    assert sent(client, path, webhookUrl="http://127.0.0.1:9/hook") == (200, "")
    assert sent(client, path, webhookUrl="ftp://x")[0] == 400
    assert client.core.webhook_url(0) == "http://127.0.0.1:9/hook"
    assert "Results are sent to http://127.0.0.1:9/hook" in ask(client, "/_dialsim/").text
    assert sent(client, path, webhookUrl="") == (200, "")
    assert client.core.webhook_url(0) is None
    assert sent(client, path, callingAllowed="false") == (200, "")
    assert (dialler.limit, dialler.calling_allowed) == (9, False)
    assert "<strong>may not call</strong>" in ask(client, "/_dialsim/").text
    assert sent(client, "organizations/nobody", webhookUrl="") == (404, "Organization not found")


def test_p6_a_number_is_given_a_script_which_is_listed_until_it_is_ended(client: Client) -> None:
    assert "No number has a script" in ask(client, "/_dialsim/").text
    for wrong in ({"tel": "x", "script": "busy 3s"}, {"tel": "0810000004", "script": ""}):
        assert sent(client, "scripts", **wrong)[0] == 400
    done = sent(client, "scripts", tel="0810000004", script="busy 3s; answered 5s 60s")
    assert done == (200, "The next calls to 0810000004: busy 3s; answered 5s 1m.")
    assert "0810000004: busy 3s; answered 5s 1m" in ask(client, "/_dialsim/").text
    assert sent(client, "scripts/end", tel="0810000004") == (200, "")
    assert client.core.simulation.scripts == {}


def test_the_speed_that_is_really_reached_is_said_where_it_is_less() -> None:
    now = "2026-01-05T04:00:00.000Z"
    state = {"now": now, "next_event_at": None, "status": "advancing", "held_by_journal": None}
    for reached, said in (
        (None, ""),
        (590, ""),
        (144.2, ", 144 × reached"),
        (6.02, ", 6.02 × "),
    ):
        clock = ClockState(mode="running", speed=600, speed_reached=reached, **state)
        shown = re.sub("<[^>]*>", "", render("clock", clock=clock))
        assert f"running, 600 × real time{said}" in shown
        assert ("reached" in shown) == bool(said)


# -- webhooks --------------------------------------------------------------------------------------


def test_w6_results_without_a_url_are_listed_as_kept_with_their_bodies(client: Client) -> None:
    listed = ask(client, "/_dialsim/?campaign=0.2").text.partition('id="webhooks"')[2]
    shown = re.findall(f'hx-get="({OWN}/webhooks/[^"]*)"', listed)
    # two attempts of two people, and a conversation
    assert len(shown) == len({*shown}) > 2
    for path in shown:
        body = ask(client, path)
        assert body.status_code == 200
        assert "Kept, not sent: the organization had no webhook URL." in body.text
        assert "&#34;CALL_RESULT&#34;" in body.text
    again = ask(client, f"{shown[0]}/again", "POST")
    assert again.status_code == 409
    assert _text(again)


def test_the_webhooks_listed_are_the_last_of_all_that_the_control_plane_lists(
    client: Client,
) -> None:
    everything = client.ask("GET", "/_dialsim/webhooks", HOME).json()["webhooks"]
    lines = latest_webhooks(client.core, View())
    assert [(line["at"], line["status"]) for line in lines] == [
        (row["at"], row["status"]) for row in reversed(everything)
    ]


@pytest.mark.parametrize("number", ["0", "-1", "9999", "9" * 5_000, "1.0", "0.2.0.1.0.1", "x"])
def test_a_webhook_that_there_is_not_is_missing(client: Client, number: str) -> None:
    for path, method in ((number, "GET"), (f"{number}/again", "POST")):
        answer = ask(client, f"{OWN}/webhooks/{path}", method)
        assert (answer.status_code, _text(answer)) == (404, "Webhook not found")


# -- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("kind=api%3Derror%26status%3D503&next=2", "api: error, next: 2, status: 503"),
        (
            "kind=api%3Dslow%26delay%3D2s&next=2&share=0.1",
            "api: slow, next: 2, share: 0.1, delay: 2s",
        ),
        (
            "kind=webhooks%3Dtwice&next=2&organization=Beta",
            "webhooks: twice, next: 2, organization: Beta",
        ),
    ],
)
def test_a_fault_is_asked_for_listed_counted_and_cleared(
    client: Client, form: str, says: str
) -> None:
    assert "Nothing goes wrong on purpose" in ask(client, "/_dialsim/").text
    assert ask(client, f"{OWN}/faults", "POST", form).status_code == 200
    shown = ask(client, "/_dialsim/").text
    assert says in shown
    assert "struck 0 of 2" in shown
    assert ask(client, f"{OWN}/faults/1/clear", "POST").status_code == 200
    assert "Nothing goes wrong on purpose" in ask(client, "/_dialsim/").text
    for number in ("1", "x", "9" * 5000):
        gone = ask(client, f"{OWN}/faults/{number}/clear", "POST")
        assert (gone.status_code, _text(gone)) == (404, "Fault not found")


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_form_offers_is_a_fault_that_can_be_had(client: Client, kind: str) -> None:
    for share in SHARES:
        form = urlencode({"kind": kind, "next": "3", "share": share, "organization": "Acme"})
        assert ask(client, f"{OWN}/faults", "POST", form).status_code == 200
    assert len([*client.core.faults]) == len(SHARES)


def test_a_fault_that_makes_no_sense_is_refused_in_words(client: Client) -> None:
    for form in ("kind=api%3Derror&next=lots", "kind=api%3Derror&next=0", "next=1", "kind=x%3D1"):
        refused = ask(client, f"{OWN}/faults", "POST", form)
        assert refused.status_code == 400
        assert _text(refused)


# -- people ----------------------------------------------------------------------------------------


def test_one_person_is_found_by_number_recipient_or_call_and_their_story_told(
    client: Client,
) -> None:
    _, campaign_view = client.core.campaign(RUNNING)
    campaign_view.catch_up()
    call = campaign_view.call(1, client.core.simulation.at)["id"]
    for text in ("081-000 0005", "eeeeeeee-0000-4000-8000-000000000302", call):
        answer = ask(client, f"/_dialsim/?campaign=0.1&find={text}")
        assert answer.status_code == 303, text
        assert answer.headers["location"] == ("/_dialsim/?campaign=0.1&person=0.2.1#person-title")
    story = ask(client, "/_dialsim/?person=0.2.1").text
    assert "attempt 1: dialled from" in story
    assert "the call ends: NO_ANSWER" in story
    assert "call 2 is scheduled: a retry is due" in story


def test_a_number_of_several_people_lists_them_and_an_unknown_one_says_so(client: Client) -> None:
    several = ask(client, "/_dialsim/?find=0830000001").text
    assert "2 people are found" in several
    assert re.findall(r'\?person=([\d.]+)#person-title">', several) == ["2.0.0", "2.1.0"]
    assert "Nobody is found by “0999”" in ask(client, "/_dialsim/?find=0999").text


def test_d1_who_is_masked_is_shown_masked_everywhere_and_not_found_by_number() -> None:
    client = client_of(dialsim.load(WORLD), "2026-01-05T06:00:00Z")
    for path in ("/_dialsim/?person=0.2.0", f"{OWN}/calls/0.2.0"):
        shown = ask(client, path).text
        assert "08xxxxxx04" in shown
        assert "0810000004" not in shown
        assert "สมชาย" not in shown
    assert "personal data removed" in ask(client, "/_dialsim/?person=0.2.0").text
    assert PagePosition(0, 2, 0) not in find_people(client.core, "0810000004")


# -- live ------------------------------------------------------------------------------------------


def test_the_stream_sends_everything_first_then_only_what_changes() -> None:
    core = SandboxCore(dialsim.load(WORLD))
    clock = core.clock
    sections = Sections(core)

    async def scene() -> tuple[list[str], list[str]]:
        events = sections.events(View())
        first = [await anext(events) for _ in range(15)]
        await clock.advance_by(250)  # nothing happens, but it is later
        second = [await anext(events)]
        core.carry_out(SteerCampaign(organization=0, campaign=2, kind="pause"))
        second.append(await anext(events))
        return [*map(_name, first)], [*map(_name, second)]

    first, second = asyncio.run(scene())
    assert first == [
        "retry",
        *("clock", "news", "organizations", "snapshots", "campaigns", "calls", "webhooks"),
        *("requests", "person", "scripts"),
        *("organization-options", "agent-options", "campaign-options", "faults"),
    ]
    assert second == ["clock", "news"]


def test_an_event_of_several_lines_is_one_message() -> None:
    core = SandboxCore(dialsim.load(WORLD))
    sections = Sections(core)

    async def first_event() -> bytes:
        events = sections.events(View())
        await anext(events)
        return await anext(events)

    name, *lines, end, after = asyncio.run(first_event()).decode().split("\n")
    assert (name, end, after) == ("event: clock", "", "")
    assert all(line.startswith("data: ") for line in lines)
    shown = "\n".join(line.removeprefix("data: ") for line in lines)
    assert shown == sections.render(View())["clock"].rstrip("\n")


def test_a_section_is_another_one_when_something_has_happened() -> None:
    core = SandboxCore(dialsim.load(WORLD))
    sections = Sections(core)
    before = sections.render(View())
    assert sections.render(View()) == before
    asyncio.run(core.clock.advance_by(3_600_000))
    assert sections.render(View())["calls"] != before["calls"]


def test_many_campaigns_come_by_the_page() -> None:
    sketch = Sketch(lines=1)
    for number in range(CAMPAIGNS_A_PAGE + 3):
        sketch = sketch.campaign(f"C{number}", "busy 1s")
    client = client_of(sketch.scenario())
    first, second = (ask(client, f"/_dialsim/?campaigns={page}").text for page in (1, 2))
    assert first.count('<article id="campaign-') == CAMPAIGNS_A_PAGE
    assert second.count('<article id="campaign-') == 3
    assert 'aria-current="page">2</a>' in second


def test_progress_adds_up_to_the_people_of_each_campaign_at_any_time() -> None:
    core = SandboxCore(dialsim.load(WORLD))
    for _ in range(12):
        for account in core.accounts:
            for campaign_view in account.views:
                progress = CampaignProgress.of(campaign_view)
                parts = (progress.reached, progress.unreached, progress.under_way, progress.waiting)
                assert sum(parts) == progress.people == campaign_view.total_recipients
                assert min(*parts, progress.queued) >= 0
        core.simulation.advance(hours=1)


def _text(answer: httpx.Response) -> str:
    """Return the text without the markup."""
    return re.sub("<[^>]*>", "", answer.text).strip()


def _name(event: bytes) -> str:
    return event.decode().partition("\n")[0].removeprefix("event: ").partition(":")[0]


def test_snapshots_are_taken_restored_and_deleted_and_a_refusal_is_told(client: Client) -> None:
    at = client.core.at
    assert "kept as snapshot-1" in ask(client, f"{OWN}/snapshots", "POST", "name=").text
    assert "kept as noon" in ask(client, f"{OWN}/snapshots", "POST", "name=noon").text
    taken = ask(client, f"{OWN}/snapshots", "POST", "name=noon")
    assert (taken.status_code, "a snapshot &#34;noon&#34; already" in taken.text) == (409, True)
    assert "noon: " in Sections(client.core).render(View())["snapshots"]
    client.core.simulation.advance(hours=1)
    assert ask(client, f"{OWN}/snapshots/noon/restore", "POST").status_code == 200
    assert client.core.at == at
    assert ask(client, f"{OWN}/reset", "POST").status_code == 200
    assert client.core.at < at
    assert ask(client, f"{OWN}/snapshots/noon/delete", "POST").status_code == 200
    assert [*client.core.snapshots] == ["snapshot-1"]
    gone = ask(client, f"{OWN}/snapshots/noon/restore", "POST")
    assert (gone.status_code, "Snapshot not found" in gone.text) == (404, True)
