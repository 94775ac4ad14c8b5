"""Destinations of results: by default nothing leaves the machine."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.serving import served
from tests.sandbox.webhooks.receiving import Steered

import dialsim
from cli.program import dialsim as run_dialsim
from dialsim.errors import Refused
from dialsim.interface.payload import REFUSED
from dialsim.sandbox.access import Destinations
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.outbox import Delivery
from dialsim.sandbox.restart import begin, resume
from dialsim.sandbox.sender import Sender
from dialsim.scenario.service import Service
from dialsim.testing import Receiver, Sketch

FOREIGN, OTHER = "https://example.test/hook", "http://192.0.2.1/hook"
BUSY = Sketch(lines=3).campaign("January", "busy 1s", "busy 1s", "busy 1s")
SENT = BUSY.having(webhook={"url": FOREIGN})

_watching: list[list[tuple[str, Any]]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        place = arguments[0] if event == "socket.getaddrinfo" else arguments[1][0]
        _watching[-1].append((event, place))


@contextmanager
def contacts() -> Iterator[list[tuple[str, Any]]]:
    """Collect the look-ups and connections of this process that leave this machine."""
    if not hasattr(contacts, "installed"):  # an audit hook can't be removed
        sys.addaudithook(_audit)
        contacts.installed = True  # type: ignore[attr-defined]
    seen: list[tuple[str, Any]] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.pop()
        seen[:] = [one for one in seen if not _is_here(one[1])]


def _is_here(host: Any) -> bool:
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ip_address(text).is_loopback
    except ValueError:
        return text in ("None", "localhost")


def test_the_watch_sees_lookups_and_connections() -> None:
    with contacts() as seen, socket.socket() as one:
        with pytest.raises(OSError, match=r"."):
            socket.getaddrinfo("name.invalid", 9)
        one.setblocking(False)
        with pytest.raises(OSError, match=r"."):
            one.connect(("192.0.2.1", 9))
    assert seen == [("socket.getaddrinfo", "name.invalid"), ("socket.connect", "192.0.2.1")]


def test_no_packet_leaves_for_a_host_that_nobody_named() -> None:
    scenario = SENT.at(1, "setWebhookUrl", OTHER).scenario()
    with contacts() as seen, dialsim.Sandbox(scenario) as sandbox:
        sandbox.add_organization({"name": "Like it"}, like="Acme")
        sandbox.snapshot("before")
        person = {"tel": "0812345678", "script": "busy 1s"}
        schedule = {"startDateTime": "2026-01-05T02:00:00Z"}
        more = {"name": "More", "agent": "Agent", "recipients": [person], "schedule": schedule}
        sandbox.add_campaign(more, "Like it")
        sandbox.clock.advance(until="idle")
        assert {row.url for row in sandbox.webhooks} == {FOREIGN, OTHER}
        with pytest.raises(Refused, match="kept, not sent"):
            sandbox.resend_webhook(1)
        with pytest.raises(Refused, match="kept, not sent"):
            sandbox.trigger("BUSY", "Acme")
        sandbox.restore("before")
        sandbox.clock.advance(until="idle")
        rows = sandbox.webhooks
    assert seen == []
    assert [(row.status, row.attempt, row.response) for row in rows] == [("kept", None, None)] * 3


def test_what_is_kept_is_listed_like_what_is_sent() -> None:
    with dialsim.Sandbox(SENT.scenario()) as sandbox, Receiver() as receiver:
        sandbox.clock.advance(until="idle")
        kept, summary = sandbox.webhooks, sandbox.result().summary
        assert sandbox.organization().results == "kept"
        sandbox.reset()
        sandbox.set_webhook_url(receiver.url)
        sandbox.clock.advance(until="idle")
        sent = sandbox.webhooks
        assert sandbox.organization().results == "sent"
    assert [row.body for row in kept] == [row.body for row in sent]
    places = [[(row.n, row.at, row.call_id) for row in rows] for rows in (kept, sent)]
    assert places[0] == places[1]
    assert {(row.url, row.status) for row in kept} == {(FOREIGN, "kept")}
    assert len(receiver.requests) == 3
    assert summary is not None


def test_loopback_urls_of_a_scenario_are_sent_to() -> None:
    for host in ("127.0.0.1", "localhost"):
        with Receiver() as receiver:
            url = receiver.url.replace("127.0.0.1", host)
            with dialsim.Sandbox(BUSY.having(webhook={"url": url}).scenario()) as sandbox:
                sandbox.clock.advance(until="idle")
                assert [row.status for row in sandbox.webhooks] == ["delivered"] * 3


def test_keep_sends_nothing_even_to_this_machine_until_a_client_sets_a_url() -> None:
    with Receiver() as receiver:
        here = BUSY.having(webhook={"url": receiver.url}).scenario()
        with dialsim.Sandbox(here, webhook_url="keep") as sandbox:
            sandbox.clock.advance(until="idle")
            assert not receiver.requests
            assert [row.status for row in sandbox.webhooks] == ["kept"] * 3
            sandbox.set_webhook_url(receiver.url)
            assert sandbox.resend_webhook(2).status == "delivered"
            rows = [(row.n, row.status, row.attempt, row.resent) for row in sandbox.webhooks]
            assert rows[-1] == (4, "delivered", 1, True)
        assert len(receiver.requests) == 1


def test_a_url_that_is_asked_for_is_sent_to() -> None:
    assert Destinations(FOREIGN).sends(FOREIGN)
    assert not Destinations(FOREIGN).sends(f"{FOREIGN}/other")
    assert Destinations(everywhere=True).sends(OTHER)
    assert Destinations().sends(OTHER, {OTHER})
    assert not Destinations("keep").sends("http://127.0.0.1:9/")


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1%eth0"])
def test_link_local_addresses_are_called_only_where_they_are_listed(address: str) -> None:
    assert not Destinations().permits("metadata.example", address)
    assert not Destinations(hosts=["metadata.example"]).permits("metadata.example", address)
    assert Destinations(hosts=["169.254.0.0/16", "fe80::/10"]).permits("any.example", address)


def test_hosts_limit_names_and_networks() -> None:
    limited = Destinations(everywhere=True, hosts=["10.0.0.0/8", "hooks.example", "192.0.2.7"])
    assert limited.permits("hooks.example", "203.0.113.5")
    assert limited.permits("any.example", "10.1.2.3")
    assert not limited.permits("other.example", "203.0.113.5")
    assert limited.sends("http://10.1.2.3/hook")
    assert limited.sends("http://any.example/hook")  # the address of the name decides
    assert not limited.sends("http://127.0.0.1:9000/hook")
    assert not Destinations(everywhere=True, hosts=["hooks.example"]).sends("http://any.example/")


@pytest.mark.parametrize("host", ["http://x", "*.example", "10.0.0.0/99", ""])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    done = run_dialsim("serve", "scenarios/first-campaign.yaml", "--webhook-hosts", f"{host},")
    assert done.returncode == 2
    assert "give a host name, an address or a network such as 10.0.0.0/8" in done.stderr


def test_options_that_do_not_go_together() -> None:
    file = "scenarios/first-campaign.yaml"
    both = run_dialsim("serve", file, "--send-webhooks", "--webhook-url", "keep")
    assert (both.returncode, "exclude each other" in both.stderr) == (2, True)
    alone = run_dialsim("serve", "--journal", "a.journal", "--webhook-url", FOREIGN)
    assert (alone.returncode, "goes with a SCENARIO" in alone.stderr) == (2, True)
    excluded = run_dialsim("serve", file, "--webhook-url", "http://169.254.169.254/")
    assert (excluded.returncode, "must not be called" in excluded.stderr) == (2, True)


def responses(url: str, count: int, destinations: Destinations) -> list[int]:
    """Send results to a URL one after the other and return the outcomes."""

    async def send() -> list[int]:
        sender = Sender(Service(), destinations, lambda *_: None)
        made = Delivery(None, url, b"{}", 0, 0)  # type: ignore[arg-type]
        found = [await sender.post(made) for _ in range(count)]
        await sender.close()
        return found

    return asyncio.run(send())


def test_a_name_that_leads_to_an_excluded_address_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(_host: str, port: int, *_more: Any, **_named: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with contacts() as seen:
        assert responses("http://metadata.example/", 1, Destinations(everywhere=True)) == [REFUSED]
    assert seen == []


def test_a_name_is_looked_up_once_in_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fail(host: str, *_more: Any, **_named: Any) -> Any:
        asked.append(host)
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert responses("http://nobody.invalid/", 9, Destinations(everywhere=True)) == [REFUSED] * 9
    assert asked == ["nobody.invalid"]


def test_the_next_address_of_a_name_is_tried_where_the_first_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(_host: str, port: int, *_more: Any, **_named: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", port)) for n in (9, 1)]

    with Receiver() as receiver:
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        url = receiver.url.replace("127.0.0.1", "two.example")
        assert responses(url, 1, Destinations(url)) == [200]


def test_a_client_can_not_set_a_url_that_is_excluded() -> None:
    with dialsim.Sandbox(BUSY.scenario()) as sandbox:
        for url in ("http://169.254.169.254/latest", "http://[fe80::1]/"):
            with pytest.raises(Refused, match="link-local"):
                sandbox.set_webhook_url(url)
            with pytest.raises(Refused, match="link-local"):
                sandbox.trigger("BUSY", url=url)
            block = {"name": "Beta", "maxConcurrentCalls": 1, "webhook": {"url": url}}
            with pytest.raises(Refused, match="link-local"):
                sandbox.add_organization(block)
        assert sandbox.organization().webhook_url is None


def test_the_log_says_once_per_url_that_results_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), dialsim.Sandbox(SENT.scenario()) as sandbox:
        sandbox.clock.advance(until="idle")
    assert [record.getMessage() for record in caplog.records] == [
        f"Results for {FOREIGN} are kept, not sent: no option or client permits that URL"
    ]


@contextmanager
def steered(core: SandboxCore) -> Iterator[Steered]:
    """Serve a core with a journal, which is closed at the end."""
    with served(core) as sandbox:
        yield Steered(core, sandbox.url)
    assert core.journal is not None
    core.journal.close()


def test_a_journal_goes_on_with_what_was_kept_and_with_urls_that_were_set(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    late = SENT.campaign("February", "busy 1s", requested="Tue 09:00", start="Tue 09:00")
    with contacts() as seen, steered(begin(path, late.scenario())) as sandbox:
        sandbox.advance(by="1h")
        rows = sandbox.webhooks
    assert [row["status"] for row in rows] == ["kept"] * 3
    with contacts() as more, steered(resume(path)) as sandbox, Receiver() as receiver:
        assert sandbox.webhooks == rows
        [owner] = sandbox.ask("GET", "/organizations")
        sandbox.ask("PATCH", f"/organizations/{owner['id']}", {"webhookUrl": receiver.url})
    with steered(resume(path, Destinations("keep"))) as sandbox:
        assert sandbox.core.named_urls == {receiver.url}
        sandbox.advance(until="idle")
        assert [row["status"] for row in sandbox.webhooks] == [*["kept"] * 3, *["failed"] * 3]
    assert seen + more == []


def test_results_that_were_sent_are_not_kept_again_by_a_sandbox_that_keeps(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    with Receiver() as receiver:
        here = BUSY.having(webhook={"url": receiver.url}).scenario()
        with steered(begin(path, here)) as sandbox:
            sandbox.advance(until="idle")
            rows = sandbox.webhooks
        with steered(resume(path, Destinations("keep"))) as sandbox:
            sandbox.advance(by="1h")
            assert sandbox.webhooks == rows
