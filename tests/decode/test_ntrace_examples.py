"""The worked examples of N-Trace 1.0.0-rc7, one test each, named after their sections."""

from collections.abc import Iterable

import pytest

from decode.history import EventKind, History
from decode.image import Image
from decode.ingress import Block, Trap, blocks_from_pcs
from decode.ntrace.decoder import Options, decode
from decode.ntrace.encoder import Encoder, EncoderOptions
from decode.ntrace.layout import LAYOUTS, Evcode, Sync, Tcode
from decode.ntrace.message import parse
from decode.ntrace.packing import build
from tests.decode import assembler as asm

C_ADD = bytes.fromhex("2e95")  # c.add a0, a1
ADD = bytes.fromhex("3305b500")  # add a0, a0, a1


def image_of(*pieces: tuple[int, Iterable[bytes]]) -> Image:
    image = Image(32)
    for address, instructions in pieces:
        image.add_code(address, b"".join(instructions))
    return image


def encoded(
    image: Image,
    pcs: list[int],
    next_pc: int | None = None,
    *,
    sync: Sync = Sync.EXIT_FROM_DEBUG,
    options: EncoderOptions | None = None,
) -> list[bytes]:
    messages: list[bytes] = []
    encoder = Encoder(options or EncoderOptions(), messages.append)
    encoder.start(sync)
    encoder.retire(list(blocks_from_pcs(pcs, image)))
    encoder.stop(Evcode.DEBUG_MODE, next_pc)
    return messages


def fields(message: bytes) -> dict[str, int]:
    return dict(parse(message, 0).fields)


def message(tcode: Tcode, **values: int) -> bytes:
    return build(LAYOUTS[tcode], 0, 0, **values)


def decoded(image: Image, *messages: bytes, btm: bool = False) -> History:
    return decode(b"".join(messages), image, Options(btm=btm))


def test_section_3_5_message_example() -> None:
    """Table 6: IndirectBranchHist, with idle bytes around it and a last byte that looks like one."""
    raw = bytes.fromhex("70d01d1df8ff")
    parsed = parse(raw, 0)
    assert parsed.name == "IndirectBranchHist"
    assert dict(parsed.fields) == {"b_type": 0, "icnt": 0x7D, "uaddr": 7, "hist": 0xFFE}
    assert build(LAYOUTS[28], 0, 0, **parsed.fields) == raw
    image = image_of((0x100, [asm.C_NOP] * 0x7C + [asm.c_jr(6)]))
    start = message(Tcode.PROG_TRACE_SYNC, sync=3, icnt=0, faddr=0x80)
    jump = message(Tcode.INDIRECT_BRANCH_HIST, b_type=0, icnt=0x7D, uaddr=7, hist=1)
    history = decoded(image, b"\xff", start, b"\xff", jump, b"\xff")
    assert list(history.pcs()) == list(range(0x100, 0x1FA, 2))
    assert history.accounting.idle == 3


def test_section_8_1_address_compression() -> None:
    """Table 24: F-ADDR 0x1FE02, then U-ADDR 0x7B6 and 0x934."""
    image = image_of((0x3FC04, [asm.c_jr(6)]), (0x3F368, [asm.c_jr(6)]), (0x3E100, [asm.C_NOP]))
    pcs = [0x3FC04, 0x3F368, 0x3E100]
    messages = encoded(image, pcs)
    assert [fields(m).get("faddr", fields(m).get("uaddr")) for m in messages[:3]] == [0x1FE02, 0x7B6, 0x934]
    assert list(decoded(image, *messages).pcs()) == pcs


@pytest.mark.parametrize(
    ("outcomes", "hist"), [([0, 1], 0b101), ([1, 1, 1], 0b1111), ([0, 0, 0, 0], 0b10000), ([], 0b1)]
)
def test_section_8_3_hist(outcomes: list[int], hist: int) -> None:
    """The four examples of HIST generation: a taken branch skips a c.nop here."""
    image = image_of((0x100, [asm.c_beqz(4), asm.C_NOP] * 5))
    pcs, pc = [], 0x100
    for outcome in outcomes:
        pcs += [pc] if outcome else [pc, pc + 2]
        pc += 4
    messages = encoded(image, pcs, pc)
    assert fields(messages[-1]).get("hist") == hist
    assert list(decoded(image, *messages).pcs()) == pcs


# The piece of code of 8.4.1 and 8.4.2.
PIECE = (
    (0x100, [C_ADD, asm.beq(0x200 - 0x102), ADD, asm.beq(0x300 - 0x10A), C_ADD, ADD, asm.C_EBREAK]),
    (0x200, [C_ADD, asm.C_EBREAK]),
    (0x300, [ADD, asm.C_EBREAK]),
)
FIRST, SECOND, NEITHER = (
    [0x100, 0x102, 0x200],
    [0x100, 0x102, 0x106, 0x10A, 0x300],
    [0x100, 0x102, 0x106, 0x10A, 0x10E, 0x110],
)
START = message(Tcode.PROG_TRACE_SYNC, sync=3, icnt=0, faddr=0x80)


