"""docs/architecture.md is true: its files exist, and the homes of rules cite them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dialsim

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = Path(dialsim.__file__).parent
_ROW = re.compile(r"^\| (?P<rules>(?:[A-Z]\d+[–, ]*)+) \| (?P<homes>.+) \|$", re.MULTILINE)
_RULE = re.compile(r"([A-Z])(\d+)(?:–[A-Z](\d+))?")


def rules(text: str) -> set[str]:
    """`C1–C3, Q2` as the rules C1, C2, C3 and Q2."""
    return {
        f"{letter}{number}"
        for letter, first, last in _RULE.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


def cited(file: Path) -> set[str]:
    return set(re.findall(r"\b[A-Z]\d+\b", file.read_text(encoding="utf-8"))) | {
        rule
        for letter in re.findall(r"\brules? ([A-Z])\b", file.read_text(encoding="utf-8"))
        for rule in (f"{letter}{number}" for number in range(1, 12))
    }


def test_every_file_and_room_of_the_page_exists() -> None:
    rooms = re.findall(r"^\| `([a-z/]+/)` \|", PAGE, re.MULTILINE)
    assert len(rooms) > 10
    missing = [room for room in rooms if not (SOURCE / room).is_dir()]
    files = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", PAGE)
    assert len(files) > 40
    missing += [file for file in files if not (SOURCE / file).is_file()]
    assert not missing


def test_every_room_is_on_the_page() -> None:
    rooms = {
        f"{folder.relative_to(SOURCE)}/"
        for folder in SOURCE.rglob("*")
        if (folder / "__init__.py").is_file() and folder.name not in ("plots", "checks")
    }
    assert rooms == set(re.findall(r"^\| `([a-z/]+/)` \|", PAGE, re.MULTILINE))


@pytest.mark.parametrize("row", [*_ROW.finditer(PAGE)], ids=lambda row: row["rules"].strip())
def test_the_home_of_a_rule_cites_it(row: re.Match[str]) -> None:
    homes = [SOURCE / home for home in re.findall(r"`([a-z_/]+\.py)`", row["homes"])]
    found = set().union(*(cited(home) for home in homes))
    assert rules(row["rules"]) <= found


def test_every_rule_of_the_engine_has_a_home() -> None:
    book = (Path(__file__).parents[1] / "docs" / "rules.md").read_text(encoding="utf-8")
    numbered = set(re.findall(r"^#+ ([A-Z]\d+)\b", book, re.MULTILINE))
    assert len(numbered) > 30
    assert numbered == set().union(*(rules(row["rules"]) for row in _ROW.finditer(PAGE)))
