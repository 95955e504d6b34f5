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
    control = _check_stopped(sink, in_force)
    mode = RamMode(ram_sink.CONTROL.get(control, "trRamMode"))
    start = read_address(sink, ram_sink.START_LOW, ram_sink.START_HIGH, mode)
    limit = read_address(sink, ram_sink.LIMIT_LOW, ram_sink.LIMIT_HIGH, mode)
    end = limit + (in_force.access_bytes if in_force else access_bytes(sink))
    low = sink.read(ram_sink.WP_LOW)
    pointer = low & WORD_MASK | (sink.read(ram_sink.WP_HIGH) << 32 if mode is RamMode.SMEM else 0)
    wrapped = bool(ram_sink.WP_LOW.get(low, "trRamWrap"))
    _check_stopped(sink, in_force)  # what was read may come from a sink in reset, or from nobody
    _check_buffer(sink, in_force, mode, (start, pointer, end))
    pieces = [(pointer, end), (start, pointer)] if wrapped else [(start, pointer)]
    if mode is RamMode.SRAM and (start, end) in pieces:
        middle = start + (end - start) // 8 * 4
        pieces = [(start, middle), (middle, end)]  # of all at once it could not be told that the read pointer moves
    return _read_pieces(sink, mode, [piece for piece in pieces if piece[0] < piece[1]], wrapped, (start, end), progress)


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


def _check_buffer(sink: Component, in_force: SinkInForce | None, mode: RamMode, found: tuple[int, int, int]) -> None:
    """*found*: Start, the write pointer, and the end of the buffer."""
    start, pointer, end = found
    if in_force and (in_force.mode, in_force.start, in_force.end) != (mode, start, end):
        its = f"its buffer is {start:#x} to {end:#x} of {mode.name}"
        text = f"{its}, it was set to {in_force.start:#x} to {in_force.end:#x} of {in_force.mode.name}: it was reset"
        raise SinkNotReadable(sink.name, sink.base, f"{text}, or set by somebody else; start the trace anew")
    if not start <= pointer <= end:
        text = f"its write pointer {pointer:#x} is outside the buffer {start:#x} to {end:#x}"
        raise SinkNotReadable(sink.name, sink.base, f"{text}: was it reset while tracing? start the trace anew")


def _read_pieces(
    sink: Component,
    mode: RamMode,
    pieces: list[tuple[int, int]],
    wrapped: bool,
    buffer: tuple[int, int],
    progress: Progress,
) -> Drained:
    """*buffer*: where it starts and ends."""
    total = sum(end - start for start, end in pieces)
    data = bytearray()
    read = _read_sram if mode is RamMode.SRAM else _read_memory
    for start, end in pieces:
        try:
            data += read(sink, start, end, buffer, _shifted(progress, len(data), total))
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


def _read_memory(sink: Component, start: int, end: int, _buffer: tuple[int, int], progress: Progress) -> bytes:
    return sink.target.read_block(start, end - start, progress)


def _read_sram(sink: Component, start: int, end: int, buffer: tuple[int, int], progress: Progress) -> bytes:
    """By the read pointer, which goes on by itself, and at the end of the buffer to its start."""
    pointer = write_address(sink, ram_sink.RP_LOW, ram_sink.RP_HIGH, start, RamMode.SRAM)
    if pointer != start:
        raise _Unread(f"trRamRP reads {pointer:#x} after {start:#x} was written: its SRAM cannot be read")
    data = _read_data_port(sink, end - start, progress)
    pointer = sink.read(ram_sink.RP_LOW) & WORD_MASK
    if pointer != end and (end, pointer) != (buffer[1], buffer[0]):
        text = f"trRamRP reads {pointer:#x} after {end - start} bytes from {start:#x} on were read, not {end:#x}"
        raise _Unread(f"{text}: it was reset, or does not go on to the next word", _without_repeats(data))
    return data


class _Unread(RvtraceError):
    """The registers of a sink say that what was read of its SRAM, but for *partial*, is none of it."""

    def __init__(self, text: str, partial: bytes = b"") -> None:
        self.partial = partial
        super().__init__(text)


def _without_repeats(data: bytes) -> bytes:
    """What came before something that no longer answers: it reads the same over and over."""
    last = data[-4:]
    while data and data.endswith(last):
        data = data[:-4]
    return data


def _read_data_port(sink: Component, nbytes: int, progress: Progress) -> bytes:
    address = sink.base + ram_sink.DATA.offset
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
        raise _Unread(str(error), before) from error
