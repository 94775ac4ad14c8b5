"""Scenarios from Python objects: tables of people, dicts, tables of answer rates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dialsim
from dialsim.errors import DialsimError, ExistingOutput, OutputError, ScenarioError

PEOPLE = pd.DataFrame(
    {
        "tel": ["0812345678", "081-234-5679", "+66812345670"],
        "segment": ["gold", "other", "other"],
        "branch": ["BKK", "CNX", None],
        "balance": [1200.5, 80, 7],
        "card": ["0017", "0018", "0019"],
    }
)


def test_a_scenario_is_made_from_a_table_and_a_few_arguments() -> None:
    made = dialsim.scenario(
        people=PEOPLE,
        lines=3,
        windows="Mon-Fri 09:00-19:00",
        attempts=2,
        retry_interval=timedelta(hours=2),
        costs={"perDial": 0.5},
        end="Fri 18:00",
    )
    (organization,) = made.organizations
    (campaign,) = organization.campaigns
    assert organization.max_concurrent_calls == 3
    assert campaign.schedule is not None
    assert campaign.schedule.max_attempts == 2
    assert campaign.schedule.retry_interval == 7_200_000
    assert [day.day_of_week for day in campaign.schedule.time_windows] == [1, 2, 3, 4, 5]
    assert campaign.schedule.end_date_time is not None
    assert made.costs is not None
    result = dialsim.run(made)
    assert result.recipients.tel.tolist() == ["0812345678", "0812345679", "0812345670"]


def polars_people() -> Any:
    return pytest.importorskip("polars").from_arrow(pa.table(PEOPLE))


@pytest.mark.parametrize("make", [lambda: pa.table(PEOPLE), polars_people], ids=["arrow", "polars"])
def test_tables_of_other_libraries_give_the_same_scenario(make: Any) -> None:
    assert dialsim.scenario(make()).digest == dialsim.scenario(PEOPLE).digest


def test_people_may_be_a_number_a_block_or_a_file(tmp_path: Path) -> None:
    assert dialsim.scenario(50).organizations[0].campaigns[0].size == 50
    assert dialsim.scenario(np.int64(7)).organizations[0].campaigns[0].size == 7
    block = {"count": 30, "segments": {"a": 0.5, "b": 0.5}}
    assert dialsim.scenario(block).organizations[0].campaigns[0].size == 30
    PEOPLE.to_csv(tmp_path / "list.csv", index=False)
    assert dialsim.scenario(tmp_path / "list.csv").organizations[0].campaigns[0].size == 3


@pytest.mark.parametrize("head", ["phone", "Mobile", "เบอร์โทร", "Tel.", "Telephone no."])
def test_a_column_named_as_one_of_phone_numbers_is_found(head: str) -> None:
    renamed = PEOPLE.rename(columns={"tel": head}).assign(guarantor_phone="0899999999")
    recipients = dialsim.run(dialsim.scenario(renamed)).recipients
    assert recipients.tel.tolist() == ["0812345678", "0812345679", "0812345670"]
    assert head not in recipients.columns
    beside_ours = PEOPLE.assign(phone="0899999999")
    assert dialsim.run(dialsim.scenario(beside_ours)).recipients.tel[0] == "0812345678"


@pytest.mark.parametrize(
    ("heads", "says"),
    [
        (
            {"tel": "Guarantor phone"},
            "no column has a usual name for phone numbers: name it, columns=",
        ),
        (
            {"tel": "phone", "card": "mobile"},
            "phone and mobile may all hold phone numbers: name it",
        ),
    ],
)
def test_a_table_whose_phone_numbers_are_unclear_is_refused(
    heads: dict[str, str], says: str
) -> None:
    with pytest.raises(ScenarioError, match=says) as caught:
        dialsim.scenario(PEOPLE.rename(columns=heads))
    assert "people.csv" not in str(caught.value)
    with pytest.raises(ScenarioError, match='"x" is no column of people; columns are tel') as no:
        dialsim.scenario(PEOPLE, columns={"tel": "x"})
    assert str(no.value).startswith("scenario(columns=): ")


def test_own_columns_are_in_the_recipients_the_calls_and_the_exports(tmp_path: Path) -> None:
    result = dialsim.run(dialsim.scenario(PEOPLE, behaviour=0.3, attempts=3))
    recipients = result.recipients
    assert recipients.balance.tolist() == [1200.5, 80.0, 7.0]
    assert recipients.branch.tolist()[:2] == ["BKK", "CNX"]
    assert pd.isna(recipients.branch[2])
    assert recipients.card.tolist() == ["0017", "0018", "0019"]  # an id, not a number
    calls = result.calls_with()
    assert len(calls) == len(result.calls)
    assert calls.groupby("recipient").card.first().tolist() == ["0017", "0018", "0019"]
    assert [*result.calls_with("balance").columns] == [*result.calls.columns, "balance"]
    with pytest.raises(DialsimError, match="brnch is no column of recipients; there are organ"):
        result.calls_with("brnch")
    place = result.write(tmp_path / "run")
    assert pd.read_parquet(place / "recipients.parquet").branch[0] == "BKK"
    book = pd.read_excel(result.to_excel(tmp_path / "run.xlsx"), "recipients")
    assert book.balance.tolist() == [1200.5, 80, 7]
    opened = dialsim.open(place)
    assert opened.calls_with("branch").equals(result.calls_with("branch"))
    assert opened.summary.to_json() == result.summary.to_json()  # the list is in the folder


def test_own_columns_of_a_file_follow_the_chosen_people(tmp_path: Path) -> None:
    PEOPLE.assign(state="x").rename(columns={"tel": "phone"}).to_csv(tmp_path / "p.csv")
    block = {"file": str(tmp_path / "p.csv"), "columns": {"tel": "phone"}, "normalize": True,
             "where": "segment == 'other'"}  # fmt: skip
    recipients = dialsim.run(dialsim.scenario(block)).recipients
    assert recipients.card.tolist() == ["0018", "0019"]
    assert recipients["list.state"].tolist() == ["x", "x"]  # `state` is one of ours


def test_a_scenario_is_written_with_its_list_and_read_again(tmp_path: Path) -> None:
    made = dialsim.scenario(PEOPLE, lines=3, behaviour=0.4).with_(lines=4)
    path = made.to_yaml(tmp_path / "out" / "week.yaml")
    assert {file.name for file in path.parent.iterdir()} == {"week.yaml", "people.csv"}
    back = dialsim.load(path)
    assert back.digest == made.digest
    assert made.to_yaml(path) == path  # the same content
    with pytest.raises(ExistingOutput, match=r"week\.yaml exists already; force=True replaces it"):
        made.with_(lines=5).to_yaml(path)
    made.with_(lines=5).to_yaml(path, force=True)
    assert dialsim.load(path).organizations[0].max_concurrent_calls == 5


def test_a_list_outside_of_the_folder_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    made = dialsim.scenario(PEOPLE).origin
    assert made is not None
    text = made.text.replace("people.csv", "../people.csv")
    inside = dialsim.loads(text, folder=tmp_path / "in")
    with pytest.raises(OutputError, match="is outside of the scenario's folder"):
        inside.to_yaml(tmp_path / "deep" / "s.yaml")
    assert not (tmp_path / "deep").exists()


def test_a_dict_is_a_scenario() -> None:
    values = {
        "clock": {"end": datetime(2026, 1, 9, tzinfo=UTC)},
        "organizations": [
            {
                "name": "Acme",
                "maxConcurrentCalls": np.int64(4),
                "agents": [{"name": "A"}],
                "campaigns": [
                    {
                        "name": "C",
                        "agent": "A",
                        "recipients": {"count": 5},
                        "schedule": {"startDateTime": "2026-01-05T02:00:00Z"},
                    }
                ],
            }
        ],
    }
    made = dialsim.load(values, overrides={"lines": 6, "retryInterval": timedelta(minutes=90)})
    assert made.organizations[0].max_concurrent_calls == 6
    assert made.with_("seed=4", lines=7).seed == 4
    assert len(dialsim.run(made).recipients) == 5
    values["organizations"][0]["lnes"] = 4  # type: ignore[index]
    with pytest.raises(ScenarioError, match=r"^scenario: organizations\.0\.lnes "):
        dialsim.load(values)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lines": -1}, r"scenario\(lines=\): .*must not be less than 0"),
        ({"attempts": 0}, r"scenario\(attempts=\): .*must not be less than 1"),
        ({"windows": "xx"}, r'scenario\(windows=\): .*must name a day, which "xx" is not'),
        ({"retry_interval": "abc"}, r"scenario\(retry_interval=\): .*must be a duration such as"),
        ({"start": "foo"}, r"scenario\(start=\): .*must be a valid ISO 8601"),
        ({"end": datetime(2026, 1, 9)}, "has no time zone; give an aware datetime or text"),  # noqa: DTZ001
        ({"costs": {"perDail": 1}}, r"scenario\(costs=\): .*perDail"),
        ({"behaviour": "x"}, "behaviour: rates must be a share of answered attempts such as 0.35"),
        ({"behaviour": {"outcome": 1}}, r"scenario\(behaviour=\): .*outcome "),
        ({"columns": {"tel": "Phone"}}, r'scenario\(columns=\): .*"Phone" is no column of people'),
        ({"people": [1]}, "people must be a DataFrame .* not a list"),
        ({"people": True}, "people must be a DataFrame .* not True"),
        ({"people": pd.Series([1])}, "people must be a DataFrame .* not a Series"),
        ({"people": PEOPLE.assign(tel="none")}, r"scenario\(people=\), row 0: tel must"),
        ({"people": "none.csv"}, "none.csv: there is no such file"),
        ({"seed": -1}, r"scenario\(seed=\): seed must not be less than 0"),
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any], says: str) -> None:
    with pytest.raises(DialsimError, match=says):
        dialsim.scenario(**{"people": PEOPLE, **given})


def test_load_names_what_it_takes() -> None:
    with pytest.raises(
        DialsimError, match=r"a file, or a dict \(dialsim.scenario takes .*\), not a DataFrame"
    ):
        dialsim.load(PEOPLE)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        dialsim.load("a.yaml", ["seed=3"])  # type: ignore[misc]


RATES = pd.DataFrame(
    [(s, a, odds * fade) for s, odds in (("gold", 1.5), ("other", 0.5))
     for a, fade in ((1, 1.0), (2, 0.6), (3, 0.3))],
    columns=["segment", "attempt", "odds"],
)  # fmt: skip
RATES["answered"] = RATES.odds / (1 + RATES.odds)


def test_answer_rates_become_a_behaviour_that_has_them() -> None:
    people = {"count": 40_000, "segments": {"gold": 0.5, "other": 0.5}}
    made = dialsim.scenario(people, lines=4000, attempts=3, behaviour=RATES)
    calls = dialsim.run(made).calls
    found = calls.call_started_at.notna().groupby([calls.segment.astype(str), calls.attempt]).mean()
    for row in RATES.itertuples():
        assert found[row.segment, row.attempt] == pytest.approx(row.answered, abs=0.015)


def test_a_share_of_answers_is_a_behaviour() -> None:
    calls = dialsim.run(dialsim.scenario(20_000, lines=2000, attempts=1, behaviour=0.3)).calls
    assert calls.call_started_at.notna().mean() == pytest.approx(0.3, abs=0.01)


def test_rates_that_no_product_of_odds_has_warn() -> None:
    crossed = RATES.assign(answered=[0.6, 0.1, 0.6, 0.1, 0.6, 0.1])
    with pytest.warns(UserWarning, match="answer rates: .* of segment .*, attempt . becomes"):
        dialsim.behaviour(crossed)


@pytest.mark.parametrize(
    ("rates", "says"),
    [
        (1.5, "a share of answered attempts such as 0.35, or a DataFrame of answer rates, not 1.5"),
        (
            pd.DataFrame({"rate": [0.3]}),
            "rates must have a column answered, and segment, .* there are rate",
        ),
        (RATES.assign(answered=35), "answered must be shares from 0 to 1"),
        (pd.concat([RATES, RATES]), "two rows of the same segment and attempt"),
        (RATES.assign(attempt=RATES.attempt + 1), "attempt must count from 1 without a gap"),
    ],
)
def test_wrong_tables_of_rates_say_what_is_wrong(rates: object, says: str) -> None:
    with pytest.raises(DialsimError, match=says):
        dialsim.behaviour(rates)


def test_the_function_stands_before_the_package_of_its_name() -> None:
    import dialsim.scenario.loading

    assert callable(dialsim.scenario)
