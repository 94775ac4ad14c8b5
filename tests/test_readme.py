"""The README's promises: its examples run as printed, and every link of a page leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dialsim
import dialsim.testing
from cli.program import ROOT
from cli.program import dialsim as program

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_the_main_job_prints_what_the_readme_shows() -> None:
    (shown,) = blocks("text")
    assert shown in program("run", "scenarios/first-campaign.yaml").stdout


def test_the_python_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(block, names)
    assert isinstance(names["result"], dialsim.Result)


def test_the_yaml_example_is_a_good_scenario() -> None:
    (example,) = blocks("yaml")
    assert dialsim.loads(example).organizations[0].campaigns[0].name == "January"


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    missing = []
    for file, anchor in links:
        target = page.parent / file if file else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            missing.append(f"{file}#{anchor}")
    assert missing == []


def test_the_index_lists_every_page_once() -> None:
    listed = re.findall(
        r"^\| \[.+?\]\((.+?)\)", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(
        page.name for page in DOCS.glob("*.md") if page.name != "index.md"
    )


def test_the_page_on_python_has_every_public_name() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    public = [f"dialsim.{name}" for name in dialsim.__all__ if name != "__version__"]
    public += [f"dialsim.testing.{name}" for name in dialsim.testing.__all__]
    assert sorted(re.findall(r"^::: (\S+)$", page, flags=re.MULTILINE)) == sorted(public)
