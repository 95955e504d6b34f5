"""`trace native`: the trace as gdb's own `record btrace`."""

from __future__ import annotations

from typing import Callable

COMMANDS: tuple[Callable[[], object], ...] = ()
"""What is called when rvtrace is loaded, in order."""
