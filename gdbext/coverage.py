"""`trace coverage`, and `disassemble` with how often each instruction ran."""

from __future__ import annotations

from typing import Callable

COMMANDS: tuple[Callable[[], object], ...] = ()
"""What is called when rvtrace is loaded, in order."""
