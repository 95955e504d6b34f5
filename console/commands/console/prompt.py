"""The console on a terminal: line editing, completion, history and status line come from prompt-toolkit."""

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from rvtrace_gdb.console.commands.console.shell import ConsoleStatus, Shell
from rvtrace_gdb.console.gdb_driver.mi import GdbGone, MissingLibrary
from rvtrace_gdb.gdbext import start_options
from rvtrace_gdb.support.errors import RvtraceError

try:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.patch_stdout import patch_stdout
except ImportError:
    raise MissingLibrary("prompt-toolkit") from None

_START = re.compile(r"(?:rv)?trace +start ")
_EXPLAINED = {option.name: " ".join(option.help) for option in start_options.OPTIONS}
PROMPT, MORE = "(rvtrace) ", "> "
_MENU = 8  # rows reserved for the completion menu
_LOOKED = 0.25  # seconds between two checks of what gdb sends by itself
_ASKED = 2.0  # seconds between two requests for the trace components' state while the program runs


def history_file() -> Path:
    """Return the file of the line history: $XDG_STATE_HOME/rvtrace/history."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "rvtrace" / "history"


class Prompt:
    """Reads lines from the terminal. *shell* completes them; *status* is shown below."""

    def __init__(self, shell: Shell, status: ConsoleStatus) -> None:
        self._shell, self._status = shell, status
        self._session: PromptSession[str] = PromptSession(
            history=_history(), completer=_Completer(shell), complete_while_typing=False, complete_in_thread=True,
            bottom_toolbar=self._toolbar, enable_history_search=False,
        )  # fmt: skip

    def _toolbar(self) -> str:
        return f" {self._status.text(get_app().output.get_size().columns - 2)} "

    def read(self) -> str:
        """Read a line. Raises EOFError (Ctrl-D), KeyboardInterrupt (Ctrl-C)."""
        watcher = _PromptWatcher(self._shell, self._status, self._session)
        rows = self._session.output.get_size().rows
        self._session.reserve_space_for_menu = max(0, min(_MENU, rows - 3))  # the prompt, a line of it, the status
        with patch_stdout(raw=True), watcher:
            return self._session.prompt(MORE if self._shell.waiting else PROMPT)


def _history() -> History:
    """Return the history in the file, or in memory if the file cannot be used."""
    try:
        file = history_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        with file.open("rb"):
            pass
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return InMemoryHistory()
    return _Kept(str(file)) if file.is_file() else InMemoryHistory()


class _Kept(FileHistory):
    """A history file; errors in writing it (a full disk) are ignored."""

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            super().store_string(string.encode(errors="replace").decode())


class _Completer(Completer):
    """gdb's own completion."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.current_line_before_cursor
        begin = len(text) - len(text.split(" ")[-1])
        try:
            lines = self._shell.complete(text.lstrip())
        except RvtraceError:
            return
        indent = len(text) - len(text.lstrip())
        for line in lines:
            meta = _EXPLAINED.get(line.split(" ")[-1], "") if _START.match(line) else ""
            yield Completion(line, start_position=indent - len(text), display=line[begin - indent :], display_meta=meta)


class _PromptWatcher:
    """A thread that, while a line is typed, reads what gdb sends by itself and updates the status line."""

    def __init__(self, shell: Shell, status: ConsoleStatus, session: "PromptSession[str]") -> None:
        self._shell, self._status, self._session = shell, status, session
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        since = _ASKED  # the first time at once
        while True:
            asked = since >= _ASKED
            since = 0.0 if asked else since
            heard = not asked and self._looked(self._shell.engine.poll)
            if self._looked(lambda asked=asked: self._status.refresh(traced=asked)) or heard:  # type: ignore[misc]
                self._session.app.invalidate()
            if self._over.wait(_LOOKED):
                return
            since += _LOOKED

    def _looked(self, look: Callable[[], bool]) -> bool:
        lock = self._shell.engine.lock
        if not lock.acquire(blocking=False):
            return False
        try:
            return look()
        except GdbGone as error:
            self._leave(error)
            return False
        except RvtraceError:
            return False
        finally:
            lock.release()

    def _leave(self, error: GdbGone) -> None:
        """End the prompt: gdb has ended."""
        self._over.set()
        app = self._session.app
        if app.loop is not None:
            app.loop.call_soon_threadsafe(lambda: app.exit(exception=error) if app.is_running else None)
