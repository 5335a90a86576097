"""A headless Chromium, driven over pipes by its DevTools protocol: no driver and no package is needed.

The protocol: https://chromedevtools.github.io/devtools-protocol. With ``--remote-debugging-pipe``, Chromium reads
messages of JSON from its file descriptor 3 and writes them to 4, each with a zero byte behind it.
"""

import base64
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

#: The program; None if it is not installed.
PROGRAM = shutil.which("chromium")
#: Without a graphics card, a screen's scale or a sandbox (which root has not), and with the same glyphs everywhere.
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--font-render-hinting=none",
)
#: A box in the page with some room around it, of one in the window.
_AROUND = "box => ({x: box.x - 8, y: box.y + scrollY - 10, width: box.width + 16, height: box.height + 20})"
_COMPLAINTS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


class Chromium:
    """A browser with one tab."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        # Numbers above 4, so that the child overwrites neither when it takes them as 3 and 4.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out)]
        actions = [
            (os.POSIX_SPAWN_DUP2, high[0], 3),
            (os.POSIX_SPAWN_DUP2, high[1], 4),
            (os.POSIX_SPAWN_OPEN, 2, str(profile / "log"), os.O_WRONLY | os.O_CREAT, 0o600),
        ]
        arguments = [PROGRAM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self._pid = os.posix_spawn(PROGRAM, arguments, os.environ, file_actions=actions, setsid=True)
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self._to, self._from = os.fdopen(ours_out, "wb", 0), os.fdopen(ours_in, "rb")
        self._rest, self._last, self._events, self._session = b"", 0, list[dict[str, Any]](), ""

    def __enter__(self) -> Self:
        (target,) = (each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._to.close()
        self._from.close()
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._last += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._last, "method": method, "params": parameters} | session
        self._to.write(json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last:
            self._events.append(answer)
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path, width: int = 1300, *, dark: bool = False, fragment: str = "") -> None:
        """Open a file in a window of this width, and wait until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        # A page that is open already would not be loaded again for another fragment.
        self.call("Page.navigate", url="about:blank")
        self._wait("Page.loadEventFired")
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri() + fragment)
        self._wait("Page.loadEventFired")

    def complaints(self) -> list[str]:
        """Return what the page has written to the console: its errors, and what its policy forbids."""
        self.run("0")  # what was reported before this answer has come by now
        return [json.dumps(each["params"]) for each in self._events if each.get("method") in _COMPLAINTS]

    def run(self, script: str) -> Any:
        """Return the value of an expression, or of its promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press Tab or Enter."""
        code, text = {"Tab": (9, ""), "Enter": (13, "\r")}[key]
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def picture(self, selector: str, scale: float) -> bytes:
        """Return a picture of the first visible element that matches a selector as PNG."""
        found = f"Array.from(document.querySelectorAll({json.dumps(selector)})).find(each => each.checkVisibility())"
        box = self.run(f"({_AROUND})({found}.getBoundingClientRect())")
        beyond = {"captureBeyondViewport": True}  # what is below the window is drawn too
        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png", clip=box | {"scale": scale}, **beyond)["data"]
        )

    def printed(self) -> bytes:
        """Return the page as it is printed, as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def _wait(self, method: str) -> None:
        while method not in (each.get("method") for each in self._events):
            self._events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._from.fileno(), 1 << 16)
            assert part, "Chromium has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


def texts(browser: Chromium, selector: str) -> Sequence[str]:
    """Return the texts of the elements that match a selector."""
    found: list[str] = browser.run(f"Array.from(document.querySelectorAll({json.dumps(selector)}), e => e.textContent)")
    return found
