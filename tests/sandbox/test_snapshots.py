"""Snapshots, reset and forks: the sandbox is again what it was, to the byte of every answer."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.sandbox.failing_disks import failing_disk
from tests.sandbox.serving import EVERY_RESULT, served

import dialsim
from dialsim.errors import Refused
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Answer, Receiver, Sketch

TEL = "0810000001"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def scenario(receiver: Receiver) -> dialsim.Scenario:
    return (
        Sketch(seed=11, start="Mon 08:00", setup_time=None)
        .also(service={"publicUrl": "https://voicely.example"})
        .behaviour("default", **EVERY_RESULT)
        .organization(
            "Acme", 6, retention={"personalData": "2h"}, webhook={"url": receiver.url},
            caller_ids=["021000001", "021000002"], agents=[{"name": "Caller"}],
        )
        .campaign(
            "One", recipients={"count": 24}, agent="Caller", start="Mon 09:00", max_attempts=3,
            retry_interval="30m",
        )
        .campaign("Draft", {"tel": TEL}, {"tel": TEL}, agent="Caller", requested=None)
        .organization("Quiet", 4, caller_ids=[], agents=[{"name": "Caller"}])
        .campaign(
            "Two", recipients={"count": 30}, agent="Caller", start="Mon 09:00", max_attempts=2,
            retry_interval="1h",
        )
        .scenario()
    )  # fmt: skip


class Asker:
    """Asks one sandbox for everything, and does something to it at random."""

    def __init__(self, core: SandboxCore, url: str) -> None:
        self.core = core
        self._http = httpx.Client(base_url=url, timeout=60, verify=False)
        self._calls: list[str] = []

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        return self._http.request(method, f"/_dialsim{path}", json=body)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._http.get(path, headers=headers)

    def everything(self) -> dict[str, bytes]:
        """All that can be read, by path."""
        answers: dict[str, bytes] = {}
        self._calls = []
        for name in ("clock", "campaigns", "organizations", "people", "faults"):
            answers[name] = self.ask("GET", f"/{name}").content
        self._pages(answers, "/webhooks?")
        for number in range(len(self.core.accounts)):
            self._of_organization(answers, number)
        return answers

    def _of_organization(self, answers: dict[str, bytes], number: int) -> None:
        account = self.core.accounts[number]
        key = {"X-API-Key": self.core.api_key(number)}
        paths = ["/api/agent/list"]
        for view in account.views:
            for table in ("calls", "transitions"):
                self._pages(answers, f"/campaigns/{view.identifier}/{table}?")
            paths.append(f"/api/campaign/{view.identifier}/recipients")
            page = answers[f"/campaigns/{view.identifier}/calls?1"]
            for row in json.loads(page)["calls"][::20]:
                self._calls.append(row["callId"])
                paths.append(f"/api/call/{row['callId']}")
                paths.append(f"/api/recipient/{row['recipientId']}")
        for path in paths:
            answers[f"{number} {path}"] = self.get(path, **key).content

    def _pages(self, answers: dict[str, bytes], path: str) -> None:
        page = last = 1
        while page <= last:
            answer = self.ask("GET", f"{path}page={page}")
            answers[f"{path}{page}"] = answer.content
            page, last = page + 1, answer.json()["totalPages"]

    def do_something(self, chance: random.Random) -> int:
        """Send one command or move the clock, successfully or not; returns the status."""
        accounts = self.core.accounts
        account = chance.choice([account for account in accounts if account.views])
        view = chance.choice(account.views)
        name, any_of_them = account.block.name, chance.choice(accounts).block.name
        new = {"organization": any_of_them, "name": f"New {chance.random()}", "agent": "Caller"}
        body = {"startDateTime": "2026-01-05T02:00:00Z", "removeDuplicates": chance.random() < 0.5}
        call = chance.choice([*self._calls, view.identifier])
        how = chance.choice(["timeout", "refuse", "late", "twice", "stale", "delayed"])
        fault = {"webhooks": how, "next": 3} | ({"delay": "9m"} if how == "delayed" else {})
        tenant = {"name": f"Tenant {chance.random()}", "like": name}
        agent = {"organization": any_of_them, "name": f"Agent {chance.random()}"}
        script = chance.choice([None, "busy 3s; answered 5s 9s"])
        made = [{"tel": f"08{chance.randrange(10**8):08}"} for _ in range(3)]
        choices: list[Callable[[], httpx.Response]] = [
            *[lambda: self.ask("POST", "/clock/advance", {"by": f"{chance.randrange(900)}s"})] * 4,
            *[lambda: self.ask("POST", "/clock/advance", {"until": "nextEvent"})] * 4,
            lambda: self.ask("POST", f"/campaigns/{view.identifier}/resume"),
            lambda: self.ask("POST", f"/campaigns/{view.identifier}/cancel"),
            lambda: self.ask("DELETE", f"/campaigns/{view.identifier}"),
            lambda: self.ask("POST", "/campaigns", new | {"recipients": made, "schedule": body}),
            lambda: self.ask("POST", f"/calls/{call}/reanalyze"),
            lambda: self.ask("PATCH", f"/organizations/{name}", {"maxConcurrentCalls": 3}),
            lambda: self.ask("PATCH", f"/organizations/{name}", {"regenerateApiKey": True}),
            lambda: self.ask("PATCH", f"/organizations/{name}", {"callingAllowed": False}),
            lambda: self.ask("POST", "/people", {"tel": TEL, "script": script}),
            lambda: self.ask("POST", "/faults", fault | {"share": 0.5}),
            lambda: self.ask("POST", "/faults", {"api": "error", "next": 2}),
            lambda: self.ask("DELETE", "/faults"),
            lambda: self.ask("POST", f"/webhooks/{chance.randrange(1, 20)}/resend"),
            lambda: self.ask("POST", "/organizations", tenant),
            lambda: self.ask("POST", "/agents", agent),
            lambda: self.ask("POST", "/trigger", {"organization": name, "status": "BUSY"}),
            *[lambda: self._of_the_interface(account.block.position, view.identifier, chance)] * 3,
        ]
        return chance.choice(choices)().status_code

    def _of_the_interface(self, owner: int, campaign: str, chance: random.Random) -> httpx.Response:
        action = chance.choice(["schedule", "pause"])
        return self._http.post(
            f"/api/campaign/{campaign}/{action}",
            headers={"X-API-Key": self.core.api_key(owner)},
            json={"startDateTime": "2026-01-05T02:00:00Z"} if action == "schedule" else None,
        )

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def asker(receiver: Receiver) -> Iterator[Asker]:
    core = SandboxCore(scenario(receiver))
    with served(core) as sandbox:
        asker = Asker(core, sandbox.url)
        yield asker
        asker.close()


def different(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return [path for path in {*one, *other} if one.get(path) != other.get(path)]


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))]
)
def test_every_answer_is_as_before_after_200_random_commands_and_a_restore(
    asker: Asker, receiver: Receiver, seed: int
) -> None:
    chance = random.Random(seed)
    receiver.answer(*[Answer(chance.choice([200, 200, 200, 503])) for _ in range(100)])
    asker.ask("POST", "/clock/advance", {"by": "70m"})
    for _ in range(25):
        asker.do_something(chance)
    assert asker.ask("POST", "/snapshots", {"name": "before"}).status_code == 201
    before = asker.everything()  # it meets faults that are not in the snapshot
    statuses = [asker.do_something(chance) for _ in range(200)]
    assert len([status for status in statuses if status < 300]) > 100
    after = asker.everything()
    assert len(different(before, after)) > 10
    assert asker.ask("POST", "/snapshots/before/restore").status_code == 200
    assert different(before, asker.everything()) == []


@pytest.mark.slow
def test_snapshots_of_different_branches_stay(asker: Asker) -> None:
    chance = random.Random(5)
    states = {}
    for name in ("a", "b", "c"):
        asker.ask("POST", "/clock/advance", {"by": "40m"})
        for _ in range(10):
            asker.do_something(chance)
        asker.ask("POST", "/snapshots", {"name": name})
        states[name] = asker.everything()
        if name == "b":
            asker.ask("POST", "/snapshots/a/restore")
    for name in ("b", "a", "c", "b"):
        asker.ask("POST", f"/snapshots/{name}/restore")
        assert different(states[name], asker.everything()) == [], name


def test_a_reset_sandbox_is_a_new_one_but_for_its_snapshots(
    asker: Asker, receiver: Receiver
) -> None:
    chance, new = random.Random(3), asker.everything()
    asker.ask("POST", "/clock/advance", {"by": "2h"})
    asker.ask("POST", "/snapshots", {"name": "later"})
    for _ in range(20):
        asker.do_something(chance)
    state = asker.ask("POST", "/reset").json()
    assert state["now"] == "2026-01-05T01:00:00.000Z"
    assert different(new, asker.everything()) == []
    assert [one["name"] for one in asker.ask("GET", "/snapshots").json()] == ["later"]
    sent = len(receiver.requests)
    asker.ask("POST", "/clock/advance", {"by": "2h"})
    assert len(receiver.requests) > sent


def test_a_restored_sandbox_stands_still_whatever_the_clock_did(asker: Asker) -> None:
    asker.ask("PUT", "/clock", {"mode": "running", "speed": 1})
    asker.ask("POST", "/snapshots", {"name": "running"})
    restored = asker.ask("POST", "/snapshots/running/restore").json()
    assert (restored["mode"], restored["status"]) == ("manual", "ready")
    assert asker.ask("POST", "/clock/advance", {"by": "1s"}).status_code == 200


class Silence:
    """A receiver that does not respond until the test permits it."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.arrived, self._speak = threading.Event(), threading.Event()
        receiver.otherwise = Answer(first=self._wait)

    def _wait(self, _request: object) -> None:
        self.arrived.set()
        self._speak.wait(30)

    def end(self) -> None:
        self._speak.set()
        self._receiver.otherwise = Answer()


