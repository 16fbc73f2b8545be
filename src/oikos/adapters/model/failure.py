"""What a provider's refusal means: whether to try again, and the one line that tells the operator what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from oikos.domain.errors import ModelError

SHOWN_CHARS: Final = 240
RETRY_STATUS: Final = frozenset({408, 409, 425, 429})
# Compiled when a failure is first read: at import they would cost every start 8 ms.
TOO_LONG: Final = (
    r"context.{0,40}(length|window|size|limit)|exceed_context|maximum.{0,20}tokens|too many tokens|prompt is too long"
)
NO_MODEL: Final = (
    r"model.{0,80}(not found|does not exist|not exist|unknown|no such)|model_not_found|(unknown|invalid|no such) model"
    r"|try pulling it"
)
NO_MONEY: Final = r"insufficient_quota|insufficient (credits|balance|funds)|exceeded your current quota"
NO_TOOLS: Final = r"does not support tools|tool.{0,20}(choice|use).{0,40}not supported|requires --jinja"


def failure(status: int, body: bytes, *, model: str, origin: str, retry_after_s: float | None = None) -> ModelError:
    """The error that an HTTP answer other than 200 stands for."""
    text = _said(body)
    if 300 <= status < 400:
        return ModelError(f"{origin} redirects elsewhere ({status}): set base_url to the address it should be",
                          retryable=False)  # fmt: skip
    return _judge(status, text, model=model, origin=origin, retry_after_s=retry_after_s)


def failure_in(chunk: Mapping[str, Any]) -> ModelError:
    """The error that a provider sent inside a stream that had begun well."""
    error = chunk.get("error")
    found = error if isinstance(error, dict) else chunk
    code = found.get("code", chunk.get("code"))
    status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal() and len(code) < 4) else 0
    text = error if isinstance(error, str) else _said(json.dumps(chunk).encode())
    if (400 <= status < 500 and status not in RETRY_STATUS) or _says(text, NO_MONEY) or _says(text, TOO_LONG):
        return _judge(status or 400, text, model="", origin="the model's server")
    return ModelError(f"the provider broke off: {one_line(text) or 'it gave no reason'}", retryable=True)


def one_line(text: str | bytes) -> str:
    """Foreign text as part of an operator's line: no control characters, no length."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


def _judge(status: int, text: str, *, model: str, origin: str, retry_after_s: float | None = None) -> ModelError:
    shown = one_line(text)
    said = f": {shown}" if shown else ""
    # Local servers answer 500 where others answer 400: what is said decides first.
    if _says(text, TOO_LONG) and status != 429:
        return ModelError(
            f"the conversation is too long for the model's context ({shown}): begin a new session, or serve the model "
            "with a larger context",
            retryable=False,
        )
    if _says(text, NO_MONEY) or status == 402:
        return ModelError(f"the provider's account has no credit left{said}", retryable=False)
    if _says(text, NO_TOOLS):
        return ModelError(f"the model {model} cannot call tools as it is served here ({shown}): choose one that can",
                          retryable=False)  # fmt: skip
    if status >= 500 or status in RETRY_STATUS:
        return ModelError(f"{origin} answered {status}{said}", retryable=True, retry_after_s=retry_after_s)
    if status in (401, 403):
        return ModelError(f"{origin} refused the API key ({status}){said}; check api_key in [model]", retryable=False)
    if _says(text, NO_MODEL):
        return ModelError(f"{origin} has no model {model!r}{said}; set name in [model] to one it serves",
                          retryable=False)  # fmt: skip
    if status in (404, 405):
        return ModelError(
            f"{origin} serves no chat completions at that address ({status}){said}; check base_url, which usually "
            "ends in /v1",
            retryable=False,
        )
    return ModelError(f"{origin} refused the request ({status}){said}", retryable=False)


def _says(text: str, pattern: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _said(body: bytes) -> str:
    """The human part of an error body, in the shapes servers use; else its beginning."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return re.sub(r"<[^>]*>", " ", body[:2000].decode("utf-8", "replace"))
    if not isinstance(data, dict):
        return body[:2000].decode("utf-8", "replace")
    error = data.get("error", data)
    if isinstance(error, dict):
        words = [error.get(key) for key in ("message", "detail", "type", "code")]
        metadata = error.get("metadata")
        words.append(metadata.get("raw") if isinstance(metadata, dict) else None)
        error = "; ".join(word for word in words if isinstance(word, str) and word)
    return error if isinstance(error, str) and error else body[:2000].decode("utf-8", "replace")
