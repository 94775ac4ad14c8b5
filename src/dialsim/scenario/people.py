"""Recipients of one campaign as columns, listed or made up.

Made-up people have Thai mobile numbers, common first names, and invented last names. They are
derived from the seed and the campaign's position.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dialsim.interface.agent import ParamSchema
from dialsim.scenario.behaviour import Script, parse_script
from dialsim.scenario.campaign import (
    Campaign,
    GeneratedRecipients,
    Past,
    PeopleTable,
    Recipient,
    Recipients,
    RecipientsFile,
)
from dialsim.scenario.fields import ParamValue
from dialsim.scenario.formula import Attributes, read_formula

if TYPE_CHECKING:
    from dialsim.scenario.organization import Agent

_FIRST = """
สมชาย สมศักดิ์ สมบัติ สมพงษ์ สมบูรณ์ สุรชัย สุรศักดิ์ วิชัย วิเชียร วิทยา ประเสริฐ ประสิทธิ์
ประยูร อนุชา อนันต์ อภิชาติ ธนา ธนพล ธนากร ธีรพงษ์ ณัฐพล ณัฐวุฒิ กิตติ กิตติศักดิ์
เกียรติศักดิ์ ชัยวัฒน์ ชาญชัย ชูชาติ พงษ์ศักดิ์ พิชัย ไพโรจน์ บุญมี บุญเลิศ มานพ มานะ ยุทธนา
วรวุฒิ วีระ ศักดิ์ชัย สันติ สุทธิพงษ์ อดิศักดิ์ เอกชัย ปิยะ ภาณุพงศ์ รัตนพล สมหญิง สมใจ
สมศรี สุดา สุดารัตน์ สุภาพร สุนีย์ สุวรรณา วันเพ็ญ วาสนา วิไล วิภา ประภา ประภาพร ปราณี อรุณี
อรทัย อัญชลี อำไพ กาญจนา กัญญา กนกวรรณ จันทร์เพ็ญ จิราพร จุฑามาศ ชลธิชา ณัฐธิดา ดวงใจ
ทัศนีย์ นงลักษณ์ นภา นันทนา นิภา บุษบา เบญจมาศ พรทิพย์ พรพิมล พัชรี เพ็ญศรี มาลี มาลัย ยุพิน
รัตนา ราตรี ลัดดา ศิริพร ศิริวรรณ สายฝน หทัยรัตน์ อุไรวรรณ
"""
_LAST = """
ใจดี ใจงาม ใจเย็น ใจกล้า รักไทย รักดี รักสงบ รักเรียน ทองดี ทองคำ ทองสุข ทองใบ ศรีสุข
ศรีสวัสดิ์ ศรีทอง ศรีวงศ์ แสงทอง แสงจันทร์ แสงอรุณ แสงสว่าง บุญมา บุญเรือง บุญช่วย
บุญประเสริฐ สุขใจ สุขสันต์ สุขเจริญ สุขเกษม มั่นคง มั่งมี มีสุข มีทรัพย์ วงศ์ทอง วงศ์สุวรรณ
วงศ์ใหญ่ พงษ์ไทย พงษ์พันธ์ เจริญสุข เจริญผล เจริญชัย ชัยมงคล ชัยวงศ์ ไชยวงศ์ ไชยา คำแก้ว คำดี
คำภา แก้วมณี แก้วใส แก้วกาญจน์ จันทร์แก้ว จันทร์หอม จันทร์ดี อินทร์แก้ว อินทร์ทอง พรหมมา
พรหมสุข นาคทอง นาคสุข เพชรดี เพชรรัตน์ พลอยงาม หอมหวาน หอมจันทร์ ดวงแก้ว ดวงจันทร์ ดีงาม
ดีเลิศ สายทอง สายชล สายบุญ ปานทอง ปานแก้ว เกษมสุข เกตุแก้ว กล้าหาญ ขยันดี งามตา ชื่นใจ
ชื่นบาน ทวีสุข ทวีทรัพย์ ธรรมดี นิลทอง บัวทอง บัวแก้ว ผลดี พูลสุข พูลทรัพย์ ภูมิใจ มงคลชัย
ยิ้มแย้ม ยืนยง รุ่งเรือง รุ่งโรจน์ ร่มเย็น วัฒนสุข สมบูรณ์สุข สมใจนึก สว่างใจ หาญกล้า อยู่สุข
อยู่ดี อ่อนหวาน อุดมทรัพย์ อุดมสุข
"""

FIRST_NAMES: tuple[str, ...] = tuple(_FIRST.split())
LAST_NAMES: tuple[str, ...] = tuple(_LAST.split())


PREFIXES = ("06", "08", "09")
"""Prefixes of Thai mobile numbers; eight digits follow."""

_DIGITS = 8
_NUMBERS = len(PREFIXES) * 10**_DIGITS
_NUMBER, _NAME, _SEGMENT = range(3)
_BLOCK_BITS = 12  # people whose names are drawn together


class Generator:
    """Generator of one campaign's people; a person does not depend on how many there are."""

    __slots__ = ("_factor", "_key", "_offset", "_replication")

    def __init__(self, seed: int, replication: int, organization: int, campaign: int) -> None:
        self._key = (seed, organization, campaign)
        self._replication = replication
        draw = self._draws(_NUMBER)
        self._offset = int(draw.integers(_NUMBERS))
        # An affine map of the index, modulo the 300 million mobile numbers. A factor coprime to
        # that makes it a bijection, so that no two people of a campaign share a number.
        self._factor = int(draw.integers(_NUMBERS // 10, _NUMBERS))
        # Takes a few steps: 27 % of all factors are coprime to 3 · 10⁸.
        while math.gcd(self._factor, _NUMBERS) != 1:
            self._factor += 1

    def _draws(self, purpose: int) -> np.random.Generator:
        # Numbers and names are labels, equal in all replications of a seed. Segments decide how
        # people react, and are drawn for each replication.
        anew = self._replication > 0 and purpose == _SEGMENT
        key = np.random.SeedSequence(
            (*self._key, purpose), spawn_key=(self._replication,) if anew else ()
        )
        return np.random.Generator(np.random.Philox(key))

    def tels(self, indices: NDArray[np.integer]) -> list[str]:
        """Return the phone numbers of people by index, ten digits each."""
        index = indices.astype(np.int64)
        number = (index * self._factor + self._offset) % _NUMBERS
        digits = np.empty((len(index), 2 + _DIGITS), dtype=np.uint8)
        prefixes = np.array([[int(digit) for digit in prefix] for prefix in PREFIXES], np.uint8)
        digits[:, :2] = prefixes[number // 10**_DIGITS]
        for column in range(1 + _DIGITS, 1, -1):
            number, digits[:, column] = np.divmod(number, 10)
        texts: list[str] = (digits + ord("0")).view(f"S{2 + _DIGITS}").ravel().astype(str).tolist()
        return texts

    def tel(self, index: int) -> str:
        """Return the phone number of one person."""
        prefix, digits = divmod((index * self._factor + self._offset) % _NUMBERS, 10**_DIGITS)
        return f"{PREFIXES[prefix]}{digits:0{_DIGITS}}"

    def names(self, indices: NDArray[np.integer]) -> list[str]:
        """Return the names of people by index: first and last name."""
        uniforms = np.empty(len(indices))
        # In blocks, so that a page of a million people needs draws for its own block only.
        blocks = indices >> _BLOCK_BITS
        order = np.argsort(blocks, kind="stable")
        starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
        for rows in np.split(order, starts[1:]) if len(order) else []:
            first = int(blocks[rows[0]]) << _BLOCK_BITS
            drawn = self._uniforms(_NAME, first, int(indices[rows].max()) + 1)
            uniforms[rows] = drawn[indices[rows] - first]
        chosen = (uniforms * (len(FIRST_NAMES) * len(LAST_NAMES))).astype(np.int64)
        pairs = np.divmod(chosen, len(LAST_NAMES))
        return [
            f"{FIRST_NAMES[i]} {LAST_NAMES[j]}"
            for i, j in zip(*(part.tolist() for part in pairs), strict=True)
        ]

    def segments(self, count: int, shares: Sequence[float]) -> NDArray[np.int16]:
        """Draw the segments of the first `count` people, as indices into `shares`."""
        ends = np.cumsum(shares)[:-1]
        uniforms = self._uniforms(_SEGMENT, 0, count)
        return np.searchsorted(ends, uniforms, side="right").astype(np.int16)

    def _uniforms(self, purpose: int, start: int, stop: int) -> NDArray[np.float64]:
        """Return a uniform random number per person, which depends on the person's index alone."""
        draws = self._draws(purpose)
        assert isinstance(draws.bit_generator, np.random.Philox)
        # Philox makes four values per step of its counter.
        draws.bit_generator.advance(start // 4)
        # The counter can only be set to multiples of four values; the rest is drawn and dropped.
        return draws.random(stop - start + start % 4)[start % 4 :]


class People(ABC):
    """Recipients of a campaign, in upload order.

    `segment` (int16) has indices into `segments`, `script` (int32) into `scripts`. Both are -1 for
    recipients without one, and None if no recipient has one. `history` maps the indices of
    recipients who were called before the scenario begins, `fixed_ids` those of recipients whose id
    the scenario fixes. `rows` are the positions of chosen recipients in the list that they were
    chosen from. `params` has a column per parameter: a value per recipient, or one for all.
    `beside` are other columns of their file.
    """

    count: int
    rows: NDArray[np.int64] | None = None
    params: Mapping[str, Sequence[ParamValue | None]] = MappingProxyType({})
    beside: Mapping[str, Sequence[str | None]] = MappingProxyType({})
    segments: tuple[str, ...] = ()
    segment: NDArray[np.int16] | None = None
    scripts: tuple[Script, ...] = ()
    script: NDArray[np.int32] | None = None
    history: Mapping[int, Past] = MappingProxyType({})
    fixed_ids: Mapping[int, str] = MappingProxyType({})

    @abstractmethod
    def tels(self, indices: NDArray[np.integer] | None = None) -> list[str]:
        """Return the phone numbers of recipients by index from 0, or of all."""

    @abstractmethod
    def customer_names(self, indices: NDArray[np.integer] | None = None) -> list[str | None]:
        """Return the names of recipients by index, or of all; None without a name."""

    @abstractmethod
    def tel(self, recipient: int) -> str:
        """Return the phone number of a recipient by index."""

    def customer_name(self, recipient: int) -> str | None:
        """Return the name of a recipient by index."""
        return self.customer_names(np.array([recipient]))[0]

    def agent_params(self, recipient: int) -> Mapping[str, ParamValue]:
        """Return the parameters of a recipient by index."""
        columns = self.params.items()
        found = ((name, values[recipient if len(values) > 1 else 0]) for name, values in columns)
        return {name: value for name, value in found if value is not None}


class GeneratedPeople(People):
    """Made-up people; numbers and names are computed on demand."""

    def __init__(self, recipients: GeneratedRecipients, generator: Generator) -> None:
        self.count = recipients.count
        self.params = {name: (value,) for name, value in recipients.agent_params.items()}
        self._generator = generator
        if recipients.segments is not None:
            self.segments = tuple(recipients.segments)
            shares = list(recipients.segments.values())
            self.segment = generator.segments(self.count, shares)

    @override
    def tels(self, indices: NDArray[np.integer] | None = None) -> list[str]:
        return self._generator.tels(np.arange(self.count) if indices is None else indices)

    @override
    def customer_names(self, indices: NDArray[np.integer] | None = None) -> list[str | None]:
        return [*self._generator.names(np.arange(self.count) if indices is None else indices)]

    @override
    def tel(self, recipient: int) -> str:
        return self._generator.tel(recipient)


class ListedPeople(People):
    """People listed one by one, in the scenario or in a file."""

    def __init__(self, table: PeopleTable) -> None:
        self.count = len(table.tels)
        self._table = table
        self.rows, self.params, self.beside = table.rows, table.params, table.beside
        if table.segments.texts:
            self.segments = tuple(table.segments.texts)
            self.segment = np.array(table.segments.codes, dtype=np.int16)
        if table.scripts.texts:
            self.scripts = tuple(map(parse_script, table.scripts.texts))
            self.script = np.array(table.scripts.codes, dtype=np.int32)
        self.history = table.history
        self.fixed_ids = {row: fixed for row, fixed in enumerate(table.ids) if fixed}

    @override
    def tels(self, indices: NDArray[np.integer] | None = None) -> list[str]:
        tels = self._table.tels
        return tels if indices is None else [tels[recipient] for recipient in indices.tolist()]

    @override
    def customer_names(self, indices: NDArray[np.integer] | None = None) -> list[str | None]:
        names = self._table.names
        return names if indices is None else [names[recipient] for recipient in indices.tolist()]

    @override
    def tel(self, recipient: int) -> str:
        return self._table.tels[recipient]


def table_of(recipients: RecipientsFile | Sequence[Recipient]) -> PeopleTable:
    """Return the columns of recipients listed in a file or in the scenario itself."""
    if isinstance(recipients, RecipientsFile):
        return recipients.table
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
    """Return the recipients of a campaign at these positions (from 0) of the scenario.

    Seed and positions determine the numbers and names of generated people, and with the replication
    their segments.
    """
    if isinstance(recipients, GeneratedRecipients):
        generator = Generator(seed, replication, organization_position, campaign_position)
        return GeneratedPeople(recipients, generator)
    return ListedPeople(table_of(recipients))


def attributes_of(campaign: Campaign, schema: Mapping[str, ParamSchema] | None) -> Attributes:
    """Return the attributes of a campaign's recipients; for made-up people, one per segment."""
    recipients = campaign.recipients
    if not isinstance(recipients, GeneratedRecipients):
        return Attributes.of_table(table_of(recipients), schema)
    params = {name: (value,) for name, value in recipients.agent_params.items()}
    segments = [*(recipients.segments or ())]
    codes = range(len(segments)) if segments else None
    return Attributes(params, segments, codes, schema or {}, len(segments) or 1)


def value_formulas(value: Mapping[str, float | str] | None, agent: Agent | None) -> dict[str, str]:
    """Return the formulas of a `value` by key, without steps and fields that the agent lacks."""
    analysis = agent and agent.analysis
    known = {"reached", *(f"funnel.{step.step}" for step in (analysis and analysis.funnel) or ())}
    for name, field in analysis.fields.items() if analysis else ():
        known |= {f"field.{name}.{found}" for found in field.values}
    written = (value or {}).items()
    return {key: text for key, text in written if isinstance(text, str) and key in known}


def worth_of_people(
    formula: str, people: Attributes, location: Callable[[int], str]
) -> NDArray[np.float64]:
    """Return the worth of a result for each recipient.

    Raises ValueError for a faulty formula, or if somebody has no value.
    """
    found = read_formula(formula, people, "number")
    values: NDArray[np.float64] = found.values(people, np.arange(people.count), location)
    if not np.isfinite(values).all():
        raise ValueError("must be a number of sensible size for each recipient")
    return values


def same_people(one: Recipients, other: Recipients) -> bool:
    """Return True if two campaigns at the same position of a scenario have the same people."""
    if isinstance(one, RecipientsFile) and isinstance(other, RecipientsFile):
        return one.table is other.table or one.table.digest == other.table.digest
    return one is other or one == other
