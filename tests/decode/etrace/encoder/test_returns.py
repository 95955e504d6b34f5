"""Implicit return in the encoder, rule by rule: 2.0, "Implicit return mode" and "Format 2 irreport and irdepth"; the
Implicit Return extension v0.8.
"""

import pytest

from rvtrace_gdb.decode.etrace.encoder.options import ContextType, ResyncMode
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.encoder.words import Item, Told, U, branch, ends, exception, plain, sent

HANDLER = 0x4000
Items = list[Item]


def call(pc: int, to: int) -> Block:
    return ends(pc, IType.INFERABLE_CALL, to=to)


def ret(pc: int) -> Block:
    return ends(pc, IType.RETURN)


IRETS = Parameters(iaddress_width=32, return_stack_size=2, iret_ext=True)
IRDEPTH = Parameters(iaddress_width=32, return_stack_size=2)
RETURNS = Modes(full_address=True, implicit_return=True)


def leaf(pc: int) -> Items:
    """A call of a function at 0x2000 that returns."""
    return [call(pc, 0x2000), plain(0x2000), ret(0x2002)]


def test_expected_returns_are_not_reported() -> None:
    items: Items = [plain(0x1000), *leaf(0x1002), *leaf(0x1004), branch(0x1006), plain(0x1008, 2)]
    assert sent(*items, parameters=IRETS, modes=RETURNS) == ["start 1000", "N 100a"]


def test_a_return_elsewhere_is_reported() -> None:
    """With the returns left out before it (irets), or the number of the entry that failed (irdepth)."""
    items: Items = [plain(0x1000), *leaf(0x1002), call(0x1004, 0x2000), ret(0x2000), plain(0x666, 2)]
    assert sent(*items, parameters=IRETS, modes=RETURNS) == ["start 1000", "666 irets=1", "668"]
    assert sent(*items, parameters=IRDEPTH, modes=RETURNS)[1] == "666 irdepth=1"


def test_a_return_without_a_call_is_reported() -> None:
    items: Items = [plain(0x1000), ret(0x1002), plain(0x666, 2)]
    assert sent(*items, parameters=IRETS, modes=RETURNS) == ["start 1000", "666", "668"]
    items[1:1] = leaf(0x1002)
    items[-2] = ret(0x1004)
    assert sent(*items, parameters=IRETS, modes=RETURNS) == ["start 1000", "666 irets=1", "668"]


@pytest.mark.parametrize(("size", "reported"), [(1, 2), (2, 0), (3, 0)])
def test_the_stack_forgets_the_oldest_calls(size: int, reported: int) -> None:
    """2**size entries: of four nested calls the returns to the outermost are reported."""
    calls = call(0x1002, 0x2000), call(0x2000, 0x3000), call(0x3000, 0x5000), call(0x5000, 0x6000)
    items: Items = [plain(0x1000), *calls]
    items += [ret(0x6000), ret(0x5002), ret(0x3002), ret(0x2002), branch(0x1004), plain(0x1006)]
    found = sent(*items, parameters=Parameters(iaddress_width=32, return_stack_size=size, iret_ext=True), modes=RETURNS)
    assert len(found) == 2 + reported


@pytest.mark.parametrize(("iret_ext", "reported"), [(True, 0), (False, 1)])
def test_a_counter_counts_so_far(iret_ext: bool, reported: int) -> None:
    """With irets, up to the 2**call_counter_size of the pseudo-code; with irdepth, of call_counter_size bits, one less.
    A counter does not see where a return goes.
    """
    parameters = Parameters(iaddress_width=32, call_counter_size=1, iret_ext=iret_ext)
    items: Items = [plain(0x1000), call(0x1002, 0x2000), call(0x2000, 0x3000), ret(0x3000), ret(0x2002)]
    found = sent(*items, branch(0x1004), plain(0x1006), parameters=parameters, modes=RETURNS)
    assert len(found) == 2 + reported


def test_equal_calls_share_an_entry() -> None:
    """Stack and counter both: recursion takes one entry of two, for eight calls (2.0.5, not 2.0)."""
    parameters = Parameters(iaddress_width=32, return_stack_size=1, call_counter_size=3, iret_ext=True)
    items: Items = [plain(0x1000), call(0x1002, 0x2000), *(call(0x2000, 0x2000) for _ in range(8)), ret(0x2002)]
    items += [*(ret(0x2002) for _ in range(8)), branch(0x1004), plain(0x1006)]
    assert sent(*items, parameters=parameters, modes=RETURNS) == ["start 1000", "N 1006"]
    without = Parameters(iaddress_width=32, return_stack_size=1, call_counter_size=3)
    assert len(sent(*items, parameters=without, modes=RETURNS)) == 2 + 9 - 2
    items.insert(2, call(0x2000, 0x2000))
    items.insert(-2, ret(0x2002))
    assert len(sent(*items, parameters=parameters, modes=RETURNS)) == 3


