"""Packets of encoders that do not keep to the document in all.

Facts: rv_tracer's captures (vectors/etrace/rv_tracer, from pulp-platform/rv_tracer, Apache-2.0; a few packets of its
test gpios_all as bytes below); layouts of Espressif's decoders and of QEMU's patches as bits, made by hand.
"""

import pytest

from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.layout import MalformedPacket, Packet
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.packet import build, parse
from tests.decode.etrace.encoder_vectors import packets
from tests.decode.etrace.packet.test_packet import bits, low_first
from tests.helpers.core_captures import VECTORS

PLAIN, FULL = Modes(), Modes(full_address=True)
_PARAMETERS = vars(Parameters()).keys()


def options(dialect: Dialect) -> Options:
    """What such an encoder is built with."""
    told = DEFAULTS[dialect]
    parameters = Parameters(**{name: value for name, value in told.items() if name in _PARAMETERS})  # type: ignore[arg-type]
    modes = Modes(full_address=bool(told.get("full_address")))
    return Options(parameters, modes, support=SupportLayout(told.get("support", "reference")), dialect=dialect)


def both_ways(payload: bytes, expected: Packet, dialect: Dialect, modes: Modes) -> None:
    """*payload* is read as *expected*, which is written as *payload*."""
    assert parse(payload, options(dialect), modes) == expected
    assert build(*expected, options(dialect), modes) == payload


def flags(**said: int) -> dict[str, int]:
    """Flags, 0 if not given."""
    return {"notify": 0, "updiscon": 0, "irreport": 0, **said}


@pytest.mark.parametrize("capture", ["hello_culsans", "l1_test"])
def test_pulp_captures(capture: str) -> None:
    """Real packets mean what the same ones mean that were rewritten by hand into the document's layout."""
    folder = VECTORS / "etrace" / "rv_tracer" / capture
    records = (
        folder / "packets.bin"
    ).read_bytes()  # 40 bytes each: payload (31), timestamp (8), header; last byte first
    rewritten = packets((folder / "normalised.smi").read_bytes())
    standard = Options(options(Dialect.PULP).parameters)
    assert len(records) == 40 * len(rewritten)
    for number, payload in enumerate(rewritten):
        record = records[40 * number : 40 * number + 40][::-1]
        sent = record[9 : 9 + (record[0] & 31)]
        packet = parse(sent, options(Dialect.PULP), PLAIN)
        assert build(*packet, options(Dialect.PULP), PLAIN) == sent
        if packet.subformat != 3:
            assert packet == parse(payload, standard, PLAIN)
        else:
            assert [name for name, value in packet.fields.items() if value] == ["delta_address"]


def test_pulp_addresses() -> None:
    """8k + 1 bits, sign-extended, k the bytes a signed number takes; what is behind them is found by the length."""
    for value, size in ((0, 1), (127, 1), (128, 2), (-128, 1), (-129, 2), (0x12345678, 4), (-(1 << 62), 8)):
        payload = bits("01" + low_first(value, 8 * size + 1) + "0" + "1" + "1" + "0")
        payload = payload[:size] + bytes([payload[size] & 0x3F])  # rv_tracer's padding is 0
        both_ways(payload, Packet(2, None, {"address": value, **flags(updiscon=1)}), Dialect.PULP, PLAIN)


def test_pulp_traps() -> None:
    """ecause and tval have 64 bits, tval is sent for interrupts too, full addresses are shortened too."""
    text = "11" + "10" + "1" + "11" + low_first(1 << 63 | 7, 64) + "1" + "1"
    text += low_first(0x80000100, 41) + low_first(0x1122334455667788, 64)
    fields = {
        "branch": 1, "privilege": 3, "ecause": 1 << 63 | 7, "interrupt": 1, "thaddr": 1, "address": 0x80000100,
        "tval": 0x1122334455667788,
    }  # fmt: skip
    text += "0" * (-len(text) % 8)
    both_ways(bits(text), Packet(3, 1, fields), Dialect.PULP, PLAIN)


