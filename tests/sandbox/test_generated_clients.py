"""Clients that generators make of the OpenAPI description."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.sandbox.application import description
from dialsim.testing import Receiver, Sketch

JANUARY = Sketch(lines=1).campaign("January", "busy 1s", "answered 1s 20s", requested=None)


def generated(folder: Path, *command: str) -> str:
    """Run a generator on the description; return what it printed."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # as is ruff
    found = shutil.which(command[0], path=beside)
    if found is None:
        pytest.skip(f"{command[0]} is not installed")
    file = folder / "openapi.json"
    file.write_text(json.dumps(description()), encoding="utf-8")
    done = subprocess.run(
        [found, *command[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": beside},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_client_made_by_openapi_python_client_makes_a_journey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "openapi-python-client generate --path openapi.json --output-path made --meta none"
    said = generated(tmp_path, *command.split())
    assert "warning" not in said.lower()
    monkeypatch.syspath_prepend(str(tmp_path))

    def module(name: str) -> Any:
        return importlib.import_module(f"made.{name}")

    models = module("models")
    with Receiver() as receiver, dialsim.Sandbox(JANUARY.scenario()) as sandbox:
        sandbox.set_webhook_url(receiver.url)
        client = module("client").AuthenticatedClient(
            base_url=sandbox.url,
            token=sandbox.api_key,
            prefix="",
            auth_header_name="X-API-Key",
        )
        listed = module("api.interface.list_agents").sync(client=client)
        assert type(listed) is models.ListAgentsResponse200
        assert [agent.name for agent in listed.data] == ["Agent"]
        unknown = "00000000-0000-4000-8000-000000000000"
        missing = module("api.interface.get_call").sync(unknown, client=client)
        assert type(missing) is models.GetCallResponse404
        assert missing.message == "Call not found"
        body = models.ScheduleRequest.from_dict({"startDateTime": "2026-01-05T02:00:00Z"})
        campaign = sandbox.campaign("January").id
        start = module("api.interface.schedule_campaign").sync(campaign, client=client, body=body)
        assert start.data.status == "SCHEDULED"
        sandbox.clock.advance(until="idle")
        results = [models.CallResult.from_dict(one.json) for one in receiver.requests]
        assert {one.payload.call.call_status for one in results} == {"BUSY", "COMPLETED"}
        call = module("api.interface.get_call").sync(results[0].payload.call.id, client=client)
        assert call.data.call_status == results[0].payload.call.call_status
        client.get_httpx_client().close()


@pytest.mark.slow
def test_datamodel_codegen_makes_models_of_the_webhook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "datamodel-codegen --input openapi.json --output wire_models.py"
    generated(tmp_path, *command.split(), "--output-model-type", "pydantic_v2.BaseModel")
    monkeypatch.syspath_prepend(str(tmp_path))
    models = importlib.import_module("wire_models")
    with Receiver() as receiver, dialsim.Sandbox(JANUARY.scenario()) as sandbox:
        sandbox.set_webhook_url(receiver.url)
        assert sandbox.trigger("COMPLETED").received
        [request] = receiver.requests
    assert models.CallResult.model_validate(request.json).type == "CALL_RESULT"


@pytest.mark.slow
def test_openapi_typescript_reads_the_description(tmp_path: Path) -> None:
    generated(tmp_path, "openapi-typescript", "openapi.json", "-o", "schema.ts")
    assert "CallResult: {" in (tmp_path / "schema.ts").read_text(encoding="utf-8")
