"""A campaign's part of the stream: its notices, what they show, and their POSTs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import Trace
from dialsim.results.ledger import Ledger
from dialsim.results.stream.analyses import Analyses
from dialsim.results.stream.bodies import Bodies, CallFacts
from dialsim.results.stream.deliveries import Posts, Receiving
from dialsim.results.stream.moments import moments
from dialsim.results.stream.notices import Notices, Owing, horizon
from dialsim.results.stream.persons import Persons
from dialsim.results.stream.shown import Shown, shown


class CampaignStream:
    """What one campaign sends; everything is worked out when first asked for, and kept.

    `owed` are all results that are there at the end, `notices` those of them that are sent by then.
    """

    def __init__(self, trace: Trace, ledger: Ledger, analyses: Analyses) -> None:
        self.ledger = ledger
        self.analyses = analyses
        self._trace = trace

    @cached_property
    def owed(self) -> Notices:
        """Every result, whether or not it has been sent yet."""
        return Owing(self._trace, self.ledger, self.analyses).notices()

    @cached_property
    def notices(self) -> Notices:
        """Every result that is sent."""
        return self.owed[self.owed.sent_at <= horizon(self._trace)]

    @cached_property
    def posts(self) -> Posts:
        """Every POST."""
        return Receiving(self._trace, self.ledger, self.notices).posts()

    @property
    def left(self) -> NDArray[np.int64]:
        """The moment at which each POST leaves; they order it among those of all campaigns."""
        return moments(self._trace, self.posts.at, self.posts.turn)

    def bodies(self, rows: NDArray[np.int64]) -> list[bytes]:
        """The bodies of some of the notices, in that order."""
        notices = self.notices[rows]
        return self._bodies.of(notices, CallFacts.of(self.ledger, notices.call), self._shown[rows])

    @cached_property
    def _shown(self) -> Shown:
        return shown(self._trace, self.ledger, self.notices)

    @cached_property
    def _bodies(self) -> Bodies:
        organization, campaign = self.ledger.organization, self.ledger.campaign
        block = self._trace.world.organizations[organization].campaigns[campaign]
        return Bodies(self._trace, block, Persons(block.people))
