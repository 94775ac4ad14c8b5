"""Recipients as a scenario writes them: their files read, their parameters and ids checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import TypeAdapter, ValidationError

from dialsim.interface.agent import ParamSchema, check_agent_params
from dialsim.scenario.campaign import GeneratedRecipients, PeopleTable, RecipientsFile
from dialsim.scenario.csv_file import CsvSource
from dialsim.scenario.document import Cursor, MappingNode, SourceFolder
from dialsim.scenario.error_text import behind, quoting
from dialsim.scenario.fields import number_meant
from dialsim.scenario.people_file import read_people
from dialsim.scenario.problems import Problems, ScenarioError
from dialsim.scenario.scenario import Campaign
from dialsim.scenario.service import Beginning

ParamsSchema = Mapping[str, ParamSchema]

_SCHEMA = TypeAdapter(dict[str, ParamSchema])


def read_recipients(
    root: Cursor, folder: SourceFolder | None, start: Beginning, problems: Problems
) -> Iterator[tuple[Cursor, RecipientsFile]]:
    """Each recipients block of a document that names a CSV, with what is in the file.

    `folder` is where relative file names start; without one no file is read, and each is noted. No
    history may pass `start`. Parameters of recipients in the document itself are checked against
    their agents' paramsSchema on the way.
    """
    for organization in root.at("organizations").items():
        schemas = dict(_schemas(organization))
        for campaign in organization.at("campaigns").items():
            schema = schemas.get(campaign.at("agent").text or "", {})
            recipients = campaign.at("recipients")
            file = recipients.at("file").text
            if file is not None and len(list(recipients.entries())) == 1:
                table = _read_file(recipients, folder, file, schema, start, problems)
                yield recipients, RecipientsFile.read(file, table)
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


def _read_file(
    recipients: Cursor,
    folder: SourceFolder | None,
    file: str,
    schema: ParamsSchema,
    start: Beginning,
    problems: Problems,
) -> PeopleTable:
    if folder is None:
        says = "can't be used: no files are read here; give a list of people, or count"
        problems.add(recipients.at("file"), says)
        return PeopleTable()
    try:
        return read_people(CsvSource.read(folder, file, problems), schema, start, problems)
    except ScenarioError as error:
        problems.refer(recipients.at("file"), error)
        return PeopleTable()


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
