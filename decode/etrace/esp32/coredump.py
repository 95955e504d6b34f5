"""The trace in an ESP-IDF core dump: an ELF file, or the same as it is in flash or was sent over the serial line.

Source: ESP-IDF, component espcoredump (core_dump_elf.c, core_dump_flash.c, core_dump_uart.c) and
esp_riscv_trace_coredump.c; the ELF specification for 32-bit files.
"""

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.esp32.descriptors import BadSnapshot, Core, Snapshot, parse_note
from rvtrace_gdb.support.lines import warning

_ELF32_LITTLE = b"\x7fELF\x01\x01"
_EHDR = struct.Struct("<16s2H5I6H")
_PHDR = struct.Struct("<8I")
_NHDR = struct.Struct("<3I")
_ET_CORE, _EM_RISCV = 4, 243
_PT_LOAD, _PT_NOTE = 1, 4
_NAME, _TYPE = b"ESP_RISCV_TRACE", 680

_HEADER = struct.Struct("<2I")  # data_len, version; what follows depends on the version
_HEADER_SIZES = (12, 20, 24)
_VERSION_SHA256 = 0x0104  # low half of version: a dump that ends with the SHA-256 of all before
_SHA256_SIZE = 32
_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_BEGIN, _END = b"= CORE DUMP START =", b"= CORE DUMP END ="


class Dump(NamedTuple):
    """The trace of a core dump. *notes*: what the user must know of the file."""

    snapshot: Snapshot
    notes: tuple[str, ...]


class _Segment(NamedTuple):
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
    """Whether these are the bytes of a RISC-V core dump that ESP-IDF can have made, in one of its forms."""
    elf = _elf_in(content).elf
    if not elf.startswith(_ELF32_LITTLE) or len(elf) < _EHDR.size:
        return False
    _, e_type, machine, *_ = _EHDR.unpack_from(elf)
    return (e_type, machine) == (_ET_CORE, _EM_RISCV)


def read_core_dump(content: bytes) -> Dump:
    """The trace in a core dump, for which `is_core_dump` is true. Raises `BadSnapshot`."""
    elf, notes = _elf_in(content)
    segments = list(_segments(elf))
    description = next((desc for name, kind, desc in _notes(elf, segments) if (name, kind) == (_NAME, _TYPE)), None)
    if description is None:
        raise BadSnapshot(
            "this core dump holds no trace: the firmware was built without CONFIG_ESP_RISCV_TRACE_ENABLE, did not trace"
            " when it crashed, or ESP-IDF is older than its trace in core dumps"
        )
    note = parse_note(description)
    pairs = zip(note.snapshot.cores, note.segments, strict=True)
    cores = tuple(_with_data(core, index, elf, segments) for core, index in pairs)
    return Dump(replace(note.snapshot, cores=cores), notes)


def _with_data(core: Core, index: int | None, elf: bytes, segments: list[_Segment]) -> Core:
    """*core* with its buffer, which is the content of segment *index*."""
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


def _segments(elf: bytes) -> Iterator[_Segment]:
    """The program headers that are there."""
    *_, phoff, _shoff, _flags, _ehsize, phentsize, phnum, _shentsize, _shnum, _shstrndx = _EHDR.unpack_from(elf)
    for offset in range(phoff, phoff + phnum * phentsize, max(phentsize, 1)):
        if offset + _PHDR.size > len(elf) or phentsize < _PHDR.size:
            raise BadSnapshot(f"the core dump is truncated or damaged: {phnum} program headers do not fit into it")
        kind, place, vaddr, paddr, filesz, memsz, flags, align = _PHDR.unpack_from(elf, offset)
        yield _Segment(kind, place, vaddr, paddr, filesz, memsz, flags, align)


def _notes(elf: bytes, segments: list[_Segment]) -> Iterator[tuple[bytes, int, bytes]]:
    """(name, type, description) of all notes; names and descriptions are padded to four bytes."""
    for segment in segments:
        if segment.type != _PT_NOTE:
            continue
        data, at = elf[segment.offset : segment.offset + segment.filesz], 0
        while at + _NHDR.size <= len(data):
            namesz, descsz, kind = _NHDR.unpack_from(data, at)
            name, description = at + _NHDR.size, at + _NHDR.size + _padded(namesz)
            yield data[name : name + namesz].rstrip(b"\0"), kind, data[description : description + descsz]
            at = description + _padded(descsz)


def _padded(size: int) -> int:
    return size + 3 & ~3


class _Found(NamedTuple):
    """An ELF file, b"" for none, and what is to be said of where it was found."""

    elf: bytes
    notes: tuple[str, ...] = ()


def _elf_in(content: bytes) -> _Found:
    """The ELF file in any of the forms."""
    if content.startswith(_ELF32_LITTLE):
        return _Found(content)
    begin = content.rfind(_BEGIN)  # the newest in a log
    return _in_image(content if begin < 0 else _from_base64(content[begin:]))


def _in_image(image: bytes) -> _Found:
    """The ELF file behind the header that a core dump has in flash, and before its checksum."""
    start = next((size for size in _HEADER_SIZES if image.startswith(_ELF32_LITTLE, size)), None)
    if start is None:
        return _Found(b"")
    length, version = _HEADER.unpack_from(image)
    if length > len(image):
        return _Found(
            image[start:], (warning(f"the core dump is truncated: {len(image)} of {length} bytes are there"),)
        )
    if version & 0xFFFF != _VERSION_SHA256:
        return _Found(image[start:length])
    end = max(length - _SHA256_SIZE, start)
    right = hashlib.sha256(image[:end]).digest() == image[end:length]
    return _Found(image[start:end], () if right else (warning("the core dump is damaged: its checksum is wrong"),))


def _from_base64(log: bytes) -> bytes:
    """The bytes in the log of a serial line. Each line is text of its own, and other output may stand between."""
    found = []
    for line in log.split(_END, 1)[0].splitlines()[1:]:
        text = line.strip()
        if len(text) % 4 == 0 and _LINE.fullmatch(text):
            try:
                found.append(base64.b64decode(text))
            except binascii.Error:
                continue
    return b"".join(found)
