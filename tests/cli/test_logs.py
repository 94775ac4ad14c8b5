"""`dialsim log` and `dialsim verify`: what they print, and their exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.program import dialsim
from logs.good_log import SKETCH, entries, written

CONTENTS = (Path(__file__).parent / "log.txt").read_text(encoding="utf-8")
FOUND = (Path(__file__).parent / "verify.txt").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = written(tmp_path, entries())
    lines = log.read_bytes().splitlines()
    log.write_bytes(b"\n".join([*lines[:200], lines[200][:80], *lines[300:]]))
    return tmp_path


def test_log_says_what_is_there(folder: Path) -> None:
    done = dialsim("log", "webhooks.jsonl", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == CONTENTS


def test_the_same_as_json(folder: Path) -> None:
    document = json.loads(dialsim("log", "webhooks.jsonl", "--format", "json", cwd=folder).stdout)
    assert document["form"] == "lines"
    assert document["damages"][0]["line"] == 201
    assert document["campaigns"][0]["by_attempt"]["1"]["COMPLETED"] > 0


@pytest.mark.parametrize("command", ["log", "verify"])
def test_what_is_no_log_ends_with_2(command: str, folder: Path) -> None:
    (folder / "plan.yaml").write_text(SKETCH.text)
    done = dialsim(command, "plan.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: plan.yaml: no body of a CALL_RESULT webhook in it\n")


def test_verify_finds_nothing_in_a_good_log(folder: Path) -> None:
    (folder / "plan.yaml").write_text(SKETCH.text)
    written(folder, entries())
    done = dialsim("verify", "webhooks.jsonl", "--scenario", "plan.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("webhooks.jsonl: nothing against the rules in ")


def test_verify_notices_a_hundred_lines_that_are_missing(folder: Path) -> None:
    done = dialsim("verify", "webhooks.jsonl", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert {line.split()[0] for line in done.stdout.splitlines() if ", call " in line} == {"W1"}
    assert "but the log lacks 1 of the attempts before" in done.stdout


def test_verify_names_rule_call_instant_and_facts(folder: Path) -> None:
    log = entries()
    log[40]["body"]["payload"]["campaign"]["maxAttempts"] = 2
    log[60]["body"]["payload"]["call"]["callEndedAt"] = "2026-01-05T01:00:00.000Z"
    written(folder, log)
    done = dialsim("verify", "webhooks.jsonl", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == FOUND
    listed = json.loads(dialsim("verify", "webhooks.jsonl", "--format", "json", cwd=folder).stdout)
    assert len(listed["findings"]) == len([x for x in FOUND.splitlines() if ", call " in x])
