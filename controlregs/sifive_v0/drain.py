"""Reading the trace out of a RAM sink inside of an encoder or a funnel of version 0 that was stopped.

Ref: see the package; scripts (writeSRAM, writeSBA): without wrap from Base to the write pointer, with it first what
is behind the write pointer. teSinkRP is set anew for each stretch, for no source says where it goes from Limit.
"""

from functools import partial

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SinkNotReadable
from rvtrace_gdb.controlregs.pieces import Drained, check_buffer, oldest_first, read_pieces, read_port
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.sifive_v0 import sinks
from rvtrace_gdb.controlregs.sifive_v0.in_force import SinkInForce as InForce
from rvtrace_gdb.controlregs.sifive_v0.memory import WORD_MASK, probed
from rvtrace_gdb.support.progress import Progress, silent

_HIGH = 32


def place(sink: Component) -> tuple[int, int, int, bool]:
    """First address of its buffer, address of the last word, write pointer, and whether that has wrapped; read now."""
    high = sink.read(sinks.BASE_HIGH) << _HIGH
    start, limit = (high | sink.read(register) & WORD_MASK for register in (sinks.BASE, sinks.LIMIT))
    low = sink.read(sinks.WP)
    return start, limit, high | low & WORD_MASK, bool(sinks.WP.get(low, "teSinkWrapped"))


def drain(sink: Component, kind: str, in_force: SinkInForce | None = None, progress: Progress = silent) -> Drained:
    """All trace in the buffer, oldest first. What the sink is inside of (*kind*: "encoder", "funnel") must have been
    stopped; the sink is not changed.

    *in_force* is what configuring the sink returned; without it the width of its words, and the size of SRAM, are found
    out anew. May be repeated.
    Raises SinkNotReadable, DrainFailed (with the bytes read so far), ComponentAccess, Cancelled.
    """
    control = _check_stopped(sink)
    mode = InForce(sink.name, sink.base, control, sink.read(sink.block.impl), 0, 0, 0, host=kind).mode
    start, limit, pointer, wrapped = place(sink)
    if in_force is None:
        last, width = probed(sink, in_memory=mode is RamMode.SMEM)
    else:
        last, width = in_force.limit, in_force.access_bytes
    end = (limit if mode is RamMode.SMEM else last) + width  # SRAM may have no teSinkLimit
    _check_stopped(sink)  # what was read may come from a sink in reset, or from nobody
    check_buffer(sink, in_force, mode, (start, pointer, end))
    pieces = oldest_first(mode, (start, end), pointer, wrapped=wrapped)
    read = partial(_read_sram, sink) if mode is RamMode.SRAM else sink.target.read_block
    return Drained(read_pieces(sink, read, pieces, wrapped=wrapped, progress=progress), wrapped)


def _check_stopped(sink: Component) -> int:
    block = sink.block
    control = sink.read_control()
    if not block.control.get(control, block.prefix + "Active"):
        text = f"is in reset, its trace is lost ({block.control.name} reads {control:#010x}); start the trace anew"
        raise SinkNotReadable(sink.name, sink.base, text)
    if block.control.get(control, block.prefix + "Enable"):
        raise SinkNotReadable(sink.name, sink.base, "is still storing trace; stop the trace first")
    return control


def _read_sram(sink: Component, start: int, nbytes: int, progress: Progress) -> bytes:
    pointer = sink.write(sinks.RP, start)
    if pointer != start:
        text = f"teSinkRP reads {pointer:#x} after {start:#x} was written: its SRAM cannot be read"
        raise SinkNotReadable(sink.name, sink.base, text)
    data = read_port(sink, sink.base + sinks.DATA.offset, nbytes, progress)
    if sink.read(sinks.RP) == start:
        text = f"teSinkRP stays {start:#x} while teSinkData is read: its SRAM cannot be read"
        raise SinkNotReadable(sink.name, sink.base, text)
    _check_stopped(sink)  # the words, too, may come from a sink in reset, or from nobody
    return data
