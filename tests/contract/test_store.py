"""What every store promises (`oikos.ports.Store`), whatever database it is on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest

from oikos.adapters.store.sql import Approval, SqlStore
from oikos.domain import events as ev
from oikos.domain.consent import Channel, Consent, Grant
from oikos.domain.errors import Fenced, NameTaken, SeqConflict, StoreError, TargetBusy, TargetChanged
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity, Fact, Inventory, Mode
from oikos.domain.plan import Plan, PlannedCommand, Step
from oikos.domain.run import Exited, Limits, RunOrder, RunReport, Stream
from oikos.domain.verdict import Risk
from oikos.ports import Guard, Lease, OutputPiece, RunRow, SessionRow, Store

if TYPE_CHECKING:
    from tests.contract.conftest import Database

pytestmark = pytest.mark.anyio

AT = Instant(wall_s=1_700_000_000.25, boot_s=12.5, boot_id="boot-1")
OPENED = ev.SessionOpened(by="ada")
SAID = ev.OperatorSaid(text="when did the  last\nbackup run?", by="ada", channel="cli")
ORDER = RunOrder(run_id="r1", session_id="s1", generation=1, target_id="e1", command="systemctl list-timers")
STARTED = ev.RunStarted(
    order=ORDER, call_id="c1", target="atlas", step=1, risk=Risk.READ_ONLY, effects=(), canonical="",
    authority="read_only", admitted=ORDER.digest(),
)  # fmt: skip
FINISHED = ev.RunFinished(run_id="r1", report=RunReport(outcome=Exited(code=3), out_bytes=8, err_bytes=1))
FACT = Fact(entity_id="e1", key="backup.last", value='"02:00"', source="run:r1", observed_s=100.0, ttl_s=60.0)
CONSENT = Consent(
    id="k1", grant=Grant.PLAN, session_id="s1", generation=1, digest="d", machines=("e1",), duration_s=1800.0, at=AT,
    by="ada", channel=Channel.CLI, text="go ahead",
)  # fmt: skip
PLAN = Plan(
    generation=1, goal="fix the repos job",
    steps=(Step(seq=1, title="fix", target="atlas", target_id="e1", commands=(PlannedCommand(text="touch /x"),)),),
)  # fmt: skip
PIECE = OutputPiece(run_id="r1", stream=Stream.OUT, offset=0, data=b"y")
PROPOSED = ev.PlanProposed(plan=PLAN, digest="d", call_id="c0")


async def put(store: Store, seq: int, *events: ev.Event, session_id: str = "s1", epoch: int | None = None) -> int:
    return await store.append(session_id, seq, events, at=AT, actor="ada", epoch=epoch)


def keeps_the_port(store: SqlStore) -> Store:
    return store


# ---- events ---------------------------------------------------------------------------------------------------------


async def test_events_come_back_in_order_with_their_place_and_time(store: SqlStore) -> None:
    assert await put(store, 0, OPENED, SAID) == 2
    assert await put(store, 2, STARTED) == 3
    wanted = [
        ev.Recorded(session_id="s1", seq=seq, at=AT, event=event)
        for seq, event in enumerate([OPENED, SAID, STARTED], 1)
    ]
    assert await store.load("s1") == wanted
    assert await store.load("s1", after=2) == wanted[2:]


async def test_an_unknown_session_is_empty(store: SqlStore) -> None:
    assert await store.load("nobody") == []


async def test_a_long_text_comes_back_whole(store: SqlStore) -> None:
    said = replace(SAID, text="ü" * 100_000)
    await put(store, 0, said)
    assert [recorded.event for recorded in await store.load("s1")] == [said]


async def test_whoever_appends_second_after_the_same_seq_is_refused_and_nothing_is_written(store: SqlStore) -> None:
    await put(store, 0, OPENED)
    with pytest.raises(SeqConflict, match="is at 1, not 0"):
        await put(store, 0, SAID, STARTED)
    with pytest.raises(SeqConflict, match="is at 1, not 5"):
        await put(store, 5, SAID)
    assert [recorded.event for recorded in await store.load("s1")] == [OPENED]
    assert await store.runs() == []


async def test_of_many_that_append_at_once_exactly_one_wins_each_seq(database: Database) -> None:
    stores = [await database.open(), await database.open()]

    async def attempt(store: SqlStore, text: str) -> bool:
        try:
            await put(store, 0, replace(SAID, text=text))
        except SeqConflict:
            return False
        return True

    won = await asyncio.gather(*(attempt(stores[n % 2], str(n)) for n in range(40)))
    assert won.count(True) == 1
    assert len(await stores[0].load("s1")) == 1
    assert (await stores[1].verify()).problems == ()


async def test_writes_are_accepted_in_the_order_of_the_calls_not_of_the_awaits(store: SqlStore) -> None:
    first = store.append("s1", 0, [OPENED], at=AT, actor="ada")
    second = store.append("s1", 1, [SAID], at=AT, actor="ada")
    assert await second == 2
    assert await first == 1


async def test_a_refused_write_does_not_touch_its_neighbours_in_the_group(store: SqlStore) -> None:
    calls = [
        store.append("a", 0, [OPENED], at=AT, actor="ada"),
        store.append("b", 7, [OPENED], at=AT, actor="ada"),
        store.append("c", 0, [OPENED], at=AT, actor="ada"),
    ]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [int, SeqConflict, int]
    assert {row.session_id for row in await store.sessions()} == {"a", "c"}


async def test_a_cancelled_caller_leaves_its_write_whole(store: SqlStore) -> None:
    with anyio.CancelScope() as scope:
        pending = store.append("s1", 0, [OPENED, SAID], at=AT, actor="ada")
        scope.cancel()
        await pending
    assert scope.cancelled_caught
    assert len(await store.load("s1")) == 2, "a read sees what was accepted before it"
    assert await put(store, 2, STARTED) == 3
    assert [recorded.seq for recorded in await store.load("s1")] == [1, 2, 3]


async def test_an_event_that_cannot_be_read_refuses_its_session_only(database: Database) -> None:
    store = await database.open()
    await put(store, 0, OPENED)
    await put(store, 0, OPENED, session_id="s2")
    await store._write(lambda tx: tx.execute("UPDATE events SET kind = 'x.y' WHERE session_id = ?", ("s1",)))
    with pytest.raises(StoreError, match=r"x\.y"):
        await store.load("s1")
    assert len(await store.load("s2")) == 1


# ---- fencing, leases, wakes -----------------------------------------------------------------------------------------


async def test_a_worker_that_lost_its_lease_cannot_write(store: SqlStore) -> None:
    old = await store.take_lease("s1", "worker-1", now_s=0, ttl_s=10)
    assert old == Lease(session_id="s1", owner="worker-1", epoch=1, until_s=10)
    assert await put(store, 0, OPENED, epoch=1) == 1
    assert await store.take_lease("s1", "worker-2", now_s=5, ttl_s=10) is None
    new = await store.take_lease("s1", "worker-2", now_s=11, ttl_s=10)
    assert new is not None
    assert new.epoch == 2
    with pytest.raises(Fenced, match="epoch 2, not 1"):
        await put(store, 1, SAID, epoch=1)
    assert await store.renew_lease(old, now_s=11, ttl_s=10) is None
    assert await put(store, 1, SAID, epoch=2) == 2
    assert await put(store, 2, SAID) == 3, "an operator's intent needs no lease"


async def test_the_leases_of_a_dead_owner_are_free_at_once_and_epochs_go_on_rising(store: SqlStore) -> None:
    await store.take_lease("s1", "dead", now_s=0, ttl_s=30)
    await store.take_lease("s2", "alive", now_s=0, ttl_s=30)
    await store.free_leases("dead")
    taken = await store.take_lease("s1", "next", now_s=1, ttl_s=30)
    assert taken == Lease(session_id="s1", owner="next", epoch=2, until_s=31)
    assert await store.take_lease("s2", "next", now_s=1, ttl_s=30) is None


async def test_a_start_is_journalled_only_while_its_target_is_as_the_gate_saw_it(store: SqlStore) -> None:
    guard = Guard(target_id="e1", mode="ask", exclusive=False)
    atlas = Entity(id="e1", kind="host", slug="atlas")

    async def start(seq: int) -> int:
        return await store.append("s1", seq, [STARTED], at=AT, actor="nomos", guard=guard)

    with pytest.raises(TargetChanged, match="e1 is gone now"):
        await start(0)
    await store.put_entity(replace(atlas, mode=Mode.LOCKED))
    with pytest.raises(TargetChanged, match="e1 is locked now, not ask"):
        await start(0)
    await store.put_entity(replace(atlas, gone=True))
    with pytest.raises(TargetChanged, match="e1 is gone now"):
        await start(0)
    assert await store.load("s1") == []
    await store.put_entity(atlas)
    assert await start(0) == 1


async def test_a_start_looks_at_everything_else_that_its_command_reaches(store: SqlStore) -> None:
    inner = Guard(target_id="e2", mode="ask", exclusive=True)
    guard = Guard(target_id="e1", mode="ask", exclusive=False, also=(inner,))
    guest = Entity(id="e2", kind="lxc", slug="guest", parent="e1")

    async def start(session_id: str, run_id: str, target_id: str, guard: Guard | None) -> int:
        order = replace(ORDER, run_id=run_id, session_id=session_id, target_id=target_id)
        started = replace(STARTED, order=order, risk=Risk.CONFIG_MUTATION)
        return await store.append(session_id, 0, [started], at=AT, actor="nomos", guard=guard)

    await store.put_entity(Entity(id="e1", kind="node", slug="node"))
    await store.put_entity(replace(guest, mode=Mode.LOCKED))
    with pytest.raises(TargetChanged, match="e2 is locked now, not ask"):
        await start("s1", "r1", "e1", guard)
    await store.put_entity(guest)
    await start("s2", "r2", "e2", None)
    with pytest.raises(TargetBusy, match="r2 still changes target e2"):
        await start("s1", "r1", "e1", guard)
    assert await store.load("s1") == []


async def test_a_name_is_of_one_living_entity(store: SqlStore) -> None:
    atlas = Entity(id="e1", kind="host", slug="atlas")
    await store.put_entity(atlas)
    await store.put_entity(replace(atlas, kind="node"))
    with pytest.raises(NameTaken, match="the name atlas is that of e1 already"):
        await store.put_entity(replace(atlas, id="e2"))
    created = ev.EntityCreated(generation=1, entity=replace(atlas, id="e3"), run_id="r1")
    with pytest.raises(NameTaken):
        await put(store, 0, created)
    assert await store.load("s1") == []
    await store.put_entity(replace(atlas, gone=True))
    await put(store, 0, created)
    assert (await store.inventory()).entities["e3"].slug == "atlas"


async def test_a_mutation_waits_for_the_outcome_of_the_one_before_it_on_its_target(store: SqlStore) -> None:
    guard = Guard(target_id="e1", mode="ask", exclusive=True)
    await store.put_entity(Entity(id="e1", kind="host", slug="atlas"))

    async def start(session_id: str, seq: int, run_id: str, risk: Risk, guard: Guard | None) -> int:
        order = replace(ORDER, run_id=run_id, session_id=session_id)
        started = replace(STARTED, order=order, risk=risk)
        return await store.append(session_id, seq, [started], at=AT, actor="nomos", guard=guard)

    await start("s1", 0, "look", Risk.READ_ONLY, None)
    assert await start("s1", 1, "change", Risk.CONFIG_MUTATION, guard) == 2
    with pytest.raises(TargetBusy, match="run change still changes target e1"):
        await start("s2", 0, "other", Risk.DESTRUCTIVE, guard)
    assert await start("s2", 0, "look2", Risk.READ_ONLY, replace(guard, exclusive=False)) == 1
    await put(store, 2, replace(FINISHED, run_id="change"))
    assert await start("s2", 1, "other", Risk.DESTRUCTIVE, guard) == 2


async def test_an_epoch_without_any_lease_is_fenced(store: SqlStore) -> None:
    with pytest.raises(Fenced, match="epoch none, not 1"):
        await put(store, 0, OPENED, epoch=1)


async def test_a_lease_is_renewed_by_its_owner_and_free_once_dropped(store: SqlStore) -> None:
    lease = await store.take_lease("s1", "worker-1", now_s=0, ttl_s=10)
    assert lease is not None
    renewed = await store.renew_lease(lease, now_s=8, ttl_s=10)
    assert renewed == replace(lease, until_s=18)
    await store.drop_lease(renewed)
    await store.drop_lease(renewed)
    taken = await store.take_lease("s1", "worker-2", now_s=9, ttl_s=10)
    assert taken == Lease(session_id="s1", owner="worker-2", epoch=2, until_s=19)
    await store.drop_lease(lease)
    assert await store.renew_lease(taken, now_s=9, ttl_s=20) is not None


async def test_of_two_processes_that_take_a_session_one_gets_it(database: Database) -> None:
    stores = [await database.open(), await database.open()]
    leases = await asyncio.gather(
        *(stores[n % 2].take_lease("s1", f"worker-{n}", now_s=0, ttl_s=10) for n in range(20))
    )
    assert len([lease for lease in leases if lease]) == 1


async def test_wakes_are_seen_until_cleared_and_not_while_a_lease_lasts(database: Database) -> None:
    store, other = await database.open(), await database.open()
    await store.append("s1", 0, [SAID], at=AT, actor="ada", wake="message")
    await store.wake("s2", "timer")
    await store.wake("s2", "timer")
    await store.wake("s2", "run")
    everything = [("s1", "message"), ("s2", "run"), ("s2", "timer")]
    assert await other.take_wakes() == everything
    now_s = database.clock.now().wall_s
    lease = await store.take_lease("s2", "worker-1", now_s=now_s, ttl_s=30)
    assert lease is not None
    assert await other.take_wakes() == everything[:1]
    await database.clock.advance(31)
    assert await other.take_wakes() == everything, "the lease is over"
    await other.clear_wake("s1")
    assert await store.take_wakes() == everything[1:]
    await store.drop_lease(lease)


async def test_the_data_version_moves_with_every_commit_of_any_process(database: Database) -> None:
    store, other = await database.open(), await database.open()
    first = await store.data_version()
    assert await store.data_version() == first
    await store.wake("s1", "timer")
    second = await store.data_version()
    await other.wake("s1", "run")
    assert len({first, second, await store.data_version()}) == 3


# ---- read models ----------------------------------------------------------------------------------------------------


async def test_a_session_line_says_what_it_is_about_and_how_it_stands(store: SqlStore) -> None:
    await put(store, 0, OPENED, SAID)
    row = SessionRow(
        session_id="s1", title="when did the last backup run?", phase="executing", generation=0, seq=2,
        opened_s=AT.wall_s, active_s=AT.wall_s,
    )  # fmt: skip
    assert await store.sessions() == [row]
    later = replace(AT, wall_s=AT.wall_s + 60)
    await store.append("s1", 2, [PROPOSED], at=later, actor="nomos", phase="awaiting_approval", waiting_for="Approve?")
    parked = replace(row, phase="awaiting_approval", generation=1, seq=3, active_s=later.wall_s, waiting_for="Approve?")
    assert await store.sessions() == [parked]
    await store.append("s1", 3, [ev.SessionStopped(by="ada", runs="kill")], at=later, actor="ada")
    assert await store.sessions() == [replace(parked, phase="stopped", seq=4, waiting_for="")]


async def test_sessions_are_listed_by_their_last_activity(store: SqlStore) -> None:
    for n, session_id in enumerate("abc"):
        await store.append(session_id, 0, [OPENED], at=replace(AT, wall_s=100.0 + n), actor="ada")
    await store.append("a", 1, [SAID], at=replace(AT, wall_s=200.0), actor="ada")
    assert [row.session_id for row in await store.sessions()] == ["a", "c", "b"]
    assert [row.session_id for row in await store.sessions(limit=1)] == ["a"]


async def test_a_run_is_listed_from_its_start_to_its_outcome(store: SqlStore) -> None:
    await put(store, 0, STARTED)
    running = RunRow(
        run_id="r1", session_id="s1", generation=1, step=1, target_id="e1", target="atlas", command=ORDER.command,
        risk="read_only", authority="read_only", status="running", outcome="", started_s=AT.wall_s, ended_s=None,
        out_bytes=0, err_bytes=0,
    )  # fmt: skip
    assert await store.runs(unfinished=True) == [running]
    await store.append("s1", 1, [FINISHED], at=replace(AT, wall_s=AT.wall_s + 2), actor="nomos")
    finished = replace(running, status="finished", outcome="exit 3", ended_s=AT.wall_s + 2, out_bytes=8, err_bytes=1)
    assert await store.runs() == [finished]
    assert await store.runs(unfinished=True) == []
    assert await store.runs(run_id="r1") == [finished]
    assert await store.runs(run_id="r1", unfinished=True) == []
    assert await store.runs(run_id="r1", session_id="s2") == []


async def test_runs_are_filtered_by_session_and_newest_first(store: SqlStore) -> None:
    for n, session_id in enumerate(["s1", "s1", "s2"]):
        order = replace(ORDER, run_id=f"r{n}", session_id=session_id)
        await put(store, n % 2, replace(STARTED, order=order), session_id=session_id)
    assert [row.run_id for row in await store.runs()] == ["r2", "r1", "r0"]
    assert [row.run_id for row in await store.runs(session_id="s1")] == ["r1", "r0"]
    assert [row.run_id for row in await store.runs(session_id="s1", unfinished=True, limit=1)] == ["r1"]


async def test_what_waits_for_a_decision_is_listed_until_it_is_decided(store: SqlStore) -> None:
    parked = ev.RunParked(
        order=ORDER, call_id="c1", target="atlas", step=None, risk=Risk.DESTRUCTIVE, effects=(), objects=(),
        canonical="", why="deletes the guest",
    )  # fmt: skip
    await put(store, 0, PROPOSED)
    plan = Approval("s1", "plan", 1, "d", "fix the repos job", AT.wall_s)
    assert await store.approvals() == [plan]
    await put(store, 1, ev.PlanApproved(generation=1, digest="d", consent_id="k1"), parked)
    assert await store.approvals() == [Approval("s1", "r1", 1, ORDER.digest(), "deletes the guest", AT.wall_s)]
    await put(store, 3, ev.RunDecided(run_id="r1", decision="declined"))
    assert await store.approvals() == []


async def test_the_ledger_holds_every_consent_oldest_first(store: SqlStore) -> None:
    other = replace(CONSENT, id="k2", session_id="s2")
    await put(store, 0, ev.ConsentGranted(consent=CONSENT))
    await put(store, 0, ev.ConsentGranted(consent=other), session_id="s2")
    assert await store.consents() == [CONSENT, other]
    assert await store.consents(session_id="s2") == [other]


async def test_a_consent_is_granted_once(store: SqlStore) -> None:
    await put(store, 0, ev.ConsentGranted(consent=CONSENT))
    with pytest.raises(StoreError, match="consent_id"):
        await put(store, 1, ev.ConsentGranted(consent=CONSENT))
    assert len(await store.load("s1")) == 1


async def test_the_inventory_shows_entities_with_their_newest_facts(store: SqlStore) -> None:
    atlas = Entity(id="e1", kind="host", slug="atlas")
    await store.put_entity(replace(atlas, name="old"))
    await store.put_entity(atlas)
    await put(store, 0, ev.FactsWritten(entity_id="e1", facts=(FACT, replace(FACT, value="2"))))
    imported = replace(FACT, key="os", value='"debian"', source="import:ssh", ttl_s=None)
    await store.put_facts([replace(FACT, value="3", observed_s=99.0), imported])
    assert await store.inventory() == Inventory(
        entities={"e1": atlas}, facts={"e1": {"backup.last": replace(FACT, value="2"), "os": imported}}
    )


async def test_a_slug_names_one_living_entity(store: SqlStore) -> None:
    await store.put_entity(Entity(id="e1", kind="host", slug="atlas"))
    with pytest.raises(StoreError, match="the name atlas"):
        await store.put_entity(Entity(id="e2", kind="host", slug="atlas"))
    await store.put_entity(Entity(id="e1", kind="host", slug="atlas", gone=True))
    await store.put_entity(Entity(id="e2", kind="host", slug="atlas"))
    assert set((await store.inventory()).entities) == {"e1", "e2"}


# ---- output ---------------------------------------------------------------------------------------------------------


async def test_output_is_whole_and_each_stream_is_its_own(store: SqlStore) -> None:
    await store.put_output("r1", Stream.OUT, 0, b"one\0")
    await store.put_output("r1", Stream.ERR, 0, b"\xff")
    await store.put_output("r1", Stream.OUT, 4, b"two")
    assert await store.output("r1", Stream.OUT) == b"one\0two"
    assert await store.output("r1", Stream.ERR) == b"\xff"
    assert await store.output("r2", Stream.OUT) == b""


async def test_two_followers_do_not_double_bytes(database: Database) -> None:
    stores = [await database.open(), await database.open()]
    chunks = [b"%04d" % n for n in range(50)]

    async def follow(store: SqlStore) -> None:
        for n, chunk in enumerate(chunks):
            await store.put_output("r1", Stream.OUT, 4 * n, chunk, until=4 * n + 4)

    await asyncio.gather(*(follow(store) for store in stores))
    assert await stores[0].output("r1", Stream.OUT) == b"".join(chunks)


async def test_a_repeat_cut_at_other_places_is_ignored_as_far_as_it_is_stored(store: SqlStore) -> None:
    await store.put_output("r1", Stream.OUT, 0, b"password: ****\n", until=20)
    await store.put_output("r1", Stream.OUT, 10, b"ignored", until=17)
    await store.put_output("r1", Stream.OUT, 20, b"next", until=24)
    assert await store.output("r1", Stream.OUT) == b"password: ****\nnext"
    assert await store.resume_offsets("r1") == {Stream.OUT: 24, Stream.ERR: 0}


async def test_a_follower_goes_on_where_the_stored_bytes_end_and_never_before(store: SqlStore) -> None:
    assert await store.resume_offsets("r1") == {Stream.OUT: 0, Stream.ERR: 0}
    await store.put_output("r1", Stream.OUT, 0, b"abc")
    await store.put_resume_offsets("r1", {Stream.OUT: 3, Stream.ERR: 5})
    await store.put_resume_offsets("r1", {Stream.OUT: 2})
    assert await store.resume_offsets("r1") == {Stream.OUT: 3, Stream.ERR: 5}
    await store.put_output("r1", Stream.OUT, 1, b"bc")
    assert await store.output("r1", Stream.OUT) == b"abc"


@pytest.mark.parametrize("size", [1, 3, 7, 10, 64])
async def test_beyond_its_cap_a_stream_keeps_head_and_tail_and_counts_the_gap(store: SqlStore, size: int) -> None:
    order = replace(ORDER, limits=Limits(output_cap_bytes=20))
    await put(store, 0, replace(STARTED, order=order))
    data = bytes(range(48, 48 + 64))
    for offset in range(0, 20, size):
        await store.put_output("r1", Stream.OUT, offset, data[offset : min(20, offset + size)])
    assert await store.output("r1", Stream.OUT) == data[:20], "the cap itself still fits"
    for offset in range(20, 64, size):
        await store.put_output("r1", Stream.OUT, offset, data[offset : min(64, offset + size)])
    assert await store.output("r1", Stream.OUT) == data[:10] + b"\n[44 bytes left out here]\n" + data[-10:]


async def test_a_runaway_stream_takes_no_more_room_than_its_cap(store: SqlStore) -> None:
    await put(store, 0, replace(STARTED, order=replace(ORDER, limits=Limits(output_cap_bytes=100))))
    for n in range(200):
        await store.put_output("r1", Stream.OUT, 10 * n, b"0123456789")
    rows = await store._rows("SELECT length(data) FROM output_chunks", (), lambda row: row[0])
    assert sum(rows) <= 120


async def test_the_last_output_and_the_outcome_are_one_transaction(store: SqlStore) -> None:
    await put(store, 0, STARTED)
    with pytest.raises(SeqConflict):
        await store.append("s1", 7, [FINISHED], at=AT, actor="n", output=[replace(PIECE, data=b"x")])
    assert await store.output("r1", Stream.OUT) == b""
    await store.append("s1", 1, [FINISHED], at=AT, actor="n", output=[PIECE])
    assert await store.output("r1", Stream.OUT) == b"y"


# ---- after the end --------------------------------------------------------------------------------------------------


async def test_everything_is_there_after_a_restart(database: Database) -> None:
    store = await database.open()
    await put(store, 0, OPENED, SAID, ev.ConsentGranted(consent=CONSENT), STARTED)
    await store.put_output("r1", Stream.OUT, 0, b"abc")
    before = (await store.load("s1"), await store.sessions(), await store.runs(), await store.consents())
    await store.close()
    again = await database.open()
    assert (await again.load("s1"), await again.sessions(), await again.runs(), await again.consents()) == before
    assert await again.output("r1", Stream.OUT) == b"abc"


async def test_closing_finishes_what_was_accepted(database: Database) -> None:
    store = await database.open()
    pending = [store.append(f"s{n}", 0, [OPENED], at=AT, actor="ada") for n in range(20)]
    await store.close()
    assert await asyncio.gather(*pending) == [1] * 20
    assert len(await (await database.open()).sessions()) == 20


async def test_a_closed_store_refuses_and_closes_again_without_fuss(store: SqlStore) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.sessions()
    with pytest.raises(StoreError, match="closed"):
        await store.wake("s1", "timer")
