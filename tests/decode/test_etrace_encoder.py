"""What the encoder sends, rule by rule: "Reference Compressed Branch Trace Algorithm", and the text of 2.0.

Where the flow chart and the reference encoder made of it do otherwise than the text, the text is followed.
"""

import pytest

from decode.etrace.encoder import ContextType, Stop, SyncMode
from decode.etrace.options import Modes, Parameters
from decode.history import Context
from decode.instructions import IType
from tests.decode.etrace_encoder_words import Item, M, S, Told, U, branch, ends, exception, interrupt, jr, plain, sent

Items = tuple[Item, ...]
HANDLER = 0x4000
MRET = IType.TRAP_RETURN


# -- start and end ("Synchronization", "End of trace", "qual_status")


def test_the_first_and_the_last_instruction_are_reported() -> None:
    assert sent(plain(0x1000, 5)) == ["start 1000", "1008"]


def test_one_instruction_is_reported_once() -> None:
    assert sent(plain(0x1000)) == ["start 1000"]


def test_branches_are_reported_with_the_last_instruction() -> None:
    """A branch there at the very end is in the map: next_pc tells its outcome; nobody, that it is not taken."""
    items = branch(0x1000), branch(0x10), plain(0x12)
    assert sent(*items) == ["start 1000 taken", "N 12"]
    assert sent(*items[:2], next_pc=0x12) == ["start 1000 taken", "N 10"]
    assert sent(*items[:2], next_pc=0x10) == ["start 1000 taken", "T 10"]
    assert sent(*items[:2]) == ["start 1000 taken", "N 10"]


def test_where_the_hart_goes_on_may_be_told_with_what_retired() -> None:
    told = Told()
    told.encoder.start()
    told.encoder.retire([plain(0x1000), branch(0x1002)], next_pc=0x10)
    told.encoder.stop()
    assert told.words() == ["on", "start 1000", "T 1002", "off ended_rep"]


def test_nothing_is_sent_but_support_packets_where_nothing_retires() -> None:
    told = Told()
    told.encoder.start()
    told.encoder.stop()
    assert told.words() == ["on", "off ended_rep"]


@pytest.mark.parametrize(
    ("stop", "wanted"), [(Stop.LATE, ["1000", "off ended_ntr"]), (Stop.EARLY, ["1000 updiscon", "off ended_rep"])]
)
def test_an_end_at_the_target_of_a_discontinuity(stop: Stop, wanted: list[str]) -> None:
    """ended_ntr: the packet before would have been sent anyway, because of an updiscon; an encoder that sees the end
    coming sets updiscon instead and "loss of qualification should always be indicated using ended_rep".
    """
    told = Told(stop=stop).retires(plain(0x900), jr(0x902), plain(0x1000))
    told.encoder.stop()
    assert told.words() == ["on", "start 900", *wanted]


def test_an_end_after_the_target_of_a_discontinuity() -> None:
    told = Told().retires(plain(0x900), jr(0x902), plain(0x1000, 2))
    told.encoder.stop()
    assert told.words() == ["on", "start 900", "1000", "1002", "off ended_rep"]


def test_a_halt_ends_tracing_and_leaves_the_encoder_on() -> None:
    """ "If the halted or reset sideband signals are asserted the encoder will behave as if it has received an
    unqualified instruction"; upon deassertion it commences with a synchronization packet.
    """
    told = Told().retires(plain(0x1000), branch(0x1002), plain(0x10))
    told.encoder.stop(disable=False)
    told.encoder.retire([plain(0x5000, 3), exception(0x5006, HANDLER), U])  # debug mode: not traced
    told.encoder.start()
    told.retires(M, plain(0x12, 2)).encoder.stop()
    assert told.words() == ["on", "start 1000", "T 10", "on ended_rep", "start 12", "14", "off ended_rep"]
    told.encoder.disable()
    assert told.words() == []


def test_switching_on_and_off_is_said_once() -> None:
    told = Told()
    told.encoder.enable()
    told.encoder.start()
    told.retires(plain(0x1000)).encoder.stop(disable=False)
    told.encoder.disable()
    assert told.words() == ["on", "start 1000", "on ended_rep", "off"]


def test_lost_packets() -> None:
    """ "The 1st packet loaded into the buffer when space next becomes available must be a support packet. Following
    this, tracing will resume with a sync packet." What was pending is lost with them.
    """
    told = Told().retires(plain(0x1000), branch(0x1002), branch(0x1004))
    told.encoder.lost()
    told.retires(branch(0x1006), plain(0x1008)).encoder.stop()
    assert told.words() == ["on", "start 1000", "on trace_lost", "start 1006", "1008", "off ended_rep"]


