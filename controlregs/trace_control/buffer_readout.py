"""Reading the trace out of a RAM sink that was stopped.

`drain` reads a sink of interface 1.0. The other functions serve sinks of all versions: they compute which pieces of a
buffer hold trace, oldest first, and read them.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, section on the RAM sink (trRam*).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import DrainCancelled, DrainFailed, SinkNotReadable
from rvtrace_gdb.controlregs.target import BurstPort, DataPort
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.funnels_and_sinks import WORD_MASK, access_bytes, read_address, write_address
from rvtrace_gdb.controlregs.trace_control.request import SinkSettings
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent

PROGRESS_STEP = 256  # bytes read word by word between two calls of the progress watcher
PieceReader = Callable[[int, int, Progress], bytes]
"""Reads a piece, given its first address, its size in bytes, and the progress callback."""


@dataclass(frozen=True)
class DrainedBuffer:
    """The bytes of a buffer, oldest first. *wrapped*: older bytes were overwritten, so the first message may be
    incomplete.
    """

    data: bytes
    wrapped: bool


class SramUnreadable(RvtraceError):
    """The registers of a sink show that what was read is not the content of its SRAM, except for *partial*."""

    def __init__(self, text: str, partial: bytes = b"") -> None:
        self.partial = partial
        super().__init__(text)


def check_buffer(sink: Component, in_force: SinkSettings | None, mode: RamMode, pointers: tuple[int, int, int]) -> None:
    """Raise SinkNotReadable unless the buffer is as configured. *pointers*: its start, the write pointer, and its
    end.
    """
    start, pointer, end = pointers
    if in_force and (in_force.mode, in_force.start, in_force.end) != (mode, start, end):
        its = f"its buffer is {start:#x} to {end:#x} of {mode.name}"
        text = f"{its}, it was set to {in_force.start:#x} to {in_force.end:#x} of {in_force.mode.name}: it was reset"
        raise SinkNotReadable(sink.name, sink.base, f"{text}, or set by other software; start the trace again")
    if not start <= pointer <= end:
        text = f"its write pointer {pointer:#x} is outside the buffer {start:#x} to {end:#x}"
        raise SinkNotReadable(sink.name, sink.base, f"{text}: was it reset while tracing? start the trace again")


def pieces_oldest_first(
    mode: RamMode, buffer: tuple[int, int], pointer: int, *, wrapped: bool
) -> list[tuple[int, int]]:
    """Return the pieces of *buffer*, (first address, end), that hold trace. *pointer*: the address of the next word to
    be stored.
    """
    start, end = buffer
    pieces = [(pointer, end), (start, pointer)] if wrapped else [(start, pointer)]
    if mode is RamMode.SRAM and buffer in pieces:
        middle = start + (end - start) // 8 * 4
        pieces = [(start, middle), (middle, end)]  # one piece would not show whether the read pointer moves
    return [piece for piece in pieces if piece[0] < piece[1]]


def read_pieces(
    sink: Component, read: PieceReader, pieces: Sequence[tuple[int, int]], *, wrapped: bool, progress: Progress
) -> bytes:
    """Read all pieces and return them joined. Raises DrainFailed and DrainCancelled with the bytes read so far,
    SinkNotReadable.
    """
    total = sum(end - start for start, end in pieces)
    data = bytearray()
    for start, end in pieces:
        try:
            data += read(start, end - start, _shifted(progress, len(data), total))
        except Cancelled as error:
            raise DrainCancelled(sink.name, bytes(data) + error.partial, total, wrapped) from error
        except SinkNotReadable:
            raise
        except RvtraceError as error:
            data += getattr(error, "partial", b"")
            raise DrainFailed(sink.name, sink.base, bytes(data), total, wrapped, error) from error
    return bytes(data)


def _shifted(progress: Progress, before: int, content: int) -> Progress:
    """Return a progress callback for one piece that reports the progress of the whole."""

    def watch(label: str, done: int, total: int | None = None) -> None:
        progress("reading trace", before + done, content)

    return watch


def read_through_port(
    sink: Component,
    address: int,
    nbytes: int,
    progress: Progress,
    rewind: Callable[[], None],
    is_read: Callable[[], bool],
) -> bytes:
    """Read *nbytes* from the register at *address*, which has the next word each time it is read.

    *rewind* sets the sink to the first word. *is_read*: whether it is behind the last one now: if not, reads that were
    made faster have failed, and all are made again, one by one. Raises as `read_port` and *rewind*.
    """
    rewind()
    if isinstance(sink.target, BurstPort):
        data = sink.target.read_port_burst(address, nbytes // 4, progress)
        if data is not None and is_read():
            return data
        rewind()
    return read_port(sink, address, nbytes, progress)


def read_port(sink: Component, address: int, nbytes: int, progress: Progress) -> bytes:
    """Read *nbytes* by repeated reads of the word at *address*. Raises SramUnreadable and the transport's errors."""
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
        raise SramUnreadable(str(error), before) from error


