"""Captures for tests: made up ones, and the strategy that draws any."""

import struct
from dataclasses import replace

from hypothesis import strategies as st

from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, SinkSettings
from rvtrace_gdb.decode.ntrace.options import DIALECTS
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.decode.trap_cause import TrapRegisters
from rvtrace_gdb.session.capture.etrace_settings import values_of
from rvtrace_gdb.session.capture.model import (
    Capture,
    CapturedEncoder,
    CapturedImage,
    CapturedRecords,
    CapturedSink,
    CapturedTrap,
    DebuggerWrites,
    ElfIdentity,
    PlacedElf,
    PlaceNote,
    SavedAt,
    SavedMemory,
    SavedRegisters,
    Unregistered,
)
from rvtrace_gdb.support.extents import Extent
from tests.session.etraces import etraces

SMALL = Capture(
    created="2025-01-02T03:04:05Z",
    tool="rvtrace 0.1.0",
    target="board",
    xlen=64,
    elf=ElfIdentity("/home/me/äpp.elf", "ee26895712f71c328ce434b27dbd666cfdca613d", "ab" * 32),
    encoders=(CapturedEncoder(0, EncoderSettings("encoder0", 0x20000000, 0x0134006F, 0x10010001, 0, 0)),),
    sinks=(
        CapturedSink(
            SinkSettings("ram0", 0x20001000, 0x13, 0x2901, 0x30000000, 0x3000FFFC, 4),
            bytes(range(200)) + bytes(100),
            True,
            4,
            ("encoder0",),
            ("encoder0",),
        ),
    ),
    code=((0x1000, b"\x13\x00\x00\x00" * 8), (0xFFFF_FFFF_FFFF_F000, b"\x01\x00")),
    notes=("encoder0 has no stall", "a second line"),
)

FULL = replace(
    SMALL,
    encoders=(replace(SMALL.encoders[0], unregistered=Unregistered("sifive", 48, 40, 24)),),
    images=(
        CapturedImage(
            "738: a process",
            738,
            None,
            False,
            ((0x10000, b"\x01\x00" * 9), (0x7FFF_9000, b"\x82\x80")),
            (PlacedElf(ElfIdentity("/usr/bin/äpp", None, "cd" * 32), 0x2AAA_0000),),
            ((0x7FFF_0000, 8192, "/usr/lib/libc.so.6"),),
        ),
    ),
)
"""With what needs version 2 of the format."""

WITH_RECORDS = replace(
    FULL,
    records=(
        CapturedRecords(
            1,
            CtrRegisterValues(
                "ctr1", "1.0", 64, 16, 0x0000_8010_0000_0087, 3, 0x8000_0001, 0x8000_0044, 7, 0x8000_0000_0014_1101,
                0x8000_0010,
            ),
            struct.pack("<6Q", 0x8000_0001, 0x8000_0010, 0x8009, 0x8000_0021, 0x8000_0031, 0x0005),
        ),
        CapturedRecords(2, CtrRegisterValues("ctr2", "0.1.4", 32, 256, 7, 0, 0), b""),
    ),
)
"""With what needs version 3."""

WITH_VALUES = replace(
    SMALL,
    registers=(
        SavedRegisters(0, SavedAt.START, 0x8000_0000, {0x300: 0x1800, 0x1002: 0x8000_8000, 0x1020: 7}, True, 3),
        SavedRegisters(0, SavedAt.STOP, 0x8000_0044, {0x1001: 0x8000_0040}),
    ),
    memory=(
        SavedMemory(SavedAt.START, 0x8000_1000, b"data" * 4),
        SavedMemory(SavedAt.STOP, 0x8000_0000, bytes(range(64))),
    ),
    written=(
        DebuggerWrites(0, 0x8000_0010, {0x100A: 3}, ((0x8000_1000, b"\x01\x02"),)),
        DebuggerWrites(0, 0x8000_0020, {}, (), unknown=True),
        DebuggerWrites(0, 0x8000_0030, halts=5, breakpoints=(Extent(0x8000_0040, 2), Extent(0x8000_0044, 4))),
        DebuggerWrites(0, None, halts=0),
    ),
    ranges=(
        MemoryRange(0x8000_0000, 0x10_0000, MemoryKind.RAM, (0,), False, "sram"),
        MemoryRange(0x1000_0000, 8, MemoryKind.VOLATILE),
    ),
    place_notes=(PlaceNote(2, 0, 17, 0x8000_0040, "here"), PlaceNote(1, 0, None, None, "ä gap")),
)
"""With what values are computed from."""

