"""`check`: check a log against those rules of the rule book that can be seen in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dialsim.conformance import call_rules, trace_rules
from dialsim.conformance.table import Violation, judge
from dialsim.errors import LogError
from dialsim.interface.arguments import checked
from dialsim.interface.instants import format_instant
from dialsim.interface.phrases import brief_text
from dialsim.logs import log_rules
from dialsim.logs.log import Log, read_log
from dialsim.logs.log_table import Expected, LogTable
from dialsim.scenario.scenario import Scenario

_NEVER_CHECKED = ("A1, A2, A4", "the log shows neither delays of analyses nor analyses that failed")


@checked(LogError)
@dataclass(frozen=True, slots=True)
class Verified:
    """Violations in a log, the rules checked, and those that could not be checked, with reasons.

    At most 100 violations of a kind are listed; `omitted` counts the others by rule.

    >>> found = dialsim.check(dialsim.read_log(result.calls), scenario)
    >>> found.count, len(found.findings)
    (0, 0)
    """

    findings: tuple[Violation, ...]
    checked: tuple[str, ...]
    unseen: tuple[tuple[str, str], ...]
    omitted: Mapping[str, int]

    def __repr__(self) -> str:
        listed = [f"{finding.rule}: {finding.text}" for finding in self.findings]
        return brief_text(f"dialsim.Verified, findings: {self.count:,}", listed)

    @property
    def count(self) -> int:
        """Number of all violations, listed or not."""
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


@checked(LogError)
def check(log: object, scenario: Scenario | None = None) -> Verified:
    """Check a log, or a table of calls or events, against the rules that can be seen in it.

    `log` is a `Log` or whatever `read_log` accepts: a frame of pandas or Polars, a table of Arrow,
    a file or a folder. Rules that a table lacks columns for are in `Verified.unseen`.

    >>> calls = dialsim.run(scenario, seed=7).calls[["recipient", "call", "initiated_at"]]
    >>> checked = dialsim.check(calls, scenario)
    >>> checked.count, checked.unseen[0]
    (0, ('P5, Q1, Q6, R1, R2, W1', 'the table has no column call_ended_at'))

    Only what is certain is a finding. If a log has no dials, a call was dialled at most ten minutes
    before its answer or its end; the number of lines is `maxConcurrentCalls` if all bodies show the
    same one. A scenario that the log should follow adds how many lines there may be, and whom its
    campaigns list.
    """
    if not isinstance(log, Log):
        log = read_log(log)
    table = LogTable(log, None if scenario is None else Expected(scenario, log.campaigns))
    found, numbers, unchecked = judge(table, call_rules, log_rules, trace_rules)
    found.sort(key=lambda one: (one.at is None, one.at or 0, one.line, one.rule, one.text))
    omitted = {rule: count for rule, count in sorted(table.omitted.items()) if count}
    unseen = (*unchecked, *_in_part(table), _NEVER_CHECKED)
    return Verified(tuple(found), numbers, unseen, omitted)


def _in_part(table: LogTable) -> Iterator[tuple[str, str]]:
    """Yield rules that could not be checked for some campaigns or people, with the reason."""
    campaigns = table.campaigns
    for code, why in sorted(table.unsure.items()):
        yield f"R1 to R3 in {campaigns[code].name}", why
    if people := len(table.unsure_people):
        yield f"R1 to R3 of {people:,} people", "they may each be two people with the same values"
    unknown = [one for one in table.shared_lines if one.limits is None]
    if unknown and "lines" not in table.missing:
        names = ", ".join(str(campaigns[code].name) for one in unknown for code in one.campaigns)
        yield f"Q1 in {names}", "no body shows one constant maxConcurrentCalls"
