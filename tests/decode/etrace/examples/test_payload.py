"""The cases E-Trace's payload chapter works out in its text, one test each, named after its section."""

import pytest

from rvtrace_gdb.decode.etrace.encoder.options import EndReport
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.events import EventKind
from tests.decode.etrace.worked_examples import (
    ENDED_NTR,
    ENDED_REP,
    NOTIFY,
    Example,
    Fields,
    address,
    branches,
    code,
    start,
    support,
    trap,
)

# "Format 2 notify and updiscon fields": opcode A falls into the loop, JALR goes back to looplabel.
A, LOOPLABEL, C, JALR, HANDLER = 0x1000, 0x1004, 0x1008, 0x100C, 0x2000
LOOP = Example(
    code(64, "1000 00000013\n 1004 00000013\n 1008 00000013\n 100c 00030067\n 2000 00000013\n 2004 00000013")
)
BEGIN = support(LOOP.modes)
END = support(LOOP.modes, ENDED_REP, enabled=False)
FIRST = [A, LOOPLABEL]
SECOND = [A, LOOPLABEL, C, JALR, LOOPLABEL]
HIT = IngressTrap(C, False, 2, 0, HANDLER)


def test_updiscon_case_1_the_loop_goes_on() -> None:
    """updiscon == notify, and a format 2 follows: the JALR's target was meant."""
    pcs = [*SECOND, C, JALR, LOOPLABEL, C]
    packets = [BEGIN, start(A), address(LOOPLABEL - A), address(0), address(4), END]
    LOOP.decodes(packets, pcs)
    LOOP.encodes(pcs, packets)


def test_updiscon_case_2_an_exception_in_the_second_iteration() -> None:
    """updiscon == !notify, and a format 3 follows."""
    packets = [BEGIN, start(A), address(LOOPLABEL - A, updiscon=1), trap(HANDLER, thaddr=1, ecause=2), address(4), END]
    history = LOOP.decodes(packets, [*SECOND, HANDLER, HANDLER + 4])
    assert [event.last_pc for event in history.events if event.kind is EventKind.TRAP] == [C]
    LOOP.encodes([*SECOND, HIT, HANDLER, HANDLER + 4], packets)


def test_updiscon_case_3_an_exception_in_the_first_iteration() -> None:
    """updiscon == notify, and a format 3 follows: looplabel was meant the first time."""
    packets = [BEGIN, start(A), address(LOOPLABEL - A), trap(HANDLER, thaddr=1, ecause=2), address(4), END]
    LOOP.decodes(packets, [*FIRST, HANDLER, HANDLER + 4])
    LOOP.encodes([*FIRST, HIT, HANDLER, HANDLER + 4], packets)


def test_updiscon_case_4_a_notification() -> None:
    """notify == !address[MSB] for the first execution of looplabel, the second is reported because of the JALR."""
    packets = [BEGIN, start(A), address(LOOPLABEL - A, notify=1), address(0), address(4), END]
    LOOP.decodes(packets, [*SECOND, C])
    LOOP.encodes([A, NOTIFY, *SECOND[1:], C], packets)


@pytest.mark.parametrize(("updiscon", "pcs"), [(0, FIRST), (1, SECOND)], ids=["first iteration", "second iteration"])
def test_updiscon_before_a_resync(updiscon: int, pcs: list[int]) -> None:
    """The same two with a synchronization instead of an exception: format 3.0 for looplabel + 4."""
    LOOP.decodes([BEGIN, start(A), address(4, updiscon=updiscon), start(C), address(4), END], [*pcs, C, JALR])


@pytest.mark.parametrize(("updiscon", "pcs"), [(0, FIRST), (1, SECOND)], ids=["first iteration", "second iteration"])
def test_updiscon_before_a_privilege_change(updiscon: int, pcs: list[int]) -> None:
    """A trap's packet has the new privilege."""
    packets = [BEGIN, start(A, privilege=0), address(4, updiscon=updiscon), trap(HANDLER, 1, 8, privilege=3)]
    LOOP.decodes([*packets, address(4), END], [*pcs, HANDLER, HANDLER + 4])


def test_qual_status_ended_rep() -> None:
    """Tracing stopped after looplabel in the first iteration: the packet would not have been issued otherwise."""
    packets = [BEGIN, start(A), address(4), END]
    LOOP.decodes(packets, FIRST)
    LOOP.encodes(FIRST, packets)


def test_qual_status_ended_ntr() -> None:
    """In the second iteration: the packet would have been issued anyway."""
    packets = [BEGIN, start(A), address(4), support(LOOP.modes, ENDED_NTR, enabled=False)]
    LOOP.decodes(packets, SECOND)
    LOOP.encodes(SECOND, packets)


def test_qual_status_with_early_access_to_the_filtering_results() -> None:
    """With updiscon in the last packet, the end is always indicated by ended_rep."""
    packets = [BEGIN, start(A), address(4, updiscon=1), END]
    LOOP.decodes(packets, SECOND)
    LOOP.encodes(SECOND, packets, stop=EndReport.EARLY)


