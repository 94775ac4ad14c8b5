"""Recipients in scenario files: lists that are read, checked, and chosen from (C12)."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from operator import itemgetter
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from pydantic import TypeAdapter, ValidationError

from dialsim.errors import ScenarioError
from dialsim.interface import CallStatus
from dialsim.interface.agent import ParamSchema, check_agent_params
from dialsim.interface.model import is_uuid
from dialsim.interface.phrases import few
from dialsim.scenario.behaviour import parse_script
from dialsim.scenario.campaign import (
    CHOICES,
    MOST_ATTEMPTS,
    MOST_SEGMENTS,
    Campaign,
    Codes,
    GeneratedRecipients,
    Normalized,
    Past,
    PeopleTable,
    RecipientsFile,
    contradiction,
)
from dialsim.scenario.document import Cursor, SourceFolder
from dialsim.scenario.done_list import DoneList, read_done
from dialsim.scenario.error_text import behind, quoting
from dialsim.scenario.fields import (
    COLUMNS,
    HISTORY_COLUMNS,
    PARAM,
    PHONE_PATTERN,
    PHONE_TEXT,
    PREFIX,
    ROUNDED_BY_SPREADSHEET,
    ParamValue,
    number_meant,
    phone_meant,
    phone_normalized,
)
from dialsim.scenario.formula import Attributes, read_formula
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.service import Beginning, not_after
from dialsim.scenario.sheet import Sheet, quoted
from dialsim.scenario.units import (
    era_fault,
    has_offset,
    instant_meant,
    looks_like_date,
    parse_offset_instant,
)

_COUNT = re.compile(r"[0-9]{1,9}")
_STATUSES = {status.value: status for status in CallStatus}
_Value = TypeVar("_Value")


class _Column:
    """Column of a file, by its name in dialsim, during conversion; a missing one has empty cells.

    Faults are reported. With `normalize` other spellings are accepted, and counted in `normalized`.
    """

    def __init__(
        self, sheet: Sheet, name: str, index: int | None, problems: Problems, normalize: bool
    ) -> None:
        self.name = name
        self.cells = [""] * len(sheet.lines) if index is None else sheet.column(index)
        self.normalized: Normalized | None = None
        self._sheet, self._index, self._problems = sheet, index, problems
        self._normalize = normalize

    def wrong(self, row: int, message: str) -> None:
        """Report a problem of a cell."""
        if self._index is None:
            line = self._sheet.lines[row]
            self._sheet.note(self._problems, line, 0, self.name, f"{self.name} {message}")
        else:
            self._sheet.note_cell(self._problems, row, self._index, message, self.name)

    def meant(self, row: int, meaning: Callable[[str], str | None]) -> str | None:
        """Return the normalized value of a cell, and count it if it differs."""
        cell = self.cells[row]
        meant = meaning(cell) if self._normalize and cell else None
        if meant is not None and meant != cell:
            if self.normalized is None:
                line = self._sheet.lines[row]
                self.normalized = Normalized(self.name, 0, line, cell, meant)
            self.normalized.count += 1
        return meant

    def texts(self) -> list[str | None]:
        return [cell or None for cell in self.cells]

    def codes(self) -> Codes:
        codes = Codes()
        for cell in self.cells:
            codes.append(cell or None)
        return codes

    def tels(self) -> list[str]:
        tels = list(self.cells)
        for row, cell in enumerate(tels):
            # Most cells are plain numbers already, and a pattern is quicker than normalizing them.
            if not _PLAIN_PHONE.fullmatch(cell):
                tels[row] = self.meant(row, phone_normalized) or cell
            if not _PHONE.fullmatch(tels[row]):
                message = f"{PHONE_TEXT}, not {quoted(cell)}{_phone_hint(cell)}"
                self.wrong(row, message if cell else "must not be empty")
        return tels

    def ids(self) -> list[str | None]:
        for row, cell in enumerate(self.cells):
            if cell and not is_uuid(cell):
                self.wrong(row, f"must be a UUID, not {quoted(cell)}")
        return self.texts()

    def segments(self) -> Codes:
        codes = self.codes()
        if len(codes.texts) > MOST_SEGMENTS and self._index is not None:
            message = (
                f"has {len(codes.texts):,} different values, but at most {MOST_SEGMENTS:,} are "
                "possible: is it a column of ids?"
            )
            line = self._sheet.header_line
            self._sheet.note(self._problems, line, self._index, self.name, f"{self.name} {message}")
        return codes

    def scripts(self) -> Codes:
        # A script is parsed once, because lists repeat few scripts many times.
        verdicts = {cell: _verdict(cell) for cell in {*self.cells} - {""}}
        for row, cell in enumerate(self.cells):
            if verdicts.get(cell):
                self.wrong(row, verdicts[cell])
        return self.codes()

    def params(self, entry: ParamSchema | None) -> list[ParamValue | None]:
        if entry is not None and entry.required:
            for row, cell in enumerate(self.cells):
                if not cell:
                    self.wrong(row, "is required")
        if entry is None or entry.type == "text":
            return list(self.texts())
        read = _number if entry.type == "number" else _boolean
        wanted = "a number" if entry.type == "number" else "true or false"
        values: list[ParamValue | None] = []
        for row, cell in enumerate(self.cells):
            value = read(cell) if cell else None
            if cell and value is None and read is _number:
                value = _number(self.meant(row, number_meant) or "")
            if cell and value is None:
                meant = number_meant(cell) if read is _number else None
                hint = f": write {meant}" if meant else ""
                self.wrong(row, f"must be {wanted}, not {quoted(cell)}{hint}")
            values.append(value)
        return values

    def instants(self) -> list[str]:
        """Return the cells, those in other spellings as ISO 8601; without an offset Thai time."""

        # Only what is not ISO 8601 is guessed at: a valid instant must never change its meaning.
        def is_sound(cell: str) -> bool:
            return has_offset(cell) and era_fault(cell) is None

        return [
            cell if is_sound(cell) else self.meant(row, instant_meant) or cell
            for row, cell in enumerate(self.cells)
        ]


def _read_history(columns: Sequence[_Column], start: Beginning) -> dict[int, Past]:
    """Read the histories by row from the columns `HISTORY_COLUMNS`; faults are reported.

    A history must not end after `start`. A row with empty history cells has no history.
    """
    found: dict[int, Past] = {}
    faults: list[tuple[str, str]] = []
    attempts, status, ended_at, number = columns
    cells = (attempts.cells, status.cells, ended_at.instants(), number.cells)
    for row, history in enumerate(zip(*cells, strict=True)):
        past = _past(start, faults, *history) if any(history) else None
        if past is not None:
            found[row] = past
        for key, message in faults:
            columns[HISTORY_COLUMNS.index(PREFIX + key)].wrong(row, message)
        faults.clear()
    return found


def _past(
    start: Beginning,
    faults: list[tuple[str, str]],
    attempts: str,
    status: str,
    ended_at: str,
    number: str,
) -> Past | None:
    """Read the history of one row; None without a call, or with `faults`."""

    def read(key: str, reader: Callable[[str], _Value], cell: str) -> _Value | None:
        try:
            return reader(cell) if cell else None
        except ValueError as error:
            faults.append((key, str(error)))
            return None

    call_attempt = read("callAttempt", _count, attempts) or 0
    latest = read("latestCallStatus", _status, status)
    last = read("lastEndedAt", parse_offset_instant, ended_at)
    # An invalid clock.start has instant 0; it has been reported already.
    if last is not None and last > start.at > 0:
        faults.append(("lastEndedAt", not_after(start)))
    if not faults and (wrong := contradiction(call_attempt, latest, last)):
        faults.append(wrong)
    if faults or latest is None or last is None:
        return None
    return Past(call_attempt, latest, last, number or None)


def _count(cell: str) -> int:
    if not _COUNT.fullmatch(cell):
        raise ValueError(f"must be a whole number of 0 or more, not {quoted(cell)}")
    if int(cell) > MOST_ATTEMPTS:
        raise ValueError(f"must be at most {MOST_ATTEMPTS}, not {quoted(cell)}")
    return int(cell)


def _status(cell: str) -> CallStatus:
    if cell not in _STATUSES:
        *others, last = _STATUSES
        raise ValueError(f"must be {', '.join(others)} or {last}, not {quoted(cell)}")
    return _STATUSES[cell]


_SHOWN = 10
_PHONE = re.compile(PHONE_PATTERN[1:-1])
_PLAIN_PHONE = re.compile(r"0[0-9]{8,9}")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def read_people(
    sheet: Sheet,
    schema: Mapping[str, ParamSchema],
    start: Beginning,
    problems: Problems,
    file: RecipientsFile,
    block: Cursor | None = None,
) -> PeopleTable:
    """Read the recipients of a file; faults are reported.

    `schema` is the agent's paramsSchema: it defines the required columns `agentParams.…` and their
    types; an empty cell is an absent parameter. A history must not end after `start`. `block` is
    the position of `file` in the document, for faults of its `columns`.
    """
    known = [*COLUMNS, *HISTORY_COLUMNS, *(PARAM + name for name in schema)]
    if file.columns is None:
        indices = _by_header(sheet, known, problems)
    else:
        indices = columns_by_names(sheet, known, file.columns, block, problems)
    if indices is None:
        return PeopleTable()
    if sheet.header:
        needed = ["tel", *(PARAM + name for name, entry in schema.items() if entry.required)]
        for name in needed:
            if name not in indices and name not in (file.columns or ()):
                hint = f"; if it has another name, say so beside file: columns: {{{name}: NAME}}"
                hint = "" if block is None else hint
                message = f"the column {name} is missing{hint}"
                problems.note(Problem(sheet.file, sheet.header_line, 1, name, message))
    # With `columns`, a file may have further columns, which are kept beside the recipients.
    others = () if file.columns is None else enumerate(sheet.header)
    beside = {name: at for at, name in others if name and at not in indices.values()}
    sheet.load(list(indices.values()), problems, beside.values())
    # Most lists have no history; their rows need not be looked at.
    history = () if indices.keys().isdisjoint(HISTORY_COLUMNS) else HISTORY_COLUMNS
    columns = {
        name: _Column(sheet, name, indices.get(name), problems, file.normalize)
        for name in (*indices, *history)
    }
    table = PeopleTable(
        tels=[""] * len(sheet.lines), names=[None] * len(sheet.lines),
        ids=[None] * len(sheet.lines), digest=_digest(sheet, file),
    )  # fmt: skip
    # Line numbers are needed for errors only, but a list of a million integers takes 36 MB.
    table.lines = _compact(sheet.lines)
    table.segments.codes = table.scripts.codes = [-1] * len(sheet.lines)
    if history:
        table.history = _read_history([columns[name] for name in history], start)
    for name in indices:
        _fill(table, columns[name], schema)
    for name, index in beside.items():
        # Cells of such columns repeat: each text is kept once.
        once: dict[str, str] = {}
        table.beside[name] = [once.setdefault(c, c) or None for c in sheet.column(index)]
    counts = (columns[name].normalized for name in indices)
    table.normalized = [count for count in counts if count is not None]
    return table


def _fill(table: PeopleTable, column: _Column, schema: Mapping[str, ParamSchema]) -> None:
    """Convert a column and put it into the table; histories are read separately."""
    match column.name:
        case "tel":
            table.tels = column.tels()
        case "customerName":
            table.names = column.texts()
        case "id":
            table.ids = column.ids()
        case "segment":
            table.segments = column.segments()
        case "script":
            table.scripts = column.scripts()
        case name if name.startswith(PARAM):
            param = name.removeprefix(PARAM)
            table.params[param] = column.params(schema.get(param))


def _digest(sheet: Sheet, file: RecipientsFile) -> bytes:
    """Return the digest of the content, and of options other than the defaults."""
    # Options at their defaults are left out, so that a new option does not change the digest of
    # lists that journals and stores refer to.
    said = file.model_dump_json(exclude={"file"}, exclude_defaults=True)
    return sheet.digest if said == "{}" else hashlib.sha256(sheet.digest + said.encode()).digest()


def _compact(lines: list[int]) -> Sequence[int]:
    """Return consecutive numbers as a range, which saves a list of a million lines."""
    if lines and lines[-1] - lines[0] == len(lines) - 1:
        return range(lines[0], lines[-1] + 1)
    return lines


def _by_header(sheet: Sheet, known: Sequence[str], problems: Problems) -> dict[str, int] | None:
    """Return the columns by the names in the header; None, and a problem, for a row of a person."""
    person = next((cell for cell in sheet.header if phone_meant(cell)), None)
    if person is not None:
        message = (
            f"the first row must name the columns, tel and so on, but it holds a phone number, "
            f"{person}: put a row of names above it"
        )
        sheet.note(problems, sheet.header_line, sheet.header.index(person), "", message)
        return None
    sheet.check_names(range(len(sheet.header)), problems)
    _check_known(sheet, known, problems)
    return {name: sheet.header.index(name) for name in sheet.header if name}


def columns_by_names(
    sheet: Sheet,
    known: Sequence[str],
    named: Mapping[str, str],
    block: Cursor | None,
    problems: Problems,
) -> dict[str, int]:
    """Return the columns named in `columns`, and further columns with names of dialsim."""
    taken: dict[str, str] = {}
    indices = {
        name: index
        for index, name in enumerate(sheet.header)
        if (name in known or name.startswith(PARAM))
        and name not in named
        and name not in named.values()
    }

    def fault(ours: str, message: str) -> None:
        if block is not None:
            problems.add(block.at("columns", ours), message)

    for ours, theirs in named.items():
        if ours not in known and not ours.startswith(PARAM):
            near = nearest_column(ours, [*known])
            hint = f"did you mean {near}?" if near else f"known here: {', '.join(known)}"
            fault(ours, f"is not a known column; {hint}")
        elif theirs not in sheet.header:
            shown = few(sheet.header[:_SHOWN], len(sheet.header)) if sheet.header else "none"
            found = get_close_matches(theirs, sheet.header, n=1)
            hint = f"did you mean {found[0]}?" if found else f"columns are {shown}"
            fault(ours, f'"{theirs}" is no column of {sheet.file}; {hint}')
        elif theirs in taken:
            fault(ours, f'"{theirs}" is {taken[theirs]} already: a column can be one thing only')
        else:
            indices[ours] = sheet.header.index(theirs)
            if sheet.header.count(theirs) > 1:
                fault(ours, f'"{theirs}" is the name of several columns of {sheet.file}')
        taken.setdefault(theirs, ours)
    return dict(sorted(indices.items(), key=itemgetter(1)))


def _check_known(sheet: Sheet, known: Sequence[str], problems: Problems) -> None:
    """Report unknown columns: each with a similar known one, the others together."""
    free = [name for name in known if name not in sheet.header]
    strange: list[int] = []
    for index, name in enumerate(sheet.header):
        if not name or name in known or name.startswith(PARAM):
            continue
        # A known column that the file lacks is the likelier intention.
        near = nearest_column(name, free) or nearest_column(name, known)
        if near is None:
            strange.append(index)
        else:
            message = f"{name} is not a known column; did you mean {near}?"
            sheet.note(problems, sheet.header_line, index, name, message)
    if strange:
        names = [sheet.header[index] for index in strange]
        are = "is not a known column" if len(names) == 1 else "are not known columns"
        message = (
            f"{few(names[:_SHOWN], len(names))} {are}: write {PARAM}{names[0]} for a parameter of "
            f"the agent, or one of {', '.join(known)}"
        )
        sheet.note(problems, sheet.header_line, strange[0], names[0], message)


def nearest_column(name: str, known: Sequence[str]) -> str | None:
    """Return the known column most similar to a name, ignoring case, punctuation and prefix."""
    # Reversed, so that the first of equal names wins; full names overwrite names without prefix.
    plain = {_bare(column.rpartition(".")[2]): column for column in reversed(known)}
    plain |= {_bare(column): column for column in reversed(known)}
    near = get_close_matches(_bare(name), plain, n=1)
    return plain[near[0]] if near else None


def _bare(name: str) -> str:
    return re.sub(r"[^0-9a-zก-๛]", "", name.casefold())


def _phone_hint(cell: str) -> str:
    """Return advice for a cell that is not a phone number."""
    if meant := phone_meant(cell):
        return f": write {meant}"
    if ROUNDED_BY_SPREADSHEET.fullmatch(cell):
        return (
            ": a spreadsheet has rounded it, so its digits are lost; give the column the format "
            "Text and enter the numbers again"
        )
    if looks_like_date(cell):
        return (
            ": a spreadsheet has made a date of it; give the column the format Text and enter the "
            "numbers again"
        )
    return ""


def _verdict(script: str) -> str:
    """Return the fault of a script, "" for a valid one."""
    try:
        parse_script(script)
    except ValueError as error:
        return str(error)
    return ""


def _number(cell: str) -> ParamValue | None:
    if _INTEGER.fullmatch(cell):
        return int(cell)
    # float() would also accept nan, inf, 1_000 and digits of other scripts.
    value = float(cell) if _NUMBER.fullmatch(cell) else math.inf
    return value if math.isfinite(value) else None


def _boolean(cell: str) -> ParamValue | None:
    return {"true": True, "false": False}.get(cell.lower())


ParamsSchema = Mapping[str, ParamSchema]

# A sweep has many variants of a scenario with the same list; they share it and read it once.
_READ: WeakValueDictionary[tuple[object, ...], PeopleTable] = WeakValueDictionary()
"""Valid lists by content and reading options, as long as a scenario holds them."""

_SCHEMA = TypeAdapter(dict[str, ParamSchema])


def read_recipients(
    root: Cursor, folder: SourceFolder | None, start: Beginning, problems: Problems
) -> Iterator[tuple[Cursor, RecipientsFile]]:
    """Yield each valid recipients block that names a file, with the content of the file.

    `folder` is the base of file names; without it no file is read, and each is reported. A history
    must not end after `start`. Parameters of recipients in the document itself are checked as well.
    """
    done: dict[str, tuple[DoneList, list[PeopleTable]]] = {}
    for organization in root.at("organizations").items():
        schemas = dict(_schemas(organization))
        for campaign in organization.at("campaigns").items():
            schema = schemas.get(campaign.at("agent").text or "", {})
            recipients = campaign.at("recipients")
            file = _sound(recipients) if recipients.at("file").exists else None
            if file is not None:
                table = _read_file(recipients, folder, file.whole, schema, start, problems)
                if table.tels and file.done is not None and folder is not None:
                    table = _with_done(table, file.done, folder, start, problems, done)
                if table.tels:
                    table = chosen(table, file, schema, recipients, problems)
                yield (
                    recipients,
                    file.holding(_READ.setdefault((table.digest, repr(schema)), table)),
                )
            for person in recipients.items():
                _check_params(person, schema, problems)
            if recipients.at("count").exists and recipients.at("count").value != 0:
                _check_params(recipients, schema, problems)
    for shown, (listed, tables) in done.items():
        for misfit in listed.misfits(shown, tables):
            problems.note(misfit)


def _with_done(
    table: PeopleTable,
    name: str,
    folder: SourceFolder,
    start: Beginning,
    problems: Problems,
    done: dict[str, tuple[DoneList, list[PeopleTable]]],
) -> PeopleTable:
    """Return a list of people with histories from the done list in the file `name`.

    `done` collects each done list, by file, with the lists of people that use it.
    """
    shown = folder.shown(name)
    try:
        content = folder.read(name)
        listed = read_done(content, shown, start.at)
    except ScenarioError as error:
        for problem in error.problems:
            problems.note(problem)
        return table
    done.setdefault(shown, (listed, []))[1].append(table)
    said = hashlib.sha256(content).digest()
    return listed.of(table, hashlib.sha256(table.digest + said).digest())


def _schemas(organization: Cursor) -> Iterator[tuple[str, ParamsSchema]]:
    """Yield each agent's name and paramsSchema, empty if invalid."""
    for agent in organization.at("agents").items():
        try:
            schema = _SCHEMA.validate_python(agent.at("paramsSchema").value or {})
        except ValidationError:
            schema = {}
        yield agent.at("name").text or "", schema


