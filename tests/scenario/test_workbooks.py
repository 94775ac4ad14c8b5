"""Recipients from workbooks and from files as they are: sheet, columns, encoding, normalize."""

from __future__ import annotations

import io
import resource
import zipfile
from pathlib import Path

import pytest

from dialsim.engine.simulation import Simulation
from dialsim.errors import ScenarioError
from dialsim.interface import CallStatus
from dialsim.scenario.campaign import Past, PeopleTable, RecipientsFile
from dialsim.scenario.loading import loads
from dialsim.scenario.people import People, people
from dialsim.scenario.scenario import Scenario

from .workbooks import (
    A_DATE,
    HEADER,
    claiming,
    repacked,
    with_entities,
    with_error_cells,
    with_merged_header,
    workbook,
    zip_bomb,
)

SCENARIO = """
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents:
      - name: Reminder
        paramsSchema: {{amount: {{type: number}}, vip: {{type: boolean}}, note: {{type: text}}}}
    campaigns:
      - name: January
        agent: Reminder
        recipients: {{{recipients}}}
        schedule: {{startDateTime: 2026-01-05T02:00:00Z}}
"""


def scenario(
    folder: Path, content: bytes | str, options: str = "", file: str = "people.xlsx"
) -> Scenario:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / file).write_bytes(data)
    recipients = f"file: {file}" + (f", {options}" if options else "")
    return loads(SCENARIO.format(recipients=recipients), folder=folder)


def read(
    folder: Path, content: bytes | str, options: str = "", file: str = "people.xlsx"
) -> People:
    campaign = scenario(folder, content, options, file).organizations[0].campaigns[0]
    return people(campaign.recipients, 1, 0, 0, 0)


def csv(folder: Path, content: bytes | str, options: str = "") -> People:
    return read(folder, content, options, "people.csv")


def test_a_workbook_is_read_as_the_csv_of_it_would_be(tmp_path: Path) -> None:
    crowd = read(
        tmp_path,
        workbook(
            (),
            ("tel", "customerName", "segment", "agentParams.amount", "agentParams.vip"),
            ("0812345678", " สมชาย ใจดี ", "vip", 12.5, True),
            (None, "", None, None, None),
            (812345679, None, "mass", 4356.0, "false"),
        ),
    )
    assert crowd.tels() == ["0812345678", "812345679"]
    assert crowd.customer_names() == ["สมชาย ใจดี", None]
    assert crowd.segments == ("vip", "mass")
    assert crowd.agent_params(0) == {"amount": 12.5, "vip": True}
    assert crowd.agent_params(1) == {"amount": 4356, "vip": False}


def test_a_sheet_is_chosen_by_its_name_and_the_first_one_by_default(tmp_path: Path) -> None:
    content = workbook(("tel",), ("0812345678",), ลูกค้า=[("tel",), ("0898765432",)])
    assert read(tmp_path, content).tels() == ["0812345678"]
    assert read(tmp_path, content, "sheet: ลูกค้า").tels() == ["0898765432"]


def test_columns_of_a_file_as_it_is_are_named_and_the_others_left_out(tmp_path: Path) -> None:
    rows = "Phone,ชื่อ,Balance,E-mail,segment,\n0812345678,สมชาย,12,a@b.c,vip,?\n"
    options = """columns: {tel: Phone, customerName: "ชื่อ", agentParams.amount: Balance}"""
    crowd = csv(tmp_path, rows, options)
    assert (crowd.tels(), crowd.customer_names()) == (["0812345678"], ["สมชาย"])
    assert crowd.segments == ("vip",)
    assert crowd.agent_params(0) == {"amount": 12}


def test_a_column_that_is_named_wins_over_one_with_our_name(tmp_path: Path) -> None:
    crowd = csv(tmp_path, "tel,Mobile\n021234567,0812345678\n", "columns: {tel: Mobile}")
    assert crowd.tels() == ["0812345678"]


