"""A target whose trace buffer is read again and again: only what is new is read from it."""

from rvtrace_gdb.session.link import Link
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent

OVERLAP = 64  # bytes that are read again to be sure that they are the same trace


class Ring:
    """*link*, with what is *known* of the buffer at *start*; the caller forgets it when the buffer wraps."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.start = 0
        self.known = b""

    def read32(self, address: int) -> int:
        return self._link.read32(address)

    def write32(self, address: int, value: int) -> None:
        self._link.write32(address, value)

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        return self._link.read_data_port(address, words, progress)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        """As the link's, but bytes that are known come from memory; an error's `partial` counts them too."""
        known = self.known
        if address != self.start or nbytes < len(known) or len(known) < OVERLAP:
            return self._link.read_block(address, nbytes, progress)
        kept = known[:-OVERLAP]
        try:
            new = self._link.read_block(address + len(kept), nbytes - len(kept), progress)
        except RvtraceError as error:
            _extend(error, kept, nbytes)
            raise
        if not new.startswith(known[-OVERLAP:]):
            return self._link.read_block(address, nbytes, progress)
        return kept + new


def _extend(error: RvtraceError, kept: bytes, nbytes: int) -> None:
    """Account in a transport's error for the bytes that did not have to be read."""
    if hasattr(error, "partial"):
        error.partial = kept + error.partial
    if hasattr(error, "wanted"):
        error.wanted = nbytes
