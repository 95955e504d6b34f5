"""E-Trace as a session reads it: sources in a stream, several sinks, pages of packets, hints."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, etrace_of
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.formats.etrace import Packets
from rvtrace_gdb.session.formats.guesses.detect_options import better_etrace_layout
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of, etrace_sources
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from tests.decode.etrace.vectors import ROOT, expected, vector
from tests.helpers.amounts import long_only, some_of
from tests.session.etraces import etraces

_TIMES = 8  # the shortest stream so often is longer than a slice
ENCAP = ROOT / "encap"
SAID = etrace_of({"iaddress_width": 64, "ecause_width": 5, "context_width": 32, "ecall_retires": True})
# What br_j_asm.json beside the files says of each, in its words srcbits, srcid, T, typebits.
VARIANTS = [
    ("smi_header", Encapsulation("smi"), 0),
    ("src0_T0_type0", Encapsulation(), 0),
    ("src6_type2", Encapsulation(src_bits=6, type_bits=2, instruction_type=0), 10),
    ("src8_T0_type1", Encapsulation(src_bits=8, type_bits=1), 90),
    ("src12_T2_allts", Encapsulation(src_bits=12, timestamp_bytes=2), 291),
    ("src0_T8_somets", Encapsulation(timestamp_bytes=8), 0),
    ("src8_T2_nulls_unframed", Encapsulation(src_bits=8, timestamp_bytes=2), 3),
    ("atb32", Encapsulation("atb"), 10),
    ("block256", Encapsulation(block_size=256), 0),
]


def program() -> Image:
    """With the boot ROM the vectors begin in, which no ELF has."""
    image = Image.from_elf(ROOT / "br_j_asm" / "br_j_asm.riscv")
    image.add_code(0x1000, bytes.fromhex(vector("br_j_asm", "o01").what["bootrom"].rpartition("= ")[2]))
    return image


def stream(name: str) -> bytes:
    return (ENCAP / f"br_j_asm.{name}.bin").read_bytes()


def capture(name: str, transport: Encapsulation, source: int | None = None) -> Capture:
    trace_options = replace(SAID, encapsulation=transport)
    return capture_of(RawImport(f"{name}.bin", stream(name), trace_options, program(), source=source))


def looking_at(shown: Capture) -> Session:
    session = Session()
    session.open_capture(shown, "x", None)
    return session


@pytest.mark.parametrize(("name", "transport", "source"), VARIANTS, ids=[name for name, _, _ in VARIANTS])
def test_every_transport_is_imported_and_decoded(name: str, transport: Encapsulation, source: int) -> None:
    found = capture(name, transport)
    assert [encoder.hart for encoder in found.encoders] == [source]
    history, _ = looking_at(found).decoded()
    assert list(history.pcs()) == expected("br_j_asm", "o01")


def test_sources_are_those_decoding_can_start_at() -> None:
    """Bytes by hand: a header with the length, srcID of 8 bits; format 2 of source 5, format 3.0 of source 7."""
    trace_options = etrace_of({"src_bits": 8})
    assert etrace_sources(bytes.fromhex("01 05 02 01 07 73"), trace_options) == [7]
    assert etrace_sources(b"", trace_options) == [0], "at least one"
    assert etrace_sources(bytes.fromhex("01 05 0f"), trace_options) == [0], "a support packet alone is not a start"


def test_each_hart_may_have_a_sink_of_its_own() -> None:
    """As of chips whose cores trace into memory of their own."""
    first, second = (capture("src12_T2_allts", VARIANTS[4][1]), capture("src8_T0_type1", VARIANTS[3][1]))
    both = replace(first, encoders=first.encoders + second.encoders, sinks=first.sinks + second.sinks)
    session = looking_at(both)
    found = session.harts().harts
    assert {hart: list(history.pcs()) for hart, history in found.histories.items()} == dict.fromkeys(
        (90, 291), expected("br_j_asm", "o01")
    )
    assert found.accounting.total == sum(len(sink.data) for sink in both.sinks)
    sizes = {}
    for hart in (90, 291):
        listing = session.dump("1,+3", None, Context(hart=hart))
        [*_, (_, offset, _)] = session.messages(listing.begin, listing.end)
        sizes[hart] = offset
    # Support packet and first sync: a header, (timestamp), srcID and type, a payload of 1 and of 7 bytes.
    assert sizes == {291: 1 + 1 + 2 + 2 + 1 + 1 + 2 + 8, 90: 1 + 2 + 1 + 1 + 1 + 8}


# Pages of packets


@cache
def numbered(name: str) -> tuple[Packets, list[tuple[int, Any]]]:
    """The packets of a stream that is longer than a slice, and all of them."""
    transport = next(one for known, one, _ in VARIANTS if known == name)
    packets = Packets(stream(name) * _TIMES, replace(SAID, encapsulation=transport), 64)
    return packets, list(packets.items(1, len(packets) + 1))


@given(st.data())
@settings(deadline=None, max_examples=some_of(30))
def test_a_page_is_a_part_of_the_whole(data: st.DataObject) -> None:
    """However far into the trace, and in the middle of which slice: the streams are longer than some of them."""
    names = [name for name, _, _ in VARIANTS]
    name = data.draw(st.sampled_from([*names[:2], *long_only(*names[2:])]))
    packets, everything = numbered(name)
    assert [number for number, _ in everything] == list(range(1, len(packets) + 1))
    begin = data.draw(st.integers(1, len(packets)))
    end = data.draw(st.integers(begin, len(packets) + 1))
    assert [(number, item.offset, item.raw, item.address) for number, item in packets.items(begin, end)] == [
        (number, item.offset, item.raw, item.address) for number, item in everything[begin - 1 : end - 1]
    ]
    number, item = data.draw(st.sampled_from([one for one in everything if one[1].length]))
    assert packets.number_at(item.offset) == packets.number_at(item.end - 1) == number
    assert packets.number_at(len(stream(name)) * _TIMES) == len(packets) + 1


def test_a_page_beyond_the_end_is_empty() -> None:
    packets, everything = numbered(VARIANTS[0][0])
    for begin in (len(everything) + 1, 1 << 64):
        assert list(packets.items(begin, begin + 9)) == []


# Hints


@pytest.mark.parametrize(
    ("name", "forgotten"),
    [
        ("src8_T2_nulls_unframed", {"src_bits": 8, "timestamp_bytes": 2}),
        ("atb32", {"encapsulation": "atb"}),
        *long_only(
            ("src8_T0_type1", {"src_bits": 9}),  # 8 bits of srcID, and one of type that is always 0
            ("src0_T8_somets", {"timestamp_bytes": 8}),
        ),
    ],
)
def test_what_was_forgotten_of_the_transport_is_found_without_a_program(
    name: str, forgotten: dict[str, int | str]
) -> None:
    assert better_etrace_layout(stream(name), SAID, 64) == etrace_of(forgotten, SAID)


# Any bytes, whatever is said of them

_any_packets = st.sampled_from(vector("br_j_asm", "o10").packets + vector("br_j_asm", "o01").packets)
_pieces = st.lists(st.binary(max_size=12) | _any_packets.map(lambda packet: bytes([len(packet)]) + packet), max_size=40)


@given(_pieces.map(b"".join), etraces, st.booleans())
@settings(deadline=None, max_examples=some_of(60, 6))
def test_no_bytes_do_more_than_be_told_of(data: bytes, trace_options: EtraceTraceOptions, wrapped: bool) -> None:
    session = Session()
    try:
        lines = session.open_capture(
            capture_of(RawImport("x", data, trace_options, program(), wrapped=wrapped)), "x", None
        )
        lines += session.status(Context())
        lines += session.history("", 10, Context()).lines
    except RvtraceError as error:
        lines = [str(error)]
    assert all(line.isprintable() for line in lines)
    if data:
        listing = session.dump("1,+999", None, Context())
        rows = session.messages(listing.begin, listing.end)
        assert all(text.isprintable() for _, _, text in rows)
    better_etrace_layout(data, trace_options, 64, wrapped=wrapped)
