"""Lines of `rvtrace dump`: what the documents' examples and the reference streams say, and any bytes at all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.decode.ntrace.items import Item
from rvtrace_gdb.decode.ntrace.options import SIFIVE, Options
from rvtrace_gdb.views.dump import lines
from tests.decode.ntrace.messages import groups, message

REFERENCE = Path(__file__).resolve().parent.parent / "data" / "ntrace-reference"
PLAIN = Options()


def dump(data: bytes, options: Options = PLAIN, xlen: int = 64, **output: bool) -> list[str]:
    """The lines without number and offset."""
    shown = [line for _, _, line in lines([data], options, xlen, **output)]
    return [line.split(" ", 1)[1] for line in shown]


def columns(line: str) -> dict[str, str]:
    """The key=value columns of a line."""
    return dict(column.split("=", 1) for column in line.partition(" # ")[0].split()[1:])


# The documents' examples


def test_table_6_mdo_and_mseo_encoding_example() -> None:
    """3.5, "N-Trace Message Example": the bytes and what the reference tool decoded; 0xFF before and after is idle."""
    shown = [line for _, _, line in lines([bytes.fromhex("ff 70 d0 1d 1d f8 ff ff")], PLAIN, 64)]
    assert shown == [
        "1\t0x00000000 Idle BYTES=1",
        "2\t0x00000001 IndirectBranchHist TCODE=28 B-TYPE=0 I-CNT=125 U-ADDR=0x7 HIST=0xffe addr=? hist=TTTTTTTTTTN"
        " # indirect jump, call or return; its address is relative to one that is not known here",
        "3\t0x00000007 Idle BYTES=1",
    ]


def test_the_reference_page_shows_that_example() -> None:
    page = (REFERENCE.parent.parent.parent / "docs" / "messages.md").read_text(encoding="utf-8")
    example = bytes.fromhex("ff 70 d0 1d 1d f8 ff ff")
    assert f"The bytes `{example.hex(' ')}`" in page
    for _, _, line in lines([example], PLAIN, 64):
        assert f"\n    {line}\n" in page


def test_address_xor_calculation_examples() -> None:
    """8.1: F-ADDR 0x1FE02 is 0x3FC04, then U-ADDR 0x7B6 is 0x3F368 and 0x934 is 0x3E100."""
    data = message("ProgTraceSync", sync=3, icnt=0, faddr=0x1FE02)
    data += message("IndirectBranch", b_type=0, icnt=5, uaddr=0x7B6)
    data += message("IndirectBranchHist", b_type=0, icnt=5, uaddr=0x934, hist=1)
    assert [columns(line)["addr"] for line in dump(data)] == ["0x3fc04", "0x3f368", "0x3e100"]


def test_hist_field_generation_examples() -> None:
    """8.2: 0x5 is not taken, taken; 0xF three taken; 0x10 four not taken; 0x1 none."""
    data = b"".join(message("ResourceFull", rcode=1, rdata=hist) for hist in (0x5, 0xF, 0x10, 0x1))
    assert [columns(line)["hist"] for line in dump(data)] == ["NT", "TTT", "NNNN", "-"]
    assert columns(dump(message("ResourceFull", rcode=1, rdata=0))[0])["hist"] == "?"


@pytest.mark.parametrize(
    ("process", "meant", "words"),
    [
        (0x3B2, {"prv": "0", "v": "1", "scontext": "29"}, "VU-mode, scontext 29"),
        (0xC, {"prv": "3", "v": "0"}, "M-mode"),
        (0x4, {"prv": "1", "v": "0"}, "S-mode"),
        (0x17 | 5 << 5, {"prv": "1", "v": "1", "hcontext": "5"}, "VS-mode, hcontext 5"),
        (0x1, {}, "reserved FORMAT 1 of PROCESS"),
    ],
)
def test_ownership_examples(process: int, meant: dict[str, str], words: str) -> None:
    """7.1, "Ownership Message": the first two are its examples, the others its table."""
    [line] = dump(message("Ownership", process=process))
    assert columns(line) == {"TCODE": "2", "PROCESS": f"{process:#x}", **meant}
    assert line.endswith(f" # {words}")


def test_repeated_history_example() -> None:
    """9.3: HIST 0x55555555 ten times, or the short pattern 0x5 150 times."""
    data = message("ResourceFull", rcode=2, rdata=0x55555555, hrepeat=10)
    data += message("ResourceFull", rcode=2, rdata=0x5, hrepeat=150) + message("RepeatBranch", bcnt=1)
    assert dump(data) == [
        f"ResourceFull TCODE=27 RCODE=2 RDATA=0x55555555 HREPEAT=10 hist={'NT' * 15} # HIST full, 10 times the same",
        "ResourceFull TCODE=27 RCODE=2 RDATA=0x5 HREPEAT=150 hist=NT # HIST full, 150 times the same",
        "RepeatBranch TCODE=30 B-CNT=1 # the branch message before, 1 time more",
    ]


@pytest.mark.parametrize(
    ("mdo", "field", "address"),
    [
        ("111111 111111 111111 111111 111111 011111", 0x7_FFFF_FFFF, 0xF_FFFF_FFFE),
        ("111111 111111 111111 111111 011111 111100", 0xF_1FFF_FFFF, 0xFFFF_FFFE_3FFF_FFFE),
        ("111111 111111 111111 111111 111111 111111 000000", 0xF_FFFF_FFFF, 0x1F_FFFF_FFFE),
        ("111111 " * 10 + "000101", 0x5FFF_FFFF_FFFF_FFFF, 0xBFFF_FFFF_FFFF_FFFE),
    ],
)
def test_virtual_addresses_optimization_examples(mdo: str, field: int, address: int) -> None:
    """9.4: the field is shown as it was sent, the address with its high bits."""
    faddr = bytes(int(bits, 2) << 2 for bits in mdo.split())
    data = message("ProgTraceSync", sync=2, icnt=0, faddr=0)[:-1] + faddr[:-1] + bytes([faddr[-1] | 3])
    [line] = dump(data, Options(extend_addr_msb=True))
    assert columns(line)["F-ADDR"] == f"{field:#x}"
    assert columns(line)["addr"] == f"{address:#x}"


def test_an_extended_u_addr_is_xored_before_it_is_cut() -> None:
    """9.4: "Calculation of full address must be done after sign extension of U-ADDR field": U-ADDR of 6 ones is -1."""
    data = message("ProgTraceSync", sync=3, icnt=0, faddr=0) + message("IndirectBranch", b_type=0, icnt=1, uaddr=63)
    assert [columns(line)["addr"] for line in dump(data, Options(extend_addr_msb=True), 32)] == ["0x0", "0xfffffffe"]
    assert [columns(line)["addr"] for line in dump(data, PLAIN, 32)] == ["0x0", "0x7e"]


def test_icnt_field_full_example() -> None:
    """8.3: start at 0x100, I-CNT full at 9, stop after 5 more with one branch not taken."""
    data = message("ProgTraceSync", sync=3, icnt=0, faddr=0x80) + message("ResourceFull", rcode=0, rdata=9)
    data += message("ProgTraceCorrelation", evcode=0, cdf=1, icnt=5, hist=2)
    assert dump(data) == [
        "ProgTraceSync TCODE=9 SYNC=3 I-CNT=0 F-ADDR=0x80 addr=0x100 # exit from debug mode",
        "ResourceFull TCODE=27 RCODE=0 RDATA=9 # I-CNT full",
        "ProgTraceCorrelation TCODE=33 EVCODE=0 CDF=1 I-CNT=5 HIST=0x2 hist=N # entry into debug mode",
    ]


# Codes


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("ProgTraceSync", {"sync": 0, "icnt": 0, "faddr": 1}, "external trigger"),
        ("ProgTraceSync", {"sync": 9, "icnt": 0, "faddr": 1}, "exit from power-down"),
        ("ProgTraceSync", {"sync": 10, "icnt": 0, "faddr": 1}, "reserved SYNC 10"),
        ("ProgTraceSync", {"sync": 15, "icnt": 0, "faddr": 1}, "vendor defined SYNC 15"),
        ("IndirectBranchSync", {"sync": 2, "b_type": 3, "icnt": 0, "faddr": 1}, "periodic synchronization; interrupt"),
        ("DirectBranch", {"icnt": 3}, "branch taken"),
        ("DirectBranchSync", {"sync": 5, "icnt": 3, "faddr": 1}, "trace enabled"),
        ("IndirectBranchHist", {"b_type": 1, "icnt": 0, "uaddr": 0, "hist": 1}, "exception or interrupt; its address"),
        ("Error", {"etype": 0, "ecode": 0}, "messages lost in a FIFO overrun"),
        (
            "Error",
            {"etype": 0, "ecode": 0x8C},
            "messages lost in a FIFO overrun, program trace lost, ownership trace lost, vendor defined messages lost",
        ),
        ("Error", {"etype": 1, "ecode": 0}, "reserved ETYPE 1"),
        ("Error", {"etype": 8, "ecode": 0}, "vendor defined ETYPE 8"),
        ("ResourceFull", {"rcode": 3, "rdata": 7}, "reserved RCODE 3"),
        ("ResourceFull", {"rcode": 8, "rdata": 7}, "vendor defined RCODE 8"),
        ("RepeatBranch", {"bcnt": 9}, "the branch message before, 9 times more"),
        ("ProgTraceCorrelation", {"evcode": 4, "cdf": 0, "icnt": 1}, "trace disabled"),
        ("ProgTraceCorrelation", {"evcode": 2, "cdf": 0, "icnt": 1}, "reserved EVCODE 2"),
        ("ProgTraceCorrelation", {"evcode": 15, "cdf": 3, "icnt": 1}, "vendor defined EVCODE 15; reserved CDF 3"),
        ("DirectBranch", {"icnt": 1 << 22}, "branch taken; I-CNT has 23 bits, more than 22"),
    ],
)
def test_codes_in_words(name: str, fields: dict[str, int], words: str) -> None:
    """The tables of the messages in chapter 7, the SYNC values of 8.4, the maximum sizes of 6.2."""
    [line] = dump(message(name, (0, 0), None, **fields))
    assert line.startswith(f"{name} TCODE=")
    assert line.partition(" # ")[2].startswith(words)


def test_messages_outside_the_table_are_shown_with_their_bytes() -> None:
    """6.1: 56 to 62 are the vendor's, all others reserved, and a decoder must be able to display them."""
    data = groups((56, 6), (5, 0)) + groups((13, 6), (5, 0))
    assert dump(data) == [
        f"VendorDefined TCODE=56 RAW={data[:2].hex()} # vendor defined message",
        f"Reserved TCODE=13 RAW={data[2:].hex()} # reserved TCODE",
    ]


