"""Done lists: histories of recipients, and forecasts from them."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialsim as api
from cli.program import dialsim
from dialsim.engine.world import World
from dialsim.interface import CallStatus
from dialsim.interface.instants import parse_instant
from dialsim.scenario.campaign import Past
from dialsim.scenario.done_list import read_done

from .workbooks import A_DATE, workbook

NOW = "2026-01-06T09:00:00+07:00"
PLAN = """
name: December
organizations:
  - name: Acme
    maxConcurrentCalls: 3
    agents: [{name: Reminder}]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {file: people.csv}
        scheduledAt: 2026-01-05T01:00:00Z
        schedule: {startDateTime: 2026-01-05T02:00:00Z, maxAttempts: 3, retryInterval: 3600000}
"""
PEOPLE = "tel,segment\n" + "".join(f"081000000{n},{'ab'[n % 2]}\n" for n in range(10))
NINE = parse_instant("2026-01-05T02:00:00Z")
DONE = {
    "0810000000": Past(1, CallStatus.COMPLETED, NINE),
    "0810000001": Past(2, CallStatus.NO_ANSWER, NINE + 60_000),
    "0810000002": Past(1, CallStatus.FAILED, NINE),
}
BY_PERSON = """รายงานการโทร
เบอร์โทร;ชื่อ;จำนวนครั้ง;สถานะล่าสุด;เวลาโทรล่าสุด
081-000-0000;สมชาย;1;รับสาย;5/1/2569 9:00
+66810000001;;2;ไม่รับสาย;2026-01-05 09:01
810000002;;1;ปิดเครื่อง;2026-01-05T02:00:00Z
0810000003;;0;ยังไม่โทร;
ไม่มี;;1;รับสาย;5/1/2569 9:00
รวม;;4;;
"""
BY_CALL = """Phone,Result,Call time,Agent
0810000001,busy,2026-01-05 08:30,x
0810000001,No answer,2026-01-05 09:01,x
0810000000,ANSWERED,2026-01-05 09:00,x
0810000002,switched off,2026-01-05 09:00,x
"""


@pytest.mark.parametrize("text", [BY_PERSON, BY_CALL])
def test_a_list_by_person_and_one_by_call_give_the_same_histories(text: str) -> None:
    found = read_done(text.encode(), "done.csv", parse_instant(NOW))
    assert {number: past for number, (past, _) in found.histories.items()} == DONE
    assert found.aside == (text is BY_PERSON)


def test_dates_of_excel_and_two_sheets_are_read() -> None:
    head = ["Mobile", "Attempts", "Status", "Last call ended"]
    at = [A_DATE + timedelta(hours=9, minutes=minute) for minute in range(2)]
    rows = [["0810000000", 1, "COMPLETED", at[0]], ["0810000001", 2, "NO_ANSWER", at[1]]]
    content = workbook(head, rows[0], More=[head, rows[1]])
    found = read_done(content, "done.xlsx", parse_instant(NOW))
    assert {number: past for number, (past, _) in found.histories.items()} == {
        number: DONE[number] for number in ("0810000000", "0810000001")
    }


CALLS = st.dictionaries(
    st.integers(0, 9), st.tuples(st.integers(1, 3), st.integers(0, 5000)), min_size=1
)


@given(CALLS)
def test_a_person_has_the_history_of_the_newest_row(rows: dict[int, tuple[int, int]]) -> None:
    lines = [
        f"081000000{n},{attempts},BUSY,{1 + at // 1440}/1/2569 {at % 1440 // 60:02}:{at % 60:02}"
        for n, (attempts, at) in rows.items()
    ]
    text = "\n".join(
        [
            "tel,attempts,status,time",
            *lines,
            *(f"081000000{n},1,NO_ANSWER,31/12/2568 23:00" for n in rows),
        ]
    )
    found = read_done(text.encode(), "done.csv", parse_instant(NOW)).histories
    start = parse_instant("2025-12-31T17:00:00Z")
    assert {number: past for number, (past, _) in found.items()} == {
        f"081000000{n}": Past(attempts, CallStatus.BUSY, start + 60_000 * at)
        for n, (attempts, at) in rows.items()
    }


def planned(folder: Path, done: str, plan: str = PLAN) -> tuple[Path, Path]:
    for name, text in {"plan.yaml": plan, "people.csv": PEOPLE, "done.csv": done}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "done.csv", folder / "plan.yaml"


def forecast(folder: Path, done: str, *more: str | Path, plan: str = PLAN) -> Any:
    files = planned(folder, done, plan)
    given = ("--plan", files[1], "--what-if", "0", "--replications", "19", "--jobs", "1")
    now = () if "--now" in more else ("--now", NOW)
    return dialsim("forecast", files[0], *given, *now, *more)


@pytest.mark.usefixtures("pictures_undrawn")
def test_a_forecast_begins_now_with_what_was_done(tmp_path: Path) -> None:
    done = forecast(tmp_path, BY_PERSON, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert "of 10 people, 1 of them is reached already" in " ".join(done.stdout.split())
    assert "1 row has no usable number" in " ".join(done.stdout.split())
    override = "organizations.Acme.campaigns.January.recipients.done=done.csv"
    texts = (override, f"clock.start={NOW}", f"January.scheduledAt={NOW}", "where=segment == 'a'")
    (block,) = World(api.load(tmp_path / "plan.yaml", overrides=texts)).organizations[0].campaigns
    assert block.people.history == {0: DONE["0810000000"], 1: DONE["0810000002"]}


HEADS = "tel,attempts,status,time\n"
BAD = {
    "unknown": (
        HEADS + "0810000000,1,BUSY,2026-01-05 09:00\n0899999999,1,BUSY,2026-01-05 09:00\n",
        "done.csv:3: 1 of 2 numbers with calls is in no list of the plan, this one first",
    ),
    "later": (
        HEADS + "0810000000,1,BUSY,2026-01-06 09:30\n",
        "done.csv:2: a call of Tue 6 Jan 2026 09:30 is later than now, Tue 6 Jan 2026 09:00 Thai "
        "time; --now names another instant (1 row)",
    ),
    "status": (
        HEADS + "0810000000,1,xyz,2026-01-05 09:00\n0810000001,1,xyz,2026-01-05 09:00\n",
        'done.csv:2: the status "xyz" is unknown: write COMPLETED, NO_ANSWER, BUSY, FAILED or '
        "CANCELLED (2 rows)",
    ),
    "time": (
        HEADS + "0810000000,1,BUSY,yesterday\n",
        'done.csv:2: the time "yesterday" is none: write 2026-01-05 09:30 (1 row)',
    ),
    "attempts": (
        HEADS + "0810000000,many,BUSY,2026-01-05 09:00\n",
        'done.csv:2: the number of attempts must be a whole number, not "many" (1 row)',
    ),
    "no-end": (
        HEADS + "0810000000,1,BUSY,\n",
        "done.csv:2: the time of the last call is required where there was a call (1 row)",
    ),
    "no-attempt": (
        HEADS + "0810000000,0,BUSY,2026-01-05 09:00\n",
        "done.csv:2: the attempts of the last call must be 1 or more where latestCallStatus is "
        "BUSY (1 row)",
    ),
    "no-status": (
        "tel,attempts,time\n0810000000,1,2026-01-05 09:00\n",
        "done.csv: no head names the status of the last call: heads are tel, attempts and time",
    ),
    "no-call": (HEADS + "0810000000,0,,\n", "done.csv: no row has a call"),
    "no-number": (
        HEADS + "x,1,BUSY,\n",
        "done.csv: none of 1 row has a usable phone number: 1 with no possible number",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_list_of_what_was_done_gets_exactly_its_error(name: str, tmp_path: Path) -> None:
    text, expected = BAD[name]
    planned(tmp_path, text)
    texts = ["January.recipients.done=done.csv", f"clock.start={NOW}", f"January.scheduledAt={NOW}"]
    with pytest.raises(api.ScenarioError) as raised:
        api.load(tmp_path / "plan.yaml", overrides=texts)
    assert str(raised.value) == f"{tmp_path}/{expected}"


def test_sheets_with_different_heads_are_refused() -> None:
    row = ["0810000000", 1, "BUSY", A_DATE]
    content = workbook(["tel", "attempts", "status", "time"], row, More=[["tel", "x"], row])
    with pytest.raises(api.ScenarioError) as raised:
        read_done(content, "done.xlsx", parse_instant(NOW))
    assert str(raised.value) == (
        "done.xlsx: the sheets People and More have different heads (tel, attempts, status and "
        'time; tel, x, column 3 and column 4): keep only the sheet "People"'
    )


def test_a_number_in_two_campaigns_belongs_to_neither_by_itself(tmp_path: Path) -> None:
    texts = [f"clock.start={NOW}", f"Acme.campaigns.0.scheduledAt={NOW}"]
    second = "{name: B, agent: Reminder, recipients: {file: people.csv, done: done.csv}}"
    planned(tmp_path, HEADS + "0810000000,1,BUSY,2026-01-05 09:00\n")
    texts += ["January.recipients.done=done.csv", f"Acme.campaigns+={second}"]
    with pytest.raises(api.ScenarioError) as raised:
        api.load(tmp_path / "plan.yaml", overrides=texts)
    assert str(raised.value) == (
        f"{tmp_path}/done.csv:2: 1 of 1 number with calls is in the lists of several campaigns: "
        "write done beside one of them, this one first"
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.strip().splitlines()[-1]


def test_a_list_needs_a_plan_with_a_list(tmp_path: Path) -> None:
    done, plan = planned(tmp_path, BY_CALL)
    assert refused(dialsim("forecast", done)) == (
        "Error: a list of calls made needs its scenario: --plan FILE.yaml"
    )
    made_up = PLAN.replace("{file: people.csv}", "{count: 5}")
    assert refused(forecast(tmp_path, BY_CALL, plan=made_up)) == (
        f"Error: {plan} names no list of people, so {done} can't say whom it called"
    )
    late = forecast(tmp_path, BY_CALL, "--now", "2026-01-05T08:45+07:00")
    assert "is later than now, Mon 5 Jan 2026 08:45 Thai time" in refused(late)
