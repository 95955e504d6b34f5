"""The examples and rules of the documents, each a test.

e-trace-encap: Unformatted Trace & Diagnostic Data Packet Encapsulation for RISC-V 1.0. E-Trace: Efficient Trace for
RISC-V 2.0; "Code fragment and transport" is one of its chapters.
"""

import pytest

from rvtrace_gdb.decode.etrace.encapsulation import (
    CannotCarry,
    ContentKind,
    Encapsulation,
    Idle,
    LostBytes,
    SourcePackets,
)
from tests.decode.etrace.encapsulation.transports import bits_of, items_of, normal, read

ILLEGAL_OPCODE = bytes.fromhex("32 04 00 00 02")
TIMER_LONG_LOOP = bytes.fromhex("BD AA AA 68 00 00 20")
STARTUP_XRLE = bytes.fromhex("73 00 00 00 00 91 82 00 10")


@pytest.mark.parametrize("name", ["encap", "smi"])
@pytest.mark.parametrize(
    ("source", "payload", "trace"),
    [
        (1, ILLEGAL_OPCODE, "06 81 32 04 00 00 02"),
        (0xA, TIMER_LONG_LOOP, "08 8A BD AA AA 68 00 00 20"),
        (5, STARTUP_XRLE, "0A 85 73 00 00 00 00 91 82 00 10"),
    ],
)
def test_siemens_transport(name: str, source: int, payload: bytes, trace: str) -> None:
    """E-Trace, "Siemens transport": srcID of 6 bits, type of 2 where 10 means instruction trace."""
    encapsulation, data = Encapsulation(name, src_bits=6, type_bits=2), bytes.fromhex(trace)
    assert read(encapsulation, data).packets == [(0, source, ContentKind.INSTRUCTION, payload, None)]
    assert encapsulation.framer().packet(payload, source=source) == data


@pytest.mark.parametrize(
    ("source", "payload", "transfers"),
    [
        (1, ILLEGAL_OPCODE, [(3, 0x00043205), (1, 0x00000200)]),
        (0xA, TIMER_LONG_LOOP, [(3, 0xAAAABD07), (3, 0x20000068)]),
        (5, STARTUP_XRLE, [(3, 0x00007309), (3, 0x82910000), (1, 0x00001000)]),
    ],
)
def test_atb_transport(source: int, payload: bytes, transfers: list[tuple[int, int]]) -> None:
    """E-Trace, "ATB transport": transfers of 32 bits, (ATBYTES, ATDATA)."""
    data = b"".join(bytes([source, valid]) + word.to_bytes(4, "little") for valid, word in transfers)
    encapsulation = Encapsulation("atb")
    assert read(encapsulation, data).packets == [(0, source, ContentKind.INSTRUCTION, payload, None)]
    assert encapsulation.framer().packet(payload, source=source) == data


def test_the_atb_example_with_a_timestamp() -> None:
    """E-Trace payload, introduction: "a 5-bit field specifying the payload length in bytes; a bit to indicate whether
    an optional 16-bit timestamp is present; an optional 2-byte timestamp; the packet payload". The bit is bit 5:
    length 5 with it is 0x25. In transfers of 8 bytes: 25, timestamp 1234, payload; the rest is not valid."""
    encapsulation = Encapsulation("atb", timestamp_bytes=2, extend_bit=5, atb_bytes=8)
    data = bytes.fromhex("01 07 25 34 12 32 04 00 00 02")
    assert read(encapsulation, data).packets == [(0, 1, ContentKind.INSTRUCTION, ILLEGAL_OPCODE, 0x1234)]
    assert encapsulation.framer().packet(ILLEGAL_OPCODE, source=1, time=0x1234) == data
    assert read(encapsulation, bytes.fromhex("01 01 41 02 00 00 00 00 00 00")).losses  # there is no flow: bits 6, 7


def test_siemens_infrastructure() -> None:
    """E-Trace payload, introduction: length, flow and timestamp bit in a byte, index, 2-byte timestamp, payload.
    Index 0x2A of 8 bits, timestamp 0x0102, flow 2: length 5 | 2 << 5 | 1 << 7 = 0xC5."""
    data = bytes.fromhex("C5 2A 02 01 32 04 00 00 02 05 2A 32 04 00 00 02")
    content = read(Encapsulation("smi", src_bits=8, timestamp_bytes=2), data)
    assert content.packets == [
        (0, 0x2A, ContentKind.INSTRUCTION, ILLEGAL_OPCODE, 0x0102),
        (9, 0x2A, ContentKind.INSTRUCTION, ILLEGAL_OPCODE, None),
    ]


