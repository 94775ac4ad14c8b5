"""`dialsim.Sandbox`: a real server in a thread, asked over real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from tests.sandbox.asking import NOW, WORLD, key

import dialsim
from dialsim.results.folder import read_source
from dialsim.sandbox import access, server
from dialsim.sandbox.service import InterfaceOperations
from dialsim.sandbox.tables import WebhookRow
from dialsim.testing import Answer, Receiver, Sketch

START = datetime(2026, 1, 5, 2, tzinfo=UTC)
BUSY_LINE = Sketch(lines=1).campaign(
    "January", "busy 1s; answered 5s 90s", "noAnswer 20s", max_attempts=2, retry_interval="10m"
)
MONTHS = Sketch(lines=1).campaign("January", recipients={"count": 40_000})  # a while of work


@pytest.fixture
def sandbox() -> Iterator[dialsim.Sandbox]:
    with dialsim.Sandbox(BUSY_LINE.scenario()) as sandbox:
        yield sandbox


@pytest.fixture(autouse=True)
def _gives_back_threads_and_sockets() -> Iterator[None]:
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    yield
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:  # of a receiver that has been stopped
            thread.join()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_client_is_served_and_the_clock_is_moved_from_python(sandbox: dialsim.Sandbox) -> None:
    january = sandbox.campaign("January")
    assert (january.status, january.total_recipients) == ("RUNNING", 2)
    assert (january.full_name, january.agent) == ("Acme/January", "Agent")
    assert sandbox.clock.now == january.created_at == START
    path = f"{sandbox.url}/api/campaign/{january.id}/recipients"
    assert httpx.get(path).status_code == 401
    assert sandbox.clock.advance(minutes=1) == datetime(2026, 1, 5, 2, 1, tzinfo=UTC)
    answer = httpx.get(path, headers={"X-API-Key": sandbox.api_key}).json()
    statuses = [person["latestCallStatus"] for person in answer["data"]["recipients"]]
    assert statuses == ["NO_ANSWER", "BUSY"]
    assert sandbox.clock.advance(until="idle") == sandbox.clock.now
    assert sandbox.clock.next_event_at is None
    assert sandbox.campaign("Acme/January").status == "COMPLETED"


def test_the_clock_takes_what_a_simulation_takes(sandbox: dialsim.Sandbox) -> None:
    simulation = dialsim.Simulation(BUSY_LINE.scenario())
    for move in (
        {"until": "nextEvent"},
        {"to": "2026-01-05T02:00:30.250Z"},
        {"to": datetime(2026, 1, 5, 2, 1, tzinfo=UTC)},
        {"hours": 0.001, "milliseconds": 7},
        {},
        {"until": "idle"},
    ):
        assert sandbox.clock.advance(**move) == simulation.advance(**move)
    assert sandbox.clock.next_event_at == simulation.next_event_at


def test_an_advance_that_makes_no_sense_is_an_error(sandbox: dialsim.Sandbox) -> None:
    for move, text in (
        ({"to": "2026-01-05T01:00:00Z"}, "to must not be before now, 2026-01-05T02:00:00.000Z"),
        ({"hours": -1}, "by must not be negative"),
        ({"until": "later"}, "until must be 'nextEvent' or 'idle', not 'later'"),
        ({"until": "idle", "hours": 1}, "give one of `to`, `until` or a span"),
        ({"to": datetime(2026, 1, 6)}, "has no time zone"),  # noqa: DTZ001
    ):
        with pytest.raises(dialsim.DialsimError, match=text):
            sandbox.clock.advance(**move)
    assert sandbox.clock.now == START


def test_campaigns_are_commanded_by_name_as_in_a_simulation() -> None:
    draft = Sketch(lines=1).campaign("January", "answered 5s 90s", requested=None)
    with dialsim.Sandbox(draft.scenario()) as sandbox:
        sandbox.schedule("January", {"startDateTime": "2026-01-05T02:00:00Z"})
        sandbox.clock.advance(seconds=1)
        sandbox.pause("January")
        assert sandbox.campaign("January").status == "PAUSED"
        sandbox.resume("January")
        sandbox.clock.advance(seconds=1)
        assert sandbox.campaign("January").status == "RUNNING"
        sandbox.cancel("January")
        sandbox.delete("January")
        assert sandbox.campaign("January").deleted
        with pytest.raises(dialsim.Refused) as refused:
            sandbox.pause("January")
    assert (refused.value.status, refused.value.code) == (404, "CAMPAIGN_NOT_FOUND")
    assert str(refused.value) == "Campaign not found"


def test_organizations_have_their_own_keys_and_campaigns() -> None:
    with dialsim.Sandbox(WORLD) as sandbox:
        assert sandbox.api_keys["Acme"] == key("Acme")
        assert len(sandbox.api_keys) > 1
        sandbox.set_concurrency(3, "Acme")
        with pytest.raises(dialsim.DialsimError, match="name the organization: Acme, "):
            _ = sandbox.api_key
        with pytest.raises(dialsim.DialsimError, match="no campaign 'Nowhere'; there are: Acme/"):
            sandbox.pause("Nowhere")
        sandbox.clock.advance(to=NOW)
        sandbox.pause("Acme/Running")
        assert sandbox.campaign("Acme/Running").status == "PAUSED"


def test_campaigns_are_added_as_a_block_or_with_a_csv(sandbox: dialsim.Sandbox) -> None:
    block = {"name": "February", "agent": "Agent", "recipients": [{"tel": "0812345678"}]}
    identifier = sandbox.add_campaign(block)
    assert sandbox.campaign("February").id == identifier
    assert sandbox.campaign("February").status == "DRAFT"
    schedule = {"startDateTime": "2026-01-06T02:00:00Z", "maxAttempts": 2}
    march = {"name": "March & more", "agent": "Agent", "schedule": schedule}
    sandbox.add_campaign(march, "Acme", csv="tel,customerName\n0812345678,มาลี\n0812345679,ตรี\n")
    assert sandbox.campaign("March & more").status == "SCHEDULED"
    assert sandbox.campaign("March & more").total_recipients == 2
    assert [one.name for one in sandbox.campaigns] == ["January", "February", "March & more"]
    with pytest.raises(dialsim.Refused, match="name"):
        sandbox.add_campaign({"agent": "Agent", "recipients": {"count": 3}})
    with pytest.raises(dialsim.DialsimError, match="no organization 'Nobody'; there are: Acme"):
        sandbox.add_campaign(block, "Nobody")


def test_an_organization_is_changed_as_in_a_simulation(sandbox: dialsim.Sandbox) -> None:
    first = sandbox.api_key
    path = f"{sandbox.url}/api/agent/list"
    second = sandbox.regenerate_api_key()
    assert second == sandbox.api_key == sandbox.api_keys["Acme"]
    assert httpx.get(path, headers={"X-API-Key": first}).json()["code"] == "INVALID_API_KEY"
    assert httpx.get(path, headers={"X-API-Key": second}).status_code == 200
    sandbox.set_concurrency(5, "Acme")
    sandbox.set_webhook_url("http://127.0.0.1:9/hook")
    sandbox.set_webhook_url(None)
    sandbox.set_calling_allowed(False)
    trace = sandbox.result().trace
    assert [change.limit for change in trace.limits] == [1, 5]
    assert [change.url for change in trace.urls] == [None, "http://127.0.0.1:9/hook", None]
    with pytest.raises(dialsim.Refused, match="not allowed to make calls"):
        sandbox.add_campaign(
            {
                "name": "February",
                "agent": "Agent",
                "recipients": {"count": 1},
                "schedule": {"startDateTime": "2026-01-06T02:00:00Z"},
            }
        )
    with pytest.raises(dialsim.Refused, match="maxConcurrentCalls"):
        sandbox.set_concurrency(-1)


def test_webhooks_are_listed_with_what_came_of_them_and_sent_again() -> None:
    with (
        Receiver() as receiver,
        dialsim.Sandbox(BUSY_LINE.scenario(), webhook_url=receiver.url) as sandbox,
    ):
        receiver.answer(Answer(503), Answer(202))
        sandbox.clock.advance(seconds=10)
        failed, delivered = sandbox.webhooks
        assert (failed.status, failed.response, failed.attempt) == ("failed", 503, 1)
        assert (delivered.status, delivered.response, delivered.attempt) == ("delivered", 202, 2)
        assert (failed.received, delivered.received) == (False, True)
        assert (delivered.at - failed.at).total_seconds() == 1
        assert delivered.campaign_id == sandbox.campaign(delivered.campaign).id
        assert delivered.url == receiver.url
        assert delivered.body == failed.body == receiver.requests[0].json
        assert delivered.body["payload"]["call"]["id"] == delivered.call_id
        again = sandbox.resend_webhook(delivered.n)
        assert (again.n, again.resent, again.response, again.body) == (3, True, 200, failed.body)
        sandbox.clock.advance(until="idle")
        talked = sandbox.webhooks[-1]
        assert talked.body["payload"]["call"]["callStatus"] != "BUSY"
        with pytest.raises(dialsim.Refused, match="Webhook not found"):
            sandbox.resend_webhook(99)


def test_the_analysis_of_a_delivered_call_is_made_again(sandbox: dialsim.Sandbox) -> None:
    sandbox.clock.advance(until="idle")
    [call] = [
        webhook.call_id
        for webhook in sandbox.webhooks
        if webhook.body["payload"]["call"]["callStatus"] == "COMPLETED"
    ]
    assert {webhook.status for webhook in sandbox.webhooks} == {"kept"}
    sandbox.reanalyze_call(call)
    sandbox.clock.advance(until="idle")
    again = sandbox.webhooks[-1]
    assert (again.call_id, again.result) == (call, 1)
    assert again.body["payload"]["isReAnalysis"] is True


def test_many_webhooks_come_page_by_page() -> None:
    people = Sketch(lines=200).campaign("January", *["busy 1s"] * 201)
    with dialsim.Sandbox(people.scenario()) as sandbox:
        assert sandbox.webhooks == []
        sandbox.clock.advance(until="idle")
        assert [webhook.n for webhook in sandbox.webhooks] == list(range(1, 202))


def test_the_result_is_of_the_run_so_far_and_stays_so(sandbox: dialsim.Sandbox) -> None:
    sandbox.clock.advance(seconds=10)
    early = sandbox.result()
    sandbox.clock.advance(until="idle")
    late = sandbox.result()
    assert early.sequences.iloc[0].endswith("INITIATED BUSY")
    assert len(early.calls) == 2
    whole = dialsim.run(BUSY_LINE.scenario())
    assert late.calls.equals(whole.calls)
    assert late.transitions.equals(whole.transitions)


@pytest.mark.parametrize(
    "source",
    [
        str(WORLD),
        WORLD,
        BUSY_LINE.text,
        {"organizations": [{"name": "Acme", "maxConcurrentCalls": 1}]},
        BUSY_LINE.scenario(),
    ],
    ids=["name", "path", "text", "mapping", "scenario"],
)
def test_a_scenario_comes_in_any_form(source: object) -> None:
    with dialsim.Sandbox(source, ["organizations.Acme.maxConcurrentCalls=7"], seed=3) as sandbox:
        trace = sandbox.result().trace
        assert trace.limits[0].limit == 7
        assert trace.world.seed == 3


def test_a_wrong_scenario_is_named_before_anything_is_started() -> None:
    with pytest.raises(dialsim.ScenarioError, match="organizations"):
        dialsim.Sandbox({"organizations": 5})
    with pytest.raises(dialsim.ScenarioError, match=r"nowhere\.yaml"):
        dialsim.Sandbox("nowhere.yaml")


def test_links_lead_to_the_sandbox_unless_the_scenario_says_where() -> None:
    with dialsim.Sandbox(BUSY_LINE.scenario()) as sandbox:
        world = sandbox.result().trace.world
        assert world.scenario.service.public_url == sandbox.url
    with dialsim.Sandbox(BUSY_LINE.text, ["service.publicUrl=https://calls.test"]) as sandbox:
        world = sandbox.result().trace.world
        assert world.scenario.service.public_url == "https://calls.test"


def test_results_go_to_the_webhook_url_it_is_given_and_a_result_that_is_kept_says_so(
    tmp_path: Path,
) -> None:
    two = BUSY_LINE.having(webhook={"url": "https://calls.test"}).organization("Beta", 1)
    with dialsim.Sandbox(two.text, webhook_url="http://127.0.0.1:9/hook") as sandbox:
        result = sandbox.result()
        assert [change.url for change in result.trace.urls] == ["http://127.0.0.1:9/hook"] * 2
        kept = read_source(result.write(tmp_path / "kept"))
        assert kept.service.public_url == sandbox.url
        assert kept.digest == result.trace.world.scenario.digest
    with pytest.raises(dialsim.DialsimError, match="webhook_url 'nowhere' must be a URL that"):
        dialsim.Sandbox(two.text, webhook_url="nowhere")


# -- from start to stop ----------------------------------------------------------------------------


def test_a_sandbox_is_started_once_and_not_used_after_it_was_stopped() -> None:
    sandbox = dialsim.Sandbox(BUSY_LINE.scenario())
    assert repr(sandbox) == "<dialsim.Sandbox 'Sketch' not started>"
    with pytest.raises(dialsim.DialsimError, match="is not started: use it in a `with` block"):
        _ = sandbox.url
    assert sandbox.start() is sandbox
    assert repr(sandbox) == f"<dialsim.Sandbox 'Sketch' at {sandbox.url}, 2026-01-05T02:00:00.000Z>"
    assert repr(sandbox.clock) == "<dialsim clock at 2026-01-05T02:00:00.000Z>"
    with pytest.raises(dialsim.DialsimError, match="started once"):
        sandbox.start()
    clock = sandbox.clock
    sandbox.stop()
    sandbox.stop()
    for use in (lambda: sandbox.url, sandbox.result, lambda: sandbox.campaigns):
        with pytest.raises(dialsim.DialsimError, match="the sandbox was stopped"):
            use()
    with pytest.raises(dialsim.DialsimError, match="the sandbox was stopped"):
        clock.advance(hours=1)
    with pytest.raises(dialsim.DialsimError, match="started once"):
        sandbox.start()
    assert repr(sandbox) == "<dialsim.Sandbox 'Sketch' stopped>"


def test_a_sandbox_that_was_never_started_is_stopped_all_the_same() -> None:
    dialsim.Sandbox(BUSY_LINE.scenario()).stop()


def test_several_sandboxes_are_served_at_once() -> None:
    with (
        dialsim.Sandbox(BUSY_LINE.scenario()) as first,
        dialsim.Sandbox(BUSY_LINE.scenario()) as second,
    ):
        first.clock.advance(hours=1)
        assert first.url != second.url
        assert (first.clock.now - second.clock.now).total_seconds() == 3600


def test_a_port_that_is_taken_is_named() -> None:
    with dialsim.Sandbox(BUSY_LINE.scenario()) as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(
            dialsim.DialsimError, match=f"port {port} of 127.0.0.1 is not available"
        ):
            dialsim.Sandbox(BUSY_LINE.scenario(), port=port).start()


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_there_is_not_is_named(port: int) -> None:
    with pytest.raises(dialsim.DialsimError, match=f"port {port} of 127.0.0.1 is not available"):
        dialsim.Sandbox(BUSY_LINE.scenario(), port=port).start()


def test_the_port_is_free_again_at_once() -> None:
    with dialsim.Sandbox(BUSY_LINE.scenario()) as first:
        port = int(first.url.rpartition(":")[2])
    with dialsim.Sandbox(BUSY_LINE.scenario(), port=port) as second:
        assert second.url == f"http://127.0.0.1:{port}"


def meanwhile(work: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    """Work in another thread, and what it raises."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def wait_until_it_moves(sandbox: dialsim.Sandbox, moving: threading.Thread) -> None:
    before = sandbox.clock.now
    while sandbox.clock.now == before:
        assert moving.is_alive()
        time.sleep(0.001)


