"""The page in a real browser: Debian's chromium, driven by playwright, without a network."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.report.writing import run_report
from report.pages import KINDS, clients, dozen, rendered


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for kind in KINDS:
        found[kind] = folder / f"{kind}.html"
        found[kind].write_text(rendered(kind), encoding="utf-8")
    # names as long as they may be, and figures of seven digits
    many = clients(2, 3, name="งวดมกราคมของลูกค้าประกันภัย-AVeryLongNameWithoutSpaces")
    result = dialsim.run(many.also(costs={"perMinute": 1234567.5}).scenario())
    found["many"] = folder / "many.html"
    found["many"].write_text(run_report(result, pairs=0), encoding="utf-8")
    found["dozen"] = folder / "dozen.html"
    found["dozen"].write_text(dozen(), encoding="utf-8")
    return found


EVERY = [*KINDS, "dozen", "many"]


@pytest.mark.parametrize("kind", EVERY)
def test_a_page_fits_every_screen_loads_nothing_and_says_nothing_to_the_console(
    browser: Any, files: dict[str, Path], kind: str
) -> None:
    context = browser.new_context(offline=True)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(files[kind].as_uri())
        for width in (320, 390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(_UNSEEN) == []
            if scheme == "light":  # where a text stands is no question of its colour
                assert page.evaluate(_COLLIDING) == []
    assert asked == [files[kind].as_uri()] * 2
    assert said == []
    context.close()


_UNSEEN = """
[...document.querySelectorAll('svg[role=img]')].map(picture => {
  if (picture.closest('.options') && !picture.getClientRects().length) return null;
  const box = picture.getBoundingClientRect();
  const seen = box.width > 150 && box.height > 80 && box.right <= innerWidth + 0.5;
  return seen && picture.getAttribute('aria-label') ? null : picture.outerHTML.slice(0, 99);
}).filter(Boolean)
"""

_COLLIDING = """
[...document.querySelectorAll('svg[role=img]')].flatMap(picture => {
  const figure = picture.closest('figure');
  figure.style.display = 'block';  // those that are not chosen, too
  const all = picture.getBoundingClientRect();
  const texts = [...picture.querySelectorAll('[id*="text_"]')]
    .map(text => text.getBoundingClientRect()).filter(box => box.width);
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
  const out = texts.filter(a => a.left < all.left - 0.5 || a.right > all.right + 0.5
    || a.top < all.top - 0.5 || a.bottom > all.bottom + 0.5);
  const pairs = texts.flatMap((a, k) => texts.slice(k + 1).filter(b => over(a, b)));
  figure.style.display = '';
  const named = picture.getAttribute('aria-label').slice(0, 60);
  if (texts.length < 4) return [named + ': too few texts'];
  if (!out.length && !pairs.length) return [];
  return [`${named}: ${out.length} cut, ${pairs.length} over others`];
})
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


@pytest.mark.parametrize("kind", EVERY)
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
    assert page.evaluate(_COLLIDING) == []
    assert page.locator("button:visible").filter(has_text="Copy").count() == 0
    context.close()


@pytest.mark.parametrize("kind", EVERY)
def test_no_column_is_cut_on_a_desk_and_figures_use_the_width(
    browser: Any, files: dict[str, Path], kind: str
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, offline=True)
    page = context.new_page()
    page.goto(files[kind].as_uri())
    assert page.evaluate(_CUT_OFF.replace(".stacks", ".table")) == []
    assert page.evaluate(_NARROW) == []
    context.close()


_NARROW = """
[...document.querySelectorAll('.grid')].flatMap(grid => {
  const rows = {};
  for (const box of grid.querySelectorAll(':scope > .table'))
    (rows[box.offsetTop] ||= []).push(box.getBoundingClientRect().right);
  const edge = grid.getBoundingClientRect().right;
  return Object.values(rows).map(ends => edge - Math.max(...ends)).filter(left => left > 1);
})
"""
"""Room to the right of each line of tables in a grid."""


