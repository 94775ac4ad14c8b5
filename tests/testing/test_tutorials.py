"""The ten-minute pages, carried out: files written, commands run, output compared."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from testing.conftest import Inner

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    DOCS / "regression-testing.md",
    DOCS / "test-your-client.md",
    DOCS / "break-it-on-purpose.md",
    DOCS / "test-your-scheduler.md",
]
BLOCK = re.compile(r"^```(python|yaml|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EDIT = re.compile(r"# (\S+): (\S+) -> (\S+)\n")


def execute(words: list[str], pytester: pytest.Pytester, inner: Inner) -> str:
    """Execute one command in the folder of the page, and return what it prints."""
    match words:
        case ["pytest", *arguments]:
            return inner(*arguments).stdout.str()
        case ["mv", old, new]:
            (pytester.path / old).rename(pytester.path / new)
        case ["rm", "-r", folder]:
            shutil.rmtree(pytester.path / folder)
        case _:
            pytest.fail(f"the page has a command that is not known here: {words}")
    return ""


def carry_out(language: str, block: str, pytester: pytest.Pytester, inner: Inner) -> None:
    """Execute one block of the page: a file (or more of one), an edit, commands with their
    output, or the expected content of a golden trace.
    """
    if language == "console":
        nothing, *commands = re.split(r"^\$ ", block, flags=re.MULTILINE)
        assert not nothing
        for part in commands:
            command, *lines = part.splitlines()
            printed = execute(shlex.split(command), pytester, inner)
            for line in lines:
                assert line.strip() in printed, f"{line!r} is not of `{command}`:\n{printed}"
    elif language == "text":
        kept = [file.read_text() for file in pytester.path.glob("golden/*.txt")]
        assert any(block in text for text in kept), kept
    elif edit := EDIT.fullmatch(block):
        file = pytester.path / edit[1]
        before = file.read_text()
        assert before.count(edit[2]) == 1
        file.write_text(before.replace(edit[2], edit[3]))
    else:
        name = block.split("\n", 1)[0].removeprefix("# ")
        with (pytester.path / name).open("a", encoding="utf-8") as file:
            file.write(block + "\n\n")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_can_be_followed_from_top_to_bottom(
    page: Path, pytester: pytest.Pytester, inner: Inner
) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert [language for language, _ in blocks].count("console") >= 2
    for language, block in blocks:
        carry_out(language, block, pytester, inner)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_code_block_of_the_page_is_of_a_kind_that_is_carried_out(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(BLOCK.findall(text))


def test_the_page_on_regression_tests_stays_a_tutorial() -> None:
    assert len(PAGES[0].read_text(encoding="utf-8").split()) <= 1_200
