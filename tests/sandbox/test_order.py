"""The order of lists (F4): newest first, and of things made together the last of the file."""

from __future__ import annotations

import dialsim
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http.operation import PageQuery
from dialsim.sandbox.http.service import InterfaceOperations

SCENARIO = """
organizations:
  - name: Acme
    maxConcurrentCalls: 1
    agents: [{name: First}, {name: Second}, {name: Third}]
    campaigns:
      - name: January
        id: 0b0b0b0b-0000-4000-8000-000000000001
        agent: First
        recipients: [{tel: "0810000001"}, {tel: "0810000002"}, {tel: "0810000003"}]
        schedule: {startDateTime: 2026-01-05T02:00:00Z}
"""


def test_f4_agents_and_recipients_made_together_are_listed_last_first() -> None:
    service = InterfaceOperations(SandboxCore(dialsim.loads(SCENARIO)))
    agents = service.list_agents(0)
    assert [agent["name"] for agent in agents] == ["Third", "Second", "First"]
    page = service.list_recipients(0, "0b0b0b0b-0000-4000-8000-000000000001", PageQuery())
    tels = [person["tel"] for person in page["recipients"]]
    assert tels == ["0810000003", "0810000002", "0810000001"]
