"""Where other decoders give up: code that is not there, bad pointers, loops onto themselves, repeated and lost packets.

What is expected follows from the few instructions of each program.
"""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from tests.decode import assembler as asm
from tests.decode.etrace.packets import write
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import (
    ENDED_NTR,
    ENDED_REP,
    TRACE_LOST,
    Example,
    Fields,
    branches,
    start,
    support,
    trap,
)
from tests.decode.etrace.worked_examples import address as to
from tests.decode.ntrace.messages import image_of

ROM = 0x8000
PROGRAM = image_of(
    (0x100, [asm.C_NOP, asm.c_jalr(6), asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.c_jr(6)]),
    (0x200, [asm.C_NOP, asm.c_j(0)]),
    (0x300, [asm.C_NOP, asm.C_NOP, asm.c_jr(6)]),
)
LOSSES = (EventKind.LOSS, EventKind.MISMATCH, EventKind.OVERFLOW)


def troubles(history: History) -> list[tuple[int, EventKind]]:
    """Position and kind of what went wrong."""
    return [(event.position, event.kind) for event in history.events if event.kind in LOSSES]


def after(packets: Sequence[Fields], **modes: bool) -> History:
    """What the decoder makes of packets for PROGRAM."""
    parameters = Parameters(iaddress_width=32, return_stack_size=3, iret_ext=True, bpred_size=2)
    return Example(PROGRAM, parameters, Modes(**modes)).history(packets)


def test_code_that_nobody_supplied_is_a_gap_up_to_the_next_address() -> None:
    """A call into ROM: what runs there has packets of its own, and the way back is known again."""
    packets = [start(0x100), to(ROM - 0x100), branches(0, 1, to=0x40), branches(*[0] * 31), to(0x104 - ROM - 0x40)]
    packets.append(branches(1, to=0x300 - 0x104))
    history = after(packets)
    assert list(history.pcs()) == [0x100, 0x102, ROM, GAP, 0x104, 0x106, 0x108, 0x10A, 0x300]
    assert troubles(history) == [(3, EventKind.MISMATCH)]
    assert "there is no code" in history.gap_at(3).text
    assert history.gap_at(3).next_pc == 0x104
    assert history.accounting.skipped == 0


def test_a_branch_where_known_code_begins_again() -> None:
    """The last bit of branch_map is its outcome."""
    history = after([start(0x100), to(ROM - 0x100), branches(1, 0, to=0x106 - ROM), to(0x300 - 0x106)])
    assert list(history.pcs()) == [0x100, 0x102, ROM, GAP, 0x106, 0x10A, 0x300]


def test_with_implicit_returns_it_lasts_to_the_next_synchronization() -> None:
    """Calls made in code that is not there are not known."""
    history = after([start(0x100), to(ROM - 0x100), to(0x104 - ROM), start(0x300)], implicit_return=True)
    assert list(history.pcs()) == [0x100, 0x102, ROM, GAP, 0x300]


@pytest.mark.parametrize("bad", [0x10, 0xFFFF_FFF0, ROM])
def test_a_jump_through_a_bad_pointer(bad: int) -> None:
    """The crash users most want to see: nothing retired there, and nothing need be there."""
    crash = trap(bad, thaddr=0, ecause=1, interrupt=0, tval=bad)
    history = after([start(0x100), to(2), crash, start(0x200), trap(0x300, 1, 2, interrupt=0, tval=0)])
    assert list(history.pcs()) == [0x100, 0x102, 0x200, 0x300]
    first, second = (event for event in history.events if event.kind is EventKind.TRAP)
    assert (first.position, first.last_pc, first.next_pc) == (2, bad, 0x200)
    assert first.text == f"exception 1 (instruction access fault), tval 0x{bad:x}"
    assert (second.position, second.last_pc, second.next_pc) == (3, 0x202, 0x300)
    assert not troubles(history)


def test_a_loop_onto_itself() -> None:
    """`j .`: how often it ran is in no E-Trace stream; each packet shows it once, and nothing hangs."""
    history = after([start(0x200), start(0x202), start(0x202), trap(0x300, 1, 7, interrupt=1)])
    assert list(history.pcs()) == [0x200, 0x202, 0x202, 0x300]
    assert not troubles(history)


