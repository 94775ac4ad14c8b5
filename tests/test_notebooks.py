"""The notebooks run, and show what is stored in them: text to the letter, pictures by their place.

`--dialsim-update` stores what they show now.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

import pytest

import dialsim
from cli.program import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def shown(outputs: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the type and text of each output, as a reader sees it: pictures and HTML go first."""
    for output in outputs:
        if output.output_type == "stream":
            yield output.name, output.text
            continue
        kind = min(
            output.data, key=lambda kind: (not kind.startswith("image/"), kind != "text/html")
        )
        yield kind, "" if kind.startswith("image/") else output.data[kind]


def is_empty(output: Any) -> bool:
    """True if this is the empty output that a removed bar leaves."""
    return output.get("data", {}).get("text/html") == ""


def told(notebook: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (cell.source, list(shown(cell.outputs)))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_uses_public_names_only(file: Any) -> None:
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    used = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                assert not [name for name in names if name.name.startswith("dialsim.")]
            case ast.ImportFrom(module=str(module)):
                assert not module.startswith("dialsim")
            case ast.Attribute(value=ast.Name(id="dialsim"), attr=attribute):
                used.add(attribute)
            case ast.Attribute(attr=attribute):
                assert not attribute.startswith("_")
    assert used
    assert used <= set(dialsim.__all__)


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_shows_what_is_stored_in_it(file: Any, request: pytest.FixtureRequest) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs '.[notebooks]'")
    nbclient = pytest.importorskip("nbclient", reason="needs '.[notebooks]'")
    stored = nbformat.read(file, as_version=4)
    fresh = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(
        fresh,
        timeout=300,
        coalesce_streams=True,
        resources={"metadata": {"path": str(file.parent)}},
    ).execute()
    for cell in fresh.cells:
        cell.metadata = {}  # when each cell was run
        if cell.cell_type == "code":
            cell.outputs = [part for part in cell.outputs if not is_empty(part)]
    if request.config.getoption("dialsim_update"):
        nbformat.write(fresh, file)
        return
    assert told(fresh) == told(stored)
