"""docs/plan-a-week.md: its commands run, and print what the page shows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.program import ROOT

PAGE = (ROOT / "docs/plan-a-week.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|text)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def squeezed(text: str) -> str:
    """A text without the breaks and blanks that depend on the width of tables."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("week")
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    program = folder / "bin/dialsim"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dialsim "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.slow(minutes=2)
def test_the_commands_of_the_page_print_what_it_shows(folder: Path) -> None:
    printed = ""
    for kind, block in BLOCKS:
        if kind == "sh":
            done = subprocess.run(
                ["bash", "-euc", f'export PATH="{folder}/bin:$PATH"\n{block}'],
                cwd=folder, capture_output=True, text=True, timeout=600, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            printed = squeezed(done.stdout)
        else:
            for part in block.split("…"):
                for line in part.strip().splitlines():
                    assert squeezed(line) in printed
    assert (folder / "out/week/results.xlsx").is_file()
