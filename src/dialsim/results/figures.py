"""Figures of a campaign, of an organization, or of a run, each declared once.

A declaration has a figure's name, unit, meaning, and computation. Summaries, tables, the printed
summary, pages, goals, experiments and the tables of `docs/results.md` are derived from it. The
names are public.
"""

# ruff: noqa: RUF009 (a figure is declared by a call, as dataclasses.field is)

from __future__ import annotations

import hashlib
import inspect
import pickle
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import InitVar, dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from math import inf, isfinite, isnan
from numbers import Real
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from dialsim.errors import DialsimError, ExperimentError
from dialsim.interface.arguments import checked
from dialsim.interface.instants import MINUTE, duration_text, utc
from dialsim.interface.phrases import percent
from dialsim.results.bottleneck import Bottleneck
from dialsim.results.compliance import COMPLIANCE, COUNTS
from dialsim.results.counts import Fate, cost_of
from dialsim.webhooks.messages import Verdict

if TYPE_CHECKING:
    from dialsim.results.result import Result
    from dialsim.results.run_view import RunPart

T = TypeVar("T")


class Unit(StrEnum):
    """Unit of a figure, in the words of the documentation."""

    INSTANT = "instant"
    DAYS = "days"
    PEOPLE = "people"
    CALLS = "calls"
    DIALS = "dials"
    ATTEMPTS = "attempts"
    LINES = "lines"
    CONVERSATIONS = "conversations"
    RESULTS = "results"
    SHARE = "share"
    SECONDS = "s"
    MINUTES = "min"
    CURRENCY = "currency"
    PER_PERSON = "currency per person"
    PER_CONVERSATION = "currency per conversation"
    NO_NUMBER = ""

    @property
    def is_money(self) -> bool:
        """True for amounts of money, including amounts per person or conversation."""
        return self.startswith(Unit.CURRENCY.value)


class Table(StrEnum):
    """Small tables of the printed summary, in their order."""

    PEOPLE = "People"
    PEOPLE_LEFT = "People left"
    DUPLICATES = "Duplicates"
    CALLS = "Calls"
    OTHER_CALLS = "Other calls"
    ATTEMPTS = "Attempts and cost"
    MONEY = "Money"
    LINES = "Lines and queue"
    ANALYSES = "Analyses"
    WEBHOOKS = "Webhooks"
    KEPT = "Kept, not sent"
    RECEIVER = "At the receiver"


class Printed(NamedTuple):
    """Column of a printed table, and the format of its cells; without a head it is not printed."""

    table: Table
    head: str = ""
    cell: Callable[[Any], str] = lambda value: f"{value:,}" if value else ""


def _decimals(count: int) -> Callable[[float | None], str]:
    return lambda value: f"{value or 0:,.{count}f}"


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return duration_text(1000 * round(seconds, 1 if seconds < 10 else 0))


def _delay(seconds: float | None) -> str:
    return "" if seconds is None else duration_text(1000 * round(seconds, 1))


def _money(amount: float | None) -> str:
    if amount is None:
        return ""
    return f"{amount:,.2f}" if isfinite(amount) else "nobody reached"


class _Declaration(NamedTuple):
    make: Callable[[RunPart], object]
    unit: Unit
    meaning: str
    column: Printed | None
    label: str


def figure(
    make: Callable[[RunPart], T],
    unit: Unit,
    meaning: str,
    column: Printed | None = None,
    label: str = "",
) -> T:
    """Declare a figure; with a `label` the tables of experiments show it under that name."""
    declaration = _Declaration(make, unit, meaning, column, label)
    # The cast gives mypy the type of the figure, which dataclass fields do not carry.
    return cast("T", field(init=False, metadata={"figure": declaration}))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """Base of figures that are computed from a part of a run."""

    part: InitVar[RunPart]

    def __post_init__(self, part: RunPart) -> None:
        for name, declaration in _declarations(type(self)):
            # The dataclass is frozen; this is its only assignment.
            object.__setattr__(self, name, declaration.make(part))


def _declarations(declared: type[_Made]) -> list[tuple[str, _Declaration]]:
    return [(part.name, part.metadata["figure"]) for part in fields(declared)
            if "figure" in part.metadata]  # fmt: skip


