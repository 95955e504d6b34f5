"""The readout of an ESP32's trace from a core dump or from the memory of a live chip.

A core dump is an ELF file, also in the form that it has in flash or on the serial line. In a live chip all data are
found from `g_esp_riscv_trace_snapshot`; the reader is a generator that yields requests for memory and is sent the
content, so that it is independent of the access to memory.

Sources: ESP-IDF, component espcoredump (core_dump_elf.c, core_dump_flash.c, core_dump_uart.c) and
esp_riscv_trace_coredump.c; the ELF specification for 32-bit files; esp_riscv_trace_snapshot.h and .c: write_seq is odd
while the firmware writes, and another afterwards.
"""

import hashlib
import struct
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.esp32.serial_log import ELF32_LITTLE, HEADER, HEADER_SIZES, UNKNOWN, SerialDump, dump_in
from rvtrace_gdb.decode.etrace.esp32.snapshot import (
    CAPACITY_AT_MOST,
    CHIPS,
    PARAMETERS_SIZE,
    REGISTERS,
    ROOT_SIZE,
    SHA256_SIZE,
    BadSnapshot,
    CoreTraceState,
    Root,
    Snapshot,
    SnapshotCore,
    SnapshotRegisters,
    parse_core,
    parse_note,
)
from rvtrace_gdb.decode.stepping.reports import LostBytes
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.support.text import warning

_EHDR = struct.Struct("<16s2H5I6H")
_PHDR = struct.Struct("<8I")
_NHDR = struct.Struct("<3I")
_ET_CORE, _EM_RISCV = 4, 243
_PT_LOAD, _PT_NOTE = 1, 4
_NAME, _TYPE = b"ESP_RISCV_TRACE", 680

_VERSION_SHA256 = 0x0104  # low half of version: a dump that ends with the SHA-256 of all before
_SHA256_SIZE = 32


_NEAR = 16  # bytes between what was lost and the packet after it: an anchor


class DumpedTrace(NamedTuple):
    """The trace in a core dump. *notes*: warnings about the file."""

    snapshot: Snapshot
    notes: tuple[str, ...]


class _ProgramHeader(NamedTuple):
    """A program header."""

    type: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    flags: int
    align: int


def is_core_dump(content: bytes) -> bool:
    """Whether *content* is a RISC-V core dump in one of the forms of ESP-IDF."""
    elf = _elf_in(content).elf
    if not elf and not content.startswith(ELF32_LITTLE) and dump_in(content) is not None:
        return True  # it is damaged
    if not elf.startswith(ELF32_LITTLE) or len(elf) < _EHDR.size:
        return False
    _, e_type, machine, *_ = _EHDR.unpack_from(elf)
    return (e_type, machine) == (_ET_CORE, _EM_RISCV)


def read_core_dump(content: bytes) -> DumpedTrace:
    """Return the trace in a core dump, for which `is_core_dump` is true. Raises `BadSnapshot`."""
    serial = None if content.startswith(ELF32_LITTLE) else dump_in(content)
    if serial is not None and serial.is_damaged:
        return _read_damaged(serial)
    elf, notes = _elf_in(content)
    if not elf:
        raise BadSnapshot("the core dump is damaged: its beginning is missing")
    try:
        return _trace_in(elf, notes)
    except BadSnapshot as error:
        if not notes:
            raise
        raise BadSnapshot(f"{'; '.join(notes)}, and its trace is not complete: {error}") from None


