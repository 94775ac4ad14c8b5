"""Pages for tests: read with the standard library, and made from small scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import dialsim
from dialsim.experiments.known_bounds import UNKNOWN
from dialsim.experiments.plan import plan
from dialsim.experiments.replications import replicate
from dialsim.experiments.run_figures import RunFigures, figures_of
from dialsim.experiments.sweep import Sweep, compare, sweep
from dialsim.experiments.variants import SettingChange, Variant
from dialsim.report.what_if import FurtherRuns
from dialsim.report.writing import plan_report, replications_report, run_report, sweep_report
from dialsim.testing import Sketch
from dialsim.testing.sketch import When

VOID = {"meta", "br", "img", "link", "input", "hr", "source"}

FUNNEL = [{"step": "Greeted", "share": 0.9}, {"step": "Promised", "share": 0.4}]


def acme(
    lines: int = 5,
    people: int = 120,
    *,
    end: When | None = None,
    requested: When | None = 0,
    january: Mapping[str, Any] | None = None,
    **engine: Any,
) -> Sketch:
    """Two campaigns of one organization; `january` is of the first one's request."""
    schedule = {"max_attempts": 2, "retry_interval": "1h", **(january or {})}
    own: dict[str, Any] = {"agent": "Reminder", "requested": requested}
    return (
        Sketch(lines, seed=3, end=end, setup_time=None, **engine)
        .also(name="งวดมกราคม <& Co>", description="Two campaigns")
        .also(
            costs={"currency": "THB", "perDial": 0.1, "perMinute": 1.2, "billingIncrement": "60s"}
        )
        .having(webhook={"url": "https://receiver.example/results"})
        .agent("Reminder", analysis={"funnel": FUNNEL})
        .campaign("มกราคม", recipients={"count": people}, **own, **schedule)
        .campaign("Second", recipients={"count": 40}, **own, start="Mon 10:00", max_attempts=1)
    )


ACME = acme()
BETA = ACME.organization("Beta", 1).campaign("Slow", recipients={"count": 100}, max_attempts=1)
"""With a second organization, which finishes last."""


LINES = "organizations.Acme.maxConcurrentCalls"
GOAL = "p95(finish) <= 2026-01-05T03:24:00Z and mean(people_reached) >= 90"
KINDS = ("run", "replications", "sweep", "compare", "plan")


def make(kind: str) -> str:
    scenario = ACME.scenario()
    if kind == "run":
        return run_report(dialsim.run(scenario), pairs=2)
    if kind == "replications":
        return replications_report(replicate(scenario, 6, jobs=1), FurtherRuns(0))
    if kind == "sweep":
        found = sweep(scenario, {LINES: [4, 6, 8]}, 6, seed=3, jobs=1)
        return sweep_report(found, FurtherRuns(2))
    if kind == "compare":
        planned, other = "january-as-planned.yaml", "january-more-lines.yaml"
        files = {planned: scenario, other: acme(7).scenario()}
        return sweep_report(compare(files, 4, jobs=1), FurtherRuns(0))
    answer = plan(scenario, LINES, (2, 12), GOAL, replications=5, max_replications=5, jobs=1)
    return plan_report(answer, scenario, 3, FurtherRuns(2))


@cache
def rendered(kind: str) -> str:
    """The page of a kind with all that its pictures consist of."""
    return make(kind)


def dozen() -> str:
    """The page of a sweep of twelve variants with long names that cost about the same."""
    scenario = ACME.scenario()
    first = figures_of(dialsim.run(scenario))
    levers = ("two lines more", "an hour more a day", "one attempt more", "retries sooner")
    variants = [Variant("as it is", ())]
    for k in range(1, 12):
        name = f"{levers[k % 4]}, as a planner would write it, number {k}"
        variants.append(Variant(name, (SettingChange(LINES, str(k + 5)),)))

    def moved(number: int, replication: int) -> RunFigures:
        chance = 7_000 * ((5 * replication + 3 * number) % 8 - 3)
        by = {"finish": chance - 2_000 * number, "cost": number / 4 + chance / 28_000,
              "people_reached": number % 4}  # fmt: skip
        scopes = tuple(
            replace(part, values=part.values | {name: part.values[name] + by[name] for name in by})
            for part in first.scopes
        )
        return replace(first, replication=replication, scopes=scopes)

    runs = [[moved(number, replication) for replication in range(8)] for number in range(12)]
    return sweep_report(Sweep(scenario, variants, runs, [UNKNOWN] * 12), FurtherRuns(0))


def clients(
    organizations: int = 3,
    campaigns: int = 6,
    *,
    start: When = "Mon 09:00",
    end: When | None = None,
    name: str = "Campaign",
    drafts: int = 0,
) -> Sketch:
    """Many campaigns of several organizations; of each, every other agent has a funnel.

    The first `drafts` are never scheduled, and with any the 13th begins a year later.
    """
    sketch = Sketch(seed=4, start=start, end=end, setup_time=None)
    sketch = sketch.also(name="Eighteen campaigns")
    for owner in range(1, organizations + 1):
        sketch = sketch.organization(f"Client {owner}", 2 + 2 * owner)
        sketch = sketch.agent("Reminder", analysis={"funnel": FUNNEL})
        for place in range(campaigns):
            year = 2027 if drafts and place == 12 else 2026
            sketch = sketch.campaign(
                f"{name} {owner}.{place + 1}",
                recipients={"count": 20 + 10 * place},
                requested=None if place < drafts else 0,
                agent=("Plain", "Reminder")[place % 2],
                start=f"{5 + place % 3} Jan {year} {9 + place % 4:02}:00",
                max_attempts=1 + place % 3,
                retry_interval="1h",
            )
    return sketch


class Reader(HTMLParser):
    """Reads a page: tags opened, ids, headings, texts; and whether every tag is closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is there twice"
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.text.append(data)
            if re.fullmatch("h[1-6]", self._open[-1]):
                self.headings.append((self._open[-1], data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every such tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def words(self) -> str:
        """All text, with plain spaces."""
        return " ".join(" ".join(self.text).replace("\N{NO-BREAK SPACE}", " ").split())