# Sources and times


def test_each_source_has_its_own_reference_and_time() -> None:
    options = Options(src_bits=3, timestamps=True)
    data = message("ProgTraceSync", (3, 1), 1000, sync=3, icnt=0, faddr=0x80)
    data += message("ProgTraceSync", (3, 6), 5000, sync=3, icnt=0, faddr=0x1000)
    data += message("IndirectBranch", (3, 1), 10, b_type=0, icnt=1, uaddr=1)
    data += message("IndirectBranch", (3, 6), 20, b_type=0, icnt=1, uaddr=1)
    data += message("DirectBranch", (3, 1), 5, icnt=1)
    data += message("DirectBranch", (3, 1), icnt=1)
    found = [columns(line) for line in dump(data, options)]
    assert [row["SRC"] for row in found] == ["1", "6", "1", "6", "1", "1"]
    assert [row.get("addr") for row in found] == ["0x100", "0x2000", "0x102", "0x2002", None, None]
    assert [row.get("time") for row in found] == ["1000", "5000", "1010", "5020", "1015", None]


def test_time_goes_on_when_the_counter_wraps() -> None:
    options = Options(timestamps=True, timestamp_bits=16)
    data = message("ProgTraceSync", tstamp=0xFFF0, sync=3, icnt=0, faddr=0x80)
    data += message("DirectBranch", tstamp=0x20, icnt=1)
    data += message("ProgTraceSync", tstamp=0x40, sync=2, icnt=0, faddr=0x80)
    assert [columns(line)["time"] for line in dump(data, options)] == [str(0xFFF0), str(0x1_0010), str(0x1_0040)]


