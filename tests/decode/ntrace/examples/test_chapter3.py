"""RISC-V N-Trace 1.0, chapter 3, "N-Trace Transmission Protocol": its tables and examples, one test each."""

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.decoder import decode_streams
from rvtrace_gdb.decode.ntrace.framing import FrameBatch, MessageFramer, is_idle
from rvtrace_gdb.decode.ntrace.messages import parse
from rvtrace_gdb.decode.ntrace.options import Options
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import (
    decoded,
    groups,
    image_of,
    message,
    of_kind,
    read,
    split,
    started,
    stopped,
    vendor,
)

IMAGE = image_of((0x100, [asm.C_NOP] * 0x7C + [asm.c_jr(6)]), (0x200, [asm.C_NOP] * 4))


def frames(stream: bytes) -> list[bytes]:
    return [frame for item in MessageFramer().feed(stream) if isinstance(item, FrameBatch) for frame in item.frames()]


# Bytes by their MSEO, with arbitrary MDO: 00 is 0xA4, 01 is 0x15, 11 is 0x4B; 0xFF is idle.
TRANSITIONS = {
    "start of message: 11-00": ("a44b a44b", ["a44b", "a44b"]),
    "middle of field: 00-00": ("a4a4 4b", ["a4a44b"]),
    "middle of field: 01-00": ("a415 a44b", ["a415a44b"]),
    "end of variable-length field: 00-01": ("a415 4b", ["a4154b"]),
    "end of variable-length field: 01-01": ("a415 154b", ["a415154b"]),
    "end of message: 00-11": ("a44b", ["a44b"]),
    "end of message: 01-11": ("a4154b", ["a4154b"]),
    "idle (no message): 11-11": ("a44b ffff a44b ff", ["a44b", "ffff", "a44b", "ff"]),
}


@pytest.mark.parametrize(("stream", "expected"), TRANSITIONS.values(), ids=TRANSITIONS)
def test_section_3_1_mseo_transitions(stream: str, expected: list[str]) -> None:
    found = frames(bytes.fromhex(stream))
    assert [frame.hex() for frame in found] == expected
    assert [is_idle(frame) for frame in found] == [frame.startswith("ff") for frame in expected]


@pytest.mark.parametrize(
    ("reserved", "why"),
    [
        ("15 4b", "do not start a message"),  # 11-01
        ("06 4b", "reserved MSEO value 10"),  # 11-10
        ("a4 06 4b", "reserved MSEO value 10"),  # 00-10
        ("a4 15 06 4b", "reserved MSEO value 10"),  # 01-10
    ],
)
def test_section_3_1_reserved_mseo_transitions(reserved: str, why: str) -> None:
    """Reported with their place; the next synchronizing message ends the gap."""
    bad = bytes.fromhex(reserved)
    first = message("ResourceFull", rcode=0, rdata=2)
    history = decoded(IMAGE, started(), first, bad, started(0x200), stopped(1))
    assert list(history.pcs()) == [0x100, 0x102, -1, 0x200]
    cause = history.gap_at(2)
    assert (cause.kind, cause.offset) == (EventKind.LOSS, len(started() + first))
    assert why in cause.text
    assert history.accounting.skipped == len(bad)


def test_section_3_2_unified_message_structure() -> None:
    """TCODE first, then SRC, TSTAMP last: sources are told apart without knowing what a message means."""
    source = (4, 9)
    known = parse(message("DirectBranch", source, tstamp=77, icnt=5), 4)
    assert (known.tcode, known.src, dict(known.fields), known.tstamp) == (3, 9, {"icnt": 5}, 77)
    unknown = parse(vendor(57, 1, 2, 3, source=source), 4)
    assert (unknown.tcode, unknown.src) == (57, 9)


def test_section_3_3_order_of_bits_and_bytes() -> None:
    """Least significant bits first, MSEO below MDO: F-ADDR 0x12345 in three bytes, by hand."""
    raw = bytes([9 << 2, 2 << 2 | 1, 0x05 << 2, 0x0D << 2, 0x12 << 2 | 3])
    assert raw == message("ProgTraceSync", sync=2, icnt=0, faddr=0x12345)
    assert dict(parse(raw, 0).fields) == {"sync": 2, "icnt": 0, "faddr": 0x12345}


@pytest.mark.parametrize("idle", [0, 1, 2, 8, 5000])
def test_section_3_4_idle_between_messages(idle: int) -> None:
    """ "Conformant trace probes must handle any number of idle clocks"; in bytes, each is 0xFF."""
    filling = b"\xff" * idle
    jump = message("IndirectBranchHist", b_type=0, icnt=0x7D, uaddr=(0x100 ^ 0x200) >> 1, hist=1)
    plain = decoded(IMAGE, started(), jump, stopped(2))
    history = decoded(IMAGE, filling, started(), filling, jump, filling, stopped(2), filling)
    assert list(history.pcs()) == list(plain.pcs()) == [*range(0x100, 0x1FA, 2), 0x200, 0x202]
    assert history.accounting.idle == 4 * idle
    assert history.accounting.skipped == 0


EXAMPLE = bytes.fromhex("70d01d1df8ff")


