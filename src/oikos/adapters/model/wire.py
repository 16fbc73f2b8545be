"""HTTP/1.1 to one origin: one POST at a time over a kept-alive connection, the answer as it arrives.

Built on h11, the wire layer under httpx2, because a request here must cost little: measured on 8 KB bodies,
httpx2 takes 1.0 to 1.3 ms of CPU a request and 140 ms more to import, httpcore2 0.8 ms and 70 ms, this 0.3 ms
and 20 ms. There are no proxies, no redirects and no cookies (THREATS T14).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import h11

from oikos.adapters.model.endpoint import SCHEMES, Endpoint, address_fault

READ_BYTES: Final = 64 * 1024
HEADER_CAP_BYTES: Final = 64 * 1024
SPARE_CONNECTIONS: Final = 4
Headers = Sequence[tuple[bytes, bytes]]
T = TypeVar("T")


class WireError(Exception):
    """The exchange broke; the text says how, as half a sentence."""


class StaleError(WireError):
    """A kept connection turned out closed before anything of an answer came: worth one try on a fresh one."""


class Exchange:
    """One request on one connection, and its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, end_s: float) -> None:
        self._reader = reader
        self._writer = writer
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_CAP_BYTES)
        self._end_s = end_s
        self.reused = False

    @property
    def reusable(self) -> bool:
        """Whether the answer was read to its end and the server keeps the connection."""
        state = self._h11
        return state.our_state is h11.DONE and state.their_state is h11.DONE and not self._writer.is_closing()

    @property
    def closed_by_server(self) -> bool:
        """Whether a connection at rest has ended, or holds bytes that nobody asked for."""
        return self._reader.at_eof() or self._writer.is_closing() or bool(self._h11.trailing_data[0])

    def again(self, end_s: float) -> None:
        """Ready for the next request."""
        self._h11.start_next_cycle()
        self._end_s = end_s
        self.reused = True

    async def send(self, target: str, headers: Headers, body: bytes, idle_s: float) -> None:
        """Writes the whole request."""
        request = h11.Request(method="POST", target=target, headers=list(headers))
        head = self._h11.send(request) or b""
        self._writer.write(head + (self._h11.send(h11.Data(data=body)) or b""))
        self._h11.send(h11.EndOfMessage())
        await self._bounded(self._writer.drain(), idle_s, "took no request")

    async def head(self, first_s: float) -> tuple[int, dict[str, str]]:
        """Status and headers of the answer."""
        while True:
            event = await self._event(first_s, "gave no answer")
            if isinstance(event, h11.Response):
                return event.status_code, {k.decode("latin-1"): v.decode("latin-1") for k, v in event.headers}
            if not isinstance(event, h11.InformationalResponse):
                raise WireError("answered with no HTTP response")

    async def chunks(self, idle_s: float) -> AsyncGenerator[bytes, None]:
        """The body as it arrives: everything that one read brought is one piece."""
        pieces: list[bytes] = []
        while True:
            event = self._next()
            if isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif event is h11.NEED_DATA:
                if pieces:
                    yield b"".join(pieces)
                    pieces.clear()
                await self._read(idle_s, "fell silent in the middle of its answer")
            else:
                break
        if pieces:
            yield b"".join(pieces)

    async def finish(self, grace_s: float) -> None:
        """Reads the little that follows a whole answer, so that the connection can be kept; in vain after the grace."""
        if self.reusable:
            return
        try:
            async with asyncio.timeout(grace_s):
                async for _ in self.chunks(grace_s):
                    pass
        except (WireError, TimeoutError):
            self.abort()

    def abort(self) -> None:
        """Ends the connection at once; a server that still generates notices."""
        self._writer.transport.abort()

    async def _event(self, idle_s: float, silence: str) -> object:
        while (event := self._next()) is h11.NEED_DATA:
            await self._read(idle_s, silence)
        return event

    def _next(self) -> object:
        try:
            return self._h11.next_event()
        except h11.RemoteProtocolError as error:
            if self._reader.at_eof():
                raise WireError("cut its answer off") from error
            raise WireError(f"spoke broken HTTP ({error})") from error

    async def _read(self, idle_s: float, silence: str) -> None:
        data = await self._bounded(self._reader.read(READ_BYTES), idle_s, silence)
        if not data and self._h11.their_state is h11.SEND_RESPONSE:
            error = StaleError if self.reused else WireError
            raise error("closed the connection without an answer")
        self._h11.receive_data(data)

    async def _bounded(self, awaitable: Awaitable[T], idle_s: float, silence: str) -> T:
        left_s = self._end_s - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(idle_s, left_s)):
                return await awaitable
        except TimeoutError:
            if left_s < idle_s:
                raise WireError("took longer than the total deadline") from None
            raise WireError(f"{silence} for {idle_s:g} s") from None
        except OSError as error:
            failure = StaleError if self.reused and self._h11.their_state is h11.SEND_RESPONSE else WireError
            raise failure(f"broke the connection ({error.strerror or type(error).__name__})") from error