def test_a_trap_is_not_lost_with_the_packets_before() -> None:
    told = Told().retires(plain(0x1000), branch(0x1002), exception(0x1004, HANDLER))
    told.words()
    told.encoder.lost()
    told.retires(plain(HANDLER)).encoder.stop()
    assert told.words() == ["on trace_lost", "trap 4000 cause 2", "off ended_rep"]


def test_packets_lost_while_nothing_is_traced() -> None:
    told = Told()
    told.encoder.enable()
    told.encoder.lost()
    told.encoder.retire([plain(0x1000)])
    assert told.words() == ["on", "on trace_lost"]


def test_support_packets_tell_of_data_trace() -> None:
    """denable and dloss, after ienable, encoder_mode, qual_status (2 bits) and 5 ioptions in the reference layout."""
    told = Told()
    told.encoder.denable = True
    told.encoder.enable()
    told.encoder.data_lost()
    told.encoder.lost(data=True)
    found = [int.from_bytes(packet, "little") >> 4 for packet in told.packets]
    assert [bits & 1 for bits in found] == [1, 1, 1]
    assert [bits >> 2 & 3 for bits in found] == [0, 0, 2]
    assert [bits >> 9 & 3 for bits in found] == [0b01, 0b11, 0b11]


# -- discontinuities and branches


def test_the_target_of_a_discontinuity_is_reported() -> None:
    items = plain(0x1000), branch(0x1002), jr(0x1004), plain(0x2000, 3), jr(0x2006), plain(0x1000, 4)
    assert sent(*items) == ["start 1000", "N 2000", "1000", "1006"]


def test_direct_jumps_and_calls_are_not_reported() -> None:
    items = plain(0x1000), ends(0x1002, IType.OTHER_INFERABLE, to=0x10), ends(0x10, IType.INFERABLE_CALL, to=0x20)
    assert sent(*items, plain(0x20, 2)) == ["start 1000", "22"]


def test_a_jump_to_a_constant_is_not_reported() -> None:
    """jalr with x0: the target is "supplied via a constant embedded within the jump opcode": inferable."""
    jump = jr(0x1002)
    jump.absolute = 0x40
    assert sent(plain(0x1000), jump, plain(0x40, 2)) == ["start 1000", "42"]


def test_a_full_branch_map_is_reported_without_an_address() -> None:
    """31 branches. The one at the start is in its own packet."""
    loop = [branch(0x10) for _ in range(33)]
    assert sent(plain(8), *loop, plain(0x12, 2)) == ["start 8", "T" * 31, "TN 14"]


def test_a_full_branch_map_goes_with_an_address() -> None:
    """ "branches is set to 31" where the last branch is the target of a discontinuity."""
    loop = [branch(0x10) for _ in range(29)]
    items = plain(8), *loop, branch(0x10), jr(0x12), branch(0x20, to=0x10)
    assert sent(*items, plain(0x22, 2)) == ["start 8", "T" * 29 + "NN 20", "24"]


def test_the_branch_at_a_synchronization_is_in_its_packet() -> None:
    """Not taken, branch is 1, as it is for an instruction that is none; so the map does not have it."""
    assert sent(branch(0x1000), plain(0x1002, 2)) == ["start 1000", "1004"]
    assert sent(branch(0x1000), plain(0x10, 2)) == ["start 1000 taken", "12"]


# -- traps ("Format 3 thaddr, address and privilege fields")


def test_a_trap() -> None:
    """The last instruction before, then cause, value and the handler's first instruction. tval is not cut off, as the
    reference flow does to 8 bits; an interrupt has none.
    """
    items: Items = plain(0x1000, 3), exception(0x1006, HANDLER, 5, 0x12345678), plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "1004", "trap 4000 cause 5 tval 12345678", "4002"]
    items = branch(0x1000), branch(0x1002), interrupt(0x10, HANDLER), branch(HANDLER), plain(0x10)
    assert sent(*items) == ["start 1000", "T 1002", "trap 4000 i7 taken", "10"]


def test_a_trap_at_the_target_of_a_discontinuity() -> None:
    """ "address contains the EPC and thaddr is set to 0. In this case, the trap handler address will be reported via a
    subsequent format 3, subformat 0 packet." The jump is reported, for its exception is next.
    """
    items = plain(0x1000), jr(0x1002), exception(0x66, HANDLER), plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "1002", "trap 66 thaddr 0 cause 2", "start 4000", "4002"]


def test_a_trap_right_behind_the_target_of_a_discontinuity() -> None:
    items = plain(0x1000), jr(0x1002), plain(0x66), exception(0x68, HANDLER), plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "66 updiscon", "trap 4000 cause 2", "4002"]


