"""The list doctor makes a list that can be called from an export as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialsim
from dialsim.errors import ScenarioError
from dialsim.scenario.list_doctor import CleanList, clean_list
from dialsim.scenario.sheet import FileForm
from scenario.workbooks import workbook

HEADS = ("ลำดับ", "ชื่อ", "นามสกุล", "เบอร์โทรศัพท์", "กลุ่ม", "ยอดหนี้ (บาท)")
SOMCHAI = (1, "สมชาย", "ใจดี", "081-234-5678", "vip", "4,356.25")


def of_rows(*rows: tuple[object, ...], heads: tuple[object, ...] = HEADS) -> CleanList:
    return clean_list(workbook(heads, *rows), "export.xlsx")


def tels(found: CleanList) -> list[str]:
    return [row[found.columns.index("tel")] for row in found.cells]


def column(found: CleanList, name: str) -> list[str]:
    return [row[found.columns.index(name)] for row in found.cells]


def reasons(found: CleanList) -> list[str]:
    return [reason for _, reason in found.aside]


def test_heads_are_recognized_and_the_others_are_parameters() -> None:
    found = of_rows(SOMCHAI, *[(2, "สมหญิง", "", 812345679, "vip", 100)] * 3)
    assert dict(zip(found.columns, found.heads, strict=True)) == {
        "tel": "เบอร์โทรศัพท์",
        "agentParams.ลำดับ": "ลำดับ",
        "customerName": "ชื่อ",
        "segment": "กลุ่ม",
        "agentParams.ยอดหนี้": "ยอดหนี้ (บาท)",
    }
    assert found.types == {"ลำดับ": "number", "ยอดหนี้": "number"}
    assert column(found, "customerName") == ["สมชาย ใจดี", "สมหญิง"]
    assert column(found, "agentParams.ยอดหนี้") == ["4356.25", "100"]


@pytest.mark.parametrize("head", ["เบอร์โทร", "Phone", "Mobile", "มือถือ", "Tel.", "Telephone no."])
def test_a_head_of_phone_numbers_is_recognized(head: str) -> None:
    found = clean_list(workbook((head, "Name"), ("0812345678", "a")), "export.xlsx")
    assert (found.columns, tels(found)) == (["tel", "customerName"], ["0812345678"])


NUMBER = "0812345678"
SPELLINGS = {
    "081-234-5678": [NUMBER],
    "+66 81 234 5678": [NUMBER],
    "66812345678": [NUMBER],
    "๐๘๑๒๓๔๕๖๗๘": [NUMBER],
    "0812345678 / 0898765432": [NUMBER, "0898765432"],
    "081-234-5678,089-876-5432": [NUMBER, "0898765432"],
    "0812345678 หรือ 0898765432": [NUMBER, "0898765432"],
    "0812345678 0898765432": [NUMBER, "0898765432"],
    "021234567 ต่อ 12": ["021234567"],
    "02-123-4567-8": ["021234567"],
    "0812345678 / 0812345678": [NUMBER],
    "0812345678 / 123": [NUMBER],
    "tel:0812345678": [NUMBER],
    "812345678.0": [NUMBER],
    "081.234.5678": [NUMBER],
    "โทร.081-234-5678": [NUMBER],
    "O812345678": [NUMBER],
    "*0812345678#": [NUMBER],
    "0066812345678": [NUMBER],
    "0812345678 (ภรรยา)": [NUMBER],
}


@pytest.mark.parametrize("written", SPELLINGS)
def test_numbers_are_read_in_all_spellings(written: str) -> None:
    content = workbook(("Phone",), (written,))
    assert tels(clean_list(content, "export.xlsx")) == SPELLINGS[written][:1]
    assert tels(clean_list(content, "export.xlsx", both=True)) == SPELLINGS[written]


def test_the_second_column_of_numbers_counts_where_the_first_has_none() -> None:
    heads = ("เบอร์โทร 1", "เบอร์โทร 2")
    found = of_rows(("0812345678", "0898765432"), ("-", "0861234567"), ("", ""), heads=heads)
    assert tels(found) == ["0812345678", "0861234567"]
    assert found.further == 1


UNUSABLE = {
    "": "without a number",
    "-": "without a number",
    "12345": "with no possible number: 12345",
    "8.12E+08": "rounded by the spreadsheet: 8.12E+08",
    "2026-01-05": "turned into a date by the spreadsheet: 2026-01-05",
    "5/1/2569": "turned into a date by the spreadsheet: 5/1/2569",
    "#N/A": "with an error of Excel: #N/A",
}


@pytest.mark.parametrize("written", UNUSABLE)
def test_a_row_without_a_usable_number_is_set_aside_with_its_reason(written: str) -> None:
    found = of_rows(SOMCHAI, (2, "สมหญิง", "ดี", written, "vip", 5))
    assert reasons(found) == [UNUSABLE[written]]
    ((source, _),) = found.aside
    assert (source.sheet, source.line, source.cells[1]) == ("People", 3, "สมหญิง")
    assert len(found.cells) == 1


def test_duplicates_are_merged_into_the_first_and_fill_what_it_lacks() -> None:
    heads = ("tel", "customerName", "segment")
    found = of_rows(("0812345678", "", "vip"), ("081 234 5678", "สมชาย", "std"), heads=heads)
    assert found.cells == [["0812345678", "สมชาย", "vip"]]
    ((later, first),) = found.merged
    assert (later.line, first.line) == (3, 2)


def test_titles_totals_blank_rows_and_repeated_heads_are_left_out() -> None:
    content = workbook(
        ("รายงานลูกหนี้",), (), HEADS, SOMCHAI, (), HEADS, ("", "รวมทั้งสิ้น", "", "", "", 99)
    )
    found = clean_list(content, "export.xlsx")
    assert (len(found.cells), found.totals, found.aside) == (1, 2, [])


def test_sheets_with_the_same_heads_are_one_list_and_notes_are_not_read() -> None:
    second = (2, "สมหญิง", "ดี", "0898765432", "vip", 5)
    content = workbook(HEADS, SOMCHAI, February=[HEADS, second], Notes=[("by accounting",)])
    found = clean_list(content, "export.xlsx")
    assert tels(found) == ["0812345678", "0898765432"]
    assert (found.sheets, found.unread) == (["People", "February"], ["Notes"])
    assert found.summary()[0] == "export.xlsx: 2 sheets, 2 rows"
    assert found.summary()[-1].endswith("; sheets left out: Notes")


def test_notes_with_phone_numbers_in_their_text_are_no_list() -> None:
    notes = [("โปรดโทรหาคุณสมศรีก่อน",), ("ติดต่อ 02-999-9999 ต่อ 12",)]
    found = clean_list(workbook(HEADS, SOMCHAI, Notes=notes), "export.xlsx")
    assert (tels(found), found.unread) == ([NUMBER], ["Notes"])


def test_amounts_are_no_phone_numbers_and_a_summary_beside_the_list_is_left_out() -> None:
    summary = [("Answer", "602 of 800 people, from 021000001"), ("Cost", 3348.0)]
    amounts = [("campaign", "cost", "value"), ("Debt", 212345.67, 755.18925), ("All", 1, 2)]
    content = workbook(*summary, Campaigns=amounts, List=[("tel", "Due"), (NUMBER, 212345.67)])
    found = clean_list(content, "results.xlsx")
    assert found.cells == [[NUMBER, "212345.67"]]
    assert found.unread == ["People", "Campaigns"]


OTHER_SPELLING = [("Amount ", "PHONE"), (5, "0898765432")]
CONTINUED = [("0898765432", 5)]
WITH_A_STRAY_CELL = [("Phone", "Amount"), ("0898765432", 5, None, "by accounting")]


@pytest.mark.parametrize("second", [OTHER_SPELLING, CONTINUED, WITH_A_STRAY_CELL])
def test_sheets_with_the_same_heads_in_another_order_case_or_without_them_are_one_list(
    second: list[tuple[object, ...]],
) -> None:
    content = workbook(("Phone", "Amount"), (NUMBER, 4), Second=second)
    assert clean_list(content, "export.xlsx").cells == [[NUMBER, "4"], ["0898765432", "5"]]


def test_the_address_of_the_firm_above_the_heads_is_no_row_of_the_list() -> None:
    content = workbook(
        ("บริษัท เอบีซี จำกัด โทร 02-111-1111",), ("พิมพ์โดย", "สมศรี 081-999-9999"), HEADS, SOMCHAI
    )
    assert tels(clean_list(content, "export.xlsx")) == [NUMBER]


@pytest.mark.parametrize(
    "head", ["โทรสาร", "Fax no. (phone)", "เบอร์ผู้ค้ำประกัน", "Emergency phone", "เบอร์ญาติ"]
)
def test_numbers_of_fax_machines_and_of_others_are_not_called(head: str) -> None:
    found = of_rows(("", "0898765432"), (NUMBER, "0898765431"), heads=("เบอร์ติดต่อ", head))
    assert (tels(found), reasons(found)) == ([NUMBER], ["without a number"])


def test_errors_of_excel_in_other_columns_are_emptied_and_told() -> None:
    found = of_rows(
        (NUMBER, "#N/A", "#REF!"), ("0898765432", 5, "x"), heads=("Phone", "Due", "Code")
    )
    assert found.types == {"Due": "number", "Code": "text"}
    assert found.cells == [[NUMBER, "", ""], ["0898765432", "5", "x"]]
    said = "cells emptied, with no number or an error: 1 of Due, 1 of Code"
    assert said in found.summary()


def test_amounts_of_accounting_below_zero_are_numbers() -> None:
    found = of_rows((NUMBER, "(1,500.00)"), ("0898765432", "20.50-"), heads=("Phone", "Due"))
    assert found.cells == [[NUMBER, "-1500.00"], ["0898765432", "-20.50"]]


def test_a_web_page_under_the_name_of_a_workbook_is_told() -> None:
    page = b"\r\n<html><table><tr><td>0812345678</td></tr></table></html>"
    with pytest.raises(
        ScenarioError, match="this is a web page under another name: open it in Exc"
    ):
        clean_list(page, "export.xls")


def test_a_list_in_thai_windows_or_on_a_later_sheet_is_not_read_as_it_is() -> None:
    text = "tel,customerName\n0812345678,สมชาย\n"
    assert clean_list(text.encode(), "a.csv").is_as_written
    assert not clean_list(text.encode("cp874"), "a.csv").is_as_written
    assert not clean_list(text.replace(",", ";").encode(), "a.csv").is_as_written
    later = workbook(("by accounting",), List=[("tel",), (NUMBER,)])
    assert not clean_list(later, "a.xlsx").is_as_written


def test_sheets_with_different_heads_are_an_error_that_names_both() -> None:
    content = workbook(HEADS, SOMCHAI, Other=[("Phone",), ("0898765432",)])
    with pytest.raises(ScenarioError, match="sheets People and Other have different heads") as told:
        clean_list(content, "export.xlsx")
    assert 'choose one with --sheet "People"' in str(told.value)
    assert tels(clean_list(content, "export.xlsx", FileForm(sheet="Other"))) == ["0898765432"]


def test_a_file_without_phone_numbers_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="no column of this file holds phone numbers"):
        clean_list(workbook(("Name", "City"), ("a", "b")), "export.xlsx")


def test_ids_stay_text_and_amounts_with_a_few_other_cells_become_numbers() -> None:
    rows = [(f"08{i:08}", f"{i:013}", "n.a. yet" if i == 0 else i) for i in range(100)]
    found = of_rows(*rows, heads=("Phone", "Contract", "Amount"))
    assert found.types == {"Contract": "text", "Amount": "number"}
    assert column(found, "agentParams.Contract")[7] == "0000000000007"
    assert found.emptied == {"Amount": 1}
    assert "cells emptied, with no number or an error: 1 of Amount" in found.summary()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp874", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_is_read_in_any_usual_form(encoding: str, delimiter: str) -> None:
    rows = [("เบอร์โทร", "ชื่อ"), ("081-234-5678", "สมชาย")]
    content = "\r\n".join(delimiter.join(row) for row in rows).encode(encoding)
    found = clean_list(content, "export.csv")
    assert found.cells == [["0812345678", "สมชาย"]]


def test_a_list_without_heads_is_read_by_its_contents() -> None:
    found = clean_list(workbook(("สมชาย", "0812345678"), ("ดี", "0898765432")), "export.xlsx")
    assert tels(found) == ["0812345678", "0898765432"]


def test_named_columns_are_taken_and_a_wrong_name_is_told_with_the_nearest() -> None:
    content = workbook(("Phone", "Office", "City"), ("0812345678", "021234567", "a"))
    found = clean_list(content, "export.xlsx", named={"tel": "Office", "segment": "City"})
    assert found.cells == [["021234567", "a", "0812345678"]]
    with pytest.raises(
        ScenarioError, match='"Ofice", for tel, heads no column; did you mean Office'
    ):
        clean_list(content, "export.xlsx", named={"tel": "Ofice"})


def test_the_workbook_is_a_list_that_needs_no_doctor(tmp_path: Path) -> None:
    found = of_rows(SOMCHAI, (2, "ก", "ข", "12345", "vip", 1), SOMCHAI)
    again = clean_list(found.workbook(), "clean.xlsx")
    assert again.is_as_written
    assert again.cells == found.cells
    assert again.unread == ["Set aside", "Duplicates"]
    (tmp_path / "clean.xlsx").write_bytes(found.workbook())
    scenario = dialsim.loads(
        """
        clock: {start: 2026-01-05T02:00:00Z}
        organizations:
          - name: Acme
            maxConcurrentCalls: 1
            agents: [{name: A, paramsSchema: {ลำดับ: {type: number}, ยอดหนี้: {type: number}}}]
            campaigns:
              - {name: January, agent: A, recipients: {file: clean.xlsx}}
        """,
        folder=tmp_path,
    )
    assert scenario.organizations[0].campaigns[0].size == 1
    assert scenario.warnings == ()


def test_a_cell_that_looks_like_a_formula_stays_text() -> None:
    found = clean_list(f'Phone;Note\n{NUMBER};"=1+2"'.encode(), "export.csv")
    again = clean_list(found.workbook(), "clean.xlsx")
    assert column(again, "agentParams.Note") == ["=1+2"]


CELL = st.one_of(
    st.sampled_from([*SPELLINGS, *UNUSABLE, "รวม", "Total", "เบอร์โทร"]), st.text(max_size=12)
)


@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=30), st.booleans())
def test_every_row_is_called_set_aside_merged_or_left_out(
    rows: list[tuple[str, str, str]], both: bool
) -> None:
    text = "\n".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row)
        for row in [("เบอร์โทร", "ชื่อ", "กลุ่ม"), (NUMBER, "a", "b"), *rows]
    )
    found = clean_list(text.encode("utf-8", "replace"), "a.csv", FileForm(delimiter=","), both=both)
    called = tels(found)
    assert len(set(called)) == len(called)
    assert all(tel[0] in "0+" for tel in called)
    assert all(not row.cells or reason for row, reason in found.aside)
    sources = [row.line for row in (*found.sources, *(row for row, _ in found.merged))]
    sources += [row.line for row, _ in found.aside]
    assert len(found.summary()) <= 10
    again = clean_list(found.workbook(), "clean.xlsx")
    assert tels(again) == called
    # A workbook can't hold control characters.
    if all(cell.isprintable() for row in found.cells for cell in row):
        assert clean_list(found.csv(), "clean.csv").cells == again.cells