def _sound(recipients: Cursor) -> RecipientsFile | None:
    """Return the file settings of a block; None if invalid, which the models report."""
    try:
        return RecipientsFile.model_validate(recipients.value, by_alias=True, by_name=False)
    except ValidationError:
        return None


def _read_file(
    recipients: Cursor,
    folder: SourceFolder | None,
    file: RecipientsFile,
    schema: ParamsSchema,
    start: Beginning,
    problems: Problems,
) -> PeopleTable:
    if folder is None:
        message = "can't be used: no files are read here; give a list of people, or count"
        problems.add(recipients.at("file"), message)
        return PeopleTable()
    try:
        content = folder.read(file.file)
        wanted = {name: entry.model_dump(mode="json") for name, entry in schema.items()}
        # Parameters are converted by the schema, and histories are checked against the start, so
        # that both belong to the key besides the content.
        key = (hashlib.sha256(content).digest(), repr(file), repr(wanted), start)
        table, known = _READ.get(key), len(problems)
        if table is None:
            sheet = Sheet.parse(content, folder.shown(file.file), problems, file.form)
            table = read_people(sheet, schema, start, problems, file, recipients)
            # A table with faults is not shared: its faults must be reported for each campaign.
            if len(problems) == known:
                _READ[key] = table
    except ScenarioError as error:
        problems.refer(recipients.at("file"), error)
        return PeopleTable()
    return table


