from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from oikos.adapters.store import alembic_run, migrate, schema, statements


def shape(path: Path) -> dict[str, object]:
    """Tables, columns, keys and indexes of a database, without the words they were made with."""
    connection = sqlite3.connect(path)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found: dict[str, object] = {}
    for table in tables:
        found[table] = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
        for _, name, unique, origin, partial in connection.execute(f"PRAGMA index_list({table})").fetchall():
            columns = connection.execute(f"PRAGMA index_info({name})").fetchall()
            (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
            where = re.search("WHERE .*", sql or "")
            key = name if origin == "c" else f"{table} {origin} {columns}"
            found[key] = (table, unique, origin, partial, columns, where and where[0])
    connection.close()
    return found


@pytest.fixture
def created(tmp_path: Path) -> Path:
    """A database as a first start makes it."""
    path = tmp_path / "created.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate.ensure(connection, path)
    connection.close()
    return path


def test_a_fresh_database_has_the_schema_that_the_migrations_make(created: Path, tmp_path: Path) -> None:
    migrated = tmp_path / "migrated.db"
    alembic_run.upgrade(migrated, migrate.CURRENT.scripts, migrate.CURRENT.head, lambda: None)
    assert shape(created) == shape(migrated)


def test_a_fresh_database_has_the_schema_of_the_tables(created: Path, tmp_path: Path) -> None:
    declared = tmp_path / "declared.db"
    connection = sqlite3.connect(declared)
    for statement in schema.ddl():
        connection.execute(statement)
    connection.close()
    assert shape(created) == shape(declared)


def test_the_schema_file_is_what_the_tables_print() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "oikos.adapters.store.schema"], capture_output=True, text=True, check=True
    ).stdout
    assert migrate.CURRENT.schema.read_text() == printed, "python -m oikos.adapters.store.schema > …/schema.sql"


def test_every_statement_fits_the_schema(created: Path) -> None:
    connection = sqlite3.connect(created)
    texts = {name: text for name, text in vars(statements).items() if name.isupper() and not name.startswith("_")}
    assert len(texts) > 40
    for name, text in texts.items():
        try:
            connection.execute(f"EXPLAIN {text}", (None,) * text.count("?")).fetchall()
        except sqlite3.Error as error:
            pytest.fail(f"{name}: {error}")
    connection.close()


def test_the_tables_can_be_made_on_postgresql() -> None:
    for table in schema.metadata.sorted_tables:
        assert str(CreateTable(table).compile(dialect=postgresql.dialect())).strip().startswith("CREATE TABLE")
