"""The structures with which ESP-IDF describes a trace, as they are in memory and in core dumps. All little-endian.

Source: ESP-IDF, esp_riscv_trace_snapshot.h (ABI 1.0) and esp_riscv_trace_coredump.c; the names are theirs.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.esp32.chips import name_of
from rvtrace_gdb.support.errors import RvtraceError

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
    """What should describe a trace does not, or describes none that can be read."""


class State(IntEnum):
    """esp_riscv_trace_snapshot_state_t: how far the trace of a core has got."""

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


class Reason(IntEnum):
    """esp_riscv_trace_capture_reason_t: why the trace ended."""

    UNKNOWN = 0
    EXPLICIT_STOP = 1
    PANIC = 2


@dataclass(frozen=True)
class Core:
    """A core's encoder and its buffer, as described; numbers of enumerations may be unknown ones.

    *head_offset*: where the hardware writes next, if *head_valid*. *data*: what the buffer holds, *capacity* bytes of
    it; None where it is not known.
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
    """A trace of one chip. *parameters*: raw, see `parameters_of`. *app_elf_sha256*: of the ELF file; b"": not told."""

    target_id: int
    chip_revision: int
    capture_reason: int
    app_elf_sha256: bytes
    parameters: bytes
    cores: tuple[Core, ...]

    @property
    def chip(self) -> str:
        """E.g. "ESP32-C6 v0.2"."""
        return f"{name_of(self.target_id)} v{self.chip_revision // 100}.{self.chip_revision % 100}"


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
        """From memory. Raises `BadSnapshot`, which says *where* it was read."""
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


class Note(NamedTuple):
    """The note in a core dump: a snapshot without the buffers, and the program header of each core's, if any."""

    snapshot: Snapshot
    segments: tuple[int | None, ...]


def parse_core(data: bytes, offset: int = 0) -> Core:
    """esp_riscv_trace_snapshot_core_desc_t."""
    addr, capacity, head, threshold, fifo, intr, *small = _CORE.unpack_from(data, offset)
    return _core(small, addr, capacity, head, threshold, fifo, intr)


def parse_note(data: bytes) -> Note:
    """The content of the note ESP_RISCV_TRACE. Raises `BadSnapshot`."""
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
    return Note(snapshot, tuple(None if segment == NO_SEGMENT else segment for _, segment in records))


def _record(data: bytes, offset: int) -> tuple[Core, int]:
    *small, segment, addr, capacity, _, head, threshold, fifo, intr = _RECORD.unpack_from(data, offset)
    return _core(small, addr, capacity, head, threshold, fifo, intr), segment


def _core(small: list[int], addr: int, capacity: int, head: int, threshold: int, fifo: int, intr: int) -> Core:
    """The single bytes are in the same order in memory and in the note; the seventh is not used."""
    core, state, memory, packets, address, resync, _, head_valid, empty, full, overflow = small[:11]
    flags = (bool(head_valid), bool(empty), bool(full), bool(overflow))
    return Core(
        core, state, memory, packets, address, resync, *flags, addr, capacity, head, threshold, fifo, intr
    )  # fmt: skip


def _check_abi(major: int, minor: int, where: str) -> None:
    if major != ABI_MAJOR:
        raise BadSnapshot(f"{where} has ABI {major}.{minor}, this rvtrace knows {ABI_MAJOR}: use a later one")


def _check_count(count: int, where: str) -> None:
    if not 1 <= count <= CORES_AT_MOST:
        raise BadSnapshot(f"{where} is damaged: it says that there are {count} cores")
