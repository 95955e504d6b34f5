"""What else makes the encoder synchronize or say where it is: contexts, time, and the resync timer of 2.0."""

import pytest

from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.encoder.words import Item, Told, U, branch, ends, exception, jr, plain, sent

Items = tuple[Item, ...]
HANDLER = 0x4000
MRET = IType.TRAP_RETURN


# -- contexts ("Context type ctype values and corresponding actions")

TELLS = Parameters(iaddress_width=32, context_width=8)


def changed(ctype: ContextType, last: IType = IType.NONE) -> list[str]:
    """Context 5 is entered behind a branch and a block of two that ends with *last*."""
    context = ProgramContext(3, scontext=5)
    items = plain(0x1000), branch(0x1002), ends(0x1004, last, 2), context, plain(0x1008, 4)
    return sent(*items, parameters=TELLS, context=ctype)


def test_a_change_of_context() -> None:
    """Unreported; without an address, where the branches are not flushed (the reference encoder forgets them); with the
    first instruction in it, as after a change of privilege; and with the last one before.
    """
    assert changed(ContextType.UNREPORTED) == ["start 1000", "N 100e"]
    assert changed(ContextType.IMPRECISE) == ["start 1000", "context c=5", "N 100e"]
    assert changed(ContextType.PRECISE) == ["start 1000", "N 1006", "start 1008 c=5", "100e"]
    assert changed(ContextType.DISCONTINUITY) == ["start 1000", "N 1006", "start 1008 c=5", "100e"]


def test_a_change_of_context_without_branches() -> None:
    """Only a discontinuity needs the last instruction with the old context; and a precise one that comes with a jump,
    whose target the decoder may have passed before without it.
    """
    context, items = ProgramContext(3, scontext=5), (plain(0x1000, 2), plain(0x1004, 2))
    for ctype, wanted in ((ContextType.PRECISE, []), (ContextType.DISCONTINUITY, ["1002"])):
        found = sent(items[0], context, items[1], parameters=TELLS, context=ctype)
        assert found == ["start 1000", *wanted, "start 1004 c=5", "1006"]
    jumped = plain(0x1000, 2), jr(0x1004), context, plain(0x1000, 2)
    assert sent(*jumped, parameters=TELLS) == ["start 1000", "1004", "start 1000 c=5", "1002"]


def test_an_imprecise_change_waits_for_an_instruction_that_sends_nothing() -> None:
    context = ProgramContext(3, scontext=5)
    items = plain(0x1000), jr(0x1002), context, plain(0x66, 3)
    found = sent(*items, parameters=TELLS, context=ContextType.IMPRECISE)
    assert found == ["start 1000", "66", "context c=5", "6a"]


def test_an_imprecise_change_is_told_by_a_synchronization_too() -> None:
    context = ProgramContext(3, scontext=5)
    items = plain(0x1000), context, exception(0x1002, HANDLER), plain(HANDLER, 3)
    found = sent(*items, parameters=TELLS, context=ContextType.IMPRECISE)
    assert found == ["start 1000", "trap 4000 cause 2 c=5", "4004"]


def test_one_change_may_be_treated_otherwise() -> None:
    told = Told(TELLS, context=ContextType.UNREPORTED).retires(plain(0x1000))
    told.encoder.context(ProgramContext(3, scontext=5), ContextType.PRECISE)
    told.retires(plain(0x1002)).encoder.stop()
    assert told.words()[1:-1] == ["start 1000", "start 1002 c=5"]


def test_context_has_scontext_and_hcontext() -> None:
    context = ProgramContext(0, True, scontext=0x21, hcontext=3)
    parameters = Parameters(iaddress_width=32, context_width=12, privilege_width=3)
    assert sent(context, plain(0x1000), parameters=parameters, hcontext_at=8) == ["start 1000 m=5 c=801"]
    assert sent(context, plain(0x1000), parameters=parameters) == ["start 1000 m=5 c=33"]
    assert sent(context, plain(0x1000), parameters=Parameters(iaddress_width=32)) == ["start 1000 m=0"]


