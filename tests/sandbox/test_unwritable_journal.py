"""A sandbox whose journal can't be written for a while does nothing that isn't kept."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.sandbox.asking import NOW, WORLD, Client, control, key
from tests.sandbox.described import OPERATIONS, operation_of, require_as_described
from tests.sandbox.failing_disks import Disk, failing_disk
from tests.sandbox.serving import served
from tests.sandbox.test_journal import entries_of

import dialsim
from dialsim.errors import JournalError
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.journal import Entry, EntryKind
from dialsim.sandbox.page.sections import Sections
from dialsim.sandbox.page.view import View
from dialsim.sandbox.restart import begin, read, resume
from dialsim.testing import Answer, Receiver, Sketch

DRAFT = "/cccccccc-0000-4000-8000-000000000001"
SCHEDULED = "/cccccccc-0000-4000-8000-000000000002"
RUNNING = "/cccccccc-0000-4000-8000-000000000003"
COMPLETED = "/cccccccc-0000-4000-8000-000000000005"
NEW = {"organization": "Acme", "agent": "Reminder", "name": "New", "recipients": [{"tel": "0899"}]}
NOWHERE = {"url": "http://127.0.0.1:9/"}
WAIT = 600.0  # seconds, far more than anything takes


@pytest.fixture(
    params=[
        "full",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("failing fsync", "read-only")),
    ]
)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with failing_disk(request.param, tmp_path) as disk:
        yield disk


@pytest.fixture(autouse=True)
def _is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialsim.sandbox.core.NEXT_TRY", 0.05)


# -- commands --------------------------------------------------------------------------------------


def corpus(folder: Path) -> Client:
    """A sandbox with the corpus' world, at the instant of its requests, and a journal."""
    client = Client(begin(folder / "a.journal", dialsim.load(WORLD)))
    assert control(client, "POST", "/clock/advance", {"to": NOW}).status_code == 200
    return client


def interface(client: Client, method: str, path: str, body: bytes | None = None) -> httpx.Response:
    headers = {"X-API-Key": key("Acme"), "Content-Type": "application/json"}
    response = client.ask(method, f"/api{path}", headers, body)
    require_as_described(method, f"/api{path}", response)
    return response


def everything(client: Client) -> list[Any]:
    """Return all state that commands change; each read must succeed."""
    paths = ("/clock", "/campaigns", "/organizations", "/people", "/faults", "/webhooks")
    read = [control(client, "GET", path) for path in paths]
    read += [interface(client, "GET", f"/campaign{RUNNING}/recipients")]
    assert {answer.status_code for answer in read} == {200}
    return [answer.json() for answer in read]


COMMANDS: tuple[tuple[str, str, Any], ...] = (
    ("PATCH", "/_dialsim/organizations/Acme", {"maxConcurrentCalls": 7}),
    ("PATCH", "/_dialsim/organizations/Beta", {"regenerateApiKey": True}),
    ("POST", "/_dialsim/people", {"tel": "0899", "script": "busy 3s"}),
    ("POST", "/_dialsim/faults", {"webhooks": "late", "next": 1}),
    ("DELETE", "/_dialsim/faults/1", None),
    ("POST", "/_dialsim/faults", {"webhooks": "late", "next": 1}),
    ("DELETE", "/_dialsim/faults", None),
    ("POST", "/_dialsim/organizations", {"name": "Tenant", "like": "Acme"}),
    ("POST", "/_dialsim/agents", {"organization": "Tenant", "name": "Newest"}),
    ("POST", "/_dialsim/trigger", {"status": "BUSY", "organization": "Acme", **NOWHERE}),
    ("POST", "/_dialsim/campaigns", NEW),
    ("POST", f"/api/campaign{DRAFT}/schedule", {"startDateTime": "2026-01-05T05:00:00Z"}),
    ("POST", f"/api/campaign{RUNNING}/pause", None),
    ("POST", f"/_dialsim/campaigns{RUNNING}/resume", None),
    ("POST", f"/_dialsim/campaigns{SCHEDULED}/cancel", None),
    ("DELETE", f"/_dialsim/campaigns{SCHEDULED}", None),
    ("POST", "/_dialsim/calls/{delivered}/reanalyze", None),
    ("PATCH", "/_dialsim/organizations/Acme", {"webhookUrl": "http://127.0.0.1:9/"}),
    ("POST", "/_dialsim/webhooks/1/resend", None),
)
"""Commands in an order in which each of them is possible."""


