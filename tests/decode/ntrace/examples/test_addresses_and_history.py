"""RISC-V N-Trace 1.0, 9.3 "Repeated History Optimization" and 9.4 "Virtual Addresses Optimization"."""

from typing import Any

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.messages import Sync
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import Recorder, blocks, decoded, encoded, image_of, message, read, started, stopped

# A loop with two branches: 150 times the first is not taken and the second is; then the first leaves it.
LOOP = image_of((0x100, [asm.c_beqz(6), asm.c_beqz(-2), asm.C_NOP, asm.C_NOP]))
ONCE = [0x100, 0x102]
FULL = 0x5555_5555  # 0b1_01_0101_..., the stop bit and 15 times 01


def check(history: History) -> None:
    assert list(history.pcs()) == ONCE * 150 + [0x100]
    assert history.gaps == 0


REPETITIONS = {
    "10 messages with RCODE=1": [message("ResourceFull", rcode=1, rdata=FULL)] * 10,
    "RCODE=2, HREPEAT=10": [message("ResourceFull", rcode=2, rdata=FULL, hrepeat=10)],
    "RCODE=2, RDATA=0b1_01, HREPEAT=150": [message("ResourceFull", rcode=2, rdata=0b101, hrepeat=150)],
    "any sequence with the same bits": [
        message("ResourceFull", rcode=2, rdata=FULL, hrepeat=4),
        message("ResourceFull", rcode=1, rdata=0b10),
        message("ResourceFull", rcode=2, rdata=0b110, hrepeat=88),
        message("ResourceFull", rcode=1, rdata=0b11),
        message("ResourceFull", rcode=1, rdata=0b101),
    ],
    "several with the highest HREPEAT": [message("ResourceFull", rcode=2, rdata=0b101, hrepeat=75)] * 2,
    "HREPEAT=1": [message("ResourceFull", rcode=2, rdata=FULL, hrepeat=1)] * 10,
}


@pytest.mark.parametrize("messages", REPETITIONS.values(), ids=REPETITIONS)
def test_section_9_3_the_ways_to_say_the_same(messages: list[bytes]) -> None:
    """ "Any sequence of ResourceFull messages as long as the logically concatenated sequence of HIST bits" is one."""
    check(decoded(LOOP, started(), *messages, stopped(301, 1)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [message("ResourceFull", rcode=1, rdata=FULL)] * 10),
        ({"repeated_history": True}, REPETITIONS["RCODE=2, HREPEAT=10"]),
        ({"repeated_history": True, "repeat_shortest": True}, REPETITIONS["RCODE=2, RDATA=0b1_01, HREPEAT=150"]),
        ({"repeated_history": True, "hist_limit": 3}, REPETITIONS["RCODE=2, RDATA=0b1_01, HREPEAT=150"]),
        (
            {"repeated_history": True, "hrepeat_limit": 4},
            [message("ResourceFull", rcode=2, rdata=FULL, hrepeat=count) for count in (4, 4, 2)],
        ),
    ],
    ids=["off", "10 in one", "shortest pattern", "small register", "highest HREPEAT 4"],
)
def test_section_9_3_as_the_encoder_says_it(options: dict[str, Any], expected: list[bytes]) -> None:
    messages = encoded(LOOP, [*ONCE * 150, 0x100], 0x106, **({"hist_limit": 31} | options))
    assert messages == [started(), *expected, stopped(301, 0b11)]
    check(decoded(LOOP, *messages))


def test_section_9_3_a_different_history_ends_the_count() -> None:
    """Two patterns, five times each: two messages, and the repetition pending at the end is not forgotten."""
    image = image_of((0x100, [asm.c_beqz(-2), asm.c_beqz(2)]), (0xFE, [asm.C_NOP]))
    pcs = [0x100, 0xFE] * 10 + [0x100, 0x102]
    messages = encoded(image, pcs, 0x104, repeated_history=True, hist_limit=3)
    assert messages == [
        started(),
        message("ResourceFull", rcode=2, rdata=0b111, hrepeat=5),
        message("ResourceFull", rcode=1, rdata=0b100),
        stopped(22, 1),
    ]
    assert list(decoded(image, *messages).pcs()) == pcs


def test_section_9_3_before_any_other_message() -> None:
    """The pending count goes out before a message that carries what comes after it: here a jump."""
    image = image_of((0x100, [asm.c_beqz(2), asm.c_beqz(-2), asm.c_jr(6)]))
    pcs = [*ONCE * 9, 0x100, 0x102, 0x104, 0x100]
    messages = encoded(image, pcs, None, repeated_history=True, hist_limit=3)
    assert messages[1] == message("ResourceFull", rcode=2, rdata=0b101, hrepeat=9)
    assert list(decoded(image, *messages).pcs()) == pcs


