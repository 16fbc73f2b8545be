"""What no request gets past, asked of every route that the table has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oikos.domain.consent import Role
from oikos.web.routes import ROWS, Row, openapi
from tests.cli.conftest import FIX
from tests.web.conftest import Answer, Served, serving

ROUTES = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
BELOW = {Role.VIEWER: "", Role.OPERATOR: "vera", Role.APPROVER: "otto", Role.ADMIN: "anna"}
"""Who holds just too little."""


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all questions; none of them changes anything."""
    directory: Path = tmp_path_factory.mktemp("door")
    with serving(directory, FIX) as served:
        served.token("vera", "viewer")
        served.token("otto", "operator")
        served.tokens["nobody"] = "oikos_" + "A" * 43
        yield served
        assert served.get("/sessions") == {"sessions": []}


def path(row: Row) -> str:
    return row.path.replace("{id}", "0" * 32)


def assert_problem(answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.body["code"], set(answer.body)) == (status, code, {"code", "text", "do"})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers


@ROUTES
def test_no_route_answers_without_a_token_or_to_an_unknown_one(door: Served, row: Row) -> None:
    assert_problem(door.ask(row.method, path(row), as_=""), 401, "no_token")
    assert_problem(door.ask(row.method, path(row), as_="nobody"), 401, "no_token")
    token = door.tokens["anna"]
    assert_problem(door.ask(row.method, f"{path(row)}?token={token}", as_=""), 401, "no_token")
    assert_problem(
        door.ask(row.method, path(row), as_="", headers={"Authorization": f"Basic {token}"}), 401, "no_token"
    )


@ROUTES
def test_no_route_answers_to_a_lower_role(door: Served, row: Row) -> None:
    below = BELOW[row.role]
    if below:
        assert_problem(door.ask(row.method, path(row), as_=below), 403, "role")
    else:
        assert door.ask(row.method, path(row), as_="vera").status in (200, 404)


@ROUTES
def test_no_route_answers_under_another_name_or_to_another_origin(door: Served, row: Row) -> None:
    for host in ("evil.example", f"evil.example:{door.port}", "127.0.0.1.evil.example", "", "[", "0.0.0.0"):
        assert_problem(door.ask(row.method, path(row), headers={"Host": host}), 421, "wrong_host")
    for origin in ("https://evil.example", "null", f"http://localhost:{door.port}", "http://127.0.0.1:1"):
        assert_problem(door.ask(row.method, path(row), headers={"Origin": origin}), 403, "wrong_origin")
    own = door.ask(row.method, path(row), headers={"Origin": door.url}, as_="")
    assert own.status == 401, "our own origin comes as far as anybody"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@pytest.mark.parametrize("row", [row for row in ROWS if row.method == "POST"], ids=lambda row: row.path)
def test_no_post_takes_what_a_form_can_send(door: Served, row: Row, kind: str) -> None:
    assert_problem(door.ask("POST", path(row), headers={"Content-Type": kind}), 415, "not_json")


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff\xfe", b'{"unknown": 1}', b"[" * 100_000, b"null"])
@pytest.mark.parametrize("row", [row for row in ROWS if row.method == "POST"], ids=lambda row: row.path)
def test_a_body_that_does_not_fit_is_one_clear_problem(door: Served, row: Row, body: bytes) -> None:
    assert_problem(door.ask("POST", path(row), body), 400, "bad_body")


def test_a_body_has_an_end(door: Served) -> None:
    assert_problem(door.ask("POST", "/sessions", b" " * (256 * 1024 + 1)), 413, "too_large")


@pytest.mark.parametrize(
    ("where", "status", "code"),
    [
        ("/nowhere", 404, "no_route"),
        ("/sessions/rules", 404, "no_such_session"),
        ("/sessions/" + "0" * 32, 404, "no_such_session"),
        ("/sessions/..%2f..%2fetc", 404, "no_route"),
        ("/runs/none", 404, "unknown_run"),
        ("/runs?limit=x", 400, "bad_query"),
        ("/sessions?limit=1001", 400, "bad_query"),
        ("/facts?entity=nothing", 404, "unknown_entity"),
    ],
)
def test_what_is_not_there_is_said_in_the_same_shape(door: Served, where: str, status: int, code: str) -> None:
    assert_problem(door.ask("GET", where), status, code)


def test_another_method_changes_nothing(door: Served) -> None:
    for method in ("PUT", "DELETE", "PATCH"):
        headers = {"Content-Type": "application/json"}
        assert_problem(door.ask(method, "/sessions", headers=headers), 405, "no_method")
    assert door.ask("OPTIONS", "/sessions", headers={"Content-Type": "application/json"}).status == 405


def test_the_fleet_is_shown_without_ways_in(door: Served) -> None:
    [box] = [each for each in door.get("/entities")["entities"] if each["slug"] == "box"]
    assert {"key", "become_password", "user", "host_keys", "access"}.isdisjoint(box)


def test_openapi_is_the_table(door: Served) -> None:
    document = door.get("/openapi.json")
    assert document == openapi()
    listed = {(method.upper(), where) for where, item in document["paths"].items() for method in item}
    assert listed == {(row.method, f"/api/v1{row.path}") for row in ROWS}
    assert {"text_delta", "session.reopened", "approval.unanswered"} <= set(
        document["components"]["schemas"]["EventKind"]["enum"]
    )
