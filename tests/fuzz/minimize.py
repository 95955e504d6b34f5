"""A smaller input that shows the same, as far as that is found in a moment."""

import time
from collections.abc import Callable

_TRIES = 300
_SECONDS = 10.0


def smaller(data: bytes, shows: Callable[[bytes], bool]) -> bytes:
    """*data* with pieces left out, halves first, as long as *shows* says that it still shows what it did."""
    end, tries, size = time.monotonic() + _SECONDS, 0, len(data) // 2
    while size:
        at = 0
        while at < len(data):
            if tries >= _TRIES or time.monotonic() > end:
                return data
            tries += 1
            shorter = data[:at] + data[at + size :]
            if shows(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data
