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

PAPER = "#FFFFFF"
TEXT = "#333333"
GRID = "#D9D9D9"
OPEN = "#EAF2F8"
"""The shade of open calling windows."""

OUTAGE = "#F7DDD0"
EMPTY = "#F4F4F4"
"""The cells of a map that hold nothing."""

ON_LIGHT, ON_DARK = "#1A1A1A", "#F7F7F7"
"""For letters on the colours of `MAP`, which are the same on dark paper."""

ON_DARK_PAPER = {
    PAPER: "#1A2027",
    BLACK: "#E6EBF0",
    ORANGE: "#E8A820",
    SKY: "#A6D8F5",
    GREEN: "#2FBF94",
    BLUE: "#3D97D3",
    VERMILION: "#F0722B",
    PURPLE: "#D993BB",
    GREY: "#98A2AB",
    TEXT: "#C9D3DC",
    GRID: "#3A4550",
    OPEN: "#243444",
    OUTAGE: "#55301E",
    EMPTY: "#232B34",
}
"""What each ink is where the paper is dark: as far from it, and from each other, as on white."""

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
