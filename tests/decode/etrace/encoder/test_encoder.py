"""What the encoder sends, rule by rule, where neither the vectors (`test_vectors`) nor random executions, read by a
decoder that is not the product's (`tests/decode/etrace/test_properties.py`), show it.
"""

import pytest

from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.decode.etrace.encoder.output import MAX_BRANCH_COUNT, Branches
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.encoder.words import Item, M, Told, U, branch, exception, plain, sent

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


def test_a_trap_is_not_lost_with_the_packets_before() -> None:
    told = Told().retires(plain(0x1000), branch(0x1002), exception(0x1004, HANDLER))
    told.words()
    told.encoder.lost()
    told.retires(plain(HANDLER)).encoder.stop()
    assert told.words() == ["on trace_lost", "trap 4000 cause 2", "off ended_rep"]


def test_a_trap_is_lost_with_the_first_instruction_of_its_handler() -> None:
    told = Told().retires(plain(0x1000), branch(0x1002), exception(0x1004, HANDLER), plain(HANDLER))
    told.words()
    told.encoder.lost()
    told.retires(plain(HANDLER + 2)).encoder.stop()
    assert told.words() == ["on trace_lost", "start 4002", "off ended_rep"]


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


# -- branch prediction, sequentially inferable jumps

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
