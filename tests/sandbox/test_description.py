"""The OpenAPI description: valid, and true of every golden request and webhook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.asking import Client, exchange_of_the_corpus
from tests.sandbox.described import (
    DOCUMENT,
    GUESSED,
    OPERATIONS,
    body_of,
    operation_of,
    validator,
)

from dialsim.sandbox.failures import ASKED_FOR, NOT_KEPT
from sandbox.test_corpus import CASES, envelope, sent

WEBHOOKS = Path(__file__).parents[1] / "webhooks" / "golden"
SCHEDULE = OPERATIONS["scheduleCampaign"]


def described(request: dict[str, Any]) -> dict[str, Any] | None:
    """The operation that a golden request means."""
    return operation_of(request["method"], request["path"])


def test_the_description_is_valid_openapi() -> None:
    import openapi_spec_validator  # compiles grammars for a second

    openapi_spec_validator.validate(DOCUMENT)
    assert DOCUMENT["openapi"].startswith("3.1.")
    guessed = {path: GUESSED["paths"][path] for path in GUESSED["paths"].keys() - DOCUMENT["paths"]}
    openapi_spec_validator.validate(GUESSED | {"paths": guessed})
    assert GUESSED["paths"] == DOCUMENT["paths"] | guessed


def test_the_description_is_served_without_a_key() -> None:
    client = Client(exchange_of_the_corpus())
    served = client.ask("GET", "/openapi.json")
    assert served.headers["content-type"] == "application/json"
    assert served.json() == DOCUMENT


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_every_golden_answer_is_as_described(case: dict[str, Any]) -> None:
    operation, status = described(case["request"]), str(case["response"]["status"])
    body = json.loads(envelope(case["response"]))
    answers = operation["responses"] if operation else {}
    if status in ("404", "405") and body["code"] in ("NOT_FOUND", "METHOD_NOT_ALLOWED"):
        assert operation is None or status not in answers or status == "404"
        validator({"$ref": "#/components/schemas/Failure"}).validate(body)
    elif operation is None:  # the key comes before the path and the method
        assert status == "401"
        validator({"$ref": "#/components/schemas/Failure"}).validate(body)
    else:
        body_of(answers[status]).validate(body)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["case"])
        for case in CASES
        if case["request"]["path"].endswith("/schedule") and "json" in case["request"]
    ],
)
def test_what_is_accepted_is_as_described_and_what_is_not_described_is_refused(
    case: dict[str, Any],
) -> None:
    _, body = sent(case["request"])
    fits = body_of(SCHEDULE["requestBody"]).is_valid(json.loads(body or b""))
    assert fits or case["response"]["status"] >= 400
    if case["response"]["status"] in (200, 409):  # 409 means that the body is well-formed
        assert fits


def test_every_code_of_the_interface_that_is_described_has_a_golden_answer() -> None:
    codes = {
        (status, code)
        for operation in OPERATIONS.values()
        for status, answer in operation["responses"].items()
        if operation["tags"] == ["interface"] and status != "200"
        for code in answer["content"]["application/json"]["examples"]
    }
    golden = {
        (str(case["response"]["status"]), case["response"].get("code"))
        for case in CASES
        if described(case["request"])
    }
    elsewhere = {(str(kind.status), kind.code) for kind in (*ASKED_FOR, NOT_KEPT)}
    assert codes - golden == elsewhere - golden


def test_every_shape_is_closed() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert schema.get("type") != "object" or schema["additionalProperties"] is False, name


def test_every_array_has_items() -> None:  # generators of clients drop the whole model otherwise
    def parts(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield value
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, dict | list):
                yield from parts(part)

    arrays = [part for part in parts(DOCUMENT) if part.get("type") == "array"]
    assert arrays
    assert [part for part in arrays if "items" not in part] == []


def test_examples_are_as_described() -> None:
    for operation in OPERATIONS.values():
        for answer in operation["responses"].values():
            examples = answer.get("content", {}).get("application/json", {}).get("examples", {})
            for example in examples.values():
                body_of(answer).validate(example["value"])
        for parameter in operation["parameters"]:
            if "example" in parameter:
                validator(parameter["schema"]).validate(parameter["example"])
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for field, part in schema.get("properties", {}).items():
            for example in part.get("examples", ()):
                assert validator(part).is_valid(example), (name, field)


@pytest.mark.parametrize("file", sorted(WEBHOOKS.glob("*.json")), ids=lambda file: file.stem)
def test_every_golden_webhook_is_as_described(file: Path) -> None:
    webhook = body_of(DOCUMENT["webhooks"]["CALL_RESULT"]["post"]["requestBody"])
    for post in json.loads(file.read_text("utf-8")):
        webhook.validate(post["body"])
