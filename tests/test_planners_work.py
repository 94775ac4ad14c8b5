"""A planner's work with an export: list, lines, holidays, "why not", compliance and cost.

The list has segments, amounts and Thai heads.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from cli.program import dialsim

PEOPLE = 1200
SCENARIO = """
name: December
calendar: {holidays: TH}
compliance: [thai-debt-collection]
costs: {currency: THB, perDial: 0.10, perMinute: 1.20, billingIncrement: 60s, perLineDay: 150}
organizations:
  - name: Ours
    maxConcurrentCalls: 2
    agents: [{name: Agent, paramsSchema: {ยอดหนี้: {type: number}}}]
    campaigns:
      - name: Debt
        agent: Agent
        recipients: {file: campaign-people.xlsx}
        callingHours: {weekday: 09:00-18:00, holiday: []}
        schedule:
          startDateTime: 2026-12-08T09:00:00+07:00
          maxAttempts: 6
          retryInterval: next calling day
"""


def write_export(path: Path) -> None:
    """Two sheets as a bank exports them: numbers in several spellings, some rows without one."""
    chance, book = random.Random(3), openpyxl.Workbook()
    sheets = [book.active, book.create_sheet("สาขา 2")]
    for sheet in sheets:
        sheet.append(["ชื่อ", "เบอร์โทร", "กลุ่ม", "ยอดหนี้"])
    for k in range(PEOPLE):
        number = f"08{chance.randrange(10**8):08}"
        tel: object = chance.choice([number, int(number), f"{number[:3]}-{number[3:]}"])
        if k % 100 == 50:
            tel = chance.choice([None, "-", "ไม่มี"])
        group = chance.choice(["ใหม่", "ค้างนาน", "VIP"])
        debt = round(chance.lognormvariate(8, 1), 2)
        sheets[k % 2].append([f"คุณ{k}", tel, group, debt])
    book.save(path)


@pytest.mark.slow(minutes=5)
def test_a_planner_gets_from_an_export_to_a_decision(tmp_path: Path) -> None:
    def done(*words: str, status: int = 0) -> str:
        ended = dialsim(*words, cwd=tmp_path)
        assert ended.returncode == status, ended.stderr + ended.stdout
        assert "Traceback" not in ended.stderr
        return " ".join((ended.stdout + ended.stderr).split())

    write_export(tmp_path / "export.xlsx")
    assert "dialsim new --list export.xlsx" in done("run", "export.xlsx", status=2)

    # The list
    said = done("new", "--list", "export.xlsx", "--retry-interval", "next calling day", "--yes")
    assert "2 sheets, 1,200 rows 1,188 people to call 12 rows set aside" in said
    assert "3 segments" in said
    assert "agent parameters: ยอดหนี้" in said
    assert "campaign.yaml is good" in done("validate", "campaign.yaml")
    (tmp_path / "december.yaml").write_text(SCENARIO, encoding="utf-8")

    # Holidays: 10 December is one, and no day for a deadline
    said = done("validate", "december.yaml", "--compiled")
    assert "Thu 10 Dec 2026 Constitution Day" in said
    said = done("run", "december.yaml", "--replications", "20")
    assert "half of them are done by Wed 16 Dec" in said

    # 30 lines or not?
    few = ("--max-replications", "80")
    goal = ("--goal", "p95(finish) <= Wed 16 Dec 18:00")
    said = done("plan", "december.yaml", "--vary", "lines=1..30", *goal, *few)
    assert "3 lines are enough to be done by Wed 16 Dec 18:00 in 95 of 100 runs" in said

    # Why not by Tuesday?
    goal = ("--goal", "p95(finish) <= Tue 15 Dec 18:00")
    said = done("plan", "december.yaml", "--vary", "lines=1..30", *goal, *few, status=1)
    assert (
        "6 attempts do not fit until Tue 15 Dec 18:00: pauses and closed days leave 5 calling "
        "days, without them 6 attempts would fit: lines cannot help. With 30 lines: 5 attempts, "
        "or a deadline of Wed 16 Dec 18:00, can."
    ) in said

    # Compliance
    said = done("sweep", "december.yaml", "--vary", "Debt.retryInterval=24h,2h",
                "--replications", "8")  # fmt: skip
    refused = r"Retries after 2 h: [0-9,]+ repeated calls on one day, not allowed by thai-debt-"
    assert re.search(refused, said)

    # Cost, and the workbook for the manager
    said = done("plan", "december.yaml", "--vary", "lines=2..4", "--goal", "mean(cost) <= 2000",
                *few, "--what-if", "0", "--excel", "--out", "out", status=1)  # fmt: skip
    assert re.search(r"With 2 lines the cost is [0-9,]+ THB on average, [0-9,]+ of it for ", said)
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert re.search(r"Dials [0-9,.]+, minutes [0-9,]+, lines [0-9,]+", page)
    settings = pd.read_excel(tmp_path / "out/results.xlsx", sheet_name="settings")
    assert list(settings["setting"][:1]) == ["2 lines"]
    assert (settings["cost, at least"] < settings["cost, at most"]).all()
