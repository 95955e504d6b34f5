"""te_inst packets, bit by bit: bytes made by hand from the tables of the document.

Source: Efficient Trace for RISC-V 2.0, "Instruction Trace Encoder Output Packets". Bits are given in the order of
transmission, first bit of the packet first; each byte is eight of them, read backwards.
"""

import pytest

from rvtrace_gdb.decode.etrace.layout import MalformedPacket, Packet
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters
from rvtrace_gdb.decode.etrace.packet import build, parse

RV32 = Parameters(iaddress_width=32, iaddress_lsb=1, privilege_width=2, ecause_width=5)
PLAIN = Modes()


def bits(text: str) -> bytes:
    """The bytes of bits in the order of transmission; the last one is repeated up to a whole byte."""
    text = text.replace(" ", "")
    text += text[-1] * (-len(text) % 8)
    return bytes(int(text[i : i + 8][::-1], 2) for i in range(0, len(text), 8))


def short(text: str) -> str:
    """Bits without those at the end that equal the one before ("sign based compression")."""
    text = text.replace(" ", "")
    return text.rstrip(text[-1]) + text[-1]


def low_first(value: int, width: int) -> str:
    """A field of *width* bits, in the order of transmission."""
    return f"{value & (1 << width) - 1:0{width}b}"[::-1]


def both_ways(text: str, expected: Packet, parameters: Parameters = RV32, modes: Modes = PLAIN) -> None:
    """The bits *text* are read as *expected*, which is written as them, compressed or not."""
    options = Options(parameters, modes)
    format, subformat, fields = expected
    for payload, compress in ((bits(short(text)), True), (bits(text), False)):
        assert parse(payload, options, modes) == expected
        assert build(format, subformat, fields, options, modes, compress=compress) == payload


@pytest.mark.parametrize(
    ("payload", "address"),
    [
        # 01 0001.. : format 2 is "01" lowest bit first; 2 bytes further is difference 1, then zeros: 01 100000 | 00..
        (b"\x06", 2),
        # 01 0..0 : no difference at all
        (b"\x02", 0),
        # 01 111111 | 11.. : -1 in units of two bytes; ones to the end, flags like the bits before them
        (b"\xfe", -2),
        # 0x4a: 01 010100 | 10 000000 = 02 + 0x28 -> 2a, 01
        (b"\x2a\x01", 0x94),
        # the largest: 30 ones and the sign 0: 01 111111 | 11111111 | 11111111 | 11111111 | 0 000.. the flags are 0 too
        (b"\xfe\xff\xff\xff\x00", 0x7FFFFFFE),
        # the smallest: 30 zeros and the sign 1, flags 1
        (b"\x02\x00\x00\x00\xff", -0x80000000),
    ],
)
def test_format_2_differences(payload: bytes, address: int) -> None:
    """ "Format 2 packets": a difference, in as few bytes as hold its sign."""
    fields = {"address": address, "notify": 0, "updiscon": 0, "irreport": 0}
    assert build(2, None, fields, Options(RV32), PLAIN) == payload
    assert parse(payload, Options(RV32), PLAIN) == Packet(2, None, fields)


def test_irdepth() -> None:
    """ "irdepth": return_stack_size + 1 + call_counter_size bits, there if irreport differs from updiscon."""
    both = Parameters(iaddress_width=32, iaddress_lsb=1, return_stack_size=3, call_counter_size=2)
    told = {"address": 4, "notify": 0, "updiscon": 0, "irreport": 1, "irdepth": 0b101101}
    payload = "01" + low_first(2, 31) + "001" + low_first(0b101101, 6)
    both_ways(payload, Packet(2, None, told), both)
    nothing = {"address": 4, "notify": 0, "updiscon": 1, "irreport": 0}  # irdepth: copies of updiscon, which go away
    both_ways("01" + low_first(2, 31) + "01" + "1" + "1" * 6, Packet(2, None, nothing), both)
    counter = Parameters(iaddress_width=32, iaddress_lsb=1, call_counter_size=4)  # no stack: no bit more
    told = {"address": 4, "notify": 0, "updiscon": 0, "irreport": 1, "irdepth": 0b0110}
    both_ways("01" + low_first(2, 31) + "001" + "0110", Packet(2, None, told), counter)