def _instant(at: float) -> datetime | None:
    """Return an instant as a datetime; None for an infinite one."""
    return utc(int(at)) if isfinite(at) else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _cost_of_dials(part: RunPart) -> float | None:
    # A call withdrawn before it rang is not charged.
    dials = part.charges.dials - part.charges.withdrawn
    return cost_of(part.costs, dials, 0, 0) if part.costs else None


def _cost_of_minutes(part: RunPart) -> float | None:
    return cost_of(part.costs, 0, part.charges.increments, 0) if part.costs else None


def _cost_of_people(part: RunPart) -> float | None:
    return cost_of(part.costs, 0, 0, part.charges.answered) if part.costs else None


def _cost(part: RunPart) -> float | None:
    if part.costs is None:
        return None
    of_calls = (_cost_of_dials(part), _cost_of_minutes(part), _cost_of_people(part))
    return sum(cost or 0.0 for cost in of_calls) + part.line_cost + part.fixed_cost


def _cost_per(part: RunPart, count: int) -> float | None:
    """Return the cost per unit: infinite if there was a cost but no unit, None without either."""
    cost = _cost(part)
    if cost is None or not (cost or count):
        return None
    # Infinite, not None: money was spent and no person reached, which must sort as the worst.
    return cost / count if count else inf


def _net_value(part: RunPart) -> float | None:
    return None if part.value is None else part.value - (_cost(part) or 0.0)


def _unfinished(part: RunPart) -> int:
    calls = part.calls
    over = calls.ended() + calls.dropped("queue_timeout", "cancelled", "deleted", "expired")
    return calls.by_end.total() - over


def _reach_by_attempt(part: RunPart) -> tuple[float, ...]:
    reached = [part.calls.reached[k] for k in sorted(part.calls.reached)]
    return tuple(int(count) / part.people.people for count in np.cumsum(reached))


def _value_by_day(part: RunPart) -> tuple[float, ...]:
    days = part.value_by_day
    return () if days is None else tuple(np.cumsum(days).tolist())


@dataclass(frozen=True, slots=True)
class StepCount:
    """Number of an agent's analyzed conversations that reached a funnel step.

    `cost_per` is the cost of all calls of the part per such conversation: infinite for a cost
    without a conversation, None without costs.
    """

    agent: str
    step: str
    reached: int
    cost_per: float | None = None


@dataclass(frozen=True, slots=True)
class ValueCount:
    """Number of an agent's analyzed conversations with a value in a custom field."""

    agent: str
    field: str
    value: str
    count: int


def _verdict(verdict: Verdict) -> Callable[[RunPart], int]:
    return lambda part: part.analyses.verdicts[verdict]


def _sent(part: RunPart) -> int:
    return part.deliveries.fates.total() - part.deliveries.fates[Fate.WITHOUT_URL]