@pytest.mark.parametrize(
    ("options", "content"),
    [
        ("encoding: cp874", "tel,customerName\n0812345678,สมชาย\n".encode("cp874")),
        ("encoding: tis-620", "tel,customerName\n0812345678,สมชาย\n".encode("tis-620")),
        (
            "encoding: utf-16, delimiter: tab",
            "tel\tcustomerName\n0812345678\tสมชาย\n".encode("utf-16"),
        ),
        ('delimiter: ";"', "tel;customerName\n0812345678;สมชาย\n".encode("utf-8-sig")),
        ("delimiter: tab, encoding: UTF_8", "tel\tcustomerName\n0812345678\tสมชาย\n".encode()),
    ],
)
def test_encoding_and_delimiter_are_as_they_are_named(
    options: str, content: bytes, tmp_path: Path
) -> None:
    crowd = csv(tmp_path, content, options)
    assert (crowd.tels(), crowd.customer_names()) == (["0812345678"], ["สมชาย"])


def test_normalize_reads_what_is_meant_and_counts_it(tmp_path: Path) -> None:
    rows = (
        "tel,agentParams.amount,history.callAttempt,history.latestCallStatus,history.lastEndedAt\n"
        '081-234-5678,"4,356",1,BUSY,4/1/2569 16:00\n'
        "+66 81 234 5679,฿12.50,,,\n"
        "812345670,1,,,\n"
        "๐๘๑๒๓๔๕๖๗๑,๑๒,,,\n"
        "0812345672,2,,,\n"
        "+81312345678,3,,,\n"
    )
    loaded = scenario(tmp_path, rows, "normalize: true", "people.csv")
    crowd = people(loaded.organizations[0].campaigns[0].recipients, 1, 0, 0, 0)
    assert crowd.tels() == [
        *("0812345678", "0812345679", "0812345670", "0812345671", "0812345672", "+81312345678")
    ]
    amounts = [crowd.agent_params(row)["amount"] for row in range(6)]
    assert amounts == [4356, 12.5, 1, 12, 2, 3]
    assert crowd.history == {0: Past(1, CallStatus.BUSY, 1_767_517_200_000)}
    assert loaded.warnings == (
        "Campaign January of Acme: 8 cells in other spellings were read (normalize): 4 of tel, "
        "3 of agentParams.amount and 1 of history.lastEndedAt, such as 081-234-5678 as 0812345678 "
        "(people.csv:2).",
    )


def test_without_normalize_the_same_cells_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="081-234-5678"):
        csv(tmp_path, "tel\n081-234-5678\n")


def test_normalize_leaves_what_it_cannot_tell_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as raised:
        csv(tmp_path, 'tel,agentParams.amount\n1.23E+09,"4,35"\nx,1\n', "normalize: true")
    assert [problem.path for problem in raised.value.problems] == [
        *("tel", "agentParams.amount", "tel")
    ]


def test_people_read_in_another_way_are_other_people(tmp_path: Path) -> None:
    content = workbook(("tel", "Mobile"), ("0812345678", "0898765432"))
    plain = scenario(tmp_path, content, "columns: {tel: tel}")
    other = plain.with_("organizations.0.campaigns.0.recipients.columns={tel: Mobile}")
    assert table(plain).digest != table(other).digest
    assert plain.digest != other.digest


def test_measured_durations_may_stand_in_a_workbook_too(tmp_path: Path) -> None:
    (tmp_path / "talk.xlsx").write_bytes(workbook(("talk",), ("40s",), ("2m",)))
    text = SCENARIO.format(recipients="count: 1") + (
        "behaviours: {default: {talkTime: {dist: empirical, file: talk.xlsx, column: talk}}}\n"
    )
    talk = loads(text, folder=tmp_path).behaviours["default"].talk_time
    assert talk.values == (40_000, 120_000)  # type: ignore[union-attr]


PHONE = "must be a phone number of at most 20 digits, with or without a + in front, not"
TEXT_FORMAT = "give the column the format Text and enter the numbers again"
HERE = "<text>:11:28: organizations.0.campaigns.0.recipients.file can't be used: people.xlsx: "

