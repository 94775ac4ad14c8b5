"""Ink: the colours and fonts of all pictures.

The colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any common
kind of colour blindness can tell apart. The fonts are Noto Sans for Latin and Thai letters, which
come along (see `fonts/OFL.txt`); what neither has is taken from matplotlib's own DejaVu Sans.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8A8A8A"

CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
"""For things without a colour of their own, in this order."""

TEXT = "#333333"
OPEN = "#EAF2F8"
"""The shade of open calling windows."""

GRID = "#D9D9D9"

MAP = "cividis"
"""For amounts on a surface (Nuñez, Anderton and Renslow, PLOS ONE 13(7), 2018)."""


@cache
def families() -> tuple[str, ...]:
    """The font families of every text, after making them known to matplotlib."""
    from matplotlib.font_manager import fontManager

    names = []
    for file in ("NotoSans-Latin.ttf", "NotoSansThai-Regular.ttf"):
        with as_file(files("dialsim.results.plots") / "fonts" / file) as path:
            fontManager.addfont(path)
        names.append(fontManager.ttflist[-1].name)
    return (*names, "DejaVu Sans")
