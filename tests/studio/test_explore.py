"""`dialsim.explore` in a real kernel: it shows, and what Python changes is answered."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

SCENARIO = Path(__file__).parents[2] / "scenarios" / "first-campaign.yaml"
CELLS = (
    "import dialsim\npage = dialsim.explore(scenario)",
    "page",
    """\
import asyncio

async def answer(before=None):
    async with asyncio.timeout(300):
        while not page.answer.get("facts") or page.answer["busy"] or page.answer is before:
            await asyncio.sleep(0.05)
    print(page.answer["sentence"], page.answer["how"])
    return page.answer

first = await answer()
page.hear({"kind": "set", "key": "organizations.Acme.maxConcurrentCalls", "number": 20})
second = await answer(first)
print(*page.changes["lines"], second["sentence"] != first["sentence"])
print(page.scenario.organizations[0].max_concurrent_calls)
""",
)


def shown(cell: Any) -> str:
    """The HTML of a cell, scripts and all, as a notebook puts it on its page."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if "text/html" in data:
            parts.append(data["text/html"])
        if "application/javascript" in data:
            parts.append(f"<script>{data['application/javascript']}</script>")
    return "\n".join(parts)


def test_the_extra_of_notebooks_has_what_the_studio_needs() -> None:
    project = tomllib.loads((SCENARIO.parents[1] / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    assert {*extras["studio"]} <= {*extras["notebooks"]}


@pytest.mark.slow
def test_a_cell_shows_the_studio_and_python_turns_its_levers(browser: Any, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs '.[notebooks]'")
    nbclient = pytest.importorskip("nbclient", reason="needs '.[notebooks]'")
    pytest.importorskip("ipykernel", reason="needs '.[notebooks]'")
    pytest.importorskip("panel", reason="panel is not installed: pip install '.[studio]'")
    notebook = nbformat.v4.new_notebook()
    sources = (f"scenario = {str(SCENARIO)!r}\n{CELLS[0]}", *CELLS[1:])
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbclient.NotebookClient(notebook, timeout=600).execute()
    made, displayed, turned = notebook.cells
    said = "".join(output.text for output in turned.outputs if output.output_type == "stream")
    lines = said.splitlines()
    assert all(line.endswith(" Thai time. 200 runs") for line in lines[:2])
    assert lines[2] == "--set organizations.Acme.maxConcurrentCalls=20 True"
    assert lines[3] == "20"
    # what the cells put on the page of a notebook is the studio
    file = tmp_path / "notebook.html"
    file.write_text(f"<!DOCTYPE html><body>{shown(made)}{shown(displayed)}", encoding="utf-8")
    tab = browser.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(file.as_uri())
    tab.get_by_role("heading", name="First campaign", level=1).wait_for()
    assert tab.get_by_role("slider", name="Lines, slider", exact=True).input_value() == "10"
    assert errors == []
    tab.close()