BAD: dict[str, tuple[bytes, str, str]] = {
    "no-such-sheet": (
        workbook(("tel",), Customers=[("tel",)]),
        "sheet: Custommers",
        f'{HERE}there is no sheet "Custommers"; did you mean Customers?',
    ),
    "no-sheet-like-it": (
        workbook(("tel",), Customers=[("tel",)]),
        "sheet: ลูกค้า",
        f'{HERE}there is no sheet "ลูกค้า"; there are People, Customers',
    ),
    "empty-sheet": (
        workbook(Customers=[("tel",)]),
        "",
        "people.xlsx:1:1: there is nothing in the sheet People; to read another, say sheet: "
        "Customers",
    ),
    "error-cells": (
        with_error_cells(),
        "",
        "people.xlsx:2:2: cell B2: customerName is #N/A, an error of Excel: correct its formula, "
        "or empty the cell\n"
        "people.xlsx:2:3: cell C2: agentParams.amount is #DIV/0!, an error of Excel: correct its "
        "formula, or empty the cell",
    ),
    "formula-without-result": (
        workbook(HEADER, ("0812345678", "a", "=1+1")),
        "",
        "people.xlsx:2:3: cell C2: agentParams.amount is a formula without a result: open the file "
        "in Excel and save it, or paste the values alone",
    ),
    "date-in-tel": (
        workbook(("tel",), (A_DATE,), A1=[("tel",)]),
        "",
        f'people.xlsx:2:1: cell People!A2: tel {PHONE} "2026-01-05": a spreadsheet has made a date '
        f"of it; {TEXT_FORMAT}",
    ),
    "scientific-text": (
        workbook(("tel",), ("1.23E+09",)),
        "",
        f'people.xlsx:2:1: cell A2: tel {PHONE} "1.23E+09": a spreadsheet has rounded it, so its '
        f"digits are lost; {TEXT_FORMAT}",
    ),
    "fraction-in-tel": (
        workbook(("tel",), (81234.5,)),
        "",
        f'people.xlsx:2:1: cell A2: tel {PHONE} "81234.5"',
    ),
    "merged-header": (
        with_merged_header(),
        "",
        "people.xlsx:1:3: cell C1: column C has no name: each column needs one, and no cells of "
        "the header may be merged",
    ),
    "beside-the-header": (
        workbook(("tel",), ("0812345678", "call after 5")),
        "",
        'people.xlsx:2:2: cell B2: "call after 5" stands in a column without a name: name it, or '
        "empty the column",
    ),
    "no-header": (
        workbook(("0812345678", "a"), ("0898765432", "b")),
        "",
        "people.xlsx:1:1: cell A1: the first row must name the columns, tel and so on, but it "
        "holds a phone number, 0812345678: put a row of names above it",
    ),
    "mapped-twice": (
        workbook(("Phone", "Name"), ("0812345678", "a")),
        "columns: {tel: Phone, customerName: Phone}",
        '<text>:11:77: organizations.0.campaigns.0.recipients.columns.customerName "Phone" is tel '
        "already: a column can be one thing only",
    ),
    "mapped-to-nothing": (
        workbook(("Phone", "Balance"), ("0812345678", 1)),
        "columns: {tel: Phones, customerName: ชื่อ, amount: Balance, colour: Phone}",
        "<text>:11:56: organizations.0.campaigns.0.recipients.columns.tel "
        '"Phones" is no column of people.xlsx; did you mean Phone?\n'
        "<text>:11:78: organizations.0.campaigns.0.recipients.columns.customerName "
        '"ชื่อ" is no column of people.xlsx; columns are Phone and Balance\n'
        "<text>:11:92: organizations.0.campaigns.0.recipients.columns.amount is not a known "
        "column; did you mean agentParams.amount?\n"
        "<text>:11:109: organizations.0.campaigns.0.recipients.columns.colour is not a known "
        "column; known here: tel, customerName, segment, script, id, history.callAttempt, "
        "history.latestCallStatus, history.lastEndedAt, history.lastCallerId, agentParams.amount, "
        "agentParams.vip, agentParams.note",
    ),
    "unknown-column": (
        workbook(("tel", "costumerName"), ("0812345678", "a")),
        "",
        "people.xlsx:1:2: cell B1: costumerName is not a known column; did you mean customerName?",
    ),
    "bad-cell-of-a-named-column": (
        workbook(("Phone",), ("x",)),
        "columns: {tel: Phone}",
        f'people.xlsx:2:1: cell A2: tel (Phone) {PHONE} "x"',
    ),
    "encoding-of-a-workbook": (
        workbook(("tel",)),
        "encoding: cp874",
        f"{HERE}this is a workbook, which has no encoding: leave encoding out",
    ),
    "password": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
        "",
        f"{HERE}this workbook is protected by a password: save it without one",
    ),
    "xls": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
        "",
        f"{HERE}this is a workbook of Excel 97-2003 (xls): save it as xlsx",
    ),
    "damaged": (
        workbook(("tel",))[:900],
        "",
        f"{HERE}this is no workbook (xlsx), or a damaged one: File is not a zip file",
    ),
    "far-column": (
        claiming("A1:XFD1048576", "ZZZZ2"),
        "",
        f"{HERE}the sheet People can't be read: 'ZZZZ' is not a valid column name. Column names "
        "are from A to ZZZ",
    ),
}
TEXTS: dict[str, tuple[bytes, str, str]] = {
    "sheet-of-a-csv": (
        b"tel\n0812345678\n",
        "sheet: People",
        f"{HERE}this is text, which has no sheets: leave sheet out",
    ),
    "wrong-encoding": (
        "tel,customerName\n0812345678,สมชาย\n".encode(),
        "encoding: cp874",
        "people.xlsx:1:1: this is UTF-8, not cp874: leave encoding out",
    ),
    "no-such-byte": (
        b"tel,customerName\n0812345678,\xdb\n",
        "encoding: cp874",
        "people.xlsx:2:1: byte 0xDB is not cp874: another encoding is meant, or none (UTF-8)",
    ),
    "unknown-encoding": (
        b"tel\n",
        "encoding: thay",
        "<text>:11:51: organizations.0.campaigns.0.recipients.encoding must be the name of an "
        'encoding, such as cp874 (Thai Windows) or utf-16, not "thay"',
    ),
    "unknown-delimiter": (
        b"tel\n",
        'delimiter: "; "',
        "<text>:11:52: organizations.0.campaigns.0.recipients.delimiter must be one sign, such as "
        '";", or tab, not "; "',
    ),
    "wrong-delimiter": (
        b"tel,customerName\n0812345678,a\n",
        'delimiter: ";"',
        "people.xlsx:1:1: columns are separated by commas, not by ;: leave delimiter out",
    ),
    "tabs": (
        b"tel\tcustomerName\n0812345678\ta\n",
        "",
        "people.xlsx:1:1: columns are separated by tabs here, not by commas: say delimiter: tab "
        "beside file",
    ),
    "not-a-switch": (
        b"tel\n",
        "normalize: yes",
        "<text>:11:52: organizations.0.campaigns.0.recipients.normalize must be true or false, not "
        '"yes"',
    ),
    "unknown-option": (
        b"tel\n",
        "seperator: ;",
        "<text>:11:41: organizations.0.campaigns.0.recipients.seperator is not a known key; known "
        "here: file, sheet, encoding, delimiter, columns, normalize, done, where, sort, first, "
        "count, agentParams, segments",
    ),
    "excel-error-in-a-csv": (
        b"tel,customerName\n0812345678,#N/A\n",
        "",
        "people.xlsx:2:12: customerName is #N/A, an error of Excel: correct its formula, or empty "
        "the cell",
    ),
}


