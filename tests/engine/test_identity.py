"""Ids: valid, unique, and a function of seed and position."""

from __future__ import annotations

import uuid

import numpy as np

from dialsim.engine.chance import call_ids, recipient_ids, session_ids

SEED = 1


def pairs(people: int, calls: int) -> tuple[np.ndarray, np.ndarray]:
    recipients = np.tile(np.arange(people), calls)
    return recipients, np.repeat(np.arange(1, calls + 1), people)


def test_ids_are_valid_uuids_of_version_4() -> None:
    recipients, calls = pairs(3000, 2)
    for ids in (
        call_ids(SEED, 0, 0, recipients, calls),
        session_ids(SEED, 0, 0, recipients, calls),
        recipient_ids(SEED, 0, 0, recipients),
    ):
        assert ids.dtype == np.dtype("S36")
        for text in ids[::53].astype(str):
            parsed = uuid.UUID(text)
            assert str(parsed) == text  # lower case, dashes in place
            assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)


def test_all_other_bits_vary() -> None:
    ids = recipient_ids(SEED, 0, 0, np.arange(4000)).astype(str)
    octets = np.array([list(uuid.UUID(text).bytes) for text in ids], dtype=np.uint8)
    share = np.unpackbits(octets, axis=1).mean(axis=0)
    fixed = {48: 0, 49: 1, 50: 0, 51: 0, 64: 1, 65: 0}  # RFC 9562: version 4 and variant 10
    assert {bit: share[bit] for bit in fixed} == fixed
    free = np.delete(share, list(fixed))
    assert abs(free - 0.5).max() < 5 / (2 * np.sqrt(4000))


def test_ids_are_unique_over_people_calls_campaigns_and_kinds() -> None:
    recipients, calls = pairs(5000, 3)
    everything = np.concatenate(
        [
            make(seed, *position, recipients, calls)
            for make in (call_ids, session_ids)
            for seed, position in ((1, (0, 0)), (1, (0, 1)), (1, (1, 0)), (2, (0, 0)))
        ]
        + [recipient_ids(1, 0, c, np.arange(5000)) for c in (0, 1)]
    )
    assert len(np.unique(everything)) == len(everything)


def test_an_id_does_not_depend_on_what_else_is_asked_for_or_in_which_order() -> None:
    recipients, calls = pairs(9000, 2)
    ids = call_ids(SEED, 2, 1, recipients, calls)
    order = np.random.default_rng(3).permutation(len(recipients))
    assert (call_ids(SEED, 2, 1, recipients[order], calls[order]) == ids[order]).all()
    for row in (0, 4095, 4096, 8191, 8192, 8999, 9000, 17_999):
        alone = call_ids(SEED, 2, 1, recipients[row : row + 1], calls[row : row + 1])
        assert alone[0] == ids[row]
    narrow = call_ids(SEED, 2, 1, recipients.astype(np.int32), calls.astype(np.int32))
    assert (narrow == ids).all()


def test_no_rows_have_no_ids() -> None:
    nobody = np.empty(0, dtype=np.int64)
    assert call_ids(SEED, 0, 0, nobody, nobody).tolist() == []


def test_ids_never_change_from_version_to_version() -> None:
    recipients, calls = np.array([0, 1, 4095, 4096, 0]), np.array([1, 1, 1, 1, 2])
    assert call_ids(SEED, 0, 0, recipients, calls).astype(str).tolist() == [
        "e566fcab-eec9-4f9c-9cf6-7f228ed366d9",
        "507a651c-9758-447c-b51c-8e71b8a75c6a",
        "4d980faa-a055-4255-845b-4de5456da3bb",
        "bd97c40d-75ff-4b3e-958f-5fd0a3233873",
        "197d7ab6-6b0d-4d86-9a80-0c52f93ff905",
    ]
    assert session_ids(SEED, 0, 0, recipients[:2], calls[:2]).astype(str).tolist() == [
        "e095e9e6-64c8-43c0-aaee-e163547993a4",
        "e386307c-a3ca-4ea4-b8de-64e78dd16624",
    ]
    assert recipient_ids(SEED, 0, 0, recipients[:2]).astype(str).tolist() == [
        "c367081d-159b-4888-bbfc-d2cd3f30dbfb",
        "ac6f476b-c02f-4375-86ac-ca54364ad10d",
    ]
