"""Done lists: spreadsheets of the calls so far, read as histories of recipients (P8).

Its rows are people or calls. Heads and phone numbers are recognized as by the list doctor.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from dialsim.errors import ScenarioError
from dialsim.interface import CallStatus
from dialsim.interface.instants import minute_text
from dialsim.interface.phrases import counted, few
from dialsim.scenario.campaign import COUNTED, MOST_ATTEMPTS, Past, PeopleTable, contradiction
from dialsim.scenario.fields import phone_normalized
from dialsim.scenario.list_doctor import ExportRow, clean_list
from dialsim.scenario.problems import Problem
from dialsim.scenario.sheet import quoted
from dialsim.scenario.units import instant_meant, parse_offset_instant

# Whole words only: "unsuccessful" contains "success", and a wrong status would go unnoticed.
_WORDS = {
    CallStatus.COMPLETED: "complete, answered, reached, success, successful, done, contacted,"
    "รับสาย, รับ, สำเร็จ, ติดต่อได้, โทรติด, คุยแล้ว, เสร็จสิ้น",
    CallStatus.NO_ANSWER: "no answer, noanswer, not answered, unanswered, missed, not reached,"
    "ไม่รับสาย, ไม่รับ, ไม่มีคนรับ, ไม่มีผู้รับสาย, ไม่ตอบ",
    CallStatus.BUSY: "engaged, line busy, สายไม่ว่าง, ไม่ว่าง",
    CallStatus.FAILED: "fail, error, unsuccessful, unreachable, invalid number, switched off,"
    "ติดต่อไม่ได้, โทรไม่ติด, ไม่ติด, ปิดเครื่อง, ล้มเหลว, ไม่สำเร็จ, เบอร์ผิด",
    CallStatus.CANCELLED: "canceled, ยกเลิก",
    CallStatus.SCHEDULED: "pending, waiting, not called, new, รอ, รอโทร, ยังไม่โทร, ยังไม่ได้โทร",
}
_STATUSES = {status.value.replace("_", " ").casefold(): status for status in CallStatus} | {
    word.strip(): status for status, words in _WORDS.items() for word in words.split(",")
}
_HEADS = {
    "attempts": r"attempt|tries|times called|number of calls|^calls$|ครั้งที่|จำนวนครั้ง|โทรแล้ว|รอบ",
    "status": r"status|result|outcome|disposition|สถานะ|ผล",
    "time": r"time|date|ended|\bat$|lastEndedAt|เวลา|วันที่|ล่าสุด",
}
_LAST = re.compile(r"last|latest|end|ล่าสุด|สุดท้าย|สิ้นสุด", re.IGNORECASE)


class DoneList(NamedTuple):
    """Histories by phone number, each with its row, and the rows without a usable number."""

    histories: Mapping[str, tuple[Past, ExportRow]]
    aside: int

    def of(self, table: PeopleTable, digest: bytes) -> PeopleTable:
        """Return a copy of a list of people with these histories."""
        found = enumerate(self.histories.get(_number(tel)) for tel in table.tels)
        history = {row: known[0] for row, known in found if known is not None}
        return replace(table, history=history, digest=digest)

    def sentence(self, shown: str) -> str:
        """Return a sentence on the number of people, the newest call, and rows left out."""
        newest = max(past.last_ended_at for past, _ in self.histories.values())
        people = counted(len(self.histories), "person", "people")
        left_out = counted(self.aside, "row has", "rows have")
        aside = f"; {left_out} no usable number" if self.aside else ""
        return f"{shown} has calls to {people}, the newest {minute_text(newest)}{aside}."

    def misfits(self, shown: str, tables: Sequence[PeopleTable]) -> Iterator[Problem]:
        """Yield a problem for each number that is in no campaign's list, or in several lists."""
        lists = Counter(number for table in tables for number in {*map(_number, table.tels)})
        calls = f"of {counted(len(self.histories), 'number')} with calls"
        places = {0: "in no list of the plan"}
        several = "in the lists of several campaigns: write done beside one of them"
        for known in sorted({*map(lists.__getitem__, self.histories)} - {1}):
            rows = [row for number, (_, row) in self.histories.items() if lists[number] == known]
            message = places.get(known, several)
            said = f"{len(rows):,} {calls} {'is' if len(rows) == 1 else 'are'} {message}"
            yield _problem(shown, rows[0], f"{said}, this one first")


def _number(tel: str) -> str:
    return phone_normalized(tel) or tel


class _Call(NamedTuple):
    row: ExportRow
    attempts: int | None
    status: CallStatus | None
    ended_at: int | None