def test_a_table_does_not_break_across_printed_pages_after_its_first_row(
    browser: Any, files: dict[str, Path], tmp_path: Path
) -> None:
    reader = shutil.which("pdftotext")
    if reader is None:
        pytest.skip("pdftotext is not installed: apt-get install poppler-utils")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(files["run"].as_uri())
    # Tables at many heights of the paper, so that page breaks fall on every row.
    page.evaluate(_MANY_TABLES)
    (tmp_path / "many.pdf").write_bytes(page.pdf(format="A4"))
    context.close()
    done = subprocess.run([reader, "-layout", tmp_path / "many.pdf", "-"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    ends = [re.findall(r"row-[0-9]+", text)[-1:] for text in done.stdout.split("\f")]
    broken = [end[0] for end in ends if end and end[0] != "row-7"]
    assert len(broken) > 10
    assert "row-1" not in broken


_MANY_TABLES = """
(() => {
  const cells = k => `<th>row-${k}</th><td>1</td>`;
  const rows = [1, 2, 3, 4, 5, 6, 7].map(k => `<tr>${cells(k)}</tr>`).join('');
  const table = `<div class="table"><table><thead><tr><th>T</th><td>x</td></tr></thead>`
    + `<tbody>${rows}</tbody></table></div>`;
  const spaced = k => `<div style="height: ${(k * 37) % 101}px"></div>${table}`;
  const all = [...Array(150).keys()].map(spaced).join('');
  document.querySelector('main').innerHTML = `<section><div class="grid">${all}</div></section>`;
})()
"""


A4_WIDTH = round((210 - 2 * 12) / 25.4 * 96)
"""Width of the paper without margins, in CSS pixels."""

_LOST = """
[...document.querySelectorAll('.table')].flatMap(box => {
  const room = box.getBoundingClientRect();
  return [...box.querySelectorAll('th, td')]
    .filter(cell => cell.getBoundingClientRect().right > room.right + 0.5)
    .map(cell => box.getAttribute('aria-label') + ': ' + cell.textContent);
})
"""


def column(table: Any, number: int) -> list[str]:
    """The texts of a column, from top to bottom."""
    return [text.replace("\N{NO-BREAK SPACE}", " ") for text in
            table.locator(f"tbody tr > :nth-child({number + 1})").all_inner_texts()]  # fmt: skip


def test_tables_are_sorted_by_value_with_the_pointer_and_the_keyboard(
    browser: Any, files: dict[str, Path]
) -> None:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 844})
    page = context.new_page()
    page.goto(files["many"].as_uri())
    table = page.locator("table").first
    cost = table.get_by_role("columnheader", name="cost")
    before = column(table, 4)
    amounts = sorted(before, key=lambda text: float(text.split()[0].replace(",", "")))
    assert amounts not in (before, sorted(before))
    for way, wanted in (
        ("ascending", amounts),
        ("descending", amounts[::-1]),
        ("none", before),
    ):
        cost.get_by_role("button").click()
        assert cost.get_attribute("aria-sort") == way
        assert column(table, 4) == wanted
    finish = table.get_by_role("columnheader", name="finish")
    finish.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert finish.get_attribute("aria-sort") == "ascending"
    when = re.compile(r"(\d+) Jan 2026 (\d\d:\d\d)")
    instants = [when.search(text) for text in column(table, 2)]
    done = [(int(found[1]), found[2]) for found in instants if found]
    assert done == sorted(done)
    assert len({*done}) > 2
    # sums stay below
    people = page.locator("table", has=page.locator("th", has_text="People")).first
    people.get_by_role("button").nth(1).click()
    assert column(people, 0)[-1] == "all"
    # lengths of time, on the page of a sweep; what has no value comes last
    page.goto(files["dozen"].as_uri())
    minus = page.locator("table", has=page.locator("th", has_text="Minus as it is")).first
    minus.get_by_role("button", name="finish").click()
    seconds = [int(text.split()[0]) for text in column(minus, 1)]
    assert len(seconds) == 11
    assert seconds == sorted(seconds)
    assert seconds != sorted(seconds, key=str)
    context.close()


def test_a_table_is_copied_as_text_with_tabs_and_no_formulas(
    browser: Any, files: dict[str, Path]
) -> None:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 844})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(files["dozen"].as_uri())
    minus = page.locator(".table", has=page.locator("th", has_text="Minus as it is")).first
    button = minus.locator(".copy")
    button.click()
    page.wait_for_function("button => button.textContent === 'Copied'", arg=button.element_handle())
    copied = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert copied[0] == "Minus as it is\tmedian finish\tby Mon 5 Jan\tpeople reached\tcost"
    assert len(copied) == 12
    name, finish, _, reached, cost = copied[1].split("\t")
    assert name == "an hour more a day, as a planner would write it, number 1"
    assert finish.startswith("'+19 s (-37 s")
    assert reached.startswith("'+1, more in 8 of 8 pairs")
    assert cost.startswith("'+0.2 ±")
    context.close()


def test_pictures_tell_their_values_to_the_pointer(browser: Any, files: dict[str, Path]) -> None:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 844})
    page = context.new_page()
    page.goto(files["dozen"].as_uri())
    shown = page.locator(".value")
    assert not shown.is_visible()
    mark = page.locator("svg[aria-label^='When half of the runs'] [pointer-events]").nth(2)
    mark.scroll_into_view_if_needed()
    page.wait_for_timeout(100)  # scrolling hides the tooltip
    mark.hover()
    assert shown.inner_text().startswith(
        "one attempt more, as a planner would write it, number 2: "
    )
    assert "half of the runs Mon 5 Jan 10:22; 5 to 95 % of the runs: " in shown.inner_text()
    box = shown.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1280
    page.mouse.move(2, 2)
    assert not shown.is_visible()
    for kind, least in (("run", 100), ("replications", 100), ("plan", 10), ("compare", 4)):
        page.goto(files[kind].as_uri())
        assert page.locator("[pointer-events]").count() >= least
        silent = page.locator("figure svg").filter(has_not=page.locator("[pointer-events]"))
        assert silent.count() == 0
    context.close()


def test_without_scripts_everything_is_there_and_pictures_can_be_chosen(
    browser: Any, files: dict[str, Path]
) -> None:
    context = browser.new_context(
        offline=True, java_script_enabled=False, viewport={"width": 1280, "height": 844}
    )
    page = context.new_page()
    page.goto(files["many"].as_uri())
    assert page.locator("table").first.is_visible()
    assert page.get_by_text("Copy table").count() == 0
    assert page.locator("svg title").count() > 100
    choice = page.get_by_role("radiogroup", name="Of")
    pictures = choice.locator("figure")
    assert [pictures.nth(k).is_visible() for k in range(pictures.count())] == [True, False]
    choice.get_by_role("radio", name="Client 2").check()
    assert [pictures.nth(k).is_visible() for k in range(pictures.count())] == [False, True]
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
