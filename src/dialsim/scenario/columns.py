"""Names of the columns of lists of people."""

from __future__ import annotations

import re

PREFIX = "history."
HISTORY_COLUMNS = tuple(
    PREFIX + key for key in ("callAttempt", "latestCallStatus", "lastEndedAt", "lastCallerId")
)
PARAM = "agentParams."
COLUMNS = ("tel", "customerName", "segment", "script", "id")
ROUNDED_BY_SPREADSHEET = re.compile(r"[0-9][.,]?[0-9]*[eE]\+?[0-9]{1,2}")
"""Cell with a number whose last digits a spreadsheet has dropped."""