def _fate(fate: Fate) -> Callable[[RunPart], int]:
    return lambda part: part.deliveries.fates[fate]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisFigures(_Made):
    """State of the conversations' analyses at the end.

    The figures from `analyzed` to `pending` add up to `conversations`.
    """

    # fmt: off
    conversations: int = figure(lambda p: p.analyses.verdicts.total(), Unit.CONVERSATIONS,
        "calls that were answered and have ended")
    analyzed: int = figure(_verdict(Verdict.ANALYZED), Unit.CONVERSATIONS, "have an analysis",
        Printed(Table.ANALYSES, "analyzed"))
    no_conversation: int = figure(_verdict(Verdict.NO_CONVERSATION), Unit.CONVERSATIONS,
        "nobody spoke", Printed(Table.ANALYSES, "nobody spoke"))
    unavailable: int = figure(_verdict(Verdict.UNAVAILABLE), Unit.CONVERSATIONS,
        "no analysis could be made", Printed(Table.ANALYSES, "unavailable"))
    not_analyzed: int = figure(_verdict(Verdict.NOT_ANALYZED), Unit.CONVERSATIONS,
        "the agent has no analysis", Printed(Table.ANALYSES, "not analyzed"))
    failed: int = figure(_verdict(Verdict.FAILED), Unit.CONVERSATIONS, "the analysis failed",
        Printed(Table.ANALYSES, "failed"))
    pending: int = figure(_verdict(Verdict.PENDING), Unit.CONVERSATIONS,
        "the analysis was not there when the run ended", Printed(Table.ANALYSES, "pending"))
    reanalyses: int = figure(lambda p: p.analyses.reanalyses, Unit.RESULTS,
        "results of re-analyses (A5)", Printed(Table.ANALYSES, "again"))
    funnel: tuple[StepCount, ...] = figure(
        lambda p: tuple(StepCount(*key, n, _cost_per(p, n)) for key, n in p.analyses.steps.items()),
        Unit.NO_NUMBER, "`agent`, `step`, how many analyzed conversations `reached` it, and "
        "`cost_per`: cost ÷ reached, or null")
    fields: tuple[ValueCount, ...] = figure(
        lambda p: tuple(ValueCount(*key, count) for key, count in p.analyses.values.items()),
        Unit.NO_NUMBER, "`agent`, `field`, `value`, and its `count`")
    # fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFigures(_Made):
    """Results sent to the webhook, re-analyses included.

    The figures from `at_first_try` to `pending` add up to `results`.
    """

    # fmt: off
    results: int = figure(_sent, Unit.RESULTS, "sent at least once", Printed(Table.WEBHOOKS, "all"))
    at_first_try: int = figure(_fate(Fate.AT_FIRST_TRY), Unit.RESULTS,
        "answered by a 2xx within 10 s at the first POST", Printed(Table.WEBHOOKS, "first try"))
    after_retries: int = figure(_fate(Fate.AFTER_RETRIES), Unit.RESULTS,
        "answered by a 2xx within 10 s at a later POST", Printed(Table.WEBHOOKS, "retried"))
    lost: int = figure(_fate(Fate.LOST), Unit.RESULTS, "failed three times (W2)",
        Printed(Table.WEBHOOKS, "lost"), label="webhooks lost")
    pending: int = figure(_fate(Fate.PENDING), Unit.RESULTS,
        "still to be tried again when the run ended", Printed(Table.WEBHOOKS, "pending"))
    received_though_lost: int = figure(lambda p: p.deliveries.lost_but_received, Unit.RESULTS,
        "lost results that the receiver accepted, but answered too late (W5)")
    duplicated: int = figure(lambda p: p.deliveries.duplicated, Unit.RESULTS,
        "accepted more than once", Printed(Table.RECEIVER, "duplicated"))
    out_of_order: int = figure(lambda p: p.deliveries.out_of_order, Unit.RESULTS,
        "accepted after a newer result of the same person", Printed(Table.RECEIVER, "out of order"))
    without_url: int = figure(_fate(Fate.WITHOUT_URL), Unit.RESULTS, "made and kept, not sent (W6)",
        Printed(Table.KEPT, "results"))
    delay_mean_seconds: float | None = figure(lambda p: p.deliveries.delays.mean, Unit.SECONDS,
        "mean time from the result to its first arrival at the receiver; null without any",
        Printed(Table.RECEIVER, "mean delay", _delay))
    delay_p95_seconds: float | None = figure(lambda p: p.deliveries.delays.p95, Unit.SECONDS,
        "95 % quantile of this time", Printed(Table.RECEIVER, "95 % within", _delay))
    # fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(_Made):
    """Figures of a campaign, of an organization, or of the whole run."""

    # fmt: off
    finish: datetime | None = figure(lambda p: _instant(p.finish), Unit.INSTANT,
        "instant at which calling had settled everybody, see "
        "[below](#when-has-a-campaign-finished); of several campaigns the last, null if one has "
        "not finished")
    final_at: datetime | None = figure(lambda p: _instant(p.final_at), Unit.INSTANT,
        "instant of the final status, even if people were lost; of several campaigns the last, "
        "null while one is not final")
    calling_days: int = figure(lambda p: len(np.unique(p.calls.days)), Unit.DAYS,
        "Thai dates on which at least one call was dialled")
    people: int = figure(lambda p: p.people.people, Unit.PEOPLE,
        "recipients, each in exactly one [state](#recipients)", Printed(Table.PEOPLE, "all"))
    people_reached: int = figure(lambda p: p.people.reached, Unit.PEOPLE, "a call was answered",
        Printed(Table.PEOPLE, "reached"), label="people reached")
    people_exhausted: int = figure(lambda p: p.people.exhausted, Unit.PEOPLE,
        "all attempts were made, none was answered", Printed(Table.PEOPLE, "exhausted"))
    people_expired: int = figure(lambda p: p.people.expired, Unit.PEOPLE,
        "`endDateTime` came first (C7)", Printed(Table.PEOPLE, "expired"))
    people_cancelled: int = figure(lambda p: p.people.cancelled, Unit.PEOPLE,
        "the campaign was cancelled or deleted first (C6, C8)", Printed(Table.PEOPLE, "cancelled"))
    people_lost: int = figure(lambda p: p.people.expired + p.people.cancelled, Unit.PEOPLE,
        "expired or cancelled",
        Printed(Table.PEOPLE), label="people lost")
    people_stalled: int = figure(lambda p: p.people.stalled, Unit.PEOPLE,
        "still to be called, but nothing could ever happen again (T5)",
        Printed(Table.PEOPLE_LEFT, "stalled"))
    people_pending: int = figure(lambda p: p.people.pending, Unit.PEOPLE,
        "still to be called, or in a call, when the run ended",
        Printed(Table.PEOPLE_LEFT, "pending"))
    people_unscheduled: int = figure(lambda p: p.people.unscheduled, Unit.PEOPLE,
        "the campaign was never scheduled", Printed(Table.PEOPLE_LEFT, "unscheduled"))
    people_removed: int = figure(lambda p: p.people.removed, Unit.PEOPLE,
        "dropped as duplicates (D3), not among `people`",
        Printed(Table.DUPLICATES, "removed"))
    reach_share: float | None = figure(lambda p: _share(p.people.reached, p.people.people),
        Unit.SHARE, "reached ÷ people", Printed(Table.PEOPLE), label="share reached")
    reach_by_attempt: tuple[float, ...] = figure(_reach_by_attempt, Unit.NO_NUMBER,
        "shares of people reached by attempt 1, 2, …, up to the last one made; histories count")
    calls: int = figure(lambda p: p.calls.by_end.total(), Unit.CALLS,
        "all calls created, without histories", Printed(Table.CALLS, "all"))
    calls_completed: int = figure(lambda p: p.calls.ended("COMPLETED"), Unit.CALLS,
        "ended `COMPLETED`", Printed(Table.CALLS, "completed"))
    calls_no_answer: int = figure(lambda p: p.calls.ended("NO_ANSWER"), Unit.CALLS,
        "ended `NO_ANSWER`", Printed(Table.CALLS, "no answer"))
    calls_busy: int = figure(lambda p: p.calls.ended("BUSY"), Unit.CALLS, "ended `BUSY`",
        Printed(Table.CALLS, "busy"))
    calls_failed: int = figure(lambda p: p.calls.ended("FAILED"), Unit.CALLS, "ended `FAILED`",
        Printed(Table.CALLS, "failed"))
    queue_timeouts: int = figure(lambda p: p.calls.dropped("queue_timeout"), Unit.CALLS,
        "dropped by a timeout in the queue (Q5)", Printed(Table.OTHER_CALLS, "queue timeout"))
    calls_cancelled: int = figure(lambda p: p.calls.dropped("cancelled", "deleted"), Unit.CALLS,
        "dropped while waiting (C6, C8)", Printed(Table.OTHER_CALLS, "cancelled"))
    calls_expired: int = figure(lambda p: p.calls.dropped("expired"), Unit.CALLS,
        "dropped while waiting (C7)", Printed(Table.OTHER_CALLS, "expired"))
    calls_unfinished: int = figure(_unfinished, Unit.CALLS,
        "waiting or under way when the run ended; the figures from `calls_completed` to this "
        "one add up to `calls`",
        Printed(Table.OTHER_CALLS, "unfinished"))
    dials: int = figure(lambda p: p.charges.dials, Unit.DIALS,
        "each time a call became `INITIATED`")
    dials_withdrawn: int = figure(lambda p: p.charges.withdrawn, Unit.DIALS,
        "dials of calls that were dropped before they rang (C4, C6, C7)")
    attempts: int = figure(lambda p: p.calls.ended(), Unit.CALLS, "dialled and ended (P5)",
        Printed(Table.ATTEMPTS, "attempts"), label="attempts")
    attempts_per_person_mean: float | None = figure(
        lambda p: _share(p.calls.ended(), p.people.people), Unit.ATTEMPTS,
        "attempts of this run ÷ people", Printed(Table.ATTEMPTS, "per person", _decimals(2)))
    lines_in_use_mean: float | None = figure(lambda p: p.occupancy.mean, Unit.LINES,
        "mean number of busy lines while a window was open, from the start to the final status; "
        "pauses count, closed days do not; of several campaigns, while any window was open",
        Printed(Table.LINES, "mean in use", _decimals(1)), label="lines in use")
    lines_in_use_peak: int = figure(lambda p: p.occupancy.busy.peak, Unit.LINES,
        "largest number of busy lines at any time", Printed(Table.LINES, "peak", str))
    lines_capacity_share: float | None = figure(lambda p: p.occupancy.share, Unit.SHARE,
        "line time used while a window was open ÷ line time that the organization's "
        "`maxConcurrentCalls` allowed; above 1 where the limit was lowered during calls",
        Printed(Table.LINES, "of capacity", lambda share: percent(share or 0)))
    queue_wait_mean_seconds: float | None = figure(lambda p: p.waits.mean, Unit.SECONDS,
        "mean time from `QUEUED` to the dial or the timeout; interrupted waits do not count; "
        "null without any",
        Printed(Table.LINES, "mean wait", _wait), label="mean wait, seconds")
    queue_wait_p95_seconds: float | None = figure(lambda p: p.waits.p95, Unit.SECONDS,
        "95 % quantile of this time", Printed(Table.LINES, "95 % within", _wait))
    talk_minutes: float = figure(lambda p: p.charges.talk_ms / MINUTE, Unit.MINUTES,
        "length of the conversations that ended",
        Printed(Table.ATTEMPTS, "talk minutes", _decimals(0)), label="talk minutes")
    cost: float | None = figure(_cost, Unit.CURRENCY,
        "what calls, lines and the run cost, see [below](#money); null if the scenario names no "
        "costs",
        Printed(Table.ATTEMPTS, "cost", _money), label="cost")
    cost_of_dials: float | None = figure(_cost_of_dials, Unit.CURRENCY,
        "the part of `cost` for dials")
    cost_of_minutes: float | None = figure(_cost_of_minutes, Unit.CURRENCY,
        "the part for conversations")
    cost_of_people: float | None = figure(_cost_of_people, Unit.CURRENCY,
        "the part for people reached")
    cost_of_lines: float | None = figure(lambda p: p.line_cost if p.costs else None, Unit.CURRENCY,
        "the part for lines")
    cost_fixed: float | None = figure(lambda p: p.fixed_cost if p.costs else None, Unit.CURRENCY,
        "the part for the run")
    cost_per_reached: float | None = figure(lambda p: _cost_per(p, p.charges.answered),
        Unit.PER_PERSON, "cost ÷ people reached by calls of the run; null without costs; with a "
        "cost and nobody reached infinite, in JSON null",
        Printed(Table.MONEY, "per reached", _money), label="cost per reached")
    value: float | None = figure(lambda p: p.value, Unit.CURRENCY,
        "what the results are worth, see [below](#money); null if the scenario names no `value`",
        Printed(Table.MONEY, "value", _money), label="value")
    value_by_day: tuple[float, ...] = figure(_value_by_day, Unit.NO_NUMBER,
        "value of results until the end of day 1, 2, … up to the last that brought any; day 1 is "
        "the Thai date on which calling, or the run, begins")
    net_value: float | None = figure(_net_value, Unit.CURRENCY,
        "value − cost; null if the scenario names no `value`",
        Printed(Table.MONEY, "net value", _money), label="net value")
    currency: str | None = figure(lambda p: p.costs.currency if p.costs else None, Unit.NO_NUMBER,
        "currency of `cost` and the other amounts")
    held_back: Bottleneck | None = figure(lambda p: p.held_back, Unit.NO_NUMBER,
        "see [below](#what-held-it-back)")
    analyses: AnalysisFigures = figure(lambda p: AnalysisFigures(part=p), Unit.NO_NUMBER,
        "a block, see [below](#analyses-and-webhooks)")
    webhooks: WebhookFigures = figure(lambda p: WebhookFigures(part=p), Unit.NO_NUMBER,
        "a block, see [below](#analyses-and-webhooks)")
    # fmt: on


