"""A server's HTTP API as an eval uses it: plain calls, and the event stream that survives a cut."""

from __future__ import annotations

import http.client
import ipaddress
import ssl
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import orjson

from oikos.adapters.clock import SystemClock
from oikos.adapters.store.codec import CLASSES, decode_as
from oikos.domain import events as ev
from oikos.domain.errors import Code, ConfigError, OikosError, Refusal
from oikos.domain.instant import Instant

BASE = "/api/v1"
SILENCE_S = 30.0
"""A stream that says nothing for so long is cut: a living one says so every few seconds."""
AGAIN_S = 0.2
"""Between two attempts to go on with a cut stream."""


class Server:
    """A server's API; every call is a connection of its own, so that one may be cut without harm to the next."""

    def __init__(self, url: str, token: str) -> None:
        """Of `http://127.0.0.1:8470` or `https://…`, with or without `/api/v1`.

        Raises:
            ConfigError: no such address, or the token would travel in the clear.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise ConfigError(f"{url!r} is no address of a server: give http://127.0.0.1:8470, or https://NAME")
        if parts.scheme == "http" and not _loopback(parts.hostname):
            raise ConfigError(f"the token would travel to {parts.hostname} in the clear: give its https address")
        self._host, self._port, self._tls = parts.hostname, port, parts.scheme == "https"
        self._base = parts.path.rstrip("/").removesuffix(BASE) + BASE
        self._token = token

    def get(self, path: str) -> Any:
        """What a GET answers.

        Raises:
            OikosError: unreachable, or not answered with 200.
        """
        return _json(self.raw(path))

    def raw(self, path: str) -> bytes:
        """The bytes of a GET.

        Raises:
            OikosError: unreachable, or not answered with 200.
        """
        status, raw = self._ask("GET", path)
        if status != 200:
            raise OikosError(f"{self._where}{path} answered {status}: {_said(raw)}")
        return raw

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """What a POST answers; a refusal of the domain is a Refusal.

        Raises:
            OikosError: unreachable, or an answer that is no refusal.
        """
        status, raw = self._ask("POST", path, orjson.dumps(body))
        answer = _json(raw)
        if status < 300:
            return answer
        try:
            return Refusal(code=Code(answer["code"]), text=answer["text"])
        except (ValueError, KeyError, TypeError):
            raise OikosError(f"{self._where}{path} answered {status}: {_said(raw)}") from None

    def events(self, session_id: str, *, after: int, within_s: float) -> Generator[ev.Recorded, None, None]:
        """The stream from a cursor on, gone on with after every cut; ends by being closed.

        Raises:
            OikosError: the time is over, or the server refuses.
        """
        clock = SystemClock()
        begun = clock.now()
        while (left_s := within_s - clock.now().elapsed_since(begun)) > 0:
            try:
                with closing(self._connect(min(SILENCE_S, left_s))) as connection:
                    headers = {**self._headers(), "Last-Event-ID": str(after)}
                    connection.request("GET", f"{self._base}/sessions/{session_id}/events", headers=headers)
                    response = connection.getresponse()
                    if response.status != 200:
                        raise OikosError(f"the event stream answered {response.status}: {_said(response.read(4096))}")
                    for record in records(response, session_id):
                        if record.seq != after + 1:
                            raise OikosError(f"the event stream went from {after} to {record.seq}")
                        after = record.seq
                        yield record
                        if clock.now().elapsed_since(begun) > within_s:
                            break
            except (OSError, http.client.HTTPException):
                pass  # cut: the next connection goes on after the last event
            threading.Event().wait(AGAIN_S)
        raise OikosError(f"not finished after {within_s:.0f} s")

    @property
    def _where(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}{f':{self._port}' if self._port else ''}{BASE}"

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._tls:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        headers = self._headers() | ({"Content-Type": "application/json"} if body is not None else {})
        try:
            with closing(self._connect(SILENCE_S)) as connection:
                connection.request(method, self._base + path, body=body, headers=headers)
                response = connection.getresponse()
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise OikosError(f"{self._where} does not answer ({error}): is `oikos serve` running there?") from None


def records(lines: Iterable[bytes], session_id: str) -> Iterator[ev.Recorded]:
    """The events of a stream of server-sent events; what has no id is gone when it is over, and no part of the record.

    Raises:
        StoreError: an event is not what this Oikos knows.
    """
    number, data = "", b""
    for raw in lines:
        line = raw.rstrip(b"\r\n")
        name, _, value = line.partition(b": ")
        if name == b"id":
            number = value.decode("ascii", "replace")
        elif name == b"data":
            data = value
        elif not line:
            if number and data:
                yield recorded(session_id, orjson.loads(data))
            number, data = "", b""


def recorded(session_id: str, body: Any) -> ev.Recorded:
    """One event as the API shows it."""
    kind = str(body["kind"])
    if kind not in CLASSES:
        raise OikosError(f"the server speaks of {kind!r}, which this Oikos does not know: use the server's version")
    event = decode_as(CLASSES[kind], orjson.dumps(body["event"]))
    return ev.Recorded(
        session_id=session_id, seq=int(body["seq"]), at=decode_as(Instant, orjson.dumps(body["at"])), event=event
    )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _json(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise OikosError(f"the answer is not JSON, so not of Oikos: {_said(raw)}") from None


def _said(raw: bytes) -> str:
    """The text of a problem, or how the body begins."""
    try:
        body = orjson.loads(raw)
        return f"{body['text']} {body['do']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return repr(raw[:100].decode("utf-8", "replace"))
