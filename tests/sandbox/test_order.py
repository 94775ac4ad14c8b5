"""The order of lists (F4): newest first, and of things made together the last of the file."""

from __future__ import annotations

from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import PageQuery
from dialsim.sandbox.service import InterfaceOperations
from dialsim.testing import Sketch

JANUARY = "0b0b0b0b-0000-4000-8000-000000000001"
SCENARIO = (
    Sketch(1)
    .having(agents=[{"name": "First"}, {"name": "Second"}, {"name": "Third"}])
    .campaign(
        "January",
        {"tel": "0810000001"},
        {"tel": "0810000002"},
        {"tel": "0810000003"},
        id=JANUARY,
        agent="First",
    )
    .scenario()
)


def test_f4_agents_and_recipients_made_together_are_listed_last_first() -> None:
    service = InterfaceOperations(SandboxCore(SCENARIO))
    agents = service.list_agents(0)
    assert [agent["name"] for agent in agents] == ["Third", "Second", "First"]
    page = service.list_recipients(0, JANUARY, PageQuery())
    tels = [person["tel"] for person in page["recipients"]]
    assert tels == ["0810000003", "0810000002", "0810000001"]
