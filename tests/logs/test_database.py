"""Logs in databases: read from SQLite and PostgreSQL as from a file, in bounded memory."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pytest

from cli.program import dialsim
from dialsim.errors import LogError
from dialsim.logs.log import Log, read_log
from logs.good_log import SKETCH, Entry, entries, written
from logs.test_log import PLAIN

pytest.importorskip("sqlalchemy")


@pytest.fixture(scope="module")
def good() -> list[Entry]:
    return entries(400)


@pytest.fixture(scope="module")
def log(good: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> Log:
    return read_log(written(tmp_path_factory.mktemp("log"), good))


@pytest.fixture(scope="module")
def file(good: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("db") / "calls.db"
    with sqlite3.connect(path) as database:
        database.execute("create table webhooks (id integer, kind text, body text, raw blob)")
        database.execute("create table other (n integer)")
        database.execute("create view of_results as select body from webhooks where kind = 'R'")
        texts = [orjson.dumps(entry).decode() for entry in good]
        database.executemany(
            "insert into webhooks values (?, 'R', ?, ?)",
            [(number, text, text.encode()) for number, text in enumerate(texts)],
        )
    return path


def same(found: Log, log: Log) -> None:
    pd.testing.assert_frame_equal(found.calls[PLAIN], log.calls[PLAIN])
    assert (found.form, found.damaged) == ("database", 0)
    assert found.settings == log.settings


@pytest.mark.parametrize(
    "asked",
    [
        {"table": "webhooks"},
        {"table": "webhooks", "column": "body"},
        {"table": "webhooks", "column": "raw"},
        {"table": "of_results"},
        {"query": "select body from webhooks where kind like '%R' and ':a' = ':a' order by id"},
    ],
)
def test_a_table_or_a_query_of_sqlite(asked: dict[str, str], file: Path, log: Log) -> None:
    same(read_log(f"sqlite:///{file}", **asked), log)  # type: ignore[arg-type]


def test_rows_are_read_by_chunks_and_progress_tells_rows(
    file: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialsim.logs.entries.CHUNK", 120)
    told: list[tuple[int, int]] = []
    url = f"sqlite:///{file}"
    same(read_log(url, table="webhooks", progress=lambda *at: told.append(at)), log)
    assert told[0] == (120, 0)
    assert told[-1] == (400, 0)


@pytest.mark.slow
def test_a_row_that_fails_late_ends_the_reading(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialsim.logs.entries.CHUNK", 60)  # several processes read the last
    query = "select case when id < 370 then body else json_extract('{', '$') end from webhooks"
    with pytest.raises(LogError, match=r"can't be read after 360 rows \(malformed JSON\)"):
        read_log(f"sqlite:///{file}", query=query)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, r"name a table \(--table\) or a query \(--query\); it has other, webhooks, of_res"),
        ({"table": "hooks"}, "no table 'hooks'; it has other, webhooks, of_results"),
        ({"table": "webhooks", "column": "payload"},
         "table webhooks: no column 'payload'; there are 'id', 'kind', 'body', 'raw'"),
        ({"table": "other"}, "no body of a CALL_RESULT webhook in it"),
        ({"table": "other", "column": "n"}, "no body of a CALL_RESULT webhook in it"),
        ({"table": "a", "query": "select 1"}, "not both"),
        ({"query": "select body from webhooks", "column": "body"}, "--column is for tables"),
        ({"query": "select absent"}, r"can't be read \(no such column: absent\)"),
        ({"query": "begin"}, "the query returns no rows"),
        ({"query": "delete from webhooks"}, r"can't be read \(attempt to write a readonly"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_named(asked: dict[str, str], said: str, file: Path) -> None:
    with pytest.raises(LogError, match=said):
        read_log(f"sqlite:///{file}", **asked)  # type: ignore[arg-type]
    with sqlite3.connect(file) as database:
        assert database.execute("select count(*) from webhooks").fetchone() == (400,)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///none.db", "no such file"),
        ("nothing://there/db", "SQLAlchemy knows no database 'nothing'"),
        ("mssql+pymssql://sa:Secret1@here/db", "its driver is not installed: pip install pymssql"),
        ("postgresql://me:Secret1@127.0.0.1:1/db?password=Secret1", "can't connect"),
        ("postgresql://me:Secret1@here:port/db", "the log is no URL of a database"),
    ],
)
def test_what_cannot_be_reached_is_said_without_passwords(
    url: str, said: str, tmp_path: Path
) -> None:
    done = dialsim("log", url, "--table", "webhooks", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Secret1" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_sqlalchemy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    with pytest.raises(LogError, match=r"needs SQLAlchemy: pip install '\.\[sql\]'"):
        read_log("sqlite:///calls.db", table="webhooks")


def test_a_file_has_no_tables(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="is no URL of a database"):
        read_log(written(tmp_path, entries(3)), table="webhooks")


def test_commands_read_databases(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{file}"
    assert dialsim("log", url, "--table", "webhooks", cwd=tmp_path).stdout.startswith(
        f"{url}: a database, 400 bodies, "
    )
    done = dialsim("verify", url, "--query", "select body from webhooks", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = dialsim("calibrate", url, "--table", "webhooks", "--out", "behaviour.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"from {url}" in (tmp_path / "behaviour.yaml").read_text(encoding="utf-8")


def test_a_database_is_compared_with_a_file(file: Path, good: list[Entry], tmp_path: Path) -> None:
    url, beside = f"sqlite:///{file}", written(tmp_path, good)
    (tmp_path / "plan.yaml").write_text(SKETCH.text, encoding="utf-8")
    in_table = ("--table", "webhooks", "--replications", "40", "--scenario", "plan.yaml")
    done = dialsim("compare-log", url, beside, *in_table, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No difference" in done.stdout
    done = dialsim("compare-log", beside, beside, *in_table, cwd=tmp_path)
    assert done.returncode == 2
    assert "is no URL of a database" in done.stderr


# A server of PostgreSQL, where one can be started ------------------------------------------------


@pytest.fixture(scope="module")
def server(good: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("psycopg")
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        pytest.skip("there is no PostgreSQL")
    folder = tmp_path_factory.mktemp("postgres")
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            shutil.chown(folder, "nobody")
        except LookupError:
            pytest.skip("PostgreSQL doesn't run as root, and there is nobody else")
        for parent in folder.parents[:3]:
            parent.chmod(parent.stat().st_mode | 0o011)
        user = {"user": "nobody", "extra_groups": []}

    def call(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]

    data = str(folder / "data")
    (folder / "password").write_text("Secret1")
    call("initdb", "-D", data, "-U", "me", "-A", "scram-sha-256", "--pwfile", "password", "-N")
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    call("pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    url = f"postgresql://me:Secret1@/postgres?host={folder}"
    try:
        fill(url, good)
        yield url
    finally:
        call("pg_ctl", "-D", data, "-m", "immediate", "stop")


def fill(url: str, good: list[Entry]) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("create schema kept")
        connection.execute("create sequence kept.numbers")
        connection.execute(
            "create table kept.webhooks (id int, at timestamptz, t text, j json, b jsonb, r bytea)"
        )
        rows: list[tuple[Any, ...]] = []
        for number, entry in enumerate(good):
            text = orjson.dumps(entry).decode()
            rows.append((number, entry["at"], text, text, text, text.encode()))
        with connection.cursor() as cursor:
            cursor.executemany("insert into kept.webhooks values (%s,%s,%s,%s,%s,%s)", rows)


@pytest.mark.parametrize(
    "column",
    [*(pytest.param(name, marks=pytest.mark.slow) for name in "tjr"), "b", None],
)
def test_a_table_of_postgresql(column: str | None, server: str, log: Log) -> None:
    found = read_log(server, table="kept.webhooks", column=column)
    plain = [name for name in PLAIN if name not in {"call_id", "recipient"}]  # rows have no order
    pd.testing.assert_frame_equal(
        found.calls.set_index("call_id")[plain].sort_index(),
        log.calls.set_index("call_id")[plain].sort_index(),
    )
    assert found.calls["recipient"].nunique() == log.calls["recipient"].nunique()
    assert "Secret1" not in found.source


@pytest.mark.parametrize("column", ["t", "j", "r"])
def test_a_query_of_postgresql(column: str, server: str, log: Log) -> None:
    same(read_log(server, query=f"select {column} from kept.webhooks order by id"), log)


def test_a_query_may_put_the_instant_beside_the_body(server: str, log: Log) -> None:
    query = (
        "select json_build_object('at', at, 'body', j->'body') from kept.webhooks "
        "where t::text like '%type%' order by id"
    )
    found = read_log(server, query=query)
    pd.testing.assert_series_equal(found.calls["sent_at"], log.calls["sent_at"])


def test_postgresql_only_reads(server: str) -> None:
    for query, said in {
        "delete from kept.webhooks returning t": "syntax error",
        "select nextval('kept.numbers')": "cannot execute nextval",
    }.items():
        with pytest.raises(LogError, match=rf"can't be read \({said}"):
            read_log(server, query=query)


def test_a_wrong_password_is_not_printed(server: str) -> None:
    with pytest.raises(LogError, match="can't connect") as refused:
        read_log(server.replace("Secret1", "Secret2"), table="kept.webhooks")
    assert "Secret" not in str(refused.value)
