"""The trace in ESP-IDF core dumps, in each form in which they come."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.esp32.readout import is_core_dump, read_core_dump
from rvtrace_gdb.decode.etrace.esp32.snapshot import BadSnapshot, SnapshotCore, ring_of
from rvtrace_gdb.support.errors import RvtraceError
from tests.decode.etrace.esp32 import images as made
from tests.decode.etrace.esp32.images import Described
from tests.helpers.amounts import some_of

ONE = Described(made.stream("pt10"), head=len(made.stream("pt10")), mode=made.LINEAR)
TWO = Described(made.stream("et20") + bytes(16), 4368, core=1, packets=made.ET20, address=0x4083_0000, overflow=1)


def test_everything_the_note_says() -> None:
    dump = read_core_dump(made.elf_core([ONE]))
    snapshot = dump.snapshot
    assert dump.notes == ()
    assert (snapshot.target_id, snapshot.chip_revision, snapshot.capture_reason) == (made.C6, 2, 2)
    assert snapshot.chip == "ESP32-C6 v0.2"
    assert snapshot.app_elf_sha256 == made.SHA256
    assert snapshot.parameters == made.PARAMETERS[made.PT10]
    assert snapshot.cores == (
        SnapshotCore(
            core_id=0,
            state=4,
            memory_mode=1,
            packet_format=100,
            address_mode=2,
            resync_mode=2,
            head_valid=True,
            fifo_empty=True,
            memory_full=False,
            fifo_overflow=False,
            buffer_addr=0x4081_0000,
            capacity=8740,
            head_offset=8740,
            resync_threshold=128,
            fifo_status_raw=1,
            intr_status_raw=0,
            data=made.stream("pt10"),
        ),
    )


def test_each_core_has_its_own_segment() -> None:
    first, second = read_core_dump(made.elf_core([ONE, TWO])).snapshot.cores
    assert (first.core_id, first.data) == (0, ONE.buffer)
    assert (second.core_id, second.data, second.fifo_overflow) == (1, TWO.buffer, True)
    assert second.packet_format == made.ET20


@pytest.mark.parametrize("form", [made.flash_image, made.serial_log])
def test_a_dump_from_flash_or_from_the_serial_line_is_the_same(form: Callable[[bytes], bytes]) -> None:
    elf = made.elf_core([ONE, TWO])
    wrapped = form(elf)
    assert is_core_dump(elf) and is_core_dump(wrapped)
    found = read_core_dump(wrapped)
    assert found.notes == ()
    assert found.snapshot == read_core_dump(elf).snapshot


def test_the_old_header_of_24_bytes() -> None:
    elf = made.elf_core([ONE])
    image = struct.pack("<6I", 24 + len(elf), 0x0100, 1, 0, 0, 0) + elf
    assert read_core_dump(image).snapshot == read_core_dump(elf).snapshot


def test_a_damaged_dump_in_flash_is_named() -> None:
    image = bytearray(made.flash_image(made.elf_core([ONE])))
    image[image.index(ONE.buffer) + 100] ^= 1
    (note,) = read_core_dump(bytes(image)).notes
    assert note == "warning: the core dump is damaged: its checksum is wrong"


def test_a_truncated_dump_in_flash_is_named() -> None:
    elf = made.elf_core([ONE])
    image = made.flash_image(elf)[: len(elf) + 12]
    (note,) = read_core_dump(image).notes
    assert note.startswith(f"warning: the core dump is truncated: {len(elf) + 12} of ")


def test_other_output_between_the_lines_of_a_dump() -> None:
    elf = made.elf_core([ONE])
    lines = made.serial_log(elf).split(b"\r\n")
    lines.insert(20, b"I (1234) wifi: state: run -> init (0x0)")
    assert read_core_dump(b"\r\n".join(lines)).snapshot == read_core_dump(elf).snapshot


def test_the_newest_of_several_dumps_in_a_log_counts() -> None:
    log = made.serial_log(made.elf_core([TWO])) + made.serial_log(made.elf_core([ONE]))
    assert read_core_dump(log).snapshot == read_core_dump(made.elf_core([ONE])).snapshot


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 a capture",
        made.stream("pt10"),
        made.ELF.read_bytes(),  # an ELF file, but a program
        made.elf_core([ONE], machine=94),  # Xtensa: those chips have no such encoder
        made.elf_core([ONE])[:40],
    ],
    ids=["empty", "capture", "trace", "program", "xtensa", "short"],
)
def test_what_is_no_core_dump(content: bytes) -> None:
    assert not is_core_dump(content)


def test_a_core_dump_without_a_trace() -> None:
    with pytest.raises(BadSnapshot, match=r"has no trace: .*CONFIG_ESP_RISCV_TRACE_ENABLE"):
        read_core_dump(made.elf_core([ONE]).replace(b"ESP_RISCV_TRACE", b"ESP_RISCV_OTHER"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"magic": b"RVTX"}, "magic number is 0x58545652"),
        ({"major": 2}, "ABI 2.0, this rvtrace knows ABI 1"),
        ({"header_size": 84, "record_size": 40}, "damaged or truncated"),
    ],
)
def test_notes_that_cannot_be_read(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSnapshot, match=says):
        read_core_dump(made.elf_core([ONE], made.note([ONE], [2], **change)))


def test_a_note_of_a_later_minor_version_is_longer() -> None:
    later = made.note([ONE, TWO], [2, 3], header_size=96, record_size=52)
    assert read_core_dump(made.elf_core([ONE, TWO], later)).snapshot == (
        read_core_dump(made.elf_core([ONE, TWO])).snapshot
    )


@pytest.mark.parametrize("segment", [0, 1, 3, 4, 100])
def test_a_segment_that_is_not_the_buffer(segment: int) -> None:
    """0 and 4 are notes, 1 is a stack, 3 the other core's, and there is no 100."""
    with pytest.raises(BadSnapshot, match=f"segment {segment}"):
        read_core_dump(made.elf_core([ONE, TWO], made.note([ONE], [segment])))


def test_a_core_whose_trace_was_not_kept() -> None:
    """ESP-IDF writes segment 0xffffffff for a core whose buffer was not stable."""
    running = Described(b"", 0, core=1, state=made.CAPTURING, head_valid=0)
    description = made.note([ONE, running], [2, 0xFFFF_FFFF])
    _, core = read_core_dump(made.elf_core([ONE], description)).snapshot.cores
    assert core.data is None
    with pytest.raises(BadSnapshot, match="core 1: it was being traced"):
        ring_of(core)


@settings(derandomize=True, max_examples=some_of(300), deadline=None)
@given(st.data())
def test_damage_is_an_error_of_ours_at_most(data: st.DataObject) -> None:
    forms: list[Callable[[bytes], bytes]] = [bytes, made.flash_image, made.serial_log]
    form = data.draw(st.sampled_from(forms))
    small = Described(bytes(range(1, 100)), 40)
    content = bytearray(form(made.elf_core([small])))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, min(len(content), 700) - 1))
        content[place] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.sampled_from([len(content), len(content) // 2, 60]))]
    if is_core_dump(bytes(content)):
        try:
            for core in read_core_dump(bytes(content)).snapshot.cores:
                ring_of(core)
        except RvtraceError as error:
            assert "\n" not in str(error)
