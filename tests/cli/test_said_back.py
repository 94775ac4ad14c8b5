"""Output of commands before they simulate: overrides in full, and first estimates."""

from __future__ import annotations

import json

import pytest

from cli.program import SCRIPTED, dialsim

pytestmark = pytest.mark.usefixtures("pictures_undrawn")

FIRST = "scenarios/first-campaign.yaml"
ACME = "organizations.Acme"
SETS = {
    "lines=40": f"{ACME}.maxConcurrentCalls",
    "January.end=Fri 18:00": f"{ACME}.campaigns.January.schedule.endDateTime; Fri 18:00 is "
    "Fri 9 Jan 2026 18:00, Thai time",
    "January.windows+=Sun 08:00-10:00": f"{ACME}.campaigns.January.schedule.timeWindows; "
    "open Mon-Fri 09:00-19:00; Sat 10:00-19:00; Sun 08:00-19:00",
    "callerIds=4": f"{ACME}.campaigns.January.schedule.callerIds; from 021000002, "
    "021000003, 021000001 and 000000001",
}


@pytest.mark.parametrize("override", SETS)
def test_an_override_in_words_is_said_back_in_full(override: str) -> None:
    said = dialsim("validate", FIRST, "--set", override).stdout.splitlines()
    assert said[0] == f"--set {override}: {SETS[override]}"


def test_a_run_begins_with_a_first_estimate_and_json_says_nothing_more() -> None:
    few = ("--set", "people=900", "--set", "lines=1", "--engine", "simpy")
    said = dialsim("run", FIRST, *few).stdout.splitlines()
    assert said[0] == "--set people=900: organizations.Acme.campaigns.January.recipients.count"
    assert said[2].startswith("First estimate, before any run: done ")
    assert " of 900 people reached, cost " in said[2]
    json.loads(dialsim("run", FIRST, *few, "--format", "json").stdout)


def test_a_plan_answers_in_a_sentence() -> None:
    asked = ("plan", FIRST, "--set", "people=900", "--vary", "lines=1..2", "--replications", "2",
             "--max-replications", "2", "--jobs", "1", "--engine", "simpy",
             "--goal", "p95(finish) <= Fri 19:00")  # fmt: skip
    done = dialsim(*asked)
    whole = " ".join(done.stdout.split())
    assert "be done by Fri 9 Jan 19:00 in 95 of 100 runs" in whole
    assert "Fri 19:00 is Fri 9 Jan 2026 19:00, Thai time." in whole
    assert json.loads(dialsim(*asked, "--format", "json").stdout)["path"] == (
        "organizations.Acme.maxConcurrentCalls"
    )


def test_a_path_that_could_be_several_is_told_of_vary_as_well() -> None:
    done = dialsim("plan", SCRIPTED, "--vary", "maxAttemps=1..3", "--goal", "mean(dials) >= 1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: --vary maxAttemps: maxAttemps is not a known key; did you mean maxAttempts?\n"
    )