def test_a_trap_before_the_first_instruction() -> None:
    """ "An exception occuring on the 1st traced instruction is treated in the same way." (The chart: format 3.0.)"""
    items = exception(0x66, HANDLER), plain(HANDLER, 2)
    assert sent(*items) == ["trap 66 thaddr 0 cause 2", "start 4000", "4002"]


def test_tracing_that_starts_with_a_trap_handler() -> None:
    """Format 3.0 is for the first instruction "unless [it] also happens to be the first in a trap handler"."""
    told = Told()
    told.encoder.start(exception(0x66, HANDLER, 3, 7))
    told.retires(plain(HANDLER, 2)).encoder.stop()
    assert told.words() == ["on", "trap 4000 cause 3 tval 7", "4002", "off ended_rep"]


def test_two_traps_one_after_the_other() -> None:
    """ "If a second interrupt or exception occurs immediately, details of this must still be reported": the first one
    has thaddr 0 (and its handler as address, which is where the second one was taken), the second one thaddr 1.
    """
    items = plain(0x1000, 2), exception(0x1004, HANDLER, 2, 9), interrupt(HANDLER, 0x5000), plain(0x5000, 2)
    assert sent(*items) == ["start 1000", "1002", "trap 4000 thaddr 0 cause 2 tval 9", "trap 5000 i7", "5002"]


def test_three_traps_one_after_the_other() -> None:
    traps = exception(0x1004, HANDLER), exception(HANDLER, 0x5000, 1), exception(0x5000, 0x6000, 7)
    wanted = ["trap 4000 thaddr 0 cause 2", "trap 5000 thaddr 0 cause 1", "trap 6000 cause 7", "6002"]
    assert sent(plain(0x1000, 2), *traps, plain(0x6000, 2)) == ["start 1000", "1002", *wanted]


def test_each_of_two_traps_is_reported_once() -> None:
    """At the target of a discontinuity the first one is reported at once; the reference encoder reports it again when
    the second one comes (issue 119), and the second one never with its own cause.
    """
    items = plain(0x1000), jr(0x1002), exception(0x66, HANDLER), interrupt(HANDLER, 0x5000), plain(0x5000, 2)
    assert sent(*items) == ["start 1000", "1002", "trap 66 thaddr 0 cause 2", "trap 5000 i7", "5002"]


def test_privilege_of_a_trap() -> None:
    """ "This change comes into force from the start of the trap handler. As such, the privilege value reported when
    thaddr is 0 will be the privilege level prior to any change."
    """
    items: Items = U, plain(0x1000, 2), exception(0x1004, HANDLER), M, plain(HANDLER, 2)
    assert sent(*items) == ["start 1000 m=0", "1002", "trap 4000 cause 2", "4002"]
    items = U, plain(0x1000), jr(0x1002), exception(0x66, HANDLER), M, plain(HANDLER, 2)
    assert sent(*items)[2:] == ["trap 66 thaddr 0 cause 2 m=0", "start 4000", "4002"]
    items = U, plain(0x1000), exception(0x1002, HANDLER), S, interrupt(HANDLER, 0x5000), M, plain(0x5000, 2)
    assert sent(*items)[1:] == ["trap 4000 thaddr 0 cause 2 m=0", "trap 5000 i7", "5002"]


def test_return_from_a_trap() -> None:
    """An uninferable discontinuity; with a change of privilege its target has a synchronization packet, and branches
    before are reported with the return itself.
    """
    mret = plain(0x1000), branch(0x1002), ends(0x1004, MRET)
    assert sent(*mret, plain(0x66, 2)) == ["start 1000", "N 66", "68"]
    assert sent(*mret, U, plain(0x66, 2)) == ["start 1000", "N 1004", "start 66 m=0", "68"]
    assert sent(mret[0], mret[2], U, plain(0x66, 2)) == ["start 1000", "start 66 m=0", "68"]


def test_a_trap_at_the_target_of_a_return_from_a_trap() -> None:
    """Nothing retired in the other mode: format 3.1 has its privilege. (The chart, for the change: format 3.0.)"""
    items = plain(0x1000), ends(0x1002, MRET), U, interrupt(0x66, HANDLER), M, plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "1002", "trap 66 thaddr 0 i7 m=0", "start 4000", "4002"]


def test_ecall_that_retires() -> None:
    """ "The flow diagram must be traversed twice, first for the retired instruction, and then for the trap." """
    ecall = ends(0x66, IType.EXCEPTION)
    items: Items = plain(0x1000, 2), ends(0x1004, IType.EXCEPTION), exception(0x1004, HANDLER, 11), plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "1004", "trap 4000 cause 11", "4002"]
    items = plain(0x1000), jr(0x1002), ecall, exception(0x66, HANDLER, 11), plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "66 updiscon", "trap 4000 cause 11", "4002"]