def test_pulp_full_map() -> None:
    """The length of the packet says whether there is an address; 31 branches without are those of a full map."""
    outcomes = low_first(0x2AAAAAAA, 31)
    payload = bits("10" + "00000" + outcomes + "00")
    both_ways(payload, Packet(1, None, {"branches": 0, "branch_map": 0x2AAAAAAA}), Dialect.PULP, PLAIN)
    sent = bits("10" + "11111" + outcomes + "00")
    assert parse(sent, options(Dialect.PULP), PLAIN) == parse(payload, options(Dialect.PULP), PLAIN)


@pytest.mark.parametrize(
    ("payload", "outcomes", "address"),
    [
        ("01920c00100000", 0x2000_1924, 0),  # gpios_all: all four such packets
        ("8124490280300000", 0x4_9249, 0xC2),
        ("0192240180300000", 0x2_4924, 0xC2),
        ("01dbb60580cf7f00", 0xB_6DB6, -0xC2),
    ],
)
def test_pulp_maps_of_a_number_that_was_not_sent(payload: str, outcomes: int, address: int) -> None:
    """rv_tracer sends 0 for 16 to 30 branches that end at no uninferable discontinuity."""
    fields = {"branches": 0, "branch_map": outcomes, "address": address, **flags()}
    both_ways(bytes.fromhex(payload), Packet(1, None, fields), Dialect.PULP, PLAIN)


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ("01000000300000", "format 1 with an address and 31 branches"),  # the last bit of the map is 1
        ("0d03", "format 1 with 3 branches and no address"),
        ("02", "too short for an address: 1 byte$"),
    ],
)
def test_pulp_packets_without_meaning(payload: str, why: str) -> None:
    with pytest.raises(MalformedPacket, match=why):
        parse(bytes.fromhex(payload), options(Dialect.PULP), PLAIN)


def test_pt10() -> None:
    """Full addresses of 31 bits, packets of whole bytes: 5, 5, 6 and 10 bytes."""
    address = low_first(0x40800124 >> 1, 31)
    both_ways(bits("11" + "00" + "1" + "1" + address + "000"),
              Packet(3, 0, {"branch": 1, "privilege": 1, "address": 0x40800124}), Dialect.PT10, FULL)  # fmt: skip
    both_ways(bits("01" + address + "0" + "1" + "11111"),
              Packet(2, None, {"address": 0x40800124, **flags(updiscon=1)}), Dialect.PT10, FULL)  # fmt: skip
    both_ways(bits("10" + "11000" + "101" + address + "1" + "1" + "11111"),
              Packet(1, None, {"branches": 3, "branch_map": 5, "address": 0x40800124, **flags(notify=1)}),
              Dialect.PT10, FULL)  # fmt: skip
    trap = {"branch": 1, "privilege": 1, "ecause": 2, "interrupt": 0, "thaddr": 1, "address": 0x40800124}
    payload = bits("11" + "10" + "1" + "1" + "01000" + "0" + address + low_first(0x42000010, 32) + "00000")
    assert len(payload) == 10
    both_ways(payload, Packet(3, 1, {**trap, "tval": 0x42000010}), Dialect.PT10, FULL)


def test_pt10_interrupts_have_tval_too() -> None:
    """Its packets of this kind all have 10 bytes; one that ends before tval is understood, no exception's."""
    fields = {"branch": 1, "privilege": 1, "ecause": 7, "interrupt": 1, "thaddr": 1, "address": 0x40800000, "tval": 0}
    payload = build(3, 1, fields, options(Dialect.PT10), FULL)
    assert len(payload) == 10
    assert parse(payload, options(Dialect.PT10), FULL) == Packet(3, 1, fields)
    short = parse(payload[:6], options(Dialect.PT10), FULL)
    assert short == Packet(3, 1, {name: value for name, value in fields.items() if name != "tval"})
    exception = build(3, 1, fields | {"interrupt": 0}, options(Dialect.PT10), FULL)
    with pytest.raises(MalformedPacket, match="9 bytes, but its fields take 10"):
        parse(exception[:-1], options(Dialect.PT10), FULL)