def test_the_synchronization_of_the_encapsulation_example() -> None:
    """The first packet of vectors/encap, as the notes have it: 73 00 00 00 00 00 04 and its sign.

    11 00 1 11 | 0 ... : branch 1, privilege 3 (M); bit 50 of the payload is bit 43 of the field, of the address 44.
    """
    fields = {"branch": 1, "privilege": 3, "context": 0, "address": 0x1000}
    parameters = Parameters(64, 1, 2, context_width=32)
    payload = bytes.fromhex("73000000000004")
    assert parse(payload, Options(parameters), PLAIN) == Packet(3, 0, fields)
    assert build(3, 0, fields, Options(parameters), PLAIN) == payload


def trap(interrupt: int, thaddr: int, **more: int) -> Packet:
    """A trap from U-mode."""
    fields = {"branch": 1, "privilege": 0, "ecause": 13, "interrupt": interrupt, "thaddr": thaddr}
    return Packet(3, 1, {**fields, **more})


def test_traps() -> None:
    """ "Format 3 subformat 1": tval is not there for interrupts, and may end anywhere."""
    head = "11" + "10" + "1" + "00" + low_first(13, 5)
    address = low_first(0x80001000 >> 1, 31)
    tval = low_first(0xC0000001, 32)
    both_ways(head + "01" + address + tval, trap(0, 1, address=0x80001000, tval=0xC0000001))
    both_ways(head + "11" + address, trap(1, 1, address=0x80001000))
    both_ways(head + "00" + address + tval, trap(0, 0, address=0x80001000, tval=0xC0000001))
    both_ways(head + "01" + address + "0" * 32, trap(0, 1, address=0x80001000, tval=0))  # nothing of tval is sent


PREDICTOR = Parameters(32, 1, bpred_size=5, f0s_width=0)
PREDICTS = Modes(branch_prediction=True)


def test_reserved_branch_fmt() -> None:
    """ "branch_fmt": 01 cannot occur in either packet."""
    with pytest.raises(MalformedPacket, match="reserved branch_fmt 1"):
        parse(bits("00" + low_first(7, 32) + "10"), Options(PREDICTOR, PREDICTS), PREDICTS)


CACHE = Parameters(32, 1, cache_size=5, return_stack_size=2, f0s_width=0)
CACHES = Modes(jump_target_cache=True)


def test_jump_targets() -> None:
    """ "Packet format 0, subformat 1": irreport is relative to the MSB of branch_map, or of branches."""
    mapped = {"index": 19, "branches": 3, "branch_map": 0b100, "irreport": 0}
    both_ways("00" + "11001" + "11000" + "001" + "1111", Packet(0, 1, mapped), CACHE, CACHES)
    both_ways("00" + "11001" + "00000" + "0000", Packet(0, 1, {"index": 19, "branches": 0, "irreport": 0}),
              CACHE, CACHES)  # fmt: skip
    failed = {"index": 19, "branches": 3, "branch_map": 0b100, "irreport": 1, "irdepth": 0b011}
    both_ways("00" + "11001" + "11000" + "001" + "0" + "110", Packet(0, 1, failed), CACHE, CACHES)
    failed = {"index": 19, "branches": 0, "irreport": 1, "irdepth": 0b100}
    both_ways("00" + "11001" + "00000" + "1" + "001", Packet(0, 1, failed), CACHE, CACHES)


@pytest.mark.parametrize("width", [1, 2])
def test_subformat_of_format_0_is_sent(width: int) -> None:
    """ "Format 0 subformat field": its width is f0s_width."""
    parameters = Parameters(32, 1, bpred_size=2, cache_size=5, f0s_width=width)
    modes = Modes(branch_prediction=True, jump_target_cache=True)
    sub = low_first(1, width)
    payload = "00" + sub + "11001" + "00000" + "0"
    both_ways(payload, Packet(0, 1, {"index": 19, "branches": 0, "irreport": 0}), parameters, modes)
    payload = "00" + "0" * width + low_first(85, 32) + "00"
    both_ways(payload, Packet(0, 0, {"branch_count": 85, "branch_fmt": 0}), parameters, modes)


