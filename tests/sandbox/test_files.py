"""Recordings and transcripts behind the links of webhooks."""

from __future__ import annotations

import io
import wave
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.sandbox.asking import Client

import dialsim
from dialsim.results.result import Result
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

VOICES = [{"name": "Female", "voiceKey": "malee"}, {"name": "Male", "voiceKey": "arthit"}]
SKETCH = (
    Sketch(9, seed=5)
    .behaviour("default", analysis_delay=0)
    .having(
        agents=[{"name": "Female", "voiceKey": "malee"}, {"name": "Male", "voiceKey": "arthit"}]
    )
    .campaign(
        "A",
        {"tel": "0810000001", "script": "answered 5s 2.5s"},
        {"tel": "0810000002", "script": "answered 5s 90s"},
        {"tel": "0810000003", "script": "answered 5s 90s silent"},
        {"tel": "0810000004", "script": "noAnswer 20s"},
        {"tel": "0810000005", "script": "answered 5s 90s notRecorded"},
        {"tel": "0810000006", "script": "answered 5s 3h"},
        agent="Female",
    )
    .campaign("B", {"tel": "0820000001", "script": "answered 5s 13s"}, agent="Male")
)
SCENARIO = SKETCH.having(retention={"audio": "30m", "personalData": "40m"}).scenario()
LATER = "2026-01-05T02:05:00Z"


@pytest.fixture
def client() -> Client:
    core = SandboxCore(SCENARIO)
    core.simulation.advance(to=LATER)
    return Client(core)


def payloads(client: Client) -> dict[str, dict[str, Any]]:
    """The payload of each webhook so far, by phone number."""
    posts = Result(client.core.simulation.trace).webhooks.body
    return {post["payload"]["recipient"]["tel"]: post["payload"] for post in posts}


def follow(client: Client, link: str, method: str = "GET") -> httpx.Response:
    """Return the response of a link to an unauthenticated client."""
    parts = urlsplit(link)
    return client.ask(method, f"{parts.path}?{parts.query}", {"Host": "elsewhere.test"})


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    body = response.json()
    assert body["statusCode"] == response.status_code
    return response.status_code, body["code"], body["message"]


def test_a_recording_is_a_short_sound_as_long_as_the_conversation_up_to_5_s(
    client: Client,
) -> None:
    known, heard = payloads(client), {}
    for tel in ("0810000001", "0810000002", "0810000003", "0820000001"):
        response = follow(client, known[tel]["recordUrl"])
        assert response.status_code == 200
        assert response.headers["content-type"] == "audio/wav"
        assert int(response.headers["content-length"]) == len(response.content)
        with wave.open(io.BytesIO(response.content)) as sound:
            form = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
            assert form == (1, 2, 8_000)
            heard[tel] = sound.getnframes() / 8_000, sound.readframes(80_000)
    assert [seconds for seconds, _ in heard.values()] == [2.5, 5.0, 5.0, 5.0]
    assert set(heard["0810000003"][1]) == {0}  # silence
    assert len({samples[:4_000] for _, samples in heard.values()}) == 4
    assert max(memoryview(heard["0810000002"][1]).cast("h")) > 5_000
    again = follow(client, known["0810000002"]["recordUrl"])
    assert again.content == follow(client, known["0810000002"]["recordUrl"]).content


def test_a_transcript_has_turns_that_fill_the_conversation(client: Client) -> None:
    known = payloads(client)
    response = follow(client, known["0820000001"]["transcriptFileUrl"])
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {
        "callId": known["0820000001"]["call"]["id"],
        "sessionId": known["0820000001"]["call"]["sessionId"],
        "language": "th",
        "durationMs": 13_000,
        "turns": [
            {
                "speaker": "agent",
                "startMs": 0,
                "endMs": 6_500,
                "text": "สวัสดีค่ะ ขอเวลาสักครู่นะคะ",
            },
            {"speaker": "customer", "startMs": 6_500, "endMs": 13_000, "text": "ได้ครับ"},
        ],
    }
    long = follow(client, known["0810000002"]["transcriptFileUrl"]).json()
    assert long["durationMs"] == long["turns"][-1]["endMs"] == 90_000
    starts = [turn["startMs"] for turn in long["turns"]]
    assert starts == [0, *(turn["endMs"] for turn in long["turns"][:-1])]
    assert {turn["speaker"] for turn in long["turns"][::2]} == {"agent"}
    assert "ค่ะ" in long["turns"][0]["text"]
    silent = follow(client, known["0810000003"]["transcriptFileUrl"]).json()
    assert silent["turns"] == []
    brief = follow(client, known["0810000001"]["transcriptFileUrl"]).json()
    assert [turn["endMs"] for turn in brief["turns"]] == [2_500]


