"""Between an editor, on standard input and output, and an adapter that is started here."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable

from rvtrace_gdb.console.commands.lldb_dap.messages import MessageStream
from rvtrace_gdb.console.commands.lldb_dap.translation import Translation

_CHUNK = 1 << 16


def relay(adapter: "subprocess.Popen[bytes]") -> int:
    """Pass messages on until the adapter has ended; returns its exit status, as a shell has it.

    It ends when the editor's messages do, or when nobody reads its own any more.
    """
    assert adapter.stdin is not None and adapter.stdout is not None
    translation, asked = Translation(), adapter.stdin
    # Not by objects of Python's: a thread that waits in one when the program ends would hold it up.
    editor, shown = sys.stdin.fileno(), sys.stdout.fileno()

    def from_editor() -> None:
        with contextlib.suppress(BrokenPipeError):  # the adapter has ended
            _pass_on(editor, asked.fileno(), lambda message: [translation.for_adapter(message)])
        with contextlib.suppress(OSError):
            asked.close()

    threading.Thread(target=from_editor, daemon=True).start()
    try:
        _pass_on(adapter.stdout.fileno(), shown, translation.for_editor)
        _send_all(shown, translation.rest())
    except BrokenPipeError:  # the editor has ended
        adapter.terminate()
    status = adapter.wait()
    return status if status >= 0 else 128 - status


def _pass_on(source: int, goal: int, translated: Callable[[bytes], Iterable[bytes]]) -> None:
    """Pass on what comes until it ends."""
    stream = MessageStream()
    while chunk := os.read(source, _CHUNK):
        for message in stream.fed(chunk):
            _send_all(goal, translated(message))
    _send_all(goal, [stream.rest()])


def _send_all(goal: int, messages: Iterable[bytes]) -> None:
    for message in messages:
        left = memoryview(message)
        while left:
            left = left[os.write(goal, left) :]
