"""`check`: check a log against those rules of the rule book that can be seen in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dialsim.errors import LogError
from dialsim.interface.instants import format_instant
from dialsim.interface.phrases import brief_text, checked
from dialsim.logs import body_rules, call_rules, missing_calls, scenario_rules
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.findings import Finding, LogColumns
from dialsim.logs.log import Log, read_log
from dialsim.logs.scenario_rules import Expected
from dialsim.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Verified:
    """Findings in a log, the rules checked, and those that could not be checked, with reasons.

    At most 100 findings per rule are listed; `omitted` counts the others by rule.

    >>> found = dialsim.check(dialsim.read_log(result.calls), scenario)
    >>> found.count, len(found.findings)
    (0, 0)
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    unseen: tuple[tuple[str, str], ...]
    omitted: Mapping[str, int]

    def __repr__(self) -> str:
        listed = [f"{finding.rule}: {finding.text}" for finding in self.findings]
        return brief_text(f"dialsim.Verified, findings: {self.count:,}", listed)

    @property
    def count(self) -> int:
        """Number of all findings, listed or not."""
        return len(self.findings) + sum(self.omitted.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "findings": [
                {**asdict(one), "at": None if one.at is None else format_instant(one.at)}
                for one in self.findings
            ],
            "count": self.count,
            "omitted": dict(self.omitted),
            "checked": list(self.checked),
            "unseen": [{"rules": rules, "why": why} for rules, why in self.unseen],
        }


_COLUMNS_OF = {
    **dict.fromkeys(("C1", "C7", "P1", "Q4", "T3"), ("initiated_at",)),
    **dict.fromkeys(("Q1", "R2"), ("initiated_at", "ended_at")),
    "P2": ("status",), "P3": ("initiated_at", "caller_id"), "P5": ("status", "ended_at"),
    "Q2": ("queued_at",), "Q5": ("queued_at", "status", "ended_at"), "Q6": ("status", "ended_at"),
    "R1": ("status or initiated_at", "ended_at"), "R3": ("status or started_at", "ended_at"),
    "W1": ("created_at",), "R2, late retries": ("created_at",),
}  # fmt: skip
"""Columns without which rules can't be checked in a table of calls."""

_ALWAYS = ("A3", "A5", "C1", "C2", "C7", "C9", "D1", "F1", "F2", "F3", "P2", "P5", "Q6", "R1",
           "R2", "R3", "T3", "W1", "W4")  # fmt: skip
_NO_DIALS = "the log has no instants of dials"
_NO_ENGINE = "they rest on settings of the engine, which no log shows"


@checked(LogError)
def check(log: object, scenario: Scenario | None = None) -> Verified:
    """Check a log, or a table of calls or events, against the rules that can be seen in it.

    `log` is a `Log` or whatever `read_log` accepts: a frame of pandas or Polars, a table of Arrow,
    a file or a folder. Rules that a table lacks columns for are in `Verified.unseen`.

    >>> calls = dialsim.run(scenario, seed=7).calls[["recipient", "call", "initiated_at"]]
    >>> checked = dialsim.check(calls, scenario)
    >>> checked.count, checked.unseen[0]
    (0, ('P2, P5, Q5, Q6', 'the table has no column status'))

    Only what is certain is a finding. If a log has no dials, a call was dialled at most ten minutes
    before its answer or its end; the number of lines is `maxConcurrentCalls` if all bodies show the
    same one. A scenario that the log should follow adds how many lines there may be, and whom its
    campaigns list.
    """
    if not isinstance(log, Log):
        log = read_log(log)
    expected = None if scenario is None else Expected(scenario, log.campaigns)
    if expected is not None and log.form == "table":
        log = replace(log, campaigns=expected.named(log.campaigns))
    view = LogColumns(log)
    found: set[Finding] = {*_unreadable(log)}
    if expected is not None:
        codes = range(len(log.campaigns))
        view.most_lines = {code: most for code in codes if (most := expected.most_lines(code))}
        known = {code for code in codes if expected.blocks[code] is not None}
        requests = {code: one.schedule for code, one in enumerate(expected.blocks) if one}
        view.several_numbers = {
            code for code, one in requests.items() if one and len({*(one.caller_ids or ())}) > 1
        }
        view.listed_twice = {code for code in known if expected.lists_twice(code)}
        view.told_apart = known - view.listed_twice
        if not len(log.bodies):
            view.expected_settings = expected.settings()
        found |= {*scenario_rules.findings(view, expected)}
    found |= {*call_rules.findings(view), *missing_calls.findings(view, expected)}
    if len(log.bodies):
        found |= {*body_rules.findings(view)}
    checked, unseen = _seen(view, has_scenario=scenario is not None)
    key = sorted(found, key=lambda one: (one.at is None, one.at or 0, one.line, one.rule, one.text))
    omitted = {rule: count for rule, count in sorted(view.omitted.items()) if count}
    return Verified(tuple(key), tuple(sorted(checked)), tuple(unseen), omitted)