@dataclass(frozen=True, slots=True)
class Figure:
    """Declared figure; `name` is its column in tables, such as `webhooks_lost`.

    In Python and JSON it is called `key`, inside `block` if it belongs to analyses or webhooks.
    `make` computes it from a part.
    """

    name: str
    key: str
    block: str
    unit: Unit
    meaning: str
    column: Printed | None
    label: str
    is_float: bool
    make: Callable[[RunPart], Any]

    def of(self, figures: Figures) -> Any:
        """Return the figure's value."""
        return getattr(getattr(figures, self.block) if self.block else figures, self.key)


def _figures(declared: type[_Made], block: str = "") -> list[Figure]:
    types = {part.name: str(part.type) for part in fields(declared)}
    return [
        Figure(
            name=f"{block}_{key}" if block else key,
            key=key,
            block=block,
            unit=declaration.unit,
            meaning=declaration.meaning,
            column=declaration.column,
            label=declaration.label,
            is_float=types[key].startswith("float"),
            make=declaration.make,
        )
        for key, declaration in _declarations(declared)
    ]


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class OwnFigure:
    """Figure of a run that a function computes from its `Result`, for the argument `figures`.

    `unit` is one of the units of figures (`s`, `min`, `share`, `people`, `calls`, `currency`, …) or
    empty; `label` is shown in plots and printed tables. The function returns a number, NaN where
    the figure is not defined. It runs in the workers, so it must not depend on the state of this
    process.

    >>> late = dialsim.OwnFigure(lambda result: len(result.calls), unit="calls", label="all calls")
    >>> runs = dialsim.replicate(scenario, 3, figures={"all_calls": late}, jobs=1)
    >>> bool(runs.runs.all_calls.min() >= 40)
    True
    """

    function: Callable[[Result], float]
    unit: str = ""
    label: str = ""
    name: str = ""

    def __reduce__(self) -> tuple[Callable[[bytes], OwnFigure], tuple[bytes]]:
        # cloudpickle, which Dask uses too: pickle rejects lambdas, and functions of a notebook
        from cloudpickle import dumps

        return _own_figure, (dumps((self.function, self.unit, self.label, self.name)),)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of name, source, and the values that the function is bound to."""
        code = getattr(self.function, "__code__", None)
        if code is None:
            from cloudpickle import dumps

            said = dumps(self.function)
        else:
            try:
                source = inspect.getsource(self.function)
            except (OSError, TypeError):  # made by exec, or at a prompt
                source = ""
            cells = [cell.cell_contents for cell in self.function.__closure__ or ()]
            # One line may have several lambdas, which differ only in their code
            bound = (self.function.__defaults__, cells, code.co_code, code.co_consts, code.co_names)
            said = repr((source, *map(_plain, bound))).encode()
        return hashlib.sha256(self.name.encode() + b"\0" + said).hexdigest()

    def value(self, result: Result) -> float:
        """Return the figure of a run. Raises ExperimentError that names the figure."""
        try:
            found = self.function(result)
        except Exception as error:
            raise ExperimentError(
                f"the figure {self.name} raised {type(error).__name__}: {error}"
            ) from error
        if isinstance(found, bool | np.bool_) or not isinstance(found, Real):
            raise ExperimentError(f"the figure {self.name} returned {found!r:.60}, not a number")
        if self.unit == Unit.SHARE and not (isnan(found) or 0 <= found <= 1):
            raise ExperimentError(
                f"the figure {self.name} returned {found}, not a share between 0 and 1"
            )
        return float(found)


def _own_figure(packed: bytes) -> OwnFigure:
    """Return a figure from its pickled fields."""
    return OwnFigure(*pickle.loads(packed))


def _plain(value: object) -> str:
    """Return a text of a value for a digest; equal values give equal texts in all processes."""
    if isinstance(value, frozenset):  # iteration order differs between processes
        return _plain(sorted(map(_plain, value)))
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_plain, value))})"
    if isinstance(value, CodeType):
        return _plain((value.co_code, value.co_consts, value.co_names))
    text = repr(value)
    return text if " at 0x" not in text else getattr(value, "__qualname__", type(value).__name__)


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TAKEN = ("replication", "organization", "campaign", "variant", "runs", "unfinished")


def declared(
    functions: Mapping[str, Callable[[Result], float] | OwnFigure],
) -> tuple[OwnFigure, ...]:
    """Register figures that functions compute, and return them.

    Raises ExperimentError for invalid ones.
    """
    made = []
    for name, given in functions.items():
        own = given if isinstance(given, OwnFigure) else OwnFigure(given)
        if not _NAME.fullmatch(name):
            raise ExperimentError(f"{name!r} cannot name a figure: use letters, digits and _")
        prefixes = (*CUMULATIVE, *OF_AGENTS, COMPLIANCE)
        has_meaning = is_instant(name) or is_done_by(name) or name.startswith(prefixes)
        if has_meaning or name in (*_BY_NAME, *_TAKEN):
            raise ExperimentError(f"there is a figure or column {name} already: use another name")
        if own.unit not in [*Unit] or own.unit == Unit.INSTANT:
            units = ", ".join(unit for unit in Unit if unit not in ("", Unit.INSTANT))
            raise ExperimentError(f"{name}: there is no unit {own.unit!r}; there are {units}")
        made.append(replace(own, name=name))
    OWN_FIGURES.update({own.name: own for own in made})
    return tuple(made)


BLOCKS = {"": Figures, "analyses": AnalysisFigures, "webhooks": WebhookFigures}
"""Blocks of figures by name; the figures of calls have no block name."""
FIGURES = tuple(figure for block, made in BLOCKS.items() for figure in _figures(made, block))
"""All figures, in the order of tables and of JSON."""
_BY_NAME = {figure.name: figure for figure in FIGURES}
_UNITS = {figure.name: figure.unit for figure in FIGURES if figure.unit is not Unit.NO_NUMBER}
NUMBERS = tuple(_UNITS)
"""Names of the figures that are numbers or instants."""
INSTANTS = tuple(name for name, unit in _UNITS.items() if unit is Unit.INSTANT)
"""Names of the figures that are instants, in ms since 1970; tables also have them in seconds."""
MAIN = {
    figure.name: figure.label
    for table in Table
    for figure in FIGURES
    if figure.label and figure.column and figure.column.table is table
}
"""Figures in the tables of experiments, with their labels."""

OWN_FIGURES: dict[str, OwnFigure] = {}
"""Figures by functions, by name; the latest declaration of a name gives unit and label."""

REACH = "reach_by_attempt_"
"""Prefix of the figures of single attempts: `reach_by_attempt_2`."""
VALUE_BY_DAY = "value_by_day_"
"""Prefix of the figures of single days: `value_by_day_3`."""
CUMULATIVE = (REACH, VALUE_BY_DAY)
"""Prefixes of the figures that keep their value beyond the last attempt or day of a run."""
FUNNEL = "funnel_"
"""Prefix of the figures of a funnel's steps: `funnel_<agent>_<step>`."""
COST_PARTS = {
    "cost_of_dials": "dials",
    "cost_of_minutes": "minutes",
    "cost_of_people": "people reached",
    "cost_of_lines": "lines",
    "cost_fixed": "fixed",
}
"""Figures that add up to the cost, with their names in texts."""
COST_PER = "cost_per_funnel_"
"""Prefix of the cost per conversation that reached a step."""
FIELD = "field_"
"""Prefix of the figures of field values: `field_<agent>_<name>_<value>`."""
OF_AGENTS = (FUNNEL, COST_PER, FIELD)
"""Prefixes of the figures that depend on the agents."""
CHARGED = ("talk_minutes", "cost", "cost_per_reached", "net_value")
"""Figures that depend on the length of conversations, beside the prefix `COST_PER`."""
DONE_BY = "_by_"
"""Infix of the share of runs that are done by the end of a day: `finish_by_2026-01-05`."""
_COUNTS_OF_PEOPLE = tuple(f"_{name}" for name in COUNTS if name.startswith("people"))
_AFTER_CALLS = (*OF_AGENTS, *(f"{block}_" for block in BLOCKS if block))


