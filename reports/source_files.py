"""The source files that debug information names. It may name anything: a device, a pipe, a file that is gone."""

from rvtrace_gdb.support.inputs import read_input, size_of_file, stand_in

MOST_BYTES = 1 << 26
"""No source file is longer; what is, is data."""


def source_file(path: str, most: int = MOST_BYTES) -> bytes | None:
    """Return the content of a source file; None if it cannot be read, is no ordinary file, or has more than *most*
    bytes.
    """
    path = stand_in(path)
    try:
        size = size_of_file(path)
        return None if size is None or size > most else read_input(path)
    except (OSError, ValueError):
        return None
