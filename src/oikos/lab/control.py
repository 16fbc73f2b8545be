"""Talking to a lab's supervisor: one JSON object per line over its unix socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oikos.lab.errors import LabError

TIMEOUT_S = 120.0


def call(state: Path, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers, in order.

    Raises: LabError when the supervisor is gone, or refuses one of the requests.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.connect(str(state / "ctl.sock"))
            with connection.makefile("rwb") as lines:
                answers = [_ask(lines, request) for request in requests]
    except (OSError, ValueError) as exc:
        raise LabError(
            f"lab {state.name!r} is not running ({exc}): `oikos lab down --name {state.name}` clears what is left of it"
        ) from None
    for answer in answers:
        if not answer["ok"]:
            raise LabError(answer["error"])
    return answers


def _ask(lines: Any, request: dict[str, Any]) -> dict[str, Any]:
    lines.write(json.dumps(request).encode() + b"\n")
    lines.flush()
    answer: dict[str, Any] = json.loads(lines.readline())
    return answer