def test_a_synchronization_that_repeats_the_last_address() -> None:
    """rv_tracer does so. Where the code does not lead there again, it is the same instruction."""
    history = after([start(0x104), start(0x104), branches(1, to=0x300 - 0x104)])
    assert list(history.pcs()) == [0x104, 0x106, 0x108, 0x10A, 0x300]
    assert not troubles(history)


@pytest.mark.parametrize(
    ("packet", "kind"),
    [(support(Modes(), TRACE_LOST), EventKind.OVERFLOW), (branches(*[1] * 31), EventKind.MISMATCH)],
)
def test_on_at_the_next_synchronization(packet: Fields, kind: EventKind) -> None:
    """Lost packets, and packets that contradict the code: the packets up to the next synchronization are skipped."""
    history = after([start(0x100), packet, to(0x1000), branches(0, to=0x2000), start(0x300), to(-0x200)])
    assert list(history.pcs())[-4:] == [GAP, 0x300, 0x302, 0x304, 0x100][-4:]
    assert [event.kind for event in history.events if event.kind in LOSSES] == [kind]
    assert history.accounting.skipped > 0


@pytest.mark.parametrize("status", [ENDED_REP, ENDED_NTR])
def test_packets_while_tracing_is_off(status: int) -> None:
    """They cannot be: the encoder has said that it stopped."""
    history = after([start(0x100), support(Modes(), status), to(2), start(0x300)])
    assert list(history.pcs()) == [0x100, GAP, 0x300]
    stopped, lost, again = history.events[-3:]
    assert "while tracing is off" in lost.text
    assert (stopped.end, lost.end) == (lost.offset, again.offset) and stopped.offset < lost.offset < again.offset
    assert history.gap_at(1).kind in (EventKind.TRACE_OFF, EventKind.LOSS)


def test_another_program_is_noticed_before_the_second_synchronization() -> None:
    """Its branches are elsewhere: named as what does not match, with the address and the packet."""
    history = after([start(0x300), branches(0, 1, 1, to=0x40), branches(0, to=0x10), start(0x300), branches(1, to=8)])
    mismatches = [event for event in history.events if event.kind is EventKind.MISMATCH]
    assert [event.position for event in mismatches] == [3, 7]
    assert "does not match" in mismatches[0].text and "0x304" in mismatches[0].text
    assert "te_inst format 1" in mismatches[0].text


@pytest.mark.parametrize("following", [to(-2), start(0x300)])
def test_which_time_an_address_was_meant_is_not_guessed_where_code_is_missing(following: Fields) -> None:
    """An address the code leads to was the target of a jump, if no trap follows; here nobody knows of one."""
    parameters = Parameters(iaddress_width=32)
    example = Example(image_of((0x300, [asm.C_NOP, asm.C_NOP])), parameters)
    history = example.history([start(0x300), to(2), following])
    assert list(history.pcs()) == [0x300, 0x302, GAP, 0x300]
    assert "there is no code" in history.gap_at(2).text


def test_a_packet_cut_off_at_the_end_is_no_loss() -> None:
    """A trace that was read while it grew: nothing comes behind it that could be missed."""
    options = Options(Parameters(iaddress_width=32), pinned=True)
    data = framed(write(packet, options.parameters, options.modes) for packet in (start(0x300), to(4)))
    history = decode(data[:-1], PROGRAM, options, Encapsulation())
    assert list(history.pcs()) == [0x300]
    assert [event.text for event in history.events if event.kind is EventKind.NOTE] == ["the last packet is cut off"]
    assert not troubles(history)
    account = history.accounting
    assert (account.total, account.idle) == (len(data) - 1, 0)
    assert account.decoded == 1 + len(write(start(0x300), options.parameters, options.modes))
    assert account.skipped == account.total - account.decoded


@pytest.mark.parametrize("thaddr", [1, 0])
def test_a_trap_right_after_an_address_without_code(thaddr: int) -> None:
    """What ran there cannot have been: a gap, as before any other packet. The handler is known again."""
    history = after([start(0x100), to(ROM - 0x100), trap(0x200, thaddr, 2), *([] if thaddr else [start(0x200)])])
    assert list(history.pcs()) == [0x100, 0x102, ROM, GAP, 0x200]
    assert troubles(history) == [(3, EventKind.MISMATCH)]
    assert "there is no code" in history.gap_at(3).text
    assert history.gap_at(3).next_pc == 0x200
