"""Nasty deterministic scenarios: many events at once, and actions at the worst moments.

All durations of one scenario are multiples of one unit, so that calls, windows, timeouts and
retries meet in the same instants. Then the second reading finds the instants at which calls change,
and actions and endDateTimes are placed there, 1 ms before and 1 ms after; and so again with the
result.
"""

from __future__ import annotations

import csv
import io
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from oracle.given import HOUR, MINUTE, SECOND, Files, clock_start, instant, recipients
from oracle.second_reading import second_reading

MONDAY = instant("2026-01-04T17:00:00Z")  # 2026-01-05, midnight in Thailand
ENDED = ("COMPLETED", "ANALYSIS_FAILED", "NO_ANSWER", "NO_ANSWER", "BUSY", "FAILED")
NUMBERS = ["021000001", "021000002", "021000003"]
Scenario = dict[str, Any]


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed."""
    return nasty_scenario(random.Random(seed))


def scripted_scenarios() -> st.SearchStrategy[Scenario]:
    """Nasty scenarios for hypothesis, which shrinks them choice by choice."""
    return st.randoms(use_true_random=False).map(nasty_scenario)


def nasty_scenario(rng: random.Random) -> Scenario:
    """A plain scenario, then up to three rounds of trouble where calls move."""
    scenario = Draft(rng).scenario()
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
        add_trouble(rng, scenario)
    return scenario


def listed_scenario(seed: int) -> tuple[Scenario, Files]:
    """The same with people in files, some of whom are chosen and sorted, and the files."""
    rng = random.Random(seed)
    scenario, files = Draft(rng).scenario(), {}
    for organization in scenario["organizations"]:
        for agent in organization["agents"]:
            agent["paramsSchema"] = SCHEMA
        for campaign in organization["campaigns"]:
            if campaign["recipients"]:
                name = f"{organization['name']}-{campaign['name']}.csv"
                files[name] = people_file(rng, campaign["recipients"])
                campaign["recipients"] = choice_of(rng, {"file": name}, files)
    for _ in range(rng.choice((0, 1, 1, 2))):
        add_trouble(rng, scenario, files)
    return scenario, files


SCHEMA = {
    "amount": {"type": "number"},
    "vip": {"type": "boolean"},
    "due": {"type": "number", "default": 3},
}
CONDITIONS = (
    "amount > 2", "segment == 'a'", "segment != 'a' and 1 <= amount < 4", "not vip or amount < 2",
    "due == 3", "segment < 'b' or amount / due >= 1", "true if vip else amount != 2",
)  # fmt: skip
KEYS = (
    "-amount", "amount", "segment", "vip", "amount * due - 2", "-amount if vip else due",
    "amount > 1 and vip",
)  # fmt: skip


def people_file(rng: random.Random, people: list[Scenario]) -> str:
    """A CSV of people with segments, parameters and their histories; many are alike."""
    history = ["callAttempt", "latestCallStatus", "lastEndedAt", "lastCallerId"]
    heads = ["tel", "script", "segment", *(f"agentParams.{name}" for name in SCHEMA)]
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([*heads, *(f"history.{name}" for name in history)])
    for person in people:
        amount, vip = rng.choice((0, 1, 2, 3, 5)), rng.choice(("true", "false"))
        own = [rng.choice(("a", "b", "")), amount, vip, rng.choice((1, 2, "", ""))]
        past = person.get("history", {})
        lines.writerow([person["tel"], person["script"], *own, *map(past.get, history)])
    return text.getvalue()


def choice_of(rng: random.Random, block: Scenario, files: Files) -> Scenario:
    """Some of where, sort and first, which leave somebody."""
    if rng.random() < 0.6:
        chosen = block | {"where": rng.choice(CONDITIONS)}
        block = chosen if recipients(chosen, files, SCHEMA) else block
    if rng.random() < 0.7:
        keys = rng.sample(KEYS, rng.choice((1, 1, 2)))
        block = block | {"sort": keys[0] if len(keys) == 1 else keys}
    return block | ({"first": rng.randint(1, 6)} if rng.random() < 0.5 else {})


def iso(at: int) -> str:
    """An instant as a scenario file has it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class Draft:
    """One scenario in the making, as yet without trouble."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.unit = rng.choice((1, 5, 10, 10, 30, 60)) * SECOND
        self.minute = rng.choice((9 * 60, 10 * 60 + 7, 12 * 60, 23 * 60 + 40, 2))  # of the day
        self.start = MONDAY + rng.choice((0, 0, 4, 6)) * 24 * HOUR + self.minute * MINUTE
        self.counts_lines = rng.random() < 0.4
        self.crowded = rng.random() < 0.4  # many want the same few lines: sharing matters
        self.queue_timeout = rng.choice((1, SECOND, self.unit, 2 * self.unit, MINUTE, 10 * MINUTE))

    def span(self, low: int, high: int) -> str:
        """Some units, as a duration's text."""
        return f"{self.rng.randint(low, high) * self.unit}ms"

    def scenario(self) -> Scenario:
        organizations = [self.organization(o) for o in range(self.rng.choice((1, 1, 1, 2)))]
        setup = self.rng.choice((self.span(1, 2), self.span(1, 1), "1ms", "3s"))
        scenario = {
            "version": 1,
            "name": "Nasty",
            "seed": 1,
            **self.clock(organizations),
            "engine": self.engine(),
            "organizations": organizations,
            "behaviours": {"default": {"setupTime": setup}, "slow": {"setupTime": self.span(2, 4)}},
        }
        for organization in organizations:
            if self.rng.random() < 0.5:
                self.add_duplicates(organization)
            if self.rng.random() < 0.4:
                self.add_past(organization, clock_start(scenario))
        return scenario

    def add_past(self, organization: Scenario, start: int) -> None:
        """Some people were called before it begins, and some campaigns go on where others stood."""
        rng = self.rng
        ago = (0, 1, self.unit, 299_999, 300_000, 300_000 + self.unit, 600_000, HOUR)
        for campaign in organization["campaigns"]:
            share = rng.choice((0, 0.3, 0.7, 1))
            for recipient in campaign["recipients"]:
                if rng.random() >= share:
                    continue
                status = rng.choice((*ENDED, *ENDED, "CANCELLED", "SCHEDULED"))
                counted = status not in ("CANCELLED", "SCHEDULED")
                recipient["history"] = {
                    "callAttempt": rng.choice((1, 1, 2, 3) if counted else (0, 0, 1, 2)),
                    "latestCallStatus": status,
                    "lastEndedAt": iso(start - rng.choice(ago)),
                    "lastCallerId": rng.choice(NUMBERS),
                }

    def add_duplicates(self, organization: Scenario) -> None:
        """Campaigns share numbers, and some requests drop those already reached."""
        rng = self.rng
        window = rng.choice((self.unit, 20 * self.unit, HOUR, 30 * 24 * HOUR, 30 * 24 * HOUR))
        organization["duplicateCallAlert"] = {"window": f"{window}ms"}
        for position, campaign in enumerate(organization["campaigns"]):
            for index, recipient in enumerate(campaign["recipients"]):
                shared = position == 0 or rng.random() < 0.7
                recipient["tel"] = f"0800{index:06d}" if shared else f"08{position + 1}{index:07d}"
        first, last = organization["campaigns"][0], organization["campaigns"][-1]
        if "schedule" in last and first is not last:  # asked for while the others call
            last["agent"] = first["agent"]
            at = iso(self.start + rng.choice((1, 10, 30, 100, 300)) * self.unit)
            request = {"at": at, "action": "schedule", "campaign": last["name"]}
            organization["timeline"].append(request | {"body": last.pop("schedule")})
            last.pop("scheduledAt", None)
        for entry in (*organization["campaigns"], *organization["timeline"]):
            body = entry.get("schedule") or entry.get("body")
            if body is not None and rng.random() < 0.8:
                body["removeDuplicates"] = True

    def clock(self, organizations: list[Scenario]) -> Scenario:
        """Left out at times, where the file's requests alone say when it begins."""
        filed = all("schedule" in c for o in organizations for c in o["campaigns"])
        return {} if filed and self.rng.random() < 0.2 else {"clock": {"start": iso(self.start)}}

    def engine(self) -> dict[str, Any]:
        rng, unit = self.rng, self.unit
        interval = rng.choice((0, 0, 0, unit, 3 * unit, MINUTE, 5 * MINUTE, 11 * MINUTE, HOUR))
        block = {
            "queueTimeout": f"{self.queue_timeout}ms",
            "queueLimit": rng.choice(("unlimited", 1, 1, 2, 3)),
            "releaseInterval": f"{interval}ms" if interval else 0,
            "order": rng.choice(("due", "freshFirst", "retriesFirst")),
            "sharing": rng.choice(("roundRobin", "fifo", "priority", "weighted", "deadline")),
            "callsPerSecond": rng.choice((1, 2, 3, 0.05, 0.1, 0.3, 0.7)),
        }
        often_absent = {"queueLimit", "callsPerSecond"}
        if self.counts_lines:
            block["releaseInterval"] = 0  # Q10
        return {
            key: value
            for key, value in block.items()
            if rng.random() < (0.5 if key in often_absent else 0.9)
        }

    def organization(self, position: int) -> Scenario:
        rng = self.rng
        count = rng.choice((3, 4) if self.crowded else (1, 2, 2, 3))
        campaigns = [self.campaign(c) for c in range(count)]
        limit = rng.choice((1, 1, 2, 3) if self.crowded else (0, 1, 1, 1, 2, 2, 3, 5))
        if self.counts_lines:
            self.add_lines(campaigns, limit)
        return {
            "name": ("Acme", "Bravo")[position],
            "maxConcurrentCalls": limit,
            "callingAllowed": rng.random() < 0.97,
            "callerIds": NUMBERS,
            "agents": [{"name": "Reminder"}, {"name": "Survey", "behaviour": "slow"}],
            "campaigns": campaigns,
            "timeline": self.first_timeline(campaigns),
        }

    def share(self) -> Scenario:
        """Sharing of lines between campaigns; many fields are left out at times."""
        rng = self.rng
        share = {"priority": rng.choice((1, 1, 2, 5)), "weight": rng.choice((1, 2, 3, 7))}
        return {key: value for key, value in share.items() if rng.random() < 0.7}

    def add_lines(self, campaigns: list[Scenario], limit: int) -> None:
        """Lines reserved, no more than there are, and the most that a campaign takes."""
        rng, left = self.rng, limit
        for campaign in campaigns:
            if rng.random() < 0.6:
                campaign["reserved"] = rng.randint(0, left)
                left -= campaign["reserved"]
            if rng.random() < 0.4:
                campaign["atMost"] = max(1, campaign.get("reserved", 0)) + rng.choice((0, 0, 1, 3))

    def first_timeline(self, campaigns: list[Scenario]) -> list[Scenario]:
        """Campaigns that the file leaves DRAFT are mostly scheduled by an action."""
        return [
            {
                "at": iso(self.start + self.rng.randint(0, 20) * self.unit),
                "action": "schedule",
                "campaign": campaign["name"],
                "body": self.schedule(),
            }
            for campaign in campaigns
            if "schedule" not in campaign and self.rng.random() < 0.8
        ]

    def campaign(self, position: int) -> Scenario:
        rng = self.rng
        campaign: Scenario = {
            **self.share(),
            "name": ("January", "February", "March", "April")[position],
            "agent": rng.choice(("Reminder", "Reminder", "Survey")),
            "recipients": [
                {"tel": f"08{position}000{index:04d}", "script": self.script()}
                for index in range(
                    rng.choice((3, 4, 6) if self.crowded else (0, 1, 1, 2, 3, 4, 6, 10))
                )
            ],
        }
        if rng.random() < 0.85:
            campaign["schedule"] = self.schedule()
            if rng.random() < 0.4:
                campaign["scheduledAt"] = iso(self.start + rng.randint(0, 10) * self.unit)
        return campaign

    def script(self) -> str:
        return "; ".join(self.step() for _ in range(self.rng.choice((1, 1, 2, 3, 4))))

    def step(self) -> str:
        ring = self.rng.choice(("0s", self.span(1, 1), self.span(1, 3)))
        kind = self.rng.choice(("answered", "noAnswer", "noAnswer", "busy", "failed"))
        talk = self.rng.choice(("0s", self.span(1, 2), self.span(1, 9)))
        return f"{kind} {ring} {talk}" if kind == "answered" else f"{kind} {ring}"

    def schedule(self) -> Scenario:
        rng = self.rng
        offset = rng.choice((-60, -2, 0, 0, 0, 1, 2, 6)) * rng.choice((self.unit, MINUTE))
        if self.crowded and rng.random() < 0.7:
            offset = 0
        body: Scenario = {"startDateTime": iso(self.start + offset)}
        if self.crowded and rng.random() < 0.7:
            body["timeWindows"] = self.all_day()
        elif rng.random() < 0.9:
            body["timeWindows"] = self.windows()
        body["maxAttempts"] = rng.choice((1, 1, 2, 2, 3, 4))
        waits = [300_000, 300_000 + self.unit, 360_000, 600_000]
        timeouts_come_soon = self.queue_timeout < 10 * SECOND  # too many calls without a wait
        if body["maxAttempts"] > 1 or timeouts_come_soon:
            body["retryInterval"] = rng.choice(waits)
        elif rng.random() < 0.8:
            body["retryInterval"] = rng.choice((0, 0, *waits))
        if rng.random() < 0.2:
            body["callerIds"] = NUMBERS[: rng.choice((1, 2))]
        if rng.random() < 0.2:
            body["endDateTime"] = rng.choice((None, iso(self.start + 90 * MINUTE)))
        if rng.random() < 0.05:  # maybe past at the request
            body["endDateTime"] = iso(self.start + offset + self.unit)
        return body

    @staticmethod
    def all_day() -> list[Scenario]:
        """Open every day, but for the last minute."""
        day = {"start": "00:00", "end": "23:59"}
        return [{"dayOfWeek": weekday, "time": [day]} for weekday in range(1, 8)]

    def windows(self) -> list[Scenario]:
        """Minutes long, with gaps, touching or overlapping, on every day or on a few."""
        rng = self.rng
        days = rng.choice((range(1, 8), range(1, 8), (1, 2), (5, 7), (1,)))
        return [
            {"dayOfWeek": day, "time": self.ranges()}
            for day in days
            for _ in range(rng.choice((1, 1, 1, 2)))
        ]

    def ranges(self) -> list[Scenario]:
        rng, ranges = self.rng, []
        minute = max(0, self.minute + rng.choice((-5, -1, 0, 0, 0, 1, 3)))
        for _ in range(rng.choice((1, 2, 3, 5))):
            end = min(minute + rng.choice((1, 2, 3, 5, 10)), 24 * 60 - 1)
            if end <= minute:
                break
            ranges.append({"start": clock_face(minute), "end": clock_face(end)})
            minute = max(0, end + rng.choice((-1, 0, 0, 1, 2, 5, 10)))
        return ranges