def _read_damaged(serial: SerialDump) -> DumpedTrace:
    """Return the trace in a core dump of which something is missing: what can be read with the least lost."""
    there = f"the core dump is damaged: {serial.present} of {serial.length} bytes are there"
    found: list[tuple[tuple[int, int], int, DumpedTrace]] = []
    for number, (image, holes) in enumerate(serial.images()):
        elf = _in_image(image).elf
        start = image.find(elf[: _EHDR.size])
        try:
            described = [range(start + part.start, start + part.stop) for part in _described(elf)]
            if any(hole.start < part.stop and part.start < hole.stop for hole in holes for part in described):
                continue
            dump = _trace_in(elf, (f"{there}; the trace may have a gap there",))
        except BadSnapshot:
            continue
        found.append((_unreadable(dump.snapshot, len(holes[0])), number, dump))
    if not found:
        raise BadSnapshot(f"{there}, and the description of its trace is not whole")
    return min(found)[2]


def _described(elf: bytes) -> list[range]:
    """Return where the description of the trace is: the headers, and its note."""
    segments = list(_segments(elf))
    *_, phoff, _shoff, _flags, _ehsize, phentsize, phnum, _shentsize, _shnum, _shstrndx = _EHDR.unpack_from(elf)
    headers = [range(_EHDR.size), range(phoff, phoff + phnum * phentsize)]
    notes = [found for found in _elf_notes(elf, segments) if (found.name, found.type) == (_NAME, _TYPE)]
    before = _NHDR.size + _padded(len(_NAME) + 1)
    return [*headers, *(range(note.at, note.at + before + len(note.description)) for note in notes)]


def _unreadable(snapshot: Snapshot, hole: int) -> tuple[int, int]:
    """Return at how many places packets do not follow each other although no byte is missing there, and how many bytes
    are no packets.

    *hole*: how many bytes in a row are missing. The first number shows that they are not missing where they are thought
    to be.
    """
    places = unread = 0
    for core in snapshot.cores:
        data = core.data or b""
        deframer = Encapsulation("esp32").deframer(wrapped=False)
        lost = [one for one in (*deframer.feed(data), *deframer.finish()) if isinstance(one, LostBytes)]
        unread += sum(one.length for one in lost)
        begin = data.find(UNKNOWN * hole)
        end = begin + hole if begin >= 0 else -_NEAR
        for one in lost:
            if begin - _NEAR <= one.offset <= end + _NEAR:
                end = max(end, one.offset + one.length)
            else:
                places += 1
    return places, unread


def _trace_in(elf: bytes, notes: tuple[str, ...]) -> DumpedTrace:
    """Return the trace in the ELF file of a core dump. *notes*: what is wrong with the file."""
    segments = list(_segments(elf))
    described = next((note for note in _elf_notes(elf, segments) if (note.name, note.type) == (_NAME, _TYPE)), None)
    if described is None:
        raise BadSnapshot(
            "this core dump has no trace: the firmware was built without CONFIG_ESP_RISCV_TRACE_ENABLE, did not trace"
            " when it crashed, or ESP-IDF is older than its trace in core dumps"
        )
    note = parse_note(described.description)
    pairs = zip(note.snapshot.cores, note.segments, strict=True)
    cores = tuple(_with_data(core, index, elf, segments) for core, index in pairs)
    return DumpedTrace(replace(note.snapshot, cores=cores), tuple(map(warning, notes)))


def _with_data(core: SnapshotCore, index: int | None, elf: bytes, segments: list[_ProgramHeader]) -> SnapshotCore:
    """Return *core* with its buffer, which is the content of segment *index*."""
    if index is None:
        return core
    if index >= len(segments):
        raise BadSnapshot(f"core {core.core_id}: its trace should be in segment {index}, there are {len(segments)}")
    segment = segments[index]
    if segment.type != _PT_LOAD or segment.vaddr != core.buffer_addr or segment.filesz < core.capacity:
        raise BadSnapshot(
            f"core {core.core_id}: segment {index} is not its trace buffer of {core.capacity} bytes at"
            f" 0x{core.buffer_addr:08x}"
        )
    return replace(core, data=elf[segment.offset : segment.offset + core.capacity])


