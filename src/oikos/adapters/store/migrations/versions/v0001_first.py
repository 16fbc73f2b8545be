"""The first schema: events with their chain, the ledger, read models, outputs, leases, wakes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "events",
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("wall_s", sa.Float, nullable=False),
        sa.Column("boot_s", sa.Float, nullable=False),
        sa.Column("boot_id", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("body_sha256", sa.LargeBinary, nullable=False),
        sa.Column("prev", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("ix_events_session_id_seq", "events", ["session_id", "seq"], unique=True)
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.LargeBinary, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "consents",
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("consent_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("prev", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("position"),
        sa.UniqueConstraint("consent_id"),
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("opened_s", sa.Float, nullable=False),
        sa.Column("waiting_for", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id"),
    )
    op.create_table(
        "runs",
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer, nullable=True),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("risk", sa.Text, nullable=False),
        sa.Column("authority", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("started_s", sa.Float, nullable=False),
        sa.Column("ended_s", sa.Float, nullable=True),
        sa.Column("out_bytes", sa.Integer, nullable=False),
        sa.Column("err_bytes", sa.Integer, nullable=False),
        sa.Column("cap_bytes", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("position"),
        sa.UniqueConstraint("run_id"),
    )
    running = sa.text("status = 'running'")
    op.create_index("ix_runs_running", "runs", ["target_id"], sqlite_where=running, postgresql_where=running)
    op.create_index("ix_runs_session_id", "runs", ["session_id"], unique=False)
    op.create_table(
        "approvals",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("since_s", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "subject"),
    )
    op.create_table(
        "facts",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("entity_id", sa.Text, nullable=False),
        sa.Column("attribute", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("observed_s", sa.Float, nullable=False),
        sa.Column("ttl_s", sa.Float, nullable=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_facts_current", "facts", ["entity_id", "attribute", "observed_s", "id"], unique=False)
    op.create_table(
        "entities",
        sa.Column("entity_id", sa.Text, nullable=False),
        sa.Column("slug", sa.Text, nullable=False),
        sa.Column("gone", sa.Integer, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("entity_id"),
    )
    living = sa.text("gone = 0")
    op.create_index("ix_entities_slug", "entities", ["slug"], unique=True, sqlite_where=living, postgresql_where=living)
    op.create_table(
        "output_streams",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("total_bytes", sa.Integer, nullable=False),
        sa.Column("cap_bytes", sa.Integer, nullable=False),
        sa.Column("next_offset", sa.Integer, nullable=False),
        sa.Column("resume_offset", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stream"),
    )
    op.create_table(
        "output_chunks",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stream", "position"),
    )
    op.create_table(
        "leases",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("until_s", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("session_id"),
    )
    op.create_table(
        "wakes",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "reason"),
    )
