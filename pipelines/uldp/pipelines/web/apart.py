"""Work beside the server: so many calls at once, each in a thread, and none that anybody waits for too long."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from uldp.schemas.errors import RequestError

Result = TypeVar("Result")


class BusyError(RequestError):
    """Too many wait, or a call takes too long."""


class Apart:
    """Runs ``at_once`` calls in threads, while ``WAITING`` others wait, each for ``SECONDS``; a call itself goes on."""

    WAITING, SECONDS = 16, 60.0

    def __init__(self, *, at_once: int = 2) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._room = at_once + self.WAITING

    async def run(self, call: Callable[[], Result]) -> Result:
        """Return what a call returns, or raises; BusyError if it cannot begin, or does not end in time."""
        if not self._room:
            raise BusyError("the server is busy; try again in a moment")
        self._room -= 1
        try:
            async with asyncio.timeout(self.SECONDS):
                await self._free.acquire()
                return await asyncio.shield(self._begin(call))
        except TimeoutError as error:
            raise BusyError(f"the answer takes longer than {self.SECONDS:g} s; ask for less") from error
        finally:
            self._room += 1

    def _begin(self, call: Callable[[], Result]) -> "asyncio.Future[Result]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def ended(error: BaseException | None, result: Result | None) -> None:
            self._free.release()
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
                future.exception()  # nobody may wait for it any more
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            error, result = None, None
            try:
                result = call()
            except BaseException as raised:
                error = raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended, error, result)

        threading.Thread(target=work, name="apart", daemon=True).start()
        return future