def test_a_restore_breaks_off_what_is_under_way(asker: Asker, receiver: Receiver) -> None:
    silence, answers = Silence(receiver), list[httpx.Response]()
    advance = threading.Thread(
        target=lambda: answers.append(asker.ask("POST", "/clock/advance", {"by": "6h"}))
    )
    before = asker.everything()
    asker.ask("POST", "/snapshots", {"name": "before"})
    advance.start()
    assert silence.arrived.wait(30)
    asker.ask("POST", "/snapshots", {"name": "posting"})
    under_way = asker.ask("GET", "/webhooks?status=underWay").json()["webhooks"]
    assert under_way
    asker.ask("POST", "/snapshots/before/restore")
    advance.join()
    refused = answers[0].json()
    assert (refused["statusCode"], refused["code"]) == (409, "STATE_REPLACED")
    assert different(before, asker.everything()) == []
    silence.end()
    # what was under way at a snapshot leaves again, with the same body
    asker.ask("POST", "/snapshots/posting/restore")
    asker.ask("POST", "/clock/advance", {"by": "0s"})
    again = asker.ask("GET", "/webhooks?status=delivered").json()["webhooks"]
    assert [row["body"] for row in again[: len(under_way)]] == [row["body"] for row in under_way]


def test_the_log_of_requests_survives_a_reset_and_tells_who_they_were_of(asker: Asker) -> None:
    made = asker.ask("POST", "/organizations", {"name": "Passing", "like": "Quiet"}).json()
    key = {"X-API-Key": made["apiKey"]}
    assert asker.get("/api/agent/list", **key).status_code == 200
    asker.ask("POST", "/reset")
    assert asker.get("/api/agent/list", **key).status_code == 401
    asker.ask("POST", "/organizations", {"name": "Another", "like": "Quiet"})
    listed = asker.ask("GET", "/requests").json()["requests"]
    assert [(one["organization"], one["status"]) for one in listed] == [
        ("Passing", 200),
        (None, 401),
    ]


