"""The page in a real browser: Debian's chromium, driven by playwright, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from report.test_pages import KINDS, make


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for kind in KINDS:
        found[kind] = folder / f"{kind}.html"
        found[kind].write_text(make(kind), encoding="utf-8")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fits_its_screen_loads_nothing_and_says_nothing_to_the_console(
    browser: Any, files: dict[str, Path], kind: str, width: int, scheme: str
) -> None:
    view = {"width": width, "height": 844}
    context = browser.new_context(viewport=view, offline=True, color_scheme=scheme)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(files[kind].as_uri())
    assert asked == [files[kind].as_uri()]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_UNSEEN) == []
    context.close()


_UNSEEN = """
[...document.querySelectorAll('svg[role=img]')].map(picture => {
  const box = picture.getBoundingClientRect();
  const seen = box.width > 150 && box.height > 80 && box.right <= innerWidth + 0.5;
  return seen && picture.getAttribute('aria-label') ? null : picture.outerHTML.slice(0, 99);
}).filter(Boolean)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_sentences_stand_on_a_phone_without_scrolling(
    browser: Any, files: dict[str, Path], kind: str
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True)
    page = context.new_page()
    page.goto(files[kind].as_uri())
    assert page.evaluate("document.querySelectorAll('.stacks').length") > 0
    assert page.evaluate(_CUT_OFF) == []
    heads = page.evaluate(
        "[...document.querySelectorAll('.stacks td')].map(cell => "
        "getComputedStyle(cell, '::before').content.length > 2)"
    )
    assert all(heads)
    context.close()


_CUT_OFF = """
[...document.querySelectorAll('.stacks')]
  .filter(table => table.scrollWidth > table.clientWidth)
  .map(table => table.getAttribute('aria-label'))
"""


@pytest.mark.parametrize("kind", ["sweep", "plan"])
def test_what_would_help_is_on_the_page_of_a_sweep_and_of_a_plan(
    browser: Any, files: dict[str, Path], kind: str
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 844}, offline=True)
    page = context.new_page()
    page.goto(files[kind].as_uri())
    answers = page.locator(".answer dt").all_inner_texts()
    assert any(question.startswith("What holds it back") for question in answers)
    assert any("would help" in question or "else would" in question for question in answers)
    assert page.get_by_role("row", name="one attempt more").first.is_visible()
    assert page.get_by_role("columnheader", name="people reached").first.is_visible()
    context.close()


def test_a_page_prints_on_paper_without_cutting_pictures(
    browser: Any, files: dict[str, Path]
) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(files["run"].as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == (
        "avoid"
    )
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") <= 6
    context.close()