def ordinal_of(name: str, prefix: str) -> int | None:
    """Return the attempt in `reach_by_attempt_…` or the day in `value_by_day_…`; None for any
    other name.
    """
    match = re.fullmatch(rf"{prefix}([1-9][0-9]*)", name)
    return int(match[1]) if match else None


def is_worth(column: str) -> bool:
    """True for a figure of the value of results, which may be negative."""
    return column in ("value", "net_value") or column.startswith(VALUE_BY_DAY)


def unit_of(column: str) -> Unit:
    """Return the unit of a figure, by its name or its column in a table of experiments."""
    if column.startswith(REACH) or is_done_by(column):
        return Unit.SHARE
    if column.startswith(VALUE_BY_DAY):
        return Unit.CURRENCY
    if column.startswith(COMPLIANCE):
        return Unit.PEOPLE if column.endswith(_COUNTS_OF_PEOPLE) else Unit.DIALS
    if column.startswith((FUNNEL, FIELD)):
        return Unit.CONVERSATIONS
    if column.startswith(COST_PER):
        return Unit.PER_CONVERSATION
    own = OWN_FIGURES.get(column)
    name = column.removesuffix("_seconds") if is_instant(column) else column
    return _UNITS[name] if own is None else Unit(own.unit)


def unit_text(column: str) -> str:
    """Return the unit of a column's numbers; instants are counted in seconds from the start."""
    return "s" if is_instant(column) else unit_of(column).value


