"""Connections that do not last for ever, and give way to others: whoever waits for nobody is served."""

from asyncio import TimerHandle
from collections import defaultdict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_network
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: So many seconds may pass until the headers of a request are there, and while a reader takes nothing.
SECONDS = 20.0
#: The characters of an address.
_LONGEST = 45


def network_of(host: str) -> str:
    """Return whom an address belongs to: itself, or the 64 bits of IPv6 within which one sender chooses at will."""
    if ":" not in host:
        return host[:_LONGEST]
    try:
        plain = IPv6Address(host.partition("%")[0])
    except ValueError:  # a proxy may write anything
        return ""
    return str(plain.ipv4_mapped or ip_network((plain, 64), strict=False))


@dataclass
class _Host:
    """The connections of one address: how many there are, and those that wait, the oldest first."""

    number: int = 0
    waiting: "dict[InTime, None]" = field(default_factory=dict)


class Places:
    """The connections that a server holds at once, of which one address has half at the most.

    A connection that waits for its other end, which has not sent a whole request or does not read, gives its place to a
    new one: the oldest of the address that has most of them. So only requests that have come whole hold places.
    """

    def __init__(self, most: int) -> None:
        self._most, self._most_each = most, max(most // 2, 1)
        self._open: set[InTime] = set()
        self._hosts: defaultdict[str, _Host] = defaultdict(_Host)

    def enter(self, connection: "InTime") -> bool:
        """Return whether a new connection gets a place; another one may lose its own."""
        host = self._hosts.get(connection.host)
        full = host is not None and host.number >= self._most_each
        if full or len(self._open) >= self._most:
            if not full:
                host = max(self._hosts.values(), key=lambda each: len(each.waiting))
            oldest = None if host is None else next(iter(host.waiting), None)
            if oldest is None:
                return False
            self.leave(oldest)
            oldest.transport.abort()
        self._open.add(connection)
        self._hosts[connection.host].number += 1
        return True

    def wait(self, connection: "InTime") -> None:
        """Note that a connection waits for its other end from now on, if it did not before."""
        if connection in self._open:
            self._hosts[connection.host].waiting.setdefault(connection)

    def work(self, connection: "InTime") -> None:
        """Note that a connection waits no more."""
        if connection in self._open:
            self._hosts[connection.host].waiting.pop(connection, None)

    def leave(self, connection: "InTime") -> None:
        """Free the place of a connection, if it has one."""
        if connection in self._open:
            self._open.remove(connection)
            host = self._hosts[connection.host]
            host.waiting.pop(connection, None)
            host.number -= 1
            if not host.number:
                del self._hosts[connection.host]


class InTime(H11Protocol):
    """Closes connections whose other end sends half a request, or takes no byte of an answer."""

    _timer: TimerHandle | None = None
    _paused = False

    def __init__(self, *, places: Places, **settings: Any) -> None:
        super().__init__(**settings)
        self._places = places

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.host = network_of(self.client[0] if self.client else "")
        if self._places.enter(self):
            self._look()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def _look(self) -> None:
        """Note who has to act, and begin to count seconds if it is the other end."""
        state = self.conn.their_state
        body = state is h11.SEND_BODY
        if body or state is h11.IDLE or self._paused:
            self._places.wait(self)
        else:
            self._places.work(self)
        # The application counts those of a body. uvicorn counts those between two requests until bytes come.
        headers = state is h11.IDLE and self.timeout_keep_alive_task is None
        limited = self._paused or headers or (body and self.cycle.response_complete)
        if limited and self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(SECONDS, self.transport.abort)
        elif not limited and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_response_complete(self) -> None:
        """Go on with the next request."""
        super().on_response_complete()
        self._look()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a client that has sent all it has to send, before the connection ends."""
        answering = self.cycle is not None and not (self.cycle.response_complete or self.cycle.more_body)
        if answering:
            self.cycle.keep_alive = False
        return answering

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; of headers that are too long, say so, for which the base class has no status."""
        if len(self.conn.trailing_data[0]) <= (self.config.h11_max_incomplete_event_size or 0):
            super().send_400_response(msg)
            return
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        self.transport.write(self.conn.send(h11.Response(status_code=431, headers=headers)) or b"")
        self.transport.write(self.conn.send(h11.Data(data=b"The headers are too long.")) or b"")
        self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._paused = True
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._paused = False
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.leave(self)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