def command(client: Client, method: str, path: str, body: Any) -> httpx.Response:
    if path.startswith("/_dialsim"):
        return control(client, method, path.removeprefix("/_dialsim"), body)
    content = None if body is None else json.dumps(body).encode()
    return interface(client, method, path.removeprefix("/api"), content)


def test_a_command_that_can_t_be_kept_is_not_carried_out_and_reads_are_answered(
    disk: Disk,
) -> None:
    client = corpus(disk.folder)
    call = control(client, "GET", f"/campaigns{COMPLETED}/calls").json()["calls"][0]["callId"]
    for method, template, body in COMMANDS:
        path, before = template.format(delivered=call), everything(client)
        disk.fail()
        answer = command(client, method, path, body)
        assert (answer.status_code, answer.json()["code"]) == (507, "NOT_KEPT"), path
        assert answer.json()["message"].endswith(f"a.journal can't be written: {disk.says}")
        assert everything(client) == before, path
        disk.recover()
        assert command(client, method, path, body).status_code < 300, path
    assert told_after(client) == everything(client)


def test_whatever_may_be_answered_so_is_tried() -> None:
    described = {name for name, one in OPERATIONS.items() if "507" in one["responses"]}
    tried = {
        operation["operationId"]
        for method, path, _ in COMMANDS
        if (operation := operation_of(method, path)) is not None
    }
    states = {"resetSandbox", "takeSnapshot", "restoreSnapshot", "deleteSnapshot"}
    assert described - tried == {"advanceClock", "setClock"} | states  # see below, test_snapshots


def told_after(client: Client) -> list[Any]:
    """Return the state of another sandbox that resumes from this one's journal after it stopped."""
    journal = client.core.journal
    assert journal is not None
    journal.close()
    return told_by(journal.path)


def told_by(path: Path) -> list[Any]:
    """Return the state of a sandbox resumed from a journal."""
    core = resume(path)
    assert core.journal is not None
    with closing(core.journal):
        return everything(Client(core))


def test_a_refused_command_leaves_nothing_in_the_journal(tmp_path: Path) -> None:
    client = corpus(tmp_path)
    control(client, "PATCH", "/organizations/Acme", {"maxConcurrentCalls": 7})
    kept = entries_of(tmp_path / "a.journal")
    for _ in range(3):
        refused = control(client, "POST", f"/campaigns{RUNNING}/resume")
        assert (refused.status_code, refused.json()["code"]) == (409, "INVALID_CAMPAIGN_STATE")
    assert entries_of(tmp_path / "a.journal") == kept
    assert told_after(client) == everything(client)


def test_a_command_that_was_refused_just_before_a_kill_is_passed_over(tmp_path: Path) -> None:
    """A command is kept before it is carried out; a refused one is removed after that."""
    (tmp_path / "killed").mkdir()
    client = corpus(tmp_path)
    place = {"organization": 0, "campaign": 2}
    limit = {"kind": "changeOrganization", "organization": 0, "changes": {"maxConcurrentCalls": 7}}
    journal = client.core.journal
    assert journal is not None
    for command in ({"kind": "resume", **place}, limit):
        journal.keep(Entry(client.core.at, EntryKind.COMMAND, json.dumps(command).encode()))
        for suffix in ("", "-wal"):
            shutil.copy(f"{journal.path}{suffix}", tmp_path / "killed" / f"a.journal{suffix}")
        if command is not limit:
            for _ in range(2):
                assert told_by(tmp_path / "killed" / "a.journal") == everything(client)
    with pytest.raises(JournalError, match="entry 1 doesn't lead to the state"):
        resume(tmp_path / "killed" / "a.journal")  # it is not the last
    journal.close()


