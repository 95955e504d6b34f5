"""What the optional modes of E-Trace do, one small execution for each rule of the sections named."""

import pytest

from rvtrace_gdb.decode.etrace.options import Modes, Parameters, TrapHandlers
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP
from tests.decode.etrace.worked_examples import (
    ENDED_REP,
    Example,
    Fields,
    address,
    branches,
    code,
    start,
    support,
    trap,
)

RETURNS = Parameters(iaddress_width=64, return_stack_size=3, iret_ext=True)
IMPLICIT = Modes(implicit_return=True)
# 1000 jal ra, 2000 (f); 1004 jal ra, 3000 (g); 1008 nop; 100c nop; f and g: nop, ret; 4000 nop (a trap handler)
TWO_CALLS = """
    1000 000010ef
    1004 7fd010ef
    1008 00000013
    100c 00000013
    2000 00000013
    2004 00008067
    3000 00000013
    3004 00008067
    4000 00000013
    4004 00000013
"""
F, G, HANDLER = [0x2000, 0x2004], [0x3000, 0x3004], [0x4000, 0x4004]


def calls(parameters: Parameters = RETURNS, listing: str = TWO_CALLS) -> Example:
    return Example(code(64, listing), parameters, IMPLICIT)


def ends(example: Example) -> tuple[Fields, Fields]:
    """The first and the last packet."""
    return support(example.modes), support(example.modes, ENDED_REP, enabled=False)


def test_implicit_return_background() -> None:
    """Implicit Return extension, Background: one function returns, then a second one, and its return address is
    reported, as a trap follows. irets says that one return was made before.
    """
    example = calls()
    begin, end = ends(example)
    packets = [begin, start(0x1000), address(8, irreport=1, irets=1), trap(0x4000, 1, 2), address(4), end]
    before = [0x1000, *F, 0x1004, *G, 0x1008]
    example.decodes(packets, [*before, *HANDLER])
    example.encodes([*before, IngressTrap(0x100C, False, 2, 0, 0x4000), *HANDLER], packets)


def test_irdepth_that_fits_two_returns_is_not_guessed() -> None:
    """The same with 2.0's irdepth: the stack has one entry at both returns, so that either may be the one reported, the
    first to an address of its own (issue 254). That is said, and the trace goes on at the trap handler.
    """
    example = calls(Parameters(iaddress_width=64, return_stack_size=3))
    begin, end = ends(example)
    packets = [begin, start(0x1000), address(8, irreport=1, irdepth=1), trap(0x4000, 1, 2), address(4), end]
    history = example.history(packets)
    assert list(history.pcs()) == [0x1000, GAP, *HANDLER]
    assert "ambiguous" in history.gap_at(1).text


def test_implicit_return_background_the_first_function() -> None:
    """The same after the first one: no return made before the one reported."""
    example = calls()
    begin, end = ends(example)
    packets = [begin, start(0x1000), address(4, irreport=1, irets=0), trap(0x4000, 1, 2), address(4), end]
    before = [0x1000, *F, 0x1004]
    example.decodes(packets, [*before, *HANDLER])
    example.encodes([*before, IngressTrap(0x3000, False, 2, 0, 0x4000), *HANDLER], packets)


def test_implicit_return_is_not_reported() -> None:
    """Both calls return where they came from: only the end of the trace is reported, with the returns made so far."""
    example = calls()
    begin, end = ends(example)
    pcs = [0x1000, *F, 0x1004, *G, 0x1008, 0x100C]
    packets = [begin, start(0x1000), address(0xC, irreport=1, irets=2), end]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)


def test_implicit_return_that_is_mispredicted() -> None:
    """f returns to 100c: reported with irreport, no return made before."""
    example = calls()
    begin, end = ends(example)
    packets = [begin, start(0x1000), address(0xC, irreport=1, irets=0), trap(0x4000, 1, 2), address(4), end]
    example.decodes(packets, [0x1000, *F, 0x100C, *HANDLER])
    pcs: list[int | IngressTrap | str] = [0x1000, *F, 0x100C, IngressTrap(0x1010, False, 2, 0, 0x4000), *HANDLER]
    updiscon = [{**packet, "updiscon": 1} if packet.get("irreport") else packet for packet in packets]
    example.decodes(updiscon, [0x1000, *F, 0x100C, *HANDLER])
    example.encodes(pcs, updiscon)


