"""Verdicts: what the analysis of each conversation has come to by the end of the run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dialsim.results.ledger import NEVER
from dialsim.results.stream.campaign_stream import CampaignStream
from dialsim.results.stream.flaws import Flaw
from dialsim.results.stream.notices import Content


class Verdict(StrEnum):
    """What is known of a conversation.

    - analyzed: there is a result;
    - no_conversation, unavailable: there is the fallback result (A3);
    - not_analyzed: not recorded, or the agent stopped with an error (A2);
    - failed: the analysis failed, and no late result has come (A4);
    - pending: the run ended first.
    """

    ANALYZED = "analyzed"
    NO_CONVERSATION = "no_conversation"
    UNAVAILABLE = "unavailable"
    NOT_ANALYZED = "not_analyzed"
    FAILED = "failed"
    PENDING = "pending"


VERDICTS = tuple(Verdict)
OF_CONTENT = {
    Content.SOUND: Verdict.ANALYZED,
    Content.NO_CONVERSATION: Verdict.NO_CONVERSATION,
    Content.UNAVAILABLE: Verdict.UNAVAILABLE,
}
"""What is known of a conversation by its newest result."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Per call of a campaign: `code`, an index into `VERDICTS`, -1 without a conversation.

    `found` is that of the newest result, as in `Analyses`, in the rows where `code` is analyzed.
    """

    code: NDArray[np.int8]
    found: NDArray[np.uint16]


def verdicts(stream: CampaignStream, until: int) -> Verdicts:
    """The verdicts of a campaign's calls at an instant (ms); newer results replace older ones."""
    analyses, owed = stream.analyses, stream.owed
    code = np.full(len(stream.ledger.call), -1, dtype=np.int8)
    found = np.zeros((len(code), analyses.found.shape[1]), dtype=np.uint16)
    code[analyses.call] = VERDICTS.index(Verdict.PENDING)
    failed = (analyses.failed_at != NEVER) & (analyses.failed_at <= until)
    code[analyses.call[failed]] = VERDICTS.index(Verdict.FAILED)
    spoilt = np.isin(analyses.flaw, (Flaw.AGENT_ERROR, Flaw.NOT_RECORDED))
    code[analyses.call[spoilt]] = VERDICTS.index(Verdict.NOT_ANALYZED)
    rows = np.flatnonzero(owed.content != Content.NOTHING)
    rows = rows[np.argsort(owed.ready_at[rows], kind="stable")]
    of_content = np.zeros(len(Content), dtype=np.int8)
    for content, verdict in OF_CONTENT.items():
        of_content[content] = VERDICTS.index(verdict)
    code[owed.call[rows]] = of_content[owed.content[rows]]  # numpy keeps the last of several
    found[owed.call[rows]] = owed.found[rows]
    return Verdicts(code, found)


def funnel_steps(verdicts: Verdicts, has_funnel: bool) -> NDArray[np.int16]:
    """How many funnel steps each call's newest result says were reached; -1 if it says nothing.

    0 stands for Unknown: not even the first step was reached, or the result is a fallback, which
    has a funnel whether or not the agent defines one.
    """
    kinds = [Verdict.NO_CONVERSATION, Verdict.UNAVAILABLE]
    if has_funnel:
        kinds.append(Verdict.ANALYZED)
    known = np.isin(verdicts.code, [VERDICTS.index(kind) for kind in kinds])
    return np.where(known, verdicts.found[:, 0].astype(np.int16), np.int16(-1))