_RULES_OF_FIELDS = (("payload.call.callStatus", "P2"), ("status", "P2"), ("payload.call", "F1"),
                    ("payload.campaign", "F3"), ("payload.callResult", "A3"))  # fmt: skip


def _unreadable(log: Log) -> Iterator[Finding]:
    """Yield the lines whose values the interface does not have; others are only damaged."""
    for damage in log.damages:
        for field, rule in _RULES_OF_FIELDS:
            if damage.reason.startswith(field):
                yield Finding(rule, damage.line, None, None, None, damage.reason)
                break


def _seen(view: LogColumns, *, has_scenario: bool) -> tuple[set[str], list[tuple[str, str]]]:
    """Return the rules checked, and those that could not be checked with reasons."""
    log = view.log
    is_table, has_bodies = bool(log.columns), len(log.bodies) > 0
    checked = set(_ALWAYS) if has_bodies else {"P1", "P2", "P5", "R3", "W1"}
    unseen: list[tuple[str, str]] = []
    if not has_bodies:
        of_settings = ("C1", "C7", "Q6", "R1", "R2", "T3")
        if all(view.settings):
            checked |= {*of_settings}
        else:
            why = "the log has no bodies, and no scenario, which show settings of its campaigns"
            unseen.append((", ".join(of_settings), why))
        rules = "A, C2, C3, C9, D, F, W2 to W6"
        unseen.append((rules, "the log has no bodies, which show settings and results"))
    elif (view.body("sent_at") != NO_INSTANT).any():
        checked |= {"C3", "D2", "W2", "W3"}
    else:
        unseen.append(("C3, D2, W2, W3", "the log has no instants of POSTs"))
    if is_table:
        checked |= {"P1", "P3", "R2, late retries"}
    else:
        unseen += [("P1, P3, P4", _NO_DIALS), ("R2, late retries", _NO_DIALS)]
        unsure = call_rules.doubts(view)
        doubts = sorted(unsure.campaigns.items())
        unseen += [(f"R1 to R3 in {log.campaigns[code].name}", why) for code, why in doubts]
        if len(unsure.people):
            why = "they may each be two people with the same values"
            unseen.append((f"R1 to R3 of {len(unsure.people):,} people", why))
    unseen += _unlimited(view, checked)
    if has_scenario and is_table:
        checked |= {"Q2", "Q4", "Q5"}
        unseen.append(("Q3, Q7 to Q11", "the log does not show who waited"))
    else:
        unseen.append(("Q2 to Q5, Q7 to Q11", _NO_ENGINE))
    unseen += [
        ("C4 to C6, C8", "the log has no pauses, resumes and cancellations"),
        ("A1, A2, A4", "the log has no delays of analyses, nor those that failed"),
    ]
    if is_table:
        unseen = [*_without_columns(view, checked), *unseen]
    return checked - {"R2, late retries"}, unseen


def _unlimited(view: LogColumns, checked: set[str]) -> Iterator[tuple[str, str]]:
    """Add Q1 to `checked`, and yield campaigns whose number of lines is not known."""
    log, owners = view.log, call_rules.owners(view)
    unlimited = [one for one in owners if call_rules.known_limit(view, one)[0] is None]
    if len(unlimited) < len(owners):
        checked.add("Q1")
    if unlimited:
        names = ", ".join(str(log.campaigns[code].name) for one in unlimited for code in one)
        shown = {one.max_concurrent_calls for one in log.settings} - {None}
        why = "maxConcurrentCalls changed" if shown else "no body shows maxConcurrentCalls"
        yield f"Q1 in {names}", why


def _without_columns(view: LogColumns, checked: set[str]) -> Iterator[tuple[str, str]]:
    """Take rules for which a table lacks columns from `checked`, and yield them with reasons."""
    lacking: dict[str, list[str]] = {}
    for rule in sorted(checked & {*_COLUMNS_OF}):
        for names in _COLUMNS_OF[rule]:
            if not any(view.has(name) for name in names.split(" or ")):
                checked.discard(rule)
                lacking.setdefault(names, []).append(rule)
    for names, rules in lacking.items():
        # The names of the table, in which instants of a call's start and end are longer
        shown = names.replace("started_at", "call_started_at").replace("ended_at", "call_ended_at")
        yield ", ".join(rules), f"the table has no column {shown}"