def test_time() -> None:
    """That of the instruction reported: one tick each, or those told for what retired together."""
    told = Told(Parameters(iaddress_width=32, time_width=16)).retires()
    told.encoder.time(100)
    told.retires(plain(0x1000, 4), exception(0x1008, HANDLER))
    told.encoder.time(0x10200)
    told.retires(plain(HANDLER, 2), jr(HANDLER + 4), U, plain(0x66))
    told.encoder.stop()
    assert told.words()[1:-1] == ["start 1000 t=100", "1006", "trap 4000 cause 2 t=512", "start 66 m=0 t=515"]


def test_time_by_cycles() -> None:
    told = Told(Parameters(iaddress_width=32, time_width=16))
    told.encoder.start()
    told.encoder.time(100)
    told.encoder.retire([plain(0x1000, 4), jr(0x1008)], cycles=30)
    told.encoder.retire([U, plain(0x66, 2)], cycles=5)
    told.encoder.stop()
    assert told.words()[1:-1] == ["start 1000 t=100", "start 66 m=0 t=130", "68"]


# -- resynchronisation

SYNC = ResyncMode


def jumps(count: int) -> list[Item]:
    """So many indirect jumps, each to a run of three instructions."""
    return [item for i in range(count) for item in (jr(0x1000 + 0x100 * i), plain(0x1100 + 0x100 * i, 3))]


def test_resync_after_packets() -> None:
    """16 packets after the last one a target is reported with updiscon, for a synchronization follows: "The format 3
    will be sent if the resync timer has been exceeded".
    """
    found = sent(plain(0xFFE), *jumps(20), sync_mode=SYNC.PACKETS)
    targets = [f"{0x1100 + 0x100 * i:x}" for i in range(20)]
    assert found == ["start ffe", *targets[:16], targets[16] + " updiscon", "start 2102", *targets[17:], "2404"]


def test_resync_after_packets_with_branches() -> None:
    """ "On the cycle before this (when the resync timer value has been exactly reached), a format 1 will be generated
    if the branch map is not empty."
    """
    items = [plain(0xFFE), *jumps(16), branch(0x2006), branch(0x2008), plain(0x200A, 3)]
    found = sent(*items, sync_mode=SYNC.PACKETS)
    assert found[-4:] == ["2000", "N 2006", "start 2008", "200e"]


def test_resync_is_not_of_an_instruction_that_does_not_retire() -> None:
    """The chart tests for a resync before it tests for a trap at the target of a discontinuity: the reference encoder
    then synchronizes with an instruction that never retires. Text: format 3.1 with the EPC.
    """
    items = [plain(0xFFE), *jumps(16), jr(0x2006), plain(0x30), jr(0x32), exception(0x66, HANDLER), plain(HANDLER, 2)]
    found = sent(*items, sync_mode=SYNC.PACKETS)
    assert found[-6:] == ["2000", "30 updiscon", "start 32", "trap 66 thaddr 0 cause 2", "start 4000", "4002"]


@pytest.mark.parametrize("mode", [SYNC.CYCLES, SYNC.HALFWORDS])
def test_resync_after_time_or_code(mode: ResyncMode) -> None:
    """State 2 of the FSM reports branches at the last instruction of the block that reached 16 halfwords (of 2-byte
    instructions: as many cycles), or nothing if there are none; state 3 synchronizes at the next one.
    """
    assert sent(plain(0, 15), plain(30, 2), plain(34, 2), sync_mode=mode) == ["start 0", "start 22", "24"]
    found = sent(plain(0, 14), branch(28, to=28), branch(28, to=28), plain(30, 3), sync_mode=mode)
    assert found == ["start 0", "TN 1c", "start 1e", "22"]


def test_resync_by_cycles_told() -> None:
    told = Told(sync_mode=SYNC.CYCLES)
    told.encoder.start()
    told.encoder.retire([plain(0, 2)], cycles=15)
    told.encoder.retire([plain(4, 2)], cycles=1)
    told.encoder.retire([plain(8, 4)], cycles=1)
    told.encoder.stop()
    assert told.words()[1:-1] == ["start 0", "start 8", "e"]