def test_subformat_of_format_0_follows_from_what_there_is() -> None:
    """ "Format 0 subformat field": left out, it is inferred from the options; where these are not known, from sizes."""
    payload = bits("00" + "11001" + "00000" + "0")
    both = Parameters(32, 1, bpred_size=5, cache_size=5, f0s_width=0)
    assert parse(payload, Options(both), CACHES).subformat == 1
    assert parse(payload, Options(both), PREDICTS).subformat == 0
    assert parse(payload, Options(CACHE), PLAIN).subformat == 1
    assert parse(payload, Options(PREDICTOR), PLAIN).subformat == 0
    with pytest.raises(MalformedPacket, match="neither modes nor sizes say which"):
        parse(payload, Options(both), PLAIN)


def test_width_of_subformat_if_nothing_is_said() -> None:
    """ "Format 0 subformat field": with both extensions it "must be non-zero"."""
    both = Parameters(32, 1, bpred_size=5, cache_size=5)
    assert parse(bits("00" + "1" + "11001" + "00000" + "0"), Options(both), PLAIN).subformat == 1
    one = parse(bits("00" + "11001" + "00000" + "0"), Options(Parameters(32, 1, cache_size=5)), PLAIN)
    assert (one.subformat, one.fields["index"]) == (1, 19)


def test_reserved_subformat() -> None:
    """Subformats 2 and 3 of format 0 are "to be added in future"."""
    parameters = Parameters(32, 1, bpred_size=2, cache_size=5, f0s_width=2)
    with pytest.raises(MalformedPacket, match="format 0 subformat 2 is not one"):
        parse(bits("00" + "01" + "1100"), Options(parameters), PLAIN)


@pytest.mark.parametrize(
    ("parameters", "modes", "why"),
    [
        (PREDICTOR, CACHES, "an entry of the jump target cache, but there is none: cache_size is 0"),
        (CACHE, PREDICTS, "a count of predicted branches, but no branch predictor: bpred_size is 0"),
    ],
)
def test_extensions_that_are_not_there(parameters: Parameters, modes: Modes, why: str) -> None:
    """Modes say they are on, sizes that they do not exist: "a value of 0 indicates that there is no"."""
    with pytest.raises(MalformedPacket, match=why):
        parse(bits("00" + "1100100"), Options(parameters), modes)


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "an empty packet"),
        (b"\x06\x00\x00\x00\x00\x00\x12", "7 bytes, of which 5 are fields"),
        (bytes(8), "format 0 without subformat"),
    ],
)
def test_what_is_no_packet(payload: bytes, why: str) -> None:
    """Said with a reason."""
    with pytest.raises(MalformedPacket, match=why):
        parse(payload, Options(RV32), PLAIN)


def test_padding_is_no_fault() -> None:
    """Up to a whole byte it may be anything (e-trace-encap, "Packet Length"); bytes that tell nothing are let be."""
    fields = {"branch": 1, "privilege": 3, "address": 0x80000000}
    plain = bits("11" + "00" + "1" + "11" + low_first(0x80000000 >> 1, 31) + "00")  # two bits of padding, not the sign
    assert parse(plain, Options(RV32), PLAIN) == Packet(3, 0, fields)
    assert parse(plain + bytes(2), Options(RV32), PLAIN) == Packet(3, 0, fields)


@pytest.mark.parametrize(
    ("key", "fields", "why"),
    [
        ((2, None), {}, "address is missing"),
        ((2, None), {"address": 1}, "address 0x1 has one of the 1 low bits that are not sent"),
        ((3, 0), {"branch": 1, "privilege": 4, "address": 0}, "privilege 0x4 does not fit 2 bits"),
        ((3, 0), {"branch": 1, "privilege": 3, "address": 1 << 32}, "address 0x100000000 does not fit 31 bits"),
        ((3, 0), {"branch": 1, "privilege": 3, "address": -2}, "address -0x2 does not fit 31 bits"),
        ((1, None), {"branches": 2, "branch_map": 8, "address": 0}, "branch_map 0x8 does not fit 3 bits"),
        ((2, None), {"address": 0, "notify": 2}, "notify 0x2 does not fit 1 bits"),
        ((2, 1), {"address": 0}, "no packet has format 2, subformat 1"),
    ],
)
def test_what_cannot_be_built(key: tuple[int, int | None], fields: dict[str, int], why: str) -> None:
    """Said with the field."""
    with pytest.raises(ValueError, match=why):
        build(*key, fields, Options(RV32), PLAIN)