@pytest.mark.parametrize(
    "disk",
    ["full", "failing fsync", pytest.param("read-only", marks=pytest.mark.slow)],
    indirect=True,
)
def test_a_fault_that_can_t_be_counted_does_not_strike(disk: Disk) -> None:
    client = corpus(disk.folder)
    control(client, "POST", "/faults", {"api": "error", "next": 1})
    disk.fail()
    assert interface(client, "GET", "/agent/list").status_code == 200
    assert interface(client, "POST", f"/campaign{RUNNING}/pause").status_code == 507
    disk.recover()
    assert interface(client, "GET", "/agent/list").status_code == 503
    assert told_after(client) == everything(client)


# -- the clock and webhooks ------------------------------------------------------------------------

BUSY = ["busy 1s", "answered 1s 30s", "busy 2s", "answered 2s 9s"]
SKETCH = Sketch(lines=2).campaign("January", *BUSY * 5, maxAttempts=2, retryInterval=300_000)


class Sandbox:
    """A sandbox that is served, with a journal and a receiver."""

    def __init__(self, core: SandboxCore, url: str) -> None:
        self.core = core
        self._http = httpx.Client(
            base_url=f"{url}/_dialsim", timeout=WAIT, trust_env=False, verify=False
        )

    def ask(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        """Return a response with its status."""
        answer = self._http.request(method, path, json=body)
        require_as_described(method, f"/_dialsim{path}", answer)
        assert answer.status_code == status, answer.text
        return answer.json()

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    @property
    def now(self) -> str:
        """Return the instant of the clock."""
        now: str = self.ask("GET", "/clock")["now"]
        return now

    def told(self) -> list[Any]:
        """Return the events so far."""
        campaign = self.ask("GET", "/campaigns")[0]["id"]
        paths = (f"/campaigns/{campaign}/calls", f"/campaigns/{campaign}/transitions")
        told = [self.ask("GET", path) for path in (*paths, "/webhooks", "/faults")]
        for row in told[2]["webhooks"]:
            del row["url"]  # every receiver has its own port
        return told


@contextmanager
def sandbox(core: SandboxCore) -> Iterator[Sandbox]:
    with served(core) as server, closing(Sandbox(core, server.url)) as sandbox:
        yield sandbox
    assert core.journal is not None
    core.journal.close()


def sketch(receiver: Receiver) -> Any:
    return SKETCH.having(webhook={"url": receiver.url}).scenario()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return the final state of a run whose disk never fails."""
    path = tmp_path_factory.mktemp("undisturbed") / "a.journal"
    with Receiver(otherwise=Answer(200)) as receiver, sandbox(begin(path, sketch(receiver))) as it:
        it.ask("POST", "/faults", {"webhooks": "refuse", "next": 3, "share": 0.5}, 201)
        it.ask("POST", "/clock/advance", {"until": "idle"})
        return it.told()


def test_an_advance_ends_where_the_journal_can_t_be_written_and_nothing_leaves_meanwhile(
    disk: Disk, undisturbed: list[Any]
) -> None:
    path = disk.folder / "a.journal"
    with Receiver(otherwise=Answer(200)) as receiver:
        with sandbox(begin(path, sketch(receiver))) as it:
            it.ask("POST", "/faults", {"webhooks": "refuse", "next": 3, "share": 0.5}, 201)
            disk.fail()
            answer = it.ask("POST", "/clock/advance", {"until": "idle"}, 507)
            assert answer["code"] == "NOT_KEPT"
            state = it.ask("GET", "/clock")
            assert disk.says in state["heldByJournal"]
            assert state["status"] == "ready"
            assert it.ask("POST", "/clock/advance", {"until": "idle"}, 507) == answer
            assert receiver.requests == []
            assert it.ask("GET", "/clock") == state
            disk.recover()
            receiver.wait_for(1)  # without a request
            assert it.ask("GET", "/clock") == state | {"heldByJournal": None}
            it.ask("POST", "/clock/advance", {"until": "idle"})
            assert it.told() == undisturbed
        with sandbox(resume(path)) as again:
            assert again.told() == undisturbed


@pytest.mark.parametrize("move", [{"until": "nextEvent"}, {"until": "idle"}, {"by": "1h"}])
def test_webhooks_that_were_held_back_leave_before_the_clock_moves_on(
    disk: Disk, undisturbed: list[Any], move: dict[str, str]
) -> None:
    path = disk.folder / "a.journal"
    with Receiver(otherwise=Answer(200)) as receiver:
        with sandbox(begin(path, sketch(receiver))) as it:
            it.ask("POST", "/faults", {"webhooks": "refuse", "next": 3, "share": 0.5}, 201)
            for _ in range(5):
                disk.fail()
                it.ask("POST", "/clock/advance", {"until": "idle"}, 507)
                disk.recover()
                it.ask("POST", "/clock/advance", move)
            it.ask("POST", "/clock/advance", {"until": "idle"})
            assert it.told() == undisturbed
        with sandbox(resume(path)) as again:
            assert again.told() == undisturbed


def test_what_came_of_a_webhook_is_kept_later_if_it_can_t_be_kept_at_once(
    disk: Disk, undisturbed: list[Any]
) -> None:
    path = disk.folder / "a.journal"
    with Receiver(otherwise=Answer(200)) as receiver:
        with sandbox(begin(path, sketch(receiver))) as it:
            it.ask("POST", "/faults", {"webhooks": "refuse", "next": 3, "share": 0.5}, 201)
            receiver.answer(Answer(200), Answer(200, first=lambda _: disk.fail()))
            it.ask("POST", "/clock/advance", {"until": "idle"}, 507)
            received = len(receiver.requests)
            at = it.now
            assert received <= 6  # those that had left by then
            assert it.ask("GET", "/clock")["heldByJournal"] is not None
            disk.recover()
            wait_until(lambda: it.ask("GET", "/clock")["heldByJournal"] is None)
            wait_until(lambda: not it.ask("GET", "/webhooks?status=underWay")["total"])
            assert it.now == at
        with sandbox(resume(path)) as again:
            again.ask("POST", "/clock/advance", {"until": "idle"})
            assert again.told() == undisturbed
        bodies = [request.body for request in receiver.requests]
        assert len(set(bodies)) == len(bodies)  # none is sent again


def test_a_running_clock_stands_still_until_the_journal_can_be_written_and_goes_on(
    disk: Disk,
) -> None:
    with Receiver(otherwise=Answer(200)) as receiver:
        with sandbox(begin(disk.folder / "a.journal", sketch(receiver))) as it:
            disk.fail()
            it.ask("PUT", "/clock", {"mode": "running", "speed": 600}, 507)
            assert it.ask("GET", "/clock")["mode"] == "manual"
            disk.recover()
            it.ask("PUT", "/clock", {"mode": "running", "speed": 600})
            disk.fail()
            wait_until(lambda: it.ask("GET", "/clock")["heldByJournal"] is not None)
            state = it.ask("GET", "/clock")
            assert (state["mode"], state["speed"]) == ("running", 600)
            time.sleep(0.2)  # several more tries
            assert it.ask("GET", "/clock") == state
            disk.recover()
            wait_until(lambda: it.now != state["now"])
            assert it.ask("GET", "/clock")["heldByJournal"] is None
            it.ask("PUT", "/clock", {"mode": "manual"})
            wait_until(lambda: not it.ask("GET", "/webhooks?status=underWay")["total"])
            told, now = it.told(), it.now
        with sandbox(resume(disk.folder / "a.journal")) as again:
            assert (again.now, again.told()) == (now, told)


def test_the_page_says_why_the_clock_stands_still(disk: Disk) -> None:
    with sandbox(begin(disk.folder / "a.journal", SKETCH.scenario())) as it:
        disk.fail()
        it.ask("POST", "/clock/advance", {"by": "1h"}, 507)
        sections = Sections(it.core).render(View.read({}))
        assert f"can&#39;t be written: {disk.says}" in sections["clock"]
        disk.recover()


def test_on_a_disk_that_is_full_a_restart_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    scenario = SKETCH.scenario()
    with failing_disk("full", tmp_path) as disk:
        path = disk.folder / "a.journal"
        with sandbox(begin(path, scenario)) as it:
            it.ask("POST", "/clock/advance", {"by": "1h"})
            told = it.told()
        before = path.read_bytes()
        disk.fail()
        with pytest.raises(JournalError, match="can't be written"):
            resume(path)
        assert path.read_bytes() == before
        assert read(path).trace.end is not None  # the run can be looked at
        disk.recover()
        with sandbox(resume(path)) as again:
            assert again.told() == told
