"""The fixtures that serve: `dialsim_sandbox` and `dialsim_receiver`."""

from __future__ import annotations

import pytest

from testing.conftest import Inner

JANUARY = """
import httpx
from dialsim.testing import Sketch

JANUARY = Sketch(lines=1).campaign("January", "busy 1s; answered 5s 90s", max_attempts=2)
"""


def test_dialsim_sandbox_serves_until_the_test_is_over(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    pytester.makepyfile(
        JANUARY
        + """
import pytest, threading, dialsim
served = []

def test_two_sandboxes(dialsim_sandbox):
    first, second = dialsim_sandbox(JANUARY), dialsim_sandbox(JANUARY)
    served.extend([first, second])
    first.clock.advance(hours=2)
    assert first.campaign("January").status == "COMPLETED"
    assert second.campaign("January").status == "RUNNING"

def test_afterwards():
    for sandbox in served:
        with pytest.raises(dialsim.DialsimError, match="was stopped"):
            sandbox.url
    assert not [t for t in threading.enumerate() if t.name.startswith("dialsim-sandbox")]
"""
    )
    inner().assert_outcomes(passed=2)


def test_dialsim_sandbox_takes_what_dialsim_run_takes(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    pytester.makepyfile(
        JANUARY
        + """
import pytest, dialsim

def test_seed_and_overrides(dialsim_sandbox):
    limit = ["organizations.Acme.maxConcurrentCalls=3"]
    trace = dialsim_sandbox(JANUARY.text, limit, seed=8).result().trace
    assert (trace.world.seed, trace.limits[0].limit) == (8, 3)
    assert dialsim_sandbox(JANUARY.text, limit[0]).result().trace.limits[0].limit == 3

def test_the_seed_of_the_options(dialsim_sandbox):
    assert dialsim_sandbox(JANUARY).result().trace.world.seed == 4

def test_a_loaded_scenario_has_no_overrides(dialsim_sandbox):
    with pytest.raises(dialsim.DialsimError, match="before a scenario is read"):
        dialsim_sandbox(JANUARY.scenario(), ["seed=3"])
"""
    )
    inner("--dialsim-seed", "4").assert_outcomes(passed=3)


def test_sandboxes_send_to_the_receiver_of_a_test_that_has_one(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    pytester.makepyfile(
        JANUARY
        + """
import pytest
ELSEWHERE = JANUARY.having(webhook={"url": "https://elsewhere.test"})
receivers = []

def urls(sandbox):
    return [change.url for change in sandbox.result().trace.urls]

def test_with(dialsim_sandbox, dialsim_receiver):
    receivers.append(dialsim_receiver)
    assert urls(dialsim_sandbox(JANUARY)) == [dialsim_receiver.url]
    assert urls(dialsim_sandbox(ELSEWHERE)) == [dialsim_receiver.url]
    assert urls(dialsim_sandbox(JANUARY, webhook_url="http://127.0.0.1:9")) == [
        "http://127.0.0.1:9"]

def test_without(dialsim_sandbox):
    with pytest.raises(httpx.ConnectError):
        httpx.post(receivers[0].url)
    assert urls(dialsim_sandbox(JANUARY)) == [None]
    assert urls(dialsim_sandbox(ELSEWHERE)) == ["https://elsewhere.test"]
"""
    )
    inner().assert_outcomes(passed=2)


def test_a_fault_of_a_sandbox_fails_the_test_and_stops_the_others(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    pytester.makepyfile(
        JANUARY
        + """
from dialsim.sandbox.service import InterfaceOperations
served = []

def broken(*_, **__):
    raise ZeroDivisionError

def test_it(dialsim_sandbox, monkeypatch):
    monkeypatch.setattr(InterfaceOperations, "list_agents", broken)
    served.extend([dialsim_sandbox(JANUARY), dialsim_sandbox(JANUARY)])
    headers = {"X-API-Key": served[1].api_key}
    assert httpx.get(served[1].url + "/api/agent/list", headers=headers).status_code == 500

def test_afterwards():
    assert ["stopped" in repr(sandbox) for sandbox in served] == [True, True]
"""
    )
    result = inner()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*the sandbox had a fault of its own*ZeroDivisionError*"])
