"""Schemathesis asks a running sandbox whatever its description allows, and forbids."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.sandbox.asking import NOW, WORLD, key
from tests.sandbox.described import OF_THE_SANDBOX
from tests.sandbox.serving import served

import dialsim
from dialsim.errors import Refused
from dialsim.interface import CampaignStatus
from dialsim.sandbox.commands import SteerCampaign
from dialsim.sandbox.core import SandboxCore

DRAFTS = 50

# Ids, numbers and voices exist in four of five cases.
SETTINGS = """
headers.X-API-Key = {key}
generation = {{ database = "none", mode = "all" }}
warnings = {{ fail-on = ["missing_test_data", "missing_auth"] }}

[dictionaries]
campaigns.values = {campaigns}
recipients.values = {recipients}
calls.values = {calls}
numbers.values = ["021000001", "021000002"]
voices.values = ["malee", "narin"]
accounts.values = ["5aaaaaaa-0000-4000-8000-000000000001"]
organizations.values = ["Acme", "Beta", "Gamma"]
callers.values = ["5bbbbbbb-0000-4000-8000-000000000001"]

[parameters]
"path.id" = {{ dictionary = "campaigns", probability = 0.8 }}
"path.recipientId" = {{ dictionary = "recipients", probability = 0.8 }}
"path.callId" = {{ dictionary = "calls", probability = 0.8 }}
"body.callerIds[*]" = {{ dictionary = "numbers", probability = 0.8 }}
"body.ttsVoiceKeys[*]" = {{ dictionary = "voices", probability = 0.8 }}
"body.sipAccountId" = {{ dictionary = "accounts", probability = 0.8 }}
"body.sipCallerId" = {{ dictionary = "callers", probability = 0.8 }}
"body.organization" = {{ dictionary = "organizations", probability = 0.8 }}

[[operations]]
include-operation-id = "reanalyzeCall"
parameters = {{ "path.id" = {{ dictionary = "calls", probability = 0.8 }} }}

[[operations]]
include-operation-id = ["getOrganization", "changeOrganization"]
parameters = {{ "path.id" = {{ dictionary = "organizations", probability = 0.8 }} }}

# A body that fits its schema can still be refused for what no schema can say: a day that is in no
# calendar, a span that ends before it begins, a voice, number or account that nobody knows,
# duplicates that can't be removed. The interface has all of these answered with 400. So has the
# control plane an instant that is over, a speed of a clock that stands still, a script that can't
# be read, parts of a fault that don't go together, a name that another has, an unknown behaviour.
[[operations]]
include-operation-id = [
    "scheduleCampaign", "advanceClock", "setClock", "scriptNumber", "addFault",
    "createOrganization", "createAgent", "listRequests",
]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 403, 404, 409]

# An export takes seconds, and its only parameter is true or false.
[[operations]]
include-operation-id = "exportRun"
generation = {{ max-examples = 5, database = "none", mode = "all" }}
"""


def exchange_with_drafts() -> SandboxCore:
    """The world of the golden requests, with campaigns enough to start."""
    world = yaml.safe_load(WORLD.read_text("utf-8"))
    campaigns = world["organizations"][0]["campaigns"]
    campaigns += [
        {"name": f"Draft {number}", "agent": "Survey", "recipients": [{"tel": f"08200000{number}"}]}
        for number in range(10, 10 + DRAFTS)
    ]
    core = SandboxCore(dialsim.loads(json.dumps(world, default=str)))
    core.simulation.advance(to=NOW)
    return core


def settings(core: SandboxCore) -> str:
    """Return the settings for requests of this sandbox's first organization."""
    views = core.accounts[0].views
    for view in views:
        view.catch_up()
    recipients = [who for view in views for who in view.recipient_ids(view.newest_first(0, 9))]
    calls = [call for view in views for call in view.call_ids(np.arange(len(view.calls)))]
    return SETTINGS.format(
        key=json.dumps(key("Acme")),
        campaigns=json.dumps([view.identifier for view in views]),
        recipients=json.dumps([who.decode() for who in recipients]),
        calls=json.dumps([call.decode() for call in calls]),
    )