@lru_cache(maxsize=4)
def read_done(content: bytes, shown: str, now: int) -> DoneList:
    """Read the histories of a spreadsheet; no call is later than `now` (ms).

    `shown` is the name of the file. Raises ScenarioError with the first row of each kind of fault.
    """
    listed = clean_list(content, shown, choice="keep only the sheet")
    listed.require_people()
    numbers = {id(row): cells[0] for row, cells in zip(listed.sources, listed.cells, strict=True)}
    rows = [(numbers[id(row)], row) for row in listed.sources]
    rows += [(numbers[id(first)], row) for row, first in listed.merged]
    columns = _columns(shown, listed.all_heads, [row for _, row in rows])
    faults: dict[str, list[tuple[ExportRow, str]]] = {}
    calls: dict[str, list[_Call]] = {}
    for number, row in rows:
        calls.setdefault(number, []).append(_call(row, columns, now, faults))
    histories = {}
    # A history from faulty rows would only repeat the faults of the rows.
    for number, own in () if faults else calls.items():
        found = _past(own, faults)
        if found is not None:
            histories[number] = found
    if faults:
        raise ScenarioError(
            _problem(shown, some[0][0], f"{some[0][1]} ({counted(len(some), 'row')})")
            for some in faults.values()
        )
    if not histories:
        raise ScenarioError([Problem(shown, None, None, "", "no row has a call")])
    return DoneList(histories, len(listed.aside))


def _columns(shown: str, heads: Sequence[str], rows: Sequence[ExportRow]) -> dict[str, int]:
    """Find the columns of attempts, status and time by their heads and contents."""
    found: dict[str, int] = {}
    for kind, pattern in _HEADS.items():
        fits: Callable[[str], object] = {
            "attempts": str.isdigit, "status": _status, "time": _time,
        }[kind]  # fmt: skip
        ranks = {}
        for index, head in enumerate(heads):
            if index not in found.values() and re.search(pattern, head, re.IGNORECASE):
                cells = [row.cells[index] for row in rows if row.cells[index]]
                share = sum(fits(cell) is not None and bool(fits(cell)) for cell in cells)
                ranks[index] = (share / max(len(cells), 1), bool(_LAST.search(head)))
        if ranks:
            found[kind] = max(ranks, key=lambda index: ranks[index])
    for kind in ("status", "time"):
        if kind not in found:
            names = few(heads[:10], len(heads))
            message = f"no head names the {kind} of the last call: heads are {names}"
            raise ScenarioError([Problem(shown, None, None, "", message)])
    return found


def _call(
    row: ExportRow,
    columns: Mapping[str, int],
    now: int,
    faults: dict[str, list[tuple[ExportRow, str]]],
) -> _Call:
    """Read one row; faults are added under their kind."""

    def fault(kind: str, message: str) -> None:
        faults.setdefault(kind, []).append((row, message))

    cell = {kind: row.cells[index] for kind, index in columns.items()}
    tried, attempts = cell.get("attempts", ""), None
    if tried:
        attempts = int(tried) if re.fullmatch("[0-9]{1,7}", tried) else -1
        if not 0 <= attempts <= MOST_ATTEMPTS:
            fault("attempts", f"the number of attempts must be a whole number, not {quoted(tried)}")
    status = _status(cell["status"])
    if cell["status"] and status is None:
        fault(
            f"status {cell['status']}",
            f"the status {quoted(cell['status'])} is unknown: write COMPLETED, NO_ANSWER, BUSY, "
            "FAILED or CANCELLED",
        )
    ended_at = _time(cell["time"])
    if cell["time"] and ended_at is None:
        fault("time", f"the time {quoted(cell['time'])} is none: write 2026-01-05 09:30")
    if ended_at is not None and ended_at > now:
        said = f"a call of {minute_text(ended_at)} is later than now, {minute_text(now)} Thai time"
        fault("later", f"{said}; --now names another instant")
    return _Call(row, attempts, status, ended_at)


def _status(cell: str) -> CallStatus | None:
    return _STATUSES.get(re.sub("[ _-]+", " ", cell).casefold())


def _time(cell: str) -> int | None:
    try:
        return parse_offset_instant(cell)
    except ValueError:
        meant = instant_meant(cell)
        return None if meant is None else parse_offset_instant(meant)


def _past(
    calls: Sequence[_Call], faults: dict[str, list[tuple[ExportRow, str]]]
) -> tuple[Past, ExportRow] | None:
    """Return the history of one person; None without a call."""
    # A person who was reached stays so (R3), whatever later rows say.
    last = max(
        calls,
        key=lambda call: (
            call.status in (CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED),
            call.ended_at or 0,
        ),
    )
    given = [call.attempts for call in calls if call.attempts is not None]
    attempts = max(given) if given else sum(call.status in COUNTED for call in calls)
    if not attempts and last.ended_at is None:
        return None
    wrong = contradiction(attempts, last.status, last.ended_at)
    if wrong is not None:
        key, message = wrong
        named = {"callAttempt": "attempts", "latestCallStatus": "status", "lastEndedAt": "time"}
        faults.setdefault(key, []).append(
            (last.row, f"the {named[key]} of the last call {message}")
        )
    if wrong is not None or last.status is None or last.ended_at is None:
        return None
    return Past(attempts, last.status, last.ended_at), last.row


def _problem(shown: str, row: ExportRow, message: str) -> Problem:
    sheet = f"sheet {row.sheet}: " if row.sheet else ""
    return Problem(shown, row.line, None, "", sheet + message)
