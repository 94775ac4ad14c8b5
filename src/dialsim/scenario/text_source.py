"""Files of text: their bytes, and the bytes as UTF-8, with errors that say what to do."""

from __future__ import annotations

import codecs
from pathlib import Path

from dialsim.scenario.problems import Problem, ScenarioError

_ZIP = b"PK\x03\x04"


def read_bytes(path: Path, shown: str) -> bytes:
    """The bytes of a file; raises ScenarioError, with `shown` as its name, if there are none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        says = "there is no such file"
    except IsADirectoryError:
        says = "this is a folder, not a file"
    except PermissionError:
        says = "this file may not be read (permission denied)"
    except (OSError, ValueError) as error:
        says = f"this file can't be read: {getattr(error, 'strerror', None) or error}"
    raise ScenarioError([Problem(shown, None, None, "", says)])


def decoded(content: bytes, shown: str) -> str:
    """The text of a UTF-8 file, without its byte order mark if it has one.

    Raises ScenarioError with the place of the first byte that is not UTF-8.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ScenarioError([Problem(shown, 1, 1, "", "this is UTF-16; save it as UTF-8")])
    if content.startswith(_ZIP):
        says = "this is a zip file, as Excel workbooks are; save it as text (in Excel: CSV UTF-8)"
        raise ScenarioError([Problem(shown, 1, 1, "", says)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        byte = content[len(content) - len(error.object) + error.start]
        says = f"byte 0x{byte:02X} is not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)"
        raise ScenarioError([Problem(shown, line, column, "", says)]) from None