def drain(sink: Component, in_force: SinkSettings | None = None, progress: Progress = silent) -> DrainedBuffer:
    """Return all trace in the buffer, oldest first. The sink must have been stopped (`procedures.stop`); it is not
    changed.

    *in_force* is the result of configuring the sink; without it the access width is probed again. The call may be
    repeated. Raises SinkNotReadable, DrainFailed (with the bytes read so far), ComponentAccess, Cancelled.
    """
    control = _check_stopped(sink, in_force)
    mode = RamMode(component_registers.RAM_CONTROL.get(control, "trRamMode"))
    start = read_address(sink, component_registers.RAM_START_LOW, component_registers.RAM_START_HIGH, mode)
    limit = read_address(sink, component_registers.RAM_LIMIT_LOW, component_registers.RAM_LIMIT_HIGH, mode)
    end = limit + (in_force.access_bytes if in_force else access_bytes(sink))
    low = sink.read(component_registers.RAM_WP_LOW)
    pointer = low & WORD_MASK | (sink.read(component_registers.RAM_WP_HIGH) << 32 if mode is RamMode.SMEM else 0)
    wrapped = bool(component_registers.RAM_WP_LOW.get(low, "trRamWrap"))
    _check_stopped(sink, in_force)  # what was read may be that of a sink in reset, or of none
    check_buffer(sink, in_force, mode, (start, pointer, end))
    pieces = pieces_oldest_first(mode, (start, end), pointer, wrapped=wrapped)
    read = partial(_read_sram, sink, (start, end)) if mode is RamMode.SRAM else sink.target.read_block
    return DrainedBuffer(read_pieces(sink, read, pieces, wrapped=wrapped, progress=progress), wrapped)


def _check_stopped(sink: Component, in_force: SinkSettings | None) -> int:
    control = sink.read_control()
    if not component_registers.RAM_CONTROL.get(control, "trRamActive"):
        in_memory = in_force is not None and in_force.mode is RamMode.SMEM
        lost = "the end of its trace is no longer known" if in_memory else "its trace is lost"
        text = f"is in reset, {lost} (trRamControl reads {control:#010x}); start the trace again"
        raise SinkNotReadable(sink.name, sink.base, text)
    if component_registers.RAM_CONTROL.get(control, "trRamEnable"):
        raise SinkNotReadable(sink.name, sink.base, "is still storing trace; stop the trace first")
    return control


def _rewind(sink: Component, start: int) -> None:
    """Let the read pointer be *start*. Raises SramUnreadable."""
    pointer = write_address(sink, component_registers.RAM_RP_LOW, component_registers.RAM_RP_HIGH, start, RamMode.SRAM)
    if pointer != start:
        raise SramUnreadable(f"trRamRP reads {pointer:#x} after {start:#x} was written: its SRAM cannot be read")


def _read_sram(sink: Component, buffer: tuple[int, int], start: int, nbytes: int, progress: Progress) -> bytes:
    """Read through the read pointer, which advances by itself and wraps at the end of the buffer."""
    end = start + nbytes
    ends = (end, buffer[0]) if end == buffer[1] else (end,)

    def pointer_now() -> int:
        return sink.read(component_registers.RAM_RP_LOW) & WORD_MASK

    port = sink.base + component_registers.RAM_DATA.offset
    data = read_through_port(sink, port, nbytes, progress, partial(_rewind, sink, start), lambda: pointer_now() in ends)
    pointer = pointer_now()
    if pointer not in ends:
        text = f"trRamRP reads {pointer:#x} after {nbytes} bytes from {start:#x} on were read, not {end:#x}"
        raise SramUnreadable(f"{text}: it was reset, or does not advance to the next word", _without_repeats(data))
    return data


def _without_repeats(data: bytes) -> bytes:
    """Drop the repeated words at the end: a component that no longer answers reads as the same word every time."""
    last = data[-4:]
    while data and data.endswith(last):
        data = data[:-4]
    return data
