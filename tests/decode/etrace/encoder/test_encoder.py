"""What the encoder sends, rule by rule: "Reference Compressed Branch Trace Algorithm", and the text of 2.0.

Where the flow chart and the reference encoder made of it do otherwise than the text, the text is followed.
"""

import pytest

from rvtrace_gdb.decode.etrace.encoder.options import EndReport
from rvtrace_gdb.decode.etrace.packet import QualStatus
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.encoder.words import Item, M, Told, U, branch, ends, exception, jr, plain, sent

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
    ("stop", "wanted"),
    [(EndReport.LATE, ["1000", "off ended_ntr"]), (EndReport.EARLY, ["1000 updiscon", "off ended_rep"])],
)
def test_an_end_at_the_target_of_a_discontinuity(stop: EndReport, wanted: list[str]) -> None:
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


def test_a_trap_is_lost_with_the_first_instruction_of_its_handler() -> None:
    told = Told().retires(plain(0x1000), branch(0x1002), exception(0x1004, HANDLER), plain(HANDLER))
    told.words()
    told.encoder.lost()
    told.retires(plain(HANDLER + 2)).encoder.stop()
    assert told.words() == ["on trace_lost", "start 4002", "off ended_rep"]


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
    told.encoder._support(QualStatus.NO_CHANGE, dloss=True)  # as an encoder with data trace sends it
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
