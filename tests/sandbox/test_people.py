"""Scripts of phone numbers under /_dialsim/people (P6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.asking import Client, control

import dialsim
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Sketch

TEL = "0810000000"
PLAIN = Sketch(lines=1).campaign(
    "January", recipients=[{"tel": TEL}], max_attempts=3, retry_interval="10m", requested=None
)
AT_ONCE: dict[str, object] = {
    "startDateTime": "2026-01-05T02:00:00Z",
    "maxAttempts": 3,
    "retryInterval": 600_000,
}
TEL_TEXT = "tel must be a phone number of at most 20 digits, with or without a + in front"


@pytest.fixture
def client() -> Client:
    return Client(SandboxCore(PLAIN.scenario()))


def give(client: Client, script: str | None, tel: str = TEL) -> Any:
    return control(client, "POST", "/people", {"tel": tel, "script": script}).json()


def test_p6_the_next_calls_follow_the_script_and_what_is_left_of_it_is_listed(
    client: Client,
) -> None:
    assert control(client, "GET", "/people").json() == []
    written = {"tel": TEL, "script": "busy 1s; answered 5s 1m30s silent"}
    assert give(client, "busy 1s ;answered 5s 90s silent;") == written
    give(client, "failed 0s", "0899999999")
    assert control(client, "GET", "/people").json() == [
        written,
        {"tel": "0899999999", "script": "failed 0s"},
    ]
    [campaign] = control(client, "GET", "/campaigns").json()
    path = f"/api/campaign/{campaign['id']}"
    headers = {"X-API-Key": client.core.api_key(0)}
    schedule = b'{"startDateTime": "2026-01-05T02:00:00Z"}'
    client.ask("POST", f"{path}/schedule", headers | {"Content-Type": "application/json"}, schedule)
    control(client, "POST", "/clock/advance", {"by": "30s"})
    [person] = client.ask("GET", f"{path}/recipients", headers).json()["data"]["recipients"]
    assert person["latestCallStatus"] == "BUSY"
    assert control(client, "GET", "/people").json()[0]["script"] == "answered 5s 1m30s silent"


def test_p6_null_ends_a_script_and_a_new_one_takes_the_place_of_the_old(client: Client) -> None:
    give(client, "busy 1s; busy 2s")
    assert give(client, "failed 0s")["script"] == "failed 0s"
    assert give(client, None) == {"tel": TEL, "script": None}
    assert control(client, "GET", "/people").json() == []
    assert give(client, None)["script"] is None


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, ["tel is required", "script is required"]),
        ([], ["body must be an object"]),
        ({"tel": "081-234", "script": None}, [TEL_TEXT]),
        ({"tel": 81, "script": 5}, ["tel must be text", "script must be text"]),
        (
            {"tel": "081", "script": "", "x": 1},
            [
                "property x should not exist",
                "script has an empty step 1: steps are separated by single semicolons",
            ],
        ),
        (
            {"tel": "081", "script": "busy 1s; anwered 5s 90s"},
            [
                'script has "anwered" in step 2, but steps are answered, noAnswer, busy, failed; '
                "did you mean answered?"
            ],
        ),
        (
            {"tel": "081", "script": "busy"},
            ["script needs one duration in step 1: busy 25s (ring time)"],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_script_is_told_and_nothing_changes(
    client: Client, body: Any, errors: list[str]
) -> None:
    response = control(client, "POST", "/people", body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == errors
    assert control(client, "GET", "/people").json() == []


def test_p6_scripts_from_python_are_those_of_a_simulation() -> None:
    scripts = ("busy 3s; answered 5s 90s agentError; noAnswer 10s", None, "noAnswer 7s; failed 1s")
    simulation = dialsim.Simulation(PLAIN.scenario())
    with dialsim.Sandbox(PLAIN.scenario()) as sandbox:
        for script in scripts:
            for one in (simulation, sandbox):
                one.script(TEL, script)
            assert sandbox.scripts == simulation.scripts
        for one in (simulation, sandbox):
            one.schedule("January", AT_ONCE)
        simulation.advance(minutes=5)
        sandbox.clock.advance(minutes=5)
        assert sandbox.scripts == simulation.scripts == {TEL: "failed 1s"}
        simulation.advance(until="idle")
        sandbox.clock.advance(until="idle")
        ours = sandbox.result().calls
        assert ours.equals(dialsim.Result(simulation.trace).calls)
        assert [*ours.status][:2] == ["NO_ANSWER", "FAILED"]
        for tel, script in (("nobody", "busy 1s"), (TEL, "busy")):
            with pytest.raises(dialsim.DialsimError) as wrong:
                simulation.script(tel, script)
            with pytest.raises(dialsim.Refused) as refused:
                sandbox.script(tel, script)
            assert str(wrong.value).startswith(str(refused.value))


def test_p6_scripts_are_in_the_journal(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    core = begin(file, PLAIN.scenario())
    give(Client(core), "busy 1s; failed 1s")
    Client(core).core.journal.close()  # type: ignore[union-attr]
    again = resume(file)
    assert again.simulation.scripts == {TEL: "busy 1s; failed 1s"}
    again.journal.close()  # type: ignore[union-attr]
