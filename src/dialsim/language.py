"""Languages of texts for readers, and HTML templates of all packages.

Messages are translated by gettext, dates and durations by Babel. English is the language of the
source. The messages of another language are in `locale/CODE/LC_MESSAGES/dialsim.po`. Babel compiles
the file when it is first used, so there is no compiled catalog that could be out of date.
"""

from __future__ import annotations

from datetime import date, datetime
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Final

from dialsim.errors import DialsimError
from dialsim.interface.instants import minute_text, thai
from dialsim.interface.phrases import percent

if TYPE_CHECKING:
    from jinja2 import Environment

LANGUAGES: Final = ("en", "th")
_ERAS = {"th": 543}
"""Years by which a language's calendar is ahead of the Gregorian calendar, Babel's only one."""
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


class Language:
    """Texts in one language. Instants are in ms, and shown in Thai time."""

    def __init__(self, code: str) -> None:
        self.code = code
        self._catalog = NullTranslations() if code == "en" else _catalog(code)

    # Named like gettext's functions, because Babel finds messages in the source by these names.
    def gettext(self, message: str, **values: object) -> str:
        """Return a message, with its placeholders replaced if there are values."""
        found = self._catalog.gettext(message)
        return found.format_map(values) if values else found

    def ngettext(self, one: str, several: str, count: float, **values: object) -> str:
        """Return the singular or plural of a message, with `count` in place of `{count}`."""
        found = self._catalog.ngettext(one, several, 1 if count == 1 else 2)
        return found.format_map({"count": f"{count:,.10g}", **values})

    def share(self, share: float) -> str:
        """Format a share: `97 %`, or `<1 %` where rounding would mislead."""
        return self.gettext("{number} %", number=percent(share).removesuffix(" %"))

    def when(self, instant: float) -> str:
        """Format an instant: `Mon 5 Jan 2026 09:00`."""
        if self.code == "en":
            return minute_text(round(instant))  # without loading Babel, which takes a moment
        return self._dated(thai(round(instant)), self.gettext("EEE d MMM y HH:mm"))

    def short_when(self, instant: float) -> str:
        """Format an instant without the year: `Mon 5 Jan 09:00`."""
        return self._dated(thai(round(instant)), self.gettext("EEE d MMM HH:mm"))

    def day(self, day: date) -> str:
        """Format a date: `Mon 5 Jan 2026`."""
        return self._dated(day, self.gettext("EEE d MMM y"))

    def short_day(self, day: date) -> str:
        """Format a date without year and day of the week: `5 Jan`."""
        return self._dated(day, self.gettext("d MMM"))

    def weekday(self, day: date) -> str:
        """Format the day of the week: `Mon`."""
        return self._dated(day, "EEE")

    def _dated(self, moment: date, pattern: str) -> str:
        from babel.dates import format_date, format_datetime

        year = str(moment.year + _ERAS.get(self.code, 0))
        form = format_datetime if isinstance(moment, datetime) else format_date
        return form(moment, pattern.replace("y", year), locale=self.code)

    def duration(self, ms: float) -> str:
        """Format a duration in its two largest units: `1 hr 30 min`."""
        from babel.units import format_unit

        rest, parts = round(ms / 1000), list[str]()
        for name, size in _UNITS:
            whole, rest = divmod(rest, size)
            if whole or (not parts and size == 1):
                parts.append(format_unit(whole, f"duration-{name}", "short", locale=self.code))
        return " ".join(parts[:2])

    def currency(self, code: str) -> str:
        """Return a currency: its code in English, its name in other languages."""
        from babel.numbers import get_currency_name

        return code if self.code == "en" else get_currency_name(code, locale=self.code)

    def listed(self, texts: list[str]) -> str:
        """Join texts: `a, b and c`."""
        # Babel's lists of two in Thai have no space between the two.
        *others, last = texts or ["–"]
        joined = self.gettext(", ").join(others)
        return self.gettext("{others} and {last}", others=joined, last=last) if others else last


@cache
def language(code: str) -> Language:
    """Return a language by its code. Raises DialsimError for an unknown one."""
    if code not in LANGUAGES:
        raise DialsimError(
            f'there is no language "{code}" here: it is one of {", ".join(LANGUAGES)}'
        )
    return Language(code)


def _catalog(code: str) -> GNUTranslations:
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    source = files("dialsim") / "locale" / code / "LC_MESSAGES" / "dialsim.po"
    compiled = BytesIO()
    with source.open("rb") as file:
        write_mo(compiled, read_po(file, locale=code))
    compiled.seek(0)
    return GNUTranslations(compiled)


ENGLISH = Language("en")


@cache
def templates(package: str) -> Environment:
    """Return the jinja2 environment of a package's `templates` folder. Inserted text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
