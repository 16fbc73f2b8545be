"""The tables, as SQLAlchemy Core: what the migrations arrive at and `schema.sql` is made from.

SQLAlchemy costs four times the import of everything else a command line call needs, so no running Oikos imports
this module: a fresh database is made from `schema.sql`, the statements of `statements.py` are plain SQL, and tests
hold all three together (`tests/store/test_schema.py`).

    python -m oikos.adapters.store.schema > src/oikos/adapters/store/schema.sql
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import Column, CreateIndex, CreateTable, Index, MetaData, Table
from sqlalchemy.sql import text
from sqlalchemy.types import Float, Integer, LargeBinary, String, Text

LIVING = text("gone = 0")
RUNNING = text("status = 'running'")

metadata = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s"})


def _text(name: str, *, key: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=False)


def _integer(name: str, *, key: bool = False, nullable: bool = False) -> Column[int]:
    return Column(name, Integer, primary_key=key, nullable=nullable, autoincrement=False if not key else "auto")


def _number(name: str, *, nullable: bool = False) -> Column[float]:
    return Column(name, Float, nullable=nullable)


def _bytes(name: str, *, key: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary, primary_key=key, nullable=False)


# ---- what is true ---------------------------------------------------------------------------------------------------

events = Table(
    "events",
    metadata,
    _integer("position", key=True),  # the order of the chain over all sessions, 1 … n
    _text("session_id"),  # "" is the store's own stream: purges
    _integer("seq"),  # (session_id, seq) is the key of the stream; expected by every append
    _text("kind"),
    _integer("version"),
    _number("wall_s"),
    _number("boot_s"),
    _text("boot_id"),
    _text("actor"),
    _bytes("body_sha256"),
    _bytes("prev"),
    _bytes("hash"),
    _text("body"),  # JSON; long texts are references to blobs
    Index("ix_events_session_id_seq", "session_id", "seq", unique=True),
)
blobs = Table("blobs", metadata, _bytes("sha256", key=True), _bytes("data"))
consents = Table(
    "consents",
    metadata,
    _integer("position", key=True),
    Column("consent_id", Text, nullable=False, unique=True),
    _text("session_id"),
    _integer("seq"),  # of the ConsentGranted event it repeats
    _text("body"),
    _bytes("prev"),
    _bytes("hash"),
)

# ---- read models, written in the transaction of the events ----------------------------------------------------------

sessions = Table(  # last seq and activity are those of the last event: most appends change nothing here
    "sessions",
    metadata,
    _text("session_id", key=True),
    _text("title"),
    _text("phase"),
    _integer("generation"),
    _number("opened_s"),
    _text("waiting_for"),
)
runs = Table(
    "runs",
    metadata,
    _integer("position", key=True),  # of its RunStarted
    Column("run_id", Text, nullable=False, unique=True),
    Column("session_id", Text, nullable=False, index=True),
    _integer("generation"),
    _integer("step", nullable=True),
    _text("target_id"),
    _text("target"),
    _text("command"),
    _text("risk"),
    _text("authority"),
    _text("status"),
    _text("outcome"),
    _number("started_s"),
    _number("ended_s", nullable=True),
    _integer("out_bytes"),
    _integer("err_bytes"),
    _integer("cap_bytes"),
    Index("ix_runs_running", "target_id", sqlite_where=RUNNING, postgresql_where=RUNNING),
)
approvals = Table(
    "approvals",
    metadata,
    _text("session_id", key=True),
    _text("subject", key=True),  # "plan", or the id of a parked run
    _integer("generation"),
    _text("digest"),
    _text("text"),
    _number("since_s"),
)
facts = Table(
    "facts",
    metadata,
    _integer("id", key=True),
    _text("entity_id"),
    _text("attribute"),
    _text("value"),
    _text("source"),
    _number("observed_s"),
    _number("ttl_s", nullable=True),
    _text("session_id"),  # "" when it came from no session
    Index("ix_facts_current", "entity_id", "attribute", "observed_s", "id"),
)

# ---- what is no event -----------------------------------------------------------------------------------------------

entities = Table(
    "entities",
    metadata,
    _text("entity_id", key=True),
    _text("slug"),
    _integer("gone"),
    _text("mode"),
    _text("body"),
    Index("ix_entities_slug", "slug", unique=True, sqlite_where=LIVING, postgresql_where=LIVING),
)
output_streams = Table(
    "output_streams",
    metadata,
    _text("run_id", key=True),
    _text("stream", key=True),
    _integer("total_bytes"),  # accepted, kept or not
    _integer("cap_bytes"),
    _integer("next_offset"),  # raw; whatever begins before it is a repeat
    _integer("resume_offset"),  # raw; where a follower goes on
)
output_chunks = Table(
    "output_chunks",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("stream", Text, primary_key=True),
    _integer("position", key=True),  # in accepted bytes
    _bytes("data"),
)
leases = Table("leases", metadata, _text("session_id", key=True), _text("owner"), _integer("epoch"), _number("until_s"))
wakes = Table("wakes", metadata, _text("session_id", key=True), _text("reason", key=True))
version = Table("alembic_version", metadata, Column("version_num", String(32), primary_key=True))


def ddl() -> Iterator[str]:
    """The statements that make a fresh SQLite database."""
    dialect = sqlite.dialect()
    for table in metadata.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect)).strip()
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=dialect)).strip()


if __name__ == "__main__":
    lines = [line.rstrip().replace("\t", "    ") for statement in ddl() for line in f"{statement};".splitlines()]
    print("-- Made by schema.py; do not edit.", *lines, sep="\n")  # allow: print - writes a source file
