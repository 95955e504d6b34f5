"""The structures with which ESP-IDF describes a trace, its chip and its encoder.

They are in the memory of the chip and in core dumps, all little-endian. `CHIPS` has Espressif's chips with a RISC-V
trace encoder: their IDs and the addresses of the encoder's registers. `ring_of` puts a core's trace buffer in the order
of time: no flag shows whether the buffer has wrapped, and no packet continues from the end of the buffer at its start.
`options_of` returns the options with which the encoder's packets are decoded.

Sources: ESP-IDF (2026), component esp_riscv_trace, "trace snapshot target-memory ABI" 1.0 and the core dump extension:
esp_riscv_trace_snapshot.h (its structures and names), esp_riscv_trace_coredump.c, esp_riscv_trace.c (the buffer is
cleared before a trace begins) and its test application; esp_app_format.h (chip IDs), and of each chip reg_base.h,
trace_reg.h and soc.h.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.support.errors import RvtraceError

_CODE = range(0x4000_0000, 0x5000_0000)
"""ROM, RAM and flash."""


class Chip(NamedTuple):
    """A chip.

    *encoders*: base addresses of the trace encoders by core. *code*: addresses of code, not of peripherals.
    """

    name: str
    encoders: tuple[int, ...]
    code: tuple[range, ...] = (_CODE,)


CHIPS = {
    0x0D: Chip("ESP32-C6", (0x600C_0000,)),
    0x10: Chip("ESP32-H2", (0x600C_0000,)),
    0x12: Chip("ESP32-P4", (0x3FF0_4000, 0x3FF0_5000)),
    0x14: Chip("ESP32-C61", (0x600C_0000,)),
    0x17: Chip("ESP32-C5", (0x600C_0000,)),
    0x19: Chip("ESP32-H21", (0x600C_0000,)),
    0x1C: Chip("ESP32-H4", (0x6000_0000, 0x6000_1000)),
    0x20: Chip("ESP32-S31", (0x2D00_0000, 0x2D00_1000), (_CODE, range(0x2F00_0000, 0x2F85_0000))),
}
"""The chips by the chip ID of firmware images."""

_MEMORY = struct.Struct("<4I")  # TRACE_MEM_START_ADDR, END_ADDR, CURRENT_ADDR, ADDR_UPDATE
_STATUS = struct.Struct("<3I")  # TRACE_FIFO_STATUS, INTR_ENA, INTR_RAW
REGISTERS = _MEMORY.size + _STATUS.size
"""The number of bytes of an encoder's registers for `SnapshotRegisters.parse`. Reading them has no side effect."""
_FIFO_EMPTY = 1 << 0
_FIFO_OVERFLOW, _MEM_FULL = 1 << 0, 1 << 1


class SnapshotRegisters(NamedTuple):
    """The current state of an encoder. *current*: the address at which it writes next."""

    start: int
    end: int
    current: int
    fifo_status: int
    intr_raw: int

    @classmethod
    def parse(cls, data: bytes) -> "SnapshotRegisters":
        """Parse the first `REGISTERS` bytes of the encoder's registers."""
        start, end, current, _ = _MEMORY.unpack_from(data)
        fifo_status, _, intr_raw = _STATUS.unpack_from(data, _MEMORY.size)
        return cls(start, end, current, fifo_status, intr_raw)

    @property
    def fifo_empty(self) -> bool:
        return bool(self.fifo_status & _FIFO_EMPTY)

    @property
    def fifo_overflow(self) -> bool:
        return bool(self.intr_raw & _FIFO_OVERFLOW)

    @property
    def memory_full(self) -> bool:
        return bool(self.intr_raw & _MEM_FULL)


def may_be_code(target_id: int, address: int, size: int) -> bool:
    """Whether these bytes can be code. Reading other bytes may have side effects in a peripheral."""
    chip = CHIPS.get(target_id)
    places = chip.code if chip else (_CODE,)
    return any(address in place and address + size - 1 in place for place in places)


def chip_name(target_id: int) -> str:
    """Return the name of a chip, e.g. "ESP32-C6"."""
    chip = CHIPS.get(target_id)
    return chip.name if chip else f"an Espressif chip with ID 0x{target_id:04x}"