@pytest.mark.parametrize(
    ("address", "sent"),
    [(4, "02"), (-2, "ff"), (0x100, "8000"), (-0x102, "7fff"), (0x123456, "2b1a09"), (-0x40000000, "000000e0")],
)
def test_et20_differences(address: int, sent: str) -> None:
    """Flags, up to a whole byte; then the address in units of two bytes, 1 to 4 bytes. notify: relative to its sign."""
    sign = int(address < 0)
    for notify in (0, 1):
        first, second = sign ^ notify, sign ^ notify ^ 1
        payload = bits(f"01{first}{second}" + str(second) * 4) + bytes.fromhex(sent)
        both_ways(
            payload, Packet(2, None, {"address": address, **flags(notify=notify, updiscon=1)}), Dialect.ET20, PLAIN
        )
    for branches, width in ((1, 1), (3, 3), (7, 7), (15, 15), (31, 31)):
        head = "10" + low_first(branches, 5) + "1" * width + f"{sign}{sign}"
        head += str(sign) * (-len(head) % 8)
        expected = {"branches": branches, "branch_map": (1 << width) - 1, "address": address, **flags()}
        both_ways(bits(head) + bytes.fromhex(sent), Packet(1, None, expected), Dialect.ET20, PLAIN)


def test_et20_full_addresses() -> None:
    """No sign: the highest bit of 32 is free."""
    both_ways(bits("01" + "00" + "0000") + (0x7FFFFFFE >> 1).to_bytes(4, "little"),
              Packet(2, None, {"address": 0x7FFFFFFE, **flags()}), Dialect.ET20, FULL)  # fmt: skip


def test_et20_synchronization_and_traps() -> None:
    """As in the document, in 5 bytes, 6 for an interrupt and 10 for an exception; ecause has 6 bits."""
    address = low_first(0x40800124 >> 1, 31)
    both_ways(bits("11" + "00" + "1" + "1" + address + "000"),
              Packet(3, 0, {"branch": 1, "privilege": 1, "address": 0x40800124}), Dialect.ET20, PLAIN)  # fmt: skip
    fields = {"branch": 1, "privilege": 1, "ecause": 0x2B, "interrupt": 1, "thaddr": 1, "address": 0x40800124}
    head = "11" + "10" + "1" + "1" + low_first(0x2B, 6)
    both_ways(bits(head + "1" + "1" + address + "000"), Packet(3, 1, fields), Dialect.ET20, PLAIN)
    payload = bits(head + "0" + "1" + address + low_first(0x87654321, 32) + "111")
    assert len(payload) == 10
    both_ways(payload, Packet(3, 1, {**fields, "interrupt": 0, "tval": 0x87654321}), Dialect.ET20, PLAIN)


@pytest.mark.parametrize(
    ("payload", "why"),
    [(b"\x02", "too short for an address: 1 byte$"), (b"\x05", "too short"), (b"\x02" + bytes(5), "5 bytes for")],
)
def test_et20_without_a_possible_address(payload: bytes, why: str) -> None:
    """1 to 4 bytes."""
    with pytest.raises(MalformedPacket, match=why):
        parse(payload, options(Dialect.ET20), PLAIN)


QEMU_LOW, QEMU_HIGH = 0x1_0000_0042, 0xFFFF_FFFF_8000_0044
"""Addresses whose bit 31 is 0 and 1."""


def qemu_reporting(address: int) -> str:
    """As its patches write them: notify is bit 31 of the address, updiscon its opposite, and what follows the same."""
    bit31 = address >> 31 & 1
    return low_first(address, 64) + str(bit31) + str(1 - bit31) * 5