def test_coroutines_and_other_links_are_no_calls() -> None:
    """jalr x1, x5 and jal x3: neither pushes, and a swap does not pop."""
    items: Items = [plain(0x1000), call(0x1002, 0x2000), ends(0x2000, IType.COROUTINE_SWAP), plain(0x3000)]
    items += [ends(0x3002, IType.OTHER_INFERABLE, to=0x5000), ret(0x5000), branch(0x1004), plain(0x1006)]
    assert sent(*items, parameters=IRETS, modes=RETURNS) == ["start 1000", "3000", "N 1006"]


def test_tail_calls_return_to_the_first_caller() -> None:
    tail = ends(0x2000, IType.INFERABLE_TAIL_CALL, to=0x3000)
    items: Items = [plain(0x1000), call(0x1002, 0x2000), tail, ret(0x3000)]
    assert sent(*items, branch(0x1004), plain(0x1006), parameters=IRETS, modes=RETURNS) == ["start 1000", "N 1006"]


def test_a_return_address_before_a_trap() -> None:
    """ "It is correctly predicted but is being reported for some other reason": irets even if it is 0, which does not
    count this return; with irdepth, the depth unless it is 0.
    """
    items: Items = [plain(0x1000), call(0x1002, 0x5000), *leaf(0x5000), plain(0x5002), exception(0x5004, HANDLER)]
    found = sent(*items, plain(HANDLER), parameters=IRETS, modes=RETURNS)
    assert found == ["start 1000", "5002 irets=0", "trap 4000 cause 2"]
    assert sent(*items, plain(HANDLER), parameters=IRDEPTH, modes=RETURNS)[1] == "5002 irdepth=1"
    assert sent(*items[:1], *items[2:], plain(HANDLER), parameters=IRDEPTH, modes=RETURNS)[1] == "5002"


def test_an_address_after_returns() -> None:
    """Not the instruction following a return: irets if it is not 0; with irdepth, unless there was no return since the
    last call or a branch since the return. A branch is reported with the returns before it.
    """
    items: Items = [plain(0x1000), *leaf(0x1002), plain(0x1004, 2)]
    assert sent(*items, parameters=IRETS, modes=RETURNS)[1] == "1006 irets=1"
    assert sent(*items, parameters=IRDEPTH, modes=RETURNS)[1] == "1006 irdepth=0"
    assert sent(*items, branch(0x1008), parameters=IRETS, modes=RETURNS)[1] == "N 1008 irets=1"
    for parameters in (IRETS, IRDEPTH):
        assert sent(*items, branch(0x1008), plain(0x100A), parameters=parameters, modes=RETURNS)[1] == "N 100a"
    called: Items = [call(0x1008, 0x2000), plain(0x2000)]
    assert sent(*items, *called, parameters=IRETS, modes=RETURNS)[1] == "2000 irets=1"
    assert sent(*items, *called, parameters=IRDEPTH, modes=RETURNS)[1] == "2000"


def test_255_returns_are_left_out_at_most() -> None:
    items: Items = [plain(0x1000)]
    for i in range(300):
        items += leaf(0x1002 + 2 * i)
    found = sent(*items, plain(0x125A, 2), parameters=IRETS, modes=RETURNS)
    assert found == ["start 1000", f"{0x1004 + 2 * 255:x} irets=255", "125c irets=44"]


def test_a_packet_without_an_address_does_not_restart_irets() -> None:
    """The decoder has not followed anything for it; so a context between two returns changes nothing."""
    parameters = Parameters(iaddress_width=32, return_stack_size=2, iret_ext=True, context_width=8)
    told = Told(parameters, RETURNS).retires(plain(0x1000), *leaf(0x1002), plain(0x1004, 2))

    told.encoder.context(ProgramContext(3, scontext=1), ContextType.IMPRECISE)
    told.retires(plain(0x1008, 2), *leaf(0x100C), plain(0x100E, 2)).encoder.stop()
    assert told.words()[1:-1] == ["start 1000", "context c=1", "1010 irets=2"]


