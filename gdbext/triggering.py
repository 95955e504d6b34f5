"""Where `trace start` is to switch and mark the trace: addresses of the places that the user named."""

from __future__ import annotations

from typing import Any

from rvtrace_gdb.gdbext import filtering

_KEYS = ("trigger_on", "trigger_off", "trigger_notify")


def resolved(options: dict[str, Any]) -> dict[str, Any]:
    """The options with addresses in place of the texts of -trigger-on, -off and -notify. Raises gdb.GdbError."""
    found = dict(options)
    for key in _KEYS:
        if key in options:
            texts = [text for one in options[key] for text in filtering.COMMA.split(one)]
            found[key] = [it for text in texts for it in filtering.asked(key, text, filtering.addresses)]
    return found