def error_of(case: tuple[bytes, str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    content, options, _ = case
    monkeypatch.chdir(folder)
    with pytest.raises(ScenarioError) as raised:
        scenario(Path(), content, options)
    return str(raised.value)


@pytest.mark.parametrize("name", [*BAD, *TEXTS])
def test_a_bad_list_gets_exactly_its_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = (BAD | TEXTS)[name]
    assert error_of(case, tmp_path, monkeypatch) == case[2]


def peak() -> int:
    """The most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


LAUGHS = '<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
)


@pytest.mark.parametrize(
    "declared",
    ['<!ENTITY x SYSTEM "file:///etc/hostname">', LAUGHS + '<!ENTITY x "&a9;">'],
    ids=["external", "laughs"],
)
def test_entities_reach_no_file_and_fill_no_memory(declared: str, tmp_path: Path) -> None:
    before = peak()
    with pytest.raises(ScenarioError, match="declares a document type"):
        scenario(tmp_path, with_entities(declared))
    assert peak() - before < 200_000


def test_a_claimed_dimension_and_a_far_cell_cost_nothing(tmp_path: Path) -> None:
    before = peak()
    crowd = read(tmp_path, claiming("A1:XFD1048576", "A1048576"))
    assert crowd.tels() == ["0812345678"]
    assert read(tmp_path, claiming("A1:A999999999", "A999999999")).tels() == []
    assert peak() - before < 200_000


def test_a_zip_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    content = workbook(HEADER, ("0812345678", "a", 1))
    long = repacked(content, "xl/worksheets/sheet1.xml", lambda data: data + b" " * (8 << 20))
    with zipfile.ZipFile(io.BytesIO(long)) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    lying = long.replace(size.to_bytes(4, "little"), (2_000).to_bytes(4, "little"))
    with pytest.raises(ScenarioError, match="damaged"):
        scenario(tmp_path, lying)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    before = peak()
    bomb = zip_bomb()
    making = peak()
    with pytest.raises(ScenarioError, match=r"would unpack to 75,5\d\d,\d{3}, which no list of"):
        scenario(tmp_path, bomb)
    assert before <= making == peak()


def test_any_other_zip_is_no_workbook(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("people.csv", "tel")
    with pytest.raises(ScenarioError, match="a zip file, but no workbook of Excel"):
        scenario(tmp_path, packed.getvalue())


def test_a_list_is_read_once_for_all_variants_of_a_scenario(tmp_path: Path) -> None:
    plain = scenario(tmp_path, workbook(("tel",), ("0812345678",)))
    other = plain.with_("organizations.Acme.maxConcurrentCalls=5")
    assert table(plain) is table(other)
    scenario(tmp_path, workbook(("tel",), ("0898765432",)))
    changed = plain.with_("organizations.Acme.maxConcurrentCalls=6")
    assert table(changed).tels == ["0898765432"]


def test_an_upload_is_a_csv_and_no_workbook(tmp_path: Path) -> None:
    simulation = Simulation(scenario(tmp_path, "tel\n", "", "people.csv"))
    with pytest.raises(ScenarioError, match=r"recipients\.csv:1:1: this is a zip file, as Excel"):
        simulation.add_campaign({"name": "May", "agent": "Reminder"}, csv=workbook(("tel",)))


def test_a_campaign_that_is_added_may_name_a_list_as_it_is(tmp_path: Path) -> None:
    simulation = Simulation(scenario(tmp_path, "tel\n", "", "people.csv"))
    (tmp_path / "new.xlsx").write_bytes(workbook(("Phone",), ("081-234-5678",)))
    recipients = {"file": "new.xlsx", "columns": {"tel": "Phone"}, "normalize": True}
    block = {"name": "May", "agent": "Reminder", "recipients": recipients}
    simulation.add_campaign(block, folder=tmp_path)
    added = simulation.trace.world.organizations[0].campaigns[1]
    assert added.people.tels() == ["0812345678"]


def table(loaded: Scenario) -> PeopleTable:
    recipients = loaded.organizations[0].campaigns[0].recipients
    assert isinstance(recipients, RecipientsFile)
    return recipients.table