def test_ecall_that_does_not_retire() -> None:
    items: Items = plain(0x1000, 2), exception(0x1004, HANDLER, 11), plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "1002", "trap 4000 cause 11", "4002"]
    items = plain(0x1000), jr(0x1002), exception(0x66, HANDLER, 11), plain(HANDLER, 2)
    assert sent(*items) == ["start 1000", "1002", "trap 66 thaddr 0 cause 11", "start 4000", "4002"]


def test_implicit_exception_leaves_the_handler_out() -> None:
    """The address is omitted if thaddr is 1; the EPC is not."""
    implicit = Modes(full_address=True, implicit_exception=True)
    items = plain(0x1000), exception(0x1002, HANDLER), plain(HANDLER), jr(HANDLER + 2), exception(0x66, HANDLER)
    wanted = ["start 1000", "trap cause 2", "4002", "trap 66 thaddr 0 cause 2", "start 4000"]
    assert sent(*items, plain(HANDLER), modes=implicit) == wanted


def test_a_trap_no_instruction_follows_is_not_reported() -> None:
    """ "Usually the cause is reported along with the 1st address of the trap handler, when that instruction retires."""
    assert sent(plain(0x1000, 2), exception(0x1004, HANDLER)) == ["start 1000", "1002"]


# -- notify ("Format 2 notify field")


def notified(*items: Item, before: Item) -> list[str]:
    told = Told()
    told.encoder.start()
    for item in items:
        if item is before:
            told.encoder.notify()
        told.encoder.retire([item])
    told.encoder.stop()
    return told.words()[1:-1]


def test_notify_reports_the_next_instruction() -> None:
    items = plain(0x1000), branch(0x1002), plain(0x1004, 3), plain(0x100A, 2)
    assert notified(*items, before=items[2]) == ["start 1000", "N 1004 notify", "100c"]
    assert notified(*items, before=items[1]) == ["start 1000", "N 1002 notify", "100c"]


def test_notify_says_nothing_of_what_is_reported_anyway() -> None:
    """At the target of a discontinuity: the flag says that the instruction "is not the target" of one."""
    items: Items = plain(0x1000), jr(0x1002), plain(0x66, 2), plain(0x6A, 2)
    assert notified(*items, before=items[2]) == ["start 1000", "66", "6c"]
    items = plain(0x1000), plain(0x1002), plain(0x1004)
    assert notified(*items, before=items[0]) == ["start 1000", "1004"]


# -- contexts ("Context type ctype values and corresponding actions")

TELLS = Parameters(iaddress_width=32, context_width=8)


def changed(ctype: ContextType, last: IType = IType.NONE) -> list[str]:
    """Context 5 is entered behind a branch and a block of two that ends with *last*."""
    context = Context(3, scontext=5)
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
    context, items = Context(3, scontext=5), (plain(0x1000, 2), plain(0x1004, 2))
    for ctype, wanted in ((ContextType.PRECISE, []), (ContextType.DISCONTINUITY, ["1002"])):
        found = sent(items[0], context, items[1], parameters=TELLS, context=ctype)
        assert found == ["start 1000", *wanted, "start 1004 c=5", "1006"]
    jumped = plain(0x1000, 2), jr(0x1004), context, plain(0x1000, 2)
    assert sent(*jumped, parameters=TELLS) == ["start 1000", "1004", "start 1000 c=5", "1002"]


def test_an_imprecise_change_waits_for_an_instruction_that_sends_nothing() -> None:
    context = Context(3, scontext=5)
    items = plain(0x1000), jr(0x1002), context, plain(0x66, 3)
    found = sent(*items, parameters=TELLS, context=ContextType.IMPRECISE)
    assert found == ["start 1000", "66", "context c=5", "6a"]


def test_an_imprecise_change_is_told_by_a_synchronization_too() -> None:
    context = Context(3, scontext=5)
    items = plain(0x1000), context, exception(0x1002, HANDLER), plain(HANDLER, 3)
    found = sent(*items, parameters=TELLS, context=ContextType.IMPRECISE)
    assert found == ["start 1000", "trap 4000 cause 2 c=5", "4004"]


def test_one_change_may_be_treated_otherwise() -> None:
    told = Told(TELLS, context=ContextType.UNREPORTED).retires(plain(0x1000))
    told.encoder.context(Context(3, scontext=5), ContextType.PRECISE)
    told.retires(plain(0x1002)).encoder.stop()
    assert told.words()[1:-1] == ["start 1000", "start 1002 c=5"]


def test_context_has_scontext_and_hcontext() -> None:
    context = Context(0, True, scontext=0x21, hcontext=3)
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

SYNC = SyncMode


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
def test_resync_after_time_or_code(mode: SyncMode) -> None:
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
