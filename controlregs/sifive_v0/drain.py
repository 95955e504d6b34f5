"""Reading the trace out of a RAM sink inside of an encoder or a funnel of version 0 that was stopped.

Ref: see the package; scripts (writeSRAM, writeSBA): without wrap from Base to the write pointer, with it first what
is behind the write pointer. teSinkRP is set anew for each stretch, for no source says where it goes from Limit.
"""

from collections.abc import Callable

from controlregs.component import Component
from controlregs.drain import PROGRESS_STEP, Drained
from controlregs.errors import DrainFailed, SinkNotReadable
from controlregs.ram_sink import RamMode
from controlregs.request import SinkInForce
from controlregs.sifive_v0 import sinks
from controlregs.sifive_v0.in_force import SinkInForce as InForce
from controlregs.sifive_v0.memory import WORD_MASK, probed
from controlregs.target import DataPort
from support.errors import Cancelled, RvtraceError
from support.progress import Progress, silent

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
    _check_buffer(sink, in_force, mode, (start, pointer, end))
    pieces = [(pointer, end), (start, pointer)] if wrapped else [(start, pointer)]
    if mode is RamMode.SRAM and (start, end) in pieces:
        middle = start + (end - start) // 8 * 4
        pieces = [(start, middle), (middle, end)]  # of all at once it could not be told that the read pointer moves
    return _read_pieces(sink, mode, [piece for piece in pieces if piece[0] < piece[1]], wrapped, progress)


def _check_stopped(sink: Component) -> int:
    block = sink.block
    control = sink.read_control()
    if not block.control.get(control, block.prefix + "Active"):
        text = f"is in reset, its trace is lost ({block.control.name} reads {control:#010x}); start the trace anew"
        raise SinkNotReadable(sink.name, sink.base, text)
    if block.control.get(control, block.prefix + "Enable"):
        raise SinkNotReadable(sink.name, sink.base, "is still storing trace; stop the trace first")
    return control


def _check_buffer(sink: Component, in_force: SinkInForce | None, mode: RamMode, found: tuple[int, int, int]) -> None:
    """*found*: Base, the write pointer, and the end of the buffer."""
    start, pointer, end = found
    if in_force and (in_force.mode, in_force.start, in_force.end) != (mode, start, end):
        its = f"its buffer is {start:#x} to {end:#x} of {mode.name}"
        text = f"{its}, it was set to {in_force.start:#x} to {in_force.end:#x} of {in_force.mode.name}: it was reset"
        raise SinkNotReadable(sink.name, sink.base, f"{text}, or set by somebody else; start the trace anew")
    if not start <= pointer <= end:
        text = f"its write pointer {pointer:#x} is outside the buffer {start:#x} to {end:#x}"
        raise SinkNotReadable(sink.name, sink.base, f"{text}: was it reset while tracing? start the trace anew")


def _read_pieces(
    sink: Component, mode: RamMode, pieces: list[tuple[int, int]], wrapped: bool, progress: Progress
) -> Drained:
    total = sum(end - start for start, end in pieces)
    data = bytearray()
    read = _read_data_port if mode is RamMode.SRAM else _read_memory
    for start, end in pieces:
        try:
            data += read(sink, start, end - start, _shifted(progress, len(data), total))
        except (Cancelled, SinkNotReadable):
            raise
        except RvtraceError as error:
            data += getattr(error, "partial", b"")
            raise DrainFailed(sink.name, sink.base, bytes(data), total, wrapped, error) from error
    return Drained(bytes(data), wrapped)


def _shifted(progress: Progress, before: int, whole: int) -> Progress:
    """The progress of one piece as progress of the whole."""

    def watch(label: str, done: int, total: int | None = None) -> None:
        progress("reading trace", before + done, whole)

    return watch


def _read_memory(sink: Component, start: int, nbytes: int, progress: Progress) -> bytes:
    return sink.target.read_block(start, nbytes, progress)


def _read_data_port(sink: Component, start: int, nbytes: int, progress: Progress) -> bytes:
    pointer = sink.write(sinks.RP, start)
    if pointer != start:
        text = f"teSinkRP reads {pointer:#x} after {start:#x} was written: its SRAM cannot be read"
        raise SinkNotReadable(sink.name, sink.base, text)
    address = sink.base + sinks.DATA.offset
    if isinstance(sink.target, DataPort):
        data = sink.target.read_data_port(address, nbytes // 4, progress)
    else:
        data = _word_by_word(lambda: sink.target.read32(address), nbytes, progress)
    if sink.read(sinks.RP) == start:
        text = f"teSinkRP stays {start:#x} while teSinkData is read: its SRAM cannot be read"
        raise SinkNotReadable(sink.name, sink.base, text)
    _check_stopped(sink)  # the words, too, may come from a sink in reset, or from nobody
    return data


def _word_by_word(read: Callable[[], int], nbytes: int, progress: Progress) -> bytes:
    data = bytearray()
    while len(data) < nbytes:
        if len(data) % PROGRESS_STEP == 0:
            progress("reading trace", len(data), nbytes)
        try:
            data += read().to_bytes(4, "little")
        except RvtraceError as error:
            error.partial = bytes(data)  # type: ignore[attr-defined]
            raise
    return bytes(data)