def clock_face(minute: int) -> str:
    """A minute of the day as HH:MM."""
    return f"{minute // 60:02d}:{minute % 60:02d}"


class Trouble:
    """Instants at which an organization's calls and campaigns change, each with its owner."""

    def __init__(self, rng: random.Random, organization: Scenario, start: int) -> None:
        self.rng = rng
        self.organization = organization
        self.start = start
        self._moved: dict[str, list[tuple[int, str]]] = {}  # by cause: rare ones count as much

    def note(self, at: int, campaign: str, cause: str) -> None:
        self._moved.setdefault(cause, []).append((at, campaign))

    def moment(self, *causes: str) -> tuple[int, str]:
        """An instant at which something moves, or 1 ms off, and mostly the campaign concerned.

        Half of the time it is one of `causes` that moves something, if given and met.
        """
        rng = self.rng
        anyone = rng.choice(self.organization["campaigns"])["name"]
        if not self._moved:
            return self.start, anyone
        met = [cause for cause in causes if cause in self._moved and rng.random() < 0.5]
        moved = self._moved[rng.choice(met or sorted(self._moved))]
        at, campaign = moved[-1] if rng.random() < 0.2 else rng.choice(moved)
        at = max(self.start, at + rng.choice((-1, 0, 0, 1)))
        return at, campaign if rng.random() < 0.8 else anyone

    def add_action(self) -> None:
        """One action, or an action and what commonly follows it, soon or later."""
        rng = self.rng
        at, campaign = self.moment("dialled")
        later = max(at, rng.choice((at, at + 1, at + SECOND, self.moment()[0], self.moment()[0])))
        kinds = ("pause",) * 6 + ("setConcurrency",) * 5 + ("setBehaviour", "resume", "cancel")
        rare = ("setCallingAllowed", "setWebhookUrl", "reanalyze")
        kind = rng.choice((*kinds, "cancel", "delete", "delete", "schedule", rng.choice(rare)))
        first: Scenario = {"at": iso(at), "action": kind}
        second: Scenario = {"at": iso(later), "action": kind}
        if kind == "setConcurrency":
            first["value"] = rng.choice((0, 0, 0, 1, 1, 2, 4))
            second["value"] = rng.choice((1, 1, 2, 3))
        elif kind == "setCallingAllowed":
            first["value"], second["value"] = False, True
        elif kind == "setWebhookUrl":
            first["url"], second["url"] = "https://example.test/hook", None
        elif kind == "setBehaviour":
            first |= {"agent": rng.choice(("Reminder", "Survey")), "behaviour": "slow"}
            second |= {"agent": first["agent"], "behaviour": "default"}
        else:
            first["campaign"] = second["campaign"] = campaign
            common = {"pause": "resume", "resume": "pause", "schedule": "cancel"}
            second["action"] = common.get(kind, rng.choice(("cancel", "delete")))
            if kind == "reanalyze":
                first["share"] = rng.choice((0, 0.5, 1))
            if kind == "schedule":
                first["body"] = {"startDateTime": iso(at), "retryInterval": 300_000}
        often = 0.85 if kind in ("pause", "setConcurrency") else 0.4
        self.organization["timeline"] += [first, second] if rng.random() < often else [first]

    def move_request(self) -> None:
        """A request that drops duplicates comes as the window behind some end closes, or nearly."""
        rng, asked = self.rng, [a for a in self.organization["timeline"] if "body" in a]
        asked = [a for a in asked if a["body"].get("removeDuplicates")]
        if not asked:
            return
        (ended, _), (later, _) = self.moment("ended"), self.moment()
        action = rng.choice(asked)
        action["at"] = iso(max(ended, later))
        if later > ended:
            window = max(1, later - ended + rng.choice((-1, 0, 0, 1)))
            self.organization["duplicateCallAlert"]["window"] = f"{window}ms"

    def add_end(self) -> None:
        """An endDateTime for a campaign that has none or another."""
        at, name = self.moment("window_closed", "ringing")
        campaigns = (c for c in self.organization["campaigns"] if c["name"] == name)
        named = [c["schedule"] for c in campaigns if "schedule" in c]
        asked = [a for a in self.organization["timeline"] if "body" in a]
        named += [a["body"] for a in asked if a["campaign"] == name]
        for body in named:
            if at > instant(body["startDateTime"]):
                body["endDateTime"] = iso(at)


def add_trouble(rng: random.Random, scenario: Scenario, files: Files | None = None) -> None:
    """Actions and endDateTimes where the scenario's calls and campaigns move."""
    reading = second_reading(scenario, files=files)
    start = clock_start(scenario)
    for organization in scenario["organizations"]:
        trouble = Trouble(rng, organization, start)
        for at, name, campaign, *_, cause in (*reading.transitions, *reading.campaigns):
            if name == organization["name"]:
                trouble.note(at, campaign, cause)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            trouble.add_action()
        if rng.random() < 0.4:
            trouble.add_end()
        if rng.random() < 0.5:
            trouble.move_request()
        if rng.random() < 0.2:
            rng.shuffle(organization["timeline"])  # a file need not be in order of time
        if rng.random() < 0.06:
            last, _ = trouble.moment()
            scenario.setdefault("clock", {})["end"] = iso(max(start + 1, last))