def test_who_waits_for_a_webhook_sent_again_is_told_of_a_reset(
    asker: Asker, receiver: Receiver
) -> None:
    asker.ask("POST", "/clock/advance", {"by": "2h"})
    silence, answers = Silence(receiver), list[httpx.Response]()
    resend = threading.Thread(
        target=lambda: answers.append(asker.ask("POST", "/webhooks/1/resend"))
    )
    resend.start()
    assert silence.arrived.wait(30)
    asker.ask("POST", "/reset")
    resend.join()
    silence.end()
    assert answers[0].json()["code"] == "STATE_REPLACED"


@pytest.mark.slow
def test_a_kept_sandbox_has_its_snapshots_and_its_state_after_a_restart(
    receiver: Receiver, tmp_path: Path
) -> None:
    chance, path = random.Random(9), tmp_path / "a.journal"
    core = begin(path, scenario(receiver))
    states: dict[str, dict[str, bytes]] = {}

    def carry_on(core: SandboxCore, steps: Callable[[Asker], None]) -> None:
        with served(core) as sandbox:
            asker = Asker(core, sandbox.url)
            steps(asker)
            states["now"] = asker.everything()
            states["snapshots"] = {"": asker.ask("GET", "/snapshots").content}
            asker.close()
        assert core.journal is not None
        core.journal.close()

    def first(asker: Asker) -> None:
        asker.ask("POST", "/clock/advance", {"by": "70m"})
        for name in ("a", "b"):
            for _ in range(8):
                asker.do_something(chance)
            asker.ask("POST", "/snapshots", {"name": name})
            states[name] = asker.everything()
        asker.ask("POST", "/reset")
        asker.ask("POST", "/clock/advance", {"by": "65m"})
        asker.ask("POST", "/snapshots", {"name": "gone"})
        asker.ask("DELETE", "/snapshots/gone")
        asker.ask("POST", "/snapshots/a/restore")
        asker.ask("POST", "/clock/advance", {"by": "1h"})

    def nothing(_asker: Asker) -> None:
        pass

    def restores(asker: Asker) -> None:
        for name in ("b", "a"):
            asker.ask("POST", f"/snapshots/{name}/restore")
            assert different(states[name], asker.everything()) == [], name

    carry_on(core, first)
    expected, snapshots = states["now"], states["snapshots"]
    carry_on(resume(path), nothing)
    assert different(expected, states["now"]) == []
    assert states["snapshots"] == snapshots
    carry_on(resume(path), restores)
    carry_on(resume(path), nothing)
    assert different(states["a"], states["now"]) == []


