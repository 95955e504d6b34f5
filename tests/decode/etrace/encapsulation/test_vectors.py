"""The same packets in every transport (tests/data/etrace-encapsulation, tests/data/etrace-esp32)."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation, LostBytes
from tests.decode.etrace.encapsulation.transports import Content, read, write
from tests.helpers.amounts import crossed, sparse

_DATA = Path(__file__).resolve().parents[3] / "data"
TRANSPORTS = {
    "smi_header": (Encapsulation("smi"), 0),
    "src0_T0_type0": (Encapsulation(), 0),
    "src6_type2": (Encapsulation(src_bits=6, type_bits=2, instruction_type=0), 10),
    "src8_T0_type1": (Encapsulation(src_bits=8, type_bits=1), 0x5A),
    "src12_T2_allts": (Encapsulation(src_bits=12, timestamp_bytes=2), 0x123),
    "src0_T8_somets": (Encapsulation(timestamp_bytes=8), 0),
    "src8_T2_nulls_unframed": (Encapsulation(src_bits=8, timestamp_bytes=2), 3),
    "src8_framed_nulls": (Encapsulation(src_bits=8), 3),
    "atb32": (Encapsulation("atb"), 0xA),
    "block256": (Encapsulation(block_size=256), 0),
}
ESP32 = ("crc32.pt10", "crc32.et20")
RV_TRACER = {"hello_culsans": 48, "l1_test": 21}


def _bytes(name: str) -> bytes:
    return (_DATA / "etrace-encapsulation" / f"{name}.bin").read_bytes()


def _payloads() -> list[bytes]:
    """What all transports carry: length in 5 bits and payload, one behind the other."""
    data, payloads, at = _bytes("br_j_asm.smi_header"), [], 0
    while at < len(data):
        end = at + 1 + (data[at] & 31)
        payloads.append(data[at + 1 : end])
        at = end
    return payloads


PAYLOADS = _payloads()


@pytest.mark.parametrize("name", TRANSPORTS)
def test_every_transport_carries_the_same_packets(name: str) -> None:
    encapsulation, source = TRANSPORTS[name]
    content = read(encapsulation, _bytes(f"br_j_asm.{name}"))
    assert content.payloads == PAYLOADS
    assert {packet[1:3] for packet in content.packets} == {(source, ContentKind.INSTRUCTION)}
    assert not content.losses


@pytest.mark.parametrize("name", [name for name in TRANSPORTS if "nulls" not in name])
def test_every_transport_is_written_as_it_was(name: str) -> None:
    encapsulation, data = TRANSPORTS[name][0], _bytes(f"br_j_asm.{name}")
    assert write(encapsulation, read(encapsulation, data).packets) == data


@pytest.mark.parametrize(
    ("name", "size"), [*((name, 1) for name in TRANSPORTS), *crossed(list(TRANSPORTS), [2, 3, 5, 64, 255])]
)
def test_pieces_of_any_size_give_the_same(name: str, size: int) -> None:
    encapsulation, data = TRANSPORTS[name][0], _bytes(f"br_j_asm.{name}")
    for wrapped in (False, True):
        pieces = read(encapsulation, data, wrapped=wrapped, cuts=range(0, len(data), size))
        assert pieces == read(encapsulation, data, wrapped=wrapped)


def test_timestamps() -> None:
    """src12_T2_allts: srcID 0x123 in 12 bits, then 16 bits of timestamp.

    82 23 01 00: 0. 88 23 51 02 30: 0x025 behind the 1 of srcID, and above it the low nibble of 30: 37. 86 23 A1 04 20:
    74. So 37 ticks from packet to packet.
    """
    times = [packet[4] for packet in read(TRANSPORTS["src12_T2_allts"][0], _bytes("br_j_asm.src12_T2_allts")).packets]
    assert times == [37 * i % (1 << 16) for i in range(len(PAYLOADS))]


def test_timestamps_in_some_packets() -> None:
    """src0_T8_somets: 81 and eight bytes of 0; three packets later 81 B8 0B 00...: 0xBB8 = 3000."""
    content = read(TRANSPORTS["src0_T8_somets"][0], _bytes("br_j_asm.src0_T8_somets"))
    told = [(i, packet[4]) for i, packet in enumerate(content.packets) if packet[4] is not None]
    assert told[:4] == [(0, 0), (3, 3000), (6, 6000), (9, 9000)]


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_wrapped_ring_gives_the_linear_tail(name: str) -> None:
    """From anywhere in the trace: what is read is the end of what is in it, and no loss but the start."""
    encapsulation, data = TRANSPORTS[name][0], _bytes(f"br_j_asm.{name}")
    linear = read(encapsulation, data).packets
    unit = 6 if name == "atb32" else 1
    for start in range(unit, len(data) - 800, sparse(29) * unit):
        block = -start % 256 if name == "block256" else 0
        ring = Encapsulation(**{**vars(encapsulation), "block_start": block})
        content = read(ring, data[start:], wrapped=True)
        tail = [(offset + start, *rest) for offset, *rest in content.packets]
        assert tail
        assert tail == linear[-len(tail) :]
        assert sum(lost.length for lost in content.losses) <= 400 * (2 if name == "atb32" else 1)
        assert {lost.why for lost in content.losses} <= {""}


@pytest.mark.parametrize("name", ESP32)
def test_esp32(name: str) -> None:
    data = (_DATA / "etrace-esp32" / f"{name}.bin").read_bytes()
    content = read(Encapsulation("esp32"), data)
    assert len(content.packets) == 887
    assert not content.losses
    framer = Encapsulation("esp32").framer()
    written = b""
    for i, payload in enumerate(content.payloads):  # an anchor before each 16 packets
        written += (framer.synchronization() if i % 16 == 0 else b"") + framer.packet(payload)
    assert written == data


@pytest.mark.parametrize("name", ESP32)
def test_esp32_from_any_place(name: str) -> None:
    """Reading starts behind the first whole anchor."""
    data = (_DATA / "etrace-esp32" / f"{name}.bin").read_bytes()
    linear = read(Encapsulation("esp32"), data).packets
    for start in range(1, len(data) - 300, 97):
        content = read(Encapsulation("esp32"), data[start:], wrapped=True)
        first = data.index(bytes(14), start) + 14
        expected = [packet for packet in linear if packet[0] >= first]
        assert [(offset + start, *rest) for offset, *rest in content.packets] == expected
        assert len(content.losses) <= 1


@pytest.mark.parametrize("name", ESP32)
def test_esp32_written_round(name: str) -> None:
    """The end of the memory, at which a packet was cut off: nothing is read across it; where the index goes on behind
    it nothing is missing, where not it says so."""
    data = (_DATA / "etrace-esp32" / f"{name}.bin").read_bytes()
    linear = read(Encapsulation("esp32"), data).packets
    cut = linear[700][0] + 2  # inside packet 700; the anchor at the start of the trace follows
    content = read(Encapsulation("esp32", block_start=cut), data[:cut] + data, wrapped=True)
    assert [packet[3] for packet in content.packets] == [packet[3] for packet in linear[:700] + linear]
    assert content.losses == [
        LostBytes(cut - 2, 2, "no packet continues across the end of the memory"),
        LostBytes(cut + 14, 0, "packet 0 comes after packet 699: some are missing, or older ones are left over"),
    ]
    anchor = linear[640][0]  # packet 640 is behind an anchor, which the memory may end before
    content = read(Encapsulation("esp32", block_start=anchor - 14), data, wrapped=True)
    assert content == read(Encapsulation("esp32"), data)


@pytest.mark.parametrize("name", RV_TRACER)
def test_rv_tracer(name: str) -> None:
    """Records, and the same packets as e-trace-encap."""
    records, encap = _bytes(f"rv_tracer.{name}.records"), _bytes(f"rv_tracer.{name}.encap")
    content = read(Encapsulation("pulp"), records)
    same = read(Encapsulation(timestamp_bytes=8), encap)
    assert [packet[1:] for packet in content.packets] == [packet[1:] for packet in same.packets]
    assert [packet[0] for packet in content.packets] == list(range(0, len(records), 40))
    assert len(content.packets) == RV_TRACER[name]
    assert not content.losses
    assert not same.losses
    assert write(Encapsulation("pulp"), content.packets) == records
    assert write(Encapsulation(timestamp_bytes=8), same.packets) == encap


def test_rv_tracer_from_any_place() -> None:
    records = _bytes("rv_tracer.hello_culsans.records")
    linear: Content = read(Encapsulation("pulp"), records)
    for start in range(1, 200, 7):
        content = read(Encapsulation("pulp", block_start=-start % 40), records[start:], wrapped=True)
        expected = [packet[1:] for packet in linear.packets if packet[0] >= start]
        assert [packet[1:] for packet in content.packets] == expected
        assert content.losses == ([LostBytes(0, -start % 40, "")] if start % 40 else [])
