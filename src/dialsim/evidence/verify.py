"""`verify`: a log against the rules of the rule book that can be seen in it."""

from __future__ import annotations

from dataclasses import dataclass

from dialsim.evidence import body_rules, call_rules
from dialsim.evidence.bodies import NO_INSTANT
from dialsim.evidence.findings import Finding, View
from dialsim.evidence.log import Log


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found, which rules were looked at, and which could not be seen, and why."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    unseen: tuple[tuple[str, str], ...]


_ALWAYS = ("A3", "A5", "C1", "C2", "C7", "C9", "D1", "F1", "F2", "F3", "P2", "P5", "Q6", "R1",
           "R2", "R3", "T3", "W1", "W4")  # fmt: skip
_NO_DIALS = "the log has no instants of dials"
_NO_ENGINE = "they rest on settings of the engine, which no log shows"


def verify(log: Log) -> Verified:
    """Check a log against the rules that can be seen in it.

    Only what is certain is a finding. Where a log has no dials, a call was dialled at most ten
    minutes before its answer or its end; lines are those of `maxConcurrentCalls` if all bodies show
    the same number.
    """
    view = View(log)
    found = {*call_rules.findings(view)}
    if len(log.bodies):
        found |= {*body_rules.findings(view)}
    is_run, has_bodies = log.form == "run", len(log.bodies) > 0
    is_timed = has_bodies and bool((view.body("sent_at") != NO_INSTANT).any())
    checked = set(_ALWAYS) if has_bodies else {"P1", "P5", "R2", "R3"}
    unseen: list[tuple[str, str]] = []
    if is_run:
        checked |= {"P1", "P3"}
    else:
        unseen += [("P1, P3, P4", _NO_DIALS), ("R2, late retries", _NO_DIALS)]
    if has_bodies and not is_run:
        unseen += [
            (f"R1 to R3 in {log.campaigns[code].name}", text)
            for code, text in sorted(call_rules.doubtful(view).items())
        ]
    if is_timed:
        checked |= {"C3", "D2", "W2", "W3"}
    elif has_bodies:
        unseen.append(("C3, D2, W2, W3", "the log has no instants of POSTs"))
    limits = {one.max_concurrent_calls for one in log.settings}
    if has_bodies and len(limits - {None}) == 1:
        checked.add("Q1")
    else:
        why = "maxConcurrentCalls changed" if limits else "no body shows maxConcurrentCalls"
        unseen.append(("Q1", why))
    if not has_bodies:
        unseen.append(
            ("A, C, D, F, Q6, R1, T3, W", "the log has no bodies, which show settings and results")
        )
    unseen += [
        ("C4 to C6, C8", "the log has no pauses, resumes and cancellations"),
        ("Q2 to Q5, Q7 to Q11", _NO_ENGINE),
        ("A1, A2, A4", "the log has no delays of analyses, nor those that failed"),
    ]
    key = sorted(found, key=lambda one: (one.at is None, one.at or 0, one.line, one.rule, one.text))
    return Verified(tuple(key), tuple(sorted(checked)), tuple(unseen))
