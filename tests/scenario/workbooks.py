"""Workbooks for tests, made on the spot: good ones, faulty ones, hostile ones."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import openpyxl

HEADER = ("tel", "customerName", "agentParams.amount")


def workbook(*rows: Sequence[object], **sheets: Sequence[Sequence[object]]) -> bytes:
    """A workbook with these rows in its sheet People, and further sheets."""
    book = openpyxl.Workbook()
    first: Any = book.active
    first.title = "People"
    for row in rows:
        first.append(list(row))
    for name, content in sheets.items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(list(row))
    return saved(book)


def saved(book: openpyxl.Workbook) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def repacked(content: bytes, part: str, change: Callable[[bytes], bytes]) -> bytes:
    """The same workbook with another content in one part of its zip file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(packed, "w", 8) as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data) if name == part else data)
    return packed.getvalue()


SHEET = "xl/worksheets/sheet1.xml"


def with_merged_header() -> bytes:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "People"
    for row in (("tel", "customerName", None, "segment"), ("0812345678", "a", "b", "vip")):
        sheet.append(row)
    sheet.merge_cells("B1:C1")
    return saved(book)


def with_error_cells() -> bytes:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "People"
    sheet.append(HEADER)
    sheet.append(("0812345678", "#N/A", "#DIV/0!"))
    for cell in ("B2", "C2"):
        sheet[cell].data_type = "e"
    return saved(book)


def zip_bomb() -> bytes:
    """A sheet of 72 MiB of blanks in some 73 kB."""
    content = workbook(HEADER, ("0812345678", "a", 1))
    return repacked(content, SHEET, lambda data: data + b" " * (72 << 20))


def with_entities(declared: str) -> bytes:
    """A sheet with a document type; its first name is an entity."""
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(("tel", "customerName"))
    sheet.append(("0812345678", "NAME"))

    def change(data: bytes) -> bytes:
        text = re.sub(rb"^<\?xml[^>]*\?>", b"", data)
        head = f'<?xml version="1.0"?><!DOCTYPE worksheet [{declared}]>'.encode()
        return head + text.replace(b"NAME", b"&x;")

    return repacked(saved(book), SHEET, change)


def claiming(dimension: str, cell: str) -> bytes:
    """A workbook that claims a dimension and has one far cell."""
    content = workbook(("tel",), ("0812345678",))

    def change(data: bytes) -> bytes:
        data = re.sub(rb'ref="A1:A2"', f'ref="{dimension}"'.encode(), data)
        return data.replace(b'r="A2"', f'r="{cell}"'.encode()).replace(
            b'<row r="2"', f'<row r="{re.sub("[A-Z]", "", cell)}"'.encode()
        )

    return repacked(content, SHEET, change)


A_DATE = datetime(2026, 1, 5)  # noqa: DTZ001 - as Excel has them
