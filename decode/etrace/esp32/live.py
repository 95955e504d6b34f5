"""The trace of a live chip, from its memory: `g_esp_riscv_trace_snapshot` and what it points to.

Reading is a generator that asks for memory and is sent its content, so it does not matter how memory is reached.

Source: ESP-IDF, esp_riscv_trace_snapshot.h and .c: write_seq is odd while the firmware writes, and another afterwards.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace

from rvtrace_gdb.decode.etrace.esp32.chips import CHIPS, REGISTERS, Registers
from rvtrace_gdb.decode.etrace.esp32.descriptors import (
    CAPACITY_AT_MOST,
    PARAMETERS_SIZE,
    ROOT_SIZE,
    SHA256_SIZE,
    BadSnapshot,
    Core,
    Root,
    Snapshot,
    State,
    parse_core,
)

SYMBOL = "g_esp_riscv_trace_snapshot"
_TRIES = 3

Batch = list[tuple[int, int]]
"""(address, size) of memory that is asked for, in this order."""
Answer = Sequence[bytes | None]
"""Its content; None where it cannot be read."""
Read = Generator[Batch, Answer, Snapshot]


def read_snapshot(address: int) -> Read:
    """The snapshot whose root is at *address*, with the cores' buffers. Raises `BadSnapshot`."""
    for _ in range(_TRIES):
        root = Root.parse((yield from _memory((address, ROOT_SIZE)))[0], SYMBOL)
        if root.write_seq & 1:
            continue
        snapshot = yield from _attempt(root)
        again = Root.parse((yield from _memory((address, ROOT_SIZE)))[0], SYMBOL)
        if again == root:
            return snapshot
    raise BadSnapshot(f"{SYMBOL}: the firmware is just changing it: let the program go on for a moment, and stop it")


def _attempt(root: Root) -> Read:
    """All that *root* leads to; the firmware may change it meanwhile."""
    wanted = [(root.cores_addr, root.core_count * root.core_desc_size)]
    wanted += [(root.encoder_params_addr, PARAMETERS_SIZE)] if root.encoder_params_size >= PARAMETERS_SIZE else []
    wanted += [(root.app_elf_sha256_addr, SHA256_SIZE)] if root.app_elf_sha256_size == SHA256_SIZE else []
    table, *rest = yield from _memory(*wanted)
    sha256 = rest.pop() if root.app_elf_sha256_size == SHA256_SIZE else b""
    cores = [parse_core(table, i * root.core_desc_size) for i in range(root.core_count)]
    cores = yield from _with_registers(root.target_id, cores)
    cores = yield from _with_data(root.target_id, cores)
    parameters = rest[0] if rest else b""
    return Snapshot(root.target_id, root.chip_revision, root.capture_reason, sha256, parameters, tuple(cores))


def _with_registers(target_id: int, cores: list[Core]) -> Generator[Batch, Answer, list[Core]]:
    """Where a core is still being traced, only its encoder's registers tell how far."""
    running = {core.core_id: _encoder(target_id, core) for core in cores if core.state == State.CAPTURING}
    known = {core: base for core, base in running.items() if base is not None}
    if not known:
        return cores
    answer = yield [(base, REGISTERS) for base in known.values()]
    registers = {core: Registers.parse(data) for core, data in zip(known, answer, strict=True) if data}
    return [_now(core, registers[core.core_id]) if core.core_id in registers else core for core in cores]


def _encoder(target_id: int, core: Core) -> int | None:
    """The address of a core's encoder."""
    bases = CHIPS[target_id].encoders if target_id in CHIPS else ()
    return bases[core.core_id] if core.core_id < len(bases) else None


def _now(core: Core, registers: Registers) -> Core:
    """*core* as its encoder's registers say; an encoder that was set up otherwise is not the one described."""
    if (registers.start, registers.end) != (core.buffer_addr, core.buffer_addr + core.capacity):
        return core
    return replace(
        core,
        head_valid=registers.start <= registers.current <= registers.end,
        head_offset=registers.current - registers.start,
        fifo_empty=registers.fifo_empty,
        memory_full=registers.memory_full,
        fifo_overflow=registers.fifo_overflow,
        fifo_status_raw=registers.fifo_status,
        intr_status_raw=registers.intr_raw,
    )


def _with_data(target_id: int, cores: list[Core]) -> Generator[Batch, Answer, list[Core]]:
    """The buffers of the cores that have a trace whose end is known."""
    wanted = [core for core in cores if core.head_valid and core.state >= State.CAPTURING]
    for core in wanted:
        if not 0 < core.capacity <= CAPACITY_AT_MOST:
            raise BadSnapshot(f"core {core.core_id}: its trace buffer is said to have {core.capacity} bytes")
    if not wanted:
        return cores
    answer = yield from _memory(*((core.buffer_addr, core.capacity) for core in wanted))
    data = {core.core_id: content for core, content in zip(wanted, answer, strict=True)}
    after = yield from _with_registers(target_id, cores)
    if [core.head_offset for core in after] != [core.head_offset for core in cores]:
        raise BadSnapshot("the chip is tracing while its trace is read: stop the program first")
    return [replace(core, data=data.get(core.core_id)) for core in cores]


def _memory(*wanted: tuple[int, int]) -> Generator[Batch, Answer, list[bytes]]:
    """Memory that must be readable."""
    answer = yield list(wanted)
    for (address, size), data in zip(wanted, answer, strict=True):
        if data is None or len(data) != size:
            raise BadSnapshot(f"the trace snapshot cannot be read: no {size} bytes of memory at 0x{address:08x}")
    return [data for data in answer if data is not None]
