"""Recordings: short sounds that stand for what was said in calls; their form is ours."""

from __future__ import annotations

import io
import wave

import numpy as np

LONGEST_MS = 5_000
"""No recording is longer, however long the conversation was."""

RATE = 8_000  # samples per second, as on the telephone
_LOUDNESS = 6_000
_SHORTEST_PERIOD, _PITCHES = 16, 32  # in samples: tones from 170 to 500 Hz


def recording(call_id: str, talk_ms: int, silent: bool) -> bytes:
    """A call's recording: WAV, mono, 16 bits, 8 kHz.

    It is as long as the conversation was, up to `LONGEST_MS`: one tone, which differs from call to
    call, or silence where nobody spoke.
    """
    count = min(talk_ms, LONGEST_MS) * RATE // 1_000
    samples = np.zeros(count, dtype="<i2") if silent else _tone(call_id, count)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.tobytes())
    return file.getvalue()


def _tone(call_id: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """A triangle wave, in whole numbers: the same bytes everywhere."""
    period = _SHORTEST_PERIOD + int(call_id[:8], 16) % _PITCHES
    ramp = np.arange(count, dtype=np.int64) % period * 2
    wave_form = np.abs(ramp - period) * 2 - period
    return (wave_form * _LOUDNESS // period).astype("<i2")
