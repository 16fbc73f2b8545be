"""Sessions over HTTP: the whole of one, decisions by more than one person, streams that are cut, a server that goes."""

from __future__ import annotations

import base64
import signal
from pathlib import Path

from tests.cli.conftest import FIX, LOOK, SLOW
from tests.wait import until
from tests.web.conftest import ASK, Served, serving


def test_a_task_from_the_first_message_to_its_end_with_one_approval(served: Served) -> None:
    session = served.open("write a note")
    shown = served.shown(session)
    assert [each["id"] for each in served.get("/approvals")["approvals"]] == [session]
    assert not (served.cli.workshop / "note").exists()
    done = served.ask("POST", f"/sessions/{session}/approve", {**shown, "minutes": 60})
    assert (done.status, done.body["id"]) == (200, session)
    ended = served.rested(session, "done")
    assert (ended["summary"], ended["card"], ended["running"], ended["window"]) == ("the note is there", None, [], None)
    assert (served.cli.workshop / "note").exists()

    [consent] = [e["event"]["consent"] for e in history(served, session) if e["kind"] == "consent.granted"]
    assert (consent["by"], consent["channel"], consent["duration_s"]) == ("api:anna", "api", 3600)
    assert consent["digest"] == shown["digest"]
    [plan] = served.get(f"/sessions/{session}/plan")["plans"]
    assert (plan["status"], plan["digest"]) == ("closed", shown["digest"])
    assert plan["steps"] == {"1": {"status": "done", "note": ""}}
    runs = [run for run in served.get(f"/runs?session={session}")["runs"] if run["authority"] != "probe"]
    assert [run["authority"].partition(":")[0] for run in runs] == ["read_only", "window"]
    assert served.get(f"/runs/{runs[0]['run_id']}") == runs[0]
    out = served.ask("GET", f"/runs/{runs[0]['run_id']}/output?limit=7")
    assert (out.raw, out.headers["content-type"]) == (b"  File:", "application/octet-stream")
    assert [fact["value"] for fact in served.get("/facts?entity=box")["facts"] if fact["key"] == "note"] == [
        '"written"'
    ]
    assert served.cli("audit", "verify").code == 0


