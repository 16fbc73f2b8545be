from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.homes import OPENED, append, opened, raw

from oikos.adapters.store.sqlite import BALLAST_BYTES, Sqlite
from oikos.domain import events as ev
from oikos.domain.errors import StoreError

pytestmark = pytest.mark.anyio

BIG = ev.GoalSet(goal=os.urandom(300_000).hex())


def modes(home: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o777) for path in sorted(home.iterdir())}


# ---- files ----------------------------------------------------------------------------------------------------------


async def test_files_are_private_even_under_an_open_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        async with opened(tmp_path / "state" / "oikos.db") as store:
            await append(store, 0)
            private = "0o600"
            assert modes(tmp_path / "state") == {
                "oikos.db": private, "oikos.db-shm": private, "oikos.db-wal": private, "oikos.db.ballast": private,
            }  # fmt: skip
            assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(old)


async def test_a_database_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "oikos.db"
    path.touch()
    path.chmod(0o666)
    async with opened(path):
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o1777, 0o750])
async def test_a_directory_that_is_open_to_others_is_refused_and_left_as_it_is(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "state"
    home.mkdir()
    home.chmod(mode)
    with pytest.raises(StoreError, match=f"chmod 700 {home}"):
        async with opened(home / "oikos.db"):
            pass
    assert list(home.iterdir()) == []
    assert home.stat().st_mode & 0o7777 == mode


async def test_a_directory_or_a_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    with pytest.raises(StoreError, match="is not a directory"):
        async with opened(tmp_path / "link" / "oikos.db"):
            pass
    (real / "oikos.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(StoreError, match="is not a file of this user"):
        async with opened(real / "oikos.db"):
            pass
    assert not (tmp_path / "elsewhere.db").exists()


async def test_a_path_through_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be used") as caught:
        async with opened(tmp_path / "file" / "oikos.db"):
            pass
    assert "\n" not in str(caught.value)


# ---- errors ---------------------------------------------------------------------------------------------------------


async def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "oikos.db"
    path.write_bytes(b"not a database at all " * 100)
    with pytest.raises(StoreError, match="is not an SQLite database: move it away"):
        async with opened(path):
            pass
    assert path.read_bytes() == b"not a database at all " * 100


async def test_a_damaged_database_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "oikos.db"
    async with opened(path) as store:
        for seq in range(200):
            await append(store, seq)
    root = raw(path, "SELECT rootpage FROM sqlite_master WHERE name = 'events'")[0][0]
    assert isinstance(root, int)
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    async with opened(path) as store:
        with pytest.raises(StoreError, match="is damaged"):
            await append(store, 200)
        with pytest.raises(StoreError, match="is damaged"):
            await store.load("s1")


async def test_a_database_locked_by_another_process_is_an_error_and_works_again_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "oikos.db"
    async with opened(path) as store:
        await append(store, 0)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        pending = [store.append(f"x{n}", 0, [OPENED], at=ev.Instant(wall_s=0, boot_s=0, boot_id=""), actor="a")
                   for n in range(5)]  # fmt: skip
        for call in pending:
            with pytest.raises(StoreError, match=r"locked by another process for 0\.2 s; nothing was written"):
                await call
        assert len(await store.load("s1")) == 1, "reading goes on"
        other.execute("ROLLBACK")
        other.close()
        assert await append(store, 1) == 2


async def test_a_full_disk_is_an_error_that_writes_nothing_half(tmp_path: Path) -> None:
    path = tmp_path / "oikos.db"
    async with opened(path) as store:
        await append(store, 0)
        await store._execute("PRAGMA max_page_count = 60", ())
        with pytest.raises(StoreError, match="is full; nothing was written: free some space"):
            await append(store, 1, OPENED, BIG, OPENED)
        assert len(await store.load("s1")) == 1
        assert not path.with_name("oikos.db.ballast").exists(), "it was given up for the second try"
        await store._execute("PRAGMA max_page_count = 1000000", ())
        assert await append(store, 1, OPENED, BIG) == 3
        assert (await store.verify()).problems == ()


async def test_in_a_group_only_the_write_that_fails_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "oikos.db") as store:
        await store._execute("PRAGMA max_page_count = 60", ())
        at = ev.Instant(wall_s=0, boot_s=0, boot_id="")
        first, failing, last = (
            store.append(name, 0, [event], at=at, actor="a")
            for name, event in zip("abc", [OPENED, BIG, OPENED], strict=True)
        )
        assert await last == 1
        with pytest.raises(StoreError, match="is full"):
            await failing
        assert await first == 1
        assert (await store.verify()).problems == ()


def test_every_error_of_the_database_is_one_line_with_the_thing_and_a_remedy(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "oikos.db")
    read_only = sqlite3.connect("file::memory:?mode=ro", uri=True)
    read_only.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.OperationalError) as caught:
        read_only.execute("CREATE TABLE t (a)")
    read_only.close()
    said = str(database.explain(caught.value))
    assert "is read-only; nothing was written: make" in said
    assert str(tmp_path / "oikos.db") in said
    assert "\n" not in said
    assert str(database.explain(PermissionError(13, "Permission denied"))).endswith(
        "Permission denied: check its directory"
    )
    assert "refused: no such table" in str(database.explain(sqlite3.OperationalError("no such table: x")))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    home = tmp_path / "disk"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", home], check=True)
    try:
        yield home
    finally:
        subprocess.run(["umount", home], check=True)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.needs_root
async def test_when_the_disk_is_full_the_ballast_still_lets_an_outcome_be_written(small_disk: Path) -> None:
    path = small_disk / "oikos.db"
    async with opened(path) as store:
        await append(store, 0)
        ballast = small_disk / "oikos.db.ballast"
        assert ballast.stat().st_size == BALLAST_BYTES
        with pytest.raises(OSError, match="No space"):
            fill(small_disk / "filler")
        with pytest.raises(StoreError, match="is full"):
            await append(store, 1, ev.GoalSet(goal=os.urandom(1_500_000).hex()))
        assert not ballast.exists()
        assert await append(store, 1) == 2
        (small_disk / "filler").unlink()
        assert await append(store, 2, BIG) == 3
        assert (await store.verify()).problems == ()
    async with opened(path):
        assert ballast.exists(), "laid down again at the next start"