def test_from_the_middle_the_unknown_is_said_to_be_unknown() -> None:
    options = Options(timestamps=True)
    data = message("IndirectBranch", tstamp=3, b_type=0, icnt=1, uaddr=8)
    data += message("ProgTraceSync", tstamp=100, sync=2, icnt=0, faddr=0x80)
    data += message("IndirectBranch", tstamp=3, b_type=0, icnt=1, uaddr=8)
    found = [(columns(line)["addr"], columns(line)["time"]) for line in dump(data, options)]
    assert found == [("?", "?"), ("0x100", "100"), ("0x110", "103")]
    assert "address is relative to one that is not known here; its TSTAMP is" in dump(data, options)[0]


def test_nothing_relative_is_known_after_lost_bytes_and_errors() -> None:
    start = message("ProgTraceSync", sync=2, icnt=0, faddr=0x80)
    branch = message("IndirectBranch", b_type=0, icnt=1, uaddr=8)
    for lost in (b"\x02\x03", message("Error", etype=0, ecode=4)):
        assert [columns(line).get("addr") for line in dump(start + lost + branch)] == ["0x100", None, "?"]


def test_a_wrapped_buffer_starts_inside_a_message() -> None:
    data = message("ProgTraceSync", sync=2, icnt=0, faddr=0x8000)
    assert dump(data[2:] + data, wrapped=True) == [
        f"NoMessage BYTES={len(data) - 2} # the start of the buffer, inside a message",
        "ProgTraceSync TCODE=9 SYNC=2 I-CNT=0 F-ADDR=0x8000 addr=0x10000 # periodic synchronization",
    ]


