"""Decoding that can be interrupted: what was done until then is kept, and asking for the result again goes on there."""

from collections.abc import Callable
from typing import Protocol

from rvtrace_gdb.decode.streams import Streams
from rvtrace_gdb.decode.tandem.decoder import Decoding as TandemDecoding
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress

_PIECE = 1 << 16
"""Bytes decoded between two looks at the progress: some hundredths of a second where nothing repeats."""


class Unfinished(Protocol):
    """The decoding of a whole trace."""

    def result(self, progress: Progress) -> Streams:
        """What it comes to. Raises only what *progress* raises, and can be asked for again then."""
        ...


class StreamDecoder(Protocol):
    """Takes a trace in pieces."""

    def feed(self, data: bytes) -> None: ...
    def finish(self) -> Streams: ...


class Fed:
    """What decodes bytes in the order in which they are given to it. *make*: from the beginning."""

    def __init__(self, data: bytes, make: Callable[[], StreamDecoder]) -> None:
        self._data, self._make = data, make
        self._decoder: StreamDecoder | None = None
        self._done = 0
        self._found: Streams | None = None

    def result(self, progress: Progress) -> Streams:
        """As `Unfinished`."""
        while self._found is None:
            if self._done < len(self._data):
                progress("decoding", self._done, len(self._data))
            try:
                self._found = self._next()
            except BaseException:  # in the middle: out of memory, Ctrl-C in a program that is not the session's
                self._decoder, self._done = None, 0
                raise
        return self._found

    def _next(self) -> Streams | None:
        if self._decoder is None:
            self._decoder = self._make()
        piece = self._data[self._done : self._done + _PIECE]
        if not piece:
            return self._decoder.finish()
        self._decoder.feed(piece)
        self._done += len(piece)
        return None


class OfTandem:
    """A tandem trace: its groups are found, then what each changed, then which instructions these are."""

    def __init__(self, make: Callable[[], TandemDecoding]) -> None:
        self._make = make
        self._decoding: TandemDecoding | None = None
        self._found: Streams | None = None

    def result(self, progress: Progress) -> Streams:
        """As `Unfinished`."""
        if self._found is None:
            try:
                self._decoding = self._decoding or self._make()
                history = self._decoding.result(progress).history
            except RvtraceError:  # Ctrl-C
                raise
            except BaseException:
                self._decoding = None
                raise
            self._found = Streams({0: history}, history.accounting)
        return self._found