def test_returns_are_told_before_a_change_of_privilege() -> None:
    """ "The last retired before a privilege change or resync because it is necessary to report the implicit return
    count": also if no branch is pending, which is all the chart looks for.
    """
    mret = ends(0x1004, IType.TRAP_RETURN)
    items: Items = [plain(0x1000), *leaf(0x1002), mret, U, plain(0x66, 2)]
    assert sent(*items, parameters=IRETS, modes=RETURNS) == ["start 1000", "1004 irets=0", "start 66 m=0", "68"]
    resync: Items = [plain(0x1000, 12), *leaf(0x1018), plain(0x101A, 4), plain(0x1022, 2)]
    found = sent(*resync, parameters=IRETS, modes=RETURNS, sync_mode=ResyncMode.HALFWORDS)
    assert found == ["start 1000", "1020 irets=1", "start 1022", "1024"]


def test_synchronization_forgets_the_calls() -> None:
    items: Items = [plain(0x1000), call(0x1002, 0x2000), exception(0x2000, HANDLER), plain(HANDLER), ret(HANDLER + 2)]
    found = sent(*items, plain(0x1004), parameters=IRETS, modes=RETURNS)
    assert found == ["start 1000", "1002", "trap 4000 cause 2", "1004"]


def test_a_call_that_is_synchronized_is_remembered() -> None:
    """The pseudo-code resets the stack first, then pushes."""
    items: Items = [call(0x1000, 0x2000), plain(0x2000), ret(0x2002), branch(0x1002), plain(0x1004)]
    assert sent(*items, parameters=IRETS, modes=RETURNS) == ["start 1000", "N 1004"]


def test_a_resync_at_an_unexpected_return_comes_later() -> None:
    """Format 3 cannot say that a return went elsewhere: its target is reported with irreport, which takes the branches
    along, and the instruction behind it synchronizes.
    """
    items: Items = [plain(0x1000, 13), call(0x101A, 0x2000), branch(0x2000), ret(0x2002), plain(0x666, 4)]
    found = sent(*items, parameters=IRETS, modes=RETURNS, sync_mode=ResyncMode.HALFWORDS)
    assert found == ["start 1000", "N 666 updiscon irets=0", "start 668", "66c"]


def test_a_context_at_an_unexpected_return_is_told_later() -> None:
    parameters = Parameters(iaddress_width=32, return_stack_size=2, iret_ext=True, context_width=8)
    items: Items = [plain(0x1000), call(0x101A, 0x2000), branch(0x2000), ret(0x2002), ProgramContext(3, scontext=4)]
    found = sent(*items, plain(0x666, 4), parameters=parameters, modes=RETURNS)
    assert found == ["start 1000", "N 666 updiscon irets=0", "start 668 c=4", "66c"]


def test_a_trap_at_an_unexpected_return() -> None:
    """The return is reported, as before any trap at the target of an uninferable discontinuity, and the EPC is told."""
    items: Items = [plain(0x1000), call(0x101A, 0x2000), ret(0x2000), exception(0x666, HANDLER), plain(HANDLER)]
    found = sent(*items, parameters=IRETS, modes=RETURNS)
    assert found == ["start 1000", "2000", "trap 666 thaddr 0 cause 2", "start 4000"]


def test_a_return_whose_target_is_a_constant() -> None:
    """jr x5 behind a constant in x5 is told by the code: neither reported nor counted, and with irets the address that
    was expected is gone (2.0.5: popped with every return).
    """
    modes = Modes(full_address=True, implicit_return=True, sijump=True)
    told = Block(0x2000, bytes([1, 1]), IType.RETURN, inferred=0x3000)
    items: Items = [plain(0x1000), call(0x1002, 0x2000), told, plain(0x3000), ret(0x3002), plain(0x1004, 2)]
    assert sent(*items, parameters=IRETS, modes=modes) == ["start 1000", "1004", "1006"]


def test_a_resync_at_an_expected_return_comes_later() -> None:
    """The address may just have been passed: a function that begins behind its call is entered, and returned to."""
    items: Items = [plain(0x1000, 14), call(0x101C, 0x101E), ret(0x101E), ret(0x101E), plain(0x666, 3)]
    found = sent(*items, parameters=IRETS, modes=RETURNS, sync_mode=ResyncMode.HALFWORDS)
    assert found == ["start 1000", "101e irets=0", "start 666", "66a"]