@pytest.mark.parametrize(
    ("pcs", "icnts"), [(FIRST, [3, 1]), (SECOND, [7, 2]), (NEITHER, [10])], ids=["first", "second", "neither"]
)
def test_section_8_4_1_i_cnt_in_btm(pcs: list[int], icnts: list[int]) -> None:
    """DirectBranch with I-CNT 3 or 7 when a branch is taken, then ProgTraceCorrelation; 10 when none is."""
    *branches, last = icnts
    taken = [message(Tcode.DIRECT_BRANCH, icnt=icnt) for icnt in branches]
    stop = message(Tcode.PROG_TRACE_CORRELATION, evcode=0, cdf=0, icnt=last)
    history = decoded(image_of(*PIECE), START, *taken, stop, btm=True)
    assert list(history.pcs()) == pcs
    assert history.gaps == 0


@pytest.mark.parametrize("icnt", [1, 5, 0])
def test_section_8_4_1_exception_after_any_instruction(icnt: int) -> None:
    """ "I-CNT=1 is the correct value", and 5, and 0: an IndirectBranch with B-TYPE 1 to the handler."""
    image = image_of(*PIECE, (0x800, [asm.C_NOP]))
    trap = message(Tcode.INDIRECT_BRANCH, b_type=1, icnt=icnt, uaddr=(0x100 ^ 0x800) >> 1)
    stop = message(Tcode.PROG_TRACE_CORRELATION, evcode=0, cdf=0, icnt=1)
    history = decoded(image, START, trap, stop, btm=True)
    executed = {1: [0x100], 5: [0x100, 0x102, 0x106], 0: []}[icnt]
    assert list(history.pcs()) == [*executed, 0x800]
    assert [e.kind for e in history.events] == [EventKind.TRACE_ON, EventKind.TRAP, EventKind.TRACE_OFF]


@pytest.mark.parametrize("icnt", [4, 6, 9])
def test_section_8_4_1_half_an_instruction(icnt: int) -> None:
    """ "I-CNT=4 or 6 or 9 are INCORRECT values": reported, and decoding resumes at the next synchronization message."""
    trap = message(Tcode.INDIRECT_BRANCH, b_type=1, icnt=icnt, uaddr=0x10)
    again = message(Tcode.PROG_TRACE_SYNC, sync=2, icnt=0, faddr=0x180)
    stop = message(Tcode.PROG_TRACE_CORRELATION, evcode=0, cdf=0, icnt=2)
    history = decoded(image_of(*PIECE), START, trap, again, stop, btm=True)
    (cause,) = [e for e in history.events if e.kind is EventKind.MISMATCH]
    assert "I-CNT ends inside the instruction" in cause.text
    assert cause.offset == len(START)
    assert list(history.pcs())[-2:] == [-1, 0x300]
    assert (cause.last_pc, cause.next_pc) == (history.pc(len(history) - 3), 0x300)


@pytest.mark.parametrize(
    ("pcs", "icnt", "hist", "after"),
    [(FIRST, 4, 0b11, 0x202), (SECOND, 9, 0b101, 0x304), (NEITHER, 10, 0b100, 0x114)],
    ids=["first", "second", "neither"],
)
def test_section_8_4_2_i_cnt_in_htm(pcs: list[int], icnt: int, hist: int, after: int) -> None:
    image = image_of(*PIECE)
    messages = encoded(image, pcs, after)
    assert messages == [START, message(Tcode.PROG_TRACE_CORRELATION, evcode=0, cdf=1, icnt=icnt, hist=hist)]
    history = decoded(image, *messages)
    assert list(history.pcs()) == pcs
    resumed = decoded(image, *messages, message(Tcode.PROG_TRACE_SYNC, sync=3, icnt=0, faddr=after >> 1))
    assert resumed.gaps == 0  # it stopped exactly there


# The code of 8.4.4: the branch is not taken, c.ebreak at 0x11C is not retired.
LINEAR = (0x100, [C_ADD, asm.beq(0x200 - 0x102), C_ADD, ADD, ADD, ADD, ADD, ADD, asm.C_EBREAK])
LINEAR_PCS = [0x100, 0x102, 0x106, 0x108, 0x10C, 0x110, 0x114, 0x118]


def test_section_8_4_4_i_cnt_overflow_by_a_synchronization() -> None:
    """The three messages of the example, byte for byte, with a 4-bit counter whose top bit means full."""
    options = EncoderOptions(icnt_limit=8, icnt_full_sync=True)
    messages = encoded(image_of(LINEAR), LINEAR_PCS, 0x11C, options=options)
    assert [m.hex(" ") for m in messages] == ["24 0d 00 0b", "74 10 21 20 09 0b", "84 40 19 07"]
    assert fields(messages[1]) == {"sync": 4, "b_type": 0, "icnt": 8, "faddr": 0x88, "hist": 0b10}
    assert fields(messages[2]) == {"evcode": 0, "cdf": 1, "icnt": 6, "hist": 1}
    assert list(decoded(image_of(LINEAR), *messages).pcs()) == LINEAR_PCS


