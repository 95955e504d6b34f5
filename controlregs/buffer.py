"""The RAM sink's buffer: finding out what it can be, and setting it.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, section on the RAM sink (trRam*).
"""

from rvtrace_gdb.controlregs import ram_sink
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import BufferRefused, SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import SinkInForce, TraceRequest

SRAM_ACCESS_BYTES = 4
WORD_MASK = 0xFFFF_FFFC
ASYNC_OFTEN_BYTES = 8192  # up to this size of a ring alignment sequences come as often as they can
ASYNC_RAREST = 4


def read_address(sink: Component, low: Register, high: Register, mode: RamMode = RamMode.SMEM) -> int:
    """Its own memory has no addresses of more than 32 bits, whatever is in the high word."""
    if mode is RamMode.SRAM:
        return sink.read(low) & WORD_MASK
    return sink.read(high) << 32 | sink.read(low) & WORD_MASK


def write_address(
    sink: Component, low: Register, high: Register, address: int, mode: RamMode = RamMode.SMEM
) -> int:
    """High word first: writing trRamWPLow last makes the new pointer complete when the wrap flag is cleared."""
    upper = sink.write(high, address >> 32)
    if mode is RamMode.SRAM:
        upper = 0
    return upper << 32 | sink.write(low, address & WORD_MASK) & WORD_MASK


def _lowest_bit(value: int) -> int:
    return value & -value


def default_async_freq(buffer_size: int | None, *, stop_on_wrap: bool) -> int:
    """trRamAsyncFreq for a trace in which packets are found by alignment sequences only (E-Trace encapsulation 1.0).

    No document says how often they come; larger values mean rarer. A buffer that stops when full needs none but to
    go on behind damage.
    """
    if stop_on_wrap:
        return ASYNC_RAREST
    doublings = (buffer_size or 0) // ASYNC_OFTEN_BYTES
    return min(max(doublings.bit_length(), 1), ASYNC_RAREST)


def configure_sink(
    sink: Component, request: TraceRequest, *, aligned: bool = False
) -> tuple[SinkInForce, list[str]]:
    """Set storage mode and buffer of a sink that was just reset, and empty it: pointers at Start, wrap flag clear.

    The sink is never let loose on memory outside [buffer_start, buffer_start + buffer_size).
    *aligned*: the trace needs alignment sequences to be read from the middle.
    Raises SettingRefused, BufferRefused, ComponentAccess, FieldRange.
    """
    mode = _set_mode(sink, request)
    frequency = request.async_freq
    if frequency is None:
        frequency = default_async_freq(request.buffer_size, stop_on_wrap=request.stop_on_wrap) if aligned else 0
    control = sink.set(
        ram_sink.CONTROL, trRamStopOnWrap=int(request.stop_on_wrap), trRamMemFormat=0, trRamAsyncFreq=frequency
    )
    if ram_sink.CONTROL.get(control, "trRamMemFormat"):
        text = f"stores trace in a custom memory format, which cannot be read (trRamControl reads {control:#010x})"
        raise SettingRefused(sink.name, sink.base, text)
    start, limit, access = _set_sram(sink, request) if mode is RamMode.SRAM else _set_smem(sink, request)
    _rewind(sink, mode, start)
    in_force = SinkInForce(sink.name, sink.base, control, sink.read(ram_sink.IMPL), start, limit, access)
    notes = _sink_notes(in_force, request)
    if frequency and not in_force.async_freq and not in_force.stop_on_wrap:
        notes.append(f"{sink.name} inserts no alignment sequences; a buffer that wraps may not be decodable")
    return in_force, notes


def _set_mode(sink: Component, request: TraceRequest) -> RamMode:
    """First of all, because the other registers depend on it. What the mode bit reads back counts, not trRamHasS*."""
    wanted = RamMode.SRAM if request.buffer_start is None else RamMode.SMEM
    control = sink.set(ram_sink.CONTROL, trRamMode=wanted)
    mode = RamMode(ram_sink.CONTROL.get(control, "trRamMode"))
    if mode is RamMode.SMEM and (request.buffer_start is None or request.buffer_size is None):
        text = "stores trace in system memory: give a buffer (start, size) in the target description"
        raise SettingRefused(sink.name, sink.base, f"{text} (trRamControl reads {control:#010x})")
    return mode


def _sink_notes(sink: SinkInForce, request: TraceRequest) -> list[str]:
    notes = []
    if sink.mode is RamMode.SRAM and request.buffer_start is not None:
        notes.append(f"{sink.name} cannot use system memory; using its own SRAM of {sink.size} bytes")
    elif request.buffer_size is not None and sink.size != request.buffer_size:
        notes.append(f"{sink.name}: the buffer has {sink.size} bytes, not {request.buffer_size}")
    if sink.stop_on_wrap != request.stop_on_wrap:
        notes.append(
            f"{sink.name} has no stop-on-wrap; the oldest trace will be overwritten"
            if request.stop_on_wrap
            else f"{sink.name} always stops when the buffer is full"
        )
    return notes