def history(served: Served, session: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = served.get(f"/sessions/{session}/history")["events"]
    return found


def test_of_two_approvers_at_once_one_decides_and_the_other_is_told_by_whom(served: Served) -> None:
    served.token("berta", "approver")
    session = served.open("write a note")
    path, shown = f"/sessions/{session}/approve", served.shown(session)
    answers = served.at_once(
        lambda: served.ask("POST", path, shown), lambda: served.ask("POST", path, shown, as_="berta")
    )
    assert sorted(answer.status for answer in answers) == [200, 409]
    [late] = [answer.body for answer in answers if answer.status == 409]
    served.rested(session, "done")
    granted = [e["event"]["consent"]["by"] for e in history(served, session) if e["kind"] == "consent.granted"]
    assert len(granted) == 1
    assert (set(late), late["code"]) == ({"code", "text", "do", "card"}, "wrong_state")
    assert f"plan 1 was approved by {granted[0]}" in late["text"]


def test_an_approval_of_what_was_not_shown_decides_nothing_and_brings_the_card(served: Served) -> None:
    session = served.open("write a note")
    shown = served.shown(session)
    for wrong, code in (
        ({**shown, "digest": "0" * 64}, "stale_digest"),
        ({**shown, "generation": 2}, "stale_generation"),
        ({**shown, "run_id": "0" * 32}, "nothing_pending"),
    ):
        answer = served.ask("POST", f"/sessions/{session}/approve", wrong)
        assert (answer.status, answer.body["code"]) == (409, code)
        assert answer.body["card"]["digest"] == shown["digest"]
    confirmed = served.ask("POST", f"/sessions/{session}/confirm", {"phrase": "go", "digest": "0" * 64})
    assert (confirmed.status, confirmed.body["code"]) == (409, "stale_digest")
    assert "consent.granted" not in [event["kind"] for event in history(served, session)]
    assert served.rested(session)["phase"] == "awaiting_approval"


def test_a_message_assents_only_to_what_it_says_it_showed_and_only_from_an_approver(served: Served) -> None:
    served.token("otto", "operator")
    session = served.open("write a note")
    path, shown = f"/sessions/{session}/messages", served.shown(session)
    for as_, body in (
        ("anna", {"text": "go"}),
        ("anna", {"text": "go", "shown": {**shown, "digest": "0" * 64}}),
        ("otto", {"text": "go", "shown": shown}),
    ):
        answer = served.ask("POST", path, body, as_=as_)
        assert answer.status == 202
        assert "Still waiting: plan 1" in answer.body["notice"]
        assert served.rested(session)["phase"] == "awaiting_approval"
    assert served.ask("POST", path, {"text": "go", "shown": shown}).status == 202
    served.rested(session, "done")


def test_a_cut_stream_goes_on_where_it_was_without_gap_or_repeat(served: Served) -> None:
    session = served.open("write a note")
    seen = []
    with served.stream(session) as events:
        for sent in events:
            if sent.id is not None:
                seen.append(sent)
            if sent.kind == "goal.set":
                break  # the connection is cut here
    shown = served.shown(session)
    assert served.ask("POST", f"/sessions/{session}/approve", shown).status == 200
    chunks = b""
    with served.stream(session, after=seen[-1].id) as events:
        for sent in events:
            if sent.kind == "output_chunk":
                chunks += base64.b64decode(sent.data["base64"])
            if sent.id is not None:
                seen.append(sent)
            if sent.kind == "session.completed":
                break
    assert [sent.id for sent in seen] == list(range(1, len(seen) + 1))
    assert [sent.data for sent in seen] == history(served, session)[: len(seen)]
    assert b"File:" in chunks, "output came while it happened, without an id"


def test_a_cursor_beyond_the_record_is_refused_and_not_waited_on(served: Served) -> None:
    session = served.open("write a note")
    served.rested(session)
    for last in ("99999", "-1", "one"):
        answer = served.ask("GET", f"/sessions/{session}/events", headers={"Last-Event-ID": last})
        assert (answer.status, answer.body["code"]) == (400, "bad_query")


def test_a_killed_server_comes_back_and_the_session_with_it(served: Served) -> None:
    session = served.open("write a note")
    before = served.rested(session, "awaiting_approval")
    assert served.end(signal.SIGKILL)[0] == -signal.SIGKILL
    served.start()
    after = served.rested(session, "awaiting_approval")
    assert after["card"] == before["card"]
    assert served.ask("POST", f"/sessions/{session}/approve", served.shown(session)).status == 200
    served.rested(session, "done")


def test_another_process_of_the_home_decides_beside_the_server(served: Served) -> None:
    session = served.open("write a note")
    served.rested(session, "awaiting_approval")
    with served.stream(session) as events:
        ended = served.cli("approve", session, "--no-follow", env=served.cli.approver())
        assert ended.code == 0, ended.err
        kinds = []
        for sent in events:
            kinds.append(sent.kind)
            if sent.kind == "session.completed":
                break
    assert "consent.granted" in kinds


def test_changes_and_rejections_bring_the_plan_no_further(served: Served) -> None:
    session = served.open("write a note")
    served.shown(session)
    assert served.ask("POST", f"/sessions/{session}/reject", {"reason": "not today"}).status == 200
    assert served.rested(session)["plan_status"] == "rejected"
    assert served.ask("POST", f"/sessions/{session}/ask-changes", {"text": "smaller"}).status == 409
    for act in ("revoke", "raise"):
        assert served.ask("POST", f"/sessions/{session}/{act}").status in (200, 409)
    assert not (served.cli.workshop / "note").exists()


def test_stop_ends_a_session_and_says_what_became_of_its_command(tmp_path: Path) -> None:
    with serving(tmp_path, SLOW) as served:
        session = served.open("write a note")
        assert served.ask("POST", f"/sessions/{session}/approve", served.shown(session)).status == 200
        until((served.cli.workshop / "begun").exists, "the command to begin", 20)
        stopped = served.ask("POST", f"/sessions/{session}/stop").body["stopped"]
        assert [each["remote"] for each in stopped] == ["killed"]
        assert served.rested(session)["phase"] == "stopped"


def test_a_revoked_token_ends_its_stream_and_closes_its_window(tmp_path: Path) -> None:
    with serving(tmp_path, SLOW) as served:
        served.token("berta", "approver")
        session = served.open("write a note")
        assert served.ask("POST", f"/sessions/{session}/approve", served.shown(session), as_="berta").status == 200
        until((served.cli.workshop / "begun").exists, "the command to begin", 20)
        with served.stream(session, as_="berta") as events:
            ended = served.cli("serve", "token", "revoke", "berta", env=served.cli.approver())
            assert (ended.code, ended.err) == (0, "")
            assert f"window of session {session[:8]} closed" in ended.out or "Window" in ended.out
            kinds = [sent.kind for sent in events]  # it ends, or the test fails by its time limit
        assert "window.closed" in kinds
        assert served.ask("GET", "/sessions", as_="berta").status == 401
        assert served.get(f"/sessions/{session}")["window"] is None
        served.ask("POST", f"/sessions/{session}/stop")


def test_a_secret_is_given_apart_and_is_nowhere_in_the_record(tmp_path: Path) -> None:
    with serving(tmp_path, ASK) as served:
        session = served.open("log in")
        served.rested(session, "blocked")
        path = f"/sessions/{session}/messages"
        told = served.ask("POST", path, {"text": "hunter2-hunter2"})
        assert (told.status, told.body["code"]) == (409, "needs_operator")
        assert served.ask("POST", path, {"secret": "hunter2-hunter2", "text": "x"}).status == 400
        assert served.ask("POST", path, {"secret": "hunter2-hunter2"}).status == 202
        served.rested(session, "idle", "done")
        assert served.ask("POST", path, {"secret": "again"}).status == 409
        assert b"hunter2" not in served.ask("GET", f"/sessions/{session}/history").raw


def test_a_session_opened_to_look_reads_without_an_approval(tmp_path: Path) -> None:
    with serving(tmp_path, LOOK) as served:
        (served.cli.workshop / "photo.jpg").touch()
        opened = served.ask("POST", "/sessions", {"mode": "look"}).body
        assert served.ask("POST", f"/sessions/{opened['id']}/messages", {"text": "look"}).status == 202
        assert served.rested(opened["id"], "done")["summary"] == "there is a photo"


def test_the_server_leaves_with_a_stream_open(tmp_path: Path) -> None:
    with serving(tmp_path, FIX) as served:
        session = served.open("write a note")
        served.rested(session)
        with served.stream(session) as events:
            next(events)
            assert served.end(signal.SIGINT) == (0, "")