def test_reference_models() -> None:
    """riscv-trace-spec, referenceFlow: a byte of msg_type << 5 | length; te_inst is 2, te_data 3."""
    data = bytes.fromhex("41 1F 62 02 30 41 1F 81 AA")
    items = items_of(Encapsulation("smi").deframer(wrapped=False), data)
    assert [(item[:3], item.length) for item in items if isinstance(item, SourcePackets)] == [
        ((0, ContentKind.INSTRUCTION, [b"\x1f"]), 2),
        ((0, ContentKind.DATA, [b"\x02\x30"]), 3),
        ((0, ContentKind.INSTRUCTION, [b"\x1f"]), 2),
        ((0, ContentKind.OTHER, [b"\xaa"]), 2),
    ]
    framer = Encapsulation("smi").framer()
    assert framer.packet(b"\x1f") + framer.packet(b"\x02\x30", ContentKind.DATA) + framer.packet(b"\x1f") == data[:7]


@pytest.mark.parametrize("flow", range(4))
@pytest.mark.parametrize("extended", [False, True])
def test_header(flow: int, extended: bool) -> None:
    """ "Header Fields": length, flow, extend; the flow does not matter to who reads."""
    header = 1 | flow << 5 | extended << 7
    data = bytes([header]) + (b"\x44\x33" if extended else b"") + b"\x1f"
    expected = (0, 0, ContentKind.INSTRUCTION, b"\x1f", 0x3344 if extended else None)
    assert read(Encapsulation(timestamp_bytes=2), data).packets == [expected]


def test_extend_is_zero_without_a_timestamp() -> None:
    """ "Must be 0 if timestamp width is 0": such a header is damage, and the bytes behind it are looked at anew."""
    content = read(Encapsulation(), bytes.fromhex("01 1F 81 02") + bytes(40) + bytes.fromhex("01 1F"))
    assert [packet[0] for packet in content.packets] == [0, 44]
    (lost,) = content.losses
    assert lost.offset == 2
    assert lost.why == "0x81 is not a packet header: it announces fields that packets do not have"


