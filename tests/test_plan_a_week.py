"""docs/plan-a-week.md: its commands run, print what the page shows, and end in a printed sheet."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.program import ROOT

PAGE = (ROOT / "docs/plan-a-week.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|text)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def squeezed(text: str) -> str:
    """A text without the breaks and blanks that depend on the width of tables."""
    return " ".join(text.split())


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) < 1_200
    assert [kind for kind, _ in BLOCKS].count("text") >= 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("week")
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    program = folder / "bin/dialsim"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dialsim "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def printed(folder: Path) -> list[str]:
    """What each block of commands prints, one after the other."""
    texts = []
    for kind, block in BLOCKS:
        if kind == "sh":
            done = subprocess.run(
                ["bash", "-euc", f'export PATH="{folder}/bin:$PATH"\n{block}'],
                cwd=folder, capture_output=True, text=True, timeout=600, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            texts.append(squeezed(done.stdout))
    return texts


@pytest.mark.slow(minutes=2)
def test_the_commands_of_the_page_print_what_it_shows(folder: Path, printed: list[str]) -> None:
    number = -1
    for kind, block in BLOCKS:
        number += kind == "sh"
        for part in block.split("…") if kind == "text" else ():
            for line in part.strip().splitlines():
                assert squeezed(line) in printed[number]
    assert (folder / "out/december/sheet.html").is_file()
    assert (folder / "out/sheet/results.xlsx").is_file()


@pytest.mark.slow(minutes=2)
@pytest.mark.usefixtures("printed")
def test_the_sheet_is_printed_on_one_page(folder: Path, browser: Any) -> None:
    page = browser.new_page()
    for out, said in (("december", "Recommended: 4 lines"), ("sheet", "ตามแผนนี้")):
        page.goto((folder / "out" / out / "sheet.html").as_uri())
        assert said in page.inner_text("body")
        assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") == 1
    page.close()
