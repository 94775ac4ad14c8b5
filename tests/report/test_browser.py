"""The page in a real browser: Debian's chromium, driven by playwright, without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.report.writing import run_report
from report.pages import KINDS, clients


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory, browser: Any, pages: dict[str, str]
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for kind in KINDS:
        found[kind] = folder / f"{kind}.html"
        found[kind].write_text(pages[kind], encoding="utf-8")
    # names as long as they may be, and figures of seven digits
    text = clients(2, 3).replace("Campaign", "งวดมกราคมของลูกค้าประกันภัย-AVeryLongNameWithoutSpaces")
    result = dialsim.run(dialsim.loads(f"{text}\ncosts: {{perMinute: 1234567.5}}"))
    found["many"] = folder / "many.html"
    found["many"].write_text(run_report(result, pairs=0), encoding="utf-8")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fits_its_screen_loads_nothing_and_says_nothing_to_the_console(
    browser: Any, files: dict[str, Path], kind: str
) -> None:
    context = browser.new_context(offline=True)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for width in (320, 390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(files[kind].as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(_UNSEEN) == []
    assert asked == [files[kind].as_uri()] * 6
    assert said == []
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


def luminance(colour: str) -> float:
    """The relative luminance of `rgb(…)`, as the guidelines for web content define it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_pictures_follow_the_scheme_and_can_be_read_in_both(
    browser: Any, files: dict[str, Path], kind: str, scheme: str
) -> None:
    context = browser.new_context(offline=True, color_scheme=scheme)
    page = context.new_page()
    page.goto(files[kind].as_uri())
    pictures = page.evaluate(_INKS)
    assert any(lines for _, _, lines in pictures)
    for paper, letters, lines in pictures:
        assert (luminance(paper) < 0.05) is (scheme == "dark")
        assert letters
        assert min(contrast(paper, ink) for ink in letters) >= 4.5
        least = 2 if scheme == "light" else 4  # the lightest colours of Okabe and Ito on white
        assert all(contrast(paper, ink) >= least for ink in lines)
    context.close()


_INKS = """
[...document.querySelectorAll('svg[role=img]')].map(picture => {
  const style = element => getComputedStyle(element);
  const within = selector => [...picture.querySelectorAll(selector)];
  const letters = within('[id*=-text_] use')
    .map(use => style(use).fill)
    .filter(ink => !['rgb(26, 26, 26)', 'rgb(247, 247, 247)'].includes(ink));
  const lines = within('[id*=line2d_] > path')
    .filter(path => path.closest('[id*=-axes_1]') && !path.closest('[id*=tick_]'))
    .map(path => style(path).stroke).filter(ink => ink.startsWith('rgb'));
  return [style(picture.querySelector('path')).fill, [...new Set(letters)], [...new Set(lines)]];
})
"""


def test_a_page_prints_on_white_whatever_the_scheme(browser: Any, files: dict[str, Path]) -> None:
    context = browser.new_context(offline=True, color_scheme="dark")
    page = context.new_page()
    page.goto(files["run"].as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    for paper, _, _ in page.evaluate(_INKS):
        assert luminance(paper) == 1
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context.close()


@pytest.mark.parametrize("kind", [*KINDS, "many"])
def test_a_page_prints_on_a4_without_losing_a_column(
    browser: Any, files: dict[str, Path], kind: str
) -> None:
    context = browser.new_context(viewport={"width": A4_WIDTH, "height": 1000}, offline=True)
    page = context.new_page()
    page.goto(files[kind].as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= A4_WIDTH
    assert page.evaluate("document.querySelectorAll('.table').length") > 1
    assert page.evaluate(_LOST) == []
    context.close()


A4_WIDTH = round((210 - 2 * 12) / 25.4 * 96)
"""What the margins leave of the paper, in CSS pixels."""

_LOST = """
[...document.querySelectorAll('.table')].flatMap(box => {
  const room = box.getBoundingClientRect();
  return [...box.querySelectorAll('th, td')]
    .filter(cell => cell.getBoundingClientRect().right > room.right + 0.5)
    .map(cell => box.getAttribute('aria-label') + ': ' + cell.textContent);
})
"""


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
