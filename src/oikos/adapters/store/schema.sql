-- Made by schema.py; do not edit.
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    PRIMARY KEY (version_num)
);
CREATE TABLE approvals (
    session_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    generation INTEGER NOT NULL,
    digest TEXT NOT NULL,
    text TEXT NOT NULL,
    since_s FLOAT NOT NULL,
    PRIMARY KEY (session_id, subject)
);
CREATE TABLE blobs (
    sha256 BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (sha256)
);
CREATE TABLE consents (
    position INTEGER NOT NULL,
    consent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (position),
    UNIQUE (consent_id)
);
CREATE TABLE entities (
    entity_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    gone INTEGER NOT NULL,
    mode TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (entity_id)
);
CREATE UNIQUE INDEX ix_entities_slug ON entities (slug) WHERE gone = 0;
CREATE TABLE events (
    position INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    wall_s FLOAT NOT NULL,
    boot_s FLOAT NOT NULL,
    boot_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    body_sha256 BLOB NOT NULL,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (position)
);
CREATE UNIQUE INDEX ix_events_session_id_seq ON events (session_id, seq);
CREATE TABLE facts (
    id INTEGER NOT NULL,
    entity_id TEXT NOT NULL,
    attribute TEXT NOT NULL,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    observed_s FLOAT NOT NULL,
    ttl_s FLOAT,
    session_id TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX ix_facts_current ON facts (entity_id, attribute, observed_s, id);
CREATE TABLE leases (
    session_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    until_s FLOAT NOT NULL,
    PRIMARY KEY (session_id)
);
CREATE TABLE output_chunks (
    run_id TEXT NOT NULL,
    stream TEXT NOT NULL,
    position INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (run_id, stream, position)
);
CREATE TABLE output_streams (
    run_id TEXT NOT NULL,
    stream TEXT NOT NULL,
    total_bytes INTEGER NOT NULL,
    cap_bytes INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    resume_offset INTEGER NOT NULL,
    PRIMARY KEY (run_id, stream)
);
CREATE TABLE runs (
    position INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    step INTEGER,
    target_id TEXT NOT NULL,
    target TEXT NOT NULL,
    command TEXT NOT NULL,
    risk TEXT NOT NULL,
    authority TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT NOT NULL,
    started_s FLOAT NOT NULL,
    ended_s FLOAT,
    out_bytes INTEGER NOT NULL,
    err_bytes INTEGER NOT NULL,
    cap_bytes INTEGER NOT NULL,
    PRIMARY KEY (position),
    UNIQUE (run_id)
);
CREATE INDEX ix_runs_running ON runs (target_id) WHERE status = 'running';
CREATE INDEX ix_runs_session_id ON runs (session_id);
CREATE TABLE sessions (
    session_id TEXT NOT NULL,
    title TEXT NOT NULL,
    phase TEXT NOT NULL,
    generation INTEGER NOT NULL,
    opened_s FLOAT NOT NULL,
    waiting_for TEXT NOT NULL,
    PRIMARY KEY (session_id)
);
CREATE TABLE wakes (
    session_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (session_id, reason)
);
