from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.store.homes import append, opened, raw
from tests.wait import until

from oikos.adapters.store import migrate
from oikos.domain.errors import NewerDatabase, StoreError

ADDS_A_COLUMN = """
from __future__ import annotations
import sqlalchemy as sa
from alembic import op
revision = "0002"
down_revision = "0001"
def upgrade() -> None:
    op.add_column("sessions", sa.Column("mood", sa.Text, nullable=False, server_default=""))
    {more}
"""


class Upgrade:
    """A database of version 0001 and the next release's chain, whose 0002 adds a column."""

    def __init__(self, home: Path, more: str = "") -> None:
        self.path = home / "oikos.db"
        scripts = home / "migrations"
        shutil.copytree(migrate.CURRENT.scripts, scripts)
        (scripts / "versions" / "v0002_next.py").write_text(ADDS_A_COLUMN.format(more=more))
        self.versions = migrate.Versions(chain=("0001", "0002"), scripts=scripts, schema=migrate.CURRENT.schema)
        connection = self.connect()
        migrate.ensure(connection, self.path)
        connection.execute("INSERT INTO wakes VALUES ('s1', 'timer')")
        connection.close()

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)

    def run(self) -> None:
        connection = self.connect()
        try:
            migrate.ensure(connection, self.path, self.versions)
        finally:
            connection.close()

    def process(self) -> subprocess.Popen[bytes]:
        """Another process that starts on this database."""
        program = (
            "import sqlite3, sys; from pathlib import Path; from oikos.adapters.store import migrate\n"
            "path, scripts = Path(sys.argv[1]), Path(sys.argv[2])\n"
            "versions = migrate.Versions(chain=('0001', '0002'), scripts=scripts, schema=migrate.CURRENT.schema)\n"
            "migrate.ensure(sqlite3.connect(path, isolation_level=None), path, versions)\n"
        )
        argv = [sys.executable, "-c", program, str(self.path), str(self.versions.scripts)]
        return subprocess.Popen(argv, stderr=subprocess.PIPE)

    @property
    def version(self) -> object:
        return raw(self.path, "SELECT version_num FROM alembic_version")[0][0]

    @property
    def columns(self) -> list[object]:
        return [row[1] for row in raw(self.path, "PRAGMA table_info(sessions)")]

    @property
    def backups(self) -> list[str]:
        return sorted(path.name for path in self.path.parent.glob("oikos.db.*"))


async def fill(path: Path) -> None:
    """A database with one event."""
    async with opened(path) as store:
        await append(store, 0)


@pytest.fixture
def upgrade(tmp_path: Path) -> Upgrade:
    """The next release's first start is due."""
    return Upgrade(tmp_path)


def test_an_older_database_is_migrated_after_a_copy_was_put_beside_it(upgrade: Upgrade) -> None:
    upgrade.run()
    assert upgrade.version == "0002"
    assert "mood" in upgrade.columns
    assert raw(upgrade.path, "SELECT * FROM wakes") == [("s1", "timer")]
    copy = upgrade.path.with_name("oikos.db.backup-0001")
    assert upgrade.backups == [copy.name]
    assert raw(copy, "SELECT version_num FROM alembic_version") == [("0001",)]
    assert raw(copy, "SELECT * FROM wakes") == [("s1", "timer")]
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_migrated_database_is_left_alone(upgrade: Upgrade) -> None:
    upgrade.run()
    copy = upgrade.path.with_name("oikos.db.backup-0001")
    copy.unlink()
    upgrade.run()
    assert not copy.exists()


def test_a_migration_that_fails_changes_nothing_and_says_so_in_one_line(tmp_path: Path) -> None:
    upgrade = Upgrade(tmp_path, more='op.execute("INSERT INTO nowhere VALUES (1)")')
    with pytest.raises(StoreError, match=r"0002 failed and changed nothing.*nowhere") as caught:
        upgrade.run()
    assert "\n" not in str(caught.value)
    assert upgrade.version == "0001"
    assert "mood" not in upgrade.columns


def test_a_process_killed_in_a_migration_changes_nothing_and_the_next_one_finishes_it(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    hang_once = f"""import pathlib, time
    if not pathlib.Path({str(inside)!r}).exists():
        pathlib.Path({str(inside)!r}).touch()
        time.sleep(600)"""
    upgrade = Upgrade(tmp_path, more=hang_once)
    with upgrade.process() as process:
        until(inside.exists, "the migration to be in its middle", timeout_s=60)
        process.kill()
    assert upgrade.version == "0001"
    assert "mood" not in upgrade.columns
    upgrade.run()
    assert upgrade.version == "0002"
    assert raw(upgrade.path, "SELECT * FROM wakes") == [("s1", "timer")]


def test_of_processes_that_migrate_at_once_one_does_it_and_the_copy_is_the_old_one(upgrade: Upgrade) -> None:
    with upgrade.process() as first, upgrade.process() as second:
        assert [first.communicate(timeout=60), second.communicate(timeout=60)] == [(None, b"")] * 2
    assert upgrade.version == "0002"
    copy = upgrade.path.with_name("oikos.db.backup-0001")
    assert upgrade.backups == [copy.name]
    assert raw(copy, "SELECT version_num FROM alembic_version") == [("0001",)]


def test_a_newer_database_is_refused_with_the_remedy_and_not_touched(upgrade: Upgrade) -> None:
    upgrade.run()
    before = upgrade.path.read_bytes()
    connection = upgrade.connect()
    with pytest.raises(NewerDatabase, match=r"version 0002 of a newer Oikos.*0001.*oikos\.db\.backup-"):
        migrate.ensure(connection, upgrade.path)
    connection.close()
    assert upgrade.path.read_bytes() == before


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "oikos.db"
    raw(path, "CREATE TABLE pictures (id)")
    connection = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(StoreError, match="was not made by Oikos"):
        migrate.ensure(connection, path)
    connection.close()
    assert raw(path, "SELECT name FROM sqlite_master") == [("pictures",)]


def test_the_chain_named_in_the_code_is_the_one_on_disk() -> None:
    files = sorted((migrate.CURRENT.scripts / "versions").glob("v*.py"))
    assert [path.name[1:5] for path in files] == list(migrate.CURRENT.chain)


def test_a_normal_start_imports_neither_sqlalchemy_nor_alembic(tmp_path: Path) -> None:
    path = tmp_path / "oikos.db"
    asyncio.run(fill(path))
    program = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from oikos.adapters.store.sql import SqlStore\nfrom oikos.adapters.clock import SystemClock\n"
        "async def main():\n"
        "    for path in sys.argv[1:]:\n"
        "        store = await SqlStore.open(Path(path), clock=SystemClock())\n"
        "        await store.sessions()\n"
        "        await store.close()\n"
        "asyncio.run(main())\n"
        "print(*sorted({'sqlalchemy', 'alembic', 'pydantic'} & set(sys.modules)))\n"
    )
    argv = [sys.executable, "-c", program, str(path), str(tmp_path / "fresh.db")]
    process = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert process.stdout == "\n"
