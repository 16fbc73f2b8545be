"""TLS through the gateway: passed on unopened to the registry that the client's server name (RFC 6066) names."""

from __future__ import annotations

import asyncio
import struct

from oikos.lab.gateway.journal import Journal

PORT = 443
CONNECT_S = 20.0


class Tls:
    """One connection handler for all hosts."""

    def __init__(self, upstreams: frozenset[str], journal: Journal) -> None:
        self._upstreams, self._journal = upstreams, journal

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            hello = await reader.readexactly(5)
            hello += await reader.readexactly(struct.unpack(">H", hello[3:5])[0])
            host = server_name(hello) or ""
            allowed = host in self._upstreams
            self._journal.note(tls=host, peer=str(writer.get_extra_info("peername")[0]), ok=allowed)
            if allowed:
                back, forth = await asyncio.wait_for(asyncio.open_connection(host, PORT), CONNECT_S)
                upstream = forth
                forth.write(hello)
                await asyncio.gather(_pump(reader, forth), _pump(back, writer))
        except (asyncio.IncompleteReadError, OSError):
            pass  # one of the two ends went away
        finally:
            writer.close()
            if upstream is not None:
                upstream.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()


def server_name(record: bytes) -> str | None:
    """The host_name of a ClientHello record, lower case; None when it has none or is none."""
    try:
        at = 5 + 4 + 2 + 32
        at += 1 + record[at]
        at += 2 + struct.unpack(">H", record[at : at + 2])[0]
        at += 1 + record[at]
        end = at + 2 + struct.unpack(">H", record[at : at + 2])[0]
        at += 2
        while at < end:
            kind, length = struct.unpack(">HH", record[at : at + 4])
            if kind == 0:
                (size,) = struct.unpack(">H", record[at + 7 : at + 9])
                return record[at + 9 : at + 9 + size].decode().lower()
            at += 4 + length
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return None
