"""RISC-V N-Trace 1.0, 8.6 "Corner Cases and Sequences": each row of the table, encoded and decoded."""

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import (
    decoded,
    encoded,
    encoded_items,
    image_of,
    message,
    of_kind,
    read,
    started,
    stopped,
)

HANDLERS = image_of(
    (0x100, [asm.C_NOP] * 4), (0x800, [asm.C_NOP]), (0x900, [asm.C_NOP]), (0xA00, [asm.C_NOP, asm.MRET])
)


def exception(epc: int, handler: int) -> IngressTrap:
    return IngressTrap(epc, False, 2, 0, handler)


def interrupt(epc: int, handler: int) -> IngressTrap:
    return IngressTrap(epc, True, 7, 0, handler)


def traps(history: History) -> list[tuple[int, str, int | None, int | None]]:
    return [(e.position, e.text, e.last_pc, e.next_pc) for e in of_kind(history, EventKind.TRAP)]


def test_section_8_6_back_to_back_return() -> None:
    """ "Second message should have I-CNT=1 or 2 (depending on the size of the second return instruction)"."""
    image = image_of((0x100, [asm.c_jr(1)]), (0x200, [asm.jalr(0, 1)]), (0x300, [asm.c_jr(1)]), (0x400, [asm.C_NOP]))
    pcs = [0x100, 0x200, 0x300, 0x400]
    messages = encoded(image, pcs)
    assert [read(m)["icnt"] for m in messages[1:4]] == [1, 2, 1]
    assert list(decoded(image, *messages).pcs()) == pcs


@pytest.mark.parametrize("btm", [False, True])
def test_section_8_6_other_back_to_back_jumps_or_branches(btm: bool) -> None:
    """ "Same as above": a taken branch, a jump and a branch again, each right at the target of the one before."""
    code = [(0x100, asm.beq(0x100)), (0x200, asm.jalr(0, 6)), (0x300, asm.c_beqz(0x20)), (0x320, asm.NOP)]
    image = image_of(*[(at, [instruction]) for at, instruction in code])
    pcs = [0x100, 0x200, 0x300, 0x320]
    messages = encoded(image, pcs, 0x324, btm=btm)
    assert [read(m)["icnt"] for m in messages[1:]] == ([2, 2, 1, 2] if btm else [4, 3])
    assert list(decoded(image, *messages, btm=btm).pcs()) == pcs


@pytest.mark.parametrize("extended", [True, False])
def test_section_8_6_back_to_back_exceptions(extended: bool) -> None:
    """ "Second message with B-TYPE=2 or 1 (Exception) and I-CNT=0 (nothing executed in between)"."""
    traps_taken = [exception(0x102, 0x800), exception(0x800, 0x900)]
    items: list[Block | IngressTrap] = [Block(0x100, b"\1"), *traps_taken, Block(0x900, b"\1")]
    messages = encoded_items(items, b_type_extended=extended)
    assert [(read(m)["b_type"], read(m)["icnt"]) for m in messages[1:3]] == [(2 if extended else 1, i) for i in (1, 0)]
    history = decoded(HANDLERS, *messages)
    assert list(history.pcs()) == [0x100, 0x900]
    text = "exception" if extended else "exception or interrupt"
    assert traps(history) == [(1, text, 0x102, 0x800), (1, text, 0x800, 0x900)]


def test_section_8_6_exception_at_interrupt_destination() -> None:
    """ "Same as above", after a B-TYPE 3."""
    traps_taken = [interrupt(0x102, 0x800), exception(0x800, 0x900)]
    items: list[Block | IngressTrap] = [Block(0x100, b"\1"), *traps_taken, Block(0x900, b"\1")]
    messages = encoded_items(items)
    assert [(read(m)["b_type"], read(m)["icnt"]) for m in messages[1:3]] == [(3, 1), (2, 0)]
    history = decoded(HANDLERS, *messages)
    assert list(history.pcs()) == [0x100, 0x900]
    assert traps(history) == [(1, "interrupt", 0x102, 0x800), (1, "exception", 0x800, 0x900)]


@pytest.mark.parametrize(("trap", "b_type"), [(interrupt(0x100, 0x800), 3), (exception(0x100, 0x800), 2)])
def test_section_8_6_pending_interrupt_at_exit_or_exception_at_first_instruction(
    trap: IngressTrap, b_type: int
) -> None:
    """Two rows: ProgTraceSync with SYNC=3, "followed by a message with B-TYPE=3 or 1" (or 2 or 1), I-CNT 0."""
    messages = encoded_items([trap, Block(0x800, b"\1")])
    assert messages[0] == started()
    assert (read(messages[1])["b_type"], read(messages[1])["icnt"]) == (b_type, 0)
    history = decoded(HANDLERS, *messages)
    assert list(history.pcs()) == [0x800]
    assert [(position, epc, handler) for position, _, epc, handler in traps(history)] == [(0, 0x100, 0x800)]