def _check_params(block: Cursor, schema: ParamsSchema, problems: Problems) -> None:
    params = block.at("agentParams")
    values = params.value if params.exists else {}
    if not isinstance(values, dict):
        return
    where = ".".join(map(str, params.path))
    for fault in check_agent_params(schema, values):
        culprit = params.at(*fault.path)
        advice = quoting(culprit) if fault.message.endswith("a string") else ""
        if fault.message.endswith("a number"):
            number = number_meant(culprit.text or "")
            advice = f"; write {number}, without quotes" if number else ""
        problems.note(behind(where + ".", fault.message + advice, culprit))


# -- choice from a list (C12) ---------------------------------------------------------------------

# Keyed by the chosen list, so that a list that was read lives as long as a choice from it: variants
# with another choice then need not read the file again.
_WHOLE: WeakKeyDictionary[PeopleTable, PeopleTable] = WeakKeyDictionary()


def whole(table: PeopleTable) -> PeopleTable:
    """Return the whole list that a list was chosen from; the list itself if nothing was chosen."""
    return _WHOLE.get(table, table)


def chosen(
    table: PeopleTable,
    file: RecipientsFile,
    schema: Mapping[str, ParamSchema],
    block: Cursor,
    problems: Problems,
) -> PeopleTable:
    """Return the recipients that `file` chooses from a list, in their order; faults are reported.

    `schema` is the agent's paramsSchema, `block` the position of `file` in the document.
    """
    if not any(getattr(file, key) for key in CHOICES):
        return table
    known, people, keys = len(problems), Attributes.of_table(table, schema), []
    rows = np.arange(len(table.tels))

    def location(row: int) -> str:
        return f"{file.file}:{table.lines[row]}"

    if file.where is not None:
        with problems.at(block.at("where")):
            met = read_formula(file.where, people, "condition").values(people, rows, location)
            if not met.any():
                segments = few(people.segments[:6], len(people.segments))
                hint = f"; segments are {segments}" if segments else ""
                raise ValueError(f"leaves none of the {len(rows):,} recipients{hint}")
            rows = rows[met]
    for number, text in enumerate(file.sort or ()):
        written = block.at("sort")
        with problems.at(written if written.text else block.at("sort", number)):
            values = read_formula(text, people).values(people, rows, location)
            keys.append(np.unique(values, return_inverse=True)[1])
    if len(problems) > known:
        return PeopleTable()
    if keys:
        rows = rows[np.lexsort(keys[::-1])]
    made = table.of(rows[: file.first])
    said = file.model_dump_json(include={*CHOICES}, exclude_none=True)
    made.digest = hashlib.sha256(table.digest + said.encode()).digest()
    _WHOLE[made] = table
    return made


# -- ids -------------------------------------------------------------------------------------------


def check_ids(
    campaigns: Iterable[tuple[Cursor, Campaign]], problems: Problems, taken: Iterable[str] = ()
) -> None:
    """Report campaigns with a recipient id that another recipient has as well.

    Each campaign comes with its position; `taken` are ids in use elsewhere.
    """
    own = [(entry, [*_ids(campaign)]) for entry, campaign in campaigns]
    if not any(ids for _, ids in own):
        return
    seen = {fixed.lower() for fixed in taken}
    for entry, ids in own:
        for fixed in ids:
            if fixed in seen:
                message = f"have the id {fixed} twice; ids must be unique"
                problems.add(entry.at("recipients"), message)
            seen.add(fixed)


def _ids(campaign: Campaign) -> Iterator[str]:
    recipients = campaign.recipients
    if isinstance(recipients, RecipientsFile):
        yield from (fixed.lower() for fixed in recipients.table.ids if fixed)
    elif not isinstance(recipients, GeneratedRecipients):
        yield from (person.id.lower() for person in recipients if person.id)
