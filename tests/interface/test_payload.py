from __future__ import annotations

import pytest

from dialsim.interface import CampaignStatus
from dialsim.interface.agent import ParamSchema
from dialsim.interface.payload import agent_json, campaign_json, data_expired
from dialsim.interface.schedule import read_schedule


def test_f3_campaign_settings_have_defaults_filled_in_and_windows_as_sent() -> None:
    window = {"dayOfWeek": 3, "time": [{"start": "09:00", "end": "12:00"}]}
    request = read_schedule(
        {
            "startDateTime": "2026-01-05T02:00:00Z",
            "endDateTime": "2026-01-06T02:00:00Z",
            "timeWindows": [window],
            "maxAttempts": 2,
            "sipAccountId": "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10",
        }
    )
    part = campaign_json(
        "id",
        "January",
        status=CampaignStatus.RUNNING,
        max_concurrent_calls=20,
        request=request,
        start_at=1_767_578_400_001,
    )
    assert part == {
        "id": "id",
        "name": "January",
        "status": "RUNNING",
        "maxAttempts": 2,
        "maxConcurrentCalls": 20,
        "retryInterval": 3_600_000,
        "scheduleStartAt": "2026-01-05T02:00:00.001Z",
        "scheduleEndAt": "2026-01-06T02:00:00.000Z",
        "scheduleDateTimeWindow": [window],
        "sipAccountId": "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10",
    }


def test_the_agents_schema_is_sent_without_what_it_leaves_out() -> None:
    schema = {"amount": ParamSchema(type="number", required=True, default=0, pronunciation_map=[])}
    assert agent_json("id", "Reminder", schema)["paramsSchema"] == {
        "amount": {"type": "number", "required": True, "default": 0, "pronunciation_map": []}
    }
    assert agent_json("id", "Reminder", None)["paramsSchema"] is None


@pytest.mark.parametrize("flag", ["audio", "personalData", "output"])
def test_each_flag_has_its_own_place(flag: str) -> None:
    flags = {"audio": False, "personalData": False, "output": False} | {flag: True}
    shown = data_expired(
        audio=flags["audio"], personal_data=flags["personalData"], output=flags["output"]
    )
    assert shown == flags
