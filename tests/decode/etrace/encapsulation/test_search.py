"""Traces that start anywhere: where the first packet is read, and that none is before it is certain."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation, Idle, LostBytes, SourcePackets
from tests.decode.etrace.encapsulation.transports import bits_of, items_of, normal, read
from tests.helpers.amounts import some_of

examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)
NOWHERE = "there is no place at which a packet must start"
NO_WAY = b"\x1f"
"""As a header it is of 32 bytes: 32 ways through a row of them never meet."""


def _stream(rng: random.Random, count: int, src_bits: int, timestamp_bytes: int, biggest: int) -> bytes:
    """Packets by the document's words."""
    data = b""
    for _ in range(count):
        payload = bits_of(rng.getrandbits(8 * biggest), 8 * rng.randrange(1, biggest + 1))
        time = (rng.getrandbits(64), 8 * timestamp_bytes) if timestamp_bytes and rng.random() < 0.3 else None
        data += normal(payload, source=(rng.getrandbits(16), src_bits), time=time)
    return data


def _size(header: int, src_bits: int, timestamp_bytes: int) -> int:
    """ "Packet Length", null packets included."""
    return 1 + (header % 32 and src_bits // 8 + header // 128 * timestamp_bytes + header % 32)


def _certain(data: bytes, size: Callable[[int], int], longest: int) -> int | None:
    """The first place all ways from the first *longest* places go through; None if they end before."""
    ways = []
    for place in range(longest):
        way = set()
        while place < len(data):
            way.add(place)
            place += size(data[place])
        ways.append(way | {place})
    return min(set.intersection(*ways), default=None)


@examples
@given(st.integers(0, 1 << 32), st.integers(0, 16), st.integers(1, 8), st.integers(1, 29))
def test_the_first_place_that_is_certain(seed: int, src_bits: int, timestamp_bytes: int, biggest: int) -> None:
    """From every place of a trace; it has timestamps, so that any byte could be a header."""
    rng = random.Random(seed)
    data = _stream(rng, 40, src_bits, timestamp_bytes, biggest)
    encapsulation = Encapsulation(src_bits=src_bits, timestamp_bytes=timestamp_bytes)
    linear = read(encapsulation, data).packets
    longest = 32 + src_bits // 8 + timestamp_bytes
    for start in range(0, len(data) - longest, 1 + len(data) // 30):
        rest = data[start:]
        certain = _certain(rest, lambda header: _size(header, src_bits, timestamp_bytes), longest)
        content = read(encapsulation, rest, wrapped=True, cuts=[rng.randrange(len(rest))])
        expected = [packet for packet in linear if certain is not None and packet[0] >= start + certain]
        assert [(offset + start, *rest) for offset, *rest in content.packets] == expected
        if certain is None or certain > len(rest):
            assert content.losses == [LostBytes(0, len(rest), NOWHERE)]
        elif certain:
            assert content.losses[0] == LostBytes(0, certain, "")


@pytest.mark.parametrize(("src_bits", "timestamp_bytes"), [(0, 0), (12, 2), (16, 8)])
def test_synchronization_sequence(src_bits: int, timestamp_bytes: int) -> None:
    """e-trace-encap, "Synchronization": behind N null bytes the first byte that is none starts a packet; behind N - 1
    it need not."""
    encapsulation = Encapsulation(src_bits=src_bits, timestamp_bytes=timestamp_bytes)
    nulls = 31 + src_bits // 8 + timestamp_bytes
    packet = normal([1, 0, 1, 1, 0, 0, 0, 1], source=(3, src_bits))
    certain = read(encapsulation, NO_WAY * 100 + bytes(nulls) + packet, wrapped=True)
    assert [offset for offset, *_ in certain.packets] == [100 + nulls]
    uncertain = read(encapsulation, NO_WAY * 100 + bytes(nulls - 1) + packet, wrapped=True)
    if timestamp_bytes:
        certain = read(encapsulation, b"\x9f" * 100 + bytes(nulls) + packet, wrapped=True)
        assert [offset for offset, *_ in certain.packets] == [100 + nulls]
        uncertain = read(encapsulation, b"\x9f" * 100 + bytes(nulls - 1) + packet, wrapped=True)
    assert not uncertain.packets


def test_the_documents_own_sequence() -> None:
    """What the framer calls a synchronization sequence is one."""
    for encapsulation in (Encapsulation(), Encapsulation(src_bits=9, timestamp_bytes=4), Encapsulation("smi")):
        framer = encapsulation.framer()
        packet = framer.packet(b"\x1f")
        for null in (bytes(1), b"\x80"):  # what comes before the last null may be a packet's end
            data = NO_WAY * 99 + framer.synchronization() + null + packet
            content = read(encapsulation, data, wrapped=True)
            assert [offset for offset, *_ in content.packets] == [len(data) - len(packet)]


def test_nothing_is_guessed() -> None:
    """Each of 32 places may be the first, to the end: nothing is read, and it says why."""
    for length in (1, 31, 32, 1000):
        content = read(Encapsulation(), NO_WAY * length, wrapped=True, cuts=range(0, length, 7))
        assert not content.packets
        assert content.losses == [LostBytes(0, length, NOWHERE)]


def test_a_byte_that_is_no_header_ends_a_way() -> None:
    """Without timestamps 0x9F is not a header, so of the 32 places that may be the first, 31 of them and an 01, the
    last is it. Where there are 32 the trace is damaged, and it is one of the next 32.
    """
    packets = bytes.fromhex("01 1F 02 1F 1F")
    content = read(Encapsulation(), b"\x9f" * 31 + packets, wrapped=True)
    assert [offset for offset, *_ in content.packets] == [31, 33]
    assert content.losses == [LostBytes(0, 31, "")]
    content = read(Encapsulation(), b"\x9f" * 63 + packets, wrapped=True)
    assert [offset for offset, *_ in content.packets] == [63, 65]
    assert [lost[:2] for lost in content.losses] == [(0, 31), (31, 32)]


def test_behind_damage() -> None:
    """The byte behind one that is not a header may be the next to start a packet: 32 places from there on."""
    data = bytes.fromhex("01 1F") + b"\x9f" * 32 + bytes.fromhex("01 1F 02 1F 1F")
    content = read(Encapsulation(), data)
    assert [offset for offset, *_ in content.packets] == [0, 34, 36]
    why = "0x9f is not a packet header: it announces fields that packets do not have"
    assert content.losses == [LostBytes(2, 32, why)]


@pytest.mark.parametrize("start", range(0, 60, 4))
def test_blocks_of_a_ring(start: int) -> None:
    """The first whole block, wherever the ring starts; its own start is one, too."""
    framer = Encapsulation(block_size=16).framer()
    data = b"".join(framer.packet(bytes([0x1F] * length)) for length in (5, 7, 3, 11, 2, 2, 9, 4, 4, 12))
    linear = read(Encapsulation(block_size=16), data).packets
    content = read(Encapsulation(block_size=16, block_start=-start % 16), data[start:], wrapped=True)
    first = start + -start % 16
    assert [offset + start for offset, *_ in content.packets] == [p[0] for p in linear if p[0] >= first]
    assert content.losses == ([LostBytes(0, -start % 16, "")] if start % 16 else [])


def test_damage_in_a_block_ends_with_it() -> None:
    data = bytes.fromhex("01 1F 9F 1F 1F 1F 1F 1F") + bytes.fromhex("01 1F 00 00 00 00 00 00")
    content = read(Encapsulation(block_size=8), data)
    assert [offset for offset, *_ in content.packets] == [0, 8]
    why = "0x9f is not a packet header: it announces fields that packets do not have"
    assert content.losses == [LostBytes(2, 6, why)]


@pytest.mark.parametrize("zeros", [13, 14, 15, 40])
def test_anchor(zeros: int) -> None:
    """ESP32: at least 14 zero bytes; what comes before them is not read, were it ever so whole."""
    packet = bytes.fromhex("04 07 00 1F")
    data = packet * 3 + bytes(zeros) + packet
    content = read(Encapsulation("esp32"), data, wrapped=True)
    for cut in range(len(data)):
        assert read(Encapsulation("esp32"), data, wrapped=True, cuts=[cut, cut + 3]) == content
    if zeros < 14:
        assert content.losses == [
            LostBytes(0, len(data), "there are no 14 zero bytes in a row, after which a packet starts")
        ]
        return
    assert content.losses == [LostBytes(0, 12 + 14, "")]
    assert content.idle == set(range(26, 12 + zeros))
    assert [offset for offset, *_ in content.packets] == [12 + zeros]


def test_anchor_first() -> None:
    """Zeros at the very start are an anchor, and all filling."""
    items = items_of(Encapsulation("esp32").deframer(wrapped=True), bytes(20) + bytes.fromhex("04 07 00 1F"), range(24))
    assert not any(isinstance(item, LostBytes) for item in items)
    assert sum(item.length for item in items if isinstance(item, Idle)) == 20


def test_zeros_on_both_sides_of_the_end_of_an_esp32s_memory() -> None:
    """Seven and seven are not an anchor: what is behind the end does not go on what was before."""
    packet = bytes.fromhex("04 07 00 1F")
    data = packet * 2 + bytes(7) + bytes(7) + packet + bytes(14) + bytes.fromhex("04 08 00 2F")
    content = read(Encapsulation("esp32", block_start=15), data, wrapped=True)
    assert [offset for offset, *_ in content.packets] == [40]
    assert content.losses == [LostBytes(0, 40, "")]


def test_esp32_damage_lasts_to_the_next_anchor() -> None:
    """0x24 is not a length: bits 7 to 5 are 0. The packet behind it could be read only by chance."""
    packet = bytes.fromhex("04 07 00 1F")
    content = read(Encapsulation("esp32"), packet + b"\x24" + packet + bytes(14) + bytes.fromhex("04 08 00 2F"))
    assert [offset for offset, *_ in content.packets] == [0, 23]
    assert content.losses == [LostBytes(4, 19, "0x24 is not the length of a packet")]


def test_esp32_index_wraps() -> None:
    data = bytes.fromhex("04 FE FF 1F 04 FF FF 1F 04 00 00 1F 04 01 00 1F")
    content = read(Encapsulation("esp32"), data)
    assert len(content.packets) == 4
    assert not content.losses


@pytest.mark.parametrize(("first", "second", "why"), [
    (5, 7, "1 packet is missing between index 5 and 7"),
    (65535, 2, "2 packets are missing between index 65535 and 2"),
    (5, 5, "packet 5 comes after packet 5: some are missing, or older ones are left over"),
])  # fmt: skip
@pytest.mark.parametrize("anchor", [False, True])
def test_esp32_missing_packets(first: int, second: int, why: str, anchor: bool) -> None:
    between = bytes(14) if anchor else b""
    data = b"\x04" + first.to_bytes(2, "little") + b"\x1f" + between + b"\x04" + second.to_bytes(2, "little") + b"\x2f"
    for cuts in ((), range(30)):
        items = items_of(Encapsulation("esp32").deframer(wrapped=False), data, cuts)
        no_idle = [item for item in items if not isinstance(item, Idle)]
        assert [item.payloads if isinstance(item, SourcePackets) else item for item in no_idle] == [
            [b"\x1f"],
            LostBytes(len(data) - 4, 0, why),
            [b"\x2f"],
        ]


def test_qemu() -> None:
    """Packets start at words: among the bytes of this packet only those at words are ways, so that the one behind is
    soon certain. Source: QEMU's trace-encoder.c, message sizes rounded up to 4, zeros up to the end of the memory."""
    data = (
        bytes.fromhex("06 1F 1F 1F 1F 1F 1F 00")
        + bytes.fromhex("02 1F 1F 00")
        + bytes(8)
        + bytes.fromhex("01 1F 00 00")
    )
    linear = read(Encapsulation("qemu"), data)
    assert [(offset, payload) for offset, _, _, payload, _ in linear.packets] == [
        (0, b"\x1f" * 6), (8, b"\x1f" * 2), (20, b"\x1f")
    ]  # fmt: skip
    assert linear.idle == set(range(12, 20))
    ring = read(Encapsulation("qemu"), data[4:] + bytes(28) + data, wrapped=True)
    assert [offset for offset, *_ in ring.packets][-3:] == [48, 56, 68]


def test_qemu_end_of_memory() -> None:
    """The ring's end, before which zeros fill what no packet fitted into, is where one starts; ways that go past it
    were wrong."""
    memory = bytes.fromhex("1F 1F 1F 1F") * 3
    content = read(Encapsulation("qemu", block_start=12), memory + bytes.fromhex("01 1F 00 00"), wrapped=True)
    assert [offset for offset, *_ in content.packets] == [12]
    assert content.losses == [LostBytes(0, 12, "")]


@pytest.mark.parametrize(("word", "header"), [("3F 1F 1F 1F", "3f"), ("00 1F 00 00", "00")])
def test_qemu_damage(word: str, header: str) -> None:
    """A packet starts at a word behind it, at 8 to 36 if no later: from all of them ways lead to 36."""
    data = bytes.fromhex("01 1F 00 00" + word) + bytes.fromhex("01 1F 00 00") * 10
    for cuts in ((), range(len(data))):
        content = read(Encapsulation("qemu"), data, cuts=cuts)
        assert [offset for offset, *_ in content.packets] == [0, 36, 40, 44]
        assert content.losses == [LostBytes(4, 32, f"no packet of QEMU starts with 0x{header}")]


def test_a_long_search_among_the_transfers_of_a_bus() -> None:
    """Thousands of records in which no packet can be found, then N null bytes: every record is accounted for."""
    encapsulation = Encapsulation("atb")
    packet = encapsulation.framer().packet(b"\x1f", source=1)
    unread, other = b"\x01\x03" + NO_WAY * 4, b"\x02\x01\x01\x1f\x00\x00"
    nulls = b"\x01\x03\x00\x00\x00\x00" * 8
    data = (unread * 3000 + other * 20 + nulls + packet) * 2
    for cuts in ((), range(0, len(data), 501)):
        content = read(encapsulation, data, wrapped=True, cuts=cuts)
        assert next(offset for offset, source, *_ in content.packets if source == 1) == len(data) // 2 - len(packet)
        assert content.losses[0] == LostBytes(0, 3000 * 6 + 31 // 4 * 6 + 6, "")


def test_a_lost_transfer_joins_nothing() -> None:
    """Of a packet of 5 bytes in two transfers the second is damaged (ATBYTES 7 of 4): it is not completed with the next
    one's, and reading goes on where it is certain."""
    encapsulation = Encapsulation("atb")
    packet = encapsulation.framer().packet(bytes.fromhex("32 04 00 02"), source=1)
    nulls = b"\x01\x03\x00\x00\x00\x00" * 8
    data = packet[:6] + b"\x01\x07" + packet[8:] + packet + nulls + packet
    for cuts in ((), range(len(data))):
        content = read(encapsulation, data, cuts=cuts)
        assert [offset for offset, *_ in content.packets] == [len(data) - len(packet)]
        assert content.losses[:2] == [
            LostBytes(0, 6, "the last packet is cut off"),
            LostBytes(6, 6, "ATBYTES says 8 of 4 bytes"),
        ]


def test_atb_filling_and_reserved_sources() -> None:
    """ATID 0 is filling; 0x70 and up are none of a trace source (0x7D: a trigger)."""
    data = bytes(6) + bytes.fromhex("7D 03 01 02 03 04") + bytes.fromhex("01 01 01 1F 00 00")
    content = read(Encapsulation("atb"), data)
    assert content.idle == set(range(6))
    assert [(offset, source, kind.name, payload) for offset, source, kind, payload, _ in content.packets] == [
        (6, 0x7D, "OTHER", b"\1\2\3\4"),
        (12, 1, "INSTRUCTION", b"\x1f"),
    ]


def test_records_of_rv_tracer_with_more_than_they_say() -> None:
    """The payload is one byte, so all before it are 0."""
    good = bytes(30) + b"\x1f" + bytes(8) + b"\x01"
    content = read(Encapsulation("pulp"), good + b"\x07" + good[1:] + bytes(40) + good)
    assert [offset for offset, *_ in content.packets] == [0, 120]
    assert content.losses == [LostBytes(40, 40, "a record with more payload than it says")]
    assert content.idle == set(range(80, 120))