MAGIC = 0x53545652  # "RVTS"
ABI_MAJOR = 1

_ROOT = struct.Struct("<5I2H8B")
_CORE = struct.Struct("<6I12B")
_NOTE_HEADER = struct.Struct("<2I2H8B32s28s")
_RECORD = struct.Struct("<11Bx8I")
ROOT_SIZE, CORE_SIZE, HEADER_SIZE, RECORD_SIZE = _ROOT.size, _CORE.size, _NOTE_HEADER.size, _RECORD.size
SHA256_SIZE = 32
PARAMETERS_SIZE = 28
CORES_AT_MOST = 8
CAPACITY_AT_MOST = 1 << 26  # twice the largest memory of such a chip
NO_SEGMENT = 0xFFFF_FFFF


class BadSnapshot(RvtraceError):
    """A snapshot is damaged, or its trace cannot be read."""


class CoreTraceState(IntEnum):
    """esp_riscv_trace_snapshot_state_t: the state of a core's trace."""

    UNAVAILABLE = 0
    READY = 1
    CAPTURING = 2
    STOPPED = 3
    FROZEN = 4


class MemoryMode(IntEnum):
    """esp_riscv_trace_snapshot_memory_mode_t: what happens when the buffer is full."""

    UNKNOWN = 0
    LINEAR = 1
    LOOP = 2


class AddressMode(IntEnum):
    """esp_riscv_trace_snapshot_address_mode_t."""

    UNKNOWN = 0
    DELTA = 1
    FULL = 2


class PacketFormat(IntEnum):
    """esp_riscv_trace_packet_format_t."""

    PT10 = 100
    ET20 = 200


class CaptureReason(IntEnum):
    """esp_riscv_trace_capture_reason_t: why the trace ended."""

    UNKNOWN = 0
    EXPLICIT_STOP = 1
    PANIC = 2


@dataclass(frozen=True)
class SnapshotCore:
    """A core's encoder and its buffer, as described; enumerations may have unknown values.

    *head_offset*: the offset at which the hardware writes next, if *head_valid*. *data*: the *capacity* bytes of the
    buffer; None: not known.
    """

    core_id: int
    state: int
    memory_mode: int
    packet_format: int
    address_mode: int
    resync_mode: int
    head_valid: bool
    fifo_empty: bool
    memory_full: bool
    fifo_overflow: bool
    buffer_addr: int
    capacity: int
    head_offset: int
    resync_threshold: int
    fifo_status_raw: int
    intr_status_raw: int
    data: bytes | None = None


@dataclass(frozen=True)
class Snapshot:
    """A trace of one chip. *parameters* is raw, see `parameters_of`; *app_elf_sha256* is b"" if it is not known."""

    target_id: int
    chip_revision: int
    capture_reason: int
    app_elf_sha256: bytes
    parameters: bytes
    cores: tuple[SnapshotCore, ...]

    @property
    def chip(self) -> str:
        """The chip and its revision, e.g. "ESP32-C6 v0.2"."""
        return f"{chip_name(self.target_id)} v{self.chip_revision // 100}.{self.chip_revision % 100}"


class Root(NamedTuple):
    """esp_riscv_trace_snapshot_desc_t."""

    magic: int
    write_seq: int
    cores_addr: int
    app_elf_sha256_addr: int
    encoder_params_addr: int
    target_id: int
    chip_revision: int
    abi_major: int
    abi_minor: int
    snapshot_desc_size: int
    core_desc_size: int
    core_count: int
    capture_reason: int
    app_elf_sha256_size: int
    encoder_params_size: int

    @classmethod
    def parse(cls, data: bytes, where: str) -> "Root":
        """Parse the structure from memory. Raises `BadSnapshot`, whose message contains *where* it was read."""
        root = cls(*_ROOT.unpack_from(data))
        if root.magic != MAGIC:
            raise BadSnapshot(
                f"{where}: there is no trace snapshot (its magic number is 0x{root.magic:08x}): has the firmware not"
                " started yet, or is this not the ELF that runs?"
            )
        _check_abi(root.abi_major, root.abi_minor, where)
        if root.snapshot_desc_size < ROOT_SIZE or root.core_desc_size < CORE_SIZE or not root.cores_addr:
            raise BadSnapshot(f"{where}: the trace snapshot is damaged: its sizes are not those of ABI 1.0")
        _check_count(root.core_count, where)
        return root


