"""Warnings: what a scenario may have, but hardly on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialsim.scenario.loading import loads
from dialsim.testing import Sketch

from .files import SMALL

PHONES = (
    "Thai numbers that begin with 06, 08 or 09 have 10 digits, those with 02 to 05 or 07 have 9, "
    "and +66 may stand in place of the 0; foreign ones begin with + and the code of their country."
)


ACME = Sketch(2, setup_time=None).agent("Reminder")
"""An organization without campaigns, whose people behave as built in."""


def naming(sketch: Sketch, behaviour: str = "default", **segments: int) -> Sketch:
    """With a behaviour that names these segments."""
    return sketch.behaviour(behaviour, answered_odds={"bySegment": segments})


def listed(*tels: str) -> tuple[str, ...]:
    """The warnings of a campaign that calls these numbers."""
    people = [{"tel": tel} for tel in tels]
    return ACME.campaign("January", *people, agent="Reminder").scenario().warnings


def from_csv(folder: Path, content: str, sketch: Sketch = ACME) -> tuple[str, ...]:
    """The warnings of a campaign that calls the people of a file."""
    (folder / "people.csv").write_text(content, encoding="utf-8")
    january = sketch.campaign("January", recipients={"file": "people.csv"}, agent="Reminder")
    return loads(january.text, folder=folder).warnings


def bearing(sketch: Sketch, **segments: float) -> tuple[str, ...]:
    """The warnings where generated people have these segments."""
    recipients = {"count": 10, "segments": segments}
    return sketch.campaign("January", recipients=recipients, agent="Reminder").scenario().warnings


# -- instants -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "utc", "thai", "example"),
    [
        ("2026-01-05T09:00:00", "2026-01-05 16:00", "2026-01-05 09:00", "2026-01-05T09:00:00"),
        ("2026-01-05", "2026-01-05 07:00", "2026-01-05 00:00", "2026-01-05T00:00:00"),
        ("2026-01-05 19:30:15", "2026-01-06 02:30:15", "2026-01-05 19:30:15",
         "2026-01-05T19:30:15"),
        ("9999-12-31T20:00", "9999-12-31 23:59:59.999", "9999-12-31 20:00", "9999-12-31T20:00:00"),
    ],
)  # fmt: skip
def test_c9_an_instant_of_a_schedule_without_an_offset_is_told_in_both_readings(
    text: str, utc: str, thai: str, example: str
) -> None:
    start = f"startDateTime: {text}"
    assert loads(SMALL.replace("startDateTime: 2026-01-05T02:00:00Z", start)).warnings == (
        "Without an offset an instant of a schedule is UTC, as in the interface: startDateTime "
        f"{text} of campaign January of Acme is {utc} in Thai time, not {thai}. For Thai time "
        f"write +07:00 behind it: {example}+07:00.",
    )


def test_c9_many_instants_without_an_offset_are_one_warning() -> None:
    campaigns = "".join(
        f"      - {{name: C{number}, agent: Reminder, recipients: [], schedule: "
        f"{{startDateTime: 2026-01-05T02:00:00+00:00, endDateTime: 2026-01-{number:02}}}}}\n"
        for number in range(10, 20)
    )
    body = "{startDateTime: 2026-01-05T02:00}"
    timeline = (
        "    timeline:\n      - {at: 2026-01-05T02:00:00Z, action: schedule, campaign: January, "
        f"body: {body}}}\n"
    )
    (warning,) = loads(SMALL + campaigns + timeline).warnings
    assert "endDateTime 2026-01-10 of campaign C10 of Acme is 2026-01-10 07:00" in warning
    assert "; endDateTime 2026-01-12 of campaign C12 of Acme" in warning
    assert " and 8 more. For Thai time write" in warning
    (warning,) = loads(SMALL + timeline).warnings
    assert (
        "startDateTime 2026-01-05T02:00 of campaign January of Acme is 2026-01-05 09:00" in warning
    )


def test_c9_an_instant_before_1970_is_past_in_either_reading() -> None:
    start = SMALL.replace("startDateTime: 2026-01-05T02:00:00Z", "startDateTime: 1960-01-05")
    assert loads(start).warnings == ()


def test_an_override_without_an_offset_is_told_like_the_file() -> None:
    override = "organizations.Acme.campaigns.January.schedule.endDateTime=2026-02-05T17:00"
    (warning,) = loads(SMALL, overrides=[override]).warnings
    assert "endDateTime 2026-02-05T17:00 of campaign January of Acme is 2026-02-06 00:00" in warning


# -- phone numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tel",
    [
        *("0612345678", "0812345678", "0912345678", "+66812345678"),
        *("021234567", "032123456", "043123456", "053123456", "074123456", "+6621234567"),
        *("+6561234567", "+14155550100", "+85291234567"),
    ],
)
def test_a_number_that_somebody_may_have_gets_no_warning(tel: str) -> None:
    assert listed(tel) == ()


@pytest.mark.parametrize(
    "tel",
    [
        *("081234567", "08123456789", "0212345678", "02123456", "0112345678", "061234567"),
        *("0000000000", "191", "1669", "1800123456", "66812345678", "812345678", "00812345678"),
        *("+660812345678", "+6681234567", "+661234567890", "+0812345678", "+123456"),
        *("+1234567890123456", "12345678901234567890", "6"),
    ],
)
def test_a_number_that_nobody_can_have_is_told(tel: str) -> None:
    assert listed(tel) == (
        "Campaign January of Acme calls a number of no plausible length or prefix: "
        f"{tel} (recipients.0). {PHONES}",
    )


def test_many_numbers_that_nobody_can_have_are_one_warning_with_the_first_places(
    tmp_path: Path,
) -> None:
    rows = "".join(f"05{number:08d}\n" for number in range(1200))
    (warning,) = from_csv(tmp_path, f"tel\n0812345678\n\n{rows}")
    assert warning == (
        "Campaign January of Acme calls 1,200 numbers of no plausible length or prefix: 0500000000 "
        "(people.csv:4), 0500000001 (people.csv:5), 0500000002 (people.csv:6) and 1,197 more. "
        f"{PHONES}"
    )


@pytest.mark.parametrize("other", ["+66812345678", "66812345678", "812345678", "+660812345678"])
def test_a_number_in_two_spellings_is_told(tmp_path: Path, other: str) -> None:
    warnings = from_csv(tmp_path, f"tel\n0812345678\n0812345679\n{other}\n")
    assert warnings[0] == (
        "Campaign January of Acme has a recipient with the number of an earlier recipient, such "
        f"as 0812345678 (people.csv:2) and {other} (people.csv:4); each is called."
    )


def test_many_numbers_in_two_spellings_are_one_warning() -> None:
    tels = [f"{front}81234567{n}" for front in ("+66", "0") for n in range(5)]
    assert listed(*tels, "+6561234567") == (
        "Campaign January of Acme has 5 recipients with the number of an earlier recipient, such "
        "as +66812345670 (recipients.0) and 0812345670 (recipients.5); each is called.",
    )


def test_the_same_number_in_two_campaigns_is_nobodys_slip() -> None:
    january = ACME.campaign("January", {"tel": "0812345678"}, agent="Reminder")
    both = january.campaign("February", {"tel": "+66812345678"}, agent="Reminder", requested=None)
    assert both.scenario().warnings == ()


# -- segments -------------------------------------------------------------------------------------


def test_a_segment_that_no_behaviour_of_the_agent_names_is_told() -> None:
    assert bearing(naming(ACME, vip=2), vip=0.1, mass=0.9) == (
        "Campaign January of Acme: bySegment of behaviour default does not name mass (a share of "
        "0.9); their people answer as if they had no segment. If that is intended, write there: "
        "mass: 1.",
    )
    assert bearing(naming(ACME, vip=2, mass=1), vip=0.1, mass=0.9) == ()


def test_segments_of_a_file_are_told_with_their_sizes_and_places(tmp_path: Path) -> None:
    rows = "0812345670,vip\n0812345671,VIP\n0812345672,\n0812345673,msas\n0812345674,msas\n"
    rows += "".join(f"081234568{n},x{n}\n" for n in range(3))
    assert from_csv(tmp_path, f"tel,segment\n{rows}", naming(ACME, vip=2, mass=1)) == (
        "Campaign January of Acme: bySegment of behaviour default does not name VIP (1 recipient "
        "in people.csv:3; did you mean vip?), msas (2 recipients, the first in people.csv:5; did "
        "you mean mass?), x0 (1 recipient in people.csv:7) and 2 more; their people answer as if "
        "they had no segment. If that is intended, write there: VIP: 1.",
    )


def test_segments_are_for_the_tables_where_no_behaviour_names_any() -> None:
    assert bearing(naming(ACME), vip=0.1, mass=0.9) == ()
    assert bearing(ACME, vip=0.1, mass=0.9) == ()


def test_a_segment_that_only_the_behaviour_of_another_agent_names_is_told() -> None:
    assert bearing(naming(ACME, "other", vip=2), vip=0.1, mass=0.9) == (
        "Campaign January of Acme: bySegment of behaviour default does not name vip (a share of "
        "0.1; behaviour other does); their people answer as if they had no segment. If that is "
        "intended, write there: vip: 1.",
    )


def test_a_behaviour_that_the_agent_has_later_knows_its_segments_too() -> None:
    later = naming(naming(ACME, vip=2), "later", mass=2)
    later = later.at("Mon 12:00", "setBehaviour", "later", agent="Reminder")
    assert bearing(later, vip=0.1, mass=0.9) == ()
    (warning,) = bearing(later, vip=0.1, gold=0.9)
    assert "bySegment of behaviour default and later does not name gold" in warning


# -- curly quotes ---------------------------------------------------------------------------------


def test_curly_quotes_around_texts_of_the_file_are_told_once() -> None:
    text = SMALL.replace("Acme", "“Acme”").replace("January", "‘January’")
    people = '[{tel: "0812345678", customerName: “Somchai”, agentParams: {“due”: „May”}}]'
    assert loads(text.replace("{count: 10}", people)).warnings == (
        "Curly quotes are part of “Acme” (organizations.0.name), ‘January’ "
        "(organizations.0.campaigns.0.name), “Somchai” "
        "(organizations.0.campaigns.0.recipients.0.customerName) and 2 more: in YAML only "
        'straight quotes (") enclose a text.',
    )


def test_curly_quotes_around_cells_are_told_once(tmp_path: Path) -> None:
    rows = "0812345670,“Somchai”,‘vip’,“x”\n0812345671,a,vip,b\n0812345672,“b”,‘vip’,\n"
    assert from_csv(tmp_path, f"tel,customerName,segment,agentParams.note\n{rows}") == (
        "Campaign January of Acme: curly quotes are part of ‘vip’ (people.csv:2), “Somchai” "
        "(people.csv:2), “x” (people.csv:2) and 1 more: in a CSV only straight quotes "
        '(") enclose a cell.',
    )


@pytest.mark.parametrize(
    "name", ["It’s January", "the ‘best’ deal", "“A” and “B”", "’90s", "“", "January 12”"]
)
def test_curly_quotes_that_may_be_meant_get_no_warning(name: str) -> None:
    assert loads(SMALL.replace("January", name)).warnings == ()


# -- added campaigns ------------------------------------------------------------------------------


def test_c11_a_campaign_that_is_added_gets_the_same_warnings() -> None:
    from dialsim.engine.simulation import Simulation
    from dialsim.results.result import Result

    sketch = naming(ACME, vip=2).campaign("January", recipients={"count": 10}, agent="Reminder")
    live = Simulation(sketch.scenario())
    rows = "tel,customerName,segment\n0812345670,“a”,vpi\n+66812345670,b,vip\n99,,vip\n"
    live.add_campaign({"name": "Added", "agent": "Reminder"}, csv=rows)
    segments, spellings, curly, numbers = Result(live.trace).summary.warnings
    assert "does not name vpi (1 recipient in recipients.csv:2; did you mean vip?)" in segments
    assert "0812345670 (recipients.csv:2) and +66812345670 (recipients.csv:3)" in spellings
    assert "“a” (recipients.csv:2)" in curly
    assert "99 (recipients.csv:4)" in numbers


# -- sharing --------------------------------------------------------------------------------------


def sharing(kind: str, **keys: int) -> tuple[str, ...]:
    """The warnings of two campaigns, the first with these keys, under a sharing."""
    sketch = Sketch(2, sharing=kind).campaign("January", **keys).campaign("Campaign 1")
    return sketch.scenario().warnings


def test_q7_q8_a_priority_or_weight_that_does_not_count_is_told() -> None:
    assert sharing("fifo", priority=1, weight=3) == (
        "Campaign January of Acme has priority 1, which counts only where engine.sharing is "
        "priority; it is fifo.",
        "Campaign January of Acme has weight 3, which counts only where engine.sharing is "
        "weighted; it is fifo.",
    )
    assert sharing("priority", priority=1) == ()
    assert sharing("weighted", weight=3) == ()
