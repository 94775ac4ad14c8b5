"""`dialsim pull` reads a running campaign over HTTP; the sandbox is the service."""

from __future__ import annotations

import csv
import json
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dialsim
from cli.program import Done, command
from cli.program import dialsim as program
from dialsim.errors import ServiceError
from dialsim.interface.instants import parse_instant
from dialsim.logs.pull import ServiceClient, pull, read_schedule_file
from dialsim.logs.pulled import Pulled
from dialsim.scenario.behaviour import BUILT_IN
from logs.running import KEY, NUMBERS, SCHEDULE, campaign_id, january, people_of
from logs.stub import Reply, stub

ENDED = {"COMPLETED", "NO_ANSWER", "BUSY", "FAILED"}
ID = "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[dialsim.Sandbox]:
    """On Tuesday at 09:20, the second of five days with two hours each."""
    with dialsim.Sandbox(january().scenario(), seed=5) as running:
        running.clock.advance(hours=24, minutes=20)
        yield running


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "key.txt").write_text(f"{KEY}\n")
    (tmp_path / "request.json").write_text(json.dumps(SCHEDULE))
    return tmp_path


def pulled(url: str, files: Path, *more: str | Path, campaign: str) -> Done:
    return program(
        "pull", url, "--api-key-file", "key.txt", "--campaign", campaign, "--out", "today",
        "--rate", "100", *more, cwd=files,
    )  # fmt: skip


def read(sandbox: dialsim.Sandbox, out: Path, **more: Any) -> Pulled:
    """The same from Python, without a wait."""
    settings = {"rate": 1e6, "wait": lambda _: None} | more
    with ServiceClient(sandbox.url, KEY, **settings) as client:
        return pull(client, [campaign_id(sandbox)], out)


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "people.csv").open(encoding="utf-8", newline="") as sheet:
        return [*csv.DictReader(sheet)]


