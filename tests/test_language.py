"""Languages: the catalogs have every message of the source, with its placeholders, and no others.

`pytest tests/test_language.py --dialsim-update` adds new messages to the catalogs, to be
translated, and takes away those that are gone.
"""

from __future__ import annotations

from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

import dialsim
from dialsim.language import LANGUAGES

SOURCE = Path(dialsim.__file__).parent
OTHERS = [code for code in LANGUAGES if code != "en"]
TEMPLATES = ("sheet.html", "sentences.txt")
METHODS = [*((f"**/templates/{name}", "jinja2") for name in TEMPLATES), ("**.py", "python")]
KEYWORDS = {"gettext": None, "ngettext": (1, 2)}


def catalog_file(code: str) -> Path:
    return SOURCE / "locale" / code / "LC_MESSAGES" / "dialsim.po"


def extracted() -> Catalog:
    catalog = Catalog(project="dialsim", charset="utf-8")
    found = extract_from_dir(SOURCE, METHODS, keywords=KEYWORDS)
    for file, _, message, _, _ in found:
        catalog.add(message, locations=[(file, 0)])
    return catalog


def stored(code: str) -> Catalog:
    with catalog_file(code).open("rb") as file:
        return read_po(file, locale=code)


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", OTHERS)
def test_a_catalog_has_the_messages_of_the_source_and_no_others(
    code: str, request: pytest.FixtureRequest
) -> None:
    source, catalog = extracted(), stored(code)
    if request.config.getoption("dialsim_update"):
        catalog.update(source, no_fuzzy_matching=True)
        catalog.obsolete.clear()
        with catalog_file(code).open("wb") as file:
            write_po(
                file, catalog, no_location=True, omit_header=False, sort_output=True, width=100
            )
    assert {m.id for m in source if m.id} == {m.id for m in stored(code) if m.id}
    assert len(source) > 80


@pytest.mark.parametrize("code", OTHERS)
def test_every_message_is_translated_with_its_placeholders(code: str) -> None:
    catalog = stored(code)
    wrong = []
    for message in catalog:
        if not message.id:
            continue
        ids = message.id if isinstance(message.id, tuple) else (message.id,)
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        plurals = catalog.num_plurals if isinstance(message.id, tuple) else 1
        if len(texts) != plurals or not all(texts) or message.fuzzy:
            wrong.append((message.id, "is not translated"))
        # The count of a plural form may be left out where the words say it.
        wanted = fields(ids[-1])
        for text in texts:
            if fields(text) != wanted:
                wrong.append((message.id, f"has other placeholders: {text}"))
    assert wrong == []
