"""Traps as the encoder reports them: "Format 3 thaddr, address and privilege fields" of 2.0, and the flow chart.

Where the chart and the reference encoder made of it report an instruction that never retires, the text is followed.
"""

from rvtrace_gdb.decode.etrace.options import Modes
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.encoder.words import Item, M, S, Told, U, branch, ends, exception, interrupt, jr, plain, sent

Items = tuple[Item, ...]
HANDLER = 0x4000
MRET = IType.TRAP_RETURN


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


def test_a_trap_no_instruction_follows_is_reported_at_the_end() -> None:
    """ "Details of this must still be reported, even though the 1st instruction of the handler hasn't retired."""
    wanted = ["start 1000", "1002", "trap 1004 thaddr 0 cause 2"]
    assert sent(plain(0x1000, 2), exception(0x1004, HANDLER)) == wanted


def test_a_trap_that_was_reported_is_not_reported_after_a_loss() -> None:
    told = Told().retires(plain(0x1000), jr(0x1002), exception(0x66, HANDLER))
    told.words()
    told.encoder.lost()
    told.retires(plain(HANDLER)).encoder.stop()
    assert told.words() == ["on trace_lost", "start 4000", "off ended_rep"]
