"""People: one campaign's recipients as columns, in upload order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dialsim.scenario.campaign import GeneratedRecipients, Recipient, Recipients, RecipientsFile
from dialsim.scenario.fields import ParamValue
from dialsim.scenario.generated_people import Generator
from dialsim.scenario.history import Past
from dialsim.scenario.people_table import PeopleTable
from dialsim.scenario.scripts import Script, parse_script


class People(ABC):
    """One campaign's recipients, in upload order.

    `segment` (int16) are codes into `segments`, `script` (int32) codes into `scripts`, both -1
    where a recipient has none, and None where nobody has one. `history` tells of the recipients,
    by index, who were called before the scenario begins.
    """

    count: int
    segments: tuple[str, ...] = ()
    segment: NDArray[np.int16] | None = None
    scripts: tuple[Script, ...] = ()
    script: NDArray[np.int32] | None = None
    history: Mapping[int, Past] = MappingProxyType({})

    @abstractmethod
    def tels(self) -> list[str]:
        """All phone numbers."""

    @abstractmethod
    def customer_names(self) -> list[str | None]:
        """All names, None where none was uploaded."""

    @abstractmethod
    def tel(self, recipient: int) -> str:
        """The phone number of the recipient at an index from 0."""

    @abstractmethod
    def customer_name(self, recipient: int) -> str | None:
        """The name of the recipient at an index from 0."""

    @abstractmethod
    def agent_params(self, recipient: int) -> Mapping[str, ParamValue]:
        """The parameters uploaded for the recipient at an index from 0."""

    @abstractmethod
    def fixed_id(self, recipient: int) -> str | None:
        """The id that the file fixes for the recipient at an index from 0."""

    @abstractmethod
    def fixed_ids(self) -> list[str]:
        """All ids that the file fixes."""


class GeneratedPeople(People):
    """Made-up people; numbers and names are computed when they are asked for, all at once."""

    def __init__(self, recipients: GeneratedRecipients, generator: Generator) -> None:
        self.count = recipients.count
        self._params = recipients.agent_params
        self._generator = generator
        if recipients.segments is not None:
            self.segments = tuple(recipients.segments)
            shares = list(recipients.segments.values())
            self.segment = generator.segments(self.count, shares)

    @override
    def tels(self) -> list[str]:
        return self._generator.tels(0, self.count)

    @override
    def customer_names(self) -> list[str | None]:
        return list(self._generator.names(0, self.count))

    @override
    def tel(self, recipient: int) -> str:
        return self._generator.tel(recipient)

    @override
    def customer_name(self, recipient: int) -> str | None:
        return self._generator.names(recipient, recipient + 1)[0]

    @override
    def agent_params(self, recipient: int) -> Mapping[str, ParamValue]:
        return self._params

    @override
    def fixed_id(self, recipient: int) -> str | None:
        return None

    @override
    def fixed_ids(self) -> list[str]:
        return []


class ListedPeople(People):
    """People who were written down one by one, in the scenario or in a CSV."""

    def __init__(self, table: PeopleTable) -> None:
        self.count = len(table.tels)
        self._table = table
        if table.segments.texts:
            self.segments = tuple(table.segments.texts)
            self.segment = np.array(table.segments.codes, dtype=np.int16)
        if table.scripts.texts:
            self.scripts = tuple(map(parse_script, table.scripts.texts))
            self.script = np.array(table.scripts.codes, dtype=np.int32)
        self.history = table.history

    @override
    def tels(self) -> list[str]:
        return self._table.tels

    @override
    def customer_names(self) -> list[str | None]:
        return self._table.names

    @override
    def tel(self, recipient: int) -> str:
        return self._table.tels[recipient]

    @override
    def customer_name(self, recipient: int) -> str | None:
        return self._table.names[recipient]

    @override
    def agent_params(self, recipient: int) -> Mapping[str, ParamValue]:
        columns = self._table.params.items()
        return {name: v for name, values in columns if (v := values[recipient]) is not None}

    @override
    def fixed_id(self, recipient: int) -> str | None:
        return self._table.ids[recipient]

    @override
    def fixed_ids(self) -> list[str]:
        return [fixed for fixed in self._table.ids if fixed]


def tabled(recipients: Sequence[Recipient]) -> PeopleTable:
    """The columns of recipients who are listed in the scenario itself."""
    table = PeopleTable()
    for index, person in enumerate(recipients):
        table.tels.append(person.tel)
        table.names.append(person.customer_name or None)  # F2
        table.ids.append(person.id)
        table.segments.append(person.segment)
        table.scripts.append(person.script)
        if person.history is not None and (past := person.history.past) is not None:
            table.history[index] = past
        for name, value in person.agent_params.items():
            if name not in table.params:
                table.params[name] = [None] * len(recipients)
            table.params[name][index] = value
    return table


def people(
    recipients: Recipients,
    seed: int,
    replication: int,
    organization_position: int,
    campaign_position: int,
) -> People:
    """The people of a campaign, which stands at these positions (from 0) of the scenario.

    Seed and positions decide the numbers and names of generated people, and with the replication
    their segments; how many people there are does not.
    """
    if isinstance(recipients, GeneratedRecipients):
        generator = Generator(seed, replication, organization_position, campaign_position)
        return GeneratedPeople(recipients, generator)
    if isinstance(recipients, RecipientsFile):
        return ListedPeople(recipients.table)
    return ListedPeople(tabled(recipients))