def test_it_is_stopped_while_the_clock_is_moving() -> None:
    with dialsim.Sandbox(MONTHS.scenario()) as sandbox:
        moving, raised = meanwhile(lambda: sandbox.clock.advance(until="idle"))
        wait_until_it_moves(sandbox, moving)
    moving.join()
    [error] = raised
    assert isinstance(error, dialsim.Refused)
    assert (error.status, str(error)) == (503, "The sandbox was stopped")


def test_an_advance_is_stopped_from_elsewhere_and_raises_where_it_was_asked_for() -> None:
    with dialsim.Sandbox(MONTHS.scenario()) as sandbox:
        moving, raised = meanwhile(lambda: sandbox.clock.advance(until="idle"))
        wait_until_it_moves(sandbox, moving)
        stood = sandbox.clock.stop()
        moving.join()
        assert sandbox.clock.now == stood
        assert sandbox.clock.advance(hours=1) == stood + timedelta(hours=1)
    [error] = raised
    assert type(error) is dialsim.DialsimError
    assert str(error).startswith(f"advance: the clock was stopped on the way, at {stood:%Y-%m-%dT}")


def test_it_is_stopped_while_the_clock_runs_by_itself() -> None:
    with dialsim.Sandbox(BUSY_LINE.scenario()) as sandbox:
        sandbox.clock.run(speed=600)
        assert sandbox.clock.speed == 600
        assert repr(sandbox.clock).endswith("running at 600.0x>")
        before = sandbox.clock.now
        while sandbox.clock.now == before:
            time.sleep(0.001)