def test_what_cannot_be_kept_is_not_restored(receiver: Receiver, tmp_path: Path) -> None:
    with ExitStack() as opened:
        disk = opened.enter_context(failing_disk("read-only", tmp_path))
        core = begin(tmp_path / "a.journal", scenario(receiver))
        sandbox = opened.enter_context(served(core))
        asker = Asker(core, sandbox.url)
        asker.ask("POST", "/snapshots", {"name": "start"})
        asker.ask("POST", "/clock/advance", {"by": "70m"})
        before = asker.everything()
        disk.fail()
        for method, path in (
            ("POST", "/reset"),
            ("POST", "/snapshots/start/restore"),
            ("POST", "/snapshots"),
            ("DELETE", "/snapshots/start"),
        ):
            assert asker.ask(method, path).json()["code"] == "NOT_KEPT"
        disk.recover()
        assert different(before, asker.everything()) == []
        assert len(asker.ask("GET", "/snapshots").json()) == 1
        asker.close()
    assert core.journal is not None
    core.journal.close()


def test_a_fork_leaves_no_trace(receiver: Receiver) -> None:
    with dialsim.Sandbox(scenario(receiver)) as sandbox:
        core: Any = sandbox._running._core
        asker = Asker(core, sandbox.url)
        sandbox.clock.advance(hours=2)
        sandbox.script(TEL, "busy 3s")
        before, sent = asker.everything(), len(receiver.requests)
        with sandbox.fork() as other:
            twin = Asker(other._running._core, other.url)  # type: ignore[arg-type]
            assert different(before, twin.everything()) == []
            other.set_concurrency(30, "Acme")
            other.cancel("Two")
            other.clock.advance(hours=3)
            assert len(other.webhooks) > len(sandbox.webhooks)
            assert {row.status for row in other.webhooks} == {"delivered", "kept"}
            twin.close()
        assert different(before, asker.everything()) == []
        assert len(receiver.requests) == sent
        sandbox.clock.advance(hours=3)
        assert len(receiver.requests) > sent
        asker.close()


def test_the_states_of_a_sandbox_from_python() -> None:
    busy = Sketch(lines=1).campaign("January", "busy 1s; answered 5s 90s", max_attempts=2)
    with dialsim.Sandbox(busy.scenario()) as sandbox:
        assert sandbox.snapshot() == "snapshot-1"
        sandbox.clock.advance(until="idle")
        assert sandbox.snapshot("done") == "done"
        assert sandbox.campaign("January").status == "COMPLETED"
        sandbox.restore("snapshot-1")
        assert sandbox.campaign("January").status == "RUNNING"
        assert sandbox.snapshots == ["snapshot-1", "done"]
        with sandbox.fork() as other:
            other.cancel("January")
            assert other.snapshots == []
        assert sandbox.campaign("January").status == "RUNNING"
        sandbox.restore("done")
        sandbox.delete_snapshot("done")
        with pytest.raises(Refused, match="Snapshot not found"):
            sandbox.restore("done")
        assert sandbox.campaign("January").status == "COMPLETED"
        sandbox.reset()
        assert sandbox.campaign("January").status == "RUNNING"
