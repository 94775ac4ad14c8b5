"""Actions of operators over the control plane are replayed from the journal, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

from tests.sandbox.asking import WORLD, Client, control

import dialsim
from dialsim.sandbox import restart

BLOCK = {"agent": "Reminder", "recipients": {"count": 3, "agentParams": {"amount": 5}}}
SCHEDULE = {"startDateTime": "2026-01-05T04:00:00Z"}
CSV = "tel,customerName,agentParams.amount,script\n0890000001,สมหญิง,5,answered 5s 9s\n"


def operate(client: Client) -> str:
    """Commands of an operator in the course of two hours; the key in the end."""
    control(client, "POST", "/clock/advance", {"to": "2026-01-05T04:00:00Z"})
    added = BLOCK | {"organization": "Acme", "name": "Listed", "schedule": SCHEDULE}
    assert control(client, "POST", "/campaigns", added).status_code == 201
    query = f"organization=Acme&name=File&agent=Reminder&schedule={json.dumps(SCHEDULE)}"
    headers = {"Host": "127.0.0.1:8400", "Content-Type": "text/csv"}
    made = client.ask("POST", f"/_dialsim/campaigns?{query}", headers, CSV.encode("utf-8-sig"))
    assert made.status_code == 201
    changes = {"maxConcurrentCalls": 7, "webhookUrl": None, "regenerateApiKey": True}
    assert control(client, "PATCH", "/organizations/Acme", changes).status_code == 200
    control(client, "POST", "/clock/advance", {"by": "1h"})
    [call] = control(client, "GET", f"/campaigns/{made.json()['id']}/calls").json()["calls"]
    assert control(client, "POST", f"/calls/{call['callId']}/reanalyze").status_code == 200
    again = control(client, "PATCH", "/organizations/Acme", {"regenerateApiKey": True}).json()
    assert control(client, "DELETE", f"/campaigns/{made.json()['id']}").status_code == 200
    key: str = again["apiKey"]
    return key


def answers(client: Client, key: str) -> list[bytes]:
    campaigns = control(client, "GET", "/campaigns")
    found = [campaigns.content, control(client, "GET", "/organizations").content]
    found.append(control(client, "GET", "/clock").content)
    for campaign in campaigns.json():
        for table in ("calls", "transitions"):
            path = f"/campaigns/{campaign['id']}/{table}"
            found.append(control(client, "GET", path).content)
            for row in control(client, "GET", path).json().get("calls", ())[::5]:
                of_call = client.ask("GET", f"/api/call/{row['callId']}", {"X-API-Key": key})
                found.append(of_call.content)
    assert client.ask("GET", "/api/agent/list", {"X-API-Key": key}).status_code == 200
    return found


def test_a_sandbox_resumed_from_its_journal_has_the_same_answers(tmp_path: Path) -> None:
    before = Client(restart.begin(tmp_path / "journal", dialsim.load(WORLD)))
    key = operate(before)
    expected = answers(before, key)
    assert before.core.journal is not None
    before.core.journal.close()
    after = Client(restart.resume(tmp_path / "journal"))
    assert answers(after, key) == expected
    assert after.core.journal is not None
    after.core.journal.close()