def test_a_running_clock_is_stopped_and_moved_by_hand_again(sandbox: dialsim.Sandbox) -> None:
    sandbox.clock.run()
    with pytest.raises(dialsim.Refused, match="The clock runs by itself"):
        sandbox.clock.advance(hours=1)
    stood = sandbox.clock.stop()
    assert sandbox.clock.speed is None
    assert sandbox.clock.advance(hours=1) == stood + timedelta(hours=1)


def test_a_webhook_that_is_sent_again_when_it_is_stopped_was_commanded_all_the_same() -> None:
    with Receiver() as receiver:
        with dialsim.Sandbox(BUSY_LINE.scenario(), webhook_url=receiver.url) as sandbox:
            sandbox.clock.advance(until="idle")
            receiver.answer(Answer(delay=60))
            sent = len(receiver.requests)
            again = list[WebhookRow]()
            asking, raised = meanwhile(lambda: again.append(sandbox.resend_webhook(1)))
            receiver.wait_for(sent + 1)
        asking.join()
    assert raised == []
    assert [(row.status, row.resent) for row in again] == [("underWay", True)]


@pytest.mark.parametrize("running", [False, True], ids=["advancing", "running"])
def test_it_is_stopped_while_a_webhook_is_under_way(running: bool) -> None:
    with Receiver(otherwise=Answer(delay=60)) as receiver:
        with dialsim.Sandbox(BUSY_LINE.scenario(), webhook_url=receiver.url) as sandbox:
            if running:
                sandbox.clock.run(speed=100_000)
            else:
                moving, raised = meanwhile(lambda: sandbox.clock.advance(until="idle"))
            receiver.wait_for(1)
        if not running:
            moving.join()
            assert [str(error) for error in raised] == ["The sandbox was stopped"]