# 1000 nop; 1004 beq 1000; 1008 jr t1; 2000 beq 2008; 2004 nop; 2008 nop
MAP = Example(code(64, "1000 00000013\n 1004 feb50ee3\n 1008 00030067\n 2000 00b50463\n 2004 00000013\n 2008 00000013"))
ROUND = [0x1000, 0x1004]


def test_start_at_a_branch_with_an_exception_behind_it() -> None:
    """Format 3 subformat 0 branch field: two format 3 packets, and nothing between them to tell the outcome."""
    image = code(64, "1000 02b50063\n 1004 00000013\n 1020 00000013\n 2000 00000013\n 2004 00000013")
    example = Example(image)
    for branch, epc in ((0, 0x1020), (1, 0x1004)):
        packets = [BEGIN, start(0x1000, branch), trap(0x2000, thaddr=1, ecause=2), address(4), END]
        history = example.decodes(packets, [0x1000, 0x2000, 0x2004])
        assert [event.last_pc for event in history.events if event.kind is EventKind.TRAP] == [epc]
        example.encodes([0x1000, IngressTrap(epc, False, 2, 0, 0x2000), 0x2000, 0x2004], packets)


def test_thaddr_of_a_second_trap_before_the_handler_retires() -> None:
    """Format 3 thaddr, address and privilege fields: the first one has thaddr=0 and an address without a meaning."""
    image = code(64, "1000 00000013\n 1004 00000013\n 2000 00000013\n 3000 00000013\n 3004 00000013")
    example = Example(image)
    for undefined in (0, 0x2000, 0x1008, 0xFFFF_FFFF_FFFF_FFFE):
        first, second = trap(undefined, thaddr=0, ecause=7, interrupt=1), trap(0x3000, thaddr=1, ecause=2, tval=5)
        packets = [BEGIN, start(0x1000), address(4), first, second, address(4), END]
        history = example.decodes(packets, [0x1000, 0x1004, 0x3000, 0x3004])
        traps = [event for event in history.events if event.kind is EventKind.TRAP]
        assert [event.position for event in traps] == [2, 2]
        assert (traps[0].last_pc, traps[1].next_pc) == (0x1008, 0x3000)


def test_thaddr_of_a_trap_before_the_first_traced_instruction() -> None:
    """An exception occuring on the 1st traced instruction is treated in the same way: its EPC, then format 3.0."""
    packets = [BEGIN, trap(0x1000, thaddr=0, ecause=2), start(HANDLER), address(4), END]
    history = LOOP.decodes(packets, [HANDLER, HANDLER + 4])
    assert [event.last_pc for event in history.events if event.kind is EventKind.TRAP] == [0x1000]


def test_thaddr_with_the_epc_where_no_code_is() -> None:
    """A jump through a bad pointer: its target traps, and can be anywhere."""
    packets = [BEGIN, start(C), address(4), trap(0xDEAD_BEEE, thaddr=0, ecause=1), start(HANDLER), address(4), END]
    history = LOOP.decodes(packets, [C, JALR, HANDLER, HANDLER + 4])
    assert [event.last_pc for event in history.events if event.kind is EventKind.TRAP] == [0xDEAD_BEEE]
    fetch = IngressTrap(0xDEAD_BEEE, False, 1, 0, HANDLER)
    LOOP.encodes([C, JALR, fetch, HANDLER, HANDLER + 4], packets)


def test_a_full_branch_map_needs_no_address() -> None:
    """Format 1 branch_map field: branches is 0 for 31 of them, and the last of these is where it ends."""
    pcs = [*ROUND * 32, 0x1008]
    packets = [BEGIN, start(0x1000), branches(*[0] * 31), branches(1, to=8), END]
    MAP.decodes(packets, pcs)
    MAP.encodes(pcs, packets)


def test_a_full_branch_map_with_an_address() -> None:
    """branches is 31: the instruction before the last branch is an uninferable discontinuity."""
    pcs = [*ROUND * 30, 0x1008, 0x2000, 0x2008]
    packets = [BEGIN, start(0x1000), branches(*[0] * 29, 1, 0, to=0x1000), address(8), END]
    MAP.decodes(packets, pcs)
    MAP.encodes(pcs, packets)


@pytest.mark.parametrize("count", [*range(1, 31)])
def test_branch_maps_of_every_size(count: int) -> None:
    """Tapered sizes; the branch reported last is the last one in the map."""
    pcs = [*ROUND * count]
    packets: list[Fields] = [BEGIN, start(0x1000), branches(*[0] * count, to=4), END]
    MAP.decodes(packets, pcs)
    MAP.encodes(pcs, packets, next_pc=0x1000)


def test_context_packets_move_nothing() -> None:
    """Format 3 subformat 2: neither the path nor the branches reported so far."""
    context: Fields = {"format": 3, "subformat": 2, "privilege": 3}
    packets = [BEGIN, start(0x1000), context, branches(*[0] * 31), context, context, branches(1, to=8), END]
    MAP.decodes(packets, [*ROUND * 32, 0x1008])
