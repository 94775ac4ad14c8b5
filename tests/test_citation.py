"""CITATION.cff says what pyproject.toml says, in the form of the Citation File Format 1.2.0."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

import dialsim

ROOT = Path(__file__).parents[1]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# https://github.com/citation-file-format/citation-file-format/blob/1.2.0/schema-guide.md
REQUIRED = {"authors", "cff-version", "message", "title"}
KNOWN = REQUIRED | {
    "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license",
    "license-url", "preferred-citation", "references", "repository", "repository-artifact",
    "repository-code", "type", "url", "version",
}  # fmt: skip


def test_keys_and_values_have_the_form_of_the_schema() -> None:
    assert REQUIRED <= CITATION.keys() <= KNOWN
    assert (CITATION["cff-version"], CITATION["type"]) == ("1.2.0", "software")
    assert all(isinstance(CITATION[key], str) and CITATION[key] for key in ("message", "title"))
    # An author is a person with parts of a name, or an entity with a name.
    assert CITATION["authors"]
    assert all(set(author) == {"name"} for author in CITATION["authors"])
    words = CITATION["keywords"]
    assert words == list(dict.fromkeys(words))


def test_name_version_licence_and_keywords_are_those_of_the_project() -> None:
    assert CITATION["title"] == PROJECT["name"]
    assert str(CITATION["version"]) == dialsim.__version__
    assert " AND ".join(CITATION["license"]) == PROJECT["license"]
    assert CITATION["keywords"] == PROJECT["keywords"]
    assert CITATION["abstract"] == PROJECT["description"]
    holder = CITATION["authors"][0]["name"]
    assert holder in (ROOT / "LICENSE").read_text(encoding="utf-8")
