"""How the encoder writes fields where it may choose, its timestamps, Ownership and vendor messages, and idle bytes."""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.ntrace.messages import LAYOUTS, Evcode, Packer, Sync, Tcode, parse
from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, Dialect, InstSyncMode
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.ntrace.messages import Recorder, message, started, stopped, vendor

JUMP = Block(0x100, b"\1\2", IType.OTHER_UNINFERABLE)
BACK = Block(0x100, b"\1\2", IType.NOT_TAKEN, 0x100)
MACHINE, USER = ProgramContext(3), ProgramContext(0)


def test_section_6_1_an_empty_field_has_at_least_one_bit() -> None:
    """I-CNT=0 after 12 bits of other fields: a byte of its own; of 0 bits it has none (tg-nexus-trace, issue 96)."""
    values = (Tcode.PROG_TRACE_CORRELATION, Evcode.DEBUG_MODE, 0, 0)
    assert Packer(LAYOUTS, 0, 0).pack(*values).hex() == "840003"
    assert Packer(LAYOUTS, 0, 0, empty_fields=True).pack(*values).hex() == "8403"


def test_section_3_1_the_first_byte_never_ends_a_message() -> None:
    """ "MSEO 11 to 01 is reserved": DirectBranch with I-CNT=0 has two bytes, empty or not."""
    assert Packer(LAYOUTS, 0, 0, empty_fields=True).pack(Tcode.DIRECT_BRANCH, 0).hex() == "0c03"


@pytest.mark.parametrize("xlen", [32, 64])
@pytest.mark.parametrize("padding", [0, 2])
def test_section_9_4_the_highest_bit_sent_is_that_of_all_above_it(xlen: int, padding: int) -> None:
    """If bits are skipped, whole bytes are sent; an address that cannot be shortened is sent in full."""
    bits = xlen - 1
    packer = Packer(LAYOUTS, 0, 0, address_bits=bits, padding=padding)
    for size in range(bits + 1):
        for low in (0, 0b101101):
            for address in (((1 << size) - 1) ^ low, ((1 << bits) - 1) ^ ((1 << size) - 1) ^ low):
                raw = packer.pack(Tcode.PROG_TRACE_SYNC, Sync.PERIODIC, 0, address)
                field = raw[raw.index(next(byte for byte in raw[1:] if byte & 1), 1) + 1 :]
                sent = sum((byte >> 2) << 6 * i for i, byte in enumerate(field))
                width = 6 * len(field)
                if width < bits and sent >> width - 1:
                    sent |= -1 << width
                assert sent & (1 << bits) - 1 == address
                assert width <= bits + 5 + 6 * padding


def test_section_3_4_idle_bytes() -> None:
    """After every message, and before a synchronizing one, so that its start can be found on a narrow port."""
    recorder = Recorder(idle_bytes=2, idle_before_sync=3)
    recorder.retire(JUMP)
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert b"".join(recorder.raw) == b"\xff" * 3 + started() + b"\xff" * 2 + stopped(3) + b"\xff" * 2


def test_section_7_timestamps_of_what_is_counted_are_those_of_the_last_time() -> None:
    """The count is sent later, with the next message, and that one tells the time between."""
    recorder = Recorder(btm=True, repeat_branch=True, timestamps=True)
    recorder.retire(*[BACK] * 5, Block(0x106, b"\1" * 8))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    stamps = [(fields["name"], fields["tstamp"]) for fields in recorder.messages()]
    assert stamps == [("ProgTraceSync", 0), ("DirectBranch", 2), ("RepeatBranch", 6), ("ProgTraceCorrelation", 10)]


def test_a_full_i_cnt_within_a_block_has_its_own_time() -> None:
    recorder = Recorder(timestamps=True, icnt_limit=3)
    recorder.retire(Block(0x100, b"\1" * 8))
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert [fields["tstamp"] for fields in recorder.messages()] == [0, 3, 3, 2]


@pytest.mark.parametrize(("dialect", "expected"), [(RATIFIED, [14, 3, 4]), (SIFIVE, [14, 15, 4])])
def test_a_narrow_clock_wraps(dialect: Dialect, expected: list[int]) -> None:
    """At 14, 17 and 20 with 4 bits: absolute, the difference (SiFive: the XOR) of the low bits, absolute again."""
    recorder = Recorder(timestamps=True, timestamp_bits=4, dialect=dialect)
    recorder.encoder.time(14)
    recorder.retire(JUMP)
    recorder.encoder.time(17)
    recorder.retire(JUMP)
    recorder.encoder.mark(Sync.TRACE_EVENT)
    recorder.encoder.time(20)
    recorder.retire(JUMP)
    assert [fields["tstamp"] for fields in recorder.messages()] == expected


def processes(*steps: object, **options: object) -> list[int]:
    """PROCESS of the Ownership messages when a hart enters contexts and runs blocks."""
    recorder = Recorder(context=True, **options)  # type: ignore[arg-type]
    for step in steps:
        if isinstance(step, ProgramContext):
            recorder.encoder.context(step)
        else:
            assert isinstance(step, Block | IngressTrap)
            recorder.retire(step)
    return [int(fields["process"]) for fields in recorder.messages() if "process" in fields]


def process(form: int, prv: int, context: int = 0, v: int = 0) -> int:
    """{CONTEXT, V, PRV, FORMAT} (7.1)."""
    return context << 5 | v << 4 | prv << 2 | form


