"""What the user is typing at gdb's prompt: gdb does not say that, but the readline library that it uses does.

A command that gdb executes on its own would throw away a line that is half typed. And while gdb shows its prompt it
does not wait for what Python resumes. So a command is entered here as if the user had typed it, and only at an empty
prompt. Where gdb's readline cannot be reached, because gdb has it inside, nothing is known and nothing is entered.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import gdb

_WAITING = 0x80000
"""The bit of readline's state for: keys go to a callback, so gdb waits for them."""
_BUSY = 0x30 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x4000 | 0x8000 | 0x100000 | 0x200000 | 0x800000
"""In the middle of a key sequence, a search, an argument, a macro, a completion, a signal, a motion."""


def is_empty() -> bool:
    """Whether gdb waits at its own prompt on a terminal, and nothing is typed there; False if that is not known."""
    with contextlib.suppress(ValueError, AttributeError, OSError, ImportError):
        if os.isatty(0) and not _variable("c_int", "rl_end"):
            state = _variable("c_int", "rl_readline_state")
            prompt = os.fsencode(str(gdb.parameter("prompt")))
            is_waiting = state & _WAITING and not state & _BUSY
            return bool(is_waiting) and _variable("c_char_p", "rl_prompt") == prompt
    return False


def enter(command: str) -> None:
    """Type a command and the Enter key. Call it only where `is_empty` is true."""
    import ctypes  # each start of gdb would load it

    library = _library()
    library.rl_insert_text(command.encode())
    ctypes.CFUNCTYPE(None)(_variable("c_void_p", "rl_redisplay_function"))()  # gdb's text user interface has its own
    library.rl_stuff_char(ord("\n"))
    library.rl_callback_read_char()


def _variable(kind: str, name: str) -> Any:
    """Return a variable of readline. Raises ValueError if there is none."""
    import ctypes

    return getattr(ctypes, kind).in_dll(_library(), name).value


def _library() -> Any:
    import ctypes

    return ctypes.CDLL(None)
