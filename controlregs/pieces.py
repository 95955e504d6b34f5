"""What is the same in reading out RAM sinks of all versions: the pieces of a buffer, oldest first, and what goes wrong.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, section on the RAM sink (trRam*).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import DrainFailed, SinkNotReadable
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.target import DataPort
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.progress import Progress

PROGRESS_STEP = 256  # bytes read word by word between two calls of the progress watcher
Read = Callable[[int, int, Progress], bytes]
"""Of a piece: its first address, how many bytes, and who watches."""


@dataclass(frozen=True)
class Drained:
    """The bytes of a buffer, oldest first; *wrapped*: older ones were overwritten, so the first message may be cut."""

    data: bytes
    wrapped: bool


class Unread(RvtraceError):
    """The registers of a sink say that what was read of its SRAM, but for *partial*, is none of it."""

    def __init__(self, text: str, partial: bytes = b"") -> None:
        self.partial = partial
        super().__init__(text)


def check_buffer(sink: Component, in_force: SinkInForce | None, mode: RamMode, found: tuple[int, int, int]) -> None:
    """*found*: where the buffer starts, the write pointer, and the end of the buffer. Raises SinkNotReadable."""
    start, pointer, end = found
    if in_force and (in_force.mode, in_force.start, in_force.end) != (mode, start, end):
        its = f"its buffer is {start:#x} to {end:#x} of {mode.name}"
        text = f"{its}, it was set to {in_force.start:#x} to {in_force.end:#x} of {in_force.mode.name}: it was reset"
        raise SinkNotReadable(sink.name, sink.base, f"{text}, or set by somebody else; start the trace anew")
    if not start <= pointer <= end:
        text = f"its write pointer {pointer:#x} is outside the buffer {start:#x} to {end:#x}"
        raise SinkNotReadable(sink.name, sink.base, f"{text}: was it reset while tracing? start the trace anew")


def oldest_first(mode: RamMode, buffer: tuple[int, int], pointer: int, *, wrapped: bool) -> list[tuple[int, int]]:
    """The pieces of *buffer*, (first address, end), that hold trace; *pointer*: where the next word would be stored."""
    start, end = buffer
    pieces = [(pointer, end), (start, pointer)] if wrapped else [(start, pointer)]
    if mode is RamMode.SRAM and buffer in pieces:
        middle = start + (end - start) // 8 * 4
        pieces = [(start, middle), (middle, end)]  # of all at once it could not be told that the read pointer moves
    return [piece for piece in pieces if piece[0] < piece[1]]


def read_pieces(
    sink: Component, read: Read, pieces: Sequence[tuple[int, int]], *, wrapped: bool, progress: Progress
) -> bytes:
    """All of them, one after the other. Raises DrainFailed with what was read, SinkNotReadable, Cancelled."""
    total = sum(end - start for start, end in pieces)
    data = bytearray()
    for start, end in pieces:
        try:
            data += read(start, end - start, _shifted(progress, len(data), total))
        except (Cancelled, SinkNotReadable):
            raise
        except RvtraceError as error:
            data += getattr(error, "partial", b"")
            raise DrainFailed(sink.name, sink.base, bytes(data), total, wrapped, error) from error
    return bytes(data)


def _shifted(progress: Progress, before: int, whole: int) -> Progress:
    """The progress of one piece as progress of the whole."""

    def watch(label: str, done: int, total: int | None = None) -> None:
        progress("reading trace", before + done, whole)

    return watch


def read_port(sink: Component, address: int, nbytes: int, progress: Progress) -> bytes:
    """*nbytes* by as many reads of the word at *address* as it takes. Raises Unread, and what the transport raises."""
    if isinstance(sink.target, DataPort):
        return sink.target.read_data_port(address, nbytes // 4, progress)
    data = bytearray()
    while len(data) < nbytes:
        if len(data) % PROGRESS_STEP == 0:
            progress("reading trace", len(data), nbytes)
        data += _read_word(sink, address, bytes(data))
    return bytes(data)


def _read_word(sink: Component, address: int, before: bytes) -> bytes:
    try:
        return sink.target.read32(address).to_bytes(4, "little")
    except RvtraceError as error:
        raise Unread(str(error), before) from error