def _segments(elf: bytes) -> Iterator[_ProgramHeader]:
    """Return the program headers."""
    *_, phoff, _shoff, _flags, _ehsize, phentsize, phnum, _shentsize, _shnum, _shstrndx = _EHDR.unpack_from(elf)
    for offset in range(phoff, phoff + phnum * phentsize, max(phentsize, 1)):
        if offset + _PHDR.size > len(elf) or phentsize < _PHDR.size:
            raise BadSnapshot(f"the core dump is truncated or damaged: {phnum} program headers do not fit into it")
        kind, place, vaddr, paddr, filesz, memsz, flags, align = _PHDR.unpack_from(elf, offset)
        yield _ProgramHeader(
            type=kind, offset=place, vaddr=vaddr, paddr=paddr, filesz=filesz, memsz=memsz, flags=flags, align=align
        )


class _ElfNote(NamedTuple):
    """A note, which begins at byte *at* of the file."""

    name: bytes
    type: int
    description: bytes
    at: int


def _elf_notes(elf: bytes, segments: list[_ProgramHeader]) -> Iterator[_ElfNote]:
    """Return all notes. Names and descriptions are padded to four bytes."""
    for segment in segments:
        if segment.type != _PT_NOTE:
            continue
        data, at = elf[segment.offset : segment.offset + segment.filesz], 0
        while at + _NHDR.size <= len(data):
            namesz, descsz, kind = _NHDR.unpack_from(data, at)
            name, description = at + _NHDR.size, at + _NHDR.size + _padded(namesz)
            content = data[description : description + descsz]
            yield _ElfNote(data[name : name + namesz].rstrip(b"\0"), kind, content, segment.offset + at)
            at = description + _padded(descsz)


def _padded(size: int) -> int:
    return size + 3 & ~3


class _ElfContent(NamedTuple):
    """An ELF file (b"": none), and what is wrong with the file that contains it."""

    elf: bytes
    notes: tuple[str, ...] = ()


def _elf_in(content: bytes) -> _ElfContent:
    """Return the ELF file in any of the forms."""
    if content.startswith(ELF32_LITTLE):
        return _ElfContent(content)
    serial = dump_in(content)
    return _in_image(content if serial is None else serial.image())


def _in_image(image: bytes) -> _ElfContent:
    """Return the ELF file in a core dump as in flash: between a header and a checksum."""
    start = next((size for size in HEADER_SIZES if image.startswith(ELF32_LITTLE, size)), None)
    if start is None and image.startswith(ELF32_LITTLE):
        return _ElfContent(image, ("the core dump is damaged: its header is missing, and there may be more",))
    if start is None:
        return _ElfContent(b"")
    length, version = HEADER.unpack_from(image)
    if length > len(image):
        return _ElfContent(
            image[start:], (f"the core dump is truncated: {len(image)} of {length} bytes are there",)
        )
    if version & 0xFFFF != _VERSION_SHA256:
        return _ElfContent(image[start:length])
    end = max(length - _SHA256_SIZE, start)
    right = hashlib.sha256(image[:end]).digest() == image[end:length]
    return _ElfContent(image[start:end], () if right else ("the core dump is damaged: its checksum is wrong",))


SYMBOL = "g_esp_riscv_trace_snapshot"
_TRIES = 3

ReadBatch = Sequence[Extent]
"""The requested memory."""
MemoryAnswer = Sequence[bytes | None]
"""The content of the requested memory, in the same order; None: it cannot be read."""
SnapshotReader = Generator[ReadBatch, MemoryAnswer, Snapshot]


def read_snapshot(address: int) -> SnapshotReader:
    """Read the snapshot whose root is at *address*, with the cores' buffers. Raises `BadSnapshot`."""
    for _ in range(_TRIES):
        root = Root.parse((yield from _required_memory(Extent(address, ROOT_SIZE)))[0], SYMBOL)
        if root.write_seq & 1:
            continue
        snapshot = yield from _read_once(root)
        again = Root.parse((yield from _required_memory(Extent(address, ROOT_SIZE)))[0], SYMBOL)
        if again == root:
            return snapshot
    raise BadSnapshot(f"{SYMBOL}: the firmware is changing it: let the program run for a moment, and stop it again")


