"""The TUI window that shows the history: `layout trace`, its keys, and the source window that follows it.

gdb calls the window on keys, clicks and changes of size. At every prompt the window updates itself to gdb's position;
without a window, nothing is done.

The source window follows the history window when that is scrolled. gdb moves its source window when it prints a prompt,
which it does not do after a key that scrolls. Until then, `list` shows another file, and `+` and `-` scroll the window
by lines, both without printing anything.

The keys for going backward are capital letters, beside those of gdb's TUI SingleKey mode (C-x s). gdb cannot bind keys
from Python. But its readline has a named keymap for the SingleKey mode (readline >= 8); where gdb uses the system's
readline library, this keymap is accessible, as it is for an inputrc file. Otherwise use examples/gdb.inputrc.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import sys
from typing import Any, Callable, TypeVar

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.tracer import tracer
from rvtrace_gdb.gdbext.tui.content import NO_LIMIT, NOTE, HistoryLines, WindowState, coloured, look
from rvtrace_gdb.gdbext.tui.viewport import WindowLine, around, middle_of, wrapped

KEYS = {
    "S": "reverse-step",
    "N": "reverse-next",
    "I": "reverse-stepi",
    "O": "reverse-nexti",
    "F": "reverse-finish",
    "C": "reverse-continue",
    "B": "trace goto begin",
    "E": "trace goto end",
    "L": "trace live",
    "[": "trace goto event",
    "]": "trace goto -next event",
    "G": "trace here",
    "T": "focus trace",
}
_KEYMAP = b"SingleKey"


def bind_keys() -> bool:
    """Bind the keys that are not bound already. Returns False if that is not possible with this gdb."""
    try:
        readline = ctypes.CDLL(None)
        by_name, bound, macro = readline.rl_get_keymap_by_name, readline.rl_function_of_keyseq, readline.rl_macro_bind
    except (AttributeError, OSError):
        return False
    by_name.restype = ctypes.c_void_p
    keymap = by_name(_KEYMAP)
    if not keymap:
        return False
    for key, command in KEYS.items():
        if not _is_taken(bound, key, keymap):
            # The blank is not bound in SingleKey mode: it opens the prompt, where the rest is typed.
            macro(key.encode(), f" {command}\\r".encode(), ctypes.c_void_p(keymap))
    return True


def _is_taken(bound: Any, key: str, keymap: int) -> bool:
    """Whether a key is bound: it then does something else than the blank, which is not."""
    bound.restype = ctypes.c_void_p
    kinds = ctypes.c_int(), ctypes.c_int()
    functions = [
        bound(text.encode(), ctypes.c_void_p(keymap), ctypes.byref(kind)) for text, kind in zip((key, " "), kinds)
    ]
    return functions[0] != functions[1] or kinds[0].value != kinds[1].value


LINES_AT_MOST = 1 << 16  # of a file: the window is scrolled up in steps that halve from this
_HEIGHT = re.compile(r"^\W*src\s+(\d+)", re.M)


class SourceWindow:
    """The source window, whose position is known only between two prompts."""

    def __init__(self) -> None:
        self._file = ""
        self._first = 0  # the line at the top, 0: not known

    def forget(self) -> None:
        """Drop the position: gdb may have moved the window."""
        self._first = 0

    def show(self, pc: int) -> None:
        """Show the source line of an instruction in the window's middle; without a line, do nothing."""
        with contextlib.suppress(gdb.error):  # no source window in this layout
            place = gdb.find_pc_line(pc)
            height = _height()
            if place.symtab is None or place.line <= 0 or height is None:
                return
            self._show(place.symtab.filename, max(1, place.line - height // 2))

    def _show(self, file: str, first: int) -> None:
        """*first*: the line at the top of the window."""
        if not self._first:
            self._to_the_top()
        changed = file != self._file
        before = max(1, first - 1)  # at the next prompt, gdb puts what would be listed next at the top
        _quietly(f'list "{file}":{before},{before}')
        self._file = file
        self._scroll(first - self._first, changed)
        self._first = first

    def _to_the_top(self) -> None:
        """Scroll to the top in ever smaller steps: gdb 13 does not scroll at all beyond the top."""
        step = LINES_AT_MOST
        while step:
            _quietly(f"- {step} src")
            step //= 2
        self._first = 1

    @staticmethod
    def _scroll(lines: int, changed: bool) -> None:
        if lines:
            _quietly(f"{'+' if lines > 0 else '-'} {abs(lines)} src")
        elif changed:  # the same lines of another file
            _quietly("+ 1 src")
            _quietly("- 1 src")


def _height() -> int | None:
    """Return the number of lines in the source window, None if there is no such window."""
    match = _HEIGHT.search(neutral.printed("info win"))
    return int(match.group(1)) - 2 if match else None


def _quietly(command: str) -> None:
    gdb.execute(command, to_string=True)


_F = TypeVar("_F", bound=Callable[..., Any])
shown: list[HistoryWindow] = []
"""The open window, if there is one."""


def _harmless(method: _F) -> _F:
    """Let a method show errors in the window: gdb would print a traceback over the screen."""

    @functools.wraps(method)
    def wrapper(self: HistoryWindow, *args: Any) -> Any:
        try:
            return method(self, *args)
        except KeyboardInterrupt:
            self.interrupted()
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.show_problem(" ".join(str(error).split()) or type(error).__name__)

    return wrapper  # type: ignore[return-value]


class HistoryWindow:
    """The history window, with the interface that gdb expects. *window*: gdb's own object, to draw on."""

    def __init__(self, window: gdb.TuiWindow) -> None:
        self._window = window
        self._lines, self._source = HistoryLines(), SourceWindow()
        self._state = WindowState()
        self._anchor: int | None = None  # the number in the middle, None: where gdb is
        self._column = 0
        self._shown: list[WindowLine] = []
        self._anew = True
        self._posted = False
        self._declined: object = None  # the run whose read-out the user has interrupted
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
            (gdb.events.new_objfile, self._forget_lines),
            (gdb.events.memory_changed, self._forget_lines),
        ]

    # Called by gdb

    @_harmless
    def render(self) -> None:
        """Draw the window, which is new or has another size."""
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
        """Show the source of the line that was clicked."""
        line = self._shown[y] if 0 <= y < len(self._shown) else WindowLine("")
        if line.number is None:
            return
        self._anchor = self._anchor or middle_of(self._shown, self._height())
        self.chosen = line.number
        self._draw()
        self._follow_with_source()

    def close(self) -> None:
        """Disconnect the event handlers: the window is closed."""
        if not self._connected:
            return
        self._connected = False
        for registry, handler in self._handlers():
            registry.disconnect(handler)
        if self in shown:
            shown.remove(self)

    def retire(self) -> None:
        """Disconnect the window, which stays on the screen, before rvtrace is loaded again."""
        self.close()
        self._state = WindowState()
        self.show_problem("rvtrace was loaded again: `layout src`, then `layout trace`.")

    # Events of gdb

    @_harmless
    def _prompt(self, event: object = None) -> None:
        if not self._window.is_valid():
            return
        self._source.forget()
        self._look(self._most())

    def _stopped(self, event: object) -> None:
        """Update the window after a program that ran in the background has stopped, when no prompt may follow."""
        if not self._posted:
            self._posted = True
            gdb.post_event(self._after_stop)

    def _after_stop(self) -> None:
        self._posted = False
        if self._connected:
            self._prompt()

    def _forget_lines(self, event: object) -> None:
        self._lines.clear_cache()
        self._anew = True

    def _most(self) -> int:
        """Return the number of bytes that may be read out for the window now."""
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
        """Read out nothing more for the window until the program runs again: the user does not want to wait."""
        self._declined = tracer().context()["runs"]
        self.show_problem("Interrupted: `trace history` reads out the rest.")

    def show_problem(self, problem: str) -> None:
        """Show a line about what is wrong."""
        self._state = self._state._replace(problem=problem)
        with contextlib.suppress(RuntimeError, gdb.error, gdb.GdbError):  # no window, or no session
            self._draw()

    # The screen

    def _height(self) -> int:
        return max(1, self._window.height - len(self._note_lines()))

    def _note_lines(self) -> list[str]:
        note = self._state.note() if self._state != WindowState() else None
        lines = wrapped(note, self._window.width) if note else []
        return [coloured(line, NOTE) for line in lines[: max(1, self._window.height - 1)]]

    def _draw(self) -> None:
        width, height = self._window.width, self._height()
        middle = self._anchor or self._state.home
        lines = self._lines.fetch(self._state, middle - height, middle + height)
        if self._state.number is not None and self._state.number > self._state.length:
            lines.append(WindowLine("end of the trace: continuing leads to the present", self._state.number, "=>"))
        self._shown = around(lines, middle, height)
        digits = len(str(self._state.length + 1))
        home = self._state.selected or self._state.number
        texts = [
            HistoryLines.draw(
                self._marked(line), digits, self._column, width, here=home is not None and line.number == home
            )
            for line in self._shown
        ]
        self._window.title = self._state.title()
        self._write_lines([*texts, *[""] * (height - len(texts)), *self._note_lines()])

    def _marked(self, line: WindowLine) -> WindowLine:
        chosen = line.number is not None and line.number == self.chosen and not line.mark.strip()
        return line._replace(mark="->") if chosen else line

    def _write_lines(self, lines: list[str]) -> None:
        """Write the lines; after a line as wide as the window the cursor is at the next one by itself."""
        width = self._window.width
        text = "".join(line if HistoryLines.width(line) >= width else f"{line}\n" for line in lines)
        text = text[:-1] if text.endswith("\n") else text
        try:
            self._window.write(text, True)  # with True, gdb >= 13 redraws the whole window at once
        except TypeError:  # gdb < 13
            self._window.erase()
            self._window.write(text)

    def _follow_with_source(self) -> None:
        for line in self._shown:
            if line.number == self.chosen and line.pc is not None:
                self._source.show(line.pc)


NAME = "trace"
LAYOUT = "trace trace 3 src 3 status 0 cmd 2"
WINDOW_BYTES = 4096  # half a second, where JTAG needs half a millisecond for a word


class HereCommand(Command, name="trace here", kind=gdb.COMMAND_TUI, completer=gdb.COMPLETE_NONE):
    """Go to the instruction that the history window was scrolled to.
    Usage: trace here

    It is the one marked "->" in `layout trace`: in the middle after scrolling,
    or the one that was clicked; the source window shows its line."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        self.refuse_argument(argument)
        if not shown or shown[0].chosen is None:
            raise gdb.GdbError("trace here: no instruction was chosen: scroll in `layout trace`, or click on a line.")
        gdb.execute(f"trace goto {shown[0].chosen}", from_tty)


class WindowBytes(gdb.Parameter):
    """How many bytes of trace are read out of the target for the history window.

    When the program has stopped, the window of `layout trace` shows what ran.
    For that the newer trace is read out; if there is more than this, the window
    says so and waits for `trace history`. 0: always wait. unlimited: never."""

    set_doc = "Set how many bytes of trace are read out of the target for the history window."
    show_doc = "Show how many bytes of trace are read out of the target for the history window."

    def __init__(self) -> None:
        super().__init__("trace window-bytes", gdb.COMMAND_DATA, gdb.PARAM_ZUINTEGER_UNLIMITED)
        self.value = WINDOW_BYTES

    def get_set_string(self) -> str:
        return ""

    def get_show_string(self, svalue: str) -> str:
        return f"Up to {svalue} bytes of trace are read out of the target for the history window."


def _make(window: gdb.TuiWindow) -> HistoryWindow:
    """Create a window of the newest class: after a second `source`, gdb still calls the function of the first."""
    newest: HistoryWindow = sys.modules[__name__].HistoryWindow(window)
    return newest


def _define() -> None:
    """Define the window, its layout, keys and commands, if gdb was built with a TUI."""
    if not hasattr(gdb, "register_window_type"):  # gdb < 10, or without TUI
        return
    WindowBytes()
    gdb.register_window_type(NAME, _make)
    with contextlib.suppress(gdb.error):  # there from an earlier `source`
        gdb.execute(f"tui new-layout {LAYOUT}", to_string=True)
    bind_keys()
    HereCommand()


def release() -> None:
    """Disconnect the open window before a second `source` loads everything again."""
    for window in tuple(shown):  # `retire` removes it from `shown`
        window.retire()


COMMANDS: tuple[Callable[[], object], ...] = (_define,)
"""These are called when rvtrace is loaded, in this order."""