def schemathesis(core: SandboxCore, folder: Path, *options: str) -> str:
    """Run all its checks; what it prints, last the verdict."""
    (folder / "schemathesis.toml").write_text(settings(core), "utf-8")
    with served(core) as sandbox:
        run = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{sandbox.url}/openapi.json"),
                # an export takes its time on a busy machine
                *("--request-timeout", "60", "--max-response-time", "60"),
                *("--checks", "all", "--no-color", *options),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


# Not asked: what makes up to ten million people, or a thousand runs; links, which can't be guessed;
# changes of an organization and triggered results, lest they are sent to made-up addresses; what
# would add organizations by the hundred, each with pictures in the export. Not warned of: what is
# missing because it was deleted on the way.
CONTROL = (
    *("--warnings", "off"),
    *("--exclude-checks", "use_after_free"),  # operators are shown what was deleted
    *("--include-tag", "sandbox"),
    *("--exclude-operation-id", "createCampaign", "--exclude-operation-id", "changeOrganization"),
    *("--exclude-operation-id", "triggerResult", "--exclude-path-regex", "^/files/"),
    *("--exclude-operation-id", "createOrganization", "--exclude-operation-id", "createAgent"),
    *("--exclude-operation-id", "forecastRun"),
)
ASKED = len(OF_THE_SANDBOX) - 8


def test_nothing_in_the_description_is_answered_otherwise(tmp_path: Path) -> None:
    options = ("--include-tag", "interface", "--max-examples", "1", "--seed", "1")
    said = schemathesis(exchange_with_drafts(), tmp_path, *options)
    assert "Tested: 7" in said


@pytest.mark.usefixtures("pictures_unrendered")  # of every export's page
def test_nothing_of_the_control_plane_is_answered_otherwise(tmp_path: Path) -> None:
    options = (*CONTROL, "--phases", "fuzzing", "--max-examples", "2")
    said = schemathesis(exchange_with_drafts(), tmp_path, *options, "--seed", "1")
    assert f"Tested: {ASKED}" in said


@pytest.mark.slow(minutes=3)
@pytest.mark.usefixtures("pictures_unrendered")  # of hundreds of exports
@pytest.mark.parametrize("seed", ["2", "3"])
def test_the_control_plane_may_be_asked_however_often(tmp_path: Path, seed: str) -> None:
    core = exchange_with_drafts()
    said = schemathesis(core, tmp_path, *CONTROL, "--max-examples", "100", "--seed", seed)
    assert f"Tested: {ASKED}" in said


@pytest.mark.slow(minutes=2)
def test_organizations_may_be_anything_that_is_described(tmp_path: Path) -> None:
    said = schemathesis(
        exchange_with_drafts(),
        tmp_path,
        *("--include-operation-id", "changeOrganization"),
        *("--include-operation-id", "createOrganization", "--include-operation-id", "createAgent"),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", "100", "--seed", "1"),
    )
    assert "Tested: 3" in said


@pytest.mark.slow(minutes=3)
@pytest.mark.parametrize("seed", ["2", "3"])
def test_nothing_is_answered_otherwise_however_often_it_is_asked(tmp_path: Path, seed: str) -> None:
    core = exchange_with_drafts()
    said = schemathesis(
        core, tmp_path, "--include-tag", "interface", "--max-examples", "400", "--seed", seed
    )
    assert "Tested: 7" in said
    started = [
        view.campaign.block.position
        for view in core.accounts[0].views[-DRAFTS:]
        if view.campaign.status is not CampaignStatus.DRAFT
    ]
    assert started
    for position in started:
        with suppress(Refused):  # not all are paused
            core.carry_out(SteerCampaign(organization=0, campaign=position, kind="resume"))
    core.simulation.advance(to="2026-02-28T00:00:00Z")  # what was asked for can be carried out
