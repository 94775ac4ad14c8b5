"""Forecasts from lists with histories are calibrated (C1, P8).

A truth is a random campaign in a random engine. It is cut at an instant that depends on chance and
not on the truth, and the history of
each person up to then is written into a CSV, in random order, as a planner would write it. The
forecast has the true behaviour and settings. At least 84 % of the truths must lie in the 90 %
interval, and the mean error must be within 2 standard errors of 0, for the finish and the number of
people reached.
"""

from __future__ import annotations

import csv
import io
import json
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import dialsim
from dialsim.interface.instants import format_instant, ms_of, parse_instant
from dialsim.scenario.campaign import Past, RecipientsFile

START = "2026-01-05T02:00:00Z"  # Monday 09:00 in Thailand
RUNS = 59  # the third of either end bounds 90 % of them
HISTORY = ("callAttempt", "latestCallStatus", "lastEndedAt", "lastCallerId")


class Error(NamedTuple):
    """Forecasts of one truth less the truth, and whether the intervals hold it."""

    finish_h: float
    finish_held: bool
    reach: float
    reach_held: bool


def random_truth(number: int) -> dict[str, Any]:
    """A campaign of 300 to 700 people that takes some days, in an engine with random settings."""
    chance = np.random.default_rng([31, number])
    people, attempts = int(chance.integers(300, 700)), int(chance.integers(2, 5))
    opens, hours = int(chance.integers(9, 12)), int(chance.integers(3, 8))
    answered, dead = float(chance.uniform(0.25, 0.6)), float(chance.uniform(0, 0.08))
    behaviour = {
        "outcomes": {
            "answered": answered, "noAnswer": 0.7 * (0.9 - answered),
            "busy": 0.3 * (0.9 - answered), "failed": 0.1,
        },
        "people": {"concentration": float(chance.uniform(1, 6)), "deadNumbers": dead},
        "setupTime": {"dist": "uniform", "low": "1s", "high": f"{chance.integers(3, 9)}s"},
        "talkTime": {"dist": "lognormal", "mean": f"{chance.integers(30, 120)}s", "sd": "60s"},
    }  # fmt: skip
    engine: dict[str, Any] = {"order": str(chance.choice(["due", "freshFirst", "retriesFirst"]))}
    if chance.random() < 0.5:
        engine["queueTimeout"] = f"{chance.integers(1, 11)}m"
        engine["queueLimit"] = int(chance.integers(2, 12))
        engine["releaseInterval"] = f"{chance.integers(1, 31)}s"
    lines = max(2, round(people * attempts * 0.6 / (60 * hours * 3)))
    span = {"start": f"{opens:02}:00", "end": f"{opens + hours:02}:00"}
    schedule = {
        "startDateTime": START, "maxAttempts": attempts, "callerIds": ["021000001", "021000002"],
        "retryInterval": int(chance.integers(1, 9)) * 1_800_000,
        "timeWindows": [{"dayOfWeek": day, "time": [span]} for day in range(1, 8)],
    }  # fmt: skip
    campaign = {"name": "A", "agent": "R", "recipients": {"count": people}, "schedule": schedule}
    organization = {
        "name": "O", "maxConcurrentCalls": lines, "callerIds": schedule["callerIds"],
        "agents": [{"name": "R"}], "campaigns": [campaign],
    }  # fmt: skip
    return {
        "name": f"Truth {number}", "clock": {"start": START}, "engine": engine,
        "behaviours": {"default": behaviour}, "organizations": [organization],
    }  # fmt: skip


def listed(truth: dialsim.Result, cut: int, order: np.random.Generator) -> bytes:
    """Write the history of each person at an instant, in random order."""
    calls = truth.calls[truth.calls["call_ended_at"] <= pd.Timestamp(cut, unit="ms", tz="UTC")]
    attempts = calls[calls["attempt"].notna()].groupby("recipient")["attempt"].max()
    last = calls.sort_values("call").groupby("recipient").last()
    sheet = io.StringIO()
    rows = csv.writer(sheet)
    rows.writerow(["tel", *(f"history.{key}" for key in HISTORY)])
    people = truth.recipients
    for person in people.iloc[order.permutation(len(people))].itertuples():
        cells: tuple[object, ...] = ("",) * len(HISTORY)
        if person.recipient in last.index:
            call = last.loc[person.recipient]
            ended = format_instant(ms_of(call["call_ended_at"]))
            shown = call["caller_id"] if isinstance(call["caller_id"], str) else ""
            cells = int(attempts.get(person.recipient, 0)), call["status"], ended, shown
        rows.writerow([person.tel, *cells])
    return sheet.getvalue().encode()