def test_what_was_pulled_is_the_truth_and_loads(sandbox: dialsim.Sandbox, files: Path) -> None:
    done = pulled(
        sandbox.url, files, "--schedule", "request.json", "--lines", "2",
        campaign=campaign_id(sandbox),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    scenario = dialsim.load(files / "today/scenario.yaml")
    truth = sandbox.result()
    calls = truth.calls[truth.calls.status.isin(ENDED)]
    last = calls.groupby("recipient").last()
    rows = table(files / "today")
    assert len(rows) == len(truth.recipients) == 250
    exact = 0
    for row, person in zip(rows, truth.recipients.itertuples(), strict=True):
        assert (row["tel"], row["customerName"]) == (person.tel, person.customer_name)
        assert row["agentParams.amount"] == "100.5"
        assert int(row["history.callAttempt"] or 0) == person.call_attempt
        if person.recipient not in last.index:
            assert row["history.lastEndedAt"] == ""
            continue
        assert row["history.latestCallStatus"] == person.latest_call_status
        ended = last.loc[person.recipient].call_ended_at
        found = pd.Timestamp(row["history.lastEndedAt"])
        # of calls that ended the end is known; of waiting retries it may be earlier
        assert found >= ended if person.latest_call_status not in ENDED else found == ended
        exact += found == ended
    assert exact > 0.8 * len(last)
    organization = scenario.organizations[0]
    assert (organization.max_concurrent_calls, organization.caller_ids) == (2, tuple(NUMBERS))
    campaign = organization.campaigns[0]
    assert campaign.id == campaign_id(sandbox)
    assert campaign.schedule is not None
    assert campaign.schedule.model_dump(mode="json", by_alias=True, exclude_none=True) == {
        **SCHEDULE, "startDateTime": "2026-01-05T02:00:00.000Z",
        "endDateTime": "2026-01-10T12:00:00.000Z", "removeDuplicates": False,
    }  # fmt: skip
    now = parse_instant(sandbox.clock.now.isoformat())
    assert now - 120_000 <= scenario.clock.start <= now
    reached = int((truth.recipients.latest_call_status == "COMPLETED").sum())
    assert f"of 250 people {reached} had been reached by Tue 6 Jan 2026 09:" in done.stdout
    assert dialsim.run(scenario, seed=1).summary.people_reached > reached


def in_database(file: Path) -> tuple[str, ...]:
    """The lines of a file as rows of a database, as options name it."""
    path = file.with_name("calls.db")
    with sqlite3.connect(path) as database:
        database.execute("create table webhooks (body text)")
        lines = file.read_text(encoding="utf-8").splitlines()
        database.executemany("insert into webhooks values (?)", [(line,) for line in lines])
    return f"sqlite:///{path}", "--table", "webhooks"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("webhooks.jsonl", marks=pytest.mark.slow),
        pytest.param("database", marks=pytest.mark.slow),
        "folder",
    ],
)
def test_a_log_tells_what_the_service_does_not(
    sandbox: dialsim.Sandbox, files: Path, kind: str
) -> None:
    truth = sandbox.result()
    truth.write(files / "log")
    bodies = files / "log" / "webhooks.jsonl"
    log = {"folder": (files / "log",), "webhooks.jsonl": (bodies,)}.get(kind) or in_database(bodies)
    done = pulled(sandbox.url, files, "--log", *log, campaign=campaign_id(sandbox))
    assert (done.returncode, done.stderr) == (0, "")
    assert "guess" not in done.stdout
    scenario = dialsim.load(files / "today/scenario.yaml")
    organization = scenario.organizations[0]
    campaign = organization.campaigns[0]
    assert (campaign.name, campaign.agent) == ("January", "Reminder")
    assert organization.max_concurrent_calls == 2
    assert campaign.schedule is not None
    body = campaign.schedule.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in ("timeWindows", "maxAttempts", "retryInterval"):
        assert body[name] == SCHEDULE[name]
    calls = truth.calls[truth.calls.status.isin(ENDED)]
    last = calls.groupby("recipient").last()
    for row, person in zip(table(files / "today"), truth.recipients.itertuples(), strict=True):
        if person.recipient in last.index:
            ended = last.loc[person.recipient]
            assert pd.Timestamp(row["history.lastEndedAt"]) == ended.call_ended_at
            number = ended.caller_id if kind == "folder" else ""
            assert row["history.lastCallerId"] == number
    if kind == "folder":
        assert set(organization.caller_ids) == set(NUMBERS)
    count = int(truth.calls.status.isin(ENDED).sum())
    assert f"How people behave is estimated from {count} calls of" in " ".join(done.stdout.split())
    answered = scenario.behaviours["default"].outcomes.answered
    seen = float((truth.calls.status == "COMPLETED").sum() / count)
    assert answered == pytest.approx(seen, abs=0.15)
    assert answered != BUILT_IN.outcomes.answered


def test_a_service_that_calls_retries_first_is_known_by_them(tmp_path: Path) -> None:
    for order, wanted in (("retriesFirst", "retriesFirst"), ("freshFirst", "due")):
        with dialsim.Sandbox(january(order=order).scenario(), seed=5) as running:
            running.clock.advance(hours=1, minutes=50)
            read(running, tmp_path / order)
        assert dialsim.load(tmp_path / order / "scenario.yaml").engine.order == wanted


