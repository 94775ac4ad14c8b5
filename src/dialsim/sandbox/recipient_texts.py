"""Recipients as JSON (interface, section 2.4), in columns of what their texts are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Column = list[bytes] | bytes
"""A text for each of some recipients, or one for all of them."""


@dataclass(frozen=True, slots=True)
class RecipientTexts:
    """Some recipients: columns of JSON, and when (ms) time alone changes each of them next.

    `identifier` has no quotes around it. `progress` is what `callAttempt` and `latestCallStatus`
    are, `origin` what `campaignId` and `createdAt` are, with their names.
    """

    identifier: list[bytes]
    customer_name: list[bytes]
    tel: list[bytes]
    progress: Column
    agent_params: Column
    origin: bytes
    updated_at: Column
    personal_data_masked: Column
    until: NDArray[np.int64]

    def pages(self, size: int) -> Iterator[list[bytes]]:
        """So many of them at a time, the last ones fewer, with commas between them, in parts.

        The parts are as few as can be, and to be joined at once: a text for each recipient on the
        way would take twice as long.
        """
        before, columns, after = self._parts()
        row = [part for text in before for part in (text, b"")]
        between = after + b"," + before[0]
        for start in range(0, len(self.identifier), size):
            stop = min(start + size, len(self.identifier))
            page = [between, *row[1:]] * (stop - start)
            for place, column in enumerate(columns):
                page[2 * place + 1 :: len(row)] = column[start:stop]
            page[0] = before[0]
            page.append(after)
            yield page

    def _parts(self) -> tuple[list[bytes], list[list[bytes]], bytes]:
        """What stands before each list of texts, these lists, and the end."""
        before, columns, text = list[bytes](), list[list[bytes]](), b""
        labelled: tuple[tuple[bytes, Column], ...] = (
            (b'{"id":"', self.identifier),
            (b'","customerName":', self.customer_name),
            (b',"tel":', self.tel),
            (b",", self.progress),
            (b',"agentParams":', self.agent_params),
            (b",", self.origin),
            (b',"updatedAt":', self.updated_at),
            (b',"personalDataMasked":', self.personal_data_masked),
        )
        for label, column in labelled:
            text += label
            if isinstance(column, bytes):
                text += column
            else:
                before.append(text)
                columns.append(column)
                text = b""
        return before, columns, text + b"}"
