"""Documentation, notebooks and scenarios use public names only."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = ("dialsim", "dialsim.testing")
PAGES = sorted(
    path
    for pattern in ("README.md", "docs/**/*.md", "notebooks/*.ipynb", "scenarios/*.yaml")
    for path in ROOT.glob(pattern)
)
_FROM = re.compile(r"^\s*from (dialsim[\w.]*) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import (dialsim[\w.]*)", re.MULTILINE)
_USED = re.compile(r"(?<![\w./-])dialsim\.([a-zA-Z]\w*)\(")


def python_in(path: Path) -> str:
    """The Python that a page shows: its code blocks, or the code of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return text


def private_names(text: str) -> list[str]:
    found = [(module, "") for module in _IMPORT.findall(text)]
    found += [(module, name) for module, names in _FROM.findall(text)
              for name in re.findall(r"\w+", names)]  # fmt: skip
    found += [("dialsim", name) for name in _USED.findall(text)]
    return [
        f"{module}.{name}".rstrip(".")
        for module, name in found
        if module not in PUBLIC or (name and name not in import_module(module).__all__)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_uses_public_names_only(path: Path) -> None:
    assert not private_names(python_in(path))


def test_private_names_are_noticed() -> None:
    assert private_names("import dialsim.logs.log") == ["dialsim.logs.log"]
    assert private_names("from dialsim.logs.log import read_log") == ["dialsim.logs.log.read_log"]
    assert private_names("from dialsim import (\n    load,\n    Nothing,\n)") == ["dialsim.Nothing"]
    assert private_names("from dialsim import load, Nothing") == ["dialsim.Nothing"]
    assert private_names("x = dialsim.nothing(1)") == ["dialsim.nothing"]
    assert not private_names("import dialsim\nfrom dialsim.testing import Sketch\ndialsim.run(x)")
