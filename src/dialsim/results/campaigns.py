"""The campaigns table: one row per change of a campaign's status."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dialsim.interface.status import CampaignStatus
from dialsim.results.columns import instants, names
from dialsim.results.reading import Reading

CAMPAIGN_STATUSES = tuple(CampaignStatus)
CAMPAIGN_CAUSES = (
    "schedule",
    "start",
    "pause",
    "resume",
    "cancel",
    "delete",
    "end_date_time",
    "all_final",
)


def campaigns_table(reading: Reading) -> pd.DataFrame:
    """One row per change of status, by (at, organization, campaign, occurrence) (T4).

    The first row is what becomes of a DRAFT; deleting a final campaign has a row whose statuses
    are the same (C8).
    """
    rows = sorted(reading.trace.campaigns, key=lambda row: (row.at, row.organization, row.campaign))
    codes = reading.catalog.campaign_codes(reading.world)
    return pd.DataFrame(
        {
            "at": instants(np.array([row.at for row in rows], dtype=np.int64)),
            "organization": names(
                [row.organization for row in rows], reading.catalog.organizations
            ),
            "campaign": names(
                [codes[row.organization][row.campaign] for row in rows], reading.catalog.campaigns
            ),
            "from_status": names(
                [CAMPAIGN_STATUSES.index(row.from_status) for row in rows], CAMPAIGN_STATUSES
            ),
            "to_status": names(
                [CAMPAIGN_STATUSES.index(row.to_status) for row in rows], CAMPAIGN_STATUSES
            ),
            "cause": names([CAMPAIGN_CAUSES.index(row.cause) for row in rows], CAMPAIGN_CAUSES),
        }
    )