def exported(truth: dialsim.Result, cut: int) -> bytes:
    """Write a workbook with a row per ended call, as an export of what was done."""
    calls = truth.calls[truth.calls["call_ended_at"] <= pd.Timestamp(cut, unit="ms", tz="UTC")]
    tels = truth.recipients.set_index("recipient")["tel"]
    columns = {
        "เบอร์โทร": calls["recipient"].map(tels),
        "สถานะ": calls["status"].astype(str),
        "เวลา": calls["call_ended_at"].dt.tz_convert("Asia/Bangkok").dt.tz_localize(None),
    }
    file = io.BytesIO()
    pd.DataFrame(columns).to_excel(file, index=False)
    return file.getvalue()


def test_a_history_from_an_export_of_calls_is_that_of_the_campaign(tmp_path: Path) -> None:
    written = random_truth(1)
    truth = dialsim.run(dialsim.loads(json.dumps(written)), seed=1)
    cut = parse_instant(START) + 20 * 3_600_000
    (tmp_path / "people.csv").write_bytes(listed(truth, cut, np.random.default_rng(1)))
    bare = listed(truth, parse_instant(START) - 1, np.random.default_rng(1))
    (tmp_path / "bare.csv").write_bytes(bare)
    (tmp_path / "done.xlsx").write_bytes(exported(truth, cut))
    written["clock"] = {"start": format_instant(cut)}
    tables = []
    for file in ({"file": "people.csv"}, {"file": "bare.csv", "done": "done.xlsx"}):
        written["organizations"][0]["campaigns"][0]["recipients"] = file
        read = dialsim.loads(json.dumps(written), folder=tmp_path)
        recipients = read.organizations[0].campaigns[0].recipients
        assert isinstance(recipients, RecipientsFile)
        table = recipients.table
        tables.append({tel: table.history.get(row) for row, tel in enumerate(table.tels)})
    for tel, past in tables[0].items():
        assert _seconds(tables[1][tel]) == _seconds(past)


def _seconds(past: Past | None) -> object:
    """A history without what the workbook has not: caller IDs, and parts of seconds."""
    if past is None:
        return None
    return past.call_attempt, past.latest_call_status, round(past.last_ended_at / 2000)


def error(number: int) -> Error | None:
    """Forecast a truth from a random instant of its way; None if it was done before."""
    written = random_truth(number)
    truth = dialsim.run(dialsim.loads(json.dumps(written)), seed=1000 + number)
    summary, chance = truth.summary, np.random.default_rng([32, number])
    assert summary.finish is not None
    begun, finish = parse_instant(START), summary.finish.timestamp() * 1000
    # Of another run of the campaign: a share of this one would tell when it will be done, and
    # forecasts from instants chosen by the truth are late on average
    other = dialsim.run(dialsim.loads(json.dumps(written)), seed=5000 + number).summary.finish
    assert other is not None
    cut = begun + int((other.timestamp() * 1000 - begun) * chance.uniform(0.1, 0.8))
    if cut >= finish:
        return None
    people = listed(truth, cut, chance)
    written["clock"] = {"start": format_instant(cut)}
    written["organizations"][0]["campaigns"][0]["recipients"] = {"file": "people.csv"}
    rest = dialsim.loads(json.dumps(written), files={"people.csv": people})
    found = dialsim.forecast(rest, RUNS, seed=number, jobs=1)
    figures, reached = found.figures, summary.people_reached
    assert figures is not None
    runs = [run.scopes[0].values for run in found.runs.figures]
    return Error(
        (np.mean([run["finish"] for run in runs]) - finish) / 3_600_000,
        figures.finish.low <= finish <= figures.finish.high,
        float(np.mean([run["people_reached"] for run in runs]) - reached),
        figures.reach.low <= reached <= figures.reach.high,
    )


@pytest.mark.slow
def test_finish_and_reach_of_100_truths_lie_in_the_90_percent_interval() -> None:
    errors = pd.DataFrame(islice(filter(None, map(error, count())), 100))
    print(errors.describe())
    assert errors["finish_held"].mean() >= 0.84
    assert errors["reach_held"].mean() >= 0.84
    for figure in ("finish_h", "reach"):
        assert abs(errors[figure].mean()) <= 2 * errors[figure].sem()