class CoreDumpNote(NamedTuple):
    """The note in a core dump: a snapshot without buffers, and the segment of each core's buffer, if there is one."""

    snapshot: Snapshot
    segments: tuple[int | None, ...]


def parse_core(data: bytes, offset: int = 0) -> SnapshotCore:
    """Parse esp_riscv_trace_snapshot_core_desc_t."""
    addr, capacity, head, threshold, fifo, intr, *small = _CORE.unpack_from(data, offset)
    return _core(small, addr, capacity, head, threshold, fifo, intr)


def parse_note(data: bytes) -> CoreDumpNote:
    """Parse the content of the note ESP_RISCV_TRACE. Raises `BadSnapshot`."""
    where = "the note ESP_RISCV_TRACE"
    if len(data) < HEADER_SIZE:
        raise BadSnapshot(f"{where} is truncated: it has {len(data)} bytes, its header alone {HEADER_SIZE}")
    magic, _, target, revision, *small, sha256, parameters = _NOTE_HEADER.unpack_from(data)
    major, minor, header, record, count, reason, sha256_size, parameters_size = small
    if magic != MAGIC:
        raise BadSnapshot(f"{where} is damaged: its magic number is 0x{magic:08x}, not 0x{MAGIC:08x}")
    _check_abi(major, minor, where)
    _check_count(count, where)
    if header < HEADER_SIZE or record < RECORD_SIZE or len(data) < header + count * record:
        raise BadSnapshot(f"{where} is damaged or truncated: {count} cores do not fit into its {len(data)} bytes")
    records = [_record(data, header + i * record) for i in range(count)]
    snapshot = Snapshot(
        target,
        revision,
        reason,
        sha256[:sha256_size] if sha256_size == SHA256_SIZE else b"",
        parameters[:parameters_size],
        tuple(core for core, _ in records),
    )
    return CoreDumpNote(snapshot, tuple(None if segment == NO_SEGMENT else segment for _, segment in records))


def _record(data: bytes, offset: int) -> tuple[SnapshotCore, int]:
    *small, segment, addr, capacity, _, head, threshold, fifo, intr = _RECORD.unpack_from(data, offset)
    return _core(small, addr, capacity, head, threshold, fifo, intr), segment


def _core(small: list[int], addr: int, capacity: int, head: int, threshold: int, fifo: int, intr: int) -> SnapshotCore:
    """Return a core. The single bytes are in the same order in memory and in the note; the seventh is unused."""
    core, state, memory, packets, address, resync, _, head_valid, empty, full, overflow = small[:11]
    flags = (bool(head_valid), bool(empty), bool(full), bool(overflow))
    return SnapshotCore(
        core, state, memory, packets, address, resync, *flags, addr, capacity, head, threshold, fifo, intr
    )  # fmt: skip


def _check_abi(major: int, minor: int, where: str) -> None:
    if major != ABI_MAJOR:
        raise BadSnapshot(f"{where} has ABI {major}.{minor}, this rvtrace knows ABI {ABI_MAJOR}: use a later version")


def _check_count(count: int, where: str) -> None:
    if not 1 <= count <= CORES_AT_MOST:
        raise BadSnapshot(f"{where} is damaged: it says that there are {count} cores")


class TraceRing(NamedTuple):
    """The content of a trace buffer.

    data     the bytes, oldest first
    wrapped  whether older trace was overwritten
    seam     the offset of the start of the buffer in *data*, where a packet may be cut off; 0: there is none
    """

    data: bytes
    wrapped: bool
    seam: int


