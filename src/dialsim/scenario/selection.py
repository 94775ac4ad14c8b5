"""Choice of recipients from a file: `where`, `sort` and `first` (C12)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from dialsim.interface.agent import ParamSchema
from dialsim.interface.phrases import few
from dialsim.scenario.campaign import CHOICES, PeopleTable, RecipientsFile
from dialsim.scenario.document import Cursor
from dialsim.scenario.formula import Attributes, read_formula
from dialsim.scenario.problems import Problems

_SHOWN = 6

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
                segments = few(people.segments[:_SHOWN], len(people.segments))
                hint = f"; segments are {segments}" if segments else ""
                raise ValueError(f"leaves nobody of the {len(rows):,} recipients{hint}")
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
