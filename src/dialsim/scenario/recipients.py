"""Recipients as a scenario writes them: their files read, their parameters and ids checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from weakref import WeakValueDictionary

from pydantic import TypeAdapter, ValidationError

from dialsim.interface.agent import ParamSchema, check_agent_params
from dialsim.scenario.campaign import GeneratedRecipients, PeopleTable, RecipientsFile
from dialsim.scenario.document import Cursor, MappingNode, SourceFolder
from dialsim.scenario.error_text import behind, quoting
from dialsim.scenario.fields import number_meant
from dialsim.scenario.people_file import read_people
from dialsim.scenario.problems import Problems, ScenarioError
from dialsim.scenario.scenario import Campaign
from dialsim.scenario.service import Beginning
from dialsim.scenario.sheet import Sheet

ParamsSchema = Mapping[str, ParamSchema]

_READ: WeakValueDictionary[tuple[object, ...], PeopleTable] = WeakValueDictionary()
"""Good lists by content and by how they are read, while a scenario holds them.

The variants of a scenario, of which a sweep has many, then share one list, and wait for it once.
"""

_SCHEMA = TypeAdapter(dict[str, ParamSchema])


def read_recipients(
    root: Cursor, folder: SourceFolder | None, start: Beginning, problems: Problems
) -> Iterator[tuple[Cursor, RecipientsFile]]:
    """Each sound recipients block of a document that names a file, with what is in the file.

    `folder` is where relative file names start; without one no file is read, and each is noted. No
    history may pass `start`. Parameters of recipients in the document itself are checked against
    their agents' paramsSchema on the way.
    """
    for organization in root.at("organizations").items():
        schemas = dict(_schemas(organization))
        for campaign in organization.at("campaigns").items():
            schema = schemas.get(campaign.at("agent").text or "", {})
            recipients = campaign.at("recipients")
            file = _sound(recipients) if recipients.at("file").exists else None
            if file is not None:
                table = _read_file(recipients, folder, file, schema, start, problems)
                yield recipients, file.holding(table)
            for person in recipients.items():
                _check_params(person, schema, problems)
            if recipients.at("count").exists and recipients.at("count").value != 0:
                _check_params(recipients, schema, problems)


def _schemas(organization: Cursor) -> Iterator[tuple[str, ParamsSchema]]:
    """The paramsSchema of each agent by its name, as far as they can be read."""
    for agent in organization.at("agents").items():
        try:
            schema = _SCHEMA.validate_python(agent.at("paramsSchema").value or {})
        except ValidationError:
            schema = {}
        yield agent.at("name").text or "", schema


def _sound(recipients: Cursor) -> RecipientsFile | None:
    """What a block says of its file; None where that is faulty, which the models tell."""
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
        says = "can't be used: no files are read here; give a list of people, or count"
        problems.add(recipients.at("file"), says)
        return PeopleTable()
    try:
        content = folder.read(file.file)
        wanted = {name: entry.model_dump(mode="json") for name, entry in schema.items()}
        key = (hashlib.sha256(content).digest(), repr(file), repr(wanted), start)
        table, known = _READ.get(key), len(problems)
        if table is None:
            sheet = Sheet.parse(content, folder.shown(file.file), problems, file.form)
            table = read_people(sheet, schema, start, problems, file, recipients)
            if len(problems) == known:
                _READ[key] = table
    except ScenarioError as error:
        problems.refer(recipients.at("file"), error)
        return PeopleTable()
    return table


def _check_params(block: Cursor, schema: ParamsSchema, problems: Problems) -> None:
    params = block.at("agentParams")
    values = params.value if params.exists else {}
    if not isinstance(values, dict) or not isinstance(block.node, MappingNode):
        return
    where = ".".join(map(str, params.path))
    for fault in check_agent_params(schema, values):
        culprit = params.at(*fault.path)
        advice = quoting(culprit) if fault.message.endswith("a string") else ""
        if fault.message.endswith("a number"):
            number = number_meant(culprit.text or "")
            advice = f"; write {number}, without quotes" if number else ""
        problems.note(behind(where + ".", fault.message + advice, culprit))


def check_ids(
    campaigns: Iterable[tuple[Cursor, Campaign]], problems: Problems, taken: Iterable[str] = ()
) -> None:
    """Note the campaigns some of whose recipients have an id that another recipient has too.

    Each campaign comes with its place; `taken` are ids that others have already.
    """
    seen = {fixed.lower() for fixed in taken}
    for place, campaign in campaigns:
        for fixed in _ids(campaign):
            if fixed in seen:
                says = f"have the id {fixed} twice; ids must be unique"
                problems.add(place.at("recipients"), says)
            seen.add(fixed)


def _ids(campaign: Campaign) -> Iterator[str]:
    recipients = campaign.recipients
    if isinstance(recipients, RecipientsFile):
        yield from (fixed.lower() for fixed in recipients.table.ids if fixed)
    elif not isinstance(recipients, GeneratedRecipients):
        yield from (person.id.lower() for person in recipients if person.id)
