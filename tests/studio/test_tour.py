"""The tour of docs/studio.md in a real browser, and its pictures.

`--dialsim-update` stores the pictures as they are now.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("panel", reason="panel is not installed: pip install '.[studio]'")

from studio.browsing import ROOT, Served, Tab

TALL = {"width": 1280, "height": 3000}
"""Nothing is to be scrolled: the sentence stays on top, and would cover a part of the page."""
TOUR = ROOT / "docs" / "studio.md"
MOST_BYTES = 120_000
"""A picture of the tour is not to be larger."""


def pictures(browser: Any) -> Iterator[tuple[str, bytes]]:
    """Take the tour, and yield the name and the content of each picture on the way."""
    served = Served("scenarios/first-campaign.yaml")
    tab = Tab(browser, served.url, viewport={"width": 1280, "height": 860})
    page = tab.page
    tab.settled()
    yield "studio.png", page.screenshot()
    tab.set("Lines", "14", "=14$")
    tab.paint("Saturday 10:00", "Sunday 18:30", "Close Saturday to Sunday 10:00 to 19:00")
    tab.sees(tab.lines, "timeWindows=")
    tab.settled()
    page.set_viewport_size(TALL)
    yield "studio-levers.png", page.locator(".levers").screenshot()
    tab.button("Pin this variant").click()
    tab.set("Lines", "20", "=20")
    tab.settled()
    tab.sees(page.get_by_role("region", name="Variants").locator(".less"), "real")
    yield "studio-variants.png", page.locator(".pins").screenshot()
    tab.field("Deadline").fill("Tue 12:00")
    tab.button("Fewest lines to be done by").click()
    page.locator(".result").wait_for()
    yield "studio-question.png", page.locator(".questions").screenshot()
    tab.close()
    served.close()
    served = Served("scenarios/forecast-from-the-middle.yaml")
    tab = Tab(browser, served.url, viewport=TALL | {"width": 390}, color_scheme="dark")
    tab.settled()
    yield "studio-from-today.png", tab.page.locator("figure").first.screenshot()
    tab.close()
    served.close()


def small(content: bytes) -> bytes:
    """The same picture with 128 colours."""
    stored = io.BytesIO()
    with Image.open(io.BytesIO(content)) as picture:
        picture.convert("RGB").quantize(128).save(stored, "PNG", optimize=True)
    return stored.getvalue()


@pytest.mark.slow
def test_the_tour_has_its_pictures(browser: Any, request: pytest.FixtureRequest) -> None:
    folder = TOUR.parent / "pictures"
    taken = {name: small(content) for name, content in pictures(browser)}
    told = re.findall(r"!\[[^\]]{20,}\]\(pictures/([^)]+)\)", TOUR.read_text(encoding="utf-8"))
    assert sorted(told) == sorted(taken)
    for name, content in taken.items():
        assert len(content) <= MOST_BYTES
        if request.config.getoption("dialsim_update"):
            (folder / name).write_bytes(content)
        with Image.open(folder / name) as stored, Image.open(io.BytesIO(content)) as now:
            # letters differ from machine to machine, and with them how tall a part of the page is
            assert abs(stored.width - now.width) <= 2
            assert abs(stored.height - now.height) <= now.height / 10