@pytest.mark.parametrize("address", [QEMU_LOW, QEMU_HIGH])
@pytest.mark.parametrize("format", ["01", "11"])
def test_qemu_format_2(address: int, format: str) -> None:
    """It writes 3 for the format of these packets; their flags are no part of an address."""
    payload = bits(format + qemu_reporting(address))
    assert len(payload) == 9
    assert parse(payload, options(Dialect.QEMU), FULL) == Packet(2, None, {"address": address, **flags(updiscon=1)})


@pytest.mark.parametrize("address", [QEMU_LOW, QEMU_HIGH, 0, 0x7FFF_FFFF_FFFF, 0xFF80_0000_0000_0000])
def test_qemu_synchronization(address: int) -> None:
    """As long as format 2; privilege has 3 bits."""
    payload = bits("11" + "00" + "1" + "101" + low_first(address, 64))
    both_ways(payload, Packet(3, 0, {"branch": 1, "privilege": 5, "address": address}), Dialect.QEMU, FULL)


@pytest.mark.parametrize(("branches", "width"), [(1, 3), (2, 3), (5, 7), (9, 15), (30, 31)])
def test_qemu_format_1(branches: int, width: int) -> None:
    """A map has at least 3 bits."""
    payload = bits("10" + low_first(branches, 5) + low_first(1, width) + qemu_reporting(QEMU_LOW))
    assert len(payload) == {3: 10, 7: 11, 15: 12, 31: 14}[width]  # FORMAT1_PAYLOAD_MIN_SIZE_64BITS and more
    fields = {"branches": branches, "branch_map": 1, "address": QEMU_LOW, **flags(updiscon=1)}
    both_ways(payload[:-1] + bytes([payload[-1] & 0xFF >> (-(7 + width + 70)) % 8]), Packet(1, None, fields),
              Dialect.QEMU, FULL)  # fmt: skip


def test_qemu_full_map() -> None:
    """It sends the number of branches, 31, and 5 bytes."""
    payload = bits("10" + "11111" + low_first(0x40000001, 31) + "00")
    assert len(payload) == 5
    assert parse(payload, options(Dialect.QEMU), FULL) == Packet(1, None, {"branches": 0, "branch_map": 0x40000001})


def test_qemu_traps() -> None:
    """18 bytes, 10 without tval."""
    fields = {"branch": 1, "privilege": 3, "ecause": 11, "interrupt": 1, "thaddr": 1, "address": QEMU_HIGH}
    head = "11" + "10" + "1" + "110" + low_first(11, 6)
    payload = bits(head + "1" + "1" + low_first(QEMU_HIGH, 64))
    assert len(payload) == 10
    both_ways(payload, Packet(3, 1, fields), Dialect.QEMU, FULL)
    payload = bits(head + "0" + "1" + low_first(QEMU_HIGH, 64) + low_first(QEMU_HIGH, 64))
    assert len(payload) == 18
    both_ways(payload, Packet(3, 1, {**fields, "interrupt": 0, "tval": QEMU_HIGH}), Dialect.QEMU, FULL)


@pytest.mark.parametrize("dialect", [Dialect.PULP, Dialect.PT10, Dialect.ET20, Dialect.QEMU])
def test_format_0_is_of_the_document_only(dialect: Dialect) -> None:
    """None of these predicts branches or caches targets."""
    with pytest.raises(MalformedPacket, match=r"format 0.* is not one|neither modes nor sizes"):
        parse(bytes(9), options(dialect), PLAIN)


@pytest.mark.parametrize(
    ("key", "fields", "dialect", "why"),
    [
        ((2, None), {"address": 4, "notify": 1}, Dialect.PULP, "notify can only be 0"),
        ((2, None), {"address": 4, "irreport": 1}, Dialect.ET20, "irreport can only be 0"),
        ((0, 0), {"branch_count": 0, "branch_fmt": 0}, Dialect.QEMU, "no packet has format 0, subformat 0"),
    ],
)
def test_what_a_dialect_cannot_say(
    key: tuple[int, int | None], fields: dict[str, int], dialect: Dialect, why: str
) -> None:
    """Said with the field."""
    with pytest.raises(ValueError, match=why):
        build(*key, fields, options(dialect), PLAIN)