def _set_sram(sink: Component, request: TraceRequest) -> tuple[int, int, int]:
    """Start is usually fixed at 0, Limit fixed or trimmable; trRam*High need not exist."""
    start = write_address(sink, ram_sink.START_LOW, ram_sink.START_HIGH, 0, RamMode.SRAM)
    sink.write(ram_sink.LIMIT_HIGH, 0)  # reset leaves anything in it, if it is there
    limit = sink.write(ram_sink.LIMIT_LOW, 0xFFFF_FFFF) & WORD_MASK
    if request.buffer_size is not None and request.buffer_size < limit + SRAM_ACCESS_BYTES - start:
        last = start + max(request.buffer_size & WORD_MASK, SRAM_ACCESS_BYTES) - SRAM_ACCESS_BYTES
        limit = sink.write(ram_sink.LIMIT_LOW, last) & WORD_MASK
    if limit < start or (limit == start and request.buffer_size != SRAM_ACCESS_BYTES):
        text = f"its SRAM has no room: trRamStart reads {start:#x} and trRamLimit {limit:#x}"
        raise SettingRefused(sink.name, sink.base, f"{text}; use another sink, or system memory")
    _check_read_pointer(sink, limit)
    return start, limit, SRAM_ACCESS_BYTES


def _check_read_pointer(sink: Component, limit: int) -> None:
    """SRAM whose read pointer cannot be set is of no use."""
    pointer = write_address(sink, ram_sink.RP_LOW, ram_sink.RP_HIGH, limit, RamMode.SRAM)
    if pointer != limit:
        text = f"its SRAM cannot be read: trRamRP reads {pointer:#x} after {limit:#x} was written"
        raise SettingRefused(sink.name, sink.base, f"{text}; use another sink, or system memory")


def _set_smem(sink: Component, request: TraceRequest) -> tuple[int, int, int]:
    assert request.buffer_start is not None and request.buffer_size is not None
    asked = request.buffer_start, request.buffer_start + request.buffer_size
    sink.write(ram_sink.START_HIGH, asked[0] >> 32)  # reset leaves anything in it
    grain, start_bit = _probe(sink, ram_sink.START_LOW)
    aligned = -(-asked[0] // grain) * grain
    start = write_address(sink, ram_sink.START_LOW, ram_sink.START_HIGH, aligned)
    sink.write(ram_sink.LIMIT_HIGH, (asked[1] - 1) >> 32)  # only now: the range of Limit may depend on Start
    grain, limit_bit = _probe(sink, ram_sink.LIMIT_LOW)
    access = min(start_bit, limit_bit)
    end = asked[1] // grain * grain
    limit = write_address(sink, ram_sink.LIMIT_LOW, ram_sink.LIMIT_HIGH, max(end - access, 0))
    if not asked[0] <= start <= limit or limit + access > asked[1]:
        raise BufferRefused(sink.name, sink.base, asked, (start, limit + access))
    return start, limit, access


def _probe(sink: Component, register: Register) -> tuple[int, int]:
    """(lowest settable bit, lowest bit that can be 1) of an address register, as values; restores nothing.

    The second is the width of the sink's memory accesses, which nothing reports: it stores at multiples of it.
    """
    zeros = sink.write(register, 0) & WORD_MASK
    ones = sink.write(register, 0xFFFF_FFFF) & WORD_MASK
    return _lowest_bit(zeros ^ ones) or 1, _lowest_bit(ones) or 1 << 32


def access_bytes(sink: Component) -> int:
    """Width in bytes of a disabled, empty sink's memory accesses; 4 in SRAM mode. Start and Limit keep their values."""
    if not sink.get(ram_sink.CONTROL, "trRamMode"):
        return SRAM_ACCESS_BYTES
    widths = []
    for register in (ram_sink.START_LOW, ram_sink.LIMIT_LOW):
        value = sink.read(register)
        widths.append(_probe(sink, register)[1])
        sink.write(register, value)
    return min(widths)


def _rewind(sink: Component, mode: RamMode, start: int) -> None:
    """Pointers to Start. Only this clears the wrap flag; a stale one would make the next read-out return old trace."""
    if mode is RamMode.SRAM:
        write_address(sink, ram_sink.RP_LOW, ram_sink.RP_HIGH, start, mode)
    for register, asked in ((ram_sink.WP_HIGH, start >> 32), (ram_sink.WP_LOW, start & WORD_MASK)):
        got = sink.write(register, asked)
        if got != asked and (register is ram_sink.WP_LOW or mode is RamMode.SMEM):
            text = f"cannot be emptied: {register.name} reads {got:#010x}, not {asked:#010x}; reset the target"
            raise SettingRefused(sink.name, sink.base, text)
