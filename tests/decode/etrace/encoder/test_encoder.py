"""What the encoder sends, rule by rule, where neither the vectors (`test_vectors`) nor random executions, read by a
decoder that is not the product's (`tests/decode/etrace/test_properties.py`), show it.
"""

import pytest

from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.encoder.output import MAX_BRANCH_COUNT, Branches
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.encoder.words import Item, M, Told, U, branch, ends, exception, jr, plain, sent

HANDLER = 0x4000
Items = list[Item]


# -- start and end ("Synchronization", "End of trace", "qual_status")


def test_switching_on_and_off_is_said_once() -> None:
    told = Told()
    told.encoder.enable()
    told.encoder.start()
    told.retires(plain(0x1000)).encoder.stop(disable=False)
    told.encoder.disable()
    assert told.words() == ["on", "start 1000", "on ended_rep", "off"]


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


def test_lost_packets() -> None:
    """ "The 1st packet loaded into the buffer when space next becomes available must be a support packet. Following
    this, tracing will resume with a sync packet." What was pending is lost with them.
    """
    told = Told().retires(plain(0x1000), branch(0x1002), branch(0x1004))
    told.encoder.lost()
    told.retires(branch(0x1006), plain(0x1008)).encoder.stop()
    assert told.words() == ["on", "start 1000", "on trace_lost", "start 1006", "1008", "off ended_rep"]


def test_a_trap_no_instruction_follows_is_reported_at_the_end() -> None:
    """ "Details of this must still be reported, even though the 1st instruction of the handler hasn't retired."""
    wanted = ["start 1000", "1002", "trap 1004 thaddr 0 cause 2"]
    assert sent(plain(0x1000, 2), exception(0x1004, HANDLER)) == wanted


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


# -- branch prediction, sequentially inferable jumps, implicit return

PREDICTS = Parameters(iaddress_width=32, bpred_size=4)
PREDICTION = Modes(full_address=True, branch_prediction=True)


def loop(times: int) -> Items:
    """A branch to itself, taken so many times: predicted from the second one on."""
    return [branch(0x10, to=0x10) for _ in range(times)]


def test_the_predictor_is_reset_by_a_synchronization() -> None:
    """Then it follows the branch that packet reports: that one is predicted wrongly, the next one rightly."""
    items: Items = [plain(0), *loop(40), exception(0x10, 0x10), *loop(32), branch(0x10), plain(0x12, 2)]
    found = sent(*items, parameters=PREDICTS, modes=PREDICTION)
    assert found == ["start 0", "T" * 31, "T" * 9 + " 10", "trap 10 cause 2 taken", "31 fails", "14"]


def test_a_count_at_its_highest_value() -> None:
    """ "The branch count reaches its maximum value (0xffff ffff)": reported with the address of the branch."""
    branches = Branches(EncoderOptions(PREDICTS, PREDICTION))
    for _ in range(100):
        branches.follow(0x10, False)
    branches.count = MAX_BRANCH_COUNT - 2
    due = []
    for _ in range(2):
        branches.follow(0x10, False)
        due.append(branches.is_due)
    assert due == [False, True]
    format, subformat, fields = branches.addressed({"address": 0x10})
    assert (format, subformat, fields["branch_count"], fields["branch_fmt"]) == (0, 0, 0xFFFFFFFF, 2)


@pytest.mark.parametrize(
    ("own", "wanted"),
    [(False, ["1004", "trap 4000 cause 2"]), (True, ["1004", "trap 66 thaddr 0 cause 2", "start 4000"])],
)
def test_a_trap_at_the_target_of_an_inferred_jump(own: bool, wanted: list[str]) -> None:
    """The chart: no updiscon comes before, so the handler is reported. The pseudo-code of 2.0.5 (exception_address)
    takes any jump to a register for one, and wants the EPC.
    """
    pair = Block(0x1002, bytes([1, 1]), IType.OTHER_UNINFERABLE, inferred=0x66)
    items = plain(0x1000), pair, exception(0x66, HANDLER), plain(HANDLER)
    modes = Modes(full_address=True, sijump=True)
    assert sent(*items, modes=modes, epc_after_inferred=own) == ["start 1000", *wanted]


def test_255_returns_are_left_out_at_most() -> None:
    items: Items = [plain(0x1000)]
    for i in range(300):
        items += [ends(0x1002 + 2 * i, IType.INFERABLE_CALL, to=0x2000), plain(0x2000), ends(0x2002, IType.RETURN)]
    parameters = Parameters(iaddress_width=32, return_stack_size=2, iret_ext=True)
    modes = Modes(full_address=True, implicit_return=True)
    found = sent(*items, plain(0x125A, 2), parameters=parameters, modes=modes)
    assert found == ["start 1000", f"{0x1004 + 2 * 255:x} irets=255", "125c irets=44"]


# -- contexts, time and the resync timer

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


def test_time_by_cycles() -> None:
    told = Told(Parameters(iaddress_width=32, time_width=16))
    told.encoder.start()
    told.encoder.time(100)
    told.encoder.retire([plain(0x1000, 4), jr(0x1008)], cycles=30)
    told.encoder.retire([U, plain(0x66, 2)], cycles=5)
    told.encoder.stop()
    assert told.words()[1:-1] == ["start 1000 t=100", "start 66 m=0 t=130", "68"]


def test_resync_by_cycles_told() -> None:
    told = Told(sync_mode=ResyncMode.CYCLES)
    told.encoder.start()
    told.encoder.retire([plain(0, 2)], cycles=15)
    told.encoder.retire([plain(4, 2)], cycles=1)
    told.encoder.retire([plain(8, 4)], cycles=1)
    told.encoder.stop()
    assert told.words()[1:-1] == ["start 0", "start 8", "e"]


def test_a_resync_due_at_the_target_that_loads_a_constant() -> None:
    """The target is reported, but without updiscon, as the resync cannot follow at once."""
    modes = Modes(full_address=True, sijump=True)
    pair = Block(0x100, bytes([1, 1]), IType.OTHER_UNINFERABLE, inferred=0x66)
    found = sent(plain(0, 15), jr(30), pair, plain(0x66, 6), modes=modes, sync_mode=ResyncMode.HALFWORDS)
    assert found == ["start 0", "100", "start 66", "70"]