def test_section_8_6_trace_starts_disabled() -> None:
    """ "ProgTraceCorrelation with EVCODE=4. Once trace is enabled message with SYNC=5"."""
    history = decoded(HANDLERS, stopped(0, evcode=4), started(sync=5), stopped(2, evcode=4))
    assert list(history.pcs()) == [0x100, 0x102]
    assert [(e.position, e.text) for e in history.events] == [
        (0, "trace disabled"),
        (0, "trace enabled"),
        (2, "trace disabled"),
    ]
    assert history.accounting.skipped == 0


def test_section_8_6_hart_halted_with_trace_disabled() -> None:
    """ "ProgTraceCorrelation with EVCODE=0 (Enter Debug mode) and I-CNT=0 (nothing executed)"."""
    history = decoded(HANDLERS, started(), stopped(2, evcode=4), stopped(0, evcode=0))
    assert list(history.pcs()) == [0x100, 0x102]
    assert [(e.position, e.text) for e in of_kind(history, EventKind.TRACE_OFF)] == [
        (2, "trace disabled"),
        (2, "entry into debug mode"),
    ]
    assert history.gaps == history.accounting.skipped == 0


def test_section_8_6_the_encoder_while_trace_is_disabled() -> None:
    """Both rows at once: starts disabled, is enabled, disabled, and the hart halts."""
    messages: list[bytes] = []
    encoder = Encoder(EncoderOptions(), messages.append)
    encoder._correlate(Evcode.TRACE_DISABLED)
    encoder.start(Sync.TRACE_ENABLE)
    encoder.retire([Block(0x100, b"\1\1")])
    encoder.stop(Evcode.TRACE_DISABLED, 0x104)
    encoder._correlate(Evcode.DEBUG_MODE)
    assert messages == [stopped(0, evcode=4), started(sync=5), stopped(2, evcode=4), stopped(0, evcode=0)]


RETURN: list[Block | IngressTrap] = [
    Block(0xA00, b"\1\2", IType.TRAP_RETURN),
    interrupt(0x100, 0x800),
    Block(0x800, b"\1"),
]


@pytest.mark.parametrize("owned", [False, True])
def test_section_8_6_trap_immediately_following_a_trap_return(owned: bool) -> None:
    """As the row has it: up to the return; sync where it went, I-CNT=0; sync at the handler; Ownership after both."""
    owner = [message("Ownership", process=0b0_00_00), message("Ownership", process=0b0_11_00)] if owned else [b"", b""]
    trace = [
        started(0xA00),
        message("IndirectBranchHist", b_type=0, icnt=3, uaddr=(0xA00 ^ 0x100) >> 1, hist=1),
        message("ProgTraceSync", sync=2, icnt=0, faddr=0x80),
        owner[0],
        message("IndirectBranchHistSync", sync=2, b_type=3, icnt=0, faddr=0x400, hist=1),
        owner[1],
        stopped(1),
    ]
    history = decoded(HANDLERS, *trace)
    assert list(history.pcs()) == [0xA00, 0xA02, 0x800]
    assert history.gaps == 0
    assert traps(history) == [(2, "interrupt", 0x100, 0x800)]
    if owned:
        assert history.context_at(2).prv == 3


@pytest.mark.parametrize("synchronizing", [False, True])
def test_section_8_6_the_encoder_at_a_trap_following_a_trap_return(synchronizing: bool) -> None:
    """With synchronizing messages, as the row has it, and with the plain ones of chapter 10."""
    messages = encoded_items(RETURN, trap_return_sync=synchronizing)
    sent = [read(m) for m in messages]
    assert sum("sync" in fields for fields in sent) == (3 if synchronizing else 1)
    assert any(fields.get("b_type") == 3 and fields["icnt"] == 0 for fields in sent)
    history = decoded(HANDLERS, *messages)
    assert list(history.pcs()) == [0xA00, 0xA02, 0x800]
    assert traps(history) == [(2, "interrupt", 0x100, 0x800)]


def test_section_8_6_breakpoints_leave_no_instruction_twice() -> None:
    """8.3.3: "Debug Mode is entered before C.EBREAK (as it never retires)": after the exit it goes on there."""
    image = image_of((0x100, [asm.C_NOP, asm.C_EBREAK, asm.C_NOP]))
    history = decoded(image, started(), stopped(1), started(0x104), stopped(1))
    assert list(history.pcs()) == [0x100, -1, 0x104]  # the debugger went on behind the breakpoint
    history = decoded(image, started(), stopped(1), started(0x102, sync=Sync.EXIT_FROM_DEBUG), stopped(0))
    assert list(history.pcs()) == [0x100]
    assert history.gaps == 0
