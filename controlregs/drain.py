"""Reading the trace out of a RAM sink that was stopped.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, section on the RAM sink (trRam*).
"""

from dataclasses import dataclass

from controlregs import ram_sink
from controlregs.buffer import WORD_MASK, access_bytes, read_address, write_address
from controlregs.component import Component
from controlregs.errors import DrainFailed, SinkNotReadable
from controlregs.ram_sink import RamMode
from controlregs.request import SinkInForce
from controlregs.target import DataPort
from support.errors import Cancelled, RvtraceError
from support.progress import Progress, silent

PROGRESS_STEP = 256  # bytes read word by word between two calls of the progress watcher


@dataclass(frozen=True)
class Drained:
    """The bytes of a buffer, oldest first; *wrapped*: older ones were overwritten, so the first message may be cut."""

    data: bytes
    wrapped: bool


def drain(sink: Component, in_force: SinkInForce | None = None, progress: Progress = silent) -> Drained:
    """All trace in the buffer, oldest first. The sink must have been stopped (procedures.stop); it is not changed.

    *in_force* is what configuring the sink returned; without it the access width is probed anew. May be repeated.
    Raises SinkNotReadable, DrainFailed (with the bytes read so far), ComponentAccess, Cancelled.
    """
    control = _check_stopped(sink)
    start = read_address(sink, ram_sink.START_LOW, ram_sink.START_HIGH)
    limit = read_address(sink, ram_sink.LIMIT_LOW, ram_sink.LIMIT_HIGH)
    end = limit + (in_force.access_bytes if in_force else access_bytes(sink))
    low = sink.read(ram_sink.WP_LOW)
    pointer = sink.read(ram_sink.WP_HIGH) << 32 | low & WORD_MASK
    wrapped = bool(ram_sink.WP_LOW.get(low, "trRamWrap"))
    if not start <= pointer <= end:
        raise SinkNotReadable(
            sink.name,
            sink.base,
            f"its write pointer {pointer:#x} is outside the buffer {start:#x} to {end:#x}: was it reset while tracing? "
            "start the trace anew",
        )
    pieces = [(pointer, end), (start, pointer)] if wrapped else [(start, pointer)]
    mode = RamMode(ram_sink.CONTROL.get(control, "trRamMode"))
    return _read_pieces(sink, mode, [piece for piece in pieces if piece[0] < piece[1]], wrapped, progress)


def _check_stopped(sink: Component) -> int:
    control = sink.read(ram_sink.CONTROL)
    if not ram_sink.CONTROL.get(control, "trRamActive"):
        raise SinkNotReadable(sink.name, sink.base, "is in reset, its trace is lost; start the trace anew")
    if ram_sink.CONTROL.get(control, "trRamEnable"):
        raise SinkNotReadable(sink.name, sink.base, "is still storing trace; stop the trace first")
    return control


def _read_pieces(
    sink: Component, mode: RamMode, pieces: list[tuple[int, int]], wrapped: bool, progress: Progress
) -> Drained:
    total = sum(end - start for start, end in pieces)
    data = bytearray()
    if pieces and mode is RamMode.SRAM:
        _set_read_pointer(sink, pieces[0][0])
        pieces = [(0, total)]  # the read pointer goes from Limit to Start by itself
    for start, end in pieces:
        read = _read_data_port if mode is RamMode.SRAM else _read_memory
        try:
            data += read(sink, start, end - start, _shifted(progress, len(data), total))
        except Cancelled:
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


def _set_read_pointer(sink: Component, address: int) -> None:
    pointer = write_address(sink, ram_sink.RP_LOW, ram_sink.RP_HIGH, address)
    if pointer != address:
        raise SinkNotReadable(
            sink.name, sink.base, f"trRamRP reads {pointer:#x} after {address:#x} was written: its SRAM cannot be read"
        )


def _read_data_port(sink: Component, _start: int, nbytes: int, progress: Progress) -> bytes:
    address = sink.base + ram_sink.DATA.offset
    if isinstance(sink.target, DataPort):
        return sink.target.read_data_port(address, nbytes // 4, progress)
    data = bytearray()
    while len(data) < nbytes:
        if len(data) % PROGRESS_STEP == 0:
            progress("reading trace", len(data), nbytes)
        data += sink.target.read32(address).to_bytes(4, "little")
    return bytes(data)
