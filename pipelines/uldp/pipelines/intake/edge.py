"""What the edge makes of a post before anybody looks at its message: who sends it, its headers, and its bytes."""

import math
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from starlette.types import Receive

from uldp.schemas.errors import RequestError
from uldp.schemas.specs.mistakes import quote

#: The bytes of a message that the server takes, as they come and when inflated.
MOST_BYTES = 1 << 20
#: A larger message ends its connection. Others are passed over: nginx answers 502 if one ends within a message.
_PASSED_OVER = 16 << 20
_CLOSE = {"Connection": "close"}
#: Parameters of zlib: only gzip, with its largest window.
_GZIP = 16 + zlib.MAX_WBITS
_TOO_LARGE = f"a message has {MOST_BYTES:,} bytes at the most, inflated too; put fewer reports into a batch"


class EdgeError(RequestError):
    """A post is answered, with ``status`` and ``headers``, before anybody looks at its message."""

    def __init__(
        self, status: int, text: str, headers: Mapping[str, str] | None = None, *, whole: bool = False
    ) -> None:
        super().__init__(text)
        self.status, self.headers = status, dict(headers or {})
        #: Whether a rest of the message may still come, and the connection stays.
        self.rest = not whole and "Connection" not in self.headers


async def body_of(headers: Mapping[bytes, bytes], receive: Receive, take: Callable[[int], int]) -> bytes:
    """Read the message of a post, its headers in lower case; EdgeError as soon as the server cannot take it."""
    announced, chunked = headers.get(b"content-length"), b"transfer-encoding" in headers
    if announced is not None and chunked:  # of which a proxy before the server may believe the other one
        raise EdgeError(400, "a post has Content-Length or Transfer-Encoding, not both", _CLOSE)
    coding = headers.get(b"content-encoding", b"identity").strip().lower()
    if coding not in (b"identity", b"gzip", b"x-gzip"):
        raise EdgeError(415, "send the message as it is, or with Content-Encoding: gzip", {"Accept-Encoding": "gzip"})
    length = int(announced or 0)  # h11 lets digits alone through
    if length > MOST_BYTES:
        raise EdgeError(413, _TOO_LARGE, _CLOSE if length > _PASSED_OVER or take(length) else None)
    _check(take(length), whole=False)
    data = await _read(receive, take if chunked else lambda number: 0)
    return data if coding == b"identity" else inflated(data)


async def _read(receive: Receive, take: Callable[[int], int]) -> bytes:
    data = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise EdgeError(408, "the message did not come whole", _CLOSE)
        part, more = message.get("body", b""), message.get("more_body", False)
        if len(data) + len(part) > MOST_BYTES:
            raise EdgeError(413, _TOO_LARGE, _CLOSE)
        _check(take(len(part)), whole=not more)
        data += part
    return bytes(data)


async def pass_over(receive: Receive) -> None:
    """Read what is left of a message that is not taken; see ``_PASSED_OVER``."""
    left, more = _PASSED_OVER, True
    while more and left > 0:
        message = await receive()
        more = message["type"] == "http.request" and message.get("more_body", False)
        left -= len(message.get("body", b""))


def _check(seconds: int, *, whole: bool) -> None:
    if seconds:
        text = "this sender has sent too many bytes; send this message again later"
        raise EdgeError(429, text, again(seconds), whole=whole)


def again(seconds: int) -> dict[str, str]:
    """Return the header by which a sender comes again after some seconds."""
    return {"Retry-After": str(seconds)}


def inflated(data: bytes) -> bytes:
    """Inflate a message that gzip has compressed; EdgeError if it is none, or too large."""
    inflater = zlib.decompressobj(_GZIP)
    try:
        found = inflater.decompress(data, MOST_BYTES + 1)
    except zlib.error:
        found = b""
    if len(found) > MOST_BYTES:
        raise EdgeError(413, _TOO_LARGE, whole=True)
    if not inflater.eof or inflater.unused_data:
        raise EdgeError(400, "the message is not one whole stream of gzip, as Content-Encoding says", whole=True)
    return found


def origin_of(text: str) -> str:
    """Return an origin as browsers write it, without the usual port; RequestError if it is none."""
    if text == "*":
        return text
    try:
        url = urlsplit(text.strip().lower())
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    more = url.path.removeprefix("/") or url.query or url.fragment or "@" in url.netloc
    if not url.scheme or not url.hostname or more:
        raise RequestError(
            f"--origin {quote(text)}: not an origin; write scheme and host, as https://app.example, or *"
        )
    usual = {"http": 80, "https": 443}.get(url.scheme)
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return f"{url.scheme}://{host}" + (f":{port}" if port is not None and port != usual else "")


#: Whoever comes when so many have sent something within a time shares one limit with all others who do.
_MOST_KEYS = 1 << 16


class RateLimit:
    """Counts the bytes of each sender, ``most`` of them allowed, anew every ``seconds``."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._ends = 0.0
        self._taken: Counter[str] = Counter()

    def take(self, sender: str, number: int) -> int:
        """Take bytes; return 0, or if there are not so many left, after how many seconds there are again."""
        now = self._clock()
        if now >= self._ends:
            self._ends = now + self._seconds
            self._taken.clear()
        if sender not in self._taken and len(self._taken) >= _MOST_KEYS:
            sender = ""
        if self._taken[sender] + number > self._most:
            return math.ceil(self._ends - now)
        self._taken[sender] += number
        return 0
