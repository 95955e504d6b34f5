"""The TUI window that shows the history: `layout trace`."""

from __future__ import annotations

from typing import Callable

COMMANDS: tuple[Callable[[], object], ...] = ()
"""What is called when rvtrace is loaded, in order."""