class Wire:
    """The connections to one endpoint; those that are at rest are kept."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._headers = _fixed_headers(endpoint)
        self._tls: ssl.SSLContext | None = None
        self._spare: list[Exchange] = []

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[tuple[int, dict[str, str], Exchange]]:
        """Sends a body; gives status, headers and the exchange to read the answer from.

        An answer that is not read to its end costs its connection, nothing else.

        Raises:
            WireError: no connection, or it broke; what was read of the answer is worth nothing.
        """
        exchange = await self._exchange()
        try:
            try:
                status, headers = await self._ask(exchange, body)
            except StaleError:
                exchange.abort()
                exchange = await self._open()
                status, headers = await self._ask(exchange, body)
            yield status, headers, exchange
        finally:
            if exchange.reusable and len(self._spare) < SPARE_CONNECTIONS:
                self._spare.append(exchange)
            else:
                exchange.abort()

    async def close(self) -> None:
        """Lets go of the kept connections."""
        while self._spare:
            self._spare.pop().abort()

    async def _ask(self, exchange: Exchange, body: bytes) -> tuple[int, dict[str, str]]:
        deadlines = self._endpoint.deadlines
        headers = (*self._headers, (b"content-length", b"%d" % len(body)))
        await exchange.send(self._endpoint.path, headers, body, deadlines.first_s)
        return await exchange.head(deadlines.first_s)

    async def _exchange(self) -> Exchange:
        while self._spare:
            kept = self._spare.pop()
            if kept.closed_by_server:
                kept.abort()
                continue
            kept.again(self._end_s())
            return kept
        return await self._open()

    async def _open(self) -> Exchange:
        endpoint = self._endpoint
        if endpoint.scheme == "https" and self._tls is None:
            # Reading the machine's certificate authorities takes files and time: not on the event loop.
            self._tls = await asyncio.to_thread(_tls)
        try:
            async with asyncio.timeout(endpoint.deadlines.connect_s):
                reader, writer = await asyncio.open_connection(
                    endpoint.host, endpoint.port, ssl=self._tls, limit=READ_BYTES * 4
                )
        except TimeoutError:
            raise WireError(f"did not take a connection within {endpoint.deadlines.connect_s:g} s") from None
        except ssl.SSLError as error:
            raise WireError(f"cannot be trusted: {getattr(error, 'verify_message', '') or error.reason}") from error
        except OSError as error:
            raise WireError(f"cannot be reached ({error.strerror or error})") from error
        exchange = Exchange(reader, writer, self._end_s())
        # The name was resolved just now: what it led to is judged before a byte is sent.
        if fault := address_fault(str(writer.get_extra_info("peername")[0]).partition("%")[0]):
            exchange.abort()
            raise WireError(f"resolved to an address that is refused: {fault}")
        return exchange

    def _end_s(self) -> float:
        return asyncio.get_running_loop().time() + self._endpoint.deadlines.total_s


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _fixed_headers(endpoint: Endpoint) -> list[tuple[bytes, bytes]]:
    default = SCHEMES[endpoint.scheme]
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    headers = {
        "host": host if endpoint.port == default else f"{host}:{endpoint.port}",
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "user-agent": "oikos",
    }
    if endpoint.key:
        headers["authorization"] = f"Bearer {endpoint.key}"
    headers.update({name.lower(): value for name, value in endpoint.headers.items()})
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
