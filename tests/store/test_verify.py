from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.store.homes import AT, OPENED, append, opened, raw

from oikos.domain import events as ev
from oikos.domain.consent import Channel, Consent, Grant
from oikos.domain.errors import StoreError
from oikos.domain.inventory import Fact
from oikos.domain.run import Exited, RunOrder, RunReport, Stream
from oikos.domain.verdict import Risk
from oikos.ports import AuditReport

pytestmark = pytest.mark.anyio

SAID = ev.OperatorSaid(text="look " * 1000, by="ada", channel="cli")
CONSENT = Consent(
    id="k1", grant=Grant.PLAN, session_id="s1", generation=1, digest="d", machines=("e1",), at=AT, by="ada",
    channel=Channel.CLI,
)  # fmt: skip
ORDER = RunOrder(run_id="r1", session_id="s1", generation=1, target_id="e1", command="uptime")
STARTED = ev.RunStarted(
    order=ORDER, call_id="c1", target="atlas", step=1, risk=Risk.READ_ONLY, effects=(), canonical="",
    authority="read_only", admitted="d",
)  # fmt: skip
FINISHED = ev.RunFinished(run_id="r1", report=RunReport(outcome=Exited(code=0)))
FACTS = ev.FactsWritten(
    entity_id="e1", facts=(Fact(entity_id="e1", key="up", value="1", source="run:r1", observed_s=1.0),)
)
EVENTS = (OPENED, SAID, ev.ConsentGranted(consent=CONSENT), STARTED, FINISHED, FACTS)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with two interleaved sessions: s1 has `EVENTS`, s2 the same but for run and consent."""
    path = tmp_path / "oikos.db"
    async with opened(path) as store:
        for seq, event in enumerate(EVENTS):
            await append(store, seq, event)
            other = event
            if isinstance(event, ev.ConsentGranted):
                other = ev.ConsentGranted(consent=replace(CONSENT, id="k2", session_id="s2"))
            if isinstance(event, ev.RunStarted | ev.RunFinished):
                other = ev.GoalSet(goal="same")
            await append(store, seq, other, session_id="s2")
        await store.put_output("r1", Stream.OUT, 0, b"up 3 days")
    return path


async def audit(path: Path, head: str = "") -> AuditReport:
    async with opened(path) as store:
        return await store.verify(head=head)


async def test_an_untouched_database_has_no_problems(path: Path) -> None:
    report = await audit(path)
    assert (report.events, report.consents, report.problems) == (12, 2, ())
    assert report.head == raw(path, "SELECT lower(hex(hash)) FROM events ORDER BY position DESC LIMIT 1")[0][0]
    assert (await audit(path, report.head)).problems == ()


async def test_an_empty_database_has_no_problems(tmp_path: Path) -> None:
    report = await audit(tmp_path / "oikos.db")
    assert report == AuditReport(events=0, consents=0, head="00" * 32)


TAMPERED = {
    "event edited": ("UPDATE events SET body = replace(body, 'ada', 'eve') WHERE position = 1", "its body was changed"),
    "event and its body's hash edited": (
        "UPDATE events SET body_sha256 = zeroblob(32) WHERE position = 3",
        "its hash does not fit its columns",
    ),
    "actor edited": ("UPDATE events SET actor = 'eve' WHERE position = 4", "its hash does not fit its columns"),
    "time edited": ("UPDATE events SET wall_s = wall_s + 1 WHERE position = 4", "its hash does not fit its columns"),
    "event deleted": ("DELETE FROM events WHERE position = 5", "5 expected: rows are missing"),
    "first event deleted": ("DELETE FROM events WHERE position = 1", "1 expected: rows are missing"),
    "events swapped": (
        "UPDATE events SET position = CASE position WHEN 1 THEN -2 ELSE -1 END WHERE position IN (1, 2);"
        "UPDATE events SET position = -position WHERE position < 0",
        "does not continue the row before it",
    ),
    "event inserted": (
        "INSERT INTO events SELECT 13, session_id, 7, kind, version, wall_s, boot_s, boot_id, actor, body_sha256, "
        "prev, hash, body FROM events WHERE position = 1",
        "does not continue the row before it",
    ),
    "session shortened in the middle": ("DELETE FROM events WHERE session_id = 's1' AND seq = 2", "seq 2 expected"),
    "event moved to another session": (
        "UPDATE events SET session_id = 's3' WHERE position = 12",
        "its hash does not fit its columns",
    ),
    "text edited": ("UPDATE blobs SET data = 'innocent'", "its content was changed"),
    "text deleted": ("DELETE FROM blobs", "no record says that it was purged"),
    "text added": ("INSERT INTO blobs VALUES (zeroblob(32), 'x')", "belongs to no event"),
    "consent deleted": ("DELETE FROM consents WHERE position = 1", "1 expected: rows are missing"),
    "last consent deleted": (
        "DELETE FROM consents WHERE position = 2",
        "the consent ledger is not what the events granted",
    ),
    "consent edited": (
        "UPDATE consents SET body = replace(body, 'ada', 'eve')",
        "consent 1 (k1): its hash does not fit",
    ),
    "run edited": ("UPDATE runs SET outcome = 'exit 1'", "runs: 2 rows are not what the events say"),
    "run deleted": ("DELETE FROM runs", "runs: 1 rows are not what the events say"),
    "fact edited": ("UPDATE facts SET value = '2' WHERE id = 1", "facts of sessions: 2 rows are not what"),
    "session edited": ("UPDATE sessions SET title = 'x' WHERE session_id = 's1'", "sessions: 2 rows are not what"),
    "approval forged": (
        "INSERT INTO approvals VALUES ('s1', 'plan', 1, 'd', 'x', 0)",
        "pending approvals: 1 rows are not what",
    ),
    "columns of other types": (
        "UPDATE events SET prev = 7, hash = 'x', body = x'00', body_sha256 = 1.5 WHERE position = 4",
        "its body was changed",
    ),
    "session named by a number": ("UPDATE events SET session_id = x'ff' WHERE position = 4", "its hash does not fit"),
    "unknown kind": ("UPDATE events SET kind = 'a.b' WHERE position = 1", "event kind 'a.b' version 1 is unknown"),
}


@pytest.mark.parametrize(("script", "problem"), TAMPERED.values(), ids=TAMPERED.keys())
async def test_what_somebody_changed_by_hand_is_found(path: Path, script: str, problem: str) -> None:
    raw(path, *script.split(";"))
    assert any(problem in line for line in (await audit(path)).problems)


async def test_a_cut_off_end_is_found_with_an_exported_head(path: Path) -> None:
    head = (await audit(path)).head
    raw(path, "DELETE FROM events WHERE position = 12", "DELETE FROM facts WHERE id = 2")
    assert (await audit(path)).problems == (), "alone, a chain cannot know its own length"
    (problem,) = (await audit(path, head)).problems
    assert problem.startswith(f"the exported head {head} is not in the chain")


async def test_a_chain_that_was_written_anew_is_found_with_an_exported_head(path: Path, tmp_path: Path) -> None:
    head = (await audit(path)).head
    async with opened(tmp_path / "forged" / "oikos.db") as store:
        for seq, event in enumerate(EVENTS):
            await append(store, seq, event)
    assert (await audit(tmp_path / "forged" / "oikos.db")).problems == ()
    (problem,) = (await audit(tmp_path / "forged" / "oikos.db", head)).problems
    assert "is not in the chain" in problem


async def test_the_chain_goes_on_after_the_exported_head(path: Path) -> None:
    head = (await audit(path)).head
    async with opened(path) as store:
        await append(store, 6)
    assert (await audit(path, head)).problems == ()


def pages(path: Path) -> Iterator[int]:
    """Damages one page after the other but the first, each in an otherwise whole file."""
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096):
        path.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        yield page


async def test_a_damaged_page_is_a_problem_or_an_error_never_a_clean_report(path: Path) -> None:
    for page in pages(path):
        try:
            problems = (await audit(path)).problems
        except StoreError as error:
            problems = (str(error),)
        assert problems != (), f"page {page}"
        assert "\n" not in problems[0]


async def test_many_problems_are_counted_beyond_the_first_fifty(path: Path) -> None:
    connection = sqlite3.connect(path)
    for n in range(80):
        connection.execute("INSERT INTO blobs VALUES (?, 'x')", (bytes([n]) * 32,))
    connection.commit()
    connection.close()
    problems = (await audit(path)).problems
    assert len(problems) == 51
    assert problems[-1].startswith("… and ")


def holds(path: Path, text: bytes) -> bool:
    return text in path.read_bytes()


async def test_purged_texts_leave_a_record_and_a_valid_chain(path: Path) -> None:
    said = replace(SAID, text="secret " * 1000)
    async with opened(path) as store:
        await append(store, 6, said)
        await append(store, 7, ev.GoalSet(goal="x"))
        await store.put_output("r1", Stream.ERR, 0, b"warn")
        head = (await store.verify()).head
        assert any(b"secret secret" in bytes(row[0]) for row in raw(path, "SELECT data FROM blobs"))
        assert await store.purge("s1", actor="admin", reason="asked to") == 3
        events = [recorded.event for recorded in await store.load("s1")]
        assert events[1] == SAID, "s2 holds the same text"
        assert isinstance(events[6], ev.OperatorSaid)
        assert events[6].text.startswith("[purged: 7000 bytes, sha256 ")
        assert await store.output("r1", Stream.OUT) == b"[purged: 9 bytes]"
        assert await store.output("r1", Stream.ERR) == b"[purged: 4 bytes]"
        assert (await store.verify(head=head)).problems == ()
        assert [run.command for run in await store.runs()] == ["uptime"]
        assert await store.purge("s1", actor="admin", reason="again") == 0
    assert not holds(path, b"secret secret"), "not even in free pages"
    records = raw(path, "SELECT actor, kind FROM events WHERE session_id = ''")
    assert records == [("admin", "blob.purged")] * 3


async def test_a_title_does_not_outlive_its_purged_text(tmp_path: Path) -> None:
    async with opened(tmp_path / "oikos.db") as store:
        await append(store, 0, replace(SAID, text="hush " * 1000))
        assert await store.purge("s1", actor="admin", reason="asked to") == 1
        (row,) = await store.sessions()
        assert row.title.startswith("[purged: 5000 bytes")
        assert (await store.verify()).problems == ()


async def test_what_was_consented_to_is_never_purged(tmp_path: Path) -> None:
    async with opened(tmp_path / "oikos.db") as store:
        consent = replace(CONSENT, text="yes " * 1000)
        await append(store, 0, replace(SAID, text=consent.text), ev.ConsentGranted(consent=consent))
        assert await store.purge("s1", actor="admin", reason="asked to") == 0
        assert await store.consents() == [consent]
        assert (await store.verify()).problems == ()