def test_the_behaviour_of_a_log_can_be_left_out(files: Path, sandbox: dialsim.Sandbox) -> None:
    sandbox.result().write(files / "log")
    done = pulled(
        sandbox.url, files, "--log", files / "log", "--default-behaviour",
        campaign=campaign_id(sandbox),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "behaviours:" not in (files / "today/scenario.yaml").read_text(encoding="utf-8")


def test_a_log_of_too_few_calls_leaves_the_default_behaviour(files: Path) -> None:
    with dialsim.Sandbox(january().scenario(), seed=5) as running:
        running.clock.advance(minutes=5)
        running.result().write(files / "log")
        done = pulled(running.url, files, "--log", files / "log", campaign=campaign_id(running))
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "a behaviour is estimated from 30 calls or more: the built-in default behaviour" in said
    assert "behaviours:" not in (files / "today/scenario.yaml").read_text(encoding="utf-8")


def test_a_log_of_other_campaigns_is_refused(files: Path, sandbox: dialsim.Sandbox) -> None:
    with dialsim.Sandbox(january(20).scenario(), seed=9) as other:
        other.clock.advance(hours=1)
        other.result().write(files / "log")
    done = pulled(sandbox.url, files, "--log", files / "log", campaign=campaign_id(sandbox))
    assert done.returncode == 2
    assert "has no call of campaign" in done.stderr
    assert "it has: January (" in done.stderr


def test_the_key_is_nowhere(sandbox: dialsim.Sandbox, files: Path) -> None:
    good = pulled(sandbox.url, files, campaign=campaign_id(sandbox))
    wrong = pulled(sandbox.url, files, "--force", campaign=ID)
    for done in (good, wrong):
        assert KEY not in done.stdout + done.stderr
    for file in files.rglob("*"):
        assert file.name == "key.txt" or file.is_dir() or KEY not in file.read_text()


def test_the_key_may_come_from_the_environment(
    sandbox: dialsim.Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("pull", sandbox.url, "--campaign", campaign_id(sandbox), "--out", tmp_path / "out")
    monkeypatch.delenv("DIALSIM_API_KEY", raising=False)
    missing = program(*asked)
    assert missing.returncode == 2
    assert "no API key: name a file that holds it (--api-key-file)" in missing.stderr
    monkeypatch.setenv("DIALSIM_API_KEY", KEY)
    assert program(*asked, "--rate", "100").returncode == 0


def test_what_the_service_does_not_tell_is_said(sandbox: dialsim.Sandbox, files: Path) -> None:
    done = pulled(sandbox.url, files, campaign=campaign_id(sandbox))
    assert (
        "does not return the schedule. Written instead: the default time windows, maxAttempts"
        in (done.stdout)
    )
    assert "10 is a guess" in done.stdout
    assert "--now" in done.stdout  # a sandbox's clock is virtual
    written = (files / "today/scenario.yaml").read_text()
    assert "maxConcurrentCalls: 10 # a guess, the service does not return it" in written
    assert "schedule: # a guess: the service does not return it" in written


def test_now_may_be_said_but_not_before_what_is_known(
    sandbox: dialsim.Sandbox, files: Path
) -> None:
    done = pulled(sandbox.url, files, "--now", "2026-01-06T08:00+07:00", campaign=ID)
    assert done.returncode == 2
    early = pulled(
        sandbox.url, files, "--now", "2026-01-05T09:00+07:00", campaign=campaign_id(sandbox)
    )
    assert early.returncode == 2
    assert "is before the newest change of a recipient" in early.stderr
    late = pulled(
        sandbox.url, files, "--now", "2026-01-06T15:00+07:00", campaign=campaign_id(sandbox)
    )
    assert late.returncode == 0
    assert "start: '2026-01-06T08:00:00.000Z'" in (files / "today/scenario.yaml").read_text()


def test_a_folder_is_replaced_by_force_alone(sandbox: dialsim.Sandbox, files: Path) -> None:
    assert pulled(sandbox.url, files, campaign=campaign_id(sandbox)).returncode == 0
    again = pulled(sandbox.url, files, campaign=campaign_id(sandbox))
    assert again.returncode == 2
    assert "today exists already; choose another folder, or use --force" in again.stderr
    assert pulled(sandbox.url, files, "--force", campaign=campaign_id(sandbox)).returncode == 0
    assert {path.name for path in files.iterdir()} == {"key.txt", "request.json", "today"}


def test_errors_and_slow_answers_for_the_moment_are_survived(
    sandbox: dialsim.Sandbox, tmp_path: Path
) -> None:
    sandbox.faults.strike_api("error", 2, status=503, path="/api/campaign")
    sandbox.faults.strike_api("error", 3, status=500, path="/api/campaign")
    sandbox.faults.strike_api("slow", 1, delay="400ms", path="/api/campaign")
    waits: list[float] = []
    assert len(read(sandbox, tmp_path / "out", wait=waits.append, timeout=0.2).campaigns) == 1
    sandbox.faults.clear()
    backoffs = [wait for wait in waits if wait > 0.1]
    assert len(backoffs) == 6
    for expected, wait in zip((1, 2, 4, 8, 16), backoffs, strict=False):
        assert 0.75 * expected <= wait <= 1.25 * expected


def test_what_stays_broken_is_given_up_and_nothing_is_written(
    sandbox: dialsim.Sandbox, tmp_path: Path
) -> None:
    sandbox.faults.strike_api("error", 100, status=502)
    with pytest.raises(
        ServiceError, match="answers 502, an error of the service, 4 times in a row"
    ):
        read(sandbox, tmp_path / "out", retries=3)
    sandbox.faults.clear()
    assert [*tmp_path.iterdir()] == []


def test_a_stopped_command_goes_on_where_it_was(sandbox: dialsim.Sandbox, tmp_path: Path) -> None:
    campaign = campaign_id(sandbox)
    asked: list[str] = []

    class Noting(ServiceClient):
        def get(self, path: str) -> Any:
            asked.append(path)
            if path.endswith("page=3") and len(asked) == 3:
                raise KeyboardInterrupt  # as Ctrl-C, or a kill, would
            return super().get(path)

    def attempt() -> None:
        with Noting(sandbox.url, KEY, rate=1e6, wait=lambda _: None) as client:
            pull(client, [campaign], tmp_path / "out")

    with pytest.raises(KeyboardInterrupt):
        attempt()
    assert not (tmp_path / "out").exists()
    kept = tmp_path / ".out.pull"
    assert len([*kept.glob("*.json")]) == 2
    assert kept.stat().st_mode & 0o077 == 0
    attempt()
    recipients = [path for path in asked if "recipients" in path]
    assert [path[-1] for path in recipients] == ["1", "2", "3", "3"]
    assert not kept.exists()
    read(sandbox, tmp_path / "whole")
    assert table(tmp_path / "out") == table(tmp_path / "whole")


def test_two_campaigns_share_the_lines(files: Path) -> None:
    two = january(30).campaign("February", recipients=people_of(30), agent="Reminder", **SCHEDULE)
    with dialsim.Sandbox(two.scenario(), seed=1) as running:
        running.clock.advance(hours=1)
        first, second = (campaign.id for campaign in running.campaigns)
        done = pulled(
            running.url, files, "--campaign", second, "--schedule", "request.json", campaign=first
        )
    assert done.returncode == 0, done.stderr
    loaded = dialsim.load(files / "today/scenario.yaml")
    assert [part.id for part in loaded.organizations[0].campaigns] == [first, second]
    assert [agent.name for agent in loaded.organizations[0].agents] == ["Agent"]


def test_people_whose_data_are_masked_are_there_without_them(files: Path) -> None:
    retained = january(40).having(retention={"personalData": "1h"})
    with dialsim.Sandbox(retained.scenario(), seed=1) as running:
        running.clock.advance(hours=10)
        done = pulled(
            running.url, files, "--schedule", "request.json", campaign=campaign_id(running)
        )
        truth = running.result().recipients
    assert done.returncode == 0, done.stderr
    assert "phone numbers are masked" in done.stdout
    dialsim.load(files / "today/scenario.yaml")
    rows = table(files / "today")
    assert [int(row["history.callAttempt"] or 0) for row in rows] == truth.call_attempt.tolist()
    assert len({row["tel"] for row in rows}) == 40


@pytest.mark.slow
def test_a_killed_process_leaves_no_folder_and_goes_on(
    sandbox: dialsim.Sandbox, tmp_path: Path
) -> None:
    asked = command(
        "pull", sandbox.url, "--campaign", campaign_id(sandbox), "--out", "out", "--rate", "3"
    )
    environment = {**os.environ, "DIALSIM_API_KEY": KEY}
    kept = tmp_path / ".out.pull"
    with subprocess.Popen(asked, cwd=tmp_path, env=environment) as process:
        while not [*kept.glob("*.json")]:
            time.sleep(0.01)
        process.kill()
    assert [path.name for path in tmp_path.iterdir()] == [".out.pull"]
    done = subprocess.run(
        asked, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert len(table(tmp_path / "out")) == 250


# -- what may be wrong ----------------------------------------------------------------------------


def failing(files: Path, url: str, *more: str, campaign: str = ID) -> str:
    done = pulled(url, files, "--retries", "0", *more, campaign=campaign)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert KEY not in done.stderr
    assert not (files / "today").exists()
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", " ".join(done.stderr.split()))


def test_a_wrong_key_is_named_with_where_the_right_one_is(
    sandbox: dialsim.Sandbox, files: Path
) -> None:
    (files / "key.txt").write_text("test_wrong")
    assert failing(files, sandbox.url) == (
        "Error: http://HOST refuses the API key (401 INVALID_API_KEY): Invalid API key; the key in "
        "force is in the dashboard under System, Developers, API Key, and a new one ends the old "
        "one at once"
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "API key file key.txt is empty"),
        (b"a b\n", "API key file key.txt must hold one key on one line and nothing else"),
        (b"a\nb\n", "API key file key.txt must hold one key on one line and nothing else"),
        (b"\xff\xfe", "API key file key.txt is no text: it must hold the key and nothing else"),
    ],
)
def test_a_key_file_that_is_none(files: Path, content: bytes, says: str) -> None:
    (files / "key.txt").write_bytes(content)
    assert failing(files, "http://127.0.0.1:9") == f"Error: {says}"


def test_a_campaign_that_is_not_there(sandbox: dialsim.Sandbox, files: Path) -> None:
    assert failing(files, sandbox.url) == (
        f"Error: http://HOST has no such campaign (/api/campaign/{ID}/recipients?page=1): is the "
        "id right, and the key that of the organization whose campaign it is?"
    )
    assert 'campaign "January": must be the campaign\'s id, a UUID' in failing(
        files, sandbox.url, campaign="January"
    )


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("voice.example.com", "must be the service's address, such as https://voice.example.com"),
        ("ftp://voice.example.com", "must be the service's address, such as"),
        ("https://me:secret@voice.example.com", "must be the service's address alone"),
        ("https://voice.example.com?key=secret", "must be the service's address alone"),
        ("http://voice.example.com", "by http the key would travel unencrypted; use https"),
        ("http://127.0.0.1:9", "can't be reached: [Errno 111] Connection refused; is the address"),
    ],
)
def test_an_address_that_is_none(files: Path, url: str, says: str) -> None:
    said = failing(files, url)
    assert says in said
    assert "secret" not in said