def _read_once(root: Root) -> SnapshotReader:
    """Read everything to which *root* points. The firmware may change it meanwhile."""
    requested = [Extent(root.cores_addr, root.core_count * root.core_desc_size)]
    if root.encoder_params_size >= PARAMETERS_SIZE:
        requested.append(Extent(root.encoder_params_addr, PARAMETERS_SIZE))
    if root.app_elf_sha256_size == SHA256_SIZE:
        requested.append(Extent(root.app_elf_sha256_addr, SHA256_SIZE))
    table, *rest = yield from _required_memory(*requested)
    sha256 = rest.pop() if root.app_elf_sha256_size == SHA256_SIZE else b""
    cores = [parse_core(table, i * root.core_desc_size) for i in range(root.core_count)]
    cores = yield from _with_registers(root.target_id, cores)
    cores = yield from _with_trace_data(root.target_id, cores)
    parameters = rest[0] if rest else b""
    return Snapshot(root.target_id, root.chip_revision, root.capture_reason, sha256, parameters, tuple(cores))


def _with_registers(
    target_id: int, cores: list[SnapshotCore]
) -> Generator[ReadBatch, MemoryAnswer, list[SnapshotCore]]:
    """Update the cores that are still being traced from their encoders' registers."""
    running = {
        core.core_id: _encoder_address(target_id, core) for core in cores if core.state == CoreTraceState.CAPTURING
    }
    known = {core: base for core, base in running.items() if base is not None}
    if not known:
        return cores
    answer = yield [Extent(base, REGISTERS) for base in known.values()]
    registers = {core: SnapshotRegisters.parse(data) for core, data in zip(known, answer, strict=True) if data}
    return [_updated_core(core, registers[core.core_id]) if core.core_id in registers else core for core in cores]


def _encoder_address(target_id: int, core: SnapshotCore) -> int | None:
    """Return the address of a core's encoder, None if it is not known."""
    bases = CHIPS[target_id].encoders if target_id in CHIPS else ()
    return bases[core.core_id] if core.core_id < len(bases) else None


def _updated_core(core: SnapshotCore, registers: SnapshotRegisters) -> SnapshotCore:
    """Return *core* with the values of its encoder's registers, unless the encoder has another buffer."""
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


def _with_trace_data(
    target_id: int, cores: list[SnapshotCore]
) -> Generator[ReadBatch, MemoryAnswer, list[SnapshotCore]]:
    """Read the buffers of the cores that have a trace whose end is known."""
    requested = [core for core in cores if core.head_valid and core.state >= CoreTraceState.CAPTURING]
    for core in requested:
        if not 0 < core.capacity <= CAPACITY_AT_MOST:
            raise BadSnapshot(f"core {core.core_id}: its trace buffer has an impossible size of {core.capacity} bytes")
    if not requested:
        return cores
    answer = yield from _required_memory(*(Extent(core.buffer_addr, core.capacity) for core in requested))
    data = {core.core_id: content for core, content in zip(requested, answer, strict=True)}
    after = yield from _with_registers(target_id, cores)
    if [core.head_offset for core in after] != [core.head_offset for core in cores]:
        raise BadSnapshot("the chip is tracing while its trace is read: stop the program first")
    return [replace(core, data=data.get(core.core_id)) for core in cores]


def _required_memory(*requested: Extent) -> Generator[ReadBatch, MemoryAnswer, list[bytes]]:
    """Read memory that must be readable."""
    answer = yield list(requested)
    for (address, size), data in zip(requested, answer, strict=True):
        if data is None or len(data) != size:
            raise BadSnapshot(f"the trace snapshot cannot be read: no {size} bytes of memory at 0x{address:08x}")
    return [data for data in answer if data is not None]