def is_instant(column: str) -> bool:
    """Return True if a figure or a column, such as `finish_seconds`, is an instant."""
    return column.removesuffix("_seconds") in INSTANTS


def is_done_by(column: str) -> bool:
    """True for a share of runs that are done by the end of a day: `finish_by_2026-01-05`."""
    instant, infix, _ = column.partition(DONE_BY)
    return bool(infix) and instant in INSTANTS


def follows_calls(column: str) -> bool:
    """Return True if analyses or webhooks determine the figure; they never influence calls
    (rules A, W).
    """
    return column.startswith(_AFTER_CALLS) or is_worth(column)


def number_values(
    value: Callable[[Figure], Any], asked: Collection[str] | None = None
) -> dict[str, Any]:
    """Return all figures that are numbers or instants by name, those of attempts and steps
    included.

    `value` computes a figure. With `asked` only the figures of these names are computed; asking for
    one attempt, step or field value includes all of its kind.
    """

    def plain(in_block: bool) -> dict[str, Any]:
        return {
            figure.name: value(figure)
            for figure in FIGURES
            if bool(figure.block) is in_block and figure.unit is not Unit.NO_NUMBER
            if asked is None or figure.name in asked
        }

    def listed(name: str, *prefixes: str) -> tuple[Any, ...]:
        wanted = asked is None or any(other.startswith(prefixes) for other in asked)
        found: tuple[Any, ...] = value(_BY_NAME[name]) if wanted else ()
        return found

    series = {prefix: listed(prefix.rstrip("_"), prefix) for prefix in CUMULATIVE}
    steps = listed("analyses_funnel", FUNNEL, COST_PER)
    fields = listed("analyses_fields", FIELD)
    return (
        plain(in_block=False)
        | {
            f"{prefix}{k}": part
            for prefix, all_ in series.items()
            for k, part in enumerate(all_, 1)
        }
        | plain(in_block=True)
        | {f"{FUNNEL}{step.agent}_{step.step}": step.reached for step in steps}
        | {f"{COST_PER}{step.agent}_{step.step}": step.cost_per for step in steps}
        | {f"{FIELD}{found.agent}_{found.field}_{found.value}": found.count for found in fields}
    )


def cost_parts(amounts: Mapping[str, float | None]) -> dict[str, float]:
    """Return the parts of a cost by name; `amounts` are the figures `cost` and `COST_PARTS`."""
    parts = {name: amounts[name] or 0.0 for name in COST_PARTS}
    # The mean cost is estimated from the expected length of conversations, the mean cost of minutes
    # from their actual length. The difference goes here, so that the parts add up.
    parts["cost_of_minutes"] += (amounts["cost"] or 0.0) - sum(parts.values())
    return {COST_PARTS[name]: part for name, part in parts.items()}
