"""`trace connect`, `trace goto`, `trace live`: gdb on the way to the past and back."""

from __future__ import annotations

from typing import Callable

COMMANDS: tuple[Callable[[], object], ...] = ()
"""What is called when rvtrace is loaded, in order."""
