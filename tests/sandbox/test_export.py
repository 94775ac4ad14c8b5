"""The export under /_dialsim: the folder of `dialsim run`, as a zip file."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Event
from typing import IO, Any

import httpx
import pytest
from tests.sandbox.asking import WORLD, Client, control, exchange_of_the_corpus, key

import dialsim
from cli.program import dialsim as dialsim_program
from dialsim.engine.trace import Trace
from dialsim.report.writing import write_run
from dialsim.results.result import Result
from dialsim.sandbox.application import application
from dialsim.sandbox.control import run as control_run
from dialsim.sandbox.core import SandboxCore
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch

pytestmark = pytest.mark.usefixtures("pictures_unrendered")

FILES = {
    "calls.parquet",
    "transitions.parquet",
    "recipients.parquet",
    "campaigns.parquet",
    "webhooks.jsonl",
    "summary.json",
    "report.html",
    "sheet.html",
    "scenario.yaml",
    "manifest.json",
}
END = {"end": None, "end_thai": None}
JANUARY = Sketch(lines=2).campaign(
    "January", recipients={"count": 20}, max_attempts=2, retry_interval="10m"
)


def unpacked(response: httpx.Response) -> dict[str, bytes]:
    """The files of an export, which are dated by virtual time."""
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/zip"
    assert int(response.headers["content-length"]) == len(response.content)
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.testzip() is None
        assert {entry.date_time[:3] for entry in archive.infolist()} == {(2026, 1, 5)}
        return {name: archive.read(name) for name in archive.namelist()}


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "end", [None, pytest.param("2026-01-05T11:00:00Z", marks=pytest.mark.slow)]
)
def test_the_export_of_a_finished_run_is_the_folder_that_run_writes(
    tmp_path: Path, end: str | None
) -> None:
    overrides = [] if end is None else [f"clock.end={end}"]
    scenario = JANUARY.scenario().with_(*overrides)
    client = Client(SandboxCore(scenario))
    move = {"until": "idle"} if end is None else {"to": end}
    control(client, "POST", "/clock/advance", move)
    found = unpacked(control(client, "GET", "/export"))
    expected = written(write_run(dialsim.run(scenario), tmp_path / "run"))
    assert set(found) == set(expected) == FILES
    manifests = [json.loads(files.pop("manifest.json")) for files in (found, expected)]
    assert manifests[0] | {"wall_seconds": None} == manifests[1] | {"wall_seconds": None}
    # a clock that waits for the last analysis stands still a little later than the last call ends
    summaries = [json.loads(files.pop("summary.json")) for files in (found, expected)]
    assert summaries[0] | END == summaries[1] | END
    assert found == expected
    assert b"what would help" in found["report.html"].lower()


@cache
def of_the_corpus() -> tuple[SandboxCore, dict[str, bytes]]:
    """The sandbox of the golden requests after a command, and its export."""
    client = Client(exchange_of_the_corpus())
    campaign = client.core.accounts[0].views[2].identifier
    control(client, "POST", f"/campaigns/{campaign}/cancel")
    return client.core, unpacked(control(client, "GET", "/export"))


def test_a_run_that_goes_on_is_exported_as_it_stands_and_can_be_steered_before() -> None:
    core, found = of_the_corpus()
    result = Result(core.simulation.trace)
    assert found["summary.json"] == result.summary.to_json()
    lines = io.BytesIO()
    result.write_webhooks(lines)
    assert found["webhooks.jsonl"] == lines.getvalue()
    # with runs of the scenario, which know nothing of the command, it can't be compared
    assert b"Not measured" in found["report.html"]
    assert b"it was given commands from outside or is not over" in found["report.html"]


def test_a_run_that_has_not_begun_can_be_exported() -> None:
    scenario = Sketch(lines=1).campaign("Draft", "busy 1s", requested=None).scenario()
    assert set(unpacked(control(Client(SandboxCore(scenario)), "GET", "/export"))) == FILES


def test_the_clock_may_move_while_the_run_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    core = SandboxCore(JANUARY.scenario())
    core.simulation.advance(hours=1)
    expected = Result(core.simulation.trace).summary.to_json()
    packing, moved = asyncio.Event(), asyncio.Event()
    real = control_run.pack

    async def scene() -> httpx.Response:
        loop = asyncio.get_running_loop()

        def pack(*given: Any) -> object:
            loop.call_soon_threadsafe(packing.set)
            asyncio.run_coroutine_threadsafe(moved.wait(), loop).result(timeout=600)
            return real(*given)

        monkeypatch.setattr(control_run, "pack", pack)
        transport = httpx.ASGITransport(application(core))
        home = {"Host": "127.0.0.1:8400"}
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=home) as ask:
            exporting = asyncio.create_task(ask.get("/_dialsim/export"))
            await packing.wait()
            await ask.post("/_dialsim/clock/advance", json={"by": "1h"})
            moved.set()
            return await exporting

    assert unpacked(asyncio.run(scene()))["summary.json"] == expected
    assert Result(core.simulation.trace).summary.to_json() != expected


# -- API keys --------------------------------------------------------------------------------------

KEYS = {name: key(name) for name in ("Acme", "Beta", "Gamma")}
MASKED = {
    name: f"{name.lower()}_{'x' * 31}{number}" for number, name in enumerate(KEYS, 1)
}  # keys must differ
KEYED = JANUARY.having(api_key="acme_0123456789abcdef0123456789abcdef")


def exported(scenario: Scenario, query: str = "") -> dict[str, bytes]:
    return unpacked(control(Client(SandboxCore(scenario)), "GET", f"/export{query}"))


def test_an_export_holds_no_api_keys() -> None:
    _, found = of_the_corpus()
    for secret in KEYS.values():
        assert not [name for name, content in found.items() if secret.encode() in content]
    text = WORLD.read_text("utf-8")
    for name, secret in KEYS.items():
        text = text.replace(secret, MASKED[name])
    assert found["scenario.yaml"].decode() == text
    keys = {block.name: block.api_key for block in dialsim.loads(text).organizations}
    assert keys == MASKED


@pytest.mark.parametrize(
    "query", [pytest.param("?apiKeys=false", marks=pytest.mark.slow), "?apiKeys=true"]
)
def test_an_export_holds_api_keys_where_they_are_asked_for(query: str) -> None:
    found = exported(dialsim.load(WORLD), query)["scenario.yaml"]
    assert (found == WORLD.read_bytes()) is (query == "?apiKeys=true")


@pytest.mark.parametrize("query", ["?apiKeys=", "?apiKeys=1", "?apiKeys=True", "?apiKeys"])
def test_whether_api_keys_are_asked_for_is_said_clearly(query: str) -> None:
    response = control(Client(SandboxCore(JANUARY.scenario())), "GET", f"/export{query}")
    assert (response.status_code, response.json()["errors"]) == (
        400,
        ["apiKeys must be true or false"],
    )


def test_keys_are_masked_in_overrides_too() -> None:
    scenario = JANUARY.scenario().with_(f"organizations.0.apiKey={KEYS['Acme']}")
    manifest = json.loads(exported(scenario)["manifest.json"])
    assert manifest["overrides"] == [f"organizations.0.apiKey={MASKED['Acme']}"]


def test_a_key_that_is_the_end_of_another_one_is_masked_as_well() -> None:
    text = WORLD.read_text("utf-8").replace(KEYS["Beta"], f"my_{KEYS['Acme']}")
    found = exported(dialsim.loads(text))["scenario.yaml"].decode()
    assert KEYS["Acme"] not in found
    assert f"apiKey: my_acme_{'x' * 31}2\n" in found


def test_a_text_that_spells_a_key_otherwise_is_left_out() -> None:
    spelt = KEYED.text.replace("acme_0", "\\x61cme_0")
    assert dialsim.loads(spelt).organizations[0].api_key == KEYS["Acme"]
    assert set(exported(dialsim.loads(spelt))) == FILES - {"scenario.yaml"}
    assert set(exported(dialsim.loads(spelt), "?apiKeys=true")) == FILES


@pytest.mark.parametrize("query", ["", pytest.param("?apiKeys=true", marks=pytest.mark.slow)])
def test_the_page_of_an_export_can_be_made_anew(tmp_path: Path, query: str) -> None:
    end = "2026-01-05T11:00:00Z"
    client = Client(SandboxCore(KEYED.scenario([f"clock.end={end}"])))
    control(client, "POST", "/clock/advance", {"to": end})
    found = unpacked(control(client, "GET", f"/export{query}"))
    for name, content in found.items():
        (tmp_path / name).write_bytes(content)
    made = dialsim_program("report", tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert (tmp_path / "report.html").read_bytes() == found["report.html"]


def test_the_export_is_saved_from_python(tmp_path: Path) -> None:
    with dialsim.Sandbox(KEYED.text) as sandbox:
        for api_keys in (False, True):
            file = tmp_path / f"{api_keys}.zip"
            assert sandbox.export(file, api_keys=api_keys) == file
            with zipfile.ZipFile(file) as archive:
                assert set(archive.namelist()) == FILES
                found = archive.read("scenario.yaml").decode()
            assert (KEYS["Acme"] in found) is api_keys
        with pytest.raises(dialsim.DialsimError, match=r"False\.zip is there already"):
            sandbox.export(tmp_path / "False.zip")
        with pytest.raises(dialsim.DialsimError, match=r"run\.zip can't be written: No such"):
            sandbox.export(tmp_path / "nowhere" / "run.zip")
    assert {path.name for path in tmp_path.iterdir()} == {"False.zip", "True.zip"}


def test_an_export_that_nobody_waits_for_any_more_leaves_no_file_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, packing, go_on = exchange_of_the_corpus(), Event(), Event()
    packed, pack = [], control_run.pack

    def slowly(trace: Trace, api_keys: bool) -> IO[bytes]:
        packing.set()
        assert go_on.wait(10)
        packed.append(pack(trace, api_keys))
        return packed[0]

    async def scene() -> None:
        query = control_run.ExportQuery()
        asking = asyncio.create_task(control_run.RunOperations(core).export_run(query))
        await asyncio.to_thread(packing.wait, 10)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        go_on.set()

    monkeypatch.setattr(control_run, "pack", slowly)
    asyncio.run(scene())  # which waits for threads
    gc.collect()
    assert packed[0].closed