# Bytes that are not messages


def test_bytes_that_are_no_message_say_why() -> None:
    """3.1: MSEO 10 is reserved, a message starts with 00; 7.13: it has all its fields."""
    data = b"\x06\x03" + b"\x05\x03" + groups((28, 6), (0, 2), (5, 0)) + b"\xff" * 5 + b"\x24\x00"
    assert dump(data) == [
        "NoMessage BYTES=2 # reserved MSEO value 10",
        "NoMessage BYTES=2 # bytes that do not start a message",
        "NoMessage BYTES=2 # IndirectBranchHist without U-ADDR",
        "Idle BYTES=5",
        "NoMessage BYTES=2 # the last message is cut off",
    ]


def test_raw_bytes_on_request() -> None:
    data = message("DirectBranch", icnt=3) + b"\xff\x02\x03"
    assert dump(data, raw=True) == [
        f"DirectBranch TCODE=3 I-CNT=3 RAW={data[:2].hex()} # branch taken",
        "Idle BYTES=1",
        "NoMessage BYTES=2 RAW=0203 # reserved MSEO value 10",
    ]


_likely = st.sampled_from([0x00, 0x01, 0x03, 0xFF, 0x70, 0x24, 0x88])
_noise = st.binary(max_size=400) | st.lists(_likely, max_size=400).map(bytes)
_options = st.builds(
    Options,
    src_bits=st.integers(0, 12),
    timestamp_bits=st.sampled_from([0, 8, 40]),
    extend_addr_msb=st.booleans(),
    address_bits=st.sampled_from([None, 0, 39, 48]),
    dialect=st.sampled_from([PLAIN.dialect, SIFIVE]),
)


