"""Connections that do not last for ever: a request has to come, and an answer has to go, in time."""

from asyncio import TimerHandle
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: So many seconds may pass until the headers of a request are there, and while a reader takes nothing.
SECONDS = 20.0


class InTime(H11Protocol):
    """Closes connections whose other end sends half a request, or takes no byte of an answer."""

    _coming: TimerHandle | None = None
    _going: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        super().data_received(data)
        self._wait()

    def _wait(self) -> None:
        awaited = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if awaited and self._coming is None:
            self._coming = self.loop.call_later(SECONDS, self.transport.abort)
        elif not awaited and self._coming is not None:
            self._coming.cancel()
            self._coming = None

    def on_response_complete(self) -> None:
        """Go on with the next request, for which uvicorn waits by a clock of its own until it begins."""
        super().on_response_complete()
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None

    def pause_writing(self) -> None:
        """Begin to wait for a reader."""
        super().pause_writing()
        self._going = self.loop.call_later(SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        if self._going is not None:
            self._going.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        for timer in (self._coming, self._going):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
