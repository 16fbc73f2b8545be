"""Alembic's way into the chain; `alembic_run` hands over the connection, with its transaction begun."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
