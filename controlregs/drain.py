"""Reading the trace out of a RAM sink that was stopped.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, section on the RAM sink (trRam*).
"""

from functools import partial

from rvtrace_gdb.controlregs import ram_sink
from rvtrace_gdb.controlregs.buffer import WORD_MASK, access_bytes, read_address, write_address
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SinkNotReadable
from rvtrace_gdb.controlregs.pieces import Drained, Unread, check_buffer, oldest_first, read_pieces, read_port
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.support.progress import Progress, silent


def drain(sink: Component, in_force: SinkInForce | None = None, progress: Progress = silent) -> Drained:
    """All trace in the buffer, oldest first. The sink must have been stopped (`flow.stop`); it is not changed.

    *in_force* is what configuring the sink returned; without it the access width is probed anew. May be repeated.
    Raises SinkNotReadable, DrainFailed (with the bytes read so far), ComponentAccess, Cancelled.
    """
    control = _check_stopped(sink, in_force)
    mode = RamMode(ram_sink.CONTROL.get(control, "trRamMode"))
    start = read_address(sink, ram_sink.START_LOW, ram_sink.START_HIGH, mode)
    limit = read_address(sink, ram_sink.LIMIT_LOW, ram_sink.LIMIT_HIGH, mode)
    end = limit + (in_force.access_bytes if in_force else access_bytes(sink))
    low = sink.read(ram_sink.WP_LOW)
    pointer = low & WORD_MASK | (sink.read(ram_sink.WP_HIGH) << 32 if mode is RamMode.SMEM else 0)
    wrapped = bool(ram_sink.WP_LOW.get(low, "trRamWrap"))
    _check_stopped(sink, in_force)  # what was read may come from a sink in reset, or from nobody
    check_buffer(sink, in_force, mode, (start, pointer, end))
    pieces = oldest_first(mode, (start, end), pointer, wrapped=wrapped)
    read = partial(_read_sram, sink, (start, end)) if mode is RamMode.SRAM else sink.target.read_block
    return Drained(read_pieces(sink, read, pieces, wrapped=wrapped, progress=progress), wrapped)


def _check_stopped(sink: Component, in_force: SinkInForce | None) -> int:
    control = sink.read_control()
    if not ram_sink.CONTROL.get(control, "trRamActive"):
        in_memory = in_force is not None and in_force.mode is RamMode.SMEM
        lost = "where its trace ends is not known any more" if in_memory else "its trace is lost"
        text = f"is in reset, {lost} (trRamControl reads {control:#010x}); start the trace anew"
        raise SinkNotReadable(sink.name, sink.base, text)
    if ram_sink.CONTROL.get(control, "trRamEnable"):
        raise SinkNotReadable(sink.name, sink.base, "is still storing trace; stop the trace first")
    return control


def _read_sram(sink: Component, buffer: tuple[int, int], start: int, nbytes: int, progress: Progress) -> bytes:
    """By the read pointer, which goes on by itself, and at the end of the buffer to its start."""
    end = start + nbytes
    pointer = write_address(sink, ram_sink.RP_LOW, ram_sink.RP_HIGH, start, RamMode.SRAM)
    if pointer != start:
        raise Unread(f"trRamRP reads {pointer:#x} after {start:#x} was written: its SRAM cannot be read")
    data = read_port(sink, sink.base + ram_sink.DATA.offset, nbytes, progress)
    pointer = sink.read(ram_sink.RP_LOW) & WORD_MASK
    if pointer != end and (end, pointer) != (buffer[1], buffer[0]):
        text = f"trRamRP reads {pointer:#x} after {nbytes} bytes from {start:#x} on were read, not {end:#x}"
        raise Unread(f"{text}: it was reset, or does not go on to the next word", _without_repeats(data))
    return data


def _without_repeats(data: bytes) -> bytes:
    """What came before something that no longer answers: it reads the same over and over."""
    last = data[-4:]
    while data and data.endswith(last):
        data = data[:-4]
    return data
