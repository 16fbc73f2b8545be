"""What the API says when it does not do something: one shape, `{code, text, do}`, with the status that fits."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.responses import Response

from oikos.domain.errors import Code, Refusal

LOOK_AGAIN = "GET the session, show its card, and decide on what it shows now"
STATUS: Mapping[Code, int] = {
    Code.NO_SUCH_SESSION: 404,
    Code.NOT_APPROVER: 403,
    Code.NO_TERMINAL: 403,
    Code.WRONG_PHRASE: 422,
    Code.INTERNAL: 500,
}
"""Of a refusal; every other one is a conflict with what the session is: 409 (SPEC R1.11)."""
DO: Mapping[Code, str] = {
    Code.NO_SUCH_SESSION: "GET /api/v1/sessions lists them",
    Code.NOT_APPROVER: "use the token of an approver",
    Code.WRONG_PHRASE: "send the phrase that the card shows, exactly",
    Code.NEEDS_OPERATOR: "send the value as `secret`, not as `text`",
}


class Problem(Exception):
    """A request that cannot be served, with its answer."""

    def __init__(self, status: int, code: str, text: str, do: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text
        self.do = do

    def body(self) -> dict[str, object]:
        """As JSON shows it."""
        return {"code": self.code, "text": self.text, "do": self.do}


def reply(body: object, status: int = 200) -> Response:
    """JSON."""
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")


def refused(refusal: Refusal, card: object = None) -> Response:
    """A refusal; a conflict brings the card as it is now, so that nobody decides on an old one (THREATS T5)."""
    status = STATUS.get(refusal.code, 409)
    body = {"code": refusal.code.value, "text": refusal.text, "do": DO.get(refusal.code, LOOK_AGAIN)}
    differs: dict[str, object] = {"differs": refusal.details} if refusal.details else {}
    return reply(body | ({"card": card} if status == 409 else {}) | differs, status)