def test_it_is_stopped_while_clients_hold_connections_of_all_kinds() -> None:
    with dialsim.Sandbox(MONTHS.scenario()) as sandbox:
        address = ("127.0.0.1", int(sandbox.url.rpartition(":")[2]))
        silent = socket.create_connection(address)
        half_way = socket.create_connection(address)
        half_way.sendall(
            b"POST /_dialsim/clock/advance HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{"
        )
        kept = httpx.Client()
        kept.get(f"{sandbox.url}/_dialsim/clock")
    silent.close()
    half_way.close()
    kept.close()


def test_an_open_page_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    with dialsim.Sandbox(BUSY_LINE.scenario()) as sandbox:
        page = httpx.stream("GET", f"{sandbox.url}/_dialsim/page/events", timeout=600)
        with page as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            sandbox.stop()
            assert list(lines)  # up to its end, which is no error
    assert caplog.records == []


def test_a_client_that_takes_no_answer_does_not_keep_it_from_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 0.1)
    with dialsim.Sandbox(MONTHS.scenario()) as sandbox:
        january = sandbox.campaign("January").id
        with socket.socket() as greedy:
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.connect(("127.0.0.1", int(sandbox.url.rpartition(":")[2])))
            greedy.sendall(
                f"GET /api/campaign/{january}/recipients HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"X-API-Key: {sandbox.api_key}\r\n\r\n".encode()
                * 200
            )
            assert greedy.recv(1)
            sandbox.stop()


