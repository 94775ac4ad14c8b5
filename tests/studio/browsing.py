"""A `dialsim studio` and tabs of a browser that look at it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
NOISE = re.compile(r"\[bokeh|Bokeh items were rendered")
"""Messages that Bokeh always logs to the console."""


class Served:
    """A `dialsim studio` that runs for as long as it is needed."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dialsim", "studio", *arguments, "--port", "0"],
            stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.url = found[0]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Tab:
    """A tab with a studio; it records console messages and requests."""

    def __init__(
        self, browser: Any, url: str, link: str = "", script: str = "", **options: Any
    ) -> None:
        """`script` runs in the page before anything else."""
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        self.context.add_init_script(script)
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)
        self.said: list[str] = []
        self.asked: set[str] = set()
        self.loads = 0
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc))
        self.page.on("load", lambda _: setattr(self, "loads", self.loads + 1))
        self.page.goto(url + link)
        self.host = urlsplit(url).netloc

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def field(self, name: str) -> Any:
        return self.page.get_by_role("textbox", name=name, exact=True)

    def slider(self, name: str) -> Any:
        return self.page.get_by_role("slider", name=f"{name}, slider", exact=True)

    def cell(self, name: str) -> Any:
        """Half an hour of the week, by its beginning: `Sunday 10:00`."""
        return self.page.get_by_role("gridcell", name=re.compile(f"^{name}"))

    def set(self, name: str, text: str, line: str) -> None:
        """Write a value at a lever, and wait until it is a change: the answer is busy by then."""
        self.field(name).fill(text)
        self.field(name).press("Enter")
        self.sees(self.lines, line)

    def open(self, name: str, content: str | bytes) -> None:
        """Choose a file; its path doesn't reach the page."""
        content = content.encode() if isinstance(content, str) else content
        self.page.locator("#studio-file").set_input_files(
            {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        )

    def drag(self, name: str, *shares: float) -> str:
        """Drag a slider to shares of its way, one after the other; returns where it stands then."""
        slider = self.slider(name)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        y = box["y"] + box["height"] / 2
        share = float(slider.evaluate("one => (one.value - one.min) / (one.max - one.min)"))
        self.page.mouse.move(box["x"] + 8 + (box["width"] - 16) * share, y)
        self.page.mouse.down()
        for share in shares:
            self.page.mouse.move(box["x"] + 8 + (box["width"] - 16) * share, y, steps=4)
        self.page.mouse.up()
        return str(slider.input_value())

    def paint(self, first: str, last: str, says: str) -> None:
        """Paint from one half hour to another with the pointer; the page shows the painted
        hours.
        """
        self.page.get_by_role("grid").scroll_into_view_if_needed()
        begin, end = self.cell(first).bounding_box(), self.cell(last).bounding_box()
        self.page.mouse.move(begin["x"] + begin["width"] / 2, begin["y"] + begin["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=8)
        self.sees(self.page.locator(".week-said"), says)
        self.page.mouse.up()

    @property
    def lines(self) -> Any:
        return self.page.locator(".tell pre")

    @property
    def sentence(self) -> Any:
        return self.page.locator(".sentence")

    @property
    def focused(self) -> Any:
        """Return the accessible name or text of the focused element."""
        return self.page.evaluate(_FOCUSED)

    def sees(self, locator: Any, text: str) -> None:
        """Wait until an element contains a text."""
        locator.filter(has_text=re.compile(text, re.DOTALL)).first.wait_for()

    def settled(self) -> str:
        """Wait for the last estimate, and return the sentence."""
        self.sees(self.page.locator(".answer:not(.busy) .how"), "^200 runs")
        return str(self.sentence.inner_text())

    def answer(self) -> list[str]:
        """Return the texts on the last estimate: sentence, details and facts."""
        self.settled()
        said = [self.sentence, self.page.locator(".rest"), *self.page.locator(".facts > div").all()]
        return [str(part.text_content()) for part in said]

    def unnamed(self) -> list[str]:
        """Return the roles of controls without an accessible name, from the accessibility tree."""
        session = self.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        found = [
            (node["role"]["value"], node.get("name", {}).get("value", "").strip())
            for node in nodes
            if not node["ignored"] and node["role"]["value"] in _CONTROLS
        ]
        assert len(found) > 5
        return [role for role, name in found if not name]

    def faint(self) -> list[str]:
        """Return texts with too little contrast to their background (WCAG 2.2, 1.4.3)."""
        return list(self.page.evaluate(FAINT))

    @property
    def width(self) -> int:
        """Return the width of the page when scrolled."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def close(self) -> None:
        assert [text for text in self.said if not NOISE.search(text)] == []
        assert self.asked <= {self.host, ""}
        assert self.loads == 1
        self.context.close()


_CONTROLS = {
    "button", "checkbox", "combobox", "DisclosureTriangle", "grid", "gridcell", "image", "img",
    "link", "listbox", "progressbar", "region", "rowheader", "searchbox", "slider", "spinbutton",
    "textbox", "toolbar",
}  # fmt: skip

_FOCUSED = """() => {
  let at = document.activeElement;
  while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at.getAttribute('aria-label') || at.labels?.[0]?.innerText || at.innerText || at.tagName;
}"""

FAINT = """() => {
  const found = [];
  const numbers = text => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const above = node => node.assignedSlot || node.parentElement || node.getRootNode().host;
  const behind = node => {
    for (let at = node; at; at = above(at)) {
      const paper = numbers(getComputedStyle(at).backgroundColor);
      if (paper.length < 4 || paper[3] > 0.99) return paper;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
  };
  const walk = root => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) walk(node.shadowRoot);
      const own = [...node.childNodes].some(part => part.nodeType === 3 && part.data.trim());
      const field = node.matches('input[type=text]') && node.value;
      if (!(own || field) || node.matches('style, script, option, button:disabled')) continue;
      const box = node.getBoundingClientRect(), style = getComputedStyle(node);
      if (box.width < 2 || box.height < 2 || style.visibility === 'hidden') continue;
      const [a, b] = [light(numbers(style.color)), light(behind(node))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5))
        found.push(`${contrast.toFixed(1)}: ${(node.value || node.textContent).slice(0, 60)}`);
    }
  };
  walk(document);
  return found;
}"""
