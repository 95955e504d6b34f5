"""What ESP-IDF leaves of a trace, written byte by byte from the offsets in its sources, for tests.

Sources: ESP-IDF, esp_riscv_trace_snapshot.h (structures in memory), esp_riscv_trace_coredump.c (note), core_dump_elf.c,
core_dump_flash.c and core_dump_uart.c (the dump and what it is wrapped in).
"""

import base64
import gzip
import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rvtrace_gdb.decode.etrace.options import Dialect, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.packet import build, parse

DATA = Path(__file__).resolve().parents[3] / "data" / "etrace-esp32"
ELF = DATA / "crc32.elf"
SHA256 = hashlib.sha256(ELF.read_bytes()).digest()
PT10, ET20 = 100, 200
DELTA, FULL = 1, 2
LINEAR, LOOP = 1, 2
READY, CAPTURING, STOPPED, FROZEN = 1, 2, 3, 4
C6, P4 = 0x0D, 0x12
ROOT, TABLE, PARAMS, HASH = 0x4080_1000, 0x4080_1100, 0x4080_1200, 0x4080_1300
"""Where `memory` puts the structures."""


def stream(packets: str) -> bytes:
    """A trace buffer of the crc32 program: "pt10" or "et20"."""
    return (DATA / f"crc32.{packets}.bin").read_bytes()


def frames(data: bytes) -> Iterator[bytes]:
    """The packets of a trace buffer, prefix and all, and its anchors."""
    at = 0
    while at < len(data):
        size = data[at] & 31 or 14
        yield data[at : at + size]
        at += size


def as_et20() -> bytes:
    """The trace buffer "et20", whose payloads are the standard's, with them as Espressif's own decoder reads ET20."""
    standard = Options(parameters=Parameters(privilege_width=1, ecause_width=6), support=SupportLayout.ET20)
    et20 = replace(standard, dialect=Dialect.ET20)
    rewritten = b""
    for frame in frames(stream("et20")):
        if frame[0]:
            found = parse(frame[3:], standard, standard.modes)
            payload = build(found.format, found.subformat, found.fields, et20, et20.modes)
            frame = bytes([3 + len(payload)]) + frame[1:3] + payload
        rewritten += frame
    return rewritten


def executed() -> list[int]:
    """The instructions that ran in both."""
    return [int(line, 16) for line in gzip.decompress((DATA / "crc32.pcs.gz").read_bytes()).split()]


@dataclass
class Described:
    """A core as the firmware describes it; *buffer* is what the trace memory holds."""

    buffer: bytes
    head: int
    core: int = 0
    state: int = FROZEN
    mode: int = LOOP
    packets: int = PT10
    address_mode: int = FULL
    resync: int = 2
    head_valid: int = 1
    fifo_empty: int = 1
    full: int = 0
    overflow: int = 0
    address: int = 0x4081_0000

    def small(self) -> bytes:
        """Twelve bytes: the same in memory and in the note, but for the last, which is filling."""
        ids = [self.core, self.state, self.mode, self.packets, self.address_mode, self.resync, 0]
        return bytes([*ids, self.head_valid, self.fifo_empty, self.full, self.overflow, 0])


def parameters(privilege: int = 1, ecause: int = 5, **more: int) -> bytes:
    """esp_riscv_trace_encoder_params_t: version, size, then a byte for each parameter; by offset."""
    values = {0: 1, 1: 28, 8: ecause, 15: 1, 16: 32, 17: 1, 19: 3, 20: 1, 21: 1, 22: privilege, 23: 1, 26: 1}
    offsets = {"bpred_size": 3, "cache_size": 4, "context_width": 7, "lsb": 15, "nocontext": 20, "notime": 21}
    values |= {offsets[name]: value for name, value in more.items()}
    return bytes(values.get(i, 0) for i in range(28))


PARAMETERS = {PT10: parameters(ecause=5), ET20: parameters(ecause=6)}


def note(
    cores: list[Described],
    segments: list[int],
    *,
    sha256: bytes = SHA256,
    params: bytes | None = None,
    target: int = C6,
    reason: int = 2,
    magic: bytes = b"RVTS",
    major: int = 1,
    header_size: int = 80,
    record_size: int = 44,
) -> bytes:
    """The description of the note ESP_RISCV_TRACE."""
    header = bytearray(header_size)
    header[0:4] = magic
    header[4:8] = (6).to_bytes(4, "little")  # write_seq
    header[8:12] = struct.pack("<2H", target, 2)
    header[12:20] = bytes([major, 0, header_size, record_size, len(cores), reason, 32, 28])
    header[20:52] = sha256
    header[52:80] = PARAMETERS[cores[0].packets] if params is None else params
    return bytes(header) + b"".join(_record(c, s, record_size) for c, s in zip(cores, segments, strict=True))