LINUX, GUEST = ProgramContext(1, False, 738), ProgramContext(0, True, 29, 5)
OWNERSHIPS: list[tuple[Sequence[object], dict[str, object], list[int]]] = [
    ([MACHINE, JUMP], {}, [process(0, 3)]),
    ([MACHINE, JUMP, USER, JUMP], {}, [process(0, 3), process(0, 0)]),
    ([MACHINE, JUMP, MACHINE, JUMP], {}, [process(0, 3)]),
    ([LINUX, JUMP, LINUX._replace(prv=0), JUMP], {}, [process(2, 1, 738), process(0, 0)]),
    ([LINUX, JUMP, LINUX._replace(scontext=739), JUMP], {}, [process(2, 1, 738), process(2, 1, 739)]),
    ([GUEST, JUMP], {}, [process(3, 0, 5, 1), process(2, 0, 29, 1)]),
    ([GUEST, JUMP], {"dialect": SIFIVE}, [process(2, 0, 29, 1), process(3, 0, 5, 1)]),
    ([MACHINE, JUMP, USER, JUMP], {"ownership_full": True}, [process(2, 3), process(2, 0)]),
    ([LINUX, JUMP, LINUX._replace(prv=0), JUMP], {"ownership_full": True}, [process(2, 1, 738), process(2, 0, 738)]),
]


@pytest.mark.parametrize(("steps", "options", "expected"), OWNERSHIPS)
def test_section_7_1_ownership(steps: Sequence[object], options: dict[str, object], expected: list[int]) -> None:
    """FORMAT 0 for a change of privilege alone; hcontext (3) before scontext (2), in SiFive's dialect behind it."""
    assert processes(*steps, **options) == expected


def test_section_7_1_ownership_follows_every_synchronizing_message() -> None:
    """And the message of the trap return that led to the new context, not the other way round."""
    recorder = Recorder(context=True, sync_mode=InstSyncMode.HALFWORDS, sync_max=0)
    recorder.encoder.context(MACHINE)
    back = Block(0x100, b"\1\2", IType.TRAP_RETURN)
    recorder.retire(back)
    recorder.encoder.context(USER)
    recorder.retire(Block(0x200, b"\2" * 8), Block(0x210, b"\1"))
    names = [fields["name"] for fields in recorder.messages()]
    assert names[::2] == ["ProgTraceSync", "IndirectBranchHist", "IndirectBranchHistSync"]
    assert names[1::2] == ["Ownership"] * 3
    assert [fields["process"] for fields in recorder.messages()[1::2]] == [process(0, 3), process(0, 0), process(0, 0)]


def test_the_place_of_a_context_switch() -> None:
    """A write of scontext has no message with an address before it; HIST and I-CNT then say where it was."""
    branch = Block(0x100, b"\1\1", IType.NOT_TAKEN, 0x100)
    for exact, expected in ((False, []), (True, [("rcode", 1), ("rcode", 0)])):
        recorder = Recorder(context=True, exact_context=exact)
        recorder.encoder.context(LINUX)
        recorder.retire(branch, Block(0x104, b"\2"))
        recorder.encoder.context(LINUX._replace(scontext=1))
        codes = [("rcode", fields["rcode"]) for fields in recorder.messages() if "rcode" in fields]
        assert codes == expected
        assert recorder.messages()[-1]["process"] == process(2, 1, 1)


def test_section_6_1_vendor_messages() -> None:
    """They come where they are asked for, with SRC and without a timestamp, which no decoder could find in them."""
    recorder = Recorder(src_bits=4, src_id=9, timestamps=True)
    recorder.retire(JUMP)
    recorder.encoder.vendor(56, 5, 0x1000)
    recorder.encoder.vendor(62)
    assert recorder.raw[1:] == [vendor(56, 5, 0x1000, source=(4, 9)), vendor(62, 0, source=(4, 9))]
    for tcode in (Tcode.ERROR, 64, -1):
        with pytest.raises(ValueError, match="not free for a vendor's message"):
            recorder.encoder.vendor(tcode)


def test_messages_of_the_dialect() -> None:
    """DataAcquisition and InCircuitTrace are SiFive's, with fixed fields; in N-Trace these TCODEs are reserved."""
    recorder = Recorder(dialect=SIFIVE)
    recorder.retire(JUMP)
    recorder.encoder.vendor(Tcode.DATA_ACQUISITION, 3, 0x41)
    recorder.encoder.vendor(Tcode.IN_CIRCUIT_TRACE, 8, 0, 0x80)
    layouts = SIFIVE.layouts
    assert dict(parse(recorder.raw[1], 0, layouts).fields) == {"idtag": 3, "dqdata": 0x41}
    assert dict(parse(recorder.raw[2], 0, layouts).fields) == {"cksrc": 8, "ckdf": 0, "ckdata0": 0x80}


def test_sifive_addresses_have_48_bits() -> None:
    """F-ADDR of a kernel address is cut, so 8 bytes do (linux-static has 0x7f...); RV32 addresses are sent in full."""
    pc = 0xFFFF_FFFF_8000_31F4
    for xlen, bits in ((64, 48), (32, 31)):
        recorder = Recorder(dialect=SIFIVE, xlen=xlen)
        recorder.retire(Block(pc & (1 << xlen) - 1, b"\1"))
        assert recorder.raw == [message("ProgTraceSync", sync=3, icnt=0, faddr=pc >> 1 & (1 << bits) - 1)]