_names = st.text(max_size=8)
_words = st.integers(0, 0xFFFF_FFFF)
_addresses = st.integers(0, (1 << 64) - 1)
_numbers = st.integers(0, 1 << 40)
_bits = st.none() | st.integers(0, 64)
_etrace_controls = _words.map(lambda word: word & ~(7 << 24))  # trTeFormat 0
_encoders = st.builds(
    CapturedEncoder,
    _numbers,
    st.builds(EncoderSettings, _names, _addresses, _words | _etrace_controls, _words, _words, _words, _words),
    st.builds(
        Unregistered,
        st.none() | st.sampled_from(sorted(DIALECTS)),
        _bits,
        _bits,
        st.none() | st.integers(1, 32),
        st.just({}) | etraces.map(values_of),
    ),
)
_elves = st.builds(ElfIdentity, _names, st.none() | _names, _names)
_code = st.lists(st.tuples(_addresses, st.binary(max_size=99)), max_size=3).map(tuple)
_contexts = st.none() | _numbers
_images = st.builds(
    CapturedImage,
    _names,
    _contexts,
    _contexts,
    st.none() | st.booleans(),
    _code,
    st.lists(st.builds(PlacedElf, _elves, _addresses), max_size=2).map(tuple),
    st.lists(st.tuples(_addresses, _numbers, _names), max_size=2).map(tuple),
)
_in_force = st.builds(SinkSettings, _names, _addresses, _words, _words, _addresses, _addresses, _numbers)
_long = st.integers(0, (1 << 64) - 1)
_recording = st.builds(
    CtrRegisterValues, _names, st.sampled_from(["1.0", "0.1.4"]), st.sampled_from([32, 64]),
    st.sampled_from([16, 32, 64, 128, 256]), _long, _long, _long, st.none() | _addresses, st.none() | st.integers(0, 7),
    st.none() | _long,
)  # fmt: skip
_entries = st.integers(0, 16).flatmap(lambda count: st.binary(min_size=24 * count, max_size=24 * count))
_records = st.builds(CapturedRecords, _numbers, _recording, _entries)
_traps = st.builds(CapturedTrap, _numbers, st.builds(TrapRegisters, st.sampled_from([1, 3]), *[_addresses] * 5))

_at = st.sampled_from(SavedAt)
_privileges = st.none() | st.integers(0, 7)
_values = st.dictionaries(st.integers(0, 0x103F), _long, max_size=3)
_low = st.integers(0, (1 << 64) - 100)
_saved_registers = st.builds(SavedRegisters, _numbers, _at, _addresses, _values, st.booleans(), _privileges)
_saved_memory = st.builds(SavedMemory, _at, _low, st.binary(max_size=99))
_stores = st.lists(st.tuples(_low, st.binary(max_size=9)), max_size=2).map(tuple)
_breakpoints = st.lists(st.tuples(_addresses, st.integers(1, 16)), max_size=2).map(tuple)
_written = st.builds(
    DebuggerWrites, _numbers, st.none() | _addresses, _values, _stores, st.booleans(), _breakpoints, _numbers
)
_ranges = st.builds(
    MemoryRange, _low, st.integers(1, 99), st.sampled_from(MemoryKind),
    st.lists(_numbers, max_size=2).map(tuple), st.booleans(), _names,
)  # fmt: skip

_from_one = st.integers(1, 1 << 40)
_place_notes = st.builds(
    PlaceNote, _from_one, _numbers, st.none() | _from_one, st.none() | _addresses, st.text(min_size=1, max_size=8)
)


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    """Any capture that can be saved."""
    encoders = tuple(draw(st.lists(_encoders, max_size=3)))
    feeding = st.lists(st.sampled_from([e.in_force.name for e in encoders]), max_size=3) if encoders else st.just([])
    sinks = st.builds(
        CapturedSink, _in_force, st.binary(max_size=99), st.booleans(), _numbers, feeding.map(tuple), feeding.map(tuple)
    )
    return Capture(
        draw(_names),
        draw(_names),
        draw(_names),
        draw(st.sampled_from([32, 64])),
        draw(st.none() | _elves),
        encoders,
        tuple(draw(st.lists(sinks, max_size=2))),
        draw(_code),
        tuple(draw(st.lists(_names, max_size=3))),
        tuple(draw(st.lists(_images, max_size=2))),
        tuple(draw(st.lists(_records, max_size=2))),
        traps=tuple(draw(st.lists(_traps, max_size=2))),
        registers=tuple(draw(st.lists(_saved_registers, max_size=2))),
        memory=tuple(draw(st.lists(_saved_memory, max_size=2))),
        written=tuple(draw(st.lists(_written, max_size=2))),
        ranges=tuple(draw(st.lists(_ranges, max_size=2))),
        place_notes=tuple(draw(st.lists(_place_notes, max_size=2, unique_by=lambda it: it.id))),
    )