def test_implicit_return_of_a_call_that_was_not_traced() -> None:
    """The stack is empty after a synchronization: the return is reported like any jump."""
    example = calls()
    begin, end = ends(example)
    packets = [begin, start(0x2000), address(0x1004 - 0x2000), address(0x3000 - 0x1004), end]
    pcs = [*F, 0x1004, 0x3000]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)


def test_implicit_return_with_an_empty_stack_and_returns_made() -> None:
    """The return stack is empty, but the number of implicit returns is non-zero: irreport."""
    # 1000 nop; 1004 jal ra, 2000; 1008 ret
    example = calls(listing="1000 00000013\n 1004 7fd000ef\n 1008 00008067\n 2000 00000013\n 2004 00008067")
    begin, end = ends(example)
    pcs = [0x1000, 0x1004, *F, 0x1008, 0x2000, 0x2004]
    packets = [begin, start(0x1000), address(0x1000, irreport=1, irets=1), address(4), end]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)


@pytest.mark.parametrize("counter", [0, 2])
def test_implicit_return_of_a_recursive_function(counter: int) -> None:
    """Five calls of itself and back, a branch in each call; the return addresses are the same (with a call counter,
    one entry counts them).
    """
    entries = 2 if counter else 3
    parameters = Parameters(iaddress_width=64, return_stack_size=entries, call_counter_size=counter, iret_ext=True)
    # 1000 jal ra, 2000; 1004 nop; 2000 c.beqz a0, 2006; 2002 jal ra, 2000; 2006 ret
    example = calls(parameters, "1000 000010ef\n 1004 00000013\n 2000 c119\n 2002 fffff0ef\n 2006 00008067")
    begin, end = ends(example)
    pcs = [0x1000, *[0x2000, 0x2002] * 4, 0x2000, *[0x2006] * 5, 0x1004]
    packets = [begin, start(0x1000), branches(1, 1, 1, 1, 0, to=4, irreport=1, irets=4), end]
    example.decodes(packets, pcs)


def test_branch_prediction() -> None:
    """A loop of 72 rounds: the first outcome fails ("initialized to 01"), so the first 31 are sent as a map; then 40
    are predicted, and the last one fails: 40 - 31 as branch_count, no address.
    """
    parameters = Parameters(iaddress_width=64, bpred_size=4)
    example = Example(code(64, LOOP), parameters, Modes(branch_prediction=True))
    begin, end = ends(example)
    count: Fields = {"format": 0, "subformat": 0, "branch_count": 9, "branch_fmt": 0}
    pcs = [*ROUND * 72, 0x1008]
    packets = [begin, start(0x1000), branches(*[0] * 31), count, address(8), end]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)


LOOP = "1000 00000013\n 1004 feb50ee3\n 1008 00000013\n 100c 00000013\n 4000 00000013\n 4004 00000013\n 4008 00000013"
"""1000 nop; 1004 beq 1000; 1008 nop; 100c nop; 4000 nop (a trap handler)."""
ROUND = [0x1000, 0x1004]


@pytest.mark.parametrize("fails", [False, True])
def test_branch_prediction_with_an_address(fails: bool) -> None:
    """Format 0 branch_fmt field: an interrupt right behind the branch needs an address. 10: it was predicted
    correctly, and is one of those counted; 11: it failed, and comes after them.
    """
    parameters = Parameters(iaddress_width=64, bpred_size=4)
    example = Example(code(64, LOOP), parameters, Modes(branch_prediction=True))
    begin, end = ends(example)
    count = {"format": 0, "subformat": 0, "branch_count": 9, "branch_fmt": 2 + fails, "address": 4}
    before = [*ROUND * (31 + 40 + fails)]
    packets = [begin, start(0x1000), branches(*[0] * 31), count, trap(0x4000, 1, 7, interrupt=1), address(4), end]
    example.decodes(packets, [*before, *HANDLER])
    epc = 0x1008 if fails else 0x1000
    example.encodes([*before, IngressTrap(epc, True, 7, 0, 0x4000), *HANDLER], packets)


