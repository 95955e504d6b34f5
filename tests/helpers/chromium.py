"""Headless Chromium, driven by its DevTools protocol over a pipe: JSON messages that end with NUL."""

import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

TIMEOUT = 60.0
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip
_KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Tab": 9, "Escape": 27}


class Page:
    """A page. *requests*: the addresses it asked for; *problems*: what its console says of errors."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._buffer = b""
        self._last = 0
        self._events: deque[dict[str, Any]] = deque()
        self._session = ""
        self.requests: list[str] = []
        self.problems: list[str] = []

    def open(self) -> None:
        """Make the page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def show(self, file: Path) -> None:
        """Open a file, and wait until it is loaded and drawn."""
        self._events.clear()
        self.call("Page.navigate", url=file.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._note(self._next())
        self.frame()

    def value(self, expression: str) -> Any:
        """Evaluate JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def frame(self) -> None:
        """Wait until what was done is drawn."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def text(self, selector: str) -> str:
        """The text of an element."""
        return str(self.value(f"document.querySelector({json.dumps(selector)}).textContent"))

    def key(self, key: str, shift: bool = False) -> None:
        """Press a key, as a user does."""
        facts: dict[str, Any] = {"key": key, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": _KEYS.get(key, 0)}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **facts, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **facts)
        self.frame()

    def type(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)
        self.frame()

    def appearance(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the window, and the colours that the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.frame()

    def picture(self, *, whole: bool = False) -> bytes:
        """A picture of what is shown, or of the whole page, as PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        return b64decode(data)

    def _next(self) -> dict[str, Any]:
        end = monotonic() + TIMEOUT
        while b"\0" not in self._buffer:
            assert select([self._back], [], [], max(end - monotonic(), 0))[0], "Chromium does not answer"
            data = os.read(self._back, 1 << 16)
            assert data, "Chromium ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method", ""), event.get("params", {})
        if not method:
            return
        self._events.append(event)
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.problems.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(json.dumps(params["args"]))


@contextmanager
def chromium() -> Iterator[Page]:
    """A page in a browser of its own."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "chromium is not installed: scripts/setup-tools test"
    their_end, to = os.pipe()
    back, my_end = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The descriptors of the protocol are 3 and 4; other shells than bash know no numbers above 9.
        start = f'exec "$0" "$@" 3<&{their_end} 4>&{my_end}'
        words = [program, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(
            ["bash", "-c", start, *words], pass_fds=[their_end, my_end], stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(their_end)
        os.close(my_end)
        try:
            page = Page(to, back)
            page.open()
            yield page
        finally:
            os.close(to)  # it ends then
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(back)
