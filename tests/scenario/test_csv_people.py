from __future__ import annotations

from pathlib import Path

import pytest

from dialsim.errors import ScenarioError
from dialsim.interface import CallStatus
from dialsim.scenario.campaign import Past
from dialsim.scenario.loading import loads
from dialsim.scenario.people import People, people
from dialsim.testing import Sketch

PARAMS = {"amount": {"type": "number"}, "vip": {"type": "boolean"}, "note": {"type": "text"}}
ASKING = (
    Sketch(2, setup_time=None)
    .agent(params_schema=PARAMS)
    .campaign("January", recipients={"file": "lists/people.csv"})
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lists").mkdir()
    return tmp_path


def read(folder: Path, content: str | bytes) -> People:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "lists" / "people.csv").write_bytes(data)
    scenario = loads(ASKING.text, folder=folder)
    return people(scenario.organizations[0].campaigns[0].recipients, 1, 0, 0, 0)


def test_all_columns_are_read_in_any_order(folder: Path) -> None:
    crowd = read(
        folder,
        "agentParams.vip,customerName,tel,segment,script,agentParams.amount,agentParams.note,id\n"
        "TRUE,สมชาย ใจดี,0812345678,vip,busy 1s,12,007,7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a13\n"
        ",,+66812345679,mass,,1e3,,\n"
        "false,,0812345670,vip,,-0.5,x,\n",
    )
    assert crowd.count == 3
    assert crowd.tels() == ["0812345678", "+66812345679", "0812345670"]
    assert crowd.customer_names() == ["สมชาย ใจดี", None, None]
    assert crowd.segments == ("vip", "mass")
    assert crowd.segment is not None
    assert crowd.segment.tolist() == [0, 1, 0]
    assert crowd.script is not None
    assert crowd.script.tolist() == [0, -1, -1]
    assert crowd.agent_params(0) == {"vip": True, "amount": 12, "note": "007"}
    assert crowd.agent_params(1) == {"amount": 1000.0}
    assert crowd.agent_params(2) == {"vip": False, "amount": -0.5, "note": "x"}
    assert crowd.fixed_ids[0] == "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a13"
    assert 1 not in crowd.fixed_ids


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_any_line_end_and_blank_lines_will_do(folder: Path, line_end: str) -> None:
    text = line_end.join(["tel,customerName", "", "0812345678, a ", ",", '"0812345679","b, c"', ""])
    crowd = read(folder, text)
    assert crowd.tels() == ["0812345678", "0812345679"]
    assert crowd.customer_names() == ["a", "b, c"]


def test_a_byte_order_mark_is_fine(folder: Path) -> None:
    assert read(folder, b"\xef\xbb\xbftel\n0812345678").tels() == ["0812345678"]


def test_a_header_alone_is_an_empty_campaign(folder: Path) -> None:
    crowd = read(folder, "tel\n")
    assert (crowd.count, crowd.tels()) == (0, [])


def test_a_hundred_thousand_rows_are_all_there(folder: Path) -> None:
    rows = "".join(f"08{i:08d},x,{i}\n" for i in range(100_000))
    crowd = read(folder, "tel,customerName,agentParams.amount\n" + rows)
    assert crowd.count == 100_000
    assert crowd.tel(99_999) == "0800099999"
    assert crowd.agent_params(99_999) == {"amount": 99_999}


def test_numbers_that_a_spreadsheet_has_cut_are_remarked_upon(folder: Path) -> None:
    rows = "tel\n812345678\n21234567\n0812345679\n+66812345670\n1234567890\n"
    (folder / "lists" / "people.csv").write_text(rows)
    assert loads(ASKING.text, folder=folder).warnings == (
        "Campaign January of Acme calls 812345678 and 1 more: has a spreadsheet dropped the 0 in "
        "front? It keeps the 0 in a column of text.",
        "Campaign January of Acme calls a number of no plausible length or prefix: 1234567890 "
        "(lists/people.csv:6). Thai numbers that begin with 06, 08 or 09 have 10 digits, those "
        "with 02 to 05 or 07 have 9, and +66 may stand in place of the 0; foreign ones begin with "
        "+ and the code of their country.",
    )


def test_columns_of_parameters_that_no_schema_names_are_kept_as_text(folder: Path) -> None:
    crowd = read(folder, "tel,agentParams.metadata__crm\n0812345678,12\n")
    assert crowd.agent_params(0) == {"metadata__crm": "12"}


def test_the_place_of_a_cell_counts_quotes_and_lines(folder: Path) -> None:
    with pytest.raises(ScenarioError) as raised:
        read(folder, 'tel,customerName,agentParams.amount\n1,"a\n""b"", c",x\n2,,y\n')
    places = [(problem.line, problem.column) for problem in raised.value.problems]
    assert places == [(3, 11), (4, 4)]


def test_histories_are_read_and_rows_without_one_have_none(folder: Path) -> None:
    crowd = read(
        folder,
        "history.lastCallerId,tel,history.lastEndedAt,history.callAttempt,history.latestCallStatus\n"
        "021000001,1,2026-01-05T09:00:00+07:00,3,NO_ANSWER\n"
        ",2,,,\n"
        ",3,,0,SCHEDULED\n"
        ",4,2026-01-05T01:00:00Z,,CANCELLED\n",
    )
    assert crowd.history == {
        0: Past(3, CallStatus.NO_ANSWER, 1_767_578_400_000, "021000001"),
        3: Past(0, CallStatus.CANCELLED, 1_767_574_800_000),
    }


def test_many_histories_are_all_there(folder: Path) -> None:
    rows = "".join(f"08{i:08d},1,BUSY,2026-01-04T05:00:{i % 60:02d}Z\n" for i in range(20_000))
    header = "tel,history.callAttempt,history.latestCallStatus,history.lastEndedAt\n"
    history = read(folder, header + rows).history
    assert len(history) == 20_000
    assert history[19_999].last_ended_at % 60_000 == 19_000


def test_a_segment_for_everybody_is_an_error_and_no_traceback(folder: Path) -> None:
    rows = "".join(f"08{i:08d},s{i}\n" for i in range(32_768))
    assert len(read(folder, "tel,segment\n" + rows[: rows.index("0800032767")]).segments) == 32_767
    with pytest.raises(ScenarioError) as raised:
        read(folder, "tel,segment\n" + rows)
    assert str(raised.value).endswith(
        "people.csv:1:5: segment has 32,768 different values, but at most 32,767 are possible: "
        "is it a column of ids?"
    )
