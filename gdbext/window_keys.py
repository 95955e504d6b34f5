"""Keys for going backward, beside those of gdb's TUI SingleKey mode (C-x s): capital letters.

gdb has no way to bind keys from Python. But its readline keeps the SingleKey keys under a name (readline >= 8), and
where gdb uses the system's readline library this can be reached, as an inputrc file reaches it. Elsewhere there is
examples/gdb.inputrc.
"""

from __future__ import annotations

import ctypes
from typing import Any

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


def bind() -> bool:
    """Bind the keys, but for those that somebody has bound already. False: that is not possible with this gdb."""
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
            # The blank is no key of its own: it leads to the prompt, where the rest is typed.
            macro(key.encode(), f" {command}\\r".encode(), ctypes.c_void_p(keymap))
    return True


def _is_taken(bound: Any, key: str, keymap: int) -> bool:
    """Whether a key does something else than others that mean nothing: than the blank does."""
    bound.restype = ctypes.c_void_p
    kinds = ctypes.c_int(), ctypes.c_int()
    functions = [
        bound(text.encode(), ctypes.c_void_p(keymap), ctypes.byref(kind)) for text, kind in zip((key, " "), kinds)
    ]
    return functions[0] != functions[1] or kinds[0].value != kinds[1].value