HTML = {"Content-Type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (
            Reply(200, b"<html>", HTML),
            "/recipients?page=1 answers 200 with text/html, and not as the service does: is this "
            "the address of its interface, without /api, and not that of the dashboard or of a "
            "proxy?",
        ),
        (Reply(404, b"<html>", HTML), "answers 404 with text/html, and not as the service does"),
        (Reply(404, b'{"detail": "Not Found"}'), "answers 404 with application/json, and not as"),
        (Reply(200, b"[]"), "answers 200 with application/json, and not as the service does"),
        (
            Reply(302, b"", {"Location": "https://other.example.com/login"}),
            "sends us to https://other.example.com/login, which is not followed so that the key",
        ),
        (Reply(429, b"", {"Retry-After": "7200"}), "answers 429 and asks to wait 7,200 s"),
        (Reply(503, b""), "answers 503, an error of the service, once; try again later"),
        (
            Reply(200, b'{"success": true, "data": {"totalRecipients": "some", "totalPages": 1}}'),
            "/recipients?page=1: data.totalRecipients is not as the interface has it: Input should "
            "be a valid integer, unable to parse string as an integer; is this the service?",
        ),
        (
            Reply(400, f'{{"code": "ODD", "message": "your key {KEY} is odd"}}'.encode()),
            "answers 400 ODD: your key (the key) is odd",
        ),
    ],
)
def test_a_service_that_answers_otherwise(files: Path, reply: Reply, says: str) -> None:
    with stub(lambda _: reply) as url:
        assert says in failing(files, url)


