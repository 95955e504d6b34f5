"""Waiting for what a test needs, not for a time: a machine may have much else to do."""

import time
from collections.abc import Callable

PATIENCE = 60
"""Seconds that nothing here takes on a machine that has anything else to do."""


def until(condition: Callable[[], object], what: str = "what is waited for") -> None:
    """Wait for it. Raises AssertionError, with *what* it is, if it does not come."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE} s: {what}"
        time.sleep(0.005)