def test_a_resync_at_the_target_of_a_discontinuity_is_announced() -> None:
    """Execution may have come to the target before without the jump: so the target is reported, with updiscon, and the
    instruction after it synchronizes.
    """
    items = plain(0, 15), jr(30), plain(20, 3)
    assert sent(*items, sync_mode=SYNC.HALFWORDS) == ["start 0", "14 updiscon", "start 16", "18"]


def test_a_synchronization_for_another_reason_restarts_the_count() -> None:
    items = plain(0, 10), exception(20, HANDLER), plain(HANDLER, 10), plain(HANDLER + 20, 10), plain(HANDLER + 40, 10)
    found = sent(*items, sync_mode=SYNC.HALFWORDS)
    assert found == ["start 0", "12", "trap 4000 cause 2", "start 4028", "403a"]


def test_no_resync_unless_asked() -> None:
    assert sum("start" in said for said in sent(plain(0xFFE), *jumps(3000))) == 1


def test_a_resync_comes_with_blocks_of_one_instruction_too() -> None:
    found = sent(plain(0, 15), *(plain(30 + 2 * i) for i in range(6)), sync_mode=SYNC.HALFWORDS)
    assert found == ["start 0", "start 20", "28"]


def test_a_context_packet_that_reaches_the_resync_count() -> None:
    """A synchronization follows it, with nothing to tell of two returns before: so their number is told instead, and
    the synchronization has the context.
    """
    parameters = Parameters(iaddress_width=32, return_stack_size=2, iret_ext=True, context_width=8)
    call, ret = ends(0x2006, IType.INFERABLE_CALL, to=0x3000), ends(0x3000, IType.RETURN)
    items = [plain(0xFFE), *jumps(16), call, ret, plain(0x2008, 2), ProgramContext(3, scontext=5), plain(0x200C, 3)]
    found = sent(*items, parameters=parameters, modes=Modes(full_address=True, implicit_return=True),
                 sync_mode=SYNC.PACKETS, context=ContextType.IMPRECISE)  # fmt: skip
    assert found[-4:] == ["2000", "200c irets=1", "start 200e c=5", "2010"]


def test_the_time_of_a_packet_without_one() -> None:
    """What a transport may stamp it with: the time of the instruction that makes the packet."""
    times = []
    encoder = Encoder(EncoderOptions(Parameters(iaddress_width=32)), lambda packet: times.append(encoder.packet_time))
    encoder.start()
    encoder.time(100)
    encoder.retire([plain(0, 4), plain(8, 4), branch(16), plain(18, 2), exception(22, HANDLER), plain(HANDLER)])
    encoder.time(500)
    encoder.stop()
    assert times == [0, 100, 110, 111, 111]


@pytest.mark.parametrize(("before", "where"), [(14, 0x66), (15, 0x66), (16, 0x20)])
def test_a_resync_is_not_between_a_constant_and_the_jump_to_it(before: int, where: int) -> None:
    """Who starts to decode at the jump cannot tell where it goes. It comes before, or behind the jump."""
    modes = Modes(full_address=True, sijump=True)
    pair = Block(2 * before, bytes([1, 1]), IType.OTHER_UNINFERABLE, inferred=0x66)
    found = sent(plain(0, before), pair, plain(0x66, 6), modes=modes, sync_mode=SYNC.HALFWORDS)
    assert found == ["start 0", f"start {where:x}", "70"]


def test_a_resync_due_at_the_target_that_loads_a_constant() -> None:
    """The target is reported, but without updiscon, as the resync cannot follow at once."""
    modes = Modes(full_address=True, sijump=True)
    pair = Block(0x100, bytes([1, 1]), IType.OTHER_UNINFERABLE, inferred=0x66)
    found = sent(plain(0, 15), jr(30), pair, plain(0x66, 6), modes=modes, sync_mode=SYNC.HALFWORDS)
    assert found == ["start 0", "100", "start 66", "70"]