def test_a_fault_of_ours_is_answered_with_500_and_raised_in_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(InterfaceOperations, "list_agents", broken)
    sandbox = dialsim.Sandbox(BUSY_LINE.scenario()).start()
    path, headers = f"{sandbox.url}/api/agent/list", {"X-API-Key": sandbox.api_key}
    assert httpx.get(path, headers=headers).json()["code"] == "INTERNAL_ERROR"
    with pytest.raises(
        dialsim.DialsimError, match=r"a fault of its own.*ZeroDivisionError"
    ) as told:
        sandbox.stop()
    assert isinstance(told.value.__cause__, ZeroDivisionError)
    assert "Exception in ASGI application" in caplog.text
    with (
        pytest.raises(httpx.HTTPStatusError) as failed,
        dialsim.Sandbox(BUSY_LINE.scenario()) as sandbox,
    ):
        httpx.get(f"{sandbox.url}/api/agent/list", headers=headers).raise_for_status()
    assert "ZeroDivisionError" in failed.value.__notes__[0]


def test_a_server_that_does_not_start_or_ends_by_itself_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from uvicorn import Server

    async def broken(*_: object) -> bool:
        raise MemoryError("too much")

    with monkeypatch.context() as patch:
        patch.setattr(Server, "startup", broken)
        with pytest.raises(dialsim.DialsimError, match=r"can't start: MemoryError\('too much'\)"):
            dialsim.Sandbox(BUSY_LINE.scenario()).start()
    with monkeypatch.context() as patch:
        patch.setattr(Server, "on_tick", broken)
        sandbox = dialsim.Sandbox(BUSY_LINE.scenario()).start()
        with pytest.raises(dialsim.DialsimError, match=r"ended by itself: MemoryError"):
            sandbox.stop()


