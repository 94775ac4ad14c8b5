"""The calls that changed last, from what is kept at hand, against the whole log."""

from __future__ import annotations

import pytest

from dialsim.engine.trace import CHANGES
from dialsim.interface.status import CallStatus
from dialsim.sandbox import calls
from dialsim.sandbox.core import Exchange
from dialsim.testing import Sketch

SCENARIO = (
    Sketch(slots=4)
    .campaign("January", recipients={"count": 60}, maxAttempts=2, retryInterval=600_000)
    .scenario()
)


@pytest.mark.parametrize("status", [None, *CallStatus])
@pytest.mark.parametrize("kept", [12, 4_096])
def test_latest_calls_are_those_of_the_last_rows_of_the_log(
    monkeypatch: pytest.MonkeyPatch, kept: int, status: CallStatus | None
) -> None:
    monkeypatch.setattr(calls, "_MOST_RECENT", kept)
    exchange = Exchange(SCENARIO)
    desk = exchange.accounts[0].desks[0]
    for _ in range(20):
        exchange.simulation.advance(minutes=3)
        desk.catch_up()
        rows, last = desk.campaign.log.rows(), dict[tuple[int, int], tuple[int, int]]()
        for row in range(len(rows.at)):
            key = int(rows.recipient[row]), int(rows.call[row])
            last.pop(key, None)
            last[key] = int(rows.at[row]), int(rows.kind[row])
        wanted = [
            at for at, kind in reversed(last.values()) if status in (None, CHANGES[kind].to_status)
        ][:10]
        found = desk.latest_calls(10, status)
        assert [at for at, _ in found] == wanted
        for at, call in found:
            entry = desk.entry(call)
            assert last[entry.recipient, entry.number] == (at, entry.kind)
        assert len({call for _, call in found}) == len(found)


def test_a_recipient_s_calls_are_found_in_their_order() -> None:
    exchange = Exchange(SCENARIO)
    exchange.simulation.advance(hours=2)
    desk = exchange.accounts[0].desks[0]
    desk.catch_up()
    for recipient in range(60):
        entries = [desk.entry(call) for call in desk.calls_of(recipient)]
        assert [entry.number for entry in entries] == [*range(1, len(entries) + 1)]
        assert {entry.recipient for entry in entries} == {recipient}