# 9.4, "Example Encodings": the bytes of the field as listed, F-ADDR and the address they stand for.
ENCODINGS = {
    "non-extended": ("111111_00 " * 5 + "011111_01", 0x7_FFFF_FFFF, 0xF_FFFF_FFFE),
    "extended": ("111111_00 " * 4 + "011111_00 111100_01", 0xF_1FFF_FFFF, 0xFFFF_FFFE_3FFF_FFFE),
    "extra MDO with all 0-s": ("111111_00 " * 6 + "000000_01", 0xF_FFFF_FFFF, 0x1F_FFFF_FFFE),
    "invalid address": ("111111_00 " * 10 + "000101_01", 0x5FFF_FFFF_FFFF_FFFF, 0xBFFF_FFFF_FFFF_FFFE),
}
HEAD = bytes([29 << 2, 2 << 2, 1])  # IndirectBranchHistSync, SYNC=2, B-TYPE=0, I-CNT=0: the byte before F-ADDR
TAIL = bytes([1 << 2 | 3])  # HIST=1


def listed(text: str) -> bytes:
    return bytes(int(byte.replace("_", ""), 2) for byte in text.split())


@pytest.mark.parametrize(("field", "faddr", "address"), ENCODINGS.values(), ids=ENCODINGS)
def test_section_9_4_example_encodings_decoded(field: str, faddr: int, address: int) -> None:
    raw = HEAD + listed(field) + TAIL
    assert read(raw)["faddr"] == faddr
    image = image_of((address, [asm.C_NOP]), xlen=64)
    history = decoded(image, raw, stopped(1), extend_addr_msb=True)
    assert list(history.pcs()) == [address]
    plain = faddr << 1
    history = decoded(image_of((plain, [asm.C_NOP]), xlen=64), raw, stopped(1), extend_addr_msb=False)
    assert list(history.pcs()) == [plain]


@pytest.mark.parametrize(("field", "faddr", "address"), ENCODINGS.values(), ids=ENCODINGS)
def test_section_9_4_example_encodings_encoded(field: str, faddr: int, address: int) -> None:
    """Byte for byte: the shortest number of MDO groups whose top bit extends to what was left out."""
    image = image_of((address & -4096, [asm.C_NOP] * 2048), xlen=64)
    recorder = Recorder(extend_addr_msb=True)
    recorder.retire(*blocks(image, [address - 2]))
    recorder.encoder.mark(Sync.PERIODIC)
    recorder.retire(*blocks(image, [address]))
    (raw,) = [raw for raw in recorder.raw if read(raw)["name"] == "IndirectBranchHistSync"]
    assert raw == bytes([29 << 2, 2 << 2, 1 << 2 | 1]) + listed(field) + TAIL
    assert read(raw)["faddr"] == faddr


def test_section_9_4_a_linux_address() -> None:
    """0xFFFF_FFFF_8000_31F4, "a real address from the Linux kernel": 11 bytes without, fewer with the optimization."""
    image = image_of((0xFFFF_FFFF_8000_31F4, [asm.C_NOP]), xlen=64)
    plain, short = (encoded(image, [0xFFFF_FFFF_8000_31F4], extend_addr_msb=on)[0] for on in (False, True))
    assert read(plain)["faddr"] == 0x7FFF_FFFF_C000_18FA
    assert (len(plain), len(short)) == (2 + 11, 2 + 6)
    for raw, on in ((plain, False), (short, True)):
        assert list(decoded(image, raw, stopped(1), extend_addr_msb=on).pcs()) == [0xFFFF_FFFF_8000_31F4]


def test_section_9_4_u_addr_is_extended_before_the_xor() -> None:
    """ "Calculation of full address must be done after sign extension of U-ADDR field": from user to kernel."""
    kernel, user = 0xFFFF_FFFF_8000_0100, 0x10100
    image = image_of((kernel, [asm.C_NOP, asm.c_jr(6)]), (user, [asm.c_jr(6)]), xlen=64)
    pcs = [user, kernel, kernel + 2, user]
    messages = encoded(image, pcs, None, extend_addr_msb=True)
    assert len(messages[1]) <= 2 + 6 + 1
    assert list(decoded(image, *messages, extend_addr_msb=True).pcs()) == pcs
    by_hand = read(messages[1])
    negative = int(by_hand["uaddr"]) - (1 << 6 * (len(messages[1]) - 3))
    assert (user ^ negative << 1) & (1 << 64) - 1 == kernel


def test_section_9_4_to_bit_31_on_a_32_bit_core() -> None:
    """ "Must be extended up to bit#63 or bit#31 (depending on XLEN of the core)"."""
    image = image_of((0xFFFF_F100, [asm.C_NOP, asm.C_NOP]))
    raw = bytes.fromhex("24 0d") + listed("000000_00 100010_11")  # 0x880
    assert read(raw)["faddr"] == 0x880
    history = decoded(image, raw, stopped(2), extend_addr_msb=True)
    assert list(history.pcs()) == [0xFFFF_F100, 0xFFFF_F102]
    assert encoded(image, [0xFFFF_F100], extend_addr_msb=True, xlen=32)[0] == raw