def _record(core: Described, segment: int, size: int) -> bytes:
    record = bytearray(size)
    record[0:12] = core.small()
    there = segment != 0xFFFF_FFFF
    address, capacity = (core.address, len(core.buffer)) if there else (0, 0)
    record[12:44] = struct.pack("<8I", segment, address, capacity, capacity, core.head, 128, 1, 0)
    return bytes(record)


def elf_core(cores: list[Described], description: bytes | None = None, *, machine: int = 243) -> bytes:
    """A core dump: a task's stack and registers, the trace buffers, and the note, in ESP-IDF's order."""
    loads = [(0x4082_0000, bytes(64)), *((core.address, core.buffer) for core in cores)]
    if description is None:
        description = note(cores, [i + 2 for i in range(len(cores))])
    registers = _note(b"CORE\0", 1, bytes(204))
    segments = [(4, 0, registers), *((1, address, _aligned(data)) for address, data in loads)]
    segments.append((4, 0, _note(b"ESP_EXTRA_INFO\0", 677, bytes(6)) + _note(b"ESP_RISCV_TRACE\0", 680, description)))
    place = 52 + 32 * len(segments)
    header = b"\x7fELF\x01\x01\x01" + bytes(9)
    header += struct.pack("<2H5I6H", 4, machine, 1, 0, 52, 0, 0, 52, 32, len(segments), 40, 0, 0)
    table, body = b"", b""
    for kind, address, data in segments:
        table += struct.pack("<8I", kind, place + len(body), address, address, len(data), len(data), 6, 0)
        body += data
    return header + table + body


def _note(name: bytes, kind: int, description: bytes) -> bytes:
    return struct.pack("<3I", len(name), len(description), kind) + _aligned(name) + _aligned(description)


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def flash_image(elf: bytes, *, partition: int = 1 << 16) -> bytes:
    """The core dump as it is in its flash partition: header, ELF file, padding to 32 bytes, SHA-256, erased flash."""
    padding = bytes(-(12 + len(elf)) % 32)
    length = 12 + len(elf) + len(padding) + 32
    image = struct.pack("<3I", length, C6 << 16 | 0x0104, 2) + elf + padding
    image += hashlib.sha256(image).digest()
    return image + b"\xff" * (partition - len(image))


def serial_log(elf: bytes) -> bytes:
    """The core dump as it comes over the serial line: base64 of what was written at once, 48 bytes a line at most."""
    image = struct.pack("<3I", 12 + len(elf) + 32, C6 << 16 | 0x0104, 2) + elf
    writes = [image[:12], *(image[i : i + 1000] for i in range(12, len(image), 1000)), hashlib.sha256(image).digest()]
    lines = [base64.b64encode(write[i : i + 48]) for write in writes for i in range(0, len(write), 48)]
    before = [b"Guru Meditation Error: Core  0 panic'ed", b"================= CORE DUMP START ================="]
    after = [b"================= CORE DUMP END =================", b"Rebooting..."]
    return b"".join(line + b"\r\n" for line in [*before, *lines, *after])


def memory(
    cores: list[Described],
    *,
    target: int = C6,
    sequence: int = 6,
    params: bytes | None = None,
    sha256: bytes = SHA256,
    magic: bytes = b"RVTS",
    major: int = 1,
    reason: int = 1,
    registers: dict[int, bytes] | None = None,
    at: int = ROOT,
) -> dict[int, bytes]:
    """A chip's memory: its content by address, with the snapshot *at* an address and what it points to behind it."""
    table_at, params_at, hash_at = (there - ROOT + at for there in (TABLE, PARAMS, HASH))
    root = magic + struct.pack("<4I2H", sequence, table_at, hash_at, params_at, target, 2)
    root += bytes([major, 0, 32, 36, len(cores), reason, 32, 28])
    table = b"".join(
        struct.pack("<6I", core.address, len(core.buffer), core.head, 128, 1, 0) + core.small() for core in cores
    )
    content = {at: root, table_at: table, hash_at: sha256}
    content[params_at] = PARAMETERS[cores[0].packets] if params is None else params
    return content | {core.address: core.buffer for core in cores} | (registers or {})


def read(content: dict[int, bytes], address: int, size: int) -> bytes | None:
    """*size* bytes of a memory, None where it is not there."""
    for start, data in content.items():
        if start <= address and address + size <= start + len(data):
            return data[address - start : address - start + size]
    return None


def encoder_registers(core: Described, *, current: int | None = None) -> bytes:
    """The trace encoder's registers (trace_reg.h): memory start, end, current address, update, FIFO status, interrupts
    enabled, raw interrupts.
    """
    where = core.address + core.head if current is None else current
    fifo, raw = core.fifo_empty, core.overflow | core.full << 1
    return struct.pack("<7I", core.address, core.address + len(core.buffer), where, 0, fifo, 0, raw)
