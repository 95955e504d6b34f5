"""Commands of the machine interface: `-rvtrace-history` and others, for IDEs."""

from __future__ import annotations

from typing import Callable

COMMANDS: tuple[Callable[[], object], ...] = ()
"""What is called when rvtrace is loaded, in order."""