def test_section_8_4_4_i_cnt_overflow_by_resource_full() -> None:
    """The first choice, the only one of the ratified text. HIST comes only with the last message, after its I-CNT."""
    messages = encoded(image_of(LINEAR), LINEAR_PCS, 0x11C, options=EncoderOptions(icnt_limit=8))
    assert [m.hex(" ") for m in messages] == ["24 0d 00 0b", "6c 00 0b", "84 40 19 0b"]
    assert list(decoded(image_of(LINEAR), *messages).pcs()) == LINEAR_PCS


def test_section_8_4_4_what_is_determined_before_hist_comes() -> None:
    """The trace ends after the ResourceFull: the branch and what is before it ran for certain, no more."""
    history = decoded(image_of(LINEAR), START, message(Tcode.RESOURCE_FULL, rcode=0, rdata=8))
    assert list(history.pcs()) == [0x100, 0x102]


def test_section_8_6_back_to_back_returns() -> None:
    image = image_of((0x100, [asm.c_jr(1)]), (0x200, [asm.jalr(0, 1)]), (0x300, [asm.C_NOP]))
    messages = encoded(image, [0x100, 0x200, 0x300])
    assert [fields(m)["icnt"] for m in messages[1:3]] == [1, 2]
    assert list(decoded(image, *messages).pcs()) == [0x100, 0x200, 0x300]


HANDLERS = image_of((0x100, [asm.C_NOP] * 4), (0x800, [asm.C_NOP]), (0x900, [asm.C_NOP]))


def encoded_items(*items: Block | Trap, next_pc: int | None = None) -> list[bytes]:
    messages: list[bytes] = []
    encoder = Encoder(EncoderOptions(), messages.append)
    encoder.start(Sync.EXIT_FROM_DEBUG)
    encoder.retire(items)
    encoder.stop(Evcode.DEBUG_MODE, next_pc)
    return messages


def exception(epc: int, handler: int) -> Trap:
    return Trap(epc, False, 2, 0, handler)


def test_section_8_6_back_to_back_exceptions() -> None:
    """ "Second message with B-TYPE=2 or 1 and I-CNT=0", also for an exception at an interrupt's destination."""
    interrupt = Trap(0x102, True, 7, 0, 0x800)
    messages = encoded_items(Block(0x100, b"\1"), interrupt, exception(0x800, 0x900), Block(0x900, b"\1"))
    assert [(fields(m)["b_type"], fields(m)["icnt"]) for m in messages[1:3]] == [(3, 1), (2, 0)]
    history = decoded(HANDLERS, *messages)
    assert list(history.pcs()) == [0x100, 0x900]
    traps = [(e.position, e.text, e.last_pc, e.next_pc) for e in history.events if e.kind is EventKind.TRAP]
    assert traps == [(1, "interrupt", 0x102, 0x800), (1, "exception", 0x800, 0x900)]


def test_section_8_6_pending_interrupt_at_start() -> None:
    """ProgTraceSync with SYNC=3, then B-TYPE=3; the same with an exception at the first instruction."""
    messages = encoded_items(Trap(0x100, True, 7, 0, 0x800), Block(0x800, b"\1"))
    assert messages[0] == START
    assert fields(messages[1])["b_type"] == 3
    assert fields(messages[1])["icnt"] == 0
    assert list(decoded(HANDLERS, *messages).pcs()) == [0x800]


def test_section_8_6_trace_starts_disabled_and_hart_stops_with_trace_disabled() -> None:
    """ProgTraceCorrelation with EVCODE=4, later SYNC=5; EVCODE=0 and I-CNT=0 while off."""
    disabled = message(Tcode.PROG_TRACE_CORRELATION, evcode=4, cdf=1, icnt=0, hist=1)
    enabled = message(Tcode.PROG_TRACE_SYNC, sync=5, icnt=0, faddr=0x80)
    off = message(Tcode.PROG_TRACE_CORRELATION, evcode=4, cdf=1, icnt=2, hist=1)
    halted = message(Tcode.PROG_TRACE_CORRELATION, evcode=0, cdf=1, icnt=0, hist=1)
    history = decoded(HANDLERS, disabled, enabled, off, halted)
    assert list(history.pcs()) == [0x100, 0x102]
    assert [(e.position, e.text) for e in history.events] == [
        (0, "trace disabled"),
        (0, "trace enabled"),
        (2, "trace disabled"),
        (2, "entry into debug mode"),
    ]
    assert history.accounting.skipped == 0


@pytest.mark.parametrize("taken", [False, True])
def test_section_10_1_custom_instructions(taken: bool) -> None:
    """XYZ at 0x104 may branch to 0x200: one message with I-CNT=5, or two with 4 and 1."""
    custom = (0x100, [ADD, asm.CUSTOM_0, C_ADD, asm.C_EBREAK])
    image = image_of(custom, (0x200, [C_ADD, asm.C_EBREAK]))
    pcs = [0x100, 0x104, 0x200 if taken else 0x108]
    messages = encoded(image, pcs)
    assert [fields(m)["icnt"] for m in messages[1:]] == ([4, 1] if taken else [5])
    assert [fields(m)["b_type"] for m in messages[1:-1]] == [0] * taken  # as an indirect jump
    assert list(decoded(image, *messages).pcs()) == pcs
