"""The rules T, C, Q, P, R and D3 of the rule book, read naively.

At every instant at which something might happen everything is scanned, step by step as in T4.
Nothing is kept sorted, no event is planned ahead: what a call or a campaign does next is found by
looking at all of them. An instant too many does no harm (`also` adds some): its steps find
nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import inf
from typing import Any

from oracle.given import (
    Action,
    Engine,
    Files,
    Past,
    Schedule,
    Share,
    actions,
    clock_start,
    duration,
    instant,
    recipients,
    script,
)
from oracle.records import Book, Call, Campaign, Organization, Person, Reading

MOST_INSTANTS = 2_000_000  # more than any scenario meant for this reading has


def second_reading(
    scenario: dict[str, Any], also: Iterable[int] = (), files: Files | None = None
) -> Reading:
    """Read the rules over a scenario without chance, a dict as parsed from its file.

    Every recipient stands in a list, or in one of `files`, with `tel` and `script`; setup times are
    constants.
    """
    return Run(scenario, files or {}).to_its_end(sorted(also))


class Run(Book):
    """A scenario worked off instant by instant."""

    def __init__(self, scenario: dict[str, Any], files: Files) -> None:
        super().__init__()
        self.files = files
        behaviours = scenario["behaviours"]
        left_out = behaviours["default"]["setupTime"]
        self.setups = {
            name: duration(b.get("setupTime", left_out)) for name, b in behaviours.items()
        }
        self.engine = Engine.of(scenario.get("engine", {}))
        self.start = clock_start(scenario)
        end = scenario.get("clock", {}).get("end")
        self.end = instant(end) if end else None
        self.actions = actions(scenario, self.start)
        for o, given in enumerate(scenario["organizations"]):
            self.organizations.append(self._organization(o, given))
        self.releases = 0

    def _organization(self, position: int, given: dict[str, Any]) -> Organization:
        setup = {a["name"]: self.setups[a.get("behaviour", "default")] for a in given["agents"]}
        limit, allowed = given["maxConcurrentCalls"], given.get("callingAllowed", True)
        window = duration(given.get("duplicateCallAlert", {}).get("window", 0))
        organization = Organization(position, given["name"], limit, allowed, setup, window)
        schemas = {a["name"]: a.get("paramsSchema", {}) for a in given["agents"]}
        for c, entry in enumerate(given["campaigns"]):
            campaign = Campaign(organization, c, entry["name"], entry["agent"])
            people = recipients(entry["recipients"], self.files, schemas[entry["agent"]])
            for index, recipient in enumerate(people):
                past, steps = Past.of(recipient.get("history")), script(recipient["script"])
                person = Person(campaign, index, recipient["tel"], steps, past)
                if past is not None and past.answered:
                    person.answered_until = past.ended_at
                campaign.people.append(person)
            campaign.share = Share.of(entry)
            organization.campaigns.append(campaign)
        return organization

    # -- T5: from instant to instant

    def to_its_end(self, also: list[int]) -> Reading:
        """Instant after instant, to clock.end (inclusive) or until nothing is ahead."""
        now = self.start
        for _ in range(MOST_INSTANTS):
            self.work_off(now)
            ahead = min((at for at in self.ahead(now) if at > now), default=None)
            if ahead is not None:  # T6: on the way to it, what is moot is carried out, too
                ahead = min([ahead, *(a.at for a in self.actions if a.at > now)])
            cut = ahead is not None and self.end is not None and ahead > self.end
            if ahead is None or cut:
                return self.reading(cut)
            now = next((at for at in also if now < at < ahead), ahead)
        raise AssertionError("the reading does not end")

    def ahead(self, now: int) -> Iterator[int]:
        """Instants, some perhaps past, at which something could happen that waits for no other."""
        yield from (action.at for action in self.actions if not self._is_moot(action))
        for organization in self.organizations:
            if organization.calls("QUEUED") and organization.dialled_last is not None:
                yield organization.dialled_last + self.engine.gap
            for campaign in organization.campaigns:
                yield from self._ahead_in(campaign, now)

    def _is_moot(self, action: Action) -> bool:  # T6
        """True for planned actions on campaigns that none of them can concern."""
        campaigns = self.organizations[action.organization].campaigns
        if action.campaign is not None:
            campaigns = [campaigns[action.campaign]]
        return action.planned and all(c.final or c.status == "DRAFT" for c in campaigns)

    def _ahead_in(self, campaign: Campaign, now: int) -> Iterator[int]:
        yield from (call.moves_at for call in campaign.calls("INITIATED"))
        yield from (p.retry_due for p in campaign.people if p.retry_due is not None)
        for call in campaign.calls("QUEUED"):
            yield call.queued_at + self.engine.queue_timeout
            yield campaign.schedule.windows.next_boundary(now)
        if campaign.schedule is None or campaign.final:
            return
        if campaign.schedule.end is not None:
            yield campaign.schedule.end
        windows, waiting = campaign.schedule.windows, campaign.calls("SCHEDULED")
        found = None
        if campaign.status == "RUNNING" and waiting and not self.has_line(campaign, now):
            if self.has_room(campaign.organization):  # a window may give lines up, or open (Q11)
                for other in campaign.organization.campaigns:
                    if other.status == "RUNNING":
                        yield other.schedule.windows.next_boundary(now)
            return
        if campaign.status == "SCHEDULED":
            found = windows.first_allowed(max(now + 1, campaign.start_at), 0, 0)
        elif campaign.status == "RUNNING" and waiting and self.has_room(campaign.organization):
            earliest = max(now + 1, min(call.due for call in waiting))
            interval = self.engine.release_interval
            found = windows.first_allowed(earliest, campaign.first_due, interval)
        if found is not None:
            yield found

    # -- T4: one instant (step 9, the POSTs, changes no call)

    def work_off(self, now: int) -> None:
        self.requests_and_actions(now)  # 1
        self.end_date_times(now)  # 2
        self.windows_closing(now)  # 3
        self.progress(now)  # 4
        self.queue_timeouts(now)  # 5
        self.retries_and_starts(now)  # 6
        while any(self.release(o, now) or self.dial(o, now) for o in self.organizations):
            pass  # 7
        self.final_campaigns(now)  # 8

    def requests_and_actions(self, now: int) -> None:
        for action in self.actions:
            if action.at != now:
                continue
            organization = self.organizations[action.organization]
            if action.name == "setConcurrency":
                organization.limit = action.given["value"]
            elif action.name == "setCallingAllowed":
                organization.allowed = action.given["value"]
            elif action.name == "setWebhookUrl":
                pass  # W6: no call is the other for it
            elif action.name == "setBehaviour":
                organization.setup[action.given["agent"]] = self.setups[action.given["behaviour"]]
            else:
                self._ask(action, organization.campaigns[action.campaign or 0], now)

    def _ask(self, action: Action, campaign: Campaign, now: int) -> None:
        refusal = self._refusal(action, campaign, now)
        if refusal is not None and action.planned:
            return  # T6
        if refusal is not None:
            names = (campaign.organization.name, campaign.name)
            self.refused.append((now, *names, action.name, *refusal))
        elif action.name == "schedule":
            self._schedule(campaign, action.given["body"], now)
        elif action.name == "pause" and campaign.status != "PAUSED":  # C4
            for call in campaign.waiting():
                if call.status != "SCHEDULED":
                    self.move(call, "SCHEDULED", None, "paused", now)
            self.turn(campaign, "PAUSED", "pause", now)
        elif action.name == "resume":  # C5
            runs = campaign.has_run or campaign.may_run(now)
            self.turn(campaign, "RUNNING" if runs else "SCHEDULED", "resume", now)
        elif action.name == "cancel":  # C6
            self._withdraw_all(campaign, "CANCELLED", "cancelled", now)
            self.turn(campaign, "CANCELLED", "cancel", now)
        elif action.name == "delete":  # C8
            self._withdraw_all(campaign, "CANCELLED", "deleted", now)
            self.turn(campaign, campaign.status if campaign.final else "CANCELLED", "delete", now)
            campaign.deleted = True

    def _refusal(self, action: Action, campaign: Campaign, now: int) -> tuple[str, str] | None:
        """Code and message, or None: the checks in the interface's order (C9)."""
        status = campaign.status
        if campaign.deleted:  # C8
            return "CAMPAIGN_NOT_FOUND", "Campaign not found"
        if action.name == "schedule":
            return self._refusal_of_request(campaign, action.given["body"], now)
        allowed = {
            "pause": ("SCHEDULED", "RUNNING", "PAUSED"),
            "resume": ("PAUSED",),
            "cancel": ("DRAFT", "SCHEDULED", "RUNNING", "PAUSED"),
            "delete": (status,),
            "reanalyze": (status,),
        }
        if status not in allowed[action.name]:
            return "INVALID_CAMPAIGN_STATE", f"Cannot {action.name} a {status} campaign"
        return None

    def _refusal_of_request(
        self, campaign: Campaign, body: dict[str, Any], now: int
    ) -> tuple[str, str] | None:
        if campaign.status != "DRAFT":
            text = f"Campaign has already been started (current status: {campaign.status})"
            return "CAMPAIGN_ALREADY_STARTED", text
        if not campaign.organization.allowed:
            return "CALLING_NOT_ALLOWED", "Your organization is not allowed to make calls."
        left = [person for person in campaign.people if not self._is_duplicate(person, now)]
        if body.get("removeDuplicates") and not left:  # D3
            text = "All recipients are duplicates within the configured window"
            return "VALIDATION_FAILED", text
        return None

    def _schedule(self, campaign: Campaign, body: dict[str, Any], now: int) -> None:  # C1
        campaign.schedule = Schedule.of(body)
        campaign.start_at = max(now, campaign.schedule.start)
        everyone = (p for theirs in campaign.organization.campaigns for p in theirs.people)
        began_before = any(person.past is not None for person in everyone)
        campaign.first_due = campaign.schedule.start if began_before else campaign.start_at
        self.turn(campaign, "SCHEDULED", "schedule", now)
        removes = campaign.schedule.remove_duplicates
        for person in campaign.people:
            if removes and self._is_duplicate(person, now):
                self.removed.add((campaign.organization.name, campaign.name, person.index))
                continue  # D3: off the list
            if person.past is None:
                self.create(person, campaign.first_due, "scheduled", now)
            else:
                self._go_on(person, person.past, campaign.schedule)

    @staticmethod
    def _go_on(person: Person, past: Past, schedule: Schedule) -> None:
        """Take up a person after the history: reached, all attempts made, or to be called."""
        person.attempts, person.reached = past.attempts, past.answered
        if not past.answered and past.attempts < schedule.max_attempts:
            person.retry_due = past.ended_at + schedule.retry_interval

    @staticmethod
    def _is_duplicate(person: Person, now: int) -> bool:  # D3
        """True if this agent reached this number, in any campaign, within the window."""
        campaign = person.campaign
        since = now - campaign.organization.duplicate_window
        return any(
            other.tel == person.tel
            and other.answered_until is not None
            and since <= other.answered_until <= now
            for theirs in campaign.organization.campaigns
            if theirs.agent == campaign.agent
            for other in theirs.people
        )

    def _withdraw_all(self, campaign: Campaign, to: str, cause: str, now: int) -> bool:
        """Waiting calls end so and retries not yet due are dropped; whether there were any."""
        waiting = campaign.waiting()
        for call in waiting:
            self.move(call, to, None, cause, now)
        dropped = [person for person in campaign.people if person.retry_due is not None]
        for person in dropped:
            person.retry_due = None
        return bool(waiting or dropped)

    def end_date_times(self, now: int) -> None:  # C7
        for campaign in self.campaigns():
            if not campaign.final and campaign.past_end(now):
                expired = self._withdraw_all(campaign, "EXPIRED", "expired", now)
                if expired or not campaign.has_run:
                    self.turn(campaign, "EXPIRED", "end_date_time", now)

    def windows_closing(self, now: int) -> None:  # Q6
        for campaign in self.campaigns():
            if not campaign.inside_window(now):
                for call in campaign.calls("QUEUED"):
                    self.move(call, "SCHEDULED", None, "window_closed", now)

    def progress(self, now: int) -> None:  # P1, P2
        for campaign in self.campaigns():
            for call in campaign.calls("INITIATED"):
                while call.status == "INITIATED" and call.moves_at <= now:
                    self._proceed(call, now)

    def _proceed(self, call: Call, now: int) -> None:
        step, person = call.step, call.person
        if call.phase == "dialling":
            call.moves_at = now + step.ring
            if step.ring:
                self.move(call, "INITIATED", "ringing", "ringing", now)
            call.phase = "ringing"
        elif call.phase == "ringing" and step.end == "COMPLETED":
            person.reached = True  # R3
            call.moves_at = now + step.talk
            self.move(call, "INITIATED", "talking", "answered", now)
        else:
            person.attempts += 1  # P5
            if step.end == "COMPLETED":
                person.answered_until = now
            self.move(call, step.end, None, "ended", now)
            self._retry_after(person, now)

    def queue_timeouts(self, now: int) -> None:  # Q5
        for campaign in self.campaigns():
            for call in campaign.calls("QUEUED"):
                if now >= call.queued_at + self.engine.queue_timeout:
                    self.move(call, "CANCELLED", None, "queue_timeout", now)
                    self._retry_after(call.person, now)

    def _retry_after(self, person: Person, now: int) -> None:  # R1 to R3, C6, C7
        campaign = person.campaign
        over = campaign.final or campaign.past_end(now)
        if not over and not person.reached and person.attempts < campaign.schedule.max_attempts:
            person.retry_due = now + campaign.schedule.retry_interval

    def retries_and_starts(self, now: int) -> None:
        for campaign in self.campaigns():
            for person in campaign.people:
                if person.retry_due is not None and now >= person.retry_due:  # R2
                    self.create(person, person.retry_due, "retry", now)
                    person.retry_due = None
            if campaign.status == "SCHEDULED" and campaign.may_run(now):  # C2
                self.turn(campaign, "RUNNING", "start", now)

    def has_room(self, organization: Organization) -> bool:  # Q2
        limit = self.engine.queue_limit
        limit = organization.limit if limit is None else limit
        return organization.limit > 0 and len(organization.calls("QUEUED")) < limit

    def release(self, organization: Organization, now: int) -> bool:
        """Release one call if Q2 allows it: the next one by Q3."""
        if not self.has_room(organization):
            return False
        ready = [call for c in organization.campaigns for call in self._releasable(c, now)]
        if not ready:
            return False
        call = min(ready, key=self._in_turn)
        released = call.person.campaign
        organization.released_last[self._priority(released)] = released.position
        self.releases += 1
        call.released, call.queued_at = self.releases, now
        self.move(call, "QUEUED", None, "released", now)
        return True

    def _releasable(self, campaign: Campaign, now: int) -> list[Call]:  # Q2
        if campaign.status != "RUNNING" or not campaign.inside_window(now):
            return []
        interval = self.engine.release_interval
        if interval and (now - campaign.first_due) % interval:
            return []
        if not self.has_line(campaign, now):
            return []
        return [call for call in campaign.calls("SCHEDULED") if call.due <= now]

    def _in_turn(self, call: Call) -> tuple[Any, ...]:
        """Q3, Q7 to Q9: the smallest is released next."""
        person, campaign = call.person, call.person.campaign
        fresh = person.attempts == 0
        first = {"due": True, "freshFirst": fresh, "retriesFirst": not fresh}[self.engine.order]
        if self.engine.sharing == "fifo":
            return (not first, call.due, campaign.position, person.index)
        own = (not first, call.due, person.index)
        if self.engine.sharing == "weighted":  # Q8
            return (Fraction(campaign.lines + 1, campaign.share.weight), campaign.position, *own)
        if self.engine.sharing == "deadline":  # Q9
            end = campaign.schedule.end
            return (inf if end is None else end, campaign.position, *own)
        organization, priority = campaign.organization, self._priority(campaign)
        last = organization.released_last.get(priority, -1)
        after = (campaign.position - last - 1) % len(organization.campaigns)
        return (priority, after, *own)

    def _priority(self, campaign: Campaign) -> float:  # Q7
        return campaign.share.priority if self.engine.sharing == "priority" else 0

    @staticmethod
    def has_line(campaign: Campaign, now: int) -> bool:
        """True if a line is free for another call of this campaign (Q10, Q11)."""
        everyone, limit = campaign.organization.campaigns, campaign.organization.limit
        if not any(c.schedule and (c.share.at_most < inf or c.share.reserved) for c in everyone):
            return True
        if campaign.lines >= campaign.share.at_most or sum(c.lines for c in everyone) >= limit:
            return False
        if campaign.lines < campaign.held(now):
            return True
        return sum(max(c.lines, c.held(now)) for c in everyone) < limit

    def dial(self, organization: Organization, now: int) -> bool:
        """Dial the call released longest ago if a slot is free (Q1) and the pace allows it (Q4)."""
        queue, last = organization.calls("QUEUED"), organization.dialled_last
        if not queue or len(organization.calls("INITIATED")) >= organization.limit:
            return False
        if last is not None and now < last + self.engine.gap:
            return False
        call = min(queue, key=lambda queued: queued.released)
        organization.dialled_last = now
        call.step = call.person.next_step
        call.moves_at = now + organization.setup[call.person.campaign.agent]
        self.move(call, "INITIATED", "dialling", "dialled", now)
        return True

    def final_campaigns(self, now: int) -> None:  # C3
        for campaign in self.campaigns():
            open_calls = campaign.calls("SCHEDULED", "QUEUED", "INITIATED")
            to_come = [person for person in campaign.people if person.retry_due is not None]
            if campaign.status == "RUNNING" and not open_calls and not to_come:
                self.turn(campaign, "COMPLETED", "all_final", now)