@pytest.mark.parametrize("src_bits", range(17))
def test_src_id(src_bits: int) -> None:
    """ "srcID": 0 to 16 bits; "Packet Length": whole bytes of it count apart, the rest with the payload.
    E.g. 9 bits, payload 5 bytes: S = 1, header.length = ceil((40 + 1) / 8) = 6, 1 + 1 + 6 bytes in all."""
    source = 0xA5A5 & (1 << src_bits) - 1
    data = normal(bits_of(int.from_bytes(ILLEGAL_OPCODE, "little"), 40), source=(source, src_bits))
    assert len(data) == 1 + -(-(40 + src_bits) // 8)
    assert data[0] == (6 if src_bits % 8 else 5)
    encapsulation = Encapsulation(src_bits=src_bits)
    assert read(encapsulation, data).packets == [(0, source, ContentKind.INSTRUCTION, ILLEGAL_OPCODE, None)]
    assert encapsulation.framer().packet(ILLEGAL_OPCODE, source=source) == data


@pytest.mark.parametrize("width", range(1, 9))
def test_timestamp(width: int) -> None:
    """ "Timestamp": T bytes where extend is 1. The header is 5 | 1 << 7 = 0x85."""
    time = 0x8877665544332211 & (1 << 8 * width) - 1
    data = b"\x85" + bytes.fromhex("11 22 33 44 55 66 77 88")[:width] + ILLEGAL_OPCODE + b"\x05" + ILLEGAL_OPCODE
    encapsulation = Encapsulation(timestamp_bytes=width)
    assert [packet[4] for packet in read(encapsulation, data).packets] == [time, None]
    framer = encapsulation.framer()
    assert framer.packet(ILLEGAL_OPCODE, time=time + (1 << 64)) + framer.packet(ILLEGAL_OPCODE) == data


def test_one_bit_of_type() -> None:
    """E-Trace's "type": 0 instruction, 1 data trace. The payload 0x0F becomes 0x0F << 1 | type in bits 0 to 8: two
    bytes."""
    data = bytes.fromhex("02 1E 00 02 1F 00")
    encapsulation = Encapsulation(type_bits=1)
    assert [packet[2:4] for packet in read(encapsulation, data).packets] == [
        (ContentKind.INSTRUCTION, b"\x0f"),
        (ContentKind.DATA, b"\x0f"),
    ]
    framer = encapsulation.framer()
    assert framer.packet(b"\x0f") + framer.packet(b"\x0f", ContentKind.DATA) == data


def test_more_bits_of_type() -> None:
    """The same: "A width of 2 or more [...] application specific". Three bits, 5 and 6 chosen; 7 is something else."""
    encapsulation = Encapsulation(type_bits=3, instruction_type=5, data_type=6)
    data = b"".join(normal(bits_of(0x4F, 8), type_=(value, 3)) for value in (5, 6, 7))
    assert [packet[2:4] for packet in read(encapsulation, data).packets] == [
        (ContentKind.INSTRUCTION, b"\x4f"),
        (ContentKind.DATA, b"\x4f"),
        (ContentKind.OTHER, b"\x4f"),
    ]


@pytest.mark.parametrize("padding", [0, 1])
def test_padding_is_not_read(padding: int) -> None:
    """ "Packet Length": the value of padding is "don't care". E-Trace payloads are of whole bytes ("must be
    sign-extended to the nearest byte boundary"), so it is known where they end."""
    data = normal(bits_of(0xFE4200, 24), source=(0xA, 6), type_=(1, 1), padding=padding)
    encapsulation = Encapsulation(src_bits=6, type_bits=1)
    assert read(encapsulation, data).packets == [(0, 0xA, ContentKind.DATA, b"\x00\x42\xfe", None)]


@pytest.mark.parametrize("width", range(1, 20))
def test_payloads_of_any_number_of_bits(width: int) -> None:
    """ "Payload Fields": trace_payload is of any number of bits. Where it is packed so, the padding must repeat its
    last bit, or it could not be read."""
    value = -(1 << width - 1)  # only its last bit is 1
    data = normal(bits_of(value, width), source=(3, 5), type_=(0, 1))
    ((_, source, kind, payload, _),) = read(Encapsulation(src_bits=5, type_bits=1, bit_packed=True), data).packets
    assert (source, kind, int.from_bytes(payload, "little", signed=True)) == (3, ContentKind.INSTRUCTION, value)


def test_a_payload_of_less_than_a_byte_is_read_whatever_was_said() -> None:
    """Five bits behind three of srcID: no whole byte, and not nothing."""
    assert read(Encapsulation(src_bits=3), bytes([1, 0b10110_011])).packets == [
        (0, 3, ContentKind.INSTRUCTION, bytes([0b11110110]), None)
    ]


def test_null_encapsulation() -> None:
    """null.idle 0x00 and null.alignment 0x80, whatever flow."""
    data = bytes.fromhex("00 20 01 1F 80 E0 01 1F 40")
    items = items_of(Encapsulation().deframer(wrapped=False), data)
    assert [item for item in items if isinstance(item, Idle)] == [Idle(0, 2), Idle(4, 2), Idle(8, 1)]
    assert [list(item.offsets) for item in items if isinstance(item, SourcePackets)] == [[2, 6]]


@pytest.mark.parametrize(("src_bits", "timestamp_bytes", "nulls"), [(0, 0, 31), (8, 2, 34), (15, 8, 40), (16, 8, 41)])
def test_synchronization_sequence(src_bits: int, timestamp_bytes: int, nulls: int) -> None:
    """ "Synchronization": N = 31 + T + S null.idle packets, then a null.alignment."""
    framer = Encapsulation(src_bits=src_bits, timestamp_bytes=timestamp_bytes).framer()
    assert framer.synchronization() == bytes(nulls) + b"\x80"
    assert framer.idle(3) == bytes(3)


def test_blocks() -> None:
    """ "dividing memory into blocks of known size, and requiring that packets do not straddle block boundaries"."""
    encapsulation = Encapsulation(block_size=8)
    framer = encapsulation.framer()
    data = framer.packet(ILLEGAL_OPCODE) + framer.packet(b"\x1f") + framer.packet(b"\x1f") + framer.synchronization()
    assert data == bytes.fromhex("05 32 04 00 00 02 01 1F") + bytes.fromhex("01 1F 00 00 00 00 00 00")
    assert framer.packet(b"\x1f") + framer.packet(TIMER_LONG_LOOP) == b"\x01\x1f" + bytes(6) + b"\x07" + TIMER_LONG_LOOP
    assert [packet[0] for packet in read(encapsulation, data).packets] == [0, 6, 8]


def test_a_packet_that_straddles_a_block() -> None:
    content = read(Encapsulation(block_size=8), bytes.fromhex("01 1F 05 32 04 00 00 02") * 2)
    assert [packet[0] for packet in content.packets] == [0, 2, 8, 10]
    content = read(Encapsulation(block_size=8), bytes.fromhex("01 1F 06 32 04 00 00 02") + bytes.fromhex("01 1F"))
    assert [packet[0] for packet in content.packets] == [0, 8]
    assert content.losses == [LostBytes(2, 6, "a packet continues across blocks of 8 bytes")]


@pytest.mark.parametrize(
    ("encapsulation", "arguments", "why"),
    [
        (Encapsulation(), {"payload": b""}, "encap cannot carry an empty payload"),
        (Encapsulation(), {"payload": bytes(32)}, "32 bytes: with its header it has 32, not 1 to 31"),
        (Encapsulation(src_bits=1), {"payload": bytes(31)}, "31 bytes: with its header it has 32, not 1 to 31"),
        (Encapsulation(src_bits=4), {"source": 16}, "source 16: it has 4 bits for it"),
        (Encapsulation(), {"kind": ContentKind.DATA}, "it has no type for them"),
        (Encapsulation(type_bits=2), {"kind": ContentKind.OTHER}, "it has no type for them"),
        (Encapsulation(), {"time": 5}, "encap cannot carry a timestamp: it has none"),
        (Encapsulation("smi"), {"payload": bytes(32)}, "smi cannot carry a payload of 32 bytes: it has 1 to 31"),
        (Encapsulation("smi"), {"kind": ContentKind.OTHER}, "neither te_inst nor te_data"),
        (Encapsulation("smi"), {"source": 1}, "a source or a timestamp without a width for it"),
        (Encapsulation("atb"), {"source": 0}, "source 0: an ATID is 1 to 111"),
        (Encapsulation("atb"), {"source": 112}, "source 112: an ATID is 1 to 111"),
        (Encapsulation("esp32"), {"payload": bytes(29)}, "a payload of 29 bytes: it has 1 to 28"),
        (Encapsulation("esp32"), {"kind": ContentKind.DATA}, "anything but the instruction trace of one source"),
        (Encapsulation("pulp"), {"source": 1}, "anything but the instruction trace of one source"),
        (Encapsulation("pulp"), {"payload": bytes(32)}, "a payload of 32 bytes: it has 1 to 31"),
        (Encapsulation("qemu"), {"time": 1}, "anything but the instruction trace of one source"),
        (Encapsulation("qemu"), {"payload": b""}, "a payload of 0 bytes: it has 1 to 31"),
        (Encapsulation(block_size=4), {"payload": bytes(4)}, "a packet of 5 bytes in blocks of 4"),
    ],
)
def test_what_does_not_fit(encapsulation: Encapsulation, arguments: dict[str, object], why: str) -> None:
    with pytest.raises(CannotCarry) as caught:
        encapsulation.framer().packet(**{"payload": b"\x1f", **arguments})  # type: ignore[arg-type]
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "usb"}, "unknown encapsulation 'usb': it is one of encap, smi, atb, esp32, pulp, qemu"),
        ({"src_bits": 17}, "src_bits 17 is not 0 to 16"),
        ({"timestamp_bytes": -1}, "timestamp_bytes -1 is not 0 to 8"),
        ({"name": "esp32", "src_bits": 1}, "encapsulation esp32 has no src_bits"),
        ({"name": "atb", "block_size": 256}, "encapsulation atb has no block_size"),
        ({"type_bits": 1, "instruction_type": 1}, "instruction_type 1 and data_type 2 are not distinct values of type"),
        ({"type_bits": 2, "data_type": 2}, "instruction_type 2 and data_type 2 are not distinct values of type"),
    ],
)
def test_what_no_trace_has(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError) as caught:
        Encapsulation(**fields)  # type: ignore[arg-type]
    assert str(caught.value) == why
