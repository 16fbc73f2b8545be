"""Every SQL statement of the store, in the part of SQL that SQLite and PostgreSQL share.

Parameters are positional and written `?`; a dialect rewrites them if its driver wants another mark. A test prepares
each statement on a database made by the migrations, so none can drift from `schema.py`.
"""

from __future__ import annotations

from typing import Final

# ---- events ---------------------------------------------------------------------------------------------------------

HEAD: Final = "SELECT position, hash FROM events ORDER BY position DESC LIMIT 1"
PUT_EVENT: Final = """
INSERT INTO events (position, session_id, seq, kind, version, wall_s, boot_s, boot_id, actor, body_sha256, prev, hash,
                    body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
LOAD: Final = """
SELECT seq, kind, version, wall_s, boot_s, boot_id, body FROM events WHERE session_id = ? AND seq > ? ORDER BY seq"""
REPLAY: Final = """
SELECT position, seq, kind, version, wall_s, body FROM events WHERE session_id = ? ORDER BY seq"""
LAST_SEQ: Final = "SELECT coalesce(max(seq), 0) FROM events WHERE session_id = ?"
ALL_EVENTS: Final = """
SELECT position, session_id, seq, kind, version, wall_s, boot_s, boot_id, actor, body_sha256, prev, hash, body
FROM events ORDER BY position"""
PUT_BLOB: Final = "INSERT INTO blobs (sha256, data) VALUES (?, ?) ON CONFLICT (sha256) DO NOTHING"
BLOB: Final = "SELECT data FROM blobs WHERE sha256 = ?"
DROP_BLOB: Final = "DELETE FROM blobs WHERE sha256 = ?"
BLOB_ELSEWHERE: Final = "SELECT 1 FROM events WHERE session_id <> ? AND body LIKE ? LIMIT 1"
ALL_BLOBS: Final = "SELECT sha256, data FROM blobs"

# ---- consents -------------------------------------------------------------------------------------------------------

CONSENT_HEAD: Final = "SELECT position, hash FROM consents ORDER BY position DESC LIMIT 1"
PUT_CONSENT: Final = """
INSERT INTO consents (position, consent_id, session_id, seq, body, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"""
CONSENTS: Final = "SELECT body FROM consents ORDER BY position"
CONSENTS_OF: Final = "SELECT body FROM consents WHERE session_id = ? ORDER BY position"
ALL_CONSENTS: Final = "SELECT position, consent_id, session_id, seq, body, prev, hash FROM consents ORDER BY position"

# ---- read models ----------------------------------------------------------------------------------------------------

SESSION: Final = """
SELECT title, phase, generation, opened_s, waiting_for,
       (SELECT max(seq) FROM events WHERE events.session_id = sessions.session_id)
FROM sessions WHERE session_id = ?"""
SESSIONS: Final = """
SELECT sessions.session_id, title, phase, generation, events.seq, opened_s, events.wall_s, waiting_for
FROM sessions JOIN events ON events.session_id = sessions.session_id
  AND events.seq = (SELECT max(seq) FROM events AS other WHERE other.session_id = sessions.session_id)
ORDER BY events.wall_s DESC, events.position DESC LIMIT ?"""
PUT_SESSION: Final = """
INSERT INTO sessions (session_id, title, phase, generation, opened_s, waiting_for) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (session_id) DO UPDATE SET title = excluded.title, phase = excluded.phase,
  generation = excluded.generation, waiting_for = excluded.waiting_for"""
DROP_RUNS: Final = "DELETE FROM runs WHERE session_id = ?"
_RUN = """run_id, session_id, generation, step, target_id, target, command, risk, authority, status, outcome, started_s,
  ended_s, out_bytes, err_bytes"""
RUNS: Final = f"SELECT {_RUN} FROM runs ORDER BY position DESC LIMIT ?"
RUNS_UNFINISHED: Final = f"SELECT {_RUN} FROM runs WHERE status = 'running' ORDER BY position DESC LIMIT ?"
RUNS_OF: Final = f"SELECT {_RUN} FROM runs WHERE session_id = ? ORDER BY position DESC LIMIT ?"
RUNS_OF_UNFINISHED: Final = f"""
SELECT {_RUN} FROM runs WHERE session_id = ? AND status = 'running' ORDER BY position DESC LIMIT ?"""
RUN: Final = f"SELECT {_RUN} FROM runs WHERE run_id = ?"
PUT_RUN: Final = f"""
INSERT INTO runs (position, {_RUN}, cap_bytes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', '', ?, NULL, 0, 0, ?)"""
END_RUN: Final = """
UPDATE runs SET status = 'finished', outcome = ?, ended_s = ?, out_bytes = ?, err_bytes = ? WHERE run_id = ?"""
APPROVALS: Final = """
SELECT session_id, subject, generation, digest, text, since_s FROM approvals ORDER BY since_s, session_id, subject"""
PUT_APPROVAL: Final = """
INSERT INTO approvals (session_id, subject, generation, digest, text, since_s) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (session_id, subject) DO UPDATE SET generation = excluded.generation, digest = excluded.digest,
  text = excluded.text, since_s = excluded.since_s"""
DROP_APPROVAL: Final = "DELETE FROM approvals WHERE session_id = ? AND subject = ?"
DROP_APPROVALS: Final = "DELETE FROM approvals WHERE session_id = ?"
PUT_FACT: Final = """
INSERT INTO facts (entity_id, attribute, value, source, observed_s, ttl_s, session_id) VALUES (?, ?, ?, ?, ?, ?, ?)"""
DROP_FACTS: Final = "DELETE FROM facts WHERE session_id = ?"
FACTS: Final = """
SELECT entity_id, attribute, value, source, observed_s, ttl_s FROM facts AS fact
WHERE id = (SELECT id FROM facts AS other WHERE other.entity_id = fact.entity_id AND other.attribute = fact.attribute
            ORDER BY other.observed_s DESC, other.id DESC LIMIT 1)
ORDER BY entity_id, attribute"""

# ---- what is no event -----------------------------------------------------------------------------------------------

NAMESAKE: Final = "SELECT entity_id FROM entities WHERE slug = ? AND gone = 0 AND entity_id != ?"
ENTITIES: Final = "SELECT body FROM entities ORDER BY slug, entity_id"
PUT_ENTITY: Final = """
INSERT INTO entities (entity_id, slug, gone, mode, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (entity_id) DO UPDATE SET slug = excluded.slug, gone = excluded.gone, mode = excluded.mode,
  body = excluded.body"""
TARGET: Final = "SELECT gone, mode FROM entities WHERE entity_id = ?"
BUSY: Final = """
SELECT run_id FROM runs WHERE target_id = ? AND status = 'running' AND risk <> 'read_only' ORDER BY position LIMIT 1"""

OUTPUT_STREAM: Final = """
SELECT total_bytes, cap_bytes, next_offset, resume_offset FROM output_streams WHERE run_id = ? AND stream = ?"""
PUT_OUTPUT_STREAM: Final = """
INSERT INTO output_streams (run_id, stream, total_bytes, cap_bytes, next_offset, resume_offset)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, stream) DO UPDATE SET total_bytes = excluded.total_bytes, next_offset = excluded.next_offset,
  resume_offset = excluded.resume_offset"""
RESUME_OFFSETS: Final = "SELECT stream, resume_offset FROM output_streams WHERE run_id = ?"
RUN_CAP: Final = "SELECT cap_bytes FROM runs WHERE run_id = ?"
PUT_CHUNK: Final = "INSERT INTO output_chunks (run_id, stream, position, data) VALUES (?, ?, ?, ?)"
CHUNKS: Final = "SELECT position, data FROM output_chunks WHERE run_id = ? AND stream = ? ORDER BY position"
DROP_CHUNKS: Final = """
DELETE FROM output_chunks WHERE run_id = ? AND stream = ? AND position >= ? AND position + length(data) <= ?"""
DROP_OUTPUT: Final = "DELETE FROM output_chunks WHERE run_id = ? AND stream = ?"

LEASE: Final = "SELECT owner, epoch, until_s FROM leases WHERE session_id = ?"
PUT_LEASE: Final = """
INSERT INTO leases (session_id, owner, epoch, until_s) VALUES (?, ?, ?, ?)
ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch, until_s = excluded.until_s"""
PUT_WAKE: Final = "INSERT INTO wakes (session_id, reason) VALUES (?, ?) ON CONFLICT (session_id, reason) DO NOTHING"
FREE_LEASES: Final = "UPDATE leases SET owner = '', until_s = 0 WHERE owner = ?"
WAKES: Final = """
SELECT session_id, reason FROM wakes
WHERE NOT EXISTS (SELECT 1 FROM leases WHERE leases.session_id = wakes.session_id AND owner <> '' AND until_s > ?)
ORDER BY session_id, reason"""
DROP_WAKES: Final = "DELETE FROM wakes WHERE session_id = ?"
