"""Links of the documentation lead to projects, not to package registries."""

from __future__ import annotations

import re

from cli.program import ROOT

REGISTRIES = (
    "pypi.org", "pythonhosted.org", "npmjs.com", "crates.io", "anaconda.org", "rubygems.org",
    "hub.docker.com", "quay.io", "ghcr.io",
)  # fmt: skip


def test_no_page_links_to_a_package_registry() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")]
    links = {
        (page.name, link)
        for page in pages
        for link in re.findall(r"https?://[^\s)>\"']+", page.read_text(encoding="utf-8"))
    }
    assert len(pages) > 10
    assert not [link for link in links if any(name in link[1] for name in REGISTRIES)]