def test_head_is_answered_as_get(client: Client) -> None:
    link = payloads(client)["0810000002"]["recordUrl"]
    headers = follow(client, link, "HEAD").headers
    assert headers == follow(client, link).headers
    assert refusal(follow(client, link, "POST"))[:2] == (405, "METHOD_NOT_ALLOWED")


def test_links_expire_in_virtual_time() -> None:
    client = Client(SandboxCore(SKETCH.scenario("seed=1")))
    simulation = client.core.simulation
    simulation.advance(to=LATER)
    payload = payloads(client)["0810000002"]  # sent at 02:01:37, so good until 03:01:37
    for link in (payload["recordUrl"], payload["transcriptFileUrl"]):
        assert "expires=1767582097&" in link
    simulation.advance(to="2026-01-05T03:01:36.999Z")
    assert follow(client, payload["recordUrl"]).status_code == 200
    assert follow(client, payload["transcriptFileUrl"]).status_code == 200
    simulation.advance(milliseconds=1)
    gone = 410, "LINK_EXPIRED", "The link expired at 2026-01-05T03:01:37.000Z"
    assert refusal(follow(client, payload["recordUrl"])) == gone
    assert refusal(follow(client, payload["transcriptFileUrl"])) == gone


def test_a_link_that_was_tampered_with_is_refused(client: Client) -> None:
    known = payloads(client)
    link, other = known["0810000002"]["recordUrl"], known["0810000001"]["recordUrl"]
    path, query = link.split("?")
    wrong = 403, "INVALID_SIGNATURE", "The link's signature is wrong"
    for tampered in (
        path,
        link[:-1] + ("0" if link[-1] != "0" else "1"),
        f"{path}?{query.replace('expires=1', 'expires=2')}",
        f"{path}?{urlsplit(other).query}",
        link.replace("recordings", "transcripts").replace(".wav", ".json"),
        f"{path}?expires=9999999999&signature=",
        f"{path}?expires=x&signature=0",
        f"{path}?expires=1767582097&signature=%E0%B8%81",
    ):
        assert refusal(follow(client, tampered)) == wrong, tampered


def test_files_that_are_not_there_are_not_found(client: Client) -> None:
    known = payloads(client)
    assert known["0810000004"]["recordUrl"] is None
    calls = Result(client.core.simulation.trace).calls.call_id.to_list()
    query = urlsplit(known["0810000002"]["recordUrl"]).query
    nowhere = [
        *(f"http://x/files/recordings/{calls[place]}.wav?{query}" for place in (3, 4, 5)),
        f"http://x/files/transcripts/{calls[3]}.json?{query}",
        f"http://x/files/recordings/x.wav?{query}",
        f"http://x/files/recordings/cccccccc-0000-4000-8000-000000000001.wav?{query}",
    ]
    for link in nowhere:
        assert refusal(follow(client, link)) == (404, "FILE_NOT_FOUND", "File not found")
    assert refusal(follow(client, f"http://x/files/recordings/{calls[1]}.mp3"))[:2] == (
        404,
        "NOT_FOUND",
    )


def test_d1_what_retention_removes_is_gone_though_the_link_has_time_left(client: Client) -> None:
    payload = payloads(client)["0810000002"]  # ended at 02:01:37
    removed = {
        "recordUrl": (410, "FILE_REMOVED", "The recording was removed"),
        "transcriptFileUrl": (410, "FILE_REMOVED", "The transcript was removed"),
    }
    gone: list[str] = []
    for instant, name in (("02:31:37", "recordUrl"), ("02:41:37", "transcriptFileUrl")):
        client.core.simulation.advance(to=f"2026-01-05T{instant}Z")
        gone.append(name)
        for kind, expected in removed.items():
            response = follow(client, payload[kind])
            if kind in gone:
                assert refusal(response) == expected
            else:
                assert response.status_code == 200


def test_c8_files_of_a_deleted_campaign_are_gone(client: Client) -> None:
    payload = payloads(client)["0820000001"]
    assert follow(client, payload["recordUrl"]).status_code == 200
    client.core.simulation.delete("B")
    for link in (payload["recordUrl"], payload["transcriptFileUrl"]):
        assert refusal(follow(client, link))[:2] == (410, "FILE_REMOVED")


def test_links_lead_to_the_served_sandbox() -> None:
    with dialsim.Sandbox(SCENARIO) as sandbox:
        sandbox.clock.advance(minutes=5)
        links = [post["payload"]["recordUrl"] for post in sandbox.result().webhooks.body]
        found = [httpx.get(link) for link in links if link is not None]
    assert [response.status_code for response in found] == [200] * 4
    assert {response.content[:4] for response in found} == {b"RIFF"}
