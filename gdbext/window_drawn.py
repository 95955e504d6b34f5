"""The history window itself: what gdb calls on keys, clicks and changes of size, and what is on the screen.

At every prompt the window looks where gdb is now; where there is no window nothing is done.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, TypeVar

import gdb

from rvtrace_gdb.gdbext.tracer import tracer
from rvtrace_gdb.gdbext.window_lines import NOTE, Lines, coloured
from rvtrace_gdb.gdbext.window_source import Source
from rvtrace_gdb.gdbext.window_state import NO_LIMIT, State, look
from rvtrace_gdb.gdbext.window_view import Line, around, middle_of, wrapped

_F = TypeVar("_F", bound=Callable[..., Any])
shown: list[Window] = []
"""The window there is, if there is one."""


def _harmless(method: _F) -> _F:
    """What goes wrong in the window is said in it: gdb would print a traceback over the screen."""

    @functools.wraps(method)
    def wrapper(self: Window, *args: Any) -> Any:
        try:
            return method(self, *args)
        except KeyboardInterrupt:
            self.interrupted()
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.say(" ".join(str(error).split()) or type(error).__name__)

    return wrapper  # type: ignore[return-value]


class Window:
    """What gdb needs of a window, and the scrolling. *window*: gdb's own object, to draw on."""

    def __init__(self, window: gdb.TuiWindow) -> None:
        self._window = window
        self._lines, self._source = Lines(), Source()
        self._state = State()
        self._anchor: int | None = None  # the number in the middle, None: where gdb is
        self._column = 0
        self._shown: list[Line] = []
        self._anew = True
        self._posted = False
        self._declined: object = None  # the run whose trace the user did not want to wait for
        self.chosen: int | None = None
        """The number of the instruction that the source window shows since the window was scrolled or clicked."""
        window.title = "trace"
        for registry, handler in self._handlers():
            registry.connect(handler)
        self._connected = True
        shown[:] = [self]

    def _handlers(self) -> list[tuple[Any, Callable[[Any], None]]]:
        return [
            (gdb.events.before_prompt, self._prompt),
            (gdb.events.stop, self._stopped),
            (gdb.events.new_objfile, self._forget),
            (gdb.events.memory_changed, self._forget),
        ]

    # What gdb calls

    @_harmless
    def render(self) -> None:
        """The window is new or has another size."""
        self._draw()

    @_harmless
    def vscroll(self, lines: int) -> None:
        """Scroll by lines, and bring the source along."""
        middle = middle_of(self._shown, self._height())
        if middle is None:
            return
        self._anchor = self.chosen = max(1, min(middle + lines, self._state.length))
        self._draw()
        self._follow_with_source()

    @_harmless
    def hscroll(self, columns: int) -> None:
        """Scroll sideways."""
        self._column = max(0, self._column + columns)
        self._draw()

    @_harmless
    def click(self, x: int, y: int, button: int) -> None:
        """The source of the line that was clicked."""
        line = self._shown[y] if 0 <= y < len(self._shown) else Line("")
        if line.number is None:
            return
        self._anchor = self._anchor or middle_of(self._shown, self._height())
        self.chosen = line.number
        self._draw()
        self._follow_with_source()

    def close(self) -> None:
        """The window goes away."""
        if not self._connected:
            return
        self._connected = False
        for registry, handler in self._handlers():
            registry.disconnect(handler)
        if self in shown:
            shown.remove(self)

    def retire(self) -> None:
        """The window stays on the screen, but is no more than that."""
        self.close()
        self._state = State()
        self.say("rvtrace was loaded anew: `layout src`, then `layout trace`.")

    # What happens in gdb

    @_harmless
    def _prompt(self, event: object = None) -> None:
        if not self._window.is_valid():
            return
        self._source.forget()
        self._look(self._most())

    def _stopped(self, event: object) -> None:
        """Of a program that ran in the background, for which there may be no prompt; else the prompt is first."""
        if not self._posted:
            self._posted = True
            gdb.post_event(self._after_stop)

    def _after_stop(self) -> None:
        self._posted = False
        if self._connected:
            self._prompt()

    def _forget(self, event: object) -> None:
        self._lines.forget()
        self._anew = True

    def _most(self) -> int:
        """Bytes that may be read out for the window now."""
        if self._declined is not None and self._declined == tracer().context()["runs"]:
            return 0
        limit = gdb.parameter("trace window-bytes")
        return limit if isinstance(limit, int) and limit >= 0 else NO_LIMIT

    def _look(self, most: int | None) -> None:
        state = look(most, anew=self._anew)
        self._anew = False
        if state != self._state:
            self._state, self._anchor, self.chosen = state, None, None
            self._draw()

    def interrupted(self) -> None:
        """The user does not want to wait: until the program runs again, nothing is read out for the window."""
        self._declined = tracer().context()["runs"]
        self.say("Interrupted: `trace history` reads out the rest.")

    def say(self, problem: str) -> None:
        """A line about what is wrong."""
        self._state = self._state._replace(problem=problem)
        with contextlib.suppress(RuntimeError, gdb.error, gdb.GdbError):  # no window, no session: then nothing
            self._draw()

    # What is on the screen

    def _height(self) -> int:
        return max(1, self._window.height - len(self._notes()))

    def _notes(self) -> list[str]:
        note = self._state.note() if self._state != State() else None
        lines = wrapped(note, self._window.width) if note else []
        return [coloured(line, NOTE) for line in lines[: max(1, self._window.height - 1)]]

    def _draw(self) -> None:
        width, height = self._window.width, self._height()
        middle = self._anchor or self._state.home
        lines = self._lines.fetch(self._state, middle - height, middle + height)
        if self._state.number is not None and self._state.number > self._state.length:
            lines.append(Line("all of the trace has run: going on leads to the present", self._state.number, "=>"))
        self._shown = around(lines, middle, height)
        digits = len(str(self._state.length + 1))
        home = self._state.selected or self._state.number
        texts = [
            Lines.draw(self._marked(line), digits, self._column, width, here=home is not None and line.number == home)
            for line in self._shown
        ]
        self._window.title = self._state.title()
        self._write([*texts, *[""] * (height - len(texts)), *self._notes()])

    def _marked(self, line: Line) -> Line:
        chosen = line.number is not None and line.number == self.chosen and not line.mark.strip()
        return line._replace(mark="->") if chosen else line

    def _write(self, lines: list[str]) -> None:
        """A line as wide as the window takes the cursor to the next one by itself."""
        width = self._window.width
        text = "".join(line if Lines.width(line) >= width else f"{line}\n" for line in lines)
        text = text[:-1] if text.endswith("\n") else text
        try:
            self._window.write(text, True)  # all of the window at once
        except TypeError:  # gdb < 13
            self._window.erase()
            self._window.write(text)

    def _follow_with_source(self) -> None:
        for line in self._shown:
            if line.number == self.chosen and line.pc is not None:
                self._source.show(line.pc)