def test_section_3_5_message_example() -> None:
    """IndirectBranchHist, with idle bytes around it and a last byte that looks like one."""
    parsed = parse(EXAMPLE, 0)
    assert parsed.name == "IndirectBranchHist"
    assert dict(parsed.fields) == {"b_type": 0, "icnt": 0x7D, "uaddr": 7, "hist": 0xFFE}
    assert parsed.tstamp is None
    assert message("IndirectBranchHist", b_type=0, icnt=0x7D, uaddr=7, hist=0xFFE) == EXAMPLE
    jump = message("IndirectBranchHist", b_type=0, icnt=0x7D, uaddr=7, hist=1)
    history = decoded(IMAGE, b"\xff", started(), b"\xff", jump, b"\xff")
    assert list(history.pcs()) == list(range(0x100, 0x1FA, 2))
    assert history.accounting.idle == 3


def test_section_3_5_the_last_byte_0xff_is_not_idle() -> None:
    assert frames(b"\xff" + EXAMPLE + b"\xff") == [b"\xff", EXAMPLE, b"\xff"]
    assert list(split(b"\xff" + EXAMPLE + b"\xff\xff" + EXAMPLE)) == [EXAMPLE, EXAMPLE]  # the tests' own reader


def test_section_3_5_with_source_and_timestamp() -> None:
    """SRC "would shift the start of B-TYPE", with TSTAMP the "previous MSEO should become 01"."""
    with_tstamp = EXAMPLE[:-1] + b"\xfd" + b"\x57"
    assert (parse(with_tstamp, 0).fields, parse(with_tstamp, 0).tstamp) == (parse(EXAMPLE, 0).fields, 0x15)
    shifted = groups((28, 6), (5, 3), (0, 2), (0x7D, 0), (7, 0), (0xFFE, 0))
    assert (parse(shifted, 3).fields, parse(shifted, 3).src) == (parse(EXAMPLE, 0).fields, 5)
    assert read(shifted, 3)["hist"] == 0xFFE


def test_chapter_3_the_longest_standard_message() -> None:
    """IndirectBranchHistSync with every field as wide as chapter 6 allows: no more than 38 bytes, and read back."""
    fields = {"sync": 15, "b_type": 3, "icnt": (1 << 22) - 1, "faddr": (1 << 63) - 1, "hist": (1 << 32) - 1}
    raw = message("IndirectBranchHistSync", (12, 4095), tstamp=(1 << 64) - 1, **fields)
    assert len(raw) <= 38
    parsed = parse(raw, 12)
    assert (parsed.src, dict(parsed.fields), parsed.tstamp) == (4095, fields, (1 << 64) - 1)


def test_chapter_3_a_trace_of_zeros() -> None:
    """ "A trace consisting entirely of zeros, which could be interpreted as an unusually long field"."""
    history = decoded(IMAGE, bytes(200_000))
    assert len(history) == 0
    assert history.accounting == (200_000, 0, 0, 200_000)
    assert history.events


# Filling of other bytes than 0xFF: what the encoder of tenstorrent/tt-dfd (f8a2186, Apache-2.0) sent, simulated, with
# a byte 0x03 after each ResourceFull. 41 rounds of two branches, the first never taken, the second back to the start.
OF_RTL = bytes.fromhex(
    "244001000000000007 08000f 6c40a0a8a8a8a82b 03 6c40505454545437 03 70000825008150545417 70003100810f 84009507"
)
ITS_CODE = image_of(
    (0x8000_0000, [*[asm.NOP] * 3, asm.beq(16), *[asm.NOP] * 2, asm.beq(-24), asm.NOP, asm.jalr(0, 6)]),
    (0x8000_1000, [*[asm.NOP] * 2, asm.beq(12), *[asm.NOP] * 4, asm.jalr(0, 6)]),
    xlen=64,
)


@pytest.mark.parametrize("src_id", [None, 0], ids=["all harts", "one hart"])
def test_any_byte_with_mseo_11_between_messages_is_idle(src_id: int | None) -> None:
    """As other decoders take it; a message has two bytes at least. 578 halfwords are 41 rounds of 14 and two more."""
    ran = decoded(ITS_CODE, OF_RTL, src_bits=4, src_id=src_id)
    assert (ran.instructions, ran.gaps) == (41 * 7 + 2 + 6 + 1, 0)
    assert ran.accounting == (50, 48, 2, 0)
    (note,) = of_kind(ran, EventKind.NOTE)
    assert (note.offset, note.text) == (0x14, "a byte 0x03 between messages is treated as idle, which is 0xff")


def test_what_is_said_of_such_bytes_is_said_once_whoever_speaks() -> None:
    stream = b"\x03" + message("Ownership", (2, 1), process=0xC) + b"\x07\x03" + started_by(2) + b"\x03"
    streams = decode_streams(stream, IMAGE, Options(src_bits=2))
    notes = [
        (note.offset, note.text[:11]) for ran in streams.histories.values() for note in of_kind(ran, EventKind.NOTE)
    ]
    assert notes == [(0, "a byte 0x03")]
    assert streams.accounting.idle == 4
    alone = decoded(IMAGE, b"\x03\x07", started(), stopped(1), b"\x03")
    assert [note.offset for note in of_kind(alone, EventKind.NOTE)] == [0]
    assert list(alone.pcs()) == [0x100]


def started_by(source: int) -> bytes:
    return message("ProgTraceSync", (2, source), sync=3, icnt=0, faddr=0x80)