def test_it_works_inside_a_running_event_loop() -> None:
    received: list[bytes] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def scene() -> str:
        receiver = await asyncio.start_server(receive, "127.0.0.1", 0)
        port = receiver.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/hook"
        with dialsim.Sandbox(BUSY_LINE.scenario(), webhook_url=url) as sandbox:
            await asyncio.to_thread(sandbox.clock.advance, until="idle")
            status = sandbox.campaign("January").status
        receiver.close()
        await receiver.wait_closed()
        return status

    assert asyncio.run(scene()) == "COMPLETED"
    assert received == [b"POST /hook HTTP/1.1\r\n"] * 4


def test_questions_of_other_threads_are_answered_while_the_clock_moves() -> None:
    with dialsim.Sandbox(MONTHS.scenario()) as sandbox:
        moving, _ = meanwhile(lambda: sandbox.clock.advance(until="idle"))
        wait_until_it_moves(sandbox, moving)
        early = sandbox.result().trace
        size = early.size()
        wait_until_it_moves(sandbox, moving)
        assert sandbox.clock.now > START
        assert sandbox.result().trace.size() > size == early.size()
    moving.join()


# -- what is imported ------------------------------------------------------------------------------


def test_naming_it_imports_no_server_and_a_server_no_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(dialsim.__file__).parents[1]))
    code = (
        "import sys, dialsim; before = {'numpy', 'starlette'} & {*sys.modules}; dialsim.Sandbox\n"
        "print(before | {'starlette', 'uvicorn', 'httpx'} & {*sys.modules})\n"
        "import dialsim.sandbox.server\n"
        "print({'pandas', 'pyarrow', 'scipy', 'matplotlib'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n" * 2


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (["uvicorn"], "uvicorn"),
        (["starlette", "httpx"], "starlette and httpx"),
        (["starlette", "uvicorn", "httpx"], "starlette, uvicorn and httpx"),
    ],
)
def test_missing_packages_are_named_and_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch, missing: list[str], named: str
) -> None:
    monkeypatch.setattr(access, "find_spec", lambda name: None if name in missing else object())
    with pytest.raises(dialsim.DialsimError) as error:
        dialsim.Sandbox(BUSY_LINE.scenario())
    assert str(error.value) == (
        f"Sandbox needs {named}: pip install '.[sandbox]' in the folder of dialsim"
    )
