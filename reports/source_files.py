"""The source files that debug information names. It may name anything: a device, a pipe, a file that is gone."""

from pathlib import Path

MOST_BYTES = 1 << 26
"""No source file is longer; what is, is data."""


def source_file(path: str, most: int = MOST_BYTES) -> bytes | None:
    """Return the content of a source file; None if it cannot be read, is no ordinary file, or has more than *most*
    bytes.
    """
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > most:
            return None
        return file.read_bytes()
    except (OSError, ValueError):
        return None