@given(st.lists(_noise, max_size=4), _options, st.booleans(), st.sampled_from([32, 64]))
def test_any_bytes_are_lines_and_none_is_left_out(
    pieces: list[bytes], options: Options, wrapped: bool, xlen: int
) -> None:
    shown = list(lines(pieces, options, xlen, wrapped=wrapped, raw=True))
    assert _covered([item for _, item, _ in shown]) == sum(map(len, pieces))
    assert all(line.isprintable() for _, _, text in shown for line in text.split("\t"))
    assert [number for number, _, _ in shown] == list(range(1, len(shown) + 1))
    whole = lines([b"".join(pieces)], options, xlen, wrapped=wrapped, raw=True)
    assert [line for _, _, line in whole] == [line for _, _, line in shown], "the pieces do not matter"


def _covered(items: list[Item]) -> int:
    end = 0
    for item in items:
        assert item.offset == end and item.length > 0
        end = item.end
    return end


def test_messages_of_any_size() -> None:
    """3, "robust enough to handle messages of any size": a memory of zeros, and fields of thousands of bits."""
    assert dump(bytes(100_000)) == ["NoMessage BYTES=100000 # no end of message within 4096 bytes"]
    huge = bytes.fromhex("0c") + b"\xfc" * 4000 + b"\xff"
    [line] = dump(huge, raw=True)
    assert line.startswith("DirectBranch TCODE=3 I-CNT=0x3ffff") and "I-CNT has 24006 bits, more than 22" in line
    assert len(line) < 10_000


# The reference encoder's streams


def test_reference_streams_have_the_messages_the_reference_counts() -> None:
    """The reference decoder counts 367 messages of t1 with repeated history, 365 of them ResourceFull, 35 RCODE 2."""
    shown = dump((REFERENCE / "t1.4.nex").read_bytes(), xlen=32)
    assert len(shown) == 367
    assert shown[0] == "ProgTraceSync TCODE=9 SYNC=1 I-CNT=0 F-ADDR=0x10008291 addr=0x20010522 # exit from reset"
    assert sum(line.startswith("ResourceFull ") for line in shown) == 365
    assert sum(" RCODE=2 " in line for line in shown) == 35
    assert shown[-1].startswith("ProgTraceCorrelation TCODE=33 ") and columns(shown[-1])["I-CNT"] == "286442"


def test_every_reference_stream_is_messages_only() -> None:
    names = sorted(REFERENCE.glob("*.nex"))
    assert len(names) == 41
    for name in names:
        shown = dump(name.read_bytes())
        assert not [line for line in shown if line.startswith(("NoMessage", "Reserved", "Vendor"))], name
        assert not [line for line in shown if "more than" in line or "=?" in line], name


def test_filling_that_is_not_the_standards_is_remarked_once() -> None:
    """As an encoder in real RTL (tenstorrent/tt-dfd) sends it."""
    full = message("ResourceFull", rcode=1, rdata=0b10)
    shown = dump(b"\xff" + full + b"\x03" + full + b"\x03\xff")
    assert [line for line in shown if line.startswith("Idle")] == [
        "Idle BYTES=1",
        "Idle BYTES=1 # a byte 0x03 between messages is treated as idle, which is 0xff",
        "Idle BYTES=2",
    ]


def test_performance_counters_of_sifive_are_no_address() -> None:
    """A PC sample, CKSRC 12 with the counters 0x147 and 0x1c, a watchpoint: SiFive's decoder has the watchpoint at
    0x200035f4, relative to the sample.
    """
    on = groups((35, 6), (0, 4), (1, 2), (0x10001AC0, 0), (2, 0))
    sample = groups((34, 6), (15, 4), (0, 2), (0x28, 0))
    counters = groups((34, 6), (12, 4), (1, 2), (0x001C_0147, 0), (0, 0))
    watchpoint = groups((34, 6), (14, 4), (1, 2), (0x12, 0), (0, 0))
    shown = dump(on + sample + counters + watchpoint, Options(dialect=SIFIVE), 32)
    assert [columns(line).get("addr") for line in shown] == ["0x20003580", "0x200035d0", None, "0x200035f4"]
    assert [line.partition(" # ")[2] for line in shown] == [
        "control: trace on",
        "PC sample",
        "performance counters: 0x0147 0x001c",
        "watchpoint 0",
    ]
