from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np

from dialsim.interface.payload import VALID_SECONDS, links

IDS = np.array(
    [b"e566fcab-eec9-4f9c-9cf6-7f228ed366d9", b"e566fcab-eec9-4f9c-9cf6-7f228ed366d8"], dtype="S36"
)
SENT = np.array([1_767_582_117_000, 1_767_582_117_999], dtype=np.int64)


def made(base: str = "http://127.0.0.1:8400", sent: np.ndarray = SENT, seed: int = 1) -> list[str]:
    return links(base, "recordings", IDS, sent, seed)


def signature(link: str) -> str:
    return parse_qs(urlsplit(link).query)["signature"][0]


def test_links_lead_to_the_file_of_the_call_and_expire_within_the_hour() -> None:
    for link, call_id, sent in zip(made(), IDS, SENT, strict=True):
        parts = urlsplit(link)
        assert link.startswith("http://127.0.0.1:8400/")
        assert parts.path == f"/files/recordings/{call_id.decode()}.wav"
        expires = int(parse_qs(parts.query)["expires"][0]) * 1000
        assert sent < expires <= sent + VALID_SECONDS * 1000


def test_the_signature_is_the_same_every_time_and_another_for_another_file() -> None:
    assert made() == made()
    signatures = [*map(signature, made()), *map(signature, made(seed=2))]
    signatures += [*map(signature, made(sent=SENT + 1000))]
    signatures += [signature(link) for link in links("http://x.test", "transcripts", IDS, SENT, 1)]
    assert len(set(signatures)) == len(signatures)
    assert all(re.fullmatch("[0-9a-f]{16}", text) for text in signatures)


def test_one_link_alone_is_the_one_among_many() -> None:
    alone = links("http://127.0.0.1:8400", "recordings", IDS[1:], SENT[1:], 1)
    assert alone[0] == made()[1]


def test_the_public_url_may_end_with_a_slash_and_hold_odd_characters() -> None:
    assert made("http://127.0.0.1:8400/") == made()
    assert all(link.isascii() and '"' not in link for link in made('http://x.test/ก"\\'))