def test_branch_prediction_changes_after_two_failures() -> None:
    """The MSB of 11 stays when it fails once (10: still taken), and the whole table is 01 again after a
    synchronization: then it is the next outcome that fails.
    """
    parameters = Parameters(iaddress_width=64, bpred_size=4)
    example = Example(code(64, LOOP + "\n 1010 feb508e3"), parameters, Modes(branch_prediction=True))
    begin, end = ends(example)
    # The loop at 1004, left once and entered again from 1010; the entries of 1004 (2) and 1010 (8) differ.
    around = [0x1008, 0x100C, 0x1010]
    pcs = [*ROUND * 32, *around, *ROUND * 32]
    # 1004: fails, 30 right = 31 in a map; at 32 it fails (11 -> 10); 1010 fails (01 -> 11); 1004: 31 right, 1 more.
    maps = branches(*[0] * 31), branches(1, *[0] * 30), branches(0, 0, 0, to=4)
    example.decodes([begin, start(0x1000), *maps, end], pcs)
    example.encodes(pcs, [begin, start(0x1000), *maps, end], next_pc=0x1000)


JUMPS = "1000 00000013\n 1004 00030067\n 2006 0001\n 2008 00038067\n 200c 00b50463\n 2014 00038067"
"""1000 nop; 1004 jr t1; 2006 c.nop; 2008 jr t2; 200c beq 2014; 2014 jr t2."""


def test_jump_target_cache() -> None:
    """The second jump to 2006 finds it in the cache: entry (2006 >> 1) & 31 = 3."""
    example = Example(code(64, JUMPS), Parameters(iaddress_width=64, cache_size=5), Modes(jump_target_cache=True))
    begin, end = ends(example)
    pcs = [0x1000, 0x1004, 0x2006, 0x2008, 0x1000, 0x1004, 0x2006, 0x2008]
    cached: Fields = {"format": 0, "subformat": 1, "index": 3, "branches": 0}
    packets = [begin, start(0x1000), address(0x1006), address(-0x1006), cached, address(2), end]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)


def test_jump_target_cache_with_branches() -> None:
    """The index with a branch map; entry 0 holds what came there last: 1000 after 2000 would have."""
    example = Example(code(64, JUMPS), Parameters(iaddress_width=64, cache_size=5), Modes(jump_target_cache=True))
    begin, end = ends(example)
    pcs = [0x1000, 0x1004, 0x200C, 0x2014, 0x1000, 0x1004, 0x200C, 0x2014, 0x1000]
    first, second = branches(0, to=0x100C), {"format": 0, "subformat": 1, "index": 6, "branches": 1, "branch_map": 0}
    entry: Fields = {"format": 0, "subformat": 1, "index": 0, "branches": 0}
    packets = [begin, start(0x1000), first, address(-0x100C), second, entry, end]
    example.decodes(packets, pcs)


def test_sequentially_inferable_jumps() -> None:
    """lui or auipc and a jump through its register: no packet."""
    # 1000 lui t0, 2; 1004 jalr t0; 2000 auipc t1, 1; 2004 jalr x0, 8(t1); 3008 nop
    listing = "1000 000022b7\n 1004 000280e7\n 2000 00001317\n 2004 00830067\n 3008 00000013"
    example = Example(code(64, listing), Parameters(iaddress_width=64), Modes(sijump=True))
    begin, end = ends(example)
    pcs = [0x1000, 0x1004, 0x2000, 0x2004, 0x3008]
    packets = [begin, start(0x1000), address(0x2008), end]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)


def test_a_jump_to_a_constant_address_is_inferable() -> None:
    """Jump classification: jalr with rs1 = x0 has its target in the opcode."""
    example = Example(code(64, "1000 00000013\n 1004 10000067\n 100 00000013\n 104 00000013"))
    begin, end = ends(example)
    pcs = [0x1000, 0x1004, 0x100, 0x104]
    packets = [begin, start(0x1000), address(0x104 - 0x1000), end]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)


@pytest.mark.parametrize(
    ("tvec", "interrupt", "handler"), [(0x4000, 0, 0x4000), (0x4001, 0, 0x4000), (0x4001, 1, 0x4004)]
)
def test_implicit_exception(tvec: int, interrupt: int, handler: int) -> None:
    """The handler's address is left out: the decoder knows tvec; vectored, interrupt 1 goes to base + 4."""
    modes = Modes(implicit_exception=True)
    example = Example(code(64, LOOP), Parameters(iaddress_width=64), modes, TrapHandlers(tvec))
    begin, end = ends(example)
    packets = [begin, start(0x1008), trap(handler, 1, 1, interrupt=interrupt), address(4), end]
    history = example.decodes(packets, [0x1008, handler, handler + 4])
    assert [event.next_pc for event in history.events if event.kind is EventKind.TRAP] == [handler]
    taken = IngressTrap(0x100C, bool(interrupt), 1, 0, handler)
    example.encodes([0x1008, taken, handler, handler + 4], packets)
