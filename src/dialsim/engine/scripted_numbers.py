"""Scripted numbers: what the next calls to a phone number do, whoever makes them (P6)."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialsim.engine.call import Call
    from dialsim.scenario.scripts import Script, Step


class ScriptedNumbers:
    """The steps that are left for each scripted number, and those that dials have taken.

    A step is used up when the line of the dial that took it stands; a dial that is withdrawn
    before gives it back (P5). `waiting` is empty where nothing is scripted, `taken` where no line
    of a scripted call is being set up.
    """

    __slots__ = ("taken", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[str, list[tuple[int, Step]]] = {}  # by number, each with its place
        self.taken: dict[Call, tuple[str, int, Step]] = {}

    def set(self, tel: str, script: Script | None) -> None:
        """Have the next calls to a number follow a script from its first step; None: no script."""
        self.waiting.pop(tel, None)
        self.taken = {call: taken for call, taken in self.taken.items() if taken[0] != tel}
        if script:
            self.waiting[tel] = [*enumerate(script)]

    def take(self, call: Call, tel: str) -> Step | None:
        """The step of a call that is dialled to a number; None if none is left."""
        steps = self.waiting.get(tel)
        if steps is None:
            return None
        place, step = steps.pop(0)
        if not steps:
            del self.waiting[tel]
        self.taken[call] = tel, place, step
        return step

    def rings(self, call: Call) -> None:
        """The line of a dialled call stands: its step, if it took one, is used up."""
        self.taken.pop(call, None)

    def withdrawn(self, call: Call) -> None:
        """A dial was withdrawn: its step, if it took one, is the next one again."""
        if call in self.taken:
            tel, place, step = self.taken.pop(call)
            insort(self.waiting.setdefault(tel, []), (place, step))

    def left(self) -> dict[str, Script]:
        """The steps that are left, by number."""
        return {tel: tuple(step for _, step in steps) for tel, steps in self.waiting.items()}
