"""Effects in words and as a table: what levers do to when a run is done and whom it reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite

import numpy as np

from dialsim.experiments.run_figures import RunFigures
from dialsim.report.what_if import Effect, Lever, WhatIf
from dialsim.results.thai_time import duration_text, minute_text
from dialsim.results.wording import FigureTable


def effect_table(what_if: WhatIf, currency: str | None, title: str = "Changed by") -> FigureTable:
    """The levers as a table."""
    columns = ["finish", "people reached"] + ([f"cost, {currency}"] if currency else [])
    rows = []
    for lever in what_if.levers:
        cells = [finish_effect(lever, what_if), number_effect(lever.reached)]
        if lever.cost is not None:
            cells.append(number_effect(lever.cost))
        rows.append((lever.name, *cells))
    return FigureTable(title, tuple(columns), tuple(rows))


def finish_effect(lever: Lever, what_if: WhatIf) -> str:
    """`time_effect`; or where some runs don't finish, how many do."""
    done, before = (
        sum(isfinite(at) for at in finishes)
        for finishes in (_finishes(lever.runs), _finishes(what_if.base))
    )
    if done == before:
        return time_effect(lever.finish)
    return f"done in {done} of {what_if.pairs} runs instead of {before}"


def time_effect(effect: Effect) -> str:
    """`2 h 26 min earlier (± 3 min)`."""
    if _no_change(effect):
        return "no change"
    if isfinite(effect.difference):
        way = "earlier" if effect.difference < 0 else "later"
        return f"{_duration(effect.difference)} {way} {_sureness(effect, _duration)}"
    if not effect.rose and not effect.fell:
        return "can't be told"
    return f"{'earlier' if effect.fell > effect.rose else 'later'} {_sureness(effect, _duration)}"


def number_effect(effect: Effect) -> str:
    """`+143 (± 12)`."""
    if _no_change(effect):
        return "no change"
    sign = "+" if effect.difference >= 0 else "–"
    return f"{sign}{_number(effect.difference)} {_sureness(effect, _number)}"


def points_effect(effect: Effect) -> str:
    """`+3.1 points (± 0.4)`, of a share."""
    if _no_change(effect):
        return "no change"
    sign = "+" if effect.difference >= 0 else "–"

    def points(value: float) -> str:
        return f"{100 * abs(value):.1f}"

    return f"{sign}{points(effect.difference)} points {_sureness(effect, points)}"


def _no_change(effect: Effect) -> bool:
    """Whether no pair was changed."""
    return effect.difference == 0 and not effect.rose and not effect.fell


def _sureness(effect: Effect, text: Callable[[float], str]) -> str:
    """`(± 12)`; without an interval `(in 5 of 6 pairs)`; and whether it may be chance."""
    if effect.low == effect.high:
        return "(always: without chance)"
    known = f"in {max(effect.rose, effect.fell)} of {effect.pairs} pairs"
    if isfinite(effect.low):
        known = f"± {text((effect.high - effect.low) / 2)}"
    return f"({known})" if effect.real else f"({known}, may be chance)"


def _duration(seconds: float) -> str:
    """To the second, from ten minutes on to the minute."""
    unit = 60 if abs(seconds) >= 600 else 1
    return duration_text(1000 * unit * round(abs(seconds) / unit))


def _number(value: float) -> str:
    size = abs(value)
    return f"{size:,.0f}" if size >= 10 else f"{size:.1f}"


def _finishes(runs: Sequence[RunFigures]) -> list[float]:
    """When runs are done, in ms; infinite for one that doesn't finish."""
    return [run.scopes[0].values["finish"] for run in runs]


def spread(what_if: WhatIf) -> str:
    """From when to when the runs of the scenario as it is were done, and whom they reached."""
    finishes = _finishes(what_if.base)
    done = [at for at in finishes if isfinite(at)]
    never = sum(at == inf for at in finishes)
    shares = 100 * np.array([run.scopes[0].values["reach_share"] for run in what_if.base])
    reached = f"{shares.min():.1f} to {shares.max():.1f} % reached"
    if not done:
        return f"none of {what_if.pairs} runs finished; {reached}"
    first, last = (minute_text(round(at)) for at in (min(done), max(done)))
    when = f"done {first}" if first == last else f"done between {first} and {last}"
    return f"{when}, {reached}" + (f"; {never} did not finish" if never else "")
