"""The calls that changed last, against the whole log."""

from __future__ import annotations

from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

SCENARIO = (
    Sketch(lines=4)
    .campaign("January", recipients={"count": 60}, maxAttempts=2, retryInterval=600_000)
    .scenario()
)


def test_latest_calls_are_those_of_the_last_rows_of_the_log() -> None:
    core = SandboxCore(SCENARIO)
    view = core.accounts[0].views[0]
    for _ in range(20):
        core.simulation.advance(minutes=3)
        view.catch_up()
        rows, last = view.campaign.log.rows(), dict[tuple[int, int], tuple[int, int]]()
        for row in range(len(rows.at)):
            key = int(rows.recipient[row]), int(rows.call[row])
            last.pop(key, None)
            last[key] = int(rows.at[row]), int(rows.kind[row])
        wanted = [at for at, _ in reversed(last.values())][:10]
        found = view.latest_calls(10)
        assert [at for at, _ in found] == wanted
        for at, call in found:
            entry = view.calls[call]
            assert last[entry.recipient, entry.call] == (at, entry.last_kind)
        assert len({call for _, call in found}) == len(found)


def test_a_recipient_s_calls_are_found_in_their_order() -> None:
    core = SandboxCore(SCENARIO)
    core.simulation.advance(hours=2)
    view = core.accounts[0].views[0]
    view.catch_up()
    for recipient in range(60):
        entries = [view.calls[call] for call in view.calls.of(recipient)]
        assert [entry.call for entry in entries] == [*range(1, len(entries) + 1)]
        assert {entry.recipient for entry in entries} == {recipient}