def test_a_server_without_tls_at_https(files: Path, sandbox: dialsim.Sandbox) -> None:
    said = failing(files, sandbox.url.replace("http:", "https:"))
    assert "https://HOST: no secure connection:" in said
    assert said.endswith("is the address right, and this machine's clock? The key was not sent")


def test_an_answer_that_does_not_come(files: Path, sandbox: dialsim.Sandbox) -> None:
    sandbox.faults.strike_api("slow", 1, delay="2s")
    said = failing(files, sandbox.url, "--timeout", "0.1")
    sandbox.faults.clear()
    assert "gave no answer in time, once; try again later, or with a longer --timeout" in said


def test_retry_after_is_waited_for() -> None:
    replies = [
        Reply(429, b"", {"Retry-After": "7"}),
        Reply(503, b"", {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Reply(200, b'{"success": true, "data": []}'),
    ]
    waits: list[float] = []
    with (
        stub(lambda _: replies.pop(0)) as url,
        ServiceClient(url, KEY, rate=1e6, wait=waits.append) as client,
    ):
        assert client.get("/api/agent/list").data == []
    assert [wait for wait in waits if wait > 0.1 or wait == 0] == [7, 0]


@pytest.mark.parametrize("zone", [" GMT", " +0000", " -0000", ""])
def test_the_date_of_an_answer_is_in_utc_whether_it_says_so_or_not(
    monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", "Asia/Bangkok")
    time.tzset()
    headers = {"Date": f"Mon, 05 Jan 2026 02:00:00{zone}"}
    reply = Reply(200, b'{"success": true, "data": []}', headers)
    try:
        with stub(lambda _: reply) as url, ServiceClient(url, KEY) as client:
            answer = client.get("/api/agent/list")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert answer.at == parse_instant("2026-01-05T02:00:00Z")


def test_requests_keep_their_pace() -> None:
    waits: list[float] = []
    reply = Reply(200, b'{"success": true, "data": []}')
    with (
        stub(lambda _: reply) as url,
        ServiceClient(url, KEY, rate=0.5, wait=waits.append) as client,
    ):
        for _ in range(3):
            client.get("/api/agent/list")
    assert len(waits) == 2
    assert all(1.5 < wait <= 2 for wait in waits)


def test_a_list_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    page = {"totalRecipients": 3, "totalPages": 1, "page": 1, "recipients": []}
    answers: list[Any] = [page, {**page, "totalRecipients": 0}]

    def reply(_: str) -> Reply:
        return Reply(200, json.dumps({"success": True, "data": answers.pop(0)}).encode())

    with stub(reply) as url, ServiceClient(url, KEY, rate=1e6) as client:
        with pytest.raises(ServiceError, match="the service says 3 recipients, but its pages have"):
            pull(client, [ID], tmp_path / "out")
        assert len(pull(client, [ID], tmp_path / "out").campaigns[0].recipients) == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "must hold the body of the schedule request as JSON: Expecting"),
        ("{}", "is no body of a schedule request: startDateTime must be a valid ISO 8601 date"),
        (
            '{"startDateTime": "2026-01-05", "lines": 3}',
            "is no body of a schedule request: property lines should not exist",
        ),
    ],
)
def test_a_schedule_file_that_is_none(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "request.json").write_text(content)
    with pytest.raises(ServiceError, match=re.escape(says)):
        read_schedule_file(tmp_path / "request.json")


def test_what_is_missing_is_said_with_how_to_install_it(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialsim.logs.pull.find_spec", lambda _: None)
    assert failing(files, "http://127.0.0.1:9") == (
        "Error: pull needs httpx: pip install '.[sandbox]' in the folder of dialsim"
    )
