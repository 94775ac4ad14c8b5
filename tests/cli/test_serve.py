"""`dialsim serve` as a separate process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from cli.program import command, dialsim
from dialsim.errors import DialsimError
from dialsim.sandbox.access import derived_key
from dialsim.sandbox.server import listening
from dialsim.testing import Answer, Receiver

SCENARIO = Path(__file__).parents[2] / "scenarios" / "first-campaign.yaml"


def serve(*options: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("serve", SCENARIO, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | variables,
        text=True,
        encoding="utf-8",
    )


def said_until_it_serves(server: subprocess.Popen[str]) -> str:
    """Return the output of a server until it serves."""
    said = ""
    assert server.stdout is not None
    for line in server.stdout:
        said += line
        if line.startswith("Serving on"):
            break
    return said


def test_a_client_runs_hours_over_http_at_any_address_of_this_machine_until_ctrl_c() -> None:
    people = "organizations.Acme.campaigns.January.recipients.count=60000"
    server = serve("--port", "0", "--seed", "3", "--host", "127.0.0.2", "--set", people)
    try:
        said = said_until_it_serves(server)
        found = re.search(r"http://127\.0\.0\.2:[0-9]+", said)
        assert found
        assert said == (
            f"API key of Acme: {derived_key(3, 'Acme')}\n"
            "Results of Acme: kept, not sent (there is no webhook URL)\n"
            f"Page: {found[0]}/_dialsim/\n"
            f"Serving on {found[0]} - stop with Ctrl-C\n"
        )
        assert "<h1>" in httpx.get(f"{found[0]}/_dialsim/").text
        with httpx.Client(
            base_url=found[0], headers={"X-API-Key": derived_key(3, "Acme")}
        ) as client:
            [campaign] = client.get("/_dialsim/campaigns").json()
            assert client.get("/_dialsim/clock").json()["mode"] == "manual"
            foreign = {"Origin": "http://127.0.0.1:8400"}
            assert client.get("/_dialsim/clock", headers=foreign).status_code == 403
            own_page = {"Origin": found[0]}
            move = {"by": "3h"}
            moved = client.post("/_dialsim/clock/advance", headers=own_page, json=move)
            assert moved.json()["now"] == "2026-01-05T05:00:00.000Z"
            path = f"/api/campaign/{campaign['id']}"
            people = client.get(f"{path}/recipients", params={"page": 600}).json()["data"]
            assert {person["latestCallStatus"] for person in people["recipients"]} & {"COMPLETED"}
            assert client.post(f"{path}/pause").json()["data"]["status"] == "PAUSED"
            assert client.get("/_dialsim/clock").json()["nextEventAt"] is not None
            resumed = client.post(f"/_dialsim/campaigns/{campaign['id']}/resume", headers=own_page)
            assert resumed.status_code == 200
            with ThreadPoolExecutor() as pool:
                there = f"{found[0]}/_dialsim/clock/advance"
                moving = pool.submit(httpx.post, there, json={"until": "idle"}, timeout=600)
                while client.get("/_dialsim/clock").json()["status"] != "advancing":
                    time.sleep(0.01)
                server.send_signal(signal.SIGINT)
                assert server.wait(timeout=6000) == 0
                answer = moving.result().json()
            assert (answer["statusCode"], answer["code"]) == (503, "STOPPED")
        assert server.stderr is not None
        assert server.stderr.read() == ""
    finally:
        server.kill()
        server.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("busy", ["working", "sending"])
def test_ctrl_c_breaks_off_an_advance_that_is_under_way(busy: str) -> None:
    with Receiver(otherwise=Answer(delay=600)) as receiver:
        setting = {
            "working": "organizations.Acme.campaigns.January.recipients.count=200000",
            "sending": f"organizations.Acme.webhook.url={receiver.url}",
        }
        server = serve("--port", "0", "--set", setting[busy])
        try:
            assert server.stdout is not None
            url = next(line for line in server.stdout if line.startswith("Serving")).split()[2]
            with ThreadPoolExecutor() as pool:
                body = {"until": "idle"}
                path = f"{url}/_dialsim/clock/advance"
                moving = pool.submit(httpx.post, path, json=body, timeout=600)
                if busy == "sending":
                    receiver.wait_for(1)
                while httpx.get(f"{url}/_dialsim/clock").json()["status"] != "advancing":
                    time.sleep(0.01)
                server.send_signal(signal.SIGINT)
                assert server.wait(timeout=6000) == 0
                answer = moving.result().json()
            assert (answer["statusCode"], answer["code"]) == (503, "STOPPED")
            assert server.stderr is not None
            assert server.stderr.read() == ""
        finally:
            server.kill()
            server.communicate()


def test_an_address_that_others_reach_is_refused_without_a_token() -> None:
    done = dialsim("serve", SCENARIO, "--port", "0", "--host", "0.0.0.0")
    assert done.returncode == 2
    said = "--host 0.0.0.0: other machines reach this address, so it needs a control token"
    assert said in done.stderr


@pytest.mark.parametrize("place", ["option", "environment"])
def test_a_token_that_cannot_do_is_refused_and_not_shown(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = ("--control-token", "too short")
    if place == "environment":
        monkeypatch.setenv("DIALSIM_CONTROL_TOKEN", token[1])
    done = dialsim("serve", SCENARIO, "--port", "0", *(token if place == "option" else ()))
    assert done.returncode == 2
    assert "the control token must have at least 16 characters" in done.stderr
    assert "too short" not in done.stdout + done.stderr


@pytest.mark.slow
def test_with_a_token_from_the_environment_others_may_steer() -> None:
    token = "correct-horse-battery-staple"
    server = serve("--port", "0", "--host", "0.0.0.0", DIALSIM_CONTROL_TOKEN=token)
    try:
        said = said_until_it_serves(server)
        found = re.search(r"http://0\.0\.0\.0:([0-9]+)", said)
        assert found
        page = f"Page: {found[0]}/_dialsim/?token=TOKEN with the control token as TOKEN\n"
        assert page in said
        assert token not in said
        url, host = f"http://127.0.0.1:{found[1]}/_dialsim/clock", {"Host": "sandbox.example"}
        assert httpx.get(url, headers=host).status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx.get(url, headers=host | bearer).status_code == 200
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test", ""])
def test_without_a_token_only_loopback_is_listened_on(host: str) -> None:
    with pytest.raises(DialsimError, match="--host"):
        listening(host, 0)


def test_a_port_that_is_taken_is_named() -> None:
    with listening("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(DialsimError, match=f"port {port} of 127.0.0.1 is not available"):
            listening("127.0.0.1", port)
