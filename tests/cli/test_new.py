"""`dialsim new` writes scenarios that load, from options or questions, and replaces nothing."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

import dialsim as api
from cli.program import ROOT, command, dialsim
from dialsim.interface.instants import parse_instant
from dialsim.scenario.campaign import GeneratedRecipients, RecipientsFile
from scenario.workbooks import workbook

ASKED = {
    "--people": "6000",
    "--lines": "20",
    "--start": "2026-01-05 09:00",
    "--deadline": "Fri 18:00",
    "--attempts": "2",
    "--retry-interval": "2h",
    "--name": 'งวด "มกราคม"',
    "--windows": "Mon-Fri 09:00-12:00 13:00-19:00",
    "--caller-ids": "021000001, 021000002",
}


def test_options_alone_make_a_file_that_loads_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "my.yaml"
    done = dialsim("new", *chain(*ASKED.items()), "--out", out, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Written to {out}. Simulate it: dialsim run {out}\n"
    (organization,) = api.load(out).organizations
    (campaign,) = organization.campaigns
    assert (organization.max_concurrent_calls, campaign.name) == (20, 'งวด "มกราคม"')
    assert isinstance(campaign.recipients, GeneratedRecipients)
    assert campaign.recipients.count == 6000
    request = campaign.schedule
    assert request is not None
    assert request.start_date_time == parse_instant("2026-01-05T02:00:00Z")
    assert (request.max_attempts, request.retry_interval) == (2, 7_200_000)
    assert request.caller_ids == ("021000001", "021000002")
    assert [day.day_of_week for day in request.time_windows] == [1, 2, 3, 4, 5]
    text = out.read_text(encoding="utf-8")
    assert "# It should be done by Fri 9 Jan 2026 18:00, Thai time. How many lines" in text
    assert '--vary lines=1..80 --goal "p95(finish) <= 2026-01-09 18:00"' in text


def test_the_defaults_are_those_of_a_file_that_says_nothing(tmp_path: Path) -> None:
    out = tmp_path / "my.yaml"
    assert dialsim("new", "--people", "5", "--out", out, "--attempts", "1", "--yes").returncode == 0
    (campaign,) = api.load(out).organizations[0].campaigns
    assert campaign.schedule is not None
    assert campaign.schedule.retry_interval == 0
    assert dialsim("validate", out).returncode == 0


def test_a_list_is_named_from_where_the_file_is(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "my.yaml"
    out.parent.mkdir()
    people = ROOT / "scenarios" / "people.csv"
    assert dialsim("new", "--list", people, "--out", out, "--yes").returncode == 0
    (campaign,) = api.load(out).organizations[0].campaigns
    assert isinstance(campaign.recipients, RecipientsFile)
    assert campaign.recipients.table.tels


def an_export(folder: Path) -> Path:
    """Two sheets with a title, totals, a duplicate, and a row without a usable number."""
    heads = ("ชื่อ", "เบอร์โทร", "ยอดหนี้")
    first = [("ลูกหนี้",), heads, ("สมชาย", "081-234-5678", "4,356"), ("รวม", "", 4356)]
    second = [heads, ("สมชาย", 812345678, 10), ("สมหญิง", "12345", 5), ("ดี", "0898765432", 7)]
    export = folder / "export.xlsx"
    export.write_bytes(workbook(*first, February=second))
    return export


def test_an_export_as_it_is_becomes_a_scenario_that_runs(tmp_path: Path) -> None:
    done = dialsim("new", "--list", an_export(tmp_path), "--yes", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{tmp_path / 'export.xlsx'}: 2 sheets, 5 rows",
        "2 people to call",
        "1 row set aside: 1 with no possible number",
        "1 duplicate merged",
        "1 row of totals or repeated heads left out",
        "2 numbers of another spelling rewritten",
        "columns: เบอร์โทร as tel, ชื่อ as customerName; agent parameters: ยอดหนี้",
        "Written to campaign.yaml and campaign-people.xlsx. Simulate it: dialsim run campaign.yaml",
    ]
    (campaign,) = api.load(tmp_path / "campaign.yaml").organizations[0].campaigns
    assert isinstance(campaign.recipients, RecipientsFile)
    assert campaign.recipients.table.params == {"ยอดหนี้": [4356, 7]}
    assert dialsim("run", "campaign.yaml", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("phone\n", "no row has a usable phone number"),
        ("phone\nabc\n12\n", "none of 2 rows has a usable phone number: 2 with no possible number"),
    ],
)
def test_a_list_with_nobody_to_call_is_refused(rows: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text(rows, encoding="utf-8")
    done = dialsim("new", "--list", "empty.csv", "--yes", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"Error: empty.csv: {reason}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.csv"]


def test_a_cleaned_list_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    export, beside = an_export(tmp_path), tmp_path / "campaign-people.xlsx"
    beside.write_text("mine", encoding="utf-8")
    done = dialsim("new", "--list", export, "--yes", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert beside.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "campaign.yaml").exists()
    assert dialsim("new", "--list", export, "--yes", "--force", cwd=tmp_path).returncode == 0


def test_people_writes_the_cleaned_workbook_once(tmp_path: Path) -> None:
    export = an_export(tmp_path)
    done = dialsim("people", export, "--clean", "clean.xlsx", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("clean.xlsx: sheets People, Set aside and Duplicates.\n")
    before = (tmp_path / "clean.xlsx").read_bytes()
    again = dialsim("people", export, "--clean", "clean.xlsx", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert "clean.xlsx is there already: --force replaces it" in again.stderr
    assert (tmp_path / "clean.xlsx").read_bytes() == before
    wrong = dialsim("people", export, "--clean", "b.xlsx", "--column", "tel=Phon", cwd=tmp_path)
    assert wrong.returncode == 2
    assert not (tmp_path / "b.xlsx").exists()


def test_validate_stays_strict_and_says_how_a_list_is_cleaned(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("tel\n081-234-5678\n", encoding="utf-8")
    asked = ("--people", "5", "--out", tmp_path / "my.yaml", "--yes")
    assert dialsim("new", *asked).returncode == 0
    told = dialsim("validate", "my.yaml", cwd=tmp_path)
    assert told.returncode == 0
    text = (tmp_path / "my.yaml").read_text(encoding="utf-8")
    text = text.replace("{count: 5}", "{file: people.csv}")
    (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
    told = dialsim("validate", "my.yaml", cwd=tmp_path)
    assert told.returncode == 2
    assert "tel must be" in told.stderr
    command = "dialsim people people.csv --clean clean.xlsx"
    assert told.stderr.rstrip().endswith(f"people.csv: to have the list cleaned: {command}")


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    out = tmp_path / "my.yaml"
    out.write_text("mine", encoding="utf-8")
    done = dialsim("new", "--people", "5", "--out", out, "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{out} is there already: --force replaces it" in done.stderr.replace("\n", " ")
    assert out.read_text(encoding="utf-8") == "mine"
    assert dialsim("new", "--people", "5", "--out", out, "--yes", "--force").returncode == 0
    api.load(out)


def test_holidays_are_closed_unless_hours_are_given_and_told_until_the_deadline(
    tmp_path: Path,
) -> None:
    asked = ("--people", "9", "--start", "2026-04-07 09:00", "--deadline", "2026-04-14 18:00",
             "--windows", "Mon-Fri 09:00-12:00 13:00-19:00; Sat 10:00-14:00", "--yes")  # fmt: skip
    done = dialsim("new", *asked, "--out", tmp_path / "a.yaml")
    assert done.stdout.splitlines()[0] == (
        "Holidays until the deadline, closed: Mon 13 Apr 2026 (Songkran Festival), "
        "Tue 14 Apr 2026 (Songkran Festival)"
    )
    (campaign,) = api.load(tmp_path / "a.yaml").organizations[0].campaigns
    hours = campaign.calling_hours
    assert hours is not None
    assert (hours.weekday, hours.saturday) == (((540, 720), (780, 1140)), ((600, 840),))
    assert (hours.sunday, hours.holiday) == ((), ())
    dialsim("new", *asked, "--holiday-hours", "10:00-16:00", "--out", tmp_path / "b.yaml")
    (campaign,) = api.load(tmp_path / "b.yaml").organizations[0].campaigns
    assert campaign.calling_hours is not None
    assert campaign.calling_hours.holiday == ((600, 960),)
    done = dialsim("new", *asked, "--holidays", "none", "--out", tmp_path / "c.yaml")
    assert done.stdout.startswith("Written to")
    scenario = api.load(tmp_path / "c.yaml")
    assert scenario.calendar is None
    assert scenario.organizations[0].campaigns[0].calling_hours is None


def test_a_value_is_a_formula_of_the_lists_columns(tmp_path: Path) -> None:
    asked = ("new", "--list", an_export(tmp_path), "--yes", "--value")
    assert dialsim(*asked, "0.1 * ยอดหนี้", cwd=tmp_path).returncode == 0
    value = api.load(tmp_path / "campaign.yaml").value
    assert value == {"reached": "0.1 * ยอดหนี้"}
    refused = dialsim(*asked, "0.1 * amount", "--out", "b.yaml", "--force", cwd=tmp_path)
    assert refused.returncode == 2
    assert "amount" in refused.stderr
    assert not (tmp_path / "b.yaml").exists()


REFUSED = {
    (): "say whom to call: --people 6000, or --list people.csv",
    ("--people", "5", "--start", "Frii 09:00"): 'Frii 09:00 must name a day, which "Frii" in "Frii '
    '09:00" is not; did you mean Fri?',
    ("--people", "5", "--start", "2026-01-05 09:00", "--deadline", "2026-01-05 08:00"): (
        "2026-01-05 08:00 is Mon 5 Jan 2026 08:00, which is not after the start, Mon 5 Jan 2026 "
        "09:00"
    ),
    ("--people", "5", "--windows", "Sun"): 'windows needs times behind the days "Sun", such as '
    "Mon-Fri 09:00-19:00",
    ("--people", "5", "--windows", "Mon-Thu 09:00-19:00; Fri 09:00-12:00"): (
        "windows must be the same from Mon to Fri if holidays count, not Mon-Thu 09:00-19:00; "
        "Fri 09:00-12:00: write none as the country of the holidays"
    ),
    ("--people", "5", "--holidays", "TX"): (
        '"TX" is no country whose holidays are known; did you mean TH?'
    ),
    ("--people", "5", "--holiday-hours", "10-16"): (
        'hours must be a time such as 09:00-18:00, not "10-16": write 10:00-16:00'
    ),
    ("--people", "5", "--retry-interval", "2x"): "the retry interval must be a duration such as "
    '250ms, 45s, 10m, 1h30m or 2d, not "2x"',
    ("--people", "5", "--list", "people.csv"): "give only one of --people and --list",
}


@pytest.mark.parametrize("asked", REFUSED, ids=" ".join)
def test_what_can_not_be_read_is_told_and_nothing_is_written(
    asked: tuple[str, ...], tmp_path: Path
) -> None:
    done = dialsim("new", *asked, "--out", tmp_path / "my.yaml", "--yes", cwd=ROOT / "scenarios")
    assert (done.returncode, done.stdout) == (2, "")
    assert REFUSED[asked] in " ".join(done.stderr.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


def test_a_retry_interval_that_the_service_refuses_is_an_error_of_the_file(tmp_path: Path) -> None:
    asked = ("--people", "5", "--retry-interval", "1m")
    done = dialsim("new", *asked, "--out", tmp_path / "my.yaml", "--yes")
    assert done.returncode == 2
    assert "retryInterval must be at least 300000 ms" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_it_asks_and_asks_again_what_it_can_not_read(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        command("new", "--out", "my.yaml"), cwd=tmp_path, stdin=its, stdout=its, stderr=its
    )
    os.close(its)
    os.write(ours, b"Debt\n800\n15\nFrii 09:00\n2026-01-05 09:00\n\nTX\nTH\n\n\n\nFri 18:00\n\n")
    shown = b""
    while b"Written to my.yaml" not in shown:
        shown += os.read(ours, 4096)
    assert process.wait(timeout=60) == 0
    os.close(ours)
    assert b"did you mean Fri?" in shown
    assert b"did you mean TH?" in shown
    scenario = api.load(tmp_path / "my.yaml")
    (organization,) = scenario.organizations
    assert (organization.campaigns[0].name, organization.max_concurrent_calls) == ("Debt", 15)
    assert scenario.calendar is not None
    assert scenario.calendar.holidays == "TH"


@pytest.mark.slow
def test_an_export_of_46_000_rows_becomes_a_forecast_in_two_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    people = import_module("lists").write_export(tmp_path / "export.xlsx", 46_000)
    made = dialsim("new", "--list", "export.xlsx", "--yes", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    said = made.stdout.splitlines()
    assert len(said) <= 11
    assert said[:2] == ["export.xlsx: 2 sheets, 46,002 rows", f"{people:,} people to call"]
    assert {"2 rows of totals or repeated heads left out", "agent parameters: ลำดับ, ยอดหนี้"} <= {
        part for line in said for part in line.split("; ")
    }
    (aside,) = (line for line in said if "rows set aside" in line)
    (merged,) = (line for line in said if "duplicates merged" in line)
    left_out = sum(int(line.split()[0].replace(",", "")) for line in (aside, merged))
    assert people + left_out == 46_000
    ran = dialsim("run", "campaign.yaml", "--engine", "simpy", "--format", "json", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    summary = json.loads(ran.stdout)
    assert summary["people"] == people
    assert summary["people_reached"] > people / 2
    assert summary["finish"] is not None


def test_a_sheet_of_an_export_is_chosen_where_heads_differ(tmp_path: Path) -> None:
    other = [("Branch", "Tel"), ("Bangkok", "021234567")]
    content = workbook(("Phone", "Due"), ("0812345678", 5), Branches=other)
    (tmp_path / "export.xlsx").write_bytes(content)
    refused = dialsim("new", "--list", "export.xlsx", "--yes", cwd=tmp_path)
    assert (refused.returncode, [*tmp_path.iterdir()]) == (2, [tmp_path / "export.xlsx"])
    assert refused.stderr == (
        "Error: export.xlsx: the sheets People and Branches have different heads (Phone and Due; "
        'Branch and Tel): choose one with --sheet "People"\n'
    )
    made = dialsim("new", "--list", "export.xlsx", "--sheet", "Branches", "--yes", cwd=tmp_path)
    assert made.stdout.splitlines()[:2] == ["export.xlsx: 1 sheet, 1 row", "1 person to call"]
    assert dialsim("validate", "campaign.yaml", cwd=tmp_path).returncode == 0
