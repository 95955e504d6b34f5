"""A program in a terminal of its own, driven by keys and read as a picture: for tests of what is seen, and screenshots.

The terminal is tmux's, which needs no screen.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from rvtrace_gdb.support.errors import RvtraceError

SECONDS = 60  # to wait for what is to appear: a machine may have much else to do
_POLL = 0.05


class TerminalError(RvtraceError):
    """The terminal could not be made, or what was waited for did not appear; *screen* is what was there instead."""

    def __init__(self, what: str, screen: str = "") -> None:
        super().__init__(f"{what}; on the screen was:\n{screen}" if screen else what)
        self.screen = screen


class Terminal:
    """`with Terminal(["gdb", ...], 120, 40) as terminal:` - a program that believes that somebody looks.

    *environ*: the whole environment of the program. Raises TerminalError.
    """

    def __init__(self, command: Sequence[str], columns: int, rows: int, environ: Mapping[str, str]) -> None:
        tmux = shutil.which("tmux")
        if tmux is None:
            raise TerminalError("tmux is not installed (apt install tmux)")
        self._folder = tempfile.TemporaryDirectory(prefix="rvtrace-")
        self._tmux = [tmux, "-S", os.path.join(self._folder.name, "tmux")]
        self._size = ["-x", str(columns), "-y", str(rows)]
        self._command = list(command)
        self._environ = {key: value for key, value in environ.items() if key not in ("TMUX", "TMUX_PANE", "TERM")}

    def __enter__(self) -> Self:
        self._start()
        settings = ["set-option", "-g", "status", "off", ";", "set-option", "-g", "default-terminal", "tmux-256color"]
        settings += [";", "set-option", "-g", "remain-on-exit", "on", ";", "set-option", "-g", "escape-time", "0", ";"]
        try:
            self._run(*settings, "new-session", "-d", *self._size, "--", *self._command)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def type(self, text: str) -> None:
        """Characters as they are."""
        self._run("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: Enter, PageUp, Up, C-x."""
        self._run("send-keys", *keys)

    def enter(self, command: str) -> None:
        """A line, and the key that ends it."""
        self.type(command)
        self.press("Enter")

    def click(self, column: int, row: int) -> None:
        """The left button, pressed and let go; counted from 0. Only for a program that listens to the mouse."""
        place = chr(33 + column) + chr(33 + row)
        self.type(f"\x1b[M {place}\x1b[M#{place}")

    def resize(self, columns: int, rows: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, *, colours: bool = False) -> str:
        """What is there now: a line for each row. *colours*: with the escape sequences that make them."""
        return self._run("capture-pane", "-p", *(["-e"] if colours else []))

    def ask(self, question: str) -> str:
        """What tmux knows, as a format of its own: `#{pid}` of the process that all in the terminal descend from."""
        return self._run("display-message", "-p", question).strip()

    def wait(self, there: Callable[[str], object], what: str, *, moving: bool = False) -> str:
        """The screen as soon as *there* says it is so, twice the same, for a program may be in the middle of drawing.

        *what*: is waited for; *moving*: once is enough, as of a bar that is drawn anew all the time. Raises
        TerminalError.
        """
        deadline = time.monotonic() + SECONDS
        screen = ""
        while True:
            before, screen = screen, self.screen()
            if (moving or screen == before) and there(screen):
                return screen
            if time.monotonic() > deadline:
                raise TerminalError(f"no {what} within {SECONDS} s", screen)
            time.sleep(_POLL)

    def wait_for(self, text: str) -> str:
        """The screen as soon as it has a text. Raises TerminalError."""
        return self.wait(lambda screen: text in screen, text)

    def _start(self) -> None:
        """tmux's server, as a child: it ends with this process even when that is killed."""
        setpriv = shutil.which("setpriv")
        tied = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
        nothing = subprocess.DEVNULL
        self._server = subprocess.Popen(
            [*tied, *self._tmux, "-f", os.devnull, "-D"],
            env=self._environ, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + SECONDS
        while subprocess.run([*self._tmux, "show-options", "-s"], capture_output=True, check=False).returncode:
            if self._server.poll() is not None or time.monotonic() > deadline:
                self._stop()
                raise TerminalError("tmux did not start")
            time.sleep(_POLL)

    def _stop(self) -> None:
        self._server.terminate()
        try:
            self._server.wait(5)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._folder.cleanup()

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, env=self._environ, check=False)
        if done.returncode:
            raise TerminalError(f"tmux {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")
