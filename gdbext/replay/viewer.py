"""The waveform viewer that follows gdb in the past, as gdb sees it: the session has the connection to it.

After each stop and before each prompt the session is told where gdb is. The other way, the session writes a byte into
a FIFO when the viewer's cursor was moved; a thread waits for it, and has gdb's own thread look, when gdb is idle.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import settings
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.text import print_at_stop
from rvtrace_gdb.gdbext.tracer import tracer, without_signals

_AT_ONCE = 4096


class FollowingViewer:
    """The viewer. *moved*: called in gdb's thread when the viewer's cursor was moved; returns whether gdb follows."""

    def __init__(self) -> None:
        self.moved: Callable[[], bool] | None = None
        self.is_open = False
        self._is_posted = False
        self._is_left = False  # the cursor was moved, and gdb did not follow

    def open(self, **params: Any) -> list[str]:
        """Let a viewer follow: the parameters are those of the request. Raises gdb.GdbError."""
        import tempfile  # each start of gdb would load it, and what it needs

        bell: int | None = None
        with tempfile.TemporaryDirectory(prefix="rvtrace-") as folder:
            path = os.path.join(folder, "bell")
            if hasattr(os, "mkfifo"):
                os.mkfifo(path, 0o600)
                bell = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                params["bell"] = path
            try:
                lines: list[str] = tracer().request("waves_open", **params)["lines"]
            except BaseException:
                if bell is not None:
                    os.close(bell)
                raise
        if bell is not None:
            os.set_blocking(bell, True)
            thread = threading.Thread(target=self._listen, args=[bell], name="viewer", daemon=True)
            without_signals(thread)
        self.is_open, self._is_left = True, False
        return lines

    def close(self) -> list[str]:
        """Let no viewer follow."""
        self.is_open = False
        lines: list[str] = tracer().request("waves_close")["lines"] if tracer().has_session else []
        return lines or ["No waveform viewer follows."]

    def cursor_number(self) -> int:
        """Return the number of the instruction at the viewer's cursor. Raises gdb.GdbError."""
        found = tracer().request("waves_cursor", context=tracer().context(), **settings.waves_scale())
        return int(found["number"])

    def status(self) -> list[str]:
        """Return whether a viewer follows, and which times it gets."""
        if not tracer().has_session:
            return ["No waveform viewer follows."]
        place = {"thread_hart": selected_hart(), **settings.waves_scale()}
        lines: list[str] = tracer().request("waves_status", **place)["lines"]
        return lines

    def follow(self, event: object = None) -> None:
        """Have the viewer show where gdb is, and print what is to be said of it. Does nothing without a viewer."""
        if not self.is_open:
            return
        with contextlib.suppress(gdb.error, gdb.GdbError, KeyboardInterrupt):  # the next command meets the reason
            self.is_open = tracer().has_session
            if self.is_open:
                self._show()

    def _show(self) -> None:
        found = tracer().request("waves_show", thread_hart=selected_hart(), **settings.waves_scale())
        self.is_open, left = found["open"], self._is_left
        self._is_left = False
        for line in found["lines"]:
            print_at_stop(line)
        if left and found["cursor"] and self.is_open:
            print_at_stop("The cursor of the waveform viewer was moved: `trace goto cursor` goes there.")

    def _listen(self, bell: int) -> None:
        """Wait until the session rings, or ends. Runs in a thread."""
        with contextlib.suppress(OSError):
            while os.read(bell, _AT_ONCE):
                if not self._is_posted:
                    self._is_posted = True
                    gdb.post_event(self._look)
        os.close(bell)

    def _look(self) -> None:
        """Follow the cursor, in gdb's thread."""
        self._is_posted = False
        if self.is_open and self.moved is not None:
            self._is_left = not self.moved()

    def event_handlers(self) -> list[tuple[Any, Callable[..., None]]]:
        """Return the handlers of gdb's events: (event registry, function)."""
        return [(gdb.events.stop, self.follow), (gdb.events.before_prompt, self.follow)]


viewer = FollowingViewer()
for _key in ("waves_offset", "waves_scale"):
    settings.changed[_key] = viewer.follow