def ring_of(core: SnapshotCore) -> TraceRing:
    """Return what the encoder wrote into the buffer of *core*. Raises `BadSnapshot` if that is not known."""
    if core.data is None:
        raise BadSnapshot(f"core {core.core_id}: {_absence_reason(core)}")
    if not core.head_valid or core.head_offset > core.capacity or len(core.data) < core.capacity:
        raise BadSnapshot(
            f"core {core.core_id}: its trace is damaged: it ends {core.head_offset} bytes into a buffer of"
            f" {core.capacity}, of which {len(core.data)} are there"
        )
    newest, oldest = core.data[: core.head_offset], core.data[core.head_offset : core.capacity]
    if core.memory_mode == MemoryMode.LINEAR or (oldest and not any(oldest)):
        return TraceRing(newest, False, 0)
    return TraceRing(
        oldest + newest, True, len(oldest)
    )  # just full counts as wrapped: it is then read from an anchor on


def _absence_reason(core: SnapshotCore) -> str:
    if core.state in (CoreTraceState.UNAVAILABLE, CoreTraceState.READY):
        return "it was not traced"
    if core.state == CoreTraceState.CAPTURING:
        return "it was being traced when this was written, and where its trace ends is not known"
    return "its trace is not there" if core.head_valid else "where its trace ends is not known"


_PARAMETERS = (
    "params_version", "params_size", "arch", "bpred_size", "cache_size", "call_counter_size", "ctype_width",
    "context_width", "ecause_width", "ecause_choice", "f0s_width", "filter_context", "filter_excint",
    "filter_privilege", "filter_tval", "iaddress_lsb", "iaddress_width", "iretire_width", "ilastsize_width",
    "itype_width", "nocontext", "notime", "privilege_width", "retires", "return_stack_size", "sijump",
    "taken_branches", "impdef_width",
)  # fmt: skip
"""The fields of esp_riscv_trace_encoder_params_t, one byte each, without `_p`."""
_LIMITS = {
    "iaddress_width": range(8, 65),
    "iaddress_lsb": range(3),
    "privilege_width": range(1, 4),
    "ecause_width": range(1, 17),
    "bpred_size": range(17),
    "cache_size": range(17),
    "return_stack_size": range(11),
    "call_counter_size": range(17),
    "f0s_width": range(2),
    "context_width": range(65),
}
"""The parameters that a decoder must know, and their ranges."""
_DIALECTS = {
    PacketFormat.PT10: (Dialect.PT10, SupportLayout.PT10),
    PacketFormat.ET20: (Dialect.ET20, SupportLayout.ET20),
}


def parameters_of(raw: bytes, packet_format: PacketFormat) -> Parameters:
    """Return the encoder's parameters; if the firmware does not provide them, the defaults of the packet format.

    Raises `BadSnapshot` for impossible values, and for an encoder that sends a field whose width ESP-IDF does not
    record.
    """
    sent = dict(zip(_PARAMETERS, raw, strict=False))
    if len(raw) < PARAMETERS_SIZE or sent["params_version"] != 1 or not sent["iaddress_width"]:
        built = DEFAULTS[_DIALECTS[packet_format][0]]
        defaults: Mapping[str, Any] = {name: built[name] for name in _LIMITS if name in built}
        return Parameters(**defaults)
    if not sent["notime"]:
        raise BadSnapshot("the encoder sends the time in its packets, and the snapshot does not say how wide it is")
    known: Mapping[str, Any] = {name: sent[name] for name in _LIMITS} | {
        "context_width": 0 if sent["nocontext"] else sent["context_width"]
    }
    for name, value in known.items():
        if value not in _LIMITS[name]:
            raise BadSnapshot(f"the trace snapshot is damaged: {name}_p is {value}")
    return Parameters(**known)


def options_of(snapshot: Snapshot, core: SnapshotCore) -> Options:
    """Return the decoder options for the packets of *core*. Raises `BadSnapshot`."""
    if core.packet_format not in tuple(PacketFormat):
        raise BadSnapshot(f"core {core.core_id}: packet format {core.packet_format} is not known")
    packet_format = PacketFormat(core.packet_format)
    dialect, support = _DIALECTS[packet_format]
    return Options(
        parameters=parameters_of(snapshot.parameters, packet_format),
        modes=Modes(full_address=core.address_mode == AddressMode.FULL),
        support=support,
        dialect=dialect,
    )
